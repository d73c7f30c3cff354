/* SPDX-License-Identifier: BSD-3-Clause */
/* server/options: the defaults, every form of the command line, what is
 * refused and with which words, the configuration file, and what the table
 * says in help, manual page and settings. */
#include "base/err.h"
#include "server/process.h"
#include "unit/options_help.h"

#include <unistd.h>

/* What --hot-memory=auto stands for. */
static uint64_t
half_of_memory(void)
{
    uint64_t half = process_memory_bytes() / 2;
    return half < 16 << 20 ? 16 << 20 : half;
}

START_TEST(test_defaults)
{
    struct options o = good("");

    ck_assert_int_eq(o.port, 11211);
    ck_assert_uint_eq(o.listen.n, 2);
    ck_assert(o.listen.is_default);
    ck_assert_str_eq(o.listen.address[0].host, "127.0.0.1");
    ck_assert_str_eq(o.listen.address[1].host, "::1");
    ck_assert_int_eq(o.listen.address[1].port, OPTIONS_NO_PORT);
    ck_assert_str_eq(o.unix_socket.text, "");
    ck_assert_int_eq(o.unix_mask, 0700);
    ck_assert_int_eq(o.threads, 4);
    ck_assert_int_eq(o.conn_limit, 1024);
    ck_assert_str_eq(o.user.text, "");
    ck_assert(!o.daemon);
    ck_assert_int_eq(o.verbosity, 0);
    ck_assert_int_eq(o.listen_backlog, 1024);
    ck_assert_int_eq(o.reqs_per_event, 20);
    ck_assert_uint_eq(o.item_size_max, 1 << 20);
    ck_assert_uint_eq(o.memory_limit, 64 << 20);
    ck_assert_uint_eq(o.hot_memory, half_of_memory());
    ck_assert_str_eq(o.data.text, "");
    ck_assert_int_eq(o.command_timeout_s, 60);
    ck_assert_int_eq(o.commit_timeout_s, 1);
    ck_assert_int_eq(o.write_timeout_s, 30);
    ck_assert_int_eq(o.shards, 16);
    ck_assert(options_want_tcp(&o));
}
END_TEST

START_TEST(test_forms)
{
    ck_assert_int_eq(good("-p 1").port, 1);
    ck_assert_int_eq(good("-p1").port, 1);
    ck_assert_int_eq(good("--port 1").port, 1);
    ck_assert_int_eq(good("--port=1").port, 1);
    ck_assert_int_eq(good("-p -1").port, -1);
    ck_assert_int_eq(good("-p 1 -p 2").port, 2);
    ck_assert_int_eq(good("--thr=7").threads, 7);

    struct options o = good("-dvt7 -vp5 -Pfile");
    ck_assert(o.daemon);
    ck_assert_int_eq(o.verbosity, 2);
    ck_assert_int_eq(o.threads, 7);
    ck_assert_int_eq(o.port, 5);
    ck_assert_str_eq(o.pidfile.text, "file");
    ck_assert_int_eq(good("-vv --verbose -vvv").verbosity, 3);

    o = good("-u nobody -c 7 -b 8 -R 9 --daemon --schema=a --data none "
             "--command-timeout=5 --write-timeout=6 --shards=4096");
    ck_assert_str_eq(o.user.text, "nobody");
    ck_assert_int_eq(o.conn_limit, 7);
    ck_assert_int_eq(o.listen_backlog, 8);
    ck_assert_int_eq(o.reqs_per_event, 9);
    ck_assert(o.daemon);
    ck_assert_str_eq(o.schema.text, "a");
    ck_assert_str_eq(o.data.text, "none");
    ck_assert_int_eq(o.command_timeout_s, 5);
    ck_assert_int_eq(o.write_timeout_s, 6);
    ck_assert_int_eq(o.shards, 4096);
}
END_TEST

