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

static inline void
close_held(struct held_dialog *held)
{
    dialog_close(&held->dialog);
    hold_destroy(&held->hold);
    close_new(&held->other);
}

#endif
