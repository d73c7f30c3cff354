/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers stats items, slabs, cachedump and detail.
 *
 * memcached keeps items in pages, each cut into chunks of one size, and tools
 * show how they are filled. Here there are no pages: items are counted by the
 * class they would be in, and the pages are those that so many would take. */
#include "server/admin_priv.h"

#include "base/num.h"
#include "base/uri.h"
#include "items/items.h"
#include "proto/reply_stats.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    PAGE_BYTES = 1 << 20,
    CACHEDUMP_BYTES_MAX = 2 << 20, /* of a reply, as in memcached */
    CACHEDUMP_LOOKS_MAX = 1 << 15, /* items looked at for it */
    CACHEDUMP_PIECE = 64,
    NAME_BYTES = 64 /* "items:<class>:<figure>" */
};

#define NONE UINT64_C(0)

/* name, number, whether only an LRU maintainer has it. All items are in one
 * list, the cold one of memcached's. */
#define ITEM_LINES(X)                                                         \
    X(number, of->number, false)                                              \
    X(number_hot, NONE, true)                                                 \
    X(number_warm, NONE, true)                                                \
    X(number_cold, of->number, true)                                          \
    X(age_hot, NONE, true)                                                    \
    X(age_warm, NONE, true)                                                   \
    X(age, age_of(of, now_s), false)                                          \
    X(mem_requested, of->mem_requested, false)                                \
    X(evicted, of->evicted, false)                                            \
    X(evicted_nonzero, of->evicted_nonzero, false)                            \
    X(evicted_time, of->evicted_time_s, false)                                \
    X(outofmemory, of->outofmemory, false)                                    \
    X(tailrepairs, NONE, false)                                               \
    X(reclaimed, of->reclaimed, false)                                        \
    X(expired_unfetched, of->expired_unfetched, false)                        \
    X(evicted_unfetched, of->evicted_unfetched, false)                        \
    X(evicted_active, of->evicted_active, true)                               \
    X(crawler_reclaimed, of->crawler_reclaimed, false)                        \
    X(crawler_items_checked, of->crawler_items_checked, false)                \
    X(lrutail_reflocked, NONE, false)                                         \
    X(moves_to_cold, NONE, true)                                              \
    X(moves_to_warm, of->moves_to_warm, true)                                 \
    X(moves_within_lru, of->moves_within_lru, true)                           \
    X(direct_reclaims, NONE, true)                                            \
    X(hits_to_hot, NONE, true)                                                \
    X(hits_to_warm, NONE, true)                                               \
    X(hits_to_cold, of->get_hits, true)                                       \
    X(hits_to_temp, NONE, true)

#define SLAB_LINES(X)                                                         \
    X(chunk_size, of->chunk_bytes)                                            \
    X(chunks_per_page, per_page)                                              \
    X(total_pages, pages)                                                     \
    X(total_chunks, pages *per_page)                                          \
    X(used_chunks, of->number)                                                \
    X(free_chunks, pages *per_page - of->number)                              \
    X(free_chunks_end, NONE)                                                  \
    X(get_hits, of->get_hits)                                                 \
    X(cmd_set, of->cmd_set)                                                   \
    X(delete_hits, of->delete_hits)                                           \
    X(incr_hits, of->incr_hits)                                               \
    X(decr_hits, of->decr_hits)                                               \
    X(cas_hits, of->cas_hits)                                                 \
    X(cas_badval, of->cas_badval)                                             \
    X(touch_hits, of->touch_hits)

/* What is being dumped. */
struct dump {
    const struct server_admin *admin;
    unsigned size_class;
    uint64_t n_left; /* items to show */
    uint64_t looks;
    size_t end; /* the reply may be this long */
    struct buf *out;
};

/* Of a class: seconds since the oldest was used. The clock may have been moved
 * back. */
static uint64_t
age_of(const struct items_class *of, uint64_t now_s)
{
    return of->oldest_s == 0 || of->oldest_s > now_s ? 0
                                                     : now_s - of->oldest_s;
}