START_TEST(test_numbers)
{
    bad("-c 0",
        "--conn-limit: '0' is refused; wanted is a number from 1 to 1000000");
    bad("-t 0", "--threads: '0' is refused; wanted is a number from 1 to 256");
    bad("-t 257", "number from 1 to 256");
    bad("-t x", "'x'");
    bad("-t 4x", "'4x'");
    bad("-t ''", "''");
    bad("-t 4~", "'4 '");
    ck_assert_int_eq(good("-t ~4").threads, 4); /* as in memcached */
    bad("-p 65536", "number from -1 to 65535");
    bad("-p -2", "number from -1 to 65535");
    bad("-p 99999999999999999999", "number from -1 to 65535");
    bad("-b 0", "--listen-backlog");
    bad("-R 0", "--max-reqs-per-event");
    bad("--command-timeout=0", "--command-timeout");
    bad("--commit-timeout=3601", "--commit-timeout");
    bad("--write-timeout=86401", "number from 1 to 86400");
    bad("--shards=0", "power of two from 1 to 4096");
    bad("--shards=3", "power of two from 1 to 4096");
    bad("--shards=8192", "power of two from 1 to 4096");
    for (int shards = 1; shards <= 4096; shards *= 2) {
        char line[32];
        snprintf(line, sizeof line, "--shards=%d", shards);
        ck_assert_int_eq(good(line).shards, shards);
    }
    ck_assert_int_eq(good("--slow=20").slow_ms, 20);
    ck_assert_int_eq(good("--slow=20ms").slow_ms, 20);
    bad("--slow=ms", "'ms'");
    bad("--slow=20s", "'20s'");
    bad("--slow=20msms", "'20msms'");
    bad("--commit-timeout=1ms", "'1ms'"); /* of seconds */
    ck_assert_int_eq(good("-t 1").threads, 1);
    ck_assert_int_eq(good("-t 256").threads, 256);
    ck_assert_int_eq(good("-p 65535").port, 65535);
}
END_TEST

START_TEST(test_sizes)
{
    ck_assert_uint_eq(good("-I 1024").item_size_max, 1024);
    ck_assert_uint_eq(good("-I 1k").item_size_max, 1024);
    ck_assert_uint_eq(good("-I 3K").item_size_max, 3072);
    ck_assert_uint_eq(good("-I 2m").item_size_max, 2 << 20);
    ck_assert_uint_eq(good("-I2M").item_size_max, 2 << 20);
    ck_assert_uint_eq(good("-m 2048 -I 1024m").item_size_max, 1 << 30);
    ck_assert_uint_eq(good("-m 100").memory_limit, 100 << 20);
    ck_assert_uint_eq(good("-m 0").memory_limit, 0); /* and -I is 1m */
    ck_assert_int_eq(
        good("--near-cells=error").near_cells, OPTIONS_NEAR_CELLS_ERROR);
    ck_assert_int_eq(good("-t 1").near_cells, OPTIONS_NEAR_CELLS_ITEM);
    ck_assert_int_eq(
        good("--new-data=refuse").new_data, OPTIONS_NEW_DATA_REFUSE);
    ck_assert_int_eq(good("-t 1").reads, OPTIONS_READS_LATEST);
    ck_assert_int_eq(good("--reads=committed").reads, OPTIONS_READS_COMMITTED);
    ck_assert_int_eq(good("--reads=latest --sync=none --data=none").reads,
        OPTIONS_READS_LATEST);
    bad("--reads=committed --sync=none",
        "--reads=committed with --sync=none: nothing is ever committed, leave "
        "one out");
    bad("--reads=committed --data=none",
        "--reads=committed with --data=none: nothing is ever committed");
    bad("-I 1000",
        "--max-item-size: '1000' is refused; wanted is a size from 1k to "
        "1024m");
    bad("-I 1025m -m 9999", "size from 1k to 1024m");
    bad("-I 18014398509481985k", "size from 1k to 1024m");
    bad("-I k", "size from 1k to 1024m");
    bad("-I ''", "size from 1k to 1024m");
    bad("-I 2g", "size from 1k to 1024m");
    bad("-I g", "size from 1k to 1024m");
    ck_assert_uint_eq(good("-m 2048 -I 1g").item_size_max, 1 << 30);
    bad("-I 1kk", "size from 1k to 1024m");
    bad("-m 1m", "megabytes from 0 to");
    bad("-m 1", "half of --memory-limit");
    bad("-I 33m", "half of --memory-limit");
    good("-I 32m");
}
END_TEST

