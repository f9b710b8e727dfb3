#!/usr/bin/env python3
"""PostgreSQL 18's own regression files, statement by statement, on PostgreSQL 18 and on Allcore.

Each file has a database of its own on both servers, set up by the source's test_setup.sql. Within a
transaction each statement stands behind a savepoint: where one server alone fails, both go back, so
that they stay comparable. A statement's answer is of one class:

    same         the same rows, names and types of columns, command tags and SQLSTATE
    varies       PostgreSQL itself answers differently when it is asked again
    unsupported  Allcore says 0A000, or that a function, type, setting or catalog relation which
                 PostgreSQL has is not there
    follows      it differs and uses an object that an unsupported or following statement should
                 have changed
    known        it differs for a reason that docs/sql.md gives (scripts/conformance_known.txt names
                 the statements)
    wrong        it differs and nothing of the above explains it
    hang         no answer within the limit where PostgreSQL had one
    internal     XX000, or the connection is lost
    unasked      PostgreSQL itself had no answer within the limit

The statements that are wrong, hang or are internal stand in target/conformance/, beside those that
follow although both servers carried them out with other columns, or one alone did. The table goes
to standard output. The status is 1 where a statement is wrong, hangs, is internal or unasked, or a
file was cut short.
"""

import argparse
import collections
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import fuzz
from conformance_known import Known, NotThere
from conformance_split import Script, Step
from conformance_taint import Taint
from pg_source import fetch
from wire import Connection, Lost

# Regression files that are left out, and why.
FAULT = "a statement of it ends PostgreSQL 18 with a segmentation fault, and every session with it"
LEFT_OUT = {"sqljson": FAULT, "hash_part": FAULT}
CLASSES = ["same", "varies", "unsupported", "follows", "known", "wrong", "hang", "internal", "unasked"]
FAILED = ["wrong", "hang", "internal", "unasked"]
SHOWN = ["wrong", "hang", "internal", "follows"]
# An error that says an object is not there, or that what was to be told of it can't be.
NOT_THERE = ("42P01", "42703", "42704", "42883", "3F000", "26000", "34000", "25P02", "42P17")
# PostgreSQL gives objects that users make numbers above this; those numbers are not compared.
FIRST_OWN = 16384
COPY_FILE = re.compile(r"\s*copy\s+(.*?)\s+from\s+'([^']+)'", re.I | re.S)
COPY_TO_FILE = re.compile(r"\s*copy\s+.*\bto\s+'", re.I | re.S)
CONTROL = re.compile(
    r"\s*(begin|start|commit|end|rollback|abort|savepoint|release|prepare\s+transaction|set\s+(local\s+)?transaction"
    r"|set\s+session\s+characteristics|lock|declare)\b", re.I)
EXPLAIN = re.compile(r"\s*explain\b", re.I)
ORDERED = re.compile(r"\border\s+by\b", re.I)
QUERY = re.compile(r"\s*(select|values|table|with|\()", re.I)
COMMENTS = re.compile(r"(?:\s+|/\*.*?\*/|--[^\n]*\n)+", re.S)
READS_CATALOG = re.compile(r"\b(?:pg_[a-z_]+|information_schema)\b", re.I)
INTERNAL = re.compile(r'function "\w+" does not exist')
CATALOG = re.compile(r'relation "(pg_|information_schema\.)')


def without_comments(text):
    """The text without the comments and white space before it."""
    found = COMMENTS.match(text)
    return text[found.end():] if found else text


class Stuck(Exception):
    """A statement that has no answer within the limit."""


def opened(path, database, limit=60):
    """A connection; a server that restarts after a crash of another session's is waited for."""
    until = time.monotonic() + 60
    while True:
        try:
            return Connection(path, database, limit)
        except (Lost, OSError):
            if time.monotonic() > until:
                raise
            time.sleep(0.5)


