"""The tables of scripts/plans.py: on the terminal, in docs/planner.md, and all of it as JSON."""

import json
import math
import textwrap
import time
from collections import defaultdict

BEGIN, END = "<!-- plans: begin -->", "<!-- plans: end -->"
WORST = 30
TOTALS = ("TPC-H without ANALYZE", "TPC-H", "films")
# TPC-H as a whole takes at most PostgreSQL's time.
TOTAL_BAR = {"TPC-H without ANALYZE": 1.0, "TPC-H": 1.0}


def milliseconds(result, number):
    """A server's time; the limit with a sign where it did not answer within it."""
    seconds = result.time(number)
    if seconds is None:
        return "-"
    text = f"{seconds * 1000:,.0f}" if seconds >= 0.1 else f"{seconds * 1000:.2f}"
    return f"> {text}" if result.sides[number].over else text


def ratio(value):
    return "-" if value is None else f"{value:.2f}"


def mark(result):
    if result.fault:
        return result.fault
    return "over" if result.missed else ""


def row(result):
    """The cells of a statement: times, ratios, mark."""
    sign = "> " if result.sides[1].over else "< " if result.sides[0].over else ""
    sign = sign if result.ratio else ""
    return [milliseconds(result, 1), milliseconds(result, 0), sign + ratio(result.ratio), ratio(result.work_ratio),
            mark(result)]


def terminal(result):
    """A line of progress with a statement's figures."""
    ours, theirs, times, work, word = row(result)
    return f"{result.statement.title[:76]:76} {ours:>10} {theirs:>10} {times:>8} {work:>6} {word}"


HEAD = f"{'statement':76} {'Allcore':>10} {'PostgreSQL':>10} {'ratio':>8} {'CPU':>6}"


def by_class(results):
    groups = defaultdict(list)
    for result in results:
        groups[result.statement.group].append(result)
    return groups


def table(head, rows):
    """A table in Markdown; all columns but those of names are numbers."""
    dashes = ["---" if name in ("class", "statement", "mark", "query") else "---:" for name in head]
    lines = [head, dashes, *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def summary(results):
    rows = []
    for group, members in by_class(results).items():
        ratios = [one.judged for one in members if one.judged]
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None
        faults = sum(bool(one.fault) for one in members)
        rows.append([group, str(len(members)), ratio(mean), ratio(max(ratios, default=None)),
                     f"{members[0].statement.bar:.1f}", str(sum(one.missed for one in members)), str(faults)])
    return table(["class", "statements", "mean", "worst", "bar", "over", "faults"], rows)


def totals(results):
    """(class, Allcore's seconds, PostgreSQL's, ratio, statements of each that were cancelled) of
    the classes that are judged as a whole."""
    found = []
    for group in TOTALS:
        timed = [one for one in by_class(results).get(group, []) if one.ratio]
        if timed:
            sums = [sum(one.time(number) for one in timed) for number in (1, 0)]
            cancelled = [sum(one.sides[number].over for one in timed) for number in (1, 0)]
            found.append((group, *sums, sums[0] / sums[1], *cancelled))
    return found


def totals_over(results):
    return [group for group, _, _, value, _, _ in totals(results) if value > TOTAL_BAR.get(group, math.inf)]


def totals_table(results):
    rows = [[group, f"{ours:.2f}", f"{theirs:.2f}", ratio(value), str(cancelled), str(theirs_cancelled)]
            for group, ours, theirs, value, cancelled, theirs_cancelled in totals(results)]
    return table(["class", "Allcore s", "PostgreSQL s", "ratio", "Allcore cancelled", "PostgreSQL cancelled"], rows)


def worst(results):
    rated = sorted((one for one in results if one.judged), key=lambda one: -one.judged)[:WORST]
    rows = [[one.statement.group, one.statement.name, *row(one)] for one in rated]
    return table(["class", "statement", "Allcore ms", "PostgreSQL ms", "ratio", "CPU", "mark"], rows)


def queries(results, group):
    rows = [[one.statement.name, *row(one)] for one in by_class(results).get(group, [])]
    return table(["query", "Allcore ms", "PostgreSQL ms", "ratio", "CPU", "mark"], rows)


def faults(results):
    rows = [[one.statement.group, one.statement.name, one.fault] for one in results if one.fault]
    return table(["class", "statement", "mark"], rows) if rows else "None."


def page(results, options):
    """The generated part of docs/planner.md."""
    head = (f"Measured on {time.strftime('%Y-%m-%d')}: {len(results)} statements, TPC-H at scale {options.scale:g}. Both "
            f"servers have buffers of {options.buffers >> 20} MiB and `work_mem` of {options.work_mem}. A statement may "
            f"take {options.limit:g} s. A cancelled one counts with that time in a total. Figures are medians of at most "
            f"{options.rounds} rounds.")
    parts = [
        textwrap.fill(head, 100),
        "### By class", summary(results),
        "### In total", totals_table(results),
        "### Faults", faults(results),
        f"### The worst {WORST}", worst(results)]
    for group in TOTALS[:2]:
        parts += [f"### {group}", queries(results, group)]
    return "\n\n".join(parts)


def write_page(path, results, options):
    """Replaces the generated part of the page; the prose around it stays."""
    text = path.read_text(encoding="utf-8")
    head, rest = text.split(BEGIN)
    tail = rest.split(END)[1]
    path.write_text(f"{head}{BEGIN}\n\n{page(results, options)}\n\n{END}{tail}", encoding="utf-8")


def write_json(path, results, options):
    rows = [{
        "class": one.statement.group, "statement": one.statement.name, "text": one.statement.text,
        "bar": one.statement.bar, "ratio": one.ratio, "cpu_ratio": one.work_ratio, "judged": one.judged,
        "missed": one.missed, "fault": one.fault, "note": one.note,
        "seconds": {"postgresql": one.time(0), "allcore": one.time(1)},
        "cpu_seconds": {"postgresql": one.sides[0].work, "allcore": one.sides[1].work},
        "over": {"postgresql": one.sides[0].over, "allcore": one.sides[1].over},
        "executions": [len(side.elapsed) for side in one.sides]} for one in results]
    settings = {name: str(value) for name, value in vars(options).items()}
    path.write_text(json.dumps({"options": settings, "statements": rows}, indent=1), encoding="utf-8")
