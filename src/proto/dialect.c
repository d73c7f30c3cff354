/* SPDX-License-Identifier: BSD-3-Clause */
/* The dialect's grammar.
 *
 * A line is dialect when its first word is one that memcached does not have
 * (drop, show, dump, digest, checkpoint, seal, help), when it is `add counter`
 * or `add column` and does not have the shape of a memcached add, or when its
 * first argument is the name of a counter. The words behind are only delimited
 * here: ids, columns and options are resolved by whoever executes the request.
 *
 * So is set, add or replace of a name and four numbers or more, whether there
 * is such a counter or not: who has typed it is told at once, and so is a dump
 * that is loaded before the log has been read.
 *
 * A line that a memcached client sends before a data block is never one that
 * changes a counter: its block would be read as commands. set, add and replace
 * with three words and no '=' behind a counter's name are such a line, whatever
 * the words are, and so is every append, prepend and cas. */
#include "proto/dialect.h"

#include "base/err.h"
#include "base/node.h"
#include "base/num.h"
#include "base/producer.h"

#include <string.h>

/* More words than any edit has. */
enum { EDIT_WORDS_MAX = 16 };

/* The commands on a counter's name, and what each becomes. */
#define COUNTER_COMMANDS(X)                                                   \
    X("get", GET)                                                             \
    X("set", SET)                                                             \
    X("add", ADD)                                                             \
    X("replace", REPLACE)                                                     \
    X("delete", DELETE)                                                       \
    X("incr", INCR)                                                           \
    X("decr", DECR)

/* memcached's other commands that begin with a key, but for these. */
static const char *const key_commands[] = {"gets", "gat", "gats", "touch"};

/* The other commands with a data block. */
static const char *const block_commands[] = {"append", "prepend", "cas"};

#define HELP_LINES(X)                                                         \
    X("add counter NAME [absent=miss] [overflow=error] [exptime=ignore] "     \
      "[maxjump=N] [cold=quietest|never] [cold_after=N] [largest=N]")         \
    X("add column COUNTER NAME primarykey[=text]")                            \
    X("add column COUNTER NAME [hint=BITS] [max=BITS] [default=N] "           \
      "[suffix=NAME] [flags=N]")                                              \
    X("add column COUNTER NAME marks=COLUMN|ID.COLUMN unread=NAME "           \
      "[unmarked=none [forget=N]] [suffix=NAME] [flags=N]")                   \
    X("add column COUNTER NAME follows=COLUMN [suffix=NAME] [flags=N]")       \
    X("add column COUNTER NAME members=exact [max=BITS] [member=BITS] "       \
      "[counts=COLUMN] [suffix=NAME] [flags=N]")                              \
    X("add column COUNTER NAME members=about memory=BYTES [error=N] "         \
      "[member=BITS] [counts=COLUMN] [suffix=NAME] [flags=N]")                \
    X("change counter NAME [absent=default|miss] [overflow=saturate|error] "  \
      "[exptime=refuse|ignore] [maxjump=N] [cold=oldest|quietest] "           \
      "[cold_after=N]")                                                       \
    X("change column COUNTER NAME [name=NEW] [suffix=NAME] [max=BITS] "       \
      "[hint=BITS] [default=N] [flags=N] [memory=BYTES]")                     \
    X("drop column COUNTER NAME NAME   (the name twice, to confirm)")         \
    X("drop counter NAME NAME")                                               \
    X("show counters")                                                        \
    X("show counter NAME")                                                    \
    X("show handovers")                                                       \
    X("get COUNTER ID|ID.SUFFIX ...")                                         \
    X("set|add|replace COUNTER ID VALUE ...   (one a column, not of two)")    \
    X("set|add|replace COUNTER ID COLUMN=VALUE ...   (others stay)")          \
    X("set|add|replace COUNTER ID.SUFFIX VALUE")                              \
    X("incr|decr COUNTER ID.SUFFIX [N]")                                      \
    X("incr|decr COUNTER ID N ...   (one number a column)")                   \
    X("incr|decr COUNTER ID COLUMN=N ...   (others stay)")                    \
    X("delete COUNTER ID|ID.SUFFIX")                                          \
    X("... COUNTER ID.SUFFIX:MEMBER ...   (in all of these: one member)")     \
    X("... tx=PRODUCER:NUMBER   (behind any of these five: done once)")       \
    X("drop producer NAME")                                                   \
    X("numbers NAME HIGHEST BITS   (a producer's, done elsewhere)")           \
    X("get ID.SUFFIX ...   and all other commands of memcached")              \
    X("checkpoint   (answers OK when all changes so far are in one)")         \
    X("dump counter NAME [FIRST LAST] [of RULE]   (as lines to type)")        \
    X("dump numbers   (those of all producers, as lines to type)")            \
    X("digest COUNTER   (a sum over its records, to compare servers)")        \
    X("backup begin   (lists the files of the data directory, and keeps")     \
    X("                them until backup end; see tallyctl backup)")          \
    X("forget ids RULE   (removes what is handed over, see handover)")        \
    X("seal COUNTER all   (moves all records to the cold tier)")              \
    X("replicaof HOST:PORT|no one   (follow another server, or none)")        \
    X("failover [NODE] [force]   (another primary, or by force this one)")    \
    X("handover RULE to HOST:PORT   (ids of RULE:I/N are another group's)")   \
    X("handover RULE here   (they are this one's again)")                     \
    X("feed on|off   (this connection may change what is handed over)")       \
    X("wait REPLICAS MILLISECONDS   (how many have this client's changes)")   \
    X("stats [counters|members|names|producers|tables|wal|cold|settings|"     \
      "reset]")                                                               \
    X("stats forget|health|hot|latency|loop|memory")                          \
    X("stats replication|replicas|slow")                                      \
    X("slow MILLISECONDS   (what takes longer is in stats slow; 0: nothing)") \
    X("version, verbosity N, quit, help")

