/* SPDX-License-Identifier: BSD-3-Clause */
/* User names, addresses and URLs. Words, sites and domains are drawn by rank,
 * by the cube of a uniform number; those beyond the lists are made of
 * syllables by their rank, so there are as many as are asked for, and the same
 * one each time. */
#include "bench/name_kinds.h"

#include "bench/fail.h"
#include "lib/dist.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *const name_kind_words[NAME_KINDS] = {
    "user names", "e-mails", "URLs"};

static const char *const given[] = {"maria", "james", "anna", "david", "sofia",
    "john", "laura", "michael", "emma", "carlos", "julia", "daniel", "sara",
    "thomas", "lucas", "nina", "peter", "olga", "ahmed", "wei", "fatima",
    "marco", "ivan", "elena", "kevin", "lisa", "paul", "amy", "jose", "chen",
    "priya", "raj", "yuki", "hans", "ines", "omar", "lena", "max", "eva",
    "leo"};

static const char *const words[] = {"the", "star", "cool", "dark", "real",
    "king", "love", "game", "super", "blue", "night", "music", "mr", "just",
    "cat", "fire", "dragon", "happy", "wolf", "sky", "world", "new", "best",
    "news", "review", "how", "to", "guide", "for", "your", "home", "recipe",
    "travel", "city", "photo", "video", "market", "health", "science", "sport",
    "football", "update", "report", "price", "season", "summer", "winter",
    "family", "story", "history", "garden", "phone", "travel", "with", "and",
    "in", "of", "from", "what", "week"};

static const char *const mail[] = {"gmail.com", "yahoo.com", "hotmail.com",
    "outlook.com", "qq.com", "icloud.com", "163.com", "mail.ru", "gmx.de",
    "web.de", "aol.com", "live.com", "yandex.ru", "protonmail.com",
    "orange.fr", "free.fr"};

static const char *const ends[] = {
    "com", "com", "com", "com", "org", "net", "de", "co.uk", "cn", "io"};

static const char *const folders[] = {"news", "article", "blog", "product",
    "watch", "video", "category", "user", "posts", "p", "en", "shop", "wiki",
    "item", "tag", "forum"};

struct maker {
    struct dist_rng rng;
    char *out;
    size_t n;
};

static uint64_t
below(struct maker *maker, uint64_t n)
{
    return dist_rng_u64(&maker->rng) % n;
}

/* A rank below n, the lower the more often. */
static uint64_t
rank(struct maker *maker, uint64_t n)
{
    double u = dist_rng_unit(&maker->rng);
    return (uint64_t)((double)n * u * u * u);
}

__attribute__((format(printf, 2, 3))) static void
say(struct maker *maker, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int n = vsnprintf(
        maker->out + maker->n, NAME_BYTES_MAX + 1 - maker->n, format, list);
    va_end(list);
    if (n < 0 || maker->n + (size_t)n > NAME_BYTES_MAX) {
        fail("a name that is too long");
    }
    maker->n += (size_t)n;
}

/* The word of a rank: two to four syllables. */
static void
say_made(struct maker *maker, uint64_t rank)
{
    struct dist_rng rng;
    dist_rng_init(&rng, rank, 99);
    unsigned syllables = 2 + (unsigned)(dist_rng_u64(&rng) % 3);
    for (unsigned i = 0; i < syllables; i++) {
        uint64_t x = dist_rng_u64(&rng);
        say(maker, "%c%c", "bcdfghjklmnprstvwz"[x % 18],
            "aaeeiioouy"[x / 18 % 10]);
        if (x >> 60 < 4) {
            say(maker, "%c", "nrslt"[x / 180 % 5]);
        }
    }
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void
say_of(struct maker *maker, const char *const *list, size_t n, uint64_t all)
{
    uint64_t which = rank(maker, all);
    if (which < n) {
        say(maker, "%s", list[which]);
    } else {
        say_made(maker, which);
    }
}

static void
say_given(struct maker *maker)
{
    say_of(maker, given, COUNT(given), 4000);
}

static void
say_family(struct maker *maker)
{
    say_made(maker, 1000000 + rank(maker, 60000));
}

static void
say_word(struct maker *maker)
{
    say_of(maker, words, COUNT(words), 8000);
}

/* A year, two digits, or up to six. */
static void
say_digits(struct maker *maker)
{
    switch (below(maker, 4)) {
    case 0:
        say(maker, "%u", 1960 + (unsigned)below(maker, 55));
        break;
    case 1:
        say(maker, "%02u", (unsigned)below(maker, 100));
        break;
    default:
        say(maker, "%u", (unsigned)below(maker, 1000000));
    }
}

static void
make_user(struct maker *maker)
{
    size_t first = maker->n;
    switch (below(maker, 6)) {
    case 0:
        say_given(maker);
        break;
    case 1:
        say_given(maker);
        say(maker, "%c", "._-"[below(maker, 3)]);
        say_family(maker);
        break;
    case 2:
        say_given(maker);
        say_family(maker);
        break;
    case 3:
        say_word(maker);
        say(maker, "%s", below(maker, 2) == 0 ? "_" : "");
        say_word(maker);
        break;
    case 4:
        say(maker, "%c", 'a' + (int)below(maker, 26));
        say_family(maker);
        break;
    default:
        say_family(maker);
    }
    if (below(maker, 4) > 0) {
        say_digits(maker);
    }
    if (below(maker, 5) == 0) {
        maker->out[first] = (char)(maker->out[first] & ~0x20);
    }
}

static void
make_mail(struct maker *maker)
{
    make_user(maker);
    say(maker, "@");
    if (below(maker, 10) < 7) {
        say(maker, "%s", mail[rank(maker, COUNT(mail))]);
    } else {
        say_made(maker, 2000000 + rank(maker, 50000));
        say(maker, ".%s", ends[below(maker, COUNT(ends))]);
    }
}

static void
make_url(struct maker *maker)
{
    uint64_t site = rank(maker, 20000);
    say(maker, "https://%s", site % 3 == 0 ? "" : "www.");
    say_made(maker, 3000000 + site);
    say(maker, ".%s/", ends[site % COUNT(ends)]);
    for (uint64_t i = below(maker, 3); i > 0; i--) {
        say(maker, "%s/", folders[(site + rank(maker, 8)) % COUNT(folders)]);
    }
    switch (site % 4) {
    case 0:
        say(maker, "%u/", (unsigned)below(maker, 100000000));
        break;
    case 1:
        say(maker, "%04u/%02u/", 2010 + (unsigned)below(maker, 16),
            1 + (unsigned)below(maker, 12));
        break;
    case 2:
        say(maker, "?id=%08x", (unsigned)below(maker, UINT32_MAX));
        return;
    default:
        break;
    }
    for (uint64_t i = 2 + below(maker, 5), first = i; i > 0; i--) {
        say(maker, "%s", i < first ? "-" : "");
        say_word(maker);
    }
    if (site % 4 == 3) {
        say(maker, "-%u.html", (unsigned)below(maker, 10000000));
    }
}

size_t
name_kind_make(enum name_kind kind, uint64_t seed, uint64_t i,
    char out[NAME_BYTES_MAX + 8])
{
    static void (*const make_fn[NAME_KINDS])(struct maker *) = {
        make_user, make_mail, make_url};
    struct maker maker = {.out = out};
    memset(out, 0, NAME_BYTES_MAX + 8);
    dist_rng_init(&maker.rng, seed, i);
    make_fn[kind](&maker);
    return maker.n;
}
