/* SPDX-License-Identifier: BSD-3-Clause */
/* The bucket is kept as the moment at which it has a token again: each byte
 * moves that on by its time. It is never farther back than the burst, so a long
 * rest is not made up for. */
#include "repl/copy_rate.h"

#include "base/assert.h"

#define NS_PER_S UINT64_C(1000000000)

void
copy_rate_init(struct copy_rate *rate, uint64_t bytes_s, uint64_t now_ns)
{
    *rate = (struct copy_rate){.bytes_s = bytes_s};
    (void)copy_rate_take(rate, 0, now_ns);
}

uint64_t
copy_rate_take(struct copy_rate *rate, uint64_t bytes, uint64_t now_ns)
{
    uint64_t least =
        now_ns < COPY_RATE_BURST_NS ? 0 : now_ns - COPY_RATE_BURST_NS;
    uint64_t from_ns;

    ASSERT(bytes <= UINT32_MAX); /* times NS_PER_S fits */
    if (rate->bytes_s == 0) {
        return now_ns;
    }
    if (rate->free_ns < least) {
        rate->free_ns = least;
    }
    from_ns = rate->free_ns > now_ns ? rate->free_ns : now_ns;
    rate->free_ns += bytes * NS_PER_S / rate->bytes_s;
    return from_ns;
}
