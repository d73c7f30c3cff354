# SPDX-License-Identifier: BSD-3-Clause
"""Sealing and merging: records a second of CPU time, and gets of hot records
meanwhile."""

import os
import threading

import figures
import runner
from runner import SPREAD, median

TICKS = os.sysconf("SC_CLK_TCK")
CHANGED = 20  # one record in so many gets an increment before a merge

HOT_SCHEMA = """add counter other
add column other other_id hint=64 max=64 default=0 primarykey
add column other a hint=16 max=32 default=0 suffix=hota
add column other b hint=16 max=32 default=0 suffix=hotb
add column other c hint=8 max=32 default=0 suffix=hotc
"""
HOT = ["--counter=other", "--suffixes=hota,hotb,hotc"]
MOMENTS = ("alone", "beside sealing", "beside merging")


def cpu_s(running):
    """Of all threads of the server so far."""
    with open("/proc/%d/stat" % running.process.pid,
              encoding="ascii") as line:
        word = line.read().rsplit(")", 1)[1].split()
    return (int(word[11]) + int(word[12])) / TICKS


def numbers(running):
    found = running.stats_of("cold")
    return int(found["seal_records"]), int(found["seal_bytes"])


def seal(running):
    """Seals all; what that took."""
    records, bytes_ = numbers(running)
    cpu = cpu_s(running)
    seconds = running.call("seal weibo all")
    cpu = cpu_s(running) - cpu
    after = numbers(running)
    return {"records": after[0] - records, "bytes": after[1] - bytes_,
            "cpu_s": cpu, "seconds": seconds,
            "per_cpu_s": (after[0] - records) / max(cpu, 1 / TICKS)}


def fill(running, posts, *options):
    runner.load(running, "--records=%d" % posts, "fill", "--connections=4",
                "--depth=64", *options)


def change(running, arguments):
    """Overlays: increments of records all over."""
    runner.load(running, "--records=%d" % arguments.posts, "incr", *SPREAD,
                "--connections=4", "--depth=64",
                "--draws=%d" % arguments.draws,
                "--ops=%d" % max(arguments.records // CHANGED, 1000))


def gets(running, arguments, beside=None):
    """Gets of hot records; beside is done from a while before on."""
    thread = threading.Thread(target=beside) if beside else None
    if thread:
        thread.start()
    found = runner.load(
        running, "--records=%d" % arguments.hot_posts, *HOT, "get", *SPREAD,
        "--connections=50", "--warmup=0.2", "--draws=%d" % arguments.draws,
        "--seconds=%g" % arguments.seconds)
    found["covered"] = thread is None or thread.is_alive()
    if thread:
        thread.join()
    return found


def one_round(running, arguments, result):
    name = "sealing and merging, round %d of %d: " % (
        len(result["seal"]) + 1, arguments.rounds)
    figures.tell(name + "filling")
    fill(running, arguments.posts)
    fill(running, arguments.hot_posts, *HOT)
    figures.tell(name + "sealing")
    result["gets"]["alone"].append(gets(running, arguments))
    result["seal"].append(seal(running))
    figures.tell(name + "merging")
    change(running, arguments)
    result["merge"].append(seal(running))
    figures.tell(name + "gets beside merging")
    change(running, arguments)
    result["gets"]["beside merging"].append(
        gets(running, arguments, lambda: seal(running)))


def beside_sealing(running, arguments, result):
    figures.tell("gets beside sealing: filling")
    fill(running, arguments.posts)
    fill(running, arguments.hot_posts, *HOT)
    result["gets"]["beside sealing"].append(
        gets(running, arguments, lambda: seal(running)))


def make():
    return runner.Tallyd("tallyd", "--hot-memory=2g", "--sync=none",
                         more_schema=HOT_SCHEMA)


def measure(arguments):
    arguments.hot_posts = min(arguments.posts, 1000000)
    result = {"seal": [], "merge": [], "gets": {name: [] for name in MOMENTS}}
    for _ in range(arguments.rounds):
        for do in (one_round, beside_sealing):
            with arguments.cores.servers(make()) as (running,):
                do(running, arguments, result)
    figures.tell("")
    return result


def report(result, arguments):
    rows = []
    for name, title in (("seal", "sealing"), ("merge", "merging")):
        found = result[name]
        rows.append([
            title, "%.0f" % median(found, "records"),
            figures.spread([one["per_cpu_s"] / 1e6 for one in found]),
            "%.2f" % median(found, "cpu_s"), "%.2f" % median(found, "seconds"),
            "%.2f" % (median(found, "bytes") / median(found, "records"))])
    text = figures.table(
        ["`seal weibo all`", "records written",
         "10^6 records a second of CPU time", "CPU, s", "until durable, s",
         "bytes a record"], rows)
    rows = []
    alone = result["gets"]["alone"]
    for name, found in result["gets"].items():
        rows.append([
            name + ("" if all(one["covered"] for one in found) else " +"),
            "%.0f" % median(found, "ops_per_s"),
            *("%.0f" % median(found, field) for field in
              ("p50_us", "p99_us", "p999_us", "p9999_us", "max_us")),
            figures.spread([one["p99_us"] / other["p99_us"]
                            for one, other in zip(found, alone)])])
    text += "\n\n" + figures.table(
        ["gets of %d hot records" % int(
            arguments.hot_posts * runner.RECORD_SHARE), "gets/s", "p50 us",
         "p99 us", "p99.9 us", "p99.99 us", "longest us", "p99 / alone"], rows)
    if " + |" in text:
        text += "\n\n\\+ It had ended before the gets did."
    return text
