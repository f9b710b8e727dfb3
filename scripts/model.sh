#!/usr/bin/env bash
# Runs the engine on the model machine, each seed several times, and compares the hashes of the
# events.
#
# A wrapper of the compiler builds the workspace's crates with --cfg model. Cargo uses it for them
# alone, so they share the libraries of the ordinary build. A second build, of a copy of the sources
# in another folder, shows that no path and no address gets into a run.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  echo "usage: scripts/model.sh [--seeds N] [--first SEED] [--one-build]"
  echo "  --seeds N      number of seeds (100)"
  echo "  --first SEED   the first of them (1)"
  echo "  --one-build    no second build: each seed runs twice from the first"
}

seeds=100 first=1 builds=2
while (($#)); do
  case $1 in
  --seeds) seeds=$2 && shift ;;
  --first) first=$2 && shift ;;
  --one-build) builds=1 ;;
  --help) usage && exit ;;
  *) usage >&2 && exit 2 ;;
  esac
  shift
done

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
results=$target/model
mkdir -p "$results"

# Builds the sources in a folder and keeps the program under this number.
build() {
  (
    cd "$1"
    export RUSTC_WORKSPACE_WRAPPER=$PWD/scripts/model-rustc.sh CARGO_TARGET_DIR=$target
    cargo build --quiet --locked -p simulation
  )
  cp "$target/debug/allcore-model" "$results/allcore-model-$2"
}

build . 1
programs=("$results/allcore-model-1" "$results/allcore-model-1")
if ((builds == 2)); then
  copy=$(mktemp -d)
  trap 'rm -rf "$copy"' EXIT
  git ls-files -z | xargs -0 cp --parents -t "$copy"
  build "$copy" 2
  programs+=("$results/allcore-model-2")
fi

: >"$results/hashes.txt"
for ((seed = first; seed < first + seeds; seed++)); do
  told=""
  for program in "${programs[@]}"; do
    now=$("$program" --seed "$seed")
    if [[ -n $told && $told != "$now" ]]; then
      printf 'seed %s is not the same twice:\n  %s\n  %s\n' "$seed" "$told" "$now" >&2
      exit 1
    fi
    told=$now
  done
  printf '%s\n' "$told" | tee -a "$results/hashes.txt"
done
echo "$seeds seeds, ${#programs[@]} runs each from $builds build(s): the same events (target/model/hashes.txt)"
