/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_NAME_KINDS_H
#define BENCH_NAME_KINDS_H

#include "names/own_id.h"

#include <stddef.h>
#include <stdint.h>

/* Names by a seed that resemble real ones (doc/measurements.md says how).
 * Name i of a kind follows from seed and i alone; some come twice. */

enum name_kind { NAME_KIND_USER, NAME_KIND_MAIL, NAME_KIND_URL, NAME_KINDS };

extern const char *const name_kind_words[NAME_KINDS];

/* Writes name i to out, zeros behind it; returns its length. */
size_t name_kind_make(enum name_kind kind, uint64_t seed, uint64_t i,
    char out[NAME_BYTES_MAX + 8]);

#endif
