/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads a segment file.
 *
 *   segment_open: head -> length of the file -> index
 *   segment_find: the index -> a block's number, and so its place
 *   segment__try_block: one read -> checksum, first id, columns
 *
 * In memory are the head and the first id of each block, eight bytes each:
 * some 0.005 bytes a record. A lookup is a binary search in these and one read
 * of one block.
 *
 * Nothing that the file says is trusted for its checksum. The length of the
 * file bounds what is allocated for the index: 4,096 bytes of it stand for
 * eight in memory. A block must begin with the id that the index has, and have
 * the segment's columns; segment_scan.c, which reads all blocks, checks that
 * its ids end before the next block.
 *
 * What can go wrong: damage, a newer version, memory, the disk. All but memory
 * go to the logger with the name of the file, damage of blocks with the
 * offset. */
#include "cold/segment.h"

#include "base/assert.h"
#include "base/err.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>

_Static_assert((int)BLOCK_BYTES_MAX == (int)DISK_DIRECT_BYTES &&
        (int)SEGMENT_HEAD_BYTES % (int)DISK_DIRECT_BYTES == 0,
    "blocks are read past the page cache as they lie");

enum { SEGMENT_MAGIC = 0x0be7a45d };

struct segment {
    uint32_t magic; /* SEGMENT_MAGIC */
    struct segment_config config;
    struct segment_head head;
    int fd;
    int direct_fd;   /* the same past the page cache; -1: none */
    uint64_t *first; /* owned: head.n_blocks */
};

static size_t
first_bytes(const struct segment *segment)
{
    return segment->head.n_blocks * sizeof *segment->first;
}

/* Says of what is at offset `at` of the file; returns err. */
static int
log_error(const struct segment_config *config, uint64_t number, uint64_t at,
    int err, const char *what)
{
    if (config->logger != NULL) {
        char name[SEGMENT_NAME_BYTES];

        segment_name(name, number, false);
        log_line(config->logger, LOG_ERROR, "%s, offset %" PRIu64 ": %s", name,
            at, what);
    }
    return err;
}

static int
log_disk_error(const struct segment_config *config, uint64_t number,
    uint64_t at, int error)
{
    return log_error(config, number, at, disk_err(error), disk_text(error));
}

int
segment__log_block(
    const struct segment *segment, uint32_t block, int err, const char *what)
{
    return log_error(&segment->config, segment->head.number,
        segment_block_at(block), err, what);
}

/* Reads all of len bytes; says in *fault why not. */
static int
try_read(const struct segment_config *config, int fd, uint64_t at,
    uint8_t *bytes, size_t len, struct segment_fault *fault)
{
    size_t n;
    int error =
        config->disk->calls->read(config->disk, fd, bytes, len, at, &n);

    if (error != 0) {
        *fault = (struct segment_fault){.at = at, .error = error};
        return disk_err(error);
    }
    if (n != len) {
        *fault = (struct segment_fault){
            .at = at + n, .what = "the file ends too soon"};
        return ERR_CORRUPT;
    }
    return 0;
}

static const char *
fault_text(const struct segment_fault *fault)
{
    return fault->error != 0 ? disk_text(fault->error) : fault->what;
}

/* The same, and says so. */
static int
read_at(const struct segment_config *config, int fd, uint64_t number,
    uint64_t at, uint8_t *bytes, size_t len)
{
    struct segment_fault fault;
    int err = try_read(config, fd, at, bytes, len, &fault);

    return err == 0
        ? 0
        : log_error(config, number, fault.at, err, fault_text(&fault));
}

/* Head and length of the file. */
static int
read_head(struct segment *segment, uint64_t epoch, uint64_t number)
{
    const struct segment_config *config = &segment->config;
    uint8_t bytes[SEGMENT_HEAD_BYTES];
    uint64_t len;
    int error;
    int err = read_at(config, segment->fd, number, 0, bytes, sizeof bytes);

    if (err != 0) {
        return err;
    }
    err = segment_head_get(bytes, epoch, number, &segment->head);
    if (err == ERR_NEWER_FORMAT) {
        return log_error(config, number, 0, err, err_file_text(err));
    }
    if (err != 0) {
        return log_error(config, number, 0, err,
            segment_head_is_foreign(bytes, epoch, number)
                ? "the file is of another history, data directory or number: a "
                  "copy that went on for itself has written it, or this "
                  "directory before a backup was put over it"
                : "the head is damaged");
    }
    error = config->disk->calls->size(config->disk, segment->fd, &len);
    if (error != 0) {
        return log_disk_error(config, number, 0, error);
    }
    if (len != segment_file_bytes(&segment->head)) {
        return log_error(config, number, len, ERR_CORRUPT,
            "the file has not the length that its head says");
    }
    return 0;
}

