# SPDX-License-Identifier: BSD-3-Clause
"""The power is cut at any write of a disk that logs them: a server runs under
load, with rotation, checkpoints, seals, merges and edits of the schema; then
states that a cut may have left are made from the disk's log, and in each of
them the file system must be mountable, the server start, and hold what the
mode promises. One run gives any number of states; see block_disk.py.

What a client had noted as acknowledged before the first write that a state
lacks was acknowledged before the cut, and every flush that the server had
waited for is in the state."""

import bisect
import random
import re
import threading
import time

import server
import tap
from block_disk import FLUSH, BlockDisk, StateDisk, States
from clients import STOPPING, Crowd, read_keys
from daemon import Daemon, SMALL, must_start, need_sound
from oracle import Lost
from power import LATE_S, synced_until
from shim import FOREVER, Shim

MS = 1000.0
LOG = re.compile(r"log-0*(\d+)\.wal$")
LOAD_S = 4.0
PAUSE_S = 0.15
LOOK_S = 0.02
INTERVALS_MS = (100, 400, 1000)
STATES_EACH = 50  # of one run
CHECKED = 1 / 4   # of the states are also looked at by --check
SOON = 1 / 2      # of the cuts are right before or behind a flush


class Works(threading.Thread):
    """Checkpoints and seals, one after another, until the server ends."""

    def __init__(self, daemon):
        super().__init__(daemon=True)
        self.connection = daemon.connect()
        self.stopping = threading.Event()
        self.done = {"checkpoint": 0, "seal lanes all": 0}
        self.fault = None

    def run(self):
        try:
            while not self.stopping.wait(PAUSE_S):
                for word in self.done:
                    answer = self.connection.ask(word)
                    if answer == STOPPING:
                        return
                    if answer != "OK":
                        raise Lost("%s answered %r" % (word, answer))
                    self.done[word] += 1
        except (server.Closed, OSError):
            pass  # the server is gone
        except Exception as error:
            self.fault = error

    def end(self):
        self.stopping.set()
        self.join(2 * server.LIMIT_S)
        self.connection.close()
        if self.fault:
            raise self.fault


class Unsynced(threading.Thread):
    """Asks what has not been synced, until the server ends."""

    def __init__(self, daemon, interval_ms):
        super().__init__(daemon=True)
        self.connection = daemon.connect()
        self.interval_ms = interval_ms
        self.heard = []   # when an answer came, ascending,
        self.synced = []  # and before when all was synced then
        self.fault = None

    def run(self):
        try:
            while True:
                asked = time.monotonic()
                unsynced_ms = self.connection.stats("wal")["unsynced_ms"]
                self.synced.append(
                    synced_until(asked, self.interval_ms, unsynced_ms))
                self.heard.append(time.monotonic())
                time.sleep(LOOK_S)
        except (server.Closed, OSError):
            pass  # the server is gone
        except Exception as error:
            self.fault = error

    def end(self):
        self.join(2 * server.LIMIT_S)
        self.connection.close()
        if self.fault:
            raise self.fault

    def at(self, moment):
        """Before when all was synced at that moment, for certain."""
        number = bisect.bisect(self.heard, moment)
        return self.synced[number - 1] if number else 0.0


def newest_log(disk):
    """The number of the log's last file."""
    return max(int(found.group(1)) for found in
               map(LOG.match, disk.names()) if found)


