/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes TLS as the options want it. A private key that everybody can read is
 * worth a warning and no refusal: what starts a memcached starts this. */
#include "server/secure.h"

#include "base/err.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *
or_null(const struct options_text *text)
{
    return text->text[0] == '\0' ? NULL : text->text;
}

/* Without ssl_key the key is beside the certificate. */
static const char *
key_of(const struct options *options)
{
    return options->ssl_key.text[0] == '\0' ? options->ssl_chain_cert.text
                                            : options->ssl_key.text;
}

/* As PostgreSQL sees it: others must not read the key, and a group only one of
 * root's. */
static void
look_at_key(const char *path, struct logger *logger)
{
    struct stat info;
    if (stat(path, &info) != 0) {
        return;
    }
    bool is_open = (info.st_mode & (S_IRWXO | S_IWGRP)) != 0 ||
        ((info.st_mode & S_IRGRP) != 0 && info.st_uid != 0);
    if (is_open) {
        log_line(logger, LOG_WARNING,
            "the private key %s can be read by others (mode %04o): chmod 0600",
            path, (unsigned)info.st_mode & 07777U);
    }
}

int
secure_open(const struct options *options, struct logger *logger,
    struct tls **out, struct buf *why)
{
    struct tls_config config = {.chain = options->ssl_chain_cert.text,
        .key = key_of(options),
        .ca = or_null(&options->ssl_ca_cert),
        .ciphers = or_null(&options->ssl_ciphers),
        .key_is_der = options->ssl_keyformat == 2,
        .verify = (enum tls_verify)options->ssl_verify_mode,
        .min_version = (enum tls_version)options->ssl_min_version,
        .caches_sessions = options->ssl_session_cache};
    *out = NULL;
    if (!options->tls) {
        return 0;
    }
    buf_add_text(why, "--enable-ssl: ");
    size_t before = why->len;
    int err = tls_create(&config, out, why);
    if (err != 0) {
        if (why->len == before) {
            buf_add_text(why, err_text(err));
        }
        return err;
    }
    buf_clear(why);
    look_at_key(config.key, logger);
    return 0;
}

int
secure_reload(struct tls *tls, struct logger *logger, struct buf *why)
{
    struct buf line = {0};
    int err = tls_reload(tls, &line);
    if (err == 0) {
        log_line(logger, LOG_NOTICE, "certificates have been read anew");
    } else {
        log_line(logger, LOG_WARNING,
            "the certificates stay as they were: %.*s", (int)line.len,
            line.len == 0 ? "" : line.data);
        buf_add(why, line.data == NULL ? "" : line.data, line.len);
    }
    buf_fini(&line);
    return err;
}

void
secure_look(const struct options *options, struct logger *logger)
{
    const char *files[] = {options->ssl_chain_cert.text, key_of(options),
        options->ssl_ca_cert.text};
    for (size_t i = 0; options->tls && i < sizeof files / sizeof *files; i++) {
        if (files[i][0] != '\0' && access(files[i], R_OK) != 0) {
            log_line(logger, LOG_WARNING,
                "%s: %s; refresh_certs and SIGHUP will not be able to read it",
                files[i], strerror(errno));
        }
    }
}
