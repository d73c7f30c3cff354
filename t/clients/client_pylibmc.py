#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""pylibmc, over the C library libmemcached. Integers have flags 4."""

import sys

sys.dont_write_bytecode = True

import pylibmc
import python_rows

PORT, PROTOCOL = sys.argv[1:3]


class Rows(python_rows.Rows):
    errors = (pylibmc.Error,)
    record = b"111 222 333"


python_rows.run(
    Rows(
        pylibmc.Client(
            ["127.0.0.1:" + PORT],
            binary=PROTOCOL == "binary",
            behaviors={
                "cas": True, "tcp_nodelay": True, "_poll_timeout": 60000
            },
        )
    ),
)
