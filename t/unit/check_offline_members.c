/* SPDX-License-Identifier: BSD-3-Clause */
/* offline/member_ids and member_check: whose the members of a directory are, as
 * --dump says it and --check compares it, of segments, of images and of the
 * log; numbers that two records have, counts that are wrong, pairs that nobody
 * has; disks that do not read, and segments that are not what was written. */
#include "offline/data_check.h"
#include "offline/dump.h"
#include "offline/member_check.h"
#include "unit/files_help.h"
#include "unit/members_help.h"

#include <errno.h>
#include <stdio.h>

enum {
    IDS = 300, /* more than one block of numbers in a shard */
    KEPT_MAX = 4096,
    LINE_MAX = 200,
    STEPS = 4
};

/* What the members are. */
struct kept {
    size_t n;
    struct {
        uint64_t id, member, value;
    } it[KEPT_MAX];
};

static struct kept wanted, got;

static void
keep(struct kept *kept, uint64_t id, uint64_t member, uint64_t value)
{
    size_t i = 0;
    while (i < kept->n &&
        (kept->it[i].id != id || kept->it[i].member != member)) {
        i++;
    }
    ck_assert_uint_lt(i, KEPT_MAX);
    kept->n += i == kept->n;
    kept->it[i].id = id;
    kept->it[i].member = member;
    kept->it[i].value = value;
}

static uint64_t
value_of(const struct kept *kept, uint64_t id, uint64_t member)
{
    for (size_t i = 0; i < kept->n; i++) {
        if (kept->it[i].id == id && kept->it[i].member == member) {
            return kept->it[i].value;
        }
    }
    return 0;
}

static void
expect_same(void)
{
    for (size_t i = 0; i < wanted.n; i++) {
        EXPECT(value_of(&got, wanted.it[i].id, wanted.it[i].member) ==
                wanted.it[i].value,
            "%d %d", (int)wanted.it[i].id, (int)wanted.it[i].member);
    }
    for (size_t i = 0; i < got.n; i++) {
        EXPECT(value_of(&wanted, got.it[i].id, got.it[i].member) ==
                got.it[i].value,
            "%d %d", (int)got.it[i].id, (int)got.it[i].member);
    }
}

static int
take(void *context, const char *text, size_t len)
{
    buf_add(context, text, len);
    return 0;
}

static int
dump(struct rig *rig, struct buf *text)
{
    const struct dump_config config = {.disk = rig->data.disk,
        .logger = &rig->logger,
        .write_fn = take,
        .context = text};
    buf_clear(text);
    int err = dump_run(&config);
    buf_add(text, "", 1);
    return err;
}

/* Does as the lines say; returns how many members are left out. */
static uint64_t
replay(char *text)
{
    uint64_t n_left_out = 0;
    got.n = 0;
    for (char *line = strtok(text, "\n"); line != NULL;
         line = strtok(NULL, "\n")) {
        unsigned long long id, member, value;
        if (sscanf(line, "member m %llu.liked:%llu %llu", &id, &member,
                &value) == 3) {
            keep(&got, id, member, value);
        } else if (sscanf(line, "unreachable members %llu", &value) == 1) {
            n_left_out = value;
        }
        ck_assert_ptr_null(strchr(line, '#')); /* none of pairs is shown */
        ck_assert(strncmp(line, "cells", 5) != 0 ||
            strstr(line, "likes") == NULL); /* members make it */
    }
    return n_left_out;
}

/* What --check says; *out is its lines. */
static int
check(struct rig *rig, struct buf *out)
{
    buf_clear(out);
    int err = data_check_disk(rig->data.disk, &rig->logger, out);
    buf_add(out, "", 1);
    return err;
}

static void
expect_check(struct rig *rig, int wanted_err, const char *line)
{
    struct buf out = {0};
    int err = check(rig, &out);
    ck_assert_msg(err == wanted_err, "%s", out.data);
    ck_assert_msg(strstr(out.data, line) != NULL, "%s: %s", line, out.data);
    buf_fini(&out);
}

