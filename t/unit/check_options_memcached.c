/* SPDX-License-Identifier: BSD-3-Clause */
/* server/options, what is memcached's of it: that every switch and every name
 * of -o is there, what comes of it, and that stats settings is memcached's.
 * The lists are what the help and the source of memcached 1.6.45 (and of
 * 1.6.18, for TLS and SASL) name. */
#include "unit/options_help.h"

/* Every letter with its long name. */
static const struct {
    char letter;
    const char *name; /* NULL: memcached has none */
    bool takes;
    enum options_care care;
} switches[] = {
    {'a', "unix-mask", true, OPTIONS_CARE_MET},
    {'A', "enable-shutdown", false, OPTIONS_CARE_MET},
    {'b', "listen-backlog", true, OPTIONS_CARE_MET},
    {'B', "protocol", true, OPTIONS_CARE_MET},
    {'c', "conn-limit", true, OPTIONS_CARE_MET},
    {'C', "disable-cas", false, OPTIONS_CARE_MET},
    {'d', "daemon", false, OPTIONS_CARE_MET},
    {'D', NULL, true, OPTIONS_CARE_MET},
    {'e', "memory-file", true, OPTIONS_CARE_IGNORED},
    {'f', "slab-growth-factor", true, OPTIONS_CARE_IGNORED},
    {'F', "disable-flush-all", false, OPTIONS_CARE_MET},
    {'h', "help", false, OPTIONS_CARE_MET},
    {'i', "license", false, OPTIONS_CARE_MET},
    {'I', "max-item-size", true, OPTIONS_CARE_MET},
    {'k', "lock-memory", false, OPTIONS_CARE_MET},
    {'l', "listen", true, OPTIONS_CARE_MET},
    {'L', "enable-largepages", false, OPTIONS_CARE_IGNORED},
    {'m', "memory-limit", true, OPTIONS_CARE_MET},
    {'M', "disable-evictions", false, OPTIONS_CARE_MET},
    {'n', "slab-min-size", true, OPTIONS_CARE_IGNORED},
    {'N', "napi-ids", true, OPTIONS_CARE_IGNORED},
    {'o', "extended", true, OPTIONS_CARE_MET},
    {'p', "port", true, OPTIONS_CARE_MET},
    {'P', "pidfile", true, OPTIONS_CARE_MET},
    {'r', "enable-coredumps", false, OPTIONS_CARE_MET},
    {'R', "max-reqs-per-event", true, OPTIONS_CARE_MET},
    {'s', "unix-socket", true, OPTIONS_CARE_MET},
    {'S', "enable-sasl", false, OPTIONS_CARE_MET},
    {'t', "threads", true, OPTIONS_CARE_MET},
    {'u', "user", true, OPTIONS_CARE_MET},
    {'U', "udp-port", true, OPTIONS_CARE_MET},
    {'v', "verbose", false, OPTIONS_CARE_MET},
    {'V', "version", false, OPTIONS_CARE_MET},
    {'W', "disable-watch", false, OPTIONS_CARE_MET},
    {'X', "disable-dumping", false, OPTIONS_CARE_MET},
    {'Y', "auth-file", true, OPTIONS_CARE_MET},
    {'Z', "enable-ssl", false, OPTIONS_CARE_TLS},
};

START_TEST(test_switches)
{
    for (size_t i = 0; i < COUNT_OF(switches); i++) {
        const struct options_row *found = NULL;
        for (enum options_id id = 0; id < OPTIONS_COUNT; id++) {
            const struct options_row *row = options_row(id);
            if (row->letter == switches[i].letter) {
                ck_assert_ptr_null(found); /* each letter once */
                found = row;
            }
        }
        ck_assert_msg(found != NULL, "no -%c", switches[i].letter);
        if (switches[i].name != NULL) {
            ck_assert_str_eq(found->name, switches[i].name);
        }
        bool takes =
            found->argument != NULL && found->type != OPTIONS_TYPE_HELP;
        ck_assert_msg(
            takes == switches[i].takes, "-%c has a value", found->letter);
        ck_assert_msg(found->care == switches[i].care, "-%c", found->letter);
    }
}
END_TEST

