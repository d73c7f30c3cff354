/* SPDX-License-Identifier: BSD-3-Clause */
/* proto/text_admin: what each line asks for, and what is wrong with it. */
#include "proto/text_admin.h"

#include "unit/check_help.h"

#include <stdio.h>
#include <stdlib.h>

#define BAD_FORMAT "CLIENT_ERROR bad command line format"

static struct text_admin
read_text(const char *line)
{
    struct text_admin out;
    /* just as many bytes as there are, for AddressSanitizer */
    size_t len = strlen(line);
    char *bytes = malloc(len + 1);
    ck_assert_ptr_nonnull(bytes);
    memcpy(bytes, line, len);
    bytes[len] = '\n';
    text_admin_read(bytes, (struct span){0, (uint32_t)len}, &out);
    free(bytes);
    return out;
}

static const struct {
    const char *line;
    enum text_admin_op op;
    const char *error;
} errors[] = {
    {"", TEXT_ADMIN_NOTHING, "ERROR"},
    {"slab", TEXT_ADMIN_NOTHING, "ERROR"},
    {"slabss automove 1", TEXT_ADMIN_NOTHING, "ERROR"},
    {"slabs", TEXT_ADMIN_NOTHING, "ERROR"},
    {"slabs reassign 1 2", TEXT_ADMIN_REASSIGN,
        "NOSPARE source class has no spare pages"},
    {"slabs r 1 2", TEXT_ADMIN_REASSIGN,
        "NOSPARE source class has no spare pages"},
    {"slabs reassign 1 2 3", TEXT_ADMIN_NOTHING, "ERROR"},
    {"slabs reassign 1 2147483648", TEXT_ADMIN_REASSIGN, BAD_FORMAT},
    {"slabs reassign -1 5", TEXT_ADMIN_REASSIGN,
        "BADCLASS invalid src or dst class id"},
    {"slabs reassign 39 40", TEXT_ADMIN_REASSIGN,
        "BADCLASS invalid src or dst class id"},
    {"slabs reassign 39 0", TEXT_ADMIN_REASSIGN,
        "NOSPARE source class has no spare pages"},
    {"slabs automove 4294967296", TEXT_ADMIN_SETTINGS, BAD_FORMAT},
    {"slabs automove ratio", TEXT_ADMIN_SETTINGS, "ERROR"},
    {"slabs automove ratio nan", TEXT_ADMIN_SETTINGS, "ERROR"},
    {"slabs automove ratio 0x1p3", TEXT_ADMIN_SETTINGS, "ERROR"},
    {"slabs automove ratio 1e300", TEXT_ADMIN_SETTINGS, "ERROR"},
    {"slabs automove ratio 1.5.5", TEXT_ADMIN_SETTINGS, "ERROR"},
    {"slabs automove ratio 0.00000000000000000000000000000000001",
        TEXT_ADMIN_SETTINGS, "ERROR"},
    {"slabs automove window", TEXT_ADMIN_SETTINGS, BAD_FORMAT},
    {"slabs automove window 2", TEXT_ADMIN_SETTINGS,
        "CLIENT_ERROR automove window too low or too high"},
    {"slabs automove window 1801", TEXT_ADMIN_SETTINGS,
        "CLIENT_ERROR automove window too low or too high"},
    {"lru tune 79 2 1 1", TEXT_ADMIN_SETTINGS,
        "ERROR hot and warm pcts must not exceed 80"},
    {"lru mode", TEXT_ADMIN_NOTHING, "ERROR"},
    {"lru mode flatter", TEXT_ADMIN_LRU_SETTINGS, "ERROR"},
    {"lru_crawler crawl 1,,2", TEXT_ADMIN_CRAWL, "BADCLASS invalid class id"},
    {"lru_crawler crawl ,", TEXT_ADMIN_CRAWL, "BADCLASS invalid class id"},
    {"lru_crawler metadump 0", TEXT_ADMIN_METADUMP,
        "BADCLASS invalid class id"},
    {"lru_crawler mgdump 64", TEXT_ADMIN_MGDUMP, "BADCLASS invalid class id"},
    {"lru_crawler crawl hash", TEXT_ADMIN_CRAWL,
        "ERROR an unknown error happened"},
    {"cache_memlimit 7", TEXT_ADMIN_MEMLIMIT,
        "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m"},
    {"cache_memlimit 1000000001", TEXT_ADMIN_MEMLIMIT,
        "MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes"},
    {"shutdown now", TEXT_ADMIN_SHUTDOWN,
        "CLIENT_ERROR invalid shutdown mode"},
    {"shutdown graceful x", TEXT_ADMIN_SHUTDOWN,
        "CLIENT_ERROR invalid shutdown mode"},
    {"extstore free_memchunks 64 0", TEXT_ADMIN_SETTINGS, "ERROR"},
    {"extstore free_memchunks 1 x", TEXT_ADMIN_SETTINGS, "ERROR"},
    {"extstore nothing 1", TEXT_ADMIN_SETTINGS, "ERROR"},
    {"extstore drop_unread x", TEXT_ADMIN_SETTINGS, "ERROR"},
    {"debugtime 2147483648", TEXT_ADMIN_TIME_SHIFT, "ERROR"},
    {"watch nothing", TEXT_ADMIN_WATCH, "ERROR"},
    {"slow", TEXT_ADMIN_SLOW,
        "CLIENT_ERROR slow wants milliseconds, 0 to 3600000"},
    {"slow 1 2", TEXT_ADMIN_SLOW,
        "CLIENT_ERROR slow wants milliseconds, 0 to 3600000"},
    {"slow -1", TEXT_ADMIN_SLOW,
        "CLIENT_ERROR slow wants milliseconds, 0 to 3600000"},
    {"slow 3600001", TEXT_ADMIN_SLOW,
        "CLIENT_ERROR slow wants milliseconds, 0 to 3600000"},
    /* more words than a line may have, all of them right */
    {"watch evictions evictions evictions evictions evictions evictions "
     "evictions evictions evictions evictions evictions evictions",
        TEXT_ADMIN_WATCH, "ERROR"},
};

