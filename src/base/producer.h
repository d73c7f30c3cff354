/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_PRODUCER_H
#define BASE_PRODUCER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Who numbers its changes: names, and "NAME:NUMBER" as clients write it.
 * Pure; any thread. */

enum { PRODUCER_NAME_MAX = 32 /* bytes */ };

struct producer_name {
    uint8_t len; /* 1..PRODUCER_NAME_MAX; 0: none */
    char text[PRODUCER_NAME_MAX];
};

/* True for 1 to 32 letters, digits, '_', '.' and '-'. */
bool producer_name_is_right(const char *text, size_t len);

/* Takes a name; false where it is not right. */
bool producer_name_set(
    struct producer_name *name, const char *text, size_t len);

bool producer_name_is(
    const struct producer_name *name, const char *text, size_t len);

/* Reads NAME:NUMBER, the number as num_parse_u64 does: *name_len bytes of text
 * are the name. False where it is something else. */
bool producer_parse(
    const char *text, size_t len, size_t *name_len, uint64_t *number);

#endif
