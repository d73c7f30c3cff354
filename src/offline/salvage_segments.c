/* SPDX-License-Identifier: BSD-3-Clause */
/* Mends segments: writes the sound blocks of a damaged one to a new file with
 * a new number, which covers the same ids.
 *
 * Without its head nobody knows of which columns a file is; but where no serial
 * number behind that of the counter is one of a column that has been dropped,
 * they are the first ones that the counter has had. */
#include "offline/salvage_priv.h"

#include "base/assert.h"
#include "base/err.h"
#include "cold/segment_write.h"
#include "offline/segment_mend.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct look {
    struct salvage *salvage;
    int err;
};

/* The strict check of a file that has been opened. */
static int
check_file(void *context, struct segment *segment,
    const struct manifest_segment *const *part, size_t n)
{
    (void)context;
    (void)part;
    (void)n;
    int err = segment_check(segment, NULL);
    segment_close(&segment);
    return err;
}

/* One file as a start and --check would read it. */
static int
look_at(struct salvage *salvage, uint64_t number)
{
    struct manifest one = salvage->manifest;
    const struct recover_segments recover = {.manifest = &one,
        .disk = salvage->disk,
        .logger = salvage->logger,
        .file_fn = check_file,
        .context = salvage};
    size_t n = 0;
    struct manifest_segment *part =
        calloc(salvage->manifest.segments.n, sizeof *part);
    if (part == NULL) {
        return ERR_NO_MEMORY;
    }
    for (size_t i = 0; i < salvage->manifest.segments.n; i++) {
        if (salvage->manifest.segments.segment[i].number == number) {
            part[n++] = salvage->manifest.segments.segment[i];
        }
    }
    one.segments.segment = part;
    ASSERT(n > 0); /* the manifest has named it */
    one.segments.n = n;
    int err = recover_each_segment(&recover);
    free(part);
    return err;
}

static uint64_t
file_bytes(struct salvage *salvage, uint64_t number)
{
    struct disk *disk = salvage->disk;
    char name[SEGMENT_NAME_BYTES];
    uint64_t size = 0;
    int fd;
    segment_name(name, number, false);
    if (disk->calls->open(disk, name, DISK_READ, &fd) == 0) {
        size = disk->calls->size(disk, fd, &size) == 0 ? size : 0;
        disk->calls->close(disk, fd);
    }
    return size;
}

static bool
is_among(const struct numbers *numbers, uint64_t number)
{
    for (size_t i = 0; i < numbers->n; i++) {
        if (numbers->number[i] == number) {
            return true;
        }
    }
    return false;
}

int
salvage__look_at_segments(struct salvage *salvage)
{
    const struct segments *segments = &salvage->manifest.segments;
    struct numbers seen = {0};
    int err = 0;
    for (size_t i = 0; err == 0 && i < segments->n; i++) {
        uint64_t number = segments->segment[i].number;
        if (is_among(&seen, number)) {
            continue;
        }
        err = numbers_add(&seen, number);
        if (err == 0) {
            err = look_at(salvage, number);
        }
        if (salvage__is_damage(err)) {
            salvage->need_bytes += file_bytes(salvage, number);
            err = numbers_add(&salvage->segment, number);
        }
    }
    numbers_fini(&seen);
    return err;
}

/* ---- mending ---- */

struct mend {
    struct salvage *salvage;
    const struct manifest_segment *part; /* one that names the file */
    bool is_silent;
};

static void
say_piece(void *context, const struct segment_mend_piece *piece)
{
    static const char *const text[] = {
        [SEGMENT_MEND_MISSING] = "is missing, or another's",
        [SEGMENT_MEND_HEAD] = "the head is not what was written",
        [SEGMENT_MEND_INDEX] =
            "the index is not what was written: no record is lost by that",
        [SEGMENT_MEND_TURNED] =
            "one bit was turned over: no record is lost by that",
        [SEGMENT_MEND_BLOCKS] = "blocks are lost",
    };
    const struct mend *mend = context;
    char name[SEGMENT_NAME_BYTES];
    uint64_t last = piece->last_id;
    if (mend->is_silent) {
        return;
    }
    segment_name(name, piece->number, false);
    if (piece->kind != SEGMENT_MEND_BLOCKS) {
        salvage__say(mend->salvage, "%s, offset %" PRIu64 ": %s", name,
            piece->at, text[piece->kind]);
        return;
    }
    salvage__say(mend->salvage,
        "%s, offset %" PRIu64 ": %" PRIu64
        " blocks are lost, with the records from id %" PRIu64 " to %" PRIu64,
        name, piece->at, piece->n_blocks, piece->first_id, last);
}

