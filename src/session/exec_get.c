/* SPDX-License-Identifier: BSD-3-Clause */
/* Retrieval: get, gets, gat, gats, the dialect's get, and of a cell also touch,
 * and what the meta and binary protocols look up.
 *
 * Each key becomes a slot, each cell it names a place in one batch for the
 * store (exec_get_keys.c). When the store has answered, the slots are formatted
 * in order (exec_get_say.c).
 *
 * Requests that follow one another share a slice of EXEC_SLICE_KEYS_MAX slots,
 * so that what a client pipelines is looked up together; a slice counts as one
 * request of the turn's budget, whoever shares it. What has more keys
 * than a slice holds, or needs to be looked at in another way, is alone: all
 * its keys are checked before anything is sent, EXEC_CHECK_KEYS_MAX at a time,
 * and then one slice follows the other. Between slices, and between slots once
 * the reply buffer is full, the turn can end, so neither the reply buffer nor
 * the time of a turn grows with the number of keys. */
#include "session/exec_get.h"
#include "session/exec_member.h"

#include "base/assert.h"
#include "base/err.h"
#include "proto/reply.h"

/* True for gat, gats, touch, and what is like them: the keys get a new
 * exptime. */
static bool
sets_exptime(const struct request *request)
{
    return request->op == REQUEST_GAT || request->op == REQUEST_GATS ||
        request->op == REQUEST_TOUCH || request->terms.touches;
}

const struct schema_counter *
exec_get__counter(struct session *session, const char *bytes)
{
    struct span name = session->request.key;
    if (session->job->op != REQUEST_COUNTER_GET) {
        return NULL;
    }
    return schema_counter(exec__schema(session), bytes + name.at, name.len);
}

static int
check_dialect_key(const struct session *session,
    const struct schema_counter *counter, const char *text, size_t len,
    struct key *key)
{
    if (!key_parse_dialect(counter, text, len, key)) {
        return key_dialect_fault(text, len);
    }
    return key->kind == KEY_RECORD && !exec_member__has_record(counter)
        ? ERR_NO_COLUMNS
        : exec__key_fault(session, key);
}

/* A cell never expires: an exptime is refused unless the counter says to
 * ignore it. A list does. */
static int
check_exptime(const struct key *key)
{
    return key->kind == KEY_ITEM || key->kind == KEY_LIST ||
            key->target.counter->exptime_is_ignored
        ? 0
        : ERR_EXPTIME;
}

/* True where an exptime or the dialect can make a key wrong. */
static bool
needs_check(const struct request *request)
{
    return request->op == REQUEST_COUNTER_GET ||
        (sets_exptime(request) && request->exptime != 0);
}

/* A request is refused with err for its key there. */
static enum exec_step
refuse_key(struct session *session, int err, const char *bytes,
    struct span key, struct buf *out)
{
    if (err == ERR_NEAR_NAME || err == ERR_NEAR_ID) {
        (void)exec__note_near(session, bytes + key.at, key.len);
    }
    return exec__refuse(session, err, out);
}

/* True where requests for other servers' ids are refused. */
static bool
refuses_others(const struct session *session)
{
    const struct executor *executor = session->executor;
    return executor->moved != NULL ||
        (executor->owns != NULL && !executor->owner->misses);
}

/* True where a key can be wrong in another way than by its length, under the
 * schema of the executor's names. */
static bool
needs_look(const struct session *session)
{
    return needs_check(&session->request) ||
        session->executor->rules.no_near || refuses_others(session) ||
        session->executor->names.has_faults;
}

static int
check_owner(struct session *session, const struct key *key)
{
    bool is_by_name =
        key->kind != KEY_ITEM && key->target.counter->key_is_text;
    int err = refuses_others(session) && !is_by_name
        ? exec__other_fault(session, key->id)
        : 0;
    if (err != 0) {
        exec__note_other(session, key->id);
    }
    return err;
}

/* Looks at one key: 0, or the ERR_ to answer. counter: of a dialect get. The
 * executor's names are those of the schema. */
