# SPDX-License-Identifier: BSD-3-Clause
"""A group that decides by itself who leads (group.py), under load, while
something goes wrong with its servers, with etcd, with what speaks between them,
or with the network; several at once, too. No hand helps but the one that undoes
the harm. Then

* what was acknowledged is there, once, and nobody saw less (claims.py);
* of clients that number their changes and say them again to any node until they
  are answered, each change is done once;
* digests of all nodes are equal, and at the end all that their logs have of the
  same batches.

As root each node, each etcd and each client is on a machine of its own; for
power cuts and disks that stand still nodes and etcd have disks of their own.
"""

import contextlib
import glob
import random
import re
import shutil
import signal
import time

import server
from claims import CELLS, Chooser, LaneClient, Ledger, SCHEMA
from cluster import until
from daemon import need_sound
from group import KEEPERS, LEASE_S, Group
from oracle import Lost
from replicas import NUMB, Numbered, need_same_logs
from tap import check

HOMES = ("p", "q")   # machines of clients
LANE_CLIENTS = 4
NUMBERED = 3
CLIENT_S = 1         # a client waits no longer for an answer
LOAD_S_MAX = 0.5
HARM_S = (0.5, 4)
PART_S = (1, 8)      # a lease runs out in some
STOP_S = (0.5, 6)
FLAP_S = (0.2, 1)
FLAPS = 4
KINDS = ("partition", "kill", "stop", "etcd", "double", "switch", "candidate",
         "clock", "lost", "power", "disk")
DISK_KINDS = ("power", "disk")  # each node and etcd on a disk of its own
FILE_SYSTEMS = ("ext4", "xfs")
SECOND_S = (0, 0.5)   # from one cut to the next
STILL_S = (0.7, 2.5, 10)
STEPS = { # of a candidate; its log says that it has done it
    "TAKE": r"etcd has given a term",
    "PROMISE": r"term \d+ is promised",
    "FETCH": r"has more of the log, which is fetched"}
STEP_S = 0.0005   # between looks at logs
LAG_S = (0.1, 0.4)
FAKETIME = "/usr/lib/*/faketime/libfaketimeMT.so.1"
CLOCKS = { # whether the clocks that never jump are others, too
    "a day ahead": ("+1d", False), "a day behind": ("-1d", False),
    "all of them a day ahead": ("+1d", True),
    "all of them a day behind": ("-1d", True),
    "double speed": ("+0 x2", True), "half speed": ("+0 x0.5", True)}
COUNTERS = ("lanes", "numb")


class Everywhere(Numbered):
    """Of some machine, asking any node."""

    def __init__(self, name, source, world, home):
        super().__init__(name, source, world.chooser(source), world.ids)
        self.enter = lambda: world.enter(home)

    def run(self):
        self.enter()
        super().run()


