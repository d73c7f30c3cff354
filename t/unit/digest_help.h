/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_DIGEST_HELP_H
#define UNIT_DIGEST_HELP_H

/* Digests of a store's counters, as a session asks for them. */

#include "unit/durable_help.h"

/* One that has begun. */
struct digest_call {
    struct store_dump dump;
    struct store_digest digest;
    struct answer answer;
};

static inline void
digest_call_begin(
    struct store *store, const char *name, struct digest_call *it)
{
    const struct schema_counter *counter =
        schema_counter(quiet_schema(store), name, strlen(name));
    ck_assert_ptr_nonnull(counter);
    answer_init(&it->answer);
    it->digest = (struct store_digest){0};
    it->dump = (struct store_dump){.slot = counter->slot,
        .serial = counter->serial,
        .last_id = UINT64_MAX,
        .digest = &it->digest};
    it->dump.call = call_of(&it->answer);
}

/* Reads some more; its err. */
static inline int
digest_call_step(struct store *store, struct digest_call *it)
{
    ck_assert_int_eq(store_dump(store, &it->dump), STORE_LATER);
    answer_wait(&it->answer);
    ck_assert_uint_eq(it->dump.n, 0);
    return it->dump.err;
}

static inline void
digest_call_end(struct store *store, struct digest_call *it)
{
    store_end_dump(store, &it->dump);
    answer_fini(&it->answer);
}

static inline struct store_digest
digest_of(struct store *store, const char *name)
{
    struct digest_call it;
    digest_call_begin(store, name, &it);
    do {
        ck_assert_int_eq(digest_call_step(store, &it), 0);
    } while (!it.dump.is_end);
    digest_call_end(store, &it);
    return it.digest;
}

#endif
