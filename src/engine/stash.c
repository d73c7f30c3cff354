/* SPDX-License-Identifier: BSD-3-Clause */

/* The stash: open addressing over a heap of bit-packed entries, in one block.
 *
 *   word[0]        word[places / 8]   word[heap_word]
 *   | tag 0, 1 ... | place 0, 1 ... | entry | (dead) | entry ... | free     |
 *                                   0                     heap_end  heap_bytes
 *
 * A place is the byte of the heap where its entry begins, in as many bits as
 * the heap's length has. Its tag has 8: 0 where the place is free, else some
 * of the key's hash. Probing is linear, over eight tags at a time, and looks
 * at an entry where the tag is equal; so a look ends after a cache line or
 * two, for a key that is there with two more. Removal shifts back, so there
 * are no tombstones (Knuth, TAOCP vol. 3, 6.4, algorithms L and R).
 *
 *   entry:  key (key_bits) | 0, mask (4)  | columns of the mask, slot 0 first
 *                          | 1, mask (16) |
 *   column: width-1 (3), or 7 (3) and width-1 (6) | code without its top bit,
 *                                                   which is 1 (width-1)
 *
 * Bits are counted from the low end of word[0] on; an entry ends with its
 * byte. Three columns of a few bits and a key of 27 take 6 bytes.
 *
 * Invariants (stash_verify):
 * - count places are in use, of at most 7/8, so that every search ends; from
 *   the home of a key to its place none is free; its tag is the key's.
 * - heap_end is the sum of the lengths of the entries and dead.
 *
 * Happy path of a put: write the entry behind the last one, then its place. An
 * entry that gets no longer is rewritten where it is; one that gets longer
 * moves, and leaves dead bytes, which only a copy (stash_grown) wins back. A
 * code that becomes one of as many bits is exchanged where it is (stash_flip).
 *
 * Readers look on while words change. All of the block behind the head is read
 * by word_load(), which never leaves it, and all loops are bounded by what is
 * in the head, which never changes, or by 16 columns: garbage in, garbage out.
 * Memory order: words are loaded with acquire and stored with release, as
 * line_read.h says for its portable variant; so a reader that sees a word of
 * a change sees the odd counter that was stored before it. */

#include "engine/stash.h"

#include "base/assert.h"
#include "base/err.h"

#include <assert.h>
#include <stdatomic.h>

enum {
    KEY_BITS_MAX = 64,
    MASK_BITS = 16,
    MASK_BITS_FEW = 4,  /* when the upper slots are all 0 */
    WIDTH_BITS_FEW = 3, /* width-1, below WIDTH_ESCAPE */
    WIDTH_ESCAPE = 7,   /* width-1 follows in WIDTH_BITS */
    WIDTH_BITS = 6,
    COLUMN_EXTRA_BITS = 8, /* at most, over the width of its code */
    COLUMN_USUAL_BITS = 2, /* usually */
    ENTRY_BITS_MAX = KEY_BITS_MAX + 1 + MASK_BITS +
        SHAPES_COLUMNS_MAX * (SHAPES_WIDTH_MAX + COLUMN_EXTRA_BITS),
    ENTRY_WORDS_MAX = (ENTRY_BITS_MAX + 63) / 64,

    TAG_BITS = 8,
    TAGS_A_WORD = 64 / TAG_BITS, /* the number of places is a multiple */
    LOAD_NUMERATOR = 7,          /* at most 7/8 of the places are in use */
    LOAD_DENOMINATOR = 8,

    GROW_DIVISOR = 6,
    GROW_RECORDS_MIN = 4,
    GROW_BYTES_MIN = 24,
    RECORDS_MAX = 1 << 24 /* offsets of 32 bits reach all their entries */
};

struct stash {
    struct pool_garbage garbage;
    /* never changes */
    uint32_t n_words;
    uint32_t places;
    uint32_t heap_word; /* where the heap begins */
    uint8_t key_bits;
    uint8_t place_bits; /* at most 32 */
    /* the writer's */
    uint32_t count;
    uint32_t heap_end; /* bytes */
    uint32_t dead;     /* bytes below heap_end in no entry */
    _Atomic uint64_t word[];
};

static_assert(offsetof(struct stash, word) == STASH_HEAD_BYTES,
    "the head is what the header says");