/* The head is checked, and with it the length of the file. */
static int
read_index(struct segment *segment)
{
    const struct segment_config *config = &segment->config;
    const struct segment_head *head = &segment->head;
    uint64_t at = segment_block_at(head->n_blocks);
    uint8_t *bytes = alloc_zeroed(config->alloc, head->index_bytes);
    int err = ERR_NO_MEMORY;

    segment->first = alloc_zeroed(config->alloc, first_bytes(segment));
    if (bytes != NULL && segment->first != NULL) {
        err = read_at(
            config, segment->fd, head->number, at, bytes, head->index_bytes);
    }
    if (err == 0 && segment_index_get(head, bytes, segment->first) != 0) {
        err = log_error(
            config, head->number, at, ERR_CORRUPT, "the index is damaged");
    }
    alloc_free(config->alloc, bytes, head->index_bytes);
    ASSERT(err != 0 ||
        (segment->first[0] == head->first_id &&
            segment->first[head->n_blocks - 1] <= head->last_id));
    return err;
}

static int
open_file(struct segment *segment, uint64_t number)
{
    struct disk *disk = segment->config.disk;
    char name[SEGMENT_NAME_BYTES];
    int error;

    segment_name(name, number, false);
    error = disk->calls->open(disk, name, DISK_READ, &segment->fd);
    if (error == 0) {
        return 0;
    }
    segment->fd = -1;
    return log_error(&segment->config, number, 0,
        error == ENOENT || error == DISK_NOT_REGULAR ? ERR_CORRUPT
                                                     : disk_err(error),
        disk_text(error));
}

/* True where so many descriptors are in use that one which could be done
 * without is not to be kept: the kernel gives the lowest number there is. */
static bool
is_scarce(int fd)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
        (rlim_t)fd >= limit.rlim_cur / 2;
}

/* A second descriptor, for rings. Where the file system has none such, or half
 * of those that the process may have are in use, reads go through the page
 * cache. */
static void
open_direct(struct segment *segment)
{
    struct disk *disk = segment->config.disk;
    char name[SEGMENT_NAME_BYTES];
    int fd;

    ASSERT(segment->fd >= 0 && segment->direct_fd < 0);
    segment_name(name, segment->head.number, false);
    if (disk->calls->open(disk, name, DISK_DIRECT, &fd) != 0) {
        return;
    }
    if (is_scarce(fd)) {
        disk->calls->close(disk, fd);
        return;
    }
    segment->direct_fd = fd;
}

int
segment_open(const struct segment_config *config, uint64_t epoch,
    uint64_t number, struct segment **out)
{
    struct segment *segment = alloc_zeroed(config->alloc, sizeof *segment);
    int err;

    *out = NULL;
    if (segment == NULL) {
        return ERR_NO_MEMORY;
    }
    segment->magic = SEGMENT_MAGIC;
    segment->config = *config;
    segment->direct_fd = -1;
    err = open_file(segment, number);
    if (err == 0) {
        err = read_head(segment, epoch, number);
    }
    if (err == 0) {
        err = read_index(segment);
    }
    if (err != 0) {
        segment_close(&segment);
        return err;
    }
    if (config->is_direct) {
        open_direct(segment);
    }
    *out = segment;
    return 0;
}

void
segment_close(struct segment **segment)
{
    struct segment *old = *segment;

    if (old == NULL) {
        return;
    }
    ASSERT(old->magic == SEGMENT_MAGIC);
    old->magic = 0;
    if (old->fd >= 0) {
        old->config.disk->calls->close(old->config.disk, old->fd);
    }
    if (old->direct_fd >= 0) {
        old->config.disk->calls->close(old->config.disk, old->direct_fd);
    }
    alloc_free(old->config.alloc, old->first, first_bytes(old));
    alloc_free(old->config.alloc, old, sizeof *old);
    *segment = NULL;
}

