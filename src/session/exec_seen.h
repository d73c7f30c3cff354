/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SESSION_EXEC_SEEN_H
#define SESSION_EXEC_SEEN_H

#include "base/assert.h"
#include "session/exec_shared.h"

/* What has to wait for a commit before it is said: what acknowledges a change,
 * and under --reads=committed what shows one (exec_seen.c). Inside exec_*.c
 * only; the session's thread. */

/* buf_reserve, without a call where there is room already. */
static inline char *
exec__room(struct buf *buf, size_t extra)
{
    return buf->capacity - buf->len >= extra ? buf->data + buf->len
                                             : buf_reserve(buf, extra);
}

/* The bytes first..end - 1 of a reply have to wait. */
static inline struct session_ack
exec__ack(
    const struct echo *echo, enum ack_kind kind, size_t first, size_t end)
{
    return (struct session_ack){
        .span = {(uint32_t)first, (uint32_t)(end - first)},
        .opaque = echo->opaque,
        .opcode = echo->opcode,
        .proto = (uint8_t)echo->proto,
        .kind = (uint8_t)kind};
}

/* Notes that they do; where memory is out acks->at.failed is set. */
static inline void
exec__note_ack(struct session_acks *acks, const struct echo *echo,
    enum ack_kind kind, size_t first, size_t end)
{
    ASSERT(end <= UINT32_MAX);
    struct session_ack *ack = (void *)exec__room(&acks->at, sizeof *ack);
    if (ack == NULL) {
        return;
    }
    *ack = exec__ack(echo, kind, first, end);
    acks->at.len += sizeof *ack;
}

/* A piece of a dump, that led to step, is in the turn's out from first on: the
 * replies of this turn wait for what it has seen. Nothing where that is
 * committed, may be shown anyway, or the piece is empty. */
void exec__note_piece(struct session *session, enum exec_step step,
    size_t first, struct exec_turn *turn);

/* A change was refused by the store with err, and what there is to say of it
 * is in the turn's out from first on: that may tell what the store has. */
void exec__note_refusal(struct session *session, int err,
    const struct echo *echo, size_t first, struct exec_turn *turn);

#endif