static int
check_key(struct session *session, const struct schema_counter *counter,
    const char *text, size_t len)
{
    struct key key;
    int err = 0;
    if (len > TEXT_KEY_MAX) {
        return ERR_BAD_FORMAT;
    }
    if (counter != NULL) {
        err = check_dialect_key(session, counter, text, len, &key);
        return err != 0 ? err : check_owner(session, &key);
    }
    if (!needs_look(session)) {
        return 0;
    }
    key_names_parse(&session->executor->names, text, len, &key);
    if (key.kind == KEY_ITEM) {
        return exec__near(session, text, len);
    }
    err = needs_check(&session->request) ? check_exptime(&key) : 0;
    if (err == 0) {
        err = exec__key_fault(session, &key);
    }
    return err != 0 ? err : check_owner(session, &key);
}

bool
exec_get__is_checked(const struct job *job)
{
    return job->has_keys;
}

/* All keys are checked: the job goes on with what it has gathered so far. */
static void
end_check(struct job *job)
{
    exec__job_move(
        job, JOB_GET_CHECK, job->n_slots > 0 ? JOB_GET_ASK : JOB_GET_GATHER);
}

/* The same as check_keys where only a length can be wrong, of one key behind
 * the first: from each space to the last one that is in a key's reach, so that
 * most keys are not looked at. */
static int
check_lengths(struct job *job, const char *base)
{
    const char *at = base + job->unchecked.at;
    const char *end = at + job->unchecked.len;
    for (unsigned i = 0; i < EXEC_CHECK_KEYS_MAX; i++) {
        if (end - at <= TEXT_KEY_MAX) {
            end_check(job);
            return 0;
        }
        const char *space = memrchr(at, ' ', TEXT_KEY_MAX + 1);
        if (space == NULL) {
            return ERR_BAD_FORMAT;
        }
        at = space + 1;
    }
    job->unchecked =
        (struct span){(uint32_t)(at - base), (uint32_t)(end - at)};
    return 0;
}

/* Skips keys of cells, as most are, of a request in which those cannot be
 * wrong: at most n, and how many. */
static unsigned
skip_cells(struct session *session, const struct exec_turn *turn,
    struct words *words, unsigned n)
{
    const struct key_names *names = &session->executor->names;
    const char *at = turn->base + words->at;
    const char *end = turn->base + words->end;
    struct key key;
    unsigned i;
    for (i = 0; i < n; i++) {
        while (at < end && *at == ' ') {
            at++;
        }
        uint32_t len =
            at == end ? 0 : key_names_read(names, at, end, turn->end, &key);
        if (len == 0) {
            break;
        }
        at += len;
    }
    words->at = (uint32_t)(at - turn->base);
    return i;
}

/* Looks at some of the keys not yet checked; after the last one the job goes
 * on. 0, or the ERR_ to answer, *bad being the key if it is one's fault. */
static int
check_keys(
    struct session *session, const struct exec_turn *turn, struct span *bad)
{
    const char *base = turn->base;
    struct job *job = session->job;
    bool asks_owner = refuses_others(session);
    key_names_use(&session->executor->names, exec__schema(session));
    if (job->has_keys && !needs_look(session)) {
        return check_lengths(job, base);
    }
    if (asks_owner && exec_get__has_other(session, 0, job->n_slots)) {
        return exec__other_fault(session, session->other_id);
    }
    const struct schema_counter *counter = exec_get__counter(session, base);
    struct words words = words_of(base, job->unchecked);
    struct span key;
    if (job->op == REQUEST_COUNTER_GET && counter == NULL) {
        return ERR_GONE; /* dropped since the line was parsed */
    }
    for (unsigned n = EXEC_CHECK_KEYS_MAX; n > 0; n--) {
        if (job->has_keys && !needs_check(&session->request) && !asks_owner) {
            n -= skip_cells(session, turn, &words, n - 1);
        }
        if (!words_next(&words, &key)) {
            end_check(job);
            return job->has_keys ? 0 : key_none_fault(counter);
        }
        int err = check_key(session, counter, base + key.at, key.len);
        if (err != 0) {
            *bad = key;
            return err;
        }
        job->has_keys = true;
    }
    job->unchecked = words_rest(&words);
    return 0;
}

