/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ITEMS_POOL_H
#define ITEMS_POOL_H

#include "base/alloc.h"
#include "base/mutex.h"
#include "items/items.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The memory of items: segments that are filled one item after the other and
 * freed whole, and the account of all bytes against the limit. Inside
 * src/items only. The functions lock the pool themselves: any thread; a
 * stripe's lock may be held. pool.c has the picture. */

enum items_mark {
    ITEMS__LINKED = 1, /* in its stripe's table */
    ITEMS__FETCHED = 2,
    ITEMS__STALE = 4,
    ITEMS__WON = 8 /* a reader was told to make it anew */
};

enum {
    ITEMS__HEAT_MAX = 3,
    ITEMS__BACK_BITS = 17, /* of entry.back */
    ITEMS__UNIT = 8        /* entries are aligned to it */
};

/* One item: header, key, value. */
struct entry {
    /* the stripe's lock: */
    struct entry *next; /* in its bucket */
    /* the stripe's lock, and written only while refs is 1: */
    struct item item;
    /* the stripe's lock: */
    uint32_t expiry_s; /* ITEMS_NEVER, or a time */
    uint32_t used_s;   /* last read or stored */
    uint32_t born;     /* flushes before it, or before what it is an heir of */
    /* written by the pool, under its lock, never after: */
    uint32_t room;                    /* bytes for the value */
    unsigned back : ITEMS__BACK_BITS; /* units back to its segment */
    unsigned is_hidden : 1;           /* its key is no client's */
    unsigned stripe : 6;
    unsigned key_len : 8;
    /* the table's reference (or the maker's) and one a pin; grows only under
     * the stripe's lock */
    _Atomic uint16_t refs;
    /* the stripe's lock: */
    uint8_t marks; /* enum items_mark */
    uint8_t heat;  /* uses that were not yet spent on staying */
    char bytes[];  /* key, value */
};

enum items_queue {
    ITEMS__FRESH, /* as stored */
    ITEMS__KEPT,  /* was used while it was fresh */
    ITEMS__QUEUES
};

/* segment.c has the steps from one to the other. */
enum segment_state {
    ITEMS__OPEN,   /* is being filled */
    ITEMS__SEALED, /* in its queue */
    ITEMS__SPARSE, /* the same, and much of it is dead: in the sparse queue */
    ITEMS__LENT,   /* something in it is lent: out of the queues until it is
                    * given back, and not cleaned */
    ITEMS__TAKEN,  /* somebody cleans it */
    ITEMS__FREE,   /* nothing lives in it: the spare one, or about to go */
    ITEMS__STATES
};

enum { SEGMENT_MAGIC = 0x5e69a10c };

struct segment {
    uint32_t magic; /* SEGMENT_MAGIC */
    /* read-only: */
    bool is_large; /* made for one entry that fits no common one */
    size_t size;   /* this header included */
    /* the pool's lock; also whoever has taken it: */
    struct segment *newer; /* in its queue */
    struct segment *older;
    size_t used;       /* this header included; constant once it is not open */
    size_t live_bytes; /* of entries that somebody refers to */
    uint64_t n_live;
    uint64_t n_loans; /* of its entries */
    uint64_t classes; /* bit c: an item of class c was put here */
    uint32_t made_s;
    uint64_t number; /* of segments made before it */
    enum items_queue queue;
    enum segment_state state;
};

struct segment_queue {
    struct segment *newest;
    struct segment *oldest;
    uint64_t bytes;
};

