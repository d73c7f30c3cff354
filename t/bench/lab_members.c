/* SPDX-License-Identifier: BSD-3-Clause */

/* Members: who likes a post. As many likes as there are to be, in batches, of a
 * hundredth as many posts, whose popularity is a power law (the n-th has
 * n^-0.8), by users below 2^29 or another power of 2; an add of a like is
 * counted in its post. Then likes that are there already are added again, and
 * pages are asked for: whether each of 100 posts has a user, half of them
 * having theirs. */

#include "bench/fail.h"
#include "bench/lab.h"
#include "bench/rounds.h"

#include <math.h>
#include <stdlib.h>

enum {
    LIKES = 10000000,
    LIKES_QUICK = 100000,
    LIKES_A_POST = 100,
    POPULARITY = 5, /* the post is u^5, u uniform */
    POST_STEP = 37, /* between ids */
    SPARE_BITS = 4, /* of a member's, above those of users */
    BATCH = 64,     /* adds */
    PAGE = 100,     /* keys */
    SLICES = 20,    /* of the fill, each with a row of its own */
    ASKED = 400000, /* adds that are repeats, and keys of pages */
    POSTS_SLOT = 1,
    PAIRS_SLOT = 2,
    LIKED = 0, /* columns */
    COUNT = 1,
    SERIAL = 100,
    STREAM_LIKES = 17
};

#define MEMBERS_COLUMNS(X)                                                    \
    X(NS, "ns", "ns", 1)                                                      \
    X(LIKES, "likes", "likes", 0)                                             \
    X(BITS, "bits", "bits a like", 2)                                         \
    X(LOAD, "load", "load", 3)                                                \
    X(STORED, "stored_bits", "of them stored", 2)

enum {
#define X(name, key, head, decimals) MEMBERS_##name,
    MEMBERS_COLUMNS(X)
#undef X
};

static const struct sheet_column columns[] = {
#define X(name, key, head, decimals) {key, head, decimals},
    MEMBERS_COLUMNS(X)
#undef X
};

struct members {
    struct hot hot;
    struct schema_counter posts, pairs;
    struct dist_rng rng;
    uint64_t n_posts, n_likes;
    unsigned user_bits, member_bits;
    uint64_t sum; /* so that nothing is optimised away */
};

static struct schema_column
column_of(uint32_t serial, unsigned slot, unsigned bits)
{
    return (struct schema_column){.serial = serial,
        .slot = (uint8_t)slot,
        .hint_bits = (uint8_t)(bits < 12 ? bits : 12),
        .max_bits = (uint8_t)bits};
}

static void
members_init(struct members *members, struct lab *lab)
{
    uint64_t n = lab_records(lab, LIKES, LIKES_QUICK);
    struct posts posts = {.n = n, .columns = 1};
    members->n_posts = n / LIKES_A_POST;
    members->user_bits = lab->user_bits;
    members->member_bits = lab->user_bits + SPARE_BITS;
    dist_rng_init(&members->rng, lab->seed, STREAM_LIKES);
    lab_start(lab, &posts, &members->hot);
    struct schema_counter *of = &members->posts;
    *of = (struct schema_counter){
        .slot = POSTS_SLOT, .serial = SERIAL, .n_columns = 2};
    of->column[LIKED] =
        column_of(SERIAL + 1, LIKED, 64 - members->member_bits);
    of->column[LIKED].kind = SCHEMA_MEMBERS;
    of->column[LIKED].counts = SERIAL + 2;
    of->column[LIKED].member_bits = (uint8_t)members->member_bits;
    of->column[LIKED].value_bits = 1;
    of->column[LIKED].pairs = PAIRS_SLOT;
    of->column[COUNT] = column_of(SERIAL + 2, COUNT, 64);
    members->pairs = (struct schema_counter){.slot = PAIRS_SLOT,
        .serial = SERIAL + 3,
        .members_of = SERIAL + 1,
        .n_columns = 1};
    members->pairs.column[0] = column_of(SERIAL + 4, 0, 1);
    if (engine_define(members->hot.engine, of) != 0 ||
        engine_define(members->hot.engine, &members->pairs) != 0) {
        fail("no counters of members");
    }
}

/* A like that has not been drawn yet, most likely. */
static void
draw(struct members *members, uint64_t *post, uint64_t *user)
{
    double u = pow(dist_rng_unit(&members->rng), POPULARITY);
    *post = 1 + POST_STEP * (uint64_t)((double)members->n_posts * u);
    *user = dist_rng_u64(&members->rng) >> (64 - members->user_bits);
}

static struct change
add_of(const struct members *members, uint64_t post, uint64_t user)
{
    return (struct change){.id = post,
        .op = CHANGE_MEMBER_ADD,
        .counter = POSTS_SLOT,
        .n_columns = 1,
        .column = {LIKED},
        .serial = {members->posts.column[LIKED].serial},
        .operand = {1},
        .member = {.counter = PAIRS_SLOT,
            .bits = (uint8_t)members->member_bits,
            .counts_column = COUNT,
            .counts = true,
            .serial = members->pairs.column[0].serial,
            .counts_serial = members->posts.column[COUNT].serial,
            .member = user}};
}

