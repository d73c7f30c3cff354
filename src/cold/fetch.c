/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks ids up in segments, with a cache and a pool of threads. Rings:
 * fetch_ring.c.
 *
 *   fetch_begin: index -> cache -> queue -> thread: pread, check, cache
 *                  |        |                          -> answers, done_fn
 *                  no block  answer                        of all that wait
 *
 * The first lookup that misses a block stands for it: it is in the queue, until
 * a thread takes it, and in a table by key until the block has come. Lookups of
 * the same block that come meanwhile are put into its list. So nothing is
 * allocated for a lookup, and of one block there is one read at a time. A
 * thread gives the block to the cache first and only then takes the lookup out
 * of the table; a lookup that finds none there looks into the cache once more,
 * under the same lock. So a block that is in the cache is not read again.
 *
 * A call counts the lookups that it waits for, and one more while fetch_begin
 * is at it; whoever takes the last away answers. From then on the call and its
 * lookups are the caller's again, and the segments may be closed. So a thread
 * reads the next link before it counts a lookup, and logs what is wrong with a
 * block before it answers anybody.
 *
 * What can go wrong: the disk, or damage: the lookups of that block get the
 * error, nothing is kept, and the next lookup reads again. Where there is no
 * memory for the cache, the ids are looked for in the block as it was read. */
#include "cold/fetch.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/fold.h"
#include "cold/fetch_priv.h"

#include <inttypes.h>

enum {
    CALLED_AT_ONCE = 2,
    TELL_NS = 1000000000 /* one line of damage in that time */
};

struct fetch__reader {
    struct fetch__hand hand;
    pthread_t thread;
    uint8_t bytes[BLOCK_BYTES_MAX];
};

/* Says what is wrong with a segment, but not too often: a disk that fails does
 * so often. */
static void
log_fault(struct fetch *fetch, const struct segment *segment,
    const struct segment_fault *fault)
{
    uint64_t now = clock_now_ns(fetch->config.clock);
    uint64_t untold;
    bool is_due;

    fetch__lock(fetch);
    is_due = fetch->told_ns == 0 || now - fetch->told_ns >= TELL_NS;
    untold = is_due ? fetch->untold : 0;
    if (is_due) {
        fetch->told_ns = now;
        fetch->untold = 0;
    } else {
        fetch->untold++;
    }
    fetch__unlock(fetch);
    if (untold > 0 && fetch->config.logger != NULL) {
        log_line(fetch->config.logger, LOG_ERROR,
            "%" PRIu64 " more reads of segments failed since the last line",
            untold);
    }
    if (is_due) {
        segment__log_fault(segment, fault);
    }
}

/* Looks into a block that passed its checks before; that it does not hold
 * together shows only now and then. */
static void
look(struct fetch *fetch, struct fetch_lookup *lookup, const struct warm *warm,
    const struct block *block, struct block_room *room)
{
    lookup->err = warm != NULL
        ? warm_find(
              warm, lookup->id, lookup->columns, lookup->code, &lookup->found)
        : block_find(block, room, lookup->id, lookup->code, &lookup->found);
    if (lookup->err == ERR_CORRUPT) {
        struct segment_fault fault = {
            .at = segment_block_at(lookup->key.block),
            .what = "the block is damaged"};

        log_fault(fetch, lookup->segment, &fault);
        fetch_count_fault(fetch, ERR_CORRUPT);
    }
}

/* No record, or an error. */
static void
set_none(struct fetch_lookup *lookup, int err)
{
    lookup->err = err;
    lookup->found = false;
}

/* Counts n lookups of the call as answered; true where they were the last. */
static bool
count_down(struct fetch_call *call, size_t n)
{
    /* release: the answers come before; acquire: the last one sees those of
     * all others */
    size_t left =
        atomic_fetch_sub_explicit(&call->n_waiting, n, memory_order_acq_rel);
    ASSERT(left >= n);
    return left == n;
}

/* Blocks that are waited for. */

static struct fetch_lookup **
find(struct fetch *fetch, struct cache_key key)
{
    uint64_t hash = fold_id(key.segment + ((uint64_t)key.block << 32));
    struct fetch_lookup **at = &fetch->bucket[hash & (FETCH__BUCKETS - 1)];

    mutex_assert_held(&fetch->lock);
    while (*at != NULL &&
        ((*at)->key.segment != key.segment || (*at)->key.block != key.block)) {
        at = &(*at)->beside;
    }
    return at;
}

