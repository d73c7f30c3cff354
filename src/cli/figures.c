/* SPDX-License-Identifier: BSD-3-Clause */
/* Figures are few, some hundreds, so a name is looked for from the beginning.
 */
#include "cli/figures.h"

#include "base/num.h"
#include "client/talk.h"

#include <stdio.h>
#include <string.h>

static const char begin[] = "STAT ";

static void
keep_error(struct figures *figures, const char *line, size_t len)
{
    size_t most = sizeof figures->error - 1;
    len = len > most ? most : len;
    memcpy(figures->error, line, len);
    figures->error[len] = '\0';
    figures->is_name_unknown =
        talk_is(line, len, "ERROR") || talk_begins(line, len, "CLIENT_ERROR");
}

bool
figures_take(struct figures *figures, const char *line, size_t len)
{
    if (talk_is(line, len, "ERROR") ||
        talk_begins(line, len, "CLIENT_ERROR") ||
        talk_begins(line, len, "SERVER_ERROR")) {
        keep_error(figures, line, len);
        return true;
    }
    if (!talk_begins(line, len, begin) || memchr(line, '\0', len) != NULL) {
        return false;
    }
    const char *name = line + sizeof begin - 1;
    size_t left = len - (sizeof begin - 1);
    const char *space = memchr(name, ' ', left);
    size_t name_len = space == NULL ? left : (size_t)(space - name);
    if (name_len == 0) {
        return false;
    }
    buf_add(&figures->text, name, name_len);
    buf_add(&figures->text, "", 1);
    if (space != NULL) {
        buf_add(&figures->text, space + 1, left - name_len - 1);
    }
    buf_add(&figures->text, "", 1);
    return true;
}

bool
figures_next(const struct figures *figures, size_t *at, const char **name,
    const char **value)
{
    const char *text = figures->text.data;
    if (figures->text.failed || *at >= figures->text.len) {
        return false;
    }
    *name = text + *at;
    *value = *name + strlen(*name) + 1;
    *at = (size_t)(*value - text) + strlen(*value) + 1;
    return true;
}

const char *
figures_text(const struct figures *figures, const char *name)
{
    const char *found = NULL, *value = NULL;
    size_t at = 0;
    while (figures_next(figures, &at, &found, &value)) {
        if (strcmp(found, name) == 0) {
            return value;
        }
    }
    return NULL;
}

bool
figures_u64(const struct figures *figures, const char *name, uint64_t *out)
{
    const char *value = figures_text(figures, name);
    *out = 0;
    return value != NULL && num_parse_u64(value, strcspn(value, "."), out);
}

bool
figures_word(const char *value, const char *key, char *out, size_t size)
{
    size_t key_len = strlen(key);
    out[0] = '\0';
    while (*value != '\0') {
        size_t len = strcspn(value, " ");
        if (len > key_len && value[key_len] == '=' &&
            memcmp(value, key, key_len) == 0) {
            size_t n = len - key_len - 1;
            n = n > size - 1 ? size - 1 : n;
            memcpy(out, value + key_len + 1, n);
            out[n] = '\0';
            return true;
        }
        value += len;
        value += *value == ' ';
    }
    return false;
}

void
figures_clear(struct figures *figures)
{
    buf_clear(&figures->text);
    figures->error[0] = '\0';
    figures->is_name_unknown = false;
}

void
figures_fini(struct figures *figures)
{
    buf_fini(&figures->text);
}
