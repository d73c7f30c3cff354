/* SPDX-License-Identifier: BSD-3-Clause */
/* The replica's end of a copy. Its thread goes through it once:
 *
 *   OPENING   what an earlier copy has left is looked at
 *   GREETED   SNAPSHOT comes
 *   LISTING   its contents come: the list of files, and the manifest
 *   TELLING   what is here of that goes out, by HAVE
 *   FILLING   files come, in the list's order; some that are here come again
 *   CHECKING  all of them are read once more, as a start would; the exchange is
 *             ordered
 *   OVER
 *
 * durable/snapshot_put.h puts it all on the disk, and sees to it that the
 * directory that is here stays as it is up to the exchange.
 *
 * What can go wrong: the disk; memory; a primary that sends what it did not
 * announce; files that are damaged. What has come whole stays for the next
 * copy. */
#include "repl/copy_in.h"

#include "base/assert.h"
#include "base/buf.h"
#include "base/checksum.h"
#include "base/disk_front.h"
#include "base/err.h"
#include "base/give_way.h"
#include "durable/snapshot_put.h"
#include "offline/data_check.h"
#include "repl/copy_priv.h"

#include <stdlib.h>
#include <string.h>

enum { COPY_NICE = 19 };

_Static_assert((int)MESSAGE_NAME_MAX <= (int)SNAPSHOT_SOURCE_MAX,
    "a node's name is one of a source");

struct copy_in {
    struct copy_end end;
    struct disk *disk; /* owned; see copy__disk_create */
    uint64_t epoch;
    /* the thread's: */
    struct snapshot_put put;
    char source[MESSAGE_NAME_MAX + 1];
    struct message_snapshot totals; /* but its source */
    struct buf contents;            /* owned */
    struct snapshot_files files;    /* owned */
    size_t next;                    /* files before this one come no more */
};

/* The next frame, which must be of that type. ERR_CLOSED at a stop. */
static int
take(struct copy_in *copy, enum stream_type type, struct stream_frame *frame,
    const char **what)
{
    if (!copy__take(&copy->end, frame)) {
        return ERR_CLOSED;
    }
    *what = "a frame is not due";
    return frame->type == type ? 0 : ERR_CORRUPT;
}

/* Of a body that is not sound: what should be there. */
static int
wrong(const struct stream_fault *fault, const char **what)
{
    *what = fault->what;
    return ERR_CORRUPT;
}

static int
be_greeted(struct copy_in *copy, const char **what)
{
    struct message_snapshot *totals = &copy->totals;
    struct stream_frame frame;
    struct stream_fault fault;
    int err = take(copy, STREAM_SNAPSHOT, &frame, what);

    if (err != 0) {
        return err;
    }
    if (message_get_snapshot(&frame, totals, &fault) != 0) {
        return wrong(&fault, what);
    }
    memcpy(copy->source, totals->source.at, totals->source.len);
    totals->source = (struct message_text){0};
    copy__expect(&copy->end, totals->files, totals->bytes);
    return 0;
}

/* ---- listing ---- */

static int
begin_contents(struct copy_in *copy, const char **what)
{
    struct message_file file;
    struct stream_frame frame;
    struct stream_fault fault;
    int err = take(copy, STREAM_FILE, &frame, what);

    if (err != 0) {
        return err;
    }
    if (message_get_file(&frame, &file, &fault) != 0) {
        return wrong(&fault, what);
    }
    *what = "the contents are not what was announced";
    return file.kind == MESSAGE_CONTENTS &&
            file.bytes == message_contents_bytes(&copy->totals)
        ? 0
        : ERR_CORRUPT;
}

static int
add_contents(struct copy_in *copy, const char **what)
{
    uint64_t end = message_contents_bytes(&copy->totals);
    struct message_data data;
    struct stream_frame frame;
    struct stream_fault fault;
    int err = take(copy, STREAM_DATA, &frame, what);

    if (err != 0) {
        return err;
    }
    if (message_get_data(&frame, &data, &fault) != 0) {
        return wrong(&fault, what);
    }
    *what = "the contents do not come in order";
    if (data.offset != copy->contents.len ||
        data.len > end - copy->contents.len) {
        return ERR_CORRUPT;
    }
    buf_add(&copy->contents, data.bytes, data.len);
    *what = "the list of files";
    return copy->contents.failed ? ERR_NO_MEMORY : 0;
}

