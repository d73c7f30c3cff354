# SPDX-License-Identifier: BSD-3-Clause
"""What clients of a group may claim, whoever leads it: the oracle of
failover.py.

Clients that do not number their changes own one of the four 16-bit lanes of
cells that they share. A Ledger has of each lane the least that it holds, since
that was acknowledged, and the most, with what may have been done:

    least <= value <= most

Each answer brings a whole cell, so that it also shows what others were
acknowledged: a change that was acknowledged before another one of the same cell
was begun is seen by that.

Where the same connection saw the same node lead in the same term before and
after a burst, all that was acknowledged between was so in that term. A term has
one node and one branch; and what is begun when a later term has acknowledged
something is not acknowledged in an earlier one."""

import random
import socket
import struct
import threading
import time

import server
from oracle import Lost

LANES = 4
LANE_BITS = 16
LANE_MASK = (1 << LANE_BITS) - 1
CELLS = 40
DEPTH = 8
RETRY_S = 0.01
PLACES_LEFT = 8  # of a burst that the lanes must have room for
SCHEMA = ("add counter lanes",
          "add column lanes lane_id primarykey",
          "add column lanes lane_a hint=16 max=64 default=0 suffix=la")
UNKNOWN = "outcome unknown"  # such a change may have been done; no other is


def lanes_of(value):
    return [value >> LANE_BITS * lane & LANE_MASK for lane in range(LANES)]


class Ledger:
    """Shared by all clients; each call is one step of it."""

    def __init__(self):
        self.lock = threading.Lock()
        self.least, self.most = {}, {}   # cell: of its lanes
        self.terms = {}                  # term: (node, branch)
        self.last_term = 0               # of those that acknowledged
        self.acked = self.refused = self.unknown = self.placed = 0
        self.mark = None                 # what watch has said
        self.delays_s = []               # from a mark to the first answer

    def begin(self, cell, lane):
        """A change is about to be sent; what its answer has to show."""
        with self.lock:
            self.least.setdefault(cell, [0] * LANES)
            self.most.setdefault(cell, [0] * LANES)[lane] += 1
            return list(self.least[cell])

    def ack(self, cell, lane, value, floor, begun):
        """It was answered with that value; floor is what begin has said, at
        that time (monotonic)."""
        found = lanes_of(value)
        with self.lock:
            self.acked += 1
            least, most = self.least[cell], self.most[cell]
            wanted = list(floor)
            wanted[lane] += 1
            if any(one < low for one, low in zip(found, wanted)):
                raise Lost("%s: answered lanes %s, but %s were acknowledged "
                           "before, and this one" % (cell, found, floor))
            if any(one > high for one, high in zip(found, most)):
                raise Lost("%s: answered lanes %s, but at most %s were asked "
                           "for" % (cell, found, most))
            self.least[cell] = [max(pair) for pair in zip(least, found)]
            if self.mark is not None and begun >= self.mark[1]:
                self.delays_s.append(time.monotonic() - self.mark[0])
                self.mark = None

    def refuse(self, cell, lane):
        """It was not done, and will not be."""
        with self.lock:
            self.refused += 1
            self.most[cell][lane] -= 1

    def leave(self):
        """What came of it is not known."""
        with self.lock:
            self.unknown += 1

    def place(self, term, node, branch, since, count):
        """So many were acknowledged in that term, all begun when last_term
        was since."""
        with self.lock:
            self.placed += count
            if self.terms.setdefault(term, (node, branch)) != (node, branch):
                raise Lost("term %d: %s acknowledges, %s (branch %s) did" % (
                    term, node, *self.terms[term]))
            if term < since:
                raise Lost("term %d of %s acknowledges what was begun after "
                           "term %d had done so" % (term, node, since))
            self.last_term = max(self.last_term, term)

    def watch(self, since=None):
        """For the first change that is begun from now on and acknowledged, how
        long that takes from a moment on, or from now."""
        now = time.monotonic()
        with self.lock:
            self.mark = (now if since is None else since, now)

    def settle(self, found):
        """Compares with what a settled group has: {cell: value}. That is what
        is known from now on."""
        faults = []
        for cell in sorted(self.most):
            lanes = lanes_of(found.get(cell, 0))
            for lane, value in enumerate(lanes):
                if value < self.least[cell][lane]:
                    faults.append("%s, lane %d: LOST: %d, but %d was "
                                  "acknowledged" % (
                                      cell, lane, value,
                                      self.least[cell][lane]))
                elif value > self.most[cell][lane]:
                    faults.append("%s, lane %d: %d, but at most %d was asked "
                                  "for" % (cell, lane, value,
                                           self.most[cell][lane]))
            self.least[cell], self.most[cell] = list(lanes), list(lanes)
        if faults:
            raise Lost("\n".join(faults[:8]))


