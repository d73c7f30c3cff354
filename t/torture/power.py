# SPDX-License-Identifier: BSD-3-Clause
"""The power is cut under load, on ext4 and XFS: always loses nothing that was
acknowledged, interval nothing that was acknowledged before the last interval,
and what is left is a state that each client's changes had. Now and then the
power goes again while the server starts.

A power cut ends everything at one moment; a file system that is shut down goes
on for a while, and an fdatasync that is under way may return 0 then although
the blocks it has written stay unwritten extents. What the server is told by
such calls must not count as an acknowledgement. There are two ways to see to
that:

* the server is stopped before the cut, so that it never says so. Then every
  acknowledgement counts (the clients may read some of them later: they were
  on their way).
* in a third of the cuts it runs on, and is in the midst of whatever it does.
  Then only what clients had noted as acknowledged before the moment at which
  the call for the cut is about to be made counts: the syncs that stand for it
  had returned by then. What they note later, while the file system is going
  down or after, is unknown, as what was sent and not answered is: it may be
  there or not, but in each client's order.

Both are sound, the second looks at more of what the server does at a cut; it
must go on living then, and refuse. A part of the cuts is made by xfs_io, where
it is installed, the rest by the same call from here.
"""

import random
import signal
import time

from clients import Crowd
from daemon import Daemon, SMALL, must_start, need_sound
from disk import Disk
from oracle import Lost
from shim import FOREVER, Shim

INTERVALS_MS = (100, 400, 1000)
LATE_S = 0.5   # what a busy machine may add to an interval, but seldom,
STALL_S = 30   # and ever
LOAD_S_MAX = {"always": 0.5, "interval": 2.0}
START_S_MAX = 0.03
RUNS_ON = 1 / 3     # of the cuts: the server is not stopped before
BY_PROGRAM = 1 / 2  # of the cuts, where there is one
MS = 1000.0


def synced_until(asked, interval_ms, unsynced_ms):
    """The time before which all was synced when `stats wal`, asked for at that
    time, said so of unsynced_ms: on a machine that gives the log's thread no
    core, or with a disk that stands still, it is less than the interval ago."""
    late_s = (int(unsynced_ms) + 1 - interval_ms) / MS
    if late_s > STALL_S:
        raise Lost("nothing was synced for %.1f s beyond --sync-interval" %
                   late_s)
    return asked - (int(unsynced_ms) + 1) / MS


class Cuts:
    """Cuts of one file system in one mode. no_sync: the server is made to
    leave every sync out, which must be found."""

    def __init__(self, kind, mode, seed, no_sync=False, path=None):
        self.source = random.Random("%s %s %s" % (seed, kind, mode))
        self.mode = mode
        self.path = path
        self.crowd = Crowd(self.source)
        self.disk = Disk(kind)
        self.is_declared = False
        self.low_at = None  # acknowledged before this time: must survive
        self.acked = 0
        self.log = []
        self.environment = {}
        if no_sync:
            shim = Shim(self.disk)
            shim.arm("sync", "leave out", 1, FOREVER)
            self.environment = shim.environment()

    def close(self):
        self.disk.remove()

    def daemon(self):
        source = self.source
        self.interval_ms = source.choice(INTERVALS_MS)
        options = ["--sync=" + self.mode,
                   "--sync-interval=%d" % self.interval_ms]
        if source.random() < 0.7:
            options += SMALL
        return Daemon(self.disk, *options, environment=self.environment,
                      threads=source.choice((1, 2)), path=self.path)

    def low(self, journal):
        return journal.low(self.low_at)

    def cut(self):
        """The power goes; the moment before."""
        by_program = self.source.random() < BY_PROGRAM
        moment = time.monotonic()
        self.disk.cut(by_program)
        return moment

    def start(self):
        while self.is_declared and self.source.random() < 0.3:
            daemon = self.daemon()
            daemon.launch()
            time.sleep(self.source.uniform(0, START_S_MAX))
            self.cut()
            daemon.murder()
            self.disk.restore()
            self.log.append("cut while starting")
        daemon = self.daemon()
        try:
            must_start(daemon)
            with daemon.connect() as connection:
                if not self.is_declared:
                    self.crowd.declare(connection)
                    self.is_declared = True
                self.crowd.settle(daemon.connect, self.low)
                # what a read has shown is durable when a later change is
                if self.source.random() < 0.5:
                    self.crowd.seal(connection)
                else:
                    self.crowd.checkpoint(connection)
        except BaseException:
            daemon.kill(show=True)
            raise
        return daemon

    def run(self):
        """One life, up to the cut."""
        daemon = self.start()
        try:
            self.crowd.start(daemon.connect)
            self.crowd.wait_acked(20, daemon.alive)
            seconds = self.source.uniform(0, LOAD_S_MAX[self.mode])
            time.sleep(seconds * self.source.random())
            if self.source.random() < 0.4:
                daemon.signal(signal.SIGUSR2)
                self.log.append("checkpoint")
            time.sleep(seconds / 2)
            if not daemon.alive():
                raise Lost("the server died by itself: " + daemon.stderr())
            runs_on = self.source.random() < RUNS_ON
            synced = synced_until(time.monotonic(), self.interval_ms,
                                  daemon.stat("unsynced_ms"))
            until = time.monotonic()
            if not runs_on:
                daemon.freeze()
            moment = self.cut()
            if runs_on and not daemon.alive():
                raise Lost("the server died of the cut: " + daemon.stderr())
            daemon.murder()
            self.crowd.end(may_refuse=True)
            self.low_at = moment if runs_on else None
            if self.mode == "interval":
                self.low_at = min(until - LATE_S - self.interval_ms / MS,
                                  synced)
            self.log.append("%s after %d changes" % (
                "cut while it runs" if runs_on else "cut",
                self.crowd.acked()))
            self.acked += self.crowd.acked()
        except BaseException:
            daemon.kill(show=True)
            raise
        self.disk.restore()

    def finish(self):
        with self.start():
            pass
        need_sound(self.disk, self.path)


def power_cuts(kind, mode, count, seed, no_sync=False, path=None,
               tell=lambda text: None):
    """count cuts; returns how many changes were acknowledged."""
    cuts = Cuts(kind, mode, seed, no_sync, path)
    try:
        for number in range(count):
            tell("%s on %s, cut %d of %d" % (mode, kind, number + 1, count))
            cuts.run()
        cuts.finish()
    except Lost as error:
        raise Lost("%s on %s, seed %s, after %s: %s" % (
            mode, kind, seed, cuts.log[-6:], error)) from error
    finally:
        cuts.close()
    return cuts.acked
