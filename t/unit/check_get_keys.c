/* SPDX-License-Identifier: BSD-3-Clause */
/* session/exec_get_keys, exec_get_say: keys of a get that are taken for what
 * they are likely to be are what key__parse says, however many digits ids have,
 * what bytes are among them, and where the request is cut. The store here
 * answers with the id and the column that it is asked for, so replies tell
 * both. */
#include "base/sanitizer.h"
#include "session/exec.h"
#include "unit/net_help.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    KEYS_MAX = 2 * EXEC_SLICE_KEYS_MAX + 20,
    ROUNDS = SANITIZER_ADDRESS || SANITIZER_THREAD ? 2000 : 20000
};

struct telling {
    struct store store; /* first */
};

static uint64_t
value_of(uint64_t id, unsigned counter, unsigned column)
{
    switch (column % 4) {
    case 0:
        return id % 1000;
    case 1:
        return id % 1000000 + counter;
    case 2:
        return id % 100;
    default:
        return id;
    }
}

static enum cell_state
state_of(uint64_t id)
{
    return id % 13 == 0 ? CELL_GONE : id % 5 == 0 ? CELL_DEFAULT : CELL_SET;
}

static enum store_answer
tell(struct store *store, struct store_get *get)
{
    (void)store;
    for (uint32_t i = 0; i < get->n; i++) {
        const struct cell_key *key = &get->key[i];
        ck_assert_uint_ne(key->serial, 0);
        get->value[i] = value_of(key->id, key->counter, key->column);
        get->state[i] = (uint8_t)state_of(key->id);
    }
    return STORE_DONE;
}

/* This store is no real one, which would look behind it. */
static int
no_fault(struct store *store)
{
    (void)store;
    return 0;
}

/* Adds the reply to a word as the slow way has it; false where it has none. */
static void
add_reply(const struct schema *schema, const char *word, size_t len,
    bool shows_cas, struct buf *out)
{
    char text[512];
    int n = 0;
    uint64_t cas = 0;
    uint32_t flags = 0;
    struct key key;
    key__parse(schema, word, len, &key);
    if (key.kind == KEY_ITEM || state_of(key.id) == CELL_GONE ||
        (key.target.counter->absent_is_miss &&
            state_of(key.id) == CELL_DEFAULT)) {
        return;
    }
    const struct schema_counter *counter = key.target.counter;
    uint32_t serials[SCHEMA_COLUMNS_MAX];
    uint64_t values[SCHEMA_COLUMNS_MAX];
    if (key.kind == KEY_CELL) {
        uint64_t value =
            value_of(key.id, counter->slot, key.target.column->slot);
        cas = value == UINT64_MAX ? value : value + 1;
        flags = key.target.column->flags;
        n = snprintf(text, sizeof text, "%" PRIu64, value);
    }
    for (unsigned i = 0; key.kind == KEY_RECORD && i < counter->n_columns;
         i++) {
        serials[i] = counter->column[i].serial;
        values[i] = value_of(key.id, counter->slot, counter->column[i].slot);
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%" PRIu64,
            i == 0 ? "" : " ", values[i]);
    }
    if (key.kind == KEY_RECORD) {
        cas = record_cas(serials, values, counter->n_columns);
    }
    buf_add_text(out, "VALUE ");
    buf_add(out, word, len);
    buf_addf(out, " %u %d", flags, n);
    if (shows_cas) {
        buf_addf(out, " %" PRIu64, cas);
    }
    buf_addf(out, "\r\n%.*s\r\n", n, text);
}

/* What words are made of. */
struct maker {
    uint64_t random;
    unsigned digits;
    char id[64];
    unsigned hostile; /* of 100 words, so many have other bytes */
};

static const char *const names[] = {"cntcm", "cntcm", "cntrn", "cntan", "oa",
    "weibo", "opt", "cntc", "cntcmx", "six666", "seven77", "eight888",
    "comment_num", "nobody"};

static void
make_id(struct maker *maker)
{
    uint64_t *random = &maker->random;
    if (random_below(random, 12) == 0) {
        maker->digits = 1 + (unsigned)random_below(random, 21);
    }
    for (unsigned i = 0; i < maker->digits; i++) {
        maker->id[i] = (char)('0' + random_below(random, 10));
    }
    if (maker->id[0] == '0' && random_below(random, 20) != 0) {
        maker->id[0] = '1';
    }
    maker->id[maker->digits] = '\0';
}

