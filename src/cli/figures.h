/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLI_FIGURES_H
#define CLI_FIGURES_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The answer to one `stats`: names and values in the order of the server.
 * Zeroed it is empty. One thread. */

struct figures {
    struct buf text;      /* "NAME\0VALUE\0" for each; owned */
    char error[200];      /* "": it was answered; else what the server said */
    bool is_name_unknown; /* it knows no such `stats` */
};

/* Takes a line of the answer, which no 0 ends. False: it is neither figure nor
 * error; nothing is taken. */
bool figures_take(struct figures *figures, const char *line, size_t len);

/* One after the other: *at is 0 at first. False behind the last one. What is
 * handed out is good until the next figures_take or figures_clear. */
bool figures_next(const struct figures *figures, size_t *at, const char **name,
    const char **value);

/* The value of a name; NULL: there is none. */
const char *figures_text(const struct figures *figures, const char *name);

/* Likewise, a decimal number; what is behind a point is left out. False where
 * there is none, and *out is 0. */
bool figures_u64(
    const struct figures *figures, const char *name, uint64_t *out);

/* A word KEY=VALUE of a value, "a=1 b=2": at most size - 1 bytes of VALUE go to
 * out. False, and out is "": no such word. */
bool figures_word(const char *value, const char *key, char *out, size_t size);

void figures_clear(struct figures *figures);
void figures_fini(struct figures *figures);

#endif
