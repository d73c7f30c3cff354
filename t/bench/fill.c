/* SPDX-License-Identifier: BSD-3-Clause */

/* Posts in the order of --order, each wholly, or with --by-column all of the
 * first column, then all of the next. Numbers that are 0 are sent only in
 * whole records of memcached's protocols. Commands are put together without
 * printf: the filler is to be faster than the server. */

#include "bench/fill.h"

#include "base/num.h"

#include <string.h>

enum { WORDS_MAX = 2 + 2 * DIST_COLUMNS_MAX, KEY_BYTES_MAX = 64 };

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

/* HSET ID SUFFIX NUMBER ..., numbers that are 0 left out. */
static void
ask_hash(struct buf *out, const struct options *options,
    const struct fill_cursor *cursor, struct wire_text id)
{
    char digits[DIST_COLUMNS_MAX][NUM_U64_DIGITS_MAX];
    struct wire_text word[WORDS_MAX] = {{"HSET", 4}, id};
    size_t n = 2;
    for (size_t i = 0; i < options->n_suffixes; i++) {
        if (cursor->value[i] != 0) {
            word[n++] =
                (struct wire_text){options->suffix[i], options->suffix_len[i]};
            word[n++] = (struct wire_text){
                digits[i], num_format_u64(cursor->value[i], digits[i])};
        }
    }
    wire_resp_add(out, word, n);
}

static void
ask_record(struct buf *out, const struct options *options,
    const struct fill_cursor *cursor, struct wire_text key)
{
    const struct wire *wire = wire_of((enum wire_protocol)options->protocol);
    char data[DIST_COLUMNS_MAX * (NUM_U64_DIGITS_MAX + 1)];
    size_t len = 0;
    for (size_t i = 0; i < options->n_suffixes; i++) {
        if (i > 0) {
            data[len++] = ' ';
        }
        len += num_format_u64(cursor->value[i], data + len);
    }
    wire->set_fn(out, key, (struct wire_text){data, len});
}

/* One number, by set or incr. */
static void
ask_cell(struct buf *out, const struct options *options,
    const struct fill_cursor *cursor, struct wire_text key)
{
    char digits[NUM_U64_DIGITS_MAX];
    struct wire_text number = {
        digits, num_format_u64(cursor->value[cursor->column], digits)};
    const struct wire *wire = wire_of((enum wire_protocol)options->protocol);
    if (options->fill_with == FILL_INCR) {
        wire->add_fn(out, key, number);
    } else {
        wire->set_fn(out, key, number);
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
    struct wire_text word = {key, id_len + 1 + name_len};

    op->is_store = true;
    op->draw = (uint32_t)cursor->post;
    op->n_keys = is_record ? (uint32_t)options->n_suffixes : 1;
    op->is_first = true;
    for (size_t i = 0; !is_record && i < cursor->column; i++) {
        op->is_first = op->is_first && cursor->value[i] == 0;
    }
    bool is_hash = is_record && options->protocol == WIRE_RESP;
    bool adds = options->fill_with == FILL_INCR;
    op->ask = is_hash || adds ? WIRE_ADD : WIRE_SET;
    if (!is_record) {
        ask_cell(out, options, cursor, word);
    } else if (is_hash) {
        word.len = id_len;
        ask_hash(out, options, cursor, word);
    } else {
        ask_record(out, options, cursor, word);
    }
    go_on(cursor, options);
}
