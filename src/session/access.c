/* SPDX-License-Identifier: BSD-3-Clause */
/* The gate. A request has a class, a client a rank, and one table says the
 * least rank that a class wants. The switch below has no default: a request
 * that is new to the project does not compile without a class.
 *
 * Before the login a client of the text protocol is not even parsed: its lines
 * come as REQUEST_LOGIN or REQUEST_UNREAD (proto/login.h). A client of the
 * binary protocol is, with no room for values, and closed after its first
 * refusal, as by memcached; one of the text protocol after some.
 *
 * A request that is refused becomes REQUEST_ERROR, so that it is answered in
 * its turn, behind what was gathered before it. */
#include "session/access.h"

#include "base/assert.h"
#include "base/err.h"
#include "proto/binary.h"
#include "proto/text_admin.h"
#include "proto/words.h"
#include "session/session.h"

#define UNKNOWN_USER_LINE "CLIENT_ERROR unauthenticated"
#define MAY_ONLY_READ_LINE "CLIENT_ERROR this user may only read"

/* stats with a first word that changes something, alone or with others. As in
 * memcached any beginning of it is as good (server/admin.c). */
static enum access_class
class_of_stats(const struct request *request, const char *bytes)
{
    struct words words = words_of(bytes, request->words);
    struct span word;
    if (!words_next(&words, &word)) {
        return ACCESS_CLASS_READ;
    }
    if (span_begins(bytes, word, "reset")) {
        return ACCESS_CLASS_RULE;
    }
    if (!span_begins(bytes, word, "detail")) {
        return ACCESS_CLASS_READ;
    }
    return words_next(&words, &word) && span_is(bytes, word, "dump")
        ? ACCESS_CLASS_READ
        : ACCESS_CLASS_RULE;
}

static enum access_class
class_of_admin(const struct request *request, const char *bytes)
{
    struct text_admin admin;
    text_admin_read(bytes, request->words, &admin);
    switch (admin.op) {
    case TEXT_ADMIN_NOTHING:
        return ACCESS_CLASS_TALK;
    case TEXT_ADMIN_METADUMP:
    case TEXT_ADMIN_MGDUMP:
    case TEXT_ADMIN_WATCH:
        return ACCESS_CLASS_READ;
    case TEXT_ADMIN_SETTINGS:
    case TEXT_ADMIN_LRU_SETTINGS:
    case TEXT_ADMIN_REASSIGN:
    case TEXT_ADMIN_CRAWLER:
    case TEXT_ADMIN_CRAWL:
    case TEXT_ADMIN_MEMLIMIT:
    case TEXT_ADMIN_SHUTDOWN:
    case TEXT_ADMIN_KILL:
    case TEXT_ADMIN_SLOW:
    case TEXT_ADMIN_CERTS:
    case TEXT_ADMIN_TIME_STOP:
    case TEXT_ADMIN_TIME_GO:
    case TEXT_ADMIN_TIME_SHIFT:
        return ACCESS_CLASS_RULE;
    }
    return ACCESS_CLASS_UNREAD;
}

/* A look that makes, renews or marks an item is a change. */
static enum access_class
class_of_look(const struct terms *terms)
{
    return terms->touches || terms->vivifies || terms->recaches
        ? ACCESS_CLASS_CHANGE
        : ACCESS_CLASS_READ;
}

