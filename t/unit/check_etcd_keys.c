/* SPDX-License-Identifier: BSD-3-Clause */
/* etcd/keys: bodies of requests, compared whole; answers as etcd 3.4 gives
 * them, whole, cut and wrong. */
#include "etcd/keys.h"

#include "base/base64.h"
#include "unit/control_help.h"

#include <jansson.h>

#define PREFIX "/tallyd/c/g/"

enum { ROOM = 16384, MANY = 10000 };

/* The body, with what is in base64 decoded and in <>. */
static void
expect(char *body, const char *wanted)
{
    char out[ROOM] = "";
    size_t len = 0, decoded;
    ck_assert_ptr_nonnull(body);
    for (const char *at = body; *at != '\0';) {
        const char *text = *at == '"' ? at + 1 : NULL;
        size_t text_len = text == NULL ? 0 : strcspn(text, "\"");
        bool is_data = at - body > 6 &&
            (strncmp(at - 6, "\"key\":", 6) == 0 ||
                strncmp(at - 6, "value\"", 6) == 0 ||
                (at - body > 8 && strncmp(at - 8, "\"value\":", 8) == 0) ||
                (at - body > 12 &&
                    strncmp(at - 12, "\"range_end\":", 12) == 0));
        if (is_data && base64_check(text, text_len, &decoded)) {
            out[len++] = '<';
            len += base64_decode(text, text_len, out + len);
            out[len++] = '>';
            at = text + text_len + 1;
        } else {
            out[len++] = *at++;
        }
    }
    out[len] = '\0';
    ck_assert_str_eq(out, wanted);
    free(body);
}

START_TEST(test_bodies)
{
    expect(keys_range(PREFIX),
        "{\"key\":<" PREFIX ">,\"range_end\":</tallyd/c/g0>,"
        "\"limit\":\"128\"}");
    expect(keys_watch(PREFIX, 12),
        "{\"create_request\":{\"key\":<" PREFIX ">,"
        "\"range_end\":</tallyd/c/g0>,\"start_revision\":\"12\"}}");
    expect(keys_grant(3), "{\"TTL\":\"3\"}");
    expect(keys_lease(UINT64_C(7587891230)), "{\"ID\":\"7587891230\"}");
}
END_TEST

START_TEST(test_changes)
{
    struct control_request request = take_request("a", 17, 0, 5);
    expect(keys_change(PREFIX, &request, 99),
        "{\"compare\":[{\"key\":<" PREFIX "primary>,\"target\":\"CREATE\","
        "\"result\":\"EQUAL\",\"create_revision\":\"0\"},"
        "{\"key\":<" PREFIX "term>,\"target\":\"MOD\","
        "\"result\":\"EQUAL\",\"mod_revision\":\"5\"}],"
        "\"success\":[{\"request_put\":{\"key\":<" PREFIX "primary>,"
        "\"value\":<{\"node\":\"a\",\"term\":17,\"client\":\"a:1\","
        "\"repl\":\"[::1]:2\",\"boot\":\"ffffffffffffffff\"}>,"
        "\"lease\":\"99\"}},"
        "{\"request_put\":{\"key\":<" PREFIX "term>,\"value\":<17>,"
        "\"lease\":\"0\"}},"
        "{\"request_delete_range\":{\"key\":<" PREFIX "order>}},"
        "{\"request_range\":{\"key\":<" PREFIX "voters>}}]}");
    request = voters_request(17, 2, 2, 8);
    expect(keys_change(PREFIX, &request, 0),
        "{\"compare\":[{\"key\":<" PREFIX "term>,\"target\":\"VALUE\","
        "\"result\":\"EQUAL\",\"value\":<17>},"
        "{\"key\":<" PREFIX "voters>,\"target\":\"MOD\","
        "\"result\":\"EQUAL\",\"mod_revision\":\"8\"}],"
        "\"success\":[{\"request_put\":{\"key\":<" PREFIX "voters>,"
        "\"value\":<{\"term\":17,\"need\":2,\"nodes\":[\"a\",\"b\"]}>,"
        "\"lease\":\"0\"}}]}");
    request = (struct control_request){.ask = CONTROL_ORDER};
    expect(keys_change(PREFIX, &request, 0),
        "{\"compare\":[],\"success\":[{\"request_delete_range\":"
        "{\"key\":<" PREFIX "order>}}]}");
}
END_TEST