static void
fail(struct request *out, const char *error)
{
    out->op = REQUEST_ERROR;
    out->error = error;
}

static bool
is_number(const char *bytes, struct span word)
{
    int64_t number;
    return span_is_digits(bytes, word) ||
        num_parse_i64(bytes + word.at, word.len, &number);
}

/* How many words there are; 0 where one has a '=', which only the dialect's
 * lines have. */
static unsigned
count_plain(struct words words)
{
    struct span word;
    unsigned n = 0;
    if (memchr(words.bytes + words.at, '=', words.end - words.at) != NULL) {
        return 0;
    }
    while (words_next(&words, &word)) {
        n++;
    }
    return n;
}

/* True for `add counter 0 0 5`: memcached's grammar, with the key "counter". So
 * is `add counter 0 1.5 5`, whose block has to be skipped: what tells its
 * length is the third word. No edit has a number there. */
static bool
is_memcached_add(struct words words)
{
    struct span flags, exptime, len;
    return count_plain(words) >= 3 && words_next(&words, &flags) &&
        words_next(&words, &exptime) && words_next(&words, &len) &&
        is_number(words.bytes, len);
}

/* `add` or `drop`: counter or column, and the words behind. */
static bool
parse_edit(bool adds, struct words words, struct request *out)
{
    struct span what;
    if (!words_next(&words, &what)) {
        return false;
    }
    bool counter = span_is(words.bytes, what, "counter");
    if (!counter && !span_is(words.bytes, what, "column")) {
        return false;
    }
    if (adds && is_memcached_add(words)) {
        return false;
    }
    out->op = REQUEST_SCHEMA_EDIT;
    out->words = words_rest(&words);
    if (counter) {
        out->schema_op = adds ? SCHEMA_ADD_COUNTER : SCHEMA_DROP_COUNTER;
    } else {
        out->schema_op = adds ? SCHEMA_ADD_COLUMN : SCHEMA_DROP_COLUMN;
    }
    return true;
}

static void
parse_change(struct words words, struct request *out)
{
    struct span what;
    bool is_given = words_next(&words, &what);
    bool is_counter = is_given && span_is(words.bytes, what, "counter");
    if (!is_counter && !(is_given && span_is(words.bytes, what, "column"))) {
        fail(out,
            "CLIENT_ERROR usage: change counter NAME OPTION ..., or change "
            "column COUNTER NAME OPTION ...");
        return;
    }
    out->op = REQUEST_SCHEMA_EDIT;
    out->schema_op = is_counter ? SCHEMA_CHANGE_COUNTER : SCHEMA_CHANGE_COLUMN;
    out->words = words_rest(&words);
}

