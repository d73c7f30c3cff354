# SPDX-License-Identifier: BSD-3-Clause
"""What must be there after a crash: the oracle of the durability tests.

A client owns cells that nobody else changes: whole cells, or one 16-bit lane
of a 64-bit counter that four clients share. It writes each step it asks for
into its Journal before the bytes leave, and counts the steps that were
acknowledged. The log is one stream, and one connection's changes enter it in
their order, but for those that were pipelined: they may be taken together,
shard by shard. So what is found after a crash must be, for each client and
all its cells together, the state after the first m of its steps:

    0 ........ low ............ m ............ sent
               |                               |
               what may not be lost            what was ever asked for

low is the number of acknowledged steps, or of those that are older than the
interval where that is all that was promised. m < low: acknowledged changes
are lost. No such m: something is doubled, mixed or made up. Of the steps right
behind m, as many as are sent at once, some ids may have theirs already; each
id, which is in one shard, is as it was at one moment.

Where the log may fail and the server goes on, an outcome can be unknown; then
Bounds has the least and the most of each cell instead.
"""

import time

CELLS_SHOWN = 8


def id_of(cell):
    """What all its cells share, and with them a shard."""
    return cell.partition(".")[0]


class Lost(AssertionError):
    """Something acknowledged is gone, or something else is there."""


class Journal:
    """The steps of one client since its cells were last seen whole. A step is
    a tuple of (cell, value), which happen together."""

    def __init__(self, name, default=lambda cell: 0, window=1):
        self.name = name
        self.window = window  # steps that may be under way at a time
        self.default = default  # what a cell holds that was never written
        self.seen = {}
        self.steps = []
        self.acked_at = []  # time of each acknowledged step
        self.floor = 0      # steps made durable by other means
        self.named = set()  # cells of seen and of the first so many steps
        self.n_named = 0

    @property
    def acked(self):
        return len(self.acked_at)

    def begin(self, *changes):
        """Before anything is sent."""
        self.steps.append(changes)

    def ack(self, count=1):
        """The next count steps were acknowledged."""
        now = time.monotonic()
        self.acked_at.extend([now] * count)
        if self.acked > len(self.steps):
            raise Lost("%s: more replies than requests" % self.name)

    def hold(self, acked):
        """The first acked steps are known to be durable."""
        self.floor = max(self.floor, acked)

    def low(self, until=None):
        """How many steps must have survived: all acknowledged ones, or those
        acknowledged before a time; those held in any case."""
        if until is None:
            return max(self.floor, self.acked)
        # acked_at is ascending
        first, last = 0, self.acked
        while first < last:
            middle = (first + last) // 2
            if self.acked_at[middle] < until:
                first = middle + 1
            else:
                last = middle
        return max(self.floor, first)

    def cells(self):
        """All cells that this client ever wrote."""
        steps = self.steps[self.n_named:]
        for step in steps:
            self.named.update(cell for cell, _ in step)
        self.n_named += len(steps)
        return set(self.named)

    def settle(self, found, low):
        """Compares with what was found; that is the state from now on.
        Returns m - low."""
        m = self.match(found, low)
        if m is None:
            raise Lost(self.explain(found, low))
        self.seen = dict(found)
        self.steps = []
        self.acked_at = []
        self.floor = 0
        self.named = set(found)
        self.n_named = 0
        return m - low

    def match(self, found, low):
        """The least m >= low whose state is what was found, or None."""
        m = self.match_exactly(found, low)
        if m is None and self.window > 1:
            m = self.match_nearly(found, low)
        return m

    def match_exactly(self, found, low):
        state = dict(self.seen)
        for step in self.steps[:low]:
            state.update(step)
        wrong = {
            cell for cell, value in found.items()
            if value != state.get(cell, self.default(cell))
        }
        if not wrong:
            return low
        for m in range(low, len(self.steps)):
            for cell, value in self.steps[m]:
                if found.get(cell, self.default(cell)) == value:
                    wrong.discard(cell)
                else:
                    wrong.add(cell)
            if not wrong:
                return m + 1
        return None

    def moments(self, found):
        """For each id the pairs (last step it has, first one it lacks) of the
        times when its cells were as they were found."""
        cells = {}
        for cell in found:
            cells.setdefault(id_of(cell), []).append(cell)
        state = {id: {cell: self.seen.get(cell, self.default(cell))
                      for cell in own} for id, own in cells.items()}
        since = dict.fromkeys(cells, 0)
        moments = {id: [] for id in cells}

        def close(id, end):
            if all(found[cell] == state[id][cell] for cell in cells[id]):
                moments[id].append((since[id], end))

        for number, step in enumerate(self.steps, 1):
            for id in {id_of(cell) for cell, _ in step}:
                close(id, number)
                since[id] = number
            for cell, value in step:
                state[id_of(cell)][cell] = value
        for id in cells:
            close(id, len(self.steps) + 1)
        return moments

    def match_nearly(self, found, low):
        """As match, where of the next steps under way some are there: m + 1
        is the first step that is missing anywhere."""
        fits = [0] * (len(self.steps) + 3)  # ids more that fit from there on
        moments = self.moments(found)
        for pairs in moments.values():
            reached = 0
            for last, first in pairs:
                begin = max(1, last - self.window + 1, reached + 1)
                if begin <= first:
                    fits[begin] += 1
                    fits[first + 1] -= 1
                    reached = first
        count = 0
        for missing in range(1, len(self.steps) + 2):
            count += fits[missing]
            if count == len(moments) and missing > low:
                return missing - 1
        return None

    def explain(self, found, low):
        """What is wrong, for a person."""
        counts = "%d steps acknowledged, %d sent, %d may not be lost" % (
            self.acked, len(self.steps), low)
        m = self.match(found, 0)
        if m is not None:
            return "%s: LOST %d steps: found the state after %d; %s" % (
                self.name, low - m, m, counts)
        return "%s: no state it ever had; %s\n%s" % (
            self.name, counts, self.nearest(found))

    def nearest(self, found):
        """The m whose state is most like what was found, and the cells that
        are not as they were then."""
        state = dict(self.seen)
        wrong = {cell for cell, value in found.items()
                 if value != state.get(cell, self.default(cell))}
        best, fewest = 0, set(wrong)
        for m, step in enumerate(self.steps, 1):
            for cell, value in step:
                if found.get(cell, self.default(cell)) == value:
                    wrong.discard(cell)
                else:
                    wrong.add(cell)
            if len(wrong) < len(fewest):
                best, fewest = m, set(wrong)
        state = dict(self.seen)
        for step in self.steps[:best]:
            state.update(step)
        lines = ["  most like the state after %d, but for %d of %d cells:" % (
            best, len(fewest), len(found))]
        for cell in sorted(fewest, key=str)[:CELLS_SHOWN]:
            lines.append("  %s: found %r, not %r; it had that after %s" % (
                cell, found[cell], state.get(cell, self.default(cell)),
                self.when(cell, found[cell])))
        return "\n".join(lines)

    def when(self, cell, value):
        """After which steps a cell had a value."""
        steps = [m for m, step in enumerate(self.steps, 1)
                 if (cell, value) in step]
        if self.seen.get(cell, self.default(cell)) == value:
            steps.insert(0, 0)
        return ", ".join(map(str, steps[-3:])) or "none of them"


