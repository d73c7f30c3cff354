# SPDX-License-Identifier: BSD-3-Clause
"""Whether a history can be explained: each operation took place at one moment
between its request and its reply, and what was acknowledged has survived.

A history is the operations of some lives of one server. Each record is looked
at by itself (a history is linearizable where those of its objects are), one
life after the other: from each state that a life may have begun with, all
orders are tried that the times allow, each state at each place once (Wing and
Gong, 1993; Lowe, 2017). What they lead to is what the next may begin with.

Of each connection the operations take place in their order. One without a
reply may have been made, as long as its server was alive, or not. At a kill the
changes behind some place are lost. It lies behind

* every change that was acknowledged, and
* every read that ended before the request of a change, of whatever record, that
  was acknowledged (or stands before one on its connection): such an
  acknowledgement comes when all that was made before it is kept.

So other reads may have shown what is gone. With is_committed none may. An edit
of the schema enters the log before anybody sees it: it may outlive what was
changed before it, and its acknowledgement says nothing of that. What is under
way meanwhile may have the columns of before (history_edits.py)."""

import json
import math

from history_edits import step_elsewhere, versions_of
from history_model import COLUMNS, EMPTY, READS, SCHEMA, is_done, step

ALL = "*"            # the id of what concerns each record
NODES_MAX = 3000000  # places in an order of one record and life


class Op:
    """One operation on one record. number: [producer, number]. begin, end:
    times; end is None where no reply came. answer: None where it is not known,
    though it was made where is_made."""

    FIELDS = ("life", "connection", "order", "id", "kind", "args", "number",
              "begin", "end", "answer", "is_made", "is_void", "sent", "got")

    def __init__(self, **fields):
        for name in self.FIELDS:
            setattr(self, name, fields.get(name))
        if self.number is not None:
            self.number = tuple(self.number)
        self.unique = None  # what a cas is sent with
        self.versions = ()  # see history_edits.py
        self.is_repeated = False
        self.is_kept = False  # with what was before it

    def row(self):
        return {name: getattr(self, name) for name in self.FIELDS
                if getattr(self, name) is not None}

    def is_change(self):
        return self.kind not in READS and self.kind not in SCHEMA

    def is_acknowledged(self):
        return self.end is not None and self.is_change() and \
            self.answer is not None and is_done(self.answer)

    def must_be(self):
        return self.answer is not None or bool(self.is_made)

    def name(self):
        text = self.kind
        if self.number is not None:
            text += " %s:%d" % self.number
        return "%s %s" % (text, json.dumps(self.args))

    def text(self):
        end = "no reply" if self.end is None else "%d" % self.end
        answer = "not known" if self.answer is None else \
            json.dumps(self.answer)
        return "life %d, connection %d, %s..%s: %s: %s" % (
            self.life, self.connection, self.begin, end, self.name(), answer)


class Wrong(Exception):
    """A history that cannot be explained; or, is_undecided, one of which it
    was not found out."""

    def __init__(self, text, record=None, life=None, is_undecided=False):
        super().__init__(text)
        self.record = record
        self.life = life
        self.is_undecided = is_undecided


class History:
    """Operations, and how each life ended: "kill" or "stop". others: (life,
    begin) of what was acknowledged besides, as a checkpoint is."""

    def __init__(self, is_committed=False):
        self.is_committed = is_committed
        self.ops = []
        self.ends = []
        self.others = []
        self.about = {}

    def write(self, path):
        with open(path, "w", encoding="ascii") as out:
            head = {"history": 1, "is_committed": self.is_committed,
                    "ends": self.ends, "others": self.others,
                    "about": self.about}
            for row in [head] + [op.row() for op in self.ops
                                if op.begin is not None]:
                out.write(json.dumps(row) + "\n")

    @classmethod
    def read(cls, path):
        with open(path, encoding="ascii") as lines:
            head = json.loads(next(lines))
            history = cls(head["is_committed"])
            history.ends = head["ends"]
            history.others = [tuple(pair) for pair in head["others"]]
            history.about = head["about"]
            history.ops = [Op(**json.loads(line)) for line in lines]
        return history

    def ids(self):
        return sorted({op.id for op in self.ops} - {ALL})


def prepare(history):
    """Says of each operation whether its number comes again, and whether it is
    kept with all before it."""
    seen = {}
    latest = {}  # life -> the last request that was acknowledged
    behind = {}  # (life, connection) -> the last place of one
    for op in history.ops:
        if op.number is not None:
            seen[op.number] = seen.get(op.number, 0) + 1
        if op.is_acknowledged():
            latest[op.life] = max(latest.get(op.life, -1), op.begin)
            key = op.life, op.connection
            behind[key] = max(behind.get(key, -1), op.order)
    for life, begin in history.others:
        latest[life] = max(latest.get(life, -1), begin)
    for op in history.ops:
        op.is_repeated = op.number is not None and seen[op.number] > 1
        if op.kind in SCHEMA or not op.must_be():
            op.is_kept = False
            continue
        op.is_kept = op.is_acknowledged() or \
            (history.is_committed and op.answer is not None) or \
            op.end < latest.get(op.life, -1) or \
            op.order < behind.get((op.life, op.connection), -1)


def chains_of(history, record, life):
    """The operations of a record in a life, those of each connection."""
    chains = {}
    for op in history.ops:
        if op.life == life and op.id in (record, ALL) and not op.is_void:
            chains.setdefault(op.connection, []).append(op)
    return [sorted(chain, key=lambda op: op.order)
            for chain in chains.values()]


def answers(state, op):
    found = step(state, op)
    return found + tuple(step_elsewhere(state, op)) if op.versions else found


