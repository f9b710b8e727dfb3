#!/usr/bin/env bash
# The long checks: 500 kill -9 rounds, 10 minutes of mixed load in a pool a tenth of the data, then histories of clients at
# each isolation level, under kills, DDL and COPY, held against the level.
set -euo pipefail
cd "$(dirname "$0")/.."
ALLCORE_CRASH_ROUNDS=${ALLCORE_CRASH_ROUNDS:-500} \
  cargo test --release --locked -p allcore --test crash -- --nocapture killed_at_random_moments
ALLCORE_SOAK_SECONDS=${ALLCORE_SOAK_SECONDS:-600} \
  cargo test --release --locked -p allcore --test soak -- --nocapture --include-ignored
ALLCORE_HISTORY_SECONDS=${ALLCORE_HISTORY_SECONDS:-45} \
  cargo test --release --locked -p allcore --test history -- --nocapture --test-threads=1
