/* SPDX-License-Identifier: BSD-3-Clause */
/* OpenSSL reads and writes through a BIO of ours: that of OpenSSL for sockets
 * has no MSG_NOSIGNAL. It reads a record at a time and nothing ahead, so while
 * the socket has nothing to read there is nothing left in the stream either. */
#include "client/secure.h"

#include "base/assert.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct secure_stream {
    SSL *ssl;
    int fd;
    int err; /* of the socket; 0: none */
    bool is_shaken;
    bool has_ended; /* the other end has, without a word of TLS */
    char why[SECURE_WHY_MAX + 1]; /* "": it has not failed */
};

const char *
secure_take(struct secure *secure, const char *option, const char *value)
{
    const struct {
        const char *name, **to;
    } all[] = {{"tls-ca", &secure->ca}, {"tls-name", &secure->name},
        {"tls-cert", &secure->cert}, {"tls-key", &secure->key}};
    secure->is_wanted = true;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (strcmp(option, all[i].name) == 0) {
            *all[i].to = value;
        }
    }
    return secure->name == NULL ||
            (secure->name[0] != '\0' &&
                strlen(secure->name) <= SECURE_NAME_MAX)
        ? NULL
        : "has 1 to 255 bytes";
}

/* The newest error of this thread's queue, which is emptied. */
static const char *
newest_error(void)
{
    unsigned long error = ERR_peek_last_error();
    const char *text = error == 0 || ERR_SYSTEM_ERROR(error)
        ? NULL
        : ERR_reason_error_string(error);
    ERR_clear_error();
    return text == NULL ? "no reason given" : text;
}

/* ---- the socket, as OpenSSL sees it ---- */

static int
result(BIO *bio, struct secure_stream *stream, ssize_t n, int flag)
{
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        BIO_set_flags(bio, flag | BIO_FLAGS_SHOULD_RETRY);
    } else if (n < 0) {
        stream->err = errno;
    }
    stream->has_ended |= n == 0;
    return (int)n;
}

static int
bio_read(BIO *bio, char *room, int len)
{
    struct secure_stream *stream = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (len <= 0) {
        return 0;
    }
    ssize_t n = recv(stream->fd, room, (size_t)len, 0);
    return result(bio, stream, n, BIO_FLAGS_READ);
}

static int
bio_write(BIO *bio, const char *bytes, int len)
{
    struct secure_stream *stream = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (len <= 0) {
        return 0;
    }
    ssize_t n = send(stream->fd, bytes, (size_t)len, MSG_NOSIGNAL);
    return result(bio, stream, n, BIO_FLAGS_WRITE);
}

static long
bio_control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH; /* nothing is held back */
}

static int
bio_create(BIO *bio)
{
    BIO_set_init(bio, 1);
    return 1;
}

static BIO_METHOD *
make_method(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "socket");
    if (method != NULL) {
        BIO_meth_set_create(method, bio_create);
        BIO_meth_set_read(method, bio_read);
        BIO_meth_set_write(method, bio_write);
        BIO_meth_set_ctrl(method, bio_control);
    }
    return method;
}

/* ---- the files ---- */

/* A key with a password is refused: a program in cron has nobody to ask. */
static int
no_password(char *password, int size, int writes, void *context)
{
    (void)password;
    (void)size;
    (void)writes;
    (void)context;
    return -1;
}

static bool
fail(char why[SECURE_WHY_MAX + 1], const char *what, const char *name)
{
    (void)snprintf(
        why, SECURE_WHY_MAX + 1, "%s %.100s: %s", what, name, newest_error());
    return false;
}

static bool
can_read(const char *option, const char *path, char why[SECURE_WHY_MAX + 1])
{
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        (void)snprintf(why, SECURE_WHY_MAX + 1, "%s: cannot read %.100s: %s",
            option, path, strerror(errno));
        return false;
    }
    (void)fclose(file);
    return true;
}

static bool
load_own(SSL_CTX *context, const struct secure *secure,
    char why[SECURE_WHY_MAX + 1])
{
    const char *key = secure->key == NULL ? secure->cert : secure->key;
    if (secure->cert == NULL) {
        if (secure->key != NULL) {
            (void)snprintf(
                why, SECURE_WHY_MAX + 1, "--tls-key wants --tls-cert");
        }
        return secure->key == NULL;
    }
    if (!can_read("--tls-cert", secure->cert, why) ||
        !can_read("--tls-key", key, why)) {
        return false;
    }
    if (SSL_CTX_use_certificate_chain_file(context, secure->cert) != 1) {
        return fail(why, "--tls-cert", secure->cert);
    }
    return SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) == 1 ||
        fail(why, "--tls-key: bad, or not that of the certificate:", key);
}

