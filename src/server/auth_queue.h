/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_AUTH_QUEUE_H
#define SERVER_AUTH_QUEUE_H

#include "session/access.h"

/* Logins that wait for a slow check, fair by the clients' addresses: each
 * address that has some gets its turn for one, in the order in which they came.
 * So whoever guesses from one address makes another wait for one check a turn,
 * however many connections he has. A client's connections have one login each
 * at most: that is the bound.
 *
 * All zero is an empty one. The logins stay their askers'; the owner has a lock
 * for it. To add takes longer the more addresses wait. */
struct auth_queue {
    struct access_login *first, *last; /* of each address its next login, by
                                        * ->next; last: void where first is
                                        * NULL */
};

/* Puts login behind the others of its address. */
void auth_queue_add(struct auth_queue *queue, struct access_login *login);

/* Takes out the login whose turn it is; NULL: there is none. */
struct access_login *auth_queue_take(struct auth_queue *queue);

#endif