class Pair:
    """A session on each server, in databases of the same name."""

    def __init__(self, sockets, name, limit, keywords):
        self.sockets, self.name, self.limit, self.keywords = sockets, name, limit, keywords
        self.sides = []
        for path in sockets:
            other = opened(path, "postgres")
            other.query(f"drop database if exists {name}")
            other.query(f"create database {name}")
            other.close()
        self.connect()

    def connect(self):
        for side in self.sides:
            side.close()
        self.sides = [opened(path, self.name, self.limit) for path in self.sockets]
        self.sides[0].query("set datestyle = 'Postgres, MDY'; set timezone = 'America/Los_Angeles'; set intervalstyle = 'postgres_verbose'")
        self.sides[1].query("set datestyle = 'Postgres, MDY'")
        self.sides[1].query("set timezone = 'America/Los_Angeles'")
        self.sides[1].query("set intervalstyle = 'postgres_verbose'")

    def drop(self):
        for side in self.sides:
            side.close()
        for path in self.sockets:
            other = opened(path, "postgres")
            other.query(f"drop database {self.name}")
            other.close()

    def ask(self, number, step):
        side = self.sides[number]
        data = step.data.encode(errors="surrogateescape") if step.data is not None else None
        try:
            return side.ask(step.texts[number], data)
        except TimeoutError:
            return self.cancelled(side)

    def cancelled(self, side):
        """A statement that took too long is cancelled; without an answer to that the session is
        stuck."""
        side.cancel()
        side.input = side.socket.makefile("rb")
        try:
            side.results()
        except (TimeoutError, Lost, OSError):
            pass
        raise Stuck


def seen(results, ordered, rows_matter):
    """The parts of the results that are compared."""
    out = []
    for columns, rows, tag, error in results:
        described = [(name, 0 if type_ >= FIRST_OWN else type_) for name, type_ in columns]
        if error:
            out.append(("error", error[0]))
        elif not rows_matter:
            out.append((described, tag))
        else:
            out.append((described, rows if ordered else sorted(rows, key=repr), tag))
    return out


