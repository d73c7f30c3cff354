/* SPDX-License-Identifier: BSD-3-Clause */
/* wal/seq and wal/history: terms that follow one another and such as cannot;
 * histories as bytes, cut off and with each bit flipped; and random logs of a
 * few nodes, which branch, are cut and follow one another: what two histories
 * say of the logs is what a look at each batch says. */
#include "wal/history.h"

#include "unit/check_help.h"

enum { SEEDS = 60, STEPS = 800, NODES = 4, BATCHES = 6000 };

START_TEST(test_seq)
{
    uint64_t seq = seq_make(3, 77);

    ck_assert_uint_eq(seq, UINT64_C(3) << 40 | 77);
    ck_assert_uint_eq(seq_term(seq), 3);
    ck_assert_uint_eq(seq_n(seq), 77);
    ck_assert_uint_eq(seq_first(3), UINT64_C(3) << 40 | 1);
    ck_assert(seq_is_of(seq, 3) && !seq_is_of(seq, 4));
    ck_assert(!seq_is_of(seq_make(3, 0), 3));
    ck_assert(seq_is_of(seq_make(3, SEQ_N_MAX), 3));
    ck_assert(!seq_is_of(seq_make(3, SEQ_N_MAX) + 1, 3));
    /* as a log file may begin: SEQ_GAP above what is due */
    ck_assert_uint_ge(seq_first(4) - (seq_make(3, SEQ_N_MAX) + 1), SEQ_GAP);
}
END_TEST

START_TEST(test_next_term)
{
    ck_assert_uint_eq(seq_next_term(0), 1);
    ck_assert_uint_eq(seq_next_term(1), 1);
    ck_assert_uint_eq(seq_next_term((UINT64_C(1) << 40) - SEQ_GAP - 1), 1);
    ck_assert_uint_eq(seq_next_term((UINT64_C(1) << 40) - SEQ_GAP), 2);
    ck_assert_uint_eq(seq_next_term(seq_make(7, 1)), 8);
    ck_assert_uint_eq(seq_next_term(seq_make(7, SEQ_N_MAX)), 8);
    ck_assert_uint_eq(
        seq_next_term(seq_make(SEQ_TERM_MAX - 1, 1)), SEQ_TERM_MAX);
    ck_assert_uint_eq(seq_next_term(seq_make(SEQ_TERM_MAX, 1)), 0);
    ck_assert_uint_eq(seq_next_term(UINT64_MAX), 0);
    ck_assert_uint_eq(seq_next_term(UINT64_MAX - SEQ_GAP), 0);
}
END_TEST

START_TEST(test_begin)
{
    struct history history = {0}, same;
    uint64_t old = UINT64_C(5) << 32 | 99;

    ck_assert_uint_eq(history_next_term(&history, old), 1);
    ck_assert(!history_begin(&history, 0, 9, old));
    ck_assert(!history_begin(&history, 1, 0, old));
    ck_assert(!history_begin(&history, SEQ_TERM_MAX + 1, 9, old));
    ck_assert(!history_begin(&history, 1, 9, UINT64_MAX));
    ck_assert(!history_begin(&history, 7, 9, seq_make(7, 1)));
    ck_assert_uint_eq(history.n, 0);
    ck_assert(history_begin(&history, 1, 9, old));
    ck_assert_uint_eq(history.n, 2);
    ck_assert_uint_eq(history.at[0].term, 0);
    ck_assert_uint_eq(history.at[0].last, old);
    ck_assert_uint_eq(history.at[0].branch, 9);
    ck_assert_uint_eq(history.at[1].last, HISTORY_OPEN);
    ck_assert(history_begin(&history, 4, 8, seq_make(1, 10)));
    ck_assert_uint_eq(history_next_term(&history, seq_make(4, 5)), 5);
    same = history;
    /* read twice */
    ck_assert(history_begin(&history, 1, 9, old));
    ck_assert(history_begin(&history, 4, 8, seq_make(1, 10)));
    /* what cannot be */
    ck_assert(!history_begin(&history, 4, 7, seq_make(1, 10)));
    ck_assert(!history_begin(&history, 4, 8, seq_make(1, 11)));
    ck_assert(!history_begin(&history, 3, 8, seq_make(1, 11)));
    ck_assert(!history_begin(&history, 5, 8, seq_make(1, 10)));
    ck_assert(!history_begin(&history, 5, 8, seq_make(4, 0)));
    ck_assert(!history_begin(&history, 5, 8, 0));
    ck_assert(!history_begin(&history, 5, 8, seq_make(4, SEQ_N_MAX) + 1));
    ck_assert_mem_eq(&history, &same, sizeof same);
}
END_TEST

