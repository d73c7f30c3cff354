/* SPDX-License-Identifier: BSD-3-Clause */
/* How full lines become, by trying: records of the sizes given are put into a
 * small table of lines that hold nothing but sizes, by the rules of edits.c
 * (first line, second line, one move), until as many have found no room as
 * would be too many in a stash. With two places for each record and b in a
 * line this is cuckoo hashing with buckets (Dietzfelbinger and Weidling, 2007):
 * what one move reaches is some 70 % of the places for b = 2, 82 % for 3, 93 %
 * for 5; and sizes that differ leave gaps, which only trying tells. */
#include "engine/reach.h"

#include "base/fold.h"
#include "engine/line.h"

#include <stdbool.h>
#include <string.h>

enum {
    LINES = 256, /* an index of one is a byte */
    DRAWS = 256, /* different ones */
    STASH_SHARE = 96,
    /* bits of the record that an average bit is in: then all is well */
    SMALL_BITS = 56
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

/* Moves one record out of a line, so that there is room for so many bits. */
static bool
move_one(struct crowd *crowd, unsigned at, unsigned bits, bool is_far)
{
    struct crowd_line *line = &crowd->line[at];
    int missing = (int)line->bits + (int)bits - LINE_USABLE_BITS;
    bool wants_far = is_far && line->n_far == LINE_FAR_MAX;
    for (unsigned i = line->n; i-- > 0;) {
        struct place place = line->place[i];
        bool was_far = (line->far >> i & 1) != 0;
        unsigned to = place.other;
        if (crowd->size[place.size] < missing || (wants_far && !was_far)) {
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

static bool
put(struct crowd *crowd, unsigned size, unsigned first, unsigned second)
{
    struct place near = {(uint8_t)size, (uint8_t)second};
    struct place far = {(uint8_t)size, (uint8_t)first};
    unsigned bits = crowd->size[size];
    return add(crowd, first, near, false) || add(crowd, second, far, true) ||
        (move_one(crowd, first, bits, false) &&
            add(crowd, first, near, false)) ||
        (move_one(crowd, second, bits, true) && add(crowd, second, far, true));
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
        uint64_t random = fold_id(n);
        unsigned i = draw[random % DRAWS];
        unsigned first = random / DRAWS % LINES;
        unsigned apart = 1 + (unsigned)(random >> 32) % (LINES - 1);
        if (put(&crowd, i, first, (first + apart) % LINES)) {
            bits += size[i];
        } else {
            refused++;
        }
    }
    return bits;
}

unsigned
reach_load(
    const uint16_t size[REACH_SIZES], const uint64_t weight[REACH_SIZES])
{
    uint8_t draw[DRAWS];
    uint64_t n = 0, bits = 0, squares = 0, seen = 0;
    unsigned at = 0;
    for (unsigned i = 0; i < REACH_SIZES; i++) {
        n += weight[i];
        bits += weight[i] * size[i];
        squares += weight[i] * size[i] * size[i];
    }
    if (squares <= bits * SMALL_BITS) {
        return REACH_USUAL;
    }
    for (unsigned i = 0; i < REACH_SIZES; i++) {
        seen += weight[i];
        for (; at < seen * DRAWS / n; at++) {
            draw[at] = (uint8_t)i;
        }
    }
    bits = fill(size, draw) * 1024 / (LINES * (unsigned)LINE_USABLE_BITS);
    return bits > REACH_USUAL ? REACH_USUAL : (unsigned)bits;
}
