/* SPDX-License-Identifier: BSD-3-Clause */

/* Replies with keys and numbers as long as those of the server that is
 * compared. A mean of 1.4 digits is kept by lengths that differ from number to
 * number; where a reply has few of them, by several replies in turn. */

#include "bench/floor_form.h"

#include "base/num.h"
#include "bench/fail.h"
#include "bench/number.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEYS_MAX = 10000,
    FEW_KEYS = 30, /* up to so many, replies are of several lengths */
    EXIT_USAGE = 2
};

static void
add_number(struct buf *out, size_t digits)
{
    for (size_t i = 0; i < digits; i++) {
        buf_add(out, &"1234567890"[i % 10], 1);
    }
}

/* Number i of all replies: digits so that the first n numbers together have
 * n times the mean, rounded down. */
static size_t
digits_of(const struct floor_form *form, uint64_t i)
{
    uint64_t before = (uint64_t)((double)i * form->digits);
    return (uint64_t)((double)(i + 1) * form->digits) - before;
}

static void
add_value(struct buf *out, const struct floor_form *form, size_t digits)
{
    if (form->is_resp) {
        buf_add_text(out, "$");
    } else {
        buf_addf(out, "VALUE %s 0 ", form->key);
    }
    buf_add_u64(out, digits);
    buf_add_text(out, "\r\n");
    add_number(out, digits);
    buf_add_text(out, "\r\n");
}

void
floor_replies_init(
    struct floor_replies *replies, const struct floor_form *form)
{
    uint64_t n = form->keys;
    replies->n = n <= FEW_KEYS ? FLOOR_VARIANTS : 1;
    for (uint64_t i = 0; i < replies->n; i++) {
        struct buf *out = &replies->bytes[i];
        if (n == 0) {
            buf_add_text(out, form->is_resp ? ":" : "");
            add_number(out, digits_of(form, i));
            buf_add_text(out, "\r\n");
        } else if (n > 1 && form->is_resp) {
            buf_addf(out, "*%u\r\n", (unsigned)n);
        }
        for (uint64_t k = 0; k < n; k++) {
            add_value(out, form, digits_of(form, i * n + k));
        }
        buf_add_text(out, n > 0 && !form->is_resp ? "END\r\n" : "");
        if (out->failed) {
            fail("out of memory for --keys");
        }
    }
}

void
floor_replies_add(struct floor_replies *replies, struct buf *out)
{
    const struct buf *reply = &replies->bytes[replies->next];
    replies->next = replies->next + 1 < replies->n ? replies->next + 1 : 0;
    buf_add(out, reply->data, reply->len);
}

void
floor_replies_lines(struct floor_replies *replies, const char *bytes,
    size_t len, struct buf *out)
{
    const char *end = bytes + len;
    while (bytes < end &&
        (bytes = memchr(bytes, '\n', (size_t)(end - bytes))) != NULL) {
        bytes++;
        floor_replies_add(replies, out);
    }
}

static void
help(void)
{
    printf(
        "Usage: floor [OPTION]...\n"
        "Answers every command with the same reply, as cheaply as a server on\n"
        "libuv can: what is compared with it does at least this.\n\n"
        "Options [default]:\n"
        "  --port=N               TCP port on 127.0.0.1; 0: a free one, which\n"
        "                         is written to stdout [11211]\n"
        "  --protocol=text|resp   what commands and replies are [text]\n"
        "  --keys=N               numbers of a reply; 0: a reply to incr [1]\n"
        "  --key=TEXT             key of each, in text "
        "[1677721600000000.cntcm]\n"
        "  --digits=D             mean digits of a number, 1 to 20 [1]\n"
        "  --wait=loop|ring       floor_ring only: who waits, libuv or the\n"
        "                         io_uring [loop]\n"
        "  --reads=FILE           floor_bare only: before it answers it reads\n"
        "                         4 KB of the file past the page cache, as a\n"
        "                         cold get must\n"
        "  --help                 this text\n");
}

static double
digits_within(const char *text)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value >= 1.0) ||
        value > NUM_U64_DIGITS_MAX) {
        fail("--digits takes 1 to %d", NUM_U64_DIGITS_MAX);
    }
    return value;
}

/* Which of the two words an option has. */
static bool
is_second(
    const char *name, const char *text, const char *first, const char *second)
{
    bool is = strcmp(text, second) == 0;
    if (!is && strcmp(text, first) != 0) {
        fail("--%s takes %s or %s", name, first, second);
    }
    return is;
}

void
floor_form_parse(struct floor_form *form, int argc, char **argv)
{
    static const struct option option[] = {
        {"port", required_argument, NULL, 'p'},
        {"protocol", required_argument, NULL, 'P'},
        {"keys", required_argument, NULL, 'k'},
        {"key", required_argument, NULL, 't'},
        {"digits", required_argument, NULL, 'd'},
        {"wait", required_argument, NULL, 'w'},
        {"reads", required_argument, NULL, 'r'},
        {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
    int letter;
    *form = (struct floor_form){.port = 11211,
        .keys = 1,
        .key = "1677721600000000.cntcm",
        .digits = 1};
    while ((letter = getopt_long(argc, argv, "", option, NULL)) != -1) {
        switch (letter) {
        case 'p':
            form->port = number_within("port", optarg, 0, UINT16_MAX);
            break;
        case 'P':
            form->is_resp = is_second("protocol", optarg, "text", "resp");
            break;
        case 'k':
            form->keys = number_within("keys", optarg, 0, KEYS_MAX);
            break;
        case 't':
            form->key = optarg;
            break;
        case 'd':
            form->digits = digits_within(optarg);
            break;
        case 'w':
            form->ring_waits = is_second("wait", optarg, "loop", "ring");
            break;
        case 'r':
            form->reads = optarg;
            break;
        case 'h':
            help();
            exit(EXIT_SUCCESS);
        default:
            exit(EXIT_USAGE);
        }
    }
    if (optind != argc) {
        fail("%s is no option; see --help", argv[optind]);
    }
}
