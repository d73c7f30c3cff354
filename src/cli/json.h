/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* Writes JSON, a member a line. One thread.
 *
 *   struct json json = {.out = &buf};
 *   json_open(&json, NULL, '{');
 *   json_text(&json, "state", "ready");
 *   json_close(&json);
 *
 * The name is NULL in an array and at the top. Memory that is out is found in
 * out->failed. */

enum { JSON_DEPTH_MAX = 8 };

struct json {
    struct buf *out;
    unsigned depth; /* 0: nothing is open */
    char close[JSON_DEPTH_MAX];
    bool has_some[JSON_DEPTH_MAX];
};

void json_open(struct json *json, const char *name, char bracket); /* { [ */
void json_close(struct json *json); /* a newline behind the last one */
void json_text(struct json *json, const char *name, const char *text);
void json_u64(struct json *json, const char *name, uint64_t value);
void json_bool(struct json *json, const char *name, bool value);

/* A figure: a number where it is one that JSON has and 2^53 does not pass, else
 * a text: "12", "0.25"; but "007", "1.", "18446744073709551615" are texts. */
void json_figure(struct json *json, const char *name, const char *text);

#endif
