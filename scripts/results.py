#!/usr/bin/env python3
"""`make results`: docs/results.md, Allcore beside PostgreSQL 18 and MariaDB over six workloads, with plots.

  scripts/results.py [--only tpcb,tpcc] [--again tpcc] [--minutes 12] [--lacking] [--quick] [--write]

Each workload is a run of `allcore bench`, stored as target/results/NAME.json. Those that are there are not run again unless
--again names them (or 'all'), so that it goes on where it was cut. Then docs/results.md and docs/results/*.svg are written
from what is stored; --write does only that. Why a point is as it is, a person writes: into docs/results/causes.md, below a
heading that is the point's ('## tpcb, 1 client'), from where it is taken into the page.

Before anything is measured each server is started and asked for a moment. A run in which a server has no figure at some
number of clients is not stored, unless --lacking says so: the page then says what is missing.

The whole takes about 80 minutes: --minutes for each workload, and loading. --quick is to try the script itself: a minute
each, figures that mean nothing, and nothing below docs/ unless --into names a folder.
"""
import argparse, itertools, json, os, shutil, subprocess, sys, tempfile, time
from peers import HERE, TARGET, postgres_programs, say

FIRST, OTHERS = "allcore", ["pg18", "mariadb"]
TITLES = {"allcore": "Allcore", "pg18": "PostgreSQL 18", "mariadb": "MariaDB"}

# Name, what it is, arguments, megabytes of buffers of each server; arguments of a quick try.
WORKLOADS = [
    ("select-only", "pgbench's select-only, scale 20", ["-w", "select-only", "--scale", "20"], 2048, ["--scale", "1"]),
    ("tpcb", "pgbench's tpcb-like, scale 20", ["-w", "tpcb-like", "--scale", "20"], 2048, ["--scale", "1"]),
    ("oltp_read_only", "sysbench's oltp_read_only, 4 tables of 100,000 rows", ["-w", "oltp_read_only"], 2048,
     ["--tables", "1", "--table-size", "1000"]),
    ("oltp_read_write", "sysbench's oltp_read_write, 4 tables of 100,000 rows", ["-w", "oltp_read_write"], 2048,
     ["--tables", "1", "--table-size", "1000"]),
    ("tpcc", "TPC-C's full mix, 10 warehouses, no thinking, up to 5 tries", ["-w", "tpcc", "--scale", "10", "--tries", "5"],
     2048, ["--scale", "1"]),
    ("eviction", "pgbench's select-only on tables four times as large as the 256 MB of buffers",
     ["-w", "eviction", "--times", "4", "--buffers", "256MB"], 256, ["--times", "0.1"]),
]
CLIENTS, QUICK_CLIENTS = [1, 4, 16, 64, 256, 1000], [1, 8]

# Of each server's settings those that the page shows: memory, log, durability, connections.
SETTINGS = [
    "buffers", "shared_buffers", "max_wal_size", "checkpoint_timeout", "fsync", "full_page_writes", "synchronous_commit",
    "max-connections", "max_connections", "innodb_buffer_pool_size", "innodb_log_file_size", "innodb_doublewrite",
    "innodb_flush_log_at_trx_commit", "innodb_flush_method", "sync_binlog",
]


def arms(megabytes, programs):
    return [
        f"allcore=serve:--buffers {megabytes}MiB --max-connections 1100",
        f"pg18=serve-postgres:bin={programs} shared_buffers={megabytes}MB max_wal_size=8GB checkpoint_timeout=30min",
        f"mariadb=serve-mariadb:innodb_buffer_pool_size={megabytes}M innodb_log_file_size=2G",
    ]


def bench(options, megabytes, programs, arguments, stored):
    """Runs the lab with all arms; its status."""
    command = [options.binary, "bench", "--json", stored]
    for arm in arms(megabytes, programs):
        command += ["--arm", arm]
    command += arguments
    say(" ".join(command))
    return subprocess.run(command, stdout=subprocess.DEVNULL).returncode


def lacking(path, clients):
    """Where a stored run has no figure: arm and clients."""
    with open(path) as file:
        points = {(point["arm"], point["clients"]) for point in json.load(file)["points"]}
    return [(arm, count) for arm in [FIRST, *OTHERS] for count in clients if (arm, count) not in points]


def try_servers(options, programs):
    """Whether each server starts and answers is found out in a moment, not after hours without one of them."""
    say("trying the servers")
    with tempfile.TemporaryDirectory() as folder:
        tried = f"{folder}/tried.json"
        arguments = ["-w", "select-only", "--scale", "1", "--clients", "1", "--round", "500ms", "--warmup", "100ms",
                     "--rounds", "1"]
        status = bench(options, 128, programs, arguments, tried)
        if not os.path.exists(tried):
            sys.exit(f"results: the servers can't be measured (status {status}): see above")
        if without := lacking(tried, [1]):
            sys.exit(f"results: {', '.join(TITLES[arm] for arm, _ in without)} can't be measured: see above")