static void
hot_memory_is(const char *line, uint64_t bytes)
{
    ck_assert_uint_eq(good(line).hot_memory, bytes);
}

START_TEST(test_hot_memory)
{
    hot_memory_is("--hot-memory=16m", 16 << 20);
    hot_memory_is("--hot-memory 16777216", 16 << 20);
    hot_memory_is("--hot-memory=16777217", (16 << 20) + 1);
    hot_memory_is("--hot-memory=16384k", 16 << 20);
    hot_memory_is("--hot-memory=20000K", 20000 << 10);
    hot_memory_is("--hot-memory=7g", UINT64_C(7) << 30);
    hot_memory_is("--hot-memory=7G", UINT64_C(7) << 30);
    hot_memory_is("--hot-memory=65536g", UINT64_C(1) << 46);
    hot_memory_is("--hot-memory=auto", half_of_memory());
    hot_memory_is("--hot-memory=1g --hot-memory=auto", half_of_memory());
    bad("--hot-memory=16777215",
        "--hot-memory: '16777215' is refused; wanted is a size from 16m to "
        "65536g, or auto");
    bad("--hot-memory=15m", "size from 16m to 65536g, or auto");
    bad("--hot-memory=0", "size from 16m");
    bad("--hot-memory=-1", "size from 16m");
    bad("--hot-memory=65537g", "size from 16m");
    bad("--hot-memory=17179869184g", "size from 16m"); /* 2^64 */
    bad("--hot-memory=g", "size from 16m");
    bad("--hot-memory=1gg", "size from 16m");
    bad("--hot-memory=1t", "size from 16m");
    bad("--hot-memory=Auto", "size from 16m");
    bad("--hot-memory=auto~", "size from 16m");
    bad("--hot-memory=", "size from 16m");
    bad("--hot-memory", "--hot-memory: a value is missing");
    bad("-I auto", "size from 1k to 1024m");
    bad("-m 1g", "megabytes from 0 to");
}
END_TEST

START_TEST(test_mask_and_texts)
{
    char line[OPTIONS_TEXT_BYTES + 16] = "-P ";

    ck_assert_int_eq(good("-a 0").unix_mask, 0);
    ck_assert_int_eq(good("-a 777").unix_mask, 0777);
    ck_assert_int_eq(good("-a 0660").unix_mask, 0660);
    bad("-a 1000",
        "--unix-mask: '1000' is refused; wanted is an octal mode "
        "from 0 to 777");
    bad("-a 8", "octal");
    bad("-a ''", "octal");
    bad("-a 00777", "octal");
    bad("-u ''", "text of 1 to 255 bytes");
    memset(line + 3, 'x', 1024);
    bad(line, "text of 1 to 1023 bytes");
    line[3 + 1023] = '\0';
    ck_assert_uint_eq(strlen(good(line).pidfile.text), 1023);
    memcpy(line, "-s ", 3);
    line[3 + 108] = '\0';
    bad(line, "text of 1 to 107 bytes");
    line[3 + 107] = '\0';
    struct options o = good(line);
    ck_assert_uint_eq(strlen(o.unix_socket.text), 107);
    ck_assert(!options_want_tcp(&o));
    good("-p 0 -s x");
    bad("-p 0", "nothing to listen on");
}
END_TEST

static void
check_address(
    const char *line, unsigned n, unsigned i, const char *host, int port)
{
    struct options o = good(line);

    ck_assert(!o.listen.is_default);
    ck_assert_uint_eq(o.listen.n, n);
    ck_assert_str_eq(o.listen.address[i].host, host);
    ck_assert_int_eq(o.listen.address[i].port, port);
}

