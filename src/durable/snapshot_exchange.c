/* SPDX-License-Identifier: BSD-3-Clause */
/* The exchange. sync-exchange orders it, and lists the files of the snapshot:
 *
 *   MANIFEST goes            nothing is a directory any more; an older tallyd
 *                            refuses it
 *   ---- names are synced
 *   files get their names    sync-X becomes X, in the place of an old X
 *   old files go             those that the list does not have
 *   ---- names are synced    now all but MANIFEST is there, and nothing else
 *   MANIFEST gets its name
 *   the rest of sync- goes   but sync-exchange
 *   ---- names are synced
 *   sync-exchange goes
 *   ---- names are synced
 *
 * Done again from the start, each step finds what is left to do: a file of the
 * list that is not in the folder has its name already; while the folder has a
 * MANIFEST the directory's is the old one, or there is none.
 *
 * What can go wrong: the disk; then it is under way still. */
#include "durable/snapshot_exchange.h"

#include "base/assert.h"
#include "base/buf.h"
#include "base/err.h"
#include "cold/segment_head.h"
#include "durable/snapshot_folder.h"
#include "durable/snapshot_plan.h"
#include "wal/manifest.h"
#include "wal/names_old.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

struct exchange {
    struct disk *disk, *folder;
    struct logger *logger;
    struct snapshot_plan plan;
    struct buf names; /* of what goes, each with a NUL; owned */
};

/* An unlink of what may be gone already. An errno value. */
static int
remove_name(struct disk *disk, const char *name)
{
    int error = disk->calls->unlink(disk, name);
    return error == ENOENT ? 0 : error;
}

static int
sync_names(struct exchange *it)
{
    return it->disk->calls->sync_names(it->disk);
}

static int
remove_manifest(struct exchange *it)
{
    static const char *const names[] = {MANIFEST_NAME, MANIFEST_NAME ".new",
        MANIFEST_COPY, MANIFEST_COPY ".new"};
    int error = 0;
    for (size_t i = 0; error == 0 && i < sizeof names / sizeof names[0]; i++) {
        error = remove_name(it->disk, names[i]);
    }
    return error == 0 ? sync_names(it) : error;
}

/* ENODATA: a file is neither here nor there. */
static int
give_files(struct exchange *it)
{
    char name[NAMES_BYTES];
    struct disk_file is;
    for (size_t i = 0; i < it->plan.files.n; i++) {
        const struct snapshot_file *file = &it->plan.files.file[i];
        snapshot_file_name(file, name);
        int error = snapshot_folder__give(it->folder, name);
        if (error == ENOENT) {
            error = it->disk->calls->look(it->disk, name, -1, &is);
            error = error == ENOENT || (error == 0 && is.bytes < file->bytes)
                ? ENODATA
                : error;
        }
        if (error != 0) {
            return error;
        }
    }
    return 0;
}

/* True of the name of a log, checkpoint or segment file, in whatever state.
 * What was cut off a log is none: nothing else has it. */
static bool
is_data(const char *name)
{
    enum names_kind kind;
    uint64_t number;
    char now[NAMES_BYTES];
    bool is_new;
    if (names_parse(name, &kind, &number)) {
        return kind != NAMES_CUT;
    }
    return names_old_parse(name, now) ||
        segment_name_parse(name, &number, &is_new);
}

static void
note_old(void *context, const char *name)
{
    struct exchange *it = context;
    const struct snapshot_files *files = &it->plan.files;
    struct snapshot_file file;
    bool is_new = snapshot__file_parse(name, &file) &&
        snapshot_files_find(files, file.kind, file.number) < files->n;
    if (!is_new && is_data(name)) {
        buf_add(&it->names, name, strlen(name) + 1);
    }
}

static void
note_rest(void *context, const char *name)
{
    struct exchange *it = context;
    if (strcmp(name, SNAPSHOT_EXCHANGE) != 0) {
        buf_add(&it->names, name, strlen(name) + 1);
    }
}

/* Removes the files of a disk that note_fn has noted. */
static int
remove_noted(struct exchange *it, struct disk *disk,
    void (*note_fn)(void *context, const char *name))
{
    buf_clear(&it->names);
    int error = disk->calls->list(disk, note_fn, it);
    if (error == 0 && it->names.failed) {
        error = ENOMEM;
    }
    for (size_t at = 0; error == 0 && at < it->names.len;
         at += strlen(it->names.data + at) + 1) {
        error = remove_name(disk, it->names.data + at);
    }
    return error == 0 ? sync_names(it) : error;
}

/* All steps but the last. */
static int
replace_all(struct exchange *it)
{
    struct disk_file is;
    int error = it->folder->calls->look(it->folder, MANIFEST_NAME, -1, &is);
    if (error != 0) {
        return error == ENOENT ? 0 : error; /* it has its name */
    }
    error = remove_manifest(it);
    if (error == 0) {
        error = give_files(it);
    }
    if (error == 0) {
        error = remove_noted(it, it->disk, note_old);
    }
    if (error == 0) {
        error = snapshot_folder__give(it->folder, MANIFEST_NAME);
    }
    return error;
}

/* Nothing but the order is left, and then not even that. */
static int
end(struct exchange *it)
{
    int error = remove_noted(it, it->folder, note_rest);
    if (error == 0) {
        error = remove_name(it->folder, SNAPSHOT_EXCHANGE);
    }
    return error == 0 ? sync_names(it) : error;
}

static int
failed(const struct exchange *it, int error)
{
    log_line(it->logger, LOG_ERROR,
        "the files of a snapshot cannot take the place of the old ones: %s; "
        "the next start goes on",
        error == ENODATA ? "some are missing" : disk_say(it->disk, error));
    return error == ENODATA ? ERR_CORRUPT
        : error == ENOMEM   ? ERR_NO_MEMORY
                            : disk_err(error);
}

static int
run(struct exchange *it)
{
    int error;
    int err =
        snapshot_plan_read(it->folder, SNAPSHOT_EXCHANGE, &it->plan, &error);
    if (err == ERR_NOT_FOUND) {
        return 0;
    }
    if (err != 0) {
        log_line(it->logger, LOG_ERROR,
            SNAPSHOT_PREFIX SNAPSHOT_EXCHANGE ": %s",
            error != 0 ? disk_say(it->disk, error) : err_file_text(err));
        return err;
    }
    error = replace_all(it);
    if (error == 0) {
        error = end(it);
    }
    if (error != 0) {
        return failed(it, error);
    }
    log_line(it->logger, LOG_WARNING,
        "the data directory is now a snapshot of that of %s, of %zu files",
        it->plan.source, it->plan.files.n);
    return 0;
}

int
snapshot_exchange__finish(struct disk *disk, struct logger *logger)
{
    struct exchange it = {.disk = disk, .logger = logger};
    if (snapshot_folder__create(disk, &it.folder) != 0) {
        return ERR_NO_MEMORY;
    }
    int err = run(&it);
    snapshot_plan_fini(&it.plan);
    buf_fini(&it.names);
    snapshot_folder__destroy(&it.folder);
    return err;
}

int
snapshot_exchange_refuse(struct disk *disk, struct logger *logger)
{
    struct disk_file is;
    int error =
        disk->calls->look(disk, SNAPSHOT_PREFIX SNAPSHOT_EXCHANGE, -1, &is);
    if (error == ENOENT) {
        return 0;
    }
    log_line(logger, LOG_ERROR, "%s",
        error != 0 ? disk_say(disk, error)
                   : "a snapshot is taking the place of this data directory: "
                     "start the server, which finishes that");
    return error != 0 ? ERR_DISK : ERR_CORRUPT;
}
