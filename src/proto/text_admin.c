/* SPDX-License-Identifier: BSD-3-Clause */
/* The lines of administration. One table names the commands and the functions
 * that read them, and one each the sub-commands. What is wrong with a line
 * goes to out->error, and the op stays: memcached looks at its own state
 * first, so a server that does not allow a dump says so whatever the classes
 * are.
 *
 * Settings of memcached's slabs and LRU lists have no meaning here: they are
 * checked, and kept as text to be shown again. */
#include "proto/text_admin.h"

#include "base/num.h"
#include "proto/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BAD_FORMAT "CLIENT_ERROR bad command line format"
#define BAD_CLASS "BADCLASS invalid class id"

enum {
    WORDS_MAX = 12,
    TUNE_WORDS = 6,
    DOUBLE_BYTES = 32, /* of a number with a point, as text */
    CRAWL_SLEEP_US_MAX = 1000000,
    MEGABYTES_MAX = 1000000000,
    PERCENT_MAX = 80,
    WINDOW_MIN = 3,
    WINDOW_MAX = 1800,
    DOUBLE_MAX = 1000000000
};

/* The words of a line. Of one with more than WORDS_MAX those are left out,
 * but counted. */
struct args {
    const char *bytes;
    unsigned n; /* with the command */
    struct span word[WORDS_MAX];
};

static const char *const watch_words[] = {
#define X(name, word) word,
    TEXT_ADMIN_WATCH_KINDS(X)
#undef X
};

typedef void read_fn(const struct args *args, struct text_admin *out);

static void
fail(struct text_admin *out, const char *error)
{
    out->error = error;
}

/* True where word i is a beginning of text. */
static bool
begins(const struct args *args, unsigned i, const char *text)
{
    return i < args->n && span_begins(args->bytes, args->word[i], text);
}

static bool
take_u32(const struct args *args, unsigned i, uint64_t *out)
{
    struct span word = args->word[i];
    return i < args->n &&
        num_parse_u64(args->bytes + word.at, word.len, out) &&
        *out <= UINT32_MAX;
}

static bool
take_i32(const struct args *args, unsigned i, int64_t *out)
{
    struct span word = args->word[i];
    return i < args->n &&
        num_parse_i64(args->bytes + word.at, word.len, out) &&
        *out >= INT32_MIN && *out <= INT32_MAX;
}

/* A number with a point and perhaps an exponent. */
static bool
take_double(const struct args *args, unsigned i, double *out)
{
    char text[DOUBLE_BYTES];
    struct span word = args->word[i];
    char *end;
    if (i >= args->n || word.len >= sizeof text) {
        return false;
    }
    memcpy(text, args->bytes + word.at, word.len);
    text[word.len] = '\0';
    if (strspn(text, "0123456789.+-eE") != word.len) {
        return false; /* strtod takes more: nan, 0x1p3 */
    }
    *out = strtod(text, &end);
    return *end == '\0' && *out >= -DOUBLE_MAX && *out <= DOUBLE_MAX;
}

static struct text_admin_setting *
add_setting(struct text_admin *out, const char *name)
{
    struct text_admin_setting *setting = &out->setting[out->n_settings++];
    setting->name = name;
    return setting;
}

static void
set_text(struct text_admin *out, const char *name, const char *text)
{
    struct text_admin_setting *setting = add_setting(out, name);
    snprintf(setting->value, sizeof setting->value, "%s", text);
}

static void
set_number(struct text_admin *out, const char *name, int64_t number)
{
    struct text_admin_setting *setting = add_setting(out, name);
    snprintf(setting->value, sizeof setting->value, "%lld", (long long)number);
}

/* places: behind the point, as memcached shows that setting. */
static void
set_double(struct text_admin *out, const char *name, double number, int places)
{
    struct text_admin_setting *setting = add_setting(out, name);
    snprintf(setting->value, sizeof setting->value, "%.*f", places, number);
}

/* The number that is word i becomes the setting, or error the reply. */
static void
take_setting(const struct args *args, unsigned i, struct text_admin *out,
    const char *name, const char *error)
{
    uint64_t number;
    if (take_u32(args, i, &number)) {
        set_number(out, name, (int64_t)number);
    } else {
        fail(out, error);
    }
}

static void
take_ratio(const struct args *args, unsigned i, struct text_admin *out,
    const char *name, int places)
{
    double number;
    if (take_double(args, i, &number)) {
        set_double(out, name, number, places);
    } else {
        fail(out, "ERROR");
    }
}