class World:
    """A group, its clients, and what may go wrong. outage_s: for how long etcd
    may be gone. group: of the caller, with machines for the clients. is_lossy:
    answers of etcd may be lost; without machines. has_disks: as root, all have
    disks of their own; in half of the worlds what is acknowledged is synced."""

    def __init__(self, seed, has_root, outage_s=5, group=None,
                 is_lossy=False, has_disks=False):
        self.source = random.Random("failover %s" % seed)
        self.is_synced = has_disks and self.source.random() < 0.5
        file_system = self.source.choice(
            file_systems()) if has_disks else None
        self.group = group or Group(
            "-v", *(["--sync=always"] if self.is_synced else []),
            has_root=has_root and not is_lossy, machines=HOMES,
            is_lossy=is_lossy, file_system=file_system)
        self.outage_s = outage_s
        self.ledger = Ledger()
        self.clients = []
        self.ids = range(1, CELLS + 1)  # that they change; until prepare
        self.counts, self.log = {}, []
        self.delays_s = {}  # of a fault: until the first change
        self.snapshots = {} # that each process has sent
        self.first_snapshots = 0 # of these, before the first round
        self.doubters = []  # (node, how often it had doubted): its power was
                            # cut, and not all was synced

    def __enter__(self):
        self.group.__enter__()
        try:
            self.prepare()
        except BaseException:
            self.group.__exit__(RuntimeError)
            raise
        return self

    def __exit__(self, kind, *rest):
        for client in self.clients:
            client.is_over.set()
        self.group.__exit__(kind, *rest)

    def prepare(self):
        """Before the first round; the group runs."""
        self.make_clients()
        self.group.steadily(self.declare)
        self.group.steadily(self.count_snapshots)
        self.first_snapshots = sum(self.snapshots.values())

    def declare(self):
        """What another try has declared is refused, as it is there."""
        with self.group.primary().connect() as connection:
            for line in (*SCHEMA, *NUMB):
                answer = connection.ask(line)
                check(answer == "STORED" or "already" in answer, answer)

    def begin_load(self):
        for client in self.clients:
            client.start()

    def make_clients(self):
        for lane in range(LANE_CLIENTS):
            source = random.Random(self.source.getrandbits(32))
            home = HOMES[lane % len(HOMES)]
            self.clients.append(LaneClient(
                "lane %d" % lane, lane, source, self.ledger,
                self.chooser(source).connect,
                lambda home=home: self.enter(home), self.ids))
        for number in range(NUMBERED):
            self.clients.append(Everywhere(
                "app%d" % number, random.Random(self.source.getrandbits(32)),
                self, HOMES[number % len(HOMES)]))

    def chooser(self, source):
        return Chooser(source.getrandbits(32), Addresses(self.group), CLIENT_S)

    def enter(self, home):
        if self.group.network:
            self.group.network.enter(home)

    # What goes wrong; each begins at once and is undone by group.mend().

    def did(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1
        self.log.append(what)

    def last(self, limits):
        time.sleep(self.source.uniform(*limits))

    def harmed(self):
        """What is sent from now on is answered by whoever leads then."""
        self.ledger.watch()

    def others(self, node):
        return [one for one in self.group.nodes if one is not node]

    def replica(self):
        return self.source.choice(self.others(self.group.primary()))

    def separate(self, some, rest):
        """Nothing, or nothing one way, goes between any of two sets of
        machines; or it is reset. Returns what is done, to do it again."""
        how = self.source.choice(("part", "part", "lose", "lose back",
                                  "reset"))

        def again():
            network = self.group.network
            for one in some:
                for other in rest:
                    if how == "lose back":
                        network.lose(other, one)
                    else:
                        getattr(network, how)(one, other)
        again()
        return how, again

    def partition(self):
        head = self.group.primary().name
        names = self.group.names
        others = [name for name in names if name != head]
        replica = self.source.choice(others)
        keeper = self.source.choice(KEEPERS)
        rest = [name for name in KEEPERS if name != keeper]
        what, some, against = self.source.choice((
            ("primary | all", [head], [*others, *KEEPERS, *HOMES]),
            ("primary | replicas", [head], others),
            ("primary | etcd", [head], KEEPERS),
            ("primary, client | rest", [head, HOMES[0]],
             [*others, *KEEPERS, HOMES[1]]),
            ("replica | all", [replica],
             [name for name in (*names, *KEEPERS, *HOMES) if name != replica]),
            ("replicas | etcd", others, KEEPERS),
            ("all | etcd", names, KEEPERS),
            ("primary | replica", [head], [replica]),
            ("etcd 1 : 2", [keeper], rest),
            ("etcd 1 : 1 : 1", [keeper], rest)))
        how, again = self.separate(some, against)
        if what == "etcd 1 : 1 : 1":
            self.group.network.part(*rest)
        self.harmed()
        self.did("partition %s" % what)
        self.log[-1] += " (%s)" % how
        if self.source.random() < 0.25:
            self.did("partition that flaps")
            for _ in range(self.source.randrange(1, FLAPS)):
                self.last(FLAP_S)
                self.group.network.heal()
                self.last(FLAP_S)
                again()
        self.last(PART_S)

    def kill(self):
        head = self.group.primary()
        replica = self.source.choice(self.others(head))
        what = self.source.choice((
            "primary", "primary", "replica", "tallyd-etcd", "etcd leader",
            "etcd leader, primary", "primary, replica", "all"))
        if "etcd leader" in what:
            leader = until(self.group.etcd_leader, "etcd leads")
            leader.kill()
        if what == "tallyd-etcd":
            self.source.choice(self.group.nodes).tell_child(signal.SIGKILL)
        for node in self.group.nodes:
            if what == "all" or ("primary" in what and node is head) or \
                    ("replica" in what and node is replica):
                node.murder()
        self.harmed()
        self.did("kill -9 of " + what)
        begun = len(self.ledger.delays_s)
        self.last(HARM_S)
        if what in ("primary", "etcd leader, primary"):
            # what is left takes changes by itself
            until(lambda: len(self.ledger.delays_s) > begun, self.stuck)

    def stuck(self):
        return "no change is taken after %s\n%s" % (
            self.log[-1], self.group.account())

    def stop(self):
        head = self.group.primary()
        what = self.source.choice(("primary", "primary", "tallyd-etcd",
                                   "replica", "etcd leader"))
        if what == "primary":
            head.freeze()
        elif what == "replica":
            self.replica().freeze()
        elif what == "tallyd-etcd":
            head.tell_child(signal.SIGSTOP)
        else:
            until(self.group.etcd_leader, "etcd leads").kill(signal.SIGSTOP)
        self.harmed()
        self.did("SIGSTOP of " + what)
        self.last(STOP_S)

    def etcd(self):
        """It is gone, or two of three are; the leader goes on."""
        what = self.source.choice(("gone", "gone", "without a quorum",
                                   "compacted"))
        members = list(self.group.etcd.members)
        self.did("etcd " + what)
        if what == "compacted":
            self.compact()
            return
        self.source.shuffle(members)
        before = self.ledger.refused
        for member in members[:3 if what == "gone" else 2]:
            member.kill()
        self.harmed()
        self.last((min(LEASE_S + 1, self.outage_s), self.outage_s))
        self.log[-1] += " (%d refused)" % (self.ledger.refused - before)

    def compact(self):
        with contextlib.suppress(OSError): # at an election of etcd's
            revision = self.group.etcd.put("/torture", "1")
            self.group.etcd.call("kv/compaction", {
                "revision": revision, "physical": True})

    def double(self):
        head = self.group.primary()
        one, two = self.source.sample(self.others(head), 2)
        what = self.source.choice((
            "a replica, then the primary", "the primary, then who takes over",
            "the primary is cut off, a replica killed"))
        if what == "a replica, then the primary":
            one.murder()
            self.last((0, 3))  # around when it is no voter any more
            head.murder()
        elif what == "the primary, then who takes over":
            head.murder()
            self.heir(head).murder()
        else:
            if self.group.network:
                self.separate([head.name], [two.name])
            one.murder()
        self.harmed()
        self.did("double: " + what)
        self.last(HARM_S)

    def heir(self, old):
        """Who has the key after old, and maybe leads already."""
        heir = until(lambda: self.another(old), self.stuck)
        self.last((0, 0.05))
        return heir

    def another(self, old):
        found = self.group.leader()
        return found if found is not old else None

    def switch(self):
        """By hand, while all are well."""
        head = self.group.primary()
        other = self.source.choice(self.others(head))
        self.did("failover NODE")
        begin = time.monotonic()
        try:
            answer = head.ask("failover " + other.name)[0]
        except (server.Closed, OSError) as error:
            answer = repr(error)
        self.ledger.watch(begin)
        self.log[-1] += ": %s: %s" % (other.name, answer)
        self.last((0.5, 1))

    def candidate(self):
        """The primary is gone, and who is to follow it dies as soon as its log
        says that it has taken a step. One of them is behind, maybe."""
        head = self.group.primary()
        others = self.others(head)
        step = self.source.choice(list(STEPS))
        behind = None
        if step == "FETCH" or self.source.random() < 0.3:
            behind = self.source.choice(others)
            behind.freeze()
            self.last(LAG_S)
        begun = [len(node.stderr()) for node in others]
        head.murder()
        if behind:
            behind.signal(signal.SIGCONT)
        found = self.await_step(others, begun, STEPS[step])
        self.harmed()
        if found:
            found.murder()
        self.did("a candidate dies after %s" % step if found else
                 "the primary; none took the step " + step)
        self.last(HARM_S)

    def await_step(self, others, begun, pattern):
        """The node whose log says that; None: one leads without it."""
        deadline = time.monotonic() + server.LIMIT_S
        while time.monotonic() < deadline:
            texts = [node.stderr()[at:] for node, at in zip(others, begun)]
            for node, text in zip(others, texts):
                if re.search(pattern, text):
                    return node
            if any("is the primary, term" in text for text in texts):
                return None
            time.sleep(STEP_S)
        raise AssertionError(self.stuck())

    def clock(self):
        """One node's clock is another one's; the lease goes by it. It is to
        lead, and then who leads is gone."""
        node = self.source.choice(self.group.nodes)
        what, (fake, is_all) = self.source.choice(list(CLOCKS.items()))
        node.murder()
        before = dict(node.environment)
        node.environment.update({
            "LD_PRELOAD": faketime(), "FAKETIME": fake,
            "FAKETIME_DISABLE_SHM": "1"})
        if not is_all:
            node.environment["DONT_FAKE_MONOTONIC"] = "1"
        try:
            node.start()
            self.group.settle()
            self.did("clock of a node: " + what)
            if self.group.primary() is not node:
                self.log[-1] += ", %s" % node.name
                with contextlib.suppress(server.Closed, OSError):
                    self.group.primary().ask("failover " + node.name)
                self.group.settle()
            head = self.group.primary()
            head.murder()
            self.harmed()
            self.log[-1] += ", then kill -9 of " + head.name
            self.last(HARM_S)
        finally:
            node.murder()
            node.environment.clear()
            node.environment.update(before)

    def lost(self):
        """Answers of etcd to what compares and changes are lost while who leads
        is gone, or voters change."""
        head = self.group.primary()
        for proxy in self.group.proxies:
            proxy.loses = lambda path: path == "/v3/kv/txn"
        victim = self.source.choice([head, head, *self.others(head)])
        victim.murder()
        self.did("answers of etcd are lost, kill -9 of " + (
            "the primary" if victim is head else "a replica"))
        self.last(PART_S)
        for proxy in self.group.proxies:
            proxy.loses = lambda path: False
        self.harmed()
        self.log[-1] += " (%d lost)" % sum(
            proxy.lost for proxy in self.group.proxies)
        self.last(HARM_S)

    def power(self):
        """Of one machine; where what is acknowledged is synced, of another one
        soon, too, or of all."""
        head = self.group.primary()
        nodes = self.source.sample(self.group.nodes, len(self.group.nodes))
        what = self.source.choice(("one", "one, then another", "all")
                                  if self.is_synced else ("one",))
        self.group.cut_power(*(nodes if what == "all" else nodes[:1]))
        if what == "one, then another":
            self.last(SECOND_S)
            self.group.cut_power(nodes[1])
        self.doubters = [(node, node.doubts()) for node in nodes[:1]
                         if not self.is_synced]
        self.harmed()
        self.did("power cut of %s%s" % (
            what, ", synced" if self.is_synced else ""))
        if what != "all" and head in nodes[:2 if "," in what else 1]:
            self.log[-1] += ", the primary"
        self.last(HARM_S)

    def disk(self):
        """Disks that stand still for a while."""
        head = self.group.primary()
        places = {
            "the primary": [head.place],
            "the replicas": [node.place for node in self.others(head)],
            "etcd": self.group.keeper_disks,
            "etcd's leader": [self.keeper_disk()]}
        what = self.source.choice(list(places))
        still_s = self.source.choice(STILL_S)
        for place in places[what]:
            place.freeze()
        self.harmed()
        self.did("disks of %s stand still" % what)
        self.log[-1] += " for %s s" % still_s
        time.sleep(still_s)

    def keeper_disk(self):
        leader = until(self.group.etcd_leader, "etcd leads")
        return self.group.keeper_disks[leader.number]

    def may_be(self, kind):
        if kind in DISK_KINDS:
            return self.group.file_system
        return {"partition": self.group.network, "clock": faketime(),
                "lost": self.group.proxies}.get(kind, True)

    def kinds(self):
        return [kind for kind in KINDS if self.may_be(kind)]

    def round(self, kind=None):
        self.harm(kind)
        self.settle()

    def harm(self, kind=None):
        """Begins the load, does something, and mends it."""
        kind = kind or self.source.choice(self.kinds())
        delays = len(self.ledger.delays_s)
        self.begin_load()
        time.sleep(self.source.uniform(0.05, LOAD_S_MAX))
        getattr(self, kind)()
        self.ledger.mark = None
        if kind in ("kill", "switch"):
            what = self.log[-1].partition(": ")[0]
            self.delays_s.setdefault(what, []).extend(
                self.ledger.delays_s[delays:])
        self.group.mend()
        self.group.settle()
        self.need_doubts()
        time.sleep(self.source.uniform(0, LOAD_S_MAX))

    def need_doubts(self):
        for node, before in self.doubters:
            check(node.doubts() > before,
                  "%s does not know that its power was cut" % node.name)
        self.doubters = []
        for node in self.group.nodes if self.is_synced else ():
            check(node.doubts() == 0,
                  "%s doubts what it has synced" % node.name)

    def settle(self):
        """All clients end; what is there is what they were told."""
        for client in self.clients:
            client.is_over.set()
        for client in self.clients:
            if client.thread:
                client.end()
        self.group.same(*COUNTERS)
        found = self.group.steadily(self.read)
        self.group.steadily(self.count_snapshots)
        self.ledger.settle(found)
        self.need_numbered(found)

    def count_snapshots(self):
        for node in self.group.nodes:
            self.snapshots[node.name, node.process.pid] = int(
                node.figures()["sync_full"])

    def read(self):
        with self.group.primary().connect() as connection:
            return {key: int(value) for cells in parts(self.wanted())
                    for key, _, value in connection.get(*cells)}

    def numbered(self):
        wanted = {}
        for client in self.clients:
            for cell, count in getattr(client, "count", {}).items():
                wanted[cell] = wanted.get(cell, 0) + count
        return wanted

    def wanted(self):
        return [*sorted(self.ledger.most), *sorted(self.numbered())]

    def need_numbered(self, found):
        wrong = {cell: (found.get(cell, 0), count)
                 for cell, count in self.numbered().items()
                 if found.get(cell, 0) != count}
        if wrong:
            raise Lost("numbered changes: found, wanted: %s" % wrong)

    def finish(self):
        """The logs have the same in the same batches; all are sound."""
        self.group.same(*COUNTERS)
        for node in self.group.nodes:
            node.murder()
        need_same_logs(self.group.nodes)
        for node in self.group.nodes:
            need_sound(node.place)


    def report(self):
        """What was done, for a person; nothing was lost or doubled, or there
        would be none."""
        ledger = self.ledger
        lines = ["%d of %s" % (count, what)
                 for what, count in sorted(self.counts.items())]
        lines.append(
            "%d changes without a number acknowledged, %d of them in one of %d "
            "terms, %d refused, of %d the outcome unknown; %d with a number" % (
                ledger.acked, ledger.placed, len(ledger.terms),
                ledger.refused, ledger.unknown,
                sum(self.numbered().values())))
        lines.append("0 lost, 0 doubled, all digests and logs equal")
        lines.append("%d snapshots seen after the first start" % (
            sum(self.snapshots.values()) - self.first_snapshots))
        for what, delays in sorted(self.delays_s.items()):
            if delays:
                lines.append(
                    "first change after %s: p50 %.2f s, p99 %.2f s, %d times"
                    % (what, share(delays, 0.5), share(delays, 0.99),
                        len(delays)))
        lines.extend("node %s was started anew %d times, for it had "
                     "ended, or lost who speaks with etcd" % (
            node.name, node.again) for node in self.group.nodes if node.again)
        return "\n".join(lines)


def file_systems():
    """Those that can be made here; where none can, a test says which."""
    return [kind for kind in FILE_SYSTEMS
            if shutil.which("mkfs." + kind)] or FILE_SYSTEMS


def faketime():
    """The library that fakes clocks; None: it is not installed."""
    return next(iter(glob.glob(FAKETIME)), None)


def share(values, part):
    """The least of them that so many are not above."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


class Addresses:
    """Of the nodes' clients, as they are now."""

    def __init__(self, group):
        self.group = group

    def __len__(self):
        return len(self.group.nodes)

    def __getitem__(self, number):
        node = self.group.nodes[number]
        return node.address, node.port


def parts(cells, size=100):
    return [cells[first:first + size] for first in range(0, len(cells), size)]


def rounds(count, seed, has_root, kind=None, outage_s=5,
           tell=lambda text: None):
    """count of them, of one kind or any; the World as it was at the end."""
    world = World(seed, has_root, outage_s, is_lossy=kind == "lost",
                  has_disks=kind in DISK_KINDS)
    number = 0
    try:
        with world:
            for number in range(count):
                tell("round %d of %d: %s" % (number + 1, count, world.log[-1:]))
                world.round(kind)
            world.finish()
    except Exception as error:
        raise Lost("seed %s, round %d, after %s: %s" % (
            seed, number + 1, world.log[-6:], error)) from error
    return world
