/* SPDX-License-Identifier: BSD-3-Clause */
/* store/dump_members: all members of all records, behind each record's line, in
 * pieces of any size; one record with more than a piece; columns that go
 * meanwhile; memory that runs out; and the same where they are in segments, or
 * some of them, or cannot be read there. */
#include "lib/fault_alloc.h"
#include "store/dumper.h"
#include "unit/files_help.h"
#include "unit/members_help.h"

enum {
    IDS = 120,
    MANY = 2000,      /* members of one record */
    RANGE = 16,       /* records of a range, about */
    LINES_MAX = 8192, /* of all */
    SEED = 7
};

/* A line of a dump. */
struct said {
    uint64_t id, member, value; /* value: of a record, plain */
    uint32_t serial;
};

struct lines {
    size_t n;
    struct said said[LINES_MAX];
};

static struct lines wanted, got;

static void
add(struct lines *lines, uint64_t id, uint32_t serial, uint64_t member,
    uint64_t value)
{
    ck_assert_uint_lt(lines->n, LINES_MAX);
    lines->said[lines->n++] = (struct said){id, member, value, serial};
}

static uint32_t
serial_of(struct rig *rig, const char *name)
{
    struct schema_target target;
    ck_assert(
        schema_find(quiet_schema(rig->store), name, strlen(name), &target));
    return target.column->serial;
}

/* Gives a record n members in a column, and says so. */
static void
give(struct rig *rig, uint64_t id, const char *name, uint64_t *last,
    uint64_t step, unsigned n, uint64_t value)
{
    members_give(rig, id, name, last, id % step, step, n, value);
    for (unsigned i = 0; i < n; i++) {
        add(&wanted, id, serial_of(rig, name), id % step + i * step, value);
    }
}

/* Records by ascending ids: with and without a line of their own, members in
 * one column, in both, in none, and one with many. */
static void
fill(struct rig *rig)
{
    /* numbers are in another order than ids */
    uint64_t liked = 0, seen = 1000;
    uint64_t state = SEED, id = 3;
    wanted.n = 0;
    for (unsigned i = 0; i < IDS; i++) {
        uint64_t plain = random_below(&state, 3);
        unsigned n_liked =
            i == IDS / 2 ? (unsigned)MANY : (unsigned)random_below(&state, 6);
        unsigned n_seen = (unsigned)random_below(&state, 4);
        id += 1 + random_below(&state, 50);
        if (plain != 0) {
            members_set_named(rig, id, "plain", plain);
            add(&wanted, id, 0, 0, plain);
        }
        if (n_liked > 0) {
            members_set_named(rig, id, "likes", n_liked);
            give(rig, id, "liked", &liked, 3, n_liked, 1);
        }
        if (n_seen > 0) {
            give(rig, id, "s", &seen, 5, n_seen, 200);
        }
    }
}

/* ---- records that are sealed ---- */

static const char *
name_of(struct rig *rig, uint32_t serial)
{
    return serial == serial_of(rig, "liked") ? "liked" : "s";
}

static int
by_place(const void *a, const void *b)
{
    const struct said *x = a, *y = b;
    if (x->id != y->id) {
        return x->id < y->id ? -1 : 1;
    }
    if (x->serial != y->serial) {
        return x->serial < y->serial ? -1 : 1;
    }
    return (x->member > y->member) - (x->member < y->member);
}

/* What is behind a segment: members that go, that change, and that come, of
 * records which have lost all, too. */
static void
change_some(struct rig *rig, unsigned round)
{
    struct lines old = wanted;
    wanted.n = 0;
    for (size_t i = 0; i < old.n; i++) {
        struct said it = old.said[i];
        const char *name = name_of(rig, it.serial);
        uint64_t step = it.serial == serial_of(rig, "s") ? 5 : 3;
        uint64_t number = it.serial == 0 ? 0 : members_get(rig, it.id, name);
        if (it.serial != 0 && i % 5 == 0) {
            members_put(rig, it.id, name, number, it.member, 0);
            continue;
        }
        if (it.serial == serial_of(rig, "s") && i % 5 == 1) {
            it.value = 7;
            members_put(rig, it.id, name, number, it.member, it.value);
        }
        wanted.said[wanted.n++] = it;
        if (it.serial != 0 && i % 7 == 0 && it.member % step == it.id % step) {
            uint64_t member = it.member + 1 + round;
            members_put(rig, it.id, name, number, member, 1);
            add(&wanted, it.id, it.serial, member, 1);
        }
    }
    qsort(wanted.said, wanted.n, sizeof wanted.said[0], by_place);
}

