# SPDX-License-Identifier: BSD-3-Clause
"""Three nodes, each on a machine and a disk of its own, under load; in each
round something goes wrong with one of them: kill -9, the power of its disk, its
network in one direction or both, a slow link, a stop that is no end, another
primary by hand, while the old one is gone or goes on. Then all is mended, and

* what was acknowledged is there: an answer waits for a replica (--semi-sync=1),
  and the one that has the longest log is promoted. What is there is, for each
  client, the state after the first m of its steps (oracle.py);
* of clients that number their changes and say them again until they are
  answered, whoever is the primary, each change is done once;
* digests of all nodes are equal, and at the end all that their logs have of the
  same batches.

Only one node is harmed at a time, for with one copy more than the primary's no
more is promised.

In a third of the worlds (is_rich) there is more beside all that: 10,000 who
number their changes, producers that are dropped and come again, dumps, and
records that fill an eighth of the primary's memory, which is what its replicas
have: they seal, and it does not.

Without root the three are processes of one machine, and there is no cut of
network or power.
"""

import errno
import os
import random
import signal
import subprocess
import threading
import time

import faults
import server
from clients import Crowd, Reader, SCHEMA
from cluster import Cluster, until
from daemon import Place, SMALL, need_sound
from disk import Disk, MIB
from net import Network
from oracle import Lost
from shim import Shim
from tap import equal

NAMES = "abc"
DISK_BYTES = 384 * MIB
COUNTERS = ("lanes", "sides", "numb", "bulk")
BULK_LOOKS = 1 / 3 # of rounds behind which bulk is compared, too
NUMB = ("add counter numb",
        "add column numb numb_id primarykey",
        "add column numb n max=64 suffix=nn")
NUMB_CELLS = 30
APART_IDS = 300
NUMB_DEPTH = 8
PRODUCERS = 10000
PRODUCERS_DEPTH = 500
RICH = ("--hot-memory=128m", "--max-producers=16384")
RICH_SMALL = ("--hot-memory=16m", "--max-producers=16384")
BULK = ("add counter bulk",
        "add column bulk bulk_id primarykey",
        *("add column bulk bulk_%d max=64 suffix=b%d" % (n, n)
          for n in range(8)))
BULK_RECORDS = 180000 # more than RICH_SMALL has room for
BULK_PIECE = 5000
BULK_TURN = 200       # changes of them at a time
LOAD_S_MAX = 0.6
HARM_S_MAX = 1.5
TIMEOUT_S = 2    # --repl-timeout: a peer that says nothing is gone
COMMIT_S = 1000 # longer than a round: what waits is answered in the end
RETRY_S = 0.005
FULL_BYTES = 48 * MIB
FULL_DEPTH = 500  # changes at a time
OPTIONS = ("--semi-sync=1", "--min-replicas-to-write=0",
           "--repl-timeout=%d" % TIMEOUT_S, *SMALL)


class Numbered:
    """A client that numbers its changes, and asks whoever may be the primary
    until each is answered."""

    def __init__(self, name, source, world, ids=range(1, NUMB_CELLS + 1)):
        self.name = name
        self.source = source
        self.world = world
        self.cells = ["%d.nn" % number for number in ids]
        self.number = 0
        self.count = {}    # cell: changes
        self.pending = []  # (PRODUCER:NUMBER, cell)
        self.is_over = threading.Event()
        self.fault = None
        self.thread = None

    def start(self):
        self.is_over.clear()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            while self.pending or not self.is_over.is_set():
                try:
                    with self.world.connect() as connection:
                        self.talk(connection)
                except (server.Closed, OSError):
                    time.sleep(RETRY_S)
        except Exception as error: # whatever else is a failed test
            self.fault = "%s: %r" % (self.name, error)

    def talk(self, connection):
        while self.pending or not self.is_over.is_set():
            if not self.pending:
                self.plan()
            connection.send("".join(
                "incr numb %s 1 tx=%s\r\n" % (cell, number)
                for number, cell in self.pending))
            left = []
            for number, cell in self.pending:
                answer = connection.line().decode("latin-1")
                if not answer.isdigit():
                    self.need_error(answer)
                    left.append((number, cell))
            self.pending = left
            if left:
                time.sleep(RETRY_S)
                return

    @staticmethod
    def need_error(answer):
        if not answer.startswith("SERVER_ERROR"):
            raise Lost("answered %r" % answer)

    def plan(self):
        for _ in range(NUMB_DEPTH):
            self.number += 1
            self.add("%s:%d" % (self.name, self.number))

    def add(self, number):
        cell = self.source.choice(self.cells)
        self.pending.append((number, cell))
        self.count[cell] = self.count.get(cell, 0) + 1

    def end(self):
        """What it began is answered."""
        self.is_over.set()
        self.thread.join(2 * server.LIMIT_S)
        if self.thread.is_alive():
            self.fault = "%s: %d changes are never answered" % (
                self.name, len(self.pending))
        if self.fault:
            raise Lost(self.fault)


