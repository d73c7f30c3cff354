/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_OPTIONS_TABLE_H
#define SERVER_OPTIONS_TABLE_H

#include "server/options_data.h"

/* tallyd's own options; server/options.h joins them with memcached's.
 *
 * field, letter (0: none), long name, name of the argument (NULL: none), type,
 * lowest, highest, default, name in `stats settings` (NULL: it is memcached's,
 * in the table of server/options_settings.c, or is not shown), text.
 * lowest and highest bound a number (a fraction in thousandths), or the length
 * of a text. */
#define OPTIONS_MET(X)                                                        \
    X(port, 'p', "port", "NUM", NUMBER, -1, 65535, "11211", NULL,             \
        "TCP port; 0 is no TCP, -1 any free port")                            \
    X(listen, 'l', "listen", "ADDR[,ADDR...]", LISTEN, 1, 65535,              \
        "127.0.0.1,::1", NULL,                                                \
        "address to listen on: HOST, HOST:PORT or [IPV6]:PORT; may be given " \
        "several times; HOST is a name, an address, or * for every address")  \
    X(unix_socket, 's', "unix-socket", "FILE", PATH, 1, 107, "", NULL,        \
        "Unix socket to listen on; then there is no TCP, as in memcached")    \
    X(unix_mask, 'a', "unix-mask", "MASK", OCTAL, 0, 0777, "0700", NULL,      \
        "access mode of the Unix socket, in octal")                           \
    X(threads, 't', "threads", "NUM", NUMBER, 1, 256, "4", NULL,              \
        "worker threads")                                                     \
    X(conn_limit, 'c', "conn-limit", "NUM", NUMBER, 1, 1000000, "1024", NULL, \
        "connections at one time")                                            \
    X(user, 'u', "user", "NAME", TEXT, 1, 255, "", NULL,                      \
        "user to become when started by root")                                \
    X(daemon, 'd', "daemon", NULL, FLAG, 0, 0, "", NULL,                      \
        "go to the background once the server is ready")                      \
    X(pidfile, 'P', "pidfile", "FILE", PATH, 1, 1023, "", NULL,               \
        "file to write the process id to")                                    \
    X(verbosity, 'v', "verbose", NULL, COUNT, 0, 3, "0", NULL,                \
        "write more to stderr: -v what happens, -vv details")                 \
    X(log_file, 0, "log-file", "FILE", PATH, 1, 1023, "", "log_file",         \
        "write the log to FILE instead of stderr; opened anew at SIGHUP")     \
    X(help, 'h', "help", "man|metrics", HELP, 0, 0, "", NULL,                 \
        "print this help; =man prints it for the manual page, =metrics a "    \
        "table of what /metrics tells (--http)")                              \
    X(version, 'V', "version", NULL, VERSION, 0, 0, "", NULL,                 \
        "print the version")                                                  \
    X(listen_backlog, 'b', "listen-backlog", "NUM", NUMBER, 1, 65535, "1024", \
        NULL, "connections that may wait to be accepted")                     \
    X(reqs_per_event, 'R', "max-reqs-per-event", "NUM", NUMBER, 1, 1000000,   \
        "20", NULL,                                                           \
        "requests of one connection in a turn, before others have theirs")    \
    X(item_size_max, 'I', "max-item-size", "SIZE", BYTES, 1024, 1 << 30,      \
        "1m", NULL,                                                           \
        "largest value of an item, in bytes, or with k or m behind; at most " \
        "half of --memory-limit")                                             \
    X(memory_limit, 'm', "memory-limit", "MB", MEGABYTES, 0, 1 << 24, "64",   \
        NULL, "memory for items, in megabytes; 0: no items at all")           \
    X(near_cells, 0, "near-cells", "item|error", CHOICE, 0, 1, "item",        \
        "near_cells",                                                         \
        "what a key is that looks like a counter's and is none: an item, or " \
        "refused with CLIENT_ERROR")                                          \
    X(hot_memory, 0, "hot-memory", "SIZE", BYTES_OR_AUTO,                     \
        OPTIONS_HOT_MEMORY_MIN, INT64_C(1) << 46, "auto", "hot_memory",       \
        "memory for counters, in bytes, or with k, m or g behind; auto: "     \
        "half of the machine's memory, or of the cgroup's limit")             \
    X(request_memory, 0, "request-memory", "SIZE", BYTES, 1 << 20,            \
        INT64_C(1) << 46, "256m", "request_memory",                           \
        "memory for unfinished requests; clients that stall make room. At "   \
        "least the buffer of one value of -I for each thread (2 MB with 1m)") \
    X(max_producers, 0, "max-producers", "NUM", NUMBER, 1, 16384, "1024",     \
        "max_producers",                                                      \
        "producers that number their changes; each takes 144 bytes a shard "  \
        "once it is known, and none is forgotten but by drop producer")       \
    OPTIONS_OF_DATA(X)                                                        \
    OPTIONS_OF_SYNC(X)                                                        \
    X(log_file_bytes, 0, "log-file-size", "SIZE", BYTES, 2 << 20,             \
        INT64_C(1) << 32, "64m", "log_file_size",                             \
        "a log file is followed by the next one from there on; it is made "   \
        "twice as long, the rest being a hole")                               \
    X(log_memory, 0, "log-memory", "SIZE", BYTES, 4 << 20, INT64_C(1) << 36,  \
        "64m", "log_memory",                                                  \
        "unsynced changes kept in memory, to be written anew where a disk "   \
        "fails; beyond it replies wait")                                      \
    X(checkpoint_log, 0, "checkpoint-log", "SIZE", BYTES, 4 << 20,            \
        INT64_C(1) << 46, "512m", "checkpoint_log",                           \
        "make a checkpoint when the log has grown to this, or to half of "    \
        "the room that the disk has for it")                                  \
    X(checkpoint_interval_s, 0, "checkpoint-interval", "SECONDS", NUMBER, 0,  \
        31536000, "3600", "checkpoint_interval",                              \
        "and when the last one is so long ago; 0: only by the log's size")    \
    X(cold_cache, 0, "cold-cache", "SIZE", BYTES, 0, INT64_C(1) << 46, "64m", \
        "cold_cache",                                                         \
        "memory for blocks of the cold tier that are read often")             \
    X(cold_threads, 0, "cold-threads", "NUM", NUMBER, 1, 256, "16",           \
        "cold_threads", "reads from the cold tier at a time")                 \
    X(cold_io, 0, "cold-io", "auto|ring|direct|pool", CHOICE, 0, 3, "auto",   \
        "cold_io",                                                            \
        "who reads from the cold tier for a get of a few keys: ring, the "    \
        "worker, by an io_uring of its own; direct, likewise, past the page " \
        "cache; pool, the threads that read for all else; auto: ring where "  \
        "the kernel allows it")                                               \
    X(cold_codec, 0, "cold-codec", "plain|zstd|packed|auto", CHOICE, 0, 3,    \
        "auto", "cold_codec",                                                 \
        "how blocks of the cold tier are compressed; auto: the smallest of "  \
        "each")                                                               \
    X(cold_level, 0, "cold-level", "NUM", NUMBER, 1, 19, "3", "cold_level",   \
        "level of zstd in the cold tier")                                     \
    X(loading, 0, "loading", "answer|refuse", CHOICE, 0, 1, "answer",         \
        "loading",                                                            \
        "while counters are loaded: answer clients with SERVER_ERROR, or "    \
        "refuse connections")                                                 \
    X(check, 0, "check", NULL, FLAG, 0, 0, "", NULL,                          \
        "verify all files of the data directory, print what is in them, and " \
        "end; nothing is changed")                                            \
    X(salvage, 0, "salvage", NULL, FLAG, 0, 0, "", NULL,                      \
        "where a start refuses a damaged data directory: keep the damaged "   \
        "files aside, make new ones of all that is sound, say what is lost, " \
        "and end; exit status 3: something is lost, or may be")               \
    X(dump, 0, "dump", NULL, FLAG, 0, 0, "", NULL,                            \
        "print what the data directory has, as text, and end; nothing is "    \
        "changed")                                                            \
    X(dump_part, 0, "dump-part", "all|records|schema|log|producers", CHOICE,  \
        0, 4, "all", NULL, "with --dump: only that")                          \
    X(config, 0, "config", "FILE", PATH, 1, 1023, "", "config",               \
        "read options from FILE; those of the command line win")              \
    X(command_timeout_s, 0, "command-timeout", "SECONDS", NUMBER, 1, 86400,   \
        "60", "command_timeout",                                              \
        "close a connection whose command is not complete after so long")     \
    X(write_timeout_s, 0, "write-timeout", "SECONDS", NUMBER, 1, 86400, "30", \
        "write_timeout",                                                      \
        "close a connection that has not read its replies for so long")       \
    X(commit_timeout_s, 0, "commit-timeout", "SECONDS", NUMBER, 1, 3600, "1", \
        "commit_timeout",                                                     \
        "answer what has waited for the disk for so long, a change, or a "    \
        "read (--reads), with SERVER_ERROR: a change's outcome is not known") \
    X(shards, 0, "shards", "NUM", POWER_OF_TWO, 1, 4096, "16", "shards",      \
        "partitions of the ids; more let more threads write at a time")       \
    X(slow_ms, 0, "slow", "MS", NUMBER, 0, 3600000, "10", "slow",             \
        "keep what takes so long in the slow log, see stats slow; 0: "        \
        "nothing")                                                            \
    X(seccomp, 0, "seccomp", "on|log|off", CHOICE, 0, 2, "on", "seccomp",     \
        "once started, end at a system call that the server has no use for; " \
        "log: the kernel only logs it; on, said explicitly: do not start "    \
        "where that cannot be had")                                           \
    X(landlock, 0, "landlock", "on|off", CHOICE, 0, 1, "on", "landlock",      \
        "once started, write nowhere but in the data directory, connect to "  \
        "nobody, execute nothing; on, said explicitly: do not start where "   \
        "that cannot be had")                                                 \
    X(udp_port, 'U', "udp-port", "NUM", NUMBER, 0, 0, "0", NULL,              \
        "UDP port; there is no UDP, so only 0 is taken")                      \
    X(protocol, 'B', "protocol", "auto|ascii|binary", CHOICE, 0, 2, "auto",   \
        NULL,                                                                 \
        "protocol of all connections; auto: each one's first byte "           \
        "tells")                                                              \
    X(keeps, 'M', "disable-evictions", NULL, FLAG, 0, 0, "", NULL,            \
        "where memory for items is full, refuse new ones instead of giving "  \
        "up old ones")                                                        \
    X(no_cas, 'C', "disable-cas", NULL, FLAG, 0, 0, "", NULL,                 \
        "items have no cas unique: 0 is shown, and none is ever the same")    \
    X(no_flush, 'F', "disable-flush-all", NULL, FLAG, 0, 0, "", NULL,         \
        "refuse flush_all")                                                   \
    X(no_dump, 'X', "disable-dumping", NULL, FLAG, 0, 0, "", NULL,            \
        "refuse stats cachedump, stats detail, lru_crawler metadump and "     \
        "dump counter")                                                       \
    X(no_watch, 'W', "disable-watch", NULL, FLAG, 0, 0, "", NULL,             \
        "refuse watch")                                                       \
    X(shutdown_enabled, 'A', "enable-shutdown", NULL, FLAG, 0, 0, "", NULL,   \
        "let clients stop the server with shutdown")                          \
    X(prefix_delimiter, 'D', "prefix-delimiter", "CHAR", CHARACTER, 1, 1023,  \
        ":", NULL,                                                            \
        "what ends the prefix of a key in stats detail; where it is given, "  \
        "stats detail is on from the start")                                  \
    X(core_files, 'r', "enable-coredumps", NULL, FLAG, 0, 0, "", NULL,        \
        "raise the limit of the core file's size")                            \
    X(lock_memory, 'k', "lock-memory", NULL, FLAG, 0, 0, "", NULL,            \
        "keep all of the process's memory in RAM, as far as that is allowed") \
    X(auth_file, 'Y', "auth-file", "FILE", PATH, 1, 1023, "", NULL,           \
        "let in only who logs in as a user of FILE, lines user:password; "    \
        "see doc/security.md. Without -S the protocol is ascii")              \
    X(sasl, 'S', "enable-sasl", NULL, FLAG, 0, 0, "", NULL,                   \
        "logins by SASL PLAIN, of the users of --auth-file (or of "           \
        "$MEMCACHED_SASL_PWDB); the protocol is binary, or with -B auto "     \
        "both, each with its logins")                                         \
    X(insecure, 0, "insecure", NULL, FLAG, 0, 0, "", "insecure",              \
        "listen on other addresses than the loopback's without --auth-file: " \
        "whoever reaches them can read and change everything")                \
    X(hash_password, 0, "hash-password", NULL, FLAG, 0, 0, "", NULL,          \
        "read a password from stdin, print its hash for --auth-file, and "    \
        "end")                                                                \
    X(extended, 'o', "extended", "NAME[=VALUE],...", EXTENDED, 0, 0, "",      \
        NULL,                                                                 \
        "memcached's extended options, see below; may be given several "      \
        "times")                                                              \
    X(debug_time, 0, "debug-time", NULL, FLAG, 0, 0, "", "debug_time",        \
        "let clients move the clock of items with debugtime; for tests")      \
    X(license, 'i', "license", NULL, LICENSE, 0, 0, "", NULL,                 \
        "print the license")

#endif
