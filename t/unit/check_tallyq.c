/* SPDX-License-Identifier: BSD-3-Clause */
/* tallyq's pure parts: messages merged beside a slow model, the record and the
 * queue as texts, and the file of what is put aside. */
#include "client/talk.h"
#include "tallyq/aside.h"
#include "tallyq/batch.h"
#include "tallyq/record.h"
#include "tallyq/setup.h"
#include "tallyq/source.h"

#include "unit/check_help.h"

#include <check.h>
#include <stdio.h>

enum { SMALL = 64, KEYS = 1200, MESSAGES = 4000 };

static struct batch batch;

static void
setup(void)
{
    batch_clear(&batch);
}

static void
teardown(void)
{
    batch_fini(&batch);
}

static bool
take(uint64_t at, const char *text)
{
    size_t len = strlen(text);
    char *copy = malloc(len == 0 ? 1 : len); /* so that ASan sees its ends */
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, text, len);
    bool is_taken = batch_take(&batch, (struct position){.hi = at}, copy, len);
    free(copy);
    return is_taken;
}

static void
assert_change(uint32_t i, const char *key, uint64_t delta)
{
    ck_assert_uint_lt(i, batch.n);
    ck_assert_uint_eq(batch.change[i].key_len, strlen(key));
    ck_assert_mem_eq(batch.change[i].key, key, strlen(key));
    ck_assert_uint_eq(batch.change[i].delta, delta);
}

/* Bytes that were put aside; the buffer has no end of its own. */
static const char *
aside(void)
{
    buf_add(&batch.aside, "", 1);
    ck_assert(!batch.aside.failed);
    return batch.aside.data;
}

START_TEST(test_merge)
{
    ck_assert(take(1, "1.cntcm 1"));
    ck_assert(take(2, "2.cntcm 5\n1.cntcm 2\r\n"));
    ck_assert(take(9, "1.cntcm 18446744073709551612"));
    ck_assert_uint_eq(batch.n, 2);
    assert_change(0, "1.cntcm", UINT64_MAX);
    assert_change(1, "2.cntcm", 5);
    ck_assert(take(10, "1.cntcm 1")); /* the sum would pass its end */
    ck_assert(take(11, "1.cntcm 1"));
    assert_change(2, "1.cntcm", 2);
    ck_assert_uint_eq(batch.n, 3);
    ck_assert_uint_eq(batch.n_messages, 5);
    ck_assert_uint_eq(batch.n_lines, 6);
    ck_assert_uint_eq(batch.n_bad, 0);
    ck_assert_uint_eq(batch.last.hi, 11);
    ck_assert_uint_eq(batch.aside.len, 0);
}
END_TEST

START_TEST(test_bad)
{
    static const char *const texts[] = {"", "x", "x ", " 1", "x 0", "x -1",
        "x +1", "x 1 ", "x  1", "x 1 2", "x 18446744073709551616", "x\t1",
        "k\x7f 1", "k\xc3\xa4\x7f 1", "5.tallyq 1", "5.tq_done 1", "\n"};
    char key[BATCH_KEY_MAX + 8];
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        ck_assert(take(i + 1, texts[i]));
        ck_assert_uint_eq(batch.n_bad, i + 1);
    }
    memset(key, 'k', sizeof key);
    memcpy(key + BATCH_KEY_MAX + 1, " 1", 3);
    ck_assert(take(100, key));
    ck_assert_uint_eq(batch.n_bad, COUNT_OF(texts) + 1);
    ck_assert_uint_eq(batch.n, 0);
    ck_assert(take(101, key + 1)); /* one byte less is right */
    ck_assert_uint_eq(batch.n, 1);
    /* those beside a bad line count */
    ck_assert(take(102, "1.a 1\nbad\n\"\\ 1\n1.a 2"));
    assert_change(1, "1.a", 3);
    /* names, as they come */
    ck_assert(take(103, "http://a.b/?k\xc3\xa4\xff=1.a 1\n{x,\"}.a 2"));
    ck_assert(take(104, "http://a.b/?k\xc3\xa4\xff=1.a 4"));
    assert_change(3, "http://a.b/?k\xc3\xa4\xff=1.a", 5);
    assert_change(4, "{x,\"}.a", 2);
    const char *text = aside();
    ck_assert_ptr_nonnull(
        strstr(text, "at=102-0 why=\"a line is KEY DELTA\" line=\"bad\"\n"));
    ck_assert_ptr_nonnull(strstr(text, "line=\"k\\xc3\\xa4\\x7f 1\"\n"));
}
END_TEST

START_TEST(test_full)
{
    char text[SMALL];
    for (uint64_t i = 0; i < BATCH_CHANGES_MAX; i++) {
        (void)snprintf(text, sizeof text, "%" PRIu64 ".a 1", i);
        ck_assert(take(i + 1, text));
    }
    ck_assert(take(5000, "7.a 1")); /* merged */
    ck_assert(!take(5001, "7.b 1"));
    ck_assert(!take(5001, "7.a 1\n7.b 1"));
    assert_change(7, "7.a", 2);
    ck_assert_uint_eq(batch.last.hi, 5000);
    ck_assert_uint_eq(batch.n_messages, BATCH_CHANGES_MAX + 1);
}
END_TEST

