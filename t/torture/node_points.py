# SPDX-License-Identifier: BSD-3-Clause
"""Ends one of two nodes at the n-th of its calls on its data directory, while
they do what replication is made of: a snapshot is taken, into an empty
directory and in the place of another one, and sent; a log is cut; a term is
promised; a node is promoted; a replica takes a stream, and a primary makes one
whose replica is then promoted. After each end a start goes on or finishes:
both come to have the same records and the same batches, what was acknowledged
is there, and both directories pass --check.

The n-th call is that of all threads, by a preloaded library (shim.py). What a
scene begins with is made once, and copied for each end."""

import random
import signal
import subprocess

import server
from clients import Crowd, SCHEMA
from cluster import Node
from daemon import Place, SMALL, need_sound
from oracle import Lost
from points import WAYS, need_strace, strace_counts, wait_for_strace
from ports import free_port
from replicas import need_same_logs
from shim import FOREVER, Shim
from tap import check, equal

COUNTERS = ("lanes", "sides", "bulk")
BULK = ("add counter bulk",
        "add column bulk bulk_id primarykey",
        *("add column bulk bulk_%d max=64 suffix=b%d" % (n, n)
          for n in range(8)))
ROTATING = 30000    # records of bulk that are more than two files of the log
SOME = 300
FEW = 75            # of SOME that are sealed: half would make the range hot
ACKED = ("--semi-sync=1", "--min-replicas-to-write=0",
         "--commit-timeout=1000")  # s: what waits is answered in the end
DIED = (server.Closed, OSError, RuntimeError, AssertionError)


def fill(connection, count, first=0, turn=0):
    """Whole records, count of them, their values from first and turn."""
    source = random.Random("%d %d" % (first, turn))
    connection.send("".join("set bulk %d %s\r\n" % (
        id, " ".join(str(source.getrandbits(63)) for _ in range(8)))
        for id in range(first, first + count)))
    for _ in range(count):
        line = connection.line()
        if line != b"STORED":
            raise Lost("%r to a record" % line)


def declare(connection):
    """What is there already stays."""
    for line in (*SCHEMA, *BULK):
        connection.ask(line)


def do(node, *commands):
    equal(node.ask(*commands), ["OK"] * len(commands), node.name)


class Pair:
    """Two nodes of which one is harmed; a is the primary at first."""

    def __init__(self, a=None, b=None, options=()):
        self.options = options
        self.places = {}
        try:
            self.places["a"] = a.copy() if a else Place()
            self.places["b"] = b.copy() if b else Place()
        except BaseException:
            self.remove()
            raise
        self.port = {name: free_port() for name in "ab"}
        self.nodes = {}
        self.harmed = None  # a name

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            for node in self.nodes.values():
                if node.process is not None and not node.stopped:
                    node.kill(show=kind is not None)
        finally:
            self.remove()

    def remove(self):
        for place in self.places.values():
            place.remove()

    def make(self, name, follows=None, **more):
        """A life of a node; follows: a name."""
        self.nodes[name] = Node(
            name, "--shards=2", "--sync-interval=20", *SMALL, *self.options,
            place=self.places[name], repl_port=self.port[name],
            follows=follows and "127.0.0.1:%d" % self.port[follows], **more)
        return self.nodes[name]

    def start(self, name, follows=None, **more):
        node = self.make(name, follows, **more)
        node.start()
        return node

    def harm(self, name, follows=None):
        """As start, of the node that is harmed, if it is one."""
        more = dict(self.life) if name == self.harmed else {}
        return self.start(name, follows, **more)

    def is_same(self):
        """The replica has what the primary has."""
        a, b = self.nodes["a"], self.nodes["b"]
        try:
            return b.sees(role="replica", link_status="up") and \
                b.applied() >= a.last()
        except (server.Closed, OSError):
            return False

    def wait(self, condition, what):
        """Until that is so; raises where the one that is harmed ends."""
        self.nodes[self.harmed].wait(condition, what)

    def need_killed(self):
        """Raises on where its end was not the one that was wanted."""
        node = self.nodes[self.harmed]
        try:
            status = node.process.wait(server.LIMIT_S)
        except subprocess.TimeoutExpired:
            status = None
        if status != -signal.SIGKILL:
            raise # what the caller is handling
        node.check_clean()
        node.stopped = True

    def need_same(self, primary, replica):
        """They come to have the same, and their directories are sound."""
        replica.wait(lambda: primary.last() <= replica.applied() and
                     replica.sees(role="replica", link_status="up"),
                     "the batches of " + primary.name)
        for counter in COUNTERS:
            equal(replica.digest(counter), primary.digest(counter), counter)
        for node in (replica, primary):
            node.murder()
        need_same_logs([primary, replica])
        for node in (replica, primary):
            need_sound(node.place)


# Scenes. Each has: harmed, the node that ends; calls, the rows of the library
# that are counted; prepare(), what it begins with; work(pair), until it is
# done or the node ends; mend(pair), what must be then.