class Many(Numbered):
    """So many of them in one: each change is another producer's."""

    def plan(self):
        for _ in range(PRODUCERS_DEPTH):
            turn, producer = divmod(self.number, PRODUCERS)
            self.number += 1
            self.add("%s-%d:%d" % (self.name, producer, turn + 1))


class Dropped(Numbered):
    """One whose producer is dropped after each change, so that the same number
    is one more change."""

    has_changed = False

    def talk(self, connection):
        while self.pending or not self.is_over.is_set():
            if self.has_changed:
                answer = connection.ask("drop producer " + self.name)
                # of one that is said again: it had been done
                if answer not in ("DELETED", "CLIENT_ERROR no such producer"):
                    self.need_error(answer)
                    time.sleep(RETRY_S)
                    return
                self.has_changed = False
            if not self.pending:
                self.add(self.name + ":1")
            [(number, cell)] = self.pending
            answer = connection.ask("incr numb %s 1 tx=%s" % (cell, number))
            if not answer.isdigit():
                self.need_error(answer)
                time.sleep(RETRY_S)
                return
            self.pending = []
            self.has_changed = True


class Clients:
    """Those of all kinds, some that number their changes among them."""

    def __init__(self, source, world):
        self.crowd = Crowd(source)
        self.numbered = [
            Numbered("app%d" % n, random.Random(source.getrandbits(32)), world)
            for n in range(3)]
        if world.is_rich:
            self.numbered += [
                kind(name, random.Random(source.getrandbits(32)), world)
                for kind, name in ((Many, "many"), (Dropped, "dropped"))]

    @staticmethod
    def declare(connection):
        connection.tell(*SCHEMA, *NUMB, *BULK)

    def start(self, connect):
        self.crowd.start(connect)
        for client in self.numbered:
            client.start()

    def end_crowd(self):
        """Before it is looked for the primary: who asks the old one stops."""
        self.crowd.end(may_refuse=True)

    def end_numbered(self):
        for client in self.numbered:
            client.end()

    def settle(self, connect, low):
        """Compares with what the primary has now."""
        self.crowd.settle(connect, low)
        wanted = {}
        for client in self.numbered:
            for cell, count in client.count.items():
                wanted[cell] = wanted.get(cell, 0) + count
        with connect() as connection:
            found = {key: int(value) for key, _, value in
                     connection.get(*sorted(wanted))} if wanted else {}
        if found != wanted:
            raise Lost("numbered changes: found, wanted: %s" % {
                cell: (found.get(cell), count)
                for cell, count in wanted.items() if found.get(cell) != count})


