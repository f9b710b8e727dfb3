#!/usr/bin/env python3
"""Random interleavings of two or three sessions on PostgreSQL 18 and Allcore must have the same
outcomes.

Each round makes small tables from its seed (scripts/interleave_statements.py) and plays both
servers the same steps: at each one, a session that does not wait runs a statement. A step is over
when every session has its answer or waits for a lock. Compared are who waits, rows, tags and
SQLSTATEs, and in the end what the tables hold. A round ends early at a deadlock, whose victim the
servers choose by time, at a statement Allcore does not support, and at a difference that
docs/sql.md lists. At any other difference the steps are cut down to the fewest that still differ,
and printed with the seed; the status is then 1.
"""

import re
import select
import struct
import sys
import tempfile
import time
from pathlib import Path

from fuzz import parser_of, peer, serve
from interleave_statements import Round
from wire import Connection, fields

# Seconds until outcomes that differ count as different, and until a statement counts as hanging.
SETTLE, HANG = 4, 60
# PostgreSQL's plans go by the primary key, as Allcore's do: what is locked first decides who waits.
BY_KEY = "seqscan bitmapscan hashjoin mergejoin material memoize hashagg"
WAITS, RUNS = "waits", "runs"
# Statements for which PostgreSQL waits where Allcore need not, by docs/sql.md.
SHORTER_WAITS = re.compile(r"sequence|drop|key share (nowait|skip)")


class Session(Connection):
    """A session whose statement may still run."""

    def __init__(self, path):
        super().__init__(path, "postgres")
        self.pid = struct.unpack("!i", self.key[:4])[0]
        self.busy, self.outcome, self.said = False, None, ""

    def start(self, text):
        self.buffer, self.parts, self.rows, self.described = b"", [], [], False
        self.busy, self.outcome, self.said = True, None, ""
        self.send(b"Q", text.encode() + b"\0")

    def poll(self, seconds=0.0):
        """Whether the statement has ended, after so many seconds at most."""
        while self.busy and select.select([self.socket], [], [], seconds)[0]:
            got = self.socket.recv(65536)
            if not got:
                self.busy, self.outcome = False, "connection lost"
            self.buffer += got
            while len(self.buffer) >= 5:
                end = struct.unpack("!i", self.buffer[1:5])[0] + 1
                if len(self.buffer) < end:
                    break
                kind, body, self.buffer = chr(self.buffer[0]), self.buffer[5:end], self.buffer[end:]
                self.take(kind, body)
        return not self.busy

    def take(self, kind, body):
        if kind == "T":
            self.described = True
        elif kind == "D":
            self.rows.append("(" + ", ".join("null" if value is None else value for value in fields(body)) + ")")
        elif kind == "d":
            self.rows.append(body.decode())
        elif kind in "CI":
            rows = " ".join(sorted(self.rows))
            self.parts.append(f"{body[:-1].decode()}: {rows}" if self.described or rows else body[:-1].decode())
            self.rows, self.described = [], False
        elif kind == "E":
            parts = {chr(part[0]): part[1:].decode(errors="replace") for part in body.split(b"\0") if part}
            self.parts.append(f"error {parts['C']}")
            self.said = parts["M"]
        elif kind == "Z":
            self.state, self.busy, self.outcome = body.decode(), False, "; ".join(self.parts)


