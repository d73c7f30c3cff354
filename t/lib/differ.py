# SPDX-License-Identifier: BSD-3-Clause
"""Two servers that must answer the same: the reference, which is memcached
itself, and the one under test.

A stream is a list of units. A unit is one command, or a few that only make
sense together, and leaves both servers at the beginning of the next command.
Every unit is followed by a question whose answer is known (version, or a
binary no-op); what comes before that answer is the unit's reply. Replies are
compared byte for byte, but for what cannot be the same:

* cas uniques: each becomes the order in which it was first seen, and whether it
  is above or below the last one of its key (Face.cas_name);
* seconds left, or since a use: two apart is the same (Near); where they are
  more, the stream is played again: one of the servers may have stood still;
* what differ_allowed.py lists, unit by unit, each with its reason.

A difference is made small before it is shown: units before it are left out
while it stays.
"""

import random
import re
import socket
import time

import server
from server import Closed
from transcript import cut_random

# Seconds after which a reply that is not complete counts as missing.
REPLY_S = 60 if server.SANITIZER else 10
# Seconds between two servers' clocks, and the second that passes meanwhile.
SECONDS_APART = 2
# How often a stream is played again where only such seconds differ.
AGAIN_MAX = 3
# How many units a difference may cost while it is made small.
SHRINK_UNITS = 4000

TEXT, BINARY = "text", "binary"

REPEATED = re.compile(rb"(.)\1{39,}", re.DOTALL)

END_OF_STREAM = ("the connection is closed",)
NO_REPLY = ("no reply within %d s" % REPLY_S,)


def shown(data):
    """Bytes for a person to read."""
    data = REPEATED.sub(
        lambda run: b"${%s*%d}" % (run.group(1), len(run.group(0))), data)
    return "%.1200r" % data


class Near:
    """A number of seconds in a reply."""

    def __init__(self, seconds):
        self.seconds = seconds

    def __eq__(self, other):
        if not isinstance(other, Near):
            return False
        if self.seconds <= 0 or other.seconds <= 0:
            low = min(self.seconds, other.seconds)
            high = max(self.seconds, other.seconds)
            return low == high or (low == 0 and high <= SECONDS_APART)
        return abs(self.seconds - other.seconds) <= SECONDS_APART

    def __repr__(self):
        return "%d s" % self.seconds


def without_times(parts):
    """Parts of a reply, with all seconds the same."""
    if isinstance(parts, (list, tuple)):
        return [without_times(part) for part in parts]
    return Near if isinstance(parts, Near) else parts


class Cas:
    """A place in a unit's bytes for the cas unique that the server at hand
    last told of key, plus delta."""

    def __init__(self, key, delta=0, packed=False):
        self.key = key
        self.delta = delta
        self.packed = packed

    def render(self, face):
        number = (face.cas.get(self.key, 1) + self.delta) % 2**64
        if self.packed:
            return number.to_bytes(8, "big")
        return b"%d" % number

    def __repr__(self):
        return "<cas of %s%+d>" % (self.key.decode("latin-1"), self.delta)


class Unit:
    """parts: bytes and Cas, sent one behind the other. key: the one that
    the reply is about where it does not say so. alone: what it may leave
    behind differs, so it is not pipelined with others. closes: the server is
    expected to close the connection."""

    def __init__(self, *parts, key=b"", family=TEXT, alone=False,
                 closes=False):
        self.parts = parts
        self.key = key
        self.family = family
        self.alone = alone or closes
        self.closes = closes

    def render(self, face):
        return b"".join(
            part if isinstance(part, bytes) else part.render(face)
            for part in self.parts
        )

    def __repr__(self):
        return shown(b"".join(
            part if isinstance(part, bytes) else repr(part).encode()
            for part in self.parts
        ))


class Face:
    """One of the two servers, as the streams see it."""

    def __init__(self, running, families):
        self.running = running
        self.families = families
        self.lines = {}
        self.cas = {}
        self.order = {}

    def line(self, name):
        if name not in self.lines:
            self.lines[name] = self.families[name].Line(self.running)
        return self.lines[name]

    def close(self):
        for line in self.lines.values():
            line.connection.close()
        self.lines = {}

    def cas_name(self, key, number):
        """What a cas unique is called in a comparison; 0 is 0 on both."""
        if number == 0:
            return "0"
        index = self.order.setdefault(number, len(self.order))
        last = self.cas.get(key, 0)
        self.cas[key] = number
        return "#%d%s" % (index, "=+-"[(number > last) - (number < last)])

    def forget(self):
        self.cas = {}
        self.order = {}


def send_cut(connection, data, source):
    pieces = [data] if source is None else cut_random(data, source)
    for piece in pieces:
        connection.send(piece)


class Line:
    """A connection of one family. A family's own class says with ask() what
    the known question is, with find_answer() where its answer ends, and with
    parse() what a reply's parts are."""

    def __init__(self, running):
        self.connection = running.connect()
        self.connection.socket.settimeout(REPLY_S)

    def ask(self):
        raise NotImplementedError

    def find_answer(self, data):
        """(where the answer in data begins, where it ends), or None."""
        raise NotImplementedError

    def parse(self, data, unit, face):
        """The parts of a reply, as a list of tuples."""
        raise NotImplementedError

    def send(self, units, face, source):
        """Sends units, the question behind each that does not close."""
        data = b""
        for unit in units:
            data += unit.render(face)
            if not unit.closes:
                data += self.ask()
        try:
            send_cut(self.connection, data, source)
        except (Closed, socket.timeout):
            pass  # what came back until then is still to be read

    def reply(self, unit):
        """(the bytes of unit's reply, how it ended or None)."""
        connection = self.connection
        while True:
            data = bytes(connection.buffer[connection.taken :])
            found = None if unit.closes else self.find_answer(data)
            if found:
                connection.taken += found[1]
                return data[: found[0]], None
            try:
                connection.fill()
            except Closed:
                return data, END_OF_STREAM
            except socket.timeout:
                return data, NO_REPLY


