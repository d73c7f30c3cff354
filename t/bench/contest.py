# SPDX-License-Identifier: BSD-3-Clause
"""Measures tallyd, memcached, Redis and the floor in turns: what t/bench/run
does before it writes anything down. Every measurement is an entry of
Contest.results: what the load generator reported, with "part", "records",
"row", "server" and "round", so that tables and plots only pick."""

import contextlib
import math
import os
import shutil
import statistics
import subprocess
import sys
import threading
import time

import figures
import rivals
import rows
import runner
import server
from rows import FLOOR, MEMCACHED, REDIS, TALLYD

SAMPLE_DRAWS = 20000  # of the questions whose replies are weighed
SAMPLE_KEYS = 200000
VERIFIED = 5000
END_BYTES = len("END\r\n")
CELL_BYTES = len("VALUE  0 1\r\n\r\n")  # beside key and digits
DIGITS_LEAST = 1
TRIES = 3
LATENCY_FROM = 0.1   # of what the slowest server did in a closed loop
LATENCY_TO = 0.9     # of what each did
HALF = 0.5
GROWTH_SEED = 2      # and on: other posts than those asked for
ENDING_S = 60
INTERRUPTED = 130  # exit status


class Interrupt:
    """Ends the run on a signal, which waits while a process is being started:
    nobody would know of it."""

    def __init__(self):
        self.is_held = False
        self.has_come = False

    def __call__(self, *_):
        self.has_come = True
        self.end()

    def end(self):
        if self.has_come and not self.is_held:
            sys.exit(INTERRUPTED)

    @contextlib.contextmanager
    def held(self):
        self.is_held = True
        try:
            yield
        finally:
            self.is_held = False
        self.end()


class Subject:
    """One server under test, and how it is asked."""

    def __init__(self, name, running, records):
        self.name = name
        self.server = running
        self.options = ["--records=%d" % math.ceil(
            records / runner.RECORD_SHARE), *running.load_options]


