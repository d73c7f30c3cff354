/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_ADMIN_PRIV_H
#define SERVER_ADMIN_PRIV_H

#include "base/assert.h"
#include "base/uri.h"
#include "proto/reply_stats.h"
#include "proto/words.h"
#include "server/admin.h"

/* Shared among admin*.c. Each function hands the reply to one sub-command of
 * stats to out, with its end; args[0] is the first byte behind "stats". */

/* The memcached whose text protocol this is (doc/adr/0004). */
#define ADMIN__MEMCACHED_VERSION "1.6.45"

void admin__general(struct server_admin *admin, struct reply_stats *out);
void admin__settings(struct server_admin *admin, struct reply_stats *out);
void admin__items(struct server_admin *admin, struct reply_stats *out);
void admin__slabs(struct server_admin *admin, struct reply_stats *out);
void admin__conns(struct server_admin *admin, struct reply_stats *out);
void admin__counters(struct server_admin *admin, struct reply_stats *out);
void admin__wal(struct server_admin *admin, struct reply_stats *out);
void admin__cold(struct server_admin *admin, struct reply_stats *out);

void admin__memory(struct server_admin *admin, struct reply_stats *out);
void admin__health(struct server_admin *admin, struct reply_stats *out);

void admin__latency(struct server_admin *admin, struct reply_stats *out);
/* How long requests of a verb took on a path (LATENCY_PATH_COUNT: on all), of
 * all workers since the start or the last reset: added to *sum. */
void admin__latency_sum(struct server_admin *admin, enum latency_verb verb,
    enum latency_path path, struct hist_sum *sum);
/* stats latency buckets: of each verb and path, where there were any, how many
 * took less than a power of two of microseconds and not less than the one
 * before. */
void admin__latency_buckets(
    struct server_admin *admin, struct reply_stats *out);
void admin__loop(struct server_admin *admin, struct reply_stats *out);
void admin__slow(struct server_admin *admin, struct reply_stats *out);
void admin__hot(struct server_admin *admin, struct reply_stats *out);

/* Has what was slow, and how long all has taken, begin anew; keeps that of
 * workers that are about to go. The lock is held. */
void admin__reset_latency(struct server_admin *admin);
void admin__keep_latency(struct server_admin *admin);

/* Of all counters, or of the one that is named (len 0: none). */
bool admin__tables(struct server_admin *admin, const char *name, size_t len,
    struct admin_reply *reply, struct reply_stats *out);

/* Of all columns of members. */
bool admin__members(struct server_admin *admin, struct admin_reply *reply,
    struct reply_stats *out);

/* words: what follows cachedump, and detail. */
void admin__cachedump(struct server_admin *admin, const char *args,
    struct words words, struct reply_stats *out);
void admin__detail(struct server_admin *admin, const char *args,
    struct words words, struct reply_stats *out);

/* Whose seam it is. */
static inline struct server_admin *
admin__of(struct admin *seam)
{
    struct server_admin *admin = (struct server_admin *)seam;
    ASSERT(admin->magic == ADMIN_MAGIC);
    return admin;
}

/* What the workers have counted since the last reset. */
void admin__sum(struct server_admin *admin, uint64_t sum[METRIC_COUNT]);

/* One pair; context is the struct reply_stats. */
void admin__put_stat(void *context, const char *name, const char *value);

enum { ADMIN__USER_BYTES = URI_BYTES * LOGIN_WORD_MAX + 1 };

/* The name of who was let in by that pass, as in an URL; false where there is
 * no such user, or not any more. */
bool admin__user(const struct server_admin *admin, uint64_t pass,
    char text[ADMIN__USER_BYTES]);

/* audit_fn of the seam. */
void admin__audit(struct admin *seam, const struct session *session,
    enum audit kind, const char *text, size_t len);

/* near_fn of the seam. */
void admin__near(struct admin *seam, const struct session *session, int err,
    const char *key, size_t len);

/* command_fn of the seam. */
const char *admin__command(
    struct admin *seam, const struct text_admin *command);

#endif
