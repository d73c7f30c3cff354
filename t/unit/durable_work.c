/* SPDX-License-Identifier: BSD-3-Clause */
/* What the one client of unit/durable_help.h does, and how a machine stops
 * under it. */
#include "unit/durable_help.h"

#include "wal/manifest.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

enum {
    NAMES = 4,   /* of counters, and of columns in each */
    DIE_MAX = 60 /* a start makes fewer calls that change something */
};

static uint64_t
below(struct rig *rig, uint64_t n)
{
    return random_below(&rig->random, n);
}

/* ---- the rig ---- */

static void
told(struct store_listener *listener)
{
    struct rig *rig =
        (struct rig *)((char *)listener - offsetof(struct rig, listener));
    mutex_lock(&rig->lock);
    rig->n_told++;
    pthread_cond_broadcast(&rig->told);
    mutex_unlock(&rig->lock);
}

static void
has_loaded(void *context, int err)
{
    struct rig *rig = context;
    rig->load_err = err;
    (void)sem_post(&rig->loaded);
}

void
rig_init(
    struct rig *rig, enum wal_sync sync, enum id_family family, uint64_t seed)
{
    uint64_t id[RIG_IDS];
    *rig = (struct rig){.fake = fake_disk_create(seed),
        .random = seed,
        .config = {.shards = 4,
            .seed = seed,
            .hot_bytes = ENGINE_HOT_BYTES_MIN,
            .table_records_max = 64,
            .items = {.limit_bytes = SMALL_STORE_BYTES,
                .item_bytes_max = SMALL_STORE_ITEM_BYTES,
                .seed = SMALL_STORE_SEED}},
        .data = {.dir = {.dir_fd = -1, .lock_fd = -1},
            .sync = sync,
            .interval_ms = 1000,
            .log_file_bytes = WAL_FILE_BYTES_MIN,
            .unsynced_bytes_max = 1 << 20,
            .retry_ms = 1,
            .tidy = &never,
            .idle_ms = 1 << 30, /* no marks, unless wanted */
            .checkpoint_log_bytes = UINT64_MAX,
            .checkpoint_step_bytes = 700,
            .checkpoint_file_bytes = 2000,
            .cold_threads = 2,
            .cold_io = seed % 2 == 0 ? COLD_IO_AUTO : COLD_IO_POOL,
            .cold_cache_bytes = 1 << 20,
            .cold_level = 1,
            .threads = 2,
            .loaded_fn = has_loaded}};
    rig->data.disk = fake_disk_as_disk(rig->fake);
    rig->data.logger = &rig->logger;
    rig->data.context = rig;
    rig->config.data = &rig->data;
    rig->listener.moved_fn = told;
    mutex_init(&rig->lock);
    pthread_cond_init(&rig->told, NULL);
    ck_assert_int_eq(sem_init(&rig->loaded, 0, 0), 0);
    id_family_make(family, seed, RIG_IDS, id);
    answered_init(&rig->history, id, RIG_IDS);
}

void
rig_fini(struct rig *rig)
{
    answered_fini(&rig->history);
    fake_disk_destroy(&rig->fake);
    pthread_cond_destroy(&rig->told);
    mutex_fini(&rig->lock);
    (void)sem_destroy(&rig->loaded);
}

int
rig_open(struct rig *rig)
{
    (void)fake_disk_events(rig->fake, &rig->first_event);
    int err = store_create(&rig->config, &rig->store);
    if (err != 0) {
        return err;
    }
    while (sem_wait(&rig->loaded) != 0) {
    }
    if (rig->load_err != 0) {
        (void)store_destroy(&rig->store);
        return rig->load_err;
    }
    store_begin(rig->store);
    (void)store_ring_open(rig->store, &rig->ring);
    store_listen(rig->store, &rig->listener);
    return 0;
}

int
rig_close(struct rig *rig)
{
    store_unlisten(rig->store, &rig->listener);
    store_ring_close(&rig->ring);
    int err = store_destroy(&rig->store);
    (void)rig_seal_wait(rig);
    return err;
}

struct stat_wanted {
    const char *name;
    uint64_t value;
};

static void
note_stat(void *context, const char *name, const char *value)
{
    struct stat_wanted *stat = context;
    if (strcmp(name, stat->name) == 0) {
        stat->value = strtoull(value, NULL, 10);
    }
}