/* slabs automove 0|1|2, slabs automove ratio|freeratio|window <number> */
static void
read_automove(const struct args *args, struct text_admin *out)
{
    uint64_t number;
    out->op = TEXT_ADMIN_SETTINGS;
    if (begins(args, 2, "ratio")) {
        take_ratio(args, 3, out, "slab_automove_ratio", 2);
    } else if (begins(args, 2, "freeratio")) {
        take_ratio(args, 3, out, "slab_automove_freeratio", 3);
    } else if (begins(args, 2, "window")) {
        if (take_u32(args, 3, &number) &&
            (number < WINDOW_MIN || number > WINDOW_MAX)) {
            fail(out, "CLIENT_ERROR automove window too low or too high");
        } else {
            take_setting(args, 3, out, "slab_automove_window", BAD_FORMAT);
        }
    } else if (take_u32(args, 2, &number) && number > 2) {
        fail(out, "ERROR");
    } else {
        take_setting(args, 2, out, "slab_automove", BAD_FORMAT);
    }
}

/* slabs reassign <from> <to>: what memory is here is not in pages of slab
 * classes, so there is never one to spare. */
static void
read_slabs(const struct args *args, struct text_admin *out)
{
    if (args->n == 4 && begins(args, 1, "reassign")) {
        out->op = TEXT_ADMIN_REASSIGN;
        if (!take_i32(args, 2, &out->class_from) ||
            !take_i32(args, 3, &out->class_to)) {
            fail(out, BAD_FORMAT);
        } else if (out->class_from == out->class_to) {
            fail(out, "SAME src and dst class are identical");
        } else if (out->class_from < 0 || out->class_to < 0 ||
            out->class_from > TEXT_ADMIN_PAGES_MAX ||
            out->class_to > TEXT_ADMIN_PAGES_MAX) {
            fail(out, "BADCLASS invalid src or dst class id");
        } else {
            fail(out, "NOSPARE source class has no spare pages");
        }
    } else if (args->n >= 3 && begins(args, 1, "automove")) {
        read_automove(args, out);
    } else {
        fail(out, "ERROR");
    }
}

/* lru tune <% hot> <% warm> <max hot factor> <max warm factor> */
static void
read_tune(const struct args *args, struct text_admin *out)
{
    uint64_t hot;
    uint64_t warm;
    double hot_factor;
    double warm_factor;
    out->op = TEXT_ADMIN_SETTINGS;
    if (!take_u32(args, 2, &hot) || !take_u32(args, 3, &warm) ||
        !take_double(args, 4, &hot_factor) ||
        !take_double(args, 5, &warm_factor)) {
        fail(out, "ERROR");
    } else if (hot + warm > PERCENT_MAX) {
        fail(out, "ERROR hot and warm pcts must not exceed 80");
    } else if (hot_factor <= 0 || warm_factor <= 0) {
        fail(out, "ERROR hot/warm age factors must be greater than 0");
    } else {
        set_number(out, "hot_lru_pct", (int64_t)hot);
        set_number(out, "warm_lru_pct", (int64_t)warm);
        set_double(out, "hot_max_factor", hot_factor, 2);
        set_double(out, "warm_max_factor", warm_factor, 2);
    }
}

/* lru mode flat|segmented */
static void
read_mode(const struct args *args, struct text_admin *out)
{
    out->op = TEXT_ADMIN_LRU_SETTINGS;
    if (span_is(args->bytes, args->word[2], "flat")) {
        set_text(out, "lru_segmented", "no");
    } else if (span_is(args->bytes, args->word[2], "segmented")) {
        set_text(out, "lru_segmented", "yes");
    } else {
        fail(out, "ERROR");
    }
}

/* lru temp_ttl <seconds>; below 0 there is no such list */
static void
read_temp_ttl(const struct args *args, struct text_admin *out)
{
    int64_t ttl_s;
    out->op = TEXT_ADMIN_LRU_SETTINGS;
    if (!take_i32(args, 2, &ttl_s)) {
        fail(out, "ERROR");
        return;
    }
    set_text(out, "temp_lru", ttl_s < 0 ? "no" : "yes");
    if (ttl_s >= 0) {
        set_number(out, "temporary_ttl", ttl_s);
    }
}

static void
read_lru(const struct args *args, struct text_admin *out)
{
    if (args->n >= TUNE_WORDS && begins(args, 1, "tune")) {
        read_tune(args, out);
    } else if (args->n >= 3 && begins(args, 1, "mode")) {
        read_mode(args, out);
    } else if (args->n >= 3 && begins(args, 1, "temp_ttl")) {
        read_temp_ttl(args, out);
    } else {
        fail(out, "ERROR");
    }
}

