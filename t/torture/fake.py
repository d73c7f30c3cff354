#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A slow server with a log that may be deliberately wrong, to see that the
harness sees. $FAKE_FAULT names what is wrong with it:

    none            nothing: the harness must be content
    forgets         a start forgets the last changes of the log
    doubles         a start applies some increments twice
    early           replies leave before the log is written
    hole            a start skips a change in the middle of the log
    torn            a start applies half of the last records
    schema          dropped columns come back with their old numbers
    refuses         a start after a kill fails
    hangs           replies stop coming after a while
    silent          damage in the middle of the log is taken for its end
    nosync          nothing is ever synced
    ahead           replies leave between the write and the sync
    reads           reads stop when the log cannot be written
    stuck           a log that failed once is never written again
    words           what was made and not written is answered as if refused
"""

import errno
import json
import os
import selectors
import signal
import socket
import sys
import zlib

FAULT = os.environ.get("FAKE_FAULT", "none")
MASK = (1 << 64) - 1
LENGTH = 16 << 20  # of the log from the start; zeroes behind its end


class Store:
    """The counters, and the log of what each has become."""

    def __init__(self, directory, mode):
        self.mode = mode
        self.counters = {}   # name -> list of columns (suffix, default)
        self.suffix = {}     # suffix -> (counter, default)
        self.cells = {}      # (suffix, id) -> value
        self.names = set()   # (counter, primary key)
        self.buffer = []
        self.directory = directory
        self.path = os.path.join(directory, "log")
        self.failed = ""
        self.late = False
        os.makedirs(directory, mode=0o700, exist_ok=True)
        self.replay()
        self.log = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        os.pwrite(self.log, bytes(self.torn), self.end)
        if os.fstat(self.log).st_size < LENGTH:
            os.ftruncate(self.log, LENGTH)
        self.clean = os.path.join(directory, "clean")
        if FAULT == "refuses" and self.end and not os.path.exists(self.clean):
            sys.exit("fake: will not start")
        if os.path.exists(self.clean):
            os.unlink(self.clean)
        self.sync()

    def entries(self):
        """Sound lines of the log; self.end is where they end, self.torn how
        much of others is behind. A line that is not sound is damage where a
        sound one follows, and so is a log that is shorter than it was made."""
        self.end = 0
        self.torn = 0
        found = []
        data = b""
        if os.path.exists(self.path):
            with open(self.path, "rb") as log:
                data = log.read()
        if FAULT != "silent" and 0 < len(data) < LENGTH:
            sys.exit("fake: log is cut off at offset %d" % len(data))
        data = data.rstrip(b"\0")
        lines = data.splitlines(keepends=True)
        for number, line in enumerate(lines):
            if not is_sound(line):
                if FAULT != "silent" and any(map(is_sound,
                                                 lines[number + 1:])):
                    sys.exit("fake: log is damaged at offset %d" % self.end)
                break
            found.append(json.loads(line[9:]))
            self.end += len(line)
        self.torn = len(data) - self.end
        return found

    def replay(self):
        found = self.entries()
        if FAULT == "forgets" and len(found) > 50:
            found = found[:-40]
        if FAULT == "hole" and len(found) > 200:
            del found[-100:-60]
        for number, entry in enumerate(found):
            late = number >= len(found) - 300
            for change in entry:
                self.apply(change)
                if FAULT == "torn" and late and len(entry) > 1:
                    break
            if FAULT == "doubles" and number == len(found) - 30:
                for kind, *rest in entry:
                    if kind == "cell":
                        self.cells[rest[0], rest[1]] += 1

    def apply(self, change):
        kind, *rest = change
        if kind == "cell":
            self.cells[rest[0], rest[1]] = rest[2]
        elif kind == "counter":
            self.counters[rest[0]] = []
        elif kind == "key":
            self.names.add((rest[0], rest[1]))
        elif kind == "column":
            counter, suffix, default = rest
            self.counters[counter].append(suffix)
            self.suffix[suffix] = (counter, default)
        elif kind == "drop":
            self.forget(rest[1])
            self.counters[rest[0]].remove(rest[1])
        elif kind == "dropped":
            for suffix in self.counters.pop(rest[0], []):
                self.forget(suffix)
            self.names = {n for n in self.names if n[0] != rest[0]}

    def forget(self, suffix):
        self.suffix.pop(suffix, None)
        if FAULT != "schema":
            for cell in [c for c in self.cells if c[0] == suffix]:
                del self.cells[cell]

    def change(self, *changes):
        """Applies and logs changes that belong together."""
        for change in changes:
            self.apply(change)
        body = json.dumps(changes).encode()
        self.buffer.append(b"%08x %s\n" % (zlib.crc32(body), body))

    def write(self):
        """Before the replies leave; returns an error for them, or ''."""
        if not self.buffer or FAULT == "early" and len(self.buffer) < 400:
            return ""
        if FAULT == "stuck" and self.failed:
            return self.failed
        data = b"".join(self.buffer)
        try:
            done = 0
            while done < len(data):
                done += os.pwrite(self.log, data[done:], self.end + done)
            if self.mode == "always":
                self.sync()
        except OSError as error:
            self.failed = "SERVER_ERROR %slog: %s" % (
                "" if FAULT == "words" else "outcome unknown, ",
                os.strerror(error.errno))
            return self.failed
        self.end += len(data)
        self.buffer = []
        self.failed = ""
        return ""

    def sync(self):
        if FAULT == "ahead":
            self.late = True
        elif FAULT != "nosync":
            os.fdatasync(self.log)

    def close(self):
        self.write()
        self.sync()
        open(self.clean, "w", encoding="ascii").close()


def is_sound(line):
    head, _, body = line.rstrip(b"\n").partition(b" ")
    return line.endswith(b"\n") and head == b"%08x" % zlib.crc32(body)


class Talk:
    """Requests to replies."""

    def __init__(self, store):
        self.store = store
        self.count = 0

    def get(self, keys):
        out = []
        for key in keys:
            id, _, suffix = key.partition(".")
            if suffix in self.store.counters:
                value = " ".join(str(self.value(column, id)) for column in
                                 self.store.counters[suffix])
                out.append("VALUE %s 0 %d\r\n%s\r\n" % (
                    key, len(value), value))
            elif suffix in self.store.suffix:
                value = str(self.value(suffix, id))
                out.append("VALUE %s 0 %d\r\n%s\r\n" % (
                    key, len(value), value))
        return "".join(out) + "END"

    def value(self, suffix, id):
        return self.store.cells.get(
            (suffix, id), self.store.suffix[suffix][1])

    def incr(self, key, delta):
        id, _, suffix = key.partition(".")
        value = min(self.value(suffix, id) + int(delta), MASK)
        self.store.change(("cell", suffix, id, value))
        return str(value)

    def delete(self, words):
        store = self.store
        if len(words) == 2:
            id, _, suffix = words[1].partition(".")
            store.change(("cell", suffix, id, store.suffix[suffix][1]))
        else:
            store.change(*[
                ("cell", suffix, words[2], store.suffix[suffix][1])
                for suffix in store.counters[words[1]]])
        return "DELETED"

    def define(self, words):
        store = self.store
        if words[:2] == ["add", "counter"]:
            if words[2] in store.counters:
                return "CLIENT_ERROR it is there"
            store.change(("counter", words[2]))
        elif words[:2] == ["add", "column"]:
            options = dict(w.split("=") for w in words[4:] if "=" in w)
            suffix = options.get("suffix")
            if suffix in store.suffix or (words[2], words[3]) in store.names:
                return "CLIENT_ERROR it is there"
            if suffix is None:
                store.change(("key", words[2], words[3]))
            else:
                store.change(("column", words[2], suffix,
                              int(options.get("default", 0))))
        elif words[1] == "counter":
            if words[2] not in store.counters:
                return "CLIENT_ERROR no such counter"
            store.change(("dropped", words[2]))
            return "DELETED"
        else:
            suffix = words[3].removesuffix("_n")
            if suffix not in store.suffix:
                return "CLIENT_ERROR no such column"
            store.change(("drop", words[2], suffix))
            return "DELETED"
        return "STORED"

    def answer(self, line, connection):
        """The reply to a line; None where a block of data must follow."""
        words = line.split()
        store = self.store
        if words[0] == "get":
            return self.get(words[1:])
        if words[0] == "incr":
            return self.incr(words[1], words[2])
        if words[0] == "set" and "." in words[1]:
            block = connection.block(int(words[4]))
            if block is None:
                return None
            id, _, suffix = words[1].partition(".")
            store.change(("cell", suffix, id, int(block)))
            return "STORED"
        if words[0] == "set":
            suffixes = store.counters[words[1]]
            store.change(*[("cell", suffix, words[2], int(value))
                           for suffix, value in zip(suffixes, words[3:])])
            return "STORED"
        if words[0] == "delete":
            return self.delete(words)
        if words[0] in ("add", "drop"):
            return self.define(words)
        if words[0] in ("checkpoint", "seal"):
            error = store.write()
            try:
                store.sync()
            except OSError as why:
                error = "SERVER_ERROR " + os.strerror(why.errno)
            return error or "OK"
        if words[0] == "stats":
            return "STAT state %s\r\nEND" % (
                "read-only" if store.failed else "writable")
        return "ERROR"


class Connection:
    """One client."""

    def __init__(self, stream, talk):
        self.stream = stream
        self.talk = talk
        self.data = b""

    def block(self, size):
        if len(self.data) < size + 2:
            return None
        block, self.data = self.data[:size], self.data[size + 2:]
        return block

    def serve(self):
        """False where the client is gone."""
        try:
            data = self.stream.recv(1 << 16)
        except OSError:
            data = b""
        if not data:
            return False
        self.data += data
        out = []
        while b"\n" in self.data:
            before = self.data
            line, _, self.data = self.data.partition(b"\n")
            text = line.decode("latin-1").strip()
            reply = self.talk.answer(text, self)
            if reply is None:
                self.data = before
                break
            if not text.endswith("noreply"):
                out.append((text, reply))
        self.send(out)
        return True

    def send(self, out):
        talk = self.talk
        error = talk.store.write()
        talk.count += len(out)
        if FAULT == "hangs" and talk.count > 300:
            return
        lines = []
        for text, reply in out:
            is_read = text.startswith(("get", "stats"))
            if error and (not is_read or FAULT == "reads"):
                reply = error
            lines.append(reply + "\r\n")
        try:
            self.stream.sendall("".join(lines).encode("latin-1"))
        except OSError:
            pass
        if talk.store.late:
            os.fdatasync(talk.store.log)
            talk.store.late = False


def serve(store):
    listener = socket.create_server(("127.0.0.1", 0))
    name = os.environ["MEMCACHED_PORT_FILENAME"]
    with open(name, "w", encoding="ascii") as out:
        out.write("TCP INET: %d\n" % listener.getsockname()[1])
    reader, writer = os.pipe()
    for number in (signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, lambda *_: os.write(writer, b"x"))
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ, None)
    selector.register(reader, selectors.EVENT_READ, "stop")
    talk = Talk(store)
    while True:
        for key, _ in selector.select():
            if key.data == "stop":
                store.close()
                return
            if key.data is None:
                stream, _ = listener.accept()
                selector.register(stream, selectors.EVENT_READ,
                                  Connection(stream, talk))
            elif not key.data.serve():
                selector.unregister(key.fileobj)
                key.fileobj.close()


def main():
    options = dict(word[2:].partition("=")[::2] for word in sys.argv[1:]
                   if word.startswith("--"))
    if "check" in options:
        store = Store.__new__(Store)
        store.path = os.path.join(options["data"], "log")
        store.entries()
        print("log: sound to offset %d" % store.end)
        return 0
    try:
        store = Store(options["data"], options.get("sync", "interval"))
    except OSError as error:
        print("fake: %s" % os.strerror(error.errno or errno.EIO))
        return 1
    serve(store)
    return 0


sys.exit(main())
