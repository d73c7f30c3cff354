# SPDX-License-Identifier: BSD-3-Clause
"""File systems in a file, whose power can be cut. Needs root.

shutdown is what `xfs_io -x -c shutdown MOUNT` does, on ext4 too: nothing more
reaches the disk, the journal included, and what was not synced is gone with
the page cache. The same call from here takes no process to start; where the
program is there, who cuts may choose."""

import fcntl
import glob
import os
import shutil
import struct
import subprocess
import time

import server
import tap
from daemon import Place, give_away

GOINGDOWN = 0x8004587D  # FS_IOC_GOINGDOWN, _IOR('X', 125, __u32)
FREEZE = 0xC0045877  # FIFREEZE, _IOWR('X', 119, int)
THAW = 0xC0045878    # FITHAW
NO_LOG_FLUSH = 2
XFS_IO = shutil.which("xfs_io") or shutil.which("xfs_io", path="/usr/sbin")
MIB = 1 << 20
SIZES = {"ext4": 64 * MIB, "xfs": 320 * MIB}  # mkfs.xfs wants 300 MiB
POLL_S = 0.01
LOOPS = "/sys/block/loop*/loop/backing_file"


def need_root(*programs):
    if os.geteuid() != 0:
        raise tap.Skip("needs root")
    for program in programs:
        if not shutil.which(program):
            raise tap.Skip("%s is not installed" % program)


def call(*command):
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, timeout=server.LIMIT_S, check=False)
    if done.returncode != 0:
        raise RuntimeError("%s: %s" % (
            " ".join(command), done.stdout.decode("latin-1").strip()))


def unmount_when_free(path):
    """Unmounts what a loop device has a file of. Once the device has none any
    more the kernel closes the file a moment later."""
    deadline = time.monotonic() + server.LIMIT_S
    while True:
        try:
            call("umount", path)
            return
        except RuntimeError as error:
            if "busy" not in str(error) or time.monotonic() > deadline:
                raise
        time.sleep(POLL_S)


def is_attached(image):
    """True while a loop device has the file."""
    for path in glob.glob(LOOPS):
        try:
            with open(path, encoding="utf-8") as backing:
                if backing.read().rstrip("\n") == image:
                    return True
        except OSError: # it has been let go of meanwhile
            pass
    return False


class Disk(Place):
    """A Place on a file system of its own."""

    def __init__(self, kind, size=0):
        need_root("mkfs." + kind, "mount", "umount")
        super().__init__()
        self.kind = kind
        self.image = os.path.join(self.top, "image")
        self.mount_point = os.path.join(self.top, "mnt")
        self.data = os.path.join(self.mount_point, "data")
        self.is_mounted = self.is_frozen = False
        try:
            with open(self.image, "wb") as image:
                image.truncate(size or SIZES[kind])
            call("mkfs." + kind, "-q", self.image)
            os.mkdir(self.mount_point, 0o755)
            self.mount()
            os.mkdir(self.data, 0o700)
            give_away(self.data)
            self.sync()
        except BaseException:
            self.remove()
            raise

    def mount(self):
        try:
            call("mount", "-t", self.kind, "-o", "loop", self.image,
                 self.mount_point)
        except RuntimeError as error:
            if not os.path.exists("/dev/loop-control") or \
                    "loop device" in str(error) or \
                    "unknown filesystem" in str(error):
                raise tap.Skip("no loop device or no %s here: %s" % (
                    self.kind, error)) from None
            raise
        self.is_mounted = True
        self.attached = os.path.realpath(self.image)

    def unmount(self):
        if self.is_mounted:
            call("umount", self.mount_point)
            self.is_mounted = False
            self.wait_detached()

    def wait_detached(self):
        """Until the kernel has let go of the file system. Whoever has made a
        mount namespace meanwhile, another test for instance, keeps it as it
        was cut, and it would be mounted as that again."""
        deadline = time.monotonic() + server.LIMIT_S
        while is_attached(self.attached):
            if time.monotonic() > deadline:
                raise RuntimeError("%s was unmounted, and is in use: by a "
                                   "mount namespace?" % self.attached)
            time.sleep(POLL_S)

    def sync(self):
        handle = os.open(self.mount_point, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)
        os.sync()

    def cut(self, by_program=False):
        """The power goes: every later call on a file fails. by_program: xfs_io
        does it, if there is one."""
        if by_program and XFS_IO:
            call(XFS_IO, "-x", "-c", "shutdown", self.mount_point)
            return
        self.control(GOINGDOWN, struct.pack("I", NO_LOG_FLUSH))

    def control(self, call_number, argument=0):
        handle = os.open(self.mount_point, os.O_RDONLY)
        try:
            fcntl.ioctl(handle, call_number, argument)
        finally:
            os.close(handle)

    def freeze(self):
        """As fsfreeze does: who writes waits until thaw, and kill -9 does not
        end it before."""
        self.control(FREEZE)
        self.is_frozen = True

    def thaw(self):
        if self.is_frozen:
            self.control(THAW)
            self.is_frozen = False

    def restore(self):
        """The power comes back; no process may have a file open."""
        self.unmount()
        self.mount()

    def free_bytes(self):
        found = os.statvfs(self.mount_point)
        return found.f_bavail * found.f_frsize

    def remove(self):
        self.thaw()
        try:
            self.unmount()
        except RuntimeError:
            call("umount", "-l", self.mount_point)
        super().remove()