START_TEST(test_flags)
{
    struct options o = good("-AMCFXWkrv");
    ck_assert(o.shutdown_enabled && o.keeps && o.no_cas && o.no_flush);
    ck_assert(o.no_dump && o.no_watch && o.lock_memory && o.core_files);
    ck_assert_int_eq(o.verbosity, 1);
    o = good("--enable-shutdown --disable-evictions --disable-cas "
             "--disable-flush-all --disable-dumping --disable-watch "
             "--lock-memory --enable-coredumps --verbose=x --verbose");
    ck_assert(o.shutdown_enabled && o.keeps && o.no_cas && o.no_flush);
    ck_assert(o.no_dump && o.no_watch && o.lock_memory && o.core_files);
    ck_assert_int_eq(o.verbosity, 2);
    o = good("");
    ck_assert(!o.shutdown_enabled && !o.keeps && !o.no_cas && !o.no_flush);
    ck_assert(!o.no_dump && !o.no_watch && !o.lock_memory && !o.core_files);
    ck_assert(!o.stats_detail && o.maxconns_fast && o.lru_crawler);
    ck_assert(o.lru_maintainer);
    ck_assert_int_eq(o.idle_timeout_s, 0);
    ck_assert_int_eq(o.prefix_delimiter, ':');
    ck_assert_int_eq(o.protocol, OPTIONS_PROTOCOL_AUTO);
}
END_TEST

START_TEST(test_values)
{
    ck_assert_int_eq(good("-B auto").protocol, OPTIONS_PROTOCOL_AUTO);
    ck_assert_int_eq(good("-B ascii").protocol, OPTIONS_PROTOCOL_ASCII);
    ck_assert_int_eq(
        good("--protocol=binary").protocol, OPTIONS_PROTOCOL_BINARY);
    bad("-B http",
        "--protocol: 'http' is refused; wanted is one of auto|ascii|binary");
    bad("-B ''", "--protocol");
    bad("-B asci", "--protocol");
    struct options o = good("-D /");
    ck_assert_int_eq(o.prefix_delimiter, '/');
    ck_assert(o.stats_detail);
    ck_assert_int_eq(good("-D ab").prefix_delimiter, 'a'); /* as there */
    bad("-D ''", "--prefix-delimiter");
    good("-U 0");
    bad("-U 11211", "--udp-port: '11211' is refused; wanted is 0");
    bad("-U -1", "--udp-port");
    ck_assert_double_eq(good("-f 1.08").growth_factor, 1.08);
    bad("-f 1", "--slab-growth-factor: '1' is refused; wanted is a number");
    bad("-f 1.0x", "--slab-growth-factor");
    bad("-f nan", "--slab-growth-factor");
    bad("-f inf", "--slab-growth-factor");
    bad("-f ''", "--slab-growth-factor");
    ck_assert_int_eq(good("-n 100").chunk_size, 100);
    bad("-n 0", "--slab-min-size");
    ck_assert_int_eq(good("-N 2").napi_ids, 2);
    bad("-N 0", "--napi-ids");
    bad("-N 3 -t 2", "--napi-ids is more than --threads");
    ck_assert_str_eq(good("-e f").memory_file.text, "f");
    ck_assert_uint_eq(good("-m~100").memory_limit, 100 << 20);
}
END_TEST

/* Never without the protection that was asked for. */
START_TEST(test_refused)
{
    static const char *const names[] = {
        "proxy_config=x", "proxy_arg=x", "proxy_uring", "proxy_memprofile"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        char line[64];
        snprintf(line, sizeof line, "-o modern,%s", names[i]);
        bad(line, "proxy");
    }
}
END_TEST

static const char *const tls_names[] = {"ssl_chain_cert=x", "ssl_key=x",
    "ssl_verify_mode=1", "ssl_keyformat=1", "ssl_ciphers=x", "ssl_ca_cert=x",
    "ssl_wbuf_size=1", "ssl_session_cache", "ssl_kernel_tls",
    "ssl_min_version=3"};

