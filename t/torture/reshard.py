# SPDX-License-Identifier: BSD-3-Clause
"""Half of the ids of a group move to another one while they change (tallyctl
reshard, doc/replication.md): each group is a primary and a replica, and in each
round what moves them, and one node at a time, are killed: the one that records
and changes are read from, either primary, and then another one is promoted.

Clients find the group of an id as behind a router with an old table: they ask
the old one until they are told that it has moved, and by whom it is had now. At
the end

* of clients that number their changes and say them again until they are
  answered, each change is done once, of numbers, whole records and members;
* what others have counted is between what was acknowledged and what was asked
  for, and nobody has ever read less than was acknowledged before;
* each id is answered by one group, and the other one refuses it; what both dump
  is all there is, with records that have not changed since long before;
* once the old group has forgotten the ids, its dump has none of them;
* nodes of a group have the same records, and their files are sound.
"""

import os
import random
import signal
import subprocess
import threading
import time
import zlib

import server
from cluster import Cluster, until
from daemon import SMALL, need_sound
from oracle import Bounds, Lost
from ports import free_port
from tap import equal

NUMBERED = 3
NUMBERED_DEPTH = 8
DEAF = 0.02            # of the times when it asks; it does not hear answers
DEAF_S_MAX = 0.5       # before it asks again
LANES = 4
LANE_BITS = 16
LANE_MAX = 60000       # of one lane of one cell
IDS = 120              # of each kind
MEMBERS = 12           # of an id and a client, that come and go
STILL = 4000           # records that nobody changes
STILL_AT_ONCE = 500
RETRY_S = 0.005
CLIENT_S = 20          # a client waits no longer for an answer
STEP_S = (0.05, 0.6)   # between what goes wrong
AFTER_S = 0.3          # that clients go on when all is over
STEPS = (3, 6)         # so many things go wrong before the cut-over is asked
COMMIT_S = 1000        # longer than a round: what waits is answered in the end
OPTIONS = ("--semi-sync=1", "--min-replicas-to-write=0", "--repl-timeout=2",
           *SMALL, "--commit-timeout=%d" % COMMIT_S)
NAMES = {"old": "127.0.0.1:1", "new": "127.0.0.1:2"} # that clients are told
RULES = ("modulo:1/2", "crc32a:1/2", "fnv1a_64:0/2")
SCHEMA = (
    "add counter lanes",
    "add column lanes lane_id primarykey",
    "add column lanes lane_a hint=8 max=64 suffix=la",
    "add column lanes lane_b hint=8 max=64 suffix=lb",
    "add column lanes lane_c hint=4 max=64 default=7 suffix=lc",
    "add counter numb absent=miss",
    "add column numb numb_id primarykey",
    "add column numb numb_n max=64 suffix=nn",
    "add column numb numb_m hint=4 max=64 suffix=nm",
    "add column numb numb_k max=64 default=3 suffix=nk",
    "add counter fans",
    "add column fans fan_id primarykey",
    "add column fans likes max=32 suffix=fl",
    "add column fans views max=32 suffix=fv",
    "add column fans moods max=32 suffix=fm",
    "add column fans liked members=exact counts=likes suffix=fd",
    "add counter still",
    "add column still still_id primarykey",
    *("add column still still_%s max=64 suffix=s%s" % (c, c) for c in "abc"),
)
COUNTERS = ("lanes", "numb", "fans", "still")
MOVED = "SERVER_ERROR moved "


def hash_modulo(text):
    return int(text)


def hash_crc32a(text):
    return zlib.crc32(text)


def hash_fnv1a_64(text):
    """As libmemcached and nutcracker have it: of 32 bits."""
    value = 0x84222325
    for byte in text:
        value = (value ^ byte) * 0x1b3 & 0xffffffff
    return value


HASHES = {"modulo": hash_modulo, "crc32a": hash_crc32a,
          "fnv1a_64": hash_fnv1a_64}


class Rule:
    """Which ids move; by hand, not by what is tested."""

    def __init__(self, text):
        self.text = text
        name, _, rest = text.partition(":")
        index, _, count = rest.partition("/")
        self.hash, self.index, self.count = (
            HASHES[name], int(index), int(count))

    def has(self, id):
        return self.hash(b"%d" % id) % self.count == self.index