struct pool {
    /* read-only: */
    const struct alloc *alloc; /* NULL: pages of the system, and the heap */
    size_t segment_bytes;
    unsigned full_sixteenths; /* a segment with less of it live is sparse */
    bool keeps;
    struct mutex lock;
    /* under lock: */
    pthread_cond_t cleaned; /* n_taken has become smaller */
    unsigned n_taken;
    uint64_t n_made;
    struct segment *open[ITEMS__QUEUES];
    struct segment_queue sealed[ITEMS__QUEUES];
    struct segment_queue sparse;
    struct segment_queue lent;
    uint64_t n_loans;
    uint64_t lent_bytes;   /* of the segments with loans, whole */
    struct segment *spare; /* a free common one, or NULL */
    struct segment *gone;  /* by older: unmapped when the lock is left */
    uint64_t bytes;        /* all of it: segments, blocks */
    uint64_t limit_bytes;  /* sinks to items__pool_aim as bytes do */
    uint64_t limit_wanted_bytes;
};

/* What items__pool_take makes. */
struct items_take {
    size_t key_len;
    size_t room; /* bytes for the value, at least */
    unsigned stripe;
    unsigned class_;
    uint64_t now_s;
    bool is_hidden;
    enum items_queue queue;
    bool moves; /* the entry takes the place of one in a segment that is being
                 * cleaned: it may use the reserve */
    bool is_over_out; /* the limit has been lowered, and more is held */
};

size_t items__entry_bytes(size_t key_len, size_t room);
char *items__entry_value(struct entry *entry);
struct segment *items__segment_of(struct entry *entry);

/* Of segment.c, as what comes next. The bytes before the first entry. */
size_t items__segment_head_bytes(void);

/* The segment is in that state from now on; aborts where no step leads there
 * from the one it is in. */
void items__segment_move(struct segment *segment, enum segment_state to);

/* Asserts what can be seen of a segment alone; adds its size to *held. Returns
 * its live bytes. */
uint64_t items__segment_verify(struct segment *segment, uint64_t *held);

/* The entry behind at (NULL: the first one) in a segment that is not open, or
 * NULL. */
struct entry *items__segment_next(
    struct segment *segment, const struct entry *at);

void items__pool_init(struct pool *pool, const struct items_config *config);
void items__pool_fini(struct pool *pool); /* no entry may be left */

/* Whether such an entry could be had in an empty cache. */
bool items__pool_could_fit(struct pool *pool, size_t key_len, size_t room);

/* A new entry: sizes, one reference, all else 0; NULL where the limit or the
 * system has no room for it. */
struct entry *items__pool_take(struct pool *pool, struct items_take *take);

/* Drops a reference; with the last one the bytes are dead. */
void items__pool_release(struct pool *pool, struct entry *entry);

/* A zeroed block beside the segments, or NULL; over the limit only as far as
 * the reserve goes. */
void *items__pool_block(struct pool *pool, size_t bytes);
void items__pool_block_free(struct pool *pool, void *block, size_t bytes);

/* The segment to clean next, now the caller's, or NULL where there is none;
 * waits where others clean all there are. sparse_out: it was chosen for what
 * is dead in it. With a pool that keeps, only such. */
struct segment *items__pool_victim(struct pool *pool, bool *sparse_out);

/* The oldest sealed segment whatever is in it, or NULL: for a pool that keeps,
 * to look for what has expired. */
struct segment *items__pool_oldest(struct pool *pool);

/* Takes the segment back: free where nothing lives in it (true), else the
 * newest of the queue, or of the sparse ones. cleaned: what lives in it could
 * not go, so it is not sparse. */
bool items__pool_return(struct pool *pool, struct segment *segment,
    enum items_queue queue, bool cleaned);

bool items__pool_is_over(struct pool *pool);
void items__pool_set_limit(struct pool *pool, uint64_t limit_bytes);
uint64_t items__pool_bytes(struct pool *pool);
uint64_t items__pool_limit(struct pool *pool); /* the wanted one */

/* Time of the oldest segment that may have an item of a class. */
void items__pool_ages(struct pool *pool, uint64_t oldest_s[ITEMS_CLASSES]);

/* Asserts what can be seen without the stripes; blocks_bytes: what the tables
 * say they have. Returns live bytes. */
uint64_t items__pool_verify(struct pool *pool, uint64_t blocks_bytes);

#endif