void
fetch__enqueue(struct fetch *fetch, struct fetch_lookup *lookup)
{
    struct fetch_stats *stats = &fetch->stats;

    mutex_assert_held(&fetch->lock);
    ASSERT(lookup->magic == FETCH_LOOKUP_MAGIC);
    ASSERT((fetch->first == NULL) == (stats->queued == 0));
    lookup->behind = NULL;
    if (fetch->last != NULL) {
        fetch->last->behind = lookup;
    } else {
        fetch->first = lookup;
    }
    fetch->last = lookup;
    stats->queued++;
    if (stats->queued > stats->queued_max) {
        stats->queued_max = stats->queued;
    }
}

/* Has the block of the lookup read, by the ring if there is one with room. */
static void
stand_for(
    struct fetch *fetch, struct fetch_lookup *lookup, struct fetch_ring *ring)
{
    struct fetch_lookup **at = find(fetch, lookup->key);

    ASSERT(*at == NULL); /* of one block there is one read at a time */
    lookup->next = NULL;
    lookup->beside = NULL;
    *at = lookup;
    if (ring == NULL || !fetch__ring_add(ring, lookup)) {
        fetch__enqueue(fetch, lookup);
    }
}

/* Has a lookup whose block was not in the cache wait for it, or answers it
 * where there is nothing to wait for: true then. It may give the lock away for
 * a while. */
static bool
await(
    struct fetch *fetch, struct fetch_lookup *lookup, struct fetch_ring *ring)
{
    struct fetch_lookup *first;
    void *kept;

    mutex_assert_held(&fetch->lock);
    ASSERT(lookup->magic == FETCH_LOOKUP_MAGIC);
    if (fetch->is_stopping) {
        set_none(lookup, ERR_CLOSED);
        return true;
    }
    first = *find(fetch, lookup->key);
    if (first != NULL) {
        lookup->next = first->next;
        first->next = lookup;
        fetch->stats.joins++;
        return false;
    }
    kept = cache_pin(fetch->cache, lookup->key);
    if (kept == NULL) {
        stand_for(fetch, lookup, ring);
        return false;
    }
    /* relaxed: a figure */
    atomic_fetch_add_explicit(&fetch->hits, 1, memory_order_relaxed);
    fetch__unlock(fetch); /* it may have something to tell */
    look(fetch, lookup, kept, NULL, NULL);
    cache_unpin(fetch->cache, kept);
    fetch__lock(fetch);
    return true;
}

/* How many threads are to be called now that wait for more. Whoever adds to the
 * queue calls a few and not one a block; a thread that comes calls others
 * before it reads, so that they are twice as many each time; and nobody calls
 * while some are on their way. So calls in a row wake a thread once, not each
 * of them one. */
unsigned
fetch__count_calls(struct fetch *fetch)
{
    uint64_t n = fetch->called == 0 ? fetch->stats.queued : 0;

    mutex_assert_held(&fetch->lock);
    n = n < CALLED_AT_ONCE ? n : CALLED_AT_ONCE;
    n = n < fetch->idle ? n : fetch->idle;
    fetch->called += (unsigned)n;
    return (unsigned)n;
}

/* They take the lock first. */
void
fetch__call_threads(struct fetch *fetch, unsigned n)
{
    for (; n > 0; n--) {
        pthread_cond_signal(&fetch->more);
    }
}

/* All of a call that need a block; returns true where nothing is left to wait
 * for. */
static bool
await_all(struct fetch *fetch, struct fetch_call *call,
    struct fetch_lookup *missing, size_t n)
{
    size_t answered = 1; /* the one for being here */
    unsigned called;

    ASSERT(missing != NULL && n <= call->n);
    call->magic = FETCH_CALL_MAGIC;
    /* relaxed: others get at it through the lock */
    atomic_store_explicit(&call->n_waiting, n + 1, memory_order_relaxed);
    fetch__lock(fetch);
    while (missing != NULL) {
        struct fetch_lookup *next = missing->next;

        if (await(fetch, missing, call->ring)) {
            missing->magic = 0;
            answered++;
        }
        missing = next;
    }
    called = fetch__count_calls(fetch);
    fetch__unlock(fetch);
    fetch__call_threads(fetch, called);
    if (!count_down(call, answered)) {
        return false;
    }
    call->magic = 0;
    return true;
}

/* What a call finds without waiting: by groups, so that the memory of several
 * blocks is waited for at a time. Ids that stand side by side are often of one
 * block. */

