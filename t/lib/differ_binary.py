# SPDX-License-Identifier: BSD-3-Clause
"""The binary protocol for differ.py: how replies are read, and random
commands."""

import struct

import differ
from differ import BINARY, Cas, Unit
from differ_text import DELTAS, LONG_KEY, NUMBER_MAX, VALUES

HEADER = struct.Struct(">BBHBBHIIQ")
REQUEST, REPLY = 0x80, 0x81

(GET, SET, ADD, REPLACE, DELETE, INCREMENT, DECREMENT, QUIT, FLUSH, GETQ, NOOP,
 VERSION, GETK, GETKQ, APPEND, PREPEND, STAT, SETQ, ADDQ, REPLACEQ, DELETEQ,
 INCREMENTQ, DECREMENTQ, QUITQ, FLUSHQ, APPENDQ, PREPENDQ, VERBOSITY, TOUCH,
 GAT, GATQ) = range(0x1F)
SASL_LIST, SASL_AUTH, SASL_STEP, GATK, GATKQ = range(0x20, 0x25)

# The opaque of the question behind each unit; no unit has it.
ANSWER = 0xFEDCBA98
NO_CREATE = 0xFFFFFFFF


def packet(opcode, key=b"", extras=b"", value=b"", cas=b"\0" * 8, opaque=0,
           **wrong):
    """The parts of a request. wrong: fields of the header that are not what
    they should be."""
    size = len(extras) + len(key) + len(value)
    head = HEADER.pack(
        wrong.get("magic", REQUEST), opcode, wrong.get("key_len", len(key)),
        wrong.get("extras_len", len(extras)), wrong.get("data_type", 0),
        wrong.get("vbucket", 0), wrong.get("body_len", size), opaque, 0,
    )
    return [head[:16], cas, extras + key + value]


class Line(differ.Line):
    """Binary commands; the known question is a no-op."""

    def ask(self):
        return b"".join(packet(NOOP, opaque=ANSWER))

    def find_answer(self, data):
        at = 0
        while len(data) - at >= HEADER.size:
            head = HEADER.unpack_from(data, at)
            end = at + HEADER.size + head[6]
            if head[0] != REPLY:
                return None
            if head[7] == ANSWER and head[1] == NOOP:
                return at, end
            at = end
        return None

    def parse(self, data, unit, face):
        return list(parse(data, unit.key, face))


def parse(data, key, face):
    """Yields the parts of a reply."""
    while data:
        if len(data) < HEADER.size:
            yield ("no header", data)
            return
        (magic, opcode, key_len, extras_len, data_type, status, body_len,
         opaque, cas) = HEADER.unpack_from(data)
        body = data[HEADER.size : HEADER.size + body_len]
        data = data[HEADER.size + body_len :]
        value = body[extras_len + key_len :]
        if opcode == VERSION and status == 0:
            value = b"the version"
        yield (
            "packet", magic, "opcode %#x" % opcode, "status %#x" % status,
            key_len, extras_len, data_type, body_len if opcode != VERSION
            else 0, opaque, "cas " + face.cas_name(key, cas),
            body[:extras_len], body[extras_len : extras_len + key_len], value,
            "whole" if len(body) == body_len else "cut off",
        )


KEYS = [b"a", b"b", b"c", b"dd", b"with space", b"\0\r\n\xff", LONG_KEY]
FLAG_NUMBERS = [0, 0, 0, 1, 5, 0xDEADBEEF, 0xFFFFFFFF]
EXPTIME_NUMBERS = [0, 0, 0, 1000, 2592000, 2592001, 2147483647, 0xFFFFFFFE]
DELTA_NUMBERS = [int(delta) for delta in DELTAS]
OPAQUES = [0, 1, 0x01020304, 0xFFFFFFFF]


