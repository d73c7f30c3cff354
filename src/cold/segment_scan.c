/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads a segment from one end to the other: some blocks in one read, one
 * after the other decoded into the scan's arrays.
 *
 * This is where it is seen that blocks, index and head belong together: a
 * block's ids end below the first one of the next block, the last one of all is
 * that of the head, and a scan that began at block 0 met as many records as the
 * head has. Lookups do not need it: they find what is in the block that the
 * index leads to. */
#include "cold/segment_scan.h"

#include "base/assert.h"
#include "base/err.h"

enum { READ_BLOCKS = 64 /* of 4 KB, in one read */ };

struct segment_scan {
    const struct segment *segment;
    const struct alloc *alloc;
    uint32_t next, end;    /* block that comes next; behind the last one */
    uint32_t room_blocks;  /* that bytes has room for */
    uint32_t read_blocks;  /* that are read at once */
    uint32_t failed;       /* after an error: the one that came next */
    uint32_t in_bytes, at; /* blocks in bytes, and which is next */
    bool is_whole;         /* it began at block 0 */
    bool is_check;         /* what nobody reads is looked at, too */
    uint64_t records;      /* so far */
    uint8_t *bytes;        /* owned: room_blocks */
    uint64_t *id;          /* owned: room_records, and as many a column */
    size_t room_records;   /* grows to what the largest block has */
    struct block_room room;
};

/* Bytes of the ids and columns of n records. */
static size_t
array_bytes(const struct segment_scan *scan, size_t n)
{
    return (1 + segment_head(scan->segment)->n_columns) * n * sizeof(uint64_t);
}

int
segment_scan_create(const struct segment *segment, uint32_t block,
    const struct alloc *alloc, struct segment_scan **out)
{
    const struct segment_head *head = segment_head(segment);
    struct segment_scan *scan = alloc_zeroed(alloc, sizeof *scan);

    ASSERT(block <= head->n_blocks);
    *out = scan;
    if (scan == NULL) {
        return ERR_NO_MEMORY;
    }
    *scan = (struct segment_scan){.segment = segment,
        .alloc = alloc,
        .next = block,
        .end = head->n_blocks,
        .room_blocks =
            head->n_blocks < READ_BLOCKS ? head->n_blocks : READ_BLOCKS,
        .is_whole = block == 0,
        .room = {.alloc = alloc}};
    scan->read_blocks = scan->room_blocks;
    scan->bytes =
        alloc_zeroed(alloc, (size_t)scan->room_blocks * BLOCK_BYTES_MAX);
    if (scan->bytes == NULL) {
        segment_scan_destroy(out);
        return ERR_NO_MEMORY;
    }
    return 0;
}

void
segment_scan_destroy(struct segment_scan **scan)
{
    struct segment_scan *old = *scan;

    if (old == NULL) {
        return;
    }
    ASSERT(old->next <= old->end && old->at <= old->in_bytes);
    block_room_fini(&old->room);
    alloc_free(
        old->alloc, old->bytes, (size_t)old->room_blocks * BLOCK_BYTES_MAX);
    alloc_free(old->alloc, old->id, array_bytes(old, old->room_records));
    alloc_free(old->alloc, old, sizeof *old);
    *scan = NULL;
}

void
segment_scan_narrow(struct segment_scan *scan)
{
    ASSERT(scan->in_bytes == 0);
    scan->read_blocks = scan->read_blocks == 0 ? 0 : 1;
}

void
segment_scan_until(struct segment_scan *scan, uint64_t last_id)
{
    const struct segment_head *head = segment_head(scan->segment);
    uint32_t last;

    ASSERT(scan->in_bytes == 0);
    if (last_id < head->first_id) {
        scan->end = scan->next;
    } else if (segment_find(scan->segment, last_id, &last)) {
        scan->end = last + 1 < scan->next ? scan->next : last + 1;
    }
}

uint32_t
segment_scan_failed(const struct segment_scan *scan)
{
    return scan->failed;
}

