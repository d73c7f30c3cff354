# SPDX-License-Identifier: BSD-3-Clause
"""Debian's nutcracker in front of several groups, by the configuration that
contrib/nutcracker/make writes as it stands there."""

import os
import shutil
import subprocess
import time
import zlib

import server
import tap
from ports import free_port
from tap import check

HERE = os.path.dirname(os.path.abspath(__file__))
MAKE = os.path.join(HERE, "../../contrib/nutcracker/make")
NUTCRACKER = shutil.which("nutcracker") or "/usr/sbin/nutcracker"


def group_of(number, n):
    """Which of n groups has an id."""
    return zlib.crc32(b"%d" % number) % n


def ids_of(group, n, count, first=1):
    """So many ids of one of n groups, from first on."""
    found, number = [], first
    while len(found) < count:
        if group_of(number, n) == group:
            found.append(number)
        number += 1
    return found


def owns(group, n):
    """The option of a group's servers."""
    return "--owns=crc32a:%d/%d" % (group, n)


class Router:
    """proxies: of haproxy.Proxy, one a group, in their order. Its own two ports
    are at an address; wrapper: words before its command."""

    def __init__(self, proxies, changes, reads, address="127.0.0.1",
                 wrapper=()):
        if not os.access(NUTCRACKER, os.X_OK):
            raise tap.Skip("nutcracker is not installed")
        self.home = proxies[0].home
        self.address, self.wrapper = address, list(wrapper)
        self.changes, self.reads = changes, reads
        self.list = self.home.file("groups", "".join(
            "group%d %s:%d %s:%d\n" % (number, one.address, one.changes,
                                       one.address, one.reads)
            for number, one in enumerate(proxies)))
        self.conf = self.home.file("nutcracker.yml", subprocess.run(
            [MAKE, "--changes=%s:%d" % (address, changes),
             "--reads=%s:%d" % (address, reads), self.list],
            stdout=subprocess.PIPE, text=True, check=True).stdout)

    def __enter__(self):
        self.process = subprocess.Popen(
            [*self.wrapper, NUTCRACKER, "-c", self.conf,
             "-s", str(free_port()), "-a", "127.0.0.1",
             "-o", os.path.join(self.home.directory, "nutcracker.log"),
             "-p", os.path.join(self.home.directory, "nutcracker.pid")],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, cwd=self.home.directory)
        try:
            self.wait()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def wait(self):
        """Until it takes connections."""
        deadline = time.monotonic() + server.LIMIT_S
        while True:
            try:
                for port in (self.changes, self.reads):
                    server.Connection((self.address, port)).close()
                return
            except OSError:
                check(self.process.poll() is None, "nutcracker ended")
                check(time.monotonic() < deadline, "nutcracker is silent")
                time.sleep(server.POLL_MS / 1000)

    def connect(self, port=None):
        return server.Connection((self.address, port or self.changes))