static int
end_contents(struct copy_in *copy, const char **what)
{
    struct message_end end;
    struct stream_frame frame;
    struct stream_fault fault;
    int err = take(copy, STREAM_END, &frame, what);

    if (err != 0) {
        return err;
    }
    if (message_get_end(&frame, &end, &fault) != 0) {
        return wrong(&fault, what);
    }
    *what = "the contents have another checksum";
    return end.of == MESSAGE_END_FILE &&
            end.value == checksum64(copy->contents.data, copy->contents.len, 0)
        ? 0
        : ERR_CORRUPT;
}

/* True where b comes behind a. */
static bool
is_behind(const struct snapshot_file *a, const struct message_file *b)
{
    return b->kind > a->kind || (b->kind == a->kind && b->number > a->number);
}

/* The list, which must be in order and sum up. */
static int
read_list(struct copy_in *copy, const char **what)
{
    struct snapshot_files *files = &copy->files;
    uint64_t left = copy->totals.bytes;

    *what = "the list of files";
    files->file = calloc(copy->totals.files, sizeof *files->file);
    if (files->file == NULL) {
        return ERR_NO_MEMORY;
    }
    files->capacity = copy->totals.files;
    for (uint32_t i = 0; i < copy->totals.files; i++) {
        struct message_file file;

        if (!message_get_listed((const uint8_t *)copy->contents.data +
                    (size_t)i * MESSAGE_LISTED_BYTES,
                &file) ||
            (i > 0 && !is_behind(&files->file[i - 1], &file)) ||
            file.bytes > left) {
            return ERR_CORRUPT;
        }
        left -= file.bytes;
        files->file[files->n++] = (struct snapshot_file){
            .kind = file.kind, .number = file.number, .bytes = file.bytes};
    }
    return left == 0 ? 0 : ERR_CORRUPT;
}

/* Whether there is room for what is not here, as far as the disk tells. */
static int
look_for_room(struct copy_in *copy, const char **what)
{
    const struct snapshot_plan *plan = &copy->put.plan;
    uint64_t need = 0, room;

    for (size_t i = 0; i < plan->files.n; i++) {
        need += plan->here[i].is_whole ? 0 : plan->files.file[i].bytes;
    }
    *what = "the disk has no room for both directories";
    return copy->disk->calls->room(copy->disk, &room) == 0 && room < need
        ? ERR_DISK_FULL
        : 0;
}

static int
list(struct copy_in *copy, const char **what)
{
    size_t at = (size_t)copy->totals.files * MESSAGE_LISTED_BYTES;
    int err = begin_contents(copy, what);

    while (err == 0 &&
        copy->contents.len < message_contents_bytes(&copy->totals)) {
        err = add_contents(copy, what);
    }
    if (err == 0) {
        err = end_contents(copy, what);
    }
    if (err == 0) {
        err = read_list(copy, what);
    }
    if (err == 0) {
        *what = "the manifest, and the files that it names";
        err = snapshot_put_begin(&copy->put, copy->source,
            copy->contents.data + at, copy->totals.manifest_len, &copy->files);
    }
    buf_fini(&copy->contents);
    snapshot_files_fini(&copy->files);
    return err == 0 ? look_for_room(copy, what) : err;
}

/* ---- telling ---- */

/* Puts as many files into one HAVE as it may have, from *i on, and counts
 * them. */
