/* SPDX-License-Identifier: BSD-3-Clause */
/* items/: random operations against a slow model, and failing allocations.
 * The long loops use ASSERT: ck_assert writes to a pipe each time. */
#include "base/assert.h"
#include "base/err.h"
#include "unit/items_help.h"

#include <check.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEYS = 200,
    VALUE_MAX = 1100, /* some above what item_bytes_max allows */
    ITEM_BYTES_MAX = 1024,
    STEPS = 700000,
    SEEDS = 4,
    VERIFY_EVERY = 50000
};

/* What the model knows of a key. */
struct known {
    bool is_there;
    size_t len;
    char value[VALUE_MAX];
    uint32_t flags;
    uint64_t expiry_s;
    uint64_t cas;
};

struct model {
    struct items *items;
    uint64_t random;
    uint64_t now_s;
    uint64_t flush_at_s; /* 0: none */
    uint64_t last_cas;
    unsigned n_done[ERR_COUNT]; /* answers, to see that all were met */
    struct known known[KEYS];
};

static void
key_of(unsigned i, char *key, size_t size)
{
    snprintf(key, size, "key-%u", i);
}

/* Applies what time does to the model, then says what is under i. */
static struct known *
known_of(struct model *m, unsigned i)
{
    struct known *known = &m->known[i];

    if (m->flush_at_s != 0 && m->now_s >= m->flush_at_s) {
        m->flush_at_s = 0;
        for (unsigned k = 0; k < KEYS; k++) {
            m->known[k].is_there = false;
        }
    }
    if (known->expiry_s != 0 && known->expiry_s <= m->now_s) {
        known->is_there = false;
    }
    return known;
}

static uint64_t
some_expiry(struct model *m)
{
    return random_below(&m->random, 3) != 0
        ? ITEMS_NEVER
        : m->now_s + random_below(&m->random, 20) - 1;
}

static size_t
some_value(struct model *m, char *value)
{
    static const char *const texts[] = {"0", "9", "99", "007", " 12", "+5",
        "7  ", "18446744073709551615", "18446744073709551616", "-1", "1 1",
        "x", ""};
    enum { TEXTS = sizeof texts / sizeof texts[0] };
    size_t len = random_below(&m->random, 20) == 0
        ? random_below(&m->random, VALUE_MAX)
        : random_below(&m->random, 40);
    const char *text;

    if (random_below(&m->random, 2) == 0) {
        text = texts[random_below(&m->random, TEXTS)];
        len = strlen(text);
        memcpy(value, text, len);
    } else {
        memset(value, (int)('a' + random_below(&m->random, 26)), len);
    }
    return len;
}

/* The cas of the item under i must be new; checks all else against known. */
static void
check_key(struct model *m, unsigned i, bool touch, uint64_t expiry_s)
{
    struct known *known = known_of(m, i);
    const struct item *item;
    char key[16];

    key_of(i, key, sizeof key);
    item = items_get(m->items, key, strlen(key), m->now_s, touch, expiry_s);
    ASSERT((item != NULL) == known->is_there);
    if (item == NULL) {
        return;
    }
    ASSERT(item->value_len == known->len);
    ASSERT(memcmp(item->value, known->value, known->len) == 0);
    ASSERT(item->flags == known->flags);
    if (known->cas == 0) {
        ASSERT(item->cas > m->last_cas);
        known->cas = m->last_cas = item->cas;
    }
    ASSERT(item->cas == known->cas);
    items_unpin(m->items, item);
    if (touch) {
        known->expiry_s = expiry_s;
    }
}

static void
model_join(struct known *known, const struct items_store *store)
{
    if (store->op == ITEMS_APPEND) {
        memcpy(known->value + known->len, store->value, store->value_len);
    } else {
        memmove(known->value + store->value_len, known->value, known->len);
        memcpy(known->value, store->value, store->value_len);
    }
    known->len += store->value_len;
}

static size_t
most_with(const struct items_store *store, uint32_t flags)
{
    return ITEM_BYTES_MAX - ITEMS_HEADER_BYTES - store->key_len -
        (flags == 0 ? 0 : ITEMS_FLAGS_BYTES);
}

