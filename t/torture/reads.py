# SPDX-License-Identifier: BSD-3-Clause
"""What a client has read before kill -9, under --sync=always. strace holds each
write or sync of the log back, so that there is always something that was made
and is not on the disk.

With --reads=latest a read shows it, and the kill takes it back: held() finds
that each time. With --reads=committed no reply comes before the disk has all
that it may show, whatever the command, and lives() finds nothing taken back."""

import random
import threading
import time

import packet
import server
from daemon import Daemon, need_sound
from delayed import Delayed
from oracle import Lost

WRITES = "pwrite64,pwritev,pwritev2"
SYNCS = "fdatasync"
NEVER_S = 3000
SHORT_S = 0.01
CELL = "77.la"
ZERO = "78.la"
N_CELLS = 20
READS_MIN = 30        # of each reader, before a kill
GETKQ, NOOP = 0x0d, 0x0a

# Requests that show what CELL is; as many replies wait, at least.
FORMS = (
    ("get", b"get %s\r\n", 1),
    ("gets", b"gets %s\r\n", 1),
    ("gat", b"gat 0 %s\r\n", 1),
    ("touch", b"touch %s 0\r\n", 1),
    ("pipelined", b"get %s\r\n" * 50, 50),
    ("many keys", b"get" + b" %s" * 400 + b"\r\n", 1),
    ("with an item", b"get item %s item\r\n", 1),
    ("a record", b"get 77.lanes\r\n", 1),
    ("dialect", b"get lanes 77\r\n", 1),
    ("meta", b"mg %s k v c q\r\nmn\r\n", 1),
    ("add", b"add %s 0 0 1\r\n5\r\n", 1),
    ("cas", b"cas %s 0 0 1 999\r\n5\r\n", 1),
    ("dump", b"dump counter lanes\r\n", 1),
    ("packets", packet.packet(GETKQ, key=b"77.la") + packet.packet(NOOP), 1),
)


def request(form):
    said = form[1]
    return said.replace(b"%s", CELL.encode())


class Asked:
    """Each form on a connection of its own."""

    def __init__(self, daemon):
        self.connections = []
        for form in FORMS:
            self.connections.append((form, daemon.connect()))
            self.connections[-1][1].send(request(form))

    def come(self):
        return [form[0] for form, connection in self.connections
                if connection.has_come()]

    def close(self):
        for _, connection in self.connections:
            connection.close()


def counters(daemon, name):
    with daemon.connect() as connection:
        return int(connection.stats("counters")[name])


def make_change(daemon, connection):
    """An incr of CELL, which waits for the disk."""
    changes = counters(daemon, "cell_changes")
    connection.send("incr %s 1\r\n" % CELL)
    daemon.wait(lambda: counters(daemon, "cell_changes") > changes, "change")


def found_after(delayed):
    """CELL after kill -9 and another start."""
    delayed.murder()
    with Daemon(delayed.place, "--sync=always", path=delayed.path) as daemon:
        daemon.start()
        with daemon.connect() as connection:
            found = int(connection.get(CELL)[0][2])
    need_sound(delayed.place)
    return found


def held(reads, calls, sync="always", path=None):
    """A change whose call on the disk never ends, and reads beside it: (names
    of the forms that were answered, CELL after a kill). A cell of another
    record makes no difference: which one has changed is not looked at."""
    with Delayed(calls, NEVER_S, "--sync=" + sync, "--reads=" + reads,
                 "--commit-timeout=3600", path=path) as delayed:
        daemon = delayed.daemon
        with daemon.connect() as writer, daemon.connect() as other:
            if other.set("item", "x") != "STORED":
                raise Lost("no item")
            make_change(daemon, writer)
            asked = Asked(daemon)
            if reads == "latest" or sync == "interval":
                daemon.wait(lambda: len(asked.come()) == len(FORMS),
                            "replies of all")
            else:
                waits = sum(form[2] for form in FORMS)
                daemon.wait(lambda: asked.come() or
                            counters(daemon, "reads_held") >= waits,
                            "reads that wait")
                # what shows no counter does not
                if other.get("item") != [("item", 0, b"x")]:
                    raise Lost("the item waits, too")
            if writer.has_come() and sync == "always":
                raise Lost("the change was acknowledged")
            come = asked.come()
            found = found_after(delayed)
            asked.close()
    return come, found


class Writer(threading.Thread):
    """Increments of cells, one after the other."""

    def __init__(self, connection, source):
        super().__init__(daemon=True)
        self.connection = connection
        self.source = source
        self.start()

    def run(self):
        try:
            while True:
                self.connection.ask("incr %d.la 1"
                                    % self.source.randrange(N_CELLS))
        except (server.Closed, OSError):
            self.connection.close()


class Reader(threading.Thread):
    """Gets of all cells: the largest number of each."""

    def __init__(self, connection):
        super().__init__(daemon=True)
        self.connection = connection
        self.seen = [0] * N_CELLS
        self.count = 0
        self.start()

    def run(self):
        keys = ["%d.la" % number for number in range(N_CELLS)]
        try:
            while True:
                values = self.connection.get(*keys)
                self.seen = [max(old, int(data)) for old, (_, _, data)
                             in zip(self.seen, values)]
                self.count += 1
        except (server.Closed, OSError):
            self.connection.close()


def look(daemon, readers):
    """How many cells are less than what a reader has seen."""
    with daemon.connect() as connection:
        values = connection.get(*("%d.la" % number
                                  for number in range(N_CELLS)))
    found = [int(data) for _, _, data in values]
    return sum(found[cell] < max(reader.seen[cell] for reader in readers)
               for cell in range(N_CELLS))


def one_life(reads, source, path):
    """(reads, cells that were taken back)."""
    with Delayed(WRITES, SHORT_S, "--sync=always", "--reads=" + reads,
                 path=path) as delayed:
        daemon = delayed.daemon
        writers = [Writer(daemon.connect(), random.Random(source.random()))
                   for _ in range(4)]
        readers = [Reader(daemon.connect()) for _ in range(2)]
        daemon.wait(lambda: min(reader.count for reader in readers)
                    >= READS_MIN, "reads")
        time.sleep(source.uniform(0, 2 * SHORT_S))
        delayed.murder()
        for thread in writers + readers:
            thread.join()
        with Daemon(delayed.place, path=path) as again:
            again.start()
            taken = look(again, readers)
        need_sound(delayed.place)
    return sum(reader.count for reader in readers), taken


def lives(reads, count, seed, path=None):
    """(reads, lives after which something was taken back)."""
    source = random.Random("%s %s" % (seed, reads))
    done = [one_life(reads, source, path) for _ in range(count)]
    return (sum(reads for reads, _ in done),
            sum(taken > 0 for _, taken in done))