/* The voters are set in a transaction within: where there are none yet. */
START_TEST(test_first_voters)
{
    struct control_request request = take_request("a", 1, 0, 0);
    request.of.take.voters = voters_request(1, 2, 1, 0).of.voters;
    expect(keys_change(PREFIX, &request, 99),
        "{\"compare\":[{\"key\":<" PREFIX "primary>,\"target\":\"CREATE\","
        "\"result\":\"EQUAL\",\"create_revision\":\"0\"},"
        "{\"key\":<" PREFIX "term>,\"target\":\"CREATE\","
        "\"result\":\"EQUAL\",\"create_revision\":\"0\"}],"
        "\"success\":[{\"request_txn\":{\"compare\":["
        "{\"key\":<" PREFIX "voters>,\"target\":\"CREATE\","
        "\"result\":\"EQUAL\",\"create_revision\":\"0\"}],"
        "\"success\":[{\"request_put\":{\"key\":<" PREFIX "voters>,"
        "\"value\":<{\"term\":1,\"need\":2,\"nodes\":[\"a\"]}>,"
        "\"lease\":\"0\"}}]}},"
        "{\"request_put\":{\"key\":<" PREFIX "primary>,"
        "\"value\":<{\"node\":\"a\",\"term\":1,\"client\":\"a:1\","
        "\"repl\":\"[::1]:2\",\"boot\":\"ffffffffffffffff\"}>,"
        "\"lease\":\"99\"}},"
        "{\"request_put\":{\"key\":<" PREFIX "term>,\"value\":<1>,"
        "\"lease\":\"0\"}},"
        "{\"request_delete_range\":{\"key\":<" PREFIX "order>}},"
        "{\"request_range\":{\"key\":<" PREFIX "voters>}}]}");
}
END_TEST

START_TEST(test_keep_and_hand)
{
    struct control_request request = keep_request("a", 17, 0, 5);
    const struct node_name to = name_of("b");
    expect(keys_change(PREFIX, &request, 99),
        "{\"compare\":[{\"key\":<" PREFIX "primary>,\"target\":\"CREATE\","
        "\"result\":\"EQUAL\",\"create_revision\":\"0\"},"
        "{\"key\":<" PREFIX "term>,\"target\":\"MOD\","
        "\"result\":\"EQUAL\",\"mod_revision\":\"5\"}],"
        "\"success\":[{\"request_put\":{\"key\":<" PREFIX "primary>,"
        "\"value\":<{\"node\":\"a\",\"term\":17,\"client\":\"a:1\","
        "\"repl\":\"[::1]:2\",\"boot\":\"ffffffffffffffff\"}>,"
        "\"lease\":\"99\"}}]}");
    expect(keys_hand(PREFIX, &to, 7),
        "{\"compare\":[{\"key\":<" PREFIX "primary>,\"target\":\"MOD\","
        "\"result\":\"EQUAL\",\"mod_revision\":\"7\"}],"
        "\"success\":[{\"request_put\":{\"key\":<" PREFIX "order>,"
        "\"value\":<{\"to\":\"b\"}>,\"lease\":\"0\"}},"
        "{\"request_delete_range\":{\"key\":<" PREFIX "primary>}}]}");
}
END_TEST

/* Appends a pair of a key and a value. */
static void
add_pair(char *out, const char *key, const char *value, unsigned revision)
{
    char name[256], key64[512] = "", value64[2048] = "";
    (void)snprintf(name, sizeof name, PREFIX "%s", key);
    (void)base64_encode(name, strlen(name), key64);
    (void)base64_encode(value, strlen(value), value64);
    size_t len = strlen(out);
    (void)snprintf(out + len, ROOM - len,
        "%s{\"key\":\"%s\",\"create_revision\":\"2\","
        "\"mod_revision\":\"%u\",\"version\":\"1\",\"value\":\"%s\"}",
        out[len - 1] == '[' ? "" : ",", key64, revision, value64);
}

static const char head[] =
    "{\"header\":{\"cluster_id\":\"14841639068965178418\""
    ",\"revision\":\"77\"},\"kvs\":[";

