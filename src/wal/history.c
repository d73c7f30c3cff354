/* SPDX-License-Identifier: BSD-3-Clause */
/* A short list of terms, oldest first. Each term but the newest has ended, and
 * ended below the first number of the next one, so that a number is of the
 * last term that begins not above it.
 *
 *     term 0        term 5            term 9
 *     1 ....... 77  5<<40|1 .. |200   9<<40|1 ..... open
 *
 * What can go wrong: terms that cannot follow one another, damage. */
#include "wal/history.h"

#include "base/assert.h"
#include "base/bytes.h"

#include <string.h>

_Static_assert(HISTORY_TERMS < 0x80, "their number is one byte");

static uint64_t
first_of(const struct history_term *term)
{
    return term->term == 0 ? 1 : seq_first(term->term);
}

/* True where a batch of that number may be one of the term. */
static bool
can_have(const struct history_term *term, uint64_t seq)
{
    return term->term == 0 ? seq >= 1 && seq_next_term(seq) != 0
                           : seq_is_of(seq, term->term);
}

static const struct history_term *
newest(const struct history *history)
{
    return &history->at[history->n - 1];
}

/* True where `next` can follow `term`, which has ended. */
static bool
can_follow(const struct history_term *term, const struct history_term *next)
{
    return next->term > term->term && can_have(term, term->last) &&
        next->term >= seq_next_term(term->last);
}

bool
history__is_sound(const struct history *history)
{
    if (history->n > HISTORY_TERMS) {
        return false;
    }
    for (unsigned i = 0; i < history->n; i++) {
        const struct history_term *term = &history->at[i];

        if (term->term > SEQ_TERM_MAX || term->branch == 0) {
            return false;
        }
        if (i + 1 == history->n ? term->last != HISTORY_OPEN
                                : !can_follow(term, term + 1)) {
            return false;
        }
    }
    return true;
}

bool
history_is_end(const struct history *history, uint64_t last)
{
    return history->n == 0 ||
        (last != HISTORY_OPEN && can_have(newest(history), last));
}

uint64_t
history_next_term(const struct history *history, uint64_t last)
{
    uint64_t term = seq_next_term(last);
    uint64_t least = history->n == 0 ? 1 : newest(history)->term + 1;

    ASSERT(history_is_end(history, last));
    if (term == 0 || least > SEQ_TERM_MAX) {
        return 0;
    }
    return term > least ? term : least;
}

/* True where the entry says what is known, or what is older than that. */
static bool
is_known(const struct history *history, uint64_t term, uint64_t branch,
    uint64_t last)
{
    for (unsigned i = 0; i < history->n; i++) {
        if (history->at[i].term == term) {
            return history->at[i].branch == branch &&
                (i == 0 || history->at[i - 1].last == last);
        }
    }
    return history->n == HISTORY_TERMS && term < history->at[0].term;
}

static void
add(struct history *history, uint64_t term, uint64_t branch)
{
    if (history->n == HISTORY_TERMS) {
        memmove(history->at, history->at + 1,
            (HISTORY_TERMS - 1) * sizeof history->at[0]);
        history->n--;
    }
    history->at[history->n++] = (struct history_term){
        .term = term, .branch = branch, .last = HISTORY_OPEN};
}

bool
history_begin(
    struct history *history, uint64_t term, uint64_t branch, uint64_t last)
{
    uint64_t least;

    ASSERT(history__is_sound(history));
    if (term == 0 || term > SEQ_TERM_MAX || branch == 0) {
        return false;
    }
    if (history->n > 0 && term <= newest(history)->term) {
        return is_known(history, term, branch, last);
    }
    if (!history_is_end(history, last)) {
        return false;
    }
    least = history_next_term(history, last);
    if (least == 0 || term < least) {
        return false;
    }
    if (history->n == 0 && last > 0) {
        add(history, 0, branch);
    }
    if (history->n > 0) {
        history->at[history->n - 1].last = last;
    }
    add(history, term, branch);
    ASSERT(history__is_sound(history));
    return true;
}

const struct history_term *
history_find(const struct history *history, uint64_t seq)
{
    for (unsigned i = history->n; i-- > 0;) {
        const struct history_term *term = &history->at[i];

        if (seq >= first_of(term)) {
            return seq <= term->last && can_have(term, seq) ? term : NULL;
        }
    }
    return NULL;
}

