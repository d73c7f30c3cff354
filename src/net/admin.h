/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NET_ADMIN_H
#define NET_ADMIN_H

#include "base/buf.h"
#include "base/clock.h"
#include "proto/text_admin.h"
#include "stats/prefix.h"

#include <stddef.h>

struct session;

/* What is said of a session in the server's log. */
enum { AUDIT_TEXT_BYTES = 256 /* of what has been done, at most */ };

enum audit {
    AUDIT_DONE,    /* what its client has done, which cannot be undone */
    AUDIT_REFUSED, /* a login that failed: the name */
    AUDIT_UNSAID   /* what its client has not been told */
};

/* What the executor asks of the server around it; a seam. */
struct admin {
    /* Appends the reply to "stats <args>" with its END (or RESET, ERROR). */
    void (*stats_fn)(
        struct admin *admin, const char *args, size_t len, struct buf *out);
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
};

#endif
