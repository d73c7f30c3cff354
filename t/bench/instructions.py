#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Counts the instructions that a worker of tallyd executes for fixed requests
(callgrind), and compares them with those kept in t/data/instructions.txt.

usage: TALLYD=src/tallyd t/bench/instructions.py [--update | --show] [WORDS]

  --update   writes the file anew
  --show     says what there is now, and compares nothing
  WORDS      only the streams with these words in their names

Exit status 1 where a stream takes 4 % more than the file says, or 10 % less:
then the file is to be written anew, so that it stays a bound. Calls for memory,
locks taken and atomic read-modify-writes must be what the file says. System
calls count as the instructions before and after them; what the kernel does is
not seen.
"""

import contextlib
import itertools
import os
import re
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../lib"),
                os.path.join(HERE, "../torture")]

import callgrind
import cluster
import packet
import ports
import server
import tap

FILE = os.path.join(HERE, "../data/instructions.txt")
MORE = 1.04        # of the file's number; what fails
LESS = 0.90
CALLS_MORE = 0.02  # of a batch; memory asked for in each tenth is found;
CALLS_RATIO = 0.015  # or so much of many, where the log's thread meets us
ROUNDS = 4         # the least counts: a timer or a busy disk only adds
ROUNDS_PREPARED = 24  # likewise, and so does a table that is built anew
SWEEPS_FROM = 200  # batches: in as many, a worker's sweep is within CALLS_MORE
CALM_S = 1.5       # see Disk
BUSY_S = 600
TWO_WORKERS = 1.02  # an operation on two workers, that on one is 1

IDS = [10**6 + 37 * i for i in range(1000)]
ABSENT = [3 * 10**6 + 37 * i for i in range(1000)]
SUFFIXES = ("cntcm", "cntrn", "cntan")
GETKQ, NOOP = 0x0d, 0x0a
COMPILER = re.compile(r"GNU C11 12\.\d.* -O2\b")
OTHER_FLAGS = re.compile(r"-fsanitize|-fprofile|-ftest-coverage")


class Stream:
    """Batches, each sent at once and answered before the next one is.
    ask: of one batch the bytes; answer(connection) reads its replies."""

    def __init__(self, name, n_batches, ask, answer, logs=False,
                 committed=False, members=False, whole=False, before=None):
        self.name = name
        self.batches = [ask(i) for i in range(n_batches)]
        self.answer = answer
        self.logs = logs
        self.committed = committed  # --reads; nothing changes meanwhile
        self.members = members  # of WALL, on a server of their own
        self.whole = whole  # records in the log, as a primary's are
        self.before = before  # a Stream that makes each round find the same

    def prepare(self, connection):
        if self.before is not None:
            self.before.run(connection)

    def run(self, *connections):
        """All batches, in turns on the connections."""
        for i, batch in enumerate(self.batches):
            connection = connections[i % len(connections)]
            connection.send(batch)
            self.answer(connection)


def values(n, keys):
    """Reads n replies of a get with so many values each."""
    def answer(connection):
        for _ in range(n):
            tap.equal(len(connection.values()), keys, "values of a get")
    return answer


class Late(Exception):
    """The disk of the log took too long, on a machine that is very busy."""


def good_line(connection):
    line = connection.line()
    if line.startswith(b"SERVER_ERROR"):
        raise Late(line)
    return line


def numbers(n):
    def answer(connection):
        for _ in range(n):
            line = good_line(connection)
            tap.check(line.isdigit(), "%r from incr" % line)
    return answer


def lines(*expected):
    def answer(connection):
        for line in expected:
            tap.equal(good_line(connection), line)
    return answer


def packets(connection):
    """Hits up to the answer of the noop."""
    for _ in range(16):
        tap.equal(packet.read(connection)[:2], (GETKQ, 0))
    tap.equal(packet.read(connection)[:2], (NOOP, 0))


def some(ids, batch, n):
    """The n ids of that batch: neighbours in time are not asked together."""
    return [ids[(batch * n + i) * 7 % len(ids)] for i in range(n)]


def keys(ids):
    return " ".join("%d.cntcm" % i for i in ids)


def get(count):
    return lambda i: "get %s\r\n" % keys(some(IDS, i, count))


def each(count, form):
    return lambda i: "".join(form % n for n in some(IDS, i, count))


def feed(i):
    return "get %s\r\n" % " ".join(
        "%d.%s" % (n, suffix) for n in some(IDS, i, 10) for suffix in SUFFIXES)


def misses(i):
    """55 of 100 ids have no record; they read as 0."""
    ids = some(IDS, i, 45) + some(ABSENT, i, 55)
    return "get %s\r\n" % keys(sorted(ids, key=lambda n: n * 7919 % 10007))


def quiet(i):
    return b"".join(packet.packet(GETKQ, b"%d.cntcm" % n)
                    for n in some(IDS, i, 16)) + packet.packet(NOOP)


def item(i):
    return "set item%02d 0 0 5\r\nhello\r\nget item%02d\r\n" % (i, i)


def swing(i):
    """Makes numbers longer, and in the next batch shorter again."""
    form = "incr %d.cntan 1000000\r\n" if i % 2 == 0 else \
        "decr %d.cntan 1000000\r\n"
    return "".join(form % n for n in some(IDS, i // 2, 16))


def fan(post, k=0):
    """One of its users: there are FANS of each post."""
    return (post * 7919 + k * 2**20) % 2**29


def of_members(form, k):
    """One member each of 16 posts, which no other batch has."""
    return lambda i: "".join(form % (n, fan(n, k)) for n in some(IDS, i, 16))


def page_of_members(i):
    """100 posts: half of the users like theirs."""
    return "get %s\r\n" % " ".join(
        "%d.liked:%d" % (n, fan(n, 1 + k % 2 * FANS))
        for k, n in enumerate(some(IDS, i, 100)))


WALL = (
    "add counter wall cold=never",
    "add column wall wall_id primarykey",
    "add column wall likes suffix=cntli",
    "add column wall liked members=exact max=1 counts=likes",
)
FANS = 20  # a post, of the 1,000
ADD = "add %d.liked:%d 0 0 1\r\n1\r\n"
REMOVE = "delete %d.liked:%d\r\n"
INCR = "incr %d.cntan 1\r\n"
MG = "mg %d.cntcm v\r\n"
SET = "set %d.cntrn 0 0 3\r\n345\r\n"
ITEM = (b"STORED", b"VALUE item%02d 0 5", b"hello", b"END")


def streams():
    def found(connection):
        tap.equal(connection.line(), b"STORED")
        tap.equal(len(connection.values()), 1, "values of a get")
    committed = {"logs": True, "committed": True}
    return [
        Stream("get", 300, get(1), values(1, 1)),
        Stream("get, 16 pipelined", 60, each(16, "get %d.cntcm\r\n"),
               values(16, 1)),
        Stream("get of 100 keys", 20, get(100), values(1, 100)),
        Stream("get of 10 ids x 3", 100, feed, values(1, 30)),
        Stream("get of 100 keys, 55 % misses", 20, misses, values(1, 100)),
        Stream("mg, 16 pipelined", 60, each(16, MG),
               lines(*[b"VA 3", b"123"] * 16)),
        Stream("binary getkq x 16, noop", 60, quiet, packets),
        Stream("incr, no log", 300, each(1, INCR), numbers(1)),
        Stream("incr, 16 pipelined, no log", 60, each(16, INCR), numbers(16)),
        Stream("incr, log on", 300, each(1, INCR), numbers(1), logs=True),
        Stream("incr, 16 pipelined, log on", 60, each(16, INCR), numbers(16),
               logs=True),
        Stream("incr, log of whole records", 300, each(1, INCR), numbers(1),
               logs=True, whole=True),
        Stream("incr, 16 pipelined, log of whole records", 60, each(16, INCR),
               numbers(16), logs=True, whole=True),
        Stream("incr that lengthens, decr, 16 pipelined, log on", 60, swing,
               numbers(16), logs=True),
        Stream("set of a cell, 16 pipelined, log on", 60, each(16, SET),
               lines(*[b"STORED"] * 16), logs=True),
        Stream("set and get of an item, pipelined", 100, item, found),
        Stream("--reads=committed, get", 300, get(1), values(1, 1),
               **committed),
        Stream("--reads=committed, get of 100 keys", 20, get(100),
               values(1, 100), **committed),
        *member_streams(),
    ]


def member_streams():
    """A member comes and goes, so that no round finds more than another; few
    in a round, so that in some no table is built anew."""
    def changes(form, k, answers, name="", before=None):
        def answer(connection):
            for _ in range(16):
                line = good_line(connection)
                tap.check(line in answers, "%r instead of one of %s"
                          % (line, answers))
        return Stream(name, 5, of_members(form, k), answer, logs=True,
                      members=True, before=before)
    add, remove = (ADD, FANS), (REMOVE, FANS)
    return [
        Stream("get of 100 keys, members, half of them misses", 20,
               page_of_members, values(1, 100), logs=True, members=True),
        changes(ADD, 0, [b"NOT_STORED"],
                "add of a member that is there, 16 pipelined, log on"),
        changes(*add, [b"STORED"], "add of a member, 16 pipelined, log on",
                changes(*remove, [b"DELETED", b"NOT_FOUND"])),
        changes(*remove, [b"DELETED"],
                "delete of a member, 16 pipelined, log on",
                changes(*add, [b"STORED", b"NOT_STORED"])),
    ]


def fill_all(connection, commands):
    """Done again where one was late, which is done."""
    for first in range(0, len(commands), 100):
        some_of = commands[first : first + 100]
        answers = [b"SERVER_ERROR"]
        while any(line.startswith(b"SERVER_ERROR") for line in answers):
            connection.send("".join(some_of))
            answers = [connection.line() for _ in some_of]
        tap.equal(answers, [b"STORED"] * len(some_of))


def fill(connection):
    """1,000 posts with three numbers each."""
    fill_all(connection, [
        "set weibo %d 123 234 20000\r\n" % i for i in IDS])


def fill_members(connection):
    """1,000 posts with their fans."""
    fill_all(connection, [
        "set %d.liked:%d 0 0 1\r\n1\r\n" % (i, fan(i, k))
        for k in range(FANS) for i in IDS])


def need_known_build():
    """The numbers are those of one compiler and its flags."""
    callgrind.need_callgrind()
    done = subprocess.run(
        ["readelf", "--debug-dump=info", "--dwarf-depth=1", server.binary()],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60,
        check=False)
    made_by = [line for line in done.stdout.decode("latin-1").splitlines()
               if "DW_AT_producer" in line and "GNU C11" in line]
    if not made_by or not COMPILER.search(made_by[0]) or \
            OTHER_FLAGS.search(made_by[0]):
        raise tap.Skip("counted for gcc 12 with -O2, this is %s"
                       % (made_by or ["another build"])[0].strip()[-120:])


class Count:
    """A stream's figures, for one batch."""

    def __init__(self, cost, n_batches):
        self.instructions = cost.instructions / n_batches
        self.allocations = cost.of(callgrind.ALLOCATORS) / n_batches
        self.locks = cost.of(callgrind.LOCKS) / n_batches
        self.atomics = cost.atomics / n_batches

    def __str__(self):
        return "%8.0f instructions, %.2f allocations, %.2f locks, %.2f " \
            "atomics" % (self.instructions, self.allocations, self.locks,
                         self.atomics)


