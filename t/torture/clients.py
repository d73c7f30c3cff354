# SPDX-License-Identifier: BSD-3-Clause
"""Clients that load a server and keep journals of what they asked for.

    crowd = Crowd(random.Random(1))
    crowd.declare(connection)
    crowd.start(connect)        # threads, until the server dies or end()
    crowd.end()
    crowd.settle(connect)       # after a restart: raises Lost

Each kind of client has its own way of writing: increments one by one,
pipelined, without reply and then a get, sets and deletes, whole records, and
edits of the schema. None waits longer than server.LIMIT_S for anything.
"""

import random
import threading
import time

import server
from oracle import Bounds, Journal, Lost

LANE_MAX = 65000   # a lane is left alone from there on
KEYS_OF_A_GET = 100
LANES = 4
COLUMNS = ("la", "lb", "lc")
SCHEMA = (
    "add counter lanes",
    "add column lanes lane_id hint=64 max=64 default=0 primarykey",
    "add column lanes lane_a hint=8 max=64 default=0 suffix=la",
    "add column lanes lane_b hint=16 max=64 default=0 suffix=lb",
    "add column lanes lane_c hint=4 max=64 default=7 suffix=lc",
    "add counter sides",
    "add column sides side_id primarykey",
)
DEFAULT_C = 7
STOPPING = "SERVER_ERROR the server is stopping or starts anew: try again"
UNSURE = "SERVER_ERROR outcome unknown"  # made: any other is not
LATE = UNSURE + ", the disk is slow"


class Refused(Exception):
    """The server answered SERVER_ERROR."""


def read_keys(connection, keys):
    """{key: number} of all that have one."""
    keys = list(keys)
    found = {}
    for first in range(0, len(keys), KEYS_OF_A_GET):
        part = keys[first : first + KEYS_OF_A_GET]
        for key, _, value in connection.get(*part):
            found[key] = int(value)
    return found


def reply(connection):
    """One line of a reply, in text."""
    line = connection.line().decode("latin-1")
    if line.startswith("SERVER_ERROR"):
        raise Refused(line)
    return line


def expect(connection, *wanted):
    line = reply(connection)
    if line not in wanted:
        raise Lost("answered %r, not %r" % (line, wanted))


class Client:
    """The thread of one client; subclasses say what it asks."""

    def __init__(self, name, source, depth=1):
        self.name = name
        self.source = source
        self.depth = depth
        self.journal = Journal(name, self.default, depth)
        self.thread = None
        self.stopping = threading.Event()
        self.fault = None    # what must not happen
        self.refused = None  # a SERVER_ERROR

    @staticmethod
    def default(cell):
        """What is read of a cell that was never written."""
        return DEFAULT_C if cell.endswith(".lc") else 0

    def start(self, connect):
        self.stopping.clear()
        self.fault = self.refused = None
        self.thread = threading.Thread(
            target=self.run, args=(connect,), daemon=True)
        self.thread.start()

    def run(self, connect):
        try:
            with connect() as connection:
                while not self.stopping.is_set():
                    self.turn(connection)
        except TimeoutError:
            self.fault = "%s: no reply within %d s" % (
                self.name, server.LIMIT_S)
        except Refused as error:
            # a slow disk under the test is no fault; the client's steps that
            # are not acknowledged may have happened, as after a crash
            if not str(error).startswith(LATE):
                self.refused = "%s: %s" % (self.name, error)
        except (server.Closed, OSError):
            pass  # the server is gone
        except Exception as error:  # whatever else is a failed test
            self.fault = "%s: %r" % (self.name, error)

    def turn(self, connection):
        """A burst of steps, and their replies."""
        answers = []
        out = []
        for _ in range(self.depth):
            request, answer = self.step()
            out.append(request)
            answers.append(answer)
        connection.send("".join(out))
        for answer in answers:
            answer(connection)
            self.journal.ack()

    def end(self):
        self.stopping.set()
        if self.thread is not None:
            self.thread.join(2 * server.LIMIT_S + 5)
            if self.thread.is_alive():
                self.fault = "%s: its thread hangs" % self.name

    def keys(self):
        """The keys to read for look."""
        return self.journal.cells()

    def seen_as(self, values):
        """The state of this client's cells out of {key: number}."""
        return {cell: values.get(cell) for cell in self.journal.cells()}


