/* SPDX-License-Identifier: BSD-3-Clause */
/* digest COUNTER: one line that is the same on two servers whose records are.
 * The store reads and sums, some hundred records a call, on a thread of its
 * own. Of what cannot be read there is no sum; members of members=about are
 * not in it, and the line says of which columns. */
#include "session/exec_admin.h"

#include "base/err.h"
#include "call/store_calls.h"
#include "proto/reply.h"

#include <inttypes.h>

static enum store_answer
ask(struct job *job)
{
    return store_dump(job->session->executor->store, &job->records.call);
}

/* The columns of members=about, by name, separated by commas. */
static void
put_left_out(struct session *session, struct buf *out)
{
    const struct store_dump *dump = &session->job->records.call;
    const struct schema_counter *counter =
        schema_counter_at(exec__schema(session), dump->slot);
    const char *before = " left_out=";
    bool is_there = counter != NULL && counter->serial == dump->serial;
    for (unsigned i = 0; is_there && i < counter->n_columns; i++) {
        if (counter->column[i].kind == SCHEMA_ABOUT) {
            buf_addf(out, "%s%s", before, counter->column[i].name.text);
            before = ",";
        }
    }
}

static void
put_digest(struct session *session, const char *base,
    const struct store_digest *digest, struct buf *out)
{
    struct span name = session->request.key;
    buf_addf(out,
        "DIGEST %.*s records=%" PRIu64 " xxh=%016" PRIx64 " seq=%" PRIu64
        " changes=%s",
        (int)name.len, base + name.at, digest->records, digest->sum,
        digest->seq, digest->has_changed ? "yes" : "no");
    put_left_out(session, out);
    reply_line(out, "");
}

/* True for what a dump leaves out, and goes on. */
static bool
is_of_disk(int err)
{
    return err == ERR_CORRUPT || err == ERR_NEWER_FORMAT || err == ERR_DISK;
}

enum exec_step
exec__digest_resume(struct session *session, struct exec_turn *turn)
{
    struct job *job = session->job;
    struct store_dump *dump = &job->records.call;
    while (dump->err == 0 && !dump->is_end) {
        if (!exec__charge(turn)) {
            return EXEC_YIELD;
        }
        if (exec__waits(job, &dump->call, ask)) {
            return EXEC_LATER;
        }
    }
    if (dump->err != 0) {
        return exec__refuse(session,
            is_of_disk(dump->err) ? ERR_COLD_READ : dump->err, turn->out);
    }
    put_digest(session, turn->base, &job->records.digest, turn->out);
    return exec__done(session);
}

enum exec_step
exec__digest_begin(
    struct session *session, const char *bytes, struct exec_turn *turn)
{
    struct span name = session->request.key;
    const struct schema_counter *counter =
        schema_counter(exec__schema(session), bytes + name.at, name.len);
    if (counter == NULL) {
        return exec__refuse(session, ERR_NO_COUNTER, turn->out);
    }
    struct job *job = exec__job(session, JOB_DIGEST);
    if (job == NULL) {
        return exec__refuse(session, ERR_NO_MEMORY, turn->out);
    }
    job->records.owns = NULL;
    job->records.digest = (struct store_digest){0};
    job->records.call = (struct store_dump){.slot = counter->slot,
        .serial = counter->serial,
        .last_id = UINT64_MAX,
        .digest = &job->records.digest};
    return exec__digest_resume(session, turn);
}
