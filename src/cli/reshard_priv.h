/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLI_RESHARD_PRIV_H
#define CLI_RESHARD_PRIV_H

#include "cli/reshard_lines.h"
#include "cli/reshard_setup.h"
#include "cli/reshard_source.h"
#include "cli/reshard_state.h"
#include "cli/shown.h"
#include "client/stop.h"

/* Inside of reshard; the order of things is in reshard.c. */

enum {
    RESHARD_PAUSE_MS = 300, /* before something is tried again */
    RESHARD_CHUNK_BYTES = 256 << 10,
    RESHARD_SAVE_MS = 1000, /* between two writes of the state */
    /* before the same trouble is told again */
    RESHARD_TROUBLE_MS = 10000,
    RESHARD_LAG_MS = 100,      /* so near it is cut over */
    RESHARD_BEHIND_MS = 30000, /* for a node to come up to the position */
    RESHARD_STILL_MS = 5000,   /* after the cut, without anything new */
    RESHARD_CLAIM_MAX = 29     /* bytes of a claim */
};

/* How a part of it has gone. */
enum reshard_went {
    RESHARD_OK,
    RESHARD_LOST, /* the node that is read is gone: another one, or again */
    RESHARD_ANEW, /* what was copied does not fit: all of it again */
    RESHARD_STOP, /* a signal */
    RESHARD_FAIL  /* for good: move->why */
};

struct reshard_shown {
    struct shown line;
    uint64_t lines;      /* acknowledged */
    uint64_t total;      /* records to be copied, about; 0: not known */
    uint64_t copied;     /* lines of the dump */
    uint64_t trouble_ms; /* when the last trouble was told */
    char trouble[RESHARD_WHY_MAX];
};

struct reshard {
    struct reshard_setup setup;
    struct reshard_state state;
    bool has_state; /* it is of this move */
    struct reshard_lines lines;
    struct reshard_source source;
    struct talk *to;  /* the new group; setup's */
    struct talk node; /* one server: that which is read */
    unsigned at;      /* which of the nodes that is */
    struct stop stop;
    struct buf chunk, answer, conns;
    enum reshard_went went; /* of what a callback has done */
    char node_name[MESSAGE_NAME_MAX + 1];
    char claim[RESHARD_CLAIM_MAX + 1]; /* at the new group */
    bool is_prepared;                  /* the stream goes on where it should */
    bool has_schema; /* the new group has the source's counters */
    uint64_t saved_ms;
    /* The lag: told_last was told of at told_ms, 0: none was yet. off_ms: from
     * the source's clock to this one, where has_off. */
    uint64_t told_ms, told_last, off_ms;
    bool has_off;
    uint64_t lag_ms;    /* UINT64_MAX: not known */
    uint64_t behind_ms; /* since when nodes are behind the position; 0: not */
    uint64_t moved_ms;  /* when the cut was told, or something came behind */
    struct reshard_shown shown;
    char why[RESHARD_WHY_MAX];
};

uint64_t reshard__now_ms(void);

/* Sets why. Always RESHARD_FAIL. */
__attribute__((format(printf, 2, 3))) enum reshard_went reshard__fail(
    struct reshard *move, const char *format, ...);

/* Waits, and tells the source that all is well; RESHARD_STOP after a signal. */
enum reshard_went reshard__pause(struct reshard *move, uint64_t ms);

/* Writes the state. */
enum reshard_went reshard__save(struct reshard *move);

/* ---- reshard_say.c ---- */

/* A line on stderr for people, where one is due or at once. */
void reshard__show(struct reshard *move, bool is_due);

/* How it has ended, as JSON on stdout. False: that cannot be written. */
bool reshard__say_json(const struct reshard *move, enum reshard_went went);

/* Says what is in the way, if it has not just been said. */
void reshard__trouble(struct reshard *move, const char *what);

/* ---- reshard_claim.c ---- */

/* Sets claim, and that of the state where there is none yet. */
enum reshard_went reshard__name_claim(struct reshard *move);

/* True where the answer to `stats producers`, ended by a 0, has the claim of
 * another move of these ids: copied to rival, RESHARD_CLAIM_MAX + 1 bytes. */
bool reshard__has_rival(
    struct reshard *move, const struct buf *producers, char rival[]);

/* Sets why. Always RESHARD_FAIL. */
enum reshard_went reshard__rivalled(struct reshard *move, const char *rival);

/* The new group has the claim of this move, and no other one's. */
enum reshard_went reshard__claim(struct reshard *move);

/* It has it no more, if it had. */
enum reshard_went reshard__release(struct reshard *move);

/* ---- reshard_send.c ---- */

/* Sends n lines to the new group until each has been done. */
enum reshard_went reshard__send(
    struct reshard *move, const char *text, size_t len, size_t n);

/* The same of what lines has gathered. */
enum reshard_went reshard__flush(struct reshard *move);

/* Asks a server, which is connected, and gathers its answer in move->answer, up
 * to END and without it, lines ended by LF. False: the connection is over, or
 * the answer is an error: talk->why. */
bool reshard__ask(
    struct reshard *move, struct talk *talk, const char *question);

/* The same of the new group: connected where needed, until it answers. */
enum reshard_went reshard__ask_new(struct reshard *move, const char *question);

/* One command that is answered OK, of the group behind talk: until it is. */
enum reshard_went reshard__tell(
    struct reshard *move, struct talk *talk, const char *command);

/* The value of "STAT NAME VALUE" in move->answer; false: there is none. */
bool reshard__stat(
    struct reshard *move, const char *name, char *out, size_t size);

/* ---- reshard_copy.c ---- */

/* The new group has no records; or what it has of the rule is removed. */
enum reshard_went reshard__empty_new(struct reshard *move, bool is_dirty);

/* The counters of the source at the new group, the same columns in the same
 * order; those that were brought there, and are gone at the source, dropped. */
enum reshard_went reshard__copy_schema(struct reshard *move);

/* Behind the dump: notes in the state which counters the new group has, so that
 * it is known of one that is dropped while nobody listens. */
void reshard__note_counters(struct reshard *move);

/* All records of the rule, counter by counter, and what numbers were seen. */
enum reshard_went reshard__copy(struct reshard *move);

#endif
