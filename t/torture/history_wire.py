# SPDX-License-Identifier: BSD-3-Clause
"""Operations of history_model.py as requests, and replies as answers.

A request is bytes and a way to read its reply: a function of a buffer and a
place in it, which returns (answers, next place), an answer for each operation,
or raises Short where more has to come. An answer is the model's, or

    VOID     nothing was done: the server is loading
    UNSURE   it was made, and what a crash makes of it is not known

With a read of a record or cell come the cas uniques, which the caller is given
by note(id, place, value, unique)."""

import struct

import packet
from history_model import EXISTS, REFUSED

VOID = "void"
UNSURE = "unsure"
COUNTER = "main"

WORDS = {b"STORED": True, b"NOT_STORED": False, b"EXISTS": EXISTS,
         b"DELETED": True, b"NOT_FOUND": False, b"HD": True, b"NS": False,
         b"EX": EXISTS, b"NF": False,
         b"EN": REFUSED}  # a get of what has been dropped meanwhile
# What a request that names a column that is not there is told, or one with
# another number of values than there are columns.
REFUSALS = (
    b"the key begins like a counter's, but no counter or column has",
    b"only changes of counters can be numbered, not an item's",
    b"no such column in that counter",
    b"the counter or column has been dropped",
    b"this is a counter: send its id and one value a column",
    b"give one number a column, or COLUMN=NUMBER throughout",
    b"that name or suffix is already in use",
    b"value is above the column's max",
)
GET, SET, ADD, REPLACE, DELETE, INCR, DECR = range(7)  # opcodes
COUNTING = struct.Struct(">Q")


class Short(Exception):
    """The reply is not complete."""


class Fault(Exception):
    """A reply that nothing explains."""


def of_error(text, sent):
    """The answer that an error is; text without the word before it."""
    if any(text.startswith(words) for words in REFUSALS):
        return REFUSED
    if text.startswith(b"loading,"):
        return VOID
    if text.startswith(b"outcome unknown,"):
        return UNSURE
    raise Fault("%r was answered %r" % (sent, text))


def of_line(line, sent):
    """The answer that a line is."""
    word = line.split(b" ")
    if word[0] in (b"CLIENT_ERROR", b"SERVER_ERROR"):
        return of_error(line.partition(b" ")[2], sent)
    if word[0] in WORDS:
        return WORDS[word[0]]
    try:
        numbers = [int(one) for one in word]
    except ValueError:
        raise Fault("%r was answered %r" % (sent, line)) from None
    return numbers


def line_at(data, at):
    end = data.find(b"\r\n", at)
    if end < 0:
        raise Short
    return bytes(data[at:end]), end + 2


def block_at(data, at, size):
    if len(data) < at + size + 2:
        raise Short
    return bytes(data[at:at + size]), at + size + 2


def reply_line(sent, is_single):
    """Reads one line. is_single: a number stands alone."""
    def read(data, at):
        line, at = line_at(data, at)
        answer = of_line(line, sent)
        if is_single and isinstance(answer, list):
            answer, = answer
        return [answer], at
    return read


def names_of(id, key):
    """How a key comes back."""
    if key is None:
        return b"%d" % id, b"%d.%s" % (id, COUNTER.encode())
    return (b"%d.%s" % (id, key.encode()),)


def reply_get(sent, shape, note):
    """Reads the reply to a get. shape: of each operation its id and for each
    of its keys the column, or None for the record."""
    def read(data, at):
        line, place = line_at(data, at)
        if line.startswith((b"CLIENT_ERROR", b"SERVER_ERROR")):
            answer = of_error(line.partition(b" ")[2], sent)
            if answer == REFUSED and sum(len(keys)
                                         for _, keys in shape) > 1:
                answer = VOID  # and which key it was is not said
            return [answer] * len(shape), place
        answers = []
        for id, keys in shape:
            answer = []
            is_whole = True
            for key in keys:
                word = line.split(b" ")
                if word[0] not in (b"VALUE", b"END"):
                    raise Fault("%r was answered %r" % (sent, line))
                if word[0] == b"END" or word[1] not in names_of(id, key):
                    is_whole = False  # a miss: it has been dropped meanwhile
                    continue
                value, place = block_at(data, place, int(word[3]))
                numbers = [int(one) for one in value.split(b" ")]
                if len(word) > 4:
                    note(id, key, numbers, int(word[4]))
                answer += numbers
                line, place = line_at(data, place)
            answers.append(answer if is_whole else REFUSED)
        if line != b"END":
            raise Fault("%r was answered %r" % (sent, line))
        return answers, place
    return read


