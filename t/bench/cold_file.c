/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/cold_file.h"

#include "bench/fail.h"
#include "cold/segment_write.h"

#include <fcntl.h>

void
cold_file_write(struct disk *disk, const struct cold_records *records,
    enum block_codec codec, int level)
{
    static struct logger logger;
    struct segment_write_config config = {
        .disk = disk, .logger = &logger, .codec = codec, .level = level};
    struct segment_head head = {.epoch = COLD_FILE_EPOCH,
        .number = COLD_FILE_NUMBER,
        .counter_serial = 1,
        .n_columns = (uint8_t)records->columns};
    uint64_t code[POSTS_COLUMNS_MAX];
    struct segment_writer *writer;

    for (unsigned c = 0; c < records->columns; c++) {
        head.column[c] =
            (struct segment_column){.serial = 2 + c, .slot = (uint8_t)c};
    }
    int err = segment_write_begin(&config, &head, &writer);
    for (size_t i = 0; err == 0 && i < records->n; i++) {
        for (unsigned c = 0; c < records->columns; c++) {
            code[c] = records->code[c][i];
        }
        err = segment_write_add(writer, records->id[i], code);
    }
    if (err == 0) {
        err = segment_write_end(&writer, &head);
    }
    if (err != 0) {
        fail("a segment is not written");
    }
}

struct segment *
cold_file_open(struct disk *disk)
{
    static struct logger logger;
    struct segment_config config = {.disk = disk, .logger = &logger};
    struct segment *segment;

    if (segment_open(&config, COLD_FILE_EPOCH, COLD_FILE_NUMBER, &segment) !=
        0) {
        fail("a segment does not open");
    }
    return segment;
}

void
cold_file_remove(struct disk *disk)
{
    char name[SEGMENT_NAME_BYTES];

    segment_name(name, COLD_FILE_NUMBER, false);
    (void)disk->calls->unlink(disk, name);
}

struct disk *
cold_file_disk(const char *directory, int *fd)
{
    struct disk *disk;

    *fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*fd < 0 || disk_real_create(*fd, &disk) != 0) {
        fail("no directory %s", directory);
    }
    return disk;
}
