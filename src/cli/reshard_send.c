/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines to the new group, and questions to both. What an answer means:
 *
 *   STORED, DELETED, NOT_FOUND, OK    it is so now
 *   CLIENT_ERROR of a drop            it was so before
 *   other CLIENT_ERROR, ERROR         never: the move ends
 *   SERVER_ERROR                      not now: all answers are waited for, then
 *                                     the same lines are sent again
 *
 * To send lines again does no harm, for they say what something has become,
 * and all that follow them come again, too. */
#include "cli/reshard_priv.h"

#include "base/assert.h"

#include <stdio.h>
#include <string.h>

enum { LINE_SHOWN_MAX = 120 };

/* ---- an answer of many lines ---- */

struct asking {
    struct buf *answer;
};

static enum talk_take
take_line(void *context, const char *line, size_t len)
{
    struct asking *asking = context;
    if (talk_is(line, len, "END")) {
        return TALK_END;
    }
    if (talk_is_error(line, len)) {
        return TALK_WRONG;
    }
    buf_add(asking->answer, line, len);
    buf_add_text(asking->answer, "\n");
    return asking->answer->failed ? TALK_WRONG : TALK_MORE;
}

/* As reshard__ask, into that buffer. */
static bool
ask(struct talk *talk, const char *question, struct buf *answer)
{
    struct asking asking = {.answer = answer};
    buf_clear(answer);
    if (!talk_ask(talk, question, strlen(question), take_line, &asking)) {
        return false;
    }
    buf_add(answer, "", 1);
    return !answer->failed;
}

bool
reshard__ask(struct reshard *move, struct talk *talk, const char *question)
{
    return ask(talk, question, &move->answer);
}

/* ---- lines ---- */

struct sending {
    struct reshard *move;
    const char *line;              /* that is answered next */
    const char *end;               /* of all lines */
    size_t n;                      /* lines that are left */
    bool is_refused;               /* for good: move->why */
    char passing[RESHARD_WHY_MAX]; /* a SERVER_ERROR, or "" */
};

static enum talk_take
take_reply(void *context, const char *reply, size_t len)
{
    struct sending *sending = context;
    struct reshard *move = sending->move;
    const char *end =
        memchr(sending->line, '\n', (size_t)(sending->end - sending->line));
    ASSERT(sending->n > 0 && end != NULL);
    size_t line_len = (size_t)(end - sending->line);
    bool is_dropping = talk_begins(sending->line, line_len, "drop ");
    if (talk_begins(reply, len, "SERVER_ERROR not primary")) {
        return TALK_WRONG;
    }
    if (talk_begins(reply, len, "SERVER_ERROR ")) {
        (void)snprintf(sending->passing, sizeof sending->passing,
            "%.80s answers %.*s", move->to->at.text,
            len > LINE_SHOWN_MAX ? LINE_SHOWN_MAX : (int)len, reply);
    } else if (!talk_is(reply, len, "STORED") &&
        !talk_is(reply, len, "DELETED") && !talk_is(reply, len, "NOT_FOUND") &&
        !talk_is(reply, len, "OK") &&
        !(is_dropping && talk_begins(reply, len, "CLIENT_ERROR "))) {
        (void)reshard__fail(move, "the new group refuses \"%.*s\": %.*s",
            line_len > LINE_SHOWN_MAX ? LINE_SHOWN_MAX : (int)line_len,
            sending->line, len > LINE_SHOWN_MAX ? LINE_SHOWN_MAX : (int)len,
            reply);
        sending->is_refused = true;
        return TALK_WRONG;
    }
    sending->line = end + 1;
    sending->n--;
    return sending->n == 0 ? TALK_END : TALK_MORE;
}

static enum talk_take
take_ok(void *context, const char *line, size_t len)
{
    bool *is_known = context;
    *is_known = !talk_is(line, len, "ERROR");
    return talk_is(line, len, "OK") ? TALK_END : TALK_WRONG;
}

_Static_assert((int)TALK_OWN_MAX == (int)RESHARD_OWN_MAX &&
        (int)ADDRESS_MAX == (int)RESHARD_NAME_MAX,
    "the file has room for them");

/* Where the server still has the connection before this one, which may be that
 * of a program that was killed, lines of it may be done after those that are
 * sent now, which are newer. True: it has not. */
static bool
is_last_one_gone(struct reshard *move, const char *own)
{
    const struct reshard_state *state = &move->state;
    char wanted[RESHARD_OWN_MAX + 16];
    if (strcmp(own, state->own) == 0 ||
        strcmp(state->peer, move->to->at.text) != 0) {
        return true;
    }
    (void)snprintf(wanted, sizeof wanted, ":addr %s\n", state->own);
    if (!ask(move->to, "stats conns\r\n", &move->conns)) {
        return false;
    }
    if (strstr(move->conns.data, wanted) == NULL) {
        return true;
    }
    talk_close(move->to);
    (void)snprintf(move->to->why, sizeof move->to->why,
        "%.80s still has the connection before, from %s", move->to->at.text,
        state->own);
    return false;
}

/* The connection is to be used: it is in the file before, and nobody else moves
 * these ids. */
