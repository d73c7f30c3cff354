/* SPDX-License-Identifier: BSD-3-Clause */
/* The meta commands of memcached 1.6: `mg key v t`, two letters, a key and
 * flags of one letter, some with a token behind it. All flags are known to all
 * commands; what a command has no use for is let pass. L and P are hints for a
 * proxy and mean nothing to items; on a cell P numbers the change of ma, ms and
 * md, which whoever executes it looks at, and a token that memcached does not
 * look at is one too many.
 *
 * A line is read in this order, which settles what is answered where several
 * things are wrong with it: words (a flag begins with a letter or a digit),
 * the key's length, the number of flags, the flags one by one, the mode. An
 * unknown or repeated flag ends it at once; of bad tokens the last one is told.
 * ma has one text for all that is wrong with its flags, as memcached has. */
#include "proto/meta.h"

#include "base/base64.h"
#include "base/num.h"

enum {
    LINE_WORDS_MAX = 20,  /* more are an error ... */
    LINE_WORDS_READ = 23, /* ... and behind these nothing is looked at */
    I32_TEXT_MAX = 11,
    U64_TEXT_MAX = 22
};

#define BAD_TOKEN "CLIENT_ERROR bad token in command line format"

/* What stands behind a flag's letter. */
enum token {
    TOKEN_UNKNOWN, /* there is no such flag */
    TOKEN_NONE,    /* nothing, or nothing that is looked at */
    TOKEN_MODE,    /* a letter, what follows it is not looked at */
    TOKEN_BASE64,  /* nothing; the key must be base64 */
    TOKEN_I32,     /* an exptime */
    TOKEN_U32,
    TOKEN_U64
};

enum { FLAGS = 'z' - 'A' + 1 };

/* By letter, from 'A' on. */
static const struct flag {
    enum token token;
    const char *error; /* told where the token is wrong; NULL: what was wrong
                        * before it, or the format */
} flag_of[FLAGS] = {
#define F(letter, kind, text) [(letter) - 'A'] = {TOKEN_##kind, text}
    F('C', U64, BAD_TOKEN), /* compare the cas */
    F('D', U64, "CLIENT_ERROR invalid numeric delta value"),
    F('E', U64, BAD_TOKEN), /* the new cas */
    F('F', U32, NULL),      /* client flags */
    F('I', NONE, NULL),     /* invalidate */
    F('J', U64, "CLIENT_ERROR invalid numeric initial value"),
    F('L', NONE, NULL),     /* a proxy's */
    F('M', MODE, NULL),     /* which of several commands */
    F('N', I32, BAD_TOKEN), /* make what is missing, with this exptime */
    F('O', NONE, NULL),     /* opaque, sent back */
    F('P', NONE, NULL),     /* a proxy's, or PRODUCER:NUMBER */
    F('R', I32, BAD_TOKEN), /* recache when less is left */
    F('T', I32, BAD_TOKEN), /* exptime */
    F('b', BASE64, "CLIENT_ERROR error decoding key"),
    F('c', NONE, NULL), /* say the cas */
    F('f', NONE, NULL), /* say the client flags */
    F('h', NONE, NULL), /* say whether it has been read before */
    F('k', NONE, NULL), /* say the key */
    F('l', NONE, NULL), /* say the time since the last use */
    F('q', NONE, NULL), /* quiet */
    F('s', NONE, NULL), /* say the size */
    F('t', NONE, NULL), /* say the time left */
    F('u', NONE, NULL), /* not a use */
    F('v', NONE, NULL), /* say the value */
    F('x', NONE, NULL), /* the value goes, the item stays */
#undef F
};

/* The flags of one line. */
struct flags {
    uint64_t seen;         /* a bit a letter */
    uint64_t number[26];   /* the token, by capital letter; of an exptime as
                            * int64_t */
    char mode;             /* 0: none */
    uint32_t at[26];       /* where it stands, likewise */
    struct span proxy;     /* the token of P; at 0: there is none */
    struct span idle;      /* a flag with a token that is not looked at; at 0:
                            * there is none */
    bool has_long_opaque;  /* found wrong only when all else is right */
    const char *bad_token; /* the reply to the last one; NULL: none */
    bool has_bad;          /* one of them was wrong */
};

static uint64_t
bit_of(char letter)
{
    return UINT64_C(1) << (letter - 'A');
}

static bool
has(const struct flags *flags, char letter)
{
    return (flags->seen & bit_of(letter)) != 0;
}

static uint64_t
number_of(const struct flags *flags, char letter)
{
    return flags->number[letter - 'A'];
}

