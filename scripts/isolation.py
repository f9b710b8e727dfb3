#!/usr/bin/env python3
"""`make isolation`: PostgreSQL 18's own isolation specs, played by PostgreSQL's isolationtester
against allcore.

A spec names sessions and the order of their steps; isolationtester runs every order and writes down
what each step gave and which one waited. A spec passes when that is what PostgreSQL's source
expects, letter for letter. Without arguments the specs run that docs/isolation.md lists as passed;
all of them must pass.
"""
import argparse, glob, os, re, signal, subprocess, sys, tempfile, textwrap

from peers import HERE, TARGET, free_port, say
from pg_source import fetch
from wire import Connection, Lost

LIST = os.path.join(HERE, "docs/isolation.md")
PASS = "Specs that pass"
INTRODUCTION = """\
`make isolation` plays PostgreSQL 18's isolation specs against Allcore, with PostgreSQL's own
isolationtester and one database for each spec. It compares the output with the output that
PostgreSQL's source expects, letter for letter.

Without arguments it runs the specs that pass by this page, and all of them must pass.
`make isolation ARGS="--all --write"` runs all specs and writes this page anew. A spec that passes
stays on the list. A spec may need more than the feature under which this page lists it.

`crates/allcore/tests/specs` holds Allcore's own specs, which `make test` plays.""".splitlines()
TESTER = "lib/pgxs/src/test/isolation/isolationtester"
# Seconds: of one step that waits, and of a whole spec.
STEP, SPEC = 20, 600


def tester():
    """The path of isolationtester, which comes with Debian's packages of the server."""
    found = sorted(glob.glob(f"/usr/lib/postgresql/*/{TESTER}"))
    if not found:
        sys.exit("there is no isolationtester here: Debian's package postgresql-15 brings it")
    return found[-1]


# Features that are not built, each with a pattern; a spec needs the first one that its text has.
FEATURES = [
    ("SERIALIZABLE", r"\bserializable\b"),
    ("inheritance and partitions", r"\bpartition (by|of)\b|\binherits\b"),
    ("functions, procedures and DO", r"\bcreate (or replace )?(function|procedure)\b|\bdo \$"),
    ("triggers", r"\bcreate trigger\b"),
    ("views", r"\bcreate (materialized )?view\b"),
    ("MERGE", r"\bmerge into\b"),
    ("LISTEN and NOTIFY", r"\b(listen|notify)\b|\bpg_notify\b"),
    ("two-phase commit", r"\bprepare transaction\b"),
    ("CONCURRENTLY", r"\bconcurrently\b"),
    ("roles and privileges", r"\b(grant|revoke)\b|\bcreate (role|user)\b"),
    ("CLUSTER", r"\bcluster\b"),
    ("temporary tables", r"\bcreate temp"),
    ("generated columns", r"\bgenerated always as \("),
    ("partial and covering indexes", r"\bcreate (unique )?index [^;]*\bwhere\b|\binclude \("),
    ("index methods other than btree", r"\busing (gin|gist|hash)\b"),
    ("ranges", r"\bwithout overlaps\b|\b(date|ts|tstz|int4)range\b"),
    ("writing statements in WITH", r"\bwith [^;]*\bas \((insert|update|delete)\b"),
    ("publications", r"\bcreate publication\b"),
    ("storage parameters", r"\balter table [^;]* set \("),
    ("EXPLAIN as PostgreSQL writes it", r"\bexplain\b"),
]


def listed():
    """The specs that docs/isolation.md says pass."""
    if not os.path.exists(LIST):
        return []
    with open(LIST) as page:
        parts = page.read().split("\n## ")
    return [name for part in parts if part.startswith(PASS) for name in re.findall(r"`([^`]+)`", part)]


def needs(spec):
    """The feature that a spec needs and Allcore lacks, or None."""
    with open(spec) as text:
        lines = [line for line in text.read().lower().splitlines() if not line.lstrip().startswith("#")]
    plain = " ".join(" ".join(lines).split())
    return next((feature for feature, word in FEATURES if re.search(word, plain)), None)


def write(source, passed, failed):
    """Writes docs/isolation.md."""
    missing, wrong = {}, []
    for name, why in failed:
        feature = needs(f"{source}/specs/{name}.spec")
        missing.setdefault(feature, []).append(name) if feature else wrong.append((name, why))
    lines = ["# Isolation specs", "", *INTRODUCTION, "", f"## {PASS}", ""]
    lines += ["\n".join(textwrap.wrap(", ".join(f"`{name}`" for name in passed) + ".", 100, break_on_hyphens=False)), ""]
    lines += ["## Specs that need what is not built", "", "| needs | specs |", "|---|---|"]
    lines += [f"| {feature} | {', '.join(missing[feature])} |" for feature, _ in FEATURES if feature in missing]
    lines += ["", "## Specs that differ", "", "| spec | first difference |", "|---|---|"]
    lines += [f"| {name} | {why.replace('|', '¦')} |" for name, why in wrong]
    with open(LIST, "w") as page:
        page.write("\n".join(lines) + "\n")