static_assert((uint64_t)RECORDS_MAX * (ENTRY_WORDS_MAX * 8) < UINT32_MAX,
    "bytes of the heap are counted in 32 bits");

/* An entry in the making. */
struct entry {
    uint64_t word[ENTRY_WORDS_MAX];
    unsigned bits;
};

static uint64_t
low_bits(unsigned n)
{
    return n == 0 ? 0 : UINT64_MAX >> (64 - n);
}

static uint64_t
word_load(const struct stash *stash, uint64_t i)
{
    /* acquire: see the head of this file */
    return i < stash->n_words
        ? atomic_load_explicit(&stash->word[i], memory_order_acquire)
        : 0;
}

/* Exchanges the bits of mask in word i. */
static void
word_edit(struct stash *stash, uint64_t i, uint64_t mask, uint64_t bits)
{
    ASSERT(i < stash->n_words);
    /* relaxed: only the writer stores */
    uint64_t word =
        atomic_load_explicit(&stash->word[i], memory_order_relaxed);
    word = (word & ~mask) | (bits & mask);
    /* release: see the head of this file */
    atomic_store_explicit(&stash->word[i], word, memory_order_release);
}

/* n (0..64) bits from bit at on. */
static uint64_t
bits_get(const struct stash *stash, uint64_t at, unsigned n)
{
    unsigned shift = at % 64;
    uint64_t bits = word_load(stash, at / 64) >> shift;
    if (shift + n > 64) {
        bits |= word_load(stash, at / 64 + 1) << (64 - shift);
    }
    return bits & low_bits(n);
}

static void
bits_set(struct stash *stash, uint64_t at, unsigned n, uint64_t bits)
{
    unsigned shift = at % 64;
    uint64_t mask = low_bits(n);
    word_edit(stash, at / 64, mask << shift, bits << shift);
    if (shift + n > 64) {
        word_edit(
            stash, at / 64 + 1, mask >> (64 - shift), bits >> (64 - shift));
    }
}

static void
entry_add(struct entry *entry, unsigned n, uint64_t bits)
{
    unsigned shift = entry->bits % 64;
    unsigned i = entry->bits / 64;
    entry->bits += n;
    if (n == 0) {
        return;
    }
    entry->word[i] |= bits << shift;
    if (shift + n > 64) {
        entry->word[i + 1] |= bits >> (64 - shift);
    }
}

static unsigned
entry_bytes(const struct entry *entry)
{
    return (entry->bits + 7) / 8;
}

static void
entry_make(
    struct entry *entry, unsigned key_bits, uint64_t key, const uint64_t *code)
{
    uint32_t mask = 0;
    *entry = (struct entry){.bits = 0};
    for (unsigned i = 0; i < SHAPES_COLUMNS_MAX; i++) {
        mask |= (code[i] == 0 ? 0U : 1U) << i;
    }
    bool few = mask >> MASK_BITS_FEW == 0;
    entry_add(entry, key_bits, key);
    entry_add(entry, 1, few ? 0 : 1);
    entry_add(entry, few ? MASK_BITS_FEW : MASK_BITS, mask);
    for (; mask != 0; mask &= mask - 1) {
        uint64_t bits = code[__builtin_ctz(mask)];
        unsigned rest = shapes_bits(bits) - 1;
        if (rest < WIDTH_ESCAPE) {
            entry_add(entry, WIDTH_BITS_FEW, rest);
        } else {
            entry_add(entry, WIDTH_BITS_FEW, WIDTH_ESCAPE);
            entry_add(entry, WIDTH_BITS, rest);
        }
        entry_add(entry, rest, bits & low_bits(rest));
    }
}

static uint64_t
heap_bytes(const struct stash *stash)
{
    uint64_t bytes = (uint64_t)(stash->n_words - stash->heap_word) * 8;
    uint64_t reach = low_bits(stash->place_bits);
    return bytes < reach ? bytes : reach;
}

/* The first bit of what lies at a byte of the heap. */
static uint64_t
heap_bit(const struct stash *stash, uint64_t byte)
{
    return (uint64_t)stash->heap_word * 64 + byte * 8;
}

static void
heap_write(struct stash *stash, uint64_t byte, const struct entry *entry)
{
    uint64_t at = heap_bit(stash, byte);
    for (unsigned done = 0; done < entry->bits; done += 64) {
        unsigned n = entry->bits - done < 64 ? entry->bits - done : 64;
        bits_set(stash, at + done, n, entry->word[done / 64]);
    }
}