static bool
is_letter(char c)
{
    return c >= 'A' && c <= 'z'; /* and some between, which no flag has */
}

/* A number of at most 32 bits with a minus or without. A minus alone is 0, as
 * it is to memcached. */
static bool
parse_i32(const char *text, size_t len, int64_t *out)
{
    bool is_negative = len > 0 && text[0] == '-';
    uint64_t magnitude = 0;
    if (len == 0 || len > I32_TEXT_MAX) {
        return false;
    }
    if (len > (is_negative ? 1U : 0U) &&
        !num_parse_u64(text + is_negative, len - is_negative, &magnitude)) {
        return false;
    }
    if (magnitude > (uint64_t)INT32_MAX + is_negative) {
        return false;
    }
    *out = is_negative ? -(int64_t)magnitude : (int64_t)magnitude;
    return true;
}

/* Reads the token of a flag: false where it is wrong. */
static bool
take_token(const struct line *line, enum token kind, struct span token,
    char letter, struct flags *flags)
{
    const struct span key = line->out->key;
    const char *text = line->bytes + token.at;
    uint64_t *number = &flags->number[(letter - 'A') % 26];
    int64_t exptime = 0;
    uint32_t short_number = 0;
    size_t unused;
    bool fits = true;
    switch (kind) {
    case TOKEN_UNKNOWN:
    case TOKEN_NONE:
        break;
    case TOKEN_MODE: /* with none, the byte behind it is no mode either */
        flags->mode = token.len > 0 ? text[0] : ' ';
        break;
    case TOKEN_BASE64:
        return base64_check(line->bytes + key.at, key.len, &unused);
    case TOKEN_I32:
        fits = parse_i32(text, token.len, &exptime);
        *number = (uint64_t)exptime;
        break;
    case TOKEN_U32:
        fits = token.len <= I32_TEXT_MAX &&
            num_parse_u32(text, token.len, &short_number);
        *number = short_number;
        break;
    case TOKEN_U64:
        fits = token.len <= U64_TEXT_MAX &&
            num_parse_u64(text, token.len, number);
        break;
    }
    return fits;
}

/* How many bytes behind a flag mean something. */
static uint32_t
looked_at(char letter)
{
    switch (flag_of[letter - 'A'].token) {
    case TOKEN_NONE:
    case TOKEN_BASE64:
        return letter == 'O' || letter == 'L' ? UINT32_MAX : 0;
    case TOKEN_MODE:
        return 1;
    default:
        return UINT32_MAX;
    }
}

/* Takes one flag. NULL, or the reply to a line that is not read on. */
static const char *
take_flag(const struct line *line, struct span word, struct flags *flags)
{
    char letter = line->bytes[word.at];
    struct span token = {word.at + 1, word.len - 1};
    if (!is_letter(letter) || flag_of[letter - 'A'].token == TOKEN_UNKNOWN) {
        return "CLIENT_ERROR invalid flag";
    }
    if (has(flags, letter)) {
        return "CLIENT_ERROR duplicate flag";
    }
    const struct flag *flag = &flag_of[letter - 'A'];
    flags->seen |= bit_of(letter);
    if (letter <= 'Z') {
        flags->at[letter - 'A'] = word.at;
    }
    if (!take_token(line, flag->token, token, letter, flags)) {
        flags->has_bad = true;
        if (flag->error != NULL) {
            flags->bad_token = flag->error;
        }
    }
    if (letter == 'P') {
        flags->proxy = token;
    } else if (token.len > looked_at(letter)) {
        flags->idle = word;
    }
    if (letter == 'O' && word.len > META_OPAQUE_MAX) {
        flags->has_long_opaque = true;
    }
    return NULL;
}

/* Takes all flags that are left; n_before words stand before them. NULL, or
 * the reply. */
static const char *
take_flags(struct line *line, unsigned n_before, struct flags *flags)
{
    struct words words = line->words;
    struct span word;
    unsigned n = n_before;
    if (line->out->key.len > TEXT_KEY_MAX) {
        return TEXT__BAD_FORMAT;
    }
    while (words_next(&words, &word)) {
        n++;
    }
    if (n > LINE_WORDS_MAX) {
        return "CLIENT_ERROR options flags are too long";
    }
    while (words_next(&line->words, &word)) {
        const char *error = take_flag(line, word, flags);
        if (error != NULL) {
            return error;
        }
    }
    if (!flags->has_bad) {
        return NULL;
    }
    return flags->bad_token != NULL ? flags->bad_token : TEXT__BAD_FORMAT;
}

