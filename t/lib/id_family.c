/* SPDX-License-Identifier: BSD-3-Clause */

/* The kinds of ids that a store of counters meets. Each id follows from its
 * place and a stream of random numbers; where two fall together, the next ones
 * of the same family fill up, so that n different ones come out. */

#include "lib/id_family.h"

#include "base/assert.h"
#include "lib/dist.h"

#include <stdlib.h>

enum {
    IDS_MAX = 1 << 24,
    MILLIS_BITS = 22, /* below the millisecond: 10 of worker, 12 of number */
    WORKER_BITS = 12,
    WORKERS = 8,
    IDS_A_MILLI = 4,  /* at most; the mean is 5/8 */
    STRAYS_EACH = 64, /* of so many ids one is a stray */
    CLUSTER_IDS = 200
};

static const uint64_t FIRST_MILLI = UINT64_C(400000000000);

struct maker {
    enum id_family family;
    struct dist dist;
    struct dist_rng rng;
    size_t n;
    uint64_t cluster;
};

const char *
id_family_name(enum id_family family)
{
    static const char *const name[] = {
#define X(name, text) #name,
        ID_FAMILIES(X)
#undef X
    };

    ASSERT(family < ID_FAMILY_COUNT);
    return name[family];
}

static uint64_t
make_millis(struct maker *maker, uint64_t i)
{
    uint64_t bits = dist_rng_u64(&maker->rng);
    uint64_t milli = FIRST_MILLI + i * 8 / 5;
    uint64_t worker = bits % WORKERS;
    uint64_t number = (bits >> 32) % IDS_A_MILLI;
    return milli << MILLIS_BITS | worker << WORKER_BITS | number;
}

static uint64_t
make_stray(struct maker *maker, uint64_t i)
{
    uint64_t bits = dist_rng_u64(&maker->rng);
    if (i % STRAYS_EACH != 0) {
        return UINT64_C(1000000) + i;
    }
    switch (i / STRAYS_EACH % 4) {
    case 0:
        return UINT64_MAX - bits % 3;
    case 1:
        return bits % 3;
    case 2:
        return (UINT64_C(1) << 63) + bits % 5 - 2;
    default:
        return bits;
    }
}

static uint64_t
make_clustered(struct maker *maker, uint64_t i)
{
    uint64_t bits = dist_rng_u64(&maker->rng);
    if (i % CLUSTER_IDS == 0) {
        maker->cluster = bits;
    }
    return maker->cluster + bits % (2 * CLUSTER_IDS);
}

static uint64_t
make_one(struct maker *maker, uint64_t i)
{
    switch (maker->family) {
    case ID_SEQUENTIAL:
        return i + 1;
    case ID_SECONDS:
        return dist_id(&maker->dist, i);
    case ID_MILLIS:
        return make_millis(maker, i);
    case ID_RANDOM:
        return dist_rng_u64(&maker->rng);
    case ID_MULTIPLES:
        return i << 22;
    case ID_STRAY:
        return make_stray(maker, i);
    case ID_CLUSTERS:
        return make_clustered(maker, i);
    default:
        return (UINT64_MAX / maker->n * i & ~UINT64_C(0xff)) + 7;
    }
}

static int
compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* Sorts and drops what is twice; returns how many are left. */
static size_t
make_unique(uint64_t *id, size_t n)
{
    size_t kept = 1;
    qsort(id, n, sizeof(*id), compare);
    for (size_t i = 1; i < n; i++) {
        if (id[i] != id[kept - 1]) {
            id[kept++] = id[i];
        }
    }
    return kept;
}

void
id_family_make(enum id_family family, uint64_t seed, size_t n, uint64_t *id)
{
    ASSERT(family < ID_FAMILY_COUNT && n >= 1 && n <= IDS_MAX);
    struct maker maker = {.family = family, .dist = {.seed = seed}, .n = n};
    dist_rng_init(&maker.rng, seed, 0);
    size_t have = 0;
    uint64_t next = 0;
    while (have < n) {
        while (have < n) {
            id[have++] = make_one(&maker, next++);
        }
        have = make_unique(id, n);
    }
}
