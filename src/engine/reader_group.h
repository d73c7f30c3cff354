/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_READER_GROUP_H
#define ENGINE_READER_GROUP_H

/* A group of records that are asked for, and how keys become one, for the
 * instruction set that the including file has chosen; included for
 * reader_body.h only. */
#include "engine/engine_priv.h"
#include "engine/line_read.h"

#if LINE_READ_HAVE

LINE_TARGET_BEGIN

enum { READ_GROUP = 16 /* records under way together */ };

/* The part of a request that is answered in one go. */
struct part {
    struct engine *engine;
    const struct cell_key *key;
    uint64_t *value;
    uint8_t *state;
    uint32_t n;
    uint32_t at; /* keys that are in groups already */
};

/* Records that are asked for, array by array. */
struct group {
    uint32_t n;
    uint32_t first[READ_GROUP], end[READ_GROUP]; /* keys first..end-1 */
    const struct counter *counter[READ_GROUP];   /* NULL: none */
    const struct view *view[READ_GROUP];         /* no_view: no counter */
    uint64_t id[READ_GROUP];
    uint64_t row[READ_GROUP];
    uint32_t shard[READ_GROUP];
    const struct table *table[READ_GROUP];
    uint64_t remainder[READ_GROUP];
    uint32_t number[READ_GROUP];                /* of the line, ... */
    const struct line *line[READ_GROUP];        /* ... where it is, ... */
    const _Atomic uint32_t *stripe[READ_GROUP]; /* ... what guards it, ... */
    uint32_t seq[READ_GROUP];                   /* ... before the look */
    struct line_glance glance[READ_GROUP];
    uint64_t bits[READ_GROUP];    /* the record's values */
    uint32_t is_open[READ_GROUP]; /* not 0: the line was not the answer */
};

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

/* Takes the keys that are next into the group, until it is full; cells of one
 * record that stand side by side are one. */
static inline void
take_keys(struct part *part, struct group *group)
{
    const struct cell_key *key = part->key;
    uint32_t at = part->at;
    uint32_t n = 0;
    struct common common = look_at_counter(part->engine, key[at].counter);
    do {
        uint64_t id = key[at].id;
        if (key[at].counter != common.slot) {
            common = look_at_counter(part->engine, key[at].counter);
        }
        group->id[n] = id;
        group->first[n] = at;
        group->view[n] = common.view;
        group->counter[n] = common.counter;
        do {
            at++;
        } while (at != part->n && key[at].id == id &&
            key[at].counter == common.slot);
        group->end[n++] = at;
    } while (n != READ_GROUP && at != part->n);
    group->n = n;
    part->at = at;
}

/* The same for the usual case, a full group of keys of one counter and all of
 * different records: false where it is not. Loops for vectors. */
static inline bool
take_single_keys(struct part *part, struct group *group)
{
    const struct cell_key *key = &part->key[part->at];
    struct common common = look_at_counter(part->engine, key->counter);
    unsigned differ = 0;
    uint64_t same = 0;
    if (part->n - part->at <= READ_GROUP) {
        return false;
    }
    for (uint32_t i = 0; i < READ_GROUP; i++) {
        group->id[i] = key[i].id;
        differ |= key[i].counter ^ common.slot;
        same |= key[i].id == key[i + 1].id;
    }
    if ((differ | same) != 0) {
        return false;
    }
    for (uint32_t i = 0; i < READ_GROUP; i++) {
        group->first[i] = part->at + i;
        group->end[i] = part->at + i + 1;
    }
    for (uint32_t i = 0; i < READ_GROUP; i++) {
        group->view[i] = common.view;
        group->counter[i] = common.counter;
    }
    group->n = READ_GROUP;
    part->at += READ_GROUP;
    return true;
}

LINE_TARGET_END

#endif
#endif
