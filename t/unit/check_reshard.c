/* SPDX-License-Identifier: BSD-3-Clause */
/* tallyctl's pure parts: entries of a log as lines of the dialect, and the file
 * of a move. */
#include "cli/reshard_lines.h"
#include "cli/reshard_priv.h"
#include "cli/reshard_setup.h"
#include "cli/reshard_state.h"

#include "unit/check_help.h"
#include "unit/kinds_help.h"

#include <check.h>
#include <stdio.h>

enum { SHARDS = 4, SHARD_BITS = 2, PAYLOAD = 1 << 16, NUMBER = 5 };

static struct owns *owns;
static struct schema *schema;
static struct reshard_lines lines;
static uint8_t payload[PAYLOAD];
static size_t payload_len;
static struct buf got;

static void
setup(void)
{
    static const char rule[] = "modulo:0/2";
    ck_assert_int_eq(owns_create_rule(rule, sizeof rule - 1, &owns), 0);
    schema = full_schema();
    apply(&schema, "add column user like_num suffix=likes");
    apply(&schema,
        "add column user liked members=exact counts=like_num suffix=liked");
    ck_assert_int_eq(reshard_lines_init(&lines, owns), 0);
    ck_assert(reshard_lines_begin(&lines, SHARDS));
    payload_len = 0;
}

static void
teardown(void)
{
    reshard_lines_fini(&lines);
    buf_fini(&got);
    schema_destroy(&schema);
    owns_destroy(&owns);
}

static uint32_t
serial_of(const char *name)
{
    struct schema_target target = found(schema, name);
    ck_assert_ptr_nonnull(target.column);
    return target.column->serial;
}

/* All counters, and two producers. */
static void
learn(void)
{
    struct producer_name name;
    for (unsigned i = 0; i < SCHEMA_COUNTERS_MAX; i++) {
        const struct schema_counter *it = schema_counter_at(schema, i);
        if (it != NULL && it->members_of == 0) {
            payload_len += entry_put_counter(payload + payload_len, it, 40);
        }
    }
    ck_assert(producer_name_set(&name, "app-1", 5));
    payload_len += entry_put_producer(payload + payload_len, 1, &name);
    ck_assert(producer_name_set(&name, "app-2", 5));
    payload_len += entry_put_producer(payload + payload_len, 2, &name);
    ck_assert_msg(
        reshard_lines_learn(&lines, payload, payload_len), "%s", lines.why);
    payload_len = 0;
    ck_assert_uint_eq(lines.text.len, 0);
}

static void
put_cell(uint64_t id, const char *name, uint64_t value)
{
    payload_len += entry_put_cell(
        payload + payload_len, id, serial_of(name), value, NULL);
}

/* A member of id comes or goes; the record has the column of members and the
 * number that counts them. */
static void
put_member(uint64_t id, uint64_t member, uint64_t value)
{
    const struct schema_column *column = found(schema, "liked").column;
    uint64_t row = (uint64_t)NUMBER << column->member_bits | member;
    uint64_t pair = row << SHARD_BITS | 3;
    uint32_t serial[] = {column->serial, serial_of("likes")};
    uint64_t values[] = {NUMBER, 9};
    struct entry_members members = {.n_changes = 1,
        .n = 2,
        .pair_bytes = entry_members_bytes(pair),
        .pair_serial = schema_pairs_serial(column),
        .pair_value = value};
    payload_len += entry_put_members(payload + payload_len, &members, serial);
    payload_len += entry_put_member(
        payload + payload_len, &members, id, values, pair, NULL);
}

