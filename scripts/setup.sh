#!/usr/bin/env bash
# Installs the missing Debian packages that build, tests and demo need: by apt as root. Otherwise it
# names them in one line. Arguments are further packages.
set -euo pipefail
cd "$(dirname "$0")/.."

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
# Debian's psql and pgbench are wrappers, which may exist without the programs that they call.
# pgbench comes with the server.
need postgresql-client psql --version
need postgresql pgbench --version
need sysbench has sysbench
# The lab's tests start a MariaDB of their own: they need its programs, not the package that makes
# them a service.
need mariadb-server-core test -x /usr/sbin/mariadbd
need mariadb-client-core has my_print_defaults
need openssl has openssl
need procps type -P kill
need shellcheck has shellcheck
# Counts the system calls of a server under load.
need strace has strace
# Counts instructions of the hot paths.
need valgrind has valgrind
need python3 has python3
need python3-venv python3 -c 'import ensurepip'
is_installed() { dpkg-query -W -f '${Status}' "$1" | grep -q ' installed'; }
for package in "$@"; do
  need "$package" is_installed "$package"
done

if ((${#missing[@]})); then
  if [[ $(id -u) != 0 ]]; then
    echo "setup: please install these Debian packages first: ${missing[*]}" >&2
    exit 1
  fi
  echo "setup: installing ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq >/dev/null
  apt-get install -qq -y --no-install-recommends "${missing[@]}" >/dev/null
fi

# As root MariaDB runs as this user, which only the package of its service makes.
if [[ $(id -u) == 0 ]] && ! id mysql >/dev/null 2>&1; then
  useradd --system --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin mysql
fi

if ! command -v cargo >/dev/null; then
  if [[ $(id -u) != 0 ]]; then
    echo "setup: please install rustup first (Debian's package, or from its own site)" >&2
    exit 1
  fi
  apt-get install -qq -y --no-install-recommends rustup >/dev/null
fi

# The pinned toolchain may be installed under another name, such as stable: then it gets the pinned
# name too, and nothing is downloaded.
pinned=$(sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml)
# A probe must not download either: rustup 1.28 and later install a missing toolchain by themselves.
has_pinned() { RUSTUP_AUTO_INSTALL=0 cargo --version >/dev/null 2>&1; }
if command -v rustup >/dev/null && ! has_pinned; then
  for toolchain in "$(rustup show home)"/toolchains/*; do
    name=$(basename "$toolchain")
    host=${name#*-}
    if [[ $("$toolchain/bin/rustc" --version 2>/dev/null) == "rustc $pinned "* ]]; then
      echo "setup: $name is Rust $pinned and gets that name too"
      ln -sfn "$name" "$(dirname "$toolchain")/$pinned-$host"
      break
    fi
  done
  has_pinned || rustup toolchain install "$pinned" --profile minimal --component clippy --component rustfmt
fi
