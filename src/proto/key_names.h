/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PROTO_KEY_NAMES_H
#define PROTO_KEY_NAMES_H

#include "base/chunk.h"
#include "proto/key.h"
#include "proto/key_id.h"

/* The names that keys have had lately, and what they stand for: most keys of a
 * client have one of a few names, so that a key is read without a look into
 * the schema, and without a step a byte. One thread at a time. All zero knows
 * no names. */

enum {
    KEY_NAMES = 32,        /* names kept; a power of two */
    KEY_NAMES_BITS = 5,    /* its logarithm */
    KEY_NAMES_MEMBERS = 4, /* kept apart: those that members stood behind */
    KEY_NAMES_CHARS = 15   /* of the longest name that is kept */
};

struct key_name {
    uint64_t word[2]; /* the name, and zeros; all 0: none */
    struct schema_target target;
    enum key_kind kind; /* of a key with that name */
};

/* A name with the colon behind it: what of two words is looked at, and what it
 * is there. */
struct key_member_name {
    uint64_t word[2], mask[2];
    struct schema_target target;
    enum key_kind kind; /* of a key with that name and a member */
    unsigned len;       /* with the colon; 0: none */
};

struct key_names {
    const struct schema *schema;     /* the one that all names are of */
    uint64_t version;                /* its version */
    uint64_t n_changes;              /* goes up when a name comes or goes */
    bool has_faults;                 /* a key under the schema may be wrong as
                                  * key_fault says */
    struct key_name name[KEY_NAMES]; /* of keys without a member */
    struct key_member_name with_member[KEY_NAMES_MEMBERS];
    unsigned n_with_member; /* ever kept; the next one takes the place of the
                             * oldest */
    uint64_t ends[4]; /* bit b: some name of the schema ends in the byte b */
};

/* Forgets all names, and begins with this schema. */
void key_names__begin(struct key_names *names, const struct schema *schema);

/* Sees to it that names are this schema's: to be called before keys are read,
 * whenever the schema may have become another one. */
static inline void
key_names_use(struct key_names *names, const struct schema *schema)
{
    uint64_t version = schema_version(schema);
    if (names->schema != schema || names->version != version) {
        key_names__begin(names, schema);
    }
}

/* The same as key__parse, and keeps the name. The schema is that of
 * key_names_use. */
void key_names_parse(
    struct key_names *names, const char *text, size_t len, struct key *out);

/* False for most keys that key_near has nothing to say of, under the schema of
 * key_names_use. */
static inline bool
key_names_may_be_near(
    const struct key_names *names, const char *text, size_t len)
{
    if (len == 0) {
        return false;
    }
    uint8_t first = (uint8_t)text[0];
    uint8_t last = (uint8_t)text[len - 1];
    return (first >= '0' && first <= '9') || first == '{' ||
        (names->ends[last / 64] >> last % 64 & 1) != 0;
}

/* The place where a name is first looked for; the other one is beside it. */
static inline unsigned
key_names__place(uint64_t word_0, uint64_t word_1)
{
    const uint64_t odd = UINT64_C(0x9e3779b97f4a7c15);
    return (unsigned)((word_0 ^ word_1 * odd) * odd >> (64 - KEY_NAMES_BITS));
}

/* A name that is kept; NULL where it is not. */
static inline const struct key_name *
key_names__find(
    const struct key_names *names, uint64_t word_0, uint64_t word_1)
{
    unsigned at = key_names__place(word_0, word_1);
    if (names->name[at].word[0] != word_0 ||
        names->name[at].word[1] != word_1) {
        at ^= 1;
        if (names->name[at].word[0] != word_0 ||
            names->name[at].word[1] != word_1) {
            return NULL;
        }
    }
    return &names->name[at];
}

enum {
    KEY_NAMES__NEAR = 48, /* bytes that key_names_read may look at */
    KEY_ID_NEAR = 32,     /* what key_id_read looks at */
    /* what is looked at of a key with a member */
    KEY_MEMBER_NEAR = KEY_ID_DIGITS + KEY_NAMES_CHARS + 2 + KEY_ID_NEAR
};

