/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NET_ACKS_H
#define NET_ACKS_H

#include "base/buf.h"
#include "proto/request.h"

#include <stdint.h>

/* The bytes of out that acknowledge a change, none where that is not wanted;
 * and what else there is to say instead. */
struct session_ack {
    struct span span;
    uint32_t opaque; /* these two: PROTO_BINARY */
    uint8_t opcode;
    uint8_t proto; /* enum request_proto */
};

/* What the replies of one session_run wait for. */
struct session_acks {
    uint64_t seq;  /* store_outcome of it: none may leave before that is
                   * STORE_COMMITTED; 0: nothing to wait for */
    struct buf at; /* struct session_ack each, in order */
};

#endif