class Disk:
    """Tells in which rounds the worker has written the log itself: after a
    slow write the log's thread does it for a second, and a worker that waits
    for it executes other things. So does one whose lock another thread has,
    as the one that packs tables behind those who filled them; and in a short
    round a turn of the loop that only looks at deadlines is seen."""

    def __init__(self, counted, logs, n_batches):
        self.connection = counted.connect() if logs else None
        self.disturbers = ["lock__wait"]
        if n_batches < SWEEPS_FROM:
            self.disturbers.append("on_sweep")
        self.n_slow = 0
        self.calm_from = time.monotonic()
        self.deadline = self.calm_from + BUSY_S
        self.begun = 0.0

    def begin(self):
        """A round begins. Fails where the disk has been slow for too long."""
        tap.check(time.monotonic() < self.deadline,
                  "each write of the log is slow, or each round disturbed, "
                  "for %d s"
                  % BUSY_S)
        self.was_calm(None)
        self.begun = time.monotonic()

    def was_calm(self, cost):
        """True where the round that ends, and had that cost, was not
        disturbed."""
        if cost is not None and cost.of(self.disturbers) > 0:
            return False
        if self.connection is None:
            return True
        n_slow = int(self.connection.stats("wal")["slow_writes"])
        if n_slow != self.n_slow:
            self.n_slow = n_slow
            self.calm_from = time.monotonic() + CALM_S
        return self.begun >= self.calm_from