/* The server goes without a checkpoint; all is in the log. */
static void
kill_it(struct rig *rig)
{
    ck_assert_int_eq(rig_commit(rig, members_seq), STORE_COMMITTED);
    fake_disk_die(rig->fake, 1);
    (void)rig_close(rig);
    fake_disk_revive(rig->fake);
}

static void
put(struct rig *rig, uint64_t id, uint64_t number, uint64_t member,
    uint64_t value)
{
    members_put(rig, id, "liked", number, member, value);
    keep(&wanted, id, member, value);
}

static void
count(struct rig *rig, uint64_t id)
{
    uint64_t n = 0;
    for (size_t i = 0; i < wanted.n; i++) {
        n += wanted.it[i].id == id && wanted.it[i].value != 0;
    }
    members_set_named(rig, id, "likes", n);
}

/* Records with members, then changes of some of them; with a checkpoint behind
 * step checkpoint_at, and no other, and all sealed behind step seal_at. */
static void
fill(struct rig *rig, int checkpoint_at, int seal_at)
{
    uint64_t last = 0;
    wanted.n = 0;
    for (int step = 0; step < STEPS; step++) {
        for (uint64_t id = 1; step == 0 && id <= IDS; id++) {
            uint64_t number = last;
            members_give(rig, id, "liked", &last, 0, 1, 0, 1);
            number = last;
            for (uint64_t m = 0; m < id % 4; m++) {
                put(rig, id, number, 7 * m, 1);
            }
            count(rig, id);
        }
        for (uint64_t id = 1; step == 1 && id <= IDS; id += 5) {
            put(rig, id, id + (id >= MEMBERS_MARK), 7,
                id % 2); /* its number */
            count(rig, id);
        }
        for (uint64_t id = 1; step == 2 && id <= IDS; id += 11) {
            members_give(rig, id, "liked", &last, 0, 1, 0, 1); /* another */
            for (size_t i = 0; i < wanted.n; i++) {
                if (wanted.it[i].id == id) {
                    wanted.it[i].value = 0;
                }
            }
            put(rig, id, last, 1000, 1);
            count(rig, id);
        }
        for (uint64_t id = 2; step == 3 && id <= IDS; id += 11) {
            members_set_named(rig, id, "liked", 0); /* deleted */
            for (size_t i = 0; i < wanted.n; i++) {
                if (wanted.it[i].id == id) {
                    wanted.it[i].value = 0;
                }
            }
            count(rig, id);
        }
        if (step == seal_at) {
            ck_assert_int_eq(rig_seal_all(rig), 0);
        }
        if (step == checkpoint_at) {
            ck_assert_int_eq(rig_checkpoint(rig), 0);
        }
    }
}

static void
make(struct rig *rig, int checkpoint_at, int seal_at)
{
    rig_init(rig, WAL_SYNC_ALWAYS, ID_RANDOM, 3);
    ck_assert_int_eq(rig_open(rig), 0);
    if (seal_at < 0) {
        members_add_counter(rig);
    } else {
        members_add_cold_counter(rig);
    }
    fill(rig, checkpoint_at, seal_at);
    kill_it(rig);
}

static uint64_t
n_wanted(void)
{
    uint64_t n = 0;
    for (size_t i = 0; i < wanted.n; i++) {
        n += wanted.it[i].value != 0;
    }
    return n;
}

/* All in the log; then more and more in images, or in segments, and the rest of
 * the log old or behind them; images over segments. */
START_TEST(test_whole)
{
    struct rig rig;
    struct buf text = {0};
    char line[LINE_MAX];
    make(&rig, _i % (STEPS + 1) - 1, _i / (STEPS + 1) - 1);
    ck_assert_int_eq(dump(&rig, &text), 0);
    ck_assert_uint_gt(replay(text.data), 0);
    expect_same();
    (void)snprintf(line, sizeof line, "\nmembers %d\n", (int)n_wanted());
    expect_check(&rig, 0, line);
    ck_assert_int_eq(rig_open(&rig), 0); /* as a start has it */
    ck_assert_int_eq(rig_close(&rig), 0);
    expect_check(&rig, 0, line);
    ck_assert_int_eq(dump(&rig, &text), 0);
    (void)replay(text.data);
    expect_same();
    buf_fini(&text);
    rig_fini(&rig);
}
END_TEST

