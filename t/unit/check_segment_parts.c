/* SPDX-License-Identifier: BSD-3-Clause */
/* A segment file that answers for two ranges of ids, with those of other files
 * between them, in which it has records that do not count any more. A dump has
 * each record once; a salvage of one of the files leaves those of the others,
 * and has the new file answer for both ranges. And a file of another data
 * directory under the name of one of these. */
#include "unit/cold_help.h"
#include "unit/files_help.h"

#include "base/buf.h"
#include "cold/block.h"
#include "cold/segment_head.h"
#include "offline/dump.h"
#include "offline/salvage.h"

enum {
    FILES = 3,
    HOT = 7,   /* one id of so many is changed again behind its seal */
    SHIFT = 8, /* numbers so wide that a file has several blocks */
    HEAD_AT = 50,
    NAME_BYTES = 40
};

/* What is there: ranges of file 1, then 2, then 3, then 1 again; each record as
 * it was sealed, and as it is now. */
struct world {
    struct cold_rig rig;
    uint64_t sealed[COLD_IDS][COLD_COLUMNS];
    struct files files;
};

static unsigned
owner_of(uint64_t id)
{
    static const unsigned owner[COLD_BLOCKS] = {1, 1, 2, 3, 1, 1};
    return owner[id / COLD_BLOCK_IDS];
}

/* Changes one id of `each` in some blocks. */
static void
change(struct cold_rig *rig, unsigned first, unsigned last, uint64_t each)
{
    for (uint64_t id = first * COLD_BLOCK_IDS;
         id < (last + 1) * COLD_BLOCK_IDS; id += each) {
        uint64_t operand[COLD_COLUMNS];
        for (unsigned i = 0; i < COLD_COLUMNS; i++) {
            operand[i] = 1 + (random_below(&rig->random, UINT64_MAX) >> SHIFT);
        }
        ck_assert(cold_change(rig, id, CHANGE_SET, 0, COLD_COLUMNS, operand));
    }
}

static void
seal(struct cold_rig *rig, unsigned first, unsigned last)
{
    change(rig, first, last, 1);
    ck_assert_int_eq(cold_seal(rig, first, last, NULL), 0);
}

static void
begin(struct world *world, uint64_t seed)
{
    struct cold_rig *rig = &world->rig;
    cold_init(rig, seed);
    ck_assert_int_eq(cold_open(rig), 0);
    rig->is_lazy = true;
    seal(rig, 0, COLD_BLOCKS - 1);
    seal(rig, 2, 3);
    seal(rig, 3, 3);
    memcpy(world->sealed, rig->value, sizeof world->sealed);
    change(rig, 0, 3, HOT);
    ck_assert_int_eq(cold_checkpoint(rig), 0);
    change(rig, 3, COLD_BLOCKS - 1, HOT);
    ck_assert_int_eq(cold_close(rig, false), 0);
    read_files(rig->data.disk, &world->files);
}

static void
end(struct world *world)
{
    free_files(&world->files);
    cold_fini(&world->rig);
}

static struct file *
file_of(struct world *world, unsigned number)
{
    char name[SEGMENT_NAME_BYTES];
    segment_name(name, number, false);
    for (size_t i = 0; i < world->files.n; i++) {
        if (strcmp(world->files.file[i].name, name) == 0) {
            return &world->files.file[i];
        }
    }
    ck_abort_msg("no file %u", number);
}

/* Another disk, with the files as they are. */
static void
put_back(struct world *world)
{
    fake_disk_destroy(&world->rig.fake);
    world->rig.fake = disk_of(&world->files);
    world->rig.data.disk = fake_disk_as_disk(world->rig.fake);
}

/* ---- a dump ---- */

struct shown {
    unsigned n_segments, n_damaged, n_foreign;
    unsigned n_cold[COLD_IDS]; /* lines of segments' records */
    uint64_t sealed[COLD_IDS][COLD_COLUMNS], value[COLD_IDS][COLD_COLUMNS];
};

static void
take_record(struct shown *shown, const char *line, bool is_cold)
{
    uint64_t id, value[COLD_COLUMNS];
    ck_assert_int_eq(
        sscanf(line, "record c %lu %lu %lu", &id, &value[0], &value[1]),
        1 + COLD_COLUMNS);
    ck_assert_uint_lt(id, COLD_IDS);
    memcpy(shown->value[id], value, sizeof value);
    if (is_cold) {
        memcpy(shown->sealed[id], value, sizeof value);
        shown->n_cold[id]++;
    }
}

static void
take_cells(struct shown *shown, const char *line)
{
    uint64_t id, value;
    char column;
    int n;
    ck_assert_int_eq(sscanf(line, "cells c %lu%n", &id, &n), 1);
    ck_assert_uint_lt(id, COLD_IDS);
    line += n;
    for (; sscanf(line, " %c=%lu%n", &column, &value, &n) == 2; line += n) {
        shown->value[id][column - 'x'] = value;
    }
}

