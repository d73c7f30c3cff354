/* SPDX-License-Identifier: BSD-3-Clause */
/* names/dict: readers without a lock beside one who adds, takes out, learns,
 * and so makes parts, blocks and arrays anew under them. */
#include "names/dict.h"

#include "unit/check_help.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum {
    READERS = 3,
    STAYING = 400, /* names that are there all the time */
    CHANGING = 6000,
    ROUNDS = SANITIZER_THREAD ? 2 : 12,
    PAGE = 100
};

struct race {
    struct qsbr qsbr;
    struct name_account account;
    struct dict_config config;
    struct dict *dict;
    uint32_t number[STAYING];
    _Atomic bool stop;
    _Atomic uint64_t pages;
    _Atomic uint32_t newest; /* a number that has just been given. Relaxed: the
                              * dictionary itself must order what it says */
};

static size_t
name_of(unsigned i, char name[NAME_ROOM_BYTES])
{
    memset(name, 0, NAME_ROOM_BYTES);
    return (size_t)snprintf(name, NAME_ROOM_BYTES,
        i % 3 == 0 ? "someone.%u@mail.com" : "https://site.org/%u.html",
        i * 2654435761U);
}

static struct dict_ask
ask_of(const struct race *race, const char *name, size_t len)
{
    return (struct dict_ask){.dict = race->dict,
        .bytes = name,
        .len = len,
        .hash = dict_hash(race->config.key, name, len)};
}

static void
check(bool is_good)
{
    if (!is_good) {
        abort(); /* not the test's own thread */
    }
}

/* The name that came last. */
static void
read_newest(const struct race *race)
{
    char name[NAME_ROOM_BYTES];
    size_t len = dict_name(race->dict,
        atomic_load_explicit(&race->newest, memory_order_relaxed), name);
    check(len == 0 || name_is_valid(name, len));
}

/* A page of names, of which those that stay must be found. Where another one
 * is, its number keeps its name until this thread is quiescent. */
static void
read_page(const struct race *race, uint64_t *random)
{
    char name[PAGE][NAME_ROOM_BYTES], again[NAME_ROOM_BYTES];
    struct dict_ask ask[PAGE];
    unsigned which[PAGE];
    for (unsigned i = 0; i < PAGE; i++) {
        which[i] = (unsigned)random_below(
            random, i % 2 == 0 ? STAYING : STAYING + CHANGING);
        ask[i] = ask_of(race, name[i], name_of(which[i], name[i]));
    }
    dict_find(ask, PAGE);
    for (unsigned i = 0; i < PAGE; i++) {
        if (which[i] < STAYING) {
            check(ask[i].number == race->number[which[i]]);
        }
        if (ask[i].number == DICT_NO_NUMBER) {
            continue;
        }
        size_t len = dict_name(race->dict, ask[i].number, again);
        check(len == ask[i].len || (len == 0 && which[i] >= STAYING));
        check(memcmp(again, name[i], len) == 0);
    }
}

/* Some of the dictionary in order, and an image that another one could load. */
static void
read_order(const struct race *race, uint64_t *random)
{
    uint8_t bytes[NAME_IMAGE_BYTES_MAX];
    char name[NAME_ROOM_BYTES];
    struct name_image image;
    uint32_t number = (uint32_t)random_below(random, STAYING);
    uint32_t first = number;
    check(dict_next(race->dict, &number) && number >= first);
    size_t len = dict_name(race->dict, number, name);
    check(len == 0 || name_is_valid(name, len));
    size_t n = dict_image_block(race->dict,
        (uint32_t)random_below(random, dict_blocks(race->dict)), bytes);
    check(n == 0 || name_image_get(bytes, n, &image) == 0);
}

static void *
read_all(void *context)
{
    struct race *race = context;
    struct qsbr_reader reader;
    uint64_t random = (uintptr_t)&reader;
    qsbr_register(&race->qsbr, &reader);
    while (!atomic_load(&race->stop)) {
        qsbr_online(&race->qsbr, &reader);
        read_newest(race);
        read_page(race, &random);
        read_order(race, &random);
        atomic_fetch_add(&race->pages, 1);
        if (random_below(&random, 4) == 0) {
            qsbr_offline(&reader);
        }
    }
    qsbr_offline(&reader);
    qsbr_unregister(&race->qsbr, &reader);
    return NULL;
}

static void
add(struct race *race, unsigned i, uint32_t *number)
{
    char name[NAME_ROOM_BYTES];
    bool is_new;
    size_t len = name_of(i, name);
    ck_assert_int_eq(dict_add(race->dict, name, len, number, &is_new), 0);
    ck_assert(is_new);
    atomic_store_explicit(&race->newest, *number, memory_order_relaxed);
    if (dict_wants_table(race->dict)) {
        ck_assert_int_eq(dict_learn(race->dict), 0);
    }
}

/* All that changes comes, and goes again in another order. */
static void
write_all(struct race *race)
{
    static uint32_t number[CHANGING];
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < CHANGING; i++) {
            add(race, STAYING + i, &number[i]);
        }
        for (unsigned i = 0; i < CHANGING; i++) {
            unsigned which = i * 7 % CHANGING; /* 7 is no factor of it */
            ck_assert(dict_remove(race->dict, number[which]));
        }
        dict_collect(race->dict);
    }
}

START_TEST(test_threads)
{
    static struct race race;
    pthread_t thread[READERS];
    qsbr_init(&race.qsbr);
    race.account.limit_bytes = UINT64_C(1) << 30;
    race.config = (struct dict_config){.account = &race.account,
        .qsbr = &race.qsbr,
        .key = "sixteen letters"};
    ck_assert_int_eq(dict_create(&race.dict, &race.config), 0);
    for (unsigned i = 0; i < STAYING; i++) {
        add(&race, i, &race.number[i]);
    }
    for (unsigned i = 0; i < READERS; i++) {
        ck_assert_int_eq(pthread_create(&thread[i], NULL, read_all, &race), 0);
    }
    write_all(&race);
    while (atomic_load(&race.pages) < READERS) { /* all have begun by then, or
                                                  * will have */
        write_all(&race);
    }
    atomic_store(&race.stop, true);
    for (unsigned i = 0; i < READERS; i++) {
        ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
    }
    dict_collect(race.dict);
    dict_verify(race.dict);
    ck_assert_uint_eq(dict_sums(race.dict).names, STAYING);
    ck_assert_uint_eq(dict_sums(race.dict).resting, 0);
    dict_destroy(&race.dict);
    ck_assert_uint_eq(race.account.used_bytes, 0);
    qsbr_fini(&race.qsbr);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_threads};
    return run_tests("dict_threads", tests, COUNT_OF(tests));
}
