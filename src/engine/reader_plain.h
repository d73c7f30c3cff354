/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_READER_PLAIN_H
#define ENGINE_READER_PLAIN_H

/* What counters and their columns are, as far as the keys of a request tell,
 * for the instruction set that the including file has chosen; included for
 * reader_body.h only. */
#include "engine/engine_priv.h"
#include "engine/line_target.h"

#include <string.h>

#if LINE_READ_HAVE

LINE_TARGET_BEGIN

static const struct view no_view = {.columns = 0};

/* The counter that a key names, kept for the keys that follow. */
struct common {
    unsigned slot;
    const struct counter *counter;
    const struct view *view;
};

static inline struct common
look_at_counter(const struct engine *engine, unsigned slot)
{
    struct counter *counter = engine__counter(engine, slot);
    const struct view *view = counter == NULL ? NULL : counter__view(counter);
    return (struct common){.slot = slot,
        .counter = view == NULL ? NULL : counter,
        .view = view == NULL ? &no_view : view};
}

/* What is known of one counter whose columns all have the default 0, so that
 * codes are values, and so what keys of its columns look like. */
struct plain {
    const struct view *view; /* of it; NULL: there is none such */
    uint32_t columns;        /* bit i: there is a column in slot i */
    uint32_t serial[SCHEMA_COLUMNS_MAX];
    uint64_t rest[SCHEMA_COLUMNS_MAX]; /* of the column's keys; or no key's */
};

/* A key without its id. */
static inline uint64_t
rest_of(const struct cell_key *key, unsigned i)
{
    uint64_t rest;
    const char *at = (const char *)&key[i];
    _Static_assert(offsetof(struct cell_key, serial) == sizeof key->id &&
            offsetof(struct cell_key, counter) == 12 &&
            offsetof(struct cell_key, column) == 13 && sizeof *key == 16,
        "see rest_made");
    memcpy(&rest, at + offsetof(struct cell_key, serial), sizeof rest);
    return rest;
}

/* The same of a key of these, where what lies between fields is 0. */
static inline uint64_t
rest_made(uint32_t serial, unsigned slot, unsigned column)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return serial | (uint64_t)slot << 32 | (uint64_t)column << 40;
#else
    return (uint64_t)serial << 32 | (uint64_t)slot << 24 |
        (uint64_t)column << 16;
#endif
}

/* The bits of it that are in fields. */
static inline uint64_t
rest_mask(void)
{
    return rest_made(UINT32_MAX, UINT8_MAX, UINT8_MAX);
}

/* The serial of a column now, 0: it is gone. */
static inline uint32_t
serial_now(const struct view *view, unsigned column)
{
    /* relaxed: behind line_read_fence, or behind acquire loads; what is loaded
     * before a look is compared once more behind it */
    return atomic_load_explicit(
        &view->column[column].serial, memory_order_relaxed);
}

/* Learns about the counter in slot. */
static __attribute__((noinline)) void
learn_plain(const struct engine *engine, unsigned slot, struct plain *plain)
{
    const struct view *view = look_at_counter(engine, slot).view;
    uint64_t defaults = 0;
    plain->columns = 0;
    memset(plain->rest, UINT8_MAX, sizeof plain->rest); /* no key's */
    for (uint32_t left = view->columns; left != 0; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        uint32_t serial = serial_now(view, i);
        if (serial == 0) { /* it is being dropped */
            continue;
        }
        plain->serial[i] = serial;
        plain->columns |= 1U << i;
        /* a key's column is below 16 */
        plain->rest[i] = rest_made(serial, slot, i);
        defaults |= view->column[i].default_value;
    }
    plain->view = defaults == 0 ? view : NULL;
}

LINE_TARGET_END

#endif
#endif
