/* SPDX-License-Identifier: BSD-3-Clause */
/* A stream of NATS JetStream, by a consumer of the server's that lives only as
 * long as the subscription, begins behind our position and wants no
 * acknowledgements: the stream's sequences are the positions.
 *
 * The server numbers what it delivers as well. Where one of these numbers is
 * missing, messages have been dropped on the way, and it is subscribed anew.
 * So is it after every error, with a new connection. */
#include "tallyq/source.h"

#include "base/assert.h"

#include <nats/nats.h>
#include <stdlib.h>
#include <string.h>

enum {
    TIMEOUT_MS = 10000,
    HEARTBEAT_NS = 1000000000,
    PENDING_MESSAGES = 65536, /* that have come and are not read yet */
    PENDING_BYTES = 64 << 20,
    SERVERS_MAX = 16,
    URL_BYTES = SOURCE_HOSTS_MAX + sizeof "nats://",
    SUBJECT_BYTES = 256
};

/* What the stream says about itself. */
struct state {
    uint64_t first, last; /* sequences; last < first: it is empty */
    char subject[SUBJECT_BYTES];
};

struct nats {
    struct broker broker; /* first */
    struct source source;
    natsConnection *connection; /* NULL: not connected */
    jsCtx *context;
    natsSubscription *subscription; /* NULL: not subscribed */
    uint64_t delivered;             /* the server's number of the last one */
    uint64_t place;                 /* sequence of the last that was taken */
    natsMsg *held;                  /* the next one, which was not taken */
    uint64_t held_at;               /* its sequence */
    uint64_t lost_at;               /* where lost ones were counted last */
};

static struct nats *
of(struct broker *broker)
{
    return (struct nats *)broker;
}

static void
unsubscribe(struct nats *nats)
{
    natsMsg_Destroy(nats->held);
    nats->held = NULL;
    if (nats->subscription != NULL) {
        (void)natsSubscription_Unsubscribe(nats->subscription);
        natsSubscription_Destroy(nats->subscription);
        nats->subscription = NULL;
    }
}

static void
disconnect(struct nats *nats)
{
    unsubscribe(nats);
    jsCtx_Destroy(nats->context);
    nats->context = NULL;
    natsConnection_Destroy(nats->connection);
    nats->connection = NULL;
}

static bool
fail(struct nats *nats, const char *what, natsStatus status)
{
    const char *last = nats_GetLastError(NULL);
    (void)broker_fail(&nats->broker, "%s: %s: %s%s%s", nats->source.hosts,
        what, natsStatus_GetText(status), last == NULL ? "" : ", ",
        last == NULL ? "" : last);
    disconnect(nats);
    return false;
}

/* Tells the options all HOST:PORT. */
static natsStatus
set_servers(struct nats *nats, natsOptions *options)
{
    char url[SERVERS_MAX][URL_BYTES];
    const char *urls[SERVERS_MAX];
    const char *text = nats->source.hosts;
    int n = 0;
    while (n < SERVERS_MAX) {
        size_t len = strcspn(text, ",");
        (void)snprintf(url[n], URL_BYTES, "nats://%.*s", (int)len, text);
        urls[n] = url[n];
        n++;
        if (text[len] == '\0') {
            break;
        }
        text += len + 1;
    }
    return natsOptions_SetServers(options, urls, n);
}

static bool
is_connected(struct nats *nats)
{
    natsOptions *options = NULL;
    if (nats->connection != NULL) {
        return true;
    }
    natsStatus status = natsOptions_Create(&options);
    if (status == NATS_OK) {
        status = set_servers(nats, options);
    }
    if (status == NATS_OK) {
        status = natsOptions_SetAllowReconnect(options, false);
    }
    if (status == NATS_OK) {
        status = natsOptions_SetTimeout(options, TIMEOUT_MS);
    }
    if (status == NATS_OK) {
        status = natsConnection_Connect(&nats->connection, options);
    }
    if (status == NATS_OK) {
        status =
            natsConnection_JetStream(&nats->context, nats->connection, NULL);
    }
    natsOptions_Destroy(options);
    return status == NATS_OK || fail(nats, "no connection", status);
}

static bool
look(struct nats *nats, struct state *out)
{
    jsStreamInfo *info = NULL;
    jsErrCode code = 0;
    natsStatus status = js_GetStreamInfo(
        &info, nats->context, nats->source.stream, NULL, &code);
    if (status != NATS_OK) {
        return fail(nats, nats->source.stream, status);
    }
    int n = info->Config->SubjectsLen;
    const char *subject = n == 1 ? info->Config->Subjects[0] : "";
    out->first = info->State.FirstSeq;
    out->last = info->State.LastSeq;
    (void)snprintf(out->subject, sizeof out->subject, "%s", subject);
    bool fits = strlen(subject) < sizeof out->subject;
    jsStreamInfo_Destroy(info);
    return n == 1 && fits
        ? true
        : broker_fail(&nats->broker,
              "%s: a stream with one subject is wanted; that one may be as "
              "wide as \"likes.>\"",
              nats->source.stream);
}

