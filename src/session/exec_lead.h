/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SESSION_EXEC_LEAD_H
#define SESSION_EXEC_LEAD_H

#include "proto/plain.h"
#include "session/exec.h"

/* A plain get that comes alone is begun without being parsed. Used by
 * session.c; the session's thread. */

/* exec_lead where it may be. */
bool exec__lead(struct session *session, const char *bytes, size_t len);

/* The session has no job, its client may do everything, and len bytes have
 * come. One plain get of a cell is gathered unparsed: true. Else nothing is. */
static inline bool
exec_lead(struct session *session, const char *bytes, size_t len,
    const struct exec_turn *turn)
{
    if (len > PLAIN_BYTES || turn->fault != 0) {
        return false;
    }
    bool may_be = session->binding == SESSION_BINARY
        ? len > BINARY_HEADER_BYTES
        : session->binding == SESSION_TEXT && plain_may_be_get(bytes, len);
    return may_be && exec__lead(session, bytes, len);
}

#endif
