/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/log_make.h"

#include "base/assert.h"

#include <string.h>

static uint8_t *
reserve(struct log_make *log, size_t len)
{
    char *room = buf_reserve(&log->bytes, len);

    ASSERT(room != NULL);
    log->bytes.len += len;
    return (uint8_t *)room;
}

void
log_make_init(struct log_make *log, const struct frame_file *file)
{
    memset(log, 0, sizeof *log);
    log->file = *file;
    frame_file_put(file, reserve(log, FRAME_FILE_BYTES));
    log->at[0] = FRAME_FILE_BYTES;
}

void
log_make_fini(struct log_make *log)
{
    buf_fini(&log->bytes);
}

void
log_make_add(
    struct log_make *log, const void *payload, size_t len, uint64_t synced_seq)
{
    uint8_t *head = reserve(log, FRAME_BATCH_BYTES + len);

    ASSERT(log->n < LOG_MAKE_BATCHES_MAX);
    log->batch[log->n] =
        (struct frame_batch){.seq = log->file.first_seq + log->n,
            .synced_seq = synced_seq,
            .payload_bytes = (uint32_t)len};
    memcpy(head + FRAME_BATCH_BYTES, payload, len);
    frame_batch_put(&log->file, &log->batch[log->n], head);
    log->n++;
    log->at[log->n] = log->bytes.len;
}

void
log_make_zeroes(struct log_make *log, size_t len)
{
    memset(reserve(log, len), 0, len);
}