static bool
parse_drop_producer(struct words words, struct request *out)
{
    struct span what, name, more;
    if (!words_next(&words, &what) ||
        !span_is(words.bytes, what, "producer") ||
        !words_next(&words, &name) || words_next(&words, &more)) {
        return false;
    }
    out->op = REQUEST_DROP_PRODUCER;
    out->key = name;
    return true;
}

static void
parse_show(struct words words, struct request *out)
{
    struct span what;
    struct span more;
    if (words_next(&words, &what)) {
        if (span_is(words.bytes, what, "counters") &&
            !words_next(&words, &more)) {
            out->op = REQUEST_SHOW_COUNTERS;
            return;
        }
        if (span_is(words.bytes, what, "handovers") &&
            !words_next(&words, &more)) {
            out->op = REQUEST_SHOW_HANDOVERS;
            return;
        }
        if (span_is(words.bytes, what, "counter") &&
            words_next(&words, &out->key) && !words_next(&words, &more)) {
            out->op = REQUEST_SHOW_COUNTER;
            return;
        }
    }
    fail(out,
        "CLIENT_ERROR usage: show counters, show counter NAME, or show "
        "handovers");
}

static void
trim(const char *bytes, struct span *words)
{
    while (words->len > 0 && bytes[words->at + words->len - 1] == ' ') {
        words->len--;
    }
}

/* Takes a trailing "tx=..." off the words. A mere number there is that of a
 * column called tx. */
static void
take_tx(const char *bytes, struct request *out)
{
    static const char tx[] = "tx=";
    uint32_t len = sizeof tx - 1;
    struct span words = out->words;
    uint32_t at, end;
    uint64_t number;
    trim(bytes, &words);
    at = end = words.at + words.len;
    while (at > words.at && bytes[at - 1] != ' ') {
        at--;
    }
    if (end - at >= len && memcmp(bytes + at, tx, len) == 0 &&
        !num_parse_u64(bytes + at + len, end - at - len, &number)) {
        out->tx = (struct span){at + len, end - at - len};
        out->words.len = at - words.at;
    }
}

/* Takes a trailing "noreply" off the words. */
static void
take_noreply(const char *bytes, struct request *out)
{
    static const char noreply[] = "noreply";
    uint32_t len = sizeof noreply - 1;
    struct span *words = &out->words;
    trim(bytes, words);
    if (words->len > len &&
        memcmp(bytes + words->at + words->len - len, noreply, len) == 0 &&
        bytes[words->at + words->len - len - 1] == ' ') {
        words->len -= len;
        out->noreply = true;
    }
}

static bool
is_one_of(const char *bytes, struct span command, const char *const *names,
    size_t n_names)
{
    for (size_t i = 0; i < n_names; i++) {
        if (span_is(bytes, command, names[i])) {
            return true;
        }
    }
    return false;
}

/* What a command does to a counter's name: COUNTER_MISUSE for the commands of
 * memcached that have no sense there, COUNTER_STORE for those with a block.
 * False for a command without a key. */
static bool
find_command(const char *bytes, struct span command, enum request_op *op)
{
    enum {
        N_KEY_COMMANDS = sizeof key_commands / sizeof *key_commands,
        N_BLOCK_COMMANDS = sizeof block_commands / sizeof *block_commands
    };
#define X(text, name)                                                         \
    if (span_is(bytes, command, text)) {                                      \
        *op = REQUEST_COUNTER_##name;                                         \
        return true;                                                          \
    }
    COUNTER_COMMANDS(X)
#undef X
    if (is_one_of(bytes, command, block_commands, N_BLOCK_COMMANDS)) {
        *op = REQUEST_COUNTER_STORE;
        return true;
    }
    *op = REQUEST_COUNTER_MISUSE;
    return is_one_of(bytes, command, key_commands, N_KEY_COMMANDS);
}