/* Takes the payload; "|" stands where lines were to be sent. */
static const char *
take(void)
{
    struct entry_reader reader = {.at = payload, .end = payload + payload_len};
    enum reshard_take step = RESHARD_SEND;
    size_t n = 0;
    buf_clear(&got);
    while (step == RESHARD_SEND) {
        step = reshard_lines_take(&lines, &reader);
        ck_assert_msg(step != RESHARD_WRONG, "%s", lines.why);
        ck_assert(reshard_lines_finish(&lines, &got, &n));
        if (step == RESHARD_SEND) {
            buf_add_text(&got, "|");
        }
    }
    payload_len = 0;
    buf_add(&got, "", 1);
    ck_assert(!got.failed);
    return got.data;
}

/* Counters that go by no rule, or cannot be told one by one. */
START_TEST(test_cannot_be_moved)
{
    struct schema_counter counter =
        *schema_counter(schema, "user", strlen("user"));
    counter.key_is_text = true;
    payload_len = entry_put_counter(payload, &counter, 40);
    ck_assert(!reshard_lines_learn(&lines, payload, payload_len));
    ck_assert_ptr_nonnull(
        strstr(lines.why, "counter user cannot be moved: its ids are names"));
}
END_TEST

START_TEST(test_cells)
{
    learn();
    put_cell(4, "d", 17);
    put_cell(5, "d", 18); /* another server's */
    put_cell(77777777777776, "at", 2);
    put_cell(6, "likes", 3);  /* counted: members make it */
    put_cell(6, "liked", 11); /* the number of members says nothing */
    put_cell(6, "liked", 0);  /* but that there are none */
    put_cell(8, "f", 0);      /* a list */
    ck_assert_str_eq(take(),
        "set board 4 dot=17\nset user 77777777777776 at_num=2\n"
        "delete user 6.liked\n");
}
END_TEST

START_TEST(test_record)
{
    uint32_t serial[] = {
        serial_of("at"), serial_of("atseen"), serial_of("likes")};
    uint64_t value[] = {5, 4, 1};
    learn();
    payload_len =
        entry_put_columns(payload, 2, COUNT_OF(serial), serial, value, NULL);
    serial[1] = 39; /* a column that is gone */
    payload_len += entry_put_columns(
        payload + payload_len, 4, COUNT_OF(serial), serial, value, NULL);
    payload_len +=
        entry_put_cell(payload + payload_len, 4, 38, UINT64_MAX, NULL);
    uint8_t mark[ENTRY_MARK_BYTES];
    entry_put_mark(mark, ENTRY_MARK_IDLE);
    memcpy(payload + payload_len, mark, sizeof mark);
    payload_len += sizeof mark;
    ck_assert_str_eq(
        take(), "set user 2 at_num=5 at_seen=4\nset user 4 at_num=5\n");
}
END_TEST

START_TEST(test_members)
{
    learn();
    put_member(4, 77, 1);
    put_member(5, 78, 1); /* another server's */
    put_member(4, (1ULL << 33) - 1, 0);
    ck_assert_str_eq(
        take(), "set user 4.liked:77 1\nset user 4.liked:8589934591 0\n");
}
END_TEST

/* A pair alone has no id that it could be of. */
START_TEST(test_pair_alone)
{
    const struct schema_column *column = found(schema, "liked").column;
    struct entry_reader reader = {.at = payload, .end = payload};
    learn();
    put_cell(4, "likes", 1);
    reader.end += payload_len;
    reader.end += entry_put_cell(payload + payload_len, 1ULL << 40,
        schema_pairs_serial(column), 1, NULL);
    ck_assert_int_eq(reshard_lines_take(&lines, &reader), RESHARD_WRONG);
    ck_assert_ptr_nonnull(strstr(lines.why, "without its id"));
    reader = (struct entry_reader){.at = payload, .end = payload + 1};
    ck_assert_int_eq(reshard_lines_take(&lines, &reader), RESHARD_WRONG);
}
END_TEST

