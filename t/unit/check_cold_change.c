/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes that wait for room, while what covers their record comes and goes:
 * those of one record are made in their order, or not at all. The engine has
 * refused them before they come here. */
#include "tier/cold_call.h"

#include "engine/cover.h"
#include "lib/fake_clock.h"
#include "store/gardener.h"
#include "unit/engine_help.h"

#include <sched.h>
#include <semaphore.h>

enum {
    SLOT = 3,
    WIDE_SLOT,  /* of records that fill memory */
    LIKED_SLOT, /* of those that have members, and of their pairs */
    PAIRS_SLOT,
    MEMBER_BITS = 20,
    ID = 7,
    OTHER = 8,
    VERSION = 5,
    WAIT_MS = 1000 /* as cold_change.c has it */
};

struct world {
    struct engine_cover cover; /* first: the seam */
    unsigned *n_asked;         /* how often it has been asked about ID */
    unsigned n_covered;        /* so many times ID was covered, then not */
    struct cold cold;
    struct fake_clock clock; /* stands */
    struct schema_counter def, liked, pairs;
    unsigned n_answers;
    void (*asked_fn)(void); /* when it is asked; NULL: nothing happens */
};

/* There is one shard: a row is an id. */
static uint64_t
version_of(const struct engine_cover *cover, unsigned slot, unsigned shard,
    uint64_t row)
{
    const struct world *world = (const struct world *)cover;
    ck_assert(slot >= SLOT && slot <= PAIRS_SLOT && shard == 0);
    if (world->asked_fn != NULL) {
        world->asked_fn();
    }
    return slot == SLOT && row == ID && (*world->n_asked)++ < world->n_covered
        ? VERSION
        : 0;
}

static bool
is_any_covered(const struct engine_cover *cover, unsigned slot, unsigned shard,
    uint64_t first_row, uint64_t last_row)
{
    (void)cover, (void)slot, (void)shard, (void)first_row, (void)last_row;
    return true;
}

static bool
last_row_of(const struct engine_cover *cover, unsigned slot, unsigned shard,
    uint64_t *row)
{
    (void)cover, (void)slot, (void)shard, (void)row;
    return false;
}

/* Records with members, which are counted. */
static void
define_liked(struct world *world)
{
    world->liked = plain_counter(LIKED_SLOT, 2);
    world->pairs = plain_counter(PAIRS_SLOT, 1);
    struct schema_column *column = &world->liked.column[0];
    column->kind = SCHEMA_MEMBERS;
    column->max_bits = 64 - MEMBER_BITS;
    column->member_bits = MEMBER_BITS;
    column->counts = world->liked.column[1].serial;
    column->pairs = PAIRS_SLOT;
    world->pairs.members_of = column->serial;
    ck_assert_int_eq(engine_define(world->cold.engine, &world->liked), 0);
    ck_assert_int_eq(engine_define(world->cold.engine, &world->pairs), 0);
}

static void
begin_with(struct world *world, unsigned *n_asked, struct engine *engine)
{
    *n_asked = 0;
    *world = (struct world){.cover = {.version_fn = version_of,
                                .any_fn = is_any_covered,
                                .last_row_fn = last_row_of},
        .n_asked = n_asked,
        .cold = {.magic = COLD_MAGIC, .engine = engine},
        .def = plain_counter(SLOT, 1)};
    fake_clock_init(&world->clock);
    fake_clock_stand(&world->clock);
    world->cold.clock = &world->clock.clock;
    engine_set_cover(world->cold.engine, &world->cover);
    ck_assert_int_eq(engine_define(world->cold.engine, &world->def), 0);
    mutex_init(&world->cold.lock);
    cold__begin(&world->cold, true);
}

static void
begin(struct world *world, unsigned *n_asked)
{
    begin_with(world, n_asked, small_engine(1, 64));
}

static void
end(struct world *world)
{
    ck_assert_ptr_null(world->cold.waiting.first);
    mutex_fini(&world->cold.lock);
    finish_engine(&world->cold.engine);
}

static struct change
refused(const struct world *world, enum change_op op, uint64_t id,
    uint64_t operand)
{
    struct change change = change_of(&world->def, op, id, 1, operand);
    change.err = ERR_HOT_FULL;
    return change;
}

static void
note_answer(struct store_call *call)
{
    unsigned *n_answers = call->owner;
    (*n_answers)++;
}

