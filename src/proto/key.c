/* SPDX-License-Identifier: BSD-3-Clause */
/* Telling cells from items by the look of the key.
 *
 * A key is cut at its only possible border: digits, then one of the three
 * separators, then a name. Nothing is copied. A key that fails any step is an
 * item's, so a schema change turns keys from one into the other and the
 * dialect refuses names where that could surprise (doc/protocol.md). */
#include "proto/key.h"

#include "base/err.h"
#include "base/num.h"

#include <string.h>

static const char proxy_stop[] = "|#|."; /* mcrouter's hash stop, and a dot */

/* The id that text begins with, and where what belongs to it ends. False where
 * it begins with none. */
static bool
cut_id(const char *text, size_t len, uint64_t *id, size_t *end)
{
    bool braced = len > 0 && text[0] == '{';
    size_t start = braced ? 1 : 0;
    size_t at = start;
    while (at < len && text[at] >= '0' && text[at] <= '9') {
        at++;
    }
    if (!num_parse_id(text + start, at - start, id)) {
        return false;
    }
    size_t stop_len = sizeof proxy_stop - 1;
    if (braced) {
        if (at == len || text[at] != '}') {
            return false;
        }
        at++;
    } else if (len - at >= stop_len &&
        memcmp(text + at, proxy_stop, stop_len) == 0) {
        at += stop_len - 1;
    }
    *end = at;
    return true;
}

/* Cuts text into an id and the name behind it; name_len 0 where there is no
 * separator at all (a bare id). False where the text has not that form. */
static bool
cut(const char *text, size_t len, uint64_t *id, const char **name,
    size_t *name_len)
{
    size_t at;
    if (!cut_id(text, len, id, &at)) {
        return false;
    }
    if (at == len) {
        *name_len = 0;
        return text[0] != '{';
    }
    if (text[at] != '.' || at + 1 == len) {
        return false;
    }
    *name = text + at + 1;
    *name_len = len - at - 1;
    return true;
}

/* True for a decimal number that num_parse_id finds too large. */
static bool
is_beyond_all(const char *text, size_t len)
{
    if (len < NUM_U64_DIGITS_MAX || text[0] == '0') {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return false;
        }
    }
    return true;
}

/* The member behind the name of a list, or of members: false where it is none,
 * or out->kind says that it is of something else. */
static bool
take_member(const char *text, size_t len, struct key *out)
{
    if (!key_takes_member(out->kind)) {
        return false;
    }
    out->has_member = true;
    if (num_parse_id(text, len, &out->member)) {
        return true;
    }
    out->member = UINT64_MAX; /* which no column takes: it is refused */
    return out->kind != KEY_LIST && is_beyond_all(text, len);
}

/* What a name stands for, with a member behind it where it has some. */
static bool
find(
    const struct schema *schema, const char *name, size_t len, struct key *out)
{
    const char *colon = memchr(name, ':', len); /* no name has one */
    size_t name_len = colon == NULL ? len : (size_t)(colon - name);

    out->has_member = false;
    if (!schema_find(schema, name, name_len, &out->target)) {
        return false;
    }
    out->kind = key_kind_of(&out->target);
    return colon == NULL || take_member(colon + 1, len - name_len - 1, out);
}

void
key__parse(
    const struct schema *schema, const char *text, size_t len, struct key *out)
{
    const char *name;
    size_t name_len;
    out->kind = KEY_ITEM;
    if (len == 0 || (text[0] != '{' && (text[0] < '0' || text[0] > '9'))) {
        return;
    }
    if (!cut(text, len, &out->id, &name, &name_len) || name_len == 0 ||
        !find(schema, name, name_len, out)) {
        out->kind = KEY_ITEM;
    }
}

int
key_near(const struct schema *schema, const char *text, size_t len)
{
    const char *dot = memrchr(text, '.', len);
    struct key key;
    uint64_t id;
    size_t at;
    if (dot == NULL || schema_is_empty(schema)) {
        return 0;
    }
    if (cut_id(text, len, &id, &at) && at < len && text[at] == '.') {
        return ERR_NEAR_NAME;
    }
    dot++;
    return find(schema, dot, (size_t)(text + len - dot), &key) ? ERR_NEAR_ID
                                                               : 0;
}

bool
key_parse_dialect(const struct schema_counter *counter, const char *text,
    size_t len, struct key *out)
{
    const char *name;
    size_t name_len;
    if (!cut(text, len, &out->id, &name, &name_len)) {
        return false;
    }
    out->target = (struct schema_target){.counter = counter};
    out->kind = KEY_RECORD;
    if (name_len == 0 ||
        (name_len == counter->name.len &&
            memcmp(name, counter->name.text, name_len) == 0)) {
        return true;
    }
    out->has_member = false;
    const char *colon = memchr(name, ':', name_len);
    size_t column_len = colon == NULL ? name_len : (size_t)(colon - name);
    out->target.column = schema_counter_column(counter, name, column_len);
    if (out->target.column == NULL) {
        return false;
    }
    out->kind = key_kind_of(&out->target);
    if (out->kind == KEY_MARK) {
        out->kind = KEY_CELL;
    }
    return colon == NULL ||
        take_member(colon + 1, name_len - column_len - 1, out);
}

int
key_dialect_fault(const char *text, size_t len)
{
    return memchr(text, '.', len) == NULL ? ERR_BAD_ID : ERR_NO_COLUMN;
}
