/* SPDX-License-Identifier: BSD-3-Clause */
/* Whose members are whose.
 *
 * A number is given once, to one record of one shard. So it does not matter
 * where it is read, in a segment, in an image or in the log, as long as it is
 * the last that is said of its record: that of an earlier one has been given
 * up, and its pairs are nobody's. What the log says of a record whose image is
 * newer, or its segment, is old.
 *
 * Of a record that a segment covers an image or the log may say that there is
 * none: so there zeroes are taken, too.
 *
 * The owner of a number is found by number << shard bits | shard, which is
 * below 2^64 as the ids of its pairs are. */
#include "offline/member_ids.h"

#include "base/assert.h"
#include "base/err.h"
#include "offline/glean.h"
#include "offline/segment_mend.h"

#include <stdlib.h>

enum { NUMBERS_OF_A_MARK = 256 }; /* multiples of it are no record's */

void
member_ids_fini(struct member_ids *members)
{
    for (size_t i = 0; i < members->n; i++) {
        struct member_ids_column *column = &members->column[i];
        latest_fini(&column->number);
        latest_fini(&column->count);
        latest_fini(&column->value);
        latest_fini(&column->here);
        latest_fini(&column->mend);
        latest_fini(&column->owner);
        free(column->found);
        free(column->largest);
    }
    free(members->column);
    members->column = NULL;
    members->n = 0;
}

bool
member_ids_has(const struct schema *schema)
{
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        const struct schema_counter *counter = schema_counter_at(schema, slot);
        if (counter != NULL && counter->members_of != 0) {
            return true;
        }
    }
    return false;
}

struct member_ids_column *
member_ids_find(const struct member_ids *members, uint32_t serial)
{
    for (size_t i = 0; i < members->n; i++) {
        if (members->column[i].serial == serial) {
            return &members->column[i];
        }
    }
    return NULL;
}

/* The same, which becomes known; NULL: no memory. */
static struct member_ids_column *
know(struct member_ids *members, const struct schema_column *column)
{
    struct member_ids_column *known = member_ids_find(members, column->serial);
    ASSERT(column->kind == SCHEMA_MEMBERS);
    if (known == NULL) {
        struct member_ids_column *more =
            realloc(members->column, (members->n + 1) * sizeof *more);
        if (more == NULL) {
            return NULL;
        }
        members->column = more;
        known = &more[members->n++];
        *known = (struct member_ids_column){.serial = column->serial,
            .counts = column->counts,
            .bits = column->member_bits};
    }
    return known;
}

int
member_ids_know(struct member_ids *members, const struct schema *schema)
{
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        const struct schema_counter *pairs = schema_counter_at(schema, slot);
        if (pairs != NULL && pairs->members_of != 0 &&
            know(members, schema_members(schema, pairs)) == NULL) {
            return ERR_NO_MEMORY;
        }
    }
    return 0;
}

static bool
has_members(const struct schema_counter *counter)
{
    for (unsigned i = 0; i < counter->n_columns; i++) {
        if (counter->column[i].kind == SCHEMA_MEMBERS) {
            return true;
        }
    }
    return false;
}

static const struct manifest_segment *
segment_of(const struct member_ids *members,
    const struct schema_counter *counter, uint64_t id)
{
    const struct segments *segments = &members->manifest->segments;
    return segments->n == 0 ? NULL
                            : segments_find(segments, counter->serial, id);
}

bool
member_ids_is_covered(const struct member_ids *members,
    const struct schema_counter *counter, uint64_t id)
{
    return segment_of(members, counter, id) != NULL;
}

/* True where that is the file that answers for an id. */
static bool
is_of_file(const struct member_ids *members,
    const struct schema_counter *counter, uint64_t id, uint64_t number)
{
    const struct manifest_segment *segment = segment_of(members, counter, id);
    return segment != NULL && segment->number == number;
}

/* ---- what is said ---- */

static const uint64_t *
codes_of(const struct image *image, uint32_t serial)
{
    for (unsigned i = 0; serial != 0 && i < image->n_columns; i++) {
        if (image->serial[i] == serial) {
            return image->code[i];
        }
    }
    return NULL;
}