bool
segment__is_direct(const struct segment *segment)
{
    return segment->direct_fd >= 0;
}

const struct segment_head *
segment_head(const struct segment *segment)
{
    return &segment->head;
}

size_t
segment_memory(const struct segment *segment)
{
    return sizeof *segment + first_bytes(segment);
}

bool
segment_find(const struct segment *segment, uint64_t id, uint32_t *block)
{
    const struct segment_head *head = &segment->head;
    const uint64_t *first = segment->first;

    if (id < head->first_id || id > head->last_id) {
        return false;
    }
    /* it is one of n from first on, which begins with id or below it */
    for (uint32_t n = head->n_blocks; n > 1;) {
        uint32_t half = n / 2;

        first += first[half] <= id ? half : 0;
        n -= half;
    }
    *block = (uint32_t)(first - segment->first);
    return true;
}

uint32_t
segment_from(const struct segment *segment, uint64_t id)
{
    uint32_t block = id > segment->head.last_id ? segment->head.n_blocks : 0;
    (void)segment_find(segment, id, &block);
    return block;
}

uint64_t
segment_first_id(const struct segment *segment, uint32_t block)
{
    ASSERT(block < segment->head.n_blocks);
    return segment->first[block];
}

int
segment__read(
    const struct segment *segment, uint32_t block, uint32_t n, uint8_t *bytes)
{
    ASSERT(
        block < segment->head.n_blocks && n <= segment->head.n_blocks - block);
    return read_at(&segment->config, segment->fd, segment->head.number,
        segment_block_at(block), bytes, (size_t)n * BLOCK_BYTES_MAX);
}

/* The fault's place is the block. */
int
segment__check_block(const struct segment *segment, uint32_t block,
    const uint8_t *bytes, struct block *out, struct segment_fault *fault)
{
    const struct segment_head *head = &segment->head;
    ASSERT(segment->magic == SEGMENT_MAGIC && block < head->n_blocks);
    int err = block_open(
        bytes, BLOCK_BYTES_MAX, segment_seed_block(head, block), out);

    *fault = (struct segment_fault){.at = segment_block_at(block)};
    if (err == ERR_NEWER_FORMAT) {
        fault->what = err_file_text(err);
    } else if (err != 0) {
        fault->what = "the block is damaged";
    } else if (out->n_columns != head->n_columns ||
        out->first_id != segment->first[block]) {
        fault->what = "the block is not what head and index say";
        err = ERR_CORRUPT;
    }
    return err;
}

int
segment__open_block(const struct segment *segment, uint32_t block,
    const uint8_t *bytes, struct block *out)
{
    struct segment_fault fault;
    int err = segment__check_block(segment, block, bytes, out, &fault);

    if (err != 0) {
        segment__log_fault(segment, &fault);
    }
    return err;
}

int
segment__try_block(const struct segment *segment, uint32_t block,
    uint8_t *bytes, struct block *out, struct segment_fault *fault)
{
    int err;

    ASSERT(segment->magic == SEGMENT_MAGIC);
    ASSERT(block < segment->head.n_blocks);
    err = try_read(&segment->config, segment->fd, segment_block_at(block),
        bytes, BLOCK_BYTES_MAX, fault);
    return err != 0 ? err
                    : segment__check_block(segment, block, bytes, out, fault);
}

void
segment__block_read(const struct segment *segment, uint32_t block,
    uint8_t *bytes, struct disk_read *read)
{
    ASSERT(segment->magic == SEGMENT_MAGIC);
    ASSERT(block < segment->head.n_blocks);
    *read = (struct disk_read){
        .fd = segment->direct_fd >= 0 ? segment->direct_fd : segment->fd,
        .bytes = bytes,
        .len = BLOCK_BYTES_MAX,
        .at = segment_block_at(block)};
}

void
segment__log_fault(
    const struct segment *segment, const struct segment_fault *fault)
{
    ASSERT(segment->magic == SEGMENT_MAGIC);
    (void)log_error(&segment->config, segment->head.number, fault->at, 0,
        fault_text(fault));
}
