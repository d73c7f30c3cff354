/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ABOUT_ABOUTS_H
#define ABOUT_ABOUTS_H

#include "about/about.h"
#include "schema/schema.h"

#include <stdint.h>

/* The columns of members=about of a store, each with its tables, by serial.
 *
 * Who edits the schema has it follow; one thread at a time, which is no online
 * reader. Readers find a column without a lock. */

struct abouts; /* opaque */

struct abouts_config {
    struct qsbr *qsbr;
    uint64_t seed; /* secret, and for good: see about/about_life.h */
    const struct alloc *alloc;
    /* The sink of a new column of that serial, NULL where memory is out. NULL:
     * nothing is logged. */
    struct about_sink *(*sink_fn)(void *context, uint32_t serial);
    /* Its column has gone, and nobody calls it any more; may be NULL. */
    void (*sink_end_fn)(void *context, struct about_sink *sink);
    void *context;
};

/* One without columns; the caller owns *out. 0 or ERR_NO_MEMORY. */
int abouts_create(const struct abouts_config *config, struct abouts **out);

/* Frees all columns and nulls *abouts; there are no readers any more. */
void abouts_destroy(struct abouts **abouts);

/* Has it the columns that schema has, with the memory that this says: new ones
 * are made, empty, those that schema has not go behind a grace period. 0, or
 * ERR_NO_MEMORY: then nothing has changed. */
int abouts_follow(struct abouts *abouts, const struct schema *schema);

/* The tables of the column of that serial; NULL: it has none. The calling
 * thread is an online reader, and the pointer is valid until it next goes
 * quiescent or offline; or it is the one that edits. */
struct about *abouts_find(const struct abouts *abouts, uint32_t serial);

/* The column with the lowest serial above *serial, which becomes its; NULL:
 * there is none. As abouts_find. */
struct about *abouts_next(const struct abouts *abouts, uint32_t *serial);

#endif