class Lane(Client):
    """Increments one lane of 64-bit cells that others count in too."""

    def __init__(self, name, source, keys, lane, depth):
        super().__init__(name, source, depth)
        self.cells = list(keys)
        self.shift = 16 * lane
        self.count = {}

    def next_cell(self):
        cell = self.source.choice(self.cells)
        while self.count.get(cell, 0) >= LANE_MAX:
            self.cells.remove(cell)
            self.cells.append("%d.la" % (int(cell[:-3]) + 100))
            cell = self.source.choice(self.cells)
        value = self.count.get(cell, 0) + 1
        self.count[cell] = value
        self.journal.begin((cell, value))
        return cell, value

    def lane_of(self, value):
        return value >> self.shift & 0xffff

    def check(self, cell, text, wanted):
        if self.lane_of(int(text)) != wanted:
            raise Lost("%s is %s, lane %d of it is not %d" % (
                cell, text, self.shift // 16, wanted))

    def step(self):
        cell, wanted = self.next_cell()
        return ("incr %s %d\r\n" % (cell, 1 << self.shift),
                lambda connection: self.check(
                    cell, reply(connection), wanted))

    def keys(self):
        """Also those that only others may have counted in: this lane of them
        is 0."""
        return self.journal.cells() | set(self.cells)

    def seen_as(self, values):
        found = {cell: self.lane_of(values.get(cell, 0))
                 for cell in self.keys()}
        self.count = dict(found)
        return found


class Quiet(Lane):
    """The same without replies; then a get, which must show them, and one
    increment with a reply, which answers for all before it."""

    def turn(self, connection):
        out = []
        for _ in range(self.depth - 1):
            cell, wanted = self.next_cell()
            out.append("incr %s %d noreply\r\n" % (cell, 1 << self.shift))
        out.append("get %s\r\n" % cell)
        request, answer = self.step()
        connection.send("".join(out) + request)
        line = reply(connection)
        if not line.startswith("VALUE %s " % cell):
            raise Lost("answered %r to a get of %s" % (line, cell))
        self.check(cell, reply(connection), wanted)
        expect(connection, "END")
        answer(connection)
        self.journal.ack(self.depth)


class Register(Client):
    """Sets cells of its own to its running number, in a ring of ids, and
    deletes some."""

    def __init__(self, name, source, first, stride, ring, depth):
        super().__init__(name, source, depth)
        self.first, self.stride, self.ring = first, stride, ring
        self.number = 0

    def step(self):
        self.number += 1
        number = self.number
        cell = "%d.lb" % (self.first + number % self.ring * self.stride)
        if number % 7 == 0:
            self.journal.begin((cell, 0))
            return ("delete %s\r\n" % cell,
                    lambda connection: expect(
                        connection, "DELETED", "NOT_FOUND"))
        self.journal.begin((cell, number))
        return ("set %s 0 0 %d\r\n%d\r\n" % (cell, len(str(number)), number),
                lambda connection: expect(connection, "STORED"))


class Record(Client):
    """Sets whole records, whose columns must never be seen apart."""

    def __init__(self, name, source, first, stride, ring, depth):
        super().__init__(name, source, depth)
        self.first, self.stride, self.ring = first, stride, ring
        self.number = 0

    def step(self):
        self.number += 1
        number = self.number
        id = self.first + self.source.randrange(self.ring) * self.stride
        cells = ["%d.%s" % (id, column) for column in COLUMNS]
        if number % 11 == 0:
            values = (0, 0, DEFAULT_C)
            request = "delete lanes %d\r\n" % id
            answer = ("DELETED", "NOT_FOUND")
        else:
            values = (number, number << 20, number)
            request = "set lanes %d %d %d %d\r\n" % (id, *values)
            answer = ("STORED",)
        self.journal.begin(*zip(cells, values))
        return request, lambda connection: expect(connection, *answer)


class Editor(Client):
    """Adds and drops counters and columns, with a number in each."""

    def __init__(self, name, source, prefix):
        super().__init__(name, source)
        self.prefix = prefix
        self.todo = []
        self.number = 0

    @staticmethod
    def default(cell):
        return None  # there is no such column

    def plan(self):
        self.number += 1
        name = "%s%d" % (self.prefix, self.number % 5)
        cell = "9.s%s" % name
        late = "5.%slate" % self.prefix
        return [
            ("add counter %s" % name, "STORED", ()),
            ("add column %s %s_id primarykey" % (name, name), "STORED", ()),
            ("add column %s %s_n max=16 suffix=s%s" % (name, name, name),
             "STORED", ((cell, 0),)),
            ("incr %s 3" % cell, "3", ((cell, 3),)),
            ("add column sides %slate_n max=8 default=3 suffix=%slate"
             % (self.prefix, self.prefix), "STORED", ((late, 3),)),
            ("incr %s 2" % late, "5", ((late, 5),)),
            ("drop column sides %slate_n %slate_n"
             % (self.prefix, self.prefix),
             "DELETED", ((late, None),)),
            ("drop counter %s %s" % (name, name), "DELETED",
             ((cell, None),)),
        ]

    def step(self):
        if not self.todo:
            self.todo = self.plan()
        request, answer, changes = self.todo.pop(0)
        self.journal.begin(*changes)
        return (request + "\r\n",
                lambda connection: expect(connection, answer))

    def restart(self, connection):
        """Undoes what the crash has left half done."""
        for name in ["%s%d" % (self.prefix, i) for i in range(5)]:
            connection.ask("drop counter %s %s" % (name, name))
        connection.ask("drop column sides %slate_n %slate_n"
                       % (self.prefix, self.prefix))
        for cell in self.journal.seen:
            self.journal.seen[cell] = None
        self.todo = []


class Crowd:
    """Clients of all kinds. Ids lie in several families and all shards."""

    def __init__(self, source, base=None, editor=True, ring=400):
        self.source = source
        base = base or (source.randrange(1, 1 << 30) << 8)
        near = [base + i for i in range(12)]
        far = [source.getrandbits(63) for _ in range(12)]
        timed = [(base + i) << 22 for i in range(12)]
        cells = ["%d.la" % id for id in near + far + timed]
        hot = cells[:2]

        def make():
            return random.Random(source.getrandbits(32))

        ids = base + (1 << 50)
        self.clients = [
            Lane("incr", make(), cells, 0, 1),
            Lane("incr pipelined", make(), cells, 1, 16),
            Lane("incr hot", make(), hot, 2, 8),
            Quiet("noreply and get", make(), cells, 3, 20),
            Register("set", make(), ids, 1, 50, 1),
            Register("set pipelined", make(), ids + (1 << 51), 1 << 22,
                     ring, 50),
            Record("record", make(), ids + (1 << 52), 3, ring, 10),
        ]
        if editor:
            self.clients.append(Editor("schema", make(), "ed"))
        self.checkpoints = 0
        self.seals = 0

    def declare(self, connection):
        connection.tell(*SCHEMA)

    def start(self, connect):
        for client in self.clients:
            client.start(connect)

    def end(self, may_refuse=False):
        """Waits for all threads and raises where one saw what may not be."""
        for client in self.clients:
            client.stopping.set()
        for client in self.clients:
            client.end()
        faults = [client.fault for client in self.clients if client.fault]
        if not may_refuse:
            faults += [client.refused for client in self.clients
                       if client.refused]
        if faults:
            raise Lost("\n".join(faults))

    def checkpoint(self, connection):
        """What is acknowledged before survives in every mode after."""
        counts = [client.journal.acked for client in self.clients]
        answer = connection.ask("checkpoint")
        if answer != "OK":
            raise Lost("checkpoint answered %r" % answer)
        self.checkpoints += 1
        self.hold(counts)

    def hold(self, counts):
        for client, count in zip(self.clients, counts):
            client.journal.hold(count)

    def seal(self, connection):
        """As a checkpoint, and the records go to the cold tier. False where
        the server stops meanwhile."""
        counts = [client.journal.acked for client in self.clients]
        for name in ("lanes", "sides"):
            answer = connection.ask("seal %s all" % name)
            if answer == STOPPING:
                return False
            if answer != "OK":
                raise Lost("seal of %s answered %r" % (name, answer))
            self.seals += 1
        self.hold(counts)
        return True

    def acked(self):
        return sum(client.journal.acked for client in self.clients)

    def wait_acked(self, count, alive):
        """Until so many changes were acknowledged or alive() is false."""
        deadline = time.monotonic() + server.LIMIT_S
        while self.acked() < count and alive():
            if time.monotonic() > deadline:
                raise Lost("only %d changes acknowledged within %d s" % (
                    self.acked(), server.LIMIT_S))
            time.sleep(0.002)

    def settle(self, connect, low=lambda journal: journal.low()):
        """Reads everything back and compares."""
        faults = []
        with connect() as connection:
            for client in self.clients:
                values = read_keys(connection, sorted(client.keys()))
                found = client.seen_as(values)
                try:
                    client.journal.settle(found, low(client.journal))
                except Lost as error:
                    faults.append(str(error))
            if faults:
                raise Lost("\n".join(faults))
            for client in self.clients:
                if hasattr(client, "restart"):
                    client.restart(connection)


class Stubborn(Client):
    """Increments on through every SERVER_ERROR, with Bounds for a journal."""

    def __init__(self, name, source, keys, lane, depth):
        super().__init__(name, source, depth)
        self.bounds = Bounds(name)
        self.cells = list(keys)
        self.shift = 16 * lane
        self.good = 0
        self.errors = 0
        self.unsure = 0  # of these, changes that were made
        self.last_error = ""

    def turn(self, connection):
        cells = [self.source.choice(self.cells) for _ in range(self.depth)]
        for cell in cells:
            self.bounds.begin(cell)
        connection.send("".join(
            "incr %s %d\r\n" % (cell, 1 << self.shift) for cell in cells))
        for cell in cells:
            try:
                value = int(reply(connection)) >> self.shift & 0xffff
                self.bounds.ack(cell, value)
                self.good += 1
            except Refused as error:
                self.errors += 1
                self.last_error = str(error)
                if self.last_error.startswith(UNSURE):
                    self.unsure += 1
                else:
                    self.bounds.refuse(cell)
        if self.errors and self.last_error:
            time.sleep(0.001)  # a refusal is quick: leave others the core

    def settle(self, connection):
        values = read_keys(connection, self.cells)
        self.bounds.settle({cell: values.get(cell, 0) >> self.shift & 0xffff
                            for cell in self.cells})


class Reader(Client):
    """Gets, whatever happens; each must be answered."""

    def __init__(self, name, source, keys):
        super().__init__(name, source)
        self.cells = list(keys)
        self.reads = 0

    def turn(self, connection):
        found = connection.get(*self.cells)
        if len(found) != len(self.cells):
            raise Lost("a get of %d cells answered %d" % (
                len(self.cells), len(found)))
        self.reads += 1