class Follow:
    """b comes to a, which has become the primary of a later term since."""

    options = ()
    harmed = "b"
    calls = ("any",)

    def __init__(self, seed):
        self.seed = seed
        self.places = {}
        self.wanted = {}
        try:
            with Pair(options=self.options) as pair:
                pair.harmed = self.harmed
                self.prepare(pair)
        except BaseException:
            self.remove()
            raise

    def remove(self):
        for place in self.places.values():
            place.remove()

    def keep(self, pair, name):
        """The directory of one that has ended is what each point copies."""
        if name in self.places:
            self.places.pop(name).remove()
        self.places[name] = pair.places[name].copy()

    def know(self, node):
        """What is there now was acknowledged, and is to be there."""
        self.wanted = {name: node.digest(name) for name in COUNTERS}

    def need_wanted(self, node):
        for name, wanted in self.wanted.items():
            equal(node.digest(name), wanted, "LOST of %s: %s" % (
                node.name, name))

    @staticmethod
    def begin_one(pair):
        """a has records, hot and cold."""
        a = pair.start("a")
        with a.connect() as connection:
            declare(connection)
            fill(connection, SOME)
            do(a, "seal bulk all")
            fill(connection, FEW, SOME - FEW // 2)
        return a

    def begin(self, pair):
        """Both have the same, hot and cold."""
        a = self.begin_one(pair)
        b = pair.start("b", "a")
        b.wait(pair.is_same, "the snapshot")
        do(b, "checkpoint")
        return a, b

    def prepare(self, pair):
        a, b = self.begin(pair)
        self.know(a)
        for node in (b, a):
            node.murder()
            self.keep(pair, node.name)

    def pair(self):
        pair = Pair(self.places.get("a"), self.places.get("b"), self.options)
        pair.harmed = self.harmed
        return pair

    def work(self, pair):
        pair.harm("a")
        pair.harm("b", "a")
        pair.wait(pair.is_same, "the end")

    def mend(self, pair):
        if self.harmed == "b":
            pair.start("b", "a")
        else:
            pair.start("a")
            if "b" not in pair.nodes:
                pair.start("b", "a")
        a, b = pair.nodes["a"], pair.nodes["b"]
        b.wait(pair.is_same, "the end")
        self.need_wanted(a)
        pair.need_same(a, b)


class Empty(Follow):
    """b has no directory, and is sent a snapshot."""

    def prepare(self, pair):
        a = self.begin_one(pair)
        do(a, "checkpoint")
        with a.connect() as connection:
            fill(connection, SOME, SOME)
        self.know(a)
        a.murder()
        self.keep(pair, "a")


class Stale(Follow):
    """b was away for so long that the log it needs is gone: a snapshot comes
    into the place of what it has."""

    options = ("--repl-backlog-size=1m",)

    def prepare(self, pair):
        a, b = self.begin(pair)
        b.murder()
        self.keep(pair, "b")
        with a.connect() as connection:
            needed = int(connection.stats("wal")["file"])
            first = SOME
            while int(connection.stats("wal")["first_file"]) <= needed:
                fill(connection, ROTATING, first)
                do(a, "checkpoint")
                first += ROTATING
            do(a, "seal bulk all")
        self.know(a)
        a.murder()
        self.keep(pair, "a")


class Source(Stale):
    """The same, and the primary is the one that ends, while it sends."""

    harmed = "a"
    calls = ("any", "read")


class Cut(Follow):
    """b was a primary of its own, and what it took meanwhile is cut: two
    files, which no manifest has. There is no snapshot."""

    def prepare(self, pair):
        a, b = self.begin(pair)
        self.know(a)
        b.murder()
        a.murder()
        pair.options = ("--checkpoint-log=1g",)
        b = pair.start("b")
        with b.connect() as connection:
            for turn in range(ROTATING // FEW):  # manifests tell of hot ranges
                fill(connection, FEW, SOME - FEW // 2, turn + 1)
        b.murder()
        self.keep(pair, "b")
        pair.options = ()
        pair.start("a").murder() # in the same term as b was
        self.keep(pair, "a")

    def work(self, pair):
        super().work(pair)
        equal(pair.nodes["b"].figures()["cuts"], "1", "cuts")
        equal(pair.nodes["a"].figures()["sync_full"], "0", "snapshots")


class Promotion(Follow):
    """b is made the primary by hand, and a is to follow it."""

    def work(self, pair):
        b = pair.harm("b", "a")
        b.promote()

    def mend(self, pair):
        pair.start("b")
        a, b = pair.start("a", "b"), pair.nodes["b"]
        self.need_wanted(b)
        pair.need_same(b, a)


class Stream(Follow):
    """b takes what clients of a do, makes checkpoints and seals."""

    harmed = "b"

    def prepare(self, pair):
        pass

    def pair(self):
        pair = super().pair()
        pair.crowd = Crowd(random.Random(self.seed), ring=60)
        return pair

    def turns(self, pair, node, count):
        """Some of each client, in one thread."""
        for client in pair.crowd.clients:
            with node.connect() as connection:
                for _ in range(count):
                    client.turn(connection)

    def work(self, pair):
        a = pair.harm("a")
        b = pair.harm("b", "a")
        pair.wait(pair.is_same, "the snapshot")
        pair.has_followed = True
        with a.connect() as connection:
            declare(connection)
            self.turns(pair, a, 2)
            fill(connection, SOME)
            do(b, "checkpoint")
            fill(connection, ROTATING, SOME)
        pair.wait(pair.is_same, "what was written")
        do(b, "seal bulk all", "seal lanes all", "checkpoint")
        do(a, "seal lanes all", "checkpoint")
        self.turns(pair, a, 2)
        pair.wait(pair.is_same, "the end")

    def settle(self, pair, node):
        """All that was acknowledged is there, and it takes more."""
        with node.connect() as connection:
            declare(connection)
        pair.crowd.settle(node.connect)
        self.turns(pair, node, 1)
        pair.crowd.settle(node.connect)

    def mend(self, pair):
        a = pair.nodes["a"]
        pair.start("b", "a")
        self.settle(pair, a)
        pair.need_same(a, pair.nodes["b"])


class Primary(Stream):
    """The same, and the primary is the one that ends. Its replica has all that
    was acknowledged, and is promoted; the old one follows it."""

    options = ACKED
    harmed = "a"

    def mend(self, pair):
        if not getattr(pair, "has_followed", False): # nothing is acknowledged
            a = pair.start("a")
            if "b" not in pair.nodes:
                pair.start("b", "a")
            b = pair.nodes["b"]
            b.wait(pair.is_same, "the snapshot")
            self.settle(pair, a)
            pair.need_same(a, b)
            return
        b = pair.nodes["b"]
        b.wait_for(link_status="down")
        b.promote()
        a = pair.start("a", "b")
        self.settle(pair, b)
        pair.need_same(b, a)


SCENES = {"an empty replica takes a snapshot": Empty,
          "a snapshot replaces what a replica has": Stale,
          "a primary sends a snapshot": Source,
          "the log of an old primary is cut": Cut,
          "a replica promises a term": Follow,
          "a replica is promoted": Promotion,
          "a replica takes a stream": Stream,
          "a primary makes a stream": Primary}


def life(scene, pair, end=Node.murder, **life_of_harmed):
    """Until the node ends, by end(node) at the latest when all is done; True
    where it ended before."""
    pair.life = life_of_harmed
    try:
        scene.work(pair)
    except DIED:
        pair.need_killed()
        return True
    end(pair.nodes[scene.harmed])
    return False


def count(scene):
    """How many calls of each kind there are, if nothing goes wrong."""
    with scene.pair() as pair:
        shim = Shim(pair.places[scene.harmed])
        if life(scene, pair, environment=shim.environment()):
            raise Lost("the node died without a fault")
        found = shim.counts()
        scene.mend(pair)
        return {call: found[call] for call in scene.calls}


def point(scene, call, way, number):
    """One end at the given call, and what comes after. False where there was
    no such call."""
    try:
        with scene.pair() as pair:
            shim = Shim(pair.places[scene.harmed])
            shim.arm(call, way, number, FOREVER)
            died = life(scene, pair, environment=shim.environment())
            scene.mend(pair)
            return died
    except Exception as error:
        raise AssertionError("%s, seed %s, %s number %d of %s: %s" % (
            type(scene).__name__, scene.seed, way, number, call,
            error)) from error


def same_count(scene):
    """The library and strace count the same calls: (of one, of the other)."""
    need_strace()
    with scene.pair() as pair:
        shim = Shim(pair.places[scene.harmed])
        log = pair.places[scene.harmed].top + "/strace"
        environment = shim.environment()
        wrapper = ["strace", "-D", "-f", "-y", "-o", log, "-e",
                   "trace=pwrite64,pwritev,pwritev2,writev,write,fdatasync,"
                   "fsync,ftruncate,fallocate,rename,renameat,renameat2,"
                   "unlink,unlinkat",
                   "-E", "LD_PRELOAD=" + environment.pop("LD_PRELOAD")]
        # a stop: no call is under way when it ends
        check(not life(scene, pair, end=Node.stop, environment=environment,
                       wrapper=wrapper), "it died under strace")
        node = pair.nodes[scene.harmed]
        wait_for_strace(log, node.process.pid)
        return shim.counts(), strace_counts(log, node.place.data)


def all_points(scene, way, tell):
    """Every call; how many there were."""
    total = 0
    for call in scene.calls:
        number = 1
        while point(scene, call, way, number):
            tell("%s, %s %s %d" % (type(scene).__name__, way, call, number))
            number += 1
            total += 1
    return total


def some_points(scene, source, how_many):
    """So many of them, from all parts of it: (that were met, calls)."""
    counts = count(scene)
    calls = [call for call in scene.calls if counts[call] > 0]
    met = 0
    for part in range(how_many):
        call = source.choice(calls)
        at = counts[call] * (part + source.random()) / how_many
        met += point(scene, call, source.choice(WAYS), 1 + int(at))
    return met, counts
