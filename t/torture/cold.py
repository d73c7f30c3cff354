# SPDX-License-Identifier: BSD-3-Clause
"""What tests of the cold tier share, and its disk: reads of segments that fail
or hang, a disk that takes no segment, segments that are gone or damaged, the
server ended at each of its calls on a segment."""

import errno
import os
import random
import shutil
import signal
import threading
import time

import server
import tap
from clients import LATE
from daemon import Daemon, Place, give_away, need_sound, offline_check
from oracle import Lost
from shim import FOREVER, Shim

U64_MAX = 2**64 - 1
BATCH = 2000      # changes sent at once
RECORDS = 6000
KEYS = 100        # of a get
BLOCK_RECORDS = 1000  # of fill, at most
POINT_IDS = 600
MEMORY_IDS = 10**7  # more than fit into 16 MiB
BLOCK = 4096 # bytes of a segment's head, and of a block with what is left
NO_MEMORY = b"SERVER_ERROR the memory for counters is full, see --hot-memory"
UNREADABLE = (b"SERVER_ERROR a counter cannot be read from the disk, see the "
              b"server's log")
WAYS = ("kill before", "kill after", "kill half")


def seal(connection, name):
    answer = connection.ask("seal %s all" % name)
    if answer != "OK":
        raise Lost("seal of %s answered %r" % (name, answer))


def refusals(connection, lines):
    """Sends changes; the errors that come."""
    connection.send("".join(lines))
    answers = [connection.line() for _ in lines]
    return [answer for answer in answers if b"ERROR" in answer]


def tell_all(connection, lines, waits=False):
    """Sends changes, many at a time; none may be refused. waits: but for want
    of room, where sealing is not given the time that it takes; then they are
    sent again."""
    lines = [line + "\r\n" for line in lines]
    for first in range(0, len(lines), BATCH):
        deadline = time.monotonic() + server.LIMIT_S
        while True:
            answers = refusals(connection, lines[first : first + BATCH])
            if not answers:
                break
            if (not waits or set(answers) != {NO_MEMORY} or
                    time.monotonic() > deadline):
                raise Lost("changes were answered %r" % answers[:3])


def fill(connection, ids, more=0):
    """A record of each id in weibo; a thousand or less fill a block."""
    source = random.Random(1)
    tell_all(connection, (
        "set weibo %d %d %d %d" % (id, id % 1000 + more, id % 1000 + more,
                                   source.getrandbits(32))
        for id in ids))


def wait_for(condition, what):
    deadline = time.monotonic() + server.LIMIT_S
    while not condition():
        if time.monotonic() > deadline:
            raise Lost("no %s within %d s" % (what, server.LIMIT_S))
        time.sleep(0.002)


class Sealing:
    """A thread that seals a counter again and again."""

    def __init__(self, daemon, name):
        self.connection = daemon.connect()
        self.name = name
        self.stopping = threading.Event()
        self.fault = None
        self.count = 0
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            while not self.stopping.is_set():
                seal(self.connection, self.name)
                self.count += 1
        except Exception as error:
            self.fault = error

    def end(self):
        """How often it was sealed."""
        self.stopping.set()
        self.thread.join(2 * server.LIMIT_S)
        self.connection.close()
        if self.fault:
            raise self.fault
        return self.count


class Trial:
    """A server under the preloaded library, with cold records in weibo, whose
    numbers are known: id % 1000 in two of the columns. No block stays in
    memory."""

    def __init__(self, *options, count=RECORDS):
        self.place = Place()
        try:
            self.shim = Shim(self.place)
        except BaseException:
            self.place.remove()
            raise
        self.options = ("--shards=4", "--cold-cache=0", *options)
        self.count = count
        self.daemon = Daemon(self.place, *self.options,
                             environment=self.shim.environment())

    def __enter__(self):
        try:
            self.daemon.start()
            self.connection = self.daemon.connect()
            self.connection.tell(*server.WEIBO)
            fill(self.connection, range(self.count))
            seal(self.connection, "weibo")
        except BaseException as error:
            self.__exit__(error)
            raise
        return self

    def __exit__(self, kind, *_):
        self.shim.disarm()  # what hangs goes on
        try:
            if kind is not None:
                self.daemon.kill(show=True)
            else:
                self.daemon.stop()
                need_sound(self.place)
        finally:
            self.place.remove()

    def segments(self):
        """Their paths, the oldest first."""
        return [os.path.join(self.place.data, name)
                for name in self.place.names() if name.endswith(".seg")]

    def need_all(self, connection, changed=()):
        """Every number is right; changed: ids whose second column is one
        more."""
        for first in range(0, self.count, KEYS):
            ids = range(first, min(first + KEYS, self.count))
            found = connection.get(*("%d.cntrn" % id for id in ids))
            tap.equal([int(value) for _, _, value in found],
                      [id % 1000 + (id in changed) for id in ids])

    def restart(self):
        self.connection.close()
        self.daemon.stop()
        self.daemon.start()
        self.connection = self.daemon.connect()


