# SPDX-License-Identifier: BSD-3-Clause
"""Fifty connections that like and unlike the same pairs of a post and a user,
most of which are in segments: seals go on, which merge what has changed with
what was sealed before. Each life is ended twice by kill -9, first at work and
in a seal, then at rest. What was not answered is said again after the first
one, in its order. After each kill --check passes, which wants the number of
each post to be that of its members, and has as many as the dump of the
directory. At rest they are the same by get, by the dump of the server and by
that of the directory, as it was killed and with the log in images, where
numbers are shown, too. Each connection has a post of its own as well, whose
pairs are at rest as it said last."""

import random
import time

import likes
from daemon import Daemon, Place
from tap import check, equal

SCHEMA = tuple(line.replace(" cold=never", "") for line in likes.SCHEMA)
ROUNDS = 16  # of a life
SEALS = 4    # of them, that many go before the next seal
SMALL_HOT = "--hot-memory=64m"
OWN = 10**12  # the first post of one's own
OWN_USERS = likes.USERS[:8]
POSTS = likes.POSTS + [OWN + number for number in range(likes.FANS)]


class Fan(likes.Fan):
    """Knows what its own post has, and takes all members of a post back at
    times. All it says may be done twice."""

    def __init__(self, number, source):
        super().__init__(source)
        self.post = OWN + number
        self.own = set()

    def say(self):
        super().say()
        chance = self.random.random()
        if chance < 0.02:
            self.tell("delete %d.liked\r\n" % self.random.choice(likes.POSTS))
        elif chance < 0.04:
            self.own.clear()
            self.tell("delete %d.liked\r\n" % self.post)
        else:
            self.change_own(self.random.choice(OWN_USERS))

    def change_own(self, user):
        form = self.random.choice(likes.FORMS)
        is_in = form.startswith(("add", "incr")) or "\r\n1" in form
        (self.own.add if is_in else self.own.discard)(user)
        self.tell(form % ("%d.liked:%d" % (self.post, user)))

    def tell(self, said):
        self.owed.append(said)
        self.connection.send(said)


def numbers_in(lines):
    """{post: its number} by the records of --dump, of which the last one of a
    post counts."""
    found = {}
    for line in lines:
        if line.startswith("record weibo "):
            words = line.split()
            found[int(words[2])] = int(words[3])
    return {post: number for post, number in found.items() if number != 0}


def by_directory(place, has_log=True):
    """{post: its users} by --dump, with which --check agrees; has_log: records
    may show numbers of before."""
    lines = likes.dump_of(place)
    found = likes.pairs_in(lines, POSTS)
    if not has_log:
        equal(numbers_in(lines), {post: len(users) for post, users
                                  in found.items() if users}, "--dump")
    likes.check_says(place, sum(len(users) for users in found.values()))
    return found


def by_server(daemon):
    """The same by get and by the dump of the server."""
    with daemon.connect() as connection:
        found = likes.pairs_by_get(connection, POSTS)
        connection.send("dump counter weibo\r\n")
        lines = [line.decode() for line in connection.until(b"END")]
        equal(likes.pairs_in(lines, POSTS), found, "dump counter")
    return found


def play(fans, source, admin):
    """A seal is under way most of the time. How many commands were said."""
    n_said = 0
    for number in range(ROUNDS):
        if number % SEALS == 0:
            admin.send("seal weibo all\r\n")
        for fan in fans:
            before = len(fan.owed)
            fan.say()
            n_said += len(fan.owed) - before
        for fan in source.sample(fans, len(fans) // 2):
            for _ in range(source.randint(1, len(fan.owed))):
                fan.hear()
        if number % SEALS == SEALS - 1:
            equal(admin.line(), b"OK")
    admin.send("seal weibo all\r\n")
    return n_said


def rest(place, fans, options):
    """What is owed is said again and answered; then all say the same. Returns
    (members, seals of this server)."""
    with Daemon(place, *options) as daemon:
        daemon.start()
        for fan in fans:
            fan.begin(daemon.connect())
        with daemon.connect() as admin:
            admin.send("seal weibo all\r\n")
            for fan in fans:
                while fan.owed:
                    fan.hear()
            equal(admin.line(), b"OK")
            wanted = by_server(daemon)
            for fan in fans:
                equal(wanted[fan.post], fan.own, "post %d" % fan.post)
            n_seals = int(admin.stats("cold")["seals"])
        daemon.murder()
        equal(by_directory(place), wanted, "--dump at rest")
    with Daemon(place, *options) as daemon:
        daemon.start()
        equal(by_server(daemon), wanted, "the next start")
        daemon.checkpoint_and_stop()
        equal(by_directory(place, has_log=False), wanted, "--dump of images")
    return sum(len(users) for users in wanted.values()), n_seals


def life(place, fans, source, is_first):
    """Returns (commands said, members, seals)."""
    mode = source.choice(("always", "always", "interval"))
    options = ("--sync=" + mode, "--shards=%d" % place.shards, SMALL_HOT)
    with Daemon(place, *options) as daemon:
        daemon.start()
        admin = daemon.connect()
        if is_first:
            admin.tell(*SCHEMA)
        for fan in fans:
            fan.begin(daemon.connect())
        n_said = play(fans, source, admin)
        n_seals = int(daemon.connect().stats("cold")["seals"])
        daemon.murder()
    by_directory(place)
    n_members, n_more = rest(place, fans, options)
    return n_said, n_members, n_seals + n_more


def lives(count, minutes, seed, tell=lambda text: None):
    """count lives, or, where that is 0, as many as begin in those minutes.
    Returns (lives, commands said, members at the end, seals)."""
    source = random.Random(seed)
    fans = [Fan(number, source) for number in range(likes.FANS)]
    n_lives = n_said = n_seals = n_members = 0
    end = time.monotonic() + minutes * 60
    with Place() as place:
        place.shards = source.choice((1, 4, 16))
        while n_lives < count or (count == 0 and time.monotonic() < end):
            tell("life %d" % (n_lives + 1))
            said, n_members, seals = life(place, fans, source, n_lives == 0)
            n_lives += 1
            n_said += said
            n_seals += seals
    check(n_seals >= n_lives * 2, "%d seals are few" % n_seals)
    return n_lives, n_said, n_members, n_seals
