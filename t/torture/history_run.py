# SPDX-License-Identifier: BSD-3-Clause
"""Makes a history: some lives of one server, with connections that read and
change a few records at random meanwhile, all driven by one thread, so that
times are the numbers of its steps.

Records are sealed to the cold tier, checkpoints are made, columns are added and
dropped. A life ends by kill -9 at any moment, also while the server starts, or
by a stop. What is answered before the connection ends counts, the rest has no
reply. A numbered change without one is sent again in the next life.

break_ makes it tell lies, which the check must find: "double" counts some
increments twice, "lose" loses some, "stale" shows what an earlier read has
shown."""

import os
import random
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import history_wire as wire
import server
from daemon import give_away
from history_check import ALL, History, Op
from history_model import COLUMNS, MAX, unique as cas_unique
from history_wire import Fault, Short, UNSURE, VOID

CONNECTIONS = 5
DEPTH_MAX = 6
LIFE_OPS = (20, 160)     # before a life ends
LIVES = (2, 4)
START_S_MAX = 0.02       # a start before it is killed, at most
KILL_S_MAX = 0.0006      # from a request to a kill
LOADING_S = 0.001        # between two requests while it loads
FILLERS = 700            # records besides, which nobody changes
RANGE = 1 << 12
BREAKS = ("double", "lose", "stale")
RECEIVE_BYTES = 1 << 16
DECLARE = ("add counter main\r\nadd column main main_id primarykey\r\n"
           "add column main a max=64\r\nadd column main b max=16 default=7\r\n")