class World:
    """The nodes, and who is the primary. has_root: with a network and disks
    of their own."""

    def __init__(self, seed, has_root, kind="xfs", mode="interval"):
        self.source = random.Random("%s %s" % (seed, mode))
        self.network = Network(NAMES) if has_root else None
        self.kind = kind
        self.is_rich = self.source.random() < 1 / 3
        self.options = [*OPTIONS, "--sync=" + mode,
                        "--commit-timeout=%d" % COMMIT_S]
        self.cluster = Cluster(0)
        self.head = None  # the primary, or who is to be it
        self.clients = Clients(self.source, self)
        self.log = []
        self.counts = {}  # what was done: how often
        self.acked = 0

    def __enter__(self):
        if self.network:
            self.network.__enter__()
        try:
            for name in NAMES:
                self.add(name)
            self.head = self.cluster.nodes[0]
            self.cluster.__enter__()
            with self.connect() as connection:
                self.clients.declare(connection)
                if self.is_rich:
                    self.fill(connection)
        except BaseException:
            self.__exit__(RuntimeError)
            raise
        return self

    def __exit__(self, kind, *rest):
        try:
            self.mend_network()
            self.cluster.__exit__(kind, *rest)
        finally:
            if self.network:
                self.network.__exit__()

    def fill(self, connection):
        """More than a replica has memory for."""
        source = random.Random(self.source.getrandbits(32))
        for first in range(0, BULK_RECORDS, BULK_PIECE):
            connection.send("".join("set bulk %d%s\r\n" % (
                id, (" %d" * 8) % tuple(source.getrandbits(63)
                                        for _ in range(8)))
                for id in range(first, first + BULK_PIECE)))
            for _ in range(BULK_PIECE):
                need_line(connection, b"STORED")

    def add(self, name):
        options = self.options
        if self.is_rich:
            options = [*options, *(RICH_SMALL if self.cluster.nodes else RICH)]
        if self.network is None:
            self.cluster.add(name, *options)
            return
        node = self.cluster.add(
            name, *options, "--insecure", "--repl-insecure",
            "--repl-listen=" + self.network.address(name),
            place=Disk(self.kind, DISK_BYTES), repl_port=11213,
            address=self.network.address(name),
            wrapper=self.network.wrapper(name))
        node.is_own_place = True

    def connect(self):
        return self.head.connect()

    def others(self):
        return [node for node in self.cluster.nodes if node is not self.head]

    def mend_network(self):
        if self.network:
            self.network.heal()

    def did(self, what, node):
        self.counts[what] = self.counts.get(what, 0) + 1
        self.log.append("%s of %s%s" % (
            what, node.name, ", the primary" if node is self.head else ""))

    # What may go wrong with a node; each returns how it is mended.

    def kill(self, node):
        node.murder()
        return node.start

    def cut_power(self, node):
        """It is stopped before, so that it acknowledges nothing that the disk
        did not take: power.py says why."""
        node.freeze()
        node.place.cut()
        node.murder()

        def mend():
            node.place.restore()
            node.start()
        return mend

    def freeze(self, node):
        node.freeze()
        return lambda: node.signal(signal.SIGCONT)

    def part(self, node):
        """From one other, or both, one way or two."""
        for other in self.cluster.nodes:
            if other is node or self.source.random() < 0.4:
                continue
            kind = self.source.choice(("lose", "lose back", "part"))
            if kind == "part":
                self.network.part(node.name, other.name)
            elif kind == "lose":
                self.network.lose(node.name, other.name)
            else:
                self.network.lose(other.name, node.name)
        return self.network.heal

    def isolate(self, node):
        """From all, clients too."""
        self.network.cut(node.name)
        return self.network.heal

    def slow(self, node):
        self.network.slow(node.name, "1mbit")
        return self.network.heal

    def harms(self):
        found = {"kill -9": self.kill, "SIGSTOP": self.freeze}
        if self.network:
            found.update({"power cut": self.cut_power, "partition": self.part,
                          "isolation": self.isolate, "slow link": self.slow})
        return found

    def promote(self, gone):
        """The longest log of those that are left becomes the primary; gone
        is to follow it when it is back. None of them may follow it any more,
        or it would be told later that they have what is cut now."""
        left = [node for node in self.cluster.nodes if node is not gone]
        for node in left:
            node.wait_for(link_status="down")
        best = max(left, key=lambda node: node.last())
        best.promote()
        for node in left:
            if node is not best:
                node.turn_to(best)
        gone.follow(best)
        self.head = best
        self.did("promotion", best)

    def harm_replica(self):
        what, harm = self.source.choice(sorted(self.harms().items()))
        node = self.source.choice(self.others())
        self.did(what, node)
        mend = harm(node)
        time.sleep(self.source.uniform(0, HARM_S_MAX))
        mend()

    def harm_primary(self):
        """It comes back as what it was."""
        harms = self.harms()
        # what it has lost of the log its replicas have: they must be promoted
        harms.pop("power cut", None)
        what, harm = self.source.choice(sorted(harms.items()))
        self.did(what, self.head)
        mend = harm(self.head)
        time.sleep(self.source.uniform(0, HARM_S_MAX))
        mend()

    def replace(self):
        """Another one becomes the primary, and the old one comes back."""
        harms = self.harms()
        harms.pop("slow link", None)
        if self.network:
            # it must not be heard by those of whom one is chosen
            harms["partition"] = harms["isolation"]
        what, harm = self.source.choice(sorted(harms.items()))
        old = self.head
        self.did(what, old)
        mend = harm(old)
        self.promote(old)
        time.sleep(self.source.uniform(0, HARM_S_MAX))
        mend()
        if old.sees(role="primary"):
            until(lambda: self.tells(old), "the old primary follows")

    def tells(self, old):
        """Tells it whom to follow; while it loads anew it does not answer."""
        try:
            return old.ask("replicaof " + self.head.repl_address) == ["OK"]
        except (server.Closed, OSError):
            return False

    def switch(self):
        """By hand, while all are well."""
        old = self.head
        self.did("switch", old)
        old.order("replicaof " + self.others()[0].repl_address)
        self.promote(old)
        until(lambda: self.tells(old), "the old primary follows")

    def tend(self):
        """Seals and checkpoints of one of them."""
        node = self.source.choice(self.cluster.nodes)
        try:
            with node.connect() as connection:
                connection.ask(self.source.choice(
                    ("checkpoint", "seal lanes all", "seal numb all")))
        except (server.Closed, OSError):
            pass

    def change_bulk(self):
        """One column each, of records that may be sealed at one and not at
        another node."""
        source = random.Random(self.source.getrandbits(32))
        try:
            with self.connect() as connection:
                connection.send("".join("incr bulk %d.b%d 1\r\n" % (
                    source.randrange(BULK_RECORDS), source.randrange(8))
                    for _ in range(BULK_TURN)))
                for _ in range(BULK_TURN):
                    connection.line()
        except (server.Closed, OSError):
            pass

    def dump(self):
        """Of one that may end, or stand, meanwhile."""
        node = self.source.choice(self.cluster.nodes)
        what = self.source.choice(
            ("lanes", "numb", "bulk 0 %d" % BULK_PIECE))
        try:
            with node.connect() as connection:
                connection.send("dump counter %s\r\n" % what)
                while True:
                    line = connection.line()
                    if line == b"END" or line.startswith(b"SERVER_ERROR"):
                        return
        except (server.Closed, OSError):
            pass

    def round(self):
        self.clients.start(self.connect)
        time.sleep(self.source.uniform(0.05, LOAD_S_MAX))
        helpers = [threading.Thread(target=what, daemon=True) for what in (
            (self.tend, self.dump, self.change_bulk) if self.is_rich
            else (self.tend,))]
        for helper in helpers:
            helper.start()
        self.source.choice((self.harm_replica, self.harm_primary,
                            self.replace, self.replace, self.switch))()
        time.sleep(self.source.uniform(0, LOAD_S_MAX))
        for helper in helpers:
            helper.join()
        self.clients.end_crowd()
        self.clients.end_numbered()
        self.cluster.need_same(*(
            COUNTERS if self.source.random() < BULK_LOOKS else COUNTERS[:-1]))
        self.acked += self.clients.crowd.acked()
        self.clients.settle(self.connect, lambda journal: journal.low())

    def finish(self):
        """The logs have the same in the same batches; all are sound."""
        self.cluster.need_same(*COUNTERS)
        for node in self.cluster.nodes:
            node.murder()
        need_same_logs(self.cluster.nodes)
        for node in self.cluster.nodes:
            need_sound(node.place)