def count_one(stream, counted, mark):
    """The least of some rounds that nothing has disturbed."""
    disk = Disk(counted, stream.logs, len(stream.batches))
    rounds = ROUNDS if stream.before is None else ROUNDS_PREPARED
    counts = []
    while len(counts) < rounds:
        with counted.connect() as connection:
            try:
                stream.prepare(connection)
                stream.run(connection)
                while len(counts) < rounds:
                    stream.prepare(connection)
                    disk.begin()
                    mark.cost()
                    stream.run(connection)
                    cost = mark.cost()
                    if disk.was_calm(cost):
                        counts.append(Count(cost, len(stream.batches)))
            except Late:
                disk.begin()
    return min(counts, key=lambda count: count.instructions)


def need_avx2(cost):
    if not any("avx2" in name for name in cost.calls):
        raise tap.Skip("counted on a machine with AVX2, this has none")


def counted_with(logs, threads, committed=False, whole=False):
    """A server that is counted, with or without a log."""
    more = ["--reads=committed"] if committed else []
    if whole:
        more += ["--repl-port=%d" % ports.free_port(), "--node=one",
                 "--semi-sync=0"]
    # what is counted takes so long that all of it would be slow
    return callgrind.Counted("--sync=interval", "--slow=0", *more,
                             threads=threads, data="data" if logs else "none")


