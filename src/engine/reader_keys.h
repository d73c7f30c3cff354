/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_READER_KEYS_H
#define ENGINE_READER_KEYS_H

/* How keys become a group of records, for the instruction set that the
 * including file has chosen; included for reader_body.h only. */
#include "engine/reader_group.h"

#if LINE_READ_HAVE

LINE_TARGET_BEGIN

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