uint64_t
rig_stat(struct rig *rig, const char *name)
{
    struct stat_wanted stat = {.name = name, .value = UINT64_MAX};
    store_data_stats(rig->store, note_stat, &stat);
    ck_assert_uint_ne(stat.value, UINT64_MAX);
    return stat.value;
}

enum store_commit
rig_commit(struct rig *rig, uint64_t seq)
{
    enum store_commit outcome = store_commit(rig->store, seq);
    while (outcome == STORE_COMMIT_WAITS) {
        mutex_lock(&rig->lock);
        unsigned n_told = rig->n_told;
        mutex_unlock(&rig->lock);
        outcome = store_outcome(rig->store, seq);
        mutex_lock(&rig->lock);
        while (outcome == STORE_COMMIT_WAITS && rig->n_told == n_told) {
            mutex_wait(&rig->lock, &rig->told);
        }
        mutex_unlock(&rig->lock);
    }
    return outcome;
}

void
rig_wait_writable(struct rig *rig)
{
    mutex_lock(&rig->lock);
    while (store_fault(rig->store) != 0) {
        mutex_wait(&rig->lock, &rig->told);
    }
    mutex_unlock(&rig->lock);
}

void
rig_take_clock(struct rig *rig)
{
    fake_clock_init(&rig->clock);
    rig->config.clock = &rig->clock.clock;
}

/* Waits for the answer; where that is in vain, a second or so a
 * millisecond. */
static void
wait_answer(struct rig *rig, struct answer *answer)
{
    enum { LOOK_NS = 200000, PASS_MS = 200 };
    while (rig->is_in_vain && sem_trywait(&answer->come) != 0) {
        fake_clock_pass(&rig->clock, PASS_MS);
        clock_sleep_until(&clock_system, clock_monotonic_ns() + LOOK_NS);
    }
    if (!rig->is_in_vain) {
        answer_wait(answer);
    }
}

void
rig_checkpoint_later(struct rig *rig, struct rig_later *later)
{
    later->rig = rig;
    answer_init(&later->answer);
    later->call =
        (struct store_checkpoint){.call = call_of(&later->answer), .err = -1};
    ck_assert_int_eq(store_checkpoint(rig->store, &later->call), STORE_LATER);
}

int
rig_wait(struct rig_later *later)
{
    wait_answer(later->rig, &later->answer);
    answer_fini(&later->answer);
    return later->call.err;
}

int
rig_checkpoint(struct rig *rig)
{
    struct rig_later later;
    rig_checkpoint_later(rig, &later);
    return rig_wait(&later);
}

/* ---- seals ---- */

bool
rig_seal_later(struct rig *rig, unsigned slot)
{
    const struct schema_counter *counter =
        schema_counter_at(quiet_schema(rig->store), slot);
    (void)rig_seal_wait(rig);
    if (counter == NULL) {
        return false;
    }
    answer_init(&rig->sealed);
    rig->is_sealing = true;
    rig->seal = (struct store_seal){.call = call_of(&rig->sealed),
        .slot = slot,
        .serial = counter->serial,
        .err = -1};
    EXPECT(
        store_seal(rig->store, &rig->seal) == STORE_LATER, "sealed at once");
    return true;
}

int
rig_seal_wait(struct rig *rig)
{
    if (!rig->is_sealing) {
        return 0;
    }
    wait_answer(rig, &rig->sealed);
    answer_fini(&rig->sealed);
    rig->is_sealing = false;
    return rig->seal.err;
}

int
rig_seal_all(struct rig *rig)
{
    int err = 0;
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX && err == 0; slot++) {
        if (rig_seal_later(rig, slot)) {
            err = rig_seal_wait(rig);
        }
    }
    return err;
}

struct cold_wanted {
    const char *name;
    uint64_t value;
};

static void
note_cold(void *context, const char *name, const char *value)
{
    struct cold_wanted *stat = context;
    if (strcmp(name, stat->name) == 0) {
        stat->value = strtoull(value, NULL, 10);
    }
}

uint64_t
rig_cold_stat(struct rig *rig, const char *name)
{
    struct cold_wanted stat = {.name = name, .value = UINT64_MAX};
    store_cold_stats(rig->store, note_cold, &stat);
    ck_assert_uint_ne(stat.value, UINT64_MAX);
    return stat.value;
}

