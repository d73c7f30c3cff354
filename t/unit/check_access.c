/* SPDX-License-Identifier: BSD-3-Clause */
/* session/access: every command of every protocol, before a login, after one
 * that failed, as one who may read, and as one who may do all. What is refused
 * is answered as a refusal and changes nothing; what is allowed is answered as
 * where nobody has to log in. A new request or opcode without a row here fails
 * the test. */
#include "session/access.h"

#include "lib/packet.h"
#include "unit/access_help.h"
#include "unit/net_help.h"

#include <stdio.h>

#define NOBODY_LINE "CLIENT_ERROR unauthenticated\r\n"
#define READER_LINE "CLIENT_ERROR this user may only read\r\n"

/* Before a client of the text protocol is known, its lines are not read. */
struct sample {
    enum request_op op;
    enum access_rank least; /* once it is known */
    const char *said;       /* without the last CR LF */
};

#define S(op, rank, said)                                                     \
    {                                                                         \
        REQUEST_##op, ACCESS_##rank, said                                     \
    }
static const struct sample samples[] = {
    S(GET, READER, "get it n 1.cntcm"),
    S(GETS, READER, "gets it"),
    S(GAT, WRITER, "gat 0 it"),
    S(GATS, WRITER, "gats 0 it"),
    S(SET, WRITER, "set it 0 0 1\r\nx"),
    S(SET, WRITER, "set 1.cntcm 0 0 1\r\n9"),
    S(SET, WRITER, "ms it 1\r\nx"),
    S(APPEND, WRITER, "ms it 1 MA\r\nx"),
    S(ADD, WRITER, "add new 0 0 1\r\nx"),
    S(REPLACE, WRITER, "replace it 0 0 1\r\nx"),
    S(APPEND, WRITER, "append it 0 0 1\r\nx"),
    S(PREPEND, WRITER, "prepend it 0 0 1\r\nx"),
    S(CAS, WRITER, "cas 1.cntcm 0 0 1 6\r\n9"),
    S(DELETE, WRITER, "delete it"),
    S(DELETE, WRITER, "md it q"),
    S(DELETE, WRITER, "md it I"),
    S(INCR, WRITER, "incr n 1"),
    S(INCR, WRITER, "incr 1.cntcm 1"),
    S(INCR, WRITER, "incr 1.cntcm 18446744073709551615"),
    S(INCR, WRITER, "ma n"),
    S(DECR, WRITER, "decr n 1"),
    S(DECR, WRITER, "ma n MD"),
    S(TOUCH, WRITER, "touch it 0"),
    S(FLUSH_ALL, WRITER, "flush_all"),
    S(VERSION, READER, "version"),
    S(VERBOSITY, WRITER, "verbosity 1"),
    S(STATS, READER, "stats"),
    S(STATS, READER, "stats items"),
    S(STATS, READER, "stats detail dump"),
    S(STATS, WRITER, "stats reset"),
    S(STATS, WRITER, "stats r"),
    S(STATS, WRITER, "stats d on"),
    S(STATS, READER, "stats s"),
    S(STATS, WRITER, "stats detail on"),
    S(STATS, WRITER, "stats  detail  off"),
    S(ADMIN, WRITER, "cache_memlimit 100"),
    S(ADMIN, WRITER, "slow 10"),
    S(ADMIN, WRITER, "shutdown"),
    S(ADMIN, WRITER, "shutdown graceful"),
    S(ADMIN, WRITER, "lru_crawler crawl all"),
    S(ADMIN, WRITER, "lru_crawler disable"),
    S(ADMIN, WRITER, "slabs reassign 1 2"),
    S(ADMIN, WRITER, "lru mode flat"),
    S(ADMIN, WRITER, "refresh_certs"),
    S(ADMIN, WRITER, "debugtime p"),
    S(ADMIN, READER, "lru_crawler metadump all"),
    S(ADMIN, READER, "lru_crawler mgdump all"),
    S(ADMIN, READER, "watch fetchers"),
    S(ADMIN, READER, "slabs nonsense"),
    S(LOOK, READER, "mg it v t k"),
    S(LOOK, READER, "mg 1.cntcm v"),
    S(LOOK, WRITER, "mg it v T30"),
    S(LOOK, WRITER, "mg new v N30"),
    S(LOOK, WRITER, "mg it v R30"),
    S(INSPECT, READER, "me nothing"),
    S(NOOP, READER, "mn"),
    S(QUIT, READER, "quit"),
    S(TOO_LARGE, WRITER, "set it 0 0 2000000\r\n"),
    S(COUNTER_GET, READER, "get weibo 1"),
    S(COUNTER_SET, WRITER, "set weibo 1 7 7 7"),
    S(COUNTER_ADD, WRITER, "add weibo 2 7 7 7"),
    S(COUNTER_REPLACE, WRITER, "replace weibo 1.cntcm 7"),
    S(COUNTER_DELETE, WRITER, "delete weibo 1"),
    S(COUNTER_INCR, WRITER, "incr weibo 1.cntcm"),
    S(COUNTER_DECR, WRITER, "decr weibo 1.cntcm"),
    S(COUNTER_MISUSE, READER, "touch weibo 0"),
    S(COUNTER_STORE, READER, "set weibo 0 0 5"),
    S(SCHEMA_EDIT, WRITER, "add counter other"),
    S(SCHEMA_EDIT, WRITER, "drop counter weibo weibo"),
    S(DROP_PRODUCER, WRITER, "drop producer 1"),
    S(DUMP, READER, "dump counter weibo"),
    S(DUMP_NUMBERS, READER, "dump numbers"),
    S(NUMBERS, WRITER, "numbers a 1 1"),
    S(FORGET, WRITER, "forget ids modulo:1/2"),
    S(HANDOVER, WRITER, "handover modulo:1/2 here"),
    S(FEED, WRITER, "feed on"),
    S(SHOW_HANDOVERS, READER, "show handovers"),
    S(SHOW_COUNTERS, READER, "show counters"),
    S(SHOW_COUNTER, READER, "show counter weibo"),
    S(CHECKPOINT, WRITER, "checkpoint"),
    S(SEAL, WRITER, "seal weibo all"),
    S(DIGEST, WRITER, "digest weibo"),
    S(BACKUP, WRITER, "backup begin"),
    S(REPLICAOF, WRITER, "replicaof a:1"),
    S(FAILOVER, WRITER, "failover"),
    S(FAILOVER, WRITER, "failover b force"),
    S(WAIT, READER, "wait 1 1"),
    S(HELP, READER, "help"),
    S(ERROR, READER, "nonsense"),
    S(ERROR, READER, "get"),
};
#undef S