START_TEST(test_listen)
{
    check_address("-l localhost", 1, 0, "localhost", OPTIONS_NO_PORT);
    check_address("-l a:1,b:2 -l c -l d:65535", 4, 0, "a", 1);
    check_address("-l a:1,b:2 -l c -l d:65535", 4, 1, "b", 2);
    check_address("-l a:1,b:2 -l c -l d:65535", 4, 2, "c", 0);
    check_address("-l a:1,b:2 -l c -l d:65535", 4, 3, "d", 65535);
    check_address("-l ::1", 1, 0, "::1", OPTIONS_NO_PORT);
    check_address("-l fe80::1%eth0", 1, 0, "fe80::1%eth0", 0);
    check_address("-l [::1]", 1, 0, "::1", OPTIONS_NO_PORT);
    check_address("-l [::1]:77", 1, 0, "::1", 77);
    check_address("--listen=*:5", 1, 0, "*", 5);
    check_address("-l a;b:2", 2, 1, "b", 2);
    check_address("-l a -l a,a:1 -l a", 2, 1, "a", 1);
    bad("-l ''", "--listen: '' is refused; wanted is HOST, HOST:PORT or");
    bad("-l a,", "'a,'");
    bad("-l ,a", "HOST");
    bad("-l a,,b", "HOST");
    bad("-l a:", "HOST");
    bad("-l :1", "HOST");
    bad("-l a:0", "HOST");
    bad("-l a:65536", "HOST");
    bad("-l a:x", "HOST");
    bad("-l [::1", "HOST");
    bad("-l []:1", "HOST");
    bad("-l [::1]x", "HOST");
    bad("-l [::1]:", "HOST");
    bad("-l a~b", "HOST");
}
END_TEST

START_TEST(test_listen_protocol)
{
    struct options o = good("-l proto[binary]:a:1,b -l "
                            "proto[ascii]:tag[web]:[::1]:5,tag_x_:c "
                            "-l proto[negotiating]:d,tag");
    static const struct {
        const char *host;
        int port;
        int protocol;
    } wanted[] = {{"a", 1, OPTIONS_PROTOCOL_BINARY},
        {"b", 0, OPTIONS_PROTOCOL_AUTO}, {"::1", 5, OPTIONS_PROTOCOL_ASCII},
        {"c", 0, OPTIONS_PROTOCOL_AUTO}, {"d", 0, OPTIONS_PROTOCOL_AUTO},
        {"tag", 0, OPTIONS_PROTOCOL_AUTO}};
    unsigned n = sizeof wanted / sizeof *wanted;

    ck_assert_uint_eq(o.listen.n, n);
    for (unsigned i = 0; i < n; i++) {
        ck_assert_str_eq(o.listen.address[i].host, wanted[i].host);
        ck_assert_int_eq(o.listen.address[i].port, wanted[i].port);
        ck_assert_int_eq(o.listen.address[i].protocol, wanted[i].protocol);
    }
    bad("-l proto[http]:a", "HOST");
    bad("-l proto[ascii]", "HOST");
    bad("-l proto[ascii]:", "HOST");
    bad("-l tag[x]", "HOST");
    bad("-l tag[x]:", "HOST");
}
END_TEST

START_TEST(test_listen_limits)
{
    char line[LINE_BYTES] = "-l ";

    for (int i = 0; i < OPTIONS_LISTEN_MAX; i++) {
        snprintf(line + strlen(line), 8, "%sa%d", i == 0 ? "" : ",", i);
    }
    check_address(line, OPTIONS_LISTEN_MAX, OPTIONS_LISTEN_MAX - 1, "a15", 0);
    strcat(line, ",a3"); /* is there already */
    check_address(line, OPTIONS_LISTEN_MAX, OPTIONS_LISTEN_MAX - 1, "a15", 0);
    strcat(line, ",a");
    bad(line, "at most 16");
    memset(line + 3, 'h', OPTIONS_HOST_BYTES);
    line[3 + OPTIONS_HOST_BYTES] = '\0';
    bad(line, "HOST");
    line[3 + OPTIONS_HOST_BYTES - 1] = '\0';
    check_address(line, 1, 0, line + 3, OPTIONS_NO_PORT);
}
END_TEST

START_TEST(test_refused)
{
    bad("-x", "-x: no such option");
    bad("-dx", "-x: no such option");
    bad("--foo", "--foo: no such option");
    bad("--foo=1", "--foo=1: no such option");
    bad("--s=1", "no such option, or short for several");
    bad("-p", "--port: a value is missing");
    bad("--port", "--port: a value is missing");
    bad("-d -t", "--threads: a value is missing");
    bad("--daemon=1", "--daemon: it takes no value");
    bad("-d word", "word: only options are taken");
    bad("-- -p", "-p: only options are taken");
    bad("--help=html", "--help: 'html' is refused");
}
END_TEST