/* Where a record is made wrong: */
enum wrong {
    WRONG_LOG,
    WRONG_IMAGE,
    WRONG_SEGMENT,
    WRONG_LOG_OVER,   /* in the log, over a segment */
    WRONG_IMAGE_OVER, /* likewise */
    WRONGS
};

static bool
is_over(int i)
{
    return i == WRONG_LOG_OVER || i == WRONG_IMAGE_OVER;
}

/* What was done in memory goes there. */
static void
settle(struct rig *rig, int i)
{
    if (i == WRONG_SEGMENT) {
        ck_assert_int_eq(rig_seal_all(rig), 0);
    } else if (i == WRONG_IMAGE || i == WRONG_IMAGE_OVER) {
        ck_assert_int_eq(rig_checkpoint(rig), 0);
    }
    kill_it(rig);
}

static void
expect_wrong(int i, void (*harm)(struct rig *rig), int err, const char *line)
{
    struct rig rig;
    make(&rig, STEPS - 1,
        is_over(i)               ? STEPS - 1
            : i == WRONG_SEGMENT ? 0
                                 : -1);
    ck_assert_int_eq(rig_open(&rig), 0);
    harm(&rig);
    settle(&rig, i);
    expect_check(&rig, err, line);
    rig_fini(&rig);
}

static void
flip_count(struct rig *rig)
{
    members_set_named(rig, 3, "likes", 2);
}

static void
count_nothing(struct rig *rig)
{
    members_set_named(rig, 5000, "likes", 1);
}

static void
lose_member(struct rig *rig)
{
    members_put(rig, 3, "liked", 3, 7, 0);
}

/* Of a shard: so it takes the number of one whose pairs are there, too. */
static void
share_number(struct rig *rig)
{
    uint64_t pair = store_pair(rig->store, 3, 3, MEMBERS_BITS, 0);
    for (uint64_t id = 6000; id < 6100; id++) {
        if (store_pair(rig->store, id, 3, MEMBERS_BITS, 0) == pair) {
            members_set_named(rig, id, "liked", 3);
            return;
        }
    }
    ck_abort();
}

/* A value that is not 1 is a member, too. */
static void
give_up(struct rig *rig)
{
    members_set_named(rig, 3, "liked", 0);
    members_set_named(rig, 3, "likes", 0);
}

/* A start would take out what the record has. */
static void
note_wrongly(struct rig *rig)
{
    members_put(rig, 3, "liked", MEMBERS_MARK, 3, 1);
}

START_TEST(test_wrong)
{
    static const char damaged[] = "members ";
    expect_wrong(_i, flip_count, ERR_CORRUPT, damaged);
    expect_wrong(_i, count_nothing, ERR_CORRUPT, damaged);
    expect_wrong(_i, lose_member, ERR_CORRUPT, damaged);
    expect_wrong(_i, share_number, ERR_CORRUPT, damaged);
    expect_wrong(_i, note_wrongly, ERR_CORRUPT, damaged);
    /* what is being taken out may be at the end of the log, torn */
    expect_wrong(_i, give_up, 0, "\nmembers_unreachable ");
}
END_TEST

/* A count, and nobody has members. */
START_TEST(test_count_alone)
{
    struct rig rig;
    rig_init(&rig, WAL_SYNC_ALWAYS, ID_RANDOM, 3);
    ck_assert_int_eq(rig_open(&rig), 0);
    members_add_cold_counter(&rig);
    members_set_named(&rig, 77, "plain", 1);
    if (is_over(_i)) {
        ck_assert_int_eq(rig_seal_all(&rig), 0);
    }
    expect_check(&rig, 0, "\nmembers 0\n");
    count_nothing(&rig);
    settle(&rig, _i);
    expect_check(&rig, ERR_CORRUPT, "\nmembers 0\n");
    rig_fini(&rig);
}
END_TEST

