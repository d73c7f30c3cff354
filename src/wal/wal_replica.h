/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WAL_WAL_REPLICA_H
#define WAL_WAL_REPLICA_H

#include "wal/entry.h"
#include "wal/history.h"
#include "wal/wal.h"

#include <stddef.h>
#include <stdint.h>

/* The log of a directory of which several servers have copies. Numbers are
 * those of wal/seq.h. One of the servers, the primary, gives them out; the
 * others store its batches under the same numbers and write nothing of their
 * own: no marks, and no numbers are left out by a start. So
 *
 * - wal_start has is_replica, and next_seq is what replay_end says, without the
 *   gap that a start leaves elsewhere: numbers come again only with the same
 *   batches, and a primary begins a term, which is far enough above.
 * - wal_append must not be called while the log is a replica's (asserted). */

/* Stores the batch of that number as it is: len (1..FRAME_PAYLOAD_MAX) bytes of
 * whole entries. From there on it is as one that was appended: wal_commit,
 * wal_outcome and wal_stats are about it, too. A number that is not the next
 * one begins a new file; what was before is synced first, for which the caller
 * waits. Such a jump is taken where the batch begins with a term, which began
 * behind the last batch here; or, as long as the log has no term, where the
 * number is SEQ_GAP or more above the next one: that was a start.
 *
 * 0; ERR_LOG_ORDER: it is none of these; what wal_fault says; ERR_NO_MEMORY.
 * Nothing has changed then. One thread at a time, and no event loop. */
int wal_put_batch(
    struct wal *wal, uint64_t seq, const void *payload, size_t len);

/* Begins a term, behind all that the log has: a new file, whose first batch has
 * the entry and the number *seq. Its last_seq is set here, the rest of it is
 * right. The log is a primary's then: appends are of that term. The batch is
 * written, and wal_position knows the term; only where the disk fails in that
 * moment it is written when the disk is well again. What is acknowledged must
 * wait until *seq is committed. 0; ERR_LOG_ORDER: the term is not far enough
 * above the last batch (history_next_term); what wal_fault says; ERR_NO_MEMORY.
 * Nothing has changed then. Where the log is a replica's; not for event loops,
 * nor beside wal_put_batch. */
int wal_begin_term(struct wal *wal, struct entry_term *term, uint64_t *seq);

/* True where the log has batch seq, or one behind it. Any thread. */
bool wal_has_batch(struct wal *wal, uint64_t seq);

/* Where the log is, of one moment. Its terms are those up to written: of a term
 * whose first batch is on its way to the file they know nothing yet. */
struct wal_position {
    uint64_t begin; /* it has all batches behind this one; only of a log that
                     * was opened as a replica's, else 0 */
    uint64_t first; /* the one that comes next, likewise: of a later term
                     * where that began right behind */
    uint64_t last;  /* that it was given; marks are some, too */
    uint64_t written;
    uint64_t written_bytes; /* up to there, since the log was opened */
    uint64_t synced;        /* <= written */
    struct history terms;
};

/* Any thread; does not wait for the disk. */
void wal_position(struct wal *wal, struct wal_position *out);

/* The last batch that a replica's log was given; *history: its terms, with that
 * of a batch that is not written yet. Any thread; does not wait. */
uint64_t wal_given(struct wal *wal, struct history *history);

/* The terms of the log, with those that have begun since it was opened. Any
 * thread. */
void wal_terms(struct wal *wal, struct history *out);

/* True where it is. Any thread. */
bool wal_is_replica(struct wal *wal);

/* The log is a replica's from here on: nobody appends any more. Any thread. */
void wal_become_replica(struct wal *wal);

#endif