enum store_answer
exec_get__ask(struct job *job)
{
    return store_get(job->session->executor->store, &job->get);
}

/* Counts some of the cells that are asked for. */
static __attribute__((noinline)) void
sample(struct hot *hot, const struct job *job)
{
    const struct store_get *get = &job->get;
    uint32_t i = hot->left;
    for (; i < get->n; i += hot_gap(hot)) {
        const struct cell_key *key = &get->key[i];
        hot_count(hot, key->id, exec_get__name_tag(job, i), key->counter,
            key->serial, HOT_GET);
    }
    hot->left = i - get->n;
}

/* Notes that the slice's cells are asked for. */
static inline void
count_cells(struct session *session)
{
    struct hot *hot = &session->executor->hot;
    const struct store_get *get = &session->job->get;
    exec__count(session, METRIC_cell_gets, get->n);
    if (hot_samples(hot, get->n)) {
        sample(hot, session->job);
    }
}

/* The same as ask_slice where some keys are more than cells. */
static __attribute__((noinline)) bool
ask_more(struct session *session)
{
    struct job *job = session->job;
    if (job->stage == JOB_GET_ASK) {
        if (job->n_names > 0) {
            exec_get__find_names(session);
        }
        if (session->executor->has_others) {
            exec_get__look_for_others(session);
        }
        count_cells(session);
        if (job->n_abouts > 0) {
            exec_get__ask_abouts(session);
        }
    }
    if (job->n_members > 0 || exec_get__needs_pins(job)) {
        return exec_get__ask_members(session);
    }
    exec__job_move(job, JOB_GET_ASK, JOB_GET_FORMAT);
    return job->get.n > 0 && exec__waits(job, &job->get.call, exec_get__ask);
}

/* Asks for the slice: true where the answer comes later. */
static bool
ask_slice(struct session *session)
{
    struct job *job = session->job;
    ASSERT(job->get.n <= STORE_GET_MAX);
    if (__builtin_expect(job->more != 0, 0)) {
        return ask_more(session);
    }
    exec__job_move(job, JOB_GET_ASK, JOB_GET_FORMAT);
    if (session->executor->has_others) {
        exec_get__look_for_others(session);
    }
    count_cells(session);
    return job->get.n > 0 && exec__waits(job, &job->get.call, exec_get__ask);
}

/* The slice has been read: works out what is more than a cell. EXEC_DONE, or as
 * exec_list__read. */
static __attribute__((noinline)) enum exec_step
work_out(struct session *session, struct exec_turn *turn)
{
    struct job *job = session->job;
    if (job->n_marks > 0) {
        exec_get__work_out_marks(session);
    }
    if (job->n_members > 0) {
        exec_get__work_out_members(job);
    }
    if (job->n_abouts > 0) {
        exec_get__work_out_abouts(job);
    }
    if (job->n_names > 0) {
        exec_get__look_for_names(session);
    }
    return job->lists_read < job->n_lists ? exec_list__read(session, turn)
                                          : EXEC_DONE;
}

static void
empty_slice(struct job *job)
{
    job->n_slots = 0;
    job->formatted = 0;
    job->key_bytes = 0;
    job->more = 0;
    job->name_bytes = 0;
    job->lists_read = 0;
    job->n_worked = 0;
    job->get.n = 0;
    job->get.n_sources = 0;
}

/* Takes the next slice of a request that is alone. */
static void
next_slice(struct session *session, struct exec_turn *turn)
{
    empty_slice(session->job);
    struct span bad;
    int err = exec_get__gather(session, turn->base, turn->end, &bad);
    ASSERT(err == 0); /* checked */
    exec__job_move(session->job, JOB_GET_GATHER, JOB_GET_ASK);
}

