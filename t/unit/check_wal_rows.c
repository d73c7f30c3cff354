/* SPDX-License-Identifier: BSD-3-Clause */
/* wal_append_rows: what several changes of one cell take in a batch, and that
 * the state after each batch is what a log of all changes would lead to. */
#include "wal/wal.h"

#include "lib/log_make.h"
#include "unit/wal_rig.h"
#include "wal/entry.h"
#include "wal/wal_stream.h"

enum {
    IDS = 48, /* of each counter; many share their place in the table */
    COUNTERS = 2,
    COLUMNS = 3,
    STEPS = 4000,
    ROUNDS = 20,
    TOGETHER = 4,
    CHANGES = 50
};

/* Counter c has the serials c * COLUMNS + 1 and on. */
struct state {
    uint64_t value[IDS][COUNTERS * COLUMNS];
};

struct model {
    struct rig rig;
    uint64_t random;
    uint64_t id[IDS];
    struct state now;
    uint64_t seq;        /* of the batch that now is in */
    struct state *after; /* by number of a batch; owned */
    struct state found;
    uint64_t n_found;
    bool is_plain;
};

static void
set_cells(struct state *state, size_t i, const struct entry_cells *cells)
{
    for (unsigned k = 0; k < cells->n; k++) {
        state->value[i][cells->serial[k] - 1] = cells->value[k];
    }
}

/* Some cells of a record become something. */
static size_t
put_change(struct model *model, uint8_t *out, struct wal_row *row,
    const uint64_t *id_before, size_t at)
{
    size_t i =
        random_below(&model->random, 1 + random_below(&model->random, IDS));
    unsigned counter = (unsigned)random_below(&model->random, COUNTERS);
    unsigned mask = 1 + (unsigned)random_below(&model->random, 7);
    struct entry_cells cells = {.id = model->id[i]};
    for (unsigned c = 0; c < COLUMNS; c++) {
        if ((mask >> c & 1) != 0) {
            unsigned bits =
                7 * (1 + (unsigned)random_below(&model->random, 2));
            cells.serial[cells.n] = counter * COLUMNS + c + 1;
            cells.value[cells.n++] =
                random_below(&model->random, UINT64_C(1) << bits);
        }
    }
    set_cells(&model->now, i, &cells);
    *row = (struct wal_row){model->id[i], (uint32_t)at, (uint8_t)counter};
    return log_make_cells(out, &cells, id_before);
}

/* A record of the first counter gets a member, or loses one, that is a record
 * of the second counter: one entry, of which both rows are. Returns 2 rows. */
static size_t
put_member(struct model *model, uint8_t *out, struct wal_row *row, size_t at)
{
    size_t i = random_below(&model->random, IDS);
    size_t k = random_below(&model->random, IDS);
    struct entry_cells record = {.id = model->id[i], .n = 1, .serial = {1}};
    struct entry_cells pair = {
        .id = model->id[k], .n = 1, .serial = {COLUMNS + 1}};
    record.value[0] = random_below(&model->random, 128);
    pair.value[0] = random_below(&model->random, 2);
    struct entry_members members = {.n_changes = 1,
        .n = 1,
        .pair_bytes = entry_members_bytes(pair.id),
        .pair_serial = pair.serial[0],
        .pair_value = pair.value[0]};
    set_cells(&model->now, i, &record);
    set_cells(&model->now, k, &pair);
    row[0] = (struct wal_row){record.id, (uint32_t)at, 0};
    row[1] = (struct wal_row){pair.id, (uint32_t)at, 1};
    size_t len = entry_put_members(out, &members, record.serial);
    return len +
        entry_put_member(
            out + len, &members, record.id, record.value, pair.id, NULL);
}

/* What was so before the first append of batch seq is so after the one
 * before. */
static void
note_batch(struct model *model, uint64_t seq, const struct state *before)
{
    while (model->seq < seq) {
        model->after[model->seq++] = *before;
    }
}

