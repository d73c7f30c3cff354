/* SPDX-License-Identifier: BSD-3-Clause */
/* items/ with many threads at once: exact counts, whole values, bounded
 * memory, and flushes that nothing outlives. Threads use ASSERT: ck_assert
 * belongs to the main thread. */
#include "base/assert.h"
#include "base/sanitizer.h"
#include "unit/items_help.h"

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* Some orders of events are rare and want many tries. The thread sanitizer
     * sees a race without meeting it, and is slow. */
    TRIES = SANITIZER_THREAD ? 1
        : SANITIZER_ADDRESS  ? 2
                             : 5,
    THREADS = 8,
    TRY_STEPS = 8000,
    NUMBERS = 5, /* keys that all threads count in */
    SHARED = 40, /* keys that all threads do anything to */
    CHUNK = 8,   /* shared values are runs of so many equal letters */
    CHUNKS_MAX = 60
};

struct worker {
    struct items *items;
    uint64_t random;
    pthread_t thread;
    uint64_t sum[NUMBERS]; /* of what it added */
    _Atomic unsigned *n_running;
};

static void
start(struct worker *worker, struct items *items, unsigned i,
    _Atomic unsigned *n_running, void *(*body)(void *))
{
    int failed;

    *worker = (struct worker){.items = items, .n_running = n_running};
    worker->random = i;
    atomic_fetch_add(n_running, 1);
    failed = pthread_create(&worker->thread, NULL, body, worker);
    ASSERT(!failed);
}

static void
count(struct worker *worker, unsigned i)
{
    uint64_t delta = random_below(&worker->random, 1000), number;
    char key[16];
    int err;

    snprintf(key, sizeof key, "number-%u", i);
    err = add_number(worker->items, key, delta, &number);
    ASSERT(err == 0);
    worker->sum[i] += delta;
}

static void
read_whole(struct worker *worker, const char *key)
{
    const struct item *item = pin_at(worker->items, key, NOW);

    if (item == NULL) {
        return;
    }
    ASSERT(item->value_len % CHUNK == 0);
    for (uint32_t at = 0; at < item->value_len; at++) {
        ASSERT(item->value[at] == item->value[at - at % CHUNK]);
    }
    items_unpin(worker->items, item);
}

static void
store_whole(struct worker *worker, const char *key, enum items_op op)
{
    struct items_store store = store_of(op, key, "");
    char value[CHUNK * CHUNKS_MAX];

    store.value = value;
    store.value_len = CHUNK * random_below(&worker->random, CHUNKS_MAX);
    memset(value, (int)('a' + random_below(&worker->random, 26)),
        store.value_len);
    (void)store_item(worker->items, &store, NOW, NULL);
}

static void
do_anything(struct worker *worker)
{
    uint64_t kind = random_below(&worker->random, 12);
    char key[16];

    snprintf(key, sizeof key, "shared-%u",
        (unsigned)random_below(&worker->random, SHARED));
    if (kind <= ITEMS_CAS) {
        store_whole(worker, key, (enum items_op)kind);
    } else if (kind == 6) {
        (void)items_delete(worker->items, key, strlen(key), NULL, NOW);
    } else if (kind == 7) {
        (void)touch(worker->items, key, NOW + 1, NOW);
    } else {
        read_whole(worker, key);
    }
}

static void *
mixed_body(void *arg)
{
    struct worker *worker = arg;
    unsigned steps = TRY_STEPS * plain_part(TRIES);

    for (unsigned step = 0; step < steps; step++) {
        if (random_below(&worker->random, 3) == 0) {
            count(worker, (unsigned)random_below(&worker->random, NUMBERS));
        } else {
            do_anything(worker);
        }
    }
    atomic_fetch_sub(worker->n_running, 1);
    return NULL;
}

