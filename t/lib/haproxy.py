# SPDX-License-Identifier: BSD-3-Clause
"""Debian's haproxy, by the recipe in contrib/haproxy as it stands there, but
for addresses."""

import os
import re
import shutil
import subprocess

import server
import tap
from tap import check, equal

HERE = os.path.dirname(os.path.abspath(__file__))
RECIPE = os.path.join(HERE, "../../contrib/haproxy/tallyd.cfg")
HAPROXY = shutil.which("haproxy") or "/usr/sbin/haproxy"


class Proxy:
    """The recipe for these nodes, up to three, whose ports stay the same. Its
    own two ports are at an address; wrapper: words before its command."""

    def __init__(self, nodes, changes, reads, address="127.0.0.1", wrapper=()):
        if not os.access(HAPROXY, os.X_OK):
            raise tap.Skip("haproxy is not installed")
        self.home = nodes[0]
        self.changes, self.reads = changes, reads
        self.address, self.wrapper = address, list(wrapper)
        with open(RECIPE, encoding="utf-8") as file:
            text = file.read()
        for old, new in (("127.0.0.1:11311", self.changes),
                         ("127.0.0.1:11312", self.reads)):
            equal(text.count(old), 1, old)
            text = text.replace(old, "%s:%d" % (address, new))
        names = re.findall(r"(?m)^    server (\w) .* check$", text)
        equal(len(names), 6, "lines of servers")
        for name, node in zip("abc", nodes):
            text = re.sub(r"(?m)^    server %s \S+" % name,
                          "    server %s %s" % (
                              node.name, node.client_address), text)
        text = re.sub(r"(?m)^    server \w 10\.0\..*\n", "", text)
        self.conf = self.home.file("haproxy.cfg", text)
        self.log = os.path.join(self.home.directory, "haproxy.log")

    def __enter__(self):
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [*self.wrapper, HAPROXY, "-db", "-f", self.conf],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def ask(self, port, line):
        """One line on a connection of its own; "": nobody is behind it."""
        try:
            with server.Connection((self.address, port)) as connection:
                return connection.ask(line)
        except (server.Closed, OSError):
            check(self.process.poll() is None, "haproxy ended")
            return ""
