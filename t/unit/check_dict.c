/* SPDX-License-Identifier: BSD-3-Clause */
/* names/dict: against a model, with memory that runs out, with names that are
 * meant to hurt, and loaded again. */
#include "base/err.h"
#include "lib/fault_alloc.h"
#include "names/dict.h"

#include "unit/check_help.h"

#include <stdio.h>

struct rig {
    struct fault_alloc fault;
    struct name_account account;
    struct qsbr qsbr;
    struct dict *dict;
    struct dict_config config;
};

static void
rig_init(struct rig *rig)
{
    fault_alloc_init(&rig->fault);
    qsbr_init(&rig->qsbr);
    rig->account = (struct name_account){
        .alloc = &rig->fault.alloc, .limit_bytes = UINT64_C(1) << 32};
    rig->config = (struct dict_config){.account = &rig->account,
        .qsbr = &rig->qsbr,
        .key = "sixteen letters"};
    ck_assert_int_eq(dict_create(&rig->dict, &rig->config), 0);
}

static void
rig_fini(struct rig *rig)
{
    dict_destroy(&rig->dict);
    ck_assert_ptr_null(rig->dict);
    ck_assert_uint_eq(rig->account.used_bytes, 0);
    ck_assert_uint_eq(rig->fault.live_bytes, 0);
    qsbr_fini(&rig->qsbr);
}

/* The i-th name; none has an id of its own. Returns its length. */
static size_t
name_of(unsigned i, char name[NAME_ROOM_BYTES])
{
    uint64_t x = i * UINT64_C(0x9e3779b97f4a7c15);
    memset(name, 0, NAME_ROOM_BYTES);
    switch (i % 7) {
    case 0:
        return (size_t)snprintf(name, NAME_ROOM_BYTES, "user.name%u", i);
    case 1:
        return (size_t)snprintf(name, NAME_ROOM_BYTES, "%020u", i);
    case 2:
        return (size_t)snprintf(
            name, NAME_ROOM_BYTES, "%08x-%04x-4000-8000-%012x", i, i % 999, i);
    case 3:
        return (size_t)snprintf(
            name, NAME_ROOM_BYTES, "%016llx%u", (unsigned long long)x, i);
    case 4:
        memset(name, '\xff', NAME_BYTES_MAX);
        memcpy(name + i % 190, "%%%%%%%%", 8);
        name[i % 190 + i % 8] = (char)('a' + i % 26);
        (void)snprintf(name, NAME_ROOM_BYTES, "%u", i);
        name[strlen(name)] = '.';
        return NAME_BYTES_MAX;
    default:
        return (size_t)snprintf(name, NAME_ROOM_BYTES,
            "https://www.example.org/path/%u/index.html", i);
    }
}

static uint32_t
find(const struct rig *rig, unsigned i)
{
    char name[NAME_ROOM_BYTES];
    size_t len = name_of(i, name);
    struct dict_ask ask = {.dict = rig->dict,
        .bytes = name,
        .len = len,
        .hash = dict_hash(rig->config.key, name, len)};
    dict_find(&ask, 1);
    return ask.number;
}

static int
add(struct rig *rig, unsigned i, uint32_t *number, bool *is_new)
{
    char name[NAME_ROOM_BYTES];
    size_t len = name_of(i, name);
    return dict_add(rig->dict, name, len, number, is_new);
}

static uint32_t
must_add(struct rig *rig, unsigned i)
{
    uint32_t number;
    bool is_new;
    ck_assert_int_eq(add(rig, i, &number, &is_new), 0);
    ck_assert(is_new);
    return number;
}

/* Into a dictionary of its own, which takes the place of the other. */
static void
reload(struct rig *rig)
{
    uint8_t bytes[NAME_IMAGE_BYTES_MAX];
    struct dict *again;
    ck_assert_int_eq(dict_create(&again, &rig->config), 0);
    for (unsigned i = 1; i <= NAME_TABLES_MAX; i++) {
        size_t n = dict_image_table(rig->dict, i, bytes);
        if (n > 0) {
            ck_assert_int_eq(dict_load(again, bytes, n), 0);
        }
    }
    for (uint32_t i = 0; i < dict_blocks(rig->dict); i++) {
        size_t n = dict_image_block(rig->dict, i, bytes);
        if (n > 0) {
            ck_assert_int_eq(dict_load(again, bytes, n), 0);
        }
    }
    dict_destroy(&rig->dict);
    rig->dict = again;
}

