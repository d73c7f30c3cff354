/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows as text, a digit of BITS at a time: four numbers, the last digit that
 * of the highest ones. What can go wrong: words of others, which are refused
 * where they are no window. */
#include "base/seen_text.h"

#include "base/assert.h"

enum { DIGIT_BITS = 4 };

static bool
has(const struct seen_window *seen, uint64_t below)
{
    return below <= seen->high &&
        seen_look(seen, seen->high - below) == SEEN_BEFORE;
}

static unsigned
digit_of(const struct seen_window *seen, unsigned at)
{
    unsigned digit = 0;
    for (unsigned i = 0; i < DIGIT_BITS; i++) {
        digit |= (unsigned)has(seen, at * DIGIT_BITS + i) << i;
    }
    return digit;
}

size_t
seen_text_put(const struct seen_window *seen, char out[SEEN_TEXT_MAX])
{
    static const char digits[] = "0123456789abcdef";
    ASSERT(seen_is_sound(seen));
    size_t len = num_format_u64(seen->high, out);
    unsigned n = SEEN_TEXT_DIGITS_MAX;
    out[len++] = ' ';
    while (digit_of(seen, n - 1) == 0) { /* the last one is not */
        n--;
    }
    for (; n > 0; n--) {
        out[len++] = digits[digit_of(seen, n - 1)];
    }
    ASSERT(len <= SEEN_TEXT_MAX);
    return len;
}

/* The value of a digit; 16: it is none. */
static unsigned
value_of(char digit)
{
    if (digit >= '0' && digit <= '9') {
        return (unsigned)(digit - '0');
    }
    return digit >= 'a' && digit <= 'f' ? (unsigned)(digit - 'a') + 10 : 16;
}

bool
seen_text_get(const char *high, size_t high_len, const char *bits,
    size_t bits_len, struct seen_window *out)
{
    uint64_t highest;
    *out = (struct seen_window){0};
    if (!num_parse_u64(high, high_len, &highest) || bits_len == 0 ||
        bits_len > SEEN_TEXT_DIGITS_MAX || bits[0] == '0') {
        return false;
    }
    for (size_t i = bits_len; i > 0; i--) {
        unsigned value = value_of(bits[i - 1]);
        if (value == 16) {
            return false;
        }
        for (unsigned bit = 0; bit < DIGIT_BITS; bit++) {
            uint64_t below = (bits_len - i) * DIGIT_BITS + bit;
            if ((value >> bit & 1) == 0) {
                continue;
            }
            if (below > highest) {
                return false;
            }
            seen_add(out, highest - below); /* from the highest one on */
        }
    }
    return out->high == highest && seen_look(out, highest) == SEEN_BEFORE;
}
