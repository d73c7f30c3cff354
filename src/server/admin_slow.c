/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers stats slow: what all workers keep, the newest first. */
#include "server/admin_priv.h"

#include "base/err.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    /* Of one worker all; of several the last ones, which is what is asked for:
     * a reply of some 100 KB is long enough. */
    SHOWN_MAX = 2 * SLOW_KEPT,
    NAME_BYTES = 16
};

/* The newest first. */
static int
compare(const void *a, const void *b)
{
    const struct slow_entry *left = a, *right = b;
    return (left->unix_ms < right->unix_ms) - (left->unix_ms > right->unix_ms);
}

void
admin__slow(struct server_admin *admin, struct reply_stats *out)
{
    struct slow_entry *entry =
        calloc(admin->n_workers, SLOW_KEPT * sizeof *entry);
    size_t n = 0;
    if (entry == NULL && admin->n_workers > 0) {
        reply_stats_error(out, ERR_NO_MEMORY);
        return;
    }
    for (unsigned i = 0; i < admin->n_workers; i++) {
        n += slow_read(admin->workers[i]->slow, entry + n);
    }
    if (n > 0) {
        qsort(entry, n, sizeof *entry, compare);
    }
    for (size_t i = 0; i < n && i < SHOWN_MAX; i++) {
        char name[NAME_BYTES];
        char text[SLOW_TEXT_BYTES];
        (void)snprintf(name, sizeof name, "%zu", i + 1);
        slow_format(&entry[i], text);
        reply_stats_text(out, name, text);
    }
    free(entry);
    reply_stats_end(out);
}
