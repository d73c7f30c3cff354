#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes figures into a document.

usage: figures.py PROGRAM FILE <figures

Replaces what stands between the markers of PROGRAM (run, memory, engine,
lines ...) in FILE with the name of this machine and the text on stdin. Also
what the benchmarks in Python share.
"""

import os
import statistics
import subprocess
import sys


def tell(text):
    """Progress, where somebody is looking."""
    if sys.stderr.isatty():
        print("\r\033[K" + text, end="", file=sys.stderr, flush=True)


def output_of(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True,
                          check=True).stdout.strip()


def machine():
    """What the figures were taken on."""
    model = "unknown CPU"
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    with open("/proc/meminfo", encoding="ascii") as lines:
        kib = int(lines.readline().split()[1])
    return "%s, %d CPUs, %.0f GB, Linux %s" % (
        model, os.cpu_count(), kib / 1e6, os.uname().release)


def spread(values):
    """Median, and where there are several the least and the largest."""
    text = "%.2f" % statistics.median(values)
    if len(values) > 1:
        text += " (%.2f-%.2f)" % (min(values), max(values))
    return text


def table(head, rows):
    """A Markdown table; the first column is text, the others numbers."""
    lines = ["| " + " | ".join(head) + " |",
             "|---" + "|---:" * (len(head) - 1) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def pin(cpu):
    """This process and those it starts from now on."""
    if cpu is not None:
        os.sched_setaffinity(0, {cpu})


def two_cpus():
    """One for the server and one for the client; None where there is one."""
    cpus = sorted(os.sched_getaffinity(0))
    return (cpus[0], cpus[1]) if len(cpus) > 1 else (None, None)


def write(path, text):
    with open(path + ".new", "w", encoding="utf-8") as out:
        out.write(text)
    os.replace(path + ".new", path)


def write_doc(path, program, text):
    """Puts text between the markers of a program."""
    begin = "<!-- figures of t/bench/%s -->" % program
    end = "<!-- end of figures of t/bench/%s -->" % program
    with open(path, encoding="utf-8") as doc:
        old = doc.read()
    if old.count(begin) != 1 or old.count(end) != 1:
        sys.exit("%s: %s has no place for the figures: %s"
                 % (program, path, begin))
    before, rest = old.split(begin)
    after = rest.split(end)[1]
    write(path, before + begin + "\n" + text + end + after)


def main():
    if len(sys.argv) != 3:
        print(__doc__.strip())
        return 0 if sys.argv[1:] in (["--help"], ["-h"]) else 2
    write_doc(sys.argv[2], sys.argv[1],
              "Machine: %s.\n\n" % machine() + sys.stdin.read())
    return 0


if __name__ == "__main__":
    sys.exit(main())
