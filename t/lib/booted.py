# SPDX-License-Identifier: BSD-3-Clause
"""systemd as process 1 of a root that chroots.Root made: systemd-nspawn boots
it in name spaces, and units are started there by systemctl."""

import os
import subprocess
import tempfile

import chroots
import server
from chroots import run, until
from tap import check, equal

CGROUPS = "/sys/fs/cgroup"


def one_hierarchy():
    """Shows the caller, who has mounts of its own, control groups of version 2
    alone: what runs containers refuses both versions beside each other."""
    if os.path.exists(CGROUPS + "/cgroup.procs"):
        return
    run("umount", "--recursive", CGROUPS)
    run("mount", "-t", "cgroup2", "none", CGROUPS)


class Machine:
    """A root that has been booted, with the network of the caller. Raises
    AssertionError where it cannot be."""

    def __init__(self, root):
        one_hierarchy()
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            ["systemd-nspawn", "--quiet", "--boot", "--directory=" + root.top,
             "--machine=tallyd-test", "--register=no", "--keep-unit",
             "--resolv-conf=off", "--timezone=off", "--link-journal=no",
             "--settings=no"],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        self.first = None
        try:
            until(self.is_up, "systemd that runs")
        except AssertionError:
            self.stop()
            raise

    def is_up(self):
        check(self.process.poll() is None, self.said())
        below = subprocess.run(
            ["pgrep", "-P", str(self.process.pid)], stdout=subprocess.PIPE,
            text=True, check=False).stdout.split()
        if len(below) != 1:
            return False
        self.first = below[0]
        done = subprocess.run(
            self.words("systemctl", "is-system-running"),
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            check=False)
        return done.stdout.strip() in ("running", "degraded")

    def words(self, *command):
        return ["nsenter", "--target", self.first, "--all", *command]

    def run(self, *command, status=0):
        return run(*self.words(*command), env=chroots.environment(),
                   status=status)

    def said(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace")[-4000:]

    def stop(self):
        """SIGTERM is a poweroff there."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(server.LIMIT_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Unit:
    """A unit of a machine; is used as chroots.Service."""

    def __init__(self, machine, name, port):
        self.machine, self.name, self.port = machine, name, port

    def shown(self, name):
        return self.machine.run("systemctl", "show", "--value", "--property",
                                name, self.name).strip()

    def is_active(self):
        return self.shown("ActiveState") == "active"

    def start(self):
        try:
            self.machine.run("systemctl", "start", self.name)
        except AssertionError as error:
            said = self.said()
            self.end()
            raise AssertionError(said) from error
        until(lambda: chroots.answers(self.port), "answer")

    def restart(self):
        before = self.shown("MainPID")
        self.machine.run("systemctl", "restart", self.name)
        check(self.shown("MainPID") != before, "another process")
        until(lambda: chroots.answers(self.port), "answer")

    def said(self):
        """What its last process has written."""
        return self.machine.run(
            "journalctl", "--output=cat",
            "_SYSTEMD_INVOCATION_ID=" + self.shown("InvocationID"))

    def end(self):
        self.machine.run("systemctl", "stop", self.name)
        subprocess.run(self.machine.words("systemctl", "reset-failed",
                                          self.name),
                       stderr=subprocess.DEVNULL, check=False)

    def stop(self):
        """What it has said meanwhile."""
        self.machine.run("systemctl", "stop", self.name)
        equal(self.shown("Result"), "success", self.said())
        return self.said()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.end()
