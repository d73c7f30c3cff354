/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of items: a log of entries in segments.
 *
 *      fresh:  newest [....][....][....] oldest      open: [...   ]
 *      kept:   newest [....][....][....] oldest      open: [..    ]
 *      sparse: segments of both of which much is dead
 *      lent:   segments of both that hold something lent (loan.c)
 *
 * A new entry goes to the end of the open segment. A full segment is sealed and
 * joins its queue; segment.c draws the states. An entry without references is
 * dead. Its bytes stay where they are until the whole segment is free: at once
 * when its last entry dies, else by cleaning (room.c), which takes a victim,
 * gives up or moves what lives in it, and returns it. So no hole is ever of the
 * wrong size, whatever sizes come one after the other, and the account is what
 * the process holds.
 *
 * An entry larger than 1/8 of a segment has a segment of its own, of its size
 * in whole pages, so no common segment ends with a large gap. It moves only
 * from queue to queue.
 *
 * The reserve: a store may fill the limit but for two segments; cleaning and
 * the tables may use these too. Cleaning always gains, so it can only want one
 * segment a queue before it gives one back.
 *
 * What can go wrong: the system has no memory, which is as if the limit were
 * reached; a victim holds pinned entries, or drafts that are linked only after
 * the cleaner was there: then it goes round again.
 *
 * Each change of a segment's account is under the pool's lock. An entry's sizes
 * are written before it leaves the pool and never change, so a cleaner walks
 * over entries that are being filled without reading more of them. Under
 * AddressSanitizer the value of a dead entry is poisoned. */
#include "items/pool_priv.h"

#include "base/assert.h"
#include "base/sanitizer.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

enum {
    PAGE_BYTES = 4096,
    SEGMENT_LEAST = 16 << 10,
    SEGMENT_MOST = 1 << 20,
    SEGMENTS_WANTED = 512, /* in a cache that is neither tiny nor huge */
    LARGE_PART = 8,        /* of a segment: a larger entry has its own */
    RESERVE = 2,           /* segments */
    SPARSE_SIXTEENTHS = 12,
    KEEPING_SIXTEENTHS = 15, /* no eviction makes up for what is dead */
    FRESH_PERCENT = 50       /* of the sealed bytes: with more, these go */
};

static_assert(SEGMENT_MOST / ITEMS__UNIT <= 1 << ITEMS__BACK_BITS,
    "an entry knows its way back: a larger segment has one, at its head");

static size_t
round_up(size_t bytes, size_t step)
{
    return (bytes + step - 1) / step * step;
}

void
items__pool_init(struct pool *pool, const struct items_config *config)
{
    uint64_t wanted = config->limit_bytes / SEGMENTS_WANTED;
    int failed;

    *pool = (struct pool){.alloc = config->alloc,
        .segment_bytes = SEGMENT_LEAST,
        .full_sixteenths =
            config->keeps ? KEEPING_SIXTEENTHS : SPARSE_SIXTEENTHS,
        .keeps = config->keeps,
        .limit_bytes = config->limit_bytes,
        .limit_wanted_bytes = config->limit_bytes};
    while (
        pool->segment_bytes < wanted && pool->segment_bytes < SEGMENT_MOST) {
        pool->segment_bytes *= 2;
    }
    mutex_init(&pool->lock);
    failed = pthread_cond_init(&pool->cleaned, NULL);
    ASSERT(!failed);
}

void
items__pool_lock(struct pool *pool)
{
    mutex_lock(&pool->lock);
}

/* Gives a segment's memory back; without the lock, since that takes as long as
 * the segment is large. */
static void
unmap(const struct pool *pool, struct segment *segment)
{
    size_t size = segment->size;

    if (pool->alloc != NULL) {
        alloc_free(pool->alloc, segment, size);
    } else if (munmap(segment, size) != 0) {
        /* The system has too many mappings to make a hole: the pages go, the
         * addresses are lost. */
        (void)madvise(segment, size, MADV_DONTNEED);
    }
}

void
items__pool_unlock(struct pool *pool)
{
    struct segment *gone = pool->gone;

    pool->gone = NULL;
    mutex_unlock(&pool->lock);
    while (gone != NULL) {
        struct segment *next = gone->older;

        unmap(pool, gone);
        gone = next;
    }
}

