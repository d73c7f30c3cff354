/* SPDX-License-Identifier: BSD-3-Clause */
/* SipHash-2-4, as its paper describes it: a state of four words is stirred
 * twice for each word of input, and four times at the end. The last word has
 * the input's length in its highest byte. */
#include "base/siphash.h"

#include "base/bytes.h"

struct state {
    uint64_t a, b, c, d;
};

static uint64_t
turn_left(uint64_t x, unsigned bits)
{
    return x << bits | x >> (64 - bits);
}

static void
stir(struct state *s, unsigned rounds)
{
    for (; rounds > 0; rounds--) {
        s->a += s->b;
        s->b = turn_left(s->b, 13) ^ s->a;
        s->a = turn_left(s->a, 32);
        s->c += s->d;
        s->d = turn_left(s->d, 16) ^ s->c;
        s->a += s->d;
        s->d = turn_left(s->d, 21) ^ s->a;
        s->c += s->b;
        s->b = turn_left(s->b, 17) ^ s->c;
        s->c = turn_left(s->c, 32);
    }
}

static void
take(struct state *s, uint64_t word)
{
    s->d ^= word;
    stir(s, 2);
    s->a ^= word;
}

uint64_t
siphash(const uint8_t key[SIPHASH_KEY_BYTES], const void *bytes, size_t len)
{
    const uint8_t *at = bytes;
    uint64_t low = bytes_get_u64(key);
    uint64_t high = bytes_get_u64(key + 8);
    struct state s = {low ^ UINT64_C(0x736f6d6570736575),
        high ^ UINT64_C(0x646f72616e646f6d),
        low ^ UINT64_C(0x6c7967656e657261),
        high ^ UINT64_C(0x7465646279746573)};
    uint64_t last = (uint64_t)len << 56;
    size_t left = len;
    for (; left >= 8; left -= 8, at += 8) {
        take(&s, bytes_get_u64(at));
    }
    for (size_t i = 0; i < left; i++) {
        last |= (uint64_t)at[i] << (8 * i);
    }
    take(&s, last);
    s.c ^= 0xff;
    stir(&s, 4);
    return s.a ^ s.b ^ s.c ^ s.d;
}
