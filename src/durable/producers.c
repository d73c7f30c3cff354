/* SPDX-License-Identifier: BSD-3-Clause */
/* Producers: the registry of names, and the windows behind the engine's marks.
 *
 * A worker asks for the producer of a name (producers_find), and the change
 * carries slot and serial. Under the shard's lock the engine looks whether the
 * number was seen, makes the change, marks the number and tells the sink, so
 * the entry of the number and those of the cells are one append and with that
 * in one batch. The entry that makes a producer was appended before.
 *
 * Marks only add up: to add a number again, or in another order, makes no
 * difference. So a manifest needs no exact moment. What it must have is all
 * numbers of batches that replay does not read any more, for which any moment
 * after the new log file began will do; and what it has beyond must be as
 * durable as itself: each shard is looked at under its lock, so all that is
 * marked has been told to the log, and the log is synced past that before the
 * manifest is written. Else a number could outlive the change that it stands
 * for, and a retry would be taken for a repeat.
 *
 * A dropped producer leaves a tombstone in each window of its slot: the serial
 * that the next producer gets, and no number. A change that found the producer
 * before it was dropped meets that under the shard's lock. A later producer in
 * that slot has that serial, or a higher one, which makes the window new. So
 * which serial comes next follows from the entries of producers that were made,
 * and is the same in all copies, started anew or not. The log is
 * told of the drop before the first window goes: a manifest that finds windows
 * empty is not written before the drop is durable, so no producer comes back
 * without its numbers. A number that comes behind the drop in the log is
 * nobody's.
 *
 * Numbers that were seen elsewhere are joined with every shard, since shards
 * are not the same there. The registry's lock is held from before the log is
 * told until the last shard has them: else a list that was begun between the
 * two, behind a new log file, could have neither. */
#include "durable/producers.h"

#include "base/assert.h"
#include "base/checksum.h"
#include "base/err.h"
#include "base/log.h"
#include "durable/durable.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIGURE_BYTES = 24, STAT_BYTES = PRODUCER_NAME_MAX + 16 };

static struct producers_mark *
mark_of(struct producers *producers, uint32_t slot, unsigned shard)
{
    ASSERT(slot < producers->n_slots && shard < producers->n_shards);
    ASSERT(producers->slot[slot].mark != NULL);
    return &producers->slot[slot].mark[shard];
}

static enum engine_mark
look(struct engine_marks *marks, unsigned shard, const struct change *change)
{
    struct producers *producers = (struct producers *)marks;
    const struct producers_mark *mark =
        mark_of(producers, change->producer_slot, shard);
    if (mark->serial != change->producer) {
        return mark->serial < change->producer ? ENGINE_MARK_NEW
                                               : ENGINE_MARK_GONE;
    }
    switch (seen_look(&mark->seen, change->number)) {
    case SEEN_NEW:
        return ENGINE_MARK_NEW;
    case SEEN_BEFORE:
        return ENGINE_MARK_SEEN;
    case SEEN_BELOW:
        break;
    }
    return ENGINE_MARK_BELOW;
}

/* The mark is of that producer from now on, if it was not. */
static void
own(struct producers_mark *mark, uint32_t serial)
{
    ASSERT(mark->serial <= serial); /* else it would be another one's */
    if (mark->serial < serial) {
        *mark = (struct producers_mark){.serial = serial};
    }
}

static void
add_number(struct producers_mark *mark, uint32_t serial, uint64_t number)
{
    own(mark, serial);
    seen_add(&mark->seen, number);
}

static void
mark(struct engine_marks *marks, unsigned shard, const struct change *change)
{
    struct producers *producers = (struct producers *)marks;
    add_number(mark_of(producers, change->producer_slot, shard),
        change->producer, change->number);
}

/* ---- the registry; its lock is held, but for that of producers_init ---- */

static uint32_t
hash_name(const char *name, size_t len)
{
    return (uint32_t)checksum64(name, len, 0);
}

static uint32_t
hash_serial(uint32_t serial)
{
    return serial;
}

static void
put_index(
    struct producers *producers, uint32_t *index, uint32_t hash, uint32_t slot)
{
    uint32_t at = hash & producers->index_mask;
    ASSERT(slot < producers->n_slots);
    while (index[at] != 0) {
        at = (at + 1) & producers->index_mask;
    }
    index[at] = slot + 1;
}

