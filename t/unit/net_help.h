/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_NET_HELP_H
#define UNIT_NET_HELP_H

/* What the tests of sessions share: exchanges, and a dialog to play them. */

#include "lib/dialog.h"
#include "lib/small_store.h"
#include "unit/check_help.h"

/* What is said, without its last CR LF, and what is answered. */
struct exchange {
    const char *said;
    const char *answer;
};

/* The counter of the examples, and one of each option. */
static const struct exchange declarations[] = {
    {"add counter weibo", "STORED\r\n"},
    {"add column weibo weibo_id hint=64 max=64 default=0 primarykey",
        "STORED\r\n"},
    {"add column weibo comment_num hint=16 max=32 default=0  suffix=cntcm",
        "STORED\r\n"},
    {"add column weibo repost_num hint=16 max=32 default=0  suffix=cntrn",
        "STORED\r\n"},
    {"add column weibo attitude_num hint=8 max=32 default=0  suffix=cntan",
        "STORED\r\n"},
    {"add counter opt absent=miss overflow=error exptime=ignore",
        "STORED\r\n"},
    {"add column opt opt_id primarykey", "STORED\r\n"},
    {"add column opt opt_a hint=4 max=8 default=5 flags=4 suffix=oa",
        "STORED\r\n"},
};

/* Opens a dialog on a store of its own. */
static inline void
open_new(struct dialog *dialog)
{
    dialog_open(dialog, small_store(NULL), SMALL_STORE_ITEM_BYTES);
}

static inline void
close_new(struct dialog *dialog)
{
    struct store *store = dialog->store;
    dialog_close(dialog);
    store_verify(store);
    store_destroy(&store);
}

/* Compares the replies so far, and forgets them. */
static inline void
expect_replies(struct dialog *dialog, const char *said, const char *answer)
{
    buf_add(&dialog->replies, "", 1);
    ck_assert_msg(strcmp(dialog->replies.data, answer) == 0,
        "'%s' is answered with '%s', not '%s'", said, dialog->replies.data,
        answer);
    buf_clear(&dialog->replies);
}

static inline void
exchange(struct dialog *dialog, const char *said, const char *answer)
{
    char *line = malloc(strlen(said) + 2);
    ck_assert_ptr_nonnull(line);
    memcpy(line, said, strlen(said));
    memcpy(line + strlen(said), "\r\n", 2);
    dialog_say(dialog, line, strlen(said) + 2);
    free(line);
    expect_replies(dialog, said, answer);
}

static inline void
play(struct dialog *dialog, const struct exchange *exchanges, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        exchange(dialog, exchanges[i].said, exchanges[i].answer);
    }
}

#define PLAY(dialog, exchanges) play(dialog, exchanges, COUNT_OF(exchanges))

static inline void
declare(struct dialog *dialog)
{
    PLAY(dialog, declarations);
}

/* All that is said, and all answers, in one piece each. */
static inline void
join(const struct exchange *exchanges, size_t n, struct buf *said,
    struct buf *answers)
{
    for (size_t i = 0; i < n; i++) {
        buf_add_text(said, exchanges[i].said);
        buf_add_text(said, "\r\n");
        buf_add_text(answers, exchanges[i].answer);
    }
    ck_assert(!said->failed && !answers->failed);
}

static inline uint64_t
metric_of(const struct metric_set *metrics, enum metric metric)
{
    uint64_t sum[METRIC_COUNT] = {0};
    metric_sum(metrics, sum);
    return sum[metric];
}

#endif
