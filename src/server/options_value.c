/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of options: text in, field of struct options out.
 *
 * A refused text leaves the field as it was, except that a list keeps the
 * entries before the refused one; whoever gave it is told what is wanted, in
 * the words of options__add_refusal, and nothing starts. */
#include "server/options_value.h"

#include "base/num.h"
#include "server/process.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    GIB_SHIFT = 30,
    MIB_SHIFT = 20,
    KIB_SHIFT = 10,
    OCTAL_DIGITS_MAX = 4,
    THOUSANDTHS = 1000
};

/* The length of a number. Its unit may be said where that is milliseconds,
 * which nobody should take for seconds. */
static size_t
number_length(const struct options_row *row, const char *text)
{
    size_t len = strlen(text);
    bool has_unit = row->argument != NULL &&
        strcmp(row->argument, "MS") == 0 && len > 2 &&
        strcmp(text + len - 2, "ms") == 0;
    return has_unit ? len - 2 : len;
}

static bool
set_number(const struct options_row *row, const char *text, int *out)
{
    int64_t number;
    if (!num_parse_i64(text, number_length(row, text), &number) ||
        number < row->lowest || number > row->highest) {
        return false;
    }
    if (row->type == OPTIONS_TYPE_POWER_OF_TWO &&
        (number & (number - 1)) != 0) {
        return false;
    }
    *out = (int)number;
    return true;
}

static bool
set_whole(const struct options_row *row, const char *text, uint64_t *out)
{
    uint64_t number;
    if (!num_parse_u64(text, strlen(text), &number) ||
        number < (uint64_t)row->lowest || number > (uint64_t)row->highest) {
        return false;
    }
    *out = number;
    return true;
}

static bool
set_fraction(const struct options_row *row, const char *text, double *out)
{
    char *end;
    double number = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(number) ||
        number * THOUSANDTHS < (double)row->lowest ||
        number * THOUSANDTHS > (double)row->highest) {
        return false;
    }
    *out = number;
    return true;
}

/* The place of a word among those of the argument, "this|that". */
static bool
set_choice(const struct options_row *row, const char *text, int *out)
{
    size_t len = strlen(text);
    const char *word = row->argument;
    for (int i = 0;; i++) {
        size_t n = strcspn(word, "|");
        if (n == len && memcmp(word, text, n) == 0) {
            *out = i;
            return true;
        }
        if (word[n] == '\0') {
            return false;
        }
        word += n + 1;
    }
}

static bool
set_octal(const struct options_row *row, const char *text, int *out)
{
    int number = 0;
    size_t len = strlen(text);
    if (len == 0 || len > OCTAL_DIGITS_MAX) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '7') {
            return false;
        }
        number = number * 8 + (text[i] - '0');
    }
    if (number < row->lowest || number > row->highest) {
        return false;
    }
    *out = number;
    return true;
}

static unsigned
shift_of_unit(char unit)
{
    switch (unit) {
    case 'k':
    case 'K':
        return KIB_SHIFT;
    case 'm':
    case 'M':
        return MIB_SHIFT;
    case 'g':
    case 'G':
        return GIB_SHIFT;
    default:
        return 0;
    }
}

/* Bytes with k, m or g behind, or megabytes. */
static bool
set_size(const struct options_row *row, const char *text, uint64_t *out)
{
    uint64_t number;
    unsigned shift = 0;
    size_t len = strlen(text);
    if (row->type != OPTIONS_TYPE_MEGABYTES && len > 0) {
        shift = shift_of_unit(text[len - 1]);
        len -= shift != 0;
    }
    if (!num_parse_u64(text, len, &number) || number > UINT64_MAX >> shift) {
        return false;
    }
    number <<= shift;
    if (number < (uint64_t)row->lowest || number > (uint64_t)row->highest) {
        return false;
    }
    *out = row->type == OPTIONS_TYPE_MEGABYTES ? number << MIB_SHIFT : number;
    return true;
}

/* Half of the memory there is, within the option's range; its lowest where
 * nobody can tell. */
static uint64_t
half_of_memory(const struct options_row *row)
{
    uint64_t half = process_memory_bytes() / 2;
    if (half < (uint64_t)row->lowest) {
        return (uint64_t)row->lowest;
    }
    return half > (uint64_t)row->highest ? (uint64_t)row->highest : half;
}

static bool
set_size_or_auto(
    const struct options_row *row, const char *text, uint64_t *out)
{
    if (strcmp(text, "auto") == 0) {
        *out = half_of_memory(row);
        return true;
    }
    return set_size(row, text, out);
}

/* True where a text is as long as it may be. */
static bool
fits(const struct options_row *row, const char *text)
{
    size_t len = strlen(text);
    return len >= (size_t)row->lowest && len <= (size_t)row->highest;
}

static bool
set_text(
    const struct options_row *row, const char *text, struct options_text *out)
{
    if (!fits(row, text)) {
        return false;
    }
    memcpy(out->text, text, strlen(text) + 1);
    return true;
}

