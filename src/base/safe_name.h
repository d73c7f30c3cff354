/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_SAFE_NAME_H
#define BASE_SAFE_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* Names that others give, of producers and of nodes. No character of one is
 * such that lines, paths, keys or figures are cut at it (space, colon, slash),
 * so a name can stand in all of them. Pure; any thread. */

/* True for 1 to max letters, digits, '_', '.' and '-'. */
static inline bool
safe_name_is_right(const char *text, size_t len, size_t max)
{
    if (len < 1 || len > max) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-')) {
            return false;
        }
    }
    return true;
}

#endif
