/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks whether the files that a start would need still are what they were.
 *
 * Somebody may remove, replace or change some of them under a running server: a
 * clean-up, a restore over it, a tool that rotates logs. What was in them is in
 * memory, so a checkpoint makes up for it: it replaces MANIFEST, begins a new
 * log file and lets all older ones go, and writes all images again that were in
 * a checkpoint file which is gone, since their tables count as changed.
 *
 * A file is another one where device or inode differ from those of the file
 * that the server made, or saw first (own_files.h), and has been changed where
 * its length or the time of its last change does. The log file under way is
 * written to all the time: it is never shorter than it was made, and what was
 * synced in it stays as it is, so some bytes of each look are read again by the
 * next (struct probe). A file that cannot be opened or read at the moment is
 * not taken for another one, nor for one that was changed: a later look sees.
 *
 * What is in segments is nowhere else. The server goes on reading one that is
 * gone as long as it has it open, so nothing is wrong with its answers and
 * changes are taken; but no start will do without it. So the operator is told
 * at once, and again every few minutes, to put the file back, which is easy: it
 * never changes, so any copy of it will do. So a segment that is another file
 * than before, or that was written to, is read, all of it, and is no other one
 * where it is what the manifest names. No pass is begun for one that is lost,
 * and a stop says what it leaves. Where the range is merged meanwhile, the new
 * segment makes up for it.
 *
 * The checkpointer looks between its passes, when nothing but the log's thread
 * and whoever seals makes names, and none but itself removes any that the
 * manifest has: so what is expected is asked
 * for first, the list is read then, and nothing can be missed wrongly. */
#include "durable/checkpoint_priv.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/err.h"
#include "cold/segment_head.h"
#include "durable/durable_owner.h"
#include "engine/engine_copy.h"
#include "wal/names.h"
#include "wal/wal_place.h"
#include "wal/wal_refuse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    SAID_MAX = 8,      /* names in one look */
    SAY_AGAIN_S = 300, /* segments that are still missing */
};

#define NS_PER_S UINT64_C(1000000000)

/* One look. */
struct look {
    struct checkpointer *owner;
    int manifest;           /* an enum durable_manifest */
    struct wal_place place; /* of the log, before anything was looked at */
    /* By enum own_kind, sorted: what has its name, first anybody's, then only
     * our own; and what is not our own. */
    struct numbers here[OWN_KINDS], changed[OWN_KINDS];
    bool is_unknown; /* memory was out, or the disk does not say */
    uint64_t last;   /* number of the checkpoint file found missing last */
    uint64_t n_missing;
    uint64_t n_lost; /* segments */
    bool is_to_say;  /* of these */
};

static void
add(struct look *look, struct numbers *numbers, uint64_t number)
{
    look->is_unknown |= numbers_add(numbers, number) != 0;
}

static void
note_name(void *context, const char *name)
{
    struct look *look = context;
    enum names_kind kind;
    uint64_t number;
    bool is_new;
    ASSERT(look->owner->magic == CHECKPOINTER_MAGIC);
    if (segment_name_parse(name, &number, &is_new)) {
        if (!is_new) {
            add(look, &look->here[OWN_SEGMENTS], number);
        }
    } else if (names_parse(name, &kind, &number)) {
        if (kind == NAMES_LOG) {
            add(look, &look->here[OWN_LOGS], number);
        } else if (kind == NAMES_CHECKPOINT) {
            add(look, &look->here[OWN_CHECKPOINTS], number);
        }
    }
}

/* ---- which files are our own ---- */

static bool
is_same_file(const struct disk_file *a, const struct disk_file *b)
{
    return a->device == b->device && a->inode == b->inode;
}

static bool
is_unchanged(const struct disk_file *a, const struct disk_file *b)
{
    return is_same_file(a, b) && a->bytes == b->bytes &&
        a->changed_ns == b->changed_ns;
}

/* What was read from the log file under way by the look before is there still,
 * and *probe becomes what the next one is to find. */