START_TEST(test_numbers)
{
    learn();
    payload_len = entry_put_number(payload, 1, 0, 7);
    payload_len += entry_put_number(payload + payload_len, 1, 3, 3);
    payload_len += entry_put_number(payload + payload_len, 2, 1, 0);
    payload_len += entry_put_number(payload + payload_len, 9, 1, 1);
    ck_assert_str_eq(take(), "numbers app-1 7 11\nnumbers app-2 0 1\n");
    ck_assert_str_eq(take(), "");
    payload_len = entry_put_number(payload, 1, 0, 2000);
    payload_len += entry_put_producer_dropped(payload + payload_len, 2);
    payload_len += entry_put_number(payload + payload_len, 1, 0, 1997);
    payload_len += entry_put_number(payload + payload_len, 2, 0, 1);
    ck_assert_str_eq(take(), "drop producer app-2\nnumbers app-1 2000 9\n");

    struct producer_name name; /* of one that was dropped unheard */
    ck_assert(producer_name_set(&name, "app-1", 5));
    payload_len = entry_put_producer(payload, 3, &name);
    payload_len += entry_put_number(payload + payload_len, 3, 0, 2);
    ck_assert_str_eq(take(), "drop producer app-1\nnumbers app-1 2 1\n");

    lines.is_shared = true; /* other ids' numbers are not to be forgotten */
    ck_assert(producer_name_set(&name, "app-3", 5));
    payload_len = entry_put_producer(payload, 4, &name);
    payload_len += entry_put_number(payload + payload_len, 4, 0, 7);
    ck_assert_str_eq(take(), "numbers app-3 7 1\n");
}
END_TEST

/* What changes columns is sent apart from what is before and behind it. */
START_TEST(test_schema)
{
    learn();
    put_cell(4, "d", 17);
    apply(&schema, "add column board more max=8 hint=8");
    payload_len += entry_put_counter(
        payload + payload_len, counter_of(schema, "board"), 60);
    put_cell(4, "more", 1);
    ck_assert_str_eq(take(),
        "set board 4 dot=17\n|add counter board\r\n"
        "add column board bid hint=64 max=64 default=0 primarykey\r\n"
        "add column board dot hint=7 max=40 default=3 suffix=d\r\n"
        "add column board more hint=8 max=8 default=0\r\n|"
        "set board 4 more=1\n");
    apply(&schema, "drop column board more more");
    payload_len = entry_put_counter(payload, counter_of(schema, "board"), 60);
    ck_assert_str_eq(take(),
        "drop column board more more\nadd counter board\r\n"
        "add column board bid hint=64 max=64 default=0 primarykey\r\n"
        "add column board dot hint=7 max=40 default=3 suffix=d\r\n|");
    payload_len =
        entry_put_dropped(payload, counter_of(schema, "author")->serial, 60);
    ck_assert_str_eq(take(), "drop counter author author\n|");
}
END_TEST

/* What is changed is changed there too, in the log or unseen: it is not another
 * column. */
START_TEST(test_changed)
{
    static const char lines_now[] =
        "change counter board absent=miss\n"
        "change column board dot name=spot flags=3\n"
        "add counter board absent=miss\r\n"
        "add column board bid hint=64 max=64 default=0 primarykey\r\n"
        "add column board spot hint=7 max=40 default=3 suffix=d flags=3\r\n|";
    size_t n = 0;
    learn();
    ck_assert(reshard_lines_learnt(&lines));
    apply(&schema, "change column board dot name=spot flags=3");
    apply(&schema, "change counter board absent=miss");
    payload_len = entry_put_counter(payload, counter_of(schema, "board"), 60);
    put_cell(4, "spot", 17);
    ck_assert_ptr_nonnull(strstr(take(), lines_now));
    ck_assert(reshard_lines_begin(&lines, SHARDS));
    apply(&schema, "change column board spot suffix=spot name=s");
    learn();
    ck_assert(reshard_lines_learnt(&lines));
    buf_clear(&got);
    ck_assert(reshard_lines_finish(&lines, &got, &n));
    buf_add(&got, "", 1);
    ck_assert_ptr_nonnull(
        strstr(got.data, "change column board spot name=s suffix=spot\n"));
}
END_TEST

