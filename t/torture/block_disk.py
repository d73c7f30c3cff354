# SPDX-License-Identifier: BSD-3-Clause
"""A file system on a disk that logs its writes and flushes, and the states
that a power cut may leave of it. Needs root.

t/lib/block_log.c is the disk, a plugin of nbdkit; nbdfuse shows it as a file,
which is mounted by a loop device:

    ext4 -> loop -> FUSE -> nbdfuse -> nbdkit --filter=error -> block_log

A disk may lose what was written after its last flush, whole writes or some of
their sectors, and may have done them in any order. So a state is: the log cut
off anywhere, all writes up to the last flush before the cut, and of those
behind it none, all, or some, torn and out of order. What was written before a
flush began counts as flushed: the loop device has been told of it."""

import atexit
import os
import shutil
import struct
import subprocess
import tempfile
import time

import server
from daemon import Place
from disk import Disk, call, need_root, unmount_when_free

HEAD = struct.Struct("=IIQQ")  # struct head of block_log.c
WRITE, FLUSH = 1, 2
SECTOR = 512
POLL_S = 0.005
HERE = os.path.dirname(os.path.abspath(__file__))
FAULTS = ("write", "read", "flush")
built = {}


def plugin():
    """Builds block_log.so with $CC; its path."""
    if "path" not in built:
        top = tempfile.mkdtemp(prefix="tallyd-plugin-")
        atexit.register(shutil.rmtree, top, True)
        path = os.path.join(top, "block_log.so")
        compiler = os.environ.get("CC", "cc").split()
        subprocess.run(
            compiler + ["-std=c11", "-D_GNU_SOURCE", "-O1", "-shared",
                        "-fPIC", "-o", path,
                        os.path.join(HERE, "../lib/block_log.c")], check=True)
        built["path"] = path
    return built["path"]


class Entry:
    """A write or a flush of the log: when it was logged, in seconds of
    time.monotonic(), and where in the log file the bytes of a write are."""

    __slots__ = ("kind", "length", "offset", "at", "place")

    def __init__(self, kind, length, offset, at, place):
        self.kind = kind
        self.length = length
        self.offset = offset
        self.at = at
        self.place = place


class BlockDisk(Disk):
    """A Disk whose blocks pass block_log. faults: its calls can be made to
    fail; see fail."""

    def __init__(self, kind, size=0):
        need_root("nbdkit", "nbdfuse", "mkfs." + kind, "mount", "umount")
        self.process = None
        self.log = None
        super().__init__(kind, size)

    def trigger(self, fault):
        return os.path.join(self.top, "fail-" + fault)

    def mount(self):
        """The disk is started with the first mount, and stays."""
        if self.process is None:
            self.plug_in()
        image, self.image = self.image, os.path.join(self.fuse, "disk")
        try:
            super().mount()
        finally:
            self.image = image

    def plug_in(self):
        self.log = os.path.join(self.top, "log")
        self.base = os.path.join(self.top, "base")
        shutil.copyfile(self.image, self.base)
        self.fuse = os.path.join(self.top, "fuse")
        os.mkdir(self.fuse)
        command = ["nbdkit", "--exit-with-parent", "--filter=error", plugin(),
                   "image=" + self.image, "log=" + self.log,
                   "fail-flush=" + self.trigger("flush"),
                   "error-pwrite-rate=100%",
                   "error-pwrite-file=" + self.trigger("write"),
                   "error-pread-rate=100%",
                   "error-pread-file=" + self.trigger("read")]
        self.told = open(os.path.join(self.top, "nbd.log"), "wb")
        self.process = subprocess.Popen(
            ["nbdfuse", os.path.join(self.fuse, "disk"), "[", *command, "]"],
            stdin=subprocess.DEVNULL, stdout=self.told, stderr=self.told)
        deadline = time.monotonic() + server.LIMIT_S
        while not os.path.exists(os.path.join(self.fuse, "disk")):
            if self.process.poll() is not None or time.monotonic() > deadline:
                with open(self.told.name, encoding="latin-1") as text:
                    raise RuntimeError("no disk: " + text.read())
            time.sleep(POLL_S)

    def fail(self, fault):
        """From now on every such call fails with EIO."""
        with open(self.trigger(fault), "wb"):
            pass

    def heal(self):
        for fault in FAULTS:
            if os.path.exists(self.trigger(fault)):
                os.unlink(self.trigger(fault))

    def is_read_only(self):
        """The file system has given up writing."""
        return bool(os.statvfs(self.mount_point).f_flag & os.ST_RDONLY)

    def pull_out(self):
        """Ends the disk; image, base and log stay."""
        self.unmount()
        if self.process is not None:
            unmount_when_free(self.fuse)
            self.process.wait(server.LIMIT_S)
            self.told.close()
            self.process = None

    def remove(self):
        try:
            self.heal()
            self.pull_out()
        except RuntimeError:
            call("umount", "-l", self.mount_point)
            call("umount", "-l", self.fuse)
        Place.remove(self)

    def entries(self):
        """All of the log, in order. The disk has been pulled out."""
        found = []
        with open(self.log, "rb") as log:
            while head := log.read(HEAD.size):
                kind, length, offset, ns = HEAD.unpack(head)
                found.append(Entry(kind, length, offset, ns / 1e9, log.tell()))
                log.seek(length, os.SEEK_CUR)
        return found