/* Those of a column, in a segment. */
static int
take_records_column(struct member_ids *members,
    const struct schema_counter *counter, const struct schema_column *it,
    const struct segment_head *head, const struct segment_records *some)
{
    struct member_ids_column *column = know(members, it);
    const uint64_t *number = NULL, *count = NULL;
    int err = column == NULL ? ERR_NO_MEMORY : 0;
    for (unsigned c = 0; c < head->n_columns; c++) {
        if (head->column[c].serial == it->serial) {
            number = some->code[c];
        } else if (members->with_counts && it->counts != 0 &&
            head->column[c].serial == it->counts) {
            count = some->code[c];
        }
    }
    for (size_t i = 0; err == 0 && i < some->n; i++) {
        uint64_t id = some->id[i];
        if (!is_of_file(members, counter, id, head->number)) {
            continue;
        }
        if (number != NULL && number[i] != 0) {
            err = latest_add(&column->number, id, number[i]);
        }
        if (err == 0 && count != NULL && count[i] != 0) {
            err = latest_add(&column->count, id, count[i]);
        }
    }
    return err;
}

/* What records of a segment with that head say. */
static int
take_records(struct member_ids *members, const struct schema_counter *counter,
    const struct segment_head *head, const struct segment_records *some)
{
    int err = 0;
    for (unsigned i = 0; err == 0 && i < counter->n_columns; i++) {
        const struct schema_column *column = &counter->column[i];
        if (column->kind == SCHEMA_MEMBERS) {
            err = take_records_column(members, counter, column, head, some);
        }
    }
    return err;
}

int
member_ids_take_segment(struct member_ids *members,
    const struct schema *schema, const struct segment *segment)
{
    const struct segment_head *head = segment_head(segment);
    const struct schema_counter *counter =
        schema_counter_at(schema, head->counter);
    struct segment_scan *scan = NULL;
    struct segment_records some = {.n = 1};
    if (counter == NULL || counter->serial != head->counter_serial ||
        !has_members(counter)) {
        return 0;
    }
    int err = segment_scan_create(segment, 0, NULL, &scan);
    while (err == 0 && some.n > 0) {
        err = segment_scan_next(scan, &some);
        if (err == 0) {
            err = take_records(members, counter, head, &some);
        }
    }
    segment_scan_destroy(&scan);
    return err;
}

int
member_ids_each_record(const struct member_ids *members,
    const struct schema_counter *counter, const struct segment *segment,
    int (*record_fn)(void *context, const struct segment_head *head,
        const struct segment_records *some, size_t i),
    void *context)
{
    const struct segment_head *head = segment_head(segment);
    struct segment_scan *scan = NULL;
    struct segment_records some = {.n = 1};
    int err = segment_scan_create(segment, 0, NULL, &scan);
    while (err == 0 && some.n > 0) {
        err = segment_scan_next(scan, &some);
        for (size_t i = 0; err == 0 && i < some.n; i++) {
            if (is_of_file(members, counter, some.id[i], head->number)) {
                err = record_fn(context, head, &some, i);
            }
        }
    }
    segment_scan_destroy(&scan);
    return err;
}

/* Of a record over a segment: so what an image or the log says counts. */
static int
note_here(const struct member_ids *members, struct member_ids_column *column,
    uint64_t id)
{
    return members->with_counts ? latest_add(&column->here, id, 1) : 0;
}

static int
take_image_column(struct member_ids *members,
    const struct schema_counter *counter, const struct schema_column *it,
    const struct images_entry *entry, const struct image *image)
{
    struct member_ids_column *column = know(members, it);
    const uint64_t *number = codes_of(image, it->serial);
    const uint64_t *count =
        members->with_counts ? codes_of(image, it->counts) : NULL;
    int err = column == NULL ? ERR_NO_MEMORY : 0;
    for (uint32_t i = 0; err == 0 && i < image->n; i++) {
        if (image->row[i] < entry->first_row ||
            image->row[i] > entry->last_row) {
            continue;
        }
        uint64_t id = engine_id(members->engine, entry->shard, image->row[i]);
        bool is_over = member_ids_is_covered(members, counter, id);
        /* the default of both is 0 */
        if (number != NULL && (number[i] != 0 || is_over)) {
            err = latest_add(&column->number, id, number[i]);
        }
        if (err == 0 && count != NULL && (count[i] != 0 || is_over)) {
            err = latest_add(&column->count, id, count[i]);
        }
        if (err == 0 && is_over) {
            err = note_here(members, column, id);
        }
    }
    return err;
}

