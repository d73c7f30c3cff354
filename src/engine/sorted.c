/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays of the largest members of records, ascending, for marks that are about
 * members: how many are above a position is one binary search.
 *
 *   shard -> table: buckets -> entry -> entry -> ...    one a record
 *                                |
 *                                v
 *              array: [ m0 < m1 < m2 ... ] n of them, and room behind
 *
 * Each shard has a table of its own, made with its first array. Readers take no
 * lock: they follow the pointers, and what is taken out of them is freed when
 * no reader can see it (pool_retire). A reader that keeps an array longer
 * counts as a user of it (engine_pin). What changes them holds the shard's
 * lock.
 *
 * Members 0..n-1 of an array never change. A larger one than all is put behind
 * them where there is room, and then n goes up; so a pin, which knows the n of
 * its moment, stays as it is. Every other change makes a new array: of small
 * ones that is cheap, of the largest it takes some 50 us. An array has all
 * members of its record, or, where is_cut, the largest of them, SORTED_MAX or
 * more: what is below the first is not known then. One that has become too
 * short by members that went is dropped, and made anew when it is next asked
 * for.
 *
 * To make one, an entry without an array is put into the table first. From then
 * on each change of its members is noted there, while they are read piece by
 * piece; in the end the notes, of which the last of a member counts, are put
 * over what was read. So nothing is lost that comes while it is made.
 *
 * An array that cannot follow a change, since memory is short or copies of a
 * large one wait for readers, is dropped: there is none rather than a wrong
 * one. Those that are not used are dropped
 * where all together are more than limit_bytes: by the clock algorithm, in the
 * shard that needs the room, and in all by engine_tend. The array that is
 * needed now stays, however large, and so does one that is asked for again
 * between two calls of engine_tend. */
#include "engine/sorted_priv.h"

#include "base/assert.h"
#include "base/err.h"
#include "base/fold.h"
#include "engine/engine_priv.h"
#include "engine/sorted_array.h"

#include <string.h>

enum {
    LIMIT_SHARE = 32, /* of the hot memory that is for arrays */
    BUCKETS_MIN = 16,
    BUCKETS_MAX = 16384,
    ENTRY_BYTES = 512, /* about, of an entry with its array */
    NOTES_MAX = 16384,
    WALK = 512,   /* members that are read at once */
    LARGE = 8192, /* members of an array whose copies are not small */
    TRIES = 3     /* to make one: its changes may be too many, its members
                 * become too few */
};

struct sorted {
    struct pool_garbage garbage;
    _Atomic(struct sorted *) next; /* in its bucket */
    uint64_t number;
    uint32_t serial;
    uint8_t pairs;
    bool is_gone;    /* being made, and not to be kept */
    bool lacks_some; /* likewise, and a change could not be noted */
    _Atomic bool is_used;
    _Atomic(struct sorted_array *) array; /* NULL: it is being made */
    struct sorted_notes *notes;           /* then; NULL: there are none */
};

struct sorted_table {
    uint32_t n, hand; /* entries; the bucket that the clock looks at next */
    _Atomic(struct sorted *) bucket[];
};

/* ---- memory ---- */

static size_t
notes_bytes(uint32_t room)
{
    return sizeof(struct sorted_notes) + room * sizeof(struct sorted_note);
}

static size_t
table_bytes(const struct engine *engine)
{
    return sizeof(struct sorted_table) +
        engine->sorted.n_buckets * sizeof(_Atomic(struct sorted *));
}

static void
free_array(struct pool *pool, struct pool_garbage *garbage)
{
    sorted__leave(pool, (struct sorted_array *)garbage);
}

static void
free_entry(struct pool *pool, struct pool_garbage *garbage)
{
    pool_give_block(pool, garbage, sizeof(struct sorted));
}

/* A number that orders nothing. */
static void
add_to(_Atomic uint64_t *figure, uint64_t n)
{
    atomic_fetch_add_explicit(figure, n, memory_order_relaxed);
}