class Side:
    """One server: its sessions and one that looks at them."""

    def __init__(self, path, settings):
        self.path, self.settings, self.sessions = path, settings, []
        self.observer = Connection(path, "postgres")

    def ask(self, text):
        _, rows, _, error = self.observer.query(text)
        return sorted(rows, key=repr), error and error[0]

    def begin(self, setup, sessions):
        self.end()
        _, error = self.ask(f"drop schema if exists r cascade; create schema r; set search_path to r; {setup}")
        if error:
            sys.exit(f"{self.path}: {error} in {setup}")
        for _ in range(sessions):
            self.sessions.append(Session(self.path))
            self.sessions[-1].query(f"set search_path to r; set deadlock_timeout = '30ms'; {self.settings}")

    def end(self):
        for session in self.sessions:
            session.close()
        self.sessions = []

    def is_blocked(self, session):
        pids = ",".join(str(other.pid) for other in self.sessions)
        return self.ask(f"select pg_isolation_test_session_is_blocked({session.pid}, '{{{pids}}}')")[0][0][0] == "t"

    def look(self):
        """The state of each session: None once it has its answer, else whether it waits or runs."""
        found = []
        for session in self.sessions:
            if not session.busy or session.poll(0.002):
                found.append(None)
            elif self.is_blocked(session) and self.is_blocked(session):
                found.append(None if session.poll() else WAITS)
            else:
                found.append(None if session.poll(0.01) else RUNS)
        return found


class Differs(Exception):
    """The servers' outcomes differ."""


class Ends(Exception):
    """The round ends here, for this reason."""


class Play:
    """A round on both servers."""

    def __init__(self, sides, round_):
        self.sides, self.waiting, self.script = sides, set(), []
        for side in sides:
            side.begin(round_.setup, round_.sessions)

    def free(self):
        return [at for at, session in enumerate(self.sides[0].sessions) if not session.busy]

    def settle(self):
        """Looks until both sides have come to the same, or to what stays different."""
        began = time.monotonic()
        while True:
            looks = [side.look() for side in self.sides]
            passed = time.monotonic() - began
            running = any(RUNS in look for look in looks)
            if not running and (looks[0] == looks[1] or passed > SETTLE):
                return looks
            if passed > HANG:
                raise Differs(f"hangs: {looks}")
            time.sleep(0.005)

    def step(self, at, text):
        for side in self.sides:
            side.sessions[at].start(text)
        looks = self.settle()
        if WAITS in (looks[0][at], looks[1][at]):
            # Until a deadlock would have been found.
            time.sleep(0.06)
            looks = self.settle()
        self.compare(at, text, looks)

    def compare(self, at, text, looks):
        outcomes = [
            [session.outcome if look is None else look for session, look in zip(side.sessions, found)]
            for side, found in zip(self.sides, looks)
        ]
        if text:
            self.script.append(f"{'abc'[at]}: {text} => {outcomes[0][at]}")
        for other in sorted(self.waiting):
            if looks[0][other] is None:
                self.script.append(f"{'abc'[other]} => {outcomes[0][other]}")
        self.waiting = {other for other, look in enumerate(looks[0]) if look == WAITS}
        if outcomes[0] != outcomes[1]:
            self.excuse(text or "", *outcomes)
            said = [session.said for session in self.sides[1].sessions if session.said]
            raise Differs(f"PostgreSQL {outcomes[0]}\nAllcore    {outcomes[1]} {said}")
        states = [[session.state for session in side.sessions if not session.busy] for side in self.sides]
        if states[0] != states[1]:
            raise Differs(f"states: PostgreSQL {states[0]}, Allcore {states[1]}")

    @staticmethod
    def excuse(text, expected, given):
        """Ends the round at a difference that may be."""
        if all(any("40P01" in outcome for outcome in side if outcome) for side in (expected, given)):
            raise Ends("deadlock")
        if any("0A000" in outcome for outcome in given if outcome):
            raise Ends("unsupported")
        new = [(a or "", b or "") for a, b in zip(expected, given) if a != b]
        if any("40001" in b and "40001" not in a for a, b in new):
            raise Ends("refused in repeatable read")
        if any(a == WAITS and b != WAITS for a, b in new) and SHORTER_WAITS.search(text):
            raise Ends("shorter wait")

    def run(self, source):
        """Plays the steps that `source` gives, then commits what is open."""
        while True:
            free = self.free()
            step = source(free, [session.state for session in self.sides[0].sessions]) if free else None
            if free and step is None:
                break
            if step and step[0] in free:
                self.step(*step)
            elif not free:
                self.await_victim()
        unlocked = False
        while True:
            free = self.free()
            open_ = [at for at in free if self.sides[0].sessions[at].state != "I"]
            if open_:
                self.step(open_[0], "commit")
            elif len(free) == len(self.sides[0].sessions):
                return
            elif unlocked or not free:
                self.await_victim()
            else:
                unlocked = True
                for at in free:
                    self.step(at, "select pg_advisory_unlock_all()")

    def await_victim(self):
        """All that are left wait: one of them is about to be a deadlock's victim."""
        for _ in range(100):
            looks = self.settle()
            if any(look is None for look in looks[0]):
                return self.compare(0, None, looks)
            time.sleep(0.05)
        raise Differs("all sessions wait")

    def finish(self, queries):
        for query in queries:
            expected, given = (side.ask(query) for side in self.sides)
            if expected != given:
                raise Differs(f"{query}\nPostgreSQL {expected}\nAllcore    {given}")


