/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PROTO_TEXT_ADMIN_H
#define PROTO_TEXT_ADMIN_H

#include "proto/request.h"

#include <stdbool.h>
#include <stdint.h>

/* memcached's text commands of administration that are more than a word and a
 * number: slabs, lru, lru_crawler, extstore, cache_memlimit, shutdown,
 * refresh_certs, watch, debugtime. Their sub-commands may be shortened to any
 * beginning, as in memcached. And kill and slow, which are tallyd's own. */

#define TEXT_ADMIN_OPS(X)                                                     \
    X(NOTHING, "is answered with error, whatever the server is like")         \
    X(SETTINGS, "settings get other values")                                  \
    X(LRU_SETTINGS, "the same, where there is an LRU maintainer")             \
    X(REASSIGN, "memory is to go from one slab class to another")             \
    X(CRAWLER, "the LRU crawler is switched on or off")                       \
    X(CRAWL, "expired items are to be reclaimed now")                         \
    X(METADUMP, "a line for each item")                                       \
    X(MGDUMP, "a meta get for each item")                                     \
    X(MEMLIMIT, "memory for items")                                           \
    X(SHUTDOWN, "the server is to stop")                                      \
    X(CERTS, "certificates are to be read again")                             \
    X(KILL, "another connection is to be closed")                             \
    X(SLOW, "commands are slow from another time on")                         \
    X(WATCH, "the connection is to become a log")                             \
    X(TIME_STOP, "the items' clock stops")                                    \
    X(TIME_GO, "it goes on")                                                  \
    X(TIME_SHIFT, "it is moved")

enum text_admin_op {
#define X(name, text) TEXT_ADMIN_##name,
    TEXT_ADMIN_OPS(X)
#undef X
};

/* name, the word of watch that asks for it, in memcached's order: a beginning
 * of a word is enough. Some of them are taken and nothing is ever told. */
#define TEXT_ADMIN_WATCH_KINDS(X)                                             \
    X(RAWCMDS, "rawcmds")                                                     \
    X(EVICTIONS, "evictions")                                                 \
    X(FETCHERS, "fetchers")                                                   \
    X(MUTATIONS, "mutations")                                                 \
    X(SYSEVENTS, "sysevents")                                                 \
    X(CONNEVENTS, "connevents")                                               \
    X(PROXYREQS, "proxyreqs")                                                 \
    X(PROXYEVENTS, "proxyevents")                                             \
    X(PROXYUSER, "proxyuser")                                                 \
    X(DELETIONS, "deletions")                                                 \
    X(SLOW, "slow")

enum text_admin_watch_bit {
#define X(name, word) TEXT_ADMIN_WATCH_##name,
    TEXT_ADMIN_WATCH_KINDS(X)
#undef X
        TEXT_ADMIN_WATCHES
};

enum {
    TEXT_ADMIN_SETTINGS_MAX = 4,
    TEXT_ADMIN_VALUE_BYTES = 24, /* with the NUL */
    TEXT_ADMIN_CLASSES = 64,     /* slab classes are below */
    TEXT_ADMIN_PAGES_MAX = 39,   /* the last that memcached's default has */
    TEXT_ADMIN_MEMLIMIT_MIN = 8, /* megabytes */
    TEXT_ADMIN_SLOW_MS_MAX = 3600000
};

/* One line of `stats settings` from now on. */
struct text_admin_setting {
    const char *name; /* static storage */
    char value[TEXT_ADMIN_VALUE_BYTES];
};

struct text_admin {
    enum text_admin_op op;
    /* NULL, or the reply without CRLF where the server has nothing else
     * against op; static storage */
    const char *error;
    unsigned n_settings; /* SETTINGS, LRU_SETTINGS, CRAWLER */
    struct text_admin_setting setting[TEXT_ADMIN_SETTINGS_MAX];
    uint64_t classes;   /* CRAWL, METADUMP, MGDUMP: bit n is class n */
    uint64_t megabytes; /* MEMLIMIT */
    bool is_graceful;   /* SHUTDOWN: with a checkpoint before */
    bool is_enabled;    /* CRAWLER */
    int64_t shift_s;    /* TIME_SHIFT */
    int64_t class_from; /* REASSIGN */
    int64_t class_to;   /* REASSIGN */
    uint64_t conn;      /* KILL: its number in `stats conns` */
    uint64_t slow_ms;   /* SLOW: as of --slow; 0: none is */
    unsigned watch;     /* WATCH: bits of enum text_admin_watch_bit */
};

/* Reads a line without its end, whose first word is one of these commands; of
 * any other the op is NOTHING and the error "ERROR". Pure. */
void text_admin_read(
    const char *bytes, struct span line, struct text_admin *out);

#endif
