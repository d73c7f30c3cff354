/* SPDX-License-Identifier: BSD-3-Clause */
/* A memcached that runs: it lists its keys (lru_crawler mgdump; metadump, where
 * it is older than that), and values are asked for by a second connection, many
 * at a time. Where another one lists at the same time it says BUSY, and the
 * import ends with that. */
#include "cli/import_priv.h"

#include "base/assert.h"
#include "base/num.h"

#include <stdio.h>
#include <string.h>

enum { KEYS = 100, KEY_MAX = 250, TIMEOUT_MS = 60000 };

struct question {
    const struct import_rule *rule;
    struct rows_id id; /* in key */
    uint8_t len;
    char key[KEY_MAX];
};

struct asking {
    struct import *job;
    struct talk list, values;
    struct question question[KEYS];
    unsigned n;
    unsigned at;     /* which value is read */
    bool is_value;   /* the next line is the value of that, */
    uint64_t bytes;  /* so long */
    bool is_unknown; /* it does not know the command that lists keys */
    struct buf line; /* the get */
    struct buf put;
};

/* ---- values ---- */

/* VALUE KEY FLAGS BYTES: which question it answers; those between have no
 * value. */
static bool
take_value_head(struct asking *asking, const char *line, size_t len)
{
    static const char begin[] = "VALUE ";
    const char *key = line + sizeof begin - 1;
    const char *end = len > sizeof begin - 1
        ? memchr(key, ' ', len - (sizeof begin - 1))
        : NULL;
    size_t key_len = end == NULL ? 0 : (size_t)(end - key);
    const char *last = memrchr(line, ' ', len);
    if (last == NULL ||
        !num_parse_u64(
            last + 1, (size_t)(line + len - last - 1), &asking->bytes)) {
        return false;
    }
    for (; key_len > 0 && asking->at < asking->n; asking->at++) {
        const struct question *one = &asking->question[asking->at];
        if (one->len == key_len && memcmp(one->key, key, key_len) == 0) {
            asking->is_value = true;
            return true;
        }
    }
    return false;
}

static bool
take_value(struct asking *asking, const char *line, size_t len)
{
    const struct question *one = &asking->question[asking->at++];
    asking->is_value = false;
    if (len != asking->bytes) { /* what follows is not to be taken for more */
        return import__fail(asking->job,
            "%.80s: the value of %.*s has ends of lines in it, and is no "
            "number: give a --map that it does not fit, or delete it",
            asking->values.at.text, (int)one->len, one->key);
    }
    /* memcached leaves spaces behind a number that went down */
    while (len > 0 && line[len - 1] == ' ') {
        len--;
    }
    buf_clear(&asking->put);
    return import_map_put(one->rule, &one->id, line, len, &asking->put)
        ? import__put(asking->job, &asking->put, one->key, one->len)
        : import__reject(
              asking->job, "the value is no whole number", one->key, one->len);
}

static enum talk_take
take_answer(void *context, const char *line, size_t len)
{
    struct asking *asking = context;
    if (asking->is_value) {
        return take_value(asking, line, len) ? TALK_MORE : TALK_WRONG;
    }
    if (talk_is(line, len, "END")) {
        return TALK_END;
    }
    return talk_begins(line, len, "VALUE ") &&
            take_value_head(asking, line, len)
        ? TALK_MORE
        : TALK_WRONG;
}

static bool
is_gone(struct asking *asking, const struct talk *talk)
{
    return asking->job->why[0] != '\0'
        ? false
        : import__fail(asking->job, "%s", talk->why);
}

static bool
ask_values(struct asking *asking)
{
    if (asking->n == 0) {
        return true;
    }
    buf_clear(&asking->line);
    buf_add_text(&asking->line, "get");
    for (unsigned i = 0; i < asking->n; i++) {
        buf_add_text(&asking->line, " ");
        buf_add(
            &asking->line, asking->question[i].key, asking->question[i].len);
    }
    buf_add_text(&asking->line, "\r\n");
    if (asking->line.failed) {
        return import__fail(asking->job, "out of memory");
    }
    asking->at = 0;
    asking->is_value = false;
    if (!talk_ask(&asking->values, asking->line.data, asking->line.len,
            take_answer, asking)) {
        return is_gone(asking, &asking->values);
    }
    asking->n = 0;
    return !import__is_full(asking->job) || import__flush(asking->job, 0);
}

