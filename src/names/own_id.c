/* SPDX-License-Identifier: BSD-3-Clause */
/* Names that are their own id.
 *
 * Three alphabets, each with the ids of its own:
 *
 *   0 ..                      up to 12 of 37 letters   6.77 * 10^18
 *   then                      up to 10 of 64 letters   1.17 * 10^18
 *   then                      up to 17 digits          0.11 * 10^18
 *   OWN_ID_END = 9.22 * 10^18
 *
 * In an alphabet of b letters a name of n letters is a number of n digits to
 * the base b, behind all shorter names: so zeros in front count, and each
 * number is one name. A name that two alphabets could write is in the first of
 * them; what its number in the other one would be is no id. */
#include "names/own_id.h"

#include "base/assert.h"

#include <string.h>

struct alphabet {
    unsigned base;
    size_t len_max;
    const char *letters;
};

static const struct alphabet alphabets[] = {
    {37, OWN_LOWER_MAX, "0123456789_abcdefghijklmnopqrstuvwxyz"},
    {64, OWN_MIXED_MAX,
        "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"},
    {10, OWN_DIGITS_MAX, "0123456789"},
};

enum {
    ALPHABETS = sizeof alphabets / sizeof *alphabets,
    BLANK = ' ', /* it, and what is below */
    RUBOUT = 127
};

bool
name_is_valid(const void *bytes, size_t len)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; i < len && len <= NAME_BYTES_MAX; i++) {
        if (at[i] <= BLANK || at[i] == RUBOUT) {
            return false;
        }
    }
    return len > 0 && len <= NAME_BYTES_MAX;
}

/* The place of a letter in an alphabet; its base: none. Their order is that of
 * their bytes, in runs. */
static unsigned
place_of(unsigned which, uint8_t byte)
{
    unsigned base = alphabets[which].base;
    bool is_digit = byte >= '0' && byte <= '9';
    bool is_lower = byte >= 'a' && byte <= 'z';
    if (base == 64) {
        return is_digit                  ? byte - '0' + 1U
            : is_lower                   ? byte - 'a' + 38U
            : byte >= 'A' && byte <= 'Z' ? byte - 'A' + 11U
            : byte == '_'                ? 37
            : byte == '-'                ? 0
                                         : base;
    }
    return is_digit                 ? byte - (unsigned)'0'
        : base == 37 && is_lower    ? byte - 'a' + 11U
        : base == 37 && byte == '_' ? 10
                                    : base;
}

/* How many names an alphabet has of up to len letters, without the empty
 * one. */
static uint64_t
count_up_to(const struct alphabet *alphabet, size_t len)
{
    uint64_t n = 0, power = 1;
    for (size_t i = 0; i < len; i++) {
        power *= alphabet->base;
        n += power;
    }
    return n;
}

static bool
number_of(unsigned which, const uint8_t *bytes, size_t len, uint64_t *out)
{
    const struct alphabet *alphabet = &alphabets[which];
    uint64_t number = 0;
    if (len == 0 || len > alphabet->len_max) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        unsigned place = place_of(which, bytes[i]);
        if (place == alphabet->base) {
            return false;
        }
        number = number * alphabet->base + place;
    }
    *out = count_up_to(alphabet, len - 1) + number;
    return true;
}

bool
own_id_of(const void *bytes, size_t len, uint64_t *id)
{
    uint64_t first = 0;
    for (unsigned which = 0; which < ALPHABETS; which++) {
        if (number_of(which, bytes, len, id)) {
            *id += first;
            ASSERT(*id < OWN_ID_END);
            return true;
        }
        first += count_up_to(&alphabets[which], alphabets[which].len_max);
    }
    return false;
}

/* The name of a number of an alphabet. */
static size_t
name_of(const struct alphabet *alphabet, uint64_t number, char *out)
{
    size_t len = 1;
    while (number >= count_up_to(alphabet, len)) {
        len++;
    }
    number -= count_up_to(alphabet, len - 1);
    for (size_t i = len; i > 0; i--) {
        out[i - 1] = alphabet->letters[number % alphabet->base];
        number /= alphabet->base;
    }
    ASSERT(number == 0);
    return len;
}

size_t
own_id_name(uint64_t id, char out[OWN_DIGITS_MAX])
{
    uint64_t rest = id, again;
    for (unsigned which = 0; which < ALPHABETS; which++) {
        const struct alphabet *alphabet = &alphabets[which];
        uint64_t n = count_up_to(alphabet, alphabet->len_max);
        if (rest < n) {
            size_t len = name_of(alphabet, rest, out);
            return own_id_of(out, len, &again) && again == id ? len : 0;
        }
        rest -= n;
    }
    return 0;
}
