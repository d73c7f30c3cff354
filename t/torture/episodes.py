# SPDX-License-Identifier: BSD-3-Clause
"""The disk under the file system fails for a while: writes, reads or flushes
answer EIO, from 0.1 to 5 s, under load; by nbdkit's error filter, see
block_disk.py. The server goes on or refuses, takes changes again by itself
where the file system has survived, and has lost nothing that was acknowledged
either way. Where the file system has given up it is checked and mounted again,
as a machine does when it boots; the server needs no other help to start."""

import math
import os
import random

from block_disk import FAULTS, BlockDisk
from daemon import need_sound
from disk import call
from faults import Trial, leave
from oracle import Lost

SHORTEST_S, LONGEST_S = 0.1, 5.0
PROBE = "probe"
MORE = 20  # episodes, until a change was refused


def gave_up(disk):
    """True where the file system cannot be written to any more."""
    path = os.path.join(disk.mount_point, PROBE)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            os.write(handle, b"probe")
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError:
        return True
    return disk.is_read_only()


class Episodes:
    """Some of them on one file system, one after another."""

    def __init__(self, kind, mode, seed, longest_s):
        self.source = random.Random("%s %s %s" % (seed, kind, mode))
        self.longest_s = longest_s
        self.disk = BlockDisk(kind)
        self.trial = Trial(self.disk, seed, mode)
        self.log = []
        self.is_declared = False
        self.given_up = 0

    def close(self):
        self.disk.remove()

    def start(self):
        daemon = self.trial.start()
        try:
            if self.is_declared:
                self.trial.settle(daemon)
            else:
                self.trial.declare(daemon)
                self.is_declared = True
        except BaseException:
            daemon.kill(show=True)
            raise
        return daemon

    def seconds(self):
        """Short ones are as likely as long ones."""
        return math.exp(self.source.uniform(
            math.log(SHORTEST_S), math.log(self.longest_s)))

    def suffer(self, daemon, fault):
        """The time in which calls fail."""
        trial = self.trial
        if fault == "read":
            # a record that is cold cannot be read, which gets say
            trial.seal(daemon)
            trial.reader.end()
            with open("/proc/sys/vm/drop_caches", "w",
                      encoding="ascii") as caches:
                caches.write("1")
        self.disk.fail(fault)
        seconds = self.seconds()
        self.log.append("%s for %.1f s" % (fault, seconds))
        trial.writers[0].stopping.wait(seconds / 2)
        trial.checkpoint(daemon)
        if self.source.random() < 0.3:
            trial.seal(daemon)
        trial.writers[0].stopping.wait(seconds / 2)
        self.disk.heal()
        if fault == "read":
            trial.reader.start(daemon.connect)

    def run(self):
        """One episode, from a start to the end of the server."""
        trial = self.trial
        daemon = self.start()
        try:
            trial.load(daemon)
            trial.need_writes()
            self.suffer(daemon, self.source.choice(FAULTS))
            if gave_up(self.disk):
                self.log.append("the file system gave up")
                self.given_up += 1
                daemon.murder()
                trial.end()
                self.boot()
                return
            trial.need_writes()
            trial.need_reads()
            leave(trial, daemon, self.source.choice(("kill", "stop")))
        except BaseException:
            daemon.kill(show=True)
            raise

    def boot(self):
        """As a machine that starts: the file system is checked and mounted."""
        self.disk.unmount()
        if self.disk.kind == "ext4":
            # 1: something was mended
            call("sh", "-c", "fsck.ext4 -p \"$1\" || test $? = 1", "sh",
                 os.path.join(self.disk.fuse, "disk"))
        self.disk.mount()

    def finish(self):
        with self.start():
            pass
        need_sound(self.disk)


def io_episodes(kind, mode, count, seed, longest_s=LONGEST_S,
                tell=lambda text: None):
    """count episodes, and up to MORE more until a change was refused: on a
    busy machine no call may fall into short ones; (changes acknowledged,
    refused, file systems that gave up)."""
    episodes = Episodes(kind, mode, seed, longest_s)
    refused = number = 0
    try:
        while number < count or refused == 0 and number < count + MORE:
            number += 1
            tell("%s on %s, episode %d of %d" % (mode, kind, number, count))
            episodes.run()
            refused = sum(client.errors for client in episodes.trial.writers)
        episodes.finish()
        return (sum(client.good for client in episodes.trial.writers),
                refused, episodes.given_up)
    except Exception as error:
        raise Lost("%s on %s, seed %s, after %s: %s" % (
            mode, kind, seed, episodes.log[-6:], error)) from error
    finally:
        episodes.close()
