# SPDX-License-Identifier: BSD-3-Clause
"""The slow log as a client reads it. A wait of a test is held for at least
HELD_S, so its entry has as much; how long anything else takes is not tested.
What is shown comes a moment after the reply."""

import time

from cold import wait_for
from tap import check, equal

HELD_S = 0.02
PHASES = ("parse", "lock", "room", "cold", "commit", "socket", "queue")
SLOW = ("--slow=5", "-t", "2", "--commit-timeout=600")


def hold():
    """Waits that long."""
    since = time.monotonic()
    while time.monotonic() < since + HELD_S:
        time.sleep(HELD_S / 4)


def entries(connection):
    """The slow log, the newest first: dictionaries."""
    table = connection.stats("slow")
    equal(list(table), [str(n + 1) for n in range(len(table))])
    return [dict(word.split("=", 1) for word in text.split(" "))
            for text in table.values()]


def entry_of(connection, conn, wanted):
    """The newest entry of a connection for which all of wanted is so, once
    there is one. Connections before it may have had its number: wanted is to
    tell theirs from it."""
    found = []

    def comes():
        found[:] = [entry for entry in entries(connection)
                    if entry["conn"] == conn and
                    all(entry[name] == value for name, value in wanted.items())]
        return found

    wait_for(comes, "slow command with %s" % wanted)
    return found[0]


def number_of(connection, asker):
    """What another connection is in stats conns, once it is there."""
    end = ":%d" % asker.socket.getsockname()[1]
    found = []

    def comes():
        found[:] = [name.split(":")[0]
                    for name, value in connection.stats("conns").items()
                    if name.endswith(":addr") and value.endswith(end)]
        return found

    wait_for(comes, "connection from port %s" % end)
    return found[0]


def judge(entry, phase):
    """It has waited for that, and has no other reason."""
    spent = {name: int(entry[name + "_us"]) for name in PHASES}
    check(spent[phase] >= HELD_S * 1e6, entry)
    equal(entry["why"], max(PHASES, key=lambda name: spent[name]), entry)
    equal(entry["why"], phase, entry)
    check(sum(spent.values()) <= int(entry["us"]) + len(PHASES), entry)
    equal(entry["user"], "-")
    check(entry["client"].startswith("tcp:127.0.0.1:"), entry)
    check(abs(int(entry["when"]) / 1000 - time.time()) < 3600, entry)
