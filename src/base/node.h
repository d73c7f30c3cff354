/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_NODE_H
#define BASE_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a server is called among those that are copies of one directory: as a
 * rule its host name. Pure; any thread. */

enum { NODE_NAME_MAX = 64 /* bytes; as long as a host name may be */ };

struct node_name {
    uint8_t len; /* 1..NODE_NAME_MAX; 0: none */
    char text[NODE_NAME_MAX];
};

/* True for 1 to NODE_NAME_MAX letters, digits, '_', '.' and '-'. */
bool node_name_is_right(const char *text, size_t len);

/* Takes a name; false where it is not right, and nothing has changed. What is
 * behind its end becomes zeroes. */
bool node_name_set(struct node_name *name, const char *text, size_t len);

#endif