/* True where no column behind the counter's serial has been dropped, for all
 * that is known. */
static bool
has_all_columns(
    const struct manifest *manifest, const struct schema_counter *counter)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < manifest->n_counters; i++) {
        const struct schema_counter *one = &manifest->counter[i];
        n += one->serial > counter->serial;
        for (unsigned k = 0; k < one->n_columns; k++) {
            /* with those of its counter of pairs */
            n += one->column[k].serial <= counter->serial ? 0
                : one->column[k].kind == SCHEMA_MEMBERS   ? 3
                                                          : 1;
        }
    }
    return n == manifest->last_serial - counter->serial;
}

static int
by_slot(const void *a, const void *b)
{
    const struct segment_column *x = a, *y = b;
    return (int)x->slot - (int)y->slot;
}

/* The head of a file of the first n columns that a counter has had. */
static void
guess_head(const struct schema_counter *counter, unsigned n,
    struct segment_head *head)
{
    uint32_t before = counter->serial;
    head->counter_serial = counter->serial;
    head->counter = counter->slot;
    head->n_columns = (uint8_t)n;
    for (unsigned c = 0; c < n; c++) {
        const struct schema_column *next = NULL;
        for (unsigned i = 0; i < counter->n_columns; i++) {
            const struct schema_column *column = &counter->column[i];
            if (column->serial > before &&
                (next == NULL || column->serial < next->serial)) {
                next = column;
            }
        }
        before = next->serial;
        head->column[c] = (struct segment_column){
            next->serial, next->slot, next->default_value};
    }
    qsort(head->column, n, sizeof head->column[0], by_slot);
}

/* The same of the pairs that a column of members makes; false where there is no
 * such column. */
static bool
guess_pairs(const struct manifest *manifest, uint32_t counter_serial,
    struct segment_head *head)
{
    for (uint32_t i = 0; i < manifest->n_counters; i++) {
        const struct schema_counter *counter = &manifest->counter[i];
        for (unsigned k = 0; k < counter->n_columns; k++) {
            const struct schema_column *column = &counter->column[k];
            if (column->kind == SCHEMA_MEMBERS &&
                column->serial + 1 == counter_serial) {
                head->counter_serial = counter_serial;
                head->counter = column->pairs;
                head->n_columns = 1;
                head->column[0].serial = schema_pairs_serial(column);
                return true;
            }
        }
    }
    return false;
}

/* Opens the file with a head of its own, or with one that makes sense of its
 * blocks. */
static int
open_mend(struct mend *mend, struct segment_mend **out)
{
    struct salvage *salvage = mend->salvage;
    const struct schema_counter *counter =
        salvage__counter(salvage, mend->part->counter_serial);
    struct segment_head guess = {0};
    struct flip_budget none = {0};
    struct segment_mend_config config = {.disk = salvage->disk,
        .epoch = manifest_segment_epoch(&salvage->manifest, mend->part),
        .number = mend->part->number,
        .budget = &none,
        .guess = &guess,
        .piece_fn = say_piece,
        .context = mend};
    bool is_of_pairs = counter == NULL &&
        guess_pairs(&salvage->manifest, mend->part->counter_serial, &guess);
    bool is_it = false;
    unsigned n = is_of_pairs;
    int err = 0;
    if (counter != NULL && has_all_columns(&salvage->manifest, counter)) {
        n = counter->n_columns;
    }
    mend->is_silent = true;
    for (; err == 0 && n > 0 && !is_it; n -= !is_it) {
        struct segment_records records;
        if (!is_of_pairs) {
            guess_head(counter, n, &guess);
        }
        err = segment_mend_open(&config, out);
        if (err == 0 && *out != NULL) {
            err = segment_mend_next(*out, &records);
            is_it = err == 0 && records.n > 0;
        }
        segment_mend_close(out);
    }
    if (!is_it) {
        guess = (struct segment_head){0};
    }
    for (size_t i = 0; i < salvage->manifest.segments.shards; i++) {
        uint64_t seq = mend->part->seq[i];
        guess.seq = seq > guess.seq ? seq : guess.seq;
    }
    mend->is_silent = false;
    config.budget = &salvage->budget;
    return err != 0 ? err : segment_mend_open(&config, out);
}

