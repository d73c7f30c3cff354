/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames: a head of fixed length and a body. A frame that has come whole is
 * read where it is; one that has not is put together in the reader, and only
 * then copied.
 *
 *   given:   | end of a frame | frame | frame | beginn
 *                  |             |       |        |
 *   reader:  beginning + end     (in place)     kept
 *
 * The head is looked at as soon as it is there, so that a wrong length does not
 * have the reader wait for bytes that never come: each type has its bounds.
 * But nothing of a frame is believed before its checksum was right; what a
 * wrong head says is only used to say where it is wrong.
 *
 * What can go wrong: any byte. All of it is final. */
#include "repl/stream.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/checksum.h"
#include "base/err.h"

#include <stdlib.h>
#include <string.h>

enum {
    AT_VERSION = 4,
    AT_TYPE = 5,
    AT_ZERO = 6,
    AT_LEN = 8,
    AT_ZERO_TOO = 12,
    AT_TERM = 16,
    AT_SUM = 24
};

static const uint8_t magic[4] = {'T', 'L', 'Y', 'R'};

static const struct bounds {
    const char *name;
    uint32_t least, most;
} types[] = {
#define X(number, name, least, most) [number] = {#name, least, most},
    STREAM_TYPES(X)
#undef X
};

enum { N_TYPES = sizeof types / sizeof types[0] };

