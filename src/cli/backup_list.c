/* SPDX-License-Identifier: BSD-3-Clause */
/* The text, a line each:
 *
 *   tallyd backup 1
 *   taken <seconds since 1970>
 *   epoch <16 hex digits>
 *   batch <last batch>
 *   file <name> <bytes> <XXH3, 16 hex digits>     one for each file
 *   end <files> <XXH3 of all bytes before this line, 16 hex digits>
 *
 * What can go wrong: memory; a text that is damaged, or of a newer program. */
#include "cli/backup_list.h"

#include "base/assert.h"
#include "base/checksum.h"
#include "base/err.h"
#include "base/num.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC "tallyd backup "
#define VERSION "1"

enum { HEX_DIGITS = 16, HEX_BITS = 4, WORDS_MAX = 4, CAPACITY_MIN = 64 };

void
backup_list_fini(struct backup_list *list)
{
    free(list->file);
    *list = (struct backup_list){0};
}

int
backup_list_add(struct backup_list *list, const struct backup_file *file)
{
    ASSERT(list->n <= list->capacity);
    if (list->n == list->capacity) {
        size_t n = list->capacity == 0 ? CAPACITY_MIN : 2 * list->capacity;
        struct backup_file *more = realloc(list->file, n * sizeof *more);
        if (more == NULL) {
            return ERR_NO_MEMORY;
        }
        list->file = more;
        list->capacity = n;
    }
    list->file[list->n++] = *file;
    return 0;
}

const struct backup_file *
backup_list_find(const struct backup_list *list, const char *name)
{
    for (size_t i = list->n; i > 0; i--) {
        if (strcmp(list->file[i - 1].name, name) == 0) {
            return &list->file[i - 1];
        }
    }
    return NULL;
}

uint64_t
backup_list_bytes(const struct backup_list *list)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < list->n; i++) {
        bytes += list->file[i].bytes;
    }
    return bytes;
}

void
backup_list_put_head(const struct backup_list *list, struct buf *out)
{
    buf_addf(out,
        MAGIC VERSION "\ntaken %" PRIu64 "\nepoch %016" PRIx64
                      "\nbatch %" PRIu64 "\n",
        list->taken_s, list->epoch, list->last_seq);
}

void
backup_list_put_file(const struct backup_file *file, struct buf *out)
{
    buf_addf(out, "file %s %" PRIu64 " %016" PRIx64 "\n", file->name,
        file->bytes, file->xxh3);
}

void
backup_list_put_end(size_t n_files, struct buf *out)
{
    uint64_t sum = checksum64(out->data, out->len, 0);
    buf_addf(out, "end %zu %016" PRIx64 "\n", n_files, sum);
}

/* ---- reading ---- */

struct word {
    const char *text;
    size_t len;
};

/* The words of a line, each behind one space; how many, or WORDS_MAX + 1. */
static unsigned
split(const char *line, size_t len, struct word word[WORDS_MAX])
{
    unsigned n = 0;
    for (size_t at = 0; at <= len; n++) {
        const char *end = memchr(line + at, ' ', len - at);
        size_t end_at = end == NULL ? len : (size_t)(end - line);
        if (n == WORDS_MAX) {
            return WORDS_MAX + 1;
        }
        word[n] = (struct word){line + at, end_at - at};
        at = end_at + 1;
    }
    return n;
}

static bool
is(struct word word, const char *text)
{
    return word.len == strlen(text) && memcmp(word.text, text, word.len) == 0;
}

static bool
get_number(struct word word, uint64_t *out)
{
    return num_parse_id(word.text, word.len, out);
}

static bool
get_hex(struct word word, uint64_t *out)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t number = 0;
    if (word.len != HEX_DIGITS) {
        return false;
    }
    for (size_t i = 0; i < word.len; i++) {
        const char *digit = memchr(digits, word.text[i], sizeof digits - 1);
        if (digit == NULL) {
            return false;
        }
        number = number << HEX_BITS | (uint64_t)(digit - digits);
    }
    *out = number;
    return true;
}

/* A name that stays in the folder. */
static bool
get_name(struct word word, char out[NAMES_BYTES])
{
    if (word.len == 0 || word.len >= NAMES_BYTES || word.text[0] == '.' ||
        memchr(word.text, '/', word.len) != NULL) {
        return false;
    }
    memcpy(out, word.text, word.len);
    out[word.len] = '\0';
    return true;
}

struct reading {
    const char *text;
    size_t at; /* of the line */
    unsigned n_lines;
    bool has_ended;
    struct backup_list *out;
};

enum { HEAD_LINES = 4 };

static int
take_head(
    struct reading *reading, const struct word word[WORDS_MAX], unsigned n)
{
    struct backup_list *out = reading->out;
    static const char *const names[HEAD_LINES] = {
        "tallyd", "taken", "epoch", "batch"};
    if (n < 2 || !is(word[0], names[reading->n_lines])) {
        return ERR_CORRUPT;
    }
    if (reading->n_lines == 0) {
        return n != 3 || !is(word[1], "backup") ? ERR_CORRUPT
            : is(word[2], VERSION)              ? 0
                                                : ERR_NEWER_FORMAT;
    }
    bool is_right = n == 2 &&
        (reading->n_lines == 1          ? get_number(word[1], &out->taken_s)
                : reading->n_lines == 2 ? get_hex(word[1], &out->epoch)
                                        : get_number(word[1], &out->last_seq));
    return is_right ? 0 : ERR_CORRUPT;
}

static int
take_file(struct reading *reading, const struct word word[WORDS_MAX])
{
    struct backup_file file;
    if (reading->out->n >= BACKUP_FILES_MAX || !get_name(word[1], file.name) ||
        !get_number(word[2], &file.bytes) || !get_hex(word[3], &file.xxh3)) {
        return ERR_CORRUPT;
    }
    return backup_list_add(reading->out, &file);
}

static int
take_line(struct reading *reading, const char *line, size_t len)
{
    struct word word[WORDS_MAX];
    uint64_t number, sum;
    unsigned n = split(line, len, word);
    if (reading->has_ended) {
        return ERR_CORRUPT;
    }
    if (reading->n_lines < HEAD_LINES) {
        return take_head(reading, word, n);
    }
    if (n == 4 && is(word[0], "file")) {
        return take_file(reading, word);
    }
    reading->has_ended = n == 3 && is(word[0], "end") &&
        get_number(word[1], &number) && get_hex(word[2], &sum) &&
        number == reading->out->n &&
        sum == checksum64(reading->text, reading->at, 0);
    return reading->has_ended ? 0 : ERR_CORRUPT;
}

int
backup_list_read(
    const char *text, size_t len, bool is_part, struct backup_list *out)
{
    struct reading reading = {.text = text, .out = out};
    int err = 0;
    ASSERT(out->n == 0 && out->file == NULL);
    while (err == 0 && reading.at < len) {
        const char *line = text + reading.at;
        const char *end = memchr(line, '\n', len - reading.at);
        if (end == NULL) {
            err = is_part ? 0 : ERR_CORRUPT;
            break;
        }
        err = take_line(&reading, line, (size_t)(end - line));
        reading.at = (size_t)(end - text) + 1;
        reading.n_lines++;
    }
    if (err == 0 &&
        (reading.n_lines < HEAD_LINES || reading.has_ended == is_part)) {
        err = ERR_CORRUPT;
    }
    if (err != 0) {
        backup_list_fini(out);
    }
    return err;
}
