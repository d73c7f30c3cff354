/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SESSION_ADMIN_H
#define SESSION_ADMIN_H

#include "base/clock.h"
#include "call/store_calls.h"
#include "proto/reply_stats.h"
#include "proto/text_admin.h"
#include "stats/prefix.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct session;

/* What is said of a session in the server's log. */
enum { AUDIT_TEXT_BYTES = 256 /* of what has been done, at most */ };

enum audit {
    AUDIT_DONE,    /* what its client has done, which cannot be undone */
    AUDIT_DROPPED, /* likewise, of counters and the server itself: never
                    * suppressed for the many of the others */
    AUDIT_REFUSED, /* a login that failed: the name */
    AUDIT_UNSAID   /* what its client has not been told */
};

/* How far a reply to stats has come. Where step is 0 it has not been begun, and
 * nothing else has a meaning; else all of it is whose stats_fn it is. */
struct admin_reply {
    unsigned step;
    unsigned slot;           /* the counter's, */
    uint32_t serial;         /* its own, 0: it has not been begun */
    uint32_t only;           /* and that of the only one wanted, 0: all are */
    uint64_t schema_version; /* when it was begun */
    unsigned shard;          /* the next one, */
    size_t at;               /* and how far it is */
    struct engine_sum sum;
    struct engine_numbers numbers;
    uint64_t width[SCHEMA_COLUMNS_MAX][ENGINE_WIDTHS];
};

/* What the executor asks of the server around it; a seam. */
struct admin {
    /* Hands the reply to "stats <args>" to out, with its end, or a piece of
     * it, of whole pairs or none: true where more follows, and the next call
     * has the same args and reply. A piece takes some 0.2 ms. */
    bool (*stats_fn)(struct admin *admin, const char *args, size_t len,
        struct admin_reply *reply, struct reply_stats *out);
    void (*verbosity_fn)(struct admin *admin, unsigned level);
    const char *version; /* static storage */
    /* Does a command of administration: the reply without CRLF, static
     * storage. NULL: for a dump, that it may begin; for a shutdown, that the
     * server stops. NULL as a function: there are no such commands. */
    const char *(*command_fn)(
        struct admin *admin, const struct text_admin *command);
    /* For the log, with who and from where. text: of bytes as they came, the
     * caller's. NULL as a function: nothing is logged. The session's thread. */
    void (*audit_fn)(struct admin *admin, const struct session *session,
        enum audit kind, const char *text, size_t len);
    /* For the log: a key that looks like a cell's and is none, as err says
     * (key_near). NULL as a function: nothing is logged. The session's
     * thread. */
    void (*near_fn)(struct admin *admin, const struct session *session,
        int err, const char *key, size_t len);
    struct prefixes *prefixes;       /* NULL: nothing is counted by prefix */
    const struct clock_shift *clock; /* of items; NULL: the system's */
    int64_t started_unix_s;          /* when the server was started */
};

#endif
