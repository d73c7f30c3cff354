/* SPDX-License-Identifier: BSD-3-Clause */
/* A dictionary as images and from them. The tables come first, since blocks
 * name them; the index is made anew. A name in an image is looked at as closely
 * as one of a client: so what has been loaded is a dictionary that names could
 * have been put into. */
#include "names/dict_priv.h"

#include "base/assert.h"
#include "base/err.h"

#include <string.h>

size_t
dict_image_table(
    const struct dict *dict, unsigned table, uint8_t out[NAME_IMAGE_BYTES_MAX])
{
    return table == 0 || table > dict__tables(dict)
        ? 0
        : name_image_put_table(dict->table[table], table, out);
}

uint32_t
dict_blocks(const struct dict *dict)
{
    uint32_t next = dict__next(dict);
    return next / NAME_BLOCK_SLOTS + (next % NAME_BLOCK_SLOTS > 0);
}

size_t
dict_image_block(const struct dict *dict, uint32_t n_block,
    uint8_t out[NAME_IMAGE_BYTES_MAX])
{
    const struct name_block *block = name_heap_block(&dict->heap, n_block);
    return block == NULL ? 0 : name_image_put_block(block, n_block, out);
}

static int
load_table(struct dict *dict, const struct name_image *image)
{
    void *symbols;
    if (image->table != dict__tables(dict) + 1) {
        return ERR_CORRUPT;
    }
    int err = name_account_take(
        dict->account, sizeof(struct name_symbols), &symbols);
    if (err != 0) {
        return err;
    }
    if (!name_symbols_make(
            symbols, image->symbol, image->symbol_len, image->number)) {
        name_account_give(dict->account, symbols, sizeof(struct name_symbols));
        return ERR_CORRUPT;
    }
    dict->table[image->table] = symbols;
    /* release: see dict__tables */
    atomic_store_explicit(&dict->n_tables, image->table, memory_order_release);
    return 0;
}

/* The block of an image, which nobody sees as yet. */
static int
make_block(
    struct dict *dict, const struct name_image *image, struct name_block **out)
{
    void *memory;
    int err = name_account_take(
        dict->account, name_block_bytes(image->code_bytes), &memory);
    if (err != 0) {
        return err;
    }
    struct name_block *block = memory;
    block->room_bytes = (uint16_t)image->code_bytes;
    block->table = (uint8_t)image->table;
    for (unsigned slot = 0; slot < NAME_BLOCK_SLOTS; slot++) {
        if (image->code_len[slot] > 0) {
            bool is_good = name_block_append(
                block, slot, image->code[slot], image->code_len[slot]);
            ASSERT(is_good);
        }
    }
    *out = block;
    return 0;
}

static int
load_name(struct dict *dict, const struct name_image *image, unsigned slot)
{
    char name[NAME_ROOM_BYTES];
    uint64_t id;
    uint32_t number = image->number * NAME_BLOCK_SLOTS + slot;
    size_t len = name_code_get(dict->table[image->table], image->code[slot],
        image->code_len[slot], name);
    if (!name_is_valid(name, len) || own_id_of(name, len, &id)) {
        return ERR_CORRUPT;
    }
    uint64_t hash = dict_hash(dict->key, name, len);
    if (dict__find(dict, name, len, hash) != DICT_NO_NUMBER &&
        !dict__may_be_twice(dict)) {
        return ERR_CORRUPT;
    }
    int err = name_index_reserve(&dict->index, hash);
    if (err == 0) {
        name_index_put(&dict->index, hash, number);
        dict__skip(dict, number);
        dict__set_next(dict, number + 1);
    }
    return err;
}

static int
load_block(struct dict *dict, const struct name_image *image)
{
    struct name_block *block;
    uint32_t first = image->number * NAME_BLOCK_SLOTS;
    if (image->table > dict__tables(dict) || first < dict__next(dict) ||
        first >= DICT_NUMBER_END) {
        return ERR_CORRUPT;
    }
    int err = make_block(dict, image, &block);
    if (err != 0) {
        return err;
    }
    err = name_heap_load(&dict->heap, image->number, block);
    if (err != 0) {
        name_account_give(
            dict->account, block, name_block_bytes(block->room_bytes));
        return err;
    }
    for (unsigned slot = 0; err == 0 && slot < NAME_BLOCK_SLOTS; slot++) {
        if (image->code_len[slot] > 0) {
            err = load_name(dict, image, slot);
        }
    }
    return err;
}

void
dict_begin_load(struct dict *dict)
{
    dict->is_loading = true;
    dict->rest.qsbr = NULL;
}

/* The first name from n_checked on that has two numbers, of which *number is
 * the larger; false: there is none. */
static bool
find_twice(struct dict *dict, uint32_t *number)
{
    char name[NAME_ROOM_BYTES];
    for (*number = dict->n_checked; dict_next(dict, number); (*number)++) {
        size_t len = dict_name(dict, *number, name);
        uint64_t hash = dict_hash(dict->key, name, len);
        uint32_t found = dict__find(dict, name, len, hash);
        if (found != *number) {
            dict->n_checked = *number;
            *number = found > *number ? found : *number;
            return true;
        }
    }
    return false;
}

/* Called again it goes on where it was. Which of two numbers is found may have
 * changed meanwhile, so at the end all are looked at once more. */
int
dict_end_load(struct dict *dict, struct qsbr *qsbr, uint32_t *number)
{
    name_rest_collect(&dict->rest);
    dict->is_loading = false;
    dict->rest.qsbr = qsbr;
    while (dict->has_twice) {
        if (find_twice(dict, number)) {
            return ERR_CORRUPT;
        }
        dict->has_twice = dict->n_checked > 0;
        dict->n_checked = 0;
    }
    return 0;
}

int
dict_load(struct dict *dict, const uint8_t *in, size_t n)
{
    struct name_image image;
    int err = name_image_get(in, n, &image);
    if (err != 0) {
        return err;
    }
    return image.kind == NAME_IMAGE_TABLE ? load_table(dict, &image)
                                          : load_block(dict, &image);
}