static void *
map(struct pool *pool, size_t bytes)
{
    void *memory;

    mutex_assert_held(&pool->lock);
    if (pool->alloc != NULL) {
        memory = alloc_zeroed(pool->alloc, bytes);
    } else {
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memory = memory == MAP_FAILED ? NULL : memory;
    }
    pool->bytes += memory == NULL ? 0 : bytes;
    return memory;
}

/* A limit that was lowered follows what is held, so that a store that needs
 * memory has to clean a little, and not all that is too much. */
void
items__pool_sink(struct pool *pool)
{
    uint64_t aim = items__pool_aim(pool);

    mutex_assert_held(&pool->lock);
    if (pool->limit_bytes > aim) {
        pool->limit_bytes = pool->bytes > aim ? pool->bytes : aim;
    }
}

static bool
is_over(const struct pool *pool)
{
    return pool->limit_bytes > items__pool_aim(pool);
}

/* What the queues hold is not more than all. What is taken, and what tables
 * have, is not looked at. */
static void
check_account(const struct pool *pool)
{
    uint64_t held = pool->sparse.bytes + pool->lent.bytes;

    mutex_assert_held(&pool->lock);
    for (unsigned q = 0; q < ITEMS__QUEUES; q++) {
        held += pool->sealed[q].bytes;
        held += pool->open[q] == NULL ? 0 : pool->open[q]->size;
    }
    held += pool->spare == NULL ? 0 : pool->spare->size;
    ASSERT(held <= pool->bytes);
    ASSERT(pool->lent.bytes <= pool->lent_bytes);
    ASSERT(pool->lent_bytes <= pool->bytes);
}

/* It goes when the lock is left; it counts no more from now on. */
static void
give_back(struct pool *pool, struct segment *segment)
{
    ASSERT(segment->state == ITEMS__FREE);
    ASSERT(pool->bytes >= segment->size);
    segment->magic = 0;
    pool->bytes -= segment->size;
    items__pool_sink(pool);
    segment->older = pool->gone;
    pool->gone = segment;
}

static void
push(struct segment_queue *queue, struct segment *segment)
{
    segment->newer = NULL;
    segment->older = queue->newest;
    if (queue->newest != NULL) {
        queue->newest->newer = segment;
    } else {
        queue->oldest = segment;
    }
    queue->newest = segment;
    queue->bytes += segment->size;
}

static void
take_out(struct segment_queue *queue, struct segment *segment)
{
    if (segment->newer != NULL) {
        segment->newer->older = segment->older;
    } else {
        queue->newest = segment->older;
    }
    if (segment->older != NULL) {
        segment->older->newer = segment->newer;
    } else {
        queue->oldest = segment->newer;
    }
    segment->newer = NULL;
    segment->older = NULL;
    ASSERT(queue->bytes >= segment->size);
    queue->bytes -= segment->size;
    ASSERT((queue->bytes == 0) == (queue->oldest == NULL));
}

static struct segment_queue *
queue_of(struct pool *pool, const struct segment *segment)
{
    ASSERT(segment->state == ITEMS__SEALED ||
        segment->state == ITEMS__SPARSE || segment->state == ITEMS__LENT);
    ASSERT(segment->queue < ITEMS__QUEUES);
    return segment->state == ITEMS__SPARSE ? &pool->sparse
        : segment->state == ITEMS__LENT    ? &pool->lent
                                           : &pool->sealed[segment->queue];
}

static void
drop_spare(struct pool *pool)
{
    struct segment *spare = pool->spare;

    mutex_assert_held(&pool->lock);
    if (spare != NULL) {
        pool->spare = NULL;
        give_back(pool, spare);
    }
}

/* It is in no queue, and nothing in it lives. */
static void
free_segment(struct pool *pool, struct segment *segment)
{
    ASSERT(segment->n_live == 0 && segment->live_bytes == 0);
    ASSERT(segment->n_loans == 0);
    ASAN_UNPOISON_MEMORY_REGION(segment, segment->size);
    items__segment_move(segment, ITEMS__FREE);
    if (!segment->is_large && pool->spare == NULL && !is_over(pool)) {
        pool->spare = segment;
    } else {
        give_back(pool, segment);
    }
}

