/* SPDX-License-Identifier: BSD-3-Clause */
/* Pairs in the text of replies to stats. A reply has some hundred lines, and
 * is looked through from its begin for each name: some microseconds. */
#include "server/figures.h"

#include "base/num.h"

#include <string.h>

static const char head[] = "STAT ";

enum { HEAD_BYTES = sizeof head - 1 };

void
figures_fini(struct figures *figures)
{
    for (unsigned i = 0; i < FIGURES_GROUPS_COUNT; i++) {
        buf_fini(&figures->text[i]);
    }
}

const char *
figures_group_name(enum figures_group group)
{
    static const char *const names[] = {
#define X(name, words) #name,
        FIGURES_GROUPS(X)
#undef X
    };
    return names[group];
}

bool
figures_next(const struct figures *figures, enum figures_group group,
    size_t *at, struct figures_pair *out)
{
    const struct buf *text = &figures->text[group];
    const char *from = text->data + *at;
    size_t len = text->len - *at;
    const char *end = len == 0 ? NULL : memmem(from, len, "\r\n", 2);
    if (end == NULL || (size_t)(end - from) < HEAD_BYTES ||
        memcmp(from, head, HEAD_BYTES) != 0) {
        return false;
    }
    *at += (size_t)(end - from) + 2;
    out->name = from + HEAD_BYTES;
    const char *space = memchr(out->name, ' ', (size_t)(end - out->name));
    out->name_len = (size_t)((space == NULL ? end : space) - out->name);
    out->value = space == NULL ? end : space + 1;
    out->value_len = (size_t)(end - out->value);
    return true;
}

static bool
find(const struct figures *figures, enum figures_group group, const char *name,
    struct figures_pair *out)
{
    size_t at = 0, len = strlen(name);
    while (figures_next(figures, group, &at, out)) {
        if (out->name_len == len && memcmp(out->name, name, len) == 0) {
            return true;
        }
    }
    return false;
}

bool
figures_text(const struct figures *figures, enum figures_group group,
    const char *name, char *out, size_t size)
{
    struct figures_pair pair = {.value_len = 0};
    bool is_there = find(figures, group, name, &pair);
    size_t len = !is_there      ? 0
        : pair.value_len < size ? pair.value_len
                                : size - 1;
    if (len > 0) {
        memcpy(out, pair.value, len);
    }
    out[len] = '\0';
    return is_there;
}

uint64_t
figures_u64(
    const struct figures *figures, enum figures_group group, const char *name)
{
    struct figures_pair pair;
    uint64_t value;
    return find(figures, group, name, &pair) &&
            num_parse_u64(pair.value, pair.value_len, &value)
        ? value
        : 0;
}
