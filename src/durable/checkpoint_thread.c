/* SPDX-License-Identifier: BSD-3-Clause */
/* The checkpointer's thread. It waits until a pass is due or somebody wants
 * one, makes it, and answers those who wait.
 *
 *   wait_for_work -> do_pass -> answer -+
 *        ^     \--> publish ------------+
 *        +------------------------------+   until it is to end: end_publishing,
 *                                           end_well */
#include "durable/checkpoint_priv.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/give_way.h"
#include "wal/wal_place.h"
#include "wal/wal_refuse.h"

#define NS_PER_S UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)

enum {
    NICE = 10,
    ROUND_MS = 200, /* between looks at the log's size */
    LOOK_MS = 1000, /* between looks whether all files are there */
    US_PER_MS = 1000,
    RETRY_MS = 2000,         /* after a pass that failed, or has not helped */
    LOG_FILES_MORE = 64,     /* than the log's size asks for: each start begins
                          * one */
    LOG_BYTES_MIN = 1 << 20, /* of the log, for less no pass makes room */
    LOG_MS = 1000,   /* for a log that has room again to be written again */
    LOG_LOOK_MS = 10 /* between looks whether it is */
};

bool
checkpoint__is_publish_wanted(struct checkpointer *it)
{
    mutex_lock(&it->lock);
    bool is_wanted = it->is_publish_wanted;
    mutex_unlock(&it->lock);
    return is_wanted;
}

/* True where the last pass has left nothing to do: it came through, and
 * nothing has been logged or sealed since. */
static bool
is_done_already(struct checkpointer *it)
{
    struct durable *durable = it->durable;
    if (checkpoint__is_publish_wanted(it)) {
        return false;
    }
    /* relaxed: figures, stored by this thread */
    uint64_t n = atomic_load_explicit(
        &durable->stats.checkpoints, memory_order_relaxed);
    uint64_t seq = atomic_load_explicit(
        &durable->stats.last_checkpoint_seq, memory_order_relaxed);
    return n > 0 && it->last_err == 0 && !it->is_in_doubt &&
        it->n_missing == 0 && wal_write_fault(durable->wal) == 0 &&
        wal_last(durable->wal) <= seq;
}

/* The pass that came through has made up for all that was missing. */
static void
log_found(struct checkpointer *it)
{
    if (it->n_missing > 0) {
        log_line(it->durable->config.logger, LOG_WARNING,
            "a checkpoint has made up for the files that were removed or "
            "changed");
    }
    it->n_missing = 0;
}

/* When what is. */
struct schedule {
    uint64_t last_ns;       /* the last one ended */
    uint64_t not_before_ns; /* the next one, unless somebody wants it */
    uint64_t look_ns;       /* the next look whether all files are there */
};

static bool
is_log_full(const struct checkpointer *it)
{
    return wal_write_fault(it->durable->wal) == ERR_DISK_FULL;
}

/* A pass begins with a new log file, so not while the log cannot be written.
 * Its thread tries again soon; what comes then would take the room that was
 * given up, so a pass is to begin at once. */
static void
await_log(const struct checkpointer *it)
{
    const struct clock *clock = it->durable->config.clock;
    uint64_t now_ns = clock_now_ns(clock);
    uint64_t end_ns = now_ns + LOG_MS * NS_PER_MS;
    while (now_ns < end_ns && is_log_full(it)) {
        clock_sleep_until(clock, now_ns + LOG_LOOK_MS * NS_PER_MS);
        now_ns = clock_now_ns(clock);
    }
}

/* What comes once the log can be written; a ballast not before, it may be
 * waiting for that room. Where changes are refused for its sake they are taken
 * again once it is there. */
static void
renew_ballast(struct checkpointer *it)
{
    struct durable *durable = it->durable;
    uint64_t now_ns = checkpointer_now_ns(it);
    if (wal_write_fault(durable->wal) != 0) {
        it->wants_ballast = true;
        return;
    }
    if (it->wants_ballast &&
        (durable->is_refusing || now_ns >= it->ballast_ns)) {
        it->wants_ballast =
            durable__keep_ballast(durable, durable->is_refusing) != 0;
        it->ballast_ns = now_ns + RETRY_MS * NS_PER_MS;
        if (!it->wants_ballast) {
            durable__name_log(durable);
        }
    }
    if (durable->is_refusing && !it->wants_ballast) {
        durable__refuse(durable, false);
        log_line(durable->config.logger, LOG_WARNING,
            "there is room on the disk again: changes of counters are taken");
    }
}

/* A pass on a full disk, in the room of the ballast. It may be the log that
 * fills the disk, and then the pass lets it go. Changes are refused meanwhile,
 * and as long as there is no new ballast: they would take its room. */
