# SPDX-License-Identifier: BSD-3-Clause
"""A server whose calls on its log file strace holds up. What has returned is
told by the trace, no clock."""

import os
import signal

from clients import SCHEMA
from daemon import Daemon, Place
from points import need_strace

NAME = "log-%020d.wal"


class Delayed:
    """On a directory that has a schema. calls: as strace names them; when: as
    of strace's inject, such as ":when=1"; more: of the server's process."""

    def __init__(self, calls, seconds, *options, when="", path=None, **more):
        need_strace()
        self.place = Place()
        self.path = path
        self.options = options
        self.trace = os.path.join(self.place.top, "trace")
        with Daemon(self.place, path=path) as daemon:
            daemon.start()
            with daemon.connect() as connection:
                connection.tell(*SCHEMA)
        number = max(int(name[len("log-"):-len(".wal")])
                     for name in self.place.names()
                     if name.startswith("log-") and name.endswith(".wal")) + 1
        log = os.path.join(os.path.realpath(self.place.data), NAME % number)
        wrapper = ["strace", "-D", "-f", "-o", self.trace, "-P", log,
                   "-e", "trace=" + calls, "-e",
                   "inject=%s:delay_enter=%d%s" % (
                       calls, seconds * 1000000, when)]
        self.daemon = Daemon(self.place, *options, wrapper=wrapper,
                             path=path, **more)

    def __enter__(self):
        self.daemon.start()
        return self

    def __exit__(self, kind, *_):
        if not self.daemon.stopped:
            self.shoot()
            self.daemon.kill(show=kind is not None)
        self.place.remove()

    def returned(self):
        """How many calls that were held up have returned."""
        try:
            with open(self.trace, encoding="latin-1") as lines:
                return lines.read().count("DELAYED")
        except FileNotFoundError:
            return 0

    def shoot(self):
        """Kills the server while a call may be held up: it is never made.
        strace would have the process wait for the end of the delay."""
        process = self.daemon.process
        if process is None or process.poll() is not None:
            return
        with open("/proc/%d/status" % process.pid,
                  encoding="latin-1") as status:
            tracer = next(int(line.split()[1]) for line in status
                          if line.startswith("TracerPid:"))
        process.kill()
        if tracer != 0:
            os.kill(tracer, signal.SIGKILL)

    def murder(self):
        """kill -9, as a step of a test."""
        self.shoot()
        self.daemon.murder()
