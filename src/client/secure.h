/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLIENT_SECURE_H
#define CLIENT_SECURE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* TLS of a program that connects, by OpenSSL, over a socket that never blocks.
 * The server must have a certificate of somebody who is trusted, for the name
 * that it was asked by: there is no way around that. A build without OpenSSL
 * has the same functions; there secure_begin fails. One thread. */

/* Id, option, argument, explanation: as in the tables of command lines. */
#define SECURE_ROWS(X)                                                        \
    X(tls, "tls", "",                                                         \
        "TLS; each of the next four says so, too. The server's certificate "  \
        "is verified")                                                        \
    X(tls_ca, "tls-ca", "FILE",                                               \
        "who signs it, PEM; default: whom the system trusts")                 \
    X(tls_name, "tls-name", "NAME",                                           \
        "the name, or IP address, that it is to be for; default: HOST")       \
    X(tls_cert, "tls-cert", "FILE",                                           \
        "a certificate to show to the server, and those above it, PEM")       \
    X(tls_key, "tls-key", "FILE",                                             \
        "its private key, PEM; default: it is in that file, too")

enum { SECURE_WHY_MAX = 200, SECURE_NAME_MAX = 255 };

struct secure {
    bool is_wanted;
    const char *ca, *name, *cert, *key; /* of argv; NULL: not given */
    void *context;                      /* OpenSSL's; NULL: not begun */
    void *method;
};

/* Takes the value of an option of SECURE_ROWS, by its name. NULL, or what is
 * wrong with the value, to be read behind the name; static storage. */
const char *secure_take(
    struct secure *secure, const char *option, const char *value);

/* Reads the files, where TLS is wanted. False with why. In any case secure_fini
 * is due, when no stream is left. */
bool secure_begin(struct secure *secure, char why[SECURE_WHY_MAX + 1]);
void secure_fini(struct secure *secure);

struct secure_stream;

/* Opens a stream over a connected socket, which stays the caller's, to a server
 * that host names. NULL: memory is out, or host cannot be the name in a
 * certificate. */
struct secure_stream *secure_open(
    const struct secure *secure, const char *host, int fd);

/* Frees *stream and nulls it; the other end is told where that is possible at
 * once. NULL is fine. */
void secure_close(struct secure_stream **stream);

enum secure_step {
    SECURE_DONE,
    SECURE_READS,  /* goes on once the socket has bytes, */
    SECURE_WRITES, /* or takes some */
    SECURE_FAILED  /* secure_why */
};

/* Goes on with the handshake, which is due before bytes are sent and read. */
enum secure_step secure_shake(struct secure_stream *stream);

/* As send and recv of a socket that never blocks: errno is EAGAIN, or EPROTO
 * where secure_why says more. What a call could not send is to be the next
 * thing sent, from the same place. */
ssize_t secure_send(
    struct secure_stream *stream, const char *text, size_t len);
ssize_t secure_recv(struct secure_stream *stream, char *room, size_t len);

/* Why it has failed; static storage or the stream's, never NULL. */
const char *secure_why(const struct secure_stream *stream);

#endif
