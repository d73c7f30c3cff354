/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SESSION_EXEC_LIST_H
#define SESSION_EXEC_LIST_H

#include "call/call.h"
#include "lists/coded.h"
#include "proto/key.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Lists of what ids follow (doc/protocol.md): what their jobs keep. Inside
 * exec*.c only; the session's thread. exec_list.c says how they are stored. */

enum {
    LIST_KEY_BYTES = 12, /* of a list's item */
    LIST_TURN_IDS = 1024 /* that are read for one request of a turn's budget */
};

struct item;        /* items/items.h */
struct items_terms; /* likewise */
struct items_found; /* likewise */
struct buf;         /* base/buf.h */

/* What a key of a list stands for: no pointer, for the schema may become
 * another one. */
struct list_ref {
    uint64_t id;
    uint64_t member; /* has_member */
    bool has_member;
    bool absent_is_miss;
    uint32_t serial;        /* of the list's column */
    struct cell_key source; /* what is followed, of id 0 */
};

/* One list, or one id of it, as it is read. */
struct list_reading {
    const struct item *item; /* pinned; NULL: none is, and nothing else here
                              * means anything */
    struct coded list;
    struct coded_walk walk;
    uint32_t n_ids;                  /* decoded so far */
    uint64_t sum;                    /* of what is behind the marks */
    uint64_t expiry_s;               /* the item's */
    uint64_t count[CODED_BLOCK_IDS]; /* the marks of those in get */
    struct store_get get; /* n: those that the store is asked for; 0: none */
};

/* A list among the keys of a get. */
struct list_read {
    struct list_ref ref;
    uint16_t cell; /* the place in the batch whose answer it has */
    int64_t ttl_s; /* ANSWER_NEVER, or what is left to it */
};

enum list_step {
    LIST_READ, /* what the ids of a new list are at */
    LIST_LOOK, /* find the list that there is */
    LIST_SUM,  /* read that */
    LIST_STORE
};

/* The memory for a change: one is kept by the executor. */
struct list_work {
    struct coded_room room; /* the list that is to be stored */
    uint8_t bytes[CODED_BYTES_MAX];
};

/* A request that changes a list. */
struct list_change {
    struct list_ref ref;
    enum list_step step;
    bool renews;     /* an empty value: the list that there is, marked now */
    bool compares;   /* only where what is unread has the cas unique cas */
    bool was_absent; /* compares: there was no list, which counts as 0 */
    uint64_t cas;
    uint64_t mark;     /* has_member: as the request says it */
    uint64_t number;   /* likewise, done: what is unread of it */
    uint64_t item_cas; /* of the list that is changed */
    unsigned n_tries;  /* that met another's change */
    unsigned n_read;   /* LIST_READ: ids */
    struct list_work *work;
    struct list_reading reading;
};

struct exec_turn; /* session/exec.h, like the next */
struct job;
struct session;
struct slot; /* session/exec_form.h */

/* The key has a slot of a get: which is answered as a cell, of which what the
 * store says is put right by exec_list__read. */
void exec_list__add(struct job *job, struct slot *slot, const struct key *key);

/* What is left to the slot's list; ANSWER_NEVER where it is none. */
int64_t exec_list__ttl_s(const struct job *job, const struct slot *slot);

/* Gives back what the session's job holds of a list. */
void exec_list__drop(struct session *session);

/* What key stands for, under the schema now. */
struct list_ref exec_list__ref(struct session *session, const struct key *key);

/* The bytes of the item's key, which is hidden (items_terms). */
void exec_list__key(const struct list_ref *ref, char out[LIST_KEY_BYTES]);

/* Finds the list and begins to read it: false where there is none. terms: of
 * items_look; hidden. */
bool exec_list__open(struct session *session, const struct list_ref *ref,
    struct items_terms *terms, struct list_reading *reading);

/* Unpins the list, if there is one. */
void exec_list__close(struct session *session, struct list_reading *reading);

/* Sets the batch to n ids, 1 or more, of what is followed. */
void exec_list__want(const struct list_ref *ref, const uint64_t *id,
    unsigned n, struct store_get *get);

/* True where all of the batch has been read; else *err is ERR_COLD_READ or
 * ERR_GONE: no number is made up. */
bool exec_list__is_read(const struct store_get *get, int *err);

#endif