static int
make_one_in_ballast(struct checkpointer *it)
{
    ASSERT(!it->is_foreign);
    durable__refuse(it->durable, true);
    checkpoint__let_names_go(it);
    it->wants_ballast = true;
    if (durable__drop_ballast(it->durable)) {
        await_log(it);
    }
    int err = checkpoint__run(it);
    renew_ballast(it);
    return err;
}

/* One checkpoint. While the log has room the ballast is left alone, for the log
 * that has none: a pass that needs more than both would take it in vain. */
static int
make_one(struct checkpointer *it)
{
    if (it->is_foreign) {
        return ERR_DIR_TAKEN;
    }
    if (is_done_already(it)) {
        return 0;
    }
    int err = is_log_full(it) ? ERR_DISK_FULL : checkpoint__run(it);
    if (err == ERR_DISK_FULL &&
        (is_log_full(it) || it->durable->is_refusing)) {
        err = make_one_in_ballast(it);
    }
    if (err == 0) {
        log_found(it);
    }
    return err;
}

/* True where the log takes half of the room that it could have: the disk may be
 * smaller than what a log may grow to, and a checkpoint needs room, too. */
static bool
is_filling(const struct durable *durable, const struct wal_stats *stats)
{
    struct disk *disk = durable->disk;
    uint64_t room;
    return stats->live_bytes >= LOG_BYTES_MIN &&
        disk->calls->room(disk, &room) == 0 && stats->live_bytes >= room;
}

bool
checkpoint__is_filling(const struct checkpointer *owner)
{
    struct wal_stats stats;
    wal_stats(owner->durable->wal, &stats);
    return is_log_full(owner) || owner->durable->is_refusing ||
        is_filling(owner->durable, &stats);
}

/* True where the log is long enough, and not only for what the last pass has
 * left of it, which the next one would leave, too. */
static bool
has_log_grown(const struct checkpointer *it, const struct wal_stats *stats)
{
    const struct data_config *config = &it->durable->config;
    uint64_t bytes = config->checkpoint_log_bytes;
    uint64_t files = LOG_FILES_MORE + bytes / config->log_file_bytes;
    bool has_bytes = stats->live_bytes >= bytes &&
        (it->passed_file == 0 || stats->bytes - it->passed_bytes >= bytes);
    bool has_files = stats->file - stats->first_file >= files &&
        stats->file - it->passed_file >= files;
    return has_bytes || has_files;
}

/* True where the log has grown enough, or fills the disk, or the last pass is
 * long enough ago. */
static bool
is_due(const struct checkpointer *checkpointer, uint64_t last_ns)
{
    const struct durable *durable = checkpointer->durable;
    const struct data_config *config = &durable->config;
    struct wal_stats stats;
    wal_stats(durable->wal, &stats);
    if (has_log_grown(checkpointer, &stats) || checkpointer->n_missing > 0 ||
        wal_fault(durable->wal) == ERR_DISK_FULL ||
        is_filling(durable, &stats)) {
        return true;
    }
    /* relaxed: a figure */
    uint64_t seq = atomic_load_explicit(
        &durable->stats.last_checkpoint_seq, memory_order_relaxed);
    return config->checkpoint_ms != 0 && stats.last_seq > seq &&
        checkpointer_now_ns(checkpointer) - last_ns >=
        config->checkpoint_ms * NS_PER_MS;
}

/* True where segments are to be published, and that is not to wait. */
static bool
is_publish_due(const struct checkpointer *it)
{
    mutex_assert_held(&it->lock);
    return it->is_publish_wanted && checkpointer_now_ns(it) >= it->publish_ns;
}

/* Log files that are complete go to the archive. */
static void
feed_archive(struct checkpointer *it)
{
    struct durable_stats *stats = &it->durable->stats;
    struct wal_place place;
    if (it->archive.disk == NULL || it->is_foreign) {
        return;
    }
    wal_place(it->durable->wal, &place);
    if (place.is_calm) {
        archive__up_to(&it->archive, place.number, checkpointer_now_ns(it));
    }
    archive__note_time(&it->archive, it->durable->history, place.seq,
        (uint64_t)clock_unix_us() / US_PER_MS, checkpointer_now_ns(it));
    durable_note(&stats->archived_files, it->archive.n_files);
    durable_note(&stats->archive_failures, it->archive.n_failures);
    durable_note(&stats->archive_failing, it->archive.is_failing);
}

void
checkpoint__forget_log(struct checkpointer *it)
{
    uint64_t number = it->durable->manifest.log_number;
    uint64_t last = number;
    feed_archive(it);
    if (it->archive.disk != NULL && it->archive.next < last) {
        last = it->archive.next;
    }
    bool keeps = checkpoint__keeps_names(it);
    it->owes_log = keeps || last < number;
    if (!keeps) {
        wal_forget(it->durable->wal, last);
    }
}

