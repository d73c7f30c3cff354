/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of ids with counts, coded. Little-endian throughout:
 *
 *   0  2  ids, n
 *   2  2  the last id's high part, h
 *   4  1  bits of a low part, l: 0..63
 *   5  4  the four widths of counts, 0..64, ascending
 *   9     high parts: n + h bits, the bit of id i set at its high part + i
 *         low parts: n of l bits
 *         classes: n of 2 bits
 *         counts: n of as many bits as the width of their class
 *         8 bytes: the first id
 *
 * Each part begins with a byte, its last byte is filled up with zeros. The ids
 * are Elias-Fano: of an id less the first one the low l bits are kept as they
 * are, and the rest, which hardly grows from one to the next, as a bit behind
 * so many zeros. l is the logarithm of the mean gap, so that this takes two to
 * three bits and l.
 *
 * A count has the width of its class. The four widths are those that make the
 * list shortest. Of feeds with as many posts as a power law gives them that
 * came to 0.6 to 1.5 bytes a count; blocks of 16 to 64 packed counts with
 * exceptions to the same within 4 %, and bytes by fours (group varints) to 1.1
 * to 2.3 times as much. Unlike blocks it is found by counting bits where the
 * count of one id lies.
 *
 * Bits are read eight bytes at a time. The first id stands at the end so that
 * this never passes it. */
#include "lists/coded.h"

#include "base/assert.h"
#include "base/bytes.h"

#include <string.h>

enum {
    HEAD_BYTES = 9,
    TAIL_BYTES = 8,
    WORD_BITS = 64,
    WORD_BYTES = 8,
    LOW_BITS_MAX = 63,
    FEW_BITS = 56, /* see get_few_bits */
    CLASS_BITS = 2,
    WORD_CLASSES = WORD_BITS / CLASS_BITS
};

#define CLASS_LOW UINT64_C(0x5555555555555555)

static uint64_t
load(const uint8_t *at)
{
    return bytes_get_u64(at);
}

/* The lowest n bits set: 0..64. */
static inline uint64_t
ones(unsigned n)
{
    return n == WORD_BITS ? UINT64_MAX : (UINT64_C(1) << n) - 1;
}

/* n bits, 0..64, from bit `at` on. Eight bytes behind the last may be read. */
static inline uint64_t
get_bits(const uint8_t *bytes, uint64_t at, unsigned n)
{
    const uint8_t *from = bytes + at / 8;
    unsigned skip = (unsigned)(at % 8);
    uint64_t word = load(from) >> skip;

    if (skip + n > WORD_BITS) {
        word |= (uint64_t)from[WORD_BYTES] << (WORD_BITS - skip);
    }
    return word & ones(n);
}

/* The same of at most so many bits that the eight bytes have them. */
static inline uint64_t
get_few_bits(const uint8_t *bytes, uint64_t at, unsigned n)
{
    return load(bytes + at / 8) >> at % 8 & ((UINT64_C(1) << n) - 1);
}

/* Puts them where all is zero still. */
static inline void
put_bits(uint8_t *bytes, uint64_t at, unsigned n, uint64_t value)
{
    uint8_t *to = bytes + at / 8;
    unsigned skip = (unsigned)(at % 8);

    ASSERT((value & ~ones(n)) == 0);
    bytes_put_u64(to, load(to) | value << skip);
    if (skip + n > WORD_BITS) {
        to[WORD_BYTES] |= (uint8_t)(value >> (WORD_BITS - skip));
    }
}

static inline size_t
bytes_of(uint64_t bits)
{
    return (size_t)((bits + 7) / 8);
}

/* Adds up how many of the classes in the word, of which n count, are which. */
static inline void
count_classes(uint64_t word, unsigned n, uint32_t *out)
{
    uint64_t valid = CLASS_LOW & ones(n * CLASS_BITS);
    uint64_t low = word & valid;
    uint64_t high = word >> 1 & valid;
    unsigned both = (unsigned)__builtin_popcountll(low & high);
    unsigned n_low = (unsigned)__builtin_popcountll(low);
    unsigned n_high = (unsigned)__builtin_popcountll(high);

    out[3] += both;
    out[2] += n_high - both;
    out[1] += n_low - both;
    out[0] += n - n_low - n_high + both;
}

