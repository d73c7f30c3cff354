/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STATS_SLOW_H
#define STATS_SLOW_H

#include "base/mutex.h"
#include "stats/latency.h"

#include <stddef.h>
#include <stdint.h>

/* The slow log: commands that took longer than they were to, with what they
 * have spent their time on. The last ones are kept. */

#define SLOW_PHASES(X)                                                        \
    X(parse, "was read, looked up and answered: the worker's own work")       \
    X(lock, "waited for the lock of a shard")                                 \
    X(room, "waited for memory for counters")                                 \
    X(cold, "waited for blocks of segments")                                  \
    X(commit, "waited for the log, or replicas")                              \
    X(socket, "waited for its client to read")                                \
    X(queue, "waited for other connections' turns, or another thread")

enum slow_phase {
#define X(name, text) SLOW_##name,
    SLOW_PHASES(X)
#undef X
        SLOW_PHASE_COUNT
};

enum {
    SLOW_KEPT = 128,       /* entries of a worker */
    SLOW_KEY_BYTES = 250,  /* of a key; a longer one is cut */
    SLOW_NAME_BYTES = 64,  /* of a client's address, of a user; with the NUL */
    SLOW_TEXT_BYTES = 1280 /* of an entry in words; the key is 3 x 250 */
};

/* One command, or several that were answered together. */
struct slow_entry {
    int64_t unix_ms;                     /* when it was answered */
    uint64_t us;                         /* from its last byte to its reply */
    uint64_t phase_us[SLOW_PHASE_COUNT]; /* of these; parse is what is left */
    uint64_t keys;
    uint64_t bytes; /* of commands and replies */
    int conn;       /* its socket's number, as in stats conns */
    uint8_t verb;   /* enum latency_verb */
    uint8_t why;    /* enum slow_phase: the longest */
    uint8_t key_len;
    char key[SLOW_KEY_BYTES]; /* the first one, as it came; nothing: none */
    char client[SLOW_NAME_BYTES];
    char user[SLOW_NAME_BYTES]; /* "": there was no login */
};

/* Written by one thread, read by any. */
struct slow_log {
    struct mutex lock;
    uint64_t n; /* that have come; under lock, as what follows */
    struct slow_entry entry[SLOW_KEPT];
};

void slow_init(struct slow_log *log);
void slow_fini(struct slow_log *log);

/* Puts one in, in the place of the oldest where there are SLOW_KEPT. Any
 * thread. */
void slow_add(struct slow_log *log, const struct slow_entry *entry);

/* Copies those that are kept, in no order; how many. Any thread. */
unsigned slow_read(struct slow_log *log, struct slow_entry out[SLOW_KEPT]);

/* Forgets all. Any thread. */
void slow_clear(struct slow_log *log);

/* Fills parse and why from us and the other phases. Pure. */
void slow_judge(struct slow_entry *entry);

/* "when=... us=... ..." and a NUL; the length without that. Keys and names as
 * in an URL, "-" where there is none. Pure. */
size_t slow_format(const struct slow_entry *entry, char text[SLOW_TEXT_BYTES]);

#endif
