# SPDX-License-Identifier: BSD-3-Clause
"""The preloaded library of shim.c, built once a run, and its control file.

    shim = Shim(place)
    daemon = Daemon(place, environment=shim.environment())
    shim.arm("sync", "fail", first=shim.count("sync") + 1, error=errno.EIO)
    shim.disarm()
"""

import atexit
import mmap
import os
import shutil
import struct
import subprocess
import tempfile

import server
import tap

# The enums of shim.c.
CALLS = ("any", "open", "write", "sync", "allocate", "truncate", "rename",
         "unlink", "segment", "read", "load", "memory")
ACTIONS = ("nothing", "kill before", "kill after", "kill half", "fail",
           "fail half", "fail after", "leave out", "hold")
ROW = struct.Struct("=QQQQQ")
ROW_BYTES = 64
FOREVER = (1 << 64) - 1

HERE = os.path.dirname(os.path.abspath(__file__))
built = {}


def library():
    """Builds shim.so with $CC; its path."""
    if server.SANITIZER:
        raise tap.Skip("a sanitizer's runtime must come first")
    if "path" not in built:
        top = tempfile.mkdtemp(prefix="tallyd-shim-")
        atexit.register(shutil.rmtree, top, True)
        os.chmod(top, 0o755)
        path = os.path.join(top, "shim.so")
        compiler = os.environ.get("CC", "cc").split()
        subprocess.run(
            compiler + ["-std=c11", "-D_GNU_SOURCE", "-O1", "-shared",
                        "-fPIC", "-o", path, os.path.join(HERE, "shim.c"),
                        "-ldl"], check=True)
        os.chmod(path, 0o755)
        built["path"] = path
    return built["path"]


class Shim:
    """What a server on a Place may be made to suffer."""

    def __init__(self, place):
        self.place = place
        self.library = library()
        self.path = os.path.join(place.top, "shim.control")
        with open(self.path, "wb") as out:
            out.write(bytes(ROW_BYTES * len(CALLS)))
        os.chmod(self.path, 0o666)
        with open(self.path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), ROW_BYTES * len(CALLS))

    def environment(self):
        return {"LD_PRELOAD": self.library, "SHIM_DIR": self.place.data,
                "SHIM_CONTROL": self.path}

    def count(self, call):
        """How many such calls there were."""
        return struct.unpack_from("=Q", self.map, self.offset(call))[0]

    def counts(self):
        return {call: self.count(call) for call in CALLS}

    @staticmethod
    def offset(call):
        return CALLS.index(call) * ROW_BYTES

    def arm(self, call, action, first=None, last=None, error=0, after=None):
        """A fault at the calls first to last (forever where only after is
        given: the next call but `after` others)."""
        at = self.offset(call)
        if after is not None:
            first, last = self.count(call) + after + 1, last or FOREVER
        struct.pack_into("=QQ", self.map, at + 8, first,
                         first if last is None else last)
        struct.pack_into("=Q", self.map, at + 32, error)
        struct.pack_into("=Q", self.map, at + 24, ACTIONS.index(action))

    def disarm(self):
        for call in CALLS:
            struct.pack_into("=Q", self.map, self.offset(call) + 24, 0)

    def reset(self):
        """As at the begin; no process may be running."""
        self.map[:] = bytes(len(self.map))
