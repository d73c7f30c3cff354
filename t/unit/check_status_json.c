/* SPDX-License-Identifier: BSD-3-Clause */
/* server/status_json: what is a number, what a text, and bytes of clients. */
#include "server/status_json.h"
#include "unit/check_help.h"

#include <stdio.h>
#include <string.h>

/* One pair of `stats wal`, and how it is said. */
START_TEST(test_values)
{
    static const struct {
        const char *value, *said;
    } rows[] = {
        {"0", "0"},
        {"17", "17"},
        {"0.25", "0.25"},
        {"123456789012345", "123456789012345"},
        {"1234567890123456", "\"1234567890123456\""},
        {"007", "\"007\""},
        {"1.2.3", "\"1.2.3\""},
        {"1.", "\"1.\""},
        {".5", "\".5\""},
        {"-1", "\"-1\""},
        {"1e9", "\"1e9\""},
        {"", "\"\""},
        {"a \"b\" \\", "\"a \\\"b\\\" \\\\\""},
        {"\x01\xff<", "\"\\u0001\\u00ff<\""},
    };
    struct figures figures = {.text = {{.data = NULL}}};
    struct health health = {.state = HEALTH_READY};
    struct buf out = {.data = NULL};
    char wanted[128];
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        buf_clear(&figures.text[FIGURES_wal]);
        buf_addf(&figures.text[FIGURES_wal],
            "STAT x %s\r\nSTAT y 2\r\nEND\r\n", rows[i].value);
        buf_clear(&out);
        status_json_put(&figures, &health, 5, &out);
        buf_add(&out, "", 1);
        (void)snprintf(
            wanted, sizeof wanted, "\"wal\":{\"x\":%s,\"y\":2}", rows[i].said);
        ck_assert_msg(strstr(out.data, wanted) != NULL, "%s", out.data);
    }
    ck_assert_ptr_nonnull(
        strstr(out.data, "\"unix_ms\":5,\"state\":\"ready\""));
    ck_assert_ptr_nonnull(strstr(out.data, "\"problems\":[]"));
    ck_assert_ptr_null(strstr(out.data, "percent"));
    buf_fini(&out);
    figures_fini(&figures);
}
END_TEST

START_TEST(test_problems)
{
    struct figures figures = {.text = {{.data = NULL}}};
    struct health health = {.state = HEALTH_LOADING, .percent = 7, .n = 2};
    struct buf out = {.data = NULL};
    strcpy(health.problem[0], "one \"thing\"; do a; then b");
    strcpy(health.problem[1], "another");
    status_json_put(&figures, &health, 0, &out);
    buf_add(&out, "", 1);
    ck_assert_ptr_nonnull(strstr(out.data, "\"percent\":7,"));
    ck_assert_ptr_nonnull(strstr(out.data,
        "\"problems\":[{\"what\":\"one \\\"thing\\\"\","
        "\"do\":\"do a; then b\"},{\"what\":\"another\",\"do\":\"\"}]"));
    ck_assert_ptr_nonnull(strstr(out.data, "\"hot\":{}}}\n"));
    buf_fini(&out);
    figures_fini(&figures);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_values, test_problems};
    return run_tests("status_json", tests, COUNT_OF(tests));
}
