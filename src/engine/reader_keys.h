/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_READER_KEYS_H
#define ENGINE_READER_KEYS_H

/* How keys become a group of records, and what the keys of a request tell of
 * counters and columns; for reader_body.h only. */
#include "engine/engine_priv.h"
#include "engine/line_look.h"

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

enum { READ_GROUP = LINE_LOOKS /* records under way together */ };
_Static_assert(READ_GROUP < 64, "a bit of a number for each");

/* The part of a request that is answered in one go. */
struct part {
    struct engine *engine;
    const struct cell_key *key;
    uint64_t *value;
    uint8_t *state;
    uint32_t n;
    uint32_t at; /* keys that are in groups already */
    struct plain plain;
};

/* Records that are asked for, array by array. In a row are those of one
 * counter with the same columns each, side by side: the first keys, ends,
 * counters and views of these are not spelled out; see keys_of. */
struct group {
    uint32_t n;
    bool is_row;
    bool is_single;                              /* one key a record */
    bool is_plain;                               /* all of part->plain */
    uint32_t stride;                             /* in a row: keys a record */
    uint32_t first[READ_GROUP], end[READ_GROUP]; /* keys first..end-1 */
    const struct counter *counter[READ_GROUP];   /* NULL: none */
    const struct view *view[READ_GROUP];         /* no_view: no counter */
    uint64_t id[READ_GROUP];
    uint64_t row[READ_GROUP];
    uint64_t shard[READ_GROUP];
    const struct table *table[READ_GROUP]; /* no_table: none */
    uint64_t number[READ_GROUP];           /* of the line */
    uint64_t in_piece[READ_GROUP];         /* where in its piece, in bytes */
    uint64_t piece[READ_GROUP];
    struct line_looks looks;
};

/* The keys of a record. */
struct keys {
    uint32_t first, end;
    const struct view *view;
};

static inline struct keys
keys_of(const struct group *group, uint32_t i)
{
    if (group->is_row) {
        uint32_t first = group->first[0] + i * group->stride;
        return (struct keys){first, first + group->stride, group->view[0]};
    }
    return (struct keys){group->first[i], group->end[i], group->view[i]};
}

/* engine__row for all of the group. */
static inline void
find_shards(const struct engine *engine, struct group *group)
{
    for (uint32_t i = 0; i < group->n; i += LANES) {
        lanes id = lanes_load(&group->id[i]);
        lanes row = id >> engine->shard_bits;
        lanes mix = row * engine->shard_odd >> ENGINE_MIX_SHIFT;
        lanes_store(&group->row[i], row);
        lanes_store(&group->shard[i], (id ^ mix) & (engine->n_shards - 1));
    }
}

/* Takes the keys that are next into the group, until it is full; cells of one
 * record that stand side by side are one. */
static inline void
take_keys(struct part *part, struct group *group)
{
    const struct cell_key *key = &part->key[part->at];
    const struct cell_key *end = &part->key[part->n];
    uint32_t n = 0;
    struct common common = look_at_counter(part->engine, key->counter);
    bool is_plain = true;
    do {
        uint64_t id = key->id;
        if (key->counter != common.slot) {
            common = look_at_counter(part->engine, key->counter);
        }
        is_plain &= common.view == part->plain.view;
        group->id[n] = id;
        group->first[n] = (uint32_t)(key - part->key);
        group->view[n] = common.view;
        group->counter[n] = common.counter;
        do {
            key++;
        } while (key != end && key->id == id && key->counter == common.slot);
        group->end[n++] = (uint32_t)(key - part->key);
    } while (n != READ_GROUP && key != end);
    part->at = (uint32_t)(key - part->key);
    group->n = n;
    group->is_row = false;
    group->is_single = false;
    group->is_plain = is_plain;
}

static inline uint64_t
id_of(const struct cell_key *key, unsigned i)
{
    return key[i].id;
}

/* Takes the ids of LANES keys. Not 0 where one of them is not of the counter in
 * slot, or has the same id as the next one of them. */