static bool
make_arrays(struct segment_scan *scan, size_t n)
{
    size_t more = n + n / 8; /* the next one may have a few more */

    ASSERT(n > 0 && n <= BLOCK_RECORDS_MAX);
    if (n <= scan->room_records) {
        return true;
    }
    alloc_free(scan->alloc, scan->id, array_bytes(scan, scan->room_records));
    scan->id = alloc_zeroed(scan->alloc, array_bytes(scan, more));
    scan->room_records = scan->id == NULL ? 0 : more;
    return scan->id != NULL;
}

/* Whether the n ids of block number `block` end where they must, and whether
 * there are as many of all as there must be. */
static bool
belongs(const struct segment_scan *scan, uint32_t block, size_t n)
{
    const struct segment_head *head = segment_head(scan->segment);
    uint64_t last = scan->id[n - 1];

    ASSERT(n > 0 && n <= scan->room_records);
    if (block + 1 < head->n_blocks) {
        return last < segment_first_id(scan->segment, block + 1);
    }
    return last == head->last_id &&
        (!scan->is_whole || scan->records == head->records);
}

/* True where bytes from..to are 0. */
static bool
is_zero(const uint8_t *bytes, size_t from, size_t to)
{
    while (from < to && bytes[from] == 0) {
        from++;
    }
    return from == to;
}

/* Decodes the next block, which is in bytes. */
static int
take_block(struct segment_scan *scan, uint32_t number, size_t *n)
{
    const uint8_t *bytes = scan->bytes + (size_t)scan->at * BLOCK_BYTES_MAX;
    uint64_t *code[SCHEMA_COLUMNS_MAX];
    struct block block;
    ASSERT(scan->at < scan->in_bytes && number < scan->end);
    int err = segment__open_block(scan->segment, number, bytes, &block);

    if (err != 0) {
        return err;
    }
    if (!make_arrays(scan, block.n)) {
        return ERR_NO_MEMORY;
    }
    for (unsigned c = 0; c < block.n_columns; c++) {
        code[c] = scan->id + (1 + c) * scan->room_records;
    }
    err = block_decode(&block, &scan->room, scan->id, code);
    if (err == ERR_CORRUPT) {
        return segment__log_block(
            scan->segment, number, err, "the block is damaged");
    }
    if (err != 0) {
        return err;
    }
    if (scan->is_check && !is_zero(bytes, block.len, BLOCK_BYTES_MAX)) {
        return segment__log_block(scan->segment, number, ERR_CORRUPT,
            "what is behind the block's end is not what was written");
    }
    scan->records += block.n;
    if (!belongs(scan, number, block.n)) {
        return segment__log_block(scan->segment, number, ERR_CORRUPT,
            "the records are not what head and index say");
    }
    *n = block.n;
    return 0;
}

int
segment_scan_next(struct segment_scan *scan, struct segment_records *out)
{
    const struct segment_head *head = segment_head(scan->segment);
    uint32_t left = scan->end - scan->next;
    int err = 0;

    ASSERT(scan->next <= scan->end && scan->end <= head->n_blocks);
    out->n = 0;
    if (left == 0) {
        return 0;
    }
    if (scan->at == scan->in_bytes) {
        scan->at = 0;
        scan->in_bytes = left < scan->read_blocks ? left : scan->read_blocks;
        ASSERT(scan->in_bytes > 0 && scan->in_bytes <= scan->room_blocks);
        err = segment__read(
            scan->segment, scan->next, scan->in_bytes, scan->bytes);
    }
    if (err == 0) {
        err = take_block(scan, scan->next, &out->n);
    }
    ASSERT(err != 0 || (out->n > 0 && out->n <= scan->room_records));
    if (err != 0) {
        scan->failed = scan->next;
        scan->next = scan->end;
        return err;
    }
    scan->next++;
    scan->at++;
    out->id = scan->id;
    for (unsigned c = 0; c < head->n_columns; c++) {
        out->code[c] = scan->id + (1 + c) * scan->room_records;
    }
    return 0;
}

int
segment_check(const struct segment *segment, const struct alloc *alloc)
{
    struct segment_scan *scan;
    struct segment_records records;
    int err = segment_scan_create(segment, 0, alloc, &scan);

    if (err == 0) {
        scan->is_check = true;
    }
    while (err == 0) {
        err = segment_scan_next(scan, &records);
        if (err == 0 && records.n == 0) {
            break;
        }
    }
    segment_scan_destroy(&scan);
    return err;
}