static enum reshard_went
take_connection(struct reshard *move)
{
    char own[TALK_OWN_MAX + 1], rival[RESHARD_CLAIM_MAX + 1];
    talk_own_address(move->to, own);
    if (!is_last_one_gone(move, own) ||
        !ask(move->to, "stats producers\r\n", &move->conns)) {
        return RESHARD_LOST;
    }
    if (reshard__has_rival(move, &move->conns, rival)) {
        talk_close(move->to);
        return reshard__rivalled(move, rival);
    }
    (void)snprintf(move->state.own, sizeof move->state.own, "%s",
        own[0] == '\0' ? "-" : own);
    (void)snprintf(
        move->state.peer, sizeof move->state.peer, "%s", move->to->at.text);
    return reshard__save(move);
}

/* A connection to the new group on which nobody is asked whose ids they are. */
static enum reshard_went
connect_new(struct reshard *move)
{
    static const char feed_on[] = "feed on\r\n";
    bool is_known = true;
    if (move->to->fd >= 0) {
        return RESHARD_OK;
    }
    if (talk_connect(move->to) && talk_login(move->to, move->setup.login) &&
        talk_ask(move->to, feed_on, sizeof feed_on - 1, take_ok, &is_known)) {
        return take_connection(move);
    }
    if (!is_known) {
        return reshard__fail(move,
            "%.80s does not know the command \"feed\": it is older than this "
            "program",
            move->to->at.text);
    }
    return RESHARD_LOST;
}

enum reshard_went
reshard__send(struct reshard *move, const char *text, size_t len, size_t n)
{
    while (n > 0) {
        struct sending sending = {
            .move = move, .line = text, .end = text + len, .n = n};
        enum reshard_went went = connect_new(move);
        if (went == RESHARD_OK &&
            talk_ask(move->to, text, len, take_reply, &sending) &&
            sending.passing[0] == '\0') {
            move->shown.lines += n;
            return RESHARD_OK;
        }
        if (went == RESHARD_FAIL || sending.is_refused) {
            return RESHARD_FAIL;
        }
        reshard__trouble(move,
            sending.passing[0] != '\0' ? sending.passing : move->to->why);
        if (reshard__pause(move, RESHARD_PAUSE_MS) == RESHARD_STOP) {
            return RESHARD_STOP;
        }
    }
    return RESHARD_OK;
}

/* So that no more lines are sent than --rate has. */
static enum reshard_went
hold_to_rate(struct reshard *move, size_t n)
{
    uint64_t rate = move->setup.rate;
    return rate == 0 ? RESHARD_OK : reshard__pause(move, n * 1000 / rate);
}

enum reshard_went
reshard__flush(struct reshard *move)
{
    size_t n = 0;
    buf_clear(&move->chunk);
    if (!reshard_lines_finish(&move->lines, &move->chunk, &n)) {
        return reshard__fail(move, "%s", move->lines.why);
    }
    if (n == 0) {
        return RESHARD_OK;
    }
    buf_add(&move->chunk, "", 1); /* lines are looked for behind the last */
    if (move->chunk.failed) {
        return reshard__fail(move, "out of memory");
    }
    enum reshard_went went =
        reshard__send(move, move->chunk.data, move->chunk.len - 1, n);
    return went == RESHARD_OK ? hold_to_rate(move, n) : went;
}

/* ---- questions ---- */

enum reshard_went
reshard__ask_new(struct reshard *move, const char *question)
{
    while (true) {
        enum reshard_went went = connect_new(move);
        if (went == RESHARD_OK && reshard__ask(move, move->to, question)) {
            return RESHARD_OK;
        }
        if (went == RESHARD_FAIL) {
            return went;
        }
        reshard__trouble(move, move->to->why);
        if (reshard__pause(move, RESHARD_PAUSE_MS) == RESHARD_STOP) {
            return RESHARD_STOP;
        }
    }
}

static enum talk_take
take_told(void *context, const char *line, size_t len)
{
    bool *is_refused = context;
    if (talk_is(line, len, "OK")) {
        return TALK_END;
    }
    if (!talk_begins(line, len, "SERVER_ERROR ")) {
        *is_refused = true;
    }
    return TALK_WRONG;
}

enum reshard_went
reshard__tell(struct reshard *move, struct talk *talk, const char *command)
{
    while (true) {
        bool is_refused = false, is_there = talk->fd >= 0;
        if (talk == move->to) {
            enum reshard_went went = connect_new(move);
            is_there = went == RESHARD_OK;
            if (went == RESHARD_FAIL) {
                return went;
            }
        } else if (!is_there) {
            is_there =
                talk_connect(talk) && talk_login(talk, move->setup.login);
        }
        if (is_there &&
            talk_ask(talk, command, strlen(command), take_told, &is_refused)) {
            return RESHARD_OK;
        }
        if (is_refused) {
            return reshard__fail(move,
                "the command \"%.*s\" is refused; %.160s",
                (int)strcspn(command, "\r\n"), command, talk->why);
        }
        reshard__trouble(move, talk->why);
        if (reshard__pause(move, RESHARD_PAUSE_MS) == RESHARD_STOP) {
            return RESHARD_STOP;
        }
    }
}

bool
reshard__stat(struct reshard *move, const char *name, char *out, size_t size)
{
    size_t len = strlen(name);
    const char *at = move->answer.data;
    while (at != NULL && *at != '\0') {
        if (talk_begins(at, strlen(at), "STAT ") &&
            strncmp(at + 5, name, len) == 0 && at[5 + len] == ' ') {
            at += 5 + len + 1;
            size_t n = strcspn(at, "\n");
            if (n >= size) {
                return false;
            }
            memcpy(out, at, n);
            out[n] = '\0';
            return true;
        }
        at = strchr(at, '\n');
        at += at != NULL;
    }
    return false;
}