#ifdef HAVE_OPENSSL
START_TEST(test_tls)
{
    struct options o = good("-Z -o ssl_chain_cert=c,ssl_key=k");
    ck_assert(o.tls && !o.ssl_session_cache);
    ck_assert_str_eq(o.ssl_chain_cert.text, "c");
    ck_assert_str_eq(o.ssl_key.text, "k");
    ck_assert_int_eq(o.ssl_keyformat, 1);
    ck_assert_int_eq(o.ssl_verify_mode, 0);
    ck_assert_int_eq(o.ssl_min_version, 2);
    o = good("-Z -o ssl_chain_cert=c -l notls:a:1,btls:b,mtls:proto[ascii]:c");
    ck_assert_uint_eq(o.listen.n, 3);
    ck_assert_int_eq(o.listen.address[0].tls, OPTIONS_TLS_NOT);
    ck_assert_int_eq(o.listen.address[0].port, 1);
    ck_assert_str_eq(o.listen.address[0].host, "a");
    ck_assert_int_eq(o.listen.address[1].tls, OPTIONS_TLS_ANYONE);
    ck_assert_int_eq(o.listen.address[2].tls, OPTIONS_TLS_KNOWN);
    ck_assert_int_eq(o.listen.address[2].protocol, OPTIONS_PROTOCOL_ASCII);
    for (size_t i = 0; i < COUNT_OF(tls_names); i++) {
        char line[64];
        snprintf(line, sizeof line, "-o modern,%s", tls_names[i]);
        ck_assert(!good(line).tls);
    }
    bad("-Z", "--enable-ssl: a certificate is missing");
    bad("-Z -o ssl_key=k", "--enable-ssl: a certificate is missing");
    bad("-l notls:127.0.0.1", "want --enable-ssl");
    bad("-l mtls:127.0.0.1", "want --enable-ssl");
    bad("-o ssl_min_version=1",
        "ssl_min_version: '1' is refused; wanted is a "
        "number from 2 to 3");
    bad("-o ssl_verify_mode=4", "ssl_verify_mode");
    bad("-o ssl_keyformat=PEM", "ssl_keyformat");
    bad("-o ssl_chain_cert=", "ssl_chain_cert");
    bad("-o ssl_chain_cert", "a value is missing");
}
END_TEST

START_TEST(test_tls_settings)
{
    static const char set[] = "-Z -o ssl_chain_cert=c";
    has_setting(set, "ssl_enabled=yes");
    has_setting(set, "ssl_chain_cert=c");
    has_setting(set, "ssl_key=(null)");
    has_setting(set, "ssl_verify_mode=0");
    has_setting("-Z -o ssl_chain_cert=c,ssl_verify_mode=2",
        "ssl_verify_mode=3"); /* OpenSSL's bits, as there */
    has_setting(
        "-Z -o ssl_chain_cert=c,ssl_verify_mode=3", "ssl_verify_mode=7");
    has_setting(set, "ssl_keyformat=1");
    has_setting(set, "ssl_ciphers=NULL");
    has_setting(set, "ssl_ca_cert=NULL");
    has_setting(set, "ssl_wbuf_size=16384");
    has_setting(set, "ssl_session_cache=no");
    has_setting(set, "ssl_kernel_tls=no");
    has_setting(set, "ssl_min_version=tlsv1.2");
    has_setting(
        "-Z -o ssl_chain_cert=c,ssl_min_version=3", "ssl_min_version=tlsv1.3");
    has_setting("-Z -o ssl_chain_cert=c -l notls:a:1,mtls:b",
        "inter=notls:a:1,mtls:b");
}
END_TEST
#else
START_TEST(test_tls)
{
    bad("-Z", "--enable-ssl: TLS");
    for (size_t i = 0; i < COUNT_OF(tls_names); i++) {
        char line[64];
        snprintf(line, sizeof line, "-o modern,%s", tls_names[i]);
        bad(line, "TLS");
    }
}
END_TEST

