/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_AUTH_HASH_H
#define SERVER_AUTH_HASH_H

#include "base/buf.h"

#include <stdbool.h>

/* Salted hashes of passwords, by the system's crypt(3). */

/* True for a hash whose method is known here and is not one of old, which
 * are broken. hash ends with NUL. Any thread. */
bool auth_hash_is_known(const char *hash);

/* True where the password has the hash; takes as long as its method does,
 * some milliseconds, whichever it is. Both end with NUL. Allocates some 32 KiB
 * for the time; where that fails: false. Any thread. */
bool auth_hash_fits(const char *hash, const char *password);

/* --hash-password: reads a password, one line, from stdin, without showing
 * it where that is a terminal, and prints its hash. 0, or ERR_SYSTEM or
 * ERR_BAD_VALUE with what is wrong appended to *why. */
int auth_hash_make(struct buf *why);

#endif
