# SPDX-License-Identifier: BSD-3-Clause
"""The servers beside tallyd in the benchmarks, each with the face of
server.Server: Debian's memcached and redis-server, and the floor, a server
that answers the same bytes without looking anything up (floor.c). $MEMCACHED,
$REDIS and $FLOOR name the programs."""

import os
import re
import shutil
import socket
import sys

import server

ITEM_BYTES_MAX = 250  # memory a memcached item is given, so none is evicted
MEGABYTES_MIN = 1024


def program(variable, command):
    """The path of a program: what the environment names, or that on PATH."""
    path = os.environ.get(variable) or shutil.which(command)
    if not path or not os.access(path, os.X_OK):
        sys.exit("%s: no %s; see contrib/debian-packages.txt, or set $%s"
                 % (os.path.basename(sys.argv[0]), command, variable))
    return path


class Rival(server.Server):
    """A server that is no tallyd: options of its own, and no port file."""

    def __init__(self, path, *options):
        super().__init__(path=path, port=None, threads=1, as_user=False,
                         data=None)
        self.command = [path, *options]

    def start(self):
        self.launch()
        self.wait(self.answers, "an answer")

    def answers(self):
        raise NotImplementedError

    def stop(self, *_):
        """A signal ends it; with which status says nothing."""
        self.kill()

    def kill(self, show=False):
        """What it has written is shown where it has ended by itself."""
        died = self.process is not None and self.process.poll() is not None
        super().kill(show and died)


class Redis(Rival):
    """redis-server, without snapshots; with an append-only file where fsync
    is no, everysec or always."""

    def __init__(self, fsync=None):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        super().__init__(
            program("REDIS", "redis-server"), "--port", str(port), "--bind",
            "127.0.0.1", "--io-threads", "1", "--save", "",
            "--appendonly", "yes" if fsync else "no",
            "--appendfsync", fsync or "no",
            "--auto-aof-rewrite-percentage", "0")
        self.command += ["--dir", self.directory]
        self.name = "Redis, " + fsync if fsync else "Redis"
        self.port = port
        self.load_options = ["--protocol=resp"]

    def answers(self):
        try:
            with self.connect() as connection:
                return connection.ask("PING") == "+PONG"
        except (OSError, server.Closed):
            return False


class Memcached(server.Server):
    """With room for so many items."""

    def __init__(self, items):
        megabytes = max(MEGABYTES_MIN, items * ITEM_BYTES_MAX >> 20)
        super().__init__("-m", str(megabytes), threads=1,
                         path=program("MEMCACHED", "memcached"))
        self.name = "memcached"
        self.load_options = ["--items"]


class Floor(Rival):
    """Answers every command with the same bytes: keys values of a key and a
    number with so many digits on average, or without keys such a number."""

    def __init__(self, keys, key, digits):
        super().__init__(os.environ["FLOOR"], "--port=0", "--keys=%d" % keys,
                         "--key=" + key, "--digits=%.3f" % digits)
        self.name = "floor"
        self.load_options = []

    def answers(self):
        """When it has said on which port it listens."""
        found = re.search(r"\b(\d+)\n", self.stderr())
        if found:
            self.port = int(found.group(1))
        return bool(found)