static bool
is_sparse(const struct pool *pool, const struct segment *segment)
{
    return !segment->is_large &&
        segment->live_bytes * 16 <
        (segment->used - items__segment_head_bytes()) * pool->full_sixteenths;
}

/* Puts a segment that is in no queue where it belongs. */
static void
place(struct pool *pool, struct segment *segment, bool sparse)
{
    ASSERT(segment->n_live > 0 && segment->used <= segment->size);
    items__segment_move(segment,
        segment->n_loans > 0 ? ITEMS__LENT
            : sparse         ? ITEMS__SPARSE
                             : ITEMS__SEALED);
    push(queue_of(pool, segment), segment);
    check_account(pool);
}

static void
seal(struct pool *pool, struct segment *segment)
{
    place(pool, segment, is_sparse(pool, segment));
}

void
items__pool_sort(struct pool *pool, struct segment *segment)
{
    mutex_assert_held(&pool->lock);
    if (segment->state != ITEMS__OPEN && segment->state != ITEMS__TAKEN) {
        take_out(queue_of(pool, segment), segment);
        seal(pool, segment);
    }
}

static void
seal_open(struct pool *pool, enum items_queue queue)
{
    struct segment *segment = pool->open[queue];

    pool->open[queue] = NULL;
    if (segment == NULL) {
        return;
    }
    if (segment->n_live == 0) {
        free_segment(pool, segment);
    } else {
        seal(pool, segment);
    }
}

void
items__pool_fini(struct pool *pool)
{
    int failed;

    items__pool_lock(pool);
    for (unsigned q = 0; q < ITEMS__QUEUES; q++) {
        seal_open(pool, (enum items_queue)q);
        ASSERT(pool->sealed[q].oldest == NULL);
    }
    ASSERT(pool->sparse.oldest == NULL && pool->n_taken == 0);
    ASSERT(pool->lent.oldest == NULL && pool->lent_bytes == 0);
    ASSERT(pool->n_loans == 0);
    drop_spare(pool);
    ASSERT(pool->bytes == 0);
    items__pool_unlock(pool);
    failed = pthread_cond_destroy(&pool->cleaned);
    ASSERT(!failed);
    mutex_fini(&pool->lock);
}

/* The limit of who may use the reserve, and of who may not. */
static uint64_t
limit_of(const struct pool *pool, bool moves)
{
    uint64_t reserve = RESERVE * pool->segment_bytes;

    if (moves) {
        return pool->limit_bytes;
    }
    return pool->limit_bytes > reserve ? pool->limit_bytes - reserve : 0;
}

static bool
is_large(const struct pool *pool, size_t entry_bytes)
{
    return entry_bytes > pool->segment_bytes / LARGE_PART;
}

/* Bytes of the segment that such an entry would need. */
static size_t
segment_bytes_for(const struct pool *pool, size_t entry_bytes)
{
    return is_large(pool, entry_bytes)
        ? round_up(items__segment_head_bytes() + entry_bytes, PAGE_BYTES)
        : pool->segment_bytes;
}

bool
items__pool_could_fit(struct pool *pool, size_t key_len, size_t room)
{
    size_t bytes = segment_bytes_for(pool, items__entry_bytes(key_len, room));
    bool could;

    items__pool_lock(pool);
    could = bytes <= limit_of(pool, false);
    items__pool_unlock(pool);
    return could;
}

static struct segment *
new_segment(struct pool *pool, size_t bytes, const struct items_take *take)
{
    uint64_t limit = limit_of(pool, take->moves);
    struct segment *segment = NULL;

    mutex_assert_held(&pool->lock);
    if (bytes == pool->segment_bytes && pool->spare != NULL &&
        pool->bytes <= limit) {
        segment = pool->spare;
        pool->spare = NULL;
        ASSERT(segment->magic == SEGMENT_MAGIC && segment->size == bytes &&
            segment->state == ITEMS__FREE);
    } else {
        drop_spare(pool);
        if (pool->bytes + bytes <= limit) {
            segment = map(pool, bytes);
        }
    }
    if (segment != NULL) {
        *segment = (struct segment){.magic = SEGMENT_MAGIC,
            .size = bytes,
            .is_large = bytes != pool->segment_bytes,
            .used = items__segment_head_bytes(),
            .made_s = (uint32_t)take->now_s,
            .number = pool->n_made++,
            .queue = take->queue,
            .state = ITEMS__FREE};
        items__segment_move(segment, ITEMS__OPEN);
    }
    return segment;
}

