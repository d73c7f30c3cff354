/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NET_ACCEPT_H
#define NET_ACCEPT_H

#include <errno.h>

/* Why accept has given nobody. */
enum accept_end {
    ACCEPT_NOBODY, /* nobody is waiting */
    ACCEPT_SHORT,  /* of descriptors or memory: who is waiting goes on waiting,
                    * and a poll goes on saying so */
    ACCEPT_GONE    /* that one has gone again: the next one */
};

/* error: errno of accept. Pure. */
static inline enum accept_end
accept_end_of(int error)
{
    switch (error) {
    case EAGAIN:
#if EWOULDBLOCK != EAGAIN
    case EWOULDBLOCK:
#endif
        return ACCEPT_NOBODY;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
        return ACCEPT_SHORT;
    default:
        return ACCEPT_GONE;
    }
}

#endif
