/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_MESSAGE_FILES_H
#define REPL_MESSAGE_FILES_H

#include "repl/message.h"

/* Bodies of a snapshot: SNAPSHOT, then its contents as FILE, DATA and END;
 * these are answered by HAVE; then the same for each file that is missing; at
 * last an END for all. As message.h. */

enum {
    MESSAGE_LISTED_BYTES = 17,
    MESSAGE_HAVE_BYTES = 25,
    MESSAGE_HAVE_MAX = 40000, /* so many in one frame: another one follows */
    MESSAGE_FILES_MAX = 1 << 20,
    MESSAGE_MANIFEST_MAX = 64 << 20
};

struct message_snapshot {
    uint64_t first;        /* number of the first batch that comes behind it */
    uint64_t bytes;        /* of all files */
    uint32_t files;        /* 1..MESSAGE_FILES_MAX */
    uint32_t manifest_len; /* 1..MESSAGE_MANIFEST_MAX */
    struct message_text source; /* whose files these are */
};

size_t message_put_snapshot(
    uint8_t *body, const struct message_snapshot *snapshot);
int message_get_snapshot(const struct stream_frame *frame,
    struct message_snapshot *out, struct stream_fault *fault);

enum message_file_kind {
    MESSAGE_LOG = 1,
    MESSAGE_CHECKPOINT,
    MESSAGE_SEGMENT,
    MESSAGE_CONTENTS /* the list of all files, then the manifest: no file of
                      * either directory; its number is 1 */
};

/* How long the contents of a snapshot are. */
static inline uint64_t
message_contents_bytes(const struct message_snapshot *snapshot)
{
    return (uint64_t)snapshot->files * MESSAGE_LISTED_BYTES +
        snapshot->manifest_len;
}

/* A file that is here whole. */
struct message_have_file {
    enum message_file_kind kind;
    uint64_t number, bytes;
    uint64_t sum; /* XXH3 with 64 bits, seed 0, of all its bytes */
};

/* Writes the beginning; n files follow (up to MESSAGE_HAVE_MAX; none of them is
 * MESSAGE_CONTENTS). */
size_t message_put_have(uint8_t *body, uint32_t n);
size_t message_put_have_file(
    uint8_t out[MESSAGE_HAVE_BYTES], const struct message_have_file *file);

struct message_have {
    const uint8_t *at, *end;
    uint32_t n;
};

int message_get_have(const struct stream_frame *frame,
    struct message_have *out, struct stream_fault *fault);

/* False: there are no more. */
bool message_next_have(
    struct message_have *have, struct message_have_file *out);

/* A file begins. */
struct message_file {
    enum message_file_kind kind;
    uint64_t number, bytes;
};

size_t message_put_file(uint8_t *body, const struct message_file *file);
int message_get_file(const struct stream_frame *frame,
    struct message_file *out, struct stream_fault *fault);

/* One row of the list of files. False: it is not sound in itself. */
void message_put_listed(
    uint8_t out[MESSAGE_LISTED_BYTES], const struct message_file *file);
bool message_get_listed(
    const uint8_t bytes[MESSAGE_LISTED_BYTES], struct message_file *out);

/* Writes what stands before the bytes of a DATA; offset is that in the file. */
enum { MESSAGE_DATA_BYTES = 8 };
void message_put_data(uint8_t out[MESSAGE_DATA_BYTES], uint64_t offset);

struct message_data {
    uint64_t offset;
    const uint8_t *bytes;
    uint32_t len; /* 1..STREAM_DATA_MAX */
};

int message_get_data(const struct stream_frame *frame,
    struct message_data *out, struct stream_fault *fault);

enum message_end_of {
    MESSAGE_END_FILE = 1, /* value: its sum, as above */
    MESSAGE_END_SNAPSHOT, /* value: 0 */
    MESSAGE_END_FETCH     /* value: number of the last batch that came */
};

struct message_end {
    enum message_end_of of;
    uint64_t value;
};

size_t message_put_end(uint8_t *body, const struct message_end *end);
int message_get_end(const struct stream_frame *frame, struct message_end *out,
    struct stream_fault *fault);

#endif
