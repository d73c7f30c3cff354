/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_REACH_H
#define ENGINE_REACH_H

#include <stdint.h>

/* How full the lines of a table become before a record finds no room. Records
 * are whole: of large ones, much of a line stays unused. Pure. */

enum {
    REACH_SIZES = 16,  /* of records: one a shape */
    REACH_USUAL = 1000 /* in 1/1024: where records are small */
};

/* The load (used bits / usable bits, in 1/1024) at which lines refuse records
 * of size[i] bits (at most 488) drawn with weight[i]; at most REACH_USUAL. The
 * same arguments give the same answer. Up to 0.1 ms; nearly nothing where all
 * are small. */
unsigned reach_load(
    const uint16_t size[REACH_SIZES], const uint64_t weight[REACH_SIZES]);

/* The load for which a table of such records is packed: at most `most`, and as
 * high as it may be so that nearly all find room and a hit looks at 1.15 lines
 * at most, or an eighth. Up to 2 ms; nearly nothing where all are small. */
unsigned reach_packed(const uint16_t size[REACH_SIZES],
    const uint64_t weight[REACH_SIZES], unsigned most);

#endif
