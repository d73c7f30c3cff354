/* SPDX-License-Identifier: BSD-3-Clause */
/* A growable byte buffer.
 *
 * len <= capacity always, and data is NULL exactly while capacity is 0. A
 * failed growth leaves data, len and capacity as they were and only sets
 * failed, so writers append a whole reply without looking and check once. */
#include "base/buf.h"

#include "base/assert.h"
#include "base/num.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t
buf_capacity_for(size_t capacity, size_t need)
{
    if (capacity < BUF_START_BYTES) {
        capacity = BUF_START_BYTES;
    }
    while (capacity < need) {
        if (__builtin_mul_overflow(capacity, (size_t)2, &capacity)) {
            return 0;
        }
    }
    return capacity;
}

static bool
grow(struct buf *buf, size_t extra)
{
    size_t need, capacity;
    char *data;

    if (__builtin_add_overflow(buf->len, extra, &need)) {
        return false;
    }
    capacity = buf_capacity_for(buf->capacity, need);
    if (capacity == 0) {
        return false;
    }
    data = realloc(buf->data, capacity);
    if (data == NULL) {
        return false;
    }
    buf->data = data;
    buf->capacity = capacity;
    return true;
}

void
buf_fini(struct buf *buf)
{
    free(buf->data);
    *buf = (struct buf){0};
}

char *
buf_reserve(struct buf *buf, size_t extra)
{
    ASSERT(buf->len <= buf->capacity);
    if (buf->capacity == 0 || extra > buf->capacity - buf->len) {
        if (!grow(buf, extra)) {
            buf->failed = true;
            return NULL;
        }
    }
    return buf->data + buf->len;
}

void
buf_add(struct buf *buf, const void *bytes, size_t len)
{
    char *at;

    if (len == 0) {
        return;
    }
    at = buf_reserve(buf, len);
    if (at != NULL) {
        memcpy(at, bytes, len);
        buf->len += len;
    }
}

void
buf_add_text(struct buf *buf, const char *text)
{
    buf_add(buf, text, strlen(text));
}

void
buf_add_u64(struct buf *buf, uint64_t value)
{
    char *at = buf_reserve(buf, NUM_U64_DIGITS_MAX);

    if (at != NULL) {
        buf->len += num_format_u64(value, at);
    }
}

void
buf_addf(struct buf *buf, const char *format, ...)
{
    va_list args;
    int len;
    char *at;

    va_start(args, format);
    len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    ASSERT(len >= 0);
    /* one more for the NUL, which is then not counted */
    at = buf_reserve(buf, (size_t)len + 1);
    if (at == NULL) {
        return;
    }
    va_start(args, format);
    len = vsnprintf(at, (size_t)len + 1, format, args);
    va_end(args);
    buf->len += (size_t)len;
}

void
buf_consume(struct buf *buf, size_t len)
{
    ASSERT(len <= buf->len);
    buf->len -= len;
    if (len > 0 && buf->len > 0) {
        memmove(buf->data, buf->data + len, buf->len);
    }
}

void
buf_shrink(struct buf *buf, size_t capacity)
{
    ASSERT(capacity > 0 && buf->len <= capacity);
    if (buf->capacity > capacity) {
        char *data = realloc(buf->data, capacity);
        if (data != NULL) {
            buf->data = data;
            buf->capacity = capacity;
        }
    }
}

void
buf_clear(struct buf *buf)
{
    buf->len = 0;
    buf->failed = false;
}