def failing_reads():
    """EIO: the key is not in the reply, which ends with the error; hot keys
    and other connections go on; a change is refused; later all is right."""
    with Trial() as trial, trial.daemon.connect() as other:
        ask = trial.connection.ask
        tap.equal(ask("incr 5.cntrn 1"), "6")  # hot from now on
        trial.shim.arm("read", "fail", after=0, error=errno.EIO)
        for number in range(3):
            trial.connection.send("get 5.cntrn 1500.cntrn 5.cntcm\r\n")
            for wanted in (b"VALUE 5.cntrn 0 1", b"6", b"VALUE 5.cntcm 0 1",
                           b"5", UNREADABLE):
                tap.equal(trial.connection.line(), wanted)
            tap.equal(ask("incr 1500.cntrn 1").encode(), UNREADABLE)
            tap.equal(ask("delete 1500.cntrn").encode(), UNREADABLE)
            tap.equal(ask("touch 1500.cntrn 0").encode(), UNREADABLE)
            tap.equal(ask("get weibo 1500").encode(), UNREADABLE)
            tap.equal(ask("set weibo 1500 1 2 3").encode(), UNREADABLE)
            with trial.daemon.connect() as quiet:
                quiet.send("version\r\nincr 1500.cntrn 1 noreply\r\n"
                           "get 5.cntrn\r\n")
                tap.check(quiet.line().startswith(b"VERSION "), "a reply")
                tap.equal(quiet.wait_closed(), b"")
            tap.equal(other.get("5.cntrn"), [("5.cntrn", 0, b"6")])
            tap.equal(other.ask("incr %d.cntrn 1" % U64_MAX), str(number + 1))
        tap.check(int(other.stats("cold")["read_failures"]) > 0, "counted")
        trial.shim.disarm()
        trial.need_all(trial.connection, (5,))
        tap.equal(ask("incr 1500.cntrn 1"), "501")
        trial.restart()
        trial.need_all(trial.connection, (5, 1500))


def hanging_reads():
    """A read of a segment hangs: who asked waits, all others go on, also on
    the same worker, also for cold keys that another thread can read."""
    with Trial("-t", "1") as trial:
        tap.equal(trial.connection.ask("incr 5.cntrn 1"), "6")
        before = trial.shim.count("read")
        trial.shim.arm("read", "hold", before + 1, before + 2)
        with trial.daemon.connect() as getter, \
                trial.daemon.connect() as changer:
            getter.send("get 1500.cntrn\r\n")
            changer.send("incr 2500.cntrn 1\r\n")
            wait_for(lambda: trial.shim.count("read") >= before + 2, "reads")
            for number in range(50):
                tap.equal(trial.connection.get("5.cntrn"),
                          [("5.cntrn", 0, b"6")])
                tap.equal(trial.connection.ask("incr 5.cntcm 1"),
                          str(5 + number + 1))
                tap.equal(trial.connection.get("4000.cntrn"),
                          [("4000.cntrn", 0, b"0")])
            tap.equal(len(getter.buffer) + len(changer.buffer), 0)
            trial.shim.disarm()
            tap.equal(getter.values(), [("1500.cntrn", 0, b"500")])
            tap.equal(changer.line(), b"501")
        trial.need_all(trial.connection, (5, 2500))


