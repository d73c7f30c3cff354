/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STORE_STORE_DUMP_H
#define STORE_STORE_DUMP_H

#include "store/store.h"

/* A dump of a counter while it is served, and the store's calls for it. */

/* Reads out the records of a counter, by id, a piece a call: again and again
 * until is_end, or an err that ends it. Then, or whenever the caller has enough
 * and no call is under way, store_end_dump. What a call answers stays until
 * the next. */
struct store_dump {
    struct store_call call;
    unsigned slot;              /* of the counter */
    uint32_t serial;            /* of the counter */
    uint64_t first_id, last_id; /* of what is wanted */
    struct dump_work *work;     /* the store's; NULL before the first call */
    /* out: */
    int err;            /* 0; ERR_CORRUPT, ERR_NEWER_FORMAT, ERR_DISK: what is
                         * on the disk of ids bad_first..bad_last cannot be
                         * read; n have come before it, go on. These end it:
                         * ERR_GONE, ERR_OTHER_COLUMNS, ERR_MANY_DUMPS,
                         * ERR_NO_MEMORY, ERR_CLOSED */
    bool is_end;        /* there are no more */
    unsigned n_columns; /* values a record, in the counter's order */
    uint32_t column_serial[SCHEMA_COLUMNS_MAX]; /* of these */
    uint32_t n;
    const uint64_t *id;    /* n, ascending over all calls */
    const uint64_t *value; /* n times n_columns */
    uint64_t bad_first, bad_last;
    bool has_largest;    /* what follows is new; the caller may clear it */
    uint64_t largest_id; /* of the counter: none of this piece is above it,
                          * and some are above the one before */
};

static inline enum store_answer
store_dump(struct store *store, struct store_dump *dump)
{
    return store->calls->dump(store, dump);
}

/* Gives back what a dump holds; does nothing where no call has been made. Any
 * thread; no call of it is under way. */
static inline void
store_end_dump(struct store *store, struct store_dump *dump)
{
    if (dump->work != NULL) {
        store->calls->end_dump(store, dump);
    }
}

#endif
