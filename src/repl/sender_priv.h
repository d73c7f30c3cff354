/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_SENDER_PRIV_H
#define REPL_SENDER_PRIV_H

#include "repl/sender.h"

/* Between the files of a sender. The node's thread. */

/* sender.c: */

/* What is so at this node, as of this turn. */
struct link_view sender_view(struct node *node);

/* True where both have the same name. */
bool sender_is_same(
    const struct sender_stream *a, const struct sender_stream *b);

/* sender_stream.c: */

/* Takes over a connected socket. */
void sender_open(struct node *node, int fd);

/* What is to be done now. */
void sender_turn_stream(struct sender_stream *stream);

/* True where the place in the log of one that has gone is kept: of a replica by
 * a primary; of a feed by any node that may feed. */
bool sender_keeps_places(const struct sender_stream *stream);

/* The stream is used no more. gently: the other end is to read what is on its
 * way. Once more is fine. */
void sender_end_stream(struct sender_stream *stream, bool gently);

/* The same where it is the socket, or this node, that ends it. */
void sender_break(struct sender_stream *stream, const char *why);

/* The same, and the other end, which has a session, is told why. There is room
 * to send. */
void sender_refuse(
    struct sender_stream *stream, enum message_code code, const char *text);

/* Frees what nobody uses any more. */
void sender_release(struct sender_stream *stream);
void sender_free(struct sender_stream *stream);

/* sender_batches.c: */

/* Gathers the batches behind that one. False: there are none yet, or somebody
 * else gathers them. */
bool sender_begin_batches(struct sender_stream *stream, uint64_t behind);

/* Sends what was gathered. */
void sender_send_batches(struct sender_stream *stream);

/* The next batch of the log is there (has_batch), if there is one: 0; or why
 * there is none, which is not an error at the end. Who gathers. */
int sender__next_batch(struct sender_stream *stream);

/* Where the next bytes of the frame go, with room for so many more; NULL:
 * memory is out. Who gathers. */
uint8_t *sender__make_room(struct sender_stream *stream, size_t more);

/* Of a stream that is over: it reads no more, if it did, and its place is kept,
 * if it is to be. It may be freed. */
void sender_leave_log(struct sender_stream *stream);

/* The place is kept no more; it is freed. */
void sender_leave_place(struct sender_stream *stream);

/* The term begins: the end of the one before is kept. May wait for the disk. */
void sender_keep_before(struct node *node);

/* No more, if it is; from sender_turn on, or at an end. */
void sender_leave_before(struct node *node);

/* sender_copy.c: */

/* A snapshot that is sent to a replica. */
struct sender_copy {
    struct sender_copy *next;
    struct copy_out *out;
    struct sender_stream *stream; /* NULL: it has gone */
    bool is_done;                 /* all was sent */
    uint64_t counted;             /* bytes of it in figures */
    uint8_t name_len;
    char name[MESSAGE_NAME_MAX];
};

/* False: what has come has to wait. */
bool sender_may_take(struct sender_stream *stream);

/* A HAVE has come. */
void sender_take_have(
    struct sender_stream *stream, const struct stream_frame *frame);

/* Goes on with the snapshot. False: nothing is left to do now, but to be asked
 * again at until_us. */
bool sender_send_copy(struct sender_stream *stream, uint64_t until_us);

/* The stream is over: what was begun is given up, what was sent is kept. */
void sender_leave_copy(struct sender_stream *stream);

/* The replica of that stream follows the log: nothing is kept for it. */
void sender_end_copies_of(const struct sender_stream *stream);

void sender_look_at_copies(struct node *node);
void sender_stop_copies(struct node *node);

#endif
