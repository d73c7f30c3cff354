/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_OUTCOMES_H
#define LIB_OUTCOMES_H

#include "base/mutex.h"
#include "store/store.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* The commits of a log that does not exist: numbers, where they stand, and who
 * is told. For stores in front of the real one. Any thread. */
struct outcomes {
    struct mutex lock;
    pthread_cond_t changed;
    uint64_t last;      /* number given out */
    uint64_t asked;     /* all up to it are to be committed */
    uint64_t committed; /* all up to it are */
    uint64_t written;   /* from there to here they wait, whatever fails */
    uint64_t failed;    /* from there to here they have failed */
    int fault;
    bool stopping;
    struct mutex listeners_lock;
    struct store_listener *listeners;
};

void outcomes_init(struct outcomes *outcomes);
void outcomes_fini(struct outcomes *outcomes);

/* The next number. */
uint64_t outcomes_next(struct outcomes *outcomes);

/* The last number given out, where that is not committed; else 0. */
uint64_t outcomes_open(struct outcomes *outcomes);

/* What store_commit, store_outcome, store_fault, store_listen and
 * store_unlisten do; the first only notes what was asked for. */
enum store_commit outcomes_ask(struct outcomes *outcomes, uint64_t seq);
enum store_commit outcomes_get(struct outcomes *outcomes, uint64_t seq);
int outcomes_fault(struct outcomes *outcomes);
void outcomes_listen(
    struct outcomes *outcomes, struct store_listener *listener);
void outcomes_unlisten(
    struct outcomes *outcomes, struct store_listener *listener);

/* Waits until seq has been asked for. */
void outcomes_wait(struct outcomes *outcomes, uint64_t seq);

/* All numbers up to seq are in the log and wait for others who have copies:
 * what fails is behind them. Nobody is told. */
void outcomes_write(struct outcomes *outcomes, uint64_t seq);

/* Waits until more has been asked for than is committed or has failed: what,
 * and in *from how far it has come. 0 after outcomes_stop. */
uint64_t outcomes_wait_more(struct outcomes *outcomes, uint64_t *from);
void outcomes_stop(struct outcomes *outcomes);

/* Commits all numbers up to seq, or has those not yet committed fail; fault is
 * set (0: the log is well again). Listeners are told. */
void outcomes_commit(struct outcomes *outcomes, uint64_t seq, int fault);
void outcomes_fail(struct outcomes *outcomes, uint64_t seq, int fault);

/* Tells the listeners. */
void outcomes_note(struct outcomes *outcomes);

#endif
