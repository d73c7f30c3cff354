/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PROTO_META_H
#define PROTO_META_H

#include "proto/text_line.h"

/* The parsers of memcached's meta commands: rows in the table of text.c, each
 * for the words behind its command. Inside src/proto only. */

enum {
    META_OPAQUE_MAX = 32 /* of an O flag, its letter included */
};

enum parse_status meta__parse_get(struct line *line);     /* mg */
enum parse_status meta__parse_set(struct line *line);     /* ms */
enum parse_status meta__parse_delete(struct line *line);  /* md */
enum parse_status meta__parse_arith(struct line *line);   /* ma */
enum parse_status meta__parse_noop(struct line *line);    /* mn */
enum parse_status meta__parse_inspect(struct line *line); /* me */

#endif
