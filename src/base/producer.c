/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of producers. */
#include "base/producer.h"

#include "base/num.h"
#include "base/safe_name.h"

#include <string.h>

bool
producer_name_is_right(const char *text, size_t len)
{
    return safe_name_is_right(text, len, PRODUCER_NAME_MAX);
}

bool
producer_name_set(struct producer_name *name, const char *text, size_t len)
{
    if (!producer_name_is_right(text, len)) {
        return false;
    }
    name->len = (uint8_t)len;
    memcpy(name->text, text, len);
    return true;
}

bool
producer_name_is(
    const struct producer_name *name, const char *text, size_t len)
{
    return name->len == len && memcmp(name->text, text, len) == 0;
}

bool
producer_parse(
    const char *text, size_t len, size_t *name_len, uint64_t *number)
{
    const char *colon = len == 0 ? NULL : memchr(text, ':', len);
    if (colon == NULL) {
        return false;
    }
    *name_len = (size_t)(colon - text);
    return producer_name_is_right(text, *name_len) &&
        num_parse_u64(colon + 1, len - *name_len - 1, number);
}
