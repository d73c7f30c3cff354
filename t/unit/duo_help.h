/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_DUO_HELP_H
#define UNIT_DUO_HELP_H

/* Two ends of a stream, and frames from one to the other: a is called, b is a
 * caller of one of the kinds that there are. */

#include "repl/link_asker.h"
#include "repl/link_feed.h"
#include "unit/link_help.h"

struct duo;

/* What b is. */
struct duo_caller {
    enum link_step (*take_fn)(
        struct duo *duo, const struct stream_frame *frame);
    void (*next_fn)(struct duo *duo); /* fills bytes and order */
    void (*look_fn)(struct duo *duo); /* fills view, each time that a is asked;
                                       * NULL: the test does */
};

struct duo {
    const struct duo_caller *caller;
    const struct link_caller *call; /* of asks, down or feed */
    struct peer a, b;
    struct proof_secret secret, other;
    struct link_view view; /* of a */
    struct link_primary up;
    struct link_asker asks;
    struct link_replica down;
    struct link_feed feed;
    struct stream_reader at_a, at_b;
    uint8_t bytes[LINK_SEND_MAX > 4096 ? LINK_SEND_MAX : 4096];
    char *given; /* the last frame to b, which is looked at still */
    struct link_order order;
    enum link_step step; /* of the last frame */
    uint64_t now_us;
    /* of b, of check_link: link_node's given */
    const struct history *given_history;
    uint64_t given_seq;
    /* of a feed, which has no log: */
    struct link_self self;
    struct history history;
    struct link_node node;
};

static const uint8_t duo_nonce[2][STREAM_NONCE_BYTES] = {{1}, {2}};

/* A connection: b, whose call that is, has begun already. */
static inline void
duo_meet(struct duo *duo, const struct duo_caller *caller,
    const struct link_caller *call)
{
    duo->caller = caller;
    duo->call = call;
    link_primary_init(&duo->up, &duo->a.self, duo_nonce[0], duo->now_us);
    stream_reader_fini(&duo->at_a);
    stream_reader_fini(&duo->at_b);
    ck_assert_int_eq(stream_reader_init(&duo->at_a), 0);
    ck_assert_int_eq(stream_reader_init(&duo->at_b), 0);
}

/* a has ten batches of term 3. */
static inline void
duo_begin(struct duo *duo)
{
    memset(duo, 0, sizeof *duo);
    duo->now_us = 1000000;
    peer_init(&duo->a, "a", &duo->secret);
    peer_init(&duo->b, "b", &duo->secret);
    duo->a.directory = duo->b.directory = link_directory;
    duo->a.promised = 2;
    peer_begin(&duo->a, 0xaaa);
    for (unsigned i = 1; i < 10; i++) {
        peer_write(&duo->a, seq_make(3, i + 1), i);
    }
}

static inline void
duo_end(struct duo *duo)
{
    stream_reader_fini(&duo->at_a);
    stream_reader_fini(&duo->at_b);
    free(duo->given);
}

static inline void
duo_look(struct duo *duo)
{
    if (duo->caller->look_fn != NULL) {
        duo->caller->look_fn(duo);
    }
}

/* Hands on a frame. */
static inline void
to_b(struct duo *duo, const uint8_t *bytes, size_t len)
{
    struct stream_frame frame;
    char *copy = copy_of((const char *)bytes, len);
    const uint8_t *at = (const uint8_t *)copy;

    ck_assert_int_eq(stream_read(&duo->at_b, &at, &len, &frame), STREAM_FRAME);
    duo->step = duo->caller->take_fn(duo, &frame);
    duo->at_b.session = duo->call->session;
    free(duo->given);
    duo->given = copy;
}

static inline void
to_a(struct duo *duo, const uint8_t *bytes, size_t len)
{
    struct stream_frame frame;
    char *copy = copy_of((const char *)bytes, len);
    const uint8_t *at = (const uint8_t *)copy;

    duo_look(duo);
    ck_assert_int_eq(stream_read(&duo->at_a, &at, &len, &frame), STREAM_FRAME);
    duo->step = link_primary_take(&duo->up, &duo->view, &frame, duo->now_us);
    duo->at_a.session = duo->up.session;
    free(copy);
}

static inline enum link_do
ask_a(struct duo *duo)
{
    duo_look(duo);
    link_primary_next(
        &duo->up, &duo->view, duo->now_us, duo->bytes, &duo->order);
    return duo->order.what;
}

static inline enum link_do
ask_b(struct duo *duo)
{
    duo->caller->next_fn(duo);
    return duo->order.what;
}

/* What the end sends now, and the other one takes. */
static inline void
a_says(struct duo *duo, enum stream_type type)
{
    ck_assert_int_eq(ask_a(duo), LINK_SEND);
    ck_assert_uint_eq(duo->bytes[5], type);
    to_b(duo, duo->bytes, duo->order.len);
}

static inline void
b_says(struct duo *duo, enum stream_type type)
{
    ck_assert_int_eq(ask_b(duo), LINK_SEND);
    ck_assert_uint_eq(duo->bytes[5], type);
    to_a(duo, duo->bytes, duo->order.len);
}

static inline void
say_hello(struct duo *duo)
{
    a_says(duo, STREAM_CHALLENGE);
    b_says(duo, STREAM_HELLO);
}

#endif
