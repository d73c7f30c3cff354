/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_METRICS_TABLE_H
#define SERVER_METRICS_TABLE_H

#include "repl/node_figures.h"
#include "stats/metric.h"

/* What /metrics says, each made of one figure of `stats`: family, type, labels,
 * group and name of the figure, unit of the figure, help. Rows of a family
 * stand together. Names that begin with memcached_ are those of Prometheus's
 * memcached_exporter, and mean the same. A counter's family ends without the
 * _total of its samples; seconds are what MS and US become.
 *
 * doc/metrics.md and the rules and the dashboard in contrib come out of this
 * table. */

#define METRICS_OF_MEMCACHED(X)                                               \
    X("memcached_uptime_seconds", GAUGE, "", general, "uptime", ONE,          \
        "Since when the server runs.")                                        \
    X("memcached_time_seconds", GAUGE, "", general, "time", ONE,              \
        "The server's clock.")                                                \
    X("memcached_process_user_cpu_seconds", COUNTER, "", general,             \
        "rusage_user", TEXT, "Processor time of the process itself.")         \
    X("memcached_process_system_cpu_seconds", COUNTER, "", general,           \
        "rusage_system", TEXT, "Processor time of the kernel for it.")        \
    X("memcached_max_connections", GAUGE, "", general, "max_connections",     \
        ONE, "Connections that there may be, -c.")                            \
    X("memcached_current_connections", GAUGE, "", general,                    \
        "curr_connections", ONE, "Connections now.")                          \
    X("memcached_connections", COUNTER, "", general, "total_connections",     \
        ONE, "Connections that were accepted.")                               \
    X("memcached_connections_rejected", COUNTER, "", general,                 \
        "rejected_connections", ONE,                                          \
        "Connections refused at the limit of -c.")                            \
    X("memcached_connections_yielded", COUNTER, "", general, "conn_yields",   \
        ONE, "Turns ended by -R with commands left.")                         \
    X("memcached_connections_listener_disabled", COUNTER, "", general,        \
        "listen_disabled_num", ONE, "Times that accepting was paused.")       \
    X("memcached_accepting_connections", GAUGE, "", general,                  \
        "accepting_conns", ONE, "1 while connections are accepted.")          \
    X("memcached_commands", COUNTER, "command=\"get\",status=\"hit\"",        \
        general, "get_hits", ONE,                                             \
        "Commands by what came of them; of get, keys. Those of set are all "  \
        "that store, cas too.")                                               \
    X("memcached_commands", COUNTER, "command=\"get\",status=\"miss\"",       \
        general, "get_misses", ONE, "")                                       \
    X("memcached_commands", COUNTER, "command=\"set\",status=\"hit\"",        \
        general, "cmd_set", ONE, "")                                          \
    X("memcached_commands", COUNTER, "command=\"touch\",status=\"hit\"",      \
        general, "touch_hits", ONE, "")                                       \
    X("memcached_commands", COUNTER, "command=\"touch\",status=\"miss\"",     \
        general, "touch_misses", ONE, "")                                     \
    X("memcached_commands", COUNTER, "command=\"delete\",status=\"hit\"",     \
        general, "delete_hits", ONE, "")                                      \
    X("memcached_commands", COUNTER, "command=\"delete\",status=\"miss\"",    \
        general, "delete_misses", ONE, "")                                    \
    X("memcached_commands", COUNTER, "command=\"incr\",status=\"hit\"",       \
        general, "incr_hits", ONE, "")                                        \
    X("memcached_commands", COUNTER, "command=\"incr\",status=\"miss\"",      \
        general, "incr_misses", ONE, "")                                      \
    X("memcached_commands", COUNTER, "command=\"decr\",status=\"hit\"",       \
        general, "decr_hits", ONE, "")                                        \
    X("memcached_commands", COUNTER, "command=\"decr\",status=\"miss\"",      \
        general, "decr_misses", ONE, "")                                      \
    X("memcached_commands", COUNTER, "command=\"cas\",status=\"hit\"",        \
        general, "cas_hits", ONE, "")                                         \
    X("memcached_commands", COUNTER, "command=\"cas\",status=\"miss\"",       \
        general, "cas_misses", ONE, "")                                       \
    X("memcached_commands", COUNTER, "command=\"cas\",status=\"badval\"",     \
        general, "cas_badval", ONE, "")                                       \
    X("memcached_commands", COUNTER, "command=\"flush\",status=\"hit\"",      \
        general, "cmd_flush", ONE, "")                                        \
    X("memcached_read_bytes", COUNTER, "", general, "bytes_read", ONE,        \
        "Bytes read from clients.")                                           \
    X("memcached_written_bytes", COUNTER, "", general, "bytes_written", ONE,  \
        "Bytes written to clients.")                                          \
    X("memcached_limit_bytes", GAUGE, "", general, "limit_maxbytes", ONE,     \
        "Memory for items, -m.")                                              \
    X("memcached_current_bytes", GAUGE, "", general, "bytes", ONE,            \
        "Memory that items take.")                                            \
    X("memcached_current_items", GAUGE, "", general, "curr_items", ONE,       \
        "Items now.")                                                         \
    X("memcached_items", COUNTER, "", general, "total_items", ONE,            \
        "Items that were stored.")                                            \
    X("memcached_items_evicted", COUNTER, "", general, "evictions", ONE,      \
        "Items given up for others.")                                         \
    X("memcached_items_reclaimed", COUNTER, "", general, "reclaimed", ONE,    \
        "Items whose place was taken when they had expired.")

