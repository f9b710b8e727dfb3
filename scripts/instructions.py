#!/usr/bin/env python3
"""Instructions of the server per transaction on five hot paths, counted by callgrind.

Each binary serves a new folder under callgrind with one core and a file thread. The script loads
pgbench's tables at scale 1 while nothing is counted, warms each path up, and counts two runs of one
client, a short one and a long one. The difference of their instructions over the difference of
their transactions leaves out the cost of a run itself.

With --check FILE the script compares the counts with those of the file; a difference of more than
1% is an error. With --record FILE it replaces those of the file. With --baseline BINARY the table
gives the ratio of two binaries, and --limit RATIO makes a ratio above it an error.
"""

import argparse
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

from peers import TARGET, run, say

START_LIMIT = 900
# A folder in memory: a commit that waits long for its disk costs more instructions.
MEMORY = "/dev/shm"
# Work by the clock, of which a slow run does more: left out of the counts.
TIMED = "Engine>::tick"
# Further rounds before a count that moved is believed.
FURTHER = 10
# By how much a count may differ from the recorded one.
TOLERANCE = 0.01


@dataclass
class Path:
    """A hot path: pgbench's options, its script if none of its own, and the lengths of the two
    runs."""

    options: list
    few: int
    many: int
    script: str = ""


PREPARED = ["-M", "prepared"]
PATHS = {
    "prepared select": Path(PREPARED + ["-S"], 2000, 12000),
    "simple select": Path(["-M", "simple", "-S"], 1000, 6000),
    "tpcb": Path(PREPARED, 200, 1000),
    "insert": Path(
        PREPARED,
        50,
        250,
        "BEGIN;\n"
        + 20 * "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (1, 1, 1, 1, CURRENT_TIMESTAMP);\n"
        + "COMMIT;\n",
    ),
    "range join": Path(
        PREPARED,
        200,
        1200,
        "\\set first random(1, 99000)\n"
        "SELECT a.aid, b.bbalance FROM pgbench_accounts a JOIN pgbench_branches b ON b.bid = a.bid"
        " WHERE a.aid BETWEEN :first AND :first + 19;",
    ),
}


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

    def pgbench(self, name, transactions):
        path = PATHS[name]
        options = ["-n", "-c", "1", "-t", str(transactions), "--random-seed", "1", *path.options]
        if path.script:
            file = f"{self.folder}/script"
            with open(file, "w", encoding="utf8") as script:
                script.write(path.script)
            options += ["-f", file]
        where = ["-h", self.socket, "-p", self.port, "-U", "postgres"]
        return run("pgbench", *options, *where, "postgres")

    def control(self, *words):
        return run("callgrind_control", *words, str(self.process.pid))

    def count(self, name, transactions):
        """Instructions that the server executes during a run."""
        self.control("-z")
        self.pgbench(name, transactions)
        before = set(os.listdir(self.folder))
        self.control("-d")
        until = time.monotonic() + 60
        while time.monotonic() < until:
            for dump in set(os.listdir(self.folder)) - before:
                with open(f"{self.folder}/{dump}", encoding="utf8") as file:
                    total = re.search(r"^(?:totals|summary): (\d+)", file.read(), re.M)
                if total:
                    return int(total[1]) - self.timed(dump)
            time.sleep(0.2)
        sys.exit("callgrind wrote no counts")

    def timed(self, dump):
        """The instructions of a dump that the clock caused."""
        listed = run("callgrind_annotate", "--inclusive=yes", "--threshold=100", f"{self.folder}/{dump}")
        counts = re.findall(rf"^ *([\d,]+) .*{re.escape(TIMED)}", listed, re.M)
        return max((int(count.replace(",", "")) for count in counts), default=0)

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=120)
        self.log.close()


def per_transaction(server, name, rounds, expected):
    """Instructions per transaction, from the least counts: a waiting server disturbs these least.

    A count that differs from the expected one is counted again before it is believed.
    """
    path, counts = PATHS[name], []

    def again(times):
        counts.extend((server.count(name, path.few), server.count(name, path.many)) for _ in range(times))
        short, long = (min(counted) for counted in zip(*counts))
        return (long - short) / (path.many - path.few)

    server.pgbench(name, path.few)
    server.control("--instr=on")
    found = again(rounds)
    while expected and moved(found, expected) and len(counts) < rounds + FURTHER:
        found = again(1)
    server.control("--instr=off")
    return found


