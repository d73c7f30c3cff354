# SPDX-License-Identifier: BSD-3-Clause
"""A server for tests of the cold tier, and its client."""

import signal

from cold import seal
from daemon import Daemon, Place, need_sound
from server import WEIBO
from tap import equal

SMALL_HOT = "--hot-memory=16m"


class Cold:
    """A server, and a connection whose requests meet cold records only."""

    def __init__(self, *options, lines=WEIBO, names=("weibo",)):
        self.place = Place()
        self.names = names
        self.daemon = Daemon(self.place, "--shards=4", *options)
        try:
            self.daemon.start()
            self.connection = self.daemon.connect()
            self.connection.tell(*lines)
        except BaseException:
            self.daemon.kill(show=True)
            self.place.remove()
            raise

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                self.daemon.stop()
                need_sound(self.place)
            else:
                self.daemon.kill(show=True)
        finally:
            self.place.remove()

    def seal(self):
        for name in self.names:
            seal(self.connection, name)

    def restart(self, how=signal.SIGTERM):
        self.connection.close()
        if how == signal.SIGKILL:
            self.daemon.murder()
        else:
            self.daemon.stop(how)
        self.daemon.start()
        self.connection = self.daemon.connect()

    def dialog(self, *pairs):
        """(request, reply lines): asked of cold records, each."""
        for request, reply in pairs:
            self.seal()
            self.connection.send(request.replace("\n", "\r\n") + "\r\n")
            for wanted in reply.split("\n") if reply else ():
                equal(self.connection.line().decode(), wanted, request)

    def cells(self, *keys):
        return [int(value) for _, _, value in self.connection.get(*keys)]