/* One message of more cells than a batch has is bad, and does not block. */
START_TEST(test_large)
{
    struct buf text = {0};
    for (unsigned i = 0; i < KEYS; i++) {
        buf_addf(&text, "%u.a 1\n", i);
    }
    ck_assert(take(1, "1.a 1"));
    const struct position at = {.hi = 2};
    ck_assert(!batch_take(&batch, at, text.data, text.len));
    batch_clear(&batch);
    ck_assert(batch_take(&batch, at, text.data, text.len));
    ck_assert_uint_eq(batch.n, 0);
    ck_assert_uint_eq(batch.n_bad, 1);
    buf_fini(&text);
}
END_TEST

/* The same messages give the same changes; each cell's sum is right. */
START_TEST(test_model)
{
    static uint64_t model[KEYS];
    uint64_t digest[2], seed = 88172645463325252U;
    uint32_t n[2];
    char text[SMALL];
    for (unsigned round = 0; round < 2; round++) {
        uint64_t x = seed;
        batch_clear(&batch);
        memset(model, 0, sizeof model);
        for (uint64_t i = 1; i <= MESSAGES; i++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            uint64_t key = x % KEYS, by = 1 + (x >> 32) % 9;
            (void)snprintf(
                text, sizeof text, "%" PRIu64 ".c %" PRIu64, key, by);
            if (!take(i, text)) {
                ck_assert_uint_eq(batch.n, BATCH_CHANGES_MAX);
                break;
            }
            model[key] += by;
        }
        for (uint32_t i = 0; i < batch.n; i++) {
            const struct batch_change *change = &batch.change[i];
            ck_assert_uint_eq(
                model[strtoul(change->key, NULL, 10)], change->delta);
        }
        digest[round] = batch_digest(&batch);
        n[round] = batch.n;
    }
    ck_assert_uint_eq(digest[0], digest[1]);
    ck_assert_uint_eq(n[0], n[1]);
    batch.change[3].delta++;
    ck_assert_uint_ne(batch_digest(&batch), digest[0]);
}
END_TEST

START_TEST(test_record)
{
    const struct record record = {.done = {UINT64_MAX - 1, UINT64_MAX},
        .end = {UINT64_MAX, 0},
        .number = 7,
        .digest = UINT64_MAX};
    static const char *const bad[] = {"", "1 2 3 4 5", "1 2 3 4 5 6 7",
        "1 2 3 4 5 x", "1  2 3 4 5 6", "1 2 3 4 5 6 ", "3 2 3 1 5 6",
        "1 2 3 4 5 18446744073709551616"};
    char text[RECORD_TEXT_BYTES + 1];
    struct record read = {.number = 1};
    size_t len = record_format(&record, text);
    ck_assert_uint_eq(len, strlen(text));
    ck_assert(record_parse(text, len, &read));
    ck_assert(record_is(&read, &record));
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        ck_assert_msg(
            !record_parse(bad[i], strlen(bad[i]), &read), "%s", bad[i]);
    }
    ck_assert(record_is(&read, &record));
    ck_assert(record_parse("0 0 0 0 0 0", 11, &read));
    ck_assert(record_is(&read, &(struct record){.number = 0}));
}
END_TEST

START_TEST(test_source)
{
    static const struct {
        const char *text, *hosts, *name;
    } right[] = {{"redis://h/likes", "h:6379", "likes"},
        {"redis://[::1]:7/s", "[::1]:7", "s"},
        {"nats://a,b:1/S", "a:4222,b:1", "S"},
        {"kafka://a:9,b/t.x/12", "a:9,b:9092", "t.x.12"}};
    static const char *const wrong[] = {"", "h/likes", "http://h/likes",
        "redis://", "redis:///s", "redis://h", "redis://h/", "redis://a,b/s",
        "redis://h:0/s", "redis://h:65536/s", "redis://h:/s", "redis://:1/s",
        "nats://a,,b/s", "kafka://h/t", "kafka://h/t/", "kafka://h/t/x",
        "kafka://h//1", "kafka://h/t/-1", "kafka://h/t/2147483648",
        "redis://u:p@h/s"};
    struct source source;
    struct producer_name name;
    char host[SOURCE_HOSTS_MAX + 1];
    uint16_t port = 0;
    for (size_t i = 0; i < COUNT_OF(right); i++) {
        ck_assert_ptr_null(source_parse(right[i].text, &source));
        ck_assert_str_eq(source.hosts, right[i].hosts);
        ck_assert(source_name(&source, &name));
        ck_assert(
            producer_name_is(&name, right[i].name, strlen(right[i].name)));
    }
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        ck_assert_msg(source_parse(wrong[i], &source) != NULL, "%s", wrong[i]);
    }
    ck_assert_ptr_null(source_parse("redis://[::1]:7/a b", &source));
    ck_assert(!source_name(&source, &name));
    source_address(&source, host, &port);
    ck_assert_str_eq(host, "::1");
    ck_assert_uint_eq(port, 7);
}
END_TEST