static uint64_t
heap_key(const struct stash *stash, uint64_t byte)
{
    return bits_get(stash, heap_bit(stash, byte), stash->key_bits);
}

/* The mask of an entry; *at: from its begin to behind that. */
static uint64_t
mask_read(const struct stash *stash, uint64_t *at)
{
    uint64_t mask_at = *at + stash->key_bits + 1;
    bool few = bits_get(stash, mask_at - 1, 1) == 0;
    unsigned mask_bits = few ? MASK_BITS_FEW : MASK_BITS;
    *at = mask_at + mask_bits;
    return bits_get(stash, mask_at, mask_bits);
}

/* How many bits of a code there are behind its width; *at: from that to
 * them. */
static unsigned
width_read(const struct stash *stash, uint64_t *at)
{
    unsigned rest = (unsigned)bits_get(stash, *at, WIDTH_BITS_FEW);
    *at += WIDTH_BITS_FEW;
    if (rest == WIDTH_ESCAPE) {
        rest = (unsigned)bits_get(stash, *at, WIDTH_BITS);
        *at += WIDTH_BITS;
    }
    return rest;
}

/* Reads the codes of the entry at a byte of the heap; its length in bytes. */
static unsigned
heap_read(const struct stash *stash, uint64_t byte, uint64_t *code)
{
    uint64_t begin = heap_bit(stash, byte);
    uint64_t at = begin;
    uint64_t mask = mask_read(stash, &at);
    for (unsigned i = 0; i < SHAPES_COLUMNS_MAX; i++) {
        code[i] = 0;
        if ((mask >> i & 1) == 0) {
            continue;
        }
        unsigned rest = width_read(stash, &at);
        code[i] = UINT64_C(1) << rest | bits_get(stash, at, rest);
        at += rest;
    }
    return (unsigned)((at - begin + 7) / 8);
}

static uint32_t
tag_get(const struct stash *stash, uint64_t place)
{
    return (uint32_t)bits_get(stash, place * TAG_BITS, TAG_BITS);
}

/* The first bit of a place. */
static uint64_t
place_bit(const struct stash *stash, uint64_t place)
{
    return (uint64_t)stash->places * TAG_BITS + place * stash->place_bits;
}

static uint32_t
place_get(const struct stash *stash, uint64_t place)
{
    return (uint32_t)bits_get(
        stash, place_bit(stash, place), stash->place_bits);
}

/* Lets the place be that of the entry at byte, whose key has that tag. */
static void
place_set(struct stash *stash, uint64_t place, uint32_t tag, uint64_t byte)
{
    bits_set(stash, place_bit(stash, place), stash->place_bits, byte);
    bits_set(stash, place * TAG_BITS, TAG_BITS, tag);
}

/* Where the search for a key begins, and what its tag is. */
struct home {
    uint32_t place;
    uint32_t tag; /* 1..255 */
};

/* By splitmix64's finisher (Steele, Lea and Flood, 2014), scaled to the number
 * of places. Every number of places has an order of its own: else the records
 * of a large stash, which come in the order of their homes, would all go to
 * the same few places of a small one. */
