/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NAMES_NAME_INDEX_H
#define NAMES_NAME_INDEX_H

#include "names/name_account.h"
#include "names/name_rest.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Numbers by the hash of their names. It has neither names nor hashes: a byte
 * of the hash beside each number says which are worth a look, and it asks for a
 * number's hash when it grows. Readers look without a lock, between two
 * quiescent points of theirs; the other functions are under the dictionary's
 * lock. */

enum {
    NAME_BUCKET_SLOTS = 12,
    NAME_PART_NAMES_MAX = 2048, /* then it is cut in two */
    NAME_INDEX_DEPTH_MAX = 24
};

/* One cache line. */
struct name_bucket {
    _Atomic uint64_t tags[2]; /* a byte a slot, of the hash, 0: free; the last
                               * byte is not 0 where a name had to go on to the
                               * next bucket */
    _Atomic uint32_t number[NAME_BUCKET_SLOTS];
};

_Static_assert(sizeof(struct name_bucket) == 64, "one cache line");

/* The names whose hashes begin with the same bits. */
struct name_part {
    uint32_t n_buckets;         /* constant */
    unsigned depth;             /* bits; constant */
    uint32_t n_names;           /* the lock's */
    struct name_bucket *bucket; /* constant; behind this, in the same block */
};

struct name_parts {
    unsigned depth; /* constant; part i: of the hashes whose first depth bits
                     * are i */
    _Atomic(struct name_part *) part[];
};

struct name_index {
    _Atomic(struct name_parts *) parts;
    struct name_account *account; /* not owned */
    struct name_rest *rest;       /* not owned */
    uint64_t n_names, bytes;      /* bytes as they are accounted. The lock's */
    /* The hashes of n numbers that are in the index, up to
     * NAME_PART_NAMES_MAX. */
    void (*hash_fn)(
        void *context, const uint32_t *number, unsigned n, uint64_t *hash);
    void *context;
};

/* Where a look has got to. */
struct name_look {
    uint64_t hash;
    const _Atomic(struct name_part *) *place;
    const struct name_part *part;
    uint32_t bucket, n_seen;
    uint64_t
        marks[2]; /* top bits: slots of bucket that are still to be seen */
};

/* account, rest, hash_fn and context are set. 0, ERR_HOT_FULL or
 * ERR_NO_MEMORY. */
int name_index_init(struct name_index *index);
/* No reader may be left. Also after a name_index_init that failed. */
void name_index_fini(struct name_index *index);

/* Looks for a hash, in four steps: each touches a line that the one before has
 * asked the memory for, so that many looks go side by side. */
void name_look_start(
    struct name_look *look, const struct name_index *index, uint64_t hash);
void name_look_part(struct name_look *look);
void name_look_bucket(struct name_look *look);
void name_look_begin(struct name_look *look);

/* The next number whose name may be the one; false: there is none. */
bool name_look_next(struct name_look *look, uint32_t *number);

/* Sees to it that one more name with that hash can be put. 0, ERR_HOT_FULL or
 * ERR_NO_MEMORY, and nothing is lost. */
int name_index_reserve(struct name_index *index, uint64_t hash);

/* Puts it, after name_index_reserve. */
void name_index_put(struct name_index *index, uint64_t hash, uint32_t number);

/* Takes it out, which must be there. */
void name_index_take_out(
    struct name_index *index, uint64_t hash, uint32_t number);

#endif