static uint64_t
figure_of(const _Atomic uint64_t *figure)
{
    return atomic_load_explicit(figure, memory_order_relaxed);
}

/* That much of an entry or an array is there, or no more. */
static void
charge(struct engine *engine, size_t bytes, bool is_there)
{
    size_t all = pool_block_bytes(&engine->pool, bytes);
    add_to(&engine->sorted.bytes, is_there ? all : 0 - (uint64_t)all);
}

static void
retire_array(struct engine *engine, struct sorted_array *array)
{
    charge(engine, sorted__bytes(array->room), false);
    pool_retire(&engine->pool, &array->garbage,
        pool_block_bytes(&engine->pool, sorted__bytes(array->room)),
        free_array);
}

static struct sorted_array *
array_of(const struct sorted *entry)
{
    /* acquire: with all that is in it */
    return atomic_load_explicit(&entry->array, memory_order_acquire);
}

/* ---- tables ---- */

static struct sorted_table *
table_of(const struct engine *engine, unsigned shard)
{
    /* acquire: with its buckets */
    return atomic_load_explicit(
        &engine->sorted.table[shard], memory_order_acquire);
}

static _Atomic(struct sorted *) *
bucket_of(const struct engine *engine, struct sorted_table *table,
    const struct sorted_key *key)
{
    uint64_t hash = fold_id(key->number ^ (uint64_t)key->serial << 40);
    return &table->bucket[hash & (engine->sorted.n_buckets - 1)];
}

static struct sorted *
next_of(const _Atomic(struct sorted *) *link)
{
    /* acquire: with what is in it */
    return atomic_load_explicit(link, memory_order_acquire);
}

/* NULL where there is none. Under the lock, or an online reader's. */
static struct sorted *
find(const struct engine *engine, struct sorted_table *table,
    const struct sorted_key *key)
{
    struct sorted *entry = NULL;
    if (table != NULL) {
        entry = next_of(bucket_of(engine, table, key));
    }
    while (entry != NULL &&
        (entry->number != key->number || entry->serial != key->serial ||
            entry->pairs != key->pairs)) {
        entry = next_of(&entry->next);
    }
    return entry;
}

static void
give_notes(struct engine *engine, struct sorted *entry)
{
    if (entry->notes != NULL) {
        pool_give_block(
            &engine->pool, entry->notes, notes_bytes(entry->notes->room));
        entry->notes = NULL;
    }
}

/* Takes the entry at *link out. */
static void
take_out(struct engine *engine, struct sorted_table *table,
    _Atomic(struct sorted *) *link)
{
    struct sorted *entry = next_of(link);
    struct sorted_array *array = array_of(entry);
    ASSERT(table->n > 0);
    /* release: as it was stored in the entry */
    atomic_store_explicit(link, next_of(&entry->next), memory_order_release);
    table->n--;
    give_notes(engine, entry);
    if (array != NULL) {
        retire_array(engine, array);
        add_to(&engine->sorted.dropped, 1);
        add_to(&engine->sorted.arrays, UINT64_MAX);
    }
    charge(engine, sizeof *entry, false);
    pool_retire(&engine->pool, &entry->garbage,
        pool_block_bytes(&engine->pool, sizeof *entry), free_entry);
}

/* The same, of an entry that is there; one that is being made is left to who
 * makes it. */
static void
drop(struct engine *engine, struct sorted_table *table,
    _Atomic(struct sorted *) *link)
{
    struct sorted *entry = next_of(link);
    if (array_of(entry) == NULL) {
        entry->is_gone = true;
    } else {
        take_out(engine, table, link);
    }
}

static _Atomic(struct sorted *) *
link_to(const struct engine *engine, struct sorted_table *table,
    const struct sorted_key *key, const struct sorted *entry)
{
    _Atomic(struct sorted *) *link = bucket_of(engine, table, key);
    while (next_of(link) != entry) {
        ASSERT(next_of(link) != NULL); /* it is there */
        link = &next_of(link)->next;
    }
    return link;
}