def measure(workload, options, stored, programs):
    name, _, arguments, megabytes, quick = workload
    part = f"{stored}.part"
    if os.path.exists(part):
        os.remove(part)
    wanted = QUICK_CLIENTS if options.quick else CLIENTS
    arguments = arguments + ["--clients", ",".join(map(str, wanted))]
    if options.quick:
        arguments += quick + ["--round", "1s", "--warmup", "200ms", "--rounds", "1"]
    else:
        arguments += ["--round", "4s", "--warmup", "3s", "--rounds", "3..10", "--width", "5",
                      "--time", f"{options.minutes * 60:.0f}s"]
    say(f"measuring {name}")
    begun = time.monotonic()
    status = bench(options, megabytes, programs, arguments, part)
    # 3: something is missing, which the page says.
    if status not in (0, 3):
        sys.exit(f"results: {name} ended with status {status}; what was stored before is kept: run this again to go on")
    without = [f"{TITLES[arm]} with {clients(count)}" for arm, count in lacking(part, wanted)]
    if without and not options.lacking:
        sys.exit(f"results: {name} has no figure of {', '.join(without)} (it is kept as {part}): run this again, or store "
                 "what there is with --lacking")
    os.replace(part, stored)
    say(f"{name}: {(time.monotonic() - begun) / 60:.1f} minutes")


def number(value):
    """As the lab's own reports write it: three significant digits, whole from 100 on, thousands apart."""
    if value is None:
        return "–"
    size = abs(value)
    digits = 0 if size >= 99.95 or size == 0 else 1 if size >= 9.995 else 2 if size >= 0.9995 else 3
    return f"{value:,.{digits}f}"


def percent(share):
    """As the lab's own reports write it."""
    value = 100 * share
    return f"{value:.1f}%" if 0 < value < 9.95 or 99 < value < 99.95 else f"{value:.0f}%"


def clients(count):
    return "1 client" if count == 1 else f"{count:,} clients"


class Run:
    """A stored run."""

    def __init__(self, workload, path):
        self.name, self.title = workload[:2]
        with open(path) as file:
            self.report = json.load(file)
        self.points = {(point["arm"], point["clients"]): point for point in self.report["points"]}
        self.clients = sorted({count for _, count in self.points})
        self.said, self.missing = [], []

    def read(self, markdown):
        """What the program finds in the run now, rather than what one found that may have been older, and what it misses."""
        with open(markdown) as file:
            text = file.read().splitlines()

        def listed(title):
            lines = iter(text)
            found = f"**{title}**" in lines and next(lines) == ""
            return [line.removeprefix("- ") for line in itertools.takewhile(str.strip, lines)] if found else []

        self.said, self.missing = listed("Findings"), listed("Missing")

    def tps(self, arm, count):
        point = self.points.get((arm, count))
        return point["tps"]["value"] if point else None

    def ratio(self, count):
        """Allcore's throughput over that of the better other one, its bounds, and who that is; None where one lacks."""
        own = self.points.get((FIRST, count))
        others = [point for arm in OTHERS if (point := self.points.get((arm, count))) and point["ratio"]]
        if not own or not others:
            return None
        best = max(others, key=lambda point: point["ratio"]["value"])
        turned = lambda value: 1 / value if value else None
        ratio = best["ratio"]
        return turned(ratio["value"]), turned(ratio["high"]), turned(ratio["low"]), best["arm"]

    def findings(self, arm):
        """What the lab found on an arm, without what the page's headings say: arm and workload."""
        for line in self.said:
            if line.startswith(f"{arm}, "):
                about, said = line.split(": ", 1)
                against = about.partition(", against ")[2]
                yield f"against {TITLES[against]}: {said}" if against else said

    def findings_of_none(self):
        """What it found on the machine, or the run as a whole."""
        return [line for line in self.said if not any(line.startswith(f"{arm}, ") for arm in [FIRST, *OTHERS])]

    def about(self):
        """The machine and the servers, by name."""
        about = {name: value for name, value in self.report["machine"]["facts"] if not name.endswith(" at start")}
        servers = {TITLES[arm["name"]]: ", ".join([version(arm["server"]), *settings(arm)]) for arm in self.report["arms"]}
        return about | servers


def factor(ratio):
    value, low, high, _ = ratio
    within = f" ({low:.2f} to {high:.2f})" if low and high else ", unproven"
    return f"{value:.2f}{within}"


