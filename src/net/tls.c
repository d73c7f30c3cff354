/* SPDX-License-Identifier: BSD-3-Clause */
/* The server's certificates. A context of OpenSSL has them; reading them anew
 * makes another one, whole, and exchanges it under a lock, so that a file that
 * is wrong changes nothing. Each stream holds a reference to the context it
 * began with, and the old one goes with the last of these.
 *
 * Fixed for all contexts: TLS 1.2 at least, no compression, no second
 * handshake, no data before the end of the first, the server's order of
 * ciphers, and buffers that are given back when they are empty. */
#include "net/tls_priv.h"

#include "base/clock.h"
#include "base/err.h"

#include <errno.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names the server to clients that resume a session; any constant does. */
static const unsigned char session_context[] = "tallyd";

const char *
tls__error(void)
{
    unsigned long error = ERR_peek_last_error();
    const char *text = NULL;
    if (ERR_SYSTEM_ERROR(error)) {
        text = "a system call failed";
    } else if (error != 0) {
        text = ERR_reason_error_string(error);
    }
    ERR_clear_error();
    return text == NULL ? "no reason given" : text;
}

/* A key with a password is refused: nobody is there to type it. */
static int
no_password(char *password, int size, int writes, void *context)
{
    (void)password;
    (void)size;
    (void)writes;
    (void)context;
    return -1;
}

static int
fail(struct buf *why, const char *what, const char *name)
{
    const char *reason = tls__error();
    buf_addf(why, "%s %s: %s", what, name, reason);
    return ERR_BAD_OPTION;
}

/* OpenSSL's words for a file that cannot be opened are less clear. */
static int
look(const char *path, const char *what, struct buf *why)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        buf_addf(
            why, "cannot read the %s %s: %s", what, path, strerror(errno));
        return ERR_BAD_OPTION;
    }
    fclose(file);
    return 0;
}

static int
load_own(SSL_CTX *context, const struct tls_config *config, struct buf *why)
{
    int type = config->key_is_der ? SSL_FILETYPE_ASN1 : SSL_FILETYPE_PEM;
    int err = look(config->chain, "certificate chain", why);
    if (err == 0) {
        err = look(config->key, "private key", why);
    }
    if (err != 0) {
        return err;
    }
    if (SSL_CTX_use_certificate_chain_file(context, config->chain) != 1) {
        return fail(why, "bad certificate chain", config->chain);
    }
    if (SSL_CTX_use_PrivateKey_file(context, config->key, type) != 1) {
        return fail(why,
            "bad private key, or not that of the certificate:", config->key);
    }
    if (SSL_CTX_check_private_key(context) != 1) {
        return fail(
            why, "the private key is not the certificate's:", config->key);
    }
    return 0;
}

static int
load_clients(
    SSL_CTX *context, const struct tls_config *config, struct buf *why)
{
    if (config->ca == NULL) {
        return 0;
    }
    int err = look(config->ca, "file of client CAs", why);
    if (err != 0) {
        return err;
    }
    STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(config->ca);
    if (names == NULL) {
        return fail(
            why, "no certificate in the file of client CAs", config->ca);
    }
    SSL_CTX_set_client_CA_list(context, names); /* takes them over */
    if (SSL_CTX_load_verify_locations(context, config->ca, NULL) != 1) {
        return fail(why, "bad file of client CAs", config->ca);
    }
    return 0;
}

static int
verify_flags(enum tls_verify verify)
{
    switch (verify) {
    case TLS_VERIFY_NONE:
        break;
    case TLS_VERIFY_REQUEST:
        return SSL_VERIFY_PEER;
    case TLS_VERIFY_REQUIRE:
        return SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
    case TLS_VERIFY_ONCE:
        return SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT |
            SSL_VERIFY_CLIENT_ONCE;
    }
    return SSL_VERIFY_NONE;
}

static void
set_sessions(SSL_CTX *context, bool are_cached)
{
    SSL_CTX_set_session_id_context(
        context, session_context, sizeof session_context - 1);
    SSL_CTX_set_num_tickets(context, 1);
    SSL_CTX_set_session_cache_mode(
        context, are_cached ? SSL_SESS_CACHE_SERVER : SSL_SESS_CACHE_OFF);
    if (are_cached) {
        SSL_CTX_sess_set_cache_size(context, TLS_SESSIONS_MAX);
        SSL_CTX_sess_set_new_cb(context, tls__new_session);
    }
}

/* A context with all that config says. */
static int
make_context(const struct tls_config *config, SSL_CTX **out, struct buf *why)
{
    ERR_clear_error();
    SSL_CTX *context = SSL_CTX_new(TLS_method());
    if (context == NULL) {
        buf_addf(why, "cannot begin TLS: %s", tls__error());
        return ERR_NO_MEMORY;
    }
    SSL_CTX_set_min_proto_version(context,
        config->min_version == TLS_VERSION_1_3 ? TLS1_3_VERSION
                                               : TLS1_2_VERSION);
    SSL_CTX_set_options(context,
        SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
            SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_default_passwd_cb(context, no_password);
    SSL_CTX_set_verify(context, verify_flags(config->verify), NULL);
    set_sessions(context, config->caches_sessions);
    int err = load_own(context, config, why);
    if (err == 0) {
        err = load_clients(context, config, why);
    }
    if (err == 0 && config->ciphers != NULL &&
        SSL_CTX_set_cipher_list(context, config->ciphers) != 1) {
        err = fail(why, "no such ciphers:", config->ciphers);
    }
    if (err != 0) {
        SSL_CTX_free(context);
        return err;
    }
    *out = context;
    return 0;
}

int
tls_create(const struct tls_config *config, struct tls **out, struct buf *why)
{
    struct tls *tls = calloc(1, sizeof *tls);
    *out = NULL;
    if (tls == NULL) {
        return ERR_NO_MEMORY;
    }
    tls->config = *config;
    tls->method = tls__method();
    if (tls->method == NULL) {
        free(tls);
        return ERR_NO_MEMORY;
    }
    int err = make_context(config, &tls->context, why);
    if (err != 0) {
        BIO_meth_free(tls->method);
        free(tls);
        return err;
    }
    mutex_init(&tls->lock);
    atomic_init(&tls->loaded_s, clock_monotonic_s());
    *out = tls;
    return 0;
}

void
tls_destroy(struct tls **tls)
{
    if (*tls == NULL) {
        return;
    }
    SSL_CTX_free((*tls)->context);
    BIO_meth_free((*tls)->method);
    mutex_fini(&(*tls)->lock);
    free(*tls);
    *tls = NULL;
}

int
tls_reload(struct tls *tls, struct buf *why)
{
    SSL_CTX *fresh;
    int err = make_context(&tls->config, &fresh, why);
    if (err != 0) {
        return err;
    }
    mutex_lock(&tls->lock);
    SSL_CTX *old = tls->context;
    tls->context = fresh;
    mutex_unlock(&tls->lock);
    SSL_CTX_free(old);
    /* relaxed: a figure */
    atomic_store_explicit(
        &tls->loaded_s, clock_monotonic_s(), memory_order_relaxed);
    return 0;
}

uint64_t
tls_loaded_s(const struct tls *tls)
{
    /* relaxed: a figure */
    return atomic_load_explicit(&tls->loaded_s, memory_order_relaxed);
}
