# SPDX-License-Identifier: BSD-3-Clause
"""What one record is and what each operation makes of it, one after the other.

A state is (columns, values, done): a column is (name, default), and done are
the numbers of producers that were seen, of those that were sent more than
once. An operation says what it is (kind), its arguments, its number, and what
was answered:

    get        columns                      their values
    read                                    all values, in column order
    incr decr  column, delta[, initial]     the new value
    incrs decrs  deltas                     the new values
    set        column, value                True
    add replace  column, value              True or False
    cas        column, old, new             True or "exists"
    delete     column                       True or False
    sets       values                       True
    adds replaces  values                   True or False
    casr       old values, new values       True or "exists"
    deleter                                 True or False
    add column   name, default              True
    drop column  name                       True

Deltas and values of a record are a list, one a column, or a dictionary by
name. Whatever names a column that is not there, or has another number of
values than there are columns, is "refused"."""

REFUSED = "refused"
EXISTS = "exists"

MAX = {"a": (1 << 64) - 1, "b": (1 << 16) - 1, "x": (1 << 32) - 1,
       "y": (1 << 8) - 1}
COLUMNS = (("a", 0), ("b", 7))  # those that are always there
EMPTY = (COLUMNS, (0, 7), frozenset())

READS = ("get", "read")
SCHEMA = ("add column", "drop column")


def place(columns, name):
    """Where the column is; -1: nowhere."""
    for at, (there, _) in enumerate(columns):
        if there == name:
            return at
    return -1


def counted(name, value, delta):
    return max(0, min(value + delta, MAX[name]))


def all_default(columns, values):
    return all(value == default
               for value, (_, default) in zip(values, columns))


def put(values, at, value):
    return values[:at] + (value,) + values[at + 1:]


def do_count(columns, values, args, sign):
    name, delta = args[:2]
    at = place(columns, name)
    if at < 0:
        return REFUSED, values
    if len(args) > 2 and values[at] == columns[at][1] < args[2]:
        value = args[2]  # a binary packet's initial value
    else:
        value = counted(name, values[at], sign * delta)
    return value, put(values, at, value)


def places_of(columns, given):
    """[(place, number)] of what is given, by name or one a column; None where
    it does not fit."""
    if isinstance(given, dict):
        pairs = [(place(columns, name), number)
                 for name, number in given.items()]
        return None if any(at < 0 for at, _ in pairs) else pairs
    return list(enumerate(given)) if len(given) == len(columns) else None


def do_counts(columns, values, args, sign):
    pairs = places_of(columns, args[0])
    if pairs is None:
        return REFUSED, values
    found = []
    for at, delta in pairs:
        value = counted(columns[at][0], values[at], sign * delta)
        values = put(values, at, value)
        found.append(value)
    return found, values


def unique(value):
    """The cas unique of a cell: of the two highest values it is the same."""
    return min(value + 1, MAX["a"])


def do_store(columns, values, kind, args):
    """set, add, replace, cas and delete of a cell."""
    at = place(columns, args[0])
    if at < 0:
        return REFUSED, values
    is_default = values[at] == columns[at][1]
    if kind == "delete":
        return not is_default, put(values, at, columns[at][1])
    if kind == "cas":
        if unique(values[at]) != unique(args[1]):
            return EXISTS, values
        return True, put(values, at, args[2])
    if kind == "add" and not is_default or kind == "replace" and is_default:
        return False, values
    return True, put(values, at, args[1])


def do_record(columns, values, kind, args):
    """The same of a record."""
    is_default = all_default(columns, values)
    if kind == "deleter":
        return not is_default, tuple(default for _, default in columns)
    pairs = places_of(columns, args[-1])
    if pairs is None or any(number > MAX[columns[at][0]]
                            for at, number in pairs):
        return REFUSED, values
    if kind == "casr" and values != tuple(args[0]):
        return EXISTS, values
    if kind == "adds" and not is_default or kind == "replaces" and is_default:
        return False, values
    for at, number in pairs:
        values = put(values, at, number)
    return True, values


def do_schema(columns, values, kind, args):
    at = place(columns, args[0])
    if kind == "add column":
        if at < 0:
            return True, columns + ((args[0], args[1]),), values + (args[1],)
        return columns[at][1] == args[1] or REFUSED, columns, values
    if at < 0:
        return REFUSED, columns, values
    return True, columns[:at] + columns[at + 1:], values[:at] + values[at + 1:]


def once(columns, values, kind, args):
    """(answer, values) of what is no edit of the schema and has no number."""
    if kind == "get":
        found = [place(columns, name) for name in args]
        if -1 in found:
            return REFUSED, values
        return [values[at] for at in found], values
    if kind == "read":
        return list(values), values
    if kind in ("incr", "decr"):
        return do_count(columns, values, args, 1 if kind == "incr" else -1)
    if kind in ("incrs", "decrs"):
        return do_counts(columns, values, args, 1 if kind == "incrs" else -1)
    if kind in ("set", "add", "replace", "cas", "delete"):
        return do_store(columns, values, kind, args)
    return do_record(columns, values, kind, args)


def repeated(columns, values, kind, args):
    """What is answered to a change whose number was seen."""
    if kind in ("incr", "decr"):
        at = place(columns, args[0])
        return REFUSED if at < 0 else values[at]
    if kind in ("incrs", "decrs"):
        pairs = places_of(columns, args[0])
        return REFUSED if pairs is None else [values[at] for at, _ in pairs]
    return True


def is_done(answer):
    """True of the answer to a change that was made."""
    return answer is not False and answer not in (REFUSED, EXISTS)


def step(state, op):
    """All (answer, state) that the operation may have in a state."""
    columns, values, done = state
    kind, args = op.kind, op.args
    if kind in SCHEMA:
        answer, columns, values = do_schema(columns, values, kind, args)
        return ((answer, (columns, values, done)),)
    if op.number is not None and op.number in done:
        answer = repeated(columns, values, kind, args)
        found = ((answer, state),)
        first, _ = once(columns, values, kind, args)
        # what does not fit may be found before the number is looked at
        return found + ((REFUSED, state),) if first == REFUSED else found
    answer, after = once(columns, values, kind, args)
    if op.number is not None and op.is_repeated and is_done(answer):
        done = done | {op.number}
    found = ((answer, (columns, after, done)),)
    if kind == "casr" and answer is True and len(columns) > len(COLUMNS):
        # the numbers are the same, and it may be another set of columns
        found += ((EXISTS, state),)
    return found
