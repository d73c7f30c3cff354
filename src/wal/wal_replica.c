/* SPDX-License-Identifier: BSD-3-Clause */
/* Batches that come with their numbers.
 *
 * The next number is added to the stream as it is, and goes its way with all
 * others. A number that jumps must be the first of a file, and the stream has
 * no jumps. So it waits until the log's thread has synced all before it, takes
 * it, and begins the file at once (do_jump in wal_thread.c): a term is in the
 * log as soon as its first file is, or it is not there. Who put it is told
 * then, and not before: the thread lets the lock go while it makes the file.
 *
 * What can go wrong: the batch is not the one that is due, memory, and what
 * wal_fault says. Then nothing has changed. */
#include "wal/wal_replica.h"

#include "base/assert.h"
#include "base/err.h"
#include "wal/wal_priv.h"

/* True while the batch waits for the thread, or the thread makes its file. */
static bool
is_on_its_way(const struct wal *wal, const struct wal_jump *jump)
{
    return wal->jump != NULL ||
        (!jump->is_short && wal->written.seq < jump->seq);
}

/* Waits until the batch is in its file; or, taken, is to be in a later one when
 * the disk is well again. 0 or why it has not been taken. */
static int
jump(struct wal *wal, struct wal_jump *jump)
{
    lock_assert_held(&wal->lock);
    ASSERT(wal->jump == NULL);
    wal->jump = jump;
    wal__wake(wal);
    while (is_on_its_way(wal, jump) && wal->disk_fault == 0) {
        lock_cond_wait(&wal->moved, &wal->lock, wal->config.clock, LOCK_NEVER);
    }
    if (wal->jump != NULL) {
        wal->jump = NULL;
        return wal->disk_fault;
    }
    return jump->is_short ? ERR_NO_MEMORY : 0;
}

/* Whether a batch begins with a term; *term is that. */
static bool
begins_term(const void *payload, size_t len, struct entry_term *term)
{
    struct entry_reader reader = {
        .at = payload, .end = (const uint8_t *)payload + len};
    struct entry entry;
    if (*reader.at != (uint8_t)ENTRY_TERM || !entry_next(&reader, &entry)) {
        return false;
    }
    *term = entry.term;
    return true;
}

/* The batch has another number than the one that is due. */
static int
put_far(struct wal *wal, struct wal_jump *far)
{
    lock_assert_held(&wal->lock);
    uint64_t last = wal->stream.closed.seq;
    struct history *terms = far->terms;
    struct entry_term term;
    *terms = wal->terms;
    if (far->seq <= last || far->seq - last - 1 < SEQ_GAP ||
        far->seq >= UINT64_MAX - 1) {
        return ERR_LOG_ORDER;
    }
    bool is_right = terms->n == 0; /* a start */
    if (begins_term(far->payload, far->len, &term)) {
        is_right = entry_term_is_at(&term, far->seq, true) &&
            term.last_seq == last &&
            history_begin(terms, term.term, term.branch, last);
    }
    return is_right ? jump(wal, far) : ERR_LOG_ORDER;
}

/* The batch that is due. It begins a term only if it is the first one of this
 * log, which a copy of the primary's files came with. */
static int
put_next(struct wal *wal, uint64_t seq, const void *payload, size_t len)
{
    lock_assert_held(&wal->lock);
    bool was_short = wal->stream.is_short;
    struct history terms = wal->terms;
    struct entry_term term;
    bool is_term = begins_term(payload, len, &term);
    if (is_term &&
        (!entry_term_is_at(&term, seq, true) ||
            !history_begin(&terms, term.term, term.branch, term.last_seq))) {
        return ERR_LOG_ORDER;
    }
    if (!wal__stream_make_room(&wal->stream, len)) {
        return ERR_NO_MEMORY;
    }
    if (is_term) {
        wal->terms = terms;
    }
    wal__stream_add(&wal->stream, payload, len);
    wal__note_append(wal, was_short);
    return 0;
}

