# SPDX-License-Identifier: BSD-3-Clause
"""What t/bench/unread asks: tallyd and Redis, each with the commands for the
same things, and what an answer costs them."""

import os
import shutil
import socket
import statistics
import subprocess
import time

import server

PAGE = 100  # keys
DEPTH = 16
FILL = 1000  # commands sent at once
NOTICES, DOT = 1000, 1764086400
MEMBER = 1764000000  # the first one: seconds
ALL_NOTICES = range(MEMBER, MEMBER + 60 * NOTICES, 60)


def cpu_s(pid):
    """By the process's CPU clock, see clock_getcpuclockid(3)."""
    return time.clock_gettime(~pid << 3 | 2)


def anon_bytes(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as lines:
        for line in lines:
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
    raise RuntimeError("no RssAnon")


class Talk:
    """A connection on which what is asked again is answered in as many bytes
    as before."""

    def __init__(self, address):
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.settimeout(60)
        self.socket.connect(address)

    def take(self, n):
        while n > 0:
            n -= len(self.socket.recv(min(n, 1 << 20)))

    def first(self, command, is_whole):
        """The length of the answer, and it."""
        data = b""
        self.socket.sendall(command)
        while not is_whole(data):
            data += self.socket.recv(1 << 20)
        return len(data), data

    def ask(self, commands, sizes):
        for command, size in zip(commands, sizes):
            self.socket.sendall(command)
            self.take(size)


def resp(*words):
    return b"".join([b"*%d\r\n" % len(words)] + [
        b"$%d\r\n%s\r\n" % (len(word), word) for word in words])


def count_resp(data):
    """Whole values in data, of arrays of bulk strings, bulks and lines; None
    where the last is cut."""
    at, n, open_items = 0, 0, 0
    while at < len(data):
        end = data.find(b"\r\n", at)
        if end < 0:
            return None
        kind, rest = data[at:at + 1], data[at + 1:end]
        at = end + 2
        if kind == b"*":
            open_items += int(rest)
            n += 1
            continue
        if kind == b"$" and rest != b"-1":
            at += int(rest) + 2
            if at > len(data):
                return None
        if open_items > 0:
            open_items -= 1
        else:
            n += 1
    return n if open_items == 0 else None


def show(name, figures, unit, base=None):
    low, mid, high = statistics.quantiles(figures, n=4)
    more = "" if base is None else "  x %.2f" % (mid / base)
    print("%-48s %9.2f %s (%.2f to %.2f)%s" % (
        name, mid, unit, low, high, more), flush=True)
    return mid


def show_ratio(name, above, below):
    ratios = [a / b for a, b in zip(above, below)]
    low, mid, high = statistics.quantiles(ratios, n=4)
    print("%-48s %9.2f x (%.2f to %.2f)" % (name, mid, low, high), flush=True)


def measure_once(pid, talk, batches, n_commands):
    """us a command: batches is a list of (bytes, size of answer, commands in
    it)."""
    done, at, begun = 0, 0, cpu_s(pid)
    while done < n_commands:
        data, size, n = batches[at % len(batches)]
        talk.ask([data], [size])
        done += n
        at += 1
    return (cpu_s(pid) - begun) * 1e6 / done


def measure(pid, talk, batches, n_commands, arguments):
    """The same of each round."""
    return [measure_once(pid, talk, batches, n_commands)
            for _ in range(arguments.rounds)]


def batched(talk, commands, depth, is_whole):
    out = []
    for at in range(0, len(commands), depth):
        some = commands[at:at + depth]
        data = b"".join(some)
        size, _ = talk.first(data, lambda got, n=len(some): is_whole(got, n))
        out.append((data, size, len(some)))
    return out


def ends(data, n):
    return data.count(b"END\r\n") == n


class Tally:
    """tallyd under test."""

    name = "tallyd"

    def __init__(self, schema, data="none"):
        self.running = server.Server("-m", "1024", threads=1, data=data)
        self.running.command[:0] = ["taskset", "-c", "0"]
        self.running.start()
        self.pid = self.running.process.pid
        self.n_liked = 0
        with self.running.connect() as connection:
            self.running.wait(lambda: not connection.ask(
                "incr loaded 1").startswith("SERVER_ERROR"), "loading")
            connection.tell(*schema)
        self.talk = Talk(("127.0.0.1", self.running.port))

    def fill(self, commands):
        for at in range(0, len(commands), FILL):
            some = commands[at:at + FILL]
            self.talk.first(b"".join(some), lambda got, n=len(some):
                            got.count(b"\r\n") == n)

    def authors(self, pairs):
        self.fill([b"set author %d %d\r\n" % pair for pair in pairs])

    def lists(self, lists):
        texts = (b" ".join(b"%d" % i for i in ids) for _, ids in lists)
        self.fill([b"set %d.feed 0 0 %d\r\n%s\r\n" % (user, len(text), text)
                   for (user, _), text in zip(lists, texts)])

    def batches(self, lists, depth):
        return batched(self.talk, [b"get %d.feed\r\n" % user
                                   for user, _ in lists], depth, ends)

    def single(self, ids, depth):
        return batched(self.talk, [b"get %d.posts\r\n" % i for i in ids],
                       depth, ends)

    def users(self, ids, counts, kinds, has_marks):
        """counts: (number, what is unread of it), as many as kinds, a user."""
        def text(kind, number, unread):
            more = b" %sseen=%d" % (kind, number - unread)
            return b" %s=%d" % (kind, number) + (more if has_marks else b"")
        self.fill([b"set user %d%s\r\n" % (i, b"".join(
            text(kind, *pair) for kind, pair in zip(kinds, of_user)))
            for i, of_user in zip(ids, counts)])

    def gets(self, keys, form):
        return batched(self.talk, [
            b"get " + b" ".join(form % key for key in some) + b"\r\n"
            for some in keys], DEPTH, ends)

    def reads(self, keys):
        """A notification comes, is polled and read."""
        commands = [b"incr %d.%s 1\r\nget %d.un%s\r\n"
                    b"set %d.%sseen 0 0 10\r\n4294967295\r\n" % (key * 3)
                    for key in keys]
        return batched(self.talk, commands, DEPTH, lambda got, n:
                       got.count(b"\r\n") == 5 * n)

    def begin(self, keys):
        """Numbers get no more digits from here on."""
        self.fill([b"set %d.%s 0 0 7\r\n1000000\r\n" % key for key in keys])

    def members(self, ids, notices, inboxes, seen):
        self.fill([b"set 1.notice:%d 0 0 1\r\n1\r\n" % member
                   for member in notices])
        self.fill([b"set %d.inbox:%d 0 0 1\r\n1\r\n" % (i, member)
                   for i, inbox in zip(ids, inboxes) for member in inbox])
        self.fill([b"set user %d at=%d i_seen=%d n_seen=%d\r\n" % (
            i, MEMBER, *of_user) for i, of_user in zip(ids, seen)])

    def unread(self, pages, kind):
        """pages: of (id, what was seen of inbox, of notices)."""
        name = {"inbox": b"uni", "notice": b"unn"}[kind]
        return batched(self.talk, [
            b"get " + b" ".join(b"%d.%s" % (i, name) for i, *_ in page) +
            b"\r\n" for page in pages], DEPTH, ends)

    def publish(self, members):
        self.fill([b"set 1.notice:%d 0 0 1\r\n1\r\n" % member
                   for member in members])

    def like(self, flat):
        """flat: post, user, post, ... Their answers are waited for in like of
        the next ones, or in liked."""
        n = len(flat) // 2
        self.talk.socket.sendall(
            b"add %d.liked:%d 0 0 1\r\n1\r\n" * n % tuple(flat))
        self.n_liked += n
        self.liked(n)

    def liked(self, left=0):
        """Until no more than so many answers are to come."""
        while self.n_liked > left:
            self.n_liked -= self.talk.socket.recv(1 << 20).count(b"\n")

    def kinds(self, users, seen):
        self.fill([b"set user %d at=%d atseen=%d nseen=%d dotseen=%d\r\n" % (
            user, *of_user) for user, of_user in zip(users, seen)])

    def shared(self):
        self.fill([b"set board 1 dot=%d\r\n" % DOT])
        self.publish(ALL_NOTICES)

    def polls(self, users, _seen, _lists):
        return batched(self.talk, [
            b"get %d.unat %d.unn %d.undot %d.feed\r\n" % ((user,) * 4)
            for user in users], DEPTH, ends)

    def numbers(self, users):
        return batched(self.talk, [b"get %d.at\r\n" % user
                                   for user in users], DEPTH, ends)

    def pages(self, pages):
        return batched(self.talk, [
            b"get %s\r\n" % b" ".join(b"%d.liked:%d" % pair for pair in page)
            for page in pages], DEPTH, ends)

    def memory(self):
        return anon_bytes(self.pid)

    def stop(self):
        self.running.stop()


class Redis:
    """Redis beside it."""

    name = "redis"

    def __init__(self, _):
        self.place = server.make_directory()
        path = os.path.join(self.place, "socket")
        self.process = subprocess.Popen(
            ["taskset", "-c", "0", "redis-server", "--port", "0",
             "--unixsocket", path, "--save", "", "--appendonly", "no",
             "--hash-max-listpack-entries", "512", "--dir", self.place],
            stdout=subprocess.DEVNULL)
        self.pid = self.process.pid
        while not os.path.exists(path):
            time.sleep(0.01)
        self.talk = Talk(path)
        self.posts = {}

    def fill(self, commands):
        for at in range(0, len(commands), FILL):
            some = commands[at:at + FILL]
            self.talk.first(b"".join(some), lambda got, n=len(some):
                            count_resp(got) == n)

    def authors(self, pairs):
        self.posts = dict(pairs)
        self.fill([resp(b"SET", b"p:%d" % i, b"%d" % n) for i, n in pairs])

    def lists(self, lists):
        self.fill([resp(b"HSET", b"f:%d" % user, *(
            word for i in ids
            for word in (b"%d" % i, b"%d" % self.posts[i])))
            for user, ids in lists])

    def batches(self, lists, depth):
        """Two commands a list, which count as one."""
        commands = [resp(b"HGETALL", b"f:%d" % user) +
                    resp(b"MGET", *(b"p:%d" % i for i in ids))
                    for user, ids in lists]
        return batched(self.talk, commands, depth,
                       lambda got, n: count_resp(got) == 2 * n)

    def single(self, ids, depth):
        return batched(self.talk, [resp(b"GET", b"p:%d" % i) for i in ids],
                       depth, lambda got, n: count_resp(got) == n)

    def users(self, ids, counts, kinds, _):
        self.fill([resp(b"SET", b"%s:%d" % (kind, i), b"%d" % unread)
                   for i, of_user in zip(ids, counts)
                   for kind, (_, unread) in zip(kinds, of_user)])

    def gets(self, keys, _):
        commands = [resp(b"GET" if len(some) == 1 else b"MGET",
                         *(b"%s:%d" % (kind, i) for i, kind in some))
                    for some in keys]
        return batched(self.talk, commands, DEPTH,
                       lambda got, n: count_resp(got) == n)

    def reads(self, keys):
        commands = [b"".join(resp(word, b"%s:%d" % (kind, i))
                             for word in (b"INCR", b"GET", b"GETDEL"))
                    for i, kind in keys]
        return batched(self.talk, commands, DEPTH,
                       lambda got, n: count_resp(got) == 3 * n)

    def members(self, ids, notices, inboxes, seen):
        self.publish(notices)
        self.fill([resp(b"ZADD", b"i:%d" % i, *(
            b"%d" % member for member in inbox for _ in range(2)))
            for i, inbox in zip(ids, inboxes)])
        self.fill([resp(b"MSET", b"at:%d" % i, b"%d" % MEMBER,
                        b"si:%d" % i, b"%d" % of_user[0],
                        b"sn:%d" % i, b"%d" % of_user[1])
                   for i, of_user in zip(ids, seen)])

    def unread(self, pages, kind):
        """The GETs of a page come as one MGET."""
        def page_of(page):
            yield resp(b"MGET", *(b"s%s:%d" % (
                b"i" if kind == "inbox" else b"n", i) for i, *_ in page))
            for i, inbox, notices in page:
                if kind == "inbox":
                    yield resp(b"ZCOUNT", b"i:%d" % i, b"(%d" % inbox, b"+inf")
                else:
                    yield resp(b"ZCOUNT", b"n", b"(%d" % notices, b"+inf")
        commands = [b"".join(page_of(page)) for page in pages]
        return batched(self.talk, commands, DEPTH, lambda got, n:
                       count_resp(got) == n * (1 + len(pages[0])))

    def publish(self, members):
        self.fill([resp(b"ZADD", b"n", b"%d" % member, b"%d" % member)
                   for member in members])

    def like(self, flat):
        self.fill([resp(b"SADD", b"l:%d" % post, b"%d" % user)
                   for post, user in zip(flat[::2], flat[1::2])])

    def liked(self):
        pass

    def kinds(self, users, seen):
        self.fill([resp(b"HSET", b"u:%d" % user, b"a", b"%d" % (
            at - at_seen), b"n", b"%d" % n_seen, b"d", b"%d" % dot_seen)
                   for user, (at, at_seen, n_seen, dot_seen)
                   in zip(users, seen)])

    def shared(self):
        self.fill([resp(b"SET", b"dot", b"%d" % DOT)])
        self.publish(ALL_NOTICES)

    def polls(self, users, seen, lists):
        """Five commands, which count as one."""
        commands = [b"".join((
            resp(b"HMGET", b"u:%d" % user, b"a", b"n", b"d"),
            resp(b"GET", b"dot"),
            resp(b"ZCOUNT", b"n", b"(%d" % of_user[2], b"+inf"),
            resp(b"HGETALL", b"f:%d" % user),
            resp(b"MGET", *(b"p:%d" % i for i in ids))))
                    for user, of_user, (_, ids) in zip(users, seen, lists)]
        return batched(self.talk, commands, DEPTH,
                       lambda got, n: count_resp(got) == 5 * n)

    def numbers(self, users):
        return batched(self.talk, [resp(b"HGET", b"u:%d" % user, b"a")
                                   for user in users],
                       DEPTH, lambda got, n: count_resp(got) == n)

    def pages(self, pages):
        """As many commands a page as it has keys."""
        commands = [b"".join(resp(b"SISMEMBER", b"l:%d" % post, b"%d" % user)
                             for post, user in page) for page in pages]
        return batched(self.talk, commands, DEPTH,
                       lambda got, n: count_resp(got) == n * PAGE)

    def begin(self, _):
        pass

    def memory(self):
        _, data = self.talk.first(
            resp(b"INFO", b"memory"), lambda got: count_resp(got) == 1)
        return int(data.split(b"used_memory:")[1].split()[0])

    def stop(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.place, ignore_errors=True)
