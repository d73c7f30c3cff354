/* SPDX-License-Identifier: BSD-3-Clause */
/* Everything goes over the wire as a client's requests do. It adds a counter of
 * its own; one that has records, or other columns, is left alone. Where it ends
 * early the posts stay, until --remove. */
#include "cli/demo.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/num.h"
#include "cli/demo_priv.h"
#include "cli/peer.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    POSTS_DEFAULT = 1000000,
    PAGES_DEFAULT = 20000,
    PAGES_MAX = 100000000,
    NAME_MAX_BYTES = 20, /* so that COUNTER_comments is a name */
    BATCH_POSTS = 1000,
    SETTLE_MS = 2000, /* how long figures may be behind */
    SETTLE_STEP_NS = 20000000
};

static const double ns_per_s = 1e9;
static const uint64_t ns_per_ms = 1000000;

const char *const demo__columns[DEMO_NUMBERS] = {
    "comments", "reposts", "likes"};

enum option {
    OPTION_RECORDS,
    OPTION_COUNTER,
    OPTION_PAGES,
    OPTION_REMOVE,
    OPTIONS_N
};

static const struct command_line_row rows[OPTIONS_N] = {
    [OPTION_RECORDS] = {"records", "NUM", "posts; default: 1000000"},
    [OPTION_COUNTER] = {"counter", "NAME",
        "the counter that is added for them, 20 letters at most; default: "
        "demo"},
    [OPTION_PAGES] = {"pages", "NUM",
        "pages of 20 posts that are read; 0: none; default: 20000"},
    [OPTION_REMOVE] = {"remove", "",
        "drops the counter, and what an earlier call has loaded, and that is "
        "all"},
};

static bool
take_row(struct ask *ask, unsigned row, const char *value)
{
    struct demo *demo = ask->context;
    switch ((enum option)row) {
    case OPTION_RECORDS:
        return command_line_number(
            &ask->line, row, value, 1, DEMO_POSTS_MAX, &demo->posts);
    case OPTION_COUNTER:
        demo->counter = value;
        return (strlen(value) <= NAME_MAX_BYTES &&
                   schema_is_name(value, strlen(value))) ||
            command_line_fail(&ask->line, "--counter=%.40s is no name", value);
    case OPTION_PAGES:
        return command_line_number(
            &ask->line, row, value, 0, PAGES_MAX, &demo->pages);
    case OPTION_REMOVE:
        demo->is_removal = true;
        return true;
    case OPTIONS_N:
        break;
    }
    return false;
}

static const struct ask_command command = {.name = "demo",
    .usage =
        "usage: tallyctl demo [OPTION]...\n"
        "Loads a million posts into a counter of its own, says what "
        "memory they take\nbeside what they would in Redis and memcached, "
        "and how fast pages of them\nare read.\n",
    .row = rows,
    .n_rows = OPTIONS_N,
    .take_fn = take_row};

__attribute__((format(printf, 2, 3))) static bool
fail(struct demo *demo, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    (void)vsnprintf(demo->why, sizeof demo->why, format, list);
    va_end(list);
    return false;
}

/* ---- the counter ---- */

static enum talk_take
take_done(void *context, const char *line, size_t len)
{
    (void)context;
    return talk_is(line, len, "STORED") || talk_is(line, len, "DELETED")
        ? TALK_END
        : TALK_WRONG;
}

__attribute__((format(printf, 2, 3))) static bool
order(struct demo *demo, const char *format, ...)
{
    char line[200];
    va_list list;
    va_start(list, format);
    int len = vsnprintf(line, sizeof line, format, list);
    va_end(list);
    ASSERT(len > 0 && (size_t)len < sizeof line);
    return talk_ask(&demo->ask.talk, line, (size_t)len, take_done, NULL);
}

static bool
drop(struct demo *demo)
{
    return order(demo, "drop counter %s %s\r\n", demo->counter, demo->counter);
}

/* Has the server a counter of that name? */
static bool
look_for_counter(struct demo *demo, bool *is_there)
{
    struct buf lines = {0};
    char begin[64];
    (void)snprintf(begin, sizeof begin, "COUNTER %s ", demo->counter);
    bool is_told = ask_lines(&demo->ask, "show counters\r\n", "END", &lines) &&
        (!lines.failed || fail(demo, "out of memory"));
    *is_there = false;
    for (size_t at = 0; is_told && at < lines.len;) {
        const char *line = lines.data + at;
        size_t len =
            (size_t)((char *)memchr(line, '\n', lines.len - at) - line);
        *is_there = *is_there || talk_begins(line, len, begin);
        at += len + 1;
    }
    buf_fini(&lines);
    return is_told;
}

/* True where the columns are those that demo has made. */
static bool
is_own(const struct demo *demo, const struct rows_columns *columns)
{
    char name[SCHEMA_NAME_MAX + 1];
    bool is_same = columns->n == DEMO_NUMBERS && columns->n_members == 0;
    for (unsigned i = 0; is_same && i < DEMO_NUMBERS; i++) {
        (void)snprintf(
            name, sizeof name, "%.20s_%s", demo->counter, demo__columns[i]);
        is_same = strcmp(columns->name[i].text, name) == 0;
    }
    return is_same;
}