int
wal_put_batch(struct wal *wal, uint64_t seq, const void *payload, size_t len)
{
    struct history terms;
    struct wal_jump far = {
        .seq = seq, .payload = payload, .len = len, .terms = &terms};
    ASSERT(len > 0 && len <= FRAME_PAYLOAD_MAX);
    int err = wal_fault(wal);
    if (err != 0) {
        return err;
    }
    wal__lock(wal);
    ASSERT(wal->stream.is_guarded && !wal->stream.is_open);
    err = seq == wal->stream.closed.seq + 1 ? put_next(wal, seq, payload, len)
                                            : put_far(wal, &far);
    wal__unlock(wal);
    return err;
}

int
wal_begin_term(struct wal *wal, struct entry_term *term, uint64_t *seq)
{
    uint8_t entry[ENTRY_TERM_BYTES_MAX];
    struct history terms;
    struct wal_jump far = {
        .seq = seq_first(term->term), .payload = entry, .terms = &terms};
    int err = wal_fault(wal);
    if (err != 0) {
        return err;
    }
    wal__lock(wal);
    ASSERT(wal->stream.is_guarded && !wal->stream.is_open);
    uint64_t last = wal->stream.closed.seq;
    uint64_t least = history_is_end(&wal->terms, last)
        ? history_next_term(&wal->terms, last)
        : 0;
    terms = wal->terms;
    if (least == 0 || term->term < least ||
        !history_begin(&terms, term->term, term->branch, last)) {
        err = ERR_LOG_ORDER;
    } else {
        term->last_seq = last;
        far.len = entry__put_term(entry, term);
        err = jump(wal, &far);
    }
    if (err == 0) {
        wal->stream.is_guarded = false;
        *seq = far.seq;
    }
    wal__unlock(wal);
    return err;
}

void
wal_become_replica(struct wal *wal)
{
    wal__lock(wal);
    wal__stream_close(&wal->stream);
    wal->stream.is_guarded = true;
    /* a mark at the end is a batch as any other: who takes it for the last one
     * has it synced */
    wal->mark_seq = 0;
    wal__unlock(wal);
}

void
wal_terms(struct wal *wal, struct history *out)
{
    wal__lock(wal);
    *out = wal->terms;
    wal__unlock(wal);
}

bool
wal_has_batch(struct wal *wal, uint64_t seq)
{
    wal__lock(wal);
    bool has = seq <= wal->stream.closed.seq;
    wal__unlock(wal);
    return has;
}

void
wal_position(struct wal *wal, struct wal_position *out)
{
    wal__lock(wal);
    const struct history *terms = &wal->terms;
    *out = (struct wal_position){
        .last = wal->stream.closed.seq + wal->stream.is_open,
        .written = history__before(terms, wal->written.seq + 1),
        .written_bytes = wal->written.stream,
        .synced = history__before(terms, wal__synced_seq(wal) + 1),
        .terms = *terms};
    if (wal->first_seq != 0) {
        out->begin = history__before(terms, wal->first_seq);
        out->first = wal->first_seq;
    }
    wal__unlock(wal);
    /* a log that was not replicated may end anywhere */
    if (out->terms.n > 0 && !history_is_end(&out->terms, out->written) &&
        (out->written == 0 ||
            history_find(&out->terms, out->written) != NULL)) {
        history_cut(&out->terms, out->written);
    }
    ASSERT(out->synced <= out->written);
}

uint64_t
wal_given(struct wal *wal, struct history *history)
{
    wal__lock(wal);
    ASSERT(wal->stream.is_guarded && !wal->stream.is_open);
    uint64_t seq = wal->stream.closed.seq;
    *history = wal->terms;
    wal__unlock(wal);
    return seq;
}

bool
wal_is_replica(struct wal *wal)
{
    wal__lock(wal);
    bool is = wal->stream.is_guarded;
    wal__unlock(wal);
    return is;
}
