/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers in files: little-endian, byte by byte, whatever the machine; and
 * varints, seven bits a byte, the lowest first, the top bit set on all bytes
 * but the last (LEB128). Numbers in packets: big-endian (be). Pure; any
 * thread. */

enum { BYTES_VARINT_MAX = 10 /* bytes of the longest varint */ };

static inline void
bytes_put_u16(uint8_t *out, uint16_t value)
{
    out[0] = (uint8_t)value;
    out[1] = (uint8_t)(value >> 8);
}

static inline void
bytes_put_u32(uint8_t *out, uint32_t value)
{
    bytes_put_u16(out, (uint16_t)value);
    bytes_put_u16(out + 2, (uint16_t)(value >> 16));
}

static inline void
bytes_put_u64(uint8_t *out, uint64_t value)
{
    bytes_put_u32(out, (uint32_t)value);
    bytes_put_u32(out + 4, (uint32_t)(value >> 32));
}

static inline uint16_t
bytes_get_u16(const uint8_t *in)
{
    return (uint16_t)(in[0] | in[1] << 8);
}

static inline uint32_t
bytes_get_u32(const uint8_t *in)
{
    return bytes_get_u16(in) | (uint32_t)bytes_get_u16(in + 2) << 16;
}

static inline uint64_t
bytes_get_u64(const uint8_t *in)
{
    return bytes_get_u32(in) | (uint64_t)bytes_get_u32(in + 4) << 32;
}

static inline void
bytes_put_be16(uint8_t *out, uint16_t value)
{
    out[0] = (uint8_t)(value >> 8);
    out[1] = (uint8_t)value;
}

static inline void
bytes_put_be32(uint8_t *out, uint32_t value)
{
    bytes_put_be16(out, (uint16_t)(value >> 16));
    bytes_put_be16(out + 2, (uint16_t)value);
}

static inline void
bytes_put_be64(uint8_t *out, uint64_t value)
{
    bytes_put_be32(out, (uint32_t)(value >> 32));
    bytes_put_be32(out + 4, (uint32_t)value);
}

static inline uint16_t
bytes_get_be16(const uint8_t *in)
{
    return (uint16_t)(in[0] << 8 | in[1]);
}

static inline uint32_t
bytes_get_be32(const uint8_t *in)
{
    return (uint32_t)bytes_get_be16(in) << 16 | bytes_get_be16(in + 2);
}

static inline uint64_t
bytes_get_be64(const uint8_t *in)
{
    return (uint64_t)bytes_get_be32(in) << 32 | bytes_get_be32(in + 4);
}

/* Writes value to out (room for BYTES_VARINT_MAX); returns its length. */
static inline size_t
bytes_put_varint(uint8_t *out, uint64_t value)
{
    size_t n = 0;
    while (value >= 0x80) {
        out[n++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    out[n++] = (uint8_t)value;
    return n;
}

/* bytes_put_varint_wide of a value below 2^28. What is added to itself moves
 * up by one bit: all above the first seven bits, then all above the first byte
 * and the next seven, and so on. */
static inline size_t
bytes__put_varint_28(uint8_t *out, uint32_t value)
{
    value += value & ~UINT32_C(0x7f);
    value += value & ~UINT32_C(0x7fff);
    value += value & ~UINT32_C(0x7fffff);
    unsigned top = 31 - (unsigned)__builtin_clz(value | 1);
    uint32_t marks = (UINT32_C(1) << (top & 24)) - 1;
    bytes_put_u32(out, value | (marks & UINT32_C(0x808080)));
    return top / 8 + 1;
}

/* The same, and quicker where it is long, but all of the room may be written
 * to. Without a loop up to 2^56-1: its groups of seven bits are moved apart to
 * a byte each, two of 28 first, then four of 14, then eight. */
static inline size_t
bytes_put_varint_wide(uint8_t *out, uint64_t value)
{
    if (value >> 28 == 0) {
        return bytes__put_varint_28(out, (uint32_t)value);
    }
    if (value >> 56 != 0) {
        return bytes_put_varint(out, value);
    }
    unsigned bits = 64 - (unsigned)__builtin_clzll(value);
    unsigned n = (bits + 6) * 37 >> 8; /* by 7, rounded up, for 1..56 */
    uint64_t groups = (value & UINT64_C(0x0fffffff)) |
        (value & UINT64_C(0x00fffffff0000000)) << 4;
    groups = (groups & UINT64_C(0x00003fff00003fff)) |
        (groups & UINT64_C(0x0fffc0000fffc000)) << 2;
    groups = (groups & UINT64_C(0x007f007f007f007f)) |
        (groups & UINT64_C(0x3f803f803f803f80)) << 1;
    uint64_t marks = (UINT64_C(1) << 8 * (n - 1)) - 1;
    bytes_put_u64(out, groups | (marks & UINT64_C(0x8080808080808080)));
    return n;
}

/* Reads a varint at *in, which ends before end, and moves *in behind it.
 * False, with *in untouched, where it is cut off, passes 2^64-1 or is longer
 * than it need be. */
static inline bool
bytes_get_varint(const uint8_t **in, const uint8_t *end, uint64_t *out)
{
    uint64_t value = 0;
    const uint8_t *at = *in;
    for (unsigned shift = 0; at < end && shift < 64; shift += 7) {
        uint8_t byte = *at++;
        if (shift == 63 && byte > 1) {
            return false;
        }
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            if (byte == 0 && shift > 0) {
                return false;
            }
            *in = at;
            *out = value;
            return true;
        }
    }
    return false;
}

/* The same, quick for one of one byte. */
static inline bool
bytes_get_number(const uint8_t **in, const uint8_t *end, uint64_t *out)
{
    if (*in < end && **in < 0x80) {
        *out = *(*in)++;
        return true;
    }
    return bytes_get_varint(in, end, out);
}

/* Distances that may be negative as small numbers: 0, -1, 1, -2 ... */
static inline uint64_t
bytes_zigzag(uint64_t distance)
{
    return (distance << 1) ^ (0 - (distance >> 63));
}

static inline uint64_t
bytes_unzigzag(uint64_t code)
{
    return (code >> 1) ^ (0 - (code & 1));
}

/* What a code of a column's value stands for: itself where the default is 0,
 * else how far the value is from that. */
static inline uint64_t
bytes_of_code(uint64_t code, uint64_t default_value)
{
    return default_value == 0 ? code : default_value + bytes_unzigzag(code);
}

#endif
