/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SESSION_EXEC_WATCH_H
#define SESSION_EXEC_WATCH_H

#include "session/exec_shared.h"
#include "session/watch.h"

/* What commands tell those who watch; see session/watch.h. Inside exec_*.c
 * only, and only where executor->watched is not 0; the session's thread. */

/* An item as it is before a command on it. */
struct exec_watched {
    char key[UINT8_MAX];
    size_t key_len, value_len;
    unsigned class_; /* 0: there is no such item */
    int64_t ttl_s;   /* 0: it does not expire */
    bool is_there;
};

/* Around a command on an item (exec__item). bytes[0] is the request's first
 * one; seen keeps what the second call needs. */
void exec__watch_before(
    struct session *session, const char *bytes, struct exec_watched *seen);
void exec__watch_after(
    struct session *session, const struct exec_watched *seen);

/* The job's slots first..formatted - 1 have been answered. */
void exec__watch_slots(
    struct session *session, const char *base, unsigned first);

/* A change of a cell or record has been answered. */
void exec__watch_change(struct session *session, const struct change *change);

#endif