static void
index_slot(struct producers *producers, uint32_t i)
{
    const struct producers_slot *slot = &producers->slot[i];
    put_index(producers, producers->by_name,
        hash_name(slot->name.text, slot->name.len), i);
    put_index(producers, producers->by_serial, hash_serial(slot->serial), i);
}

/* Makes both indexes anew: producers go seldom. */
static void
fill_indexes(struct producers *producers)
{
    size_t bytes =
        ((size_t)producers->index_mask + 1) * sizeof *producers->by_name;
    memset(producers->by_name, 0, bytes);
    memset(producers->by_serial, 0, bytes);
    for (uint32_t i = 0; i < producers->n_slots; i++) {
        if (producers->slot[i].serial != 0) {
            index_slot(producers, i);
        }
    }
}

/* The slot of a name, or NULL. */
static struct producers_slot *
find_name(struct producers *producers, const char *name, size_t len)
{
    mutex_assert_held(&producers->lock);
    uint32_t at = hash_name(name, len) & producers->index_mask;
    for (; producers->by_name[at] != 0;
         at = (at + 1) & producers->index_mask) {
        struct producers_slot *slot =
            &producers->slot[producers->by_name[at] - 1];
        if (producer_name_is(&slot->name, name, len)) {
            return slot;
        }
    }
    return NULL;
}

static struct producers_slot *
find_serial(const struct producers *producers, uint32_t serial)
{
    uint32_t at = hash_serial(serial) & producers->index_mask;
    for (; producers->by_serial[at] != 0;
         at = (at + 1) & producers->index_mask) {
        struct producers_slot *slot =
            &producers->slot[producers->by_serial[at] - 1];
        if (slot->serial == serial) {
            return slot;
        }
    }
    return NULL;
}

/* Room for n slots. */
static int
reserve(struct producers *producers, uint32_t n)
{
    uint32_t n_index = 2;
    while (n_index < 2 * n) {
        n_index *= 2;
    }
    struct producers_slot *slot = calloc(n, sizeof *slot);
    uint32_t *by_name = calloc(n_index, sizeof *by_name);
    uint32_t *by_serial = calloc(n_index, sizeof *by_serial);
    if (slot == NULL || by_name == NULL || by_serial == NULL) {
        free(slot);
        free(by_name);
        free(by_serial);
        return ERR_NO_MEMORY;
    }
    if (producers->n_slots > 0) {
        memcpy(slot, producers->slot, producers->n_slots * sizeof *slot);
    }
    free(producers->slot);
    free(producers->by_name);
    free(producers->by_serial);
    producers->slot = slot;
    producers->n_slots = n;
    producers->by_name = by_name;
    producers->by_serial = by_serial;
    producers->index_mask = n_index - 1;
    fill_indexes(producers);
    return 0;
}

/* A slot that is nobody's, with its windows; NULL: memory is out. There is
 * one. */
static struct producers_slot *
free_slot(struct producers *producers)
{
    uint32_t i = 0;
    mutex_assert_held(&producers->lock);
    while (producers->slot[i].serial != 0) {
        i++;
        ASSERT(i < producers->n_slots);
    }
    struct producers_slot *slot = &producers->slot[i];
    if (slot->mark == NULL) {
        slot->mark = calloc(producers->n_shards, sizeof *slot->mark);
    }
    return slot->mark == NULL ? NULL : slot;
}

static void
take_slot(struct producers *producers, struct producers_slot *slot,
    uint32_t serial, const struct producer_name *name)
{
    mutex_assert_held(&producers->lock);
    ASSERT(slot->serial == 0 && slot->mark != NULL && serial != 0);
    ASSERT(producers->n < producers->n_slots);
    slot->serial = serial;
    slot->name = *name;
    producers->n++;
    if (serial > producers->last_serial) {
        producers->last_serial = serial;
    }
    index_slot(producers, (uint32_t)(slot - producers->slot));
}

static void
give_slot(struct producers *producers, struct producers_slot *slot)
{
    mutex_assert_held(&producers->lock);
    ASSERT(slot->serial != 0 && producers->n > 0);
    ASSERT(slot->serial <= producers->last_serial);
    slot->serial = 0;
    slot->name.len = 0;
    producers->n--;
    fill_indexes(producers);
}

/* A producer that nobody knows yet. The last serials are kept for those that
 * are dropped. */
