#!/usr/bin/env python3
"""Instructions of the server per prepared select and per tpcb transaction, counted by callgrind.

Each binary serves a new folder under callgrind with one core and a file thread. The script loads pgbench's tables at
scale 1 while nothing is counted, warms each workload up, and counts two runs of one client, a short one and a long one.
The difference of their instructions over the difference of their transactions leaves out what a run costs once.
With --baseline BINARY the table gives the ratio of the two, and --limit RATIO makes a ratio above it an error.
"""

import argparse
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from peers import TARGET, run, say

WORKLOADS = {"select": ["-S"], "tpcb": []}
TRANSACTIONS = {"select": (2000, 12000), "tpcb": (400, 1600)}
START_LIMIT = 900


class Counted:
    """A server under callgrind."""

    def __init__(self, binary, folder):
        self.folder = folder
        self.socket = os.path.join(folder, "socket")
        os.makedirs(self.socket, mode=0o700)
        # The port names the socket's file too, and psql takes none of 0.
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = str(free.getsockname()[1])
        command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={folder}/counts"]
        command += ["--fair-sched=try", binary, "serve", "--data", f"{folder}/data", "--cores", "1"]
        command += ["--buffers", "64MiB", "--file-io", "threads", "--listen", f"127.0.0.1:{self.port}", "--socket-dir", self.socket]
        self.log = open(f"{folder}/log", "w+", encoding="utf8")
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        until = time.monotonic() + START_LIMIT
        while not self.ready():
            if self.process.poll() is not None or time.monotonic() > until:
                self.process.kill()
                self.log.seek(0)
                sys.exit(f"the server did not start under callgrind\n{self.log.read()}")
            time.sleep(0.2)

    def ready(self):
        asked = ["psql", "-qAt", *self.address(), "-c", "select 1"]
        return subprocess.run(asked, capture_output=True, check=False).returncode == 0

    def address(self):
        return ["-h", self.socket, "-p", self.port, "-U", "postgres", "-d", "postgres"]

    def pgbench(self, workload, transactions):
        options = ["-n", "-M", "prepared", "-c", "1", "-t", str(transactions), "--random-seed", "1"]
        where = ["-h", self.socket, "-p", self.port, "-U", "postgres"]
        return run("pgbench", *options, *WORKLOADS[workload], *where, "postgres")

    def control(self, *words):
        return run("callgrind_control", *words, str(self.process.pid))

    def count(self, workload, transactions):
        """Instructions that the server executes during a run."""
        self.control("-z")
        self.pgbench(workload, transactions)
        before = set(os.listdir(self.folder))
        self.control("-d")
        until = time.monotonic() + 60
        while time.monotonic() < until:
            for name in set(os.listdir(self.folder)) - before:
                with open(f"{self.folder}/{name}", encoding="utf8") as file:
                    total = re.search(r"^(?:totals|summary): (\d+)", file.read(), re.M)
                if total:
                    return int(total[1])
            time.sleep(0.2)
        sys.exit("callgrind wrote no counts")

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=120)
        self.log.close()


def measure(binary, rounds):
    """Instructions per transaction of each workload: the least of the rounds, which idle polling disturbs least."""
    folder = tempfile.mkdtemp(prefix="allcore-instructions-")
    server = Counted(binary, folder)
    try:
        say(f"{binary}: loading")
        run("pgbench", "-i", "-q", "-s", "1", *server.address()[:6], "postgres")
        found = {}
        for workload, (few, many) in TRANSACTIONS.items():
            say(f"{binary}: {workload}")
            server.pgbench(workload, few)
            server.control("--instr=on")
            counts = []
            for _ in range(rounds):
                short, long = server.count(workload, few), server.count(workload, many)
                counts.append((long - short) / (many - few))
            server.control("--instr=off")
            found[workload] = min(counts)
        return found
    finally:
        server.stop()
        shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=os.path.join(TARGET, "release", "allcore"))
    parser.add_argument("--baseline", metavar="BINARY", help="another binary of allcore, to compare with")
    parser.add_argument("--limit", type=float, metavar="RATIO", help="status 1 where a ratio to the baseline is above")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if not shutil.which("valgrind"):
        sys.exit("there is no valgrind: install Debian's package valgrind")
    new = measure(options.binary, options.rounds)
    old = measure(options.baseline, options.rounds) if options.baseline else None
    worst = 0.0
    print("| transaction | instructions |" + (" baseline | ratio |" if old else ""))
    print("| --- | ---: |" + (" ---: | ---: |" if old else ""))
    for workload, count in new.items():
        line = f"| {workload} | {count:,.0f} |"
        if old:
            worst = max(worst, count / old[workload])
            line += f" {old[workload]:,.0f} | {count / old[workload]:.3f} |"
        print(line)
    if old and options.limit and worst > options.limit:
        sys.exit(f"a ratio of {worst:.3f} is above {options.limit}")


if __name__ == "__main__":
    main()
