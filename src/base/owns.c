/* SPDX-License-Identifier: BSD-3-Clause */
/* Which server an id belongs to.
 *
 * All ways begin with a number made of the id. Modulo the sum of the weights it
 * is a slot, and slots belong to the servers in their order, as many as each
 * weighs. On a ring each server has points, the hashes of "NAME-0", "NAME-1",
 * and so on; the number belongs to the server of the first point that is not
 * below it, or of the first of all. A server's name is HOST:PORT, or HOST alone
 * at memcached's own port, or the NAME given to it.
 *
 * How many points a server has is computed in numbers of type float, as the
 * clients do: one that is rounded otherwise would move ids. */
#include "base/owns.h"

#include "base/assert.h"
#include "base/err.h"
#include "base/keyhash.h"
#include "base/md5.h"
#include "base/num.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    KETAMA_POINTS = 160, /* of a server of average weight */
    CONSISTENT_POINTS = 100,
    POINT_NAME_MAX = OWNS_NAME_MAX + 12 /* "NAME-4294967295" */
};

enum way { MODULO, HASHED, KETAMA, CONSISTENT };

struct server {
    uint32_t weight;
    uint32_t end; /* of its slots: the weights up to and with its own */
    uint32_t name_len;
    char name[OWNS_NAME_MAX];
};

struct point {
    uint32_t value;
    uint32_t server;
};

struct owns {
    enum way way;
    enum keyhash hash; /* but for MODULO */
    uint32_t index;
    uint32_t n_servers;
    struct server *server;
    struct point *point; /* of a ring, in order */
    size_t n_points;
    char rule[OWNS_RULE_BYTES];
};

static const struct {
    enum way way;
    const char *word;
    enum keyhash hash; /* where none is named */
} rings[] = {
#define X(name, word, text)                                                   \
    {name, word, name == KETAMA ? KEYHASH_MD5 : KEYHASH_ONE_AT_A_TIME},
    OWNS_WAYS(X)
#undef X
};

/* ---- reading ---- */

struct text {
    const char *bytes;
    size_t len;
};

/* What is left to read. */
struct reading {
    struct text rest;
    unsigned line;  /* of the last entry, from 1 */
    bool ends_line; /* the last entry does */
};

static bool
is_space(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r';
}

/* Without spaces at both ends. */
static struct text
trim(struct text text)
{
    while (text.len > 0 && is_space(text.bytes[0])) {
        text.bytes++;
        text.len--;
    }
    while (text.len > 0 && is_space(text.bytes[text.len - 1])) {
        text.len--;
    }
    return text;
}

/* The next entry that says something; false at the end. */
static bool
next_entry(struct reading *reading, struct text *out)
{
    struct text *rest = &reading->rest;
    while (rest->len > 0) {
        size_t len = 0;
        struct text begun = trim(*rest);
        bool is_comment = begun.len > 0 && begun.bytes[0] == '#';
        while (len < rest->len && rest->bytes[len] != '\n' &&
            (is_comment || rest->bytes[len] != ',')) {
            len++;
        }
        bool is_last = len == rest->len;
        *out = trim((struct text){rest->bytes, len});
        reading->line += reading->ends_line;
        reading->ends_line = !is_last && rest->bytes[len] == '\n';
        rest->bytes += is_last ? len : len + 1;
        rest->len -= is_last ? len : len + 1;
        if (out->len > 0 && !is_comment) {
            return true;
        }
    }
    return false;
}

/* Takes what stands behind the last byte of that kind off text's end. */
static bool
cut_last(struct text *text, char at, struct text *last)
{
    const char *found = memrchr(text->bytes, at, text->len);
    if (found == NULL) {
        return false;
    }
    size_t len = (size_t)(found - text->bytes);
    *last = (struct text){found + 1, text->len - len - 1};
    text->len = len;
    return true;
}

static bool
is_word(struct text text, const char *word)
{
    return text.len == strlen(word) && memcmp(text.bytes, word, text.len) == 0;
}

/* The way and the hash that name says. */
static bool
take_name(struct owns *owns, struct text name)
{
    if (is_word(name, "modulo")) {
        owns->way = MODULO;
        return true;
    }
    for (unsigned i = 0; i < sizeof rings / sizeof rings[0]; i++) {
        size_t len = strlen(rings[i].word);
        owns->way = rings[i].way;
        owns->hash = rings[i].hash;
        if (is_word(name, rings[i].word)) {
            return true;
        }
        if (name.len > len && name.bytes[len] == '-' &&
            memcmp(name.bytes, rings[i].word, len) == 0) {
            return keyhash_find(
                name.bytes + len + 1, name.len - len - 1, &owns->hash);
        }
    }
    owns->way = HASHED;
    return keyhash_find(name.bytes, name.len, &owns->hash);
}

static void
write_rule(struct owns *owns)
{
    const char *way = "";
    for (unsigned i = 0; i < sizeof rings / sizeof rings[0]; i++) {
        way = owns->way == rings[i].way ? rings[i].word : way;
    }
    int len = snprintf(owns->rule, sizeof owns->rule,
        "%s%s%s:%" PRIu32 "/%" PRIu32, way, way[0] == '\0' ? "" : "-",
        owns->way == MODULO ? "modulo" : keyhash_name(owns->hash), owns->index,
        owns->n_servers);
    ASSERT(len > 0 && (size_t)len < sizeof owns->rule);
}