static uint32_t
put_have(struct copy_in *copy, uint8_t *body, size_t *i, uint32_t *n)
{
    const struct snapshot_plan *plan = &copy->put.plan;
    size_t len = message_put_have(body, 0);

    for (*n = 0; *i < plan->files.n && *n < MESSAGE_HAVE_MAX; ++*i) {
        const struct snapshot_file *file = &plan->files.file[*i];
        const struct message_have_file here = {
            .kind = (enum message_file_kind)file->kind,
            .number = file->number,
            .bytes = file->bytes,
            .sum = plan->here[*i].xxh3};

        if (plan->here[*i].is_whole) {
            len += message_put_have_file(body + len, &here);
            ++*n;
            copy__count(&copy->end, file->bytes, true);
        }
    }
    (void)message_put_have(body, *n);
    return (uint32_t)len;
}

static int
tell(struct copy_in *copy)
{
    uint32_t n = MESSAGE_HAVE_MAX;

    for (size_t i = 0; n == MESSAGE_HAVE_MAX;) {
        uint8_t *frame = copy__room(&copy->end);

        if (frame == NULL) {
            return ERR_CLOSED;
        }
        copy__put(&copy->end, STREAM_HAVE,
            put_have(copy, frame + STREAM_HEAD_BYTES, &i, &n));
    }
    return 0;
}

/* ---- filling ---- */

static int
begin_file(
    struct copy_in *copy, const struct stream_frame *frame, const char **what)
{
    const struct snapshot_plan *plan = &copy->put.plan;
    struct message_file file;
    struct stream_fault fault;
    size_t i;

    if (message_get_file(frame, &file, &fault) != 0) {
        return wrong(&fault, what);
    }
    i = snapshot_files_find(&plan->files, file.kind, file.number);
    if (i == plan->files.n || plan->files.file[i].bytes != file.bytes) {
        *what = "a file that is not of the snapshot";
        return ERR_CORRUPT;
    }
    if (i < copy->next) {
        *what = "files in the order of the list";
        return ERR_CORRUPT;
    }
    copy->next = i + 1;
    if (plan->here[i].is_whole) { /* with other bytes than the primary's */
        copy__uncount(&copy->end, file.bytes);
    }
    *what = "beginning a file";
    return snapshot_put_file(&copy->put, i);
}

static int
add_data(
    struct copy_in *copy, const struct stream_frame *frame, const char **what)
{
    struct message_data data;
    struct stream_fault fault;

    if (message_get_data(frame, &data, &fault) != 0) {
        return wrong(&fault, what);
    }
    *what = "writing a file";
    return snapshot_put_write(&copy->put, data.offset, data.bytes, data.len);
}

/* *is_last: the snapshot ends. */
static int
end_file(struct copy_in *copy, const struct stream_frame *frame, bool *is_last,
    const char **what)
{
    struct message_end end;
    struct stream_fault fault;
    int err;

    if (message_get_end(frame, &end, &fault) != 0) {
        return wrong(&fault, what);
    }
    *is_last = end.of == MESSAGE_END_SNAPSHOT;
    if (*is_last) {
        return 0;
    }
    *what = "a frame is not due";
    if (end.of != MESSAGE_END_FILE) {
        return ERR_CORRUPT;
    }
    *what = "a file is not what was announced";
    err = snapshot_put_end(&copy->put, end.value);
    if (err == 0) {
        copy__count(
            &copy->end, copy->put.plan.files.file[copy->put.i].bytes, false);
    }
    return err;
}

static int
fill(struct copy_in *copy, const char **what)
{
    bool is_last = false;
    int err = 0;

    while (err == 0 && !is_last) {
        struct stream_frame frame;

        if (!copy__take(&copy->end, &frame)) {
            return ERR_CLOSED;
        }
        switch (frame.type) {
        case STREAM_FILE:
            err = begin_file(copy, &frame, what);
            break;
        case STREAM_DATA:
            err = add_data(copy, &frame, what);
            break;
        case STREAM_END:
            err = end_file(copy, &frame, &is_last, what);
            break;
        default:
            *what = "a frame is not due";
            err = ERR_CORRUPT;
        }
        give_way();
    }
    return err;
}

/* ---- checking ---- */

static int
check(void *context, struct disk *disk, struct logger *logger)
{
    struct buf report = {0};
    int err = data_check_disk(disk, logger, &report);

    (void)context;
    buf_fini(&report);
    return err;
}

