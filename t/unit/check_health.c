/* SPDX-License-Identifier: BSD-3-Clause */
/* server/health and server/figures: each thing that can be wrong is named by
 * the figures that say so, and the worst comes first. */
#include "base/err.h"
#include "server/health.h"
#include "unit/check_help.h"

#include <string.h>

#define STAT(name, value) "STAT " name " " value "\r\n"

/* Figures of a server that is well. */
static void
fill(struct figures *figures)
{
    static const char *const texts[FIGURES_GROUPS_COUNT] = {
        [FIGURES_general] = STAT("max_connections", "1024")
            STAT("curr_connections", "10") STAT("threads", "4") "END\r\n",
        [FIGURES_memory] = STAT("hot_limit", "104857600")
            STAT("hot_used", "83886080") "END\r\n",
        [FIGURES_wal] = STAT("state", "writable") STAT("unsynced_ms", "900")
            STAT("load_all_bytes", "4194304") STAT("load_is_log", "1")
                STAT("load_done_bytes", "1048576") "END\r\n",
        [FIGURES_cold] = STAT("queued", "15") "END\r\n",
        [FIGURES_replication] = "END\r\n",
        [FIGURES_replicas] = "END\r\n",
    };
    *figures = (struct figures){.text = {{.data = NULL}}};
    for (unsigned i = 0; i < FIGURES_GROUPS_COUNT; i++) {
        if (texts[i] != NULL) {
            buf_add_text(&figures->text[i], texts[i]);
        }
    }
}

static struct health_facts
facts_of(const struct figures *figures)
{
    return (struct health_facts){.is_open = true,
        .max_lag_ms = 1500,
        .interval_ms = 1000,
        .cold_threads = 16,
        .now = figures};
}

/* Puts other lines in the place of a group's. */
static void
say(struct figures *figures, enum figures_group group, const char *lines)
{
    buf_clear(&figures->text[group]);
    buf_add_text(&figures->text[group], lines);
    buf_add_text(&figures->text[group], "END\r\n");
}

static void
expect(const struct health_facts *facts, enum health_state state,
    const char *first, const char *advice)
{
    struct health health;
    health_judge(facts, &health);
    ck_assert_msg(health.state == state, "%s: %s", health_word(health.state),
        health.n > 0 ? health.problem[0] : "nothing");
    if (first == NULL) {
        ck_assert_msg(health.n == 0, "%s", health.problem[0]);
        return;
    }
    ck_assert_uint_gt(health.n, 0);
    ck_assert_msg(
        strstr(health.problem[0], first) != NULL, "%s", health.problem[0]);
    const char *behind = strchr(health.problem[0], ';');
    ck_assert_msg(behind != NULL && strstr(behind, advice) != NULL, "%s",
        health.problem[0]);
    for (unsigned i = 0; i < health.n; i++) {
        ck_assert_ptr_nonnull(strstr(health.problem[i], "; "));
        ck_assert_uint_lt(strlen(health.problem[i]), HEALTH_TEXT_BYTES - 1);
        ck_assert_ptr_null(strchr(health.problem[i], '\n'));
    }
}

START_TEST(test_states)
{
    struct figures figures;
    fill(&figures);
    struct health_facts facts = facts_of(&figures);
    struct health health;
    expect(&facts, HEALTH_READY, NULL, NULL);
    facts.fault = ERR_LOADING;
    expect(&facts, HEALTH_LOADING, "loading: 25 % of the log", "wait");
    health_judge(&facts, &health);
    ck_assert_uint_eq(health.percent, 25);
    ck_assert(!health_is_ready(&health));
    facts.is_open = false;
    expect(&facts, HEALTH_STARTING, "starting", "wait");
    facts.is_over = true;
    expect(&facts, HEALTH_NOT_READY, "stopping", "wait");
    figures_fini(&figures);
}
END_TEST

START_TEST(test_faults)
{
    static const struct {
        int fault;
        const char *words, *advice;
    } rows[] = {
        {ERR_DISK_FULL, "is full, changes are refused", "make room"},
        {ERR_DISK, "the log cannot be written", "look at the disk"},
        {ERR_LOG_FULL, "the disk hangs", "look at the disk"},
        {ERR_DIR_TAKEN, "another server", "stop one"},
        {ERR_FILE_SIZE, "file size limit", "ulimit"},
        {ERR_NO_MEMORY, "out of memory", "log"},
    };
    struct figures figures;
    fill(&figures);
    struct health_facts facts = facts_of(&figures);
    facts.grown.rejected = 5; /* never the first beside these */
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        facts.fault = rows[i].fault;
        expect(&facts, HEALTH_READ_ONLY, rows[i].words, rows[i].advice);
    }
    figures_fini(&figures);
}
END_TEST

