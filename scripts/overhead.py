#!/usr/bin/env python3
"""`make overhead`: what the lab's own driver costs, beside pgbench and sysbench, on a quiet machine about 40 minutes.

  scripts/overhead.py [--only cost,many,agree] [--rounds 5] [--seconds 5] [--pairs 40] [--clients 8] [--postgres FOLDER]

cost: transactions of select-only for each second of the client's CPU time against a server that does no work (the
ceiling of ../shared), the native driver and pgbench taking turns. many: 5,000 connections of the native driver to it.
agree: one server's throughput as the native driver, pgbench and sysbench measure it, in turns, with cores of its own: a
driver that took less of the server's would else find it faster. CPUs are kept awake, which needs root: on a virtual machine
the server pays for waking one that sleeps, and a driver that does less sleeps more often. Rounds are many, since the
server's own speed drifts by more than the drivers differ: only rounds next to each other can be compared.
"""
import argparse, functools, json, os, re, resource, shutil, statistics, subprocess, sys, tempfile, time
from peers import HERE, SHARED, TARGET, postgres_programs, run, say

BINARY = os.path.join(TARGET, "release", "allcore")
PARTS = ["cost", "many", "agree"]


class Ceiling:
    """The server that does no work."""

    def __init__(self, folder):
        self.host = f"{folder}/socket"
        run("cc", "-O2", "-pthread", "-o", f"{folder}/ceiling", os.path.join(SHARED, "peers", "ceiling.c"))
        self.process = subprocess.Popen([f"{folder}/ceiling", self.host], preexec_fn=many_descriptors)
        while not os.path.exists(f"{self.host}/.s.PGSQL.5432"):
            if self.process.poll() is not None:
                sys.exit(f"overhead: the ceiling ended at its start (status {self.process.returncode})")
            time.sleep(0.1)

    def stop(self):
        self.process.kill()
        self.process.wait()


def many_descriptors():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


@functools.cache
def lab_tests():
    """The lab's test program, in which the native driver can be run on a server that knows nothing of what the lab asks
    of one at first."""
    say("building")
    lines = run("cargo", "test", "--release", "--locked", "-p", "lab", "--lib", "--no-run", "--message-format", "json",
                cwd=HERE)
    programs = [built["executable"] for line in lines.splitlines() if (built := json.loads(line)).get("executable")]
    return programs[-1]


def native(program, host, clients, args):
    """Transactions a second, and for each second of the client's CPU time, as the driver counts them."""
    said = run(program, "--ignored", "--nocapture", "real::figures", env={
        **os.environ, "LAB_TEST_POSTGRES": f"postgres://postgres@/bench?host={host}", "LAB_FIGURES": str(clients),
        "LAB_FIGURES_SECONDS": str(args.seconds)})
    found = re.search(r"clients: (\d+) tps, (\d+) per CPU second .* lost None", said)
    if not found:
        sys.exit(f"overhead: {clients} clients of the native driver measured nothing\n{said}")
    return float(found[1]), float(found[2])


def pgbench(host, clients, args):
    """The same of pgbench, with as many threads; the CPU time is the whole process's."""
    spent = lambda: sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    before = spent()
    said = run("pgbench", "-h", host, "-U", "postgres", "-n", "-S", "-M", "prepared", "-c", str(clients), "-j",
               str(min(len(os.sched_getaffinity(0)), clients)), "-T", str(args.seconds), "bench")
    done = int(re.search(r"actually processed: (\d+)", said)[1])
    return float(re.search(r"^tps = ([\d.]+)", said, re.M)[1]), done / (spent() - before)


