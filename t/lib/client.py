# SPDX-License-Identifier: BSD-3-Clause
"""What the tests with other people's clients share: the counter weibo, made
over the telnet dialect with the flags the client's integers need, and the feed
page of 100 keys over 3 suffixes; and libmemcached's tools."""

import random
import shutil
import subprocess
import time

import tap
from server import LIMIT_S, weibo_lines

SUFFIXES = ("cntcm", "cntrn", "cntan")
PAGE_KEYS = 100
TIMEOUT = "A TIMEOUT OCCURRED"


def declare(server, flags):
    """Declares weibo by hand, as a person in telnet would."""
    with server.connect() as telnet:
        telnet.tell(*weibo_lines(flags))


def page():
    """{key: number} of 100 cells; some are 0 and never written."""
    source = random.Random(20)
    first = 5_000_000_000_000_000
    cells = {}
    number = 0
    while len(cells) < PAGE_KEYS:
        for suffix in SUFFIXES:
            value = source.choice((0, 1, 2, 17, 300, 70_000, 2**32 - 1))
            cells["%d.%s" % (first + 3624 * number, suffix)] = value
        number += 1
    return dict(list(cells.items())[:PAGE_KEYS])


def memc(running, name, *arguments, status=0):
    """Runs memcNAME against the server; returns what it printed. status: 0, or
    any other for a tool that is to fail. It waits for 5 s, which no option
    changes; then it is run again."""
    if shutil.which("memc" + name) is None:
        raise tap.Skip("libmemcached-tools is not installed")
    deadline = time.monotonic() + LIMIT_S
    text = TIMEOUT
    while TIMEOUT in text and time.monotonic() < deadline:
        done = subprocess.run(
            ["memc" + name, "--servers=127.0.0.1:%d" % running.port,
             *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=LIMIT_S,
            cwd=running.directory,
            check=False,
        )
        text = done.stdout.decode("latin-1")
    tap.check(TIMEOUT not in text, text)
    if (done.returncode == 0) != (status == 0):
        raise AssertionError("memc%s: %d: %s" % (name, done.returncode, text))
    return text
