/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLI_STATUS_H
#define CLI_STATUS_H

#include "cli/ask.h"
#include "cli/health.h"

/* tallyctl status: one page about a server, what is wrong first. One thread. */

/* Id, `stats` of the server, name in JSON. */
#define STATUS_PARTS(X)                                                       \
    X(GENERAL, "", "general")                                                 \
    X(SETTINGS, "settings", "settings")                                       \
    X(COUNTERS, "counters", "counters")                                       \
    X(MEMBERS, "members", "members")                                          \
    X(MEMORY, "memory", "memory")                                             \
    X(WAL, "wal", "wal")                                                      \
    X(COLD, "cold", "cold")                                                   \
    X(REPLICATION, "replication", "replication")                              \
    X(REPLICAS, "replicas", "replicas")                                       \
    X(SLOW, "slow", "slow")

enum status_part {
#define X(id, stats, name) STATUS_##id,
    STATUS_PARTS(X)
#undef X
        STATUS_PARTS_N
};

/* What is counted between two looks: id, part, figures that are summed. */
#define STATUS_RATES(X)                                                       \
    X("gets", GENERAL, "cmd_get", NULL)                                       \
    X("sets", GENERAL, "cmd_set", NULL)                                       \
    X("incrs", GENERAL, "incr_hits", "decr_hits")                             \
    X("changes", COUNTERS, "cell_changes", NULL)                              \
    X("refused", COUNTERS, "cell_refused", NULL)                              \
    X("bytes_in", GENERAL, "bytes_read", NULL)                                \
    X("bytes_out", GENERAL, "bytes_written", NULL)

struct status {
    const char *server; /* as it was asked for */
    struct health health;
    struct figures part[STATUS_PARTS_N];
    struct figures before[STATUS_COUNTERS + 1]; /* of an earlier look */
    uint64_t between_ns; /* these looks; 0: there was one */
};

/* The page. */
void status_page(const struct status *status, struct buf *out);
void status_json(const struct status *status, struct buf *out);

/* The exit status. */
int status_main(int argc, char *const argv[]);

#endif