def count_streams(wanted, logs, committed=False, members=False, whole=False):
    """{name: Count} of the streams with or without a log, on one worker."""
    of_server = (logs, committed, members, whole)
    with counted_with(logs, 1, committed, whole) as counted:
        mark = counted.mark()
        with counted.connect() as connection:
            connection.tell(*(WALL if members else server.WEIBO))
            (fill_members if members else fill)(connection)
            Stream("", 1, page_of_members if members else get(100),
                   values(1, 100)).run(connection)
        need_avx2(mark.cost())
        return {stream.name: count_one(stream, counted, mark)
                for stream in streams()
                if (stream.logs, stream.committed, stream.members,
                    stream.whole) == of_server and wanted in stream.name}


def count_all(wanted=""):
    counts = count_streams(wanted, False)
    counts.update(count_streams(wanted, True))
    counts.update(count_streams(wanted, True, committed=True))
    counts.update(count_streams(wanted, True, members=True))
    counts.update(count_streams(wanted, True, whole=True))
    return {stream.name: counts[stream.name] for stream in streams()
            if stream.name in counts}


def run_two(stream, counted, marks, disk, totals):
    """Rounds on connections to different workers, until there are enough that
    nothing has disturbed: what all workers took in each goes to totals."""
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(counted.connect()) for _ in marks]
        for _ in range(2):
            stream.run(*connections)
        while len(totals) < ROUNDS:
            disk.begin()
            for mark in marks:
                mark.cost()
            stream.run(*connections)
            each_cost = [mark.cost().instructions for mark in marks]
            if not disk.was_calm(None):
                continue
            totals.append(sum(each_cost))
            tap.check(min(each_cost) * len(marks) > 0.9 * totals[-1],
                      "one worker does more than the other: %s" % each_cost)