#define X(number, name, least, most)                                          \
    _Static_assert((least) <= (most) && (most) <= STREAM_BODY_MAX, #name);
STREAM_TYPES(X)
#undef X

/* NULL: there is no such type. */
static const struct bounds *
bounds_of(unsigned type)
{
    return type < N_TYPES && types[type].name != NULL ? &types[type] : NULL;
}

const char *
stream_type_name(unsigned type)
{
    const struct bounds *bounds = bounds_of(type);

    return bounds == NULL ? "unknown" : bounds->name;
}

uint64_t
stream_session(const uint8_t accepting[STREAM_NONCE_BYTES],
    const uint8_t connecting[STREAM_NONCE_BYTES])
{
    uint8_t both[2 * STREAM_NONCE_BYTES];

    memcpy(both, accepting, STREAM_NONCE_BYTES);
    memcpy(both + STREAM_NONCE_BYTES, connecting, STREAM_NONCE_BYTES);
    return checksum64(both, sizeof both, 0);
}

static uint64_t
sum_of(const uint8_t *frame, uint32_t len, uint64_t session)
{
    return checksum64(
        frame + STREAM_HEAD_BYTES, len, checksum64(frame, AT_SUM, session));
}

size_t
stream_seal(uint8_t *frame, enum stream_type type, uint32_t len, uint64_t term,
    uint64_t session)
{
    const struct bounds *bounds = bounds_of(type);

    ASSERT(bounds != NULL && len >= bounds->least && len <= bounds->most);
    memcpy(frame, magic, sizeof magic);
    frame[AT_VERSION] = STREAM_VERSION;
    frame[AT_TYPE] = (uint8_t)type;
    bytes_put_u16(frame + AT_ZERO, 0);
    bytes_put_u32(frame + AT_LEN, len);
    bytes_put_u32(frame + AT_ZERO_TOO, 0);
    bytes_put_u64(frame + AT_TERM, term);
    bytes_put_u64(frame + AT_SUM, sum_of(frame, len, session));
    return STREAM_HEAD_BYTES + (size_t)len;
}

int
stream_reader_init(struct stream_reader *reader)
{
    *reader = (struct stream_reader){.kept = malloc(STREAM_FRAME_MAX)};
    return reader->kept == NULL ? ERR_NO_MEMORY : 0;
}

void
stream_reader_fini(struct stream_reader *reader)
{
    free(reader->kept);
    *reader = (struct stream_reader){0};
}

static enum stream_step
wrong(struct stream_reader *reader, const uint8_t *frame, const char *what,
    uint32_t offset)
{
    reader->is_wrong = true;
    reader->fault = (struct stream_fault){.what = what,
        .offset = offset,
        .type = offset > AT_TYPE ? frame[AT_TYPE] : 0,
        .frame_at = reader->offset};
    return STREAM_WRONG;
}

/* Looks at a head, of which all bytes are there. */
static enum stream_step
look(struct stream_reader *reader, const uint8_t *head)
{
    const struct bounds *bounds = bounds_of(head[AT_TYPE]);
    uint32_t len = bytes_get_u32(head + AT_LEN);

    if (memcmp(head, magic, sizeof magic) != 0) {
        return wrong(reader, head, "TLYR", 0);
    }
    if (head[AT_VERSION] != STREAM_VERSION) {
        return wrong(reader, head, "version 1 of the stream", AT_VERSION);
    }
    if (bounds == NULL) {
        return wrong(reader, head, "a type that is known", AT_TYPE);
    }
    if (bytes_get_u16(head + AT_ZERO) != 0) {
        return wrong(reader, head, "0", AT_ZERO);
    }
    if (len < bounds->least || len > bounds->most) {
        return wrong(reader, head, "a length that the type has", AT_LEN);
    }
    if (bytes_get_u32(head + AT_ZERO_TOO) != 0) {
        return wrong(reader, head, "0", AT_ZERO_TOO);
    }
    return STREAM_FRAME;
}

/* The length of a frame whose head was looked at. */
static size_t
length_of(const uint8_t *head)
{
    return STREAM_HEAD_BYTES + (size_t)bytes_get_u32(head + AT_LEN);
}

/* A frame whose head was looked at, and of which all bytes are there. */
static enum stream_step
give(struct stream_reader *reader, const uint8_t *frame,
    struct stream_frame *out)
{
    uint32_t len = bytes_get_u32(frame + AT_LEN);

    if (sum_of(frame, len, reader->session) != bytes_get_u64(frame + AT_SUM)) {
        return wrong(reader, frame, "the checksum", AT_SUM);
    }
    *out = (struct stream_frame){.type = (enum stream_type)frame[AT_TYPE],
        .term = bytes_get_u64(frame + AT_TERM),
        .body = frame + STREAM_HEAD_BYTES,
        .len = len};
    reader->offset += STREAM_HEAD_BYTES + (uint64_t)len;
    return STREAM_FRAME;
}

/* Keeps bytes until n of the frame are there; true when they are. */
static bool
keep(struct stream_reader *reader, size_t n, const uint8_t **in, size_t *len)
{
    size_t missing = n - reader->n_kept;
    size_t taken = *len < missing ? *len : missing;

    ASSERT(n >= reader->n_kept && n <= STREAM_FRAME_MAX);
    if (taken > 0) {
        memcpy(reader->kept + reader->n_kept, *in, taken);
        reader->n_kept += (uint32_t)taken;
        *in += taken;
        *len -= taken;
    }
    return taken == missing;
}

/* The frame whose beginning is kept, or, where there is none, begins in what is
 * given and is not all there. */
static enum stream_step
read_kept(struct stream_reader *reader, const uint8_t **in, size_t *len,
    struct stream_frame *out)
{
    enum stream_step step;

    if (reader->n_kept < STREAM_HEAD_BYTES) {
        if (!keep(reader, STREAM_HEAD_BYTES, in, len)) {
            return STREAM_MORE;
        }
        step = look(reader, reader->kept);
        if (step != STREAM_FRAME) {
            return step;
        }
    }
    if (!keep(reader, length_of(reader->kept), in, len)) {
        return STREAM_MORE;
    }
    reader->was_given = true;
    return give(reader, reader->kept, out);
}

enum stream_step
stream_read(struct stream_reader *reader, const uint8_t **in, size_t *len,
    struct stream_frame *out)
{
    if (reader->is_wrong) {
        return STREAM_WRONG;
    }
    if (reader->was_given) {
        reader->was_given = false;
        reader->n_kept = 0;
    }
    if (reader->n_kept == 0 && *len >= STREAM_HEAD_BYTES) {
        const uint8_t *frame = *in;
        enum stream_step step = look(reader, frame);

        if (step != STREAM_FRAME) {
            return step;
        }
        if (*len >= length_of(frame)) {
            *in += length_of(frame);
            *len -= length_of(frame);
            return give(reader, frame, out);
        }
    }
    return read_kept(reader, in, len, out);
}
