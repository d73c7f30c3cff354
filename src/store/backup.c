/* SPDX-License-Identifier: BSD-3-Clause */
/* A backup as the store has it: which files there are, and that they stay. The
 * list is made on the checkpointer's thread, which has opened the snapshot. To
 * end it is a flag of the checkpointer, so a worker may.
 *
 * What can go wrong: memory; what goes wrong with a snapshot. */
#include "store/backup.h"

#include "base/assert.h"
#include "base/err.h"
#include "durable/snapshot.h"
#include "store/store.h"

#include <assert.h>
#include <stdlib.h>

static_assert((int)STORE_FILE_BYTES >= (int)NAMES_BYTES, "names fit");

enum { WORK_MAGIC = 0x62616b77 };

struct backup_work {
    uint32_t magic; /* WORK_MAGIC */
    struct snapshot snapshot;
    struct store_backup *backup; /* the caller's */
    const char *path;
    struct store_backup_file *file; /* owned */
};

static void
destroy(struct store_backup *backup)
{
    struct backup_work *work = backup->work;
    work->magic = 0;
    free(work->file);
    free(work);
    *backup = (struct store_backup){.call = backup->call, .err = backup->err};
}

static int
list_files(struct backup_work *work)
{
    const struct snapshot_files *files = &work->snapshot.files;
    struct store_backup *backup = work->backup;
    work->file = calloc(files->n + 1, sizeof *work->file);
    if (work->file == NULL) {
        return ERR_NO_MEMORY;
    }
    for (size_t i = 0; i < files->n; i++) {
        snapshot_file_name(&files->file[i], work->file[i].name);
        work->file[i].bytes = files->file[i].bytes;
    }
    backup->path = work->path;
    backup->last_seq = work->snapshot.last_seq;
    backup->n_files = files->n;
    backup->file = work->file;
    backup->manifest = work->snapshot.manifest.data;
    backup->manifest_bytes = work->snapshot.manifest.len;
    return 0;
}

static void
opened(struct store_call *call)
{
    struct backup_work *work = call->owner;
    struct store_backup *backup = work->backup;
    ASSERT(work->magic == WORK_MAGIC && backup->work == work);
    backup->err = work->snapshot.err;
    if (backup->err == 0) {
        backup->err = list_files(work);
        if (backup->err != 0) {
            snapshot_close(&work->snapshot);
        }
    }
    if (backup->err != 0) {
        destroy(backup);
    }
    backup->call.done_fn(&backup->call);
}

enum store_answer
backup_begin(
    struct store *store, const char *path, struct store_backup *backup)
{
    ASSERT(backup->work == NULL);
    struct backup_work *work = calloc(1, sizeof *work);
    if (work == NULL) {
        backup->err = ERR_NO_MEMORY;
        return STORE_DONE;
    }
    work->magic = WORK_MAGIC;
    work->backup = backup;
    work->path = path == NULL ? "" : path;
    work->snapshot.call =
        (struct store_call){.done_fn = opened, .owner = work};
    work->snapshot.keeps_names = true;
    backup->work = work;
    store_want_snapshot(store, &work->snapshot);
    return STORE_LATER;
}

int
backup_end(struct store_backup *backup)
{
    ASSERT(backup->work->magic == WORK_MAGIC);
    int err = snapshot_check(&backup->work->snapshot);
    snapshot_close(&backup->work->snapshot);
    destroy(backup);
    return err;
}
