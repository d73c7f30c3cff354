/* SPDX-License-Identifier: BSD-3-Clause */
/* What the options say as `stats settings`, and which of them were given in
 * vain.
 *
 * The first part is memcached's: its names, in its order and its forms, so
 * that what reads a memcached's settings reads ours. A setting of something
 * that is not here (slabs, the LRU crawler, disk storage) shows what a
 * memcached with the same options would show. */
#include "server/options.h"

#include "base/assert.h"

#include <inttypes.h>
#include <string.h>

enum { KIB_SHIFT = 10, MIB_SHIFT = 20, FRACTION_DIGITS = 2, RATIO_DIGITS = 3 };

/* Where the lines go. */
struct sink {
    void (*setting_fn)(void *context, const char *name, const char *value);
    void *context;
    struct buf value; /* of the line that is being made */
};

/* name, form, value as an expression of `o`, the options. Sizes that memcached
 * keeps in 32 bits wrap as there. */
#define SETTINGS(X)                                                           \
    X(maxbytes, whole, o->memory_limit)                                       \
    X(maxconns, number, o->conn_limit)                                        \
    X(tcpport, number, o->port)                                               \
    X(udpport, number, o->udp_port)                                           \
    X(inter, addresses, &o->listen)                                           \
    X(verbosity, number, o->verbosity)                                        \
    X(oldest, whole, o->oldest_s)                                             \
    X(evictions, text, o->keeps ? "off" : "on")                               \
    X(domain_socket, given, o->unix_socket.text)                              \
    X(umask, octal, o->unix_mask)                                             \
    X(shutdown_command, yes, o->shutdown_enabled)                             \
    X(growth_factor, fraction, o->growth_factor)                              \
    X(chunk_size, number, o->chunk_size)                                      \
    X(num_threads, number, o->threads)                                        \
    X(num_threads_per_udp, number, o->listen.n > 1 ? 1 : o->threads)          \
    X(stat_key_prefix, character, o->prefix_delimiter)                        \
    X(detail_enabled, yes, o->stats_detail)                                   \
    X(reqs_per_event, number, o->reqs_per_event)                              \
    X(cas_enabled, yes, !o->no_cas)                                           \
    X(tcp_backlog, number, o->listen_backlog)                                 \
    X(binding_protocol, text, protocol_of(o))                                 \
    X(auth_enabled_sasl, yes, o->sasl)                                        \
    X(auth_enabled_ascii, text,                                               \
        o->auth_file.text[0] == '\0' ? "no" : o->auth_file.text)              \
    X(item_size_max, whole, o->item_size_max)                                 \
    X(maxconns_fast, yes, o->maxconns_fast)                                   \
    X(hashpower_init, number, o->hash_power)                                  \
    X(slab_reassign, yes, o->slab_reassign)                                   \
    X(slab_automove, number, o->slab_automove)                                \
    X(slab_automove_ratio, fraction, o->slab_automove_ratio)                  \
    X(slab_automove_window, number, o->slab_automove_window)                  \
    X(slab_chunk_max, number,                                                 \
        (o->chunked_items ? o->slab_chunk_max_kib : 1 << KIB_SHIFT)           \
            << KIB_SHIFT)                                                     \
    X(lru_crawler, yes, o->lru_crawler)                                       \
    X(lru_crawler_sleep, number, o->lru_crawler_sleep)                        \
    X(lru_crawler_tocrawl, whole, o->lru_crawler_tocrawl)                     \
    X(tail_repair_time, number, o->tail_repair_time_s)                        \
    X(flush_enabled, yes, !o->no_flush)                                       \
    X(dump_enabled, yes, !o->no_dump)                                         \
    X(hash_algorithm, hash, o->hash_algorithm)                                \
    X(lru_maintainer_thread, yes, o->lru_maintainer)                          \
    X(lru_segmented, yes, o->lru_maintainer)                                  \
    X(hot_lru_pct, number, o->hot_lru_pct)                                    \
    X(warm_lru_pct, number, o->warm_lru_pct)                                  \
    X(hot_max_factor, fraction, o->hot_max_factor)                            \
    X(warm_max_factor, fraction, o->warm_max_factor)                          \
    X(temp_lru, yes, o->extended_given[OPTIONS_EXTENDED_ID_temporary_ttl_s])  \
    X(temporary_ttl, whole, (uint32_t)o->temporary_ttl_s)                     \
    X(idle_timeout, number, o->idle_timeout_s)                                \
    X(watcher_logbuf_size, whole,                                             \
        (uint32_t)(o->watcher_logbuf_kib << KIB_SHIFT))                       \
    X(worker_logbuf_size, whole,                                              \
        (uint32_t)(o->worker_logbuf_kib << KIB_SHIFT))                        \
    X(read_buf_mem_limit, whole,                                              \
        (uint32_t)(o->read_buf_mem_limit_mib << MIB_SHIFT))                   \
    X(track_sizes, yes, o->track_sizes)                                       \
    X(inline_ascii_response, text, "no")                                      \
    X(ext_item_size, whole, o->ext_item_size)                                 \
    X(ext_item_age, whole, o->ext_item_age_s)                                 \
    X(ext_low_ttl, whole, o->ext_low_ttl_s)                                   \
    X(ext_recache_rate, whole, o->ext_recache_rate)                           \
    X(ext_wbuf_size, whole, (uint32_t)(o->ext_wbuf_size_mib << MIB_SHIFT))    \
    X(ext_compact_under, whole, o->ext_compact_under)                         \
    X(ext_drop_under, whole, o->ext_drop_under)                               \
    X(ext_max_sleep, whole, o->ext_max_sleep_us)                              \
    X(ext_max_frag, fraction, o->ext_max_frag)                                \
    X(slab_automove_freeratio, ratio, o->slab_automove_freeratio)             \
    X(ext_drop_unread, yes, o->ext_drop_unread)

