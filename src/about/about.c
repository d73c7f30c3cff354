/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks and adds.
 *
 * A batch goes through three steps, so that its cache misses overlap: where is
 * each pair, and fetch that line; what is there; and for an add, set what is
 * missing. What is missing is logged between the last two: whoever sees a
 * member in a table sees it in the log, too, and waits for that to be committed
 * before he says so.
 *
 * A table that closes must have no member of the ids that are the next one's:
 * nobody would look for it there. Which these are depends on the largest id so
 * far, which others raise meanwhile. So who adds an id first raises `above`,
 * then looks at `limit`, and then takes the window:
 *
 *     who adds                     who closes (about_window.c)
 *     above >= id + 1              limit = above
 *     id >= limit? wait            above still the same? else again
 *     window                       log | window | limit = none
 *
 * All of it is seq_cst. Where the one who adds does not see the limit, the one
 * who closes sees its id, and the next table begins above that. Where it sees
 * no limit any more, it sees the new window. An id below the largest needs no
 * raise: that the largest was raised is seen, and so is the limit that its
 * raiser saw. */
#include "about/about_priv.h"

#include <string.h>

enum { PLACE_MASK = ABOUT_LINE_BITS - 1 };

/* A batch on its way: what is not found of a pair has no line. */
struct work {
    const struct about_pair *pair;
    size_t n;
    uint8_t *said;
    struct about_table *table[ABOUT_BATCH];
    _Atomic uint64_t *line[ABOUT_BATCH];
    uint64_t places[ABOUT_BATCH];
};

/* The word of a bit in its line, of places whose first one it is. */
static inline unsigned
word_of(uint64_t places)
{
    return (unsigned)(places & PLACE_MASK) / 64;
}

/* True where all bits are set. Without a branch a bit: which one is the first
 * that is missing nobody can foresee. */
static inline bool
has_all(const _Atomic uint64_t *line, uint64_t places, unsigned bits)
{
    uint64_t all = 1;
    for (unsigned i = 0; i < bits; i++) {
        /* acquire: who sees a bit sees it in the log, too */
        all &= atomic_load_explicit(
                   &line[word_of(places)], memory_order_acquire) >>
            (places & 63);
        places >>= ABOUT_PLACE_BITS;
    }
    return (all & 1) != 0;
}

/* Which words of the line have less than mask: a bit a word. */
static inline unsigned
missing_of(const _Atomic uint64_t *line, const uint64_t mask[ABOUT_LINE_WORDS])
{
    unsigned missing = 0;
#pragma GCC unroll 8
    for (unsigned word = ABOUT_LINE_WORDS; word-- > 0;) {
        /* acquire, and the last word first: see set_all */
        uint64_t has = atomic_load_explicit(&line[word], memory_order_acquire);
        missing |= (unsigned)((~has & mask[word]) != 0) << word;
    }
    return missing;
}

/* Sets all bits, word after word of those that miss some; true where it has
 * completed the last one of these. Of several who set the same bits at once
 * that is true for one at most: where they have the same last word, one of them
 * completes it. Where one has an earlier last word, he has seen the later one
 * complete before he looked at his, and all that comes before it has been
 * complete since then. bits is a constant where this is called, so that it has
 * no loop: a tenth of an add. */
static inline __attribute__((always_inline)) bool
set_all(_Atomic uint64_t *line, uint64_t places, unsigned bits)
{
    uint64_t mask[ABOUT_LINE_WORDS] = {0};
#pragma GCC unroll 7
    for (unsigned i = 0; i < bits; i++) {
        mask[word_of(places)] |= UINT64_C(1) << (places & 63);
        places >>= ABOUT_PLACE_BITS;
    }
    unsigned missing = missing_of(line, mask);
    if (missing == 0) {
        return false;
    }
    uint64_t had = 0;
    unsigned word = 0;
    while (missing != 0) {
        word = (unsigned)__builtin_ctz(missing);
        /* release: who sees it sees those that were complete before it */
        had = atomic_fetch_or_explicit(
            &line[word], mask[word], memory_order_acq_rel);
        missing &= missing - 1;
    }
    return (~had & mask[word]) != 0;
}

/* Finds the pairs that are to be found; said is ABOUT_OUT or ABOUT_BELOW then.
 * Those that have been refused stay so. */
static void
locate(const struct about *about, struct work *work)
{
    const struct about_window *window = about__window(about);
    for (size_t i = 0; i < work->n; i++) {
        const struct about_pair *pair = &work->pair[i];
        work->line[i] = NULL;
        if (work->said[i] == ABOUT_JUMP) {
            continue;
        }
        work->table[i] = about__find(window, pair->id);
        if (work->table[i] == NULL) {
            work->said[i] = ABOUT_BELOW;
            continue;
        }
        struct about_spot spot =
            about_shape_spot(&about->shape, pair->id, pair->member);
        ASSERT(spot.line < about->shape.lines);
        work->line[i] = work->table[i]->word + spot.line * ABOUT_LINE_WORDS;
        work->places[i] = spot.places;
        __builtin_prefetch((const void *)work->line[i], 0);
    }
}

/* Looks at all that have a line; returns how many are out. */
static size_t
look(const struct about *about, struct work *work)
{
    unsigned bits = about->shape.bits;
    size_t n_out = 0;
    for (size_t i = 0; i < work->n; i++) {
        if (work->line[i] != NULL) {
            bool in = has_all(work->line[i], work->places[i], bits);
            work->said[i] = in ? ABOUT_IN : ABOUT_OUT;
            n_out += !in;
        }
    }
    return n_out;
}

/* n pairs, one batch at most, as work; said is where what is said goes. Arrays
 * are filled by locate only. */