static void
begin_dump(struct rig *rig, struct store_dump *dump, struct answer *answer)
{
    const struct schema_counter *counter =
        schema_counter(quiet_schema(rig->store), "m", 1);
    answer_init(answer);
    *dump = (struct store_dump){.last_id = UINT64_MAX,
        .slot = counter->slot,
        .serial = counter->serial};
    dump->call = call_of(answer);
}

/* The next piece into `got`; its err. */
static int
take_piece(struct rig *rig, struct store_dump *dump, struct answer *answer)
{
    ck_assert_int_eq(store_dump(rig->store, dump), STORE_LATER);
    answer_wait(answer);
    if (dump->err != 0 && dump->err != ERR_CORRUPT) {
        return dump->err;
    }
    ck_assert_uint_le(dump->n, DUMP_WORK_RECORDS);
    ck_assert_uint_eq(dump->n_columns, 2);
    for (uint32_t i = 0; i < dump->n; i++) {
        const struct store_dump_member *member = &dump->member[i];
        add(&got, dump->id[i], member->serial, member->member,
            member->serial == 0 ? dump->value[2 * (size_t)i] : member->value);
    }
    return dump->err;
}

static int
dump_all(struct rig *rig)
{
    struct store_dump dump;
    struct answer answer;
    int err = 0;
    got.n = 0;
    begin_dump(rig, &dump, &answer);
    while (err == 0 && !dump.is_end) {
        err = take_piece(rig, &dump, &answer);
    }
    store_end_dump(rig->store, &dump);
    answer_fini(&answer);
    return err;
}

static void
expect_same(void)
{
    ck_assert_uint_eq(got.n, wanted.n);
    for (size_t i = 0; i < got.n; i++) {
        ck_assert_uint_eq(got.said[i].id, wanted.said[i].id);
        ck_assert_uint_eq(got.said[i].serial, wanted.said[i].serial);
        ck_assert_uint_eq(got.said[i].member, wanted.said[i].member);
        ck_assert_uint_eq(got.said[i].value, wanted.said[i].value);
    }
}

static void
begin(struct rig *rig, uint32_t found)
{
    rig_init(rig, WAL_SYNC_NONE, ID_RANDOM, 3);
    rig->config.data = NULL;
    rig->config.dump_range_records = RANGE;
    rig->config.dump_members_found = found;
    ck_assert_int_eq(store_create(&rig->config, &rig->store), 0);
    members_add_counter(rig);
}

static void
finish(struct rig *rig)
{
    ck_assert_int_eq(store_destroy(&rig->store), 0);
    rig_fini(rig);
}

static const uint32_t found_max[] = {1, 2, 7, 64, 1000, 0};

START_TEST(test_all)
{
    struct rig rig;
    begin(&rig, found_max[_i]);
    ck_assert_int_eq(dump_all(&rig), 0);
    ck_assert_uint_eq(got.n, 0);
    fill(&rig);
    ck_assert_int_eq(dump_all(&rig), 0);
    expect_same();
    finish(&rig);
}
END_TEST

/* The same from a directory that was loaded. */
START_TEST(test_loaded)
{
    struct rig rig;
    rig_init(&rig, WAL_SYNC_ALWAYS, ID_RANDOM, 3);
    rig.config.dump_range_records = RANGE;
    ck_assert_int_eq(rig_open(&rig), 0);
    members_add_counter(&rig);
    fill(&rig);
    ck_assert_int_eq(rig_close(&rig), 0);
    ck_assert_int_eq(rig_open(&rig), 0);
    ck_assert_int_eq(dump_all(&rig), 0);
    expect_same();
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
}
END_TEST

