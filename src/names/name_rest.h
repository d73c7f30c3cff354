/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NAMES_NAME_REST_H
#define NAMES_NAME_REST_H

#include "base/qsbr.h"
#include "names/name_account.h"

#include <stddef.h>
#include <stdint.h>

/* What readers may still look at: blocks that have been replaced, and numbers
 * whose name has been taken out. Both rest until every reader that was online
 * has been quiescent. All functions under the lock of who owns it. */

struct name_rest_entry {
    void *block;     /* NULL: a number */
    uint32_t bytes;  /* of the block */
    uint32_t number; /* where there is none */
};

struct name_rest {
    struct name_account *account; /* not owned */
    struct qsbr *qsbr;            /* not owned; NULL: no readers */
    struct name_rest_entry *at;   /* capacity; oldest first */
    size_t n, n_covered, capacity;
    uint64_t target; /* of the first n_covered: see qsbr_begin */
    void (*number_fn)(void *context, uint32_t number); /* may be used again */
    void *context;
};

/* Makes room for that many more. 0, ERR_HOT_FULL or ERR_NO_MEMORY. */
int name_rest_reserve(struct name_rest *rest, size_t n);

/* One block, or one number; there must be room (name_rest_reserve), and readers
 * find it no more. */
void name_rest_block(struct name_rest *rest, void *block, size_t bytes);
void name_rest_number(struct name_rest *rest, uint32_t number);

/* Frees and hands on what has rested; never waits. */
void name_rest_collect(struct name_rest *rest);

/* All of it: no reader may be left. */
void name_rest_fini(struct name_rest *rest);

#endif