class Router:
    """Of one client: where it asks for ids that move, and its connections."""

    def __init__(self, world):
        self.world = world
        self.side = world.old # of ids that move
        self.open = {}
        self.refused_at = None # since when ids that move are refused
        self.refused_s = []    # for how long they were

    def side_of(self, id):
        return self.side if self.world.rule.has(id) else self.world.old

    def connection(self, side):
        found = self.open.get(side)
        if found is None:
            found = self.open[side] = server.Connection(
                (side.head.address, side.head.port), CLIENT_S)
        return found

    def drop(self, side):
        found = self.open.pop(side, None)
        if found is not None:
            found.close()

    def close(self):
        for side in list(self.open):
            self.drop(side)

    def told(self, answer, id):
        """An answer for an id that refuses it, since it has moved."""
        if not self.world.rule.has(id):
            raise Lost("%d is answered %r, and stays" % (id, answer))
        name = answer[len(MOVED):]
        if name not in self.world.sides:
            raise Lost("moved to %r" % name)
        if self.refused_at is None:
            self.refused_at = time.monotonic()
        self.side = self.world.sides[name]

    def done(self, side, id):
        """A change of it was acknowledged by that side."""
        if self.refused_at is not None and side is self.world.new and \
                self.world.rule.has(id):
            self.refused_s.append(time.monotonic() - self.refused_at)
            self.refused_at = None


class Worker:
    """A client's thread, until it is over."""

    def __init__(self, name, source, world):
        self.name, self.source, self.world = name, source, world
        self.router = Router(world)
        self.is_over = threading.Event()
        self.fault = self.thread = None
        self.acked = 0

    def start(self):
        self.is_over.clear()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            while not self.is_done():
                if not self.turn():
                    time.sleep(RETRY_S)
        except Exception as error: # whatever else is a failed test
            self.fault = "%s: %r" % (self.name, error)
        finally:
            self.router.close()

    def is_done(self):
        return self.is_over.is_set()

    def end(self):
        self.is_over.set()
        self.thread.join(2 * server.LIMIT_S)
        if self.thread.is_alive():
            self.fault = "%s: it is never answered" % self.name
        if self.fault:
            raise Lost(self.fault)

    def asks(self, pending):
        """{side: what is to be asked of it}."""
        sides = {}
        for one in pending:
            sides.setdefault(self.router.side_of(one.id), []).append(one)
        return sides

    def answers(self, side, asked):
        """Yields (what was asked, its answer); less where the server goes."""
        try:
            connection = self.router.connection(side)
            connection.send("".join(one.line + "\r\n" for one in asked))
            for one in asked:
                yield one, connection.line().decode("latin-1")
        except (server.Closed, OSError):
            self.router.drop(side)


class Change:
    """A numbered change: of the id, the line without the number, and the words
    of which one is the answer; None: a number."""

    def __init__(self, id, line, answer, effect):
        self.id, self.line, self.answer, self.effect = id, line, answer, effect