/* True for a line that memcached has as well: set, add or replace with flags,
 * exptime and a length, well formed or not. */
static bool
has_block(const char *bytes, const struct request *request)
{
    switch (request->op) {
    case REQUEST_COUNTER_SET:
    case REQUEST_COUNTER_ADD:
    case REQUEST_COUNTER_REPLACE:
        return count_plain(words_of(bytes, request->words)) == 3;
    default:
        return false;
    }
}

static void
parse_seal(struct words words, struct request *out)
{
    struct span what, more;
    out->op = REQUEST_SEAL;
    if (!words_next(&words, &out->key) || !words_next(&words, &what) ||
        !span_is(words.bytes, what, "all") || words_next(&words, &more)) {
        fail(out, "CLIENT_ERROR usage: seal COUNTER all");
    }
}

/* numbers NAME HIGHEST BITS: the last two are looked at later. */
static void
parse_numbers(struct words words, struct request *out)
{
    struct span high, bits, more;
    out->op = REQUEST_NUMBERS;
    bool has_name = words_next(&words, &out->key) &&
        producer_name_is_right(words.bytes + out->key.at, out->key.len);
    out->words = words_rest(&words);
    if (!has_name || !words_next(&words, &high) ||
        !words_next(&words, &bits) || words_next(&words, &more)) {
        fail(out, "CLIENT_ERROR usage: numbers NAME HIGHEST BITS");
    }
}

static bool
is_dump_numbers(struct words words)
{
    struct span what, more;
    return words_next(&words, &what) &&
        span_is(words.bytes, what, "numbers") && !words_next(&words, &more);
}

/* dump numbers, or dump counter NAME [FIRST LAST] [of RULE]: ids and a rule,
 * which are looked at later. */
static void
parse_dump(struct words words, struct request *out)
{
    struct span word, more;
    if (is_dump_numbers(words)) {
        out->op = REQUEST_DUMP_NUMBERS;
        return;
    }
    out->op = REQUEST_DUMP;
    bool is_right = words_next(&words, &word) &&
        span_is(words.bytes, word, "counter") && words_next(&words, &out->key);
    out->words = words_rest(&words);
    bool has_more = words_next(&words, &word);
    if (has_more && !span_is(words.bytes, word, "of")) {
        is_right = is_right && words_next(&words, &word);
        has_more = words_next(&words, &word);
    }
    if (has_more) {
        is_right = is_right && span_is(words.bytes, word, "of") &&
            words_next(&words, &word) && !words_next(&words, &more);
    }
    if (!is_right) {
        fail(out,
            "CLIENT_ERROR usage: dump counter NAME [FIRST LAST] [of RULE]");
    }
}

/* forget ids RULE, which is looked at later. */
static void
parse_forget(struct words words, struct request *out)
{
    struct span what, more;
    out->op = REQUEST_FORGET;
    if (!words_next(&words, &what) || !span_is(words.bytes, what, "ids") ||
        !words_next(&words, &out->key) || words_next(&words, &more)) {
        fail(out, "CLIENT_ERROR usage: forget ids RULE");
    }
}

static void
parse_digest(struct words words, struct request *out)
{
    struct span more;
    out->op = REQUEST_DIGEST;
    if (!words_next(&words, &out->key) || words_next(&words, &more)) {
        fail(out, "CLIENT_ERROR usage: digest COUNTER");
    }
}

/* backup begin, or backup end: that one has no key. */
static void
parse_backup(struct words words, struct request *out)
{
    struct span word = {0}, more;
    out->op = REQUEST_BACKUP;
    bool is_right = words_next(&words, &word) &&
        (span_is(words.bytes, word, "begin") ||
            span_is(words.bytes, word, "end"));
    if (!is_right || words_next(&words, &more)) {
        fail(out, "CLIENT_ERROR usage: backup begin, or backup end");
        return;
    }
    out->key = word;
    out->key.len = span_is(words.bytes, word, "end") ? 0 : word.len;
}