def log_of(node):
    """{batch: (bytes, checksum)}. What a dump says of the changes themselves
    depends on the manifest beside the log: columns dropped since are not
    named."""
    done = subprocess.run(
        [server.binary(), "--data=" + node.place.data, "--dump",
         "--dump-part=log", *server.user_options()],
        stdout=subprocess.PIPE, text=True, check=True,
        timeout=server.LIMIT_S)
    batches = {}
    for line in done.stdout.splitlines():
        word, *words = line.split()
        if word == "batch":
            batches[int(words[0])] = tuple(
                words[words.index(name) + 1] for name in ("bytes", "checksum"))
    return batches


def need_same_logs(nodes):
    """What two of them have of the same batches."""
    logs = {node.name: log_of(node) for node in nodes}
    first = max(min(log, default=0) for log in logs.values())
    last = min(max(log, default=0) for log in logs.values())
    common = {name: {seq: batch for seq, batch in log.items()
                     if first <= seq <= last} for name, log in logs.items()}
    (one, wanted), *rest = common.items()
    for other, found in rest:
        if found != wanted:
            seq = min(seq for seq in {*found, *wanted}
                      if found.get(seq) != wanted.get(seq))
            raise Lost("batch %d: %s has %s, %s has %s" % (
                seq, one, wanted.get(seq), other, found.get(seq)))


