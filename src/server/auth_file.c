/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading the users' file. All of it is read or none; a line that is not
 * understood is an error and not a user less, and so is a file that others
 * could read: what it protects would be protected from nobody. */
#include "server/auth_file.h"

#include "base/err.h"
#include "server/auth_hash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct line {
    const char *text;
    size_t len;
    unsigned number; /* from 1 */
};

/* Takes the word, which ends with a space, off the line's front. */
static bool
take_word(struct line *line, const char *word)
{
    size_t len = strlen(word);
    if (line->len < len || memcmp(line->text, word, len) != 0) {
        return false;
    }
    line->text += len;
    line->len -= len;
    return true;
}

/* What is wrong with a password or hash; NULL: nothing. */
static const char *
take_secret(struct auth_user *user, const char *secret, size_t len)
{
    if (len == 0) {
        return "the password is empty";
    }
    if (memchr(secret, '\0', len) != NULL) {
        return "the password has a NUL byte";
    }
    if (!user->is_hashed) {
        if (len > LOGIN_WORD_MAX) {
            return "the password is longer than 255 bytes";
        }
        memcpy(user->password, secret, len);
        user->password_len = (uint8_t)len;
        return NULL;
    }
    if (len >= AUTH_HASH_BYTES) {
        return "the hash is too long";
    }
    memcpy(user->hash, secret, len);
    return auth_hash_is_known(user->hash)
        ? NULL
        : "the hash is none that crypt(3) takes: make one with tallyd "
          "--hash-password";
}

/* The same of a line that is neither empty nor a comment. */
static const char *
take_line(struct line line, struct auth_user *user)
{
    *user = (struct auth_user){.rank = ACCESS_WRITER};
    if (take_word(&line, "read-only ")) {
        user->rank = ACCESS_READER;
    }
    user->is_hashed = take_word(&line, "hashed ");
    const char *colon = memchr(line.text, ':', line.len);
    if (colon == NULL) {
        return "it should be user:password";
    }
    size_t user_len = (size_t)(colon - line.text);
    if (user_len == 0 || user_len > LOGIN_WORD_MAX) {
        return "the user's name should be 1 to 255 bytes";
    }
    for (size_t i = 0; i < user_len; i++) {
        unsigned char c = (unsigned char)line.text[i];
        if (c <= ' ' || c == 0x7f) {
            return "the user's name has a space or control character; words "
                   "before it are \"read-only \" and \"hashed \", in this "
                   "order";
        }
    }
    memcpy(user->user, line.text, user_len);
    user->user_len = (uint8_t)user_len;
    return take_secret(user, colon + 1, line.len - user_len - 1);
}

static bool
is_same_user(const struct auth_user *a, const struct auth_user *b)
{
    return a->user_len == b->user_len &&
        memcmp(a->user, b->user, a->user_len) == 0;
}

static void
count_hashed(struct auth_users *users)
{
    for (unsigned i = 0; i < users->n; i++) {
        unsigned of_one = 0;
        for (unsigned k = 0; k < users->n; k++) {
            of_one += users->user[k].is_hashed &&
                is_same_user(&users->user[i], &users->user[k]);
        }
        users->n_hashed += users->user[i].is_hashed;
        if (of_one > users->n_hashed_of_one) {
            users->n_hashed_of_one = of_one;
        }
    }
}

static int
add_line(const struct line *line, const char *name, struct auth_users *out,
    struct buf *why)
{
    const char *wrong = "there are more than 64 users";
    if (line->len == 0 ||
        (line->len >= 2 && memcmp(line->text, "# ", 2) == 0)) {
        return 0;
    }
    if (out->n < AUTH_USERS_MAX) {
        wrong = take_line(*line, &out->user[out->n]);
    }
    if (wrong != NULL) {
        buf_addf(why, "%s:%u: %s", name, line->number, wrong);
        return ERR_BAD_FORMAT;
    }
    out->n++;
    return 0;
}

int
auth_file_parse(const char *text, size_t len, const char *name,
    struct auth_users *out, struct buf *why)
{
    const char *end = text + len;
    struct line line = {.text = text};
    int err = 0;
    memset(out, 0, sizeof *out);
    while (err == 0 && line.text < end) {
        const char *newline =
            memchr(line.text, '\n', (size_t)(end - line.text));
        const char *stop = newline == NULL ? end : newline;
        line.number++;
        line.len = (size_t)(stop - line.text);
        if (line.len > 0 && line.text[line.len - 1] == '\r') {
            line.len--;
        }
        err = add_line(&line, name, out, why);
        line.text = newline == NULL ? end : newline + 1;
    }
    if (err == 0 && out->n == 0) {
        buf_addf(why, "%s: there is no user in it", name);
        err = ERR_BAD_FORMAT;
    }
    count_hashed(out);
    return err;
}

/* What is wrong with the file itself. */
static int
check_file(int fd, const char *path, struct buf *why)
{
    struct stat info;
    if (fstat(fd, &info) != 0) {
        buf_addf(why, "cannot look at %s: %s", path, strerror(errno));
        return ERR_SYSTEM;
    }
    if (!S_ISREG(info.st_mode)) {
        buf_addf(why, "%s is not a file", path);
        return ERR_SYSTEM;
    }
    if ((info.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        buf_addf(why,
            "%s has passwords and is open to others than its owner: "
            "chmod 600 %s",
            path, path);
        return ERR_SYSTEM;
    }
    return 0;
}

/* Up to *len bytes; *len is how many there were. */
static int
read_all(int fd, const char *path, char *text, size_t *len, struct buf *why)
{
    size_t at = 0;
    ssize_t got = 1;
    while (got > 0 && at < *len) {
        got = read(fd, text + at, *len - at);
        if (got < 0 && errno == EINTR) {
            got = 1;
        } else if (got > 0) {
            at += (size_t)got;
        }
    }
    if (got < 0) {
        buf_addf(why, "cannot read %s: %s", path, strerror(errno));
        return ERR_SYSTEM;
    }
    *len = at;
    return 0;
}

int
auth_file_read(const char *path, struct auth_users *out, struct buf *why)
{
    size_t len = AUTH_FILE_BYTES_MAX + 1;
    /* non-blocking: a pipe of that name must not hold us up */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        buf_addf(why, "cannot open %s: %s%s", path, strerror(errno),
            errno == EACCES
                ? ": it must belong to the user that the server runs as"
                : "");
        return ERR_SYSTEM;
    }
    char *text = malloc(len);
    int err = text == NULL ? ERR_NO_MEMORY : check_file(fd, path, why);
    if (text == NULL) {
        buf_add_text(why, "out of memory");
    }
    if (err == 0) {
        err = read_all(fd, path, text, &len, why);
    }
    close(fd);
    if (err == 0 && len > AUTH_FILE_BYTES_MAX) {
        buf_addf(why, "%s is longer than 64 KiB", path);
        err = ERR_BAD_FORMAT;
    }
    if (err == 0) {
        err = auth_file_parse(text, len, path, out, why);
    }
    if (text != NULL) {
        explicit_bzero(text, AUTH_FILE_BYTES_MAX + 1);
    }
    free(text);
    return err;
}
