#!/usr/bin/env python3
"""Draws the README's plot from the tables of docs/results.md.

  scripts/readme_plot.py

It writes docs/throughput-light.svg and docs/throughput-dark.svg: throughput over clients, one panel
a workload, one line a server. A vertical bar reaches as far as the table's "±" says. Run it after
`make results`; the same page always gives the same bytes.
"""
import math, os, re

DOCS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "docs")
PANELS = [("select-only", "Reads: select-only, transactions a second"), ("tpcb", "Writes: tpcb-like, transactions a second")]
THEMES = {
    "light": {"ground": "#ffffff", "ink": "#1b1f24", "faint": "#59636e", "grid": "#e4e8ec",
              "lines": ["#0b62c4", "#c2410c", "#15803d"]},
    "dark": {"ground": "#0d1117", "ink": "#e6e9ed", "faint": "#a0abb7", "grid": "#2a3038",
             "lines": ["#6cb0ff", "#ff9a5c", "#62d08a"]},
}
WIDTH, HEIGHT = 840, 330
PANEL_WIDTH, TOP, BOTTOM, LEFT = 420, 62, 280, 62
RIGHT = PANEL_WIDTH - 24


def read(workload):
    """A workload's table: the servers' names, and rows of (clients, [(tps, share of its
    interval)])."""
    with open(os.path.join(DOCS, "results.md")) as file:
        section = file.read().split(f"\n## {workload}\n", 1)[1].split("\n## ", 1)[0]
    table = [[cell.strip() for cell in line.strip("|").split("|")]
             for line in section.splitlines() if line.startswith("|")]
    heading = table[0]
    names = heading[1:-1]
    rows = []
    for cells in table[2:]:
        if not re.fullmatch(r"[\d,]+", cells[0]) or len(cells) != len(heading):
            break
        points = []
        for cell in cells[1:-1]:
            tps, _, spread = cell.partition(" ± ")
            points.append((float(tps.replace(",", "")), float(spread.rstrip("%")) / 100 if spread else 0.0))
        rows.append((int(cells[0].replace(",", "")), points))
    return names, rows


def scale_top(most):
    """The smallest round number at or above `most`, and the distance of the grid's lines."""
    step = 10 ** math.floor(math.log10(most))
    for factor in (0.5, 1, 2):
        if most <= step * factor * 6:
            return math.ceil(most / (step * factor)) * step * factor, step * factor
    return math.ceil(most / (step * 5)) * step * 5, step * 5


def thousands(value):
    return f"{value / 1000:g}k" if value else "0"


def panel(left, title, names, rows, theme):
    """The elements of one panel."""
    most = max(tps * (1 + share) for _, points in rows for tps, share in points)
    top, step = scale_top(most)
    last = math.log(rows[-1][0])
    x = lambda clients: left + LEFT + (RIGHT - LEFT) * math.log(clients) / last
    y = lambda tps: BOTTOM - (BOTTOM - TOP) * tps / top
    text = lambda at, down, said, more: f'<text x="{at:.1f}" y="{down:.1f}" {more}>{said}</text>'
    faint = f'fill="{theme["faint"]}" font-size="12"'
    out = [text(left + LEFT, 22, title, f'fill="{theme["ink"]}" font-size="14" font-weight="600"')]
    for line in range(round(top / step) + 1):
        down = y(line * step)
        out.append(f'<path d="M{left + LEFT} {down:.1f}H{left + RIGHT}" stroke="{theme["grid"]}"/>')
        out.append(text(left + LEFT - 8, down + 4, thousands(line * step), f'{faint} text-anchor="end"'))
    for clients, _ in rows:
        out.append(text(x(clients), BOTTOM + 18, f"{clients:,}", f'{faint} text-anchor="middle"'))
    out.append(text((2 * left + LEFT + RIGHT) / 2, BOTTOM + 38, "clients", f'{faint} text-anchor="middle"'))
    for index, name in enumerate(names):
        colour = theme["lines"][index]
        series = [(x(clients), *points[index]) for clients, points in rows]
        bars = "".join(f"M{at:.1f} {y(tps * (1 - share)):.1f}V{y(tps * (1 + share)):.1f}" for at, tps, share in series)
        line = "M" + "L".join(f"{at:.1f} {y(tps):.1f}" for at, tps, _ in series)
        out.append(f'<path d="{bars}" stroke="{colour}" stroke-width="3" opacity=".3"/>')
        out.append(f'<path d="{line}" stroke="{colour}" stroke-width="2" fill="none" stroke-linejoin="round"/>')
        out += [f'<circle cx="{at:.1f}" cy="{y(tps):.1f}" r="3" fill="{colour}"/>' for at, tps, _ in series]
        at = left + LEFT + (0, 92, 220)[index]
        out.append(f'<path d="M{at} 40h16" stroke="{colour}" stroke-width="3"/>')
        out.append(text(at + 21, 44, name, f'fill="{theme["ink"]}" font-size="12"'))
    return out


def said(title, names, rows):
    """A panel in words, for those who do not see it."""
    ends = [f"{name} from {rows[0][1][i][0]:,.0f} to {rows[-1][1][i][0]:,.0f}" for i, name in enumerate(names)]
    return f"{title}, from {rows[0][0]} to {rows[-1][0]:,} clients: {', '.join(ends)}."


def draw(theme):
    tables = [(title, *read(workload)) for workload, title in PANELS]
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" role="img" '
           'font-family="system-ui, -apple-system, Segoe UI, Roboto, Noto Sans, sans-serif">',
           "<title>Throughput over clients</title>",
           f"<desc>{' '.join(said(*table) for table in tables)}</desc>",
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{theme["ground"]}"/>']
    for index, (title, names, rows) in enumerate(tables):
        out += panel(index * PANEL_WIDTH, title, names, rows, theme)
    return "\n".join([*out, "</svg>"]) + "\n"


def main():
    for name, theme in THEMES.items():
        with open(os.path.join(DOCS, f"throughput-{name}.svg"), "w") as file:
            file.write(draw(theme))


main()
