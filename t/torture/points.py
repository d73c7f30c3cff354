# SPDX-License-Identifier: BSD-3-Clause
"""Ends the server at the n-th of its calls on the data directory, while it
makes the directory, rotates the log, writes checkpoints, seals, exchanges the
manifest, edits the schema, splits tables and stops. Then it must start, know
all that was acknowledged, take more, and pass --check.

The n-th call is that of all threads, by a preloaded library (shim.py); and,
without one, by strace, which counts by thread."""

import os
import random
import re
import shutil
import signal
import subprocess
import time

import server
import tap
from clients import Crowd, KEYS_OF_A_GET, SCHEMA, read_keys
from daemon import Daemon, Place, SMALL, need_sound
from oracle import Lost
from shim import FOREVER, Shim

# What strace counts. Each name is a class of its own: N-th of them.
STRACE_CALLS = ("write", "pwrite64", "pwritev", "fdatasync", "fsync",
                "/^rename", "ftruncate", "fallocate", "openat", "/^unlink")
WAYS = ("kill before", "kill after", "kill half")

WIDE_COLUMNS = 15
WIDE_IDS = 14000     # enough to rotate the log
TINY_IDS = 80000     # in random order: enough to split a table
TINY_CHUNK = 20000
TINY_STEP = 7919     # prime, so that all ids are met once
TINY_LOOKED_AT = 2000


def need_strace():
    """Where strace may not trace, a test cannot run."""
    if not shutil.which("strace"):
        raise tap.Skip("strace is not installed")
    done = subprocess.run(["strace", "-f", "-o", "/dev/null", "true"],
                          stderr=subprocess.PIPE, timeout=server.LIMIT_S,
                          check=False)
    if done.returncode != 0:
        raise tap.Skip("strace may not trace here: %s"
                       % done.stderr.decode("latin-1").strip()[:200])


def wait_for_strace(log, pid):
    """Until its output is complete: it is not a child of this process. The
    last line of a process is its end."""
    deadline = time.monotonic() + server.LIMIT_S
    last = re.compile(r"^%d +\+\+\+ (exited|killed)" % pid, re.MULTILINE)
    while time.monotonic() < deadline:
        with open(log, encoding="latin-1") as lines:
            if last.search(lines.read()):
                return
        time.sleep(0.01)
    raise Lost("strace does not end")