class Contest:
    """A whole run. What it has measured is in results, also where it ends
    early."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.cores = runner.Cores()
        self.interrupt = Interrupt()
        self.results = []
        self.versions = {}
        self.machine = figures.machine()
        self.is_whole = False
        self.done = 0
        self.total = self.count()
        self.begin = time.monotonic()

    # Which rows and servers there are

    def rows_of(self, records):
        """What is asked at a size."""
        whole = self.arguments.all or records == self.arguments.main
        return [row for row in rows.ROWS
                if (whole or row.everywhere) and
                self.arguments.rows in row.name]

    def servers_of(self, row, records):
        """Which servers are asked it there, in the order of the turns."""
        whole = self.arguments.all or records == self.arguments.main or \
            row.all_servers
        return [name for name in row.servers
                if name in self.arguments.only and
                (whole or name in (FLOOR, TALLYD))]

    def count(self):
        """How many measurements of rows there will be, for the progress."""
        return self.arguments.rounds * sum(
            len(self.servers_of(row, records))
            for records in self.arguments.records
            for row in self.rows_of(records))

    # One measurement

    def tell(self, text):
        left = ""
        if 0 < self.done < self.total:
            passed = time.monotonic() - self.begin
            left = ", %.0f min of rows left" % (
                passed / self.done * (self.total - self.done) / 60)
        figures.tell("[%d of %d%s] %s" % (self.done, self.total, left, text))

    def keep(self, subject, found, **labels):
        found.update(labels, server=subject.name)
        self.results.append(found)
        return found

    def pick(self, **labels):
        """The results that have all of these."""
        return [one for one in self.results
                if all(one.get(name) == value
                       for name, value in labels.items())]

    def timed(self, seconds=None):
        return ["--connections=%d" % self.arguments.connections,
                "--warmup=%g" % self.arguments.warmup,
                "--seconds=%g" % (seconds or self.arguments.seconds)]

    def ask(self, subject, *options):
        """One run of the load generator."""
        return runner.load(subject.server, *subject.options, *options)

    def measure(self, subject, *options):
        """The same, for its CPU time; again where a busy machine has kept
        the server from so much of it that the clock would show any."""
        for _ in range(TRIES):
            found = self.ask(subject, *options)
            if found["server_us_per_op"] > 0:
                return found
        sys.exit("%s used no CPU time for %d commands of %s"
                 % (subject.name, found["ops"], " ".join(options)))

    # Filling

    @contextlib.contextmanager
    def started(self, name, running, records, is_filled=True):
        """A server on its core, with all numbers."""
        with contextlib.ExitStack() as stack:
            # also where it does not start
            stack.callback(shutil.rmtree, running.directory,
                           ignore_errors=True)
            with self.interrupt.held():
                stack.enter_context(self.cores.servers(running))
            subject = Subject(name, running, records)
            if name not in self.versions:
                self.versions[name] = version_of(name, running)
            if is_filled:
                self.fill(subject, records)
            yield subject

    def fill(self, subject, records):
        self.tell("%s: filling with %d records" % (subject.server.name,
                                                   records))
        options = ["--with=cell"] if subject.name == REDIS else []
        found = self.ask(subject, "fill", "--connections=4", "--depth=64",
                         *options)
        self.ask(subject, "multi", "--keys=30", "--columns=3",
                 "--ops=%d" % VERIFIED, "--verify")
        self.keep(subject, found, part="fill", records=records,
                  what=subject.server.name)
        if subject.name == MEMCACHED:
            with subject.server.connect() as connection:
                evicted = connection.stats()["evictions"]
            if evicted != "0":
                sys.exit("memcached evicted %s items" % evicted)

    # The floor

    def make_floor(self, row, tallyd):
        """One that answers as many bytes as tallyd does on average."""
        keys = rows.keys_of(row)
        bytes_ = self.reply_bytes(row, tallyd)
        if keys == 0:
            return rivals.Floor(0, "0.cntcm", bytes_ - len("\r\n"))
        cell = (bytes_ - END_BYTES) / keys - CELL_BYTES
        suffix = ".cntcm"
        id_ = "1" * (int(cell) - len(suffix) - DIGITS_LEAST)
        return rivals.Floor(keys, id_ + suffix,
                            cell - len(id_) - len(suffix))

    def reply_bytes(self, row, tallyd):
        """Mean length of tallyd's replies to a sample of the questions."""
        ops = max(1, SAMPLE_KEYS // max(10, rows.keys_of(row)))
        with tallyd.server.connect() as connection:
            def written():
                return int(connection.stats()["bytes_written"])
            first = written()
            before = written()
            found = self.ask(tallyd, *row.options, "--ops=%d" % ops,
                             "--draws=%d" % SAMPLE_DRAWS)
            return (written() - before - (before - first)) / found["ops"]

    # Rows

    def measure_row(self, row, records, subjects):
        """All rounds; the first two servers, the floor and tallyd, change
        their places from one to the next."""
        names = self.servers_of(row, records)
        with contextlib.ExitStack() as stack:
            asked = dict(subjects)
            if FLOOR in names and TALLYD in asked:
                asked[FLOOR] = stack.enter_context(self.started(
                    FLOOR, self.make_floor(row, asked[TALLYD]), records,
                    is_filled=False))
            for number in range(self.arguments.rounds):
                turns = [name for name in names if name in asked]
                if number % 2 and turns[:2] == [FLOOR, TALLYD]:
                    turns[:2] = [TALLYD, FLOOR]
                for name in turns:
                    self.tell("%d records, %s, round %d: %s" % (
                        records, row.name, number + 1, name))
                    found = self.measure(asked[name], *row.options,
                                     *row.own.get(name, []), *self.timed())
                    self.keep(asked[name], found, part="rows",
                              records=records, row=row.name, round=number)
                    self.done += 1

    def measure_size(self, records):
        """Every row of a size, by what the servers keep on disk."""
        asked = self.rows_of(records)
        modes = [mode for mode in rows.MODES
                 if any(row.mode == mode for row in asked)]
        wanted = {name for row in asked
                  for name in self.servers_of(row, records)}
        with contextlib.ExitStack() as stack:
            subjects = {}
            if MEMCACHED in wanted:
                subjects[MEMCACHED] = stack.enter_context(self.started(
                    MEMCACHED, rivals.Memcached(records * 3), records))
            if REDIS in wanted:
                subjects[REDIS] = stack.enter_context(self.started(
                    REDIS, rivals.Redis(), records))
            for mode in modes:
                with contextlib.ExitStack() as inner:
                    self.measure_mode(mode, records, subjects, inner)

    def measure_mode(self, mode, records, base, stack):
        """The rows of one mode, with servers that are stopped with stack."""
        options, fsync = rows.MODES[mode]
        asked = [row for row in self.rows_of(records) if row.mode == mode]
        wanted = {name for row in asked
                  for name in self.servers_of(row, records)}
        subjects = dict(base)
        if wanted & {TALLYD, FLOOR}:
            subjects[TALLYD] = stack.enter_context(self.started(
                TALLYD, runner.Tallyd("tallyd, " + mode, *options), records))
        if REDIS in wanted and fsync:
            subjects[REDIS] = stack.enter_context(self.started(
                REDIS, rivals.Redis(fsync), records))
        for row in asked:
            self.measure_row(row, records, subjects)
        if records == self.arguments.main:
            if mode == "memory" and "latency" in self.arguments.parts:
                self.measure_latency(records, subjects)
            if mode == "none" and "workers" in self.arguments.parts:
                self.measure_workers(records, subjects)
            if mode == "interval" and "growth" in self.arguments.parts:
                self.measure_growth(records, subjects)

    # At a fixed rate

    def closed_rate(self, row, name):
        """What a server did in a closed loop, commands a second; None where
        that was not measured."""
        found = self.pick(part="rows", row=row.name, server=name,
                          records=self.arguments.main)
        return runner.median(found, "ops_per_s") if found else None

    def measure_latency(self, records, subjects):
        """The same rates for all, each up to what it can do."""
        row = rows.LATENCY_ROW
        asked = dict(subjects)
        with contextlib.ExitStack() as stack:
            if FLOOR in self.arguments.only:
                asked[FLOOR] = stack.enter_context(self.started(
                    FLOOR, self.make_floor(row, asked[TALLYD]), records,
                    is_filled=False))
            limits = {name: self.closed_rate(row, name)
                      for name in rows.SERVERS if name in asked}
            limits = {name: LATENCY_TO * rate
                      for name, rate in limits.items() if rate}
            if not limits:
                return
            for number in range(self.arguments.latency_rounds):
                for rate, name in latency_steps(
                        limits, self.arguments.latency_steps):
                    self.tell("latency at %d/s, round %d: %s" % (
                        rate, number + 1, name))
                    found = self.ask(asked[name], *row.options,
                                     "--rate=%d" % rate, *self.timed())
                    self.keep(asked[name], found, part="latency",
                              records=records, row=row.name, rate=rate,
                              round=number)

    def measure_growth(self, records, subjects):
        """Gets at half their rate: alone, and while other posts are stored
        and checkpoints are made one after the other."""
        tallyd = subjects[TALLYD]
        for index, row in enumerate(rows.HALF_ROWS):
            rate = self.closed_rate(row, TALLYD)
            if not rate:
                continue
            for name in ("alone", "growth and checkpoints"):
                self.tell("%s at half load, %s" % (row.name, name))
                with contextlib.ExitStack() as stack:
                    if name != "alone":
                        beside = stack.enter_context(Growth(
                            tallyd, records * self.arguments.growth,
                            GROWTH_SEED + index))
                    found = self.ask(
                        tallyd, *row.options, "--rate=%d" % (rate * HALF),
                        *self.timed(self.arguments.growth_seconds))
                    if name != "alone":
                        found.update(beside.tell())
                self.keep(tallyd, found, part="growth", what=name,
                          records=records, row=row.name,
                          rate=int(rate * HALF))

    # Two workers

    def measure_workers(self, records, subjects):
        """tallyd with one worker and with two, on the same core."""
        options, _ = rows.MODES["none"]
        both = {1: subjects[TALLYD]}
        with self.started(TALLYD, runner.Tallyd(
                "tallyd, 2 workers", "-t", "2", *options), records) as two:
            both[2] = two
            for row in rows.WORKER_ROWS:
                for number in range(self.arguments.rounds):
                    for workers, subject in both.items():
                        self.tell("%s, %d worker(s), round %d" % (
                            row.name, workers, number + 1))
                        found = self.measure(subject, *row.options,
                                         *self.timed())
                        self.keep(subject, found, part="workers",
                                  workers=workers, records=records,
                                  row=row.name, round=number)

    def run(self):
        for records in self.arguments.records:
            self.measure_size(records)
        self.is_whole = True

    def saved(self):
        """All of it, for JSON."""
        return {"machine": self.machine, "command": sys.argv,
                "is_whole": self.is_whole, "versions": self.versions,
                "load_average": os.getloadavg(),
                "arguments": vars(self.arguments),
                "server_cpu": self.cores.server_cpu,
                "client_cpu": self.cores.client_cpu,
                "results": self.results}

    def restore(self, saved):
        """What an earlier run has measured; its paths stay."""
        for name in ("out", "doc", "readme"):
            saved["arguments"][name] = getattr(self.arguments, name)
        vars(self.arguments).update(saved["arguments"])
        self.machine = saved["machine"]
        self.is_whole = saved["is_whole"]
        self.versions = saved["versions"]
        self.results = saved["results"]


class Growth:
    """Stores posts that are not there, and makes checkpoints, until the block
    is left."""

    def __init__(self, subject, records, seed):
        self.subject = subject
        self.options = ["--records=%d" % records, "--seed=%d" % seed]
        self.ending = threading.Event()
        self.checkpoints = 0
        self.thread = threading.Thread(target=self.make_checkpoints)
        self.filler = None
        self.before = 0

    def stored(self):
        with self.subject.server.connect() as connection:
            return int(connection.stats()["cmd_set"])

    def make_checkpoints(self):
        with contextlib.suppress(OSError, server.Closed, SystemExit):
            while not self.ending.is_set():
                self.subject.server.checkpoint()
                self.checkpoints += 1

    def __enter__(self):
        self.before = self.stored()
        self.filler = subprocess.Popen(
            [os.environ["LOAD"], "fill", "--connections=1", "--depth=4",
             "--order=random", "--port=%d" % self.subject.server.port,
             *self.options], stdout=subprocess.DEVNULL)
        self.thread.start()
        return self

    def tell(self):
        """What was done beside the gets so far."""
        if self.filler.poll() is not None:
            sys.exit("growth ended before the gets did (status %d)"
                     % self.filler.returncode)
        if self.checkpoints == 0:
            sys.exit("no checkpoint was made beside the gets")
        return {"checkpoints": self.checkpoints,
                "stored": self.stored() - self.before}

    def __exit__(self, *_):
        self.ending.set()
        self.filler.terminate()
        self.filler.wait()
        self.thread.join(ENDING_S)


def latency_steps(limits, count):
    """Pairs of a rate and a server: rates that are the same for all, and for
    each the one at its own limit."""
    low = LATENCY_FROM / LATENCY_TO * min(limits.values())
    high = max(limits.values())
    grid = [low * (high / low) ** (step / count)
            for step in range(count)]
    return [(int(rate), name) for rate in grid for name in limits
            if rate < 0.95 * limits[name]] + \
        [(int(rate), name) for name, rate in limits.items()]


def version_of(name, running):
    """What a server says it is; of the floor there is nothing to say."""
    if name == FLOOR:
        return ""
    option = "-v" if name == REDIS else "-V"
    return figures.output_of(running.command[0], option).split("\n")[0] \
        .split(" sha")[0]


def ratios(over, under, field="server_us_per_op"):
    """Of two servers' results, round by round."""
    by_round = {one["round"]: one[field] for one in under}
    return [one[field] / by_round[one["round"]] for one in over
            if by_round.get(one["round"])]


def median_of(results, field):
    return statistics.median(one[field] for one in results)
