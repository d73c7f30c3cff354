/* SPDX-License-Identifier: BSD-3-Clause */
/* The index: parts by the first bits of the hash (extendible hashing: Fagin et
 * al., 1979), each an array of buckets of any number.
 *
 *   hash:   | depth bits: part | 32 bits: bucket |   ...   | 8 bits: tag |
 *
 *   part:   bucket = bits * n_buckets / 2^32; who finds it full goes on to the
 *           next one, the first behind the last
 *
 * A part that is full is made anew a twelfth larger, and one of
 * NAME_PART_NAMES_MAX names is cut in two: so buckets are never less than 89 %
 * full for long where names only come, however many there are, and no change
 * moves more than those of a part. The old part does not change any more and
 * rests.
 *
 * Readers: a name's number is stored before its tag, and what a reader takes
 * for a name it compares with the name. No name is moved within a part, so none
 * is overlooked. Of a bucket that a name has passed by the mark is set before
 * that name's tag; it stays until the part is made anew.
 *
 * What can go wrong: memory, in name_index_reserve only. */
#include "names/name_index.h"

#include "base/assert.h"
#include "base/err.h"

enum {
    LINE_BYTES = 64,
    TAGS_A_WORD = 8,
    GROW = 12,        /* by a twelfth */
    FULL_OF_32 = 31,  /* 32nds that are taken when a part grows */
    EMPTY_OF_32 = 16, /* and when it shrinks */
    RESTS = 2         /* that a change may add: a part, and the array */
};

#define LOW_BITS UINT64_C(0x7f7f7f7f7f7f7f7f)
#define SECOND_TAGS UINT64_C(0xffffffff) /* of the second word */
#define PASSED (UINT64_C(1) << 56)       /* likewise */

/* A top bit for each byte that is the tag, exactly. */
static uint64_t
marks_of(uint64_t tags, uint8_t tag)
{
    uint64_t other = tags ^ (UINT64_C(0x0101010101010101) * tag);
    return ~(((other & LOW_BITS) + LOW_BITS) | other | LOW_BITS);
}

static uint8_t
tag_of(uint64_t hash)
{
    return (uint8_t)(1 + hash % UINT8_MAX);
}

static uint64_t
part_of(uint64_t hash, unsigned depth)
{
    return depth == 0 ? 0 : hash >> (64 - depth);
}

static uint32_t
bucket_of(uint64_t hash, unsigned depth, uint32_t n_buckets)
{
    return (uint32_t)((hash << depth >> 32) * n_buckets >> 32);
}

void
name_look_start(
    struct name_look *look, const struct name_index *index, uint64_t hash)
{
    /* acquire: what it points to has been written before */
    const struct name_parts *parts =
        atomic_load_explicit(&index->parts, memory_order_acquire);
    look->hash = hash;
    look->place = &parts->part[part_of(hash, parts->depth)];
    __builtin_prefetch(look->place);
}

void
name_look_part(struct name_look *look)
{
    /* acquire: as above */
    look->part = atomic_load_explicit(look->place, memory_order_acquire);
    __builtin_prefetch(look->part);
}

void
name_look_bucket(struct name_look *look)
{
    const struct name_part *part = look->part;
    look->bucket = bucket_of(look->hash, part->depth, part->n_buckets);
    look->n_seen = 0;
    __builtin_prefetch(&part->bucket[look->bucket]);
}

void
name_look_begin(struct name_look *look)
{
    const struct name_bucket *bucket = &look->part->bucket[look->bucket];
    for (unsigned i = 0; i < 2; i++) {
        /* acquire: the number has been stored before its tag */
        uint64_t tags =
            atomic_load_explicit(&bucket->tags[i], memory_order_acquire);
        look->marks[i] =
            marks_of(i == 0 ? tags : tags & SECOND_TAGS, tag_of(look->hash));
    }
}

