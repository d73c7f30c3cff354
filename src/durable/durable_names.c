/* SPDX-License-Identifier: BSD-3-Clause */
/* Directories of an older tallyd, whose log and checkpoint files have no suffix
 * in their names.
 *
 * Such a directory is loaded as it is. When all is loaded, and before anything
 * else is written, the manifest is written anew, which an older tallyd refuses
 * as a newer one's; then files are renamed. It would take files that it does
 * not find for files that never were: so the manifest comes first. A crash
 * leaves some names of either kind under the new manifest, and the next start
 * goes on. A start that finds damage has changed nothing. */
#include "durable/durable_names.h"

#include "base/assert.h"
#include "base/err.h"
#include "durable/durable_owner.h"
#include "durable/recover.h"
#include "wal/names_old.h"

#include <string.h>

int
durable_look_at_names(struct durable *durable)
{
    struct names_old_found found;
    ASSERT(durable->under == NULL);
    int error = names_old_find(durable->disk, &found);
    if (error != 0) {
        log_line(durable->config.logger, LOG_ERROR,
            "the data directory cannot be read: %s", disk_text(error));
        return ERR_DISK;
    }
    memcpy(durable->today, found.today, sizeof durable->today);
    if (!found.has_old) {
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
    return recover_check_names(
        &durable->manifest, durable->today, durable->config.logger);
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

/* A full disk may have room in the ballast. */
static int
renew_manifest(struct durable *durable)
{
    int error = durable__name_history(durable);
    if (error != 0 && disk_err(error) == ERR_DISK_FULL &&
        durable__drop_ballast(durable)) {
        error = durable__name_history(durable);
    }
    return error;
}

int
durable_carry_over(struct durable *durable)
{
    struct logger *logger = durable->config.logger;
    ASSERT(durable->wal == NULL); /* it would make names meanwhile */
    if (!durable->is_old && durable->under == NULL) {
        return 0;
    }
    int error = durable->is_old ? renew_manifest(durable) : 0;
    if (error == 0 && durable->under != NULL) {
        error = names_old_carry(durable->disk);
    }
    if (error != 0) {
        log_line(logger, LOG_ERROR,
            "cannot carry the directory of an older tallyd over: %s; nothing "
            "is lost, the next start goes on with it",
            disk_say(durable->disk, error));
        return disk_err(error);
    }
    log_line(logger, LOG_WARNING,
        "the directory of an older tallyd has been carried over: older ones "
        "refuse it from now on");
    return 0;
}
