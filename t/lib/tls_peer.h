/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_TLS_PEER_H
#define LIB_TLS_PEER_H

/* What the tests and the fuzz target of TLS share: certificates made on the
 * spot, and a client of OpenSSL's in memory. */

#include "base/assert.h"
#include "net/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TLS_PATH_BYTES = 64 };

/* A directory with a certificate that is its own CA, and its key. */
struct tls_files {
    char directory[TLS_PATH_BYTES];
    char chain[TLS_PATH_BYTES + 16];
    char key[TLS_PATH_BYTES + 16];
};

static inline void
tls_write_key(const char *path, EVP_PKEY *key)
{
    FILE *file = fopen(path, "w");
    ASSERT(file != NULL);
    int done = PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL);
    ASSERT(done == 1);
    (void)fclose(file);
}

/* Writes a certificate of that name, for a new key, to the two files. */
static inline void
tls_make(const struct tls_files *files, const char *name)
{
    enum { DAY_S = 86400 };
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();
    X509_NAME *subject = X509_get_subject_name(cert);
    ASSERT(key != NULL);
    X509_set_version(cert, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
    X509_gmtime_adj(X509_getm_notBefore(cert), -DAY_S);
    X509_gmtime_adj(X509_getm_notAfter(cert), DAY_S);
    X509_set_pubkey(cert, key);
    X509_NAME_add_entry_by_txt(
        subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
    X509_set_issuer_name(cert, subject);
    X509_EXTENSION *is_ca =
        X509V3_EXT_conf_nid(NULL, NULL, NID_basic_constraints, "CA:TRUE");
    X509_add_ext(cert, is_ca, -1);
    X509_EXTENSION_free(is_ca);
    int done = X509_sign(cert, key, EVP_sha256());
    ASSERT(done > 0);
    FILE *file = fopen(files->chain, "w");
    ASSERT(file != NULL);
    done = PEM_write_X509(file, cert);
    ASSERT(done == 1);
    (void)fclose(file);
    tls_write_key(files->key, key);
    X509_free(cert);
    EVP_PKEY_free(key);
}

static inline void
tls_files_init(struct tls_files *files, const char *name)
{
    snprintf(
        files->directory, sizeof files->directory, "/tmp/tallyd-tls-XXXXXX");
    const char *made = mkdtemp(files->directory);
    ASSERT(made != NULL);
    snprintf(
        files->chain, sizeof files->chain, "%s/cert.pem", files->directory);
    snprintf(files->key, sizeof files->key, "%s/key.pem", files->directory);
    tls_make(files, name);
}

static inline void
tls_files_fini(const struct tls_files *files)
{
    (void)unlink(files->chain);
    (void)unlink(files->key);
    int err = rmdir(files->directory);
    ASSERT(err == 0);
}

static inline struct tls_config
tls_config_of(const struct tls_files *files)
{
    return (struct tls_config){.chain = files->chain,
        .key = files->key,
        .min_version = TLS_VERSION_1_2};
}

static inline struct tls *
tls_of(const struct tls_config *config)
{
    struct buf why = {0};
    struct tls *tls;
    int err = tls_create(config, &tls, &why);
    ASSERT(err == 0);
    buf_fini(&why);
    return tls;
}

/* A client's context, for versions from lowest to highest (0: any). */
static inline SSL_CTX *
tls_client_context(int lowest, int highest)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    ASSERT(context != NULL);
    SSL_CTX_set_security_level(context, 0); /* so that old ones are tried */
    SSL_CTX_set_min_proto_version(context, lowest);
    SSL_CTX_set_max_proto_version(context, highest);
    return context;
}

/* A client in memory: what it has written is in out, what it gets goes to
 * in. */
struct tls_client {
    SSL *ssl;
    BIO *in, *out; /* ssl's */
};

static inline void
tls_client_init(struct tls_client *client, SSL_CTX *context)
{
    client->ssl = SSL_new(context);
    client->in = BIO_new(BIO_s_mem());
    client->out = BIO_new(BIO_s_mem());
    ASSERT(client->ssl != NULL && client->in != NULL);
    BIO_set_mem_eof_return(client->in, -1);
    SSL_set_bio(client->ssl, client->in, client->out);
    SSL_set_connect_state(client->ssl);
}

static inline void
tls_client_fini(struct tls_client *client)
{
    SSL_free(client->ssl);
    ERR_clear_error();
}

/* Gives the client what the server has said. */
static inline void
tls_client_hear(struct tls_client *client, struct buf *said)
{
    ASSERT(!said->failed);
    if (said->len > 0) {
        int n = BIO_write(client->in, said->data, (int)said->len);
        ASSERT(n == (int)said->len);
    }
    buf_clear(said);
}

#endif
