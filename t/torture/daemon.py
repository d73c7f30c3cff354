# SPDX-License-Identifier: BSD-3-Clause
"""A server with a data directory that outlives it: started, killed and
started again, under other options, under a preloaded library or under strace.

    with Place() as place:
        daemon = Daemon(place, "--sync=always")
        daemon.start()
        daemon.murder()                 # kill -9
        daemon = Daemon(place)          # the same data again
"""

import os
import pwd
import shutil
import signal
import subprocess

import server
from oracle import Lost

# The options of small files, so that a short run sees many of them.
SMALL = ("--log-file-size=2m", "--checkpoint-log=4m")


def give_away(path):
    """Makes path the server's user's."""
    if os.geteuid() == 0:
        entry = pwd.getpwnam("nobody")
        os.chown(path, entry.pw_uid, entry.pw_gid)


class Place:
    """A directory for data, and how to read and copy it."""

    def __init__(self):
        self.top = server.make_directory()
        self.data = os.path.join(self.top, "data")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()

    def remove(self):
        shutil.rmtree(self.top, ignore_errors=True)

    def names(self):
        return sorted(os.listdir(self.data))

    def copy(self):
        """A Place with the same data, and the same owners."""
        other = Place()
        subprocess.run(["cp", "-a", self.data, other.data], check=True)
        return other


def state_of(task):
    """The letter of a thread's state; X where it has ended."""
    try:
        with open(os.path.join(task, "stat"), encoding="latin-1") as stat:
            return stat.read().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"


class Daemon(server.Server):
    """A server on a Place. wrapper: words before the command (strace -D ...,
    so that the process started is the server's own)."""

    def __init__(self, place, *options, wrapper=(), environment=(),
                 threads=2, path=None, movable=False,
                 address="127.0.0.1", port="-1"):
        super().__init__(*options, path=path, threads=threads,
                         data=place.data, movable=movable, address=address,
                         port=port)
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory = place.top
        self.port_file = os.path.join(place.top, "port")
        self.place = place
        self.environment.update(environment)
        if "LD_PRELOAD" in self.environment:
            # What is preloaded sees preads, and nothing of an io_uring.
            self.command.append("--cold-io=pool")
        self.command = list(wrapper) + self.command
        if self.command[0] == "strace":
            # A sanitizer's search for leaks cannot be traced.
            self.environment["ASAN_OPTIONS"] = ":".join(
                [os.environ.get("ASAN_OPTIONS", ""), "detect_leaks=0"])

    def __enter__(self):
        """It is started by hand, maybe several times."""
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.stop()
        elif not self.stopped:
            self.kill(show=True)

    def launch(self):
        if os.path.exists(self.port_file):
            os.unlink(self.port_file)
        self.stopped = False
        environment = dict(os.environ, MEMCACHED_PORT_FILENAME=self.port_file,
                           **self.environment)
        self.stderr_path = os.path.join(self.directory, "stderr")
        with open(self.stderr_path, "wb") as stderr:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=stderr,
                stderr=stderr, env=environment, cwd=self.directory)

    def start(self):
        """Until it has loaded what there is."""
        super().start()
        self.wait(self.has_loaded, "end of loading")

    def has_loaded(self):
        try:
            with self.connect() as connection:
                connection.send("get loaded\r\n")
                return not connection.line().startswith(
                    b"SERVER_ERROR loading")
        except (server.Closed, OSError):
            return False

    def murder(self):
        """kill -9."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.stopped = True
        self.check_clean()

    def alive(self):
        return self.process.poll() is None

    def signal(self, number):
        self.process.send_signal(number)

    def freeze(self):
        """Stops it; then no thread is in its own code any more. Those in a
        call of the kernel that cannot be interrupted stop behind it."""
        self.signal(signal.SIGSTOP)
        tasks = "/proc/%d/task" % self.process.pid
        self.wait(lambda: all(state_of(os.path.join(tasks, task)) in "TtDZX"
                              for task in os.listdir(tasks)), "stop")

    def checkpoint_and_stop(self):
        self.stop(signal.SIGUSR1)

    def stat(self, name):
        """One line of stats wal, as text."""
        with self.connect() as connection:
            return connection.stats("wal").get(name, "")


def offline_check(place, path=None):
    """--check: (exit status, what it said)."""
    command = [path or server.binary(), "--data=" + place.data, "--check",
               *server.user_options()]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, timeout=server.LIMIT_S, cwd="/",
        check=False)
    text = done.stdout.decode("latin-1")
    if done.returncode < 0 or server.COMPLAINTS.search(text):
        raise AssertionError("--check died: %d %s" % (done.returncode, text))
    return done.returncode, text


def must_start(daemon):
    """Starts it; one that ends instead has lost all there was."""
    try:
        daemon.start()
    except RuntimeError as error:
        if daemon.alive():
            raise
        raise Lost("it does not start: %s" % error) from error


def need_sound(place, path=None):
    """The directory passes --check."""
    status, text = offline_check(place, path)
    if status != 0:
        raise Lost("--check refuses: %s" % text)