static void
begin(
    struct work *work, const struct about_pair *pair, size_t n, uint8_t *said)
{
    work->pair = pair;
    work->n = n < ABOUT_BATCH ? n : ABOUT_BATCH;
    work->said = said;
}

void
about_get(const struct about *about, const struct about_pair *pair, size_t n,
    uint8_t *out)
{
    for (size_t at = 0; at < n; at += ABOUT_BATCH) {
        struct work work;
        begin(&work, pair + at, n - at, out + at);
        memset(work.said, ABOUT_OUT, work.n);
        locate(about, &work);
        (void)look(about, &work);
    }
}

/* An id is to have a member: raises what is above all ids. */
static void
raise_above(struct about *about, uint64_t id)
{
    /* seq_cst, here and below: see the head of the file */
    uint64_t above = atomic_load(&about->above);
    uint64_t wanted = id == UINT64_MAX ? id : id + 1;
    while (above < wanted &&
        !atomic_compare_exchange_weak(&about->above, &above, wanted)) {
    }
}

/* False where the id is too far above the largest one. */
static bool
may_come(struct about *about, uint64_t id, uint64_t max_jump)
{
    uint64_t above = atomic_load(&about->above);
    return max_jump == 0 || above == 0 || id < above ||
        id - (above - 1) <= max_jump;
}

/* Judges all by max_jump, and sees to it that no table that closes will have
 * the others though it does not have their ids. */
static void
enter(struct about *about, struct work *work, uint64_t max_jump)
{
    for (size_t i = 0; i < work->n; i++) {
        uint64_t id = work->pair[i].id;
        if (!may_come(about, id, max_jump)) {
            work->said[i] = ABOUT_JUMP;
            continue;
        }
        work->said[i] = ABOUT_OUT;
        raise_above(about, id);
        if (id >= atomic_load(&about->limit)) {
            about__await(about);
        }
    }
}

/* Counts all that are out, before a bit of them is set (about_copy.c); true
 * where the newest table is full then. */
static bool
count(struct about *about, const struct work *work)
{
    const struct about_window *window = about__window(about);
    struct about_table *newest = window->table[window->n - 1];
    uint64_t n_newest = 0;
    for (size_t i = 0; i < work->n; i++) {
        if (work->line[i] == NULL || work->said[i] != ABOUT_OUT) {
            continue;
        }
        struct about_table *table = work->table[i];
        if (table == newest) {
            n_newest++;
        } else {
            /* relaxed, as below: see about_copy.c */
            atomic_fetch_add_explicit(&table->n_new, 1, memory_order_relaxed);
        }
    }
    if (n_newest == 0) {
        return false;
    }
    uint64_t n = n_newest +
        atomic_fetch_add_explicit(
            &newest->n_new, n_newest, memory_order_relaxed);
    return n >= atomic_load_explicit(&about->close_at, memory_order_relaxed);
}

static inline __attribute__((always_inline)) void
set_for(struct work *work, unsigned bits)
{
    for (size_t i = 0; i < work->n; i++) {
        if (work->line[i] != NULL && work->said[i] == ABOUT_OUT &&
            !set_all(work->line[i], work->places[i], bits)) {
            work->said[i] = ABOUT_IN; /* somebody was faster */
        }
    }
}

/* Sets the bits of all that are out. */
static void
set(const struct about *about, struct work *work)
{
    switch (about->shape.bits) {
    case 4:
        set_for(work, 4);
        break;
    case 5:
        set_for(work, 5);
        break;
    case 6:
        set_for(work, 6);
        break;
    default:
        ASSERT(about->shape.bits == ABOUT_BITS_MAX);
        set_for(work, ABOUT_BITS_MAX);
    }
}

/* Logs what is out; n_out of them, none: nothing. */
static uint64_t
log_out(struct about *about, const struct work *work, size_t n_out)
{
    struct about_pair out[ABOUT_BATCH];
    size_t n = 0, n_in = 0;
    uint64_t seq = 0;
    if (about->sink == NULL) {
        return 0;
    }
    for (size_t i = 0; i < work->n; i++) {
        if (work->line[i] != NULL && work->said[i] == ABOUT_OUT) {
            out[n++] = work->pair[i];
        }
        n_in += work->said[i] == ABOUT_IN;
    }
    ASSERT(n == n_out);
    if (n > 0) {
        seq = about->sink->add_fn(about->sink, out, n);
    }
    if (n_in > 0) {
        uint64_t last = about->sink->last_fn(about->sink);
        seq = last > seq ? last : seq;
    }
    return seq;
}

uint64_t
about_add(struct about *about, const struct about_pair *pair, size_t n,
    uint64_t max_jump, uint8_t *out)
{
    uint64_t seq = 0;
    for (size_t at = 0; at < n; at += ABOUT_BATCH) {
        struct work work;
        begin(&work, pair + at, n - at, out + at);
        enter(about, &work, max_jump);
        locate(about, &work);
        size_t n_out = look(about, &work);
        uint64_t logged = log_out(about, &work, n_out);
        seq = logged > seq ? logged : seq;
        bool is_full = n_out > 0 && count(about, &work);
        set(about, &work);
        if (is_full) {
            about__close(about);
        }
    }
    return seq;
}

void
about_redo(struct about *about, const struct about_pair *pair, size_t n)
{
    uint8_t said[ABOUT_BATCH];
    for (size_t at = 0; at < n; at += ABOUT_BATCH) {
        struct work work;
        begin(&work, pair + at, n - at, said);
        enter(about, &work, 0);
        locate(about, &work);
        if (look(about, &work) > 0) {
            (void)count(about, &work); /* the log says when tables close */
            set(about, &work);
        }
    }
}
