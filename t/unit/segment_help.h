/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_SEGMENT_HELP_H
#define UNIT_SEGMENT_HELP_H

/* What the tests of segments share: records of all kinds, written to a file and
 * compared with what a segment answers. */

#include "base/err.h"
#include "cold/segment_scan.h"
#include "cold/segment_write.h"
#include "lib/id_family.h"
#include "lib/segment_get.h"
#include "unit/block_help.h"

enum { SEGMENT_EPOCH = 77, SEGMENT_NUMBER = 5, SEGMENT_RECORDS_MAX = 20000 };

struct records {
    size_t n;
    unsigned n_columns;
    uint64_t id[SEGMENT_RECORDS_MAX];
    uint64_t code[SEGMENT_RECORDS_MAX][COLUMNS_MAX];
};

static inline void
make_records(struct records *records, enum id_family family, enum look look,
    size_t n, unsigned n_columns)
{
    struct dist_rng rng;

    ck_assert(n <= SEGMENT_RECORDS_MAX && n_columns <= COLUMNS_MAX);
    dist_rng_init(&rng, n, n_columns);
    records->n = n;
    records->n_columns = n_columns;
    id_family_make(family, n, n, records->id);
    for (size_t i = 0; i < n; i++) {
        for (unsigned c = 0; c < n_columns; c++) {
            records->code[i][c] = make_code(look, &rng);
        }
    }
}

/* A head with every second slot, or all. */
static inline struct segment_head
make_head(uint64_t number, unsigned n_columns)
{
    struct segment_head head = {.epoch = SEGMENT_EPOCH,
        .number = number,
        .seq = 1000 + number,
        .counter_serial = 9,
        .counter = 3,
        .n_columns = (uint8_t)n_columns};

    for (unsigned i = 0; i < n_columns; i++) {
        head.column[i] = (struct segment_column){.serial = 100 - i,
            .slot = (uint8_t)(n_columns <= 8 ? 2 * i + 1 : i),
            .default_value = i == 1 ? UINT64_MAX : i};
    }
    return head;
}

/* Writes them; the error, and the head where it is 0. */
static inline int
write_records(const struct segment_write_config *config, uint64_t number,
    const struct records *records, struct segment_head *out)
{
    struct segment_head head = make_head(number, records->n_columns);
    struct segment_writer *writer;
    int err = segment_write_begin(config, &head, &writer);

    if (err != 0) {
        ck_assert_ptr_null(writer);
        return err;
    }
    for (size_t i = 0; err == 0 && i < records->n; i++) {
        err = segment_write_add(writer, records->id[i], records->code[i]);
    }
    if (err != 0) {
        ck_assert_int_eq(
            segment_write_add(writer, UINT64_MAX, records->code[0]), err);
    }
    if (err != 0 && records->n % 2 == 0) {
        segment_write_abort(&writer);
    } else {
        int end_err = segment_write_end(&writer, out);
        ck_assert(err == 0 || end_err == err);
        err = end_err;
    }
    ck_assert_ptr_null(writer);
    return err;
}

static inline void
check_head(const struct segment_head *head, const struct records *records)
{
    struct segment_head want = make_head(head->number, records->n_columns);
    bool same = head->epoch == want.epoch && head->seq == want.seq &&
        head->counter_serial == want.counter_serial &&
        head->counter == want.counter && head->n_columns == want.n_columns;

    for (unsigned c = 0; c < want.n_columns; c++) {
        const struct segment_column *column = &head->column[c];

        same = same && column->serial == want.column[c].serial &&
            column->slot == want.column[c].slot &&
            column->default_value == want.column[c].default_value;
    }
    same = same && head->records == records->n &&
        head->first_id == records->id[0] &&
        head->last_id == records->id[records->n - 1];
    ck_assert(same);
}

/* Compares the records of one block with those from `from` on. */
static inline void
check_batch(const struct segment_records *batch, const struct records *records,
    size_t from)
{
    bool same = true; /* one assertion for all: each one is a system call */

    ck_assert_uint_le(batch->n, records->n - from);
    for (size_t i = 0; i < batch->n; i++) {
        same = same && batch->id[i] == records->id[from + i];
        for (unsigned c = 0; c < records->n_columns; c++) {
            same = same && batch->code[c][i] == records->code[from + i][c];
        }
    }
    ck_assert(same);
}

/* Reads all records; the error, after which only the first were right. */
static inline int
scan_records(const struct segment *segment, const struct records *records,
    const struct alloc *alloc)
{
    struct segment_scan *scan;
    struct segment_records batch;
    size_t n = 0;
    int err = segment_scan_create(segment, 0, alloc, &scan);

    while (err == 0) {
        err = segment_scan_next(scan, &batch);
        ck_assert(err == 0 || batch.n == 0);
        check_batch(&batch, records, n);
        n += batch.n;
        if (batch.n == 0) {
            break;
        }
    }
    ck_assert(err != 0 || n == records->n);
    segment_scan_destroy(&scan);
    return err;
}

#endif
