/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TIER_REHEAT_H
#define TIER_REHEAT_H

#include "tier/seal.h"

/* A cold range becomes hot. Part of the store; nobody else calls it. All on the
 * thread that seals, which is not an online reader; other ranges may be sealed
 * between the steps. */

struct reheat;

/* Begins with a range that one segment covers, which is not read yet. 0,
 * ERR_GONE (it is covered otherwise by now, or there is no such column),
 * ERR_NO_MEMORY. */
int reheat_begin(
    struct seal *seal, const struct seal_range *range, struct reheat **out);

/* Brings up to n records of the segment into the engine, those that it does not
 * have, and logs them; *is_end: there are no more. 0, ERR_GONE (it is covered
 * otherwise by now, or columns have changed), ERR_HOT_FULL, ERR_CLOSED
 * (stopping), an error of the log, or of segment_scan_next; the caller gives it
 * up then. What has been brought in stays, as changed records do. */
int reheat_step(struct reheat *reheat, uint64_t n, bool *is_end);

/* After the last step: nothing covers the range any more, and its segment is
 * out of the next manifest. Frees it in any case. Waits for readers. 0,
 * ERR_GONE, ERR_NO_MEMORY. */
int reheat_end(struct reheat **reheat);

/* Gives up and frees it; NULL in it is fine. */
void reheat_abort(struct reheat **reheat);

#endif
