# The commands of a developer. `make test` and `make demo` install what they need themselves.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
export CARGO_TERM_PROGRESS_WHEN ?= auto

.PHONY: help build variants drivers test demo soak bombs answers bench results mechanisms model loom loom-engine fuzz interleave plans setup fmt overhead instructions conformance sqllogic isolation deny sanitize miri aarch64 hunt

help: ## This list
	@awk -F':.*## ' '/^[a-z0-9]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install the system packages that build and tests need
	@scripts/setup.sh

build: setup ## Build the release binary, target/release/allcore
	cargo build --release --locked --bin allcore

# The lints and tests go by a wrapper of the workspace's crates and share the libraries. The
# executable has a target folder of its own: there the flag goes to every crate, as loom's does.
HOOKED = RUSTC_WORKSPACE_WRAPPER="$(CURDIR)/scripts/variants-rustc.sh" cargo
VARIANTS = RUSTFLAGS="--cfg variants" CARGO_TARGET_DIR="$${CARGO_TARGET_DIR:-target}/variants" cargo
variants: setup ## Build target/variants/release/allcore, whose serve --variant runs what the engine replaced, lint and test it, and try each variant
	$(HOOKED) check --workspace --all-targets --locked
	$(HOOKED) test --locked -p variants -p runtime -p storage -p txn -p sql
	$(VARIANTS) build --release --locked --bin allcore
	@scripts/variants.py

fmt: ## Format the sources
	cargo fmt --all

drivers: ## Fetch the drivers the tests try, at pinned versions, and a browser
	@scripts/drivers.sh

test: ## Formatting, lints, documentation, all tests, and how long each step took
	@scripts/test.sh

demo: build ## pgbench against allcore (and PostgreSQL where installed), with a table at the end
	@scripts/measure.sh demo

model: setup ## The engine on the model machine: 200 transfers over 4 virtual cores on 100 seeds, from two builds; ARGS="--seeds 5 --one-build"
	@scripts/model.sh $(ARGS)

loom: loom-engine ## Model checks of the concurrent structures and of the published variants
	$(LOOM) -p variants --test loom_variants

# The part that `make test` runs: without the variants, which are in no server.
LOOM = RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR="$${CARGO_TARGET_DIR:-target}/loom" cargo test --locked --profile loom
loom-engine:
	$(LOOM) -p sync -p runtime -p storage -p txn --test loom --test loom_mail --test loom_tally --test loom_work --test loom_log --test loom_growth --test loom_frame --test loom_interrupt --test loom_announce --test loom_pieces --test loom_locks --test loom_weak --test loom_txids

soak: setup ## 500 crash rounds, 10 minutes of mixed load in a pool a tenth of the data, 3 of checked histories, 5 of damaged streams, the memory cases and the bombs in 1 GiB
	@scripts/soak.sh

bombs: setup ## Some 590 statements with long calls, texts or values, each cancelled within 100 ms beside select 1 within 20 ms
	ALLCORE_BOMBS=1 cargo test --release --locked -p allcore --test server bombs:: -- --nocapture --test-threads=1

fuzz: build ## Random statements on Allcore and PostgreSQL 18, compared (needs ../shared); ARGS="--seed 1 --rounds 200"
	@scripts/fuzz.py $(ARGS)

answers: setup ## Random queries, each by every plan that settings can force, and on PostgreSQL 18 (needs ../shared), 10 minutes
	ALLCORE_PLANS_SEED=$${ALLCORE_PLANS_SEED:-$$(date +%s)} ALLCORE_PLANS_SECONDS=$${ALLCORE_PLANS_SECONDS:-600} ALLCORE_PLANS_PEER=1 \
	  cargo test --release --locked -p allcore --test server same_rows:: -- --nocapture

interleave: build ## Random interleavings of sessions on Allcore and PostgreSQL 18, compared (needs ../shared); ARGS="--sessions 3"
	@scripts/interleave.py $(ARGS)

plans: build ## Statements by class on Allcore and PostgreSQL 18, timed and compared, about 40 minutes (needs ../shared); ARGS="--class skip"
	@scripts/plans.py $(ARGS)

conformance: build ## PostgreSQL 18's regression files and sqllogictest's kinds on both servers, compared (needs ../shared); ARGS="boolean int4" names files alone
	@scripts/conformance.py $(ARGS)
	@[ -n "$(ARGS)" ] || scripts/sqllogic.py

sqllogic: build ## Statements in sqllogictest's families on both servers, compared (needs ../shared); ARGS="--kind random --rounds 50" or "--corpus FOLDER"
	@scripts/sqllogic.py $(ARGS)

isolation: build ## PostgreSQL 18's isolation specs, played by its isolationtester; ARGS="--all" or names of specs
	@scripts/isolation.py $(ARGS)

sanitize: ## Unit tests of the lower crates under the address and the thread sanitizer (needs nightly)
	@scripts/sanitize.sh

miri: ## Tests without system calls of ours under miri (needs nightly with its component miri)
	@scripts/miri.sh

aarch64: ## Unit tests of sync, variants and storage for 64-bit ARM, under emulation, about 8 minutes
	@scripts/aarch64.sh

hunt: ## Fuzz the readers of hostile bytes, 60 seconds each (needs nightly); ARGS="wire 600"
	@scripts/hunt.sh $(ARGS)

deny: setup ## Licences, sources and duplicates of the libraries; advisories where their database is in reach
	@scripts/deny.sh

instructions: build ## Instructions of the server on five hot paths; ARGS="--baseline BINARY --limit 1.01"
	@scripts/instructions.py $(ARGS)

bench: build ## The figures: side by side with PostgreSQL 18, MariaDB and the ceiling (needs ../shared)
	@scripts/measure.sh bench

results: build ## docs/results.md: the lab's full comparison with plots, about 80 minutes; goes on where it was cut
	@scripts/measure.sh results

mechanisms: build ## docs/mechanisms.md: each published mechanism beside what it replaced, alone and on the engine, an estimated 75 minutes on a quiet machine
	$(VARIANTS) build --release --locked --bin allcore
	@scripts/measure.sh mechanisms

overhead: build ## The cost of the lab's own driver beside pgbench, about 30 minutes (as root; needs ../shared)
	@scripts/measure.sh overhead
