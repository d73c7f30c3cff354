# SPDX-License-Identifier: BSD-3-Clause
"""What else an operation may be answered that is under way while a column is
added or dropped. It has the columns of one moment, at which its words were
looked up, and the numbers of another, and both lie between its request and its
reply. op.versions are the sets of columns that there were in that time. So

* a record may have the columns of any of these; those that are there at the
  moment of the numbers have their numbers of that moment;
* of a column that is not there at that moment any number may be told, and what
  becomes of it is of no matter, for its numbers are forgotten later than its
  name, and never seen under another name;
* such a number may still make a record one that is not at its defaults;
* whatever names such a column, or a record, may be refused: "the counter or
  column has been dropped"."""

from history_model import EXISTS, MAX, REFUSED, SCHEMA, counted, is_done, \
    place, places_of, put

OF_CELLS = ("incr", "decr", "set", "add", "replace", "cas", "delete")
ANY = None  # a number that is not known


def versions_of(ops, starts):
    """Gives each operation its sets of columns, where there are several. ops:
    of one life; starts: the columns that it may begin with."""
    edits = sorted((op for op in ops if op.kind in SCHEMA),
                   key=lambda op: op.order)
    for op in ops:
        op.versions = ()
        if op.kind in SCHEMA or not any(overlap(op, edit) for edit in edits):
            continue
        found = set()
        for columns in starts:
            found |= while_under_way(op, edits, columns)
        op.versions = tuple(sorted(found))


def overlap(op, edit):
    return (edit.end is None or edit.end > op.begin) and \
        (op.end is None or edit.begin < op.end)


def while_under_way(op, edits, columns):
    found = set()
    for edit in edits:
        is_over = edit.end is not None and edit.end < op.begin
        if not is_over:
            found.add(columns)
        if op.end is not None and edit.begin > op.end:
            return found
        columns = edited(columns, edit)
    found.add(columns)
    return found


def edited(columns, edit):
    at = place(columns, edit.args[0])
    if edit.kind == "add column":
        return columns + (tuple(edit.args),) if at < 0 else columns
    return columns if at < 0 else columns[:at] + columns[at + 1:]


def step_elsewhere(state, op):
    """All (answer, state) that the operation may have beside those of step."""
    columns, values, _ = state
    found = []
    names = op.args if op.kind == "get" else op.args[:1]
    is_record = op.kind not in OF_CELLS and op.kind != "get"
    has_hidden = any(column not in columns
                     for version in op.versions for column in version)
    for version in op.versions:
        if version == columns and not (is_record and has_hidden):
            continue
        if is_record:
            found += record(state, op, version, has_hidden)
        elif any(place(columns, name) < 0 <= place(version, name)
                 for name in names):
            found.append((told(op, columns, values), state))
        if is_record or any((place(version, name) < 0) !=
                            (place(columns, name) < 0) for name in names):
            found.append((REFUSED, state))
    return found


def told(op, columns, values):
    """The answer of an operation on cells, one of which is not there."""
    if op.kind != "get" or not isinstance(op.answer, list):
        return op.answer
    found = [place(columns, name) for name in op.args]
    return [answer if at < 0 else values[at]
            for answer, at in zip(op.answer, found)]


def record(state, op, version, has_hidden):
    """An operation on a record that has the columns of another moment.
    has_hidden: a column may be gone whose numbers are not forgotten."""
    columns, values, done = state
    there = [columns.index(column) if column in columns else ANY
             for column in version]
    shown = tuple(ANY if at is ANY else values[at] for at in there)
    if op.kind == "read":
        if not isinstance(op.answer, list) or len(op.answer) != len(shown):
            return []
        return [([answer if value is ANY else value for answer, value in
                  zip(op.answer, shown)], state)]
    if op.number is not None and op.number in done:
        return [(repeated(op, version, shown), state)]
    found = []
    for answer, numbers in changed(op, version, shown, has_hidden):
        after = values
        for at, number in zip(there, numbers):
            if at is not ANY and number is not ANY:
                after = put(after, at, number)
        is_marked = op.is_repeated and is_done(answer)
        found.append((answer, (columns, after, done | {op.number}
                               if is_marked else done)))
    return found


def fitting(op, version):
    """[(place, number)] of what is given; None where it does not fit."""
    pairs = places_of(version, op.args[-1])
    if pairs is None or op.kind not in ("incrs", "decrs") and any(
            number > MAX[version[at][0]] for at, number in pairs):
        return None
    return pairs


def repeated(op, version, shown):
    pairs = fitting(op, version) if op.args else ()
    if pairs is None:
        return REFUSED
    if op.kind not in ("incrs", "decrs"):
        return True
    return with_told(op, [shown[at] for at, _ in pairs])


def with_told(op, numbers):
    """The numbers, those that are not known as they were told."""
    if not isinstance(op.answer, list) or len(op.answer) != len(numbers):
        return numbers
    return [answer if number is ANY else number
            for answer, number in zip(op.answer, numbers)]


def changed(op, version, shown, has_hidden):
    """All (answer, numbers) of a change of a record with these columns, of
    which some numbers are not known."""
    is_default = all(number in (ANY, default)
                     for number, (_, default) in zip(shown, version))
    is_known = not has_hidden
    if op.kind == "deleter":
        gone = tuple(default for _, default in version)
        either = [(True, gone)] if not (is_known and is_default) else []
        return either + ([(False, shown)] if is_default else [])
    pairs = fitting(op, version)
    if pairs is None:
        return []
    after = shown
    if op.kind in ("incrs", "decrs"):
        sign = 1 if op.kind == "incrs" else -1
        for at, delta in pairs:
            if after[at] is not ANY:
                after = put(after, at, counted(version[at][0], after[at],
                                               sign * delta))
        return [(with_told(op, [after[at] for at, _ in pairs]), after)]
    for at, number in pairs:
        after = put(after, at, number)
    if op.kind == "casr":
        is_same = len(shown) == len(op.args[0]) and all(
            number in (ANY, old) for number, old in zip(shown, op.args[0]))
        return [(EXISTS, shown)] + ([(True, after)] if is_same else [])
    if op.kind == "sets" or is_known:
        is_made = op.kind == "sets" or is_default == (op.kind == "adds")
        return [(True, after) if is_made else (False, shown)]
    either = [(True, after)] if is_default or op.kind == "replaces" else []
    return either + ([(False, shown)] if is_default or op.kind == "adds"
                     else [])
