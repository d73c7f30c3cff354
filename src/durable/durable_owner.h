/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DURABLE_DURABLE_OWNER_H
#define DURABLE_DURABLE_OWNER_H

#include "durable/durable.h"

/* Whose MANIFEST is, see durable_owner.c. */

enum durable_manifest {
    MANIFEST_OWN,     /* this server's last one, as far as is known */
    MANIFEST_GONE,    /* there is none */
    MANIFEST_OTHER,   /* an earlier one of this directory, or a damaged one */
    MANIFEST_FOREIGN, /* one that somebody else has written since this server
                       * read its own, or of another directory */
};

/* Which it is now. A look at the disk; the bytes are read where it is not the
 * file that it was. Any thread. */
enum durable_manifest durable__look_at_manifest(struct durable *durable);

/* Whether files may be made and removed here: 0 or ERR_DIR_TAKEN. As above. */
int durable_may_write(struct durable *durable);

/* Replaces the manifest by this one, as this server's. Errors and *error as of
 * manifest_write, or ERR_DIR_TAKEN and DISK_TAKEN. The loader, or under
 * manifest_lock. */
int durable__put_manifest(
    struct durable *durable, const struct manifest *manifest, int *error);

/* Has the copy of the manifest follow it. A failure is only told: 0 or why. As
 * above. */
int durable__copy_manifest(
    struct durable *durable, const struct manifest *manifest);

/* Has the manifest on disk name the history of this process before there is a
 * log file of it: log files that it does not name are not read, and another
 * server sees that the directory is not its own. 0 or what the disk says; told
 * once. Under manifest_lock, or the loader. */
int durable__name_history(struct durable *durable);

/* Whether the directory is still as it was read. 0 or ERR_DIR_TAKEN (the logger
 * has been told). The loader's. */
int durable__check_owner(struct durable *durable);

#endif
