# SPDX-License-Identifier: BSD-3-Clause
"""A primary and its replicas, each a server with a data directory of its own:

    with Cluster(2) as cluster:
        one, two = cluster.nodes
        with one.connect() as connection:
            connection.tell(*server.WEIBO)
        cluster.need_same("weibo")      # waits until all have applied that
        one.murder()                    # kill -9
        two.promote()
        one.follow(two)                 # from the next start on
        one.start()

A node listens for others at the same port in all its lives, so that they find
it again; clients ask port, which is another one each time."""

import re
import time

import server
from daemon import Daemon, Place
from ports import free_port
from tap import check, equal

LOOPBACK = "127.0.0.1"
DIGEST = re.compile(
    r"DIGEST (\S+) records=(\d+) xxh=([0-9a-f]{16}) seq=(\d+) changes=(\w+)"
    r"(?: left_out=\S+)?$")
POLL_S = server.POLL_MS / server.MS_PER_S


def until(condition, what):
    """Waits until condition() is true, and returns what it returned; what: a
    text, or a function that makes one."""
    deadline = time.monotonic() + server.LIMIT_S
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError("not within %d s: %s" % (
                server.LIMIT_S, what() if callable(what) else what))
        time.sleep(POLL_S)


class Node(Daemon):
    """One of the copies. A node that follows none is a primary. listen: what
    -l says, where that is more than the address."""

    def __init__(self, name, *options, follows=None, address=LOOPBACK,
                 repl_port=None, place=None, listen=None, **more):
        self.is_own_place = place is None
        super().__init__(place or Place(), *options, address=address, **more)
        if listen:
            self.command[self.command.index("-l") + 1] = listen
        self.name = name
        self.repl_port = repl_port or free_port(address)
        self.plain_command = list(self.command) + [
            "--node=" + name, "--repl-port=%d" % self.repl_port]
        self.follow(follows)

    @property
    def repl_address(self):
        """Where others connect to follow it."""
        return "%s:%d" % (self.address, self.repl_port)

    @property
    def client_address(self):
        """Where clients are sent."""
        return "%s:%d" % (self.address, self.port)

    def follow(self, other):
        """other: a node, an address, or None; from the next start on."""
        self.follows = getattr(other, "repl_address", other)
        self.command = list(self.plain_command)
        if self.follows:
            self.command.append("--replicaof=" + self.follows)

    def start(self):
        """Until it has loaded and, where it follows none, is the primary."""
        super().start()
        if not self.follows:
            self.wait_for(role="primary")

    def remove(self):
        if self.is_own_place:
            self.place.remove()

    def again(self):
        """A start after kill -9."""
        self.murder()
        self.start()

    def ask(self, *requests):
        """Each on the same connection; the answers."""
        with self.connect() as connection:
            return [connection.ask(request) for request in requests]

    def figures(self):
        """stats replication."""
        with self.connect() as connection:
            return connection.stats("replication")

    def replicas(self):
        """stats replicas: {replica: {figure: text}}."""
        with self.connect() as connection:
            lines = connection.stats("replicas")
        return {name: dict(word.split("=", 1) for word in line.split())
                for name, line in lines.items()}

    def sees(self, **wanted):
        """True where stats replication has these figures; never while it does
        not answer, as between two lives of its store."""
        try:
            found = self.figures()
        except (server.Closed, OSError):
            return False
        return all(found.get(name) == str(value)
                   for name, value in wanted.items())

    def wait_for(self, **wanted):
        self.wait(lambda: self.sees(**wanted), "%s: %s" % (self.name, wanted))

    def order(self, line):
        """A command whose answer is OK."""
        equal(self.ask(line), ["OK"], "%s: %s" % (self.name, line))

    def promote(self):
        """By hand; it follows nobody from now on, nor at a later start."""
        self.order("replicaof no one")
        self.wait_for(role="primary")
        self.follow(None)

    def turn_to(self, other):
        """As follow, at run time."""
        self.order("replicaof " + other.repl_address)
        self.follow(other)

    def digest(self, counter):
        """(records, checksum) of a counter at rest. While the store is loaded
        anew there is none, nor where it changes under the count."""
        found = None
        deadline = time.monotonic() + server.LIMIT_S
        while time.monotonic() < deadline:
            try:
                [line] = self.ask("digest " + counter)
            except (server.Closed, OSError) as error:
                line = repr(error)
            found = DIGEST.match(line)
            if found and found.group(5) == "no":
                return int(found.group(2)), found.group(3)
            time.sleep(POLL_S)
        raise AssertionError("%s: digest %s: %s" % (self.name, counter, line))

    def applied(self):
        """The last batch that can be read here; 0: it does not answer."""
        try:
            return int(self.figures()["applied_seq"])
        except (server.Closed, OSError, KeyError):
            return 0

    def last(self):
        """The last batch of its log."""
        return int(self.figures()["written_seq"])


class Cluster:
    """count nodes; the first one is the primary that the others follow. They
    are started one after the other unless told otherwise."""

    def __init__(self, count, *options, starts=True, names="abcdefgh",
                 **more):
        self.nodes = []
        self.starts = starts
        try:
            for name in names[:count]:
                self.add(name, *options, **more)
        except BaseException:
            self.remove()
            raise

    def __enter__(self):
        try:
            if self.starts:
                for node in self.nodes:
                    node.start()
        except BaseException:
            self.kill()
            self.remove()
            raise
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                for node in reversed(self.nodes):
                    if node.process is not None and not node.stopped:
                        node.stop()
            else:
                self.kill()
        except BaseException:
            self.kill()
            raise
        finally:
            self.remove()

    def add(self, name, *options, **more):
        """One more, which follows the first one; it is not started."""
        more.setdefault("follows", self.nodes[0] if self.nodes else None)
        self.nodes.append(Node(name, *options, **more))
        return self.nodes[-1]

    def kill(self):
        for node in self.nodes:
            if node.process is not None and not node.stopped:
                print("# node %s" % node.name)
                node.kill(show=True)

    def remove(self):
        for node in self.nodes:
            node.remove()

    def running(self):
        return [node for node in self.nodes
                if node.process is not None and node.alive()]

    def primary(self):
        """The one node that says so."""
        found = [node for node in self.running() if node.sees(role="primary")]
        equal(len(found), 1, "primaries: %s" % [node.name for node in found])
        return found[0]

    def caught_up(self, *nodes):
        """Waits until the nodes, or all that run, have applied what the
        primary has now."""
        primary = self.primary()
        target = primary.last()
        for node in nodes or self.running():
            if node is not primary:
                node.wait(lambda: node.applied() >= target,
                          "%s: batch %d of %s" % (
                              node.name, target, primary.name))

    def need_same(self, *counters):
        """All nodes that run come to have the same records."""
        self.caught_up()
        primary = self.primary()
        for counter in counters:
            wanted = primary.digest(counter)
            for node in self.running():
                equal(node.digest(counter), wanted, "%s of %s and %s" % (
                    counter, primary.name, node.name))
            check(primary.digest(counter) == wanted,
                  "somebody changes %s meanwhile" % counter)
