/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads a segment block by block, whatever is damaged.
 *
 * Each block stands at a place that follows from its number, begins with its
 * first id, and has a checksum of its own that is right there and nowhere else.
 * So neither head nor index is needed to know a sound block; the head is, to
 * know of which columns its numbers are. Ids ascend from block to block; a
 * block that breaks that rule is none of this file.
 *
 * What is lost with a block is known by its neighbours: the ids between the
 * last one before it and the first one behind. */
#include "offline/segment_mend.h"

#include "base/assert.h"
#include "base/err.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct segment_mend {
    struct segment_mend_config config;
    struct segment_head head;
    bool has_head; /* its own */
    int fd;
    uint64_t size;
    uint32_t next, n_blocks;
    uint64_t next_id; /* the lowest that the next block may have */
    bool is_full;     /* there is none above the last one */
    uint64_t given;
    uint64_t n_lost, lost_at, lost_from; /* blocks before `next`, from there */
    uint8_t bytes[BLOCK_BYTES_MAX];
    struct block_room room;
    uint64_t *numbers; /* owned: BLOCK_RECORDS_MAX ids, and of each column */
};

static int
disk_failed(int error)
{
    return error == ENOMEM ? ERR_NO_MEMORY : ERR_DISK;
}

static void
tell(struct segment_mend *mend, const struct segment_mend_piece *piece)
{
    struct segment_mend_piece it = *piece;
    it.number = mend->config.number;
    mend->config.piece_fn(mend->config.context, &it);
}

/* Bytes of the file from `at` on; what is not there is 0. *n: how many are. */
static int
read_at(struct segment_mend *mend, uint64_t at, size_t *n)
{
    memset(mend->bytes, 0, sizeof mend->bytes);
    int error = mend->config.disk->calls->read(
        mend->config.disk, mend->fd, mend->bytes, sizeof mend->bytes, at, n);
    return error == 0 ? 0 : disk_failed(error);
}

static bool
head_is_right(void *context)
{
    struct segment_mend *mend = context;
    return segment_head_get(mend->bytes, mend->config.epoch,
               mend->config.number, &mend->head) != ERR_CORRUPT;
}

static void
tell_turned(struct segment_mend *mend, uint64_t at)
{
    tell(mend,
        &(struct segment_mend_piece){.kind = SEGMENT_MEND_TURNED, .at = at});
}

/* The head, or what takes its place; false: the file is lost. */
static int
take_head(struct segment_mend *mend, bool *is_lost)
{
    const struct flip flip = {.bytes = mend->bytes,
        .n = SEGMENT_HEAD_BYTES,
        .cost = SEGMENT_HEAD_BYTES,
        .is_right_fn = head_is_right,
        .context = mend};
    size_t n, at;
    int err = read_at(mend, 0, &n);
    if (err != 0) {
        return err;
    }
    mend->has_head = head_is_right(mend);
    if (!mend->has_head &&
        segment_head_is_foreign(
            mend->bytes, mend->config.epoch, mend->config.number)) {
        tell(mend, &(struct segment_mend_piece){.kind = SEGMENT_MEND_MISSING});
        *is_lost = true;
        return 0;
    }
    if (!mend->has_head && flip_find(&flip, mend->config.budget, &at)) {
        mend->has_head = true;
        tell_turned(mend, at);
    }
    if (mend->has_head) {
        return segment_head_get(
            mend->bytes, mend->config.epoch, mend->config.number, &mend->head);
    }
    mend->head = *mend->config.guess;
    mend->head.epoch = mend->config.epoch;
    mend->head.number = mend->config.number;
    *is_lost = mend->head.n_columns == 0;
    tell(mend, &(struct segment_mend_piece){.kind = SEGMENT_MEND_HEAD});
    return 0;
}

