/* SPDX-License-Identifier: BSD-3-Clause */
/* The primary's end of a copy. Its thread goes through it once:
 *
 *   OPENING   the store opens a snapshot, behind the step that it is at
 *   LISTING   SNAPSHOT, and the contents: the list and the manifest
 *   ASKING    what the replica has of that, by HAVE
 *   SENDING   file by file: what is here and there with the same bytes is only
 *             read; all else goes out. Then the end
 *   HOLDING   the files are closed; the log behind is still kept
 *   OVER
 *
 * No more is read than there is room for; what is read, also to compare it, is
 * held back by the rate. The log behind the snapshot is pinned all the time:
 * before the files are closed a second pin is put beside the snapshot's own. A
 * pin that has broken ends the copy, for it would be of no use.
 *
 * What can go wrong: the disk; memory; a replica that asks for what there is
 * not; a log that grows faster than the copy. */
#include "repl/copy_out.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/checksum.h"
#include "base/err.h"
#include "base/give_way.h"
#include "durable/snapshot.h"
#include "repl/copy_priv.h"
#include "repl/copy_rate.h"
#include "store/store.h"

#include <stdlib.h>
#include <string.h>

enum { COPY_NICE = 19, NAME_ROOM = MESSAGE_NAME_MAX };

#define NS_PER_MS UINT64_C(1000000)

/* What the replica has of a file. */
struct had {
    bool is_told;
    uint64_t sum;
};

struct copy_out {
    struct copy_end end;
    struct store *store;
    uint64_t hold_ns;
    uint64_t pin_bytes_max;
    uint8_t name_len;
    uint8_t name[NAME_ROOM];
    /* the thread's: */
    struct copy_rate rate;
    struct snapshot snapshot;
    struct checksum_stream *sum; /* owned */
    struct had *had;             /* owned; one a file */
    struct wal_pin pin;
    bool is_pinned;
    /* under the end's lock: */
    bool is_answered; /* the store has opened the snapshot, or cannot */
    bool is_reading;  /* it has files open, or is about to */
};

/* ---- opening and closing ---- */

static void
opened(struct store_call *call)
{
    struct copy_out *copy = call->owner;

    mutex_lock(&copy->end.lock);
    copy->is_answered = true;
    pthread_cond_signal(&copy->end.changed);
    mutex_unlock(&copy->end.lock);
}

/* Waits for the answer also at a stop: the store has the snapshot till then. */
static int
open_snapshot(struct copy_out *copy)
{
    copy->snapshot =
        (struct snapshot){.call = {.done_fn = opened, .owner = copy},
            .pin_bytes_max = copy->pin_bytes_max};
    store_want_snapshot(copy->store, &copy->snapshot);
    mutex_lock(&copy->end.lock);
    while (!copy->is_answered) {
        mutex_wait(&copy->end.lock, &copy->end.changed);
    }
    mutex_unlock(&copy->end.lock);
    return copy->snapshot.err;
}

/* The files; the second pin stays. */
static void
close_snapshot(struct copy_out *copy)
{
    snapshot_close(&copy->snapshot);
    mutex_lock(&copy->end.lock);
    copy->is_reading = false;
    mutex_unlock(&copy->end.lock);
}

/* ---- frames ---- */

/* Sends a small frame, of a body that put_fn has written. */
#define SEND(copy, type, put_fn, body)                                        \
    send_small((copy), (type), put_fn(small_body, (body)), small_body)

static bool
send_small(struct copy_out *copy, enum stream_type type, size_t len,
    const uint8_t *body)
{
    uint8_t *frame = copy__room(&copy->end);

    if (frame == NULL) {
        return false;
    }
    memcpy(frame + STREAM_HEAD_BYTES, body, len);
    copy__put(&copy->end, type, (uint32_t)len);
    return true;
}

/* Sends the end of something. */
static bool
send_end(struct copy_out *copy, enum message_end_of of, uint64_t value)
{
    const struct message_end end = {of, value};
    uint8_t small_body[MESSAGE_SMALL_MAX];

    return SEND(copy, STREAM_END, message_put_end, &end);
}

static bool
send_file_head(struct copy_out *copy, const struct message_file *file)
{
    uint8_t small_body[MESSAGE_SMALL_MAX];

    return SEND(copy, STREAM_FILE, message_put_file, file);
}

/* ---- listing ---- */

