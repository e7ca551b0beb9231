# `make help` lists the targets. All need Go alone, but for race and ci, which need a C compiler too.
.DEFAULT_GOAL := help
.PHONY: help test race lint bench measure cover fuzz long ci

PKG ?= ./...
BENCH ?= .
FUZZTIME ?= 10s
SEEDS ?= 100000
FROM ?= $(shell date +%s)
RUNS ?= 20

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

fuzz: ## Fuzz each fuzz target for a while (FUZZTIME=10s)
	@grep -rEo '^func Fuzz[A-Za-z0-9_]+' --include='*_test.go' --exclude-dir=testdata . | \
	sed 's|/[^/]*:func | |' | while read -r dir name; do \
		echo "$$dir $$name"; go test -run '^$$' -fuzz "^$$name$$" -fuzztime $(FUZZTIME) "$$dir" || exit 1; \
	done

ci: ## Run all that must pass before a change lands
	./.ci/run

# The long runs that docs/robustness.md reports, a target for each of its rows, T1 to T23. Each ends by itself, with its
# figures in its last lines, and what takes more than 150 minutes on two processors is in parts (long-T4-1, long-T4-2).
LONG = go test -vet=off -count 1 -timeout 0 -v

# This rule runs all rows, each though another failed, and fails if any did.
long: ## Run all the long runs (make long-T1 is one of them; hours)
	@failed=; for row in $$(awk -F: '/^long-T[0-9]+:/ {print $$1}' $(MAKEFILE_LIST)); do \
		echo "== $$row"; $(MAKE) --no-print-directory $$row || failed="$$failed $$row"; \
	done; [ -z "$$failed" ] || { echo "failed:$$failed"; exit 1; }

# The collector works less where there is room, and there is.
long-T1: ## Simulate clusters for 25,000 hours under faults, and SEEDS of them for a minute (from seed FROM)
	GOGC=400 $(LONG) ./internal/sim -run '^TestHours$$' -sim.hours 25000 -sim.from $(FROM)
	GOGC=400 $(LONG) ./internal/sim -run '^TestExplore$$' -sim.seeds $(SEEDS) -sim.from $(FROM)

long-T2: ## Simulate 1,000 clusters twice, on one processor and on two
	GOGC=400 $(LONG) ./internal/sim -run '^TestHoursAgain$$' -sim.twice 1000 -sim.from $(FROM)

# T3

long-T4: ## Kill many replicas and many leaders
	$(LONG) ./examples/... -run TestNight -count 20
	$(LONG) ./internal/etcdrig -etcdrig.rounds 200

# T5

long-T6: ## Lose 1,000 replies to commits on each server
	$(LONG) ./internal/ordeal -run LostCommitReplies -ordeal.commits 500

# T7

# T8

# T9

# T10

# T11

# T12

long-T13: ## Judge 200,000 questions and their answers on each store, while all is well, beside restarts and on bad networks
	$(LONG) ./internal/ordeal -run 'Linearizable|Restarts|FaultyNetwork' -ordeal.ops 200000 -ordeal.kills 50

long-T14: ## Kill, stop for 30 s, slow and silence each server, 50 times each
	$(LONG) ./internal/ordeal -run Outage -ordeal.outages 50

# T16

# T18

# T19

# T20

# T21

long-T23: ## Repeat the tests that put faults on real processes, and count what failed (RUNS=20)
	./.ci/repeat $(RUNS)
