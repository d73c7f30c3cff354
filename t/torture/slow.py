# SPDX-License-Identifier: BSD-3-Clause
"""A disk that holds writes up: strace delays each pwrite on the log file by
DELAY_S. A server of one worker, --sync=interval. The first such write may hold
the worker up; behind it the log's thread writes, and gets on another connection
are answered before the write of a change ends, which the trace tells, no
clock."""

import os

from clients import SCHEMA
from daemon import Daemon, Place
from late import NAME
from oracle import Lost
from points import need_strace

DELAY_S = 2
CELL = "77.la"
GETS = 20


class Held:
    """A server all of whose writes to the log are held up."""

    def __init__(self, path=None):
        need_strace()
        self.place = Place()
        self.trace = os.path.join(self.place.top, "trace")
        with Daemon(self.place, path=path) as daemon:
            daemon.start()
            with daemon.connect() as connection:
                connection.tell(*SCHEMA)
        number = max(int(name[len("log-"):]) for name in self.place.names()
                     if name.startswith("log-")) + 1
        log = os.path.join(os.path.realpath(self.place.data), NAME % number)
        calls = "pwrite64,pwritev,pwritev2"
        wrapper = ["strace", "-D", "-f", "-o", self.trace, "-P", log,
                   "-e", "trace=" + calls, "-e",
                   "inject=%s:delay_enter=%d" % (calls, DELAY_S * 1000000)]
        self.daemon = Daemon(self.place, "--sync=interval",
                             "--sync-interval=60000", wrapper=wrapper,
                             threads=1, path=path)

    def __enter__(self):
        self.daemon.start()
        return self

    def __exit__(self, kind, *_):
        if not self.daemon.stopped:
            self.daemon.kill(show=kind is not None)
        self.place.remove()

    def writes(self):
        """How many writes have returned."""
        try:
            with open(self.trace, encoding="latin-1") as lines:
                return lines.read().count("DELAYED")
        except FileNotFoundError:
            return 0


def slow(path=None):
    """How many gets were answered while a write was held up."""
    with Held(path) as held, held.daemon.connect() as writer, \
            held.daemon.connect() as reader:
        # a reply waits for its write: so one write has been slow
        answer = writer.ask("incr %s 1" % CELL)
        done = held.writes()
        if done == 0:
            raise Lost("%r, and no write was held up" % answer)
        writer.send("incr %s 1 noreply\r\n" % CELL)
        while reader.get(CELL) != [(CELL, 0, b"2")]:
            pass
        # that was read in the turn of the change, or before its commit; these
        # come in later turns
        for _ in range(GETS):
            if reader.get(CELL) != [(CELL, 0, b"2")]:
                raise Lost("a change went away")
        if held.writes() != done:
            raise Lost("gets waited for a write of the log")
        if int(held.daemon.stat("slow_writes")) == 0:
            raise Lost("stats wal knows of no slow write")
    return GETS
