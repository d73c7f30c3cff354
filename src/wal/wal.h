/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WAL_WAL_H
#define WAL_WAL_H

#include "base/alloc.h"
#include "base/disk.h"
#include "base/log.h"

#include <stdbool.h>
#include <stdint.h>

/* The append log, its writing end. One stream of batches for all shards: what
 * is appended while a batch is open is in that batch, and a commit writes the
 * open batch and all before it, so that what is on disk is always a prefix.
 * What was not synced yet stays in memory; after a failed write or sync it is
 * written to a new file, from the last good sync on, and the old file is never
 * synced again. Where that fails too the log is not writable until a later
 * attempt succeeds; it tries again by itself. */

enum wal_sync {
    WAL_SYNC_NONE,     /* written and synced in the background */
    WAL_SYNC_INTERVAL, /* written before the answer, synced soon after */
    WAL_SYNC_ALWAYS    /* synced before the answer */
};

struct history; /* wal/history.h */

struct wal_start {
    uint64_t epoch;        /* in the headers of files that are made; not 0 */
    uint64_t before_epoch; /* of file next_number - 1; 0: the same */
    uint64_t next_number;  /* of the next file; from 1 on */
    uint64_t next_seq;     /* of the next batch; from 1 on */
    uint64_t first_number; /* files before it are nobody's; 0: none */
    uint64_t before_end;   /* where that ends, durable; 0: there is none */
    bool is_replica;       /* see wal_replica.h */
    const struct history *terms; /* that the log had so far (wal/history.h);
                                  * NULL: none. Copied */
};

/* Told, on any thread and on several at once, when wal_outcome of some number
 * may have changed. No lock is held but one that only wal_listen and
 * wal_unlisten write under. It must not block and must not call the log, but
 * for wal_outcome. */
struct wal_listener {
    void (*moved_fn)(struct wal_listener *listener);
    struct wal_listener *next; /* the log's */
};

enum {
    WAL_FILE_BYTES_MIN = 4096,
    WAL_RETRY_MS = 250,
    WAL_STUCK_MS = 1000,
    WAL_SLOW_MS = 5,    /* more than the loss of a core for once takes */
    WAL_CALM_MS = 1000, /* so long after a slow write the thread writes */
    WAL_IDLE_MS = 100
};

struct wal_config {
    struct disk *disk;
    struct logger *logger;
    enum wal_sync sync;
    uint64_t interval_ms;        /* at most so long unsynced; >= 10 */
    uint64_t file_bytes;         /* a file is followed by the next from there
                                  * on; >= WAL_FILE_BYTES_MIN */
    uint64_t unsynced_bytes_max; /* kept in memory; answers wait beyond, and
                                  * changes are refused, see wal_fault */
    uint64_t retry_ms;           /* between attempts to be writable again; 0:
                                  * WAL_RETRY_MS */
    uint64_t stuck_ms;           /* so long no sync ends: the disk hangs; 0:
                                  * WAL_STUCK_MS */
    uint64_t slow_ms;            /* a longer write is slow; 0: WAL_SLOW_MS */
    uint64_t idle_ms;            /* so long all is synced and nothing comes:
                                  * a mark says so in the file; 0:
                                  * WAL_IDLE_MS */
    const struct alloc *alloc;   /* for what grows; NULL: the heap */
    const struct clock *clock;   /* NULL: the system's */
    /* What must be done before the first file is begun; called, by wal_open
     * and then by the log's thread, until it returns 0, an errno value while it
     * fails: as where file next_number - 1 cannot be made. NULL: nothing. */
    int (*prepare_fn)(void *context);
    int (*may_fn)(void *context); /* whether a file may be made now, or get its
                                   * name: 0 or an errno value. NULL: it may */
    void *context;
    struct wal_start start;
};

struct wal; /* opaque */

/* Prepares, makes the first file, durably, and starts the log's thread. A disk
 * that lets no file be made is as one that fails later: the log is open,
 * wal_fault says why nothing can be changed, and the thread tries again. What
 * config points to must outlive the log. *out is the caller's. 0 or
 * ERR_NO_MEMORY, ERR_NO_THREAD, ERR_DISK (the directory cannot be read). */
int wal_open(const struct wal_config *config, struct wal **out);

/* Commits and syncs all, begins an empty file that says where the last one
 * ends, if it can, ends the thread, frees all and nulls *wal. 0, or why not all
 * is synced, or in a file that is gone: the rest is lost then. */
int wal_close(struct wal **wal);

/* 0, or why changes must be refused now: an ERR_ of disk_err, ERR_NO_MEMORY,
 * ERR_LOG_FULL: twice unsynced_bytes_max are unsynced, some of them for
 * stuck_ms; or see wal_refuse.h. Any thread. */
int wal_fault(const struct wal *wal);

/* Takes over len bytes of whole entries (1..FRAME_PAYLOAD_MAX / 2) and returns
 * the number of their batch. Never fails: who does not want to add to a log
 * that cannot write asks wal_fault before; where memory is out for long and
 * nobody asks it aborts. Any thread; calls are in the log in their order. */
uint64_t wal_append(struct wal *wal, const void *entries, size_t len);

