#!/usr/bin/env python3
"""`make results`: docs/results.md, Allcore beside PostgreSQL 18 and MariaDB over six workloads, with plots.

  scripts/results.py [--only tpcb,tpcc] [--again tpcc] [--minutes 9] [--quick] [--write]

Each workload is a run of `allcore bench`, stored as target/results/NAME.json. Those that are there are not run again unless
--again names them (or 'all'), so that it goes on where it was cut. Then docs/results.md and docs/results/*.svg are written
from what is stored; --write does only that. Why a point is as it is, a person writes: into docs/results/causes.md, below a
heading that is the point's ('## tpcb, 1 client'), from where it is taken into the page.

The whole takes about 65 minutes: --minutes for each workload, and loading. --quick is to try the script itself: a minute
each, figures that mean nothing, and nothing below docs/ unless --into names a folder.
"""
import argparse, json, os, shutil, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SHARED = os.path.join(os.path.dirname(HERE), "shared")
TARGET = os.environ.get("CARGO_TARGET_DIR") or os.path.join(HERE, "target")
FIRST, OTHERS = "allcore", ["pg18", "mariadb"]
TITLES = {"allcore": "Allcore", "pg18": "PostgreSQL 18", "mariadb": "MariaDB"}

# Name, what it is, arguments, megabytes of buffers of each server; arguments of a quick try.
WORKLOADS = [
    ("select-only", "pgbench's select-only, scale 20", ["-w", "select-only", "--scale", "20"], 2048, ["--scale", "1"]),
    ("tpcb", "pgbench's tpcb-like, scale 20", ["-w", "tpcb-like", "--scale", "20"], 2048, ["--scale", "1"]),
    ("oltp_read_only", "sysbench's oltp_read_only, 4 tables of 100,000 rows", ["-w", "oltp_read_only"], 2048,
     ["--tables", "1", "--table-size", "1000"]),
    ("oltp_read_write", "sysbench's oltp_read_write, 4 tables of 100,000 rows, up to 5 tries",
     ["-w", "oltp_read_write", "--tries", "5"], 2048, ["--tables", "1", "--table-size", "1000"]),
    ("tpcc", "TPC-C's full mix, 10 warehouses, no thinking, up to 5 tries", ["-w", "tpcc", "--scale", "10", "--tries", "5"],
     2048, ["--scale", "1"]),
    ("eviction", "pgbench's select-only on tables four times as large as the 256 MB of buffers",
     ["-w", "eviction", "--times", "4", "--buffers", "256MB"], 256, ["--times", "0.1"]),
]
CLIENTS, QUICK_CLIENTS = "1,4,16,64,256,1000", "1,8"


def say(text):
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def postgres_programs(given):
    """The folder of PostgreSQL 18's programs."""
    usual = "/usr/lib/postgresql/18/bin"
    script = os.path.join(SHARED, "peers", "pg18.sh")
    if given or os.path.exists(f"{usual}/postgres"):
        return given or usual
    if not os.path.exists(script):
        sys.exit("results: there is no PostgreSQL 18 here: install it, or say where its programs are: --postgres FOLDER")
    folder = os.path.join(tempfile.gettempdir(), "allcore-results-pg18")
    programs = f"{folder}/package/native/bin"
    if not os.path.exists(f"{programs}/postgres"):
        say("fetching PostgreSQL 18")
        for verb in ["start", "stop"]:
            subprocess.run([script, verb, folder], check=True, stdout=subprocess.DEVNULL)
    return programs


def arms(megabytes, programs):
    return [
        f"allcore=serve:--buffers {megabytes}MiB --max-connections 1100",
        f"pg18=serve-postgres:bin={programs} shared_buffers={megabytes}MB max_wal_size=8GB checkpoint_timeout=30min",
        f"mariadb=serve-mariadb:innodb_buffer_pool_size={megabytes}M innodb_log_file_size=2G",
    ]


def measure(workload, options, stored, programs):
    name, _, arguments, megabytes, quick = workload
    part = f"{stored}.part"
    command = [options.binary, "bench", "--json", part]
    for arm in arms(megabytes, programs):
        command += ["--arm", arm]
    command += arguments
    if options.quick:
        command += quick + ["--clients", QUICK_CLIENTS, "--round", "1s", "--warmup", "200ms", "--rounds", "1"]
    else:
        command += ["--clients", CLIENTS, "--round", "5s", "--warmup", "1s", "--rounds", "3..10", "--width", "5",
                    "--time", f"{options.minutes * 60:.0f}s"]
    say(f"{name}: {' '.join(command)}")
    begun = time.monotonic()
    status = subprocess.run(command, stdout=subprocess.DEVNULL).returncode
    # 3: something is missing, which the page says.
    if status not in (0, 3):
        sys.exit(f"results: {name} ended with status {status}; what was stored before is kept: run this again to go on")
    os.replace(part, stored)
    say(f"{name}: {(time.monotonic() - begun) / 60:.1f} minutes")


