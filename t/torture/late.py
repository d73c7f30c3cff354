# SPDX-License-Identifier: BSD-3-Clause
"""A disk whose sync hangs for a while: strace holds the first fdatasync of the
log's thread on the log file back for DELAY_S. Changes are answered
SERVER_ERROR before it returns, which the trace tells, no clock; reads go on;
afterwards the server takes changes again, and after kill -9 nothing that was
acknowledged is missing."""

import time

import server
from clients import LATE
from daemon import Daemon, need_sound
from delayed import Delayed
from oracle import Lost

DELAY_S = 10
CELL = "77.la"
QUIET = "78.la"
BURST = 400  # changes sent at once, when the disk is well again


class Slow(Delayed):
    """A server the sync of whose log file hangs once."""

    def __init__(self, mode, path=None):
        super().__init__("fdatasync", DELAY_S, "--sync=" + mode,
                         "--sync-interval=20", "--commit-timeout=1",
                         when=":when=1", path=path)
        self.acked = 0
        self.asked = 0
        self.quiet = 0

    def take(self, line):
        """One reply to an incr of CELL by 1, in the order asked for. True
        where it acknowledges."""
        self.asked += 1
        if line.startswith(LATE):
            return False
        if line != str(self.asked):
            raise Lost("%r instead of %d" % (line, self.asked))
        self.acked = self.asked
        return True

    def run_into_it(self, connection):
        """Changes until one is late; there is a get behind each. The one
        without a reply is late, too, and ends the connection."""
        deadline = time.monotonic() + server.LIMIT_S
        while True:
            connection.send("incr %s 1\r\nincr %s 1 noreply\r\nget %s\r\n"
                            % (CELL, QUIET, CELL))
            self.quiet += 1
            was_good = self.take(connection.line().decode("latin-1"))
            if not was_good:
                if self.returned():
                    raise Lost("the error came after the sync")
            try:
                self.need(connection.values())
            except server.Closed:
                return
            if not was_good:
                raise Lost("a get behind a late change without a reply")
            if time.monotonic() > deadline:
                raise Lost("no change is late")

    def need(self, found):
        if found != [(CELL, 0, b"%d" % self.asked)]:
            raise Lost("%r instead of %d" % (found, self.asked))

    def go_on(self, connection):
        """Changes until the disk is well; then many."""
        while not self.take(connection.ask("incr %s 1" % CELL)):
            pass
        connection.send("incr %s 1\r\n" % CELL * BURST)
        good = sum(self.take(connection.line().decode("latin-1"))
                   for _ in range(BURST))
        if good == 0:
            raise Lost("all late, and the disk is well")

    def look(self):
        """After kill -9 and another start."""
        self.daemon.murder()
        with Daemon(self.place, *self.options, path=self.path) as daemon:
            daemon.start()
            with daemon.connect() as connection:
                found = int(connection.get(CELL)[0][2])
                quiet = int(connection.get(QUIET)[0][2])
        if not self.acked <= found <= self.asked:
            raise Lost("%d; %d acknowledged, %d asked for" % (
                found, self.acked, self.asked))
        if quiet != self.quiet:
            raise Lost("%d of %d changes without a reply" % (
                quiet, self.quiet))
        need_sound(self.place)


def late(mode, path=None):
    """How many changes were answered with the error."""
    with Slow(mode, path) as slow:
        with slow.daemon.connect() as connection, \
                slow.daemon.connect() as other:
            slow.run_into_it(connection)
            slow.need(other.get(CELL))
            waits = int(slow.daemon.stat("unsynced_ms"))
            if waits == 0 and not slow.returned():
                raise Lost("stats wal knows of no wait")
            with slow.daemon.connect() as fresh:
                slow.go_on(fresh)
            count = int(slow.daemon.stat("changes_late"))
            if count < 2:
                raise Lost("stats wal counts %d late changes" % count)
            slow.need(other.get(CELL))
        slow.look()
    return count
