/* SPDX-License-Identifier: BSD-3-Clause */
/* A world of copies: one leads, the others follow; any of them is stopped,
 * killed or cut from power, and another one leads. What was on a majority when
 * a client was told of it is never lost, and in the end all have the same log
 * and the same records. REPLICAS_SEED=N runs one world. */
#include "unit/replicas_help.h"

#include <stdio.h>
#include <stdlib.h>

enum { NODES = 3, NEED = 2, STEPS = 600, IDS = 24, NOBODY = NODES };

struct world {
    struct rig node[NODES];
    bool is_up[NODES];
    unsigned primary; /* NOBODY: there is none */
    uint64_t random;
    struct cell_key key;
    uint64_t next;      /* value of the next change */
    uint64_t told[IDS]; /* the last value that was acknowledged */
    uint64_t made[IDS]; /* the last one that may be there */
    uint64_t committed; /* what the primary said */
    uint32_t n_terms;   /* that were given out */
};

static uint64_t
below(struct world *it, uint64_t n)
{
    return random_below(&it->random, n);
}

static bool
is_anybody_ahead(struct world *it, unsigned who, uint64_t at)
{
    for (unsigned i = 0; i < NODES; i++) {
        if (i != who && it->is_up[i] &&
            position_of(&it->node[i]).written > at) {
            return true;
        }
    }
    return false;
}

static unsigned
n_up(const struct world *it)
{
    unsigned n = 0;
    for (unsigned i = 0; i < NODES; i++) {
        n += it->is_up[i];
    }
    return n;
}

/* The one with the longest log of a majority begins a term. */
static void
elect(struct world *it)
{
    unsigned who = (unsigned)below(it, NODES);
    uint64_t seq;
    char name[] = {'n', (char)('0' + who), '\0'};
    if (n_up(it) < NEED || !it->is_up[who] ||
        is_anybody_ahead(it, who, position_of(&it->node[who]).written)) {
        return;
    }
    ck_assert_int_eq(
        store_begin_term(it->node[who].store, name, 2, ++it->n_terms, &seq),
        0);
    it->n_terms = (uint32_t)seq_term(seq); /* no other one gets it */
    it->primary = who;
    it->committed = 0;
}

/* The batch that NEED nodes have on the disk. */
static void
commit(struct world *it)
{
    struct store_position mine = position_of(&it->node[it->primary]);
    uint64_t most = 0, seq;
    for (unsigned i = 0; i < NODES; i++) {
        if (i != it->primary && it->is_up[i]) {
            struct store_position at = position_of(&it->node[i]);
            uint64_t both;
            (void)history_fit(
                &mine.history, mine.written, &at.history, at.written, &both);
            seq = at.synced < both ? at.synced : both;
            most = seq > most ? seq : most;
        }
    }
    most = most < mine.synced ? most : mine.synced;
    if (seq_term(most) == seq_term(mine.written) && most > it->committed) {
        it->committed = most;
        for (unsigned i = 0; i < NODES; i++) {
            if (it->is_up[i]) {
                store_set_committed(
                    it->node[i].store, i == it->primary ? most : 0);
            }
        }
    }
}

static void
stop(struct world *it, unsigned who, bool is_clean)
{
    struct rig *rig = &it->node[who];
    bool is_cut = below(it, 2) == 0;
    if (!is_clean) {
        fake_disk_die(rig->fake, 1 + (unsigned)below(it, 4));
    }
    (void)rig_close(rig);
    if (!is_clean && is_cut) {
        fake_disk_crash(rig->fake);
    } else if (!is_clean) {
        fake_disk_revive(rig->fake);
    }
    it->is_up[who] = false;
    it->primary = it->primary == who ? NOBODY : it->primary;
}

static void
start(struct world *it, unsigned who)
{
    copy_open(&it->node[who]);
    it->is_up[who] = true;
}

/* One follows the primary for a while; first it is cut, if it has to be. */
static void
follow(struct world *it, unsigned who)
{
    struct rig *from = &it->node[it->primary], *to = &it->node[who];
    uint64_t end = copy_written(from);
    struct store_position here = position_of(from), there = position_of(to);
    uint64_t seq;
    enum history_fit fit = history_fit(
        &here.history, here.written, &there.history, there.written, &seq);
    ck_assert_int_ne(fit, HISTORY_APART);
    if (fit == HISTORY_CUT) {
        stop(it, who, true);
        order_cut(to, seq);
        if (below(it, 2) == 0) { /* it dies meanwhile */
            fake_disk_die(to->fake, 1 + (unsigned)below(it, 20));
            if (rig_open(to) == 0) {
                (void)rig_close(to);
            }
            fake_disk_crash(to->fake);
        }
        start(it, who);
        ck_assert(!read_replica(to).is_salvaged);
        ck_assert_uint_eq(position_of(to).written, seq);
        return;
    }
    uint64_t at = there.written;
    bool is_near = seq_term(at) == seq_term(end);
    feed_to(
        from, to, is_near ? at + (end - at) * (1 + below(it, 3)) / 3 : end);
    while (position_of(to).synced < position_of(to).written) {
        sched_yield();
    }
}

