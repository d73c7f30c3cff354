#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Counts the cache lines that the turns of two workers have in common.

usage: TALLYD=src/tallyd t/bench/shared_lines.py [WORDS]

  WORDS  only the rows with these words in their names

A server with two workers runs under valgrind's lackey, which tells each load
and store. Two connections, one of each worker, ask in turns for ids (or items)
that lie far apart, so that no two records are in one line of a table. Of each
row: the lines of 64 bytes that both workers write, those that one writes and
the other reads, and which functions write them. What the kernel does is not
seen, and no time is looked at: which lines these are does not depend on how
fast the machine is. Minutes; a busy machine, more.
"""

import collections
import contextlib
import fcntl
import os
import re
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../lib"),
                os.path.join(HERE, "../torture")]

import callgrind
import packet
import server
import tap

LINE_BITS = 6
CHUNK = 1 << 20
F_SETPIPE_SZ = 1031  # fcntl's, which Python has from 3.10 on
FILLS_S = 0.01
START_S = 900       # a server that is traced, on a machine that is busy
IDS = 512           # of each worker, which lie as posts of one minute do
APART = 1 << 40     # between the ids of one worker and those of the other
BATCHES = 24        # of each worker that are counted, and as many before
SHOWN = 8           # functions of a row
RUNS = b"acquired lock"
SWITCH = re.compile(rb"SCHED\[(\d+)\]:\s+" + RUNS)
GETKQ, NOOP = 0x0d, 0x0a


class Row(collections.namedtuple("Row", "name n ask answer logs")):
    """ask: of n numbers of records, the bytes; answer(connection, n) reads
    the replies."""


def values(connection, n):
    for _ in range(n):
        tap.equal(len(connection.values()), 1, "values of a get")


def page(connection, n):
    tap.equal(len(connection.values()), n, "values of a get")


def good_lines(connection, n):
    for _ in range(n):
        line = connection.line()
        tap.check(not line.startswith((b"SERVER_ERROR", b"ERROR")), line)


def packets(connection, n):
    for _ in range(n):
        tap.equal(packet.read(connection)[:2], (GETKQ, 0))
    packet.read(connection)


def each(form):
    return lambda ids: "".join(form % i for i in ids)


def quiet(ids):
    return b"".join(packet.packet(GETKQ, b"%d.cntcm" % i)
                    for i in ids) + packet.packet(NOOP)


def keys(form):
    return lambda ids: "get %s\r\n" % " ".join(form % i for i in ids)


GET, INCR = "get %d.cntcm\r\n", "incr %d.cntan 1\r\n"
ITEM_SET = "set item%d 0 0 5\r\nhello\r\n"
ROWS = (
    Row("get", 1, each(GET), values, False),
    Row("get, 16 pipelined", 16, each(GET), values, False),
    Row("get of 100 keys", 100, keys("%d.cntcm"), page, False),
    Row("mg, 16 pipelined", 16, each("mg %d.cntcm v\r\n"),
        lambda connection, n: good_lines(connection, 2 * n), False),
    Row("binary getkq x 16, noop", 16, quiet, packets, False),
    Row("get of an item, 16 pipelined", 16, each("get item%d\r\n"), values,
        False),
    Row("set of an item, 16 pipelined", 16, each(ITEM_SET), good_lines, False),
    Row("incr, no log", 1, each(INCR), good_lines, False),
    Row("incr, 16 pipelined, no log", 16, each(INCR), good_lines, False),
    Row("get, log on", 1, each(GET), values, True),
    Row("incr, log on", 1, each(INCR), good_lines, True),
    Row("incr, 16 pipelined, log on", 16, each(INCR), good_lines, True),
)


class Turns:
    """What each thread loads and stores between the second mark and the third:
    two tell which threads the workers are, and the third is the end."""

    MARKS = 3

    def __init__(self, thread, marks_at):
        self.thread = thread    # that runs
        self.marks_at = marks_at
        self.place = 0          # in the program
        self.marking = []       # threads that marks came from
        # by thread
        self.written = collections.defaultdict(dict)  # {line: {place}}
        self.read = collections.defaultdict(set)      # {line}

    def is_over(self):
        return len(self.marking) == self.MARKS

    def take(self, text):
        """Whole lines of lackey and of valgrind's scheduler."""
        for line in text.splitlines():
            kind = line[:2]
            if kind == b"I ":
                self.place = int(line[3:line.index(b",")], 16)
                if self.place == self.marks_at:
                    self.take_mark()
                    if self.is_over():
                        return
            elif kind in (b" S", b" M", b" L"):
                self.take_access(kind, line)
            elif line.startswith(b"--"):
                found = SWITCH.search(line)
                if found:
                    self.thread = int(found.group(1))

    def take_mark(self):
        self.marking.append(self.thread)
        if len(self.marking) == self.MARKS - 1:
            self.written.clear()
            self.read.clear()

    def take_access(self, kind, text):
        """A store, a load, or both: " S 1fff000618,8"."""
        comma = text.index(b",")
        at = int(text[3:comma], 16)
        last = at + int(text[comma + 1:]) - 1
        for line in range(at >> LINE_BITS, (last >> LINE_BITS) + 1):
            if kind != b" L":
                self.written[self.thread].setdefault(line, set()).add(
                    self.place)
            if kind != b" S":
                self.read[self.thread].add(line)

    def shared(self):
        """Of the lines that both workers write, and of those that one writes
        and the other only reads: the places that write them, a set each."""
        one, other = self.marking[:2]
        tap.check(one != other, "marks of one worker")
        first, second = self.written[one], self.written[other]
        tap.check(first and second, "a worker has done nothing")
        both = [first[line] | second[line]
                for line in first.keys() & second.keys()]
        half = [mine[line] for mine, theirs, reads in (
            (first, second, self.read[other]),
            (second, first, self.read[one]))
                for line in (mine.keys() & reads) - theirs.keys()]
        return both, half


