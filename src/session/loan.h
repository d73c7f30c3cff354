/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SESSION_LOAN_H
#define SESSION_LOAN_H

#include <stdbool.h>
#include <stddef.h>

/* A value of an item that is not copied into the replies of a turn: it is
 * lent (items/loan.h), and sent from where it is. A turn has at most one, and
 * ends behind it. The session's thread. */

enum {
    LOAN_BYTES_MIN = 32 << 10 /* shorter values are copied: that costs less
                               * than a turn of their own */
};

struct executor; /* session/session.h */
struct item;     /* items/items.h */

enum loan_use {
    LOAN_NEVER, /* values are copied, whatever their length */
    LOAN_NOW,
    LOAN_LATER /* others are on their way: a value that is to be lent ends
                * the turn before it */
};

struct loan {
    /* what the connection says before a turn: */
    enum loan_use use;
    size_t bytes_min; /* shorter ones are copied */
    /* what the turn has come to: */
    bool is_awaited;         /* it has ended for want of LOAN_NOW */
    const struct item *item; /* lent, and now the connection's to give back;
                              * NULL: none */
    size_t at;               /* where in the replies its value belongs */
};

/* Gives back what the last turn has lent, if anything: for who does not send
 * it. */
void loan_take_back(struct executor *executor);

#endif
