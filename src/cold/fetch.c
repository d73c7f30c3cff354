/* SPDX-License-Identifier: BSD-3-Clause */
/* Lookups in segments: a cache and a pool of threads.
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
 * of the table; who finds no lookup there looks into the cache once more, under
 * the same lock. So a block that is in the cache is not read again.
 *
 * A call counts the lookups that it waits for, and one more while fetch_begin
 * is at it; who takes the last away answers. From then on the call and its
 * lookups are the caller's again, and the segments may be closed. So a thread
 * reads the next link before it counts a lookup, and says what is wrong with a
 * block before it answers anybody.
 *
 * What can go wrong: the disk, or damage: the lookups of that block get the
 * error, nothing is kept, and the next lookup reads again. Where there is no
 * memory for the cache, the ids are looked for in the block as it was read. */
#include "cold/fetch.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fold.h"
#include "cold/warm.h"

#include <inttypes.h>
#include <pthread.h>

enum {
    BUCKETS = 1 << 10, /* of blocks that are waited for; a power of two */
    CALLED_AT_ONCE = 2,
    NS_PER_US = 1000,
    TELL_NS = 1000000000 /* one line of damage in that time */
};

struct reader {
    pthread_t thread;
    struct fetch *fetch;
    struct block_room room;
    uint8_t bytes[BLOCK_BYTES_MAX];
};

struct fetch {
    struct fetch_config config;
    struct cache *cache;
    /* of callers' threads */
    _Atomic uint64_t lookups, gaps, hits;
    pthread_mutex_t
        lock;            /* all that follows, and links of lookups that wait */
    pthread_cond_t more; /* queue, is_stopping */
    bool is_stopping;
    unsigned idle;                        /* threads that wait for more */
    unsigned called;                      /* of these, those on their way */
    struct fetch_lookup *first, *last;    /* the queue, by `behind` */
    struct fetch_lookup *bucket[BUCKETS]; /* by `beside` */
    struct fetch_stats stats;             /* but what others count */
    uint64_t told_ns;                     /* when damage was last told */
    uint64_t untold;                      /* lines left out since */
    /* of fetch_start and fetch_stop */
    unsigned started;
    struct reader reader[];
};

static void
lock(struct fetch *fetch)
{
    int error = pthread_mutex_lock(&fetch->lock);
    ASSERT(error == 0);
}

static void
unlock(struct fetch *fetch)
{
    int error = pthread_mutex_unlock(&fetch->lock);
    ASSERT(error == 0);
}

/* Says what is wrong with a segment, but not too often: a disk that fails does
 * so often. */
