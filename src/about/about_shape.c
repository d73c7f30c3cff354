/* SPDX-License-Identifier: BSD-3-Clause */
/* The arithmetic of tables.
 *
 * With b bits of memory a member, the members of one line are in a Poisson
 * distribution of mean 512 / b, and a look in a line with n members is wrong
 * with (1 - (1 - 1/512)^(k n))^k. The rows below are the least b for which the
 * sum of these is 0.97 / error, with the k that needs least; they stay as they
 * are, for tables on disk were made by them. */
#include "about/about_shape.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/siphash.h"

static const struct {
    uint16_t error;
    uint8_t bits;
    uint16_t bits_a_member; /* hundredths */
} ROWS[] = {{20, 4, 638}, {30, 5, 726}, {50, 5, 842}, {75, 6, 930},
    {100, 6, 997}, {150, 7, 1090}, {200, 7, 1158}, {300, 7, 1261},
    {400, 7, 1337}, {500, 7, 1399}, {700, 7, 1497}, {1000, 7, 1606}};

enum { ROW_COUNT = sizeof ROWS / sizeof ROWS[0] };

_Static_assert(ABOUT_LINE_BITS == 1 << ABOUT_PLACE_BITS, "a place is a bit");
_Static_assert(ABOUT_BITS_MAX *ABOUT_PLACE_BITS <= 64, "places are a word");

void
about_shape_resize(struct about_shape *shape, uint64_t lines)
{
    ASSERT(lines >= 1);
    shape->lines = lines;
    shape->members_max = lines * ABOUT_LINE_BITS * 100 / shape->bits_a_member;
}

void
about_shape_init(struct about_shape *shape, uint64_t lines, unsigned error,
    uint64_t seed, uint32_t serial)
{
    ASSERT(error >= ABOUT_ERROR_MIN && error <= ABOUT_ERROR_MAX);
    unsigned row = 0;
    while (ROWS[row].error < error) {
        row++;
        ASSERT(row < ROW_COUNT);
    }
    uint8_t secret[SIPHASH_KEY_BYTES] = {0};
    bytes_put_u64(secret, seed);
    bytes_put_u32(secret + 8, serial);
    for (uint8_t i = 0; i < ABOUT_KEY_WORDS; i++) {
        /* odd, so that nothing is lost in a product */
        shape->key[i] = siphash(secret, &i, 1) | 1;
    }
    shape->bits = ROWS[row].bits;
    shape->bits_a_member = ROWS[row].bits_a_member;
    about_shape_resize(shape, lines);
    ASSERT(shape->bits <= ABOUT_BITS_MAX);
}

uint64_t
about_shape_wrong(
    const struct about_shape *shape, const uint32_t *set_bits, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        ASSERT(set_bits[i] <= ABOUT_LINE_BITS);
        double share = (double)set_bits[i] / ABOUT_LINE_BITS;
        double wrong = 1;
        for (unsigned bit = 0; bit < shape->bits; bit++) {
            wrong *= share;
        }
        sum += wrong;
    }
    return n == 0 ? 0 : (uint64_t)(sum / (double)n * 1e9);
}
