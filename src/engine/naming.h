/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_NAMING_H
#define ENGINE_NAMING_H

#include <stdbool.h>
#include <stdint.h>

struct engine;

/* Ids that follow from a name only when the record is changed, for a name gets
 * its number then. */

/* What a change carries whose id is that of such a name. */
struct engine_name {
    const char *bytes; /* not owned */
    uint8_t len;       /* 1..200 */
};

/* Who gives names their numbers; a seam. Both are called under the lock of the
 * shard, and must not call the engine. */
struct engine_names {
    /* Before a change of that name. *id is what was found before, in that
     * shard, and becomes what it is now, in the same shard; false: the name has
     * no number, and *id is one that has no record, now or ever. A change that
     * leaves nothing there is made of that one. */
    bool (*look_fn)(struct engine_names *names, unsigned shard,
        const struct engine_name *name, uint64_t *id);
    /* Gives a name that has none a number; *id becomes its id. 0; ERR_HOT_FULL,
     * ERR_NO_MEMORY: the change is refused. */
    int (*take_fn)(struct engine_names *names, unsigned shard,
        const struct engine_name *name, uint64_t *id);
};

/* NULL: no change has a name. No other call may be under way. With it one
 * change, too, is made by an online reader. */
void engine_set_names(struct engine *engine, struct engine_names *names);

#endif