/* How a client comes to be what it is. */
static const struct state {
    const char *name;
    enum access_rank rank;
    const char *login, *answer; /* text; NULL: none */
    const char *plain;          /* the name and password of SASL */
} states[] = {
    {"before", ACCESS_NOBODY, NULL, "", NULL},
    {"failed", ACCESS_NOBODY, "set x 0 0 13\r\nwriter reader\r\n",
        "CLIENT_ERROR authentication failure\r\n", "reader"},
    {"reader", ACCESS_READER, "set x 0 0 13\r\nreader reader\r\n",
        "STORED\r\n", "reader"},
    {"writer", ACCESS_WRITER, "set x 0 0 13\r\nwriter writer\r\n",
        "STORED\r\n", "writer"},
};

static const char world[] =
    "add counter weibo\r\nadd column weibo weibo_id primarykey\r\n"
    "add column weibo a suffix=cntcm\r\nadd column weibo b\r\n"
    "add column weibo c\r\nset weibo 1 5 6 7\r\n"
    "set it 0 0 5\r\nvalue\r\nset n 0 0 1\r\n3\r\n";
static const char look[] =
    "gets it n new 1.cntcm\r\nget weibo 1 2\r\nshow counters\r\n"
    "show counter weibo\r\nmg it t s\r\n";

/* Commands of administration, as the server around a session does them. */
static const char *
command(struct admin *admin, const struct text_admin *what)
{
    (void)admin;
    return what->op == TEXT_ADMIN_METADUMP || what->op == TEXT_ADMIN_MGDUMP ||
            what->op == TEXT_ADMIN_SHUTDOWN
        ? NULL
        : "OK";
}

struct guarded {
    struct store *store;
    struct fake_access fake;
    struct dialog free, dialog; /* of one who may, and of the one looked at */
};

