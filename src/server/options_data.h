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
        "start also where the data directory cannot be locked")

#endif
