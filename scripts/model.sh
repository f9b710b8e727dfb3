#!/usr/bin/env bash
# Runs the engine on the model machine, each seed several times, and compares the hashes of the
# events.
#
# A wrapper of the compiler builds the workspace's crates with --cfg model and lints the simulation.
# Cargo uses it for them alone, so they share the libraries of the ordinary build. A second build,
# of a copy of the sources in another folder, shows that no path and no address gets into a run. Two
# runs with a fault must fail: the checks work. Two more count the cache lines that a transaction
# takes from other cores, and fail if these are too many.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  echo "usage: scripts/model.sh [--seeds N] [--first SEED] [--one-build] [--jobs N]"
  echo "  --seeds N      number of seeds (100)"
  echo "  --first SEED   the first of them (1)"
  echo "  --one-build    no second build: each seed runs twice from the first"
  echo "  --jobs N       number of runs at the same time (the number of processors)"
}

seeds=100 first=1 builds=2 jobs=$(nproc)
while (($#)); do
  case $1 in
  --seeds) seeds=$2 && shift ;;
  --first) first=$2 && shift ;;
  --one-build) builds=1 ;;
  --jobs) jobs=$2 && shift ;;
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
# in between would take the program's place: its runs then fail with status 2. The crates of the lab
# and of the program are named for their features, and nothing of them is built. With them cargo
# chooses the same features of libraries as for all tests, and uses the build of those. The machine
# itself takes most of a run; the rest is built in a third of the time without optimization.
build() {
  (
    cd "$1"
    export RUSTC_WORKSPACE_WRAPPER=$PWD/scripts/model-rustc.sh CARGO_INCREMENTAL=0
    cargo build --quiet --locked -p simulation -p lab -p allcore --bin allcore-model --examples \
      --config profile.dev.opt-level=0 --config profile.dev.package.runtime.opt-level=1 \
      --config profile.dev.package.sync.opt-level=1 --target-dir "$target"
  )
  cp "$target/debug/allcore-model" "$results/allcore-model-$2"
}

# Runs a seed with each program. Prints the line that all of them print.
run_seed() {
  local told="" now program
  for program in "${programs[@]}"; do
    now=$(timeout "$limit" "$program" --seed "$1")
    if [[ -n $told && $told != "$now" ]]; then
      printf 'seed %s is not the same twice:\n  %s\n  %s\n' "$1" "$told" "$now" >&2
      exit 1
    fi
    told=$now
  done
  printf '%s\n' "$told"
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

# Begins a run beside the others. The oldest ends first where too many are under way.
begin() {
  if ((${#under_way[@]} >= jobs)); then
    end_oldest
  fi
  "${@:2}" >"$output/$1" &
  under_way+=("$! $1")
}

# Waits for the oldest run and prints its output. Its failure ends the script.
end_oldest() {
  local process name
  read -r process name <<<"${under_way[0]}"
  under_way=("${under_way[@]:1}")
  wait "$process"
  tee -a "$results/hashes.txt" <"$output/$name"
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

# Counts cache lines with this number of cores.
count_lines() {
  timeout "$limit" "$results/allcore-model-1" --lines --cores "$1" >"$results/lines-$1.txt"
}

output=$results/output
rm -rf "$output"
mkdir "$output"
: >"$results/hashes.txt"
under_way=()
begin sum expect_failure sum "money was made or lost"
begin spin expect_failure spin "while no other ran"
begin lines-4 count_lines 4
begin lines-16 count_lines 16
for ((seed = first; seed < first + seeds; seed++)); do
  begin "$seed" run_seed "$seed"
done
while ((${#under_way[@]})); do
  end_oldest
done
echo "$seeds seeds, ${#programs[@]} runs each from $builds build(s): the same events (target/model/hashes.txt)"
echo "2 runs with a fault failed as they must"
echo "cache lines of a transaction with 4 and 16 cores: within bounds (target/model/lines-4.txt)"
