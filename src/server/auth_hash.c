/* SPDX-License-Identifier: BSD-3-Clause */
/* crypt(3). What it takes is left to it: a hash names its method and its cost,
 * and new ones are made with the method that the system prefers (yescrypt in
 * Debian 12). Refused are hashes without a $, DES and its like. */
#include "server/auth_hash.h"

#include "base/err.h"
#include "server/auth_file.h"

#include <crypt.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

enum { HASH_CHARACTERS_MIN = 40 }; /* more than any salt has */

bool
auth_hash_is_known(const char *hash)
{
    if (hash[0] != '$' || strncmp(hash, "$1$", 3) == 0) {
        return false;
    }
    int kind = crypt_checksalt(hash);
    if (kind != CRYPT_SALT_OK && kind != CRYPT_SALT_METHOD_LEGACY) {
        return false;
    }
    /* a setting alone is not yet a hash: nothing would fit it */
    const char *last = strrchr(hash, '$');
    return strlen(last) > HASH_CHARACTERS_MIN;
}

/* The same time wherever they differ; the lengths are no secret. */
static bool
is_same(const char *a, const char *b)
{
    size_t len = strlen(a);
    unsigned char differs = 0;
    if (strlen(b) != len) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        differs |= (unsigned char)(a[i] ^ b[i]);
    }
    return differs == 0;
}

bool
auth_hash_fits(const char *hash, const char *password)
{
    struct crypt_data *data = calloc(1, sizeof *data);
    if (data == NULL) {
        return false;
    }
    const char *made = crypt_r(password, hash, data);
    bool fits = made != NULL && made[0] == '$' && is_same(made, hash);
    explicit_bzero(data, sizeof *data);
    free(data);
    return fits;
}

static void
set_echo(bool shows)
{
    struct termios mode;
    if (tcgetattr(STDIN_FILENO, &mode) == 0) {
        mode.c_lflag =
            shows ? mode.c_lflag | ECHO : mode.c_lflag & ~(tcflag_t)ECHO;
        (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &mode);
    }
}

/* One line to *password, which ends with NUL then. */
static int
read_password(char *password, size_t size, struct buf *why)
{
    bool asks = isatty(STDIN_FILENO) == 1;
    if (asks) {
        fputs("Password: ", stderr);
        set_echo(false);
    }
    char *got = fgets(password, (int)size, stdin);
    if (asks) {
        set_echo(true);
        fputs("\n", stderr);
    }
    size_t len = got == NULL ? 0 : strcspn(password, "\r\n");
    if (len == 0 || len > LOGIN_WORD_MAX) {
        buf_add_text(why, "a password of 1 to 255 bytes is wanted on stdin");
        return ERR_BAD_VALUE;
    }
    password[len] = '\0';
    return 0;
}

int
auth_hash_make(struct buf *why)
{
    char password[LOGIN_WORD_MAX + 3]; /* with CR or LF, and NUL */
    char setting[CRYPT_GENSALT_OUTPUT_SIZE];
    int err = read_password(password, sizeof password, why);
    struct crypt_data *data = err == 0 ? calloc(1, sizeof *data) : NULL;
    if (err == 0 && data == NULL) {
        buf_add_text(why, "out of memory");
        err = ERR_NO_MEMORY;
    }
    if (err == 0) {
        /* no method, no cost, no salt: the best, its usual one, random */
        const char *made =
            crypt_gensalt_rn(NULL, 0, NULL, 0, setting, sizeof setting);
        const char *hash =
            made == NULL ? NULL : crypt_r(password, setting, data);
        if (hash == NULL || hash[0] != '$' || puts(hash) < 0 ||
            fflush(stdout) != 0) {
            buf_addf(why, "cannot make a hash: %s", strerror(errno));
            err = ERR_SYSTEM;
        }
    }
    explicit_bzero(password, sizeof password);
    free(data);
    return err;
}
