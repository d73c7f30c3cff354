/* SPDX-License-Identifier: BSD-3-Clause */
/* REPLICA and its bytes.
 *
 *   OFFSET SIZE
 *        0    8 "TALLYREP"
 *        8    4 version, 1
 *       12    4 flags
 *       16    8 epoch of the directory, or 0
 *       24    8 promised term, or 0
 *       32    8 the log is to be cut behind this batch, or 0
 *       40   16 boot id
 *       56    1 level
 *       57    7 0
 *       64  128 cluster: 1 byte of length, the name, zeroes
 *      192  128 group, likewise
 *      320  128 node, likewise
 *      448   56 0
 *      504    8 checksum of 0..503
 *
 * It fits into one sector, and is replaced by a rename all the same: so at any
 * time the old one or the new one is there. What is zero here is for versions
 * to come, and must be zero. What can go wrong: damage, the disk. */
#include "wal/replica_file.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/err.h"
#include "wal/envelope.h"
#include "wal/seq.h"

#include <errno.h>
#include <string.h>

#define NAME_NEW REPLICA_NAME ".new"

enum {
    VERSION = 1,
    FLAGS_AT = 12,
    EPOCH_AT = 16,
    PROMISED_AT = 24,
    CUT_AT = 32,
    BOOT_AT = 40,
    LEVEL_AT = 56,
    ZEROES_AT = 57,
    CLUSTER_AT = 64,
    NAME_BYTES = 128,
    GROUP_AT = CLUSTER_AT + NAME_BYTES,
    NODE_AT = GROUP_AT + NAME_BYTES,
    END_AT = NODE_AT + NAME_BYTES, /* zeroes from there on */
    SUM_AT = REPLICA_BYTES - ENVELOPE_CHECKSUM_BYTES,
    FLAG_DOUBTFUL = 1,
    FLAG_CLEAN = 2,
    FLAG_EXCHANGING = 4,
    FLAG_SALVAGED = 8,
    FLAGS = FLAG_DOUBTFUL | FLAG_CLEAN | FLAG_EXCHANGING | FLAG_SALVAGED
};

_Static_assert((int)NODE_NAME_MAX < (int)NAME_BYTES, "a name has its place");
_Static_assert((int)END_AT < (int)SUM_AT, "all is before the checksum");

static const struct envelope envelope = {
    8, {'T', 'A', 'L', 'L', 'Y', 'R', 'E', 'P'}, VERSION};

/* What holds of every one; the epoch may be missing, and so may the names of
 * cluster and group, both. */
static bool
is_right(const struct replica_file *file)
{
    return file->node.len > 0 && file->promised <= SEQ_TERM_MAX &&
        file->level >= REPLICA_WRITTEN && file->level < REPLICA_LEVELS &&
        (file->cluster.len == 0) == (file->group.len == 0);
}

static void
put_name(const struct node_name *name, uint8_t *out)
{
    ASSERT(name->len == 0 || node_name_is_right(name->text, name->len));
    out[0] = name->len;
    memcpy(out + 1, name->text, name->len);
}

void
replica_file__encode(
    const struct replica_file *file, uint8_t out[REPLICA_BYTES])
{
    unsigned flags = (file->is_doubtful ? FLAG_DOUBTFUL : 0U) |
        (file->is_clean ? FLAG_CLEAN : 0U) |
        (file->is_exchanging ? FLAG_EXCHANGING : 0U) |
        (file->is_salvaged ? FLAG_SALVAGED : 0U);
    ASSERT(is_right(file));
    memset(out, 0, REPLICA_BYTES);
    envelope_begin(&envelope, out);
    bytes_put_u32(out + FLAGS_AT, flags);
    bytes_put_u64(out + EPOCH_AT, file->epoch);
    bytes_put_u64(out + PROMISED_AT, file->promised);
    bytes_put_u64(out + CUT_AT, file->cut_seq);
    memcpy(out + BOOT_AT, file->boot_id, REPLICA_BOOT_BYTES);
    out[LEVEL_AT] = (uint8_t)file->level;
    put_name(&file->cluster, out + CLUSTER_AT);
    put_name(&file->group, out + GROUP_AT);
    put_name(&file->node, out + NODE_AT);
    envelope_end(out, SUM_AT);
}

