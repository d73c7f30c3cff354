# SPDX-License-Identifier: BSD-3-Clause
"""Streams for differ.py that random ones would seldom hit on."""

import re
import struct

from differ import BINARY, Cas, Unit
from differ_binary import (
    ADD, APPEND, DECREMENT, DELETE, FLUSH, GAT, GATKQ, GET, GETK, GETKQ, GETQ,
    INCREMENT, INCREMENTQ, NO_CREATE, NOOP, QUIT, REPLACE, SET, SETQ, TOUCH,
    packet,
)

MOST = 2**64 - 1


def lines(*texts):
    """A stream of commands, CRLF added to each; $cas(KEY) stands for the cas
    unique that was last told of KEY."""
    return [line(text) for text in texts]


def line(text):
    if isinstance(text, Unit):
        return text
    pieces = re.split(rb"\$cas\((.*?)\)", text)
    parts = [Cas(piece) if at % 2 else piece
             for at, piece in enumerate(pieces)]
    word = text.split(b" ")
    key = word[1] if len(word) > 1 else b""
    return Unit(*parts, b"\r\n", key=key, alone=True)


def end(data):
    """What the connection does not outlive."""
    return Unit(data, closes=True)


# Minuses, and then a number in the same chunk of memcached's: some stay behind
# it.
MINUSES = b"-" * 30
SOME_MINUSES = lines(b"set a 0 0 30\r\n" + MINUSES, b"delete a",
                     b"set a 0 0 20\r\n%d" % MOST)

TEXT_STREAMS = [
    SOME_MINUSES + lines(b"incr a 5", b"get a", b"incr a 1"),
    SOME_MINUSES + lines(b"decr a 9223372036854775808", b"get a"),
    # numbers
    lines(b"set a 0 0 20\r\n18446744073709551615", b"incr a 1", b"get a",
          b"incr a 5", b"decr a 10", b"get a", b"incr a -1",
          b"incr a 18446744073709551616", b"incr b 1", b"incr", b"incr a"),
    lines(b"set a 0 0 20\r\n18446744073709551616", b"incr a 1",
          b"set a 0 0 3\r\n007", b"incr a 1", b"get a",
          b"set a 7 0 4\r\n 10 ", b"incr a 1", b"get a"),
    lines(b"set a 0 0 2\r\n99", b"incr a 18446744073709551615", b"get a",
          b"set a 4 1000 1\r\n5", b"incr a 1", b"gets a", b"gets a",
          b"incr a 0", b"gets a"),
    # words too many
    lines(b"set a 0 0 1\r\n1", b"delete a 0 0", b"get a",
          b"set a 0 0 1\r\n1", b"delete a 0 0 0", b"get a"),
    # cas
    lines(b"set a 0 0 1\r\n1", b"gets a", b"cas a 1 0 1 $cas(a)\r\n2",
          b"cas a 1 0 1 $cas(a)\r\n3", b"gets a",
          b"cas a 1 0 1 $cas(a) noreply\r\n4", b"gets a",
          b"cas b 0 0 1 5\r\n1", b"delete a", b"cas a 0 0 1 $cas(a)\r\n9"),
    # times
    lines(b"set a 0 -1 1\r\n1", b"get a", b"add a 0 0 1\r\n2", b"touch a -1",
          b"get a", b"set a 0 2592001 1\r\n1", b"get a",
          b"set a 0 2592000 1\r\n1", b"get a", b"gat -1 a", b"get a"),
    # flush
    lines(b"set a 0 0 1\r\n1", b"flush_all", b"get a", b"add a 0 0 1\r\n2",
          b"get a", b"flush_all 1000", b"get a", b"flush_all 0", b"get a",
          b"flush_all noreply", b"flush_all 0 noreply", b"replace a 0 0 1\r\n3",
          b"append a 0 0 1\r\n3", b"incr a 1", b"touch a 0", b"delete a"),
    # flushed at a time that was before the server
    lines(b"set a 0 0 1\r\n1", b"flush_all 2592001", b"get a",
          b"flush_all 1000000000 noreply", b"get a", b"flush_all 2147483647",
          b"get a", b"flush_all 2592000", b"get a", b"flush_all -1",
          b"get a"),
    # appended and prepended, flags and time stay
    lines(b"set a 9 1000 1\r\n1", b"append a 3 -1 2\r\n23",
          b"prepend a 4 -1 1\r\n0", b"gets a", b"append b 0 0 1\r\n1",
          b"append a 0 0 0\r\n", b"gets a"),
    # a value that is too large takes the old one with it
    lines(b"set a 0 0 1\r\n1", b"set a 0 0 1048577\r\n" + b"v" * 1048577,
          b"get a", b"set a 0 0 1\r\n1",
          b"add a 0 0 1048577\r\n" + b"v" * 1048577, b"get a",
          b"set a 0 0 1\r\n1",
          b"replace a 0 0 1048577 noreply\r\n" + b"v" * 1048577, b"get a"),
    # many keys
    lines(b"set a 0 0 1\r\n1", b"set b 5 0 3\r\nxyz",
          b"get " + b" ".join(b"k%d" % n for n in range(600)) + b" a b a",
          b"gets a a a", b"gat 0 a b none a"),
    # what ends a connection
    [end(b"quit\r\n")], [end(b"quit noreply\r\n")],
    [end(b"x" * 9000)], [end(b"GET / HTTP/1.1\r\n")],
    [end(b"POST /set HTTP/1.0\r\n")],
    # administration
    lines(b"shutdown", b"slabs", b"slabs reassign", b"slabs automove",
          b"verbosity 0", b"verbosity 0 noreply", b"lru", b"lru nothing",
          b"lru tune", b"lru mode nothing", b"lru_crawler",
          b"lru_crawler nothing", b"cache_memlimit", b"cache_memlimit 1",
          b"cache_memlimit 5000000", b"stats reset",
          b"stats detail on", b"set p:a 0 0 1\r\n1", b"get p:a p:b q:x",
          b"delete p:a", b"stats detail dump", b"stats detail off",
          b"stats detail", b"stats detail x", b"stats sizes",
          b"stats nothing"),
]

