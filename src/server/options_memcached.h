/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_OPTIONS_MEMCACHED_H
#define SERVER_OPTIONS_MEMCACHED_H

#include "server/options_extstore.h"
#include "server/options_tls.h"

#include <stdint.h>

/* Switches of memcached 1.6 that have no meaning here, and the names of its
 * switch -o; see server/options.h. */

/* Columns as in server/options_table.h. These are taken, checked, and shown in
 * `stats settings`; nothing else comes of them. */
#define OPTIONS_IGNORED(X)                                                    \
    X(growth_factor, 'f', "slab-growth-factor", "NUM", FRACTION, 1001,        \
        1000000, "1.25", NULL, "growth of the slab classes")                  \
    X(chunk_size, 'n', "slab-min-size", "BYTES", NUMBER, 1, 1 << 30, "48",    \
        NULL, "size of the smallest slab class")                              \
    X(large_pages, 'L', "enable-largepages", NULL, FLAG, 0, 0, "", NULL,      \
        "large pages for items; counters have them wherever they can")        \
    X(memory_file, 'e', "memory-file", "FILE", TEXT, 1, 1023, "", NULL,       \
        "a file as memory of items; they do not survive a restart")           \
    X(napi_ids, 'N', "napi-ids", "NUM", NUMBER, 1, 256, "", NULL,             \
        "threads chosen by the network card's queue")

/* The names of -o: field, forms (with the prefix no_, without it, or either),
 * name, name of the value (NULL: none), type, lowest, highest, default (as it
 * would be given), care, text. A value where none is wanted does not matter,
 * as in memcached. */