class Difference(AssertionError):
    """What was answered differently, and after which units."""


class Outcome:
    """A unit and what both answered to it, as parts and as bytes. look(unit)
    is what both answer to one more, as bytes: one that changes nothing."""

    def __init__(self, unit, reference, tested, raw, look=None):
        self.unit = unit
        self.reference = reference
        self.tested = tested
        self.raw = raw
        self.look = look

    def differs(self):
        return self.reference != self.tested

    def differs_in_times_only(self):
        return without_times(self.reference) == without_times(self.tested)

    def __str__(self):
        return "to       %s\nmemcached answers %s\ntallyd answers    %s" % (
            self.unit, shown(self.raw[0]), shown(self.raw[1]))


class Comparison:
    """reference and tested: running servers. families: what the units speak,
    by name. allowances: see differ_allowed.py."""

    def __init__(self, reference, tested, families, allowances=()):
        self.reference = Face(reference, families)
        self.tested = Face(tested, families)
        self.faces = (self.reference, self.tested)
        self.allowances = allowances
        self.used = {}
        self.n_units = 0

    def close(self):
        for face in self.faces:
            face.close()

    def play(self, units, source=None, pipelined=1):
        """Plays units up to the first difference, which it returns with its
        place as (index, Outcome), or None. source: cuts the bytes."""
        at = 0
        while at < len(units):
            count = self.group_at(units, at, pipelined)
            outcomes = list(self.exchange(units[at : at + count], source))
            for rank, outcome in enumerate(outcomes):
                if outcome.differs() and not self.is_allowed(outcome):
                    self.close()
                    return at + rank, outcome
            at += len(outcomes)
        return None

    @staticmethod
    def group_at(units, at, pipelined):
        """How many units from at on may be sent at once."""
        count = 1
        first = units[at]
        while (count < pipelined and at + count < len(units)
               and not first.alone
               and not units[at + count].alone
               and units[at + count].family == first.family
               and all(isinstance(part, bytes)
                       for part in units[at + count].parts)):
            count += 1
        return count

    def exchange(self, units, source):
        """Sends units to both; yields the outcomes."""
        family = units[0].family
        seed = source.random() if source else None
        lines = [face.line(family) for face in self.faces]
        for face, line in zip(self.faces, lines):
            line.send(units, face, random.Random(seed) if source else None)
        for unit in units:
            self.n_units += 1
            found, raw, ended = [], [], False
            for face, line in zip(self.faces, lines):
                data, end = line.reply(unit)
                parts = line.parse(data, unit, face)
                if end:
                    parts = parts + [end]
                    data += b" <%s>" % end[0].encode()
                    ended = True
                found.append(parts)
                raw.append(data)
            if ended:
                self.close()
            yield Outcome(unit, found[0], found[1], raw, self.look)
            if ended:
                return

    def look(self, unit):
        outcome, = self.exchange([unit], None)
        return outcome.raw

    def is_allowed(self, outcome):
        for allowance in self.allowances:
            if allowance.fits(outcome):
                self.used[allowance.name] = \
                    self.used.get(allowance.name, 0) + 1
                # Uniques may have been shown by one of the two only.
                for face in self.faces:
                    face.forget()
                for unit in allowance.mend(outcome):
                    for _ in self.exchange([unit], None):
                        pass
                return True
        return False

    def compare(self, units, clean, source=None, pipelined=1):
        """Plays units behind clean, which brings both servers to the same
        state; raises Difference with as few units as are needed."""
        state = source.getstate() if source else None
        for _ in range(1 + AGAIN_MAX):
            if source:
                source.setstate(state)
            self.prepare(clean)
            found = self.play(units, source, pipelined)
            if found is None:
                return
            if not found[1].differs_in_times_only():
                break
        index, outcome = found
        few, small = self.shrink(units[: index + 1], clean)
        if small is None:
            few, small = units[max(0, index - 20) : index + 1], outcome
        raise Difference("\n".join(
            ["after"] + ["         %s" % unit for unit in few[:-1]]
            + [str(small)]
        ))

    def prepare(self, clean):
        self.close()
        for face in self.faces:
            face.forget()
        for unit in clean:
            for _ in self.exchange([unit], None):
                pass

    def shrink(self, units, clean):
        """(the fewest units found that still differ, the outcome)."""
        limit = self.n_units + SHRINK_UNITS
        deadline = time.monotonic() + 4 * REPLY_S
        best = None
        size = len(units) - 1
        last = units[-1]
        rest = units[:-1]
        while size >= 1 or best is None:
            at = 0
            while at < len(rest) or best is None:
                if self.n_units > limit or time.monotonic() > deadline:
                    return rest + [last], best
                fewer = rest[:at] + rest[at + size :] if size else rest
                self.prepare(clean)
                found = self.play(fewer + [last])
                if found and found[0] == len(fewer):
                    rest, best = fewer, found[1]
                elif not size:
                    return rest + [last], None
                else:
                    at += size
                if not rest:
                    return [last], best
            size = size // 2
            if size == 0 and best is not None:
                break
        return rest + [last], best