static bool
send_snapshot(struct copy_out *copy, struct message_snapshot *out)
{
    const struct snapshot *snapshot = &copy->snapshot;
    uint8_t small_body[MESSAGE_SMALL_MAX];
    uint64_t bytes = 0;

    for (size_t i = 0; i < snapshot->files.n; i++) {
        bytes += snapshot->files.file[i].bytes;
    }
    *out = (struct message_snapshot){.first = snapshot->last_seq + 1,
        .bytes = bytes,
        .files = (uint32_t)snapshot->files.n,
        .manifest_len = (uint32_t)snapshot->manifest.len,
        .source = {copy->name, copy->name_len}};
    copy__expect(&copy->end, snapshot->files.n, bytes);
    return SEND(copy, STREAM_SNAPSHOT, message_put_snapshot, out);
}

/* The list and the manifest, in one piece. */
static int
make_contents(const struct snapshot *snapshot, struct buf *out)
{
    size_t list = snapshot->files.n * MESSAGE_LISTED_BYTES;

    if (buf_reserve(out, list + snapshot->manifest.len) == NULL) {
        return ERR_NO_MEMORY;
    }
    for (size_t i = 0; i < snapshot->files.n; i++) {
        const struct snapshot_file *from = &snapshot->files.file[i];
        const struct message_file file = {
            .kind = (enum message_file_kind)from->kind,
            .number = from->number,
            .bytes = from->bytes};
        uint8_t row[MESSAGE_LISTED_BYTES];

        message_put_listed(row, &file);
        buf_add(out, row, sizeof row);
    }
    buf_add(out, snapshot->manifest.data, snapshot->manifest.len);
    ASSERT(!out->failed);
    return 0;
}

/* False at a stop. */
static bool
send_contents(struct copy_out *copy, const struct buf *contents)
{
    const struct message_file file = {MESSAGE_CONTENTS, 1, contents->len};
    bool goes_on = send_file_head(copy, &file);

    for (size_t at = 0; goes_on && at < contents->len;) {
        size_t len = contents->len - at < STREAM_DATA_MAX ? contents->len - at
                                                          : STREAM_DATA_MAX;
        uint8_t *frame = copy__room(&copy->end);

        if (frame == NULL) {
            return false;
        }
        message_put_data(frame + STREAM_HEAD_BYTES, at);
        memcpy(frame + STREAM_HEAD_BYTES + MESSAGE_DATA_BYTES,
            contents->data + at, len);
        copy__put(
            &copy->end, STREAM_DATA, (uint32_t)(MESSAGE_DATA_BYTES + len));
        at += len;
    }
    return goes_on &&
        send_end(copy, MESSAGE_END_FILE,
            checksum64(contents->data, contents->len, 0));
}

/* ERR_CLOSED at a stop, as all steps have it. */
static int
list(struct copy_out *copy, const char **what)
{
    struct message_snapshot totals;
    struct buf contents = {0};
    int err = copy->snapshot.manifest.len > MESSAGE_MANIFEST_MAX
        ? ERR_TOO_LARGE
        : make_contents(&copy->snapshot, &contents);

    *what = "the list of files";
    if (err == 0 &&
        (!send_snapshot(copy, &totals) || !send_contents(copy, &contents))) {
        err = ERR_CLOSED;
    }
    ASSERT(err != 0 || message_contents_bytes(&totals) == contents.len);
    buf_fini(&contents);
    return err;
}

/* ---- asking ---- */

/* False: there is no such file, or it was told before. */
static bool
note_had(struct copy_out *copy, const struct message_have_file *file)
{
    const struct snapshot_files *files = &copy->snapshot.files;
    size_t i = snapshot_files_find(files, file->kind, file->number);

    if (i == files->n || files->file[i].bytes != file->bytes ||
        copy->had[i].is_told) {
        return false;
    }
    copy->had[i] = (struct had){true, file->sum};
    return true;
}

/* One HAVE. *is_last: no other one follows. */
static int
take_have(struct copy_out *copy, const struct stream_frame *frame,
    bool *is_last, const char **what)
{
    struct message_have have;
    struct message_have_file file;
    struct stream_fault fault;

    *what = "a HAVE was to come";
    if (frame->type != STREAM_HAVE) {
        return ERR_CORRUPT;
    }
    if (message_get_have(frame, &have, &fault) != 0) {
        *what = fault.what;
        return ERR_CORRUPT;
    }
    *is_last = have.n < MESSAGE_HAVE_MAX;
    while (message_next_have(&have, &file)) {
        if (!note_had(copy, &file)) {
            *what = "a file that is not of the snapshot";
            return ERR_CORRUPT;
        }
    }
    return 0;
}

