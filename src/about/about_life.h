/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ABOUT_ABOUT_LIFE_H
#define ABOUT_ABOUT_LIFE_H

#include "about/about.h"

/* How the tables of a column are made, grow and end; abouts.h has those of a
 * whole store. */

struct about_config {
    uint64_t memory_bytes; /* >= ABOUT_MEMORY_MIN, but in tests */
    unsigned error;        /* ABOUT_ERROR_MIN..ABOUT_ERROR_MAX */
    uint64_t seed;         /* secret, for good */
    uint32_t serial;       /* of the column */
    struct qsbr *qsbr;
    struct about_sink *sink;   /* NULL: nothing is logged */
    const struct alloc *alloc; /* for the tables; NULL: mapped memory */
};

/* One without members, with one table from id 0 on. *out is the caller's. 0 or
 * ERR_NO_MEMORY. */
int about_create(const struct about_config *config, struct about **out);

/* Frees all and nulls *about; nobody is in any call any more. */
void about_destroy(struct about **about);

/* The column has so much memory from now on: more tables come one by one, or
 * the lowest go at once. As many bytes as one table or less stand for two. Any
 * thread, which is not an online reader. */
void about_resize(struct about *about, uint64_t memory_bytes);

#endif
