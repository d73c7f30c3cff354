/* SPDX-License-Identifier: BSD-3-Clause */
/* wal/wal_moves: which steps of the log's states are legal, and that whatever
 * is wrong in a log is found: each breakage of an invariant aborts, in a
 * process of its own. */
#include "unit/breakages.h"
#include "unit/wal_rig.h"
#include "wal/wal_priv.h"

enum { NUMBERS = 4 };

static struct wal *
open_rig(struct rig *rig)
{
    rig_init(rig, WAL_SYNC_INTERVAL, 1);
    ck_assert_int_eq(rig_open(rig), 0);
    return rig->wal;
}

static void
close_rig(struct rig *rig)
{
    ck_assert_int_eq(rig_close(rig), 0);
    rig_fini(rig);
}

/* A row a state, a letter for each that may follow: y where it may. */
static const char *const state_may[WAL_STATE_COUNT] = {
    /*                      N W F O G R */
    [WAL_STATE_NONE] = "    . y . . . y",
    [WAL_STATE_WELL] = "    . y y y y .",
    [WAL_STATE_FULL] = "    . y . y y .",
    [WAL_STATE_NO_ROOM] = " . . . . y .",
    [WAL_STATE_FAILED] = "  . y . . . y",
    [WAL_STATE_REFUSED] = " . y . . . y"};

static const char *const turn_may[WAL_TURN_COUNT] = {
    /*                     F T A L */
    [WAL_TURN_FREE] = "    . y . .",
    [WAL_TURN_TAKEN] = "   y . y .",
    [WAL_TURN_AWAITED] = " . . . y",
    [WAL_TURN_LEFT] = "    . y . ."};

static bool
may(const char *row, unsigned to)
{
    row += strspn(row, " ");
    return row[2 * to] == 'y';
}

/* What the child does: a step. */
static unsigned step_from, step_to;

static void
step_state(void *context)
{
    struct wal *wal = context;
    wal->state = (enum wal_state)step_from;
    wal__move(wal, (enum wal_state)step_to);
}

static void
step_turn(void *context)
{
    struct wal *wal = context;
    wal->turn = (enum wal_turn)step_from;
    wal__move_turn(wal, (enum wal_turn)step_to);
}

START_TEST(test_steps)
{
    struct rig rig;
    struct wal *wal = open_rig(&rig);
    wal__lock(wal);
    for (step_from = 0; step_from < WAL_STATE_COUNT; step_from++) {
        for (step_to = 0; step_to < WAL_STATE_COUNT; step_to++) {
            ck_assert_msg(survives(step_state, wal) ==
                    may(state_may[step_from], step_to),
                "state %u to %u", step_from, step_to);
        }
    }
    for (step_from = 0; step_from < WAL_TURN_COUNT; step_from++) {
        for (step_to = 0; step_to < WAL_TURN_COUNT; step_to++) {
            ck_assert_msg(
                survives(step_turn, wal) == may(turn_may[step_from], step_to),
                "turn %u to %u", step_from, step_to);
        }
    }
    wal__unlock(wal);
    close_rig(&rig);
}
END_TEST

static void
move_unlocked(struct wal *wal)
{
    wal__unlock(wal);
    wal__move(wal, WAL_STATE_FULL);
    wal__lock(wal);
}

/* One line a breakage: of a log with a batch that is synced, one that is
 * written, one that is closed and one that is open. */
