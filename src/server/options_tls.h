/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_OPTIONS_TLS_H
#define SERVER_OPTIONS_TLS_H

/* The options of TLS; see server/options.h. A build without OpenSSL refuses
 * them, and does not show them to programs that look what it can do. */

#ifdef HAVE_OPENSSL
#define OPTIONS_CARE_TLS OPTIONS_CARE_MET
#define OPTIONS_CARE_TLS_IGNORED OPTIONS_CARE_IGNORED
#define OPTIONS_TLS_TEXT(text) text
#else
#define OPTIONS_CARE_TLS OPTIONS_CARE_REFUSED
#define OPTIONS_CARE_TLS_IGNORED OPTIONS_CARE_REFUSED
#define OPTIONS_TLS_TEXT(text) "TLS, which this build has not: refused"
#endif

/* Columns as in server/options_table.h. */
#define OPTIONS_OF_TLS(X)                                                     \
    X(tls, 'Z', "enable-ssl", NULL, FLAG, 0, 0, "", NULL,                     \
        OPTIONS_TLS_TEXT(                                                     \
            "TLS on every TCP address but those with notls: before them; "    \
            "wants -o ssl_chain_cert and ssl_key"))

/* Columns as in OPTIONS_EXTENDED. */
#define OPTIONS_EXTENDED_TLS(X)                                               \
    X(ssl_chain_cert, PLAIN, "ssl_chain_cert", "FILE", PATH, 1, 1023, "",     \
        TLS,                                                                  \
        OPTIONS_TLS_TEXT(                                                     \
            "the server's certificate, and those above it, PEM"))             \
    X(ssl_key, PLAIN, "ssl_key", "FILE", PATH, 1, 1023, "", TLS,              \
        OPTIONS_TLS_TEXT("its private key; without it, the key is in "        \
                         "ssl_chain_cert"))                                   \
    X(ssl_keyformat, PLAIN, "ssl_keyformat", "1|2", NUMBER, 1, 2, "1", TLS,   \
        OPTIONS_TLS_TEXT("form of that file: 1 PEM, 2 DER"))                  \
    X(ssl_ca_cert, PLAIN, "ssl_ca_cert", "FILE", PATH, 1, 1023, "", TLS,      \
        OPTIONS_TLS_TEXT("who signs the certificates of clients, PEM"))       \
    X(ssl_verify_mode, PLAIN, "ssl_verify_mode", "0|1|2|3", NUMBER, 0, 3,     \
        "0", TLS,                                                             \
        OPTIONS_TLS_TEXT("certificates of clients: 0 are not asked for, 1 "   \
                         "must be good where there is one, 2 and 3 are "      \
                         "needed"))                                           \
    X(ssl_min_version, PLAIN, "ssl_min_version", "2|3", NUMBER, 2, 3, "2",    \
        TLS,                                                                  \
        OPTIONS_TLS_TEXT("oldest version that is spoken: 2 is TLS 1.2, 3 is " \
                         "TLS 1.3; there is no older one"))                   \
    X(ssl_ciphers, PLAIN, "ssl_ciphers", "LIST", TEXT, 1, 1023, "", TLS,      \
        OPTIONS_TLS_TEXT("ciphers for TLS 1.2, as openssl-ciphers(1) has "    \
                         "them"))                                             \
    X(ssl_session_cache, PLAIN, "ssl_session_cache", NULL, FLAG, 0, 0, "",    \
        TLS,                                                                  \
        OPTIONS_TLS_TEXT(                                                     \
            "keep sessions for clients that resume them without "             \
            "a ticket"))                                                      \
    X(ssl_wbuf_size_kib, PLAIN, "ssl_wbuf_size", "KB", WHOLE, 0, UINT32_MAX,  \
        "16", TLS_IGNORED, OPTIONS_TLS_TEXT("buffer of a thread's writes"))   \
    X(ssl_kernel_tls, PLAIN, "ssl_kernel_tls", NULL, FLAG, 0, 0, "",          \
        TLS_IGNORED, OPTIONS_TLS_TEXT("ciphering by the kernel"))

#endif
