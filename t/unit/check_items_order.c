/* SPDX-License-Identifier: BSD-3-Clause */
/* items/: what the meta protocol asks of the order in which one operation does
 * things: the expiry before and after a touch, who wins then, what a look may
 * leave alone, and the length of what append makes. */
#include "base/err.h"
#include "unit/items_help.h"

#include <check.h>
#include <stdlib.h>

enum { SOON_S = NOW + 30, LATE_S = NOW + 500 };

START_TEST(test_expiry_before_and_after)
{
    struct items *items = make(ROOMY);
    struct items_terms touch = {.touches = true, .expiry_s = LATE_S};
    struct items_terms vivify = {.vivifies = true, .vivify_expiry_s = SOON_S};
    struct items_found found;

    put_until(items, ITEMS_SET, "a", "1", SOON_S);
    found = look(items, "a", (struct items_terms){0});
    ck_assert_uint_eq(found.old_expiry_s, SOON_S);
    ck_assert_uint_eq(found.expiry_s, SOON_S);
    found = look(items, "a", touch);
    ck_assert_uint_eq(found.old_expiry_s, SOON_S);
    ck_assert_uint_eq(found.expiry_s, LATE_S);
    ck_assert(!found.is_new);
    found = look(items, "new", vivify);
    ck_assert_uint_eq(found.old_expiry_s, ITEMS_NEVER);
    ck_assert_uint_eq(found.expiry_s, SOON_S);
    ck_assert(found.is_new && found.has_won);
    found = look(items, "new", vivify);
    ck_assert(!found.is_new && found.was_won);
    finish(&items);
}
END_TEST

START_TEST(test_arith_expiry)
{
    struct items *items = make(ROOMY);
    struct items_arith arith = {.key = "a",
        .key_len = 1,
        .delta = 1,
        .terms = {.touches = true, .expiry_s = LATE_S}};
    struct items_number number;

    put_until(items, ITEMS_SET, "a", "1", SOON_S);
    ck_assert_int_eq(items_arith(items, &arith, NOW, &number), 0);
    ck_assert_uint_eq(number.old_expiry_s, SOON_S);
    ck_assert_uint_eq(number.expiry_s, LATE_S);
    finish(&items);
}
END_TEST

/* Whether little is left is asked of the old expiry, or of the new one. */
START_TEST(test_recache_first_or_last)
{
    struct items *items = make(ROOMY);
    struct items_terms terms = {.touches = true,
        .expiry_s = LATE_S,
        .recaches = true,
        .recache_s = 100};

    put_until(items, ITEMS_SET, "a", "1", SOON_S);
    ck_assert(!look(items, "a", terms).has_won);
    put_until(items, ITEMS_SET, "a", "1", SOON_S);
    terms.recaches_first = true;
    ck_assert(look(items, "a", terms).has_won);
    terms.expiry_s = SOON_S;
    put_until(items, ITEMS_SET, "a", "1", LATE_S);
    ck_assert(!look(items, "a", terms).has_won);
    finish(&items);
}
END_TEST

START_TEST(test_inspect_changes_nothing)
{
    struct items *items = make(ROOMY);
    struct items_terms inspect = {.inspects = true};
    struct items_terms outdate = {.outdates = true};
    struct items_found found;

    put(items, ITEMS_SET, "a", "1");
    ck_assert_int_eq(items_delete(items, "a", 1, &outdate, NOW), 0);
    found = look(items, "a", inspect);
    ck_assert(found.is_stale && !found.has_won && !found.was_won);
    found = look(items, "a", (struct items_terms){0});
    ck_assert(found.has_won && !found.was_won && !found.was_fetched);
    ck_assert_ptr_null(look(items, "none", inspect).item);
    finish(&items);
}
END_TEST

START_TEST(test_empty_has_flags)
{
    struct items *items = make(ROOMY);
    struct items_terms empty = {.empties = true, .empty_flags = 9};
    struct items_found found;

    put(items, ITEMS_SET, "a", "value");
    ck_assert_int_eq(items_delete(items, "a", 1, &empty, NOW), 0);
    items_look(items, "a", 1, &(struct items_terms){0}, NOW, &found);
    ck_assert_ptr_nonnull(found.item);
    ck_assert_uint_eq(found.item->flags, 9);
    ck_assert_uint_eq(found.item->value_len, 0);
    items_unpin(items, found.item);
    finish(&items);
}
END_TEST

START_TEST(test_stored_length)
{
    struct items *items = make(ROOMY);
    struct items_store store = store_of(ITEMS_APPEND, "a", "cd");
    struct items_stored stored;

    ck_assert_int_eq(
        items_store_and_report(items, &store, NOW, &stored), ERR_NOT_STORED);
    ck_assert_uint_eq(stored.cas, 0);
    ck_assert_uint_eq(stored.value_len, 0);
    put(items, ITEMS_SET, "a", "xyz");
    ck_assert_int_eq(items_store_and_report(items, &store, NOW, &stored), 0);
    ck_assert_uint_ne(stored.cas, 0);
    ck_assert_uint_eq(stored.value_len, 5);
    expect_item(items, "a", "xyzcd");
    finish(&items);
}
END_TEST

int
main(void)
{
    const TTest *const test[] = {test_expiry_before_and_after,
        test_arith_expiry, test_recache_first_or_last,
        test_inspect_changes_nothing, test_empty_has_flags,
        test_stored_length};
    return run_tests("items_order", test, COUNT_OF(test));
}
