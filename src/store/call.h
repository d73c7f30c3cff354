/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STORE_CALL_H
#define STORE_CALL_H

#include "base/producer.h"
#include "engine/cell.h"
#include "engine/engine.h"
#include "schema/schema.h"

#include <stdbool.h>
#include <stdint.h>

/* What is asked of the store, and how it answers; see store/store.h. */

struct fetch_ring; /* store/ring.h */
struct dump_work;  /* store/dump_work.h */

enum store_answer { STORE_DONE, STORE_LATER };

/* The head of every call that may be answered later. */
struct store_call {
    void (*done_fn)(struct store_call *call); /* the caller's */
    void *owner;                              /* the caller's */
    struct store_call *next; /* whoever holds the call may link it */
    struct fetch_ring *ring; /* of a get: the caller's thread's; NULL: none,
                              * see store/ring.h */
};

enum { STORE_GET_MAX = 256 /* cells in one call */ };

/* Reads cells. Columns of one record that stand side by side are read at one
 * moment. The calling thread is an online reader of store->qsbr. */
struct store_get {
    struct store_call call;
    uint32_t n; /* 0..STORE_GET_MAX */
    struct cell_key key[STORE_GET_MAX];
    /* out: */
    uint64_t value[STORE_GET_MAX];
    uint8_t state[STORE_GET_MAX]; /* enum cell_state */
};

/* Does changes, in order; each answers for itself in change[i].err. The
 * calling thread is an online reader of store->qsbr. */
struct store_change {
    struct store_call call;
    uint32_t n;
    struct change *change; /* the caller's array of n */
    uint64_t seq; /* out: what is to be committed before any of them may be
                   * acknowledged (store_commit); 0: nothing */
};

/* Where changes stand on their way to the disk. */
enum store_commit {
    STORE_COMMITTED,    /* they may be acknowledged */
    STORE_COMMIT_WAITS, /* listeners will be told when that may have changed */
    STORE_COMMIT_FAILED /* they must be answered with ERR_UNSURE: whether they
                         * last is unknown */
};

/* Told, on any thread, that an outcome may have changed. Must not block and
 * must not call the store. */
struct store_listener {
    void (*moved_fn)(struct store_listener *listener);
    struct store_listener *next; /* the store's */
};

/* Who numbers a change: for struct change. */
struct store_producer {
    uint16_t slot;
    uint32_t serial; /* not 0 */
};

/* Edits the schema, or drops a producer. Always in the order of the calls. To
 * add what exists identically already is no error and changes nothing. */
struct store_edit {
    struct store_call call;
    struct schema_edit edit;
    struct producer_name
        dropped; /* len > 0: it is this producer that is to go,
                                   * and edit does not count */
    int err;     /* out: 0 or an ERR_ of schema_apply, ERR_NAME_IS_ITEM,
              * ERR_NO_PRODUCER, of store_fault; ERR_UNSURE: it is done */
};

/* Asks for a checkpoint that begins after the call; answered when it is
 * durable. */
struct store_checkpoint {
    struct store_call call;
    int err; /* out: 0, ERR_NO_DATA_DIR; ERR_NO_CHECKPOINT where the
              * disk refused it; ERR_DISK_FULL, ERR_DISK, ... where the log is
              * at fault, too */
};

enum { STORE_FILE_BYTES = 40 /* of the name of a segment */ };

/* Moves all records of a counter to the cold tier that are there when the call
 * comes; those that change meanwhile stay hot. Answered when it is durable. */
struct store_seal {
    struct store_call call;
    unsigned slot;   /* of the counter */
    uint32_t serial; /* of the counter */
    int err;         /* out: 0, ERR_NO_DATA_DIR, ERR_GONE, ERR_CLOSED,
                      * ERR_NO_MEMORY, ERR_DISK, ...; ERR_COLD_READ: all is
                      * sealed but n_left ranges, that of which part is in a
                      * segment that cannot be read; file names the first */
    uint32_t n_left; /* out */
    char file[STORE_FILE_BYTES]; /* out */
};

struct store;      /* store/store.h */
struct store_dump; /* store/store_dump.h */

/* What the store holds of one counter. */
struct store_sum {
    uint64_t records; /* one that has changed since it was sealed counts
                       * twice */
    uint64_t bytes;   /* memory allocated for them */
};

struct store_calls {
    enum store_answer (*get)(struct store *store, struct store_get *get);
    enum store_answer (*change)(
        struct store *store, struct store_change *change);
    enum store_answer (*edit)(struct store *store, struct store_edit *edit);
    /* Who the producer of that name (which is right) is; one that is not known
     * becomes so. Answers at once: 0, ERR_MANY_PRODUCERS, ERR_NO_MEMORY, or
     * what fault says. */
    int (*producer)(struct store *store, const char *name, size_t len,
        struct store_producer *out);
    /* Calls stat_fn for each line of `stats producers`. */
    void (*producer_stats)(struct store *store,
        void (*stat_fn)(void *context, const char *name, const char *value),
        void *context);
    /* What is held of the counter in a slot, summed over all shards (zeroes
     * where there is none); answers at once. */
    struct store_sum (*sum)(struct store *store, unsigned counter_slot);
    /* Adds what is held of the counter in a slot to *sum: in one shard, or in
     * all with shard = -1; answers at once. */
    void (*tables)(struct store *store, unsigned counter_slot, int shard,
        struct engine_sum *sum);
    /* The same in pieces, of one shard, see engine_survey. */
    bool (*survey)(struct store *store, unsigned counter_slot, unsigned shard,
        size_t *at, unsigned *n_left, struct engine_sum *sum,
        uint64_t (*width)[ENGINE_WIDTHS]);
    /* Bytes of tables, stashes and directories now; of these, *garbage_bytes
     * wait for readers. */
    uint64_t (*hot_bytes)(struct store *store, uint64_t *garbage_bytes);
    /* Sees to it that all changes up to seq are committed. */
    enum store_commit (*commit)(struct store *store, uint64_t seq);
    /* Where they stand; nothing but a look. seq 0 is committed. */
    enum store_commit (*outcome)(struct store *store, uint64_t seq);
    /* What is to be committed before all is that a get of these n keys which
     * has been answered may have seen, or, with n = 0, a change or a piece of
     * a dump; 0: nothing. Answers at once; may wait for a shard's lock. */
    uint64_t (*seen)(
        struct store *store, const struct cell_key *key, uint32_t n);
    /* 0, or why counters cannot be changed now, or not even read
     * (ERR_LOADING). */
    int (*fault)(struct store *store);
    void (*listen)(struct store *store, struct store_listener *listener);
    /* Returns when the listener is not being told and will not be. */
    void (*unlisten)(struct store *store, struct store_listener *listener);
    enum store_answer (*checkpoint)(
        struct store *store, struct store_checkpoint *checkpoint);
    enum store_answer (*seal)(struct store *store, struct store_seal *seal);
    enum store_answer (*dump)(struct store *store, struct store_dump *dump);
    void (*end_dump)(struct store *store, struct store_dump *dump);
    /* See store_ring_open. NULL: there are none. */
    int (*open_ring)(struct store *store, struct fetch_ring **out);
    /* Calls stat_fn for each line of `stats cold`. */
    void (*cold_stats)(struct store *store,
        void (*stat_fn)(void *context, const char *name, const char *value),
        void *context);
    /* Calls stat_fn for each line of `stats wal`. */
    void (*data_stats)(struct store *store,
        void (*stat_fn)(void *context, const char *name, const char *value),
        void *context);
};

#endif