/* "all", or class ids separated by commas. hash: the answer to "hash", which
 * means all as well, but in the order of the hash table; NULL: it is right. */
static void
take_classes(const struct args *args, const char *hash, struct text_admin *out)
{
    struct span word = args->word[2];
    const char *text = args->bytes + word.at;
    const char *end = text + word.len;
    bool is_hash = word.len >= 4 && memcmp(text, "hash", 4) == 0;
    out->classes = UINT64_MAX;
    if (is_hash || (word.len >= 3 && memcmp(text, "all", 3) == 0)) {
        fail(out, is_hash ? hash : NULL);
        return;
    }
    out->classes = 0;
    while (text < end) {
        const char *comma = memchr(text, ',', (size_t)(end - text));
        const char *stop = comma == NULL ? end : comma;
        uint64_t id;
        if (!num_parse_u64(text, (size_t)(stop - text), &id) || id < 1 ||
            id >= TEXT_ADMIN_CLASSES) {
            fail(out, BAD_CLASS);
            return;
        }
        out->classes |= UINT64_C(1) << id;
        text = comma == NULL ? end : comma + 1;
    }
}

static void
read_sleep(const struct args *args, struct text_admin *out)
{
    uint64_t sleep_us;
    out->op = TEXT_ADMIN_SETTINGS;
    if (take_u32(args, 2, &sleep_us) && sleep_us > CRAWL_SLEEP_US_MAX) {
        fail(out, "CLIENT_ERROR sleep must be one second or less");
    } else {
        take_setting(args, 2, out, "lru_crawler_sleep", BAD_FORMAT);
    }
}

/* lru_crawler with one more word */
static void
read_crawler_with(const struct args *args, struct text_admin *out)
{
    if (begins(args, 1, "crawl")) {
        out->op = TEXT_ADMIN_CRAWL;
        take_classes(args, "ERROR an unknown error happened", out);
    } else if (begins(args, 1, "metadump")) {
        out->op = TEXT_ADMIN_METADUMP;
        take_classes(args, NULL, out);
    } else if (begins(args, 1, "mgdump")) {
        out->op = TEXT_ADMIN_MGDUMP;
        take_classes(args, NULL, out);
    } else if (begins(args, 1, "tocrawl")) {
        out->op = TEXT_ADMIN_SETTINGS;
        take_setting(args, 2, out, "lru_crawler_tocrawl", BAD_FORMAT);
    } else if (begins(args, 1, "sleep")) {
        read_sleep(args, out);
    } else {
        fail(out, "ERROR");
    }
}

static void
read_crawler(const struct args *args, struct text_admin *out)
{
    bool enables = begins(args, 1, "enable");
    if (args->n == 3) {
        read_crawler_with(args, out);
    } else if (args->n == 2 && (enables || begins(args, 1, "disable"))) {
        out->op = TEXT_ADMIN_CRAWLER;
        out->is_enabled = enables;
        set_text(out, "lru_crawler", enables ? "yes" : "no");
    } else {
        fail(out, "ERROR");
    }
}

/* cache_memlimit <megabytes> */
static void
read_memlimit(const struct args *args, struct text_admin *out)
{
    out->op = TEXT_ADMIN_MEMLIMIT;
    if (!take_u32(args, 1, &out->megabytes)) {
        fail(out, "ERROR");
    } else if (out->megabytes < TEXT_ADMIN_MEMLIMIT_MIN) {
        fail(out, "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m");
    } else if (out->megabytes > MEGABYTES_MAX) {
        fail(out, "MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes");
    }
}

/* shutdown [graceful] */
static void
read_shutdown(const struct args *args, struct text_admin *out)
{
    out->op = TEXT_ADMIN_SHUTDOWN;
    out->is_graceful =
        args->n == 2 && span_is(args->bytes, args->word[1], "graceful");
    if (args->n > 1 && !out->is_graceful) {
        fail(out, "CLIENT_ERROR invalid shutdown mode");
    }
}