class Numbered(Worker):
    """Numbers its changes, and says them again until each is answered."""

    def __init__(self, number, source, world):
        super().__init__("app%d" % number, source, world)
        self.base = 1000 * (number + 1) # of its members
        self.number = 0
        self.numb = {}  # id: [of each column]
        self.fans = {}  # id: members
        self.views = {} # id: changes
        self.pending = []

    def is_done(self):
        return self.is_over.is_set() and not self.pending

    def plan(self):
        taken = set()
        while len(self.pending) < NUMBERED_DEPTH:
            kind = self.source.randrange(4)
            id = 1 + self.source.randrange(IDS)
            if kind == 0:
                self.add(id, "incr numb %d.nn 2" % id, None, self.count,
                         (2, 0, 0))
            elif kind == 1:
                self.add(id, "incr numb %d 1 2 5" % id, None, self.count,
                         (1, 2, 5))
            elif kind == 2:
                self.add(id, "incr fans %d.fv" % id, None, self.view)
            else:
                member = self.base + self.source.randrange(MEMBERS)
                if (id, member) not in taken: # one change of it at a time
                    taken.add((id, member))
                    self.turn_member(id, member)

    def add(self, id, line, answer, effect, *more):
        self.number += 1
        line += " tx=%s:%d" % (self.name, self.number)
        self.pending.append(
            Change(id, line, answer, lambda: effect(id, *more)))

    def turn_member(self, id, member):
        if member in self.fans.get(id, ()):
            self.add(id, "delete fans %d.fd:%d" % (id, member), "DELETED",
                     lambda id: self.fans[id].discard(member))
        else:
            self.add(id, "set fans %d.fd:%d 1" % (id, member), "STORED",
                     lambda id: self.fans.setdefault(id, set()).add(member))

    def count(self, id, deltas):
        values = self.numb.setdefault(id, [0, 0, 3])
        for at, delta in enumerate(deltas):
            values[at] += delta

    def view(self, id):
        self.views[id] = self.views.get(id, 0) + 1

    def lose_answers(self):
        """What is pending is done, or not, and who asks does not hear of it
        for a while: ids may have moved when it is said again."""
        for side, asked in self.asks(self.pending).items():
            try:
                connection = self.router.connection(side)
                connection.send("".join(one.line + "\r\n" for one in asked))
                connection.fill() # of the first answer, at least
            except (server.Closed, OSError):
                pass
            self.router.drop(side)
        time.sleep(self.source.uniform(0, DEAF_S_MAX))

    def turn(self):
        """False where something is to be said again."""
        if not self.pending:
            self.plan()
            if self.source.random() < DEAF:
                self.lose_answers()
        left = set(self.pending)
        for side, asked in self.asks(self.pending).items():
            for one, answer in self.answers(side, asked):
                if answer.startswith("SERVER_ERROR"):
                    if answer.startswith(MOVED):
                        self.router.told(answer, one.id)
                    continue
                if answer != one.answer and not (
                        one.answer is None and
                        all(word.isdigit() for word in answer.split())):
                    raise Lost("%s of %s: %r" % (
                        one.line, side.name, answer))
                one.effect()
                self.router.done(side, one.id)
                self.acked += 1
                left.discard(one)
        self.pending = [one for one in self.pending if one in left]
        return not self.pending


class Step:
    """An increment, or a get, of a cell."""

    def __init__(self, id, cell, line):
        self.id, self.cell, self.line = id, cell, line


class Lane(Worker):
    """Counts in one lane of cells that others count in too, each change said
    once, and looks at them."""

    def __init__(self, lane, source, world):
        super().__init__("lane %d" % lane, source, world)
        self.shift = LANE_BITS * lane
        self.bounds = Bounds(self.name)
        self.depth = (1, 8)[lane % 2]

    def lane_of(self, value):
        return int(value) >> self.shift & (1 << LANE_BITS) - 1

    def turn(self):
        steps = []
        for _ in range(self.depth):
            id = 1 + self.source.randrange(IDS)
            cell = "%d.la" % id
            if self.bounds.most.get(cell, 0) < LANE_MAX:
                self.bounds.begin(cell)
                steps.append(Step(id, cell, "incr %s %d" % (
                    cell, 1 << self.shift)))
        is_good = True
        for side, asked in self.asks(steps).items():
            for one, answer in self.answers(side, asked):
                is_good = self.take(side, one, answer) and is_good
        return self.look() and is_good

    def take(self, side, one, answer):
        if answer.isdigit():
            self.bounds.ack(one.cell, self.lane_of(answer))
            self.router.done(side, one.id)
            self.acked += 1
            return True
        if not answer.startswith("SERVER_ERROR"):
            raise Lost("%s: %r" % (one.line, answer))
        if answer.startswith(MOVED):
            self.router.told(answer, one.id)
        if not answer.startswith("SERVER_ERROR outcome unknown"):
            self.bounds.refuse(one.cell)
        return False

    def look(self):
        """What is read is never less than was acknowledged."""
        id = 1 + self.source.randrange(IDS)
        cell = "%d.la" % id
        side = self.router.side_of(id)
        try:
            connection = self.router.connection(side)
            connection.send("get %s\r\n" % cell)
            line = connection.line().decode("latin-1")
            if line.startswith("SERVER_ERROR"):
                if line.startswith(MOVED):
                    self.router.told(line, id)
                return False
            value = 0
            if line != "END":
                value = self.lane_of(connection.line())
                equal(connection.line(), b"END")
        except (server.Closed, OSError):
            self.router.drop(side)
            return False
        if value < self.bounds.least.get(cell, 0):
            raise Lost("%s of %s reads %d, and %d was acknowledged" % (
                cell, side.name, value, self.bounds.least[cell]))
        return True