static int
ask(struct copy_out *copy, const char **what)
{
    bool is_last = false;
    int err = 0;

    *what = "the list of files";
    copy->had = calloc(copy->snapshot.files.n, sizeof *copy->had);
    if (copy->had == NULL) {
        return ERR_NO_MEMORY;
    }
    while (err == 0 && !is_last) {
        struct stream_frame frame;

        err = copy__take(&copy->end, &frame)
            ? take_have(copy, &frame, &is_last, what)
            : ERR_CLOSED;
    }
    copy__taken(&copy->end);
    return err;
}

/* ---- sending ---- */

/* Reads the next piece of file number i, when that is its turn. */
static int
read_piece(struct copy_out *copy, size_t i, uint64_t at, uint8_t *bytes,
    size_t *len, const char **what)
{
    uint64_t left = copy->snapshot.files.file[i].bytes - at;
    uint64_t now_ns = clock_now_ns(copy->end.clock);
    int err;

    *len = left < STREAM_DATA_MAX ? (size_t)left : STREAM_DATA_MAX;
    if (!copy__wait_until(
            &copy->end, copy_rate_take(&copy->rate, *len, now_ns))) {
        return ERR_CLOSED;
    }
    err = snapshot_read(&copy->snapshot, i, at, bytes, *len);
    *what = "reading a file";
    if (err == 0) {
        checksum_stream_add(copy->sum, bytes, *len);
    }
    give_way();
    return err;
}

/* *is_same: the replica has it as it is here. room: STREAM_DATA_MAX bytes. */
static int
compare(struct copy_out *copy, size_t i, uint8_t *room, bool *is_same,
    const char **what)
{
    uint64_t end = copy->snapshot.files.file[i].bytes;
    int err = 0;

    *is_same = false;
    if (!copy->had[i].is_told) {
        return 0;
    }
    checksum_stream_begin(copy->sum);
    for (uint64_t at = 0; err == 0 && at < end;) {
        size_t len;

        err = read_piece(copy, i, at, room, &len, what);
        at += len;
    }
    *is_same = err == 0 && checksum_stream_sum(copy->sum) == copy->had[i].sum;
    return err;
}

static int
send_file(struct copy_out *copy, size_t i, const char **what)
{
    const struct snapshot_file *from = &copy->snapshot.files.file[i];
    const struct message_file file = {
        .kind = (enum message_file_kind)from->kind,
        .number = from->number,
        .bytes = from->bytes};

    if (!send_file_head(copy, &file)) {
        return ERR_CLOSED;
    }
    checksum_stream_begin(copy->sum);
    for (uint64_t at = 0; at < from->bytes;) {
        uint8_t *frame = copy__room(&copy->end);
        uint8_t *body = frame + STREAM_HEAD_BYTES;
        size_t len;
        int err;

        if (frame == NULL) {
            return ERR_CLOSED;
        }
        message_put_data(body, at);
        err = read_piece(copy, i, at, body + MESSAGE_DATA_BYTES, &len, what);
        if (err != 0) {
            return err;
        }
        copy__put(
            &copy->end, STREAM_DATA, (uint32_t)(MESSAGE_DATA_BYTES + len));
        at += len;
    }
    return send_end(copy, MESSAGE_END_FILE, checksum_stream_sum(copy->sum))
        ? 0
        : ERR_CLOSED;
}

/* One file; what the copy is for must still be there. */
static int
do_file(struct copy_out *copy, size_t i, uint8_t *room, const char **what)
{
    bool is_same;
    int err = wal_pin_check(copy->snapshot.wal, &copy->snapshot.pin);

    *what = "the log has grown too far beyond the snapshot";
    if (err == 0 && !copy__may_hand(&copy->end)) {
        *what = "a HAVE is not due any more";
        err = ERR_CORRUPT;
    }
    if (err == 0) {
        err = compare(copy, i, room, &is_same, what);
    }
    if (err == 0 && !is_same) {
        err = send_file(copy, i, what);
    }
    if (err == 0) {
        copy__count(&copy->end, copy->snapshot.files.file[i].bytes, is_same);
    }
    return err;
}

static int
send_files(struct copy_out *copy, const char **what)
{
    uint8_t *room = malloc(STREAM_DATA_MAX);
    int err = 0;

    *what = "reading a file";
    copy->sum = checksum_stream_create();
    if (room == NULL || copy->sum == NULL) {
        err = ERR_NO_MEMORY;
    }
    for (size_t i = 0; err == 0 && i < copy->snapshot.files.n; i++) {
        err = do_file(copy, i, room, what);
    }
    free(room);
    return err;
}