class Trace(threading.Thread):
    """Reads what lackey writes to a pipe; it is kept while Turns are asked
    for."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path = path
        self.thread = 1
        self.asked = None
        self.over = threading.Event()

    def begin(self, marks_at):
        self.over.clear()
        self.asked = marks_at

    def run(self):
        rest, turns = b"", None
        with open(self.path, "rb", buffering=0) as pipe:
            fcntl.fcntl(pipe, F_SETPIPE_SZ, CHUNK)
            for chunk in iter(lambda: pipe.read(CHUNK), b""):
                text, _, rest = (rest + chunk).rpartition(b"\n")
                turns = self.take(text, turns)
                if len(chunk) < CHUNK // 2:
                    time.sleep(FILLS_S)  # lackey writes line by line

    def take(self, text, turns):
        """Whole lines; turns: those that have begun and are not over."""
        if turns is None and self.asked is not None:
            turns, self.asked = Turns(self.thread, self.asked), None
        if turns is not None:
            turns.take(text)
            if turns.is_over():
                self.found, turns = turns, None
                self.over.set()
        found = SWITCH.search(
            text, text.rfind(b"\n", 0, max(0, text.rfind(RUNS))) + 1)
        if found:
            self.thread = int(found.group(1))
        return turns


class Traced(server.Server):
    """A server of two workers under lackey; wait_exit and stop as ever."""

    def __init__(self, logs):
        super().__init__("--sync=interval", "--slow=0", threads=2,
                         data="data" if logs else "none")
        pipe = os.path.join(self.directory, "trace")
        os.mkfifo(pipe)
        self.trace = Trace(pipe)
        self.command = [
            "valgrind", "-q", "--tool=lackey", "--basic-counts=no",
            "--trace-mem=yes", "--trace-sched=yes", "--log-file=" + pipe,
            *self.command]

    def launch(self):
        self.trace.start()
        super().launch()

    def start(self):
        """Until it has loaded what there is."""
        super().start()
        self.wait(self.has_loaded, "end of loading")

    has_loaded = callgrind.Counted.has_loaded

    def symbols(self):
        """Where the program lies, and the address of what answers marks."""
        path = os.path.realpath(self.path)
        with open("/proc/%d/maps" % self.process.pid, encoding="ascii") as \
                maps:
            base = min(int(row.split("-")[0], 16) for row in maps
                       if row.rstrip().endswith(path))
        done = subprocess.run(["nm", path], stdout=subprocess.PIPE, text=True,
                              check=True)
        at = [int(row.split()[0], 16) for row in done.stdout.splitlines()
              if row.endswith(" " + callgrind.MARKING)]
        tap.equal(len(at), 1, "functions that answer marks")
        return Symbols(path, base), base + at[0]


class Symbols:
    """Names of functions, those that are inlined, too."""

    def __init__(self, path, base):
        self.path = path
        self.base = base
        self.end = base + os.path.getsize(path)

    def names(self, places):
        """{place: name}"""
        inside = sorted(place for place in places
                        if self.base <= place < self.end)
        done = subprocess.run(
            ["addr2line", "-f", "-e", self.path,
             *(hex(place - self.base) for place in inside)],
            stdout=subprocess.PIPE, text=True, check=True)
        found = dict(zip(inside, done.stdout.splitlines()[::2]))
        return {place: found.get(place, "a library") for place in places}


def mark(connection):
    connection.send(packet.packet(callgrind.VERSION))
    packet.read(connection)


def ids_of(worker, batch, n):
    first = worker * APART + 10**6
    return [first + (batch * n + i) * 7 % IDS for i in range(n)]


def fill(connection):
    for worker in range(2):
        ids = ids_of(worker, 0, IDS)
        for form in ("set weibo %d 123 234 20000\r\n", ITEM_SET):
            connection.send(each(form)(ids))
            for _ in ids:
                tap.equal(connection.line(), b"STORED")


def measure(row, traced, marks_at):
    """Turns with the row's batches, in turns on two workers."""
    with contextlib.ExitStack() as stack:
        marks = [stack.enter_context(traced.connect()) for _ in range(2)]
        workers = [stack.enter_context(traced.connect()) for _ in range(2)]

        def run():
            for batch in range(BATCHES):
                for worker, connection in enumerate(workers):
                    connection.send(row.ask(ids_of(worker, batch, row.n)))
                    row.answer(connection, row.n)
        run()
        traced.trace.begin(marks_at)
        for connection in marks:
            mark(connection)
        run()
        mark(marks[0])
        tap.check(traced.trace.over.wait(START_S), "no end of the trace")
    return traced.trace.found


def shown(lines, symbols):
    """Functions that write the lines, and how many lines each."""
    names = symbols.names(set().union(*lines))
    count = collections.Counter(
        name for line in lines for name in {names[at] for at in line})
    return ", ".join("%s %d" % pair for pair in count.most_common(SHOWN))


def main():
    arguments = sys.argv[1:]
    if any(word in ("-h", "--help") for word in arguments):
        print(__doc__.strip())
        return
    wanted = " ".join(arguments)
    server.LIMIT_S = START_S
    for logs in False, True:
        rows = [row for row in ROWS if row.logs == logs and wanted in row.name]
        if not rows:
            continue
        with Traced(logs) as traced:
            symbols, marks_at = traced.symbols()
            with traced.connect() as connection:
                connection.tell(*server.WEIBO)
                fill(connection)
            for row in rows:
                both, half = measure(row, traced, marks_at).shared()
                print("%-32s both write %3d   one writes, one reads %3d"
                      % (row.name, len(both), len(half)), flush=True)
                for word, lines in ("both", both), ("one", half):
                    if lines:
                        print("  %s: %s" % (word, shown(lines, symbols)),
                              flush=True)


if __name__ == "__main__":
    main()
