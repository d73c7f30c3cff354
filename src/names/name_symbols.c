/* SPDX-License-Identifier: BSD-3-Clause */
/* Symbols, and how they are learned.
 *
 * A table is sorted by the first byte of its symbols and among these by length,
 * the longest first, and a code is a place in it: so the few that can begin at
 * a byte lie side by side, the first one that fits is the longest, and coding
 * needs nothing beside what reading needs.
 *
 * Learning: the sample is coded with the table so far, which is empty at first.
 * Each unit, a symbol or a byte for itself, counts; so does each pair of units
 * side by side, which together may be one symbol; and each unit with the first
 * byte of the next. What saves most is the next table. Symbols so grow up to
 * twice as long each round: four rounds make 8 bytes of 1. Later ones do not
 * always do better than those before, so the best one is taken. */
#include "names/name_symbols.h"

#include "base/assert.h"
#include "base/chunk.h"
#include "names/own_id.h"

#include <stdlib.h>
#include <string.h>

enum {
    ROUNDS = 8,
    BYTE_UNIT = 256, /* units: codes, then this and a byte */
    UNITS = 512,
    NO_UNIT = UNITS,
    BYTE_WEIGHT = 8, /* of one byte as a symbol, which without it takes two
                      * (FSST's, too) */
    CANDIDATES_MAX = 1 << 15,
    COUNT_MIN = 2 /* of a pair that may become a symbol */
};

struct candidate {
    uint64_t symbol;
    uint32_t gain;
    uint8_t len;
};

struct name_lesson {
    uint32_t single[UNITS];
    uint16_t pair[UNITS][UNITS]; /* up to UINT16_MAX */
    struct candidate candidate[CANDIDATES_MAX];
    size_t n;
};

size_t
name_lesson_bytes(void)
{
    return sizeof(struct name_lesson);
}

static uint64_t
mask_of(unsigned len)
{
    return UINT64_MAX >> (64 - 8 * len);
}

/* The longest symbol that text begins with; NO_UNIT: none. */
static unsigned
match(const struct name_symbols *symbols, uint64_t text)
{
    unsigned byte = text & 0xff;
    unsigned end = symbols->first[byte + 1];
    for (unsigned code = symbols->first[byte]; code < end; code++) {
        uint64_t mask = mask_of(symbols->len[code]);
        if ((text & mask) == symbols->symbol[code]) {
            return code;
        }
    }
    return NO_UNIT;
}

size_t
name_symbols_code(const struct name_symbols *symbols, const char *name,
    size_t len, uint8_t *out, size_t limit)
{
    size_t n = 0;
    for (size_t at = 0; at < len;) {
        uint64_t text = chunk_load(name + at);
        unsigned code = match(symbols, text);
        if (n + 1 + (code == NO_UNIT) > limit) {
            return limit + 1;
        }
        if (code == NO_UNIT) {
            out[n++] = NAME_ESCAPE;
            out[n++] = (uint8_t)text;
            at++;
        } else {
            out[n++] = (uint8_t)code;
            at += symbols->len[code];
        }
    }
    return n;
}

size_t
name_symbols_name(const struct name_symbols *symbols, const uint8_t *code,
    size_t n, char *out, size_t limit)
{
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        if (code[i] < symbols->n) {
            chunk_store(out + len, symbols->symbol[code[i]]);
            len += symbols->len[code[i]];
        } else if (code[i] == NAME_ESCAPE && i + 1 < n) {
            out[len++] = (char)code[++i];
        } else {
            return 0;
        }
        if (len > limit) {
            return 0;
        }
    }
    return len;
}

struct listed {
    uint64_t symbol;
    uint8_t len;
};

static int
by_place(const void *a, const void *b)
{
    const struct listed *x = a, *y = b;
    unsigned first_x = x->symbol & 0xff, first_y = y->symbol & 0xff;
    if (first_x != first_y) {
        return first_x < first_y ? -1 : 1;
    }
    if (x->len != y->len) {
        return x->len > y->len ? -1 : 1;
    }
    return x->symbol < y->symbol ? -1 : x->symbol > y->symbol;
}

static bool
is_symbol(uint64_t symbol, unsigned len)
{
    char bytes[CHUNK_BYTES];
    chunk_store(bytes, symbol);
    return len > 0 && len <= NAME_SYMBOL_BYTES && name_is_valid(bytes, len) &&
        (symbol & ~mask_of(len)) == 0;
}

bool
name_symbols_make(struct name_symbols *symbols, const uint64_t *symbol,
    const uint8_t *len, unsigned n)
{
    struct listed list[NAME_SYMBOLS_MAX];
    ASSERT(n <= NAME_SYMBOLS_MAX);
    memset(symbols, 0, sizeof *symbols);
    for (unsigned i = 0; i < n; i++) {
        if (!is_symbol(symbol[i], len[i])) {
            return false;
        }
        list[i] = (struct listed){.symbol = symbol[i], .len = len[i]};
    }
    qsort(list, n, sizeof *list, by_place);
    for (unsigned i = 0; i < n; i++) {
        if (i > 0 && list[i].symbol == list[i - 1].symbol) {
            return false;
        }
        symbols->symbol[i] = list[i].symbol;
        symbols->len[i] = list[i].len;
        symbols->first[(list[i].symbol & 0xff) + 1]++;
    }
    for (unsigned byte = 0; byte < 256; byte++) {
        symbols->first[byte + 1] =
            (uint8_t)(symbols->first[byte + 1] + symbols->first[byte]);
    }
    symbols->n = n;
    return true;
}

