# SPDX-License-Identifier: BSD-3-Clause
"""What the tests with other people's clients share: the counter weibo, made
over the telnet dialect with the flags the client's integers need, and the feed
page of 100 keys over 3 suffixes."""

import random

from server import weibo_lines

SUFFIXES = ("cntcm", "cntrn", "cntan")
PAGE_KEYS = 100


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