/* replicaof HOST:PORT, or no one. */
static void
parse_replicaof(struct words words, struct request *out)
{
    struct span address, one, more;
    out->op = REQUEST_REPLICAOF;
    bool is_right = words_next(&words, &address);
    if (is_right && span_is(words.bytes, address, "no")) {
        is_right =
            words_next(&words, &one) && span_is(words.bytes, one, "one");
        address.len = 0;
    } else if (is_right) {
        is_right = memchr(words.bytes + address.at, ':', address.len) != NULL;
    }
    out->key = address;
    if (!is_right || words_next(&words, &more)) {
        fail(out,
            "CLIENT_ERROR usage: replicaof HOST:PORT, or replicaof no one");
    }
}

/* handover RULE to HOST:PORT, or handover RULE here: the rule is the key, and
 * the address, or nothing, what follows. */
static void
parse_handover(struct words words, struct request *out)
{
    struct span way, address = {0}, more;
    out->op = REQUEST_HANDOVER;
    bool is_right = words_next(&words, &out->key) && words_next(&words, &way);
    if (is_right && span_is(words.bytes, way, "to")) {
        is_right = words_next(&words, &address);
    } else {
        is_right = is_right && span_is(words.bytes, way, "here");
    }
    out->words = address;
    if (!is_right || words_next(&words, &more)) {
        fail(out,
            "CLIENT_ERROR usage: handover RULE to HOST:PORT, or handover "
            "RULE here");
    }
}

static void
parse_feed(struct words words, struct request *out)
{
    struct span way, more;
    out->op = REQUEST_FEED;
    bool is_right = words_next(&words, &way);
    bool is_on = is_right && span_is(words.bytes, way, "on");
    out->number = is_on;
    if (!is_right || !(is_on || span_is(words.bytes, way, "off")) ||
        words_next(&words, &more)) {
        fail(out, "CLIENT_ERROR usage: feed on, or feed off");
    }
}

/* failover [NODE] [force]; no node is called that. */
static void
parse_failover(struct words words, struct request *out)
{
    struct span more = {0};
    const char *bytes = words.bytes;
    out->op = REQUEST_FAILOVER;
    bool has_more = words_next(&words, &more);
    if (has_more && !span_is(bytes, more, "force")) {
        out->key = more;
        has_more = words_next(&words, &more);
    }
    bool is_wrong = out->key.len > 0 &&
        !node_name_is_right(bytes + out->key.at, out->key.len);
    if (has_more) {
        is_wrong = is_wrong || !span_is(bytes, more, "force");
        out->words = more;
        has_more = words_next(&words, &more);
    }
    if (is_wrong || has_more) {
        fail(out, "CLIENT_ERROR usage: failover [NODE] [force]");
    }
}

/* wait N MS: numbers, which are looked at later. */
static void
parse_wait(struct words words, struct request *out)
{
    struct span n, ms, more;
    out->op = REQUEST_WAIT;
    out->words = words_rest(&words);
    if (!words_next(&words, &n) || !is_number(words.bytes, n) ||
        !words_next(&words, &ms) || !is_number(words.bytes, ms) ||
        words_next(&words, &more)) {
        fail(out, "CLIENT_ERROR usage: wait REPLICAS MILLISECONDS");
    }
}

static bool
are_numbers(struct words words, unsigned n_min)
{
    struct span word;
    unsigned n = 0;
    while (words_next(&words, &word)) {
        if (!is_number(words.bytes, word)) {
            return false;
        }
        n++;
    }
    return n >= n_min;
}

bool
dialect__parse_unknown(
    struct span command, struct words words, struct request *out)
{
    enum {
        NUMBERS_MIN = 4 /* memcached has three, and no client sends more */
    };
    struct request found = *out;
    const char *bytes = words.bytes;
    if (!words_next(&words, &found.key) ||
        !schema_is_name(bytes + found.key.at, found.key.len) ||
        !find_command(bytes, command, &found.op)) {
        return false;
    }
    found.words = words_rest(&words);
    take_noreply(bytes, &found);
    take_tx(bytes, &found);
    if (!are_numbers(words_of(bytes, found.words), NUMBERS_MIN)) {
        return false;
    }
    *out = found;
    return true;
}