START_TEST(test_errors)
{
    for (size_t i = 0; i < COUNT_OF(errors); i++) {
        struct text_admin out = read_text(errors[i].line);
        ck_assert_msg(out.op == errors[i].op && out.error != NULL &&
                strcmp(out.error, errors[i].error) == 0,
            "'%s': %d, %s", errors[i].line, (int)out.op,
            out.error == NULL ? "no error" : out.error);
    }
}
END_TEST

static const struct {
    const char *line;
    enum text_admin_op op;
    const char *settings; /* "name=value ..." */
} settings[] = {
    {"slabs automove 0", TEXT_ADMIN_SETTINGS, "slab_automove=0 "},
    {"slabs a 2", TEXT_ADMIN_SETTINGS, "slab_automove=2 "},
    {"slabs automove ratio .5", TEXT_ADMIN_SETTINGS,
        "slab_automove_ratio=0.50 "},
    {"slabs automove freeratio 0.0125", TEXT_ADMIN_SETTINGS,
        "slab_automove_freeratio=0.013 "},
    {"slabs automove window 3", TEXT_ADMIN_SETTINGS,
        "slab_automove_window=3 "},
    {"lru tune 10 70 0.1 2e0", TEXT_ADMIN_SETTINGS,
        "hot_lru_pct=10 warm_lru_pct=70 hot_max_factor=0.10 "
        "warm_max_factor=2.00 "},
    {"lru mode flat", TEXT_ADMIN_LRU_SETTINGS, "lru_segmented=no "},
    {"lru m segmented", TEXT_ADMIN_LRU_SETTINGS, "lru_segmented=yes "},
    {"lru temp_ttl -1", TEXT_ADMIN_LRU_SETTINGS, "temp_lru=no "},
    {"lru temp_ttl 30", TEXT_ADMIN_LRU_SETTINGS,
        "temp_lru=yes temporary_ttl=30 "},
    {"lru_crawler enable", TEXT_ADMIN_CRAWLER, "lru_crawler=yes "},
    {"lru_crawler d", TEXT_ADMIN_CRAWLER, "lru_crawler=no "},
    {"lru_crawler sleep 1000000", TEXT_ADMIN_SETTINGS,
        "lru_crawler_sleep=1000000 "},
    {"lru_crawler t 4294967295", TEXT_ADMIN_SETTINGS,
        "lru_crawler_tocrawl=4294967295 "},
    {"extstore free_memchunks 63 5", TEXT_ADMIN_SETTINGS, ""},
    {"extstore item_size 5", TEXT_ADMIN_SETTINGS, "ext_item_size=5 "},
    {"extstore max_sleep 6", TEXT_ADMIN_SETTINGS, "ext_max_sleep=6 "},
    {"extstore max_frag 0.5", TEXT_ADMIN_SETTINGS, "ext_max_frag=0.50 "},
    {"extstore drop_unread 0", TEXT_ADMIN_SETTINGS, "ext_drop_unread=no "},
    {"extstore drop_unread 7 x", TEXT_ADMIN_SETTINGS, "ext_drop_unread=yes "},
};