/* The open segment of the queue with room for so many bytes, or NULL. */
static struct segment *
open_segment(struct pool *pool, size_t bytes, const struct items_take *take)
{
    struct segment *segment = pool->open[take->queue];

    if (segment != NULL && segment->size - segment->used >= bytes) {
        return segment;
    }
    seal_open(pool, take->queue);
    pool->open[take->queue] = new_segment(pool, pool->segment_bytes, take);
    return pool->open[take->queue];
}

static struct entry *
put_entry(struct segment *segment, size_t bytes, const struct items_take *take)
{
    struct entry *entry =
        (struct entry *)(void *)((char *)segment + segment->used);

    ASSERT(segment->state == ITEMS__OPEN);
    ASSERT(bytes <= segment->size - segment->used);
    ASSERT(segment->used < SEGMENT_MOST);
    memset(entry, 0, sizeof *entry);
    entry->back =
        (segment->used / ITEMS__UNIT) & ((1U << ITEMS__BACK_BITS) - 1);
    entry->is_hidden = take->is_hidden;
    entry->stripe = take->stripe & 63U;
    entry->key_len = (uint8_t)take->key_len;
    entry->room = (uint32_t)(bytes - sizeof *entry - take->key_len);
    entry->item.value = items__entry_value(entry);
    atomic_init(&entry->refs, 1);
    segment->used += bytes;
    segment->live_bytes += bytes;
    segment->n_live++;
    segment->classes |= UINT64_C(1) << take->class_;
    return entry;
}

struct entry *
items__pool_take(struct pool *pool, struct items_take *take)
{
    size_t bytes = items__entry_bytes(take->key_len, take->room);
    bool large = is_large(pool, bytes);
    struct segment *segment;
    struct entry *entry = NULL;

    items__pool_lock(pool);
    segment = large ? new_segment(pool, segment_bytes_for(pool, bytes), take)
                    : open_segment(pool, bytes, take);
    if (segment != NULL) {
        entry = put_entry(segment, bytes, take);
        if (large) {
            place(pool, segment, false);
        }
    }
    take->is_over_out = is_over(pool);
    items__pool_unlock(pool);
    return entry;
}

/* Notes that an entry of the segment has died. */
static void
bury(struct pool *pool, struct segment *segment, struct entry *entry)
{
    size_t bytes = items__entry_bytes(entry->key_len, entry->room);

    mutex_assert_held(&pool->lock);
    ASSERT(segment->state != ITEMS__FREE);
    ASSERT(segment->n_live > 0 && segment->live_bytes >= bytes);
    segment->n_live--;
    segment->live_bytes -= bytes;
    if (segment->state == ITEMS__OPEN) {
        if ((size_t)entry->back * ITEMS__UNIT + bytes == segment->used) {
            segment->used -= bytes; /* a draft that was not wanted */
        } else {
            ASAN_POISON_MEMORY_REGION(entry->bytes, bytes - sizeof *entry);
        }
        return;
    }
    ASAN_POISON_MEMORY_REGION(entry->bytes, bytes - sizeof *entry);
    if (segment->state == ITEMS__TAKEN) {
        return;
    }
    if (segment->n_live == 0) {
        take_out(queue_of(pool, segment), segment);
        free_segment(pool, segment);
    } else if (segment->state == ITEMS__SEALED && is_sparse(pool, segment)) {
        take_out(queue_of(pool, segment), segment);
        seal(pool, segment);
    }
}

void
items__pool_release(struct pool *pool, struct entry *entry)
{
    /* release: this owner's reads come before the free or the change in place
     * that another thread does after it; acquire: the same, for us. */
    uint16_t refs =
        atomic_fetch_sub_explicit(&entry->refs, 1, memory_order_acq_rel);

    ASSERT(refs > 0);
    if (refs == 1) {
        items__pool_lock(pool);
        bury(pool, items__segment_of(entry), entry);
        items__pool_unlock(pool);
    }
}

