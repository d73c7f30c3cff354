/* SPDX-License-Identifier: BSD-3-Clause */

/* The prepared questions of the load generator: that what is sent is what is
 * checked, also around the end of the ring, and which posts are asked for. */

#include "bench/tape.h"
#include "bench/wire.h"
#include "unit/check_help.h"

#include <math.h>

enum { DRAWS = 1003, RECORDS = 2000, ARGUMENTS_MAX = 8 };

static void
make(struct options *options, struct tape *tape, const char *protocol,
    const char *mode, const char *more)
{
    char *argv[ARGUMENTS_MAX] = {"load", "--records=2000", "--draws=1003",
        "--protocol", (char *)(uintptr_t)protocol, (char *)(uintptr_t)mode,
        (char *)(uintptr_t)more};
    ck_assert_int_eq(
        options_parse(options, more != NULL ? 7 : 6, argv), OPTIONS_RUN);
    *tape = (struct tape){0};
    tape_init(tape, options);
    ck_assert_uint_eq(tape->n, DRAWS);
}

/* The command that begins with a draw, key by key. */
static void
write_slowly(const struct tape *tape, const struct options *options,
    size_t draw, struct buf *out)
{
    const struct wire *wire = wire_of((enum wire_protocol)options->protocol);
    bool is_multi = options->mode == MODE_MULTI;
    uint32_t n = is_multi ? (uint32_t)options->keys : 1;
    if (is_multi) {
        wire->head_fn(out, n);
    }
    for (uint32_t i = 0; i < n; i++) {
        char name[TAPE_KEY_BYTES_MAX];
        unsigned column;
        const struct tape_draw *at = tape_key(tape, options, draw, i, &column);
        struct wire_text key = {
            name, tape_name(options, at->id, column, name)};
        if (is_multi) {
            wire->key_fn(out, key);
        } else if (at->is_incr) {
            wire->add_fn(out, key, (struct wire_text){"1", 1});
        } else {
            wire->get_fn(out, key);
        }
    }
    if (is_multi) {
        wire->tail_fn(out);
    }
}

static void
assert_same(const char *protocol, const char *mode, const char *more)
{
    struct options options;
    struct tape tape;
    size_t differ = 0;
    make(&options, &tape, protocol, mode, more);
    for (size_t draw = 0; draw < tape.n; draw++) {
        struct buf sent = {0};
        struct buf wanted = {0};
        tape_add(&tape, draw, &sent);
        write_slowly(&tape, &options, draw, &wanted);
        differ += sent.len != wanted.len ||
            memcmp(sent.data, wanted.data, sent.len) != 0;
        buf_fini(&sent);
        buf_fini(&wanted);
    }
    ck_assert_uint_eq(differ, 0);
    tape_fini(&tape);
}

START_TEST(test_sent_is_checked)
{
    const char *protocol = wire_protocol_words[_i];
    assert_same(protocol, "get", NULL);
    assert_same(protocol, "mixed", "--mix=0.5");
    assert_same(protocol, "multi", NULL);
    assert_same(protocol, "multi", "--columns=2");
    assert_same(protocol, "multi", "--keys=1000");
}
END_TEST

START_TEST(test_mix)
{
    struct options options;
    struct tape tape;
    size_t incr = 0;
    make(&options, &tape, "text", "mixed", "--mix=0.9");
    for (size_t i = 0; i < tape.n; i++) {
        incr += tape.draw[i].is_incr;
    }
    ck_assert(fabs((double)incr / DRAWS - 0.1) < 0.04);
    tape_fini(&tape);
}
END_TEST

/* The shares of Zipf's law, and hot posts among the old as among the new. */
START_TEST(test_zipf)
{
    struct options options;
    struct tape tape;
    static unsigned asked[RECORDS];
    unsigned most = 0;
    unsigned old = 0;
    make(&options, &tape, "text", "get", "--age=zipf");
    for (size_t i = 0; i < tape.n; i++) {
        unsigned n = ++asked[tape.draw[i].post];
        most = n > most ? n : most;
        old += tape.draw[i].post < RECORDS / 2;
    }
    /* 1 / (1 + 2^-0.99 + ... + 2000^-0.99) is 0.119 */
    ck_assert(fabs((double)most / DRAWS - 0.119) < 0.04);
    ck_assert(old > DRAWS / 4 && old < DRAWS / 4 * 3);
    tape_fini(&tape);
}
END_TEST

START_TEST(test_newest)
{
    struct options options;
    struct tape tape;
    unsigned newest = 0;
    make(&options, &tape, "text", "get", "--from=0.5");
    for (size_t i = 0; i < tape.n; i++) {
        ck_assert_uint_ge(tape.draw[i].post, RECORDS / 2);
        newest += tape.draw[i].post >= RECORDS - 30;
    }
    /* ln 31 / ln 1001 */
    ck_assert(fabs((double)newest / DRAWS - 0.497) < 0.06);
    tape_fini(&tape);
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("tape");
    tcase_add_loop_test(tcase, test_sent_is_checked, 0, WIRE_RESP + 1);
    tcase_add_test(tcase, test_mix);
    tcase_add_test(tcase, test_zipf);
    tcase_add_test(tcase, test_newest);
    return run_case("tape", tcase);
}
