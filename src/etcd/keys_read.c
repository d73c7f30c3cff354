/* SPDX-License-Identifier: BSD-3-Clause */
/* What etcd answers. What it stores was written by a tallyd, of another version
 * perhaps, or by hand; so each value is looked at, and one that is wrong makes
 * the whole look wrong: a node does not act on half of what is there.
 *
 * Fields with their default (0, false, "") are not in the answers. */
#include "etcd/keys.h"

#include "base/base64.h"
#include "base/num.h"
#include "repl/control_frame.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEX_DIGITS = 16, VALUE_MAX = 4096 };

/* Codes of gRPC for what was never begun. */
enum {
    INVALID_ARGUMENT = 3,
    NOT_FOUND = 5,
    PERMISSION_DENIED = 7,
    FAILED_PRECONDITION = 9,
    OUT_OF_RANGE = 11,
    UNIMPLEMENTED = 12,
    UNAUTHENTICATED = 16
};

static void
say(char why[CONTROL_WHY_MAX + 1], const char *text)
{
    size_t len = 0;
    for (; text[len] != '\0' && len < CONTROL_WHY_MAX; len++) {
        why[len] = text[len] >= ' ' && text[len] <= '~' ? text[len] : '?';
    }
    why[len] = '\0';
}

static json_t *
load(const char *text, size_t len)
{
    return json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
}

/* A number that is a string, or not there: 0. */
static bool
get_number(const json_t *json, const char *name, uint64_t *out)
{
    const json_t *field = json_object_get(json, name);
    *out = 0;
    return field == NULL ||
        (json_is_string(field) &&
            num_parse_u64(
                json_string_value(field), json_string_length(field), out) &&
            *out <= INT64_MAX);
}

/* Bytes of a field in base64, or not there: none. */
static bool
get_bytes(
    const json_t *json, const char *name, char *out, size_t room, size_t *len)
{
    const json_t *field = json_object_get(json, name);
    *len = 0;
    if (field == NULL) {
        return true;
    }
    const char *text = json_string_value(field);
    size_t text_len = text == NULL ? 0 : json_string_length(field);
    if (text_len == 0) {
        return text != NULL;
    }
    if (text_len / 4 * 3 > room || !base64_check(text, text_len, len)) {
        return false;
    }
    *len = base64_decode(text, text_len, out);
    return true;
}

static uint64_t
revision_of(const json_t *answer)
{
    uint64_t revision;
    return get_number(json_object_get(answer, "header"), "revision", &revision)
        ? revision
        : 0;
}

/* ---- values ---- */

static bool
value_u32(const json_t *json, const char *name, uint32_t *out)
{
    const json_t *field = json_object_get(json, name);
    json_int_t value = json_integer_value(field);
    *out = (uint32_t)value;
    return json_is_integer(field) && value >= 0 && value <= UINT32_MAX;
}

static bool
value_bool(const json_t *json, const char *name, bool *out)
{
    const json_t *field = json_object_get(json, name);
    *out = json_is_true(field);
    return json_is_boolean(field);
}

static bool
value_text(const json_t *json, const char *name, char *out, size_t most)
{
    const json_t *field = json_object_get(json, name);
    const char *text = json_string_value(field);
    size_t len = text == NULL ? 0 : json_string_length(field);
    if (text == NULL || len > most || memchr(text, '\0', len) != NULL) {
        return false;
    }
    memcpy(out, text, len);
    return true;
}

static bool
name_from(const json_t *field, struct node_name *out)
{
    return json_is_string(field) &&
        node_name_set(
            out, json_string_value(field), json_string_length(field));
}

static bool
value_hex(const json_t *json, const char *name, uint64_t *out)
{
    char text[HEX_DIGITS + 1] = "";
    if (!value_text(json, name, text, HEX_DIGITS) ||
        strspn(text, "0123456789abcdef") != HEX_DIGITS) {
        return false;
    }
    *out = strtoull(text, NULL, 16);
    return true;
}

static bool
read_epoch(const json_t *json, struct control_state *state)
{
    return value_hex(json, "epoch", &state->epoch.epoch) &&
        value_hex(json, "seed", &state->epoch.seed) &&
        value_u32(json, "shards", &state->epoch.shards);
}

