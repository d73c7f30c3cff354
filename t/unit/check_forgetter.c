/* SPDX-License-Identifier: BSD-3-Clause */
/* store/forgetter: which marks go and which stay, when passes begin, and what
 * comes in between, or memory that runs out. */
#include "store/forgetter.h"

#include "engine/cover.h"
#include "engine/members.h"
#include "engine/sorted.h"
#include "lib/fault_alloc.h"
#include "unit/engine_help.h"
#include "unit/kinds_help.h"

#include <pthread.h>

enum {
    SHARDS = 4,
    TABLE_RECORDS = 64,
    IDS = 2000, /* many tables */
    FORGET = 100,
    NOW = 5000,
    MS = 7 /* at the first step */
};

/* When pass n may begin, from 1 on. */
#define PASS_MS(n) (MS + (uint64_t)(n)*FORGETTER_PAUSE_MS)

#define MARK_OF_DOT                                                           \
    "add column user dotseen marks=1.dot unread=undot unmarked=none "         \
    "forget=100"

struct rig {
    struct engine_cover cover; /* first: the seam */
    struct engine_sink sink;
    _Atomic unsigned n_told;    /* records, to the sink */
    _Atomic uint64_t told_mark; /* value of the last cell that it was told */
    bool is_covered;            /* board's records: nothing of them is here */
    struct qsbr qsbr;
    struct engine *engine;
    struct schema *own;
    _Atomic(const struct schema *) schema;
    struct forgetter forgetter;
    unsigned board;
};

static struct rig rig;

static uint64_t
version_of(const struct engine_cover *cover, unsigned slot, unsigned shard,
    uint64_t row)
{
    (void)cover, (void)shard, (void)row;
    return rig.is_covered && slot == rig.board ? 1 : 0;
}

static bool
is_any_covered(const struct engine_cover *cover, unsigned slot, unsigned shard,
    uint64_t first_row, uint64_t last_row)
{
    (void)first_row, (void)last_row;
    return version_of(cover, slot, shard, 0) != 0;
}

/* Pairs are never covered. */
static bool
last_row(const struct engine_cover *cover, unsigned slot, unsigned shard,
    uint64_t *row)
{
    (void)cover, (void)slot, (void)shard, (void)row;
    return false;
}

static uint64_t
note_write(
    struct engine_sink *sink, const struct engine_write *write, size_t n)
{
    (void)sink;
    rig.n_told += (unsigned)n;
    if (n > 0) {
        rig.told_mark = write[n - 1].value[write[n - 1].n - 1];
    }
    return 0;
}

static void
rig_init(void)
{
    const struct engine_config config = {.shards = SHARDS,
        .seed = 1,
        .hot_bytes = ROOMY_BYTES,
        .table_records_max = TABLE_RECORDS,
        .qsbr = &rig.qsbr};
    static const char *const lines[] = {"add counter board",
        "add column board bid primarykey", "add column board dot max=40",
        "add counter user", "add column user uid primarykey",
        "add column user at default=5",
        "add column user seen marks=at unread=unseen unmarked=none forget=100",
        "add column user kept marks=at unread=unkept unmarked=none",
        MARK_OF_DOT};
    rig = (struct rig){.cover = {.version_fn = version_of,
                           .any_fn = is_any_covered,
                           .last_row_fn = last_row},
        .sink = {.write_fn = note_write},
        .own = schema_create()};
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        apply(&rig.own, lines[i]);
    }
    atomic_init(&rig.schema, rig.own);
    qsbr_init(&rig.qsbr);
    rig.engine = engine_of(&config);
    engine_set_cover(rig.engine, &rig.cover);
    rig.board = counter_of(rig.own, "board")->slot;
    ck_assert_int_eq(
        engine_define(rig.engine, counter_of(rig.own, "board")), 0);
    ck_assert_int_eq(
        engine_define(rig.engine, counter_of(rig.own, "user")), 0);
    engine_set_sink(rig.engine, &rig.sink);
    forgetter_init(&rig.forgetter,
        &(struct forgetter_config){.engine = rig.engine,
            .qsbr = &rig.qsbr,
            .schema = &rig.schema,
            .n_shards = SHARDS});
    ck_assert(!forgetter_step(&rig.forgetter, MS));
}