START_TEST(test_group)
{
    struct figures figures;
    fill(&figures);
    struct health_facts facts = facts_of(&figures);
    facts.has_groups = true;
    say(&figures, FIGURES_replication,
        STAT("role", "primary") STAT("changes_refused_now", "1")
            STAT("replicas", "0") STAT("min_replicas", "1"));
    expect(&facts, HEALTH_READ_ONLY, "too few replicas", "start the others");
    say(&figures, FIGURES_replication,
        STAT("role", "primary") STAT("replicas", "1") STAT("semi_sync", "2"));
    expect(&facts, HEALTH_READY, "1 replica is connected", "network");
    say(&figures, FIGURES_replication,
        STAT("role", "primary") STAT("replicas", "1"));
    say(&figures, FIGURES_replicas,
        STAT("b", "address=h:1 lag_bytes=9 lag_ms=1501 disk_full=0"));
    expect(&facts, HEALTH_READY, "replica b is 1501 ms behind", "disk");
    say(&figures, FIGURES_replicas,
        STAT("b", "address=h:1 lag_ms=unknown disk_full=1"));
    expect(&facts, HEALTH_READY, "disk of replica b is full", "room");
    say(&figures, FIGURES_replicas,
        STAT("b", "address=h:1 lag_ms=1500 disk_full=0"));
    expect(&facts, HEALTH_READY, NULL, NULL);
    facts.fault = ERR_NOT_PRIMARY;
    say(&figures, FIGURES_replication, STAT("role", "isolated"));
    expect(&facts, HEALTH_READ_ONLY, "isolated", "etcd");
    figures_fini(&figures);
}
END_TEST

START_TEST(test_replica)
{
    struct figures figures;
    fill(&figures);
    struct health_facts facts = facts_of(&figures);
    facts.has_groups = true;
    facts.fault = ERR_NOT_PRIMARY;
    say(&figures, FIGURES_replication,
        STAT("role", "replica") STAT("link_status", "up")
            STAT("staleness_ms", "10") STAT("lag_ms", "3"));
    expect(&facts, HEALTH_READY, NULL, NULL);
    say(&figures, FIGURES_replication,
        STAT("role", "replica") STAT("link_status", "down")
            STAT("primary_address", "db1:1") STAT("link_error", "refused")
                STAT("staleness_ms", "60000"));
    /* old numbers are meant to be shown, unless it was said how old */
    expect(&facts, HEALTH_READY, "primary db1:1: refused", "network");
    facts.stale_ms = 60001;
    expect(&facts, HEALTH_READY, "no link", "network");
    facts.stale_ms = 59999;
    expect(&facts, HEALTH_NOT_READY, "no link", "network");
    say(&figures, FIGURES_replication,
        STAT("role", "replica") STAT("link_status", "down"));
    expect(&facts, HEALTH_NOT_READY, "no link", "network");
    facts.stale_ms = 0;
    say(&figures, FIGURES_replication,
        STAT("role", "syncing") STAT("link_status", "sync"));
    expect(&facts, HEALTH_NOT_READY, "snapshot", "wait");
    say(&figures, FIGURES_replication,
        STAT("role", "replica") STAT("link_status", "up")
            STAT("lag_ms", "1501") STAT("stuck", "term"));
    expect(&facts, HEALTH_READY, "cannot become", "doc");
    figures_fini(&figures);
}
END_TEST