def reply_meta(sent, id, key, note):
    """Reads the reply to mg with v and c, or to ma with v."""
    def read(data, at):
        line, at = line_at(data, at)
        if not line.startswith(b"VA "):
            return [of_line(line, sent)], at
        word = line.split(b" ")
        value, at = block_at(data, at, int(word[1]))
        numbers = [int(one) for one in value.split(b" ")]
        if len(word) > 2:
            note(id, key, numbers, int(word[2][1:]))
            return [numbers], at
        return [numbers[0]], at
    return read


def reply_packet(sent, opcode, id, key, note):
    """Reads a packet."""
    def read(data, at):
        if len(data) < at + packet.HEADER.size:
            raise Short
        magic, code, key_len, extras_len, _, status, size, _, cas = \
            packet.HEADER.unpack_from(data, at)
        at += packet.HEADER.size
        if magic != packet.RESPONSE or code != opcode:
            raise Fault("%r was answered by packet %02x %02x" % (
                sent, magic, code))
        if len(data) < at + size:
            raise Short
        body = bytes(data[at + extras_len + key_len:at + size])
        return [of_packet(opcode, status, body, cas, (id, key, note),
                          sent)], at + size
    return read


def of_packet(opcode, status, body, cas, read, sent):
    if status == 0:
        if opcode == GET:
            numbers = [int(one) for one in body.split(b" ")]
            id, key, note = read
            note(id, key, numbers, cas)
            return numbers
        if opcode in (INCR, DECR):
            return COUNTING.unpack(body)[0]
        return True
    if status == 1 and opcode == GET:
        return REFUSED  # likewise
    if status in (1, 2):
        if status == 2 and opcode == SET:
            return EXISTS
        return False
    if status in (4, 0x84, 0x86, 0xa3):
        return of_error(body, sent)
    raise Fault("%r was answered by status %02x: %r" % (sent, status, body))


class Request:
    """Bytes, the operations that they are, and how the reply is read; read
    None: there is none."""

    def __init__(self, data, ops, read):
        self.data = data
        self.ops = ops
        self.read = read


def words_of(given):
    if isinstance(given, dict):
        return " ".join("%s=%d" % pair for pair in given.items())
    return " ".join(map(str, given))


def key_of(op):
    """The key of the cell or record."""
    if op.kind in ("read", "sets", "adds", "casr", "deleter"):
        return "%d.%s" % (op.id, COUNTER)
    return "%d.%s" % (op.id, op.args[0])


def value_of(op):
    """What is stored, in text."""
    if op.kind in ("sets", "adds", "casr"):
        return words_of(op.args[-1])
    return str(op.args[-1])


VERBS = {"set": "set", "sets": "set", "add": "add", "adds": "add",
         "replace": "replace", "replaces": "replace", "incr": "incr",
         "incrs": "incr", "decr": "decr", "decrs": "decr",
         "delete": "delete", "deleter": "delete", "cas": "cas",
         "casr": "cas"}


def tail_of(op, is_quiet):
    tail = "" if op.number is None else " tx=%s:%d" % op.number
    return tail + (" noreply" if is_quiet else "")


def text(op, is_quiet=False):
    """A change in memcached's own form."""
    verb, key = VERBS[op.kind], key_of(op)
    tail = tail_of(op, is_quiet)
    if verb in ("incr", "decr"):
        line = "%s %s %d%s\r\n" % (verb, key, op.args[1], tail)
    elif verb == "delete":
        line = "%s %s%s\r\n" % (verb, key, tail)
    else:
        value = value_of(op)
        line = "%s %s 0 0 %d%s%s\r\n%s\r\n" % (
            verb, key, len(value),
            "" if verb != "cas" else " %d" % op.unique, tail, value)
    data = line.encode()
    return Request(data, [op], None if is_quiet else
                   reply_line(data, verb in ("incr", "decr")))


