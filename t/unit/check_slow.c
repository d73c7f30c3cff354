/* SPDX-License-Identifier: BSD-3-Clause */
/* stats/slow: what is kept, which phase is the reason, the words; stats/hot:
 * what a hot id is told to have, and what becomes of an old one. */
#include "stats/hot.h"
#include "stats/slow.h"

#include "unit/check_help.h"

#include <stdlib.h>
#include <string.h>

START_TEST(test_ring)
{
    static struct slow_log log;
    static struct slow_entry out[SLOW_KEPT];
    uint64_t seen = 0;
    slow_init(&log);
    ck_assert_uint_eq(slow_read(&log, out), 0);
    for (unsigned i = 0; i < SLOW_KEPT + 3; i++) {
        struct slow_entry entry = {.us = i};
        slow_add(&log, &entry);
        ck_assert_uint_eq(slow_read(&log, out),
            i + 1 < SLOW_KEPT ? i + 1 : (unsigned)SLOW_KEPT);
    }
    for (unsigned i = 0; i < SLOW_KEPT; i++) {
        ck_assert_uint_ge(out[i].us, 3);
        seen += out[i].us;
    }
    ck_assert_uint_eq(seen, (3 + SLOW_KEPT + 2) * SLOW_KEPT / 2);
    slow_clear(&log);
    ck_assert_uint_eq(slow_read(&log, out), 0);
    slow_fini(&log);
}
END_TEST

START_TEST(test_reason)
{
    for (unsigned phase = 0; phase < SLOW_PHASE_COUNT; phase++) {
        struct slow_entry entry = {.us = 1000};
        entry.phase_us[SLOW_cold] = 200;
        entry.phase_us[SLOW_queue] = 250;
        entry.phase_us[phase] = 450;
        slow_judge(&entry);
        ck_assert_uint_eq(entry.why, phase);
    }
    /* parse is what is left, and never below 0 */
    struct slow_entry entry = {.us = 1000};
    entry.phase_us[SLOW_commit] = 400;
    slow_judge(&entry);
    ck_assert_uint_eq(entry.phase_us[SLOW_parse], 600);
    ck_assert_uint_eq(entry.why, SLOW_parse);
    entry.us = 399;
    slow_judge(&entry);
    ck_assert_uint_eq(entry.phase_us[SLOW_parse], 0);
    ck_assert_uint_eq(entry.why, SLOW_commit);
}
END_TEST

START_TEST(test_words)
{
    char text[SLOW_TEXT_BYTES];
    struct slow_entry entry = {.unix_ms = 1795803348250,
        .us = 1305,
        .keys = 18,
        .bytes = 646,
        .conn = 39,
        .verb = LATENCY_incr,
        .why = SLOW_commit,
        .key_len = 4,
        .key = "a \n%",
        .client = "tcp:127.0.0.1:4"};
    entry.phase_us[SLOW_parse] = 3;
    entry.phase_us[SLOW_commit] = 1302;
    ck_assert_uint_eq(slow_format(&entry, text), strlen(text));
    ck_assert_str_eq(text,
        "when=1795803348250 us=1305 verb=incr keys=18 key=a%20%0A%25 "
        "bytes=646 client=tcp:127.0.0.1:4 user=- conn=39 parse_us=3 "
        "lock_us=0 room_us=0 cold_us=0 commit_us=1302 socket_us=0 "
        "queue_us=0 why=commit");
    /* the longest there is */
    memset(&entry, 0xff, sizeof entry);
    entry.verb = LATENCY_delete;
    entry.why = SLOW_commit;
    entry.key_len = SLOW_KEY_BYTES;
    entry.client[SLOW_NAME_BYTES - 1] = '\0';
    entry.user[SLOW_NAME_BYTES - 1] = '\0';
    ck_assert_uint_lt(slow_format(&entry, text), SLOW_TEXT_BYTES);
}
END_TEST

/* Keys as they come: sampled as sessions do it. */
static void
meet(struct hot *hot, uint64_t id, enum hot_use use)
{
    if (hot_samples(hot, 1)) {
        hot_count(hot, id, 0, 2, 17, use);
        hot->left += hot_gap(hot) - 1;
    }
}

static const struct hot_one *
find(const struct hot_list *list, uint64_t id)
{
    for (unsigned i = 0; i < list->n; i++) {
        if (list->one[i].id == id) {
            return &list->one[i];
        }
    }
    return NULL;
}