/* Copies all sound records to a new file. *records is how many; 0: there is no
 * file. */
static int
copy_records(struct mend *mend, struct segment_mend *from, uint64_t number,
    uint64_t *records)
{
    struct salvage *salvage = mend->salvage;
    const struct segment_write_config config = {.disk = salvage->disk,
        .logger = salvage->logger,
        .codec = (enum block_codec)salvage->config->codec,
        .level = salvage->config->level};
    struct segment_head head = *segment_mend_head(from);
    struct segment_writer *writer = NULL;
    struct segment_records some = {.n = 1};
    int err = 0;
    head.number = number;
    head.epoch = salvage->history;
    while (err == 0 && some.n > 0) {
        err = segment_mend_next(from, &some);
        if (err == 0 && some.n > 0 && writer == NULL) {
            err = segment_write_begin(&config, &head, &writer);
        }
        for (size_t i = 0; err == 0 && i < some.n; i++) {
            uint64_t code[SCHEMA_COLUMNS_MAX];
            for (unsigned c = 0; c < head.n_columns; c++) {
                code[c] = some.code[c][i];
            }
            err = segment_write_add(writer, some.id[i], code);
        }
    }
    *records = segment_mend_given(from);
    if (err == 0 && writer != NULL) {
        err = segment_write_end(&writer, &head);
        ASSERT(err != 0 || head.records == *records);
        return err;
    }
    segment_write_abort(&writer);
    return err;
}

static bool
is_of_file(const void *context, const struct manifest_segment *segment)
{
    const uint64_t *number = context;
    return segment->number == *number;
}

/* Has the manifest name the new file in the place of the old one. */
static void
put_in_place(
    struct salvage *salvage, uint64_t old, uint64_t number, uint64_t records)
{
    struct segments *segments = &salvage->manifest.segments;
    ASSERT(!segments_has_file(segments, number)); /* it is a new one */
    if (records == 0) {
        segments_drop(segments, is_of_file, &old);
        return;
    }
    for (size_t i = 0; i < segments->n; i++) {
        if (segments->segment[i].number == old) {
            segments->segment[i].number = number;
            segments->segment[i].history = salvage->history;
            segments->segment[i].records = records;
        }
    }
    salvage->last_segment = number;
}

static int
mend_one(struct salvage *salvage, uint64_t number)
{
    const struct segments *segments = &salvage->manifest.segments;
    struct mend mend = {.salvage = salvage};
    struct segment_mend *from = NULL;
    char name[SEGMENT_NAME_BYTES];
    uint64_t records = 0;
    for (size_t i = 0; i < segments->n; i++) {
        if (segments->segment[i].number == number) {
            mend.part = &segments->segment[i];
        }
    }
    ASSERT(mend.part != NULL); /* the manifest names it still */
    uint64_t all = mend.part->records;
    int err = open_mend(&mend, &from);
    if (err == 0 && from != NULL) {
        err = copy_records(&mend, from, salvage->last_segment + 1, &records);
    }
    segment_mend_close(&from);
    if (err != 0) {
        return err;
    }
    segment_name(name, number, false);
    salvage__say(salvage, "%s: %" PRIu64 " of %" PRIu64 " records are saved",
        name, records, all);
    salvage->is_lossy |= records < all;
    put_in_place(salvage, number, salvage->last_segment + 1, records);
    return 0;
}

int
salvage__mend_segments(struct salvage *salvage)
{
    int err = 0;
    for (size_t i = 0; err == 0 && i < salvage->segment.n; i++) {
        err = mend_one(salvage, salvage->segment.number[i]);
    }
    return err;
}
