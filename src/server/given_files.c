/* SPDX-License-Identifier: BSD-3-Clause */
/* The files that the operator gives at a start, but for those of TLS
 * (server/secure.c). --auth-file is read again when the user is dropped. */
#include "server/given_files.h"

#include "server/auth.h"
#include "server/process.h"
#include "server/schema_file.h"

static int
read_schema(const struct options *options, const struct keeping *keeping,
    struct buf *text, struct buf *why)
{
    const char *path = options->schema.text;
    int err = path[0] == '\0' ? 0 : schema_file_read(path, text, why);
    if (err != 0 || path[0] == '\0') {
        return err;
    }
    return schema_file_check(
        path, text, keeping_is_new(keeping, options), why);
}

static int
check_auth(const void *context, struct buf *why)
{
    const struct options *options = context;
    return auth_check(options->auth_file.text, why);
}

int
given_files_read(const struct options *options, const struct keeping *keeping,
    struct buf *schema_text, struct buf *why)
{
    int err = read_schema(options, keeping, schema_text, why);
    if (err != 0 || options->auth_file.text[0] == '\0') {
        return err;
    }
    return process_try_as(options->user.text, check_auth, options, why);
}
