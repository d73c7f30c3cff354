# SPDX-License-Identifier: BSD-3-Clause
"""Queues of others for tests of tallyq, each on loopback with a directory of
its own: a broker that can be killed and comes back with what it had, and a
producer whose messages are there once, however often it had to send them."""

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

import tap
from ports import free_port
from server import LIMIT_S

PIECE = 100  # messages that are sent at once
POLL_S = 0.005


class Broker:
    """A process that takes connections on one port; a context."""

    program = None  # of others, that it needs

    def __init__(self):
        if self.program and shutil.which(self.program) is None:
            raise tap.Skip("%s is not installed" % self.program)
        self.directory = tempfile.mkdtemp(prefix="tallyd-queue-")
        self.port = free_port()
        self.process = None
        self.n = 0  # messages that are known to be there

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def command(self):
        raise NotImplementedError

    def is_up(self):
        """True where it answers."""
        raise NotImplementedError

    def count(self):
        """How many messages it has."""
        return self.n

    def start(self):
        with open(os.path.join(self.directory, "log"), "ab") as log:
            self.process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, cwd=self.directory)
        end = time.monotonic() + LIMIT_S
        while not self.is_up():
            if self.process.poll() is not None or time.monotonic() > end:
                with open(os.path.join(self.directory, "log"), "rb") as log:
                    raise RuntimeError("no broker: %r" % log.read()[-2000:])
            time.sleep(POLL_S)

    def kill(self):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()

    def again(self):
        self.kill()
        self.start()


