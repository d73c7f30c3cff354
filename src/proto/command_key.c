/* SPDX-License-Identifier: BSD-3-Clause */
/* The key of a command, without its parser: the command may have been cut, and
 * what it asked for has been done. Values follow a line's end, or a packet's
 * key, and so are never looked at. */
#include "proto/command_key.h"

#include "base/bytes.h"
#include "proto/binary.h"
#include "proto/words.h"

#include <string.h>

/* What stands before the keys of a retrieval: 0, 1 (an exptime), or -1: it is
 * none. */
static int
words_before_keys(const char *bytes, struct span name)
{
    if (span_is(bytes, name, "get") || span_is(bytes, name, "gets")) {
        return 0;
    }
    return span_is(bytes, name, "gat") || span_is(bytes, name, "gats") ? 1
                                                                       : -1;
}

static void
read_line(const char *bytes, size_t len, struct command_key *out)
{
    const char *end = memchr(bytes, '\n', len);
    size_t n = end == NULL ? len : (size_t)(end - bytes);
    if (n > 0 && end != NULL && bytes[n - 1] == '\r') {
        n--;
    }
    struct words words = words_of(bytes, (struct span){0, (uint32_t)n});
    struct span name, word;
    if (!words_next(&words, &name)) {
        return;
    }
    out->is_stats = span_is(bytes, name, "stats");
    int before = words_before_keys(bytes, name);
    for (int i = 0; i < before; i++) {
        (void)words_next(&words, &word);
    }
    while (words_next(&words, &word)) {
        if (out->n_keys++ == 0) {
            out->key = word;
        }
        if (before < 0) {
            return;
        }
    }
}

static void
read_packet(const char *bytes, size_t len, struct command_key *out)
{
    const uint8_t *header = (const uint8_t *)bytes;
    if (len < BINARY_HEADER_BYTES) {
        return;
    }
    out->is_stats = header[1] == BINARY_STAT;
    size_t at = BINARY_HEADER_BYTES + header[4]; /* behind the extras */
    size_t key_len = (size_t)header[2] << 8 | header[3];
    if (at >= len || key_len == 0) {
        return;
    }
    key_len = key_len < len - at ? key_len : len - at;
    out->key = (struct span){(uint32_t)at, (uint32_t)key_len};
    out->n_keys = 1;
}

void
command_key_read(
    const char *bytes, size_t len, bool is_binary, struct command_key *out)
{
    *out = (struct command_key){.n_keys = 0};
    if (is_binary) {
        read_packet(bytes, len, out);
    } else {
        read_line(bytes, len, out);
    }
}