/* What is left of members that were given up is nobody's. */
START_TEST(test_given_up)
{
    struct rig rig;
    uint64_t last = 0;
    begin(&rig, 0);
    wanted.n = 0;
    members_give(&rig, 5, "liked", &last, 0, 1, 10, 1);
    give(&rig, 5, "liked", &last, 2, 3, 1);
    ck_assert_int_eq(dump_all(&rig), 0);
    expect_same();
    finish(&rig);
}
END_TEST

static void
begin_cold(struct rig *rig, uint32_t found)
{
    rig_init(rig, WAL_SYNC_ALWAYS, ID_RANDOM, 3);
    rig->config.dump_range_records = RANGE;
    rig->config.dump_members_found = found;
    ck_assert_int_eq(rig_open(rig), 0);
    members_add_cold_counter(rig);
}

static void
expect_dump(struct rig *rig)
{
    ck_assert_int_eq(dump_all(rig), 0);
    expect_same();
}

/* All in segments; changes behind them; and sealed again, which merges both.
 * The same after a start. */
START_TEST(test_sealed)
{
    struct rig rig;
    begin_cold(&rig, found_max[_i]);
    fill(&rig);
    for (unsigned round = 0; round < 2; round++) {
        ck_assert_int_eq(rig_seal_all(&rig), 0);
        ck_assert_uint_eq(rig_n_hot(&rig), 0);
        expect_dump(&rig);
        change_some(&rig, round);
        expect_dump(&rig);
    }
    ck_assert_int_eq(rig_close(&rig), 0);
    ck_assert_int_eq(rig_open(&rig), 0);
    expect_dump(&rig);
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
}
END_TEST

/* Of the counter alone, or of the pairs alone. */
START_TEST(test_sealed_in_part)
{
    struct rig rig;
    begin_cold(&rig, 64);
    fill(&rig);
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        const struct schema_counter *counter =
            schema_counter_at(quiet_schema(rig.store), slot);
        if (counter != NULL && (counter->members_of == 0) == (_i == 0)) {
            ck_assert(rig_seal_later(&rig, slot));
            ck_assert_int_eq(rig_seal_wait(&rig), 0);
        }
    }
    expect_dump(&rig);
    change_some(&rig, 0);
    expect_dump(&rig);
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
}
END_TEST

/* A dump goes on behind what cannot be read, and says of which ids that was:
 * these are noted. */
static size_t
dump_past_damage(struct rig *rig, struct store_dump *bad, size_t n_max)
{
    struct store_dump dump;
    struct answer answer;
    size_t n_bad = 0;
    got.n = 0;
    begin_dump(rig, &dump, &answer);
    while (!dump.is_end) {
        int err = take_piece(rig, &dump, &answer);
        ck_assert(err == 0 || err == ERR_CORRUPT);
        if (err != 0) {
            ck_assert_uint_lt(n_bad, n_max);
            bad[n_bad++] = dump;
            dump.err = 0;
        }
    }
    store_end_dump(rig->store, &dump);
    answer_fini(&answer);
    return n_bad;
}

/* All that is shown is right, and what is missing is of those ids. */
static void
expect_all_but(const struct store_dump *bad, size_t n_bad)
{
    size_t k = 0;
    for (size_t i = 0; i < wanted.n; i++) {
        const struct said *it = &wanted.said[i];
        if (k < got.n && by_place(it, &got.said[k]) == 0) {
            ck_assert_uint_eq(it->value, got.said[k].value);
            k++;
            continue;
        }
        bool is_bad = false;
        for (size_t b = 0; b < n_bad && !is_bad; b++) {
            is_bad = it->id >= bad[b].bad_first && it->id <= bad[b].bad_last;
        }
        ck_assert_msg(is_bad, "%d:%d", (int)it->id, (int)it->member);
    }
    ck_assert_uint_eq(k, got.n);
}

/* Each block of each segment in turn, with changes behind it: nothing is left
 * out that nobody tells of. */
