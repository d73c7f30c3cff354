/* SPDX-License-Identifier: BSD-3-Clause */

/* uthash as a program uses it: a node with its handle from malloc, found by
 * HASH_FIND with the library's own hash function. */

#include "bench/fail.h"
#include "bench/rival.h"

#include <config.h>
#include <malloc.h>
#include <stdlib.h>

bool
chained_is_there(void)
{
#ifdef HAVE_UTHASH_H
    return true;
#else
    return false;
#endif
}

#ifdef HAVE_UTHASH_H

/* Its macros convert as they please. */
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#define uthash_fatal(text) fail("uthash: %s", text)
#include <uthash.h>

enum { COLUMNS = 3 };

struct chained_node {
    uint64_t id;
    uint32_t number[COLUMNS];
    UT_hash_handle hh;
};

static size_t
heap_bytes(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

void
chained_init(
    struct chained *chained, const struct posts *posts, const uint64_t *mask)
{
    *chained = (struct chained){0};
    size_t before = heap_bytes();
    for (uint64_t post = 0; post < posts->n; post++) {
        uint64_t value[COLUMNS];
        if (!(mask[post / 64] >> post % 64 & 1)) {
            continue;
        }
        struct chained_node *node = malloc(sizeof(*node));
        if (node == NULL) {
            fail("out of memory for uthash");
        }
        posts_values(posts, post, value);
        node->id = posts_id(posts, post);
        for (unsigned i = 0; i < COLUMNS; i++) {
            node->number[i] = (uint32_t)value[i];
        }
        HASH_ADD(hh, chained->head, id, sizeof(node->id), node);
        chained->records++;
    }
    chained->bytes =
        (double)(heap_bytes() - before) / (double)chained->records;
}

void
chained_fini(struct chained *chained)
{
    struct chained_node *node = chained->head;
    HASH_CLEAR(hh, chained->head);
    while (node != NULL) {
        struct chained_node *next = node->hh.next;
        free(node);
        node = next;
    }
}

void
chained_get(const struct chained *chained, const struct cell_key *key,
    size_t n, uint64_t *value)
{
    for (size_t i = 0; i < n; i++) {
        struct chained_node *node;
        HASH_FIND(hh, chained->head, &key[i].id, sizeof(key[i].id), node);
        value[i] = node == NULL ? 0 : node->number[key[i].column];
    }
}

#else

void
chained_init(
    struct chained *chained, const struct posts *posts, const uint64_t *mask)
{
    (void)chained;
    (void)posts;
    (void)mask;
    fail("built without uthash");
}

void
chained_fini(struct chained *chained)
{
    (void)chained;
}

void
chained_get(const struct chained *chained, const struct cell_key *key,
    size_t n, uint64_t *value)
{
    (void)chained;
    (void)key;
    (void)n;
    (void)value;
    fail("built without uthash");
}

#endif
