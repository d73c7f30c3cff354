/* SPDX-License-Identifier: BSD-3-Clause */
/* The headers of a log file and of its batches: numbers to bytes and back,
 * and the checksums over them. The layout is in frame.h and, with the reasons,
 * in doc/format-log.md.
 *
 * The bytes that a batch's checksum covers do not stand side by side: the
 * checksum is between them. So it is taken in two steps, each seeded with the
 * result of the one before: epoch and file number, then bytes 0..23, then the
 * payload. Nothing is copied for it.
 *
 * What can go wrong: any bytes may come in. A length is believed only as far
 * as bytes are there, and the checksum is looked at before what is behind it
 * means anything. */
#include "wal/frame.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/checksum.h"

#include <string.h>

enum { FILE_CHECKSUM_AT = 56, BATCH_MAGIC_BYTES = 4, BATCH_CHECKSUM_AT = 24 };

static const uint8_t file_magic[8] = {'T', 'A', 'L', 'L', 'Y', 'L', 'O', 'G'};
static const uint8_t batch_magic[BATCH_MAGIC_BYTES] = {'T', 'L', 'Y', 'B'};

_Static_assert(FILE_CHECKSUM_AT + 8 == FRAME_FILE_BYTES, "it is the last");
_Static_assert(BATCH_CHECKSUM_AT + 8 == FRAME_BATCH_BYTES, "it is the last");

static bool
file_is_valid(const struct frame_file *file)
{
    if (file->epoch == 0 || file->number == 0 || file->first_seq == 0 ||
        file->bytes < FRAME_FILE_BYTES) {
        return false;
    }
    return file->before_end == 0 ||
        (file->number > 1 && file->before_end >= FRAME_FILE_BYTES);
}

void
frame_file_put(const struct frame_file *file, uint8_t out[FRAME_FILE_BYTES])
{
    ASSERT(file_is_valid(file));
    memcpy(out, file_magic, sizeof file_magic);
    bytes_put_u32(out + 8, FRAME_VERSION);
    bytes_put_u32(out + 12, 0);
    bytes_put_u64(out + 16, file->epoch);
    bytes_put_u64(out + 24, file->number);
    bytes_put_u64(out + 32, file->first_seq);
    bytes_put_u64(out + 40, file->bytes);
    bytes_put_u64(out + 48, file->before_end);
    bytes_put_u64(
        out + FILE_CHECKSUM_AT, checksum64(out, FILE_CHECKSUM_AT, 0));
}

enum frame_fault
frame_file_get(const uint8_t *in, size_t len, struct frame_file *out)
{
    if (len < FRAME_FILE_BYTES ||
        memcmp(in, file_magic, sizeof file_magic) != 0 ||
        bytes_get_u64(in + FILE_CHECKSUM_AT) !=
            checksum64(in, FILE_CHECKSUM_AT, 0) ||
        bytes_get_u32(in + 8) == 0) {
        return FRAME_DAMAGED;
    }
    if (bytes_get_u32(in + 8) > FRAME_VERSION || bytes_get_u32(in + 12) != 0) {
        return FRAME_NEWER;
    }
    out->epoch = bytes_get_u64(in + 16);
    out->number = bytes_get_u64(in + 24);
    out->first_seq = bytes_get_u64(in + 32);
    out->bytes = bytes_get_u64(in + 40);
    out->before_end = bytes_get_u64(in + 48);
    return file_is_valid(out) ? FRAME_OK : FRAME_DAMAGED;
}

static uint64_t
batch_checksum(const struct frame_file *file, const uint8_t *head, size_t n)
{
    uint8_t place[16];

    bytes_put_u64(place, file->epoch);
    bytes_put_u64(place + 8, file->number);
    return checksum64(head + FRAME_BATCH_BYTES, n,
        checksum64(
            head, BATCH_CHECKSUM_AT, checksum64(place, sizeof place, 0)));
}

static bool
batch_is_valid(const struct frame_batch *batch)
{
    return batch->seq > 0 && batch->seq < UINT64_MAX && /* has a next one */
        batch->synced_seq <= batch->seq && batch->payload_bytes > 0 &&
        batch->payload_bytes <= FRAME_PAYLOAD_MAX;
}

void
frame_batch_put(const struct frame_file *file, const struct frame_batch *batch,
    uint8_t *head)
{
    ASSERT(batch_is_valid(batch));
    memcpy(head, batch_magic, sizeof batch_magic);
    bytes_put_u32(head + 4, batch->payload_bytes);
    bytes_put_u64(head + 8, batch->seq);
    bytes_put_u64(head + 16, batch->synced_seq);
    bytes_put_u64(head + BATCH_CHECKSUM_AT,
        batch_checksum(file, head, batch->payload_bytes));
}

bool
frame_batch_peek(const uint8_t in[FRAME_BATCH_BYTES], struct frame_batch *out)
{
    out->payload_bytes = bytes_get_u32(in + 4);
    out->seq = bytes_get_u64(in + 8);
    out->synced_seq = bytes_get_u64(in + 16);
    return memcmp(in, batch_magic, sizeof batch_magic) == 0 &&
        batch_is_valid(out);
}

enum frame_fault
frame_batch_get(const struct frame_file *file, const uint8_t *in, size_t len,
    struct frame_batch *out)
{
    static const uint8_t zeroes[FRAME_BATCH_BYTES];

    if (len < FRAME_BATCH_BYTES ||
        memcmp(in, zeroes, FRAME_BATCH_BYTES) == 0) {
        return FRAME_END;
    }
    if (!frame_batch_peek(in, out) ||
        len - FRAME_BATCH_BYTES < out->payload_bytes ||
        bytes_get_u64(in + BATCH_CHECKSUM_AT) !=
            batch_checksum(file, in, out->payload_bytes)) {
        return FRAME_DAMAGED;
    }
    return FRAME_OK;
}

size_t
frame_batch_seek(const uint8_t *in, size_t len)
{
    const uint8_t *found = memmem(in, len, batch_magic, sizeof batch_magic);

    if (found != NULL) {
        return (size_t)(found - in);
    }
    return len < BATCH_MAGIC_BYTES ? 0 : len - (BATCH_MAGIC_BYTES - 1);
}