class Search:
    """One record in one life."""

    def __init__(self, chains, may_lose):
        self.chains = chains
        self.may_lose = may_lose
        self.must = [max([0] + [at + 1 for at, op in enumerate(chain)
                                if op.must_be()]) for chain in chains]
        self.seen = set()
        self.ends = set()
        self.deepest = (-1, None)

    def heads(self, places):
        """(chain, operation) of those that may be next."""
        heads = [(number, chain[at]) for number, (chain, at) in
                 enumerate(zip(self.chains, places)) if at < len(chain)]
        bound = min((op.end for _, op in heads
                     if op.end is not None and op.must_be()),
                    default=math.inf)
        return [(number, op) for number, op in heads if op.begin <= bound]

    def moves(self, op, state, kept):
        """All (state, kept) behind an operation. kept: the state that a kill
        leaves, None while that is the present one."""
        for answer, after in answers(state, op):
            if op.answer is not None and answer != op.answer:
                continue
            if op.kind in SCHEMA:
                if not op.must_be() and self.may_lose:
                    yield after, state if kept is None else kept
                if kept is not None:
                    (_, kept), = step(kept, op)
                yield after, kept
            elif op.is_kept:
                if kept is None:
                    yield after, None
            else:
                yield after, kept
                if kept is None and self.may_lose and after != state:
                    yield after, state

    def run(self, starts):
        """The states that the next life may begin with."""
        todo = [((0,) * len(self.chains), state, None)
                for state in in_order(starts)]
        self.seen.update(todo)
        while todo:
            places, state, kept = todo.pop()
            if len(self.seen) > NODES_MAX:
                raise Wrong("more than %d places to look at" % NODES_MAX,
                            is_undecided=True)
            if all(at >= must for at, must in zip(places, self.must)):
                self.ends.add(state if kept is None else kept)
            depth = sum(min(at, must)
                        for at, must in zip(places, self.must))
            if depth > self.deepest[0]:
                self.deepest = depth, (places, state, kept)
            for number, op in self.heads(places):
                after = places[:number] + (places[number] + 1,) + \
                    places[number + 1:]
                for move in self.moves(op, state, kept):
                    node = (after,) + move
                    if node not in self.seen:
                        self.seen.add(node)
                        todo.append(node)
        return self.ends

    def explain(self):
        """Where the longest order ends."""
        places, state, kept = self.deepest[1]
        lines = ["the longest order has %d of %d operations with a reply; then"
                 % (self.deepest[0], sum(self.must)),
                 "  the state is " + text_of(state)]
        if kept is not None:
            lines.append("  and what a kill leaves " + text_of(kept))
        for _, op in self.heads(places):
            would = " or ".join(json.dumps(answer)
                                for answer, _ in answers(state, op))
            why = "" if json.dumps(op.answer) != would else \
                ", which would keep what is lost"
            lines.append("  next could be %s; there it would be %s%s" % (
                op.text(), would, why))
        return lines


def text_of(state):
    columns, values, done = state
    text = " ".join("%s=%d" % (name, value)
                    for (name, _), value in zip(columns, values))
    if done:
        text += ", numbers " + " ".join("%s:%d" % one for one in sorted(done))
    return text


def in_order(states):
    """Always the same one."""
    return sorted(states, key=lambda state: (*state[:2], sorted(state[2])))


def forget(states, later):
    """States without the numbers that come no more."""
    return {(columns, values, done & later)
            for columns, values, done in states}


def check_record(history, record, reduce=True):
    starts = {EMPTY}
    numbers = {}  # life -> numbers that are sent from then on
    later = frozenset()
    for life in range(len(history.ends) - 1, -1, -1):
        numbers[life] = later
        later = later | {op.number for op in history.ops
                         if op.life == life and op.id == record and
                         op.number is not None}
    for life, end in enumerate(history.ends):
        chains = chains_of(history, record, life)
        versions_of([op for chain in chains for op in chain],
                    {columns for columns, _, _ in starts})
        search = Search(chains, end == "kill")
        try:
            ends = search.run(starts)
        except Wrong as error:
            raise Wrong("id %s, life %d: %s" % (record, life, error), record,
                        life, True) from None
        if not ends:
            lines = ["id %s, life %d: no order of its operations explains what "
                     "was answered" % (record, life),
                     "it may begin with " + "; ".join(
                         map(text_of, in_order(starts)))]
            lines += search.explain()
            if reduce:
                lines += core(starts, chains, end == "kill")
            raise Wrong("\n".join(lines), record, life)
        starts = forget(ends, numbers[life])


def core(starts, chains, may_lose):
    """Operations without which there would be an order: those reads and
    refusals are left out one by one that are not needed for there to be none;
    then ends of connections."""
    def fails(some):
        try:
            return not Search(some, may_lose).run(starts)
        except Wrong:
            return False

    for number, chain in enumerate(chains):
        at = 0
        while at < len(chains[number]):
            op = chains[number][at]
            less = chains[number][:at] + chains[number][at + 1:]
            some = chains[:number] + [less] + chains[number + 1:]
            is_idle = op.kind in READS or op.answer in (False, "refused",
                                                       "exists")
            if is_idle and fails(some):
                chains = some
            else:
                at += 1
    left = sorted((op for chain in chains for op in chain),
                  key=lambda op: op.begin)
    return ["without any of these reads and refusals there would be one:"] + \
        ["  " + op.text() for op in left]


def check(history):
    """Raises Wrong at the first record that cannot be explained."""
    prepare(history)
    for record in history.ids():
        check_record(history, record)
