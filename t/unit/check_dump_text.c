/* SPDX-License-Identifier: BSD-3-Clause */
/* offline/dump_text: what was seen is said, all of it and nothing else; the
 * lines themselves. */
#include "offline/dump_text.h"
#include "unit/check_help.h"

#include <stdio.h>

#define MOST UINT64_MAX

struct row {
    uint64_t number[8]; /* added in this order, up to 0 behind the first */
    const char *text;
};

static const struct row rows[] = {
    {{0}, "seen 3 shard 7 numbers 0"},
    {{1, 2, 3}, "seen 3 shard 7 numbers 1-3"},
    {{5, 2, 3, 1, 9}, "seen 3 shard 7 numbers 1-3 5 9"},
    {{1023, 1, 1022}, "seen 3 shard 7 numbers 1 1022-1023"},
    {{1, 2, 1025, 1024}, "seen 3 shard 7 numbers 2 1024-1025"},
    {{1, 2, 1000000}, "seen 3 shard 7 numbers 1000000"},
    {{MOST, MOST - 1, MOST - 1023, MOST - 1024},
        "seen 3 shard 7 numbers 18446744073709550592 "
        "18446744073709551614-18446744073709551615"},
};

static void
expect_text(struct buf *out, const char *text)
{
    buf_add(out, "", 1);
    ck_assert(!out->failed);
    ck_assert_str_eq(out->data, text);
    buf_fini(out);
}

START_TEST(test_windows)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct producers_window window = {.producer = 0, .shard = 7};
        struct buf out = {0};
        for (unsigned k = 0; k == 0 || rows[i].number[k] != 0; k++) {
            seen_add(&window.seen, rows[i].number[k]);
        }
        dump_text_window(3, &window, &out);
        expect_text(&out, rows[i].text);
    }
}
END_TEST

/* All there can be, beside a look at each number. */
START_TEST(test_windows_random)
{
    uint64_t random = 1;
    for (unsigned round = 0; round < 200; round++) {
        struct producers_window window = {.producer = 0};
        struct buf out = {0};
        uint64_t base = random_below(&random, 5000), n_said = 0, n_seen = 0;
        for (unsigned k = 0; k < 1 + round * 8; k++) {
            seen_add(&window.seen, base + random_below(&random, 2000));
        }
        for (uint64_t n = 0; n < base + 3000; n++) {
            n_seen += seen_look(&window.seen, n) == SEEN_BEFORE;
        }
        dump_text_window(1, &window, &out);
        buf_add(&out, "", 1);
        char *at = strstr(out.data, "numbers") + strlen("numbers");
        while (*at != '\0') {
            uint64_t first = strtoull(at, &at, 10);
            uint64_t last = *at == '-' ? strtoull(at + 1, &at, 10) : first;
            for (uint64_t n = first; n <= last; n++) {
                ck_assert_int_eq(seen_look(&window.seen, n), SEEN_BEFORE);
            }
            n_said += last - first + 1;
        }
        ck_assert_uint_eq(n_said, n_seen);
        buf_fini(&out);
    }
}
END_TEST

START_TEST(test_replica)
{
    struct replica_file file = {.promised = 3,
        .cut_seq = 70,
        .level = REPLICA_SYNCED,
        .is_doubtful = true,
        .is_salvaged = true};
    struct buf out = {0};
    ck_assert(node_name_set(&file.node, "n-1", 3));
    dump_text_replica(&file, &out);
    expect_text(&out,
        "replica node n-1 promised 3 level synced cut 70 doubtful salvaged");
    ck_assert(node_name_set(&file.cluster, "east", 4));
    ck_assert(node_name_set(&file.group, "g", 1));
    file.cut_seq = 0;
    file.is_doubtful = file.is_salvaged = false;
    dump_text_replica(&file, &out);
    expect_text(
        &out, "replica node n-1 cluster east group g promised 3 level synced");
}
END_TEST

START_TEST(test_entries)
{
    struct entry entry = {
        .kind = ENTRY_NUMBER, .producer = 9, .shard = 15, .number = MOST};
    struct buf out = {0};
    ck_assert(dump_text_entry(&entry, &out));
    expect_text(&out, "number 9 shard 15 18446744073709551615");
    entry.kind = ENTRY_PRODUCER;
    ck_assert(producer_name_set(&entry.name, "app-7", 5));
    ck_assert(dump_text_entry(&entry, &out));
    expect_text(&out, "producer 9 app-7");
    entry.kind = ENTRY_PRODUCER_DROPPED;
    ck_assert(dump_text_entry(&entry, &out));
    expect_text(&out, "producer-gone 9");
    entry.kind = ENTRY_TERM;
    entry.term = (struct entry_term){
        .term = 7, .branch = 0xab, .last_seq = (UINT64_C(6) << 40) + 3};
    ck_assert(node_name_set(&entry.term.node, "db-1", 4));
    ck_assert(!dump_text_entry(&entry, &out));
    dump_text_term(&entry.term, &out);
    expect_text(
        &out, "term 7 branch 00000000000000ab after 6597069766659 node db-1");
    entry.kind = ENTRY_CELLS;
    ck_assert(!dump_text_entry(&entry, &out));
    ck_assert_uint_eq(out.len, 0);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        test_windows, test_windows_random, test_replica, test_entries};
    return run_tests("dump_text", tests, COUNT_OF(tests));
}
