# SPDX-License-Identifier: BSD-3-Clause
"""The clients that t/system/clients.test runs: what each one needs, what it
lacks of the rows in README, and how to run it. doc/clients.md says the same
for people."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import namedtuple

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../lib"))

import client
import server
import tap

PARTS = ("items", "cells")

# Where programs are built that the client's language compiles.
BUILT = os.path.join(os.environ.get("top_builddir", "."), "t/clients")

# Where make clients has npm put its packages.
NODE_MODULES = os.environ.get("NODE_PATH", "")

SPYMEMCACHED = "/usr/share/java/spymemcached.jar"
GO_PATH = "/usr/share/gocode"

# name       as in doc/clients.md
# package    Debian's or npm's name
# command    of the program, without PORT PROTOCOL PART
# protocols  {"text" or "binary": rows it lacks, as {part: rows}}
# options    of the tests, by name:
#   flags    of the columns
#   counter  options of the counter
#   small    True: also in make check
#   extra    arguments behind PART
Client = namedtuple("Client", "name package command protocols options")

# What most lack, because they have no such call.
NO_INITIAL = {"items": "initial", "cells": "initial"}
NO_GAT = {"items": "gat"}
NO_QUIET = {"items": "quiet", "cells": "quiet"}
NO_CAS = {"items": "cas", "cells": "cas"}
NO_APPEND = {"items": "append", "cells": "append"}
NO_TOUCH = {"items": "touch"}
NO_STATS = {"items": "stats"}
# incr always sends an initial value.
ALWAYS_INITIAL = {"items": "no-number"}


def lack(*rows):
    """{part: set of rows} of some of the above together."""
    return {
        part: {row for some in rows for row in some.get(part, "").split()}
        for part in PARTS
    }


def python(name):
    return ["/usr/bin/python3", os.path.join(HERE, name)]


def node(name):
    return ["node", os.path.join(HERE, name)]


PERL = ["perl", os.path.join(HERE, "client_cache_memcached.pl")]

CLIENTS = (
    Client(
        "libmemcached", "libmemcached-dev",
        [os.path.join(BUILT, "client_libmemcached")],
        {
            "text": lack(NO_GAT, NO_INITIAL),
            "binary": lack(NO_GAT),
        },
        {"small": True},
    ),
    Client(
        "pylibmc", "python3-pylibmc", python("client_pylibmc.py"),
        {
            "text": lack(NO_GAT, NO_QUIET, NO_INITIAL),
            "binary": lack(NO_GAT, NO_QUIET, NO_INITIAL),
        },
        {"small": True, "flags": 4},
    ),
    Client(
        "pymemcache", "python3-pymemcache", python("client_pymemcache.py"),
        {"text": lack(NO_GAT, NO_INITIAL)},
        {"small": True, "flags": 2},
    ),
    Client(
        "python-memcached", "python3-memcache",
        python("client_python_memcached.py"),
        {"text": lack(NO_GAT, NO_INITIAL)},
        {"small": True, "flags": 2},
    ),
    Client(
        "python-binary-memcached", "python3-binary-memcached",
        python("client_bmemcached.py"),
        {
            "binary": lack(
                NO_GAT, NO_QUIET, NO_APPEND, NO_TOUCH, ALWAYS_INITIAL,
                {"cells": "expires"},
            )
        },
        {"small": True, "flags": 2, "counter": "exptime=ignore"},
    ),
    Client(
        "Cache::Memcached", "libcache-memcached-perl", PERL,
        {
            "text": lack(
                NO_GAT, NO_QUIET, NO_CAS, NO_TOUCH, NO_INITIAL
            )
        },
        {"small": True, "extra": ["Cache::Memcached"]},
    ),
    Client(
        "Cache::Memcached::Fast", "libcache-memcached-fast-perl", PERL,
        {"text": lack(NO_STATS, NO_INITIAL)},
        {"small": True, "extra": ["Cache::Memcached::Fast"]},
    ),
    Client(
        "php-memcached", "php-memcached",
        ["php", os.path.join(HERE, "client_php.php")],
        {
            "text": lack(NO_GAT, NO_INITIAL),
            "binary": lack(NO_GAT),
        },
        {"flags": 1},
    ),
    Client(
        "dalli", "ruby-dalli", ["ruby", os.path.join(HERE, "client_dalli.rb")],
        # A time that has passed is made one to come.
        {"binary": lack({"items": "expired"})},
        {},
    ),
    Client(
        "spymemcached", "libspymemcached-java",
        ["java", "-cp", SPYMEMCACHED,
         os.path.join(HERE, "ClientSpymemcached.java")],
        {
            "text": lack(NO_GAT, NO_QUIET, {"cells": "initial"}),
            "binary": lack(NO_QUIET),
        },
        {},
    ),
    Client(
        "gomemcache", "golang-github-bradfitz-gomemcache-dev",
        [os.path.join(BUILT, "client_gomemcache")],
        {
            "text": lack(
                NO_GAT, NO_QUIET, NO_APPEND, NO_STATS, NO_INITIAL
            )
        },
        {},
    ),
    Client(
        "memcached (npm)", "memcached", node("client_npm_memcached.js"),
        # A SERVER_ERROR counts as a server that is down.
        {
            "text": lack(
                NO_GAT, NO_QUIET, NO_INITIAL, {"items": "too-large"}
            )
        },
        {"flags": 8},
    ),
    Client(
        "memcache-plus (npm)", "memcache-plus",
        node("client_memcache_plus.js"),
        # Bytes are taken for text and read line by line, without empty ones; a
        # key has fewer than 250 bytes.
        {
            "text": lack(
                NO_GAT, NO_QUIET, NO_INITIAL, NO_TOUCH, NO_STATS,
                {"items": "bytes empty long-key"},
            )
        },
        {"flags": 8},
    ),
    Client(
        "memjs (npm)", "memjs", node("client_memjs.js"),
        # prepend sends an append; over 32 bits a number is read wrongly.
        {
            "binary": lack(
                NO_GAT, NO_QUIET, NO_CAS, ALWAYS_INITIAL,
                {"items": "append wide multi", "cells": "append multi"},
            )
        },
        {},
    ),
    Client(
        "@keyv/memcache (npm)", "@keyv/memcache", node("client_keyv.js"),
        # It stores JSON of its own around each value: no cells.
        {
            "binary": lack(
                NO_GAT, NO_QUIET, NO_CAS, NO_APPEND, NO_TOUCH, NO_STATS,
                NO_INITIAL,
                {"items": "add replace number floor wide word no-number "
                          "long-key"},
            )
        },
        {"only_items": True},
    ),
)


def table():
    """{part: [row]} as README has them."""
    found = {}
    with open(os.path.join(HERE, "README"), encoding="utf-8") as lines:
        for line in lines:
            head = re.match(r"(Items|Cells|Through a failover)$", line)
            if head:
                rows = found[head.group(1).lower()] = []
            row = re.match(r"    ([a-z0-9-]+) +\S", line)
            if row and found:
                rows.append(row.group(1))
    return found


def is_npm(one):
    return one.command[0] == "node"


def version_of(one):
    """The client's version; raises Skip where it is not installed."""
    if is_npm(one):
        path = os.path.join(NODE_MODULES, one.package, "package.json")
        if shutil.which("node") is None:
            raise tap.Skip("node is not installed")
        if not NODE_MODULES or not os.path.exists(path):
            raise tap.Skip("npm's %s is not installed; make clients does it"
                           % one.package)
        with open(path, encoding="utf-8") as text:
            return json.load(text)["version"]
    done = subprocess.run(
        ["dpkg-query", "-W", "-f", "${db:Status-Status} ${Version}",
         one.package],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    status, _, version = done.stdout.decode().partition(" ")
    if done.returncode != 0 or status != "installed":
        raise tap.Skip("Debian's %s is not installed" % one.package)
    return version


def build_go():
    """client_gomemcache, with Debian's sources of the client."""
    if shutil.which("go") is None:
        raise tap.Skip("go is not installed")
    subprocess.run(
        ["go", "build", "-o", os.path.join(BUILT, "client_gomemcache"),
         os.path.join(HERE, "client_gomemcache.go")],
        env={
            **os.environ,
            "GO111MODULE": "off",
            "GOPATH": GO_PATH,
            "GOCACHE": os.path.join(os.path.abspath(BUILT), "go-cache"),
        },
        check=True,
    )


def prepare(one):
    """Builds what has to be built; raises Skip where that cannot be."""
    if one.name == "gomemcache":
        os.makedirs(BUILT, exist_ok=True)
        build_go()
    program = one.command[0]
    if shutil.which(program) is None:
        raise tap.Skip("no " + program)


def declare(running, options):
    """The counter weibo with what the client needs, and the record 1234."""
    lines = server.weibo_lines(options.get("flags", 0))
    lines[0] += " " + options.get("counter", "")
    with running.connect() as telnet:
        telnet.tell(*lines, "set weibo 1234 111 222 333")


def results(text):
    """({row: "" or what went wrong}, other lines) of a program's output."""
    rows, others = {}, []
    for line in text.splitlines():
        match = re.match(r"(not )?ok ([a-z0-9-]+) ?(.*)", line)
        if match is None:
            others.append(line)
        elif match.group(2) in rows:
            others.append("a second time: " + line)
        else:
            rows[match.group(2)] = (
                match.group(3) or "not ok" if match.group(1) else ""
            )
    return rows, others


def judge(wanted, text):
    """What is wrong with a program's output, as lines; wanted is the set of
    rows it must report."""
    rows, _ = results(text)
    wrong = ["%s: %s" % row for row in rows.items() if row[1]]
    wrong += ["%s: not reported" % row for row in wanted - set(rows)]
    wrong += ["%s: reported, but said to be lacking" % row
              for row in set(rows) - wanted]
    return sorted(wrong)


def run(one, protocol, part):
    """One program against a server of its own: the test of a part."""
    version = version_of(one)
    prepare(one)
    wanted = set(table()[part]) - one.protocols[protocol][part]
    with server.Server() as running:
        if part == "cells":
            declare(running, one.options)
        done = subprocess.run(
            [*one.command, str(running.port), protocol, part,
             *one.options.get("extra", ())],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=2 * server.LIMIT_S,
            env={**os.environ, "NODE_PATH": NODE_MODULES},
            check=False,
        )
        text = done.stdout.decode("utf-8", "replace")
        wrong = judge(wanted, text)
        if done.returncode != 0:
            wrong.append("exit status %d" % done.returncode)
        if wrong:
            tap.note("\n".join(results(text)[1]))
            raise AssertionError("\n  ".join(["", *wrong]))
        tap.note("%s %s, %s: %d rows of %s" % (
            one.name, version, protocol, len(wanted), part))
