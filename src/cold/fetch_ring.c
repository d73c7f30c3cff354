/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads blocks for the thread that asks for them.
 *
 *   fetch_begin -> added -> fetch_ring_submit: one system call for all
 *                             -> the descriptor can be read
 *                             -> fetch_ring_reap: check, cache, answers
 *
 * The lookup that stands for a block is in the table of blocks that are waited
 * for, as those of the pool are; so others join it, on whatever thread, and are
 * answered by the ring's.
 *
 * A read that does not come whole, for whatever reason, is handed to the pool:
 * a thread makes it again and says what there is to say. So what a disk that
 * fails does to lookups is the pool's doing alone. */
#include "base/clock.h"
#include "base/disk.h"
#include "base/err.h"
#include "cold/fetch_priv.h"

/* A read under way. */
struct slot {
    struct disk_read read; /* first */
    struct fetch_lookup *lookup;
    struct slot *next_free;
    uint64_t begun_ns;
};

enum { RING_MAGIC = 0x5a08f3c6 };

struct fetch_ring {
    uint32_t magic; /* RING_MAGIC */
    struct fetch__hand hand;
    struct disk_ring *disk; /* owned */
    struct slot *free;
    struct disk_read *added, **end; /* not yet begun */
    unsigned n_under_way;           /* those added included */
    struct slot slot[FETCH_RING_READS];
    /* Of each slot, aligned to BLOCK_BYTES_MAX, somewhere in room. The slot
     * given back last is used next, so that memory that was never needed stays
     * out of the process. */
    uint8_t (*bytes)[BLOCK_BYTES_MAX];
    uint8_t room[(FETCH_RING_READS + 1) * BLOCK_BYTES_MAX];
};

/* The slot of a read that the disk gives back. */
static struct slot *
slot_of(struct fetch_ring *ring, struct disk_read *read)
{
    struct slot *slot = (struct slot *)read; /* its first member */

    ASSERT(slot >= ring->slot && slot < ring->slot + FETCH_RING_READS);
    ASSERT(slot->lookup->magic == FETCH_LOOKUP_MAGIC);
    ASSERT(ring->n_under_way > 0);
    return slot;
}

_Static_assert((int)BLOCK_BYTES_MAX == (int)DISK_DIRECT_BYTES,
    "reads past the page cache want aligned memory");

int
fetch_ring_create(
    struct fetch *fetch, struct disk_ring *disk, struct fetch_ring **out)
{
    struct fetch_ring *ring = alloc_zeroed(fetch->config.alloc, sizeof *ring);

    if (ring == NULL) {
        return ERR_NO_MEMORY;
    }
    ASSERT(disk != NULL);
    ring->magic = RING_MAGIC;
    ring->hand = (struct fetch__hand){fetch, {.alloc = fetch->config.alloc}};
    ring->disk = disk;
    ring->bytes = (uint8_t(*)[BLOCK_BYTES_MAX])(
        ring->room + -(uintptr_t)ring->room % BLOCK_BYTES_MAX);
    ring->end = &ring->added;
    for (unsigned i = FETCH_RING_READS; i > 0; i--) {
        ring->slot[i - 1].next_free = ring->free;
        ring->free = &ring->slot[i - 1];
    }
    fetch__lock(fetch);
    fetch->stats.rings++;
    fetch__unlock(fetch);
    *out = ring;
    return 0;
}

void
fetch_ring_destroy(struct fetch_ring **ring)
{
    struct fetch_ring *old = *ring;

    if (old == NULL) {
        return;
    }
    ASSERT(old->magic == RING_MAGIC && old->n_under_way == 0);
    ASSERT(old->added == NULL);
    old->magic = 0;
    fetch__lock(old->hand.fetch);
    old->hand.fetch->stats.rings--;
    fetch__unlock(old->hand.fetch);
    disk_ring_destroy(&old->disk);
    block_room_fini(&old->hand.room);
    alloc_free(old->hand.fetch->config.alloc, old, sizeof *old);
    *ring = NULL;
}

int
fetch_ring_fd(const struct fetch_ring *ring)
{
    return ring->disk->fd;
}

static void
free_slot(struct fetch_ring *ring, struct slot *slot)
{
    ASSERT(ring->n_under_way > 0);
    slot->lookup = NULL;
    slot->next_free = ring->free;
    ring->free = slot;
    ring->n_under_way--;
}