enum { NAMES = 3000 };

struct model {
    uint32_t number[NAMES]; /* DICT_NO_NUMBER: none */
    unsigned n;
};

static void
compare(const struct rig *rig, const struct model *model)
{
    struct dict_ask ask[NAMES];
    static char name[NAMES][NAME_ROOM_BYTES];
    char again[NAME_ROOM_BYTES];
    for (unsigned i = 0; i < NAMES; i++) {
        size_t len = name_of(i, name[i]);
        ask[i] = (struct dict_ask){.dict = rig->dict,
            .bytes = name[i],
            .len = len,
            .hash = dict_hash(rig->config.key, name[i], len)};
    }
    dict_find(ask, NAMES);
    for (unsigned i = 0; i < NAMES; i++) {
        ck_assert_uint_eq(ask[i].number, model->number[i]);
        if (ask[i].number != DICT_NO_NUMBER) {
            ck_assert_uint_eq(
                dict_name(rig->dict, ask[i].number, again), ask[i].len);
            ck_assert_mem_eq(again, name[i], ask[i].len);
        }
    }
    ck_assert_uint_eq(dict_sums(rig->dict).names, model->n);
    dict_verify(rig->dict);
}

static void
change(struct rig *rig, struct model *model, unsigned i, bool is_add)
{
    uint32_t number;
    bool is_new, was_there = model->number[i] != DICT_NO_NUMBER;
    if (is_add) {
        ck_assert_int_eq(add(rig, i, &number, &is_new), 0);
        ck_assert_int_eq(is_new, !was_there);
        for (unsigned j = 0; is_new && j < NAMES; j++) {
            ck_assert_uint_ne(model->number[j], number);
        }
        ck_assert(!was_there || number == model->number[i]);
        model->n += is_new;
        model->number[i] = number;
    } else if (was_there) {
        ck_assert(dict_remove(rig->dict, model->number[i]));
        ck_assert(!dict_remove(rig->dict, model->number[i]));
        model->n--;
        model->number[i] = DICT_NO_NUMBER;
    }
}

/* Adds, removes, tables and loads at random; a reader that now and then sits
 * still, so that things rest. */
START_TEST(test_model)
{
    enum { STEPS = 20000 };
    struct rig rig;
    static struct model model;
    struct qsbr_reader reader;
    uint64_t random = 11 + (unsigned)_i;
    rig_init(&rig);
    memset(model.number, 0xff, sizeof model.number);
    model.n = 0;
    qsbr_register(&rig.qsbr, &reader);
    for (unsigned step = 0; step < STEPS; step++) {
        /* many are there, then few, then many */
        bool is_add = random_below(&random, 10) < (step / 4000 % 2 ? 3 : 7);
        change(&rig, &model, (unsigned)random_below(&random, NAMES), is_add);
        if (random_below(&random, 100) == 0) {
            qsbr_online(&rig.qsbr, &reader);
        } else if (random_below(&random, 50) == 0) {
            qsbr_offline(&reader);
        }
        if (dict_wants_table(rig.dict)) {
            ck_assert_int_eq(dict_learn(rig.dict), 0);
        }
        if (step % 2500 == 2499) {
            compare(&rig, &model);
            qsbr_offline(&reader);
            reload(&rig);
            compare(&rig, &model);
        }
    }
    qsbr_offline(&reader);
    for (unsigned i = 0; i < NAMES; i++) {
        change(&rig, &model, i, false);
    }
    compare(&rig, &model);
    dict_collect(rig.dict);
    ck_assert_uint_eq(dict_sums(rig.dict).resting, 0);
    ck_assert_uint_eq(dict_sums(rig.dict).blocks_bytes / 1000, 0);
    qsbr_unregister(&rig.qsbr, &reader);
    rig_fini(&rig);
}
END_TEST

/* Numbers are dense and in the order of birth; a freed one comes again when no
 * reader can have it any more, and not before. */