class Bounds:
    """The least and the most that lanes of one client may have, for a server
    that may refuse: one whose outcome is unknown, or that was not answered, is
    there or is not."""

    def __init__(self, name):
        self.name = name
        self.least = {}
        self.most = {}
        self.faults = []

    def begin(self, cell):
        """An increment by one is about to be sent."""
        self.least.setdefault(cell, 0)
        self.most[cell] = self.most.get(cell, 0) + 1

    def ack(self, cell, value):
        """An increment was acknowledged, and left this value."""
        if not self.least[cell] < value <= self.most[cell]:
            self.faults.append("%s: %s answered %d, not in %d..%d" % (
                self.name, cell, value, self.least[cell] + 1,
                self.most[cell]))
        self.least[cell] = max(value, self.least[cell])

    def refuse(self, cell):
        """An increment was refused: it is not there."""
        self.most[cell] -= 1

    def settle(self, found):
        """Compares with what was found, which is known from now on."""
        faults, self.faults = self.faults, []
        for cell, value in found.items():
            least = self.least.get(cell, 0)
            most = self.most.get(cell, 0)
            if value < least:
                faults.append("%s: %s LOST: %d, but %d was acknowledged" % (
                    self.name, cell, value, least))
            elif value > most:
                faults.append("%s: %s is %d, but at most %d was asked for" % (
                    self.name, cell, value, most))
        if faults:
            raise Lost("\n".join(faults[:12]))
        self.least = dict(found)
        self.most = dict(found)
