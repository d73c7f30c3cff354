/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OFFLINE_DATA_NAMES_H
#define OFFLINE_DATA_NAMES_H

#include "durable/durable_naming.h"

#include <stdbool.h>

/* The names of a directory that no server has open, as a start would have them.
 * One thread. All zero: there are none yet. */
struct data_names {
    struct durable_naming naming;
    struct engine *engine; /* owned; knows where ids are */
};

/* Loads the images that the manifest names, which stays; passes_damage: but for
 * those that cannot be read. 0; ERR_NO_MEMORY, or an error of
 * durable_naming_load, and nothing is kept. */
int data_names_begin(struct data_names *it, const struct manifest *manifest,
    struct disk *disk, struct logger *logger, bool passes_damage);
void data_names_fini(struct data_names *it);

/* How many there are. */
uint64_t data_names_count(const struct data_names *it);

#endif