META_STREAMS = [
    SOME_MINUSES + lines(b"ma a D5 v", b"mg a v"),
    SOME_MINUSES + lines(b"ma a MD v", b"mg a v"),
    lines(b"ms a 1 T1000\r\n1", b"mg a s v t f c h k Oop", b"mg a h",
          b"mg a l", b"me a", b"md a q", b"md a q", b"md a", b"mg a q",
          b"mg a q v", b"mg a k O1", b"mn"),
    # stale, and who may recache
    lines(b"ms a 1 T1000 c\r\n1", b"md a I T500", b"mg a t v c", b"mg a v",
          b"ms a 1 I C1 T100 c\r\n2", b"mg a v t", b"mg a v",
          b"ms a 1\r\n3", b"mg a v"),
    lines(b"mg a N1000 v t c", b"mg a N1000 v t", b"ms a 2 C$cas(a)\r\n10",
          b"mg a v", b"mg a R500 v", b"mg a R2000 v", b"mg a R2000 v",
          b"get a"),
    lines(b"ms a 1 c\r\n1", b"ms a 1 C$cas(a) c\r\n2", b"ms a 1 C1\r\n3",
          b"ms a 1 C$cas(a) q\r\n4", b"mg a v c", b"md a C1",
          b"md a C$cas(a) q", b"mg a"),
    lines(b"mg", b"mg ", b"ms", b"ms a", b"md", b"ma", b"me", b"mx a",
          b"mg a !", b"mg " + b"K" * 251, b"mg " + b"K" * 250 + b" k",
          b"ms a 1 Tx\r\n1", b"mg a Tx", b"mg a P1 Lpath/ v", b"mn a b"),
]

# What older ones do not know, or do otherwise.
NEWER_META_STREAMS = [
    lines(b"ms a 1 ME\r\n1", b"ms a 1 ME\r\n2", b"ms a 1 MA s\r\n3",
          b"ms a 1 MP c\r\n0", b"mg a v s", b"ms b 1 MR\r\n1",
          b"ms b 1 MA\r\n1", b"ms b 1 MA N1000\r\n1", b"mg b v t",
          b"ms b 1 MX\r\n1", b"ms b 1 MS S\r\n1", b"ms b 1 F7\r\n1",
          b"mg b f v"),
    lines(b"ma a", b"ma a q", b"ma a N0 J5 v", b"ma a D3 v t c",
          b"ma a MD D100 v", b"ma a M- D1 v", b"ma a M+ v k Oq",
          b"ma a Mincr v", b"ma a MX", b"ma a D-1", b"ma a Jx",
          b"ma a N1000 q v", b"ma a T500 t", b"ma a q", b"ma a C1",
          b"ma a q C1", b"ms a 1\r\nx", b"ma a"),
    lines(b"ms Zm9v 3 b\r\nbar", b"mg Zm9v b k v", b"mg foo k v", b"me foo",
          b"mg foo b", b"mg !!!! b", b"md Zm9v b k", b"ms AP8= 1 b c\r\n1",
          b"mg AP8= b k v", b"md AP8= b"),
    lines(b"md a x", b"ms a 5 F9 T1000\r\nhello", b"md a x", b"mg a v f t",
          b"md a I x T500", b"mg a v f t", b"md a"),
    lines(b"mg", b"mg ", b"ms", b"ms a", b"ms a S1", b"ms a -1", b"md", b"ma",
          b"me", b"mx a", b"mg a v v", b"mg a !", b"mg a O" + b"o" * 33,
          b"ms a 1 O" + b"o" * 40 + b"\r\n1", b"mg a " + b"v " * 40,
          b"mg " + b"K" * 251, b"mg " + b"K" * 250 + b" k",
          b"ms a 1 Fx\r\n1", b"ms a 1 Tx\r\n1", b"mg a Tx", b"ma a Dx",
          b"mg a P1 Lpath/ v", b"mn a b"),
]


