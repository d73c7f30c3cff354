/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PROTO_TEXT_ARITH_H
#define PROTO_TEXT_ARITH_H

#include "proto/request.h"

#include <stdbool.h>
#include <stddef.h>

/* The short way of `incr KEY N` and `decr KEY N` as clients send them: one
 * space between the words, a key that begins with a digit, up to 19 digits of
 * a number, noreply or nothing behind it, and the whole line is there. True:
 * *out is just what the long way makes of the line. False: it is not one of
 * those lines, or it is not known yet, and *out is as it was. Pure; any
 * thread. Inside src/proto only. */
bool text__arith(const char *bytes, size_t len, struct request *out);

#endif