def parallel_reads():
    """One get of a hundred keys in as many blocks: all are read at a time.
    Who asks for the same meanwhile waits for the same reads."""
    ids = range(0, KEYS * BLOCK_RECORDS, BLOCK_RECORDS)
    keys = ["%d.cntcm" % id for id in ids]
    wanted = [(key, 0, b"0") for key in keys]
    with Trial("--cold-threads=%d" % KEYS, count=ids.stop) as trial, \
            trial.daemon.connect() as first, trial.daemon.connect() as second:
        stat = lambda name: int(trial.connection.stats("cold")[name])
        reads, joins = stat("reads"), stat("joins")
        trial.shim.arm("read", "hold", after=0)
        first.send("get %s\r\n" % " ".join(keys))
        wait_for(lambda: stat("reading") == KEYS, "%d reads" % KEYS)
        second.send("get %s\r\n" % " ".join(keys))
        wait_for(lambda: stat("joins") == joins + KEYS, "lookups that join")
        trial.shim.disarm()
        for connection in (first, second):
            tap.equal(connection.values(), wanted)
        tap.equal(stat("reads"), reads + KEYS)


def late_reads():
    """While a change waits for its read, the record is sealed anew, changed by
    another connection, and sealed again: what is read is out of date then."""
    with Trial() as trial, trial.daemon.connect() as late:
        before = trial.shim.count("read")
        trial.shim.arm("read", "hold", before + 1)
        late.send("incr 1500.cntrn 1\r\n")
        wait_for(lambda: trial.shim.count("read") > before, "read")
        tap.equal(trial.connection.ask("incr 5.cntrn 1"), "6")
        seal(trial.connection, "weibo")
        tap.equal(trial.connection.ask("incr 1500.cntrn 1"), "501")
        seal(trial.connection, "weibo")
        tap.equal(len(late.buffer), 0)
        trial.shim.disarm()
        tap.equal(late.line(), b"502")
        tap.equal(trial.connection.get("1500.cntrn"),
                  [("1500.cntrn", 0, b"502")])
        tap.equal(trial.connection.ask("decr 1500.cntrn 1"), "501")
        trial.restart()
        trial.need_all(trial.connection, (5, 1500))


def hanging_clients():
    """Who waits for a read that hangs goes away; then the server stops."""
    with Trial() as trial:
        trial.shim.arm("read", "hold", after=0)
        before = trial.shim.count("read")
        for id in (1500, 2500):
            with trial.daemon.connect() as connection:
                connection.send("get %d.cntrn\r\n" % id)
                connection.send("incr %d.cntrn 1\r\n" % id)
        wait_for(lambda: trial.shim.count("read") >= before + 2, "reads")
        tap.equal(trial.connection.get("a"), [])
        trial.shim.disarm()


def no_room(call, action, error):
    """A segment cannot be written: the records stay, the server says so, and
    seals them when it can."""
    with Trial() as trial:
        ids = range(0, trial.count, 7)
        tell_all(trial.connection, ("incr %d.cntrn 1" % id for id in ids))
        for after in (0, 1):
            trial.shim.arm(call, action, after=after, error=error)
            answer = trial.connection.ask("seal weibo all")
            tap.check(answer.startswith("SERVER_ERROR "), answer)
            trial.need_all(trial.connection, ids)
            trial.shim.disarm()
        tap.equal(len(trial.segments()), 1, "files")
        wait_for(lambda: trial.connection.ask("set 1.cntcm 0 0 1\r\n1") ==
                 "STORED", "room in the log")
        tap.equal(trial.connection.ask("incr 1.cntrn 1"), "2")
        seal(trial.connection, "weibo")
        trial.need_all(trial.connection, (1, *ids))
        trial.restart()
        trial.need_all(trial.connection, (1, *ids))


