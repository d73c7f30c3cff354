/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DURABLE_CHECKPOINT_H
#define DURABLE_CHECKPOINT_H

#include "base/mutex.h"
#include "call/call_queue.h"
#include "durable/archive.h"
#include "durable/durable.h"
#include "durable/own_files.h"

#include <pthread.h>

/* Some bytes of the log file under way, as a look found them: what was synced
 * stays as it is. */
enum { PROBE_BYTES = 32 };
struct probe {
    uint64_t number; /* of the file; 0: there are none */
    uint64_t at;
    uint8_t bytes[PROBE_BYTES];
};

struct snapshot; /* durable/snapshot.h */

enum {
    CHECKPOINTER_MAGIC = 0x0c4ec001,
    CHECKPOINTER_SNAPSHOTS = 2 /* the second one keeps names */
};

/* The thread that makes checkpoints. Part of the store; nobody else calls it.
 */
struct checkpointer {
    uint32_t magic; /* CHECKPOINTER_MAGIC, while there is a thread */
    struct durable *durable;
    _Atomic(const struct schema *) *schema; /* the store's */
    /* The manifest on the disk may not be the one in memory: at first, since
     * loading leaves out what has no counter any more, and where writing one
     * failed. The thread's. */
    bool is_in_doubt;
    struct archive archive; /* the thread's */
    bool owes_log;       /* log files that no start needs were kept for who has
                          * their names, or have no copy in the archive; the
                          * thread's */
    bool wants_ballast;  /* to be made, once the log is well; the thread's */
    uint64_t ballast_ns; /* not before, after a try that failed; likewise */
    uint64_t n_missing;  /* files found missing (checkpoint_look.c); the
                         * thread's, until it is joined */
    uint64_t n_lost;     /* segment files found missing, which are not in
                         * n_missing; likewise */
    bool is_foreign;     /* MANIFEST is another server's; the thread's, until
                              * it is joined */
    uint64_t owner_ns;   /* when that is looked at next; the thread's */
    uint64_t say_foreign_ns;         /* when it is said again; likewise */
    struct own_files own[OWN_KINDS]; /* the thread's */
    struct probe probe;              /* likewise */
    uint64_t say_lost_ns; /* when that is said again; the thread's */
    /* Of the tables of members=about (checkpoint_about.c); the thread's. */
    uint64_t about_log;    /* the file that the last pass began; 0: none did */
    uint64_t about_logged; /* bytes of the log then */
    uint64_t about_budget; /* bytes of tables that may be written */
    bool wants_all_abouts; /* images of them are gone */
    bool wants_all_names;  /* likewise, of names */
    /* Of the last pass that came through; the thread's. */
    uint64_t passed_file;  /* the log file that it began; 0: there was none */
    uint64_t passed_bytes; /* that had been logged then, since the start */
    bool is_asked; /* somebody wants the pass under way; the thread's */
    /* Failures, and how often they are said (checkpoint_log.c); the
     * thread's. */
    uint64_t n_failed; /* passes since one came through */
    int said_err;      /* the last one that was said */
    uint64_t say_ns;   /* when the next one is */
    uint64_t say_gap_ns;
    pthread_t thread;
    struct mutex lock; /* all below */
    pthread_cond_t changed;
    struct call_queue queue; /* who waits for the next checkpoint */
    bool is_wanted;
    struct store_call *publish; /* who waits for segments to be in the
                                 * manifest, the last one first */
    bool is_publish_wanted;
    uint64_t publish_ns; /* not before, after a try that failed */
    /* Of those that are open, and of those that keep names: somebody waits for
     * it, or has it; NULL: nobody. */
    struct snapshot *snapshot[CHECKPOINTER_SNAPSHOTS];
    bool is_snapshot_due[CHECKPOINTER_SNAPSHOTS]; /* he waits */
    bool is_urgent; /* do not hold back for others */
    bool stopping;
    int last_err; /* of the last pass; the thread's until it is joined */
};

/* The time, by the store's clock. Any thread. */
static inline uint64_t
checkpointer_now_ns(const struct checkpointer *checkpointer)
{
    return clock_now_ns(checkpointer->durable->config.clock);
}

/* durable has loaded. 0 or ERR_NO_THREAD. */
int checkpointer_start(struct checkpointer *checkpointer,
    struct durable *durable, _Atomic(const struct schema *) *schema);

/* Tells the thread to end soon, after one more checkpoint where at_end, and
 * to answer who waits. Any thread. */
void checkpointer_end(struct checkpointer *checkpointer, bool at_end);

/* The same, and waits for it. Where files are missing there is a last
 * checkpoint in any case. 0, or why it failed; n_missing is not 0 then where a
 * start will be refused. n_lost is not 0 where that is so for want of a segment
 * file. */
int checkpointer_stop(struct checkpointer *checkpointer, bool at_end);

/* Asks for a checkpoint that begins after the call. call (NULL: nobody waits)
 * is a struct store_checkpoint's; its done_fn is called on the thread. Any
 * thread. */
void checkpointer_want(
    struct checkpointer *checkpointer, struct store_checkpoint *checkpoint);

/* Asks for a manifest that names the segments that cover something now
 * (durable_segments): at once, or with the step of a pass that is under way.
 * Where it cannot be written that is tried again; until then the manifest
 * before it, its images and the log have all that was taken out of the engine.
 * checkpoint as above, NULL: nobody waits; its err is 0, or ERR_CLOSED at a
 * stop that comes first. Any thread, without edit_lock. */
void checkpointer_want_segments(
    struct checkpointer *checkpointer, struct store_checkpoint *checkpoint);

/* Asks for a snapshot, with the next manifest that is written, which is soon:
 * answered by its done_fn, on the thread or at once. Nobody else has one, or
 * waits for one; who wants one that keeps names is refused then. Any thread,
 * without edit_lock. */
void checkpointer_want_snapshot(
    struct checkpointer *checkpointer, struct snapshot *snapshot);

/* It is closed; part of snapshot_close. */
void checkpointer__end_snapshot(
    struct checkpointer *checkpointer, const struct snapshot *snapshot);

#endif
