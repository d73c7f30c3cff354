/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_OPTIONS_OWNS_H
#define SERVER_OPTIONS_OWNS_H

/* The options of a server among others that ids are spread over; the columns
 * are those of server/options_table.h, and the rule is base/owns.h's. */
#define OPTIONS_OF_OWNS(X)                                                    \
    X(owns, 0, "owns", "RULE:I/N", TEXT, 1, 1023, "", "owns",                 \
        "this is server number I, from 0, of N that clients spread ids "      \
        "over: refuse ids that RULE gives to another one. RULE is modulo, "   \
        "crc32, crc32a, fnv1a_64, fnv1a_32, md5 or one_at_a_time, or one "    \
        "that needs the list of servers, see --owns-file")                    \
    X(owns_file, 0, "owns-file", "FILE", PATH, 1, 1023, "", "owns_file",      \
        "read that rule from FILE's first line, which may also be ketama or " \
        "consistent, either with -HASH behind; then a line HOST:PORT:WEIGHT " \
        "[NAME] for each server; read again at SIGHUP")                       \
    X(owns_miss, 0, "owns-miss", NULL, FLAG, 0, 0, "", "owns_miss",           \
        "answer for another server's ids as for items that are not there; "   \
        "what would store is refused all the same")

#endif