static void
put_items(const struct items_class *of, unsigned i, bool has_maintainer,
    uint64_t now_s, struct reply_stats *out)
{
    char of_class[NAME_BYTES];
#define X(name, number, is_maintained)                                        \
    if (has_maintainer || !(is_maintained)) {                                 \
        snprintf(of_class, sizeof of_class, "items:%u:%s", i, #name);         \
        reply_stats_u64(out, of_class, number);                               \
    }
    ITEM_LINES(X)
#undef X
}

void
admin__items(struct server_admin *admin, struct reply_stats *out)
{
    struct items_class classes[ITEMS_CLASSES];
    bool has_maintainer = admin->options->lru_maintainer;
    uint64_t now_s = clock_shifted_s(&admin->clock);
    items_classes(admin->store->items, classes);
    for (unsigned i = 1; i < ITEMS_CLASSES; i++) {
        if (classes[i].number > 0) {
            put_items(&classes[i], i, has_maintainer, now_s, out);
        }
    }
    reply_stats_end(out);
}

/* Returns the pages. */
static uint64_t
put_slab(const struct items_class *of, unsigned i, struct reply_stats *out)
{
    uint64_t per_page =
        of->chunk_bytes >= PAGE_BYTES ? 1 : PAGE_BYTES / of->chunk_bytes;
    uint64_t pages = (of->number + per_page - 1) / per_page;
    pages = pages == 0 ? 1 : pages; /* memcached keeps one */
    char of_class[NAME_BYTES];
#define X(name, number)                                                       \
    snprintf(of_class, sizeof of_class, "%u:%s", i, #name);                   \
    reply_stats_u64(out, of_class, number);
    SLAB_LINES(X)
#undef X
    return pages;
}

void
admin__slabs(struct server_admin *admin, struct reply_stats *out)
{
    struct items_class classes[ITEMS_CLASSES];
    uint64_t n = 0;
    uint64_t pages = 0;
    items_classes(admin->store->items, classes);
    for (unsigned i = 1; i < ITEMS_CLASSES; i++) {
        if (classes[i].chunk_bytes > 0 &&
            (classes[i].number > 0 || classes[i].cmd_set > 0)) {
            pages += put_slab(&classes[i], i, out);
            n++;
        }
    }
    reply_stats_u64(out, "active_slabs", n);
    reply_stats_u64(out, "total_malloced", pages * PAGE_BYTES);
    reply_stats_end(out);
}

static void
dump_item(void *context, const struct items_seen *seen)
{
    struct dump *dump = context;
    const struct clock_shift *clock = &dump->admin->clock;
    char key[URI_BYTES * TEXT_KEY_MAX];
    int64_t expiry = 0;
    dump->looks++;
    if (seen->class_ != dump->size_class || dump->n_left == 0 ||
        dump->out->len >= dump->end) {
        return;
    }
    if (seen->expiry_s != ITEMS_NEVER) {
        expiry = clock_shifted_unix_s(clock) +
            (int64_t)(seen->expiry_s - clock_shifted_s(clock));
    }
    size_t len = uri_encode_word(seen->key, seen->key_len, key);
    buf_addf(dump->out, "ITEM %.*s [%" PRIu32 " b; %" PRId64 " s]\r\n",
        (int)len, key, seen->item->value_len, expiry);
    dump->n_left--;
}

static void
dump_class(struct server_admin *admin, unsigned size_class, uint64_t limit,
    struct reply_stats *out)
{
    uint64_t cursor = 0;
    struct buf aside = {0};
    struct buf *lines = reply_stats_dump(out, &aside);
    struct dump dump = {.admin = admin,
        .size_class = size_class,
        .n_left = limit == 0 ? UINT64_MAX : limit,
        .end = lines->len + CACHEDUMP_BYTES_MAX,
        .out = lines};
    do {
        cursor = items_each(admin->store->items, cursor, CACHEDUMP_PIECE,
            clock_shifted_s(&admin->clock), dump_item, &dump);
    } while (cursor != 0 && dump.n_left > 0 && lines->len < dump.end &&
        dump.looks < CACHEDUMP_LOOKS_MAX);
    reply_stats_end_dump(out, NULL, &aside);
}

void
admin__cachedump(struct server_admin *admin, const char *args,
    struct words words, struct reply_stats *out)
{
    struct span id;
    struct span limit;
    uint32_t size_class;
    uint32_t n;
    if (admin->options->no_dump) {
        reply_stats_refuse(out, "CLIENT_ERROR stats cachedump not allowed");
    } else if (!words_next(&words, &id) || !words_next(&words, &limit)) {
        reply_stats_refuse(out, "CLIENT_ERROR bad command line");
    } else if (!num_parse_u32(args + id.at, id.len, &size_class) ||
        !num_parse_u32(args + limit.at, limit.len, &n)) {
        reply_stats_refuse(out, "CLIENT_ERROR bad command line format");
    } else if (size_class >= ITEMS_CLASSES) {
        reply_stats_refuse(out, "CLIENT_ERROR Illegal slab id");
    } else {
        dump_class(admin, size_class, n, out);
    }
}

static void
put_prefix(void *context, const char *name, size_t len,
    const struct prefix_counts *counts)
{
    char text[URI_BYTES * PREFIX_KEY_BYTES];
    size_t text_len = uri_encode_word(name, len, text);
    buf_addf(context,
        "PREFIX %.*s get %" PRIu64 " hit %" PRIu64 " set %" PRIu64
        " del %" PRIu64 "\r\n",
        (int)text_len, text, counts->get, counts->hit, counts->set,
        counts->del);
}

void
admin__detail(struct server_admin *admin, const char *args, struct words words,
    struct reply_stats *out)
{
    struct span word;
    if (admin->options->no_dump) {
        reply_stats_refuse(out, "CLIENT_ERROR stats detail not allowed");
        return;
    }
    bool has_word = words_next(&words, &word);
    if (has_word && span_begins(args, word, "on")) {
        prefixes_switch(&admin->prefixes, true);
        reply_stats_done(out, "OK");
    } else if (has_word && span_begins(args, word, "off")) {
        prefixes_switch(&admin->prefixes, false);
        reply_stats_done(out, "OK");
    } else if (has_word && span_begins(args, word, "dump")) {
        struct buf aside = {0};
        prefixes_each(
            &admin->prefixes, put_prefix, reply_stats_dump(out, &aside));
        reply_stats_end_dump(out, "detailed", &aside);
    } else {
        reply_stats_refuse(
            out, "CLIENT_ERROR usage: stats detail on|off|dump");
    }
}