class Work:
    """A short life of a server that does everything once: the same requests
    in the same order for each point, by clients of all kinds."""

    def __init__(self, seed, mode):
        self.source = random.Random("%s" % seed)
        self.mode = mode
        self.crowd = Crowd(self.source, ring=60)
        self.place = Place()
        self.declared = 0  # lines of the schema
        self.wide = []
        self.wide_acked = 0
        self.tiny_acked = 0

    def close(self):
        self.place.remove()

    def options(self):
        shards = 4 if self.mode == "always" else 1
        return ["--sync=" + self.mode, "--sync-interval=20",
                "--hot-memory=16m", "--shards=%d" % shards,
                "--max-reqs-per-event=5000", *SMALL]

    def daemon(self, **more):
        return Daemon(self.place, *self.options(), threads=1, **more)

    def turns(self, daemon, count):
        """Some turns of each client, in one thread."""
        for client in self.crowd.clients:
            with daemon.connect() as connection:
                for _ in range(count):
                    client.turn(connection)

    def grow(self, connection):
        """Many wide records: the log is rotated."""
        if not self.wide:
            lines = []
            for number in range(WIDE_IDS):
                values = [str(self.source.getrandbits(64))
                          for _ in range(WIDE_COLUMNS)]
                lines.append("set wide %d %s\r\n" % (
                    number << 40 | number, " ".join(values)))
            self.wide = lines
        connection.send("".join(self.wide))
        for number in range(len(self.wide)):
            line = connection.line()
            if line != b"STORED":
                raise Lost("%r to a wide record" % line)
            self.wide_acked = max(self.wide_acked, number + 1)

    def grow_tiny(self, connection):
        """Many small records: tables are split, where one shard has them."""
        if self.mode == "always":
            return
        for first in range(0, TINY_IDS, TINY_CHUNK):
            connection.send("".join(
                "incr %d.tn 1 noreply\r\n" % (i * TINY_STEP % TINY_IDS)
                for i in range(first, first + TINY_CHUNK)))
            connection.send("incr %d.tn 1\r\n" % TINY_IDS)
            if not connection.line().isdigit():
                raise Lost("no number for an increment")
            self.tiny_acked = first + TINY_CHUNK

    def look_tiny(self, connection):
        """Some of them: each is there once."""
        sample = random.Random(0).sample(range(TINY_IDS), TINY_LOOKED_AT)
        found = read_keys(connection, (
            "%d.tn" % (i * TINY_STEP % TINY_IDS) for i in sample))
        acked = 0 if self.mode == "none" else self.tiny_acked
        for i in sample:
            value = found["%d.tn" % (i * TINY_STEP % TINY_IDS)]
            if value != 1 and (value or i < acked):
                raise Lost("LOST: small record %d of %d acknowledged is %d"
                           % (i, acked, value))

    @staticmethod
    def schema_lines():
        lines = list(SCHEMA)
        lines += ["add counter tiny", "add column tiny tiny_id primarykey",
                  "add column tiny tiny_n max=64 suffix=tn",
                  "add counter wide", "add column wide wide_id primarykey"]
        lines += ["add column wide wide_%d max=64 suffix=w%d" % (n, n)
                  for n in range(WIDE_COLUMNS)]
        return lines

    def declare(self, connection):
        for line in self.schema_lines()[self.declared :]:
            connection.tell(line)
            self.declared += 1

    def look_schema(self, connection):
        """Columns that were acknowledged are there; others are added."""
        for number, line in enumerate(self.schema_lines()):
            if "suffix=" in line and number < self.declared and \
                    self.mode != "none":
                if not connection.get("1." + line.split("suffix=")[1]):
                    raise Lost("LOST of the schema: " + line)
        for line in self.schema_lines():
            connection.ask(line)
        self.declared = len(self.schema_lines())

    def run(self, daemon):
        """Until the server is gone or has stopped; raises Closed or
        OSError where it died."""
        with daemon.connect() as connection:
            self.declare(connection)
            self.turns(daemon, 3)
            self.crowd.checkpoint(connection)
            self.grow(connection)
            self.turns(daemon, 3)
            self.seal(connection)
            self.grow_tiny(connection)
            self.crowd.checkpoint(connection)
            self.turns(daemon, 9)
            self.seal(connection)
            self.turns(daemon, 3)

    def seal(self, connection):
        """All that there is; the second time over what was sealed before."""
        self.crowd.seal(connection)
        for name in ("tiny", "wide"):
            answer = connection.ask("seal %s all" % name)
            if answer != "OK":
                raise Lost("seal of %s answered %r" % (name, answer))

    def life(self, daemon):
        """Starts, works, stops; True where it died on the way."""
        try:
            daemon.start()
            self.run(daemon)
            daemon.checkpoint_and_stop()
            return False
        except (server.Closed, OSError, RuntimeError, AssertionError):
            self.need_killed(daemon)
            return True

    @staticmethod
    def need_killed(daemon):
        """Raises on where the end was not the one that was wanted."""
        try:
            status = daemon.process.wait(server.LIMIT_S)
        except subprocess.TimeoutExpired:
            status = None
        if status != -signal.SIGKILL:
            daemon.kill(show=True)
            raise  # what the caller is handling
        daemon.check_clean()
        daemon.stopped = True

    def low(self, journal):
        return journal.floor if self.mode == "none" else journal.low()

    def look(self):
        """Starts as usual: everything must be there, and it must work."""
        daemon = self.daemon()
        with daemon:
            daemon.start()
            with daemon.connect() as connection:
                self.look_schema(connection)
                self.look_wide(connection)
                self.look_tiny(connection)
            self.crowd.settle(daemon.connect, self.low)
            self.turns(daemon, 1)
        need_sound(self.place)
        with daemon:
            daemon.start()
            self.crowd.settle(daemon.connect)

    def look_wide(self, connection):
        """Each wide record is whole or is not there."""
        if self.mode == "none":
            self.wide_acked = 0
        for first in range(0, len(self.wide), KEYS_OF_A_GET):
            lines = self.wide[first : first + KEYS_OF_A_GET]
            found = connection.get(
                *(line.split()[2] + ".wide" for line in lines))
            for number, line in enumerate(lines, first):
                _, _, id, values = line.strip().split(" ", 3)
                value = found[number - first][2].decode()
                if value != values and (
                        number < self.wide_acked or
                        set(value.split()) != {"0"}):
                    raise Lost("LOST: wide record %s, number %d of %d "
                               "acknowledged: %s" % (
                                   id, number + 1, self.wide_acked, value))