enum { GROUP = 16 };

struct here {
    struct fetch_lookup *missing; /* those whose block is not in the cache */
    struct fetch_lookup **end;    /* of that list */
    size_t n_missing;
    uint64_t gaps, hits;
};

static bool
is_same_block(const struct fetch_lookup *a, const struct fetch_lookup *b)
{
    return a->key.segment == b->key.segment && a->key.block == b->key.block;
}

/* Finds out of which block each is; those that need one go into wanted. */
static size_t
place(struct fetch *fetch, struct fetch_lookup *lookup, size_t n,
    struct fetch_lookup **wanted, struct here *here)
{
    size_t n_wanted = 0;

    for (size_t i = 0; i < n; i++, lookup++) {
        const struct segment *segment = lookup->segment;
        uint32_t block;

        set_none(lookup, 0);
        if (!segment_find(segment, lookup->id, &block)) {
            here->gaps++;
            continue;
        }
        lookup->key = (struct cache_key){segment_head(segment)->number, block};
        cache_prefetch(fetch->cache, lookup->key);
        wanted[n_wanted++] = lookup;
    }
    return n_wanted;
}

/* Pins their blocks, once for those that follow one another in one. */
static void
pin(struct fetch *fetch, struct fetch_lookup **wanted, size_t n, void **kept)
{
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && is_same_block(wanted[i], wanted[i - 1])) {
            kept[i] = kept[i - 1];
            continue;
        }
        kept[i] = cache_pin(fetch->cache, wanted[i]->key);
        if (kept[i] != NULL) {
            warm_prefetch(kept[i]);
        }
    }
}

static void
answer_group(struct fetch *fetch, struct fetch_call *call,
    struct fetch_lookup *lookup, size_t n, struct here *here)
{
    struct fetch_lookup *wanted[GROUP];
    void *kept[GROUP];

    n = place(fetch, lookup, n, wanted, here);
    pin(fetch, wanted, n, kept);
    for (size_t i = 0; i < n; i++) {
        if (kept[i] != NULL) {
            warm_prefetch_parts(kept[i], wanted[i]->columns);
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (kept[i] == NULL) {
            wanted[i]->magic = FETCH_LOOKUP_MAGIC;
            wanted[i]->call = call;
            wanted[i]->next = NULL;
            *here->end = wanted[i];
            here->end = &wanted[i]->next;
            here->n_missing++;
            continue;
        }
        here->hits++;
        look(fetch, wanted[i], kept[i], NULL, NULL);
        if (i + 1 == n || kept[i + 1] != kept[i]) {
            cache_unpin(fetch->cache, kept[i]);
        }
    }
}

static void
count_here(struct fetch *fetch, size_t n, const struct here *here)
{
    /* relaxed: figures, which order nothing */
    atomic_fetch_add_explicit(&fetch->lookups, n, memory_order_relaxed);
    atomic_fetch_add_explicit(&fetch->gaps, here->gaps, memory_order_relaxed);
    atomic_fetch_add_explicit(&fetch->hits, here->hits, memory_order_relaxed);
}

bool
fetch_begin(struct fetch *fetch, struct fetch_call *call)
{
    struct here here = {.end = &here.missing};

    ASSERT(fetch->magic == FETCH__MAGIC);
    for (size_t i = 0; i < call->n; i += GROUP) {
        size_t left = call->n - i;

        answer_group(
            fetch, call, &call->lookup[i], left < GROUP ? left : GROUP, &here);
    }
    count_here(fetch, call->n, &here);
    return here.n_missing == 0 ||
        await_all(fetch, call, here.missing, here.n_missing);
}

void
fetch_forget(struct fetch *fetch, const struct segment *segment)
{
    cache_forget(fetch->cache, segment_head(segment)->number);
}

/* Threads. */

/* The next lookup of the queue, whose block is to be read unless *is_stopping;
 * NULL: there will be none. */
static struct fetch_lookup *
take(struct fetch *fetch, bool *is_stopping)
{
    struct fetch_lookup *lookup;
    unsigned called;

    fetch__lock(fetch);
    while (fetch->first == NULL && !fetch->is_stopping) {
        fetch->idle++;
        mutex_wait(&fetch->lock, &fetch->more);
        fetch->idle--;
        fetch->called -= fetch->called > 0; /* some come uncalled */
    }
    lookup = fetch->first;
    ASSERT((lookup == NULL) == (fetch->stats.queued == 0));
    if (lookup != NULL) {
        ASSERT(lookup->magic == FETCH_LOOKUP_MAGIC);
        fetch->first = lookup->behind;
        if (fetch->first == NULL) {
            fetch->last = NULL;
        }
        fetch->stats.queued--;
        fetch->stats.reading++;
    }
    *is_stopping = fetch->is_stopping;
    called = fetch__count_calls(fetch);
    fetch__unlock(fetch);
    fetch__call_threads(fetch, called);
    return lookup;
}

struct taking {
    struct fetch *fetch;
    struct cache_key key;
    void *kept;
};

static void *
take_memory(void *context, size_t bytes)
{
    struct taking *taking = context;

    ASSERT(taking->kept == NULL); /* warm_make asks once */
    taking->kept = cache_take(taking->fetch->cache, taking->key, bytes);
    return taking->kept;
}

/* Gives the block to the cache. Without memory for that it stays as it is. */
static int
keep(struct fetch__hand *hand, struct cache_key key, struct fetch__came *came)
{
    struct taking taking = {hand->fetch, key, NULL};
    int err = warm_make(
        &came->block, &hand->room, take_memory, &taking, &came->warm);

    if (err == 0) {
        cache_keep(taking.fetch->cache, taking.kept);
        return 0;
    }
    came->warm = NULL;
    if (taking.kept != NULL) {
        cache_unpin(taking.fetch->cache, taking.kept);
    }
    return err == ERR_NO_MEMORY ? 0 : err;
}

void
fetch__take(struct fetch__hand *hand, const struct fetch_lookup *lookup,
    struct fetch__came *came, const struct segment_fault *fault)
{
    const struct segment_fault damage = {
        .at = segment_block_at(lookup->key.block),
        .what = "the block is damaged"};