uint64_t
rig_n_hot(struct rig *rig)
{
    uint64_t n = 0;
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        struct engine_sum sum = {0};
        store_tables(rig->store, slot, -1, &sum);
        n += sum.records;
    }
    return n;
}

/* What has failed since the store was opened: it may be waiting to try again.
 */
static uint64_t
n_failures(struct rig *rig)
{
    return rig_cold_stat(rig, "tidy_failures") +
        rig_stat(rig, "checkpoint_failures") + (store_fault(rig->store) != 0);
}

bool
rig_tidy_wait(struct rig *rig)
{
    uint64_t idle = rig_cold_stat(rig, "tidy_idle");
    while (rig_cold_stat(rig, "tidy_idle") < idle + 2) {
        const struct timespec pause = {.tv_nsec = 500 * 1000};
        if (n_failures(rig) > 0) {
            return false;
        }
        (void)nanosleep(&pause, NULL);
    }
    return true;
}

/* ---- changes ---- */

bool
rig_change(struct rig *rig, struct change *change, uint32_t n, uint64_t *seq)
{
    struct answer answer;
    struct qsbr_reader reader;
    struct store_change call = {.n = n, .change = change};
    if (store_fault(rig->store) != 0) {
        return false;
    }
    answer_init(&answer);
    call.call = call_of(&answer);
    reader_begin(rig->store, &reader);
    enum store_answer given = store_change(rig->store, &call);
    reader_end(rig->store, &reader);
    EXPECT(given == STORE_DONE || rig->seals, "not done at once");
    if (given == STORE_LATER) {
        answer_wait(&answer);
    }
    answer_fini(&answer);
    answered_change(&rig->history, change, n, call.seq);
    *seq = call.seq;
    return true;
}

/* One of the counters that have columns, or NULL. */
static const struct schema_counter *
random_counter(struct rig *rig)
{
    const struct schema *schema = quiet_schema(rig->store);
    unsigned first = (unsigned)below(rig, SCHEMA_COUNTERS_MAX);
    for (unsigned i = 0; i < SCHEMA_COUNTERS_MAX; i++) {
        const struct schema_counter *counter =
            schema_counter_at(schema, (first + i) % SCHEMA_COUNTERS_MAX);
        if (counter != NULL && counter->n_columns > 0) {
            return counter;
        }
    }
    return NULL;
}

static void
random_change(struct rig *rig, const struct schema_counter *counter,
    struct change *change)
{
    static const enum change_op ops[] = {CHANGE_INCR, CHANGE_INCR, CHANGE_INCR,
        CHANGE_SET, CHANGE_SET, CHANGE_ADD, CHANGE_DECR, CHANGE_DELETE,
        CHANGE_DELETE};
    /* mostly a few ids, so that values go up and down again */
    uint64_t n_ids = below(rig, 4) == 0 ? rig->history.n_ids : 24;
    unsigned first = (unsigned)below(rig, counter->n_columns);
    unsigned n =
        below(rig, 3) == 0 ? 1 + (unsigned)below(rig, counter->n_columns) : 1;
    *change = (struct change){.id = rig->history.id[below(rig, n_ids)],
        .op = ops[below(rig, COUNT_OF(ops))],
        .counter = counter->slot,
        .n_columns = (uint8_t)n,
        .err = -1};
    for (unsigned k = 0; k < n; k++) {
        const struct schema_column *column =
            &counter->column[(first + k) % counter->n_columns];
        change->column[k] = column->slot;
        change->serial[k] = column->serial;
        change->operand[k] =
            below(rig, UINT64_MAX) >> (SCHEMA_BITS_MAX - column->max_bits);
        if (below(rig, 4) > 0) {
            change->operand[k] &= 1;
        }
    }
}

static bool
do_random_changes(struct rig *rig, uint64_t *seq)
{
    struct change change[RIG_BATCH_MAX];
    const struct schema_counter *counter = random_counter(rig);
    uint32_t n =
        below(rig, 3) == 0 ? 2 + (uint32_t)below(rig, RIG_BATCH_MAX - 1) : 1;
    if (counter == NULL) {
        return true;
    }
    for (uint32_t i = 0; i < n; i++) {
        random_change(rig, counter, &change[i]);
    }
    return rig_change(rig, change, n, seq);
}