static enum store_answer
ask(struct world *world, struct store_change *call, struct change *change,
    uint32_t n)
{
    *call = (struct store_change){
        .call = {.done_fn = note_answer, .owner = &world->n_answers},
        .n = n,
        .change = change};
    return cold_change(&world->cold, call);
}

/* The record has gone when the first change of it is made again, and nothing
 * covers it any more when the second one's turn comes: that waits all the same,
 * until the first one has been made. Another record's does not. */
START_TEST(test_order)
{
    struct world world;
    struct store_change call;
    unsigned n_asked;
    begin(&world, &n_asked);
    struct change change[] = {refused(&world, CHANGE_INCR, ID, 1),
        refused(&world, CHANGE_INCR, OTHER, 3),
        refused(&world, CHANGE_SET, ID, 5)};
    ck_assert_int_eq(
        ask(&world, &call, change, COUNT_OF(change)), STORE_LATER);
    world.n_covered = 1;
    cold__retry(&world.cold, true);
    ck_assert_uint_gt(n_asked, 1);
    ck_assert_uint_eq(world.n_answers, 1);
    for (unsigned i = 0; i < COUNT_OF(change); i++) {
        ck_assert_int_eq(change[i].err, 0);
    }
    ck_assert_uint_eq(change[0].value[0], 1);
    expect_value(world.cold.engine, &world.def, 0, ID, 5);
    expect_value(world.cold.engine, &world.def, 0, OTHER, 3);
    end(&world);
}
END_TEST

static int
set(struct world *world, uint64_t id, uint64_t value)
{
    return change_id(
        world->cold.engine, &world->def, CHANGE_SET, id, 1, value);
}

static void
begin_small(struct world *world, unsigned *n_asked)
{
    const struct engine_config config = {.shards = 1,
        .seed = 1,
        .hot_bytes = ENGINE_HOT_BYTES_MIN,
        .table_records_max = 64};
    begin_with(world, n_asked, engine_of(&config));
}

/* Uses the budget up; the record of OTHER is there, and there is no room for
 * that of the id returned. */
static uint64_t
fill(struct world *world)
{
    const struct schema_counter wide =
        plain_counter(WIDE_SLOT, SCHEMA_COLUMNS_MAX);
    uint64_t id = 0;
    ck_assert_int_eq(engine_define(world->cold.engine, &wide), 0);
    while (change_id(world->cold.engine, &wide, CHANGE_SET, id,
               SCHEMA_COLUMNS_MAX, UINT64_MAX) == 0) {
        id++;
    }
    for (id = OTHER; set(world, id, UINT64_MAX) == 0; id++) {
    }
    ck_assert_uint_gt(id, OTHER);
    return id;
}

static uint64_t
begin_full(struct world *world, unsigned *n_asked)
{
    begin_small(world, n_asked);
    uint64_t id = fill(world);
    ck_assert_int_eq(set(world, id, 1), ERR_HOT_FULL);
    return id;
}

/* Makes room for what waits. */
static void
clear(struct world *world)
{
    engine_undefine(world->cold.engine, WIDE_SLOT);
}

/* What comes behind a change that finds no room waits with it, though it needs
 * none itself: also where their record was cold when they came. */
START_TEST(test_wait_together)
{
    for (unsigned k = 0; k < 2; k++) {
        struct world world;
        struct store_change call;
        unsigned n_asked;
        uint64_t id = begin_full(&world, &n_asked);
        struct change change[] = {refused(&world, CHANGE_DELETE, id, 0),
            refused(&world, CHANGE_INCR, id, 1),
            refused(&world, CHANGE_SET, OTHER, 0),
            refused(&world, CHANGE_SET, id, 0),
            refused(&world, CHANGE_DELETE, id, 0)};
        for (unsigned i = 0; k == 1 && i < COUNT_OF(change); i++) {
            change[i].err = ERR_COLD;
        }
        ck_assert_int_eq(
            ask(&world, &call, change, COUNT_OF(change)), STORE_LATER);
        cold__retry(&world.cold, true);
        ck_assert_uint_eq(world.n_answers, 0);
        ck_assert_int_eq(change[0].err, ERR_NOT_FOUND);
        ck_assert_int_eq(change[1].err, ERR_HOT_FULL);
        ck_assert_int_eq(change[2].err, 0);
        ck_assert_int_eq(change[3].err, ERR_HOT_FULL);
        ck_assert_int_eq(change[4].err, ERR_HOT_FULL);
        clear(&world);
        cold__retry(&world.cold, true);
        ck_assert_uint_eq(world.n_answers, 1);
        ck_assert_int_eq(change[1].err, 0);
        ck_assert_uint_eq(change[1].value[0], 1);
        ck_assert_int_eq(change[3].err, 0);
        ck_assert_int_eq(change[4].err, ERR_NOT_FOUND);
        expect_value(world.cold.engine, &world.def, 0, id, 0);
        end(&world);
    }
}
END_TEST