static bool
probe_log(struct look *look)
{
    struct probe *probe = &look->owner->probe;
    struct disk *disk = look->owner->durable->disk;
    const struct wal_place *place = &look->place;
    uint8_t bytes[PROBE_BYTES];
    char name[NAMES_BYTES];
    size_t n = 0;
    int fd;
    bool is_right = true;
    names_make(name, NAMES_LOG, place->number);
    if (place->end < PROBE_BYTES ||
        disk->calls->open(disk, name, DISK_READ, &fd) != 0) {
        return true;
    }
    if (probe->number == place->number) {
        is_right = disk->calls->read(
                       disk, fd, bytes, PROBE_BYTES, probe->at, &n) != 0 ||
            (n == PROBE_BYTES && memcmp(bytes, probe->bytes, n) == 0);
    }
    ASSERT(place->end >= PROBE_BYTES && place->end <= place->bytes);
    uint64_t at = place->end - PROBE_BYTES;
    if (is_right &&
        disk->calls->read(disk, fd, bytes, PROBE_BYTES, at, &n) == 0) {
        probe->number = n == PROBE_BYTES ? place->number : 0;
        probe->at = at;
        memcpy(probe->bytes, bytes, sizeof bytes);
    }
    disk->calls->close(disk, fd);
    return is_right;
}

/* A log file that is complete is looked at closely from the first look on at
 * which nobody can write to it any more. */
static bool
is_own_old_log(struct look *look, uint64_t number, const struct disk_file *is)
{
    struct own_files *files = &look->owner->own[OWN_LOGS];
    struct own_file *own = own_files_find(files, number);
    const struct wal_made *made = &look->place.made[number % WAL_MADE];
    if (own != NULL && own->is_closed) {
        return is_unchanged(&own->is, is);
    }
    if ((own != NULL && !is_same_file(&own->is, is)) ||
        (made->number == number && made->is.inode != 0 &&
            !is_same_file(&made->is, is)) ||
        wal_is_broken(look->owner->durable->disk, number, is->bytes)) {
        return false;
    }
    look->is_unknown |= own_files_note(files, number, is) != 0;
    own = own_files_find(files, number);
    if (own != NULL) {
        own->is_closed = look->place.is_calm;
    }
    return true;
}

static bool
is_own_log(struct look *look, uint64_t number, const struct disk_file *is)
{
    const struct wal_place *place = &look->place;
    if (number < place->number) {
        return is_own_old_log(look, number, is);
    }
    if (number > place->number || place->is.inode == 0) {
        return true; /* begun since; or not known */
    }
    bool is_own = is_same_file(&place->is, is) && is->bytes >= place->bytes &&
        !wal_is_broken(look->owner->durable->disk, number, is->bytes) &&
        probe_log(look);
    if (is_own) {
        (void)own_files_note(&look->owner->own[OWN_LOGS], number, is);
    } else {
        wal_spoilt(look->owner->durable->wal, number);
    }
    return is_own;
}

/* A segment that is another file than it was, or was written to, may be a copy
 * that somebody has put back, or only its times were set: what is in it tells.
 * It is read once, until it changes again. */
static bool
is_sound_segment(
    struct look *look, struct own_file *own, const struct disk_file *is)
{
    struct durable *durable = look->owner->durable;
    int err =
        recover__check_segment(&durable->manifest, durable->disk, own->number);
    if (err == 0 || err == ERR_CORRUPT || err == ERR_NEWER_FORMAT) {
        own->is = *is;
        own->is_unsound = err != 0;
    } /* else it cannot be read now: a later look sees */
    return !own->is_unsound;
}

/* Of checkpoint files and segments. */
static bool
is_own_other(struct look *look, enum own_kind kind, uint64_t number,
    const struct disk_file *is)
{
    struct own_files *files = &look->owner->own[kind];
    struct own_file *own = own_files_find(files, number);
    if (own != NULL && is_unchanged(&own->is, is)) {
        return !own->is_unsound;
    }
    if (own != NULL) {
        return kind == OWN_SEGMENTS && is_sound_segment(look, own, is);
    }
    look->is_unknown |= own_files_note(files, number, is) != 0;
    return true;
}

