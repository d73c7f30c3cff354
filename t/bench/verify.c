/* SPDX-License-Identifier: BSD-3-Clause */

/* The expected numbers. An incr is counted in `sent` before its bytes leave
 * and in `acked` after its answer came, so for every cell, at any moment:
 *
 *     stored + acked <= number at the server <= stored + sent
 *
 * and a question sees at least the acked of when it was sent. */

#include "bench/verify.h"

#include "bench/fail.h"

#include <inttypes.h>
#include <stdlib.h>

void
verify_init(struct verify *verify, const struct options *options)
{
    *verify = (struct verify){.options = options};
    if (!options->verify) {
        return;
    }
    size_t cells = options->records * options->n_suffixes;
    verify->sent = calloc(cells, sizeof(verify->sent[0]));
    verify->acked = calloc(cells, sizeof(verify->acked[0]));
    if (verify->sent == NULL || verify->acked == NULL) {
        fail("out of memory for --verify");
    }
}

void
verify_fini(struct verify *verify)
{
    free(verify->sent);
    free(verify->acked);
    *verify = (struct verify){0};
}

static size_t
cell(const struct verify *verify, uint32_t post, unsigned column)
{
    return (size_t)post * verify->options->n_suffixes + column;
}

static uint64_t
stored(const struct verify *verify, uint32_t post, unsigned column)
{
    uint64_t value[DIST_COLUMNS_MAX];
    posts_values(&verify->options->posts, post, value);
    return value[column];
}

uint32_t
verify_get_sent(struct verify *verify, uint32_t post, unsigned column)
{
    return atomic_load(&verify->acked[cell(verify, post, column)]);
}

uint32_t
verify_incr_sent(struct verify *verify, uint32_t post, unsigned column)
{
    atomic_fetch_add(&verify->sent[cell(verify, post, column)], 1);
    return verify_get_sent(verify, post, column);
}

static void
check_range(const struct verify *verify, uint32_t post, unsigned column,
    uint64_t least, uint64_t value)
{
    uint64_t base = stored(verify, post, column);
    uint64_t most =
        base + atomic_load(&verify->sent[cell(verify, post, column)]);
    if (value < base + least || value > most) {
        fail("wrong number for %" PRIu64 ".%s: %" PRIu64 " instead of %" PRIu64
             " to %" PRIu64,
            posts_id(&verify->options->posts, post),
            verify->options->suffix[column], value, base + least, most);
    }
}

void
verify_got(struct verify *verify, uint32_t post, unsigned column,
    uint32_t acked_before, uint64_t value)
{
    check_range(verify, post, column, acked_before, value);
}

void
verify_incremented(struct verify *verify, uint32_t post, unsigned column,
    uint32_t acked_before, uint64_t value)
{
    check_range(verify, post, column, (uint64_t)acked_before + 1, value);
    atomic_fetch_add(&verify->acked[cell(verify, post, column)], 1);
}

void
verify_absent(struct verify *verify, uint32_t post, unsigned column)
{
    if (!verify->options->has_absent || stored(verify, post, column) != 0) {
        fail("no number for %" PRIu64 ".%s",
            posts_id(&verify->options->posts, post),
            verify->options->suffix[column]);
    }
}

void
verify_not_incremented(struct verify *verify, uint32_t post, unsigned column)
{
    verify_absent(verify, post, column);
    atomic_fetch_sub(&verify->sent[cell(verify, post, column)], 1);
}
