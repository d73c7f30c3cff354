# SPDX-License-Identifier: BSD-3-Clause
"""Many histories, some at a time, each made and checked by a process."""

import collections
import multiprocessing
import os
import signal
import sys

import history_check
import history_run

MEMORY = "/dev/shm"  # a kill loses nothing there either
if not os.path.isdir(MEMORY):
    MEMORY = None    # where temporary files are

Settings = collections.namedtuple(
    "Settings", "directory out options is_committed break_ lives",
    defaults=(MEMORY, ".", (), False, None, None))
# wrong: None, or what is; path: the file that has all of it, or None
Result = collections.namedtuple(
    "Result", "seed operations lost kills wrong path")


def make(job):
    """Makes a history and checks it; one that is wrong is written to out."""
    seed, settings = job
    try:
        history = history_run.Run(
            seed, settings.directory, settings.options, settings.is_committed,
            settings.break_, settings.lives).run()
    except history_run.Fault as error:
        return Result(seed, 0, 0, 0, str(error), None)
    wrong = path = None
    try:
        history_check.check(history)
    except history_check.Wrong as error:
        wrong = history.about["wrong"] = str(error)
        path = os.path.join(settings.out, "history-%d.jsonl" % seed)
        history.write(path)
    return Result(seed, len(history.ops),
                  sum(op.end is None for op in history.ops),
                  history.ends.count("kill"), wrong, path)


def end_well():
    """A process that is told to end stops its server first."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))


def histories(first, count, jobs, settings):
    """Results of the seeds from the first on, as they come."""
    with multiprocessing.Pool(jobs, end_well) as pool:
        yield from pool.imap_unordered(
            make, ((seed, settings) for seed in range(first, first + count)))
