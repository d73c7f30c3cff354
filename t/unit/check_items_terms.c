/* SPDX-License-Identifier: BSD-3-Clause */
/* items/: what the meta and binary protocols ask besides: stale and won items,
 * chosen cas, vivified misses. Rules by example, as memcached 1.6.45 answers,
 * then random operations against a slow model. */
#include "base/assert.h"
#include "base/err.h"
#include "unit/items_help.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int
delete_with(struct items *items, const char *key, struct items_terms terms)
{
    return items_delete(items, key, strlen(key), &terms, NOW);
}

static int
put_with(struct items *items, enum items_op op, const char *key,
    const char *value, struct items_terms terms)
{
    struct items_store store = store_of(op, key, value);

    store.terms = terms;
    return store_item(items, &store, NOW, NULL);
}

static const struct items_terms nothing;

static const char too_large[2 << 20];

static void
count_item(void *context, const struct items_seen *seen)
{
    unsigned *n = context;

    ck_assert_mem_eq(seen->item->value, "client", seen->item->value_len);
    ++*n;
}

/* One key twice: a client's, and the server's own of the same bytes. */
START_TEST(test_hidden)
{
    const struct items_terms hidden = {.is_hidden = true};
    struct items_terms keeps = {.is_hidden = true, .keeps_expiry = true};
    struct items *items = make(ROOMY);
    struct items_found found;
    struct items_store store;
    unsigned n = 0;

    ck_assert_int_eq(put(items, ITEMS_SET, "a", "client"), 0);
    ck_assert_ptr_null(look(items, "a", hidden).item);
    ck_assert_int_eq(
        put_with(items, ITEMS_REPLACE, "a", "own", hidden), ERR_NOT_STORED);
    ck_assert_int_eq(put_with(items, ITEMS_ADD, "a", "own", hidden), 0);
    ck_assert_int_eq(put_with(items, ITEMS_SET, "a", "longer", hidden), 0);
    expect_item(items, "a", "client");
    found = look(items, "a", hidden);
    ck_assert_mem_eq(found.item->value, "longer", found.item->value_len);
    ck_assert_uint_eq(
        items_each(items, 0, UINT32_MAX, NOW, count_item, &n), 0);
    ck_assert_uint_eq(n, 1);
    items_verify(items);
    /* the expiry that is there stays, whatever is said */
    store = store_of(ITEMS_SET, "a", "with a time of its own");
    store.terms = hidden;
    store.expiry_s = NOW + 30;
    ck_assert_int_eq(store_item(items, &store, NOW, NULL), 0);
    for (unsigned i = 0; i < 2; i++) {
        keeps.compares = true;
        keeps.cas = look(items, "a", hidden).item->cas;
        ck_assert_int_eq(put_with(items, ITEMS_SET, "a",
                             i == 0 ? "with a time of his own" : "x", keeps),
            0);
        ck_assert_uint_eq(look(items, "a", hidden).expiry_s, NOW + 30);
    }
    /* what is too large takes the old one of its own kind with it */
    ck_assert_int_eq(delete_with(items, "a", hidden), 0);
    ck_assert_int_eq(delete_with(items, "a", hidden), ERR_NOT_FOUND);
    expect_item(items, "a", "client");
    ck_assert_int_eq(put_with(items, ITEMS_SET, "a", "own", hidden), 0);
    store = store_of(ITEMS_SET, "a", "");
    store.terms = hidden;
    store.value = too_large;
    store.value_len = sizeof too_large;
    ck_assert_int_eq(store_item(items, &store, NOW, NULL), ERR_TOO_LARGE);
    ck_assert_ptr_null(look(items, "a", hidden).item);
    expect_item(items, "a", "client");
    items_verify(items);
    items_destroy(&items);
}
END_TEST