START_TEST(test_find)
{
    struct history history = {0};

    ck_assert_ptr_null(history_find(&history, 1));
    ck_assert(history_begin(&history, 2, 9, 50));
    ck_assert(history_begin(&history, 4, 8, seq_make(2, 10)));
    ck_assert_ptr_null(history_find(&history, 0));
    ck_assert_ptr_eq(history_find(&history, 1), &history.at[0]);
    ck_assert_ptr_eq(history_find(&history, 50), &history.at[0]);
    ck_assert_ptr_null(history_find(&history, 51));
    ck_assert_ptr_null(history_find(&history, seq_make(1, 3)));
    ck_assert_ptr_null(history_find(&history, seq_make(2, 0)));
    ck_assert_ptr_eq(history_find(&history, seq_first(2)), &history.at[1]);
    ck_assert_ptr_eq(history_find(&history, seq_make(2, 10)), &history.at[1]);
    ck_assert_ptr_null(history_find(&history, seq_make(2, 11)));
    ck_assert_ptr_null(history_find(&history, seq_make(3, 1)));
    ck_assert_ptr_eq(history_find(&history, seq_make(4, 10)), &history.at[2]);
    ck_assert_ptr_null(history_find(&history, UINT64_MAX));
    history_cut(&history, seq_make(2, 3));
    ck_assert_uint_eq(history.n, 2);
    ck_assert_uint_eq(history.at[1].last, HISTORY_OPEN);
    ck_assert(history__is_sound(&history));
    history_cut(&history, 20);
    ck_assert_uint_eq(history.n, 1);
    ck_assert(history__is_sound(&history));
    /* another term may begin where it was cut */
    ck_assert(history_begin(&history, 3, 7, 20));
    ck_assert_uint_eq(history.at[0].branch, 9);
    ck_assert_uint_eq(history.at[0].last, 20);
    history_cut(&history, 0);
    ck_assert_uint_eq(history.n, 0);
}
END_TEST

START_TEST(test_follows)
{
    struct history history = {0};
    uint64_t restart = 7 + 1 + SEQ_GAP, last = restart + 4;

    ck_assert(!history_follows(&history, 0, 1));
    ck_assert(history_begin(&history, 2, 9, last));
    ck_assert(history_begin(&history, 4, 8, seq_make(2, 10)));
    ck_assert(history_follows(&history, 0, 1));
    ck_assert(history_follows(&history, 1, 2));
    ck_assert(!history_follows(&history, 1, 3));
    ck_assert(!history_follows(&history, 2, 2));
    ck_assert(!history_follows(&history, 2, 1));
    ck_assert(history_follows(&history, 7, restart));
    ck_assert(!history_follows(&history, 8, restart));
    ck_assert(!history_follows(&history, last, last + 1));
    ck_assert(history_follows(&history, last, seq_first(2)));
    ck_assert(!history_follows(&history, last - 1, seq_first(2)));
    ck_assert(!history_follows(&history, last, seq_make(2, 2)));
    ck_assert(!history_follows(&history, 0, seq_first(2)));
    ck_assert(history_follows(&history, seq_make(2, 4), seq_make(2, 5)));
    ck_assert(!history_follows(&history, seq_make(2, 4), seq_make(2, 6)));
    ck_assert(!history_follows(&history, seq_make(2, 10), seq_make(2, 11)));
    ck_assert(history_follows(&history, seq_make(2, 10), seq_first(4)));
    ck_assert(!history_follows(&history, seq_make(2, 9), seq_first(4)));
    ck_assert(!history_follows(&history, last, seq_first(4)));
    ck_assert(!history_follows(&history, seq_make(3, 1), seq_first(4)));
    history = (struct history){0};
    ck_assert(history_begin(&history, 1, 9, 0));
    ck_assert(history_follows(&history, 0, seq_first(1)));
    ck_assert(!history_follows(&history, 0, seq_make(1, 2)));
}
END_TEST