/* Where the host in text[0..*len) ends: *len becomes its length, and the rest
 * behind is returned: "" or ":PORT" or rubbish. Brackets are not part of it,
 * and an IPv6 address without brackets has no port. */
static const char *
find_host(const char **text, size_t *len)
{
    const char *end = *text + *len;
    const char *colon = memchr(*text, ':', *len);
    if (**text == '[') {
        const char *bracket = memchr(*text, ']', *len);
        if (bracket == NULL) {
            return NULL;
        }
        (*text)++;
        *len = (size_t)(bracket - *text);
        return bracket + 1;
    }
    if (colon == NULL || memchr(colon + 1, ':', (size_t)(end - colon) - 1)) {
        return end;
    }
    *len = (size_t)(colon - *text);
    return colon;
}

/* Takes a word with a colon from the front of text[0..*len), if it is there. */
static bool
take_word(const char *word, const char **text, size_t *len)
{
    size_t n = strlen(word);
    if (*len < n || memcmp(*text, word, n) != 0) {
        return false;
    }
    *text += n;
    *len -= n;
    return true;
}

static enum options_tls
take_tls(const char **text, size_t *len)
{
    return take_word("notls:", text, len) ? OPTIONS_TLS_NOT
        : take_word("btls:", text, len)   ? OPTIONS_TLS_ANYONE
        : take_word("mtls:", text, len)   ? OPTIONS_TLS_KNOWN
                                          : OPTIONS_TLS_DEFAULT;
}

/* Takes "proto[WORD]:" from the front of text[0..*len). memcached's word for
 * auto is negotiating. False where another word is there. */
static bool
take_protocol(const char **text, size_t *len, int *protocol)
{
    static const struct {
        const char *text;
        int protocol;
    } forms[] = {{"proto[ascii]:", OPTIONS_PROTOCOL_ASCII},
        {"proto[binary]:", OPTIONS_PROTOCOL_BINARY},
        {"proto[negotiating]:", OPTIONS_PROTOCOL_AUTO}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (take_word(forms[i].text, text, len)) {
            *protocol = forms[i].protocol;
            return true;
        }
    }
    return strncmp(*text, "proto[", strlen("proto[")) != 0;
}

/* Skips "tag[NAME]:" or "tag_NAME_:", which name a listener for a proxy. */
static void
skip_tag(const char **text, size_t *len)
{
    static const char tag[] = "tag";
    size_t n = strlen(tag);
    if (*len <= n || memcmp(*text, tag, n) != 0 ||
        ((*text)[n] != '[' && (*text)[n] != '_')) {
        return;
    }
    char end = (*text)[n] == '[' ? ']' : '_';
    const char *last = memchr(*text + n + 1, end, *len - n - 1);
    if (last != NULL && last + 1 < *text + *len && last[1] == ':') {
        *len -= (size_t)(last + 2 - *text);
        *text = last + 2;
    }
}

/* True where the list has the address already: memcached's is no list twice. */
static bool
has_address(const struct options_addresses *list,
    const struct options_address *address)
{
    for (unsigned i = 0; i < list->n; i++) {
        if (list->address[i].port == address->port &&
            strcmp(list->address[i].host, address->host) == 0) {
            return true;
        }
    }
    return false;
}

static bool
add_address(const struct options_row *row, const char *text, size_t len,
    struct options_addresses *out)
{
    const char *end = text + len;
    uint32_t port = OPTIONS_NO_PORT;
    struct options_address address = {.protocol = OPTIONS_PROTOCOL_AUTO};

    address.tls = take_tls(&text, &len);
    if (!take_protocol(&text, &len, &address.protocol)) {
        return false;
    }
    skip_tag(&text, &len);
    if (len == 0) {
        return false;
    }
    const char *rest = find_host(&text, &len);
    if (rest == NULL || len == 0 || len >= OPTIONS_HOST_BYTES ||
        strcspn(text, " \t[]") < len) {
        return false;
    }
    if (rest < end &&
        (*rest != ':' ||
            !num_parse_u32(rest + 1, (size_t)(end - rest) - 1, &port) ||
            port < row->lowest || port > row->highest)) {
        return false;
    }
    memcpy(address.host, text, len);
    address.port = (int)port;
    if (has_address(out, &address)) {
        return true;
    }
    if (out->n == OPTIONS_LISTEN_MAX) {
        return false;
    }
    out->address[out->n++] = address;
    return true;
}

/* A list with commas, or semicolons as in memcached; added to what was given
 * before, in place of what was not. */
static bool
add_addresses(const struct options_row *row, const char *text, bool first,
    struct options_addresses *out)
{
    if (first) {
        *out = (struct options_addresses){0};
    }
    for (;;) {
        size_t len = strcspn(text, ",;");
        if (!add_address(row, text, len, out)) {
            return false;
        }
        if (text[len] == '\0') {
            return true;
        }
        text += len + 1;
    }
}

