/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SESSION_EXEC_FORM_H
#define SESSION_EXEC_FORM_H

#include "call/call.h"
#include "proto/key_names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* What keys of a multi-get become, and what is known of it beforehand. One
 * thread at a time. */

enum slot_kind {
    SLOT_ITEM,
    SLOT_CELL,
    SLOT_MARK,   /* a cell that was worked out of two: see struct slot_mark */
    SLOT_RECORD, /* answered as numbers separated by spaces */
    SLOT_SINGLE, /* a cell or record whose answer is one struct answer */
    SLOT_META,   /* a cell likewise, of a plain mg (proto/plain.h) ... */
    SLOT_PACKET, /* ... and of a plain packet */
    SLOT_SINGLE_REFUSED, /* it was one of these three; its id is another
                          * server's */
    SLOT_REFUSED, /* of a request with such an id: its end is an error */
    SLOT_NOTHING  /* a request's last keys are gone: its end alone */
};

/* One key of a slice: its place, then what it has in common with others. */
struct slot {
    uint32_t at;     /* the key, from the job's first byte on */
    uint16_t first;  /* its first cell in get.key */
    uint8_t n_cells; /* 0: none */
    uint8_t len;     /* of the key */

    uint32_t flags; /* of a cell */
    uint8_t kind;   /* enum slot_kind */
    bool absent_is_miss;
    bool shows_cas; /* of SLOT_SINGLE and behind it is always asked for */
    bool is_last;   /* of its request */
};

/* What a key of a mark's asks for, where that needs its source too: made of two
 * cells when both are there, in the place of the mark. */
struct slot_mark {
    uint16_t cell;   /* the mark, in get.key; the slot's first */
    uint16_t source; /* the source there: the next one, of the same record, or
                      * one of the sources; of_members: its place among the
                      * job's pins */
    bool of_members; /* the source is members */
    bool is_unread;  /* what is behind the mark is asked for, not its place */
    bool unmarked_is_none;
    uint64_t forget; /* see struct schema_column */
};

/* What the key of a member asks for: its cell is that of the number under which
 * its id's members are stored, and becomes that of its own pair. */
struct slot_member {
    uint16_t cell;   /* in get.key; the slot's first */
    uint8_t counter; /* slot of the counter of pairs */
    uint8_t bits;
    bool is_unreadable; /* the number could not be read */
    uint32_t serial;    /* of the column of pairs */
    uint64_t member;
};

/* What a key by a name asks for, where the name has no id by itself: its cells,
 * all of the id that it turns out to have. */
struct slot_name {
    uint16_t cell; /* in get.key; the slot's first */
    uint8_t n_cells;
    uint8_t len; /* of the name, in the job's name_text ... */
    uint32_t at; /* ... from there on */
    uint64_t id; /* once it has been looked up */
};

/* The two halves of a slot as numbers, so that they are written, and compared,
 * at once. Places are added field by field. */
static inline uint64_t
slot_place(uint32_t at, uint16_t first, uint8_t n_cells, uint8_t len)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return at | (uint64_t)first << 32 | (uint64_t)n_cells << 48 |
        (uint64_t)len << 56;
#else
    return (uint64_t)at << 32 | (uint32_t)first << 16 |
        (uint32_t)n_cells << 8 | len;
#endif
}

static inline void
slot_put(struct slot *slot, uint64_t place, uint64_t traits)
{
    memcpy(slot, &place, sizeof place);
    memcpy(&slot->flags, &traits, sizeof traits);
}

static inline uint64_t
slot_traits(const struct slot *slot)
{
    uint64_t traits;
    memcpy(&traits, &slot->flags, sizeof traits);
    return traits;
}

_Static_assert(sizeof(struct slot) == 2 * sizeof(uint64_t) &&
        offsetof(struct slot, first) == 4 &&
        offsetof(struct slot, n_cells) == 6 &&
        offsetof(struct slot, len) == 7 && offsetof(struct slot, flags) == 8,
    "see slot_place");

/* What cells of one of the names that are kept have in common. */
struct exec_form {
    uint64_t mask, word;    /* what chunk_load has of ".NAME"; other names: a
                            * word that the mask does not let pass */
    uint64_t place, traits; /* of the slot; at and first are 0, len is that of
                             * ".NAME" */
    struct cell_key cell;   /* of id 0 */
    struct exec_form *next; /* what came behind such a key the last time */
    uint32_t len;           /* of ".NAME" */
};

struct exec_forms {
    uint64_t n_changes; /* of the names that these are of */
    struct exec_form
        *next;       /* what is likely to come; NULL: nothing is known */
    unsigned digits; /* that ids are likely to have; 0: nothing is known */
    struct exec_form form[KEY_NAMES]; /* as in key_names */
};

#endif
