# SPDX-License-Identifier: BSD-3-Clause
"""Bits flipped in, and ends cut off, copies of the files of a data directory.
--check and a start must agree: either both refuse, naming the file and an
offset, or the start has exactly the right numbers. A log file that is cut off
anywhere, and any but the last in which a bit flips, is refused, unless it is
one that a start removes unread. Only where a bit flips at the end of the last
log file may changes be missing, as after a crash, and then a state must be
found that there was."""

import os
import random
import re
import time

from clients import Crowd, read_keys
from daemon import Daemon, Place, SMALL, offline_check
from oracle import Lost

# A bit that flips in one of the last batches is like a torn end; every batch
# says what was synced before it, so an earlier one is known for damage. Where
# nothing came for a while a mark has said it of all.
FLIP_LOST_MAX = 8

# How a server ends, and its --sync.
ENDS = (("a clean stop", "always"), ("kill -9", "always"),
        ("a pause and kill -9", "always"), ("a pause and kill -9", "interval"))
PAUSE_S = 60 # at most

FAULTS_SHOWN = 12

NOTE_BYTES, CHECKSUM, SECTOR = 40, 24, 512

# An offset behind the name; the manifest is small and has one checksum.
NAMED = re.compile(r"MANIFEST|(log-\d+|checkpoint-\d+|log)\D.*\d", re.DOTALL)


