/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_OPTIONS_HTTP_H
#define SERVER_OPTIONS_HTTP_H

/* The options of what is told by HTTP (server/http.h); the columns are those of
 * server/options_table.h. */

#ifdef HAVE_MICROHTTPD
#define OPTIONS_CARE_HTTP OPTIONS_CARE_MET
#define OPTIONS_HTTP_TEXT(text) text
#else
#define OPTIONS_CARE_HTTP OPTIONS_CARE_REFUSED
#define OPTIONS_HTTP_TEXT(text) "HTTP, which this build has not: refused"
#endif

#define OPTIONS_OF_HTTP(X)                                                    \
    X(http, 0, "http", "ADDR:PORT", TEXT, 1, 255, "", "http",                 \
        OPTIONS_HTTP_TEXT(                                                    \
            "tell by HTTP how the server is: a page at /, /metrics for "      \
            "Prometheus, /livez, /readyz, /status.json; nothing can be "      \
            "changed there"))                                                 \
    X(http_public, 0, "http-public", NULL, FLAG, 0, 0, "", "http_public",     \
        OPTIONS_HTTP_TEXT(                                                    \
            "with --http: an address that others can reach, who then read "   \
            "all of that without a login, names of counters and addresses "   \
            "of clients too"))

#endif