/* The log is kept for the replica from now on whatever becomes of the
 * snapshot. */
static int
pin(struct copy_out *copy, const char **what)
{
    int err = wal_pin(copy->snapshot.wal, &copy->pin,
        copy->snapshot.last_seq + 1, copy->pin_bytes_max);

    *what = "keeping the log behind the snapshot";
    copy->is_pinned = err == 0;
    return err;
}

/* ---- the thread ---- */

/* With the snapshot open. */
static int
send_all(struct copy_out *copy, const char **what)
{
    int err = list(copy, what);

    if (err == 0) {
        err = ask(copy, what);
    }
    if (err == 0) {
        err = send_files(copy, what);
    }
    if (err == 0) {
        err = pin(copy, what);
    }
    if (err == 0 && !send_end(copy, MESSAGE_END_SNAPSHOT, 0)) {
        err = ERR_CLOSED;
    }
    checksum_stream_destroy(&copy->sum);
    free(copy->had);
    copy->had = NULL;
    return err;
}

static void *
run(void *arg)
{
    struct copy_out *copy = arg;
    const char *what = "opening a snapshot";
    struct wal *wal;
    int err;

    give_way_begin(COPY_NICE);
    copy_rate_init(
        &copy->rate, copy->rate.bytes_s, clock_now_ns(copy->end.clock));
    err = open_snapshot(copy);
    wal = copy->snapshot.wal;
    if (err == 0) {
        err = send_all(copy, &what);
        close_snapshot(copy);
    }
    mutex_lock(&copy->end.lock);
    copy->is_reading = false;
    mutex_unlock(&copy->end.lock);
    copy__end(&copy->end, err, what);
    if (copy->is_pinned) {
        if (err == 0) {
            (void)copy__wait_until(
                &copy->end, clock_now_ns(copy->end.clock) + copy->hold_ns);
        }
        wal_unpin(wal, &copy->pin);
    }
    copy__over(&copy->end);
    return NULL;
}

/* ---- the caller's side ---- */

int
copy_out_start(const struct copy_out_config *config, struct copy_out **out)
{
    struct copy_out *copy = calloc(1, sizeof *copy);
    int err;

    ASSERT(message_is_name(config->source.at, config->source.len));
    if (copy == NULL) {
        return ERR_NO_MEMORY;
    }
    copy->end.wake_fn = config->wake_fn;
    copy->end.context = config->context;
    copy->end.logger = config->logger;
    copy->end.clock = clock_or_system(config->clock);
    copy->store = config->store;
    copy->hold_ns = config->hold_ms * NS_PER_MS;
    copy->pin_bytes_max = config->pin_bytes_max;
    copy->rate.bytes_s = config->rate;
    copy->is_reading = true;
    copy->name_len = config->source.len;
    memcpy(copy->name, config->source.at, config->source.len);
    err = copy__init(&copy->end,
        (struct copy_queue){.bytes = COPY_HAVE_BYTES, .n_pieces = 1},
        (struct copy_queue){
            .bytes = COPY_DATA_BYTES, .n_pieces = COPY_PIECES});
    if (err == 0) {
        err = copy__start(&copy->end, run, copy);
    }
    if (err != 0) {
        copy__fini(&copy->end);
        free(copy);
        return err;
    }
    *out = copy;
    return 0;
}

bool
copy_out_may_take(struct copy_out *copy)
{
    return copy__may_hand(&copy->end);
}

void
copy_out_take(struct copy_out *copy, const struct stream_frame *frame)
{
    copy__hand(&copy->end, frame);
}

enum copy_next
copy_out_next(struct copy_out *copy, struct copy_piece *piece)
{
    return copy__next(&copy->end, piece);
}

bool
copy_out_is_reading(struct copy_out *copy)
{
    bool is_reading;

    mutex_lock(&copy->end.lock);
    is_reading = copy->is_reading;
    mutex_unlock(&copy->end.lock);
    return is_reading;
}

void
copy_out_figures(struct copy_out *copy, struct copy_figures *figures)
{
    copy__figures(&copy->end, figures);
}

void
copy_out_stop(struct copy_out *copy)
{
    copy__stop(&copy->end);
}

bool
copy_out_is_over(struct copy_out *copy)
{
    return copy__is_over(&copy->end);
}

void
copy_out_destroy(struct copy_out **copy)
{
    if (*copy == NULL) {
        return;
    }
    copy__stop(&(*copy)->end);
    pthread_join((*copy)->end.thread, NULL);
    copy__fini(&(*copy)->end);
    free(*copy);
    *copy = NULL;
}
