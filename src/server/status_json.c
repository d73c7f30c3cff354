/* SPDX-License-Identifier: BSD-3-Clause */
/* Figures as JSON. Nothing is read here, and what is written is texts, numbers
 * and objects in one order: no library. */
#include "server/status_json.h"

#include <config.h>
#include <inttypes.h>
#include <string.h>

/* Beyond so many digits what reads it may round: those are texts. */
enum { DIGITS_MAX = 15 };

/* Bytes that are no ASCII are said as if they were Latin-1: what comes out is
 * UTF-8 whatever a client has put into a name. */
static void
put_text(const char *text, size_t len, struct buf *out)
{
    buf_add(out, "\"", 1);
    for (size_t i = 0; i < len; i++) {
        unsigned char byte = (unsigned char)text[i];
        if (byte == '"' || byte == '\\') {
            buf_addf(out, "\\%c", byte);
        } else if (byte < ' ' || byte > '~') {
            buf_addf(out, "\\u%04x", byte);
        } else {
            buf_add(out, &text[i], 1);
        }
    }
    buf_add(out, "\"", 1);
}

static size_t
digits_of(const char *text, size_t len)
{
    size_t n = 0;
    while (n < len && text[n] >= '0' && text[n] <= '9') {
        n++;
    }
    return n;
}

/* True of 0, 17 and 0.25, not of 017 or 1.2.3. */
static bool
is_number(const char *text, size_t len)
{
    size_t whole = digits_of(text, len);
    if (whole == 0 || len > DIGITS_MAX || (whole > 1 && text[0] == '0')) {
        return false;
    }
    if (whole == len) {
        return true;
    }
    size_t rest = len - whole - 1;
    return text[whole] == '.' && rest > 0 &&
        digits_of(text + whole + 1, rest) == rest;
}

static void
put_group(
    const struct figures *figures, enum figures_group group, struct buf *out)
{
    struct figures_pair pair;
    size_t at = 0;
    const char *before = "";
    buf_addf(out, "\"%s\":{", figures_group_name(group));
    while (figures_next(figures, group, &at, &pair)) {
        buf_add_text(out, before);
        put_text(pair.name, pair.name_len, out);
        buf_add(out, ":", 1);
        if (is_number(pair.value, pair.value_len)) {
            buf_add(out, pair.value, pair.value_len);
        } else {
            put_text(pair.value, pair.value_len, out);
        }
        before = ",";
    }
    buf_add(out, "}", 1);
}

/* "what; what to do" */
static void
put_problem(const char *problem, struct buf *out)
{
    const char *end = strstr(problem, "; ");
    size_t len = end == NULL ? strlen(problem) : (size_t)(end - problem);
    const char *advice = end == NULL ? "" : end + 2;
    buf_add_text(out, "{\"what\":");
    put_text(problem, len, out);
    buf_add_text(out, ",\"do\":");
    put_text(advice, strlen(advice), out);
    buf_add(out, "}", 1);
}

void
status_json_put(const struct figures *figures, const struct health *health,
    int64_t unix_ms, struct buf *out)
{
    const char *word = health_word(health->state);
    buf_addf(out, "{\"version\":\"%s\",\"unix_ms\":%" PRId64 ",\"state\":",
        PACKAGE_VERSION, unix_ms);
    put_text(word, strlen(word), out);
    if (health->state == HEALTH_LOADING) {
        buf_addf(out, ",\"percent\":%u", health->percent);
    }
    buf_add_text(out, ",\"problems\":[");
    for (unsigned i = 0; i < health->n; i++) {
        buf_add_text(out, i == 0 ? "" : ",");
        put_problem(health->problem[i], out);
    }
    buf_add_text(out, "],\"stats\":{");
    for (unsigned i = 0; i < FIGURES_GROUPS_COUNT; i++) {
        buf_add_text(out, i == 0 ? "" : ",");
        put_group(figures, i, out);
    }
    buf_add_text(out, "}}\n");
}