static int
make(struct producers *producers, const char *text, size_t len,
    struct producers_slot **out)
{
    struct producer_name name;
    mutex_assert_held(&producers->lock);
    bool is_right = producer_name_set(&name, text, len);
    ASSERT(is_right);
    if (producers->n >= producers->n_max ||
        producers->last_serial >= UINT32_MAX - 2 * PRODUCERS_MAX) {
        return ERR_MANY_PRODUCERS;
    }
    struct producers_slot *slot = free_slot(producers);
    if (slot == NULL) {
        return ERR_NO_MEMORY;
    }
    take_slot(producers, slot, producers->last_serial + 1, &name);
    if (producers->durable != NULL) {
        (void)durable__log_producer(
            producers->durable, slot->serial, &slot->name);
    }
    *out = slot;
    return 0;
}

int
producers_init(struct producers *producers, unsigned n_shards, uint32_t n_max,
    struct durable *durable)
{
    ASSERT(n_max >= 1 && n_max <= PRODUCERS_MAX);
    *producers =
        (struct producers){.marks = {.look_fn = look, .mark_fn = mark},
            .n_shards = n_shards,
            .n_max = n_max,
            .durable = durable};
    int err = reserve(producers, n_max);
    if (err == 0) {
        mutex_init(&producers->lock);
    }
    return err;
}

void
producers_fini(struct producers *producers)
{
    for (uint32_t i = 0; i < producers->n_slots; i++) {
        free(producers->slot[i].mark);
    }
    free(producers->slot);
    free(producers->by_name);
    free(producers->by_serial);
    mutex_fini(&producers->lock);
}

int
producers_find(struct producers *producers, const char *name, size_t len,
    struct store_producer *out)
{
    int err = 0;
    mutex_lock(&producers->lock);
    struct producers_slot *slot = find_name(producers, name, len);
    if (slot == NULL) {
        err = make(producers, name, len, &slot);
    }
    if (err == 0) {
        out->slot = (uint16_t)(slot - producers->slot);
        out->serial = slot->serial;
    }
    mutex_unlock(&producers->lock);
    return err;
}

/* ---- numbers of elsewhere ---- */

struct joining {
    struct producers_slot *slot;
    const struct seen_window *seen;
};

static void
join_mark(const struct joining *it, unsigned shard)
{
    struct producers_mark *mark = &it->slot->mark[shard];
    own(mark, it->slot->serial);
    seen_join(&mark->seen, it->seen);
}

static void
join_shard(void *context, unsigned shard)
{
    join_mark(context, shard);
}

/* All shards, under the registry's lock: so who lists them finds it done in
 * all, or told to the log later than the list was begun. */
static void
join_all(struct producers *producers, struct engine *engine,
    struct joining *joining)
{
    mutex_assert_held(&producers->lock);
    ASSERT(joining->slot->serial != 0 && joining->slot->mark != NULL);
    for (unsigned shard = 0; shard < producers->n_shards; shard++) {
        engine_hold(engine, shard, join_shard, joining);
    }
}

int
producers_join(struct producers *producers, struct engine *engine,
    const struct producer_name *name, const struct seen_window *seen,
    uint64_t *seq)
{
    int err = 0;
    ASSERT(seen_is_sound(seen));
    *seq = 0;
    mutex_lock(&producers->lock);
    struct joining joining = {
        find_name(producers, name->text, name->len), seen};
    if (joining.slot == NULL) {
        err = make(producers, name->text, name->len, &joining.slot);
    }
    if (err == 0) {
        if (producers->durable != NULL) {
            *seq = durable__log_producer_joined(
                producers->durable, joining.slot->serial, seen);
        }
        join_all(producers, engine, &joining);
    }
    mutex_unlock(&producers->lock);
    return err;
}

/* Producers whose windows are gathered, by slot. */
struct gathering {
    struct producers *producers;
    uint32_t n;
    struct {
        uint32_t slot, serial;
    } place[PRODUCERS_JOINED_MAX];
    struct store_window *window; /* n */
};

static void
gather_shard(void *context, unsigned shard)
{
    struct gathering *it = context;
    for (uint32_t i = 0; i < it->n; i++) {
        const struct producers_mark *mark =
            mark_of(it->producers, it->place[i].slot, shard);
        if (mark->serial == it->place[i].serial) {
            seen_join(&it->window[i].seen, &mark->seen);
        }
    }
}

