/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_STREAM_H
#define REPL_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Frames of the replication stream (doc/format-stream.md). Pure; a reader is
 * used by one thread at a time.
 *
 *   OFFSET SIZE
 *        0    4 "TLYR"
 *        4    1 version, 1
 *        5    1 type
 *        6    2 0
 *        8    4 bytes of the body
 *       12    4 0
 *       16    8 term that the sender has promised
 *       24    8 checksum of bytes 0..23, then of the body
 *       32      body
 */

enum {
    STREAM_VERSION = 1,
    STREAM_HEAD_BYTES = 32,
    STREAM_BODY_MAX = (1 << 20) + (64 << 10),
    STREAM_FRAME_MAX = STREAM_HEAD_BYTES + STREAM_BODY_MAX,
    STREAM_BATCHES_BYTES = 256
        << 10, /* as much goes into one frame of batches;
                                       * a single batch may be longer */
    STREAM_DATA_MAX = 256 << 10,
    STREAM_REQUEST_MAX = 64 << 10, /* bytes of commands in a REQUEST */
    STREAM_REPLY_MAX = 256 << 10   /* bytes of replies in a REPLY */
};

/* Type, name, least and most bytes of the body. */
#define STREAM_TYPES(X)                                                       \
    X(1, CHALLENGE, 16, 16)                                                   \
    X(2, HELLO, 111, 2200)                                                    \
    X(3, WELCOME, 68, 1900)                                                   \
    X(4, BATCHES, 32 + 12 + 1, STREAM_BODY_MAX)                               \
    X(5, HEARTBEAT, 32, 32)                                                   \
    X(6, ACK, 36, 36)                                                         \
    X(7, PROMISE, 22, 128)                                                    \
    X(8, PROMISED, 13, 1600)                                                  \
    X(9, REFUSED, 10, 400)                                                    \
    X(10, FETCH, 9, 1600)                                                     \
    X(11, SNAPSHOT, 26, 89)                                                   \
    X(12, HAVE, 4, STREAM_BODY_MAX)                                           \
    X(13, FILE, 20, 20)                                                       \
    X(14, DATA, 8 + 1, 8 + STREAM_DATA_MAX)                                   \
    X(15, END, 12, 12)                                                        \
    X(16, SWITCH, 8, 8)                                                       \
    X(17, WANT, 2, 65)                                                        \
    X(18, ERROR, 5, 300)                                                      \
    X(19, SOURCE, 20, 20)                                                     \
    X(20, REQUEST, 9 + 1, 9 + STREAM_REQUEST_MAX)                             \
    X(21, REPLY, 17, 17 + STREAM_REPLY_MAX)

enum stream_type {
#define X(number, name, least, most) STREAM_##name = (number),
    STREAM_TYPES(X)
#undef X
};

/* "HEARTBEAT"; "unknown" for a type that there is not. Static storage. */
const char *stream_type_name(unsigned type);

/* Where something is wrong: what should be there, and its place. */
struct stream_fault {
    const char *what;  /* of the field; static storage */
    uint32_t offset;   /* from the beginning of the frame */
    uint8_t type;      /* of the frame, as it says; 0: not known yet */
    uint64_t frame_at; /* where the frame begins, from the first byte of the
                        * stream; 0 where only a body was looked at */
};

/* A frame that was read. */
struct stream_frame {
    enum stream_type type;
    uint64_t term;
    const uint8_t *body; /* somebody else's, see stream_read */
    uint32_t len;
};

/* The number that checksums of a connection are seeded with: 0 until both
 * nonces are known, i.e. of CHALLENGE, of HELLO and of an ERROR before these;
 * then that of the nonces: first of who accepted the connection. */
enum { STREAM_NONCE_BYTES = 16 };
uint64_t stream_session(const uint8_t accepting[STREAM_NONCE_BYTES],
    const uint8_t connecting[STREAM_NONCE_BYTES]);

/* Writes the head of a frame to frame, behind which len bytes of body stand
 * (as many as the type may have). Returns the length of all. */
size_t stream_seal(uint8_t *frame, enum stream_type type, uint32_t len,
    uint64_t term, uint64_t session);

/* Bytes in any pieces to frames. */
struct stream_reader {
    uint64_t session; /* set it when it changes, between two frames */
    uint8_t *kept;    /* owned, STREAM_FRAME_MAX: the beginning of a frame */
    uint32_t n_kept;
    bool was_given;  /* the kept frame was given out: it is gone next */
    uint64_t offset; /* of the next frame's first byte in the stream */
    bool is_wrong;   /* for good */
    struct stream_fault fault; /* if so */
};

/* 0 or ERR_NO_MEMORY. It has a buffer for the longest frame, of which only
 * frames that come in pieces touch as much as they need; no other memory is
 * asked for. */
int stream_reader_init(struct stream_reader *reader);
void stream_reader_fini(struct stream_reader *reader);

enum stream_step {
    STREAM_FRAME, /* *out is the next frame */
    STREAM_MORE,  /* all bytes are taken; none of them makes up a frame */
    STREAM_WRONG  /* reader->fault says what; nothing is read any more */
};

/* Takes bytes from *in, *len of them; both move on. The body of a frame is in
 * the given bytes where all of it is there, else in the reader: until the next
 * call, and as long as the given bytes are. So call again until STREAM_MORE. */
enum stream_step stream_read(struct stream_reader *reader, const uint8_t **in,
    size_t *len, struct stream_frame *out);

#endif