class Lines:
    """A socket that is made anew where it breaks."""

    def __init__(self, port):
        self.port = port
        self.file = None

    def open(self):
        """False: nobody listens."""
        if self.file is None:
            try:
                connection = socket.create_connection(
                    ("127.0.0.1", self.port), LIMIT_S)
                self.file = connection.makefile("rwb")
                connection.close()
            except OSError:
                return False
        return True

    def close(self):
        if self.file is not None:
            try:
                self.file.close()
            except OSError:
                pass  # what was to be written is sent anew
            self.file = None

    def write(self, data):
        self.file.write(data)
        self.file.flush()

    def line(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise OSError("the connection has ended")
        return line[:-2]


class Redis(Broker):
    """Debian's redis-server. Message i has the id i-1, so that it is refused
    where it is there already."""

    scheme = "redis"
    program = "redis-server"
    stream = "likes"

    def command(self):
        return [self.program, "--port", str(self.port), "--bind",
                "127.0.0.1", "--appendonly", "yes", "--appendfsync",
                "always", "--save", "",
                "--dir", self.directory]

    def url(self):
        return "redis://127.0.0.1:%d/%s" % (self.port, self.stream)

    def is_up(self):
        lines = Lines(self.port)
        try:
            if not lines.open():
                return False
            lines.write(b"PING\r\n")
            return lines.line() == b"+PONG"
        except OSError:
            return False
        finally:
            lines.close()

    def count(self):
        lines = Lines(self.port)
        if not lines.open():
            raise OSError("nobody listens")
        lines.write(b"XLEN %s\r\n" % self.stream.encode())
        answer = lines.line()
        lines.close()
        return int(answer.lstrip(b":"))

    def last(self):
        """The position of the last message."""
        return (self.n, 1 if self.n else 0)

    def produce(self, texts):
        """Puts messages into the stream, whatever becomes of the broker."""
        lines = Lines(self.port)
        end = time.monotonic() + LIMIT_S
        while texts:
            if time.monotonic() > end:
                raise RuntimeError("no messages can be produced")
            piece = texts[:PIECE]
            try:
                if not lines.open():
                    time.sleep(POLL_S)
                    continue
                lines.write(b"".join(
                    self.add(self.n + i + 1, text)
                    for i, text in enumerate(piece)))
                for _ in piece:
                    answer = lines.line()
                    if answer.startswith(b"$"):
                        lines.line()
                    elif b"equal or smaller" not in answer:
                        raise OSError(answer)
                self.n += len(piece)
                texts = texts[PIECE:]
            except OSError:
                lines.close()
        lines.close()

    def add(self, number, text):
        words = [b"XADD", self.stream.encode(), b"%d-1" % number, b"m",
                 text.encode("latin-1")]
        return b"*%d\r\n" % len(words) + b"".join(
            b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


class Nats(Broker):
    """Debian's nats-server with JetStream. After an error the producer asks
    how many messages there are, which are its own."""

    scheme = "nats"
    program = "nats-server"
    stream = "likes"

    def command(self):
        return [self.program, "-js", "-a", "127.0.0.1", "-p", str(self.port),
                "-sd", self.directory]

    def url(self):
        return "nats://127.0.0.1:%d/%s" % (self.port, self.stream)

    def start(self):
        super().start()
        lines = self.connect()
        self.ask(lines, "$JS.API.STREAM.CREATE." + self.stream, {
            "name": self.stream, "subjects": [self.stream],
            "storage": "file"})
        lines.close()

    def is_up(self):
        try:
            lines = self.connect()
            self.ask(lines, "$JS.API.INFO")
            lines.close()
            return True
        except OSError:
            return False

    def connect(self):
        lines = Lines(self.port)
        if not lines.open():
            raise OSError("nobody listens")
        lines.line()  # INFO
        lines.write(b'CONNECT {"verbose":false,"no_responders":true,'
                    b'"headers":true}\r\nSUB inbox 1\r\n')
        return lines

    def message(self, lines):
        """The payload of the next message."""
        while True:
            words = lines.line().split()
            if words[0] == b"PING":
                lines.write(b"PONG\r\n")
            elif words[0] == b"MSG":
                payload = lines.file.read(int(words[-1]) + 2)
                return json.loads(payload)
            elif words[0] in (b"HMSG", b"-ERR"):
                raise OSError("refused: %r" % words)

    def ask(self, lines, subject, what=None):
        data = b"" if what is None else json.dumps(what).encode()
        lines.write(b"PUB %s inbox %d\r\n%s\r\n" % (
            subject.encode(), len(data), data))
        return self.message(lines)

    def count(self):
        lines = self.connect()
        state = self.ask(lines, "$JS.API.STREAM.INFO." + self.stream)["state"]
        lines.close()
        return state["messages"]

    def last(self):
        return (self.n, 0)

    def produce(self, texts):
        end = time.monotonic() + LIMIT_S
        first = self.n
        while self.n < first + len(texts):
            if time.monotonic() > end:
                raise RuntimeError("no messages can be produced")
            try:
                lines = self.connect()
                self.n = self.ask(
                    lines, "$JS.API.STREAM.INFO." + self.stream
                )["state"]["last_seq"]
                self.publish(lines, texts[self.n - first:])
                lines.close()
            except (OSError, KeyError):
                time.sleep(POLL_S)

    def publish(self, lines, texts):
        while texts:
            piece = [text.encode("latin-1") for text in texts[:PIECE]]
            lines.write(b"".join(b"PUB %s inbox %d\r\n%s\r\n" % (
                self.stream.encode(), len(text), text) for text in piece))
            for _ in piece:
                self.n = self.message(lines)["seq"]
            texts = texts[PIECE:]


class Kafka(Broker):
    """librdkafka's own, in a process that does not end with its messages: what
    is killed are its connections, and it listens no more for a while."""

    scheme = "kafka"

    def command(self):
        return [os.path.join(os.environ["top_builddir"],
                             "t/system/kafka_mock")]

    def start(self):
        self.lock = threading.Lock()
        self.process = subprocess.Popen(
            self.command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.hosts = self.answer()

    def answer(self):
        line = self.process.stdout.readline().decode()
        if not line.endswith("\n"):
            raise RuntimeError("the broker has ended")
        return line[:-1]

    def ask(self, *requests):
        """Requests, as bytes, and their answers."""
        with self.lock:
            self.process.stdin.write(b"".join(requests))
            self.process.stdin.flush()
            for _ in requests:
                answer = self.answer()
                if answer != "done":
                    raise RuntimeError("the broker says: " + answer)

    def url(self):
        return "kafka://%s/likes/1" % self.hosts

    def again(self):
        self.ask(b"down\n", b"up\n")

    def last(self):
        return (self.n, 0)

    def produce(self, texts):
        for i in range(0, len(texts), PIECE):
            piece = [text.encode("latin-1") for text in texts[i:i + PIECE]]
            # No kill between them: a message would be sent twice.
            self.ask(*(b"put %d\n%s" % (len(text), text) for text in piece),
                     b"flush\n")
            self.n += len(texts[i:i + PIECE])


class Tallyq:
    """tallyq itself, which is killed and comes back; a context, at whose end
    it is told to end, and must."""

    def __init__(self, url, ports, directory, *options):
        self.aside = os.path.join(directory, "aside")
        self.log = os.path.join(directory, "tallyq.log")
        self.command = [
            os.path.join(os.environ["top_builddir"], "src/tallyq/tallyq"),
            "--from=" + url, "--aside=" + self.aside, "--verbose",
            "--server=" + ",".join("127.0.0.1:%d" % port for port in ports),
            *options]
        self.process = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.stop()
        elif self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def again(self):
        if self.process.poll() is not None:
            raise RuntimeError("tallyq ended: " + self.said())
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.start()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(LIMIT_S)
        if status != 0:
            raise AssertionError("status %s: %s" % (status, self.said()))

    def said(self):
        with open(self.log, encoding="latin-1") as log:
            return log.read()

    def put_aside(self):
        """The lines of the file, which may be there twice."""
        with open(self.aside, encoding="latin-1") as file:
            return file.read().splitlines()


class Work(threading.Thread):
    """Something that is done meanwhile; finish raises what it has raised."""

    def __init__(self, work):
        super().__init__(daemon=True)
        self.work = work
        self.error = None
        self.start()

    def run(self):
        try:
            self.work()
        except BaseException as error:  # pylint: disable=broad-except
            self.error = error

    def finish(self):
        self.join()
        if self.error is not None:
            raise self.error
