/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_CONTROL_FRAME_H
#define REPL_CONTROL_FRAME_H

#include "repl/control.h"

#include <stddef.h>

/* Requests and events of repl/control.h as packets. One request or event has
 * one form, so that what is read and put again is the same bytes. Pure. */

enum { CONTROL_FRAME_MAX = 24 << 10 };

/* Writes it; returns the length. The request or event keeps to what
 * repl/control.h says of it. */
size_t control_frame__put_request(
    const struct control_request *request, uint8_t out[CONTROL_FRAME_MAX]);
size_t control_frame__put_event(
    const struct control_event *event, uint8_t out[CONTROL_FRAME_MAX]);

/* Reads one that fills bytes[0..len). False where that is none: *out is of no
 * use then. What is not said becomes zero, also behind the ends of texts. */
bool control_frame__get_request(
    const uint8_t *bytes, size_t len, struct control_request *out);
bool control_frame__get_event(
    const uint8_t *bytes, size_t len, struct control_event *out);

/* True for what a packet could have: what somebody else wrote into a text
 * (JSON) is looked at by the same rules. */
bool control_frame_is_right(const struct control_event *event);

#endif
