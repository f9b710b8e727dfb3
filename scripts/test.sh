#!/usr/bin/env bash
# Installs what is missing, then runs all checks: formatting, lints, documents, tests, model checks,
# instruction counts. Says how long each step took, then counts the tests in the last line.
set -euo pipefail
cd "$(dirname "$0")/.."

steps=() current="" begun=0
end_step() { [[ -z $current ]] || steps+=("$(printf '%5d s  %s' $((SECONDS - begun)) "$current")"); }
step() {
  end_step
  current=$* begun=$SECONDS
  printf '\n== %s\n' "$*"
}
say_times() {
  end_step
  current=""
  printf '\n== time of each step\n'
  printf '%s\n' "${steps[@]}" "$(printf '%5d s  all' "$SECONDS")"
}

# Linux 6.18 starves the kernel's threads, direct writes' ends among them, beside busy autogroups
# (docs/operations.md).
autogroups=/proc/sys/kernel/sched_autogroup_enabled
restore_autogroups=""
if [[ $(uname -r) == 6.18.* && -w $autogroups && $(cat "$autogroups") == 1 ]]; then
  restore_autogroups=1
fi
declare -A beside=()
at_exit() {
  kill "${beside[@]}" 2>/dev/null || true
  [[ -z $current ]] || say_times
  [[ -z $restore_autogroups ]] || echo 1 >"$autogroups"
}
trap at_exit EXIT

target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target"
# A clean clone is built once: what speeds up a second build would cost time here. In one unit a
# crate has one copy of each inline function, and `query` is built in half the time.
if [[ ${CARGO_INCREMENTAL:-} == 0 || ! -d $target/debug/incremental ]]; then
  export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_CODEGEN_UNITS=1
fi

# Runs a command beside the steps. Its output goes to target/NAME.log.
run_beside() { # NAME COMMAND...
  "${@:2}" >"$target/$1.log" 2>&1 &
  beside[$1]=$!
}
# Waits for a command that runs beside, and prints its output.
end_beside() { # NAME
  local status=0
  wait "${beside[$1]}" || status=$?
  unset "beside[$1]"
  cat "$target/$1.log"
  return $status
}

step "setup"
scripts/setup.sh
# Debian's psql and pgbench are Perl scripts, which take longer than most statements of the tests.
programs=$(compgen -G '/usr/lib/postgresql/*/bin' | sort -V | tail -1 || true)
export PATH=${programs:+$programs:}$PATH
# Fetching waits for the network more than for the cores.
run_beside drivers scripts/drivers.sh

step "formatting"
cargo fmt --all --check
cargo fmt --manifest-path fuzz/Cargo.toml --check
# Fails if the fuzzer's lock file is stale.
cargo metadata --locked --format-version 1 --manifest-path fuzz/Cargo.toml >/dev/null

step "shellcheck"
shellcheck scripts/*.sh .ci/run

step "clippy"
RUSTC_WORKSPACE_WRAPPER=$PWD/scripts/lints-rustc.sh cargo check --workspace --all-targets --locked

step "documentation of the code"
# With examples cargo chooses the same features of libraries as for the tests, and checks them once.
RUSTC_WORKSPACE_WRAPPER=$PWD/scripts/lints-rustc.sh \
  RUSTDOCFLAGS="-D warnings -A rustdoc::private_intra_doc_links" \
  cargo doc --workspace --lib --bins --examples --no-deps --document-private-items --locked

step "lints and documentation of the model machine"
# A target folder of its own: the same crates with other lints would be checked anew in both.
# --cfg model goes by the lints' arguments, since clippy is itself the wrapper of the compiler. The
# step "the engine on the model machine" lints the simulation, for which this one would check the
# whole engine.
model=$target/model/lints
CARGO_INCREMENTAL=0 cargo clippy --locked -p sync -p runtime --target-dir "$model" -- -D warnings --cfg model
CARGO_INCREMENTAL=0 RUSTC_WORKSPACE_WRAPPER=$PWD/scripts/model-rustc.sh \
  RUSTDOCFLAGS="--cfg model -D warnings -A rustdoc::private_intra_doc_links" \
  cargo doc --locked -p sync -p runtime --no-deps --document-private-items --target-dir "$model"

step "lints of the variants on the engine's path"
# The lab is named for its features: with them libraries have those that the tests choose.
CARGO_INCREMENTAL=0 RUSTC_WORKSPACE_WRAPPER=$PWD/scripts/variants-rustc.sh \
  cargo check --locked --all-targets -p runtime -p storage -p txn -p sql -p allcore -p lab

step "building the tests"
# Test binaries are built whole before any runs; the servers of black-box tests want the cores for
# themselves.
cargo test --workspace --locked --no-run
end_beside drivers
[[ -z $restore_autogroups ]] || echo 0 >"$autogroups"

step "unit, property and black-box tests"
log=$target/test.log
# The tests often wait for a disk, a clock or a client. A build and the model checks get the time
# that they leave. The model machine's crates are built in turn, which also leaves a core idle.
run_beside release chrt --idle 0 cargo build --release --locked --bin allcore
run_beside loom chrt --idle 0 make --no-print-directory loom-engine
cargo test --workspace --locked --no-fail-fast -- --test-threads=2 2>&1 | tee "$log"

step "the engine on the model machine"
scripts/model.sh --seeds 5 --one-build 2>&1 | tee -a "$log"

step "libraries"
# Here `make deny` would first build its tool, which takes about 4 minutes of one core.
if [[ -x $target/tools/bin/cargo-deny ]]; then
  scripts/deny.sh 2>&1 | tee -a "$log"
else
  echo "skipped: the libraries' licences and sources, because make deny has not built its tool" | tee -a "$log"
fi

step "rest of the release build and of the model checks"
end_beside release
end_beside loom
cat "$target/loom.log" >>"$log"

step "instruction counts"
scripts/instructions.py --check docs/instructions.md 2>&1 | tee -a "$log"

# A last look at what this machine could not run. A test that skips its work counts as passed.
grep -o 'skipped: .*' "$log" | sort -u || true
say_times
awk '/skipped: / { lines += 1 }
     /^test result:/ { passed += $4; failed += $6; ignored += $8 }
     END { printf "\n%d passed, %d failed, %d ignored; \"skipped\" was said %d times\n",
                  passed, failed, ignored, lines }' "$log"
