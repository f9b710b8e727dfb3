#!/usr/bin/env bash
# Runs the engine on the model machine, each seed several times, and compares the hashes of the
# events.
#
# A wrapper of the compiler builds the workspace's crates with --cfg model. Cargo uses it for them
# alone, so they share the libraries of the ordinary build. A second build, of a copy of the sources
# in another folder, shows that no path and no address gets into a run. In the end two runs with a
# fault must fail: the checks work.
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

# A run takes about a second of CPU time.
limit="300s"
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
results=$target/model
mkdir -p "$results"

# Builds the sources in a folder and keeps the program under this number. A build without the model
# in between would take the program's place: its runs then fail with status 2.
build() {
  (
    cd "$1"
    export RUSTC_WORKSPACE_WRAPPER=$PWD/scripts/model-rustc.sh CARGO_INCREMENTAL=0
    cargo build --quiet --locked -p simulation --target-dir "$target"
  )
  cp "$target/debug/allcore-model" "$results/allcore-model-$2"
}

# Runs the first program with a fault: it must fail as a fault of the engine does, with this text.
expect_failure() {
  local status=0 said
  said=$(timeout "$limit" "$results/allcore-model-1" --seed "$first" --fault "$1" 2>&1) || status=$?
  if ((status != 70)) || [[ $said != *"$2"* ]]; then
    printf 'the fault "%s" ends with status %s and not with 70:\n%s\n' "$1" "$status" "$said" >&2
    exit 1
  fi
}

build . 1
programs=("$results/allcore-model-1" "$results/allcore-model-1")
if ((builds == 2)); then
  copy=$results/copy
  rm -rf "$copy"
  mkdir "$copy"
  git ls-files -z --cached --others --exclude-standard | xargs -0 cp -p --parents -t "$copy"
  build "$copy" 2
  programs+=("$results/allcore-model-2")
fi

: >"$results/hashes.txt"
for ((seed = first; seed < first + seeds; seed++)); do
  told=""
  for program in "${programs[@]}"; do
    now=$(timeout "$limit" "$program" --seed "$seed")
    if [[ -n $told && $told != "$now" ]]; then
      printf 'seed %s is not the same twice:\n  %s\n  %s\n' "$seed" "$told" "$now" >&2
      exit 1
    fi
    told=$now
  done
  printf '%s\n' "$told" | tee -a "$results/hashes.txt"
done
expect_failure sum "money was made or lost"
expect_failure spin "while no other ran"
echo "$seeds seeds, ${#programs[@]} runs each from $builds build(s): the same events (target/model/hashes.txt)"
echo "2 runs with a fault failed as they must"