/* One step of the clock. */
static void
sweep_bucket(struct engine *engine, struct sorted_table *table,
    const struct sorted *keep)
{
    _Atomic(struct sorted *) *link = &table->bucket[table->hand];
    struct sorted *entry;
    while ((entry = next_of(link)) != NULL) {
        /* relaxed: a hint */
        bool is_used =
            atomic_load_explicit(&entry->is_used, memory_order_relaxed);
        if (entry == keep || array_of(entry) == NULL || is_used) {
            atomic_store_explicit(
                &entry->is_used, false, memory_order_relaxed);
            link = &entry->next;
        } else {
            take_out(engine, table, link);
        }
    }
    table->hand = (table->hand + 1) & (engine->sorted.n_buckets - 1);
}

/* Drops entries but keep, which may be NULL, until all are few enough or the
 * clock has gone round so often: once, and what was asked for since the last
 * round stays; twice, and nothing does. */
static void
make_room(struct engine *engine, unsigned shard, const struct sorted *keep,
    unsigned rounds)
{
    struct sorted_table *table = table_of(engine, shard);
    uint32_t n_steps = table == NULL ? 0 : rounds * engine->sorted.n_buckets;
    while (n_steps-- > 0 && table->n > (keep != NULL) &&
        figure_of(&engine->sorted.bytes) > engine->sorted.limit_bytes) {
        sweep_bucket(engine, table, keep);
    }
}

void
sorted__tend(struct engine *engine)
{
    for (unsigned i = 0; i < engine->n_shards &&
         figure_of(&engine->sorted.bytes) > engine->sorted.limit_bytes;
         i++) {
        shard__lock(&engine->shard[i]);
        make_room(engine, i, NULL, 1);
        shard__unlock(&engine->shard[i]);
    }
}

/* ---- changes ---- */

/* A change that comes while the array is made. */
static void
note(struct engine *engine, struct sorted *entry, uint64_t member, bool is_in)
{
    struct sorted_notes *notes = entry->notes;
    uint32_t n = notes == NULL ? 0 : notes->n;
    if (entry->lacks_some) {
        return;
    }
    if (notes == NULL || n == notes->room) {
        uint32_t room = n == 0 ? 16 : 2 * n;
        void *block = NULL;
        if (room > NOTES_MAX ||
            pool_take_block(
                &engine->pool, notes_bytes(room), POOL_EVICT, &block) != 0) {
            entry->lacks_some = true;
            return;
        }
        if (notes != NULL) {
            memcpy(block, notes, notes_bytes(n));
        }
        give_notes(engine, entry);
        entry->notes = notes = block;
        notes->room = room;
    }
    notes->note[n] = (struct sorted_note){member, n, is_in};
    notes->n = n + 1;
}

/* Puts a new array in the place of the entry's. */
static void
exchange(
    struct engine *engine, struct sorted *entry, struct sorted_array *made)
{
    struct sorted_array *old = array_of(entry);
    charge(engine, sorted__bytes(made->room), true);
    /* release: with all that is in it */
    atomic_store_explicit(&entry->array, made, memory_order_release);
    if (old != NULL) {
        retire_array(engine, old);
    }
}

/* False where the array cannot follow. */
static bool
follow(
    struct engine *engine, struct sorted *entry, uint64_t member, bool is_in)
{
    struct sorted_array *array = array_of(entry);
    uint32_t n = sorted__count(array);
    if (is_in && n < array->room &&
        (n == 0 || member > array->member[n - 1])) {
        array->member[n] = member;
        sorted__set_count(array, n + 1);
        return true;
    }
    uint32_t at = sorted__place(array->member, n, member);
    bool is_there = at < n && array->member[at] == member;
    if (array->is_cut && at == 0 && !is_there) {
        return true; /* below those that are known */
    }
    ASSERT(is_there == !is_in);
    if (!is_in && array->is_cut && n == SORTED_MAX) {
        return false; /* the next one below is not known */
    }
    if (n >= LARGE &&
        pool_garbage_bytes(&engine->pool) > engine->sorted.limit_bytes) {
        return false; /* copies of it pile up */
    }
    struct sorted_array *made =
        sorted__remake(&engine->pool, array, at, member, is_in);
    if (made == NULL) {
        return false;
    }
    exchange(engine, entry, made);
    return true;
}