/* A word to text: its length. */
static size_t
make_word(struct maker *maker, char *text)
{
    static const char *const forms[] = {"%s.%s", "{%s}.%s", "%s|#|.%s"};
    static const unsigned char bytes[] = {0, 1, '/', ':', '0', '9', '.', '.',
        9, 0x7f, 0x80, 0xaf, 0xb0, 0xff, 'c', '!'};
    uint64_t *random = &maker->random;
    if (random_below(random, 3) != 0 || maker->id[0] == '\0') {
        make_id(maker);
    }
    size_t form = random_below(random, 60);
    size_t n_names =
        random_below(random, 10) < 8 ? 4 : COUNT_OF(names); /* mostly these */
    int n = snprintf(text, TEXT_KEY_MAX, forms[form < 3 ? form : 0], maker->id,
        names[random_below(random, n_names)]);
    if (random_below(random, 300) == 0) {
        memset(text, 'k', 250);
        n = 250;
    }
    if (random_below(random, 100) < maker->hostile) {
        text[random_below(random, (uint64_t)n)] =
            (char)bytes[random_below(random, COUNT_OF(bytes))];
    }
    return (size_t)n;
}

/* A request and the reply to it. */
static void
make_get(struct maker *maker, const struct schema *schema, unsigned n_keys,
    struct buf *said, struct buf *expected)
{
    char word[TEXT_KEY_MAX + 1];
    bool shows_cas = random_below(&maker->random, 8) == 0;
    buf_add_text(said, shows_cas ? "gets" : "get");
    for (unsigned i = 0; i < n_keys; i++) {
        size_t len = make_word(maker, word);
        buf_add_text(
            said, random_below(&maker->random, 50) == 0 ? "   " : " ");
        buf_add(said, word, len);
        add_reply(schema, word, len, shows_cas, expected);
    }
    buf_add_text(said, random_below(&maker->random, 10) == 0 ? " " : "");
    buf_add_text(said, random_below(&maker->random, 6) == 0 ? "\n" : "\r\n");
    buf_add_text(expected, "END\r\n");
}

/* A dialog with a store that tells, a request and the reply to it. */
struct talk {
    struct store *inner;
    struct telling telling;
    struct store_calls calls;
    struct dialog dialog;
    struct buf said, expected;
};

static void
begin(struct talk *talk)
{
    static const struct exchange more[] = {
        {"add column weibo six suffix=six666", "STORED\r\n"},
        {"add column weibo seven suffix=seven77", "STORED\r\n"},
        {"add column weibo eight suffix=eight888", "STORED\r\n"},
    };
    *talk = (struct talk){.inner = small_store(NULL)};
    dialog_open(&talk->dialog, talk->inner, SMALL_STORE_ITEM_BYTES);
    PLAY(&talk->dialog, declarations);
    PLAY(&talk->dialog, more);
    dialog_close(&talk->dialog);
    talk->calls = *talk->inner->calls;
    talk->calls.get = tell;
    talk->calls.fault = no_fault;
    talk->telling.store = *talk->inner;
    talk->telling.store.calls = &talk->calls;
    dialog_open(&talk->dialog, &talk->telling.store, SMALL_STORE_ITEM_BYTES);
}

static void
end(struct talk *talk)
{
    buf_fini(&talk->said);
    buf_fini(&talk->expected);
    dialog_close(&talk->dialog);
    store_destroy(&talk->inner);
}

/* Another request. */
static void
clear(struct talk *talk)
{
    buf_clear(&talk->said);
    buf_clear(&talk->expected);
}

static void
expect_answer(struct talk *talk, size_t cut)
{
    struct dialog *dialog = &talk->dialog;
    const struct buf *said = &talk->said;
    const struct buf *expected = &talk->expected;
    dialog_say(dialog, said->data, cut);
    dialog_say(dialog, said->data + cut, said->len - cut);
    const struct buf *got = &dialog->replies;
    size_t same = 0;
    while (same < got->len && same < expected->len &&
        got->data[same] == expected->data[same]) {
        same++;
    }
    ck_assert_msg(same == got->len && same == expected->len,
        "cut %zu of '%.*s': byte %zu, '%.*s'", cut, (int)said->len, said->data,
        same, (int)(got->len - same), got->data + same);
    buf_clear(&dialog->replies);
}

