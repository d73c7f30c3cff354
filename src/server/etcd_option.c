/* SPDX-License-Identifier: BSD-3-Clause */
/* The process has no right to files, so what it shows to etcd, and whom it
 * believes, it gets in memory. A certificate that is renewed is read at the
 * next start. */
#include "server/etcd_option.h"

#include "base/err.h"
#include "base/small_file.h"
#include "server/etcd_child.h"
#include "server/options_failover_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PREFIX_MAX = sizeof "/tallyd//" + 2 * NODE_NAME_MAX,
    GROUP_MAX = 2 * NODE_NAME_MAX + 1, /* of CLUSTER/GROUP */
    PEM_MAX = 1 << 20,     /* a list of authorities, as a system has it */
    CALL_TIMEOUT_MS = 500, /* then the next one of etcd's servers is asked */
    MS_PER_S = 1000
};

_Static_assert((int)OPTIONS_ENDPOINTS_MAX == (int)HTTP_ENDPOINTS_MAX,
    "the option takes as many as can be asked");

/* A file in memory. */
struct pem {
    char bytes[PEM_MAX + 1];
    size_t n;
};

struct given {
    struct pem ca, cert, key;
    struct login_user user;
};

bool
etcd_option_is_endpoint(const char *url)
{
    return http_is_endpoint(url);
}

static int
read_pem(const char *option, const struct options_text *path, bool is_private,
    struct pem *out, struct buf *why)
{
    const struct small_file file = {.option = option,
        .what = is_private ? "the private key" : "the certificate",
        .path = path->text,
        .least = 1,
        .most = PEM_MAX,
        .is_private = is_private};
    int err = small_file_read(&file, out->bytes, &out->n, why);
    if (err == 0 && out->n > 0) {
        out->bytes[out->n++] = '\n'; /* which was cut off, with others */
    }
    return err;
}

static int
read_user(
    const struct options *options, struct login_user *out, struct buf *why)
{
    const struct small_file file = {.option = "--etcd-user-file",
        .what = "the user of etcd",
        .path = options->etcd_user_file.text,
        .least = 1,
        .most = LOGIN_USER_MAX + 1 + LOGIN_PASSWORD_MAX,
        .is_private = true};
    char bytes[LOGIN_USER_MAX + 1 + LOGIN_PASSWORD_MAX + 1];
    size_t n;
    int err = small_file_read(&file, bytes, &n, why);
    if (err == 0 && n > 0 && !login_read_user(bytes, n, out)) {
        buf_addf(why,
            "--etcd-user-file=%s: wanted is a line user:password, of up to "
            "%d and %d characters",
            file.path, LOGIN_USER_MAX, LOGIN_PASSWORD_MAX);
        err = ERR_BAD_OPTION;
    }
    explicit_bzero(bytes, sizeof bytes);
    return err;
}

static int
read_files(const struct options *options, struct given *given, struct buf *why)
{
    int err = read_pem(
        "--etcd-cacert", &options->etcd_cacert, false, &given->ca, why);
    if (err == 0) {
        err = read_pem(
            "--etcd-cert", &options->etcd_cert, false, &given->cert, why);
    }
    if (err == 0) {
        err =
            read_pem("--etcd-key", &options->etcd_key, true, &given->key, why);
    }
    return err == 0 ? read_user(options, &given->user, why) : err;
}

static struct http_pem
pem_of(const struct pem *pem)
{
    return (struct http_pem){.data = pem->bytes, .len = pem->n};
}

static int
start(const struct options *options, const struct given *given, int *pair_fd,
    struct buf *why)
{
    char prefix[PREFIX_MAX + 1];
    struct options_endpoints endpoints;
    (void)snprintf(prefix, sizeof prefix, "/tallyd/%.*s/", GROUP_MAX,
        options->replicate.text);
    (void)options_split_endpoints(options->etcd.text, &endpoints);
    struct run_config config = {
        .agent = {.prefix = prefix,
            .ttl_s = (uint32_t)options->lease_ttl_s,
            .hang_ms = (uint32_t)options->hang_timeout_ms},
        .http = {.n_endpoints = endpoints.n,
            .ca = pem_of(&given->ca),
            .cert = pem_of(&given->cert),
            .key = pem_of(&given->key),
            .timeout_ms = CALL_TIMEOUT_MS},
        .user = given->user,
        .holds_calls = options->seccomp == OPTIONS_SECCOMP_ON};
    memcpy(config.http.endpoint, endpoints.endpoint,
        endpoints.n * sizeof endpoints.endpoint[0]);
    int err = etcd_child_start(&config, options->user.text,
        options->landlock == OPTIONS_LANDLOCK_ON, pair_fd, why);
    explicit_bzero(&config.user, sizeof config.user);
    return err;
}

int
etcd_option_start(const struct options *options, int *pair_fd, struct buf *why)
{
    struct given *given = calloc(1, sizeof *given);
    if (given == NULL) {
        buf_add_text(why, err_text(ERR_NO_MEMORY));
        return ERR_NO_MEMORY;
    }
    int err = read_files(options, given, why);
    if (err == 0) {
        err = start(options, given, pair_fd, why);
    }
    explicit_bzero(given->key.bytes, given->key.n);
    explicit_bzero(&given->user, sizeof given->user);
    free(given);
    return err;
}