/* ---- edits ---- */

int
rig_edit(struct rig *rig, const char *line)
{
    char *before = answered_schema_text(quiet_schema(rig->store));
    int err = edit(rig->store, line);
    const struct schema *schema = quiet_schema(rig->store);
    char *after = answered_schema_text(schema);
    if (strcmp(before, after) != 0) {
        answered_edit(&rig->history, schema, err == 0 ? 0 : UINT64_MAX);
    }
    free(before);
    free(after);
    return err;
}

void
rig_add_counter(struct rig *rig, char letter)
{
    char line[RIG_LINE_BYTES];
    (void)snprintf(line, sizeof(line), "add counter %c", letter);
    ck_assert_int_eq(rig_edit(rig, line), 0);
    (void)snprintf(
        line, sizeof(line), "add column %c %cid primarykey", letter, letter);
    ck_assert_int_eq(rig_edit(rig, line), 0);
    (void)snprintf(
        line, sizeof(line), "add column %c %cx max=64", letter, letter);
    ck_assert_int_eq(rig_edit(rig, line), 0);
}

enum store_commit
rig_set_all(struct rig *rig, char letter, uint64_t value)
{
    const char name[] = {letter, 'x', '\0'};
    const struct schema *schema = quiet_schema(rig->store);
    struct schema_target target;
    struct change change[RIG_BATCH_MAX];
    uint64_t seq = 0;
    if (!schema_find(schema, name, 2, &target)) {
        return STORE_COMMITTED;
    }
    struct cell_key key = cell_of(schema, 0, name);
    for (size_t i = 0; i < rig->history.n_ids;) {
        uint32_t n = 0;
        for (; n < RIG_BATCH_MAX && i < rig->history.n_ids; n++, i++) {
            key.id = rig->history.id[i];
            change[n] = change_of(&key, CHANGE_SET, value);
        }
        if (!rig_change(rig, change, n, &seq)) {
            return STORE_COMMIT_FAILED;
        }
    }
    return rig_commit(rig, seq);
}

static void
random_line(struct rig *rig, char line[RIG_LINE_BYTES])
{
    unsigned counter = (unsigned)below(rig, NAMES);
    unsigned column = (unsigned)below(rig, NAMES);
    unsigned bits = 1 + (unsigned)below(rig, SCHEMA_BITS_MAX);
    switch (below(rig, 8)) {
    case 0:
        (void)snprintf(
            line, RIG_LINE_BYTES, "drop counter c%u c%u", counter, counter);
        break;
    case 1:
        (void)snprintf(line, RIG_LINE_BYTES, "drop column c%u c%uk%u c%uk%u",
            counter, counter, column, counter, column);
        break;
    case 2:
        (void)snprintf(line, RIG_LINE_BYTES, "add counter c%u", counter);
        break;
    case 3:
        (void)snprintf(line, RIG_LINE_BYTES, "add column c%u c%uid primarykey",
            counter, counter);
        break;
    default:
        (void)snprintf(line, RIG_LINE_BYTES,
            "add column c%u c%uk%u max=%u hint=0 default=%u suffix=s%uk%u",
            counter, counter, column, bits, (unsigned)below(rig, 2), counter,
            column);
        break;
    }
}

static void
seal_some(struct rig *rig)
{
    const struct schema_counter *counter = random_counter(rig);
    if (counter != NULL) {
        (void)rig_seal_later(rig, counter->slot);
    }
}

unsigned
rig_work(struct rig *rig, unsigned n)
{
    char line[RIG_LINE_BYTES];
    uint64_t seq = 0;
    for (unsigned i = 0; i < n; i++) {
        if (store_fault(rig->store) != 0) {
            return i;
        }
        switch (below(rig, 64)) {
        case 0:
        case 1:
            random_line(rig, line);
            (void)rig_edit(rig, line);
            break;
        case 2:
            (void)rig_checkpoint(rig);
            break;
        case 3:
            store_want_checkpoint(rig->store);
            break;
        case 4:
        case 5:
        case 6:
        case 7:
            (void)rig_commit(rig, seq);
            break;
        case 8:
        case 9:
            if (rig->seals) {
                seal_some(rig);
                break;
            }
            /* fall through */
        default:
            if (!do_random_changes(rig, &seq)) {
                return i;
            }
            (void)store_commit(rig->store, seq);
            break;
        }
    }
    return n;
}