#define METRICS_OF_LOGINS(X)                                                  \
    X("tallyd_logins", COUNTER, "", general, "auth_cmds", ONE, "Logins.")     \
    X("tallyd_login_failures", COUNTER, "", general, "auth_errors", ONE,      \
        "Logins that were refused.")                                          \
    X("tallyd_tls_handshake_errors", COUNTER, "", general,                    \
        "ssl_handshake_errors", ONE, "TLS handshakes that failed.")           \
    X("tallyd_lock_wait_seconds", COUNTER, "", counters, "lock_wait_us", US,  \
        "How long workers slept for locks of shards, all together.")

#define METRICS_OF_MEMORY(X)                                                  \
    X("tallyd_resident_bytes", GAUGE, "", memory, "resident", ONE,            \
        "Memory of the process, as the kernel counts it.")                    \
    X("tallyd_memory_bytes", GAUGE, "kind=\"hot\"", memory, "hot_used", ONE,  \
        "Memory in use, by what for; see stats memory.")                      \
    X("tallyd_memory_bytes", GAUGE, "kind=\"items\"", memory, "items_used",   \
        ONE, "")                                                              \
    X("tallyd_memory_bytes", GAUGE, "kind=\"requests\"", memory,              \
        "requests_used", ONE, "")                                             \
    X("tallyd_memory_bytes", GAUGE, "kind=\"log\"", memory, "log_used", ONE,  \
        "")                                                                   \
    X("tallyd_memory_bytes", GAUGE, "kind=\"cold_cache\"", memory,            \
        "cold_cache_used", ONE, "")                                           \
    X("tallyd_memory_bytes", GAUGE, "kind=\"cold_maps\"", memory,             \
        "cold_maps", ONE, "")                                                 \
    X("tallyd_memory_bytes", GAUGE, "kind=\"sorted\"", memory, "sorted_used", \
        ONE, "")                                                              \
    X("tallyd_memory_limit_bytes", GAUGE, "kind=\"hot\"", memory,             \
        "hot_limit", ONE, "How much of it there may be.")                     \
    X("tallyd_memory_limit_bytes", GAUGE, "kind=\"items\"", memory,           \
        "items_limit", ONE, "")                                               \
    X("tallyd_memory_limit_bytes", GAUGE, "kind=\"requests\"", memory,        \
        "requests_limit", ONE, "")                                            \
    X("tallyd_memory_limit_bytes", GAUGE, "kind=\"log\"", memory,             \
        "log_limit", ONE, "")                                                 \
    X("tallyd_memory_limit_bytes", GAUGE, "kind=\"cold_cache\"", memory,      \
        "cold_cache_limit", ONE, "")                                          \
    X("tallyd_memory_limit_bytes", GAUGE, "kind=\"sorted\"", memory,          \
        "sorted_limit", ONE, "")                                              \
    X("tallyd_hot_garbage_bytes", GAUGE, "", memory, "hot_garbage", ONE,      \
        "Of the hot memory, what waits for readers to go on.")