class Life:
    """One process."""

    def __init__(self, top, options, number):
        self.path = os.path.join(top, "socket")
        self.stderr = os.path.join(top, "stderr%d" % number)
        self.command = [
            server.binary(), *server.user_options(), "-s", self.path,
            "--data=" + os.path.join(top, "data"), "--near-cells=error",
            *["--%s-timeout=%d" % (what, server.LIMIT_S)
              for what in ("commit", "command", "write")], *options]
        if os.path.exists(self.path):
            os.unlink(self.path)
        with open(self.stderr, "ab") as out:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=out,
                stderr=out, cwd=top)

    def words(self):
        with open(self.stderr, encoding="latin-1") as lines:
            return lines.read()

    def connect(self):
        """As soon as it listens."""
        deadline = time.monotonic() + server.LIMIT_S
        while True:
            stream = socket.socket(socket.AF_UNIX)
            try:
                stream.connect(self.path)
                return stream
            except (FileNotFoundError, ConnectionRefusedError):
                stream.close()
            if self.process.poll() is not None:
                raise Fault("the server does not start: " + self.words())
            if time.monotonic() > deadline:
                raise Fault("nobody listens: " + self.words())
            time.sleep(0.0005)

    def end(self, number):
        """Sends a signal and waits for the end; its status must be right."""
        self.process.send_signal(number)
        status = self.process.wait(server.LIMIT_S)
        wanted = -number if number == signal.SIGKILL else 0
        if status != wanted or server.COMPLAINTS.search(self.words()):
            raise Fault("the server ended with %d: %s" % (
                status, self.words()))

    def remove(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Conn:
    """A connection, what it has sent and not been answered."""

    def __init__(self, number, life, kind):
        self.number = number
        self.kind = kind  # text, binary, or admin
        self.stream = life.connect()
        self.stream.setblocking(False)
        self.data = bytearray()
        self.waiting = []  # requests, in order
        self.quiet = []    # of those behind the last reply, without one
        self.rest = b""

    def send(self, requests):
        self.waiting += requests
        self.rest += b"".join(request.data for request in requests)
        self.flush()

    def flush(self):
        try:
            while self.rest:
                self.rest = self.rest[self.stream.send(self.rest):]
        except BlockingIOError:
            pass
        except OSError:
            self.rest = b""  # it is gone, which a read will tell

    def receive(self):
        """False at the end of it."""
        try:
            while True:
                data = self.stream.recv(RECEIVE_BYTES)
                if not data:
                    return False
                self.data += data
        except BlockingIOError:
            return True
        except OSError:
            return False


class Run:
    """One history."""

    def __init__(self, seed, directory, options=(), is_committed=False,
                 break_=None, lives=None):
        self.source = random.Random(seed)
        self.directory = directory
        self.extra = list(options)
        self.break_ = break_
        self.history = History(is_committed)
        self.history.about = {"seed": seed, "options": self.extra}
        self.lives = lives or self.source.randint(*LIVES)
        self.time = 0
        self.made = 0
        self.numbers = {}     # producer -> its last number
        self.again = []       # numbered changes without a reply
        self.uniques = {}     # (id, column or None) -> [(numbers, unique)]
        self.columns = [name for name, _ in COLUMNS]  # about
        self.defaults = 10
        self.is_loading = False  # it has just said so
        self.stales = {}
        base = self.source.randrange(1, 1 << 40) * RANGE
        hot = [base - 1, base, base + 1]
        self.ids = hot * 3 + [base + 63, base + 64, base + RANGE - 1,
                              self.source.getrandbits(60)]
        self.fillers = []
        if self.source.random() < 0.5:
            near = range(base - FILLERS // 2, base + FILLERS // 2)
            self.fillers = [id for id in near if id not in self.ids]

    # what is asked

    def tick(self):
        self.time += 1
        return self.time

    def op(self, conn, id, kind, *args, number=None):
        self.made += 1
        op = Op(life=len(self.history.ends), connection=conn.number,
                order=self.made, id=id, kind=kind, args=list(args),
                number=number)
        self.history.ops.append(op)
        return op

    def note(self, id, key, numbers, unique):
        if key is not None and unique != cas_unique(numbers[0]):
            raise Fault("cas unique of %d is %d" % (numbers[0], unique))
        known = self.uniques.setdefault((id, key), [])
        known.append((numbers, unique))
        del known[:-3]

    def amount(self, name):
        if self.source.random() < 0.25:  # also what changes nothing
            return self.source.choice((0, 0, 1, 2, MAX[name] // 2))
        return self.source.randrange(1, min(1000, MAX[name] // 4))

    def given(self, is_named):
        """Numbers of a record, by name or one a column."""
        if not is_named:
            return [self.amount(name) for name in self.columns]
        some = self.source.sample(self.columns, self.source.randint(
            1, len(self.columns)))
        return {name: self.amount(name) for name in some}

    def column(self):
        return self.source.choice(self.columns if self.source.random() < 0.95
                                  else ["a", "b", "x", "y"])

    def number(self, conn):
        """That of the next change, or None."""
        if conn.kind == "binary" or self.source.random() > 0.35:
            return None
        producer = "p%d" % conn.number
        self.numbers[producer] = self.numbers.get(producer, 0) + 1
        return producer, self.numbers[producer]

    def read(self, conn):
        source = self.source
        is_record = source.random() < 0.5
        if conn.kind == "binary" or source.random() < 0.3:
            op = self.op(conn, source.choice(self.ids), "read") if is_record \
                else self.op(conn, source.choice(self.ids), "get",
                             self.column())
            if conn.kind == "binary":
                return wire.binary(op, self.note)
            return wire.meta(op, self.note)
        ops = []
        for id in source.sample(sorted(set(self.ids)), source.choice(
                (1, 1, 2, 3))):
            if source.random() < 0.5:
                ops.append(self.op(conn, id, "read"))
            else:
                names = source.sample(self.columns, source.randint(
                    1, len(self.columns)))
                ops.append(self.op(conn, id, "get", *names))
        is_dialect = source.random() < 0.3
        verb = "get" if is_dialect or source.random() < 0.5 else "gets"
        return wire.gets(ops, self.note, verb, is_dialect)

    def cas(self, conn, id):
        """One with a unique that was shown, or None."""
        known = [pair for pair in self.uniques.items() if pair[0][0] == id]
        if not known:
            return None
        (_, name), shown = self.source.choice(known)
        numbers, unique = shown[-1] if self.source.random() < 0.8 else \
            self.source.choice(shown)
        if name is None:
            op = self.op(conn, id, "casr", numbers, self.given(False),
                         number=self.number(conn))
        else:
            op = self.op(conn, id, "cas", name, numbers[0],
                         self.amount(name), number=self.number(conn))
        op.unique = unique
        if conn.kind == "binary":
            return wire.binary(op, self.note)
        return self.write(conn, op)

    def count(self, conn, id):
        source = self.source
        kind = source.choice(("incr", "incr", "incr", "decr"))
        name = self.column()
        args = [name, self.amount(name)]
        if conn.kind == "binary":
            if kind == "incr" and source.random() < 0.2:
                args.append(self.amount(name))
            elif source.random() < 0.2:
                args.append(0)
            return wire.binary(self.op(conn, id, kind, *args), self.note)
        return self.write(conn, self.op(conn, id, kind, *args,
                                        number=self.number(conn)))

    def write(self, conn, op):
        """A change as one of its forms. Some leave the reply out."""
        forms = ["text", "dialect", "meta"]
        if op.kind in ("incrs", "decrs", "replaces") or \
                isinstance(op.args[-1] if op.args else None, dict):
            forms = ["dialect"]
        elif op.kind in ("sets", "adds") and len(op.args[0]) < 3 or \
                op.kind in ("cas", "casr"):
            forms.remove("dialect")
        form = self.source.choice(forms)
        is_quiet = self.source.random() < 0.1
        if form == "meta":
            return wire.meta(op, self.note)
        if form == "dialect":
            return wire.dialect(op, is_quiet)
        return wire.text(op, is_quiet=is_quiet)

    def store(self, conn, id):
        source = self.source
        kind = source.choice(("set", "set", "add", "replace", "delete"))
        name = self.column()
        args = [name] if kind == "delete" else [name, self.amount(name)]
        op = self.op(conn, id, kind, *args, number=self.number(conn))
        return wire.binary(op, self.note) if conn.kind == "binary" else \
            self.write(conn, op)

    def record(self, conn, id):
        source = self.source
        if conn.kind == "binary":
            kind = source.choice(("sets", "adds", "deleter"))
            args = [] if kind == "deleter" else [self.given(False)]
            return wire.binary(self.op(conn, id, kind, *args), self.note)
        kind = source.choice(("sets", "sets", "adds", "replaces", "deleter",
                              "incrs", "incrs", "decrs"))
        given = self.given(source.random() < 0.5)
        if kind == "replaces" and len(given) < 3 and isinstance(given, list):
            given = self.given(True)
        args = [] if kind == "deleter" else [given]
        return self.write(conn, self.op(conn, id, kind, *args,
                                        number=self.number(conn)))

    def repeat(self, conn):
        """A numbered change that has had no reply, or, on purpose, that has
        one, once more."""
        before = self.again.pop(self.source.randrange(len(self.again)))
        op = self.op(conn, before.id, before.kind, *before.args,
                     number=before.number)
        op.unique = before.unique
        return self.write(conn, op)

    def request(self, conn):
        chance = self.source.random()
        if conn.kind == "text" and self.again and chance < 0.3:
            return self.repeat(conn)
        id = self.source.choice(self.ids)
        chance = self.source.random()
        if chance < 0.3:
            return self.read(conn)
        if chance < 0.4:
            asked = self.cas(conn, id)
            if asked is not None:
                return asked
        if chance < 0.7:
            return self.count(conn, id)
        return self.store(conn, id) if chance < 0.85 else \
            self.record(conn, id)

    def edit(self, conn):
        """An edit of the schema, a seal or a checkpoint; the words of the last
        two."""
        chance = self.source.random()
        if chance < 0.35:
            return "seal main all\r\n"
        if chance < 0.5:
            return "checkpoint\r\n"
        name = self.source.choice("xy")
        if name in self.columns and self.source.random() < 0.9:
            return wire.schema(self.op(conn, ALL, "drop column", name))
        self.defaults += 1
        return wire.schema(self.op(conn, ALL, "add column", name,
                                   self.defaults))

    # what comes of it

    def settle(self, conn, request, answers):
        """The reply to a request is there."""
        end = self.tick()
        for op in conn.quiet:
            op.end, op.is_made = end, True
        conn.quiet = []
        for op, answer in zip(request.ops, answers):
            op.end = end
            if answer == VOID:
                op.is_void = self.is_loading = True
            elif answer == UNSURE:
                op.is_made = True
            else:
                op.answer = answer
                self.learn(op)
        if self.break_:
            self.lie(request.ops)

    def learn(self, op):
        if op.kind == "add column" and op.answer is True and \
                op.args[0] not in self.columns:
            self.columns.append(op.args[0])
        elif op.kind == "drop column" and op.args[0] in self.columns:
            self.columns.remove(op.args[0])
        if op.number is not None and self.source.random() < 0.1:
            self.again.append(op)

    def lie(self, ops):
        """A reply that is not the server's."""
        for op in ops:
            if op.kind == "get" and isinstance(op.answer, list) and \
                    self.break_ == "stale":
                key = op.id, tuple(op.args)
                before = self.stales.setdefault(key, op.answer)
                if self.source.random() < 0.3:
                    op.answer = before

    def take(self, conn):
        """What has come on a connection."""
        is_open = conn.receive()
        at = 0
        try:
            while conn.waiting:
                request = conn.waiting[0]
                if request.read is None:
                    conn.quiet += request.ops
                else:
                    answers, at = request.read(conn.data, at)
                    self.settle(conn, request, answers)
                conn.waiting.pop(0)
        except Short:
            pass
        if not conn.waiting and at < len(conn.data):
            raise Fault("unasked: %r" % bytes(conn.data[at:]))
        del conn.data[:at]
        return is_open

    def ask(self, conn, requests):
        begin = self.tick()
        for request in requests:
            for op in request.ops:
                op.begin = begin
                op.sent = request.data.decode("latin-1")
        conn.send(requests)

    # a life

    def options(self):
        source = self.source
        found = ["--sync=always", "-t", str(source.choice((1, 2, 4))),
                 "--shards=%d" % source.choice((1, 2, 16)),
                 "--hot-memory=16m", "--cold-cache=1m", "--cold-threads=2",
                 "--cold-io=" + source.choice(("auto", "pool"))]
        if source.random() < 0.5:
            found += ["--log-file-size=2m", "--checkpoint-log=4m",
                      "--checkpoint-interval=1"]
        return found + self.extra

    @staticmethod
    def lines(stream, text):
        """Sends lines and waits for as many back."""
        stream.sendall(text.encode())
        data = b""
        while data.count(b"\n") < text.count("\n"):
            part = stream.recv(RECEIVE_BYTES)
            if not part:
                raise Fault("closed after %r" % data)
            data += part
        return data.decode("latin-1")

    def declare(self, conn):
        """The counter, and records besides."""
        stream = conn.stream
        stream.setblocking(True)
        stream.settimeout(server.LIMIT_S)
        fill = "".join("set main %d a=%d b=%d\r\n" % (id, id % 1000, id % 50)
                       for id in self.fillers)
        for text in (DECLARE, fill):
            answer = self.lines(stream, text)
            if answer != "STORED\r\n" * text.count("\n"):
                raise Fault("declared: %.500s" % answer)
        stream.setblocking(False)

    def wait_loaded(self, conn):
        """Until it has its counters."""
        conn.stream.setblocking(True)
        conn.stream.settimeout(server.LIMIT_S)
        while "SERVER_ERROR loading" in self.lines(conn.stream, "delete 0\r\n"):
            time.sleep(LOADING_S)
        conn.stream.setblocking(False)

    def look(self, life):
        """All records, and those that nobody has changed."""
        conn = Conn(99, life, "text")
        poll = select.poll()
        poll.register(conn.stream, select.POLLIN)
        todo = sorted(set(self.ids))
        while todo:
            ops = [self.op(conn, id, "read") for id in todo]
            self.ask(conn, [wire.gets(ops, self.note, "gets")])
            while conn.waiting:
                self.await_some(poll)
                if not self.take(conn):
                    raise Fault("closed at a look: " + life.words())
            todo = [op.id for op in ops if op.is_void]
            self.rest()
        if self.fillers:
            self.look_at_fillers(conn.stream)
        conn.stream.close()

    def rest(self):
        """A moment, where the server is loading."""
        if self.is_loading:
            time.sleep(LOADING_S)
            self.is_loading = False

    def look_at_fillers(self, stream):
        stream.setblocking(True)
        stream.settimeout(server.LIMIT_S)
        stream.sendall(("get " + " ".join(
            "%d.a %d.b" % (id, id) for id in self.fillers) +
            "\r\n").encode())
        wanted = [number for id in self.fillers
                  for number in (id % 1000, id % 50)]
        data = b""
        while not data.endswith(b"END\r\n"):
            part = stream.recv(RECEIVE_BYTES)
            if not part:
                raise Fault("closed after %d bytes of a get" % len(data))
            data += part
        found = [int(word) for word in data.split(b"\r\n")[1::2] if word]
        wrong = [id for at, id in enumerate(self.fillers)
                 if found[2 * at:2 * at + 2] != wanted[2 * at:2 * at + 2]]
        if wrong:
            raise Fault("%d records that nobody changed have changed, first "
                        "that of id %d" % (len(wrong), wrong[0]))

    @staticmethod
    def await_some(poll):
        ready = poll.poll(1000 * server.LIMIT_S)
        if not ready:
            raise Fault("no reply within %d s" % server.LIMIT_S)
        return ready

    def crash(self, life):
        """kill -9, a moment after what was sent last."""
        end = time.perf_counter() + self.source.uniform(0, KILL_S_MAX)
        while time.perf_counter() < end:
            pass
        life.end(signal.SIGKILL)

    def admin_read(self, conn, op_words):
        """Reads the reply to a seal or a checkpoint."""
        begin, life = self.time + 1, len(self.history.ends)

        def read(data, at):
            line, at = wire.line_at(data, at)
            if line == b"OK":
                self.history.others.append((life, begin))
            elif not line.startswith((b"SERVER_ERROR the server is stopping",
                                      b"SERVER_ERROR loading")):
                raise Fault("%r was answered %r" % (op_words, line))
            return [], at
        return wire.Request(op_words.encode(), [], read)

    def send_some(self, conn, is_admin_busy):
        if conn.kind == "admin":
            if is_admin_busy and self.source.random() < 0.7:
                return
            asked = self.edit(conn)
            if isinstance(asked, str):
                asked = self.admin_read(conn, asked)
            self.ask(conn, [asked])
            return
        depth = self.source.choice((1, 1, 1, 2, DEPTH_MAX))
        requests = [self.request(conn) for _ in range(depth)]
        if requests[-1].read is None:
            requests.append(self.read(conn))
        if self.break_ == "lose":
            requests = self.thin(requests)
        if self.break_ == "double":
            self.double(conn, requests)
        self.ask(conn, requests)

    def thin(self, requests):
        """Sends some increments as such by 0 and tells that they were done."""
        for request in requests:
            op = request.ops[0]
            if op.kind == "incr" and op.number is None and \
                    request.data.startswith(b"incr ") and \
                    op.args[0] == "a" and self.source.random() < 0.5:
                read, delta = request.read, op.args[1]
                request.data = request.data.replace(b" %d" % delta, b" 0")
                if read is not None:
                    request.read = more(read, delta)
        return requests

    def double(self, conn, requests):
        """Sends some increments twice."""
        for request in requests:
            op = request.ops[0]
            if op.kind == "incr" and op.number is None and \
                    request.data.startswith(b"incr ") and \
                    request.read is not None and \
                    op.args[0] == "a" and self.source.random() < 0.5:
                request.read = second(request.read)
                request.data *= 2

    def live(self, life):
        """Requests until it is enough; true where the server was killed."""
        kinds = ("text", "text", "text", "binary", "admin")
        conns = {}
        poll = select.poll()
        for number, kind in enumerate(kinds[-CONNECTIONS:]):
            conn = Conn(number, life, kind)
            conns[conn.stream.fileno()] = conn
            poll.register(conn.stream, select.POLLIN)
        first = next(iter(conns.values()))
        if not self.history.ends or self.source.random() < 0.8:
            self.wait_loaded(first)
        if not self.history.ends:
            self.declare(first)
        enough = self.made + self.source.randint(*LIFE_OPS)
        is_last = len(self.history.ends) + 1 == self.lives
        is_kill = is_last or self.source.random() < 0.9
        while True:
            order = list(conns.values())
            self.source.shuffle(order)
            for conn in order:
                if not conn.waiting and self.made < enough:
                    self.send_some(conn, True)
                    if self.made >= enough and is_kill:
                        break
            if self.made >= enough:
                break
            self.rest()
            if not any(conn.waiting for conn in order):
                continue
            for number, _ in self.await_some(poll):
                if not self.take(conns[number]):
                    raise Fault("a connection was closed: " + life.words())
        if is_kill:
            self.crash(life)
        else:
            life.end(signal.SIGTERM)
        for conn in conns.values():
            while self.take(conn):
                self.await_one(conn)
            conn.stream.close()
            self.leave(conn)
        return is_kill

    @staticmethod
    def await_one(conn):
        if not select.select([conn.stream], [], [], server.LIMIT_S)[0]:
            raise Fault("a connection outlives its server")

    def leave(self, conn):
        """What has had no reply."""
        for op in conn.quiet + [op for request in conn.waiting
                                for op in request.ops]:
            if op.number is not None:
                self.again.append(op)

    def start(self, top):
        """A life, perhaps after some that were killed while they began."""
        options = self.options()
        while self.history.ends and self.source.random() < 0.2:
            life = Life(top, options, len(self.history.ends))
            try:
                time.sleep(self.source.uniform(0, START_S_MAX))
                life.end(signal.SIGKILL)
            finally:
                life.remove()
        return Life(top, options, len(self.history.ends))

    def run(self):
        """The history; it was not checked."""
        top = tempfile.mkdtemp(prefix="tallyd-history-", dir=self.directory)
        life = None
        try:
            os.chmod(top, 0o755)
            give_away(top)
            for _ in range(self.lives):
                life = self.start(top)
                if self.history.ends:
                    self.look(life)
                is_kill = self.live(life)
                self.history.ends.append("kill" if is_kill else "stop")
            life = self.start(top)
            self.look(life)
            life.end(signal.SIGKILL)
            self.history.ends.append("kill")
        except Fault as error:
            raise Fault("seed %s: %s" % (self.history.about["seed"],
                                         error)) from error
        finally:
            if life is not None:
                life.remove()
            shutil.rmtree(top, ignore_errors=True)
        self.history.ops = [op for op in self.history.ops if not op.is_void]
        return self.history


def more(read, delta):
    """A reply that says delta more."""
    def read_more(data, at):
        answers, at = read(data, at)
        if isinstance(answers[0], int):
            answers[0] += delta
        return answers, at
    return read_more


def second(read):
    """The first of two replies."""
    def read_both(data, at):
        answers, at = read(data, at)
        _, at = read(data, at)
        return answers, at
    return read_both