START_TEST(test_stale)
{
    struct items *items = make(ROOMY);
    struct items_found found;
    uint64_t cas;

    ck_assert_int_eq(put(items, ITEMS_SET, "a", "v"), 0);
    cas = look(items, "a", nothing).item->cas;
    ck_assert_int_eq(
        delete_with(items, "a",
            (struct items_terms){
                .outdates = true, .touches = true, .expiry_s = NOW + 30}),
        0);
    found = look(items, "a", nothing);
    ck_assert(found.is_stale && found.has_won && !found.was_won);
    ck_assert_uint_eq(found.expiry_s, NOW + 30);
    ck_assert_uint_gt(found.item->cas, cas);
    found = look(items, "a", nothing);
    ck_assert(found.is_stale && !found.has_won && found.was_won);
    ck_assert_int_eq(put_with(items, ITEMS_SET, "a", "late",
                         (struct items_terms){
                             .compares = true, .cas = cas, .outdates = true}),
        0);
    found = look(items, "a", nothing);
    ck_assert(found.is_stale && !found.has_won && found.was_won);
    ck_assert_uint_eq(found.expiry_s, NOW + 30);
    expect_item(items, "a", "late");
    ck_assert_int_eq(
        put_with(items, ITEMS_SET, "a", "no",
            (struct items_terms){
                .compares = true, .cas = cas + 99, .outdates = true}),
        ERR_EXISTS);
    ck_assert_int_eq(put_with(items, ITEMS_SET, "a", "no",
                         (struct items_terms){
                             .compares = true, .cas = 0, .outdates = true}),
        ERR_EXISTS);
    ck_assert_int_eq(put(items, ITEMS_SET, "a", "new"), 0);
    found = look(items, "a", nothing);
    ck_assert(!found.is_stale && !found.has_won && !found.was_won);
    finish(&items);
}
END_TEST

/* A pinned value must not change under who reads it. */
START_TEST(test_stale_while_pinned)
{
    struct items *items = make(ROOMY);
    const struct item *item;
    uint64_t cas;

    ck_assert_int_eq(put(items, ITEMS_SET, "a", "v"), 0);
    item = pin_at(items, "a", NOW);
    cas = item->cas;
    ck_assert_int_eq(
        delete_with(items, "a", (struct items_terms){.outdates = true}), 0);
    ck_assert_int_eq(put(items, ITEMS_SET, "b", "w"), 0);
    ck_assert_uint_eq(item->cas, cas);
    ck_assert(look(items, "a", nothing).is_stale);
    ck_assert(look(items, "a", nothing).was_fetched);
    items_unpin(items, item);
    finish(&items);
}
END_TEST

START_TEST(test_recache)
{
    struct items *items = make(ROOMY);
    struct items_terms soon = {.recaches = true, .recache_s = 10};
    struct items_found found;

    ck_assert_int_eq(put_until(items, ITEMS_SET, "a", "v", NOW + 10), 0);
    ck_assert(!look(items, "a", soon).has_won);
    soon.recache_s = 11;
    found = look(items, "a", soon);
    ck_assert(found.has_won && !found.was_won && !found.is_stale);
    found = look(items, "a", soon);
    ck_assert(!found.has_won && found.was_won);
    ck_assert_int_eq(put(items, ITEMS_SET, "never", "v"), 0);
    ck_assert(!look(items, "never", soon).has_won);
    finish(&items);
}
END_TEST

START_TEST(test_vivify)
{
    struct items *items = make(ROOMY);
    struct items_terms make_it = {
        .vivifies = true, .vivify_expiry_s = NOW + 5, .new_cas = 77};
    struct items_found found = look(items, "a", nothing);

    ck_assert_ptr_null(found.item);
    found = look(items, "a", make_it);
    ck_assert_ptr_nonnull(found.item);
    ck_assert(found.has_won && !found.was_won && !found.was_fetched);
    ck_assert_uint_eq(found.expiry_s, NOW + 5);
    found = look(items, "a", make_it);
    ck_assert(!found.has_won && found.was_won && found.was_fetched);
    ck_assert_uint_eq(found.item->cas, 77);
    ck_assert_uint_eq(found.item->value_len, 0);
    make_it.vivify_expiry_s = NOW + 6;
    ck_assert_int_eq(
        put_with(items, ITEMS_APPEND, "b", "x", nothing), ERR_NOT_STORED);
    ck_assert_int_eq(put_with(items, ITEMS_APPEND, "b", "x", make_it), 0);
    ck_assert_int_eq(put_with(items, ITEMS_APPEND, "b", "y", make_it), 0);
    expect_item(items, "b", "xy");
    ck_assert_uint_eq(look(items, "b", nothing).expiry_s, NOW + 6);
    finish(&items);
}
END_TEST

