# SPDX-License-Identifier: BSD-3-Clause
"""Clients of several groups that fail over by themselves, which know addresses
and no groups: those that do not number their changes go through nutcracker, by
{ID}.la; those that do go to the haproxy of the group that has the id, since
nutcracker lets no numbers pass. For each group by itself

* what was acknowledged is there, once, and nobody saw less (claims.py);
* each numbered change is done once;

and what happens to one of them is counted by group, so that it is seen what the
fault of one does to the others."""

import random

from claims import Hasty, LaneClient, Ledger, SCHEMA
from nutcracker import ids_of
from oracle import Lost
from replicas import NUMB, Numbered
from tap import check

LANES = 2
CELLS = 300           # of each group; none of failover.World's
FIRST_ID = 1_000_000
CLIENT_S = 2
COUNTERS = ("lanes", "numb")
# What tallyd says of a change that has not been done. All else may have been:
# nutcracker says with an error of its own that no answer came.
REFUSALS = ("not primary", "no primary at the moment", "not enough replicas")


class Through(LaneClient):
    """By nutcracker, which has no statistics of a node."""

    def __init__(self, *arguments, **more):
        super().__init__(*arguments, **more)
        self.cells = ["{%s}.%s" % tuple(cell.split("."))
                      for cell in self.cells]

    def reign(self, connection):
        return None

    @staticmethod
    def is_unknown(line):
        return not any(line.startswith("SERVER_ERROR " + text)
                       for text in REFUSALS)


class Known:
    """An address to connect to."""

    def __init__(self, address, port):
        self.address = (address, port)

    def connect(self):
        return Hasty(self.address, CLIENT_S)


class Direct(Numbered):
    """By a group's haproxy."""

    def __init__(self, *arguments, enter):
        super().__init__(*arguments)
        self.enter = enter

    def run(self):
        self.enter()
        super().run()


class Side:
    """One group, and those who change it."""

    def __init__(self, group, number, n, source, router, proxy, enter):
        self.group = group
        self.ledger = Ledger()
        ids = ids_of(number, n, CELLS, FIRST_ID)
        self.lanes = [
            Through("%s, lane %d" % (group.title, lane), lane,
                    random.Random(source.getrandbits(32)), self.ledger,
                    Known(router.address, router.changes).connect, enter, ids)
            for lane in range(LANES)]
        self.numbered = Direct(
            "front%d" % number, random.Random(source.getrandbits(32)),
            Known(proxy.address, proxy.changes), ids, enter=enter)
        self.clients = [*self.lanes, self.numbered]

    def declare(self):
        """What another try has declared is refused, as it is there."""
        with self.group.primary().connect() as connection:
            for line in (*SCHEMA, *NUMB):
                answer = connection.ask(line)
                check(answer == "STORED" or "already" in answer, answer)

    def figures(self):
        """Changes so far: acknowledged, refused, of unknown outcome; and those
        that were numbered."""
        return (self.ledger.acked, self.ledger.refused, self.ledger.unknown,
                sum(self.numbered.count.values()))

    def read(self):
        """From who leads."""
        cells = [*self.ledger.most, *self.numbered.count]
        found = {}
        with self.group.primary().connect() as connection:
            for first in range(0, len(cells), 100):
                for key, _, value in connection.get(
                        *cells[first:first + 100]):
                    found[key] = int(value)
        return found

    def compare(self):
        self.group.same(*COUNTERS)
        found = self.group.steadily(self.read)
        self.ledger.settle(found)
        wrong = {cell: (found.get(cell, 0), count)
                 for cell, count in self.numbered.count.items()
                 if found.get(cell, 0) != count}
        if wrong:
            raise Lost("numbered changes: found, wanted: %s" % wrong)


class Front:
    """proxies: of haproxy, one a group; router: nutcracker in front of them, or
    of one group its haproxy;
    enter(): called once on the thread of each client."""

    def __init__(self, seed, groups, proxies, router, enter=lambda: None):
        source = random.Random("front %s" % seed)
        self.sides = [
            Side(group, number, len(groups), source, router, proxies[number],
                 enter)
            for number, group in enumerate(groups)]

    def prepare(self):
        for side in self.sides:
            side.group.steadily(side.declare)

    def begin(self):
        for side in self.sides:
            for client in side.clients:
                client.start()

    def end(self):
        """Each client has been answered all that it numbers."""
        for side in self.sides:
            for client in side.clients:
                client.is_over.set()
        for side in self.sides:
            for client in side.clients:
                if client.thread:
                    client.end()

    def compare(self):
        for side in self.sides:
            side.compare()

    def figures(self):
        return [side.figures() for side in self.sides]
