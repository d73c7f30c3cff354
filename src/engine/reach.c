/* SPDX-License-Identifier: BSD-3-Clause */
/* How full lines become, by trying: records of the sizes given are put into a
 * small table of lines that hold nothing but sizes, by the rules of edits.c
 * (first line, second line, one move), until as many have found no room as
 * would be too many in a stash. With two places for each record and b in a
 * line this is cuckoo hashing with buckets (Dietzfelbinger and Weidling, 2007):
 * what one move reaches is some 70 % of the places for b = 2, 82 % for 3, 93 %
 * for 5; and sizes that differ leave gaps, which only trying tells.
 *
 * A table that is packed is filled otherwise (build.c): first lines first, then
 * second ones, with up to two moves. That may become so full that too many
 * records are far; so what is tried is how many that would be, too. */
#include "engine/reach.h"

#include "base/assert.h"
#include "base/fold.h"
#include "engine/line.h"

#include <stdbool.h>
#include <string.h>

enum {
    LINES = 256, /* an index of one is a byte */
    DRAWS = 256, /* different ones */
    STASH_SHARE = 96,
    /* bits of the record that an average bit is in: then all is well */
    SMALL_BITS = 56,
    SMALL_BITS_PACKED = 40,
    PACK_LEAST = 128,       /* in 1/1024: less is not looked for */
    PACK_STASH_SHARE = 192, /* half of what a table lets in later */
    /* lines that 1,000 hits look at beyond their first ones: 150 are aimed
     * at, and real tables have had up to 9 more than was tried */
    PACK_FURTHER = 141,
    PACK_CROWDS = 4, /* one of LINES lines alone is off by some per cent */
    RECORDS_MAX = LINES * LINE_USABLE_BITS / LINE_RECORD_BITS
};

struct place {
    uint8_t size;  /* its index */
    uint8_t other; /* the other line */
};

struct crowd_line {
    uint16_t bits;
    uint8_t n, n_far;
    uint32_t far; /* bit i: place i's first line is the other one */
    struct place place[LINE_RECORDS_MAX];
};

struct crowd {
    const uint16_t *size;
    struct crowd_line line[LINES];
};

static bool
has_room(const struct crowd_line *line, unsigned bits, bool is_far)
{
    return line->bits + bits <= LINE_USABLE_BITS &&
        line->n < LINE_RECORDS_MAX && (!is_far || line->n_far < LINE_FAR_MAX);
}

static bool
add(struct crowd *crowd, unsigned at, struct place place, bool is_far)
{
    struct crowd_line *line = &crowd->line[at];
    unsigned bits = crowd->size[place.size];
    if (!has_room(line, bits, is_far)) {
        return false;
    }
    line->bits = (uint16_t)(line->bits + bits);
    line->far |= (uint32_t)is_far << line->n;
    line->n_far = (uint8_t)(line->n_far + is_far);
    line->place[line->n++] = place;
    return true;
}

/* The last one takes its place. */
static void
take_out(struct crowd *crowd, unsigned at, unsigned i)
{
    struct crowd_line *line = &crowd->line[at];
    unsigned last = --line->n;
    line->bits = (uint16_t)(line->bits - crowd->size[line->place[i].size]);
    line->n_far = (uint8_t)(line->n_far - (line->far >> i & 1));
    line->place[i] = line->place[last];
    line->far = (line->far & ~(1U << i)) | (line->far >> last & 1) << i;
    line->far &= ~(1U << last);
}

/* A record of a line that may make room there. */
static bool
is_victim(const struct crowd *crowd, const struct crowd_line *line, unsigned i,
    unsigned bits, bool is_far)
{
    int missing = (int)line->bits + (int)bits - LINE_USABLE_BITS;
    bool wants_far = is_far && line->n_far == LINE_FAR_MAX;
    return crowd->size[line->place[i].size] >= missing &&
        (!wants_far || (line->far >> i & 1) != 0);
}

/* Moves one record out of a line, so that there is room for so many bits; not
 * to the line `barred`. */
static bool
move_one(struct crowd *crowd, unsigned at, unsigned bits, bool is_far,
    unsigned barred)
{
    struct crowd_line *line = &crowd->line[at];
    for (unsigned i = line->n; i-- > 0;) {
        struct place place = line->place[i];
        bool was_far = (line->far >> i & 1) != 0;
        unsigned to = place.other;
        if (to == barred || !is_victim(crowd, line, i, bits, is_far)) {
            continue;
        }
        place.other = (uint8_t)at;
        if (add(crowd, to, place, !was_far)) {
            take_out(crowd, at, i);
            return true;
        }
    }
    return false;
}

/* The same after one has moved out of that one's other line. */
static bool
move_two(struct crowd *crowd, unsigned at, unsigned bits, bool is_far)
{
    struct crowd_line *line = &crowd->line[at];
    for (unsigned i = line->n; i-- > 0;) {
        struct place place = line->place[i];
        bool was_far = (line->far >> i & 1) != 0;
        unsigned to = place.other;
        if (is_victim(crowd, line, i, bits, is_far) &&
            move_one(crowd, to, crowd->size[place.size], !was_far, at)) {
            place.other = (uint8_t)at;
            take_out(crowd, at, i);
            return add(crowd, to, place, !was_far);
        }
    }
    return false;
}

/* One of the records that are tried. */
struct drawn {
    unsigned size, first, second;
    unsigned bits;
};

static struct drawn
drawn_make(const struct crowd *crowd, const uint8_t draw[DRAWS], uint32_t n)
{
    uint64_t random = fold_id(n);
    unsigned size = draw[random % DRAWS];
    unsigned first = random / DRAWS % LINES;
    unsigned apart = 1 + (unsigned)(random >> 32) % (LINES - 1);
    return (struct drawn){
        .size = size,
        .first = first,
        .second = (first + apart) % LINES,
        .bits = crowd->size[size],
    };
}

