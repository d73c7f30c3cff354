# SPDX-License-Identifier: BSD-3-Clause
"""The power is cut under load, on ext4 and XFS: always loses nothing that was
acknowledged, interval nothing that was acknowledged before the last interval,
and what is left is a state that each client's changes had. Now and then the
power goes again while the server starts.

A power cut ends everything at one moment; a file system that is shut down goes
on for a while, and an fdatasync that is under way may return 0 then although
the blocks it has written stay unwritten extents. So the server is stopped
first: what it is told by calls under way never becomes an acknowledgement.
"""

import random
import signal
import time

from clients import Crowd
from daemon import Daemon, SMALL, need_sound
from disk import Disk
from oracle import Lost
from shim import FOREVER, Shim

INTERVALS_MS = (100, 400)
LATE_S = 0.5   # what a busy machine may add to an interval
LOAD_S_MAX = {"always": 0.5, "interval": 2.0}
START_S_MAX = 0.03
MS = 1000.0


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

    def start(self):
        while self.is_declared and self.source.random() < 0.3:
            daemon = self.daemon()
            daemon.launch()
            time.sleep(self.source.uniform(0, START_S_MAX))
            self.disk.cut()
            daemon.murder()
            self.disk.restore()
            self.log.append("cut while starting")
        daemon = self.daemon()
        try:
            daemon.start()
            with daemon.connect() as connection:
                if not self.is_declared:
                    self.crowd.declare(connection)
                    self.is_declared = True
                self.crowd.settle(daemon.connect, self.low)
                # what a read has shown is durable when a later change is
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
            self.low_at = None
            if self.mode == "interval":
                self.low_at = time.monotonic() - LATE_S - \
                    self.interval_ms / MS
            daemon.freeze()
            self.disk.cut()
            daemon.murder()
            self.crowd.end(may_refuse=True)
            self.log.append("cut after %d changes" % self.crowd.acked())
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
