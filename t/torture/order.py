# SPDX-License-Identifier: BSD-3-Clause
"""With --sync=always no acknowledgement leaves before the change is synced.
strace holds every fdatasync back for 200 ms; then the order of the calls in
its output is looked at, no time. For each value that a reply carries:

    pwrite(log, ... value ...) returns
        fdatasync(log) begins
        fdatasync(log) returns 0
            write(socket, "value\\r\\n")
"""

import os
import random
import re
import threading

from clients import SCHEMA
from daemon import Daemon, Place
from oracle import Lost
from points import need_strace, wait_for_strace

DELAY_US = 200000
DEPTH = 90
LOG_CALLS = ("pwrite64", "pwritev", "pwritev2", "write", "writev")
SYNC_CALLS = ("fdatasync", "fsync")
TRACED = LOG_CALLS + SYNC_CALLS + ("sendto", "sendmsg")

BEGIN = re.compile(r"^(\d+) +(\w+)\((.*)$")
RESUMED = re.compile(r"^(\d+) +<\.\.\. (\w+) resumed>(.*)$")
RESULT = re.compile(r"= (-?\d+)[^=]*$")
TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')


class Call:
    """A call of a trace: its lines of begin and end, and what it moved."""

    def __init__(self, name, begin, arguments):
        self.name = name
        self.begin = begin
        self.end = None
        self.result = None
        self.take(arguments)

    def take(self, arguments):
        # -xx writes the name behind the descriptor in hex too
        name = arguments.partition("<")[2].partition(">")[0]
        self.target = bytes.fromhex(
            name.replace("\\x", "")).decode("latin-1")
        self.data = b"".join(
            bytes.fromhex(text.replace("\\x", ""))
            for text in TEXT.findall(arguments))

    def finish(self, end, text):
        self.end = end
        found = RESULT.search(text)
        self.result = int(found.group(1)) if found else None


def read_trace(path):
    """The calls in the order in which they began."""
    calls = []
    pending = {}
    with open(path, encoding="latin-1") as lines:
        for number, line in enumerate(lines):
            line = line.rstrip("\n")
            found = BEGIN.match(line)
            if found:
                call = Call(found.group(2), number, found.group(3))
                calls.append(call)
                if line.endswith("<unfinished ...>"):
                    pending[found.group(1)] = call
                else:
                    call.finish(number, line)
                continue
            found = RESUMED.match(line)
            if found and found.group(1) in pending:
                pending.pop(found.group(1)).finish(number, found.group(3))
    return calls


def varint(value):
    """As in doc/format-log.md."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


class Trace:
    """A server whose calls are written down, with replies to look at."""

    def __init__(self, threads, path=None):
        need_strace()
        self.place = Place()
        self.log = os.path.join(self.place.top, "trace")
        wrapper = ["strace", "-D", "-f", "-y", "-xx", "-s", "4194304",
                   "-o", self.log, "-e", "trace=" + ",".join(TRACED),
                   "-e", "inject=fdatasync,fsync:delay_enter=%d" % DELAY_US]
        self.daemon = Daemon(self.place, "--sync=always", wrapper=wrapper,
                             threads=threads, path=path)
        self.values = []  # of each cell, those it had one after the other
        self.faults = []

    def __enter__(self):
        self.daemon.start()
        with self.daemon.connect() as connection:
            connection.tell(*SCHEMA)
        return self

    def __exit__(self, kind, *_):
        if kind is not None and not self.daemon.stopped:
            self.daemon.kill(show=True)
        self.place.remove()

    def cell(self):
        """A new cell with a value that is nowhere else; (key, value)."""
        source = random.SystemRandom()
        key = "%d.la" % source.getrandbits(60)
        value = source.randrange(1 << 60, 1 << 61)
        with self.daemon.connect() as connection:
            answer = connection.set(key, str(value))
        if answer != "STORED":
            raise Lost("%r to a set" % answer)
        self.values.append([])
        return key, value

    def together(self, *functions):
        """Runs them in threads of their own."""
        def guarded(function, values):
            try:
                function(values)
            except Exception as error:
                self.faults.append(repr(error))
        threads = []
        for function in functions:
            key, value = self.cell()
            threads.append(threading.Thread(
                target=guarded,
                args=(lambda values, f=function, k=key, v=value:
                      f(self.daemon, k, v, values), self.values[-1])))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.faults:
            raise Lost("\n".join(self.faults))

    def finish(self):
        """Stops the server and looks at the order; how many replies."""
        self.daemon.stop()
        wait_for_strace(self.log, self.daemon.process.pid)
        return check_order(read_trace(self.log), self.values,
                           self.place.data)


def check_order(calls, cells, data):
    """Raises where a reply left too early."""
    log = [c for c in calls if c.name in LOG_CALLS and data in c.target]
    syncs = [c for c in calls if c.name in SYNC_CALLS and data in c.target]
    replies = [c for c in calls if data not in c.target and c.data]
    looked_at = 0
    for values in cells:
        for at, value in enumerate(values):
            reply = first(replies, [b"\n%d\r\n" % value])
            written = first(log, [varint(v) for v in values[at:]] +
                            [b" %d]" % v for v in values[at:]])
            looked_at += 1
            if reply is None:
                raise Lost("no reply with %d in the trace" % value)
            if written is None or written.end is None or \
                    written.end > reply.begin:
                raise Lost("line %d: the reply %d left before the log was "
                           "written" % (reply.begin + 1, value))
            if not any(s.target == written.target and s.result == 0 and
                       s.begin > written.end and s.end is not None and
                       s.end < reply.begin for s in syncs):
                raise Lost("line %d: the reply %d left before the sync of "
                           "line %d" % (reply.begin + 1, value,
                                        written.begin + 1))
    return looked_at


def first(calls, tokens):
    """The first call whose bytes have one of the tokens."""
    for call in calls:
        data = b"\n" + call.data
        if any(token in data for token in tokens):
            return call
    return None


# Ways to write, each with a cell of its own.

def plain(daemon, key, value, values):
    with daemon.connect() as connection:
        for _ in range(4):
            value += 1
            values.append(value)
            answer = connection.ask("incr %s 1" % key)
            if answer != str(value):
                raise Lost("%s instead of %d" % (answer, value))


def pipelined(daemon, key, value, values):
    """More than -R, so that turns pile up behind the first."""
    with daemon.connect() as connection:
        for _ in range(3):
            values.extend(range(value + 1, value + DEPTH + 1))
            connection.send("incr %s 1\r\n" % key * DEPTH)
            for _ in range(DEPTH):
                value += 1
                answer = connection.line()
                if answer != b"%d" % value:
                    raise Lost("%r instead of %d" % (answer, value))


def quiet(daemon, key, value, values):
    """noreply, then a get: its reply acknowledges."""
    with daemon.connect() as connection:
        for _ in range(3):
            value += 5
            values.append(value)
            connection.send("incr %s 1 noreply\r\n" % key * 5)
            found = connection.get(key)
            if found != [(key, 0, b"%d" % value)]:
                raise Lost("%r instead of %d" % (found, value))


def trace(functions, threads, path=None):
    """How many replies were looked at."""
    with Trace(threads, path) as traced:
        traced.together(*functions)
        return traced.finish()