/* A client changes a record, and waits for the others, or not. */
static void
change(struct world *it)
{
    struct rig *rig = &it->node[it->primary];
    struct change change;
    uint64_t seq = 0;
    for (unsigned i = 0; i < 4; i++) {
        it->key.id = below(it, IDS);
        change = change_of(&it->key, CHANGE_SET, ++it->next);
        seq = do_changes(rig->store, &change, 1);
        ck_assert_int_eq(change.err, 0);
        it->made[it->key.id] = it->next;
    }
    (void)copy_written(rig);
    for (unsigned i = 0; i < NODES && below(it, 3) != 0; i++) {
        if (i != it->primary && it->is_up[i] && it->primary != NOBODY) {
            follow(it, i);
        }
    }
    commit(it);
    if (store_outcome(rig->store, seq) == STORE_COMMITTED) {
        for (unsigned id = 0; id < IDS; id++) {
            it->key.id = id;
            (void)get_cell(rig->store, &it->key, &it->told[id]);
        }
    }
}

static void
step(struct world *it)
{
    unsigned who = (unsigned)below(it, NODES);
    if (it->primary == NOBODY) {
        elect(it);
    }
    if (!it->is_up[who]) {
        start(it, who);
    } else if (below(it, 8) == 0) {
        stop(it, who, below(it, 3) == 0);
    } else if (who == it->primary && below(it, 12) == 0) {
        ck_assert_int_eq(store_set_replica(it->node[who].store), 0);
        it->primary = NOBODY;
    } else if (it->primary != NOBODY && who != it->primary) {
        follow(it, who);
    } else if (it->primary != NOBODY) {
        change(it);
    }
}

/* All are up and follow one, with all that was told. */
static void
heal(struct world *it)
{
    for (unsigned i = 0; i < NODES; i++) {
        if (!it->is_up[i]) {
            start(it, i);
        }
    }
    while (it->primary == NOBODY) {
        elect(it);
    }
    struct rig *primary = &it->node[it->primary];
    for (unsigned i = 0; i < NODES; i++) {
        while (i != it->primary &&
            position_of(&it->node[i]).written != copy_written(primary)) {
            follow(it, i);
        }
    }
    for (unsigned i = 0; i < NODES; i++) {
        if (i != it->primary) {
            ck_assert_int_eq(store_drain_batches(it->node[i].store), 0);
            expect_same(primary, &it->node[i]);
        }
    }
    for (unsigned id = 0; id < IDS; id++) {
        uint64_t value = 0;
        it->key.id = id;
        (void)get_cell(primary->store, &it->key, &value);
        ck_assert_uint_ge(value, it->told[id]);
        ck_assert_uint_le(value, it->made[id]);
    }
}

static void
run_world(uint64_t seed)
{
    struct world *it = calloc(1, sizeof *it);
    ck_assert_ptr_nonnull(it);
    it->random = seed;
    it->primary = NOBODY;
    for (unsigned i = 0; i < NODES; i++) {
        copy_init(&it->node[i], WAL_SYNC_ALWAYS, 100 * seed + i);
        start(it, i);
    }
    while (it->primary == NOBODY) {
        elect(it);
    }
    struct rig *primary = &it->node[it->primary];
    ck_assert_int_eq(edit(primary->store, "add counter w"), 0);
    ck_assert_int_eq(edit(primary->store, "add column w wid primarykey"), 0);
    ck_assert_int_eq(edit(primary->store, "add column w wx max=64"), 0);
    it->key = cell_of(quiet_schema(primary->store), 0, "wx");
    for (unsigned i = 0; i < NODES; i++) {
        if (i != it->primary) {
            feed(primary, &it->node[i]);
        }
    }
    for (unsigned i = 0; i < long_part(STEPS); i++) {
        step(it);
    }
    heal(it);
    ck_assert_uint_gt(it->n_terms, 1);
    for (unsigned i = 0; i < NODES; i++) {
        ck_assert_int_eq(rig_close(&it->node[i]), 0);
        rig_fini(&it->node[i]);
    }
    free(it);
}

START_TEST(test_worlds)
{
    const char *seed = getenv("REPLICAS_SEED");
    run_world(seed != NULL ? strtoull(seed, NULL, 10) : (uint64_t)_i + 1);
}
END_TEST

int
main(void)
{
    enum { WORLDS = 8 };
    TCase *tcase = tcase_create("replicas_random");
    tcase_add_loop_test(tcase, test_worlds, 0, WORLDS);
    return run_case("replicas_random", tcase);
}