/* Shown with -Z. The numbers are OpenSSL's. */
#define SETTINGS_TLS(X)                                                       \
    X(ssl_enabled, yes, o->tls)                                               \
    X(ssl_chain_cert, text, o->ssl_chain_cert.text)                           \
    X(ssl_key, text, o->ssl_key.text[0] == '\0' ? "(null)" : o->ssl_key.text) \
    X(ssl_verify_mode, number, verify_flags[o->ssl_verify_mode])              \
    X(ssl_keyformat, number, o->ssl_keyformat)                                \
    X(ssl_ciphers, given, o->ssl_ciphers.text)                                \
    X(ssl_ca_cert, given, o->ssl_ca_cert.text)                                \
    X(ssl_wbuf_size, whole, (uint32_t)(o->ssl_wbuf_size_kib << KIB_SHIFT))    \
    X(ssl_session_cache, yes, o->ssl_session_cache)                           \
    X(ssl_kernel_tls, yes, o->ssl_kernel_tls)                                 \
    X(ssl_min_version, text, o->ssl_min_version == 3 ? "tlsv1.3" : "tlsv1.2")

#define SETTINGS_LAST(X)                                                      \
    X(num_napi_ids, number, o->napi_ids)                                      \
    X(memory_file, text,                                                      \
        o->memory_file.text[0] == '\0' ? "(null)" : o->memory_file.text)      \
    X(client_flags_size, text, "4")

/* memcached shows OpenSSL's bits of each ssl_verify_mode. */
static const int verify_flags[] = {0, 1, 3, 7};

static const char *
protocol_of(const struct options *options)
{
    switch (options->protocol) {
    case OPTIONS_PROTOCOL_ASCII:
        return "ascii";
    case OPTIONS_PROTOCOL_BINARY:
        return "binary";
    default:
        return "auto-negotiate";
    }
}

/* Appends the word at a place of "this|that". */
static void
add_choice(const struct options_row *row, int place, struct buf *out)
{
    const char *word = row->argument;
    for (; place > 0; place--) {
        word += strcspn(word, "|") + 1;
    }
    buf_add(out, word, strcspn(word, "|"));
}

static void
add_hash(struct buf *out, int value)
{
    add_choice(
        options_extended_row(OPTIONS_EXTENDED_ID_hash_algorithm), value, out);
}

/* Ends the value and hands the line out. */
static void
put(struct sink *sink, const char *name)
{
    buf_add(&sink->value, "", 1);
    if (!sink->value.failed) {
        sink->setting_fn(sink->context, name, sink->value.data);
    }
    buf_clear(&sink->value);
}

static void
add_whole(struct buf *out, uint64_t value)
{
    buf_addf(out, "%" PRIu64, value);
}

static void
add_number(struct buf *out, int value)
{
    buf_addf(out, "%d", value);
}

static void
add_octal(struct buf *out, int value)
{
    buf_addf(out, "%o", (unsigned)value);
}

static void
add_text(struct buf *out, const char *value)
{
    buf_add_text(out, value);
}

static void
add_given(struct buf *out, const char *value)
{
    buf_add_text(out, value[0] == '\0' ? "NULL" : value);
}

static void
add_yes(struct buf *out, bool value)
{
    buf_add_text(out, value ? "yes" : "no");
}

static void
add_character(struct buf *out, char value)
{
    buf_add(out, &value, 1);
}