bool
name_look_next(struct name_look *look, uint32_t *number)
{
    for (;;) {
        const struct name_bucket *bucket = &look->part->bucket[look->bucket];
        for (unsigned i = 0; i < 2; i++) {
            if (look->marks[i] != 0) {
                unsigned slot = (unsigned)__builtin_ctzll(look->marks[i]) / 8;
                look->marks[i] &= look->marks[i] - 1;
                /* relaxed: what the tag says is not more */
                *number = atomic_load_explicit(
                    &bucket->number[i * TAGS_A_WORD + slot],
                    memory_order_relaxed);
                return true;
            }
        }
        /* acquire: as in name_look_begin, which may have seen less */
        uint64_t tags =
            atomic_load_explicit(&bucket->tags[1], memory_order_acquire);
        if (tags < PASSED || ++look->n_seen == look->part->n_buckets) {
            return false;
        }
        look->bucket =
            look->bucket + 1 == look->part->n_buckets ? 0 : look->bucket + 1;
        name_look_begin(look);
    }
}

static size_t
part_bytes(uint32_t n_buckets)
{
    return sizeof(struct name_part) + LINE_BYTES +
        (size_t)n_buckets * sizeof(struct name_bucket);
}

static size_t
parts_bytes(unsigned depth)
{
    return sizeof(struct name_parts) + (sizeof(struct name_part *) << depth);
}

static struct name_parts *
parts_of(const struct name_index *index)
{
    /* relaxed, here and below: only who holds the lock writes */
    return atomic_load_explicit(&index->parts, memory_order_relaxed);
}

static struct name_part *
find_part(const struct name_index *index, uint64_t hash)
{
    struct name_parts *parts = parts_of(index);
    return atomic_load_explicit(
        &parts->part[part_of(hash, parts->depth)], memory_order_relaxed);
}

/* The buckets of a part for that many names: the first of a row in which each
 * is a twelfth larger than the one before, so that it depends on nothing
 * else. */
static uint32_t
buckets_for(uint32_t n_names)
{
    uint32_t n = 1;
    while (n * NAME_BUCKET_SLOTS * FULL_OF_32 < n_names * 32) {
        n += n / GROW + 1;
    }
    return n;
}

static int
make_part(struct name_index *index, uint32_t n_names, unsigned depth,
    struct name_part **out)
{
    uint32_t n_buckets = buckets_for(n_names);
    void *memory;
    int err =
        name_account_take(index->account, part_bytes(n_buckets), &memory);
    if (err != 0) {
        return err;
    }
    struct name_part *part = memory;
    uintptr_t first = (uintptr_t)(part + 1);
    size_t behind = (LINE_BYTES - first % LINE_BYTES) % LINE_BYTES;
    part->n_buckets = n_buckets;
    part->depth = depth;
    part->bucket = (struct name_bucket *)(void *)((char *)(part + 1) + behind);
    index->bytes += name_account_bytes(part_bytes(n_buckets));
    *out = part;
    return 0;
}

/* A part that readers cannot find any more, or never could. */
static void
drop_part(struct name_index *index, struct name_part *part, bool was_seen)
{
    size_t bytes = part_bytes(part->n_buckets);
    index->bytes -= name_account_bytes(bytes);
    if (was_seen) {
        name_rest_block(index->rest, part, bytes);
    } else {
        name_account_give(index->account, part, bytes);
    }
}

static void
store_tag(struct name_bucket *bucket, unsigned slot, uint8_t tag)
{
    _Atomic uint64_t *word = &bucket->tags[slot / TAGS_A_WORD];
    uint64_t tags = atomic_load_explicit(word, memory_order_relaxed);
    unsigned shift = 8 * (slot % TAGS_A_WORD);
    tags &= ~(UINT64_C(0xff) << shift);
    /* release: see name_look_begin */
    atomic_store_explicit(
        word, tags | (uint64_t)tag << shift, memory_order_release);
}

/* The free slot of a bucket; NAME_BUCKET_SLOTS: none. */
static unsigned
free_slot(const struct name_bucket *bucket)
{
    for (unsigned i = 0; i < 2; i++) {
        uint64_t tags =
            atomic_load_explicit(&bucket->tags[i], memory_order_relaxed);
        uint64_t marks = marks_of(i == 0 ? tags : tags | ~SECOND_TAGS, 0);
        if (marks != 0) {
            return i * TAGS_A_WORD + (unsigned)__builtin_ctzll(marks) / 8;
        }
    }
    return NAME_BUCKET_SLOTS;
}