static void
take_next(struct gathering *it, uint32_t *at, uint32_t n)
{
    struct producers *producers = it->producers;
    mutex_lock(&producers->lock);
    for (; it->n < n && *at < producers->n_slots; (*at)++) {
        const struct producers_slot *slot = &producers->slot[*at];
        if (slot->serial != 0) {
            it->window[it->n] = (struct store_window){.name = slot->name};
            it->place[it->n].slot = *at;
            it->place[it->n++].serial = slot->serial;
        }
    }
    if (*at == producers->n_slots) {
        *at = UINT32_MAX;
    }
    mutex_unlock(&producers->lock);
}

uint32_t
producers_joined(struct producers *producers, struct engine *engine,
    uint32_t *at, struct store_window *out, uint32_t n)
{
    uint32_t n_seen = 0;
    struct gathering it = {.producers = producers, .window = out};
    ASSERT(n > 0 && n <= PRODUCERS_JOINED_MAX);
    take_next(&it, at, n);
    for (unsigned shard = 0; it.n > 0 && shard < producers->n_shards;
         shard++) {
        engine_hold(engine, shard, gather_shard, &it);
    }
    for (uint32_t i = 0; i < it.n; i++) {
        if (!seen_is_empty(&out[i].seen)) {
            out[n_seen++] = out[i];
        }
    }
    return n_seen;
}

struct tombstone {
    struct producers_slot *slot;
    uint32_t serial;
};

static void
bury(void *context, unsigned shard)
{
    const struct tombstone *tombstone = context;
    tombstone->slot->mark[shard] =
        (struct producers_mark){.serial = tombstone->serial};
}

/* Forgets the producer of a slot with all its numbers. */
static void
drop_slot(struct producers *producers, struct engine *engine,
    struct producers_slot *slot)
{
    mutex_assert_held(&producers->lock);
    struct tombstone tombstone = {slot, producers->last_serial + 1};
    for (unsigned shard = 0; shard < producers->n_shards; shard++) {
        engine_hold(engine, shard, bury, &tombstone);
    }
    give_slot(producers, slot);
}

int
producers_drop(struct producers *producers, struct engine *engine,
    const struct producer_name *name, uint64_t *seq)
{
    int err = ERR_NO_PRODUCER;
    *seq = 0;
    mutex_lock(&producers->lock);
    struct producers_slot *slot = find_name(producers, name->text, name->len);
    if (slot != NULL) {
        if (producers->durable != NULL) {
            *seq = durable__log_producer_dropped(
                producers->durable, slot->serial);
        }
        drop_slot(producers, engine, slot);
        err = 0;
    }
    mutex_unlock(&producers->lock);
    return err;
}

/* ---- all of them ---- */

/* A producer as it is looked for in the shards. */
struct place {
    uint32_t slot, serial;
    struct producer_name name;
};

static int
by_serial(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    return x->serial < y->serial ? -1 : x->serial > y->serial;
}

/* All there are, by serial; *place is the caller's, NULL where there is none.
 */
static int
take_places(struct producers *producers, struct place **place, uint32_t *n,
    uint32_t *last_serial)
{
    int err = 0;
    *n = 0;
    *place = NULL;
    mutex_lock(&producers->lock);
    *last_serial = producers->last_serial;
    if (producers->n > 0) {
        *place = calloc(producers->n, sizeof **place);
        err = *place == NULL ? ERR_NO_MEMORY : 0;
    }
    for (uint32_t i = 0; *place != NULL && i < producers->n_slots; i++) {
        const struct producers_slot *slot = &producers->slot[i];
        if (slot->serial != 0) {
            (*place)[(*n)++] = (struct place){i, slot->serial, slot->name};
        }
    }
    ASSERT(*place == NULL || *n == producers->n);
    mutex_unlock(&producers->lock);
    if (*n > 0) {
        qsort(*place, *n, sizeof **place, by_serial);
    }
    return err;
}

struct copying {
    struct producers *producers;
    const struct engine *engine;
    const struct place *place;
    uint32_t n;
    struct producers_window *window; /* n, filled from the first on */
    uint32_t n_windows;
};