class File:
    """One regression file on both servers."""

    def __init__(self, pair, variables, note, known, not_there):
        self.pair, self.variables, self.note, self.known, self.not_there = pair, variables, note, known, not_there
        self.taint = Taint(pair.keywords)
        self.counts = collections.Counter()

    def run(self, path, counted):
        script = Script(path.read_text(encoding="utf-8", errors="surrogateescape"), self.variables)
        for step in script.steps():
            if step.text == "\\c":
                self.pair.connect()
                self.taint.role = False
                continue
            if COPY_TO_FILE.match(step.text):
                continue
            kind = self.step(path, self.plain(step))
            if counted and kind:
                self.counts[kind] += 1

    def plain(self, step):
        """COPY from a file of the source's becomes COPY FROM STDIN, for both read the same bytes
        then."""
        found = COPY_FILE.match(step.text)
        if found and os.path.isfile(found[2]):
            data = Path(found[2]).read_text(encoding="utf-8", errors="surrogateescape")
            rest = [COPY_FILE.sub(r"copy \1 from stdin", text, count=1) for text in step.texts]
            return Step(step.line, tuple(rest), data)
        return step

    def step(self, path, step):
        pair, text = self.pair, without_comments(step.text)
        guarded = pair.sides[0].state == "T" == pair.sides[1].state and not CONTROL.match(text)
        if guarded:
            for number in (0, 1):
                pair.ask(number, Step(0, "savepoint conformance"))
        try:
            expected = pair.ask(0, step)
        except Stuck:
            pair.connect()
            return "unasked"
        kind, given = self.classified(step, text, expected)
        if kind == "wrong" and self.known.explains(path.stem, text):
            kind = "known"
        if kind in SHOWN and (kind != "follows" or self.doubtful(expected, given)):
            self.note(kind, path, step, expected, given)
        if kind in ("hang", "internal") or pair.sides[0].state != pair.sides[1].state:
            self.again(guarded, given)
        if kind in ("same", "varies"):
            self.taint.same(text)
        else:
            self.taint.statement(text)
        if step.ended_by.startswith("\\gset"):
            # Where Allcore gave no row, PostgreSQL's values stand for its own.
            self.gset(step, self.variables[0], expected)
            self.gset(step, self.variables[1], expected)
            self.gset(step, self.variables[1], given or [])
        return kind

    def again(self, guarded, given):
        """Both sessions go back to where they can be compared."""
        pair = self.pair
        if given is None:
            pair.connect()
        elif guarded and all(side.state in "TE" for side in pair.sides):
            for number in (0, 1):
                pair.ask(number, Step(0, "rollback to savepoint conformance"))
        elif any(side.state in "TE" for side in pair.sides):
            for number in (0, 1):
                pair.ask(number, Step(0, "rollback"))

    def classified(self, step, text, expected):
        """The class, and Allcore's results where it gave any. `text` is the statement's without
        leading comments."""
        pair = self.pair
        begun = time.monotonic()
        try:
            given = pair.ask(1, step)
        except Stuck:
            return "hang", None
        except (Lost, OSError):
            return "internal", None
        ordered = bool(ORDERED.search(text))
        rows_matter = not EXPLAIN.match(text)
        a, b = seen(expected, ordered, rows_matter), seen(given, ordered, rows_matter)
        if a == b:
            return "same", given
        codes = [error[0] for _, _, _, error in given if error]
        if any(code.startswith("XX") for code in codes):
            return "internal", given
        if any(code == "0A000" for code in codes) or self.lacking(expected, given):
            return "unsupported", given
        if self.taint.explains(text, expected, given) or READS_CATALOG.search(text) and self.taint.rows(expected, given):
            return "follows", given
        if QUERY.match(text) and pair.sides[0].state == "I" and time.monotonic() - begun < pair.limit:
            try:
                if seen(pair.ask(0, step), ordered, True) != a:
                    return "varies", given
            except Stuck:
                pass
        return "wrong", given

    def lacking(self, expected, given):
        """Whether Allcore names a function that docs/sql.md lists, or a type, setting or relation
        of the catalog."""
        theirs = [error[0] for _, _, _, error in expected if error]
        for _, _, _, error in given:
            if error and error[0] not in theirs:
                if error[0] == "42883" and not error[1].startswith("operator"):
                    return bool(INTERNAL.match(error[1])) or self.not_there.names(error[1])
                return error[0] in ("42883", "42704") or bool(error[0] == "42P01" and CATALOG.search(error[1]))
        return False

    @staticmethod
    def doubtful(expected, given):
        """Whether what a statement follows from may not be all: both servers carried it out, and it
        has other columns, or one alone did for a reason that is no missing object."""
        theirs, ours = ([error[0] for _, _, _, error in results if error] for results in (expected, given))
        if not theirs and not ours:
            return [columns for columns, _, _, _ in expected] != [columns for columns, _, _, _ in given]
        return bool(theirs) != bool(ours) and (theirs + ours)[0] not in NOT_THERE

    @staticmethod
    def gset(step, own, results):
        """Keeps the columns of a single row as variables of the server that gave it."""
        prefix = step.ended_by.split(maxsplit=1)[1:] or [""]
        for columns, rows, _, _ in results:
            if len(rows) == 1:
                for (name, _), value in zip(columns, rows[0]):
                    name = prefix[0].strip() + name
                    own[name] = own.get(name, "") if value is None and name in own else value or ""


def show(results):
    if results is None:
        return "no answer"
    lines = []
    for columns, rows, tag, error in results:
        if error:
            lines.append(f"{error[0]} {error[1]}")
            continue
        lines.append(f"{tag} {columns}" if columns else str(tag))
        lines += [str(row)[:300] for row in rows[:8]]
    return "\n".join(lines)