/* Pairs over a segment. */
static int
take_image_pairs(struct member_ids *members, const struct schema *schema,
    const struct schema_counter *pairs, const struct images_entry *entry,
    const struct image *image)
{
    struct member_ids_column *column =
        know(members, schema_members(schema, pairs));
    int err = column == NULL ? ERR_NO_MEMORY : 0;
    for (uint32_t i = 0; image->n_columns == 1 && err == 0 && i < image->n;
         i++) {
        uint64_t id = engine_id(members->engine, entry->shard, image->row[i]);
        if (image->row[i] >= entry->first_row &&
            image->row[i] <= entry->last_row &&
            member_ids_is_covered(members, pairs, id)) {
            err = latest_add(&column->value, id, image->code[0][i]);
        }
    }
    return err;
}

int
member_ids_take_image(struct member_ids *members, const struct schema *schema,
    const struct schema_counter *counter, const struct images_entry *entry,
    const struct image *image)
{
    int err = 0;
    if (counter->members_of != 0) {
        return members->with_counts && members->manifest->segments.n > 0
            ? take_image_pairs(members, schema, counter, entry, image)
            : 0;
    }
    for (unsigned i = 0; err == 0 && i < counter->n_columns; i++) {
        if (counter->column[i].kind == SCHEMA_MEMBERS) {
            err = take_image_column(
                members, counter, &counter->column[i], entry, image);
        }
    }
    return err;
}

/* True where an image or a segment has that change already; *is_over: else a
 * segment covers its record. */
static bool
is_old(const struct member_ids *members, const struct schema_counter *counter,
    uint64_t id, uint64_t seq, bool *is_over)
{
    unsigned shard;
    uint64_t row;
    engine_row(members->engine, id, &shard, &row);
    const struct images_entry *entry = images_find(
        &members->manifest->images, counter->slot, (uint16_t)shard, row);
    const struct manifest_segment *segment = segment_of(members, counter, id);
    *is_over = segment != NULL;
    return (entry != NULL && entry->seq >= seq) ||
        (segment != NULL && segment->seq[shard] >= seq);
}

static int
take_cell(struct member_ids *members, const struct schema_counter *counter,
    uint64_t id, uint32_t serial, uint64_t value, bool is_over)
{
    int err = 0;
    for (unsigned i = 0; err == 0 && i < counter->n_columns; i++) {
        const struct schema_column *it = &counter->column[i];
        bool is_number = it->serial == serial;
        bool is_count = members->with_counts && it->counts == serial;
        if (it->kind != SCHEMA_MEMBERS || (!is_number && !is_count)) {
            continue;
        }
        struct member_ids_column *column = know(members, it);
        err = column == NULL
            ? ERR_NO_MEMORY
            : latest_add(
                  is_number ? &column->number : &column->count, id, value);
        if (err == 0 && is_over) {
            err = note_here(members, column, id);
        }
    }
    return err;
}

static int
take_pair(struct member_ids *members, const struct recover_schema *recover,
    const struct schema_counter *pairs, const struct entry_cells *cells)
{
    struct member_ids_column *column;
    if (!members->with_counts) {
        return 0;
    }
    column = know(members, schema_members(recover->schema, pairs));
    return column == NULL
        ? ERR_NO_MEMORY
        : latest_add(&column->value, cells->id, cells->value[0]);
}

int
member_ids_take_cells(struct member_ids *members,
    const struct recover_schema *recover, const struct entry_cells *cells,
    uint64_t seq)
{
    int err = 0;
    for (unsigned i = 0; err == 0 && i < cells->n; i++) {
        uint32_t serial = cells->serial[i];
        bool is_over;
        const struct schema_counter *counter =
            serial < recover->n_places ? recover->place[serial].counter : NULL;
        if (serial == ENTRY_MARK_SERIAL || counter == NULL ||
            is_old(members, counter, cells->id, seq, &is_over)) {
            continue;
        }
        err = counter->members_of != 0
            ? take_pair(members, recover, counter, cells)
            : take_cell(members, counter, cells->id, serial, cells->value[i],
                  is_over);
    }
    return err;
}

