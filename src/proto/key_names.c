/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of keys that are kept: a small table with two places a name, side by
 * side. A name takes the first one, and what was there goes to the second, so
 * that two names never drive out each other again and again. */
#include "proto/key_names.h"

#include "base/assert.h"

#include <assert.h>

static_assert(KEY_NAMES == 1 << KEY_NAMES_BITS, "see key_names__place");
static_assert(KEY_NAMES_CHARS < 2 * CHUNK_BYTES,
    "the byte that ends a name is in its words, too");
static_assert(KEY_ID_DIGITS + 1 + 2 * CHUNK_BYTES <= KEY_NAMES__NEAR &&
        4 * CHUNK_BYTES <= KEY_NAMES__NEAR,
    "see key_names__read");

static void
note_end(struct key_names *names, const struct schema_name *name)
{
    if (name->len > 0) {
        uint8_t last = (uint8_t)name->text[name->len - 1];
        names->ends[last / 64] |= UINT64_C(1) << last % 64;
    }
}

/* Behind some names a member may stand, which ends in a digit. */
static void
note_member_end(struct key_names *names)
{
    static const struct schema_name digit = {.len = 1, .text = "0"};
    struct schema_name name = digit;
    for (; name.text[0] <= '9'; name.text[0]++) {
        note_end(names, &name);
    }
}

void
key_names__begin(struct key_names *names, const struct schema *schema)
{
    *names = (struct key_names){.schema = schema,
        .version = schema_version(schema),
        .n_changes = names->n_changes + 1};
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        const struct schema_counter *counter = schema_counter_at(schema, slot);
        if (counter == NULL || counter->members_of != 0) {
            continue; /* none, or one that no key reaches */
        }
        note_end(names, &counter->name);
        for (unsigned i = 0; i < counter->n_columns; i++) {
            note_end(names, &counter->column[i].name);
            note_end(names, &counter->column[i].suffix);
            note_end(names, &counter->column[i].unread);
            bool has_members = counter->column[i].kind == SCHEMA_MEMBERS;
            if (has_members || counter->column[i].kind == SCHEMA_FOLLOWS) {
                note_member_end(names);
            }
            names->has_members = names->has_members || has_members;
        }
    }
}

static void
keep(struct key_names *names, const char *name, size_t len,
    const struct key *key)
{
    char text[2 * CHUNK_BYTES] = {0};
    memcpy(text, name, len);
    uint64_t word_0 = chunk_load(text);
    uint64_t word_1 = chunk_load(text + CHUNK_BYTES);
    if (key_names__find(names, word_0, word_1) != NULL) {
        return; /* it was the id that was not read */
    }
    unsigned at = key_names__place(word_0, word_1);
    names->name[at ^ 1] = names->name[at];
    names->name[at].word[0] = word_0;
    names->name[at].word[1] = word_1;
    names->name[at].target = key->target;
    names->name[at].kind = key->kind;
    names->n_changes++;
}

void
key_names_parse(
    struct key_names *names, const char *text, size_t len, struct key *out)
{
    ASSERT(names->schema != NULL);
    key__parse(names->schema, text, len, out);
    if (out->kind == KEY_ITEM || out->kind == KEY_LIST ||
        out->kind == KEY_MEMBER) {
        return; /* the last two are long to read, whatever their keys take */
    }
    const char *dot = memchr(text, '.', len); /* the only one: see key.c */
    ASSERT(dot != NULL);
    if (dot > text && dot[-1] == '|') {
        return; /* mcrouter's form */
    }
    size_t name_len = len - (size_t)(dot - text) - 1;
    if (name_len <= KEY_NAMES_CHARS) {
        keep(names, dot + 1, name_len, out);
    }
}

uint32_t
key_names__read_near(const struct key_names *names, const char *text,
    const char *end, struct key *out)
{
    char near[KEY_NAMES__NEAR] = {0};
    size_t left = (size_t)(end - text);
    ASSERT(left < sizeof near);
    memcpy(near, text, left);
    return key_names__read(names, near, near + left, out);
}

bool
key_names_is_kept(const struct key_names *names, const char *text, size_t len,
    const char *readable, struct key *out)
{
    char near[KEY_NAMES__NEAR] = {0};
    if (len > sizeof near) {
        return false;
    }
    if (readable - text < KEY_NAMES__NEAR) {
        memcpy(near, text, len);
        text = near;
    }
    return key_names_exact(names, text, (uint32_t)len, out);
}
