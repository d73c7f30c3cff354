/* SPDX-License-Identifier: BSD-3-Clause */
/* The text protocol of memcached 1.6: one line, for storage commands followed
 * by a data block.
 *
 * text_parse looks for the end of the line, takes the first word, lets the
 * dialect have its lines, and else calls the command's own function from one
 * table. A storage command is parsed again when its data block is complete:
 * scan->need says when that is, so the work stays linear. No data block is read
 * as commands: it is skipped where a line is refused that tells its length, and
 * a length that is a number, but none that a block can have, ends the
 * connection.
 *
 * What can go wrong is answered in memcached's words (its protocol.txt); where
 * versions differ, 1.6.45 is followed: too few words are "bad command line
 * format", too many are let pass. */
#include "proto/text.h"

#include "base/assert.h"
#include "base/err.h"
#include "base/num.h"
#include "proto/dialect.h"
#include "proto/meta.h"
#include "proto/text_line.h"
#include "proto/words.h"

#include <string.h>

/* With its newline: two bytes are the shortest command, to memcached with CR
 * and LF behind it, so that it refuses "mn" with a mere LF. */
enum { LINE_LEN_MIN = 4 };

/* True for a line with a number behind the three of memcached's that is about a
 * counter which is not known. Of few lines it is asked: not inlined. */
static __attribute__((noinline)) bool
is_of_unknown(struct line *line)
{
    struct words rest = line->words;
    struct words all = {line->bytes, 0, rest.end};
    struct request found;
    struct span word;
    enum request_op op = line->out->op;
    if (!words_next(&rest, &word) || line->bytes[word.at] > '9' ||
        (op != REQUEST_SET && op != REQUEST_ADD && op != REQUEST_REPLACE)) {
        return false;
    }
    request_clear(&found);
    found.len = line->out->len;
    if (!words_next(&all, &word) ||
        !dialect__parse_unknown(word, all, &found)) {
        return false;
    }
    *line->out = found;
    return true;
}

/* False where no word is left, as in most lines. */
static inline bool
has_rest(const struct line *line)
{
    return line->words.at < line->words.end;
}

/* Takes flags and exptime where both are 0, as they are in out: in most
 * lines. */
static inline bool
takes_zeroes(struct line *line)
{
    static const char zeroes[] = {' ', '0', ' ', '0', ' '};
    struct words *words = &line->words;
    if (words->end - words->at < sizeof zeroes ||
        memcmp(words->bytes + words->at, zeroes, sizeof zeroes) != 0) {
        return false;
    }
    words->at += sizeof zeroes - 1; /* the space is the next word's */
    return true;
}

/* set add replace append prepend: <key> <flags> <exptime> <bytes> [tx=]
 * [noreply]; cas has its unique behind the bytes. */
static enum parse_status
parse_storage(struct line *line)
{
    struct request *out = line->out;
    uint32_t value_len;
    bool is_cas = out->op == REQUEST_CAS;
    bool fits = text__take_key_and_noreply(line);
    if (!takes_zeroes(line)) {
        fits = text__take_stored_flags(line, &out->flags) && fits;
        fits = text__take_stored_exptime(line, &out->exptime) && fits;
    }
    bool has_len = text__take_len(line, &value_len);
    if (has_rest(line) && is_of_unknown(line)) {
        return PARSE_REQUEST;
    }
    if (!has_len) {
        out->may_be_dialect = true; /* set <counter> <id>.<suffix> <value> */
        return text__fail(line, TEXT__BAD_FORMAT);
    }
    fits = (!is_cas || text__take_u64(line, &out->terms.cas)) && fits;
    if (!fits) {
        return text__fail_and_skip(line, value_len, TEXT__BAD_FORMAT);
    }
    if (has_rest(line)) {
        text__take_rest(line);
    }
    return text__take_value(line, value_len);
}

/* A command that stores an item under a counter's name is refused whole: its
 * block, where the line tells its length, must not be read as commands. */
static void
skip_block(struct line *line)
{
    uint32_t len_bytes;
    struct span name, flags, exptime;
    if (words_next(&line->words, &name) && words_next(&line->words, &flags) &&
        words_next(&line->words, &exptime) &&
        text__take_len(line, &len_bytes)) {
        line->out->swallow_bytes = (uint64_t)len_bytes + 2;
    }
}