/* The index is only looked at: whether it is as it was. */
static int
look_at_index(struct segment_mend *mend)
{
    const struct segment_head *head = &mend->head;
    uint64_t at = segment_block_at(head->n_blocks);
    uint8_t *bytes = calloc(1, head->index_bytes);
    uint64_t *first = calloc(head->n_blocks, sizeof *first);
    size_t n = 0;
    int err = bytes == NULL || first == NULL ? ERR_NO_MEMORY : 0;
    if (err == 0) {
        int error = mend->config.disk->calls->read(
            mend->config.disk, mend->fd, bytes, head->index_bytes, at, &n);
        err = error == 0 ? 0 : disk_failed(error);
    }
    if (err == 0 &&
        (n < head->index_bytes ||
            segment_index_get(head, bytes, first) != 0)) {
        tell(mend,
            &(struct segment_mend_piece){
                .kind = SEGMENT_MEND_INDEX, .at = at});
    }
    free(first);
    free(bytes);
    return err;
}

static int
open_file(struct segment_mend *mend, bool *is_lost)
{
    struct disk *disk = mend->config.disk;
    char name[SEGMENT_NAME_BYTES];
    segment_name(name, mend->config.number, false);
    int error = disk->calls->open(disk, name, DISK_READ, &mend->fd);
    if (error != 0) {
        mend->fd = -1;
        *is_lost = error == ENOENT || error == DISK_NOT_REGULAR;
        if (*is_lost) {
            tell(mend,
                &(struct segment_mend_piece){.kind = SEGMENT_MEND_MISSING});
        }
        return *is_lost ? 0 : disk_failed(error);
    }
    error = disk->calls->size(disk, mend->fd, &mend->size);
    return error == 0 ? take_head(mend, is_lost) : disk_failed(error);
}

/* How many blocks there are, or were. */
static int
count_blocks(struct segment_mend *mend)
{
    uint64_t n = mend->size <= SEGMENT_HEAD_BYTES
        ? 0
        : (mend->size - SEGMENT_HEAD_BYTES) / BLOCK_BYTES_MAX;
    if (mend->has_head) {
        mend->n_blocks = mend->head.n_blocks;
        mend->next_id = mend->head.first_id;
        return mend->size < segment_block_at(mend->n_blocks)
            ? 0 /* nor is there an index: blocks say what is lost */
            : look_at_index(mend);
    }
    mend->n_blocks =
        n < SEGMENT_BLOCKS_MAX ? (uint32_t)n : (uint32_t)SEGMENT_BLOCKS_MAX;
    return 0;
}

int
segment_mend_open(
    const struct segment_mend_config *config, struct segment_mend **out)
{
    struct segment_mend *mend = calloc(1, sizeof *mend);
    bool is_lost = false;
    *out = NULL;
    if (mend == NULL) {
        return ERR_NO_MEMORY;
    }
    mend->config = *config;
    mend->fd = -1;
    mend->numbers =
        calloc((size_t)(1 + SCHEMA_COLUMNS_MAX) * BLOCK_RECORDS_MAX,
            sizeof *mend->numbers);
    int err = mend->numbers == NULL ? ERR_NO_MEMORY : 0;
    if (err == 0) {
        err = open_file(mend, &is_lost);
    }
    if (err == 0 && !is_lost) {
        err = count_blocks(mend);
    }
    if (err != 0 || is_lost) {
        segment_mend_close(&mend);
    }
    *out = mend;
    return err;
}

void
segment_mend_close(struct segment_mend **mend)
{
    struct segment_mend *old = *mend;
    if (old == NULL) {
        return;
    }
    if (old->fd >= 0) {
        old->config.disk->calls->close(old->config.disk, old->fd);
    }
    block_room_fini(&old->room);
    free(old->numbers);
    free(old);
    *mend = NULL;
}

const struct segment_head *
segment_mend_head(const struct segment_mend *mend)
{
    return &mend->head;
}

struct block_try {
    struct segment_mend *mend;
    uint64_t seed;
    struct block block;
};

static bool
block_is_right(void *context)
{
    struct block_try *try = context;
    return block_open(try->mend->bytes, BLOCK_BYTES_MAX, try->seed,
               &try->block) != ERR_CORRUPT;
}

