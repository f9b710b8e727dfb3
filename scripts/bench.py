#!/usr/bin/env python3
"""`make bench`: the figures, side by side in one run with PostgreSQL 18, MariaDB and the ceiling of ../shared.

  scripts/bench.py [--only select,simple,update,tpcb,load,evict,sysbench] [--rounds 3] [--seconds 5] [--scale 20]

Every server listens on a Unix socket, is durable, and gets the same memory for its buffers. Prints each table as it
is measured.
"""
import argparse, os, re, shutil, signal, socket, statistics, subprocess, sys, tempfile, time
from peers import SHARED, TARGET, run, say

BINARY = os.path.join(TARGET, "release", "allcore")
PARTS = ["select", "thousand", "simple", "update", "tpcb", "load", "evict", "sysbench"]


class Allcore:
    def __init__(self, folder, buffers):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.host = folder
        os.makedirs(folder, exist_ok=True)
        log = open(os.path.join(folder, "log"), "a")
        self.process = subprocess.Popen(
            [BINARY, "serve", "--data", f"{folder}/data", "--socket-dir", folder, "--listen", f"127.0.0.1:{self.port}",
             "--buffers", buffers, "--max-connections", "1100"], stdout=log, stderr=log)
        wait(self)

    def stop(self):
        say("stopping Allcore")
        self.process.send_signal(signal.SIGINT)
        self.process.wait(120)


def wait(arm):
    for _ in range(600):
        done = subprocess.run(["psql", "-X", "-qc", "select 1", "-h", arm.host, "-p", str(arm.port), "-U", "postgres",
                               "-d", "postgres"], capture_output=True)
        if done.returncode == 0:
            return
        time.sleep(0.1)
    sys.exit("bench: the server does not answer")


class Postgres:
    port = 5432

    def __init__(self, folder, settings=()):
        self.folder = folder
        self.script = os.path.join(SHARED, "peers", "pg18.sh")
        fresh = not os.path.exists(os.path.join(folder, "data", "PG_VERSION"))
        self.host = run(self.script, "start", folder).strip()
        if settings and fresh:
            run(self.script, "stop", folder)
            with open(os.path.join(folder, "data", "postgresql.conf"), "a") as out:
                out.writelines(f"{line}\n" for line in settings)
            run(self.script, "start", folder)
        wait(self)

    def stop(self):
        run(self.script, "stop", self.folder)


def pgbench(arm, *arguments):
    return run("pgbench", "-h", arm.host, "-p", str(arm.port), "-U", "postgres", *arguments, "bench")


def create(arm):
    at = ["-h", arm.host, "-p", str(arm.port), "-U", "postgres", "-X", "-q"]
    run("psql", *at, "-d", "postgres", "-c", "drop database if exists bench", "-c", "create database bench")


def load(arm, scale):
    say(f"pgbench -i -s {scale}")
    begun = time.monotonic()
    pgbench(arm, "-i", "-s", str(scale), "-q")
    return time.monotonic() - begun


def sides(arms, workload, mode, clients, args):
    say(f"{workload}, {mode}, {clients} clients: {', '.join(name for name, _, _ in arms)}, {args.rounds} x {args.seconds} s each")
    command = [os.path.join(SHARED, "bench", "sides.py"), "--workload", workload, "--mode", mode, "--clients", clients,
               "--seconds", str(args.seconds), "--rounds", str(args.rounds)]
    for name, host, port in arms:
        command += ["--arm", f"{name}={host}:{port}"]
    print(run(*command), flush=True)


def sysbench(database, script, verb, args, driver):
    done = run("sysbench", script, *driver, "--tables=4", "--table-size=100000", f"--threads={args.threads}",
               f"--time={args.seconds}", "--report-interval=0", verb)
    found = re.search(r"transactions:\s+\d+\s+\(([0-9.]+) per sec", done)
    return float(found[1]) if found else 0.0