void
sorted__change(struct engine *engine, unsigned shard,
    const struct sorted_key *key, uint64_t member, bool is_in)
{
    struct sorted_table *table = table_of(engine, shard);
    struct sorted *entry = find(engine, table, key);
    lock_assert_held(&engine->shard[shard].lock);
    if (entry == NULL) {
        return;
    }
    if (array_of(entry) == NULL) {
        note(engine, entry, member, is_in);
    } else if (!follow(engine, entry, member, is_in)) {
        take_out(engine, table, link_to(engine, table, key, entry));
    }
}

void
sorted__forget(
    struct engine *engine, unsigned shard, const struct sorted_key *key)
{
    struct sorted_table *table = table_of(engine, shard);
    struct sorted *entry = find(engine, table, key);
    lock_assert_held(&engine->shard[shard].lock);
    if (entry != NULL) {
        drop(engine, table, link_to(engine, table, key, entry));
    }
}

void
sorted__drop(struct engine *engine, unsigned shard, unsigned pairs)
{
    struct sorted_table *table = table_of(engine, shard);
    lock_assert_held(&engine->shard[shard].lock);
    for (uint32_t i = 0;
         table != NULL && table->n > 0 && i < engine->sorted.n_buckets; i++) {
        _Atomic(struct sorted *) *link = &table->bucket[i];
        struct sorted *entry;
        while ((entry = next_of(link)) != NULL) {
            if (entry->pairs == pairs) {
                drop(engine, table, link);
            }
            if (next_of(link) == entry) {
                link = &entry->next;
            }
        }
    }
}

/* ---- making one ---- */

/* An entry without an array, in the table; NULL when memory is out. */
static struct sorted *
put_entry(struct engine *engine, unsigned shard, const struct sorted_key *key)
{
    struct sorted_table *table = table_of(engine, shard);
    void *block;
    if (table == NULL) {
        if (pool_take_block(
                &engine->pool, table_bytes(engine), POOL_EVICT, &block) != 0) {
            return NULL;
        }
        table = block;
        /* release: with its buckets, which are empty */
        atomic_store_explicit(
            &engine->sorted.table[shard], table, memory_order_release);
    }
    if (pool_take_block(
            &engine->pool, sizeof(struct sorted), POOL_EVICT, &block) != 0) {
        return NULL;
    }
    struct sorted *entry = block;
    _Atomic(struct sorted *) *bucket = bucket_of(engine, table, key);
    entry->number = key->number;
    entry->serial = key->serial;
    entry->pairs = key->pairs;
    atomic_init(&entry->is_used, true);
    atomic_init(&entry->array, NULL);
    atomic_init(&entry->next, next_of(bucket));
    /* release: with all that is in it */
    atomic_store_explicit(bucket, entry, memory_order_release);
    table->n++;
    charge(engine, sizeof *entry, true);
    return entry;
}

/* All that the walk finds. */
static int
read_all(struct engine *engine, const struct sorted_key *key,
    const struct sorted_walk *walk, struct sorted_array **array)
{
    uint64_t member[WALK];
    uint64_t from = 0;
    size_t n = WALK;
    int err = 0;
    while (err == 0 && n == WALK && from >> key->bits == 0) {
        err = walk->next_fn(walk, key, from, WALK, member, &n);
        for (size_t i = 0; err == 0 && i < n; i++) {
            ASSERT(member[i] >= from && member[i] >> key->bits == 0);
            err = sorted__append(&engine->pool, array, member[i]);
            from = member[i] + 1;
        }
    }
    return err;
}