START_TEST(test_sealed_damage)
{
    enum { BAD_MAX = 2 * IDS };
    static struct store_dump bad[BAD_MAX];
    struct rig rig;
    struct files files;
    size_t n_all = 0;
    begin_cold(&rig, _i == 0 ? 0 : 64);
    fill(&rig);
    ck_assert_int_eq(rig_seal_all(&rig), 0);
    change_some(&rig, 0);
    ck_assert_int_eq(rig_close(&rig), 0);
    read_files(rig.data.disk, &files);
    for (size_t i = 0; i < files.n; i++) {
        const struct file *file = &files.file[i];
        for (uint64_t at = 4096 + 50;
             strncmp(file->name, "segment", 7) == 0 && at < file->len - 4096;
             at += 4096) {
            fake_disk_flip(rig.fake, file->name, at, 4);
            ck_assert_int_eq(rig_open(&rig), 0);
            size_t n_bad = dump_past_damage(&rig, bad, BAD_MAX);
            ck_assert_uint_gt(n_bad, 0);
            expect_all_but(bad, n_bad);
            n_all += n_bad;
            ck_assert_int_eq(rig_close(&rig), 0);
            fake_disk_flip(rig.fake, file->name, at, 4);
        }
    }
    ck_assert_uint_gt(n_all, 3);
    free_files(&files);
    rig_fini(&rig);
}
END_TEST

/* Numbers as the engine gives them, the same ones in each shard, to more
 * records than are looked at together, in no order of their ids. */
START_TEST(test_sealed_numbers)
{
    enum { RECORDS = 1400, STEP = 397 };
    static const uint32_t found[] = {1, 64, 0};
    struct rig rig;
    begin_cold(&rig, found[_i]);
    wanted.n = 0;
    for (uint64_t i = 0; i < RECORDS; i++) {
        uint64_t id = 1 + i * STEP % RECORDS;
        for (uint64_t m = 0; m < 1 + id % 3; m++) {
            members_change(&rig, id, "liked", m, 1);
            add(&wanted, id, serial_of(&rig, "liked"), m, 1);
        }
    }
    qsort(wanted.said, wanted.n, sizeof wanted.said[0], by_place);
    ck_assert_int_eq(rig_seal_all(&rig), 0);
    ck_assert_uint_eq(rig_n_hot(&rig), 0);
    expect_dump(&rig);
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
}
END_TEST

/* Many members of one record, in some blocks, of which one cannot be read:
 * those before it are there, and those behind it. */
START_TEST(test_sealed_block)
{
    enum { SCATTERED = 6000, BLOCKS_MIN = 3 };
    static struct store_dump bad[SCATTERED];
    struct rig rig;
    struct files files;
    uint64_t state = SEED, last = 0, member = 0;
    unsigned n_blocks = 0;
    begin_cold(&rig, _i == 0 ? 0 : 64);
    wanted.n = 0;
    give(&rig, 7, "liked", &last, 3, 1, 1);
    for (size_t i = 0; i < SCATTERED; i++) {
        member += 2 + random_below(&state, 300);
        members_put(&rig, 7, "liked", last, member, 1);
        add(&wanted, 7, serial_of(&rig, "liked"), member, 1);
    }
    ck_assert_int_eq(rig_seal_all(&rig), 0);
    ck_assert_int_eq(rig_close(&rig), 0);
    read_files(rig.data.disk, &files);
    for (size_t i = 0; i < files.n; i++) {
        const struct file *file = &files.file[i];
        for (uint64_t at = 4096 + 50; strncmp(file->name, "segment", 7) == 0 &&
             file->len > 4096 * BLOCKS_MIN && at < file->len - 4096;
             at += 4096, n_blocks++) {
            fake_disk_flip(rig.fake, file->name, at, 4);
            ck_assert_int_eq(rig_open(&rig), 0);
            size_t n_bad = dump_past_damage(&rig, bad, SCATTERED);
            ck_assert_uint_gt(n_bad, 0);
            expect_all_but(bad, n_bad);
            ck_assert_uint_gt(got.n, wanted.n / 3);
            ck_assert_uint_lt(got.n, wanted.n);
            ck_assert_int_eq(rig_close(&rig), 0);
            fake_disk_flip(rig.fake, file->name, at, 4);
        }
    }
    ck_assert_uint_ge(n_blocks, BLOCKS_MIN - 1);
    free_files(&files);
    rig_fini(&rig);
}
END_TEST