    ASSERT(lookup->magic == FETCH_LOOKUP_MAGIC && came->warm == NULL);
    if (came->err == 0) {
        came->err = keep(hand, lookup->key, came);
        fault = &damage;
    }
    if (came->err != 0) {
        log_fault(hand->fetch, lookup->segment, fault);
    }
}

static void
read_block(struct fetch__reader *reader, const struct fetch_lookup *lookup,
    struct fetch__came *came)
{
    struct segment_fault fault;
    uint64_t begun_ns = clock_monotonic_ns();

    came->err = segment__try_block(lookup->segment, lookup->key.block,
        reader->bytes, &came->block, &fault);
    came->us = (clock_monotonic_ns() - begun_ns) / FETCH__NS_PER_US;
    came->is_read = true;
    fetch__take(&reader->hand, lookup, came, &fault);
}

static void
count_read(struct fetch_stats *stats, const struct fetch__came *came)
{
    unsigned log2 = 0;

    while (log2 < FETCH_LATENCIES - 1 && came->us >> log2 != 0) {
        log2++;
    }
    stats->read_us[log2]++;
    stats->reads++;
    stats->ring_reads += came->by_ring;
    stats->direct_reads += came->is_direct;
    if (came->err == 0 || came->err == ERR_CORRUPT ||
        came->err == ERR_NEWER_FORMAT) {
        stats->read_bytes += BLOCK_BYTES_MAX;
        stats->damaged += came->err != 0;
        stats->uncached += came->err == 0 && came->warm == NULL;
    } else {
        stats->read_failures++;
    }
}

/* Nobody joins the lookup any more. */
static void
close_block(struct fetch *fetch, struct fetch_lookup *lookup,
    const struct fetch__came *came)
{
    struct fetch_lookup **at;

    fetch__lock(fetch);
    at = find(fetch, lookup->key);
    ASSERT(*at == lookup && fetch->stats.reading > 0);
    *at = lookup->beside;
    fetch->stats.reading--;
    if (came->is_read) {
        count_read(&fetch->stats, came);
    }
    fetch__unlock(fetch);
}

/* Answers all lookups that wait for the block; which of them stood for it does
 * not matter any more. */
static void
answer_all(struct fetch__hand *hand, struct fetch_lookup *lookup,
    struct fetch__came *came)
{
    while (lookup != NULL) {
        struct fetch_lookup *next = lookup->next;
        struct fetch_call *call = lookup->call;

        ASSERT(lookup->magic == FETCH_LOOKUP_MAGIC);
        ASSERT(call->magic == FETCH_CALL_MAGIC);
        lookup->magic = 0;
        if (came->err != 0) {
            set_none(lookup, came->err);
        } else {
            look(hand->fetch, lookup, came->warm, &came->block, &hand->room);
        }
        if (count_down(call, 1)) {
            call->magic = 0;
            call->done_fn(call);
        }
        lookup = next;
    }
}

void
fetch__answer(struct fetch__hand *hand, struct fetch_lookup *lookup,
    struct fetch__came *came)
{
    close_block(hand->fetch, lookup, came);
    answer_all(hand, lookup, came);
    if (came->warm != NULL) {
        cache_unpin(hand->fetch->cache, came->warm);
    }
}

static void *
run(void *context)
{
    struct fetch__reader *reader = context;
    struct fetch_lookup *lookup;
    bool is_stopping;

    ASSERT(reader->hand.fetch->magic == FETCH__MAGIC);
    while ((lookup = take(reader->hand.fetch, &is_stopping)) != NULL) {
        struct fetch__came came = {.err = ERR_CLOSED};

        if (!is_stopping) {
            read_block(reader, lookup, &came);
        }
        fetch__answer(&reader->hand, lookup, &came);
    }
    return NULL;
}

/* The pool as a whole. */

static size_t
fetch_bytes(const struct fetch_config *config)
{
    return sizeof(struct fetch) +
        config->threads * sizeof(struct fetch__reader);
}

int
fetch_start(const struct fetch_config *config, struct fetch **out)
{
    struct fetch *fetch = alloc_zeroed(config->alloc, fetch_bytes(config));
    int err;

    ASSERT(config->threads >= 1 && config->threads <= FETCH_THREADS_MAX);
    *out = NULL;
    if (fetch == NULL) {
        return ERR_NO_MEMORY;
    }
    fetch->magic = FETCH__MAGIC; /* before any thread */
    fetch->config = *config;
    fetch->config.clock = clock_or_system(config->clock);
    fetch->reader = (struct fetch__reader *)(fetch + 1);
    err = cache_create(config->cache_bytes, config->alloc, &fetch->cache);
    mutex_init(&fetch->lock);
    pthread_cond_init(&fetch->more, NULL);
    while (err == 0 && fetch->started < config->threads) {
        struct fetch__reader *reader = &fetch->reader[fetch->started];

        reader->hand = (struct fetch__hand){fetch, {.alloc = config->alloc}};
        if (pthread_create(&reader->thread, NULL, run, reader) != 0) {
            err = ERR_NO_THREAD;
        } else {
            fetch->started++;
        }
    }
    if (err != 0) {
        fetch_stop(&fetch);
        return err;
    }
    *out = fetch;
    return 0;
}

void
fetch_stop(struct fetch **fetch)
{
    struct fetch *old = *fetch;

    if (old == NULL) {
        return;
    }
    ASSERT(old->magic == FETCH__MAGIC);
    fetch__lock(old);
    old->is_stopping = true;
    pthread_cond_broadcast(&old->more);
    fetch__unlock(old);
    for (unsigned i = 0; i < old->started; i++) {
        pthread_join(old->reader[i].thread, NULL);
        block_room_fini(&old->reader[i].hand.room);
    }
    ASSERT(old->first == NULL && old->stats.queued == 0);
    ASSERT(old->stats.reading == 0 && old->stats.rings == 0);
    old->magic = 0;
    cache_destroy(&old->cache);
    pthread_cond_destroy(&old->more);
    mutex_fini(&old->lock);
    alloc_free(old->config.alloc, old, fetch_bytes(&old->config));
    *fetch = NULL;
}

void
fetch_count_fault(struct fetch *fetch, int err)
{
    ASSERT(fetch->magic == FETCH__MAGIC && err != 0);
    fetch__lock(fetch);
    if (err == ERR_CORRUPT || err == ERR_NEWER_FORMAT) {
        fetch->stats.damaged++;
    } else {
        fetch->stats.read_failures++;
    }
    fetch__unlock(fetch);
}

void
fetch_stats(struct fetch *fetch, struct fetch_stats *out)
{
    fetch__lock(fetch);
    *out = fetch->stats;
    fetch__unlock(fetch);
    /* relaxed: figures, which order nothing */
    out->lookups = atomic_load_explicit(&fetch->lookups, memory_order_relaxed);
    out->gaps = atomic_load_explicit(&fetch->gaps, memory_order_relaxed);
    out->hits = atomic_load_explicit(&fetch->hits, memory_order_relaxed);
    cache_stats(fetch->cache, &out->cache);
}