/* A default is changed there too, if it can be; the columns behind are not
 * dropped, though they have other serials. */
START_TEST(test_changed_default)
{
    apply(&schema, "add column board more max=8 hint=8");
    apply(&schema, "add column board most max=9 hint=8");
    learn();
    ck_assert(reshard_lines_learnt(&lines));
    apply(&schema, "change column board more name=spot default=5");
    payload_len = entry_put_counter(payload, counter_of(schema, "board"), 60);
    ck_assert_str_eq(take(),
        "change column board more name=spot default=5\nadd counter board\r\n"
        "add column board bid hint=64 max=64 default=0 primarykey\r\n"
        "add column board dot hint=7 max=40 default=3 suffix=d\r\n"
        "add column board spot hint=8 max=8 default=5\r\n"
        "add column board most hint=8 max=9 default=0\r\n|");
}
END_TEST

/* Dropped while nobody read the log: the next source does not tell of them, and
 * what the log says of their serials later is not known. */
START_TEST(test_dropped_unseen)
{
    size_t n = 0;
    apply(&schema, "add counter far");
    apply(&schema, "add column far fid primarykey");
    learn();
    ck_assert(reshard_lines_learnt(&lines));
    payload_len = entry_put_number(payload, 1, 0, 7);
    ck_assert_str_eq(take(), "numbers app-1 7 1\n");
    uint32_t serial = counter_of(schema, "far")->serial;
    apply(&schema, "drop counter far far");
    ck_assert(reshard_lines_begin(&lines, SHARDS));
    ck_assert(reshard_lines_begin(&lines, SHARDS)); /* that one went away */
    learn();
    payload_len = entry_put_producer_dropped(payload, 2);
    ck_assert_str_eq(take(), "drop producer app-2\n");
    ck_assert(reshard_lines_begin(&lines, SHARDS));
    ck_assert_ptr_nonnull(lines.known);
    ck_assert(reshard_lines_learnt(&lines));
    buf_clear(&got);
    ck_assert(reshard_lines_finish(&lines, &got, &n));
    buf_add(&got, "", 1);
    ck_assert_ptr_nonnull(strstr(got.data, "drop counter far far\n"));
    ck_assert_ptr_nonnull(strstr(got.data, "drop producer app-1\n"));
    ck_assert_ptr_null(strstr(got.data, "drop producer app-2\n"));
    payload_len = entry_put_dropped(payload, serial, 60);
    payload_len += entry_put_producer_dropped(payload + payload_len, 1);
    payload_len += entry_put_number(payload + payload_len, 1, 0, 8);
    ck_assert_str_eq(take(), "");
    ck_assert(!reshard_lines_begin(&lines, 3));
}
END_TEST

/* Ids of a counter with a guard are let in by a line in front. */
START_TEST(test_guard)
{
    apply(&schema, "add counter far maxjump=10");
    apply(&schema, "add column far fid primarykey");
    apply(&schema, "add column far way");
    learn();
    put_cell(100000, "way", 1);
    put_cell(1000, "way", 2);
    ck_assert_str_eq(take(),
        "add counter far maxjump=10 largest=100000\r\n"
        "set far 100000 way=1\nset far 1000 way=2\n");
    put_cell(100000, "way", 2);
    ck_assert_str_eq(take(), "set far 100000 way=2\n");
}
END_TEST

static void
put_moved(const char *rule, const char *address)
{
    struct moved_one moved;
    ck_assert_int_eq(
        moved_one_set(&moved, rule, strlen(rule), address, strlen(address)),
        0);
    payload_len += entry_put_moved(payload + payload_len, &moved);
}

START_TEST(test_moved)
{
    learn();
    put_moved("modulo:1/2", "a:1");
    ck_assert_str_eq(take(), "");
    ck_assert_str_eq(lines.moved, "");
    put_moved("modulo:0/2", "a:1");
    put_moved("modulo:1/2", "");
    ck_assert_str_eq(take(), "");
    ck_assert_str_eq(lines.moved, "a:1");
    put_moved("modulo:0/2", "");
    ck_assert_str_eq(take(), "");
    ck_assert_str_eq(lines.moved, "");
}
END_TEST

