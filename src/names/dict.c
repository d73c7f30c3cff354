/* SPDX-License-Identifier: BSD-3-Clause */
/* The dictionary of a shard: an index from hashes to numbers
 * (names/name_index.h), blocks from numbers to names (names/name_heap.h), and
 * what rests until readers have gone by (names/name_rest.h).
 *
 * A number:   never given -> has a name -> rests -> free -> has a name -> ...
 *
 * Invariants (dict_verify): the index has a number exactly while its block has
 * a name for it, and then finds it by that name; no two numbers have the same
 * name; numbers from next on are in neither.
 *
 * Order: a name is in its block before its number is in the index, and leaves
 * the index first. So a reader that comes from the index finds the name, or
 * sees that it has gone.
 *
 * What can go wrong: memory, or its limit. Adding takes all it needs first.
 * Taking out needs none; where what it gives back could only be given back with
 * more memory, that waits, and so does a number that cannot be noted: a sweep
 * finds both (struct dict_sweep). */
#include "names/dict_priv.h"

#include "base/assert.h"
#include "base/err.h"

#include <stdlib.h>
#include <string.h>

enum {
    LEARN_FIRST = 1024, /* names, before the first table is learned */
    LEARN_AGAIN = 4,    /* times as many before the next */
    FREE_MIN = 16,
    HASH_PAGE = 64,       /* names that are hashed at a time */
    SWEEP_BLOCKS = 1024,  /* that a step of a sweep looks at */
    CODE_BYTES_GUESS = 10 /* of a name, to ask for its line */
};

/* relaxed: only who holds the lock writes it */
static uint32_t
next_of(const struct dict *dict)
{
    return atomic_load_explicit(&dict->next, memory_order_relaxed);
}

static uint64_t
hash_of(const struct dict *dict, uint32_t number)
{
    char name[NAME_ROOM_BYTES];
    size_t len = dict_name(dict, number, name);
    ASSERT(len > 0);
    return dict_hash(dict->key, name, len);
}

/* What the index asks. The blocks' lines are asked for some names ahead. */
static void
hash_all(void *context, const uint32_t *number, unsigned n, uint64_t *hash)
{
    const struct dict *dict = context;
    for (unsigned at = 0; at < n; at += HASH_PAGE) {
        unsigned end = n - at < HASH_PAGE ? n : at + HASH_PAGE;
        for (unsigned i = at; i < end; i++) {
            const struct name_block *block =
                name_heap_block(&dict->heap, number[i] / NAME_BLOCK_SLOTS);
            size_t guess = sizeof *block +
                CODE_BYTES_GUESS * (size_t)(number[i] % NAME_BLOCK_SLOTS);
            __builtin_prefetch(block);
            __builtin_prefetch((const void *)((uintptr_t)block + guess));
        }
        for (unsigned i = at; i < end; i++) {
            hash[i] = hash_of(dict, number[i]);
        }
    }
}

static bool
has_name(const struct dict *dict, uint32_t number)
{
    const struct name_block *block =
        name_heap_block(&dict->heap, number / NAME_BLOCK_SLOTS);
    return block != NULL && name_block_has(block, number % NAME_BLOCK_SLOTS);
}

static int
by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Takes out what stands there in vain. */
static void
tidy_free(struct dict *dict)
{
    struct dict_free *list = &dict->free;
    size_t n = 0;
    if (list->n > 0) {
        qsort(list->at, list->n, sizeof *list->at, by_number);
    }
    for (size_t i = 0; i < list->n; i++) {
        uint32_t number = list->at[i];
        if ((n == 0 || list->at[n - 1] != number) && !has_name(dict, number)) {
            list->at[n++] = number;
        }
    }
    list->n = n;
}

/* False where there is no memory for that. */
static bool
resize_free(struct dict *dict, size_t capacity)
{
    struct dict_free *list = &dict->free;
    void *at;
    ASSERT(capacity >= list->n);
    if (name_account_take(dict->account, capacity * sizeof *list->at, &at) !=
        0) {
        return false;
    }
    if (list->n > 0) {
        memcpy(at, list->at, list->n * sizeof *list->at);
    }
    name_account_give(
        dict->account, list->at, list->capacity * sizeof *list->at);
    list->at = at;
    list->capacity = capacity;
    return true;
}