class Run:
    """One run of a server on a disk with a log, and its states."""

    def __init__(self, kind, mode, seed, no_sync=False, path=None):
        self.source = random.Random("%s %s %s" % (seed, kind, mode))
        self.kind = kind
        self.mode = mode
        self.path = path
        self.interval_ms = self.source.choice(INTERVALS_MS)
        self.crowd = Crowd(self.source, ring=100)
        self.disk = BlockDisk(kind)
        try:
            self.load(no_sync)
            self.disk.pull_out()
            self.states = States(self.disk)
        except BaseException:
            self.disk.remove()
            raise

    def close(self):
        self.disk.remove()

    def daemon(self, disk, environment=()):
        return Daemon(disk, "--sync=" + self.mode,
                      "--sync-interval=%d" % self.interval_ms, *SMALL,
                      environment=environment,
                      threads=self.source.choice((1, 2)), path=self.path)

    def load(self, no_sync):
        environment = {}
        if no_sync:
            shim = Shim(self.disk)
            shim.arm("sync", "leave out", 1, FOREVER)
            environment = shim.environment()
        daemon = self.daemon(self.disk, environment)
        try:
            daemon.start()
            with daemon.connect() as connection:
                self.crowd.declare(connection)
                if connection.ask("checkpoint") != "OK":
                    raise Lost("no checkpoint")
            first_log = newest_log(self.disk)
            self.disk.sync()
            self.declared_at = time.monotonic()
            works = Works(daemon)
            works.start()
            self.unsynced = Unsynced(daemon, self.interval_ms)
            self.unsynced.start()
            self.crowd.start(daemon.connect)
            works.stopping.wait(LOAD_S)
            self.crowd.wait_acked(1000, daemon.alive)
            daemon.wait(lambda: works.fault or min(works.done.values()) > 0
                        and newest_log(self.disk) > first_log,
                        "a checkpoint, a seal and another log file")
            daemon.murder()
            works.end()
            self.unsynced.end()
            self.crowd.end(may_refuse=True)
            self.works = works.done
            self.rotated = newest_log(self.disk) - first_log
        except BaseException:
            daemon.kill(show=True)
            raise

    def cuts(self, count):
        """So many places in the log, ascending."""
        entries = self.states.entries
        first = bisect.bisect([entry.at for entry in entries],
                              self.declared_at)
        flushes = [number for number in range(first, len(entries))
                   if entries[number].kind == FLUSH]
        chosen = []
        while len(chosen) < count:
            cut = self.source.randint(first, len(entries))
            if flushes and self.source.random() < SOON:
                cut = self.source.choice(flushes) + self.source.choice((0, 1))
            chosen.append(cut)
        return sorted(chosen)

    def low_at(self, cut):
        """The time before which what was acknowledged must be there."""
        entries = self.states.entries
        until = entries[min(cut, len(entries) - 1)].at
        if self.mode == "interval":
            return min(until - self.interval_ms / MS - LATE_S,
                       self.unsynced.at(until))
        return until

    def check(self, cut):
        """Starts a server on one state."""
        disk = StateDisk(self.kind, lambda path: self.states.make(
            cut, self.source, path))
        try:
            if self.source.random() < CHECKED:
                need_sound(disk, self.path)
            daemon = self.daemon(disk)
            try:
                must_start(daemon)
                with daemon.connect() as connection:
                    self.compare(connection, self.low_at(cut))
                daemon.murder()
            except BaseException:
                daemon.kill(show=True)
                raise
        except Lost as error:
            raise Lost("cut at %d of %d, unflushed %s: %s" % (
                cut, len(self.states.entries), disk.said, error)) from error
        finally:
            disk.remove()

    def compare(self, connection, low_at):
        """As Crowd.settle, but the journals stay."""
        faults = []
        for client in self.crowd.clients:
            values = read_keys(connection, sorted(client.keys()))
            found = client.seen_as(values)
            low = client.journal.low(low_at)
            if client.journal.match(found, low) is None:
                faults.append(client.journal.explain(found, low))
        if faults:
            raise Lost("\n".join(faults))


def block_states(kind, mode, count, seed, no_sync=False, path=None,
                 tell=lambda text: None):
    """Runs once and looks at count states; what the server did by order
    meanwhile, and how often it took a new log file."""
    run = Run(kind, mode, seed, no_sync, path)
    try:
        tap.note("%d changes acknowledged, %d writes and flushes, %s" % (
            run.crowd.acked(), len(run.states.entries), run.works))
        for number, cut in enumerate(run.cuts(count)):
            tell("%s on %s, state %d of %d" % (mode, kind, number + 1, count))
            run.check(cut)
    except Lost as error:
        raise Lost("%s on %s, seed %s: %s" % (
            mode, kind, seed, error)) from error
    finally:
        run.close()
    return run.works, run.rotated