def none_shown(ratio):
    """Whether the interval leaves open who is faster."""
    _, low, high, _ = ratio
    return bool(low and high and low <= 1 <= high)


def summary(runs):
    """All workloads' ratios in one table."""
    counts = sorted({count for run in runs for count in run.clients})
    lines = ["Allcore's throughput over that of the better other one, in parentheses where no difference is shown, by clients:",
             "", "| | " + " | ".join(f"{count:,}" for count in counts) + " |", "|---|" + "---:|" * len(counts)]
    for run in runs:
        ratios = [run.ratio(count) for count in counts]
        cells = ["–" if not ratio else f"({ratio[0]:.2f})" if none_shown(ratio) else f"{ratio[0]:.2f}" for ratio in ratios]
        lines.append(f"| [{run.name}](#{run.name}) | " + " | ".join(cells) + " |")
    return lines


def table(run):
    lines = ["| clients | " + " | ".join(TITLES[arm] for arm in [FIRST, *OTHERS]) + " | Allcore / the better other one |",
             "|---:|---:|---:|---:|---:|"]
    for count in run.clients:
        cells = []
        for arm in [FIRST, *OTHERS]:
            point = run.points.get((arm, count))
            cells.append("–" if not point else f"{number(point['tps']['value'])}{spread(point['tps'])}")
        ratio = run.ratio(count)
        cells.append("–" if not ratio else f"{factor(ratio)}, no difference" if none_shown(ratio) else factor(ratio))
        lines.append(f"| {count:,} | " + " | ".join(cells) + " |")
    return lines


def spread(interval):
    value, low, high = interval["value"], interval["low"], interval["high"]
    if low is None or high is None:
        return ", one round"
    share = max(value - low, high - value) / value
    return f" ± {percent(share)}" if share < 10 else " ± >999%"


def cpu(run):
    """Where the machine's CPU time went, of each point the rounds' mean."""
    lines = ["CPU time in percent: server, driver, others, idle.", "",
             "| clients | " + " | ".join(TITLES[arm] for arm in [FIRST, *OTHERS]) + " |", "|---:|---:|---:|---:|"]
    for count in run.clients:
        cells = []
        for arm in [FIRST, *OTHERS]:
            rounds = run.points.get((arm, count), {"rounds": []})["rounds"]
            seen = [split for one in rounds if (split := one["observed"]["cpu"])]
            mean = lambda *parts: sum(split[part] for split in seen for part in parts) / len(seen)
            parts = [("server_user", "server_kernel"), ("client",), ("other",), ("idle",)]
            cells.append(", ".join(f"{100 * mean(*part):.0f}" for part in parts) if seen else "–")
        lines.append(f"| {count:,} | " + " | ".join(cells) + " |")
    return lines


def causes(path):
    """What a person wrote of points: heading to text."""
    found, heading = {}, None
    if os.path.exists(path):
        for line in open(path):
            if line.startswith("## "):
                heading = line[3:].strip()
                found[heading] = []
            elif heading:
                found[heading].append(line.rstrip())
    return {heading: "\n".join(lines).strip() for heading, lines in found.items()}


def worst(runs, written):
    """The three points at which Allcore is least against the better other one."""
    points = [(ratio, run, count) for run in runs for count in run.clients if (ratio := run.ratio(count))]
    points.sort(key=lambda point: point[0][0])
    lines = ["## The three worst points of Allcore", "",
             "Those with the least throughput against the better one of the others.", ""]
    for ratio, run, count in points[:3]:
        heading = f"{run.name}, {clients(count)}"
        if not written.get(heading):
            say(f"causes.md has nothing on '## {heading}', one of the three worst points")
        lines += [f"### {heading}", "",
                  f"{number(run.tps(FIRST, count))} transactions a second, {factor(ratio)} times {TITLES[ratio[3]]}'s "
                  f"{number(run.tps(ratio[3], count))}{': no difference is shown' if none_shown(ratio) else ''}.", "",
                  written.get(heading) or "Its cause is not yet written down.", ""]
    return lines


def version(server):
    """Without what it was built for and with."""
    return server.partition(" on ")[0]


def settings(arm):
    return [f"{name} {value}" for name, value in arm["settings"] if name in SETTINGS]


