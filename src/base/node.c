/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of nodes. No character of a name is one that lines, paths or figures
 * are cut at, so a name can stand in all of them. */
#include "base/node.h"

#include <string.h>

static bool
is_safe(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
        (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
}

bool
node_name_is_right(const char *text, size_t len)
{
    if (len < 1 || len > NODE_NAME_MAX) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (!is_safe(text[i])) {
            return false;
        }
    }
    return true;
}

bool
node_name_set(struct node_name *name, const char *text, size_t len)
{
    if (!node_name_is_right(text, len)) {
        return false;
    }
    *name = (struct node_name){.len = (uint8_t)len};
    memcpy(name->text, text, len);
    return true;
}
