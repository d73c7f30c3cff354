# SPDX-License-Identifier: BSD-3-Clause
"""What t/bench/run asks: its rows, and what is aimed at in each."""

import collections

HITS = ["--miss=0", "--nonzero"]
MISSES = ["--miss=0.55", "--nonzero"]
TALLYD, MEMCACHED, REDIS, FLOOR = "tallyd", "memcached", "redis", "floor"
SERVERS = (FLOOR, TALLYD, MEMCACHED, REDIS)
TITLES = {FLOOR: "floor", TALLYD: "tallyd", MEMCACHED: "memcached",
          REDIS: "Redis"}

# How tallyd and Redis keep what is changed: tallyd's options, Redis's
# appendfsync. Neither makes room in its log meanwhile.
KEPT = ["--checkpoint-log=64g", "--checkpoint-interval=0"]
MODES = {
    "memory": (["--data=none"], None),
    "none": (["--sync=none", *KEPT], None),
    "interval": (["--sync=interval", *KEPT], "everysec"),
    "always": (["--sync=always", *KEPT], "always"),
}

MORE = 1.3  # times the aim, with misses and with 10^7 records
MORE_FROM = 3000000

# name; label in plots; options of load; mode; options for some servers; aim,
# times the floor; whether asked at all sizes, and there of all servers
Row = collections.namedtuple(
    "Row", "name label options mode own aim everywhere all_servers servers",
    defaults=("memory", {}, None, False, False, SERVERS))

META = {TALLYD: ["--protocol=meta"], MEMCACHED: ["--protocol=meta"]}
BINARY = {TALLYD: ["--protocol=binary"], MEMCACHED: ["--protocol=binary"]}
ALL_GETS = {FLOOR: ["--mix=1"]}  # it has one answer only
NO_REDIS = (FLOOR, TALLYD, MEMCACHED)
NO_MEMCACHED = (FLOOR, TALLYD, REDIS)


def many(keys, *options):
    return ["multi", "--keys=%d" % keys, *(options or HITS)]


def incr(title, label, mode, depth, aim=None, servers=SERVERS):
    return Row("incr%s, sync %s" % (title, mode), "%s\n%s" % (label, mode),
               ["incr", "--depth=%d" % depth, *HITS], mode, aim=aim,
               everywhere=aim is not None, servers=servers)


ROWS = (
    Row("get", "get", ["get", *HITS], aim=1.10, everywhere=True,
        all_servers=True),
    Row("get, 16 pipelined", "get\nx 16", ["get", "--depth=16", *HITS],
        aim=1.5, everywhere=True),
    Row("get of 10 keys", "10 keys", many(10)),
    Row("get of 30 keys (10 posts x 3)", "30 keys",
        many(30, "--columns=3"), aim=1.25, everywhere=True),
    Row("get of 100 keys", "100 keys", many(100), aim=1.7, everywhere=True,
        all_servers=True),
    Row("get of 1000 keys", "1000 keys", many(1000)),
    Row("get of 100 keys, 55 % misses", "100 keys\n55 % miss",
        many(100, *MISSES), aim=1.7 * MORE, everywhere=True),
    Row("get of 30 keys, 55 % misses", "30 keys\n55 % miss",
        many(30, "--columns=3", *MISSES[:1]), aim=1.25 * MORE),
    Row("get, 55 % misses", "get\n55 % miss", ["get", *MISSES],
        aim=1.10 * MORE),
    Row("get, 16 pipelined, 55 % misses", "get x 16\n55 % miss",
        ["get", "--depth=16", *MISSES], aim=1.5 * MORE),
    Row("get of 100 keys, meta", "100 keys\nmeta", many(100), own=META,
        servers=NO_REDIS),
    Row("get of 100 keys, binary", "100 keys\nbinary", many(100), own=BINARY,
        servers=NO_REDIS),
    incr("", "incr", "none", 1),
    incr(", 16 pipelined", "incr x 16", "none", 16),
    incr("", "incr", "interval", 1, 1.20, NO_MEMCACHED),
    incr(", 16 pipelined", "incr x 16", "interval", 16, 1.6, NO_MEMCACHED),
    incr("", "incr", "always", 1, None, NO_MEMCACHED),
    incr(", 16 pipelined", "incr x 16", "always", 16, None, NO_MEMCACHED),
    Row("95 % get, 5 % incr, sync interval", "95 % get\n5 % incr",
        ["mixed", "--mix=0.95", *HITS], "interval", own=ALL_GETS),
)

# The rows whose figures the README shows, and the plot of them.
SHOWN = ("get", "get, 16 pipelined", "get of 30 keys (10 posts x 3)",
         "get of 100 keys", "get of 100 keys, 55 % misses",
         "incr, sync interval", "incr, 16 pipelined, sync interval")

LATENCY_ROW = next(row for row in ROWS if row.name == "get of 100 keys")
HALF_ROWS = tuple(row for row in ROWS
                  if row.name in ("get", "get of 100 keys"))
WORKER_ROWS = tuple(row for row in ROWS if row.name in (
    "get", "get, 16 pipelined", "get of 100 keys",
    "incr, 16 pipelined, sync none"))


def aim_of(row, records):
    """Times the floor; None where nothing is aimed at."""
    if row.aim is None:
        return None
    factor = MORE if records >= MORE_FROM and "misses" not in row.name else 1
    return row.aim * factor


def keys_of(row):
    """In one command."""
    for option in row.options:
        if option.startswith("--keys="):
            return int(option[len("--keys="):])
    return 0 if row.options[0] == "incr" else 1


def depth_of(row):
    return 16 if "--depth=16" in row.options else 1
