# SPDX-License-Identifier: BSD-3-Clause
"""Text and meta for differ.py: how replies are read, and random commands."""

import differ
from differ import Cas, Near, Unit

CRLF = b"\r\n"
NUMBER_MAX = 2**64 - 1


class Line(differ.Line):
    """Text and meta commands; the known question is version."""

    def __init__(self, running):
        super().__init__(running)
        self.connection.send(b"version\r\n")
        self.answer = self.connection.line() + CRLF

    def ask(self):
        return b"version\r\n"

    def find_answer(self, data):
        at = data.find(self.answer)
        return None if at < 0 else (at, at + len(self.answer))

    def parse(self, data, unit, face):
        parts = list(parse(data, unit.key, face))
        if all(part[0] == "PREFIX" for part in parts[:-1]):
            parts[:-1] = sorted(parts[:-1])  # in the order of a hash
        return parts


def parse(data, key, face):
    """Yields the parts of a reply."""
    while data:
        line, newline, data = data.partition(CRLF)
        word = line.split(b" ")
        size = None
        if not newline:
            yield ("no end of line", line)
        elif word[0] == b"VALUE" and len(word) in (4, 5) and is_number(word[3]):
            size = int(word[3])
            part = ("VALUE", word[1], word[2], size)
            if len(word) == 5:
                part += (face.cas_name(word[1], int(word[4])),)
            yield part
        elif word[0] == b"VA" and len(word) > 1 and is_number(word[1]):
            size = int(word[1])
            yield ("VA", size) + meta_flags(word[2:], key, face)
        elif word[0] == b"HD":
            yield ("HD",) + meta_flags(word[1:], key, face)
        elif word[0] == b"ME" and len(word) > 2:
            yield ("ME", word[1]) + debug_words(word[2:], key, face)
        elif word[0] == b"PREFIX":
            yield ("PREFIX", line)
        else:
            yield ("line", line)
        if size is not None:
            yield ("data", data[:size], data[size : size + 2])
            data = data[size + 2 :]


def is_number(word):
    return word.isdigit() and len(word) < 10


def meta_flags(words, key, face):
    return tuple(meta_flag(word, key, face) for word in words)


def meta_flag(word, key, face):
    token = word[1:]
    if word[:1] == b"c" and token.isdigit():
        return "c " + face.cas_name(key, int(token))
    if word[:1] in (b"t", b"l") and token.lstrip(b"-").isdigit():
        seconds = int(token)
        # memcached's ma lets what has expired go below zero, and wrap.
        return (word[:1], Near(0 if seconds >= 2**31 else seconds))
    return word


def debug_words(words, key, face):
    """The words of me. The class is one of memcached's slabs, and its
    number hangs on what they were made for."""
    parts = []
    for word in words:
        name, _, value = word.partition(b"=")
        if name == b"cas" and value.isdigit():
            value = face.cas_name(key, int(value))
        elif name in (b"exp", b"la") and value.lstrip(b"-").isdigit():
            value = Near(int(value))
        elif name == b"cls" and value.isdigit():
            value = "a class"
        parts.append((name, value))
    return tuple(parts)


# Few keys, so that commands meet each other's items; the last has the
# greatest length. None looks like a cell.
LONG_KEY = b"K" * 250
KEYS = [b"a", b"b", b"c", b"dd", b"key:e", b"\xc3\xa9", LONG_KEY]
BAD_KEY = b"K" * 251

NUMBERS = [b"0", b"1", b"5", b"9", b"10", b"99", b"100", b"4294967295",
           b"9223372036854775807", b"9223372036854775808",
           b"18446744073709551614", b"18446744073709551615"]
VALUES = NUMBERS + [
    b"", b"abc", b"007", b" 10", b"10 ", b"+5", b"-5", b"1.5", b"0x10",
    b"18446744073709551616", b"99999999999999999999999", b"1\r\n2",
    b"END\r\nget b\r\n", b"x" * 300, b"\0\xff\0", b"1\0", b"y" * 1500,
]
DELTAS = [b"1", b"1", b"1", b"5", b"100"] + NUMBERS
BAD_DELTAS = [b"-1", b"x", b"1x", b"18446744073709551616", b"1.5", b"+3",
              b"0x10", b"99999999999999999999999"]
