/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PROTO_COMMAND_KEY_H
#define PROTO_COMMAND_KEY_H

#include "proto/request.h"

#include <stdbool.h>
#include <stddef.h>

/* What a command is about, for those who look at it when it is over. */
struct command_key {
    struct span key; /* as it came, base64 and all; len 0: there is none */
    unsigned n_keys; /* of a retrieval, as far as its keys are there; else 0 or
                      * 1 */
    bool is_stats;   /* it asks for figures only */
};

/* Looks at the command at bytes[0..len), of which only a beginning need be
 * there: at the first word behind its name, or the key of a packet. Nothing of
 * a value or a password is taken. Pure. */
void command_key_read(
    const char *bytes, size_t len, bool is_binary, struct command_key *out);

#endif