static void
guarded_open(struct guarded *guarded, bool has_sasl, bool is_late)
{
    guarded->store = small_store(NULL);
    guarded->fake = fake_access(has_sasl, is_late);
    dialog_open(&guarded->free, guarded->store, SMALL_STORE_ITEM_BYTES);
    dialog_open(&guarded->dialog, guarded->store, SMALL_STORE_ITEM_BYTES);
    guarded->dialog.admin.command_fn = command;
    dialog_guard(&guarded->dialog, &guarded->fake);
    dialog_say(&guarded->free, world, strlen(world));
    buf_clear(&guarded->free.replies);
}

static void
guarded_close(struct guarded *guarded)
{
    dialog_close(&guarded->dialog);
    dialog_close(&guarded->free);
    store_verify(guarded->store);
    store_destroy(&guarded->store);
}

/* What there is, as text that ends with NUL; the caller's. */
static struct buf
look_around(struct guarded *guarded)
{
    struct buf seen = {0};
    dialog_say(&guarded->free, look, strlen(look));
    buf_add(&seen, guarded->free.replies.data, guarded->free.replies.len);
    buf_add(&seen, "", 1);
    buf_clear(&guarded->free.replies);
    ck_assert(!seen.failed);
    return seen;
}

static void
say_line(struct dialog *dialog, const char *said)
{
    dialog_add(dialog, said, strlen(said));
    dialog_say(dialog, "\r\n", 2);
    buf_add(&dialog->replies, "", 1);
    ck_assert(!dialog->replies.failed);
}

/* Takes out of a dump of items when they were last used. */
static void
forget_times(char *text)
{
    for (char *at = text; (at = strstr(at, " la=")) != NULL;) {
        for (at += strlen(" la="); *at >= '0' && *at <= '9'; at++) {
            *at = '0';
        }
    }
}

/* What one who need not log in is answered to it; the caller's. */
static struct buf
answer_of_free(const char *said)
{
    struct guarded other;
    struct buf answer;
    guarded_open(&other, true, false);
    other.free.admin.command_fn = command;
    answer = look_around(&other);
    buf_fini(&answer);
    say_line(&other.free, said);
    answer = other.free.replies;
    other.free.replies = (struct buf){0};
    guarded_close(&other);
    return answer;
}

static void
expect_text(const struct sample *sample, const struct state *state, bool late)
{
    struct guarded guarded;
    guarded_open(&guarded, true, late);
    struct dialog *dialog = &guarded.dialog;
    if (state->login != NULL) {
        dialog_say(dialog, state->login, strlen(state->login));
        expect_replies(dialog, state->login, state->answer);
    }
    struct buf before = look_around(&guarded);
    say_line(dialog, sample->said);
    const char *got = dialog->replies.data;
    if (state->rank >= sample->least) {
        struct buf wanted = answer_of_free(sample->said);
        forget_times(dialog->replies.data);
        forget_times(wanted.data);
        ck_assert_msg(strcmp(got, wanted.data) == 0,
            "%s, '%s': '%s' and not '%s'", state->name, sample->said, got,
            wanted.data);
        buf_fini(&wanted);
    } else {
        struct buf after = look_around(&guarded);
        if (state->rank == ACCESS_READER) {
            ck_assert_str_eq(got, READER_LINE);
        } else { /* lines of a few bytes close, as in memcached */
            bool waits = dialog->in.len > 0; /* for the words of a login */
            ck_assert_msg(strstr(got, "CLIENT_ERROR") == got ||
                    (*got == '\0' && (dialog->is_closed || waits)),
                "%s, '%s': '%s'", state->name, sample->said, got);
            ck_assert_ptr_null(strstr(got, "STORED"));
            ck_assert_ptr_null(strstr(got, "VALUE"));
        }
        ck_assert_str_eq(after.data, before.data);
        buf_fini(&after);
    }
    buf_fini(&before);
    guarded_close(&guarded);
}

START_TEST(test_text)
{
    for (size_t i = 0; i < COUNT_OF(samples); i++) {
        for (size_t s = 0; s < COUNT_OF(states); s++) {
            expect_text(&samples[i], &states[s], i % 2 == 0);
        }
    }
}
END_TEST