class Server:
    """Allcore in a folder of its own."""

    def __init__(self, program, folder):
        self.port = free_port()
        command = [program, "serve", "--data", f"{folder}/data", "--listen", f"127.0.0.1:{self.port}", "--socket-dir", folder]
        self.path = f"{folder}/.s.PGSQL.{self.port}"
        self.log = open(f"{folder}/log", "w")
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        while not self.answers():
            if self.process.poll() is not None:
                sys.exit(f"allcore did not start; see {folder}/log")
            try:
                self.process.wait(0.05)
            except subprocess.TimeoutExpired:
                pass

    def answers(self):
        """Whether it lets clients in: while it starts, it answers that it does."""
        try:
            self.sql("select 1")
            return True
        except (Lost, OSError):
            return False

    def sql(self, text):
        Connection(self.path, "postgres").query(text)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def play(program, server, spec, database, step, limit):
    """The output of isolationtester for a spec, in a database of its own."""
    server.sql(f"create database {database}")
    target = f"host=127.0.0.1 port={server.port} user=postgres dbname={database}"
    environment = dict(os.environ, PGISOLATIONTIMEOUT=str(step), PGOPTIONS="", PGTZ="PST8PDT", PGDATESTYLE="Postgres, MDY")
    with open(spec) as given:
        try:
            done = subprocess.run([program, target], stdin=given, env=environment, timeout=limit,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        except subprocess.TimeoutExpired:
            return f"not done after {limit} s\n"
    return done.stdout.decode(errors="replace")


def reason(output, expected):
    """Why a spec does not pass: the first feature that is missing, else the first line that
    differs."""
    missing = re.search(r"ERROR:  ([^\n]* is not supported)", output)
    if missing:
        return re.sub(r'"[^"]*"', "..", missing[1])
    if "setup failed" in output:
        return re.search(r"setup failed: *(?:ERROR: *)?([^\n]*)", output)[1]
    lines, wanted = output.splitlines(), expected.splitlines()
    for at, (is_, was) in enumerate(zip(lines + [""], wanted + [""])):
        if is_ != was:
            return f"line {at + 1}: `{is_}` for `{was}`"
    return "more lines than expected"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("specs", nargs="*", help="names of specs; else those listed as passed")
    parser.add_argument("--all", action="store_true", help="all specs of PostgreSQL's source")
    parser.add_argument("--write", action="store_true", help="write docs/isolation.md from a run of all")
    parser.add_argument("--bin", default=os.path.join(TARGET, "release/allcore"), help="the server's program")
    parser.add_argument("--step", type=int, default=STEP, help="seconds after which a step that waits is cancelled")
    parser.add_argument("--limit", type=int, default=SPEC, help="seconds after which a spec is given up")
    parser.add_argument("--keep", help="a folder for what each spec gave")
    given = parser.parse_args()
    source = os.path.join(fetch(), "src/test/isolation")
    every = sorted(os.path.basename(path)[:-5] for path in glob.glob(f"{source}/specs/*.spec"))
    known = listed()
    chosen = every if given.all else given.specs or known
    passed, failed = [], []
    with tempfile.TemporaryDirectory() as folder:
        server = Server(given.bin, folder)
        try:
            for at, name in enumerate(chosen):
                output = play(tester(), server, f"{source}/specs/{name}.spec", f"spec{at}", given.step, given.limit)
                wanted = [open(path).read() for path in sorted(glob.glob(f"{source}/expected/{name}.out")
                                                             + glob.glob(f"{source}/expected/{name}_[0-9].out"))]
                if given.keep:
                    os.makedirs(given.keep, exist_ok=True)
                    with open(f"{given.keep}/{name}.out", "w") as kept:
                        kept.write(output)
                if output in wanted:
                    passed.append(name)
                else:
                    failed.append((name, reason(output, wanted[0])))
                say(f"{at + 1}/{len(chosen)} {name}: {'passes' if output in wanted else failed[-1][1]}")
        finally:
            server.stop()
    width = max((len(name) for name in chosen), default=0)
    for name in passed:
        print(f"{name:{width}}  passes")
    for name, why in failed:
        print(f"{name:{width}}  {why}")
    if given.write and given.all:
        write(source, sorted({*passed, *known}), [(name, why) for name, why in failed if name not in known])
    lost = [name for name, _ in failed if name in known]
    print(f"{len(passed)} of {len(chosen)} pass" + (f"; listed as passed and failed: {', '.join(lost)}" if lost else ""))
    sys.exit(bool(lost))


if __name__ == "__main__":
    main()
