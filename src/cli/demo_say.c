/* SPDX-License-Identifier: BSD-3-Clause */
/* What demo has found, for people and for programs. */
#include "cli/demo_priv.h"

#include "cli/amount.h"
#include "cli/json.h"

#include <inttypes.h>
#include <stdio.h>

static const struct {
    const char *id, *text;
    double bytes;
    bool is_of_number;
} others[] = {
#define X(id, text, bytes, is_of_number) {#id, text, bytes, is_of_number},
    DEMO_OTHERS(X)
#undef X
};

enum { OTHERS_N = sizeof others / sizeof others[0] };

static double
bytes_of(const struct demo *demo, unsigned i)
{
    return others[i].bytes *
        (double)(others[i].is_of_number ? demo->numbers : demo->records);
}

static uint64_t
grown(const struct demo *demo)
{
    return demo->after_bytes > demo->before_bytes
        ? demo->after_bytes - demo->before_bytes
        : 0;
}

static double
a_second(uint64_t n, double s)
{
    return s > 0 ? (double)n / s : 0;
}

static void
add_json(const struct demo *demo, struct buf *out)
{
    struct json json = {.out = out};
    json_open(&json, NULL, '{');
    json_text(&json, "counter", demo->counter);
    json_u64(&json, "posts", demo->posts);
    json_u64(&json, "records", demo->records);
    json_u64(&json, "numbers", demo->numbers);
    json_u64(&json, "newest", demo->newest);
    json_u64(&json, "tables_bytes", demo->tables_bytes);
    json_u64(&json, "process_bytes", grown(demo));
    for (unsigned i = 0; i < OTHERS_N; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "%s_bytes", others[i].id);
        json_u64(&json, name, (uint64_t)bytes_of(demo, i));
    }
    json_u64(&json, "posts_a_second",
        (uint64_t)a_second(demo->posts, demo->load_s));
    json_u64(&json, "pages", demo->pages);
    json_u64(&json, "pages_a_second",
        (uint64_t)a_second(demo->pages, demo->read_s));
    json_close(&json);
}

static void
add_row(const struct demo *demo, const char *text, double bytes,
    double tallyd_bytes, struct buf *out)
{
    char all[AMOUNT_BYTES];
    double records = demo->records == 0 ? 1 : (double)demo->records;
    amount_bytes(bytes, all);
    buf_addf(out, "  %-30s %8.1f B %10s", text, bytes / records, all);
    if (tallyd_bytes > 0) {
        buf_addf(out, " %6.1f times as much", bytes / tallyd_bytes);
    }
    buf_add_text(out, "\n");
}

static void
add_memory(const struct demo *demo, struct buf *out)
{
    double tables = (double)demo->tables_bytes;
    buf_addf(out, "  %-30s %10s %10s\n", "memory", "a record", "all");
    add_row(demo, "tallyd, these posts", tables, 0, out);
    for (unsigned i = 0; i < OTHERS_N; i++) {
        add_row(demo, others[i].text, bytes_of(demo, i), tables, out);
    }
    char process[AMOUNT_BYTES];
    amount_bytes((double)grown(demo), process);
    buf_addf(out,
        "\nThe first row is what the server says of its tables; its process "
        "has grown by\n%s. The other rows are reckoned with what "
        "t/bench/memory has measured of such\nposts (doc/measurements.md).\n",
        process);
}

static void
add_pages(const struct demo *demo, struct buf *out)
{
    char pages[AMOUNT_BYTES], numbers[AMOUNT_BYTES];
    double rate = a_second(demo->pages, demo->read_s);
    amount_number(rate, pages);
    amount_number(rate * DEMO_PAGE_POSTS * DEMO_NUMBERS, numbers);
    buf_addf(out,
        "\n%" PRIu64 " pages of %d posts were read, one after the other over "
        "one connection:\n%s pages a second, which are %s numbers a second; "
        "each was what it had to be.\n",
        demo->pages, DEMO_PAGE_POSTS, pages, numbers);
}

void
demo__say(const struct demo *demo, struct buf *out)
{
    char rate[AMOUNT_BYTES];
    const char *name = demo->counter;
    if (demo->ask.is_json) {
        add_json(demo, out);
        return;
    }
    amount_number(a_second(demo->posts, demo->load_s), rate);
    buf_addf(out,
        "%" PRIu64 " posts were loaded into the counter %s, %s a second. "
        "%" PRIu64 " of them\nhave a number that is not 0: these are records. "
        "A post without one takes no memory.\n\n",
        demo->posts, name, rate, demo->records);
    add_memory(demo, out);
    if (demo->pages > 0) {
        add_pages(demo, out);
    }
    buf_addf(out, "\nThe newest post, in telnet:\n\n  get");
    for (unsigned i = 0; i < DEMO_NUMBERS; i++) {
        buf_addf(
            out, " %" PRIu64 ".%s_%s", demo->newest, name, demo__columns[i]);
    }
    buf_addf(out,
        "\n\ntallyctl demo --counter=%s --remove drops the counter, and these "
        "posts with it.\n",
        name);
}
