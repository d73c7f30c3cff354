/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows of numbers to bytes and back. Words without a bit are left out: a
 * producer that begins has one or two.
 *
 * What can go wrong: bytes may be anything. What no window is, is refused. */
#include "wal/seen_code.h"

#include "base/assert.h"

_Static_assert(SEEN_WORDS == 16, "a bit each in two bytes");

size_t
seen_code_put(uint8_t *out, const struct seen_window *seen)
{
    size_t len = 0, mask_at;
    uint16_t mask = 0;

    ASSERT(seen_is_sound(seen));
    len += bytes_put_varint(out + len, seen->high);
    mask_at = len;
    len += 2;
    for (unsigned i = 0; i < SEEN_WORDS; i++) {
        if (seen->bit[i] != 0) {
            mask |= (uint16_t)(1U << i);
            bytes_put_u64(out + len, seen->bit[i]);
            len += 8;
        }
    }
    bytes_put_u16(out + mask_at, mask);
    return len;
}

bool
seen_code_get(const uint8_t **in, const uint8_t *end, struct seen_window *out)
{
    unsigned mask;

    *out = (struct seen_window){0};
    if (!bytes_get_varint(in, end, &out->high) || end - *in < 2) {
        return false;
    }
    mask = bytes_get_u16(*in);
    *in += 2;
    for (unsigned i = 0; i < SEEN_WORDS; i++) {
        if ((mask >> i & 1) == 0) {
            continue;
        }
        if (end - *in < 8 || bytes_get_u64(*in) == 0) {
            return false;
        }
        out->bit[i] = bytes_get_u64(*in);
        *in += 8;
    }
    return seen_is_sound(out);
}
