/* SPDX-License-Identifier: BSD-3-Clause */
/* The dictionaries of all shards.
 *
 * An id of a dictionary is that of a row with the top bit (own_id_row_of) in
 * the shard of the name's hash, so one lock has the name and its record. The
 * row above all numbers has no name, ever: it stands for names without a
 * number, so that a read or a vain change of such a name needs no other way.
 *
 * Each shard notes which blocks have changed, for who writes images of them.
 *
 * What can go wrong: memory, or its limit. A change takes all that it needs
 * before anything is changed. */
#include "names/names.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/err.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE = 64, WORD_BITS = 64, CHANGED_WORDS_MIN = 4 };

#define NOBODY UINT32_MAX /* a number that no name gets */

_Static_assert(DICT_NUMBER_END <= NOBODY, "no dictionary gives it");

struct names_shard {
    struct dict *dict;
    /* bit i: block i has changed. The shard's. */
    uint64_t *changed;
    size_t n_words;
};

static uint64_t
id_of(const struct names *names, unsigned shard, uint32_t number)
{
    return names->config.id_fn(names->config.context, shard,
        own_id_row_of(number, names->shard_bits));
}

/* The shard and number of an id of a dictionary; false: it is of none. */
static bool
number_of(
    const struct names *names, uint64_t id, unsigned *shard, uint32_t *number)
{
    uint64_t row;
    names->config.row_fn(names->config.context, id, shard, &row);
    return own_id_number_of(row, names->shard_bits, number) &&
        *number != NOBODY;
}

static bool look_fn(struct engine_names *hook, unsigned shard,
    const struct engine_name *name, uint64_t *id);
static int take_fn(struct engine_names *hook, unsigned shard,
    const struct engine_name *name, uint64_t *id);

void
names_key(uint64_t seed, uint8_t key[SIPHASH_KEY_BYTES])
{
    static const char half[][8] = {"names 1", "names 2"};
    uint8_t from[SIPHASH_KEY_BYTES] = {0};
    bytes_put_u64(from, seed);
    bytes_put_u64(key, siphash(from, half[0], sizeof half[0]));
    bytes_put_u64(key + 8, siphash(from, half[1], sizeof half[1]));
}

int
names_create(struct names **out, const struct names_config *config)
{
    ASSERT(config->shards > 0 && (config->shards & (config->shards - 1)) == 0);
    struct names *names = alloc_zeroed(config->alloc, sizeof *names);
    if (names == NULL) {
        return ERR_NO_MEMORY;
    }
    names->hook = (struct engine_names){look_fn, take_fn};
    names->config = *config;
    names->shard_bits = (unsigned)__builtin_ctz(config->shards);
    names->account.alloc = config->alloc;
    names->account.limit_bytes = config->limit_bytes;
    names->shard =
        alloc_zeroed(config->alloc, config->shards * sizeof *names->shard);
    int err = names->shard == NULL ? ERR_NO_MEMORY : 0;
    struct dict_config of_dict = {
        .account = &names->account, .qsbr = config->qsbr};
    memcpy(of_dict.key, config->key, sizeof of_dict.key);
    for (unsigned i = 0; err == 0 && i < config->shards; i++) {
        err = dict_create(&names->shard[i].dict, &of_dict);
    }
    if (err != 0) {
        names_destroy(&names);
        return err;
    }
    *out = names;
    return 0;
}

void
names_destroy(struct names **namesp)
{
    struct names *names = *namesp;
    if (names == NULL) {
        return;
    }
    for (unsigned i = 0; names->shard != NULL && i < names->config.shards;
         i++) {
        struct names_shard *shard = &names->shard[i];
        dict_destroy(&shard->dict);
        name_account_give(&names->account, shard->changed,
            shard->n_words * sizeof *shard->changed);
    }
    const struct alloc *alloc = names->config.alloc;
    alloc_free(
        alloc, names->shard, names->config.shards * sizeof *names->shard);
    alloc_free(alloc, names, sizeof *names);
    *namesp = NULL;
}

void
names_set_sink(struct names *names, struct names_sink *sink)
{
    names->sink = sink;
}

/* ---- looks ---- */

