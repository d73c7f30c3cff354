/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_FIGURES_H
#define SERVER_FIGURES_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* What `stats` and its sub-commands say, gathered by the server itself: health,
 * metrics and status.json are made of the same lines as clients are told. */

/* name, the words behind stats */
#define FIGURES_GROUPS(X)                                                     \
    X(general, "")                                                            \
    X(counters, "counters")                                                   \
    X(names, "names")                                                         \
    X(memory, "memory")                                                       \
    X(wal, "wal")                                                             \
    X(cold, "cold")                                                           \
    X(replication, "replication")                                             \
    X(replicas, "replicas")                                                   \
    X(latency, "latency")                                                     \
    X(buckets, "latency buckets")                                             \
    X(loop, "loop")                                                           \
    X(slow, "slow")                                                           \
    X(hot, "hot")

enum figures_group {
#define X(name, words) FIGURES_##name,
    FIGURES_GROUPS(X)
#undef X
        FIGURES_GROUPS_COUNT
};

/* What health is judged by. */
#define FIGURES_GROUPS_HEALTH                                                 \
    (1U << FIGURES_general | 1U << FIGURES_memory | 1U << FIGURES_wal |       \
        1U << FIGURES_cold | 1U << FIGURES_replication |                      \
        1U << FIGURES_replicas | 1U << FIGURES_counters | 1U << FIGURES_hot)
#define FIGURES_GROUPS_ALL ((1U << FIGURES_GROUPS_COUNT) - 1)
/* What /metrics is made of: no commands, which are long to tell. */
#define FIGURES_GROUPS_METRICS (FIGURES_GROUPS_ALL & ~(1U << FIGURES_slow))

/* All zero: there are none. One thread at a time. */
struct figures {
    struct buf text[FIGURES_GROUPS_COUNT]; /* replies, "STAT NAME VALUE\r\n" */
};

/* A pair as it stands in a reply; not ended by a 0. */
struct figures_pair {
    const char *name, *value;
    size_t name_len, value_len;
};

void figures_fini(struct figures *figures);

/* Static storage. */
const char *figures_group_name(enum figures_group group);

/* The next pair of a group, from *at on, which is 0 at first; false: there is
 * none any more. It is valid until figures are gathered anew. */
bool figures_next(const struct figures *figures, enum figures_group group,
    size_t *at, struct figures_pair *out);

/* The value of that name in the group; false, and an empty text: there is
 * none. What does not fit into size bytes is left out. */
bool figures_text(const struct figures *figures, enum figures_group group,
    const char *name, char *out, size_t size);

/* The same of a number; 0 where there is none, or it is not one. */
uint64_t figures_u64(
    const struct figures *figures, enum figures_group group, const char *name);

#endif