/* What is looked at between waits. True where a pass is due. */
static bool
look_around(struct checkpointer *it, struct schedule *when)
{
    uint64_t now_ns = checkpointer_now_ns(it);
    renew_ballast(it);
    feed_archive(it);
    if (it->owes_log) {
        checkpoint__forget_log(it);
    }
    if (now_ns >= when->look_ns) {
        when->look_ns = now_ns + LOOK_MS * NS_PER_MS;
        (void)checkpoint__look(it);
    }
    return now_ns >= when->not_before_ns && is_due(it, when->last_ns);
}

/* Waits for a reason to begin a pass, or to publish segments: *is_pass; false
 * when it is time to end. *calls are those who wait for the pass. A pass comes
 * first, so that segments one after the other do not keep it off. */
static bool
wait_for_work(struct checkpointer *it, struct schedule *when,
    struct store_call **calls, bool *is_pass)
{
    bool due = look_around(it, when);
    mutex_lock(&it->lock);
    while (!it->stopping && !it->is_wanted && !due && !is_publish_due(it)) {
        (void)clock_cond_wait(it->durable->config.clock, &it->changed,
            &it->lock, checkpointer_now_ns(it) + ROUND_MS * NS_PER_MS);
        mutex_unlock(&it->lock);
        due = look_around(it, when);
        mutex_lock(&it->lock);
    }
    bool goes_on = !it->stopping || it->is_wanted;
    *is_pass = it->is_wanted || due;
    it->is_asked = it->is_wanted;
    it->is_wanted = false;
    *calls = call_queue_take_all(&it->queue);
    mutex_unlock(&it->lock);
    return goes_on;
}

void
checkpoint__take_publish(struct pass *pass)
{
    struct checkpointer *owner = pass->owner;
    ASSERT(pass->publish == NULL); /* nobody is forgotten */
    mutex_lock(&owner->lock);
    ASSERT(owner->publish == NULL || owner->is_publish_wanted);
    pass->publish = owner->publish;
    pass->is_publish_wanted = owner->is_publish_wanted;
    owner->publish = NULL;
    owner->is_publish_wanted = false;
    mutex_unlock(&owner->lock);
}

void
checkpoint__keep_publish(struct pass *pass)
{
    struct checkpointer *owner = pass->owner;
    ASSERT(pass->publish == NULL || pass->is_publish_wanted);
    mutex_lock(&owner->lock);
    for (struct store_call *call; (call = pass->publish) != NULL;) {
        pass->publish = call->next;
        call->next = owner->publish;
        owner->publish = call;
    }
    if (pass->is_publish_wanted) {
        owner->is_publish_wanted = true;
        owner->publish_ns = checkpointer_now_ns(owner) + RETRY_MS * NS_PER_MS;
    }
    mutex_unlock(&owner->lock);
}

void
checkpoint__answer(struct store_call *call, int err)
{
    while (call != NULL) {
        struct store_call *next = call->next;
        ASSERT(call->done_fn != NULL);
        ((struct store_checkpoint *)call)->err = err;
        call->done_fn(call);
        call = next;
    }
}

/* Of the last checkpoint; 0 where there is none, or the clock was set back. */
static uint64_t
age_ns(const struct manifest *manifest)
{
    uint64_t now_s = (uint64_t)clock_unix_s();
    return manifest->checkpoint_time == 0 || now_s < manifest->checkpoint_time
        ? 0
        : (now_s - manifest->checkpoint_time) * NS_PER_S;
}

/* At a stop that needs no checkpoint: unless a start would miss something, or
 * the log has no room to end in. */
static void
end_well(struct checkpointer *it)
{
    if (!checkpoint__look(it) && !is_log_full(it)) {
        return;
    }
    mutex_lock(&it->lock);
    it->is_urgent = true;
    mutex_unlock(&it->lock);
    it->last_err = make_one(it);
}

/* A pass, and when the next one may be. */
static void
do_pass(struct checkpointer *it, struct schedule *when)
{
    (void)checkpoint__look(it);
    int err = make_one(it);
    when->last_ns = checkpointer_now_ns(it);
    when->look_ns = when->last_ns + LOOK_MS * NS_PER_MS;
    /* also where it has not helped: a file that does not go */
    bool waits = err != 0 || is_due(it, when->last_ns);
    when->not_before_ns = waits ? when->last_ns + RETRY_MS * NS_PER_MS : 0;
    it->last_err = err;
}

/* The segments that are in no manifest yet: one try, for without it nothing is
 * lost. */
static void
end_publishing(struct checkpointer *it)
{
    struct pass rest = {.owner = it};
    if (checkpoint__is_publish_wanted(it) &&
        wal_fault(it->durable->wal) == 0) {
        (void)checkpoint__publish(it);
    }
    checkpoint__take_publish(&rest);
    checkpoint__answer(rest.publish, ERR_CLOSED);
    checkpoint__hand_over(it, ERR_CLOSED);
}

