/* SPDX-License-Identifier: BSD-3-Clause */
/* Bodies of requests. etcd's gateway wants keys and values in base64, and
 * 64-bit numbers as strings; both are in etcd's own order of fields.
 *
 * A transaction compares first, and only then puts, at one moment. So two nodes
 * that have seen the same cannot both become primary, and no two sets of voters
 * follow the same one. */
#include "etcd/keys.h"

#include "base/assert.h"
#include "base/base64.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEY_MAX = KEYS_PREFIX_MAX + 8 + NODE_NAME_MAX,
    NUMBER_ROOM = 24,
    HEX_ROOM = 17
};

static json_t *
base64_of(const char *bytes, size_t len)
{
    char *text = malloc((len + 2) / 3 * 4 + 1);
    json_t *json = NULL;
    if (text != NULL) {
        json = json_stringn(text, base64_encode(bytes, len, text));
        free(text);
    }
    return json;
}

static json_t *
key_of(const char *prefix, const char *name)
{
    char key[KEY_MAX + 1];
    int len = snprintf(key, sizeof key, "%s%s", prefix, name);
    ASSERT(len > 0 && (size_t)len < sizeof key);
    return base64_of(key, (size_t)len);
}

/* The key that is the first one behind all that begin with prefix. */
static json_t *
end_of(const char *prefix)
{
    char key[KEYS_PREFIX_MAX + 1];
    size_t len = strlen(prefix);
    ASSERT(len > 0 && len <= KEYS_PREFIX_MAX && prefix[len - 1] == '/');
    memcpy(key, prefix, len);
    key[len - 1] = '/' + 1;
    return base64_of(key, len);
}

static json_t *
number_of(uint64_t number)
{
    char text[NUMBER_ROOM];
    (void)snprintf(text, sizeof text, "%" PRIu64, number);
    return json_string(text);
}

static json_t *
hex_of(uint64_t number)
{
    char text[HEX_ROOM];
    (void)snprintf(text, sizeof text, "%016" PRIx64, number);
    return json_string(text);
}

static json_t *
name_of(const struct node_name *name)
{
    return json_stringn(name->text, name->len);
}

/* Frees what it is given. NULL where memory was out for a part of it. */
static char *
text_of(json_t *json)
{
    char *text = json == NULL ? NULL : json_dumps(json, JSON_COMPACT);
    json_decref(json);
    return text;
}

char *
keys_range(const char *prefix)
{
    return text_of(json_pack("{s:o,s:o,s:o}", "key", key_of(prefix, ""),
        "range_end", end_of(prefix), "limit", number_of(KEYS_LOOK_MAX)));
}

char *
keys_watch(const char *prefix, uint64_t from_revision)
{
    return text_of(json_pack("{s:{s:o,s:o,s:o}}", "create_request", "key",
        key_of(prefix, ""), "range_end", end_of(prefix), "start_revision",
        number_of(from_revision)));
}

char *
keys_grant(uint32_t ttl_s)
{
    return text_of(json_pack("{s:o}", "TTL", number_of(ttl_s)));
}

char *
keys_lease(uint64_t lease)
{
    return text_of(json_pack("{s:o}", "ID", number_of(lease)));
}

char *
keys_authenticate(const char *name, const char *password)
{
    return text_of(json_pack("{s:s,s:s}", "name", name, "password", password));
}

/* ---- transactions ---- */

/* target: "CREATE" or "MOD"; field: its name with the number. */
static json_t *
compare(const char *prefix, const char *name, const char *target,
    const char *field, uint64_t revision)
{
    return json_pack("{s:o,s:s,s:s,s:o}", "key", key_of(prefix, name),
        "target", target, "result", "EQUAL", field, number_of(revision));
}

/* As the key was seen; 0: it is not there. */
static json_t *
compare_seen(const char *prefix, const char *name, uint64_t revision)
{
    return revision == 0
        ? compare(prefix, name, "CREATE", "create_revision", 0)
        : compare(prefix, name, "MOD", "mod_revision", revision);
}

/* The value of the key is that very text. */
static json_t *
compare_value(const char *prefix, const char *name, const char *value)
{
    return json_pack("{s:o,s:s,s:s,s:o}", "key", key_of(prefix, name),
        "target", "VALUE", "result", "EQUAL", "value",
        base64_of(value, strlen(value)));
}

/* Takes value over. lease 0: none. */
static json_t *
put(const char *prefix, const char *name, json_t *value, uint64_t lease)
{
    char *text = value == NULL
        ? NULL
        : json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    json_t *json = NULL;
    json_decref(value);
    if (text != NULL) {
        json = json_pack("{s:{s:o,s:o,s:o}}", "request_put", "key",
            key_of(prefix, name), "value", base64_of(text, strlen(text)),
            "lease", number_of(lease));
        free(text);
    }
    return json;
}

static json_t *
range_of(const char *prefix, const char *name)
{
    return json_pack(
        "{s:{s:o}}", "request_range", "key", key_of(prefix, name));
}

/* All are taken over; NULL in *ifs or *thens ends them early where memory was
 * out, and json_pack says so. */
static char *
txn(json_t *ifs, json_t *thens)
{
    return text_of(json_pack("{s:o,s:o}", "compare", ifs, "success", thens));
}

static json_t *
delete_of(const char *prefix, const char *name)
{
    return json_pack(
        "{s:{s:o}}", "request_delete_range", "key", key_of(prefix, name));
}

