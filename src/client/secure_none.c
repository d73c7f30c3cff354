/* SPDX-License-Identifier: BSD-3-Clause */
/* A build without OpenSSL has no TLS: secure_begin says so where it is wanted,
 * and nothing else is ever called. */
#include "client/secure.h"

#include "base/assert.h"

#include <errno.h>
#include <stdio.h>

const char *
secure_take(struct secure *secure, const char *option, const char *value)
{
    (void)option;
    (void)value;
    secure->is_wanted = true;
    return NULL;
}

bool
secure_begin(struct secure *secure, char why[SECURE_WHY_MAX + 1])
{
    if (secure->is_wanted) {
        (void)snprintf(why, SECURE_WHY_MAX + 1,
            "--tls: this program was built without TLS");
    }
    return !secure->is_wanted;
}

void
secure_fini(struct secure *secure)
{
    ASSERT(secure->context == NULL);
}

struct secure_stream *
secure_open(const struct secure *secure, const char *host, int fd)
{
    (void)secure;
    (void)host;
    (void)fd;
    return NULL;
}

void
secure_close(struct secure_stream **stream)
{
    ASSERT(*stream == NULL);
}

enum secure_step
secure_shake(struct secure_stream *stream)
{
    (void)stream;
    return SECURE_FAILED;
}

ssize_t
secure_send(struct secure_stream *stream, const char *text, size_t len)
{
    (void)stream;
    (void)text;
    (void)len;
    errno = EPROTO;
    return -1;
}

ssize_t
secure_recv(struct secure_stream *stream, char *room, size_t len)
{
    (void)stream;
    (void)room;
    (void)len;
    errno = EPROTO;
    return -1;
}

const char *
secure_why(const struct secure_stream *stream)
{
    (void)stream;
    return "there is no TLS";
}
