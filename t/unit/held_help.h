/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_HELD_HELP_H
#define UNIT_HELD_HELP_H

#include "lib/hold.h"
#include "unit/net_help.h"

/* A dialog behind a store that holds calls. */
struct held_dialog {
    struct store *inner;
    struct store *hold;
    struct dialog dialog;
    struct dialog other; /* straight on the inner store */
};

static inline void
open_held(struct held_dialog *held)
{
    held->inner = small_store(NULL);
    ck_assert_int_eq(hold_create(held->inner, &held->hold), 0);
    dialog_open(&held->dialog, held->hold, SMALL_STORE_ITEM_BYTES);
    dialog_open(&held->other, held->inner, SMALL_STORE_ITEM_BYTES);
    declare(&held->other);
    exchange(&held->other, "set weibo 1 11 12 13", "STORED\r\n");
    hold_begin(held->hold, false);
}

/* What is said at once, and how many calls of the store it takes. */
struct batching {
    const char *said;
    unsigned n_calls;
    const char *answer;
};

/* Lets the one call go that is held. */
static inline void
held_release(struct held_dialog *held)
{
    ck_assert_uint_eq(hold_release(held->hold), 1);
    dialog_wait(&held->dialog);
}

/* Says it all, and waits for a call. */
static inline void
held_add(struct held_dialog *held, const char *said)
{
    dialog_add(&held->dialog, said, strlen(said));
    ck_assert_int_eq(dialog_step(&held->dialog), SESSION_PARKED);
}

/* Steps until more bytes are wanted; returns how many calls were held. */
static inline unsigned
step_through(struct held_dialog *held)
{
    unsigned n = 0;
    for (;;) {
        switch (dialog_step(&held->dialog)) {
        case SESSION_READY:
        case SESSION_CLOSE:
            return n;
        case SESSION_PARKED:
            n += hold_release(held->hold);
            dialog_wait(&held->dialog); /* of an edit, nothing was held */
            break;
        case SESSION_FULL:
        case SESSION_YIELD:
            break;
        }
    }
}

/* All of them, of which the last one closes. */
static inline void
play_batches(struct held_dialog *held, const struct batching *batch, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        dialog_add(&held->dialog, batch[i].said, strlen(batch[i].said));
        unsigned n_calls = step_through(held);
        ck_assert_msg(n_calls == batch[i].n_calls, "%u calls: %s", n_calls,
            batch[i].said);
        expect_replies(&held->dialog, batch[i].said, batch[i].answer);
    }
    ck_assert(held->dialog.is_closed);
}

static inline void
close_held(struct held_dialog *held)
{
    dialog_close(&held->dialog);
    hold_destroy(&held->hold);
    close_new(&held->other);
}

#endif