static void
name_of(enum own_kind kind, uint64_t number, char out[NAMES_BYTES])
{
    if (kind == OWN_SEGMENTS) {
        segment_name(out, number, false);
    } else {
        names_make(
            out, kind == OWN_LOGS ? NAMES_LOG : NAMES_CHECKPOINT, number);
    }
}

_Static_assert((int)NAMES_BYTES >= (int)SEGMENT_NAME_BYTES, "room for either");

/* Leaves in here what is our own. */
static void
look_at_kind(struct look *look, enum own_kind kind)
{
    struct disk *disk = look->owner->durable->disk;
    struct numbers *here = &look->here[kind];
    size_t n = 0;
    numbers_sort(here);
    own_files_keep(&look->owner->own[kind], here);
    for (size_t i = 0; i < here->n; i++) {
        uint64_t number = here->number[i];
        struct disk_file is;
        char name[NAMES_BYTES];
        name_of(kind, number, name);
        int error = disk->calls->look(disk, name, -1, &is);
        if (error == ENOENT) {
            continue;
        }
        if (error != 0) {
            look->is_unknown = true;
            return;
        }
        bool is_own = kind == OWN_LOGS ? is_own_log(look, number, &is)
                                       : is_own_other(look, kind, number, &is);
        if (is_own) {
            ASSERT(n <= i);
            here->number[n++] = number;
        } else {
            add(look, &look->changed[kind], number);
        }
    }
    here->n = n;
}

/* ---- what is missing ---- */

/* What has become of a file. */
static const char *
fate(const struct look *look, enum own_kind kind, uint64_t number)
{
    return numbers_has(&look->changed[kind], number)
        ? "was replaced or changed in"
        : "was removed from";
}

/* Says so, unless the look before had to. */
static void
missing(struct look *look, const char *name, const char *what)
{
    look->n_missing++;
    if (look->owner->n_missing == 0 && look->n_missing <= SAID_MAX) {
        log_line(look->owner->durable->config.logger, LOG_ERROR,
            "%s %s the data directory; a checkpoint makes up for it, until "
            "then a start would be refused: leave the server running, and the "
            "data directory alone",
            name, what);
    }
}

/* Tables whose image is gone count as changed. */
static void
look_for_image(void *context, const struct images_entry *entry)
{
    struct look *look = context;
    char name[NAMES_BYTES];
    ASSERT(entry->file < look->owner->durable->manifest.next_file);
    if (numbers_has(&look->here[OWN_CHECKPOINTS], entry->file)) {
        return;
    }
    if (manifest_is_of_tables(&look->owner->durable->manifest, entry)) {
        look->owner->wants_all_abouts = true;
    } else if (manifest_is_of_names(&look->owner->durable->manifest, entry)) {
        look->owner->wants_all_names = true;
    } else {
        engine_mark(look->owner->durable->engine, entry->counter, entry->shard,
            entry->first_row, entry->last_row);
    }
    if (entry->file != look->last) {
        look->last = entry->file;
        names_make(name, NAMES_CHECKPOINT, entry->file);
        missing(look, name, fate(look, OWN_CHECKPOINTS, entry->file));
    }
}

/* What comes in its place is read before it is taken for it. */
static void
note_gone(struct look *look, uint64_t number)
{
    struct own_files *files = &look->owner->own[OWN_SEGMENTS];
    const struct disk_file none = {0};
    struct own_file *own = own_files_find(files, number);
    if (own == NULL && own_files_note(files, number, &none) == 0) {
        own = own_files_find(files, number);
    }
    if (own != NULL) {
        own->is_unsound = true;
    }
}

static void
lost(struct look *look, uint64_t number)
{
    char name[SEGMENT_NAME_BYTES];
    ASSERT(number <= look->owner->durable->manifest.last_segment);
    look->n_lost++;
    note_gone(look, number);
    if (look->is_to_say && look->n_lost <= SAID_MAX) {
        bool is_changed = numbers_has(&look->changed[OWN_SEGMENTS], number);
        segment_name(name, number, false);
        log_line(look->owner->durable->config.logger, LOG_ERROR,
            "%s %s the data directory, and nothing else has what is in it: %s, "
            "but no start will be able to. Leave the server running, and put "
            "the file back from a backup that has it (a segment never changes)",
            name, fate(look, OWN_SEGMENTS, number),
            is_changed ? "the server may still read what is left of it"
                       : "the server still reads it");
    }
}

