/* SPDX-License-Identifier: BSD-3-Clause */
/* The log's format as a whole. t/data/log-v1 is a log file as version 1 wrote
 * it, t/data/log-v1-term one that begins with a term, log-v1-moved one with
 * handovers, log-v1-joined one with numbers of producers that come from
 * elsewhere, log-v1-about one with members of members=about, which came later;
 * what is in them must come out of every tallyd to come. They were made, once,
 * by
 *
 *   t/unit/check_log_format --make DIRECTORY
 *
 * which also makes the files that t/fuzz/corpus/fuzz_log began with. A later
 * version gets a file of its own beside them; these are never made again. */
#include "wal/replay.h"

#include "base/err.h"
#include "lib/log_make.h"
#include "lib/still_disk.h"
#include "unit/check_help.h"
#include "wal/entry.h"

#include <stdio.h>

enum {
    EPOCH = 0x5eed,
    NUMBER = 3,
    FIRST_SEQ = 1000,
    FILE_BYTES_MAX = 1 << 20
};

static const struct schema_counter counter = {.name = {4, "post"},
    .key_name = {2, "id"},
    .serial = 1,
    .slot = 0,
    .n_columns = 2,
    .key_hint_bits = 52,
    .absent_is_miss = true,
    .exptime_is_ignored = true,
    .max_jump = 123456789012,
    .column = {{.name = {5, "likes"},
                   .suffix = {5, "cntlk"},
                   .serial = 2,
                   .slot = 0,
                   .hint_bits = 8,
                   .max_bits = 64,
                   .flags = 4000000000,
                   .default_value = 0},
        {.name = {5, "views"},
            .serial = 4,
            .slot = 1,
            .hint_bits = 16,
            .max_bits = 32,
            .default_value = 100}}};

/* What is in the file: each is a batch of its own where it says so. */
static const struct item {
    bool begins_batch;
    bool is_near; /* to the cells before */
    struct entry entry;
} items[] = {
    {true, false,
        {.kind = ENTRY_DROPPED, .counter_serial = 700, .last_serial = 70000}},
    {false, false, {.kind = ENTRY_COUNTER, .last_serial = 70000}},
    {true, false,
        {.kind = ENTRY_CELLS,
            .cells = {.id = 0, .n = 1, .serial = {2}, .value = {0}}}},
    {false, true,
        {.kind = ENTRY_CELLS,
            .cells = {.id = UINT64_MAX,
                .n = 2,
                .serial = {4, 2},
                .value = {127, UINT64_MAX}}}},
    {false, true,
        {.kind = ENTRY_CELLS,
            .cells =
                {.id = 4852789411840, .n = 1, .serial = {2}, .value = {1}}}},
    {true, false,
        {.kind = ENTRY_CELLS,
            .cells =
                {.id = 4852789415464, .n = 1, .serial = {4}, .value = {128}}}},
    {false, true,
        {.kind = ENTRY_CELLS,
            .cells = {.id = 4852789415463,
                .n = 16,
                .serial = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 300,
                    UINT32_MAX},
                .value = {0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048,
                    1 << 20, 1 << 30, 99}}}},
};

static size_t
put_entry(uint8_t *out, const struct item *item, const uint64_t *id_before)
{
    const struct entry *entry = &item->entry;

    switch (entry->kind) {
    case ENTRY_COUNTER:
        return entry_put_counter(out, &counter, entry->last_serial);
    case ENTRY_DROPPED:
        return entry_put_dropped(
            out, entry->counter_serial, entry->last_serial);
    default:
        return log_make_cells(
            out, &entry->cells, item->is_near ? id_before : NULL);
    }
}

/* The file that is t/data/log-v1, with zeroes at its end. */
static void
make_log(struct log_make *log)
{
    static const struct frame_file file = {.epoch = EPOCH,
        .number = NUMBER,
        .first_seq = FIRST_SEQ,
        .before_end = 5000};
    uint64_t id = 0;

    log_make_init(log, &file);
    for (size_t i = 0; i < COUNT_OF(items);) {
        uint8_t payload[2 * ENTRY_COUNTER_BYTES_MAX];
        size_t len = 0;

        do {
            len += put_entry(payload + len, &items[i], &id);
            id = items[i].entry.cells.id;
        } while (++i < COUNT_OF(items) && !items[i].begins_batch);
        log_make_add(log, payload, len, FIRST_SEQ - 1 + log->n / 2);
    }
    log_make_zeroes(log, 64);
}