/* ---- the file ---- */

static struct reshard_state
some_state(void)
{
    struct reshard_state state = {.rule = "crc32a:2/4",
        .from = "a1:11211",
        .to = "c1:11211",
        .phase = RESHARD_FOLLOW,
        .is_cut_asked = true,
        .epoch = UINT64_MAX,
        .seed = 7,
        .shards = 16,
        .position = seq_first(3) + 8,
        .own = "tcp6:[::1]:1234",
        .peer = "c1:11211",
        .dumped = "-"};
    ck_assert(history_begin(&state.history, 1, 99, 0));
    ck_assert(history_begin(&state.history, 3, 98, seq_first(1) + 5));
    reshard_state_set_dumped(&state, "weibo");
    reshard_state_set_dumped(&state, "user");
    reshard_state_set_dumped(&state, "weibo");
    return state;
}

START_TEST(test_state)
{
    struct reshard_state state = some_state(), again;
    struct buf text = {0};
    reshard_state_put(&state, &text);
    ck_assert(!text.failed);
    ck_assert(reshard_state_get(&again, text.data, text.len));
    ck_assert_str_eq(again.rule, state.rule);
    ck_assert_str_eq(again.dumped, "weibo,user");
    ck_assert_str_eq(again.own, state.own);
    ck_assert_str_eq(again.peer, state.peer);
    ck_assert(reshard_state_is_dumped(&again, "user"));
    ck_assert(!reshard_state_is_dumped(&again, "use"));
    ck_assert(!reshard_state_is_dumped(&again, "users"));
    ck_assert_int_eq(again.phase, RESHARD_FOLLOW);
    ck_assert_uint_eq(again.epoch, UINT64_MAX);
    ck_assert_uint_eq(again.position, state.position);
    ck_assert_uint_eq(again.history.n, state.history.n);
    ck_assert(again.is_cut_asked);
    for (size_t i = 0; i < text.len; i++) {
        char was = text.data[i];
        ck_assert(!reshard_state_get(&again, text.data, i));
        text.data[i] ^= 1;
        ck_assert_msg(
            !reshard_state_get(&again, text.data, text.len), "byte %zu", i);
        text.data[i] = was;
    }
    buf_fini(&text);
}
END_TEST

START_TEST(test_state_file)
{
    struct reshard_state state = some_state(), again;
    char dir[] = "/tmp/check_reshard_XXXXXX", path[64];
    ck_assert_ptr_nonnull(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/state", dir);
    ck_assert_int_eq(reshard_state_read(path, &again), 0);
    ck_assert_str_eq(again.rule, "");
    ck_assert_str_eq(again.dumped, "-");
    ck_assert_str_eq(again.peer, "-");
    ck_assert_int_eq(reshard_state_write(path, &state), 0);
    state.position++;
    ck_assert_int_eq(reshard_state_write(path, &state), 0);
    ck_assert_int_eq(reshard_state_read(path, &again), 0);
    ck_assert_uint_eq(again.position, state.position);
    ck_assert_uint_eq(again.claim, 0); /* as of older programs */
    state.claim = 0xa0b0c;
    ck_assert_int_eq(reshard_state_write(path, &state), 0);
    ck_assert_int_eq(reshard_state_read(path, &again), 0);
    ck_assert_uint_eq(again.claim, state.claim);
    ck_assert_str_eq(again.rule, state.rule);
    ck_assert_int_eq(truncate(path, 20), 0);
    ck_assert_int_ne(reshard_state_read(path, &again), 0);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(dir), 0);
    ck_assert_int_ne(reshard_state_write(path, &state), 0);
}
END_TEST

