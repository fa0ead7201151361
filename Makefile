# Every target works from a clone alone, as root or as an ordinary user; a second run does only what is missing.
# What is downloaded or built for tests goes to ${XDG_CACHE_HOME:-~/.cache}, in folders named after versions.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo 0.0.0-dev)
COMMIT  ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)
# We stamp the binary ourselves; Go's own stamping fails in a clone that belongs to somebody else.
export GOFLAGS := $(GOFLAGS) -buildvcs=false
# One timestamped line for each step: cold caches take minutes, and silence looks like a hang.
say = printf '\n[%s] %s\n' "$$(date +%H:%M:%S)" $(1)

# The race detector costs five to ten times the time, so it watches the packages whose code runs concurrently.
# Pure packages are left out, and of the data engine, whose tests are long loops over rows, only those of its goroutines.
RACE := ./api/... ./auth/... ./catalog ./catalog/catalogtest ./internal/crash/... ./internal/iceio/... ./internal/pgserver/... \
	./maintenance ./store/... ./vending/...
RACE_LAYOUT := Cancel|Spill
TEST_TIMEOUT ?= 45m

# Real clients, and an identity provider, in the order of what their downloads take; some come in several versions or parts.
CLIENTS := trino spark keycloak clickhouse pyiceberg duckdb rck iceberg-js polaris-cli
PARTS_spark := 4 3.5
PARTS_pyiceberg := new old
PARTS_rck := kit own

help: ## print this
	@awk -F ':.*## ' -v clients='$(CLIENTS)' 'function row(name) {printf "  make %-13s %s\n", name, $$2} /^[a-z0-9-]+:.*## / {row($$1)} \
		/^\$$\(CLIENTS\):.*## / {n = split(clients, name, " "); for (i = 1; i <= n; i++) row(name[i])}' $(MAKEFILE_LIST)

build: ## build bin/catalogd
	@command -v $(GO) >/dev/null || .ci/doctor build
	@mkdir -p bin
	@[ -e bin/catalogd ] || $(call say,'first build: some minutes; modules and cache take about 1.5 GB')
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/catalogd ./cmd/catalogd

check: ## format, vet and the tests that need no service; under a minute when warm
	@bad=$$(git ls-files '*.go' | xargs gofmt -l); [ -z "$$bad" ] || { echo "gofmt -w is missing on:" $$bad >&2; exit 1; }
	$(GO) vet ./...
	$(GO) test ./internal/laws/... ./internal/fault/... ./authz/... ./catalog/commit/... ./maintenance/zorder/... ./vending

test: prepare ## install or build everything the tests need, then run all tests
	@$(call say,'vet')
	$(GO) vet ./...
	@$(call say,'tests under the race detector (1 of 2)')
	$(GO) test -race -timeout $(TEST_TIMEOUT) $(RACE)
	$(GO) test -race -timeout $(TEST_TIMEOUT) -run '$(RACE_LAYOUT)' ./maintenance/layout
	@$(call say,'the other tests with real clients among them (2 of 2)')
	$(GO) test -timeout $(TEST_TIMEOUT) $$($(GO) list ./... | grep -vxFf <($(GO) list $(RACE)))

demo: ## the main job on real data; DEMO_EXIT=1 stops at the end, DEMO_ROWS=n, DEMO_STORE=s3
	@$(MAKE) --no-print-directory doctor-demo
	@$(MAKE) --no-print-directory -j3 demo-parts
	@demo/run

bench: build ## measure against baselines of the same run; writes bench/result.json
	@bench/run

doctor: ## list what this machine lacks, each with the command that brings it
	@.ci/doctor all

run: build postgres ## catalogd dev in ./catalogd-data
	bin/catalogd dev

first-query: ## while `make run` runs in another terminal: make the table iot.readings, fill it and read it back
	@[ -r catalogd-data/client.env ] || { echo "no server has been started here yet: make run, in another terminal" >&2; exit 1; }
	@$(call say,'PyIceberg'); export $$(cat catalogd-data/client.env); "$$(e2e/clients/pyiceberg/install | tail -n 1)" demo/first_query.py

schema: postgres ## dump the database schema into migrations/schema.sql
	$(GO) test ./store -run '^TestSchema' -count=1 -rewrite

rewrite: postgres ## rewrite all golden files; review the difference
	@for p in $$(git grep -l '"rewrite"' -- '*_test.go' ':!e2e' | xargs -n1 dirname | sort -u); do \
		echo "$$p"; $(GO) test "./$$p" -count=1 -rewrite; done

e2e: prepare ## the tests with real clients; STORY=name runs one
	$(GO) test -timeout $(TEST_TIMEOUT) -count=1 -v -run '$(or $(STORY),.)' ./e2e/...

compatibility: prepare ## run every client and write docs/compatibility.md anew
	$(GO) test ./e2e -timeout $(TEST_TIMEOUT) -count=1 -v -run '^(TestSmoke|TestKit|TestIcebergGo)_' -rewrite

fuzz: ## every fuzz target for FUZZ_TIME (default 1m)
	@git grep -lE '^func Fuzz' -- '*_test.go' | while read -r f; do \
		grep -oE '^func Fuzz[A-Za-z0-9_]+' "$$f" | cut -d' ' -f2 | while read -r name; do \
			$(GO) test "./$$(dirname "$$f")" -run '^$$' -fuzz "^$$name\$$" -fuzztime "$${FUZZ_TIME:-1m}"; done; done

clean: ## remove what was built here; the cache folder stays
	rm -rf bin demo/data demo/result.json bench/result.json

# What tests and demo stand on. The store's build is bound by the processor and the clients by the network, so they
# run side by side; each is idempotent and locks for itself.
prepare: ## only install and build what the tests need
	@$(MAKE) --no-print-directory doctor-test
	@$(MAKE) --no-print-directory -j4 build store postgres $(CLIENTS) warm

demo-parts: build postgres pyiceberg duckdb $(if $(filter s3,$(DEMO_STORE)),store)

postgres: ## Postgres into the cache folder, when the system has none
	@bin=$$(.ci/find-postgres) || { $(call say,'Postgres'); bin=$$(e2e/postgres/install | tail -n 1); }; echo "Postgres: $$bin"

store: ## build the S3 store with STS that the tests use
	@$(call say,'S3 store'); echo "S3 store: $$(e2e/s3/build | tail -n 1)"

$(CLIENTS): ## install this real client, for the tests
	@for part in $(or $(PARTS_$@),''); do \
		$(call say,"client $@ $$part"); path=$$(e2e/clients/$@/install $$part | tail -n 1); echo "$@: $$(sed -E 's/(.{200}).+/\1.../' <<<"$$path")"; done

# Compile the tests while the clients download.
warm:
	@$(call say,'compile the tests')
	@$(GO) test -race -run '^$$' $(RACE) ./maintenance/layout >/dev/null
	@$(GO) test -run '^$$' ./... >/dev/null

doctor-test doctor-demo:
	@.ci/doctor $(@:doctor-%=%)

.PHONY: help build check test demo bench doctor run first-query schema rewrite e2e fuzz clean prepare demo-parts postgres store \
	$(CLIENTS) warm compatibility doctor-test doctor-demo