enum { TERM = 5, TERM_BATCHES = 2, TERM_ZEROES = 64 };
#define TERM_FIRST_SEQ ((UINT64_C(5) << SEQ_N_BITS) + 1)

/* The file that is t/data/log-v1-term: the first of a term, which a cell
 * follows, in the same batch, and a batch with one more. */
static void
make_term_log(struct log_make *log)
{
    static const struct frame_file file = {.epoch = EPOCH,
        .number = NUMBER,
        .first_seq = TERM_FIRST_SEQ,
        .before_end = 5000};
    struct entry_term term = {.term = TERM,
        .branch = UINT64_C(0xfedcba9876543210),
        .last_seq = (UINT64_C(3) << SEQ_N_BITS) + 77};
    uint8_t payload[ENTRY_TERM_BYTES_MAX + 4];
    size_t len;

    (void)node_name_set(&term.node, "db-1.Example_2", 14);
    len = entry__put_term(payload, &term);
    memcpy(payload + len, "\x09\1\2\3", 4);
    log_make_init(log, &file);
    log_make_add(log, payload, len + 4, TERM_FIRST_SEQ - 1);
    log_make_add(log, "\x09\1\2\4", 4, TERM_FIRST_SEQ);
    log_make_zeroes(log, TERM_ZEROES);
}

/* The file that is t/data/log-v1-moved: ids go, in a batch with a cell of
 * another one, and come back. */
static void
make_moved_log(struct log_make *log)
{
    static const struct frame_file file = {.epoch = EPOCH,
        .number = NUMBER,
        .first_seq = FIRST_SEQ,
        .before_end = 5000};
    struct moved_one one = {.rule = "crc32a:2/4", .address = "[::1]:11211"};
    uint8_t payload[ENTRY_MOVED_BYTES_MAX + 4] = "\x09\1\2\3";
    size_t len = entry_put_moved(payload + 4, &one);

    log_make_init(log, &file);
    log_make_add(log, payload, 4 + len, FIRST_SEQ - 1);
    one.address[0] = '\0';
    log_make_add(log, payload, entry_put_moved(payload, &one), FIRST_SEQ);
    log_make_zeroes(log, TERM_ZEROES);
}

/* How far the items have been seen. */
struct seen {
    size_t n;
    uint64_t seq;
};

static void
assert_counter(const struct schema_counter *got)
{
    ck_assert_str_eq(got->name.text, "post");
    ck_assert_str_eq(got->key_name.text, "id");
    ck_assert_uint_eq(got->serial, 1);
    ck_assert_uint_eq(got->slot, 0);
    ck_assert_uint_eq(got->n_columns, 2);
    ck_assert_uint_eq(got->key_hint_bits, 52);
    ck_assert(got->absent_is_miss);
    ck_assert(!got->overflow_is_error);
    ck_assert(got->exptime_is_ignored);
    ck_assert_uint_eq(got->max_jump, 123456789012);
    ck_assert(!got->cold_is_quietest); /* was not there in version 1 */
    ck_assert_uint_eq(got->cold_after, 0);
    for (unsigned i = 0; i < 2; i++) {
        const struct schema_column *a = &got->column[i];
        const struct schema_column *b = &counter.column[i];

        ck_assert_str_eq(a->name.text, b->name.text);
        ck_assert_str_eq(a->suffix.text, b->suffix.text);
        ck_assert_uint_eq(a->serial, b->serial);
        ck_assert_uint_eq(a->slot, b->slot);
        ck_assert_uint_eq(a->hint_bits, b->hint_bits);
        ck_assert_uint_eq(a->max_bits, b->max_bits);
        ck_assert_uint_eq(a->flags, b->flags);
        ck_assert_uint_eq(a->default_value, b->default_value);
    }
}