static bool
read_text(const char *text, struct control_state *state)
{
    char why[CONTROL_WHY_MAX + 1];
    return keys_read_state(PREFIX, text, strlen(text), state, why);
}

static void
make_answer(char out[ROOM])
{
    (void)snprintf(out, ROOM, "%s", head);
    add_pair(out, "epoch",
        "{\"epoch\":\"00000000000000ff\",\"shards\":16,"
        "\"seed\":\"8000000000000000\",\"later\":[1]}",
        3);
    add_pair(out, "nodes/a",
        "{\"client\":\"c:1\",\"repl\":\"\",\"role\":\"primary\","
        "\"formats\":6,\"priority\":100,\"votes\":true,\"doubtful\":false}",
        9);
    add_pair(out, "order", "{\"to\":\"b\"}", 10);
    add_pair(out, "primary",
        "{\"node\":\"a\",\"term\":17,\"client\":\"c:1\",\"repl\":\"r:1\","
        "\"boot\":\"0000000000000001\"}",
        11);
    add_pair(out, "term", "17", 11);
    add_pair(out, "unknown", "[]", 12);
    add_pair(
        out, "voters", "{\"term\":17,\"need\":2,\"nodes\":[\"a\",\"b\"]}", 13);
    (void)snprintf(
        out + strlen(out), ROOM - strlen(out), "],\"count\":\"7\"}");
}

START_TEST(test_state)
{
    static struct control_state state;
    char text[ROOM];
    make_answer(text);
    ck_assert(read_text(text, &state));
    ck_assert_uint_eq(state.revision, 77);
    ck_assert_uint_eq(state.term, 17);
    ck_assert_uint_eq(state.term_revision, 11);
    ck_assert_uint_eq(state.epoch.epoch, 255);
    ck_assert_uint_eq(state.epoch.seed, UINT64_C(1) << 63);
    ck_assert_uint_eq(state.epoch.shards, 16);
    ck_assert_uint_eq(state.primary.revision, 11);
    ck_assert_str_eq(state.primary.repl.text, "r:1");
    ck_assert_uint_eq(state.voters.need, 2);
    ck_assert_uint_eq(state.voters.n, 2);
    ck_assert_uint_eq(state.voters.revision, 13);
    ck_assert_uint_eq(state.order.to.len, 1);
    ck_assert_uint_eq(state.n_nodes, 1);
    ck_assert_str_eq(state.node[0].role, "primary");
    ck_assert(state.node[0].votes && !state.node[0].is_doubtful);
    ck_assert(!state.node[0].is_member);
    for (size_t len = strlen(text) - 1; len > 0; len--) {
        text[len] = '\0';
        ck_assert_msg(!read_text(text, &state), "cut at %zu", len);
    }
    ck_assert_uint_eq(state.revision, 77); /* as it was */
}
END_TEST

START_TEST(test_wrong_values)
{
    static const struct {
        const char *key, *value;
    } wrong[] = {{"term", "0"}, {"term", "16777216"}, {"term", "\"17\""},
        {"term", ""}, {"epoch", "{\"epoch\":\"ff\",\"shards\":16}"},
        {"epoch",
            "{\"epoch\":\"00000000000000fg\",\"shards\":16,"
            "\"seed\":\"8000000000000000\"}"},
        {"voters", "{\"term\":17,\"need\":0,\"nodes\":[\"a\"]}"},
        {"voters", "{\"term\":17,\"need\":1,\"nodes\":[]}"},
        {"voters", "{\"term\":17,\"need\":1,\"nodes\":[\"a\",\"a\"]}"},
        {"voters", "{\"term\":17,\"need\":1,\"nodes\":[\"a b\"]}"},
        {"voters",
            "{\"term\":1,\"need\":1,"
            "\"nodes\":[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\"]}"},
        {"voters", "{\"term\":1,\"term\":2,\"need\":1,\"nodes\":[\"a\"]}"},
        {"primary", "{\"node\":\"a\",\"term\":17}"},
        {"order", "{\"to\":\"\"}"}, {"order", "[]"}, {"nodes/a", "{}"},
        {"nodes/a b", "{}"}};
    static struct control_state state;
    char text[ROOM], why[CONTROL_WHY_MAX + 1];
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        (void)snprintf(text, sizeof text, "%s", head);
        add_pair(text, wrong[i].key, wrong[i].value, 5);
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "]}");
        ck_assert_msg(
            !keys_read_state(PREFIX, text, strlen(text), &state, why), "%s %s",
            wrong[i].key, wrong[i].value);
        ck_assert_int_ne(why[0], '\0');
    }
}
END_TEST

