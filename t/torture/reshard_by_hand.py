# SPDX-License-Identifier: BSD-3-Clause
"""Ids are moved as a person could do it who has no tallyctl: nobody changes
them while they are copied. What is left out on purpose must be seen by the
oracle of reshard.py, so this also tests that."""

import threading
import time

import server
from oracle import Lost

RETRY_S = 0.05
PIECE = 500
LEFT_OUT = {"numbers": "what numbers there were",
            "records": "the last record of each dump",
            "members": "members",
            "barrier": "that the old group refuses changes meanwhile",
            "gate": "that the new group refuses changes meanwhile"}


class Again(Exception):
    """A server refuses something for now."""


def need(connection, line, *wanted):
    answer = connection.ask(line)
    if answer in wanted:
        return
    if answer.startswith("SERVER_ERROR"):
        raise Again(answer)
    raise Lost("%s: %r" % (line, answer))


def send_all(connection, lines, wanted):
    for first in range(0, len(lines), PIECE):
        some = lines[first : first + PIECE]
        connection.send("".join(line + "\r\n" for line in some))
        for line in some:
            answer = connection.line().decode("latin-1")
            if answer.startswith("SERVER_ERROR"):
                raise Again(answer)
            if answer != wanted:
                raise Lost("%s: %r" % (line, answer))


class ByHand:
    """In the place of reshard.Mover. leaves_out: one of LEFT_OUT."""

    def __init__(self, world, names, leaves_out=None):
        self.world, self.names, self.leaves_out = world, names, leaves_out
        self.is_over = threading.Event()
        self.thread = self.fault = None
        self.is_done = False
        self.runs = 0

    def start(self, cuts_over):
        self.kill()
        self.is_over.clear()
        self.runs += 1
        if cuts_over and not self.is_done:
            self.thread = threading.Thread(target=self.run, daemon=True)
            self.thread.start()

    def kill(self):
        self.is_over.set()
        if self.thread is not None:
            self.thread.join()
            self.thread = None

    def run(self):
        while not self.is_over.is_set():
            try:
                self.move()
                self.is_done = True
                return
            except (server.Closed, OSError, Again):
                time.sleep(RETRY_S)
            except Exception as error: # whatever else is a failed test
                self.fault = error
                return

    def status(self):
        if self.fault:
            raise Lost(self.fault)
        return 0 if self.is_done else None

    def finish(self):
        deadline = time.monotonic() + server.LIMIT_S
        while self.status() is None:
            if time.monotonic() > deadline:
                raise Lost("it is never done")
            time.sleep(RETRY_S)

    def move(self):
        world = self.world
        rule = world.rule.text
        with world.old.head.connect() as old, \
                world.new.head.connect() as new:
            if self.leaves_out != "gate":
                need(new, "handover %s to %s" % (rule, self.names["old"]),
                     "OK")
            need(new, "feed on", "OK")
            self.declare(old, new)
            if self.leaves_out != "barrier":
                need(old, "handover %s to %s" % (rule, self.names["new"]),
                     "OK")
            self.copy(old, new)
            need(old, "handover %s to %s" % (rule, self.names["new"]), "OK")
            need(new, "handover %s here" % rule, "OK")

    def declare(self, old, new):
        for counter in self.world.counters:
            old.send("show counter %s\r\n" % counter)
            for line in old.until(b"END"):
                need(new, line.decode("latin-1"), "STORED")

    def copy(self, old, new):
        for counter in self.world.counters:
            old.send("dump counter %s of %s\r\n" % (
                counter, self.world.rule.text))
            lines = [line.decode("latin-1") for line in old.until(b"END")]
            if self.leaves_out == "records":
                lines = lines[:-1]
            elif self.leaves_out == "members":
                lines = [line for line in lines if ":" not in line]
            send_all(new, lines, "STORED")
        if self.leaves_out != "numbers":
            old.send("dump numbers\r\n")
            for line in old.until(b"END"):
                word, name, high, bits = line.decode("latin-1").split()
                need(new, "numbers %s %s %s" % (name, high, bits), "OK")
