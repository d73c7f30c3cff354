/* SPDX-License-Identifier: BSD-3-Clause */
/* server/config: lines of every form, and each way a file can be wrong. What
 * the parser gives is written down as "line:name=value;" and compared. */
#include "server/config.h"

#include "base/err.h"
#include "unit/check_help.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STOP_ERR = ERR_BAD_MAX, RANDOM_ROUNDS = 20000, LINES_MIN = 5000 };

struct seen {
    struct buf text;
    const char *stop_at; /* NULL: take every line */
};

static int
note(void *context, const struct config_line *line, struct buf *message)
{
    struct seen *seen = context;

    if (seen->stop_at != NULL && strcmp(line->name, seen->stop_at) == 0) {
        buf_addf(message, "%s:%u refused\n", line->file, line->line);
        return STOP_ERR;
    }
    buf_addf(&seen->text, "%u:%s=%s;", line->line, line->name,
        line->value == NULL ? "(none)" : line->value);
    return 0;
}

static void
finish(struct buf *buf)
{
    buf_add(buf, "", 1);
    ck_assert(!buf->failed);
}

/* The file gives these settings. */
static void
gives(const char *file, const char *expected)
{
    struct seen seen = {0};
    struct buf message = {0};
    size_t len = strlen(file);
    char *text = malloc(len + 1); /* of its size, so that ASan sees more */

    ck_assert_ptr_nonnull(text);
    memcpy(text, file, len);
    ck_assert_int_eq(config_parse("f", text, len, note, &seen, &message), 0);
    finish(&seen.text);
    ck_assert_str_eq(seen.text.data, expected);
    ck_assert_uint_eq(message.len, 0);
    free(text);
    buf_fini(&seen.text);
    buf_fini(&message);
}

/* The file is refused, with this message. */
static void
refuses(const char *file, size_t len, const char *expected)
{
    struct seen seen = {0};
    struct buf message = {0};

    ck_assert_int_eq(
        config_parse("f", file, len, note, &seen, &message), ERR_BAD_OPTION);
    finish(&message);
    ck_assert_str_eq(message.data, expected);
    buf_fini(&seen.text);
    buf_fini(&message);
}

START_TEST(test_forms)
{
    gives("", "");
    gives("\n\n  \n\t\n", "");
    gives("port 11211", "1:port=11211;");
    gives("port 11211\n", "1:port=11211;");
    gives("port=11211\r\n", "1:port=11211;");
    gives("  port  =\t11211  \n", "1:port=11211;");
    gives("port = 1\nport= 2\nport =3\n", "1:port=1;2:port=2;3:port=3;");
    gives("daemon\n  verbose \n", "1:daemon=(none);2:verbose=(none);");
    gives("user a b\n", "1:user=a b;");
    gives("user = =\n", "1:user==;");
    gives("user a=b\n", "1:user=a=b;");
}
END_TEST

START_TEST(test_comments)
{
    gives("# port 1\n #port 2\n#\nport 3", "4:port=3;");
    gives("port 3 # three\ndaemon # yes", "1:port=3;2:daemon=(none);");
    gives("schema /a#b\nschema a#", "1:schema=/a#b;2:schema=a#;");
}
END_TEST

START_TEST(test_malformed)
{
    static const char nul[] = "a b\nport 1\0001\n";
    static const char form[] = "f:1: a line is NAME, NAME VALUE or NAME = "
                               "VALUE\n";
    char expected[128];

    snprintf(expected, sizeof expected, "tallyd: %s", form);
    refuses("= 5\n", 4, expected);
    refuses("port =\n", 7, expected);
    refuses("=\n", 2, expected);
    refuses("port = # none\n", 14, expected);
    refuses(nul, sizeof nul - 1,
        "tallyd: f:2: the line holds bytes that are not text\n");
    refuses("\033[0m\n", 5,
        "tallyd: f:1: the line holds bytes that are not text\n");
}
END_TEST

START_TEST(test_line_limit)
{
    char line[CONFIG_LINE_BYTES_MAX + 2];
    struct seen seen = {0};
    struct buf message = {0};

    memset(line, 'x', sizeof line);
    line[1] = ' ';
    ck_assert_int_eq(
        config_parse("f", line, CONFIG_LINE_BYTES_MAX, note, &seen, &message),
        0);
    ck_assert_uint_eq(seen.text.len, CONFIG_LINE_BYTES_MAX + 3);
    refuses(line, CONFIG_LINE_BYTES_MAX + 1,
        "tallyd: f:1: the line is too long\n");
    buf_fini(&seen.text);
    buf_fini(&message);
}
END_TEST

