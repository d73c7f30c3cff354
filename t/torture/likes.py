# SPDX-License-Identifier: BSD-3-Clause
"""Fifty connections that like and unlike the same pairs of a post and a user,
beside kill -9. What is not answered is said again after the next start, in its
order. After each kill --check passes; at the end the number of each post is
that of its members: by get, by the dump of the server and that of the
directory, and by --check."""

import random
import re
import subprocess

import server
from daemon import Daemon, Place, need_sound, offline_check
from tap import check, equal

FANS = 50
POSTS = [1, 2, 3, 255, 256, 1000, 123456789, 2**32, 2**63, 2**64 - 1] + [
    10**6 + 64 * i for i in range(10)]
USERS = [0, 7, 255, 256, 65535, 2**33 - 1] + [10**8 + 77 * i
                                              for i in range(44)]
SCHEMA = (
    "add counter weibo cold=never",
    "add column weibo wid primarykey",
    "add column weibo attitude_num suffix=cntan",
    "add column weibo reads",
    "add column weibo liked members=exact counts=attitude_num",
)
ROUNDS = 20  # of a life
BURST = 4    # commands of a connection in a round
KEYS = 100   # of a get
FORMS = ("set %s 0 0 1\r\n1\r\n", "add %s 0 0 1\r\n1\r\n", "delete %s\r\n",
         "set %s 0 0 1\r\n0\r\n", "incr %s 1\r\n", "decr %s 1\r\n")
ANSWERS = {"d": (b"DELETED", b"NOT_FOUND"), "a": (b"STORED", b"NOT_STORED"),
           "s": (b"STORED",)}
MEMBER = re.compile(r"(?:set|member) weibo (\d+)\.liked:(\d+) ([01])$")


class Fan:
    """One connection after the other, each of another life."""

    def __init__(self, source):
        self.random = source
        self.owed = []  # said, and not answered

    def begin(self, connection):
        self.connection = connection
        self.connection.send("".join(self.owed))

    def say(self):
        said = [self.random.choice(FORMS) % ("%d.liked:%d" % (
            self.random.choice(POSTS), self.random.choice(USERS)))
                for _ in range(BURST)]
        self.owed += said
        self.connection.send("".join(said))

    def hear(self):
        said = self.owed[0]
        line = self.connection.line()
        if said.startswith(("incr", "decr")):
            check(line in (b"0", b"1"), "%r to %r" % (line, said))
        else:
            check(line in ANSWERS[said[0]], "%r to %r" % (line, said))
        del self.owed[0]


def pairs_by_get(connection, posts=POSTS):
    """{post: its users}; each post's number is how many these are."""
    found = {}
    for post in posts:
        keys = ["%d.liked:%d" % (post, user) for user in USERS]
        values = connection.get("%d.cntan" % post, *keys)
        found[post] = {user for user, (_, _, value) in zip(USERS, values[1:])
                       if value == b"1"}
        equal(int(values[0][2]), len(found[post]), "post %d" % post)
    return found


def pairs_in(lines, posts=POSTS):
    """The same by the lines of a dump: what comes last counts."""
    found = {post: set() for post in posts}
    for line in lines:
        member = MEMBER.match(line)
        if member:
            post, user, value = (int(word) for word in member.groups())
            (found[post].add if value else found[post].discard)(user)
    return found


def numbers_in(lines):
    """{post: its number} by the records that --dump shows, if it is not 0."""
    records = (line.split() for line in lines if line.startswith("record "))
    return {int(words[2]): int(words[3]) for words in records
            if words[3] != "0"}


def dump_of(place):
    done = subprocess.run(
        [server.binary(), "--data=" + place.data, "--dump",
         *server.user_options()], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, timeout=server.LIMIT_S, check=False)
    equal(done.returncode, 0, done.stderr.decode())
    return done.stdout.decode().splitlines()


def check_says(place, n_members):
    status, text = offline_check(place)
    check(status == 0 and "\nmembers %d\n" % n_members in text, text)


def compare_all(place, daemon, fans):
    """At rest; how many members there are. The directory is looked at with a
    log, and with images alone."""
    for fan in fans:
        while fan.owed:
            fan.hear()
    with daemon.connect() as connection:
        wanted = pairs_by_get(connection)
        connection.send("dump counter weibo\r\n")
        lines = [line.decode() for line in connection.until(b"END")]
        equal(pairs_in(lines), wanted, "dump counter")
    n_members = sum(len(users) for users in wanted.values())
    daemon.murder()
    equal(pairs_in(dump_of(place)), wanted, "--dump")
    check_says(place, n_members)
    daemon.start()
    daemon.checkpoint_and_stop()
    lines = dump_of(place)
    equal(pairs_in(lines), wanted, "--dump of images")
    equal(numbers_in(lines), {post: len(users) for post, users
                              in wanted.items() if users}, "--dump of images")
    check_says(place, n_members)
    return n_members


def lives(count, seed, tell=lambda text: None):
    """count lives, all but the last ended at work. Returns (commands answered,
    members at the end)."""
    source = random.Random(seed)
    fans = [Fan(source) for _ in range(FANS)]
    n_said = 0
    with Place() as place:
        for life in range(count):
            tell("life %d of %d" % (life + 1, count))
            mode = source.choice(("always", "always", "interval"))
            with Daemon(place, "--sync=" + mode) as daemon:
                daemon.start()
                if life == 0:
                    with daemon.connect() as admin:
                        admin.tell(*SCHEMA)
                for fan in fans:
                    fan.begin(daemon.connect())
                for _ in range(ROUNDS):
                    for fan in fans:
                        fan.say()
                        n_said += BURST
                    for fan in source.sample(fans, FANS // 2):
                        for _ in range(source.randint(1, len(fan.owed))):
                            fan.hear()
                    if source.random() < 0.05:
                        with daemon.connect() as admin:
                            equal(admin.ask("checkpoint"), "OK")
                if life == count - 1:
                    n_members = compare_all(place, daemon, fans)
                else:
                    daemon.murder()
                need_sound(place)
    return n_said, n_members
