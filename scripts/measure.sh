#!/usr/bin/env bash
# `make demo`, `make bench`, `make results`, `make mechanisms` and `make overhead`: calls of the lab
# (docs/lab.md).
#
#   scripts/measure.sh demo | bench | results | mechanisms | overhead
#
# All but the first take minutes to hours and want a quiet machine. POSTGRES names the folder of
# PostgreSQL 18's programs; without it the lab looks where distributions put them. bench and
# overhead build the ceiling, a server that does no work, from ../shared/peers/ceiling.c.
set -euo pipefail
cd "$(dirname "$0")/.."
lab="${CARGO_TARGET_DIR:-target}/release/allcore"
stored="${CARGO_TARGET_DIR:-target}/results"
bin="${POSTGRES:+bin=$POSTGRES }"
ulimit -n "$(ulimit -Hn)"

# Runs the lab. Its statuses 3 and 4 say that something is missing or that an interval stayed wide,
# which its report names.
bench() { "$lab" bench "$@" || [[ $? == [34] ]]; }

# Starts the ceiling; it ends with this script.
ceiling() {
    folder=$(mktemp -d)
    trap 'kill "$ceiling"; rm -rf "$folder"' EXIT
    cc -O2 -pthread -o "$folder/ceiling" ../shared/peers/ceiling.c
    "$folder/ceiling" "$folder" & ceiling=$!
    until [ -S "$folder/.s.PGSQL.5432" ]; do sleep 0.1; done
    ceiling_arm="ceiling=postgres://postgres@/bench?host=$folder"
}

# The three servers with so many megabytes of buffers each.
servers() {
    arms=(--arm "Allcore=serve:--buffers $1MiB --max-connections 1100"
        --arm "PostgreSQL 18=serve-postgres:${bin}shared_buffers=$1MB max_wal_size=8GB checkpoint_timeout=30min"
        --arm "MariaDB=serve-mariadb:innodb_buffer_pool_size=$1M innodb_log_file_size=2G")
}

demo() {
    arms=(--arm 'Allcore=serve:--buffers 1GiB')
    if [ -n "$bin" ] || command -v postgres /usr/lib/postgresql/*/bin/postgres > /dev/null; then
        arms+=(--arm "PostgreSQL=serve-postgres:${bin}shared_buffers=1GB max_wal_size=8GB checkpoint_timeout=30min")
    else
        echo "PostgreSQL's server programs are not installed here: Allcore alone"
    fi
    for load in "select-only -M prepared" "select-only -M simple" "tpcb-like -M prepared"; do
        # shellcheck disable=SC2086
        bench "${arms[@]}" -w $load --scale 10 --driver pgbench --clients 1,8,64,256 --warmup 1s --round 2s --rounds 1
    done
}

ceilings() {
    ceiling
    servers 2048
    for load in "select-only --scale 20 --clients 1,8,64,256,1000" "select-only --scale 20 -M simple --clients 64" \
        "simple-update --scale 20 --clients 64" "tpcb-like --scale 20 --clients 8,64,256" \
        "oltp_point_select --clients 64" "oltp_read_only --clients 64" "oltp_read_write --clients 64"; do
        # shellcheck disable=SC2086
        bench "${arms[@]}" -w $load --warmup 3s
        case $load in
        # The ceiling answers reads of one row.
        select-only* | oltp_point_select*)
            # shellcheck disable=SC2086
            bench --arm "$ceiling_arm" --as-is -w $load
            ;;
        esac
    done
}

# One workload: a file that is there is not measured again, so that this goes on where it was cut.
measure() {
    local name=$1 megabytes=$2
    shift 2
    runs+=("$stored/$name.json")
    [ ! -e "$stored/$name.json" ] || return 0
    servers "$megabytes"
    bench "${arms[@]}" "$@" --clients 1,4,16,64,256,1000 --warmup 3s --round 4s --width 5 --time 12m \
        --json "$stored/$name.part"
    mv "$stored/$name.part" "$stored/$name.json"
}

results() {
    mkdir -p "$stored"
    runs=()
    ALLCORE_COMMIT=$(built_from "$lab")
    export ALLCORE_COMMIT
    measure select-only 2048 -w select-only --scale 20
    measure tpcb 2048 -w tpcb-like --scale 20
    measure oltp_read_only 2048 -w oltp_read_only
    measure oltp_read_write 2048 -w oltp_read_write
    measure tpcc 2048 -w tpcc --scale 10 --tries 5
    measure eviction 256 -w select-only --scale 87
    "$lab" bench report "${runs[@]}" --markdown docs/results.md --plots docs/results
}

# The commit of a program's sources, for the stored runs; nothing without a repository. Refuses a
# program that is older than one of its sources.
built_from() {
    local program=$1 source sources tree changes
    read -ra sources <<< "$(cut -d: -f2- "$program.d")"
    for source in "${sources[@]}"; do
        [ ! "$source" -nt "$program" ] || { echo "$program is older than $source: build it again" >&2; exit 2; }
    done
    tree=$(git -C "$(dirname "$source")" rev-parse --show-toplevel 2> /dev/null) || return 0
    changes=$(git -C "$tree" status --porcelain -- crates Cargo.toml Cargo.lock)
    echo "$(git -C "$tree" rev-parse --short=12 HEAD)${changes:+, with changes that are not committed}"
}

# The engine with its own mechanisms, with them again, then with each variant, in buffers of so many
# megabytes. The arms are named for docs/mechanisms.md: pin stock for --variant pin=stock, and
# clock-hand batch 64 for --clock-sweep-batch 64.
variants() {
    local megabytes=$1 variant
    shift
    hooked="serve:bin=${CARGO_TARGET_DIR:-target}/variants/release --max-connections 1100 --buffers ${megabytes}MiB"
    arms=(--arm "allcore=$hooked" --arm "engine again=$hooked")
    for variant; do
        case $variant in
        clock-hand=batch-*) arms+=(--arm "clock-hand batch ${variant##*-}=$hooked --clock-sweep-batch ${variant##*-}") ;;
        *) arms+=(--arm "${variant/=/ }=$hooked --variant $variant") ;;
        esac
    done
}

# A workload of variants, with so many rounds: as in measure(), a file that is there is not measured
# again.
engine() {
    local name=$1 rounds=$2
    shift 2
    runs+=(--engine "$stored/$name.json")
    [ ! -e "$stored/$name.json" ] || return 0
    bench "${arms[@]}" "$@" --warmup 300ms --round 1s --rounds "$rounds" --json "$stored/$name.part"
    mv "$stored/$name.part" "$stored/$name.json"
}

# Gives the rows huge pages, where this is root: 64 in the kernel's pool, and transparent ones of
# shared memory by advice. Both settings are as before at the end of the script. Elsewhere the page
# names the arms that lack them.
huge_pages() {
    local pool=/proc/sys/vm/nr_hugepages shared=/sys/kernel/mm/transparent_hugepage/shmem_enabled
    if [ ! -w "$pool" ] || [ ! -w "$shared" ]; then
        echo "only root can reserve huge pages: the arms with them are not measured" >&2
        return
    fi
    pages_before=$(cat "$pool")
    advice_before=$(sed 's/.*\[\(.*\)\].*/\1/' "$shared")
    # shellcheck disable=SC2064 # the values of now
    trap "echo $pages_before > $pool; echo $advice_before > $shared" EXIT
    echo $((pages_before + 64)) > "$pool"
    echo advise > "$shared"
}

