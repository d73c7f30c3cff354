/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_NUM_H
#define BASE_NUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decimal numbers in byte spans (not terminated). Pure; any thread. */

enum { NUM_U64_DIGITS_MAX = 20 };

/* Parses text[0..len) as digits only (leading zeros allowed, no sign, no
 * space) into *out. False, with *out untouched, when it is empty, holds
 * another byte, or exceeds 2^64-1. */
bool num_parse_u64(const char *text, size_t len, uint64_t *out);

/* The same, refusing leading zeros ("0" itself is fine): the canonical form
 * in which ids are written. */
bool num_parse_id(const char *text, size_t len, uint64_t *out);

/* As num_parse_u64, at most 2^32-1. */
bool num_parse_u32(const char *text, size_t len, uint32_t *out);

/* An optional minus or plus sign and digits, within int64_t. */
bool num_parse_i64(const char *text, size_t len, int64_t *out);

/* What memcached's incr accepts as a stored value: leading white space and
 * one sign are allowed, a minus only before 0, and the number ends at white
 * space or a NUL, whatever stands behind it. */
bool num_parse_lenient_u64(const char *text, size_t len, uint64_t *out);

/* What an English noun ends with behind that number: "1 row", "2 rows". Static
 * storage. */
static inline const char *
num_plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* The numbers below NUM_SHORT_END as text, without zeros in front. */
enum { NUM_SHORT_END = 1000 };
struct num_short {
    char text[3];
    uint8_t len;
};
extern const struct num_short num_short[NUM_SHORT_END];

/* Writes value in decimal to out (room for NUM_U64_DIGITS_MAX bytes, no
 * terminator); returns the number of bytes. */
size_t num_format_u64(uint64_t value, char *out);

/* The same, and quicker, but all of the room may be written to. */
size_t num_put_u64(uint64_t value, char *out);

#endif
