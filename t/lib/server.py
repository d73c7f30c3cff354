# SPDX-License-Identifier: BSD-3-Clause
"""A running server under test, and raw connections to it.

    with Server() as server:
        connection = server.connect()
        connection.send(b"get a\\r\\n")
        connection.line()            # b"END"

Leaving the block stops the server with SIGTERM and checks that it exited with
status 0 and that no sanitizer complained. The environment names the binaries
(see the head of t/system/README).
"""

import mmap
import os
import pwd
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time

SANITIZER = os.environ.get("TALLYD_SANITIZER", "")

# Seconds after which something that must happen counts as not happening. No
# test that passes waits so long; but what threads at nice 10 do takes ten times
# as long beside other tests and compilers, or longer.
LIMIT_S = 360 if SANITIZER else 120

# The same for a server whose time a test passes, by its clock.
MOVED_LIMIT_S = 3600

POLL_MS = 5

NS_PER_S = 10**9
MS_PER_S = 1000
CLOCK_BYTES = 8  # of the file that t/system/tallyd_movable.c maps

COMPLAINTS = re.compile(
    r"ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error:"
    r"|LeakSanitizer|assertion|ASSERT",
    re.IGNORECASE,
)


def binary(name="TALLYD"):
    """The path of a server binary named by the environment."""
    path = os.environ.get(name)
    if not path:
        raise RuntimeError("%s is not set, see t/system/README" % name)
    return path


def is_memcached(path):
    """True for memcached itself, against which transcripts of items can be
    run to see that they tell the truth."""
    return os.path.basename(path) == "memcached"


class Closed(Exception):
    """The server closed the connection."""


class Connection:
    """A blocking stream socket; every wait ends after LIMIT_S, or the seconds
    that are said."""

    def __init__(self, address, limit_s=LIMIT_S):
        if isinstance(address, str):
            family = socket.AF_UNIX
        else:
            family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.settimeout(limit_s)
        try:
            self.socket.connect(address)
        except OSError:
            self.socket.close()
            raise
        if family != socket.AF_UNIX:
            self.socket.setsockopt(
                socket.IPPROTO_TCP, socket.TCP_NODELAY, 1
            )
        self.buffer = bytearray()
        self.taken = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        """Sends all of data (bytes, or str in latin-1)."""
        if isinstance(data, str):
            data = data.encode("latin-1")
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise Closed("while sending") from error

    def fill(self):
        """Reads what there is, waiting for at least one byte."""
        try:
            data = self.socket.recv(1 << 18)
        except ConnectionResetError as error:
            raise Closed("reset") from error
        if not data:
            raise Closed("end of stream")
        if self.taken:
            del self.buffer[: self.taken]
            self.taken = 0
        self.buffer += data

    def line(self):
        """The next line without its CRLF; a line must end in CRLF."""
        start = self.taken
        while True:
            end = self.buffer.find(b"\n", start)
            if end >= 0:
                break
            start = len(self.buffer) - self.taken
            self.fill()
        line = bytes(self.buffer[self.taken : end + 1])
        self.taken = end + 1
        if not line.endswith(b"\r\n"):
            raise AssertionError("a line without CR: %.200r" % line)
        return line[:-2]

    def exactly(self, count):
        """The next count bytes."""
        while len(self.buffer) - self.taken < count:
            self.fill()
        data = bytes(self.buffer[self.taken : self.taken + count])
        self.taken += count
        return data

    def until(self, last):
        """Lines up to and without the line last."""
        lines = []
        while True:
            line = self.line()
            if line == last:
                return lines
            lines.append(line)

    def ask(self, request):
        """Sends one line (CRLF is added) and returns one line."""
        self.send(request + ("\r\n" if isinstance(request, str) else b"\r\n"))
        return self.line().decode("latin-1")

    def tell(self, *requests):
        """Sends lines that must all be answered STORED."""
        for request in requests:
            answer = self.ask(request)
            if answer != "STORED":
                raise AssertionError("%r: %r" % (request, answer))

    def set(self, key, value, flags=0, exptime=0):
        """One memcached set; returns the reply line."""
        if isinstance(value, str):
            value = value.encode("latin-1")
        head = "set %s %d %d %d\r\n" % (key, flags, exptime, len(value))
        self.send(head.encode("latin-1") + value + b"\r\n")
        return self.line().decode("latin-1")

    def values(self):
        """Reads the reply of a get: a list of (key, flags, data)."""
        found = []
        while True:
            line = self.line()
            if line == b"END":
                return found
            word = line.split(b" ")
            if word[0] != b"VALUE" or len(word) not in (4, 5):
                raise AssertionError("not a VALUE line: %.200r" % line)
            data = self.exactly(int(word[3]))
            if self.exactly(2) != b"\r\n":
                raise AssertionError("no CRLF after %.200r" % line)
            found.append((word[1].decode("latin-1"), int(word[2]), data))

    def get(self, *keys):
        """One get of keys; as values()."""
        self.send("get " + " ".join(keys) + "\r\n")
        return self.values()

    def stats(self, *which):
        """stats as a dictionary of strings."""
        self.send(" ".join(("stats",) + which) + "\r\n")
        table = {}
        for line in self.until(b"END"):
            word = line.decode("latin-1").split(" ", 2)
            if word[0] != "STAT":
                raise AssertionError("not a STAT line: %.200r" % line)
            table[word[1]] = word[2] if len(word) > 2 else ""
        return table

    def has_come(self):
        """True where there is something to read, or the end."""
        return bool(select.select([self.socket], [], [], 0)[0])

    def wait_closed(self):
        """Reads on until the server closes; returns what came before."""
        try:
            while True:
                self.fill()
        except Closed:
            data = bytes(self.buffer[self.taken :])
            self.taken = len(self.buffer)
            return data