/* One in a hundred of a million, in two threads' sketches. */
START_TEST(test_hot_one)
{
    enum { KEYS = 1000000 };
    static struct hot hot[2];
    static struct hot_list list;
    uint64_t random = 1;
    for (unsigned i = 0; i < KEYS; i++) {
        random = random * 6364136223846793005U + 1442695040888963407U;
        bool is_hot = (random >> 40) % 100 == 0;
        meet(&hot[i % 2], is_hot ? 4711 : random >> 20,
            is_hot && i % 4 == 0 ? HOT_CHANGE : HOT_GET);
    }
    hot_read(&hot[0], &list);
    hot_read(&hot[1], &list);
    hot_sort(&list);
    const struct hot_one *first = &list.one[0];
    ck_assert_uint_eq(first->id, 4711);
    ck_assert_uint_eq(first->counter, 2);
    ck_assert_uint_eq(first->serial, 17);
    /* 10,000, a quarter of them changes: of 156 samples */
    ck_assert_uint_ge(first->n[HOT_GET], 5000);
    ck_assert_uint_le(first->n[HOT_GET], 10000);
    ck_assert_uint_ge(first->n[HOT_CHANGE], 1200);
    ck_assert_uint_le(first->n[HOT_CHANGE], 4200);
    uint64_t all = list.total[HOT_GET] + list.total[HOT_CHANGE];
    ck_assert_uint_ge(all, KEYS / 10 * 9);
    ck_assert_uint_le(all, KEYS / 10 * 11);
    for (unsigned i = 1; i < list.n; i++) {
        ck_assert_uint_le(list.one[i].n[HOT_GET], first->n[HOT_GET] / 4);
    }
}
END_TEST

/* What one thread of many has met is there, however many ids the others have
 * met: more than a list holds. */
START_TEST(test_hot_of_many)
{
    enum { THREADS = 6, KEYS = 100000 };
    static struct hot hot;
    static struct hot_list list;
    uint64_t random = 1;
    for (unsigned thread = 0; thread < THREADS; thread++) {
        memset(&hot, 0, sizeof hot);
        for (unsigned i = 0; i < KEYS; i++) {
            random = random * 6364136223846793005U + 1442695040888963407U;
            bool is_hot = i % 2 == 0 && (thread == 0 || thread == THREADS - 1);
            meet(&hot, is_hot ? thread : random >> 20, HOT_GET);
        }
        hot_read(&hot, &list);
    }
    hot_sort(&list);
    ck_assert_uint_le(list.n, HOT_LIST_MAX);
    ck_assert_uint_eq(list.one[0].id + list.one[1].id, THREADS - 1);
    ck_assert_uint_ge(list.one[1].n[HOT_GET], KEYS / 4);
    ck_assert_uint_lt(list.one[2].n[HOT_GET], KEYS / 4);
}
END_TEST

/* What was hot an hour ago is not shown. */
START_TEST(test_hot_fades)
{
    static struct hot hot;
    static struct hot_list list;
    for (unsigned i = 0; i < 64 * 1024; i++) {
        meet(&hot, 5, HOT_GET);
    }
    for (unsigned i = 0; i < HOT_HALF_LIFE; i++) {
        hot_tick(&hot);
    }
    hot_read(&hot, &list);
    ck_assert_uint_ge(find(&list, 5)->n[HOT_GET], 27000);
    ck_assert_uint_le(find(&list, 5)->n[HOT_GET], 38000);
    ck_assert_uint_eq(list.total[HOT_GET], list.one[0].n[HOT_GET]);
    for (unsigned i = 0; i < 3600; i++) {
        hot_tick(&hot);
    }
    memset(&list, 0, sizeof list);
    hot_read(&hot, &list);
    ck_assert_uint_eq(list.n, 0);
    ck_assert_uint_eq(list.total[HOT_GET], 0);
}
END_TEST

/* An id that has had two names, one after the other: each has its own. */
START_TEST(test_hot_names)
{
    enum { FIRST = 20, SECOND = 3 };
    static struct hot hot[2];
    static struct hot_list list;
    for (unsigned i = 0; i < FIRST; i++) {
        hot_count(&hot[0], 5, 77, 2, 17, HOT_CHANGE);
    }
    for (unsigned i = 0; i < SECOND; i++) {
        hot_count(&hot[i % 2], 5, 78, 2, 17, HOT_GET);
    }
    hot_read(&hot[0], &list);
    hot_read(&hot[1], &list);
    hot_sort(&list);
    ck_assert_uint_eq(list.n, 2);
    ck_assert_uint_eq(list.one[0].name, 77);
    ck_assert_uint_eq(list.one[0].n[HOT_CHANGE], FIRST * HOT_EVERY);
    ck_assert_uint_eq(list.one[0].n[HOT_GET], 0);
    ck_assert_uint_eq(list.one[1].name, 78);
    ck_assert_uint_eq(list.one[1].n[HOT_CHANGE], 0);
    ck_assert_uint_eq(list.one[1].n[HOT_GET], SECOND * HOT_EVERY);
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("slow");
    tcase_add_test(tcase, test_ring);
    tcase_add_test(tcase, test_reason);
    tcase_add_test(tcase, test_words);
    tcase_add_test(tcase, test_hot_one);
    tcase_add_test(tcase, test_hot_of_many);
    tcase_add_test(tcase, test_hot_fades);
    tcase_add_test(tcase, test_hot_names);
    return run_case("slow", tcase);
}
