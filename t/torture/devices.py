# SPDX-License-Identifier: BSD-3-Clause
"""Two devices of one user, and proxies between them and the server that lose
answers, and say commands again, at once or late. Each device asks what is
unread, shows it, and marks how far it has shown. Whatever is lost: no event is
marked that nobody has shown, a mark goes not back, and at rest each event has
been shown and nothing is unread."""

import random

import server
from tap import check, equal

SCHEMA = (
    "add counter user",
    "add column user uid primarykey",
    "add column user at_num suffix=at",
    "add column user at_seen suffix=atseen marks=at_num unread=unat",
)
USER = 77
LOST, REPEATED, LATE = 0.3, 0.2, 0.2
LATE_MAX = 50  # commands that are to be said again


class Proxy:
    """A connection on which an answer may get lost, and a command be said
    twice."""

    def __init__(self, connection, source):
        self.connection = connection
        self.random = source
        self.late = []
        self.is_lossy = True
        self.n_lost = self.n_repeated = 0

    def say(self, command):
        """Commands are gets and sets."""
        self.connection.send(command)
        if command.startswith("get"):
            return {key: int(value)
                    for key, _, value in self.connection.values()}
        return self.connection.line()

    def repeat(self, at):
        self.n_repeated += 1
        self.say(self.late.pop(at))

    def ask(self, command):
        """The answer, or None where it is lost."""
        answer = self.say(command)
        if not self.is_lossy:
            return answer
        if self.random.random() < REPEATED and len(self.late) < LATE_MAX:
            self.late.append(command)
        if self.late and self.random.random() < LATE:
            self.repeat(self.random.randrange(len(self.late)))
        if self.random.random() < LOST:
            self.n_lost += 1
            return None
        return answer

    def calm(self):
        """What is late comes; from now on nothing is lost."""
        while self.late:
            self.repeat(0)
        self.is_lossy = False


class Shown:
    """Events that somebody has seen; all up to front."""

    def __init__(self):
        self.some = set()
        self.front = 0

    def add(self, first, last):
        self.some.update(range(max(first, self.front + 1), last + 1))
        while self.front + 1 in self.some:
            self.front += 1
            self.some.remove(self.front)


class Device:
    def __init__(self, proxy, shown):
        self.proxy = proxy
        self.shown = shown
        self.marks = []  # that are still to be said

    def poll(self):
        """False where the answer is lost: nothing is shown."""
        found = self.proxy.ask("get %d.unat %d.at\r\n" % (USER, USER))
        if found is None:
            return False
        at = found["%d.at" % USER]
        self.shown.add(at - found["%d.unat" % USER] + 1, at)
        self.marks.append(at)
        return True

    def mark(self, which):
        """What is not answered stays to be said."""
        text = str(self.marks[which])
        answer = self.proxy.ask("set %d.atseen 0 0 %d\r\n%s\r\n" % (
            USER, len(text), text))
        if answer is not None:
            equal(answer, b"STORED")
            del self.marks[which]


def rounds(count, seed, tell=lambda text: None):
    """Returns (events, answers lost, commands repeated)."""
    source = random.Random(seed)
    shown, events, mark = Shown(), 0, 0
    with server.Server() as running:
        admin = running.connect()
        admin.tell(*SCHEMA)
        devices = [Device(Proxy(running.connect(), source), shown)
                   for _ in range(2)]
        for number in range(count):
            if number % 1000 == 0:
                tell("%d rounds" % number)
            if source.random() < 0.4:
                events += source.randint(1, 3)
                equal(admin.set("%d.at" % USER, str(events)), "STORED")
            device = source.choice(devices)
            if device.marks and source.random() < 0.5:
                device.mark(source.randrange(len(device.marks)))
            else:
                device.poll()
            now = int(admin.get("%d.atseen" % USER)[0][2])
            check(mark <= now <= events, "%d, then %d" % (mark, now))
            check(now <= shown.front, "%d is marked, %d shown" % (
                now, shown.front))
            mark = now
        for device in devices:
            device.proxy.calm()
        for device in devices:
            check(device.poll(), "a poll")
            while device.marks:
                device.mark(0)
        equal((shown.front, shown.some), (events, set()))
        equal(admin.get("%d.unat" % USER)[0][2], b"0")
        equal(admin.get("%d.atseen" % USER)[0][2], b"%d" % events)
    return (events, sum(device.proxy.n_lost for device in devices),
            sum(device.proxy.n_repeated for device in devices))