#define METRICS_OF_LOG(X)                                                     \
    X("tallyd_log_bytes", COUNTER, "", wal, "bytes", ONE,                     \
        "Bytes appended to the log.")                                         \
    X("tallyd_log_batches", COUNTER, "", wal, "batches", ONE,                 \
        "Batches written to the log.")                                        \
    X("tallyd_log_appends", COUNTER, "", wal, "appends", ONE,                 \
        "Appends to the log.")                                                \
    X("tallyd_log_writes", COUNTER, "", wal, "writes", ONE,                   \
        "Writes of the log.")                                                 \
    X("tallyd_log_slow_writes", COUNTER, "", wal, "slow_writes", ONE,         \
        "Of these, those that took longer than 5 ms.")                        \
    X("tallyd_log_sync_failures", COUNTER, "", wal, "sync_failures", ONE,     \
        "Writes and syncs of the log that failed.")                           \
    X("tallyd_log_unsynced_bytes", GAUGE, "", wal, "unsynced_bytes", ONE,     \
        "Bytes of the log that are not synced.")                              \
    X("tallyd_log_unsynced_seconds", GAUGE, "", wal, "unsynced_ms", MS,       \
        "How long the oldest of them has waited.")                            \
    X("tallyd_log_last_batch", GAUGE, "", wal, "last_seq", ONE,               \
        "Number of the last batch.")                                          \
    X("tallyd_log_files_bytes", GAUGE, "", wal, "live_bytes", ONE,            \
        "Bytes of all log files.")                                            \
    X("tallyd_log_pinned_bytes", GAUGE, "", wal, "pinned_bytes", ONE,         \
        "Of these, those only kept for readers of the log.")                  \
    X("tallyd_log_archived_files", COUNTER, "", wal, "archived_files", ONE,   \
        "Log files copied to --wal-archive.")                                 \
    X("tallyd_log_archive_failures", COUNTER, "", wal, "archive_failures",    \
        ONE, "Times that one could not be copied.")                           \
    X("tallyd_log_archive_failing", GAUGE, "", wal, "archive_failing", ONE,   \
        "1 while the next one cannot be: log files are kept.")                \
    X("tallyd_missing_files", COUNTER, "", wal, "missing_files", ONE,         \
        "Files of the directory that others removed or changed.")             \
    X("tallyd_foreign_manifest", GAUGE, "", wal, "foreign_manifest", ONE,     \
        "1 while another server has the data directory.")                     \
    X("tallyd_checkpoints", COUNTER, "", wal, "checkpoints", ONE,             \
        "Checkpoints made.")                                                  \
    X("tallyd_checkpoint_failures", COUNTER, "", wal, "checkpoint_failures",  \
        ONE, "Checkpoints given up.")                                         \
    X("tallyd_checkpoint_bytes", COUNTER, "", wal, "checkpoint_bytes", ONE,   \
        "Bytes of files of checkpoints.")                                     \
    X("tallyd_last_checkpoint_seconds", GAUGE, "", wal, "last_checkpoint_ms", \
        MS, "How long the last checkpoint took.")                             \
    X("tallyd_last_checkpoint_timestamp_seconds", GAUGE, "", wal,             \
        "last_checkpoint_time", ONE, "When it ended; 0: there is none.")

