/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_ENGINE_HELP_H
#define UNIT_ENGINE_HELP_H

/* What the tests of engine/engine share. */

#include "base/err.h"
#include "engine/engine.h"
#include "lib/cell_model.h"
#include "unit/check_help.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* A budget that no test reaches by accident. */
#define ROOMY_BYTES (UINT64_C(1) << 30)

static inline struct engine *
engine_of(const struct engine_config *config)
{
    struct engine *engine = NULL;
    ck_assert_int_eq(engine_create(config, &engine), 0);
    ck_assert_ptr_nonnull(engine);
    return engine;
}

/* As ck_assert, for where it is called a million times: that writes to a file
 * each time. */
#define CHECK(condition)                                                      \
    ((condition) ? (void)0 : ck_abort_msg("%s: %s", __func__, #condition))

/* For one thread, with these shards and tables of at most so many records. */
static inline struct engine *
small_engine(unsigned shards, uint32_t table_records_max)
{
    struct engine_config config = {.shards = shards,
        .seed = 1,
        .hot_bytes = ROOMY_BYTES,
        .table_records_max = table_records_max};
    return engine_of(&config);
}

/* Verifies and destroys. */
static inline void
finish_engine(struct engine **engine)
{
    engine_verify(*engine);
    engine_destroy(engine);
    ck_assert_ptr_null(*engine);
}

/* A counter of n columns of 64 bits in slots 0, 1 ...; serials 1, 2 ... */
static inline struct schema_counter
plain_counter(unsigned slot, unsigned n)
{
    struct schema_counter def = {
        .slot = (uint8_t)slot, .serial = slot + 1, .n_columns = (uint8_t)n};
    for (unsigned i = 0; i < n; i++) {
        def.column[i] = (struct schema_column){.serial = i + 1,
            .slot = (uint8_t)i,
            .hint_bits = 4,
            .max_bits = 64};
    }
    return def;
}

/* A change of the first n columns of a counter, all by the same operand. */
static inline struct change
change_of(const struct schema_counter *def, enum change_op op, uint64_t id,
    unsigned n, uint64_t operand)
{
    struct change change = {.id = id,
        .op = op,
        .counter = def->slot,
        .n_columns = (uint8_t)n,
        .err = -1};
    for (unsigned i = 0; i < n; i++) {
        change.column[i] = def->column[i].slot;
        change.serial[i] = def->column[i].serial;
        change.operand[i] = operand;
    }
    return change;
}

/* Does one such change and returns its err. */
static inline int
change_id(struct engine *engine, const struct schema_counter *def,
    enum change_op op, uint64_t id, unsigned n, uint64_t operand)
{
    struct change change = change_of(def, op, id, n, operand);
    engine_change(engine, &change, 1);
    return change.err;
}

static inline struct cell_key
key_of(const struct schema_counter *def, unsigned i, uint64_t id)
{
    return (struct cell_key){.id = id,
        .serial = def->column[i].serial,
        .counter = def->slot,
        .column = def->column[i].slot};
}

/* Column i of id must be this. */
static inline void
expect_value(struct engine *engine, const struct schema_counter *def,
    unsigned i, uint64_t id, uint64_t value)
{
    struct cell_key key = key_of(def, i, id);
    enum cell_state want =
        value == def->column[i].default_value ? CELL_DEFAULT : CELL_SET;
    uint64_t found = ~value;
    uint8_t state = UINT8_MAX;
    engine_get(engine, &key, 1, &found, &state);
    if (found != value || state != want) {
        ck_abort_msg("column %u of id %llu: %llu (state %d), not %llu", i,
            (unsigned long long)id, (unsigned long long)found, state,
            (unsigned long long)value);
    }
}

/* What is held of the counter in slot, in all shards. */
static inline struct engine_sum
sum_of(struct engine *engine, unsigned slot)
{
    struct engine_sum sum = {0};
    engine_sum(engine, slot, -1, &sum);
    return sum;
}

static inline uint64_t
sum_bytes(const struct engine_sum *sum)
{
    return sum->line_bytes + sum->stash_bytes + sum->other_bytes;
}

/* What must be true of every sum at every moment of one thread. */
static inline const char *
sum_fault(const struct engine_sum *sum, uint64_t records)
{
    uint64_t narrow = sum->stash_records - sum->stash_wide;
    if (sum->records != records) {
        return "wrong count of records";
    }
    if (sum->stash_wide > sum->stash_records) {
        return "more wide records than records in stashes";
    }
    if (narrow * 50 > records) {
        return "stashes have more than 2 %";
    }
    if (sum->used_bits > sum->usable_bits || sum->far_records > records) {
        return "lines hold more than they can";
    }
    return NULL;
}

/* Runs background work until there is none; *now_ms goes on. */
static inline void
tend_all(struct engine *engine, uint64_t *now_ms)
{
    enum { ROUNDS_MAX = 1000, IDLE_ROUNDS = 3, ROUND_MS = 600 };
    unsigned idle = 0, rounds = 0;
    while (idle < IDLE_ROUNDS) {
        idle = engine_tend(engine, *now_ms += ROUND_MS) ? 0 : idle + 1;
        ck_assert_uint_lt(rounds++, ROUNDS_MAX);
    }
}

/* call_fn must abort; it is tried in a process of its own. */
static inline void
expect_abort(void (*call_fn)(void))
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        (void)!freopen("/dev/null", "w", stderr);
        call_fn();
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

#endif
