/* SPDX-License-Identifier: BSD-3-Clause */
/* store/sorter: what a stop does with the walk under way and with the calls
 * that wait behind it; members whose column goes while they are walked
 * through. */
#include "base/err.h"
#include "call/call.h"
#include "store/sorter.h"
#include "tier/cold_members.h"
#include "unit/member_help.h"

#include <limits.h>
#include <sched.h>

enum { CALLS = 3, MEMBERS = 1500 /* more than two pieces of a walk */ };

struct world {
    struct rig rig;
    struct sorter sorter;
    struct segment_map segment_map; /* nothing is covered */
    struct sorted_walk own;         /* of the sorter, behind next_in_stop */
    struct store_pin pin[CALLS];
    struct store_members members[CALLS];
    unsigned stop_at; /* the piece that waits until the sorter is stopping */
    unsigned drop_at; /* the one before which pairs go */
    _Atomic unsigned n_pieces, n_answered;
};

static struct world *world; /* the one there is */

/* The slot of the pairs is another counter's. */
static void
drop_pairs(struct world *it)
{
    struct schema_counter other = it->rig.pairs;
    engine_undefine(it->rig.engine, PAIRS);
    other.serial += 1000;
    other.column[0].serial += 1000;
    ck_assert_int_eq(engine_define(it->rig.engine, &other), 0);
}

static int
next_in_stop(const struct sorted_walk *walk, const struct sorted_key *key,
    uint64_t from, size_t n, uint64_t *member, size_t *n_found)
{
    unsigned piece = atomic_fetch_add(&world->n_pieces, 1);
    if (piece == world->drop_at) {
        drop_pairs(world);
    }
    if (piece == world->stop_at) {
        while (!atomic_load(&world->sorter.is_stopping)) {
            sched_yield();
        }
    }
    return world->own.next_fn(walk, key, from, n, member, n_found);
}

static void
count_answer(struct store_call *call)
{
    (void)call;
    atomic_fetch_add(&world->n_answered, 1);
}

/* Each call asks for another record. */
static void
begin(struct world *it, unsigned stop_at, unsigned drop_at, bool is_cold)
{
    memset(it, 0, sizeof *it);
    world = it;
    it->stop_at = stop_at;
    it->drop_at = drop_at;
    rig_init(&it->rig, 2, 33, 1);
    engine_set_sink(it->rig.engine, NULL);
    for (uint64_t id = 0; id < CALLS; id++) {
        for (uint64_t m = 1; m <= MEMBERS; m++) {
            ck_assert_int_eq(
                change_member(&it->rig, CHANGE_MEMBER_SET, id, m, 1), 0);
        }
    }
    segment_map__init(
        &it->segment_map, it->rig.engine, it->rig.shards, NULL, NULL);
    ck_assert_int_eq(sorter_start(&it->sorter, it->rig.engine,
                         is_cold ? &it->segment_map : NULL),
        0);
    it->own = it->sorter.walk;
    it->sorter.walk.next_fn = next_in_stop; /* no call has come yet */
}

static enum store_answer
ask(struct world *it, unsigned i)
{
    it->members[i].key = (struct sorted_key){.id = i,
        .number = number_of(&it->rig, i),
        .serial = it->rig.pairs.column[0].serial,
        .pairs = PAIRS,
        .bits = (uint8_t)it->rig.bits};
    it->pin[i] = (struct store_pin){
        .call.done_fn = count_answer, .n = 1, .members = &it->members[i]};
    return sorter_pin(&it->sorter, &it->pin[i]);
}

static void
finish(struct world *it)
{
    for (unsigned i = 0; i < CALLS; i++) {
        engine_unpin(it->rig.engine, &it->members[i].pin);
    }
    sorter_fini(&it->sorter);
    segment_map__fini(&it->segment_map);
    rig_fini(&it->rig);
}

/* The walk ends before its next piece, no other one begins, and each call is
 * answered once. */
START_TEST(test_stop)
{
    static struct world it;
    begin(&it, (unsigned)_i, UINT_MAX, false);
    for (unsigned i = 0; i < CALLS; i++) {
        ck_assert_int_eq(ask(&it, i), STORE_LATER);
    }
    while (atomic_load(&it.n_pieces) <= it.stop_at) {
        sched_yield();
    }
    sorter_stop(&it.sorter);
    ck_assert_uint_eq(atomic_load(&it.n_answered), CALLS);
    ck_assert_uint_eq(atomic_load(&it.n_pieces), it.stop_at + 1);
    for (unsigned i = 0; i < CALLS; i++) {
        ck_assert_int_eq(it.members[i].err, ERR_CLOSED);
        ck_assert_ptr_null(it.members[i].pin.array);
    }
    ck_assert_int_eq(ask(&it, 0), STORE_DONE);
    ck_assert_int_eq(it.members[0].err, ERR_CLOSED);
    finish(&it);
}
END_TEST

/* What is there already is had behind a stop, too. */
START_TEST(test_there)
{
    static struct world it;
    begin(&it, UINT_MAX, UINT_MAX, false);
    ck_assert_int_eq(ask(&it, 1), STORE_LATER);
    while (atomic_load(&it.n_answered) == 0) {
        sched_yield();
    }
    ck_assert_int_eq(it.members[1].err, 0);
    ck_assert_uint_eq(it.members[1].pin.n, MEMBERS);
    sorter_stop(&it.sorter);
    engine_unpin(it.rig.engine, &it.members[1].pin);
    ck_assert_int_eq(ask(&it, 1), STORE_DONE);
    ck_assert_int_eq(it.members[1].err, 0);
    ck_assert_uint_eq(it.members[1].pin.n, MEMBERS);
    finish(&it);
}
END_TEST

/* Before one of its pieces: ERR_GONE, and no members that there
 * were once. With a cold tier (_i is 3 or more), cold_members sees it. */
START_TEST(test_pairs_go)
{
    static struct world it;
    uint64_t member[1], value[1], next;
    size_t n;
    begin(&it, UINT_MAX, (unsigned)_i % 3, _i >= 3);
    ck_assert_int_eq(ask(&it, 0), STORE_LATER);
    while (atomic_load(&it.n_answered) == 0) {
        sched_yield();
    }
    ck_assert_int_eq(it.members[0].err, ERR_GONE);
    ck_assert_ptr_null(it.members[0].pin.array);
    if (_i >= 3) {
        ck_assert_uint_eq(atomic_load(&it.n_pieces), it.drop_at + 1);
    }
    const struct cold_record record = {.id = 1,
        .number = it.members[0].key.number,
        .serial = it.members[0].key.serial,
        .pairs = PAIRS,
        .bits = it.rig.bits};
    ck_assert_int_eq(
        cold_members(&it.segment_map, &record, 0, 1, member, value, &n, &next),
        ERR_GONE);
    sorter_stop(&it.sorter);
    finish(&it);
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("sorter");
    tcase_add_loop_test(tcase, test_stop, 0, 3);
    tcase_add_test(tcase, test_there);
    tcase_add_loop_test(tcase, test_pairs_go, 0, 6);
    return run_case("sorter", tcase);
}
