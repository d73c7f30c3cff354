# SPDX-License-Identifier: BSD-3-Clause
"""Where the CPU time of a cold get goes: perf samples of the server, by what
they were taken in, for each value of --cold-io and for blocks in the cache."""

import bisect
import json
import os
import re
import shutil
import subprocess
import sys

import cold_gets
import figures
import runner
from runner import SPREAD, median

HERTZ = 5000
CONNECTIONS = 16

# name, --cold-io, options of load
KINDS = (
    ("in the cache", "ring", ("--from=0.5", "--to=0.502")),
    ("ring", "ring", ()),
    ("direct", "direct", ()),
    ("pool", "pool", ()),
)

# What a sample is counted as: by the first function of the kernel, from the
# outermost on, that is named here, with all that it calls ...
KERNEL = (
    ("sockets: read and write",
     r"__x64_sys_(read|write|readv|writev)|ksys_(read|write)"),
    ("beginning reads", r"__x64_sys_io_uring_enter|__do_sys_io_uring_enter"),
    ("beginning reads", r"io_submit_sqes"),
    ("ending reads", r"task_work_run|tctx_task_work"),
    ("ending reads", r"(__)?common_interrupt|blk_mq_complete_request.*"
     r"|blk_done_softirq|virtblk_done|vring_interrupt"),
    ("pread", r"__x64_sys_pread64"),
    ("waiting: epoll_wait", r"__x64_sys_epoll_(wait|pwait)|do_epoll_wait"),
    ("waking threads: futex", r"__x64_sys_futex"),
)
# ... else by where the function of the program is written ...
FILES = (
    ("decoding", r"cold/(block|bits|ids|planes|rice|series|warm)"
     r"|base/checksum"),
    ("index, cache of blocks", r"cold/(cache|segment|fetch)|base/fold"),
    ("engine, store", r"(engine|store|schema)/"),
    ("beginning reads", r"base/disk"),
    ("requests and replies", r"(net|proto|stats|base)/"),
)
# ... or by the library
LIBRARIES = (
    ("requests and replies", r"libuv"),
    ("decoding", r"libxxhash|libzstd"),
    ("beginning reads", r"liburing"),
    ("memory: libc", r"libc\b"),
)
OTHER = "all else"
PLACES = tuple(dict.fromkeys(
    place for table in (KERNEL, FILES, LIBRARIES) for place, _ in table)) + \
    (OTHER,)


class Functions:
    """Which file of the source each function of a program is in, by nm."""

    def __init__(self, program):
        done = subprocess.run(["nm", "-n", "-l", program], text=True,
                              stdout=subprocess.PIPE, check=False)
        self.at, self.file = [], []
        for line in done.stdout.splitlines():
            found = re.match(
                r"([0-9a-f]+) [tTwW] \S+(?:\t.*/src/(\S+):\d+)?$", line)
            if found:
                self.at.append(int(found[1], 16))
                self.file.append(found[2] or "")

    def file_of(self, address):
        place = bisect.bisect_right(self.at, address) - 1
        return self.file[place] if place >= 0 else ""


def first_of(table, name):
    for place, pattern in table:
        if re.match(pattern, name):
            return place
    return None


def place_of(frames, functions, program):
    """What a sample is counted as; frames: (address, function, object), the
    innermost first."""
    for _, name, where in reversed(frames):
        if "kernel" in where or where == "[unknown]":
            place = first_of(KERNEL, name)
            if place:
                return place
    for address, name, where in frames:
        if where.endswith(program):
            return first_of(FILES, functions.file_of(address)) or OTHER
        if ".so" in where:
            return first_of(LIBRARIES, os.path.basename(where)) or OTHER
        if "kernel" not in where:
            break
    return OTHER


def places_of(path, program):
    """How many samples are counted as what."""
    functions = Functions(program)
    done = subprocess.run(
        ["perf", "script", "-i", path, "-F", "ip,sym,dso"], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    found = dict.fromkeys(PLACES, 0)
    for sample in re.split(r"\n\s*\n", done.stdout):
        frames = re.findall(r"^\s*([0-9a-f]+) (.*) \((.*)\)$", sample, re.M)
        if frames:
            frames = [(int(at, 16), name, where) for at, name, where in frames]
            found[place_of(frames, functions, os.path.basename(program))] += 1
    return found


def can_trace():
    return shutil.which("perf") is not None and subprocess.run(
        ["perf", "record", "-q", "-g", "-e", "cpu-clock", "-o", "/dev/null",
         "true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        check=False).returncode == 0


def one(running, arguments, options):
    """us a get, and of these each place's."""
    path = os.path.join(running.directory, "perf")
    with cold_gets.Dropper(running.files("segment")):
        done = subprocess.run(
            ["perf", "record", "-q", "-g", "-e", "cpu-clock", "-F", str(HERTZ),
             "-o", path, "-p", str(running.process.pid), "--",
             *runner.load_command(
                 running, "--records=%d" % arguments.posts, "get", *SPREAD,
                 *options, "--connections=%d" % CONNECTIONS, "--warmup=0",
                 "--draws=%d" % arguments.draws,
                 "--seconds=%g" % arguments.seconds)],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            check=False)
    if done.returncode != 0:
        sys.exit("cold: perf failed")
    us = json.loads(done.stdout)["server_us_per_op"]
    samples = places_of(path, os.environ["TALLYD"])
    total = max(sum(samples.values()), 1)
    os.unlink(path)
    return {"us": us, **{place: us * n / total
                         for place, n in samples.items()}}


def measure(arguments):
    result = {"kinds": {}, "direct": []}
    if not can_trace():
        if arguments.only == ["split"]:
            sys.exit("cold: perf may not trace")
        print("cold: split is left out: perf may not trace", file=sys.stderr)
        return None
    made = runner.Tallyd("tallyd", "--cold-cache=" + cold_gets.CACHE,
                         "--hot-memory=1g", "--sync=none",
                         *arguments.tallyd_options.split(), "--cold-io=ring")
    io_at = len(made.command) - 1 - made.command[::-1].index("--cold-io=ring")
    with arguments.cores.servers(made) as (running,):
        figures.tell("what a cold get takes: filling")
        runner.load(running, "--records=%d" % arguments.posts, "fill",
                    "--connections=4", "--depth=64")
        running.call("seal weibo all")
        running.checkpoint()
        for number in range(arguments.rounds):
            for name, io, options in KINDS:
                figures.tell("what a cold get takes: %s, round %d of %d" % (
                    name, number + 1, arguments.rounds))
                if running.command[io_at] != "--cold-io=" + io:
                    running.stop()
                    running.command[io_at] = "--cold-io=" + io
                    figures.pin(arguments.cores.server_cpu)
                    running.again()
                    figures.pin(arguments.cores.client_cpu)
                result["kinds"].setdefault(name, []).append(
                    one(running, arguments, options))
            if arguments.has_fio:
                result["direct"].append(cold_gets.fio(
                    running, arguments, CONNECTIONS, True))
    figures.tell("")
    return result


def report(result, arguments):
    if result is None:
        return "perf may not trace here."
    kinds = result["kinds"]
    rows = [[place, *("%.2f" % median(found, place)
                      for found in kinds.values())] for place in PLACES]
    rows.append(["server CPU, all", *(figures.spread(
        [each["us"] for each in found]) for found in kinds.values())])
    if result["direct"]:
        rows.append(["over fio's with O_DIRECT", *(figures.spread(
            cold_gets.over(found, result["direct"], "us"))
            for found in kinds.values())])
    return figures.table(
        ["us a get over %d connections, of %d records" % (
            CONNECTIONS, arguments.records), *kinds], rows)
