/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds what the ids of a block have in common: their shape.
 *
 * Ids that are given out by a rule do not use all of their bits. Two rules
 * cover what is known:
 *
 * - All distances are multiples of a stride (a sequence in steps, or a time
 *   in the upper bits and nothing below): the greatest common divisor.
 * - The low bits have few values: time << 22 | worker << 12 | number has one
 *   or two for each worker. Those are listed, and the low bits replaced by
 *   their place in the list, so that neighbouring places are neighbouring
 *   ranks and the gaps shrink to what is information.
 *
 * How many low bits that is follows from a sample: it is sorted by the bits
 * read backwards, and then the number of different values of the low s bits,
 * for all s at once, is how many neighbours differ in their first s. Lows are
 * taken only where the gaps with them and the list itself cost less than the
 * gaps without. */
#include "cold/ids.h"

#include "base/assert.h"

#include <string.h>

enum {
    SAMPLE = 256,
    SAMPLE_MIN = 32,
    /* more different values than that, in the sample, and the list would
     * hardly end */
    SAMPLE_LOWS_MAX = SAMPLE * 3 / 4,
    LOW_BITS_MAX = 56,
    LOW_TRIES_MAX = 3,
    LOW_COST_BITS = 16, /* of a low in the list, about */
    SLOTS = 1024        /* of the hash of lows; a power of two */
};

static uint64_t
reversed(uint64_t bits)
{
    bits = (bits >> 1 & UINT64_C(0x5555555555555555)) |
        (bits & UINT64_C(0x5555555555555555)) << 1;
    bits = (bits >> 2 & UINT64_C(0x3333333333333333)) |
        (bits & UINT64_C(0x3333333333333333)) << 2;
    bits = (bits >> 4 & UINT64_C(0x0f0f0f0f0f0f0f0f)) |
        (bits & UINT64_C(0x0f0f0f0f0f0f0f0f)) << 4;
    return __builtin_bswap64(bits);
}

/* Shell's sort with the gaps of Ciura: short, and quick for few. */
static void
sort(uint64_t *value, size_t n)
{
    static const uint16_t step[] = {132, 57, 23, 10, 4, 1};

    for (size_t s = 0; s < sizeof step / sizeof *step; s++) {
        for (size_t i = step[s]; i < n; i++) {
            uint64_t moved = value[i];
            size_t at = i;

            for (; at >= step[s] && value[at - step[s]] > moved;
                 at -= step[s]) {
                value[at] = value[at - step[s]];
            }
            value[at] = moved;
        }
    }
}

/* The logarithm to base 2 in sixteenths, between powers of two in a straight
 * line. */
static size_t
log_sixteenths(size_t value)
{
    unsigned whole = bits_width(value) - 1;

    return 16 * (size_t)whole + (16 * value >> whole) - 16;
}

/* How many low bits to try, at most `most`; 0 where none look like having few
 * values. */
static unsigned
guess_low_bits(const uint64_t *id, size_t n, unsigned most)
{
    uint64_t sample[SAMPLE];
    uint16_t differ[65] = {0}; /* neighbours that are alike in so many bits */
    size_t n_sample = n < SAMPLE ? n : SAMPLE;
    unsigned best = 0;
    size_t best_gain = 0, values = 1;

    if (n < SAMPLE_MIN) {
        return 0;
    }
    for (size_t i = 0; i < n_sample; i++) {
        sample[i] = reversed(id[i * n / n_sample]);
    }
    sort(sample, n_sample);
    for (size_t i = 1; i < n_sample; i++) {
        uint64_t other = sample[i] ^ sample[i - 1];

        differ[other == 0 ? 64 : __builtin_clzll(other)]++;
    }
    for (unsigned s = 1; s <= most; s++) {
        size_t cost, gain;

        values += differ[s - 1];
        if (values > n_sample * 3 / 4 || values > SAMPLE_LOWS_MAX) {
            break;
        }
        gain = n * (16 * s - log_sixteenths(values)) / 16;
        cost = values * LOW_COST_BITS;
        if (gain > cost + best_gain) {
            best_gain = gain - cost;
            best = s;
        }
    }
    return best;
}

/* A hash from low bits to their number: 0 is empty. */
struct lows {
    uint64_t key[SLOTS];
    uint16_t number[SLOTS]; /* + 1 */
};

static unsigned
slot_of(const struct lows *lows, uint64_t low)
{
    unsigned at = (unsigned)(low * UINT64_C(0x9e3779b97f4a7c15) >> 54) % SLOTS;

    while (lows->number[at] != 0 && lows->key[at] != low) {
        at = (at + 1) % SLOTS;
    }
    return at;
}

/* Lists the low bits of all ids; false where there are too many. */
static bool
list_lows(
    struct lows *lows, const uint64_t *id, size_t n, struct ids_shape *shape)
{
    memset(lows->number, 0, sizeof lows->number);
    shape->n_lows = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t low = id[i] & bits_mask(shape->low_bits);
        unsigned at = slot_of(lows, low);

