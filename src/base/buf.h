/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A growable byte buffer. One thread at a time. All zero is a valid empty
 * buffer; buf_fini returns it to that state. Growth doubles, from
 * BUF_START_BYTES. */
struct buf {
    char *data;      /* owned; NULL while capacity is 0 */
    size_t len;      /* bytes in use */
    size_t capacity; /* bytes allocated */
    bool failed;     /* an allocation failed since the last buf_clear */
};

enum { BUF_START_BYTES = 256 };

/* Frees the memory and zeroes *buf. */
void buf_fini(struct buf *buf);

/* Makes room for extra more bytes: the address to write them at, or NULL
 * (and failed is set) when memory is out; nothing else changes then. */
char *buf_reserve(struct buf *buf, size_t extra);

/* The capacity that a buffer of that one has when it has been made to hold need
 * bytes; 0 where that cannot be expressed. Pure. */
size_t buf_capacity_for(size_t capacity, size_t need);

/* Appends; where memory is out the bytes are dropped and failed is set, so a
 * chain of appends is checked once, at its end. */
void buf_add(struct buf *buf, const void *bytes, size_t len);
void buf_add_text(struct buf *buf, const char *text);
void buf_add_u64(struct buf *buf, uint64_t value);
void buf_addf(struct buf *buf, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Drops the first len bytes, moving the rest down. len <= buf->len. */
void buf_consume(struct buf *buf, size_t len);

/* Gives back what is allocated above capacity bytes; len is not above that, and
 * capacity not 0. Where that cannot be done it stays. */
void buf_shrink(struct buf *buf, size_t capacity);

/* Empties it and clears failed; keeps the memory. */
void buf_clear(struct buf *buf);

#endif