static void
find_page(const struct names *names, struct names_ask *ask, size_t n)
{
    struct dict_ask of_dict[PAGE];
    unsigned shard[PAGE];
    size_t at[PAGE], n_asked = 0;
    for (size_t i = 0; i < n; i++) {
        struct names_ask *it = &ask[i];
        it->is_own = own_id_of(it->bytes, it->len, &it->id);
        it->found = it->is_own;
        if (!it->is_own) {
            uint64_t hash = dict_hash(names->config.key, it->bytes, it->len);
            shard[n_asked] = dict_shard(hash, names->config.shards);
            of_dict[n_asked] =
                (struct dict_ask){.dict = names->shard[shard[n_asked]].dict,
                    .bytes = it->bytes,
                    .len = it->len,
                    .hash = hash};
            at[n_asked++] = i;
        }
    }
    dict_find(of_dict, n_asked);
    for (size_t i = 0; i < n_asked; i++) {
        uint32_t number = of_dict[i].number;
        struct names_ask *it = &ask[at[i]];
        it->found = number != DICT_NO_NUMBER;
        it->id = id_of(names, shard[i], it->found ? number : NOBODY);
    }
}

void
names_find(const struct names *names, struct names_ask *ask, size_t n)
{
    for (size_t at = 0; at < n; at += PAGE) {
        find_page(names, ask + at, n - at < PAGE ? n - at : PAGE);
    }
}

size_t
names_name(const struct names *names, uint64_t id, char out[NAME_ROOM_BYTES])
{
    unsigned shard;
    uint32_t number;
    if (id < OWN_ID_END) {
        return own_id_name(id, out);
    }
    return number_of(names, id, &shard, &number)
        ? dict_name(names->shard[shard].dict, number, out)
        : 0;
}

uint32_t
names_tag(const struct names *names, const char *bytes, size_t len)
{
    uint64_t hash = dict_hash(names->config.key, bytes, len);
    uint32_t tag = (uint32_t)(hash ^ hash >> 32);
    return tag == 0 ? 1 : tag;
}

bool
names_is_nobodys(const struct names *names, uint64_t id)
{
    unsigned shard;
    uint32_t number;
    return id >= OWN_ID_END && !number_of(names, id, &shard, &number) &&
        id == id_of(names, shard, NOBODY);
}

bool
names_next(
    const struct names *names, unsigned shard, uint32_t *number, uint64_t *id)
{
    if (!dict_next(names->shard[shard].dict, number)) {
        return false;
    }
    *id = id_of(names, shard, *number);
    return true;
}

struct dict *
names_dict(const struct names *names, unsigned shard)
{
    ASSERT(shard < names->config.shards);
    return names->shard[shard].dict;
}

void
names_add_sums(
    const struct names *names, unsigned shard, struct names_sums *sums)
{
    struct dict_sums of_dict = dict_counts(names->shard[shard].dict);
    sums->names += of_dict.names;
    sums->resting += of_dict.resting;
    sums->lost += of_dict.lost;
}

uint64_t
names_bytes(const struct names *names)
{
    /* relaxed: a number that orders nothing */
    return atomic_load_explicit(
        &names->account.used_bytes, memory_order_relaxed);
}

/* ---- changes ---- */

/* Sees to it that a block's change can be noted. */
static int
reserve(struct names *names, struct names_shard *shard, uint32_t block)
{
    void *more;
    size_t n = shard->n_words == 0 ? CHANGED_WORDS_MIN : shard->n_words;
    while (n * WORD_BITS <= block) {
        n *= 2;
    }
    if (n == shard->n_words) {
        return 0;
    }
    int err =
        name_account_take(&names->account, n * sizeof *shard->changed, &more);
    if (err != 0) {
        return err;
    }
    size_t bytes = shard->n_words * sizeof *shard->changed;
    if (bytes > 0) {
        memcpy(more, shard->changed, bytes);
    }
    name_account_give(&names->account, shard->changed, bytes);
    shard->changed = more;
    shard->n_words = n;
    return 0;
}

static void
note(struct names_shard *shard, uint32_t number)
{
    uint32_t block = number / NAME_BLOCK_SLOTS;
    ASSERT(block / WORD_BITS < shard->n_words);
    shard->changed[block / WORD_BITS] |= UINT64_C(1) << block % WORD_BITS;
}

/* True where number has just that name. */
static bool
has_it(const struct names_shard *shard, uint32_t number, const char *bytes,
    size_t len)
{
    char name[NAME_ROOM_BYTES];
    return dict_name(shard->dict, number, name) == len &&
        memcmp(name, bytes, len) == 0;
}

static bool
look_fn(struct engine_names *hook, unsigned shard,
    const struct engine_name *name, uint64_t *id)
{
    const struct names *names = (const struct names *)hook;
    const struct names_shard *it = &names->shard[shard];
    unsigned of_id;
    uint32_t number;
    if (number_of(names, *id, &of_id, &number) && of_id == shard &&
        has_it(it, number, name->bytes, name->len)) {
        return true;
    }
    struct dict_ask ask = {.dict = it->dict,
        .bytes = name->bytes,
        .len = name->len,
        .hash = dict_hash(names->config.key, name->bytes, name->len)};
    ASSERT(dict_shard(ask.hash, names->config.shards) == shard);
    dict_find(&ask, 1);
    bool is_found = ask.number != DICT_NO_NUMBER;
    *id = id_of(names, shard, is_found ? ask.number : NOBODY);
    return is_found;
}

