/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses one of some candidates for a seal.
 *
 * The oldest goes first: in the long run it is read and written least. But what
 * is written much now would soon be back in memory, record by record, each
 * after a read from the disk, and would be written anew then. So of candidates
 * that are nearly as old the first quiet one is taken: hardly written, or not
 * much more than the quietest of them. Where all are written alike, as they are
 * filled, that is the lowest. */
#include "tier/seal_choose.h"

#include "base/assert.h"

enum {
    QUIET_HEAT = 8, /* a change of a table in a minute or two */
    HEAVY_RATIO = 4,
    BUSY_HEAT = 4096 /* five changes of a table in a second, all the time */
};

bool
seal_is_worth(const struct seal_candidate *it)
{
    return it->n_hot >= SEAL_LEAST_RECORDS ||
        it->hot_bytes >= SEAL_LEAST_BYTES;
}

double
seal_score(const struct seal_candidate *it, bool is_newest)
{
    double written =
        (double)it->n_hot + (double)it->n_cold + SEAL_LEAST_RECORDS;
    double score = (double)it->hot_bytes / written;
    return is_newest ? score / SEAL_COLD_SHARE_MAX : score;
}

bool
seal_is_fair(const struct seal_candidate *it)
{
    return seal_is_worth(it) && it->n_cold <= it->n_hot * SEAL_COLD_SHARE_MAX;
}

bool
seal_is_heavy(const struct seal_candidate *it, double least)
{
    return it->heat > QUIET_HEAT && it->heat > HEAVY_RATIO * least;
}

size_t
seal_choose(const struct seal_candidate *peer, size_t n)
{
    ASSERT(n > 0);
    double least = peer[0].heat;
    size_t i = 0;
    for (size_t k = 1; k < n; k++) {
        least = peer[k].heat < least ? peer[k].heat : least;
    }
    while (seal_is_heavy(&peer[i], least)) {
        i++;
        ASSERT(i < n); /* the quietest is not */
    }
    return i;
}

bool
seal_is_busy(const struct seal_candidate *it)
{
    return it->heat > BUSY_HEAT;
}

uint64_t
seal_guess_row(uint64_t low, uint64_t high, uint64_t n_low, uint64_t n_high,
    uint64_t wanted)
{
    ASSERT(high - low > 1 && n_low <= wanted && n_low < n_high);
    double share = (double)(wanted - n_low) / (double)(n_high - n_low);
    uint64_t step = (uint64_t)(share * (double)(high - low));
    return step < 1 ? low + 1 : step < high - low ? low + step : high - 1;
}
