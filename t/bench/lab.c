/* SPDX-License-Identifier: BSD-3-Clause */

/* What the parts share: an engine that fits, and a look at whether it holds
 * what was put in. */

#include "bench/lab.h"

#include "bench/bound.h"

enum { SHARE_SAMPLE = 1 << 16, RECORD_BYTES_MAX = 200 };

void
lab_size(struct posts *posts, uint64_t records)
{
    posts->n = SHARE_SAMPLE;
    double share = bound_of(posts).records / SHARE_SAMPLE;
    posts->n = (uint64_t)((double)records / share) + 1;
}

void
lab_start(const struct lab *lab, const struct posts *posts, struct hot *hot)
{
    struct hot_config config = {.columns = posts->columns,
        .shards = lab->shards,
        .isa = lab->isa,
        .hot_bytes = ENGINE_HOT_BYTES_MIN + posts->n * RECORD_BYTES_MAX};
    hot_start(hot, &config);
}

void
lab_check(struct hot *hot, const struct posts *posts)
{
    uint64_t step = posts->n / LAB_CHECKS;
    step = step > 0 ? step : 1;
    for (uint64_t post = 0; post < posts->n; post += step) {
        uint64_t value[POSTS_COLUMNS_MAX];
        posts_values(posts, post, value);
        hot_check(hot, posts_id(posts, post), value);
    }
}