def play(sides, round_, source):
    """How a round ended, what differs or None, and its script."""
    play_ = Play(sides, round_)
    try:
        play_.run(source)
        play_.finish(round_.final)
        return "same", None, play_.script
    except Ends as reason:
        return str(reason), None, play_.script
    except Differs as difference:
        return "differs", str(difference), play_.script
    finally:
        for side in sides:
            side.end()


def again(sides, round_, steps):
    """Plays fixed steps; those of a session that waits are left out."""
    rest = list(steps)

    def source(free, _states):
        while rest:
            step = rest.pop(0)
            if step[0] in free:
                return step
        return None

    return play(sides, round_, source)


def shortened(sides, round_, steps):
    """The fewest steps that still differ, with the difference and the script; None where it does
    not come again."""
    found = next((found for found in (again(sides, round_, steps) for _ in range(3)) if found[1]), None)
    size = max(len(steps) // 2, 1)
    while found and size:
        at = 0
        while at < len(steps):
            fewer = steps[:at] + steps[at + size :]
            shorter = again(sides, round_, fewer)
            if shorter[1] and shorter[1].split()[0] == found[1].split()[0]:
                steps, found = fewer, shorter
            else:
                at += size
        size //= 2
    return found


def rounds(options, sides):
    ended = {}
    for seed in range(options.seed, options.seed + options.rounds):
        round_ = Round(seed, options.mode, options.sessions)
        steps = []

        def source(free, states):
            if len(steps) < round_.length:
                steps.append(round_.step(free, states))
                return steps[-1]
            return None

        how, difference, script = play(sides, round_, source)
        if difference:
            found = shortened(sides, round_, steps)
            # Three sessions in one queue go on in an order that PostgreSQL leaves to chance.
            how = how if found else "differs once"
            if found or options.keep_going:
                print(f"\n=== seed {seed} {round_.mode}{'' if found else ', not repeated'}\ns: {round_.setup}")
                print("\n".join(found[2] if found else script))
                print(f"--- {found[1] if found else difference}", flush=True)
        ended[how] = ended.get(how, 0) + 1
        if how == "differs" and not options.keep_going:
            break
    print(", ".join(f"{count} {how}" for how, count in sorted(ended.items())))
    return 1 if "differs" in ended else 0


def main():
    parser = parser_of(__doc__, 500)
    parser.add_argument("--sessions", type=int, default=2, help="2 or 3")
    parser.add_argument("--mode", choices=Round.MODES, help="the kind of statements; else each round draws one")
    options = parser.parse_args()
    postgres = options.postgres or peer()
    if not postgres:
        return 0
    by_key = "; ".join(f"set enable_{name} = off" for name in BY_KEY.split())
    with tempfile.TemporaryDirectory() as folder:
        process, path = (None, options.server) if options.server else serve(options.allcore, Path(folder))
        try:
            sides = [Side(Path(postgres) / ".s.PGSQL.5432", by_key), Side(path, "select 1")]
            return rounds(options, sides)
        finally:
            if process:
                process.terminate()
                process.wait()


if __name__ == "__main__":
    sys.exit(main())