static void
add_fraction(struct buf *out, double value)
{
    buf_addf(out, "%.*f", FRACTION_DIGITS, value);
}

static void
add_ratio(struct buf *out, double value)
{
    buf_addf(out, "%.*f", RATIO_DIGITS, value);
}

static void
add_addresses(struct buf *out, const struct options_addresses *addresses)
{
    static const char *const prefixes[] = {[OPTIONS_PROTOCOL_AUTO] = "",
        [OPTIONS_PROTOCOL_ASCII] = "proto[ascii]:",
        [OPTIONS_PROTOCOL_BINARY] = "proto[binary]:"};
    static const char *const tls[] = {[OPTIONS_TLS_DEFAULT] = "",
        [OPTIONS_TLS_NOT] = "notls:",
        [OPTIONS_TLS_ANYONE] = "btls:",
        [OPTIONS_TLS_KNOWN] = "mtls:"};
    for (unsigned i = 0; i < addresses->n; i++) {
        const struct options_address *address = &addresses->address[i];
        bool has_port = address->port != OPTIONS_NO_PORT;
        bool brackets = has_port && strchr(address->host, ':') != NULL;
        buf_addf(out, "%s%s%s%s%s%s", i == 0 ? "" : ",", tls[address->tls],
            prefixes[address->protocol], brackets ? "[" : "", address->host,
            brackets ? "]" : "");
        if (has_port) {
            buf_addf(out, ":%d", address->port);
        }
    }
}

/* Appends the value of an option of ours. */
static void
add_value(const struct options_row *row, const void *field, struct buf *out)
{
    switch (row->type) {
    case OPTIONS_TYPE_CHOICE:
        add_choice(row, *(const int *)field, out);
        break;
    case OPTIONS_TYPE_BYTES:
    case OPTIONS_TYPE_BYTES_OR_AUTO:
        add_whole(out, *(const uint64_t *)field);
        break;
    case OPTIONS_TYPE_FLAG:
        add_yes(out, *(const bool *)field);
        break;
    case OPTIONS_TYPE_TEXT:
    case OPTIONS_TYPE_PATH:
    case OPTIONS_TYPE_DIRECTORY:
        add_given(out, ((const struct options_text *)field)->text);
        break;
    default:
        ASSERT(row->type == OPTIONS_TYPE_NUMBER ||
            row->type == OPTIONS_TYPE_POWER_OF_TWO);
        add_number(out, *(const int *)field);
    }
}

static void
put_memcached(const struct options *o, struct sink *sink)
{
#define X(name, form, of)                                                     \
    add_##form(&sink->value, of);                                             \
    put(sink, #name);
    SETTINGS(X)
    if (o->tls) {
        SETTINGS_TLS(X)
    }
    SETTINGS_LAST(X)
#undef X
}

void
options_each_setting(const struct options *options,
    void (*setting_fn)(void *context, const char *name, const char *value),
    void *context)
{
    struct sink sink = {.setting_fn = setting_fn, .context = context};

    put_memcached(options, &sink);
    for (enum options_id i = 0; i < OPTIONS_COUNT; i++) {
        const struct options_row *row = options_row(i);
        if (row->setting != NULL) {
            add_value(row, (const char *)options + row->offset, &sink.value);
            put(&sink, row->setting);
        }
    }
    buf_fini(&sink.value);
}

/* "-o NAME", with the prefix where that was given. */
static void
add_extended(const struct options *options, const struct options_row *row,
    struct buf *out)
{
    const void *field = (const char *)options + row->offset;
    bool negated = (row->form & OPTIONS_FORM_NEGATED) != 0 &&
        row->type == OPTIONS_TYPE_FLAG && !*(const bool *)field;
    buf_addf(out, "-o %s%s", negated ? "no_" : "", row->name);
}

void
options_each_ignored(const struct options *options,
    void (*ignored_fn)(void *context, const char *option), void *context)
{
    struct buf text = {0};

    for (int i = 0; i < OPTIONS_COUNT + OPTIONS_EXTENDED_COUNT; i++) {
        int extended = i - OPTIONS_COUNT;
        const struct options_row *row = extended < 0
            ? options_row((enum options_id)i)
            : options_extended_row((enum options_extended_id)extended);
        bool given = extended < 0 ? options->given[i]
                                  : options->extended_given[extended];
        if (!given || row->care != OPTIONS_CARE_IGNORED) {
            continue;
        }
        buf_clear(&text);
        if (extended < 0) {
            buf_addf(&text, "--%s", row->name);
        } else {
            add_extended(options, row, &text);
        }
        buf_add(&text, "", 1);
        if (!text.failed) {
            ignored_fn(context, text.data);
        }
    }
    buf_fini(&text);
}