def user_options():
    """What root must add to start a server."""
    return ["-u", "nobody"] if os.geteuid() == 0 else []


def children(pid):
    """Processes whose parent is pid."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and status(int(name)).get("PPid") == str(pid):
            found.append(int(name))
    return found


def status(pid):
    try:
        with open("/proc/%d/status" % pid, encoding="latin-1") as lines:
            return dict(line.rstrip("\n").split(":\t", 1)
                        for line in lines if ":\t" in line)
    except (FileNotFoundError, ProcessLookupError):
        return {}


def directories():
    """How the path of each directory of make_directory begins."""
    return os.path.join(tempfile.gettempdir(), "tallyd-test-")


def make_directory():
    """A temporary directory into which the server's user may write too."""
    directory = tempfile.mkdtemp(prefix=os.path.basename(directories()))
    os.chmod(directory, 0o755)
    if os.geteuid() == 0:
        entry = pwd.getpwnam("nobody")
        os.chown(directory, entry.pw_uid, entry.pw_gid)
    return directory


def run(*arguments):
    """Runs the server to its end; (exit status, what it wrote)."""
    done = subprocess.run(
        [binary(), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=LIMIT_S,
        cwd="/",
        check=False,
    )
    return done.returncode, done.stdout.decode("latin-1")


class Server:
    """A server process with a directory of its own. One that is movable has a
    clock of its own, too, which stands, but for what pass_time passes."""

    def __init__(self, *options, path=None, port="-1", threads=2,
                 as_user=True, data="none", environment=None,
                 movable=False, address="127.0.0.1"):
        self.path = path or binary("TALLYD_MOVABLE" if movable else "TALLYD")
        self.directory = make_directory()
        self.port_file = os.path.join(self.directory, "port")
        self.command = [self.path, "-t", str(threads)]
        self.address = address
        if port is not None:
            self.command += ["-p", port, "-l", address]
        if as_user:
            self.command += user_options()
        if not is_memcached(self.path):
            # A disk that others use may well stall for a second, and a client
            # for a minute; and where time is passed, that is soon over.
            limit_s = MOVED_LIMIT_S if movable else LIMIT_S
            self.command += ["--%s-timeout=%d" % (what, limit_s)
                             for what in ("commit", "command", "write")]
            if data:
                self.command.append("--data=" + data)
        self.command += list(options)
        self.environment = dict(environment or {})
        self.clock = None
        if movable:
            self.make_clock()
        self.has_port = port is not None
        self.process = None
        self.port = 0
        self.stopped = False

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                self.stop()
            elif not self.stopped:
                self.kill(show=True)
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)

    def file(self, name, text=""):
        """Writes a file the server's user can read; returns its path."""
        path = os.path.join(self.directory, name)
        with open(path, "w", encoding="latin-1") as out:
            out.write(text)
        os.chmod(path, 0o644)
        return path

    def launch(self):
        """Starts the process without waiting for anything."""
        environment = {**os.environ, **self.environment}
        environment["MEMCACHED_PORT_FILENAME"] = self.port_file
        self.stderr_path = os.path.join(self.directory, "stderr")
        with open(self.stderr_path, "wb") as stderr:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=stderr,
                stderr=stderr,
                env=environment,
                cwd=self.directory,
            )

    def start(self):
        """Starts it and waits until it takes connections."""
        self.launch()
        if self.has_port:
            self.wait(self.read_port, "a port file")
            self.wait(self.try_connect, "a connection")

    def read_port(self):
        try:
            with open(self.port_file, encoding="ascii") as lines:
                text = lines.read()
        except FileNotFoundError:
            return False
        found = re.search(r"^TCP INET: (\d+)\n", text, re.MULTILINE)
        if not found:
            return False
        self.port = int(found.group(1))
        return True

    def try_connect(self):
        """Reset: it listened, and ended before it took the connection."""
        try:
            self.connect().close()
            return True
        except (ConnectionError, FileNotFoundError):
            return False

    def connect_at(self, path):
        """A connection to a Unix socket, as soon as somebody listens there:
        its name is there before."""
        found = []

        def listens():
            try:
                found.append(Connection(path))
                return True
            except (ConnectionError, FileNotFoundError):
                return False

        self.wait(listens, "the socket")
        return found[0]

    def wait(self, condition, what):
        """Until condition() is true; fails when the process ends before."""
        deadline = time.monotonic() + LIMIT_S
        handle = os.pidfd_open(self.process.pid)
        try:
            poll = select.poll()
            poll.register(handle, select.POLLIN)
            while not condition():
                if poll.poll(POLL_MS):
                    raise RuntimeError(
                        "the server ended (status %s) before %s: %s"
                        % (self.process.wait(), what, self.stderr())
                    )
                if time.monotonic() > deadline:
                    raise RuntimeError(
                        "no %s within %d s: %s"
                        % (what, LIMIT_S, self.stderr())
                    )
        finally:
            os.close(handle)

    def make_clock(self):
        """What the server's clock is ahead, in ns: an array of one."""
        self.clock_file = tempfile.NamedTemporaryFile(prefix="tallyd-clock-")
        self.clock_file.truncate(CLOCK_BYTES)
        self.clock = memoryview(
            mmap.mmap(self.clock_file.fileno(), CLOCK_BYTES)).cast("Q")
        self.environment["TALLYD_CLOCK"] = self.clock_file.name

    def pass_time(self, seconds):
        """Time passes for the server; it notices within milliseconds."""
        self.clock[0] += int(seconds * NS_PER_S)

    def pass_until(self, condition, what, step_s=1):
        """As wait, while step_s pass between two looks, for the server."""

        def passes():
            if condition():
                return True
            self.pass_time(step_s)
            return False

        self.wait(passes, what)

    def connect(self):
        return Connection((self.address, self.port))

    def stderr(self):
        with open(self.stderr_path, encoding="latin-1") as lines:
            return lines.read()

    def rss_kib(self):
        """Resident memory of the server now, in KiB."""
        with open("/proc/%d/status" % self.process.pid) as lines:
            for line in lines:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1])
        raise RuntimeError("no VmRSS")

    def descriptors(self):
        """How many file descriptors the server holds (root or same user)."""
        return len(os.listdir("/proc/%d/fd" % self.process.pid))

    def check_clean(self):
        """Raises when the server wrote what only a fault writes."""
        text = self.stderr()
        if COMPLAINTS.search(text):
            raise AssertionError("the server complained:\n" + text)

    def await_process(self):
        """The status of the process, once it ends; meanwhile time passes for
        a server that is movable."""
        if self.clock is None:
            return self.process.wait(LIMIT_S)
        for _ in range(LIMIT_S * MS_PER_S // POLL_MS):
            try:
                return self.process.wait(POLL_MS / MS_PER_S)
            except subprocess.TimeoutExpired:
                self.pass_time(1)
        return self.process.wait(0)

    def wait_exit(self):
        """Waits for the process to end by itself; returns its status."""
        try:
            status = self.await_process()
        except subprocess.TimeoutExpired:
            text = self.stderr()
            self.kill()
            raise AssertionError("the server does not end: " + text) from None
        self.stopped = True
        return status

    def stop(self, how=signal.SIGTERM):
        """Asks it to stop and checks that it did so cleanly."""
        if self.stopped:
            return
        if is_memcached(self.path):
            how = signal.SIGKILL  # it looks for others once a second
        self.process.send_signal(how)
        status = self.wait_exit()
        self.check_clean()
        if status != 0 and not (
            is_memcached(self.path) and status == -how
        ):
            raise AssertionError(
                "exit status %s: %s" % (status, self.stderr())
            )

    def kill(self, show=False):
        """Ends it at once; show prints what it wrote, for a failed test."""
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.stopped = True
        if show:
            for line in self.stderr().splitlines():
                print("# server: " + line)


WEIBO = (
    "add counter weibo",
    "add column weibo weibo_id hint=64 max=64 default=0 primarykey",
    "add column weibo comment_num hint=16 max=32 default=0  suffix=cntcm",
    "add column weibo repost_num hint=16 max=32 default=0  suffix=cntrn",
    "add column weibo attitude_num hint=8 max=32 default=0  suffix=cntan",
)


def weibo_lines(flags=0):
    """The lines that declare the counter weibo, with flags=N on its value
    columns where a client needs it."""
    if not flags:
        return list(WEIBO)
    return [
        line + (" flags=%d" % flags if "suffix" in line else "")
        for line in WEIBO
    ]
