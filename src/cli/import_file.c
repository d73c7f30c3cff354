/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of a file. One that can be read twice is read as a whole first: if it
 * has been cut off, or a byte of it is another, nothing is stored. What a pipe
 * brings is stored as it comes, and only the end tells. */
#include "cli/import_priv.h"

#include "base/assert.h"
#include "base/checksum.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LINE_BYTES = ROWS_LINE_MAX + 2, /* with its end */
    BLOCK_BYTES = 1 << 17
};
static_assert(LINE_BYTES < BLOCK_BYTES, "a line is in one block");

struct reading {
    struct import *job;
    int fd;
    bool is_regular;
    struct rows_reader reader;
    struct rows_columns own;     /* of the dialect: as the file has them */
    char block[BLOCK_BYTES + 1]; /* of which [block_at, block_to) is still to
                                  * be read; one more is for a newline */
    size_t block_at, block_to;
    char *line;
    uint64_t at;         /* bytes of the file before block_at */
    uint64_t line_at;    /* where the bytes in line begin */
    uint64_t rows;       /* lines that have rows, or lines of the schema */
    struct rows_end end; /* of the last line */
    bool has_end, has_columns;
    struct checksum_stream *sum;
    struct buf put;
};

static bool
cut_off(struct reading *reading)
{
    return import__fail(reading->job,
        "%s has no last line that says it is whole: it may have been cut off. "
        "--no-end takes it as it is",
        reading->job->input);
}

/* Spreadsheets write a byte order mark of UTF-8 in front of the first line. How
 * many bytes of the line it is. */
static ssize_t
mark_len(const char *line, ssize_t n)
{
    static const char mark[] = {'\xef', '\xbb', '\xbf'};
    bool is_there =
        n >= (ssize_t)sizeof mark && memcmp(line, mark, sizeof mark) == 0;
    return is_there ? (ssize_t)sizeof mark : 0;
}

/* Reads more behind what is left of the block. False with why; *is_end at the
 * end of the file. */
static bool
read_block(struct reading *reading, bool *is_end)
{
    size_t left = reading->block_to - reading->block_at;
    ASSERT(left < sizeof reading->block);
    memmove(reading->block, reading->block + reading->block_at, left);
    reading->block_at = 0;
    reading->block_to = left;
    ssize_t n;
    do {
        n = read(reading->fd, reading->block + left, BLOCK_BYTES - left);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        return import__fail(
            reading->job, "%s: %s", reading->job->input, strerror(errno));
    }
    *is_end = n == 0;
    reading->block_to += (size_t)n;
    return true;
}

/* The next line, without its end, which is the block's until the next one is
 * read; *len -1 at the end of the file. */
static bool
next_line(struct reading *reading, ssize_t *len)
{
    const char *end = NULL;
    bool is_end = false;
    size_t n = 0; /* bytes that are looked at */
    while (!is_end && n < LINE_BYTES) {
        char *begin = reading->block + reading->block_at;
        size_t there = reading->block_to - reading->block_at;
        end = memchr(begin + n, '\n', there - n);
        n = end != NULL ? (size_t)(end + 1 - begin) : there;
        if (end != NULL) {
            break;
        }
        if (n < LINE_BYTES && !read_block(reading, &is_end)) {
            return false;
        }
    }
    if (n == 0) {
        *len = -1;
        return true;
    }
    if (n > LINE_BYTES || (n == LINE_BYTES && end == NULL)) {
        return import__fail(reading->job,
            "%s has a line of more than %d bytes: no row has",
            reading->job->input, (int)ROWS_LINE_MAX);
    }
    reading->line = reading->block + reading->block_at;
    ssize_t skipped =
        reading->at == 0 ? mark_len(reading->line, (ssize_t)n) : 0;
    reading->line += skipped;
    reading->line_at = reading->at + (uint64_t)skipped;
    reading->at += n;
    reading->block_at += n;
    *len = (ssize_t)n - skipped;
    *len -= *len > 0 && reading->line[*len - 1] == '\n';
    *len -= *len > 0 && reading->line[*len - 1] == '\r';
    return true;
}

/* Goes on at that byte. False where that cannot be: a pipe. */
static bool
go_to(struct reading *reading, uint64_t at)
{
    reading->at = at;
    reading->block_at = reading->block_to = 0;
    return lseek(reading->fd, (off_t)at, SEEK_SET) == (off_t)at;
}

