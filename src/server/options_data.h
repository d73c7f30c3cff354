/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_OPTIONS_DATA_H
#define SERVER_OPTIONS_DATA_H

/* Where counters and their numbers come from: rows of OPTIONS_MET, which says
 * what the columns are (server/options_table.h). */

#define OPTIONS_OF_DATA(X)                                                    \
    X(schema, 0, "schema", "FILE", PATH, 1, 1023, "", "schema",               \
        "read counters and columns from FILE at start: lines as typed in "    \
        "telnet; what exists already is skipped")                             \
    X(data, 0, "data", "DIR|none", DIRECTORY, 1, 1023, "", "data",            \
        "directory that counters are kept in; none: they live in memory "     \
        "only. Without this option: $STATE_DIRECTORY, or ./tallyd-data; "     \
        "where that cannot be made, the server is a cache without counters")  \
    X(new_data, 0, "new-data", "make|refuse", CHOICE, 0, 1, "make",           \
        "new_data",                                                           \
        "where the data directory is not there, or is empty: make one that "  \
        "has no counters, and say so; or do not start")                       \
    X(no_lock, 0, "no-lock", NULL, FLAG, 0, 0, "", NULL,                      \
        "start also where the data directory cannot be locked")               \
    X(wal_archive, 0, "wal-archive", "DIR", PATH, 1, 1023, "", "wal_archive", \
        "copy each log file that is complete to DIR, and remove none "        \
        "before: with a backup they make what was there at any batch since "  \
        "(tallyctl restore)")

/* How a change gets to the disk, and who waits for that. */

#define OPTIONS_OF_SYNC(X)                                                    \
    X(sync, 0, "sync", "none|interval|always", CHOICE, 0, 2, "interval",      \
        "sync",                                                               \
        "what an acknowledged change survives: always, a power cut; "         \
        "interval, the end of the process at any time, and a power cut but "  \
        "for the last interval; none, a clean stop")                          \
    X(sync_interval_ms, 0, "sync-interval", "MS", NUMBER, 10, 60000, "1000",  \
        "sync_interval",                                                      \
        "with --sync=interval: how long a change may stay unsynced")          \
    X(reads, 0, "reads", "latest|committed", CHOICE, 0, 1, "latest", "reads", \
        "what a read of counters shows: latest, every change that was made; " \
        "committed, only those that --sync lets be acknowledged: a reply "    \
        "waits until all that it may show are")

#endif