/* n terms, with a term 0 in front. */
static void
fill(struct history *history, unsigned n)
{
    uint64_t last = UINT64_C(3) << 32;

    *history = (struct history){0};
    for (uint64_t t = 1; t <= n; t++) {
        uint64_t term = t * t;

        ck_assert(history_begin(history, term, term * 0x12345678 + 1, last));
        last = seq_make(term, t << t % 30);
    }
}

START_TEST(test_many)
{
    struct history history, before;
    uint64_t seq;

    fill(&history, 200);
    ck_assert_uint_eq(history.n, HISTORY_TERMS);
    ck_assert_uint_eq(history.at[0].term, 137 * 137);
    ck_assert_ptr_null(history_find(&history, seq_make(136 * 136, 1)));
    /* an entry that is read again, and is older than all */
    ck_assert(history_begin(&history, 4, 1, 1));
    fill(&before, 136);
    ck_assert_int_eq(history_fit(&history, seq_make(200 * 200, 1), &before,
                         seq_make(136 * 136, 1), &seq),
        HISTORY_APART);
    fill(&before, 137);
    ck_assert_int_eq(history_fit(&history, seq_make(200 * 200, 1), &before,
                         seq_make(137 * 137, 1), &seq),
        HISTORY_FITS);
}
END_TEST

static bool
is_same(const struct history *a, const struct history *b)
{
    return a->n == b->n && memcmp(a->at, b->at, a->n * sizeof a->at[0]) == 0;
}

START_TEST(test_bytes)
{
    for (unsigned n = 0; n <= 70; n += n < 4 ? 1 : 22) {
        struct history history, read;
        uint8_t bytes[HISTORY_BYTES_MAX];
        size_t len;

        fill(&history, n);
        len = history_put(&history, bytes);
        for (size_t cut = 0; cut <= len; cut++) {
            char *copy = copy_of((const char *)bytes, cut);
            const uint8_t *at = (const uint8_t *)copy;
            bool is_right = history_get(&at, at + cut, &read);

            ck_assert_int_eq(is_right, cut == len);
            ck_assert_uint_eq(
                (size_t)(at - (const uint8_t *)copy), is_right ? len : 0);
            free(copy);
        }
        ck_assert(is_same(&history, &read));
        for (size_t bit = 0; bit < 8 * len; bit++) {
            const uint8_t *at = bytes;

            bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
            if (history_get(&at, bytes + len, &read)) {
                ck_assert(history__is_sound(&read));
                ck_assert(!is_same(&history, &read));
            }
            bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
        }
    }
}
END_TEST

START_TEST(test_unsound)
{
    struct history right, wrong;

    fill(&right, 5);
    ck_assert(history__is_sound(&right));
    for (unsigned what = 0; what < 8; what++) {
        wrong = right;
        switch (what) {
        case 0:
            wrong.at[3].term = wrong.at[2].term;
            break;
        case 1:
            wrong.at[5].term = SEQ_TERM_MAX + 1;
            break;
        case 2:
            wrong.at[3].branch = 0;
            break;
        case 3:
            wrong.at[5].last = seq_first(25);
            break;
        case 4:
            wrong.at[4].last = HISTORY_OPEN;
            break;
        case 5:
            wrong.at[3].last = seq_first(16);
            break;
        case 6:
            wrong.at[3].last = seq_make(9, 0);
            break;
        default:
            wrong.at[0].last = seq_first(1);
            break;
        }
        ck_assert_msg(!history__is_sound(&wrong), "%u", what);
    }
}
END_TEST

