/* SPDX-License-Identifier: BSD-3-Clause */

/* Posts in the order of --order, each wholly, or with --by-column all of the
 * first column, then all of the next. Numbers that are 0 are sent only in
 * whole records of memcached's protocol. Commands are put together without
 * printf: the filler is to be faster than the server. */

#include "bench/fill.h"

#include "base/num.h"

#include <string.h>

enum { WORDS_MAX = 2 + 2 * DIST_COLUMNS_MAX, KEY_BYTES_MAX = 64 };

struct word {
    const char *text;
    size_t len;
};

void
fill_init(
    struct fill_cursor *cursor, const struct options *options, uint64_t index)
{
    *cursor = (struct fill_cursor){
        .first = index, .at = index, .step = options->threads};
    posts_order_init(&cursor->order, options->records, options->seed);
}

static void
load(struct fill_cursor *cursor, const struct options *options)
{
    cursor->post = options->order == ORDER_RANDOM
        ? posts_order_at(&cursor->order, cursor->at)
        : cursor->at;
    cursor->is_loaded =
        posts_values(&options->posts, cursor->post, cursor->value);
    if (options->by_column) {
        cursor->is_loaded = cursor->value[cursor->column] != 0;
        return;
    }
    cursor->column = 0;
    if (options->fill_with != FILL_RECORD && cursor->is_loaded) {
        while (cursor->value[cursor->column] == 0) {
            cursor->column++;
        }
    }
}

bool
fill_has_next(struct fill_cursor *cursor, const struct options *options)
{
    while (!cursor->is_loaded) {
        if (cursor->at >= options->records) {
            cursor->column++;
            cursor->at = cursor->first;
            if (!options->by_column || cursor->column == options->n_suffixes) {
                cursor->at = options->records;
                cursor->column--;
                return false;
            }
        }
        load(cursor, options);
        if (!cursor->is_loaded) {
            cursor->at += cursor->step;
        }
    }
    return true;
}

/* To the next number of the post, or to the next post. */
static void
go_on(struct fill_cursor *cursor, const struct options *options)
{
    size_t next = cursor->column + 1;
    if (options->fill_with != FILL_RECORD && !options->by_column) {
        while (next < options->n_suffixes && cursor->value[next] == 0) {
            next++;
        }
        if (next < options->n_suffixes) {
            cursor->column = next;
            return;
        }
    }
    cursor->at += cursor->step;
    cursor->is_loaded = false;
}

static void
add_u64(struct buf *out, uint64_t value)
{
    char digits[NUM_U64_DIGITS_MAX];
    buf_add(out, digits, num_format_u64(value, digits));
}

/* "set KEY 0 0 BYTES", then the data. */
static void
add_set(struct buf *out, struct word key, struct word data)
{
    buf_add(out, "set ", 4);
    buf_add(out, key.text, key.len);
    buf_add(out, " 0 0 ", 5);
    add_u64(out, data.len);
    buf_add(out, "\r\n", 2);
    buf_add(out, data.text, data.len);
    buf_add(out, "\r\n", 2);
}

/* A command in Redis's protocol: an array of strings. */
static void
add_resp(struct buf *out, const struct word *word, size_t n)
{
    buf_add(out, "*", 1);
    add_u64(out, n);
    for (size_t i = 0; i < n; i++) {
        buf_add(out, "\r\n$", 3);
        add_u64(out, word[i].len);
        buf_add(out, "\r\n", 2);
        buf_add(out, word[i].text, word[i].len);
    }
    buf_add(out, "\r\n", 2);
}

/* HSET ID SUFFIX NUMBER ..., numbers that are 0 left out. */
static void
ask_redis_record(struct buf *out, const struct options *options,
    const struct fill_cursor *cursor, struct word id)
{
    char digits[DIST_COLUMNS_MAX][NUM_U64_DIGITS_MAX];
    struct word word[WORDS_MAX] = {{"HSET", 4}, id};
    size_t n = 2;
    for (size_t i = 0; i < options->n_suffixes; i++) {
        if (cursor->value[i] != 0) {
            word[n++] =
                (struct word){options->suffix[i], options->suffix_len[i]};
            word[n++] = (struct word){
                digits[i], num_format_u64(cursor->value[i], digits[i])};
        }
    }
    add_resp(out, word, n);
}

static void
ask_record(struct buf *out, const struct options *options,
    const struct fill_cursor *cursor, struct word key)
{
    char data[DIST_COLUMNS_MAX * (NUM_U64_DIGITS_MAX + 1)];
    size_t len = 0;
    for (size_t i = 0; i < options->n_suffixes; i++) {
        if (i > 0) {
            data[len++] = ' ';
        }
        len += num_format_u64(cursor->value[i], data + len);
    }
    add_set(out, key, (struct word){data, len});
}

/* One number, by set or incr. */
static void
ask_cell(struct buf *out, const struct options *options,
    const struct fill_cursor *cursor, struct word key)
{
    char digits[NUM_U64_DIGITS_MAX];
    struct word number = {
        digits, num_format_u64(cursor->value[cursor->column], digits)};
    bool is_incr = options->fill_with == FILL_INCR;
    if (options->redis) {
        struct word word[3] = {{"INCRBY", 6}, key, number};
        if (!is_incr) {
            word[0] = (struct word){"SET", 3};
        }
        add_resp(out, word, 3);
    } else if (is_incr) {
        buf_add(out, "incr ", 5);
        buf_add(out, key.text, key.len);
        buf_add(out, " ", 1);
        buf_add(out, number.text, number.len);
        buf_add(out, "\r\n", 2);
    } else {
        add_set(out, key, number);
    }
}

void
fill_ask(struct fill_cursor *cursor, const struct options *options,
    struct buf *out, struct conn_op *op)
{
    bool is_record = options->fill_with == FILL_RECORD;
    char key[KEY_BYTES_MAX];
    size_t id_len =
        num_format_u64(posts_id(&options->posts, cursor->post), key);
    const char *name =
        is_record ? options->counter : options->suffix[cursor->column];
    size_t name_len = strnlen(name, sizeof(key) - id_len - 1);
    key[id_len] = '.';
    memcpy(key + id_len + 1, name, name_len);
    struct word word = {key, id_len + 1 + name_len};

    op->draw = (uint32_t)cursor->post;
    op->n_keys = is_record ? (uint32_t)options->n_suffixes : 1;
    op->is_first = true;
    for (size_t i = 0; !is_record && i < cursor->column; i++) {
        op->is_first = op->is_first && cursor->value[i] == 0;
    }
    if (!is_record) {
        ask_cell(out, options, cursor, word);
    } else if (options->redis) {
        word.len = id_len;
        ask_redis_record(out, options, cursor, word);
    } else {
        ask_record(out, options, cursor, word);
    }
    go_on(cursor, options);
}

bool
fill_is_stored(const struct options *options, const char *line, size_t len)
{
    uint64_t value;
    size_t sign = options->redis && len > 0 && line[0] == ':';
    if (options->fill_with == FILL_INCR ||
        (options->redis && options->fill_with == FILL_RECORD)) {
        return num_parse_u64(line + sign, len - sign, &value);
    }
    return options->redis ? len == 3 && memcmp(line, "+OK", 3) == 0
                          : len == 6 && memcmp(line, "STORED", 6) == 0;
}
