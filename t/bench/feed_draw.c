/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/feed_draw.h"

/* splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number
 * generators", 2014). */
uint64_t
feed_draw_number(struct feed_draw *draw)
{
    uint64_t z = draw->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

struct about_pair
feed_draw_pair(struct feed_draw *draw)
{
    draw->id += feed_draw_number(draw) % FEED_DRAW_MEMBERS == 0;
    uint64_t back = feed_draw_number(draw) % FEED_DRAW_LATE *
        (feed_draw_number(draw) % FEED_DRAW_LATE) / FEED_DRAW_LATE;
    return (struct about_pair){draw->id > back ? draw->id - back : 1,
        feed_draw_number(draw) % FEED_DRAW_FRESH};
}

struct about_pair
feed_draw_other(struct feed_draw *draw, uint64_t first, uint64_t last)
{
    uint64_t id = first + feed_draw_number(draw) % (last - first + 1);
    return (struct about_pair){
        id, FEED_DRAW_FRESH + feed_draw_number(draw) % FEED_DRAW_FRESH};
}