/* A log as it is: each batch with what is in it. */
struct node {
    struct history history;
    bool is_primary; /* of its newest term */
    size_t n;
    struct {
        uint64_t seq, content;
    } at[BATCHES];
};

static uint64_t
end_of(const struct node *node)
{
    return node->n == 0 ? 0 : node->at[node->n - 1].seq;
}

static void
append(struct node *node, uint64_t seq, uint64_t content)
{
    ck_assert_uint_lt(node->n, BATCHES);
    node->at[node->n].seq = seq;
    node->at[node->n++].content = content;
}

static void
begin(struct node *node, uint64_t *state, uint64_t *content)
{
    uint64_t last = end_of(node), branch = ++*content;
    uint64_t term = history_next_term(&node->history, last);

    term += random_below(state, 2);
    ck_assert(history_begin(&node->history, term, branch, last));
    append(node, seq_first(term), branch);
    node->is_primary = true;
}

/* The follower becomes a beginning of the other log. */
static void
follow(struct node *node, const struct node *other, uint64_t *state)
{
    size_t same = 0;
    uint64_t seq, really;
    enum history_fit fit = history_fit(
        &other->history, end_of(other), &node->history, end_of(node), &seq);

    while (same < node->n && same < other->n &&
        node->at[same].content == other->at[same].content) {
        ck_assert_uint_eq(node->at[same].seq, other->at[same].seq);
        same++;
    }
    really = same == 0 ? 0 : node->at[same - 1].seq;
    for (size_t i = 0; i < other->n; i++) {
        ck_assert(history_find(&other->history, other->at[i].seq) == NULL ||
            i == 0 ||
            history_find(&other->history, other->at[i - 1].seq) == NULL ||
            history_follows(
                &other->history, other->at[i - 1].seq, other->at[i].seq));
    }
    if (fit == HISTORY_APART) {
        /* nothing in common, or nothing that is remembered */
        ck_assert(same == 0 || history_find(&other->history, really) == NULL ||
            history_find(&node->history, really) == NULL);
        node->n = 0;
        node->history = other->history;
    } else {
        ck_assert_uint_eq(seq, really);
        ck_assert_int_eq(fit == HISTORY_FITS, same == node->n);
        node->n = same;
        history_cut(&node->history, seq);
    }
    node->is_primary = false;
    while (node->n < other->n && random_below(state, 20) > 0) {
        append(node, other->at[node->n].seq, other->at[node->n].content);
    }
    node->history = other->history;
    history_cut(&node->history, end_of(node));
}

START_TEST(test_random)
{
    static struct node node[NODES];
    uint64_t state = (uint64_t)_i, content = 0;

    memset(node, 0, sizeof node);
    for (uint64_t seq = 1; _i % 2 == 0 && seq < 10; seq++) {
        append(&node[0], seq, ++content); /* from before the first term */
    }
    begin(&node[0], &state, &content);
    for (unsigned step = 0; step < STEPS; step++) {
        struct node *one = &node[random_below(&state, NODES)];
        struct node *other = &node[random_below(&state, NODES)];

        switch (random_below(&state, 8)) {
        case 0:
            if (one->history.n > 0) {
                begin(one, &state, &content);
            }
            break;
        case 1:
        case 2:
        case 3:
            if (one->is_primary) {
                append(one, end_of(one) + 1, ++content);
            }
            break;
        default:
            if (one != other && other->history.n > 0) {
                follow(one, other, &state);
            }
        }
        ck_assert(history__is_sound(&one->history));
        ck_assert(history_is_end(&one->history, end_of(one)));
    }
}
END_TEST

int
main(void)
{
    const TTest *tests[] = {test_seq, test_next_term, test_begin, test_find,
        test_follows, test_many, test_bytes, test_unsound};
    TCase *tcase = tcase_create("history");

    for (size_t i = 0; i < COUNT_OF(tests); i++) {
        tcase_add_test(tcase, tests[i]);
    }
    tcase_add_loop_test(tcase, test_random, 0, SEEDS);
    return run_case("history", tcase);
}
