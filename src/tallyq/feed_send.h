/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TALLYQ_FEED_SEND_H
#define TALLYQ_FEED_SEND_H

#include "tallyq/feed.h"

/* What feed.c says to a server, over its connection. False: the connection is
 * to be ended, config.talk->why says why. A part of feed.c. */

/* Reads the record, and its cas unique into feed->unique. All zero where there
 * is none; the counter is declared where it is not there. */
bool feed_read_record(struct feed *feed, struct record *out);

/* Puts next in the place of feed->held, and makes it that. */
bool feed_write_record(struct feed *feed, const struct record *next);

/* Sends the batch's changes, but for those that are put aside, until each has
 * an answer; appends those that are refused to batch.aside, and marks them. */
bool feed_send(struct feed *feed);

#endif