/* All requests of the job are answered. */
static enum exec_step
end(struct session *session, struct exec_turn *turn)
{
    struct job *job = session->job;
    latency_count(&session->executor->tally, LATENCY_get, job->n_requests);
    turn->done += job->request_bytes;
    return exec__done(session);
}

enum exec_step
exec__get_resume(struct session *session, struct exec_turn *turn)
{
    struct job *job = session->job;
    while (job->stage == JOB_GET_CHECK) {
        struct span bad = {0, 0};
        int err = check_keys(session, turn, &bad);
        if (err != 0) {
            latency_count(
                &session->executor->tally, LATENCY_get, job->n_requests);
            turn->done += job->request_bytes;
            return refuse_key(session, err, turn->base, bad, turn->out);
        }
        if (job->stage == JOB_GET_CHECK && !exec__charge(turn)) {
            return EXEC_YIELD;
        }
    }
    for (;;) {
        if (job->stage == JOB_GET_GATHER) {
            next_slice(session, turn);
        }
        if (job->stage != JOB_GET_FORMAT && ask_slice(session)) {
            return EXEC_LATER;
        }
        if (__builtin_expect(job->more != 0, 0)) {
            enum exec_step step = work_out(session, turn);
            if (step != EXEC_DONE) {
                return step;
            }
        }
        bool is_done = session->executor->watched == 0
            ? exec_get__format(session, turn)
            : exec_get__format_more(session, turn);
        if (!is_done) {
            return EXEC_FULL;
        }
        if (job->words.len == 0) {
            return end(session, turn);
        }
        exec__job_move(job, JOB_GET_FORMAT, JOB_GET_GATHER);
        if (exec__has_lent(session)) {
            return EXEC_FULL;
        }
        if (!exec__charge(turn)) {
            return EXEC_YIELD;
        }
    }
}

bool
exec__get_is_full(const struct session *session)
{
    return session->job->is_alone || exec_get__is_full(session->job);
}

enum exec_step
exec__get_flush(struct session *session, struct exec_turn *turn)
{
    struct job *job = session->job;
    if (job->unchecked.len > 0 || job->n_slots == 0) {
        exec__job_move(job, JOB_GET_JOIN, JOB_GET_CHECK);
    } else {
        exec__job_move(job, JOB_GET_JOIN, JOB_GET_ASK);
    }
    return exec__get_resume(session, turn);
}

/* The job that the session's request is to join, or its own, made now, NULL
 * when memory is out. */
static struct job *
take_job(struct session *session)
{
    struct job *job = session->job;
    if (job == NULL) {
        job = exec__job(session, JOB_GET_JOIN);
        if (job == NULL) {
            return NULL;
        }
        job->words = (struct span){0, 0};
        job->unchecked = (struct span){0, 0};
        job->op = REQUEST_GET;
        job->is_alone = false;
        job->touches = false;
        job->has_keys = false;
        job->n_requests = 0;
        job->unreadable_err = 0;
        empty_slice(job);
    }
    ASSERT(job->stage == JOB_GET_JOIN && !job->is_alone);
    return job;
}

/* What the session's request is, when it joins no other. */
static void
be_alone(struct session *session)
{
    const struct request *request = &session->request;
    session->job->op = request->op;
    session->job->touches = sets_exptime(request);
    session->job->is_alone = true;
}

/* Takes back what the session's request has added to the job. */
static void
take_back(struct job *job, unsigned n_slots, uint32_t n_cells)
{
    job->n_slots = n_slots;
    job->get.n = n_cells;
    while (job->n_marks > 0 && job->mark[job->n_marks - 1].cell >= n_cells) {
        job->n_marks--;
    }
    while (job->n_members > 0 &&
        job->member[job->n_members - 1].cell >= n_cells) {
        job->n_members--;
    }
    while (job->n_lists > 0 && job->list[job->n_lists - 1].cell >= n_cells) {
        job->n_lists--;
    }
    while (
        job->n_abouts > 0 && job->about_cell[job->n_abouts - 1] >= n_cells) {
        job->n_abouts--;
    }
    while (job->n_names > 0 && job->name[job->n_names - 1].cell >= n_cells) {
        job->name_bytes = job->name[--job->n_names].at;
    }
    ASSERT(job->lists_read == 0);
}

