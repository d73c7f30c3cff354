#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""python-memcached. Integers have flags 2. Failure is a false value, but what
incr cannot read as a number raises ValueError; delete succeeds where nothing
is."""

import sys

sys.dont_write_bytecode = True

import memcache
import python_rows
from python_rows import equal, true


class Rows(python_rows.Rows):
    record = b"111 222 333"

    def item_word(self):
        self.check_set("word", "word")
        try:
            self.cache.incr("word", 1)
        except ValueError:
            equal(self.cache.get("word"), "word")
            return
        raise AssertionError("no error")

    def delete_again(self, key):
        true(self.cache.delete(key))

    def flush(self):
        """Says nothing about how it went."""
        self.cache.flush_all()

    def check_cas(self, key):
        """The client keeps the unique of its last gets; another one changes
        the value meanwhile."""
        true(self.cache.set(key, 5))
        equal(self.cache.gets(key), 5)
        true(self.cache.cas(key, 6))
        equal(self.cache.gets(key), 6)
        true(connect().set(key, 7))
        self.refused(self.cache.cas, key, 8)
        equal(self.cache.get(key), 7)

    def check_quiet(self, key, value):
        true(self.cache.set(key, value, noreply=True))
        equal(self.cache.get(key), value)

    def item_quiet(self):
        self.check_quiet("quiet", "x")

    def cell_quiet(self):
        self.check_quiet("16.cntcm", 3)


def connect():
    return memcache.Client(
        ["127.0.0.1:" + sys.argv[1]],
        socket_timeout=60,
        cache_cas=True,
        server_max_value_length=1 << 22,
    )


python_rows.run(Rows(connect()))
