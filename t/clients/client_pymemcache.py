#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""pymemcache with its pickle serializer, which gives integers flags 2."""

import sys

sys.dont_write_bytecode = True

import python_rows
from pymemcache import serde
from pymemcache.client.base import Client
from pymemcache.exceptions import MemcacheError


class Rows(python_rows.Rows):
    errors = (MemcacheError,)
    record = b"111 222 333"

    def set_for(self, time_s, key, value):
        return self.cache.set(key, value, expire=time_s)

    def stats(self):
        return {
            name.decode(): value for name, value in self.cache.stats().items()
        }

    def check_quiet(self, key, value):
        self.cache.set(key, value, noreply=True)
        python_rows.equal(self.cache.get(key), value)

    def item_quiet(self):
        self.check_quiet("quiet", "x")

    def cell_quiet(self):
        self.check_quiet("16.cntcm", 3)


python_rows.run(
    Rows(
        Client(
            ("127.0.0.1", int(sys.argv[1])),
            timeout=60,
            default_noreply=False,
            serde=serde.pickle_serde,
        )
    ),
)