/* extstore <name> <number> */
static void
read_extstore(const struct args *args, struct text_admin *out)
{
    enum { SHORT = sizeof "ext_" - 1 }; /* what the command leaves out */
    static const char *const settings[] = {"ext_item_size", "ext_item_age",
        "ext_low_ttl", "ext_recache_rate", "ext_compact_under",
        "ext_drop_under", "ext_max_sleep"};
    uint64_t number;
    out->op = TEXT_ADMIN_SETTINGS;
    if (args->n < 3) {
        fail(out, "ERROR");
        return;
    }
    if (args->n > 3 && begins(args, 1, "free_memchunks")) {
        if (!take_u32(args, 2, &number) || number >= TEXT_ADMIN_CLASSES ||
            !take_u32(args, 3, &number)) {
            fail(out, "ERROR");
        }
        return;
    }
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        if (begins(args, 1, settings[i] + SHORT)) {
            take_setting(args, 2, out, settings[i], "ERROR");
            return;
        }
    }
    if (begins(args, 1, "max_frag")) {
        take_ratio(args, 2, out, "ext_max_frag", 2);
    } else if (begins(args, 1, "drop_unread") && take_u32(args, 2, &number)) {
        set_text(out, "ext_drop_unread", number == 0 ? "no" : "yes");
    } else {
        fail(out, "ERROR");
    }
}

/* debugtime p|r|<seconds> */
static void
read_debugtime(const struct args *args, struct text_admin *out)
{
    if (args->n >= 2 && span_is(args->bytes, args->word[1], "p")) {
        out->op = TEXT_ADMIN_TIME_STOP;
    } else if (args->n >= 2 && span_is(args->bytes, args->word[1], "r")) {
        out->op = TEXT_ADMIN_TIME_GO;
    } else {
        out->op = TEXT_ADMIN_TIME_SHIFT;
        if (!take_i32(args, 1, &out->shift_s)) {
            fail(out, "ERROR");
        }
    }
}

static void
read_certs(const struct args *args, struct text_admin *out)
{
    (void)args;
    out->op = TEXT_ADMIN_CERTS;
}

/* watch <kind>...: the first kind that a word is a beginning of */
static void
read_watch(const struct args *args, struct text_admin *out)
{
    out->op = TEXT_ADMIN_WATCH;
    if (args->n > WORDS_MAX) {
        fail(out, "ERROR");
        return;
    }
    for (unsigned i = 1; i < args->n; i++) {
        unsigned bit = 0;
        while (
            bit < TEXT_ADMIN_WATCHES && !begins(args, i, watch_words[bit])) {
            bit++;
        }
        if (bit == TEXT_ADMIN_WATCHES) {
            fail(out, "ERROR");
            return;
        }
        out->watch |= 1U << bit;
    }
}

/* kill conn <number> */
static void
read_kill(const struct args *args, struct text_admin *out)
{
    out->op = TEXT_ADMIN_KILL;
    if (args->n != 3 || !span_is(args->bytes, args->word[1], "conn") ||
        !take_u32(args, 2, &out->conn) || out->conn > INT32_MAX) {
        fail(out, "CLIENT_ERROR kill conn wants a number of stats conns");
    }
}

/* slow <milliseconds> */
static void
read_slow(const struct args *args, struct text_admin *out)
{
    out->op = TEXT_ADMIN_SLOW;
    if (args->n != 2 || !take_u32(args, 1, &out->slow_ms) ||
        out->slow_ms > TEXT_ADMIN_SLOW_MS_MAX) {
        fail(out, "CLIENT_ERROR slow wants milliseconds, 0 to 3600000");
    }
}

static const struct {
    const char *name;
    read_fn *read_fn;
} commands[] = {
    {"slabs", read_slabs},
    {"lru", read_lru},
    {"lru_crawler", read_crawler},
    {"cache_memlimit", read_memlimit},
    {"shutdown", read_shutdown},
    {"refresh_certs", read_certs},
    {"extstore", read_extstore},
    {"watch", read_watch},
    {"kill", read_kill},
    {"slow", read_slow},
    {"debugtime", read_debugtime},
};

static read_fn *
find(const struct args *args)
{
    for (size_t i = 0; args->n > 0 && i < sizeof commands / sizeof *commands;
         i++) {
        if (span_is(args->bytes, args->word[0], commands[i].name)) {
            return commands[i].read_fn;
        }
    }
    return NULL;
}

void
text_admin_read(const char *bytes, struct span line, struct text_admin *out)
{
    struct args args = {.bytes = bytes};
    struct words words = words_of(bytes, line);
    struct span word;
    while (words_next(&words, &word)) {
        if (args.n < WORDS_MAX) {
            args.word[args.n] = word;
        }
        args.n++;
    }
    read_fn *read_line = find(&args);
    *out = (struct text_admin){.op = TEXT_ADMIN_NOTHING};
    if (read_line == NULL) {
        fail(out, "ERROR");
    } else {
        read_line(&args, out);
    }
}