def count_calls(seed, mode):
    """How many calls of each kind a whole life makes."""
    work = Work(seed, mode)
    try:
        shim = Shim(work.place)
        if work.life(work.daemon(environment=shim.environment())):
            raise Lost("the server died without a fault")
        return shim.counts()
    finally:
        work.close()


def point(seed, mode, call, way, number):
    """One life that ends at the given call of a kind, and what comes after.
    False where there was no such call."""
    work = Work(seed, mode)
    try:
        shim = Shim(work.place)
        shim.arm(call, way, number, FOREVER)
        died = work.life(work.daemon(environment=shim.environment()))
        work.look()
        return died
    except Exception as error:
        raise AssertionError("%s, seed %s, %s number %d of %s: %s" % (
            mode, seed, way, number, call, error)) from error
    finally:
        work.close()


def strace_point(seed, mode, call, number):
    """The same by strace: the number-th call of one of the threads."""
    work = Work(seed, mode)
    try:
        wrapper = ["strace", "-D", "-f", "-qq", "-o", "/dev/null",
                   "-e", "trace=" + call,
                   "-e", "inject=%s:signal=KILL:when=%d" % (call, number)]
        died = work.life(work.daemon(wrapper=wrapper))
        work.look()
        return died
    except Exception as error:
        raise AssertionError("%s, seed %s, call %d of %s in a thread: %s" % (
            mode, seed, number, call, error)) from error
    finally:
        work.close()


def sample(seed, count):
    """(mode, kind, way, number) of count points, evenly over the kinds of
    calls that a life makes."""
    source = random.Random("points %s" % seed)
    counts = {mode: count_calls(seed, mode)
              for mode in ("interval", "always", "none")}
    found = []
    while len(found) < count:
        mode = source.choice(("interval", "interval", "always", "none"))
        call = source.choice([call for call, n in counts[mode].items() if n])
        found.append((mode, call, source.choice(WAYS),
                      source.randint(1, counts[mode][call])))
    return found, counts


def shim_sees_all(seed):
    """The library and strace must count alike; a call that the library does
    not know would be a call that no fault is ever tried on."""
    need_strace()
    work = Work(seed, "interval")
    try:
        shim = Shim(work.place)
        log = os.path.join(work.place.top, "strace")
        wrapper = ["strace", "-D", "-f", "-y", "-o", log, "-e",
                   "trace=pwrite64,pwritev,pwritev2,writev,write,fdatasync,"
                   "fsync,ftruncate,fallocate,rename,renameat,renameat2,"
                   "unlink,unlinkat"]
        environment = shim.environment()
        wrapper += ["-E", "LD_PRELOAD=" + environment.pop("LD_PRELOAD")]
        daemon = work.daemon(wrapper=wrapper, environment=environment)
        if work.life(daemon):
            raise Lost("the server died under strace")
        wait_for_strace(log, daemon.process.pid)
        return shim.counts(), strace_counts(log, work.place.data)
    finally:
        work.close()


def strace_counts(path, data):
    """Calls on the directory, by the names of shim.CALLS."""
    kinds = {"pwrite64": "write", "pwritev": "write", "pwritev2": "write",
             "write": "write", "writev": "write", "fdatasync": "sync",
             "fsync": "sync", "ftruncate": "truncate",
             "fallocate": "allocate", "rename": "rename",
             "renameat": "rename", "renameat2": "rename",
             "unlink": "unlink", "unlinkat": "unlink"}
    counts = dict.fromkeys(kinds.values(), 0)
    with open(path, encoding="latin-1") as lines:
        for line in lines:
            call = line.split(None, 1)[1].split("(", 1)[0]
            if call in kinds and data in line:
                counts[kinds[call]] += 1
    return counts