/* Reads "RULE:I/N": what is wrong with it, or NULL. */
static const char *
take_rule(struct owns *owns, struct text text)
{
    struct text n;
    struct text index;
    if (!cut_last(&text, '/', &n) || !cut_last(&text, ':', &index)) {
        return "a rule is written HASH:I/N, this being server I, from 0, "
               "of N";
    }
    if (!take_name(owns, text)) {
        return "the rule is none of modulo, crc32, crc32a, fnv1a_64, "
               "fnv1a_32, md5, one_at_a_time, ketama and consistent; these "
               "two may have -HASH behind";
    }
    if (!num_parse_u32(n.bytes, n.len, &owns->n_servers) ||
        owns->n_servers == 0 || owns->n_servers > OWNS_SERVERS_MAX) {
        return "the number of servers is not 1 to 1024";
    }
    if (!num_parse_u32(index.bytes, index.len, &owns->index) ||
        owns->index >= owns->n_servers) {
        return "servers are numbered from 0 to N - 1";
    }
    write_rule(owns);
    return NULL;
}

/* Reads "HOST:PORT:WEIGHT [NAME]": what is wrong with it, or NULL. */
static const char *
take_server(struct server *server, struct text text)
{
    static const char form[] = "a server is written HOST:PORT:WEIGHT [NAME]";
    const char *space = memchr(text.bytes, ' ', text.len);
    struct text name = {text.bytes, 0};
    struct text port;
    struct text weight;
    uint32_t number;
    if (space != NULL) {
        size_t len = (size_t)(space - text.bytes);
        name = trim((struct text){space, text.len - len});
        text.len = len;
    }
    if (!cut_last(&text, ':', &weight)) {
        return form;
    }
    if (!num_parse_u32(weight.bytes, weight.len, &server->weight) ||
        server->weight == 0 || server->weight > OWNS_WEIGHT_MAX) {
        return "a server's weight, its last number, is not 1 to 1000000";
    }
    struct text address = text;
    if (!cut_last(&text, ':', &port) || text.len == 0 ||
        !num_parse_u32(port.bytes, port.len, &number) || number > UINT16_MAX) {
        return form;
    }
    if (name.len == 0) {
        name = is_word(port, "11211") ? text : address;
    }
    if (name.len > sizeof server->name) {
        return "a server's name is longer than 255 bytes";
    }
    for (size_t i = 0; i < name.len; i++) {
        if ((unsigned char)name.bytes[i] <= ' ') {
            return form;
        }
    }
    memcpy(server->name, name.bytes, name.len);
    server->name_len = (uint32_t)name.len;
    return NULL;
}

/* Reads the servers behind the rule, if there are any: what is wrong with them,
 * or NULL. */
static const char *
take_servers(struct owns *owns, struct reading *reading)
{
    struct text text;
    uint32_t n = 0;
    uint32_t end = 0;
    while (next_entry(reading, &text)) {
        if (n == owns->n_servers) {
            return "there are more servers than the rule says";
        }
        const char *fault = take_server(&owns->server[n++], text);
        if (fault != NULL) {
            return fault;
        }
    }
    if (n == 0 && (owns->way == KETAMA || owns->way == CONSISTENT)) {
        return "this rule needs the list of the servers behind it, see "
               "--owns-file";
    }
    if (n > 0 && n < owns->n_servers) {
        return "there are fewer servers than the rule says";
    }
    for (uint32_t i = 0; i < owns->n_servers; i++) {
        owns->server[i].weight = n == 0 ? 1 : owns->server[i].weight;
        end += owns->server[i].weight;
        owns->server[i].end = end;
    }
    return NULL;
}

/* ---- the ring ---- */

/* How many names of points the server has; of each come four points on a
 * ketama ring. Each step in float, see above. */
static unsigned
names_of(const struct owns *owns, const struct server *server)
{
    const float little = 0.0000000001F; /* that the clients add */
    const float total = (float)owns->server[owns->n_servers - 1].end;
    if (owns->way == CONSISTENT) {
        return CONSISTENT_POINTS;
    }
    float share = (float)server->weight / total;
    float points = share * (float)KETAMA_POINTS;
    points = points / (float)MD5_WORDS;
    points = points * (float)owns->n_servers;
    points = points + little;
    return (unsigned)points;
}

static int
compare_points(const void *a, const void *b)
{
    const struct point *first = a;
    const struct point *second = b;
    if (first->value != second->value) {
        return first->value < second->value ? -1 : 1;
    }
    return (first->server > second->server) - (first->server < second->server);
}