#define METRICS_OF_COLD(X)                                                    \
    X("tallyd_cold_segments", GAUGE, "", cold, "segments", ONE,               \
        "Files of the cold tier.")                                            \
    X("tallyd_cold_records", GAUGE, "", cold, "records", ONE,                 \
        "Records in them.")                                                   \
    X("tallyd_cold_bytes", GAUGE, "", cold, "bytes", ONE,                     \
        "Bytes of these files.")                                              \
    X("tallyd_cold_ranges", GAUGE, "state=\"hot\"", cold, "ranges_hot", ONE,  \
        "Ranges of ids, by where their records are.")                         \
    X("tallyd_cold_ranges", GAUGE, "state=\"overlaid\"", cold,                \
        "ranges_overlaid", ONE, "")                                           \
    X("tallyd_cold_ranges", GAUGE, "state=\"written\"", cold,                 \
        "ranges_written", ONE, "")                                            \
    X("tallyd_cold_seals", COUNTER, "", cold, "seals", ONE,                   \
        "Ranges written to the cold tier.")                                   \
    X("tallyd_cold_seal_bytes", COUNTER, "", cold, "seal_bytes", ONE,         \
        "Bytes of these.")                                                    \
    X("tallyd_cold_seal_forgotten", COUNTER, "", cold, "seal_forgotten", ONE, \
        "Forgotten marks taken out before that (forget=).")                   \
    X("tallyd_cold_seals_pressed", COUNTER, "", cold, "seals_pressed", ONE,   \
        "Of the ranges, those written in haste.")                             \
    X("tallyd_cold_seal_all_records", GAUGE, "", cold, "seal_all_records",    \
        ONE, "Records that `seal NAME all` found in memory; 0: none runs.")   \
    X("tallyd_cold_seal_done_records", GAUGE, "", cold, "seal_done_records",  \
        ONE, "Of these, those that are in the cold tier.")                    \
    X("tallyd_cold_seal_failures", COUNTER, "", cold, "seal_failures", ONE,   \
        "Ranges that could not be written.")                                  \
    X("tallyd_cold_reheats", COUNTER, "", cold, "reheats", ONE,               \
        "Ranges that became hot again.")                                      \
    X("tallyd_room_waits", COUNTER, "", cold, "room_waits", ONE,              \
        "Calls with changes that waited for room in the hot memory.")         \
    X("tallyd_cold_lookups", COUNTER, "", cold, "lookups", ONE,               \
        "Ids looked for in the cold tier.")                                   \
    X("tallyd_cold_cache_hits", COUNTER, "", cold, "hits", ONE,               \
        "Of these, those whose block was in the cache.")                      \
    X("tallyd_cold_read_bytes", COUNTER, "", cold, "read_bytes", ONE,         \
        "Bytes read from the cold tier.")                                     \
    X("tallyd_cold_read_failures", COUNTER, "", cold, "read_failures", ONE,   \
        "Reads of the cold tier that the disk refused.")                      \
    X("tallyd_cold_damaged_blocks", COUNTER, "", cold, "damaged", ONE,        \
        "Blocks of the cold tier that are not what was written.")             \
    X("tallyd_cold_queued_reads", GAUGE, "", cold, "queued", ONE,             \
        "Blocks that wait for a thread to read them.")                        \
    X("tallyd_cold_reads_now", GAUGE, "", cold, "reading", ONE,               \
        "Blocks that are being read.")

#define METRICS_OF_NAMES(X)                                                   \
    X("tallyd_names", GAUGE, "", names, "names", ONE,                         \
        "Ids that are names, but for those that are short enough to be "      \
        "a number, see primarykey=text.")                                     \
    X("tallyd_names_bytes", GAUGE, "", names, "bytes", ONE,                   \
        "Memory of these; a part of --hot-memory.")

