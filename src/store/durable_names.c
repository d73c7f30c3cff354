/* SPDX-License-Identifier: BSD-3-Clause */
/* Directories of an older tallyd, whose log and checkpoint files have no suffix
 * in their names, and whose manifest has no writer.
 *
 * Such a directory is loaded as it is. When all is loaded, and before anything
 * else is written, the manifest is written anew, which an older tallyd refuses
 * as a newer one's; then files are renamed. It would take files that it does
 * not find for files that never were: so the manifest comes first. A crash
 * leaves some names of either kind under the new manifest, and the next start
 * goes on. A start that finds damage has changed nothing. */
#include "store/durable_names.h"

#include "base/err.h"
#include "wal/names_old.h"

#include <string.h>

/* The manifest as this server's; what it owns stays the other one's. */
static struct manifest
as_own(const struct durable *durable, const struct manifest *manifest)
{
    struct manifest own = *manifest;
    own.writer = durable->history;
    own.writes = durable->writes;
    return own;
}

int
durable_put_manifest(
    struct durable *durable, const struct manifest *manifest, int *error)
{
    durable->writes++;
    struct manifest own = as_own(durable, manifest);
    return manifest_write(durable->disk, &own, &durable->manifest_file, error);
}

int
durable_copy_manifest(struct durable *durable, const struct manifest *manifest)
{
    struct manifest own = as_own(durable, manifest);
    int err = manifest_write_copy(durable->disk, &own);
    if (err != 0) {
        log_line(durable->config.logger, LOG_WARNING,
            "cannot replace %s: %s; the next checkpoint tries again",
            MANIFEST_COPY, err_file_text(err));
    }
    return err;
}

int
durable_look_at_names(struct durable *durable)
{
    struct names_old_found found;
    int error = names_old_find(durable->disk, &found);
    if (error != 0) {
        log_line(durable->config.logger, LOG_ERROR,
            "the data directory cannot be read: %s", disk_text(error));
        return ERR_DISK;
    }
    durable->has_new_names = found.new;
    if (!found.old) {
        return 0;
    }
    durable->under = durable->disk;
    if (names_old_create(durable->under, &durable->disk) != 0) {
        durable->disk = durable->under;
        durable->under = NULL;
        return ERR_NO_MEMORY;
    }
    return 0;
}

int
durable_check_names(struct durable *durable)
{
    if (durable->manifest.writer != 0 || !durable->has_new_names) {
        return 0;
    }
    log_line(durable->config.logger, LOG_ERROR,
        "%s is of an older tallyd, and there are log or checkpoint files of a "
        "newer one: they are not of one moment. Restore a backup into an empty "
        "directory",
        MANIFEST_NAME);
    return ERR_CORRUPT;
}

void
durable_end_names(struct durable *durable)
{
    if (durable->under != NULL) {
        names_old_destroy(&durable->disk);
        durable->disk = durable->under;
        durable->under = NULL;
    }
}

/* The same manifest once more, as it is on the disk: what was loaded may have
 * less. */
static int
renew_manifest(struct durable *durable, int *error)
{
    struct manifest manifest;
    manifest_init(&manifest);
    int err = manifest_read(durable->disk, &manifest, error);
    if (err == 0) {
        err = durable_put_manifest(durable, &manifest, error);
        if (err == ERR_DISK_FULL && durable_drop_ballast(durable)) {
            err = durable_put_manifest(durable, &manifest, error);
        }
    }
    if (err == 0) {
        durable->manifest.writer = durable->history;
    }
    manifest_fini(&manifest);
    return err;
}

int
durable_carry_over(struct durable *durable)
{
    struct logger *logger = durable->config.logger;
    int error = 0;
    if (durable->manifest.writer != 0 && durable->under == NULL) {
        return 0;
    }
    int err =
        durable->manifest.writer == 0 ? renew_manifest(durable, &error) : 0;
    if (err == 0 && durable->under != NULL) {
        error = names_old_carry(durable->disk);
        err = error == 0 ? 0 : disk_err(error);
    }
    if (err != 0) {
        log_line(logger, LOG_ERROR,
            "cannot carry the directory of an older tallyd over: %s; nothing "
            "is lost, the next start goes on with it",
            error != 0 ? disk_text(error) : err_file_text(err));
        return err;
    }
    log_line(logger, LOG_WARNING,
        "the directory of an older tallyd has been carried over: older ones "
        "refuse it from now on");
    return 0;
}
