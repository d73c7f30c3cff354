/* SPDX-License-Identifier: BSD-3-Clause */
/* A stream: OpenSSL between two spans of bytes.
 *
 * OpenSSL reads and writes through a BIO of ours, which takes from the bytes
 * that were put in and appends to the buffer of the call under way. It never
 * waits and never takes less than all, so that a write is always whole. What
 * was put in is used up when OpenSSL wants more: it keeps an unfinished record
 * itself, so the caller keeps nothing. */
#include "net/tls_priv.h"

#include "base/assert.h"
#include "base/err.h"

#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* Bytes of which no plain ones come: messages of the protocol, of which a
     * client may send as many as it likes, 10 us each. A record that is not
     * whole is as much as any client needs. */
    BARREN_BYTES_MAX = 2 * TLS_RECORD_MAX,
    /* a record of one byte has up to 85 */
    BARREN_BYTES_PER_BYTE = 128
};

struct tls_stream {
    SSL *ssl;
    const char *in; /* the peer's bytes that are not used yet */
    size_t in_len;
    struct buf *out; /* of the call under way; NULL between calls */
    const char *why; /* NULL: it has not failed */
    unsigned new_sessions;
    size_t barren; /* bytes put in that no plain ones have come of */
    bool is_dry; /* the last read has left nothing: the next one finds none */
    bool has_shut;
};

static int
take(BIO *bio, char *bytes, int size)
{
    struct tls_stream *stream = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (size <= 0) {
        return 0;
    }
    if (stream->in_len == 0) {
        BIO_set_retry_read(bio);
        return -1;
    }
    size_t n = (size_t)size < stream->in_len ? (size_t)size : stream->in_len;
    memcpy(bytes, stream->in, n);
    stream->in += n;
    stream->in_len -= n;
    return (int)n;
}

static int
give(BIO *bio, const char *bytes, int len)
{
    struct tls_stream *stream = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (len <= 0) {
        return 0;
    }
    ASSERT(stream->out != NULL);
    buf_add(stream->out, bytes, (size_t)len);
    return stream->out->failed ? -1 : len;
}

static long
control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH; /* nothing is held back */
}

static int
create(BIO *bio)
{
    BIO_set_init(bio, 1);
    return 1;
}

BIO_METHOD *
tls__method(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "buffers");
    if (method == NULL) {
        return NULL;
    }
    BIO_meth_set_create(method, create);
    BIO_meth_set_read(method, take);
    BIO_meth_set_write(method, give);
    BIO_meth_set_ctrl(method, control);
    return method;
}

int
tls__new_session(SSL *ssl, SSL_SESSION *session)
{
    struct tls_stream *stream = SSL_get_app_data(ssl);
    (void)session;
    stream->new_sessions++;
    return 0;
}

/* What a socket asks of its clients' certificates. A session is resumed without
 * another look at them, so it is only where the same is asked: each kind of
 * socket has sessions of its own. */