START_TEST(test_numbers)
{
    struct rig rig;
    struct qsbr_reader reader;
    uint32_t number = 0;
    rig_init(&rig);
    ck_assert(!dict_next(rig.dict, &number));
    qsbr_register(&rig.qsbr, &reader);
    for (unsigned i = 0; i < 100; i++) {
        ck_assert_uint_eq(must_add(&rig, i), i);
    }
    qsbr_online(&rig.qsbr, &reader);
    ck_assert(dict_remove(rig.dict, 40));
    ck_assert(dict_remove(rig.dict, 98)); /* of the block that is open */
    ck_assert_uint_eq(find(&rig, 40), DICT_NO_NUMBER);
    ck_assert(dict_rests(rig.dict, 40));
    ck_assert_uint_eq(must_add(&rig, 100), 100);
    number = 40;
    ck_assert(dict_next(rig.dict, &number));
    ck_assert_uint_eq(number, 41);
    qsbr_offline(&reader);
    ck_assert(!dict_rests(rig.dict, 40));
    uint32_t a = must_add(&rig, 101), b = must_add(&rig, 102);
    ck_assert((a == 40 && b == 98) || (a == 98 && b == 40));
    ck_assert_uint_eq(must_add(&rig, 103), 101);
    dict_verify(rig.dict);
    for (unsigned i = 0; i < 50000; i++) { /* one in and one out, for long */
        ck_assert(dict_remove(rig.dict, find(&rig, 101 + i % 2)));
        ck_assert_uint_lt(must_add(&rig, 101 + i % 2), 102);
    }
    ck_assert_uint_lt(rig.account.used_bytes, 40000);
    qsbr_unregister(&rig.qsbr, &reader);
    rig_fini(&rig);
}
END_TEST

/* What another dictionary gave. */
START_TEST(test_add_at)
{
    struct rig rig;
    char name[NAME_ROOM_BYTES];
    rig_init(&rig);
    size_t len = name_of(0, name);
    ck_assert_int_eq(dict_add_at(rig.dict, 70, name, len), 0);
    ck_assert_int_eq(dict_add_at(rig.dict, 70, name, len), 0);
    ck_assert_int_eq(dict_add_at(rig.dict, 71, name, len), ERR_CORRUPT);
    ck_assert_uint_eq(find(&rig, 0), 70);
    len = name_of(1, name);
    ck_assert_int_eq(dict_add_at(rig.dict, 70, name, len), ERR_CORRUPT);
    ck_assert_int_eq(
        dict_add_at(rig.dict, DICT_NUMBER_END, name, len), ERR_CORRUPT);
    ck_assert_uint_eq(find(&rig, 1), DICT_NO_NUMBER);
    ck_assert_int_eq(dict_add_at(rig.dict, 3, name, len), 0);
    ck_assert_uint_eq(find(&rig, 1), 3);
    for (unsigned i = 2; i < 71; i++) { /* those in between are free */
        ck_assert_uint_lt(must_add(&rig, i), 70);
    }
    ck_assert_uint_eq(must_add(&rig, 71), 71);
    /* one that follows another does not give numbers, and takes no more */
    uint64_t bytes = rig.account.used_bytes;
    for (unsigned i = 0; i < 20000; i++) {
        ck_assert(dict_remove(rig.dict, 3));
        ck_assert_int_eq(dict_add_at(rig.dict, 3, name, name_of(1, name)), 0);
    }
    ck_assert_uint_lt(rig.account.used_bytes, bytes + 4000);
    dict_verify(rig.dict);
    rig_fini(&rig);
}
END_TEST

/* The n-th call for memory fails, for each n; then the limit is reached at each
 * byte. Nothing has changed, and all goes on. */
START_TEST(test_faults)
{
    enum { SOME = 150 };
    struct rig rig;
    for (size_t n = 1, failures = 1; failures > 0;
         n = n < 60 ? n + 1 : n + 7) {
        rig_init(&rig);
        rig.fault.fail_from = rig.fault.calls + n;
        rig.fault.fail_to = rig.fault.fail_from + n % 3;
        for (unsigned i = 0; i < SOME; i++) {
            uint32_t number = 77777;
            bool is_new;
            int err = add(&rig, i, &number, &is_new);
            if (err != 0) {
                ck_assert_int_eq(err, ERR_NO_MEMORY);
                ck_assert_uint_eq(number, 77777);
                ck_assert_uint_eq(find(&rig, i), DICT_NO_NUMBER);
                dict_verify(rig.dict);
                i--;
            } else {
                ck_assert_uint_eq(find(&rig, i), number);
            }
            if (err == 0 && i % 3 == 2) {
                ck_assert(dict_remove(rig.dict, find(&rig, i - 1)));
            }
            if (err == 0 && i == 100) {
                err = dict_learn(rig.dict);
                ck_assert(err == 0 || err == ERR_NO_MEMORY);
            }
        }
        failures = rig.fault.failures;
        dict_verify(rig.dict);
        ck_assert_uint_eq(dict_sums(rig.dict).names, SOME - SOME / 3);
        rig_fini(&rig);
    }
}
END_TEST