static int
take_text(void *context, const char *text, size_t len)
{
    buf_add(context, text, len);
    return 0;
}

static int
dump(struct cold_rig *rig, struct shown *shown)
{
    struct buf text = {0};
    const struct dump_config config = {.disk = rig->data.disk,
        .logger = &rig->logger,
        .write_fn = take_text,
        .context = &text};
    bool is_cold = false;
    int err = dump_run(&config);
    *shown = (struct shown){0};
    buf_add(&text, "", 1);
    for (char *line = text.data, *end; (end = strchr(line, '\n')) != NULL;
         line = end + 1) {
        *end = '\0';
        if (strncmp(line, "segment ", 8) == 0) {
            shown->n_segments++;
            is_cold = true;
        } else if (strncmp(line, "image ", 6) == 0) {
            is_cold = false;
        } else if (strncmp(line, "record ", 7) == 0) {
            take_record(shown, line, is_cold);
        } else if (strncmp(line, "cells ", 6) == 0) {
            take_cells(shown, line);
        } else if (strncmp(line, "damaged ", 8) == 0) {
            shown->n_damaged++;
            shown->n_foreign += strstr(line, "missing, or another's") != NULL;
        }
    }
    buf_fini(&text);
    return err;
}

/* Each id once, as it was sealed, and then as it is; but nothing of the ids
 * first..last that a file has lost, unless they are hot. */
static void
expect_shown(const struct world *world, const struct shown *shown,
    unsigned lost, uint64_t first, uint64_t last)
{
    for (uint64_t id = 0; id < COLD_IDS; id++) {
        const uint64_t *value = world->rig.value[id];
        bool is_lost = owner_of(id) == lost && id >= first && id <= last;
        EXPECT(shown->n_cold[id] == !is_lost, "id %lu: %u records", id,
            shown->n_cold[id]);
        EXPECT(is_lost ||
                memcmp(shown->sealed[id], world->sealed[id],
                    sizeof shown->sealed[id]) == 0,
            "id %lu is another's", id);
        EXPECT(memcmp(shown->value[id], value, sizeof shown->value[id]) == 0,
            "id %lu is not what it is", id);
    }
}

static struct shown shown;

START_TEST(test_dump)
{
    static struct world world;
    begin(&world, 3);
    ck_assert_int_eq(dump(&world.rig, &shown), 0);
    ck_assert_uint_eq(shown.n_segments, FILES);
    expect_shown(&world, &shown, 0, 0, 0);
    end(&world);
}
END_TEST

/* ---- a salvage ---- */

static void
salvage(struct cold_rig *rig, enum salvage_outcome wanted, struct buf *report)
{
    const struct salvage_config config = {.disk = rig->data.disk,
        .logger = &rig->logger,
        .free_bytes = UINT64_MAX,
        .codec = BLOCK_AUTO,
        .level = 1,
        .shards = COLD_SHARDS,
        .seed = 3};
    enum salvage_outcome outcome;
    ck_assert_int_eq(salvage_run(&config, report, &outcome), 0);
    buf_add(report, "", 1);
    ck_assert_msg(outcome == wanted, "%d:\n%s", outcome, report->data);
}

/* Of all files that one is told of, and only once. */
static void
expect_told(const char *report, unsigned number)
{
    for (unsigned i = 1; i <= FILES; i++) {
        char name[SEGMENT_NAME_BYTES], wanted[SEGMENT_NAME_BYTES + NAME_BYTES];
        unsigned n = 0, n_all = 0;
        segment_name(name, i, false);
        int len = snprintf(wanted, sizeof wanted, "%s: ", name);
        for (const char *at = report; (at = strstr(at, name)) != NULL; at++) {
            n += strncmp(at, wanted, (size_t)len) == 0;
            n_all++;
        }
        ck_assert_msg(n == (i == number), "%s", report);
        ck_assert_msg(i == number || n_all == 0, "%s", report);
    }
}

/* The ids first..last of a file are lost: hot ones are not, for the log has
 * their whole records. */
static void
forget(struct world *world, unsigned number, uint64_t first, uint64_t last)
{
    for (uint64_t id = first; id <= last && id < COLD_IDS; id++) {
        uint64_t *value = world->rig.value[id];
        if (owner_of(id) == number &&
            memcmp(value, world->sealed[id], sizeof world->sealed[id]) == 0) {
            memset(value, 0, sizeof world->sealed[id]);
        }
    }
}

