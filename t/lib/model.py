# SPDX-License-Identifier: BSD-3-Clause
"""A slow, obvious model of what tallyd stores, for the property test.

Each method does one command and returns the reply lines it must have: exact
bytes, or a compiled expression where the wording is not fixed. noreply is the
caller's business."""

import re

U64_MAX = 2**64 - 1
COLUMNS_MAX = 16
CLIENT_ERROR = re.compile(rb"CLIENT_ERROR .+")

STORED = [b"STORED"]
NOT_STORED = [b"NOT_STORED"]
NOT_FOUND = [b"NOT_FOUND"]
EXISTS = [b"EXISTS"]
DELETED = [b"DELETED"]
TOUCHED = [b"TOUCHED"]
REFUSED = [CLIENT_ERROR]
NON_NUMERIC = [b"CLIENT_ERROR cannot increment or decrement non-numeric value"]


class Column:
    def __init__(self, name, suffix, hint_bits, max_bits, default, flags):
        self.options = (name, suffix, hint_bits, max_bits, default, flags)
        self.name = name
        self.suffix = suffix
        self.max = 2**max_bits - 1
        self.default = default
        self.flags = flags
        self.value = {}

    def get(self, number):
        return self.value.get(number, self.default)

    def put(self, number, value):
        if value == self.default:
            self.value.pop(number, None)
        else:
            self.value[number] = value


class Counter:
    def __init__(self, name, miss, refuse, ignore, quietest):
        self.name = name
        self.absent_is_miss = miss
        self.overflow_is_error = refuse
        self.exptime_is_ignored = ignore
        self.cold_is_quietest = quietest  # nothing that is answered differs
        self.has_key = False
        self.columns = []

    def options(self):
        return (
            self.absent_is_miss,
            self.overflow_is_error,
            self.exptime_is_ignored,
            self.cold_is_quietest,
        )


class Item:
    def __init__(self, value, flags):
        self.value = value
        self.flags = flags
        self.version = 0  # counts changes
        self.cas = None  # (version, unique) as the server told it


def parse_number(text):
    """An unsigned decimal integer of at most 64 bits, or None."""
    if not re.fullmatch(rb"[0-9]+", text):
        return None
    value = int(text)
    return value if value <= U64_MAX else None