START_TEST(test_limit)
{
    struct rig rig;
    unsigned n = 0;
    uint32_t number = 0;
    bool is_new;
    int err = 0;
    rig_init(&rig);
    rig.account.limit_bytes = 100000;
    for (; err == 0 && n < NAMES; n++) {
        err = add(&rig, n, &number, &is_new);
    }
    ck_assert_int_eq(err, ERR_HOT_FULL);
    ck_assert_uint_gt(n, 1000);
    ck_assert_uint_le(rig.account.used_bytes, 100000);
    ck_assert_int_eq(dict_learn(rig.dict), ERR_HOT_FULL);
    dict_verify(rig.dict);
    for (unsigned i = 0; i + 1 < n; i++) { /* all can be taken out */
        ck_assert(dict_remove(rig.dict, find(&rig, i)));
    }
    dict_verify(rig.dict);
    ck_assert_int_eq(add(&rig, n, &number, &is_new), 0);
    struct dict *none = NULL;
    rig.account.limit_bytes = 0;
    ck_assert_int_eq(dict_create(&none, &rig.config), ERR_HOT_FULL);
    ck_assert_ptr_null(none);
    rig_fini(&rig);
}
END_TEST

/* Adds names from first on until the limit is reached; how many. */
static unsigned
fill(struct rig *rig, unsigned first)
{
    unsigned n = 0;
    uint32_t number;
    bool is_new;
    while (add(rig, first + n, &number, &is_new) == 0) {
        n++;
    }
    return n;
}

/* Memory is out, and a reader sits still while all names go: what could not be
 * noted or given back then is found later, but not while the reader may have a
 * number; and as many names fit again. */
START_TEST(test_lost)
{
    enum { ROUNDS = 4 };
    struct rig rig;
    struct qsbr_reader reader;
    unsigned n = 0;
    rig_init(&rig);
    qsbr_register(&rig.qsbr, &reader);
    rig.account.limit_bytes = 400000;
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned first = (1 + round) * 1000000, fit = fill(&rig, first);
        ck_assert_uint_gt(fit, 4000);
        ck_assert(round == 0 || fit > n - n / 20);
        n = round == 0 ? fit : n;
        qsbr_online(&rig.qsbr, &reader);
        for (unsigned i = 0; i < fit; i++) {
            ck_assert(dict_remove(rig.dict, find(&rig, first + i)));
        }
        uint64_t lost = dict_sums(rig.dict).lost;
        ck_assert_uint_gt(lost, 1000);
        dict_collect(rig.dict); /* not yet */
        ck_assert_uint_eq(dict_sums(rig.dict).lost, lost);
        qsbr_offline(&reader);
        for (unsigned i = 0; i < 10; i++) {
            dict_collect(rig.dict);
        }
        struct dict_sums sums = dict_sums(rig.dict);
        ck_assert_uint_eq(sums.lost, 0);
        ck_assert_uint_eq(sums.resting, 0);
        ck_assert_uint_lt(sums.blocks_bytes, 20000);
        ck_assert_uint_lt(sums.next, n + n / 20); /* they come again */
        dict_verify(rig.dict);
    }
    qsbr_unregister(&rig.qsbr, &reader);
    rig_fini(&rig);
}
END_TEST

/* A number that was given again goes when memory is out: no other name gets it
 * while a reader may have it. */
START_TEST(test_lost_again)
{
    enum { FEW = 1000 };
    struct rig rig;
    struct qsbr_reader reader;
    uint32_t number, again;
    bool is_new;
    rig_init(&rig);
    qsbr_register(&rig.qsbr, &reader);
    for (unsigned i = 0; i < FEW; i++) {
        ck_assert_int_eq(add(&rig, i, &number, &is_new), 0);
    }
    ck_assert(dict_remove(rig.dict, number));
    dict_collect(rig.dict);
    ck_assert_int_eq(add(&rig, FEW, &again, &is_new), 0);
    ck_assert_uint_eq(again, number);
    qsbr_online(&rig.qsbr, &reader);
    rig.account.limit_bytes = 1;
    for (unsigned i = 0; i < FEW / 2; i++) {
        ck_assert(dict_remove(rig.dict, find(&rig, i)));
    }
    ck_assert_uint_gt(dict_sums(rig.dict).lost, 0);
    ck_assert(dict_remove(rig.dict, number));
    rig.account.limit_bytes = 400000;
    ck_assert_int_eq(add(&rig, FEW + 1, &again, &is_new), 0);
    ck_assert_uint_ne(again, number);
    qsbr_offline(&reader);
    dict_verify(rig.dict);
    qsbr_unregister(&rig.qsbr, &reader);
    rig_fini(&rig);
}
END_TEST