/* ---- owners ---- */

static unsigned
shard_bits(const struct member_ids *members)
{
    return (unsigned)__builtin_ctz(members->manifest->shards);
}

static uint64_t
owner_key(const struct member_ids *members, uint64_t number, unsigned shard)
{
    return number << shard_bits(members) | shard;
}

void
member_ids_raise(
    struct member_ids_column *column, unsigned shard, uint64_t number)
{
    if (number > column->largest[shard]) {
        column->largest[shard] = number;
    }
}

static int
sort_column(const struct member_ids *members, struct member_ids_column *column)
{
    column->largest =
        calloc(members->manifest->shards, sizeof *column->largest);
    int err = column->largest == NULL ? ERR_NO_MEMORY : 0;
    latest_sort(&column->number);
    latest_sort(&column->count);
    latest_sort(&column->value);
    latest_sort(&column->here);
    for (size_t i = 0; err == 0 && i < column->number.n; i++) {
        const struct latest_one *one = &column->number.one[i];
        unsigned shard;
        uint64_t row;
        engine_row(members->engine, one->key, &shard, &row);
        if (one->value != 0) {
            column->n_numbers++;
            member_ids_raise(column, shard, one->value);
            err = latest_add(&column->owner,
                owner_key(members, one->value, shard), one->key);
        }
    }
    latest_sort(&column->owner);
    if (err == 0) {
        column->found = calloc(column->owner.n + 1, sizeof *column->found);
        err = column->found == NULL ? ERR_NO_MEMORY : 0;
    }
    return err;
}

int
member_ids_sort(struct member_ids *members)
{
    int err = 0;
    for (size_t i = 0; err == 0 && i < members->n; i++) {
        err = sort_column(members, &members->column[i]);
    }
    return err;
}

uint64_t
member_ids_id_of(const struct member_ids *members,
    const struct member_ids_column *column, const struct latest_one *number)
{
    unsigned shard;
    uint64_t row;
    engine_row(members->engine, number->key, &shard, &row);
    const struct latest_one *owner =
        latest_find(&column->owner, owner_key(members, number->value, shard));
    ASSERT(number->value == 0 || owner != NULL);
    return owner == NULL ? number->key : owner->value;
}

/* The number that a pair of a reserved number says to be given up, or 0. */
static uint64_t
noted_number(uint64_t reserved, uint64_t member)
{
    return reserved == 0 || member == 0 || member >= NUMBERS_OF_A_MARK
        ? 0
        : reserved - NUMBERS_OF_A_MARK + member;
}

struct member_ids_pair
member_ids_pair(const struct member_ids *members,
    const struct member_ids_column *column, uint8_t bits, uint64_t pair_id)
{
    struct member_ids_pair pair = {0};
    unsigned shard;
    uint64_t row;
    engine_row(members->engine, pair_id, &shard, &row);
    uint64_t number = row >> bits;
    pair.shard = shard;
    pair.number = number;
    pair.member = row & ~(~UINT64_C(0) << bits);
    pair.is_mark = number % NUMBERS_OF_A_MARK == 0;
    if (pair.is_mark) {
        number = noted_number(number, pair.member);
    }
    const struct latest_one *owner = number == 0 || column == NULL
        ? NULL
        : latest_find(&column->owner, owner_key(members, number, shard));
    if (owner != NULL) {
        pair.is_ours = !pair.is_mark;
        pair.is_wrong = pair.is_mark;
        pair.id = owner->value;
        pair.found = &column->found[owner - column->owner.one];
    }
    return pair;
}

/* ---- a directory ---- */

struct reading {
    struct member_ids *members;
    struct recover_reader *reader;
    struct recover_schema recover;
    int err;
};

static void
read_image(void *context, const struct images_entry *entry)
{
    struct reading *it = context;
    const struct schema_counter *counter =
        schema_counter_at(it->recover.schema, entry->counter);
    struct image image;
    if (it->err != 0 || counter == NULL || !has_members(counter)) {
        return;
    }
    int err = recover_read(it->reader, entry, &image);
    if (err == 0 && counter->serial == image.counter_serial) {
        err = member_ids_take_image(
            it->members, it->recover.schema, counter, entry, &image);
    }
    it->err = err == ERR_CORRUPT ? 0 : err;
}