/* Whether the stream still has what is behind that place. */
static bool
check_place(struct nats *nats, uint64_t after, struct state *state)
{
    if (!look(nats, state)) {
        return false;
    }
    if (state->last < after) {
        (void)broker_fail(&nats->broker,
            "%s ends at %" PRIu64 ", and %" PRIu64 " have been read: has the "
            "stream been made anew? See doc/queues.md",
            nats->source.stream, state->last, after);
        disconnect(nats);
        return false;
    }
    if (state->first > after + 1 && nats->lost_at != after + 1) {
        nats->broker.n_lost += state->first - after - 1;
        nats->lost_at = after + 1;
    }
    return true;
}

static bool
subscribe(struct nats *nats, uint64_t after)
{
    jsSubOptions options;
    jsErrCode code = 0;
    struct state state;
    unsubscribe(nats);
    if (!is_connected(nats) || !check_place(nats, after, &state)) {
        return false;
    }
    natsStatus status = jsSubOptions_Init(&options);
    options.Stream = nats->source.stream;
    options.Config.DeliverPolicy = js_DeliverByStartSequence;
    options.Config.OptStartSeq = after + 1;
    options.Config.AckPolicy = js_AckNone;
    options.Config.FlowControl = true;
    options.Config.Heartbeat = HEARTBEAT_NS;
    if (status == NATS_OK) {
        status = js_SubscribeSync(&nats->subscription, nats->context,
            state.subject, NULL, &options, &code);
    }
    if (status == NATS_OK) {
        status = natsSubscription_SetPendingLimits(
            nats->subscription, PENDING_MESSAGES, PENDING_BYTES);
    }
    if (status != NATS_OK) {
        return fail(nats, nats->source.stream, status);
    }
    nats->delivered = 0;
    nats->place = after;
    return true;
}

/* Takes the next message into held; none where none came. */
static bool
receive(struct nats *nats, uint32_t wait_ms)
{
    jsMsgMetaData *about = NULL;
    if (nats->held != NULL) {
        return true;
    }
    natsStatus status = natsSubscription_NextMsg(
        &nats->held, nats->subscription, wait_ms == 0 ? 1 : wait_ms);
    if (status == NATS_TIMEOUT) {
        return true;
    }
    if (status == NATS_OK) {
        status = natsMsg_GetMetaData(&about, nats->held);
    }
    if (status != NATS_OK) {
        return fail(nats, "no messages", status);
    }
    uint64_t delivered = about->Sequence.Consumer;
    nats->held_at = about->Sequence.Stream;
    jsMsgMetaData_Destroy(about);
    if (delivered != nats->delivered + 1) {
        unsubscribe(nats);
        return broker_fail(&nats->broker,
            "%s: messages were dropped on the "
            "way, they are asked for again",
            nats->source.hosts);
    }
    nats->delivered = delivered;
    return true;
}

static bool
nats_read(struct broker *broker, struct position after, uint32_t wait_ms,
    broker_take_fn take_fn, void *context)
{
    struct nats *nats = of(broker);
    if ((nats->subscription == NULL || nats->place != after.hi) &&
        !subscribe(nats, after.hi)) {
        return false;
    }
    while (true) {
        if (!receive(nats, wait_ms)) {
            return false;
        }
        if (nats->held == NULL) {
            return true;
        }
        const struct position at = {.hi = nats->held_at};
        int len = natsMsg_GetDataLength(nats->held);
        ASSERT(len >= 0);
        const char *text = len == 0 ? "" : natsMsg_GetData(nats->held);
        if (!take_fn(context, at, text, (size_t)len)) {
            return true;
        }
        nats->place = nats->held_at;
        natsMsg_Destroy(nats->held);
        nats->held = NULL;
        wait_ms = 0;
    }
}

static uint64_t
nats_behind(struct broker *broker, struct position at)
{
    struct nats *nats = of(broker);
    struct state state;
    if (!is_connected(nats) || !look(nats, &state)) {
        return UINT64_MAX;
    }
    return state.last > at.hi ? state.last - at.hi : 0;
}

static void
nats_close(struct broker **broker)
{
    struct nats *nats = of(*broker);
    disconnect(nats);
    free(nats);
    *broker = NULL;
    nats_CloseAndWait(TIMEOUT_MS);
}

static const struct broker_calls calls = {
    .read = nats_read, .behind = nats_behind, .close = nats_close};

struct broker *
broker_nats_open(const struct source *source)
{
    struct nats *nats = calloc(1, sizeof *nats);
    if (nats == NULL) {
        return NULL;
    }
    nats->broker.calls = &calls;
    nats->broker.unit = "messages";
    nats->source = *source;
    return &nats->broker;
}
