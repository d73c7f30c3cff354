# SPDX-License-Identifier: BSD-3-Clause
"""Machines joined by a bridge: each a network namespace with an address, so
that its links can be cut, for both directions or one, or made slow. This
process is in a namespace of its own meanwhile, at the bridge. Needs root.

    with Network("abc") as network:
        network.address("a")      # where its servers are
        network.wrapper("a")      # words before their command
        network.cut("a")          # from everybody; heal() undoes all
"""

import ctypes
import os
import subprocess

import tap
from disk import need_root

CLONE_NEWNET = 0x40000000  # linux/sched.h
NOBODY = "02:00:00:00:00:01"  # an Ethernet address that nobody has
BRIDGE = "bridge"
LIBC = ctypes.CDLL(None, use_errno=True)
FOLDER = "/run/netns"


def ip(*words, inside=None):
    """ip(8), in the namespace of that name."""
    command = ["ip", *words]
    if inside:
        command = ["nsenter", "--net=" + inside, *command]
    done = subprocess.run(command, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError("%s: %s" % (" ".join(command), done.stdout))


def change(function, *arguments):
    """A call of the C library that says 0."""
    if function(*arguments) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def cable(name):
    """The bridge's end of its cable; no word of ip(8)'s."""
    return "to-" + name


class Network:
    def __init__(self, names):
        need_root("ip", "tc", "nsenter")
        self.names = list(names)
        self.faults = []  # how each is undone
        self.files = {}   # the namespaces, open

    def __enter__(self):
        self.before = os.open("/proc/self/ns/net", os.O_RDONLY)
        try:
            change(LIBC.unshare, CLONE_NEWNET)
        except OSError as error:
            os.close(self.before)
            raise tap.Skip("no network namespace here: %s" % error) from None
        try:
            ip("link", "set", "lo", "up")
            ip("link", "add", BRIDGE, "type", "bridge")
            ip("address", "add", "10.77.0.254/24", "dev", BRIDGE)
            ip("link", "set", BRIDGE, "up")
            for name in self.names:
                self.join(name)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for file in self.files.values():
            os.close(file)
        self.files = {}
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", self.title(name)],
                           stderr=subprocess.DEVNULL, check=False)
        change(LIBC.setns, self.before, CLONE_NEWNET)
        os.close(self.before)

    def title(self, name):
        """Of the namespace: one that no other run has."""
        return "tallyd-%d-%s" % (os.getpid(), name)

    def path(self, name):
        return os.path.join(FOLDER, self.title(name))

    def join(self, name):
        """A machine more: a namespace, and a cable to the bridge."""
        inside = self.path(name)
        ip("netns", "add", self.title(name))
        ip("link", "add", cable(name), "type", "veth", "peer", "name", "eth0",
           "netns", self.title(name))
        ip("link", "set", cable(name), "master", BRIDGE, "up")
        ip("address", "add", self.address(name) + "/24", "dev", "eth0",
           inside=inside)
        for device in ("eth0", "lo"):
            ip("link", "set", device, "up", inside=inside)
        self.files[name] = os.open(inside, os.O_RDONLY | os.O_CLOEXEC)

    def join_starter(self):
        """Where this program was started the machines can be reached, too;
        its address there."""
        name, address = "tallyd-%d" % os.getpid(), "10.77.0.253"
        starter = "/proc/%d/fd/%d" % (os.getpid(), self.before)
        ip("link", "add", cable("starter"), "type", "veth", "peer", "name",
           name, "netns", starter)
        ip("link", "set", cable("starter"), "master", BRIDGE, "up")
        ip("address", "add", address + "/24", "dev", name, inside=starter)
        ip("link", "set", name, "up", inside=starter)
        return address

    def address(self, name):
        return "10.77.0.%d" % (1 + self.names.index(name))

    def wrapper(self, name):
        return ["nsenter", "--net=" + self.path(name)]

    def enter(self, name):
        """The thread that calls this is on that machine from now on."""
        change(LIBC.setns, self.files[name], CLONE_NEWNET)

    def cut(self, name):
        """Nobody hears of it any more; nothing is told to anybody."""
        ip("link", "set", cable(name), "down")
        self.faults.append(lambda: ip("link", "set", cable(name), "up"))

    def lose(self, name, other):
        """What name sends to other gets lost, not what comes back."""
        inside, address = self.path(name), self.address(other)
        ip("neighbour", "replace", address, "lladdr", NOBODY, "dev", "eth0",
           "nud", "permanent", inside=inside)
        self.faults.append(lambda: ip(
            "neighbour", "delete", address, "dev", "eth0", inside=inside))

    def part(self, name, other):
        """Neither hears the other."""
        self.lose(name, other)
        self.lose(other, name)

    def filter(self, name, other, what):
        """What name is sent by other meets that statement of nft(8)."""
        inside = ["nsenter", "--net=" + self.path(name), "nft"]
        table = "from-" + other
        rules = ("table ip %s { chain input { type filter hook input "
                 "priority 0; policy accept; ip saddr %s %s; }; }" % (
                     table, self.address(other), what))
        subprocess.run(inside + [rules], check=True)
        self.faults.append(lambda: subprocess.run(
            inside + ["delete", "table", "ip", table], check=True))

    def reset(self, name, other):
        """What either sends to the other over TCP ends the connection."""
        for one, sender in ((name, other), (other, name)):
            self.filter(one, sender, "meta l4proto tcp reject with tcp reset")

    def shed(self, name, other, percent):
        """Of what name sends to other so much gets lost."""
        self.filter(other, name,
                    "numgen random mod 100 < %d drop" % percent)

    def slow(self, name, rate):
        """What it sends comes no faster: rate as tc(8) has it, 1mbit."""
        inside = ["nsenter", "--net=" + self.path(name)]
        subprocess.run(inside + [
            "tc", "qdisc", "replace", "dev", "eth0", "root", "tbf", "rate",
            rate, "burst", "32kb", "latency", "400ms"], check=True)
        self.faults.append(lambda: subprocess.run(inside + [
            "tc", "qdisc", "delete", "dev", "eth0", "root"], check=True))

    def heal(self):
        while self.faults:
            self.faults.pop()()
