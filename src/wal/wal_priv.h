/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WAL_WAL_PRIV_H
#define WAL_WAL_PRIV_H

#include "base/lock.h"
#include "base/mutex.h"
#include "base/rwlock.h"
#include "base/steps.h"
#include "wal/frame.h"
#include "wal/history.h"
#include "wal/wal.h"
#include "wal/wal_file.h"
#include "wal/wal_place.h"
#include "wal/wal_stream.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The inside of the log's writing end; how the parts play together is at the
 * head of wal.c. */

/* ---- the log ---- */

enum { WAL_LINE_BYTES = 64, WAL_MAGIC = 0x77a1106e };

/* How the file under way is; the steps are in wal_moves.c. */
enum wal_state {
    WAL_STATE_NONE,    /* there is none yet */
    WAL_STATE_WELL,    /* it takes batches */
    WAL_STATE_FULL,    /* the next batch does not fit into it */
    WAL_STATE_NO_ROOM, /* given up, for want of room: what it has may be synced
                        * all the same */
    WAL_STATE_FAILED,  /* given up */
    WAL_STATE_REFUSED, /* and there is no new one: see disk_fault */
    WAL_STATE_COUNT
};

/* Who may change file and written, and seal. */
enum wal_turn {
    WAL_TURN_FREE,
    WAL_TURN_TAKEN,   /* by a caller or the thread */
    WAL_TURN_AWAITED, /* by a caller; the thread is next */
    WAL_TURN_LEFT,    /* to the thread, which is about to take it */
    WAL_TURN_COUNT
};

/* A batch whose number is not the one that is due: see wal_replica.c. */
struct wal_jump {
    uint64_t seq;
    const void *payload; /* borrowed */
    size_t len;
    struct history *terms; /* of the log with it; borrowed */
    bool is_short;         /* memory was out, and nothing has changed */
};

struct wal {
    uint32_t magic; /* WAL_MAGIC */
    struct wal_config config;

    _Alignas(WAL_LINE_BYTES) _Atomic int fault; /* see wal_write_fault */
    _Atomic int refused;                        /* see wal_refuse */
    _Alignas(WAL_LINE_BYTES) _Atomic uint64_t committed; /* last such batch */

    _Alignas(WAL_LINE_BYTES) struct lock lock; /* held shortly; all down to
                                                * the next rule */
    struct wal_stream stream;                  /* see its first fields */
    struct wal_mark written; /* handed to the file under way */
    struct wal_mark synced;
    bool follows_wait; /* somebody waits for written to move */
    bool is_more;      /* it has: wal__tell_follows is due */
    enum wal_turn turn;
    enum wal_state state;
    struct wal_failure failure; /* why the file was given up */
    int disk_fault;             /* ERR_; not 0 where WAL_STATE_REFUSED */
    uint64_t slow_until_ns; /* the thread writes until then, since a write was
                             * slow; 0: callers do */
    uint64_t since_ns;   /* of the oldest append that no sync under way or done
                          * covers (none: no write); 0: there is none */
    uint64_t syncing_ns; /* the same of what the sync under way covers */
    uint64_t idle_ns;    /* when a mark is due unless something comes; 0: it
                          * is not */
    uint64_t mark_seq;   /* of the last mark; 0: none */
    uint64_t wanted;     /* last batch that a caller waits for */
    uint64_t sync_wanted;
    uint64_t rotate_wanted; /* last batch that must be in an earlier file */
    uint64_t rotate_ns;     /* not before; after an attempt that failed */
    uint64_t n_unrotated;   /* such attempts */
    bool is_staying;        /* the last one failed, and it has been said */
    int rotate_fault;       /* ERR_ of the last one */
    bool is_look_wanted;    /* whether the file is there still */
    struct history terms;  /* whose the log was and is, up to its last batch */
    struct wal_jump *jump; /* of a caller that waits; NULL: none */
    uint64_t spoilt;       /* number of a file that somebody has found to be
                             * another one, or changed; 0: none */
    uint64_t retry_ns;     /* where the file is given up: next attempt */
    uint64_t sleep_ns;     /* until when the thread sleeps; 0: it does not */
    bool is_stopping;
    struct lock_cond wake;  /* the thread: work, or an end of its sleep */
    struct lock_cond left;  /* the thread: the turn is left to it */
    struct lock_cond moved; /* callers: synced, file or disk_fault */
    struct wal_made made[WAL_MADE];
    uint64_t first_file;
    uint64_t first_seq; /* of a replica's log: that first_file begins with */
    uint64_t old_bytes; /* of files before the one under way */
    struct wal_stats stats;
    uint64_t looked_ns; /* when the thread last saw the file's name; its own */

    /* Who has the turn; number, start and fd also the thread, and under the
     * lock anybody. */
    struct wal_file file;
    bool is_prepared; /* who has the turn: prepare_fn is done with */

    struct mutex forget_lock; /* held while files are removed; before
                                  * lock */
    struct wal_pin *pins;     /* borrowed from readers */
    uint64_t forgotten;       /* files before it are in images */
    uint64_t noted_file;      /* whose first_seq is; 0: not known */

    struct rwlock listen_lock; /* shared during calls */
    struct wal_listener *listeners;
    struct wal_follow *follows; /* borrowed */

    pthread_t thread;
};

_Static_assert(offsetof(struct wal, stream.is_short) / WAL_LINE_BYTES ==
        offsetof(struct wal, lock) / WAL_LINE_BYTES,
    "an append writes one cache line beside its own bytes");

/* ---- wal_state.c ---- */

static inline void
wal__lock(struct wal *wal)
{
    lock_take(&wal->lock);
}

static inline void
wal__unlock(struct wal *wal)
{
    lock_leave(&wal->lock);
}

