/* SPDX-License-Identifier: BSD-3-Clause */
/* Whose members are whose.
 *
 * A number is given once, to one record of one shard. So it does not matter
 * where it is read, in an image or in the log, as long as it is the last that
 * is said of its record: that of an earlier one has been given up, and its
 * pairs are nobody's. What the log says of a record whose image is newer is
 * old.
 *
 * The owner of a number is found by number << shard bits | shard, which is
 * below 2^64 as the ids of its pairs are. */
#include "offline/member_ids.h"

#include "base/assert.h"
#include "base/err.h"
#include "offline/glean.h"

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
member_ids_know(struct member_ids *members, const struct schema_column *column)
{
    return know(members, column) == NULL ? ERR_NO_MEMORY : 0;
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

static int
take_image_column(struct member_ids *members, const struct schema_column *it,
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
        if (number != NULL && number[i] != 0) { /* its default is 0 */
            err = latest_add(&column->number, id, number[i]);
        }
        if (err == 0 && count != NULL && count[i] != 0) {
            err = latest_add(&column->count, id, count[i]);
        }
    }
    return err;
}

int
member_ids_take_image(struct member_ids *members,
    const struct schema_counter *counter, const struct images_entry *entry,
    const struct image *image)
{
    int err = 0;
    for (unsigned i = 0; err == 0 && i < counter->n_columns; i++) {
        if (counter->column[i].kind == SCHEMA_MEMBERS) {
            err =
                take_image_column(members, &counter->column[i], entry, image);
        }
    }
    return err;
}

/* True where an image has that change already. */
static bool
is_old(const struct member_ids *members, const struct schema_counter *counter,
    uint64_t id, uint64_t seq)
{
    unsigned shard;
    uint64_t row;
    engine_row(members->engine, id, &shard, &row);
    const struct images_entry *entry = images_find(
        &members->manifest->images, counter->slot, (uint16_t)shard, row);
    return entry != NULL && entry->seq >= seq;
}

static int
take_cell(struct member_ids *members, const struct schema_counter *counter,
    uint64_t id, uint32_t serial, uint64_t value)
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
        const struct schema_counter *counter =
            serial < recover->n_places ? recover->place[serial].counter : NULL;
        if (serial == ENTRY_MARK_SERIAL || counter == NULL ||
            is_old(members, counter, cells->id, seq)) {
            continue;
        }
        err = counter->members_of != 0
            ? take_pair(members, recover, counter, cells)
            : take_cell(members, counter, cells->id, serial, cells->value[i]);
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
    int err =
        column->largest == NULL ? ERR_NO_MEMORY : latest_sort(&column->number);
    err = err == 0 ? latest_sort(&column->count) : err;
    err = err == 0 ? latest_sort(&column->value) : err;
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
    err = err == 0 ? latest_sort(&column->owner) : err;
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
    const struct latest_one *owner = pair.is_mark || column == NULL
        ? NULL
        : latest_find(&column->owner, owner_key(members, number, shard));
    if (owner != NULL) {
        pair.is_ours = true;
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
    bool has_members = false;
    for (unsigned i = 0; counter != NULL && i < counter->n_columns; i++) {
        has_members = has_members || counter->column[i].kind == SCHEMA_MEMBERS;
    }
    if (it->err != 0 || !has_members) {
        return;
    }
    int err = recover_read(it->reader, entry, &image);
    if (err == 0 && counter->serial == image.counter_serial) {
        err = member_ids_take_image(it->members, counter, entry, &image);
    }
    it->err = err == ERR_CORRUPT ? 0 : err;
}

static int
read_batch(void *context, const struct glean_batch *batch)
{
    struct reading *it = context;
    struct entry_reader reader = {
        .at = batch->payload, .end = batch->payload + batch->len};
    struct entry entry;
    int err = 0;
    while (err == 0 && reader.at < reader.end) {
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
        images_each(&manifest->images, read_image, &it);
    }
    int err = it.err == 0 ? glean_run(&glean, &error) : it.err;
    recover_schema_fini(&it.recover);
    return err == 0 ? member_ids_sort(members) : err;
}