mechanisms() {
    stored+=/mechanisms
    mkdir -p "$stored"
    runs=()
    local commit_of_rows
    commit_of_rows=$(built_from "$lab")
    ALLCORE_COMMIT=$(built_from "${CARGO_TARGET_DIR:-target}/variants/release/allcore")
    export ALLCORE_COMMIT
    # Five rounds are the fewest whose interval comes from resampling. Three are for arms that
    # hardly run where all pages are resident, and for questions of many cells. The page names the
    # arms that hardly run. It knows eviction, small and small-writes as runs with larger data.
    local views=(pin=stock pin=step pin=published latch=stock latch=step latch=published)
    local misses=(clock-hand=stock clock-hand=published clock-hand=batch-64 free-queues=stock file-lock=stock)
    local others=(preload=stock pinned-memory=stock snapshot=stock title=stock socket=stock)
    variants 512 "${views[@]}" "${others[@]}"
    engine select-only 5 -w select-only --scale 10 --clients 1,8,64,256,1000
    engine tpcb 5 -w tpcb-like --scale 10 --clients 1,8,64,256,1000
    variants 512 "${misses[@]}"
    engine select-only-resident 3 -w select-only --scale 10 --clients 1,64,1000
    engine tpcb-resident 3 -w tpcb-like --scale 10 --clients 1,64,1000
    # The data are 4 times the buffers.
    variants 64 "${views[@]}" "${misses[@]}" "${others[@]}"
    engine eviction 5 -w select-only --scale 20 --clients 1,64,256,1000
    # A prepared statement does not ask for a relation's size.
    variants 512 relation-size=stock relation-size=published
    engine simple 5 -w select-only -M simple --scale 10 --clients 1,8,64,256,1000
    engine simple-tpcb 5 -w tpcb-like -M simple --scale 10 --clients 1,64,1000
    # The questions that G26 left open: batches of the hand in a small pool with many sessions, and
    # ordinary pages. The claims of the 4 workers are at most half the pool, so that batches of 256
    # need 16 MiB.
    variants 16 clock-hand=stock pinned-memory=stock clock-hand=batch-{1,8,64,256}
    engine small 3 -w select-only --scale 4 --clients 8,64,256,1000
    engine small-writes 3 -w simple-update --scale 4 --clients 64,256,1000
    if [ ! -e "$stored/rows.json" ]; then
        huge_pages
        ALLCORE_COMMIT=$commit_of_rows "$lab" bench mechanism --json "$stored/rows.part" > /dev/null
        mv "$stored/rows.part" "$stored/rows.json"
    fi
    rm -rf docs/mechanisms
    "$lab" bench mechanism --from "$stored/rows.json" "${runs[@]}" --markdown docs/mechanisms.md \
        --plots docs/mechanisms --html "$stored/page.html" > /dev/null
}

overhead() {
    ceiling
    bench --arm "$ceiling_arm" --as-is -w select-only --driver native,pgbench --clients 1,8,64,256 --rounds 5
    bench --arm "$ceiling_arm" --as-is -w select-only --clients 5000 --rounds 1
    postgres="PostgreSQL=serve-postgres:${bin}shared_buffers=2GB max_wal_size=8GB"
    for load in "select-only --driver native,pgbench --scale 1" "tpcb-like --driver native,pgbench --scale 20"; do
        # shellcheck disable=SC2086
        bench --arm "$postgres" -w $load --clients 8 --pin --awake --round 4s --rounds 40 --width 100
    done
}

case "${1:-}" in
demo | results | mechanisms | overhead) "$1" ;;
bench) ceilings ;;
*)
    sed -n '2,9s/^# \{0,1\}//p' "$0"
    exit 2
    ;;
esac
