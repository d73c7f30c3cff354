/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes the users' file, and what takes a login apart. What is read of a file
 * is whole and clean: names and passwords of one byte at least and with zeroes
 * behind them, for they are compared as they lie. */
#include "base/assert.h"
#include "proto/login.h"
#include "server/auth_file.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void
check_zeroes(const char *field, size_t used)
{
    for (size_t i = used; i < LOGIN_WORD_MAX; i++) {
        ASSERT(field[i] == 0);
    }
}

static void
check_users(const struct auth_users *users)
{
    unsigned n_hashed = 0;
    ASSERT(users->n >= 1 && users->n <= AUTH_USERS_MAX);
    for (unsigned i = 0; i < users->n; i++) {
        const struct auth_user *user = &users->user[i];
        ASSERT(user->rank == ACCESS_READER || user->rank == ACCESS_WRITER);
        ASSERT(user->user_len >= 1);
        ASSERT((user->password_len == 0) == user->is_hashed);
        ASSERT((user->hash[0] == '$') == user->is_hashed);
        check_zeroes(user->user, user->user_len);
        check_zeroes(user->password, user->password_len);
        n_hashed += user->is_hashed;
    }
    ASSERT(users->n_hashed == n_hashed);
    ASSERT(users->n_hashed_of_one <= n_hashed);
    ASSERT((users->n_hashed_of_one == 0) == (n_hashed == 0));
}

static void
check_words(const struct login_words *words, const char *text, size_t len)
{
    ASSERT(words->user_len >= 1 && words->user_len <= LOGIN_WORD_MAX);
    ASSERT(words->password_len >= 1 && words->password_len <= LOGIN_WORD_MAX);
    ASSERT(words->user >= text && words->user < words->password);
    ASSERT(words->password + words->password_len == text + len);
}

static void
try_login(const char *text, size_t len)
{
    struct login_words words;
    struct parse_scan scan = {0, 0};
    struct request request;
    if (login_read_text(text, len, &words)) {
        check_words(&words, text, len);
    }
    if (login_read_plain(text, len, &words)) {
        check_words(&words, text, len);
    }
    if (len == 0) {
        return;
    }
    switch (login_parse(text, len, &scan, &request)) {
    case PARSE_MORE:
        ASSERT(scan.need <= LOGIN_BYTES_MAX && len < LOGIN_BYTES_MAX);
        return;
    case PARSE_CLOSE:
        return;
    case PARSE_REQUEST:
        ASSERT(request.op == REQUEST_LOGIN || request.op == REQUEST_UNREAD);
        ASSERT(request.len <= len && request.len <= LOGIN_BYTES_MAX);
        ASSERT(request.value.at + request.value.len <= request.len);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static struct auth_users users;
    struct buf why = {0};
    char *text = malloc(len == 0 ? 1 : len);
    ASSERT(text != NULL);
    if (len > 0) {
        memcpy(text, bytes, len);
    }
    if (auth_file_parse(text, len, "users", &users, &why) == 0) {
        ASSERT(why.len == 0);
        check_users(&users);
    } else {
        ASSERT(why.len > 0);
    }
    try_login(text, len);
    buf_fini(&why);
    free(text);
    return 0;
}