/* No request is without a sample, and each sample is what it says. */
START_TEST(test_samples)
{
    static const char *const names[] = {
#define X(name, text) #name,
        REQUEST_OPS(X)
#undef X
    };
    bool has[COUNT_OF(names)] = {false};
    has[REQUEST_LOGIN] = has[REQUEST_LOGIN_WAYS] = has[REQUEST_UNREAD] = true;
    struct store *store = small_store(NULL);
    struct dialog dialog;
    dialog_open(&dialog, store, SMALL_STORE_ITEM_BYTES);
    dialog_say(&dialog, world, strlen(world));
    qsbr_online(store->qsbr, &dialog.reader);
    for (size_t i = 0; i < COUNT_OF(samples); i++) {
        const struct sample *sample = &samples[i];
        struct parse_scan scan = {0, 0};
        struct request request;
        char line[200];
        snprintf(line, sizeof line, "%s\r\n", sample->said);
        ck_assert_int_eq(text_parse(line, strlen(line), store_schema(store),
                             SMALL_STORE_ITEM_BYTES, &scan, &request),
            PARSE_REQUEST);
        ck_assert_msg(request.op == sample->op, "'%s' is %s, not %s",
            sample->said, names[request.op], names[sample->op]);
        enum access_class class_ = access_class_of(&request, line);
        for (int rank = ACCESS_READER; rank <= ACCESS_WRITER; rank++) {
            ck_assert_msg(access_allows((enum access_rank)rank, class_) ==
                    (rank >= (int)sample->least),
                "'%s' as %d", sample->said, rank);
        }
        has[sample->op] = true;
    }
    qsbr_offline(&dialog.reader);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        ck_assert_msg(has[i], "no sample of %s", names[i]);
    }
    dialog_close(&dialog);
    store_destroy(&store);
}
END_TEST

/* Status of the first reply, or -1. */
static int
status_of(const struct buf *replies)
{
    return replies->len < BINARY_HEADER_BYTES
        ? -1
        : bytes_get_be16((const uint8_t *)replies->data + 6);
}

enum {
    FORM_EMPTY,
    FORM_KEY,
    FORM_STORE,
    FORM_EXTEND,
    FORM_LOGIN,
    FORM_COUNT,
    FORM_TOUCH,
    FORM_FLUSH,
    FORM_LEVEL,
    FORM_STAT
};

/* A packet of the opcode; of a login one that is wrong. */
static void
add_opcode(struct buf *out, uint8_t opcode, int form)
{
    static const size_t extras[] = {[FORM_STORE] = 8,
        [FORM_COUNT] = 20,
        [FORM_TOUCH] = 4,
        [FORM_LEVEL] = 4,
        [FORM_STAT] = 0};
    bool has_key = form == FORM_KEY || form == FORM_STORE ||
        form == FORM_EXTEND || form == FORM_COUNT || form == FORM_TOUCH;
    packet_add(out,
        &(struct packet_said){.opcode = opcode,
            .extras_len = extras[form],
            .key = form == FORM_LOGIN ? "PLAIN"
                : has_key             ? "n"
                                      : NULL,
            .value = form == FORM_STORE || form == FORM_EXTEND ? "4"
                : form == FORM_LOGIN                           ? "x"
                                                               : NULL});
}

/* What opcodes may do before a login, and as reader; all others are for those
 * who may change. */
static enum access_rank
least_of_opcode(uint8_t opcode)
{
    switch (opcode) {
    case BINARY_VERSION:
    case BINARY_SASL_LIST:
    case BINARY_SASL_AUTH:
    case BINARY_SASL_STEP:
        return ACCESS_NOBODY;
    case BINARY_GET:
    case BINARY_GETQ:
    case BINARY_GETK:
    case BINARY_GETKQ:
    case BINARY_STAT:
    case BINARY_NOOP:
    case BINARY_QUIT:
    case BINARY_QUITQ:
        return ACCESS_READER;
    default:
        return ACCESS_WRITER;
    }
}