/* Whose claim is another one's, of the same move? */
START_TEST(test_claims)
{
    static const struct {
        const char *answer;
        bool has_rival;
    } cases[] = {{"", false}, {"STAT producers 0\n", false},
        {"STAT reshard-0123abcd-0000000a0b0c:highest 1\n"
         "STAT reshard-0123abcd-0000000a0b0c:shards 16\n",
            false},
        {"STAT reshard-0123abcd-0000000a0b0c:highest 1\n"
         "STAT reshard-0123abcd-0000000a0b0d:highest 1\n",
            true},
        {"STAT reshard-0123abcc-0000000a0b0d:highest 1\n", false},
        {"STAT reshard-0123abcd-0000000a0b0d7:highest 1\n", false},
        {"STAT reshard-0123abcd-0000000a0b0d\n", true},
        {"STAT reshard-0123abcd-", false}};
    static struct reshard move = {.claim = "reshard-0123abcd-0000000a0b0c"};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char rival[RESHARD_CLAIM_MAX + 1] = "";
        struct buf answer = {0};
        buf_add(&answer, cases[i].answer, strlen(cases[i].answer) + 1);
        ck_assert_msg(
            reshard__has_rival(&move, &answer, rival) == cases[i].has_rival,
            "%s", cases[i].answer);
        if (cases[i].has_rival) {
            ck_assert_str_eq(rival, "reshard-0123abcd-0000000a0b0d");
        }
        buf_fini(&answer);
    }
}
END_TEST

/* ---- the command line ---- */

START_TEST(test_options)
{
    static struct reshard_setup out;
    static char *const base[] = {"reshard", "--from=a:1,b:1",
        "--from-repl=a:2,b:2", "--to=c:1", "--ids=crc32a:2/4", "--state=f"};
    static const char *const wrong[] = {"--ids=ketama:1/2", "--ids=modulo:2/2",
        "--from=a", "--from-repl=a:1", "--to-name=x", "--rate=x", "word",
        "--user-file=/nonexistent", "--to-name=a:1"};
    char *argv[COUNT_OF(base) + 1];
    memcpy(argv, base, sizeof base);
    ck_assert_msg(
        reshard_setup_parse(&out, COUNT_OF(base), argv), "%s", out.line.why);
    ck_assert_str_eq(out.rule, "crc32a:2/4");
    ck_assert_str_eq(out.from_name, "a:1");
    ck_assert_str_eq(out.to_name, "c:1");
    ck_assert_uint_eq(out.from_repl.n_servers, 2);
    reshard_setup_fini(&out);
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        char word[64];
        (void)snprintf(word, sizeof word, "%s", wrong[i]);
        memcpy(argv, base, sizeof base);
        argv[COUNT_OF(base)] = word;
        ck_assert_msg(
            !reshard_setup_parse(&out, COUNT_OF(base) + 1, argv), "%s", word);
        ck_assert_int_ne(out.line.why[0], '\0');
        reshard_setup_fini(&out);
    }
    ck_assert(!reshard_setup_parse(&out, COUNT_OF(base) - 1, argv));
    reshard_setup_fini(&out);
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("reshard");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, test_cannot_be_moved);
    tcase_add_test(tcase, test_cells);
    tcase_add_test(tcase, test_record);
    tcase_add_test(tcase, test_members);
    tcase_add_test(tcase, test_pair_alone);
    tcase_add_test(tcase, test_numbers);
    tcase_add_test(tcase, test_schema);
    tcase_add_test(tcase, test_changed);
    tcase_add_test(tcase, test_changed_default);
    tcase_add_test(tcase, test_dropped_unseen);
    tcase_add_test(tcase, test_guard);
    tcase_add_test(tcase, test_moved);
    tcase_add_test(tcase, test_state);
    tcase_add_test(tcase, test_state_file);
    tcase_add_test(tcase, test_claims);
    tcase_add_test(tcase, test_options);
    return run_case("reshard", tcase);
}