/* What the store must answer, done to the model. */
static int
model_store(struct known *known, const struct items_store *store)
{
    bool joins = store->op == ITEMS_APPEND || store->op == ITEMS_PREPEND;

    if (store->value_len > most_with(store, store->flags)) {
        known->is_there = known->is_there && store->op != ITEMS_SET;
        return ERR_TOO_LARGE;
    }
    if (store->op == ITEMS_CAS) {
        if (!known->is_there) {
            return ERR_NOT_FOUND;
        }
        if (known->cas != store->cas) {
            return ERR_EXISTS;
        }
    } else if (store->op != ITEMS_SET &&
        known->is_there != (store->op != ITEMS_ADD)) {
        return ERR_NOT_STORED;
    }
    if (joins &&
        known->len + store->value_len > most_with(store, known->flags)) {
        return ERR_NOT_STORED;
    }
    if (joins) {
        model_join(known, store);
    } else {
        memcpy(known->value, store->value, store->value_len);
        known->len = store->value_len;
        known->flags = store->flags;
        known->expiry_s = store->expiry_s;
    }
    known->is_there = true;
    return 0;
}

static void
step_store(struct model *m, unsigned i)
{
    struct known *known = known_of(m, i);
    char key[16], value[VALUE_MAX];
    uint64_t cas = 0;
    int err;

    key_of(i, key, sizeof key);
    struct items_store store = store_of(
        (enum items_op)random_below(&m->random, ITEMS_CAS + 1), key, "");
    store.value = value;
    store.value_len = some_value(m, value);
    store.flags = (uint32_t)random_below(&m->random, 10);
    store.expiry_s = some_expiry(m);
    store.cas = known->cas + random_below(&m->random, 2);
    err = model_store(known, &store);
    m->n_done[err]++;
    ASSERT(store_item(m->items, &store, m->now_s, &cas) == err);
    if (err == 0) {
        ASSERT(cas > m->last_cas);
        known->cas = m->last_cas = cas;
    }
}

/* The slow way to read a number: by its rules, in wider arithmetic. */
static bool
model_number(const struct known *known, uint64_t *out)
{
    size_t at = 0, end = known->len;
    __extension__ unsigned __int128 number = 0;

    while (at < end && known->value[at] == ' ') {
        at++;
    }
    at += at < end && known->value[at] == '+';
    if (at == end || known->value[at] == ' ') {
        return false;
    }
    for (; at < end && known->value[at] != ' '; at++) {
        if (known->value[at] < '0' || known->value[at] > '9') {
            return false;
        }
        number = number * 10 + (unsigned)(known->value[at] - '0');
        if (number > UINT64_MAX) {
            return false;
        }
    }
    *out = (uint64_t)number;
    return true;
}

static int
model_arith(
    struct known *known, bool negative, uint64_t delta, uint64_t *number)
{
    char text[24];

    if (!known->is_there) {
        return ERR_NOT_FOUND;
    }
    if (!model_number(known, number)) {
        return ERR_NOT_NUMERIC;
    }
    if (!negative) {
        *number += delta;
    } else {
        *number = *number > delta ? *number - delta : 0;
    }
    known->len = (size_t)snprintf(
        text, sizeof text, "%llu", (unsigned long long)*number);
    memcpy(known->value, text, known->len);
    known->cas = 0;
    return 0;
}

static void
step_arith(struct model *m, unsigned i)
{
    struct known *known = known_of(m, i);
    bool negative = random_below(&m->random, 2) == 0;
    uint64_t delta = random_below(&m->random, 4) == 0
        ? random_below(&m->random, UINT64_MAX)
        : random_below(&m->random, 100);
    uint64_t expected = 0, number = 0;
    const struct item *pinned = NULL;
    char key[16];
    int err;

    key_of(i, key, sizeof key);
    if (random_below(&m->random, 4) == 0) {
        check_key(m, i, false, 0);
        pinned = items_get(m->items, key, strlen(key), m->now_s, false, 0);
    }
    err = model_arith(known, negative, delta, &expected);
    m->n_done[err]++;
    ASSERT(arith_at(m->items, key, negative, delta, m->now_s, &number) == err);
    ASSERT(number == expected);
    check_key(m, i, false, 0);
    if (pinned != NULL) {
        items_unpin(m->items, pinned);
    }
}

