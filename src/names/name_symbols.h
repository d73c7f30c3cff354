/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NAMES_NAME_SYMBOLS_H
#define NAMES_NAME_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A table of symbols: strings of 1 to 8 bytes, each written as one byte, its
 * code. The method is that of FSST (Boncz, Neumann, Leis: "FSST: Fast Random
 * Access String Compression", VLDB 2020): a table is learned from a sample, and
 * then each string can be coded and read by itself. Pure, but for the learning:
 * any thread; a table that is learned does not change any more. */

enum {
    NAME_SYMBOLS_MAX = 250,
    NAME_SYMBOL_BYTES = 8,
    NAME_ESCAPE = 255,   /* a code: the byte behind it stands for itself */
    NAME_SAMPLE_PAD = 8, /* bytes 0 behind a sample, and behind a name */
    NAME_SAMPLE_BYTES_MAX = 1 << 16
};

struct name_symbols {
    uint64_t symbol[NAME_SYMBOLS_MAX]; /* by code; the first byte lowest, and
                                        * 0 behind it */
    uint8_t len[NAME_SYMBOLS_MAX];     /* bytes, 1..8 */
    uint8_t first[257]; /* those that begin with byte b: first[b] up to
                         * first[b + 1], the longest first */
    unsigned n;
};

/* What learning needs, a megabyte: zeros, or of another learning. */
struct name_lesson;
size_t name_lesson_bytes(void);

/* Learns a table from names, one behind the other with a byte 0 behind each:
 * n bytes, up to NAME_SAMPLE_BYTES_MAX, and NAME_SAMPLE_PAD bytes 0. */
void name_symbols_learn(struct name_symbols *symbols, const char *sample,
    size_t n, struct name_lesson *lesson);

/* Sets a table up of n symbols, no two alike and of no byte that a name cannot
 * have, in any order. False, with *symbols undefined, where they are not so. */
bool name_symbols_make(struct name_symbols *symbols, const uint64_t *symbol,
    const uint8_t *len, unsigned n);

/* Codes a name of len bytes, behind which are NAME_SAMPLE_PAD bytes 0. Returns
 * how many bytes it wrote to out, at most limit; limit + 1: it takes more, and
 * what is in out up to limit + 1 is undefined. */
size_t name_symbols_code(const struct name_symbols *symbols, const char *name,
    size_t len, uint8_t *out, size_t limit);

/* The name that n bytes of code are; its length, at most limit. It writes up to
 * limit + NAME_SYMBOL_BYTES bytes of out. 0: they are none of this table, or
 * it would be longer. */
size_t name_symbols_name(const struct name_symbols *symbols,
    const uint8_t *code, size_t n, char *out, size_t limit);

#endif