/* n adds, in batches: ns each. They are of new likes, or of those that the
 * random numbers from `again` on have made. */
static double
add(struct members *members, uint64_t n, const struct dist_rng *again)
{
    struct dist_rng now = members->rng;
    struct change change[BATCH];
    uint64_t ns = 0;
    if (again != NULL) {
        members->rng = *again;
    }
    for (uint64_t done = 0; done < n; done += BATCH) {
        for (unsigned i = 0; i < BATCH; i++) {
            uint64_t post, user;
            draw(members, &post, &user);
            change[i] = add_of(members, post, user);
        }
        uint64_t begin_ns = rounds_cpu_ns();
        engine_change(members->hot.engine, change, BATCH);
        ns += rounds_cpu_ns() - begin_ns;
        hot_pause(&members->hot);
        for (unsigned i = 0; i < BATCH; i++) {
            members->n_likes += change[i].err == 0;
        }
    }
    if (again != NULL) {
        members->rng = now;
    }
    return (double)ns / (double)n;
}

/* The two gets of a page: numbers, then pairs; ns a key. */
static double
ask_pages(struct members *members, uint64_t n, const struct dist_rng *again)
{
    struct engine *engine = members->hot.engine;
    struct dist_rng now = members->rng;
    struct cell_key key[PAGE];
    uint64_t user[PAGE], value[PAGE], ns = 0, n_found = 0;
    uint8_t state[PAGE];
    members->rng = *again;
    for (uint64_t done = 0; done < n; done += PAGE) {
        for (unsigned i = 0; i < PAGE; i++) {
            draw(members, &key[i].id, &user[i]);
            user[i] ^= i % 2; /* another one, who is none mostly */
            key[i].serial = members->posts.column[LIKED].serial;
            key[i].counter = POSTS_SLOT;
            key[i].column = LIKED;
        }
        uint64_t begin_ns = rounds_cpu_ns();
        engine_get(engine, key, PAGE, value, state);
        for (unsigned i = 0; i < PAGE; i++) {
            key[i] =
                (struct cell_key){.id = engine_pair(engine, key[i].id,
                                      value[i], members->member_bits, user[i]),
                    .serial = members->pairs.column[0].serial,
                    .counter = PAIRS_SLOT};
        }
        engine_get(engine, key, PAGE, value, state);
        ns += rounds_cpu_ns() - begin_ns;
        hot_pause(&members->hot);
        for (unsigned i = 0; i < PAGE; i++) {
            n_found += value[i];
        }
    }
    if (n_found < n / 2) {
        fail("%llu members of %llu", (unsigned long long)n_found,
            (unsigned long long)n / 2);
    }
    members->rng = now;
    return (double)ns / (double)n;
}

static void
report(struct lab *lab, struct members *members, const char *name, double ns)
{
    struct engine_sum sum = {0};
    double *cell = sheet_add(&lab->members, "%s", name);
    engine_sum(members->hot.engine, PAIRS_SLOT, -1, &sum);
    cell[MEMBERS_NS] = ns;
    cell[MEMBERS_LIKES] = (double)members->n_likes;
    cell[MEMBERS_BITS] = 8.0 *
        (double)(sum.line_bytes + sum.stash_bytes + sum.other_bytes) /
        (double)sum.records;
    cell[MEMBERS_LOAD] = (double)sum.used_bits / (double)sum.usable_bits;
    cell[MEMBERS_STORED] =
        (double)sum.used_bits / (double)(sum.records - sum.stash_records);
}

void
lab_members(struct lab *lab)
{
    struct members *members = calloc(1, sizeof *members);
    if (members == NULL) {
        fail("out of memory");
    }
    lab->members.key = "members";
    lab->members.head = "engine, members";
    lab->members.column = columns;
    lab->members.n_columns = sizeof columns / sizeof columns[0];
    members_init(members, lab);
    uint64_t n = LIKES_A_POST * members->n_posts / SLICES;
    struct dist_rng again = members->rng;
    double ns = 0;
    for (unsigned i = 0; i < SLICES; i++) {
        rounds_progress("adding likes, %u %%", 100 * i / SLICES);
        ns += add(members, n, NULL) / SLICES;
    }
    report(lab, members, "add, growth included", ns);
    report(lab, members, "add of a twentieth more", add(members, n, NULL));
    uint64_t asked = n < ASKED ? n : ASKED;
    report(lab, members, "add of what is there", add(members, asked, &again));
    rounds_progress("letting the engine rest");
    hot_settle(&members->hot);
    report(lab, members, "the same, packed", add(members, asked, &again));
    report(lab, members, "page of 100, a key, packed",
        ask_pages(members, asked, &again));
    hot_stop(&members->hot);
    rounds_progress(NULL);
    sheet_print(&lab->members, stdout);
    free(members);
}