def no_room_in_memory():
    """The memory is full, and the disk takes no segment: new records are
    refused, with a reason; then all is well by itself."""
    with Trial("--hot-memory=16m", count=10) as trial:
        trial.shim.arm("segment", "fail", after=0, error=errno.ENOSPC)
        id = 0
        answer = "OK"
        while answer == "OK":
            lines = ["set weibo %d %d 1 %d\r\n" % (
                id << 20, id, U64_MAX >> 32) for id in range(id, id + BATCH)]
            id += BATCH
            answer = (refusals(trial.connection, lines) or [b"OK"])[0].decode()
            if id > MEMORY_IDS:
                raise Lost("no change was refused")
        tap.check(answer.startswith("SERVER_ERROR the memory"), answer)
        # the refusal may have been before the first try
        wait_for(lambda: "next try" in trial.daemon.stderr(), "log line")
        tap.equal(trial.connection.get("0.cntcm"), [("0.cntcm", 0, b"0")])
        wait_for(lambda: int(trial.connection.stats("cold")[
            "seal_failures"]) > 0, "failures that are counted")
        trial.shim.disarm()
        wait_for(lambda: trial.connection.ask("incr 77.cntan 1").isdigit() and
                 trial.connection.stats("cold")["seals"] != "1", "recovery")
        trial.restart()
        for first in range(0, id - 2 * BATCH, BATCH):
            found = trial.connection.get(*(
                "%d.cntcm" % (number << 20)
                for number in range(first + 1, first + KEYS)))
            tap.equal([int(value) for _, _, value in found],
                      list(range(first + 1, first + KEYS)))


def removed():
    """A segment is removed under the server, which says so, also by its exit
    status, and reads it all the same; a start names it and refuses; put
    back, all is well."""
    with Trial() as trial:
        path, = trial.segments()
        away = os.path.join(trial.place.top, "away")
        shutil.copy2(path, away)
        give_away(away)
        os.unlink(path)
        need_said(trial, os.path.basename(path) + " was removed")
        trial.need_all(trial.connection)
        trial.connection.close()
        trial.daemon.signal(signal.SIGTERM)
        tap.equal(trial.daemon.wait_exit(), 1, "the stop says what it leaves")
        need_refused(trial.place, os.path.basename(path))
        shutil.move(away, path)
        need_sound(trial.place)
        trial.daemon.start()
        trial.connection = trial.daemon.connect()
        trial.need_all(trial.connection)


def need_said(trial, text):
    """Until the server's log has it."""
    def has_said():
        trial.connection.ask("checkpoint")
        return text in trial.daemon.stderr()

    wait_for(has_said, "word of " + text)


def need_checked(place, name):
    """--check names the file."""
    status, text = offline_check(place)
    if status == 0 or name not in text:
        raise Lost("--check: %d, %s" % (status, text))


def is_refused(daemon, name):
    """True where a start is refused; then it names the file."""
    try:
        daemon.start()
    except RuntimeError:
        daemon.check_clean()
        if name not in daemon.stderr() or daemon.process.returncode <= 0:
            daemon.kill(show=True)
            raise
        return True
    return False


def need_refused(place, name):
    """By --check and by a start."""
    need_checked(place, name)
    daemon = Daemon(place)
    if not is_refused(daemon, name):
        daemon.kill(show=True)
        raise Lost("a start takes it that %s is damaged" % name)


def damaged(seed, count):
    """Bits flipped in a segment, and its end cut off: --check names it. A
    start refuses it, or serves it without a wrong number: what cannot be read
    is not answered."""
    source = random.Random("cold %s" % seed)
    with Trial() as trial:
        trial.daemon.stop()
        path, = trial.segments()
        name = os.path.basename(path)
        size = os.path.getsize(path)
        for number in range(count):
            at = source.randrange(size)
            kind = source.choice(("flip", "flip", "cut"))
            place = trial.place.copy()
            try:
                damage_one(os.path.join(place.data, name), kind, at, source)
                need_checked(place, name)
                daemon = Daemon(place, "--shards=4")
                if not is_refused(daemon, name):
                    look_at_damaged(daemon, trial.count,
                                    kind == "flip" and is_slack(path, at))
            except Exception as error:
                raise AssertionError("%s of %s at %d: %r" % (
                    kind, name, at, error)) from error
            finally:
                place.remove()
        trial.daemon.start()


def damage_one(path, kind, at, source):
    with open(path, "r+b") as file:
        if kind == "cut":
            file.truncate(at)
            return
        file.seek(at)
        byte = file.read(1)[0] ^ 1 << source.randrange(8)
        file.seek(at)
        file.write(bytes([byte]))


def is_slack(path, at):
    """Whether that byte of a segment is behind the end of its block: nobody
    reads it, but a check looks at it (doc/format-segment.md)."""
    with open(path, "rb") as file:
        data = file.read()
    block = at - at % BLOCK
    if at < BLOCK or block + BLOCK > len(data):
        return False
    return at - block >= int.from_bytes(data[block + 2 : block + 4], "little")


