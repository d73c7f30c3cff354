/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_SORTED_H
#define ENGINE_SORTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The largest members of a record, in an array in memory that is made when it
 * is first asked for and follows each change from then on: for marks that are
 * about members. sorted.c says how. */

enum {
    SORTED_MAX = 65536 /* members above a position are counted up to so many */
};

struct engine;

/* Whose members: as engine_pair and engine_members have it. */
struct sorted_key {
    uint64_t id;
    uint64_t number; /* 0: it has none */
    uint32_t serial; /* of the one column of pairs */
    uint8_t pairs;   /* slot of the counter of pairs */
    uint8_t bits;
};

/* The members of a record as they were at one moment. The caller's: it may be
 * copied and read by any thread, online or not, until engine_unpin. */
struct sorted_pin {
    const struct sorted_array *array; /* NULL: there are none */
    uint32_t n;
};

/* How those of a record are read, whichever place they are in; a seam. Writes
 * the first n (> 0) members >= from, ascending, to member[]; *n_found is how
 * many there are, fewer than n where there are no more. What changes meanwhile
 * may be in it or not; what does not, is. 0, or why they cannot be read:
 * ERR_NO_MEMORY, ERR_COLD_READ, ERR_GONE (these are no pairs any more),
 * ERR_CLOSED (at a stop). */
struct sorted_walk {
    int (*next_fn)(const struct sorted_walk *walk,
        const struct sorted_key *key, uint64_t from, size_t n,
        uint64_t *member, size_t *n_found);
};

/* *pin is of the members now: false where there is no array for them, and then
 * *pin is void. Takes no lock. The thread is an online reader of the engine's
 * qsbr. */
bool engine_pin(struct engine *engine, const struct sorted_key *key,
    struct sorted_pin *pin);

/* The same, and makes the array where there is none: reads all members of the
 * record by walk. 0; ERR_GONE where these are no pairs any more; ERR_NO_MEMORY,
 * or what walk says: *pin is void then. One thread at a time, online or not. */
int engine_make_sorted(struct engine *engine, const struct sorted_key *key,
    const struct sorted_walk *walk, struct sorted_pin *pin);

/* Gives a pin back. Any thread. */
void engine_unpin(struct engine *engine, struct sorted_pin *pin);

/* The largest member; 0 where there is none. */
uint64_t sorted_largest(const struct sorted_pin *pin);

/* How many members are above a position: up to SORTED_MAX. */
uint64_t sorted_above(const struct sorted_pin *pin, uint64_t position);

/* The positions that `above` members are above, as sorted_above counts them:
 * *first to *last. False where there are none. */
bool sorted_positions(const struct sorted_pin *pin, uint64_t above,
    uint64_t *first, uint64_t *last);

/* Figures of all arrays. */
struct sorted_figures {
    uint64_t arrays, bytes; /* that there are */
    uint64_t limit_bytes;   /* those above it are dropped, the least used
                             * first */
    uint64_t made, dropped; /* ever */
};

/* Any thread. */
void engine_sorted_figures(
    const struct engine *engine, struct sorted_figures *out);

#endif
