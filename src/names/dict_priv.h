/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NAMES_DICT_PRIV_H
#define NAMES_DICT_PRIV_H

#include "names/dict.h"
#include "names/name_heap.h"
#include "names/name_index.h"

/* What the files of a dictionary share. */

/* Numbers to give again. Some may have a name all the same, or stand there
 * twice: who takes one looks. The lock's. */
struct dict_free {
    uint32_t *at;
    size_t n, capacity;
};

/* A walk through all blocks for what could not be noted, or given back, when
 * memory was out: numbers that are free, and blocks that are too large. It
 * begins behind the last such moment and a grace period after it, so no reader
 * has any of these numbers. The lock's. */
struct dict_sweep {
    bool is_due;     /* one is to begin */
    bool is_on;      /* one has ... */
    bool has_rested; /* ... and its grace period is over */
    uint64_t target; /* see qsbr_begin */
    uint64_t lost;   /* of dict->lost, those that it finds */
    uint32_t at;     /* the next block */
};

struct dict {
    uint8_t key[SIPHASH_KEY_BYTES];
    struct name_account *account;
    struct name_rest rest;
    struct name_heap heap;
    struct name_index index;
    const struct name_symbols *table[NAME_TABLES_MAX + 1]; /* 0: NULL. Set
                                          * before a block has the number */
    _Atomic uint32_t n_tables; /* 1 to it are set */
    _Atomic uint32_t next;     /* no number from it on has ever been given */
    struct dict_free free;
    uint64_t lost;
    struct dict_sweep sweep;
    bool is_loading, has_twice; /* a name had another number when it came */
    uint32_t n_checked;         /* where dict_end_load goes on */
};

static inline uint32_t
dict__next(const struct dict *dict)
{
    /* acquire: who sees a number finds its block */
    return atomic_load_explicit(&dict->next, memory_order_acquire);
}

static inline void
dict__set_next(struct dict *dict, uint32_t next)
{
    /* release: as above */
    atomic_store_explicit(&dict->next, next, memory_order_release);
}

static inline uint32_t
dict__tables(const struct dict *dict)
{
    /* acquire: a table has been written before its number */
    return atomic_load_explicit(&dict->n_tables, memory_order_acquire);
}

/* A name that has a number comes with another one: true where that may be. */
static inline bool
dict__may_be_twice(struct dict *dict)
{
    dict->has_twice |= dict->is_loading;
    return dict->is_loading;
}

/* The number of a name, or DICT_NO_NUMBER. */
uint32_t dict__find(
    const struct dict *dict, const char *bytes, size_t len, uint64_t hash);

/* Numbers from dict->next to below number have not been given. */
void dict__skip(struct dict *dict, uint32_t number);

#endif
