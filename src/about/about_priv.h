/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ABOUT_ABOUT_PRIV_H
#define ABOUT_ABOUT_PRIV_H

#include "about/about_life.h"
#include "base/assert.h"
#include "base/mutex.h"

#include <stdatomic.h>

/* What the files of this layer share. */

enum { ABOUT_MAGIC = 0x0ab0a7ed };

#define ABOUT_LINES_MAX (UINT64_C(1) << 36) /* of a table */

/* One table. Its memory stays until no reader can see it. */
struct about_table {
    uint64_t first;         /* id of its range; constant */
    uint64_t number;        /* the how-manieth of the column, from 1; constant
                              */
    _Atomic uint64_t *word; /* owned: lines x ABOUT_LINE_WORDS */
    _Atomic uint64_t n_new; /* members that were new when added */
    uint64_t n_closed;      /* n_new when it closed; 0: it is open. Under
                              * about.lock */
    uint64_t retired;       /* see about_retired */
    /* about_copy.c; under about.lock */
    uint64_t n_imaged, n_marked; /* n_new of its image, and at the mark */
    uint64_t log_from;           /* see about_part; 0: to be told */
    bool is_marked, is_copied;   /* it was there at the mark; it is copied */
    struct about_table *next;    /* likewise */
};

/* The tables there are, by ascending ids: made anew for each change. */
struct about_window {
    unsigned n; /* 1..ABOUT_TABLES_MAX */
    uint64_t retired;
    struct about_window *next;
    uint64_t *first; /* of each table, behind the last one: all that a search
                      * looks at */
    struct about_table *table[];
};

struct about {
    uint32_t magic; /* ABOUT_MAGIC */
    struct about_shape shape;
    uint64_t memory_bytes; /* as it was told last; under lock */
    struct qsbr *qsbr;
    struct about_sink *sink;
    const struct alloc *alloc;
    _Atomic(struct about_window *) window;
    /* The largest id so far and 1; 0: there is none. It may stay too large by
     * ids that were not added after all. */
    _Atomic uint64_t above;
    /* While a table closes: the first id of the next one, whose members wait
     * for it. Else UINT64_MAX. */
    _Atomic uint64_t limit;
    _Atomic uint64_t close_at; /* members of the newest at which it closes */
    _Atomic uint64_t n_tables; /* with those that wait for readers */
    _Atomic uint64_t tables_max;
    _Atomic uint64_t n_begun; /* tables since it was created */
    /* Held while the window changes, and by who wants to see it change. */
    struct mutex lock;
    /* What readers may still see, the newest first: `retired` is what qsbr
     * gave for it. Under lock. */
    uint64_t log_marked; /* see about_copy_mark */
    struct about_table *old_tables;
    struct about_window *old_windows;
};

static inline uint64_t
about__table_bytes(const struct about *about)
{
    return about->shape.lines * ABOUT_LINE_BYTES;
}

/* The window, which stays as it is while the thread is online. */
static inline const struct about_window *
about__window(const struct about *about)
{
    ASSERT(about->magic == ABOUT_MAGIC);
    /* seq_cst: see about.c */
    return atomic_load_explicit(&about->window, memory_order_seq_cst);
}

/* The table whose range has id; NULL: it is below the window. */
static inline struct about_table *
about__find(const struct about_window *window, uint64_t id)
{
    const uint64_t *first = window->first;
    unsigned at = 0;
    /* halved without a branch that depends on id: which table is the one
     * nobody can foresee */
    for (unsigned n = window->n; n > 1;) {
        unsigned half = n / 2;
        at = first[at + half] <= id ? at + half : at;
        n -= half;
    }
    return first[at] <= id ? window->table[at] : NULL;
}

/* Empty tables of that many lines, for the parts, in the place of all there
 * are. Nobody reads. 0 or ERR_NO_MEMORY: nothing has changed. */
struct about_part;
int about__make_anew(struct about *about, uint64_t lines,
    const struct about_part *part, unsigned n);

/* Closes the newest table if it has as many members as it closes at. */
void about__close(struct about *about);

/* Returns when no table is being closed. */
void about__await(struct about *about);

#endif
