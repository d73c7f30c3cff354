/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NAMES_NAMES_H
#define NAMES_NAMES_H

#include "engine/naming.h"
#include "names/dict.h"
#include "names/own_id.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The names of a server: a dictionary a shard, under one key. A name has the
 * same id in all counters.
 *
 * Threads: what is said to be a reader's is for online readers of config.qsbr,
 * and an id that it finds is that name's until the reader is quiescent. What is
 * said to be the shard's is under the lock of that shard (engine_hold). */

/* Who is told of names that come and go, under the lock of their shard; a
 * seam. */
struct names_sink {
    /* Before a record of that number is told. */
    void (*add_fn)(struct names_sink *sink, unsigned shard, uint32_t number,
        const char *bytes, size_t len);
    void (*gone_fn)(struct names_sink *sink, unsigned shard, uint32_t number);
};

struct names_config {
    unsigned shards; /* a power of two */
    uint64_t limit_bytes;
    const struct alloc *alloc;      /* NULL: the heap */
    struct qsbr *qsbr;              /* NULL: there are no readers */
    uint8_t key[SIPHASH_KEY_BYTES]; /* names_key */
    /* Where an id is, and back: engine_row and engine_id. */
    void (*row_fn)(
        const void *context, uint64_t id, unsigned *shard, uint64_t *row);
    uint64_t (*id_fn)(const void *context, unsigned shard, uint64_t row);
    const void *context; /* the engine; not owned */
};

struct names {
    struct engine_names hook;   /* first: the engine's seam */
    struct names_config config; /* constant */
    unsigned shard_bits;        /* likewise */
    struct name_account account;
    /* Goes up before a replica gives a number again, which does not wait for
     * those that hold ids for longer than readers do: dumps. */
    _Atomic uint64_t n_again;
    struct names_sink *sink;   /* not owned; NULL: none. Set while nothing is
                              * under way */
    struct names_shard *shard; /* config.shards */
};

/* What is asked of them. */
struct names_ask {
    const char *bytes; /* name_is_valid holds of them */
    size_t len;
    /* out: */
    bool found;  /* its own id, or it has a number */
    bool is_own; /* its own id: a change of it needs no engine_name */
    uint64_t id; /* of a name without a number one of its shard that has no
                  * record, now or ever */
};

/* As of struct dict_sums. */
struct names_sums {
    uint64_t names, resting, lost;
};

/* The key of a directory: from the engine's seed, which is random, and the same
 * through restores and salvages and on all copies, as long as ids are where
 * they were. */
void names_key(uint64_t seed, uint8_t key[SIPHASH_KEY_BYTES]);

/* 0, ERR_HOT_FULL or ERR_NO_MEMORY. */
int names_create(struct names **out, const struct names_config *config);
/* Frees and nulls *names, NULL is fine; no reader may be left. */
void names_destroy(struct names **names);

/* From now on the sink is told; NULL: nobody is. */
void names_set_sink(struct names *names, struct names_sink *sink);

/* Answers n questions. A reader's. */
void names_find(const struct names *names, struct names_ask *ask, size_t n);

/* The name of an id, its own one's too; its length, 0: it is none's. A
 * reader's. */
size_t names_name(
    const struct names *names, uint64_t id, char out[NAME_ROOM_BYTES]);

/* A number that names have by themselves, with or without an id, and never 0:
 * tells names apart that have had the same id, but for one in 2^32. */
uint32_t names_tag(const struct names *names, const char *bytes, size_t len);

/* True for an id that names_find gives for names that it does not find. */
bool names_is_nobodys(const struct names *names, uint64_t id);

/* Takes a name out, and tells the sink; false: the number has none. Who calls
 * it has seen under the same lock that no record of its id is left. The
 * shard's. */
bool names_drop(struct names *names, unsigned shard, uint32_t number);

/* The first number from *number on that has a name, and its id; false: there is
 * none. A reader's. */
bool names_next(
    const struct names *names, unsigned shard, uint32_t *number, uint64_t *id);

/* The dictionary of a shard, for dict_wants_table, dict_learn and
 * dict_collect: the shard's. */
struct dict *names_dict(const struct names *names, unsigned shard);

/* Adds figures of a shard to *sums, without a look at blocks. The shard's. */
void names_add_sums(
    const struct names *names, unsigned shard, struct names_sums *sums);

/* Bytes of all dictionaries, as they are accounted. Any thread. */
uint64_t names_bytes(const struct names *names);

/* ---- for who keeps them on disk, and replicas ---- */

/* From names_begin_load to names_end_load there is no reader, and one thread a
 * shard; names_load and names_put_at take what belongs to different moments,
 * and a name may have two numbers until the end. The end: 0, or ERR_CORRUPT
 * where one still has, and *number of *shard is the larger one: whoever takes
 * it out may call it again. */
void names_begin_load(struct names *names);
int names_end_load(struct names *names, unsigned *shard, uint32_t *number);

/* Loads an image (dict_load). */
int names_load(
    struct names *names, unsigned shard, const uint8_t *image, size_t n);

/* Gives a name the number that it has elsewhere (dict_add_at), which must not
 * rest (dict_rests). The sink is not told. The shard's. */
int names_put_at(struct names *names, unsigned shard, uint32_t number,
    const char *bytes, size_t len);

/* Takes out what has gone elsewhere; the sink is not told. The shard's. */
void names_take_out(struct names *names, unsigned shard, uint32_t number);

/* The first block from *block on that has changed since its names_clean; false:
 * there is none. The shard's, like what follows. */
bool names_next_changed(
    const struct names *names, unsigned shard, uint32_t *block);
void names_clean(struct names *names, unsigned shard, uint32_t block);

/* All blocks of a shard count as changed. */
void names_soil(struct names *names, unsigned shard);

#endif