static int
take_fn(struct engine_names *hook, unsigned shard,
    const struct engine_name *name, uint64_t *id)
{
    struct names *names = (struct names *)hook;
    struct names_shard *it = &names->shard[shard];
    uint32_t number;
    bool is_new;
    int err = reserve(names, it, dict_blocks(it->dict));
    if (err == 0) {
        err = dict_add(it->dict, name->bytes, name->len, &number, &is_new);
    }
    if (err != 0) {
        return err;
    }
    ASSERT(is_new);
    note(it, number);
    if (names->sink != NULL) {
        names->sink->add_fn(
            names->sink, shard, number, name->bytes, name->len);
    }
    *id = id_of(names, shard, number);
    return 0;
}

void
names_take_out(struct names *names, unsigned shard, uint32_t number)
{
    struct names_shard *it = &names->shard[shard];
    if (dict_remove(it->dict, number)) {
        note(it, number);
    }
}

bool
names_drop(struct names *names, unsigned shard, uint32_t number)
{
    struct names_shard *it = &names->shard[shard];
    if (!dict_remove(it->dict, number)) {
        return false;
    }
    note(it, number);
    if (names->sink != NULL) {
        names->sink->gone_fn(names->sink, shard, number);
    }
    return true;
}

int
names_put_at(struct names *names, unsigned shard, uint32_t number,
    const char *bytes, size_t len)
{
    struct names_shard *it = &names->shard[shard];
    uint64_t id, hash = dict_hash(names->config.key, bytes, len);
    if (number >= DICT_NUMBER_END || !name_is_valid(bytes, len) ||
        own_id_of(bytes, len, &id) ||
        dict_shard(hash, names->config.shards) != shard) {
        return ERR_CORRUPT;
    }
    int err = reserve(names, it, number / NAME_BLOCK_SLOTS);
    if (err == 0) {
        err = dict_add_at(it->dict, number, bytes, len);
    }
    if (err == 0) {
        note(it, number);
    }
    return err;
}

/* ---- loading, and images ---- */

void
names_begin_load(struct names *names)
{
    names->account.limit_bytes = UINT64_MAX; /* what was there comes back */
    for (unsigned i = 0; i < names->config.shards; i++) {
        dict_begin_load(names->shard[i].dict);
    }
}

int
names_end_load(struct names *names, unsigned *shard, uint32_t *number)
{
    int err = 0;
    names->account.limit_bytes = names->config.limit_bytes;
    for (unsigned i = 0; i < names->config.shards; i++) {
        uint32_t twice;
        int its =
            dict_end_load(names->shard[i].dict, names->config.qsbr, &twice);
        if (err == 0 && its != 0) {
            err = its;
            *shard = i;
            *number = twice;
        }
    }
    return err;
}

int
names_load(struct names *names, unsigned shard, const uint8_t *image, size_t n)
{
    struct names_shard *it = &names->shard[shard];
    int err = dict_load(it->dict, image, n);
    return err != 0 ? err : reserve(names, it, dict_blocks(it->dict));
}

bool
names_next_changed(const struct names *names, unsigned shard, uint32_t *block)
{
    const struct names_shard *it = &names->shard[shard];
    for (size_t w = *block / WORD_BITS; w < it->n_words; w++) {
        uint64_t word = it->changed[w];
        if (w == *block / WORD_BITS) {
            word &= UINT64_MAX << *block % WORD_BITS;
        }
        if (word != 0) {
            *block =
                (uint32_t)(w * WORD_BITS) + (uint32_t)__builtin_ctzll(word);
            return true;
        }
    }
    return false;
}

void
names_clean(struct names *names, unsigned shard, uint32_t block)
{
    struct names_shard *it = &names->shard[shard];
    ASSERT(block / WORD_BITS < it->n_words);
    it->changed[block / WORD_BITS] &= ~(UINT64_C(1) << block % WORD_BITS);
}

void
names_soil(struct names *names, unsigned shard)
{
    struct names_shard *it = &names->shard[shard];
    uint32_t n = dict_blocks(it->dict);
    for (uint32_t block = 0; block < n; block++) {
        note(it, block * NAME_BLOCK_SLOTS);
    }
}
