/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef T_FUZZ_FRAMES_H
#define T_FUZZ_FRAMES_H

#include "base/assert.h"
#include "repl/message_files.h"

/* Reads a frame of a snapshot, as who takes one does. True of the last one. */
static inline bool
fuzz_read_file_frame(const struct stream_frame *frame)
{
    struct message_snapshot snapshot;
    struct message_file file;
    struct message_data data;
    struct message_end end;
    struct message_have have;
    struct message_have_file one;
    struct stream_fault fault;

    switch (frame->type) {
    case STREAM_SNAPSHOT:
        (void)message_get_snapshot(frame, &snapshot, &fault);
        return false;
    case STREAM_FILE:
        (void)message_get_file(frame, &file, &fault);
        return false;
    case STREAM_DATA:
        (void)message_get_data(frame, &data, &fault);
        return false;
    case STREAM_END:
        return message_get_end(frame, &end, &fault) == 0 &&
            end.of == MESSAGE_END_SNAPSHOT;
    default:
        ASSERT(frame->type == STREAM_HAVE);
        if (message_get_have(frame, &have, &fault) == 0) {
            while (message_next_have(&have, &one)) {
                ASSERT(one.number > 0);
            }
        }
        return false;
    }
}

#endif