static void
assert_entry(const struct entry *got, const struct entry *expected)
{
    ck_assert_int_eq(got->kind, expected->kind);
    switch (got->kind) {
    case ENTRY_CELLS:
        ck_assert_uint_eq(got->cells.id, expected->cells.id);
        ck_assert_uint_eq(got->cells.n, expected->cells.n);
        for (unsigned i = 0; i < got->cells.n; i++) {
            ck_assert_uint_eq(got->cells.serial[i], expected->cells.serial[i]);
            ck_assert_uint_eq(got->cells.value[i], expected->cells.value[i]);
        }
        break;
    case ENTRY_COUNTER:
        ck_assert_uint_eq(got->last_serial, expected->last_serial);
        assert_counter(&got->counter);
        break;
    default:
        ck_assert_uint_eq(got->last_serial, expected->last_serial);
        ck_assert_uint_eq(got->counter_serial, expected->counter_serial);
    }
}

static int
see_batch(void *context, uint64_t seq, const uint8_t *payload, size_t len)
{
    struct seen *seen = context;
    struct entry_reader reader = {.at = payload, .end = payload + len};
    struct entry entry;

    ck_assert_uint_eq(seq, seen->seq++);
    ck_assert(items[seen->n].begins_batch);
    for (;;) {
        ck_assert(entry_next(&reader, &entry));
        if (entry.kind == ENTRY_END) {
            return 0;
        }
        ck_assert_uint_lt(seen->n, COUNT_OF(items));
        assert_entry(&entry, &items[seen->n++].entry);
    }
}

typedef int batch_fn(
    void *context, uint64_t seq, const uint8_t *payload, size_t len);

/* Reads a file, all of which is sound, to see_fn. */
static struct replay_end
read_log(const uint8_t *bytes, size_t len, batch_fn *see_fn, void *context)
{
    struct still_disk still;
    struct replay_end end;

    still_disk_init(&still);
    still_disk_add(&still, "log-00000000000000000003.wal", bytes, len);
    ck_assert_int_eq(replay_run(&(struct replay){.disk = &still.disk,
                                    .epoch = EPOCH,
                                    .number = NUMBER,
                                    .batch_fn = see_fn,
                                    .context = context},
                         &end),
        0);
    return end;
}

/* Reads a file and asserts that all items are in it. */
static void
check_log(const uint8_t *bytes, size_t len)
{
    struct seen seen = {.seq = FIRST_SEQ};
    struct replay_end end = read_log(bytes, len, see_batch, &seen);

    ck_assert_uint_eq(seen.n, COUNT_OF(items));
    ck_assert_uint_eq(end.batches, 3);
    ck_assert_uint_eq(end.next_seq, FIRST_SEQ + 3);
    ck_assert_uint_eq(end.end, len - 64);
    ck_assert_uint_eq(end.torn_bytes, 0);
}

static int
see_term_batch(void *context, uint64_t seq, const uint8_t *payload, size_t len)
{
    unsigned *n = context;
    struct entry_reader reader = {.at = payload, .end = payload + len};
    struct entry entry;

    ck_assert_uint_eq(seq, TERM_FIRST_SEQ + *n);
    ck_assert(entry_next(&reader, &entry));
    if (*n == 0) {
        ck_assert_int_eq(entry.kind, ENTRY_TERM);
        ck_assert_uint_eq(entry.term.term, TERM);
        ck_assert_uint_eq(entry.term.branch, UINT64_C(0xfedcba9876543210));
        ck_assert_uint_eq(
            entry.term.last_seq, (UINT64_C(3) << SEQ_N_BITS) + 77);
        ck_assert_uint_eq(entry.term.node.len, 14);
        ck_assert_mem_eq(entry.term.node.text, "db-1.Example_2", 14);
        ck_assert(entry_term_is_at(&entry.term, seq, true));
        ck_assert(entry_next(&reader, &entry));
    }
    ck_assert_int_eq(entry.kind, ENTRY_CELLS);
    ck_assert_uint_eq(entry.cells.value[0], 3 + *n);
    ck_assert(entry_next(&reader, &entry));
    ck_assert_int_eq(entry.kind, ENTRY_END);
    ++*n;
    return 0;
}

static void
check_term_log(const uint8_t *bytes, size_t len)
{
    unsigned n = 0;
    struct replay_end end = read_log(bytes, len, see_term_batch, &n);

    ck_assert_uint_eq(n, TERM_BATCHES);
    ck_assert_uint_eq(end.next_seq, TERM_FIRST_SEQ + TERM_BATCHES);
    ck_assert_uint_eq(end.end, len - TERM_ZEROES);
}