START_TEST(test_settings)
{
    for (size_t i = 0; i < COUNT_OF(settings); i++) {
        char text[256] = "";
        struct text_admin out = read_text(settings[i].line);
        for (unsigned k = 0; k < out.n_settings; k++) {
            size_t at = strlen(text);
            snprintf(text + at, sizeof text - at, "%s=%s ",
                out.setting[k].name, out.setting[k].value);
        }
        ck_assert_msg(out.error == NULL, "%s", settings[i].line);
        ck_assert_int_eq((int)out.op, (int)settings[i].op);
        ck_assert_str_eq(text, settings[i].settings);
    }
    ck_assert(read_text("lru_crawler enable").is_enabled);
    ck_assert(!read_text("lru_crawler disable").is_enabled);
}
END_TEST

START_TEST(test_classes)
{
    ck_assert_uint_eq(
        read_text("lru_crawler crawl 1,5,63").classes, 0x8000000000000022);
    ck_assert_uint_eq(read_text("lru_crawler metadump 1,").classes, 2);
    ck_assert_uint_eq(
        read_text("lru_crawler metadump all").classes, UINT64_MAX);
    ck_assert_uint_eq(
        read_text("lru_crawler mgdump hash").classes, UINT64_MAX);
    ck_assert_ptr_null(read_text("lru_crawler mgdump hash").error);
    ck_assert_int_eq(
        (int)read_text("lru_crawler me all").op, (int)TEXT_ADMIN_METADUMP);
    ck_assert_int_eq(
        (int)read_text("lru_crawler mg all").op, (int)TEXT_ADMIN_MGDUMP);
}
END_TEST

START_TEST(test_others)
{
    ck_assert_uint_eq(read_text("cache_memlimit 8").megabytes, 8);
    ck_assert_ptr_null(read_text("cache_memlimit 8 noreply").error);
    ck_assert(!read_text("shutdown").is_graceful);
    ck_assert_ptr_null(read_text("shutdown").error);
    ck_assert(read_text("shutdown graceful").is_graceful);
    ck_assert_int_eq(read_text("debugtime -5").shift_s, -5);
    ck_assert_int_eq(
        (int)read_text("debugtime p").op, (int)TEXT_ADMIN_TIME_STOP);
    ck_assert_int_eq(
        (int)read_text("debugtime r").op, (int)TEXT_ADMIN_TIME_GO);
    ck_assert_int_eq(
        (int)read_text("refresh_certs").op, (int)TEXT_ADMIN_CERTS);
    ck_assert_int_eq((int)read_text("watch x y").op, (int)TEXT_ADMIN_WATCH);
    ck_assert_int_eq(
        (int)read_text("  slabs  automove   1 ").op, (int)TEXT_ADMIN_SETTINGS);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        test_errors, test_settings, test_classes, test_others};
    return run_tests("text_admin", tests, COUNT_OF(tests));
}