FLAGS = [b"0", b"0", b"0", b"1", b"5", b"65536", b"4294967295"]
BAD_FLAGS = [b"-1", b"4294967296", b"x", b"1x", b"+1",
             b"18446744073709551616"]
# Not short ones: nothing may expire while it is compared.
EXPTIMES = [b"0", b"0", b"0", b"0", b"1000", b"2592000", b"2147483647", b"-1",
            b"2592001", b"-1000"]
BAD_EXPTIMES = [b"x", b"1x", b"2147483648", b"99999999999", b"-99999999999",
                b"1.5", b"+1000", b"-2147483649"]
BAD_SIZES = [b"-1", b"x", b"1x", b"2147483647", b"2147483646", b"+3",
             b"-2147483648"]
# Older ones cut these to 32 bits, and wait for so many bytes.
WIDE_SIZES = [b"4294967296", b"99999999999", b"-0"]


class TextMaker:
    """Random text commands. often: how often something is wrong, 0..1.
    newer: beside 1.6.45, not an older memcached; else some things are not
    sent, since what they leave behind differs."""

    def __init__(self, source, newer=True, often=0.15):
        self.random = source
        self.newer = newer
        self.often = often
        self.picked_bad = False

    def is_bad(self):
        return self.random.random() < self.often

    def one(self, good, bad=()):
        """One of good, now and then one of bad; the command is then sent
        alone, since versions differ."""
        if bad and self.is_bad():
            self.picked_bad = True
            return self.random.choice(bad)
        return self.random.choice(good)

    def key(self):
        return self.random.choice(KEYS)

    def noreply(self):
        """Now and then noreply, but where an error is to be seen."""
        if self.picked_bad or self.random.random() >= 0.15:
            return b""
        return b" noreply"

    def units(self, count):
        made = []
        while len(made) < count:
            made += self.some()
        return made[:count]

    def some(self):
        make = self.random.choices(
            (self.storage, self.retrieval, self.arith, self.delete,
             self.touch, self.cas, self.wrong, self.flush, self.large),
            (30, 25, 16, 7, 6, 12, 6, 1, 1),
        )[0]
        return make()

    def line(self, *words, key=b"", **more):
        end = b"\n" if self.random.random() < 0.03 else CRLF
        line = []
        for word in words:
            if word != b"" and not isinstance(word, Cas):
                gap = b"  " if self.random.random() < 0.02 else b" "
                line += [gap, word] if line else [word]
            elif isinstance(word, Cas):
                line += [b" ", word]
        more["alone"] = more.get("alone", False) or self.picked_bad
        self.picked_bad = False
        return Unit(*line, end, key=key, **more)

    def value(self):
        return self.random.choice(VALUES)

    def storage(self):
        verb = self.random.choice(
            (b"set", b"set", b"set", b"add", b"replace", b"append",
             b"prepend"))
        return self.store(verb)

    def cas(self):
        """A gets first, so that a right unique is there to be sent."""
        key = self.key()
        right = self.random.random() < 0.6
        look = self.line(b"gets", key, key=key)
        delta = 0 if right else self.random.choice((-1, 10**6))
        return [look] + self.store(b"cas", key, Cas(key, delta))

    def store(self, verb, key=None, unique=None):
        key = key or self.key()
        value = self.value()
        line = [verb, key, self.one(FLAGS), self.one(EXPTIMES),
                b"%d" % len(value)]
        if unique:
            line.append(unique)
        line.append(self.noreply().strip())
        head = self.line(*line, key=key)
        parts = head.parts + (value, CRLF)
        return [Unit(*parts, key=key)]

    def retrieval(self):
        verb = self.random.choice((b"get", b"get", b"gets", b"gat", b"gats"))
        words = [verb]
        if verb.startswith(b"gat"):
            words.append(self.one(EXPTIMES, BAD_EXPTIMES))
        count = self.random.choice((1, 1, 1, 2, 3, 8))
        words += [self.key() for _ in range(count)]
        return [self.line(*words)]

    def arith(self):
        verb = self.random.choice((b"incr", b"incr", b"decr"))
        key = self.key()
        unit = self.line(verb, key, self.one(DELTAS, BAD_DELTAS),
                         self.noreply().strip(), key=key, alone=True)
        # memcached pads with spaces: looked at, and mended, at once.
        return [unit, Unit(b"get ", key, CRLF, key=key, alone=True)]

    def delete(self):
        return [self.line(b"delete", self.key(),
                          b"0" if self.random.random() < 0.2 else b"",
                          self.noreply().strip())]

    def touch(self):
        return [self.line(b"touch", self.key(),
                          self.one(EXPTIMES, BAD_EXPTIMES),
                          self.noreply().strip())]

    def flush(self):
        """Older ones bring items back that were flushed, by a later flush
        with a delay."""
        delays = [b"", b"", b"0"] + [b"1000"] * self.newer
        return [self.line(b"flush_all", self.one(delays, [b"x"]),
                          self.noreply().strip())]

    def large(self):
        """Around the limit: 1 MiB for key, value and 59 bytes, or 63 with
        flags."""
        key = self.key()
        flags = self.random.choice((0, 5))
        size = 2**20 - (63 if flags else 59) - len(key)
        size += self.random.choice((-1, 0, 1, 90))
        value = b"v" * size
        verb = self.random.choice((b"set", b"set", b"append"))
        return [
            Unit(b"%s %s %d 0 %d\r\n%s\r\n" % (verb, key, flags, size, value),
                 key=key, alone=True),
            Unit(b"get %s\r\n" % key, alone=True),
            Unit(b"delete %s\r\n" % key, alone=True),
        ]

    def wrong(self):
        """What no client should send."""
        make = self.random.choice(
            (self.wrong_words, self.wrong_store, self.wrong_chunk,
             self.wrong_key, self.wrong_verb))
        return [make()]

    def wrong_words(self):
        verb = self.random.choice(
            (b"get", b"gets", b"gat", b"gats", b"incr", b"decr", b"delete",
             b"touch", b"cas", b"set", b"verbosity"))
        words = [self.random.choice(
            (self.key(), b"1", b"0", b"x")) for _ in range(
                self.random.randint(0, 2))]
        if verb == b"set" or verb == b"cas":
            words = words[:2]
        return self.line(verb, *words, alone=True)

    def wrong_store(self):
        """A line that is refused, and a block that is no command."""
        key = self.key()
        value = b"zzz"
        words = [b"set", key, b"0", b"0", b"3"]
        place, bad = self.random.choice(
            ((2, BAD_FLAGS), (3, BAD_EXPTIMES),
             (4, BAD_SIZES + WIDE_SIZES * self.newer)))
        words[place] = self.random.choice(bad)
        return Unit(b" ".join(words), CRLF, value, CRLF, key=key, alone=True)

    def wrong_chunk(self):
        """A block longer or shorter than said. A shorter one takes part of
        the next line, too, which is then no command."""
        key = self.key()
        size = self.random.choice((0, 1, 2, 4, 5))
        value = self.random.choice((b"zzz", b"zzzzzz", b"zzzzzzzzz"))
        if size > len(value):
            value += CRLF + b"nothing"
        return Unit(b"set %s 0 0 %d\r\n%s\r\n" % (key, size, value),
                    key=key, alone=True)

    def wrong_key(self):
        verb = self.random.choice(
            (b"get %s", b"gets %s", b"get a %s b", b"gat 0 %s", b"incr %s 1",
             b"delete %s", b"touch %s 0", b"set %s 0 0 3\r\nzzz",
             b"append %s 0 0 3\r\nzzz", b"cas %s 0 0 3 1\r\nzzz"))
        return Unit(verb % BAD_KEY, CRLF, alone=True)

    def wrong_verb(self):
        return Unit(self.random.choice(
            (b"nothing", b"GET a", b"Get a", b"getx a", b"sets a 0 0 1",
             b"", b" ", b" get a", b"g", b"ge", b"mx a", b"m", b"incrr a 1",
             b"flush", b"flush_all 0 0 0", b"verbosity 0", b"verbosity x",
             b"verbosity 0 noreply", b"verbosity 0 0 noreply", b"versions",
             b"shutdown", b"touch a", b"get a noreply", b"gets",
             b"incr a", b"incr", b"decr a", b"delete", b"delete a 0 noreply",
             b"delete a b", b"delete a 10", b"delete a 0 0",
             b"cas a 0 0 1\r\nz", b"gat", b"gat 0", b"gat 0 ",
             b"gats 0", b"get ", b"get  a", b"noreply")),
            CRLF, alone=True, key=b"a")