class Side:
    """A group: two nodes, of which head is the primary."""

    def __init__(self, name, letters, *options):
        self.name = name
        self.cluster = Cluster(0)
        for letter in letters:
            self.cluster.add(letter, *OPTIONS, *options,
                             port=str(free_port()))
        self.head = self.cluster.nodes[0]

    @property
    def nodes(self):
        return self.cluster.nodes

    def other(self):
        return next(node for node in self.nodes if node is not self.head)

    def promote(self):
        """The primary ends; the other node takes its place, and it follows
        that one when it is back."""
        gone, head = self.head, self.other()
        self.need_copy()
        gone.murder()
        head.wait_for(link_status="down")
        head.promote()
        gone.follow(head)
        self.head = head
        gone.start()
        self.need_copy()

    def need_copy(self):
        """The other node has what the primary has now, and follows it: what
        it is sent may make it load all anew meanwhile."""
        self.other().wait_for(role="replica", link_status="up")
        self.cluster.caught_up(self.other())
        self.other().wait_for(role="replica", link_status="up")

    def addresses(self, last):
        """Of clients, and of replication, of both nodes; the primary is the
        last one, or the first."""
        nodes = [self.other(), self.head] if last else [
            self.head, self.other()]
        return (",".join(node.client_address for node in nodes),
                ",".join(node.repl_address for node in nodes))


def tallyctl():
    return os.path.join(os.path.dirname(server.binary()), "cli", "tallyctl")


class Mover:
    """tallyctl reshard, which may be killed and run again. What its last run
    said is in its file."""

    def __init__(self, world):
        self.world = world
        self.top = server.make_directory()
        self.said = os.path.join(self.top, "said")
        self.process = None
        self.runs = 0

    def command(self, cuts_over):
        world = self.world
        clients, repl = world.old.addresses(world.reads_replica)
        return [tallyctl(), "reshard", "--from=" + clients,
                "--from-repl=" + repl,
                "--to=" + world.new.addresses(False)[0],
                "--ids=" + world.rule.text,
                "--state=" + os.path.join(self.top, "state"),
                "--from-name=" + NAMES["old"], "--to-name=" + NAMES["new"],
                *(["--cut-over"] if cuts_over else [])]

    def start(self, cuts_over):
        """Also where it has ended by itself, as it may when a node goes."""
        self.kill()
        with open(self.said, "wb") as out:
            self.process = subprocess.Popen(
                self.command(cuts_over), stdin=subprocess.DEVNULL,
                stdout=out, stderr=out)
        self.runs += 1

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def words(self):
        with open(self.said, encoding="latin-1") as text:
            return text.read()

    def status(self):
        """None while it runs."""
        status = self.process.poll()
        if status is not None and (status < 0 or status == 2):
            raise Lost("tallyctl ended with %d: %s" % (status, self.words()))
        return status

    def finish(self):
        """Run again until the new group has taken over; a node may have gone
        under it. One that runs and waits is left alone."""
        begin = time.monotonic()
        while True:
            status = self.status()
            if status == 0:
                return
            if time.monotonic() > begin + server.LIMIT_S:
                raise Lost("no cut-over: %s" % self.words()[-2000:])
            if status is None:
                time.sleep(RETRY_S)
                continue
            self.start(True)


