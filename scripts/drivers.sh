#!/usr/bin/env bash
# Fetches into target/drivers the drivers that crates/allcore/tests/server/drivers.rs tries, at the
# versions pinned beside their checks, and the browser that looks at the lab's report. The script
# names what it cannot get, and the test of that driver says that it is skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
checks=$PWD/crates/allcore/tests/drivers into=${CARGO_TARGET_DIR:-$PWD/target}/drivers
log=$into/log
mkdir -p "$into"

has() { command -v "$1" >/dev/null; }

# Arguments: NAME, the files it is made from, the command that makes it. Does nothing if it was made
# from the same files before.
prepare() {
  local name=$1 sources=$2 stamp
  shift 2
  # shellcheck disable=SC2086 # several files, divided by spaces
  stamp=$(cd "$checks" && cat $sources | sha256sum)
  [[ -f $into/$name.ready && $(<"$into/$name.ready") == "$stamp" ]] && return
  rm -f "$into/$name.ready"
  echo "drivers: fetching those for $name"
  if "$@" >"$log" 2>&1; then
    echo "$stamp" >"$into/$name.ready"
  else
    echo "drivers: could not be had for $name, its test will be skipped: $(tail -n 1 "$log")"
  fi
}

python() {
  python3 -m venv "$into/python"
  "$into/python/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: -r "$checks/requirements.txt"
}
node() {
  mkdir -p "$into/node"
  cp "$checks"/node/package*.json "$into/node"
  npm ci --silent --prefix "$into/node"
}
go_() { (cd "$checks/go" && go build -o "$into/go" .); }
java_() {
  mvn -q -B dependency:copy -Dartifact=org.postgresql:postgresql:42.7.7 -DoutputDirectory="$into/java" -Dmdep.stripVersion &&
    javac -cp "$into/java/postgresql.jar" -d "$into/java" "$checks/java/Check.java"
}

prepare python requirements.txt python
if has npm; then prepare node "node/package.json node/package-lock.json" node; else echo "drivers: no npm here, node's driver is not tested"; fi
if has go; then prepare go "go/go.mod go/go.sum go/main.go" go_; else echo "drivers: no go here, its drivers are not tested"; fi
if has mvn && has javac; then prepare java java/Check.java java_; else echo "drivers: no mvn and javac here, JDBC is not tested"; fi

browser() {
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium
}
if ! has chromium && ! has chromium-browser && ! has google-chrome; then
  if [[ $(id -u) == 0 ]] && has apt-get; then
    echo "drivers: installing chromium"
    browser >"$log" 2>&1 || echo "drivers: chromium could not be had, its tests will be skipped: $(tail -n 1 "$log")"
  else
    echo "drivers: no chromium here, the lab's report is not looked at in a browser; install Debian's package chromium"
  fi
fi
