/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_SEMI_SYNC_H
#define REPL_SEMI_SYNC_H

#include "repl/link_primary.h"

#include <stdint.h>

/* Pure. What is committed, repl/quorum.h says. */

/* How far a replica counts, by the level that it told of; 0: it does not, for
 * it may have lost what it has acknowledged, or is no copy to be counted on. */
uint64_t semi_sync_position(const struct link_primary *link);

#endif