/* A counter that is there has to be demo's, and its records are counted. */
static bool
look_at_own(struct demo *demo, bool *is_there, uint64_t *n_records)
{
    static struct rows_columns columns;
    *n_records = 0;
    if (!look_for_counter(demo, is_there) || !*is_there) {
        return demo->ask.talk.fd >= 0 && demo->why[0] == '\0';
    }
    return peer_columns(&demo->ask.talk, demo->counter, &columns, n_records) &&
        (is_own(demo, &columns) ||
            fail(demo,
                "the counter %s of this server is not one that demo has made; "
                "--counter takes another name",
                demo->counter));
}

static bool
add_columns(struct demo *demo)
{
    const char *name = demo->counter;
    if (!order(demo, "add column %s %s_id primarykey\r\n", name, name)) {
        return false;
    }
    for (unsigned i = 0; i < DEMO_NUMBERS; i++) {
        if (!order(demo, "add column %s %s_%s\r\n", name, name,
                demo__columns[i])) {
            return false;
        }
    }
    return true;
}

/* A counter that is without records; what is half made is taken back. */
static bool
make_counter(struct demo *demo)
{
    bool is_there = false;
    uint64_t n_records = 0;
    if (!look_at_own(demo, &is_there, &n_records)) {
        return false;
    }
    if (n_records > 0) {
        return fail(demo,
            "the counter %s has %" PRIu64 " records already; tallyctl demo "
            "--counter=%s --remove drops it",
            demo->counter, n_records, demo->counter);
    }
    if (is_there) {
        return true;
    }
    if (!order(demo, "add counter %s\r\n", demo->counter)) {
        return false; /* perhaps somebody else has just added it */
    }
    if (add_columns(demo)) {
        return true;
    }
    (void)fail(demo, "%s", demo->ask.talk.why);
    if (ask_connect(&demo->ask)) {
        (void)drop(demo);
    }
    return false;
}

/* ---- loading ---- */

static enum talk_take
take_stored(void *context, const char *line, size_t len)
{
    unsigned *left = context;
    ASSERT(*left > 0);
    (*left)--;
    if (!talk_is(line, len, "STORED")) {
        return TALK_WRONG;
    }
    return *left == 0 ? TALK_END : TALK_MORE;
}

static void
add_post(struct demo *demo, uint64_t place, struct buf *lines)
{
    struct demo_post post;
    demo_post(place, &post);
    buf_addf(lines, "set %s %" PRIu64, demo->counter, post.id);
    for (unsigned i = 0; i < DEMO_NUMBERS; i++) {
        buf_add_text(lines, " ");
        buf_add_u64(lines, post.number[i]);
        demo->numbers += post.number[i] != 0;
    }
    buf_add_text(lines, "\r\n");
    demo->records += demo_is_record(&post);
    demo->newest = post.id;
}

static bool
load(struct demo *demo)
{
    struct buf lines = {0};
    bool is_well = true;
    uint64_t began_ns = clock_monotonic_ns();
    shown_begin(&demo->shown, "posts", demo->posts);
    for (uint64_t at = 0; is_well && at < demo->posts;) {
        uint64_t rest = demo->posts - at;
        unsigned n = rest < BATCH_POSTS ? (unsigned)rest : BATCH_POSTS;
        buf_clear(&lines);
        for (unsigned left = n; left > 0; left--) {
            add_post(demo, at++, &lines);
        }
        is_well = lines.failed ? fail(demo, "out of memory")
                               : talk_ask(&demo->ask.talk, lines.data,
                                     lines.len, take_stored, &n);
        shown_tell(&demo->shown, at, at);
    }
    shown_end(&demo->shown);
    buf_fini(&lines);
    demo->load_s = (double)(clock_monotonic_ns() - began_ns) / ns_per_s;
    return is_well;
}

/* ---- reading ---- */

struct page {
    unsigned n; /* numbers that have come */
    bool is_value;
    bool is_wrong; /* one is not what was stored */
    uint64_t due[DEMO_PAGE_POSTS * DEMO_NUMBERS];
};

static enum talk_take
take_number(void *context, const char *line, size_t len)
{
    struct page *page = context;
    uint64_t value = 0;
    if (!page->is_value) {
        page->is_value = true;
        if (talk_is(line, len, "END")) {
            page->is_wrong |= page->n < DEMO_PAGE_POSTS * DEMO_NUMBERS;
            return TALK_END;
        }
        return talk_begins(line, len, "VALUE ") &&
                page->n < DEMO_PAGE_POSTS * DEMO_NUMBERS
            ? TALK_MORE
            : TALK_WRONG;
    }
    page->is_value = false;
    page->is_wrong |=
        !num_parse_u64(line, len, &value) || value != page->due[page->n];
    page->n++;
    return TALK_MORE;
}

