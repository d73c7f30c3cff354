/* SPDX-License-Identifier: BSD-3-Clause */
/* A queue with one place an address: the first login of each is linked by
 * next, those behind it by behind. Who is taken leaves the place to the one
 * behind it, at the end of the queue. */
#include "server/auth_queue.h"

#include <stddef.h>

/* Behind the other addresses. */
static void
append(struct auth_queue *queue, struct access_login *login)
{
    login->next = NULL;
    if (queue->first == NULL) {
        queue->first = login;
    } else {
        queue->last->next = login;
    }
    queue->last = login;
}

void
auth_queue_add(struct auth_queue *queue, struct access_login *login)
{
    struct access_login *head = queue->first;
    while (head != NULL && head->from != login->from) {
        head = head->next;
    }
    login->behind = NULL;
    if (head != NULL) {
        head->hindmost->behind = login;
        head->hindmost = login;
        return;
    }
    login->hindmost = login;
    append(queue, login);
}

struct access_login *
auth_queue_take(struct auth_queue *queue)
{
    struct access_login *login = queue->first;
    if (login == NULL) {
        return NULL;
    }
    queue->first = login->next;
    if (login->behind != NULL) {
        login->behind->hindmost = login->hindmost;
        append(queue, login->behind);
    }
    return login;
}