static struct change
refused_member(const struct world *world, uint64_t id, enum change_op op)
{
    struct change change = change_of(&world->liked, op, id, 1, 1);
    change.member = (struct change_member){.counter = PAIRS_SLOT,
        .bits = MEMBER_BITS,
        .counts_column = world->liked.column[1].slot,
        .counts = true,
        .serial = world->pairs.column[0].serial,
        .counts_serial = world->liked.column[1].serial,
        .member = 5};
    change.err = ERR_HOT_FULL;
    return change;
}

/* The first id of which there is no room for a member. */
static uint64_t
first_refused(struct world *world)
{
    for (uint64_t id = 0;; id++) {
        struct change change = refused_member(world, id, CHANGE_MEMBER_ADD);
        engine_change(world->cold.engine, &change, 1);
        if (change.err != 0) {
            ck_assert_int_eq(change.err, ERR_HOT_FULL);
            return id;
        }
    }
}

/* So it is with members: what finds no room for all that it needs has done
 * nothing, and those behind it find what it has done. */
START_TEST(test_members_wait)
{
    struct world world;
    struct store_change call;
    unsigned n_asked;
    begin_small(&world, &n_asked);
    define_liked(&world);
    (void)fill(&world);
    uint64_t id = first_refused(&world);
    struct change change[] = {refused_member(&world, id, CHANGE_MEMBER_ADD),
        refused_member(&world, id, CHANGE_MEMBER_ADD),
        refused_member(&world, id, CHANGE_MEMBER_DELETE),
        refused_member(&world, id, CHANGE_MEMBER_DELETE),
        refused_member(&world, id, CHANGE_MEMBER_SET)};
    ck_assert_int_eq(
        ask(&world, &call, change, COUNT_OF(change)), STORE_LATER);
    cold__retry(&world.cold, true);
    ck_assert_uint_eq(world.n_answers, 0);
    for (unsigned i = 0; i < COUNT_OF(change); i++) {
        ck_assert_int_eq(change[i].err, ERR_HOT_FULL);
    }
    expect_value(world.cold.engine, &world.liked, 0, id, 0);
    expect_value(world.cold.engine, &world.liked, 1, id, 0);
    clear(&world);
    cold__retry(&world.cold, true);
    ck_assert_uint_eq(world.n_answers, 1);
    ck_assert_int_eq(change[0].err, 0);
    ck_assert_int_eq(change[1].err, ERR_NOT_STORED);
    ck_assert_int_eq(change[2].err, 0);
    ck_assert_int_eq(change[3].err, ERR_NOT_FOUND);
    ck_assert_int_eq(change[4].err, 0);
    expect_value(world.cold.engine, &world.liked, 1, id, 1);
    end(&world);
}
END_TEST

/* ---- who waits longest ---- */

enum { WAITERS = 3 };

struct waiter {
    struct store_change call;
    struct change change[2];
    unsigned number; /* of its answer; 0: none so far */
};

static struct {
    struct world *world;
    struct waiter waiter[WAITERS];
    unsigned n_answers;
} queue;

static void
note_turn(struct store_call *call)
{
    struct waiter *waiter = (struct waiter *)call;
    waiter->number = ++queue.n_answers;
}

/* Waits with a change of that record, and with a second one of the same. */
static void
come(unsigned number, uint64_t id)
{
    struct waiter *waiter = &queue.waiter[number];
    waiter->change[0] = refused(queue.world, CHANGE_INCR, id, 1);
    waiter->change[1] = refused(queue.world, CHANGE_SET, id, number + 2);
    waiter->call = (struct store_change){
        .call = {.done_fn = note_turn}, .n = 2, .change = waiter->change};
    ck_assert_int_eq(
        cold_change(&queue.world->cold, &waiter->call), STORE_LATER);
}

