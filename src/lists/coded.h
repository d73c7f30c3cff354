/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LISTS_CODED_H
#define LISTS_CODED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A list of ids, each with a count, in few bytes: what an id follows, and what
 * the followed columns were. It lies in memory only, and its form may change
 * with any version. Pure; any thread. coded.c has the layout. */

enum {
    CODED_IDS_MAX = 16384, /* of a list, which has one at least */
    CODED_BLOCK_IDS = 256, /* that are decoded at once */
    CODED_BYTES_MAX = 17 * CODED_IDS_MAX, /* see coded_bytes_max */
    CODED_WIDTHS = 4 /* widths of the counts of one list */
};

/* A list that coded_open has looked at. The bytes are the caller's, and stay
 * while it is used. */
struct coded {
    const uint8_t *bytes;
    uint64_t first; /* the lowest id */
    uint32_t n;     /* ids: 1..CODED_IDS_MAX */
    uint32_t high;  /* of the last id */
    uint8_t low_bits;
    uint8_t width[CODED_WIDTHS];       /* bits of a count, by class */
    size_t low_at, class_at, count_at; /* bytes, where each part begins */
};

/* Takes the len bytes for a list that coded_make has made: true where their
 * lengths and counts fit each other, so that nothing outside of them is read
 * whatever they say. */
bool coded_open(struct coded *list, const void *bytes, size_t len);

/* How far a list is decoded; all zero at its beginning. */
struct coded_walk {
    uint32_t i;        /* the next id */
    uint32_t at;       /* the bits of the high parts that are gone over */
    uint64_t count_at; /* the bits of the counts likewise */
};

/* The next ids, ascending, and their counts: how many, CODED_BLOCK_IDS while
 * there are as many; 0 at the end. */
unsigned coded_next(const struct coded *list, struct coded_walk *walk,
    uint64_t *id, uint64_t *count);

/* True where the list has the id: *count is that of it. Decodes the ids that
 * share their high part with it, no others. */
bool coded_find(const struct coded *list, uint64_t id, uint64_t *count);

/* Bytes that coded_make may write for n ids: more than it says in the end. */
size_t coded_bytes_max(unsigned n);

/* Codes n ids (1..CODED_IDS_MAX, ascending, none twice) and their counts: the
 * bytes written to out, which has room for coded_bytes_max(n). */
size_t coded_make(
    const uint64_t *id, const uint64_t *count, unsigned n, uint8_t *out);

/* A list as it is changed: decoded, with room for one id more. */
struct coded_room {
    unsigned n;
    uint64_t id[CODED_IDS_MAX + 1];
    uint64_t count[CODED_IDS_MAX + 1];
};

void coded_decode(const struct coded *list, struct coded_room *room);

/* Gives the id that count, and puts it in where it is not: then true. */
bool coded_put(struct coded_room *room, uint64_t id, uint64_t count);

/* Takes the id out: false where it is not there. */
bool coded_remove(struct coded_room *room, uint64_t id);

#endif
