#!/usr/bin/env python3
"""Statements in the families of sqllogictest on PostgreSQL 18 and Allcore, compared.

Rounds of each kind come from scripts/sqllogic_statements.py, by seed. `--corpus` names a folder
with sqllogictest's own scripts, whose statements run instead. PostgreSQL judges both: rows (in
order only where the statement orders them) and SQLSTATEs must be its own. A statement that Allcore
refuses with 0A000 is unsupported, and so are those that name the object it should have made. A
statement is open if one server alone fails in a division or a product. Then the error depends on
the parts that PostgreSQL computes ahead (docs/sql.md, folded-branches).

The first statements that differ are printed, at most 5 of a round. The status is 1 if there are
any.
"""

import collections
import random
import re
import sys
import tempfile
import time
from pathlib import Path

import fuzz
import sqllogic_corpus
import sqllogic_statements
from wire import Connection, Lost

CLASSES = ("same", "unsupported", "open", "wrong")
CREATED = re.compile(r"\s*create\s+(?:\w+\s+)*?(?:view|table|index|trigger)\s+(\w+)", re.I)
SHOWN = 5


class Pair:
    """A session on each server, in databases of the same name."""

    def __init__(self, sockets, name):
        self.sockets, self.name = sockets, name
        for path in sockets:
            other = Connection(path, "postgres")
            other.query(f"drop database if exists {name}")
            error = other.query(f"create database {name} template template0 lc_collate 'C' lc_ctype 'C'")[3]
            if error:
                other.query(f"create database {name}")
            other.close()
        self.sides = [Connection(path, name) for path in sockets]

    def drop(self):
        for side, path in zip(self.sides, self.sockets):
            side.close()
            other = Connection(path, "postgres")
            other.query(f"drop database {self.name}")
            other.close()

    def run(self, statements, label):
        """How many statements are of each class. Prints those that are wrong."""
        counts, missing = collections.Counter(), set()
        for statement in statements:
            kind, expected, given = self.classified(statement, missing)
            counts[kind] += 1
            if kind == "wrong" and counts[kind] <= SHOWN:
                text = f"\n=== {label}\n{statement.text};"
                print(f"{text}\n--- PostgreSQL\n{fuzz.show(expected)}\n--- Allcore\n{fuzz.show(given)}", flush=True)
        return counts

    def classified(self, statement, missing):
        if any(re.search(rf"\b{name}\b", statement.text) for name in missing):
            return "unsupported", None, None
        expected = self.sides[0].query(statement.text)
        try:
            given = self.sides[1].query(statement.text)
        except (Lost, OSError):
            self.sides[1] = Connection(self.sockets[1], self.name)
            return "wrong", expected, ([], [], None, ("lost", "the connection is lost", None))
        if given[3] and given[3][0] == "0A000" and not expected[3]:
            created = CREATED.match(statement.text)
            missing |= {created[1]} if created else set()
            return "unsupported", expected, given
        found = fuzz.differs(expected, given, statement)
        return {None: "same", "stop": "open"}.get(found, "wrong"), expected, given


def sources(options):
    """The parts of a run: a label, the kind, and a function that gives the statements."""
    if options.corpus:
        root = Path(options.corpus)
        for path in sorted(root.rglob("*.test")):
            label = str(path.relative_to(root))
            if re.search(options.kind, label):
                kind = re.sub(r"(/\d+)?/[^/]*$", "", label)
                yield label, kind, lambda path=path: sqllogic_corpus.statements(path)
        return
    for kind in sqllogic_statements.KINDS:
        for seed in range(options.seed, options.seed + options.rounds):
            if re.search(options.kind, kind):
                make = lambda kind=kind, seed=seed: sqllogic_statements.statements(
                    kind, random.Random(f"{kind} {seed}"), options.statements)  # fmt: skip
                yield f"{kind} --seed {seed}", kind, make


def table(counts):
    lines = [f"| kind | {' | '.join(CLASSES)} |", "| --- |" + " ---: |" * len(CLASSES)]
    total = sum(counts.values(), collections.Counter())
    for kind, own in [*counts.items(), ("all", total)]:
        lines.append(f"| {kind} | {' | '.join(f'{own[name]:,}' for name in CLASSES)} |")
    return "\n".join(lines)


def main():
    parser = fuzz.parser_of(__doc__, 10)
    parser.add_argument("--statements", type=int, default=200, help="in a round, beside those that make tables")
    parser.add_argument("--kind", default="", help="a regular expression of kinds, or of scripts' paths")
    parser.add_argument("--corpus", help="a folder with sqllogictest's scripts")
    options = parser.parse_args()
    postgres = options.postgres or fuzz.peer()
    if not postgres:
        return 0
    counts = collections.defaultdict(collections.Counter)
    with tempfile.TemporaryDirectory() as folder:
        process, path = None, options.server
        if not path:
            process, path = fuzz.serve(options.allcore, Path(folder))
        try:
            for label, kind, make in sources(options):
                pair, begun = Pair([Path(postgres) / ".s.PGSQL.5432", path], "sqllogic"), time.monotonic()
                own = pair.run(make(), label)
                pair.drop()
                counts[kind] += own
                said = " ".join(f"{name} {own[name]}" for name in CLASSES if own[name])
                print(f"{label}: {said} ({time.monotonic() - begun:.1f} s)", file=sys.stderr, flush=True)
        finally:
            if process:
                process.terminate()
                process.wait()
    print(table(counts))
    return 1 if any(own["wrong"] for own in counts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