START_TEST(test_dropped)
{
    struct rig rig;
    struct store_dump dump;
    struct answer answer;
    begin(&rig, 64);
    fill(&rig);
    got.n = 0;
    begin_dump(&rig, &dump, &answer);
    ck_assert_int_eq(take_piece(&rig, &dump, &answer), 0);
    ck_assert_int_eq(edit(rig.store, "drop column m liked liked"), 0);
    int err = 0;
    while (err == 0) {
        ck_assert(!dump.is_end);
        err = take_piece(&rig, &dump, &answer);
    }
    ck_assert_int_eq(err, ERR_OTHER_COLUMNS);
    for (size_t i = 0; i < got.n; i++) { /* and nothing else before that */
        ck_assert_uint_eq(got.said[i].id, wanted.said[i].id);
        ck_assert_uint_eq(got.said[i].member, wanted.said[i].member);
    }
    store_end_dump(rig.store, &dump);
    answer_fini(&answer);
    finish(&rig);
}
END_TEST

/* In the slot of pairs that are gone: a counter of two columns, with records in
 * the same rows. */
static void
take_slot(struct rig *rig, unsigned slot, const uint64_t *ids, unsigned n)
{
    const char *const lines[] = {"add counter w cold=never",
        "add column w wid primarykey", "add column w wide",
        "add column w wider"};
    const char *const cold_lines[] = {
        "add counter w", lines[1], lines[2], lines[3]};
    edit_all(rig->store, rig->config.data == NULL ? lines : cold_lines,
        COUNT_OF(lines));
    ck_assert_uint_eq(
        schema_counter(quiet_schema(rig->store), "w", 1)->slot, slot);
    for (unsigned i = 0; i < n; i++) {
        members_set_named(rig, ids[i], "wide", 1000);
        members_set_named(rig, ids[i], "wider", 1000);
    }
}

/* In the middle of a record's members, their column goes and its slot is
 * another counter's: of one with a cold tier, sealed (_i is 1) or not. */
START_TEST(test_slot_of_another)
{
    struct rig rig;
    struct store_dump dump;
    struct answer answer;
    struct schema_target target;
    uint64_t ids[MANY], last = 0;
    if (_i == 2) {
        begin(&rig, 64);
    } else {
        begin_cold(&rig, 64);
    }
    wanted.n = 0;
    give(&rig, 7, "liked", &last, 3, MANY, 1);
    for (unsigned m = 0; m < MANY; m++) {
        ids[m] = store_pair(rig.store, 7, last, MEMBERS_BITS, 3 * m + 1);
    }
    if (_i < 2) {
        ck_assert_int_eq(rig_seal_all(&rig), 0);
    }
    ck_assert(schema_find(quiet_schema(rig.store), "liked", 5, &target));
    unsigned slot = schema_pairs(quiet_schema(rig.store), target.column)->slot;
    got.n = 0;
    begin_dump(&rig, &dump, &answer);
    ck_assert_int_eq(take_piece(&rig, &dump, &answer), 0);
    ck_assert_uint_gt(got.n, 0);
    ck_assert(!dump.is_end);
    ck_assert_int_eq(edit(rig.store, "drop column m liked liked"), 0);
    take_slot(&rig, slot, ids, MANY);
    if (_i == 1) {
        ck_assert_int_eq(rig_seal_all(&rig), 0);
    }
    ck_assert_int_eq(take_piece(&rig, &dump, &answer), ERR_OTHER_COLUMNS);
    store_end_dump(rig.store, &dump);
    answer_fini(&answer);
    if (_i == 2) {
        finish(&rig);
    } else {
        ck_assert_int_eq(rig_close(&rig), 0);
        rig_fini(&rig);
    }
}
END_TEST

