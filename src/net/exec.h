/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NET_EXEC_H
#define NET_EXEC_H

#include "net/session.h"
#include "proto/answer.h"
#include "proto/key.h"
#include "proto/words.h"

#include <stdbool.h>

/* Execution of requests: the one command path of all protocols. Used by
 * session.c and among the exec_*.c files only; the session's thread. */

enum {
    EXEC_SLICE_KEYS_MAX = 128,  /* keys of a multi-get that are read at once */
    EXEC_CHECK_KEYS_MAX = 1024, /* and that are checked at once */
    EXEC_BATCH_MAX = 64         /* changes that the store is given at once */
};

enum exec_step {
    EXEC_DONE,     /* the reply is complete */
    EXEC_GATHERED, /* a change that waits for exec_flush; go on with the next
                    * request */
    EXEC_MORE,     /* more bytes are needed */
    EXEC_FULL,     /* the reply buffer has reached its mark; resume later */
    EXEC_YIELD,    /* the budget is used up; resume later */
    EXEC_LATER,    /* the store answers later; resume after exec_wake */
    EXEC_CLOSE     /* close the connection */
};

/* What one call of session_run gives to all its requests. */
struct exec_turn {
    const char *base; /* the first byte not done with */
    size_t mark;
    unsigned *budget;
    struct buf *out;
    struct session_acks *acks; /* what out waits for */
    int fault;                 /* of the store, when the turn began */
    size_t done;               /* bytes of the requests answered */
};

/* What to do with a job when it is resumed. */
enum job_stage {
    JOB_GET_CHECK,  /* look whether all keys are well formed */
    JOB_GET_GATHER, /* take the next slice of keys and ask the store */
    JOB_GET_FORMAT, /* answer the slice */
    JOB_GATHER,     /* changes are being gathered; never between turns */
    JOB_CHANGE,     /* answer the changes */
    JOB_EDIT,       /* answer a schema edit */
    JOB_CHECKPOINT, /* answer a checkpoint */
    JOB_SEAL,       /* answer a seal */
    JOB_DUMP        /* show more items */
};

/* One key of a slice. */
struct slot {
    struct span key;
    uint32_t flags;
    uint16_t first;  /* its first cell in get.key */
    uint8_t n_cells; /* 0: an item */
    bool is_record;  /* answered as numbers separated by spaces */
    bool absent_is_miss;
};

/* A request under way: everything it needs that must outlive a turn. */
struct job {
    struct job *next; /* in the executor's list of free ones */
    struct session *session;
    enum job_stage stage;
    bool waits; /* the store has not answered yet */
    union {
        struct { /* retrieval: */
            struct span
                words;     /* keys not yet checked, then not yet gathered */
            bool has_keys; /* some key has been checked */
            bool has_unreadable; /* of a cell that could not be read */
            unsigned n_slots;
            unsigned formatted; /* slots already answered */
            struct slot slot[EXEC_SLICE_KEYS_MAX];
            struct store_get get;
        };
        struct { /* changes, store_change.n of them: */
            struct store_change store_change;
            size_t request_bytes;             /* of their requests */
            size_t reply_bytes_max;           /* about, of their replies */
            struct echo echo[EXEC_BATCH_MAX]; /* spans: from the first one's
                                               * first byte on */
            struct change change[EXEC_BATCH_MAX];
        };
        struct {              /* a dump of items: */
            uint64_t cursor;  /* of items_each */
            uint64_t classes; /* bit n is class n */
            bool has_ended;
            bool as_mg; /* meta gets, not metadata */
        } dump;
        struct store_edit edit;
        struct store_checkpoint checkpoint;
        struct store_seal seal;
    };
};

/* Begins the session's request, whose first byte is bytes[0]. Changes gathered
 * before are answered first, unless the request joins them; where the store
 * answers them later nothing of the request has been begun. */
enum exec_step exec_begin(
    struct session *session, const char *bytes, struct exec_turn *turn);

/* Goes on with the session's job; bytes[0] is the request's first byte. */
enum exec_step exec_resume(
    struct session *session, const char *bytes, struct exec_turn *turn);

/* True while the session has changes that exec_flush is to do. */
bool exec_is_gathering(const struct session *session);

/* Bytes of the requests gathered. */
size_t exec_gathered_bytes(const struct session *session);

/* True where no other request may be gathered before exec_flush. */
bool exec_must_flush(
    const struct session *session, const struct exec_turn *turn);

/* Does the changes gathered: EXEC_DONE or EXEC_LATER. */
enum exec_step exec_flush(struct session *session, struct exec_turn *turn);

/* The store has answered the session's job. */
void exec_wake(struct session *session);

/* Drops the session's job, if any; it must not wait for the store. */
void exec_abandon(struct session *session);

void exec_free_jobs(struct executor *executor);

#endif
