/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TALLYQ_FEED_H
#define TALLYQ_FEED_H

#include "base/log.h"
#include "client/stop.h"
#include "client/talk.h"
#include "tallyq/batch.h"
#include "tallyq/broker.h"
#include "tallyq/record.h"

/* From a queue to tallyd: each message is counted once. feed.c says how. One
 * thread. */

enum {
    FEED_MAGIC = 0x64656566,
    FEED_MESSAGES_MAX = 100000, /* of a batch */
    FEED_WAIT_MS = 500, /* for a message, between two looks at signals */
    FEED_PAUSE_MS = 50, /* after a failure; doubled with each other */
    FEED_PAUSE_MS_MAX = 2000
};

enum feed_state {
    FEED_AWAY,   /* no connection to a server, or not known what it has */
    FEED_READY,  /* the record is known; no batch is under way here */
    FEED_SENDING /* the batch here is the one of the record */
};

struct feed_config {
    struct broker *broker;
    struct talk *talk;
    struct logger *logger;
    struct stop *stop;
    const char *name;       /* the producer's */
    const char *aside_path; /* tallyq/aside.h */
    uint32_t messages;      /* of a batch at most, 1..FEED_MESSAGES_MAX */
    uint32_t linger_ms;     /* that a batch waits for more of them */
    uint32_t progress_s;    /* between two lines about progress; 0: none */
    const char *login;      /* "USER PASSWORD"; NULL: none */
};

/* Since the start. */
struct feed_figures {
    uint64_t messages, lines, bad; /* taken; lines that are good, and not */
    uint64_t merged;  /* lines that needed no change of their own */
    uint64_t sent;    /* changes that were done */
    uint64_t refused; /* that tallyd has refused; put aside */
    uint64_t batches;
    uint64_t again; /* batches that were read or sent again */
};

struct feed {
    uint32_t magic;
    struct feed_config config;
    enum feed_state state;
    uint64_t id;        /* of the record */
    struct record held; /* what the server has */
    uint64_t unique;    /* its cas unique */
    struct record base; /* what it may have next: that batch is finished */
    struct batch batch;
    size_t aside_parsed; /* bytes of batch.aside that are about bad lines */
    struct buf out;
    unsigned failures; /* in a row */
    uint64_t progress_ns;
    struct feed_figures figures, said;
};

/* feed is the caller's, and large: not on a stack. */
void feed_init(struct feed *feed, const struct feed_config *config);
void feed_fini(struct feed *feed);

/* Counts until it is asked to stop: 0. ERR_CORRUPT where messages of a batch
 * that was begun are gone from the queue or have changed, so that nobody can
 * know which of it was counted; it has been logged. */
int feed_run(struct feed *feed);

#endif