/* Names with equal beginnings, equal ends, of the largest bytes and lengths:
 * a bucket has what it has by chance, whoever chose the names. */
START_TEST(test_hostile)
{
    enum { MANY = 40000 };
    struct rig rig;
    uint32_t number;
    bool is_new;
    rig_init(&rig);
    for (unsigned i = 0; i < MANY; i++) {
        char name[NAME_ROOM_BYTES] = {0};
        size_t len = i % 2 == 0 ? NAME_BYTES_MAX : 1 + i / 200 % 200;
        memset(name, '\xff', len);
        for (unsigned j = 0; j < 16 && i % 2 == 0; j++) {
            name[184 + j] = (char)(i >> j & 1 ? '\xfe' : '\xff');
        }
        ck_assert_int_eq(dict_add(rig.dict, name, len, &number, &is_new), 0);
        ck_assert(is_new || i % 2 == 1);
        if (i == MANY / 2) {
            ck_assert_int_eq(dict_learn(rig.dict), 0);
        }
    }
    dict_verify(rig.dict);
    /* the index is as small as that of other names */
    struct dict_sums sums = dict_sums(rig.dict);
    ck_assert_uint_ge(sums.names, MANY / 2);
    ck_assert_uint_lt(sums.index_bytes, sums.names * 8);
    rig_fini(&rig);
}
END_TEST

/* A million would do no more: these all have the same twelve low bits in a hash
 * whose key is known, which is not that of the dictionary. */
START_TEST(test_known_key)
{
    static const uint8_t known[SIPHASH_KEY_BYTES] = "0";
    struct rig rig;
    uint32_t number;
    bool is_new;
    unsigned n = 0;
    rig_init(&rig);
    for (unsigned i = 0; n < 500; i++) {
        char name[NAME_ROOM_BYTES];
        size_t len =
            (size_t)snprintf(name, sizeof name, "some.other.name%u", i);
        if (dict_hash(known, name, len) % 4096 == 0) {
            ck_assert_int_eq(
                dict_add(rig.dict, name, len, &number, &is_new), 0);
            n++;
        }
    }
    dict_verify(rig.dict);
    ck_assert_uint_lt(dict_sums(rig.dict).index_bytes, 500 * 8 + 1000);
    rig_fini(&rig);
}
END_TEST

/* What was only added takes the same memory when it is loaded. */
START_TEST(test_same_memory)
{
    struct rig rig;
    rig_init(&rig);
    for (unsigned i = 0; i < 32 * 200; i++) {
        (void)must_add(&rig, i);
        if (dict_wants_table(rig.dict)) {
            ck_assert_int_eq(dict_learn(rig.dict), 0);
        }
    }
    struct dict_sums before = dict_sums(rig.dict);
    dict_collect(rig.dict);
    reload(&rig);
    struct dict_sums after = dict_sums(rig.dict);
    ck_assert_uint_eq(before.names, after.names);
    ck_assert_uint_eq(before.index_bytes, after.index_bytes);
    ck_assert_uint_eq(before.next, after.next);
    ck_assert_uint_le(after.blocks_bytes, before.blocks_bytes);
    ck_assert_uint_gt(after.blocks_bytes + 3000, before.blocks_bytes);
    dict_verify(rig.dict);
    rig_fini(&rig);
}
END_TEST

