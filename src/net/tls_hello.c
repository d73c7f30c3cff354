/* SPDX-License-Identifier: BSD-3-Clause */
/* The first bytes of a TLS connection: a record's head (type, version of two
 * bytes, length of two), then the head of a handshake message (type, length of
 * three). A client that cuts its first record before these nine bytes is not
 * known to exist, and is refused. Who speaks no TLS is known by the first. */
#include "net/tls.h"

enum { RECORD_HANDSHAKE = 22, MESSAGE_CLIENT_HELLO = 1, MESSAGE_HEAD = 4 };

bool
tls__may_be_hello(const char *head, size_t len)
{
    const unsigned char *byte = (const unsigned char *)head;
    if ((len > 0 && byte[0] != RECORD_HANDSHAKE) ||
        (len > 1 && byte[1] != 3)) {
        return false; /* plain bytes, or an alert */
    }
    if (len < TLS_HELLO_HEAD) {
        return true;
    }
    unsigned record_len = (unsigned)byte[3] << 8 | byte[4];
    unsigned message_len =
        (unsigned)byte[6] << 16 | (unsigned)byte[7] << 8 | byte[8];
    return record_len >= MESSAGE_HEAD && byte[5] == MESSAGE_CLIENT_HELLO &&
        message_len <= TLS_HELLO_BYTES_MAX;
}
