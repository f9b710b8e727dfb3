#!/usr/bin/env bash
# Fuzzes one reader, or each, for a number of seconds: hunt.sh [READER] [SECONDS]. Finds lie in
# fuzz/artifacts. Installs cargo-fuzz into the target folder first.
set -euo pipefail
cd "$(dirname "$0")/.."
version=0.13.1
target=${CARGO_TARGET_DIR:-$PWD/target}
export PATH=$target/tools/bin:$PATH

if ! cargo +nightly --version >/dev/null 2>&1; then
  echo "skipped: fuzzing, because there is no nightly toolchain"
  exit
fi
if [[ $(cargo-fuzz --version 2>/dev/null) != "cargo-fuzz $version" ]]; then
  cargo install --quiet --locked --root "$target/tools" "cargo-fuzz@$version"
fi

readers=(copy log login node page statement undo wire)
seconds=60
for word in "$@"; do
  if [[ $word =~ ^[0-9]+$ ]]; then seconds=$word; else readers=("$word"); fi
done
for reader in "${readers[@]}"; do
  # New inputs go to a folder of their own: the corpus in the repository stays small.
  mkdir -p "$target/hunt/corpus/$reader"
  CARGO_TARGET_DIR=$target/hunt cargo +nightly fuzz run "$reader" \
    "$target/hunt/corpus/$reader" "fuzz/corpus/$reader" -- -max_total_time="$seconds"
done