static bool
read_page(struct demo *demo, uint64_t number, struct buf *line)
{
    struct page page = {.n = 0};
    buf_clear(line);
    buf_add_text(line, "get");
    for (unsigned row = 0; row < DEMO_PAGE_POSTS; row++) {
        struct demo_post post;
        demo_post(demo_shown(number, row, demo->posts), &post);
        for (unsigned i = 0; i < DEMO_NUMBERS; i++) {
            page.due[row * DEMO_NUMBERS + i] = post.number[i];
            buf_addf(line, " %" PRIu64 ".%s_%s", post.id, demo->counter,
                demo__columns[i]);
        }
    }
    buf_add_text(line, "\r\n");
    if (line->failed) {
        return fail(demo, "out of memory");
    }
    uint64_t began_ns = clock_monotonic_ns();
    bool is_read =
        talk_ask(&demo->ask.talk, line->data, line->len, take_number, &page);
    demo->read_s += (double)(clock_monotonic_ns() - began_ns) / ns_per_s;
    return is_read &&
        (!page.is_wrong ||
            fail(demo,
                "a number is not what was stored; does somebody else "
                "change this counter?"));
}

static bool
read_pages(struct demo *demo)
{
    struct buf line = {0};
    bool is_well = true;
    shown_begin(&demo->shown, "pages", demo->pages);
    for (uint64_t i = 0; is_well && i < demo->pages; i++) {
        is_well = read_page(demo, i, &line);
        shown_tell(&demo->shown, i + 1, i + 1);
    }
    shown_end(&demo->shown);
    buf_fini(&line);
    return is_well;
}

/* ---- figures ---- */

static bool
resident(struct demo *demo, uint64_t *out)
{
    struct figures figures = {.text = {0}};
    bool is_told = ask_stats(&demo->ask, "memory", &figures);
    (void)figures_u64(&figures, "resident", out);
    figures_fini(&figures);
    return is_told;
}

/* What the counter's tables take, once the server has counted all records, but
 * it is not waited for longer than SETTLE_MS. */
static bool
look_at_tables(struct demo *demo)
{
    static const struct timespec step = {.tv_nsec = SETTLE_STEP_NS};
    struct figures figures = {.text = {0}};
    char records[64], bytes[64];
    uint64_t n = 0, until_ns = clock_monotonic_ns() + SETTLE_MS * ns_per_ms;
    (void)snprintf(records, sizeof records, "%s:records", demo->counter);
    (void)snprintf(bytes, sizeof bytes, "%s:bytes", demo->counter);
    bool is_told = ask_stats(&demo->ask, "counters", &figures);
    while (is_told && figures_u64(&figures, records, &n) &&
        n != demo->records && clock_monotonic_ns() < until_ns) {
        (void)nanosleep(&step, NULL);
        is_told = ask_stats(&demo->ask, "counters", &figures);
    }
    (void)figures_u64(&figures, bytes, &demo->tables_bytes);
    figures_fini(&figures);
    return is_told;
}

/* ---- all of it ---- */

static bool
work(struct demo *demo)
{
    return make_counter(demo) && resident(demo, &demo->before_bytes) &&
        load(demo) && look_at_tables(demo) &&
        resident(demo, &demo->after_bytes) && read_pages(demo);
}

static bool
undo(struct demo *demo, struct buf *out)
{
    bool is_there = false;
    uint64_t n_records = 0;
    if (!look_at_own(demo, &is_there, &n_records)) {
        return false;
    }
    if (!is_there) {
        return fail(demo, "there is no counter %s", demo->counter);
    }
    if (!drop(demo)) {
        return false;
    }
    if (demo->ask.is_json) {
        struct json json = {.out = out};
        json_open(&json, NULL, '{');
        json_text(&json, "removed", demo->counter);
        json_u64(&json, "records", n_records);
        json_close(&json);
    } else {
        buf_addf(out, "The counter %s is dropped, with %" PRIu64 " records.\n",
            demo->counter, n_records);
    }
    return true;
}

static int
run(struct demo *demo)
{
    struct buf out = {0};
    bool is_done = ask_connect(&demo->ask) &&
        (demo->is_removal ? undo(demo, &out) : work(demo));
    if (!is_done) {
        buf_fini(&out);
        return ask_fail(
            "%s", demo->why[0] != '\0' ? demo->why : demo->ask.talk.why);
    }
    if (!demo->is_removal) {
        demo__say(demo, &out);
    }
    return ask_write(&out);
}

int
demo_main(int argc, char *const argv[])
{
    static struct demo demo;
    demo.counter = "demo";
    demo.posts = POSTS_DEFAULT;
    demo.pages = PAGES_DEFAULT;
    int status = ask_begin(&demo.ask, &command, &demo, argc, argv);
    if (status == ASK_GO_ON) {
        status = run(&demo);
    }
    ask_fini(&demo.ask);
    return status;
}