/* More than a node holds: said as that, and nothing is read. */
START_TEST(test_too_many)
{
    static const char node[] =
        "{\"client\":\"\",\"repl\":\"\",\"role\":\"\",\"formats\":6,"
        "\"priority\":100,\"votes\":true,\"doubtful\":false}";
    static struct control_state state;
    static char text[ROOM];
    char why[CONTROL_WHY_MAX + 1], key[32];
    for (unsigned n = CONTROL_NODES_MAX; n < CONTROL_NODES_MAX + 2; n++) {
        (void)snprintf(text, sizeof text, "%s", head);
        for (unsigned i = 0; i < n; i++) {
            (void)snprintf(key, sizeof key, "nodes/n%u", i);
            add_pair(text, key, node, 5);
        }
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "]}");
        bool is_read =
            keys_read_state(PREFIX, text, strlen(text), &state, why);
        ck_assert_int_eq(is_read, n == CONTROL_NODES_MAX);
        ck_assert_uint_eq(state.n_nodes, CONTROL_NODES_MAX);
    }
    ck_assert_str_eq(why, "there are more than 32 nodes");
    (void)snprintf(text, sizeof text, "%s],\"more\":true}", head);
    ck_assert(!keys_read_state(PREFIX, text, strlen(text), &state, why));
    ck_assert_str_eq(why, "more than 128 keys begin with " PREFIX);
}
END_TEST

START_TEST(test_change_answers)
{
    struct control_voters voters;
    uint64_t revision;
    bool is_done;
    char text[ROOM];
    static const char no[] = "{\"header\":{\"revision\":\"5\"}}";
    ck_assert(keys_read_change(
        PREFIX, no, strlen(no), &is_done, &revision, &voters));
    ck_assert(!is_done);
    ck_assert_uint_eq(revision, 5); /* at which it was refused */
    static const char none[] = "{\"header\":{}}";
    ck_assert(!keys_read_change(
        PREFIX, none, strlen(none), &is_done, &revision, &voters));
    (void)snprintf(text, sizeof text,
        "{\"header\":{\"revision\":\"6\"},\"succeeded\":true,\"responses\":["
        "{\"response_put\":{\"header\":{\"revision\":\"6\"}}},"
        "{\"response_range\":{\"header\":{\"revision\":\"6\"},\"kvs\":[");
    add_pair(text, "voters", "{\"term\":1,\"need\":2,\"nodes\":[\"a\"]}", 3);
    (void)snprintf(text + strlen(text), sizeof text - strlen(text), "]}}]}");
    ck_assert(keys_read_change(
        PREFIX, text, strlen(text), &is_done, &revision, &voters));
    ck_assert(is_done);
    ck_assert_uint_eq(revision, 6);
    ck_assert_uint_eq(voters.need, 2);
    ck_assert_uint_eq(voters.revision, 3);
}
END_TEST

