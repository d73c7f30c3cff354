# SPDX-License-Identifier: BSD-3-Clause
"""A group that decides by itself who leads: three servers and three etcd, each
on a machine of its own where there is root for that, else on loopback:

    with Group() as group:
        group.primary()             # the node that leads, when all are well
        group.nodes[0].murder()
        group.settle()              # all run again, all vote, one leads

Who ends by itself is started again, as a supervisor does; who crashes is a
failed test."""

import contextlib
import http.client
import os
import signal
import time
import uuid

import etcd
import server
from cluster import Cluster, Node, until
from daemon import SMALL, state_of
from disk import Disk, MIB, need_root
from net import Network
from oracle import Lost
from ports import free_port

NAMES = "abc"
KEEPERS = ("e0", "e1", "e2")  # the machines of etcd
CLIENT_PORT = 11211
REPL_PORT = 11213
LEASE_S = 3
ETCD_S = 2       # for an answer of a member that may be gone
STORY_LINES = 60
DISK_BYTES = 384 * MIB
DOUBT = "the machine was started anew"  # a node's log
# The kernel's boot id is what a file says, and a cut disk of another node is
# not kept by this process: $1 is its own disk, $2 the file, $3 how the paths of
# all disks of tests begin. Those of the host stay.
MACHINE = r"""
mount --bind "$2" /proc/sys/kernel/random/boot_id || exit 1
own=$1
tests=$3
shift 3
for at in $(sed -n 's,^/dev/loop[0-9]* \([^ ]*\) .*,\1,p' /proc/self/mounts)
do
    case $at in
    "$own") ;;
    "$tests"*) umount "$at" || exit 1 ;;
    esac
done
exec "$@"
"""
OPTIONS = ("--semi-sync=1", "--repl-timeout=2", *SMALL)


class Member(Node):
    """A node that etcd tells whether it leads."""

    def __init__(self, group, name, *options, **more):
        super().__init__(name, *options, **more)
        self.group = group
        self.story = []  # what its earlier lives wrote
        self.again = 0   # starts that no fault of a test stands behind
        self.doubted = 0 # times that its earlier lives wrote DOUBT

    def start(self):
        """Until it has loaded: who leads is seen later."""
        super(Node, self).start()

    def cut_power(self):
        """As of its machine. It is stopped before, so that it acknowledges
        nothing that the disk did not take: power.py says why."""
        self.freeze()
        self.place.cut()
        self.murder()

    def restore_power(self):
        self.place.restore()
        write_boot_id(self.place)

    def launch(self):
        if self.process is not None:
            text = self.stderr()
            self.doubted += text.count(DOUBT)
            self.story = (self.story + text.splitlines())[-STORY_LINES:]
        super().launch()

    def doubts(self):
        """How often it said that it may have lost what it acknowledged."""
        if self.process is None:
            return 0
        return self.doubted + self.stderr().count(DOUBT)

    def kill(self, show=False):
        if show:
            for line in self.story:
                print("# before: " + line)
        super().kill(show)

    def child(self):
        """The process that speaks with etcd, or None."""
        try:
            with open("/proc/%d/task/%d/children" % (
                    (self.process.pid,) * 2), encoding="ascii") as text:
                for word in text.read().split():
                    with open("/proc/%s/comm" % word,
                              encoding="ascii") as name:
                        if name.read() == "tallyd-etcd\n" and \
                                state_of("/proc/" + word) != "Z":
                            return int(word)
        except OSError:
            pass
        return None

    def tell_child(self, number):
        """A signal for it, where it is there."""
        child = self.child()
        if child:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, number)

    def ended(self):
        """It ran, and nobody of the test has ended it."""
        return self.process is not None and not self.stopped and \
            not self.alive()

    def revive(self):
        """As a supervisor does. Somebody may have killed it, but it does not
        crash."""
        status = self.process.wait()
        self.check_clean()
        if status < 0 and status != -signal.SIGKILL:
            raise Lost("%s: ended by signal %d: %s" % (
                self.name, -status, self.stderr()[-2000:]))
        self.again += 1
        self.start()


