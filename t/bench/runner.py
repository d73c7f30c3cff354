# SPDX-License-Identifier: BSD-3-Clause
"""tallyd with a data directory, on a core of its own, and the load generator
that asks it: what the benchmarks of durability and of the cold tier share.
$TALLYD and $LOAD name the programs, $TMPDIR where data are written."""

import contextlib
import json
import os
import statistics
import subprocess
import sys
import time

import figures
import server

HERE = os.path.dirname(os.path.abspath(__file__))
SCHEMA = os.path.join(HERE, "../../contrib/demo/weibo.schema")
RECORD_SHARE = 0.783  # of the posts of the main distribution
SPREAD = ["--miss=0", "--nonzero", "--age=flat"]
STDERR_LINES = 5
CALL_LIMIT_S = 3600  # for what is durable only at its end


class Tallyd(server.Server):
    """With a data directory that stays until the block is left, so that it
    can be stopped and started in between; unless --data is given."""

    def __init__(self, name, *options, more_schema=""):
        super().__init__(*options, threads=1, data=None)
        self.name = name
        self.load_options = []
        self.data = os.path.join(self.directory, "data")
        if not any(option.startswith("--data=") for option in options):
            self.command.append("--data=" + self.data)
        with open(SCHEMA, encoding="ascii") as schema:
            copy = self.file("weibo.schema", schema.read() + more_schema)
        self.command.append("--schema=" + copy)

    def start(self):
        """Until it answers with what it has loaded."""
        super().start()
        self.wait(self.has_loaded, "end of loading")

    def has_loaded(self):
        with contextlib.suppress(server.Closed, OSError), \
                self.connect() as connection:
            connection.send("get 1.cntcm\r\n")
            return not connection.line().startswith(b"SERVER_ERROR")
        return False

    def again(self):
        """Starts it once more; seconds until it answers numbers."""
        os.unlink(self.port_file)
        self.stopped = False
        begin = time.monotonic()
        self.start()
        return time.monotonic() - begin

    def stats_of(self, what):
        with self.connect() as connection:
            return connection.stats(what)

    def call(self, line):
        """Sends a line that is to be answered OK; seconds that it took."""
        begin = time.monotonic()
        with self.connect() as connection:
            connection.socket.settimeout(CALL_LIMIT_S)
            answer = connection.ask(line)
        if answer != "OK":
            sys.exit("%s: %s: %s" % (self.name, line, answer))
        return time.monotonic() - begin

    def checkpoint(self):
        """Seconds that one took."""
        return self.call("checkpoint")

    def files(self, prefix):
        """Paths of the data directory's files of one kind."""
        return [os.path.join(self.data, name)
                for name in os.listdir(self.data) if name.startswith(prefix)]

    def file_bytes(self, prefix):
        return sum(os.path.getsize(path) for path in self.files(prefix))


def load_command(running, *options):
    return [os.environ["LOAD"], "--json", "--port=%d" % running.port,
            "--pid=%d" % running.process.pid, *options]


def load(running, *options):
    """One run of the load generator: what it reports."""
    done = subprocess.run(load_command(running, *options),
                          stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        written = running.stderr().splitlines()[-STDERR_LINES:]
        sys.exit("\n".join(["%s: the load generator failed: %s" % (
            running.name, " ".join(options))] + [
                "%s wrote: %s" % (running.name, line) for line in written]))
    return json.loads(done.stdout)


class Cores:
    """Servers on one core, clients on another."""

    def __init__(self):
        self.server_cpu, self.client_cpu = figures.two_cpus()

    @contextlib.contextmanager
    def servers(self, *made):
        with contextlib.ExitStack() as stack:
            figures.pin(self.server_cpu)
            for one in made:
                stack.enter_context(one)
            figures.pin(self.client_cpu)
            yield made

    @contextlib.contextmanager
    def all(self):
        """Both cores, for what is measured without a client."""
        cpus = {self.server_cpu, self.client_cpu} - {None}
        if cpus:
            os.sched_setaffinity(0, cpus)
        yield
        figures.pin(self.client_cpu)


def median(results, field):
    return statistics.median(result[field] for result in results)
