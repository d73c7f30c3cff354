/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CALL_CALL_H
#define CALL_CALL_H

#include "base/moved.h"
#include "base/producer.h"
#include "base/seen.h"
#include "engine/cell.h"
#include "engine/sorted.h"
#include "schema/schema.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is asked of the store, and how it answers; see call/store_calls.h. */

struct store_ring;  /* call/ring.h */
struct dump_work;   /* store/dump_work.h */
struct backup_work; /* store/backup.h */
struct owns;        /* base/owns.h */

enum store_answer { STORE_DONE, STORE_LATER };

/* The head of every call that may be answered later. */
struct store_call {
    void (*done_fn)(struct store_call *call); /* the caller's */
    void *owner;                              /* the caller's */
    struct store_call *next; /* whoever holds the call may link it */
    struct store_ring *ring; /* of a get: the caller's thread's; NULL: none,
                              * see call/ring.h */
};

enum {
    STORE_GET_MAX = 256,     /* cells in one call ... */
    STORE_SOURCES_MAX = 128, /* and others that are read before them */
    STORE_KEYS_MAX = STORE_GET_MAX + STORE_SOURCES_MAX
};

/* Reads cells. Columns of one record that stand side by side are read at one
 * moment. Sources are cells too, at STORE_GET_MAX and behind: each is read
 * before the first of the n, so that what these have is as new or newer. The
 * calling thread is an online reader of store->qsbr. */
struct store_get {
    struct store_call call;
    uint32_t n;         /* 0..STORE_GET_MAX */
    uint32_t n_sources; /* 0..STORE_SOURCES_MAX */
    struct cell_key key[STORE_KEYS_MAX];
    /* out: */
    uint64_t value[STORE_KEYS_MAX];
    uint8_t state[STORE_KEYS_MAX]; /* enum cell_state */
};

/* The members of one record, as they are when the call comes or later. */
struct store_members {
    struct sorted_key key;
    /* out: */
    struct sorted_pin pin; /* the caller gives it back, store_unpin */
    int err; /* 0; else pin has nothing: ERR_GONE, ERR_NO_MEMORY, ERR_CLOSED,
              * ERR_COLD_READ, ... */
};

/* Pins the members of records. It is answered later where some have to be read
 * first. The calling thread is an online reader of store->qsbr. */
struct store_pin {
    struct store_call call;
    uint32_t n;
    struct store_members *members; /* the caller's array of n */
};

/* Does changes, in order; each answers for itself in change[i].err. The
 * calling thread is an online reader of store->qsbr. */
struct store_change {
    struct store_call call;
    uint32_t n;
    struct change *change; /* the caller's array of n */
    uint64_t seq;     /* out: what is to be committed before any of them may be
                   * acknowledged (store_commit); 0: nothing */
    uint64_t room_ns; /* out: for how long some have waited for memory; stays
                       * what it was where none has */
};

/* Which member of members=about is meant. */
struct store_about_key {
    uint64_t id, member;
    uint32_t serial; /* of the column; 0, or that of none: it is gone */
};

enum store_about_state {
    STORE_ABOUT_OUT,   /* it is none; of an add: it was none, and is one now */
    STORE_ABOUT_IN,    /* it is one, or is taken for one */
    STORE_ABOUT_BELOW, /* the id is below what the column still knows */
    STORE_ABOUT_JUMP,  /* of an add: the id is beyond the counter's maxjump */
    STORE_ABOUT_GONE   /* the column has been dropped */
};

enum { STORE_ABOUT_MAX = 128 /* in one call */ };

/* Asks for members, or adds them: then one that is OUT has become one, and of
 * the others nothing has changed. Keys of one column are best side by side. The
 * calling thread is an online reader of store->qsbr. */
struct store_about {
    uint32_t n; /* 0..STORE_ABOUT_MAX */
    struct store_about_key key[STORE_ABOUT_MAX];
    uint64_t max_jump[STORE_ABOUT_MAX]; /* of an add: the counter's */
    /* out: */
    uint8_t state[STORE_ABOUT_MAX]; /* enum store_about_state */
    uint64_t seq; /* of an add: as of struct store_change, also for those that
                   * were in, whose own add may not be committed yet */
};

/* Where changes stand on their way to the disk. */
enum store_commit {
    STORE_COMMITTED,    /* they may be acknowledged */
    STORE_COMMIT_WAITS, /* listeners will be told when that may have changed */
    STORE_COMMIT_FAILED /* they must be answered with ERR_UNSURE: whether they
                         * last is unknown */
};

/* Told, on any thread and on several at once, that an outcome may have changed.
 * Must not block and must not call the store, but for store_outcome. */
struct store_listener {
    void (*moved_fn)(struct store_listener *listener);
    struct store_listener *next; /* the store's */
};

/* Who numbers a change: for struct change. */
struct store_producer {
    uint16_t slot;
    uint32_t serial; /* not 0 */
};

