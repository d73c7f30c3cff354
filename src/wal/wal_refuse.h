/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WAL_WAL_REFUSE_H
#define WAL_WAL_REFUSE_H

#include "wal/wal.h"

/* Changes are refused while a full disk has no room but what was kept for a
 * checkpoint: the log can be written then, and must not take that room. */

/* Has wal_fault say err, an ERR_, where the log can be written; 0: what is so.
 * What was appended before is committed all the same. Tells the listeners. Any
 * thread. */
void wal_refuse(struct wal *wal, int err);

/* As wal_fault, whatever wal_refuse was told: whether the log can be written.
 * A load; any thread. */
int wal_write_fault(const struct wal *wal);

#endif