void *
items__pool_block(struct pool *pool, size_t bytes)
{
    void *block = NULL;

    items__pool_lock(pool);
    if (pool->bytes + bytes <= limit_of(pool, true)) {
        block = alloc_zeroed(pool->alloc, bytes);
        pool->bytes += block == NULL ? 0 : bytes;
    }
    items__pool_unlock(pool);
    return block;
}

void
items__pool_block_free(struct pool *pool, void *block, size_t bytes)
{
    items__pool_lock(pool);
    ASSERT(block == NULL || pool->bytes >= bytes);
    pool->bytes -= block == NULL ? 0 : bytes;
    items__pool_unlock(pool);
    alloc_free(pool->alloc, block, bytes);
}

/* The queue whose oldest segment goes next. */
static struct segment_queue *
next_queue(struct pool *pool)
{
    struct segment_queue *fresh = &pool->sealed[ITEMS__FRESH];
    struct segment_queue *kept = &pool->sealed[ITEMS__KEPT];
    bool fresh_is_large =
        fresh->bytes * 100 > (fresh->bytes + kept->bytes) * FRESH_PERCENT;

    if (pool->sparse.oldest != NULL) {
        return &pool->sparse;
    }
    return fresh->oldest != NULL && (fresh_is_large || kept->oldest == NULL)
        ? fresh
        : kept;
}

static struct segment *
take_oldest(struct pool *pool, struct segment_queue *queue)
{
    struct segment *segment = queue->oldest;

    if (segment != NULL) {
        take_out(queue, segment);
        items__segment_move(segment, ITEMS__TAKEN);
        pool->n_taken++;
    }
    return segment;
}

/* Where larger ones come and go, an open segment may never fill. When it has
 * become the oldest it joins its queue. */
static void
seal_old(struct pool *pool)
{
    for (unsigned q = 0; q < ITEMS__QUEUES; q++) {
        struct segment *open = pool->open[q];
        struct segment *oldest = pool->sealed[q].oldest;

        if (open != NULL && oldest != NULL && open->number < oldest->number) {
            seal_open(pool, (enum items_queue)q);
        }
    }
}

static struct segment *
next_victim(struct pool *pool, bool *sparse_out)
{
    struct segment_queue *queue = &pool->sparse;
    struct segment *segment;

    mutex_assert_held(&pool->lock);
    if (!pool->keeps) {
        seal_old(pool); /* what it seals may be sparse */
        queue = next_queue(pool);
    }
    segment = take_oldest(pool, queue);
    for (unsigned q = 0; !pool->keeps && q < ITEMS__QUEUES && segment == NULL;
         q++) {
        seal_open(pool, (enum items_queue)q); /* a tiny cache */
        queue = next_queue(pool);
        segment = take_oldest(pool, queue);
    }
    *sparse_out = queue == &pool->sparse;
    return segment;
}

struct segment *
items__pool_victim(struct pool *pool, bool *sparse_out)
{
    struct segment *segment;

    items__pool_lock(pool);
    for (;;) {
        segment = next_victim(pool, sparse_out);
        if (segment != NULL || pool->n_taken == 0) {
            break;
        }
        mutex_wait(&pool->lock, &pool->cleaned);
    }
    items__pool_unlock(pool);
    return segment;
}

struct segment *
items__pool_oldest(struct pool *pool)
{
    struct segment_queue *fresh = &pool->sealed[ITEMS__FRESH];
    struct segment_queue *kept = &pool->sealed[ITEMS__KEPT];
    struct segment *segment;

    items__pool_lock(pool);
    segment = take_oldest(pool, fresh->oldest != NULL ? fresh : kept);
    items__pool_unlock(pool);
    return segment;
}

bool
items__pool_return(struct pool *pool, struct segment *segment,
    enum items_queue queue, bool cleaned)
{
    bool is_free;

