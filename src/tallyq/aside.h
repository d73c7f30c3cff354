/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TALLYQ_ASIDE_H
#define TALLYQ_ASIDE_H

#include "base/buf.h"
#include "tallyq/position.h"

/* What could not be counted, in a file, one line each:
 *
 *   at=1712-0 why="a line is KEY DELTA" line="12.cntcm"
 *   end=1712-0 tx=likes:17 digest=9f.. why="increment would ..." change="K 5"
 *
 * The first is a line of the message at that position; the second a change of
 * the batch that ended there, which tallyd has refused. In quotes all bytes but
 * printable ASCII are \xNN, and so are quotes and backslashes. One thread. */

/* Appends such a line. Memory that runs out marks the buffer. */
void aside_put_line(struct buf *out, struct position at, const char *why,
    const char *text, size_t len);

/* A change that was refused: which one, and what tallyd said. */
struct aside_change {
    struct position end; /* of its batch */
    const char *name;    /* of the producer */
    uint64_t number;
    uint64_t digest; /* of the batch */
    const char *key;
    size_t key_len;
    uint64_t delta;
};
void aside_put_change(struct buf *out, const struct aside_change *change,
    const char *why, size_t why_len);

/* Appends text[0..len), whole lines, to the file, and syncs it: 0 or an errno
 * value; what was written in part is ended before the next. len 0: the file is
 * looked at, and made where it is not there. */
int aside_write(const char *path, const char *text, size_t len);

/* Calls found_fn for each change of that producer's batch that stands in the
 * file. 0 or an errno value; a file that is not there has none. */
int aside_find(const char *path, const char *name, uint64_t digest,
    void (*found_fn)(void *context, uint64_t number), void *context);

#endif