static bool
load(SSL_CTX *context, const struct secure *secure,
    char why[SECURE_WHY_MAX + 1])
{
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_default_passwd_cb(context, no_password);
    /* what was not taken is sent again from the same place in a text that may
     * have moved */
    SSL_CTX_set_mode(context,
        SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    if (SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1) {
        return fail(why, "TLS", "1.2");
    }
    if (secure->ca != NULL) {
        return can_read("--tls-ca", secure->ca, why) &&
            (SSL_CTX_load_verify_locations(context, secure->ca, NULL) == 1 ||
                fail(why, "--tls-ca", secure->ca)) &&
            load_own(context, secure, why);
    }
    return (SSL_CTX_set_default_verify_paths(context) == 1 ||
               fail(why, "whom the system trusts", "is not known")) &&
        load_own(context, secure, why);
}

bool
secure_begin(struct secure *secure, char why[SECURE_WHY_MAX + 1])
{
    if (!secure->is_wanted) {
        return true;
    }
    ASSERT(secure->context == NULL && secure->method == NULL);
    ERR_clear_error();
    secure->method = make_method();
    secure->context = SSL_CTX_new(TLS_client_method());
    if (secure->method == NULL || secure->context == NULL) {
        return fail(why, "TLS", "cannot be begun");
    }
    return load(secure->context, secure, why);
}

void
secure_fini(struct secure *secure)
{
    SSL_CTX_free(secure->context);
    BIO_meth_free(secure->method);
    secure->context = NULL;
    secure->method = NULL;
}

/* ---- streams ---- */

static bool
is_ip_address(const char *name)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, name, bytes) == 1 ||
        inet_pton(AF_INET6, name, bytes) == 1;
}

/* Whose certificate it must be, and by which name the server is asked for it:
 * an address is none. */
static bool
set_name(SSL *ssl, const char *name)
{
    if (is_ip_address(name)) {
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1;
    }
    return SSL_set1_host(ssl, name) == 1 &&
        SSL_set_tlsext_host_name(ssl, name) == 1;
}

struct secure_stream *
secure_open(const struct secure *secure, const char *host, int fd)
{
    struct secure_stream *stream = calloc(1, sizeof *stream);
    ASSERT(secure->context != NULL && fd >= 0);
    if (stream == NULL) {
        return NULL;
    }
    stream->fd = fd;
    stream->ssl = SSL_new(secure->context);
    BIO *bio = BIO_new(secure->method);
    if (stream->ssl == NULL || bio == NULL) {
        BIO_free(bio);
        secure_close(&stream);
        return NULL;
    }
    BIO_set_data(bio, stream);
    SSL_set_bio(stream->ssl, bio, bio);
    SSL_set_connect_state(stream->ssl);
    if (!set_name(stream->ssl, secure->name == NULL ? host : secure->name)) {
        secure_close(&stream);
    }
    return stream;
}

void
secure_close(struct secure_stream **stream)
{
    if (*stream == NULL) {
        return;
    }
    if ((*stream)->is_shaken && (*stream)->why[0] == '\0') {
        (void)SSL_shutdown((*stream)->ssl);
    }
    SSL_free((*stream)->ssl);
    ERR_clear_error();
    free(*stream);
    *stream = NULL;
}

/* Why a certificate is refused says more than that it is. */
static void
keep_why(struct secure_stream *stream)
{
    long verified = SSL_get_verify_result(stream->ssl);
    const char *text = newest_error();
    if (stream->err != 0) {
        text = strerror(stream->err);
    } else if (stream->has_ended) {
        text = "the server ended the connection";
    } else if (!stream->is_shaken && verified != X509_V_OK) {
        (void)snprintf(stream->why, sizeof stream->why,
            "the server's certificate is refused: %s",
            X509_verify_cert_error_string(verified));
        return;
    }
    (void)snprintf(stream->why, sizeof stream->why, "TLS: %s", text);
}

enum secure_step
secure_shake(struct secure_stream *stream)
{
    ERR_clear_error();
    int n = SSL_do_handshake(stream->ssl);
    if (n == 1) {
        stream->is_shaken = true;
        return SECURE_DONE;
    }
    switch (SSL_get_error(stream->ssl, n)) {
    case SSL_ERROR_WANT_READ:
        return SECURE_READS;
    case SSL_ERROR_WANT_WRITE:
        return SECURE_WRITES;
    default:
        keep_why(stream);
        return SECURE_FAILED;
    }
}

/* What send or recv would have come to. */
static ssize_t
outcome(struct secure_stream *stream, int done, size_t n)
{
    if (done == 1) {
        return (ssize_t)n;
    }
    switch (SSL_get_error(stream->ssl, done)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        errno = EAGAIN;
        return -1;
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    default:
        keep_why(stream);
        errno = EPROTO;
        return -1;
    }
}

ssize_t
secure_send(struct secure_stream *stream, const char *text, size_t len)
{
    size_t n = 0;
    ERR_clear_error();
    int done = SSL_write_ex(stream->ssl, text, len, &n);
    return outcome(stream, done, n);
}

ssize_t
secure_recv(struct secure_stream *stream, char *room, size_t len)
{
    size_t n = 0;
    ERR_clear_error();
    int done = SSL_read_ex(stream->ssl, room, len, &n);
    return outcome(stream, done, n);
}

const char *
secure_why(const struct secure_stream *stream)
{
    return stream->why[0] == '\0' ? "TLS has not failed" : stream->why;
}
