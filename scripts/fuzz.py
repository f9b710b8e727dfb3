#!/usr/bin/env python3
"""Random statements on PostgreSQL 18 and Allcore must give the same rows and the same SQLSTATE.

Each round makes small tables from its seed and sends both servers the same statements
(scripts/fuzz_statements.py). Rows compare in order only where the statement orders them wholly. At
the first difference the statements that lead to it are cut down to the fewest that still do, and
printed with the seed; the status is then 1.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from decimal import Decimal, InvalidOperation
from pathlib import Path

from fuzz_statements import Round
from wire import Connection, Lost

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
PEER = ROOT.parent / "shared/peers/pg18.sh"


FLOATS, NUMERIC, BPCHAR, INTERVAL = {700: 5, 701: 12}, 1700, 1042, 1186


def plain(value, type_, loose):
    """A value as it is compared. Sums of floats depend on their order in the last digits. Either
    server may choose any of several equal values (1.0 and 1.00, 'a' and 'a  ', a day and 24 hours)
    to stand for them all: `loose` makes them one."""
    if value is None:
        return None
    if type_ in FLOATS:
        number = float(value)
        return repr(float(f"{number:.{FLOATS[type_]}g}") + 0.0)
    if loose and type_ == NUMERIC:
        try:
            return str(Decimal(value).normalize() + 0)
        except InvalidOperation:
            return value
    if loose and type_ == INTERVAL:
        return length_of(value)
    if loose and type_ == BPCHAR:
        return value.rstrip(" ")
    return value


def length_of(interval):
    """Seconds, a month being 30 days: what intervals are compared by."""
    total = Decimal(0)
    words = interval.split()
    for number, unit in zip(words, words[1:]):
        days = {"year": 360, "mon": 30, "day": 1}.get(unit.rstrip("s"))
        if days:
            total += int(number) * days * 86400
    if words and ":" in words[-1]:
        hours, minutes, seconds = words[-1].lstrip("+-").split(":")
        clock = int(hours) * 3600 + int(minutes) * 60 + Decimal(seconds)
        total += -clock if words[-1].startswith("-") else clock
    return interval if "infinity" in interval else str(total.normalize() + 0)


def compared(answer, statement):
    types, rows, tag, error = answer
    rows = [tuple(plain(v, t, statement.loose) for v, t in zip(row, types)) for row in rows]
    if error:
        # The columns may have been told before it.
        types = []
    if not statement.ordered:
        rows.sort(key=repr)
    return types, rows, tag, error and error[0]


def differs(expected, given, statement):
    """The part that differs, or None; "stop" when the two may differ and the round can't go on."""
    a, b = compared(expected, statement), compared(given, statement)
    if a == b:
        return "position" if expected[3] and expected[3][2] != given[3][2] and statement.position else None
    codes = a[3], b[3]
    if statement.position and not statement.exact and all(codes) and any(code.startswith("22") for code in codes):
        # Analysis finds a literal that is no value of its type, or execution does.
        return None
    # Which rows' expressions are computed, and in which order, is the planner's choice.
    if statement.risky and any(code and code.startswith("22") for code in codes):
        open_ = ("22", "23", "21") if statement.many else ("22",)
        return "stop" if all(code is None or code.startswith(open_) for code in codes) else "SQLSTATE"
    if statement.many and all(code and code.startswith(("23", "21")) for code in codes):
        return None
    for what, x, y in zip(("column types", "rows", "tag", "SQLSTATE"), a, b):
        if x != y:
            return what
    return None


class Both:
    """A session on each server, in databases of their own."""

    def __init__(self, sockets):
        self.sockets, self.name = sockets, f"fuzz_{os.getpid()}"
        for path in sockets:
            Connection(path, "postgres").query(f"create database {self.name}")
        self.connect()

    def connect(self):
        self.sides = [Connection(path, self.name) for path in self.sockets]

    def drop(self):
        for side in self.sides:
            side.close()
        for path in self.sockets:
            Connection(path, "postgres").query(f"drop database {self.name}")

    def start(self):
        for side in self.sides:
            for text in ("rollback", "deallocate all", "drop table if exists t0, t1, t2, t3 cascade"):
                side.query(text)

    def run(self, statement):
        expected = self.sides[0].query(statement.text)
        try:
            given = self.sides[1].query(statement.text)
        except (Lost, OSError):
            self.connect()
            return "connection lost", expected, ([], [], None, ("lost", "", None))
        return differs(expected, given, statement), expected, given

    def first_difference(self, statements):
        """The number of the first statement that differs, what, and both answers."""
        self.start()
        for number, statement in enumerate(statements):
            what, expected, given = self.run(statement)
            if what == "stop":
                return None
            if what:
                return number, what, expected, given
        return None


