# SPDX-License-Identifier: BSD-3-Clause
"""The plots of t/bench/run, by gnuplot; see contest.py for the results."""

import math
import os
import shutil
import statistics
import subprocess

import rows
from contest import median_of, ratios
from rows import FLOOR, REDIS, TALLYD, TITLES

COLOURS = {FLOOR: "#7f7f7f", TALLYD: "#0072b2", "memcached": "#e69f00",
           REDIS: "#cc3311"}

HEAD = """set terminal svg size %(width)d,%(height)d dynamic \\
    font "sans-serif,13" background rgb "white"
set output "%(path)s"
set grid ytics linecolor rgb "#d0d0d0"
set border 3
set tics nomirror
"""
BARS = """set style data histograms
set style histogram clustered gap 1
set style fill solid 0.9
set boxwidth 0.9
set key outside top center horizontal
set xtics scale 0 font ",10"
set bmargin 4
"""
LINES = """set logscale xy
set key at screen 0.5,0.93 center top horizontal maxrows 1
set format x "%.0s%c"
set format y "%.0f"
set tmargin 5
set grid xtics
set xlabel "commands a second"
set ylabel "microseconds"
"""
PANELS = (("p50_us", "median"), ("p99_us", "99th percentile"),
          ("p999_us", "99.9th percentile"))


def quoted(text):
    """For gnuplot, between double quotes."""
    return '"%s"' % text.replace("\n", "\\n")


def draw(path, width, height, *lines):
    """Runs gnuplot; the file is there wholly or not at all."""
    script = HEAD % {"path": path + ".new", "width": width, "height": height}
    subprocess.run(["gnuplot"], input=script + "\n".join(lines) + "\n",
                   text=True, check=True)
    os.replace(path + ".new", path)


def bars(path, width, title, y_label, base, labels, values):
    """Groups of bars, one a label, by server, on a scale of powers of base;
    None leaves a gap."""
    cells = [cell for row in values.values() for cell in row if cell]
    low, high = (math.log(find(cells), base) for find in (min, max))
    lines = [BARS, "set logscale y %d" % base,
             "set format y " + quoted("%.0s%c" if base == 10 else "%g"),
             "set title " + quoted(title),
             "set ylabel " + quoted(y_label), "$data << END"]
    for index, label in enumerate(labels):
        cells = [values[name][index] for name in values]
        lines.append(" ".join([quoted(label)] + [
            "NaN" if cell is None else "%g" % cell for cell in cells]))
    lines += ["END", "set yrange [%g:%g]" % (
        base ** math.floor(low - 0.01), base ** math.ceil(high))]
    lines += ["plot " + ", ".join(
        "$data using %d:xtic(1) title %s linecolor rgb %s" % (
            number + 2, quoted(TITLES[name]), quoted(COLOURS[name]))
        for number, name in enumerate(values))]
    draw(path, width, 400, *lines)


def by_row(contest, names, value):
    """What value makes of the results of each row and server of the main
    size, for rows that have any."""
    main = {"part": "rows", "records": contest.arguments.main}
    found = [row for row in rows.ROWS if contest.pick(row=row.name, **main)]
    values = {name: [value(contest.pick(row=row.name, server=name, **main),
                           contest.pick(row=row.name, server=FLOOR, **main))
                     for row in found] for name in names}
    return found, {name: cells for name, cells in values.items()
                   if any(cells)}


def draw_cpu(contest, path):
    """Server CPU time, times that of the floor."""
    found, values = by_row(
        contest, [name for name in rows.SERVERS if name != FLOOR],
        lambda ours, floors: statistics.median(ratios(ours, floors))
        if ours and floors else None)
    if values:
        bars(path, 1100, "server CPU time an operation: times the floor's",
             "times (logarithmic)", 2, [row.label for row in found], values)
    return bool(values)


def draw_rate(contest, path):
    """Commands a second of the closed loop."""
    found, values = by_row(
        contest, rows.SERVERS,
        lambda ours, _: median_of(ours, "ops_per_s") if ours else None)
    if values:
        bars(path, 1100, "commands a second in a closed loop, one core",
             "commands a second (logarithmic)", 10,
             [row.label for row in found], values)
    return bool(values)


def draw_memory(contest, path):
    """Bytes a record, by size."""
    shown = {TALLYD: "tallyd, memory", "memcached": "memcached",
             REDIS: "Redis"}
    sizes = sorted(contest.arguments.records)
    values = {}
    for name, what in shown.items():
        found = [contest.pick(part="fill", what=what, records=records)
                 for records in sizes]
        cells = [(one[0]["rss_after"] - one[0]["rss_before"]) / records
                 if one else None for one, records in zip(found, sizes)]
        if any(cells):
            values[name] = cells
    if values:
        bars(path, 500, "resident memory a record", "bytes (logarithmic)", 2,
             ["%g records" % records for records in sizes], values)
    return bool(values)


def draw_latency(contest, path):
    """A panel a percentile, a line a server, against the rate."""
    found = contest.pick(part="latency")
    names = [name for name in rows.SERVERS
             if any(one["server"] == name for one in found)]
    if not names:
        return False
    lines = ["set multiplot layout 1,%d title %s" % (len(PANELS), quoted(
        "latency against load: " + rows.LATENCY_ROW.name)), LINES]
    for field, title in PANELS:
        for name in names:
            lines.append("$%s << END" % name)
            for rate in sorted({one["rate"] for one in found
                                if one["server"] == name}):
                lines.append("%d %g" % (rate, median_of(contest.pick(
                    part="latency", server=name, rate=rate), field)))
            lines.append("END")
        lines += ["set title " + quoted(title), "plot " + ", ".join(
            "$%s with linespoints linewidth 2 pointtype 7 pointsize 0.5 "
            "linecolor rgb %s title %s" % (
                name, quoted(COLOURS[name]), quoted(TITLES[name]))
            for name in names), "unset key", 'unset ylabel']
    draw(path, 1000, 380, *lines, "unset multiplot")
    return True


PLOTS = {"cpu": draw_cpu, "rate": draw_rate, "latency": draw_latency,
         "memory": draw_memory}


def draw_all(contest, folder):
    """Draws what there are results for; the file name of each plot."""
    if not shutil.which("gnuplot"):
        return {}
    drawn = {}
    for name, make in PLOTS.items():
        file_name = "bench-%s.svg" % name
        if make(contest, os.path.join(folder, file_name)):
            drawn[name] = file_name
    return drawn