/* True where every flag begins with something that a flag may begin with. */
static bool
are_flags(struct words words, unsigned n_before)
{
    struct span word;
    for (unsigned n = n_before; n < LINE_WORDS_READ; n++) {
        if (!words_next(&words, &word)) {
            return true;
        }
        char c = words.bytes[word.at];
        if (!is_letter(c) && (c < '0' || c > '9')) {
            return false;
        }
    }
    return true;
}

/* Takes the key, and all that follows it but a length: of a line that is not
 * a line of this protocol the reply is made, and false returned. */
static bool
take_words(struct line *line, uint32_t *len_bytes)
{
    struct request *out = line->out;
    unsigned n_before = len_bytes == NULL ? 2 : 3;
    bool fits = words_next(&line->words, &out->key);
    out->proto = PROTO_META;
    if (!fits || (len_bytes != NULL && !text__take_len(line, len_bytes))) {
        text__fail(line, TEXT__BAD_FORMAT);
        return false;
    }
    if (!are_flags(line->words, n_before)) {
        if (len_bytes != NULL) {
            text__fail_and_skip(line, *len_bytes, TEXT__BAD_FORMAT);
        } else {
            text__fail(line, TEXT__BAD_FORMAT);
        }
        return false;
    }
    out->meta = words_rest(&line->words);
    return true;
}

/* What the flags of a change say to a cell or record: which number it has, and
 * whether there is something that could be meant to be one. */
static void
take_number(const struct flags *flags, struct request *out)
{
    out->has_more = flags->idle.at != 0;
    out->tx = out->has_more ? flags->idle : flags->proxy;
}

/* What the flags say to every command. */
static void
fill(const struct flags *flags, struct request *out)
{
    out->is_quiet = has(flags, 'q');
    out->key_is_base64 = has(flags, 'b');
    out->exptime = (int64_t)number_of(flags, 'T');
    out->terms = (struct terms){.touches = has(flags, 'T'),
        .vivifies = has(flags, 'N'),
        .wants_value = has(flags, 'v'),
        .new_cas = number_of(flags, 'E'),
        .vivify_exptime = (int64_t)number_of(flags, 'N')};
}

/* True where both flags are there, in this order. */
static bool
stands_before(const struct flags *flags, char first, char second)
{
    return has(flags, first) && has(flags, second) &&
        flags->at[first - 'A'] < flags->at[second - 'A'];
}

/* Of T and N, on what N makes the later one counts. */
static void
take_last_exptime(const struct flags *flags, struct request *out)
{
    if (stands_before(flags, 'N', 'T')) {
        out->terms.vivify_exptime = out->exptime;
    }
}

#define LONG_OPAQUE "CLIENT_ERROR opaque token too long"

/* The key and the flags of a command without a block; false where something is
 * wrong with them, and the reply is made. */
static bool
take_all(struct line *line, struct flags *flags)
{
    if (!take_words(line, NULL)) {
        return false;
    }
    const char *error = take_flags(line, 2, flags);
    if (error == NULL && flags->has_long_opaque) {
        error = LONG_OPAQUE;
    }
    if (error != NULL) {
        text__fail(line, error);
        return false;
    }
    fill(flags, line->out);
    return true;
}

/* mg <key> <flags>*: C is looked at by who makes the reply. */
enum parse_status
meta__parse_get(struct line *line)
{
    struct request *out = line->out;
    struct flags flags = {0};
    if (!take_all(line, &flags)) {
        return PARSE_REQUEST;
    }
    take_last_exptime(&flags, out);
    out->terms.peeks = has(&flags, 'u');
    out->terms.recaches = has(&flags, 'R');
    out->terms.recaches_first = stands_before(&flags, 'R', 'T');
    out->terms.recache_s = (int64_t)number_of(&flags, 'R');
    return PARSE_REQUEST;
}

/* The storage command that the M flag names; false where it names none. */
static bool
take_store_mode(const struct flags *flags, struct request *out)
{
    switch (flags->mode) {
    case 0:
    case 'S':
        out->op = REQUEST_SET;
        return true;
    case 'E':
        out->op = REQUEST_ADD;
        return true;
    case 'A':
        out->op = REQUEST_APPEND;
        return true;
    case 'P':
        out->op = REQUEST_PREPEND;
        return true;
    case 'R':
        out->op = REQUEST_REPLACE;
        return true;
    default:
        return false;
    }
}

/* A cas turns set and replace into the cas command; add has no use for it, and
 * for append and prepend 0 is none. */