/* ---- keys ---- */

static int
hex_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0'
        : c >= 'A' && c <= 'F'  ? c - 'A' + 10
        : c >= 'a' && c <= 'f'  ? c - 'a' + 10
                                : -1;
}

/* A key as metadump writes it, with %XX. Its length; 0: it is none. */
static size_t
decode(const char *text, size_t len, char out[KEY_MAX])
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++, n++) {
        bool is_coded = text[i] == '%';
        int high = is_coded && i + 2 < len ? hex_of(text[i + 1]) : 0;
        int low = is_coded && i + 2 < len ? hex_of(text[i + 2]) : 0;
        if (n == KEY_MAX || (is_coded && i + 2 >= len) || high < 0 ||
            low < 0) {
            return 0;
        }
        out[n] = is_coded ? (char)(high * 16 + low) : text[i];
        i += is_coded ? 2 : 0;
    }
    return n;
}

/* "mg KEY", with a flag b where the key is in base64, for it has a byte that no
 * key of a rule has; or "key=KEY exp=...". Its length; 0: it is passed over. */
static size_t
key_of(const char *line, size_t len, char out[KEY_MAX])
{
    size_t head = talk_begins(line, len, "mg ") ? 3 : 4;
    const char *key = line + head, *space = memchr(key, ' ', len - head);
    size_t n = space == NULL ? len - head : (size_t)(space - key);
    if (head == 4) {
        return decode(key, n, out);
    }
    if (n > KEY_MAX ||
        (space != NULL &&
            talk_begins(space, (size_t)(line + len - space), " b"))) {
        return 0;
    }
    memcpy(out, key, n);
    return n;
}

static enum talk_take
take_key(void *context, const char *line, size_t len)
{
    struct asking *asking = context;
    struct question *one = &asking->question[asking->n];
    if (talk_is(line, len, "EN") || talk_is(line, len, "END")) {
        return TALK_END;
    }
    if (!talk_begins(line, len, "mg ") && !talk_begins(line, len, "key=")) {
        asking->is_unknown = talk_is(line, len, "ERROR");
        return TALK_WRONG;
    }
    size_t n = key_of(line, len, one->key);
    one->rule = import_map_find(&asking->job->map, 0, one->key, n, &one->id);
    if (n == 0 || one->rule == NULL) {
        return import__pass_over(asking->job, one->key, n) ? TALK_MORE
                                                           : TALK_WRONG;
    }
    one->len = (uint8_t)n;
    asking->n++;
    return asking->n < KEYS || ask_values(asking) ? TALK_MORE : TALK_WRONG;
}

static bool
list_keys(struct asking *asking, const char *command)
{
    asking->is_unknown = false;
    return talk_connect(&asking->list) &&
        talk_ask(&asking->list, command, strlen(command), take_key, asking);
}

static bool
knows_values_only(struct import *job)
{
    for (unsigned i = 0; i < job->map.n; i++) {
        if (job->map.rule[i].members >= 0 || job->map.rule[i].field_len > 0) {
            return import__fail(job,
                "memcached has numbers: --map without members and fields");
        }
    }
    return true;
}

bool
import__memcached(struct import *job)
{
    static struct asking asking;
    const struct talk talk = {.fd = -1, .timeout_ms = TIMEOUT_MS};
    asking.job = job;
    asking.list = asking.values = talk;
    (void)talk_take_servers(&asking.list, job->input);
    (void)talk_take_servers(&asking.values, job->input);
    shown_begin(&job->shown, "rows", 0);
    bool is_done = knows_values_only(job);
    if (is_done && !talk_connect(&asking.values)) {
        is_done = import__fail(job, "%s", asking.values.why);
    }
    if (is_done && !list_keys(&asking, "lru_crawler mgdump hash\r\n") &&
        !(asking.is_unknown &&
            list_keys(&asking, "lru_crawler metadump hash\r\n"))) {
        is_done = is_gone(&asking, &asking.list);
    }
    is_done = is_done && ask_values(&asking) && import__flush(job, 0);
    talk_fini(&asking.list);
    talk_fini(&asking.values);
    buf_fini(&asking.line);
    buf_fini(&asking.put);
    return is_done;
}
