#!/usr/bin/env python3
"""Each variant of the engine serves transactions, survives a kill and gives back what it took.

For each variant the script starts the executable of `make variants` on a new folder with few
buffers. It runs pgbench's transactions, kills the server, starts it again and compares the sums of
all balances. Then the server reads from all pages and stops. `allcore check` must find the folder
whole, and the server's log must say that every view gave back its pin and its share. It must also
say that the engine ran each variant that was chosen.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from peers import TARGET, free_port, run, say

BINARY = os.path.join(TARGET, "variants", "release", "allcore")
VARIANTS = [
    "clock-hand=stock",
    "clock-hand=published",
    "pin=stock",
    "pin=step",
    "pin=published",
    "latch=stock",
    "latch=step",
    "latch=published",
    "snapshot=stock",
    "free-queues=stock",
    "relation-size=stock,title=stock",
    "relation-size=published,pinned-memory=stock",
    "socket=stock,file-lock=stock",
    "clock-hand=stock,pin=stock,latch=stock,snapshot=stock,free-queues=stock,preload=stock",
]
# Pages of scale 2 are four times as many.
BUFFERS = "8MiB"
SUMS = "SELECT (SELECT sum(abalance) FROM pgbench_accounts), (SELECT sum(tbalance) FROM pgbench_tellers), (SELECT sum(bbalance) FROM pgbench_branches), (SELECT sum(delta) FROM pgbench_history)"


class Server:
    """A server with a variant."""

    def __init__(self, folder, variant):
        self.folder, self.port = folder, str(free_port())
        command = [BINARY, "serve", "--data", f"{folder}/data", "--variant", variant, "--buffers", BUFFERS]
        command += ["--listen", f"127.0.0.1:{self.port}"]
        self.log = open(f"{folder}/log", "w", encoding="utf8")
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        until = time.monotonic() + 60
        while subprocess.run(self.psql("SELECT 1"), capture_output=True, check=False).returncode:
            if self.process.poll() is not None or time.monotonic() > until:
                self.process.kill()
                sys.exit(f"the server did not start with {variant}\n{self.said()}")
            time.sleep(0.05)

    def address(self):
        return ["-h", "127.0.0.1", "-p", self.port, "-U", "postgres"]

    def psql(self, text):
        return ["psql", "-qAt", *self.address(), "-c", text, "postgres"]

    def pgbench(self, *options):
        run("pgbench", *options, *self.address(), "postgres")

    def end(self, sign):
        self.process.send_signal(sign)
        return self.process.wait(timeout=120)

    def said(self):
        with open(f"{self.folder}/log", encoding="utf8") as log:
            return log.read()


def attempt(variant, folder):
    server = Server(folder, variant)
    try:
        server.pgbench("-i", "-s", "2", "-q")
        server.pgbench("-n", "-M", "prepared", "-c", "16", "-j", "2", "-t", "100")
        before = run(*server.psql(SUMS))
        server.end(signal.SIGKILL)
        server = Server(folder, variant)
        if run(*server.psql(SUMS)) != before:
            sys.exit(f"{variant}: the sums differ after a kill")
        server.pgbench("-n", "-S", "-c", "16", "-j", "2", "-T", "1")
        # A statement that ends in the middle gives back what it holds, too.
        cancelled = "SET statement_timeout = 50; SELECT count(*) FROM pgbench_accounts a, pgbench_accounts b WHERE a.abalance <> b.aid"
        if subprocess.run(server.psql(cancelled), capture_output=True, check=False).returncode != 1:
            sys.exit(f"{variant}: a statement was not cancelled")
        if server.end(signal.SIGTERM) != 0:
            sys.exit(f"{variant}: the server did not stop cleanly\n{server.said()}")
    finally:
        server.process.kill()
    said = server.said()
    if f"own mechanisms: {variant}" not in said:
        sys.exit(f"{variant} was not in force\n{said}")
    takes = "pin=" in variant or "latch=" in variant
    if takes != ("every view gave back its pin and its share" in said):
        sys.exit(f"{variant}: pins or shares were not given back\n{said}")
    line = re.search(r"variants: runs of each row: (.*)", said)
    runs = dict(row.split(" ") for row in line[1].split(", ")) if line else {}
    say(f"  runs: {runs}")
    chosen = {word.split("=")[0] for word in variant.split(",")}
    if runs.keys() != chosen or not all(int(count) > 0 for count in runs.values()):
        sys.exit(f"{variant}: the engine did not run each variant\n{said}")
    run(BINARY, "check", "--data", f"{folder}/data")


def main():
    refused = subprocess.run([BINARY, "serve", "--data", "/nowhere", "--variant", "pin=x"], capture_output=True, text=True, check=False)
    if refused.returncode != 2 or "there are clock-hand=stock|published" not in refused.stderr:
        sys.exit(f"a variant that does not exist is not refused\n{refused.stderr}")
    for variant in VARIANTS:
        folder = tempfile.mkdtemp(prefix="allcore-variants-")
        say(variant)
        attempt(variant, folder)
        shutil.rmtree(folder)


main()
