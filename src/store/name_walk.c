/* SPDX-License-Identifier: BSD-3-Clause */
/* A pass goes through the names of all shards. What has no record in any
 * counter whose ids are names, as a look without a lock says, is looked at
 * again under the shard's lock, where no change of it is under way, and taken
 * out if that is still so. A change that has looked the name up before looks
 * again under the lock (engine/naming.h); who reads has its number until it is
 * quiescent.
 *
 * A name stays while its row is in a segment, which may have a record, and
 * while there is a dump, which shows names behind the records that it has
 * copied. A dump that begins meanwhile copies a shard after the look at it, or
 * is seen. */
#include "store/name_walk.h"

#include "base/assert.h"
#include "call/store_calls.h"
#include "engine/marks.h"
#include "store/dumper.h"

#define MS_PER_S UINT64_C(1000)

/* Some ids of a shard. */
struct page {
    struct name_walk *walk;
    unsigned n;
    uint32_t number[NAME_WALK_PAGE];
    uint64_t id[NAME_WALK_PAGE];
    bool is_alive[NAME_WALK_PAGE];
};

void
name_walk_init(struct name_walk *walk, const struct name_walk_config *config)
{
    ASSERT(config->names != NULL && config->n_shards > 0);
    *walk = (struct name_walk){.magic = NAME_WALK_MAGIC, .config = *config};
    qsbr_register(config->qsbr, &walk->reader);
    qsbr_offline(&walk->reader);
}

void
name_walk_fini(struct name_walk *walk)
{
    ASSERT(walk->magic == NAME_WALK_MAGIC);
    qsbr_unregister(walk->config.qsbr, &walk->reader);
    walk->magic = 0;
}

/* Marks the ids that have a record of the counter. */
static void
look_in(struct page *page, const struct schema_counter *counter)
{
    struct cell_key key[SCHEMA_COLUMNS_MAX];
    uint64_t value[SCHEMA_COLUMNS_MAX];
    uint8_t state[SCHEMA_COLUMNS_MAX];
    unsigned n = counter->n_columns;
    for (unsigned i = 0; i < page->n; i++) {
        if (page->is_alive[i]) {
            continue;
        }
        for (unsigned c = 0; c < n; c++) {
            key[c] = (struct cell_key){.id = page->id[i],
                .serial = counter->column[c].serial,
                .counter = counter->slot,
                .column = counter->column[c].slot};
        }
        engine_get(page->walk->config.engine, key, n, value, state);
        for (unsigned c = 0; c < n && !page->is_alive[i]; c++) {
            page->is_alive[i] = state[c] != CELL_DEFAULT;
        }
    }
}

/* Marks the ids whose row in the counter is in a segment. */
static void
look_for_cover(
    struct page *page, const struct schema_counter *counter, unsigned shard)
{
    const struct engine_cover *cover = page->walk->config.cover;
    for (unsigned i = 0; cover != NULL && i < page->n; i++) {
        uint64_t row;
        unsigned of;
        engine_row(page->walk->config.engine, page->id[i], &of, &row);
        ASSERT(of == shard);
        if (!page->is_alive[i]) {
            page->is_alive[i] =
                cover->version_fn(cover, counter->slot, shard, row) != 0;
        }
    }
}

/* Marks the ids that have something left in some counter; shard < 0: without
 * the lock, and without a look at segments. */
static void
look(struct page *page, int shard)
{
    /* seq_cst: see store_schema. Under the lock of the shard it is as new as
     * that by which any record there has been made. */
    const struct schema *schema =
        atomic_load_explicit(page->walk->config.schema, memory_order_seq_cst);
    for (unsigned i = 0; i < page->n; i++) {
        page->is_alive[i] = false;
    }
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        const struct schema_counter *counter = schema_counter_at(schema, slot);
        if (counter == NULL || !counter->key_is_text) {
            continue;
        }
        look_in(page, counter);
        if (shard >= 0) {
            look_for_cover(page, counter, (unsigned)shard);
        }
    }
}

