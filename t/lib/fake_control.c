/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/fake_control.h"

#include "base/assert.h"

#include <stdio.h>
#include <string.h>

static uint64_t
next(struct fake_etcd *etcd)
{
    return ++etcd->state.revision;
}

static struct control_event *
add_event(struct fake_control *fake, enum control_say say)
{
    ASSERT(fake->n_events < FAKE_EVENTS_MAX);
    struct control_event *event = &fake->event[fake->n_events++];
    memset(event, 0, sizeof *event);
    event->say = say;
    return event;
}

static bool
take(struct fake_control *fake, const struct control_request *request)
{
    struct control_state *state = &fake->etcd->state;
    const struct control_primary *primary = &request->of.take.primary;
    if (state->primary.revision != primary->revision ||
        state->term_revision != request->of.take.term_revision) {
        return false;
    }
    state->primary = *primary;
    state->primary.revision = state->term_revision = next(fake->etcd);
    state->term = primary->term;
    state->order = (struct control_order){0};
    if (state->voters.revision == 0 && request->of.take.voters.n > 0) {
        state->voters = request->of.take.voters;
        state->voters.revision = state->revision;
    }
    fake->etcd->primary = fake;
    return true;
}

static bool
keep(struct fake_control *fake, const struct control_request *request)
{
    struct control_state *state = &fake->etcd->state;
    const struct control_primary *primary = &request->of.keep.primary;
    if (state->primary.revision != primary->revision ||
        state->term_revision != request->of.keep.term_revision) {
        return false;
    }
    state->primary = *primary;
    state->primary.revision = next(fake->etcd);
    fake->etcd->primary = fake;
    return true;
}

/* One change: who sees the order sees no key. */
static bool
hand(struct fake_control *fake, const struct control_request *request)
{
    struct control_state *state = &fake->etcd->state;
    if (fake->etcd->primary != fake) {
        return false;
    }
    fake->etcd->primary = NULL;
    state->primary = (struct control_primary){0};
    state->order = (struct control_order){
        .revision = next(fake->etcd), .to = request->of.hand.to};
    return true;
}

static bool
set_voters(struct fake_control *fake, const struct control_voters *voters)
{
    struct control_state *state = &fake->etcd->state;
    if (state->term_revision == 0 || state->term != voters->term ||
        state->voters.revision != voters->revision) {
        return false;
    }
    state->voters = *voters;
    state->voters.revision = next(fake->etcd);
    return true;
}

static int
compare(const struct node_name *a, const struct node_name *b)
{
    size_t len = a->len < b->len ? a->len : b->len;
    int order = memcmp(a->text, b->text, len);
    return order != 0 ? order : (int)a->len - (int)b->len;
}

/* They stay in the order of their names. */
static bool
set_node(struct fake_control *fake, const struct control_node *node)
{
    struct fake_etcd *etcd = fake->etcd;
    struct control_state *state = &etcd->state;
    unsigned at = 0;
    while (at < state->n_nodes &&
        compare(&state->node[at].name, &node->name) < 0) {
        at++;
    }
    if (at == state->n_nodes ||
        compare(&state->node[at].name, &node->name) != 0) {
        unsigned behind = state->n_nodes - at;
        ASSERT(state->n_nodes < CONTROL_NODES_MAX);
        memmove(&state->node[at + 1], &state->node[at],
            behind * sizeof state->node[0]);
        memmove(&etcd->node[at + 1], &etcd->node[at],
            behind * sizeof etcd->node[0]);
        state->n_nodes++;
    }
    state->node[at] = *node;
    etcd->node[at] = fake;
    (void)next(etcd);
    return true;
}

static void
drop_primary(struct fake_control *fake)
{
    if (fake->etcd->primary == fake) {
        fake->etcd->primary = NULL;
        fake->etcd->state.primary = (struct control_primary){0};
        (void)next(fake->etcd);
    }
}

/* True where it is done. */
static bool
carry_out(struct fake_control *fake, const struct control_request *request)
{
    struct control_state *state = &fake->etcd->state;
    switch (request->ask) {
    case CONTROL_TAKE:
        return take(fake, request);
    case CONTROL_KEEP:
        return keep(fake, request);
    case CONTROL_HAND:
        return hand(fake, request);
    case CONTROL_VOTERS:
        return set_voters(fake, &request->of.voters);
    case CONTROL_NODE:
        return set_node(fake, &request->of.node);
    case CONTROL_EPOCH:
        if (state->epoch.revision != 0) {
            return false;
        }
        state->epoch = request->of.epoch;
        state->epoch.revision = next(fake->etcd);
        return true;
    case CONTROL_ORDER:
        state->order = request->of.order;
        state->order.revision = next(fake->etcd);
        if (state->order.to.len == 0) {
            state->order = (struct control_order){0};
        }
        return true;
    default:
        drop_primary(fake);
        return true;
    }
}