static bool
read_term(const json_t *json, struct control_state *state)
{
    json_int_t term = json_integer_value(json);
    state->term = (uint32_t)term;
    return json_is_integer(json) && term >= 1 && term <= CONTROL_TERM_MAX;
}

static bool
read_primary(const json_t *json, struct control_state *state)
{
    struct control_primary *primary = &state->primary;
    return name_from(json_object_get(json, "node"), &primary->node) &&
        value_u32(json, "term", &primary->term) &&
        value_hex(json, "boot", &primary->boot) &&
        value_text(
            json, "client", primary->client.text, CONTROL_ADDRESS_MAX) &&
        value_text(json, "repl", primary->repl.text, CONTROL_ADDRESS_MAX);
}

static bool
read_voters(const json_t *json, struct control_state *state)
{
    struct control_voters *voters = &state->voters;
    const json_t *nodes = json_object_get(json, "nodes");
    size_t n = json_array_size(nodes);
    if (n > CONTROL_VOTERS_MAX) {
        return false;
    }
    voters->n = (uint32_t)n;
    for (size_t i = 0; i < n; i++) {
        if (!name_from(json_array_get(nodes, i), &voters->node[i])) {
            return false;
        }
    }
    return value_u32(json, "term", &voters->term) &&
        value_u32(json, "need", &voters->need);
}

static bool
read_order(const json_t *json, struct control_state *state)
{
    return name_from(json_object_get(json, "to"), &state->order.to);
}

static bool
read_node(const json_t *json, const char *name, size_t name_len,
    struct control_state *state)
{
    if (state->n_nodes++ == CONTROL_NODES_MAX) {
        return false; /* read_pair says so */
    }
    struct control_node *node = &state->node[state->n_nodes - 1];
    /* one of an earlier version does not say */
    node->is_member = json_is_true(json_object_get(json, "member"));
    return node_name_set(&node->name, name, name_len) &&
        value_text(json, "client", node->client.text, CONTROL_ADDRESS_MAX) &&
        value_text(json, "repl", node->repl.text, CONTROL_ADDRESS_MAX) &&
        value_text(json, "role", node->role, CONTROL_ROLE_MAX) &&
        value_u32(json, "formats", &node->formats) &&
        value_u32(json, "priority", &node->priority) &&
        value_bool(json, "votes", &node->votes) &&
        value_bool(json, "doubtful", &node->is_doubtful);
}

/* Those that are one value each. */
static const struct {
    const char *name;
    bool (*read_fn)(const json_t *json, struct control_state *state);
    size_t revision_at; /* in a state */
} singles[] = {
    {"epoch", read_epoch, offsetof(struct control_state, epoch.revision)},
    {"term", read_term, offsetof(struct control_state, term_revision)},
    {"primary", read_primary,
        offsetof(struct control_state, primary.revision)},
    {"voters", read_voters, offsetof(struct control_state, voters.revision)},
    {"order", read_order, offsetof(struct control_state, order.revision)},
};

/* name: of a key, behind the prefix. True also for one that is none of ours. */
static bool
read_value(const char *name, size_t name_len, const json_t *value,
    uint64_t revision, struct control_state *state)
{
    static const char nodes[] = "nodes/";
    const size_t nodes_len = sizeof nodes - 1;
    if (name_len > nodes_len && memcmp(name, nodes, nodes_len) == 0) {
        return read_node(value, name + nodes_len, name_len - nodes_len, state);
    }
    for (size_t i = 0; i < sizeof singles / sizeof singles[0]; i++) {
        if (strlen(singles[i].name) == name_len &&
            memcmp(singles[i].name, name, name_len) == 0) {
            memcpy((char *)state + singles[i].revision_at, &revision,
                sizeof revision);
            return revision != 0 && singles[i].read_fn(value, state);
        }
    }
    return true;
}

