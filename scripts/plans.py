#!/usr/bin/env python3
"""Statements by class on Allcore and on PostgreSQL 18: the same answers, and the ratios of time.

The statements stand in scripts/plans/*.sql. Both servers load the same data and have the same
memory. PostgreSQL has no parallel workers and no JIT, since Allcore runs a statement on one core.
The servers take turns. A statement first runs once to warm the buffers and to compare the answers.

A statement fails if the answers differ or Allcore reports an error, or if its ratio is over its
bar. The ratio is that of the elapsed time as the client sees it. If a statement that only reads is
over its bar, its CPU time decides. TPC-H in total takes at most PostgreSQL's time.

The status is 1 if a statement fails. target/plans/ has all figures as JSON, the answers that
differ, and the plans of statements over their bar. A run of all statements writes the tables of
docs/planner.md.
"""

import argparse
import hashlib
import re
import sys
from pathlib import Path

import fuzz
import plans_data
import plans_files
import plans_films
import plans_report
import plans_shop
import plans_tpch
from peers import say
from plans_measure import Measurement
from plans_servers import Allcore, Postgres

PAGE = fuzz.ROOT / "docs/planner.md"
FOLDER = fuzz.TARGET / "plans"
# The generators by data set. A fresh one is loaded anew in each run and never analyzed.
MODULES = {"shop": plans_shop, "films": plans_films, "tpch": plans_tpch, "tpch_fresh": plans_tpch}
UNITS = {"kib": 10, "mib": 20, "gib": 30}


def size(text):
    """Bytes, from a text such as 512MiB."""
    found = re.fullmatch(r"(\d+)([kmg]ib)", text.lower())
    if not found:
        raise argparse.ArgumentTypeError(f"a size is written as in 512MiB, not '{text}'")
    return int(found[1]) << UNITS[found[2]]


class Loader:
    """Puts data sets into both servers; those of a kept folder are there already."""

    def __init__(self, servers, options):
        self.servers, self.options = servers, options
        self.databases = {}

    def use(self, name):
        """Opens sessions in the data set's database."""
        if name not in self.databases:
            self.databases[name] = self.loaded(name)
        for server in self.servers:
            server.open(self.databases[name])

    def loaded(self, name):
        """The data set's database on both servers, loaded where it is missing."""
        fresh = name.endswith("_fresh")
        module = MODULES[name]
        scale = self.options.scale if module is plans_tpch else 1.0
        setup = name.removesuffix("_fresh")
        folder = plans_data.files(module, FOLDER / "data", scale)
        key = f"{folder.name}{plans_files.script(setup)}"
        database = f"{name}_{hashlib.sha256(key.encode()).hexdigest()[:8]}"
        for server in self.servers:
            mark = server.folder / f"loaded-{database}"
            if fresh or not mark.exists():
                self.load(server, database, folder, setup, analyze=not fresh)
                mark.touch()
        return database

    @staticmethod
    def load(server, database, folder, setup, analyze):
        say(f"loading {database} into {server.name}")
        server.command(f"drop database if exists {database}")
        server.command(f"create database {database}{server.collation}")
        session = server.open(database)
        statements = plans_files.script(setup)
        for text in statements:
            if text.lower().startswith("create table"):
                session.do(text)
        for path in sorted(folder.glob("*.tsv")):
            session.load(path.stem, path)
        for text in statements:
            if not text.lower().startswith("create table"):
                session.do(text)
        if analyze:
            session.do("vacuum analyze")


class Run:
    """All chosen statements, with their notes in files."""

    def __init__(self, servers, options):
        self.servers, self.options = servers, options
        self.loader = Loader(servers, options)
        self.results = []

    def all(self, statements):
        print(plans_report.HEAD, flush=True)
        with open(FOLDER / "faults.txt", "w", encoding="utf-8") as faults, \
                open(FOLDER / "over.txt", "w", encoding="utf-8") as over:
            for statement in statements:
                self.loader.use(statement.data)
                measurement = Measurement(statement, self.servers, self.options)
                result = measurement.run()
                self.results.append(result)
                print(plans_report.terminal(result), flush=True)
                if result.fault:
                    faults.write(f"=== {statement.title}: {result.fault}\n{statement.text}\n{result.note}\n\n")
                    faults.flush()
                elif result.missed and not statement.parameters:
                    over.write(f"=== {statement.title}\n{statement.text}\n{measurement.plans()}\n\n")
                    over.flush()
        return self.results


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--class", dest="group", metavar="NAME", help="statements whose class contains this")
    parser.add_argument("--only", metavar="REGEX", help="statements whose class and name match this")
    parser.add_argument("--rounds", type=int, default=7, help="the most rounds of a statement (7)")
    parser.add_argument("--budget", type=float, default=3, help="seconds after which no round begins (3)")
    parser.add_argument("--limit", type=float, default=30, help="seconds that a statement may take (30)")
    parser.add_argument("--scale", type=float, default=0.3, help="TPC-H's scale factor (0.3)")
    parser.add_argument("--buffers", type=size, default=1 << 30, help="both servers' buffers (1GiB)")
    parser.add_argument("--work-mem", default="64MB", help="both servers' work_mem (64MB)")
    parser.add_argument("--allcore", type=Path, default=fuzz.TARGET / "release/allcore", help="the binary")
    parser.add_argument("--keep", action="store_true", help="use the last run's databases, and keep this one's")
    parser.add_argument("--list", action="store_true", help="list the chosen statements and end")
    return parser.parse_args()


def chosen(options):
    wanted = re.compile(options.only or "", re.I)
    group = (options.group or "").lower()
    return [one for one in plans_files.statements() if wanted.search(one.title) and group in one.group.lower()]


def main():
    options = parsed()
    statements = chosen(options)
    if options.list:
        for one in statements:
            print(f"{one.data:12} {one.title}")
        return 0
    if not fuzz.PEER.exists():
        print(f"skipped: PostgreSQL 18 is not there ({fuzz.PEER})")
        return 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    servers = []
    try:
        servers.append(Postgres(options, FOLDER / "postgres"))
        servers.append(Allcore(options, FOLDER / "allcore"))
        results = Run(servers, options).all(statements)
    finally:
        for server in servers:
            server.stop()
            server.forget()
    plans_report.write_json(FOLDER / "results.json", results, options)
    if not options.group and not options.only:
        plans_report.write_page(PAGE, results, options)
    print(f"\n{plans_report.summary(results)}\n\n{plans_report.totals_table(results)}")
    faulty = [one for one in results if one.fault]
    missed = [one for one in results if one.missed]
    totals = plans_report.totals_over(results)
    print(f"\n{len(results)} statements, {len(faulty)} with faults, {len(missed)} over their bar"
          + "".join(f", {group} in total over its bar" for group in totals))
    return 1 if faulty or missed or totals else 0


if __name__ == "__main__":
    sys.exit(main())
