/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SESSION_ACKS_H
#define SESSION_ACKS_H

#include "base/buf.h"
#include "proto/request.h"

#include <stdint.h>

/* Why some bytes of a reply have to wait for a commit. */
enum ack_kind {
    ACK_CHANGE, /* they acknowledge a change */
    ACK_READ,   /* they show what may be undone, up to the end of a reply */
    ACK_PART    /* likewise, and more of that reply follows in a later turn */
};

/* The bytes of out that have to wait, none where a change is not to be
 * acknowledged; and what else there is to say instead. */
struct session_ack {
    struct span span;
    uint32_t opaque; /* these two: PROTO_BINARY */
    uint8_t opcode;
    uint8_t proto; /* enum request_proto */
    uint8_t kind;  /* enum ack_kind */
};

/* What the replies of one session_run wait for. */
struct session_acks {
    uint64_t seq;  /* store_outcome of it: none may leave before that is
                   * STORE_COMMITTED; 0: nothing to wait for */
    struct buf at; /* struct session_ack each, in order */
};

#endif
