/* SPDX-License-Identifier: BSD-3-Clause */
/* Telling cells from items by the look of the key.
 *
 * A key is cut at its only possible border: digits, then one of the three
 * separators, then a name. Nothing is copied. A key that fails any step is an
 * item's, so a schema change turns keys from one into the other and the
 * dialect refuses names where that could surprise (doc/protocol.md).
 *
 * Where ids are names the border is the last dot, for a name may have all bytes
 * of a key: what is behind it decides whose the key is. So this is looked at
 * first where there is such a counter, and only there. */
#include "proto/key.h"

#include "base/err.h"
#include "base/num.h"
#include "names/own_id.h"

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

/* The id of a record of a counter whose ids are names. */
static void
take_name(const char *name, size_t len, struct key *out)
{
    bool is_right = name_is_valid(name, len);
    bool is_own = is_right && own_id_of(name, len, &out->id);
    out->is_bad_name = !is_right;
    out->name = is_right && !is_own ? name : NULL;
    out->name_len = is_right ? (uint8_t)len : 0;
    if (!is_own) {
        out->id = 0;
    }
}

/* The same of what is before the last dot of a key, in one of the three
 * forms. */
static void
take_formed_name(const char *text, size_t len, struct key *out)
{
    size_t stop_len = sizeof proxy_stop - 2; /* without the dot */
    if (len >= 2 && text[0] == '{' && text[len - 1] == '}') {
        text++;
        len -= 2;
    } else if (len >= stop_len &&
        memcmp(text + len - stop_len, proxy_stop, stop_len) == 0) {
        len -= stop_len;
    }
    take_name(text, len, out);
}

/* A key of a counter whose ids are names; false: it is none. */
static bool
parse_name(
    const struct schema *schema, const char *text, size_t len, struct key *out)
{
    const char *dot = memrchr(text, '.', len);
    if (dot == NULL ||
        !find(schema, dot + 1, (size_t)(text + len - dot) - 1, out) ||
        !out->target.counter->key_is_text) {
        return false;
    }
    take_formed_name(text, (size_t)(dot - text), out);
    return true;
}

void
key__parse(
    const struct schema *schema, const char *text, size_t len, struct key *out)
{
    const char *name;
    size_t name_len;
    if (schema_has_text(schema) && parse_name(schema, text, len, out)) {
        return;
    }
    out->kind = KEY_ITEM;
    if (len == 0 || (text[0] != '{' && (text[0] < '0' || text[0] > '9'))) {
        return;
    }
    if (!cut(text, len, &out->id, &name, &name_len) || name_len == 0 ||
        !find(schema, name, name_len, out) ||
        out->target.counter->key_is_text) { /* not behind its last dot */
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

/* What a name behind the dot stands for, in the dialect. */
static bool
find_dialect(const struct schema_counter *counter, const char *name,
    size_t name_len, struct key *out)
{
    if (name_len == counter->name.len &&
        memcmp(name, counter->name.text, name_len) == 0) {
        out->target = (struct schema_target){.counter = counter};
        out->kind = KEY_RECORD;
        return true;
    }
    out->has_member = false;
    const char *colon = memchr(name, ':', name_len);
    size_t column_len = colon == NULL ? name_len : (size_t)(colon - name);
    out->target = (struct schema_target){.counter = counter,
        .column = schema_counter_column(counter, name, column_len)};
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

/* The same as key_parse_dialect where ids are names. */
static bool
parse_dialect_name(const struct schema_counter *counter, const char *text,
    size_t len, struct key *out)
{
    const char *dot = memrchr(text, '.', len);
    if (dot != NULL &&
        find_dialect(counter, dot + 1, (size_t)(text + len - dot) - 1, out)) {
        take_formed_name(text, (size_t)(dot - text), out);
    } else {
        out->target = (struct schema_target){.counter = counter};
        out->kind = KEY_RECORD;
        take_name(text, len, out);
    }
    return true;
}

bool
key_parse_dialect(const struct schema_counter *counter, const char *text,
    size_t len, struct key *out)
{
    const char *name;
    size_t name_len;
    if (counter->key_is_text) {
        return parse_dialect_name(counter, text, len, out);
    }
    if (!cut(text, len, &out->id, &name, &name_len)) {
        return false;
    }
    if (name_len == 0) {
        out->target = (struct schema_target){.counter = counter};
        out->kind = KEY_RECORD;
        return true;
    }
    return find_dialect(counter, name, name_len, out);
}

static size_t
put(char *out, const char *bytes, size_t len)
{
    memcpy(out, bytes, len);
    return len;
}

size_t
key_put_word(const struct schema_counter *counter,
    const struct schema_column *column, const char *name, size_t len,
    char *out)
{
    const char *dot = memrchr(name, '.', len);
    const struct schema_name *end = &counter->name;
    struct key key;
    size_t n = 0;
    if (column != NULL) {
        end = column->suffix.len > 0 ? &column->suffix : &column->name;
    } else if (dot == NULL ||
        !find_dialect(
            counter, dot + 1, (size_t)(name + len - dot) - 1, &key)) {
        return put(out, name, len);
    }
    take_formed_name(name, len, &key);
    bool is_formed = key.name_len != len; /* and so would be cut */
    if (is_formed) {
        out[n++] = '{';
    }
    n += put(out + n, name, len);
    if (is_formed) {
        out[n++] = '}';
    }
    out[n++] = '.';
    return n + put(out + n, end->text, end->len);
}

int
key_dialect_fault(const char *text, size_t len)
{
    return memchr(text, '.', len) == NULL ? ERR_BAD_ID : ERR_NO_COLUMN;
}