/* Those whose lease is given up where their outcome is not known. */
static bool
has_lease(enum control_ask ask)
{
    return ask == CONTROL_TAKE || ask == CONTROL_KEEP || ask == CONTROL_HAND;
}

static void
answer(struct fake_control *fake, const struct control_request *request,
    bool is_done)
{
    static const enum control_outcome unless_well[] = {
        [FAKE_APART] = CONTROL_NO,
        [FAKE_LOSES] = CONTROL_UNKNOWN,
        [FAKE_DROPS] = CONTROL_UNKNOWN,
        [FAKE_LATER] = CONTROL_UNKNOWN};
    struct control_result *result =
        &add_event(fake, CONTROL_SAY_RESULT)->of.result;
    result->number = request->number;
    result->outcome = fake->way != FAKE_WELL ? unless_well[fake->way]
        : is_done                            ? CONTROL_YES
                                             : CONTROL_NO;
    if (fake->way == FAKE_WELL) {
        result->revision = fake->etcd->state.revision;
    }
    if (result->outcome == CONTROL_YES && request->ask == CONTROL_TAKE) {
        result->voters = fake->etcd->state.voters;
    } else if (result->outcome != CONTROL_YES) {
        (void)snprintf(result->why, sizeof result->why, "it is made up");
    }
    if (has_lease(request->ask) && result->outcome == CONTROL_UNKNOWN) {
        drop_primary(fake); /* as repl/control.h says */
    }
}

static bool
fake_ask(struct control *control, const struct control_request *request)
{
    struct fake_control *fake = (struct fake_control *)control;
    if (request->ask == CONTROL_BEAT) {
        struct control_beat *beat =
            &add_event(fake, CONTROL_SAY_BEAT_BACK)->of.beat;
        beat->number = request->number;
        beat->deadline_ns =
            fake->etcd->primary == fake ? fake->deadline_ns : 0;
        return true;
    }
    bool is_done = false;
    if (fake->way == FAKE_WELL || fake->way == FAKE_LOSES) {
        is_done = carry_out(fake, request);
    } else if (fake->way == FAKE_LATER) {
        fake->has_late = true;
        fake->late = *request;
    }
    answer(fake, request, is_done);
    return true;
}

static const struct control_calls fake_calls = {.ask = fake_ask};

void
fake_control_init(struct fake_control *fake, struct fake_etcd *etcd,
    control_event_fn *event_fn, void *context)
{
    memset(fake, 0, sizeof *fake);
    fake->control = (struct control){
        .calls = &fake_calls, .event_fn = event_fn, .context = context};
    fake->etcd = etcd;
    if (etcd->state.revision == 0) {
        etcd->state.revision = 1; /* of an etcd that is empty */
    }
}

static void
hear(struct fake_control *fake, const struct control_event *event)
{
    fake->control.event_fn(fake->control.context, event);
}

void
fake_control_turn(struct fake_control *fake)
{
    static struct control_event event;
    for (unsigned n = fake->n_events; n > 0; n--) {
        event = fake->event[0];
        fake->n_events--;
        memmove(fake->event, fake->event + 1,
            fake->n_events * sizeof fake->event[0]);
        hear(fake, &event); /* which may ask */
    }
    memset(&event, 0, sizeof event);
    if (fake->way == FAKE_APART) {
        if (!fake->is_unreachable) {
            fake->is_unreachable = true;
            event.say = CONTROL_SAY_UNREACHABLE;
            hear(fake, &event);
        }
    } else if (fake->is_unreachable ||
        fake->heard_revision != fake->etcd->state.revision) {
        fake->is_unreachable = false;
        fake->heard_revision = fake->etcd->state.revision;
        event.say = CONTROL_SAY_STATE;
        event.of.state = fake->etcd->state;
        hear(fake, &event);
    }
}

bool
fake_control_late(struct fake_control *fake)
{
    bool has_late = fake->has_late;
    fake->has_late = false;
    /* the lease has been given up: etcd refuses */
    return has_late && !has_lease(fake->late.ask) &&
        carry_out(fake, &fake->late);
}

void
fake_control_expire(struct fake_control *fake)
{
    struct fake_etcd *etcd = fake->etcd;
    if (etcd->primary == fake) {
        drop_primary(fake);
        (void)add_event(fake, CONTROL_SAY_LOST);
    }
    for (unsigned i = etcd->state.n_nodes; i-- > 0;) {
        if (etcd->node[i] == fake) {
            unsigned behind = --etcd->state.n_nodes - i;
            memmove(&etcd->node[i], &etcd->node[i + 1],
                behind * sizeof etcd->node[0]);
            memmove(&etcd->state.node[i], &etcd->state.node[i + 1],
                behind * sizeof etcd->state.node[0]);
            memset(&etcd->state.node[etcd->state.n_nodes], 0,
                sizeof etcd->state.node[0]);
            (void)next(etcd);
        }
    }
}
