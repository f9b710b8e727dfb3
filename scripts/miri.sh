#!/usr/bin/env bash
# Runs tests that need no system calls of ours under miri, which finds undefined behaviour. Names
# the component where this machine lacks it. Not part of `make test`.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! cargo +nightly miri --version >/dev/null 2>&1; then
  echo "skipped: miri, because nightly lacks the component miri"
  exit
fi
# The crate's property tests would take hours with their usual number of cases.
export MIRIFLAGS="-Zmiri-disable-isolation" PROPTEST_CASES=2
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}/miri
log=$(mktemp)
trap 'rm -f "$log"' EXIT

interpret() { # CRATE, then the modules whose tests run; an error where a module has none
  local crate=$1 module
  shift
  echo "== $crate: $*"
  cargo +nightly miri test --locked -p "$crate" --lib -- "$@" 2>&1 | tee "$log"
  for module in "$@"; do
    if ! grep -q "^test $module.* ok$" "$log"; then
      echo "miri: no test of $crate passed in $module" >&2
      exit 1
    fi
  done
}

interpret sync racy:: version:: spin:: spinners:: wait::
interpret storage page:: bitmap:: node::
interpret txn version:: undo:: log_undo::
