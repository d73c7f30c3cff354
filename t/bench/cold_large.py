# SPDX-License-Identifier: BSD-3-Clause
"""More records than the hot memory takes: filled through the socket in the
order of the ids and at random, then asked by age."""

import json
import math
import os
import subprocess
import tempfile
import threading
import time

import cold_gets
import figures
import runner
from cold_seal import cpu_s
from runner import SPREAD, median

SAMPLE_S = 0.25
SETTLE_S = 2        # without one
SETTLE_MAX_S = 900
START_LIMIT_S = 900
VERIFIED = 20000    # gets that are compared, before anything is incremented
PARTS = 10          # of the records, each with a rate of its own
CACHE_BYTES = 0.64  # a record: 64 MB where there are 10^8

# name, shares of the posts from the oldest on
AGES = (
    ("newest 0.1 %", 0.999, 1),
    ("0.1 to 1 %", 0.99, 0.999),
    ("1 to 10 %", 0.9, 0.99),
    ("10 to 50 %", 0.5, 0.9),
    ("oldest 50 %", 0, 0.5),
)

TITLES = {"id": "in id order", "random": "in random order"}

PLOT = """set terminal svg size 720,1080 dynamic font "sans-serif,13"
set output "%s"
set multiplot layout 3,1
set grid
set key right top
set yrange [0:*]
"""


class Watch:
    """Looks at the server's statistics from time to time."""

    def __init__(self, running):
        self.running = running
        self.seen = []
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def look(self):
        found = cold_gets.numbers_of(self.running)
        found["ms"] = int(1000 * (time.monotonic() - self.begin))
        found["cpu_s"] = cpu_s(self.running)
        found["rss"] = rss(self.running)
        self.seen.append(found)

    def run(self):
        while not self.stopping.wait(SAMPLE_S):
            self.look()

    def __enter__(self):
        self.begin = time.monotonic()
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join()


def rss(running):
    """Resident memory in bytes."""
    with open("/proc/%d/status" % running.process.pid,
              encoding="ascii") as lines:
        found = dict(line.split(":", 1) for line in lines)
    return int(found["VmRSS"].split()[0]) * 1024


def open_files(running):
    return len(os.listdir("/proc/%d/fd" % running.process.pid))


def fill(running, order, arguments):
    """Fills; that it is refused is a result, too."""
    with tempfile.TemporaryDirectory() as top, Watch(running) as watch:
        path = os.path.join(top, "samples")
        done = subprocess.run(
            runner.load_command(
                running, "fill", "--records=%d" % arguments.posts,
                "--order=" + order, "--connections=4", "--depth=64",
                "--samples=" + path),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            check=False)
        with open(path, encoding="ascii") as lines:
            samples = [tuple(map(int, line.split())) for line in lines]
    result = {"samples": samples, "seen": watch.seen, "refused": None}
    if done.returncode != 0:
        result["refused"] = done.stderr.strip().split(": ", 2)[-1]
        ms, stored = samples[-1][:2]
        result.update(stored=stored, seconds=ms / 1000)
    else:
        load = json.loads(done.stdout)
        result.update(load, seconds=load["seconds"])
    return result


def settle(running):
    """Until nothing has been sealed for a while; seconds."""
    begin = changed = time.monotonic()
    seals = None
    while time.monotonic() - changed < SETTLE_S and \
            time.monotonic() - begin < SETTLE_MAX_S:
        now = cold_gets.numbers_of(running)["seals"]
        if now != seals:
            seals, changed = now, time.monotonic()
        time.sleep(SAMPLE_S)
    return changed - begin


def state(running):
    """What there is on disk and in memory now."""
    found = cold_gets.numbers_of(running)
    found.update(
        rss=rss(running), open_files=open_files(running),
        disk=sum(os.stat(path).st_blocks * 512 for path in running.files("")),
        segment_bytes=running.file_bytes("segment"))
    return found


def verify(running, arguments):
    runner.load(running, "--records=%d" % arguments.posts, "get", "--verify",
                "--age=flat", "--draws=%d" % VERIFIED, "--ops=%d" % VERIFIED)


