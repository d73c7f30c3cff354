/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes a segment file.
 *
 * Records go to the builder, which cuts them into blocks; blocks are gathered
 * and written some at a time, behind the place of the head. The index grows in
 * memory and follows the last block. The head is written last: until then the
 * file has no magic. Then sync, rename, sync of the directory.
 *
 * What must hold: ids ascend; the blocks together have the records that were
 * added; the index names a first id for each block.
 *
 * What can go wrong: memory and the disk. The first error stays, is told to the
 * logger where the disk is to blame, and makes all further calls fail; the file
 * is removed as far as the disk allows it. */
#include "cold/segment_write.h"

#include "base/assert.h"
#include "base/err.h"
#include "base/give_way.h"

#include <errno.h>
#include <string.h>

enum {
    WRITE_BLOCKS = 64, /* of 4 KB, in one write */
    INDEX_START = 1024
};

struct segment_writer {
    struct segment_write_config config;
    struct segment_head head;
    int fd;
    int err;                       /* the first; 0: none */
    struct block_builder *builder; /* owned */
    uint8_t *block;                /* owned: WRITE_BLOCKS */
    uint32_t n_written, n_waiting; /* blocks; the waiting ones in block */
    uint64_t before_id;            /* first one of the block before */
    uint64_t n_cut;                /* records in these blocks */
    uint8_t *index;                /* owned: index_room */
    size_t index_len, index_room;
};

enum { WRITE_BYTES = WRITE_BLOCKS * BLOCK_BYTES_MAX };

/* Notes that a call failed; error is an errno value. */
static int
log_error(struct segment_writer *writer, const char *what, int error)
{
    if (writer->config.logger != NULL) {
        char name[SEGMENT_NAME_BYTES];

        segment_name(name, writer->head.number, true);
        log_line(writer->config.logger, LOG_ERROR, "cannot %s %s: %s", what,
            name, disk_say(writer->config.disk, error));
    }
    writer->err = disk_err(error);
    return writer->err;
}

/* Removes the file under one of its names. */
static int
remove_file(const struct segment_writer *writer, bool is_new)
{
    struct disk *disk = writer->config.disk;
    char name[SEGMENT_NAME_BYTES];

    segment_name(name, writer->head.number, is_new);
    return disk->calls->unlink(disk, name);
}

static int
make_file(struct segment_writer *writer)
{
    struct disk *disk = writer->config.disk;
    char name[SEGMENT_NAME_BYTES];
    int error = remove_file(writer, true);

    if (error == 0 || error == ENOENT) {
        segment_name(name, writer->head.number, true);
        error = disk->calls->open(disk, name, DISK_CREATE, &writer->fd);
    }
    if (error != 0) {
        writer->fd = -1;
        return log_error(writer, "make", error);
    }
    return 0;
}

static void
destroy(struct segment_writer **writer)
{
    struct segment_writer *old = *writer;
    const struct alloc *alloc = old->config.alloc;

    if (old->fd >= 0) {
        old->config.disk->calls->close(old->config.disk, old->fd);
    }
    block_builder_destroy(&old->builder);
    alloc_free(alloc, old->block, WRITE_BYTES);
    alloc_free(alloc, old->index, old->index_room);
    alloc_free(alloc, old, sizeof *old);
    *writer = NULL;
}

int
segment_write_begin(const struct segment_write_config *config,
    const struct segment_head *head, struct segment_writer **out)
{
    struct block_options options = {
        config->codec, config->level, head->n_columns};
    struct segment_writer *writer =
        alloc_zeroed(config->alloc, sizeof *writer);
    int err;

    ASSERT(segment_head__is_sound(head));
    *out = NULL;
    if (writer == NULL) {
        return ERR_NO_MEMORY;
    }
    writer->config = *config;
    writer->head = *head;
    writer->head.records = 0;
    writer->fd = -1;
    writer->block = alloc_zeroed(config->alloc, WRITE_BYTES);
    writer->index = alloc_zeroed(config->alloc, INDEX_START);
    writer->index_room = INDEX_START;
    err = writer->block == NULL || writer->index == NULL
        ? ERR_NO_MEMORY
        : block_builder_create(&options, config->alloc, &writer->builder);
    if (err == 0) {
        err = make_file(writer);
    }
    if (err != 0) {
        destroy(&writer);
        return err;
    }
    *out = writer;
    return 0;
}

static int
flush(struct segment_writer *writer)
{
    struct disk *disk = writer->config.disk;
    size_t len = (size_t)writer->n_waiting * BLOCK_BYTES_MAX;
    int error;

    ASSERT(writer->err == 0 && writer->n_waiting <= WRITE_BLOCKS);
    if (len == 0) {
        return 0;
    }
    error = disk->calls->write(disk, writer->fd, writer->block, len,
        segment_block_at(writer->n_written));
    if (error != 0) {
        return log_error(writer, "write", error);
    }
    writer->n_written += writer->n_waiting;
    writer->n_waiting = 0;
    return 0;
}

/* Room for one more block in the index, and for its checksum. */
static bool
make_room(struct segment_writer *writer)
{
    const struct alloc *alloc = writer->config.alloc;
    size_t room = 2 * writer->index_room;
    uint8_t *more;

    ASSERT(writer->index_len <= writer->index_room);
    if (writer->index_room - writer->index_len >=
        BYTES_VARINT_MAX + SEGMENT_SUM_BYTES) {
        return true;
    }
    more = alloc_zeroed(alloc, room);
    if (more == NULL) {
        return false;
    }
    memcpy(more, writer->index, writer->index_len);
    alloc_free(alloc, writer->index, writer->index_room);
    writer->index = more;
    writer->index_room = room;
    return true;
}

