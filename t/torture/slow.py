# SPDX-License-Identifier: BSD-3-Clause
"""A disk that holds writes up: strace delays each pwrite on the log file by
DELAY_S. A server of one worker, --sync=interval. The first such write may hold
the worker up; behind it the log's thread writes, and gets on another connection
are answered before the write of a change ends, which the trace tells, no
clock. A machine that gives this program no core for as long as the log's thread
stays in charge, a second, has the next change made by the worker: so there are
some tries."""

from delayed import Delayed
from oracle import Lost

DELAY_S = 5
CALLS = "pwrite64,pwritev,pwritev2"
CELL = "77.la"
GETS = 20
TRIES = 5


def slow(path=None):
    """How many gets were answered while a write was held up."""
    with Delayed(CALLS, DELAY_S, "--sync=interval", "--sync-interval=60000",
                 threads=1, path=path) as held, \
            held.daemon.connect() as writer, \
            held.daemon.connect() as reader:
        for number in range(1, 2 * TRIES, 2):
            # a reply waits for its write: so one write has been slow
            answer = writer.ask("incr %s 1" % CELL)
            done = held.returned()
            if answer != str(number) or done == 0:
                raise Lost("%r, and no write was held up" % answer)
            writer.send("incr %s 1 noreply\r\n" % CELL)
            all_right = [(CELL, 0, b"%d" % (number + 1))]
            while reader.get(CELL) != all_right:
                pass
            # that was read in the turn of the change, or before its commit;
            # these come in later turns
            for _ in range(GETS):
                if reader.get(CELL) != all_right:
                    raise Lost("a change went away")
            if held.returned() == done:
                break
        else:
            raise Lost("gets waited for a write of the log")
        if int(held.daemon.stat("slow_writes")) == 0:
            raise Lost("stats wal knows of no slow write")
    return GETS
