/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STATS_HOT_H
#define STATS_HOT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which ids are asked for and changed most, of late: a sample of one in
 * HOT_EVERY, counted by the Space-Saving sketch of Metwally, Agrawal and El
 * Abbadi, "Efficient computation of frequent and top-k elements in data
 * streams" (2005). One a thread; they are merged when read.
 *
 * An id that has 1 % of all is there, and its figures are some 11 % wrong where
 * there were 10^6 keys (80 or so samples of it): the error is that of
 * the sample, and falls with the root of their number. Rare ids may be missing
 * or show less than they had. */

enum {
    HOT_EVERY = 128,   /* keys, about, of which one is counted */
    HOT_SETS = 32,     /* an id has its place in one of them */
    HOT_WAYS = 8,      /* ids of a set */
    HOT_UNIT = 16,     /* what a sample adds, so that halves are kept */
    HOT_HALF_LIFE = 10 /* ticks after which what was counted is halved */
};

enum hot_use { HOT_GET, HOT_CHANGE, HOT_USES };

struct hot_cell {
    _Atomic uint64_t id;
    _Atomic uint32_t name;        /* see hot_count */
    _Atomic uint32_t counter;     /* its slot in the schema, */
    _Atomic uint32_t serial;      /* and the serial of one of its columns */
    _Atomic uint32_t n[HOT_USES]; /* units since it has the place */
    _Atomic uint32_t
        weight; /* these, and what the one had that was there before
                              * it; 0: the place is free */
};

struct hot_set {
    _Atomic uint32_t version; /* odd while it changes */
    struct hot_cell cell[HOT_WAYS];
};

/* All zero: nothing has been counted. Written by one thread, read by any. */
struct hot {
    uint32_t left; /* keys that are passed over before the next one */
    uint32_t ticks;
    uint64_t random;
    _Atomic uint64_t total[HOT_USES]; /* units */
    struct hot_set set[HOT_SETS];
};

/* How far the next sample is from this one: 1 to 2 x HOT_EVERY - 1. */
uint32_t hot_gap(struct hot *hot);

/* Counts one that was sampled. name tells those apart that have the same id one
 * after the other; 0 where an id is always the same one's. */
void hot_count(struct hot *hot, uint64_t id, uint32_t name, uint32_t counter,
    uint32_t serial, enum hot_use use);

/* True where one of the next n keys is to be counted: begin with key number
 * hot->left, go on by hot_gap, and take n off in the end. Else they have been
 * passed over. */
static inline bool
hot_samples(struct hot *hot, uint32_t n)
{
    if (hot->left < n) {
        return true;
    }
    hot->left -= n;
    return false;
}

/* A second or so is over: what is old counts less. The thread that counts. */
void hot_tick(struct hot *hot);

enum { HOT_LIST_MAX = 1024, HOT_SHOWN = 20 };

/* One id, of all threads that were read; keys, about. */
struct hot_one {
    uint64_t id;
    uint32_t name, counter, serial;
    uint64_t n[HOT_USES];
};

struct hot_list {
    unsigned n;
    uint64_t total[HOT_USES]; /* of all keys, also those that are not here */
    struct hot_one one[HOT_LIST_MAX];
};

/* Adds what a thread has counted. Any thread. */
void hot_read(const struct hot *hot, struct hot_list *list);

/* Sorts the hottest to the front. Pure. */
void hot_sort(struct hot_list *list);

#endif