static struct home
home_of(const struct stash *stash, uint64_t key)
{
    key ^= stash->places * UINT64_C(0x9e3779b97f4a7c15);
    key = (key ^ (key >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    key = (key ^ (key >> 27)) * UINT64_C(0x94d049bb133111eb);
    key ^= key >> 31;
    uint32_t tag = (uint32_t)(key & low_bits(TAG_BITS));
    return (struct home){
        .place = (uint32_t)((key >> 32) * stash->places >> 32),
        .tag = tag == 0 ? 1 : tag};
}

static uint32_t
place_after(const struct stash *stash, uint32_t place)
{
    return place + 1 < stash->places ? place + 1 : 0;
}

/* The top bit of each byte is set where that of word is equal to tag. Exact in
 * every byte: no carry leaves one (Warren, Hacker's Delight, 6-1). */
static uint64_t
tags_equal(uint64_t word, uint32_t tag)
{
    const uint64_t low = UINT64_C(0x7f7f7f7f7f7f7f7f);
    uint64_t other = word ^ tag * UINT64_C(0x0101010101010101);
    return ~(((other & low) + low) | other | low);
}

/* Sets *place to where the key is, or to the free one where the search ended;
 * true and the byte of its entry where it is. */
static bool
search(const struct stash *stash, uint64_t key, struct home home,
    uint32_t *place, uint32_t *byte)
{
    uint32_t n_words = stash->places / TAGS_A_WORD;
    uint32_t at = home.place / TAGS_A_WORD;
    /* of the first word those from home on; and at the end those before */
    uint64_t wanted = UINT64_MAX << home.place % TAGS_A_WORD * TAG_BITS;
    /* while the tags are on their way; it is inside */
    __builtin_prefetch(&stash->word[place_bit(stash, home.place) / 64]);
    for (uint32_t left = n_words + 1; left > 0; left--) {
        uint64_t word = word_load(stash, at);
        uint64_t free = tags_equal(word, 0) & wanted;
        uint64_t equal = tags_equal(word, home.tag) & wanted;
        /* not those behind the first that is free */
        for (equal &= free - 1; equal != 0; equal &= equal - 1) {
            unsigned bit = (unsigned)__builtin_ctzll(equal);
            *place = at * TAGS_A_WORD + bit / TAG_BITS;
            *byte = place_get(stash, *place);
            if (heap_key(stash, *byte) == key) {
                return true;
            }
        }
        if (free != 0) {
            unsigned bit = (unsigned)__builtin_ctzll(free);
            *place = at * TAGS_A_WORD + bit / TAG_BITS;
            return false;
        }
        wanted = UINT64_MAX;
        at = at + 1 < n_words ? at + 1 : 0;
    }
    return false;
}

/* A stash with room for n records in a heap of that many bytes. */
static int
make(struct pool *pool, unsigned key_bits, uint64_t n, uint64_t heap,
    enum pool_purpose purpose, struct stash **out)
{
    ASSERT(key_bits >= 1 && key_bits <= KEY_BITS_MAX);
    if (n > RECORDS_MAX) {
        return ERR_NO_MEMORY;
    }
    unsigned place_bits = shapes_bits(heap);
    uint64_t places = n * LOAD_DENOMINATOR / LOAD_NUMERATOR + 1;
    places = (places + TAGS_A_WORD - 1) / TAGS_A_WORD * TAGS_A_WORD;
    uint64_t heap_word = (places * (TAG_BITS + place_bits) + 63) / 64;
    /* An odd number of words is what the C library's heap has no loss on. */
    uint64_t n_words = (heap_word + (heap + 7) / 8) | 1;
    size_t bytes = STASH_HEAD_BYTES + (size_t)n_words * 8;
    void *block;
    int err = pool_take_block(pool, bytes, purpose, &block);
    if (err != 0) {
        return err;
    }
    struct stash *stash = block;
    stash->n_words = (uint32_t)n_words;
    stash->places = (uint32_t)places;
    stash->heap_word = (uint32_t)heap_word;
    stash->key_bits = (uint8_t)key_bits;
    stash->place_bits = (uint8_t)place_bits;
    *out = stash;
    return 0;
}

int
stash_create(struct pool *pool, unsigned key_bits, size_t n,
    unsigned usual_bits, enum pool_purpose purpose, struct stash **out)
{
    ASSERT(usual_bits <= SHAPES_COLUMNS_MAX * SHAPES_WIDTH_MAX);
    uint64_t records = n == 0 ? 1 : n;
    uint64_t bits = key_bits + usual_bits + 1;
    uint64_t usual = bits + MASK_BITS_FEW + 3 * COLUMN_USUAL_BITS;
    uint64_t most = bits + MASK_BITS + SHAPES_COLUMNS_MAX * COLUMN_EXTRA_BITS;
    uint64_t heap = records * ((usual + 7) / 8);
    uint64_t one = (most + 7) / 8;
    return make(
        pool, key_bits, records, heap > one ? heap : one, purpose, out);
}

static void
free_now(struct pool *pool, struct pool_garbage *garbage)
{
    struct stash *stash = (struct stash *)garbage;
    pool_give_block(pool, stash, stash_bytes(stash));
}

void
stash_destroy(struct pool *pool, struct stash **stash)
{
    if (*stash != NULL) {
        free_now(pool, &(*stash)->garbage);
        *stash = NULL;
    }
}

void
stash_retire(struct pool *pool, struct stash *stash)
{
    if (stash != NULL) {
        pool_retire(pool, &stash->garbage, stash_bytes(stash), free_now);
    }
}

bool
stash_find(const struct stash *stash, uint64_t key, uint64_t *code)
{
    uint32_t place, byte;
    if (!search(stash, key, home_of(stash, key), &place, &byte)) {
        return false;
    }
    heap_read(stash, byte, code);
    return true;
}

bool
stash_seek(const struct stash *stash, uint64_t key, unsigned column,
    struct stash_code *out)
{
    uint32_t place, byte;
    if (!search(stash, key, home_of(stash, key), &place, &byte)) {
        return false;
    }
    uint64_t at = heap_bit(stash, byte);
    uint64_t mask = mask_read(stash, &at);
    if ((mask >> column & 1) == 0) {
        return false;
    }
    unsigned rest = width_read(stash, &at);
    for (mask &= low_bits(column); mask != 0; mask &= mask - 1) {
        at += rest;
        rest = width_read(stash, &at);
    }
    out->code = UINT64_C(1) << rest | bits_get(stash, at, rest);
    out->at = at;
    return true;
}

void
stash_flip(struct stash *stash, const struct stash_code *found, uint64_t code)
{
    unsigned rest = shapes_bits(found->code) - 1;
    ASSERT(shapes_bits(code) == rest + 1);
    if (rest > 0) {
        bits_set(stash, found->at, rest, code & low_bits(rest));
    }
}

/* Puts an entry at the end of the heap; where it begins, or -1. */
static int64_t
append(struct stash *stash, const struct entry *entry)
{
    uint32_t byte = stash->heap_end;
    if (byte + (uint64_t)entry_bytes(entry) > heap_bytes(stash)) {
        return -1;
    }
    heap_write(stash, byte, entry);
    stash->heap_end += entry_bytes(entry);
    return byte;
}

/* Gives the entry at byte, whose place is known, other codes. */
static bool
replace(struct stash *stash, uint32_t place, uint32_t byte,
    const struct entry *entry)
{
    uint64_t code[SHAPES_COLUMNS_MAX];
    uint32_t old = heap_read(stash, byte, code);
    uint32_t new = entry_bytes(entry);
    bool last = byte + old == stash->heap_end;
    if (new <= old || (last && byte + (uint64_t) new <= heap_bytes(stash))) {
        heap_write(stash, byte, entry);
        if (last) {
            stash->heap_end = byte + new;
        } else {
            stash->dead += old - new;
        }
        return true;
    }
    int64_t at = append(stash, entry);
    if (at < 0) {
        return false;
    }
    place_set(stash, place, tag_get(stash, place), (uint64_t)at);
    stash->dead += old;
    ASSERT(stash->dead <= stash->heap_end);
    return true;
}

bool
stash_put(struct stash *stash, uint64_t key, const uint64_t *code)
{
    ASSERT((key & ~low_bits(stash->key_bits)) == 0);
    uint32_t place, byte;
    struct entry entry;
    struct home home = home_of(stash, key);
    entry_make(&entry, stash->key_bits, key, code);
    if (search(stash, key, home, &place, &byte)) {
        return replace(stash, place, byte, &entry);
    }
    uint64_t most = (uint64_t)stash->places * LOAD_NUMERATOR;
    if ((stash->count + UINT64_C(1)) * LOAD_DENOMINATOR > most) {
        return false;
    }
    int64_t at = append(stash, &entry);
    if (at < 0) {
        return false;
    }
    place_set(stash, place, home.tag, (uint64_t)at);
    stash->count++;
    return true;
}

/* Frees a place, after shifting back whoever was pushed beyond it. */
static void
place_clear(struct stash *stash, uint32_t hole)
{
    uint32_t place = hole;
    for (;;) {
        place = place_after(stash, place);
        uint32_t tag = tag_get(stash, place);
        if (tag == 0) {
            break;
        }
        uint32_t byte = place_get(stash, place);
        uint32_t home = home_of(stash, heap_key(stash, byte)).place;
        uint32_t from_home =
            place >= home ? place - home : place + stash->places - home;
        uint32_t from_hole =
            place >= hole ? place - hole : place + stash->places - hole;
        if (from_home >= from_hole) {
            place_set(stash, hole, tag, byte);
            hole = place;
        }
    }
    bits_set(stash, (uint64_t)hole * TAG_BITS, TAG_BITS, 0);
}

bool
stash_remove(struct stash *stash, uint64_t key)
{
    uint64_t code[SHAPES_COLUMNS_MAX];
    uint32_t place, byte;
    if (!search(stash, key, home_of(stash, key), &place, &byte)) {
        return false;
    }
    uint32_t old = heap_read(stash, byte, code);
    place_clear(stash, place);
    ASSERT(stash->count > 0 && byte + old <= stash->heap_end);
    stash->count--;
    if (byte + old == stash->heap_end) {
        stash->heap_end = byte;
    } else {
        stash->dead += old;
    }
    if (stash->count == 0) {
        stash->heap_end = stash->dead = 0;
    }
    return true;
}

static void
copy_record(void *context, uint64_t key, const uint64_t *code)
{
    ASSERT(stash_put(context, key, code));
}

int
stash_grown(struct pool *pool, const struct stash *stash, const uint64_t *code,
    enum pool_purpose purpose, struct stash **out)
{
    struct entry entry;
    entry_make(&entry, stash->key_bits, 0, code);
    uint64_t n = stash->count + UINT64_C(1);
    uint64_t bytes = stash->heap_end - stash->dead + entry_bytes(&entry);
    uint64_t more = n / GROW_DIVISOR;
    uint64_t more_bytes = bytes / GROW_DIVISOR;
    n += more < GROW_RECORDS_MIN ? GROW_RECORDS_MIN : more;
    bytes += more_bytes < GROW_BYTES_MIN ? GROW_BYTES_MIN : more_bytes;
    struct stash *copy;
    int err = make(pool, stash->key_bits, n, bytes, purpose, &copy);
    if (err != 0) {
        return err;
    }
    stash_each(stash, copy_record, copy);
    ASSERT(copy->count == stash->count && copy->dead == 0);
    *out = copy;
    return 0;
}

size_t
stash_count(const struct stash *stash)
{
    return stash == NULL ? 0 : stash->count;
}

size_t
stash_bytes(const struct stash *stash)
{
    return stash == NULL ? 0 : STASH_HEAD_BYTES + (size_t)stash->n_words * 8;
}

bool
stash_next(
    const struct stash *stash, uint32_t *place, uint64_t *key, uint64_t *code)
{
    for (; *place < stash->places; ++*place) {
        if (tag_get(stash, *place) != 0) {
            uint32_t byte = place_get(stash, *place);
            heap_read(stash, byte, code);
            *key = heap_key(stash, byte);
            return true;
        }
    }
    return false;
}

void
stash_each(const struct stash *stash,
    void (*record_fn)(void *context, uint64_t key, const uint64_t *code),
    void *context)
{
    uint64_t key, code[SHAPES_COLUMNS_MAX];
    for (uint32_t place = 0; stash_next(stash, &place, &key, code); place++) {
        record_fn(context, key, code);
    }
}

void
stash_verify(const struct stash *stash)
{
    uint64_t bytes = stash->dead;
    uint32_t count = 0;
    ASSERT(stash->places % TAGS_A_WORD == 0);
    ASSERT(place_bit(stash, stash->places) <= (uint64_t)stash->heap_word * 64);
    ASSERT(stash->heap_end <= heap_bytes(stash));
    for (uint32_t place = 0; place < stash->places; place++) {
        if (tag_get(stash, place) == 0) {
            continue;
        }
        uint64_t code[SHAPES_COLUMNS_MAX];
        uint32_t found, at;
        uint32_t byte = place_get(stash, place);
        uint64_t key = heap_key(stash, byte);
        unsigned length = heap_read(stash, byte, code);
        ASSERT(byte + (uint64_t)length <= stash->heap_end);
        ASSERT(search(stash, key, home_of(stash, key), &found, &at));
        ASSERT(found == place && at == byte);
        bytes += length;
        count++;
    }
    ASSERT(count == stash->count);
    ASSERT(bytes == stash->heap_end);
    ASSERT((uint64_t)count * LOAD_DENOMINATOR <=
        (uint64_t)stash->places * LOAD_NUMERATOR);
}
