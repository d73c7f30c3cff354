/* SPDX-License-Identifier: BSD-3-Clause */
/* tallyd --salvage. What a start would refuse is looked for as --check does it;
 * what is damaged is made anew of its sound parts; and the manifest that names
 * the new files is the one step by which all of it counts:
 *
 *   look     manifest, images, segments, log       nothing is changed
 *   mend     new files beside the old ones         nothing refers to them
 *   keep     the old ones get a second name
 *   replace  MANIFEST                              from here on a start works
 *   remove   the first names of the old ones
 *
 * New files have numbers above all that there are, and above those that the
 * manifest names, whether they are there or not. Interrupted before the
 * manifest, the next run finds them, refers to none (a log of a salvage follows
 * nobody: offline/glean.c), keeps them with the rest, and begins anew.
 * Interrupted behind it, a start removes what nothing names.
 *
 * A manifest that is lost is replaced by its copy; where that is lost, too, by
 * one that knows nothing but the epoch, if the log goes back to the first file:
 * all else is in it then, but for the shards of the numbers that producers have
 * sent: those are left out, and that is told.
 *
 * What can go wrong: memory, a disk that refuses to read or to write, damage
 * that leaves nothing to begin with. */
#include "offline/salvage_priv.h"

#include "base/assert.h"
#include "base/err.h"
#include "cold/segment_head.h"
#include "durable/snapshot_exchange.h"
#include "wal/frame.h"
#include "wal/replica_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 512 };

