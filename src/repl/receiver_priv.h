/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_RECEIVER_PRIV_H
#define REPL_RECEIVER_PRIV_H

#include "repl/receiver.h"

/* Between the files of a receiver. The node's thread. */

/* receiver_dial.c: */

/* Asks who connects, if that may be; of one that rests. */
void receiver_dial(struct receiver *receiver);

/* The connection is used no more. gently: the other end is to read what is on
 * its way. */
void receiver_leave(struct receiver *receiver, bool gently);

/* The link, or the socket, is at its end: says why, and leaves. */
void receiver_end_link(struct receiver *receiver);
void receiver_break(struct receiver *receiver, const char *why);

/* receiver_fetch.c: */

/* Batches have come. False: more than are fetched, and the link is over. */
bool receiver_count_fetch(struct receiver *receiver);

/* The link of a fetch, or the try to connect, is over. has_all: nothing is
 * missing. Of one that follows nothing. */
void receiver_end_fetch(struct receiver *receiver, bool has_all);

/* Looks whether what was fetched is in the log. */
void receiver_turn_fetch(struct receiver *receiver);

/* receiver.c: */

/* There may be bytes. */
void receiver_on_moved(struct wire *wire);

#endif
