/* SPDX-License-Identifier: BSD-3-Clause */
/* The names of log and checkpoint files: what they are, and their numbers. */
#include "wal/names.h"

#include "base/assert.h"
#include "base/num.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *before;
    const char *behind;
} parts[NAMES_KINDS] = {
    [NAMES_LOG] = {"log-", ".wal"},
    [NAMES_LOG_NEW] = {"log-", ".wal.new"},
    [NAMES_CHECKPOINT] = {"checkpoint-", ".ckpt"},
    [NAMES_CUT] = {"cut-", ".wal"},
    [NAMES_CUT_NEW] = {"cut-", ".wal.new"},
};

void
names_make(char out[NAMES_BYTES], enum names_kind kind, uint64_t number)
{
    ASSERT((unsigned)kind < NAMES_KINDS);
    int len = snprintf(out, NAMES_BYTES, "%s%020" PRIu64 "%s",
        parts[kind].before, number, parts[kind].behind);
    ASSERT(len > 0 && len < NAMES_BYTES);
}

bool
names_parse(const char *name, enum names_kind *kind, uint64_t *number)
{
    size_t len = strlen(name);
    for (int i = 0; i < NAMES_KINDS; i++) {
        size_t before = strlen(parts[i].before);
        if (len == before + NUM_U64_DIGITS_MAX + strlen(parts[i].behind) &&
            memcmp(name, parts[i].before, before) == 0 &&
            strcmp(name + before + NUM_U64_DIGITS_MAX, parts[i].behind) == 0 &&
            num_parse_u64(name + before, NUM_U64_DIGITS_MAX, number)) {
            *kind = (enum names_kind)i;
            return true;
        }
    }
    return false;
}
