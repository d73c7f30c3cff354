/* SPDX-License-Identifier: BSD-3-Clause */
/* One function a struct goes both ways: it puts the fields, or gets them, in
 * the same order, under the same rules. So the two cannot differ.
 *
 *     kind (1 byte, from 1 on; events from 65 on), fields
 *
 * Numbers are varints, boolean ones 0 or 1, texts have their length before
 * them. What has a revision of 0 and is optional is that 0 alone. */
#include "repl/control_frame.h"

#include "base/assert.h"
#include "base/bytes.h"

#include <string.h>

enum { REQUEST_FROM = 1, EVENT_FROM = 65 };

/* The most that a struct takes, varints at their longest. */
enum {
    NUMBER_MAX = BYTES_VARINT_MAX,
    ADDRESSES_MAX = 2 * (2 + CONTROL_ADDRESS_MAX),
    NODE_MAX = 1 + NODE_NAME_MAX + ADDRESSES_MAX + 1 + CONTROL_ROLE_MAX +
        4 * NUMBER_MAX,
    STATE_MAX = 1 + 20 * NUMBER_MAX + 2 * (1 + NODE_NAME_MAX) + ADDRESSES_MAX +
        CONTROL_VOTERS_MAX * (1 + NODE_NAME_MAX) + CONTROL_NODES_MAX * NODE_MAX
};
_Static_assert((int)STATE_MAX <= (int)CONTROL_FRAME_MAX, "each state fits");

/* Goes over bytes. Putting: at is written to, and there is room; getting: what
 * is there is looked at. */
struct coder {
    uint8_t *put;       /* NULL: it gets */
    const uint8_t *get; /* of both, where the next byte is */
    const uint8_t *end; /* of what is got */
    bool is_wrong;
};

static void
code_u64(struct coder *coder, uint64_t *value, uint64_t least, uint64_t most)
{
    if (coder->put != NULL) {
        coder->is_wrong |= *value < least || *value > most;
        coder->put += bytes_put_varint(coder->put, *value);
        return;
    }
    uint64_t got;
    if (coder->is_wrong || !bytes_get_varint(&coder->get, coder->end, &got) ||
        got < least || got > most) {
        coder->is_wrong = true;
        return;
    }
    *value = got;
}

static void
code_u32(struct coder *coder, uint32_t *value, uint32_t least, uint32_t most)
{
    uint64_t wide = *value;
    code_u64(coder, &wide, least, most);
    *value = (uint32_t)wide;
}

static void
code_bool(struct coder *coder, bool *value)
{
    uint32_t wide = *value;
    code_u32(coder, &wide, 0, 1);
    *value = wide != 0;
}

static bool
is_graphic(const char *text, size_t len, char first)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] < first || text[i] > '~') {
            return false;
        }
    }
    return true;
}

/* A text of up to most bytes from first to '~', and the NUL. */
static void
code_text(struct coder *coder, char *text, size_t most, char first)
{
    uint64_t len = coder->put != NULL ? strnlen(text, most + 1) : 0;
    code_u64(coder, &len, 0, most);
    if (coder->put != NULL) {
        if (len <= most) {
            memcpy(coder->put, text, len);
            coder->put += len;
        }
    } else if (!coder->is_wrong && (size_t)(coder->end - coder->get) >= len) {
        memcpy(text, coder->get, len);
        coder->get += len;
    } else {
        coder->is_wrong = true;
        return;
    }
    coder->is_wrong |= len > most || !is_graphic(text, len, first);
}

static void
code_name(struct coder *coder, struct node_name *name, bool is_optional)
{
    char text[NODE_NAME_MAX + 1] = "";
    ASSERT(name->len <= NODE_NAME_MAX);
    memcpy(text, name->text, name->len);
    code_text(coder, text, NODE_NAME_MAX, '!');
    size_t len = strlen(text);
    if (coder->is_wrong || (len == 0 && is_optional)) {
        return;
    }
    struct node_name right = {0};
    coder->is_wrong |= !node_name_set(&right, text, len);
    *name = right;
}

static void
code_addresses(struct coder *coder, struct control_address *client,
    struct control_address *repl)
{
    code_text(coder, client->text, CONTROL_ADDRESS_MAX, '!');
    code_text(coder, repl->text, CONTROL_ADDRESS_MAX, '!');
}

