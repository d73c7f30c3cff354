/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes the packets between a node and the process that speaks with etcd. What
 * is taken comes out the same when it is put again. */
#include "base/assert.h"
#include "repl/control_frame.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static uint8_t again[CONTROL_FRAME_MAX];
    static struct control_request request;
    static struct control_event event;
    if (control_frame__get_request(bytes, len, &request)) {
        ASSERT(control_frame__put_request(&request, again) == len);
        ASSERT(memcmp(again, bytes, len) == 0);
    }
    if (control_frame__get_event(bytes, len, &event)) {
        ASSERT(control_frame_is_right(&event));
        ASSERT(control_frame__put_event(&event, again) == len);
        ASSERT(memcmp(again, bytes, len) == 0);
    }
    return 0;
}