static bool
read_pair(const char *prefix, const json_t *pair, struct control_state *state,
    char why[CONTROL_WHY_MAX + 1])
{
    char key[KEYS_PREFIX_MAX + 128], value[VALUE_MAX], text[sizeof key + 64];
    size_t key_len, value_len, prefix_len = strlen(prefix);
    uint64_t revision;
    if (!get_bytes(pair, "key", key, sizeof key - 4, &key_len) ||
        key_len <= prefix_len || memcmp(key, prefix, prefix_len) != 0) {
        return true; /* too long to be one, or another's */
    }
    key[key_len] = '\0';
    json_t *json = NULL;
    bool is_right = get_number(pair, "mod_revision", &revision) &&
        get_bytes(pair, "value", value, sizeof value, &value_len);
    if (is_right) {
        json = json_loadb(
            value, value_len, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
        is_right = json != NULL &&
            read_value(
                key + prefix_len, key_len - prefix_len, json, revision, state);
    }
    json_decref(json);
    if (state->n_nodes > CONTROL_NODES_MAX) {
        (void)snprintf(text, sizeof text, "there are more than %d nodes",
            CONTROL_NODES_MAX);
        say(why, text);
    } else if (!is_right) {
        (void)snprintf(
            text, sizeof text, "the value of this key is wrong: %s", key);
        say(why, text);
    }
    return is_right;
}

static bool
read_pairs(const char *prefix, const json_t *answer,
    struct control_event *event, char why[CONTROL_WHY_MAX + 1])
{
    char text[KEYS_PREFIX_MAX + 64];
    const json_t *pairs = json_object_get(answer, "kvs");
    struct control_state *state = &event->of.state;
    event->say = CONTROL_SAY_STATE;
    state->revision = revision_of(answer);
    if (state->revision == 0 || (pairs != NULL && !json_is_array(pairs))) {
        say(why, "an answer that is none of etcd's");
        return false;
    }
    if (json_is_true(json_object_get(answer, "more"))) {
        (void)snprintf(text, sizeof text, "more than %d keys begin with %s",
            KEYS_LOOK_MAX, prefix);
        say(why, text);
        return false;
    }
    for (size_t i = 0; i < json_array_size(pairs); i++) {
        if (!read_pair(prefix, json_array_get(pairs, i), state, why)) {
            return false;
        }
    }
    if (!control_frame_is_right(event)) {
        say(why, "a value of the group's keys is beyond its bounds");
        return false;
    }
    return true;
}

bool
keys_read_state(const char *prefix, const char *text, size_t len,
    struct control_state *state, char why[CONTROL_WHY_MAX + 1])
{
    struct control_event *event = calloc(1, sizeof *event);
    json_t *json = load(text, len);
    bool is_right = false;
    if (event == NULL) {
        say(why, "no memory");
    } else if (json == NULL) {
        say(why, "an answer that is no JSON");
    } else {
        is_right = read_pairs(prefix, json, event, why);
        if (is_right) {
            *state = event->of.state;
        }
    }
    json_decref(json);
    free(event);
    return is_right;
}

/* ---- the other answers ---- */

bool
keys_read_change(const char *prefix, const char *text, size_t len,
    bool *is_done, uint64_t *revision, struct control_voters *voters)
{
    char why[CONTROL_WHY_MAX + 1];
    json_t *json = load(text, len);
    const json_t *done = json_object_get(json, "succeeded");
    const json_t *answers = json_object_get(json, "responses");
    *revision = revision_of(json);
    *is_done = json_is_true(done);
    *voters = (struct control_voters){0};
    /* The range comes last. Its header is not always there; the whole's is. */
    const json_t *range =
        json_object_get(json_array_get(answers, json_array_size(answers) - 1),
            "response_range");
    bool is_right = *revision != 0 && (done == NULL || json_is_boolean(done));
    if (is_right && *is_done && range != NULL) {
        struct control_event *event = calloc(1, sizeof *event);
        json_t *copy = json_copy((json_t *)(uintptr_t)range);
        is_right = event != NULL && copy != NULL &&
            json_object_set(copy, "header", json_object_get(json, "header")) ==
                0 &&
            read_pairs(prefix, copy, event, why);
        if (is_right) {
            *voters = event->of.state.voters;
        }
        json_decref(copy);
        free(event);
    }
    json_decref(json);
    return is_right;
}

bool
keys_read_grant(const char *text, size_t len, uint64_t *lease)
{
    json_t *json = load(text, len);
    bool is_right = json != NULL && json_object_get(json, "error") == NULL &&
        get_number(json, "ID", lease) && *lease != 0;
    json_decref(json);
    return is_right;
}

bool
keys_read_alive(const char *text, size_t len, uint32_t *ttl_s)
{
    json_t *json = load(text, len);
    const json_t *result = json_object_get(json, "result");
    uint64_t ttl = 0;
    bool is_right = json_is_object(result) &&
        json_object_get(result, "ID") != NULL &&
        get_number(result, "TTL", &ttl) && ttl <= UINT32_MAX;
    *ttl_s = (uint32_t)ttl;
    json_decref(json);
    return is_right;
}

enum keys_watched
keys_read_watch(const char *text, size_t len)
{
    enum keys_watched watched = KEYS_WATCHED_END;
    json_t *json = load(text, len);
    const json_t *result = json_object_get(json, "result");
    if (json_is_object(result) &&
        !json_is_true(json_object_get(result, "canceled"))) {
        watched = json_array_size(json_object_get(result, "events")) > 0
            ? KEYS_WATCHED_CHANGE
            : KEYS_WATCHED_NOTHING;
    }
    json_decref(json);
    return watched;
}

/* The error itself: in "error" of a stream, else the answer. */
static const json_t *
error_in(const json_t *json)
{
    const json_t *error = json_object_get(json, "error");
    return json_is_object(error) ? error : json;
}

static json_int_t
code_of(const json_t *error)
{
    const json_t *code = json_object_get(error, "code");
    return json_integer_value(
        code != NULL ? code : json_object_get(error, "grpc_code"));
}

bool
keys_is_refusal(const char *text, size_t len, char why[CONTROL_WHY_MAX + 1])
{
    static const json_int_t refusals[] = {INVALID_ARGUMENT, NOT_FOUND,
        PERMISSION_DENIED, FAILED_PRECONDITION, OUT_OF_RANGE, UNIMPLEMENTED,
        UNAUTHENTICATED};
    json_t *json = load(text, len);
    const json_t *error = error_in(json);
    const char *message = json_string_value(json_object_get(error, "message"));
    bool is_refusal = false;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        is_refusal = is_refusal || code_of(error) == refusals[i];
    }
    say(why, message != NULL ? message : "an error without a text");
    json_decref(json);
    return is_refusal;
}

