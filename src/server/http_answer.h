/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_HTTP_ANSWER_H
#define SERVER_HTTP_ANSWER_H

#include "base/buf.h"
#include "server/admin.h"

#include <stdbool.h>
#include <stddef.h>

/* What is answered to whom, without sockets or HTTP's grammar. Inside the
 * module http. */

struct http_request {
    const char *method; /* "GET" */
    const char *path;   /* as it was sent, without what follows ? */
    const char *host;   /* the header; NULL: there is none */
    const char *accept; /* likewise */
    bool is_public;     /* --http-public */
};

struct http_answer {
    unsigned status;
    const char *type; /* Content-Type; static storage */
    const char *page; /* static bytes, page_len of them, or NULL: body */
    size_t page_len;
    bool allows;     /* says which methods there are */
    struct buf body; /* the caller's to free */
};

/* Fills *answer, which is all zero. Any thread that holds no lock. */
void http_answer(struct server_admin *admin,
    const struct http_request *request, struct http_answer *answer);

#endif
