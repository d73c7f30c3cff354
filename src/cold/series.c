/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads series of numbers, and describes the format.
 *
 * A number's class is its length in bits, as in the code of Elias ("Universal
 * codeword sets", 1975), and the bits below its highest one are written as they
 * are. Classes are not written number by number but as a tree of planes, a
 * wavelet tree (Grossi, Gupta and Vitter, 2003) whose shape is that of the
 * cheapest code for the classes: a node has a bit for each of its numbers that
 * says whether it is in the right half of the node's classes, then its left
 * half, then its right half; a leaf has the rest of its numbers' bits.
 *
 *            1 0 0 1 0 1 1 0   which are above 0
 *           /               \
 *     the zeros            1 0 0 1   which are above 1
 *     (nothing)           /       \
 *                    the ones   the others: 2 and 3: a bit each
 *
 * A plane has a bit a number, or, where ones or zeros are rare, the gaps
 * between those in Rice's code: so a column that is nearly all zeros costs what
 * the places of the others cost.
 *
 * All of it takes as many bits as a prefix code of the classes, and yet number
 * i is found by counting ones: from i and the ones before it follows the place
 * in the child, and so on down. No number before it is decoded.
 *
 * What can go wrong: bits that are no series. The reader trusts nothing: what
 * it takes is there, a child has at least one number (so there are at most n
 * nodes and the depth is bounded by the classes), the counts add up. */
#include "cold/series_priv.h"

#include "base/assert.h"
#include "cold/join.h"
#include "cold/rice.h"

#include <string.h>

/* A plane as it stands in the bits. */
struct plane {
    bool is_sparse;
    bool is_one_rare;
    unsigned k;
    size_t n, rare, ones;
    struct bits_in bits; /* of it, or of the gaps */
};

static bool
get_classes(struct bits_in *in, struct series_classes *classes)
{
    uint64_t first, span, is_there;

    if (!bits_get(in, SERIES_CLASS_BITS, &first) ||
        !bits_get(in, SERIES_CLASS_BITS, &span) ||
        first + span >= SERIES_CLASSES) {
        return false;
    }
    classes->n = 0;
    classes->of[classes->n++] = (uint8_t)first;
    for (uint64_t c = first + 1; c < first + span; c++) {
        if (!bits_get(in, 1, &is_there)) {
            return false;
        }
        if (is_there) {
            classes->of[classes->n++] = (uint8_t)c;
        }
    }
    if (span > 0) {
        classes->of[classes->n++] = (uint8_t)(first + span);
    }
    ASSERT(classes->n <= SERIES_CLASSES);
    return true;
}

bool
series_is_rice(struct bits_in *in, unsigned *k)
{
    struct bits_in at = *in;
    uint64_t is_rice, parameter;

    if (!bits_get(&at, 1, &is_rice) || !is_rice ||
        !bits_get(&at, SERIES_K_BITS, &parameter)) {
        return false;
    }
    *k = (unsigned)parameter;
    *in = at;
    return true;
}

/* Where a node with so many leaves is divided: leaves on the left, 1 to
 * leaves - 1; 0 where there is no such place. */
static unsigned
get_split(struct bits_in *in, unsigned leaves)
{
    uint64_t split;

    if (!bits_get(in, series__split_bits(leaves), &split) ||
        split + 2 > leaves) {
        return 0;
    }
    return (unsigned)split + 1;
}

#if defined(__x86_64__)
/* The same as bits_rank; counting is one instruction. */
__attribute__((target("popcnt"))) static size_t
rank_popcnt(const uint8_t *in, size_t at, size_t n)
{
    size_t ones = 0;

    for (; n >= 64; n -= 64, at += 64) {
        ones += (unsigned)__builtin_popcountll(bits_peek(in, at));
    }
    if (n > 0) {
        ones += (unsigned)__builtin_popcountll(
            bits_peek(in, at) & bits_mask((unsigned)n));
    }
    return ones;
}
#endif

/* Ones among n bits from bit at on: what a lookup spends a third of its time
 * with, or, with an instruction for it, a sixth. */
static size_t
rank(const uint8_t *in, size_t at, size_t n)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("popcnt")) {
        return rank_popcnt(in, at, n);
    }
#endif
    return bits_rank(in, at, n);
}