static void
rig_fini(void)
{
    forgetter_fini(&rig.forgetter);
    finish_engine(&rig.engine);
    schema_destroy(&rig.own);
    qsbr_fini(&rig.qsbr);
}

static void
set(uint64_t id, const char *name, uint64_t value)
{
    struct schema_target target = found(rig.own, name);
    struct change change = {.id = id,
        .op = CHANGE_SET,
        .counter = target.counter->slot,
        .n_columns = 1,
        .column = {target.column->slot},
        .serial = {target.column->serial},
        .operand = {value}};
    (void)engine_change(rig.engine, &change, 1);
    ck_assert_int_eq(change.err, 0);
}

static uint64_t
value_of(uint64_t id, const char *name)
{
    struct schema_target target = found(rig.own, name);
    const struct cell_key key = {
        id, target.column->serial, target.counter->slot, target.column->slot};
    struct engine_found where;
    uint64_t value;
    uint8_t state;
    engine_look(rig.engine, &key, 1, &value, &state, &where);
    return value;
}

/* The steps of a whole pass. */
static unsigned
pass(uint64_t now_ms)
{
    unsigned n = 0;
    while (forgetter_step(&rig.forgetter, now_ms)) {
        n++;
    }
    return n;
}

/* Of each id a mark that is as far behind as the id says: 0..IDS. */
static void
fill(void)
{
    set(1, "dot", NOW);
    for (uint64_t id = 0; id < IDS; id++) {
        set(id, "at", NOW + id);
        set(id, "seen", NOW);
        set(id, "kept", NOW);
        set(id, "dotseen", NOW - id);
    }
    rig.n_told = 0;
}

/* What stays is there, and nothing else; may_stay: some of that is. */
static void
expect_forgotten(bool may_stay)
{
    for (uint64_t id = 0; id < IDS; id++) {
        uint64_t seen = value_of(id, "seen"), dot = value_of(id, "dotseen");
        bool goes = id > FORGET;
        CHECK(seen == (goes ? 0 : NOW) || (may_stay && seen == NOW));
        CHECK(dot == (goes ? 0 : NOW - id) || (may_stay && dot == NOW - id));
        CHECK(value_of(id, "kept") == NOW);
        CHECK(value_of(id, "at") == NOW + id);
    }
}

START_TEST(test_what_goes)
{
    enum { GONE = IDS - (FORGET + 1) };
    rig_init();
    fill();
    ck_assert_uint_gt(pass(PASS_MS(1)), IDS / TABLE_RECORDS);
    expect_forgotten(false);
    ck_assert_uint_eq(rig.forgetter.n_forgotten, 2 * GONE);
    ck_assert_uint_eq(rig.n_told, 2 * GONE);
    ck_assert_uint_eq(rig.told_mark, 0);
    ck_assert_uint_gt(pass(PASS_MS(2)), 0);
    ck_assert_uint_eq(rig.n_told, 2 * GONE);
    rig_fini();
}
END_TEST

/* Where the source has no value of its own its default is what counts. */
START_TEST(test_defaults)
{
    rig_init();
    set(1, "seen", 4);
    set(2, "dotseen", 4);
    ck_assert_uint_eq(pass(PASS_MS(1)), 2);
    ck_assert_uint_eq(rig.forgetter.n_forgotten, 0);
    set(1, "dot", 4 + FORGET + 1);
    set(1, "at", 4 + FORGET + 1);
    ck_assert_uint_eq(pass(PASS_MS(2)), 2);
    ck_assert_uint_eq(rig.forgetter.n_forgotten, 2);
    rig_fini();
}
END_TEST

START_TEST(test_pauses)
{
    rig_init();
    fill();
    ck_assert_uint_eq(pass(PASS_MS(1) - 1), 0);
    ck_assert_uint_eq(rig.n_told, 0);
    ck_assert_uint_gt(pass(PASS_MS(1)), 0);
    ck_assert_uint_gt(rig.n_told, 0);
    rig_fini();
}
END_TEST

/* The source of a fixed id is in a segment: what it is, is not known here. */
START_TEST(test_source_that_is_cold)
{
    rig_init();
    set(2, "dotseen", 1);
    rig.is_covered = true;
    ck_assert_uint_eq(pass(PASS_MS(1)), 1);
    ck_assert_uint_eq(value_of(2, "dotseen"), 1);
    rig_fini();
}
END_TEST

