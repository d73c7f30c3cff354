/* SPDX-License-Identifier: BSD-3-Clause */
/* Gives the texts of the one error table. */
#include "base/err.h"

#include "base/assert.h"

#define X(name, text) [ERR_##name] = text,
static const char *const texts[ERR_COUNT] = {[ERR_OK] = "ok", ERR_TABLE(X)};
#undef X

const char *
err_text(int err)
{
    ASSERT(err >= 0 && err < ERR_COUNT);
    return texts[err];
}

const char *
err_file_text(int err)
{
    switch (err) {
    case ERR_DISK_FULL:
        return "the disk is full: see df, and df -i for files";
    case ERR_DISK:
        return "a file could not be read or written";
    case ERR_COLD_READ:
        return "a file cannot be read, see the server's log";
    case ERR_DIR_TAKEN:
        return "another server has the data directory";
    case ERR_FILE_SIZE:
        return "a file size limit is reached";
    default:
        return err_text(err);
    }
}