def dialect(op, is_quiet=False):
    verb, tail = VERBS[op.kind], tail_of(op, is_quiet)
    if op.kind == "deleter":
        line = "%s %s %d" % (verb, COUNTER, op.id)
    elif op.kind == "delete":
        line = "%s %s %s" % (verb, COUNTER, key_of(op))
    elif op.kind in ("incrs", "decrs", "sets", "adds", "replaces"):
        line = "%s %s %d %s" % (verb, COUNTER, op.id, words_of(op.args[-1]))
    else:
        line = "%s %s %s %d" % (verb, COUNTER, key_of(op), op.args[1])
    data = (line + tail + "\r\n").encode()
    return Request(data, [op], None if is_quiet else
                   reply_line(data, op.kind in ("incr", "decr")))


MODES = {"add": " ME", "adds": " ME", "replace": " MR"}


def meta(op, note):
    key = key_of(op)
    number = "" if op.number is None else " P%s:%d" % op.number
    verb = VERBS.get(op.kind)
    if op.kind in ("get", "read"):
        data = ("mg %s v c\r\n" % key).encode()
    elif verb in ("incr", "decr"):
        data = ("ma %s D%d v%s%s\r\n" % (
            key, op.args[1], " MD" if verb == "decr" else "",
            number)).encode()
    elif verb == "delete":
        data = ("md %s%s\r\n" % (key, number)).encode()
    else:
        value = value_of(op)
        data = ("ms %s %d%s%s%s\r\n%s\r\n" % (
            key, len(value), MODES.get(op.kind, ""),
            "" if verb != "cas" else " C%d" % op.unique, number,
            value)).encode()
    column = None if op.kind == "read" else op.args[0] if op.args else None
    return Request(data, [op], reply_meta(data, op.id, column, note))


def binary(op, note):
    key = key_of(op).encode()
    verb = VERBS.get(op.kind)
    opcode = {None: GET, "set": SET, "cas": SET, "add": ADD,
              "replace": REPLACE, "delete": DELETE, "incr": INCR,
              "decr": DECR}[verb]
    if opcode in (INCR, DECR):
        is_given = len(op.args) > 2
        data = packet.count(opcode, key, op.args[1],
                            op.args[2] if is_given else 0,
                            0 if is_given else packet.NO_INITIAL)
    elif opcode in (GET, DELETE):
        data = packet.packet(opcode, key)
    else:
        data = packet.store(opcode, key, value_of(op).encode(),
                            cas=op.unique or 0)
    column = None if op.kind == "read" else op.args[0] if op.args else None
    return Request(data, [op], reply_packet(data, opcode, op.id, column,
                                            note))


def gets(ops, note, verb, is_dialect=False):
    """One get of several records' columns, or of whole records."""
    shape, words = [], []
    for op in ops:
        keys = [None] if op.kind == "read" else op.args
        shape.append((op.id, keys))
        for key in keys:
            if key is not None:
                words.append("%d.%s" % (op.id, key))
            elif is_dialect:
                words.append("%d" % op.id)
            else:
                words.append("%d.%s" % (op.id, COUNTER))
    line = "%s %s%s\r\n" % (verb, COUNTER + " " if is_dialect else "",
                            " ".join(words))
    data = line.encode()
    return Request(data, ops, reply_get(data, shape, note))


def schema(op):
    """An edit."""
    name = op.args[0]
    if op.kind == "add column":
        bits = {"x": 32, "y": 8}[name]
        line = "add column %s %s max=%d default=%d\r\n" % (
            COUNTER, name, bits, op.args[1])
    else:
        line = "drop column %s %s %s\r\n" % (COUNTER, name, name)
    data = line.encode()
    return Request(data, [op], reply_line(data, False))
