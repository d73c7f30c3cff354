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

/* The header, of a file that was made as long as it is now. */
static void
put_head(struct log_make *log)
{
    log->file.bytes = log->bytes.len;
    frame_file_put(&log->file, (uint8_t *)log->bytes.data);
}

void
log_make_init(struct log_make *log, const struct frame_file *file)
{
    memset(log, 0, sizeof *log);
    log->file = *file;
    (void)reserve(log, FRAME_FILE_BYTES);
    put_head(log);
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
    put_head(log);
}

void
log_make_zeroes(struct log_make *log, size_t len)
{
    memset(reserve(log, len), 0, len);
    put_head(log);
}