/* The marks and what was given up are no members. */
START_TEST(test_unreachable)
{
    struct rig rig;
    uint64_t last = 0;
    rig_init(&rig, WAL_SYNC_ALWAYS, ID_RANDOM, 3);
    ck_assert_int_eq(rig_open(&rig), 0);
    members_add_cold_counter(&rig);
    members_give(&rig, 8, "s", &last, 0, 1, 5, 200);
    if (is_over(_i)) {
        ck_assert_int_eq(rig_seal_all(&rig), 0);
    }
    members_give(&rig, 8, "s", &last, 0, 1, 3, 200);
    settle(&rig, _i);
    expect_check(&rig, 0, "\nmembers 3\nmembers_unreachable 5\n");
    rig_fini(&rig);
}
END_TEST

/* Each call in turn: that is said, or it does not matter. */
START_TEST(test_disk_fails)
{
    struct rig rig;
    struct buf whole = {0}, now = {0};
    bool has_failed = true;
    make(&rig, 2, _i == 0 ? -1 : 1);
    ck_assert_int_eq(dump(&rig, &whole), 0);
    for (unsigned n = 1; has_failed; n++) {
        fake_disk_fail(rig.fake, FAKE_ALL, n, EIO, false);
        int err = dump(&rig, &now);
        has_failed = fake_disk_heal(rig.fake) > 0;
        EXPECT(err == 0 || (err == ERR_DISK && has_failed), "call %u: %s", n,
            err_text(err));
        if (err == 0) {
            ck_assert_uint_eq(now.len, whole.len);
            ck_assert_int_eq(memcmp(now.data, whole.data, now.len), 0);
        }
    }
    buf_fini(&whole);
    buf_fini(&now);
    rig_fini(&rig);
}
END_TEST

/* A segment of pairs, and nothing else of them: each bit of it. */
START_TEST(test_every_flipped_bit_is_found)
{
    enum { RECORDS = 12 };
    struct rig rig;
    struct files files;
    struct buf out = {0};
    size_t n_files = 0;
    rig_init(&rig, WAL_SYNC_ALWAYS, ID_RANDOM, 3);
    ck_assert_int_eq(rig_open(&rig), 0);
    members_add_cold_counter(&rig);
    for (uint64_t id = 1; id <= RECORDS; id++) {
        members_change(&rig, id, "liked", 5 * id, 1);
    }
    ck_assert_int_eq(rig_seal_all(&rig), 0);
    ck_assert_int_eq(rig_close(&rig), 0);
    expect_check(&rig, 0, "\nmembers 12\n");
    read_files(rig.data.disk, &files);
    for (size_t i = 0; i < files.n; i++) {
        const struct file *file = &files.file[i];
        bool is_segment = strncmp(file->name, "segment", 7) == 0;
        n_files += is_segment;
        for (uint64_t at = 0; is_segment && at < file->len; at++) {
            uint8_t bit = (uint8_t)(1U << (at + (unsigned)_i) % 8);
            fake_disk_flip(rig.fake, file->name, at, bit);
            EXPECT(check(&rig, &out) == ERR_CORRUPT, "%s, offset %d, bit %d",
                file->name, (int)at, bit);
            fake_disk_flip(rig.fake, file->name, at, bit);
        }
    }
    ck_assert_uint_eq(n_files, 2); /* of records, and of pairs */
    buf_fini(&out);
    free_files(&files);
    rig_fini(&rig);
}
END_TEST

/* Members in a segment, in images and in the log; all that their columns are
 * is in the manifest, one of them in the log. */
static void
fill_all_files(struct rig *rig)
{
    enum { RECORDS = 9 };
    members_add_cold_counter(rig);
    for (uint64_t id = 1; id <= RECORDS; id++) {
        members_change(rig, id, "liked", 5 * id, 1);
    }
    ck_assert_int_eq(rig_seal_all(rig), 0);
    for (uint64_t id = 3; id <= RECORDS; id += 3) {
        members_change(rig, id, "liked", 7, 1);
    }
    ck_assert_int_eq(rig_checkpoint(rig), 0);
    ck_assert_int_eq(
        edit(rig->store, "add column m m_seen marks=liked unread=unm"), 0);
    for (uint64_t id = 2; id <= RECORDS; id += 3) {
        members_change(rig, id, "liked", 9, 1);
        members_change(rig, id + 1, "liked", 7, 0);
    }
}