/* Of those that are told by what they are alone. */
static enum access_class
class_of(enum request_op op)
{
    switch (op) {
    case REQUEST_LOGIN:
    case REQUEST_LOGIN_WAYS:
        return ACCESS_CLASS_LOGIN;
    case REQUEST_VERSION:
        return ACCESS_CLASS_VERSION;
    case REQUEST_NOOP:
    case REQUEST_QUIT:
    case REQUEST_HELP:
    case REQUEST_ERROR:
    case REQUEST_COUNTER_MISUSE:
    case REQUEST_COUNTER_STORE:
        return ACCESS_CLASS_TALK;
    case REQUEST_GET:
    case REQUEST_GETS:
    case REQUEST_INSPECT:
    case REQUEST_COUNTER_GET:
    case REQUEST_WAIT:
    case REQUEST_DUMP:
    case REQUEST_SHOW_HANDOVERS:
    case REQUEST_DUMP_NUMBERS:
    case REQUEST_SHOW_COUNTERS:
    case REQUEST_SHOW_COUNTER:
        return ACCESS_CLASS_READ;
    case REQUEST_GAT:
    case REQUEST_GATS:
    case REQUEST_SET:
    case REQUEST_ADD:
    case REQUEST_REPLACE:
    case REQUEST_APPEND:
    case REQUEST_PREPEND:
    case REQUEST_CAS:
    case REQUEST_DELETE:
    case REQUEST_INCR:
    case REQUEST_DECR:
    case REQUEST_NUMBERS:
    case REQUEST_TOUCH:
    case REQUEST_FLUSH_ALL:
    case REQUEST_TOO_LARGE:
    case REQUEST_COUNTER_SET:
    case REQUEST_COUNTER_ADD:
    case REQUEST_COUNTER_REPLACE:
    case REQUEST_COUNTER_DELETE:
    case REQUEST_COUNTER_INCR:
    case REQUEST_COUNTER_DECR:
        return ACCESS_CLASS_CHANGE;
    case REQUEST_VERBOSITY:
    case REQUEST_SCHEMA_EDIT:
    case REQUEST_DROP_PRODUCER:
    case REQUEST_HANDOVER:
    case REQUEST_FEED:
    case REQUEST_CHECKPOINT:
    case REQUEST_SEAL:
    case REQUEST_FORGET:
    case REQUEST_REPLICAOF:
    case REQUEST_FAILOVER:
    case REQUEST_DIGEST:
    case REQUEST_BACKUP:
        return ACCESS_CLASS_RULE;
    case REQUEST_LOOK:
    case REQUEST_STATS:
    case REQUEST_ADMIN:
    case REQUEST_UNREAD:
        break;
    }
    return ACCESS_CLASS_UNREAD;
}

enum access_class
access_class_of(const struct request *request, const char *bytes)
{
    switch (request->op) {
    case REQUEST_LOOK:
        return class_of_look(&request->terms);
    case REQUEST_STATS:
        return class_of_stats(request, bytes);
    case REQUEST_ADMIN:
        return class_of_admin(request, bytes);
    default:
        return class_of(request->op);
    }
}

bool
access_allows(enum access_rank rank, enum access_class class_)
{
    static const unsigned least[ACCESS_CLASS_COUNT] = {
#define X(name, rank_, text) [ACCESS_CLASS_##name] = ACCESS_##rank_,
        ACCESS_CLASSES(X)
#undef X
    };
    ASSERT(class_ < ACCESS_CLASS_COUNT);
    return rank >= least[class_];
}

bool
access_is_void(const struct session *session)
{
    struct access *access = session->executor->access;
    return access != NULL && access->stands_fn != NULL && !session->is_inner &&
        session->rank != ACCESS_NOBODY &&
        !access->stands_fn(access, session->pass);
}

void
access__note_refusal(struct session *session)
{
    if (session->refusals < ACCESS_REFUSALS_MAX) {
        session->refusals++;
    }
    if (session->refusals == ACCESS_REFUSALS_MAX) {
        session->request.closes = true;
    }
}

void
access__gate_closed(struct session *session, const char *bytes)
{
    struct request *request = &session->request;
    bool is_nobody = session->rank == ACCESS_NOBODY;
    bool is_binary = request->proto == PROTO_BINARY;
    if (access_allows(session->rank, access_class_of(request, bytes))) {
        return;
    }
    metric_add(session->executor->metrics, METRIC_access_refused, 1);
    if (request->noreply) {
        metric_add(session->executor->metrics, METRIC_noreply_refused, 1);
    }
    request->op = REQUEST_ERROR;
    request->err = is_nobody ? ERR_UNKNOWN_USER : ERR_MAY_ONLY_READ;
    request->error = is_nobody ? UNKNOWN_USER_LINE : MAY_ONLY_READ_LINE;
    if (is_nobody) {
        access__note_refusal(session);
        request->closes = request->closes || is_binary;
    }
}
