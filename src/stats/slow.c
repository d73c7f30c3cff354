/* SPDX-License-Identifier: BSD-3-Clause */
/* The slow log: a ring of entries under a lock, which is taken for what was
 * slow only. What was waited for is measured; the worker's own work is what is
 * left of the whole time. */
#include "stats/slow.h"

#include "base/assert.h"
#include "base/uri.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *
phase_name(enum slow_phase phase)
{
    static const char *const names[SLOW_PHASE_COUNT] = {
#define X(name, text) #name,
        SLOW_PHASES(X)
#undef X
    };
    ASSERT((unsigned)phase < SLOW_PHASE_COUNT);
    return names[phase];
}

void
slow_init(struct slow_log *log)
{
    mutex_init(&log->lock);
    log->n = 0;
}

void
slow_fini(struct slow_log *log)
{
    mutex_fini(&log->lock);
}

void
slow_add(struct slow_log *log, const struct slow_entry *entry)
{
    ASSERT(entry->key_len <= SLOW_KEY_BYTES);
    mutex_lock(&log->lock);
    log->entry[log->n++ % SLOW_KEPT] = *entry;
    mutex_unlock(&log->lock);
}

unsigned
slow_read(struct slow_log *log, struct slow_entry out[SLOW_KEPT])
{
    mutex_lock(&log->lock);
    unsigned n = log->n < SLOW_KEPT ? (unsigned)log->n : SLOW_KEPT;
    memcpy(out, log->entry, n * sizeof *out);
    mutex_unlock(&log->lock);
    return n;
}

void
slow_clear(struct slow_log *log)
{
    mutex_lock(&log->lock);
    log->n = 0;
    mutex_unlock(&log->lock);
}

void
slow_judge(struct slow_entry *entry)
{
    uint64_t waited = 0;
    for (unsigned i = 0; i < SLOW_PHASE_COUNT; i++) {
        waited += i == SLOW_parse ? 0 : entry->phase_us[i];
    }
    entry->phase_us[SLOW_parse] = waited < entry->us ? entry->us - waited : 0;
    entry->why = SLOW_parse;
    for (unsigned i = 0; i < SLOW_PHASE_COUNT; i++) {
        if (entry->phase_us[i] > entry->phase_us[entry->why]) {
            entry->why = (uint8_t)i;
        }
    }
}

/* As in an URL, and a NUL; "-" for nothing. */
static void
encode(const char *text, size_t len, char *out)
{
    size_t n = uri_encode(text, len, out);
    if (n == 0) {
        out[n++] = '-';
    }
    out[n] = '\0';
}

size_t
slow_format(const struct slow_entry *entry, char text[SLOW_TEXT_BYTES])
{
    char key[URI_BYTES * SLOW_KEY_BYTES + 1];
    encode(entry->key, entry->key_len, key);
    int n = snprintf(text, SLOW_TEXT_BYTES,
        "when=%" PRId64 " us=%" PRIu64 " verb=%s keys=%" PRIu64
        " key=%s bytes=%" PRIu64 " client=%s user=%s conn=%d",
        entry->unix_ms, entry->us,
        latency_verb_name((enum latency_verb)entry->verb), entry->keys, key,
        entry->bytes, entry->client[0] == '\0' ? "-" : entry->client,
        entry->user[0] == '\0' ? "-" : entry->user, entry->conn);
    for (unsigned i = 0; i < SLOW_PHASE_COUNT; i++) {
        n += snprintf(text + n, SLOW_TEXT_BYTES - (size_t)n, " %s_us=%" PRIu64,
            phase_name((enum slow_phase)i), entry->phase_us[i]);
    }
    n += snprintf(text + n, SLOW_TEXT_BYTES - (size_t)n, " why=%s",
        phase_name((enum slow_phase)entry->why));
    ASSERT(n > 0 && n < SLOW_TEXT_BYTES);
    return (size_t)n;
}
