#!/usr/bin/env bash
# Runs tests that need no system calls of ours under miri, which finds undefined behaviour. Names
# the component where this machine lacks it. Not part of `make test`.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! cargo +nightly miri --version >/dev/null 2>&1; then
  echo "skipped: miri, because nightly lacks the component miri"
  exit
fi
export MIRIFLAGS="-Zmiri-disable-isolation"
cargo +nightly miri test --locked -p sync --lib
cargo +nightly miri test --locked -p storage --lib page:: entry:: bitmap:: btree::node::
cargo +nightly miri test --locked -p txn --lib version:: announce::
