/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers stats members: of each column of members, what its counter of pairs
 * has, then of each column of members=about what its tables are like, and then
 * the arrays of members that marks are about. The numbers that
 * were given are looked for shard by shard, some a piece. */
#include "server/admin_priv.h"

#include <stdio.h>

enum {
    NAME_BYTES = 96, /* "<counter>.<column>:<figure>" */
    PIECE_SHARDS = 1 /* looked at; some 0.3 ms at most */
};

enum { MEMBERS_BEGIN, MEMBERS_ON, MEMBERS_ABOUT };

/* The first counter of pairs from reply->slot on; NULL: there is none. */
static const struct schema_counter *
next_pairs(const struct schema *schema, struct admin_reply *reply)
{
    for (; reply->slot < SCHEMA_COUNTERS_MAX; reply->slot++) {
        const struct schema_counter *pairs =
            schema_counter_at(schema, reply->slot);
        if (pairs != NULL && pairs->members_of != 0) {
            return pairs;
        }
    }
    return NULL;
}

static void
put_column(struct server_admin *admin, const struct schema *schema,
    const struct schema_counter *pairs, const struct admin_reply *reply,
    struct reply_stats *out)
{
    const char *counter = schema_owner(schema, pairs)->name.text;
    const char *column = schema_members(schema, pairs)->name.text;
    struct store_sum sum = store_sum(admin->store, pairs->slot);
    uint64_t marks = reply->numbers.marks;
    uint64_t members = sum.records > marks ? sum.records - marks : 0;
    char name[NAME_BYTES];
    char value[32];
    snprintf(name, sizeof name, "%s.%s:members", counter, column);
    reply_stats_u64(out, name, members);
    snprintf(name, sizeof name, "%s.%s:members_counting", counter, column);
    reply_stats_u64(out, name, reply->numbers.counting);
    snprintf(name, sizeof name, "%s.%s:bytes", counter, column);
    reply_stats_u64(out, name, sum.bytes);
    snprintf(name, sizeof name, "%s.%s:cold_bytes", counter, column);
    reply_stats_u64(out, name, sum.cold_bytes);
    snprintf(name, sizeof name, "%s.%s:bits_a_member", counter, column);
    double bits = 8.0 * (double)(sum.bytes + sum.cold_bytes);
    snprintf(value, sizeof value, "%.2f",
        members == 0 ? 0.0 : bits / (double)members);
    reply_stats_text(out, name, value);
    snprintf(name, sizeof name, "%s.%s:numbers", counter, column);
    reply_stats_u64(out, name, reply->numbers.given);
}

/* What is not of one column. */
static void
put_rest(struct server_admin *admin, const struct admin_reply *reply,
    struct reply_stats *out)
{
    struct sorted_figures figures;
    store_sorted_figures(admin->store, &figures);
    reply_stats_u64(out, "given_up_waiting", reply->numbers.waiting);
    reply_stats_u64(out, "given_up_looking", reply->numbers.looking);
    reply_stats_u64(out, "given_up_lost", reply->numbers.lost);
    reply_stats_u64(out, "given_up_unread", reply->numbers.unread);
    reply_stats_u64(out, "given_up_pairs", reply->numbers.taken_out);
    reply_stats_u64(out, "sorted_arrays", figures.arrays);
    reply_stats_u64(out, "sorted_bytes", figures.bytes);
    reply_stats_u64(out, "sorted_limit_bytes", figures.limit_bytes);
    reply_stats_u64(out, "sorted_made", figures.made);
    reply_stats_u64(out, "sorted_dropped", figures.dropped);
}

/* Goes on with the shards of a column, and says its figures in the end. */
static void
go_on(struct server_admin *admin, const struct schema *schema,
    const struct schema_counter *pairs, struct admin_reply *reply,
    unsigned *n_left, struct reply_stats *out)
{
    unsigned bits = schema_members(schema, pairs)->member_bits;
    if (reply->serial != pairs->serial) {
        reply->serial = pairs->serial;
        reply->shard = 0;
        reply->numbers.given = reply->numbers.marks = 0;
        reply->numbers.counting = 0;
    }
    while (reply->shard < (unsigned)admin->options->shards) {
        if (*n_left == 0) {
            return;
        }
        (*n_left)--;
        store_numbers(
            admin->store, pairs->slot, bits, reply->shard++, &reply->numbers);
    }
    put_column(admin, schema, pairs, reply, out);
    reply->slot++;
    reply->serial = 0;
}

/* One column of members=about, or what is behind them: true where more
 * follows. */
static bool
put_about(struct server_admin *admin, struct admin_reply *reply,
    struct reply_stats *out)
{
    if (store_about_stats(
            admin->store, &reply->serial, admin__put_stat, out)) {
        return true;
    }
    put_rest(admin, reply, out);
    reply_stats_end(out);
    return false;
}

bool
admin__members(struct server_admin *admin, struct admin_reply *reply,
    struct reply_stats *out)
{
    const struct schema *schema = store_schema(admin->store);
    unsigned n_left = PIECE_SHARDS;
    if (reply->step == MEMBERS_BEGIN) {
        reply->step = MEMBERS_ON;
        reply->slot = 0;
        reply->serial = 0;
        reply->numbers = (struct engine_numbers){0};
    }
    while (n_left > 0) {
        const struct schema_counter *pairs =
            reply->step == MEMBERS_ABOUT ? NULL : next_pairs(schema, reply);
        if (pairs == NULL) {
            reply->serial = reply->step == MEMBERS_ABOUT ? reply->serial : 0;
            reply->step = MEMBERS_ABOUT;
            return put_about(admin, reply, out);
        }
        go_on(admin, schema, pairs, reply, &n_left, out);
    }
    return true;
}