/* The request may be one among others: gathers its keys. */
static enum exec_step
join(struct session *session, struct exec_turn *turn)
{
    const struct request *request = &session->request;
    struct job *job = session->job;
    unsigned n_slots = job->n_slots;
    uint32_t n_cells = job->get.n;
    bool is_first = job->request_bytes == 0;
    job->words = (struct span){
        (uint32_t)job->request_bytes + request->words.at, request->words.len};
    struct span bad = {0, 0};
    int err = exec_get__gather(session, turn->base, turn->end, &bad);
    if (err == 0 && job->words.len == 0) {
        *turn->budget += !is_first; /* one for a slice */
        job->n_requests++;
        job->request_bytes += request->len;
        return EXEC_GATHERED;
    }
    if (err != 0 || !is_first) {
        enum exec_step step = EXEC_DONE;
        bad.at -= (uint32_t)job->request_bytes;
        take_back(job, n_slots, n_cells);
        job->words.len = 0;
        if (is_first) {
            exec__done(session); /* there is nothing else in it */
        } else {
            step = exec_flush(session, turn);
        }
        if (step != EXEC_DONE) {
            return step;
        }
        return err == 0 ? exec__get_begin(session, turn)
                        : refuse_key(session, err, turn->base, bad, turn->out);
    }
    be_alone(session);
    job->unchecked = job->words;
    job->has_keys = true;
    job->n_requests = 1;
    job->request_bytes = request->len;
    return EXEC_GATHERED;
}

/* What to say of a request for which there is no memory. */
static enum exec_step
no_memory(struct session *session, struct exec_turn *turn)
{
    reply_line(turn->out, "SERVER_ERROR out of memory writing get response");
    return exec__done(session);
}

/* A request all of whose keys are checked before the first is looked up. */
static enum exec_step
begin_alone(struct session *session, struct exec_turn *turn)
{
    const struct request *request = &session->request;
    struct job *job = take_job(session);
    if (job == NULL) {
        return no_memory(session, turn);
    }
    be_alone(session);
    job->words = request->words;
    job->unchecked = request->words;
    job->n_requests = 1;
    job->request_bytes = request->len;
    return EXEC_GATHERED;
}

enum exec_step
exec__get_begin(struct session *session, struct exec_turn *turn)
{
    const struct request *request = &session->request;
    bool is_alone = needs_check(request) || sets_exptime(request);
    if (is_alone || !exec__is_getting(session)) {
        enum exec_step step = exec__settle_all(session, turn);
        if (step != EXEC_DONE) {
            return step;
        }
    }
    if (is_alone) {
        return begin_alone(session, turn);
    }
    return take_job(session) == NULL ? no_memory(session, turn)
                                     : join(session, turn);
}

enum exec_step
exec__look_begin(
    struct session *session, const struct key *key, struct exec_turn *turn)
{
    const struct request *request = &session->request;
    bool touches = sets_exptime(request);
    bool is_alone = touches || request->op != REQUEST_LOOK;
    int err = touches && request->exptime != 0 ? check_exptime(key) : 0;
    if (err == 0) {
        err = exec__key_fault(session, key);
    }
    if (err != 0 || is_alone || !exec__is_getting(session)) {
        enum exec_step step = exec__settle_all(session, turn);
        if (step != EXEC_DONE) {
            return step;
        }
    }
    if (err != 0) {
        return exec__refuse(session, err, turn->out);
    }
    struct job *job = take_job(session);
    if (job == NULL) {
        return exec__refuse(session, ERR_NO_MEMORY, turn->out);
    }
    exec_get__add_single(session, key);
    *turn->budget += job->request_bytes > 0; /* one for a slice */
    job->n_requests++;
    job->request_bytes += request->len;
    if (is_alone) {
        be_alone(session);
    }
    return EXEC_GATHERED;
}
