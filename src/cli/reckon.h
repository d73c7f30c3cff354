/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLI_RECKON_H
#define CLI_RECKON_H

#include <stdint.h>

/* What so many records will take, by what was measured: doc/measurements.md has
 * where each figure comes from, and t/system/tallyctl.test measures the bytes
 * of a small server against them, and what a start of it reads, and compares
 * the two rates of a start with the starts in that document. Pure. */

/* Id, name, text, and of a record of three columns: bytes in memory, packed;
 * bytes in a segment; bytes of the log for one change, of clients that send
 * many at a time: one alone takes some 50. */
#define RECKON_IDS(X)                                                         \
    X(SNOWFLAKE, "snowflake", "a time and a number in it", 3.56, 2.73, 10.68) \
    X(RANDOM, "random", "random 64-bit numbers", 7.49, 6.80, 15.70)           \
    X(DENSE, "dense", "one after the other", 3.42, 1.14, 9.20)

enum reckon_ids {
#define X(id, name, text, hot, cold, log) RECKON_##id,
    RECKON_IDS(X)
#undef X
        RECKON_IDS_N
};

/* By columns, of snowflake ids: bytes in memory and in a segment; between two
 * of them they are on a straight line. */
#define RECKON_COLUMNS(X)                                                     \
    X(1, 3.28, 2.20)                                                          \
    X(2, 3.35, 2.47)                                                          \
    X(3, 3.56, 2.73)                                                          \
    X(4, 4.70, 3.74)                                                          \
    X(16, 18.54, 6.47)

/* Name, value, text. */
#define RECKON_CONSTANTS(X)                                                   \
    X(loose, 1.20, "memory while records come and go / memory packed")        \
    X(seal_share, 0.80, "of --hot-memory, from which on ranges are sealed")   \
    X(image_bytes, 3.16, "of a checkpoint for a record in memory")            \
    X(image_copies, 2.0, "of images there are, at worst")                     \
    X(written, 1.78, "bytes written for one byte of log")                     \
    X(segment_copies, 1.20, "of segments' bytes, while they are made anew")   \
    X(load_rate, 20e6, "records of a checkpoint that a start reads a second") \
    X(replay_rate, 0.32e6, "changes of the log that it does a second, least") \
    X(log_max, 512e6, "bytes of log before a checkpoint, --checkpoint-log")   \
    X(cold_index, 0.013, "bytes of memory for a cold record")                 \
    X(other_memory, 400e6,                                                    \
        "bytes beside: -m, --cold-cache, --log-memory, connections, program")

/* One of them; the enum and the struct of all have the names. */
struct reckon_constants {
#define X(name, value, text) double name;
    RECKON_CONSTANTS(X)
#undef X
};

struct reckon_question {
    double records;   /* above 0 */
    unsigned columns; /* 1..16 */
    enum reckon_ids ids;
    double hot_share; /* above 0, to 1 */
    double changes;   /* a second; 0: none */
};

/* Bytes, but for the seconds. */
struct reckon_answer {
    double hot_record, cold_record;      /* of one record */
    double log_change;                   /* of one change */
    double hot_memory;                   /* --hot-memory to be given */
    double memory;                       /* of the process, all together */
    double segments, images, log;        /* on the disk, at worst */
    double disk;                         /* their sum */
    double log_day, written_day;         /* a day */
    double start_records, start_changes; /* that a start reads, at worst */
    double start_s_least, start_s_most;
};

extern const struct reckon_constants reckon_constants;

/* "snowflake"; static storage. */
const char *reckon_ids_name(enum reckon_ids ids);

void reckon(
    const struct reckon_question *question, struct reckon_answer *answer);

#endif