/* Help and version end the parsing where they stand. */
START_TEST(test_help)
{
    struct options options;
    struct buf message = {0};

    ck_assert_int_eq(parse("-h -t 0", &options, &message), OPTIONS_EXIT_OK);
    for (enum options_id i = 0; i < OPTIONS_COUNT; i++) {
        const struct options_row *row = options_row(i);
        char name[64];
        if (row->letter != 0) {
            snprintf(
                name, sizeof name, "\n  -%c, --%s", row->letter, row->name);
        } else {
            snprintf(name, sizeof name, "\n      --%s", row->name);
        }
        ck_assert((strstr(message.data, name) != NULL) ==
            (row->care != OPTIONS_CARE_REFUSED));
    }
    /* what the help names, memcached's own tests take to be there */
    ck_assert_ptr_nonnull(strstr(message.data, "-S, --enable-sasl"));
    ck_assert_ptr_null(strstr(message.data, "ext_path"));
    ck_assert_ptr_null(strstr(message.data, "proxy"));
    ck_assert_ptr_nonnull(strstr(message.data, "\n  idle_timeout=SECONDS"));
    ck_assert_ptr_nonnull(strstr(message.data, "(default auto)"));
    char *rest = message.data;
    while (rest != NULL) {
        char *line = strsep(&rest, "\n");
        ck_assert_uint_lt(strlen(line), 80);
        ck_assert(line[0] == '\0' || line[strlen(line) - 1] != ' ');
    }
    buf_clear(&message);
    ck_assert_int_eq(parse("-V", &options, &message), OPTIONS_EXIT_OK);
    ck_assert_int_eq(strncmp(message.data, "tallyd ", 7), 0);
    ck_assert_int_eq(message.data[message.len - 2], '\n');
    buf_clear(&message);
    ck_assert_int_eq(parse("-t 0 -h", &options, &message), OPTIONS_EXIT_BAD);
    buf_fini(&message);
}
END_TEST

/* Every line of the roff is a request that is meant, or text. */
START_TEST(test_help_man)
{
    struct options options;
    struct buf message = {0};
    unsigned paragraphs = 0;

    ck_assert_int_eq(parse("--help=man", &options, &message), OPTIONS_EXIT_OK);
    ck_assert_ptr_nonnull(strstr(
        message.data, "\\fB\\-p\\fR, \\fB\\-\\-port\\fR=\\fINUM\\fR\n"));
    ck_assert_ptr_nonnull(strstr(
        message.data, "\\fB\\-\\-help\\fR[=\\fIman|conf|metrics\\fR]\n"));
    char *rest = message.data;
    while (rest != NULL) {
        char *line = strsep(&rest, "\n");
        paragraphs += strcmp(line, ".TP") == 0;
        ck_assert(strcmp(line, ".TP") == 0 || strcmp(line, ".RS") == 0 ||
            strcmp(line, ".RE") == 0 || line[0] != '.');
        ck_assert_int_ne(line[0], '\'');
        for (char *at = strchr(line, '-'); at != NULL;
             at = strchr(at + 1, '-')) {
            ck_assert(at > line && at[-1] == '\\');
        }
    }
    ck_assert_uint_eq(paragraphs, OPTIONS_COUNT + OPTIONS_EXTENDED_COUNT);
    buf_fini(&message);
}
END_TEST

START_TEST(test_settings)
{
    has_setting("", "maxbytes=67108864");
    has_setting("", "maxconns=1024");
    has_setting("", "tcpport=11211");
    has_setting("", "udpport=0");
    has_setting("", "inter=127.0.0.1,::1");
    has_setting("-l a,[::1]:5,b:6", "inter=a,[::1]:5,b:6");
    has_setting("", "domain_socket=NULL");
    has_setting("-s /a", "domain_socket=/a");
    has_setting("-a 640", "umask=640");
    has_setting("-t 9", "num_threads=9");
    has_setting("-vv", "verbosity=2");
    has_setting("-R 3", "reqs_per_event=3");
    has_setting("-b 9", "tcp_backlog=9");
    has_setting("-I 2k", "item_size_max=2048");
    has_setting("--hot-memory=20m", "hot_memory=20971520");
    char half[48];
    snprintf(half, sizeof half, "hot_memory=%llu",
        (unsigned long long)half_of_memory());
    has_setting("", half);
    has_setting("", "cas_enabled=yes");
    has_setting("--write-timeout=9", "write_timeout=9");
}
END_TEST