bool
history_follows(const struct history *history, uint64_t seq, uint64_t next)
{
    const struct history_term *from = history_find(history, seq);
    const struct history_term *to = history_find(history, next);

    if (to == NULL || next <= seq || (seq > 0 && from == NULL)) {
        return false;
    }
    if (from != to && next == first_of(to)) {
        return to == history->at ? seq == 0
                                 : from == to - 1 && seq == from->last;
    }
    if (to->term == 0) {
        return next == seq + 1 || next - seq > SEQ_GAP;
    }
    return from == to && next == seq + 1;
}

uint64_t
history__before(const struct history *history, uint64_t seq)
{
    ASSERT(seq > 0);
    for (unsigned i = history->n; i-- > 0;) {
        if (seq == first_of(&history->at[i])) {
            return i > 0                     ? history->at[i - 1].last
                : history->n < HISTORY_TERMS ? 0
                                             : seq - 1;
        }
    }
    return seq - 1;
}

void
history_cut(struct history *history, uint64_t seq)
{
    const struct history_term *term = history_find(history, seq);

    ASSERT(seq == 0 || term != NULL);
    history->n = seq == 0 ? 0 : (unsigned)(term - history->at) + 1;
    if (history->n > 0) {
        history->at[history->n - 1].last = HISTORY_OPEN;
    }
}

/* The newest term of node that history has, too; NULL: there is none. */
static const struct history_term *
common(const struct history *history, const struct history *node,
    const struct history_term **here)
{
    unsigned i = history->n, j = node->n;

    while (i > 0 && j > 0) {
        const struct history_term *a = &history->at[i - 1];
        const struct history_term *b = &node->at[j - 1];

        if (a->term == b->term && a->branch == b->branch) {
            *here = a;
            return b;
        }
        i -= a->term >= b->term;
        j -= b->term >= a->term;
    }
    return NULL;
}

static uint64_t
lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

enum history_fit
history_fit(const struct history *history, uint64_t last,
    const struct history *node, uint64_t node_last, uint64_t *seq)
{
    const struct history_term *here = NULL;
    const struct history_term *there = common(history, node, &here);

    ASSERT(history_is_end(history, last));
    ASSERT(history_is_end(node, node_last));
    *seq = 0;
    if (there == NULL) {
        return node_last == 0 ? HISTORY_FITS : HISTORY_APART;
    }
    *seq = lesser(lesser(here->last, last), lesser(there->last, node_last));
    return *seq == node_last ? HISTORY_FITS : HISTORY_CUT;
}

static uint64_t
before_first(const struct history_term *term)
{
    return first_of(term) - 1;
}

size_t
history_put(const struct history *history, uint8_t *out)
{
    uint64_t before = 0;
    size_t len = 0;

    ASSERT(history__is_sound(history));
    out[len++] = (uint8_t)history->n;
    for (unsigned i = 0; i < history->n; i++) {
        const struct history_term *term = &history->at[i];

        len += bytes_put_varint(out + len, term->term - before);
        bytes_put_u64(out + len, term->branch);
        len += 8;
        if (i + 1 < history->n) {
            len +=
                bytes_put_varint(out + len, term->last - before_first(term));
        }
        before = term->term;
    }
    ASSERT(len <= HISTORY_BYTES_MAX);
    return len;
}

static bool
get_term(const uint8_t **in, const uint8_t *end, uint64_t before,
    bool is_newest, struct history_term *out)
{
    uint64_t distance, n;

    if (!bytes_get_varint(in, end, &distance) ||
        distance > SEQ_TERM_MAX - before || end - *in < 8) {
        return false;
    }
    out->term = before + distance;
    out->branch = bytes_get_u64(*in);
    *in += 8;
    out->last = HISTORY_OPEN;
    return is_newest ||
        (bytes_get_varint(in, end, &n) &&
            !__builtin_add_overflow(before_first(out), n, &out->last));
}

bool
history_get(const uint8_t **in, const uint8_t *end, struct history *out)
{
    const uint8_t *at = *in;
    uint64_t before = 0;

    *out = (struct history){0};
    if (at == end || *at > HISTORY_TERMS) {
        return false;
    }
    out->n = *at++;
    for (unsigned i = 0; i < out->n; i++) {
        if (!get_term(&at, end, before, i + 1 == out->n, &out->at[i])) {
            return false;
        }
        before = out->at[i].term;
    }
    if (!history__is_sound(out)) {
        return false;
    }
    *in = at;
    return true;
}
