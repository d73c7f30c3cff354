# SPDX-License-Identifier: BSD-3-Clause
"""The rows for the clients in Python, most of whose methods have the same
names and arguments: a client's program derives from Rows what is its own."""

import random
import sys
import traceback

PAST_S = 1_000_000_000
LONG_KEY = ("long-key" + 250 * "k")[:250]
BYTES = bytes(range(256)) * 4
UNICODE = "\u5fae\u535a \u00e9"


def noise(count):
    """count bytes that do not compress."""
    return random.Random(count).randbytes(count)


def equal(got, wanted):
    """Equal, and of one type: 1 is not True, nor is it "1"."""
    if type(got) is not type(wanted) or got != wanted:
        raise AssertionError("got %.200r, wanted %.200r" % (got, wanted))


def true(got):
    if not got:
        raise AssertionError("got %.200r, wanted what is true" % (got,))


def page():
    """{key: number} of 99 cells over three suffixes, each third one 0."""
    return {
        "%d.%s" % (
            5_000_000_000_000_000 + 3624 * (i // 3),
            ("cntcm", "cntrn", "cntan")[i % 3],
        ): i // 3 % 3 and 40_000_003 * i
        for i in range(99)
    }


class Rows:
    """A method for each row: item_ or cell_ and its name. A client that lacks
    one sets it to None."""

    # What the client raises for an error; empty where it returns a false value.
    errors = ()
    # What a record comes as, its flags being 0.
    record = "111 222 333"

    def __init__(self, cache):
        self.cache = cache

    def error(self, call, *arguments, **named):
        """The call is an error."""
        try:
            got = call(*arguments, **named)
        except self.errors:
            return
        if self.errors or got:
            raise AssertionError("got %.200r, wanted an error" % (got,))

    def refused(self, call, *arguments):
        """The call is refused: false, or an error where the client says so."""
        try:
            got = call(*arguments)
        except self.errors:
            return
        if got:
            raise AssertionError("got %.200r, wanted a refusal" % (got,))

    def set_for(self, time_s, key, value):
        return self.cache.set(key, value, time=time_s)

    def stats(self):
        ((_, found),) = self.cache.get_stats()
        return found

    def flush(self):
        true(self.cache.flush_all())

    def delete_again(self, key):
        self.refused(self.cache.delete, key)

    def set_many(self, values):
        equal(self.cache.set_multi(values), [])

    def check_cas(self, key):
        true(self.cache.set(key, 5))
        value, unique = self.cache.gets(key)
        equal(value, 5)
        true(self.cache.cas(key, 6, unique))
        self.refused(self.cache.cas, key, 7, unique)
        equal(self.cache.get(key), 6)

    def check_set(self, key, value):
        true(self.cache.set(key, value))
        equal(self.cache.get(key), value)

    def item_text(self):
        self.check_set("text", "plain text")

    def item_unicode(self):
        self.check_set("unicode", UNICODE)

    def item_bytes(self):
        self.check_set("bytes", BYTES)

    def item_empty(self):
        self.check_set("empty", "")

    def item_miss(self):
        equal(self.cache.get("miss"), None)

    def item_add(self):
        true(self.cache.add("add", "one"))
        self.refused(self.cache.add, "add", "two")
        equal(self.cache.get("add"), "one")

    def item_replace(self):
        self.refused(self.cache.replace, "replace", "one")
        equal(self.cache.get("replace"), None)
        true(self.cache.set("replace", "one"))
        true(self.cache.replace("replace", "two"))
        equal(self.cache.get("replace"), "two")

    def item_append(self):
        true(self.cache.set("append", "text"))
        true(self.cache.append("append", "!"))
        true(self.cache.prepend("append", "_"))
        equal(self.cache.get("append"), "_text!")

    def item_cas(self):
        self.check_cas("cas")

    def item_number(self):
        self.check_set("number", 10)
        equal(self.cache.incr("number", 5), 15)
        equal(self.cache.decr("number", 3), 12)
        equal(self.cache.get("number"), 12)

    def item_floor(self):
        self.check_set("floor", 5)
        equal(self.cache.decr("floor", 9), 0)
        equal(self.cache.get("floor"), 0)

    def item_wide(self):
        self.check_set("wide", 4294967295)
        equal(self.cache.incr("wide", 1), 4294967296)
        equal(self.cache.get("wide"), 4294967296)

    def item_word(self):
        self.check_set("word", "word")
        self.error(self.cache.incr, "word", 1)
        equal(self.cache.get("word"), "word")

    def item_no_number(self):
        self.refused(self.cache.incr, "no-number", 1)
        equal(self.cache.get("no-number"), None)

    item_initial = None

    def item_delete(self):
        self.check_set("delete", "x")
        true(self.cache.delete("delete"))
        equal(self.cache.get("delete"), None)
        self.delete_again("delete")

    def item_touch(self):
        self.check_set("touch", "x")
        true(self.cache.touch("touch", 1000))
        self.refused(self.cache.touch, "touch-none", 1000)

    item_gat = None

    def item_expired(self):
        true(self.set_for(PAST_S, "expired", "x"))
        equal(self.cache.get("expired"), None)

    def item_multi(self):
        values = {"multi-%d" % i: i for i in range(100)}
        self.set_many(values)
        names = ["multi-%d" % i for i in range(120)]
        equal(self.cache.get_multi(names), values)

    def item_large(self):
        self.check_set("large", noise(1_000_000))

    def item_too_large(self):
        self.check_set("too-large-not", "x")
        self.error(self.cache.set, "too-large", noise(1 << 21))
        equal(self.cache.get("too-large-not"), "x")

    def item_long_key(self):
        self.check_set(LONG_KEY, "x")

    item_quiet = None

    def item_stats(self):
        self.check_set("stats", "x")
        found = self.stats()
        true(int(found["pid"]) > 0 and int(found["curr_items"]) > 0)

    def item_flush(self):
        self.check_set("flush", "x")
        self.flush()
        equal(self.cache.get("flush"), None)

    def cell_set(self):
        self.check_set("1.cntcm", 41)

    def cell_incr(self):
        self.check_set("2.cntcm", 41)
        equal(self.cache.incr("2.cntcm", 1), 42)
        equal(self.cache.decr("2.cntcm", 2), 40)
        equal(self.cache.get("2.cntcm"), 40)

    def cell_absent(self):
        equal(self.cache.get("3.cntan"), 0)

    def cell_from_0(self):
        equal(self.cache.incr("4.cntrn", 5), 5)
        equal(self.cache.get("4.cntrn"), 5)

    def cell_zeroed(self):
        self.check_set("18.cntcm", 0)
        equal(self.cache.incr("18.cntcm", 5), 5)
        equal(self.cache.decr("18.cntcm", 5), 0)
        equal(self.cache.incr("18.cntcm", 5), 5)
        equal(self.cache.get("18.cntcm"), 5)

    cell_initial = None

    def cell_floor(self):
        self.check_set("5.cntcm", 5)
        equal(self.cache.decr("5.cntcm", 9), 0)
        equal(self.cache.get("5.cntcm"), 0)

    def cell_max(self):
        self.check_set("6.cntan", 4294967295)
        equal(self.cache.incr("6.cntan", 1), 4294967295)

    def cell_multi(self):
        cells = page()
        written = {key: value for key, value in cells.items() if value}
        self.set_many(written)
        equal(self.cache.get_multi(list(cells)), cells)

    def cell_columns(self):
        equal(self.cache.get("1234.cntcm"), 111)
        equal(self.cache.get("1234.cntrn"), 222)
        equal(self.cache.get("1234.cntan"), 333)

    def cell_record(self):
        equal(self.cache.get("1234.weibo"), self.record)

    def cell_forms(self):
        equal(self.cache.get("{1234}.cntrn"), 222)
        equal(self.cache.get("1234|#|.cntrn"), 222)

    cell_quiet = None

    def cell_add(self):
        true(self.cache.add("7.cntcm", 1))
        self.refused(self.cache.add, "7.cntcm", 2)
        equal(self.cache.get("7.cntcm"), 1)

    def cell_replace(self):
        self.refused(self.cache.replace, "8.cntcm", 1)
        equal(self.cache.get("8.cntcm"), 0)
        true(self.cache.set("8.cntcm", 1))
        true(self.cache.replace("8.cntcm", 2))
        equal(self.cache.get("8.cntcm"), 2)

    def cell_cas(self):
        self.check_cas("9.cntcm")

    def cell_word(self):
        self.check_set("10.cntcm", 41)
        self.error(self.cache.set, "10.cntcm", "word")
        equal(self.cache.get("10.cntcm"), 41)

    def cell_too_wide(self):
        self.check_set("11.cntcm", 41)
        self.error(self.cache.set, "11.cntcm", 4294967296)
        equal(self.cache.get("11.cntcm"), 41)

    def cell_expires(self):
        self.error(self.set_for, 60, "12.cntcm", 1)
        equal(self.cache.get("12.cntcm"), 0)

    def cell_append(self):
        self.check_set("13.cntcm", 41)
        self.error(self.cache.append, "13.cntcm", "1")
        equal(self.cache.get("13.cntcm"), 41)

    def cell_delete(self):
        self.check_set("14.cntcm", 41)
        true(self.cache.delete("14.cntcm"))
        equal(self.cache.get("14.cntcm"), 0)
        self.delete_again("14.cntcm")

    def cell_flush(self):
        self.check_set("15.cntcm", 41)
        self.flush()
        equal(self.cache.get("15.cntcm"), 41)


def where(why):
    """The lines that the exception went through."""
    frames = traceback.extract_tb(why.__traceback__)
    return "line %s: %s: %s" % (
        ", ".join(str(frame.lineno) for frame in frames[1:]),
        type(why).__name__,
        str(why).replace("\n", " "),
    )


def run(rows):
    """Runs the rows of the part that the command line names."""
    part = {"items": "item_", "cells": "cell_"}[sys.argv[3]]
    for method in vars(Rows):
        call = getattr(rows, method)
        if method.startswith(part) and call is not None:
            name = method[len(part):].replace("_", "-")
            try:
                call()
                print("ok", name)
            except Exception as why:
                print("not ok", name, where(why))
            sys.stdout.flush()