def boot_id_file(place):
    return os.path.join(place.top, "boot_id")


def write_boot_id(place):
    """Another one: its machine starts."""
    with open(boot_id_file(place), "w", encoding="ascii") as file:
        file.write("%s\n" % uuid.uuid4())


def make_etcd(network=None, disks=()):
    """Three that agree, on their machines where there are some, with their data
    on these disks."""
    if network is None:
        return etcd.Cluster(3)
    return etcd.Cluster(3, machines=[
        (network.address(name), network.wrapper(name),
         disks[number].data if disks else None)
        for number, name in enumerate(KEEPERS)])


class Group:
    """names: of the nodes; machines: other names that get one, as clients. Or
    with the network and the etcd of others. is_lossy: nodes ask etcd by way of
    proxies, which may lose answers; without machines. file_system: of disks
    that nodes and etcd have of their own then, as root."""

    def __init__(self, *options, title="torture/one", names=NAMES,
                 machines=(), has_root=None, lease_s=LEASE_S, network=None,
                 keepers=None, is_lossy=False, file_system=None):
        self.title, self.names, self.lease_s = title, names, lease_s
        self.options = [*OPTIONS, *options]
        self.has_root = os.geteuid() == 0 if has_root is None else has_root
        self.own_network = network is None and self.has_root
        if self.has_root:
            need_root("nft")
        self.network = network or (
            Network([*names, *KEEPERS, *machines]) if self.has_root else None)
        self.own_etcd, self.etcd = keepers is None, keepers
        self.is_lossy, self.proxies = is_lossy, []
        self.file_system = file_system
        self.keeper_disks = []
        self.cut_nodes = []  # whose power is cut
        self.cluster = Cluster(0)
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            if self.own_network:
                stack.enter_context(self.network)
            for _ in KEEPERS if self.file_system else ():
                self.keeper_disks.append(
                    stack.enter_context(self.make_disk()))
            if self.own_etcd:
                self.etcd = stack.enter_context(
                    make_etcd(self.network, self.keeper_disks))
            if self.is_lossy:
                self.proxies = [
                    stack.enter_context(etcd.Proxy(member.client_port))
                    for member in self.etcd.members]
            stack.push(self.cluster.__exit__)
            for name in self.names:
                self.add(name)
            for node in self.nodes:
                node.start()
            self.settle()
            self.stack = stack.pop_all()
        return self

    def __exit__(self, kind, *rest):
        try:
            self.heal()
        finally:
            self.stack.__exit__(kind, *rest)

    def make_disk(self):
        return Disk(self.file_system, DISK_BYTES)

    def machine(self, name):
        """What a node is started with, to be on a machine of its own."""
        more = {"address": self.network.address(name),
                "wrapper": self.network.wrapper(name)}
        if self.file_system:
            place = more["place"] = self.make_disk()
            write_boot_id(place)
            more["wrapper"] += [
                "unshare", "--mount", "--propagation", "private", "sh", "-c",
                MACHINE, "sh", place.mount_point, boot_id_file(place),
                server.directories()]
        return more

    def add(self, name, *options):
        """One more node; it is not started."""
        options = [*self.options, *options, "--replicate=" + self.title,
                   "--etcd=" + ",".join(
                       [proxy.url() for proxy in self.proxies] or
                       self.etcd.urls()),
                   "--lease-ttl=%d" % self.lease_s]
        if self.has_root:
            address = self.network.address(name)
            node = Member(self, name, *options, "--insecure",
                          "--repl-insecure", "--repl-listen=" + address,
                          port=str(CLIENT_PORT), repl_port=REPL_PORT,
                          **self.machine(name))
            node.is_own_place = True
        else:
            node = Member(self, name, *options, port=str(free_port()))
        self.cluster.nodes.append(node)
        return node

    @property
    def nodes(self):
        return self.cluster.nodes

    def node(self, name):
        return next(node for node in self.nodes if node.name == name)

    def value(self, key):
        """Of a key of the group's, from any etcd that answers; None: there is
        none, or nobody answers."""
        for number, member in enumerate(self.etcd.members):
            if member.process.poll() is None:
                try:
                    return self.find(key, number)
                except (OSError, ValueError, http.client.HTTPException):
                    pass
        return None

    def find(self, key, number):
        path = "/tallyd/%s/%s" % (self.title, key)
        found = self.etcd.call("kv/range", {"key": etcd.encode(path)}, number,
                               limit_s=ETCD_S)
        return etcd.first_value(found)

    def leader(self):
        """The node that etcd says leads, or None."""
        found = self.value("primary")
        return self.node(found["node"]) if found else None

    def etcd_leader(self):
        """The member that leads the others, or None."""
        for number, member in enumerate(self.etcd.members):
            try:
                answer = self.etcd.call("maintenance/status", {}, number,
                                        limit_s=ETCD_S)
            except (OSError, ValueError, http.client.HTTPException):
                continue
            if answer.get("leader") == answer["header"]["member_id"]:
                return member
        return None

    def heal(self):
        for disk in self.disks():
            disk.thaw()
        if self.network:
            self.network.heal()

    def disks(self):
        return [*self.keeper_disks, *(
            node.place for node in self.nodes if self.file_system)]

    def cut_power(self, *nodes):
        """Of all of them at once."""
        for node in nodes:
            node.freeze()
        for node in nodes:
            node.cut_power()
        self.cut_nodes.extend(nodes)

    def mend(self):
        """Undoes all that may have been done."""
        self.heal()
        while self.cut_nodes:
            self.cut_nodes.pop().restore_power()
        for proxy in self.proxies:
            proxy.loses = lambda path: False
        for member in self.etcd.members if self.etcd else ():
            if member.process.poll() is None:
                member.process.send_signal(signal.SIGCONT)
            else:
                member.start()
        for node in self.nodes:
            if node.process is None or node.ended():
                continue
            if node.stopped:
                node.start()
                continue
            node.signal(signal.SIGCONT)
            if node.child() is None:
                self.replace(node)
            node.tell_child(signal.SIGCONT)

    def replace(self, node):
        """One whose process that speaks with etcd is gone: it ends by itself,
        but for a primary, which goes on; that is ended by hand."""
        until(lambda: node.ended() or node.sees(role="primary"),
              self.account)
        if node.ended():
            node.revive()
        else:
            node.again += 1
            node.murder()
            node.start()

    def tend(self):
        """A supervisor's look."""
        for node in self.nodes:
            if node.ended():
                node.revive()

    def is_settled(self):
        """One leads, all others follow it, and all vote."""
        self.tend()
        voters = self.value("voters")
        leader = self.leader()
        if not leader or not voters or \
                sorted(voters["nodes"]) != sorted(self.names):
            return False
        return all(
            node.sees(role="primary") if node is leader else
            node.sees(role="replica", link_status="up", primary=leader.name)
            for node in self.nodes)

    def settle(self):
        """Until it is."""
        until(self.is_settled, self.account)

    def primary(self):
        """The node that leads; the group is settled."""
        return until(self.leader, "a primary")

    def account(self):
        """What each says, for a person."""
        lines = ["the group does not settle: primary %s, voters %s" % (
            self.value("primary"), self.value("voters"))]
        for node in self.nodes:
            try:
                found = node.figures() if node.alive() else {}
            except (server.Closed, OSError) as error:
                found = {"error": repr(error)}
            lines.append("%s: %s" % (node.name, {
                name: found[name] for name in (
                    "role", "term", "primary", "link_status", "link_error",
                    "doubtful", "error") if name in found} or "ended"))
        return "\n".join(lines)

    def same(self, *counters):
        """All nodes come to have the same records, whoever leads."""
        self.steadily(lambda: self.cluster.need_same(*counters))

    def steadily(self, function):
        """What function returns while the group is settled: where it fails it
        is tried again, for on a busy machine another one may lead meanwhile."""
        deadline = time.monotonic() + server.LIMIT_S
        while True:
            self.settle()
            try:
                return function()
            except (AssertionError, RuntimeError, KeyError, OSError,
                    server.Closed):
                if time.monotonic() > deadline:
                    raise