/* get gets <key>+; keys but the first are looked at by whoever takes them. */
static enum parse_status
parse_get(struct line *line)
{
    line->out->words = words_rest(&line->words);
    text__take_key(line);
    line->out->key = (struct span){0, 0};
    return PARSE_REQUEST;
}

/* gat gats <exptime> <key>+ */
static enum parse_status
parse_gat(struct line *line)
{
    struct words words = line->words;
    struct span exptime;
    struct span key;
    if (!words_next(&words, &exptime) || !words_next(&words, &key)) {
        return text__fail(line, TEXT__BAD_FORMAT);
    }
    if (!text__take_i32(line, &line->out->exptime)) {
        return text__fail(line, TEXT__BAD_EXPTIME);
    }
    return parse_get(line);
}

/* delete <key> [0] [tx=] [noreply] */
static enum parse_status
parse_delete(struct line *line)
{
    struct span word;
    if (!text__take_key_and_noreply(line)) {
        return PARSE_REQUEST;
    }
    struct words words = line->words;
    if (words_next(&words, &word)) {
        if (span_is(line->bytes, word, "0")) {
            line->words = words;
        } else if (!span_is(line->bytes, word, "noreply") &&
            !text__is_tx(line, word)) {
            line->out->may_be_dialect = true; /* delete <counter> <id> */
            return text__fail(line, TEXT__BAD_FORMAT);
        }
    }
    text__take_rest(line);
    return PARSE_REQUEST;
}

/* incr decr <key> <delta> [tx=] [noreply] */
static enum parse_status
parse_arith(struct line *line)
{
    if (!text__take_key_and_noreply(line)) {
        return PARSE_REQUEST;
    }
    if (!text__has_word(line)) {
        return text__fail(line, TEXT__BAD_FORMAT);
    }
    if (!text__take_u64(line, &line->out->number)) {
        line->out->may_be_dialect = true; /* incr <counter> <id> ... */
        return text__fail(line, "CLIENT_ERROR invalid numeric delta argument");
    }
    text__take_rest(line);
    return PARSE_REQUEST;
}

/* touch <key> <exptime> [noreply] */
static enum parse_status
parse_touch(struct line *line)
{
    if (!text__take_key_and_noreply(line)) {
        return PARSE_REQUEST;
    }
    if (!text__has_word(line)) {
        return text__fail(line, TEXT__BAD_FORMAT);
    }
    if (!text__take_i32(line, &line->out->exptime)) {
        return text__fail(line, TEXT__BAD_EXPTIME);
    }
    return PARSE_REQUEST;
}

/* flush_all [delay] [noreply] */
static enum parse_status
parse_flush_all(struct line *line)
{
    struct words words = line->words;
    struct span word, more;
    line->out->noreply = text__ends_with_noreply(line);
    bool has_word = words_next(&words, &word);
    bool is_alone = has_word && !words_next(&words, &more);
    if (has_word && !(is_alone && line->out->noreply) &&
        !text__take_i32(line, &line->out->exptime)) {
        return text__fail(line, TEXT__BAD_EXPTIME);
    }
    return PARSE_REQUEST;
}

/* verbosity <level> [noreply] */
static enum parse_status
parse_verbosity(struct line *line)
{
    uint32_t level = 0;
    line->out->noreply = text__ends_with_noreply(line);
    if (!text__take_u32(line, &level)) {
        return text__fail(line, TEXT__BAD_FORMAT);
    }
    line->out->number = level;
    return PARSE_REQUEST;
}

static enum parse_status
parse_words(struct line *line)
{
    line->out->words = words_rest(&line->words);
    return PARSE_REQUEST;
}

/* A line that text_admin_read will read. */
static enum parse_status
parse_admin(struct line *line)
{
    line->out->noreply = text__ends_with_noreply(line);
    line->out->words = (struct span){0, line->words.end};
    return PARSE_REQUEST;
}