    items__pool_lock(pool);
    ASSERT(segment->state == ITEMS__TAKEN && pool->n_taken > 0);
    ASSERT(queue < ITEMS__QUEUES);
    pool->n_taken--;
    is_free = segment->n_live == 0;
    if (is_free) {
        free_segment(pool, segment);
    } else {
        segment->queue = queue;
        place(pool, segment, !cleaned && is_sparse(pool, segment));
    }
    (void)pthread_cond_broadcast(&pool->cleaned);
    items__pool_unlock(pool);
    return is_free;
}

bool
items__pool_is_over(struct pool *pool)
{
    bool over;

    items__pool_lock(pool);
    over = is_over(pool);
    items__pool_unlock(pool);
    return over;
}

void
items__pool_set_limit(struct pool *pool, uint64_t limit_bytes)
{
    items__pool_lock(pool);
    drop_spare(pool);
    pool->limit_wanted_bytes = limit_bytes;
    limit_bytes = items__pool_aim(pool);
    pool->limit_bytes = pool->bytes > limit_bytes ? pool->bytes : limit_bytes;
    check_account(pool);
    items__pool_unlock(pool);
}

uint64_t
items__pool_bytes(struct pool *pool)
{
    uint64_t bytes;

    items__pool_lock(pool);
    bytes = pool->bytes;
    items__pool_unlock(pool);
    return bytes;
}

uint64_t
items__pool_limit(struct pool *pool)
{
    uint64_t bytes;

    items__pool_lock(pool);
    bytes = pool->limit_wanted_bytes;
    items__pool_unlock(pool);
    return bytes;
}

static void
age_by(const struct segment *segment, uint64_t oldest_s[ITEMS_CLASSES])
{
    for (unsigned c = 0; segment != NULL && c < ITEMS_CLASSES; c++) {
        bool has = (segment->classes >> c & 1) != 0;

        if (has && (oldest_s[c] == 0 || segment->made_s < oldest_s[c])) {
            oldest_s[c] = segment->made_s;
        }
    }
}

static void
age_by_queue(
    const struct segment_queue *queue, uint64_t oldest_s[ITEMS_CLASSES])
{
    for (struct segment *at = queue->oldest; at != NULL; at = at->newer) {
        age_by(at, oldest_s);
    }
}

void
items__pool_ages(struct pool *pool, uint64_t oldest_s[ITEMS_CLASSES])
{
    memset(oldest_s, 0, ITEMS_CLASSES * sizeof *oldest_s);
    items__pool_lock(pool);
    for (unsigned q = 0; q < ITEMS__QUEUES; q++) {
        age_by(pool->open[q], oldest_s);
        age_by_queue(&pool->sealed[q], oldest_s);
    }
    age_by_queue(&pool->sparse, oldest_s);
    age_by_queue(&pool->lent, oldest_s);
    items__pool_unlock(pool);
}

static uint64_t
verify_queue(
    struct pool *pool, const struct segment_queue *queue, uint64_t *held)
{
    struct segment *last = NULL;
    uint64_t live_bytes = 0, bytes = 0;

    for (struct segment *at = queue->oldest; at != NULL; at = at->newer) {
        ASSERT(at->older == last && queue_of(pool, at) == queue);
        live_bytes += items__segment_verify(at, held);
        bytes += at->size;
        last = at;
    }
    ASSERT(queue->newest == last && queue->bytes == bytes);
    return live_bytes;
}

uint64_t
items__pool_verify(struct pool *pool, uint64_t blocks_bytes)
{
    uint64_t live_bytes, held = blocks_bytes;

    items__pool_lock(pool);
    check_account(pool);
    live_bytes = verify_queue(pool, &pool->sparse, &held);
    live_bytes += verify_queue(pool, &pool->lent, &held);
    for (unsigned q = 0; q < ITEMS__QUEUES; q++) {
        live_bytes += verify_queue(pool, &pool->sealed[q], &held);
        if (pool->open[q] != NULL) {
            ASSERT(pool->open[q]->state == ITEMS__OPEN);
            live_bytes += items__segment_verify(pool->open[q], &held);
        }
    }
    held += pool->spare == NULL ? 0 : pool->spare->size;
    ASSERT(pool->n_taken > 0 || held == pool->bytes);
    items__pool_unlock(pool);
    return live_bytes;
}