class Sample:
    """A directory with checkpoints, segments, a schema with a past, a log."""

    def __init__(self, seed, end, sync, path=None):
        self.source = random.Random("damage %s %s %s" % (seed, end, sync))
        self.path = path
        self.sync = sync
        self.is_marked = end.startswith("a pause")
        self.place = Place()
        self.crowd = Crowd(self.source, ring=60)
        self.flips = 0
        self.refused = 0
        try:
            daemon = self.daemon(self.place)
            with daemon:
                daemon.start()
                with daemon.connect() as connection:
                    self.crowd.declare(connection)
                    for _ in range(2):
                        self.turns(daemon)
                        self.crowd.checkpoint(connection)
                        self.turns(daemon)
                        self.crowd.seal(connection)
                    self.turns(daemon)
                if self.is_marked:
                    self.pause(daemon)
                if end == "a clean stop":
                    daemon.stop()
                else:
                    daemon.murder()
            self.last_log = max(
                (name for name in self.place.names()
                 if name.startswith("log") and not name.endswith(".new")),
                default="")
        except BaseException:
            self.place.remove()
            raise

    def close(self):
        self.place.remove()

    def daemon(self, place):
        return Daemon(place, "--sync=" + self.sync, "--shards=4", *SMALL,
                      path=self.path)

    @staticmethod
    def pause(daemon):
        """Until a change is synced, and a mark behind it says so."""
        end = time.monotonic() + PAUSE_S
        while time.monotonic() < end:
            with daemon.connect() as connection:
                stats = connection.stats("wal")
            if (stats["unsynced_bytes"] == "0" and
                    int(stats["mark_seq"]) > int(stats["last_seq"])):
                return
        raise Lost("the log did not say that all is synced")

    def turns(self, daemon):
        for client in self.crowd.clients:
            with daemon.connect() as connection:
                for _ in range(6):
                    client.turn(connection)

    def names(self):
        """Files with something in them that is not the lock; segments are
        for cold.py, since a start reads little of them."""
        return [name for name in self.place.names()
                if os.path.getsize(os.path.join(self.place.data, name)) and
                not name.endswith(("lock", "ballast", ".seg"))]

    def spots(self, name, count):
        """(kind, offset) of damages to try: bits that are set or not, near
        the head, the end of the data, and anywhere."""
        with open(os.path.join(self.place.data, name), "rb") as file:
            data = file.read()
        end = len(data.rstrip(b"\0")) or 1
        spots = [("flip", self.source.randrange(min(end, 64))),
                 ("flip", end - 1), ("cut", end - 1), ("cut", end // 2)]
        if name.startswith("log-"): # most of it is a hole
            spots = spots[:2] + [
                ("cut", self.source.randrange(end)), ("cut", len(data) - 1),
                ("cut", self.source.randrange(end, len(data)))] + spots[2:]
        while len(spots) < count:
            spots.append((self.source.choice(("flip", "flip", "cut")),
                          self.source.randrange(end)))
        return spots[:count]

    def damage(self, place, name, kind, offset):
        path = os.path.join(place.data, name)
        with open(path, "r+b") as file:
            if kind == "cut":
                file.truncate(offset)
                return
            file.seek(offset)
            byte = file.read(1)[0] ^ 1 << self.source.randrange(8)
            file.seek(offset)
            file.write(bytes([byte]))

    def is_unjudged(self, name, offset):
        """Whether that byte is of the note behind a closed log file, in a
        sector that does not have all of its checksum (doc/format-log.md)."""
        with open(os.path.join(self.place.data, name), "rb") as file:
            note = len(file.read().rstrip(b"\0")) - NOTE_BYTES
        sector = offset // SECTOR
        return offset >= note and not (
            (note + CHECKSUM) // SECTOR == sector ==
            (note + CHECKSUM + 7) // SECTOR)

    def try_one(self, name, kind, offset):
        """One damage, in a copy."""
        what = "%s of %s at offset %d" % (kind, name, offset)
        place = self.place.copy()
        self.flips += 1
        try:
            self.damage(place, name, kind, offset)
            status, text = offline_check(place, self.path)
            lost_max = 0
            if name == self.last_log and kind == "flip":
                lost_max = 0 if self.is_marked else FLIP_LOST_MAX
            if status != 0:
                self.need_named(text, name, what)
            daemon = self.daemon(place)
            try:
                daemon.start()
            except RuntimeError:
                self.need_refusal(daemon, name, what, status)
                return
            if status != 0:
                raise Lost("%s: --check refuses, a start does not" % what)
            if (name.startswith("log-") and name in place.names() and
                    (kind == "cut" or name != self.last_log and
                     not self.is_unjudged(name, offset))):
                raise Lost("%s is not noticed" % what)
            self.look(daemon, lost_max, what)
        finally:
            place.remove()

    def need_refusal(self, daemon, name, what, status):
        code = daemon.process.returncode
        if code is None or code <= 0:
            daemon.kill(show=True)
            raise Lost("%s: a start ends with status %s" % (what, code))
        daemon.check_clean()
        if status == 0:
            raise Lost("%s: --check is content, a start is not: %s" % (
                what, daemon.stderr()))
        self.need_named(daemon.stderr(), name, what)
        self.refused += 1

    @staticmethod
    def need_named(text, name, what):
        if name not in text or not NAMED.search(text):
            raise Lost("%s: the file or the offset is not named: %s" % (
                what, text))

    def look(self, daemon, lost_max, what):
        """The numbers are right, or those of a moment before."""
        lost = 0
        try:
            with daemon.connect() as connection:
                for client in self.crowd.clients:
                    values = read(connection, client)
                    journal = client.journal
                    m = journal.match(values, 0 if lost_max else
                                      journal.acked)
                    if m is None:
                        raise Lost("%s was not noticed: %s" % (
                            what, journal.explain(values, journal.acked)))
                    lost += journal.acked - m
            if lost > lost_max:
                raise Lost("%s was taken for the end: %d changes are gone" % (
                    what, lost))
            daemon.stop()
        except BaseException:
            daemon.kill(show=True)
            raise


def read(connection, client):
    """What is there of a client's cells, without settling its journal."""
    values = read_keys(connection, sorted(client.keys()))
    count = getattr(client, "count", None)
    found = client.seen_as(values)
    if count is not None:
        client.count = count
    return found


def damages(seed, each, end, sync, path=None, tell=lambda text: None):
    """`each` damages of each file; (damages, how many were refused)."""
    sample = Sample(seed, end, sync, path)
    try:
        faults = []
        for name in sample.names():
            for kind, offset in sample.spots(name, each):
                tell("%s of %s" % (kind, name))
                try:
                    sample.try_one(name, kind, offset)
                except (Lost, AssertionError) as error:
                    faults.append(str(error))
        if faults:
            raise Lost("%d of %d damages:\n%s" % (
                len(faults), sample.flips, "\n".join(faults[:FAULTS_SHOWN])))
        if not sample.refused:
            raise Lost("no damage was ever refused")
        return sample.flips, sample.refused
    finally:
        sample.close()
