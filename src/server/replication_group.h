/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_REPLICATION_GROUP_H
#define SERVER_REPLICATION_GROUP_H

#include "server/replication.h"

/* The seam of session/group.h, in front of a node: for replication.c, whose
 * struct replication begins with it. */

/* is_automatic: etcd says who is primary. forwards: of a replica changes go to
 * the primary. */
struct group replication__group(bool is_automatic, bool forwards);

/* NULL: there is none at the moment. It stays until the caller's reader of the
 * store's qsbr goes quiescent. */
struct node *replication__node(struct replication *replication);

#endif
