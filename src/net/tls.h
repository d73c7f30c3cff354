/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NET_TLS_H
#define NET_TLS_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* TLS, by OpenSSL: the server's certificates, and streams over them. A stream
 * knows no socket: what the peer has sent is put in, what the peer is to get
 * comes out as bytes (net/conn_tls.c has the socket). A build without OpenSSL
 * has the same functions; there tls_create fails. */

/* What a listening socket wants of its connections. */
enum tls_use {
    TLS_USE_NONE,    /* plain bytes */
    TLS_USE_DEFAULT, /* TLS; certificates of clients as configured */
    TLS_USE_ANYONE,  /* TLS; no certificate is asked for */
    TLS_USE_KNOWN    /* TLS; a client needs a certificate */
};

/* Certificates of clients: memcached's ssl_verify_mode. */
enum tls_verify {
    TLS_VERIFY_NONE,    /* not asked for */
    TLS_VERIFY_REQUEST, /* asked for; one that is there must be good */
    TLS_VERIFY_REQUIRE, /* asked for, and needed */
    TLS_VERIFY_ONCE     /* the same: there is no second handshake */
};

enum tls_version { TLS_VERSION_1_2 = 2, TLS_VERSION_1_3 = 3 };

enum {
    TLS_SESSIONS_MAX = 20480 /* kept to be resumed, with caches_sessions */
};

struct tls_config {
    const char *chain; /* file: the certificate and those above it, PEM */
    const char *key;   /* file: its private key, without a password */
    const char *ca;    /* file: who signs certificates of others; NULL: none */
    const char *ciphers; /* OpenSSL's list, for TLS 1.2; NULL: its default */
    bool key_is_der;     /* else it is PEM */
    enum tls_verify verify;
    enum tls_version min_version;
    bool caches_sessions; /* in the server; tickets are given out anyway */
};

struct tls;

/* Reads the files that config names; it is copied, its texts stay the
 * caller's and must outlive *out. 0, ERR_BAD_OPTION where something is wrong
 * with them, or ERR_NO_MEMORY; *why says what, in one line. */
int tls_create(
    const struct tls_config *config, struct tls **out, struct buf *why);

/* Frees *tls and nulls it; no stream may be left. */
void tls_destroy(struct tls **tls);

/* Reads the files anew, for the streams opened from then on; those that there
 * are keep what they have. Where it fails nothing has changed. Results as of
 * tls_create. Any thread; it reads files. */
int tls_reload(struct tls *tls, struct buf *why);

/* When the files were last read with success: of clock_monotonic_s. Any
 * thread. */
uint64_t tls_loaded_s(const struct tls *tls);

/* One peer's stream. One thread at a time. */
struct tls_stream;

/* What a step of a stream has come to. */
enum tls_step {
    TLS_STEP_MORE,  /* all bytes put in are used up: put more in */
    TLS_STEP_DONE,  /* the handshake is over; or: plain bytes have been read */
    TLS_STEP_ENDED, /* the peer has said that it sends no more */
    TLS_STEP_FAILED /* nothing more will come; out may have an alert */
};

enum {
    TLS_HELLO_HEAD = 9,         /* bytes by which tls__may_be_hello tells */
    TLS_HELLO_BYTES_MAX = 16384 /* of a client's first message */
};

/* True where the first bytes of a connection may begin a handshake, and
 * TLS_HELLO_HEAD of them do, of a size that one has. OpenSSL makes room for the
 * announced size before the bytes are there, so nothing else is shown to it. */
bool tls__may_be_hello(const char *head, size_t len);

/* Opens a stream. use is not TLS_USE_NONE. 0 or ERR_NO_MEMORY. Any thread. */
int tls_stream_open(
    struct tls *tls, enum tls_use use, struct tls_stream **out);

/* The same for the end that connects: to a server of which only is asked that
 * it has a certificate by config.ca, which is there. Its own one goes to the
 * other end where that asks for it, and may be refused there after the
 * handshake: then the first step behind it fails. Names are not compared. */
int tls_stream_open_client(struct tls *tls, struct tls_stream **out);

/* Frees *stream and nulls it; NULL is fine. */
void tls_stream_close(struct tls_stream **stream);

/* Hands bytes of the peer to the next steps; they must stay there until a step
 * says TLS_STEP_MORE, or the stream is closed. Those before must be used
 * up. */
void tls_stream_put(struct tls_stream *stream, const char *bytes, size_t len);

/* Goes on with the handshake: MORE, DONE or FAILED. What is to be sent is
 * appended to *out, also when it has failed. May compute for milliseconds. */
enum tls_step tls_stream_shake(struct tls_stream *stream, struct buf *out);

/* Reads up to size plain bytes to plain, after the handshake; *len is what
 * came. DONE: there may be more. As many plain bytes as were put in are the
 * most that come of them, and of a record that was there in part. Answers to
 * messages of the protocol are appended to *out. */
enum tls_step tls_stream_read(struct tls_stream *stream, char *plain,
    size_t size, size_t *len, struct buf *out);

enum { TLS_RECORD_MAX = 16384 + 256 + 5 /* of one record, in bytes */ };

/* Appends len plain bytes to *out as records. len is above 0. False where
 * memory is out: the stream is of no use then. */
bool tls_stream_write(
    struct tls_stream *stream, const char *plain, size_t len, struct buf *out);

/* Tells the peer that nothing more comes: appended to *out, once, and not
 * before the end of the handshake nor after a failure. */
void tls_stream_shut(struct tls_stream *stream, struct buf *out);

/* Sessions that the stream has put in the server's cache. */
unsigned tls_stream__new_sessions(const struct tls_stream *stream);

/* Why it has failed; static storage, never NULL. */
const char *tls_stream_why(const struct tls_stream *stream);

#endif
