# SPDX-License-Identifier: BSD-3-Clause
"""Cold gets through the whole server beside fio's reads of the same files."""

import contextlib
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import threading
import time

import figures
import rivals
import runner
from runner import SPREAD, median

PAGE_BYTES = 4096
BLOCK_BYTES = 512   # of getrusage
CACHE = "64k"      # small beside the segments, so that a get is a read
DROP_S = 0.002
COLD_MIN = 0.9     # pages from the disk a read: else it was no cold read
ONE_ID_GETS = 1000
ONE_ID_CONNECTIONS = 10
STRACE_S = 10      # within which it has attached itself
FILES_MAX = 32     # that one of its jobs has open

# name, options of load, connections, keys a command, fio's jobs
ROWS = (
    ("get, 1 connection", ["get"], 1, 1, 1),
    ("get, 16 connections", ["get"], 16, 1, 16),
    ("get, 64 connections", ["get"], 64, 1, 16),
    ("get of 100 keys, 4 connections", ["multi", "--keys=100"], 4, 100, 16),
    ("get, 16 connections, blocks in the cache",
     ["get", "--from=0.5", "--to=0.502"], 16, 1, 0),
)


class Dropper:
    """Takes the pages of files out of the page cache, again and again, as
    though there were far more files than memory."""

    def __init__(self, paths):
        self.files = [os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                      for path in paths]
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def drop(self):
        for file in self.files:
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)

    def run(self):
        while not self.stopping.wait(DROP_S):
            self.drop()

    def __enter__(self):
        self.drop()
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join()
        for file in self.files:
            os.close(file)


def read_bytes(pid):
    """What a process has had read from disks."""
    with open("/proc/%d/io" % pid, encoding="ascii") as lines:
        return int(dict(line.split(":") for line in lines)["read_bytes"])


def numbers_of(running, what="cold"):
    return {name: int(value) for name, value in
            running.stats_of(what).items() if value.isdigit()}


def gets(running, arguments, name, options, connections, keys):
    """One measurement of cold gets."""
    before, pages = numbers_of(running), read_bytes(running.process.pid)
    with Dropper(running.files("segment")):
        found = runner.load(
            running, "--records=%d" % arguments.posts, *options, *SPREAD,
            "--connections=%d" % connections, "--warmup=0",
            "--draws=%d" % arguments.draws, "--seconds=%g" % arguments.seconds)
    after = numbers_of(running)
    asked = found["ops"] * keys
    reads = after["reads"] - before["reads"]
    found.update(
        name=name, us=found["server_us_per_op"] / keys,
        per_s=found["ops_per_s"] * keys, reads=reads / asked,
        read_bytes=(after["read_bytes"] - before["read_bytes"]) /
        max(reads, 1),
        disk_pages=(read_bytes(running.process.pid) - pages) / PAGE_BYTES /
        max(reads, 1))
    return found


def fio(running, arguments, jobs, is_direct):
    """Random reads of 4 KB of the segments, on the server's core: CPU time of
    one, and how many a second."""
    top = os.path.join(running.directory, "fio")
    os.mkdir(top)
    for number, path in enumerate(running.files("segment")):
        os.link(path, os.path.join(top, str(number)))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with contextlib.nullcontext() if is_direct else \
            Dropper(running.files("segment")):
        done = subprocess.run(
            ["fio", "--name=reads", "--opendir=" + top, "--rw=randread",
             "--bs=%d" % PAGE_BYTES, "--ioengine=psync", "--thread",
             "--numjobs=%d" % jobs, "--direct=%d" % is_direct,
             "--fadvise_hint=0", "--norandommap", "--randrepeat=0",
             "--time_based", "--runtime=%g" % arguments.seconds,
             "--openfiles=%d" % FILES_MAX, "--group_reporting",
             "--output-format=json"],
            stdout=subprocess.PIPE, text=True, check=False,
            preexec_fn=lambda: figures.pin(arguments.cores.server_cpu))
    shutil.rmtree(top)
    if done.returncode != 0:
        sys.exit("cold: fio failed")
    job = json.loads(done.stdout[done.stdout.index("{"):])["jobs"][0]
    reads = job["read"]["total_ios"]
    cpu = (job["usr_cpu"] + job["sys_cpu"]) / 100 * job["job_runtime"] * 1000
    blocks = resource.getrusage(resource.RUSAGE_CHILDREN).ru_inblock - \
        before.ru_inblock
    return {"us": cpu / reads, "per_s": job["read"]["iops"],
            "disk_pages": blocks * BLOCK_BYTES / PAGE_BYTES / reads,
            "p50_us": job["read"]["clat_ns"]["percentile"]["50.000000"] / 1e3,
            "p99_us": job["read"]["clat_ns"]["percentile"]["99.000000"] / 1e3}


