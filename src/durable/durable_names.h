/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DURABLE_DURABLE_NAMES_H
#define DURABLE_DURABLE_NAMES_H

#include "durable/durable.h"

/* Directories of an older tallyd, see durable_names.c. The thread that loads,
 * but for the last one, which is called at the end. */

/* Looks for names of an older tallyd: the disk is one on which all files have
 * today's names from then on. 0 or ERR_ (the logger has been told more). */
int durable_look_at_names(struct durable *durable);

/* An older tallyd's manifest goes with names of its time only. The same. */
int durable_check_names(struct durable *durable);

/* Such a directory becomes one of today: older ones refuse it from then on. It
 * may be interrupted; nothing is lost. The same. */
int durable_carry_over(struct durable *durable);

/* The disk is again the one that it was. */
void durable_end_names(struct durable *durable);

#endif