/* Under the lock of the shard. */
static void
drop(void *context, unsigned shard)
{
    struct page *page = context;
    struct name_walk *walk = page->walk;
    if (dumper_has_works(walk->config.dumper)) {
        return;
    }
    dict_collect(names_dict(walk->config.names, shard));
    look(page, (int)shard);
    for (unsigned i = 0; i < page->n; i++) {
        if (!page->is_alive[i] &&
            names_drop(walk->config.names, shard, page->number[i])) {
            /* release: see struct store; the number rests still */
            atomic_fetch_add_explicit(
                walk->config.dropped, 1, memory_order_release);
        }
    }
}

/* Takes those of a page out that have nothing left. */
static void
work_on(struct page *page)
{
    struct name_walk *walk = page->walk;
    unsigned n = 0;
    look(page, -1);
    for (unsigned i = 0; i < page->n; i++) {
        if (!page->is_alive[i]) {
            page->id[n] = page->id[i];
            page->number[n++] = page->number[i];
        }
    }
    page->n = n;
    if (n > 0) {
        engine_hold(walk->config.engine, walk->shard, drop, page);
    }
}

/* The next names of the walk's shard; none: it is through with it. */
static void
fill(struct page *page)
{
    struct name_walk *walk = page->walk;
    page->n = 0;
    while (page->n < NAME_WALK_PAGE &&
        names_next(walk->config.names, walk->shard, &walk->number,
            &page->id[page->n])) {
        page->number[page->n++] = walk->number++;
    }
}

/* True where a pass is under way, or is to begin. */
static bool
is_time(struct name_walk *walk, uint64_t now_ms)
{
    if (walk->is_in_pass) {
        return true;
    }
    if (!walk->pauses) {
        walk->pauses = true;
        walk->paused_ms = now_ms;
    }
    if (now_ms - walk->paused_ms < STORE_NAMES_PAUSE_S * MS_PER_S) {
        return false;
    }
    walk->is_in_pass = true;
    walk->shard = 0;
    walk->number = 0;
    /* release: who sees a name gone sees that a round has begun */
    atomic_fetch_add_explicit(walk->config.rounds, 1, memory_order_release);
    return true;
}

static void
walk_on(struct name_walk *walk, uint64_t now_ms)
{
    struct page page = {.walk = walk};
    for (unsigned n = 0; n < NAME_WALK_STEP; n += NAME_WALK_PAGE) {
        fill(&page);
        if (page.n > 0) {
            work_on(&page);
            /* what rests need not wait for this thread */
            qsbr_online(walk->config.qsbr, &walk->reader);
            continue;
        }
        walk->number = 0;
        if (++walk->shard == walk->config.n_shards) {
            walk->is_in_pass = false;
            walk->paused_ms = now_ms;
            return;
        }
    }
}

/* Under the lock of the shard. */
static void
tend(void *context, unsigned shard)
{
    struct name_walk *walk = context;
    struct dict *dict = names_dict(walk->config.names, shard);
    dict_collect(dict);
    if (dict_wants_table(dict)) {
        (void)dict_learn(dict); /* without memory names stay as they are */
    }
}

void
name_walk_step(struct name_walk *walk, uint64_t now_ms, bool takes_out)
{
    ASSERT(walk->magic == NAME_WALK_MAGIC);
    walk->tended = (walk->tended + 1) % walk->config.n_shards;
    engine_hold(walk->config.engine, walk->tended, tend, walk);
    if (!takes_out ||
        (walk->config.wal != NULL && wal_fault(walk->config.wal) != 0)) {
        return;
    }
    qsbr_online(walk->config.qsbr, &walk->reader);
    if (is_time(walk, now_ms)) {
        walk_on(walk, now_ms);
    }
    qsbr_offline(&walk->reader);
}
