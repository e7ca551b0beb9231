# `make help` lists the targets. All need Go alone, but for race and ci, which need a C compiler too.
.DEFAULT_GOAL := help
.PHONY: help test race lint bench measure cover fuzz long ci long-T3 long-T11 long-T18 long-T20

PKG ?= ./...
BENCH ?= .
FUZZTIME ?= 15s
SEEDS ?= 100000
FROM ?= $(shell date +%s)
RUNS ?= 20
MINUTES ?= 60
HOURS ?= 25000
KILLS ?= 10000

help: ## Show this list
	@awk -F ':.*## ' '/^[a-zA-Z0-9-]+:.*## / {printf "  %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

test: ## Run all tests (PKG=./ring/... narrows it, here and below)
	go test $(PKG)

race: ## Run all tests with the race detector, in random order
	go test -race -shuffle=on $(PKG)

lint: ## Check format, vet and staticcheck
	@bad=$$(gofmt -l .); [ -z "$$bad" ] || { echo "not formatted:"; echo "$$bad"; exit 1; }
	go vet $(PKG)
	go tool -modfile=tools/go.mod staticcheck $(PKG)

bench: ## Run each benchmark once, so that none rots
	go test -run '^$$' -bench '$(BENCH)' -benchtime 1x $(PKG)

measure: ## Measure benchmarks, six times each (BENCH=Owner picks some)
	go test -run '^$$' -bench '$(BENCH)' -benchmem -count 6 $(PKG)

cover: ## Run all tests and print what they cover (go tool cover -html=cover.prof shows where)
	go test -coverpkg=./... -coverprofile=cover.prof $(PKG)
	@go tool cover -func=cover.prof | tail -n 1

fuzz: ## Fuzz each fuzz target for a while, two at a time (FUZZTIME=15s)
	@grep -rEo '^func Fuzz[A-Za-z0-9_]+' --include='*_test.go' --exclude-dir=testdata . | \
	sed 's|/[^/]*:func | |' | xargs -P 2 -L 1 sh -c \
		'out=$$(go test -run "^\$$" -fuzz "^$$1\$$" -fuzztime $(FUZZTIME) -parallel 1 "$$0" 2>&1); code=$$?; echo "$$0 $$1"; echo "$$out"; exit $$code'
	@echo "T18: all targets, $(FUZZTIME) each, 0 crashers"

ci: ## Run all that must pass before a change lands
	./.ci/run

# The long runs that docs/robustness.md reports, a target for each of its rows that has one. Each ends by itself, with its figures in
# its last lines.
LONG = go test -vet=off -count 1 -timeout 0 -v

# This rule runs all rows, each though another failed, and fails if any did.
long: ## Run all the long runs (make long-T1 is one of them; many hours)
	@failed=; for row in $$(awk -F: '/^long-T[0-9]+:/ {print $$1}' $(MAKEFILE_LIST)); do \
		echo "== $$row"; $(MAKE) --no-print-directory $$row || failed="$$failed $$row"; \
	done; [ -z "$$failed" ] || { echo "failed:$$failed"; exit 1; }

# The collector works less where there is room, and there is.
long-T1: ## Simulate clusters for HOURS under faults, 25,000, and SEEDS of them for a minute, 100,000 (from seed FROM)
	GOGC=400 $(LONG) ./internal/sim -run '^TestHours$$' -sim.hours $(HOURS) -sim.from $(FROM)
	GOGC=400 $(LONG) ./internal/sim -run '^TestExplore$$' -sim.seeds $(SEEDS) -sim.from $(FROM)

long-T2: ## Simulate 1,000 clusters twice, on one processor and on two
	GOGC=400 $(LONG) ./internal/sim -run '^TestHoursAgain$$' -sim.twice 1000 -sim.from $(FROM)

long-T3: ## Let real schedulers live for 1,000 hours of fake time, with the race detector
	CGO_ENABLED=1 $(LONG) -race ./membership -run '^TestBubble$$' -bubble.hours 1000 -bubble.seed $(FROM)

long-T4: ## Kill KILLS processes, 10,000, at nine points in the life of a run, on all stores, and many leaders
	$(LONG) ./examples/... -run TestNight -count 20
	$(LONG) ./internal/etcdrig -etcdrig.rounds 200
	$(LONG) ./internal/rig -run '^TestKilled$$' -rig.kills $(KILLS)

long-T5: ## Pause 2,000 processes for 1.5 to 5 leases, on all stores
	$(LONG) ./internal/rig -run '^TestPaused$$' -rig.pauses 2000

long-T6: ## Lose 1,000 replies to commits on each server
	$(LONG) ./internal/ordeal -run '^TestLostCommitReplies$$' -ordeal.commits 500

RIG = $(LONG) ./internal/rig -rig.size long

long-T7: ## Break the network of four processes and their store in 8 shapes, 50 times each, and lose 5, 20 and 40 % of its packets
	$(RIG) -run '^TestShapes$$' -parallel 9

long-T8: ## Kill 300 owners with due work
	$(RIG) -run '^TestFailover$$' -parallel 8

long-T9: ## Tell 200 replicas to stop on a due second
	$(RIG) -run '^TestStoppedOnDue$$' -parallel 6

long-T10: ## Take the store, the code and the workers from 200 owners each, and leave 200 busy ones alone
	$(RIG) -run '^(TestBlind|TestLacking|TestHung|TestBusy)$$' -parallel 8

long-T11: ## Draw 100,000 histories of members
	$(LONG) ./ring -run '^TestHistories$$' -ring.histories 100000 -ring.seed $(FROM)

long-T12: ## Leave five replicas alone for an hour, and throttle them for another
	$(RIG) -run '^(TestCalm|TestThrottled)$$' -rig.calm 1h

long-T13: ## Judge 200,000 questions and their answers on each store, while all is well, beside restarts and on bad networks
	$(LONG) ./internal/ordeal -run '^Test(Linearizable|ServerRestarts|FaultyNetwork)$$' -ordeal.ops 200000 -ordeal.kills 50 -parallel 4

long-T14: ## Kill, stop for 30 s, slow and silence each server, 50 times each
	$(LONG) ./internal/ordeal -run '^TestOutages$$' -ordeal.outages 50 -parallel 16 # they wait

long-T16: ## Soak for an hour: replicas are killed and leave, and nothing grows (MINUTES=1440 for a day, STORE=postgres://... for a server)
	go run ./cmd/belfry bench soak --minutes $(MINUTES) $(if $(STORE),--store $(STORE))

long-T18: ## Fuzz each fuzz target for 15 minutes
	$(MAKE) fuzz FUZZTIME=15m

long-T19: ## Roll three replicas to an older version and back, 30 times
	$(RIG) -run '^TestUpgrades$$' -parallel 6

long-T20: ## Be away for a year from 10,000 jobs
	$(LONG) ./scheduler -run '^TestYear$$' -year.jobs 10000

long-T21: ## Try every seeded bug on the test that has to fail of it
	go test -tags bugs ./internal/bugs -count 1 -v -timeout 0

long-T23: ## Repeat the tests that put faults on real processes, and count what failed (RUNS=20)
	./.ci/repeat $(RUNS)
