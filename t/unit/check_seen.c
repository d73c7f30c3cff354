/* SPDX-License-Identifier: BSD-3-Clause */
/* base/seen: random numbers against a set that forgets nothing; order and
 * repeats make no difference; the ends of the range; two windows joined against
 * all their numbers in one. base/seen_text: windows as text. And base/producer:
 * what is a name, and what a number of one. */
#include "base/seen.h"

#include "base/producer.h"
#include "base/seen_text.h"
#include "unit/check_help.h"

enum { NUMBERS = 20000, STEPS = 60000, ROUNDS = 40 };

/* Every number there was, counted from base on. */
struct model {
    uint64_t base;
    uint64_t high;
    bool has[NUMBERS];
    bool any;
};

static enum seen_state
model_look(const struct model *model, uint64_t number)
{
    if (!model->any || number > model->high) {
        return SEEN_NEW;
    }
    if (model->high - number >= SEEN_WINDOW) {
        return SEEN_BELOW;
    }
    return number >= model->base && model->has[number - model->base]
        ? SEEN_BEFORE
        : SEEN_NEW;
}

static void
model_add(struct model *model, uint64_t number)
{
    if (model_look(model, number) != SEEN_BELOW) {
        model->has[number - model->base] = true;
        model->high =
            model->any && model->high > number ? model->high : number;
        model->any = true;
    }
}

/* A number near the highest one: most within the window, some ahead, some below
 * it. */
static uint64_t
random_near(uint64_t *state, const struct model *model)
{
    uint64_t most = model->base + NUMBERS - 1;
    uint64_t high = model->any ? model->high : model->base;
    uint64_t step = random_below(state, 40) == 0
        ? random_below(state, 3 * SEEN_WINDOW)
        : random_below(state, 12);
    uint64_t back = random_below(state, SEEN_WINDOW + 30);
    uint64_t number = random_below(state, 3) == 0 ? high + step : high - back;
    return number < model->base || number > most ? model->base : number;
}

static void
compare(uint64_t base, uint64_t seed)
{
    static struct model model;
    struct seen_window seen = {0};
    uint64_t state = seed;
    unsigned n[3] = {0};
    memset(&model, 0, sizeof model);
    model.base = base;
    for (unsigned i = 0; i < STEPS; i++) {
        uint64_t number = random_near(&state, &model);
        enum seen_state is = seen_look(&seen, number);
        ck_assert_int_eq(is, model_look(&model, number));
        n[is]++;
        if (random_below(&state, 4) > 0) {
            seen_add(&seen, number);
            model_add(&model, number);
            ck_assert(seen_is_sound(&seen));
        }
    }
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_uint_gt(n[i], STEPS / 200);
    }
}

START_TEST(test_model)
{
    compare(1, 1);
    compare(0, 2);
    compare(5000, 3);
    compare(UINT64_MAX - NUMBERS + 1, 4);
}
END_TEST

/* The same numbers in another order, some of them twice. */
START_TEST(test_order)
{
    uint64_t state = 5;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct seen_window a = {0}, b = {0};
        uint64_t number[SEEN_WINDOW];
        uint64_t base = random_below(&state, 1 << 20);
        size_t n = 1 + random_below(&state, SEEN_WINDOW);
        for (size_t i = 0; i < n; i++) {
            number[i] = base + random_below(&state, SEEN_WINDOW);
            seen_add(&a, number[i]);
        }
        for (size_t i = n; i > 0; i--) {
            size_t k = random_below(&state, i);
            uint64_t it = number[k];
            number[k] = number[i - 1];
            number[i - 1] = it;
            seen_add(&b, it);
            seen_add(&b, it);
        }
        ck_assert_mem_eq(&a, &b, sizeof a);
    }
}
END_TEST