/* False where there is no room for one more, nor memory. */
static bool
make_free_room(struct dict *dict)
{
    struct dict_free *list = &dict->free;
    if (list->n < list->capacity) {
        return true;
    }
    tidy_free(dict);
    if (list->n < list->capacity / 4 * 3) {
        return true;
    }
    (void)resize_free(
        dict, list->capacity == 0 ? FREE_MIN : list->capacity * 2);
    return list->n < list->capacity;
}

/* Memory was out: what that has left is found by a sweep, which begins anew. */
static void
want_sweep(struct dict *dict, uint64_t n_lost)
{
    dict->lost += n_lost;
    dict->sweep.is_due = true;
    dict->sweep.is_on = false;
}

/* A number went that nothing says to rest. The list of those that are free may
 * have it from before (look_for_number): a sweep makes that anew. */
static void
lose(struct dict *dict)
{
    want_sweep(dict, dict->free.n + 1);
    dict->free.n = 0;
}

static void
note_free(void *context, uint32_t number)
{
    struct dict *dict = context;
    if (make_free_room(dict)) {
        dict->free.at[dict->free.n++] = number;
    } else {
        want_sweep(dict, 1);
    }
}

/* Notes the free numbers of a block, and cuts it; false: there is no memory for
 * that now. What has been noted may be noted again. */
static bool
sweep_block(struct dict *dict, uint32_t n_block)
{
    uint32_t first = n_block * NAME_BLOCK_SLOTS;
    for (unsigned i = 0; i < NAME_BLOCK_SLOTS; i++) {
        if (first + i < next_of(dict) && !has_name(dict, first + i)) {
            if (!make_free_room(dict)) {
                return false;
            }
            dict->free.at[dict->free.n++] = first + i;
        }
    }
    return name_heap_cut(&dict->heap, n_block);
}

/* True where a sweep is under way that may look at blocks. */
static bool
may_sweep(struct dict *dict)
{
    struct dict_sweep *sweep = &dict->sweep;
    struct qsbr *qsbr = dict->rest.qsbr;
    if (!sweep->is_on && sweep->is_due) {
        *sweep = (struct dict_sweep){.is_on = true,
            .lost = dict->lost,
            .target = qsbr == NULL ? 0 : qsbr_begin(qsbr)};
    }
    if (!sweep->is_on) {
        return false;
    }
    sweep->has_rested =
        sweep->has_rested || qsbr == NULL || qsbr_is_over(qsbr, sweep->target);
    return sweep->has_rested;
}

static void
sweep_on(struct dict *dict)
{
    struct dict_sweep *sweep = &dict->sweep;
    if (!may_sweep(dict)) {
        return;
    }
    for (unsigned i = 0; i < SWEEP_BLOCKS; i++, sweep->at++) {
        if (sweep->at == dict_blocks(dict)) {
            sweep->is_on = false;
            ASSERT(dict->lost >= sweep->lost);
            dict->lost -= sweep->lost;
            tidy_free(dict);
            return;
        }
        if (!sweep_block(dict, sweep->at)) {
            return; /* there may be memory the next time */
        }
    }
}

int
dict_create(struct dict **out, const struct dict_config *config)
{
    void *memory;
    int err = name_account_take(config->account, sizeof(struct dict), &memory);
    if (err != 0) {
        return err;
    }
    struct dict *dict = memory;
    memcpy(dict->key, config->key, sizeof dict->key);
    dict->account = config->account;
    dict->rest = (struct name_rest){.account = config->account,
        .qsbr = config->qsbr,
        .number_fn = note_free,
        .context = dict};
    name_heap_init(&dict->heap, config->account, &dict->rest);
    dict->index.account = config->account;
    dict->index.rest = &dict->rest;
    dict->index.hash_fn = hash_all;
    dict->index.context = dict;
    err = name_index_init(&dict->index);
    if (err != 0) {
        dict_destroy(&dict);
        return err;
    }
    *out = dict;
    return 0;
}

void
dict_destroy(struct dict **dictp)
{
    struct dict *dict = *dictp;
    if (dict == NULL) {
        return;
    }
    name_rest_fini(&dict->rest);
    name_index_fini(&dict->index);
    name_heap_fini(&dict->heap);
    for (unsigned i = 1; i <= NAME_TABLES_MAX; i++) {
        name_account_give(dict->account, (void *)(uintptr_t)dict->table[i],
            sizeof *dict->table[i]);
    }
    name_account_give(dict->account, dict->free.at,
        dict->free.capacity * sizeof *dict->free.at);
    name_account_give(dict->account, dict, sizeof *dict);
    *dictp = NULL;
}

