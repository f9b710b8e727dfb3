#!/usr/bin/env bash
# Formatting, clippy with warnings as errors, all tests. Ends with one line that counts the tests.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\n== %s\n' "$*"; }

step "formatting"
cargo fmt --all --check

step "clippy"
cargo clippy --workspace --all-targets --locked -- -D warnings

# Linux 6.18 starves the kernel's threads, direct writes' ends among them, beside busy autogroups (docs/operations.md).
autogroups=/proc/sys/kernel/sched_autogroup_enabled
if [[ $(uname -r) == 6.18.* && -w $autogroups && $(cat "$autogroups") == 1 ]]; then
  echo 0 >"$autogroups"
  trap 'echo 1 >"$autogroups"' EXIT
fi

step "unit, property and black-box tests"
# Test binaries are built whole before any runs; the servers of black-box tests want the cores for themselves.
cargo test --workspace --locked --no-run
log=${CARGO_TARGET_DIR:-target}/test.log
cargo test --workspace --locked --no-fail-fast -- --test-threads=2 2>&1 | tee "$log"

step "model checks"
make --no-print-directory loom 2>&1 | tee -a "$log"

# What could not be tried on this machine is said once more where it is seen.
grep -o 'skipped: .*' "$log" | sort -u || true
awk '/^test result:/ { passed += $4; failed += $6; ignored += $8 }
     END { printf "\n%d passed, %d failed, %d skipped\n", passed, failed, ignored }' "$log"
