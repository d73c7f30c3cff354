#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The truth about numbers, as `tallyctl verify --truth` asks for it, and the
queue between it and the server: fake_truth.py FILE PORT. FILE is JSON: of each
id its kind and its two true numbers, and how often it was asked for.

still    the server lost a change, or counted one twice: for good
late1    what is missing arrives when it is asked for the first time
late2    the same, the second time
moving   changes all the time, and the server is some changes behind
unknown  the truth knows nothing of it
"""

import json
import socket
import sys


def main():
    path, port = sys.argv[1], int(sys.argv[2])
    with open(path, encoding="ascii") as file:
        world = json.load(file)
    with socket.create_connection(("127.0.0.1", port)) as connection:
        lines = connection.makefile("rw", newline="")
        for line in sys.stdin:
            one = world[line.strip()]
            one["asked"] += 1
            arrives = 0
            if one["kind"] in ("late1", "late2"):
                if one["asked"] == int(one["kind"][4]):
                    arrives = one["missing"]
            elif one["kind"] == "moving":
                arrives = 1
                one["truth"][0] += 1
            if arrives:
                lines.write("incr weibo %s.reposts %d\r\n" % (
                    line.strip(), arrives))
                lines.flush()
                lines.readline()
            if one["kind"] == "unknown":
                print(line.strip(), "-")
            else:
                print(line.strip(), *one["truth"])
    with open(path, "w", encoding="ascii") as file:
        json.dump(world, file)


main()
