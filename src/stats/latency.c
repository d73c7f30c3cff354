/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of verbs and paths, tallies, and sums over paths. */
#include "stats/latency.h"

#include "base/assert.h"

const char *
latency_verb_name(enum latency_verb verb)
{
    static const char *const names[LATENCY_VERB_COUNT] = {
#define X(name, text) #name,
        LATENCY_VERBS(X)
#undef X
    };
    ASSERT((unsigned)verb < LATENCY_VERB_COUNT);
    return names[verb];
}

const char *
latency_path_name(enum latency_path path)
{
    static const char *const names[LATENCY_PATH_COUNT] = {
#define X(name, text) #name,
        LATENCY_PATHS(X)
#undef X
    };
    ASSERT((unsigned)path < LATENCY_PATH_COUNT);
    return names[path];
}

void
latency_tally_move(struct latency_tally *tally, struct latency_tally *from)
{
    for (uint32_t left = from->verbs; left != 0; left &= left - 1) {
        unsigned verb = (unsigned)__builtin_ctz(left);
        tally->n[verb] += from->n[verb];
        from->n[verb] = 0;
    }
    tally->verbs |= from->verbs;
    tally->room_ns += from->room_ns;
    from->verbs = 0;
    from->room_ns = 0;
}

void
latency_sums_read(struct latency_sums *sums, const struct latency_set *set)
{
    for (unsigned verb = 0; verb < LATENCY_VERB_COUNT; verb++) {
        for (unsigned path = 0; path < LATENCY_PATH_COUNT; path++) {
            hist_read(&set->request[verb][path], &sums->request[verb][path]);
        }
    }
}

void
latency_read(const struct latency_set *set, enum latency_verb verb,
    enum latency_path path, struct hist_sum *sum)
{
    ASSERT((unsigned)verb < LATENCY_VERB_COUNT);
    ASSERT((unsigned)path <= LATENCY_PATH_COUNT);
    for (unsigned i = 0; i < LATENCY_PATH_COUNT; i++) {
        if (path == LATENCY_PATH_COUNT || path == i) {
            hist_read(&set->request[verb][i], sum);
        }
    }
}