def count_two(stream, counted, marks):
    """Instructions of one batch, half of them sent to each worker: the least of
    some rounds."""
    disk = Disk(counted, stream.logs, len(stream.batches))
    totals = []
    while len(totals) < ROUNDS:
        try:
            run_two(stream, counted, marks, disk, totals)
        except Late:
            disk.begin()
    return min(totals) / len(stream.batches)


def count_workers(names):
    """{name: [instructions a batch on one worker, on two]}: connections that
    are opened one after the other are those of different workers."""
    found = {name: [] for name in names}
    for logs, n in itertools.product((False, True), (1, 2)):
        with counted_with(logs, threads=n) as counted:
            marks = [counted.mark() for _ in range(n)]
            tap.equal(len({mark.thread for mark in marks}), n, "workers")
            with contextlib.ExitStack() as stack:
                crowd = [stack.enter_context(counted.connect())
                         for _ in range(n)]
                crowd[0].tell(*server.WEIBO)
                fill(crowd[0])
            for stream in streams():
                if stream.name in found and stream.logs == logs:
                    found[stream.name].append(
                        count_two(stream, counted, marks))
    return found


HEAD = """\
# SPDX-License-Identifier: BSD-3-Clause
# What a worker executes for one batch of each stream of
# t/bench/instructions.py, which writes this file with --update and says how
# it is counted. gcc 12 -O2 and libuv of Debian 12, AVX2.
# locks: pthread's; those of base/lock.h are one of the atomics each.
# atomics: instructions that are atomic read-modify-writes, those of locks too.
# instructions  allocations  locks  atomics  stream
"""


def read_file(path=FILE):
    """{name: (instructions, allocations, locks, atomics)}"""
    table = {}
    with open(path, encoding="ascii") as rows:
        for row in rows:
            if not row.startswith("#"):
                words = row.split(None, 4)
                table[words[4].strip()] = (
                    int(words[0]), *[float(word) for word in words[1:4]])
    return table


def write_file(counts, path=FILE):
    with open(path, "w", encoding="ascii") as out:
        out.write(HEAD)
        for name, count in counts.items():
            out.write("%14.0f %12.2f %6.2f %8.2f  %s\n" % (
                count.instructions, count.allocations, count.locks,
                count.atomics, name))


def faults(count, kept):
    """What is wrong with a count beside what the file has: a list."""
    if kept is None:
        return ["is not in t/data/instructions.txt"]
    instructions, allocations, locks, atomics = kept
    found = []
    ratio = count.instructions / instructions
    if ratio > MORE:
        found.append("%.1f %% more instructions than %d: slower?" % (
            100 * ratio - 100, instructions))
    if ratio < LESS:
        found.append("%.1f %% fewer instructions than %d: well done" % (
            100 - 100 * ratio, instructions))
    for what, now, before in (("allocations", count.allocations, allocations),
                              ("locks", count.locks, locks),
                              ("atomics", count.atomics, atomics)):
        if abs(now - before) > max(CALLS_MORE, CALLS_RATIO * before):
            found.append("%.2f %s instead of %.2f" % (now, what, before))
    return found


ADVICE = "If this is meant: TALLYD=src/tallyd t/bench/instructions.py --update"


def main():
    arguments = sys.argv[1:]
    if any(word in ("-h", "--help") for word in arguments):
        print(__doc__.strip())
        return 0
    mode = arguments.pop(0) if arguments[:1] in (["--update"], ["--show"]) \
        else ""
    wanted = " ".join(arguments)
    if wanted.startswith("-") or (mode == "--update" and wanted):
        print("instructions.py: --help says what it takes", file=sys.stderr)
        return 2
    try:
        need_known_build()
        counts = count_all(wanted)
    except tap.Skip as why:
        print("instructions.py: %s" % why, file=sys.stderr)
        return 2
    if mode == "--update":
        write_file(counts)
    kept = {} if mode else read_file()
    status = 0
    for name, count in counts.items():
        print("%-36s %s" % (name, count))
        for fault in [] if mode else faults(count, kept.get(name)):
            print("  " + fault)
            status = 1
    if status:
        print(ADVICE)
    return status


if __name__ == "__main__":
    sys.exit(main())