static void
take_store_cas(const struct flags *flags, struct request *out)
{
    uint64_t cas = number_of(flags, 'C');
    out->terms.cas = cas;
    switch (out->op) {
    case REQUEST_SET:
    case REQUEST_REPLACE:
        out->op = REQUEST_CAS;
        out->terms.outdates = has(flags, 'I');
        break;
    case REQUEST_APPEND:
    case REQUEST_PREPEND:
        out->terms.compares = cas != 0;
        break;
    default:
        break;
    }
}

/* ms <key> <datalen> <flags>*: the data block is read, or skipped, as soon as
 * its length is known. */
enum parse_status
meta__parse_set(struct line *line)
{
    struct request *out = line->out;
    struct flags flags = {0};
    uint32_t len_bytes;
    if (!take_words(line, &len_bytes)) {
        return PARSE_REQUEST;
    }
    const char *error = take_flags(line, 3, &flags);
    if (error == NULL && !take_store_mode(&flags, out)) {
        error = "CLIENT_ERROR invalid mode for ms M token";
    }
    if (error == NULL && flags.has_long_opaque &&
        len_bytes <= line->value_bytes_max) {
        error = LONG_OPAQUE;
    }
    if (error != NULL) {
        return text__fail_and_skip(line, len_bytes, error);
    }
    fill(&flags, out);
    take_number(&flags, out);
    out->flags = (uint32_t)number_of(&flags, 'F');
    if (out->op != REQUEST_APPEND && out->op != REQUEST_PREPEND) {
        out->terms.vivifies = false;
        out->terms.vivify_exptime = 0;
    }
    if (has(&flags, 'C')) {
        take_store_cas(&flags, out);
    }
    return text__take_value(line, len_bytes);
}

/* md <key> <flags>* */
enum parse_status
meta__parse_delete(struct line *line)
{
    struct request *out = line->out;
    struct flags flags = {0};
    if (!take_all(line, &flags)) {
        return PARSE_REQUEST;
    }
    take_number(&flags, out);
    out->terms.vivifies = false;
    out->terms.compares = has(&flags, 'C');
    out->terms.cas = number_of(&flags, 'C');
    out->terms.outdates = has(&flags, 'I');
    out->terms.empties = has(&flags, 'x');
    out->flags = (uint32_t)number_of(&flags, 'F');
    return PARSE_REQUEST;
}

static bool
take_arith_mode(const struct flags *flags, struct request *out)
{
    switch (flags->mode) {
    case 0:
    case 'I':
    case '+':
        out->op = REQUEST_INCR;
        return true;
    case 'D':
    case '-':
        out->op = REQUEST_DECR;
        return true;
    default:
        return false;
    }
}

/* ma <key> <flags>* */
enum parse_status
meta__parse_arith(struct line *line)
{
    struct request *out = line->out;
    struct flags flags = {0};
    if (!take_words(line, NULL)) {
        return PARSE_REQUEST;
    }
    if (take_flags(line, 2, &flags) != NULL) {
        return text__fail(line, "CLIENT_ERROR invalid or duplicate flag");
    }
    if (!take_arith_mode(&flags, out)) {
        return text__fail(line, "CLIENT_ERROR invalid mode for ma M token");
    }
    if (flags.has_long_opaque) {
        return text__fail(line, LONG_OPAQUE);
    }
    fill(&flags, out);
    take_last_exptime(&flags, out);
    take_number(&flags, out);
    out->number = has(&flags, 'D') ? number_of(&flags, 'D') : 1;
    out->terms.initial = number_of(&flags, 'J');
    out->terms.cas = number_of(&flags, 'C');
    out->terms.compares = out->terms.cas != 0;
    return PARSE_REQUEST;
}

/* mn, whatever stands behind it. */
enum parse_status
meta__parse_noop(struct line *line)
{
    line->out->proto = PROTO_META;
    return PARSE_REQUEST;
}

/* me <key> [b]: flags behind the first are not looked at. */
enum parse_status
meta__parse_inspect(struct line *line)
{
    struct request *out = line->out;
    struct words words;
    struct span word;
    size_t unused;
    if (!take_words(line, NULL)) {
        return PARSE_REQUEST;
    }
    words = line->words;
    out->key_is_base64 =
        words_next(&words, &word) && span_is(line->bytes, word, "b");
    if (out->key.len > TEXT_KEY_MAX ||
        (out->key_is_base64 &&
            !base64_check(line->bytes + out->key.at, out->key.len, &unused))) {
        return text__fail(line, TEXT__BAD_FORMAT);
    }
    return PARSE_REQUEST;
}