/* Decodes the block that has been opened; false where it is none of this
 * file. */
static int
decode(struct segment_mend *mend, const struct block *block,
    struct segment_records *out, bool *is_right)
{
    uint64_t *code[SCHEMA_COLUMNS_MAX];
    *is_right = block->n_columns == mend->head.n_columns &&
        block->n <= BLOCK_RECORDS_MAX && !mend->is_full &&
        block->first_id >= mend->next_id;
    if (!*is_right) {
        return 0;
    }
    for (unsigned c = 0; c < block->n_columns; c++) {
        code[c] = mend->numbers + (size_t)(1 + c) * BLOCK_RECORDS_MAX;
        out->code[c] = code[c];
    }
    int err = block_decode(block, &mend->room, mend->numbers, code);
    *is_right = err == 0;
    out->n = block->n;
    out->id = mend->numbers;
    return err == ERR_NO_MEMORY ? err : 0;
}

/* Reads block number `number`; n is 0 where it is not sound. */
static int
read_block(
    struct segment_mend *mend, uint32_t number, struct segment_records *out)
{
    struct block_try try = {
        .mend = mend, .seed = segment_seed_block(&mend->head, number)};
    const struct flip flip = {.bytes = mend->bytes,
        .n = BLOCK_BYTES_MAX,
        .cost = BLOCK_BYTES_MAX,
        .is_right_fn = block_is_right,
        .context = &try};
    uint64_t place = segment_block_at(number);
    size_t n, at = 0;
    bool is_turned = false;
    int err = read_at(mend, place, &n);
    *out = (struct segment_records){0};
    if (err != 0 || n == 0) {
        return err;
    }
    bool is_right = block_is_right(&try);
    if (!is_right) {
        is_right = is_turned = flip_find(&flip, mend->config.budget, &at);
    }
    if (is_right) {
        err = block_open(mend->bytes, BLOCK_BYTES_MAX, try.seed, &try.block);
    }
    if (err == 0 && is_right) {
        err = decode(mend, &try.block, out, &is_right);
    }
    out->n = is_right ? out->n : 0;
    if (is_right && is_turned) {
        tell_turned(mend, place + at);
    }
    return err;
}

/* Tells of the blocks lost before an id, which is not theirs; of the last ones
 * where has_next is false. */
static void
tell_lost(struct segment_mend *mend, bool has_next, uint64_t next_id)
{
    uint64_t last = mend->has_head ? mend->head.last_id : UINT64_MAX;
    if (mend->n_lost > 0) {
        tell(mend,
            &(struct segment_mend_piece){.kind = SEGMENT_MEND_BLOCKS,
                .at = mend->lost_at,
                .n_blocks = mend->n_lost,
                .first_id = mend->lost_from,
                .last_id = has_next ? next_id - 1 : last});
    }
    mend->n_lost = 0;
}

int
segment_mend_next(struct segment_mend *mend, struct segment_records *out)
{
    while (mend->next < mend->n_blocks) {
        uint32_t number = mend->next++;
        int err = read_block(mend, number, out);
        if (err != 0) {
            return err;
        }
        if (out->n > 0) {
            uint64_t last = out->id[out->n - 1];
            ASSERT(out->n <= BLOCK_RECORDS_MAX);
            ASSERT(out->id[0] >= mend->next_id && last >= out->id[0]);
            tell_lost(mend, true, out->id[0]);
            mend->next_id = last + 1;
            mend->is_full = last == UINT64_MAX;
            mend->given += out->n;
            return 0;
        }
        if (mend->n_lost++ == 0) {
            mend->lost_at = segment_block_at(number);
            mend->lost_from = mend->next_id;
        }
    }
    tell_lost(mend, false, 0);
    *out = (struct segment_records){0};
    return 0;
}

uint64_t
segment_mend_given(const struct segment_mend *mend)
{
    return mend->given;
}