/* An order of which the disk did not say that it has it may be there all the
 * same: then the next start would carry it out. */
static bool
is_ordered(struct copy_in *copy)
{
    bool is;

    snapshot_put_close(&copy->put);
    is = snapshot_put_open(&copy->put, copy->disk, copy->end.logger) ==
        ERR_CLOSED;
    return is;
}

static int
exchange(struct copy_in *copy, const char **what)
{
    int err;

    if (copy__is_stopping(&copy->end)) {
        return ERR_CLOSED;
    }
    *what = "the files do not make up a directory";
    err = snapshot_put_exchange(&copy->put, check, NULL);
    return err != 0 && is_ordered(copy) ? 0 : err;
}

/* ---- the thread ---- */

static int
take_all(struct copy_in *copy, const char **what)
{
    int err;

    copy->put.epoch = copy->epoch;
    err = be_greeted(copy, what);
    if (err == 0) {
        err = list(copy, what);
    }
    if (err == 0) {
        err = tell(copy);
    }
    if (err == 0) {
        err = fill(copy, what);
    }
    return err == 0 ? exchange(copy, what) : err;
}

static void *
run(void *arg)
{
    struct copy_in *copy = arg;
    const char *what = "looking at what is here";
    int err;

    give_way_begin(COPY_NICE);
    err = snapshot_put_open(&copy->put, copy->disk, copy->end.logger);
    if (err == 0) {
        err = take_all(copy, &what);
        snapshot_put_close(&copy->put);
    } else if (err == ERR_CLOSED) { /* another copy has come so far */
        err = 0;
    }
    buf_fini(&copy->contents);
    snapshot_files_fini(&copy->files);
    copy__end(&copy->end, err, what);
    copy__over(&copy->end);
    return NULL;
}

/* ---- the caller's side ---- */

int
copy_in_start(const struct copy_in_config *config, struct copy_in **in)
{
    struct copy_in *copy = calloc(1, sizeof *copy);
    int err;

    if (copy == NULL) {
        return ERR_NO_MEMORY;
    }
    copy->end.wake_fn = config->wake_fn;
    copy->end.context = config->context;
    copy->end.logger = config->logger;
    copy->end.clock = &clock_system;
    copy->epoch = config->epoch;
    err = copy__init(&copy->end,
        (struct copy_queue){.bytes = COPY_DATA_BYTES, .n_pieces = COPY_PIECES},
        (struct copy_queue){.bytes = COPY_HAVE_BYTES, .n_pieces = 1});
    if (err == 0 &&
        copy__disk_create(config->disk, &copy->end, &copy->disk) != 0) {
        err = ERR_NO_MEMORY;
    }
    if (err == 0) {
        err = copy__start(&copy->end, run, copy);
    }
    if (err != 0) {
        disk_front_destroy(&copy->disk);
        copy__fini(&copy->end);
        free(copy);
        return err;
    }
    *in = copy;
    return 0;
}

bool
copy_in_may_put(struct copy_in *copy)
{
    return copy__may_hand(&copy->end);
}

void
copy_in_put(struct copy_in *copy, const struct stream_frame *frame)
{
    copy__hand(&copy->end, frame);
}

enum copy_next
copy_in_next(struct copy_in *copy, struct copy_piece *piece)
{
    return copy__next(&copy->end, piece);
}

void
copy_in_figures(struct copy_in *copy, struct copy_figures *figures)
{
    copy__figures(&copy->end, figures);
}

void
copy_in_stop(struct copy_in *copy)
{
    copy__stop(&copy->end);
}

bool
copy_in_is_over(struct copy_in *copy)
{
    return copy__is_over(&copy->end);
}

void
copy_in_destroy(struct copy_in **copy)
{
    if (*copy == NULL) {
        return;
    }
    copy__stop(&(*copy)->end);
    pthread_join((*copy)->end.thread, NULL);
    disk_front_destroy(&(*copy)->disk);
    copy__fini(&(*copy)->end);
    free(*copy);
    *copy = NULL;
}