class Maker:
    """Random binary commands; as differ_text.TextMaker."""

    def __init__(self, source, newer=True, often=0.08):
        self.random = source
        self.newer = newer
        self.often = often

    def units(self, count):
        made = []
        while len(made) < count:
            made += self.some()
        return made[:count]

    def is_bad(self):
        return self.random.random() < self.often

    def some(self):
        make = self.random.choices(
            (self.store, self.join, self.get, self.touch, self.arith,
             self.delete, self.plain, self.wrong, self.large),
            (24, 8, 24, 9, 18, 7, 3, 7, 1),
        )[0]
        return make()

    def cas(self, key):
        kind = self.random.random()
        if kind < 0.7:
            return b"\0" * 8
        return Cas(key, 0 if kind < 0.9 else
                   self.random.choice((-1, 10**6)), packed=True)

    def unit(self, opcode, key=b"", extras=b"", value=b"", cas=None,
             **more):
        wrong = more.pop("wrong", {})
        parts = packet(opcode, key, extras, value,
                       self.cas(key) if cas is None else cas,
                       self.random.choice(OPAQUES), **wrong)
        return Unit(*parts, key=key, family=BINARY, **more)

    def key(self):
        return self.random.choice(KEYS)

    def store(self):
        opcode = self.random.choice(
            (SET, SET, SET, ADD, REPLACE, SETQ, ADDQ, REPLACEQ))
        extras = struct.pack(">II", self.random.choice(FLAG_NUMBERS),
                             self.random.choice(EXPTIME_NUMBERS))
        return [self.unit(opcode, self.key(), extras,
                          self.random.choice(VALUES))]

    def join(self):
        opcode = self.random.choice((APPEND, PREPEND, APPENDQ, PREPENDQ))
        return [self.unit(opcode, self.key(), b"",
                          self.random.choice(VALUES))]

    def get(self):
        opcode = self.random.choice((GET, GETQ, GETK, GETKQ))
        return [self.unit(opcode, self.key())]

    def touch(self):
        opcode = self.random.choice((TOUCH, GAT, GATQ, GATK, GATKQ))
        extras = struct.pack(">I", self.random.choice(EXPTIME_NUMBERS))
        return [self.unit(opcode, self.key(), extras)]

    def arith(self):
        opcode = self.random.choice((INCREMENT, INCREMENT, DECREMENT,
                                     INCREMENTQ, DECREMENTQ))
        key = self.key()
        exptime = self.random.choice(EXPTIME_NUMBERS + [NO_CREATE] * 4)
        extras = struct.pack(
            ">QQI", self.random.choice(DELTA_NUMBERS),
            self.random.choice(DELTA_NUMBERS + [0, NUMBER_MAX]), exptime)
        return [self.unit(opcode, key, extras, alone=True), self.look(key)]

    def look(self, key):
        """Behind arithmetic: memcached may pad a number with spaces, which is
        to be mended at once."""
        return self.unit(GET, key, cas=b"\0" * 8, alone=True)

    def delete(self):
        return [self.unit(self.random.choice((DELETE, DELETEQ)), self.key())]

    def plain(self):
        opcode = self.random.choice((NOOP, VERSION, FLUSH, FLUSHQ, FLUSH))
        extras = b""
        if opcode in (FLUSH, FLUSHQ):
            delays = (0, 1000) if self.newer else (0,)
            extras = self.random.choice(
                [b"", b""] + [struct.pack(">I", n) for n in delays])
        return [self.unit(opcode, b"", extras, cas=b"\0" * 8)]

    def large(self):
        """Around the limit: 1 MiB for key, value and 59 bytes."""
        key = self.key()
        size = 2**20 - 59 - len(key) + self.random.choice((-1, 0, 1, 90))
        opcode = self.random.choice((SET, SETQ, APPEND))
        extras = b"" if opcode == APPEND else struct.pack(">II", 0, 0)
        return [
            self.unit(opcode, key, extras, b"v" * size, cas=b"\0" * 8,
                      alone=True),
            self.unit(GET, key, cas=b"\0" * 8, alone=True),
            self.unit(DELETE, key, cas=b"\0" * 8, alone=True),
        ]

    def wrong(self):
        """What no client should send: lengths that do not fit the opcode
        or each other, unknown opcodes, other magic. What closes the
        connection is followed by nothing."""
        make = self.random.choice(
            (self.wrong_shape, self.wrong_shape, self.wrong_opcode,
             self.wrong_lengths, self.ending))
        return make()

    def wrong_shape(self):
        """Each part there or not, whatever the opcode wants; so some are
        right."""
        opcode = self.random.choice(
            [GET, GETK, GETQ, SET, ADD, SETQ, APPEND, DELETE, INCREMENT,
             DECREMENTQ, TOUCH, GAT, GATKQ, FLUSH, NOOP, VERSION])
        key = self.random.choice((b"", b"a", b"b"))
        extras = b"\0" * self.random.choice((0, 4, 8, 12, 20, 24))
        value = self.random.choice((b"", b"", b"zz"))
        if opcode in (GETQ, TOUCH, GAT, GATKQ):
            value = b""  # memcached closes, with the reply or without it
        made = [self.unit(opcode, key, extras, value, cas=b"\0" * 8,
                          alone=True)]
        if opcode in (INCREMENT, DECREMENTQ) and key:
            made.append(self.look(key))
        return made

    def wrong_opcode(self):
        opcode = self.random.choice(
            (VERBOSITY, SASL_LIST, SASL_AUTH, SASL_STEP, 0x1F, 0x25, 0x30,
             0x3C, 0x50, 0x7F, 0x80, 0xFF))
        # No key and no extras: memcached would skip their length twice.
        return [self.unit(opcode, value=self.random.choice((b"", b"zz")),
                          cas=b"\0" * 8, alone=True)]

    def wrong_lengths(self):
        """A header whose lengths contradict each other, and as many bytes
        as it has at most."""
        wrong = self.random.choice((
            {"key_len": 251, "body_len": 251},
            {"key_len": 5, "body_len": 2},
            {"extras_len": 20, "body_len": 4},
            {"key_len": 2000, "body_len": 2000},
            {"magic": 0x81}, {"magic": 0x00},
            {"data_type": 1}, {"vbucket": 7},
        ))
        opcode = self.random.choice((GET, SET, DELETE, INCREMENT))
        # The first byte of all settles the protocol: a good command first.
        parts = packet(NOOP) + packet(opcode, **wrong)
        parts.append(b"K" * max(wrong.get("body_len", 0), wrong.get(
            "key_len", 0) + wrong.get("extras_len", 0)))
        closes = "data_type" not in wrong and "vbucket" not in wrong
        return [Unit(*parts, family=BINARY, alone=True, closes=closes)]

    def ending(self):
        opcode = self.random.choice((QUIT, QUIT, QUITQ))
        return [self.unit(opcode, cas=b"\0" * 8, closes=True)]


def clean():
    """Units after which both servers hold none of the keys."""
    units = [Unit(*packet(FLUSH), family=BINARY)]
    units += [Unit(*packet(DELETE, key), family=BINARY) for key in KEYS]
    fill = packet(SET, b"a", b"\0" * 8, b"1") * 60 + packet(DELETE, b"a")
    return units + [Unit(*fill, family=BINARY)]