static void
append_some(struct model *model)
{
    uint8_t entries[TOGETHER * ENTRY_CELLS_BYTES_MAX];
    struct wal_row row[TOGETHER];
    struct state before = model->now;
    size_t n = random_below(&model->random, 3) > 0
        ? 1
        : 1 + random_below(&model->random, TOGETHER);
    size_t len = 0;
    uint64_t seq;
    bool is_member = random_below(&model->random, 4) == 0;
    if (is_member) {
        n = 2;
        len = put_member(model, entries, row, 0);
    }
    for (size_t i = 0; i < n && !is_member; i++) {
        len += put_change(model, entries + len, &row[i],
            i == 0 ? NULL : &row[i - 1].id, len);
    }
    if (model->is_plain) {
        seq = wal_append(model->rig.wal, entries, len);
    } else {
        seq = wal_append_rows(model->rig.wal, entries, len, row, n);
    }
    note_batch(model, seq, &before);
}

static void
append_dropped(struct model *model)
{
    uint8_t entry[ENTRY_DROPPED_BYTES_MAX];
    size_t len = entry_put_dropped(entry, 1000, 1000);
    note_batch(model, wal_append(model->rig.wal, entry, len), &model->now);
}

static int
read_batch(void *context, uint64_t seq, const uint8_t *payload, size_t len)
{
    struct model *model = context;
    struct entry_reader reader = {.at = payload, .end = payload + len};
    struct entry entry;
    ck_assert_uint_eq(seq, ++model->n_found);
    for (;;) {
        ck_assert(entry_next(&reader, &entry));
        if (entry.kind == ENTRY_END) {
            break;
        }
        for (size_t i = 0; entry.kind == ENTRY_CELLS && i < IDS; i++) {
            if (model->id[i] == entry.cells.id) {
                set_cells(&model->found, i, &entry.cells);
            }
        }
    }
    ck_assert_mem_eq(&model->found, &model->after[seq], sizeof(model->found));
    return 0;
}

/* Returns how many entries took the place of others. */
static uint64_t
run_model(enum wal_sync mode, uint64_t seed, bool is_plain)
{
    struct model model = {.random = seed, .is_plain = is_plain};
    struct replay_end end;
    rig_init(&model.rig, mode, seed);
    model.rig.config.interval_ms = 1000000;
    ck_assert_int_eq(rig_open(&model.rig), 0);
    model.after = calloc(STEPS + 2, sizeof(*model.after));
    ck_assert_ptr_nonnull(model.after);
    for (size_t i = 0; i < IDS; i++) {
        /* the first ones are near each other */
        model.id[i] = i < IDS / 2 ? 1000 + i : random_below(&seed, UINT64_MAX);
    }
    for (unsigned i = 0; i < STEPS; i++) {
        uint64_t what = random_below(&model.random, 100);
        if (what == 0) {
            append_dropped(&model);
        } else if (what < 3 && model.seq > 0) {
            (void)rig_commit(&model.rig, model.seq);
        } else {
            append_some(&model);
        }
    }
    model.after[model.seq] = model.now;
    struct wal_stats stats = rig_stats(&model.rig);
    ck_assert_uint_eq(stats.last_seq, model.seq);
    ck_assert_int_eq(rig_close(&model.rig), 0);
    struct replay replay = {.disk = model.rig.disk,
        .epoch = EPOCH,
        .number = 1,
        .batch_fn = read_batch,
        .context = &model};
    ck_assert_int_eq(replay_run(&replay, &end), 0);
    ck_assert_uint_eq(model.n_found, model.seq);
    ck_assert_mem_eq(&model.found, &model.now, sizeof(model.now));
    free(model.after);
    rig_fini(&model.rig);
    return stats.replaced;
}

START_TEST(test_states)
{
    static const enum wal_sync modes[] = {
        WAL_SYNC_NONE, WAL_SYNC_INTERVAL, WAL_SYNC_ALWAYS};
    uint64_t n_replaced = 0; /* in one round the log's thread may come first */
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        enum wal_sync mode = modes[seed % COUNT_OF(modes)];
        ck_assert_uint_eq(run_model(mode, seed, true), 0);
        n_replaced += run_model(mode, seed, false);
    }
    ck_assert_uint_gt(n_replaced, 0);
}
END_TEST

