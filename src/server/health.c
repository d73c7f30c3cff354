/* SPDX-License-Identifier: BSD-3-Clause */
/* What is wrong, worst first. The order is that of the table `looks`: first why
 * changes or reads are refused, then what will lead to it, then what makes
 * clients wait, then who tries what he may not. Each look adds one line or
 * none, and a line says first what is, with the figures that say so, and behind
 * a semicolon what to do.
 *
 * Where a threshold is not a setting of the server or of one of its layers, the
 * reason stands beside it. */
#include "server/health.h"

#include "base/assert.h"
#include "base/err.h"
#include "base/num.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WORD_BYTES = 192,
    PERCENT = 100,
    MIB = 1 << 20,
    /* The sealer frees most from there on (tier/sealer.c): it has not kept up
     * with what comes in. */
    HOT_FULL_PERCENT = 90,
    /* Who mistypes a password does so a few times; a program that has an old
     * one, or one that guesses, goes on. */
    STORM_LOGINS = 10,
    /* One in so many makes the 99th percentile what it is. */
    SLOW_SHARE = 100,
    /* Fewer slow ones in a minute may be a core that was taken from who waited:
     * of a server that does little, one would be a large share. */
    SLOW_LEAST = 10,
    /* Likewise, from who had the lock; and where many write at once some wait
     * for each other now and then. One in twenty seconds of the workers is a
     * core of a large machine. */
    LOCK_WAITS = 10,
    LOCK_SHARE_PERCENT = 5,
    /* An id that has a quarter of all that is done is more than half of what
     * its shard does, with 16 shards. What was counted is halved each 10 s
     * (stats/hot.h), so this is a server with 50,000 uses a second and more:
     * one that does less has no trouble with such an id. */
    HOT_SHARE_PERCENT = 25,
    HOT_USES = 1000000,
    /* A write that takes long now and then is the machine's; one in ten is
     * the disk's. */
    SLOW_WRITE_SHARE = 10,
    /* No sync has ended for so long: the log calls it hung (wal/wal.h). */
    STUCK_MS = 1000,
    US_PER_MS = 1000,
    US_PER_S = 1000000
};

const char *
health_word(enum health_state state)
{
    static const char *const words[] = {
#define X(name, word, text) [HEALTH_##name] = (word),
        HEALTH_STATES(X)
#undef X
    };
    return words[state];
}

bool
health_is_ready(const struct health *health)
{
    return health->state == HEALTH_READY;
}

/* ---- what grows ---- */

/* Sums what a histogram has; its names end in what all are below. */
static void
count_slow(const struct figures *figures, enum figures_group group,
    const char *begin, uint64_t *all, uint64_t *slow)
{
    struct figures_pair pair;
    size_t at = 0, len = strlen(begin);
    *all = *slow = 0;
    while (figures_next(figures, group, &at, &pair)) {
        if (pair.name_len > len && memcmp(pair.name, begin, len) == 0) {
            /* each ends before a space or the end of the line */
            uint64_t below = strtoull(pair.name + len, NULL, 10);
            uint64_t n = strtoull(pair.value, NULL, 10);
            *all += n;
            *slow += below > HEALTH_SLOW_US ? n : 0;
        }
    }
}

