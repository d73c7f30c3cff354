# SPDX-License-Identifier: BSD-3-Clause
"""A Debian root made by debootstrap, from the mirror and through the proxy
that this machine's apt has, and services in it by their units' lines."""

import ctypes
import fcntl
import os
import pwd
import re
import shlex
import socket
import struct
import subprocess
import tempfile
import time

import server
from server import Connection
from tap import check, equal

CLONE_NEWNET = 0x40000000  # linux/sched.h
IFREQ = "16sH14x"          # struct ifreq with its flags (netdevice(7))
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
RELEASE = "bookworm"
WORK_LIMIT_S = 1800  # for what builds and what comes over the network


def run(*command, cwd=None, env=None, status=0):
    """Output of both kinds; raises where it ends otherwise."""
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace", cwd=cwd,
        env=env, check=False, timeout=WORK_LIMIT_S)
    equal(done.returncode, status,
          "%s\n%s" % (shlex.join(command), done.stdout[-4000:]))
    return done.stdout


def mirror():
    """Where apt has the main archive of this release from."""
    lines = run("apt-get", "indextargets", "--format",
                "$(CREATED_BY) $(RELEASE) $(COMPONENT) $(SITE)").splitlines()
    for line in lines:
        kind, release, component, site = line.split(maxsplit=3)
        if (kind, release, component) == ("Packages", RELEASE, "main"):
            return site
    raise AssertionError("apt has no main archive of " + RELEASE)


def apt_lines():
    """What this machine's apt says of getting files."""
    return "".join(line + "\n" for line in run("apt-config",
                                               "dump").splitlines()
                   if re.match(r"Acquire::(http|https|Retries|Check)", line))


def environment():
    """For debootstrap, and in the root: the proxy that apt has, and no
    directory of this machine."""
    found = dict(os.environ, DEBIAN_FRONTEND="noninteractive",
                 LC_ALL="C.UTF-8", PATH="/usr/sbin:/usr/bin:/sbin:/bin")
    found.pop("TMPDIR", None)
    proxy = re.search(r'(?m)^Acquire::http::Proxy "(.+)";$', apt_lines())
    if proxy:
        found["http_proxy"] = proxy[1]
    return found


def leave_network():
    """From here on this process and its children have a network of their own,
    in which every port is free."""
    equal(ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET), 0,
          "unshare")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = fcntl.ioctl(any_socket, SIOCGIFFLAGS,
                              struct.pack(IFREQ, b"lo", 0))
        name, flags = struct.unpack(IFREQ, request)
        fcntl.ioctl(any_socket, SIOCSIFFLAGS,
                    struct.pack(IFREQ, name, flags | IFF_UP))


def answers(port, host="127.0.0.1"):
    """Whether a client is served there; while it loads it is not."""
    try:
        with Connection((host, port)) as connection:
            return connection.ask("get a") == "END"
    except (ConnectionError, server.Closed):
        return False


def until(condition, what):
    deadline = time.monotonic() + server.LIMIT_S
    while not condition():
        check(time.monotonic() < deadline, "no " + what)
        time.sleep(server.POLL_MS / 1000)


def clear(directory):
    """Removes a directory with what is mounted below it."""
    with open("/proc/self/mounts", encoding="ascii") as lines:
        mounted = [line.split()[1] for line in lines]
    for place in reversed(mounted):
        if place.startswith(directory + "/"):
            run("umount", place)
    run("rm", "-rf", "--one-file-system", directory)