class Notes:
    """The statements to look at, a file for each class."""

    def __init__(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        self.files = {kind: open(folder / f"{kind}.txt", "w", encoding="utf-8", errors="replace") for kind in SHOWN}

    def __call__(self, kind, path, step, expected, given):
        text = f"=== {path.stem}:{step.line}\n{step.text[:1500]}\n--- PostgreSQL\n{show(expected)}\n--- Allcore\n{show(given)}\n\n"
        self.files[kind].write(text)
        self.files[kind].flush()


class Server:
    """Allcore, started anew where it is gone or stuck."""

    def __init__(self, binary, folder):
        self.binary, self.folder, self.count = binary, Path(folder), 0
        self.process, self.socket = None, None

    def ready(self):
        if self.process and self.process.poll() is None:
            try:
                Connection(self.socket, "postgres", 20).close()
                return self.socket
            except (Lost, OSError):
                self.stop()
        self.count += 1
        folder = self.folder / str(self.count)
        folder.mkdir()
        self.process, self.socket = fuzz.serve(self.binary, folder)
        return self.socket

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def table(counts, files):
    total = sum(counts.values()) or 1
    lines = [f"{total} statements of {files} files", "", "| class | statements | share |", "| --- | ---: | ---: |"]
    return "\n".join(lines + [f"| {kind} | {counts[kind]} | {100 * counts[kind] / total:.1f}% |" for kind in CLASSES])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="names of regression files, all by default")
    parser.add_argument("--allcore", default=fuzz.TARGET / "release/allcore", help="the binary")
    parser.add_argument("--limit", type=float, default=20, help="seconds for a statement")
    options = parser.parse_args()
    peer = fuzz.peer()
    if not peer:
        return 0
    source = Path(fetch()) / "src/test/regress"
    postgres = Path(peer) / ".s.PGSQL.5432"
    names = options.files or sorted(path.stem for path in (source / "sql").glob("*.sql") if path.stem != "test_setup")
    for name in LEFT_OUT.keys() & set(names):
        print(f"{name} is left out: {LEFT_OUT[name]}", file=sys.stderr)
    names = [name for name in names if name not in LEFT_OUT]
    known = Known()
    notes = Notes(Path(fuzz.TARGET) / "conformance")
    counts, cut = collections.Counter(), []
    asked = opened(postgres, "postgres")
    keywords = frozenset(row[0] for row in asked.query("select word from pg_get_keywords()")[1])
    not_there = NotThere({row[0] for row in asked.query("select proname from pg_proc where pronamespace = 'pg_catalog'::regnamespace")[1]})
    per_file = open(Path(fuzz.TARGET) / "conformance/files.txt", "w", encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        server = Server(options.allcore, folder)
        for done, name in enumerate(names, 1):
            pair = Pair([postgres, server.ready()], f"conformance_{os.getpid()}", options.limit, keywords)
            variables = [{"PG_ABS_SRCDIR": str(source), "PG_LIBDIR": "/nonexistent", "PG_DLSUFFIX": ".so"} for _ in (0, 1)]
            file = File(pair, variables, notes, known, not_there)
            begun = time.monotonic()
            try:
                setup = File(pair, variables, lambda *_: None, Known("", ""), not_there)
                setup.run(source / "sql/test_setup.sql", False)
                file.taint = setup.taint
                file.run(source / "sql" / f"{name}.sql", True)
                pair.drop()
            except (Lost, OSError, Stuck) as fault:
                cut.append(name)
                print(f"{name}: cut short by {type(fault).__name__}: {fault}", file=sys.stderr)
            counts += file.counts
            line = " ".join(f"{kind} {file.counts[kind]}" for kind in CLASSES if file.counts[kind])
            per_file.write(f"{name}: {line}\n")
            per_file.flush()
            print(f"[{done}/{len(names)}] {name}: {line} ({time.monotonic() - begun:.1f} s)", file=sys.stderr, flush=True)
        server.stop()
    print(table(counts, len(names)))
    for line in known.unused(names):
        print(f"matches nothing any more: {line}", file=sys.stderr)
    if cut:
        print(f"cut short: {', '.join(cut)}")
    return 1 if cut or any(counts[kind] for kind in FAILED) else 0


if __name__ == "__main__":
    sys.exit(main())
