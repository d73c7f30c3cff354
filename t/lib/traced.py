# SPDX-License-Identifier: BSD-3-Clause
"""A server on a data directory whose system calls strace writes down, and what
it says, by thread and in order.

    with Traced("--sync=interval", threads=1) as traced:
        ...
    calls = traced.calls                # when it has ended
"""

import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "../torture"))

from daemon import Daemon, Place
from points import need_strace, wait_for_strace

BEGIN = re.compile(r"(\d+) +(\w+)\((.*)$")
RESUMED = re.compile(r"(\d+) +<\.\.\. (\w+) resumed>(.*)$")
RESULT = re.compile(r"= (-?\d+)[^=]*$")
TARGET = re.compile(r"\d+<([^>]*)>")


class Call:
    """begin and end are lines of the trace; target is what the first
    descriptor is of; text is as strace writes it, cut off after 64 bytes of
    each buffer."""

    def __init__(self, thread, name, begin, text):
        self.thread = int(thread)
        self.name = name
        self.begin = begin
        self.end = None
        self.result = None
        found = TARGET.match(text)
        self.target = found.group(1) if found else ""
        self.text = text

    def finish(self, end, text):
        """text: the end of the line."""
        self.end = end
        found = RESULT.search(text)
        self.result = int(found.group(1)) if found else None

    def __str__(self):
        return "%d %s(%s" % (self.thread, self.name, self.text[:120])


def read_trace(path):
    """The calls, in the order in which they began."""
    calls = []
    pending = {}
    with open(path, encoding="latin-1") as lines:
        for number, line in enumerate(lines):
            line = line.rstrip("\n")
            found = BEGIN.match(line)
            if found:
                call = Call(found.group(1), found.group(2), number,
                            found.group(3))
                calls.append(call)
                if line.endswith("<unfinished ...>"):
                    pending[found.group(1)] = call
                else:
                    call.finish(number, line)
                continue
            found = RESUMED.match(line)
            if found and found.group(1) in pending:
                call = pending.pop(found.group(1))
                call.text += found.group(3)
                call.finish(number, found.group(3))
    return calls


class Traced(Daemon):
    """Started and traced until the block is left."""

    def __init__(self, *options, **more):
        need_strace()
        self.calls = None
        place = Place()
        trace = os.path.join(place.top, "trace")
        super().__init__(
            place, *options, wrapper=["strace", "-D", "-f", "-y", "-s", "64",
                                      "-o", trace], **more)
        self.trace = trace

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, *rest):
        try:
            super().__exit__(kind, *rest)
            if kind is None:
                wait_for_strace(self.trace, self.process.pid)
                self.calls = read_trace(self.trace)
        finally:
            self.place.remove()