META_KEYS = KEYS[:4]
BASE64_KEYS = [b"YQ==", b"Zm9v", b"AP8A", b"YWJj"]
BAD_BASE64_KEYS = [b"YQ=", b"!!!!", b"Y", b"Z m9v", b"====", b"abcd="]
# Not longer ones: memcached finds that out when the item has been looked at.
OPAQUES = [b"O1", b"Oopaque", b"O", b"O" + b"o" * 31]
TTLS = [b"0", b"1000", b"-1", b"2592000", b"500"]
# What R compares the time left with: far from each of these, so that it does
# not matter when the servers' seconds tick.
RECACHES = [b"0", b"700", b"-1", b"2000000", b"200"]
BAD_TTLS = [b"", b"x", b"1x", b"99999999999"]
# Above every unique that a server gives by itself.
SET_CAS = [b"1000000000000000", b"1000000000000001", b"2000000000000000",
           b"18446744073709551615"]
BAD_CAS = [b"", b"x", b"-1", b"18446744073709551616"]


class MetaMaker(TextMaker):
    """Random meta commands, among text ones on the same keys."""

    def is_bad(self):
        """Older ones take other things for errors, and in another order."""
        return self.newer and super().is_bad()

    def some(self):
        make = self.random.choices(
            (self.mg, self.ms, self.md, self.ma, self.me, self.mn,
             self.storage, self.retrieval, self.arith, self.touch,
             self.wrong_meta),
            (30, 25, 10, 20, 4, 2, 3, 3, 2, 1, 6),
        )[0]
        return make()

    def meta_key(self, flags):
        """A key, in base64 where the flags then say so."""
        if self.random.random() < 0.12:
            flags.append(b"b")
            return self.one(BASE64_KEYS, BAD_BASE64_KEYS)
        return self.random.choice(META_KEYS)

    def flag(self, letter, key):
        """One flag with a token, mostly a good one."""
        if letter in "NTR":
            return letter.encode() + self.one(
                RECACHES if letter == "R" else TTLS, BAD_TTLS)
        if letter == "O":
            return self.random.choice(OPAQUES)
        if letter == "C":
            if self.is_bad():
                return b"C" + self.random.choice(BAD_CAS)
            return Cas(key, self.random.choice((0, 0, 0, -1, 10**6)))
        if letter == "E":
            return b"E" + self.one(SET_CAS, BAD_CAS)
        if letter in "JD":
            return letter.encode() + self.one(DELTAS, BAD_DELTAS)
        if letter == "F":
            return b"F" + self.one(FLAGS, BAD_FLAGS)
        if letter in "PL":
            return letter.encode() + b"hint:1"
        return letter.encode()

    def flags(self, letters, newer, key, most):
        """Some flags; those of newer are unknown to older ones, or mean
        something else there."""
        letters += newer if self.newer else ""
        count = self.random.randint(0, most)
        picked = self.random.sample(letters, min(count, len(letters)))
        flags = [self.flag(letter, key) for letter in picked]
        if self.is_bad():
            flags.append(self.random.choice(
                (b"v", b"v", b"k", b"!", b"\x80", b"Z", b"y", b"C", b"E",
                 b"F", b"M", b"N", b"T", b"J", b"D", b"S1", b"0", b"S")))
        return flags

    def meta(self, verb, key, flags, block=b"", size=None):
        """Flags are shuffled: replies keep their order."""
        self.random.shuffle(flags)
        parts = [verb, b" ", key]
        if size is not None:
            parts += [b" ", size]
        for flag in flags:
            parts += [b" ", flag] if isinstance(flag, bytes) \
                else [b" C", flag]
        return Unit(*parts, CRLF, block, key=key, alone=verb in (b"ma", b"me"))

    def mg(self):
        extra = []
        key = self.meta_key(extra)
        flags = self.flags("cfhklOqstuvNRTPL", "EC", key, 7) + extra
        if self.random.random() < 0.5 and b"v" not in flags:
            flags.append(b"v")
        if self.random.random() < 0.5 and b"c" not in flags:
            flags.append(b"c")
        return [self.meta(b"mg", key, flags)]

    def ms(self):
        extra = []
        key = self.meta_key(extra)
        flags = self.flags("cCFkOqTPL", "EIsN", key, 5) + extra
        if self.random.random() < 0.4:
            flags.append(b"M" + self.one(
                [b"E", b"A", b"P", b"R", b"S", b"e", b"a", b"p", b"r", b"s"],
                [b"", b"X", b"SET", b"1"]))
        value = self.value()
        size = b"%d" % len(value)
        if self.is_bad() and self.is_bad():
            size = self.random.choice(BAD_SIZES + WIDE_SIZES)
            value = b"zzz"
        unit = self.meta(b"ms", key, flags, value + CRLF, size)
        unit.alone = value == b"zzz"
        return [unit]

    def md(self):
        extra = []
        key = self.meta_key(extra)
        return [self.meta(b"md", key, self.flags("CkOqTPL", "EIx", key, 4)
                          + extra)]

    def ma(self):
        extra = []
        key = self.meta_key(extra)
        # Not T and E: memcached forgets them where a number gets longer.
        flags = self.flags("CJDOtcvkPL", "Nq", key, 6) + extra
        if self.random.random() < 0.4:
            flags.append(b"M" + self.one(
                [b"I", b"+", b"D", b"-", b"incr", b"decr", b"i", b"d"],
                [b"", b"X"]))
        look = b" b" if extra else b""
        return [self.meta(b"ma", key, flags),
                Unit(b"mg ", key, look, b" v u\r\n", key=key, alone=True)]

    def me(self):
        extra = []
        key = self.meta_key(extra)
        return [self.meta(b"me", key, extra)]

    def mn(self):
        return [Unit(b"mn" + self.random.choice((b"", b"", b" x")), CRLF)]

    def wrong_meta(self):
        verb = self.random.choice((b"mg", b"md", b"ma", b"me", b"ms"))
        kind = self.random.choice(
            ("", " ", " " + "K" * 251, " " + "K" * 251 + " v",
             " a b c", " a v v", " a 1 1", " a " + "v " * 30))
        if verb == b"ms":
            kind = self.random.choice(
                ["", " a", " a S1", " a x", " a -1", " a 1x"]
                + [" a 4294967296"] * self.newer)
        return [Unit(verb, kind.encode(), CRLF, key=b"a", alone=True)]


def clean():
    """Units after which both servers hold none of the keys."""
    units = [Unit(b"flush_all\r\n")]
    units += [Unit(b"delete %s\r\n" % key) for key in KEYS]
    units += [Unit(b"md %s b\r\n" % key) for key in BASE64_KEYS]
    # Uniques begin above the small numbers that units may name themselves.
    units += [Unit(b"set a 0 0 1\r\n1\r\n" * 60 + b"delete a\r\n")]
    return units
