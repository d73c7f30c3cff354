# SPDX-License-Identifier: BSD-3-Clause
"""Many histories, some at a time, each made and checked by a process."""

import collections
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import tempfile

import history_check
import history_run

MEMORY = "/dev/shm"  # a kill loses nothing there either
DISK_EVERY = 5       # one of so many is where temporary files are: while a disk
                     # syncs there is more to be killed in

# directory: where the data are; None: as above
Settings = collections.namedtuple(
    "Settings", "directory out options is_committed break_ lives",
    defaults=(None, ".", (), False, None, None))
# wrong: None, or what is; path: the file that has all of it, or None
Result = collections.namedtuple(
    "Result", "seed operations lost kills wrong path")


def place_of(seed, settings):
    is_disk = seed % DISK_EVERY == 0 or not os.path.isdir(MEMORY)
    return settings.directory or (
        tempfile.gettempdir() if is_disk else MEMORY)


def make(seed, settings):
    """Makes a history and checks it; one that is wrong is written to out."""
    run = history_run.Run(
        seed, place_of(seed, settings), settings.options,
        settings.is_committed, settings.break_, settings.lives)
    history = run.history
    wrong = path = None
    try:
        run.run()
        history_check.check(history)
    except (history_run.Fault, history_check.Wrong) as error:
        wrong = history.about["wrong"] = str(error)
        path = os.path.join(settings.out, "history-%d.jsonl" % seed)
        history.write(path)
    return Result(seed, len(history.ops),
                  sum(op.end is None for op in history.ops),
                  history.ends.count("kill"), wrong, path)


def end_well():
    """A process that is told to end stops its server first."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))


def work(jobs, settings, out):
    """A process: all seeds of jobs, one after the other."""
    end_well()
    for seed in jobs:
        out.send(make(seed, settings))
    out.close()


def histories(first, count, jobs, settings):
    """Results of the seeds from the first on, as they come."""
    seeds = range(first, first + count)
    pipes, processes = [], []
    for number in range(min(jobs, count)):
        pipe, out = multiprocessing.Pipe(duplex=False)
        process = multiprocessing.Process(
            target=work, args=(seeds[number::jobs], settings, out))
        process.start()
        out.close()  # so that the end of the process is seen
        pipes.append(pipe)
        processes.append(process)
    try:
        while pipes:
            for pipe in multiprocessing.connection.wait(pipes):
                try:
                    yield pipe.recv()
                except EOFError:
                    pipes.remove(pipe)
        for process in processes:
            process.join()
            if process.exitcode != 0:
                raise RuntimeError("a process has failed")
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.join()