static void
code_revision(struct coder *coder, uint64_t *revision)
{
    code_u64(coder, revision, 0, INT64_MAX);
}

static void
code_term(struct coder *coder, uint32_t *term)
{
    code_u32(coder, term, 1, CONTROL_TERM_MAX);
}

static void
code_epoch(struct coder *coder, struct control_epoch *epoch)
{
    code_u64(coder, &epoch->epoch, 0, UINT64_MAX);
    code_u64(coder, &epoch->seed, 0, UINT64_MAX);
    code_u32(coder, &epoch->shards, 1, CONTROL_SHARDS_MAX);
}

static void
code_primary(struct coder *coder, struct control_primary *primary)
{
    code_name(coder, &primary->node, false);
    code_term(coder, &primary->term);
    code_u64(coder, &primary->boot, 0, UINT64_MAX);
    code_addresses(coder, &primary->client, &primary->repl);
}

static bool
are_different(const struct control_voters *voters)
{
    for (uint32_t i = 0; i < voters->n; i++) {
        for (uint32_t j = 0; j < i; j++) {
            if (memcmp(&voters->node[i], &voters->node[j],
                    sizeof voters->node[i]) == 0) {
                return false;
            }
        }
    }
    return true;
}

static void
code_voters(struct coder *coder, struct control_voters *voters)
{
    code_term(coder, &voters->term);
    code_u32(coder, &voters->n, 1, CONTROL_VOTERS_MAX);
    if (coder->is_wrong) {
        return;
    }
    code_u32(coder, &voters->need, 1, CONTROL_VOTERS_MAX);
    for (uint32_t i = 0; i < voters->n; i++) {
        code_name(coder, &voters->node[i], false);
    }
    coder->is_wrong = coder->is_wrong || !are_different(voters);
}

/* Those that have no revision: n 0 is none. */
static void
code_first_voters(struct coder *coder, struct control_voters *voters)
{
    bool has_any = voters->n > 0;
    code_bool(coder, &has_any);
    if (has_any) {
        code_voters(coder, voters);
    }
}

static void
code_node(struct coder *coder, struct control_node *node)
{
    code_name(coder, &node->name, false);
    code_addresses(coder, &node->client, &node->repl);
    code_text(coder, node->role, CONTROL_ROLE_MAX, '!');
    code_u32(coder, &node->formats, 0, UINT32_MAX);
    code_u32(coder, &node->priority, 0, CONTROL_PRIORITY_MAX);
    code_bool(coder, &node->votes);
    code_bool(coder, &node->is_doubtful);
    code_bool(coder, &node->is_member);
}

static void
code_state(struct coder *coder, struct control_state *state)
{
    code_revision(coder, &state->revision);
    code_revision(coder, &state->term_revision);
    if (state->term_revision != 0) {
        code_term(coder, &state->term);
    }
    code_revision(coder, &state->epoch.revision);
    if (state->epoch.revision != 0) {
        code_epoch(coder, &state->epoch);
    }
    code_revision(coder, &state->primary.revision);
    if (state->primary.revision != 0) {
        code_primary(coder, &state->primary);
    }
    code_revision(coder, &state->voters.revision);
    if (state->voters.revision != 0) {
        code_voters(coder, &state->voters);
    }
    code_revision(coder, &state->order.revision);
    if (state->order.revision != 0) {
        code_name(coder, &state->order.to, false);
    }
    code_u32(coder, &state->n_nodes, 0, CONTROL_NODES_MAX);
    for (uint32_t i = 0; !coder->is_wrong && i < state->n_nodes; i++) {
        code_node(coder, &state->node[i]);
    }
}

static void
code_why(struct coder *coder, char *why)
{
    code_text(coder, why, CONTROL_WHY_MAX, ' ');
}

static void
code_result(struct coder *coder, struct control_result *result)
{
    uint32_t outcome = (uint32_t)result->outcome;
    code_u32(coder, &result->number, 0, UINT32_MAX);
    code_u32(coder, &outcome, 0, CONTROL_OUTCOMES_N - 1);
    result->outcome = (enum control_outcome)outcome;
    code_revision(coder, &result->revision);
    code_revision(coder, &result->voters.revision);
    if (result->voters.revision != 0) {
        code_voters(coder, &result->voters);
    }
    code_why(coder, result->why);
}

