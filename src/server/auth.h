/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_AUTH_H
#define SERVER_AUTH_H

#include "base/buf.h"
#include "base/log.h"
#include "session/access.h"

/* The users, and the answers to logins. */

struct auth;

/* Reads the users' file (server/auth_file.h), and starts the thread that
 * checks hashed passwords. has_sasl: binary clients may log in. path is kept
 * by the caller. 0, or an error with what is wrong appended to *why. */
int auth_create(
    const char *path, bool has_sasl, struct auth **out, struct buf *why);

/* Looks whether auth_create can read the file; nothing is kept. 0, or an error
 * with what is wrong appended to *why. */
int auth_check(const char *path, struct buf *why);

/* From now on nobody is let in, and every login that waits is answered so.
 * Whoever asks later is answered at once. */
void auth_stop(struct auth *auth);

/* Nobody may ask any more. Nulls *auth. */
void auth_destroy(struct auth **auth);

/* What the sessions ask; lives as long as *auth. */
struct access *auth_access(struct auth *auth);

/* Reads the file again. What is wrong with it is appended to *why, and the
 * users stay as they were; else *n is how many there are. Who is logged in by a
 * line that is there no more is found by access.stands_fn. One thread at a
 * time, beside the logins. */
int auth_reload(struct auth *auth, unsigned *n, struct buf *why);

/* The same at a signal of that name, and logs what has come of it. */
void auth_reload_said(
    struct auth *auth, struct logger *logger, const char *signal);

#endif