static void
tell(struct fetch *fetch, const struct segment *segment,
    const struct segment_fault *fault)
{
    uint64_t now = clock_monotonic_ns();
    uint64_t untold;
    bool is_due;

    lock(fetch);
    is_due = fetch->told_ns == 0 || now - fetch->told_ns >= TELL_NS;
    untold = is_due ? fetch->untold : 0;
    if (is_due) {
        fetch->told_ns = now;
        fetch->untold = 0;
    } else {
        fetch->untold++;
    }
    unlock(fetch);
    if (untold > 0 && fetch->config.logger != NULL) {
        log_line(fetch->config.logger, LOG_ERROR,
            "%" PRIu64 " more reads of segments failed since the last line",
            untold);
    }
    if (is_due) {
        segment_tell(segment, fault);
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

        tell(fetch, lookup->segment, &fault);
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
    return atomic_fetch_sub_explicit(
               &call->n_waiting, n, memory_order_acq_rel) == n;
}

/* Blocks that are waited for. */

static struct fetch_lookup **
find(struct fetch *fetch, struct cache_key key)
{
    uint64_t hash = fold_id(key.segment + ((uint64_t)key.block << 32));
    struct fetch_lookup **at = &fetch->bucket[hash & (BUCKETS - 1)];

    while (*at != NULL &&
        ((*at)->key.segment != key.segment || (*at)->key.block != key.block)) {
        at = &(*at)->beside;
    }
    return at;
}

/* Has the block of the lookup read. With the lock. */
static void
enqueue(struct fetch *fetch, struct fetch_lookup *lookup)
{
    struct fetch_stats *stats = &fetch->stats;

    lookup->next = NULL;
    lookup->behind = NULL;
    lookup->beside = NULL;
    *find(fetch, lookup->key) = lookup;
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

/* Has a lookup whose block was not in the cache wait for it, or answers it
 * where there is nothing to wait for: true then. With the lock, which it may
 * give away for a while. */
static bool
await(struct fetch *fetch, struct fetch_lookup *lookup)
{
    struct fetch_lookup *first;
    void *kept;

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
        enqueue(fetch, lookup);
        return false;
    }
    /* relaxed: a figure */
    atomic_fetch_add_explicit(&fetch->hits, 1, memory_order_relaxed);
    unlock(fetch); /* it may have something to tell */
    look(fetch, lookup, kept, NULL, NULL);
    cache_unpin(fetch->cache, kept);
    lock(fetch);
    return true;
}

/* How many threads are to be called now that wait for more. Whoever adds to the
 * queue calls a few and not one a block; a thread that comes calls others
 * before it reads, so that they are twice as many each time; and nobody calls
 * while some are on their way. So calls in a row wake a thread once, not each
 * of them one. With the lock. */
static unsigned
count_calls(struct fetch *fetch)
{
    uint64_t n = fetch->called == 0 ? fetch->stats.queued : 0;

    n = n < CALLED_AT_ONCE ? n : CALLED_AT_ONCE;
    n = n < fetch->idle ? n : fetch->idle;
    fetch->called += (unsigned)n;
    return (unsigned)n;
}

/* Without the lock, which they take first. */
static void
call_threads(struct fetch *fetch, unsigned n)
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

    /* relaxed: others get at it through the lock */
    atomic_store_explicit(&call->n_waiting, n + 1, memory_order_relaxed);
    lock(fetch);
    while (missing != NULL) {
        struct fetch_lookup *next = missing->next;

        answered += await(fetch, missing);
        missing = next;
    }
    called = count_calls(fetch);
    unlock(fetch);
    call_threads(fetch, called);
    return count_down(call, answered);
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

    lock(fetch);
    while (fetch->first == NULL && !fetch->is_stopping) {
        fetch->idle++;
        pthread_cond_wait(&fetch->more, &fetch->lock);
        fetch->idle--;
        fetch->called -= fetch->called > 0; /* some come uncalled */
    }
    lookup = fetch->first;
    if (lookup != NULL) {
        fetch->first = lookup->behind;
        if (fetch->first == NULL) {
            fetch->last = NULL;
        }
        fetch->stats.queued--;
        fetch->stats.reading++;
    }
    *is_stopping = fetch->is_stopping;
    called = count_calls(fetch);
    unlock(fetch);
    call_threads(fetch, called);
    return lookup;
}

/* A block that was read. */
struct came {
    int err;
    struct block block; /* in the reader's bytes */
    struct warm *warm;  /* the same in the cache, pinned; NULL: it is not */
    uint64_t us;        /* that the read took */
    bool is_read;
};

struct taking {
    struct fetch *fetch;
    struct cache_key key;
    void *kept;
};

static void *
take_memory(void *context, size_t bytes)
{
    struct taking *taking = context;

    taking->kept = cache_take(taking->fetch->cache, taking->key, bytes);
    return taking->kept;
}