static void
login_binary(struct dialog *dialog, const struct state *state)
{
    struct buf said = {0};
    char words[40];
    if (state->plain == NULL) {
        return;
    }
    bool fails = state->rank == ACCESS_NOBODY;
    int len = snprintf(words, sizeof words, "%c%s%c%s%s", 0, state->plain, 0,
        state->plain, fails ? "!" : "");
    packet_add(&said,
        &(struct packet_said){.opcode = BINARY_SASL_AUTH,
            .key = "PLAIN",
            .value = words,
            .value_len = (size_t)len});
    dialog_say(dialog, said.data, said.len);
    ck_assert_int_eq(status_of(&dialog->replies), fails ? 0x20 : 0);
    buf_clear(&dialog->replies);
    buf_fini(&said);
}

static void
expect_binary(uint8_t opcode, int form, const struct state *state)
{
    enum { AUTH = 0x20, NO_ACCESS = 0x24 };
    enum access_rank least = least_of_opcode(opcode);
    struct guarded guarded;
    struct buf said = {0};
    guarded_open(&guarded, true, opcode % 2 == 0);
    struct dialog *dialog = &guarded.dialog;
    login_binary(dialog, state);
    struct buf before = look_around(&guarded);
    add_opcode(&said, opcode, form);
    dialog_say(dialog, said.data, said.len);
    int status = status_of(&dialog->replies);
    if (form == FORM_LOGIN) {
        ck_assert_int_eq(status, AUTH);
        ck_assert_int_eq(dialog->session.rank, ACCESS_NOBODY);
    } else if (state->rank >= least) {
        ck_assert_msg(status != AUTH && status != NO_ACCESS,
            "%s, opcode %02x: %x", state->name, opcode, (unsigned)status);
    } else {
        bool is_nobody = state->rank == ACCESS_NOBODY;
        struct buf after = look_around(&guarded);
        ck_assert_msg(status == (is_nobody ? AUTH : NO_ACCESS),
            "%s, opcode %02x: %x", state->name, opcode, (unsigned)status);
        ck_assert_int_eq(dialog->is_closed, is_nobody);
        ck_assert_str_eq(after.data, before.data);
        buf_fini(&after);
    }
    buf_fini(&before);
    buf_fini(&said);
    guarded_close(&guarded);
}

