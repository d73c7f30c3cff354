/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_ROLE_WORLD_H
#define UNIT_ROLE_WORLD_H

#include "repl/role.h"

#include <stdbool.h>
#include <stdint.h>

/* A world of nodes whose roles are repl/role's own, with an etcd, a network,
 * disks, clocks and clients that are simulated, and faults drawn from a seed.
 * What happens follows from the seed alone. One at a time. */

enum { WORLD_NODES = 5, WORLD_WORDS = 200 };

enum world_level { WORLD_WRITTEN, WORLD_SYNCED };

/* What a seed has made; what was wrong, if anything was. */
struct world_result {
    char wrong[WORLD_WORDS]; /* "": nothing */
    unsigned n_acked, n_terms, n_sets, n_faults, n_handed, n_kept;
    unsigned n_forced, n_reloads;
    unsigned n_given_up; /* acknowledged, and lost as was ordered */
};

/* Takes rules out, a bit for each of enum role_rule: for world_run, and for
 * repl/role and repl/quorum of the same program. */
void world_without(uint64_t rules);

/* etcd does not compare the term when voters are written. */
void world_etcd_forgets(bool forgets);

/* The network is not healed in the end: nobody reaches anybody. */
void world_stays_parted(bool stays);

void world_run(uint64_t seed, struct world_result *result);

#endif