static void
last_one_comes(void)
{
    queue.world->asked_fn = NULL;
    come(WAITERS - 1, OTHER);
}

/* They are served in the order in which they came. */
START_TEST(test_first_come)
{
    struct world world;
    unsigned n_asked;
    begin(&world, &n_asked);
    memset(&queue, 0, sizeof queue);
    queue.world = &world;
    for (unsigned i = 0; i < WAITERS; i++) {
        come(i, OTHER);
    }
    cold__retry(&world.cold, true);
    for (unsigned i = 0; i < WAITERS; i++) {
        ck_assert_uint_eq(queue.waiter[i].number, i + 1);
    }
    expect_value(world.cold.engine, &world.def, 0, OTHER, WAITERS + 1);
    end(&world);
}
END_TEST

/* What is refused again waits before those that came meanwhile. */
START_TEST(test_refused_again)
{
    struct world world;
    unsigned n_asked;
    uint64_t id = begin_full(&world, &n_asked);
    memset(&queue, 0, sizeof queue);
    queue.world = &world;
    come(0, id);
    come(1, OTHER);
    world.asked_fn = last_one_comes;
    cold__retry(&world.cold, true);
    ck_assert_uint_eq(queue.waiter[0].number, 0);
    ck_assert_uint_eq(queue.waiter[1].number, 1);
    ck_assert_uint_eq(queue.waiter[2].number, 0);
    clear(&world);
    cold__retry(&world.cold, true);
    ck_assert_uint_eq(queue.waiter[0].number, 2);
    ck_assert_uint_eq(queue.waiter[2].number, 3);
    expect_value(world.cold.engine, &world.def, 0, OTHER, 4);
    end(&world);
}
END_TEST

/* Nobody waits where there will be no room. */
START_TEST(test_no_room)
{
    struct world world;
    struct store_change call;
    unsigned n_asked;
    begin(&world, &n_asked);
    cold__begin(&world.cold, false);
    struct change change = refused(&world, CHANGE_SET, ID, 1);
    ck_assert_int_eq(ask(&world, &call, &change, 1), STORE_DONE);
    ck_assert_int_eq(change.err, ERR_HOT_FULL);
    ck_assert_uint_eq(world.n_answers, 0);
    end(&world);
}
END_TEST

static void
post_answer(struct store_call *call)
{
    ck_assert_int_eq(sem_post(call->owner), 0);
}

/* A wait ends though the sealer does not come: it may be waiting for the disk.
 * Then that change is not made any more. */
START_TEST(test_time_is_over)
{
    struct world world;
    struct gardener gardener;
    unsigned n_asked;
    sem_t come;
    begin(&world, &n_asked);
    struct change change = refused(&world, CHANGE_SET, ID, 1);
    struct store_change call = {
        .call = {.done_fn = post_answer, .owner = &come},
        .n = 1,
        .change = &change};
    struct schema *schema = schema_create();
    _Atomic(const struct schema *) published = schema;
    struct qsbr qsbr;
    struct forgetter_config forgetter = {.engine = world.cold.engine,
        .qsbr = &qsbr,
        .schema = &published,
        .n_shards = 1};
    qsbr_init(&qsbr);
    ck_assert_int_eq(sem_init(&come, 0, 0), 0);
    ck_assert_int_eq(gardener_start(&gardener, &forgetter, NULL, NULL,
                         &world.cold, world.cold.clock, false),
        0);
    ck_assert_int_eq(cold_change(&world.cold, &call), STORE_LATER);
    while (sem_trywait(&come) != 0) {
        fake_clock_pass(&world.clock, WAIT_MS);
        sched_yield();
    }
    gardener_stop(&gardener);
    qsbr_fini(&qsbr);
    schema_destroy(&schema);
    ck_assert_int_eq(sem_destroy(&come), 0);
    ck_assert_int_eq(change.err, ERR_HOT_FULL);
    cold__retry(&world.cold, true);
    expect_value(world.cold.engine, &world.def, 0, ID, 0);
    end(&world);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_order, test_wait_together,
        test_members_wait, test_first_come, test_refused_again, test_no_room,
        test_time_is_over};
    return run_tests("cold change", tests, COUNT_OF(tests));
}