static int
see_moved_batch(
    void *context, uint64_t seq, const uint8_t *payload, size_t len)
{
    unsigned *n = context;
    struct entry_reader reader = {.at = payload, .end = payload + len};
    struct entry entry;

    ck_assert_uint_eq(seq, FIRST_SEQ + *n);
    ck_assert(entry_next(&reader, &entry));
    if (*n == 0) {
        ck_assert_int_eq(entry.kind, ENTRY_CELLS);
        ck_assert(entry_next(&reader, &entry));
    }
    ck_assert_int_eq(entry.kind, ENTRY_MOVED);
    ck_assert_str_eq(entry.moved.rule, "crc32a:2/4");
    ck_assert_str_eq(entry.moved.address, *n == 0 ? "[::1]:11211" : "");
    ck_assert(entry_next(&reader, &entry));
    ck_assert_int_eq(entry.kind, ENTRY_END);
    ++*n;
    return 0;
}

static void
check_moved_log(const uint8_t *bytes, size_t len)
{
    unsigned n = 0;

    (void)read_log(bytes, len, see_moved_batch, &n);
    ck_assert_uint_eq(n, 2);
}

enum { JOINED_BATCHES = 3, JOINED_ZEROES = 64 };

/* What the n-th batch of t/data/log-v1-joined has: three numbers from end to
 * end of a window; the whole one up to the highest number there is; 0. */
static struct seen_window
joined_window(unsigned n)
{
    struct seen_window seen = {0};

    if (n == 0) {
        seen_add(&seen, 1999);
        seen_add(&seen, 2000);
        seen_add(&seen, 977); /* the lowest of its window */
    } else if (n == 1) {
        seen.high = UINT64_MAX;
        (void)memset(seen.bit, 0xff, sizeof seen.bit);
    } else {
        seen_add(&seen, 0);
    }
    return seen;
}

/* The file that is t/data/log-v1-joined: a window, and a cell behind it. */
static void
make_joined_log(struct log_make *log)
{
    static const struct frame_file file = {.epoch = EPOCH,
        .number = NUMBER,
        .first_seq = FIRST_SEQ,
        .before_end = 5000};
    uint8_t payload[ENTRY_PRODUCER_JOINED_BYTES_MAX + 4];

    log_make_init(log, &file);
    for (unsigned n = 0; n < JOINED_BATCHES; n++) {
        struct seen_window seen = joined_window(n);
        size_t len = entry_put_producer_joined(payload, 300 + n, &seen);

        memcpy(payload + len, "\x09\1\2\3", 4);
        log_make_add(log, payload, len + 4, FIRST_SEQ - 1);
    }
    log_make_zeroes(log, JOINED_ZEROES);
}

static int
see_joined_batch(
    void *context, uint64_t seq, const uint8_t *payload, size_t len)
{
    unsigned *n = context;
    struct entry_reader reader = {.at = payload, .end = payload + len};
    struct entry entry;
    struct seen_window seen = joined_window(*n);

    ck_assert_uint_eq(seq, FIRST_SEQ + *n);
    ck_assert(entry_next(&reader, &entry));
    ck_assert_int_eq(entry.kind, ENTRY_PRODUCER_JOINED);
    ck_assert_uint_eq(entry.producer, 300 + *n);
    ck_assert_mem_eq(&entry.seen, &seen, sizeof seen);
    ck_assert(entry_next(&reader, &entry));
    ck_assert_int_eq(entry.kind, ENTRY_CELLS);
    ck_assert(entry_next(&reader, &entry));
    ck_assert_int_eq(entry.kind, ENTRY_END);
    ++*n;
    return 0;
}

static void
check_joined_log(const uint8_t *bytes, size_t len)
{
    unsigned n = 0;
    struct replay_end end = read_log(bytes, len, see_joined_batch, &n);

    ck_assert_uint_eq(n, JOINED_BATCHES);
    ck_assert_uint_eq(end.end, len - JOINED_ZEROES);
}