/* One of the entries of cells that are handed over. */
struct wal_row {
    uint64_t id;
    uint32_t at;     /* of its first byte */
    uint8_t counter; /* whose it is; any number that tells counters apart */
};

/* As wal_append, for n (>= 1) entries of cells (wal/entry.h) and nothing
 * else; row has them all, in their order. An entry that comes alone may take
 * the place of the last one of the same record in the open batch. */
uint64_t wal_append_rows(struct wal *wal, const void *entries, size_t len,
    const struct wal_row *row, size_t n);

/* The number of the last batch that has entries of callers; what is known now
 * is durable when that is. Any thread. */
uint64_t wal_last(struct wal *wal);

/* All that was appended is in batches up to the one returned, what comes later
 * in batches behind it. Any thread, also under a shard's lock. */
uint64_t wal_cut(struct wal *wal);

enum wal_outcome {
    WAL_COMMITTED, /* may be acknowledged */
    WAL_WAITS,     /* a listener will be told */
    WAL_FAILED     /* may not: it is unknown whether it will last */
};

/* Where batch seq stands by the rules of the mode. Once WAL_COMMITTED it stays
 * so, except under WAL_SYNC_NONE, where it is that always but while more than
 * unsynced_bytes_max are unsynced. Two loads; any thread. */
enum wal_outcome wal_outcome(struct wal *wal, uint64_t seq);

/* Sees to it that batch seq is committed, and all before it. Under
 * WAL_SYNC_INTERVAL the calling thread writes them, if nobody else is at it
 * and no write was slow in the last WAL_CALM_MS; else the log's thread is
 * woken. Never syncs or allocates. Returns wal_outcome(seq). */
enum wal_outcome wal_commit(struct wal *wal, uint64_t seq);

/* Waits until all batches up to seq are synced, whatever the mode. Not for
 * event loops. 0 or the ERR_ why not. */
int wal_sync_up_to(struct wal *wal, uint64_t seq);

/* Ends the file under way, unless it is empty and there still, and begins the
 * next one: file *number and later ones hold the batches after *seq, earlier
 * ones, which are durable, those up to it, and so all that were appended before
 * the call. Not for event loops. 0 or ERR_. */
int wal_rotate(struct wal *wal, uint64_t *number, uint64_t *seq);

/* Removes the files before number but for those that readers have pinned
 * (wal_pin.h); they must not be in the manifest. Not for event loops. */
void wal_forget(struct wal *wal, uint64_t number);

/* The listener must outlive its stay. wal_unlisten returns when it is not
 * being called and will not be. */
void wal_listen(struct wal *wal, struct wal_listener *listener);
void wal_unlisten(struct wal *wal, struct wal_listener *listener);

/* Tells the listeners that what others say of batches has changed. Any thread,
 * without a lock that they take. */
void wal_tell(struct wal *wal);

enum { WAL_LATENCIES = 32 /* powers of two: of microseconds, of bytes */ };

/* Figures of one moment. Marks are not in those of batches and of what is not
 * synced. */
#define WAL_STATS(X)                                                          \
    X(bytes, "bytes appended, batch headers included")                        \
    X(batches, "batches written")                                             \
    X(marks, "marks that all before is synced")                               \
    X(mark_seq, "number of the last mark, 0 until it is written")             \
    X(appends, "appends")                                                     \
    X(replaced, "of these, those put in the place of an earlier one")         \
    X(writes, "write calls")                                                  \
    X(slow_writes, "commits whose writes took longer than they should")       \
    X(syncs, "fdatasync calls")                                               \
    X(sync_failures, "writes and syncs that failed")                          \
    X(unsynced_bytes, "bytes appended and not synced yet")                    \
    X(unsynced_ms, "since when the oldest of them waits, in ms")              \
    X(last_seq, "number of the last batch")                                   \
    X(written_seq, "number of the last batch written")                        \
    X(synced_seq, "number of the last batch synced")                          \
    X(first_file, "number of the oldest log file")                            \
    X(file, "number of the log file under way")                               \
    X(file_bytes, "bytes in it")                                              \
    X(live_bytes, "bytes in all log files")                                   \
    X(pinned_bytes, "of these, in files that are only kept for readers")      \
    X(removed_files, "log files that somebody removed or changed while in use")

struct wal_stats {
#define X(name, text) uint64_t name;
    WAL_STATS(X)
#undef X
    uint64_t sync_us[WAL_LATENCIES]; /* syncs that took < 2^i us, */
    /* whose oldest change had waited < 2^i us when they were done; */
    uint64_t synced_us[WAL_LATENCIES];
    uint64_t batch_bytes[WAL_LATENCIES];   /* batches of < 2^i bytes, */
    uint64_t batch_appends[WAL_LATENCIES]; /* of < 2^i appends */
};

/* Of those the i that a number counts for: the first with number < 2^i, or the
 * last one. */
static inline unsigned
wal_latency_of(uint64_t number)
{
    unsigned i = number == 0 ? 0 : 64 - (unsigned)__builtin_clzll(number);
    return i < WAL_LATENCIES ? i : WAL_LATENCIES - 1;
}

void wal_stats(struct wal *wal, struct wal_stats *out);

/* Asserts the log's invariants, of its states, its positions and the memory
 * behind them. Any thread. */
void wal_verify(struct wal *wal);

#endif