class World:
    """Both groups and all clients."""

    counters = COUNTERS

    def __init__(self, seed, rule=None, mover=None):
        self.source = random.Random("reshard %s" % seed)
        self.rule = Rule(rule or self.source.choice(RULES))
        self.old = Side("old", "ab")
        self.new = Side("new", "cd", "--owns=" + self.rule.text)
        self.sides = {NAMES["old"]: self.old, NAMES["new"]: self.new}
        self.reads_replica = self.source.random() < 0.6
        self.mover = mover(self) if mover else Mover(self)
        self.clients = [
            kind(number, random.Random(self.source.getrandbits(32)), self)
            for kind, count in ((Numbered, NUMBERED), (Lane, LANES))
            for number in range(count)]
        self.log = []

    def __enter__(self):
        self.old.cluster.__enter__()
        try:
            self.new.cluster.__enter__()
        except BaseException:
            self.old.cluster.__exit__(RuntimeError)
            raise
        return self

    def __exit__(self, kind, *rest):
        for client in self.clients:
            client.is_over.set()
        self.mover.kill()
        try:
            self.new.cluster.__exit__(kind, *rest)
        finally:
            self.old.cluster.__exit__(kind, *rest)

    def fill(self):
        """The schema, and records that stay as they are."""
        with self.old.head.connect() as connection:
            connection.tell(*SCHEMA)
            for first in range(0, STILL, STILL_AT_ONCE):
                ids = range(first, first + STILL_AT_ONCE)
                connection.send("".join(
                    still_line(id) + "\r\n" for id in ids))
                for _ in ids:
                    equal(connection.line(), b"STORED")

    # What goes wrong, each with one node, or with what moves.

    def mover_again(self):
        self.mover.start(False)

    def node_again(self):
        self.source.choice((*self.old.nodes, *self.new.nodes)).again()

    def source_again(self):
        """The node that is read from."""
        (self.old.other() if self.reads_replica else self.old.head).again()

    def old_promotion(self):
        self.old.promote()

    def new_promotion(self):
        self.new.promote()

    def harm(self):
        what = self.source.choice((
            self.mover_again, self.node_again, self.source_again,
            self.old_promotion, self.new_promotion))
        self.log.append(what.__name__)
        what()
        for side in (self.old, self.new):
            side.need_copy()

    def pause(self):
        time.sleep(self.source.uniform(*STEP_S))

    def live(self):
        """From the first change to the last one."""
        for side in (self.old, self.new):
            side.need_copy()
        for client in self.clients:
            client.start()
        self.mover.start(False)
        for _ in range(self.source.randint(*STEPS)):
            self.pause()
            self.harm()
            if self.mover.status() is not None:
                self.log.append("it had ended")
                self.mover.start(False)
        self.log.append("cut-over")
        self.mover.start(True)
        for _ in range(self.source.randrange(3)):
            time.sleep(self.source.uniform(0, STEP_S[1]))
            self.harm_cut_over()
        self.mover.finish()
        time.sleep(AFTER_S)
        for client in self.clients:
            client.end()

    def harm_cut_over(self):
        what = self.source.choice(("mover", "mover", "node", "old", "new"))
        self.log.append(what + ", at the cut-over")
        if what == "mover":
            if self.mover.status() != 0:
                self.mover.start(True)
        elif what == "node":
            self.node_again()
        else:
            self.sides[NAMES[what]].promote()

    # What is there at the end.

    def expected(self):
        """{line of a dump: its id}, but for lanes."""
        lines = {}
        numb, fans, views = {}, {}, {}
        for client in self.clients:
            if not isinstance(client, Numbered):
                continue
            for id, values in client.numb.items():
                have = numb.setdefault(id, [0, 0, 3])
                for at, default in enumerate((0, 0, 3)):
                    have[at] += values[at] - default
            for id, members in client.fans.items():
                fans.setdefault(id, set()).update(members)
            for id, count in client.views.items():
                views[id] = views.get(id, 0) + count
        for id, values in numb.items():
            lines["set numb %d %d %d %d" % (id, *values)] = id
        for id in {*fans, *views}:
            count = len(fans.get(id, ()))
            if views.get(id):
                lines["set fans %d %d %d 0" % (id, count, views[id])] = id
            for member in fans.get(id, ()):
                lines["set fans %d.fd:%d 1" % (id, member)] = id
        for id in range(STILL):
            lines[still_line(id)] = id
        return lines

    def dump(self, side):
        """{line: id} of all counters but lanes; a line of a record that has
        only members is left out, as its count is theirs."""
        lines = {}
        with side.head.connect() as connection:
            for counter in COUNTERS[1:]:
                connection.send("dump counter %s\r\n" % counter)
                for line in connection.until(b"END"):
                    line = line.decode("latin-1")
                    id = int(line.split()[2].partition(".")[0])
                    lines[line] = id
        return {line: id for line, id in lines.items()
                if not is_mere_count(line)}

    def settle(self):
        """Both have all there is, once."""
        wanted = self.expected()
        old, new = self.dump(self.old), self.dump(self.new)
        has = self.rule.has
        stray = [line for line, id in new.items() if not has(id)]
        if stray:
            raise Lost("the new group has what stays: %s" % stray[:5])
        found = {line: id for line, id in old.items() if not has(id)}
        found.update(new)
        if found != wanted:
            raise Lost("lost %s, made up %s" % (
                [line for line in wanted if line not in found][:8],
                [line for line in found if line not in wanted][:8]))
        for client in self.clients:
            if isinstance(client, Lane):
                client.bounds.settle(self.lanes(client))

    def lanes(self, client):
        """What its lane of each cell has."""
        values = {}
        for side, ids in ((self.old, [id for id in range(1, IDS + 1)
                                      if not self.rule.has(id)]),
                          (self.new, [id for id in range(1, IDS + 1)
                                      if self.rule.has(id)])):
            with side.head.connect() as connection:
                for key, _, value in connection.get(
                        *("%d.la" % id for id in ids)):
                    values[key] = client.lane_of(value)
        return {cell: values.get(cell, 0) for cell in client.bounds.most}

    def need_one_owner(self):
        """Every id is answered by one group and refused by the other one, by
        all its nodes: reads and changes."""
        for side, stays in ((self.old, True), (self.new, False)):
            for node in side.nodes:
                with node.connect() as connection:
                    for id in range(1, IDS + 1):
                        need_answer(connection, node, id,
                                    self.rule.has(id) == stays)

    def need_forgotten(self):
        """The old group forgets what has moved."""
        equal(self.old.head.ask("forget ids " + self.rule.text), ["OK"])
        until(lambda: not any(self.rule.has(id)
                              for id in self.dump(self.old).values()),
              "the old group has forgotten all that has moved")
        kept = self.dump(self.old)
        equal(kept, {line: id for line, id in self.expected().items()
                     if not self.rule.has(id)}, "what the old group keeps")

    def finish(self):
        for side in (self.old, self.new):
            side.cluster.need_same(*COUNTERS)
            for node in side.nodes:
                node.murder()
            for node in side.nodes:
                need_sound(node.place)

    def refused_s(self):
        """For how long a client was refused what moves, at most."""
        return max((most for client in self.clients
                    for most in client.router.refused_s), default=0)