/* ---- what is found ---- */

/* Where the column of a serial is. */
static void
find_column(struct rig *rig, uint32_t serial)
{
    const struct schema *schema = quiet_schema(rig->store);
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        const struct schema_counter *counter = schema_counter_at(schema, slot);
        for (unsigned k = 0; counter != NULL && k < counter->n_columns; k++) {
            if (counter->column[k].serial == serial) {
                rig->read = (struct cell_key){.serial = serial,
                    .counter = counter->slot,
                    .column = counter->column[k].slot};
                rig->read_default = counter->column[k].default_value;
            }
        }
    }
}

void
rig_get(struct rig *rig, struct store_get *get)
{
    struct answer answer;
    struct qsbr_reader reader;
    answer_init(&answer);
    get->call = call_of(&answer);
    get->call.ring = rig->ring;
    reader_begin(rig->store, &reader);
    enum store_answer given = store_get(rig->store, get);
    reader_end(rig->store, &reader);
    EXPECT(given == STORE_DONE || rig->seals, "not done at once");
    if (given == STORE_LATER) {
        rig_wait_get(rig, &answer);
    }
    answer_fini(&answer);
}

static uint64_t
read_cell(void *context, uint32_t serial, size_t i)
{
    struct rig *rig = context;
    struct store_get get = {.n = 1};
    if (i == 0) {
        find_column(rig, serial);
    }
    get.key[0] = rig->read;
    get.key[0].id = rig->history.id[i];
    rig_get(rig, &get);
    EXPECT(get.state[0] ==
            (get.value[0] == rig->read_default ? CELL_DEFAULT : CELL_SET),
        "a cell in the wrong state");
    return get.value[0];
}

void
rig_judge(struct rig *rig, size_t n_steps, bool is_new)
{
    const struct answered_found found = {.schema = quiet_schema(rig->store),
        .value_fn = read_cell,
        .context = rig};
    store_verify(rig->store);
    size_t all = rig->history.n_steps;
    const char *wrong = answered_judge(&rig->history, n_steps, &found, is_new);
    ck_assert_msg(
        wrong == NULL, "%s, of %zu steps at least %zu", wrong, all, n_steps);
}

void
rig_expect_all(struct rig *rig)
{
    rig_judge(rig, rig->history.n_steps, true);
}

/* How many steps must survive. */
static size_t
n_safe(struct rig *rig, bool is_power_cut)
{
    size_t n = rig->history.n_steps;
    enum wal_sync sync = rig->data.sync;
    bool counts_synced =
        sync == WAL_SYNC_NONE || (sync == WAL_SYNC_INTERVAL && is_power_cut);
    uint64_t synced = rig_stat(rig, "synced_seq");
    for (; n > 0; n--) {
        uint64_t seq = answered_seq(&rig->history, n - 1);
        if (counts_synced
                ? seq <= synced
                : store_outcome(rig->store, seq) == STORE_COMMITTED) {
            break;
        }
    }
    return n;
}

static void
come_up(struct rig *rig, bool is_power_cut)
{
    if (is_power_cut) {
        fake_disk_crash(rig->fake);
    } else {
        fake_disk_revive(rig->fake);
    }
}

void
rig_crash(struct rig *rig, bool is_power_cut, unsigned tries)
{
    size_t n_steps = n_safe(rig, is_power_cut);
    if (!fake_disk_is_dead(rig->fake)) {
        fake_disk_die(rig->fake, 1);
    }
    (void)rig_close(rig);
    rig_expect_order(rig);
    come_up(rig, is_power_cut);
    for (; tries > 1; tries--) {
        fake_disk_die(rig->fake, 1 + (unsigned)below(rig, DIE_MAX));
        int err = rig_open(rig);
        if (err == 0) {
            (void)rig_close(rig);
        } else {
            ck_assert_int_eq(err, ERR_DISK);
        }
        come_up(rig, is_power_cut);
    }
    ck_assert_int_eq(rig_open(rig), 0);
    rig_judge(rig, n_steps, true);
}

void
rig_end(struct rig *rig)
{
    rig_expect_all(rig);
    ck_assert_int_eq(rig_close(rig), 0);
    rig_expect_order(rig);
    rig_fini(rig);
}
