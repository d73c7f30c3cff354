# SPDX-License-Identifier: BSD-3-Clause
"""kill -9 under load at random times, again and again on one directory, also
while the server starts; clean stops, checkpoints and seals in between. In all
modes what is found must be a state that each client's changes had; in always
and interval none that was acknowledged may be missing."""

import random
import signal
import threading
import time

import server
from clients import Crowd
from daemon import Daemon, Place, SMALL, need_sound
from oracle import Lost

MODES = ("interval", "always", "none")
LOAD_S_MAX = 0.35      # a run before it is killed, at most
START_S_MAX = 0.04     # a start before it is killed, at most
SLOW = 4 if server.SANITIZER else 1
SEALING = 0.6          # of the runs in which the cold tier is used
SEAL_S_MAX = 1.5       # a run of these before it is killed, at most

# How a run ends, and how often.
ENDS = ("kill",) * 7 + ("quiet kill", "stop", "checkpoint and stop")


class Cycles:
    """Runs of one directory in one mode."""

    def __init__(self, mode, seed, path=None):
        self.mode = mode
        self.source = random.Random("%s %s" % (seed, mode))
        self.path = path
        self.crowd = Crowd(self.source)
        self.place = Place()
        self.is_declared = False
        self.ended = "stop"
        self.acked = 0
        self.is_over = False  # a run; the disturber is to end
        self.fault = ""       # of the disturber
        self.log = []

    def close(self):
        self.place.remove()

    def daemon(self):
        source = self.source
        options = ["--sync=" + self.mode,
                   "--sync-interval=%d" % source.choice((20, 100, 1000))]
        if source.random() < 0.7:
            options += SMALL
        if source.random() < 0.3:
            options.append("--checkpoint-interval=1")
        return Daemon(self.place, *options, path=self.path,
                      threads=source.choice((1, 2, 4)))

    def low(self, journal):
        """What may not be lost after the last end."""
        if self.mode == "none" and self.ended.endswith("kill"):
            return journal.floor
        return journal.low()

    def start(self):
        """Starts, now and then killed meanwhile, and looks."""
        while self.is_declared and self.source.random() < 0.35:
            daemon = self.daemon()
            daemon.launch()
            time.sleep(self.source.uniform(0, START_S_MAX * SLOW))
            daemon.murder()
            self.log.append("killed while starting")
        if self.source.random() < 0.2 and self.is_declared:
            need_sound(self.place, self.path)
        daemon = self.daemon()
        try:
            daemon.start()
            if not self.is_declared:
                with daemon.connect() as connection:
                    self.crowd.declare(connection)
                self.is_declared = True
            self.crowd.settle(daemon.connect, self.low)
        except BaseException:
            daemon.kill(show=True)
            raise
        return daemon

    def disturb(self, daemon, is_sealing):
        """Checkpoints in the middle of the run, or seals."""
        kind = self.source.random()
        try:
            if is_sealing:
                self.seal(daemon)
            elif kind < 0.25:
                daemon.signal(signal.SIGUSR2)
            elif kind < 0.4:
                with daemon.connect() as connection:
                    self.crowd.checkpoint(connection)
        except (server.Closed, OSError):
            pass
        except Lost as error:
            self.fault = str(error)

    def seal(self, daemon):
        """Until the run is over."""
        with daemon.connect() as connection:
            while not self.is_over and self.crowd.seal(connection):
                pass

    def run(self):
        """One life of the server."""
        daemon = self.start()
        try:
            self.crowd.start(daemon.connect)
            self.crowd.wait_acked(20, daemon.alive)
            is_sealing = self.source.random() < SEALING
            seconds = SLOW * self.source.uniform(
                0, SEAL_S_MAX if is_sealing else LOAD_S_MAX)
            self.is_over = False
            disturber = threading.Timer(
                0 if is_sealing else seconds * self.source.random(),
                self.disturb, (daemon, is_sealing))
            disturber.start()
            time.sleep(seconds)
            self.is_over = True
            self.ended = self.source.choice(ENDS)
            if not daemon.alive():
                raise Lost("the server died by itself: " + daemon.stderr())
            if self.ended == "quiet kill":
                self.crowd.end()  # every request is answered first
            if self.ended.endswith("kill"):
                daemon.murder()
            disturber.join()
            if self.ended == "stop":
                daemon.stop()
            elif self.ended == "checkpoint and stop":
                daemon.checkpoint_and_stop()
            self.crowd.end()
            if self.fault:
                raise Lost(self.fault)
            self.acked += self.crowd.acked()
            self.log.append(self.ended)
        except BaseException:
            daemon.kill(show=True)
            raise

    def finish(self):
        """The last look, and a clean end."""
        daemon = self.start()
        with daemon:
            pass
        need_sound(self.place, self.path)


def kill_cycles(mode, count, seed, path=None, tell=lambda text: None):
    """count lives in a mode that end by kill -9, and those in between that
    end by a stop; returns how many changes were acknowledged, and how many
    counters sealed."""
    cycles = Cycles(mode, seed, path)
    killed = 0
    try:
        while killed < count:
            tell("%s, run %d of %d" % (mode, killed + 1, count))
            cycles.run()
            killed += cycles.ended.endswith("kill")
        cycles.finish()
    except Exception as error:
        raise AssertionError("%s, seed %s, after %s: %s" % (
            mode, seed, cycles.log[-5:], error)) from error
    finally:
        cycles.close()
    return cycles.acked, cycles.crowd.seals