def page(runs, plots, into):
    """The page's text."""
    about = runs[0].about()
    lines = ["# Results", "",
             "Allcore beside PostgreSQL 18 and MariaDB on the same machine, which the load driver shares with them; made by",
             "`make results` from stored runs of [the lab](lab.md). All servers are durable, as they are by default, and have the",
             "same memory for their buffers. Figures are medians of rounds in which the servers took turns, with how far",
             "their 95% interval reaches; ratios are of rounds that lie next to each other. Ratios are more to be",
             "trusted than figures.", "", "| | |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in about.items()]
    lines += ["", *summary(runs), "", *worst(runs, causes(os.path.join(into, "results", "causes.md")))]
    for run in runs:
        lines += [f"## {run.name}", "", f"{run.title}; measured {run.report['began'][:10]}."]
        lines += [f"{name}: {value}." for name, value in run.about().items() if about.get(name) != value]
        lines += ["", *table(run), ""]
        lines += [f"![{run.name}: {what}](results/{plot})" for what, plot in plots[run.name]] + [""]
        lines += [*cpu(run), ""]
        for arm in [FIRST, *OTHERS]:
            said = list(run.findings(arm))
            lines += [f"{TITLES[arm]}:", "", *(f"- {line}" for line in said), ""] if said else []
        broken = [f"{point['arm']} at {clients(point['clients'])}: {check['claim']}: {check['fault']}"
                  for point in run.report["points"] for check in point["checks"] if check["fault"]]
        for title, said in [("The run", run.findings_of_none()), ("Broken checks", broken), ("Missing", run.missing)]:
            if said:
                lines += [f"{title}:", "", *(f"- {line}" for line in said), ""]
    return "\n".join(lines).rstrip() + "\n"


def write(options, store, into):
    runs = [Run(workload, path) for workload in WORKLOADS if os.path.exists(path := f"{store}/{workload[0]}.json")]
    if not runs:
        sys.exit("results: nothing is stored yet")
    folder = os.path.join(into, "results")
    os.makedirs(folder, exist_ok=True)
    plots = {}
    for run in runs:
        with tempfile.TemporaryDirectory() as drawn:
            subprocess.run([options.binary, "bench", "report", f"{store}/{run.name}.json", "--plots", drawn,
                            "--markdown", f"{drawn}/run.md"], check=True, stdout=subprocess.DEVNULL)
            run.read(f"{drawn}/run.md")
            plots[run.name] = []
            for what in ["tps", "efficiency", "p99"]:
                for file in os.listdir(drawn):
                    if file.endswith(f"-{what}.svg"):
                        plots[run.name].append((what, f"{run.name}-{what}.svg"))
                        shutil.copy(os.path.join(drawn, file), os.path.join(folder, f"{run.name}-{what}.svg"))
    with open(os.path.join(into, "results.md"), "w") as file:
        file.write(page(runs, plots, into))
    lacking = [workload[0] for workload in WORKLOADS if workload[0] not in plots]
    say(f"written: {into}/results.md" + (f"; without {', '.join(lacking)}" if lacking else ""))


def main():
    usage, text = __doc__.split("\n\n", 1)
    parser = argparse.ArgumentParser(description=usage, epilog=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="these workloads, by commas")
    parser.add_argument("--again", default="", help="run these again though they are stored, by commas, or all")
    parser.add_argument("--minutes", type=float, default=12, help="for each workload, loading apart (12)")
    parser.add_argument("--lacking", action="store_true", help="store runs though a server has no figure somewhere")
    parser.add_argument("--quick", action="store_true", help="try the script itself")
    parser.add_argument("--write", action="store_true", help="run nothing, write the page from what is stored")
    parser.add_argument("--into", help="folder of the page (docs; of a quick try, that of its stored runs)")
    parser.add_argument("--postgres", help="folder of PostgreSQL 18's programs")
    parser.add_argument("--binary", default=os.path.join(TARGET, "release", "allcore"), help="the program")
    options = parser.parse_args()
    names = [workload[0] for workload in WORKLOADS]
    wanted = options.only.split(",") if options.only else names
    again = names if options.again == "all" else [name for name in options.again.split(",") if name]
    if unknown := [name for name in wanted + again if name not in names]:
        sys.exit(f"results: there is no workload {', '.join(unknown)}: there are {', '.join(names)}")
    store = os.path.join(TARGET, "results-quick" if options.quick else "results")
    os.makedirs(store, exist_ok=True)
    if not options.write:
        due = [name for name in wanted if name in again or not os.path.exists(f"{store}/{name}.json")]
        programs = postgres_programs(options.postgres) if due else None
        if due:
            try_servers(options, programs)
        for workload in WORKLOADS:
            stored = f"{store}/{workload[0]}.json"
            if workload[0] in due:
                measure(workload, options, stored, programs)
            elif workload[0] in wanted:
                say(f"{workload[0]}: stored already")
    write(options, store, options.into or (store if options.quick else os.path.join(HERE, "docs")))


main()