START_TEST(test_peek)
{
    struct items *items = make(ROOMY);
    struct items_terms peek = {.peeks = true};

    ck_assert_int_eq(put(items, ITEMS_SET, "a", "v"), 0);
    ck_assert(!look(items, "a", peek).was_fetched);
    ck_assert(!look(items, "a", nothing).was_fetched);
    ck_assert(look(items, "a", peek).was_fetched);
    finish(&items);
}
END_TEST

START_TEST(test_empty)
{
    struct items *items = make(ROOMY);
    struct items_store store = store_of(ITEMS_SET, "a", "value");
    struct items_found found;
    uint64_t cas;

    store.flags = 5;
    store.expiry_s = NOW + 9;
    ck_assert_int_eq(store_item(items, &store, NOW, &cas), 0);
    ck_assert_int_eq(
        delete_with(items, "a",
            (struct items_terms){
                .empties = true, .compares = true, .cas = cas + 1}),
        ERR_EXISTS);
    expect_item(items, "a", "value");
    ck_assert_int_eq(
        delete_with(items, "a",
            (struct items_terms){.empties = true, .empty_flags = 3}),
        0);
    found = look(items, "a", nothing);
    ck_assert_uint_eq(found.item->value_len, 0);
    ck_assert_uint_eq(found.item->flags, 3);
    ck_assert_uint_eq(found.item->cas, cas);
    ck_assert_uint_eq(found.expiry_s, ITEMS_NEVER);
    ck_assert_int_eq(delete_with(items, "a",
                         (struct items_terms){.empties = true,
                             .outdates = true,
                             .touches = true,
                             .expiry_s = NOW + 4,
                             .new_cas = 1234}),
        0);
    found = look(items, "a", nothing);
    ck_assert(found.is_stale && found.has_won);
    ck_assert_uint_eq(found.item->cas, 1234);
    ck_assert_uint_eq(found.expiry_s, NOW + 4);
    finish(&items);
}
END_TEST

START_TEST(test_arith_terms)
{
    struct items *items = make(ROOMY);
    struct items_arith arith = {.key = "n",
        .key_len = 1,
        .delta = 3,
        .initial = 40,
        .terms = {.vivifies = true, .vivify_expiry_s = NOW + 5}};
    struct items_number number = {0};

    ck_assert_int_eq(items_arith(items, &arith, NOW, &number), 0);
    ck_assert(number.is_new && number.value == 40);
    ck_assert_uint_eq(number.expiry_s, NOW + 5);
    arith.terms.compares = true;
    arith.terms.cas = number.cas + 1;
    ck_assert_int_eq(items_arith(items, &arith, NOW, &number), ERR_EXISTS);
    arith.terms.cas = number.cas;
    arith.terms.touches = true;
    arith.terms.expiry_s = NOW + 7;
    arith.terms.new_cas = 5;
    ck_assert_int_eq(items_arith(items, &arith, NOW, &number), 0);
    ck_assert(!number.is_new && number.value == 43 && number.cas == 5);
    ck_assert_uint_eq(number.expiry_s, NOW + 7);
    arith.terms.cas = 0; /* compares with nothing */
    ck_assert_int_eq(items_arith(items, &arith, NOW, &number), 0);
    ck_assert_int_eq(put(items, ITEMS_SET, "n", ""), 0);
    arith.terms.cas = 1;
    ck_assert_int_eq(
        items_arith(items, &arith, NOW, &number), ERR_NOT_NUMERIC);
    finish(&items);
}
END_TEST

/* A number of the same length stays stale, a longer one is a new value. */
START_TEST(test_stale_numbers)
{
    struct items *items = make(ROOMY);
    struct items_terms outdate = {.outdates = true};
    uint64_t number;

    ck_assert_int_eq(put(items, ITEMS_SET, "n", "98"), 0);
    ck_assert_int_eq(delete_with(items, "n", outdate), 0);
    ck_assert_int_eq(add_number(items, "n", 1, &number), 0);
    ck_assert(look(items, "n", nothing).is_stale);
    ck_assert_int_eq(add_number(items, "n", 1, &number), 0);
    ck_assert(!look(items, "n", nothing).is_stale);
    ck_assert(!look(items, "n", nothing).was_won);
    finish(&items);
}
END_TEST

/* Whatever cas a client chooses, a flush takes what was before it, and only
 * that. */