/* ---- members of the own id ---- */

static void
add_inboxes(void)
{
    static const char *const lines[] = {"add column user inbox members=exact",
        "add column user inseen marks=inbox unread=unin unmarked=none "
        "forget=100"};
    const struct schema_counter *user;
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        apply(&rig.own, lines[i]);
    }
    atomic_store(&rig.schema, rig.own);
    user = counter_of(rig.own, "user");
    ck_assert_int_eq(engine_define(rig.engine, user), 0);
    ck_assert_int_eq(
        engine_define(
            rig.engine, schema_pairs(rig.own, found(rig.own, "inbox").column)),
        0);
}

static void
change_member(uint64_t id, enum change_op op, uint64_t member)
{
    struct schema_target inbox = found(rig.own, "inbox");
    struct change change = {.id = id,
        .op = op,
        .counter = inbox.counter->slot,
        .n_columns = 1,
        .column = {inbox.column->slot},
        .serial = {inbox.column->serial},
        .operand = {1},
        .member = {.counter = inbox.column->pairs,
            .bits = inbox.column->member_bits,
            .serial = schema_pairs_serial(inbox.column),
            .member = member}};
    (void)engine_change(rig.engine, &change, 1);
    ck_assert_int_eq(change.err, 0);
}

static int
walk_here(const struct sorted_walk *walk, const struct sorted_key *key,
    uint64_t from, size_t n, uint64_t *member, size_t *n_found)
{
    uint64_t value[512];
    (void)walk;
    ck_assert_uint_le(n, COUNT_OF(value));
    *n_found = engine_members(rig.engine, key->pairs, key->id, key->number,
        key->bits, from, n, member, value);
    return 0;
}

/* As a poll of what is unread does. */
static void
make_array(uint64_t id)
{
    const struct sorted_walk walk = {.next_fn = walk_here};
    const struct schema_column *inbox = found(rig.own, "inbox").column;
    const struct sorted_key key = {.id = id,
        .number = value_of(id, "inbox"),
        .serial = schema_pairs_serial(inbox),
        .pairs = inbox->pairs,
        .bits = inbox->member_bits};
    struct sorted_pin pin;
    ck_assert_uint_ne(key.number, 0);
    ck_assert_int_eq(engine_make_sorted(rig.engine, &key, &walk, &pin), 0);
    engine_unpin(rig.engine, &pin);
}

/* Of each id a mark that is as far below the largest member as the id says: it
 * goes where that is too far, once there is an array, and the member still. */
START_TEST(test_members_of_the_own_id)
{
    enum { INBOXES = 3 * FORGET };
    rig_init();
    add_inboxes();
    for (uint64_t id = 1; id < INBOXES; id++) {
        change_member(id, CHANGE_MEMBER_SET, NOW);
        change_member(id, CHANGE_MEMBER_SET, NOW + id);
        set(id, "inseen", NOW);
    }
    ck_assert_uint_gt(pass(PASS_MS(1)), 0);
    ck_assert_uint_eq(rig.forgetter.n_forgotten, 0);
    for (uint64_t id = 1; id < INBOXES; id++) {
        if (id % 3 != 0) {
            make_array(id);
        }
        if (id % 3 == 1) {
            change_member(id, CHANGE_MEMBER_DELETE, NOW + id);
        }
    }
    ck_assert_uint_gt(pass(PASS_MS(2)), 0);
    for (uint64_t id = 1; id < INBOXES; id++) {
        bool goes = id % 3 == 2 && id > FORGET;
        ck_assert_uint_eq(value_of(id, "inseen"), goes ? 0 : NOW);
    }
    rig_fini();
}
END_TEST

START_TEST(test_column_is_dropped)
{
    rig_init();
    fill();
    ck_assert(forgetter_step(&rig.forgetter, PASS_MS(1)));
    struct schema_counter user = *counter_of(rig.own, "user");
    unsigned n = rig.n_told;
    user.n_columns = 1; /* at alone */
    ck_assert_int_eq(engine_define(rig.engine, &user), 0);
    ck_assert_uint_gt(pass(PASS_MS(1)), 0);
    ck_assert_uint_eq(rig.n_told, n);
    rig_fini();
}
END_TEST

