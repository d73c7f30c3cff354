# SPDX-License-Identifier: BSD-3-Clause
"""What the first line of `tallyctl status` says of a server on this machine."""

import time

from server import LIMIT_S
from tallyctl import tallyctl
from tap import check, equal


def address_of(tallyd):
    return "127.0.0.1:%d" % tallyd.port


def first_line(address, *options):
    """What it says of the server, and whether the exit status agrees."""
    status, out, err = tallyctl("status", "--interval=0", *options,
                                address=address)
    line = (out or err).splitlines()[0]
    equal(status == 0, line.endswith(": well"), out + err)
    return line


def wait_for(tallyd, cause, *options, goes_on=lambda: None):
    """Until the first line names the cause, and what to do; meanwhile it goes
    on."""
    line = wait_for_line(tallyd, lambda line: cause in line, cause, *options,
                         goes_on=goes_on)
    what, _, to_do = line.partition("; ")
    check(cause in what and len(to_do) > 10, line)


def wait_for_well(tallyd, *options):
    wait_for_line(tallyd, lambda line: line.endswith(": well"), "well",
                  *options)


def wait_for_line(tallyd, is_right, wanted, *options, goes_on=lambda: None):
    """Until the first line is right: that line."""
    deadline = time.monotonic() + LIMIT_S
    while True:
        goes_on()
        line = first_line(address_of(tallyd), *options)
        if is_right(line):
            return line
        check(time.monotonic() < deadline, "%r: %s" % (wanted, line))
        time.sleep(0.02)