class LaneClient:
    """One that owns a lane, and goes from node to node until one takes its
    changes. connect(): to a node that it chooses; enter(): called once on its
    thread; ids: of its cells."""

    def __init__(self, name, lane, source, ledger, connect, enter,
                 ids=range(1, CELLS + 1)):
        self.name, self.lane, self.source = name, lane, source
        self.cells = ["%d.la" % number for number in ids]
        self.ledger, self.connect, self.enter = ledger, connect, enter
        self.is_over = threading.Event()
        self.fault = None
        self.thread = None

    def start(self):
        self.is_over.clear()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def end(self):
        self.is_over.set()
        self.thread.join(2 * server.LIMIT_S)
        if self.thread.is_alive():
            raise Lost("%s does not end" % self.name)
        if self.fault:
            raise Lost("%s: %s" % (self.name, self.fault))

    def run(self):
        try:
            self.enter()
            while not self.is_over.is_set():
                try:
                    with self.connect() as connection:
                        while not self.is_over.is_set() and \
                                self.turn(connection):
                            pass
                except (server.Closed, OSError):
                    pass
                if not self.is_over.is_set():
                    time.sleep(RETRY_S)
        except Exception as error: # whatever else is a failed test
            self.fault = repr(error)

    def reign(self, connection):
        """(term, node, branch) of a node that leads, or None."""
        found = connection.stats("replication")
        if found.get("role") != "primary":
            return None
        return int(found["term"]), found["node"], found["branch"]

    def turn(self, connection):
        """A burst; true where it is worth another one here."""
        before, since = self.reign(connection), self.ledger.last_term
        sent = self.send(connection)
        done = 0
        try:
            for cell, floor, begun in sent:
                done += self.answer(connection, cell, floor, begun)
                sent = sent[1:]
        except BaseException:
            for _ in sent:
                self.ledger.leave()
            raise
        if before and done and self.reign(connection) == before:
            term, node, branch = before
            self.ledger.place(term, node, branch, since, done)
        return done == DEPTH

    def send(self, connection):
        sent, text = [], ""
        begun = time.monotonic()
        while len(sent) < DEPTH:
            cell = self.source.choice(self.cells)
            floor = self.ledger.begin(cell, self.lane)
            if floor[self.lane] > LANE_MASK - PLACES_LEFT * DEPTH:
                raise Lost("the lanes are full: fewer rounds, please")
            sent.append((cell, floor, begun))
            text += "incr %s %d\r\n" % (cell, 1 << LANE_BITS * self.lane)
        try:
            connection.send(text)
        except BaseException:
            for _ in sent:
                self.ledger.leave()
            raise
        return sent

    def answer(self, connection, cell, floor, begun):
        line = connection.line().decode("latin-1")
        if line.isdigit():
            self.ledger.ack(cell, self.lane, int(line), floor, begun)
            return 1
        if not line.startswith("SERVER_ERROR"):
            raise Lost("answered %r" % line)
        if self.is_unknown(line):
            self.ledger.leave()
        else:
            self.ledger.refuse(cell, self.lane)
        return 0


    @staticmethod
    def is_unknown(line):
        """What is refused so may have been done."""
        return UNKNOWN in line


class Chooser:
    """Connects to one of some nodes, another one each time."""

    def __init__(self, seed, addresses, limit_s):
        self.source = random.Random(seed)
        self.addresses, self.limit_s = addresses, limit_s

    def connect(self):
        return Hasty(self.source.choice(self.addresses), self.limit_s)


class Hasty(server.Connection):
    """Whose end throws away what has not been sent: a network that is mended
    later would bring it to the server, long after who has sent it has given it
    up, and has seen what is there."""

    def close(self):
        try:
            self.socket.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER,
                struct.pack("ii", 1, 0))
        finally:
            super().close()
