/* SPDX-License-Identifier: BSD-3-Clause */
/* Takes a snapshot in, file by file.
 *
 * The plan never says of a file that it is here before that is so: a file is
 * written, synced with its name, and only then the plan is replaced; and it
 * says that the file is not here before that is written again. So after a crash
 * at any point the plan is true, and files that it does not say to be whole are
 * begun anew.
 *
 * A log file is as long as it was made (wal/frame.h); behind the bytes that
 * came are zeroes.
 *
 * What can go wrong: the disk, memory, a source that sends what it did not
 * announce. */
#include "durable/snapshot_put.h"

#include "base/assert.h"
#include "base/checksum.h"
#include "base/disk_whole.h"
#include "base/err.h"
#include "durable/snapshot_folder.h"
#include "wal/frame.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What the disk refused, told. */
static int
refused(const struct snapshot_put *put, const char *what, const char *name,
    int error)
{
    if (error == ENOMEM) {
        return ERR_NO_MEMORY;
    }
    log_line(put->logger, LOG_ERROR, "cannot %s " SNAPSHOT_PREFIX "%s: %s",
        what, name, disk_say(put->folder, error));
    return disk_err(error);
}

static int
write_plan(struct snapshot_put *put, const struct snapshot_plan *plan)
{
    int error = snapshot_plan_write(put->folder, plan);
    put->is_in_doubt = error != 0;
    return error == 0 ? 0 : refused(put, "replace", SNAPSHOT_PLAN, error);
}

/* Ends the file under way, as it is. */
static void
give_up(struct snapshot_put *put)
{
    if (put->fd >= 0) {
        put->folder->calls->close(put->folder, put->fd);
        put->fd = -1;
    }
}

/* What an earlier process has left. A plan that is damaged is none. */
static int
read_plan(struct snapshot_put *put)
{
    struct disk_file is;
    struct disk *folder = put->folder;
    int error = folder->calls->look(folder, SNAPSHOT_EXCHANGE, -1, &is);
    if (error != ENOENT) {
        return error == 0 ? ERR_CLOSED
                          : refused(put, "look at", SNAPSHOT_EXCHANGE, error);
    }
    int err = snapshot_plan_read(folder, SNAPSHOT_PLAN, &put->plan, &error);
    if (err == ERR_DISK) {
        return refused(put, "read", SNAPSHOT_PLAN, error);
    }
    return err == ERR_NOT_FOUND || err == ERR_CORRUPT ? 0 : err;
}

int
snapshot_put_open(
    struct snapshot_put *put, struct disk *disk, struct logger *logger)
{
    *put = (struct snapshot_put){.logger = logger, .fd = -1};
    put->stream = checksum_stream_create();
    if (put->stream == NULL) {
        return ERR_NO_MEMORY;
    }
    int err = snapshot_folder__create(disk, &put->folder) == 0 ? read_plan(put)
                                                               : ERR_NO_MEMORY;
    if (err != 0) {
        snapshot_put_close(put);
    }
    return err;
}

void
snapshot_put_close(struct snapshot_put *put)
{
    give_up(put);
    snapshot_plan_fini(&put->plan);
    checksum_stream_destroy(&put->stream);
    snapshot_folder__destroy(&put->folder);
    *put = (struct snapshot_put){.fd = -1};
}

/* ---- beginning ---- */

/* What the old plan has of a file of the new one, if it is as long as it must
 * be. */
static struct snapshot_here
here_of(const struct snapshot_put *put, const struct snapshot_file *file)
{
    const struct snapshot_files *files = &put->plan.files;
    size_t i = snapshot_files_find(files, file->kind, file->number);
    char name[NAMES_BYTES];
    struct disk_file is;
    snapshot_file_name(file, name);
    return i < files->n && files->file[i].bytes == file->bytes &&
            put->plan.here[i].is_whole &&
            put->folder->calls->look(put->folder, name, -1, &is) == 0 &&
            is.bytes >= file->bytes
        ? put->plan.here[i]
        : (struct snapshot_here){0};
}

struct sweep {
    const struct snapshot_plan *plan;
    struct buf names; /* of what goes, each with a NUL; owned */
};

static bool
is_wanted(const struct snapshot_plan *plan, const char *name)
{
    struct snapshot_file file;
    if (!snapshot__file_parse(name, &file)) {
        return plan->files.n > 0 && strcmp(name, SNAPSHOT_PLAN) == 0;
    }
    size_t i = snapshot_files_find(&plan->files, file.kind, file.number);
    return i < plan->files.n && plan->here[i].is_whole;
}

static void
note_name(void *context, const char *name)
{
    struct sweep *sweep = context;
    if (!is_wanted(sweep->plan, name)) {
        buf_add(&sweep->names, name, strlen(name) + 1);
    }
}

