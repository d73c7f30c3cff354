/* SPDX-License-Identifier: BSD-3-Clause */
/* Picks the instruction set of the batch read: the best one that is compiled in
 * and that the machine has. */
#include "engine/reader.h"

#include "base/assert.h"
#include "engine/engine_priv.h"
#include "engine/reader_priv.h"

#include <string.h>

static reader_get_fn *
variant(enum reader_isa isa)
{
    switch (isa) {
#define X(upper, lower, what)                                                 \
    case READER_##upper:                                                      \
        return reader_##lower();
        READER_ISAS(X)
#undef X
    case READER_BEST:
    case READER_ISA_COUNT:
        break;
    }
    return variant(reader_best());
}

bool
reader_has(enum reader_isa isa)
{
    return isa == READER_BEST || variant(isa) != NULL;
}

enum reader_isa
reader_best(void)
{
    for (int isa = READER_ISA_COUNT - 1; isa > READER_PORTABLE; isa--) {
        if (variant((enum reader_isa)isa) != NULL) {
            return (enum reader_isa)isa;
        }
    }
    return READER_PORTABLE;
}

const char *
reader_name(enum reader_isa isa)
{
    static const char *const name[READER_ISA_COUNT] = {[READER_BEST] = "best",
#define X(upper, lower, what) [READER_##upper] = #lower,
        READER_ISAS(X)
#undef X
    };
    return name[isa];
}

reader_get_fn *
reader_fn(enum reader_isa isa)
{
    reader_get_fn *fn = variant(isa);
    ASSERT(fn != NULL);
    return fn;
}

void
reader__locked(struct engine *engine, unsigned slot, uint32_t shard,
    uint64_t row, uint64_t *code)
{
    struct ranges_look look;
    struct counter *counter = engine__counter(engine, slot);
    ASSERT(counter != NULL);
    shard__lock(&engine->shard[shard]);
    ranges_find(&counter->ranges[shard], row, &look);
    shard__unlock(&engine->shard[shard]);
    memcpy(code, look.spot.record.code, sizeof look.spot.record.code);
}