/* What the directory says, whatever its files are. */
static void
expect_dump(struct rig *rig, const struct buf *text)
{
    struct buf now = {0};
    ck_assert_int_eq(dump(rig, &now), 0);
    ck_assert_uint_eq(now.len, text->len);
    ck_assert_int_eq(memcmp(now.data, text->data, now.len), 0);
    buf_fini(&now);
}

/* The same for the manifest, the images and the log. The manifest's copy is
 * read where there is no manifest; else it may be as it likes. */
START_TEST(test_every_flipped_bit_is_found_elsewhere)
{
    struct rig rig;
    struct files files;
    struct buf whole = {0}, out = {0};
    unsigned n_files = 0;
    rig_init(&rig, WAL_SYNC_ALWAYS, ID_RANDOM, 3);
    ck_assert_int_eq(rig_open(&rig), 0);
    fill_all_files(&rig);
    ck_assert_int_eq(rig_close(&rig), 0);
    expect_check(&rig, 0, "\nmembers 12\n");
    ck_assert_int_eq(dump(&rig, &whole), 0);
    read_files(rig.data.disk, &files);
    for (size_t i = 0; i < files.n; i++) {
        const struct file *file = &files.file[i];
        bool is_copy = strcmp(file->name, "MANIFEST.copy") == 0;
        bool is_segment = strncmp(file->name, "segment", 7) == 0;
        n_files += !is_segment && used_bytes(file) > 0;
        for (uint64_t at = 0; !is_segment && at < used_bytes(file); at++) {
            uint8_t bit = (uint8_t)(1U << (at + (unsigned)_i) % 8);
            fake_disk_flip(rig.fake, file->name, at, bit);
            EXPECT(check(&rig, &out) == (is_copy ? 0 : ERR_CORRUPT),
                "%s, offset %d, bit %d", file->name, (int)at, bit);
            if (is_copy && at % 32 == 0) {
                expect_dump(&rig, &whole);
            }
            fake_disk_flip(rig.fake, file->name, at, bit);
        }
    }
    ck_assert_uint_ge(n_files, 4); /* both manifests, images, log */
    buf_fini(&whole);
    buf_fini(&out);
    free_files(&files);
    rig_fini(&rig);
}
END_TEST

/* The last of each key, in any order, also where it grows. */
START_TEST(test_latest)
{
    enum { KEYS = 3000, CALLS = 40000 };
    static uint64_t last[KEYS];
    static bool is_there[KEYS];
    struct latest latest = {0};
    uint64_t state = 5;
    for (uint64_t i = 0; i < CALLS; i++) {
        uint64_t key = random_below(&state, KEYS);
        ck_assert_int_eq(latest_add(&latest, key, i), 0);
        last[key] = i;
        is_there[key] = true;
    }
    latest_sort(&latest);
    ck_assert_uint_le(latest.n, KEYS);
    ck_assert_uint_le(latest.capacity, 8192);
    for (uint64_t key = 0; key < KEYS; key++) {
        const struct latest_one *one = latest_find(&latest, key);
        ck_assert(is_there[key] == (one != NULL));
        ck_assert(one == NULL || one->value == last[key]);
    }
    ck_assert_ptr_null(latest_find(&latest, KEYS));
    latest_fini(&latest);
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("offline_members");
    int bits = (int)long_part(8); /* of a byte */
    tcase_add_test(tcase, test_latest);
    tcase_add_loop_test(tcase, test_whole, 0, (STEPS + 1) * (STEPS + 1));
    tcase_add_loop_test(tcase, test_wrong, 0, WRONGS);
    tcase_add_loop_test(tcase, test_count_alone, 0, WRONGS);
    tcase_add_loop_test(tcase, test_unreachable, 0, WRONGS);
    tcase_add_loop_test(tcase, test_disk_fails, 0, 2);
    tcase_add_loop_test(tcase, test_every_flipped_bit_is_found, 0, bits);
    tcase_add_loop_test(
        tcase, test_every_flipped_bit_is_found_elsewhere, 0, bits);
    return run_case("offline_members", tcase);
}
