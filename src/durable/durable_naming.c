/* SPDX-License-Identifier: BSD-3-Clause */
/* Logs names that come and go, and loads them.
 *
 * A name is logged under the lock of its shard, before its record is; so each
 * record of the log has the name of its id before it. An image of blocks is
 * made under that lock, and entries from before it are passed over. Those of
 * the batch that was under way then are read again over it: the last of a
 * number says what the image has.
 *
 * Images of one dictionary are of different moments: a name may be in two,
 * until the log has taken one of them out (names_end_load).
 *
 * What can go wrong: memory; images and entries that do not go together, of
 * which a checksum held. */
#include "durable/durable_naming.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/err.h"
#include "durable/durable_position.h"
#include "durable/recover.h"
#include "engine/marks.h"
#include "names/names.h"

#include <inttypes.h>
#include <stdlib.h>

enum { WORD_BYTES = 8, IMAGE_WORDS_MAX = 1 << DURABLE_NAMING_SHIFT };

_Static_assert(IMAGE_WORDS_MAX *WORD_BYTES >= NAME_IMAGE_BYTES_MAX,
    "an image's words are in its rows");
_Static_assert((int)DURABLE_NAMING_BLOCKS > (int)NAME_TABLES_MAX,
    "tables and blocks have rows of their own");
_Static_assert((int)ENTRY_NAME_MAX == (int)NAME_BYTES_MAX, "any name");

/* ---- the log ---- */

struct naming_log {
    struct names_sink sink; /* first: the names' seam */
    struct durable *durable;
};

static void
log_name(const struct names_sink *sink, unsigned shard, uint32_t number,
    const char *bytes, size_t len)
{
    struct durable *durable = ((const struct naming_log *)sink)->durable;
    uint8_t entry[ENTRY_NAME_BYTES_MAX];
    engine_assert_held(durable->engine, shard);
    if (durable_is_replica(durable)) {
        return; /* the log has had it before */
    }
    size_t n = entry_put_name(entry, shard, number, bytes, len);
    (void)wal_append(durable->wal, entry, n);
}

static void
log_add(struct names_sink *sink, unsigned shard, uint32_t number,
    const char *bytes, size_t len)
{
    ASSERT(len > 0);
    log_name(sink, shard, number, bytes, len);
}

static void
log_gone(struct names_sink *sink, unsigned shard, uint32_t number)
{
    log_name(sink, shard, number, NULL, 0);
}

int
durable_naming__log(struct durable *durable)
{
    if (durable->names == NULL) {
        return 0;
    }
    ASSERT(durable->naming_log == NULL);
    durable->naming_log = calloc(1, sizeof *durable->naming_log);
    if (durable->naming_log == NULL) {
        return ERR_NO_MEMORY;
    }
    *durable->naming_log = (struct naming_log){
        .sink = {.add_fn = log_add, .gone_fn = log_gone}, .durable = durable};
    names_set_sink(durable->names, &durable->naming_log->sink);
    return 0;
}

void
durable_naming__close(struct durable *durable)
{
    free(durable->naming_log);
    durable->naming_log = NULL;
}

/* ---- images ---- */

/* What comes out of an image: image_fn for each table and block whose rows are
 * all in first_row..last_row, in order. 0; ERR_CORRUPT, where words make none;
 * or what image_fn returned. */
static int
each_image(const struct image *image, uint64_t first_row, uint64_t last_row,
    int (*image_fn)(void *context, const uint8_t *bytes, size_t n),
    void *context)
{
    uint8_t bytes[IMAGE_WORDS_MAX * WORD_BYTES];
    if (image->n_columns != 1) {
        return ERR_CORRUPT;
    }
    for (uint32_t i = 0; i < image->n;) {
        uint64_t place = image->row[i] >> DURABLE_NAMING_SHIFT;
        uint64_t from = place << DURABLE_NAMING_SHIFT;
        size_t n = 0;
        for (; i < image->n && image->row[i] >> DURABLE_NAMING_SHIFT == place;
             i++, n++) {
            if (image->row[i] != from + n) {
                return ERR_CORRUPT;
            }
            bytes_put_u64(bytes + n * WORD_BYTES, image->code[0][i]);
        }
        if (from >= first_row && from <= last_row) {
            int err = image_fn(context, bytes, n * WORD_BYTES);
            if (err != 0) {
                return err;
            }
        }
    }
    return 0;
}

struct load {
    const struct durable_naming *it;
    struct recover_reader reader;
    int err;
};

/* Where an image goes. */
struct place {
    struct names *names;
    unsigned shard; /* of the dictionary */
};

static int
load_part(void *context, const uint8_t *bytes, size_t n)
{
    const struct place *place = context;
    return names_load(place->names, place->shard, bytes, n);
}

