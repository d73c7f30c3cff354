/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_QSBR_H
#define BASE_QSBR_H

#include "base/mutex.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Quiescent-state-based reclamation (McKenney; Hart et al., "Performance of
 * memory reclamation for lockless synchronization", 2007): readers of shared
 * immutable data take no lock and write no shared line. A reader thread is
 * online while it may hold such pointers, and says so itself.
 *
 * Why not liburcu: doc/adr/0002. */

struct qsbr_reader {
    _Atomic uint64_t epoch; /* 0 while offline, else the epoch it entered */
    struct qsbr_reader *next, *prev; /* under qsbr.lock */
};

struct qsbr {
    _Atomic uint64_t epoch; /* starts at 1 */
    struct mutex lock;      /* the list of readers; never held for long */
    struct qsbr_reader *readers;
};

void qsbr_init(struct qsbr *qsbr);
void qsbr_fini(struct qsbr *qsbr); /* no reader may be left */

/* Adds or removes the calling thread's reader; it starts offline and must be
 * offline when removed. The caller owns the memory meanwhile. */
void qsbr_register(struct qsbr *qsbr, struct qsbr_reader *reader);
void qsbr_unregister(struct qsbr *qsbr, struct qsbr_reader *reader);

/* From here to qsbr_offline the thread may follow shared pointers. Calling it
 * while online is a quiescent point: pointers got before must not be used
 * after. The reader's own thread only. */
void qsbr_online(struct qsbr *qsbr, struct qsbr_reader *reader);
void qsbr_offline(struct qsbr_reader *reader);

/* Starts a grace period and returns its target, for qsbr_is_over: it covers
 * what was unpublished before the call. Does not block; any thread. */
uint64_t qsbr_begin(struct qsbr *qsbr);

/* True when every registered reader has been offline or quiescent since the
 * qsbr_begin that returned target: what it covers may then be freed, and what
 * earlier targets cover too. Never waits for a reader. Any thread that came by
 * target in an orderly way (a lock, an acquire); on the thread of an online
 * reader it is true only once that reader has said online again. It may
 * be false again after it was true, see qsbr.c: act on the first true. */
bool qsbr_is_over(struct qsbr *qsbr, uint64_t target);

/* Returns when every reader has been offline or quiescent since the call:
 * what was unpublished before it may then be freed. Blocks; the calling
 * thread must not be an online reader. */
void qsbr_wait(struct qsbr *qsbr);

#endif