static bool
has_pairs(const struct engine *engine, const struct sorted_key *key)
{
    const struct counter *counter = engine__counter(engine, key->pairs);
    const struct view *view = counter == NULL ? NULL : counter__view(counter);
    /* relaxed: a moment sooner or later makes no difference */
    return view != NULL &&
        atomic_load_explicit(&view->column[0].serial, memory_order_relaxed) ==
        key->serial;
}

/* What was read becomes the entry's and the caller's pin, if it can: 0,
 * ERR_NO_MEMORY; ERR_EXISTS where it is to be read again, ERR_NOT_FOUND where
 * all members went meanwhile, ERR_GONE where the pairs did. Under the lock;
 * behind it others put members into the array. */
static int
finish(struct engine *engine, unsigned shard, const struct sorted_key *key,
    struct sorted *entry, struct sorted_array **array, struct sorted_pin *pin)
{
    struct sorted_table *table = table_of(engine, shard);
    int err = entry->lacks_some ? ERR_EXISTS : 0;
    err = entry->is_gone ? ERR_NOT_FOUND : err;
    err = has_pairs(engine, key) ? err : ERR_GONE;
    ASSERT(array_of(entry) == NULL);
    if (err == 0 && entry->notes != NULL) {
        err = sorted__merge(&engine->pool, entry->notes, array);
    }
    if (err == 0 && (*array)->is_cut && sorted__count(*array) < SORTED_MAX) {
        err = ERR_EXISTS;
    }
    give_notes(engine, entry);
    if (err != 0) {
        take_out(engine, table, link_to(engine, table, key, entry));
        return err;
    }
    /* relaxed: nobody else has it yet */
    atomic_fetch_add_explicit(&(*array)->n_users, 1, memory_order_relaxed);
    *pin = (struct sorted_pin){*array, sorted__count(*array)};
    exchange(engine, entry, *array);
    add_to(&engine->sorted.made, 1);
    add_to(&engine->sorted.arrays, 1);
    make_room(engine, shard, entry, 2);
    return 0;
}

/* The caller's pin of the members now, where there is an array. */
static bool
pin_now(struct engine *engine, unsigned shard, const struct sorted_key *key,
    struct sorted_pin *pin)
{
    struct sorted *entry = find(engine, table_of(engine, shard), key);
    struct sorted_array *array = entry == NULL ? NULL : array_of(entry);
    if (array == NULL) {
        return false;
    }
    /* relaxed: a hint; most find it set, and store nothing */
    if (!atomic_load_explicit(&entry->is_used, memory_order_relaxed)) {
        atomic_store_explicit(&entry->is_used, true, memory_order_relaxed);
    }
    /* acquire: with the members below it */
    pin->n = atomic_load_explicit(&array->n, memory_order_acquire);
    /* relaxed: it cannot be freed now, and leave_array orders the rest */
    atomic_fetch_add_explicit(&array->n_users, 1, memory_order_relaxed);
    pin->array = array;
    return true;
}

bool
engine_pin(struct engine *engine, const struct sorted_key *key,
    struct sorted_pin *pin)
{
    *pin = (struct sorted_pin){NULL, 0};
    return key->number == 0 ||
        pin_now(engine, engine__row(engine, key->id).shard, key, pin);
}

/* One try: as finish. */
static int
make(struct engine *engine, unsigned shard, const struct sorted_key *key,
    const struct sorted_walk *walk, struct sorted_pin *pin)
{
    struct shard *at = &engine->shard[shard];
    shard__lock(at);
    if (pin_now(engine, shard, key, pin)) {
        shard__unlock(at);
        return 0;
    }
    ASSERT(find(engine, table_of(engine, shard), key) == NULL);
    int err = has_pairs(engine, key) ? 0 : ERR_GONE;
    struct sorted *entry = err == 0 ? put_entry(engine, shard, key) : NULL;
    shard__unlock(at);
    if (entry == NULL) {
        return err == 0 ? ERR_NO_MEMORY : err;
    }
    struct sorted_array *array =
        sorted__create(&engine->pool, sorted__room_for(0));
    err = array == NULL ? ERR_NO_MEMORY : read_all(engine, key, walk, &array);
    shard__lock(at);
    if (err == 0) {
        err = finish(engine, shard, key, entry, &array, pin);
    } else {
        struct sorted_table *table = table_of(engine, shard);
        take_out(engine, table, link_to(engine, table, key, entry));
    }
    shard__unlock(at);
    if (err != 0 && array != NULL) {
        sorted__leave(&engine->pool, array);
    }
    return err;
}