void
salvage__say(struct salvage *salvage, const char *format, ...)
{
    char line[LINE_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    buf_addf(salvage->report, "%s\n", line);
    if (salvage->config->say_fn != NULL) {
        salvage->config->say_fn(salvage->config->context, line);
    }
}

const struct schema_counter *
salvage__counter(const struct salvage *salvage, uint32_t serial)
{
    for (uint32_t i = 0; i < salvage->manifest.n_counters; i++) {
        if (salvage->manifest.counter[i].serial == serial) {
            return &salvage->manifest.counter[i];
        }
    }
    return NULL;
}

struct listing {
    struct salvage *salvage;
    int err;
};

bool
salvage__is_damage(int err)
{
    return err == ERR_CORRUPT;
}

/* Something else than a file is nothing that a salvage can read or put aside:
 * said, and the salvage ends. */
static int
check_regular(struct salvage *salvage, const char *name)
{
    struct disk *disk = salvage->disk;
    int fd;
    int error = disk->calls->open(disk, name, DISK_READ, &fd);
    if (error == 0) {
        disk->calls->close(disk, fd);
    }
    if (error != DISK_NOT_REGULAR) {
        return 0; /* who reads it says what is wrong */
    }
    salvage__say(salvage, "%s: %s", name, disk_text(error));
    return ERR_CORRUPT;
}

static void
raise_to(uint64_t *last, uint64_t number)
{
    if (number > *last && number <= NAMES_NUMBER_MAX) {
        *last = number;
    }
}

static void
note_name(void *context, const char *name)
{
    struct listing *listing = context;
    struct salvage *salvage = listing->salvage;
    enum names_kind kind;
    uint64_t number = 0;
    uint64_t *last = NULL;
    bool is_new;
    int err = 0;
    if (segment_name_parse(name, &number, &is_new)) {
        last = &salvage->last_segment;
    } else if (names_parse(name, &kind, &number)) {
        if (kind == NAMES_CUT || kind == NAMES_CUT_NEW) {
            return; /* they do not count, and stay */
        }
        last = kind == NAMES_CHECKPOINT ? &salvage->last_checkpoint
                                        : &salvage->last_log;
        if (kind == NAMES_LOG) {
            err = numbers_add(&salvage->log, number);
        }
    } else if (strcmp(name, MANIFEST_NAME) != 0 &&
        strcmp(name, MANIFEST_COPY) != 0) {
        return;
    }
    if (last != NULL) {
        raise_to(last, number);
    }
    err = err == 0 ? check_regular(salvage, name) : err;
    listing->err = listing->err == 0 ? err : listing->err;
}

/* Which files there are. */
static int
list_files(struct salvage *salvage)
{
    struct listing listing = {.salvage = salvage};
    int error = names_old_find(salvage->config->disk, &salvage->names);
    if (error == 0) {
        error = salvage->disk->calls->list(salvage->disk, note_name, &listing);
    }
    if (error != 0) {
        salvage->error = error;
        return ERR_DISK;
    }
    numbers_sort(&salvage->log);
    return listing.err;
}

/* The epoch of a log file whose header is sound, but for one bit. */
struct first_header {
    uint8_t bytes[FRAME_FILE_BYTES];
    struct frame_file file;
};

static bool
is_header(void *context)
{
    struct first_header *header = context;
    return frame_file_get(
               header->bytes, sizeof header->bytes, &header->file) == FRAME_OK;
}

static bool
read_epoch(struct salvage *salvage, uint64_t number, uint64_t *epoch)
{
    struct disk *disk = salvage->disk;
    struct first_header header;
    const struct flip flip = {.bytes = header.bytes,
        .n = sizeof header.bytes,
        .cost = sizeof header.bytes,
        .is_right_fn = is_header,
        .context = &header};
    char name[NAMES_BYTES];
    size_t n = 0, at;
    int fd;
    names_make(name, NAMES_LOG, number);
    if (disk->calls->open(disk, name, DISK_READ, &fd) != 0) {
        return false;
    }
    int error =
        disk->calls->read(disk, fd, header.bytes, sizeof header.bytes, 0, &n);
    disk->calls->close(disk, fd);
    if (error != 0 || n < sizeof header.bytes ||
        (!is_header(&header) && !flip_find(&flip, &salvage->budget, &at))) {
        return false;
    }
    *epoch = header.file.epoch;
    return header.file.number == number;
}

/* A manifest of a directory whose log goes back to its beginning. */
static int
make_manifest(struct salvage *salvage)
{
    struct manifest *manifest = &salvage->manifest;
    const struct numbers *log = &salvage->log;
    bool is_there = false;
    for (size_t i = 0;
         log->n > 0 && log->number[0] == 1 && !is_there && i < log->n; i++) {
        is_there = read_epoch(salvage, log->number[i], &manifest->epoch);
    }
    if (!is_there) {
        salvage__say(salvage,
            "neither %s nor %s can be read, and the log does not go back to "
            "the first file: without one of them nobody knows which ids the "
            "records of a checkpoint have; restore %s from a backup, if only "
            "an old one (an old %s will do, under that name), and begin again",
            MANIFEST_NAME, MANIFEST_COPY, MANIFEST_COPY, MANIFEST_NAME);
        return ERR_CORRUPT;
    }
    salvage->is_made_anew = true;
    manifest->shards = salvage->config->shards;
    manifest->seed = salvage->config->seed;
    manifest->log_number = 1;
    manifest->next_file = MANIFEST_NEXT_FILE_MIN;
    salvage__say(
        salvage, "%s is made anew: the log has all there was", MANIFEST_NAME);
    if (salvage->last_checkpoint > 0 || salvage->last_segment > 0) {
        salvage->is_lossy = true;
        salvage__say(salvage, "checkpoints and segments are left aside");
    }
    return 0;
}

/* What the headers of the log files from place i on say, 0 where one cannot be
 * read; the caller's. NULL: no memory. */
static uint64_t *
read_epochs(struct salvage *salvage, size_t i)
{
    const struct numbers *log = &salvage->log;
    uint64_t *epoch = calloc(log->n + 1, sizeof *epoch);
    for (; epoch != NULL && i < log->n; i++) {
        if (!read_epoch(salvage, log->number[i], &epoch[i])) {
            epoch[i] = 0;
        }
    }
    return epoch;
}

/* The place behind the last file of a history from place i on, or i. */
static size_t
end_of_history(const uint64_t *epoch, size_t n, size_t i, uint64_t history)
{
    size_t end = i;
    for (; i < n; i++) {
        end = epoch[i] == history ? i + 1 : end;
    }
    return end;
}

/* Which log files are of which history, where the manifest that said it is
 * lost: as they say it themselves, behind what its copy knows. The last history
 * that the copy names may have ended before it had a file, and the next one
 * have begun with the same number. The files of a history stand together, so
 * what is between two of them is of another directory. */
static int
take_histories(struct salvage *salvage)
{
    const struct manifest *manifest = &salvage->manifest;
    const struct numbers *log = &salvage->log;
    struct histories *histories = &salvage->manifest.histories;
    uint64_t from = histories->n == 0
        ? manifest->log_number
        : histories->entry[histories->n - 1].from;
    uint64_t history = histories_epoch(histories, from, manifest->epoch);
    size_t i = 0;
    while (i < log->n && log->number[i] < from) {
        i++;
    }
    uint64_t *epoch = read_epochs(salvage, i);
    int err = epoch == NULL ? ERR_NO_MEMORY : 0;
    while (err == 0 && i < log->n) {
        i = end_of_history(epoch, log->n, i, history);
        while (i < log->n && epoch[i] == 0) {
            i++;
        }
        if (i < log->n) {
            salvage__say(salvage,
                "log files from number %" PRIu64 " on are of a history that "
                "nothing else names: they are taken for this directory's",
                log->number[i]);
            history = epoch[i];
            err = histories_add(histories, log->number[i], history);
        }
    }
    free(epoch);
    return err;
}

static int
take_manifest(struct salvage *salvage)
{
    struct manifest *manifest = &salvage->manifest;
    uint64_t at;
    int error;
    int err = manifest_read(salvage->disk, manifest, &error);
    if (err == 0 || (err != ERR_NOT_FOUND && err != ERR_CORRUPT)) {
        salvage->error = error;
        return err;
    }
    salvage->is_manifest_bad = true;
    if (err == ERR_CORRUPT &&
        manifest_mend(salvage->disk, &salvage->budget, manifest, &at) == 0) {
        salvage__say(salvage,
            "%s, offset %" PRIu64 ": one bit was turned over: nothing is lost",
            MANIFEST_NAME, at);
        return 0;
    }
    salvage__say(salvage, "%s is %s", MANIFEST_NAME,
        err == ERR_NOT_FOUND ? "missing" : "damaged");
    err = manifest_read_copy(salvage->disk, manifest);
    if (err == 0) {
        salvage__say(salvage, "%s takes its place", MANIFEST_COPY);
    } else if (err == ERR_NOT_FOUND || err == ERR_CORRUPT) {
        err = make_manifest(salvage);
    }
    return err == 0 ? take_histories(salvage) : err;
}

/* What an interrupted salvage of an older directory leaves beside a manifest
 * that is still the older one: a start refuses that, since the manifest could
 * also be an old backup's. The new one says that all is of one moment. */
static void
look_at_names(struct salvage *salvage)
{
    salvage->is_mixed = !salvage->is_manifest_bad &&
        salvage->manifest.writes == 0 && salvage->names.today[0] != '\0';
    if (salvage->is_mixed) {
        salvage->is_lossy = true;
        salvage__say(salvage,
            "%s is of an older tallyd, and %s of a newer one: if it is what "
            "a salvage left that was interrupted, nothing is lost by it; if "
            "%s is of an old backup, what came after that is not in it",
            MANIFEST_NAME, salvage->names.today, MANIFEST_NAME);
    }
}

static void
note_image(void *context, const struct images_entry *entry)
{
    struct salvage *salvage = context;
    raise_to(&salvage->last_checkpoint, entry->file);
}

/* What the manifest names may be missing: no new file may be taken for it. */
static void
note_named(struct salvage *salvage)
{
    raise_to(&salvage->last_segment,
        segments_last_file(&salvage->manifest.segments));
    images_each(&salvage->manifest.images, note_image, salvage);
}

static int
look(struct salvage *salvage)
{
    int err = list_files(salvage);
    if (err == 0) {
        err = take_manifest(salvage);
    }
    if (err == 0) {
        look_at_names(salvage);
        note_named(salvage);
    }
    if (err == 0) {
        err = salvage__look_at_images(salvage);
    }
    if (err == 0) {
        err = salvage__look_at_segments(salvage);
    }
    return err == 0 ? salvage__look_at_log(salvage) : err;
}

static bool
is_sound(const struct salvage *salvage)
{
    return !salvage->is_manifest_bad && !salvage->is_log_bad &&
        !salvage->is_mixed && salvage->n_images == 0 &&
        salvage->segment.n == 0;
}

/* What --check says of a directory on which a start works. */
static void
say_end(struct salvage *salvage)
{
    struct buf text = {0};
    recover_say_torn(&salvage->end, &text);
    salvage__say(
        salvage, "%.*s", (int)text.len, text.data == NULL ? "" : text.data);
    buf_fini(&text);
}

/* How much room new files take, before there are any. */
static int
say_need(struct salvage *salvage)
{
    uint64_t free_bytes = salvage->config->free_bytes;
    salvage__say(salvage,
        "new files take %" PRIu64 " bytes at most; the old ones stay",
        salvage->need_bytes);
    if (free_bytes < salvage->need_bytes) {
        salvage__say(salvage,
            "there are %" PRIu64 " bytes free: nothing has been changed",
            free_bytes);
        return ERR_DISK_FULL;
    }
    return 0;
}

static int
mend(struct salvage *salvage)
{
    struct manifest *manifest = &salvage->manifest;
    int err = salvage->n_images > 0 ? salvage__mend_images(salvage) : 0;
    if (err == 0) {
        err = salvage__mend_segments(salvage);
    }
    if (err == 0 && salvage->is_log_bad) {
        err = salvage__mend_log(salvage);
    } else if (salvage->is_mixed) {
        salvage->end_log = salvage->end.number; /* newer files are not of it */
    }
    if (manifest->next_file <= salvage->last_checkpoint) {
        manifest->next_file = salvage->last_checkpoint + 1;
    }
    if (manifest->segments.n > 0 &&
        manifest->last_segment < salvage->last_segment) {
        manifest->last_segment = salvage->last_segment;
    }
    return err;
}

/* ---- the old files ---- */

struct names {
    const struct salvage *salvage;
    struct buf keep, remove; /* names, each with a NUL; owned */
};

static bool
has_damaged_image(const struct salvage *salvage, uint64_t file)
{
    for (size_t i = 0; i < salvage->n_images; i++) {
        if (salvage->image[i].file == file) {
            return true;
        }
    }
    return false;
}

/* Files that the new manifest has no use for; and those of which it uses only
 * what is sound: they go when a checkpoint has no use for that. */
static void
note_old(void *context, const char *name)
{
    struct names *names = context;
    const struct manifest *manifest = &names->salvage->manifest;
    enum names_kind kind;
    uint64_t number;
    bool is_kept =
        strcmp(name, MANIFEST_NAME) == 0 || strcmp(name, MANIFEST_COPY) == 0;
    bool is_removed = false;
    bool is_new;
    if (segment_name_parse(name, &number, &is_new)) {
        is_removed =
            !is_new && !segments_has_file(&manifest->segments, number);
    } else if (names_parse(name, &kind, &number)) {
        bool is_image = kind == NAMES_CHECKPOINT;
        is_removed = (kind == NAMES_LOG &&
                         (number < manifest->log_number ||
                             (names->salvage->end_log != 0 &&
                                 number > names->salvage->end_log))) ||
            (is_image && images_file_bytes(&manifest->images, number) == 0);
        is_kept = is_image && has_damaged_image(names->salvage, number);
    }
    if (is_kept || is_removed) {
        buf_add(&names->keep, name, strlen(name) + 1);
    }
    if (is_removed) {
        buf_add(&names->remove, name, strlen(name) + 1);
    }
}

static int
keep_old(struct salvage *salvage, const struct names *names)
{
    const struct salvage_config *config = salvage->config;
    const struct buf *text = &names->keep;
    int error = text->failed || names->remove.failed ? ENOMEM : 0;
    for (size_t at = 0;
         config->keep_fn != NULL && error == 0 && at < text->len;
         at += strlen(text->data + at) + 1) {
        error = config->keep_fn(config->context, text->data + at);
    }
    salvage->error = error;
    return error == 0 ? 0 : error == ENOMEM ? ERR_NO_MEMORY : disk_err(error);
}

static void
remove_old(struct salvage *salvage, const struct names *names)
{
    struct disk *disk = salvage->disk;
    const struct buf *text = &names->remove;
    for (size_t at = 0; salvage->config->keep_fn != NULL && at < text->len;
         at += strlen(text->data + at) + 1) {
        /* what stays is a start's to remove */
        (void)disk->calls->unlink(disk, text->data + at);
    }
}

/* The manifest becomes one that this process has written. */
static int
sign(struct salvage *salvage)
{
    struct manifest *manifest = &salvage->manifest;
    manifest->writes++;
    return manifest_writer(manifest) == salvage->history
        ? 0
        : histories_add(&manifest->histories,
              salvage->last_log + (salvage->last_log < UINT64_MAX),
              salvage->history);
}

/* Others may have copies of the directory. It is none of them any more, and
 * that must last before anything else does. */
static int
mark_replica(struct salvage *salvage)
{
    struct replica_file file;
    int err = replica_file_read(salvage->disk, &file);
    if (err == ERR_NOT_FOUND) {
        return 0;
    }
    if (err == 0) {
        file.is_salvaged = true;
        file.is_doubtful = true;
        salvage__say(salvage,
            "%s: what other copies of this directory have is taken anew",
            REPLICA_NAME);
        return replica_file_write(salvage->disk, &file);
    }
    if (err == ERR_CORRUPT) {
        salvage__say(salvage,
            "%s is damaged, and left as it is: remove it, and let the server "
            "join the others anew",
            REPLICA_NAME);
        return 0;
    }
    return err;
}

static int
replace(struct salvage *salvage)
{
    struct names names = {.salvage = salvage};
    struct disk *disk = salvage->disk;
    int error = disk->calls->list(disk, note_old, &names);
    int err = error == 0 ? keep_old(salvage, &names) : ERR_DISK;
    if (err == 0) {
        err = mark_replica(salvage);
    }
    if (err == 0) {
        err = sign(salvage);
    }
    if (err == 0) {
        err = manifest_write(disk, &salvage->manifest, NULL, &salvage->error);
    }
    if (err == 0) {
        (void)manifest_write_copy(disk, &salvage->manifest);
        remove_old(salvage, &names);
    }
    buf_fini(&names.keep);
    buf_fini(&names.remove);
    return err;
}

static int
run(struct salvage *salvage, enum salvage_outcome *out)
{
    int err = look(salvage);
    if (err != 0) {
        return err;
    }
    if (salvage->end.torn_bytes > 0) {
        say_end(salvage);
    }
    if (is_sound(salvage)) {
        salvage__say(salvage, "%snothing has been changed",
            salvage->end.torn_bytes > 0 ? "" : "all is well: ");
        return 0;
    }
    err = say_need(salvage);
    if (err == 0) {
        err = mend(salvage);
    }
    if (err == 0) {
        err = replace(salvage);
    }
    if (err == 0) {
        *out = salvage->is_lossy ? SALVAGE_LOSSY : SALVAGE_WHOLE;
        salvage__say(salvage,
            salvage->is_lossy ? "what is sound is saved; something is lost, "
                                "or may be: see above"
                              : "all is saved: nothing is lost");
    }
    return err;
}

int
salvage_run(const struct salvage_config *config, struct buf *report,
    enum salvage_outcome *out)
{
    struct salvage salvage = {.config = config,
        .logger = config->logger,
        .report = report,
        .budget = {config->bits_budget}};
    *out = SALVAGE_SOUND;
    if (names_old_create(config->disk, &salvage.disk) != 0) {
        return ERR_NO_MEMORY;
    }
    manifest_init(&salvage.manifest);
    int err = snapshot_exchange_refuse(config->disk, config->logger);
    if (err == 0) {
        err = histories_draw(&salvage.history);
    }
    if (err == 0) {
        err = run(&salvage, out);
    }
    if (err != 0) {
        salvage__say(&salvage, "given up: %s",
            salvage.error != 0 ? disk_say(salvage.disk, salvage.error)
                               : err_file_text(err));
    }
    manifest_fini(&salvage.manifest);
    names_old_destroy(&salvage.disk);
    free(salvage.image);
    numbers_fini(&salvage.log);
    numbers_fini(&salvage.segment);
    return err;
}
