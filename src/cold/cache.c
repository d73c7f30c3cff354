/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps blocks in memory: S3-FIFO (Yang, Zhang, Qiu, Yue and Rashmi, "FIFO
 * queues are all you need for cache eviction", SOSP 2023) in shards.
 *
 *   new -> small queue -> asked for again? -> main queue -> asked for? -> again
 *                      \-> no: dropped, its hash stays     \-> no: dropped
 *                              as a ghost
 *   new, and there is a ghost of it -> main queue
 *
 * The small queue has a tenth of the memory. Most cold blocks are asked for
 * once: they pass through it and never push out what is in the main queue. A
 * clock has one queue, and a scan moves its hand past all that has not been
 * asked for meanwhile. A hit changes no order, so it writes nothing but the
 * count of pins.
 *
 * A second ask counts only some time after the first: when a quarter as many
 * blocks have come in as the small queue has, or, where hardly any come in,
 * when others have been found often. For a scan over ids asks for each block
 * many times in a row, a few ids at a time, and then never again; a block that
 * is needed for longer is asked for later, too.
 *
 * A shard's lock guards all that is in it; the key's hash picks the shard. An
 * entry is one piece of memory, its head and the caller's bytes behind it. Each
 * pin is a reference to it, and the shard has one while the entry can be found.
 * Whoever takes the last one away frees it. Pins are added under the lock only;
 * so an entry with no reference but the shard's, seen under the lock, is in
 * nobody's hands.
 *
 * The budget is divided evenly between the shards, after what their own
 * structures take. Memory is counted from when it is asked for until it is
 * given back, whether it can be found or not. */
#include "cold/cache.h"

#include "base/assert.h"
#include "base/err.h"
#include "base/fold.h"
#include "base/mutex.h"

#include <stdatomic.h>

enum {
    SHARD_BYTES = 2 << 20, /* a shard has more than that, unless alone */
    SHARDS_MAX = 1 << 10,
    ENTRY_BYTES = 4096, /* of most entries, for the number of buckets */
    SMALL_PART = 10,    /* one in so many bytes is the small queue's */
    LARGE_PART = 8,     /* an entry has at most one in so many bytes */
    AGAIN_PART = 4,     /* see above: of the small queue's entries */
    AGAIN_TIMES = 4,    /* and so many finds for each entry of the shard */
    HITS_MAX = 3        /* rounds that an entry may stay without a hit */
};

enum place { NOWHERE, SMALL, MAIN, PLACES };

struct entry {
    struct cache_key key;
    struct entry *next;          /* in its bucket; of those to be freed */
    struct entry *newer, *older; /* in its queue */
    size_t bytes;                /* with this head */
    _Atomic uint32_t refs;
    uint32_t came; /* the shard's `kept` when a hit last counted, */
    uint32_t seen; /* and its `found` */
    uint8_t hits;  /* that counted: 0..HITS_MAX */
    uint8_t place;
    _Alignas(8) uint8_t payload[];
};

struct queue {
    struct entry *newest, *oldest;
    size_t n;
    size_t bytes;
};

/* The last ones dropped from the small queue: a table by hash, in which a later
 * one takes the place of an earlier one. */
struct ghost {
    uint32_t mark; /* bits of the hash that do not say its place */
    uint32_t when; /* the shard's `ghosts` then */
};

struct shard {
    struct mutex lock; /* all that follows, and entries, but their refs */
    size_t room;       /* bytes for entries */
    size_t bytes;      /* that they take */
    struct queue queue[PLACES];
    size_t buckets; /* a power of two; as many ghosts */
    struct entry **bucket;
    struct ghost *ghost;
    uint32_t ghosts; /* that there were */
    uint64_t found, kept, evicted, forgotten, refused;
};

struct cache {
    const struct alloc *alloc;
    uint64_t budget;
    size_t own_bytes;  /* of all but entries */
    size_t head_bytes; /* of this */
    size_t shards;     /* a power of two; 0: nothing is kept */
    struct shard shard[];
};

static uint64_t
hash_of(struct cache_key key)
{
    return fold_id(key.segment * UINT64_C(0x9e3779b97f4a7c15) + key.block);
}

static size_t
shard_number(const struct cache *cache, uint64_t hash)
{
    return (hash >> 48) & (cache->shards - 1);
}

static struct shard *
shard_of(struct cache *cache, uint64_t hash)
{
    return &cache->shard[shard_number(cache, hash)];
}

static bool
is_same(struct cache_key a, struct cache_key b)
{
    return a.segment == b.segment && a.block == b.block;
}

static struct entry *
entry_of(void *bytes)
{
    return (struct entry *)(void *)((uint8_t *)bytes -
        offsetof(struct entry, payload));
}

/* Queues. */

static void
enqueue(struct shard *shard, struct entry *entry, enum place place)
{
    struct queue *queue = &shard->queue[place];

    mutex_assert_held(&shard->lock);
    ASSERT(entry->place == NOWHERE && place != NOWHERE);
    entry->place = (uint8_t)place;
    entry->newer = NULL;
    entry->older = queue->newest;
    if (queue->newest != NULL) {
        queue->newest->newer = entry;
    } else {
        queue->oldest = entry;
    }
    queue->newest = entry;
    queue->n++;
    queue->bytes += entry->bytes;
}

static void
dequeue(struct shard *shard, struct entry *entry)
{
    struct queue *queue = &shard->queue[entry->place];

    mutex_assert_held(&shard->lock);
    ASSERT(entry->place != NOWHERE);
    ASSERT(queue->n > 0 && queue->bytes >= entry->bytes);
    if (entry->newer != NULL) {
        entry->newer->older = entry->older;
    } else {
        queue->newest = entry->older;
    }
    if (entry->older != NULL) {
        entry->older->newer = entry->newer;
    } else {
        queue->oldest = entry->newer;
    }
    queue->n--;
    queue->bytes -= entry->bytes;
    entry->place = NOWHERE;
}

/* The table. */

/* Where the pointer to the entry is, or the one at the end of its bucket. */
static struct entry **
find(struct shard *shard, uint64_t hash, struct cache_key key)
{
    struct entry **at = &shard->bucket[hash & (shard->buckets - 1)];

    while (*at != NULL && !is_same((*at)->key, key)) {
        at = &(*at)->next;
    }
    return at;
}

/* Takes it out of sight; the shard's reference is the caller's. */
static void
take_out(struct shard *shard, struct entry *entry)
{
    struct entry **at = find(shard, hash_of(entry->key), entry->key);

    mutex_assert_held(&shard->lock);
    ASSERT(*at == entry);
    *at = entry->next;
    entry->next = NULL;
    dequeue(shard, entry);
}

/* Ghosts. */

static struct ghost *
ghost_at(struct shard *shard, uint64_t hash)
{
    return &shard->ghost[hash & (shard->buckets - 1)];
}

static uint32_t
ghost_mark(uint64_t hash)
{
    return (uint32_t)(hash >> 32);
}

static void
ghost_add(struct shard *shard, uint64_t hash)
{
    mutex_assert_held(&shard->lock);
    shard->ghosts++;
    *ghost_at(shard, hash) = (struct ghost){ghost_mark(hash), shard->ghosts};
}

/* As many are remembered as entries may be kept. */
static bool
ghost_is_there(struct shard *shard, uint64_t hash)
{
    const struct ghost *ghost = ghost_at(shard, hash);

    return ghost->mark == ghost_mark(hash) &&
        shard->ghosts - ghost->when < shard->buckets;
}

/* Making room. */

/* Takes the next entry out that is to go, which nobody else holds; NULL where
 * there is none. */
static struct entry *
evict(struct shard *shard)
{
    struct queue *small = &shard->queue[SMALL];
    struct queue *main = &shard->queue[MAIN];
    /* each may be moved for its hits, and once for its pins */
    size_t tries = (HITS_MAX + 2) * (small->n + main->n);

    mutex_assert_held(&shard->lock);
    for (; tries > 0; tries--) {
        bool is_small = small->n > 0 &&
            (main->n == 0 || small->bytes >= shard->room / SMALL_PART);
        struct entry *entry = is_small ? small->oldest : main->oldest;

        /* acquire: what a thread read before it unpinned comes before the
         * memory is used anew */
        if (atomic_load_explicit(&entry->refs, memory_order_acquire) > 1) {
            dequeue(shard, entry);
            enqueue(shard, entry, MAIN);
        } else if (entry->hits > 0) {
            entry->hits = (uint8_t)(is_small ? 0 : entry->hits - 1);
            dequeue(shard, entry);
            enqueue(shard, entry, MAIN);
        } else {
            if (is_small) {
                ghost_add(shard, hash_of(entry->key));
            }
            take_out(shard, entry);
            return entry;
        }
    }
    return NULL;
}

static void
free_all(const struct cache *cache, struct entry *entry)
{
    while (entry != NULL) {
        struct entry *next = entry->next;

        alloc_free(cache->alloc, entry, entry->bytes);
        entry = next;
    }
}

/* Reserves so many bytes; *gone are entries to be freed, also where it fails.
 */
static bool
reserve(struct shard *shard, size_t bytes, struct entry **gone)
{
    mutex_assert_held(&shard->lock);
    ASSERT(shard->bytes <= shard->room);
    if (bytes > shard->room / LARGE_PART) {
        return false;
    }
    while (bytes > shard->room - shard->bytes) {
        struct entry *entry = evict(shard);

        if (entry == NULL) {
            return false;
        }
        ASSERT(shard->bytes >= entry->bytes);
        shard->bytes -= entry->bytes;
        shard->evicted++;
        entry->next = *gone;
        *gone = entry;
    }
    shard->bytes += bytes;
    ASSERT(shard->bytes <= shard->room);
    return true;
}

/* Gives back what was reserved for something that is not there. */
static void
refuse(struct shard *shard, size_t bytes)
{
    mutex_lock(&shard->lock);
    ASSERT(shard->bytes >= bytes);
    shard->bytes -= bytes;
    shard->refused++;
    mutex_unlock(&shard->lock);
}

void *
cache_take(struct cache *cache, struct cache_key key, size_t len)
{
    size_t bytes = sizeof(struct entry) + len;
    struct entry *gone = NULL;
    struct shard *shard;
    struct entry *entry;
    bool has_room;

    ASSERT(len > 0 && bytes > len);
    if (cache->shards == 0) {
        return NULL;
    }
    shard = shard_of(cache, hash_of(key));
    mutex_lock(&shard->lock);
    has_room = reserve(shard, bytes, &gone);
    shard->refused += !has_room;
    mutex_unlock(&shard->lock);
    free_all(cache, gone);
    if (!has_room) {
        return NULL;
    }
    entry = alloc_zeroed(cache->alloc, bytes);
    if (entry == NULL) {
        refuse(shard, bytes);
        return NULL;
    }
    entry->key = key;
    entry->bytes = bytes;
    atomic_init(&entry->refs, 1);
    return entry->payload;
}

static void
set_seen(const struct shard *shard, struct entry *entry)
{
    entry->came = (uint32_t)shard->kept;
    entry->seen = (uint32_t)shard->found;
}

void
cache_keep(struct cache *cache, void *bytes)
{
    struct entry *entry = entry_of(bytes);
    uint64_t hash = hash_of(entry->key);
    struct shard *shard = shard_of(cache, hash);

    ASSERT(entry->place == NOWHERE && entry->next == NULL);
    mutex_lock(&shard->lock);
    struct entry **at = find(shard, hash, entry->key);
    if (*at == NULL) {
        *at = entry;
        shard->kept++;
        set_seen(shard, entry);
        enqueue(shard, entry, ghost_is_there(shard, hash) ? MAIN : SMALL);
        /* relaxed: nobody else has it yet; the lock shows it to others */
        atomic_fetch_add_explicit(&entry->refs, 1, memory_order_relaxed);
    }
    mutex_unlock(&shard->lock);
}

/* Counts a hit, unless it belongs to what brought the block in. */
static void
count_hit(struct shard *shard, struct entry *entry)
{
    const struct queue *queue = shard->queue;
    uint32_t came = (uint32_t)shard->kept - entry->came;
    uint32_t found = (uint32_t)++shard->found - entry->seen;

    if (came > queue[SMALL].n / AGAIN_PART ||
        found > AGAIN_TIMES * (queue[SMALL].n + queue[MAIN].n)) {
        set_seen(shard, entry);
        entry->hits = (uint8_t)(entry->hits + (entry->hits < HITS_MAX));
    }
}

void *
cache_pin(struct cache *cache, struct cache_key key)
{
    uint64_t hash = hash_of(key);
    struct shard *shard;
    struct entry *entry;

    if (cache->shards == 0) {
        return NULL;
    }
    shard = shard_of(cache, hash);
    mutex_lock(&shard->lock);
    entry = *find(shard, hash, key);
    if (entry != NULL) {
        count_hit(shard, entry);
        /* relaxed: under the lock, and the shard has a reference */
        atomic_fetch_add_explicit(&entry->refs, 1, memory_order_relaxed);
    }
    mutex_unlock(&shard->lock);
    return entry == NULL ? NULL : entry->payload;
}

void
cache_prefetch(const struct cache *cache, struct cache_key key)
{
    uint64_t hash = hash_of(key);

    if (cache->shards > 0) {
        const struct shard *shard = &cache->shard[shard_number(cache, hash)];

        /* both are set once, when the cache is made */
        __builtin_prefetch(&shard->bucket[hash & (shard->buckets - 1)]);
    }
}

/* Takes a reference away; true where it was the last one. */
static bool
unref(struct entry *entry)
{
    /* release: reads of the bytes come before; acquire: whoever frees it comes
     * after those of all others */
    uint32_t refs =
        atomic_fetch_sub_explicit(&entry->refs, 1, memory_order_acq_rel);
    ASSERT(refs > 0);
    return refs == 1;
}

void
cache_unpin(struct cache *cache, void *bytes)
{
    struct entry *entry = entry_of(bytes);
    struct shard *shard;

    if (!unref(entry)) {
        return;
    }
    ASSERT(entry->place == NOWHERE); /* so nobody finds it */
    shard = shard_of(cache, hash_of(entry->key));
    mutex_lock(&shard->lock);
    ASSERT(shard->bytes >= entry->bytes);
    shard->bytes -= entry->bytes;
    mutex_unlock(&shard->lock);
    alloc_free(cache->alloc, entry, entry->bytes);
}

static void
forget_in_queue(struct shard *shard, enum place place, uint64_t segment,
    struct entry **gone)
{
    struct entry *older;

    mutex_assert_held(&shard->lock);
    for (struct entry *entry = shard->queue[place].newest; entry != NULL;
         entry = older) {
        older = entry->older;
        if (entry->key.segment != segment) {
            continue;
        }
        take_out(shard, entry);
        shard->forgotten++;
        if (unref(entry)) {
            shard->bytes -= entry->bytes;
            entry->next = *gone;
            *gone = entry;
        }
    }
}

void
cache_forget(struct cache *cache, uint64_t segment)
{
    for (size_t i = 0; i < cache->shards; i++) {
        struct shard *shard = &cache->shard[i];
        struct entry *gone = NULL;

        mutex_lock(&shard->lock);
        forget_in_queue(shard, SMALL, segment, &gone);
        forget_in_queue(shard, MAIN, segment, &gone);
        mutex_unlock(&shard->lock);
        free_all(cache, gone);
    }
}

/* The cache as a whole. */

static size_t
power_of_two(uint64_t at_most)
{
    size_t power = 1;

    while (2 * power <= at_most) {
        power *= 2;
    }
    return power;
}

static int
make_shard(struct cache *cache, struct shard *shard, uint64_t budget)
{
    ASSERT(budget >= ENTRY_BYTES);
    shard->buckets = power_of_two(budget / ENTRY_BYTES);
    shard->bucket =
        alloc_zeroed(cache->alloc, shard->buckets * sizeof *shard->bucket);
    shard->ghost =
        alloc_zeroed(cache->alloc, shard->buckets * sizeof *shard->ghost);
    mutex_init(&shard->lock);
    return shard->bucket == NULL || shard->ghost == NULL ? ERR_NO_MEMORY : 0;
}

int
cache_create(
    uint64_t budget_bytes, const struct alloc *alloc, struct cache **out)
{
    size_t shards = 0;
    struct cache *cache;

    *out = NULL;
    if (budget_bytes >= CACHE_BYTES_MIN) {
        uint64_t most = budget_bytes / SHARD_BYTES;

        shards = power_of_two(most < SHARDS_MAX ? most : SHARDS_MAX);
    }
    cache = alloc_zeroed(alloc, sizeof *cache + shards * sizeof *cache->shard);
    if (cache == NULL) {
        return ERR_NO_MEMORY;
    }
    cache->alloc = alloc;
    cache->budget = budget_bytes;
    cache->head_bytes = sizeof *cache + shards * sizeof *cache->shard;
    cache->own_bytes = cache->head_bytes;
    for (; cache->shards < shards; cache->shards++) {
        struct shard *shard = &cache->shard[cache->shards];

        if (make_shard(cache, shard, budget_bytes / shards) != 0) {
            cache->shards++;
            cache_destroy(&cache);
            return ERR_NO_MEMORY;
        }
        cache->own_bytes +=
            shard->buckets * (sizeof *shard->bucket + sizeof *shard->ghost);
    }
    for (size_t i = 0; i < shards; i++) {
        ASSERT(budget_bytes > cache->own_bytes);
        cache->shard[i].room = (budget_bytes - cache->own_bytes) / shards;
    }
    *out = cache;
    return 0;
}

static void
empty_queue(struct cache *cache, struct shard *shard, enum place place)
{
    struct entry *older;

    for (struct entry *entry = shard->queue[place].newest; entry != NULL;
         entry = older) {
        older = entry->older;
        shard->bytes -= entry->bytes;
        ASSERT(unref(entry)); /* nothing is pinned */
        alloc_free(cache->alloc, entry, entry->bytes);
    }
}

void
cache_destroy(struct cache **cache)
{
    struct cache *old = *cache;

    if (old == NULL) {
        return;
    }
    for (size_t i = 0; i < old->shards; i++) {
        struct shard *shard = &old->shard[i];

        empty_queue(old, shard, SMALL);
        empty_queue(old, shard, MAIN);
        ASSERT(shard->bytes == 0);
        alloc_free(
            old->alloc, shard->bucket, shard->buckets * sizeof *shard->bucket);
        alloc_free(
            old->alloc, shard->ghost, shard->buckets * sizeof *shard->ghost);
        mutex_fini(&shard->lock);
    }
    alloc_free(old->alloc, old, old->head_bytes);
    *cache = NULL;
}

void
cache_stats(struct cache *cache, struct cache_stats *out)
{
    *out = (struct cache_stats){
        .budget_bytes = cache->budget, .bytes = cache->own_bytes};
    for (size_t i = 0; i < cache->shards; i++) {
        struct shard *shard = &cache->shard[i];

        mutex_lock(&shard->lock);
        out->bytes += shard->bytes;
        out->blocks += shard->queue[SMALL].n + shard->queue[MAIN].n;
        out->main_blocks += shard->queue[MAIN].n;
        out->kept += shard->kept;
        out->evicted += shard->evicted;
        out->forgotten += shard->forgotten;
        out->refused += shard->refused;
        mutex_unlock(&shard->lock);
    }
}

static void
verify_queue(struct shard *shard, enum place place)
{
    const struct queue *queue = &shard->queue[place];
    const struct entry *newer = NULL;
    size_t n = 0;
    size_t bytes = 0;

    mutex_assert_held(&shard->lock);
    for (struct entry *entry = queue->newest; entry != NULL;
         entry = entry->older) {
        ASSERT(entry->newer == newer && entry->place == place);
        ASSERT(*find(shard, hash_of(entry->key), entry->key) == entry);
        ASSERT(entry->hits <= HITS_MAX);
        /* relaxed: only whether there is the shard's own */
        ASSERT(atomic_load_explicit(&entry->refs, memory_order_relaxed) > 0);
        n++;
        bytes += entry->bytes;
        newer = entry;
    }
    ASSERT(queue->oldest == newer && queue->n == n && queue->bytes == bytes);
}

void
cache_verify(struct cache *cache)
{
    for (size_t i = 0; i < cache->shards; i++) {
        struct shard *shard = &cache->shard[i];
        size_t n = 0;

        mutex_lock(&shard->lock);
        verify_queue(shard, SMALL);
        verify_queue(shard, MAIN);
        for (size_t b = 0; b < shard->buckets; b++) {
            for (struct entry *entry = shard->bucket[b]; entry != NULL;
                 entry = entry->next) {
                n++;
            }
        }
        ASSERT(n == shard->queue[SMALL].n + shard->queue[MAIN].n);
        ASSERT(shard->bytes <= shard->room &&
            shard->bytes >=
                shard->queue[SMALL].bytes + shard->queue[MAIN].bytes);
        mutex_unlock(&shard->lock);
    }
}