/* Which ids the lost blocks had, as the report has it. */
static void
find_lost(const char *report, uint64_t *first, uint64_t *last)
{
    const char *at = strstr(report, "blocks are lost, with the records");
    ck_assert_msg(at != NULL, "%s", report);
    ck_assert_int_eq(sscanf(at, "%*[^0-9]%lu to %lu", first, last), 2);
    ck_assert_uint_le(*first, *last);
}

enum loss { NOTHING, BLOCKS, ALL };

/* Of a file something is damaged, in the files as they are. Salvages that, and
 * looks at what is there by a dump, and by a start. Returns how many ids have
 * lost their records. */
static unsigned
expect_salvaged(
    struct world *world, unsigned number, enum loss loss, const char *says)
{
    static uint64_t before[COLD_IDS][COLD_COLUMNS];
    struct cold_rig *rig = &world->rig;
    struct buf report = {0};
    uint64_t first = loss == NOTHING ? 1 : 0;
    uint64_t last = loss == NOTHING ? 0 : COLD_IDS - 1;
    unsigned n_lost = 0;
    memcpy(before, rig->value, sizeof before);
    put_back(world);
    ck_assert_int_eq(dump(rig, &shown), ERR_CORRUPT);
    ck_assert_uint_eq(shown.n_damaged, 1);
    ck_assert_uint_eq(shown.n_foreign, loss == ALL);
    salvage(rig, loss == NOTHING ? SALVAGE_WHOLE : SALVAGE_LOSSY, &report);
    expect_told(report.data, number);
    ck_assert_msg(strstr(report.data, says) != NULL, "%s", report.data);
    if (loss == BLOCKS) {
        find_lost(report.data, &first, &last);
    }
    forget(world, number, first, last);
    ck_assert_int_eq(dump(rig, &shown), 0);
    ck_assert_uint_eq(
        shown.n_segments, FILES - (strstr(report.data, ": 0 of ") != NULL));
    expect_shown(world, &shown, number, first, last);
    for (uint64_t id = first; id <= last && id < COLD_IDS; id++) {
        n_lost += owner_of(id) == number;
    }
    ck_assert_int_eq(cold_open(rig), 0);
    cold_judge(rig);
    ck_assert_int_eq(cold_close(rig, true), 0);
    memcpy(rig->value, before, sizeof before);
    buf_fini(&report);
    return n_lost;
}

static void
turn(struct file *file, uint64_t at)
{
    for (unsigned i = 0; i < 8; i++) {
        file->bytes[at + i] ^= 0x55;
    }
}

/* Each block of each file; two of them have only one, and no file is left of
 * that. */
START_TEST(test_blocks)
{
    static struct world world;
    begin(&world, 3);
    for (unsigned number = 1; number <= FILES; number++) {
        struct file *file = file_of(&world, number);
        unsigned n_lost = 0;
        for (uint64_t block = 0;; block++) {
            uint64_t at = SEGMENT_HEAD_BYTES + block * BLOCK_BYTES_MAX;
            if (at + BLOCK_BYTES_MAX >= file->len) {
                break;
            }
            turn(file, at + HEAD_AT);
            n_lost += expect_salvaged(&world, number, BLOCKS, "are saved");
            turn(file, at + HEAD_AT);
        }
        /* none is lost with two of them, and what others have is not lost */
        for (uint64_t id = 0; id < COLD_IDS; id++) {
            n_lost -= owner_of(id) == number;
        }
        ck_assert_uint_eq(n_lost, 0);
    }
    end(&world);
}
END_TEST

/* The columns are known without it. */
START_TEST(test_heads)
{
    static struct world world;
    begin(&world, 4);
    for (unsigned number = 1; number <= FILES; number++) {
        struct file *file = file_of(&world, number);
        turn(file, HEAD_AT);
        (void)expect_salvaged(
            &world, number, NOTHING, "the head is not what was written");
        turn(file, HEAD_AT);
    }
    end(&world);
}
END_TEST

/* A sound file, but of another directory, or of another number in this one (_i
 * is 1): none of its records may come up. */
START_TEST(test_anothers)
{
    static struct world world, other;
    begin(&world, 5);
    begin(&other, 6);
    for (unsigned number = 1; number <= FILES; number++) {
        struct file *file = file_of(&world, number);
        struct file own = *file;
        const struct file *its = _i == 0 ? file_of(&other, number)
                                         : file_of(&world, number % FILES + 1);
        file->bytes = its->bytes;
        file->len = its->len;
        (void)expect_salvaged(&world, number, ALL, "is missing, or another's");
        *file = own;
    }
    end(&other);
    end(&world);
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("segment_parts");
    tcase_add_test(tcase, test_dump);
    tcase_add_test(tcase, test_blocks);
    tcase_add_test(tcase, test_heads);
    tcase_add_loop_test(tcase, test_anothers, 0, 2);
    return run_case("segment_parts", tcase);
}
