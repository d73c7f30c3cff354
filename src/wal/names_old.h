/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WAL_NAMES_OLD_H
#define WAL_NAMES_OLD_H

#include "base/disk.h"
#include "wal/names.h"

#include <stdbool.h>

/* Directories of an older tallyd, whose log and checkpoint files have no suffix
 * in their names. They are read as they are, and get their new names at the
 * first start that writes to them. */

/* True where name is one that an older tallyd made; out: the name it has today.
 * Pure. */
bool names_old_parse(const char *name, char out[NAMES_BYTES]);

/* The other way about: false of a name that was always the same. Pure. */
bool names_old_make(const char *name, char out[NAMES_BYTES]);

struct names_old_found {
    bool has_old;            /* some file has an old name */
    char today[NAMES_BYTES]; /* the last name of today's; "": there is none */
};

/* 0 or an errno value. */
int names_old_find(struct disk *disk, struct names_old_found *found);

/* The same disk as one on which all files have today's names: a file that has
 * no such name is found by its old one. What it makes gets today's name. *out
 * is the caller's, freed by names_old_destroy; under must outlive it. 0 or
 * ENOMEM. */
int names_old_create(struct disk *under, struct disk **out);
void names_old_destroy(struct disk **disk);

/* Gives all files today's names, durably, and removes what an older tallyd had
 * begun and not finished. The manifest must be one that older ones refuse
 * already: they would take what is left for all there is. May be interrupted,
 * and called again. disk is of names_old_create. A file whose new name another
 * one has stays. 0 or an errno value. */
int names_old_carry(struct disk *disk);

#endif
