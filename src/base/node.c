/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of nodes. */
#include "base/node.h"

#include "base/safe_name.h"

#include <string.h>

bool
node_name_is_right(const char *text, size_t len)
{
    return safe_name_is_right(text, len, NODE_NAME_MAX);
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