START_TEST(test_ends)
{
    struct seen_window seen = {0};
    ck_assert(seen_is_empty(&seen) && !seen_is_sound(&seen));
    ck_assert_int_eq(seen_look(&seen, 0), SEEN_NEW);
    seen_add(&seen, 0);
    ck_assert(!seen_is_empty(&seen) && seen_is_sound(&seen));
    ck_assert_int_eq(seen_look(&seen, 0), SEEN_BEFORE);
    ck_assert_int_eq(seen_look(&seen, SEEN_WINDOW), SEEN_NEW);
    seen_add(&seen, SEEN_WINDOW - 1);
    ck_assert_int_eq(seen_look(&seen, 0), SEEN_BEFORE);
    seen_add(&seen, SEEN_WINDOW); /* which has the bit of 0 */
    ck_assert_int_eq(seen_look(&seen, 0), SEEN_BELOW);
    ck_assert_int_eq(seen_look(&seen, 1), SEEN_NEW);
    ck_assert_int_eq(seen_look(&seen, SEEN_WINDOW), SEEN_BEFORE);
    seen_add(&seen, 0); /* below: nothing */
    ck_assert_uint_eq(seen.high, SEEN_WINDOW);
    seen_add(&seen, UINT64_MAX);
    ck_assert_int_eq(seen_look(&seen, UINT64_MAX), SEEN_BEFORE);
    ck_assert_int_eq(seen_look(&seen, UINT64_MAX - SEEN_WINDOW + 1), SEEN_NEW);
    ck_assert_int_eq(seen_look(&seen, UINT64_MAX - SEEN_WINDOW), SEEN_BELOW);
}
END_TEST

/* Some numbers below high, which is among them unless high is 0 and n, too. */
static void
fill(struct seen_window *seen, uint64_t *state, uint64_t high, size_t n)
{
    if (n > 0) {
        seen_add(seen, high);
    }
    for (size_t i = 1; i < n; i++) {
        uint64_t below = random_below(state, SEEN_WINDOW);
        seen_add(seen, below > high ? high : high - below);
    }
}

/* Adds what the other has, one by one, as nobody should. */
static void
add_each(struct seen_window *seen, const struct seen_window *other)
{
    uint64_t low = other->high < SEEN_WINDOW ? 0 : other->high - SEEN_WINDOW;
    for (uint64_t n = other->high;; n--) {
        if (seen_look(other, n) == SEEN_BEFORE) {
            seen_add(seen, n);
        }
        if (n == low) {
            return;
        }
    }
}

/* Where one window is about another, or far from it, or about 0, or empty. */
START_TEST(test_join)
{
    uint64_t state = 6;
    for (unsigned round = 0; round < ROUNDS * 100; round++) {
        struct seen_window a = {0}, b = {0}, ab, ba, slow;
        uint64_t base = round % 3 == 0 ? 0 : random_below(&state, 1 << 20);
        uint64_t apart = random_below(&state, round % 2 == 0 ? 20 : 1500);
        base = round % 7 == 0 ? UINT64_MAX - 1500 : base;
        fill(&a, &state, base, random_below(&state, 40));
        fill(&b, &state, base + apart, random_below(&state, 40));
        ab = slow = a;
        ba = b;
        seen_join(&ab, &b);
        seen_join(&ba, &a);
        ck_assert_mem_eq(&ab, &ba, sizeof ab);
        add_each(&slow, &b);
        ck_assert_mem_eq(&ab, &slow, sizeof ab);
        ck_assert(seen_is_empty(&ab) || seen_is_sound(&ab));
        seen_join(&ab, &b);
        seen_join(&ab, &a);
        seen_join(&ab, &slow);
        ck_assert_mem_eq(&ab, &slow, sizeof ab);
    }
}
END_TEST

static bool
get_text(const char *high, const char *bits, struct seen_window *out)
{
    char *a = copy_of(high, strlen(high)), *b = copy_of(bits, strlen(bits));
    bool is_right = seen_text_get(a, strlen(high), b, strlen(bits), out);
    free(a);
    free(b);
    return is_right;
}

static void
expect_text(const struct seen_window *seen, const char *wanted)
{
    char text[SEEN_TEXT_MAX];
    size_t len = seen_text_put(seen, text);
    ck_assert_uint_eq(len, strlen(wanted));
    ck_assert_mem_eq(text, wanted, len);
}

START_TEST(test_text)
{
    static const char *const wrong[][2] = {{"", "1"}, {"1", ""}, {"x", "1"},
        {"-1", "1"}, {"18446744073709551616", "1"}, {"1", "0"}, {"1", "01"},
        {"1", "2"}, {"1", "g"}, {"1", "F"}, {"1", "0x1"}, {"1", "5"},
        {"0", "3"}, {"100", "1 1"}};
    struct seen_window seen = {0}, got;
    char text[SEEN_TEXT_DIGITS_MAX + 2];
    seen_add(&seen, 0);
    expect_text(&seen, "0 1");
    ck_assert(get_text("0", "1", &got));
    ck_assert_mem_eq(&seen, &got, sizeof seen);
    seen_add(&seen, 2);
    expect_text(&seen, "2 5");
    seen_add(&seen, SEEN_WINDOW); /* 0 is below now */
    (void)memset(text, '0', SEEN_TEXT_DIGITS_MAX);
    memcpy(text, "4", 1);
    text[SEEN_TEXT_DIGITS_MAX - 1] = '1';
    text[SEEN_TEXT_DIGITS_MAX] = '\0';
    ck_assert(get_text("1024", text, &got));
    ck_assert_mem_eq(&seen, &got, sizeof seen);
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        ck_assert_msg(!get_text(wrong[i][0], wrong[i][1], &got), "%s %s",
            wrong[i][0], wrong[i][1]);
    }
    (void)memset(text, '1', sizeof text);
    text[SEEN_TEXT_DIGITS_MAX] = '\0';
    ck_assert(get_text("1023", text, &got));
    ck_assert_uint_eq(got.high, 1023);
    ck_assert(!get_text("1019", text, &got)); /* 1023 - 1020 is below 0 */
    text[SEEN_TEXT_DIGITS_MAX] = '1';
    text[SEEN_TEXT_DIGITS_MAX + 1] = '\0';
    ck_assert(!get_text("100000", text, &got));
}
END_TEST