START_TEST(test_callback_ends_it)
{
    static const char file[] = "a 1\nb 2\nc 3\n";
    struct seen seen = {.stop_at = "b"};
    struct buf message = {0};

    ck_assert_int_eq(
        config_parse("f", file, sizeof file - 1, note, &seen, &message),
        STOP_ERR);
    finish(&seen.text);
    finish(&message);
    ck_assert_str_eq(seen.text.data, "1:a=1;");
    ck_assert_str_eq(message.data, "f:2 refused\n");
    buf_fini(&seen.text);
    buf_fini(&message);
}
END_TEST

/* Random bytes out of those that mean something: never a crash, and every
 * name that comes out is one word. */
static int
check_line(void *context, const struct config_line *line, struct buf *message)
{
    unsigned *lines = context;

    (void)message;
    (*lines)++;
    ck_assert_uint_gt(strlen(line->name), 0);
    ck_assert_ptr_null(strpbrk(line->name, " \t\r\n="));
    ck_assert(line->value == NULL || line->value[0] != '\0');
    return 0;
}

START_TEST(test_random)
{
    static const char alphabet[] = "ab= \t\n\r#=\n";
    uint64_t state = 88172645463325252u;
    struct buf message = {0};
    unsigned lines = 0;
    char file[24];

    for (int round = 0; round < RANDOM_ROUNDS; round++) {
        for (size_t i = 0; i < sizeof file; i++) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            file[i] = alphabet[state % (sizeof alphabet - 1)];
        }
        int err =
            config_parse("f", file, sizeof file, check_line, &lines, &message);
        ck_assert(err == 0 || err == ERR_BAD_OPTION);
        ck_assert_int_eq(err != 0, message.len > 0);
        buf_clear(&message);
    }
    ck_assert_uint_gt(lines, LINES_MIN); /* the rounds meant something */
    buf_fini(&message);
}
END_TEST

/* Writes a file of len bytes out of one line said again and again. */
static void
make_file(char *path, size_t len)
{
    static const char line[] = "port 7\n";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    FILE *stream = fdopen(fd, "w");
    ck_assert_ptr_nonnull(stream);
    for (size_t i = 0; i < len; i++) {
        fputc(line[i % (sizeof line - 1)], stream);
    }
    ck_assert_int_eq(fclose(stream), 0);
}

START_TEST(test_files)
{
    char path[] = "check_config.XXXXXX";
    char big[] = "check_config.XXXXXX";
    struct seen seen = {0};
    struct buf message = {0};

    make_file(path, 7);
    make_file(big, CONFIG_FILE_BYTES_MAX + 1);
    ck_assert_int_eq(config_read(path, note, &seen, &message), 0);
    finish(&seen.text);
    ck_assert_str_eq(seen.text.data, "1:port=7;");
    ck_assert_int_eq(config_read(big, note, &seen, &message), ERR_TOO_LARGE);
    ck_assert_int_eq(config_read("/", note, &seen, &message), ERR_SYSTEM);
    ck_assert_int_eq(
        config_read("no/such/file", note, &seen, &message), ERR_SYSTEM);
    finish(&message);
    ck_assert_ptr_nonnull(strstr(message.data, "larger than 64 KiB"));
    ck_assert_ptr_nonnull(strstr(message.data, "/: Is a directory"));
    ck_assert_ptr_nonnull(strstr(message.data, "no/such/file: No such file"));
    unlink(path);
    unlink(big);
    buf_fini(&seen.text);
    buf_fini(&message);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("config");
    TCase *tcase = tcase_create("config");
    SRunner *sr = srunner_create(suite);
    int failed;

    tcase_add_test(tcase, test_forms);
    tcase_add_test(tcase, test_comments);
    tcase_add_test(tcase, test_malformed);
    tcase_add_test(tcase, test_line_limit);
    tcase_add_test(tcase, test_callback_ends_it);
    tcase_add_test(tcase, test_random);
    tcase_add_test(tcase, test_files);
    suite_add_tcase(suite, tcase);
    srunner_set_tap(sr, "-");
    srunner_run_all(sr, CK_SILENT);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