/* ---- all of it, before ---- */

/* Sums up the bytes before the last line, and compares. */
static bool
verify(struct reading *reading)
{
    ssize_t len = 0;
    struct rows_end end = {0};
    bool has_end = false;
    checksum_stream_begin(reading->sum);
    bool is_read;
    while ((is_read = next_line(reading, &len)) && len >= 0) {
        if (has_end) {
            return import__fail(reading->job,
                "%s goes on behind its last line", reading->job->input);
        }
        has_end = rows_is_end(reading->line, (size_t)len, &end);
        if (!has_end) {
            checksum_stream_add(reading->sum, reading->line,
                (size_t)(reading->at - reading->line_at));
        }
    }
    if (!is_read) {
        return false;
    }
    if (!has_end) {
        return reading->job->has_no_end || cut_off(reading);
    }
    if (checksum_stream_sum(reading->sum) != end.sum) {
        return import__fail(reading->job,
            "%s is not as it was written: its bytes have another checksum",
            reading->job->input);
    }
    return true;
}

/* ---- the schema ---- */

/* Of the dialect: lines of the schema make the counter where there is none, and
 * give the names of the columns. */
static bool
take_schema_line(struct reading *reading, size_t len, bool is_there)
{
    struct import *job = reading->job;
    if (!rows_columns_take(&reading->own, reading->line, len)) {
        return import__fail(job, "no line of a schema: %.*s",
            len > 100 ? 100 : (int)len, reading->line);
    }
    reading->line[len] = '\n';
    return is_there || import__say(job, reading->line, len + 1);
}

/* Reads the lines in front of the records, and the columns of the server. */
static bool
take_schema(struct reading *reading)
{
    struct import *job = reading->job;
    uint64_t at = reading->at;
    ssize_t len = 0;
    const struct rows_columns *there = import__columns(job, job->counter);
    bool is_there = there != NULL;
    job->why[0] = '\0';
    while (next_line(reading, &len) && len >= 0 &&
        talk_begins(reading->line, (size_t)len, "add ")) {
        if (!take_schema_line(reading, (size_t)len, is_there)) {
            return false;
        }
        reading->rows++;
        at = reading->at;
    }
    if (job->why[0] != '\0') {
        return false;
    }
    if (reading->own.counter.len == 0 ||
        strcmp(reading->own.counter.text, job->counter) != 0) {
        return import__fail(job,
            "%s does not begin with the schema of %s, as `tallyctl export "
            "--format=dialect` writes it",
            job->input, job->counter);
    }
    if (is_there && there->has_names != reading->own.has_names) {
        return import__fail(job,
            "%s has ids that are %s, and %s on the server "
            "has others",
            job->input, reading->own.has_names ? "names" : "numbers",
            job->counter);
    }
    reading->reader.columns = &reading->own;
    talk_close(&job->ask.talk);
    return go_to(reading, at) ||
        import__fail(
            job, "a file of the dialect cannot come by a pipe: give its name");
}

/* Of csv and tsv: the header, or --columns. */
static bool
take_header(struct reading *reading)
{
    struct import *job = reading->job;
    struct rows_reader *reader = &reading->reader;
    const char *text = job->columns_text;
    ssize_t len = 0;
    if (text != NULL) {
        enum rows_format format = reader->format;
        reader->format = ROWS_CSV; /* --columns has commas */
        bool is_taken = rows_take_header(reader, text, strlen(text));
        reader->format = format;
        return is_taken || import__fail(job, "--columns: %s", reader->why);
    }
    if (!next_line(reading, &len)) {
        return false;
    }
    if (len >= 0) {
        checksum_stream_add(reading->sum, reading->line, (size_t)len);
        checksum_stream_add(reading->sum, "\n", 1);
    }
    return (len >= 0 &&
               rows_take_header(reader, reading->line, (size_t)len)) ||
        import__fail(
            job, "%s: %s", job->input, len < 0 ? "is empty" : reader->why);
}

