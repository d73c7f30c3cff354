# SPDX-License-Identifier: BSD-3-Clause
"""A server under valgrind's callgrind, and what its workers execute between
two marks.

    with Counted(threads=1) as counted:
        mark = counted.mark()           # a connection to a worker
        mark.cost()                     # what follows is counted
        ...                             # requests, answered in full
        cost = mark.cost()              # what that worker has executed

A mark is a packet that asks for the version, by the binary protocol, which
nobody else does here: callgrind writes down what the thread that is about to
answer has executed since its last mark, and begins at 0. So main, the log's
thread and the gardener are left out, and where a count begins and ends
depends on no time: two runs that do the same count the same, to the
instruction. What two marks cost that have nothing between them is taken off.

Random numbers are the same in each run (fixed_random.c). valgrind shows
programs one and the same processor on every machine that has AVX2, so the
choices of glibc (AVX2, never AVX-512) and of the engine are the same there.
"""

import atexit
import functools
import os
import re
import shutil
import subprocess
import tempfile

import packet
import server
import tap

HERE = os.path.dirname(os.path.abspath(__file__))
VERSION = 0x0b
MARKING = "answer_binary_version"  # answers a mark, and nothing else
ALLOCATORS = ("malloc", "calloc", "realloc", "posix_memalign",
              "aligned_alloc", "mmap")
LOCKS = ("pthread_mutex_lock", "pthread_rwlock_rdlock",
         "pthread_rwlock_wrlock")

DUMP = re.compile(r"out\.(\d+)-(\d+)$")
NAME = re.compile(r"(c?fn|c?ob)=\((\d+)\)(?: (.*))?$")
COST = re.compile(r"0x([0-9a-f]+) \d+ (\d+)$")
# As objdump writes it: with a lock prefix, or an exchange with memory, which
# has one without saying so.
LOCKED = re.compile(r"^ *([0-9a-f]+):\s+(?:lock |xchg .*\()")
CALLS = re.compile(r"calls=(\d+) ")

built = {}


def library():
    """Builds fixed_random.so with $CC; its path."""
    if "path" not in built:
        top = tempfile.mkdtemp(prefix="tallyd-random-")
        atexit.register(shutil.rmtree, top, True)
        os.chmod(top, 0o755)
        path = os.path.join(top, "fixed_random.so")
        subprocess.run(
            os.environ.get("CC", "cc").split()
            + ["-std=c11", "-D_GNU_SOURCE", "-O1", "-shared", "-fPIC", "-o",
               path, os.path.join(HERE, "fixed_random.c")], check=True)
        os.chmod(path, 0o755)
        built["path"] = path
    return built["path"]


def need_callgrind():
    """Where programs cannot be counted, a test cannot run."""
    for program in ("valgrind", "objdump", "readelf"):
        if not shutil.which(program):
            raise tap.Skip("%s is not installed" % program)
    done = subprocess.run(["valgrind", "-q", "--tool=none", "true"],
                          stderr=subprocess.PIPE, timeout=server.LIMIT_S,
                          check=False)
    if done.returncode != 0:
        raise tap.Skip("valgrind does not run here: %s"
                       % done.stderr.decode("latin-1").strip()[:200])


@functools.lru_cache(maxsize=None)
def locked_addresses(path):
    """Where the file's atomic read-modify-writes are, from its begin on, as
    callgrind has it too."""
    if not os.path.isfile(path):
        return frozenset()  # what has no file has no name either
    done = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path],
                          stdout=subprocess.PIPE, check=True)
    found = map(LOCKED.match, done.stdout.decode("latin-1").splitlines())
    return frozenset(int(match.group(1), 16) for match in found if match)


class Cost:
    """What one thread has executed: instructions, those of them that are
    atomic read-modify-writes, and calls by name."""

    def __init__(self, instructions=0, atomics=0, calls=None):
        self.instructions = instructions
        self.atomics = atomics
        self.calls = calls or {}

    def of(self, names):
        """How often functions of these names were called."""
        return sum(self.calls.get(name, 0) for name in names)


class Dump:
    """A file of callgrind that is read. A name stands where its number is
    used for the first time; the line after calls= is the callee's."""

    def __init__(self):
        self.names = {"fn": {}, "ob": {}}
        self.called = None
        self.locked = frozenset()
        self.cost = Cost()

    def take_name(self, kind, number, name):
        table = self.names[kind[-2:]]
        if name is not None:
            table[number] = name
        if kind == "cfn":
            self.called = table[number].partition("@")[0].partition("'")[0]
        elif kind == "ob":
            self.locked = locked_addresses(table[number])

    def read(self, lines):
        for line in lines:
            found = COST.match(line)
            if found:
                address, count = found.groups()
                if int(address, 16) in self.locked:
                    self.cost.atomics += int(count)
                continue
            found = NAME.match(line)
            if found:
                self.take_name(*found.groups())
                continue
            found = CALLS.match(line)
            if found:
                calls = self.cost.calls
                calls[self.called] = calls.get(self.called, 0) + \
                    int(found.group(1))
                next(lines)
            elif line.startswith("summary: "):
                self.cost.instructions = int(line.split()[1])
        return self.cost


class Mark:
    """A connection to a worker, on which marks are sent."""

    def __init__(self, counted):
        self.counted = counted
        self.connection = counted.connect()
        self.thread = None
        self.empty = Cost()
        self.cost()
        self.cost()
        self.empty = self.cost()

    def cost(self):
        """The Cost since the last one."""
        self.connection.send(packet.packet(VERSION, b""))
        packet.read(self.connection)
        self.thread, cost = self.counted.take_dump()
        cost.instructions -= self.empty.instructions
        cost.atomics -= self.empty.atomics
        return cost


class Counted(server.Server):
    """A server under callgrind; wait_exit and stop as ever."""

    def __init__(self, *options, **more):
        need_callgrind()
        super().__init__(*options, **more)
        self.command = [
            "env", "LD_PRELOAD=" + library(),
            "valgrind", "-q", "--tool=callgrind", "--separate-threads=yes",
            "--dump-instr=yes", "--compress-pos=no",
            "--dump-before=" + MARKING,
            "--callgrind-out-file=" + os.path.join(self.directory, "out"),
            *self.command]

    def start(self):
        """Until it has loaded what there is."""
        super().start()
        self.wait(self.has_loaded, "end of loading")

    def has_loaded(self):
        with self.connect() as connection:
            connection.send("get loaded\r\n")
            return not connection.line().startswith(b"SERVER_ERROR loading")

    def mark(self):
        return Mark(self)

    def take_dump(self):
        """(thread, Cost) of the one dump that is there."""
        found = [DUMP.match(name) for name in os.listdir(self.directory)]
        found = [name for name in found if name]
        if len(found) != 1:
            raise RuntimeError("%d dumps of callgrind after a mark: does %s "
                               "still answer it?" % (len(found), MARKING))
        path = os.path.join(self.directory, found[0].group(0))
        with open(path, encoding="latin-1") as lines:
            cost = Dump().read(lines)
        os.unlink(path)
        return int(found[0].group(2)), cost
