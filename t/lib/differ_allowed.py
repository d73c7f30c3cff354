# SPDX-License-Identifier: BSD-3-Clause
"""Where tallyd may answer otherwise than memcached, each with its reason.

An allowance looks at one unit and both replies. It fits only what it names:
anything else stays a difference. Where what has been left behind differs too,
mend() gives units that make it the same again on both servers.
"""

import re
import struct

from differ import BINARY, TEXT, Unit
from differ_text import KEYS

# tallyd follows this one where versions differ.
NEWER = (1, 6, 45)


class Allowance:
    """fits(outcome) says whether it applies, mend(outcome) gives units.
    since: the first memcached beside which it is not needed, or None."""

    def __init__(self, name, reason, fits, mend=None, since=None):
        self.name = name
        self.reason = reason
        self.fits = fits
        self.mend = mend or (lambda outcome: [])
        self.since = since


def text_of(outcome):
    """The unit's bytes; a cas unique is 1."""
    return b"".join(part if isinstance(part, bytes) else b"1"
                    for part in outcome.unit.parts)


class Replies:
    """Fits where the unit, memcached's reply and tallyd's match three
    patterns; replies as they came, CRLF included."""

    def __init__(self, unit, reference, tested):
        self.patterns = [re.compile(one, re.DOTALL)
                         for one in (unit, reference, tested)]

    def __call__(self, outcome):
        if outcome.unit.family != TEXT:
            return False
        texts = (text_of(outcome),) + tuple(outcome.raw)
        return all(pattern.fullmatch(text)
                   for pattern, text in zip(self.patterns, texts))


# Padded numbers


def unpadded(value):
    """value without the spaces that memcached leaves behind a number."""
    found = re.fullmatch(rb"(\d+) +", value)
    return found.group(1) if found else None


def is_padded_text(reference, tested):
    """The parts of VALUE and VA replies, data behind each head."""
    if len(reference) != len(tested):
        return False
    padded = 0
    for at in range(0, len(reference)):
        mine, other = tested[at], reference[at]
        if mine == other:
            continue
        if mine[0] != other[0]:
            return False
        if mine[0] == "data":
            if unpadded(other[1]) != mine[1] or mine[2] != other[2]:
                return False
            padded += 1
        elif mine[0] not in ("VALUE", "VA") or at + 1 == len(reference):
            return False
        elif not same_but_size(mine, other):
            return False
    return padded > 0


def same_but_size(mine, other):
    """Heads of values that differ in the value's size only."""
    place = 3 if mine[0] == "VALUE" else 1
    size = (b"s%d" % mine[place], b"s%d" % other[place])
    if len(mine) != len(other):
        return False
    return all(
        a == b or at == place or (a, b) == size
        for at, (a, b) in enumerate(zip(mine, other))
    )


def is_padded_packet(reference, tested):
    if len(reference) != 1 or len(tested) != 1:
        return False
    mine, other = tested[0], reference[0]
    if mine[0] != "packet" or other[0] != "packet":
        return False
    if unpadded(other[12]) != mine[12]:
        return False
    return all(a == b for at, (a, b) in enumerate(zip(mine, other))
               if at not in (7, 12))


def fits_padding(outcome):
    is_padded = is_padded_packet if outcome.unit.family == BINARY \
        else is_padded_text
    # memcached against itself may differ in the other direction too.
    return is_padded(outcome.reference, outcome.tested)


def delete_key(outcome):
    """The key is deleted, on both."""
    key = outcome.unit.key
    if outcome.unit.family == BINARY:
        head = struct.pack(">BBHBBHIIQ", 0x80, 0x04, len(key), 0, 0, 0,
                           len(key), 0, 0)
        return [Unit(head + key, family=BINARY)]
    if re.match(rb"m. \S+.* b ", text_of(outcome)):
        return [Unit(b"md ", key, b" b\r\n")]
    return [Unit(b"delete ", key, b"\r\n")]