def number(value):
    """As the lab's own reports write it."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


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
        return [line for line in self.report["findings"] if line.startswith(f"{arm},")]


def factor(ratio):
    value, low, high, _ = ratio
    bounds = f" ({low:.2f} to {high:.2f})" if low and high else ""
    return f"{value:.2f}{bounds}"


def table(run):
    lines = ["| clients | " + " | ".join(TITLES[arm] for arm in [FIRST, *OTHERS]) + " | Allcore / the better other one |",
             "|---:|---:|---:|---:|---:|"]
    for count in run.clients:
        cells = []
        for arm in [FIRST, *OTHERS]:
            point = run.points.get((arm, count))
            cells.append("–" if not point else f"{number(point['tps']['value'])} ± {spread(point['tps'])}")
        ratio = run.ratio(count)
        cells.append(factor(ratio) if ratio else "–")
        lines.append(f"| {count:,} | " + " | ".join(cells) + " |")
    return lines


def spread(interval):
    value, low, high = interval["value"], interval["low"], interval["high"]
    if low is None or high is None:
        return "?"
    share = 100 * max(value - low, high - value) / value
    return f"{share:.0f}%" if share < 1000 else ">999%"


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
        lines += [f"### {heading}", "",
                  f"{number(run.tps(FIRST, count))} transactions a second, {factor(ratio)} times {TITLES[ratio[3]]}'s "
                  f"{number(run.tps(ratio[3], count))}.", "",
                  written.get(heading) or "Its cause is not yet written down.", "",
                  "What the lab found on Allcore in this workload:", ""]
        lines += [f"- {line}" for line in run.findings(FIRST)] + [""]
    return lines


def page(runs, plots, into):
    """The page's text."""
    first = runs[0].report
    lines = ["# Results", "",
             "Allcore beside PostgreSQL 18 and MariaDB on the same machine, which the load driver shares with them; made by",
             "`make results` from stored runs of [the lab](lab.md). All servers are durable, as they are by default, and have the",
             "same memory for their buffers. Figures are medians of rounds in which the servers took turns, with how far",
             "their 95% interval reaches; ratios are of rounds that lie next to each other. Ratios are more to be",
             "trusted than figures.", "", "| | |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in first["machine"]["facts"]]
    lines += [f"| {TITLES[arm['name']]} | {arm['server']}, "
              + ", ".join(f"{name} {value}" for name, value in arm["settings"] if name != "bin") + " |"
              for arm in first["arms"]]
    lines += ["", *worst(runs, causes(os.path.join(into, "results", "causes.md")))]
    for run in runs:
        lines += [f"## {run.name}", "", f"{run.title}; measured {run.report['began'][:10]}.", "", *table(run), ""]
        lines += [f"![{run.name}: {what}](results/{plot})" for what, plot in plots[run.name]] + [""]
        lines += [f"- {line}" for arm in [FIRST, *OTHERS] for line in run.findings(arm) if "scalability law" not in line] + [""]
        broken = [f"{point['arm']} at {clients(point['clients'])}: {check['claim']}: {check['fault']}"
                  for point in run.report["points"] for check in point["checks"] if check["fault"]]
        for title, said in [("Broken checks", broken), ("Missing", run.report["missing"])]:
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
            subprocess.run([options.binary, "bench", "report", f"{store}/{run.name}.json", "--plots", drawn],
                           check=True, stdout=subprocess.DEVNULL)
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
    parser.add_argument("--minutes", type=float, default=9, help="for each workload, loading apart (9)")
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
        programs = postgres_programs(options.postgres)
        for workload in WORKLOADS:
            stored = f"{store}/{workload[0]}.json"
            if workload[0] in wanted and (workload[0] in again or not os.path.exists(stored)):
                measure(workload, options, stored, programs)
            elif workload[0] in wanted:
                say(f"{workload[0]}: stored already")
    write(options, store, options.into or (store if options.quick else os.path.join(HERE, "docs")))


main()