bool
fetch__ring_add(struct fetch_ring *ring, struct fetch_lookup *lookup)
{
    struct slot *slot = ring->free;

    mutex_assert_held(&ring->hand.fetch->lock);
    ASSERT(ring->magic == RING_MAGIC);
    ASSERT((slot == NULL) == (ring->n_under_way == FETCH_RING_READS));
    if (slot == NULL) {
        return false;
    }
    ring->free = slot->next_free;
    ring->n_under_way++;
    ASSERT(slot->lookup == NULL && lookup->magic == FETCH_LOOKUP_MAGIC);
    slot->lookup = lookup;
    segment__block_read(lookup->segment, lookup->key.block,
        ring->bytes[slot - ring->slot], &slot->read);
    *ring->end = &slot->read;
    ring->end = &slot->read.next;
    ring->hand.fetch->stats.reading++;
    return true;
}

/* Has the pool read the block instead. */
static void
hand_on(struct fetch_ring *ring, struct slot *slot)
{
    struct fetch *fetch = ring->hand.fetch;
    unsigned called;

    fetch__lock(fetch);
    ASSERT(fetch->stats.reading > 0);
    fetch->stats.reading--;
    fetch->stats.ring_failures++;
    fetch__enqueue(fetch, slot->lookup);
    called = fetch__count_calls(fetch);
    fetch__unlock(fetch);
    fetch__call_threads(fetch, called);
    free_slot(ring, slot);
}

/* The first of those added, as a list: as many as a turn may begin. */
static struct disk_read *
take_added(struct fetch_ring *ring)
{
    struct disk_read *first = ring->added;
    struct disk_read **link = &first;
    uint64_t now_ns = clock_monotonic_ns();

    for (unsigned n = 0; n < FETCH_RING_TURN && *link != NULL; n++) {
        ((struct slot *)*link)->begun_ns = now_ns;
        link = &(*link)->next;
    }
    ring->added = *link;
    *link = NULL;
    if (ring->added == NULL) {
        ring->end = &ring->added;
    }
    return first;
}

/* What has been added goes to the disk, as far as it takes it. */
static __attribute__((noinline)) bool
submit_added(struct fetch_ring *ring)
{
    struct disk_read *read, *next;

    ASSERT(ring->magic == RING_MAGIC);
    read = disk_ring_submit(ring->disk, take_added(ring));
    for (; read != NULL; read = next) {
        next = read->next;
        hand_on(ring, slot_of(ring, read));
    }
    return ring->added != NULL;
}

bool
fetch_ring_submit(struct fetch_ring *ring)
{
    /* nothing, mostly: asked in each turn of a worker's loop */
    return ring->added != NULL && submit_added(ring);
}

/* A read has come whole. */
static void
take(struct fetch_ring *ring, struct slot *slot, uint64_t now_ns)
{
    struct fetch_lookup *lookup = slot->lookup;
    struct fetch__came came = {.is_read = true,
        .by_ring = true,
        .is_direct = segment__is_direct(lookup->segment)};
    struct segment_fault fault;

    came.us = (now_ns - slot->begun_ns) / FETCH__NS_PER_US;
    came.err = segment__check_block(lookup->segment, lookup->key.block,
        slot->read.bytes, &came.block, &fault);
    fetch__take(&ring->hand, lookup, &came, &fault);
    fetch__answer(&ring->hand, lookup, &came);
    free_slot(ring, slot);
}

/* How many reads one call may answer. A disk that has many to do tells of many
 * at once. Were all of them answered together, their clients would ask together
 * again: the disk would have nothing to do until then, and afterwards the
 * thread. So half of them are answered first. Few are all answered, since each
 * call costs a turn of the loop, and so are those that no disk had to read. */
static unsigned
share_of(const struct fetch_ring *ring)
{
    unsigned half = ring->n_under_way / 2;

    return ring->n_under_way < FETCH_RING_TURN || half > FETCH_RING_TURN ||
            ring->disk->is_quick
        ? FETCH_RING_TURN
        : half;
}

void
fetch_ring_reap(struct fetch_ring *ring)
{
    struct disk_read *read = disk_ring_reap(ring->disk, share_of(ring));
    uint64_t now_ns = clock_monotonic_ns();

    ASSERT(ring->magic == RING_MAGIC);
    for (struct disk_read *next; read != NULL; read = next) {
        next = read->next;
        struct slot *slot = slot_of(ring, read);

        if (read->error != 0 || read->n_read != read->len) {
            hand_on(ring, slot);
        } else {
            take(ring, slot, now_ns);
        }
    }
}