/* The bits of the first n counts. */
static uint64_t
count_bits(const struct coded *list, uint32_t n)
{
    const uint8_t *at = list->bytes + list->class_at;
    uint32_t number[CODED_WIDTHS] = {0};
    uint64_t bits = 0;
    uint32_t i = 0;

    for (; i + WORD_CLASSES <= n; i += WORD_CLASSES, at += WORD_BYTES) {
        count_classes(load(at), WORD_CLASSES, number);
    }
    if (i < n) {
        count_classes(load(at), n - i, number);
    }
    for (unsigned c = 0; c < CODED_WIDTHS; c++) {
        bits += (uint64_t)number[c] * list->width[c];
    }
    return bits;
}

/* True where the high parts are n bits set, of which the last one is the last
 * bit. */
static bool
has_high(const struct coded *list)
{
    const uint8_t *at = list->bytes + HEAD_BYTES;
    uint32_t left = list->n + list->high;
    uint32_t last = left - 1;
    uint32_t set = 0;

    if ((at[last / 8] >> last % 8 & 1) == 0) {
        return false;
    }
    for (; left >= WORD_BITS; left -= WORD_BITS, at += WORD_BYTES) {
        set += (uint32_t)__builtin_popcountll(load(at));
    }
    set += (uint32_t)__builtin_popcountll(load(at) & ones(left));
    return set == list->n;
}

bool
coded_open(struct coded *list, const void *bytes, size_t len)
{
    const uint8_t *at = bytes;

    if (len < HEAD_BYTES + TAIL_BYTES + 1) {
        return false;
    }
    *list = (struct coded){.bytes = at,
        .first = load(at + len - TAIL_BYTES),
        .n = bytes_get_u16(at),
        .high = bytes_get_u16(at + 2),
        .low_bits = at[4]};
    memcpy(list->width, at + 5, sizeof list->width);
    if (list->n == 0 || list->n > CODED_IDS_MAX ||
        list->low_bits > LOW_BITS_MAX || list->high > 2 * list->n) {
        return false;
    }
    for (unsigned c = 0; c < CODED_WIDTHS; c++) {
        if (list->width[c] > WORD_BITS) {
            return false;
        }
    }
    list->low_at = HEAD_BYTES + bytes_of(list->n + list->high);
    list->class_at =
        list->low_at + bytes_of((uint64_t)list->n * list->low_bits);
    list->count_at = list->class_at + bytes_of((uint64_t)list->n * CLASS_BITS);
    return list->count_at + TAIL_BYTES <= len && has_high(list) &&
        list->count_at + bytes_of(count_bits(list, list->n)) + TAIL_BYTES ==
        len;
}

/* coded_next, made twice: are all numbers of FEW_BITS at most? */
static inline __attribute__((always_inline)) unsigned
next(const struct coded *list, struct coded_walk *walk, uint64_t *id,
    uint64_t *count, bool are_few)
{
    const uint8_t *high = list->bytes + HEAD_BYTES;
    const uint8_t *low = list->bytes + list->low_at;
    const uint8_t *classes = list->bytes + list->class_at;
    const uint8_t *counts = list->bytes + list->count_at;
    unsigned low_bits = list->low_bits;
    uint32_t left = list->n - walk->i;
    unsigned n = left < CODED_BLOCK_IDS ? left : CODED_BLOCK_IDS;
    uint32_t word_at = walk->at / WORD_BITS * WORD_BITS;
    uint64_t word = load(high + word_at / 8) & ~ones(walk->at % WORD_BITS);
    uint64_t class_word = 0;
    uint64_t count_at = walk->count_at;
    uint64_t low_at = (uint64_t)walk->i * low_bits;
    uint32_t at = walk->at;
    const uint64_t first = list->first; /* id and count might be in list */
    uint8_t width_of_class[CODED_WIDTHS];

    memcpy(width_of_class, list->width, sizeof width_of_class);
    if (n == 0) {
        return 0;
    }
    ASSERT(walk->i < list->n && walk->i % CODED_BLOCK_IDS == 0);
    for (unsigned k = 0; k < n; k++) {
        uint32_t i = walk->i + k;

        while (word == 0) { /* there is one more, see has_high */
            word_at += WORD_BITS;
            word = load(high + word_at / 8);
        }
        uint32_t bit = word_at + (uint32_t)__builtin_ctzll(word);

        word &= word - 1;
        if (k % WORD_CLASSES == 0) {
            class_word = load(classes + i / (8 / CLASS_BITS));
        }
        unsigned width = width_of_class[class_word & (CODED_WIDTHS - 1)];

        class_word >>= CLASS_BITS;
        id[k] = first +
            ((uint64_t)(bit - i) << low_bits |
                (are_few ? get_few_bits : get_bits)(low, low_at, low_bits));
        count[k] =
            (are_few ? get_few_bits : get_bits)(counts, count_at, width);
        low_at += low_bits;
        count_at += width;
        at = bit + 1;
    }
    walk->i += n;
    walk->at = at;
    walk->count_at = count_at;
    return n;
}