static void
mark(void *context, uint64_t number)
{
    *(uint64_t *)context |= UINT64_C(1) << number;
}

START_TEST(test_aside)
{
    char path[] = "/tmp/check_tallyq.XXXXXX";
    struct aside_change change = {.end = {9, 1},
        .name = "likes",
        .number = 3,
        .digest = 0xabc,
        .key = "5.no",
        .key_len = 4,
        .delta = 2};
    struct buf text = {0};
    uint64_t found = 0;
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    aside_put_line(&text, change.end, "no", "end=1-1 tx=likes:9", 18);
    aside_put_change(&text, &change, "tx=\"likes\":8", 12);
    change.number = 5;
    aside_put_change(&text, &change, "w", 1);
    change.number = 6;
    change.name = "like";
    aside_put_change(&text, &change, "w", 1);
    change.name = "likes";
    change.digest++;
    aside_put_change(&text, &change, "w", 1);
    ck_assert(!text.failed);
    /* a line that a crash has cut, and whole ones behind it */
    ck_assert_int_eq(write(fd, "end=9-1 tx=likes:7 dig", 22), 22);
    ck_assert_int_eq(aside_write(path, text.data, text.len), 0);
    ck_assert_int_eq(aside_find(path, "likes", 0xabc, mark, &found), 0);
    ck_assert_uint_eq(found, 1 << 3 | 1 << 5);
    buf_fini(&text);
    (void)close(fd);
    (void)unlink(path);
    ck_assert_int_eq(aside_find(path, "likes", 0xabc, mark, &found), 0);
    ck_assert_int_ne(aside_write("/dev/full", "x\n", 2), 0);
}
END_TEST

START_TEST(test_address)
{
    static const char *const right[] = {"h:1", "[::1]:65535", "1.2.3.4:11211"};
    static const char *const wrong[] = {"", "h", "h:", ":1", "h:0", "h:65536",
        "::1:5", "[]:5", "h:1x", "h h:1"};
    for (size_t i = 0; i < COUNT_OF(right); i++) {
        ck_assert_msg(
            talk_is_address(right[i], strlen(right[i])), "%s", right[i]);
    }
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        ck_assert_msg(
            !talk_is_address(wrong[i], strlen(wrong[i])), "%s", wrong[i]);
    }
}
END_TEST

static bool
parses(struct setup *out, const char *a, const char *b, const char *c)
{
    char texts[4][SMALL] = {"tallyq"};
    char *argv[5] = {texts[0], texts[1], texts[2], texts[3], NULL};
    const char *const given[] = {a, b, c};
    int n = 1;
    for (unsigned i = 0; i < COUNT_OF(given); i++) {
        if (given[i] != NULL) {
            (void)snprintf(texts[n++], SMALL, "%s", given[i]);
        }
    }
    argv[n] = NULL;
    return setup_parse(out, n, argv);
}

START_TEST(test_setup)
{
    static struct setup out;
    static const char *const wrong[] = {"--nope", "--batch=0",
        "--batch=100001", "--linger", "--linger=x", "--name=a b", "word",
        "--login=/nonexistent"};
    const char *from = "--from=redis://h/likes", *server = "--server=a:1,b:2";
    ck_assert(parses(&out, from, server, NULL));
    ck_assert_uint_eq(out.talk.n_servers, 2);
    ck_assert_str_eq(out.name, "likes");
    ck_assert_str_eq(out.aside, "likes.aside");
    ck_assert(!parses(&out, from, NULL, NULL));
    ck_assert(!parses(&out, server, NULL, NULL));
    ck_assert(!parses(&out, from, "--server=a:1,", NULL));
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        ck_assert_msg(!parses(&out, from, server, wrong[i]), "%s", wrong[i]);
        ck_assert_int_ne(out.line.why[0], '\0');
    }
    ck_assert(parses(&out, "--help", NULL, NULL));
    ck_assert_int_eq(out.what, SETUP_HELP);
    ck_assert(parses(&out, "--help=man", NULL, NULL));
    ck_assert_int_eq(out.what, SETUP_MAN);
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("tallyq");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, test_merge);
    tcase_add_test(tcase, test_bad);
    tcase_add_test(tcase, test_full);
    tcase_add_test(tcase, test_large);
    tcase_add_test(tcase, test_model);
    tcase_add_test(tcase, test_record);
    tcase_add_test(tcase, test_source);
    tcase_add_test(tcase, test_aside);
    tcase_add_test(tcase, test_address);
    tcase_add_test(tcase, test_setup);
    return run_case("tallyq", tcase);
}