static uint64_t
append_one(struct rig *rig, uint64_t id, uint32_t serial, uint64_t value)
{
    uint8_t entry[ENTRY_CELLS_BYTES_MAX];
    struct entry_cells cells = {
        .id = id, .n = 1, .serial = {serial}, .value = {value}};
    struct wal_row row = {.id = id, .counter = 1};
    size_t len = log_make_cells(entry, &cells, NULL);
    return wal_append_rows(rig->wal, entry, len, &row, 1);
}

/* The changes of one cell that many connections wait for together are one
 * entry; each batch has one of its own. */
START_TEST(test_bytes)
{
    const uint64_t entry = 1 + 2 + 1 + 2; /* head, id, serial, value */
    struct rig rig;
    rig_init(&rig, WAL_SYNC_INTERVAL, 1);
    rig.config.interval_ms = 1000000;
    ck_assert_int_eq(rig_open(&rig), 0);
    for (uint64_t batch = 1; batch <= 3; batch++) {
        for (unsigned i = 0; i < CHANGES; i++) {
            ck_assert_uint_eq(append_one(&rig, 1234, 2, 1000 + i), batch);
        }
        struct wal_stats stats = rig_stats(&rig);
        ck_assert_uint_eq(stats.bytes, batch * (FRAME_BATCH_BYTES + entry));
        ck_assert_uint_eq(stats.appends, batch * CHANGES);
        ck_assert_uint_eq(stats.replaced, batch * (CHANGES - 1));
        ck_assert_int_eq(rig_commit(&rig, batch), WAL_COMMITTED);
    }
    /* another column, a longer value: entries of their own */
    uint64_t bytes = rig_stats(&rig).bytes + FRAME_BATCH_BYTES;
    (void)append_one(&rig, 1234, 2, 1000);
    (void)append_one(&rig, 1234, 3, 1000);
    (void)append_one(&rig, 1234, 2, 1000);
    (void)append_one(&rig, 1234, 2, 100000);
    ck_assert_uint_eq(rig_stats(&rig).bytes, bytes + 4 * entry + 1);
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
}
END_TEST

/* Appends CHANGES and commits them: of one id, or of as many. Returns how many
 * of them took the place of others. */
static uint64_t
commit_batch(struct rig *rig, bool is_one, uint64_t first_id)
{
    uint64_t before = rig_stats(rig).replaced;
    uint64_t seq = 0;
    for (unsigned i = 0; i < CHANGES; i++) {
        uint64_t id = is_one ? first_id : first_id + i;
        seq = append_one(rig, id, 2, 1000 + i);
    }
    uint64_t n = rig_stats(rig).replaced - before;
    ck_assert_int_eq(rig_commit(rig, seq), WAL_COMMITTED);
    return n;
}

/* Where nothing repeats only some batches are looked at; once one of these has
 * repeats, so are all behind it, and where they end, one of some again. */
START_TEST(test_repeats)
{
    struct rig rig;
    rig_init(&rig, WAL_SYNC_INTERVAL, 1);
    rig.config.interval_ms = 1000000;
    rig.config.file_bytes = 1 << 20;
    ck_assert_int_eq(rig_open(&rig), 0);
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned n_batches = WAL_NOTED_BATCHES + round % WAL_NOTED_BATCHES;
        for (unsigned i = 0; i < n_batches; i++) {
            ck_assert_uint_eq(commit_batch(&rig, false, 1000), 0);
        }
        unsigned n_missed = 0;
        while (commit_batch(&rig, true, 1234) == 0) {
            n_missed++;
        }
        ck_assert_uint_lt(n_missed, WAL_NOTED_BATCHES);
        for (unsigned i = 0; i < 2 * WAL_NOTED_BATCHES; i++) {
            ck_assert_uint_eq(commit_batch(&rig, true, 1234), CHANGES - 1);
        }
    }
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_bytes, test_repeats, test_states};
    return run_tests("wal_rows", tests, COUNT_OF(tests));
}