class StateDisk(Disk):
    """A Disk made of an image with a file system and data in it."""

    def __init__(self, kind, write):
        """write(path) makes the image."""
        Place.__init__(self)
        self.kind = kind
        self.image = os.path.join(self.top, "image")
        self.mount_point = os.path.join(self.top, "mnt")
        self.data = os.path.join(self.mount_point, "data")
        self.is_mounted = self.is_frozen = False
        try:
            self.said = write(self.image)
            os.mkdir(self.mount_point, 0o755)
            self.mount()
        except BaseException:
            self.remove()
            raise


class States:
    """States of a disk that was pulled out, in the order of their cuts."""

    def __init__(self, disk):
        self.disk = disk
        self.entries = disk.entries()
        self.whole = os.path.join(disk.top, "whole")  # all that was flushed
        shutil.copyfile(disk.base, self.whole)
        self.applied = 0

    def write(self, image, log, entry, first=0, last=None):
        """Does a write, or the sectors first to last of it."""
        begin = min(entry.length, first * SECTOR)
        end = entry.length if last is None else min(
            entry.length, last * SECTOR)
        log.seek(entry.place + begin)
        image.seek(entry.offset + begin)
        image.write(log.read(end - begin))

    def flushed(self, cut):
        """How many of the first cut entries the last flush had behind it."""
        while cut > 0 and self.entries[cut - 1].kind != FLUSH:
            cut -= 1
        return cut

    def make(self, cut, source, path):
        """Writes the state of a cut behind so many entries to path: a word
        for what became of the writes that no flush had covered. Cuts only
        ascend."""
        whole = self.flushed(cut)
        with open(self.whole, "r+b") as image, \
                open(self.disk.log, "rb") as log:
            for entry in self.entries[self.applied : whole]:
                if entry.kind == WRITE:
                    self.write(image, log, entry)
            self.applied = max(self.applied, whole)
        subprocess.run(["cp", "--sparse=always", self.whole, path],
                       check=True)
        rest = [entry for entry in self.entries[whole:cut]
                if entry.kind == WRITE]
        fate = source.choice(("lost", "all", "some", "torn", "torn"))
        with open(path, "r+b") as image, open(self.disk.log, "rb") as log:
            self.spill(fate, rest, source, image, log)
        return "%s of %d" % (fate, len(rest))

    def spill(self, fate, rest, source, image, log):
        """Does some of the writes that no flush covers."""
        if fate == "lost":
            return
        if fate != "all":
            rest = [entry for entry in rest if source.random() < 0.6]
            source.shuffle(rest)
        for entry in rest:
            sectors = -(-entry.length // SECTOR)
            if fate != "torn" or sectors < 2:
                self.write(image, log, entry)
                continue
            for first in range(0, sectors, max(1, sectors // 8)):
                if source.random() < 0.7:
                    self.write(image, log, entry, first,
                               first + max(1, sectors // 8))