/* Takes no longer than it takes to copy them: changes of the shard wait. */
static void
copy_shard(void *context, unsigned shard)
{
    struct copying *copying = context;
    engine_assert_held(copying->engine, shard);
    copying->n_windows = 0;
    for (uint32_t i = 0; i < copying->n; i++) {
        const struct place *place = &copying->place[i];
        const struct producers_mark *mark =
            mark_of(copying->producers, place->slot, shard);
        if (mark->serial == place->serial && !seen_is_empty(&mark->seen)) {
            ASSERT(copying->n_windows < copying->n);
            copying->window[copying->n_windows++] =
                (struct producers_window){i, (uint16_t)shard, mark->seen};
        }
    }
}

static int
add_windows(struct producers_list *out, const struct copying *copying)
{
    size_t n = out->n_windows + (size_t)copying->n_windows;
    if (copying->n_windows == 0) {
        return 0;
    }
    struct producers_window *more = realloc(out->window, n * sizeof *more);
    if (more == NULL) {
        return ERR_NO_MEMORY;
    }
    memcpy(more + out->n_windows, copying->window,
        copying->n_windows * sizeof *more);
    out->window = more;
    out->n_windows = (uint32_t)n;
    return 0;
}

static int
by_producer(const void *a, const void *b)
{
    const struct producers_window *x = a, *y = b;
    if (x->producer != y->producer) {
        return x->producer < y->producer ? -1 : 1;
    }
    return x->shard < y->shard ? -1 : x->shard > y->shard;
}

static int
copy_all(struct producers *producers, struct engine *engine,
    struct copying *copying, struct producers_list *out)
{
    int err = 0;
    for (unsigned shard = 0; err == 0 && shard < producers->n_shards;
         shard++) {
        engine_hold(engine, shard, copy_shard, copying);
        err = add_windows(out, copying);
    }
    if (err == 0 && out->n_windows > 0) {
        qsort(out->window, out->n_windows, sizeof *out->window, by_producer);
    }
    return err;
}

void
producers_each(struct producers *producers,
    void (*fn)(
        void *context, uint32_t serial, const struct producer_name *name),
    void *context)
{
    mutex_lock(&producers->lock);
    for (uint32_t i = 0; i < producers->n_slots; i++) {
        const struct producers_slot *slot = &producers->slot[i];
        if (slot->serial != 0) {
            fn(context, slot->serial, &slot->name);
        }
    }
    mutex_unlock(&producers->lock);
}

int
producers__list(struct producers *producers, struct engine *engine,
    struct producers_list *out)
{
    struct place *place;
    struct copying copying = {.producers = producers, .engine = engine};
    int err = take_places(producers, &place, &copying.n, &out->last_serial);
    if (err != 0 || copying.n == 0) {
        return err;
    }
    copying.place = place;
    copying.window = calloc(copying.n, sizeof *copying.window);
    out->one = calloc(copying.n, sizeof *out->one);
    if (copying.window == NULL || out->one == NULL) {
        err = ERR_NO_MEMORY;
    } else {
        for (uint32_t i = 0; i < copying.n; i++) {
            out->one[i] =
                (struct producers_one){place[i].serial, place[i].name};
        }
        out->n = copying.n;
        err = copy_all(producers, engine, &copying, out);
    }
    free(copying.window);
    free(place);
    return err;
}

/* What `stats producers` says of one. */
struct figure {
    uint64_t high;
    uint32_t n_shards;
};

struct figures {
    struct producers *producers;
    const struct place *place;
    uint32_t n;
    struct figure *figure; /* n */
};

static void
add_figures(void *context, unsigned shard)
{
    struct figures *figures = context;
    for (uint32_t i = 0; i < figures->n; i++) {
        const struct place *place = &figures->place[i];
        const struct producers_mark *mark =
            mark_of(figures->producers, place->slot, shard);
        struct figure *figure = &figures->figure[i];
        if (mark->serial == place->serial && !seen_is_empty(&mark->seen)) {
            figure->high = mark->seen.high > figure->high ? mark->seen.high
                                                          : figure->high;
            figure->n_shards++;
        }
    }
}

static void
say(void (*stat_fn)(void *context, const char *name, const char *value),
    void *context, const char *name, uint64_t value)
{
    char text[FIGURE_BYTES];
    (void)snprintf(text, sizeof text, "%" PRIu64, value);
    stat_fn(context, name, text);
}

