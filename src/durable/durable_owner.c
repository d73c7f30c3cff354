/* SPDX-License-Identifier: BSD-3-Clause */
/* Two servers in one directory.
 *
 * A lock keeps the second one out. Where there is none that holds (--no-lock),
 * or it holds for one host only and another one has the directory mounted too,
 * both would write log files of the same numbers, and each would remove what
 * only the other one's manifest names. So a start writes the manifest anew
 * before its first log file, with its history as the last one and the count of
 * all manifests so far (writes), and whoever finds a MANIFEST that is not what
 * it has last put there looks whose it is:
 *
 *   its last history is that    an older one of its own, put back by somebody
 *   of this server
 *   writes is not above that    one from before this server's start, put back
 *   of what this server read
 *   else                        another server has written it since
 *
 * In the first two cases a checkpoint makes up for it (checkpoint_look.c). In
 * the third this server changes nothing more: its log begins no file, the
 * manifest is not replaced, nothing is removed, changes are refused. That ends
 * when the MANIFEST is its own again, or gone.
 *
 * A start that finds another one's when it has loaded ends there. One that is
 * refused has written nothing.
 *
 * It is looked at once a second, and right before a file is made, renamed or
 * removed. In between the other one may come: of two starts at the same moment
 * that one stays whose manifest is the later. */
#include "durable/durable_owner.h"

#include "base/assert.h"
#include "base/err.h"

#include <errno.h>

static bool
is_same(const struct disk_file *a, const struct disk_file *b)
{
    return a->inode != 0 && a->device == b->device && a->inode == b->inode &&
        a->bytes == b->bytes && a->changed_ns == b->changed_ns;
}

/* Whose the MANIFEST is that is on the disk. is_known: it is not the file that
 * this server has last put there. False: that cannot be told now. */
static bool
judge(struct durable *durable, bool is_known, enum durable_manifest *found)
{
    struct manifest manifest;
    int error = 0;
    mutex_assert_held(&durable->owner_lock);
    manifest_init(&manifest);
    int err = manifest_read(durable->disk, &manifest, &error);
    *found = MANIFEST_OTHER;
    if (err == ERR_NOT_FOUND) {
        *found = MANIFEST_GONE;
    } else if (err == ERR_NEWER_FORMAT) {
        *found = MANIFEST_FOREIGN;
    } else if (err == 0 && manifest.epoch != durable->epoch) {
        *found = MANIFEST_FOREIGN;
    } else if (err == 0 && manifest_writer(&manifest) != durable->history &&
        manifest.writes > durable->read_writes) {
        *found = MANIFEST_FOREIGN;
    } else if (err == 0 && !is_known) {
        *found = MANIFEST_OWN;
    }
    manifest_fini(&manifest);
    /* one that this user may not read is somebody's, as a damaged one is */
    return err != ERR_NO_MEMORY &&
        (error == 0 || error == ENOENT || error == EACCES || error == EPERM ||
            error == DISK_NOT_REGULAR);
}

enum durable_manifest
durable__look_at_manifest(struct durable *durable)
{
    struct disk_file is;
    mutex_lock(&durable->owner_lock);
    int error =
        durable->disk->calls->look(durable->disk, MANIFEST_NAME, -1, &is);
    enum durable_manifest found = MANIFEST_OWN;
    if (error == ENOENT) {
        found = MANIFEST_GONE;
    } else if (error == 0 && !is_same(&durable->manifest_file, &is)) {
        bool is_known = durable->manifest_file.inode != 0;
        if (is_same(&durable->judged_file, &is)) {
            found = (enum durable_manifest)durable->judged;
        } else if (judge(durable, is_known, &found)) {
            durable->judged = (int)found;
            durable->judged_file = is;
        } else {
            found = MANIFEST_OWN; /* the next look may tell */
        }
    }
    ASSERT(found <= MANIFEST_FOREIGN);
    mutex_unlock(&durable->owner_lock);
    return found;
}

int
durable_may_write(struct durable *durable)
{
    return durable__look_at_manifest(durable) == MANIFEST_FOREIGN
        ? ERR_DIR_TAKEN
        : 0;
}

/* The manifest as this server's; what it owns stays the other one's. */
static struct manifest
as_own(const struct durable *durable, const struct manifest *manifest)
{
    struct manifest own = *manifest;
    own.writes = durable->writes;
    ASSERT(manifest_writer(&own) == durable->history);
    return own;
}

int
durable__put_manifest(
    struct durable *durable, const struct manifest *manifest, int *error)
{
    struct disk_file file = {0};
    int err = durable_may_write(durable);
    if (err != 0) {
        if (error != NULL) {
            *error = DISK_TAKEN;
        }
        return err;
    }
    durable->writes++;
    struct manifest own = as_own(durable, manifest);
    ASSERT(own.writes > durable->read_writes);
    ASSERT(own.epoch == durable->epoch);
    err = manifest_write(durable->disk, &own, &file, error);
    mutex_lock(&durable->owner_lock);
    durable->manifest_file = file;
    durable->judged_file.inode = 0;
    mutex_unlock(&durable->owner_lock);
    return err;
}

int
durable__copy_manifest(
    struct durable *durable, const struct manifest *manifest)
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
durable__name_history(struct durable *durable)
{
    int error;
    if (durable->is_history_named) {
        return 0;
    }
    int err = durable__put_manifest(durable, &durable->manifest, &error);
    if (err != 0 && !durable->is_unnamed_told) {
        durable->is_unnamed_told = true;
        log_line(durable->config.logger, LOG_ERROR, "cannot replace %s: %s",
            MANIFEST_NAME,
            error != 0 ? disk_say(durable->disk, error) : err_file_text(err));
    }
    if (err != 0) {
        return error != 0 ? error : ENOMEM;
    }
    ASSERT(durable->writes > durable->read_writes);
    durable->is_history_named = true;
    durable->is_copied =
        durable__copy_manifest(durable, &durable->manifest) == 0;
    return 0;
}

int
durable__check_owner(struct durable *durable)
{
    int err = durable_may_write(durable);
    if (err != 0) {
        log_line(durable->config.logger, LOG_ERROR,
            "another server has written %s while this one was loading: start "
            "only one of them",
            MANIFEST_NAME);
    }
    return err;
}