/* What is asked most stands first. */
static const struct command {
    const char *name;
    uint32_t len;
    enum request_op op;
    parse_fn *parse;
} commands[] = {
#define C(name, op, parse)                                                    \
    {                                                                         \
        name, sizeof name - 1, REQUEST_##op, parse                            \
    }
    C("get", GET, parse_get),
    C("set", SET, parse_storage),
    C("incr", INCR, parse_arith),
    C("mg", LOOK, meta__parse_get),
    C("ma", INCR, meta__parse_arith),
    C("ms", SET, meta__parse_set),
    C("md", DELETE, meta__parse_delete),
    C("gets", GETS, parse_get),
    C("decr", DECR, parse_arith),
    C("delete", DELETE, parse_delete),
    C("mn", NOOP, meta__parse_noop),
    C("gat", GAT, parse_gat),
    C("gats", GATS, parse_gat),
    C("add", ADD, parse_storage),
    C("replace", REPLACE, parse_storage),
    C("append", APPEND, parse_storage),
    C("prepend", PREPEND, parse_storage),
    C("cas", CAS, parse_storage),
    C("touch", TOUCH, parse_touch),
    C("flush_all", FLUSH_ALL, parse_flush_all),
    C("version", VERSION, parse_words),
    C("verbosity", VERBOSITY, parse_verbosity),
    C("stats", STATS, parse_words),
    C("quit", QUIT, parse_words),
    C("me", INSPECT, meta__parse_inspect),
    C("slabs", ADMIN, parse_admin),
    C("lru", ADMIN, parse_admin),
    C("lru_crawler", ADMIN, parse_admin),
    C("cache_memlimit", ADMIN, parse_admin),
    C("shutdown", ADMIN, parse_admin),
    C("refresh_certs", ADMIN, parse_admin),
    C("extstore", ADMIN, parse_admin),
    C("watch", ADMIN, parse_admin),
    C("debugtime", ADMIN, parse_admin),
    C("kill", ADMIN, parse_admin),
    C("slow", ADMIN, parse_admin),
#undef C
};

enum { N_COMMANDS = sizeof commands / sizeof *commands };

/* NULL: there is none of that name. */
static const struct command *
find_command(const char *bytes, struct span name)
{
    for (size_t i = 0; i < N_COMMANDS; i++) {
        if (commands[i].len == name.len &&
            commands[i].name[0] == bytes[name.at] &&
            memcmp(bytes + name.at, commands[i].name, name.len) == 0) {
            return &commands[i];
        }
    }
    return NULL;
}

/* True for a method of HTTP and what may stand behind it. The end of the line
 * says nothing: who makes an address for others to fetch may put a line break
 * into it, with commands behind. */
static bool
is_http_request(struct words words, struct span command)
{
    static const char *const methods[] = {"GET", "HEAD", "POST", "PUT",
        "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT"};
    struct span word;
    bool is_method = false;
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        is_method |= span_is(words.bytes, command, methods[i]);
    }
    if (!is_method || !words_next(&words, &word)) {
        return false;
    }
    const char *target = words.bytes + word.at;
    return *target == '/' || *target == '*' ||
        memmem(target, word.len, "://", 3) != NULL;
}

/* A line whose last word looks like the end of an HTTP request line, or whose
 * first one is of HTTP. A browser can be made to send a POST whose body is
 * commands; so nothing behind such a line may be executed. */
static bool
is_http(struct words words, struct span command)
{
    struct span word = {0, 0};
    if (is_http_request(words, command) ||
        span_is(words.bytes, command, "POST") ||
        span_is(words.bytes, command, "Host:")) {
        return true;
    }
    while (words_next(&words, &word)) {
    }
    return word.len >= 5 && memcmp(words.bytes + word.at, "HTTP/", 5) == 0;
}

const char text_unknown_word[] = TEXT_UNKNOWN " type help";

/* True for a line that is one word, as people type it. Programs put a key or
 * an argument behind a verb; of two letters are the verbs of meta commands, and
 * a client may ask for one that is new. */
static bool
is_typed_word(const struct line *line, struct span command)
{
    enum { LETTERS_MIN = 3, LETTERS_MAX = 16 };
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    if (command.at > 0 || command.len != line->words.end ||
        command.len < LETTERS_MIN || command.len > LETTERS_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < command.len; i++) {
        if (memchr(letters, line->bytes[i], sizeof letters - 1) == NULL) {
            return false;
        }
    }
    return true;
}

