#!/usr/bin/env bash
# Installs the Debian packages that build, tests and demo need, where they are missing: by apt when root, else it
# names them in one line.
set -euo pipefail

missing=()
need() { # PACKAGE, then a test that tells whether it is there
  local package=$1
  shift
  "$@" >/dev/null 2>&1 || missing+=("$package")
}
has() { command -v "$1"; }
libclang() { compgen -G '/usr/lib/llvm-*/lib/libclang*.so*' | grep -v cpp || compgen -G '/usr/lib/*/libclang*.so*' | grep -v cpp; }

need build-essential has cc
need libclang-dev libclang
need postgresql-client has psql
need postgresql-contrib has pgbench
need sysbench has sysbench
need openssl has openssl
need python3 has python3

if ((${#missing[@]})); then
  # pgbench is packaged with the server in Debian.
  packages=("${missing[@]/postgresql-contrib/postgresql}")
  if [[ $(id -u) != 0 ]]; then
    echo "setup: please install these Debian packages first: ${packages[*]}" >&2
    exit 1
  fi
  echo "setup: installing ${packages[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq >/dev/null
  apt-get install -qq -y --no-install-recommends "${packages[@]}" >/dev/null
fi

if ! command -v cargo >/dev/null; then
  if [[ $(id -u) != 0 ]]; then
    echo "setup: please install Rust $(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml) or newer (rustup, or Debian's rustup package)" >&2
    exit 1
  fi
  apt-get install -qq -y --no-install-recommends rustup >/dev/null && rustup default stable
fi