def delete_all(_):
    return [Unit(b"delete %s\r\n" % key) for key in KEYS]


STORES = rb"(?:set|add|replace|append|prepend|cas) +"
WRONG_FORMAT = rb"CLIENT_ERROR bad command line format\r\n"
WRONG_EXPTIME = rb"CLIENT_ERROR invalid exptime argument\r\n"
# What is no 32-bit number without a plus.
WIDE = rb"(?:\+\d+|2147483648|-2147483649|-?99999999999|4294967296)"
# Retrievals' and changes' own replies.
ANY = rb"(?:END|VALUE .*|NOT_FOUND|TOUCHED|STORED|OK|\d+|" \
    rb"CLIENT_ERROR cannot [^\n]*|)(?:\r\n)?"

ALLOWANCES = [
    Allowance(
        "no padding",
        "memcached may leave spaces behind a number that a decrement or a "
        "wrapping increment made shorter; clients had trouble with them",
        fits_padding, delete_key),
    Allowance(
        "bad chunk",
        "memcached goes on in the middle of a block that is longer or "
        "shorter than said, and takes the rest of the line for a command",
        Replies(STORES + rb".*",
                rb"CLIENT_ERROR bad data chunk\r\n(?:ERROR\r\n|"
                + WRONG_FORMAT + rb")",
                rb"CLIENT_ERROR bad data chunk\r\n")),
    Allowance(
        "refused block",
        "memcached reads the block as a command where a storage line is "
        "refused for its number of words, or for a length that is none; "
        "before 1.6.45, wherever the line is refused",
        Replies(STORES + rb".*",
                rb"((?:CLIENT_ERROR|ERROR)[^\n]*\n)+ERROR\r\n",
                rb"(?:CLIENT_ERROR|ERROR)[^\n]*\n")),
    Allowance(
        "empty line behind an error",
        "memcached sends one behind the error of a retrieval with a key "
        "that is too long; a client takes it for the next reply",
        Replies(rb"(?:get|gets|gat|gats) .*",
                WRONG_FORMAT + rb"\r\n", WRONG_FORMAT)),
    Allowance(
        "delete with a number",
        "a time is 0 or an error in tallyd, as memccapable wants it; 1.6.45 "
        "ignores the word, and older ones have a longer error",
        Replies(rb"delete .*", rb"(?:DELETED|NOT_FOUND|CLIENT_ERROR bad "
                rb"command line format\.  Usage: [^\n]*)?\r?\n?",
                WRONG_FORMAT), delete_all),
    Allowance(
        "too few words",
        "ERROR before 1.6.45, or no key is no error",
        Replies(rb".*", rb"(?:(?:ERROR|END)\r\n)+|" + WRONG_EXPTIME,
                WRONG_FORMAT), since=NEWER),
    Allowance(
        "spaces in front",
        "an error since 1.6.45",
        Replies(rb" +.*", ANY, rb"ERROR\r\n"), since=NEWER),
    Allowance(
        "unknown, with noreply",
        "silent since 1.6.45",
        Replies(rb"(?:.* )?noreply\r?\n", rb"ERROR\r\n", rb""), since=NEWER),
    Allowance(
        "too many words",
        "ERROR before 1.6.45, or another error for a delete",
        Replies(rb".*", rb"(?:ERROR|CLIENT_ERROR [^\n]*)\r\n", ANY),
        delete_all, since=NEWER),
    Allowance(
        "numbers",
        "before 1.6.45 a plus is allowed, and an exptime is cut to 32 bits",
        Replies(rb".*" + WIDE + rb".*",
                ANY + rb"|CLIENT_ERROR bad data chunk\r\nERROR\r\n",
                rb"CLIENT_ERROR [^\n]*\n(?:ERROR\r\n)?"),
        delete_all, since=NEWER),
]


def allowances_for(version):
    """Those that hold beside a memcached of this version, e.g. (1, 6, 18)."""
    return [one for one in ALLOWANCES
            if one.since is None or version < one.since]
