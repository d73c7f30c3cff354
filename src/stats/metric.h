/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STATS_METRIC_H
#define STATS_METRIC_H

#include <stdatomic.h>
#include <stdint.h>

/* What workers count. Names and order of the first block are memcached's
 * (doc/protocol.txt of memcached, "General-purpose statistics"); the second
 * block is ours and is shown by "stats counters" only. */
#define METRIC_GENERAL(X)                                                     \
    X(cmd_get, "keys asked for by get and gets")                              \
    X(cmd_set, "storage commands")                                            \
    X(cmd_flush, "flush_all commands")                                        \
    X(cmd_touch, "keys of touch, gat and gats")                               \
    X(cmd_meta, "items inspected by me, as memcached counts it")              \
    X(get_hits, "keys asked for and found")                                   \
    X(get_misses, "keys asked for and not found")                             \
    X(delete_misses, "deletes of keys not found")                             \
    X(delete_hits, "deletes of keys found")                                   \
    X(incr_misses, "incr of keys not found")                                  \
    X(incr_hits, "incr of keys found")                                        \
    X(decr_misses, "decr of keys not found")                                  \
    X(decr_hits, "decr of keys found")                                        \
    X(cas_misses, "cas of keys not found")                                    \
    X(cas_hits, "cas that stored")                                            \
    X(cas_badval, "cas with another unique than the stored one")              \
    X(touch_hits, "touch of keys found")                                      \
    X(touch_misses, "touch of keys not found")                                \
    X(store_too_large, "sets refused because the value is above -I")          \
    X(store_no_memory, "sets refused because memory is out")                  \
    X(auth_cmds, "logins, whether or not they succeeded")                     \
    X(auth_errors, "logins that did not")                                     \
    X(bytes_read, "bytes read from clients")                                  \
    X(bytes_written, "bytes written to clients")                              \
    X(conn_yields, "turns ended by -R with commands left")                    \
    X(ssl_handshake_errors, "TLS handshakes that failed")                     \
    X(ssl_proto_errors, "TLS connections that broke after that")              \
    X(ssl_new_sessions, "TLS sessions put in the cache to be resumed")

#define METRIC_COUNTERS(X)                                                    \
    X(cell_gets, "cells read")                                                \
    X(cell_changes, "changes of cells and records that were done")            \
    X(cell_refused, "changes refused with CLIENT_ERROR")                      \
    X(cell_saturated, "increments stopped at a column's max")                 \
    X(cell_numbered, "of the changes done, those that a producer numbered")   \
    X(cell_repeats, "of these, repeats: done before, and only answered")      \
    X(unread_reads, "numbers of what is unread that were read")               \
    X(marks_moved, "changes that moved a mark")                               \
    X(marks_behind, "sets that moved none: it was there, or further")         \
    X(member_adds, "changes that made a member, see members=")                \
    X(member_repeats, "sets and adds of what was a member already")           \
    X(member_removes, "changes after which one was a member no more")         \
    X(members_below,                                                          \
        "keys of members=about whose id is below what the column knows")      \
    X(follow_sets, "lists stored, marked or changed, see follows=")           \
    X(follow_reads, "lists read, or one id of them")                          \
    X(follow_ids, "ids whose columns were read for that")                     \
    X(follow_misses, "reads that found no list")                              \
    X(not_owned,                                                              \
        "requests refused, or keys answered as misses: of another server's "  \
        "ids (--owns)")                                                       \
    X(moved_refused,                                                          \
        "requests refused: of ids that were handed over to another group")    \
    X(noreply_refused, "changes without a reply, refused or unsure")          \
    X(dialect_misfits, "storage lines on a counter's name that do not fit")   \
    X(reserved_key_refused, "commands on an item with a counter's name")      \
    X(value_count_refused, "changes with a wrong number of values, refused")  \
    X(near_cells, "keys that look like a counter's and are none")             \
    X(calls_parked, "calls to the store that were answered later")            \
    X(turns_held, "turns whose replies waited for the log")                   \
    X(changes_unsure, "changes done, but answered as of unknown outcome")     \
    X(changes_late, "of these, changes whose commit was not waited for")      \
    X(reads_held, "replies that showed what was not committed, and waited")   \
    X(reads_unsure, "of these, answered with an error: the commit failed")    \
    X(access_refused, "requests refused to who may not make them")            \
    X(slow_by_parse, "slow commands (stats slow): most of it was the work")   \
    X(slow_by_lock, "of these: waited for the lock of a shard")               \
    X(slow_by_room, "of these: waited for memory for counters")               \
    X(slow_by_cold, "of these: waited for blocks of segments")                \
    X(slow_by_commit, "of these: waited for the log, or replicas")            \
    X(slow_by_socket, "of these: waited for a client to read")                \
    X(slow_by_queue, "of these: waited for other turns, or threads")          \
    X(slow_logins, "connections closed: no login in time")                    \
    X(revoked_logins,                                                         \
        "connections closed: their user is gone, or has changed")             \
    X(idle_kicks, "connections closed: nothing said for -o idle_timeout")     \
    X(slow_commands, "connections closed: command not complete in time")      \
    X(slow_readers, "connections closed: replies not read in time")           \
    X(memory_kicks, "connections closed: slow, and the memory was needed")    \
    X(killed, "connections closed: by kill conn")                             \
    X(http_kicks, "connections closed: they spoke HTTP")                      \
    X(garbage_kicks, "connections closed: they spoke no protocol of ours")    \
    X(tls_slow_handshakes, "connections closed: TLS handshake not in time")   \
    X(tls_crowded_out, "connections closed: too many TLS handshakes")

/* Shown with these; their metrics are in seconds (server/metrics_table.h). */
#define METRIC_TIMES(X)                                                       \
    X(lock_wait_us, "microseconds that workers slept for locks of shards")

enum metric {
#define X(name, text) METRIC_##name,
    METRIC_GENERAL(X) METRIC_COUNTERS(X) METRIC_TIMES(X)
#undef X
        METRIC_COUNT
};

/* One thread's cells, alone on their cache lines. Written by the owner thread
 * only, read by any. */
struct metric_set {
    _Alignas(64) _Atomic uint64_t cell[METRIC_COUNT];
};

/* Adds to a cell of the calling thread's own set: one writer, so a plain load
 * and store, no read-modify-write. relaxed: a sum is no synchronisation. */
static inline void
metric_add(struct metric_set *set, enum metric metric, uint64_t n)
{
    uint64_t old =
        atomic_load_explicit(&set->cell[metric], memory_order_relaxed);
    atomic_store_explicit(&set->cell[metric], old + n, memory_order_relaxed);
}

/* Adds every cell of set to sum[METRIC_COUNT]. Any thread. */
void metric_sum(const struct metric_set *set, uint64_t *sum);

/* Static storage. */
const char *metric_name(enum metric metric);

#endif
