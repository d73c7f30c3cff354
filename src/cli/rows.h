/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLI_ROWS_H
#define CLI_ROWS_H

#include "base/buf.h"
#include "names/own_id.h"
#include "schema/schema.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Records of one counter as lines of files: what export writes and import
 * reads. Pure, but for the memory of buffers. One thread.
 *
 *   csv       a header, then "1234,5,0": an id, and a number a column; an empty
 *             field says nothing of its column
 *   tsv       the same with tabs; \N says nothing
 *   ndjson    {"id":1234,"likes":5,"reposts":0}, and for a member
 *             {"id":1234,"members":"liked","member":77,"value":1}
 *   dialect   the lines that store it, as `dump counter` answers them
 *
 * An id that is a name stands as it is in csv and tsv, in csv in quotes where
 * it has a comma or quotes; in ndjson it is a string, where a byte that is not
 * of UTF-8 is \udc80 to \udcff, by its number.
 *
 * The last line of a file that is whole says so: how many rows it has, and the
 * XXH3 of all bytes before that line. */

enum rows_format { ROWS_CSV, ROWS_TSV, ROWS_NDJSON, ROWS_DIALECT };

enum {
    ROWS_FIELDS_MAX = 256, /* of a line of csv and tsv */
    ROWS_LINE_MAX = 8192,
    ROWS_END_BYTES_MAX = 96, /* of the last line, with its end */
    ROWS_WHY_MAX = 200
};

/* The columns of a counter, as `show counter` has them. */
struct rows_columns {
    struct schema_name counter;
    struct schema_name key;
    bool has_names; /* its ids are names */
    unsigned n;     /* values in a record's line */
    struct schema_name name[SCHEMA_COLUMNS_MAX];
    struct schema_name suffix[SCHEMA_COLUMNS_MAX]; /* empty: none */
    uint64_t default_value[SCHEMA_COLUMNS_MAX];
    bool is_mark[SCHEMA_COLUMNS_MAX];    /* how far an id has read something */
    bool is_list[SCHEMA_COLUMNS_MAX];    /* always 0: not shown */
    bool is_counted[SCHEMA_COLUMNS_MAX]; /* by members: it is never stored, for
                                          * they make it */
    unsigned n_members;
    struct schema_name members[SCHEMA_COLUMNS_MAX]; /* suffixes, or names */
    struct schema_name members_name[SCHEMA_COLUMNS_MAX];
    bool is_about[SCHEMA_COLUMNS_MAX]; /* members that no server can list */
};

struct rows_id {
    uint64_t number;
    const char *name; /* NULL: it is the number; else who filled it in says how
                       * long it stays */
    size_t len;       /* of the name, 1..NAME_BYTES_MAX */
};

struct row {
    struct rows_id id; /* a name is in the line, or the reader's */
    unsigned n;        /* numbers: 0..SCHEMA_COLUMNS_MAX */
    struct {
        uint8_t column; /* of rows_columns.name */
        uint64_t value;
    } cell[SCHEMA_COLUMNS_MAX];
    bool is_member; /* then n is 0, and: */
    uint8_t members;
    uint64_t member, value;
};

struct rows_end {
    uint64_t rows;
    uint64_t sum;
};

struct rows_reader {
    enum rows_format format;
    const struct rows_columns *columns;
    unsigned n_fields; /* of csv and tsv; 0: no header was taken yet */
    int field[ROWS_FIELDS_MAX]; /* a column's number, or ROWS_ID .. */
    int members; /* of csv and tsv: rows are members of that; -1: records */
    char text[NAME_BYTES_MAX]; /* a name that was written in another way */
    char why[ROWS_WHY_MAX];    /* of a line that is none */
};

/* Fields that are no columns; a file of members has id, member and value. */
enum {
    ROWS_NO_FIELD = -1,
    ROWS_ID = -2,
    ROWS_SKIP = -3,
    ROWS_MEMBER = -4,
    ROWS_VALUE = -5
};

enum rows_took {
    ROWS_ROW,
    ROWS_LINE, /* of dialect: a line to be sent as it is */
    ROWS_NONE, /* blank, or an id without anything of it */
    ROWS_END,
    ROWS_BAD /* why says what is wrong */
};

/* "csv" ...; false: no such format. */
bool rows_format_of(const char *name, enum rows_format *out);

/* The place of the column of members with that name or suffix, or -1. */
int rows_members_of(
    const struct rows_columns *columns, const char *name, size_t len);

/* The place of the number or mark of that name, or -1: lists have none. */
int rows_column_of(
    const struct rows_columns *columns, const char *name, size_t len);

/* True where the text is an id of that counter. The id has the text. */
bool rows_id_of(const struct rows_columns *columns, const char *text,
    size_t len, struct rows_id *out);

/* Less than 0, 0 or more, as memcmp. */
int rows_compare_ids(const struct rows_id *left, const struct rows_id *right);

/* Appends the id as it is, digits or a name; and the key, or the word of the
 * dialect, of one of its columns, with the name in braces. */
void rows_put_id(const struct rows_id *id, struct buf *out);
void rows_put_key(const struct rows_id *id, const struct schema_name *column,
    struct buf *out);

/* Takes a line of `show counter`. False where it is none that is understood. */
bool rows_columns_take(
    struct rows_columns *columns, const char *line, size_t len);

/* Reads a line of `dump counter`: ROWS_ROW, ROWS_LINE for one of the schema,
 * or ROWS_BAD. */
enum rows_took rows_take_dumped(const struct rows_columns *columns,
    const char *line, size_t len, struct row *out);

/* The header of csv and tsv, in its own form; fields are the key's name or
 * "id", columns by name, and "-" or "" for what is passed over. False with
 * why. */
bool rows_take_header(
    struct rows_reader *reader, const char *line, size_t len);

/* One line without its end. Of ROWS_ROW *row is filled, without what members
 * count; of ROWS_END *end. */
enum rows_took rows_take(struct rows_reader *reader, const char *line,
    size_t len, struct row *row, struct rows_end *end);

/* Append a header, which only csv and tsv have, with members of one column or
 * -1; a row; the last line. */
void rows_put_header(enum rows_format format,
    const struct rows_columns *columns, int members, struct buf *out);
void rows_put(enum rows_format format, const struct rows_columns *columns,
    const struct row *row, struct buf *out);
void rows_put_end(
    enum rows_format format, const struct rows_end *end, struct buf *out);

/* True for the last line of a file that is whole. */
bool rows_is_end(const char *line, size_t len, struct rows_end *out);

/* Appends the line of the dialect that stores it; the same line again changes
 * nothing. */
void rows_put_set(const struct rows_columns *columns, const struct row *row,
    struct buf *out);

#endif