def shortened(both, statements):
    """The fewest statements that still differ, found by leaving out ever smaller pieces."""
    size = max(len(statements) // 2, 1)
    while True:
        at = 0
        while at < len(statements) - 1:
            shorter = statements[:at] + statements[min(at + size, len(statements) - 1) :]
            found = both.first_difference(shorter)
            if found:
                statements = shorter[: found[0] + 1]
            else:
                at += size
        if size == 1:
            return statements
        size //= 2


def show(answer):
    types, rows, tag, error = answer
    if error:
        return f"{error[0]} {error[1]} (at {error[2]})"
    lines = [" | ".join("NULL" if v is None else v for v in row) for row in rows[:20]]
    return "\n".join([f"{tag} {types}", *lines])


def report(seed, both, statements):
    statements = shortened(both, statements)
    found = both.first_difference(statements)
    print(f"\n=== seed {seed}: {found[1] if found else 'not repeated'}")
    print(";\n".join(statement.text for statement in statements) + ";")
    if found:
        print(f"--- PostgreSQL\n{show(found[2])}\n--- Allcore\n{show(found[3])}", flush=True)


def serve(binary, folder, buffers="64MiB"):
    """Allcore on a folder of its own; gives the process and its socket."""
    log = open(folder / "log", "w", encoding="utf-8")
    command = [binary, "serve", "--data", folder / "data", "--socket-dir", folder, "--listen", "127.0.0.1:0"]
    process = subprocess.Popen([*command, "--buffers", buffers], stdout=log, stderr=log)
    for _ in range(600):
        found = [path for path in folder.glob(".s.PGSQL.*") if not path.name.endswith(".lock")]
        if found:
            try:
                Connection(found[0], "postgres")
                return process, found[0]
            except (Lost, OSError):
                pass
        if process.poll() is not None:
            break
        time.sleep(0.1)
    process.kill()
    sys.exit(f"allcore did not start:\n{(folder / 'log').read_text()}")


def parser_of(purpose, rounds):
    """The options that scripts have which compare random rounds on both servers."""
    parser = argparse.ArgumentParser(description=purpose, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--allcore", default=TARGET / "release/allcore", help="the binary")
    parser.add_argument("--seed", type=int, default=1, help="the first round's")
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--keep-going", action="store_true", help="report every round that differs")
    parser.add_argument("--postgres", help="socket folder of a PostgreSQL 18 that runs")
    parser.add_argument("--server", help="socket of an Allcore that runs")
    return parser


def peer():
    """Starts PostgreSQL 18 and gives its socket folder; None, with a word why, where it is not
    there."""
    if not PEER.exists():
        print(f"skipped: PostgreSQL 18 is not there ({PEER})")
        return None
    said = subprocess.run([PEER, "start"], check=True, capture_output=True, text=True).stdout
    return said.splitlines()[-1]


def main():
    parser = parser_of(__doc__, 200)
    parser.add_argument("--statements", type=int, default=60, help="in a round")
    options = parser.parse_args()
    postgres = options.postgres or peer()
    if not postgres:
        return 0
    with tempfile.TemporaryDirectory() as folder:
        process, path = (None, options.server)
        if not path:
            process, path = serve(options.allcore, Path(folder))
        try:
            return rounds(options, Both([Path(postgres) / ".s.PGSQL.5432", path]))
        finally:
            if process:
                process.terminate()
                process.wait()


def rounds(options, both):
    ran = wrong = failed = 0
    for seed in range(options.seed, options.seed + options.rounds):
        round_ = Round(random.Random(seed), options.statements)
        both.start()
        for number, statement in enumerate(round_.statements):
            what, expected, _ = both.run(statement)
            ran += 1
            failed += expected[3] is not None
            if what == "stop":
                break
            if what:
                wrong += 1
                report(seed, both, round_.statements[: number + 1])
                break
        if wrong and not options.keep_going:
            break
    both.drop()
    print(f"{ran} statements ({failed} errors), {wrong} rounds differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