static void *
run(void *arg)
{
    struct checkpointer *it = arg;
    struct store_call *calls = NULL;
    uint64_t now_ns = checkpointer_now_ns(it);
    struct schedule when = {
        .last_ns = now_ns - age_ns(&it->durable->manifest), .look_ns = now_ns};
    bool is_pass;
    ASSERT(it->magic == CHECKPOINTER_MAGIC);
    archive__begin(&it->archive, it->durable->config.archive,
        it->durable->disk, it->durable->config.logger,
        it->durable->manifest.log_number);
    give_way_begin(NICE); /* lower than the workers */
    while (wait_for_work(it, &when, &calls, &is_pass)) {
        if (!is_pass) {
            (void)checkpoint__publish(it);
            continue;
        }
        do_pass(it, &when);
        checkpoint__answer(calls, checkpoint__reply(it, it->last_err));
        calls = NULL;
    }
    checkpoint__answer(calls, ERR_CLOSED);
    end_publishing(it);
    end_well(it);
    return NULL;
}

int
checkpointer_start(struct checkpointer *checkpointer, struct durable *durable,
    _Atomic(const struct schema *) *schema)
{
    ASSERT(durable->magic == DURABLE_MAGIC && durable->wal != NULL);
    *checkpointer = (struct checkpointer){.magic = CHECKPOINTER_MAGIC,
        .durable = durable,
        .schema = schema,
        .is_in_doubt = true,
        .wants_ballast = true};
    mutex_init(&checkpointer->lock);
    clock_cond_init(&checkpointer->changed);
    if (pthread_create(&checkpointer->thread, NULL, run, checkpointer) != 0) {
        pthread_cond_destroy(&checkpointer->changed);
        mutex_fini(&checkpointer->lock);
        checkpointer->magic = 0;
        return ERR_NO_THREAD;
    }
    return 0;
}

void
checkpointer_end(struct checkpointer *checkpointer, bool at_end)
{
    ASSERT(checkpointer->magic == CHECKPOINTER_MAGIC);
    mutex_lock(&checkpointer->lock);
    if (!checkpointer->stopping) {
        checkpointer->stopping = true;
        checkpointer->is_urgent = at_end;
        checkpointer->is_wanted |= at_end;
    }
    pthread_cond_signal(&checkpointer->changed);
    mutex_unlock(&checkpointer->lock);
}

int
checkpointer_stop(struct checkpointer *checkpointer, bool at_end)
{
    checkpointer_end(checkpointer, at_end);
    pthread_join(checkpointer->thread, NULL);
    ASSERT(checkpointer->publish == NULL); /* all were answered */
    for (unsigned i = 0; i < CHECKPOINTER_SNAPSHOTS; i++) {
        ASSERT(checkpointer->snapshot[i] == NULL); /* and it was closed */
    }
    checkpointer->magic = 0;
    pthread_cond_destroy(&checkpointer->changed);
    mutex_fini(&checkpointer->lock);
    for (int kind = 0; kind < OWN_KINDS; kind++) {
        own_files_fini(&checkpointer->own[kind]);
    }
    return at_end || checkpointer->n_missing > 0 ? checkpointer->last_err : 0;
}

/* False at a stop: *checkpoint (NULL: nobody waits) has been answered then. */
static bool
is_taken(struct checkpointer *it, struct store_checkpoint *checkpoint)
{
    mutex_assert_held(&it->lock);
    ASSERT(it->magic == CHECKPOINTER_MAGIC);
    if (!it->stopping) {
        return true;
    }
    mutex_unlock(&it->lock);
    if (checkpoint != NULL) {
        checkpoint->err = ERR_CLOSED;
        checkpoint->call.done_fn(&checkpoint->call);
    }
    return false;
}

void
checkpointer_want(
    struct checkpointer *checkpointer, struct store_checkpoint *checkpoint)
{
    mutex_lock(&checkpointer->lock);
    if (!is_taken(checkpointer, checkpoint)) {
        return;
    }
    checkpointer->is_wanted = true;
    if (checkpoint != NULL) {
        call_queue_add(&checkpointer->queue, &checkpoint->call);
    }
    pthread_cond_signal(&checkpointer->changed);
    mutex_unlock(&checkpointer->lock);
}

void
checkpointer_want_segments(
    struct checkpointer *checkpointer, struct store_checkpoint *checkpoint)
{
    mutex_lock(&checkpointer->lock);
    if (!is_taken(checkpointer, checkpoint)) {
        return;
    }
    checkpointer->is_publish_wanted = true;
    if (checkpoint != NULL) {
        checkpoint->call.next = checkpointer->publish;
        checkpointer->publish = &checkpoint->call;
    }
    pthread_cond_signal(&checkpointer->changed);
    mutex_unlock(&checkpointer->lock);
}
