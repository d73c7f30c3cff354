# SPDX-License-Identifier: BSD-3-Clause
"""Packets of the binary protocol."""

import struct

HEADER = struct.Struct(">BBHBBHIIQ")
REQUEST, RESPONSE = 0x80, 0x81
NO_INITIAL = 0xFFFFFFFF


def packet(opcode, key=b"", extras=b"", value=b"", cas=0, opaque=0,
           body=None):
    """A request; body: what the header says of the length, where it lies."""
    rest = extras + key + value
    return HEADER.pack(
        REQUEST, opcode, len(key), len(extras), 0, 0,
        len(rest) if body is None else body, opaque, cas,
    ) + rest


def store(opcode, key, value, flags=0, exptime=0, **more):
    """set, add, replace."""
    extras = struct.pack(">II", flags, exptime)
    return packet(opcode, key, extras, value, **more)


def count(opcode, key, delta, initial=0, exptime=0, **more):
    """incr, decr."""
    extras = struct.pack(">QQI", delta, initial, exptime)
    return packet(opcode, key, extras, **more)


def touch(opcode, key, exptime=0, **more):
    """touch, gat."""
    return packet(opcode, key, struct.pack(">I", exptime), **more)


def read(connection):
    """One response: (opcode, status, extras, key, value, opaque, cas)."""
    magic, opcode, key_len, extras_len, kind, status, body_len, opaque, cas = (
        HEADER.unpack(connection.exactly(HEADER.size))
    )
    if magic != RESPONSE or kind != 0:
        raise AssertionError("magic %02x, data type %d" % (magic, kind))
    body = connection.exactly(body_len)
    at = extras_len + key_len
    return (opcode, status, body[:extras_len], body[extras_len:at],
            body[at:], opaque, cas)