/* A line whose first word is no verb of memcached, or not at its begin. */
static enum parse_status
refuse_unknown(struct line *line, struct span command)
{
    struct request *out = line->out;
    if (is_http(line->words, command)) {
        out->err = ERR_HTTP;
        return PARSE_CLOSE;
    }
    line->words.at = 0; /* one word alone may be noreply */
    out->noreply = text__ends_with_noreply(line);
    bool is_typed = !out->noreply && is_typed_word(line, command);
    return text__fail(line, is_typed ? text_unknown_word : TEXT_UNKNOWN);
}

static enum parse_status
parse_line(struct line *line, const struct schema *schema)
{
    struct span command;
    struct request *out = line->out;
    if (line->line_len < LINE_LEN_MIN) {
        return text__fail(line, TEXT__BAD_FORMAT);
    }
    if (!words_next(&line->words, &command)) {
        return text__fail(line, TEXT_UNKNOWN);
    }
    /* what was memcached's before its data block came stays memcached's */
    if (line->scan->need == 0 &&
        dialect_parse(command, line->words, schema, out)) {
        if (out->op == REQUEST_COUNTER_STORE) {
            skip_block(line);
        }
        return PARSE_REQUEST;
    }
    /* only the dialect's lines may begin with spaces */
    const struct command *found =
        command.at == 0 ? find_command(line->bytes, command) : NULL;
    if (found != NULL) {
        out->op = found->op;
        return found->parse(line);
    }
    return refuse_unknown(line, command);
}

/* True for a line that may be long because it has many keys. Looks at the
 * first TEXT_LINE_MAX bytes only, which are there whenever it is asked, so
 * that the answer does not hang on how much has arrived. */
static bool
is_retrieval(const char *bytes)
{
    static const char *const long_lines[] = {"get ", "gets ", "gat ", "gats "};
    size_t at = 0;
    while (at < TEXT_LINE_MAX && bytes[at] == ' ') {
        at++;
    }
    for (size_t i = 0; i < sizeof long_lines / sizeof *long_lines; i++) {
        size_t n = strlen(long_lines[i]);
        if (at + n <= TEXT_LINE_MAX &&
            memcmp(bytes + at, long_lines[i], n) == 0) {
            return true;
        }
    }
    return false;
}

/* A line longer than any of its kind, of which line_len bytes are there.
 * memcached's clients may have asked for too many keys at once, and are told;
 * whoever else sends as much speaks no protocol of ours. */
static enum parse_status
refuse_long_line(
    const char *bytes, size_t line_len, bool is_whole, struct request *out)
{
    if (!is_retrieval(bytes)) {
        out->err = ERR_LONG_LINE;
        return PARSE_CLOSE;
    }
    request_clear(out);
    out->op = REQUEST_ERROR;
    out->len = (uint32_t)line_len;
    out->error = "CLIENT_ERROR line too long";
    out->err = ERR_LONG_LINE;
    out->closes = true;
    out->swallow_line = !is_whole;
    return PARSE_REQUEST;
}

enum parse_status
text_parse(const char *bytes, size_t len, const struct schema *schema,
    uint64_t value_bytes_max, struct parse_scan *scan, struct request *out)
{
    ASSERT(scan->scanned <= len);
    if (len < scan->need) {
        return PARSE_MORE;
    }
    const char *newline = len == scan->scanned
        ? NULL
        : memchr(bytes + scan->scanned, '\n', len - scan->scanned);
    size_t line_len = newline == NULL ? len : (size_t)(newline - bytes) + 1;
    if (line_len > TEXT_LINE_MAX &&
        (line_len > TEXT_GET_LINE_MAX || !is_retrieval(bytes))) {
        return refuse_long_line(bytes, line_len, newline != NULL, out);
    }
    if (newline == NULL) {
        scan->scanned = len;
        return PARSE_MORE;
    }
    scan->scanned = line_len - 1; /* found again if a data block is missing */
    uint32_t end = (uint32_t)line_len - 1;
    if (end > 0 && bytes[end - 1] == '\r') {
        end--;
    }
    request_clear(out);
    out->op = REQUEST_ERROR;
    out->len = (uint32_t)line_len;
    struct line line = {.bytes = bytes,
        .len = len,
        .line_len = (uint32_t)line_len,
        .value_bytes_max = value_bytes_max,
        .words = {bytes, 0, end},
        .scan = scan,
        .out = out};
    return parse_line(&line, schema);
}