START_TEST(test_tls_settings)
{
    bad("-l notls:127.0.0.1", "want --enable-ssl");
}
END_TEST
#endif

static int
protocol_of(const char *line)
{
    return good(line).protocol;
}

/* Which protocols -Y and -S leave, as in memcached, but -S takes -Y's users
 * and -B auto then means both. */
START_TEST(test_access)
{
    unsetenv("MEMCACHED_SASL_PWDB");
    ck_assert_int_eq(protocol_of("-p 1"), OPTIONS_PROTOCOL_AUTO);
    ck_assert_int_eq(protocol_of("-Y f"), OPTIONS_PROTOCOL_ASCII);
    ck_assert_int_eq(protocol_of("-Y f -B ascii"), OPTIONS_PROTOCOL_ASCII);
    ck_assert_int_eq(protocol_of("-Y f -S"), OPTIONS_PROTOCOL_BINARY);
    ck_assert_int_eq(
        protocol_of("-Y f -S -B binary"), OPTIONS_PROTOCOL_BINARY);
    ck_assert_int_eq(protocol_of("-Y f -S -B auto"), OPTIONS_PROTOCOL_AUTO);
    ck_assert_str_eq(good("--auth-file=f").auth_file.text, "f");
    bad("-Y f -B auto", "--auth-file alone is of the text protocol");
    bad("-Y f -B binary", "--auth-file alone is of the text protocol");
    bad("-Y f -S -B ascii", "--enable-sasl is of the binary protocol");
    bad("-Y f -l proto[binary]:127.0.0.1", "needs --enable-sasl");
    good("-Y f -S -l proto[binary]:127.0.0.1,proto[ascii]:127.0.0.2");
    bad("-S", "--enable-sasl: there are no users");
    bad("-Y ''", "--auth-file");
    has_setting("-Y f", "auth_enabled_ascii=f");
    has_setting("-Y f", "binding_protocol=ascii");
    has_setting("-Y f -S", "auth_enabled_sasl=yes");
    setenv("MEMCACHED_SASL_PWDB", "g", 1);
    ck_assert_str_eq(good("-S").auth_file.text, "g");
    ck_assert_str_eq(good("-S -Y f").auth_file.text, "f");
    ck_assert_str_eq(good("-p 1").auth_file.text, "");
    setenv("MEMCACHED_SASL_PWDB", "", 1);
    bad("-S", "--enable-sasl: there are no users");
    unsetenv("MEMCACHED_SASL_PWDB");
}
END_TEST

/* Every other name of -o, as it may be given. */
static const char *const extended[] = {"maxconns_fast", "no_maxconns_fast",
    "idle_timeout=0", "idle_timeout=3600", "lru_crawler", "no_lru_crawler",
    "lru_maintainer", "no_lru_maintainer", "modern", "no_modern",
    "hashpower=12", "hashpower=32", "no_hashexpand", "hash_algorithm=jenkins",
    "hash_algorithm=murmur3", "hash_algorithm=xxh3", "slab_sizes=100-200",
    "slab_reassign", "no_slab_reassign", "slab_automove", "slab_automove=0",
    "slab_automove=2", "no_slab_automove", "slab_automove_ratio=0.9",
    "slab_automove_ratio=1", "slab_automove_window=3",
    "slab_automove_window=1800", "slab_automove_freeratio=0.05",
    "slab_chunk_max=1", "slab_chunk_max=1024", "no_chunked_items",
    "tail_repair_time=10", "lru_crawler_sleep=0", "lru_crawler_sleep=1000000",
    "lru_crawler_tocrawl=4294967295", "hot_lru_pct=1", "hot_lru_pct=79",
    "warm_lru_pct=79", "hot_max_factor=0.1", "warm_max_factor=5",
    "temporary_ttl=-1", "temporary_ttl=30", "watcher_logbuf_size=1024",
    "worker_logbuf_size=1024", "read_buf_mem_limit=16", "resp_obj_mem_limit",
    "resp_obj_mem_limit=5", "track_sizes", "inline_ascii_resp",
    "no_inline_ascii_resp", "drop_privileges", "no_drop_privileges",
    "relaxed_privileges", "sock_cookie_id=1", "ext_path=/f:1g",
    "ext_page_size=8", "ext_wbuf_size=8", "ext_threads=4", "ext_io_depth=4",
    "ext_item_size=100", "ext_item_age=1", "ext_low_ttl=60",
    "ext_recache_rate=10", "ext_compact_under=4", "ext_drop_under=4",
    "ext_max_sleep=100", "ext_max_frag=0.5", "ext_drop_unread"};