static void
step_other(struct model *m, unsigned i)
{
    struct known *known = known_of(m, i);
    uint64_t expiry_s = some_expiry(m);
    int err = known->is_there ? 0 : ERR_NOT_FOUND;
    char key[16];

    key_of(i, key, sizeof key);
    switch (random_below(&m->random, 4)) {
    case 0:
        ASSERT(
            items_delete(m->items, key, strlen(key), NULL, m->now_s) == err);
        known->is_there = false;
        break;
    case 1:
        ASSERT(touch(m->items, key, expiry_s, m->now_s) == err);
        known->expiry_s = expiry_s;
        break;
    case 2:
        ASSERT(items_has(m->items, key, strlen(key), m->now_s) ==
            known->is_there);
        break;
    default:
        check_key(m, i, true, expiry_s);
    }
}

/* Flushes at once or later, without known_of: flush comes first at times. */
static void
step_flush(struct model *m)
{
    uint64_t at_s = random_below(&m->random, 2) == 0
        ? 0
        : m->now_s + random_below(&m->random, 8);

    items_flush(m->items, at_s, m->now_s);
    (void)known_of(m, 0);
    m->flush_at_s = at_s == 0 ? 1 : at_s;
    (void)known_of(m, 0);
}

static void
model_step(struct model *m)
{
    unsigned i = (unsigned)random_below(&m->random, KEYS);
    uint64_t kind = random_below(&m->random, 100);

    if (kind < 35) {
        step_store(m, i);
    } else if (kind < 60) {
        step_arith(m, i);
    } else if (kind < 85) {
        check_key(m, i, false, 0);
    } else if (kind < 99) {
        step_other(m, i);
    } else if (random_below(&m->random, 20) == 0) {
        step_flush(m);
    }
    if (random_below(&m->random, 50) == 0) {
        m->now_s += random_below(&m->random, 4);
    }
}

START_TEST(test_model)
{
    struct items_config config = {
        .limit_bytes = ROOMY, .item_bytes_max = ITEM_BYTES_MAX};
    struct model *m = calloc(1, sizeof *m);

    ck_assert_ptr_nonnull(m);
    m->random = config.seed = (uint64_t)_i;
    m->now_s = 1;
    m->items = items_create(&config);
    for (unsigned step = 1; step <= STEPS; step++) {
        model_step(m);
        if (step % VERIFY_EVERY == 0) {
            items_verify(m->items);
            for (unsigned i = 0; i < KEYS; i++) {
                check_key(m, i, false, 0);
            }
        }
    }
    ck_assert_uint_gt(m->n_done[0], 500);
    ck_assert_uint_gt(m->n_done[ERR_NOT_FOUND], 500);
    ck_assert_uint_gt(m->n_done[ERR_NOT_STORED], 500);
    ck_assert_uint_gt(m->n_done[ERR_EXISTS], 500);
    ck_assert_uint_gt(m->n_done[ERR_TOO_LARGE], 500);
    ck_assert_uint_gt(m->n_done[ERR_NOT_NUMERIC], 500);
    ck_assert_uint_eq(stats_of(m->items).evictions, 0);
    finish(&m->items);
    free(m);
}
END_TEST

enum { SWEEP_STEPS = 7, SMALL_LIMIT = 1 << 20 };

/* Memory of which some blocks are refused. */
struct refusal {
    size_t only_bytes; /* blocks of this size; 0: any */
    uint64_t from;     /* from the n-th on; 0: none */
    uint64_t to;       /* to this one */
    uint64_t n;
    uint64_t n_refused;
    uint64_t held_bytes;
};

static void *
refusing_zeroed(void *context, size_t bytes)
{
    struct refusal *refusal = context;
    bool counts = refusal->only_bytes == 0 || refusal->only_bytes == bytes;

    refusal->n += counts;
    if (counts && refusal->from != 0 && refusal->n >= refusal->from &&
        refusal->n <= refusal->to) {
        refusal->n_refused++;
        return NULL;
    }
    refusal->held_bytes += bytes;
    return calloc(1, bytes);
}