def moved(count, expected):
    return abs(count / expected - 1) > TOLERANCE


def measure(binary, rounds, expected):
    """Instructions per transaction of each path."""
    folder = tempfile.mkdtemp(prefix="allcore-instructions-", dir=MEMORY if os.path.isdir(MEMORY) else None)
    server = Counted(binary, folder)
    try:
        say(f"{binary}: loading")
        run("pgbench", "-i", "-q", "-s", "1", *server.address()[:6], "postgres")
        found = {}
        for name in PATHS:
            say(f"{binary}: {name}")
            found[name] = per_transaction(server, name, rounds, expected.get(name))
        return found
    finally:
        server.stop()
        shutil.rmtree(folder)


def machine():
    """The processor and the C library, which chooses its routines by the processor's maker."""
    with open("/proc/cpuinfo", encoding="utf8") as told:
        maker = re.search(r"^vendor_id\s*: (.*)$", told.read(), re.M)
    processor = f"{maker[1]} {platform.machine()}" if maker else platform.machine()
    return f"{processor}, {' '.join(platform.libc_ver())}"


def read(file):
    """The recorded counts, and the machine they were counted on."""
    with open(file, encoding="utf8") as recorded:
        text = recorded.read()
    rows = re.findall(r"^\| ([a-z ]+) \| ([\d,]+) \|$", text, re.M)
    return {name: int(count.replace(",", "")) for name, count in rows}, re.search(r"^Counted on (.*)\.$", text, re.M)[1]


def record(file, counts):
    """Replaces the recorded counts and the machine's name, and leaves the rest of the file."""
    with open(file, encoding="utf8") as recorded:
        text = recorded.read()
    rows = "".join(f"| {name} | {count:,.0f} |\n" for name, count in counts.items())
    text = re.sub(r"(?<=\| ---: \|\n)(\|.*\n)*", lambda _: rows, text)
    text = re.sub(r"^Counted on .*$", lambda _: f"Counted on {machine()}.", text, flags=re.M)
    with open(file, "w", encoding="utf8") as recorded:
        recorded.write(text)


def show(new, old, column):
    """Prints the table and returns the ratios, where there is something to compare with."""
    print("| transaction | instructions |" + (f" {column} | ratio |" if old else ""))
    print("| --- | ---: |" + (" ---: | ---: |" if old else ""))
    ratios = {}
    for name, count in new.items():
        line = f"| {name} | {count:,.0f} |"
        if old and name in old:
            ratios[name] = count / old[name]
            line += f" {old[name]:,.0f} | {ratios[name]:.4f} |"
        print(line)
    return ratios


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=os.path.join(TARGET, "release", "allcore"))
    parser.add_argument("--check", metavar="FILE", help="compare with the counts of a file, within 1%%")
    parser.add_argument("--record", metavar="FILE", help="replace the counts of a file")
    parser.add_argument("--baseline", metavar="BINARY", help="another binary of allcore, to compare with")
    parser.add_argument("--limit", type=float, metavar="RATIO", help="status 1 where a ratio to the baseline is above")
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


def main():
    options = arguments()
    if not shutil.which("valgrind"):
        print("skipped: instruction counts, because valgrind is not installed")
        return
    recorded, where = read(options.check) if options.check else ({}, None)
    if options.check and where != machine():
        print(f"skipped: instruction counts, recorded on {where}; this is {machine()}")
        return
    if options.check and PATHS.keys() != recorded.keys():
        sys.exit(f"{options.check} holds other paths: {', '.join(recorded)}")
    new = measure(options.binary, options.rounds, recorded)
    old = measure(options.baseline, options.rounds, {}) if options.baseline else recorded
    ratios = show(new, old, "baseline" if options.baseline else "recorded")
    if options.record:
        record(options.record, new)
    changed = [name for name in recorded if moved(new[name], recorded[name])]
    if changed:
        again = f"make instructions ARGS=\"--record {options.check}\""
        sys.exit(f"moved by more than 1%: {', '.join(changed)}; where this is meant, `{again}` and the commit says why")
    worst = max(ratios.values(), default=0.0)
    if options.limit and worst > options.limit:
        sys.exit(f"a ratio of {worst:.3f} is above {options.limit}")


if __name__ == "__main__":
    main()