static bool
begin_rows(struct reading *reading)
{
    struct import *job = reading->job;
    struct rows_reader *reader = &reading->reader;
    reader->format = job->format;
    reader->members = -1;
    if (job->format == ROWS_DIALECT) {
        return take_schema(reading);
    }
    reader->columns = import__columns(job, job->counter);
    if (reader->columns == NULL) {
        return false;
    }
    if (job->members_name != NULL) {
        reader->members = rows_members_of(
            reader->columns, job->members_name, strlen(job->members_name));
        if (reader->members < 0) {
            return import__fail(job, "%s has no column of members %s",
                job->counter, job->members_name);
        }
    }
    return job->format == ROWS_NDJSON || take_header(reading);
}

/* ---- rows ---- */

static bool
take_line(struct reading *reading, size_t len)
{
    struct import *job = reading->job;
    struct row row;
    switch (
        rows_take(&reading->reader, reading->line, len, &row, &reading->end)) {
    case ROWS_NONE:
        reading->rows += len > 0;
        return true;
    case ROWS_END:
        reading->has_end = true;
        return true;
    case ROWS_BAD:
        reading->rows++;
        return import__reject(job, reading->reader.why, reading->line, len);
    case ROWS_LINE:
        buf_clear(&reading->put);
        buf_add(&reading->put, reading->line, len);
        buf_add_text(&reading->put, "\n");
        break;
    case ROWS_ROW:
        buf_clear(&reading->put);
        rows_put_set(reading->reader.columns, &row, &reading->put);
        break;
    }
    reading->rows++;
    return import__put(job, &reading->put, reading->line, len);
}

static bool
take_rows(struct reading *reading)
{
    struct import *job = reading->job;
    ssize_t len = 0;
    bool is_read;
    while ((is_read = next_line(reading, &len)) && len >= 0) {
        if (reading->has_end) {
            return import__fail(
                job, "%s goes on behind its last line", job->input);
        }
        if (!take_line(reading, (size_t)len)) {
            return false;
        }
        if (!reading->has_end && !reading->is_regular) {
            checksum_stream_add(reading->sum, reading->line, (size_t)len);
            checksum_stream_add(reading->sum, "\n", 1);
        }
        job->parts = reading->at;
        if (import__is_full(job) && !import__flush(job, reading->at)) {
            return false;
        }
    }
    return is_read && import__flush(job, reading->at);
}

/* What came by a pipe was stored as it came. */
static bool
judge_pipe(struct reading *reading)
{
    struct import *job = reading->job;
    if (!reading->has_end) {
        return job->has_no_end || cut_off(reading);
    }
    return (reading->end.rows == reading->rows &&
               reading->end.sum == checksum_stream_sum(reading->sum)) ||
        import__fail(job,
            "the input is not as it was written: %" PRIu64 " rows came, it "
            "had %" PRIu64,
            reading->rows, reading->end.rows);
}

static bool
run(struct reading *reading)
{
    struct import *job = reading->job;
    struct stat stat = {0};
    if (reading->fd < 0 || fstat(reading->fd, &stat) != 0) {
        return import__fail(job, "%s: %s", job->input, strerror(errno));
    }
    if (reading->sum == NULL) {
        return import__fail(job, "out of memory");
    }
    reading->is_regular = S_ISREG(stat.st_mode);
    if (!reading->is_regular && job->state != NULL) {
        return import__fail(job, "--state wants a file that has a name");
    }
    if (reading->is_regular) {
        if (!verify(reading)) {
            return false;
        }
        (void)go_to(reading, 0);
    }
    checksum_stream_begin(reading->sum);
    shown_begin(&job->shown, "rows", (uint64_t)stat.st_size);
    if (!begin_rows(reading)) {
        return false;
    }
    if (job->place.at > reading->at) {
        (void)go_to(reading, job->place.at);
    }
    return take_rows(reading) && (reading->is_regular || judge_pipe(reading));
}

bool
import__file(struct import *job)
{
    static struct reading reading;
    bool is_pipe = strcmp(job->input, "-") == 0;
    reading.job = job;
    reading.fd =
        is_pipe ? STDIN_FILENO : open(job->input, O_RDONLY | O_CLOEXEC);
    reading.sum = checksum_stream_create();
    bool is_done = run(&reading);
    buf_fini(&reading.put);
    checksum_stream_destroy(&reading.sum);
    if (!is_pipe && reading.fd >= 0) {
        (void)close(reading.fd);
    }
    return is_done;
}