/* Removes what the plan does not have whole, for good. */
static int
sweep(struct snapshot_put *put)
{
    struct disk *folder = put->folder;
    struct sweep sweep = {.plan = &put->plan};
    int error = folder->calls->list(folder, note_name, &sweep);
    if (error == 0 && sweep.names.failed) {
        error = ENOMEM;
    }
    for (size_t at = 0; error == 0 && at < sweep.names.len;
         at += strlen(sweep.names.data + at) + 1) {
        error = folder->calls->unlink(folder, sweep.names.data + at);
    }
    if (error == 0) {
        error = folder->calls->sync_names(folder);
    }
    buf_fini(&sweep.names);
    return error == 0 ? 0 : refused(put, "remove files of", "", error);
}

/* The manifest goes with the files, and is of a directory of epoch. */
static int
check_list(const void *bytes, size_t len, const struct snapshot_files *files,
    uint64_t *epoch)
{
    struct manifest manifest;
    manifest_init(&manifest);
    int err = manifest_decode(bytes, len, &manifest);
    if (err == 0) {
        err = snapshot_files__agree(&manifest, files);
    }
    *epoch = manifest.epoch;
    manifest_fini(&manifest);
    return err;
}

int
snapshot_put_begin(struct snapshot_put *put, const char *source,
    const void *manifest, size_t manifest_bytes,
    const struct snapshot_files *files)
{
    struct snapshot_plan plan = {0};
    uint64_t epoch;
    int err = check_list(manifest, manifest_bytes, files, &epoch);
    if (err == 0 && put->epoch != 0 && epoch != put->epoch) {
        err = ERR_CORRUPT;
    }
    if (err == 0) {
        err = snapshot_plan_init(&plan, source, epoch, files);
    }
    if (err != 0) {
        return err;
    }
    give_up(put);
    bool is_same =
        strcmp(put->plan.source, source) == 0 && put->plan.epoch == epoch;
    for (size_t i = 0; is_same && i < plan.files.n; i++) {
        plan.here[i] = here_of(put, &plan.files.file[i]);
    }
    put->is_begun = false;
    err = write_plan(put, &plan);
    if (err != 0) {
        snapshot_plan_fini(&plan);
        return err;
    }
    snapshot_plan_fini(&put->plan);
    put->plan = plan;
    err = sweep(put);
    if (err == 0) {
        int error = disk_whole_replace(put->folder, MANIFEST_NAME,
            MANIFEST_NAME ".new", manifest, manifest_bytes, NULL);
        err = error == 0 ? 0 : refused(put, "write", MANIFEST_NAME, error);
    }
    put->is_begun = err == 0;
    return err;
}

int
snapshot_put_drop(struct snapshot_put *put)
{
    struct disk *folder = put->folder;
    give_up(put);
    put->is_begun = false;
    int error = folder->calls->unlink(folder, SNAPSHOT_PLAN);
    if (error == 0 || error == ENOENT) {
        error = folder->calls->sync_names(folder);
    }
    if (error != 0) {
        return refused(put, "remove", SNAPSHOT_PLAN, error);
    }
    snapshot_plan_fini(&put->plan);
    return sweep(put);
}

/* ---- a file ---- */

int
snapshot_put_file(struct snapshot_put *put, size_t i)
{
    struct disk *folder = put->folder;
    char name[NAMES_BYTES];
    ASSERT(put->is_begun && i < put->plan.files.n);
    give_up(put);
    if (put->plan.here[i].is_whole || put->is_in_doubt) {
        put->plan.here[i] = (struct snapshot_here){0};
        int err = write_plan(put, &put->plan);
        if (err != 0) {
            return err;
        }
    }
    snapshot_file_name(&put->plan.files.file[i], name);
    int error = folder->calls->unlink(folder, name);
    if (error == 0 || error == ENOENT) {
        error = folder->calls->open(folder, name, DISK_CREATE, &put->fd);
    }
    if (error != 0) {
        put->fd = -1;
        return refused(put, "make", name, error);
    }
    put->i = i;
    put->at = 0;
    checksum_stream_begin(put->stream);
    return 0;
}

int
snapshot_put_write(
    struct snapshot_put *put, uint64_t at, const void *bytes, size_t len)
{
    struct disk *folder = put->folder;
    char name[NAMES_BYTES];
    if (put->fd < 0 || at != put->at ||
        len > put->plan.files.file[put->i].bytes - at) {
        return ERR_CORRUPT;
    }
    int error = folder->calls->write(folder, put->fd, bytes, len, at);
    if (error != 0) {
        give_up(put);
        snapshot_file_name(&put->plan.files.file[put->i], name);
        return refused(put, "write", name, error);
    }
    checksum_stream_add(put->stream, bytes, len);
    put->at += len;
    ASSERT(put->at <= put->plan.files.file[put->i].bytes);
    return 0;
}

/* Makes a log file as long as its head says. *error: what the disk refused. */
static int
lengthen(struct snapshot_put *put, int *error)
{
    struct disk *folder = put->folder;
    const struct snapshot_file *file = &put->plan.files.file[put->i];
    uint8_t bytes[FRAME_FILE_BYTES];
    struct frame_file head;
    size_t n = 0;
    *error = folder->calls->read(folder, put->fd, bytes, sizeof bytes, 0, &n);
    if (*error != 0) {
        return ERR_DISK;
    }
    if (frame_file_get(bytes, n, &head) != FRAME_OK ||
        head.number != file->number) {
        return ERR_CORRUPT;
    }
    if (head.bytes > put->at) {
        *error = folder->calls->truncate(folder, put->fd, head.bytes);
    }
    return *error == 0 ? 0 : ERR_DISK;
}

