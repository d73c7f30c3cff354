/* SPDX-License-Identifier: BSD-3-Clause */
/* items/: what is asserted: the states of a segment, its magic number, the
 * locks, and the account of the pool. */
#include "items/core.h"
#include "items/pool_priv.h"
#include "unit/items_help.h"
#include "unit/steps_help.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

/* As drawn in segment.c: by from, then to. */
static const char *const steps[ITEMS__STATES] = {
    [ITEMS__OPEN] = "-PSL-F",
    [ITEMS__SEALED] = "--SLTF",
    [ITEMS__SPARSE] = "---LTF",
    [ITEMS__LENT] = "-PS---",
    [ITEMS__TAKEN] = "-PSL-F",
    [ITEMS__FREE] = "O-----",
};

static void
take_step(struct step it)
{
    struct segment segment = {
        .magic = SEGMENT_MAGIC, .state = (enum segment_state)it.from};

    items__segment_move(&segment, (enum segment_state)it.to);
    ck_assert_uint_eq(segment.state, it.to);
}

static void
go_without_magic(void *context)
{
    struct segment segment = {.state = ITEMS__FREE};

    (void)context;
    items__segment_move(&segment, ITEMS__OPEN);
}

START_TEST(test_states)
{
    bool may[ITEMS__STATES * ITEMS__STATES];

    for (unsigned i = 0; i < COUNT_OF(may); i++) {
        may[i] = steps[i / ITEMS__STATES][i % ITEMS__STATES] != '-';
    }
    expect_steps(take_step, may, ITEMS__STATES);
}
END_TEST

START_TEST(test_magic)
{
    ck_assert(!survives(go_without_magic, NULL));
}
END_TEST

static void
fill(struct items *items, const char *name, unsigned n)
{
    char key[32];

    for (unsigned i = 0; i < n; i++) {
        snprintf(key, sizeof key, "%s%u", name, i);
        ck_assert_int_eq(put(items, ITEMS_SET, key, "a value"), 0);
    }
}

/* What may be wrong with a cache that has some items. */
enum wrong {
    NOTHING,
    SEGMENT_WITHOUT_MAGIC,
    SEGMENT_IN_WRONG_QUEUE,
    QUEUE_BYTES,
    POOL_BYTES,
    LENT_BYTES,
    STRIPE_ITEMS,
    STRIPE_BYTES,
    TABLE_ENTRIES,
    WRONGS
};

struct broken {
    struct items *items;
    struct stripe *stripe; /* has items */
    enum wrong wrong;
};

static void
break_it(const struct broken *broken)
{
    struct pool *pool = &broken->items->pool;
    struct segment *sealed = pool->sealed[ITEMS__FRESH].oldest;

    ck_assert_ptr_nonnull(sealed);
    switch (broken->wrong) {
    case SEGMENT_WITHOUT_MAGIC:
        sealed->magic = 0;
        break;
    case SEGMENT_IN_WRONG_QUEUE:
        sealed->state = ITEMS__LENT;
        break;
    case QUEUE_BYTES:
        pool->sealed[ITEMS__FRESH].bytes--;
        break;
    case POOL_BYTES:
        pool->bytes--;
        break;
    case LENT_BYTES:
        pool->lent_bytes = pool->bytes + 1;
        break;
    case STRIPE_ITEMS:
        broken->stripe->sums.curr_items++;
        break;
    case STRIPE_BYTES:
        broken->stripe->sums.bytes++;
        break;
    case TABLE_ENTRIES:
        broken->stripe->table.n--;
        break;
    case NOTHING:
    case WRONGS:
        break;
    }
}

static void
verify_broken(void *context)
{
    const struct broken *broken = context;

    break_it(broken);
    items_verify(broken->items);
}

START_TEST(test_verify)
{
    struct items *items = make(2 * MIB);
    struct broken broken = {.items = items, .stripe = &items->stripe[0]};

    fill(items, "key", 2000);
    ck_assert_uint_gt(broken.stripe->table.n, 0);
    for (unsigned i = 0; i < WRONGS; i++) {
        broken.wrong = (enum wrong)i;
        ck_assert_msg(
            survives(verify_broken, &broken) == (i == NOTHING), "%u", i);
    }
    finish(&items);
}
END_TEST

/* The account is looked at when a segment is sealed, too. */
static void
go_on_broken(void *context)
{
    struct broken *broken = context;

    broken->items->pool.sealed[ITEMS__FRESH].bytes +=
        2 * broken->items->pool.limit_bytes;
    fill(broken->items, "more", 2000);
}

START_TEST(test_account)
{
    struct items *items = make(2 * MIB);
    struct broken broken = {.items = items};

    fill(items, "key", 2000);
    ck_assert(!survives(go_on_broken, &broken));
    finish(&items);
}
END_TEST

/* Functions that are to be called under a lock, without it. */

static struct entry *
any_entry(struct stripe *stripe)
{
    for (uint64_t b = 0; b < stripe->table.n_buckets; b++) {
        struct entry *entry = items__table_bucket(&stripe->table, b);

        if (entry != NULL) {
            return entry;
        }
    }
    return NULL;
}

static void
unlink_without_lock(void *context)
{
    struct broken *broken = context;

    items__stripe_unlink(broken->stripe, any_entry(broken->stripe));
}

static void
unlink_with_lock(void *context)
{
    struct broken *broken = context;

    items__stripe_lock(broken->stripe);
    items__stripe_unlink(broken->stripe, any_entry(broken->stripe));
    items__stripe_unlock(broken->stripe);
}

static void
resize_without_lock(void *context)
{
    struct broken *broken = context;

    items__stripe_resize(broken->stripe, any_entry(broken->stripe), 1);
}

static void
sink_without_lock(void *context)
{
    struct broken *broken = context;

    items__pool_sink(&broken->items->pool);
}

static void
sort_without_lock(void *context)
{
    struct broken *broken = context;
    struct pool *pool = &broken->items->pool;

    items__pool_sort(pool, pool->open[ITEMS__FRESH]);
}

static void
flush_without_lock(void *context)
{
    struct broken *broken = context;

    items__core_flush(broken->items);
}

START_TEST(test_locks)
{
    struct items *items = make(2 * MIB);
    struct broken broken = {.items = items, .stripe = &items->stripe[0]};

    fill(items, "key", 2000);
    ck_assert(survives(unlink_with_lock, &broken));
    ck_assert(!survives(unlink_without_lock, &broken));
    ck_assert(!survives(resize_without_lock, &broken));
    ck_assert(!survives(sink_without_lock, &broken));
    ck_assert(!survives(sort_without_lock, &broken));
    ck_assert(!survives(flush_without_lock, &broken));
    finish(&items);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("items_asserts");
    TCase *asserts = tcase_create("asserts");

    tcase_add_test(asserts, test_states);
    tcase_add_test(asserts, test_magic);
    tcase_add_test(asserts, test_verify);
    tcase_add_test(asserts, test_account);
    tcase_add_test(asserts, test_locks);
    tcase_set_timeout(asserts, HELP_TIMEOUT_S);
    suite_add_tcase(s, asserts);
    return s;
}

int
main(void)
{
    return run_suite(suite());
}
