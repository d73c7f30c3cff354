# SPDX-License-Identifier: BSD-3-Clause
"""Many clients at once, and what they cost the server."""

import resource
import select
import socket
import struct

import tap


def room_for(files):
    """Raises this process's limit of open files, or skips the test."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < files:
        if hard != resource.RLIM_INFINITY and hard < files:
            raise tap.Skip("at most %d open files here" % hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))


def resident(running):
    """Resident bytes of the server that are its own, now: without what it
    maps from files, which comes and goes by itself."""
    with open("/proc/%d/status" % running.process.pid) as lines:
        for line in lines:
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) << 10
    raise RuntimeError("no RssAnon")


def forget_peak(running):
    """Lets peak_resident begin anew, from what is resident now: that."""
    path = "/proc/%d/" % running.process.pid
    with open(path + "clear_refs", "w", encoding="ascii") as file:
        file.write("5")
    return peak_resident(running)


def peak_resident(running):
    """The most resident bytes that the server has had, of files, too."""
    with open("/proc/%d/status" % running.process.pid) as lines:
        for line in lines:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    raise RuntimeError("no VmHWM")


def cpu_ticks(running):
    """Clock ticks of processor time that the server has used."""
    with open("/proc/%d/stat" % running.process.pid) as line:
        word = line.read().rpartition(")")[2].split()
    return int(word[11]) + int(word[12])


def hear_line(sockets):
    """Each must get one line; returns them."""
    lines = []
    for one in sockets:
        line = b""
        while not line.endswith(b"\n"):
            byte = one.recv(1)
            tap.check(byte, "the end instead of a line")
            line += byte
        lines.append(line)
    return lines


class Crowd:
    """Sockets that are connected to one server; plain ones, since there are
    many."""

    def __init__(self, running, count, receive_bytes=None):
        self.sockets = []
        for _ in range(count):
            one = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            one.settimeout(60)
            if receive_bytes:
                one.setsockopt(
                    socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes
                )
            one.connect(("127.0.0.1", running.port))
            self.sockets.append(one)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for one in self.sockets:
            one.close()

    def say(self, data):
        for one in self.sockets:
            one.sendall(data)

    def hear(self, data):
        """Each must get these bytes next."""
        for one in self.sockets:
            got = b""
            while len(got) < len(data):
                more = one.recv(len(data) - len(got))
                if not more:
                    break
                got += more
            tap.equal(got, data)

    def hear_line(self):
        """Each must get one line; returns them."""
        return hear_line(self.sockets)

    def push(self, data):
        """Sends what the sockets take, without waiting."""
        for one in self.sockets:
            one.setblocking(False)
            try:
                one.send(data)
            except (BlockingIOError, BrokenPipeError, ConnectionResetError):
                pass

    def reset(self):
        """Closes them all so that the other side sees an error."""
        for one in self.sockets:
            one.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
            )
            one.close()
        self.sockets = []

    def count_closed(self):
        """How many the server has closed, or reset."""
        poll = select.poll()
        for one in self.sockets:
            poll.register(one, select.POLLRDHUP)
        return len(poll.poll(0))