static void
pass_piece(void *context, const struct segment_mend_piece *piece)
{
    (void)context;
    (void)piece;
}

/* All that can be read of a file. */
static int
read_file(struct reading *it, struct disk *disk,
    const struct schema_counter *counter, const struct manifest_segment *part)
{
    static const struct segment_head nobody_knows;
    const struct segment_mend_config config = {.disk = disk,
        .epoch = manifest_segment_epoch(it->members->manifest, part),
        .number = part->number,
        .guess = &nobody_knows,
        .piece_fn = pass_piece};
    struct segment_mend *mend = NULL;
    struct segment_records some = {.n = 1};
    int err = segment_mend_open(&config, &mend);
    while (err == 0 && mend != NULL && some.n > 0) {
        err = segment_mend_next(mend, &some);
        if (err == 0) {
            err = take_records(
                it->members, counter, segment_mend_head(mend), &some);
        }
    }
    segment_mend_close(&mend);
    return err;
}

/* Of counters with members, each file once. */
static int
read_segments(struct reading *it, struct disk *disk)
{
    const struct segments *segments = &it->members->manifest->segments;
    int err = 0;
    for (size_t i = 0; err == 0 && i < segments->n; i++) {
        const struct manifest_segment *part = &segments->segment[i];
        const struct schema_counter *counter =
            schema_counter_at(it->recover.schema, part->counter);
        bool is_first = true;
        for (size_t k = 0; k < i && is_first; k++) {
            is_first = segments->segment[k].number != part->number;
        }
        if (is_first && counter != NULL &&
            counter->serial == part->counter_serial && has_members(counter)) {
            err = read_file(it, disk, counter, part);
        }
    }
    return err;
}

static int
read_batch(void *context, const struct glean_batch *batch)
{
    struct reading *it = context;
    struct entry_reader reader = {
        .at = batch->payload, .end = batch->payload + batch->len};
    struct entry entry;
    int err = 0;
    while (err == 0 && entry_has_next(&reader)) {
        if (!entry_next(&reader, &entry)) {
            return ERR_NEWER_FORMAT;
        }
        if (entry.kind == ENTRY_CELLS) {
            err = member_ids_take_cells(
                it->members, &it->recover, &entry.cells, batch->seq);
        } else if ((entry.kind == ENTRY_COUNTER ||
                       entry.kind == ENTRY_DROPPED) &&
            batch->seq > it->members->manifest->schema_seq) {
            err = recover_schema_apply(&it->recover, &entry, NULL);
            err = err == ERR_CORRUPT ? 0 : err;
        }
    }
    return err;
}

static void
pass_damage(void *context, const struct glean_piece *piece)
{
    (void)context;
    (void)piece;
}

static int
read_schema(struct reading *it)
{
    struct schema *schema = schema_create();
    int err = schema == NULL
        ? ERR_NO_MEMORY
        : recover_manifest_schema(it->members->manifest, &schema);
    if (err == 0) {
        err = recover_schema_init(&it->recover, &schema);
    }
    schema_destroy(&schema);
    return err;
}

int
member_ids_read(struct member_ids *members, struct disk *disk,
    struct recover_reader *reader)
{
    const struct manifest *manifest = members->manifest;
    struct reading it = {.members = members, .reader = reader};
    const struct glean glean = {.disk = disk,
        .epoch = manifest->epoch,
        .histories = &manifest->histories,
        .number = manifest->log_number,
        .batch_fn = read_batch,
        .piece_fn = pass_damage,
        .context = &it};
    int error;
    it.err = read_schema(&it);
    if (it.err == 0) {
        it.err = read_segments(&it, disk);
    }
    if (it.err == 0) {
        images_each(&manifest->images, read_image, &it);
    }
    int err = it.err == 0 ? glean_run(&glean, &error) : it.err;
    recover_schema_fini(&it.recover);
    return err == 0 ? member_ids_sort(members) : err;
}
