# SPDX-License-Identifier: BSD-3-Clause
"""Nodes of a group that have nothing but the process that speaks with etcd:
t/system/etcd_node.c, and what they print."""

import os
import re
import signal
import subprocess
import threading
import time

import etcd
from server import LIMIT_S
from tap import check

PREFIX = "/tallyd/c/g/"
LONG_TTL_S = 60  # none runs out while a test is under way
SHORT_TTL_S = 6  # on a busy machine, too, it runs out only where it is to
LONG_MS = 60000
HANG_MS = 5000


class Node:
    """A node without a directory; a context."""

    def __init__(self, urls, ttl_s=LONG_TTL_S, hang_ms=LONG_MS,
                 timeout_ms=10000, pems=(), user=None):
        self.lines, self.at, self.left_ms = [], 0, None
        self.moved = threading.Condition()
        self.process = subprocess.Popen(
            [os.path.join(os.environ["top_builddir"], "t/system/etcd_node"),
             PREFIX, str(ttl_s), str(hang_ms), str(timeout_ms), *pems,
             *(["user=" + user] if user else []), *urls],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            encoding="ascii", bufsize=1)
        threading.Thread(target=self.read, daemon=True).start()
        self.hear("^(state|unreachable) ")
        self.keeper = self.child()

    def child(self):
        path = "/proc/%d/task/%d/children" % ((self.process.pid,) * 2)
        with open(path, encoding="ascii") as children:
            return int(children.read().split()[0])

    def read(self):
        for line in self.process.stdout:
            with self.moved:
                if line.startswith("beat "):
                    self.left_ms = int(line.split()[2])
                else:
                    self.lines.append(line.rstrip("\n"))
                self.moved.notify_all()

    def hear(self, pattern, whole=False):
        """The next line in which that is found; others are passed over. whole:
        one that was passed over will do as well."""
        if whole:
            self.at = 0
        end = time.monotonic() + LIMIT_S
        with self.moved:
            while True:
                while self.at < len(self.lines):
                    line = self.lines[self.at]
                    self.at += 1
                    if re.search(pattern, line):
                        return line
                left = end - time.monotonic()
                check(left > 0, "not heard: %s, but %r" %
                      (pattern, self.lines[-5:]))
                self.moved.wait(left)

    def await_left(self, is_right):
        """Until the deadline that beats bring is such a one; in ms from now."""
        end = time.monotonic() + LIMIT_S
        with self.moved:
            while self.left_ms is None or not is_right(self.left_ms):
                left = end - time.monotonic()
                check(left > 0, "the deadline stays at %r" % self.left_ms)
                self.moved.wait(left)

    def tell(self, line):
        self.process.stdin.write(line + "\n")

    def ask(self, line):
        """How it comes out. A state that it has led to may be heard before
        that, and is still the next line to be heard."""
        with self.moved:
            before = self.at = len(self.lines)
        self.tell(line)
        number = line.split()[1]
        answer = self.hear("^result %s |^not asked" % number)
        self.at = before
        return answer.split(" ", 2)[2]

    def stop(self):
        for pid in (self.process.pid, self.keeper):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def take(node, name, number=1, term=1, key=0, seen=0, voters=""):
    return node.ask("take %d %s %d %d %d %s" %
                    (number, name, term, key, seen, voters))


def revision(answer):
    return int(answer.split()[1])


def seen(line, name):
    """Of a line of a state: that field, apart at its commas."""
    return re.search(r" %s=(\S*)" % name, line).group(1).split(",")


def seen_term(line):
    return int(seen(line, "term")[1])


def cluster_term(cluster):
    """One less than the revision at which the term was put."""
    found = cluster.call("kv/range", {"key": etcd.encode(PREFIX + "term")})
    return int(found["kvs"][0]["mod_revision"]) - 1
