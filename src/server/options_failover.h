/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_OPTIONS_FAILOVER_H
#define SERVER_OPTIONS_FAILOVER_H

/* The options of a server of a group in which etcd says who is primary; the
 * columns are those of server/options_table.h. What they mean together is in
 * server/options_failover.c. */

#ifdef HAVE_ETCD
#define OPTIONS_CARE_ETCD OPTIONS_CARE_MET
#define OPTIONS_ETCD_TEXT(text) text
#else
#define OPTIONS_CARE_ETCD OPTIONS_CARE_REFUSED
#define OPTIONS_ETCD_TEXT(text)                                               \
    "etcd, with which this build cannot speak: refused"
#endif

#define OPTIONS_OF_FAILOVER(X)                                                \
    X(replicate, 0, "replicate", "CLUSTER/GROUP", TEXT, 3, 129, "",           \
        "replicate",                                                          \
        OPTIONS_ETCD_TEXT(                                                    \
            "be one of a group of servers with the same counters, of which "  \
            "one is the primary, and another one where that is gone: etcd "   \
            "says which, see --etcd. Names: letters, digits, _ . and -"))     \
    X(etcd, 0, "etcd", "URL[,URL...]", TEXT, 1, 1023, "", "etcd",             \
        OPTIONS_ETCD_TEXT(                                                    \
            "where etcd's servers are, 8 at most, as https://HOST:2379; "     \
            "http:// to other machines wants --repl-insecure"))               \
    X(etcd_cacert, 0, "etcd-cacert", "FILE", PATH, 1, 1023, "",               \
        "etcd_cacert",                                                        \
        OPTIONS_ETCD_TEXT("who signs the certificates of etcd, PEM; without " \
                          "it, those that the system believes"))              \
    X(etcd_cert, 0, "etcd-cert", "FILE", PATH, 1, 1023, "", "etcd_cert",      \
        OPTIONS_ETCD_TEXT("this server's certificate for etcd, PEM"))         \
    X(etcd_key, 0, "etcd-key", "FILE", PATH, 1, 1023, "", "etcd_key",         \
        OPTIONS_ETCD_TEXT("its private key, PEM"))                            \
    X(etcd_user_file, 0, "etcd-user-file", "FILE", PATH, 1, 1023, "",         \
        "etcd_user_file",                                                     \
        OPTIONS_ETCD_TEXT("a line user:password to log in to etcd with"))     \
    X(lease_ttl_s, 0, "lease-ttl", "SECONDS", NUMBER, 2, 60, "3",             \
        "lease_ttl",                                                          \
        OPTIONS_ETCD_TEXT(                                                    \
            "a primary of whose machine nothing is heard is replaced after "  \
            "so long; more than 1.5 times etcd's election timeout"))          \
    X(hang_timeout_ms, 0, "hang-timeout", "MS", NUMBER, 300, 60000, "1000",   \
        "hang_timeout",                                                       \
        OPTIONS_ETCD_TEXT(                                                    \
            "a server that does nothing for so long gives up being the "      \
            "primary"))                                                       \
    X(replica_votes, 0, "replica-votes", "yes|no", CHOICE, 0, 1, "yes",       \
        "replica_votes",                                                      \
        OPTIONS_ETCD_TEXT(                                                    \
            "no: a copy for reading only, which no change waits for, and "    \
            "which never becomes the primary"))                               \
    X(repl_announce, 0, "repl-announce", "HOST:PORT", TEXT, 1, 255, "",       \
        "repl_announce",                                                      \
        OPTIONS_ETCD_TEXT(                                                    \
            "where the other servers of the group reach this one's "          \
            "--repl-port; without it, an address of --repl-listen, or the "   \
            "host of --replica-announce"))

#endif