static void
refusing_free(void *context, void *block, size_t bytes)
{
    struct refusal *refusal = context;

    refusal->held_bytes -= bytes;
    free(block);
}

/* Stores what is smaller than anything that comes, until the open segment has
 * no room for it. */
static void
fill_segment(struct items *items, char name)
{
    uint64_t held = stats_of(items).held_bytes;
    unsigned n_grown = 0, n_at_growth = 0, n_left = UINT_MAX;
    char key[16];

    for (unsigned n = 0; n_left > 0; n++) {
        snprintf(key, sizeof key, "%c%u", name, n);
        ck_assert_int_eq(put(items, ITEMS_SET, key, ""), 0);
        n_left--;
        if (stats_of(items).held_bytes > held) {
            held = stats_of(items).held_bytes;
            n_grown++;
            if (n_grown == 3) {
                n_left = n - n_at_growth - 1; /* as many as the last held */
            }
            n_at_growth = n;
        }
    }
}

/* Runs the operation that the sweep looks at. */
static int
sweep_step(struct items *items, unsigned step)
{
    uint64_t number;

    switch (step) {
    case 0:
        return put(items, ITEMS_SET, "new", "1");
    case 1:
        return put(items, ITEMS_ADD, "fresh", "1");
    case 2:
        return put(items, ITEMS_SET, "a", "222222222222");
    case 3:
        return put(items, ITEMS_REPLACE, "a", "333333333333");
    case 4:
        return put(items, ITEMS_APPEND, "a", "4");
    case 5:
        return put(items, ITEMS_PREPEND, "a", "5");
    default:
        return add_number(items, "n", 1, &number);
    }
}

/* Where memory is out others may have been given up, but no value is wrong. */
static void
expect_swept(struct items *items, unsigned step, int err)
{
    static const char *const a_after[] = {
        "1", "1", "222222222222", "333333333333", "14", "51", "1"};
    static const char *const changed[] = {
        "new", "fresh", "a", "a", "a", "a", "n"};

    if (err == 0) {
        ck_assert(has(items, changed[step], NOW));
    }
    ck_assert(err == 0 || !has(items, "new", NOW));
    ck_assert(err == 0 || !has(items, "fresh", NOW));
    if (err != 0 && step == 2) {
        ck_assert(!has(items, "a", NOW));
    }
    if (has(items, "a", NOW)) {
        expect_item(items, "a", err == 0 ? a_after[step] : "1");
    }
    if (has(items, "n", NOW)) {
        expect_item(items, "n", step == 6 && err == 0 ? "10" : "9");
    }
    items_verify(items);
}

/* One block, or all from one on, is refused; true if any was. */
static bool
sweep(unsigned step, uint64_t nth, bool all)
{
    struct refusal refusal = {0};
    struct alloc alloc = {refusing_zeroed, refusing_free, &refusal};
    struct items_config config = {.limit_bytes = SMALL_LIMIT,
        .item_bytes_max = ITEM_BYTES_MAX,
        .alloc = &alloc};
    struct items *items = items_create(&config);
    const struct item *pinned;
    int err;

    fill_segment(items, 'x');
    ck_assert_int_eq(put(items, ITEMS_SET, "a", "1"), 0);
    ck_assert_int_eq(put(items, ITEMS_SET, "n", "9"), 0);
    fill_segment(items, 'y');
    pinned = pin_at(items, "n", NOW); /* so that it cannot change in place */
    refusal.from = refusal.n + nth;
    refusal.to = all ? UINT64_MAX : refusal.from;
    err = sweep_step(items, step);
    refusal.from = 0;
    ck_assert(all || err == 0 || err == ERR_NOT_STORED);
    expect_swept(items, step, err);
    if (pinned != NULL) {
        items_unpin(items, pinned);
    }
    items_destroy(&items);
    ck_assert_uint_eq(refusal.held_bytes, 0);
    return refusal.n_refused > 0;
}

START_TEST(test_failing_allocations)
{
    for (unsigned all = 0; all <= 1; all++) {
        uint64_t nth = 1;

        while (sweep((unsigned)_i, nth, all == 1)) {
            nth++;
        }
        ck_assert_uint_ge(nth, 2);
    }
}
END_TEST

