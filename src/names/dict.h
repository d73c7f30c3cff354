/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NAMES_DICT_H
#define NAMES_DICT_H

#include "base/qsbr.h"
#include "base/siphash.h"
#include "names/name_account.h"
#include "names/name_code.h"
#include "names/name_image.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The names of one shard that are no id by themselves (names/own_id.h), with a
 * number each, in the order in which they came; a number whose name has gone is
 * given again.
 *
 * Threads: what is said to be a reader's may be called by any thread between
 * two quiescent points of its own (base/qsbr.h); a number that it finds is that
 * name's until the next one. All else is under the shard's lock, beside
 * readers. */

struct dict; /* opaque */

#define DICT_NO_NUMBER UINT32_MAX
#define DICT_NUMBER_END (NAME_BLOCK_SLOTS * UINT32_C(0x7ffffff)) /* below it */

struct dict_config {
    struct name_account *account;   /* not owned; that of all shards */
    struct qsbr *qsbr;              /* not owned; NULL: there are no readers */
    uint8_t key[SIPHASH_KEY_BYTES]; /* of the hash: secret, the same for all
                                     * shards */
};

/* What is asked of a dictionary; name_is_valid holds of its bytes. */
struct dict_ask {
    const struct dict *dict;
    const char *bytes;
    size_t len;
    uint64_t hash;   /* dict_hash of them */
    uint32_t number; /* the answer; DICT_NO_NUMBER: it has none */
};

struct dict_sums {
    uint64_t names;
    uint64_t blocks_bytes; /* as they are accounted, without what rests */
    uint64_t index_bytes;
    uint64_t other_bytes; /* tables of symbols, numbers to give again */
    uint32_t next;        /* numbers are below it */
    uint64_t resting;     /* blocks and numbers that wait for readers */
    uint64_t lost;        /* numbers that dict_collect has still to find */
};

/* 0, ERR_HOT_FULL or ERR_NO_MEMORY. */
int dict_create(struct dict **out, const struct dict_config *config);
/* Frees *dict and nulls it; no reader may be left. */
void dict_destroy(struct dict **dict);

/* The hash of a name under a key. */
uint64_t dict_hash(
    const uint8_t key[SIPHASH_KEY_BYTES], const void *bytes, size_t len);

/* The shard of a name, of n_shards, a power of two. */
static inline unsigned
dict_shard(uint64_t hash, unsigned n_shards)
{
    return (unsigned)(hash >> 8) & (n_shards - 1);
}

/* Answers n questions, to one dictionary or to many. A reader's. */
void dict_find(struct dict_ask *ask, size_t n);

/* The name of a number, and bytes of no meaning behind it; its length, 0: it
 * has none. A reader's. */
size_t dict_name(
    const struct dict *dict, uint32_t number, char out[NAME_ROOM_BYTES]);

/* The first number from *number on that has a name; false: there is none. A
 * reader's. */
bool dict_next(const struct dict *dict, uint32_t *number);

/* *number is that of a valid name without an own id; a new one where it had
 * none, which *is_new says. 0; ERR_HOT_FULL or ERR_NO_MEMORY with nothing
 * changed. */
int dict_add(struct dict *dict, const char *bytes, size_t len,
    uint32_t *number, bool *is_new);

/* Gives such a name a number that another dictionary gave it. It must not rest
 * (dict_rests). As above; ERR_CORRUPT where the name has another number or the
 * number, which is below DICT_NUMBER_END, another name. */
int dict_add_at(
    struct dict *dict, uint32_t number, const char *bytes, size_t len);

/* True while readers may take a number for that of a name that has gone. */
bool dict_rests(struct dict *dict, uint32_t number);

/* Takes a name out; false: the number has none. Never fails. */
bool dict_remove(struct dict *dict, uint32_t number);

/* Frees what readers see no more, and looks for what could not be noted when
 * memory was out: up to 32,768 numbers, some 100 us. Now and then. */
void dict_collect(struct dict *dict);

/* True where a new table of symbols is due: after 1,024 names, and each time
 * that there are four times as many. */
bool dict_wants_table(const struct dict *dict);

/* Learns one, which names from then on are coded with: some milliseconds, and a
 * megabyte meanwhile. 0, ERR_HOT_FULL or ERR_NO_MEMORY with nothing changed. */
int dict_learn(struct dict *dict);

/* From the one to the other it is loaded: there is no reader, dict_load and
 * dict_add_at take a name that has another number already, and what is taken
 * out does not rest. The end: 0, or ERR_CORRUPT where a name has two numbers,
 * of which *number is the larger; from then on readers are those of qsbr. */
void dict_begin_load(struct dict *dict);
int dict_end_load(struct dict *dict, struct qsbr *qsbr, uint32_t *number);

/* How many names it has, what rests and what is lost, without a walk; the
 * others are 0. */
struct dict_sums dict_counts(const struct dict *dict);

struct dict_sums dict_sums(const struct dict *dict);

/* The image of table 1..NAME_TABLES_MAX, or of a block; 0: there is none. All
 * of a dictionary are its tables, then the blocks below what dict_blocks says.
 * A reader's: but each block is as at a moment of its own then, and a name that
 * was taken out and put again meanwhile may be in two. */
size_t dict_image_table(const struct dict *dict, unsigned table,
    uint8_t out[NAME_IMAGE_BYTES_MAX]);
size_t dict_image_block(const struct dict *dict, uint32_t n_block,
    uint8_t out[NAME_IMAGE_BYTES_MAX]);
uint32_t dict_blocks(const struct dict *dict);

/* Loads an image, of which there are n bytes at least: tables in their order,
 * then blocks in theirs, into what was new. 0; ERR_CORRUPT, also where a name
 * comes twice or has an own id; ERR_HOT_FULL; ERR_NO_MEMORY. After an error it
 * is good for dict_destroy only. */
int dict_load(struct dict *dict, const uint8_t *in, size_t n);

/* Walks all of it and asserts its invariants; for tests. */
void dict_verify(const struct dict *dict);

#endif