static void *
move_marks(void *arg)
{
    (void)arg;
    for (uint64_t id = 0; id < IDS; id++) {
        set(id, "dotseen", NOW);
    }
    return NULL;
}

/* What somebody has set since it was copied stays. */
START_TEST(test_marks_that_move)
{
    enum { ROUNDS = 20 };
    rig_init();
    set(1, "dot", NOW);
    for (unsigned round = 0; round < ROUNDS; round++) {
        pthread_t thread;
        for (uint64_t id = 0; id < IDS; id++) {
            set(id, "dotseen", 1);
        }
        ck_assert_int_eq(pthread_create(&thread, NULL, move_marks, NULL), 0);
        (void)pass(PASS_MS(round + 1));
        ck_assert_int_eq(pthread_join(thread, NULL), 0);
        for (uint64_t id = 0; id < IDS; id++) {
            CHECK(value_of(id, "dotseen") == NOW);
        }
    }
    rig_fini();
}
END_TEST

enum { MOVED = 300 };

static void *
move_inbox_marks(void *arg)
{
    for (uint64_t id = 1; id < MOVED; id++) {
        set(id, "inseen", NOW);
        change_member(id, CHANGE_MEMBER_SET, NOW + *(unsigned *)arg);
    }
    return NULL;
}

/* The same over members of the own id, which come meanwhile. */
START_TEST(test_marks_over_members_that_move)
{
    rig_init();
    add_inboxes();
    for (uint64_t id = 1; id < MOVED; id++) {
        change_member(id, CHANGE_MEMBER_SET, NOW);
        make_array(id);
    }
    for (unsigned round = 1; round < FORGET / 4; round++) {
        pthread_t thread;
        for (uint64_t id = 1; id < MOVED; id++) {
            set(id, "inseen", 1);
        }
        ck_assert_int_eq(
            pthread_create(&thread, NULL, move_inbox_marks, &round), 0);
        (void)pass(PASS_MS(round));
        ck_assert_int_eq(pthread_join(thread, NULL), 0);
        for (uint64_t id = 1; id < MOVED; id++) {
            CHECK(value_of(id, "inseen") == NOW);
        }
    }
    uint64_t n = rig.forgetter.n_forgotten;
    for (uint64_t id = 1; id < MOVED; id++) {
        set(id, "inseen", 1);
    }
    (void)pass(PASS_MS(FORGET));
    ck_assert_uint_eq(rig.forgetter.n_forgotten, n + MOVED - 1);
    rig_fini();
}
END_TEST

/* In a pass the n-th call for memory fails, and with for_ever all behind it:
 * false where it never came. What cannot be copied waits for another pass. */
static bool
forget_short(size_t n, bool for_ever)
{
    struct fault_alloc fault;
    fault_alloc_init(&fault);
    rig_init();
    rig.forgetter.rows.alloc = &fault.alloc;
    fill();
    fault.fail_from = fault.calls + n;
    fault.fail_to = for_ever ? SIZE_MAX : fault.fail_from;
    (void)pass(PASS_MS(1));
    bool has_failed = fault.failures > 0;
    fault.fail_from = fault.fail_to = 0;
    expect_forgotten(has_failed);
    (void)pass(PASS_MS(2));
    expect_forgotten(false);
    rig_fini();
    ck_assert_uint_eq(fault.live_bytes, 0);
    return has_failed;
}

START_TEST(test_no_memory)
{
    size_t n = 1;
    while (forget_short(n, _i == 1)) {
        n += 1 + n / 8;
    }
    ck_assert_uint_gt(n, 1);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_what_goes, test_defaults, test_pauses,
        test_source_that_is_cold, test_members_of_the_own_id,
        test_column_is_dropped, test_marks_that_move,
        test_marks_over_members_that_move};
    TCase *tcase = tcase_create("forgetter");
    for (size_t i = 0; i < COUNT_OF(tests); i++) {
        tcase_add_test(tcase, tests[i]);
    }
    tcase_add_loop_test(tcase, test_no_memory, 0, 2);
    return run_case("forgetter", tcase);
}
