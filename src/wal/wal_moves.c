/* SPDX-License-Identifier: BSD-3-Clause */
/* Moves the log from state to state and its positions forward, and checks each
 * step. Nobody else changes them.
 *
 * The file under way:
 *
 *         first file        next file
 *   NONE -----------> WELL <----------- FULL    the next batch does not fit
 *    |                 | ^ ------------> |
 *    |           fails | |               | fails
 *    |                 v |               v
 *    |      NO_ROOM, FAILED <------------+      given up; NO_ROOM is FAILED of
 *    |                 | ^                      which what is written can still
 *    | no first file   | | next file: WELL      be synced, once
 *    v                 v |
 *   REFUSED <-------- no next file              changes are refused
 *
 * From FAILED and REFUSED a next file that could be made leads to WELL.
 *
 * The turn to write; callers take it only where it is FREE:
 *
 *   FREE -> TAKEN -> FREE
 *             |  the log's thread waits for it
 *             v
 *          AWAITED -> LEFT -> TAKEN     given back: the thread's, who else
 *                                       comes waits
 *
 * The positions, in bytes of the stream and in batches:
 *
 *   synced <= written <= closed <= appended
 *
 * None ever goes back. appended only grows (wal__stream_put), so the order is
 * checked where one of the other three moves. All here is under wal->lock. */
#include "wal/wal_priv.h"

#include "base/assert.h"

static const unsigned state_steps[WAL_STATE_COUNT] = {
    [WAL_STATE_NONE] = STEP_TO(WAL_STATE_WELL) | STEP_TO(WAL_STATE_REFUSED),
    [WAL_STATE_WELL] = STEP_TO(WAL_STATE_WELL) | STEP_TO(WAL_STATE_FULL) |
        STEP_TO(WAL_STATE_NO_ROOM) | STEP_TO(WAL_STATE_FAILED),
    [WAL_STATE_FULL] = STEP_TO(WAL_STATE_WELL) | STEP_TO(WAL_STATE_NO_ROOM) |
        STEP_TO(WAL_STATE_FAILED),
    [WAL_STATE_NO_ROOM] = STEP_TO(WAL_STATE_FAILED),
    [WAL_STATE_FAILED] = STEP_TO(WAL_STATE_WELL) | STEP_TO(WAL_STATE_REFUSED),
    [WAL_STATE_REFUSED] =
        STEP_TO(WAL_STATE_WELL) | STEP_TO(WAL_STATE_REFUSED)};

void
wal__move(struct wal *wal, enum wal_state to)
{
    lock_assert_held(&wal->lock);
    ASSERT_STEP(state_steps, wal->state, to);
    wal->state = to;
}

static void
expect_positions(const struct wal *wal)
{
    const struct wal_stream *stream = &wal->stream;
    wal__expect_order(&wal->synced, &wal->written);
    wal__expect_order(&wal->written, &stream->closed);
    ASSERT(stream->closed.stream <= stream->appended);
    ASSERT(stream->closed.seq + 1 == stream->seq);
}

void
wal__set_durable(struct wal *wal, const struct wal_mark *mark)
{
    lock_assert_held(&wal->lock);
    wal__expect_order(&wal->synced, mark);
    wal->synced = *mark;
    expect_positions(wal);
}

void
wal__set_next(struct wal *wal, uint64_t seq)
{
    lock_assert_held(&wal->lock);
    ASSERT(wal->stream.appended == wal->synced.stream);
    ASSERT(wal->written.stream == wal->synced.stream);
    wal__stream_jump(&wal->stream, seq);
    wal->written.seq = seq - 1;
    wal->synced.seq = seq - 1;
    expect_positions(wal);
}

void
wal__begin_again(struct wal *wal)
{
    struct wal_stream *stream = &wal->stream;
    lock_assert_held(&wal->lock);
    ASSERT(!stream->is_open && stream->appended == wal->synced.stream);
    ASSERT(stream->tail == stream->closed.chunk);
    stream->tail->fill = 0;
    stream->closed.at = 0;
    wal->written = stream->closed;
    wal->synced = stream->closed;
    expect_positions(wal);
}

/* The states against what they are about. */
static void
verify_states(const struct wal *wal)
{
    const struct wal_file *file = &wal->file;
    ASSERT((unsigned)wal->state < WAL_STATE_COUNT);
    ASSERT((unsigned)wal->turn < WAL_TURN_COUNT);
    ASSERT((wal->disk_fault != 0) == (wal->state == WAL_STATE_REFUSED));
    /* no file: the first one is still to be made */
    ASSERT(file->fd >= 0 || wal->state == WAL_STATE_NONE ||
        wal->state == WAL_STATE_REFUSED);
    ASSERT(file->fd < 0 || wal->state != WAL_STATE_NONE);
    ASSERT(!wal__is_failing(wal) || wal->failure.err != 0);
}

/* The file under way against the positions. */
static void
verify_file(const struct wal *wal)
{
    const struct wal_file *file = &wal->file;
    ASSERT(wal->first_file <= file->head.number + 1);
    for (unsigned i = 0; i < WAL_MADE; i++) {
        ASSERT(wal->made[i].number <= file->head.number);
        ASSERT(
            wal->made[i].number == 0 || wal->made[i].number % WAL_MADE == i);
    }
    if (file->fd < 0) {
        return;
    }
    ASSERT(
        wal->made[file->head.number % WAL_MADE].number == file->head.number);
    /* what is not synced is in this file or in none */
    ASSERT(file->start <= wal->synced.stream);
    ASSERT(file->head.first_seq <= wal->synced.seq + 1);
    ASSERT(wal__file_offset(file, &wal->written) <= wal__file_limit(file));
}

/* What others were told or wait for against the positions. */
static void
verify_promises(const struct wal *wal)
{
    uint64_t last = wal->stream.closed.seq + wal->stream.is_open;
    /* relaxed: stored under the lock */
    uint64_t committed =
        atomic_load_explicit(&wal->committed, memory_order_relaxed);
    ASSERT(wal->config.sync == WAL_SYNC_NONE || committed <= wal->written.seq);
    ASSERT(
        wal->config.sync != WAL_SYNC_ALWAYS || committed <= wal->synced.seq);
    ASSERT(wal->wanted <= last);
    ASSERT(wal->sync_wanted <= last);
    ASSERT(wal->rotate_wanted <= last);
    ASSERT(wal->mark_seq <= last);
}

void
wal__verify(const struct wal *wal)
{
    lock_assert_held(&wal->lock);
    ASSERT(wal->magic == WAL_MAGIC);
    verify_states(wal);
    expect_positions(wal);
    wal__stream_verify(&wal->stream, &wal->synced, &wal->written);
    verify_file(wal);
    verify_promises(wal);
}

void
wal_verify(struct wal *wal)
{
    wal__lock(wal);
    wal__verify(wal);
    wal__unlock(wal);
}