/* What a producer has seen, joined over all shards; not empty. */
struct store_window {
    struct producer_name name;
    struct seen_window seen;
};

/* Edits the schema, drops a producer, or says that ids are at another group or
 * here again. Always in the order of the calls. To
 * add what exists identically already is no error and changes nothing. */
struct store_edit {
    struct store_call call;
    struct schema_edit edit;
    struct producer_name
        dropped; /* len > 0: it is this producer that is to go,
                                   * and edit does not count */
    struct moved_one
        handover; /* rule not "": ids of that rule are to be at its
                   * address, or here, and edit does not count; a right one */
    int err;      /* out: 0 or an ERR_ of schema_apply, ERR_NAME_IS_ITEM,
              * ERR_NO_PRODUCER, ERR_MANY_HANDOVERS, of store_fault;
              * ERR_UNSURE: it is done */
    uint64_t seq; /* out, where err is 0: the log has it up to this batch, and
                   * synced as it is to be. Acknowledged when store_outcome
                   * says that those who have copies have it, too. 0: nothing is
                   * logged */
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

/* Moves all records of a counter, and the pairs of its members, to the cold
 * tier that are there when the call comes; those that change meanwhile stay
 * hot. Answered when it is durable. */
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

/* A file of a backup. */
struct store_backup_file {
    char name[STORE_FILE_BYTES]; /* in the data directory */
    uint64_t bytes;              /* that count, from its start on */
};

/* The data directory as it is at one moment, for a program that copies its
 * files: from the answer until store_end_backup none of them goes, while the
 * server goes on. One at a time for a store. */
struct store_backup {
    struct store_call call;
    struct backup_work *work; /* the store's; NULL: nothing is kept */
    /* out: */
    int err; /* 0, ERR_BACKUP_BUSY, ERR_NO_DATA_DIR, ERR_LOADING, ERR_CLOSED,
              * ERR_NO_MEMORY, ERR_DISK, ERR_CORRUPT (a file is missing) */
    const char *path;  /* of the directory; the store's, as what follows */
    uint64_t last_seq; /* the last batch of the log in it */
    size_t n_files;
    const struct store_backup_file *file; /* n_files */
    const char *manifest;                 /* the bytes of MANIFEST */
    size_t manifest_bytes;
};

/* What a line of a dump is about. */
struct store_dump_member {
    uint32_t serial; /* of the column of members; 0: of a record, not one of
                      * its members */
    uint8_t value;   /* the member's, not 0 */
    uint64_t member;
};

/* What is left of a dump that is only to be compared with another server's: a
 * sum that does not depend on where records are kept. */
struct store_digest {
    uint64_t
        sum; /* modulo 2^64, over all lines of a dump (but of a record that
                   * has nothing else than a count of members, too): XXH3 of
                   * what is not default of it; see doc/protocol.md */
    uint64_t records; /* lines */
    uint64_t
        seq; /* where the log was when it began: all up to that batch is in
                   * it */
    bool has_changed; /* and something that has come later may be */
};

/* Reads out the records of a counter, by id, a piece a call: again and again
 * until is_end, or an err that ends it. Then, or whenever the caller has enough
 * and no call is under way, store_end_dump. What a call answers stays until
 * the next. */
struct store_dump {
    struct store_call call;
    unsigned slot;               /* of the counter */
    uint32_t serial;             /* of the counter */
    uint64_t first_id, last_id;  /* of what is wanted */
    const struct owns *owns;     /* NULL, or only its ids; stays until the
                                  * dump is ended. Not of a digest */
    struct dump_work *work;      /* the store's; NULL before the first call */
    struct store_digest *digest; /* NULL, or the caller's, all zero at first:
                                  * records are added to it and not answered.
                                  * Only of a whole counter; ERR_NO_DATA_DIR
                                  * where there is no log */
    /* out: */
    int err;            /* 0; ERR_CORRUPT, ERR_NEWER_FORMAT, ERR_DISK: what is
                         * on the disk of ids bad_first..bad_last cannot be
                         * read; n have come before it, go on. These end it:
                         * ERR_GONE, ERR_OTHER_COLUMNS, ERR_MANY_DUMPS,
                         * ERR_NO_MEMORY, ERR_CLOSED */
    bool is_end;        /* there are no more */
    unsigned n_columns; /* values a record, in the counter's order, without
                         * columns of members */
    uint32_t column_serial[SCHEMA_COLUMNS_MAX]; /* of these */
    uint32_t n;
    const uint64_t *id;    /* n, ascending over all calls; once each, but for
                            * members: these come behind their record, which
                            * may have none of its own, by column, ascending */
    const uint64_t *value; /* n times n_columns; of a member nothing */
    const struct store_dump_member *member; /* n; NULL: all are records */
    uint64_t bad_first, bad_last;
    bool has_largest;    /* what follows is new; the caller may clear it */
    uint64_t largest_id; /* of the counter: none of this piece is above it,
                          * and some are above the one before */
};

#endif
