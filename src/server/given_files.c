/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the files that the operator gives at a start, but for those of TLS
 * (server/secure.c), and tries to write the log's file. --auth-file and
 * --owns-file are read again when the user is dropped. */
#include "server/given_files.h"

#include "base/err.h"
#include "server/auth.h"
#include "server/owning.h"
#include "server/process.h"
#include "server/schema_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int
read_schema(const struct options *options,
    const struct data_option *data_option, struct buf *text, struct buf *why)
{
    const char *path = options->schema.text;
    int err = path[0] == '\0' ? 0 : schema_file_read(path, text, why);
    if (err != 0 || path[0] == '\0') {
        return err;
    }
    return schema_file_check(
        path, text, data_option_is_new(data_option, options), why);
}

/* True of what is, or will be, in the data directory. */
static bool
is_in_data(const struct options *options, const char *path)
{
    size_t len = strlen(options->data.text);
    return strncmp(path, options->data.text, len) == 0 && path[len] == '/';
}

/* Whether --log-file can be written. It is opened when all else is known to be
 * right. */
static int
check_log(const struct options *options, struct buf *why)
{
    char folder[OPTIONS_TEXT_BYTES];
    const char *path = options->log_file.text;
    if (path[0] == '\0' || is_in_data(options, path) ||
        faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0) {
        return 0;
    }
    int len = (int)(strrchr(path, '/') - path); /* it is absolute */
    (void)snprintf(folder, sizeof folder, "%.*s", len, path);
    if (errno == ENOENT &&
        faccessat(
            AT_FDCWD, len == 0 ? "/" : folder, W_OK | X_OK, AT_EACCESS) == 0) {
        return 0;
    }
    buf_addf(why, "cannot open the log file %s: %s", path, strerror(errno));
    return ERR_SYSTEM;
}

/* What the server's user reads, or makes, later. */
static int
check_as_user(const void *context, struct buf *why)
{
    const struct options *options = context;
    int err = options->auth_file.text[0] == '\0'
        ? 0
        : auth_check(options->auth_file.text, why);
    if (err == 0) {
        err = owning_check(options, why);
    }
    return err == 0 ? check_log(options, why) : err;
}

int
given_files_read(const struct options *options,
    const struct data_option *data_option, struct buf *schema_text,
    struct buf *why)
{
    int err = read_schema(options, data_option, schema_text, why);
    return err != 0
        ? err
        : process_try_as(options->user.text, check_as_user, options, why);
}
