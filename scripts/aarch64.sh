#!/usr/bin/env bash
# Builds the crates `sync`, `variants` and `storage` for 64-bit ARM and runs their tests under
# qemu's user-mode emulation. Installs what is missing: by apt as root, and the standard library by
# rustup. Not part of `make test`.
#
# On an x86-64 host the emulated threads keep that processor's strong memory order. So this shows
# that the code builds and computes right there; loom checks the orderings.
set -euo pipefail
cd "$(dirname "$0")/.."

target=aarch64-unknown-linux-gnu
scripts/setup.sh gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
if [[ ! -d $(rustc --print sysroot)/lib/rustlib/$target ]]; then
  rustup target add "$target"
fi

# This test starts ARM programs itself, which the kernel does only if it knows the emulator.
tests=(--lib --test parked --test short_log)
if [[ $(uname -m) == aarch64 || -e /proc/sys/fs/binfmt_misc/qemu-aarch64 ]]; then
  tests+=(--test kill)
else
  echo "skipped: storage's kills under emulation, because this kernel does not start ARM programs (binfmt_misc)"
fi

export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
if [[ $(uname -m) != aarch64 ]]; then
  # The first is for the tests, the second for the programs that a test starts.
  export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu"
  export QEMU_LD_PREFIX=/usr/aarch64-linux-gnu
fi
cargo test --locked --target "$target" -p sync -p variants --lib -- --test-threads=2
cargo test --locked --target "$target" -p storage "${tests[@]}" -- --test-threads=2
