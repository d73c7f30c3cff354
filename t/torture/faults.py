# SPDX-License-Identifier: BSD-3-Clause
"""Calls on the data directory that fail: once at the n-th, or all of them for
a while, with EIO or ENOSPC; a file system that fills up; a limit on the size
of files. Nothing acknowledged may be lost, reads go on, refusals say why, the
server takes changes again by itself, and starts again whatever happened."""

import errno
import os
import random
import subprocess
import time

import server
from clients import Reader, SCHEMA, Stubborn
from daemon import Daemon, Place, SMALL, need_sound
from disk import Disk, MIB
from oracle import Lost
from shim import Shim

CELLS = 2000
BULK_COLUMNS = 15
BULK_IDS = 3000   # some 600 KB of log
BULK_ROUNDS = 60
LITTLE = 512 << 10
SQUEEZE_ROUNDS = 12  # more than the log has allocated before
ENOUGH = 30  # replies that show that something goes on
FILE_LIMIT = 10
FAULTS = (
    ("sync", "fail", errno.EIO),
    ("sync", "fail after", errno.EIO),
    ("write", "fail", errno.EIO),
    ("write", "fail", errno.ENOSPC),
    ("write", "fail half", errno.ENOSPC),
    ("allocate", "fail", errno.ENOSPC),
    ("allocate", "fail", errno.EIO),
    ("open", "fail", errno.ENOSPC),
    ("open", "fail", errno.EMFILE),
    ("rename", "fail", errno.EIO),
    ("rename", "fail after", errno.EIO),
    ("unlink", "fail", errno.EIO),
    ("truncate", "fail", errno.EIO),
    ("segment", "fail", errno.EIO),
    ("segment", "fail", errno.ENOSPC),
    ("segment", "fail after", errno.EIO),
    ("segment", "fail half", errno.ENOSPC),
)


def until(condition, what, seconds=0):
    """Waits; fails when it takes far too long."""
    limit = seconds or server.LIMIT_S
    deadline = time.monotonic() + limit
    while not condition():
        if time.monotonic() > deadline:
            raise Lost("no %s within %d s" % (what, limit))
        time.sleep(0.003)


class Trial:
    """A server with clients that go on whatever it says."""

    def __init__(self, place, seed, mode, shim=None, options=(), **more):
        self.source = random.Random("%s" % seed)
        self.place = place
        self.mode = mode
        self.shim = shim
        self.options = ["--sync=" + mode, "--sync-interval=20", *SMALL,
                        *options]
        self.more = more
        cells = ["%d.la" % self.source.getrandbits(60)
                 for _ in range(CELLS)]
        self.writers = [
            Stubborn("writer %d" % n, random.Random(n), cells, n, depth)
            for n, depth in enumerate((1, 1, 8, 300))]
        self.reader = Reader("reader", random.Random(9), cells[:9])

    def daemon(self, plain=False):
        if plain or self.shim is None:
            return Daemon(self.place, *self.options,
                          **({} if plain else self.more))
        return Daemon(self.place, *self.options,
                      environment=self.shim.environment(), **self.more)

    def start(self, plain=False):
        daemon = self.daemon(plain)
        try:
            daemon.start()
        except BaseException:
            daemon.kill(show=True)
            raise
        return daemon

    def declare(self, daemon):
        with daemon.connect() as connection:
            connection.tell(*SCHEMA)

    def load(self, daemon):
        for client in self.writers + [self.reader]:
            client.start(daemon.connect)

    def need_going(self):
        """None of the clients may have stopped by itself."""
        for client in self.writers + [self.reader]:
            if client.fault or not client.thread.is_alive():
                raise Lost(client.fault or client.refused or
                           "%s: the server closed it" % client.name)

    def need_reads(self):
        count = self.reader.reads
        until(lambda: self.reader.reads > count + ENOUGH or
              self.need_going(), "reads")

    def need_writes(self):
        """All writers are answered numbers again."""
        count = [client.good for client in self.writers]
        until(lambda: all(client.good > n + ENOUGH for client, n in
                          zip(self.writers, count)) or self.need_going(),
              "acknowledged changes after the fault")

    def need_refusals(self, meanwhile=lambda: None):
        """meanwhile is called again and again: what keeps the fault up."""
        count = sum(client.errors for client in self.writers)
        until(lambda: meanwhile() or
              sum(client.errors for client in self.writers)
              > count + ENOUGH or self.need_going(), "SERVER_ERROR")
        said = {client.last_error for client in self.writers
                if client.last_error}
        for text in said:
            if len(text) < len("SERVER_ERROR why"):
                raise Lost("a refusal without a reason: %r" % text)
        return said

    def checkpoint(self, daemon):
        """Asks for one, whatever comes of it."""
        with daemon.connect() as connection:
            return connection.ask("checkpoint")

    def seal(self, daemon):
        """Asks for one, whatever comes of it."""
        with daemon.connect() as connection:
            return connection.ask("seal lanes all")

    def end(self):
        for client in self.writers + [self.reader]:
            client.stopping.set()
        for client in self.writers + [self.reader]:
            client.end()
        faults = [c.fault or c.refused for c in self.writers + [self.reader]
                  if c.fault or c.refused]
        if faults:
            raise Lost("\n".join(faults))

    def settle(self, daemon):
        with daemon.connect() as connection:
            for client in self.writers:
                client.settle(connection)

    def look(self):
        """A start without faults, and a second one."""
        for _ in range(2):
            with self.start(plain=True) as daemon:
                self.settle(daemon)
        need_sound(self.place)