START_TEST(test_extended_names)
{
    bool seen[OPTIONS_EXTENDED_COUNT] = {false};
    for (size_t i = 0; i < COUNT_OF(extended); i++) {
        char line[64];
        snprintf(line, sizeof line, "-o %s", extended[i]);
        struct options o = good(line);
        unsigned n = 0;
        for (int id = 0; id < OPTIONS_EXTENDED_COUNT; id++) {
            n += o.extended_given[id];
            seen[id] |= o.extended_given[id];
        }
        ck_assert_uint_ge(n, 1);
    }
    for (enum options_extended_id id = 0; id < OPTIONS_EXTENDED_COUNT; id++) {
        const struct options_row *row = options_extended_row(id);
        if (strncmp(row->name, "ssl_", 4) == 0) {
            continue; /* test_tls */
        }
        ck_assert_msg(seen[id] == (row->care != OPTIONS_CARE_REFUSED),
            "%s is not in the list", row->name);
    }
}
END_TEST

START_TEST(test_extended_values)
{
    struct options o =
        good("-o no_maxconns_fast,idle_timeout=7 -o no_lru_crawler, "
             "--extended=slab_automove=2,hot_max_factor=0.25,track_sizes=no");
    ck_assert(!o.maxconns_fast && !o.lru_crawler && o.lru_maintainer);
    ck_assert(o.track_sizes); /* a value does not matter */
    ck_assert_int_eq(o.idle_timeout_s, 7);
    ck_assert_int_eq(o.slab_automove, 2);
    ck_assert_double_eq(o.hot_max_factor, 0.25);
    ck_assert(good("-o no_maxconns_fast,maxconns_fast").maxconns_fast);
    ck_assert_int_eq(
        good("-o slab_automove=2,slab_automove").slab_automove, 1);
    ck_assert_int_eq(good("-o no_slab_automove").slab_automove, 0);
    o = good("-o no_modern");
    ck_assert(!o.maxconns_fast && !o.lru_crawler && !o.lru_maintainer);
    ck_assert(!o.slab_reassign);
    ck_assert_int_eq(o.slab_chunk_max_kib, 1024);
    ck_assert(good("-o no_modern,maxconns_fast").maxconns_fast);
}
END_TEST

START_TEST(test_extended_refused)
{
    bad("-o foo", "--extended: foo: no such extended option");
    bad("-o ''x", "no such extended option");
    bad("-o modern,,modern", "--extended: : no such");
    bad("-o no_idle_timeout", "no_idle_timeout: no such");
    bad("-o hashexpand", "hashexpand: no such");
    bad("-o chunked_items", "chunked_items: no such");
    bad("-o MODERN", "MODERN: no such");
    bad("-o no_", "no_: no such");
    bad("-o idle_timeout", "--extended: idle_timeout: a value is missing");
    bad("-o idle_timeout=", "idle_timeout: '' is refused");
    bad("-o idle_timeout=-1", "idle_timeout: '-1' is refused; wanted is a");
    bad("-o idle_timeout=5x", "idle_timeout: '5x'");
    bad("-o hashpower=11",
        "hashpower: '11' is refused; wanted is a number "
        "from 12 to 32");
    bad("-o hashpower=33", "hashpower");
    bad("-o hash_algorithm=md5", "one of jenkins|murmur3|xxh3");
    bad("-o slab_automove=3", "slab_automove");
    bad("-o slab_automove_ratio=0", "slab_automove_ratio");
    bad("-o slab_automove_ratio=1.1", "a number from 0.001 to 1");
    bad("-o slab_automove_window=2", "slab_automove_window");
    bad("-o tail_repair_time=9", "tail_repair_time");
    bad("-o lru_crawler_sleep=1000001", "lru_crawler_sleep");
    bad("-o lru_crawler_tocrawl=4294967296", "lru_crawler_tocrawl");
    bad("-o hot_lru_pct=80", "hot_lru_pct");
    bad("-o warm_max_factor=0", "warm_max_factor");
    bad("-o slab_chunk_max=1025", "slab_chunk_max");
    bad("-o slab_sizes", "slab_sizes: a value is missing");
    bad("-o ext_path=", "ext_path");
    bad("-o", "--extended: a value is missing");
    char line[1200] = "-o ext_path=";
    memset(line + strlen(line), 'x', OPTIONS_TEXT_BYTES);
    bad(line, "too long");
}
END_TEST