/* Adds the points of one name. */
static void
add_points(struct owns *owns, uint32_t server, unsigned number)
{
    char name[POINT_NAME_MAX];
    uint32_t word[MD5_WORDS];
    const struct server *of = &owns->server[server];
    int len = snprintf(
        name, sizeof name, "%.*s-%u", (int)of->name_len, of->name, number);
    ASSERT(len > 0 && (size_t)len < sizeof name);
    unsigned n = owns->way == KETAMA ? MD5_WORDS : 1;
    if (owns->way == KETAMA) {
        md5(name, (size_t)len, word);
    } else {
        word[0] = keyhash(owns->hash, name, (size_t)len);
    }
    for (unsigned i = 0; i < n; i++) {
        owns->point[owns->n_points++] = (struct point){word[i], server};
    }
}

static int
make_ring(struct owns *owns)
{
    size_t n_names = 0;
    for (uint32_t i = 0; i < owns->n_servers; i++) {
        n_names += names_of(owns, &owns->server[i]);
    }
    ASSERT(n_names > 0); /* the average server has 40 */
    owns->point = malloc(n_names * MD5_WORDS * sizeof *owns->point);
    if (owns->point == NULL) {
        return ERR_NO_MEMORY;
    }
    for (uint32_t i = 0; i < owns->n_servers; i++) {
        unsigned n = names_of(owns, &owns->server[i]);
        for (unsigned number = 0; number < n; number++) {
            add_points(owns, i, number);
        }
    }
    qsort(owns->point, owns->n_points, sizeof *owns->point, compare_points);
    return 0;
}

static uint32_t
find_on_ring(const struct owns *owns, uint32_t value)
{
    size_t low = 0;
    size_t high = owns->n_points;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (owns->point[middle].value < value) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return owns->point[low == owns->n_points ? 0 : low].server;
}

/* ---- all of it ---- */

static uint32_t
find_slot(const struct owns *owns, uint64_t number)
{
    uint32_t low = 0;
    uint32_t high = owns->n_servers - 1;
    uint64_t slot = number % owns->server[high].end;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (owns->server[middle].end <= slot) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool
owns_takes_names(const struct owns *owns)
{
    return owns->way != MODULO;
}

uint32_t
owns_server_of_name(const struct owns *owns, const char *name, size_t len)
{
    ASSERT(owns->way != MODULO);
    uint32_t hash = keyhash(owns->hash, name, len);
    return owns->way == HASHED ? find_slot(owns, hash)
                               : find_on_ring(owns, hash);
}

bool
owns_has_name(const struct owns *owns, const char *name, size_t len)
{
    return owns_takes_names(owns) &&
        owns_server_of_name(owns, name, len) == owns->index;
}

uint32_t
owns_server_of(const struct owns *owns, uint64_t id)
{
    char digits[NUM_U64_DIGITS_MAX];
    return owns->way == MODULO
        ? find_slot(owns, id)
        : owns_server_of_name(owns, digits, num_put_u64(id, digits));
}

bool
owns_has(const struct owns *owns, uint64_t id)
{
    return owns_server_of(owns, id) == owns->index;
}

const char *
owns_rule(const struct owns *owns)
{
    return owns->rule;
}

/* The rule of an owns that is all zero. On an error *fault says what is wrong
 * with the entry, or is NULL. */
static int
read_all(struct owns *owns, struct reading *reading, const char **fault)
{
    struct text text = {NULL, 0};
    if (!next_entry(reading, &text)) {
        *fault = "there is no rule in it";
        return ERR_BAD_FORMAT;
    }
    *fault = take_rule(owns, text);
    if (*fault != NULL) {
        return ERR_BAD_FORMAT;
    }
    owns->server = calloc(owns->n_servers, sizeof *owns->server);
    if (owns->server == NULL) {
        return ERR_NO_MEMORY;
    }
    *fault = take_servers(owns, reading);
    if (*fault != NULL) {
        return ERR_BAD_FORMAT;
    }
    bool is_ring = owns->way == KETAMA || owns->way == CONSISTENT;
    return is_ring ? make_ring(owns) : 0;
}

int
owns_create(const char *text, size_t len, struct owns **out, struct buf *why)
{
    struct reading reading = {{text, len}, 1, false};
    const char *fault = NULL;
    struct owns *owns = calloc(1, sizeof *owns);
    int err = owns == NULL ? ERR_NO_MEMORY : read_all(owns, &reading, &fault);
    if (err == 0) {
        *out = owns;
        return 0;
    }
    if (fault != NULL && memchr(text, '\n', len) != NULL) {
        buf_addf(why, "line %u: ", reading.line);
    }
    buf_add_text(why, fault != NULL ? fault : err_text(err));
    if (owns != NULL) {
        owns_destroy(&owns);
    }
    return err;
}

int
owns_create_rule(const char *text, size_t len, struct owns **out)
{
    struct buf why = {0};
    if (len >= OWNS_RULE_BYTES || memchr(text, ',', len) != NULL ||
        memchr(text, '\n', len) != NULL) {
        return ERR_BAD_RULE; /* a list of servers, whose weights no text of
                              * owns_rule has */
    }
    int err = owns_create(text, len, out, &why);
    buf_fini(&why);
    return err == ERR_BAD_FORMAT ? ERR_BAD_RULE : err;
}

void
owns_destroy(struct owns **owns)
{
    free((*owns)->point);
    free((*owns)->server);
    free(*owns);
    *owns = NULL;
}