static void
say_figures(const struct figures *figures,
    void (*stat_fn)(void *context, const char *name, const char *value),
    void *context)
{
    char name[STAT_BYTES];
    for (uint32_t i = 0; i < figures->n; i++) {
        const struct producer_name *it = &figures->place[i].name;
        const struct figure *figure = &figures->figure[i];
        (void)snprintf(name, sizeof name, "%.*s:highest", it->len, it->text);
        say(stat_fn, context, name, figure->high);
        (void)snprintf(name, sizeof name, "%.*s:shards", it->len, it->text);
        say(stat_fn, context, name, figure->n_shards);
    }
}

void
producers_each_stat(struct producers *producers, struct engine *engine,
    void (*stat_fn)(void *context, const char *name, const char *value),
    void *context)
{
    struct figures figures = {.producers = producers};
    struct place *place;
    uint32_t n, last_serial;
    (void)take_places(producers, &place, &n, &last_serial);
    figures.place = place;
    figures.n = n < PRODUCERS_STATS_MAX ? n : PRODUCERS_STATS_MAX;
    figures.figure = calloc(n == 0 ? 1 : n, sizeof *figures.figure);
    if (figures.figure == NULL) {
        figures.n = 0;
    }
    for (unsigned shard = 0; figures.n > 0 && shard < producers->n_shards;
         shard++) {
        engine_hold(engine, shard, add_figures, &figures);
    }
    say(stat_fn, context, "producers", n);
    say(stat_fn, context, "producers_max", producers->n_max);
    say(stat_fn, context, "producers_bytes",
        (uint64_t)n * producers->n_shards * sizeof(struct producers_mark));
    say(stat_fn, context, "producers_not_shown", n - figures.n);
    say_figures(&figures, stat_fn, context);
    free(figures.figure);
    free(place);
}

/* ---- loading ---- */

/* A slot for one more, beyond n_max, too: none is forgotten. */
static int
load_one(struct producers *producers, uint32_t serial,
    const struct producer_name *name)
{
    mutex_assert_held(&producers->lock);
    int err = producers->n < producers->n_slots
        ? 0
        : reserve(producers, 2 * producers->n_slots);
    struct producers_slot *slot = err == 0 ? free_slot(producers) : NULL;
    if (slot == NULL) {
        return ERR_NO_MEMORY;
    }
    take_slot(producers, slot, serial, name);
    return 0;
}

int
producers__load(struct producers *producers, const struct producers_list *list)
{
    int err = 0;
    mutex_lock(&producers->lock);
    for (uint32_t i = 0; err == 0 && i < list->n; i++) {
        err = load_one(producers, list->one[i].serial, &list->one[i].name);
    }
    for (uint32_t i = 0; err == 0 && i < list->n_windows; i++) {
        const struct producers_window *window = &list->window[i];
        uint32_t serial = list->one[window->producer].serial;
        struct producers_slot *slot = find_serial(producers, serial);
        ASSERT(window->shard < producers->n_shards);
        ASSERT(slot != NULL && slot->mark != NULL);
        slot->mark[window->shard] =
            (struct producers_mark){serial, window->seen};
    }
    producers->last_serial = list->last_serial;
    mutex_unlock(&producers->lock);
    return err;
}

/* There are never so many at a time: ends of some are lost, and most likely of
 * those that are the oldest. */
static void
drop_oldest(struct producers *producers)
{
    struct producers_slot *oldest = NULL;
    mutex_assert_held(&producers->lock);
    for (uint32_t i = 0; i < producers->n_slots; i++) {
        struct producers_slot *slot = &producers->slot[i];
        if (slot->serial != 0 &&
            (oldest == NULL || slot->serial < oldest->serial)) {
            oldest = slot;
        }
    }
    ASSERT(oldest != NULL);
    if (producers->durable != NULL) {
        log_line(producers->durable->config.logger, LOG_WARNING,
            "the log has more producers than there can be: %.*s, the oldest "
            "one, is dropped; retries of its changes may count twice",
            oldest->name.len, oldest->name.text);
    }
    give_slot(producers, oldest);
}