static bool
set_verify(SSL *ssl, enum tls_use use)
{
    unsigned char name[] = "tallyd 0";
    name[sizeof name - 2] = (unsigned char)('0' + use);
    if (use == TLS_USE_ANYONE) {
        SSL_set_verify(ssl, SSL_VERIFY_NONE, NULL);
    } else if (use == TLS_USE_KNOWN) {
        SSL_set_verify(
            ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    }
    return SSL_set_session_id_context(ssl, name, sizeof name - 1) == 1;
}

/* A stream of which is not said yet which end it is. */
static int
make(struct tls *tls, struct tls_stream **out)
{
    struct tls_stream *stream = calloc(1, sizeof *stream);
    *out = NULL;
    if (stream == NULL) {
        return ERR_NO_MEMORY;
    }
    mutex_lock(&tls->lock);
    SSL_CTX *context = tls->context;
    (void)SSL_CTX_up_ref(context); /* it cannot fail for one in use */
    mutex_unlock(&tls->lock);
    stream->ssl = SSL_new(context); /* slow: not under the lock */
    SSL_CTX_free(context);
    BIO *bio = stream->ssl == NULL ? NULL : BIO_new(tls->method);
    if (bio == NULL) {
        ERR_clear_error();
        SSL_free(stream->ssl);
        free(stream);
        return ERR_NO_MEMORY;
    }
    BIO_set_data(bio, stream);
    SSL_set_bio(stream->ssl, bio, bio);
    SSL_set_app_data(stream->ssl, stream);
    *out = stream;
    return 0;
}

int
tls_stream_open(struct tls *tls, enum tls_use use, struct tls_stream **out)
{
    int err = make(tls, out);
    ASSERT(use != TLS_USE_NONE);
    if (err != 0) {
        return err;
    }
    if (!set_verify((*out)->ssl, use)) {
        ERR_clear_error();
        tls_stream_close(out);
        return ERR_NO_MEMORY;
    }
    SSL_set_accept_state((*out)->ssl);
    return 0;
}

int
tls_stream_open_client(struct tls *tls, struct tls_stream **out)
{
    int err = make(tls, out);
    ASSERT(tls->config.ca != NULL); /* else nobody would be known */
    if (err == 0) {
        SSL_set_verify((*out)->ssl, SSL_VERIFY_PEER, NULL);
        SSL_set_connect_state((*out)->ssl);
    }
    return err;
}

void
tls_stream_close(struct tls_stream **stream)
{
    if (*stream == NULL) {
        return;
    }
    SSL_free((*stream)->ssl);
    free(*stream);
    *stream = NULL;
}

void
tls_stream_put(struct tls_stream *stream, const char *bytes, size_t len)
{
    ASSERT(stream->in_len == 0);
    stream->in = bytes;
    stream->in_len = len;
    stream->barren += SSL_is_init_finished(stream->ssl) ? len : 0;
    stream->is_dry = false;
}

/* What a call that returned result has come to, unless it is done. */
static enum tls_step
step_of(struct tls_stream *stream, int result)
{
    switch (SSL_get_error(stream->ssl, result)) {
    case SSL_ERROR_WANT_READ:
        if (stream->in_len == 0) {
            return TLS_STEP_MORE;
        }
        stream->why = "bytes were left over"; /* never known to happen */
        stream->in_len = 0;
        return TLS_STEP_FAILED;
    case SSL_ERROR_ZERO_RETURN:
        return TLS_STEP_ENDED;
    default:
        stream->why = tls__error();
        stream->in_len = 0;
        return TLS_STEP_FAILED;
    }
}

enum tls_step
tls_stream_shake(struct tls_stream *stream, struct buf *out)
{
    if (stream->why != NULL) {
        return TLS_STEP_FAILED;
    }
    stream->out = out;
    ERR_clear_error();
    int result = SSL_do_handshake(stream->ssl);
    enum tls_step step = result == 1 ? TLS_STEP_DONE : step_of(stream, result);
    stream->out = NULL;
    if (step == TLS_STEP_ENDED) { /* before there was anything to end */
        stream->why = "the peer has ended the handshake";
        step = TLS_STEP_FAILED;
    }
    return step;
}

/* Plain bytes have been read, or, with 0, all is used up: whether it is enough
 * for what was put in. */
static bool
bears(struct tls_stream *stream, size_t len)
{
    bool is_paid = stream->barren / BARREN_BYTES_PER_BYTE < len;
    stream->barren =
        is_paid ? 0 : stream->barren - len * BARREN_BYTES_PER_BYTE;
    return stream->barren <= BARREN_BYTES_MAX;
}

enum tls_step
tls_stream_read(struct tls_stream *stream, char *plain, size_t size,
    size_t *len, struct buf *out)
{
    *len = 0;
    if (stream->why != NULL) {
        return TLS_STEP_FAILED;
    }
    if (stream->is_dry) {
        return TLS_STEP_MORE; /* a look would ask for a buffer in vain */
    }
    stream->out = out;
    ERR_clear_error();
    int result = SSL_read_ex(stream->ssl, plain, size, len);
    enum tls_step step = result == 1 ? TLS_STEP_DONE : step_of(stream, result);
    stream->is_dry = step == TLS_STEP_DONE && stream->in_len == 0 &&
        SSL_has_pending(stream->ssl) == 0;
    if (!bears(stream, *len) && step == TLS_STEP_MORE) {
        stream->why = "too much that is no plain byte";
        step = TLS_STEP_FAILED;
    }
    stream->out = NULL;
    return step;
}

bool
tls_stream_write(
    struct tls_stream *stream, const char *plain, size_t len, struct buf *out)
{
    size_t written = 0;
    if (stream->why != NULL || stream->has_shut) {
        return false;
    }
    stream->out = out;
    ERR_clear_error();
    int result = SSL_write_ex(stream->ssl, plain, len, &written);
    if (result != 1) {
        (void)step_of(stream, result);
        stream->why = "cannot write";
    }
    stream->out = NULL;
    return result == 1 && written == len;
}

void
tls_stream_shut(struct tls_stream *stream, struct buf *out)
{
    if (stream->why != NULL || stream->has_shut ||
        !SSL_is_init_finished(stream->ssl)) {
        return;
    }
    stream->has_shut = true;
    stream->out = out;
    (void)SSL_shutdown(stream->ssl); /* does not wait for the peer's */
    ERR_clear_error();
    stream->out = NULL;
}

unsigned
tls_stream__new_sessions(const struct tls_stream *stream)
{
    return stream->new_sessions;
}

const char *
tls_stream_why(const struct tls_stream *stream)
{
    return stream->why == NULL ? "it has not failed" : stream->why;
}