bool
options__set_value(const struct options_row *row, const char *text, bool first,
    struct options *options)
{
    void *field = (char *)options + row->offset;
    int *count;

    switch (row->type) {
    case OPTIONS_TYPE_NUMBER:
    case OPTIONS_TYPE_POWER_OF_TWO:
        return set_number(row, text, field);
    case OPTIONS_TYPE_WHOLE:
        return set_whole(row, text, field);
    case OPTIONS_TYPE_FRACTION:
        return set_fraction(row, text, field);
    case OPTIONS_TYPE_CHOICE:
        return set_choice(row, text, field);
    case OPTIONS_TYPE_OCTAL:
        return set_octal(row, text, field);
    case OPTIONS_TYPE_BYTES:
    case OPTIONS_TYPE_MEGABYTES:
        return set_size(row, text, field);
    case OPTIONS_TYPE_BYTES_OR_AUTO:
        return set_size_or_auto(row, text, field);
    case OPTIONS_TYPE_TEXT:
    case OPTIONS_TYPE_PATH:
    case OPTIONS_TYPE_DIRECTORY:
        return set_text(row, text, field);
    case OPTIONS_TYPE_LISTEN:
        return add_addresses(row, text, first, field);
    case OPTIONS_TYPE_COUNT:
        count = field;
        *count = first ? 1 : *count + (*count < row->highest);
        return true;
    case OPTIONS_TYPE_CHARACTER:
        *(char *)field = text[0];
        return fits(row, text);
    case OPTIONS_TYPE_ANY:
        *(bool *)field = true;
        return fits(row, text);
    case OPTIONS_TYPE_FLAG:
    case OPTIONS_TYPE_HELP:
    case OPTIONS_TYPE_VERSION:
    case OPTIONS_TYPE_LICENSE:
    case OPTIONS_TYPE_EXTENDED:
        *(bool *)field = true;
        return true;
    }
    return false;
}

static void
add_size(struct buf *out, int64_t bytes)
{
    bool giga = bytes > 1 << GIB_SHIFT;
    bool mega = bytes >= 1 << MIB_SHIFT;
    buf_addf(out, "%lld%c",
        (long long)(bytes >> (giga          ? GIB_SHIFT
                                     : mega ? MIB_SHIFT
                                            : KIB_SHIFT)),
        giga       ? 'g'
            : mega ? 'm'
                   : 'k');
}

/* Appends what an option takes, as in "a number from 1 to 256". */
static void
add_wanted(const struct options_row *row, struct buf *out)
{
    long long lowest = row->lowest;
    long long highest = row->highest;

    switch (row->type) {
    case OPTIONS_TYPE_CHOICE:
        buf_addf(out, "one of %s", row->argument);
        break;
    case OPTIONS_TYPE_OCTAL:
        buf_addf(out, "an octal mode from %llo to %llo", lowest, highest);
        break;
    case OPTIONS_TYPE_BYTES:
    case OPTIONS_TYPE_BYTES_OR_AUTO:
        buf_add_text(out, "a size from ");
        add_size(out, row->lowest);
        buf_add_text(out, " to ");
        add_size(out, row->highest);
        if (row->type == OPTIONS_TYPE_BYTES_OR_AUTO) {
            buf_add_text(out, ", or auto");
        }
        break;
    case OPTIONS_TYPE_MEGABYTES:
        buf_addf(out, "megabytes from %lld to %lld", lowest, highest);
        break;
    case OPTIONS_TYPE_LISTEN:
        buf_addf(out,
            "HOST, HOST:PORT or [IPV6]:PORT, perhaps after notls:, btls: or "
            "mtls:, and proto[ascii]: or proto[binary]:, with a port from "
            "%lld to %lld, at most %d of them",
            lowest, highest, OPTIONS_LISTEN_MAX);
        break;
    case OPTIONS_TYPE_FRACTION:
        buf_addf(out, "a number from %g to %g", (double)lowest / THOUSANDTHS,
            (double)highest / THOUSANDTHS);
        break;
    case OPTIONS_TYPE_CHARACTER:
    case OPTIONS_TYPE_ANY:
    case OPTIONS_TYPE_TEXT:
    case OPTIONS_TYPE_PATH:
    case OPTIONS_TYPE_DIRECTORY:
        buf_addf(out, "a text of %lld to %lld bytes", lowest, highest);
        break;
    default:
        if (lowest == highest) {
            buf_addf(out, "%lld", lowest);
            break;
        }
        buf_addf(out, "a %s from %lld to %lld",
            row->type == OPTIONS_TYPE_POWER_OF_TWO ? "power of two" : "number",
            lowest, highest);
    }
}

void
options__add_refusal(const struct options_row *row, const char *text,
    const char *where, struct buf *out)
{
    buf_addf(out, "tallyd: %s%s: '%s' is refused; wanted is ", where,
        row->name, text);
    add_wanted(row, out);
    buf_add_text(out, "\n");
}