void
health_count(const struct figures *figures, struct health_growing *out)
{
#define X(field, group, name)                                                 \
    out->field = figures_u64(figures, FIGURES_##group, name);
    HEALTH_GROWING(X)
#undef X
#define X(field, group, name)                                                 \
    count_slow(                                                               \
        figures, FIGURES_##group, name, &out->field, &out->slow_##field);
    HEALTH_HISTOGRAMS(X)
#undef X
}

static uint64_t
more_than(uint64_t now, uint64_t then)
{
    return now >= then ? now - then : now;
}

void
health_grown(const struct health_growing *now,
    const struct health_growing *then, struct health_growing *out)
{
#define X(field, group, name) out->field = more_than(now->field, then->field);
    HEALTH_GROWING(X)
    HEALTH_HISTOGRAMS(X)
#undef X
#define X(field, group, name)                                                 \
    out->slow_##field = more_than(now->slow_##field, then->slow_##field);
    HEALTH_HISTOGRAMS(X)
#undef X
}

void
health_past_add(struct health_past *past, const struct health_growing *now)
{
    ASSERT(past->n <= HEALTH_SAMPLES && past->next < HEALTH_SAMPLES);
    past->sample[past->next] = *now;
    past->next = (past->next + 1) % HEALTH_SAMPLES;
    past->n += past->n < HEALTH_SAMPLES;
}

struct health_growing
health_past_oldest(const struct health_past *past)
{
    const struct health_growing none = {.writes = 0};
    return past->n < HEALTH_SAMPLES ? none : past->sample[past->next];
}

/* ---- looks ---- */

static void add(struct health *health, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* What finds no place is less than all that has one. */
static void
add(struct health *health, const char *format, ...)
{
    va_list args;
    if (health->n < HEALTH_PROBLEMS_MAX) {
        va_start(args, format);
        (void)vsnprintf(
            health->problem[health->n], HEALTH_TEXT_BYTES, format, args);
        va_end(args);
        health->n++;
    }
}

static uint64_t
number(
    const struct health_facts *f, enum figures_group group, const char *name)
{
    return figures_u64(f->now, group, name);
}

static void
text(const struct health_facts *f, enum figures_group group, const char *name,
    char out[WORD_BYTES])
{
    (void)figures_text(f->now, group, name, out, WORD_BYTES);
}

static bool
is_text(const struct health_facts *f, enum figures_group group,
    const char *name, const char *wanted)
{
    char found[WORD_BYTES];
    return figures_text(f->now, group, name, found, sizeof found) &&
        strcmp(found, wanted) == 0;
}

/* Why changes are refused. */
static void
look_at_fault(const struct health_facts *f, struct health *health)
{
    switch (f->fault) {
    case 0:
    case ERR_LOADING:
    case ERR_NOT_PRIMARY: /* what a replica is for */
    case ERR_FEW_REPLICAS:
    case ERR_NO_PRIMARY: /* the next look */
        return;
    case ERR_DISK_FULL:
        add(health,
            "the disk of the data directory is full, changes are refused; "
            "make room there: they are taken again by themselves");
        return;
    case ERR_FILE_SIZE:
        add(health,
            "a file size limit is reached, changes are refused; raise ulimit "
            "-f of the server, and start it anew");
        return;
    case ERR_DISK:
        add(health,
            "the log cannot be written, changes are refused; look at the disk "
            "(the server's log, dmesg): they are taken again once it can");
        return;
    case ERR_LOG_FULL:
        add(health,
            "the disk hangs, and no change is taken until it has caught up: "
            "%" PRIu64 " bytes wait; look at the disk",
            number(f, FIGURES_wal, "unsynced_bytes"));
        return;
    case ERR_DIR_TAKEN:
        add(health,
            "another server has the data directory, changes are refused; stop "
            "one of the two, see doc/incidents.md");
        return;
    default:
        add(health, "changes are refused: %s; see the server's log",
            err_text(f->fault));
    }
}

static void
look_at_group(const struct health_facts *f, struct health *health)
{
    if (is_text(f, FIGURES_replication, "role", "isolated")) {
        add(health,
            "this primary is isolated and refuses changes: it may no longer "
            "lead; look at etcd and at the network to the other servers");
    } else if (number(f, FIGURES_replication, "changes_refused_now") != 0) {
        add(health,
            "too few replicas, changes are refused: %" PRIu64
            " are connected, --min-replicas-to-write is %" PRIu64
            "; start the others, or look at the network to them",
            number(f, FIGURES_replication, "replicas"),
            number(f, FIGURES_replication, "min_replicas"));
    }
}

static bool
is_stuck(const struct health_facts *f)
{
    char word[WORD_BYTES];
    text(f, FIGURES_replication, "stuck", word);
    return word[0] != '\0' && strcmp(word, "no") != 0;
}

static bool
is_cold_queued(const struct health_facts *f)
{
    /* who comes now waits for two reads */
    return number(f, FIGURES_cold, "queued") >= f->cold_threads;
}

static bool
is_etcd_away(const struct health_facts *f)
{
    return number(f, FIGURES_replication, "etcd_unreachable_ms") > 0;
}

static bool (*const moments[])(const struct health_facts *) = {
    [HEALTH_MOMENT_cold_queue] = is_cold_queued,
    [HEALTH_MOMENT_stuck] = is_stuck,
    [HEALTH_MOMENT_etcd_away] = is_etcd_away,
};

void
health_look(const struct health_facts *f, struct health_stands *stands)
{
    for (unsigned i = 0; i < HEALTH_MOMENTS_COUNT; i++) {
        bool is_so = moments[i](f);
        if (is_so && !stands->is_so[i]) {
            stands->since_s[i] = f->now_s;
        }
        stands->is_so[i] = is_so;
    }
}

/* It is so, and has been for a while. */
static bool
has_stood(const struct health_facts *f, enum health_moment moment)
{
    if (f->stands == NULL) {
        return moments[moment](f);
    }
    ASSERT(f->now_s >= f->stands->since_s[moment]);
    return f->stands->is_so[moment] &&
        f->now_s - f->stands->since_s[moment] >= HEALTH_HOLD_S;
}

static void
look_at_stuck(const struct health_facts *f, struct health *health)
{
    char word[WORD_BYTES];
    text(f, FIGURES_replication, "stuck", word);
    if (has_stood(f, HEALTH_MOMENT_stuck)) {
        add(health,
            "this server cannot become a primary or follow one: %s; see "
            "`stuck` in doc/replication.md",
            word);
    }
    uint64_t silent_ms = number(f, FIGURES_replication, "etcd_unreachable_ms");
    if (has_stood(f, HEALTH_MOMENT_etcd_away)) {
        add(health,
            "etcd has been out of reach for %" PRIu64
            " ms; look at etcd: without it nobody can take over",
            silent_ms);
    }
}

/* The primary as a replica sees it. */
static void
look_at_link(const struct health_facts *f, struct health *health)
{
    char role[WORD_BYTES], link[WORD_BYTES], why[WORD_BYTES], to[WORD_BYTES];
    text(f, FIGURES_replication, "role", role);
    text(f, FIGURES_replication, "link_status", link);
    text(f, FIGURES_replication, "link_error", why);
    text(f, FIGURES_replication, "primary_address", to);
    uint64_t lag_ms = number(f, FIGURES_replication, "lag_ms");
    if (strcmp(role, "syncing") == 0 || strcmp(link, "sync") == 0) {
        add(health,
            "this replica takes a snapshot of the primary %s; wait, `stats "
            "replication` says how far it is",
            to);
    } else if (strcmp(link, "down") == 0) {
        add(health,
            "no link to the primary %s%s%s, this replica shows what it had; "
            "look at the primary and at the network",
            to, why[0] == '\0' ? "" : ": ", why);
    } else if (lag_ms > f->max_lag_ms) {
        add(health,
            "this replica is %" PRIu64
            " ms behind the primary; look at its disk and its processors",
            lag_ms);
    }
}

static bool
has_flag(const struct figures_pair *pair, const char *flag)
{
    return memmem(pair->value, pair->value_len, flag, strlen(flag)) != NULL;
}

/* The replicas as their primary sees them. */
static void
look_at_replicas(const struct health_facts *f, struct health *health)
{
    static const char lag[] = " lag_ms=";
    struct figures_pair pair;
    size_t at = 0;
    uint64_t n = number(f, FIGURES_replication, "replicas");
    uint64_t wanted = number(f, FIGURES_replication, "semi_sync");
    bool leads = is_text(f, FIGURES_replication, "role", "primary");
    if (leads && n < wanted) {
        add(health,
            "%" PRIu64 " replica%s connected, and --semi-sync is %" PRIu64
            ": changes wait and are answered as of unknown outcome; start the "
            "others, or look at the network to them",
            n, n == 1 ? " is" : "s are", wanted);
    }
    while (figures_next(f->now, FIGURES_replicas, &at, &pair)) {
        const char *found =
            memmem(pair.value, pair.value_len, lag, sizeof lag - 1);
        uint64_t ms =
            found == NULL ? 0 : strtoull(found + sizeof lag - 1, NULL, 10);
        if (has_flag(&pair, " disk_full=1")) {
            add(health, "the disk of replica %.*s is full; make room there",
                (int)pair.name_len, pair.name);
        } else if (ms > f->max_lag_ms) {
            add(health,
                "replica %.*s is %" PRIu64
                " ms behind; look at its disk and at the network to it",
                (int)pair.name_len, pair.name, ms);
        }
    }
}

static void
look_at_files(const struct health_facts *f, struct health *health)
{
    uint64_t damaged = number(f, FIGURES_cold, "damaged");
    uint64_t missing = number(f, FIGURES_wal, "missing_files");
    if (is_text(f, FIGURES_wal, "state", err_text(ERR_NO_DATA_DIR))) {
        add(health,
            "there is no data directory, counters are refused; give --data");
    }
    if (damaged > 0) {
        add(health,
            "%" PRIu64 " blocks of the cold tier are damaged; stop the server "
            "and see --check and --salvage, or take a backup or a replica",
            damaged);
    }
    if (missing > 0) {
        add(health,
            "%" PRIu64 " files of the data directory were removed or changed "
            "by others; find out by whom, and make a checkpoint (SIGUSR2)",
            missing);
    }
    if (number(f, FIGURES_wal, "archive_failing") > 0) {
        add(health,
            "a log file cannot be copied to --wal-archive, and the log grows "
            "until it can; look at the archive's disk and the server's log");
    }
    if (f->grown.read_failures > 0) {
        add(health,
            "%" PRIu64 " reads of the cold tier failed in the last minute; "
            "look at the disk (the server's log, dmesg)",
            f->grown.read_failures);
    }
}

static void
look_at_memory(const struct health_facts *f, struct health *health)
{
    uint64_t used = number(f, FIGURES_memory, "hot_used");
    uint64_t limit = number(f, FIGURES_memory, "hot_limit");
    uint64_t waits = f->grown.room_waits;
    bool is_full = limit > 0 && used > limit / PERCENT * HOT_FULL_PERCENT;
    if (is_full || waits > 0) {
        add(health,
            "the memory for counters is %" PRIu64 " %% full (%" PRIu64
            " of %" PRIu64 " MiB), and %" PRIu64
            " calls waited for room in the last minute; give more "
            "--hot-memory, or let counters become cold (cold=)",
            limit == 0 ? 0 : used * PERCENT / limit, used / MIB, limit / MIB,
            waits);
    }
}

/* True where one in share of all was slow, or more. */
static bool
are_slow(uint64_t slow, uint64_t all, unsigned share)
{
    return slow >= SLOW_LEAST && slow * share >= all;
}

static void
look_at_sync(const struct health_facts *f, struct health *health)
{
    uint64_t waits_ms = number(f, FIGURES_wal, "unsynced_ms");
    const struct health_growing *grown = &f->grown;
    bool is_slow = are_slow(grown->slow_syncs, grown->syncs, SLOW_SHARE) ||
        are_slow(grown->slow_writes, grown->writes, SLOW_WRITE_SHARE);
    if (grown->sync_failures > 0 && f->fault == 0) {
        add(health,
            "%" PRIu64 " writes or syncs of the log failed in the last "
            "minute; look at the disk (the server's log, dmesg)",
            grown->sync_failures);
    }
    if (f->fault == 0 &&
        (is_slow || grown->changes_unsure + grown->reads_unsure > 0 ||
            waits_ms > f->interval_ms + STUCK_MS)) {
        add(health,
            "the disk or the replicas are slow to take the log: in the last "
            "minute %" PRIu64 " of %" PRIu64 " syncs took over %" PRIu64
            " ms, %" PRIu64 " changes and %" PRIu64
            " reads were not committed in time; look at who else uses the "
            "disk",
            grown->slow_syncs, grown->syncs, HEALTH_SLOW_US / US_PER_MS,
            grown->changes_unsure, grown->reads_unsure);
    }
}

static void
look_at_cold(const struct health_facts *f, struct health *health)
{
    uint64_t queued = number(f, FIGURES_cold, "queued");
    const struct health_growing *grown = &f->grown;
    bool is_slow = are_slow(grown->slow_reads, grown->reads, SLOW_SHARE);
    if (is_slow || has_stood(f, HEALTH_MOMENT_cold_queue)) {
        add(health,
            "reads of the cold tier wait: %" PRIu64 " blocks now, and %" PRIu64
            " of %" PRIu64 " reads of the last minute took over %" PRIu64
            " ms; give more --hot-memory or --cold-cache, or a faster disk",
            queued, grown->slow_reads, grown->reads,
            HEALTH_SLOW_US / US_PER_MS);
    }
}

static void
look_at_work(const struct health_facts *f, struct health *health)
{
    if (f->grown.checkpoint_failures > 0) {
        add(health,
            "%" PRIu64 " checkpoint%s failed in the last minute, the log "
            "grows; see the server's log",
            f->grown.checkpoint_failures,
            num_plural(f->grown.checkpoint_failures));
    }
    if (f->grown.seal_failures > 0) {
        add(health,
            "%" PRIu64 " range%s could not be written to the cold tier in the "
            "last minute; see the server's log",
            f->grown.seal_failures, num_plural(f->grown.seal_failures));
    }
}

static void
look_at_clients(const struct health_facts *f, struct health *health)
{
    uint64_t current = number(f, FIGURES_general, "curr_connections");
    uint64_t most = number(f, FIGURES_general, "max_connections");
    if (f->grown.rejected > 0 || (most > 0 && current >= most)) {
        add(health,
            "the limit of connections is reached: %" PRIu64 " of -c %" PRIu64
            ", %" PRIu64
            " refused in the last minute; see stats conns for who has them, "
            "or give a higher -c",
            current, most, f->grown.rejected);
    }
    if (f->grown.auth_errors >= STORM_LOGINS) {
        add(health,
            "%" PRIu64 " logins failed in the last minute; the server's log "
            "names the addresses: a client has an old password, or somebody "
            "guesses",
            f->grown.auth_errors);
    }
}

/* The first of `stats hot`: "key=7 counter=posts gets=1 changes=2
 * share=0.25". */
struct hottest {
    char key[WORD_BYTES], counter[WORD_BYTES];
    uint64_t uses;
    double share;
};

/* What follows name in a value, up to a space. */
static void
word_of(const char *value, const char *name, char out[WORD_BYTES])
{
    const char *found = strstr(value, name);
    size_t len = 0;
    if (found != NULL) {
        found += strlen(name);
        len = strcspn(found, " ");
        len = len < WORD_BYTES ? len : WORD_BYTES - 1;
        memcpy(out, found, len);
    }
    out[len] = '\0';
}

/* False where none is told, or too little was done to know. */
static bool
find_hottest(const struct health_facts *f, struct hottest *out)
{
    char value[WORD_BYTES], word[WORD_BYTES];
    text(f, FIGURES_hot, "1", value);
    word_of(value, "key=", out->key);
    word_of(value, "counter=", out->counter);
    word_of(value, "gets=", word);
    out->uses = strtoull(word, NULL, 10);
    word_of(value, "changes=", word);
    out->uses += strtoull(word, NULL, 10);
    word_of(value, "share=", word);
    out->share = strtod(word, NULL);
    return out->share > 0 && out->uses >= HOT_USES;
}

/* Percent of the workers' time that they waited for locks of shards. */
static uint64_t
lock_percent(const struct health_facts *f)
{
    uint64_t threads = number(f, FIGURES_general, "threads");
    uint64_t all_us = f->grown.uptime_s * US_PER_S * threads;
    return all_us == 0 ? 0 : f->grown.lock_wait_us * PERCENT / all_us;
}

/* Who holds up others by what he asks for. */
static void
look_at_locks(const struct health_facts *f, struct health *health)
{
    struct hottest hottest;
    bool is_known = find_hottest(f, &hottest);
    bool is_hot = is_known && hottest.share * PERCENT >= HOT_SHARE_PERCENT;
    if (is_hot) {
        add(health,
            "id %s of %s has %.0f %% of all gets and changes; see stats hot "
            "and stats slow for who asks, merge changes at the client, or "
            "cache it there",
            hottest.key, hottest.counter, hottest.share * PERCENT);
    }
    uint64_t percent = lock_percent(f);
    if (f->grown.slow_by_lock >= LOCK_WAITS && percent >= LOCK_SHARE_PERCENT) {
        add(health,
            "%" PRIu64
            " commands of the last minute were slow since they waited for "
            "the lock of a shard, and so did the workers for %" PRIu64
            " %% of their time; see stats slow for whose, smaller batches of "
            "changes or more --shards help",
            f->grown.slow_by_lock, percent);
    }
}

static void (*const looks[])(const struct health_facts *, struct health *) = {
    look_at_fault,
    look_at_group,
    look_at_stuck,
    look_at_files,
    look_at_link,
    look_at_replicas,
    look_at_memory,
    look_at_sync,
    look_at_cold,
    look_at_clients,
    look_at_locks,
    look_at_work,
};

/* ---- the state ---- */

static void
judge_loading(const struct health_facts *f, struct health *health)
{
    uint64_t all = number(f, FIGURES_wal, "load_all_bytes");
    uint64_t done = number(f, FIGURES_wal, "load_done_bytes");
    bool is_log = number(f, FIGURES_wal, "load_is_log") != 0;
    done = done < all ? done : all;
    health->state = HEALTH_LOADING;
    health->percent =
        all == 0 ? 0 : (unsigned)((double)done / (double)all * PERCENT);
    add(health,
        "loading: %u %% of the %s (%" PRIu64 " of %" PRIu64
        " MiB); wait: counters are served as soon as that is done",
        health->percent, is_log ? "log" : "checkpoint", done / MIB, all / MIB);
}

/* True where gets of counters are refused since they would show what is old, or
 * the first snapshot is still on its way. */
static bool
is_stale(const struct health_facts *f)
{
    char known[WORD_BYTES];
    bool has_link = is_text(f, FIGURES_replication, "link_status", "up");
    if (is_text(f, FIGURES_replication, "link_status", "sync")) {
        return true;
    }
    if (f->stale_ms == 0) { /* refuse none, however old */
        return false;
    }
    text(f, FIGURES_replication, "staleness_ms", known);
    return known[0] == '\0' ? !has_link
                            : strtoull(known, NULL, 10) > f->stale_ms;
}

static enum health_state
state_of(const struct health_facts *f)
{
    if (f->fault == 0) {
        return number(f, FIGURES_replication, "changes_refused_now") != 0
            ? HEALTH_READ_ONLY
            : HEALTH_READY;
    }
    if (f->fault == ERR_NOT_PRIMARY && f->has_groups &&
        !is_text(f, FIGURES_replication, "role", "isolated")) {
        return is_stale(f) ? HEALTH_NOT_READY : HEALTH_READY;
    }
    return HEALTH_READ_ONLY;
}

void
health_judge(const struct health_facts *f, struct health *out)
{
    *out = (struct health){.state = HEALTH_STARTING};
    if (!f->is_open) {
        out->state = f->is_over ? HEALTH_NOT_READY : HEALTH_STARTING;
        add(out,
            f->is_over
                ? "the server is stopping, or loads its directory anew; wait"
                : "the server is starting; wait");
        return;
    }
    if (f->fault == ERR_LOADING) {
        judge_loading(f, out);
        return;
    }
    out->state = state_of(f);
    for (size_t i = 0; i < sizeof looks / sizeof looks[0]; i++) {
        looks[i](f, out);
    }
}