#define OPTIONS_EXTENDED(X)                                                   \
    X(maxconns_fast, EITHER, "maxconns_fast", NULL, FLAG, 0, 0, "yes", MET,   \
        "close connections above -c at once, instead of letting them wait")   \
    X(idle_timeout_s, PLAIN, "idle_timeout", "SECONDS", NUMBER, 0, INT32_MAX, \
        "0", MET, "close connections that say nothing for longer; 0: never")  \
    X(lru_crawler, EITHER, "lru_crawler", NULL, FLAG, 0, 0, "yes", MET,       \
        "only: whether stats names its figures")                              \
    X(lru_maintainer, EITHER, "lru_maintainer", NULL, FLAG, 0, 0, "yes", MET, \
        "only: whether stats names its figures")                              \
    X(modern, EITHER, "modern", NULL, FLAG, 0, 0, "", IGNORED,                \
        "defaults of a later version; no_modern: those of 1.4")               \
    X(hash_power, PLAIN, "hashpower", "NUM", NUMBER, 12, 32, "", IGNORED,     \
        "size of the hash table at the start")                                \
    X(hash_expand, NEGATED, "hashexpand", NULL, FLAG, 0, 0, "yes", IGNORED,   \
        "growth of the hash table")                                           \
    X(hash_algorithm, PLAIN, "hash_algorithm", "jenkins|murmur3|xxh3",        \
        CHOICE, 0, 2, "murmur3", IGNORED, "hash of the keys")                 \
    X(slab_sizes, PLAIN, "slab_sizes", "SIZE-SIZE...", ANY, 1, 1023, "",      \
        IGNORED, "sizes of the slab classes")                                 \
    X(slab_reassign, EITHER, "slab_reassign", NULL, FLAG, 0, 0, "yes",        \
        IGNORED, "moving of slab pages")                                      \
    X(slab_automove, EITHER, "slab_automove", "0|1|2", NUMBER, 0, 2, "1",     \
        IGNORED, "moving of slab pages by itself")                            \
    X(slab_automove_ratio, PLAIN, "slab_automove_ratio", "NUM", FRACTION, 1,  \
        1000, "0.8", IGNORED, "how far ages may differ before pages move")    \
    X(slab_automove_window, PLAIN, "slab_automove_window", "NUM", NUMBER, 3,  \
        1800, "10", IGNORED, "over how many seconds ages are compared")       \
    X(slab_automove_freeratio, PLAIN, "slab_automove_freeratio", "NUM",       \
        FRACTION, 0, 1000, "0.01", IGNORED, "memory kept free")               \
    X(slab_chunk_max_kib, PLAIN, "slab_chunk_max", "KB", NUMBER, 1, 1024,     \
        "512", IGNORED, "largest slab chunk")                                 \
    X(chunked_items, NEGATED, "chunked_items", NULL, FLAG, 0, 0, "yes",       \
        IGNORED, "items of several slab chunks")                              \
    X(tail_repair_time_s, PLAIN, "tail_repair_time", "SECONDS", NUMBER, 10,   \
        INT32_MAX, "", IGNORED, "when a stuck item is given up")              \
    X(lru_crawler_sleep, PLAIN, "lru_crawler_sleep", "MICROSECONDS", NUMBER,  \
        0, 1000000, "100", IGNORED, "pause of the LRU crawler")               \
    X(lru_crawler_tocrawl, PLAIN, "lru_crawler_tocrawl", "NUM", WHOLE, 0,     \
        UINT32_MAX, "0", IGNORED, "items of a run of the LRU crawler")        \
    X(hot_lru_pct, PLAIN, "hot_lru_pct", "PERCENT", NUMBER, 1, 79, "20",      \
        IGNORED, "share of the hot LRU")                                      \
    X(warm_lru_pct, PLAIN, "warm_lru_pct", "PERCENT", NUMBER, 1, 79, "40",    \
        IGNORED, "share of the warm LRU")                                     \
    X(hot_max_factor, PLAIN, "hot_max_factor", "NUM", FRACTION, 1, INT32_MAX, \
        "0.2", IGNORED, "age in the hot LRU")                                 \
    X(warm_max_factor, PLAIN, "warm_max_factor", "NUM", FRACTION, 1,          \
        INT32_MAX, "2", IGNORED, "age in the warm LRU")                       \
    X(temporary_ttl_s, PLAIN, "temporary_ttl", "SECONDS", NUMBER, INT32_MIN,  \
        INT32_MAX, "61", IGNORED, "below it, a separate LRU")                 \
    X(watcher_logbuf_kib, PLAIN, "watcher_logbuf_size", "KB", WHOLE, 0,       \
        UINT32_MAX, "256", IGNORED, "buffer of a client that watches")        \
    X(worker_logbuf_kib, PLAIN, "worker_logbuf_size", "KB", WHOLE, 0,         \
        UINT32_MAX, "64", IGNORED, "buffer of a thread for those who watch")  \
    X(read_buf_mem_limit_mib, PLAIN, "read_buf_mem_limit", "MB", WHOLE, 0,    \
        UINT32_MAX, "0", IGNORED, "limit of the connections' buffers")        \
    X(resp_obj_mem_limit, PLAIN, "resp_obj_mem_limit", NULL, FLAG, 0, 0, "",  \
        IGNORED, "the older name of that")                                    \
    X(track_sizes, PLAIN, "track_sizes", NULL, FLAG, 0, 0, "", IGNORED,       \
        "counting for stats sizes")                                           \
    X(inline_ascii_resp, EITHER, "inline_ascii_resp", NULL, FLAG, 0, 0, "",   \
        IGNORED, "a layout of items")                                         \
    X(drop_privileges, EITHER, "drop_privileges", NULL, FLAG, 0, 0, "", MET,  \
        "only: a warning where --seccomp forbids no system call")             \
    X(relaxed_privileges, PLAIN, "relaxed_privileges", NULL, FLAG, 0, 0, "",  \
        IGNORED, "a wider one")                                               \
    X(sock_cookie_id, PLAIN, "sock_cookie_id", "NUM", WHOLE, 0, UINT32_MAX,   \
        "", IGNORED, "mark of the sockets")                                   \
    OPTIONS_EXTENDED_STORE(X)                                                 \
    OPTIONS_EXTENDED_TLS(X)                                                   \
    OPTIONS_EXTENDED_REFUSED(X)

#endif