        if (lows->number[at] != 0) {
            continue;
        }
        if (shape->n_lows == IDS_LOWS_MAX) {
            return false;
        }
        shape->low[shape->n_lows++] = low;
        lows->key[at] = low;
        lows->number[at] = 1;
    }
    sort(shape->low, shape->n_lows);
    for (unsigned i = 0; i < shape->n_lows; i++) {
        lows->number[slot_of(lows, shape->low[i])] = (uint16_t)(i + 1);
    }
    return true;
}

static uint64_t
common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Divides n distances by their greatest common divisor, less one. */
static void
stride_out(struct ids_shape *shape, uint64_t *gap, size_t n)
{
    uint64_t stride = 0;

    for (size_t i = 0; i < n && stride != 1; i++) {
        stride = common_divisor(gap[i], stride);
    }
    shape->stride = stride == 0 ? 1 : stride;
    ASSERT(n == 0 || gap[0] >= shape->stride);
    if (shape->stride == 1) {
        for (size_t i = 0; i < n; i++) {
            gap[i]--;
        }
        return;
    }
    if ((stride & (stride - 1)) == 0) {
        unsigned shift = (unsigned)__builtin_ctzll(stride);

        for (size_t i = 0; i < n; i++) {
            gap[i] = (gap[i] >> shift) - 1;
        }
        return;
    }
    for (size_t i = 0; i < n; i++) {
        gap[i] = gap[i] / stride - 1;
    }
}

static void
plain_gaps(
    const uint64_t *id, size_t n, struct ids_shape *shape, uint64_t *gap)
{
    shape->low_bits = 0;
    shape->n_lows = 0;
    for (size_t i = 1; i < n; i++) {
        gap[i - 1] = id[i] - id[i - 1];
    }
    stride_out(shape, gap, n - 1);
}

/* Gaps with lows; false where there are too many of those. */
static bool
low_gaps(const uint64_t *id, size_t n, struct ids_shape *shape, uint64_t *gap)
{
    struct lows lows;
    uint64_t before = 0;

    if (!list_lows(&lows, id, n, shape)) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t low = id[i] & bits_mask(shape->low_bits);
        uint64_t rank = (id[i] >> shape->low_bits) * shape->n_lows +
            lows.number[slot_of(&lows, low)] - 1;

        if (i > 0) {
            ASSERT(rank > before); /* as ids do */
            gap[i - 1] = rank - before;
        }
        before = rank;
    }
    stride_out(shape, gap, n - 1);
    return true;
}

/* Gaps with as many low bits as seem best, or with fewer where the sample
 * showed less values than there are. */
static bool
find_lows(const uint64_t *id, size_t n, struct ids_shape *shape, uint64_t *gap)
{
    unsigned most = LOW_BITS_MAX;

    for (unsigned tries = 0; tries < LOW_TRIES_MAX; tries++) {
        shape->low_bits = guess_low_bits(id, n, most);
        if (shape->low_bits == 0) {
            return false;
        }
        if (low_gaps(id, n, shape, gap)) {
            return true;
        }
        most = shape->low_bits - 1;
    }
    return false;
}

void
ids_plan(struct ids_work *work, const uint64_t *id, size_t n,
    struct ids_shape *shape, uint64_t *gap)
{
    struct ids_shape other;
    uint8_t head[IDS_HEAD_BYTES_MAX];
    uint64_t cost, other_cost;

    ASSERT(n >= 1 && n <= SERIES_MAX);
    plain_gaps(id, n, shape, gap);
    if (!find_lows(id, n, &other, work->gap)) {
        return;
    }
    cost = series_cost(work->series, gap, n - 1) +
        8 * (uint64_t)ids_put_shape(shape, head);
    other_cost = series_cost(work->series, work->gap, n - 1) +
        8 * (uint64_t)ids_put_shape(&other, head);
    ASSERT(other.stride >= 1 && other.n_lows >= 1);
    if (other_cost < cost) {
        *shape = other;
        memcpy(gap, work->gap, (n - 1) * sizeof *gap);
    }
}

size_t
ids_put_shape(const struct ids_shape *shape, uint8_t *out)
{
    uint8_t *at = out;

    ASSERT(shape->stride >= 1 && shape->low_bits <= LOW_BITS_MAX);
    ASSERT((shape->low_bits > 0) == (shape->n_lows > 0));
    ASSERT(shape->n_lows <= IDS_LOWS_MAX);
    at += bytes_put_varint(at, shape->stride);
    *at++ = (uint8_t)shape->low_bits;
    if (shape->low_bits > 0) {
        uint64_t next = 0;

        *at++ = (uint8_t)(shape->n_lows - 1);
        for (unsigned i = 0; i < shape->n_lows; i++) {
            ASSERT(shape->low[i] >= next); /* ascending */
            at += bytes_put_varint(at, shape->low[i] - next);
            next = shape->low[i] + 1;
        }
    }
    ASSERT(at - out <= IDS_HEAD_BYTES_MAX);
    return (size_t)(at - out);
}

