/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of keys that are kept: a small table with two places a name, side by
 * side. A name takes the first one, and what was there goes to the second, so
 * that two names never drive out each other again and again. */
#include "proto/key_names.h"

#include "base/assert.h"

#include <assert.h>

enum {
    /* the longest key of a member that is read in one pass */
    KEY_MEMBER_BYTES = 2 * KEY_ID_DIGITS + KEY_NAMES_CHARS + 2,
    KEY_ID_NEAR = 32 /* what key_id_read looks at */
};

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

/* A name of 1 to KEY_NAMES_CHARS characters as two words. */
static inline void
put_words(const char *name, size_t len, uint64_t word[2])
{
    char text[2 * CHUNK_BYTES] = {0};
    memcpy(text, name, len);
    word[0] = chunk_load(text);
    word[1] = chunk_load(text + CHUNK_BYTES);
}

static void
keep(struct key_names *names, const char *name, size_t len,
    const struct key *key)
{
    uint64_t word[2];
    put_words(name, len, word);
    if (key_names__find(names, word[0], word[1]) != NULL) {
        return; /* it was the id that was not read */
    }
    unsigned at = key_names__place(word[0], word[1]);
    names->name[at ^ 1] = names->name[at];
    names->name[at].word[0] = word[0];
    names->name[at].word[1] = word[1];
    names->name[at].target = key->target;
    names->name[at].kind = key->kind;
    names->n_changes++;
}

/* A name that is kept of keys with a member; NULL where it is not. */
static inline const struct key_name *
find_with_member(const struct key_names *names, const uint64_t word[2])
{
    for (unsigned i = 0; i < KEY_NAMES_MEMBERS; i++) {
        const struct key_name *name = &names->with_member[i];
        if (name->word[0] == word[0] && name->word[1] == word[1]) {
            return name;
        }
    }
    return NULL;
}

/* The same as key__parse for a key of the form ID.NAME:MEMBER with a name that
 * is kept; false where it may be anything else. */
static bool
read_member(const struct key_names *names, const char *text, size_t len,
    struct key *out)
{
    char near[KEY_MEMBER_BYTES + KEY_ID_NEAR] = {0};
    uint64_t word[2];
    if (len > KEY_MEMBER_BYTES) {
        return false;
    }
    memcpy(near, text, len);
    size_t at = key_id_read(near, &out->id);
    if (at == 0 || near[at++] != '.') {
        return false;
    }
    const char *colon = memchr(near + at, ':', len - at);
    size_t name_len = colon == NULL ? 0 : (size_t)(colon - near) - at;
    if (name_len == 0 || name_len > KEY_NAMES_CHARS) {
        return false;
    }
    size_t n = key_id_read(colon + 1, &out->member);
    if (n == 0 || at + name_len + 1 + n != len) {
        return false;
    }
    if (near[at + name_len - 1] == 0) { /* see key_names_exact */
        return false;
    }
    put_words(near + at, name_len, word);
    const struct key_name *name = find_with_member(names, word);
    if (name == NULL) {
        return false;
    }
    out->target = name->target;
    out->kind = name->kind;
    out->has_member = true;
    return true;
}

/* Keeps the name in a key that is of a list or of members. */
static void
keep_with_member(struct key_names *names, const char *text, size_t len,
    const struct key *key)
{
    const char *dot = memchr(text, '.', len);
    ASSERT(dot != NULL);
    const char *colon = memchr(dot, ':', len - (size_t)(dot - text));
    if (colon == NULL || dot[-1] == '|' || dot[-1] == '}' ||
        colon - dot - 1 > KEY_NAMES_CHARS || key->member == UINT64_MAX) {
        return; /* read_member reads none of these */
    }
    uint64_t word[2];
    put_words(dot + 1, (size_t)(colon - dot) - 1, word);
    if (find_with_member(names, word) != NULL) {
        return; /* it was a number that was not read */
    }
    unsigned at = names->n_with_member++ % KEY_NAMES_MEMBERS;
    names->with_member[at] = (struct key_name){
        .word = {word[0], word[1]}, .target = key->target, .kind = key->kind};
}

void
key_names_parse(
    struct key_names *names, const char *text, size_t len, struct key *out)
{
    ASSERT(names->schema != NULL);
    if (names->n_with_member > 0 && read_member(names, text, len, out)) {
        return;
    }
    key__parse(names->schema, text, len, out);
    if (out->kind == KEY_LIST || out->kind == KEY_MEMBER) {
        keep_with_member(names, text, len, out);
        return; /* they are long to read, whatever their keys take */
    }
    if (out->kind == KEY_ITEM) {
        return;
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