/* Enters the block that was cut last, which begins with id. */
static void
take_block(struct segment_writer *writer, uint64_t id)
{
    ASSERT(id >= writer->head.first_id && id <= writer->head.last_id);
    if (writer->n_written + writer->n_waiting > 0) {
        writer->index_len += segment__index_put(
            writer->index + writer->index_len, writer->before_id, id);
        ASSERT(writer->index_len + SEGMENT_SUM_BYTES <= writer->index_room);
    } else {
        ASSERT(id == writer->head.first_id);
    }
    writer->before_id = id;
    writer->n_waiting++;
}

/* Cuts a block, if there is one to be cut; *len is its length or 0. */
static int
cut(struct segment_writer *writer, bool is_end, size_t *len)
{
    uint32_t number = writer->n_written + writer->n_waiting;
    uint8_t *block =
        writer->block + (size_t)writer->n_waiting * BLOCK_BYTES_MAX;
    uint64_t id = block_builder_first_id(writer->builder);
    size_t n;

    ASSERT(writer->n_waiting < WRITE_BLOCKS);
    if (number == SEGMENT_BLOCKS_MAX) {
        writer->err = ERR_FILE_SIZE;
    } else if (!make_room(writer) ||
        block_builder_cut(writer->builder, is_end,
            segment_seed_block(&writer->head, number), block, len, &n) != 0) {
        writer->err = ERR_NO_MEMORY;
    } else if (*len > 0) {
        ASSERT(*len <= BLOCK_BYTES_MAX && n > 0);
        writer->n_cut += n;
        take_block(writer, id);
        give_way();
        return writer->n_waiting == WRITE_BLOCKS ? flush(writer) : 0;
    }
    return writer->err;
}

int
segment_write_add(
    struct segment_writer *writer, uint64_t id, const uint64_t *code)
{
    struct segment_head *head = &writer->head;
    size_t len;

    while (writer->err == 0 && block_builder_is_full(writer->builder)) {
        (void)cut(writer, false, &len);
    }
    if (writer->err != 0) {
        return writer->err;
    }
    ASSERT(head->records == 0 || id > head->last_id);
    if (head->records == 0) {
        head->first_id = id;
    }
    head->last_id = id;
    head->records++;
    block_builder_add(writer->builder, id, code);
    return 0;
}

/* Index and head, behind and in front of the blocks, and the sync. An errno
 * value. */
static int
seal(struct segment_writer *writer)
{
    struct disk *disk = writer->config.disk;
    struct segment_head *head = &writer->head;
    uint8_t *bytes = writer->block; /* there are no blocks in it any more */
    int error;

    ASSERT(writer->n_waiting == 0 && writer->n_written > 0);
    ASSERT(writer->n_cut == head->records);
    head->n_blocks = writer->n_written;
    head->index_bytes = (uint32_t)(writer->index_len + SEGMENT_SUM_BYTES);
    segment__index_end(head, writer->index, writer->index_len);
    ASSERT(writer->before_id <= head->last_id);
    segment_head__put(head, bytes);
    error = disk->calls->write(disk, writer->fd, writer->index,
        head->index_bytes, segment_block_at(head->n_blocks));
    if (error == 0) {
        error =
            disk->calls->write(disk, writer->fd, bytes, SEGMENT_HEAD_BYTES, 0);
    }
    return error != 0 ? error : disk->calls->sync(disk, writer->fd);
}

/* Gives the file its name. An errno value. */
static int
place(struct segment_writer *writer)
{
    struct disk *disk = writer->config.disk;
    char name[SEGMENT_NAME_BYTES], new_name[SEGMENT_NAME_BYTES];
    int error;

    segment_name(name, writer->head.number, false);
    segment_name(new_name, writer->head.number, true);
    error = disk->calls->rename(disk, new_name, name);
    if (error == 0) {
        error = disk->calls->sync_names(disk);
    }
    if (error != 0) {
        /* it may have been done all the same */
        (void)remove_file(writer, false);
    }
    return error;
}

int
segment_write_end(struct segment_writer **writer, struct segment_head *out)
{
    struct segment_writer *mine = *writer;
    size_t len;
    int err, error;

    ASSERT(mine->err != 0 || mine->head.records > 0);
    while (mine->err == 0 && block_builder_count(mine->builder) > 0) {
        (void)cut(mine, true, &len);
    }
    if (mine->err == 0 && flush(mine) == 0) {
        error = seal(mine);
        if (error != 0) {
            (void)log_error(mine, "write", error);
        } else if ((error = place(mine)) != 0) {
            (void)log_error(mine, "rename", error);
        }
    }
    err = mine->err;
    if (err != 0) {
        segment_write_abort(writer);
        return err;
    }
    ASSERT(segment_file_bytes(&mine->head) ==
        segment_block_at(mine->n_written) + mine->head.index_bytes);
    *out = mine->head;
    destroy(writer);
    return 0;
}

void
segment_write_abort(struct segment_writer **writer)
{
    if (*writer != NULL) {
        (void)remove_file(*writer, true);
        destroy(writer);
    }
}