/* By the clock that the log was handed; also without the lock. */
static inline uint64_t
wal__now_ns(const struct wal *wal)
{
    return clock_now_ns(wal->config.clock);
}

/* Whether somebody has the turn to write. */
static inline bool
wal__is_taken(const struct wal *wal)
{
    return wal->turn == WAL_TURN_TAKEN || wal->turn == WAL_TURN_AWAITED;
}

/* Whether the file under way is given up. */
static inline bool
wal__is_failing(const struct wal *wal)
{
    return wal->state >= WAL_STATE_NO_ROOM;
}

/* Ends the thread's sleep. */
void wal__wake(struct wal *wal);
/* Since when the oldest append waits that is not synced, as far as since_ns
 * and syncing_ns tell; 0: none does. */
uint64_t wal__oldest_ns(const struct wal *wal);
/* The number of the last batch that is no mark. */
uint64_t wal__last(const struct wal *wal);
/* Bytes that a sync is still to cover: a mark alone need not be synced. */
uint64_t wal__unsynced(const struct wal *wal);
/* Makes wal_fault say what is so. */
void wal__show_fault(struct wal *wal);
/* Gives the file under way up. */
void wal__fail(struct wal *wal, const struct wal_failure *failure);
/* Whether writes are slow, so that they are left to the thread. */
bool wal__is_slow(struct wal *wal);
/* Whether the thread should allocate; who calls has the turn, or is the
 * thread. */
bool wal__allocate_is_due(const struct wal *wal);
/* The last batch that is known to be synced: until the first file is made
 * nobody has synced what was there before. */
static inline uint64_t
wal__synced_seq(const struct wal *wal)
{
    return wal->file.fd < 0 ? 0 : wal->synced.seq;
}
/* Whether answers wait for a sync. now_ns: of wal__now_ns, a moment ago; 0:
 * not known. */
bool wal__is_held(const struct wal *wal, uint64_t now_ns);
/* Commits what may be, now_ns as above. True: listeners must be told, without
 * the lock. */
bool wal__publish(struct wal *wal, uint64_t now_ns);
/* Publishes and tells, those who follow too; lets go of the lock for that. */
void wal__settle(struct wal *wal);
void wal__notify(struct wal *wal); /* without the lock */
/* Whether wal__tell_follows is due, which the caller sees to. */
static inline bool
wal__take_more(struct wal *wal)
{
    bool is_more = wal->is_more;
    wal->is_more = false;
    return is_more;
}
/* Writes all that is appended, from now_ns on; the time when it is done. Who
 * calls has the turn; lets go of the lock. */
uint64_t wal__write(struct wal *wal, uint64_t now_ns);
/* Takes over that all up to *mark is durable. */
void wal__set_synced(struct wal *wal, const struct wal_mark *mark);
/* The thread's: has the turn when it returns. */
void wal__take_turn(struct wal *wal);
void wal__give_turn(struct wal *wal);
/* Begins the next file with all that is not synced; who calls has the turn.
 * Lets go of the lock. False: *failure says why, and nothing has changed. */
bool wal__begin_file(
    struct wal *wal, uint64_t before_end, struct wal_failure *failure);

/* ---- wal_moves.c: all with wal->lock held ---- */

static const unsigned wal__turn_steps[WAL_TURN_COUNT] = {
    [WAL_TURN_FREE] = STEP_TO(WAL_TURN_TAKEN),
    [WAL_TURN_TAKEN] = STEP_TO(WAL_TURN_FREE) | STEP_TO(WAL_TURN_AWAITED),
    [WAL_TURN_AWAITED] = STEP_TO(WAL_TURN_LEFT),
    [WAL_TURN_LEFT] = STEP_TO(WAL_TURN_TAKEN)};

/* Each asserts that the step is legal. */
void wal__move(struct wal *wal, enum wal_state to);
static inline void
wal__move_turn(struct wal *wal, enum wal_turn to)
{
    ASSERT_STEP(wal__turn_steps, wal->turn, to);
    wal->turn = to;
}

/* Each asserts synced <= written <= closed <= appended, and that the position
 * does not go back. */
static inline void
wal__expect_order(const struct wal_mark *a, const struct wal_mark *b)
{
    ASSERT(a->stream <= b->stream);
    ASSERT(a->seq <= b->seq);
}

static inline void
wal__set_written(struct wal *wal, const struct wal_mark *mark)
{
    wal__expect_order(&wal->written, mark);
    wal__expect_order(mark, &wal->stream.closed);
    wal->written = *mark; /* behind synced, as the old one was */
    wal->is_more |= wal->follows_wait;
    wal->follows_wait = false;
}

void wal__set_durable(struct wal *wal, const struct wal_mark *mark);
/* All is synced: the next batch has number seq, far above the one that is
 * due. */
void wal__set_next(struct wal *wal, uint64_t seq);
/* All is synced and in one chunk: its memory is used from the front again. */
void wal__begin_again(struct wal *wal);
/* Asserts all invariants. */
void wal__verify(const struct wal *wal);

/* ---- wal_follow.c ---- */

/* Without the lock. */
void wal__tell_follows(struct wal *wal);

/* ---- wal_thread.c ---- */

/* Tells the operator that changes are refused from now on. */
void wal__say_failed(
    struct wal *wal, const struct wal_failure *first, int fault);

/* Sees to it that what was just appended does not lie for ever; was_short: of
 * memory, before. */
void wal__note_append(struct wal *wal, bool was_short);

/* How long what is appended may lie until the thread takes it, in ns. */
uint64_t wal__due_ns(const struct wal *wal);
/* So many bytes that are not written make it take them, under
 * WAL_SYNC_NONE. */
enum { WAL_LAZY_BYTES = 1 << 20 };
void *wal__run(void *wal);

#endif
