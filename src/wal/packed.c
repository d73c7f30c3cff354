/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers that are mostly small, as bits: PFOR (Zukowski, Heman, Nes, Boncz,
 * "Super-Scalar RAM-CPU Cache Compression", 2006), with the positions of the
 * exceptions written out.
 *
 *   OFFSET SIZE
 *        0    1 width w of all numbers, 0..64
 *        1    1 exceptions e, 0..n
 *        2    1 width x of an exception, 8..64; only where e > 0
 *        3    e exceptions of x bits: place (7 bits), then what is above
 *               the low w bits of the number there
 *             n low halves of w bits
 *
 * Bits run from the lowest bit of the first byte on; both arrays begin at a
 * byte. The writer tries every w and takes the one that costs least, so a few
 * large numbers do not widen the others, and a group never costs more than its
 * numbers as they are (w = 64, no exceptions).
 *
 * A number is read with one load of eight bytes and, above 57 bits, one more
 * byte; so a load reaches up to PACKED_SLACK bytes behind the group, and the
 * caller has them there. Nothing read decides where memory is written but the
 * place of an exception, which is checked. */
#include "wal/packed.h"

#include "base/assert.h"
#include "base/bytes.h"

#include <string.h>

enum {
    PLACE_BITS = 7,
    EXCEPTION_BITS_MAX = 64,
    ABOVE_BITS_MAX = EXCEPTION_BITS_MAX - PLACE_BITS
};

_Static_assert(PACKED_GROUP <= 1 << PLACE_BITS, "a place has 7 bits");

static inline uint64_t
mask_of(unsigned width)
{
    return width == 0 ? 0 : UINT64_MAX >> (64 - width);
}

static inline unsigned
width_of(uint64_t value)
{
    return value == 0 ? 0 : 64 - (unsigned)__builtin_clzll(value);
}

static inline size_t
bytes_of(size_t n, unsigned width)
{
    return (n * width + 7) / 8;
}

/* Low width bits of each value; may write PACKED_SLACK bytes too many. */
static size_t
put_bits(uint8_t *out, const uint64_t *value, size_t n, unsigned width)
{
    uint64_t mask = mask_of(width);
    uint64_t word = 0; /* bits that are not written yet */
    unsigned used = 0; /* of them; < 64 */
    uint8_t *at = out;

    for (size_t i = 0; i < n; i++) {
        uint64_t low = value[i] & mask;

        word |= low << used;
        used += width;
        if (used >= 64) {
            bytes_put_u64(at, word);
            at += 8;
            used -= 64;
            word = used == 0 ? 0 : low >> (width - used);
        }
    }
    bytes_put_u64(at, word);
    return bytes_of(n, width);
}

static inline void
get_bits(const uint8_t *in, uint64_t *value, size_t n, unsigned width)
{
    uint64_t mask = mask_of(width);
    size_t bit = 0;

    if (width <= 57) {
        for (size_t i = 0; i < n; i++, bit += width) {
            value[i] = bytes_get_u64(in + bit / 8) >> bit % 8 & mask;
        }
        return;
    }
    for (size_t i = 0; i < n; i++, bit += width) {
        const uint8_t *at = in + bit / 8;
        unsigned shift = bit % 8;

        value[i] = bytes_get_u64(at) >> shift;
        if (shift + width > 64) {
            value[i] |= (uint64_t)at[8] << (64 - shift);
        }
        value[i] &= mask;
    }
}

/* The cheapest width for the low halves; *above: bits of the widest number
 * above it, 0 where no number has any. */
static unsigned
choose(const uint64_t *value, size_t n, unsigned *above)
{
    uint8_t count[65] = {0}; /* numbers of each width */
    unsigned widest = 0;
    unsigned best, n_wider = 0;
    size_t best_bits;

    for (size_t i = 0; i < n; i++) {
        unsigned width = width_of(value[i]);

        count[width]++;
        widest = width > widest ? width : widest;
    }
    best = widest;
    best_bits = 8 * bytes_of(n, widest);
    for (unsigned width = widest; width-- > 0;) {
        size_t bits;

        n_wider += count[width + 1];
        if (widest - width > ABOVE_BITS_MAX) {
            break;
        }
        bits = 8 *
            (1 + bytes_of(n, width) +
                bytes_of(n_wider, PLACE_BITS + widest - width));
        if (bits < best_bits) {
            best = width;
            best_bits = bits;
        }
    }
    *above = widest - best;
    return best;
}

size_t
packed_put(uint8_t *out, const uint64_t *value, size_t n)
{
    uint64_t exception[PACKED_GROUP];
    unsigned above, width;
    size_t n_exceptions = 0;
    uint8_t *at = out;

    ASSERT(n >= 1 && n <= PACKED_GROUP);
    width = choose(value, n, &above);
    if (above > 0) {
        for (size_t i = 0; i < n; i++) {
            uint64_t high = value[i] >> width;

            exception[n_exceptions] = high << PLACE_BITS | i;
            n_exceptions += high != 0;
        }
    }
    *at++ = (uint8_t)width;
    *at++ = (uint8_t)n_exceptions;
    if (n_exceptions > 0) {
        *at++ = (uint8_t)(PLACE_BITS + above);
        at += put_bits(at, exception, n_exceptions, PLACE_BITS + above);
    }
    at += put_bits(at, value, n, width);
    ASSERT(at - out <= PACKED_GROUP_BYTES_MAX);
    return (size_t)(at - out);
}

/* Puts the exceptions into value, whose low halves are there. */
static bool
patch(const uint8_t *in, size_t n_exceptions, unsigned bits, unsigned width,
    uint64_t *value, size_t n)
{
    uint64_t exception[PACKED_GROUP];

    get_bits(in, exception, n_exceptions, bits);
    for (size_t i = 0; i < n_exceptions; i++) {
        size_t place = exception[i] & mask_of(PLACE_BITS);

        if (place >= n) {
            return false;
        }
        value[place] |= exception[i] >> PLACE_BITS << width;
    }
    return true;
}

bool
packed_get(const uint8_t **in, const uint8_t *end, uint64_t *value, size_t n)
{
    const uint8_t *at = *in;
    const uint8_t *exceptions;
    size_t n_exceptions;
    unsigned width, bits = 0;

    ASSERT(n >= 1 && n <= PACKED_GROUP);
    if (end - at < PACKED_GROUP_BYTES_MIN) {
        return false;
    }
    width = *at++;
    n_exceptions = *at++;
    if (width > 64 || n_exceptions > n) {
        return false;
    }
    if (n_exceptions > 0) {
        if (at == end) {
            return false;
        }
        bits = *at++;
        if (bits <= PLACE_BITS || bits > PLACE_BITS + 64 - width ||
            bits > EXCEPTION_BITS_MAX) {
            return false;
        }
    }
    exceptions = at;
    if ((size_t)(end - at) <
        bytes_of(n_exceptions, bits) + bytes_of(n, width)) {
        return false;
    }
    at += bytes_of(n_exceptions, bits);
    if (width == 0) {
        memset(value, 0, n * sizeof *value);
    } else {
        get_bits(at, value, n, width);
    }
    *in = at + bytes_of(n, width);
    return n_exceptions == 0 ||
        patch(exceptions, n_exceptions, bits, width, value, n);
}
