# Two commands are enough: `make run` and `make test`. Everything else is `cargo` and `cargo xtask`.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
THRUM := $(TARGET)/release/thrum
QUICK := $(TARGET)/quick/thrum

# Each step of `test` needs the one before it.
.NOTPARALLEL:

.PHONY: help
help: ## what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /make \1\t/' | expand -t 16

PAGES := dashboard/dist/site/index.html
PAGE_SOURCES := $(wildcard dashboard/*.*) $(shell find dashboard/public dashboard/scripts dashboard/src -type f ! -name schema.d.ts)

.PHONY: dashboard
dashboard: $(PAGES) ## the pages that the program contains; without Node it has one plain page

# The program is built without them, too: whoever has no Node or no network needs a broker all the same.
$(PAGES): $(PAGE_SOURCES)
	dashboard/build.sh || { rm -rf dashboard/dist/site; \
	echo "The dashboard was not built, for the reason above: the program will have one plain page instead." >&2; }

.PHONY: build
build: dashboard ## the release binary, target/release/thrum
	cargo build --release --package thrum

.PHONY: quick
quick: dashboard ## the same program in less than half the time, target/quick/thrum
	cargo build --profile quick --package thrum

.PHONY: run
run: quick ## a broker for experiments on this machine
	exec $(QUICK) serve --dev

.PHONY: check
check: ## format, lints, repository rules, conformance coverage
	cargo xtask check

.PHONY: counts
counts: ## instructions per operation of the hot path, against docs/performance
	cargo xtask counts

.PHONY: setup
setup: ## install what the tests need and this machine lacks
	scripts/setup-tests.sh

# Everything is built once, in the profile `gate`: the program under test, the tests and the tools. Then xtask runs all
# suites, several side by side, and the checks of the repository beside them.
# Property tests make the same choices in each run; `night` makes others.
GATE := cargo test --profile gate --workspace

.PHONY: test
test: export PROPTEST_RNG_SEED ?= 1
test: setup dashboard ## every check and every test
	cargo fmt --all --check
	cargo run --quiet --profile gate --package xtask -- counts
	cargo run --quiet --profile gate --package xtask -- test

.PHONY: browser
browser: dashboard ## tests of the dashboard in chromium with a real broker, and what it costs the browser
	cargo build --profile gate --package thrum
	THRUM_BIN=$(TARGET)/gate/thrum dashboard/e2e.sh pages
	THRUM_BIN=$(TARGET)/gate/thrum dashboard/e2e.sh budgets

PURE := codec protocol routing access storage
# Inputs that proptest rejects count for the whole test: more cases need a higher limit.
MANY_CASES = PROPTEST_CASES=$(or $(CASES),20000) PROPTEST_MAX_LOCAL_REJECTS=1000000000

NIGHT_SEEDS = $(or $(SEEDS),1000..1000000)

.PHONY: night
night: build ## random seeds: property tests (CASES=20000), kills (LIVES=500), simulated crashes (SEEDS=from..to); parts, deny, mutants
	settings="PROPTEST_RNG_SEED=$${PROPTEST_RNG_SEED:-$$RANDOM$$RANDOM} $(MANY_CASES)"; echo "$$settings"; \
	env $$settings cargo test --profile gate $(PURE:%=-p thrum-%)
	THRUM_BIN=$(THRUM) THRUM_CRASH_SEED=$${THRUM_CRASH_SEED:-random} THRUM_CRASH_KILLS=$(or $(LIVES),500) \
	$(GATE) --test kill --test power --test storm --test faults
	THRUM_SIM_SEEDS=$(NIGHT_SEEDS) $(GATE) --lib simulation
	THRUM_STORAGE_SEEDS=$(NIGHT_SEEDS) $(GATE) --test store
	$(MAKE) parts deny mutants

# As the features of crates/thrum/Cargo.toml.
PARTS := bench http-auth ldap management png quic redis sql tui

.PHONY: parts
parts: ## the program with each of its parts alone, and the tests of the one without any
	for part in $(PARTS); do \
	cargo clippy --profile gate --package thrum --no-default-features --features $$part -- -D warnings; done
	cargo test --profile gate --no-default-features --package thrum --package thrum-auth --package thrum-quic

.PHONY: deny
deny: ## licences, sources and duplicate versions of the dependencies; builds cargo-deny if it is missing
	cargo deny --version || cargo install --locked cargo-deny@0.20.2
	cargo deny check bans licenses sources

# Crates whose own tests are to notice when a line of them changes.
MUTATED := codec protocol routing access protection storage engine

.PHONY: mutants
mutants: export PROPTEST_RNG_SEED ?= 1
mutants: ## a random sample of small changes of the code, each to be noticed by the crate's own tests (SAMPLE=40, SEED)
	cargo mutants --version || cargo install --locked cargo-mutants@27.1.0
	cargo run --quiet --profile gate --package xtask -- mutants --sample $(or $(SAMPLE),40) \
	--seed $(or $(SEED),$$RANDOM$$RANDOM) $(MUTATED)

.PHONY: million
million: build ## a million connections in one process (not part of test: 13 GiB, 20 minutes)
	THRUM_BIN=$(THRUM) tests/million/run.sh