class Model:
    def __init__(self):
        self.items = {}
        self.counters = {}
        self.versions = 0

    # -- what keys name --

    def taken(self, name):
        for counter in self.counters.values():
            if counter.name == name:
                return True
            for column in counter.columns:
                if name in (column.name, column.suffix):
                    return True
        return False

    def resolve(self, key):
        """(counter, columns, id) of a cell or record, or None."""
        found = re.fullmatch(
            r"(?:\{(\d+)\}|(\d+)\|#\||(\d+))\.(\w+)", key
        )
        if not found:
            return None
        digits = found.group(1) or found.group(2) or found.group(3)
        if digits != str(int(digits)) or int(digits) > U64_MAX:
            return None
        name = found.group(4)
        for counter in self.counters.values():
            if counter.name == name:
                return counter, counter.columns, int(digits)
            for column in counter.columns:
                if name in (column.name, column.suffix):
                    return counter, [column], int(digits)
        return None

    def is_record(self, key):
        target = self.resolve(key)
        return target is not None and key.endswith("." + target[0].name)

    # -- retrieval --

    def value_lines(self, key, with_cas):
        target = self.resolve(key)
        if target is None:
            return self.item_lines(key, with_cas)
        counter, columns, number = target
        values = [column.get(number) for column in columns]
        if not columns:
            return []
        if counter.absent_is_miss and all(
            column.get(number) == column.default for column in columns
        ):
            return []
        record = self.is_record(key)
        text = b" ".join(b"%d" % value for value in values)
        flags = 0 if record else columns[0].flags
        head = b"VALUE %s %d %d" % (key.encode(), flags, len(text))
        if with_cas and not record:
            head += b" %d" % min(values[0] + 1, U64_MAX)
        elif with_cas:
            return [re.compile(re.escape(head) + rb" \d+"), text]
        return [head, text]

    def item_lines(self, key, with_cas):
        item = self.items.get(key)
        if item is None:
            return []
        head = b"VALUE %s %d %d" % (
            key.encode(), item.flags, len(item.value),
        )
        if not with_cas:
            return [head, item.value]
        version = item.version

        def learn(found):
            unique = int(found.group(1))
            if item.cas and item.cas[0] == version:
                if item.cas[1] != unique:
                    raise AssertionError("the unique of %s changed" % key)
            item.cas = (version, unique)

        wanted = re.compile(re.escape(head) + rb" (\d+)")
        return [(wanted, learn), item.value]

    def get(self, keys, with_cas=False, exptime=None):
        if exptime:
            for key in keys:
                target = self.resolve(key)
                if target and not target[0].exptime_is_ignored:
                    return REFUSED
        lines = []
        for key in keys:
            lines += self.value_lines(key, with_cas)
        return lines + [b"END"]

    # -- memcached's changes --

    def change_item(self, key, value, flags):
        item = self.items.get(key)
        if item is None:
            item = self.items[key] = Item(value, flags)
        item.value = value
        item.flags = flags
        self.versions += 1
        item.version = self.versions

    def store_item(self, verb, key, value, flags):
        old = self.items.get(key)
        if verb == "add" and old or verb != "set" and verb != "add" and not old:
            return NOT_STORED
        if verb == "append":
            value, flags = old.value + value, old.flags
        elif verb == "prepend":
            value, flags = value + old.value, old.flags
        self.change_item(key, value, flags)
        return STORED

    def store(self, verb, key, value, flags, exptime):
        target = self.resolve(key)
        if target is None:
            return self.store_item(verb, key, value, flags)
        counter, columns, number = target
        if verb in ("append", "prepend"):
            return REFUSED
        if exptime and not counter.exptime_is_ignored:
            return REFUSED
        words = value.split(b" ") if self.is_record(key) else [value]
        return self.put(columns, number, words, verb)

    def put(self, columns, number, words, verb="set", record=None):
        """record: the columns that say whether it is there."""
        values = [parse_number(word) for word in words]
        if not columns or len(values) != len(columns) or None in values:
            return REFUSED
        if any(v > c.max for v, c in zip(values, columns)):
            return REFUSED
        fresh = all(c.get(number) == c.default for c in record or columns)
        if verb == "add" and not fresh or verb == "replace" and fresh:
            return NOT_STORED
        for column, value in zip(columns, values):
            column.put(number, value)
        return STORED

    def cas_of(self, key):
        """A unique that is right now, or None where it is not known."""
        target = self.resolve(key)
        if target:
            return min(target[1][0].get(target[2]) + 1, U64_MAX)
        item = self.items.get(key)
        return item.cas[1] if item and item.cas else None

    def cas(self, key, value, flags, exptime, unique):
        target = self.resolve(key)
        if target is None:
            item = self.items.get(key)
            if item is None:
                return NOT_FOUND
            if item.cas != (item.version, unique):
                return EXISTS
            self.change_item(key, value, flags)
            return STORED
        counter, (column,), number = target
        if exptime and not counter.exptime_is_ignored:
            return REFUSED
        number_of = parse_number(value)
        if number_of is None or number_of > column.max:
            return REFUSED
        now = column.get(number)
        if counter.absent_is_miss and now == column.default:
            return NOT_FOUND
        if min(now + 1, U64_MAX) != unique:
            return EXISTS
        column.put(number, number_of)
        return STORED

    def delete(self, key):
        target = self.resolve(key)
        if target is None:
            return DELETED if self.items.pop(key, None) else NOT_FOUND
        return self.reset(target[1], target[2])

    def reset(self, columns, number):
        if not columns:
            return REFUSED
        if all(c.get(number) == c.default for c in columns):
            return NOT_FOUND
        for column in columns:
            column.put(number, column.default)
        return DELETED

    def touch(self, key, exptime):
        target = self.resolve(key)
        if target is None:
            return TOUCHED if key in self.items else NOT_FOUND
        counter, columns, number = target
        if exptime and not counter.exptime_is_ignored:
            return REFUSED
        if counter.absent_is_miss and all(
            c.get(number) == c.default for c in columns
        ):
            return NOT_FOUND
        return TOUCHED

    def arith(self, down, key, delta):
        target = self.resolve(key)
        if target is not None:
            counter, columns, number = target
            if self.is_record(key):
                return REFUSED
            return self.move(counter, columns, number, [delta], down)
        item = self.items.get(key)
        if item is None:
            return NOT_FOUND
        value = parse_number(item.value)
        if value is None:
            return NON_NUMERIC
        value = max(0, value - delta) if down else (value + delta) % 2**64
        self.change_item(key, b"%d" % value, item.flags)
        return [b"%d" % value]

    def move(self, counter, columns, number, deltas, down):
        if not columns or len(deltas) != len(columns):
            return REFUSED
        values = []
        for column, delta in zip(columns, deltas):
            value = column.get(number)
            value = max(0, value - delta) if down else value + delta
            if value > column.max and counter.overflow_is_error:
                return REFUSED
            values.append(min(value, column.max))
        for column, value in zip(columns, values):
            column.put(number, value)
        return [b" ".join(b"%d" % value for value in values)]

    def flush(self):
        self.items.clear()
        return [b"OK"]

    # -- the dialect --

    def dialect_target(self, counter, word):
        """(columns, id) of ID or ID.NAME, or None."""
        if "." not in word:
            return counter.columns, int(word)
        digits, name = word.split(".")
        for column in counter.columns:
            if name in (column.name, column.suffix):
                return [column], int(digits)
        return None

    def dialect_get(self, name, words):
        counter = self.counters[name]
        if not counter.columns:
            return REFUSED
        lines = []
        for word in words:
            target = self.dialect_target(counter, word)
            if target is None:
                return REFUSED
            key = word if "." in word else "%s.%s" % (word, name)
            found = self.value_lines(key, False)
            if found and "." not in word:
                text = found[1]
                found[0] = b"VALUE %s 0 %d" % (word.encode(), len(text))
            lines += found
        return lines + [b"END"]

    def dialect_change(self, verb, name, word, numbers):
        counter = self.counters[name]
        target = self.dialect_target(counter, word)
        if target is None:
            return REFUSED
        columns, number = target
        if verb == "delete":
            return self.reset(columns, number)
        if verb in ("set", "add", "replace"):
            words = [text.encode() for text in numbers]
            return self.put(columns, number, words, verb)
        if not numbers and "." in word:
            numbers = ["1"]
        deltas = [parse_number(text.encode()) for text in numbers]
        if None in deltas:
            return REFUSED
        return self.move(counter, columns, number, deltas, verb == "decr")

    def dialect_named(self, verb, name, word, pairs):
        """pairs: of a column's name or suffix and a number."""
        counter = self.counters[name]
        columns = []
        for wanted, _ in pairs:
            found = [c for c in counter.columns if wanted in (c.name, c.suffix)]
            if not found or found[0] in columns:
                return REFUSED
            columns += found
        if verb in ("set", "add", "replace"):
            words = [text.encode() for _, text in pairs]
            return self.put(columns, int(word), words, verb, counter.columns)
        deltas = [parse_number(text.encode()) for _, text in pairs]
        if None in deltas:
            return REFUSED
        return self.move(counter, columns, int(word), deltas, verb == "decr")

    # -- the schema --

    def add_counter(self, name, *options):
        same = self.counters.get(name)
        if same and same.options() == options:
            return STORED
        if self.taken(name) or name in self.items:
            return REFUSED
        self.counters[name] = Counter(name, *options)
        return STORED

    def add_key(self, name):
        counter = self.counters.get(name)
        if counter is None:
            return REFUSED
        counter.has_key = True  # the same key again is no error
        return STORED

    def add_column(self, name, column):
        counter = self.counters.get(name)
        if counter is None or not counter.has_key:
            return REFUSED
        if column.options in [other.options for other in counter.columns]:
            return STORED
        if len(counter.columns) == COLUMNS_MAX:
            return REFUSED
        if self.taken(column.name) or self.taken(column.suffix):
            return REFUSED
        counter.columns.append(column)
        return STORED

    def drop_column(self, name, column):
        counter = self.counters.get(name)
        if counter is None:
            return REFUSED
        kept = [c for c in counter.columns if c.name != column]
        if len(kept) == len(counter.columns):
            return REFUSED
        counter.columns = kept
        return DELETED

    def drop_counter(self, name):
        return DELETED if self.counters.pop(name, None) else REFUSED