START_TEST(test_flush_and_chosen_cas)
{
    static const uint64_t chosen[] = {1, 1000000, UINT64_MAX};

    for (unsigned i = 0; i < 3; i++) {
        struct items *items = make(ROOMY);
        struct items_terms terms = {.new_cas = chosen[i]};

        ck_assert_int_eq(put_with(items, ITEMS_SET, "a", "1", terms), 0);
        items_flush(items, 0, NOW);
        ck_assert(!has(items, "a", NOW));
        ck_assert_int_eq(put_with(items, ITEMS_SET, "a", "1", terms), 0);
        ck_assert(has(items, "a", NOW));
        ck_assert_uint_eq(look(items, "a", nothing).item->cas, chosen[i]);
        finish(&items);
    }
}
END_TEST

enum { KEYS = 12, STEPS = 300000, SEEDS = 3, VALUE_MAX = 60 };

struct known {
    bool is_there, is_stale, is_won, fetched;
    char value[VALUE_MAX * 2];
    size_t len;
    uint32_t flags;
    uint64_t expiry_s, cas; /* cas 0: has to be asked for */
};

struct model {
    struct items *items;
    uint64_t random;
    uint64_t n_met[8]; /* that all was met: see the end */
    struct known known[KEYS];
};

static bool
coin(struct model *m, unsigned n)
{
    return random_below(&m->random, n) == 0;
}

static uint64_t
some_expiry(struct model *m)
{
    return coin(m, 2) ? ITEMS_NEVER : NOW + 1 + random_below(&m->random, 20);
}

static struct items_terms
some_terms(struct model *m, const struct known *known)
{
    return (struct items_terms){
        .compares = coin(m, 3),
        .touches = coin(m, 3),
        .vivifies = coin(m, 3),
        .recaches = coin(m, 3),
        .outdates = coin(m, 3),
        .empties = coin(m, 5),
        .peeks = coin(m, 5),
        .empty_flags = (uint32_t)random_below(&m->random, 3),
        .cas = coin(m, 8) ? 0 : known->cas + random_below(&m->random, 3) - 1,
        .new_cas = coin(m, 3) ? 1 + random_below(&m->random, 1000) : 0,
        .expiry_s = some_expiry(m),
        .vivify_expiry_s = some_expiry(m),
        .recache_s = random_below(&m->random, 25),
    };
}

/* All that is kept of the key must be as the model has it; no use. */
static void
check_key(struct model *m, const char *key, struct known *known)
{
    struct items_terms peek = {.peeks = true};
    struct items_found found;

    items_look(m->items, key, strlen(key), &peek, NOW, &found);
    ASSERT((found.item != NULL) == known->is_there);
    if (found.item == NULL) {
        *known = (struct known){0};
        return;
    }
    ASSERT(found.item->value_len == known->len);
    ASSERT(memcmp(found.item->value, known->value, known->len) == 0);
    ASSERT(found.item->flags == known->flags);
    ASSERT(known->cas == 0 || found.item->cas == known->cas);
    ASSERT(found.expiry_s == known->expiry_s);
    ASSERT(found.was_fetched == known->fetched);
    ASSERT(found.is_stale == known->is_stale);
    ASSERT(found.was_won == known->is_won);
    ASSERT(found.has_won == (known->is_stale && !known->is_won));
    known->is_won = known->is_won || found.has_won;
    known->cas = found.item->cas;
    items_unpin(m->items, found.item);
}

static void
step_look(struct model *m, const char *key, struct known *known)
{
    struct items_terms terms = some_terms(m, known);
    struct items_found found;
    bool is_new = !known->is_there && terms.vivifies, wins;

    items_look(m->items, key, strlen(key), &terms, NOW, &found);
    ASSERT((found.item != NULL) == (known->is_there || is_new));
    if (found.item == NULL) {
        return;
    }
    items_unpin(m->items, found.item);
    if (is_new) {
        *known = (struct known){.is_there = true,
            .expiry_s = terms.vivify_expiry_s,
            .cas = terms.new_cas};
    } else if (terms.touches) {
        known->expiry_s = terms.expiry_s;
    }
    wins = is_new ||
        (!known->is_won &&
            (known->is_stale ||
                (terms.recaches && known->expiry_s != ITEMS_NEVER &&
                    known->expiry_s < NOW + terms.recache_s)));
    ASSERT(found.has_won == wins && found.was_won == known->is_won);
    ASSERT(found.was_fetched == known->fetched);
    m->n_met[0] += wins;
    known->is_won = known->is_won || wins;
    known->fetched = known->fetched || !terms.peeks;
}

