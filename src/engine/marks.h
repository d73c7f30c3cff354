/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_MARKS_H
#define ENGINE_MARKS_H

#include <stdint.h>

/* Who knows which numbered changes (change.producer) have been done; a seam.
 * Both functions are called under the lock of the shard, look_fn before the
 * change is made and mark_fn, if it was made, before the sink is told of it:
 * so whoever has the shard's lock finds a change, its mark, and what the log
 * has of both, or nothing of them. */

enum engine_mark {
    ENGINE_MARK_NEW,   /* to be done */
    ENGINE_MARK_SEEN,  /* done before */
    ENGINE_MARK_BELOW, /* not known any more */
    ENGINE_MARK_GONE   /* there is no such producer any more */
};

struct change; /* engine/cell.h */

struct engine_marks {
    enum engine_mark (*look_fn)(struct engine_marks *marks, unsigned shard,
        const struct change *change);
    void (*mark_fn)(struct engine_marks *marks, unsigned shard,
        const struct change *change);
};

struct engine;

/* The marks of numbered changes; NULL: there are none. No other call may be
 * under way. */
void engine_set_marks(struct engine *engine, struct engine_marks *marks);

/* Calls fn under the lock of a shard. It must not call the engine, but for
 * engine_get of ids of that shard, nor wait. Any thread. */
void engine_hold(struct engine *engine, unsigned shard,
    void (*fn)(void *context, unsigned shard), void *context);

#endif