/* The names of memcached's stats settings, in its order. */
static const char *const settings[] = {"maxbytes", "maxconns", "tcpport",
    "udpport", "inter", "verbosity", "oldest", "evictions", "domain_socket",
    "umask", "shutdown_command", "growth_factor", "chunk_size", "num_threads",
    "num_threads_per_udp", "stat_key_prefix", "detail_enabled",
    "reqs_per_event", "cas_enabled", "tcp_backlog", "binding_protocol",
    "auth_enabled_sasl", "auth_enabled_ascii", "item_size_max",
    "maxconns_fast", "hashpower_init", "slab_reassign", "slab_automove",
    "slab_automove_ratio", "slab_automove_window", "slab_chunk_max",
    "lru_crawler", "lru_crawler_sleep", "lru_crawler_tocrawl",
    "tail_repair_time", "flush_enabled", "dump_enabled", "hash_algorithm",
    "lru_maintainer_thread", "lru_segmented", "hot_lru_pct", "warm_lru_pct",
    "hot_max_factor", "warm_max_factor", "temp_lru", "temporary_ttl",
    "idle_timeout", "watcher_logbuf_size", "worker_logbuf_size",
    "read_buf_mem_limit", "track_sizes", "inline_ascii_response",
    "ext_item_size", "ext_item_age", "ext_low_ttl", "ext_recache_rate",
    "ext_wbuf_size", "ext_compact_under", "ext_drop_under", "ext_max_sleep",
    "ext_max_frag", "slab_automove_freeratio", "ext_drop_unread",
    "num_napi_ids", "memory_file", "client_flags_size"};

struct order {
    unsigned n;
    bool seen_hot_memory;
};

static void
next_setting(void *context, const char *name, const char *value)
{
    struct order *order = context;
    ck_assert_uint_gt(strlen(value), 0);
    if (order->n < COUNT_OF(settings)) {
        ck_assert_str_eq(name, settings[order->n]);
    } else {
        for (size_t i = 0; i < COUNT_OF(settings); i++) {
            ck_assert_str_ne(name, settings[i]);
        }
    }
    order->n++;
    order->seen_hot_memory |= strcmp(name, "hot_memory") == 0;
}

START_TEST(test_settings_order)
{
    struct options o = good("");
    struct order order = {0};
    ck_assert_uint_eq(COUNT_OF(settings), 66);
    options_each_setting(&o, next_setting, &order);
    ck_assert_uint_gt(order.n, COUNT_OF(settings));
    ck_assert(order.seen_hot_memory);
}
END_TEST