START_TEST(test_memory_runs_out)
{
    struct fault_alloc fault;
    struct rig rig;
    uint64_t last = 0;
    size_t n = 0;
    int err;
    fault_alloc_init(&fault);
    rig_init(&rig, WAL_SYNC_NONE, ID_RANDOM, 3);
    rig.config.data = NULL;
    rig.config.dump_alloc = &fault.alloc;
    ck_assert_int_eq(store_create(&rig.config, &rig.store), 0);
    members_add_counter(&rig);
    wanted.n = 0;
    for (uint64_t id = 1; id < 9; id++) {
        give(&rig, id, "liked", &last, 2, 3, 1);
    }
    do {
        fault.calls = fault.failures = 0;
        fault.fail_from = fault.fail_to = ++n;
        err = dump_all(&rig);
        ck_assert(err == (fault.failures > 0 ? ERR_NO_MEMORY : 0));
    } while (err != 0);
    ck_assert_uint_gt(n, 6);
    expect_same();
    finish(&rig);
    ck_assert_uint_eq(fault.live_bytes, 0);
}
END_TEST

enum { STAYING = 60, COMING = 60, EACH = 4, ROUNDS = 6 };

struct beside {
    struct rig *rig;
    _Atomic bool is_over;
};

/* Members that come and go, of records whose others stay, and of records that
 * come and go with them. */
static void *
change_all(void *context)
{
    struct beside *beside = context;
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (uint64_t id = 1; id <= STAYING + COMING; id++) {
            members_change(beside->rig, id, "liked", 1000, round % 2);
        }
        for (uint64_t id = STAYING + 1; id <= STAYING + COMING; id++) {
            members_set_named(beside->rig, id, "plain", round % 2);
        }
    }
    atomic_store(&beside->is_over, true);
    return NULL;
}

/* Each that is there all the time is shown once, in order. */
START_TEST(test_threads)
{
    struct rig rig;
    pthread_t thread;
    begin(&rig, _i == 0 ? 0 : 7);
    for (uint64_t id = 1; id <= STAYING; id++) {
        for (uint64_t member = 0; member < EACH; member++) {
            members_change(&rig, id, "liked", member, 1);
        }
    }
    struct beside beside = {.rig = &rig};
    ck_assert_int_eq(pthread_create(&thread, NULL, change_all, &beside), 0);
    bool is_over;
    do {
        size_t n = 0;
        is_over = atomic_load(&beside.is_over);
        ck_assert_int_eq(dump_all(&rig), 0);
        for (size_t i = 0; i < got.n; i++) {
            const struct said *it = &got.said[i];
            ck_assert(i == 0 || it[-1].id < it->id ||
                (it->serial != 0 && it[-1].id == it->id &&
                    (it[-1].serial == 0 || it[-1].member < it->member)));
            n += it->serial != 0 && it->member < EACH;
        }
        ck_assert_uint_eq(n, STAYING * EACH);
    } while (!is_over);
    pthread_join(thread, NULL);
    finish(&rig);
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("dump_members");
    tcase_add_loop_test(
        tcase, test_all, 0, sizeof found_max / sizeof found_max[0]);
    tcase_add_test(tcase, test_loaded);
    tcase_add_test(tcase, test_given_up);
    tcase_add_loop_test(
        tcase, test_sealed, 0, sizeof found_max / sizeof found_max[0]);
    tcase_add_loop_test(tcase, test_sealed_in_part, 0, 2);
    tcase_add_loop_test(tcase, test_sealed_damage, 0, 2);
    tcase_add_loop_test(tcase, test_sealed_block, 0, 2);
    tcase_add_loop_test(tcase, test_sealed_numbers, 0, 3);
    tcase_add_test(tcase, test_dropped);
    tcase_add_loop_test(tcase, test_slot_of_another, 0, 3);
    tcase_add_test(tcase, test_memory_runs_out);
    tcase_add_loop_test(tcase, test_threads, 0, 2);
    return run_case("dump_members", tcase);
}
