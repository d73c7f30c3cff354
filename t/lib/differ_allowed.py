# SPDX-License-Identifier: BSD-3-Clause
"""Where tallyd may answer otherwise than memcached, each with its reason.

An allowance looks at one unit and both replies. It fits only what it names:
anything else stays a difference. Where what has been left behind differs too,
mend() gives units that make it the same again on both servers.
"""

import re
import struct

from differ import BINARY, TEXT, Near, Unit
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


# Large numbers that memcached takes for none

NOT_A_NUMBER = b"CLIENT_ERROR cannot increment or decrement non-numeric " \
    b"value\r\n"
ARITH = re.compile(rb"(?P<verb>incr|decr) +\S+ +(?P<delta>\d+)\r\n"
                   rb"|ma \S+(?P<flags>(?: [^\r ]+)*)\r\n")
VALUE = re.compile(rb"(?:VALUE [^\r]*|VA [^\r]*)\r\n(\d+) *\r\n(?:END\r\n)?")
SIGNED_MAX = 2**63 - 1


def asked_text(outcome):
    """(what was to be added, a unit that shows the number), or None where
    nothing was, or where not memcached alone has refused it."""
    found = ARITH.fullmatch(text_of(outcome))
    key = outcome.unit.key
    if not found or outcome.raw[0] != NOT_A_NUMBER or \
            b"ERROR" in outcome.raw[1]:
        return None
    if found["verb"]:
        sign = -1 if found["verb"] == b"decr" else 1
        return sign * int(found["delta"]), Unit(b"get ", key, b"\r\n")
    flags = found["flags"].split()
    sign = -1 if any(flag[:2] in (b"MD", b"Md", b"M-")
                     for flag in flags) else 1
    delta, = [int(flag[1:]) for flag in flags if flag[:1] == b"D"][:1] or [1]
    form = b" b" if b"b" in flags else b""
    return sign * delta, Unit(b"mg ", key, form, b" v\r\n")


def asked_packet(outcome):
    """The same of a packet."""
    head, _, body = (outcome.unit.parts + (b"", b""))[:3]
    good = [part[3:4] == ("status 0x0",) for part in outcome.tested]
    if head[1] not in (0x05, 0x06, 0x15, 0x16) or head[4] != 20 or \
            [part[3:4] for part in outcome.reference] != \
            [("status 0x6",)] or \
            good not in ([], [True]):
        return None
    delta, = struct.unpack_from(">Q", body)
    key = outcome.unit.key
    get = struct.pack(">BBHBBHIIQ", 0x80, 0, len(key), 0, 0, 0, len(key), 0, 0)
    return (-delta if head[1] in (0x06, 0x16) else delta,
            Unit(get + key, key=key, family=BINARY))


def number_of(raw, family):
    """The number in the reply to such a unit, or None."""
    if family == BINARY:
        found = re.fullmatch(rb"(\d+) *", raw[28:])
    else:
        found = VALUE.fullmatch(raw)
    return int(found[1]) if found else None


def fits_minus_behind(outcome):
    """memcached still has the number, tallyd has what was asked for."""
    family = outcome.unit.family
    asked = asked_packet(outcome) if family == BINARY else asked_text(outcome)
    if asked is None:
        return False
    number, changed = (number_of(raw, family)
                       for raw in outcome.look(asked[1]))
    if number is None or number <= SIGNED_MAX:
        return False
    wanted = number + asked[0]
    return changed == (wanted % 2**64 if asked[0] > 0 else max(0, wanted))


# Meta


def plain_flags(part):
    """The flags of an HD or VA without k and b."""
    return [flag for flag in part
            if not isinstance(flag, bytes) or flag[:1] not in b"kb"]


def fits_key_form(outcome):
    """All is the same but for the form of a key."""
    pairs = list(zip(outcome.reference, outcome.tested))
    if len(outcome.reference) != len(outcome.tested) or not pairs:
        return False
    if not text_of(outcome).startswith(b"m"):
        return False
    for other, mine in pairs:
        if other[0] == mine[0] == "ME":
            other, mine = other[2:], mine[2:]
        if other[0] in ("HD", "VA"):
            other, mine = plain_flags(other), plain_flags(mine)
        if other != mine:
            return False
    return True


BETWEEN = re.compile(rb"m[ag] .* (?:N\S* .*t .*T|T\S* .*t .*N).*")


def fits_time_between(outcome):
    """All is the same but for the time left, and the form of the key."""
    if not BETWEEN.fullmatch(text_of(outcome).replace(b"\r\n", b" ")):
        return False
    kept = [[[flag for flag in plain_flags(part)
              if not isinstance(flag, tuple)] for part in parts]
            for parts in (outcome.reference, outcome.tested)]
    return kept[0] == kept[1]