/* Looks up a name in two words, and fills *out but for the id: false where it
 * is not kept. */
static inline bool
key_names__take(const struct key_names *names, uint64_t word_0,
    uint64_t word_1, struct key *out)
{
    const struct key_name *name = key_names__find(names, word_0, word_1);
    if (name == NULL || word_0 == 0) {
        return false;
    }
    out->target = name->target;
    out->kind = name->kind;
    return true;
}

/* The bytes at text up to a space or a control character, if they are a key of
 * the form `ID.NAME` with a name that is kept: how many, and *out, as
 * key__parse has it. Else 0. KEY_NAMES__NEAR bytes may be looked at. */
static inline uint32_t
key_names_word(
    const struct key_names *names, const char *text, struct key *out)
{
    unsigned at = key_id_read(text, &out->id);
    if (at == 0 || text[at++] != '.') {
        return 0;
    }
    uint64_t word_0 = chunk_load(text + at);
    uint64_t word_1 = 0;
    unsigned n = chunk_count_printed(word_0);
    at += n;
    if (n < CHUNK_BYTES) {
        word_0 = chunk_first(word_0, n);
    } else {
        word_1 = chunk_load(text + at);
        n = chunk_count_printed(word_1);
        if (n == CHUNK_BYTES) {
            return 0;
        }
        at += n;
        word_1 = chunk_first(word_1, n);
    }
    return key_names__take(names, word_0, word_1, out) ? at : 0;
}

/* Are the len bytes at text such a key? They may be any, and KEY_NAMES__NEAR
 * may be looked at. *out is filled where they are. */
static inline bool
key_names_exact(const struct key_names *names, const char *text, uint32_t len,
    struct key *out)
{
    unsigned at = key_id_read(text, &out->id);
    unsigned n = len - at - 1;
    if (at == 0 || at + 1 >= len || n > KEY_NAMES_CHARS || text[at] != '.' ||
        text[len - 1] == 0) { /* zeros are what words are filled up with */
        return false;
    }
    uint64_t word_0 = chunk_load(text + at + 1);
    uint64_t word_1 = 0;
    if (n < CHUNK_BYTES) {
        word_0 = chunk_first(word_0, n);
    } else {
        word_1 = chunk_first(
            chunk_load(text + at + 1 + CHUNK_BYTES), n - CHUNK_BYTES);
    }
    return key_names__take(names, word_0, word_1, out);
}

/* The same for a text of which no byte is looked at that is not before
 * readable. */
bool key_names_is_kept(const struct key_names *names, const char *text,
    size_t len, const char *readable, struct key *out);

/* key_names_read where KEY_NAMES__NEAR bytes from text on may be looked at. */
static inline uint32_t
key_names__read(const struct key_names *names, const char *text,
    const char *end, struct key *out)
{
    uint32_t at = key_names_word(names, text, out);
    return at != 0 && (text[at] == ' ' || text + at == end) ? at : 0;
}

/* The same where all that is known is that end may be looked up to. */
uint32_t key_names__read_near(const struct key_names *names, const char *text,
    const char *end, struct key *out);

/* Reads the key at text, which goes up to a space or to end, if it has the
 * form `ID.NAME` and a name that is kept: its length, and *out, as key__parse
 * has it. 0 where it may be anything else. No byte is looked at that is not
 * before readable, which is not before end. */
static inline uint32_t
key_names_read(const struct key_names *names, const char *text,
    const char *end, const char *readable, struct key *out)
{
    return __builtin_expect(readable - text < KEY_NAMES__NEAR, 0)
        ? key_names__read_near(names, text, end, out)
        : key_names__read(names, text, end, out);
}

/* The bytes at text that are a key of the form `ID.NAME:MEMBER` with a name
 * that is kept, whatever is behind: how many, or 0. KEY_MEMBER_NEAR bytes may
 * be looked at. */
uint32_t key_names_word_member(
    const struct key_names *names, const char *text, struct key *out);

/* The same as key_names_read for such a key. */
uint32_t key_names_read_member(const struct key_names *names, const char *text,
    const char *end, const char *readable, struct key *out);

#endif