/* The file that is t/data/log-v1-about: three members, ids back and forth, and
 * a table that has rolled; then one from end to end. */
static const struct entry_about about_entries[] = {
    {.serial = 300,
        .n = 3,
        .id = {7000000000, 6999999999, 7000000300},
        .member = {0, 4000000000, 5}},
    {.serial = 1, .n = 1, .id = {UINT64_MAX}, .member = {UINT64_MAX}}};
static const struct entry_rolled about_rolled = {300, 7000000301, 12};

static void
make_about_log(struct log_make *log)
{
    static const struct frame_file file = {.epoch = EPOCH,
        .number = NUMBER,
        .first_seq = FIRST_SEQ,
        .before_end = 5000};
    uint8_t payload[ENTRY_ABOUT_BYTES_MAX + ENTRY_ABOUT_ROLLED_BYTES_MAX];
    size_t len = entry_put_about(payload, &about_entries[0]);

    log_make_init(log, &file);
    len += entry_put_rolled(payload + len, &about_rolled);
    log_make_add(log, payload, len, FIRST_SEQ - 1);
    len = entry_put_about(payload, &about_entries[1]);
    log_make_add(log, payload, len, FIRST_SEQ);
}

static int
see_about_batch(
    void *context, uint64_t seq, const uint8_t *payload, size_t len)
{
    unsigned *n = context;
    struct entry_reader reader = {.at = payload, .end = payload + len};
    const struct entry_about *want = &about_entries[*n];
    struct entry entry;

    ck_assert_uint_eq(seq, FIRST_SEQ + *n);
    ck_assert(entry_next(&reader, &entry));
    ck_assert_int_eq(entry.kind, ENTRY_ABOUT);
    ck_assert_uint_eq(entry.about.serial, want->serial);
    ck_assert_uint_eq(entry.about.n, want->n);
    for (unsigned i = 0; i < want->n; i++) {
        ck_assert_uint_eq(entry.about.id[i], want->id[i]);
        ck_assert_uint_eq(entry.about.member[i], want->member[i]);
    }
    if (*n == 0) {
        ck_assert(entry_next(&reader, &entry));
        ck_assert_int_eq(entry.kind, ENTRY_ABOUT_ROLLED);
        ck_assert_uint_eq(entry.rolled.serial, about_rolled.serial);
        ck_assert_uint_eq(entry.rolled.first, about_rolled.first);
        ck_assert_uint_eq(entry.rolled.lowest, about_rolled.lowest);
    }
    ck_assert(!entry_has_next(&reader));
    ++*n;
    return 0;
}

static void
check_about_log(const uint8_t *bytes, size_t len)
{
    unsigned n = 0;

    (void)read_log(bytes, len, see_about_batch, &n);
    ck_assert_uint_eq(n, 2);
}

/* Names come, one goes, and its number is given again. */
static const struct {
    unsigned shard;
    uint32_t number;
    const char *name;
} named[] = {{0, 0, "a-name-that-is-no-id-by-itself"},
    {63, 300, "https://example.com/?q=1&r=\xc3\xa4"}, {0, 0, ""},
    {0, 0, "somebody@example.com"}, {4095, 0xffffffdf, "0123456789012345678"}};

static void
make_names_log(struct log_make *log)
{
    static const struct frame_file file = {.epoch = EPOCH,
        .number = NUMBER,
        .first_seq = FIRST_SEQ,
        .before_end = 5000};
    uint8_t payload[COUNT_OF(named) * ENTRY_NAME_BYTES_MAX];
    size_t len = 0;

    log_make_init(log, &file);
    for (size_t i = 0; i < COUNT_OF(named); i++) {
        len += entry_put_name(payload + len, named[i].shard, named[i].number,
            named[i].name, strlen(named[i].name));
    }
    log_make_add(log, payload, len, FIRST_SEQ - 1);
}