class Least(rivals.Floor):
    """Does no more for a get than a read of the socket, one of a file and a
    write."""

    def __init__(self, program, path):
        rivals.Rival.__init__(self, program, "--port=0", "--reads=" + path)
        self.name = "floor_bare"
        self.load_options = []


def least(running, arguments):
    """The least that a cold get over one connection can be."""
    largest = max(running.files("segment"), key=os.path.getsize)
    with arguments.cores.servers(Least(arguments.floor, largest)) as (floor,):
        found = runner.load(
            floor, "get", "--records=10000", "--draws=20000", "--warmup=0",
            "--connections=1", "--seconds=%g" % arguments.seconds)
    return {"us": found["server_us_per_op"], "per_s": found["ops_per_s"]}


class Strace:
    """Counts the reads of a process at an offset: by pread, and those that it
    gives to an io_uring; none where it may not."""

    def __init__(self, pid, path):
        self.path, self.process = path, None
        if shutil.which("strace") is None:
            return
        self.process = subprocess.Popen(
            ["strace", "-f", "-e", "trace=pread64,io_uring_enter", "-o",
             path, "-p", str(pid)], stderr=subprocess.PIPE)
        line = self.process.stderr.readline()
        if b"attached" not in line:
            self.process.wait(STRACE_S)
            self.process = None

    def count(self):
        if self.process is None:
            return None
        self.process.terminate()
        self.process.communicate()
        with open(self.path, encoding="utf-8") as lines:
            return sum(given_to_disk(line) for line in lines)


def given_to_disk(line):
    """Reads that a line of strace's output stands for: of an io_uring the
    entries that it took, of which few do nothing."""
    if "pread64(" in line:
        return 1
    given = re.search(r"io_uring_enter.* = (\d+)$", line)
    return int(given.group(1)) if given else 0


def one_id(running, cold_id):
    """A thousand gets of one cold id in a second: how many reads."""
    first = running.stats_of("cold")
    dropper = Dropper(running.files("segment"))
    trace = Strace(running.process.pid,
                   os.path.join(running.directory, "strace"))
    key = "%d.cntcm" % cold_id
    with dropper, contextlib.ExitStack() as stack:
        each = [stack.enter_context(running.connect())
                for _ in range(ONE_ID_CONNECTIONS)]
        turns = ONE_ID_GETS // ONE_ID_CONNECTIONS
        begin = time.monotonic()
        for turn in range(turns):
            for connection in each:
                connection.send("get %s\r\n" % key)
            for connection in each:
                if [found[0] for found in connection.values()] != [key]:
                    sys.exit("cold: no answer for a cold id")
            left = begin + (turn + 1) / turns - time.monotonic()
            if left > 0:
                time.sleep(left)
        seconds = time.monotonic() - begin
    traced = trace.count()
    last = running.stats_of("cold")
    return {"gets": ONE_ID_GETS, "seconds": seconds, "strace": traced,
            "reads": int(last["reads"]) - int(first["reads"])}


def first_id(path):
    """The id that a segment begins with, from its head."""
    with open(path, "rb") as file:
        return int.from_bytes(file.read(PAGE_BYTES)[48:56], "little")