bool
ids_get_shape(const uint8_t **in, const uint8_t *end, struct ids_shape *shape)
{
    const uint8_t *at = *in;
    uint64_t next = 0;

    if (!bytes_get_varint(&at, end, &shape->stride) || shape->stride == 0 ||
        at == end) {
        return false;
    }
    shape->low_bits = *at++;
    shape->n_lows = 0;
    if (shape->low_bits > 0) {
        if (shape->low_bits > LOW_BITS_MAX || at == end) {
            return false;
        }
        unsigned n = *at++ + 1U;
        for (; shape->n_lows < n; shape->n_lows++) {
            uint64_t distance, top = UINT64_C(1) << shape->low_bits;

            if (!bytes_get_varint(&at, end, &distance) || distance >= top ||
                next + distance >= top) {
                return false;
            }
            ASSERT(shape->n_lows < IDS_LOWS_MAX);
            shape->low[shape->n_lows] = next + distance;
            next += distance + 1;
        }
    }
    *in = at;
    return true;
}

/* The place of a low among the lows; n_lows where it is none. */
static unsigned
place_of(const struct ids_shape *shape, uint64_t low)
{
    unsigned from = 0, n = shape->n_lows;

    while (n > 0) {
        unsigned half = n / 2;

        if (shape->low[from + half] < low) {
            from += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return from < shape->n_lows && shape->low[from] == low ? from
                                                           : shape->n_lows;
}

static bool
lows_of_gaps(const struct ids_shape *shape, uint64_t first, size_t n,
    const uint64_t *gap, uint64_t *id)
{
    uint64_t most = UINT64_MAX / shape->stride;
    uint64_t high_most = UINT64_MAX >> shape->low_bits;
    uint64_t high = first >> shape->low_bits;
    uint64_t lows = shape->n_lows;
    uint64_t bad = 0;
    uint64_t place = place_of(shape, first & bits_mask(shape->low_bits));

    ASSERT(shape->stride >= 1 && lows >= 1 && lows <= IDS_LOWS_MAX);
    if (place == lows) {
        return false;
    }
    id[0] = first;
    for (size_t i = 1; i < n; i++) {
        uint64_t distance = (gap[i - 1] + 1) * shape->stride;
        uint64_t up = 0;

        bad |= gap[i - 1] >= most;
        if (distance >= lows) {
            up = distance <= UINT32_MAX ? (uint32_t)distance / (uint32_t)lows
                                        : distance / lows;
            distance -= up * lows;
        }
        place += distance;
        if (place >= lows) {
            place -= lows;
            up++;
        }
        bad |= up > high_most - high;
        high += up;
        id[i] = high << shape->low_bits | shape->low[place];
        high &= high_most; /* of what is bad, too */
    }
    return bad == 0;
}

bool
ids_of_gaps(const struct ids_shape *shape, uint64_t first, size_t n,
    const uint64_t *gap, uint64_t *id)
{
    uint64_t most = UINT64_MAX / shape->stride;
    uint64_t before = first;
    uint64_t bad = 0;

    ASSERT(n >= 1 && n <= SERIES_MAX && shape->stride >= 1);
    if (shape->low_bits > 0) {
        return lows_of_gaps(shape, first, n, gap, id);
    }
    id[0] = first;
    if (shape->stride == 1) {
        for (size_t i = 1; i < n; i++) {
            uint64_t next = before + gap[i - 1] + 1;

            bad |= (gap[i - 1] == UINT64_MAX) | (next <= before);
            id[i] = next;
            before = next;
        }
        return bad == 0;
    }
    for (size_t i = 1; i < n; i++) {
        uint64_t next = before + (gap[i - 1] + 1) * shape->stride;

        bad |= (gap[i - 1] >= most) | (next <= before);
        id[i] = next;
        before = next;
    }
    return bad == 0;
}

bool
ids_distance(const struct ids_shape *shape, uint64_t first, uint64_t id,
    uint64_t *strides)
{
    uint64_t distance;

    ASSERT(id >= first);
    if (shape->low_bits == 0) {
        distance = id - first;
    } else {
        uint64_t mask = bits_mask(shape->low_bits);
        unsigned from = place_of(shape, first & mask);
        unsigned to = place_of(shape, id & mask);

        if (from == shape->n_lows || to == shape->n_lows) {
            return false;
        }
        /* at most 2^64: as many ranks as ids at most */
        distance = ((id >> shape->low_bits) - (first >> shape->low_bits)) *
                shape->n_lows +
            to - from;
    }
    if (shape->stride > 1 && distance % shape->stride != 0) {
        return false;
    }
    *strides = distance / shape->stride;
    return true;
}