START_TEST(test_settings_values)
{
    has_setting("", "growth_factor=1.25");
    has_setting("", "num_threads_per_udp=1"); /* two addresses */
    has_setting("-l a -t 3", "num_threads_per_udp=3");
    has_setting("", "binding_protocol=auto-negotiate");
    has_setting("-B ascii", "binding_protocol=ascii");
    has_setting("-B binary", "binding_protocol=binary");
    has_setting("-M", "evictions=off");
    has_setting("", "evictions=on");
    has_setting("-A", "shutdown_command=yes");
    has_setting("-C", "cas_enabled=no");
    has_setting("-F", "flush_enabled=no");
    has_setting("-X", "dump_enabled=no");
    has_setting("-D .", "stat_key_prefix=.");
    has_setting("-D .", "detail_enabled=yes");
    has_setting("", "slab_chunk_max=524288");
    has_setting("-o slab_chunk_max=16", "slab_chunk_max=16384");
    has_setting("-o no_chunked_items", "slab_chunk_max=1048576");
    has_setting("", "slab_automove_ratio=0.80");
    has_setting("", "slab_automove_freeratio=0.010");
    has_setting("", "temp_lru=no");
    has_setting("-o temporary_ttl=30", "temp_lru=yes");
    has_setting("", "watcher_logbuf_size=262144");
    has_setting("", "worker_logbuf_size=65536");
    has_setting("-o read_buf_mem_limit=2", "read_buf_mem_limit=2097152");
    has_setting("-o read_buf_mem_limit=4096", "read_buf_mem_limit=0");
    has_setting("", "ext_item_age=4294967295");
    has_setting("", "ext_wbuf_size=4194304");
    has_setting("", "memory_file=(null)");
    has_setting("-e f", "memory_file=f");
    has_setting("-o no_lru_crawler", "lru_crawler=no");
    has_setting("-o no_lru_maintainer", "lru_maintainer_thread=no");
    has_setting("-o no_lru_maintainer", "lru_segmented=no");
    has_setting("-o no_maxconns_fast", "maxconns_fast=no");
    has_setting("-o idle_timeout=9", "idle_timeout=9");
    has_setting("-l proto[binary]:a:5", "inter=proto[binary]:a:5");
}
END_TEST

static void
note_ignored(void *context, const char *option)
{
    buf_addf(context, "%s;", option);
}

static void
ignores(const char *line, const char *wanted)
{
    struct options o = good(line);
    struct buf found = {0};
    options_each_ignored(&o, note_ignored, &found);
    buf_add(&found, "", 1);
    ck_assert_str_eq(found.data, wanted);
    buf_fini(&found);
}

START_TEST(test_ignored)
{
    ignores("", "");
    ignores("-v -A -o idle_timeout=5,no_maxconns_fast", "");
    ignores("-f 1.5 -L -o slab_reassign",
        "--slab-growth-factor;--enable-largepages;-o slab_reassign;");
    ignores("-o no_slab_reassign,hashpower=13",
        "-o hashpower;-o no_slab_reassign;");
}
END_TEST

START_TEST(test_license)
{
    struct options o;
    struct buf message = {0};
    ck_assert_int_eq(parse("-i -t 0", &o, &message), OPTIONS_EXIT_OK);
    ck_assert_ptr_nonnull(strstr(message.data, "BSD-3-Clause"));
    buf_fini(&message);
}
END_TEST

/* A configuration file has -o too; what the command line says wins, name by
 * name. */
START_TEST(test_config_file)
{
    char path[] = "check_options_memcached.XXXXXX";
    char line[128];
    const char text[] = "extended = idle_timeout=5,no_lru_crawler\n"
                        "extended hashpower=15\ndisable-cas\n";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    FILE *file = fdopen(fd, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text, strlen(text), 1, file), 1);
    ck_assert_int_eq(fclose(file), 0);
    snprintf(line, sizeof line, "--config=%s -o idle_timeout=6", path);
    struct options o = good(line);
    remove(path);
    ck_assert_int_eq(o.idle_timeout_s, 6);
    ck_assert_int_eq(o.hash_power, 15);
    ck_assert(!o.lru_crawler && o.no_cas);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_switches, test_flags, test_values,
        test_refused, test_tls, test_tls_settings, test_access,
        test_extended_names, test_extended_values, test_extended_refused,
        test_settings_order, test_settings_values, test_ignored, test_license,
        test_config_file};
    return run_tests("options_memcached", tests, COUNT_OF(tests));
}