def fits_negative_exp(outcome):
    """The reply of me is the same but for a minus before its exp (and the
    form of the key, see above)."""
    if len(outcome.reference) != 1 or len(outcome.tested) != 1:
        return False
    other, mine = outcome.reference[0], outcome.tested[0]
    if other[0] != "ME" or mine[0] != "ME":
        return False
    turned = [(name, Near(-value.seconds)) if name == b"exp"
              and value.seconds < -1 else (name, value)
              for name, value in other[2:]]
    return list(mine[2:]) == turned


def delete_all(_):
    return [Unit(b"delete %s\r\n" % key) for key in KEYS]


STORES = rb"(?:set|add|replace|append|prepend|cas|ms) +"
WRONG_FORMAT = rb"CLIENT_ERROR bad command line format\r\n"
WRONG_EXPTIME = rb"CLIENT_ERROR invalid exptime argument\r\n"
# What is no 32-bit number without a plus.
WIDE = rb"(?:\+\d+|2147483648|-2147483649|-?99999999999|4294967296)"
# What is a number, but no length of a block.
NO_LENGTH = rb"\+\d+|2147483646|2147483647|4294967296|99999999999"
# Retrievals' and changes' own replies.
ANY = rb"(?:END|VALUE .*|NOT_FOUND|TOUCHED|STORED|OK|\d+|" \
    rb"CLIENT_ERROR cannot [^\n]*|)(?:\r\n)?"

# A line that is one word alone, which is not the storage line's.
TYPED_WORD = re.compile(rb"(?:" + STORES + rb"[^\n]*\n)?[A-Za-z]{3,16}\r?\n")


def fits_typed_word(outcome):
    """All is the same but for two words behind the last ERROR."""
    other, mine = outcome.raw
    return outcome.unit.family == TEXT and \
        TYPED_WORD.fullmatch(text_of(outcome)) is not None and \
        re.fullmatch(rb"(?:CLIENT_ERROR [^\n]*\n)?ERROR\r\n", other) \
        is not None and mine == other[:-2] + b" type help\r\n"


ALLOWANCES = [
    Allowance(
        "no padding",
        "memcached may leave spaces behind a number that a decrement or a "
        "wrapping increment made shorter; clients had trouble with them",
        fits_padding, delete_key),
    Allowance(
        "minus behind a number",
        "before 1.6.45 memcached looks for a minus in whatever lies behind a "
        "number of 2^63 and more, and may then say that it is none",
        fits_minus_behind, delete_key, since=NEWER),
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
        "length of no block",
        "memcached reads the block as commands where the length is a number "
        "above the greatest one, too long, or (since 1.6.45) with a plus; "
        "tallyd cannot tell where it ends, and closes the connection",
        Replies(rb"(?:set [^\n]* [^\n]* |ms \S+ )(?:" + NO_LENGTH
                + rb")(?: [^\n]*)?\r\n.*",
                rb"((?:CLIENT_ERROR|ERROR)[^\n]*\n)+|STORED\r\n",
                rb"(?:CLIENT_ERROR[^\n]*\n)? <the connection is closed>"),
        delete_key),
    Allowance(
        "a word that somebody typed",
        "the first one of a connection is told of help, also where it is a "
        "block behind a storage line without a length",
        fits_typed_word),
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
        "form of a key",
        "memcached echoes a key in base64 or not as it was when the item was "
        "made, and forgets base64 where mg or ma made it; tallyd echoes it "
        "as it was sent",
        fits_key_form),
    Allowance(
        "t between N and T",
        "memcached sets the times of an item that it has just made one after "
        "the other, and tells what there is at that moment",
        fits_time_between, delete_key),
    Allowance(
        "me with b",
        "memcached takes the b for what it is only where another word "
        "follows it",
        Replies(rb"me \S+ b\r\n", rb"(?:EN|ME .*)\r\n",
                rb"(?:EN|ME .*|CLIENT_ERROR bad command line format)\r\n")),
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
        Replies(rb".*", rb"(?:ERROR|CLIENT_ERROR [^\n]*)\r\n",
                ANY + rb"|DELETED\r\n"),
        delete_all, since=NEWER),
    Allowance(
        "words of shutdown",
        "ERROR: before 1.6.45",
        Replies(rb"shutdown.*", rb"ERROR: shutdown not enabled\r\n",
                rb"SERVER_ERROR: shutdown not enabled\r\n"), since=NEWER),
    Allowance(
        "words of meta's errors",
        "others, and for other faults first, before 1.6.45",
        Replies(rb"m.*", rb"CLIENT_ERROR [^\n]*\n",
                rb"CLIENT_ERROR [^\n]*\n"), since=NEWER),
    Allowance(
        "exp of me",
        "has a minus before 1.6.45",
        fits_negative_exp, since=NEWER),
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
