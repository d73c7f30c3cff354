/* SPDX-License-Identifier: BSD-3-Clause */
/* server/http.h for a build without libmicrohttpd, where --http is refused. */
#include "server/http.h"

#include "base/assert.h"

void
http_init(struct http *http, const struct options *options,
    struct logger *logger, uv_loop_t *loop)
{
    (void)logger;
    (void)loop;
    ASSERT(options->http.text[0] == '\0');
    *http = (struct http){.options = options};
}

int
http_open(struct http *http, struct buf *why)
{
    (void)http;
    (void)why;
    return 0;
}

int
http_start(struct http *http, struct server_admin *admin, struct buf *why)
{
    (void)http;
    (void)admin;
    (void)why;
    return 0;
}

void
http_stop(struct http *http)
{
    (void)http;
}