bool
dict_rests(struct dict *dict, uint32_t number)
{
    name_rest_collect(&dict->rest);
    for (size_t i = 0; i < dict->rest.n; i++) {
        const struct name_rest_entry *entry = &dict->rest.at[i];
        if (entry->block == NULL && entry->number == number) {
            return true;
        }
    }
    return false;
}

/* A number that a new name may have; it stays where it is. DICT_NUMBER_END:
 * none is left. */
static uint32_t
look_for_number(struct dict *dict)
{
    struct dict_free *list = &dict->free;
    while (list->n > 0) {
        uint32_t number = list->at[list->n - 1];
        if (!has_name(dict, number) && !dict_rests(dict, number)) {
            return number;
        }
        list->n--;
    }
    return next_of(dict);
}

void
dict__skip(struct dict *dict, uint32_t number)
{
    for (uint32_t at = next_of(dict); at < number; at++) {
        if (!make_free_room(dict)) {
            want_sweep(dict, number - at);
            break;
        }
        note_free(dict, at);
    }
}

/* Number, which has none, gets that name, which has no number. */
static int
put(struct dict *dict, uint32_t number, const char *bytes, size_t len,
    uint64_t hash)
{
    char name[NAME_ROOM_BYTES] = {0};
    uint8_t code[NAME_CODE_BYTES_MAX];
    ASSERT(name_is_valid(bytes, len));
    memcpy(name, bytes, len);
    unsigned table = name_heap_table(&dict->heap, number, dict__tables(dict));
    size_t n = name_code_put(dict->table[table], name, len, code);
    int err = name_index_reserve(&dict->index, hash);
    if (err == 0) {
        err = name_heap_put(&dict->heap, number, table, code, n);
    }
    if (err != 0) {
        return err;
    }
    name_index_put(&dict->index, hash, number);
    if (number >= next_of(dict)) {
        dict__skip(dict, number);
        dict__set_next(dict, number + 1);
    }
    return 0;
}

int
dict_add(struct dict *dict, const char *bytes, size_t len, uint32_t *number,
    bool *is_new)
{
    uint64_t hash = dict_hash(dict->key, bytes, len);
    uint32_t found = dict__find(dict, bytes, len, hash);
    *is_new = found == DICT_NO_NUMBER;
    if (!*is_new) {
        *number = found;
        return 0;
    }
    name_rest_collect(&dict->rest);
    uint32_t free = look_for_number(dict);
    if (dict->free.capacity > FREE_MIN &&
        dict->free.n < dict->free.capacity / 8) {
        (void)resize_free(dict, dict->free.capacity / 4);
    }
    if (free == DICT_NUMBER_END) {
        return ERR_HOT_FULL;
    }
    int err = put(dict, free, bytes, len, hash);
    if (err == 0) {
        *number = free;
    }
    return err;
}

int
dict_add_at(struct dict *dict, uint32_t number, const char *bytes, size_t len)
{
    uint64_t hash = dict_hash(dict->key, bytes, len);
    if (number >= DICT_NUMBER_END) {
        return ERR_CORRUPT;
    }
    if (has_name(dict, number)) {
        char name[NAME_ROOM_BYTES];
        return dict_name(dict, number, name) == len &&
                memcmp(name, bytes, len) == 0
            ? 0
            : ERR_CORRUPT;
    }
    if (dict__find(dict, bytes, len, hash) != DICT_NO_NUMBER &&
        !dict__may_be_twice(dict)) {
        return ERR_CORRUPT;
    }
    ASSERT(number >= next_of(dict) || !dict_rests(dict, number));
    return put(dict, number, bytes, len, hash);
}

bool
dict_remove(struct dict *dict, uint32_t number)
{
    if (!has_name(dict, number)) {
        return false;
    }
    name_index_take_out(&dict->index, hash_of(dict, number), number);
    if (!name_heap_take_out(&dict->heap, number)) {
        want_sweep(dict, 0);
    }
    if (name_rest_reserve(&dict->rest, 1) == 0) {
        name_rest_number(&dict->rest, number);
    } else {
        lose(dict);
    }
    name_rest_collect(&dict->rest);
    return true;
}