def rounds(count, seed, has_root, kind="xfs", mode="interval",
           tell=lambda text: None):
    """count of them; (changes acknowledged, {what went wrong: how often})."""
    world = World(seed, has_root, kind, mode)
    number = 0
    try:
        with world:
            for number in range(count):
                tell("round %d of %d: %s" % (number + 1, count, world.log[-1:]))
                world.round()
            world.finish()
    except Exception as error:
        raise Lost("%s, seed %s, round %d, after %s: %s" % (
            mode, seed, number + 1, world.log[-6:], error)) from error
    return world.acked, world.counts


class Load:
    """Increments through the primary, thread by thread, until it is over."""

    def __init__(self, node, count=4, depth=100):
        self.node = node
        self.depth = depth
        self.is_over = threading.Event()
        self.fault = None
        self.done = [0] * count
        self.threads = [threading.Thread(target=self.run, args=(n,),
                                         daemon=True) for n in range(count)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        for thread in self.threads:
            thread.join()

    def run(self, n):
        source = random.Random(n)
        try:
            with self.node.connect() as connection:
                while not self.is_over.is_set():
                    connection.send("".join(
                        "incr %d.la 1\r\n" % source.getrandbits(20)
                        for _ in range(self.depth)))
                    for _ in range(self.depth):
                        answer = connection.line()
                        if not answer.isdigit():
                            raise Lost("answered %r" % answer)
                    self.done[n] += self.depth
        except Exception as error: # is raised by need_going
            self.fault = repr(error)

    def need_going(self):
        if self.fault:
            raise Lost(self.fault)
        return sum(self.done)


def full_syncs(node):
    """Snapshots that it has sent."""
    return int(node.figures()["sync_full"])


def away(seconds, harm, tell=lambda text: None):
    """A replica that is killed or stopped for so long under load comes back
    without a snapshot; (changes meanwhile, the primary's memory before and
    after, KiB)."""
    with Cluster(2) as cluster:
        one, two = cluster.nodes
        with one.connect() as connection:
            connection.tell(*SCHEMA)
        cluster.caught_up()
        with Load(one) as load:
            until(lambda: load.need_going() > 0, "changes")
            before, memory = full_syncs(one), one.rss_kib()
            if harm == "kill":
                two.murder()
            else:
                two.freeze()
            begin, end = load.need_going(), time.monotonic() + seconds
            while time.monotonic() < end:
                tell("%s: %.0f s" % (harm, end - time.monotonic()))
                load.is_over.wait(min(1, max(0, end - time.monotonic())))
            changes = load.need_going() - begin
            after = one.rss_kib()
            if harm == "kill":
                two.start()
            else:
                two.signal(signal.SIGCONT)
            two.wait_for(role="replica", link_status="up")
            load.need_going()
        cluster.need_same("lanes")
        if full_syncs(one) != before:
            raise Lost("it took a snapshot")
    return changes, memory, after


def behind(times, tell=lambda text: None):
    """A replica whose log is gone takes a snapshot, which is cut off so many
    times by the end of either process; bytes that the primary sent for it."""
    options = ("--repl-backlog-size=1m", "--repl-snapshot-rate=1m", *SMALL)
    with Cluster(2, *options) as cluster:
        one, two = cluster.nodes
        with one.connect() as connection:
            connection.tell(*SCHEMA)
        cluster.caught_up()
        two.murder()
        with Load(one) as load, one.connect() as admin:
            needed = int(admin.stats("wal")["file"])
            while int(admin.stats("wal")["first_file"]) <= needed:
                load.need_going()
                admin.ask("checkpoint")
        for number in range(times):
            tell("cut off %d of %d" % (number + 1, times))
            two.start()
            two.wait_for(role="syncing")
            (one if number % 3 == 2 else two).again()
            two.murder()
        two.start()
        two.wait_for(role="replica", link_status="up")
        cluster.need_same("lanes")
        return int(one.figures()["sync_bytes"])


def sealed_apart(path=None):
    """A replica has sealed what its primary has not, when one column of it
    changes: the others stay what they were, also behind its next start. path:
    of the server, where it is another one."""
    with Cluster(2, *SMALL, path=path) as cluster:
        one, two = cluster.nodes
        with one.connect() as connection:
            connection.tell(*SCHEMA)
            connection.send("".join(
                "set lanes %d %d %d %d\r\n" % (id, id, 2 * id, 3 * id)
                for id in range(APART_IDS)))
            for _ in range(APART_IDS):
                need_line(connection, b"STORED")
        cluster.need_same("lanes")
        equal(two.ask("seal lanes all"), ["OK"])
        with one.connect() as connection:
            connection.send("".join("incr %d.lb 1\r\n" % id
                                    for id in range(0, APART_IDS, 3)))
            for id in range(0, APART_IDS, 3):
                need_line(connection, b"%d" % (2 * id + 1))
        cluster.need_same("lanes")
        two.again()
        cluster.need_same("lanes")


DISK_FAULTS = {"full": (("write", "allocate", "open"), errno.ENOSPC),
               "broken": (("write", "sync"), errno.EIO)}


def takes(connection, count):
    """True where so many changes are acknowledged."""
    connection.send("".join("incr %d.la 1\r\n" % n for n in range(count)))
    answers = [connection.line().decode("latin-1") for _ in range(count)]
    for answer in answers:
        if not answer.isdigit():
            Numbered.need_error(answer)
    return all(answer.isdigit() for answer in answers)


def full_replica():
    """The disk of a replica is full, which --semi-sync waits for: nothing is
    acknowledged, it is read, and all goes on by itself when there is room. Its
    checkpoint, which makes some, waits for what the primary says behind the
    batches that it cannot take."""
    with Disk("ext4", FULL_BYTES) as disk, Cluster(0) as cluster:
        options = (*OPTIONS, "--commit-timeout=1")
        one = cluster.add("a", *options)
        one.start()
        two = cluster.add("b", *options, place=disk)
        two.start()
        with one.connect() as connection:
            connection.tell(*SCHEMA)
            cluster.caught_up()
            faults.fill_up(disk)
            until(lambda: not takes(connection, FULL_DEPTH), "refusals")
            with two.connect() as reader:
                equal(len(reader.get("1.la")), 1, "values read")
            os.unlink(faults.filler(disk))
            until(lambda: takes(connection, 1), "changes")
        cluster.need_same("lanes")


def disk_fails(seed, how):
    """The disk of the primary takes nothing, for a while. Reads go on at both,
    the replica stays one, changes go on when the disk is well, and what was
    acknowledged is on the replica, which is promoted then."""
    calls, error = DISK_FAULTS[how]
    with Place() as place, Cluster(0) as cluster:
        shim = Shim(place)
        trial = faults.Trial(place, seed, "interval", shim)
        reader = Reader("reader of b", random.Random(seed), ["1.la"])
        options = (*OPTIONS, "--commit-timeout=%d" % COMMIT_S)
        one = cluster.add("a", *options, place=place,
                          environment=shim.environment())
        one.start()
        two = cluster.add("b", *options)
        two.start()
        trial.declare(one)
        cluster.caught_up()
        trial.load(one)
        reader.start(two.connect)
        trial.need_writes()
        for call in calls:
            shim.arm(call, "fail", after=trial.source.randrange(3),
                     error=error)
        trial.need_refusals()
        trial.need_reads()
        count = reader.reads
        until(lambda: reader.reads > count + faults.ENOUGH or
              not reader.thread.is_alive(), "reads of the replica")
        two.wait_for(role="replica", link_status="up")
        shim.disarm()
        trial.need_writes()
        trial.end()
        reader.end()
        equal((reader.fault, reader.refused), (None, None))
        cluster.need_same("lanes")
        trial.settle(one)
        one.murder()
        two.wait_for(link_status="down")
        two.promote()
        trial.settle(two)
        need_sound(place)


def need_line(connection, wanted):
    found = connection.line()
    if found != wanted:
        raise Lost("answered %r, not %r" % (found, wanted))


def lost_tail(count, seed, tell=lambda text: None):
    """The primary loses what it had not synced and comes back as the primary:
    its replicas, which have that, are cut to what it has. Changes are lost
    then, as --sync=interval says; what the nodes have is the same."""
    source = random.Random(seed)
    with World(seed, True) as world:
        for number in range(count):
            tell("cut %d of %d" % (number + 1, count))
            world.clients.crowd.start(world.connect)
            time.sleep(source.uniform(0.1, 1))
            mend = world.cut_power(world.head)
            mend()
            world.clients.end_crowd()
            world.cluster.need_same(*COUNTERS)
            world.clients.crowd.settle(world.connect,
                                       lambda journal: journal.floor)
        world.finish()