def sysbench_part(allcore, postgres, ceiling, args):
    arms = {}
    for name, arm in (("allcore", allcore), ("pg18", postgres)):
        subprocess.run(["psql", "-h", arm.host, "-p", str(arm.port), "-U", "postgres", "-X", "-q", "-d", "postgres",
                        "-c", "drop database if exists sbtest", "-c", "create database sbtest"], capture_output=True)
        arms[name] = ["--db-driver=pgsql", f"--pgsql-host={arm.host}", f"--pgsql-port={arm.port}",
                      "--pgsql-user=postgres", "--pgsql-db=sbtest"]
    maria = None
    if shutil.which("mariadbd"):
        maria = tempfile.mkdtemp(prefix="bench-maria-")
        os.chmod(maria, 0o755)
        sock = run(os.path.join(SHARED, "peers", "mariadb.sh"), "start", maria).strip().splitlines()[-1]
        arms["mariadb"] = ["--db-driver=mysql", f"--mysql-socket={sock}", "--mysql-user=root", "--mysql-db=sbtest"]
    else:
        print("MariaDB is not installed: its column is left out")
    try:
        for name, driver in arms.items():
            say(f"sysbench prepare: {name}")
            sysbench("sbtest", "oltp_read_write", "prepare", args, driver)
        scripts = ["oltp_point_select", "oltp_read_only", "oltp_read_write"]
        # A server that does no work shows how far the client itself goes; it answers point selects only.
        arms["ceiling"] = ["--db-driver=pgsql", f"--pgsql-host={ceiling}", "--pgsql-port=5432", "--pgsql-user=postgres", "--pgsql-db=sbtest"]
        seen = {(s, n): [] for s in scripts for n in arms if n != "ceiling" or s == "oltp_point_select"}
        for turn in range(args.rounds):
            for script in scripts:
                say(f"sysbench {script}, round {turn + 1} of {args.rounds}")
                for name, driver in arms.items():
                    if (script, name) not in seen:
                        continue
                    seen[script, name].append(sysbench("sbtest", script, "run", args, driver))
        print(f"sysbench, 4 x 100,000 rows, {args.threads} threads, transactions per second, median of {args.rounds} x {args.seconds} s")
        others = [n for n in arms if n != "allcore"]
        print(f"{'script':<18} | " + " | ".join(f"{n:>10}" for n in arms) + " | " + " | ".join(f"allcore/{n}" for n in others))
        for script in scripts:
            mid = {n: statistics.median(seen[script, n]) for n in arms if (script, n) in seen}
            print(f"{script:<18} | " + " | ".join(f"{mid[n]:10.0f}" if n in mid else " " * 10 for n in arms) + " | "
                  + " | ".join(f"{mid['allcore'] / max(mid[n], 1e-9):.2f}" if n in mid else "    " for n in others))
        print(flush=True)
    finally:
        if maria:
            run(os.path.join(SHARED, "peers", "mariadb.sh"), "stop", maria)
            shutil.rmtree(maria, ignore_errors=True)


def evict_part(folder, args):
    allcore = Allcore(os.path.join(folder, "evict-allcore"), "700MiB")
    postgres = Postgres(os.path.join(folder, "evict-pg18"), ["shared_buffers = 700MB"])
    try:
        for arm in (allcore, postgres):
            create(arm)
            print(f"loading scale 200: {load(arm, 200):.1f} s", flush=True)
        sides([("allcore", allcore.host, allcore.port), ("pg18", postgres.host, postgres.port)], "select", "prepared", "64", args)
    finally:
        allcore.stop()
        postgres.stop()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--only", default=",".join(PARTS))
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=int, default=5)
    p.add_argument("--scale", type=int, default=20)
    p.add_argument("--threads", type=int, default=64, help="sysbench threads")
    args = p.parse_args()
    parts = args.only.split(",")
    if unknown := set(parts) - set(PARTS):
        sys.exit(f"bench: no such part: {', '.join(unknown)}; there are {', '.join(PARTS)}")
    if not os.path.isdir(SHARED):
        sys.exit("bench: the peers in ../shared are not here, so there is nothing to compare with")
    # Told to stop, it stops its servers too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = tempfile.mkdtemp(prefix="allcore-bench-")
    os.chmod(folder, 0o755)
    stops = []
    try:
        if parts == ["evict"]:
            evict_part(folder, args)
            return
        say("starting Allcore, PostgreSQL 18 and the ceiling")
        run("cc", "-O2", "-pthread", "-o", f"{folder}/ceiling", os.path.join(SHARED, "peers", "ceiling.c"))
        ceiling = subprocess.Popen([f"{folder}/ceiling", f"{folder}/ceiling-socket"])
        stops.append(ceiling.kill)
        allcore = Allcore(os.path.join(folder, "allcore"), "2GiB")
        stops.append(allcore.stop)
        postgres = Postgres(os.path.join(folder, "pg18"))
        stops.append(postgres.stop)
        both = [("allcore", allcore.host, allcore.port), ("pg18", postgres.host, postgres.port)]
        capped = [*both, ("ceiling", f"{folder}/ceiling-socket", 5432)]
        times = {n: [] for n in ("allcore", "pg18")}
        # Only what is asked for is loaded: sysbench and the eviction part have tables of their own.
        loads = args.rounds if "load" in parts else int(bool(set(parts) - {"sysbench", "evict"}))
        for _ in range(loads):
            for name, arm in (("allcore", allcore), ("pg18", postgres)):
                create(arm)
                times[name].append(load(arm, args.scale))
        mid = {n: statistics.median(t) for n, t in times.items() if t}
        if mid:
            print(f"pgbench -i -s {args.scale}: allcore {mid['allcore']:.2f} s, pg18 {mid['pg18']:.2f} s, "
                  f"pg18/allcore {mid['pg18'] / mid['allcore']:.2f}\n", flush=True)
        if "select" in parts:
            sides(capped, "select", "prepared", "1,8,64,256", args)
        if "thousand" in parts:
            sides(capped, "select", "prepared", "64,256,1000", args)
        if "simple" in parts:
            sides(capped, "select", "simple", "64", args)
        if "update" in parts:
            sides(both, "simple-update", "prepared", "64", args)
        if "tpcb" in parts:
            sides(both, "tpcb", "prepared", "8,64,256", args)
        if "sysbench" in parts:
            sysbench_part(allcore, postgres, f"{folder}/ceiling-socket", args)
        while stops:
            stops.pop()()
        if "evict" in parts:
            evict_part(folder, args)
    finally:
        for stop in reversed(stops):
            stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
