/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_OPTIONS_REPL_H
#define SERVER_OPTIONS_REPL_H

/* The options of a server that is one of several with copies of a directory;
 * the columns are those of server/options_table.h. What they mean together is
 * in server/options_repl.c. */

#define OPTIONS_OF_REPL(X)                                                     \
    X(replicaof, 0, "replicaof", "HOST:PORT", TEXT, 1, 255, "", "replicaof",   \
        "be a replica: follow the server with that replication address, "      \
        "have its counters, and refuse changes")                               \
    X(repl_port, 0, "repl-port", "NUM", NUMBER, 0, 65535, "0", "repl_port",    \
        "TCP port that replicas connect to; 0: none")                          \
    X(repl_listen, 0, "repl-listen", "ADDR[,ADDR...]", LISTEN, 1, 65535,       \
        "127.0.0.1,::1", NULL,                                                 \
        "addresses for that port; others than the loopback's want TLS (-Z, "   \
        "-o ssl_ca_cert), or --repl-insecure")                                 \
    X(node, 0, "node", "NAME", TEXT, 1, 64, "", "node",                        \
        "what this server is called among the others: letters, digits, _ . "   \
        "and -; without it, the host name")                                    \
    X(repl_group, 0, "repl-group", "NAME", TEXT, 1, 64, "", "repl_group",      \
        "name of the group of servers; those of another group are refused")    \
    X(replica_announce, 0, "replica-announce", "HOST:PORT", TEXT, 1, 255, "",  \
        "replica_announce",                                                    \
        "where clients find this server, as replicas tell them; without it, "  \
        "the first address of -l that is not *")                               \
    X(semi_sync, 0, "semi-sync", "NUM", NUMBER, 0, 15, "0", "semi_sync",       \
        "copies besides its own that a change is on before it is "             \
        "acknowledged; 0: none is waited for. With --replicate 1 unless "      \
        "given")                                                               \
    X(min_replicas, 0, "min-replicas-to-write", "NUM", NUMBER, 0, 15, "",      \
        "min_replicas_to_write",                                               \
        "with fewer replicas than that, refuse changes; without it, as many "  \
        "as --semi-sync")                                                      \
    X(max_lag_ms, 0, "min-replicas-max-lag", "MS", NUMBER, 100, 60000,         \
        "1500", "min_replicas_max_lag",                                        \
        "a replica that says nothing for longer does not count")               \
    X(replica_ack, 0, "replica-ack", "written|synced|applied", CHOICE, 0, 2,   \
        "", "replica_ack",                                                     \
        "when a change is on a copy: in its log file, synced there, or to be " \
        "seen by its readers; without it, synced with --sync=always, else "    \
        "written")                                                             \
    X(replica_priority, 0, "replica-priority", "NUM", NUMBER, 0, 1000000,      \
        "100", "replica_priority",                                             \
        "the higher the sooner this server becomes the primary where etcd "    \
        "says which does, and shown to who chooses; 0: never")                 \
    X(stale_data, 0, "replica-serve-stale-data", "yes|MS", TEXT, 1, 8, "yes",  \
        "replica_serve_stale_data",                                            \
        "as a replica, refuse gets of counters where what is shown may be "    \
        "older than so many milliseconds; yes: never")                         \
    X(forward_writes, 0, "forward-writes", "yes|no", CHOICE, 0, 1, "no",       \
        "forward_writes",                                                      \
        "as a replica, have the primary make the changes of counters that "    \
        "clients ask for, and pass on what it answers; as a primary, make "    \
        "those of replicas. The same on all servers of a group")               \
    X(repl_timeout_s, 0, "repl-timeout", "SECONDS", NUMBER, 1, 3600, "5",      \
        "repl_timeout",                                                        \
        "end a connection of replication on which nothing comes for so long")  \
    X(repl_backlog, 0, "repl-backlog-size", "SIZE", BYTES, 1 << 20,            \
        INT64_C(1) << 46, "1g", "repl_backlog_size",                           \
        "log kept for replicas that are behind; those further behind get a "   \
        "snapshot")                                                            \
    X(repl_rate, 0, "repl-snapshot-rate", "SIZE", BYTES, 0, INT64_C(1) << 46,  \
        "100m", "repl_snapshot_rate",                                          \
        "bytes a second at which a snapshot is sent; 0: as fast as can be")    \
    X(repl_secret, 0, "repl-secret-file", "FILE", PATH, 1, 1023, "",           \
        "repl_secret_file",                                                    \
        "a secret of 32 bytes or more that all servers of the group have; "    \
        "who does not prove that it knows it is refused")                      \
    X(repl_insecure, 0, "repl-insecure", NULL, FLAG, 0, 0, "",                 \
        "repl_insecure",                                                       \
        "replicate without TLS over other addresses than the loopback's: "     \
        "whoever is on the way can read and change everything")                \
    X(keep_cut, 0, "keep-cut", "SIZE", BYTES, 0, INT64_C(1) << 46, "64m",      \
        "keep_cut",                                                            \
        "changes that a server has to give up since the others never had "     \
        "them are kept aside, up to so many bytes of log")                     \
    X(leave_group, 0, "leave-group", NULL, FLAG, 0, 0, "", NULL,               \
        "start with a directory that was one of several copies, as one of "    \
        "none")

#endif
