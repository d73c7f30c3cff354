/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLI_IMPORT_PRIV_H
#define CLI_IMPORT_PRIV_H

#include "base/buf.h"
#include "cli/ask.h"
#include "cli/import_map.h"
#include "cli/rows_priv.h"
#include "cli/shown.h"
#include "client/stop.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Inside of import. One thread.
 *
 * A source hands over lines of the dialect (import__put), which say what a
 * record, or a member, is: so the same line again changes nothing, and a run
 * that goes on may begin a little before where the last one ended. */

enum {
    IMPORT_WHY_MAX = 400,
    IMPORT_PATH_MAX = 4096,
    IMPORT_FILE_MAX = 64,
    IMPORT_BATCH_LINES = 4096,
    IMPORT_BATCH_BYTES = 1 << 18,
    IMPORT_WINDOW = 8 /* batches: one is filled, the others are under way */
};

enum import_source {
    IMPORT_FILE, /* csv, tsv, ndjson, dialect: rows_format */
    IMPORT_RDB,
    IMPORT_REDIS,
    IMPORT_MEMCACHED
};

/* How far it is: all before that is stored, or refused for good. */
struct import_place {
    uint64_t at; /* of a file its bytes, of an RDB its keys, of Redis the
                  * cursor of SCAN; of memcached nothing */
    uint64_t rows, rejects, reject_bytes;
};

/* Lines that are sent together, see import_send.c. */
struct import_batch {
    struct buf lines, from; /* what is sent, and where it comes from and what
                             * is refused, see import_reject.c */
    unsigned n_lines;
    bool is_at; /* all of the input before `at` is in it, or before it */
    uint64_t at;
    /* The answers: */
    unsigned n_answered, n_refused;
    size_t from_at;             /* of the line that is answered next */
    char passing[TALK_WHY_MAX]; /* a SERVER_ERROR; "": none */
    struct buf rejects;         /* to be told: why, and where it comes from */
};

struct import {
    struct ask ask;
    const char *input; /* a file, "-", or HOST:PORT */
    const char *counter, *state, *rejects, *columns_text, *members_name;
    enum import_source source;
    enum rows_format format;
    struct import_map map;
    uint64_t rejects_most, database;
    bool has_no_end, is_anew, is_feed;
    bool may_save; /* --state is of this import, or there was none */
    char file[IMPORT_FILE_MAX]; /* its length and time; "": input is none */

    struct stop stop;
    struct shown shown;
    struct rows_columns columns[IMPORT_COUNTERS_MAX];
    unsigned n_columns;

    /* A ring: n_full batches that are not done, of which the first n_sent are
     * under way, then the one that is filled. */
    struct import_batch batch[IMPORT_WINDOW];
    unsigned first, n_full, n_sent;
    bool awaits_all; /* not only the answers of the first */
    bool is_untold;  /* what an answered batch refused could not be told */
    uint64_t parts;  /* of what shown counts as all */

    struct import_place place; /* of what was read and answered, and ... */
    struct import_place done;  /* ... as it was at the end of a batch that has
                                * a place of the input */
    FILE *rejects_file;
    uint64_t saved_ms;
    char why[IMPORT_WHY_MAX];
};

/* Writes why. Always false. */
__attribute__((format(printf, 2, 3))) bool import__fail(
    struct import *job, const char *format, ...);

/* Appends to what is sent: a line with its end, and where it comes from, one
 * line without its end. False where the import ends; so all that follow. */
bool import__put(struct import *job, const struct buf *line, const char *from,
    size_t from_len);

/* What is no line: into the file of rejects, in the order of the input. Bytes
 * that would end a line there are shown as '?'. */
bool import__reject(
    struct import *job, const char *why, const char *from, size_t from_len);

/* A key of another store that no rule fits: one that is near is rejected, see
 * import_map.h; any other is none of ours. */
bool import__pass_over(struct import *job, const char *key, size_t len);

/* Sends what there is. It is stored, or refused for good, later: as long as the
 * window has room nothing is waited for. */
bool import__send(struct import *job);

/* The same; and when that is done all of the input before `at` is, and nothing
 * behind it, which is noted now and then: from there on it is read, and what is
 * refused is told, by a run that goes on. */
bool import__flush(struct import *job, uint64_t at);

/* Waits until all that was sent is done. Where the input was not read to its
 * end nothing is sent again, and why stays; then, and where it ends on the way,
 * false. */
bool import__finish(struct import *job, bool is_read);
void import__free_batches(struct import *job);

/* Of the batches: the one that is filled. */
struct import_batch *import__filled(struct import *job);

/* Where a line comes from, behind those before it. */
void import__add_sent(
    struct import_batch *batch, const char *from, size_t from_len);

/* Of the line that is answered next; what was refused in front of it is to be
 * told. At NULL: there is none. */
struct rows_span import__next_sent(struct import_batch *batch);

/* It is to be told that this was refused. */
void import__refuse(
    struct import_batch *batch, struct rows_span why, struct rows_span from);

/* Tells what of an answered batch is refused. */
bool import__tell_rejects(struct import *job, struct import_batch *batch);

/* True when a batch is full; then the source says import__flush, or where it
 * is in the middle of something import__send. */
static inline bool
import__is_full(struct import *job)
{
    const struct import_batch *batch = import__filled(job);
    return batch->n_lines >= IMPORT_BATCH_LINES ||
        batch->lines.len >= IMPORT_BATCH_BYTES ||
        batch->from.len >= IMPORT_BATCH_BYTES;
}

/* One line to the server, whose answer may not be an error. */
bool import__say(struct import *job, const char *line, size_t len);

/* The columns of a counter of the server; NULL with why. */
const struct rows_columns *import__columns(
    struct import *job, const char *counter);

/* Reads, and writes, --state, which is never written where it was of another
 * import. */
bool import__load_state(struct import *job);
bool import__save_state(struct import *job);

/* The sources: all of the input from job->place on. */
bool import__file(struct import *job);
bool import__rdb(struct import *job);
bool import__redis(struct import *job);
bool import__memcached(struct import *job);

#endif
