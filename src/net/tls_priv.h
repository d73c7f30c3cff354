/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NET_TLS_PRIV_H
#define NET_TLS_PRIV_H

#include "base/mutex.h"
#include "net/tls.h"

#include <openssl/ssl.h>
#include <stdatomic.h>

/* For tls.c and tls_stream.c. */

struct tls {
    struct tls_config config; /* read-only */
    BIO_METHOD *method;       /* read-only: how OpenSSL gets at a stream */
    _Atomic uint64_t loaded_s;
    struct mutex lock;
    SSL_CTX *context; /* under lock; who has taken a reference goes on */
};

/* The method of the streams' BIO; NULL: memory is out. BIO_meth_free. */
BIO_METHOD *tls__method(void);

/* For SSL_CTX_sess_set_new_cb: counts, and leaves the session to OpenSSL. */
int tls__new_session(SSL *ssl, SSL_SESSION *session);

/* The newest error of this thread's queue, which is emptied. Static storage,
 * never NULL. */
const char *tls__error(void);

#endif
