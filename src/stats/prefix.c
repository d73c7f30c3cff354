/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts by prefix, in a hash table under one lock. A person switches it on
 * for a while, to see what keys there are: so it is simple rather than quick.
 * PREFIX_MAX bounds what a client can make it hold. */
#include "stats/prefix.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

struct prefix {
    struct prefix *next; /* of its chain */
    struct prefix_counts counts;
    size_t len;
    char name[];
};

void
prefixes_init(struct prefixes *prefixes, char delimiter, bool is_on)
{
    *prefixes = (struct prefixes){.delimiter = delimiter};
    mutex_init(&prefixes->lock);
    prefixes_switch(prefixes, is_on);
}

void
prefixes_fini(struct prefixes *prefixes)
{
    prefixes_clear(prefixes);
    mutex_fini(&prefixes->lock);
}

void
prefixes_switch(struct prefixes *prefixes, bool is_on)
{
    /* relaxed: it says nothing of other data */
    atomic_store_explicit(&prefixes->is_on, is_on, memory_order_relaxed);
}

void
prefixes_clear(struct prefixes *prefixes)
{
    mutex_lock(&prefixes->lock);
    for (unsigned i = 0; i < PREFIX_CHAINS; i++) {
        while (prefixes->chain[i] != NULL) {
            struct prefix *prefix = prefixes->chain[i];
            prefixes->chain[i] = prefix->next;
            free(prefix);
        }
    }
    prefixes->n = 0;
    mutex_unlock(&prefixes->lock);
}

/* FNV-1a. */
static unsigned
chain_of(const char *name, size_t len)
{
    uint32_t hash = UINT32_C(2166136261);
    for (size_t i = 0; i < len; i++) {
        hash = (hash ^ (unsigned char)name[i]) * UINT32_C(16777619);
    }
    return hash % PREFIX_CHAINS;
}

/* The entry of a name; NULL where there is no room for a new one. */
static struct prefix *
entry_of(struct prefixes *prefixes, const char *name, size_t len)
{
    mutex_assert_held(&prefixes->lock);
    ASSERT(prefixes->n <= PREFIX_MAX && len <= PREFIX_KEY_BYTES);
    struct prefix **chain = &prefixes->chain[chain_of(name, len)];
    struct prefix *prefix = *chain;
    while (prefix != NULL &&
        (prefix->len != len || memcmp(prefix->name, name, len) != 0)) {
        prefix = prefix->next;
    }
    if (prefix != NULL || prefixes->n == PREFIX_MAX) {
        return prefix;
    }
    prefix = calloc(1, sizeof *prefix + len);
    if (prefix != NULL) {
        memcpy(prefix->name, name, len);
        prefix->len = len;
        prefix->next = *chain;
        *chain = prefix;
        prefixes->n++;
    }
    return prefix;
}

void
prefixes_add(struct prefixes *prefixes, const char *key, size_t len,
    const struct prefix_counts *counts)
{
    const char *end =
        len > PREFIX_KEY_BYTES ? NULL : memchr(key, prefixes->delimiter, len);
    if (end == NULL) {
        return;
    }
    mutex_lock(&prefixes->lock);
    struct prefix *prefix = entry_of(prefixes, key, (size_t)(end - key));
    if (prefix != NULL) {
#define X(field, text) prefix->counts.field += counts->field;
        PREFIX_COUNTS(X)
#undef X
    }
    mutex_unlock(&prefixes->lock);
}

void
prefixes_each(struct prefixes *prefixes,
    void (*each_fn)(void *context, const char *name, size_t len,
        const struct prefix_counts *counts),
    void *context)
{
    mutex_lock(&prefixes->lock);
    for (unsigned i = 0; i < PREFIX_CHAINS; i++) {
        const struct prefix *prefix = prefixes->chain[i];
        for (; prefix != NULL; prefix = prefix->next) {
            each_fn(context, prefix->name, prefix->len, &prefix->counts);
        }
    }
    mutex_unlock(&prefixes->lock);
}