/* Takes the plane of n numbers, with in behind it. */
static bool
get_plane(struct bits_in *in, size_t n, struct plane *plane)
{
    uint64_t flag, rare, k;

    *plane = (struct plane){.n = n};
    if (!bits_get(in, 1, &flag)) {
        return false;
    }
    if (!flag) {
        plane->bits = *in;
        if (!bits_left(in, n)) {
            return false;
        }
        plane->ones = rank(in->in, in->at, n);
        in->at += n;
        return plane->ones > 0 && plane->ones < n;
    }
    if (!bits_get(in, 1, &flag) || !bits_get(in, bits_width(n), &rare) ||
        !bits_get(in, SERIES_PLACE_K_BITS, &k) || rare == 0 || rare >= n) {
        return false;
    }
    plane->is_sparse = true;
    plane->is_one_rare = flag == 1;
    plane->rare = (size_t)rare;
    plane->ones = flag == 1 ? (size_t)rare : n - (size_t)rare;
    plane->k = (unsigned)k;
    plane->bits = *in;
    return rice_skip(in, plane->rare, plane->k);
}

/* What leaf i of n numbers takes. */
static bool
get_leaf(struct bits_in *in, unsigned class, uint64_t *value, size_t n)
{
    unsigned width = series__rest_bits(class);
    uint64_t top = class == 0 ? 0 : series__least(class);
    uint64_t mask = bits_mask(width);
    size_t at = in->at;

    if (!bits_left(in, (uint64_t)n * width)) {
        return false;
    }
    in->at += n * width;
    if (width == 0) {
        for (size_t i = 0; i < n; i++) {
            value[i] = top;
        }
    } else if (width <= 57) {
        for (size_t i = 0; i < n; i++, at += width) {
            value[i] = top | (bytes_get_u64(in->in + at / 8) >> at % 8 & mask);
        }
    } else {
        for (size_t i = 0; i < n; i++, at += width) {
            value[i] = top | (bits_peek(in->in, at) & mask);
        }
    }
    return true;
}

/* Brings the zeros (at the front of from) and the ones (behind them) into the
 * order of the plane. */
static void
join_dense(const struct plane *plane, const uint64_t *from, uint64_t *to)
{
    join_by_plane(plane->bits.in, plane->bits.at, plane->n, from,
        plane->n - plane->ones, to);
}

/* The same for a sparse one, whose gaps are read into gap (room for rare). */
static bool
join_sparse(const struct plane *plane, const uint64_t *from, uint64_t *gap,
    uint64_t *to)
{
    struct bits_in in = plane->bits;
    size_t zeros = plane->n - plane->ones;
    const uint64_t *rare = plane->is_one_rare ? from + zeros : from;
    const uint64_t *other = plane->is_one_rare ? from : from + zeros;
    size_t left = plane->n - plane->rare; /* others */

    ASSERT(plane->rare > 0 && plane->rare < plane->n);
    if (!rice_get(&in, gap, plane->rare, plane->k)) {
        return false;
    }
    /* to may be where the gaps are: they are read before they are written over
     * (gap[i] lies at or behind the place of the last number before it) */
    for (size_t i = 0; i < plane->rare; i++) {
        size_t n = (size_t)gap[i];

        if (gap[i] > left) {
            return false;
        }
        for (size_t j = 0; j < n; j++) {
            to[j] = other[j];
        }
        to[n] = rare[i];
        to += n + 1;
        other += n;
        left -= n;
    }
    memcpy(to, other, left * sizeof *to);
    return true;
}

struct reader {
    struct bits_in in;
    struct series_classes classes;
};

/* Takes the node of the leaves first..first+leaves-1 and n numbers into value;
 * spare has room for n. The depth is at most the number of classes. */