static int
see_names_batch(
    void *context, uint64_t seq, const uint8_t *payload, size_t len)
{
    unsigned *n = context;
    struct entry_reader reader = {.at = payload, .end = payload + len};
    struct entry entry;

    ck_assert_uint_eq(seq, FIRST_SEQ);
    for (; entry_has_next(&reader); ++*n) {
        ck_assert_uint_lt(*n, COUNT_OF(named));
        ck_assert(entry_next(&reader, &entry));
        ck_assert_int_eq(entry.kind, ENTRY_NAME);
        ck_assert_uint_eq(entry.named.shard, named[*n].shard);
        ck_assert_uint_eq(entry.named.number, named[*n].number);
        ck_assert_uint_eq(entry.named.len, strlen(named[*n].name));
        ck_assert_mem_eq(entry.named.bytes, named[*n].name, entry.named.len);
    }
    return 0;
}

static void
check_names_log(const uint8_t *bytes, size_t len)
{
    unsigned n = 0;

    (void)read_log(bytes, len, see_names_batch, &n);
    ck_assert_uint_eq(n, COUNT_OF(named));
}

/* Short cells: the first of an append, near ones, one far away behind a number
 * that was done, one of the columns of a record that has a member, others. */
static const struct entry_cells brief[] = {
    {70000, 3, {5, 6, 7}, {1, 2, UINT64_MAX}},
    {70001, 3, {5, 6, 7}, {0, 300, 4}},
    {69999, 3, {5, 6, 7}, {9, 8, 7}},
    {5, 3, {5, 6, 7}, {1, 1, 1}},
    {6, 2, {80, 82}, {3, 4}},
    {6, 1, {83}, {1}},
    {UINT64_MAX, 2, {80, 82}, {4, 3}},
    {UINT64_MAX, 1, {600}, {4}},
};

static void
make_brief_log(struct log_make *log)
{
    static const struct frame_file file = {.epoch = EPOCH,
        .number = NUMBER,
        .first_seq = FIRST_SEQ,
        .before_end = 5000};
    const struct entry_members members = {.n_changes = 1,
        .n = 2,
        .pair_bytes = 1,
        .pair_serial = 83,
        .pair_value = 1};
    uint8_t out[COUNT_OF(brief) * ENTRY_CELLS_BYTES_MAX];
    size_t len = 0;

    log_make_init(log, &file);
    for (size_t i = 0; i < 4; i++) {
        if (i == 3) {
            len += entry_put_number(out + len, 1, 2, 3);
        }
        len += log_make_record(
            out + len, &brief[i], i == 0 ? NULL : &brief[i - 1]);
    }
    len += entry_put_members(out + len, &members, brief[4].serial);
    len += entry_put_member(
        out + len, &members, brief[4].id, brief[4].value, brief[5].id, NULL);
    len += log_make_record(out + len, &brief[6], &brief[4]);
    len += log_make_record(out + len, &brief[7], &brief[6]);
    log_make_add(log, out, len, FIRST_SEQ - 1);
}

static int
see_brief_batch(
    void *context, uint64_t seq, const uint8_t *payload, size_t len)
{
    unsigned *n = context;
    struct entry_reader reader = {.at = payload, .end = payload + len};
    struct entry entry;

    ck_assert_uint_eq(seq, FIRST_SEQ);
    while (entry_has_next(&reader)) {
        ck_assert(entry_next(&reader, &entry));
        if (entry.kind == ENTRY_NUMBER) {
            ck_assert_uint_eq(*n, 3);
            continue;
        }
        ck_assert_uint_lt(*n, COUNT_OF(brief));
        assert_entry(
            &entry, &(struct entry){.kind = ENTRY_CELLS, .cells = brief[*n]});
        ++*n;
    }
    return 0;
}

static void
check_brief_log(const uint8_t *bytes, size_t len)
{
    unsigned n = 0;

    (void)read_log(bytes, len, see_brief_batch, &n);
    ck_assert_uint_eq(n, COUNT_OF(brief));
}

/* What came to version 1, in the order in which it came. */
static const struct later {
    const char *golden, *seed; /* names of the files that have it */
    void (*make_fn)(struct log_make *);
    void (*check_fn)(const uint8_t *, size_t);
} laters[] = {
    {"log-v1-term", "term", make_term_log, check_term_log},
    {"log-v1-moved", "moved", make_moved_log, check_moved_log},
    {"log-v1-joined", "joined", make_joined_log, check_joined_log},
    {"log-v1-about", "about", make_about_log, check_about_log},
    {"log-v1-names", "names", make_names_log, check_names_log},
    {"log-v1-short", "short", make_brief_log, check_brief_log},
};