/* A cache that keeps may have no room to clean: it loses nothing then. */
START_TEST(test_keeping_without_memory)
{
    enum { MANY = 3000, CHANGES = 20000 };
    struct refusal refusal = {0};
    struct alloc alloc = {refusing_zeroed, refusing_free, &refusal};
    struct items_config config = {.limit_bytes = SMALL_LIMIT,
        .item_bytes_max = ITEM_BYTES_MAX,
        .keeps = true,
        .alloc = &alloc};
    struct items *items = items_create(&config);
    uint64_t random = (uint64_t)_i;
    unsigned n_failed = 0;
    char key[16];

    for (unsigned i = 0; i < MANY; i++) {
        snprintf(key, sizeof key, "k%u", i);
        ck_assert_int_eq(put(items, ITEMS_SET, key, "0123456789"), 0);
    }
    refusal.from = refusal.n + 1;
    refusal.to = UINT64_MAX;
    for (unsigned i = 0; i < long_part(CHANGES); i++) {
        snprintf(
            key, sizeof key, "k%u", (unsigned)random_below(&random, MANY));
        n_failed += put(items, ITEMS_APPEND, key, "0123456789") != 0;
    }
    ck_assert_uint_gt(n_failed, 0);
    ck_assert_uint_eq(stats_of(items).curr_items, MANY);
    ck_assert_uint_eq(stats_of(items).evictions, 0);
    finish(&items);
    ck_assert_uint_eq(refusal.held_bytes, 0);
}
END_TEST

START_TEST(test_create_without_memory)
{
    struct refusal refusal = {.from = 1, .to = 1};
    struct alloc alloc = {refusing_zeroed, refusing_free, &refusal};
    struct items_config config = {
        .limit_bytes = ROOMY, .item_bytes_max = MIB, .alloc = &alloc};

    ck_assert_ptr_null(items_create(&config));
}
END_TEST

/* Tables that cannot grow: chains grow longer, nothing fails. */
START_TEST(test_failing_growth)
{
    enum { MANY = 20000, BUCKETS = 128, LEVEL_STUCK = 13 };
    struct refusal refusal = {
        .only_bytes = BUCKETS * sizeof(void *), .from = 1, .to = UINT64_MAX};
    struct alloc alloc = {refusing_zeroed, refusing_free, &refusal};
    struct items_config config = {
        .limit_bytes = ROOMY, .item_bytes_max = MIB, .alloc = &alloc};
    struct items *items = items_create(&config);
    char key[16];

    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < MANY; i++) {
            snprintf(key, sizeof key, "k%u-%u", round, i);
            ck_assert_int_eq(put(items, ITEMS_SET, key, "v"), 0);
        }
        ck_assert_uint_eq(stats_of(items).curr_items, (round + 1) * MANY);
        if (round == 0) {
            ck_assert_uint_eq(stats_of(items).hash_power_level, LEVEL_STUCK);
        }
        items_verify(items);
        refusal.from = 0;
    }
    ck_assert_uint_gt(refusal.n_refused, BUCKETS);
    ck_assert_uint_gt(stats_of(items).hash_power_level, LEVEL_STUCK);
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(key, sizeof key, "k0-%u", i);
        ck_assert(has(items, key, NOW));
    }
    items_destroy(&items);
    ck_assert_uint_eq(refusal.held_bytes, 0);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("items_model");
    TCase *slow = tcase_create("slow");
    int seeds = (int)long_part(SEEDS);

    tcase_add_loop_test(slow, test_model, 0, seeds);
    tcase_add_loop_test(slow, test_failing_allocations, 0, SWEEP_STEPS);
    tcase_add_loop_test(slow, test_keeping_without_memory, 0, seeds);
    tcase_add_test(slow, test_create_without_memory);
    tcase_add_test(slow, test_failing_growth);
    tcase_set_timeout(slow, HELP_TIMEOUT_S);
    suite_add_tcase(s, slow);
    return s;
}

int
main(void)
{
    return run_suite(suite());
}