def look_at_damaged(daemon, count, may_all_be_read):
    """Some number cannot be read, and none is wrong."""
    unread = 0
    try:
        with daemon.connect() as connection:
            for id in range(0, count, 10):
                key = "%d.cntrn" % id
                connection.send("get %s\r\n" % key)
                line = connection.line()
                if line == UNREADABLE:
                    unread += 1
                    continue
                tap.equal(line.split()[:2], [b"VALUE", key.encode()])
                tap.equal(int(connection.line()), id % 1000, key)
                tap.equal(connection.line(), b"END")
        tap.check(unread > 0 or may_all_be_read, "all could be read")
        daemon.stop()
    except BaseException:
        daemon.kill(show=True)
        raise


class Sealed:
    """What a life in which the server is ended at a call on a segment has
    acknowledged: a number for each id, and the one that came next."""

    def __init__(self):
        self.acked = {}
        self.asked = {}

    def change(self, connection, number, form="%d %d 0"):
        """Every number-th id is set to it."""
        ids = range(0, POINT_IDS, number)
        self.asked.update(dict.fromkeys(ids, number))
        values = form % (number, number)
        connection.send("".join(
            "set weibo %d %s\r\n" % (id, values) for id in ids))
        for id in ids:
            answer = connection.line().decode()
            if answer == "STORED":
                self.acked[id] = number
            elif not answer.startswith(LATE):
                raise Lost("a set answered %r" % answer)

    def work(self, connection):
        connection.tell(*server.WEIBO)
        for number in (1, 2, 3):
            self.change(connection, number)
            seal(connection, "weibo")
        tap.equal(connection.ask("drop column weibo attitude_num "
                                 "attitude_num"), "DELETED")
        self.change(connection, 5, "cntcm=%d cntrn=%d")
        seal(connection, "weibo")

    def look(self, connection):
        for id, asked in self.asked.items():
            found = connection.get("%d.cntcm" % id, "%d.cntrn" % id)
            values = {int(value) for _, _, value in found}
            if values != {self.acked.get(id, 0)} and values != {asked}:
                raise Lost("LOST: %d has %s, not %s or %d" % (
                    id, values, self.acked.get(id), asked))


class Heated(Sealed):
    """The same, and most of it changes, so that it is hot again."""

    def work(self, connection):
        connection.tell(*server.WEIBO)
        self.change(connection, 1)
        seal(connection, "weibo")
        self.change(connection, 2)
        self.change(connection, 3)
        wait_for(lambda: connection.stats("cold")["reheats"] != "0",
                 "range that is hot again")
        self.change(connection, 5)
        for id in range(0, POINT_IDS, 30):
            tap.equal(connection.get("%d.cntcm" % id),
                      [("%d.cntcm" % id, 0, b"%d" % self.acked[id])])


def dies_at_stop(daemon):
    try:
        daemon.stop()
    except AssertionError:
        if daemon.process.returncode != -signal.SIGKILL:
            raise
        return True
    return False


def point(call, way, number, life=Sealed):
    """The server is ended at the number-th call of a kind on a segment; False
    where there was none."""
    with Place() as place:
        shim = Shim(place)
        shim.arm(call, way, number, FOREVER)
        daemon = Daemon(place, "--shards=4",
                        environment=shim.environment())
        sealed = life()
        try:
            daemon.start()
            with daemon.connect() as connection:
                sealed.work(connection)
            died = dies_at_stop(daemon)
        except (server.Closed, OSError, RuntimeError):
            daemon.process.wait(server.LIMIT_S)
            died = True
        except BaseException:
            daemon.kill(show=True)
            raise
        daemon.stopped = True
        daemon.check_clean()
        for _ in range(2):
            with Daemon(place, "--shards=4") as daemon:
                daemon.start()
                with daemon.connect() as connection:
                    if sealed.asked:
                        sealed.look(connection)
                        seal(connection, "weibo")
                        sealed.look(connection)
            need_sound(place)
            names = [name for name in place.names() if ".seg" in name]
            tap.check(len(names) <= 1, "left: %s" % names)
        return died


def points(way, step=1, life=Sealed, call="segment"):
    """Each step-th of the calls."""
    number = 1
    while point(call, way, number, life):
        number += step
    tap.note("%d points" % (number // step))
    tap.check(number > 10, "there are calls")
