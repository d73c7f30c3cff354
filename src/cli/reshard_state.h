/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLI_RESHARD_STATE_H
#define CLI_RESHARD_STATE_H

#include "base/buf.h"
#include "schema/schema.h"
#include "wal/history.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How far a move of ids is, in a file of lines that is replaced as a whole. One
 * thread. */

/* Name, text. They come one after the other. */
#define RESHARD_PHASES(X)                                                     \
    X(BEGIN, "begin", "nothing has been moved")                               \
    X(DUMP, "dump", "records are copied")                                     \
    X(FOLLOW, "follow", "changes are followed")                               \
    X(CUT, "cut", "the old group was told to hand over")                      \
    X(THROUGH, "through", "all that the old group has taken is here")         \
    X(DONE, "done", "the new group takes the changes")

enum reshard_phase {
#define X(name, word, text) RESHARD_##name,
    RESHARD_PHASES(X)
#undef X
        RESHARD_PHASES_N
};

/* "dump"; "records are copied"; static storage. */
const char *reshard_phase_word(enum reshard_phase phase);
const char *reshard_phase_text(enum reshard_phase phase);

enum {
    RESHARD_NAME_MAX = 255, /* bytes of an address that clients are told */
    RESHARD_RULE_MAX = 63,  /* of a rule */
    RESHARD_OWN_MAX = 63,   /* of the end of a connection that is here */
    RESHARD_DUMPED_MAX = SCHEMA_COUNTERS_MAX * (SCHEMA_NAME_MAX + 1) - 1
};

struct reshard_state {
    char rule[RESHARD_RULE_MAX + 1];
    char from[RESHARD_NAME_MAX + 1], to[RESHARD_NAME_MAX + 1]; /* names */
    uint64_t claim; /* of the move, 48 bits; 0: none yet */
    enum reshard_phase phase;
    bool is_cut_asked; /* also where everything has to be dumped anew */
    /* which log, from FOLLOW on, and while records are dumped; epoch 0: none */
    uint64_t epoch, seed;
    uint32_t shards;
    struct history history;
    uint64_t position; /* all up to here is in the new group, once dumped */
    /* The connection to the new group by which lines were sent last, as that
     * shows it, and to whom; "-": there was none. */
    char own[RESHARD_OWN_MAX + 1], peer[RESHARD_NAME_MAX + 1];
    /* Counters that the new group has whole, with commas between them; "-". */
    char dumped[RESHARD_DUMPED_MAX + 1];
};

/* Lines, the last of which is a sum of the others. */
void reshard_state_put(const struct reshard_state *state, struct buf *out);

/* False: that is not what reshard_state_put has written. */
bool reshard_state_get(
    struct reshard_state *state, const char *text, size_t len);

/* Of one counter. */
bool reshard_state_is_dumped(
    const struct reshard_state *state, const char *name);
void reshard_state_set_dumped(struct reshard_state *state, const char *name);
void reshard_state_clear_dumped(struct reshard_state *state);

/* The file, which may not be there: then
 * *state is all zero but for what is "-". 0, or an errno value; EBADMSG: it is
 * damaged, or another file. */
int reshard_state_read(const char *path, struct reshard_state *state);

/* Replaces it, durably. 0 or an errno value. */
int reshard_state_write(const char *path, const struct reshard_state *state);

#endif