START_TEST(test_text_again)
{
    uint64_t state = 7;
    for (unsigned round = 0; round < ROUNDS * 10; round++) {
        struct seen_window seen = {0}, got;
        char text[SEEN_TEXT_MAX];
        uint64_t high =
            round % 2 == 0 ? random_below(&state, 1500) : UINT64_MAX - round;
        fill(&seen, &state, high, 1 + random_below(&state, 2000));
        size_t len = seen_text_put(&seen, text);
        char *space = memchr(text, ' ', len);
        ck_assert_ptr_nonnull(space);
        size_t high_len = (size_t)(space - text);
        ck_assert(seen_text_get(
            text, high_len, space + 1, len - high_len - 1, &got));
        ck_assert_mem_eq(&seen, &got, sizeof seen);
    }
}
END_TEST

/* What bytes may say and seen_add cannot. */
START_TEST(test_unsound)
{
    struct seen_window seen = {.high = 9, .bit = {1}};
    ck_assert(!seen_is_sound(&seen)); /* not even the highest */
    seen.bit[0] = 1 << 9;
    ck_assert(seen_is_sound(&seen));
    seen.bit[0] |= 1 << 10; /* one that has not come */
    ck_assert(!seen_is_sound(&seen));
    seen.bit[0] = 1 << 9;
    seen.bit[SEEN_WORDS - 1] = UINT64_C(1) << 63;
    ck_assert(!seen_is_sound(&seen));
}
END_TEST

/* NAME:NUMBER, and the name's length; 0: it is wrong. */
static const struct {
    const char *text;
    size_t name_len;
    uint64_t number;
} tx[] = {
    {"p:1", 1, 1},
    {"a.B-9_z:18446744073709551615", 7, UINT64_MAX},
    {"0:0", 1, 0},
    {"12345678901234567890123456789012:7", 32, 7},
    {"p:007", 1, 7},
    {"123456789012345678901234567890123:7", 0, 0},
    {"p:18446744073709551616", 0, 0},
    {"", 0, 0},
    {":", 0, 0},
    {":1", 0, 0},
    {"p", 0, 0},
    {"p:", 0, 0},
    {"p:-1", 0, 0},
    {"p:+1", 0, 0},
    {"p:1x", 0, 0},
    {"p:1:2", 0, 0},
    {"a b:1", 0, 0},
    {"a/b:1", 0, 0},
    {"\xc3\xa4:1", 0, 0},
};

START_TEST(test_names)
{
    struct producer_name name;
    for (size_t i = 0; i < COUNT_OF(tx); i++) {
        size_t len = strlen(tx[i].text), name_len;
        uint64_t number;
        char *copy = copy_of(tx[i].text, len);
        bool is_right = producer_parse(copy, len, &name_len, &number);
        ck_assert_msg(is_right == (tx[i].name_len > 0), "\"%s\"", tx[i].text);
        if (is_right) {
            ck_assert_uint_eq(name_len, tx[i].name_len);
            ck_assert_uint_eq(number, tx[i].number);
        }
        free(copy);
    }
    ck_assert(!producer_name_set(&name, "a:", 2));
    ck_assert(producer_name_set(&name, "ab", 2));
    ck_assert(producer_name_is(&name, "ab", 2));
    ck_assert(!producer_name_is(&name, "ac", 2));
    ck_assert(!producer_name_is(&name, "abc", 3));
}
END_TEST

int
main(void)
{
    const TTest *tests[] = {test_model, test_order, test_ends, test_join,
        test_text, test_text_again, test_unsound, test_names};
    return run_tests("seen", tests, COUNT_OF(tests));
}