static void
write_file(char *path, const char *text)
{
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    ck_assert_int_eq(close(fd), 0);
}

static struct options
good_file(const char *text, const char *line)
{
    char path[] = "check_options.XXXXXX";
    char whole[LINE_BYTES];

    write_file(path, text);
    snprintf(whole, sizeof whole, "--config=%s%s%s", path,
        line[0] == '\0' ? "" : " ", line);
    struct options options = good(whole);
    ck_assert_str_eq(options.config.text, path);
    unlink(path);
    return options;
}

static void
bad_file(const char *text, const char *words)
{
    char path[] = "check_options.XXXXXX";
    char line[64];
    char expected[128];

    write_file(path, text);
    snprintf(line, sizeof line, "--config=%s", path);
    snprintf(expected, sizeof expected, "tallyd: %s:%s", path, words);
    bad(line, expected);
    unlink(path);
}

START_TEST(test_config_file)
{
    static const char file[] = "port = 5\nlisten a\nlisten b,c\n\n"
                               "verbose\nverbose\ndaemon\nunix-mask 0660\n"
                               "max-item-size = 2m # more\nthreads=2\n"
                               "hot-memory = 3g\n";

    struct options o = good_file(file, "-t 3");
    ck_assert_int_eq(o.port, 5);
    ck_assert_int_eq(o.threads, 3);
    ck_assert_uint_eq(o.listen.n, 3);
    ck_assert(!o.listen.is_default);
    ck_assert_str_eq(o.listen.address[2].host, "c");
    ck_assert_int_eq(o.verbosity, 2);
    ck_assert(o.daemon);
    ck_assert_int_eq(o.unix_mask, 0660);
    ck_assert_uint_eq(o.item_size_max, 2 << 20);
    ck_assert_uint_eq(o.hot_memory, UINT64_C(3) << 30);
    ck_assert_int_eq(o.conn_limit, 1024);

    o = good_file(file, "-l x -v -p 11211");
    ck_assert_uint_eq(o.listen.n, 1);
    ck_assert_str_eq(o.listen.address[0].host, "x");
    ck_assert_int_eq(o.verbosity, 1);
    ck_assert_int_eq(o.port, 11211);
    ck_assert(good_file("", "").listen.is_default);
}
END_TEST

/* A line that may stand in a file, whatever it wants beside it. */
static void
may_be_said(const char *line)
{
    char path[] = "check_options.XXXXXX";
    char option[64];
    struct options options;
    struct buf message = {0};

    write_file(path, line);
    snprintf(option, sizeof option, "--config=%s", path);
    if (parse(option, &options, &message) != OPTIONS_RUN) {
        ck_assert_msg(
            strstr(message.data, path) == NULL, "%s: %s", line, message.data);
    }
    buf_fini(&message);
    unlink(path);
}

/* One line of the file that is printed, with the comment taken away. */
static void
take_default(const char *line, unsigned *defaults)
{
    size_t len = strcspn(line, " ");

    for (enum options_id i = 0; i < OPTIONS_COUNT; i++) {
        const struct options_row *row = options_row(i);
        if (strlen(row->name) == len && strncmp(row->name, line, len) == 0) {
            ck_assert((row->argument == NULL) == (line[len] == '\0'));
            if (row->argument == NULL || row->initial[0] != '\0') {
                may_be_said(line);
            }
            (*defaults)++;
            return;
        }
    }
    ck_abort_msg("%s: no option", line);
}

