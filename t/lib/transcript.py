# SPDX-License-Identifier: BSD-3-Clause
"""Reads t/proto/*.seq and plays them against a server.

A transcript is a text file, one step a line:

    # a comment; empty lines count for nothing
    >>> TEXT       send TEXT and CRLF
    >>. TEXT       send TEXT alone, with \\r \\n \\t \\0 \\xHH \\s (a space)
    <<< TEXT       the next reply line is TEXT
    <<~ REGEX      the next reply line matches REGEX as a whole
    <<+ REGEX      skip reply lines up to the first that matches
    --- closed     the server closes the connection
    --- wait       send no more before all this is answered
    --- drop       close the connection without looking for more
    --- reset      go on with a new connection to the same server
    --- options W  start the server with these options (before any step)

In all of them ${TEXT*N} stands for TEXT repeated N times. A group (?P<n>...)
of a REGEX is remembered, and $(n) in a later >>> line stands for it.

An error line must not hold the word echo: bad input in transcripts uses it, and
no byte of the input may come back in an error.

Every connection that is not closed or dropped ends with a version command:
its reply must be the very next line, so nothing too many was answered.
"""

import random
import re
import shlex

from server import Closed

REPEAT = re.compile(r"\$\{(.+?)\*(\d+)\}")
RECALL = re.compile(r"\$\((\w+)\)")
ESCAPES = {"r": "\r", "n": "\n", "t": "\t", "0": "\0", "s": " ", "\\": "\\"}
ESCAPE = re.compile(r"\\(x[0-9A-Fa-f]{2}|[rnt0s\\])")

# Transcripts of errors use the word echo in their bad input.
FORBIDDEN = re.compile(r"^\w*ERROR.*echo", re.IGNORECASE)

SEND, LINE, REGEX, SKIP_TO, CLOSED, WAIT, DROP = range(7)


def unescape(text):
    def one(found):
        code = found.group(1)
        if code[0] == "x":
            return chr(int(code[1:], 16))
        return ESCAPES[code]

    return ESCAPE.sub(one, text)


def repeat(text):
    return REPEAT.sub(lambda m: m.group(1) * int(m.group(2)), text)


class Transcript:
    """One file: the server's options, and the steps of each connection."""

    def __init__(self, path):
        self.path = path
        self.options = []
        self.connections = [[]]
        with open(path, encoding="latin-1") as lines:
            for number, line in enumerate(lines, 1):
                self.read_line(number, line.rstrip("\n"))
        if not any(self.connections):
            raise ValueError(path + ": no steps")

    def read_line(self, number, line):
        mark, rest = line[:3], line[4:]
        if line[3:4] not in ("", " "):
            mark = "?"
        if not line or line[0] == "#":
            return
        if mark == ">>>":
            step = (number, SEND, repeat(rest) + "\r\n")
        elif mark == ">>.":
            step = (number, SEND, unescape(repeat(rest)))
        elif mark == "<<<":
            step = (number, LINE, repeat(rest))
        elif mark == "<<~":
            step = (number, REGEX, re.compile(repeat(rest)))
        elif mark == "<<+":
            step = (number, SKIP_TO, re.compile(repeat(rest)))
        elif line == "--- closed":
            step = (number, CLOSED, None)
        elif line == "--- wait":
            step = (number, WAIT, None)
        elif line == "--- drop":
            step = (number, DROP, None)
        elif line == "--- reset":
            self.connections.append([])
            return
        elif line.startswith("--- options "):
            self.options += shlex.split(line[12:])
            return
        else:
            raise ValueError("%s:%d: what is this?" % (self.path, number))
        self.connections[-1].append(step)


def cut_none(data, _):
    return [data]


def cut_bytes(data, _):
    return [data[i : i + 1] for i in range(len(data))]


def cut_random(data, source):
    pieces = []
    start = 0
    while start < len(data):
        size = source.choice((1, 2, 3, 7, 20, 100, 1000))
        end = start + source.randint(1, size)
        pieces.append(data[start:end])
        start = end
    return pieces


# How the bytes are sent: as one waits for each reply before the next command,
# all at once, byte by byte, in random pieces.
CUTS = {
    "stepwise": cut_none,
    "whole": cut_none,
    "bytes": cut_bytes,
    "random": cut_random,
}


class Player:
    def __init__(self, transcript, server, cut, seed=1):
        self.transcript = transcript
        self.server = server
        self.stepwise = cut == "stepwise"
        self.cut = CUTS[cut]
        self.random = random.Random(seed)
        self.memory = {}

    def play(self):
        for steps in self.transcript.connections:
            with self.server.connect() as connection:
                self.play_connection(connection, steps)

    def play_connection(self, connection, steps):
        pending = ""
        waiting = []
        closed = False
        for step in steps:
            number, kind, what = step
            if kind == SEND:
                if (self.stepwise and waiting) or RECALL.search(what):
                    self.exchange(connection, pending, waiting)
                    pending, waiting = "", []
                    what = RECALL.sub(self.recall, what)
                pending += what
            elif kind == WAIT:
                self.exchange(connection, pending, waiting)
                pending, waiting = "", []
            elif kind == DROP:
                closed = True
            else:
                waiting.append(step)
                closed = closed or kind == CLOSED
        if not closed:
            pending += "version\r\n"
            waiting.append((0, REGEX, re.compile("VERSION .+")))
        self.exchange(connection, pending, waiting)

    def recall(self, found):
        return self.memory[found.group(1)]

    def exchange(self, connection, data, waiting):
        data = data.encode("latin-1")
        closing = any(kind == CLOSED for _, kind, _ in waiting)
        try:
            for piece in self.cut(data, self.random):
                connection.send(piece)
        except Closed:
            if not closing:
                raise
        for step in waiting:
            self.expect(connection, *step)

    def expect(self, connection, number, kind, what):
        if kind == CLOSED:
            rest = connection.wait_closed()
            if rest:
                self.fail(number, rest, "nothing more, and the end")
            return
        while True:
            try:
                line = connection.line().decode("latin-1")
            except (Closed, TimeoutError) as error:
                self.fail(number, error, what)
            if FORBIDDEN.search(line):
                self.fail(number, line, "no word of the input")
            if kind == LINE:
                if line != what:
                    self.fail(number, line, what)
                return
            found = what.fullmatch(line)
            if found:
                self.memory.update(found.groupdict())
                return
            if kind == REGEX or line == "END":
                self.fail(number, line, what.pattern)

    def fail(self, number, got, wanted):
        raise AssertionError(
            "%s:%s\n  got    %.500r\n  wanted %.500r"
            % (self.transcript.path, number or "the end", got, wanted)
        )