def still_line(id):
    return "set still %d %d %d %d" % (id, id + 1, id * id, id << 20)


def is_mere_count(line):
    """A record of fans with nothing but a count of its members."""
    words = line.split()
    return words[1] == "fans" and len(words) == 6 and words[4:] == ["0", "0"]


def need_answer(connection, node, id, refuses):
    """refuses: it is to refuse the id."""
    line = connection.ask("get %d.la" % id)
    if not line.startswith("SERVER_ERROR") and line != "END" and \
            not line.startswith("CLIENT_ERROR"):
        connection.line()
        equal(connection.line(), b"END")
    if refuses != ("ERROR" in line):
        raise Lost("node %s answers a get of %d with %r" % (
            node.name, id, line))


def round_of(seed, rule=None, mover=None):
    """One move; mover: makes what moves, where that is not tallyctl; (changes
    acknowledged, runs of what moves, seconds that a client was refused at
    most, what went wrong)."""
    world = World(seed, rule, mover)
    try:
        with world:
            world.fill()
            world.live()
            world.settle()
            world.need_one_owner()
            world.need_forgotten()
            world.finish()
    except Exception as error:
        raise Lost("seed %s, %s, after %s: %s" % (
            seed, world.rule.text, world.log, error)) from error
    acked = sum(client.acked for client in world.clients)
    return acked, world.mover.runs, world.refused_s(), world.log