/* As it is it says nothing, and each line of it may be said. */
START_TEST(test_help_conf)
{
    struct options options;
    struct buf message = {0};
    unsigned defaults = 0;

    ck_assert_int_eq(
        parse("--help=conf", &options, &message), OPTIONS_EXIT_OK);
    ck_assert_ptr_nonnull(strstr(message.data, "\n#port = 11211\n"));
    ck_assert_ptr_nonnull(strstr(message.data, "\n#log-file = FILE\n"));
    ck_assert_ptr_null(strstr(message.data, "\n#salvage"));
    options = good_file(message.data, "");
    for (enum options_id i = 0; i < OPTIONS_COUNT; i++) {
        ck_assert(options.given[i] == (i == OPTIONS_ID_config));
    }
    char *rest = message.data;
    while (rest != NULL) {
        char *line = strsep(&rest, "\n");
        ck_assert_uint_lt(strlen(line), 80);
        ck_assert(line[0] == '\0' || line[0] == '#');
        if (line[0] == '#' && line[1] != ' ') {
            take_default(line + 1, &defaults);
        }
    }
    ck_assert_uint_gt(defaults, 50);
    buf_fini(&message);
}
END_TEST

START_TEST(test_config_file_wrong)
{
    bad_file("port 1\nthreads 0\n",
        "2: threads: '0' is refused; wanted is a number from 1 to 256");
    bad_file("prot 1\n", "1: prot: no such option");
    bad_file("p 1\n", "1: p: no such option");
    bad_file("port\n", "1: port: a value is missing");
    bad_file("daemon yes\n", "1: daemon: it takes no value");
    bad_file("config x\n", "1: config: this option belongs on the command");
    bad_file("help\n", "1: help: this option belongs on the command line");
    bad_file("version\n", "1: version: this option belongs");
    bad_file("port =\n", "1: a line is NAME");
    bad("--config=no/such/file", "cannot read the configuration no/such");
}
END_TEST

START_TEST(test_resolve_paths)
{
    struct options o = good("-s s -P ./p --schema=/abs --data=none");
    struct buf message = {0};
    char old[4096];

    ck_assert_ptr_nonnull(getcwd(old, sizeof old));
    ck_assert_int_eq(chdir("/usr"), 0);
    ck_assert_int_eq(options_resolve_paths(&o, &message), 0);
    ck_assert_str_eq(o.unix_socket.text, "/usr/s");
    ck_assert_str_eq(o.pidfile.text, "/usr/./p");
    ck_assert_str_eq(o.schema.text, "/abs");
    ck_assert_str_eq(o.data.text, "none");
    ck_assert_str_eq(o.config.text, "");

    o = good("--data=d -P none");
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_eq(options_resolve_paths(&o, &message), 0);
    ck_assert_str_eq(o.data.text, "/d");
    ck_assert_str_eq(o.pidfile.text, "/none");
    ck_assert_uint_eq(message.len, 0);

    char line[3 + 107 + 1] = "-s ";
    memset(line + 3, 'x', 107);
    o = good(line);
    ck_assert_int_eq(options_resolve_paths(&o, &message), ERR_TOO_LARGE);
    buf_add(&message, "", 1);
    ck_assert_ptr_nonnull(
        strstr(message.data, "unix-socket: the path is longer than 107"));
    buf_fini(&message);
    ck_assert_int_eq(chdir(old), 0);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("options");
    TCase *tcase = tcase_create("options");
    SRunner *sr = srunner_create(suite);
    int failed;

    tcase_add_test(tcase, test_defaults);
    tcase_add_test(tcase, test_forms);
    tcase_add_test(tcase, test_numbers);
    tcase_add_test(tcase, test_sizes);
    tcase_add_test(tcase, test_hot_memory);
    tcase_add_test(tcase, test_mask_and_texts);
    tcase_add_test(tcase, test_listen);
    tcase_add_test(tcase, test_listen_protocol);
    tcase_add_test(tcase, test_listen_limits);
    tcase_add_test(tcase, test_refused);
    tcase_add_test(tcase, test_help);
    tcase_add_test(tcase, test_help_man);
    tcase_add_test(tcase, test_help_conf);
    tcase_add_test(tcase, test_settings);
    tcase_add_test(tcase, test_config_file);
    tcase_add_test(tcase, test_config_file_wrong);
    tcase_add_test(tcase, test_resolve_paths);
    suite_add_tcase(suite, tcase);
    srunner_set_tap(sr, "-");
    srunner_run_all(sr, CK_SILENT);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
