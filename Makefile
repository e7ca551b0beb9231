# `make help` lists the targets. All need Go alone, but for race and ci, which need a C compiler too.
.DEFAULT_GOAL := help
.PHONY: help test race lint bench measure cover fuzz long ci long-T3 long-T11 long-T18 long-T20

PKG ?= ./...
BENCH ?= .
FUZZTIME ?= 15s
SEEDS ?= 100000
FROM ?= $(shell date +%s)

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

long: ## Simulate many clusters, kill many replicas and many leaders (SEEDS=100000, from seed FROM)
	go test ./internal/sim -run TestExplore -count 1 -timeout 0 -v -sim.seeds $(SEEDS) -sim.from $(FROM)
	go test ./examples/... -run TestNight -count 20 -timeout 0 -v
	go test ./internal/etcdrig -count 1 -timeout 0 -v -etcdrig.rounds 200

ci: ## Run all that must pass before a change lands
	./.ci/run

long-T3: ## Let real schedulers live for 1,000 hours of fake time, under the race detector
	CGO_ENABLED=1 go test -race ./membership -run '^TestBubble$$' -count 1 -timeout 0 -v -bubble.hours 1000 -bubble.seed $(FROM)

long-T11: ## Draw 100,000 histories of members
	go test ./ring -run '^TestHistories$$' -count 1 -timeout 0 -v -ring.histories 100000 -ring.seed $(FROM)

long-T18: ## Fuzz each target for 15 minutes
	$(MAKE) fuzz FUZZTIME=15m

long-T20: ## Be away for a year from 10,000 jobs
	go test ./scheduler -run '^TestYear$$' -count 1 -timeout 0 -v -year.jobs 10000