def measure(arguments):
    result = {"rows": {}, "fio": {}, "direct": {}, "least": []}
    made = runner.Tallyd("tallyd", "--cold-cache=" + CACHE, "--hot-memory=1g",
                         "--sync=none", *arguments.tallyd_options.split())
    with arguments.cores.servers(made) as (running,):
        figures.tell("cold gets: filling")
        runner.load(running, "--records=%d" % arguments.posts, "fill",
                    "--connections=4", "--depth=64")
        running.call("seal weibo all")
        for number in range(arguments.rounds):
            for name, options, connections, keys, jobs in ROWS:
                figures.tell("cold gets: %s, round %d of %d" % (
                    name, number + 1, arguments.rounds))
                result["rows"].setdefault(name, []).append(gets(
                    running, arguments, name, options, connections, keys))
                if jobs == 0 or not arguments.has_fio:
                    continue
                result["fio"].setdefault(name, []).append(
                    fio(running, arguments, jobs, False))
                result["direct"].setdefault(name, []).append(
                    fio(running, arguments, jobs, True))
                if connections == 1 and arguments.floor:
                    result["least"].append(least(running, arguments))
        running.stop()
        running.again()  # with nothing in its cache
        result["one_id"] = one_id(running, min(
            first_id(path) for path in running.files("segment")))
    figures.tell("")
    return result


def peer_of(result, peer, name):
    """What fio did; None where most of it came out of the page cache."""
    found = result[peer].get(name)
    if found and median(found, "disk_pages") < COLD_MIN:
        return None
    return found


def over(ours, theirs, field):
    return [one[field] - other[field] for one, other in zip(ours, theirs)]


def ratio(ours, theirs, field):
    return [one[field] / other[field] for one, other in zip(ours, theirs)]


def report_least(result):
    name = ROWS[0][0]
    ours, theirs = result["rows"][name], result["direct"][name]
    floor = result["least"]
    return "\n\n" + figures.table(
        [name, "server CPU, us", "over fio's with O_DIRECT", "gets/s",
         "/ fio's"],
        [[who, figures.spread([one["us"] for one in found]),
          figures.spread(over(found, theirs, "us")),
          "%.0f" % median(found, "per_s"),
          figures.spread(ratio(found, theirs, "per_s"))]
         for who, found in (
             ("tallyd", ours), ("epoll_wait, read, pread, write", floor))])


def report(result, arguments):
    rows = []
    for name, ours in result["rows"].items():
        row = [name, "%.2f" % median(ours, "us")]
        for peer in ("fio", "direct"):
            theirs = peer_of(result, peer, name)
            row += [figures.spread([one["us"] for one in theirs]),
                    figures.spread(over(ours, theirs, "us"))] \
                if theirs else ["-", "-"]
        row += ["%.3f" % median(ours, "reads"),
                "%.0f" % median(ours, "read_bytes"),
                "%.2f" % median(ours, "disk_pages"),
                "%.0f" % median(ours, "per_s")]
        for peer in ("fio", "direct"):
            theirs = peer_of(result, peer, name)
            row.append(figures.spread(ratio(ours, theirs, "per_s"))
                       if theirs else "-")
        row += ["%.0f" % median(ours, "p50_us"),
                "%.0f" % median(ours, "p99_us")]
        rows.append(row)
    text = figures.table(
        ["cold gets, of %d records" % arguments.records,
         "server CPU, us a key", "fio's a read", "over it",
         "fio's with O_DIRECT", "over it", "preads a key", "bytes a pread",
         "pages from the disk a pread", "keys/s", "/ fio's reads",
         "/ with O_DIRECT", "p50 us", "p99 us"], rows)
    if result["least"]:
        text += report_least(result)
    one = result["one_id"]
    traced = "not traced" if one["strace"] is None else \
        "%d by strace" % one["strace"]
    return text + "\n\n%d gets of one cold id in %.2f s: %d reads (%s)." % (
        one["gets"], one["seconds"], one["reads"], traced)
