# SPDX-License-Identifier: BSD-3-Clause
"""Ports for servers that cannot choose one themselves, or that are to be found
at the same one in their next life.

They lie below those that the kernel gives out by itself. Tests run side by
side, and a server that is down for a moment does not hold its port; so a port
is claimed: by an abstract socket of its name, which goes with the process, and
is of a network namespace as ports are."""

import collections
import random
import socket

PORTS = range(20000, 32000)
CLAIMS = 1000   # the oldest ones of a process end before it does

_claims = collections.deque()


def _claim(port):
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        claim.bind("\0tallyd-test-port-%d" % port)
    except OSError:
        claim.close()
        return False
    _claims.append(claim)
    if len(_claims) > CLAIMS:
        _claims.popleft().close()
    return True


def free_port(address="127.0.0.1"):
    """One that nobody has now, and that no other test gets."""
    while True:
        port = random.SystemRandom().choice(PORTS)
        with socket.socket() as probe:
            try:
                probe.bind((address, port))
            except OSError:
                continue
        if _claim(port):
            return port
