/* SPDX-License-Identifier: BSD-3-Clause */
/* A build without TLS. Nothing opens a stream, so nothing asks one. */
#include "net/tls.h"

#include "base/assert.h"
#include "base/err.h"

int
tls_create(const struct tls_config *config, struct tls **out, struct buf *why)
{
    (void)config;
    *out = NULL;
    buf_add_text(why, "this build has no TLS");
    return ERR_BAD_OPTION;
}

void
tls_destroy(struct tls **tls)
{
    ASSERT(*tls == NULL);
}

int
tls_reload(struct tls *tls, struct buf *why)
{
    (void)tls;
    (void)why;
    return ERR_BAD_OPTION;
}

uint64_t
tls_loaded_s(const struct tls *tls)
{
    (void)tls;
    return 0;
}

int
tls_stream_open(struct tls *tls, enum tls_use use, struct tls_stream **out)
{
    (void)tls;
    (void)use;
    *out = NULL;
    return ERR_NO_MEMORY;
}

int
tls_stream_open_client(struct tls *tls, struct tls_stream **out)
{
    (void)tls;
    *out = NULL;
    return ERR_NO_MEMORY;
}

void
tls_stream_close(struct tls_stream **stream)
{
    ASSERT(*stream == NULL);
}

void
tls_stream_put(struct tls_stream *stream, const char *bytes, size_t len)
{
    (void)stream;
    (void)bytes;
    (void)len;
}

enum tls_step
tls_stream_shake(struct tls_stream *stream, struct buf *out)
{
    (void)stream;
    (void)out;
    return TLS_STEP_FAILED;
}

enum tls_step
tls_stream_read(struct tls_stream *stream, char *plain, size_t size,
    size_t *len, struct buf *out)
{
    (void)stream;
    (void)plain;
    (void)size;
    (void)out;
    *len = 0;
    return TLS_STEP_FAILED;
}

bool
tls_stream_write(
    struct tls_stream *stream, const char *plain, size_t len, struct buf *out)
{
    (void)stream;
    (void)plain;
    (void)len;
    (void)out;
    return false;
}

void
tls_stream_shut(struct tls_stream *stream, struct buf *out)
{
    (void)stream;
    (void)out;
}

unsigned
tls_stream__new_sessions(const struct tls_stream *stream)
{
    (void)stream;
    return 0;
}

const char *
tls_stream_why(const struct tls_stream *stream)
{
    (void)stream;
    return "no TLS";
}