def shaped(opcode, key=b"", extras=b"", value=b"", cas=None, **wrong):
    parts = packet(opcode, key, extras, value,
                   cas or b"\0" * 8, 0x01020304, **wrong)
    return Unit(*parts, key=key, family=BINARY, alone=True,
                closes=opcode == QUIT)


def stored(flags=0, exptime=0):
    return struct.pack(">II", flags, exptime)


def counted(delta, initial, exptime):
    return struct.pack(">QQI", delta, initial, exptime)


def same_cas(key):
    return Cas(key, packed=True)


def numbered(opcode, delta):
    """That opcode behind some minuses."""
    return [shaped(SET, b"a", stored(), MINUSES), shaped(DELETE, b"a"),
            shaped(SET, b"a", stored(), b"%d" % MOST),
            shaped(opcode, b"a", counted(delta, 0, 0)), shaped(GET, b"a")]


BINARY_STREAMS = [
    [unit for exptime in (2592001, 10**9, 2**31 - 1, 2**32 - 1, 2592000, 0)
     for unit in (shaped(SET, b"a", stored(), b"1"),
                  shaped(FLUSH, b"", struct.pack(">I", exptime)),
                  shaped(GET, b"a"))],
    numbered(INCREMENT, 5), numbered(DECREMENT, 5), numbered(INCREMENTQ, 5),
    [shaped(SET, b"a", stored(5), b"1"), shaped(GET, b"a"),
     shaped(GETK, b"a"), shaped(GETQ, b"b"), shaped(GETKQ, b"b"),
     shaped(GETK, b"b"), shaped(ADD, b"a", stored(), b"2"),
     shaped(REPLACE, b"b", stored(), b"2"), shaped(APPEND, b"a", b"", b"2"),
     shaped(APPEND, b"b", b"", b"2"), shaped(GET, b"a"),
     shaped(DELETE, b"a"), shaped(DELETE, b"a")],
    [shaped(SET, b"a", stored(), b"1"), shaped(GET, b"a"),
     shaped(SET, b"a", stored(), b"2", same_cas(b"a")),
     shaped(SET, b"a", stored(), b"3", b"\0" * 7 + b"\1"),
     shaped(DELETE, b"a", b"", b"", b"\0" * 7 + b"\1"),
     shaped(SETQ, b"a", stored(), b"4", same_cas(b"a")),
     shaped(DELETE, b"a", b"", b"", same_cas(b"a"))],
    [shaped(INCREMENT, b"a", counted(1, 5, NO_CREATE)),
     shaped(INCREMENT, b"a", counted(1, 5, 0)),
     shaped(INCREMENT, b"a", counted(MOST, 0, NO_CREATE)),
     shaped(INCREMENTQ, b"a", counted(1, 0, 0)), shaped(GET, b"a"),
     shaped(DECREMENT, b"a", counted(100, 0, 0)),
     shaped(SET, b"b", stored(), b"x"),
     shaped(INCREMENT, b"b", counted(1, 0, 0)),
     shaped(DECREMENT, b"c", counted(1, 1000, 1000)), shaped(GET, b"c")],
    [shaped(TOUCH, b"a", struct.pack(">I", 0)),
     shaped(SET, b"a", stored(5), b"1"),
     shaped(TOUCH, b"a", struct.pack(">I", 1000)),
     shaped(GAT, b"a", struct.pack(">I", 1000)),
     shaped(GATKQ, b"a", struct.pack(">I", 0)),
     shaped(GATKQ, b"b", struct.pack(">I", 0))],
    [shaped(SET, b"a", stored(), b"1"), shaped(FLUSH), shaped(GET, b"a"),
     shaped(FLUSH, b"", struct.pack(">I", 1000)), shaped(NOOP),
     shaped(SET, b"a", stored(), b"1"),
     shaped(SET, b"a", stored(), b"v" * 1048577), shaped(GET, b"a")],
    [shaped(QUIT)],
]

NEWER_STREAMS = {"text": [], "meta": NEWER_META_STREAMS, "binary": []}
STREAMS = {"text": TEXT_STREAMS, "meta": META_STREAMS,
           "binary": BINARY_STREAMS}


def streams(name, newer):
    """The streams of a family: lists of units. newer as in TextMaker."""
    return STREAMS[name] + (NEWER_STREAMS[name] if newer else [])
