/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks: from a name to its number, and the other way.
 *
 * A page of names is looked up pass by pass: each pass asks the memory for the
 * lines that the next one reads, for all names of the page.
 *
 *   hash -> place of the part -> part -> bucket -> number
 *        -> place of the block -> block -> code -> the same name?
 *
 * A byte of the hash tells which numbers of a bucket are looked at further, so
 * one name in 20 or so has a second one to look at, which is not worth a
 * pass. */
#include "names/dict_priv.h"

#include "base/assert.h"

#include <string.h>

enum { PAGE = 128 };

struct step {
    struct name_look look;
    const struct name_block *block;
    const uint8_t *code;
    uint32_t number; /* to look at; DICT_NO_NUMBER: none */
    uint8_t code_len;
};

/* The code of a number that has a name; NULL: it has none. */
static const uint8_t *
code_of(const struct name_block *block, uint32_t number, uint8_t *len)
{
    unsigned slot = number % NAME_BLOCK_SLOTS;
    if (block == NULL || !name_block_has(block, slot)) {
        return NULL;
    }
    *len = (uint8_t)name_block_len(block, slot);
    return block->code + name_block_at(block, slot);
}

static bool
is_same(const struct dict *dict, const struct step *step, const char *bytes,
    size_t len)
{
    char name[NAME_ROOM_BYTES];
    return step->code != NULL &&
        name_code_get(dict->table[step->block->table], step->code,
            step->code_len, name) == len &&
        memcmp(name, bytes, len) == 0;
}

/* The next number of a look, and its block. */
static void
step_on(const struct dict *dict, struct step *step)
{
    step->block = NULL;
    if (!name_look_next(&step->look, &step->number)) {
        step->number = DICT_NO_NUMBER;
        return;
    }
    step->block =
        name_heap_block(&dict->heap, step->number / NAME_BLOCK_SLOTS);
    if (step->block != NULL) {
        __builtin_prefetch(step->block);
    }
}

static void
step_to_code(struct step *step)
{
    step->code = NULL;
    if (step->number != DICT_NO_NUMBER) {
        step->code = code_of(step->block, step->number, &step->code_len);
    }
    if (step->code != NULL) {
        __builtin_prefetch(step->code);
        __builtin_prefetch(step->code + step->code_len - 1);
    }
}

/* Until it is the name's number, or there is none. */
static uint32_t
finish(
    const struct dict *dict, struct step *step, const char *bytes, size_t len)
{
    while (
        step->number != DICT_NO_NUMBER && !is_same(dict, step, bytes, len)) {
        step_on(dict, step);
        step_to_code(step);
    }
    return step->number;
}

static void
find_page(struct dict_ask *ask, size_t n)
{
    struct step step[PAGE];
    for (size_t i = 0; i < n; i++) {
        name_look_start(&step[i].look, &ask[i].dict->index, ask[i].hash);
    }
    for (size_t i = 0; i < n; i++) {
        name_look_part(&step[i].look);
    }
    for (size_t i = 0; i < n; i++) {
        name_look_bucket(&step[i].look);
    }
    for (size_t i = 0; i < n; i++) {
        name_look_begin(&step[i].look);
        step_on(ask[i].dict, &step[i]);
    }
    for (size_t i = 0; i < n; i++) {
        step_to_code(&step[i]);
    }
    for (size_t i = 0; i < n; i++) {
        ask[i].number =
            finish(ask[i].dict, &step[i], ask[i].bytes, ask[i].len);
    }
}

void
dict_find(struct dict_ask *ask, size_t n)
{
    for (size_t at = 0; at < n; at += PAGE) {
        find_page(ask + at, n - at < PAGE ? n - at : PAGE);
    }
}

uint32_t
dict__find(
    const struct dict *dict, const char *bytes, size_t len, uint64_t hash)
{
    struct dict_ask ask = {
        .dict = dict, .bytes = bytes, .len = len, .hash = hash};
    find_page(&ask, 1);
    return ask.number;
}

uint64_t
dict_hash(const uint8_t key[SIPHASH_KEY_BYTES], const void *bytes, size_t len)
{
    return siphash(key, bytes, len);
}

size_t
dict_name(const struct dict *dict, uint32_t number, char out[NAME_ROOM_BYTES])
{
    uint8_t code_len;
    const struct name_block *block =
        name_heap_block(&dict->heap, number / NAME_BLOCK_SLOTS);
    const uint8_t *code = code_of(block, number, &code_len);
    if (code == NULL) {
        return 0;
    }
    size_t len = name_code_get(dict->table[block->table], code, code_len, out);
    ASSERT(len > 0);
    return len;
}

bool
dict_next(const struct dict *dict, uint32_t *number)
{
    uint32_t end = dict__next(dict);
    for (uint32_t at = *number; at < end;) {
        const struct name_block *block =
            name_heap_block(&dict->heap, at / NAME_BLOCK_SLOTS);
        uint32_t live = block == NULL ? 0 : name_block_live(block);
        live >>= at % NAME_BLOCK_SLOTS;
        if (live != 0) {
            *number = at + (unsigned)__builtin_ctz(live);
            return *number < end;
        }
        at = (at / NAME_BLOCK_SLOTS + 1) * NAME_BLOCK_SLOTS;
    }
    return false;
}
