/* SPDX-License-Identifier: BSD-3-Clause */
/* MD5 as RFC 1321 describes it: the message is cut into blocks of 64 bytes, the
 * last ones padded with 0x80, zeros and the length in bits, and each block goes
 * through 64 steps. No speed is asked of it: keys are short. */
#include "base/md5.h"

#include "base/assert.h"

#include <string.h>

enum { BLOCK = 64, LENGTH_AT = 56, STEPS = 64, STEPS_A_ROUND = 16 };

/* Step i adds the whole part of 2^32 * |sin(i + 1)|. */
static const uint32_t sines[STEPS] = {0xd76aa478, 0xe8c7b756, 0x242070db,
    0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501, 0x698098d8,
    0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e,
    0x49b40821, 0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d,
    0x02441453, 0xd8a1e681, 0xe7d3fbc8, 0x21e1cde6, 0xc33707d6, 0xf4d50d87,
    0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a, 0xfffa3942,
    0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60,
    0xbebfbc70, 0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039,
    0xe6db99e5, 0x1fa27cf8, 0xc4ac5665, 0xf4292244, 0x432aff97, 0xab9423a7,
    0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1, 0x6fa87e4f,
    0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb,
    0xeb86d391};

/* By how much the steps of a round rotate, over and over. */
static const unsigned rotations[STEPS / STEPS_A_ROUND][4] = {
    {7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

static uint32_t
rotate(uint32_t word, unsigned n)
{
    return word << n | word >> (32 - n);
}

static uint32_t
word_at(const uint8_t *bytes)
{
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
        (uint32_t)bytes[3] << 24;
}

/* What step i mixes of three words, and which word of the block it takes. */
static uint32_t
mix(unsigned i, uint32_t b, uint32_t c, uint32_t d, unsigned *from)
{
    switch (i / STEPS_A_ROUND) {
    case 0:
        *from = i;
        return (b & c) | (~b & d);
    case 1:
        *from = (5 * i + 1) % STEPS_A_ROUND;
        return (d & b) | (~d & c);
    case 2:
        *from = (3 * i + 5) % STEPS_A_ROUND;
        return b ^ c ^ d;
    default:
        *from = 7 * i % STEPS_A_ROUND;
        return c ^ (b | ~d);
    }
}

static void
take_block(const uint8_t block[BLOCK], uint32_t word[MD5_WORDS])
{
    uint32_t a = word[0];
    uint32_t b = word[1];
    uint32_t c = word[2];
    uint32_t d = word[3];
    for (unsigned i = 0; i < STEPS; i++) {
        unsigned from;
        uint32_t sum = a + mix(i, b, c, d, &from) + sines[i];
        sum += word_at(block + sizeof sum * from);
        a = d;
        d = c;
        c = b;
        b += rotate(sum, rotations[i / STEPS_A_ROUND][i % 4]);
    }
    word[0] += a;
    word[1] += b;
    word[2] += c;
    word[3] += d;
}

void
md5(const void *bytes, size_t len, uint32_t word[MD5_WORDS])
{
    const uint8_t *at = bytes;
    uint8_t last[2 * BLOCK] = {0};
    uint64_t bits = (uint64_t)len * 8;
    word[0] = 0x67452301;
    word[1] = 0xefcdab89;
    word[2] = 0x98badcfe;
    word[3] = 0x10325476;
    for (; len >= BLOCK; len -= BLOCK, at += BLOCK) {
        take_block(at, word);
    }
    memcpy(last, at, len);
    last[len] = 0x80;
    size_t end = len < LENGTH_AT ? BLOCK : 2 * BLOCK;
    ASSERT(end <= sizeof last);
    for (unsigned i = 0; i < sizeof bits; i++) {
        last[end - sizeof bits + i] = (uint8_t)(bits >> 8 * i);
    }
    for (size_t i = 0; i < end; i += BLOCK) {
        take_block(last + i, word);
    }
}
