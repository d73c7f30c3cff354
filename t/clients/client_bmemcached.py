#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""python-binary-memcached. Integers have flags 2. Each incr sends an initial
value and a time of 1,000,000 s; delete succeeds where nothing is; set_multi
takes no integers."""

import sys

sys.dont_write_bytecode = True

import bmemcached
from bmemcached.exceptions import MemcachedException
import python_rows
from python_rows import equal, true


class Rows(python_rows.Rows):
    errors = (MemcachedException,)
    item_append = None
    item_no_number = None
    item_touch = None
    cell_append = None
    cell_expires = None

    def stats(self):
        (found,) = self.cache.stats().values()
        return found

    def set_many(self, values):
        for key, value in values.items():
            true(self.cache.set(key, value))

    def delete_again(self, key):
        true(self.cache.delete(key))

    def check_initial(self, key):
        equal(self.cache.incr(key, 5, default=7), 7)
        equal(self.cache.incr(key, 5, default=7), 12)

    def item_initial(self):
        self.check_initial("initial")

    def cell_initial(self):
        self.check_initial("17.cntcm")


python_rows.run(
    Rows(bmemcached.Client(["127.0.0.1:" + sys.argv[1]], socket_timeout=60)),
)
