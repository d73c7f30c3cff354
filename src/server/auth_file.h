/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_AUTH_FILE_H
#define SERVER_AUTH_FILE_H

#include "base/buf.h"
#include "session/access.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The users' file, as memcached's: "user:password" a line, the password up to
 * the line's end. Before the user there may be words, each with a space behind
 * it:
 *
 *   hashed alice:$y$j9T$...     the password's hash, as crypt(3) makes it
 *   read-only bob:secret        may read only
 *   read-only hashed carol:$y$...
 *
 * A user with a space in the name can log in to no memcached, so that no file
 * of one means something else by them. Empty lines, and lines that begin with
 * "# ", mean nothing. One user may have several lines: each is a password. */

enum {
    AUTH_USERS_MAX = 64,
    AUTH_FILE_BYTES_MAX = 64 << 10,
    AUTH_HASH_BYTES = 384 /* of a hash with its salt and NUL; crypt(3)'s */
};

struct auth_user {
    enum access_rank rank; /* READER or WRITER */
    bool is_hashed;
    uint8_t user_len, password_len; /* password_len: 0 of a hashed one */
    /* zeroes behind them, so that all of it can be compared */
    char user[LOGIN_WORD_MAX];
    char password[LOGIN_WORD_MAX];
    char hash[AUTH_HASH_BYTES]; /* of a hashed one; ends with NUL */
};

struct auth_users {
    unsigned n;               /* at least 1 */
    unsigned n_hashed;        /* of these */
    unsigned n_hashed_of_one; /* the most that one user has */
    struct auth_user user[AUTH_USERS_MAX];
};

/* Reads the text of a file into *out. name is the file's, for messages; they
 * are appended to *why and name the line. 0 or ERR_BAD_FORMAT. Pure. */
int auth_file_parse(const char *text, size_t len, const char *name,
    struct auth_users *out, struct buf *why);

/* Reads a file that only its owner may read. ERR_SYSTEM, too; ERR_NO_MEMORY.
 * What is wrong and what to do is appended to *why, without a newline. */
int auth_file_read(const char *path, struct auth_users *out, struct buf *why);

#endif