int
producers__replay_made(struct producers *producers, uint32_t serial,
    const struct producer_name *name)
{
    int err = 0;
    mutex_lock(&producers->lock);
    if (serial > producers->last_serial) { /* else the manifest knew of it */
        struct producers_slot *older =
            find_name(producers, name->text, name->len);
        if (older != NULL) { /* its end was in a batch that is lost */
            give_slot(producers, older);
        }
        if (producers->n >= PRODUCERS_MAX) {
            drop_oldest(producers);
        }
        err = load_one(producers, serial, name);
    }
    mutex_unlock(&producers->lock);
    return err;
}

/* The log has a producer that nobody knows any more: its serial was given out.
 */
static void
note_serial(struct producers *producers, uint32_t serial)
{
    mutex_assert_held(&producers->lock);
    if (serial > producers->last_serial) {
        producers->last_serial = serial;
    }
}

void
producers__replay_dropped(struct producers *producers, uint32_t serial)
{
    mutex_lock(&producers->lock);
    note_serial(producers, serial);
    struct producers_slot *slot = find_serial(producers, serial);
    if (slot != NULL) {
        give_slot(producers, slot);
    }
    mutex_unlock(&producers->lock);
}

int
producers__replay_number(struct producers *producers, uint32_t serial,
    uint16_t shard, uint64_t number)
{
    struct producers_slot *slot = find_serial(producers, serial);
    if (shard >= producers->n_shards) {
        return ERR_CORRUPT;
    }
    if (slot != NULL) {
        add_number(&slot->mark[shard], serial, number);
    } else {
        mutex_lock(&producers->lock);
        note_serial(producers, serial);
        mutex_unlock(&producers->lock);
    }
    return 0;
}

void
producers__replay_joined(struct producers *producers, uint32_t serial,
    const struct seen_window *seen)
{
    mutex_lock(&producers->lock);
    struct joining joining = {find_serial(producers, serial), seen};
    if (joining.slot == NULL) {
        note_serial(producers, serial);
    }
    for (unsigned shard = 0;
         joining.slot != NULL && shard < producers->n_shards; shard++) {
        join_mark(&joining, shard);
    }
    mutex_unlock(&producers->lock);
}

/* ---- applying ---- */

int
producers_apply_made(struct producers *producers, struct engine *engine,
    uint32_t serial, const struct producer_name *name)
{
    int err = 0;
    mutex_lock(&producers->lock);
    if (serial > producers->last_serial) { /* else it has been */
        struct producers_slot *older =
            find_name(producers, name->text, name->len);
        if (older != NULL) { /* a salvage has lost its end */
            drop_slot(producers, engine, older);
        }
        bool has_slot = producers->n < producers->n_slots;
        struct producers_slot *slot = has_slot ? free_slot(producers) : NULL;
        if (slot != NULL) {
            take_slot(producers, slot, serial, name);
        } else {
            err = has_slot ? ERR_NO_MEMORY : ERR_MANY_PRODUCERS;
        }
    }
    mutex_unlock(&producers->lock);
    return err;
}

void
producers_apply_dropped(
    struct producers *producers, struct engine *engine, uint32_t serial)
{
    mutex_lock(&producers->lock);
    note_serial(producers, serial);
    struct producers_slot *slot = find_serial(producers, serial);
    if (slot != NULL) {
        drop_slot(producers, engine, slot);
    }
    mutex_unlock(&producers->lock);
}

struct applied_number {
    struct producers_slot *slot;
    uint32_t serial;
    uint64_t number;
};

static void
apply_number(void *context, unsigned shard)
{
    const struct applied_number *it = context;
    add_number(&it->slot->mark[shard], it->serial, it->number);
}

int
producers_apply_number(struct producers *producers, struct engine *engine,
    uint32_t serial, uint16_t shard, uint64_t number)
{
    if (shard >= producers->n_shards) {
        return ERR_CORRUPT;
    }
    mutex_lock(&producers->lock);
    struct applied_number it = {
        find_serial(producers, serial), serial, number};
    if (it.slot != NULL) {
        engine_hold(engine, shard, apply_number, &it);
    } else {
        note_serial(producers, serial);
    }
    mutex_unlock(&producers->lock);
    return 0;
}

void
producers_apply_joined(struct producers *producers, struct engine *engine,
    uint32_t serial, const struct seen_window *seen)
{
    mutex_lock(&producers->lock);
    struct joining joining = {find_serial(producers, serial), seen};
    if (joining.slot != NULL) {
        join_all(producers, engine, &joining);
    } else {
        note_serial(producers, serial);
    }
    mutex_unlock(&producers->lock);
}
