#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The clients in Python through a failover, see README."""

import sys
import time

sys.dont_write_bytecode = True

NAME, PROTOCOL, ADDRESSES, KEYS = sys.argv[1:5]
LIST = ADDRESSES.split(",")
PAUSE_S = 0.02


def make_pylibmc():
    import pylibmc
    client = pylibmc.Client(LIST, binary=PROTOCOL == "binary", behaviors={
        "connect_timeout": 200, "send_timeout": 2000000,
        "receive_timeout": 2000000, "retry_timeout": 1, "tcp_nodelay": True})
    return lambda key: client.incr(key, 1)


def make_pymemcache():
    options = {"connect_timeout": 0.2, "timeout": 2, "no_delay": True}
    if len(LIST) == 1:
        from pymemcache.client.base import Client
        client = Client(LIST[0], **options)
    else:
        from pymemcache.client.hash import HashClient
        client = HashClient(LIST, retry_attempts=0, retry_timeout=1,
                            dead_timeout=1, **options)
    return lambda key: client.incr(key, 1)


def make_memcache():
    import memcache
    client = memcache.Client(LIST, dead_retry=1, socket_timeout=2)
    return lambda key: client.incr(key, 1)


def make_bmemcached():
    import bmemcached
    client = bmemcached.Client(LIST, socket_timeout=2)
    return lambda key: client.incr(key, 1)


MAKERS = {"pylibmc": make_pylibmc, "pymemcache": make_pymemcache,
          "python-memcached": make_memcache,
          "python-binary-memcached": make_bmemcached}


def once(incr, key):
    """One change; true where it was answered with a number."""
    try:
        answer = incr(key)
    except Exception as error:  # whatever the application would see
        what = "%s: %s" % (type(error).__name__, error)
    else:
        if isinstance(answer, int) and not isinstance(answer, bool):
            print("ok", answer, flush=True)
            return True
        what = "%r is returned" % (answer,)
    print("error", " ".join(what.split()), flush=True)
    return False


def main():
    incr = MAKERS[NAME]()
    for key in KEYS.split(","):
        if once(incr, key):
            break
    else:
        return
    print("key", key, flush=True)
    while True:
        once(incr, key)
        time.sleep(PAUSE_S)


main()