/* What a store must answer; *late: it is to stay stale. */
static int
store_answer(
    const struct items_store *store, const struct known *known, bool *late)
{
    const struct items_terms *terms = &store->terms;
    bool joins = store->op == ITEMS_APPEND || store->op == ITEMS_PREPEND;
    bool decides = store->op == ITEMS_CAS ||
        (terms->compares &&
            (store->op == ITEMS_SET || store->op == ITEMS_REPLACE));
    uint64_t cas = terms->compares ? terms->cas : store->cas;

    if (store->op == ITEMS_ADD) {
        return known->is_there ? ERR_NOT_STORED : 0;
    }
    if (decides) {
        if (!known->is_there) {
            return ERR_NOT_FOUND;
        }
        *late = terms->outdates && cas != 0 && cas < known->cas;
        return cas == known->cas || *late ? 0 : ERR_EXISTS;
    }
    if (joins && known->is_there) {
        return terms->compares && cas != 0 && cas != known->cas ? ERR_EXISTS
                                                                : 0;
    }
    if (known->is_there || store->op == ITEMS_SET ||
        (joins && terms->vivifies)) {
        return 0;
    }
    return ERR_NOT_STORED;
}

static void
model_store(struct known *known, const struct items_store *store, bool late)
{
    struct known old = *known;
    bool joins = store->op == ITEMS_APPEND || store->op == ITEMS_PREPEND;

    *known = (struct known){.is_there = true,
        .len = store->value_len,
        .flags = store->flags,
        .expiry_s = joins ? store->terms.vivify_expiry_s : store->expiry_s,
        .cas = store->terms.new_cas};
    memcpy(known->value, store->value, store->value_len);
    if (joins && old.is_there) {
        bool after = store->op == ITEMS_APPEND;

        memcpy(
            known->value + (after ? 0 : store->value_len), old.value, old.len);
        memcpy(known->value + (after ? old.len : 0), store->value,
            store->value_len);
        known->len += old.len;
        known->flags = old.flags;
        known->expiry_s = old.expiry_s;
    }
    if (late) {
        known->expiry_s = old.expiry_s;
        known->is_stale = true;
        known->is_won = old.is_won;
    }
}

static void
step_store(struct model *m, const char *key, struct known *known)
{
    enum items_op op = (enum items_op)random_below(&m->random, ITEMS_CAS + 1);
    char value[VALUE_MAX];
    struct items_store store = store_of(op, key, "");
    uint64_t cas = 0;
    bool late = false;
    int err;

    if ((op == ITEMS_APPEND || op == ITEMS_PREPEND) && known->len > 50) {
        return;
    }
    memset(value, (int)('0' + random_below(&m->random, 10)), sizeof value);
    store.value = value;
    store.value_len = random_below(&m->random, coin(m, 2) ? 4 : VALUE_MAX);
    store.flags = (uint32_t)random_below(&m->random, 5);
    store.expiry_s = some_expiry(m);
    store.terms = some_terms(m, known);
    store.cas = store.terms.cas;
    err = store_answer(&store, known, &late);
    ASSERT(store_item(m->items, &store, NOW, &cas) == err);
    if (err == 0) {
        model_store(known, &store, late);
        ASSERT(known->cas == 0 || cas == known->cas);
        known->cas = cas;
    }
    m->n_met[1] += late;
    m->n_met[2] += err == ERR_EXISTS;
}