void
dict_collect(struct dict *dict)
{
    name_rest_collect(&dict->rest);
    sweep_on(dict);
}

bool
dict_wants_table(const struct dict *dict)
{
    uint64_t names = LEARN_FIRST;
    unsigned n_tables = dict__tables(dict);
    for (unsigned i = 0; i < n_tables; i++) {
        names *= LEARN_AGAIN;
    }
    return n_tables < NAME_TABLES_MAX && dict->index.n_names >= names;
}

/* True of a name that symbols may be good for. */
static bool
is_of_symbols(const struct dict *dict, uint32_t number)
{
    const struct name_block *block =
        name_heap_block(&dict->heap, number / NAME_BLOCK_SLOTS);
    uint8_t first =
        block->code[name_block_at(block, number % NAME_BLOCK_SLOTS)];
    return first == NAME_CODE_RAW || first < NAME_SYMBOLS_MAX ||
        first == NAME_ESCAPE;
}

/* Fills the sample with names from all over; its length. */
static size_t
take_sample(const struct dict *dict, char *sample)
{
    enum { NAMES = NAME_SAMPLE_BYTES_MAX / 16 };
    uint32_t next = next_of(dict), stride = 1 + next / NAMES;
    char name[NAME_ROOM_BYTES];
    size_t n = 0;
    for (uint32_t number = 0; dict_next(dict, &number); number += stride) {
        size_t len = dict_name(dict, number, name);
        if (n + len + 1 > NAME_SAMPLE_BYTES_MAX) {
            break;
        }
        if (is_of_symbols(dict, number)) {
            memcpy(sample + n, name, len);
            n += len + 1;
        }
    }
    return n;
}

int
dict_learn(struct dict *dict)
{
    unsigned table = dict__tables(dict) + 1;
    void *lesson, *sample, *symbols;
    ASSERT(table <= NAME_TABLES_MAX);
    int err = name_account_take(dict->account, name_lesson_bytes(), &lesson);
    if (err != 0) {
        return err;
    }
    size_t sample_bytes = NAME_SAMPLE_BYTES_MAX + NAME_SAMPLE_PAD;
    err = name_account_take(dict->account, sample_bytes, &sample);
    if (err != 0) {
        goto out_lesson;
    }
    err = name_account_take(
        dict->account, sizeof(struct name_symbols), &symbols);
    if (err == 0) {
        name_symbols_learn(symbols, sample, take_sample(dict, sample), lesson);
        dict->table[table] = symbols;
        /* release: see dict__tables */
        atomic_store_explicit(&dict->n_tables, table, memory_order_release);
    }
    name_account_give(dict->account, sample, sample_bytes);
out_lesson:
    name_account_give(dict->account, lesson, name_lesson_bytes());
    return err;
}

struct dict_sums
dict_counts(const struct dict *dict)
{
    return (struct dict_sums){.names = dict->index.n_names,
        .next = next_of(dict),
        .resting = dict->rest.n,
        .lost = dict->lost};
}

struct dict_sums
dict_sums(const struct dict *dict)
{
    struct dict_sums sums = dict_counts(dict);
    sums.index_bytes = dict->index.bytes;
    for (uint32_t i = 0; i < dict_blocks(dict); i++) {
        const struct name_block *block = name_heap_block(&dict->heap, i);
        sums.blocks_bytes += block == NULL
            ? 0
            : name_account_bytes(name_block_bytes(block->room_bytes));
    }
    sums.other_bytes =
        dict__tables(dict) * name_account_bytes(sizeof(struct name_symbols)) +
        dict->free.capacity * sizeof *dict->free.at;
    return sums;
}

void
dict_verify(const struct dict *dict)
{
    char name[NAME_ROOM_BYTES];
    uint64_t n = 0;
    for (uint32_t number = 0; dict_next(dict, &number); number++) {
        size_t len = dict_name(dict, number, name);
        uint64_t id;
        ASSERT(name_is_valid(name, len) && !own_id_of(name, len, &id));
        ASSERT(dict__find(dict, name, len, dict_hash(dict->key, name, len)) ==
            number);
        n++;
    }
    ASSERT(n == dict->index.n_names);
    for (size_t i = 0; i < dict->free.n; i++) {
        ASSERT(dict->free.at[i] < next_of(dict));
    }
}