static void
put(struct name_part *part, uint64_t hash, uint32_t number)
{
    uint32_t at = bucket_of(hash, part->depth, part->n_buckets);
    ASSERT(part->n_names < part->n_buckets * NAME_BUCKET_SLOTS);
    for (;;) {
        struct name_bucket *bucket = &part->bucket[at];
        unsigned slot = free_slot(bucket);
        if (slot < NAME_BUCKET_SLOTS) {
            atomic_store_explicit(
                &bucket->number[slot], number, memory_order_relaxed);
            store_tag(bucket, slot, tag_of(hash));
            part->n_names++;
            return;
        }
        /* release: before the tag of the name that goes on */
        atomic_fetch_or_explicit(
            &bucket->tags[1], PASSED, memory_order_release);
        at = at + 1 == part->n_buckets ? 0 : at + 1;
    }
}

/* The numbers of a part; how many. */
static unsigned
list(const struct name_part *part, uint32_t number[NAME_PART_NAMES_MAX])
{
    unsigned n = 0;
    for (uint32_t at = 0; at < part->n_buckets; at++) {
        const struct name_bucket *bucket = &part->bucket[at];
        for (unsigned slot = 0; slot < NAME_BUCKET_SLOTS; slot++) {
            uint64_t tags = atomic_load_explicit(
                &bucket->tags[slot / TAGS_A_WORD], memory_order_relaxed);
            if ((tags >> 8 * (slot % TAGS_A_WORD) & 0xff) != 0) {
                ASSERT(n < NAME_PART_NAMES_MAX);
                number[n++] = atomic_load_explicit(
                    &bucket->number[slot], memory_order_relaxed);
            }
        }
    }
    ASSERT(n == part->n_names);
    return n;
}

/* Part is found by all hashes that begin as this one does. */
static void
publish(struct name_index *index, uint64_t hash, struct name_part *part)
{
    struct name_parts *parts = parts_of(index);
    unsigned below = parts->depth - part->depth;
    uint64_t first = part_of(hash, part->depth) << below;
    for (uint64_t i = first; i < first + (UINT64_C(1) << below); i++) {
        /* release: see name_index_look */
        atomic_store_explicit(&parts->part[i], part, memory_order_release);
    }
}

static int
deepen(struct name_index *index)
{
    struct name_parts *old = parts_of(index);
    void *memory;
    int err = name_account_take(
        index->account, parts_bytes(old->depth + 1), &memory);
    if (err != 0) {
        return err;
    }
    struct name_parts *parts = memory;
    parts->depth = old->depth + 1;
    for (uint64_t i = 0; i < UINT64_C(1) << parts->depth; i++) {
        atomic_store_explicit(&parts->part[i],
            atomic_load_explicit(&old->part[i / 2], memory_order_relaxed),
            memory_order_relaxed);
    }
    /* release: see name_index_look */
    atomic_store_explicit(&index->parts, parts, memory_order_release);
    index->bytes += name_account_bytes(parts_bytes(parts->depth));
    index->bytes -= name_account_bytes(parts_bytes(old->depth));
    name_rest_block(index->rest, old, parts_bytes(old->depth));
    return 0;
}

/* Makes a part anew, as one or as two. There is room to let three rest. */
static int
remake(struct name_index *index, uint64_t hash, unsigned n_parts)
{
    uint32_t number[NAME_PART_NAMES_MAX] = {0};
    uint64_t hashes[NAME_PART_NAMES_MAX];
    struct name_part *old = find_part(index, hash), *part[2] = {NULL, NULL};
    unsigned depth = old->depth + n_parts - 1;
    uint32_t n_names[2] = {0, 0};
    unsigned n = list(old, number);
    index->hash_fn(index->context, number, n, hashes);
    for (unsigned i = 0; i < n; i++) {
        n_names[part_of(hashes[i], depth) & (n_parts - 1)]++;
    }
    int err = 0;
    for (unsigned i = 0; err == 0 && i < n_parts; i++) {
        err = make_part(index, n_names[i] + 1, depth, &part[i]);
    }
    if (err == 0 && depth > parts_of(index)->depth) {
        err = deepen(index);
    }
    if (err != 0) {
        for (unsigned i = 0; i < n_parts && part[i] != NULL; i++) {
            drop_part(index, part[i], false);
        }
        return err;
    }
    for (unsigned i = 0; i < n; i++) {
        put(part[part_of(hashes[i], depth) & (n_parts - 1)], hashes[i],
            number[i]);
    }
    for (unsigned i = 0; i < n_parts; i++) {
        uint64_t first = (part_of(hash, old->depth) << (n_parts - 1)) + i;
        publish(index, depth == 0 ? 0 : first << (64 - depth), part[i]);
    }
    drop_part(index, old, true);
    return 0;
}