/* All of it has come: it is to last. */
static int
settle(struct snapshot_put *put)
{
    struct disk *folder = put->folder;
    const struct snapshot_file *file = &put->plan.files.file[put->i];
    char name[NAMES_BYTES];
    int error = 0;
    int err = file->kind == SNAPSHOT_LOG ? lengthen(put, &error) : 0;
    if (err == ERR_CORRUPT) {
        return err;
    }
    if (error == 0) {
        error = folder->calls->sync(folder, put->fd);
    }
    if (error == 0) {
        error = folder->calls->sync_names(folder);
    }
    if (error == 0) {
        folder->calls->uncache(folder, put->fd, 0, put->at);
        return 0;
    }
    snapshot_file_name(file, name);
    return refused(put, "write", name, error);
}

int
snapshot_put_end(struct snapshot_put *put, uint64_t xxh3)
{
    if (put->fd < 0) {
        return ERR_CORRUPT;
    }
    bool is_right = put->at == put->plan.files.file[put->i].bytes &&
        checksum_stream_sum(put->stream) == xxh3;
    int err = is_right ? settle(put) : ERR_CORRUPT;
    give_up(put);
    if (err != 0) {
        return err;
    }
    put->plan.here[put->i] = (struct snapshot_here){true, xxh3};
    err = write_plan(put, &put->plan);
    if (err != 0) { /* the next plan says less than this one may */
        put->plan.here[put->i] = (struct snapshot_here){0};
    }
    return err;
}

/* ---- the exchange ---- */

/* Sums up the bytes of an open file that the plan has. An errno value; ENODATA:
 * it is shorter. */
static int
sum_file(struct snapshot_put *put, int fd, uint64_t end, uint8_t *room)
{
    struct disk *folder = put->folder;
    int error = 0;
    checksum_stream_begin(put->stream);
    for (uint64_t at = 0; error == 0 && at < end;) {
        size_t len = end - at < SNAPSHOT_PUT_BYTES ? (size_t)(end - at)
                                                   : SNAPSHOT_PUT_BYTES;
        size_t n = 0;
        error = folder->calls->read(folder, fd, room, len, at, &n);
        if (error == 0 && n < len) {
            error = ENODATA;
        }
        checksum_stream_add(put->stream, room, n);
        at += len;
    }
    return error;
}

/* Reads file number i once more. ERR_CORRUPT: it is another one. */
static int
check_file(struct snapshot_put *put, size_t i, uint8_t *room)
{
    struct disk *folder = put->folder;
    const struct snapshot_file *file = &put->plan.files.file[i];
    char name[NAMES_BYTES];
    int fd;
    snapshot_file_name(file, name);
    int error = folder->calls->open(folder, name, DISK_READ, &fd);
    if (error == 0) {
        error = sum_file(put, fd, file->bytes, room);
        folder->calls->close(folder, fd);
    }
    bool is_other = error == ENODATA || error == ENOENT ||
        (error == 0 &&
            checksum_stream_sum(put->stream) != put->plan.here[i].xxh3);
    if (is_other) {
        log_line(put->logger, LOG_ERROR,
            SNAPSHOT_PREFIX "%s is not what was written: it has to be copied "
                            "again",
            name);
        return ERR_CORRUPT;
    }
    return error == 0 ? 0 : refused(put, "read", name, error);
}

/* Reads all files once more; those that are other ones are here no more. */
static int
check_files(struct snapshot_put *put)
{
    int err = 0;
    bool any = false;
    uint8_t *room = malloc(SNAPSHOT_PUT_BYTES);
    if (room == NULL) {
        return ERR_NO_MEMORY;
    }
    for (size_t i = 0; err == 0 && i < put->plan.files.n; i++) {
        err = put->plan.here[i].is_whole ? check_file(put, i, room)
                                         : ERR_NOT_FOUND;
        if (err == ERR_CORRUPT) {
            put->plan.here[i] = (struct snapshot_here){0};
            any = true;
            err = 0;
        }
    }
    free(room);
    if (any) {
        int plan_err = write_plan(put, &put->plan);
        err = err == 0 ? plan_err : err;
    }
    return err == 0 && any ? ERR_CORRUPT : err;
}

int
snapshot_put_exchange(
    struct snapshot_put *put, snapshot_check_fn *check_fn, void *context)
{
    struct disk *folder = put->folder;
    ASSERT(put->is_begun);
    give_up(put);
    int err = check_files(put);
    if (err == 0) {
        err = check_fn(context, folder, put->logger);
    }
    if (err != 0) {
        return err;
    }
    put->is_begun = false;
    int error =
        folder->calls->rename(folder, SNAPSHOT_PLAN, SNAPSHOT_EXCHANGE);
    if (error == 0) {
        error = folder->calls->sync_names(folder);
    }
    return error == 0 ? 0 : refused(put, "make", SNAPSHOT_EXCHANGE, error);
}