static bool
get_node(struct reader *reader, unsigned first, unsigned leaves, size_t n,
    uint64_t *value, uint64_t *spare)
{
    struct plane plane;
    unsigned left;
    size_t zeros;

    ASSERT(leaves >= 1 && first + leaves <= reader->classes.n);
    if (leaves == 1) {
        return get_leaf(&reader->in, reader->classes.of[first], value, n);
    }
    left = get_split(&reader->in, leaves);
    if (left == 0 || !get_plane(&reader->in, n, &plane)) {
        return false;
    }
    ASSERT(plane.ones > 0 && plane.ones < n && left < leaves);
    zeros = n - plane.ones;
    if (!get_node(reader, first, left, zeros, spare, value) ||
        !get_node(reader, first + left, leaves - left, plane.ones,
            spare + zeros, value + zeros)) {
        return false;
    }
    if (plane.is_sparse) {
        /* gaps at the end of value, in front of which all others fit */
        return join_sparse(&plane, spare, value + n - plane.rare, value);
    }
    join_dense(&plane, spare, value);
    return true;
}

bool
series_get(struct bits_in *in, uint64_t *value, uint64_t *spare, size_t n)
{
    struct reader reader = {.in = *in};
    uint64_t is_rice;
    unsigned k;
    bool good;

    ASSERT(n <= SERIES_MAX);
    if (n == 0) {
        return true;
    }
    if (series_is_rice(in, &k)) {
        return rice_get(in, value, n, k);
    }
    good = bits_get(&reader.in, 1, &is_rice) && !is_rice &&
        get_classes(&reader.in, &reader.classes) &&
        get_node(&reader, 0, reader.classes.n, n, value, spare);
    *in = reader.in;
    return good;
}

/* Moves behind the node of leaves first..first+leaves-1. */
static bool
skip_node(struct reader *reader, unsigned first, unsigned leaves, size_t n)
{
    struct plane plane;
    unsigned left;

    while (leaves > 1) {
        left = get_split(&reader->in, leaves);
        if (left == 0 || !get_plane(&reader->in, n, &plane) ||
            !skip_node(reader, first, left, n - plane.ones)) {
            return false;
        }
        first += left;
        leaves -= left;
        n = plane.ones;
    }
    uint64_t bits = (uint64_t)n * series__rest_bits(reader->classes.of[first]);
    if (!bits_left(&reader->in, bits)) {
        return false;
    }
    reader->in.at += bits;
    return true;
}

/* Whether number i of the plane is a one, and how many ones are before it. */
static bool
look_up(const struct plane *plane, size_t i, bool *is_one, size_t *ones)
{
    struct bits_in in = plane->bits;
    size_t rare;
    uint64_t place;

    if (!plane->is_sparse) {
        *is_one = (bits_peek(in.in, in.at + i) & 1) != 0;
        *ones = rank(in.in, in.at, i);
        return true;
    }
    /* gaps and the ones themselves add up to the place behind the last */
    if (!rice_seek(&in, plane->rare, plane->k, i + 1, &rare, &place)) {
        return false;
    }
    *is_one = (rare < plane->rare && place == i + 1) == plane->is_one_rare;
    *ones = plane->is_one_rare ? rare : i - rare;
    return rare <= i;
}

bool
series_at(const struct bits_in *in, size_t n, size_t i, uint64_t *out)
{
    struct reader reader = {.in = *in};
    unsigned first = 0, leaves, k;
    uint64_t is_rice;

    ASSERT(i < n && n <= SERIES_MAX);
    if (series_is_rice(&reader.in, &k)) {
        return rice_at(&reader.in, n, k, i, out);
    }
    if (!bits_get(&reader.in, 1, &is_rice) || is_rice ||
        !get_classes(&reader.in, &reader.classes)) {
        return false;
    }
    leaves = reader.classes.n;
    while (leaves > 1) {
        struct plane plane;
        unsigned left = get_split(&reader.in, leaves);
        size_t ones;
        bool is_one;

        if (left == 0 || !get_plane(&reader.in, n, &plane) ||
            !look_up(&plane, i, &is_one, &ones)) {
            return false;
        }
        if (!is_one) {
            leaves = left;
            i -= ones;
            n -= plane.ones;
        } else {
            if (!skip_node(&reader, first, left, n - plane.ones)) {
                return false;
            }
            first += left;
            leaves -= left;
            i = ones;
            n = plane.ones;
        }
        if (i >= n) {
            return false;
        }
    }
    unsigned class = reader.classes.of[first];
    unsigned width = series__rest_bits(class);
    if (!bits_left(&reader.in, (uint64_t)n * width)) {
        return false;
    }
    *out = bits_number(reader.in.in, reader.in.at, width, i) |
        (class == 0 ? 0 : series__least(class));
    return true;
}
