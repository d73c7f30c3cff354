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
            bool has_members = !schema_is_in_record(&counter->column[i]);
            if (has_members || counter->column[i].kind == SCHEMA_FOLLOWS) {
                note_member_end(names);
            }
            names->has_faults = names->has_faults || has_members;
        }
        names->has_faults = names->has_faults || counter->key_is_text;
    }
}

/* A name of 1 to KEY_NAMES_CHARS characters as two words; with a colon, one
 * more. */
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

/* The name of keys with a member that stands in these words, with the colon;
 * NULL where none that is kept does. */
static inline const struct key_member_name *
find_with_member(
    const struct key_names *names, uint64_t word_0, uint64_t word_1)
{
    for (unsigned i = 0; i < KEY_NAMES_MEMBERS; i++) {
        const struct key_member_name *name = &names->with_member[i];
        if (((word_0 & name->mask[0]) ^ name->word[0]) == 0 &&
            ((word_1 & name->mask[1]) ^ name->word[1]) == 0) {
            return name->len == 0 ? NULL : name;
        }
    }
    return NULL;
}

uint32_t
key_names_word_member(
    const struct key_names *names, const char *text, struct key *out)
{
    unsigned at = key_id_read(text, &out->id);
    if (at == 0 || text[at++] != '.') {
        return 0;
    }
    const struct key_member_name *name = find_with_member(
        names, chunk_load(text + at), chunk_load(text + at + CHUNK_BYTES));
    if (name == NULL) {
        return 0;
    }
    at += name->len;
    unsigned n = key_id_read(text + at, &out->member);
    out->target = name->target;
    out->kind = name->kind;
    out->has_member = true;
    return n == 0 ? 0 : at + n;
}

uint32_t
key_names_read_member(const struct key_names *names, const char *text,
    const char *end, const char *readable, struct key *out)
{
    char near[KEY_MEMBER_NEAR];
    if (names->n_with_member == 0) {
        return 0;
    }
    if (readable - text < KEY_MEMBER_NEAR) {
        size_t left = (size_t)(end - text);
        ASSERT(left < sizeof near);
        memset(near, 0, sizeof near);
        memcpy(near, text, left);
        text = near;
        end = near + left;
    }
    uint32_t at = key_names_word_member(names, text, out);
    bool ends = text + at == end || (text + at < end && text[at] == ' ');
    return at != 0 && ends ? at : 0;
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
        return; /* key_names_word_member reads none of these */
    }
    struct key_member_name name = {.target = key->target,
        .kind = key->kind,
        .len = (unsigned)(colon - dot)};
    put_words(dot + 1, name.len, name.word);
    if (find_with_member(names, name.word[0], name.word[1]) != NULL) {
        return; /* it was a number that was not read */
    }
    name.mask[0] = name.len < CHUNK_BYTES ? chunk_first(UINT64_MAX, name.len)
                                          : UINT64_MAX;
    name.mask[1] = name.len <= CHUNK_BYTES
        ? 0
        : UINT64_MAX >> 8 * (2 * CHUNK_BYTES - name.len);
    names->with_member[names->n_with_member++ % KEY_NAMES_MEMBERS] = name;
}

void
key_names_parse(
    struct key_names *names, const char *text, size_t len, struct key *out)
{
    ASSERT(names->schema != NULL);
    if (key_names_read_member(names, text, text + len, text + len, out) ==
        len) {
        return;
    }
    key__parse(names->schema, text, len, out);
    if (out->kind != KEY_ITEM && out->target.counter->key_is_text) {
        return; /* what is read of keys at once is digits */
    }
    if (key_takes_member(out->kind)) {
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
