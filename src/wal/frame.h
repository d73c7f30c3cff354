/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WAL_FRAME_H
#define WAL_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The frame of a log file: its header, and the header of each batch in it
 * (doc/format-log.md). Pure; any thread.
 *
 *   file:  OFFSET SIZE                     batch:  OFFSET SIZE
 *               0    8 "TALLYLOG"                       0    4 "TLYB"
 *               8    4 version, 1                       4    4 payload bytes
 *              12    4 0                                8    8 sequence number
 *              16    8 history, or epoch               16    8 sequence number
 *              24    8 number of this file                     up to which all
 *              32    8 first sequence number                   was synced when
 *              40    8 bytes it was made with                  this was sealed
 *              48    8 where the file before           24    8 checksum
 *                      is void from, or 0
 *              56    8 checksum of 0..55               32      payload
 *
 * A batch's checksum is over its bytes 0..23 and the payload, seeded with the
 * epoch and the file's number: bytes of another file never pass. Zeroes where
 * a batch would be are the end. Magic, version and checksum of a file header
 * are in these places in every version to come; the 0 at 12 is for features
 * that a reader must know. */

enum {
    FRAME_FILE_BYTES = 64,
    FRAME_BATCH_BYTES = 32,
    FRAME_PAYLOAD_MAX = 1 << 20,
    FRAME_VERSION = 1
};

struct frame_file {
    uint64_t epoch;     /* the history of the file (wal/histories.h), or, where
                          * it is older than these, the epoch of the data
                          * directory; not 0 */
    uint64_t number;    /* from 1 on, by one */
    uint64_t first_seq; /* of the first batch that is or will be in it */
    uint64_t bytes;     /* it was made with, this header among them; it is
                          * never shorter */
    uint64_t before_end; /* file number - 1 holds nothing from there on; 0:
                          * there is no such file */
};

struct frame_batch {
    uint64_t seq;           /* from 1 on, by one; never again in an epoch */
    uint64_t synced_seq;    /* <= seq; 0: none */
    uint32_t payload_bytes; /* 1..FRAME_PAYLOAD_MAX */
};

enum frame_fault {
    FRAME_OK,
    FRAME_END,     /* a header of zeroes, or less than a header is left */
    FRAME_DAMAGED, /* no such frame was ever sealed here */
    FRAME_NEWER    /* a version of a newer tallyd; only of files */
};

void frame_file_put(
    const struct frame_file *file, uint8_t out[FRAME_FILE_BYTES]);

/* len bytes are there. FRAME_OK, FRAME_DAMAGED or FRAME_NEWER. */
enum frame_fault frame_file_get(
    const uint8_t *in, size_t len, struct frame_file *out);

/* Seals a batch in place: payload_bytes of payload stand behind head. */
void frame_batch_put(const struct frame_file *file,
    const struct frame_batch *batch, uint8_t *head);

/* A batch of which len bytes are there: FRAME_OK, FRAME_END or
 * FRAME_DAMAGED; a payload that reaches beyond len is FRAME_DAMAGED. */
enum frame_fault frame_batch_get(const struct frame_file *file,
    const uint8_t *in, size_t len, struct frame_batch *out);

/* What the header of a batch says, unchecked: the payload need not be there.
 * False where it cannot be one. */
bool frame_batch_peek(
    const uint8_t in[FRAME_BATCH_BYTES], struct frame_batch *out);

/* The first place in in[0..len) where a batch may begin; where there is none,
 * the place from which to look on when there are more bytes. */
size_t frame_batch_seek(const uint8_t *in, size_t len);

#endif
