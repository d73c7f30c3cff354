/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NET_EXEC_FORM_H
#define NET_EXEC_FORM_H

#include "proto/key_names.h"
#include "store/call.h"

#include <stdbool.h>
#include <stdint.h>

/* What keys of a multi-get become, and what is known of it beforehand. One
 * thread at a time. */

enum slot_kind {
    SLOT_ITEM,
    SLOT_CELL,
    SLOT_RECORD, /* answered as numbers separated by spaces */
    SLOT_SINGLE, /* a cell or record whose answer is one struct answer */
    SLOT_META,   /* a cell likewise, of a plain mg (proto/plain.h) ... */
    SLOT_PACKET, /* ... and of a plain packet */
    SLOT_NOTHING /* a request's last keys are gone: its end alone */
};

/* One key of a slice. */
struct slot {
    uint32_t at;     /* the key, from the job's first byte on */
    uint32_t flags;  /* of a cell */
    uint16_t first;  /* its first cell in get.key */
    uint8_t n_cells; /* 0: none */
    uint8_t len;     /* of the key */
    uint8_t kind;    /* enum slot_kind */
    bool absent_is_miss;
    bool shows_cas; /* SLOT_SINGLE and behind: it has one */
    bool is_last;   /* of its request */
};

/* What cells of one of the names that are kept have in common. */
struct exec_form {
    uint64_t mask, word;    /* what chunk_load has of the name; other names: a
                            * word that the mask does not let pass */
    struct slot slot;       /* at and first are 0, len is that of ".NAME" */
    struct cell_key cell;   /* of id 0 */
    struct exec_form *next; /* what came behind such a key the last time */
    bool repeats;           /* it had the id of the key before it then */
};

struct exec_forms {
    uint64_t n_changes; /* of the names that these are of */
    struct exec_form
        *next; /* what is likely to come; NULL: nothing is known */
    struct exec_form form[KEY_NAMES]; /* as in key_names */
};

#endif
