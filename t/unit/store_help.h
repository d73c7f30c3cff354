/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_STORE_HELP_H
#define UNIT_STORE_HELP_H

/* What the tests of store/ share: calls that wait for their answer, and cells
 * named by text. */

#include "base/err.h"
#include "lib/small_store.h"
#include "store/store.h"
#include "unit/edit_help.h"

#include <semaphore.h>
#include <stdatomic.h>

/* Where a call's answer is waited for. */
struct answer {
    sem_t come;
    atomic_uint n; /* how often it has come */
};

static inline void
answer_init(struct answer *answer)
{
    atomic_init(&answer->n, 0);
    ck_assert_int_eq(sem_init(&answer->come, 0, 0), 0);
}

static inline void
answer_fini(struct answer *answer)
{
    ck_assert_int_eq(sem_destroy(&answer->come), 0);
}

/* A done_fn; owner is a struct answer. */
static inline void
answer_comes(struct store_call *call)
{
    struct answer *answer = call->owner;
    atomic_fetch_add(&answer->n, 1);
    ck_assert_int_eq(sem_post(&answer->come), 0);
}

static inline struct store_call
call_of(struct answer *answer)
{
    return (struct store_call){.done_fn = answer_comes, .owner = answer};
}

static inline void
answer_wait(struct answer *answer)
{
    while (sem_wait(&answer->come) != 0) {
    }
}

/* The calling thread becomes a reader of the store, or ceases to be one. */
static inline void
reader_begin(struct store *store, struct qsbr_reader *reader)
{
    qsbr_register(store->qsbr, reader);
    qsbr_online(store->qsbr, reader);
}

static inline void
reader_end(struct store *store, struct qsbr_reader *reader)
{
    qsbr_offline(reader);
    qsbr_unregister(store->qsbr, reader);
}

/* Edits the schema by a line, waits, and returns the err. */
static inline int
edit(struct store *store, const char *line)
{
    struct answer answer;
    struct store_edit edit = {.edit = edit_of(line), .err = -1};
    answer_init(&answer);
    edit.call = call_of(&answer);
    if (store_edit(store, &edit) == STORE_LATER) {
        answer_wait(&answer);
    }
    answer_fini(&answer);
    return edit.err;
}

static inline void
edit_all(struct store *store, const char *const *line, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        ck_assert_int_eq(edit(store, line[i]), 0);
    }
}

/* The published schema, from a thread that is no reader while nobody edits. */
static inline const struct schema *
quiet_schema(struct store *store)
{
    return store_schema(store);
}

/* The cell of id in the column of that name. */
static inline struct cell_key
cell_of(const struct schema *schema, uint64_t id, const char *name)
{
    struct schema_target target;
    ck_assert(schema_find(schema, name, strlen(name), &target));
    ck_assert_ptr_nonnull(target.column);
    return (struct cell_key){.id = id,
        .serial = target.column->serial,
        .counter = target.counter->slot,
        .column = target.column->slot};
}

/* A change of one cell. */
static inline struct change
change_of(const struct cell_key *cell, enum change_op op, uint64_t operand)
{
    return (struct change){.id = cell->id,
        .op = op,
        .counter = cell->counter,
        .n_columns = 1,
        .column = {cell->column},
        .serial = {cell->serial},
        .operand = {operand},
        .err = -1};
}

/* Does changes, waits, and leaves the answers in them; returns with what they
 * are committed. */
static inline uint64_t
do_changes(struct store *store, struct change *change, uint32_t n)
{
    struct answer answer;
    struct qsbr_reader reader;
    struct store_change call = {.n = n, .change = change};
    answer_init(&answer);
    call.call = call_of(&answer);
    reader_begin(store, &reader);
    enum store_answer at_once = store_change(store, &call);
    reader_end(store, &reader);
    if (at_once == STORE_LATER) {
        answer_wait(&answer);
    }
    answer_fini(&answer);
    return call.seq;
}

static inline int
change_cell(struct store *store, const struct cell_key *cell,
    enum change_op op, uint64_t operand)
{
    struct change change = change_of(cell, op, operand);
    do_changes(store, &change, 1);
    return change.err;
}

/* Reads one cell; *value_out is its value. Not for an online reader: the
 * answer may have to be waited for. */
static inline enum cell_state
get_cell(struct store *store, const struct cell_key *cell, uint64_t *value_out)
{
    struct answer answer;
    struct qsbr_reader reader;
    struct store_get get = {.n = 1, .key = {*cell}};
    answer_init(&answer);
    get.call = call_of(&answer);
    reader_begin(store, &reader);
    enum store_answer given = store_get(store, &get);
    reader_end(store, &reader);
    if (given == STORE_LATER) {
        answer_wait(&answer);
    }
    answer_fini(&answer);
    *value_out = get.value[0];
    return (enum cell_state)get.state[0];
}

static inline void
expect_cell(struct store *store, const struct cell_key *cell,
    enum cell_state state, uint64_t value)
{
    uint64_t found;
    ck_assert_int_eq(get_cell(store, cell, &found), state);
    ck_assert_uint_eq(found, value);
}

#endif