#define METRICS_OF_REPLICATION(X)                                             \
    X("tallyd_replication_term", GAUGE, "", replication, "term", ONE,         \
        "Term of the group's primary.")                                       \
    X("tallyd_replication_last_batch", GAUGE, "", replication, "last_seq",    \
        ONE, "Last batch of the primary's log, as far as it is known.")       \
    X("tallyd_replication_committed_batch", GAUGE, "", replication,           \
        "committed_seq", ONE, "Last batch that is committed.")                \
    X("tallyd_replication_applied_batch", GAUGE, "", replication,             \
        "applied_seq", ONE, "Last batch that this server shows.")             \
    X("tallyd_replication_replicas", GAUGE, "", replication, "replicas", ONE, \
        "Replicas that are connected.")                                       \
    X("tallyd_replication_replicas_wanted", GAUGE, "", replication,           \
        "semi_sync", ONE, "Copies that a change waits for, --semi-sync.")     \
    X("tallyd_replication_changes_refused", GAUGE, "", replication,           \
        "changes_refused_now", ONE,                                           \
        "1 while changes are refused for too few replicas.")                  \
    X("tallyd_replication_lag_seconds", GAUGE, "", replication, "lag_ms", MS, \
        "Of a replica: how far it is behind.")                                \
    X("tallyd_replication_staleness_seconds", GAUGE, "", replication,         \
        "staleness_ms", MS, "Of a replica: how old what it shows may be.")    \
    X("tallyd_replication_unshipped_bytes", GAUGE, "", replication,           \
        "repl_unshipped_bytes", ONE,                                          \
        "Of a primary: bytes of its log that no replica has.")                \
    X("tallyd_etcd_unreachable_seconds", GAUGE, "", replication,              \
        "etcd_unreachable_ms", MS, "How long etcd has been out of reach.")

/* Histograms: family, group, what the names of the figures begin with, unit of
 * what they are below, help. */
#define METRICS_HISTOGRAMS(X)                                                 \
    X("tallyd_log_sync_seconds", wal, "sync_us_below_", US,                   \
        "Syncs of the log.")                                                  \
    X("tallyd_log_synced_seconds", wal, "synced_us_below_", US,               \
        "From the oldest change that a sync of the log covers to its end.")   \
    X("tallyd_log_batch_bytes", wal, "batch_bytes_below_", ONE,               \
        "Bytes of a batch of the log: what is committed together.")           \
    X("tallyd_log_batch_appends", wal, "batch_appends_below_", ONE,           \
        "Appends in a batch of the log.")                                     \
    X("tallyd_cold_read_seconds", cold, "read_us_below_", US,                 \
        "Reads of a block of the cold tier.")                                 \
    X("tallyd_replication_commit_seconds", replication, "commit_us_below_",   \
        US, "Of a primary: from a change to its commit.")                     \
    X("tallyd_replication_apply_seconds", replication, "lag_us_below_", US,   \
        "Of a replica: from a batch to its being shown.")

/* What is not of one figure: family, type, help. */
#define METRICS_OTHERS(X)                                                     \
    X("memcached_up", GAUGE, "1: the server answers.")                        \
    X("memcached_version", GAUGE,                                             \
        "1, with the version of memcached whose protocol this is.")           \
    X("tallyd_version", GAUGE, "1, with the version of tallyd.")              \
    X("tallyd_state", GAUGE,                                                  \
        "1 for the state that the server is in, 0 for the others; see stats " \
        "health.")                                                            \
    X("tallyd_problems", GAUGE, "How many things are wrong.")                 \
    X("tallyd_loading_ratio", GAUGE,                                          \
        "Of the checkpoint, then of the log, how much has been loaded.")      \
    X("tallyd_replication_role", GAUGE, "1, with the role of the server.")    \
    X("tallyd_request_seconds", HISTOGRAM,                                    \
        "How long requests took, by verb and by what they waited for; see "   \
        "stats latency.")                                                     \
    X("tallyd_loop_lag_p99_seconds", GAUGE,                                   \
        "By worker: what 99 of 100 rounds of its loop did not take; see "     \
        "stats loop.")                                                        \
    X("tallyd_loop_queue_p99_seconds", GAUGE,                                 \
        "By worker: what 99 of 100 turns did not wait.")                      \
    X("tallyd_records", GAUGE,                                                \
        "Ids with a value other than the default, by counter.")               \
    X("tallyd_table_bytes", GAUGE, "Memory of its tables, by counter.")       \
    X("tallyd_replica_lag_seconds", GAUGE,                                    \
        "Of a primary: how far each replica is behind.")                      \
    X("tallyd_replica_lag_bytes", GAUGE, "The same in bytes of log.")

#endif