def cost(ceiling, args):
    program = lab_tests()
    print("| clients | native, tps | pgbench, tps | native, tps per client CPU second | pgbench | ratio |")
    print("|---:|---:|---:|---:|---:|---:|")
    for clients in [1, 8, 64, 256]:
        seen = []
        for turn in range(args.rounds):
            say(f"{clients} clients, round {turn + 1} of {args.rounds}")
            first = native(program, ceiling.host, clients, args)
            seen.append((*first, *pgbench(ceiling.host, clients, args)))
        mid = [statistics.median(column) for column in zip(*seen)]
        ratios = sorted(one[1] / one[3] for one in seen)
        print(f"| {clients:,} | {mid[0]:,.0f} | {mid[2]:,.0f} | {mid[1]:,.0f} | {mid[3]:,.0f} | "
              f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}) |", flush=True)
    print()


def many(ceiling, args):
    tps, per_second = native(lab_tests(), ceiling.host, 5000, args)
    print(f"5,000 connections at once: {tps:,.0f} tps, {per_second:,.0f} per client CPU second, none lost\n", flush=True)


def agree(folder, args):
    arm = f"pg18=serve-postgres:bin={postgres_programs(args.postgres)} shared_buffers=2GB max_wal_size=8GB"
    print("| workload | clients | native, tps | other driver | its tps | ratio |")
    print("|---|---:|---:|---|---:|---:|")
    for other, workload, more in [
        ("pgbench", "select-only", ["--scale", "1"]),
        ("pgbench", "tpcb-like", ["--scale", "20"]),
        ("sysbench", "oltp_read_only", ["--table-size", "10000"]),
        ("sysbench", "oltp_read_write", ["--table-size", "10000"]),
    ]:
        say(f"native and {other}, {workload}")
        stored = f"{folder}/{workload}.json"
        run(BINARY, "bench", "--arm", arm, "-w", workload, *more, "--driver", f"native,{other}", "--clients",
            args.clients, "--pin", "--awake", "--round", "4s", "--rounds", str(args.pairs), "--width", "100", "--json", stored)
        with open(stored) as file:
            points = json.load(file)["points"]
        for clients in sorted({point["clients"] for point in points}):
            native, second = (point for point in points if point["clients"] == clients)
            ratio = second["ratio"]
            print(f"| {workload} | {clients} | {native['tps']['value']:,.0f} | {other} | {second['tps']['value']:,.0f} | "
                  f"{ratio['value']:.3f} ({ratio['low']:.3f} to {ratio['high']:.3f}) |", flush=True)
    print()


def main():
    usage, text = __doc__.split("\n\n", 1)
    parser = argparse.ArgumentParser(description=usage, epilog=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS), help="these parts, by commas")
    parser.add_argument("--rounds", type=int, default=5, help="of each driver against the ceiling (5)")
    parser.add_argument("--seconds", type=int, default=5, help="of such a round (5)")
    parser.add_argument("--pairs", type=int, default=40, help="of rounds on one PostgreSQL (40)")
    parser.add_argument("--clients", default="8", help="of the drivers on one PostgreSQL (8)")
    parser.add_argument("--postgres", help="folder of PostgreSQL 18's programs")
    args = parser.parse_args()
    if args.pairs < 2:
        parser.error("--pairs: two or more are needed to tell a difference from chance")
    parts = args.only.split(",")
    if unknown := [part for part in parts if part not in PARTS]:
        sys.exit(f"overhead: there is no part {', '.join(unknown)}: there are {', '.join(PARTS)}")
    if "agree" in parts and not os.access("/dev/cpu_dma_latency", os.W_OK):
        sys.exit("overhead: agree keeps CPUs awake through /dev/cpu_dma_latency, which can't be written: run it as root, or "
                 "--only cost,many")
    if {"cost", "many"} & set(parts) and not os.path.exists(os.path.join(SHARED, "peers", "ceiling.c")):
        sys.exit("overhead: the ceiling (../shared/peers/ceiling.c) is not here: --only agree goes without it")
    folder = tempfile.mkdtemp(prefix="allcore-overhead-")
    try:
        if {"cost", "many"} & set(parts):
            ceiling = Ceiling(folder)
            try:
                if "cost" in parts:
                    cost(ceiling, args)
                if "many" in parts:
                    many(ceiling, args)
            finally:
                ceiling.stop()
        if "agree" in parts:
            agree(folder, args)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


main()
