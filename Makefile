# `make help` lists the targets. All need Go alone, but for race and ci, which need a C compiler too.
.DEFAULT_GOAL := help
.PHONY: help test race lint bench measure cover fuzz long long-T21 ci

PKG ?= ./...
BENCH ?= .
FUZZTIME ?= 10s
SEEDS ?= 100000
FROM ?= $(shell date +%s)

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

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

long: ## Simulate many clusters, kill many replicas and many leaders (SEEDS=100000, from seed FROM)
	go test ./internal/sim -run TestExplore -count 1 -timeout 0 -v -sim.seeds $(SEEDS) -sim.from $(FROM)
	go test ./examples/... -run TestNight -count 20 -timeout 0 -v
	go test ./internal/etcdrig -count 1 -timeout 0 -v -etcdrig.rounds 200

long-T21: ## Try every seeded bug on the test that has to fail of it
	go test -tags bugs ./internal/bugs -count 1 -v -timeout 0

ci: ## Run all that must pass before a change lands
	./.ci/run
