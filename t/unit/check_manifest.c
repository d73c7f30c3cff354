/* SPDX-License-Identifier: BSD-3-Clause */
/* wal/manifest: what is written is read back; any flipped bit or missing byte
 * is damage, and a newer version is told apart; what has a right checksum and
 * wrong content is refused. Writing goes through a disk in memory whose calls
 * fail one after the other: the old manifest or the new one is there, whole. */
#include "wal/manifest.h"

#include "unit/manifest_help.h"
#include "wal/image.h"

#include <errno.h>

enum { FILES = 2, COUNTERS = 2 };

/* A disk of two files, that counts its calls. */
struct memory_disk {
    struct disk disk;
    struct {
        char name[16]; /* empty: there is none */
        struct buf bytes;
    } file[FILES];
    int calls, fail_at, error; /* the call fail_at (from 1 on) fails */
    char told[256];            /* the calls, a letter each */
};

static int
call(struct memory_disk *memory, const char *letter)
{
    strcat(memory->told, letter);
    return ++memory->calls == memory->fail_at ? memory->error : 0;
}

static int
file_of(const struct memory_disk *memory, const char *name)
{
    for (int i = 0; i < FILES; i++) {
        if (strcmp(memory->file[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

static int
memory_open(struct disk *disk, const char *name, enum disk_open how, int *fd)
{
    struct memory_disk *memory = (struct memory_disk *)disk;
    int error = call(memory, how == DISK_CREATE ? "C" : "O");
    *fd = file_of(memory, name);
    if (error != 0 || how != DISK_CREATE) {
        return error != 0 ? error : *fd < 0 ? ENOENT : 0;
    }
    if (*fd >= 0) {
        return EEXIST;
    }
    *fd = file_of(memory, "");
    ck_assert_int_ge(*fd, 0);
    strcpy(memory->file[*fd].name, name);
    return 0;
}

static void
memory_close(struct disk *disk, int fd)
{
    struct memory_disk *memory = (struct memory_disk *)disk;
    ck_assert_int_ge(fd, 0);
    strcat(memory->told, "c");
}

static int
memory_read(struct disk *disk, int fd, void *bytes, size_t len, uint64_t at,
    size_t *n_read)
{
    struct memory_disk *memory = (struct memory_disk *)disk;
    const struct buf *buf = &memory->file[fd].bytes;
    int error = call(memory, "R");
    ck_assert_uint_eq(at, 0);
    *n_read = buf->len < len ? buf->len : len;
    if (error == 0 && *n_read > 0) {
        memcpy(bytes, buf->data, *n_read);
    }
    return error;
}

/* On failure half of it is there. */
static int
memory_write(
    struct disk *disk, int fd, const void *bytes, size_t len, uint64_t at)
{
    struct memory_disk *memory = (struct memory_disk *)disk;
    struct buf *buf = &memory->file[fd].bytes;
    int error = call(memory, "W");
    ck_assert_uint_eq(at, buf->len);
    buf_add(buf, bytes, error == 0 ? len : len / 2);
    return error;
}

static int
memory_size(struct disk *disk, int fd, uint64_t *len)
{
    struct memory_disk *memory = (struct memory_disk *)disk;
    *len = memory->file[fd].bytes.len;
    return call(memory, "L");
}

static int
memory_look(struct disk *disk, const char *name, int fd, struct disk_file *out)
{
    struct memory_disk *memory = (struct memory_disk *)disk;
    ck_assert_ptr_null(name);
    *out = (struct disk_file){
        .inode = (uint64_t)fd + 1, .bytes = memory->file[fd].bytes.len};
    return 0;
}

static int
memory_sync(struct disk *disk, int fd)
{
    ck_assert_int_ge(fd, 0);
    return call((struct memory_disk *)disk, "S");
}

static int
memory_unlink(struct disk *disk, const char *name)
{
    struct memory_disk *memory = (struct memory_disk *)disk;
    int error = call(memory, "U");
    int fd = file_of(memory, name);
    if (error != 0 || fd < 0) {
        return error != 0 ? error : ENOENT;
    }
    memory->file[fd].name[0] = '\0';
    buf_clear(&memory->file[fd].bytes);
    return 0;
}

static int
memory_rename(struct disk *disk, const char *from, const char *to)
{
    struct memory_disk *memory = (struct memory_disk *)disk;
    int error = call(memory, "M");
    int fd = file_of(memory, from);
    int over = file_of(memory, to);
    if (error != 0) {
        return error;
    }
    ck_assert_int_ge(fd, 0);
    if (over >= 0) {
        memory->file[over].name[0] = '\0';
        buf_clear(&memory->file[over].bytes);
    }
    strcpy(memory->file[fd].name, to);
    return 0;
}

static int
memory_sync_names(struct disk *disk)
{
    return call((struct memory_disk *)disk, "N");
}

static const struct disk_calls memory_calls = {.open = memory_open,
    .close = memory_close,
    .read = memory_read,
    .write = memory_write,
    .size = memory_size,
    .look = memory_look,
    .sync = memory_sync,
    .rename = memory_rename,
    .unlink = memory_unlink,
    .sync_names = memory_sync_names};

static void
memory_fini(struct memory_disk *memory)
{
    for (int i = 0; i < FILES; i++) {
        buf_fini(&memory->file[i].bytes);
    }
}

static void
tell_again(struct memory_disk *memory, int fail_at, int error)
{
    memory->calls = 0;
    memory->fail_at = fail_at;
    memory->error = error;
    memory->told[0] = '\0';
}

static void
set_name(struct schema_name *name, const char *text)
{
    name->len = (uint8_t)strlen(text);
    strcpy(name->text, text);
}

static void
add_image(struct manifest *manifest, struct images_entry entry)
{
    ck_assert_int_eq(images_add(&manifest->images, &entry), 0);
}

static void
add_images(struct manifest *manifest)
{
    add_image(manifest,
        (struct images_entry){.last_row = 999,
            .seq = 40,
            .file = 8,
            .offset = 0,
            .len = 3000,
            .n = 700});
    add_image(manifest,
        (struct images_entry){.first_row = 1000,
            .last_row = 65535,
            .seq = 41,
            .file = 8,
            .offset = 3000,
            .len = 64,
            .n = 0});
    add_image(manifest,
        (struct images_entry){.first_row = 2000,
            .last_row = 2999,
            .seq = 39,
            .file = 2,
            .offset = 100000,
            .len = 5000,
            .n = IMAGE_RECORDS_MAX});
    add_image(manifest,
        (struct images_entry){.last_row = UINT64_MAX,
            .seq = UINT64_MAX,
            .file = 1,
            .offset = 1,
            .len = 1,
            .shard = 15});
    add_image(manifest,
        (struct images_entry){.first_row = UINT64_MAX,
            .last_row = UINT64_MAX,
            .file = 0,
            .offset = INT64_MAX - 9,
            .len = 9,
            .n = 1,
            .counter = 255,
            .shard = 1});
    ck_assert_uint_eq(manifest->images.n, 6);
}

/* What is in t/data/manifest-v1. */
static void
manifest_some(struct manifest *manifest)
{
    manifest_init(manifest);
    manifest->epoch = UINT64_C(0xfedcba9876543210);
    manifest->seed = UINT64_C(0x0123456789abcdef);
    manifest->shards = 16;
    manifest->log_number = 12;
    manifest->next_file = 9;
    manifest->schema_seq = UINT64_MAX;
    manifest->checkpoint_seq = UINT64_C(0x1122334455);
    manifest->checkpoint_time = 1700000000;
    manifest->last_serial = 77;
    manifest->counter = calloc(COUNTERS, sizeof *manifest->counter);
    ck_assert_ptr_nonnull(manifest->counter);
    manifest->n_counters = COUNTERS;
    struct schema_counter *posts = &manifest->counter[0];
    struct schema_counter *bare = &manifest->counter[1];
    set_name(&posts->name, "posts");
    set_name(&posts->key_name, "id");
    posts->serial = 3;
    posts->key_hint_bits = 64;
    posts->n_columns = 1;
    set_name(&posts->column[0].name, "cntcm");
    posts->column[0].serial = 70;
    posts->column[0].slot = 2;
    posts->column[0].hint_bits = 8;
    posts->column[0].max_bits = 32;
    set_name(&bare->name, "bare");
    bare->serial = 4;
    bare->slot = 255;
    add_images(manifest);
}

struct list {
    struct images_entry entry[16];
    size_t n;
};

static void
list_entry(void *context, const struct images_entry *entry)
{
    struct list *list = context;
    ck_assert_uint_lt(list->n, COUNT_OF(list->entry));
    list->entry[list->n++] = *entry;
}

static void
check_same_images(const struct images *a, const struct images *b)
{
    struct list x = {0}, y = {0};
    images_verify(a);
    images_each(a, list_entry, &x);
    images_each(b, list_entry, &y);
    ck_assert_uint_eq(x.n, y.n);
    for (size_t i = 0; i < x.n; i++) {
        const struct images_entry *p = &x.entry[i], *q = &y.entry[i];
        ck_assert_uint_eq(p->first_row, q->first_row);
        ck_assert_uint_eq(p->last_row, q->last_row);
        ck_assert_uint_eq(p->seq, q->seq);
        ck_assert_uint_eq(p->file, q->file);
        ck_assert_uint_eq(p->offset, q->offset);
        ck_assert_uint_eq(p->len, q->len);
        ck_assert_uint_eq(p->n, q->n);
        ck_assert_uint_eq(p->shard, q->shard);
        ck_assert_uint_eq(p->counter, q->counter);
        ck_assert_int_eq(p->part, q->part);
    }
}

static void
check_same(const struct manifest *a, const struct manifest *b)
{
    ck_assert_uint_eq(a->epoch, b->epoch);
    ck_assert_uint_eq(a->seed, b->seed);
    ck_assert_uint_eq(a->shards, b->shards);
    ck_assert_uint_eq(a->log_number, b->log_number);
    ck_assert_uint_eq(a->next_file, b->next_file);
    ck_assert_uint_eq(a->schema_seq, b->schema_seq);
    ck_assert_uint_eq(a->checkpoint_seq, b->checkpoint_seq);
    ck_assert_uint_eq(a->checkpoint_time, b->checkpoint_time);
    ck_assert_uint_eq(a->last_serial, b->last_serial);
    ck_assert_uint_eq(a->n_counters, b->n_counters);
    for (uint32_t i = 0; i < a->n_counters; i++) {
        ck_assert_mem_eq(&a->counter[i], &b->counter[i], sizeof *a->counter);
    }
    check_same_images(&a->images, &b->images);
}

START_TEST(test_it_comes_back)
{
    struct manifest manifest, got;
    struct buf buf;
    encode_some(manifest_some, &manifest, &buf);
    ck_assert_int_eq(decode(buf.data, buf.len, &got), 0);
    check_same(&got, &manifest);
    manifest_fini(&got);
    forget(&manifest, &buf);
}
END_TEST

START_TEST(test_an_empty_one_comes_back)
{
    struct manifest manifest = {.epoch = 1, .shards = 4096};
    struct manifest got;
    struct buf buf = {0};
    ck_assert_int_eq(manifest__encode(&manifest, &buf), 0);
    ck_assert_uint_eq(buf.len, HEAD_BYTES + SUM_BYTES);
    ck_assert_int_eq(decode(buf.data, buf.len, &got), 0);
    check_same(&got, &manifest);
    manifest_fini(&got);
    buf_fini(&buf);
}
END_TEST

START_TEST(test_every_flipped_bit_and_every_cut_is_damage)
{
    expect_damage_is_seen(manifest_some);
}
END_TEST

START_TEST(test_a_newer_version_is_told_apart)
{
    struct manifest manifest, got;
    struct buf buf;
    encode_some(manifest_some, &manifest, &buf);
    bytes_put_u32((uint8_t *)buf.data + 8, MANIFEST_VERSION_NEWEST + 1);
    seal(&buf);
    ck_assert_int_eq(decode(buf.data, buf.len, &got), ERR_NEWER_FORMAT);
    bytes_put_u32((uint8_t *)buf.data + 8, 0);
    seal(&buf);
    ck_assert_int_eq(decode(buf.data, buf.len, &got), ERR_CORRUPT);
    forget(&manifest, &buf);
}
END_TEST

START_TEST(test_a_right_checksum_does_not_make_the_head_sound)
{
    static const struct {
        const char *what;
        size_t at;
        uint32_t value;
    } lies[] = {{"no shards", 12, 0}, {"three shards", 12, 3},
        {"more shards than there can be", 12, 8192},
        {"fewer shards than images have", 12, 8}, {"no epoch", 24, 0},
        {"a checkpoint file that is still to come", 48, 8},
        {"a last serial that counters are beyond", 64, 1},
        {"a counter less", 68, 1}, {"a counter more", 68, 3},
        {"257 counters", 68, 257}, {"an image less", 72, 5},
        {"an image more", 72, 7}, {"images without end", 76, UINT32_MAX}};
    struct manifest manifest, got;
    struct buf buf = {0};
    manifest_some(&manifest);
    manifest.epoch = 5;
    for (size_t i = 0; i < COUNT_OF(lies); i++) {
        buf_clear(&buf);
        ck_assert_int_eq(manifest__encode(&manifest, &buf), 0);
        bytes_put_u32((uint8_t *)buf.data + lies[i].at, lies[i].value);
        seal(&buf);
        int err = decode(buf.data, buf.len, &got);
        ck_assert_msg(err == ERR_CORRUPT, "%s", lies[i].what);
    }
    manifest_fini(&manifest);
    buf_fini(&buf);
}
END_TEST

/* Numbers of two images in an otherwise empty manifest of one shard, as they
 * stand in the file: flags, (counter, shard,) gap, rows - 1, seq, file,
 * offset, len, n. All of these are below 0x80 or spelled as varints. */
static const struct {
    const char *what;
    int err;
    uint8_t bytes[48];
    size_t len;
} pairs[] = {
#define V64 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01
#define FIRST 2, 5, 0, 10, 9, 2, 0, 0, 50, 1
#define PAIR(what, err, ...)                                                  \
    {                                                                         \
        what, err, {__VA_ARGS__}, sizeof((uint8_t[]){__VA_ARGS__})            \
    }
    PAIR("two that touch", 0, FIRST, 0, 0, 9, 2, 0, 0, 50, 1),
    PAIR("another counter", 0, FIRST, 2, 6, 0, 0, 9, 2, 0, 0, 50, 1),
    PAIR("the same list twice", ERR_CORRUPT, FIRST, 2, 5, 0, 30, 9, 2, 0, 0,
        50, 1),
    PAIR("the same rows twice", ERR_CORRUPT, FIRST, 2, 5, 0, 10, 9, 2, 0, 0,
        50, 1),
    PAIR("a counter before", ERR_CORRUPT, FIRST, 2, 4, 0, 10, 9, 2, 0, 0, 50,
        1),
    PAIR("a shard there is not", ERR_CORRUPT, FIRST, 2, 6, 1, 0, 9, 2, 0, 0,
        50, 1),
    PAIR("a flag there is not", ERR_CORRUPT, FIRST, 4, 0, 9, 2, 0, 0, 50, 1),
    PAIR("rows up to the last", 0, FIRST, 0, 0, 0xeb, 0xff, 0xff, 0xff, 0xff,
        0xff, 0xff, 0xff, 0xff, 0x01, 2, 0, 0, 50, 1),
    PAIR("a row beyond the last", ERR_CORRUPT, FIRST, 0, 0, 0xec, 0xff, 0xff,
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 2, 0, 0, 50, 1),
    PAIR("a gap beyond the last", ERR_CORRUPT, FIRST, 0, V64, 0, 2, 0, 0, 50,
        1),
    PAIR("a file to come", ERR_CORRUPT, FIRST, 0, 0, 9, 2, 2, 0, 50, 1),
    PAIR("a file before all", ERR_CORRUPT, FIRST, 0, 0, 9, 2, 1, 0, 50, 1),
    PAIR(
        "an offset before all", ERR_CORRUPT, FIRST, 0, 0, 9, 2, 0, 101, 50, 1),
    PAIR("no bytes", ERR_CORRUPT, FIRST, 0, 0, 9, 2, 0, 0, 0, 1),
    PAIR("too many bytes", ERR_CORRUPT, FIRST, 0, 0, 9, 2, 0, 0, 0xff, 0xff,
        0xff, 0xff, 0x0e, 1),
    PAIR("too many records", ERR_CORRUPT, FIRST, 0, 0, 9, 2, 0, 0, 50, 0x81,
        0x80, 0x10),
    PAIR("cut off", ERR_CORRUPT, FIRST, 0, 0, 9, 2, 0, 0, 50),
    PAIR(
        "cut off in a number", ERR_CORRUPT, FIRST, 0, 0, 9, 2, 0, 0, 50, 0x81),
    PAIR("something behind", ERR_CORRUPT, FIRST, 0, 0, 9, 2, 0, 0, 50, 1, 0),
    PAIR("behind the last row", ERR_CORRUPT, 2, 5, 0, 0, V64, 2, 0, 0, 50, 1,
        0, 0, 9, 2, 0, 0, 50, 1),
    PAIR("no list", ERR_CORRUPT, 0, 10, 9, 2, 0, 0, 50, 1, FIRST),
#undef PAIR
#undef FIRST
#undef V64
};

START_TEST(test_images_that_cannot_be)
{
    struct manifest manifest = {.epoch = 1, .shards = 1, .next_file = 1};
    struct manifest got;
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        int err = decode_listed(
            &manifest, 72, 2, pairs[i].bytes, pairs[i].len, &got);
        ck_assert_msg(err == pairs[i].err, "%s: %d", pairs[i].what, err);
        ck_assert_uint_eq(got.images.n, err == 0 ? 2 : 0);
        images_verify(&got.images);
        manifest_fini(&got);
    }
}
END_TEST

START_TEST(test_without_memory_nothing_is_decoded)
{
    expect_want_of_memory_is_seen(manifest_some, 3, check_same);
}
END_TEST

static void
check_read(struct memory_disk *memory, const struct manifest *want)
{
    struct manifest got;
    manifest_init(&got);
    ck_assert_int_eq(manifest_read(&memory->disk, &got, NULL), 0);
    check_same(&got, want);
    manifest_fini(&got);
}

START_TEST(test_it_is_replaced_durably)
{
    struct memory_disk memory = {.disk = {&memory_calls}};
    struct manifest manifest, got;
    struct disk_file is = {0};
    manifest_some(&manifest);
    manifest_init(&got);
    ck_assert_int_eq(manifest_read(&memory.disk, &got, NULL), ERR_NOT_FOUND);
    tell_again(&memory, 0, 0);
    ck_assert_int_eq(manifest_write(&memory.disk, &manifest, &is, NULL), 0);
    ck_assert_str_eq(memory.told, "UCWScMN");
    ck_assert_int_lt(file_of(&memory, "MANIFEST.new"), 0);
    ck_assert_uint_ne(is.inode, 0);
    ck_assert_uint_eq(
        is.bytes, memory.file[file_of(&memory, "MANIFEST")].bytes.len);
    check_read(&memory, &manifest);
    manifest.log_number++;
    ck_assert_int_eq(manifest_write(&memory.disk, &manifest, NULL, NULL), 0);
    check_read(&memory, &manifest);
    /* a try that was interrupted */
    strcpy(memory.file[file_of(&memory, "")].name, "MANIFEST.new");
    manifest.log_number++;
    ck_assert_int_eq(manifest_write(&memory.disk, &manifest, NULL, NULL), 0);
    check_read(&memory, &manifest);
    manifest_fini(&manifest);
    memory_fini(&memory);
}
END_TEST

START_TEST(test_one_of_both_is_there_whatever_fails)
{
    static const struct {
        int error, err;
    } faults[] = {{EIO, ERR_DISK}, {ENOSPC, ERR_DISK_FULL},
        {EDQUOT, ERR_DISK_FULL}, {EFBIG, ERR_FILE_SIZE},
        {ENOMEM, ERR_NO_MEMORY}, {EACCES, ERR_DISK}};
    struct memory_disk memory = {.disk = {&memory_calls}};
    struct manifest old, manifest;
    manifest_some(&old);
    manifest_some(&manifest);
    manifest.next_file++;
    for (int at = 1; at <= 6; at++) {
        for (size_t i = 0; i < COUNT_OF(faults); i++) {
            tell_again(&memory, 0, 0);
            ck_assert_int_eq(
                manifest_write(&memory.disk, &old, NULL, NULL), 0);
            tell_again(&memory, at, faults[i].error);
            ck_assert_int_eq(
                manifest_write(&memory.disk, &manifest, NULL, NULL),
                faults[i].err);
            tell_again(&memory, 0, 0);
            check_read(&memory, at < 6 ? &old : &manifest);
            /* what was begun gave its room back */
            ck_assert_int_lt(file_of(&memory, "MANIFEST.new"), 0);
            ck_assert_int_eq(
                manifest_write(&memory.disk, &manifest, NULL, NULL), 0);
            check_read(&memory, &manifest);
        }
    }
    tell_again(&memory, 7, EIO);
    ck_assert_int_eq(manifest_write(&memory.disk, &manifest, NULL, NULL), 0);
    manifest_fini(&old);
    manifest_fini(&manifest);
    memory_fini(&memory);
}
END_TEST

START_TEST(test_reads_that_fail)
{
    struct memory_disk memory = {.disk = {&memory_calls}};
    struct manifest manifest, got;
    manifest_some(&manifest);
    manifest_init(&got);
    ck_assert_int_eq(manifest_write(&memory.disk, &manifest, NULL, NULL), 0);
    for (int at = 1; at <= 3; at++) {
        tell_again(&memory, at, EIO);
        ck_assert_int_eq(manifest_read(&memory.disk, &got, NULL), ERR_DISK);
        ck_assert(
            strlen(memory.told) == 1 || strchr(memory.told, 'c') != NULL);
    }
    tell_again(&memory, 0, 0);
    memory.file[file_of(&memory, "MANIFEST")].bytes.len = 0;
    ck_assert_int_eq(manifest_read(&memory.disk, &got, NULL), ERR_CORRUPT);
    manifest_fini(&manifest);
    memory_fini(&memory);
}
END_TEST

START_TEST(test_version_1_can_be_read_for_good)
{
    expect_golden(DATA_DIR "/manifest-v1", manifest_some, check_same);
}
END_TEST

int
main(void)
{
    const TTest *test[] = {test_it_comes_back, test_an_empty_one_comes_back,
        test_every_flipped_bit_and_every_cut_is_damage,
        test_a_newer_version_is_told_apart,
        test_a_right_checksum_does_not_make_the_head_sound,
        test_images_that_cannot_be, test_without_memory_nothing_is_decoded,
        test_it_is_replaced_durably, test_one_of_both_is_there_whatever_fails,
        test_reads_that_fail, test_version_1_can_be_read_for_good};
    return run_tests("manifest", test, COUNT_OF(test));
}