#define BREAKAGES(X)                                                          \
    X(wal->magic = 0)                                                         \
    X(wal__unlock(wal))                                                       \
    X(wal->state = WAL_STATE_COUNT)                                           \
    X(wal->turn = WAL_TURN_COUNT)                                             \
    X(wal->state = WAL_STATE_REFUSED)                                         \
    X(wal->disk_fault = ERR_DISK)                                             \
    X(wal->file.fd = -1)                                                      \
    X(wal->state = WAL_STATE_NONE)                                            \
    X(wal->state = WAL_STATE_FAILED)                                          \
    X(wal->synced.seq = wal->written.seq + 1)                                 \
    X(wal->synced.stream = wal->written.stream + 1)                           \
    X(wal->written.seq = wal->stream.closed.seq + 1)                          \
    X(wal->written.stream = wal->stream.closed.stream + 1)                    \
    X(wal->written.stream--)                                                  \
    X(wal->written.at--)                                                      \
    X(wal->stream.closed.seq--)                                               \
    X(wal->stream.closed.at--)                                                \
    X(wal->stream.closed.at = WAL_CHUNK_BYTES + 1)                            \
    X(wal->stream.closed.stream--)                                            \
    X(wal->stream.appended++)                                                 \
    X(wal->stream.appended = wal->stream.closed.stream - 1)                   \
    X(wal->stream.seq++)                                                      \
    X(wal->stream.is_open = false)                                            \
    X(wal->stream.open_at++)                                                  \
    X(wal->stream.end++)                                                      \
    X(wal->stream.room = WAL_CHUNK_BYTES)                                     \
    X(wal->stream.tail->fill++)                                               \
    X(wal->stream.tail->capacity = 1)                                         \
    X(wal->stream.tail->next = wal->stream.spare)                             \
    X(wal->stream.head = wal->stream.spare)                                   \
    X(wal->stream.n_spare++)                                                  \
    X(wal->stream.spare = wal->stream.spare->next)                            \
    X(wal->stream.is_short = true)                                            \
    X(wal->file.start = wal->synced.stream + 1)                               \
    X(wal->file.head.first_seq = wal->synced.seq + 2)                         \
    X(wal->file.head.bytes = FRAME_FILE_BYTES)                                \
    X(wal->first_file = wal->file.head.number + 2)                            \
    X(wal->made[2].number = 2)                                                \
    X(wal->made[3].number = 1)                                                \
    X(wal->stream.spare->capacity--)                                          \
    X(move_unlocked(wal))                                                     \
    X(wal->made[wal->file.head.number % WAL_MADE].number = 0)                 \
    X(wal->committed = wal->written.seq + 1)                                  \
    X(wal->config.sync = WAL_SYNC_ALWAYS)                                     \
    X(wal->wanted = wal->stream.closed.seq + 2)                               \
    X(wal->sync_wanted = wal->stream.closed.seq + 2)                          \
    X(wal->rotate_wanted = wal->stream.closed.seq + 2)                        \
    X(wal->mark_seq = wal->stream.closed.seq + 2)                             \
    X(wal__set_written(wal, &wal->synced))                                    \
    X(wal__set_written(                                                       \
        wal, &(struct wal_mark){.seq = 99, .stream = wal->written.stream}))   \
    X(wal__set_durable(wal, &wal->stream.closed))                             \
    X(wal__begin_again(wal))

static const char *const lines[] = {BREAKAGES(BREAKAGE_TEXT)};

static void
break_and_verify(void *context)
{
    struct breakage *breakage = context;
    struct wal *wal = breakage->of;
    BREAKAGES(BREAKAGE_DO)
    wal__verify(wal);
}

/* The four kinds of batches. The log's thread writes none that nobody waits
 * for, and syncs none before the interval, which is long, is over. */
static void
fill(struct rig *rig)
{
    uint64_t seq = rig_append(rig, NUMBERS);
    ck_assert_int_eq(wal_sync_up_to(rig->wal, seq), 0);
    ck_assert_int_eq(rig_commit(rig, rig_append(rig, NUMBERS)), WAL_COMMITTED);
    (void)rig_append(rig, NUMBERS);
    (void)wal_cut(rig->wal);
    (void)rig_append(rig, NUMBERS);
}

START_TEST(test_breakages)
{
    struct rig rig;
    rig_init(&rig, WAL_SYNC_INTERVAL, 1);
    rig.config.interval_ms = UINT64_C(3600) * 1000;
    ck_assert_int_eq(rig_open(&rig), 0);
    struct wal *wal = rig.wal;
    fill(&rig);
    wal__lock(wal);
    ck_assert_uint_lt(wal->synced.seq, wal->written.seq);
    ck_assert_uint_lt(wal->written.seq, wal->stream.closed.seq);
    ck_assert(wal->stream.is_open);
    expect_noticed(break_and_verify, wal, lines, COUNT_OF(lines));
    wal__unlock(wal);
    close_rig(&rig);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_steps, test_breakages};
    return run_tests("wal_verify", tests, COUNT_OF(tests));
}