/* Gives the block to the cache. Without memory for that it stays as it is. */
static int
keep(struct reader *reader, struct cache_key key, struct came *came)
{
    struct taking taking = {reader->fetch, key, NULL};
    int err = warm_make(
        &came->block, &reader->room, take_memory, &taking, &came->warm);

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

static void
read_block(struct reader *reader, const struct segment *segment,
    struct cache_key key, struct came *came)
{
    struct segment_fault fault;
    uint64_t begun_ns = clock_monotonic_ns();

    came->err = segment_try_block(
        segment, key.block, reader->bytes, &came->block, &fault);
    came->us = (clock_monotonic_ns() - begun_ns) / NS_PER_US;
    came->is_read = true;
    if (came->err == 0) {
        came->err = keep(reader, key, came);
        fault = (struct segment_fault){
            .at = segment_block_at(key.block), .what = "the block is damaged"};
    }
    if (came->err != 0) {
        tell(reader->fetch, segment, &fault);
    }
}

static void
count_read(struct fetch_stats *stats, const struct came *came)
{
    unsigned log2 = 0;

    while (log2 < FETCH_LATENCIES - 1 && came->us >> log2 != 0) {
        log2++;
    }
    stats->read_us[log2]++;
    stats->reads++;
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
close_block(
    struct fetch *fetch, struct fetch_lookup *lookup, const struct came *came)
{
    struct fetch_lookup **at;

    lock(fetch);
    at = find(fetch, lookup->key);
    ASSERT(*at == lookup);
    *at = lookup->beside;
    fetch->stats.reading--;
    if (came->is_read) {
        count_read(&fetch->stats, came);
    }
    unlock(fetch);
}

/* Answers all lookups that wait for the block; which of them stood for it does
 * not matter any more. */
static void
answer_all(
    struct reader *reader, struct fetch_lookup *lookup, struct came *came)
{
    while (lookup != NULL) {
        struct fetch_lookup *next = lookup->next;
        struct fetch_call *call = lookup->call;

        if (came->err != 0) {
            set_none(lookup, came->err);
        } else {
            look(reader->fetch, lookup, came->warm, &came->block,
                &reader->room);
        }
        if (count_down(call, 1)) {
            call->done_fn(call);
        }
        lookup = next;
    }
}

static void *
run(void *context)
{
    struct reader *reader = context;
    struct fetch *fetch = reader->fetch;
    struct fetch_lookup *lookup;
    bool is_stopping;

    while ((lookup = take(fetch, &is_stopping)) != NULL) {
        struct came came;

        came.warm = NULL;
        came.is_read = false;
        came.err = ERR_CLOSED;
        if (!is_stopping) {
            read_block(reader, lookup->segment, lookup->key, &came);
        }
        close_block(fetch, lookup, &came);
        answer_all(reader, lookup, &came);
        if (came.warm != NULL) {
            cache_unpin(fetch->cache, came.warm);
        }
    }
    return NULL;
}

/* The pool as a whole. */

static size_t
fetch_bytes(const struct fetch_config *config)
{
    return sizeof(struct fetch) + config->threads * sizeof(struct reader);
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
    fetch->config = *config;
    err = cache_create(config->cache_bytes, config->alloc, &fetch->cache);
    pthread_mutex_init(&fetch->lock, NULL);
    pthread_cond_init(&fetch->more, NULL);
    while (err == 0 && fetch->started < config->threads) {
        struct reader *reader = &fetch->reader[fetch->started];

        reader->fetch = fetch;
        reader->room.alloc = config->alloc;
        if (pthread_create(&reader->thread, NULL, run, reader) != 0) {
            err = ERR_SYSTEM;
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
    lock(old);
    old->is_stopping = true;
    pthread_cond_broadcast(&old->more);
    unlock(old);
    for (unsigned i = 0; i < old->started; i++) {
        pthread_join(old->reader[i].thread, NULL);
        block_room_fini(&old->reader[i].room);
    }
    cache_destroy(&old->cache);
    pthread_cond_destroy(&old->more);
    pthread_mutex_destroy(&old->lock);
    alloc_free(old->config.alloc, old, fetch_bytes(&old->config));
    *fetch = NULL;
}

void
fetch_count_fault(struct fetch *fetch, int err)
{
    lock(fetch);
    if (err == ERR_CORRUPT || err == ERR_NEWER_FORMAT) {
        fetch->stats.damaged++;
    } else {
        fetch->stats.read_failures++;
    }
    unlock(fetch);
}

void
fetch_stats(struct fetch *fetch, struct fetch_stats *out)
{
    lock(fetch);
    *out = fetch->stats;
    unlock(fetch);
    /* relaxed: figures, which order nothing */
    out->lookups = atomic_load_explicit(&fetch->lookups, memory_order_relaxed);
    out->gaps = atomic_load_explicit(&fetch->gaps, memory_order_relaxed);
    out->hits = atomic_load_explicit(&fetch->hits, memory_order_relaxed);
    cache_stats(fetch->cache, &out->cache);
}