def by_age(running, arguments):
    """rates[mode][age]: one of each round, with the page cache dropped."""
    rates = {}
    for mode in ("get", "incr"):
        for name, first, last in AGES:
            for number in range(arguments.rounds):
                figures.tell("%s: %s, round %d of %d" % (
                    mode, name, number + 1, arguments.rounds))
                before = cold_gets.numbers_of(running)
                with cold_gets.Dropper(running.files("segment")):
                    found = runner.load(
                        running, "--records=%d" % arguments.posts, mode,
                        *SPREAD, "--from=%g" % first, "--to=%g" % last,
                        "--draws=%d" % arguments.draws, "--connections=50",
                        "--warmup=0", "--seconds=%g" % arguments.seconds)
                after = cold_gets.numbers_of(running)
                found["reads_per_op"] = \
                    (after["reads"] - before["reads"]) / found["ops"]
                rates.setdefault(mode, {}).setdefault(name, []).append(found)
    return rates


def one_order(order, arguments, has_ages):
    made = runner.Tallyd(
        "tallyd", "--hot-memory=" + arguments.hot_memory,
        "--cold-cache=%d" % (CACHE_BYTES * arguments.records),
        *arguments.tallyd_options.split())
    with arguments.cores.servers(made) as (running,):
        figures.tell("filling %d records %s" % (arguments.records,
                                                TITLES[order]))
        result = {"fill": fill(running, order, arguments)}
        figures.tell("resting")
        result["settled_s"] = settle(running)
        result["state"] = state(running)
        figures.tell("starting again")
        running.stop()
        result["restart_s"] = running.again()
        result["replayed"] = int(running.stats_of("wal")["replayed_changes"])
        result["restarted"] = state(running)
        if result["fill"]["refused"] is None:
            figures.tell("comparing")
            verify(running, arguments)
        if has_ages:
            result["ages"] = by_age(running, arguments)
    figures.tell("")
    return result


def measure(arguments):
    """The rates by age are those after the first order."""
    return {order: one_order(order, arguments, number == 0)
            for number, order in enumerate(arguments.orders)}


def rates(fill_result, parts):
    """Records a second in each part of what was stored, and how many there
    were in its middle."""
    samples = fill_result["samples"]
    stored = samples[-1][1]
    found, at = [], 0
    for part in range(parts):
        begin = at
        while samples[at][1] < stored * (part + 1) / parts:
            at += 1
        ms = samples[at][0] - samples[begin][0]
        if ms > 0:
            found.append(((samples[at][1] + samples[begin][1]) / 2,
                          1000 * (samples[at][1] - samples[begin][1]) / ms))
    return found


def fill_table(result, arguments):
    rows, notes = [], []
    for order, found in result.items():
        filled, now = found["fill"], found["state"]
        pieces = [rate for _, rate in rates(filled, PARTS)]
        name = TITLES[order]
        if filled["refused"]:
            name += " *"
            notes.append("\\* Refused after %d records: %s." % (
                filled["stored"], filled["refused"]))
        rows.append([
            name, "%d" % filled["stored"], "%.0f" % filled["seconds"],
            "%.0f" % (filled["stored"] / filled["seconds"]),
            "%.0f" % pieces[0], "%.0f" % min(pieces), "%.0f" % pieces[-1],
            "%.1f" % (now["seal_records"] / max(now["seal_hot_records"], 1)),
            "%.1f" % (now["seal_bytes"] / max(filled["stored"], 1)),
            "%.2f" % (filled["seen"][-1]["cpu_s"] / filled["stored"] * 1e6),
            "%.0f" % (max(line[2] for line in filled["samples"]) / 1e6),
            "%.1f" % found["settled_s"]])
    text = figures.table(
        ["filled, with %.0f MB of hot memory" % (
            bytes_of(arguments.hot_memory) / 1e6), "records", "s",
         "records/s", "first tenth", "slowest tenth", "last tenth",
         "records written for one sealed", "bytes written to segments a "
         "record", "server CPU, us a record", "RSS at most, MB",
         "at rest after, s"], rows)
    return "\n\n".join([text, *notes])


def bytes_of(size):
    """Of an option of tallyd."""
    powers = {"k": 10, "m": 20, "g": 30}
    if size[-1] in powers:
        return int(size[:-1]) << powers[size[-1]]
    return int(size)


