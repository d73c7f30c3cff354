/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_WIRE_H
#define BENCH_WIRE_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the load generator knows of a protocol: how its commands are written,
 * where a reply ends, and what stands in it. Pure; any thread. */

#define WIRE_PROTOCOLS(X)                                                     \
    X(TEXT, "text")                                                           \
    X(META, "meta")                                                           \
    X(BINARY, "binary")                                                       \
    X(RESP, "resp")

enum wire_protocol {
#define X(name, word) WIRE_##name,
    WIRE_PROTOCOLS(X)
#undef X
};

/* The words of WIRE_PROTOCOLS, then NULL. Static storage. */
extern const char *const wire_protocol_words[];

/* What a reply answers. */
enum wire_ask {
    WIRE_GET,   /* one key */
    WIRE_MULTI, /* many keys */
    WIRE_ADD,   /* a number was added to one; the reply is the sum */
    WIRE_SET    /* something was stored */
};

/* Bytes of a key, of a number, of a word; not terminated. */
struct wire_text {
    const char *at;
    size_t len;
};

enum wire_state {
    WIRE_MORE,  /* the reply has not come whole */
    WIRE_WHOLE, /* it has */
    WIRE_BAD    /* this is no reply to the question: an error, or garbage */
};

struct wire_reply {
    size_t len;    /* bytes, with the end of its last line */
    uint32_t hits; /* numbers in it; of WIRE_SET 1 */
};

/* One number of a reply, or that one is absent. */
struct wire_value {
    struct wire_text key; /* points into the reply; at is NULL where the reply
                           * has numbers by their place alone */
    bool is_absent;
    uint64_t number; /* unless it is absent */
};

enum wire_found { WIRE_VALUE, WIRE_END, WIRE_WRONG };

struct wire {
    /* Append one command for one key. add: by a number in decimal. */
    void (*get_fn)(struct buf *out, struct wire_text key);
    void (*add_fn)(
        struct buf *out, struct wire_text key, struct wire_text number);
    void (*set_fn)(
        struct buf *out, struct wire_text key, struct wire_text data);

    /* The parts of one command for many keys: the head, each key, the tail.
     * What a key adds does not depend on its place. */
    void (*head_fn)(struct buf *out, uint32_t n_keys);
    void (*key_fn)(struct buf *out, struct wire_text key);
    void (*tail_fn)(struct buf *out);

    /* Looks at the first reply in bytes[0, len): where it ends and how many
     * numbers it holds. Reads no more of it than that takes. *reply is set
     * where WIRE_WHOLE is returned. n_keys: those that were asked for. */
    enum wire_state (*frame_fn)(enum wire_ask ask, uint32_t n_keys,
        const char *bytes, size_t len, struct wire_reply *reply);

    /* Goes on from *at (0 at the beginning) in a whole reply, to WIRE_GET,
     * _MULTI or _ADD, and checks its form: the next number into *value, or
     * that there is none. Text and meta leave out what is absent when many
     * keys were asked for, binary does too. */
    enum wire_found (*next_fn)(enum wire_ask ask, const char *bytes,
        size_t len, size_t *at, struct wire_value *value);
};

/* What is known of a protocol. Static storage. */
const struct wire *wire_of(enum wire_protocol protocol);

extern const struct wire wire_text;
extern const struct wire wire_meta;
extern const struct wire wire_binary;
extern const struct wire wire_resp;

/* A command of Redis: an array of words. */
void wire_resp_add(struct buf *out, const struct wire_text *word, size_t n);

/* The line at *at of bytes[0, len), without its end; *at moves behind it.
 * False where there is no whole one that ends in CR LF. */
bool wire_line(
    const char *bytes, size_t len, size_t *at, struct wire_text *line);

bool wire_is(struct wire_text text, const char *word);

#endif