/* A unit's bytes. */
static struct listed
unit_of(const struct name_symbols *symbols, unsigned unit)
{
    return unit < BYTE_UNIT
        ? (struct listed){symbols->symbol[unit], symbols->len[unit]}
        : (struct listed){unit - BYTE_UNIT, 1};
}

static void
count_pair(struct name_lesson *lesson, unsigned before, unsigned unit)
{
    uint16_t *count = &lesson->pair[before][unit];
    *count = (uint16_t)(*count + (*count < UINT16_MAX));
}

/* Counts units and pairs; returns how many bytes the sample takes. */
static size_t
count(struct name_lesson *lesson, const struct name_symbols *symbols,
    const char *sample, size_t n)
{
    unsigned before = NO_UNIT;
    size_t bytes = 0;
    for (size_t at = 0; at < n;) {
        uint64_t text = chunk_load(sample + at);
        unsigned byte = BYTE_UNIT + (text & 0xff);
        unsigned code = match(symbols, text);
        unsigned unit = code == NO_UNIT ? byte : code;
        if (unit == BYTE_UNIT) { /* the end of a name */
            before = NO_UNIT;
            at++;
            continue;
        }
        bytes += code == NO_UNIT ? 2 : 1;
        lesson->single[unit]++;
        if (before != NO_UNIT) {
            count_pair(lesson, before, unit);
            if (unit != byte) {
                count_pair(lesson, before, byte);
            }
        }
        before = unit;
        at += unit_of(symbols, unit).len;
    }
    return bytes;
}

static void
suggest(struct name_lesson *lesson, struct listed what, uint32_t n)
{
    if (lesson->n < CANDIDATES_MAX) {
        lesson->candidate[lesson->n++] =
            (struct candidate){.symbol = what.symbol,
                .gain = n * (what.len == 1 ? BYTE_WEIGHT : what.len),
                .len = what.len};
    }
}

static void
suggest_all(struct name_lesson *lesson, const struct name_symbols *symbols)
{
    for (unsigned unit = 0; unit < UNITS; unit++) {
        if (lesson->single[unit] == 0) {
            continue;
        }
        struct listed front = unit_of(symbols, unit);
        suggest(lesson, front, lesson->single[unit]);
        for (unsigned next = 0; next < UNITS; next++) {
            unsigned n = lesson->pair[unit][next];
            struct listed back = unit_of(symbols, n == 0 ? BYTE_UNIT : next);
            if (n >= COUNT_MIN && front.len + back.len <= NAME_SYMBOL_BYTES) {
                back.symbol = front.symbol | back.symbol << 8 * front.len;
                back.len = (uint8_t)(back.len + front.len);
                suggest(lesson, back, n);
            }
        }
    }
}

static int
by_symbol(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    return x->symbol < y->symbol ? -1 : x->symbol > y->symbol;
}

/* The best first; of equals always the same one. */
static int
by_gain(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    return x->gain != y->gain ? (x->gain > y->gain ? -1 : 1) : by_symbol(a, b);
}

/* The next table: what was suggested more than once counts once, with all that
 * it gains. */
static void
choose(struct name_lesson *lesson, struct name_symbols *symbols)
{
    uint64_t symbol[NAME_SYMBOLS_MAX];
    uint8_t len[NAME_SYMBOLS_MAX];
    struct candidate *list = lesson->candidate;
    size_t n = 0;
    qsort(list, lesson->n, sizeof *list, by_symbol);
    for (size_t i = 0; i < lesson->n; i++) {
        if (n > 0 && list[n - 1].symbol == list[i].symbol) {
            list[n - 1].gain += list[i].gain;
        } else {
            list[n++] = list[i];
        }
    }
    qsort(list, n, sizeof *list, by_gain);
    n = n < NAME_SYMBOLS_MAX ? n : NAME_SYMBOLS_MAX;
    for (size_t i = 0; i < n; i++) {
        symbol[i] = list[i].symbol;
        len[i] = list[i].len;
    }
    bool is_good = name_symbols_make(symbols, symbol, len, (unsigned)n);
    ASSERT(is_good);
}

void
name_symbols_learn(struct name_symbols *symbols, const char *sample, size_t n,
    struct name_lesson *lesson)
{
    struct name_symbols table;
    size_t least = SIZE_MAX;
    ASSERT(n <= NAME_SAMPLE_BYTES_MAX);
    memset(&table, 0, sizeof table);
    for (unsigned round = 0; round <= ROUNDS; round++) {
        memset(lesson->single, 0, sizeof lesson->single);
        memset(lesson->pair, 0, sizeof lesson->pair);
        lesson->n = 0;
        size_t bytes = count(lesson, &table, sample, n);
        if (bytes < least) {
            least = bytes;
            *symbols = table;
        }
        suggest_all(lesson, &table);
        choose(lesson, &table);
    }
}