static void
code_request(struct coder *coder, struct control_request *request)
{
    code_u32(coder, &request->number, 0, UINT32_MAX);
    switch (request->ask) {
    case CONTROL_TAKE:
        code_revision(coder, &request->of.take.primary.revision);
        code_revision(coder, &request->of.take.term_revision);
        code_primary(coder, &request->of.take.primary);
        code_first_voters(coder, &request->of.take.voters);
        break;
    case CONTROL_KEEP:
        code_revision(coder, &request->of.keep.primary.revision);
        code_revision(coder, &request->of.keep.term_revision);
        code_primary(coder, &request->of.keep.primary);
        break;
    case CONTROL_HAND:
        code_name(coder, &request->of.hand.to, false);
        break;
    case CONTROL_VOTERS:
        code_revision(coder, &request->of.voters.revision);
        code_voters(coder, &request->of.voters);
        break;
    case CONTROL_NODE:
        code_node(coder, &request->of.node);
        break;
    case CONTROL_EPOCH:
        code_epoch(coder, &request->of.epoch);
        break;
    case CONTROL_ORDER:
        code_name(coder, &request->of.order.to, true);
        break;
    default: /* BEAT, GIVE_UP: their number */
        break;
    }
}

static void
code_event(struct coder *coder, struct control_event *event)
{
    switch (event->say) {
    case CONTROL_SAY_BEAT_BACK:
        code_u32(coder, &event->of.beat.number, 0, UINT32_MAX);
        code_u64(coder, &event->of.beat.deadline_ns, 0, UINT64_MAX);
        break;
    case CONTROL_SAY_RESULT:
        code_result(coder, &event->of.result);
        break;
    case CONTROL_SAY_STATE:
        code_state(coder, &event->of.state);
        break;
    default: /* LOST, UNREACHABLE */
        code_why(coder, event->of.why);
        break;
    }
}

size_t
control_frame__put_request(
    const struct control_request *request, uint8_t out[CONTROL_FRAME_MAX])
{
    struct coder coder = {.put = out + 1};
    struct control_request copy = *request;
    ASSERT(request->ask < CONTROL_REQUESTS_N);
    out[0] = (uint8_t)(REQUEST_FROM + request->ask);
    code_request(&coder, &copy);
    ASSERT(!coder.is_wrong && coder.put - out <= CONTROL_FRAME_MAX);
    return (size_t)(coder.put - out);
}

size_t
control_frame__put_event(
    const struct control_event *event, uint8_t out[CONTROL_FRAME_MAX])
{
    struct coder coder = {.put = out + 1};
    struct control_event copy = *event;
    ASSERT(event->say < CONTROL_EVENTS_N);
    out[0] = (uint8_t)(EVENT_FROM + event->say);
    code_event(&coder, &copy);
    ASSERT(!coder.is_wrong && coder.put - out <= CONTROL_FRAME_MAX);
    return (size_t)(coder.put - out);
}

bool
control_frame__get_request(
    const uint8_t *bytes, size_t len, struct control_request *out)
{
    struct coder coder = {.get = bytes + 1, .end = bytes + len};
    memset(out, 0, sizeof *out);
    if (len == 0 || len > CONTROL_FRAME_MAX || bytes[0] < REQUEST_FROM ||
        bytes[0] >= REQUEST_FROM + CONTROL_REQUESTS_N) {
        return false;
    }
    out->ask = (enum control_ask)(bytes[0] - REQUEST_FROM);
    code_request(&coder, out);
    return !coder.is_wrong && coder.get == coder.end;
}

bool
control_frame__get_event(
    const uint8_t *bytes, size_t len, struct control_event *out)
{
    struct coder coder = {.get = bytes + 1, .end = bytes + len};
    memset(out, 0, sizeof *out);
    if (len == 0 || len > CONTROL_FRAME_MAX || bytes[0] < EVENT_FROM ||
        bytes[0] >= EVENT_FROM + CONTROL_EVENTS_N) {
        return false;
    }
    out->say = (enum control_say)(bytes[0] - EVENT_FROM);
    code_event(&coder, out);
    return !coder.is_wrong && coder.get == coder.end;
}

bool
control_frame_is_right(const struct control_event *event)
{
    uint8_t out[CONTROL_FRAME_MAX];
    struct coder coder = {.put = out};
    struct control_event copy = *event;
    code_event(&coder, &copy);
    return !coder.is_wrong;
}