static bool
put_first(struct crowd *crowd, const struct drawn *it)
{
    struct place near = {(uint8_t)it->size, (uint8_t)it->second};
    return add(crowd, it->first, near, false);
}

static bool
put_second(struct crowd *crowd, const struct drawn *it)
{
    struct place far = {(uint8_t)it->size, (uint8_t)it->first};
    return add(crowd, it->second, far, true);
}

static bool
put(struct crowd *crowd, const struct drawn *it)
{
    return put_first(crowd, it) || put_second(crowd, it) ||
        (move_one(crowd, it->first, it->bits, false, LINES) &&
            put_first(crowd, it)) ||
        (move_one(crowd, it->second, it->bits, true, LINES) &&
            put_second(crowd, it));
}

static bool
put_thoroughly(struct crowd *crowd, const struct drawn *it)
{
    return put(crowd, it) ||
        (move_two(crowd, it->first, it->bits, false) &&
            put_first(crowd, it)) ||
        (move_two(crowd, it->second, it->bits, true) && put_second(crowd, it));
}

/* Fills lines until they are full; the bits that they then have. */
static uint64_t
fill(const uint16_t *size, const uint8_t draw[DRAWS])
{
    struct crowd crowd;
    uint64_t bits = 0;
    uint32_t refused = 0;
    crowd.size = size;
    memset(crowd.line, 0, sizeof crowd.line);
    for (uint32_t n = 1; refused * STASH_SHARE <= n; n++) {
        struct drawn it = drawn_make(&crowd, draw, n);
        if (put(&crowd, &it)) {
            bits += it.bits;
        } else {
            refused++;
        }
    }
    return bits;
}

/* How records were packed. */
struct packing {
    uint32_t n, n_far, n_refused;
};

/* Packs n records, those from draw number `from` on. */
static void
pack(const uint16_t *size, const uint8_t draw[DRAWS], uint32_t from,
    uint32_t n, struct packing *packing)
{
    struct crowd crowd;
    uint16_t late[RECORDS_MAX];
    uint32_t n_late = 0;
    ASSERT(n <= RECORDS_MAX);
    crowd.size = size;
    memset(crowd.line, 0, sizeof crowd.line);
    for (uint32_t i = 0; i < n; i++) {
        struct drawn it = drawn_make(&crowd, draw, from + i);
        if (!put_first(&crowd, &it)) {
            late[n_late++] = (uint16_t)i;
        }
    }
    for (uint32_t i = 0; i < n_late; i++) {
        struct drawn it = drawn_make(&crowd, draw, from + late[i]);
        packing->n_refused += !put_thoroughly(&crowd, &it);
    }
    for (unsigned i = 0; i < LINES; i++) {
        packing->n_far += crowd.line[i].n_far;
    }
    packing->n += n;
}

/* True where that many records can be packed: few find no room, and a hit
 * looks at few lines. */
static bool
packs(const uint16_t *size, const uint8_t draw[DRAWS], uint32_t n)
{
    struct packing it = {0};
    for (uint32_t i = 0; i < PACK_CROWDS; i++) {
        pack(size, draw, i * RECORDS_MAX, n, &it);
    }
    return it.n_refused * PACK_STASH_SHARE <= it.n &&
        (it.n_far + 2 * it.n_refused) * 1000 <= it.n * PACK_FURTHER;
}

/* Draws sizes as often as their weights say; false where the bits of records
 * are in ones of at most `small` bits on average. */
static bool
draw_sizes(const uint16_t size[REACH_SIZES],
    const uint64_t weight[REACH_SIZES], unsigned small, uint8_t draw[DRAWS])
{
    uint64_t n = 0, bits = 0, squares = 0, seen = 0;
    unsigned at = 0;
    for (unsigned i = 0; i < REACH_SIZES; i++) {
        n += weight[i];
        bits += weight[i] * size[i];
        squares += weight[i] * size[i] * size[i];
    }
    if (squares <= bits * small) {
        return false;
    }
    for (unsigned i = 0; i < REACH_SIZES; i++) {
        seen += weight[i];
        for (; at < seen * DRAWS / n; at++) {
            draw[at] = (uint8_t)i;
        }
    }
    return true;
}

unsigned
reach_load(
    const uint16_t size[REACH_SIZES], const uint64_t weight[REACH_SIZES])
{
    uint8_t draw[DRAWS];
    if (!draw_sizes(size, weight, SMALL_BITS, draw)) {
        return REACH_USUAL;
    }
    uint64_t bits =
        fill(size, draw) * 1024 / (LINES * (unsigned)LINE_USABLE_BITS);
    return bits > REACH_USUAL ? REACH_USUAL : (unsigned)bits;
}

unsigned
reach_packed(const uint16_t size[REACH_SIZES],
    const uint64_t weight[REACH_SIZES], unsigned most)
{
    uint8_t draw[DRAWS];
    uint64_t sum = 0;
    unsigned least = PACK_LEAST;
    if (!draw_sizes(size, weight, SMALL_BITS_PACKED, draw)) {
        return most;
    }
    for (unsigned i = 0; i < DRAWS; i++) {
        sum += size[draw[i]];
    }
    uint64_t places = (uint64_t)LINES * LINE_USABLE_BITS * DRAWS / sum;
    for (unsigned load = most; most - least > 4; load = (least + most) / 2) {
        if (packs(size, draw, (uint32_t)(places * load / 1024))) {
            least = load;
        } else {
            most = load;
        }
    }
    return least;
}
