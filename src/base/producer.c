/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of producers. No character of a name is one that lines, keys or figures
 * are cut at (space, colon), so a name can stand in all of them. */
#include "base/producer.h"

#include "base/num.h"

#include <string.h>

static bool
is_safe(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
        (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
}

bool
producer_name_is_right(const char *text, size_t len)
{
    if (len < 1 || len > PRODUCER_NAME_MAX) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (!is_safe(text[i])) {
            return false;
        }
    }
    return true;
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
