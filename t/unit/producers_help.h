/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_PRODUCERS_HELP_H
#define UNIT_PRODUCERS_HELP_H

/* What the tests of durable/producers share: numbered changes in a store on a
 * fake disk. */

#include "unit/durable_help.h"

#include "call/store_calls.h"

/* A change by one of that cell (ax), and of the next column (ay), by a producer
 * and a number. */
static inline struct change
numbered_by(struct rig *rig, size_t i, enum change_op op, uint64_t operand,
    const struct store_producer *producer, uint64_t number)
{
    struct cell_key key =
        cell_of(quiet_schema(rig->store), rig->history.id[i], "ax");
    struct change change = change_of(&key, op, operand);
    change.producer = producer->serial;
    change.producer_slot = producer->slot;
    change.number = number;
    return change;
}

/* The same by a name, which is to be known. */
static inline struct change
numbered(struct rig *rig, size_t i, enum change_op op, uint64_t operand,
    const char *name, uint64_t number)
{
    struct store_producer producer;
    ck_assert_int_eq(
        store_producer(rig->store, name, strlen(name), &producer), 0);
    return numbered_by(rig, i, op, operand, &producer, number);
}

/* Does changes; returns what they are committed with. */
static inline uint64_t
send(struct rig *rig, struct change *change, uint32_t n)
{
    struct answer answer;
    struct qsbr_reader reader;
    struct store_change call = {.n = n, .change = change};
    answer_init(&answer);
    call.call = call_of(&answer);
    reader_begin(rig->store, &reader);
    enum store_answer given = store_change(rig->store, &call);
    reader_end(rig->store, &reader);
    if (given == STORE_LATER) {
        answer_wait(&answer);
    }
    answer_fini(&answer);
    return call.seq;
}

/* One change, committed. */
static inline struct change
done(struct rig *rig, size_t i, enum change_op op, uint64_t operand,
    const char *name, uint64_t number)
{
    struct change change = numbered(rig, i, op, operand, name, number);
    uint64_t seq = send(rig, &change, 1);
    if (change.err == 0) {
        ck_assert_uint_gt(seq, 0);
        ck_assert_int_eq(rig_commit(rig, seq), STORE_COMMITTED);
    }
    return change;
}

#define EXPECT_DONE(it, again, now)                                           \
    do {                                                                      \
        struct change done_ = (it);                                           \
        ck_assert_int_eq(done_.err, 0);                                       \
        ck_assert_int_eq(done_.is_repeat, again);                             \
        ck_assert_uint_eq(done_.value[0], now);                               \
    } while (0)

/* Opens it, with columns of all that may be and a narrow one. */
static inline void
declare(struct rig *rig)
{
    ck_assert_int_eq(rig_open(rig), 0);
    ck_assert_int_eq(edit(rig->store, "add counter a"), 0);
    ck_assert_int_eq(edit(rig->store, "add column a aid primarykey"), 0);
    ck_assert_int_eq(edit(rig->store, "add column a ax max=64"), 0);
    ck_assert_int_eq(edit(rig->store, "add column a ay max=64"), 0);
    ck_assert_int_eq(edit(rig->store, "add column a az max=4"), 0);
}

static inline void
begin(struct rig *rig, enum wal_sync sync, uint64_t seed)
{
    rig_init(rig, sync, ID_RANDOM, seed);
    declare(rig);
}

static inline void
end(struct rig *rig)
{
    store_verify(rig->store);
    ck_assert_int_eq(rig_close(rig), 0);
    rig_fini(rig);
}

/* The process ends, or power is cut, and it comes up again. */
static inline void
crash(struct rig *rig, bool is_power_cut)
{
    if (!fake_disk_is_dead(rig->fake)) {
        fake_disk_die(rig->fake, 1);
    }
    (void)rig_close(rig);
    if (is_power_cut) {
        fake_disk_crash(rig->fake);
    } else {
        fake_disk_revive(rig->fake);
    }
    ck_assert_int_eq(rig_open(rig), 0);
}

static inline int
drop(struct rig *rig, const char *name)
{
    struct answer answer;
    struct store_edit edit = {.err = -1};
    ck_assert(producer_name_set(&edit.dropped, name, strlen(name)));
    answer_init(&answer);
    edit.call = call_of(&answer);
    if (store_edit(rig->store, &edit) == STORE_LATER) {
        answer_wait(&answer);
    }
    answer_fini(&answer);
    return edit.err;
}

/* As a client says it; committed. */
static inline int
join(struct rig *rig, const char *name, const struct seen_window *seen)
{
    struct store_window window = {.seen = *seen};
    struct qsbr_reader reader;
    uint64_t seq;
    ck_assert(producer_name_set(&window.name, name, strlen(name)));
    reader_begin(rig->store, &reader);
    int err = store_join_window(rig->store, &window, &seq);
    reader_end(rig->store, &reader);
    if (err == 0) {
        ck_assert_uint_gt(seq, 0);
        ck_assert_int_eq(rig_commit(rig, seq), STORE_COMMITTED);
    }
    return err;
}

/* What the producer's joined window is now; empty where there is none. */
static inline struct seen_window
joined(struct rig *rig, const char *name)
{
    struct store_window window[STORE_WINDOWS_MAX];
    struct seen_window found = {0};
    uint32_t at = 0;
    while (at != UINT32_MAX) {
        uint32_t n = store_windows(rig->store, &at, window, STORE_WINDOWS_MAX);
        for (uint32_t i = 0; i < n; i++) {
            if (producer_name_is(&window[i].name, name, strlen(name))) {
                ck_assert(seen_is_empty(&found)); /* once */
                found = window[i].seen;
            }
        }
    }
    return found;
}

static inline void
expect(struct rig *rig, size_t i, const char *column, uint64_t value)
{
    struct cell_key key =
        cell_of(quiet_schema(rig->store), rig->history.id[i], column);
    uint64_t found;
    (void)get_cell(rig->store, &key, &found);
    ck_assert_uint_eq(found, value);
}

#endif
