/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/number.h"

#include "base/num.h"
#include "bench/fail.h"

#include <inttypes.h>
#include <string.h>

uint64_t
number_within(
    const char *option, const char *text, uint64_t least, uint64_t most)
{
    uint64_t value;
    if (!num_parse_u64(text, strlen(text), &value) || value < least ||
        value > most) {
        fail("--%s takes %" PRIu64 " to %" PRIu64, option, least, most);
    }
    return value;
}