unsigned
coded_next(const struct coded *list, struct coded_walk *walk, uint64_t *id,
    uint64_t *count)
{
    bool are_few = list->low_bits <= FEW_BITS;
    for (unsigned c = 0; c < CODED_WIDTHS; c++) {
        are_few = are_few && list->width[c] <= FEW_BITS;
    }
    return are_few ? next(list, walk, id, count, true)
                   : next(list, walk, id, count, false);
}

/* The place of the first bit of the ids with that high part, which is not above
 * the last one's: behind as many zeros. */
static uint32_t
find_high(const struct coded *list, uint64_t high)
{
    const uint8_t *at = list->bytes + HEAD_BYTES;
    uint32_t place = 0;

    for (;;) { /* there are so many: the last one has a bit behind them */
        uint64_t zeros = ~load(at + place / 8);
        unsigned n = (unsigned)__builtin_popcountll(zeros);

        if (n < high) {
            high -= n;
            place += WORD_BITS;
            continue;
        }
        for (; high > 0; high--) {
            place = place / WORD_BITS * WORD_BITS +
                (uint32_t)__builtin_ctzll(zeros) + 1;
            zeros &= zeros - 1;
        }
        return place;
    }
}

bool
coded_find(const struct coded *list, uint64_t id, uint64_t *count)
{
    const uint8_t *bits = list->bytes + HEAD_BYTES;
    uint64_t high = (id - list->first) >> list->low_bits;
    uint64_t low = (id - list->first) & ones(list->low_bits);

    if (id < list->first || high > list->high) {
        return false;
    }
    uint32_t place = find_high(list, high);
    uint32_t end = list->n + list->high;

    for (; place < end && (bits[place / 8] >> place % 8 & 1) != 0; place++) {
        uint32_t i = place - (uint32_t)high;
        uint64_t at = (uint64_t)i * list->low_bits;

        if (get_bits(list->bytes + list->low_at, at, list->low_bits) == low) {
            unsigned class_ = (unsigned)get_bits(
                list->bytes + list->class_at, i * CLASS_BITS, CLASS_BITS);

            *count = get_bits(list->bytes + list->count_at,
                count_bits(list, i), list->width[class_]);
            return true;
        }
    }
    return false;
}

size_t
coded_bytes_max(unsigned n)
{
    return HEAD_BYTES + bytes_of(3 * (uint64_t)n) +
        bytes_of((uint64_t)n * LOW_BITS_MAX) +
        bytes_of((uint64_t)n * CLASS_BITS) + (size_t)n * WORD_BYTES +
        2 * TAIL_BYTES;
}

static unsigned
width_of(uint64_t count)
{
    return count == 0 ? 0 : WORD_BITS - (unsigned)__builtin_clzll(count);
}

/* Chooses the widths with which the counts take the fewest bits: among those
 * that counts have, of which the largest is one. bits[c][i]: the fewest for the
 * counts of the first i such widths with c + 1 of them. */
static void
choose_widths(const uint64_t *count, unsigned n, uint8_t *out)
{
    uint32_t number[WORD_BITS + 1] = {0};
    uint32_t below[WORD_BITS + 2] = {0}; /* counts of the first i widths */
    uint8_t width[WORD_BITS + 1];
    uint32_t bits[CODED_WIDTHS][WORD_BITS + 2];
    uint8_t from[CODED_WIDTHS][WORD_BITS + 2] = {{0}};
    unsigned m = 0;

    for (unsigned i = 0; i < n; i++) {
        number[width_of(count[i])]++;
    }
    for (unsigned w = 0; w <= WORD_BITS; w++) {
        if (number[w] > 0) {
            width[m] = (uint8_t)w;
            below[m + 1] = below[m] + number[w];
            m++;
        }
    }
    for (unsigned i = 1; i <= m; i++) {
        bits[0][i] = below[i] * width[i - 1];
    }
    for (unsigned c = 1; c < CODED_WIDTHS; c++) {
        for (unsigned i = 1; i <= m; i++) {
            bits[c][i] = bits[0][i];
            for (unsigned j = 1; j < i; j++) {
                uint32_t sum =
                    bits[c - 1][j] + (below[i] - below[j]) * width[i - 1];

                if (sum < bits[c][i]) {
                    bits[c][i] = sum;
                    from[c][i] = (uint8_t)j;
                }
            }
        }
    }
    for (unsigned c = CODED_WIDTHS; c-- > 0;) {
        out[c] = m == 0 ? 0 : width[m - 1];
        m = m == 0 ? 0 : from[c][m];
    }
}