def guarded(function):
    """Kills the server that a failed trial has left."""
    def wrapper(trial, *arguments):
        daemon = trial.start()
        try:
            function(trial, daemon, *arguments)
        except BaseException:
            daemon.kill(show=True)
            raise
        return trial
    return wrapper


def leave(trial, daemon, how):
    """Ends it in one of two ways."""
    if how == "kill":
        daemon.murder()
        trial.end()
    else:
        trial.end()
        daemon.stop()


@guarded
def once(trial, daemon, call, action, error, number):
    """The number-th call from now on fails, once."""
    trial.declare(daemon)
    trial.load(daemon)
    trial.need_writes()
    if trial.source.random() < 0.5:
        trial.seal(daemon)
    trial.shim.arm(call, action, trial.shim.count(call) + number, None,
                   error)
    for _ in range(2):
        trial.checkpoint(daemon)
        trial.need_writes()
        trial.seal(daemon)
        trial.need_writes()
    trial.need_reads()
    trial.checkpoint(daemon)
    ending = trial.source.choice(("kill", "stop"))
    leave(trial, daemon, "stop" if trial.mode == "none" else ending)


@guarded
def outage(trial, daemon, calls, error, ending):
    """All such calls fail, until they do not."""
    trial.declare(daemon)
    trial.load(daemon)
    trial.need_writes()
    for call in calls:
        trial.shim.arm(call, "fail", after=trial.source.randrange(3),
                       error=error)
    trial.need_refusals()
    trial.need_reads()
    trial.checkpoint(daemon)
    trial.seal(daemon)
    if ending == "kill meanwhile":
        daemon.murder()
        trial.end()
        return
    trial.shim.disarm()
    trial.need_writes()
    trial.need_reads()
    leave(trial, daemon, ending)


def one_fault(seed, mode, fault, number):
    call, action, error = fault
    run_trial(seed, mode, once, call, action, error, number)


def long_fault(seed, mode, calls, error, ending):
    run_trial(seed, mode, outage, calls, error, ending)


def run_trial(seed, mode, function, *arguments):
    with Place() as place:
        try:
            shim = Shim(place)
            function(Trial(place, seed, mode, shim), *arguments).look()
        except Exception as error:
            raise AssertionError("%s, seed %s, %s: %s" % (
                mode, seed, arguments, error)) from error


def failing_start(seed, call, error, number):
    """The number-th call of a start fails: it goes on, or, where that was an
    open, may end with a message; the next start is as if nothing had been.
    False: so many calls were not made."""
    with Place() as place:
        shim = Shim(place)
        trial = Trial(place, seed, "interval", shim)
        daemon = trial.start()
        trial.declare(daemon)
        trial.load(daemon)
        trial.need_writes()
        leave(trial, daemon, "kill")
        shim.reset()
        shim.arm(call, "fail", number, None, error)
        daemon = trial.daemon()
        try:
            daemon.start()
            trial.settle(daemon)
            daemon.murder()
        except RuntimeError:
            if daemon.process.returncode is None or \
                    daemon.process.returncode <= 0:
                daemon.kill(show=True)
                raise
            if not daemon.stderr().strip():
                raise Lost("it did not start and did not say why")
            if call != "open":
                raise Lost("it did not start: %s" % daemon.stderr())
            daemon.check_clean()
        met = shim.count(call) >= number
        trial.look()
        return met


def filler(disk):
    return os.path.join(disk.mount_point, "filler")


def fill_up(disk):
    """Takes all room that the server's user may have."""
    with open(filler(disk), "ab", buffering=0) as out:
        for size in (MIB, 65536, 4096):
            try:
                while True:
                    out.write(bytes(size))
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise


def leave_little(disk):
    """Takes the room but for some, which the log is to fill: who filled it to
    the end would take the ballast's room from the server, too."""
    with open(filler(disk), "ab", buffering=0) as out:
        state = os.fstatvfs(out.fileno())
        out.write(bytes(max(state.f_bavail * state.f_frsize - LITTLE, 0)))


def add_bulk(daemon):
    """A counter whose records fill a log quickly."""
    with daemon.connect() as connection:
        connection.tell("add counter bulk",
                        "add column bulk bulk_id primarykey")
        for number in range(BULK_COLUMNS):
            connection.tell("add column bulk bulk_%d max=64 suffix=b%d" % (
                number, number))


def use_up(trial, daemon):
    """Writes until the log has used what it had allocated before; what the
    server frees meanwhile is taken too."""
    with daemon.connect() as connection:
        for _ in range(BULK_ROUNDS):
            values = " ".join(str(trial.source.getrandbits(64))
                              for _ in range(BULK_COLUMNS))
            fill_up(trial.place)
            connection.send("".join(
                "set bulk %d %s\r\n" % (id, values)
                for id in range(BULK_IDS)))
            answers = {connection.line() for _ in range(BULK_IDS)}
            if answers != {b"STORED"}:
                return
    raise Lost("%d records on a full disk, and all of them stored" % (
        BULK_IDS * BULK_ROUNDS))


@guarded
def full(trial, daemon):
    """The file system fills up, is emptied, fills up again."""
    trial.declare(daemon)
    add_bulk(daemon)
    trial.load(daemon)
    trial.need_writes()
    for _ in range(2):
        use_up(trial, daemon)
        trial.need_refusals(lambda: fill_up(trial.place))
        trial.need_reads()
        trial.checkpoint(daemon)
        os.unlink(filler(trial.place))
        trial.need_writes()
    use_up(trial, daemon)
    trial.need_refusals(lambda: fill_up(trial.place))
    leave(trial, daemon, "kill")


@guarded
def squeezed(trial, daemon):
    """The log takes the last room there is: the server makes itself some, and
    changes are taken again, though nobody has removed anything."""
    trial.declare(daemon)
    add_bulk(daemon)
    trial.load(daemon)
    trial.need_writes()
    leave_little(trial.place)
    with daemon.connect() as connection:
        answers = set()
        for number in range(SQUEEZE_ROUNDS):
            values = " ".join([str((1 << 64) - 1 - number)] * BULK_COLUMNS)
            connection.send("".join("set bulk %d %s\r\n" % (id, values)
                                    for id in range(BULK_IDS)))
            answers |= {connection.line() for _ in range(BULK_IDS)}
        if b"STORED" not in answers:
            raise Lost("none of them was stored: %s" % answers)
    trial.need_writes()
    trial.need_reads()
    leave(trial, daemon, "kill")


def full_of_log(kind, seed, mode, size):
    """On a file system of its own; the next start has no more room."""
    disk = Disk(kind, size)
    try:
        trial = squeezed(Trial(disk, seed, mode))
        with trial.start() as daemon:
            trial.settle(daemon)
            trial.load(daemon)
            trial.need_writes()
            trial.end()
        trial.look()
    finally:
        disk.remove()


def full_disk(kind, seed, mode, size, starts_full):
    """On a file system of its own. starts_full: the next start finds it as
    full as it was, must read all the same, and write when there is room."""
    disk = Disk(kind, size)
    try:
        trial = full(Trial(disk, seed, mode))
        if not starts_full:
            os.unlink(filler(disk))
        with trial.start() as daemon:
            trial.settle(daemon)
            trial.load(daemon)
            trial.need_reads()
            if starts_full:
                os.unlink(filler(disk))
            trial.need_writes()
            trial.end()
        trial.look()
    finally:
        disk.remove()


@guarded
def limited(trial, daemon, ending):
    """No file may be longer than the limit: SIGXFSZ must not end it."""
    trial.declare(daemon)
    trial.load(daemon)
    trial.need_writes()
    limit_files(daemon, FILE_LIMIT)
    trial.need_refusals()
    trial.need_reads()
    trial.checkpoint(daemon)
    if ending == "stop":
        limit_files(daemon, "unlimited")
        trial.need_writes()
    leave(trial, daemon, ending)


def limit_files(daemon, soft):
    """As the user that the process has become: nobody else may."""
    user = {}
    if os.geteuid() == 0:
        user = {"user": "nobody", "group": "nogroup", "extra_groups": []}
    subprocess.run(
        ["prlimit", "--pid=%d" % daemon.process.pid,
         "--fsize=%s:unlimited" % soft], check=True,
        timeout=server.LIMIT_S, cwd="/", **user)


def file_limit(seed, mode, ending):
    with Place() as place:
        limited(Trial(place, seed, mode), ending).look()
