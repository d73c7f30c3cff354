# SPDX-License-Identifier: BSD-3-Clause
"""The preloaded library of fault_heap.c: a server whose memory runs out.

    heap = FaultHeap()
    with Server(environment=heap.environment()) as running:
        heap.refuse(1)          # the next allocation
        heap.refuse(1, FOREVER) # all of them, until
        heap.relent()
"""

import atexit
import mmap
import os
import shutil
import struct
import subprocess

import server
import tap

FOREVER = 1 << 62
WORD = struct.Struct("=Q")
COUNT, REFUSED, FIRST, LAST, ACCEPTS, ACCEPT_ERROR = WORDS = range(6)


def build(directory):
    if server.SANITIZER:
        raise tap.Skip("a sanitizer has an allocator of its own")
    path = os.path.join(directory, "fault_heap.so")
    compiler = os.environ.get("CC", "cc").split()
    subprocess.run(
        compiler + ["-std=c11", "-D_GNU_SOURCE", "-O1", "-shared", "-fPIC",
                    "-fno-builtin", "-o", path,
                    os.path.join(os.path.dirname(__file__), "fault_heap.c")],
        check=True)
    os.chmod(path, 0o755)
    return path


class FaultHeap:
    def __init__(self):
        self.top = server.make_directory()
        atexit.register(shutil.rmtree, self.top, True)
        self.library = build(self.top)
        self.path = os.path.join(self.top, "control")
        with open(self.path, "wb") as out:
            out.write(bytes(len(WORDS) * WORD.size))
        os.chmod(self.path, 0o666)
        with open(self.path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), len(WORDS) * WORD.size)

    def environment(self):
        return {"LD_PRELOAD": self.library, "FAULT_HEAP": self.path}

    def get(self, word):
        return WORD.unpack_from(self.map, word * WORD.size)[0]

    def put(self, word, value):
        WORD.pack_into(self.map, word * WORD.size, value)

    def refuse(self, number, count=1):
        """Of the allocations from now on, count from the number-th on (from
        1) get nothing."""
        first = self.get(COUNT) + number
        self.put(FIRST, 0)
        self.put(LAST, first + count - 1)
        self.put(FIRST, first)

    def relent(self):
        """Returns how many have been refused since the last call."""
        self.put(FIRST, 0)
        refused = self.get(REFUSED)
        self.put(REFUSED, 0)
        return refused