static json_t *
put_primary(
    const char *prefix, const struct control_primary *primary, uint64_t lease)
{
    return put(prefix, "primary",
        json_pack("{s:o,s:i,s:s,s:s,s:o}", "node", name_of(&primary->node),
            "term", (int)primary->term, "client", primary->client.text, "repl",
            primary->repl.text, "boot", hex_of(primary->boot)),
        lease);
}

static json_t *
put_voters(const char *prefix, const struct control_voters *voters)
{
    json_t *nodes = json_array();
    for (uint32_t i = 0; nodes != NULL && i < voters->n; i++) {
        if (json_array_append_new(nodes, name_of(&voters->node[i])) != 0) {
            json_decref(nodes);
            nodes = NULL;
        }
    }
    return put(prefix, "voters",
        json_pack("{s:i,s:i,s:o}", "term", (int)voters->term, "need",
            (int)voters->need, "nodes", nodes),
        0);
}

/* A transaction within one, which sets the voters where there are none. */
static json_t *
put_first_voters(const char *prefix, const struct control_voters *voters)
{
    if (voters->n == 0) {
        return json_pack("[]");
    }
    return json_pack("[{s:{s:[o],s:[o]}}]", "request_txn", "compare",
        compare_seen(prefix, "voters", 0), "success",
        put_voters(prefix, voters));
}

/* The range comes last: keys_read_change. */
static char *
take_of(
    const char *prefix, const struct control_request *request, uint64_t lease)
{
    const struct control_primary *primary = &request->of.take.primary;
    json_t *thens = put_first_voters(prefix, &request->of.take.voters);
    json_t *others =
        json_pack("[o,o,o,o]", put_primary(prefix, primary, lease),
            put(prefix, "term", json_integer((json_int_t)primary->term), 0),
            delete_of(prefix, "order"), range_of(prefix, "voters"));
    if (json_array_extend(thens, others) != 0) {
        json_decref(thens);
        thens = NULL;
    }
    json_decref(others);
    return txn(
        json_pack("[o,o]", compare_seen(prefix, "primary", primary->revision),
            compare_seen(prefix, "term", request->of.take.term_revision)),
        thens);
}

static char *
keep_of(
    const char *prefix, const struct control_request *request, uint64_t lease)
{
    const struct control_primary *primary = &request->of.keep.primary;
    return txn(
        json_pack("[o,o]", compare_seen(prefix, "primary", primary->revision),
            compare_seen(prefix, "term", request->of.keep.term_revision)),
        json_pack("[o]", put_primary(prefix, primary, lease)));
}

static char *
voters_of(const char *prefix, const struct control_voters *voters)
{
    char term[NUMBER_ROOM];
    (void)snprintf(term, sizeof term, "%" PRIu32, voters->term);
    return txn(json_pack("[o,o]", compare_value(prefix, "term", term),
                   compare_seen(prefix, "voters", voters->revision)),
        json_pack("[o]", put_voters(prefix, voters)));
}

static char *
node_of(const char *prefix, const struct control_node *node, uint64_t lease)
{
    char name[8 + NODE_NAME_MAX + 1];
    (void)snprintf(
        name, sizeof name, "nodes/%.*s", (int)node->name.len, node->name.text);
    json_t *value = json_pack("{s:s,s:s,s:s,s:I,s:I,s:b,s:b,s:b}", "client",
        node->client.text, "repl", node->repl.text, "role", node->role,
        "formats", (json_int_t)node->formats, "priority",
        (json_int_t)node->priority, "votes", node->votes, "doubtful",
        node->is_doubtful, "member", node->is_member);
    return txn(
        json_array(), json_pack("[o]", put(prefix, name, value, lease)));
}

static char *
epoch_of(const char *prefix, const struct control_epoch *epoch)
{
    json_t *value = json_pack("{s:o,s:I,s:o}", "epoch", hex_of(epoch->epoch),
        "shards", (json_int_t)epoch->shards, "seed", hex_of(epoch->seed));
    return txn(json_pack("[o]", compare_seen(prefix, "epoch", 0)),
        json_pack("[o]", put(prefix, "epoch", value, 0)));
}

static json_t *
put_order(const char *prefix, const struct node_name *to)
{
    return put(prefix, "order", json_pack("{s:o}", "to", name_of(to)), 0);
}

static char *
order_of(const char *prefix, const struct control_order *order)
{
    return txn(json_array(),
        json_pack("[o]",
            order->to.len == 0 ? delete_of(prefix, "order")
                               : put_order(prefix, &order->to)));
}

char *
keys_hand(
    const char *prefix, const struct node_name *to, uint64_t primary_revision)
{
    return txn(
        json_pack("[o]", compare_seen(prefix, "primary", primary_revision)),
        json_pack(
            "[o,o]", put_order(prefix, to), delete_of(prefix, "primary")));
}

char *
keys_change(
    const char *prefix, const struct control_request *request, uint64_t lease)
{
    switch (request->ask) {
    case CONTROL_TAKE:
        return take_of(prefix, request, lease);
    case CONTROL_KEEP:
        return keep_of(prefix, request, lease);
    case CONTROL_VOTERS:
        return voters_of(prefix, &request->of.voters);
    case CONTROL_NODE:
        return node_of(prefix, &request->of.node, lease);
    case CONTROL_EPOCH:
        return epoch_of(prefix, &request->of.epoch);
    default:
        ASSERT(request->ask == CONTROL_ORDER);
        return order_of(prefix, &request->of.order);
    }
}