static bool
are_zeroes(const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] != 0) {
            return false;
        }
    }
    return true;
}

/* An empty name is one, too. */
static bool
get_name(const uint8_t *in, struct node_name *out)
{
    size_t len = in[0];
    *out = (struct node_name){0};
    return len < NAME_BYTES &&
        (len == 0 || node_name_set(out, (const char *)in + 1, len)) &&
        are_zeroes(in + 1 + len, NAME_BYTES - 1 - len);
}

int
replica_file__decode(
    const uint8_t *bytes, size_t len, struct replica_file *out)
{
    struct replica_file file = {0};
    int err = len == REPLICA_BYTES ? envelope_check(&envelope, bytes, len)
                                   : ERR_CORRUPT;
    if (err != 0) {
        return err;
    }
    uint32_t flags = bytes_get_u32(bytes + FLAGS_AT);
    uint64_t promised = bytes_get_u64(bytes + PROMISED_AT);
    if ((flags & ~(uint32_t)FLAGS) != 0) {
        return ERR_NEWER_FORMAT; /* the checksum is right */
    }
    file.epoch = bytes_get_u64(bytes + EPOCH_AT);
    file.promised = promised > SEQ_TERM_MAX ? UINT32_MAX : (uint32_t)promised;
    file.cut_seq = bytes_get_u64(bytes + CUT_AT);
    memcpy(file.boot_id, bytes + BOOT_AT, REPLICA_BOOT_BYTES);
    file.level = (enum replica_level)bytes[LEVEL_AT];
    file.is_doubtful = (flags & FLAG_DOUBTFUL) != 0;
    file.is_clean = (flags & FLAG_CLEAN) != 0;
    file.is_exchanging = (flags & FLAG_EXCHANGING) != 0;
    file.is_salvaged = (flags & FLAG_SALVAGED) != 0;
    if (!get_name(bytes + CLUSTER_AT, &file.cluster) ||
        !get_name(bytes + GROUP_AT, &file.group) ||
        !get_name(bytes + NODE_AT, &file.node) || !is_right(&file) ||
        !are_zeroes(bytes + ZEROES_AT, CLUSTER_AT - ZEROES_AT) ||
        !are_zeroes(bytes + END_AT, SUM_AT - END_AT)) {
        return ERR_CORRUPT;
    }
    *out = file;
    return 0;
}

int
replica_file_read(struct disk *disk, struct replica_file *out)
{
    uint8_t bytes[REPLICA_BYTES + 1]; /* a longer one is seen */
    size_t n = 0;
    int fd;
    int error = disk->calls->open(disk, REPLICA_NAME, DISK_READ, &fd);
    if (error != 0) {
        return error == ENOENT ? ERR_NOT_FOUND : ERR_DISK;
    }
    error = disk->calls->read(disk, fd, bytes, sizeof bytes, 0, &n);
    disk->calls->close(disk, fd);
    return error != 0 ? ERR_DISK : replica_file__decode(bytes, n, out);
}

/* Makes the new one, synced. An errno value. */
static int
write_new(struct disk *disk, const uint8_t bytes[REPLICA_BYTES])
{
    int fd;
    int error = disk->calls->unlink(disk, NAME_NEW);
    if (error != 0 && error != ENOENT) {
        return error;
    }
    error = disk->calls->open(disk, NAME_NEW, DISK_CREATE, &fd);
    if (error != 0) {
        return error;
    }
    error = disk->calls->write(disk, fd, bytes, REPLICA_BYTES, 0);
    if (error == 0) {
        error = disk->calls->sync(disk, fd);
    }
    disk->calls->close(disk, fd);
    return error;
}

int
replica_file_write(struct disk *disk, const struct replica_file *file)
{
    uint8_t bytes[REPLICA_BYTES];
    replica_file__encode(file, bytes);
    int error = write_new(disk, bytes);
    if (error == 0) {
        error = disk->calls->rename(disk, NAME_NEW, REPLICA_NAME);
    }
    if (error == 0) {
        error = disk->calls->sync_names(disk);
    } else {
        (void)disk->calls->unlink(disk, NAME_NEW);
    }
    return error == 0 ? 0 : disk_err(error);
}