static void
step_arith(struct model *m, const char *key, struct known *known)
{
    struct items_arith arith = {.key = key,
        .key_len = strlen(key),
        .delta = random_below(&m->random, 9),
        .initial = random_below(&m->random, 200),
        .terms = some_terms(m, known)};
    const struct items_terms *terms = &arith.terms;
    struct items_number number = {0};
    int err = items_arith(m->items, &arith, NOW, &number);

    if (!known->is_there) {
        ASSERT(err == (terms->vivifies ? 0 : ERR_NOT_FOUND));
        *known = (struct known){.is_there = err == 0,
            .cas = terms->new_cas,
            .expiry_s = terms->vivify_expiry_s};
        ASSERT(number.is_new == (err == 0));
    } else if (known->len == 0) {
        ASSERT(err == ERR_NOT_NUMERIC);
    } else if (terms->compares && terms->cas != 0 &&
        terms->cas != known->cas) {
        ASSERT(err == ERR_EXISTS);
    } else if (known->len > 19) {
        ASSERT(err == ERR_NOT_NUMERIC || err == 0);
    } else {
        ASSERT(err == 0);
    }
    if (err != 0) {
        return;
    }
    if (!number.is_new) {
        /* in place or not: its marks and whether it was fetched depend on it;
         * take them over */
        struct items_found found =
            look(m->items, key, (struct items_terms){.peeks = true});

        known->fetched = found.was_fetched;
        known->is_stale = found.is_stale;
        known->is_won = found.was_won || found.has_won;
        known->cas = terms->new_cas;
        known->expiry_s = terms->touches ? terms->expiry_s : known->expiry_s;
    }
    known->len = (size_t)snprintf(known->value, sizeof known->value, "%llu",
        (unsigned long long)number.value);
    ASSERT(number.expiry_s == known->expiry_s);
    m->n_met[3]++;
}

static void
step_delete(struct model *m, const char *key, struct known *known)
{
    struct items_terms terms = some_terms(m, known);
    int err = items_delete(m->items, key, strlen(key), &terms, NOW);

    if (!known->is_there) {
        ASSERT(err == ERR_NOT_FOUND);
        return;
    }
    if (terms.compares && terms.cas != known->cas) {
        ASSERT(err == ERR_EXISTS);
        return;
    }
    ASSERT(err == 0);
    if (!terms.empties && !terms.outdates) {
        *known = (struct known){0};
        return;
    }
    m->n_met[4] += terms.empties;
    m->n_met[5] += terms.outdates;
    if (terms.empties) {
        *known = (struct known){.is_there = true,
            .flags = terms.empty_flags,
            .expiry_s = ITEMS_NEVER,
            .cas = known->cas};
    }
    if (terms.touches) {
        known->expiry_s = terms.expiry_s;
    }
    if (terms.outdates) {
        known->is_stale = true;
        known->is_won = false;
        known->cas = 0;
    }
    known->cas = terms.new_cas != 0 ? terms.new_cas : known->cas;
}

static void
model_step(struct model *m)
{
    struct known *known = &m->known[random_below(&m->random, KEYS)];
    const struct item *pinned = NULL;
    char key[8];

    snprintf(key, sizeof key, "k%u", (unsigned)(known - m->known));
    if (coin(m, 4)) {
        pinned = peek_at(m->items, key, NOW);
        known->is_won = known->is_won || known->is_stale;
    }
    switch (random_below(&m->random, 4)) {
    case 0:
        step_look(m, key, known);
        break;
    case 1:
        step_arith(m, key, known);
        break;
    case 2:
        step_delete(m, key, known);
        break;
    default:
        step_store(m, key, known);
    }
    check_key(m, key, known);
    if (pinned != NULL) {
        items_unpin(m->items, pinned);
    }
    if (coin(m, 3000)) {
        items_flush(m->items, 0, NOW);
        memset(m->known, 0, sizeof m->known);
    }
}

START_TEST(test_model)
{
    struct model *m = calloc(1, sizeof *m);

    ck_assert_ptr_nonnull(m);
    m->items = make(ROOMY);
    m->random = (uint64_t)_i;
    for (unsigned i = 0; i < STEPS; i++) {
        model_step(m);
    }
    for (unsigned i = 0; i < 6; i++) {
        ck_assert_uint_gt(m->n_met[i], 1000);
    }
    finish(&m->items);
    free(m);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("items_terms");
    TCase *rules = tcase_create("rules");
    TCase *model = tcase_create("model");

    tcase_add_test(rules, test_hidden);
    tcase_add_test(rules, test_stale);
    tcase_add_test(rules, test_stale_while_pinned);
    tcase_add_test(rules, test_recache);
    tcase_add_test(rules, test_vivify);
    tcase_add_test(rules, test_peek);
    tcase_add_test(rules, test_empty);
    tcase_add_test(rules, test_arith_terms);
    tcase_add_test(rules, test_stale_numbers);
    tcase_add_test(rules, test_flush_and_chosen_cas);
    tcase_add_loop_test(model, test_model, 0, SEEDS);
    tcase_set_timeout(model, HELP_TIMEOUT_S);
    suite_add_tcase(s, rules);
    suite_add_tcase(s, model);
    return s;
}

int
main(void)
{
    return run_suite(suite());
}