START_TEST(test_today)
{
    struct log_make log;

    make_log(&log);
    check_log((const uint8_t *)log.bytes.data, log.bytes.len);
    log_make_fini(&log);
    for (size_t i = 0; i < COUNT_OF(laters); i++) {
        laters[i].make_fn(&log);
        laters[i].check_fn((const uint8_t *)log.bytes.data, log.bytes.len);
        log_make_fini(&log);
    }
}
END_TEST

/* Hands the bytes of a golden file to check_fn. */
static void
check_file(const char *path, void (*check_fn)(const uint8_t *, size_t))
{
    uint8_t *bytes = malloc(FILE_BYTES_MAX);
    size_t len;
    FILE *file;

    ck_assert_ptr_nonnull(bytes);
    file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "cannot open %s", path);
    len = fread(bytes, 1, FILE_BYTES_MAX, file);
    ck_assert_int_eq(fclose(file), 0);
    check_fn(bytes, len);
    free(bytes);
}

START_TEST(test_version_1)
{
    check_file(DATA_DIR "/log-v1", check_log);
}
END_TEST

START_TEST(test_version_1_later)
{
    for (size_t i = 0; i < COUNT_OF(laters); i++) {
        char path[sizeof DATA_DIR + 64];

        (void)snprintf(path, sizeof path, DATA_DIR "/%s", laters[i].golden);
        check_file(path, laters[i].check_fn);
    }
}
END_TEST

/* Writes a file of one byte, if it is not negative, and two pieces. */
static bool
write_file(const char *directory, const char *name, int flags,
    const struct buf *one, const struct buf *two)
{
    char path[4096];
    FILE *file;
    bool ok;

    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    file = fopen(path, "wb");
    if (file == NULL) {
        return false;
    }
    ok = flags < 0 || fputc(flags, file) == flags;
    ok = ok && fwrite(one->data, 1, one->len, file) == one->len;
    ok = ok &&
        (two == NULL || fwrite(two->data, 1, two->len, file) == two->len);
    return fclose(file) == 0 && ok;
}

/* The golden file, and what fuzzing begins with: see t/fuzz/fuzz_log.c about
 * the flags. */
static int
make_files(const char *directory)
{
    struct log_make log, next, later;
    struct buf payload = {0};
    bool ok;

    make_log(&log);
    log_make_init(&next,
        &(struct frame_file){.epoch = EPOCH,
            .number = NUMBER + 1,
            .first_seq = FIRST_SEQ + log.n,
            .before_end = log.at[log.n]});
    log_make_add(&next, "\x09\1\2\3", 4, FIRST_SEQ);
    for (unsigned i = 0; i < log.n; i++) {
        buf_add(&payload, log.bytes.data + log.at[i] + FRAME_BATCH_BYTES,
            log.batch[i].payload_bytes);
    }
    ok = write_file(directory, "log-v1", -1, &log.bytes, NULL) &&
        write_file(directory, "raw", 0, &log.bytes, NULL) &&
        write_file(directory, "sealed", 1, &log.bytes, NULL) &&
        write_file(directory, "two-raw", 0, &log.bytes, &next.bytes) &&
        write_file(directory, "two-sealed", 1, &log.bytes, &next.bytes) &&
        write_file(directory, "payload", 2, &payload, NULL);
    log.bytes.data[log.at[0]] ^= 1; /* the third says it was synced */
    ok = ok && write_file(directory, "hole", 0, &log.bytes, NULL);
    for (size_t i = 0; i < COUNT_OF(laters) && ok; i++) {
        laters[i].make_fn(&later);
        ok = write_file(directory, laters[i].golden, -1, &later.bytes, NULL) &&
            write_file(directory, laters[i].seed, 1, &later.bytes, NULL);
        log_make_fini(&later);
    }
    buf_fini(&payload);
    log_make_fini(&next);
    log_make_fini(&log);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

int
main(int argc, char **argv)
{
    const TTest *const tests[] = {
        test_today, test_version_1, test_version_1_later};

    if (argc == 3 && strcmp(argv[1], "--make") == 0) {
        return make_files(argv[2]);
    }
    return run_tests("log__format", tests, COUNT_OF(tests));
}
