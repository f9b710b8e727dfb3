#!/usr/bin/env bash
# The long checks: 500 kill -9 rounds, and 10 minutes of mixed load in a pool a tenth of the data.
# Then histories of clients under kills, DDL and COPY, checked against each isolation level, and 5
# minutes of damaged streams. Last, in 1 GiB, statements that want more memory than there is, and
# long statements that are cancelled.
set -euo pipefail
cd "$(dirname "$0")/.."
tests=(cargo test --release --locked -p allcore --test server)
ALLCORE_CRASH_ROUNDS=${ALLCORE_CRASH_ROUNDS:-500} \
  "${tests[@]}" -- --nocapture crash::killed_at_random_moments
ALLCORE_SOAK_SECONDS=${ALLCORE_SOAK_SECONDS:-600} \
  "${tests[@]}" -- --nocapture --include-ignored soak::
ALLCORE_HISTORY_SECONDS=${ALLCORE_HISTORY_SECONDS:-45} \
  "${tests[@]}" -- --nocapture --test-threads=1 history::
ALLCORE_FUZZ_SECONDS=${ALLCORE_FUZZ_SECONDS:-300} "${tests[@]}" -- --nocapture wire_fuzz::

# A control group that may have 1 GiB, of version 2 or 1; prints its folder.
group_of_1_gib() {
  local root=/sys/fs/cgroup name=allcore-soak.$$
  if grep -qw memory "$root/cgroup.controllers" 2>/dev/null; then
    echo +memory >"$root/cgroup.subtree_control" || return 1
    mkdir "$root/$name" && echo "$root/$name" && echo 1G >"$root/$name/memory.max" &&
      { [ ! -e "$root/$name/memory.swap.max" ] || echo 0 >"$root/$name/memory.swap.max"; }
  elif [ -d "$root/memory" ]; then
    # Memory and swap together, if swap is counted, cannot be less than memory, so memory is set
    # first.
    mkdir "$root/memory/$name" && echo "$root/memory/$name" &&
      echo 1073741824 >"$root/memory/$name/memory.limit_in_bytes" &&
      { [ ! -e "$root/memory/$name/memory.memsw.limit_in_bytes" ] ||
        echo 1073741824 >"$root/memory/$name/memory.memsw.limit_in_bytes"; }
  else
    return 1
  fi
}
limited_cases() {
  "${tests[@]}" -- --nocapture --test-threads=1 --include-ignored bounds:: memory::
  ALLCORE_BOMBS=small "${tests[@]}" -- --nocapture --test-threads=1 bombs::
}
if group=$(group_of_1_gib 2>/dev/null); then
  echo "the memory cases and the bombs run in $group, which may have 1 GiB"
  trap 'rmdir "$group" || true' EXIT
  (
    echo "$BASHPID" >"$group/cgroup.procs"
    limited_cases
  )
else
  [ -z "${group:-}" ] || rmdir "$group"
  echo "no control group can be made here: the tests watch the servers' peak of resident memory alone"
  limited_cases
fi