START_TEST(test_other_answers)
{
    static const struct {
        const char *text;
        enum keys_watched watched;
    } lines[] = {{"{\"result\":{\"header\":{},\"created\":true}}",
                     KEYS_WATCHED_NOTHING},
        {"{\"result\":{\"events\":[{\"kv\":{}}]}}", KEYS_WATCHED_CHANGE},
        {"{\"result\":{\"canceled\":true,\"compact_revision\":\"9\"}}",
            KEYS_WATCHED_END},
        {"{\"error\":{\"grpc_code\":14}}", KEYS_WATCHED_END},
        {"", KEYS_WATCHED_END}, {"{", KEYS_WATCHED_END}};
    static const struct {
        const char *text;
        bool is_refusal;
    } errors[] = {
        {"{\"error\":\"x\",\"message\":\"etcdserver: requested lease "
         "not found\",\"code\":5}",
            true},
        {"{\"message\":\"etcdserver: request timed out\",\"code\":14}", false},
        {"{\"error\":{\"grpc_code\":16,\"message\":\"invalid token\"}}", true},
        {"<html>502</html>", false}, {"", false}};
    static const char grant[] = "{\"header\":{},\"ID\":\"758\",\"TTL\":\"3\"}";
    static const char alive[] = "{\"result\":{\"ID\":\"758\",\"TTL\":\"3\"}}";
    static const char over[] = "{\"result\":{\"header\":{},\"ID\":\"758\"}}";
    char why[CONTROL_WHY_MAX + 1];
    uint64_t lease = 0;
    uint32_t ttl_s = 0;
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        ck_assert_int_eq(keys_read_watch(lines[i].text, strlen(lines[i].text)),
            lines[i].watched);
    }
    for (size_t i = 0; i < COUNT_OF(errors); i++) {
        ck_assert_int_eq(
            keys_is_refusal(errors[i].text, strlen(errors[i].text), why),
            errors[i].is_refusal);
        ck_assert_int_ne(why[0], '\0');
    }
    ck_assert(keys_is_no_lease(errors[0].text, strlen(errors[0].text)));
    ck_assert(!keys_is_no_lease(errors[1].text, strlen(errors[1].text)));
    ck_assert(keys_read_grant(grant, strlen(grant), &lease));
    ck_assert_uint_eq(lease, 758);
    ck_assert(!keys_read_grant(over, strlen(over), &lease));
    ck_assert(keys_read_alive(alive, strlen(alive), &ttl_s));
    ck_assert_uint_eq(ttl_s, 3);
    ck_assert(keys_read_alive(over, strlen(over), &ttl_s));
    ck_assert_uint_eq(ttl_s, 0);
    ck_assert(!keys_read_alive(grant, strlen(grant), &ttl_s));
}
END_TEST

/* ---- memory ---- */

static unsigned left; /* allocations until one fails */

static void *
get_block(size_t bytes)
{
    if (left == 0) {
        return NULL;
    }
    left--;
    return malloc(bytes);
}

/* True where nothing has failed. */
static bool
try_bodies(const struct control_request *request)
{
    bool is_whole = true;
    const struct node_name to = name_of("b");
    char *bodies[] = {keys_range(PREFIX), keys_watch(PREFIX, 5), keys_grant(3),
        keys_lease(4), keys_change(PREFIX, request, 9),
        keys_hand(PREFIX, &to, 3)};
    for (size_t i = 0; i < COUNT_OF(bodies); i++) {
        is_whole = is_whole && bodies[i] != NULL;
        free(bodies[i]);
    }
    return is_whole;
}

/* The n-th block of jansson's cannot be had, for each n: a body is whole or
 * none, an answer is read right or not at all; that nothing is kept the leak
 * sanitizer says. */
START_TEST(test_memory)
{
    static struct control_state state;
    struct control_request with_voters = take_request("a", 1, 0, 0);
    with_voters.of.take.voters = voters_request(1, 2, 1, 0).of.voters;
    const struct control_request requests[] = {take_request("a", 17, 0, 5),
        with_voters, keep_request("a", 17, 0, 5), voters_request(17, 2, 5, 8),
        node_request("a"), {.ask = CONTROL_EPOCH, .of.epoch.shards = 1},
        {.ask = CONTROL_ORDER, .of.order.to = name_of("b")}};
    char text[ROOM];
    unsigned n = 0;
    make_answer(text);
    json_set_alloc_funcs(get_block, free);
    for (size_t i = 0; i < COUNT_OF(requests); i++) {
        for (n = 0, left = 0; !try_bodies(&requests[i]); left = ++n) {
            ck_assert_uint_lt(n, MANY);
        }
        ck_assert_uint_gt(n, 20);
    }
    for (n = 0, left = 0; !read_text(text, &state); left = ++n) {
        ck_assert_uint_lt(n, MANY);
    }
    ck_assert_uint_gt(n, 50);
    ck_assert_uint_eq(state.voters.n, 2);
    json_set_alloc_funcs(malloc, free);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_bodies, test_changes, test_first_voters,
        test_keep_and_hand, test_state, test_wrong_values, test_too_many,
        test_change_answers, test_other_answers, test_memory};
    return run_tests("etcd_keys", tests, COUNT_OF(tests));
}