/* Segments that a start would need. */
static void
look_for_segments(struct look *look)
{
    struct checkpointer *owner = look->owner;
    const struct segments *segments = &owner->durable->manifest.segments;
    uint64_t now_ns = checkpointer_now_ns(owner);
    uint64_t last = 0;
    look->is_to_say = now_ns >= owner->say_lost_ns;
    for (size_t i = 0; i < segments->n; i++) {
        uint64_t number = segments->segment[i].number;
        if (number != last &&
            !numbers_has(&look->here[OWN_SEGMENTS], number)) {
            lost(look, number);
        }
        last = number;
    }
    if (look->n_lost > owner->n_lost) {
        durable_count(&owner->durable->stats.missing_files,
            look->n_lost - owner->n_lost);
    }
    if (look->n_lost == 0) {
        owner->say_lost_ns = 0;
    } else if (look->is_to_say) {
        owner->say_lost_ns = now_ns + SAY_AGAIN_S * NS_PER_S;
    }
    if (look->n_lost == 0 && owner->n_lost > 0) {
        log_line(owner->durable->config.logger, LOG_WARNING,
            "all segments are there again");
    }
    owner->n_lost = look->n_lost;
}

/* Only what was last put in its place counts: a MANIFEST that somebody has
 * restored names what need not be there. */
static void
look_for_manifest(struct look *look)
{
    if (look->manifest == MANIFEST_GONE) {
        look->owner->is_in_doubt = true;
        missing(look, MANIFEST_NAME, "was removed from");
    } else if (look->manifest == MANIFEST_OTHER) {
        look->owner->is_in_doubt = true;
        missing(look, MANIFEST_NAME, "was replaced or changed in");
    }
}

static void
look_for_all(struct look *look)
{
    char name[NAMES_BYTES];
    uint64_t number = look->owner->durable->manifest.log_number;
    ASSERT(number <= look->place.number);
    look_for_segments(look);
    look_for_manifest(look);
    for (; number <= look->place.number; number++) {
        if (!numbers_has(&look->here[OWN_LOGS], number)) {
            names_make(name, NAMES_LOG, number);
            missing(look, name, fate(look, OWN_LOGS, number));
        }
    }
    images_each(&look->owner->durable->manifest.images, look_for_image, look);
}

static void
look_at_files(struct look *look)
{
    struct disk *disk = look->owner->durable->disk;
    wal_place(look->owner->durable->wal, &look->place);
    /* a file that is being given up says nothing: it may be the one that was
     * found missing */
    look->is_unknown = look->place.is_given_up ||
        disk->calls->list(disk, note_name, look) != 0;
    for (int kind = 0; kind < OWN_KINDS && !look->is_unknown; kind++) {
        look_at_kind(look, (enum own_kind)kind);
    }
}

bool
checkpoint__look(struct checkpointer *owner)
{
    struct durable *durable = owner->durable;
    mutex_assert_not_held(&owner->lock);
    struct look look = {
        .owner = owner, .manifest = checkpoint__look_at_owner(owner)};
    if (owner->is_foreign) {
        owner->n_missing = 0; /* nothing is made up for */
        return false;
    }
    /* a log that cannot be written may have no file yet */
    if (wal_write_fault(durable->wal) != 0) {
        return owner->n_missing > 0;
    }
    look_at_files(&look);
    if (!look.is_unknown) {
        look_for_all(&look);
    }
    for (int kind = 0; kind < OWN_KINDS; kind++) {
        numbers_fini(&look.here[kind]);
        numbers_fini(&look.changed[kind]);
    }
    if (look.is_unknown) {
        return owner->n_missing > 0;
    }
    if (look.n_missing > owner->n_missing) {
        durable_count(
            &durable->stats.missing_files, look.n_missing - owner->n_missing);
    }
    owner->n_missing = look.n_missing;
    return look.n_missing > 0;
}
