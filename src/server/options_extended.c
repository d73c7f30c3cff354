/* SPDX-License-Identifier: BSD-3-Clause */
/* memcached's extended options: -o NAME[=VALUE],NAME...
 *
 * They are read as memcached reads them: the last of two wins, a comma may be
 * the last byte, and a value where none is wanted does not matter. An unknown
 * name is refused, and so is a value out of range, also of a name that has no
 * meaning here: whoever wrote it has meant something else. */
#include "server/options_extended.h"

#include "base/assert.h"
#include "base/err.h"
#include "server/options_value.h"

#include <stddef.h>
#include <string.h>

/* What no_modern stands for. */
#define MODERN_NOT                                                            \
    "slab_chunk_max=1024,no_slab_reassign,no_slab_automove,no_maxconns_fast," \
    "hash_algorithm=jenkins,no_lru_crawler,no_lru_maintainer"

static const struct options_row rows[OPTIONS_EXTENDED_COUNT] = {
#define X(                                                                    \
    field, forms, name, argument, type, lowest, highest, initial, care, text) \
    {OPTIONS_CARE_##care, OPTIONS_FORM_##forms, 0, name, argument,            \
        OPTIONS_TYPE_##type, lowest, highest, initial, NULL, text,            \
        offsetof(struct options, field),                                      \
        sizeof(((struct options *)0)->field)},
    OPTIONS_EXTENDED(X)
#undef X
};

const struct options_row *
options_extended_row(enum options_extended_id name)
{
    ASSERT(name < OPTIONS_EXTENDED_COUNT);
    return &rows[name];
}

static void *
field_of(struct options *options, enum options_extended_id name)
{
    return (char *)options + rows[name].offset;
}

void
options__extended_defaults(struct options *options)
{
    for (enum options_extended_id i = 0; i < OPTIONS_EXTENDED_COUNT; i++) {
        if (rows[i].initial[0] != '\0') {
            bool good =
                options__set_value(&rows[i], rows[i].initial, true, options);
            ASSERT(good);
        }
    }
}

/* OPTIONS_EXTENDED_COUNT where there is no such name. */
static enum options_extended_id
find(const char *word, bool *is_negated)
{
    static const char no[] = "no_";
    const char *rest =
        strncmp(word, no, strlen(no)) == 0 ? word + strlen(no) : NULL;
    for (enum options_extended_id i = 0; i < OPTIONS_EXTENDED_COUNT; i++) {
        if ((rows[i].form & OPTIONS_FORM_PLAIN) != 0 &&
            strcmp(rows[i].name, word) == 0) {
            *is_negated = false;
            return i;
        }
        if ((rows[i].form & OPTIONS_FORM_NEGATED) != 0 && rest != NULL &&
            strcmp(rows[i].name, rest) == 0) {
            *is_negated = true;
            return i;
        }
    }
    return OPTIONS_EXTENDED_COUNT;
}

static void
negate(struct options *options, enum options_extended_id name)
{
    if (rows[name].type == OPTIONS_TYPE_FLAG) {
        *(bool *)field_of(options, name) = false;
    } else {
        ASSERT(rows[name].type == OPTIONS_TYPE_NUMBER);
        *(int *)field_of(options, name) = 0;
    }
    if (name == OPTIONS_EXTENDED_ID_modern) {
        int err = options__take_extended(options, MODERN_NOT, "", NULL);
        ASSERT(err == 0);
    }
}

/* value: NULL for none. */
static int
take(struct options *options, enum options_extended_id name, const char *value,
    const char *where, struct buf *message)
{
    const struct options_row *row = &rows[name];
    if (row->care == OPTIONS_CARE_REFUSED) {
        buf_addf(message, "tallyd: %s%s: %s\n", where, row->name, row->text);
        return ERR_BAD_OPTION;
    }
    if (value == NULL && row->form == OPTIONS_FORM_EITHER) {
        value = "1"; /* a switch, or a number that may be one */
    }
    if (value == NULL && row->type != OPTIONS_TYPE_FLAG) {
        buf_addf(
            message, "tallyd: %s%s: a value is missing\n", where, row->name);
        return ERR_BAD_OPTION;
    }
    if (!options__set_value(row, value, true, options)) {
        options__add_refusal(row, value, where, message);
        return ERR_BAD_OPTION;
    }
    return 0;
}

/* One NAME or NAME=VALUE, ended by a NUL. */
static int
take_word(struct options *options, char *word, const char *where,
    struct buf *message)
{
    char *value = strchr(word, '=');
    bool is_negated = false;
    int err = 0;
    if (value != NULL) {
        *value++ = '\0';
    }
    enum options_extended_id name = find(word, &is_negated);
    if (name == OPTIONS_EXTENDED_COUNT) {
        buf_addf(message,
            "tallyd: %s%s: no such extended option; try --help\n", where,
            word);
        return ERR_BAD_OPTION;
    }
    if (is_negated) {
        negate(options, name);
    } else {
        err = take(options, name, value, where, message);
    }
    options->extended_given[name] = err == 0;
    return err;
}

int
options__take_extended(struct options *options, const char *list,
    const char *where, struct buf *message)
{
    char word[OPTIONS_TEXT_BYTES];
    while (*list != '\0') {
        size_t len = strcspn(list, ",");
        if (len >= sizeof word) {
            buf_addf(message, "tallyd: %sa name and its value are too long\n",
                where);
            return ERR_BAD_OPTION;
        }
        memcpy(word, list, len);
        word[len] = '\0';
        int err = take_word(options, word, where, message);
        if (err != 0) {
            return err;
        }
        list += len;
        list += *list == ',';
    }
    return 0;
}

void
options__merge_extended(struct options *options, const struct options *from)
{
    for (enum options_extended_id i = 0; i < OPTIONS_EXTENDED_COUNT; i++) {
        if (from->extended_given[i] && !options->extended_given[i]) {
            memcpy(field_of(options, i), (const char *)from + rows[i].offset,
                rows[i].size);
            options->extended_given[i] = true;
        }
    }
}
