/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_FETCH_HELP_H
#define UNIT_FETCH_HELP_H

/* What the tests of fetch share: calls that can be waited for, and answers
 * compared with records. */

#include "base/mutex.h"
#include "cold/fetch.h"
#include "unit/segment_help.h"

#include <pthread.h>

enum { ASKS_MAX = 1000 };

/* A call with room for its lookups. */
struct ask {
    struct fetch_call call;
    struct fetch_lookup lookup[ASKS_MAX];
    struct mutex lock;
    pthread_cond_t answered;
    unsigned n_done; /* times that done_fn was called */
};

static inline void
ask_done(struct fetch_call *call)
{
    struct ask *ask = call->owner;

    mutex_lock(&ask->lock);
    ask->n_done++;
    pthread_cond_signal(&ask->answered);
    mutex_unlock(&ask->lock);
}

static inline struct ask *
ask_create(void)
{
    struct ask *ask = calloc(1, sizeof *ask);

    ck_assert_ptr_nonnull(ask);
    ask->call = (struct fetch_call){
        .lookup = ask->lookup, .done_fn = ask_done, .owner = ask};
    mutex_init(&ask->lock);
    pthread_cond_init(&ask->answered, NULL);
    return ask;
}

static inline void
ask_destroy(struct ask **ask)
{
    pthread_cond_destroy(&(*ask)->answered);
    mutex_fini(&(*ask)->lock);
    free(*ask);
    *ask = NULL;
}

/* Forgets the lookups that it has. */
static inline void
ask_clear(struct ask *ask)
{
    ask->call.n = 0;
    ask->n_done = 0;
}

/* Adds a lookup, with garbage where the answer comes. */
static inline void
ask_add(struct ask *ask, const struct segment *segment, uint64_t id)
{
    struct fetch_lookup *lookup = &ask->lookup[ask->call.n];

    ck_assert_uint_lt(ask->call.n, ASKS_MAX);
    memset(lookup, 0xa5, sizeof *lookup);
    lookup->segment = segment;
    lookup->id = id;
    lookup->columns = BLOCK_COLUMNS_ALL;
    ask->call.n++;
}

/* Waits for the answer of a call that was not answered at once. */
static inline void
ask_wait(struct ask *ask)
{
    mutex_lock(&ask->lock);
    while (ask->n_done == 0) {
        mutex_wait(&ask->lock, &ask->answered);
    }
    mutex_unlock(&ask->lock);
}

/* Has it answered; true where that was at once. */
static inline bool
ask_run(struct ask *ask, struct fetch *fetch)
{
    if (fetch_begin(fetch, &ask->call)) {
        return true;
    }
    ask_wait(ask);
    return false;
}

/* Whether there is a record of an id, and where. */
static inline bool
find_record(const struct records *records, uint64_t id, size_t *at)
{
    size_t from = 0;

    for (size_t n = records->n; n > 1;) {
        size_t half = n / 2;

        from += records->id[from + half] <= id ? half : 0;
        n -= half;
    }
    *at = from;
    return records->id[from] == id;
}

/* Whether the answer is what the records say. */
static inline bool
is_right(const struct fetch_lookup *lookup, const struct records *records)
{
    size_t at;
    bool is_there = find_record(records, lookup->id, &at);

    return lookup->err == 0 && lookup->found == is_there &&
        (!is_there ||
            memcmp(lookup->code, records->code[at],
                records->n_columns * sizeof *lookup->code) == 0);
}

/* Asserts that all answers are right, or have that error (0: none may). */
static inline size_t
ask_check(const struct ask *ask, const struct records *records, int may_err)
{
    size_t failed = 0;
    bool good = true;

    for (size_t i = 0; i < ask->call.n; i++) {
        const struct fetch_lookup *lookup = &ask->lookup[i];
        bool has_err = may_err != 0 && lookup->err == may_err;

        good = good && (has_err ? !lookup->found : is_right(lookup, records));
        failed += has_err;
    }
    ck_assert(good);
    ck_assert_uint_le(ask->n_done, 1);
    return failed;
}

#endif