START_TEST(test_threads)
{
    struct items *items = make(ROOMY);
    struct worker worker[THREADS];
    _Atomic unsigned n_running = 0;
    char key[16];

    for (unsigned i = 0; i < NUMBERS; i++) {
        snprintf(key, sizeof key, "number-%u", i);
        ck_assert_int_eq(put(items, ITEMS_SET, key, "0"), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        start(&worker[i], items, i, &n_running, mixed_body);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(worker[i].thread, NULL);
    }
    for (unsigned i = 0; i < NUMBERS; i++) {
        uint64_t sum = 0, number = 0;

        for (unsigned t = 0; t < THREADS; t++) {
            sum += worker[t].sum[i];
        }
        snprintf(key, sizeof key, "number-%u", i);
        ck_assert_int_eq(add_number(items, key, 0, &number), 0);
        ck_assert_uint_eq(number, sum);
    }
    finish(&items);
}
END_TEST

enum { SMALL_LIMIT = 8 << 20, LARGE_VALUE = 200000 };

static unsigned
room_steps(void)
{
    unsigned tries = plain_part(TRIES);

    return 2000 * (tries < 4 ? tries : 4);
}

static void *
room_body(void *arg)
{
    struct worker *worker = arg;
    char *value = calloc(1, LARGE_VALUE);
    char key[16];

    ASSERT(value != NULL);
    for (unsigned step = 0; step < room_steps(); step++) {
        struct items_store store = store_of(ITEMS_SET, key, value);
        const struct item *item;
        int err;

        snprintf(key, sizeof key, "%u",
            (unsigned)random_below(&worker->random, 100000));
        store.key_len = strlen(key);
        store.value_len = random_below(&worker->random, 4) == 0
            ? random_below(&worker->random, LARGE_VALUE)
            : random_below(&worker->random, 300);
        err = store_item(worker->items, &store, NOW, NULL);
        ASSERT(err == 0);
        item = pin_at(worker->items, key, NOW);
        if (item != NULL) {
            items_unpin(worker->items, item);
        }
    }
    free(value);
    atomic_fetch_sub(worker->n_running, 1);
    return NULL;
}

static void
count_seen(void *context, const struct items_seen *seen)
{
    uint64_t *n_seen = context;

    ASSERT(seen->key_len > 0 && seen->item->cas > 0);
    (*n_seen)++;
}

START_TEST(test_threads_stay_in_their_room)
{
    struct items_class classes[ITEMS_CLASSES];
    uint64_t cursor = 0, n_seen = 0;
    struct items *items = make(SMALL_LIMIT);
    struct worker worker[THREADS];
    _Atomic unsigned n_running = 0;

    for (unsigned i = 0; i < THREADS; i++) {
        start(&worker[i], items, i, &n_running, room_body);
    }
    while (atomic_load(&n_running) > 0 || n_seen == 0) {
        ASSERT(stats_of(items).held_bytes <= SMALL_LIMIT);
        cursor = items_each(items, cursor, 100, NOW, count_seen, &n_seen);
        (void)items_tend(items, NOW, 100);
        items_classes(items, classes);
        items_set_limit(items, SMALL_LIMIT - n_seen % (SMALL_LIMIT / 4));
    }
    ck_assert_uint_gt(n_seen, 0);
    items_set_limit(items, SMALL_LIMIT);
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(worker[i].thread, NULL);
    }
    ck_assert_uint_le(stats_of(items).held_bytes, SMALL_LIMIT);
    ck_assert_uint_gt(stats_of(items).evictions, 0);
    finish(&items);
}
END_TEST

enum {
    FLUSHED_LEN = 300000 /* so that a change takes its time to copy it */
};

/* Changes what is there, but makes nothing: whatever it does, it must not
 * carry a value over a flush. */
static void *
heir_body(void *arg)
{
    struct worker *worker = arg;
    uint64_t number;

    while (atomic_load(worker->n_running) > 0) {
        struct items_store store = store_of(ITEMS_CAS, "k", "1");
        const struct item *item = pin_at(worker->items, "k", NOW);

        if (item != NULL) {
            store.cas = item->cas;
            items_unpin(worker->items, item);
            (void)store_item(worker->items, &store, NOW, NULL);
        }
        (void)add_number(worker->items, "k", 1, &number);
        (void)put(worker->items, ITEMS_REPLACE, "k", "1");
        (void)put(worker->items, ITEMS_PREPEND, "k", "1");
    }
    return NULL;
}

/* The same with nothing but appends, which copy under the lock. */
static void *
append_body(void *arg)
{
    struct worker *worker = arg;

    while (atomic_load(worker->n_running) > 0) {
        (void)put(worker->items, ITEMS_APPEND, "k", "1");
    }
    return NULL;
}

static void
flush_and_look(struct items *items, uint64_t later, bool delayed)
{
    if (delayed) {
        items_flush(items, later, NOW);
        ASSERT(has(items, "k", NOW));
        ASSERT(!has(items, "k", later));
    } else {
        items_flush(items, 0, NOW);
        ASSERT(!has(items, "k", NOW));
    }
}

START_TEST(test_flush_beside_changes)
{
    struct items *items = make(ROOMY);
    struct worker worker[2];
    _Atomic unsigned n_running = 0;
    struct items_store store = store_of(ITEMS_ADD, "k", "");
    char *value = calloc(1, FLUSHED_LEN);

    ck_assert_ptr_nonnull(value);
    store.value = value;
    store.value_len = FLUSHED_LEN;
    start(&worker[0], items, 0, &n_running, heir_body);
    start(&worker[1], items, 1, &n_running, append_body);
    /* an heir with its own birth is met in some 1000 */
    for (uint64_t i = 0; i < room_steps(); i++) {
        int err = store_item(items, &store, NOW, NULL);

        ASSERT(err == 0);
        ASSERT(has(items, "k", NOW));
        flush_and_look(items, NOW + 1 + i, i % 2 == 1);
    }
    atomic_store(&n_running, 0);
    pthread_join(worker[0].thread, NULL);
    pthread_join(worker[1].thread, NULL);
    free(value);
    finish(&items);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("items_threads");
    TCase *slow = tcase_create("slow");

    tcase_add_test(slow, test_threads);
    tcase_add_test(slow, test_threads_stay_in_their_room);
    tcase_add_test(slow, test_flush_beside_changes);
    tcase_set_timeout(slow, HELP_TIMEOUT_S);
    suite_add_tcase(s, slow);
    return s;
}

int
main(void)
{
    return run_suite(suite());
}