/* Those by which etcd refuses a call before it begins it, or before it applies
 * it: a token that it does not know, none, and one of users of before. The
 * codes of the latter two are others' as well. */
bool
keys_is_no_token(const char *text, size_t len)
{
    json_t *json = load(text, len);
    const json_t *error = error_in(json);
    const char *message = json_string_value(json_object_get(error, "message"));
    json_int_t code = code_of(error);
    bool is_so = code == UNAUTHENTICATED ||
        (code == INVALID_ARGUMENT && message != NULL &&
            (strstr(message, "user name is empty") != NULL ||
                strstr(message, "revision of auth store is old") != NULL));
    json_decref(json);
    return is_so;
}

/* True of an error of that code. */
static bool
has_code(const char *text, size_t len, json_int_t code)
{
    json_t *json = load(text, len);
    bool is_so = code_of(error_in(json)) == code;
    json_decref(json);
    return is_so;
}

bool
keys_is_auth_off(const char *text, size_t len)
{
    return has_code(text, len, FAILED_PRECONDITION);
}

bool
keys_read_token(const char *text, size_t len, char *token, size_t most)
{
    json_t *json = load(text, len);
    const json_t *field = json_object_get(json, "token");
    const char *found = json_string_value(field);
    size_t n = found == NULL ? 0 : json_string_length(field);
    bool is_right = n > 0 && n <= most;
    for (size_t i = 0; is_right && i < n; i++) {
        is_right = found[i] > ' ' && found[i] <= '~';
    }
    if (is_right) {
        memcpy(token, found, n);
        token[n] = '\0';
    }
    json_decref(json);
    return is_right;
}

bool
keys_is_no_lease(const char *text, size_t len)
{
    return has_code(text, len, NOT_FOUND);
}
