#!/usr/bin/env bash
# Unit tests of the crates with unsafe code, and of `txn` above them, under the sanitizers of the
# nightly compiler. Names what this machine lacks. Not part of `make test`.
set -euo pipefail
cd "$(dirname "$0")/.."
host=$(rustc -vV | sed -n 's/^host: //p')
into=${CARGO_TARGET_DIR:-$PWD/target}/sanitize

if ! cargo +nightly --version >/dev/null 2>&1; then
  echo "skipped: sanitizers, because there is no nightly toolchain"
  exit
fi

sanitized() { # NAME, FLAGS for the compiler, then arguments for cargo
  local name=$1 flags=$2
  shift 2
  RUSTFLAGS=$flags CARGO_TARGET_DIR=$into/$name \
    cargo +nightly test --locked --lib --target "$host" "$@" -- --test-threads=2
}

# A fiber that never ends is left behind by design, and its memory with it.
export ASAN_OPTIONS=detect_leaks=0
sanitized address -Zsanitizer=address -p sync
sanitized address -Zsanitizer=address -p runtime --features sanitizer
for crate in storage txn; do
  sanitized address -Zsanitizer=address -p "$crate" --features runtime/sanitizer
done

# Without a standard library built for it, the thread sanitizer reports the library's own locks. It
# follows no fibers, so `sync` alone runs under it.
if [[ -d $(rustc +nightly --print sysroot)/lib/rustlib/src/rust/library ]]; then
  sanitized thread -Zsanitizer=thread -Zbuild-std -p sync
else
  echo "skipped: the thread sanitizer, because nightly lacks the component rust-src"
fi