/* One figure a row, above what is let pass, and the same one below. */
START_TEST(test_grown)
{
    static const struct {
        struct health_growing bad, fine;
        const char *words, *advice;
    } rows[] = {
        {{.rejected = 1}, {.rejected = 0}, "limit of connections", "-c"},
        {{.auth_errors = 10}, {.auth_errors = 9}, "10 logins failed", "log"},
        {{.room_waits = 1}, {.room_waits = 0}, "1 calls waited for room",
            "--hot-memory"},
        {{.slow_reads = 10, .reads = 1000}, {.slow_reads = 10, .reads = 1001},
            "10 of 1000 reads", "--cold-cache"},
        {{.slow_reads = 10, .reads = 10}, {.slow_reads = 9, .reads = 9},
            "10 of 10 reads", "--cold-cache"},
        {{.slow_syncs = 10, .syncs = 1000}, {.slow_syncs = 10, .syncs = 1001},
            "10 of 1000 syncs", "disk"},
        {{.slow_syncs = 10, .syncs = 10}, {.slow_syncs = 9, .syncs = 9},
            "10 of 10 syncs", "disk"},
        {{.slow_writes = 10, .writes = 100},
            {.slow_writes = 10, .writes = 101}, "slow to take the log",
            "disk"},
        {{.slow_writes = 10, .writes = 10}, {.slow_writes = 9, .writes = 9},
            "slow to take the log", "disk"},
        {{.changes_unsure = 1}, {.changes_unsure = 0}, "1 changes", "disk"},
        {{.sync_failures = 2}, {.sync_failures = 0}, "2 writes", "disk"},
        {{.read_failures = 1}, {.read_failures = 0}, "1 reads", "disk"},
        {{.checkpoint_failures = 1}, {.checkpoint_failures = 0},
            "1 checkpoint failed", "log"},
        {{.slow_by_lock = 10, .lock_wait_us = 12000000, .uptime_s = 60},
            {.slow_by_lock = 9, .lock_wait_us = 12000000, .uptime_s = 60},
            "10 commands of the last minute were slow since they waited for "
            "the lock of a shard, and so did the workers for 5 %",
            "stats slow"},
        /* a fast import: many wait, and none for long */
        {{.slow_by_lock = 5000, .lock_wait_us = 12000000, .uptime_s = 60},
            {.slow_by_lock = 5000, .lock_wait_us = 11999999, .uptime_s = 60},
            "lock of a shard", "stats slow"},
        {{.seal_failures = 1}, {.seal_failures = 0}, "1 range", "log"},
    };
    struct figures figures;
    fill(&figures);
    struct health_facts facts = facts_of(&figures);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        facts.grown = rows[i].bad;
        expect(&facts, HEALTH_READY, rows[i].words, rows[i].advice);
        facts.grown = rows[i].fine;
        expect(&facts, HEALTH_READY, NULL, NULL);
    }
    figures_fini(&figures);
}
END_TEST

/* The same of what is now. */
START_TEST(test_now)
{
    static const struct {
        enum figures_group group;
        const char *bad, *fine, *words;
    } rows[] = {
        {FIGURES_general,
            STAT("max_connections", "9") STAT("curr_connections", "9"),
            STAT("max_connections", "9") STAT("curr_connections", "8"),
            "9 of -c 9"},
        {FIGURES_memory,
            STAT("hot_limit", "104857600") STAT("hot_used", "94371841"),
            STAT("hot_limit", "104857600") STAT("hot_used", "94371840"),
            "is 90 % full (90 of 100 MiB)"},
        {FIGURES_wal, STAT("unsynced_ms", "2001"), STAT("unsynced_ms", "2000"),
            "slow to take the log"},
        {FIGURES_cold, STAT("queued", "16"), STAT("queued", "15"),
            "16 blocks now"},
        {FIGURES_cold, STAT("damaged", "2"), STAT("damaged", "0"),
            "2 blocks of the cold tier are damaged"},
        {FIGURES_wal, STAT("archive_failing", "1"),
            STAT("archive_failing", "0"), "--wal-archive"},
        {FIGURES_wal, STAT("missing_files", "1"), STAT("missing_files", "0"),
            "1 files of the data directory"},
        {FIGURES_hot,
            STAT("1",
                "key=7 counter=posts gets=600000 changes=400000 "
                "share=0.2500"),
            STAT("1",
                "key=7 counter=posts gets=600000 changes=400000 "
                "share=0.2499"),
            "id 7 of posts has 25 %"},
        {FIGURES_hot,
            STAT("1", "key=7 counter=posts gets=0 changes=1000000 share=0.9"),
            STAT("1", "key=7 counter=posts gets=0 changes=999999 share=0.9"),
            "id 7 of posts has 90 %"},
        {FIGURES_wal, STAT("state", "no data directory"),
            STAT("state", "memory only"), "no data directory"},
    };
    struct figures figures;
    fill(&figures);
    struct health_facts facts = facts_of(&figures);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        say(&figures, rows[i].group, rows[i].bad);
        expect(&facts, HEALTH_READY, rows[i].words, "");
        say(&figures, rows[i].group, rows[i].fine);
        expect(&facts, HEALTH_READY, NULL, NULL);
    }
    figures_fini(&figures);
}
END_TEST

/* What is so for a moment is not told; what is so at each look for
 * HEALTH_HOLD_S is, from then on and until it is over. */
