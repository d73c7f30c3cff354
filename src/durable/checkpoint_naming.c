/* SPDX-License-Identifier: BSD-3-Clause */
/* Names in a checkpoint: those of each dictionary that have changed since they
 * were last written, group by group (durable_naming.h).
 *
 * A group is copied under its shard's lock, and the log's position with it. The
 * tables of symbols that it needs are in the same step or an earlier one. What
 * has been written counts as unchanged at once; where the pass comes to
 * nothing, all blocks count as changed.
 *
 * What can go wrong: memory, the disk. */
#include "durable/checkpoint_priv.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/err.h"
#include "durable/durable_naming.h"
#include "engine/marks.h"
#include "names/names.h"

#include <stdlib.h>

enum {
    WORD_BYTES = 8,
    IMAGE_WORDS = NAME_IMAGE_BYTES_MAX / WORD_BYTES,
    GROUP_WORDS = DURABLE_NAMING_GROUP * IMAGE_WORDS
};

_Static_assert((int)GROUP_WORDS <= (int)IMAGE_RECORDS_MAX, "one image");

struct naming {
    struct pass *pass;
    struct names *names;
    unsigned n_tables; /* of the shard, that the pass has seen to */
    uint32_t block;    /* the group's first */
    uint64_t position; /* of the log when it was copied */
    uint32_t n;        /* words */
    bool has_group;
    uint64_t row[GROUP_WORDS], word[GROUP_WORDS];
};

/* Adds the words of what will be in rows from first_row on. */
static void
add_words(struct naming *it, uint64_t first_row,
    uint8_t image[NAME_IMAGE_BYTES_MAX + WORD_BYTES], size_t n)
{
    bytes_put_u64(image + n, 0); /* to the end of the last word */
    for (size_t at = 0; at < n; at += WORD_BYTES) {
        ASSERT(it->n < GROUP_WORDS);
        it->row[it->n] = first_row + at / WORD_BYTES;
        it->word[it->n++] = bytes_get_u64(image + at);
    }
}

/* Copies the next group that has changed. */
static void
copy_group(void *context, unsigned shard)
{
    struct naming *it = context;
    struct engine_sink *sink = &it->pass->durable->sink;
    const struct dict *dict = names_dict(it->names, shard);
    uint8_t image[NAME_IMAGE_BYTES_MAX + WORD_BYTES];
    it->has_group = names_next_changed(it->names, shard, &it->block);
    if (!it->has_group) {
        return;
    }
    it->block -= it->block % DURABLE_NAMING_GROUP;
    for (uint32_t i = 0; i < DURABLE_NAMING_GROUP; i++) {
        uint32_t block = it->block + i;
        size_t n = dict_image_block(dict, block, image);
        add_words(it, durable_naming_block_row(block), image, n);
        names_clean(it->names, shard, block);
    }
    it->position = sink->write_fn(sink, NULL, 0);
}

/* Appends an image of the words that were gathered, which is of these rows. */
static int
put(struct naming *it, unsigned shard, uint64_t first_row, uint64_t last_row)
{
    struct pass *pass = it->pass;
    const struct durable *durable = pass->durable;
    struct image image = {
        .shard = durable_naming_shard(&durable->manifest, shard),
        .counter_serial = DURABLE_NAMING_SERIAL,
        .history = durable->history,
        .seq = it->position == 0 ? 0 : it->position - 1,
        .first_row = first_row,
        .last_row = last_row,
        .n_columns = 1,
        .serial = {DURABLE_NAMING_SERIAL},
        .n = it->n,
        .row = it->row,
        .code = {it->word}};
    struct op op = {.kind = it->n == 0 ? OP_DROP : OP_ADD,
        .entry = {.shard = image.shard,
            .history = image.history,
            .seq = image.seq,
            .first_row = first_row,
            .last_row = last_row,
            .offset = pass->block.len,
            .n = image.n}};
    int err = it->n == 0 ? 0 : image_encode(&image, &pass->block);
    if (err != 0) {
        return err;
    }
    op.entry.len = (uint32_t)(pass->block.len - op.entry.offset);
    pass->n_images += it->n > 0;
    if (pass->seq < it->position) {
        pass->seq = it->position;
    }
    return checkpoint__add(pass, &op);
}

/* The tables of a shard that are not written yet. They do not change. */
static int
take_tables(struct naming *it, unsigned shard)
{
    struct pass *pass = it->pass;
    const struct manifest *manifest = &pass->durable->manifest;
    const struct dict *dict = names_dict(it->names, shard);
    uint8_t image[NAME_IMAGE_BYTES_MAX + WORD_BYTES];
    size_t n;
    int err = 0;
    while (err == 0 &&
        (n = dict_image_table(dict, it->n_tables + 1, image)) > 0) {
        unsigned table = ++it->n_tables;
        uint64_t row = durable_naming_table_row(table);
        if (pass->owner->wants_all_names ||
            images_find(&manifest->images, 0,
                durable_naming_shard(manifest, shard), row) == NULL) {
            it->n = 0;
            add_words(it, row, image, n);
            err = put(it, shard, row, durable_naming_table_row(table + 1) - 1);
        }
    }
    return err;
}

static int
take_group(struct naming *it, unsigned shard)
{
    struct pass *pass = it->pass;
    it->n = 0;
    engine_hold(pass->durable->engine, shard, copy_group, it);
    if (!it->has_group) {
        return 0;
    }
    pass->has_names = true;
    int err = put(it, shard, durable_naming_block_row(it->block),
        durable_naming_block_row(it->block + DURABLE_NAMING_GROUP) - 1);
    if (err == 0) {
        err = take_tables(it, shard);
    }
    if (err == 0 && pass->block.len >= pass->step_bytes) {
        err = checkpoint__step(pass);
    }
    if (err == 0 && checkpoint__is_stopping(pass)) {
        err = ERR_CLOSED;
    }
    checkpoint__rest(pass);
    it->block += DURABLE_NAMING_GROUP;
    return err;
}

static void
soil(void *context, unsigned shard)
{
    names_soil(context, shard);
}

static void
soil_all(struct pass *pass)
{
    const struct durable *durable = pass->durable;
    for (unsigned i = 0; i < durable->manifest.shards; i++) {
        engine_hold(durable->engine, i, soil, durable->names);
    }
}

int
checkpoint__take_names(struct pass *pass)
{
    struct names *names = pass->durable->names;
    int err = 0;
    if (names == NULL) {
        return 0;
    }
    struct naming *it = calloc(1, sizeof *it);
    if (it == NULL) {
        return ERR_NO_MEMORY;
    }
    if (pass->owner->wants_all_names) {
        soil_all(pass);
    }
    *it = (struct naming){.pass = pass, .names = names};
    for (unsigned i = 0; err == 0 && i < pass->durable->manifest.shards; i++) {
        it->block = 0;
        it->n_tables = 0;
        do {
            err = take_group(it, i);
        } while (err == 0 && it->has_group);
    }
    free(it);
    return err;
}

void
checkpoint__undo_names(struct pass *pass)
{
    if (pass->has_names) {
        soil_all(pass);
    }
}
