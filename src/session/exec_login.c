/* SPDX-License-Identifier: BSD-3-Clause */
/* Logins: what a client says of itself is copied, checked by the server
 * (struct access), and answered in memcached's words. A check may take some
 * milliseconds; then it is done elsewhere, and the session is parked for it. A
 * client that logs in anew is nobody until that has succeeded. */
#include "session/exec_shared.h"

#include "base/assert.h"
#include "base/err.h"
#include "proto/binary.h"
#include "proto/reply.h"

#include <stdatomic.h>
#include <string.h>
#include <strings.h>

static const char mechanism[] = "PLAIN";

/* On any thread. */
static void
on_checked(struct access_login *login)
{
    struct job *job = login->owner;
    job->session->wake_fn(job->session);
}

static enum exec_step
refuse(struct session *session, int err, struct buf *out)
{
    struct answer no = {.kind = ANSWER_REFUSED, .err = err};
    return exec__answer(session, NULL, &no, out);
}

static enum exec_step
no_sasl(struct session *session, struct buf *out)
{
    if (session_is_stranger(session)) {
        access__note_refusal(session);
    }
    return refuse(session, ERR_UNKNOWN_COMMAND, out);
}

static enum exec_step
fail(struct session *session, struct buf *out)
{
    access__note_refusal(session);
    exec__count(session, METRIC_auth_cmds, 1);
    exec__count(session, METRIC_auth_errors, 1);
    return refuse(session, ERR_BAD_LOGIN, out);
}

/* pass: what it was let in by, or had been. */
static void
become(struct session *session, unsigned rank, uint64_t pass)
{
    session->rank = (uint8_t)rank;
    session->pass = pass;
    if (session->shown_pass != NULL) {
        /* relaxed: to be shown only */
        atomic_store_explicit(session->shown_pass,
            rank == ACCESS_NOBODY ? 0 : pass, memory_order_relaxed);
    }
}

/* From now on a reload that takes the user away finds the session. */
static enum exec_step
succeed(
    struct session *session, const struct access_login *login, struct buf *out)
{
    struct echo echo = echo_of(&session->request, 0);
    become(session, login->rank, login->pass);
    if (access_is_void(session)) { /* the reload was quicker */
        become(session, ACCESS_NOBODY, login->pass);
        return fail(session, out);
    }
    session->refusals = 0;
    exec__count(session, METRIC_auth_cmds, 1);
    if (echo.proto == PROTO_BINARY) {
        answer_binary_login(&echo, "Authenticated", out);
    } else {
        reply_line(out, "STORED");
    }
    return exec__done(session);
}

/* The check is done: on the session's thread again, where it was parked. */
static enum exec_step
answer(struct session *session, struct buf *out)
{
    struct access_login *login = &session->job->login;
    explicit_bzero(login->password, sizeof login->password);
    if (login->rank == ACCESS_NOBODY) {
        exec__audit(session, AUDIT_REFUSED, login->user, login->user_len);
        return fail(session, out);
    }
    return succeed(session, login, out);
}

static enum exec_step
check(
    struct session *session, const struct login_words *words, struct buf *out)
{
    struct access *access = session->executor->access;
    struct job *job = exec__job(session, JOB_LOGIN);
    if (job == NULL) {
        return refuse(session, ERR_NO_MEMORY, out);
    }
    job->login = (struct access_login){.done_fn = on_checked,
        .owner = job,
        .from = session->from,
        .user_len = (uint8_t)words->user_len,
        .password_len = (uint8_t)words->password_len};
    memcpy(job->login.user, words->user, words->user_len);
    memcpy(job->login.password, words->password, words->password_len);
    job->waits = true; /* before the call: its answer may come at once */
    if (!access->check_fn(access, &job->login)) {
        return EXEC_LATER;
    }
    job->waits = false;
    return answer(session, out);
}

/* auth with a mechanism and perhaps the words; step with the words. */
static enum exec_step
login_binary(struct session *session, const char *bytes, struct buf *out)
{
    const struct request *request = &session->request;
    struct login_words words;
    struct echo echo = echo_of(request, 0);
    bool is_step = request->opcode == BINARY_SASL_STEP;
    bool may_step = session->login_has_begun;
    become(session, ACCESS_NOBODY, session->pass);
    session->login_has_begun = false;
    if (is_step ? !may_step
                : request->key.len != strlen(mechanism) ||
                strncasecmp(bytes + request->key.at, mechanism,
                    strlen(mechanism)) != 0) {
        return fail(session, out);
    }
    if (!is_step && request->err == 0 && request->value.len == 0) {
        session->login_has_begun = true;
        access__note_refusal(session); /* or it could begin for ever */
        answer_binary_login(&echo, NULL, out);
        return EXEC_DONE;
    }
    if (request->err != 0 ||
        !login_read_plain(
            bytes + request->value.at, request->value.len, &words)) {
        return fail(session, out);
    }
    return check(session, &words, out);
}

enum exec_step
exec__login(struct session *session, const char *bytes, struct buf *out)
{
    const struct access *access = session->executor->access;
    const struct request *request = &session->request;
    struct login_words words;
    if (request->proto == PROTO_BINARY) {
        return access != NULL && access->has_sasl
            ? login_binary(session, bytes, out)
            : no_sasl(session, out);
    }
    ASSERT(access != NULL);
    if (request->error != NULL) { /* as in memcached, no login that counts */
        access__note_refusal(session);
        reply_line(out, request->error);
        return EXEC_DONE;
    }
    if (!login_read_text(
            bytes + request->value.at, request->value.len, &words)) {
        return fail(session, out);
    }
    return check(session, &words, out);
}

enum exec_step
exec__login_answer(struct session *session, struct buf *out)
{
    return answer(session, out);
}

enum exec_step
exec__login_ways(struct session *session, struct buf *out)
{
    const struct access *access = session->executor->access;
    struct echo echo = echo_of(&session->request, 0);
    if (access == NULL || !access->has_sasl) {
        return no_sasl(session, out);
    }
    answer_binary_login(&echo, mechanism, out);
    return EXEC_DONE;
}