/* A command whose first argument is a counter's name. */
static bool
parse_on_counter(struct span command, struct words words,
    const struct schema *schema, struct request *out)
{
    struct span name;
    enum request_op op;
    const char *bytes = words.bytes;
    if (!words_next(&words, &name) || bytes[name.at] <= '9' ||
        schema_counter(schema, bytes + name.at, name.len) == NULL ||
        !find_command(bytes, command, &op)) {
        return false; /* names begin with a letter or _, most keys do not */
    }
    out->op = op;
    out->key = name;
    out->words = words_rest(&words);
    if (op != REQUEST_COUNTER_GET) {
        take_noreply(bytes, out);
        if (has_block(bytes, out)) {
            out->op = REQUEST_COUNTER_STORE;
        }
        take_tx(bytes, out);
    }
    return true;
}

/* True for a line that needs no look: no name begins with a digit, and the
 * dialect's own words have four letters and more, of which none but incr and
 * decr, which are memcached's, too, ends in an r. */
static bool
is_memcached(struct span command, struct words words)
{
    const char *arg = words.bytes + words.at + 1; /* behind one space */
    return command.len < 3 ||
        ((command.len == 3 ||
             (command.len == 4 && words.bytes[command.at + 3] == 'r')) &&
            words.end - words.at > 1 && *arg >= '0' && *arg <= '9');
}

static void
parse_drop(struct words words, struct request *out)
{
    if (!parse_edit(false, words, out) && !parse_drop_producer(words, out)) {
        fail(out,
            "CLIENT_ERROR usage: drop counter NAME NAME, drop column "
            "COUNTER NAME NAME, or drop producer NAME");
    }
}

static void
parse_checkpoint(struct words words, struct request *out)
{
    struct span more;
    out->op = REQUEST_CHECKPOINT;
    if (words_next(&words, &more)) {
        fail(out, "CLIENT_ERROR usage: checkpoint");
    }
}

static void
parse_help(struct words words, struct request *out)
{
    (void)words;
    out->op = REQUEST_HELP;
}

/* Commands whose first word says all of it. */
#define OWN_COMMANDS(X)                                                       \
    X("change", parse_change)                                                 \
    X("drop", parse_drop)                                                     \
    X("show", parse_show)                                                     \
    X("checkpoint", parse_checkpoint)                                         \
    X("seal", parse_seal)                                                     \
    X("dump", parse_dump)                                                     \
    X("numbers", parse_numbers)                                               \
    X("digest", parse_digest)                                                 \
    X("backup", parse_backup)                                                 \
    X("forget", parse_forget)                                                 \
    X("replicaof", parse_replicaof)                                           \
    X("handover", parse_handover)                                             \
    X("feed", parse_feed)                                                     \
    X("failover", parse_failover)                                             \
    X("wait", parse_wait)                                                     \
    X("help", parse_help)

static bool
parse_own(struct span command, struct words words, struct request *out)
{
#define X(text, parse_fn)                                                     \
    if (span_is(words.bytes, command, text)) {                                \
        parse_fn(words, out);                                                 \
        return true;                                                          \
    }
    OWN_COMMANDS(X)
#undef X
    return false;
}

bool
dialect_parse(struct span command, struct words words,
    const struct schema *schema, struct request *out)
{
    const char *bytes = words.bytes;
    if (is_memcached(command, words)) {
        return false;
    }
    if (span_is(bytes, command, "add") && parse_edit(true, words, out)) {
        return true;
    }
    return parse_own(command, words, out) ||
        parse_on_counter(command, words, schema, out);
}

int
dialect_edit(
    const char *bytes, const struct request *request, struct schema_edit *out)
{
    struct schema_word word[EDIT_WORDS_MAX];
    struct words words = words_of(bytes, request->words);
    struct span span;
    size_t n = 0;
    while (words_next(&words, &span)) {
        if (n == EDIT_WORDS_MAX) {
            return ERR_BAD_OPTION;
        }
        word[n++] = (struct schema_word){bytes + span.at, span.len};
    }
    return schema_edit_parse(request->schema_op, word, n, out);
}

void
dialect_help(struct buf *out)
{
#define X(line) buf_add_text(out, line "\r\n");
    HELP_LINES(X)
#undef X
    buf_add_text(out, "END\r\n");
}