int
name_index_reserve(struct name_index *index, uint64_t hash)
{
    for (;;) {
        const struct name_part *part = find_part(index, hash);
        uint32_t slots = part->n_buckets * NAME_BUCKET_SLOTS;
        bool is_large = part->n_names >= NAME_PART_NAMES_MAX;
        if (!is_large && (part->n_names + 1) * 32 <= slots * FULL_OF_32) {
            return 0;
        }
        if (is_large && part->depth == NAME_INDEX_DEPTH_MAX) {
            return ERR_HOT_FULL;
        }
        int err = name_rest_reserve(index->rest, RESTS);
        if (err == 0) {
            err = remake(index, hash, is_large ? 2 : 1);
        }
        if (err != 0) {
            return err;
        }
    }
}

void
name_index_put(struct name_index *index, uint64_t hash, uint32_t number)
{
    put(find_part(index, hash), hash, number);
    index->n_names++;
}

/* Makes a part smaller where that can be done now. */
static void
shrink(struct name_index *index, uint64_t hash)
{
    const struct name_part *part = find_part(index, hash);
    uint32_t slots = part->n_buckets * NAME_BUCKET_SLOTS;
    if (part->n_names * 32 < slots * EMPTY_OF_32 && part->n_buckets > 1 &&
        name_rest_reserve(index->rest, RESTS) == 0) {
        (void)remake(index, hash, 1);
    }
}

void
name_index_take_out(struct name_index *index, uint64_t hash, uint32_t number)
{
    struct name_part *part = find_part(index, hash);
    uint32_t at = bucket_of(hash, part->depth, part->n_buckets);
    for (uint32_t seen = 0;; seen++) {
        struct name_bucket *bucket = &part->bucket[at];
        ASSERT(seen < part->n_buckets); /* it is there */
        for (unsigned slot = 0; slot < NAME_BUCKET_SLOTS; slot++) {
            uint64_t tags = atomic_load_explicit(
                &bucket->tags[slot / TAGS_A_WORD], memory_order_relaxed);
            uint8_t tag = tags >> 8 * (slot % TAGS_A_WORD) & 0xff;
            if (tag == tag_of(hash) &&
                atomic_load_explicit(
                    &bucket->number[slot], memory_order_relaxed) == number) {
                store_tag(bucket, slot, 0);
                part->n_names--;
                index->n_names--;
                shrink(index, hash);
                return;
            }
        }
        at = at + 1 == part->n_buckets ? 0 : at + 1;
    }
}

int
name_index_init(struct name_index *index)
{
    struct name_part *part;
    void *memory;
    index->n_names = index->bytes = 0;
    atomic_init(&index->parts, NULL);
    int err = name_account_take(index->account, parts_bytes(0), &memory);
    if (err != 0) {
        return err;
    }
    struct name_parts *parts = memory;
    atomic_init(&index->parts, parts);
    index->bytes = name_account_bytes(parts_bytes(0));
    err = make_part(index, 1, 0, &part);
    if (err == 0) {
        atomic_init(&parts->part[0], part);
    }
    return err;
}

void
name_index_fini(struct name_index *index)
{
    struct name_parts *parts = parts_of(index);
    if (parts == NULL) {
        return;
    }
    for (uint64_t i = 0; i < UINT64_C(1) << parts->depth;) {
        struct name_part *part =
            atomic_load_explicit(&parts->part[i], memory_order_relaxed);
        if (part == NULL) {
            break;
        }
        i += UINT64_C(1) << (parts->depth - part->depth);
        drop_part(index, part, false);
    }
    name_account_give(index->account, parts, parts_bytes(parts->depth));
    atomic_store_explicit(&index->parts, NULL, memory_order_relaxed);
}