static unsigned
class_of(uint64_t count, const uint8_t *width)
{
    unsigned w = width_of(count);
    unsigned class_ = 0;

    while (width[class_] < w) {
        class_++;
    }
    ASSERT(class_ < CODED_WIDTHS);
    return class_;
}

/* How many bits of an id are its low part: where the high ones come to less
 * than 2 an id. */
static unsigned
low_bits_of(uint64_t span, unsigned n)
{
    unsigned bits = 0;

    while (span >> bits >= 2 * (uint64_t)n) {
        bits++;
    }
    return bits;
}

size_t
coded_make(const uint64_t *id, const uint64_t *count, unsigned n, uint8_t *out)
{
    struct coded list = {.n = n};
    uint64_t count_at = 0;

    ASSERT(n >= 1 && n <= CODED_IDS_MAX);
    list.low_bits = (uint8_t)low_bits_of(id[n - 1] - id[0], n);
    list.high = (uint32_t)((id[n - 1] - id[0]) >> list.low_bits);
    choose_widths(count, n, list.width);
    list.low_at = HEAD_BYTES + bytes_of(n + list.high);
    list.class_at = list.low_at + bytes_of((uint64_t)n * list.low_bits);
    list.count_at = list.class_at + bytes_of((uint64_t)n * CLASS_BITS);
    ASSERT(coded_bytes_max(CODED_IDS_MAX) <= CODED_BYTES_MAX);
    memset(out, 0, coded_bytes_max(n));
    bytes_put_u16(out, (uint16_t)n);
    bytes_put_u16(out + 2, (uint16_t)list.high);
    out[4] = list.low_bits;
    memcpy(out + 5, list.width, sizeof list.width);
    for (unsigned i = 0; i < n; i++) {
        uint64_t part = id[i] - id[0];
        uint64_t place = (part >> list.low_bits) + i;
        unsigned class_ = class_of(count[i], list.width);
        unsigned width = list.width[class_];

        ASSERT(i == 0 || id[i] > id[i - 1]);
        out[HEAD_BYTES + place / 8] |= (uint8_t)(1U << place % 8);
        put_bits(out + list.low_at, (uint64_t)i * list.low_bits, list.low_bits,
            part & ones(list.low_bits));
        put_bits(
            out + list.class_at, (uint64_t)i * CLASS_BITS, CLASS_BITS, class_);
        put_bits(out + list.count_at, count_at, width, count[i]);
        count_at += width;
    }
    size_t len = list.count_at + bytes_of(count_at);

    bytes_put_u64(out + len, id[0]);
    ASSERT(len + 2 * TAIL_BYTES <= coded_bytes_max(n));
    return len + TAIL_BYTES;
}

void
coded_decode(const struct coded *list, struct coded_room *room)
{
    struct coded_walk walk = {0};
    unsigned n;

    room->n = 0;
    do {
        n = coded_next(list, &walk, &room->id[room->n], &room->count[room->n]);
        room->n += n;
    } while (n == CODED_BLOCK_IDS);
    ASSERT(room->n == list->n);
}

/* The place of the first id that is not below. */
static unsigned
place_of(const struct coded_room *room, uint64_t id)
{
    unsigned low = 0, high = room->n;

    ASSERT(room->n <= CODED_IDS_MAX);
    while (low < high) {
        unsigned mid = (low + high) / 2;

        if (room->id[mid] < id) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

bool
coded_put(struct coded_room *room, uint64_t id, uint64_t count)
{
    unsigned at = place_of(room, id);
    size_t behind = (room->n - at) * sizeof *room->id;

    if (at < room->n && room->id[at] == id) {
        room->count[at] = count;
        return false;
    }
    memmove(&room->id[at + 1], &room->id[at], behind);
    memmove(&room->count[at + 1], &room->count[at], behind);
    room->id[at] = id;
    room->count[at] = count;
    room->n++;
    return true;
}

bool
coded_remove(struct coded_room *room, uint64_t id)
{
    unsigned at = place_of(room, id);

    if (at == room->n || room->id[at] != id) {
        return false;
    }
    size_t behind = (room->n - at - 1) * sizeof *room->id;

    memmove(&room->id[at], &room->id[at + 1], behind);
    memmove(&room->count[at], &room->count[at + 1], behind);
    room->n--;
    return true;
}