/* Loads that are refused, and memory that runs out in one. */
START_TEST(test_load)
{
    struct rig rig;
    struct dict *other;
    uint8_t table[NAME_IMAGE_BYTES_MAX], block[NAME_IMAGE_BYTES_MAX];
    rig_init(&rig);
    for (unsigned i = 0; i < 20; i++) {
        (void)must_add(&rig, i);
    }
    ck_assert_int_eq(dict_learn(rig.dict), 0);
    for (unsigned i = 20; i < 64; i++) {
        (void)must_add(&rig, i);
    }
    size_t n_table = dict_image_table(rig.dict, 1, table);
    size_t n_block = dict_image_block(rig.dict, 1, block);
    ck_assert_int_eq(dict_create(&other, &rig.config), 0);
    ck_assert_int_eq(dict_load(other, block, n_block), ERR_CORRUPT);
    ck_assert_int_eq(dict_load(other, table, n_table), 0);
    ck_assert_int_eq(dict_load(other, table, n_table), ERR_CORRUPT);
    ck_assert_int_eq(dict_load(other, block, n_block), 0);
    ck_assert_int_eq(dict_load(other, block, n_block), ERR_CORRUPT);
    dict_verify(other);
    dict_destroy(&other);
    /* a name that is there with another number */
    ck_assert_int_eq(dict_create(&other, &rig.config), 0);
    char name[NAME_ROOM_BYTES];
    size_t len = name_of(45, name);
    ck_assert_int_eq(dict_add_at(other, 5, name, len), 0);
    ck_assert_int_eq(dict_load(other, table, n_table), 0);
    ck_assert_int_eq(dict_load(other, block, n_block), ERR_CORRUPT);
    dict_destroy(&other);
    for (size_t n = 1, err = 1; err != 0; n++) {
        rig.fault.fail_from = rig.fault.fail_to = rig.fault.calls + n;
        if (dict_create(&other, &rig.config) != 0) {
            continue;
        }
        err = (size_t)dict_load(other, table, n_table);
        if (err == 0) {
            err = (size_t)dict_load(other, block, n_block);
        }
        ck_assert(err == 0 || err == ERR_NO_MEMORY);
        dict_destroy(&other);
    }
    rig_fini(&rig);
}
END_TEST

/* Each name has two numbers; the larger ones are said one after the other,
 * without a new look at all names for each. */
START_TEST(test_twice)
{
    enum { SOME = 50000 };
    struct rig rig;
    char name[NAME_ROOM_BYTES];
    uint32_t number;
    unsigned n = 0;
    rig_init(&rig);
    dict_begin_load(rig.dict);
    for (unsigned i = 0; i < 2 * SOME; i++) {
        size_t len = name_of(i % SOME, name);
        ck_assert_int_eq(dict_add_at(rig.dict, i, name, len), 0);
    }
    while (dict_end_load(rig.dict, &rig.qsbr, &number) == ERR_CORRUPT) {
        ck_assert_uint_ge(number, SOME);
        ck_assert(dict_remove(rig.dict, number));
        n++;
    }
    ck_assert_uint_eq(n, SOME);
    ck_assert_uint_eq(dict_counts(rig.dict).names, SOME);
    dict_verify(rig.dict);
    rig_fini(&rig);
}
END_TEST

/* An eighth of a limit that is shared is not for names. */
START_TEST(test_shared_limit)
{
    _Atomic uint64_t others = 0;
    struct name_account account = {.limit_bytes = 8000, .beside = &others};
    void *block, *more;
    ck_assert_int_eq(name_account_take(&account, 6900, &block), 0);
    ck_assert_int_eq(name_account_take(&account, 200, &more), ERR_HOT_FULL);
    name_account_give(&account, block, 6900);
    atomic_store(&others, 1200);
    ck_assert_int_eq(name_account_take(&account, 6900, &block), ERR_HOT_FULL);
    ck_assert_int_eq(name_account_take(&account, 6700, &block), 0);
    name_account_give(&account, block, 6700);
    ck_assert_uint_eq(atomic_load(&account.used_bytes), 0);
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("dict");
    tcase_add_loop_test(tcase, test_model, 0, 3);
    tcase_add_test(tcase, test_numbers);
    tcase_add_test(tcase, test_add_at);
    tcase_add_test(tcase, test_faults);
    tcase_add_test(tcase, test_limit);
    tcase_add_test(tcase, test_lost);
    tcase_add_test(tcase, test_lost_again);
    tcase_add_test(tcase, test_shared_limit);
    tcase_add_test(tcase, test_hostile);
    tcase_add_test(tcase, test_known_key);
    tcase_add_test(tcase, test_same_memory);
    tcase_add_test(tcase, test_load);
    tcase_add_test(tcase, test_twice);
    return run_case("dict", tcase);
}
