/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ABOUT_ABOUT_H
#define ABOUT_ABOUT_H

#include "about/about_shape.h"
#include "base/alloc.h"
#include "base/qsbr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The members of one column of members=about: who is asked for a pair of an id
 * and a member says "in" for each that was added, and for one in `error` that
 * was not. Nothing is ever taken out; but the ids below a window, which moves
 * up, are forgotten as a whole.
 *
 * Tables each have a range of ids, the newest one all from its first id on. One
 * that is full closes: a new one begins behind the largest id so far, and where
 * there are as many as the memory is for, the lowest goes. Members of ids in
 * closed ranges still come; so a table closes at a share of what it is for,
 * which is learned from those that are closed.
 *
 * about_get and about_add take no lock, but for ids that come while a table
 * closes. Their thread is an online reader of the qsbr, and what they are given
 * is theirs. */

enum {
    ABOUT_TABLES = 32,       /* what memory is divided by */
    ABOUT_TABLES_MIN = 2,    /* after a change of memory */
    ABOUT_TABLES_MAX = 1024, /* likewise */
    ABOUT_BATCH = 64         /* pairs that are worked on together */
};

#define ABOUT_MEMORY_MIN (UINT64_C(16) << 20)

struct about_pair {
    uint64_t id;
    uint64_t member;
};

enum about_said {
    ABOUT_OUT,   /* it is none; of an add: it was none, and is one now */
    ABOUT_IN,    /* it is one, or shares its bits with others */
    ABOUT_BELOW, /* the id is below the window: nothing is known of it, and
                  * nothing was added */
    ABOUT_JUMP   /* of an add: the id is too far beyond the largest one, and
                  * nothing was added */
};

/* Told what is to be logged before it counts. Calls for one column may come
 * from several threads at once, but for roll_fn, and see about_add. */
struct about_sink {
    /* Bits of these pairs (1..ABOUT_BATCH) are about to be set. Returns what
     * is to be committed before that may be said. */
    uint64_t (*add_fn)(
        struct about_sink *sink, const struct about_pair *pair, size_t n);
    /* What is to be committed before all is that was added by now. */
    uint64_t (*last_fn)(struct about_sink *sink);
    /* A table is about to begin with that id, and then lowest is the first id
     * of the window. */
    void (*roll_fn)(struct about_sink *sink, uint64_t first, uint64_t lowest);
};

struct about; /* opaque */

/* out[i] (n) is what is known of pair[i]: an enum about_said. */
void about_get(const struct about *about, const struct about_pair *pair,
    size_t n, uint8_t *out);

/* Adds n pairs; out as above. max_jump: an id that is further above the largest
 * one so far is refused; 0: none is. Returns what is to be committed before it
 * may be said, also of a member that was there, whose own add may not be
 * committed yet; 0: nothing. A pair that several threads add at once is new for
 * one of them. */
uint64_t about_add(struct about *about, const struct about_pair *pair,
    size_t n, uint64_t max_jump, uint8_t *out);

/* Of what a log says: adds n pairs, those in the window, and counts the tables'
 * members by them; and begins a table with that id, if it is above all others,
 * and has the lowest tables go, up to the one with the id `lowest`. Nothing is
 * logged. One thread at a time, online or without anybody who reads. about_roll
 * is 0 or ERR_NO_MEMORY: then nothing has changed, and later adds would be
 * found nowhere. */
void about_redo(struct about *about, const struct about_pair *pair, size_t n);
int about_redo_roll(struct about *about, uint64_t first, uint64_t lowest);

/* Frees memory of tables that went, which nobody can see any more, and learns
 * anew when a table closes. Any thread. */
void about_tend(struct about *about);

struct about_figures {
    uint64_t tables, tables_max;
    uint64_t bytes;         /* of memory, now */
    uint64_t first_id;      /* of the window */
    uint64_t largest_id;    /* 0: there is none */
    uint64_t members;       /* in all tables, about: what was new when added */
    uint64_t members_max;   /* in one table, for the error asked for */
    uint64_t fullest;       /* members of the fullest table */
    uint64_t wrong_one_in;  /* one look in so many for what is no member is
                             * wrong, by the bits set; 0: none is */
    uint64_t fullest_wrong; /* the same of the worst table */
    uint64_t closed;        /* tables, since it was created */
    uint64_t forgotten;     /* likewise, that are gone */
    uint64_t share;         /* of what a table is for at which it closes, in
                             * percent */
};

/* By a sample of each table's lines, some tens of microseconds a table. Any
 * thread, an online reader. */
void about_figures(const struct about *about, struct about_figures *out);

/* Asserts the invariants; an online reader. */
void about_verify(const struct about *about);

#endif