def state_table(result):
    rows = []
    for order, found in result.items():
        for name, now in (("", found["state"]),
                          (", after a restart", found["restarted"])):
            cold = max(now["records"], 1)
            rows.append([
                TITLES[order] + name, "%.1f" % (now["rss"] / 1e6),
                "%d" % now["records"], "%d" % now["segments"],
                "%d" % now["open_files"], "%.1f" % (now["disk"] / 1e6),
                "%.1f" % (now["segment_bytes"] / 1e6),
                "%.2f" % (now["segment_bytes"] / cold),
                "%.0f" % (now["memory"] / 1e3),
                "%.4f" % (now["memory"] / cold),
                *(["%.2f" % found["restart_s"], "%d" % found["replayed"]]
                  if name else ["-", "-"])])
    return figures.table(
        ["then", "RSS, MB", "cold records", "segments", "open files",
         "disk, MB", "segments, MB", "bytes a cold record", "index, KB",
         "index, bytes a cold record", "restart, s",
         "changes in the log then"], rows)


def age_table(ages):
    rows = []
    for name, _, _ in AGES:
        row = [name]
        for mode in ("get", "incr"):
            found = ages[mode][name]
            row += ["%.0f" % median(found, "ops_per_s"),
                    "%.2f" % median(found, "server_us_per_op"),
                    "%.2f" % median(found, "reads_per_op"),
                    "%.0f" % median(found, "p50_us"),
                    "%.0f" % median(found, "p99_us")]
        rows.append(row)
    return figures.table(
        ["age, by posts", "gets/s", "server CPU us", "preads a get",
         "p50 us", "p99 us", "incr/s", "server CPU us", "preads an incr",
         "p50 us", "p99 us"], rows)


def report(result, arguments):
    texts = [fill_table(result, arguments), state_table(result)]
    for found in result.values():
        if "ages" in found:
            texts.append(age_table(found["ages"]))
    if arguments.svg:
        texts.append("![first load, memory, rates by age](%s)"
                     % os.path.basename(arguments.svg))
    return "\n\n".join(texts)


def panel(title, ylabel, xlabel, plots, data):
    return ["set title \"%s\"" % title, "set ylabel \"%s\"" % ylabel,
            "set xlabel \"%s\"" % xlabel, "plot " + ", ".join(plots), *data]


def lines(title):
    return "'-' with lines linewidth 2 title \"%s\"" % title


def thinned(values, most=400):
    step = math.ceil(len(values) / most)
    return values[::step]


def draw(result, path):
    script = [PLOT % (path + ".new")]
    rate_data, memory_data = [], []
    for found in result.values():
        rate_data += ["%g %g" % (at / 1e6, rate / 1e3)
                      for at, rate in rates(found["fill"], 50)] + ["e"]
        memory_data += ["%g %g" % (line[1] / 1e6, line[2] / 1e6)
                        for line in thinned(found["fill"]["samples"])] + ["e"]
    titles = [lines(TITLES[order]) for order in result]
    script += panel("first load", "10^3 records/s", "10^6 records stored",
                    titles, rate_data)
    script += panel("memory meanwhile", "RSS, MB", "10^6 records stored",
                    titles, memory_data)
    for found in result.values():
        if "ages" not in found:
            continue
        ticks = ["\"%s\" %d" % (name.replace("%", "%%"), number)
                 for number, (name, _, _) in enumerate(AGES)]
        script.append("set xtics (%s)" % ", ".join(ticks))
        data = []
        for mode in ("get", "incr"):
            data += ["%d %g" % (number, median(found["ages"][mode][name],
                                               "ops_per_s") / 1e3)
                     for number, (name, _, _) in enumerate(AGES)] + ["e"]
        script += panel(
            "by age of the id", "10^3 commands/s", "age, share of the posts",
            ["'-' with linespoints linewidth 2 title \"%s\"" % mode
             for mode in ("get", "incr")], data)
    script.append("unset multiplot\n")
    subprocess.run(["gnuplot"], input="\n".join(script), text=True,
                   check=True)
    os.replace(path + ".new", path)