START_TEST(test_moments)
{
    static const struct {
        enum figures_group group;
        const char *bad, *fine, *words;
    } rows[] = {
        {FIGURES_cold, STAT("queued", "16"), STAT("queued", "15"),
            "16 blocks now"},
        {FIGURES_replication, STAT("stuck", "term"), STAT("stuck", "no"),
            "cannot become"},
        {FIGURES_replication, STAT("etcd_unreachable_ms", "1"),
            STAT("etcd_unreachable_ms", "0"), "etcd has been out of reach"},
    };
    struct figures figures;
    fill(&figures);
    struct health_facts facts = facts_of(&figures);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct health_stands stands = {.is_so = {false}};
        facts.stands = &stands;
        for (unsigned s = 0; s < 4 * HEALTH_HOLD_S; s++) {
            /* a look before its time finds that it is over for a moment */
            bool is_over = s == HEALTH_HOLD_S - 1;
            unsigned since = is_over || s < HEALTH_HOLD_S ? 0 : HEALTH_HOLD_S;
            say(&figures, rows[i].group, is_over ? rows[i].fine : rows[i].bad);
            facts.now_s = 1000 + s;
            health_look(&facts, &stands);
            expect(&facts, HEALTH_READY,
                since != 0 && s - since >= HEALTH_HOLD_S ? rows[i].words
                                                         : NULL,
                "");
        }
        say(&figures, rows[i].group, rows[i].fine);
        health_look(&facts, &stands);
        expect(&facts, HEALTH_READY, NULL, NULL);
        facts.stands = NULL;
    }
    figures_fini(&figures);
}
END_TEST

START_TEST(test_counted)
{
    struct figures figures;
    struct health_growing then, now, grown;
    fill(&figures);
    say(&figures, FIGURES_general,
        STAT("auth_errors", "5") STAT("rejected_connections", "70"));
    say(&figures, FIGURES_cold,
        STAT("read_us_below_1024", "7") STAT("read_us_below_131072", "2")
            STAT("read_us_below_262144", "3"));
    health_count(&figures, &then);
    ck_assert_uint_eq(then.reads, 12);
    ck_assert_uint_eq(then.slow_reads, 3);
    say(&figures, FIGURES_general,
        STAT("auth_errors", "8") STAT("rejected_connections", "2"));
    say(&figures, FIGURES_cold, STAT("read_us_below_262144", "4"));
    health_count(&figures, &now);
    health_grown(&now, &then, &grown);
    ck_assert_uint_eq(grown.auth_errors, 3);
    ck_assert_uint_eq(grown.rejected, 2); /* begun anew */
    ck_assert_uint_eq(grown.slow_reads, 1);
    ck_assert_uint_eq(grown.reads, 4);
    figures_fini(&figures);
}
END_TEST

START_TEST(test_past)
{
    struct health_past past = {.n = 0};
    ck_assert_uint_eq(health_past_oldest(&past).writes, 0);
    for (unsigned i = 1; i <= 3 * HEALTH_SAMPLES; i++) {
        struct health_growing now = {.writes = i};
        health_past_add(&past, &now);
        uint64_t oldest = i < HEALTH_SAMPLES ? 0 : i - HEALTH_SAMPLES + 1;
        ck_assert_uint_eq(health_past_oldest(&past).writes, oldest);
    }
}
END_TEST

START_TEST(test_pairs)
{
    struct figures figures = {.text = {{.data = NULL}}};
    struct figures_pair pair;
    char text[4];
    size_t at = 0;
    ck_assert(!figures_next(&figures, FIGURES_wal, &at, &pair));
    say(&figures, FIGURES_wal,
        STAT("ab", "12") STAT("a", "one two") "STAT b\r\nERROR\r\n");
    ck_assert_uint_eq(figures_u64(&figures, FIGURES_wal, "ab"), 12);
    ck_assert_uint_eq(figures_u64(&figures, FIGURES_wal, "a"), 0);
    ck_assert_uint_eq(figures_u64(&figures, FIGURES_cold, "ab"), 0);
    ck_assert(figures_text(&figures, FIGURES_wal, "a", text, sizeof text));
    ck_assert_str_eq(text, "one");
    ck_assert(figures_text(&figures, FIGURES_wal, "b", text, sizeof text));
    ck_assert_str_eq(text, "");
    ck_assert(!figures_text(&figures, FIGURES_wal, "c", text, sizeof text));
    ck_assert_str_eq(text, "");
    figures_fini(&figures);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_states, test_faults, test_group,
        test_replica, test_grown, test_now, test_moments, test_counted,
        test_past, test_pairs};
    return run_tests("health", tests, COUNT_OF(tests));
}