int
durable_naming__load_one(const struct durable_naming *it,
    struct recover_reader *reader, const struct images_entry *entry)
{
    const struct manifest *manifest = it->manifest;
    struct image image;
    ASSERT(manifest_is_of_names(manifest, entry));
    if (it->names == NULL) {
        return 0;
    }
    int err = it->durable != NULL && durable__is_cancelled(it->durable)
        ? ERR_CLOSED
        : recover_read(reader, entry, &image);
    if (err != 0) {
        return err;
    }
    struct place place = {it->names, entry->shard - manifest->shards - 1};
    err = each_image(
        &image, entry->first_row, entry->last_row, load_part, &place);
    if (err == ERR_CORRUPT) {
        log_line(it->logger, LOG_ERROR,
            "checkpoint %" PRIu64 ", offset %" PRIu64
            ": names that cannot be; restore the data directory from a "
            "backup, or see --salvage",
            entry->file, entry->offset);
    }
    return err;
}

static void
load_entry(void *context, const struct images_entry *entry)
{
    struct load *load = context;
    if (load->err == 0 && manifest_is_of_names(load->it->manifest, entry)) {
        load->err = durable_naming__load_one(load->it, &load->reader, entry);
    }
    if (load->it->passes_damage && load->err != ERR_NO_MEMORY) {
        load->err = 0;
    }
}

struct durable_naming
durable__naming(struct durable *durable)
{
    return (struct durable_naming){.names = durable->names,
        .manifest = &durable->manifest,
        .disk = durable->disk,
        .logger = durable->config.logger,
        .durable = durable};
}

void
durable_naming__begin(const struct durable_naming *it)
{
    if (it->names != NULL) {
        names_begin_load(it->names);
    }
}

int
durable_naming_load(const struct durable_naming *it)
{
    struct load load = {.it = it,
        .reader = {.disk = it->disk,
            .logger = it->logger,
            .images = &it->manifest->images}};
    if (it->names == NULL) {
        return 0;
    }
    durable_naming__begin(it);
    images_each(&it->manifest->images, load_entry, &load);
    recover_reader_fini(&load.reader);
    return load.err;
}

int
durable_naming_end_load(const struct durable_naming *it)
{
    unsigned shard;
    uint32_t number;
    int err =
        it->names == NULL ? 0 : names_end_load(it->names, &shard, &number);
    if (err != 0) {
        log_line(it->logger, LOG_ERROR,
            "the name of number %" PRIu32 " of shard %u has another one, too; "
            "restore the data directory from a backup, or see --salvage",
            number, shard);
    }
    return err;
}

/* Says what a number is now, whatever it was. */
static int
replay(struct names *names, const struct entry_name *name)
{
    if (name->len == 0) {
        names_take_out(names, name->shard, name->number);
        return 0;
    }
    int err =
        names_put_at(names, name->shard, name->number, name->bytes, name->len);
    if (err == ERR_CORRUPT) {
        names_take_out(names, name->shard, name->number);
        err = names_put_at(
            names, name->shard, name->number, name->bytes, name->len);
    }
    return err;
}

int
durable_naming_replay(const struct durable_naming *it,
    const struct entry_name *name, uint64_t seq)
{
    const struct manifest *manifest = it->manifest;
    int err = ERR_CORRUPT;
    if (it->names == NULL) {
        return 0;
    }
    if (name->shard < manifest->shards && name->number < DICT_NUMBER_END) {
        const struct images_entry *image = images_find(&manifest->images, 0,
            durable_naming_shard(manifest, name->shard),
            durable_naming_block_row(name->number / NAME_BLOCK_SLOTS));
        if (image != NULL && image->seq >= seq) {
            return 0;
        }
        err = replay(it->names, name);
    }
    if (err == ERR_CORRUPT) {
        log_line(it->logger, LOG_ERROR,
            "log batch %" PRIu64 ": number %" PRIu32 " of shard %u cannot "
            "have that name; restore the directory from a backup, or see "
            "--salvage",
            seq, name->number, (unsigned)name->shard);
    }
    return err;
}

/* ---- a replica ---- */

struct apply {
    struct durable *durable;
    const struct entry_name *name;
    int err;
};

static void
apply_held(void *context, unsigned shard)
{
    struct apply *apply = context;
    const struct entry_name *name = apply->name;
    struct names *names = apply->durable->names;
    if (name->len == 0) {
        names_take_out(names, shard, name->number);
    } else if (dict_rests(names_dict(names, shard), name->number)) {
        apply->err = ERR_HOT_FULL;
    } else {
        if (name->number < dict_counts(names_dict(names, shard)).next) {
            /* release: before the name is there to be found */
            atomic_fetch_add_explicit(
                &names->n_again, 1, memory_order_release);
        }
        apply->err =
            names_put_at(names, shard, name->number, name->bytes, name->len);
    }
}

int
durable_naming_apply(struct durable *durable, const struct entry_name *name)
{
    struct apply apply = {.durable = durable, .name = name};
    if (durable->names == NULL) {
        return 0;
    }
    if (name->shard >= durable->manifest.shards) {
        return ERR_CORRUPT;
    }
    engine_hold(durable->engine, name->shard, apply_held, &apply);
    return apply.err;
}
