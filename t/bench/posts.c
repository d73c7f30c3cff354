/* SPDX-License-Identifier: BSD-3-Clause */

/* Ids of the families that the benchmarks know, each a pure function of seed
 * and post. Millisecond ids are drawn for blocks of eight posts that share
 * eight milliseconds, so about a third of the milliseconds have none and as
 * many have two or more, and are sorted in the block. */

#include "bench/posts.h"

#include "base/assert.h"
#include "bench/fail.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    BLOCK = 8, /* posts, and milliseconds */
    STREAM_SALT_RANDOM = 0x5eed,
    STREAM_SALT_BLOCK = 0xb10c,
    ROWS_MIN = 1024,
    ID_SHIFT = 22,
    WORKER_SHIFT = 12
};

#define FIRST_MS (UINT64_C(1000) * DIST_FIRST_SECOND)

const char *const posts_ids_words[] = {
#define X(name, word) word,
    POSTS_IDS(X)
#undef X
        NULL};

void
posts_read(struct posts *posts, const char *path)
{
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        fail_errno(path);
    }
    posts->ids = POSTS_FILE;
    posts->n = 0;
    size_t room = 0;
    struct posts_row row;
    while (fscanf(file, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
               &row.id, &row.value[0], &row.value[1], &row.value[2]) == 4) {
        if (posts->n == room) {
            room = room == 0 ? ROWS_MIN : 2 * room;
            posts->row = realloc(posts->row, room * sizeof(row));
            if (posts->row == NULL) {
                fail("out of memory for %s", path);
            }
        }
        posts->row[posts->n++] = row;
    }
    if (!feof(file) || posts->n == 0) {
        fail("%s: line %" PRIu64 " is not four numbers", path, posts->n + 1);
    }
    fclose(file);
}

void
posts_fini(struct posts *posts)
{
    free(posts->row);
    posts->row = NULL;
}

static uint64_t
millisecond_id(const struct dist *dist, uint64_t post, unsigned workers)
{
    struct dist_rng rng;
    uint32_t key[BLOCK]; /* ms * workers + worker, ascending */
    dist_rng_init(&rng, dist->seed + STREAM_SALT_BLOCK, post / BLOCK);
    for (size_t n = 0; n < BLOCK; n++) {
        uint32_t drawn = (uint32_t)(dist_rng_u64(&rng) % (BLOCK * workers));
        size_t at = n;
        for (; at > 0 && key[at - 1] > drawn; at--) {
            key[at] = key[at - 1];
        }
        key[at] = drawn;
    }
    size_t i = post % BLOCK;
    uint64_t seq = 0;
    while (seq < i && key[i - seq - 1] == key[i]) {
        seq++;
    }
    uint64_t ms = FIRST_MS + post / BLOCK * BLOCK + key[i] / workers;
    return ms << ID_SHIFT | key[i] % workers << WORKER_SHIFT | seq;
}

uint64_t
posts_id(const struct posts *posts, uint64_t post)
{
    struct dist_rng rng;
    switch (posts->ids) {
    case POSTS_RANDOM:
        /* the state and what is drawn of it are one to one with the post */
        dist_rng_init(&rng, posts->dist.seed + STREAM_SALT_RANDOM, post);
        return dist_rng_u64(&rng);
    case POSTS_SEQUENTIAL:
        return post + 1;
    case POSTS_MILLISECOND:
        return millisecond_id(&posts->dist, post, POSTS_WORKERS);
    case POSTS_SNOWFLAKE:
        return millisecond_id(&posts->dist, post, POSTS_MORE_WORKERS);
    case POSTS_DENSE:
        return (DIST_FIRST_SECOND + post / DIST_POSTS_A_SECOND)
            << DIST_SECOND_BITS |
            post % DIST_POSTS_A_SECOND;

    case POSTS_MULTIPLE:
        return (post + 1) << ID_SHIFT;
    case POSTS_FILE:
        return posts->row[post].id;
    default:
        return dist_id(&posts->dist, post);
    }
}

bool
posts_values(const struct posts *posts, uint64_t post, uint64_t *value)
{
    ASSERT(posts->columns <= POSTS_COLUMNS_MAX && post < posts->n);
    unsigned columns = posts->columns;
    uint64_t any = 0;
    if (posts->ids == POSTS_FILE) {
        ASSERT(columns <= DIST_COLUMNS);
        for (unsigned i = 0; i < columns; i++) {
            value[i] = posts->row[post].value[i];
        }
    } else if (columns <= DIST_COLUMNS_MAX) {
        dist_values(&posts->dist, post, columns, value);
    } else {
        struct dist dist = posts->dist;
        for (unsigned i = 0; i < columns; i += DIST_COLUMNS) {
            unsigned left = columns - i;
            dist_values(&dist, post, left < DIST_COLUMNS ? left : DIST_COLUMNS,
                &value[i]);
            dist.seed++;
        }
    }
    for (unsigned i = 0; i < columns; i++) {
        any |= value[i];
    }
    return any != 0;
}

double
posts_places(const struct posts *posts)
{
    double n = (double)posts->n;
    switch (posts->ids) {
    case POSTS_RANDOM:
        return 0x1p64;
    case POSTS_SEQUENTIAL:
    case POSTS_MULTIPLE:
    case POSTS_DENSE:
        return n;
    case POSTS_MILLISECOND:
        return n * POSTS_WORKERS;
    case POSTS_SNOWFLAKE:
        return n * POSTS_MORE_WORKERS;
    case POSTS_FILE:
        return (double)(posts->row[posts->n - 1].id - posts->row[0].id) + 1.0;
    default:
        return n * (1 << DIST_SECOND_BITS) / DIST_POSTS_A_SECOND;
    }
}

void
posts_order_init(struct posts_order *order, uint64_t n, uint64_t seed)
{
    struct dist_rng rng;
    *order = (struct posts_order){.n = n, .half_bits = 1};
    while (n > UINT64_C(1) << 2 * order->half_bits) {
        order->half_bits++;
    }
    dist_rng_init(&rng, seed, 0);
    for (size_t i = 0; i < sizeof(order->key) / sizeof(order->key[0]); i++) {
        order->key[i] = dist_rng_u64(&rng);
    }
}

uint64_t
posts_order_at(const struct posts_order *order, uint64_t i)
{
    uint64_t mask = (UINT64_C(1) << order->half_bits) - 1;
    ASSERT(i < order->n);
    do {
        uint64_t left = i >> order->half_bits;
        uint64_t right = i & mask;
        for (size_t k = 0; k < sizeof(order->key) / sizeof(order->key[0]);
             k++) {
            struct dist_rng round = {order->key[k] + right};
            uint64_t next = left ^ (dist_rng_u64(&round) & mask);
            left = right;
            right = next;
        }
        i = left << order->half_bits | right;
    } while (i >= order->n);
    return i;
}