START_TEST(test_binary)
{
    for (size_t s = 0; s < COUNT_OF(states); s++) {
#define X(code, name, op, form, quiet)                                        \
    expect_binary((code), FORM_##form, &states[s]);
        BINARY_OPCODES(X)
#undef X
    }
    for (unsigned opcode = 0x25; opcode <= UINT8_MAX; opcode++) {
        expect_binary((uint8_t)opcode, FORM_EMPTY, &states[0]);
    }
}
END_TEST

/* Every word of memcached's conversation, 1.6.45's answers. */
START_TEST(test_words)
{
    static const struct exchange said[] = {
        {"version", NOBODY_LINE},
        {"get a", NOBODY_LINE},
        {"set a 0 0 2\r\nhi",
            "CLIENT_ERROR bad authentication token format\r\n"},
        {"set a 0 0 70000", "CLIENT_ERROR auth token too long\r\n"},
        {"set a 0 0 13\r\nwriter writeX",
            "CLIENT_ERROR authentication failure\r\n"},
        {"set a 0 0 13 noreply\r\nwriter writer", "STORED\r\n"},
        {"get a", "END\r\n"},
        {"set a 0 0 13\r\nwriter reader", "STORED\r\n"},
        {"get a", "VALUE a 0 13\r\nwriter reader\r\nEND\r\n"},
    };
    for (int late = 0; late < 2; late++) {
        struct guarded guarded;
        guarded_open(&guarded, false, late == 1);
        PLAY(&guarded.dialog, said);
        ck_assert_uint_eq(
            metric_of(guarded.dialog.metrics, METRIC_auth_cmds), 2);
        ck_assert_uint_eq(
            metric_of(guarded.dialog.metrics, METRIC_auth_errors), 1);
        ck_assert_uint_eq(
            metric_of(guarded.dialog.metrics, METRIC_access_refused), 2);
        guarded_close(&guarded);
    }
}
END_TEST

/* The last refusal that is let pass closes; a login forgets them. */
START_TEST(test_refusals)
{
    static const char *const tries[] = {"version", "set a 0 0 1\r\nx",
        "set a 0 0 3\r\na b", "set a 0 0 99999"};
    for (size_t i = 0; i < COUNT_OF(tries); i++) {
        struct guarded guarded;
        guarded_open(&guarded, false, false);
        for (int n = 1; n <= ACCESS_REFUSALS_MAX; n++) {
            ck_assert(!guarded.dialog.is_closed);
            say_line(&guarded.dialog, tries[i]);
            ck_assert_ptr_nonnull(
                strstr(guarded.dialog.replies.data, "CLIENT_ERROR "));
            buf_clear(&guarded.dialog.replies);
        }
        ck_assert(guarded.dialog.is_closed);
        guarded_close(&guarded);
    }
}
END_TEST

/* Nothing is kept or waited for beyond 1 KiB. */
START_TEST(test_bytes)
{
    static const char *const begins[] = {
        "get ", "set a 0 0 900\r\n", "\x80\x21\xff\xff", "\x80\x01\x00\xfa"};
    char bytes[LOGIN_BYTES_MAX];
    for (size_t i = 0; i < COUNT_OF(begins); i++) {
        struct guarded guarded;
        guarded_open(&guarded, true, false);
        memset(bytes, 'x', sizeof bytes);
        memset(bytes, 0, i < 2 ? 0 : BINARY_HEADER_BYTES);
        memcpy(bytes, begins[i], i < 2 ? strlen(begins[i]) : 4);
        if (i >= 2) {
            memset(bytes + 8, 0x00, 4);
            bytes[9] = 0x10; /* a megabyte */
        }
        for (size_t at = 0; at < sizeof bytes && !guarded.dialog.is_closed;
             at += 64) {
            dialog_say(&guarded.dialog, bytes + at, 64);
            ck_assert_uint_lt(guarded.dialog.in.len, LOGIN_BYTES_MAX);
        }
        ck_assert(guarded.dialog.is_closed ||
            guarded.dialog.replies.len > 0); /* it has an answer */
        guarded_close(&guarded);
    }
}
END_TEST

/* A login anew makes nobody of who was known, until it has succeeded. */
START_TEST(test_again)
{
    struct guarded guarded;
    guarded_open(&guarded, true, false);
    login_binary(&guarded.dialog, &states[3]);
    ck_assert_int_eq(guarded.dialog.session.rank, ACCESS_WRITER);
    login_binary(&guarded.dialog, &states[1]);
    ck_assert_int_eq(guarded.dialog.session.rank, ACCESS_NOBODY);
    login_binary(&guarded.dialog, &states[2]);
    ck_assert_int_eq(guarded.dialog.session.rank, ACCESS_READER);
    guarded_close(&guarded);
}
END_TEST

/* A stale item is made anew by one who may: a reader's look leaves that to the
 * next one. */
START_TEST(test_stale)
{
    static const char login[] = "set x 0 0 13\r\nreader reader\r\n";
    struct guarded guarded;
    guarded_open(&guarded, false, false);
    say_line(&guarded.free, "md it I T100");
    buf_clear(&guarded.free.replies);
    dialog_say(&guarded.dialog, login, strlen(login));
    buf_clear(&guarded.dialog.replies);
    exchange(&guarded.dialog, "mg it", "HD X\r\n");
    exchange(&guarded.free, "mg it", "HD X W\r\n");
    exchange(&guarded.dialog, "mg it", "HD Z X\r\n");
    guarded_close(&guarded);
}
END_TEST

/* In all cuts the same. */
START_TEST(test_cuts)
{
    static const char said[] = "version\r\nset a 0 0 13\r\nwriter writer\r\n"
                               "set b 0 0 2\r\nhi\r\nget b\r\nversion\r\n";
    static const char answer[] =
        NOBODY_LINE "STORED\r\nSTORED\r\nVALUE b 0 2\r\nhi\r\nEND\r\n"
                    "VERSION test\r\n";
    for (size_t cut = 1; cut < strlen(said); cut += SWEEP_STEP) {
        struct guarded guarded;
        guarded_open(&guarded, false, cut % 2 == 0);
        dialog_say(&guarded.dialog, said, cut);
        dialog_say(&guarded.dialog, said + cut, strlen(said) - cut);
        expect_replies(&guarded.dialog, said, answer);
        guarded_close(&guarded);
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_samples, test_text, test_binary,
        test_words, test_refusals, test_bytes, test_again, test_stale,
        test_cuts};
    return run_tests("access", tests, COUNT_OF(tests));
}