START_TEST(test_random)
{
    struct talk talk;
    struct maker maker = {.random = 5, .digits = 16};
    begin(&talk);
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned n_keys = round % 10 == 0 ? KEYS_MAX
            : round % 5 == 0              ? 120
                                          : 6;
        maker.hostile = round % 3 == 0 ? 20 : round % 3;
        talk.dialog.mark = round % 7 == 0 ? 100 : DIALOG_MARK;
        n_keys = 1 + (unsigned)random_below(&maker.random, n_keys);
        const struct schema *schema = store_schema(talk.inner);
        make_get(&maker, schema, n_keys, &talk.said, &talk.expected);
        if (round % 4 == 0) { /* gets that share a slice */
            make_get(&maker, schema, 3, &talk.said, &talk.expected);
        }
        expect_answer(
            &talk, (size_t)random_below(&maker.random, talk.said.len + 1));
        clear(&talk);
    }
    end(&talk);
}
END_TEST

/* What fills up a word inside is no digit and no end of a name outside. */
START_TEST(test_zeros)
{
    static const char said[] =
        "get 1234567890123456789.cntcm "
        "\0\0\0"
        "9999999999999999.cntcm \0009999999999999999.cntcm "
        "1234567890123456789.cntcm\0 1234567890123456789.cntcm\0 "
        "\0001234567890123456.cntcm 1111111111111111111.cntcm\r\n"
        "get 34.cntrn 99.cntrn \0"
        "9.cntrn 9\0.cntrn 99.cntr\0 "
        "99.cntrn 99.cntrn\0 99.cntrn\r\n";
    static const char *const words[] = {"1234567890123456789.cntcm",
        "1111111111111111111.cntcm", NULL, "34.cntrn", "99.cntrn", "99.cntrn",
        "99.cntrn", NULL};
    struct talk talk;
    begin(&talk);
    buf_add(&talk.said, said, sizeof said - 1);
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        if (words[i] == NULL) {
            buf_add_text(&talk.expected, "END\r\n");
        } else {
            add_reply(store_schema(talk.inner), words[i], strlen(words[i]),
                false, &talk.expected);
        }
    }
    for (size_t cut = 0; cut <= talk.said.len; cut++) {
        expect_answer(&talk, cut);
    }
    end(&talk);
}
END_TEST

/* Requests of each number of digits, cut at each place. */
START_TEST(test_every_cut)
{
    struct talk talk;
    begin(&talk);
    for (unsigned digits = 1; digits <= 20; digits++) {
        struct maker maker = {.random = digits, .digits = digits};
        make_get(
            &maker, store_schema(talk.inner), 1, &talk.said, &talk.expected);
        make_get(
            &maker, store_schema(talk.inner), 7, &talk.said, &talk.expected);
        for (size_t cut = 0; cut <= talk.said.len; cut++) {
            expect_answer(&talk, cut);
        }
        clear(&talk);
    }
    end(&talk);
}
END_TEST

/* A key that is too long is found wherever it stands among more keys than are
 * read at once, and none that is just not. */
START_TEST(test_lengths)
{
    enum { N = EXEC_SLICE_KEYS_MAX + 40, LONGEST = 600, LONG_ROUNDS = 600 };
    struct talk talk;
    struct maker maker = {.random = 11, .digits = 16};
    char word[LONGEST];
    begin(&talk);
    for (unsigned round = 0; round < LONG_ROUNDS; round++) {
        uint64_t long_one = random_below(&maker.random, 2 * N);
        buf_add_text(&talk.said, "get");
        for (unsigned i = 0; i < N; i++) {
            size_t len = make_word(&maker, word);
            if (i == long_one) {
                len = TEXT_KEY_MAX + 1 +
                    (size_t)random_below(
                        &maker.random, round % 2 == 0 ? 1 : 300);
                memset(word, 'k', len);
            } else if (random_below(&maker.random, 4) == 0) {
                len = TEXT_KEY_MAX - (size_t)random_below(&maker.random, 3);
                memset(word, 'k', len);
            }
            buf_add_text(
                &talk.said, random_below(&maker.random, 9) == 0 ? "   " : " ");
            buf_add(&talk.said, word, len);
            add_reply(
                store_schema(talk.inner), word, len, false, &talk.expected);
        }
        buf_add_text(&talk.said, "\r\n");
        buf_add_text(&talk.expected, "END\r\n");
        if (long_one < N) {
            buf_clear(&talk.expected);
            buf_add_text(
                &talk.expected, "CLIENT_ERROR bad command line format\r\n");
        }
        talk.dialog.budget = 1 + round % 3;
        expect_answer(&talk, talk.said.len);
        clear(&talk);
    }
    end(&talk);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        test_random, test_zeros, test_every_cut, test_lengths};
    return run_tests("get_keys", tests, COUNT_OF(tests));
}