int
engine_make_sorted(struct engine *engine, const struct sorted_key *key,
    const struct sorted_walk *walk, struct sorted_pin *pin)
{
    unsigned shard = engine__row(engine, key->id).shard;
    int err = ERR_EXISTS;
    *pin = (struct sorted_pin){NULL, 0};
    ASSERT(key->bits < 64);
    if (key->number == 0) {
        return 0;
    }
    for (unsigned i = 0; err == ERR_EXISTS && i < TRIES; i++) {
        err = make(engine, shard, key, walk, pin);
    }
    if (err == ERR_NOT_FOUND) {
        return 0; /* there are none */
    }
    return err == ERR_EXISTS ? ERR_NO_MEMORY : err;
}

void
engine_unpin(struct engine *engine, struct sorted_pin *pin)
{
    if (pin->array != NULL) {
        sorted__leave(&engine->pool, (struct sorted_array *)pin->array);
    }
    *pin = (struct sorted_pin){NULL, 0};
}

/* ---- life ---- */

void
engine_sorted_figures(const struct engine *engine, struct sorted_figures *out)
{
    const struct sorted_state *state = &engine->sorted;
    *out = (struct sorted_figures){.arrays = figure_of(&state->arrays),
        .bytes = figure_of(&state->bytes),
        .limit_bytes = state->limit_bytes,
        .made = figure_of(&state->made),
        .dropped = figure_of(&state->dropped)};
}

static size_t
tables_bytes(const struct engine *engine)
{
    return engine->n_shards * sizeof engine->sorted.table[0];
}

int
sorted__init(struct engine *engine, uint64_t hot_bytes)
{
    struct sorted_state *state = &engine->sorted;
    uint64_t n = hot_bytes / LIMIT_SHARE / engine->n_shards / ENTRY_BYTES;
    state->limit_bytes = hot_bytes / LIMIT_SHARE;
    state->n_buckets = BUCKETS_MIN;
    while (state->n_buckets < n && state->n_buckets < BUCKETS_MAX) {
        state->n_buckets *= 2;
    }
    state->table = alloc_zeroed(engine->alloc, tables_bytes(engine));
    return state->table == NULL ? ERR_NO_MEMORY : 0;
}

void
sorted__fini(struct engine *engine)
{
    for (unsigned i = 0; i < engine->n_shards; i++) {
        struct sorted_table *table = table_of(engine, i);
        for (uint32_t k = 0; table != NULL && k < engine->sorted.n_buckets;
             k++) {
            while (next_of(&table->bucket[k]) != NULL) {
                take_out(engine, table, &table->bucket[k]);
            }
        }
        if (table != NULL) {
            ASSERT(table->n == 0);
            pool_give_block(&engine->pool, table, table_bytes(engine));
        }
    }
    ASSERT(figure_of(&engine->sorted.bytes) == 0);
    alloc_free(engine->alloc, engine->sorted.table, tables_bytes(engine));
}

void
sorted__verify(struct engine *engine, unsigned shard)
{
    struct sorted_table *table = table_of(engine, shard);
    uint32_t n = 0;
    lock_assert_held(&engine->shard[shard].lock);
    for (uint32_t i = 0; table != NULL && i < engine->sorted.n_buckets; i++) {
        for (struct sorted *entry = next_of(&table->bucket[i]); entry != NULL;
             entry = next_of(&entry->next)) {
            if (array_of(entry) != NULL) {
                sorted__verify_array(array_of(entry));
            }
            n++;
        }
    }
    ASSERT(table == NULL || n == table->n);
}