static inline lanes
take_ids(const struct cell_key *key, uint64_t slot, uint64_t *to)
{
    const lanes last = LANES_LAST;
    lanes rest = LANES_EACH(rest_of, key);
    lanes id = LANES_EACH(id_of, key);
    lanes_store(to, id);
    return ((rest ^ slot) & rest_made(0, UINT8_MAX, 0)) |
        ((lanes)(id == LANES_NEXT(id)) & ~last);
}

/* The same for the usual case, keys of one counter, each of another record:
 * false where it is not. A record that has the last key of a vector and the
 * first of the next one may count as two, which costs a lookup more. */
static inline bool
take_single_keys(struct part *part, struct group *group)
{
    const struct cell_key *key = &part->key[part->at];
    uint32_t at = part->at;
    uint32_t left = part->n - at;
    uint32_t n = left < READ_GROUP ? left : READ_GROUP;
    uint64_t slot = rest_made(0, key->counter, 0);
    lanes differ = {0};
    uint32_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        differ |= take_ids(&key[i], slot, &group->id[i]);
    }
    bool is_other = lanes_any(differ);
    for (; i < n; i++) {
        group->id[i] = key[i].id;
        is_other |= key[i].counter != key->counter ||
            (i > 0 && key[i].id == key[i - 1].id);
    }
    if (is_other) {
        return false;
    }
    struct common common = look_at_counter(part->engine, key->counter);
    group->first[0] = at;
    group->view[0] = common.view;
    group->counter[0] = common.counter;
    group->n = n;
    group->is_row = true;
    group->is_single = true;
    group->stride = 1;
    group->is_plain = common.view == part->plain.view;
    part->at = at + n;
    return true;
}

/* Are the n * stride keys from key on those of n records with the same columns
 * each, of one counter? Fills id[n]. */
static inline bool
are_rows(const struct cell_key *key, uint32_t n, uint32_t stride, uint64_t *id)
{
    uint64_t differ = 0;
    for (uint32_t i = 0; i < n; i++) {
        id[i] = key[i * stride].id;
    }
    /* from the last key: it tells most about how many there are */
    for (uint32_t k = stride; k > 0 && differ == 0; k--) {
        const struct cell_key *at = &key[k - 1];
        uint64_t rest = rest_of(at, 0);
        differ = (uint64_t)(at->counter ^ key->counter);
        for (uint32_t i = 0; i < n; i++) {
            differ |= at->id ^ id[i];
            differ |= (rest_of(at, 0) ^ rest) & rest_mask();
            at += stride;
        }
    }
    return differ == 0;
}

/* Are the columns of a record as part->plain has them? */
static inline bool
has_plain_columns(
    const struct part *part, const struct cell_key *key, uint32_t n)
{
    uint64_t differ = 0;
    for (uint32_t i = 0; i < n; i++) {
        differ |= (rest_of(key, i) ^ part->plain.rest[key[i].column]);
    }
    return (differ & rest_mask()) == 0;
}

/* The same as take_single_keys for records of one counter with the same
 * columns each, as of the posts of a page: false where there are not two of
 * them, or not so. */
static inline bool
take_rows(struct part *part, struct group *group)
{
    const struct cell_key *key = &part->key[part->at];
    uint32_t left = part->n - part->at;
    uint32_t stride = 1;
    while (stride < left && key[stride].id == key->id) {
        stride++;
    }
    uint32_t n = left / stride;
    n = n < READ_GROUP ? n : READ_GROUP;
    if (stride == 1 || n < 2 || !are_rows(key, n, stride, group->id)) {
        return false;
    }
    struct common common = look_at_counter(part->engine, key->counter);
    group->first[0] = part->at;
    group->view[0] = common.view;
    group->counter[0] = common.counter;
    group->n = n;
    group->is_row = true;
    group->is_single = false;
    group->stride = stride;
    group->is_plain = common.view == part->plain.view &&
        has_plain_columns(part, key, stride);
    part->at += n * stride;
    return true;
}

/* Takes keys into the group, until it is full or there are no more. */
static inline void
take_some_keys(struct part *part, struct group *group)
{
    const struct cell_key *key = &part->key[part->at];
    bool is_taken = part->n - part->at > 1 && key[0].id == key[1].id
        ? take_rows(part, group)
        : take_single_keys(part, group);
    if (!is_taken) {
        take_keys(part, group);
    }
}

LINE_TARGET_END

#endif
#endif