class Root:
    """The root, in a directory that the caller removes with clear; the caller
    has mounts of its own (unshare -m). machine: the booted.Machine that it is
    now, which commands run in then."""

    def __init__(self, directory):
        self.machine = None
        self.top = tempfile.mkdtemp(prefix="root-", dir=directory)
        os.chmod(self.top, 0o755)
        run("debootstrap", "--variant=minbase", RELEASE, self.top, mirror(),
            env=environment())
        run("mount", "-t", "proc", "proc", self.path("proc"))
        self.write("etc/apt/apt.conf.d/99test", apt_lines())
        self.write("usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n", 0o755)

    def path(self, name):
        return os.path.join(self.top, name.lstrip("/"))

    def exists(self, name):
        return os.path.exists(self.path(name))

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def write(self, name, text, mode=0o644):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.path(name), mode)

    def run(self, *command, status=0):
        if self.machine is not None:
            return self.machine.run(*command, status=status)
        return run("chroot", self.top, *command, env=environment(),
                   status=status)

    def install(self, *names, only=()):
        """Packages of the mirror, and files of the host with what they want
        from there; what was changed in configurations stays, as it does where
        nobody is asked. only: ["--download-only"] has what they want for a
        time without the mirror."""
        files = []
        for name in names:
            if os.path.isabs(name):
                run("cp", name, self.path("var/cache"))
                name = "/var/cache/" + os.path.basename(name)
            files.append(name)
        self.run("apt-get", "--yes", "--quiet", "--no-install-recommends",
                 "--option", "Dpkg::Options::=--force-confold", *only,
                 "install", *files)

    def user(self, name):
        """(uid, gid) there."""
        found = re.search(r"(?m)^%s:[^:]*:(\d+):(\d+):" % name,
                          self.read("etc/passwd"))
        return (int(found[1]), int(found[2])) if found else None

    def command(self, user, *command):
        """Words that run a command there as a user."""
        uid, gid = self.user(user)
        return ["chroot", self.top, "setpriv", "--reuid=%d" % uid,
                "--regid=%d" % gid, "--clear-groups", "--no-new-privs",
                *command]


class Service:
    """A unit of the root, started as systemd starts it: its directories, its
    environment, its user, ExecStart, and ExecStartPost once clients are
    served."""

    DIRECTORIES = {"StateDirectory": "/var/lib/", "LogsDirectory": "/var/log/",
                   "RuntimeDirectory": "/run/",
                   "ConfigurationDirectory": "/etc/"}

    def __init__(self, root, unit, port):
        self.root, self.port = root, port
        text = root.read("lib/systemd/system/" + unit)
        self.line = dict(re.findall(r"(?m)^(\w+)=(.*)$", text))
        self.process = None

    def prepare(self):
        """The environment, with the directories made."""
        uid, gid = self.root.user(self.line["User"])
        found = dict(word.split("=")
                     for word in self.line["Environment"].split())
        path = self.line["EnvironmentFile"].lstrip("-")
        if self.root.exists(path):
            found.update(line.split("=") for line in
                         self.root.read(path).splitlines())
        for name, above in self.DIRECTORIES.items():
            directory = self.root.path(above + self.line[name])
            os.makedirs(directory, exist_ok=True)
            if name != "ConfigurationDirectory":
                os.chown(directory, uid, gid)
                os.chmod(directory, int(self.line.get(name + "Mode", "755"),
                                        8))
            found[re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper()] = \
                above + self.line[name]
        return found

    def start(self):
        found = self.prepare()
        words = re.sub(r"\$\{?(\w+)\}?", lambda m: found[m[1]],
                       self.line["ExecStart"]).split()
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            self.root.command(self.line["User"], *words),
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
            env=dict(found, PATH="/usr/bin:/bin:/usr/sbin"))
        until(self.is_up, "answer")
        self.root.run(*shlex.split(self.line["ExecStartPost"].lstrip("+")))

    def is_up(self):
        check(self.process.poll() is None, self.said())
        return answers(self.port)

    def restart(self):
        self.stop()
        self.start()

    def said(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    def stop(self):
        """What it has said meanwhile."""
        self.process.terminate()
        equal(self.process.wait(server.LIMIT_S), 0, self.said())
        self.process = None
        return self.said()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        if self.process is not None:
            self.process.kill()
            self.process.wait()


def owner(path):
    return pwd.getpwuid(os.stat(path).st_uid).pw_name
