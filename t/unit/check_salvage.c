/* SPDX-License-Identifier: BSD-3-Clause */
/* offline/salvage and offline/dump: each bit of a small directory turned over,
 * each file cut off at each length, or missing, or with some bytes that are
 * others. A start refuses it or has the same numbers; a salvage makes a sound
 * directory of it, which has all that is not under the damage, never a number
 * that was not there; and the dump of a directory says what a server answers.
 *
 * SALVAGE_STRIDE: that many bits are left out between two (1: none is). */
#include "offline/data_check.h"
#include "unit/durable_help.h"
#include "unit/files_help.h"

#include "base/buf.h"
#include "base/flip.h"
#include "cold/block.h"
#include "cold/segment_head.h"
#include "offline/dump.h"
#include "offline/salvage.h"
#include "wal/names.h"
#include "wal/replay.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

enum {
    CELLS_MAX = 1 << 12,
    COLUMNS_MAX = 8,
    COUNTERS_MAX = 4,
    NAME_BYTES = 40,
    FEW = 30,         /* ids of some records */
    STARTS = 64,      /* a server is started on one case in so many */
    FLIP_STRIDE = 37, /* of bits; a prime, so that all places have a turn */
    CUT_STRIDE = 61,
    HEAD_STRIDE = 1009 /* of bits of large pieces, which take long */
};

/* ---- what a dump says ---- */

struct column {
    char name[NAME_BYTES];
    uint64_t default_value;
};

struct state {
    struct {
        char name[NAME_BYTES];
        struct column column[COLUMNS_MAX];
        unsigned n;
    } counter[COUNTERS_MAX];
    unsigned n_counters;
    struct cell {
        uint64_t id, value;
        unsigned counter;
        char column[NAME_BYTES];
        bool is_used;
    } cell[CELLS_MAX];
    unsigned damaged;
    uint64_t last_batch;
};

static unsigned
counter_of(struct state *state, const char *name)
{
    for (unsigned i = 0; i < state->n_counters; i++) {
        if (strcmp(state->counter[i].name, name) == 0) {
            return i;
        }
    }
    unsigned i = state->n_counters++;
    EXPECT(i < COUNTERS_MAX, "too many counters");
    (void)snprintf(state->counter[i].name, NAME_BYTES, "%s", name);
    return i;
}

static struct cell *
cell_at(struct state *state, unsigned counter, uint64_t id, const char *column)
{
    uint64_t hash = id * UINT64_C(0x9e3779b97f4a7c15) >> 40;
    for (size_t i = (size_t)(hash + counter * 7 + (unsigned char)column[0]);;
         i++) {
        struct cell *cell = &state->cell[i % CELLS_MAX];
        if (!cell->is_used ||
            (cell->id == id && cell->counter == counter &&
                strcmp(cell->column, column) == 0)) {
            return cell;
        }
    }
}

static void
set_cell(struct state *state, unsigned counter, uint64_t id,
    const char *column, uint64_t value)
{
    struct cell *cell = cell_at(state, counter, id, column);
    *cell = (struct cell){id, value, counter, "", true};
    (void)snprintf(cell->column, NAME_BYTES, "%s", column);
}

/* Of a column that is not there: nothing. */
static uint64_t
default_of(const struct state *state, unsigned counter, const char *column)
{
    for (unsigned i = 0; i < state->counter[counter].n; i++) {
        if (strcmp(state->counter[counter].column[i].name, column) == 0) {
            return state->counter[counter].column[i].default_value;
        }
    }
    return 0;
}

static void
take_schema(struct state *state, const char *line)
{
    char name[NAME_BYTES], column[NAME_BYTES];
    if (sscanf(line, "schema add counter %39s", name) == 1) {
        state->counter[counter_of(state, name)].n = 0;
    } else if (sscanf(line, "schema add column %39s %39s", name, column) ==
            2 &&
        strstr(line, "primarykey") == NULL) {
        unsigned at = counter_of(state, name);
        unsigned i = state->counter[at].n++;
        const char *value = strstr(line, "default=");
        EXPECT(i < COLUMNS_MAX && value != NULL, "a column: %s", line);
        (void)snprintf(
            state->counter[at].column[i].name, NAME_BYTES, "%s", column);
        state->counter[at].column[i].default_value =
            strtoull(value + strlen("default="), NULL, 10);
    }
}

static void
take_record(struct state *state, char *line)
{
    char name[NAME_BYTES];
    int n = 0;
    uint64_t id;
    EXPECT(sscanf(line, "record %39s %lu%n", name, &id, &n) == 2, "%s", line);
    unsigned counter = counter_of(state, name);
    char *at = line + n;
    for (unsigned i = 0; i < state->counter[counter].n; i++) {
        EXPECT(*at == ' ', "a value a column: %s", line);
        set_cell(state, counter, id, state->counter[counter].column[i].name,
            strtoull(at, &at, 10));
    }
    EXPECT(*at == '\0', "no more values than columns: %s", line);
}

static void
take_cells(struct state *state, char *line)
{
    char name[NAME_BYTES], column[NAME_BYTES];
    int n = 0;
    uint64_t id, value;
    EXPECT(sscanf(line, "cells %39s %lu%n", name, &id, &n) == 2, "%s", line);
    unsigned counter = counter_of(state, name);
    for (char *at = line + n;
         sscanf(at, " %39[^=]=%lu%n", column, &value, &n) == 2; at += n) {
        set_cell(state, counter, id, column, value);
    }
}

static void
take_line(struct state *state, char *line)
{
    if (strncmp(line, "schema ", 7) == 0) {
        take_schema(state, line);
    } else if (strncmp(line, "record ", 7) == 0) {
        take_record(state, line);
    } else if (strncmp(line, "cells ", 6) == 0) {
        take_cells(state, line);
    } else if (strncmp(line, "batch ", 6) == 0) {
        state->last_batch = strtoull(line + 6, NULL, 10);
    } else if (strncmp(line, "damaged ", 8) == 0) {
        state->damaged++;
    }
}

static int
take_text(void *context, const char *text, size_t len)
{
    buf_add(context, text, len);
    return 0;
}

/* What the dump of a disk says. */
static int
read_state(struct disk *disk, struct logger *logger, struct state *state)
{
    struct buf text = {0};
    const struct dump_config config = {.disk = disk,
        .logger = logger,
        .write_fn = take_text,
        .context = &text};
    int err = dump_run(&config);
    memset(state, 0, sizeof *state);
    buf_add(&text, "", 1);
    for (char *line = text.data, *end; (end = strchr(line, '\n')) != NULL;
         line = end + 1) {
        *end = '\0';
        take_line(state, line);
    }
    buf_fini(&text);
    return err;
}

/* Cells that a has and b has not so; where is_part is true, those that b has
 * at its default do not count. */
static unsigned
differ(struct state *a, struct state *b, bool is_part)
{
    unsigned n = 0;
    for (size_t i = 0; i < CELLS_MAX; i++) {
        const struct cell *cell = &a->cell[i];
        if (!cell->is_used) {
            continue;
        }
        const char *name = a->counter[cell->counter].name;
        unsigned counter = counter_of(b, name);
        const struct cell *other = cell_at(b, counter, cell->id, cell->column);
        uint64_t value = other->is_used
            ? other->value
            : default_of(a, cell->counter, cell->column);
        n += value != cell->value && (!is_part || other->is_used);
    }
    return n;
}

/* ---- the directory ---- */

static void
set_some(
    struct rig *rig, const char *column, size_t from, size_t to, uint64_t mask)
{
    struct cell_key key = cell_of(quiet_schema(rig->store), 0, column);
    uint64_t seq = 0;
    for (size_t i = from; i < to; i++) {
        key.id = rig->history.id[i];
        struct change change = change_of(
            &key, CHANGE_SET, random_below(&rig->random, UINT64_MAX) & mask);
        EXPECT(rig_change(rig, &change, 1, &seq), "no change");
    }
    EXPECT(rig_commit(rig, seq) == STORE_COMMITTED, "not committed");
}

static void
start_again(struct rig *rig)
{
    ck_assert_int_eq(rig_close(rig), 0);
    ck_assert_int_eq(rig_open(rig), 0);
}

/* A directory with a segment of several blocks, images beside and over it, and
 * a log of some files with changes and edits. */
static void
make_directory(struct rig *rig, bool is_killed)
{
    rig_init(rig, WAL_SYNC_ALWAYS, ID_CLUSTERS, 5);
    rig->seals = true;
    rig->data.checkpoint_step_bytes = 0;
    rig->data.checkpoint_file_bytes = 0;
    ck_assert_int_eq(rig_open(rig), 0);
    rig_add_counter(rig, 'a');
    ck_assert_int_eq(
        rig_edit(rig, "add column a ay hint=0 max=64 default=7"), 0);
    set_some(rig, "ax", 0, RIG_IDS, UINT32_MAX);
    set_some(rig, "ay", 0, RIG_IDS, UINT64_MAX);
    ck_assert_int_eq(
        rig_edit(rig, "add column a az hint=0 max=64 default=0"), 0);
    set_some(rig, "az", 0, RIG_IDS, UINT64_MAX);
    ck_assert_int_eq(rig_seal_all(rig), 0);
    rig_add_counter(rig, 'b');
    set_some(rig, "bx", 0, FEW, UINT8_MAX);
    ck_assert_int_eq(rig_checkpoint(rig), 0);
    start_again(rig); /* which leaves out numbers of batches */
    set_some(rig, "ax", FEW, 2 * FEW, UINT8_MAX);
    set_some(rig, "bx", FEW / 2, FEW, UINT16_MAX);
    ck_assert_int_eq(rig_checkpoint(rig), 0);
    set_some(rig, "bx", 0, FEW, UINT8_MAX);
    set_some(rig, "ay", FEW, FEW + FEW / 2, UINT8_MAX);
    start_again(rig);
    rig_add_counter(rig, 'c');
    set_some(rig, "cx", 0, FEW, UINT32_MAX);
    set_some(rig, "bx", 0, FEW, UINT8_MAX);
    if (is_killed) {
        fake_disk_die(rig->fake, 1);
    }
    (void)rig_close(rig);
    fake_disk_revive(rig->fake);
}

/* ---- one case ---- */

struct bench {
    struct rig *rig;
    struct files files;
    struct state *whole, *now; /* before the damage; a place for another */
    unsigned n_cases, n_refused, n_lossy, n_harmless;
    struct buf report; /* of the last salvage */
    uint64_t bits_budget;
};

static void
bench_init(struct bench *bench, struct rig *rig)
{
    *bench = (struct bench){.rig = rig,
        .whole = calloc(1, sizeof(struct state)),
        .now = calloc(1, sizeof(struct state)),
        .bits_budget = FLIP_BUDGET};
    ck_assert(bench->whole != NULL && bench->now != NULL);
    read_files(rig->data.disk, &bench->files);
    ck_assert_int_eq(
        read_state(rig->data.disk, &rig->logger, bench->whole), 0);
}

static void
bench_fini(struct bench *bench)
{
    free(bench->whole);
    free(bench->now);
    free_files(&bench->files);
    buf_fini(&bench->report);
}

/* A server on that disk has all steps. */
static void
expect_all(struct rig *rig, struct fake_disk *fake)
{
    struct fake_disk *whole = rig->fake;
    rig->fake = fake;
    rig->data.disk = fake_disk_as_disk(fake);
    EXPECT(rig_open(rig) == 0, "no start after a salvage");
    rig_judge(rig, rig->history.n_steps, false);
    EXPECT(rig_close(rig) == 0, "no stop");
    rig->fake = whole;
    rig->data.disk = fake_disk_as_disk(whole);
}

/* A salvage of the files as they are. is_whole: nothing may be lost. Returns
 * how many cells are. */
static unsigned
try_salvage(struct bench *bench, bool is_whole, enum salvage_outcome *outcome)
{
    struct rig *rig = bench->rig;
    struct buf found = {0};
    struct fake_disk *fake = disk_of(&bench->files);
    struct disk *disk = fake_disk_as_disk(fake);
    const struct salvage_config config = {.disk = disk,
        .logger = &rig->logger,
        .free_bytes = UINT64_MAX,
        .bits_budget = bench->bits_budget,
        .codec = BLOCK_AUTO,
        .level = 1,
        .shards = rig->config.shards,
        .seed = 3};
    bool is_refused = data_check_disk(disk, &rig->logger, &found) != 0;
    buf_clear(&bench->report);
    int err = salvage_run(&config, &bench->report, outcome);
    buf_add(&bench->report, "", 1);
    EXPECT(err == 0, "no salvage: %s\n%s", err_text(err), bench->report.data);
    /* a start leaves out what is behind a torn end, be it by one bit */
    EXPECT(*outcome != SALVAGE_SOUND || !is_refused, "not seen");
    buf_clear(&found);
    EXPECT(data_check_disk(disk, &rig->logger, &found) == 0,
        "not sound after a salvage:\n%s", bench->report.data);
    EXPECT(read_state(disk, &rig->logger, bench->now) == 0, "no dump");
    unsigned n = differ(bench->whole, bench->now, false);
    /* no number comes up that was not there */
    EXPECT(*outcome == SALVAGE_LOSSY ||
            differ(bench->now, bench->whole, false) == 0,
        "other numbers:\n%s", bench->report.data);
    EXPECT(n == 0 || *outcome == SALVAGE_LOSSY || !is_refused,
        "%u cells lost, and not told:\n%s", n, bench->report.data);
    EXPECT(!is_whole || n == 0, "%u cells lost:\n%s", n, bench->report.data);
    if (n == 0 && bench->n_cases % STARTS == 0) {
        expect_all(rig, fake);
    }
    bench->n_cases++;
    bench->n_refused += is_refused;
    bench->n_lossy += *outcome == SALVAGE_LOSSY;
    buf_fini(&found);
    fake_disk_destroy(&fake);
    return n;
}

static size_t
stride_of(size_t usual)
{
    const char *given = getenv("SALVAGE_STRIDE");
    size_t stride =
        given == NULL ? usual * sweep_stride() : strtoul(given, NULL, 10);
    return stride == 0 ? 1 : stride;
}

static bool
is_segment(const struct file *file)
{
    return strncmp(file->name, "segment-", 8) == 0;
}

/* Lines of damage are not for whoever reads the test's. */
static void
be_quiet(void)
{
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_ge(dup2(fd, STDERR_FILENO), 0);
    close(fd);
}

/* ---- tests ---- */

/* What a dump says is what a server answers. */
START_TEST(test_dump_is_what_is_there)
{
    struct rig rig;
    struct bench bench;
    unsigned n = 0;
    make_directory(&rig, _i == 1);
    bench_init(&bench, &rig);
    ck_assert_int_eq(rig_open(&rig), 0);
    rig_expect_all(&rig);
    const struct schema *schema = quiet_schema(rig.store);
    for (unsigned c = 0; c < bench.whole->n_counters; c++) {
        for (unsigned k = 0; k < bench.whole->counter[c].n; k++) {
            const char *name = bench.whole->counter[c].column[k].name;
            for (size_t i = 0; i < RIG_IDS; i++) {
                struct store_get get = {.n = 1};
                get.key[0] = cell_of(schema, rig.history.id[i], name);
                rig_get(&rig, &get);
                const struct cell *cell =
                    cell_at(bench.whole, c, rig.history.id[i], name);
                uint64_t value = cell->is_used
                    ? cell->value
                    : default_of(bench.whole, c, name);
                ck_assert_uint_eq(get.value[0], value);
                n += cell->is_used;
            }
        }
    }
    ck_assert_uint_gt(n, 3 * RIG_IDS);
    bench_fini(&bench);
    rig_end(&rig);
}
END_TEST

/* Each bit: refused, and all is saved, or nobody misses anything. */
START_TEST(test_bits)
{
    struct rig rig;
    struct bench bench;
    enum salvage_outcome outcome;
    be_quiet();
    make_directory(&rig, _i == 1);
    bench_init(&bench, &rig);
    for (size_t i = 0; i < bench.files.n; i++) {
        struct file *file = &bench.files.file[i];
        uint64_t bits = 8 * (is_log(file) ? used_bytes(file) : file->len);
        size_t stride =
            stride_of(is_segment(file) ? HEAD_STRIDE : FLIP_STRIDE);
        for (uint64_t bit = 0; bit < bits; bit += stride) {
            uint8_t mask = (uint8_t)(1u << bit % 8);
            file->bytes[bit / 8] ^= mask;
            (void)try_salvage(&bench, true, &outcome);
            ck_assert_int_ne(outcome, SALVAGE_LOSSY);
            file->bytes[bit / 8] ^= mask;
        }
    }
    ck_assert_uint_gt(bench.n_refused, bench.n_cases / 4);
    bench_fini(&bench);
    rig_fini(&rig);
}
END_TEST

/* Each length. What is there before the cut is saved. */
START_TEST(test_lengths)
{
    struct rig rig;
    struct bench bench;
    enum salvage_outcome outcome;
    be_quiet();
    make_directory(&rig, false);
    bench_init(&bench, &rig);
    for (size_t i = 0; i < bench.files.n; i++) {
        struct file *file = &bench.files.file[i];
        uint64_t len = file->len, used = used_bytes(file);
        size_t stride = stride_of(CUT_STRIDE);
        bool is_manifest = strncmp(file->name, "MANIFEST", 8) == 0;
        unsigned before = UINT_MAX;
        for (file->len = 0; file->len < len; file->len += stride) {
            unsigned n = try_salvage(&bench, is_manifest, &outcome);
            /* the longer, the more */
            EXPECT(is_log(file) || n <= before, "%s at %lu: %u, %u",
                file->name, file->len, n, before);
            /* what is cut off a log has no batches any more */
            EXPECT(!is_log(file) || file->len < used || n == 0, "%s at %lu",
                file->name, file->len);
            before = n;
        }
        file->len = len;
    }
    ck_assert_uint_gt(bench.n_lossy, 0);
    bench_fini(&bench);
    rig_fini(&rig);
}
END_TEST

/* Each file missing, and all at once but for one. */
START_TEST(test_missing)
{
    struct rig rig;
    struct bench bench;
    enum salvage_outcome outcome;
    be_quiet();
    make_directory(&rig, false);
    bench_init(&bench, &rig);
    for (size_t i = 0; i < bench.files.n; i++) {
        struct file *file = &bench.files.file[i];
        uint8_t *bytes = file->bytes;
        bool is_manifest = strncmp(file->name, "MANIFEST", 8) == 0;
        file->bytes = NULL;
        unsigned n = try_salvage(&bench, is_manifest, &outcome);
        ck_assert(is_manifest || is_log(file) || n > 0);
        file->bytes = bytes;
    }
    bench_fini(&bench);
    rig_fini(&rig);
}
END_TEST

/* One segment is damaged and that of the largest number missing: what is lost
 * is the same as by each alone. */
START_TEST(test_damaged_and_missing)
{
    struct rig rig;
    struct bench bench;
    enum salvage_outcome outcome;
    struct file *low = NULL, *high = NULL;
    be_quiet();
    make_directory(&rig, false);
    ck_assert_int_eq(rig_open(&rig), 0);
    ck_assert_int_eq(rig_seal_all(&rig), 0);
    ck_assert_int_eq(rig_close(&rig), 0);
    bench_init(&bench, &rig);
    bench.bits_budget = 0;
    for (size_t i = 0; i < bench.files.n; i++) {
        struct file *file = &bench.files.file[i];
        if (is_segment(file)) {
            low =
                low == NULL || strcmp(file->name, low->name) < 0 ? file : low;
            high = high == NULL || strcmp(file->name, high->name) > 0 ? file
                                                                      : high;
        }
    }
    ck_assert_ptr_ne(low, high);
    uint8_t *bytes = high->bytes;
    high->bytes = NULL;
    unsigned n_missing = try_salvage(&bench, false, &outcome);
    high->bytes = bytes;
    low->bytes[SEGMENT_HEAD_BYTES] ^= 0x55;
    unsigned n_damaged = try_salvage(&bench, false, &outcome);
    high->bytes = NULL;
    unsigned n_both = try_salvage(&bench, false, &outcome);
    ck_assert_uint_gt(n_missing, 0);
    ck_assert_uint_gt(n_damaged, 0);
    ck_assert_uint_eq(n_both, n_missing + n_damaged);
    high->bytes = bytes;
    bench_fini(&bench);
    rig_fini(&rig);
}
END_TEST

/* All of the log: what is changed after the salvage lasts, whatever numbers
 * images have. */
START_TEST(test_goes_on)
{
    struct rig rig;
    struct bench bench;
    struct buf report = {0};
    enum salvage_outcome outcome;
    be_quiet();
    make_directory(&rig, false);
    bench_init(&bench, &rig);
    for (size_t i = 0; i < bench.files.n; i++) {
        struct file *file = &bench.files.file[i];
        if (is_log(file)) {
            free(file->bytes);
            file->bytes = NULL;
        }
    }
    fake_disk_destroy(&rig.fake);
    rig.fake = disk_of(&bench.files);
    rig.data.disk = fake_disk_as_disk(rig.fake);
    const struct salvage_config config = {.disk = rig.data.disk,
        .logger = &rig.logger,
        .free_bytes = UINT64_MAX};
    ck_assert_int_eq(salvage_run(&config, &report, &outcome), 0);
    ck_assert_int_eq(outcome, SALVAGE_LOSSY);
    ck_assert_int_eq(rig_open(&rig), 0);
    set_some(&rig, "bx", 0, FEW, 0);
    set_some(&rig, "ax", 0, RIG_IDS, 0);
    fake_disk_die(rig.fake, 1);
    (void)rig_close(&rig);
    fake_disk_revive(rig.fake);
    ck_assert_int_eq(rig_open(&rig), 0);
    for (size_t i = 0; i < RIG_IDS; i++) {
        struct store_get get = {.n = 2};
        const struct schema *schema = quiet_schema(rig.store);
        get.key[0] = cell_of(schema, rig.history.id[i], "ax");
        get.key[1] = cell_of(schema, rig.history.id[i], "bx");
        rig_get(&rig, &get);
        ck_assert_uint_eq(get.value[0], 0);
        ck_assert_uint_eq(get.value[1], 0);
    }
    ck_assert_int_eq(rig_close(&rig), 0);
    buf_fini(&report);
    bench_fini(&bench);
    rig_fini(&rig);
}
END_TEST

/* Some bytes are others, and no bit can be turned back: what is lost is what
 * was there, and no more. */
START_TEST(test_holes)
{
    struct rig rig;
    struct bench bench;
    enum salvage_outcome outcome;
    be_quiet();
    make_directory(&rig, false);
    bench_init(&bench, &rig);
    bench.bits_budget = 0;
    for (size_t i = 0; i < bench.files.n; i++) {
        struct file *file = &bench.files.file[i];
        bool is_manifest = strncmp(file->name, "MANIFEST", 8) == 0;
        uint64_t used = used_bytes(file);
        for (uint64_t at = 0; at < used; at += stride_of(CUT_STRIDE)) {
            file->bytes[at] ^= 0x55;
            unsigned n = try_salvage(&bench, is_manifest, &outcome);
            /* a batch has one change, but those with an edit */
            EXPECT(!is_log(file) || n <= FEW, "%s at %lu: %u of a batch",
                file->name, at, n);
            /* and those behind it keep their numbers */
            EXPECT(!is_log(file) || at >= used / 2 ||
                    bench.now->last_batch == bench.whole->last_batch,
                "%s at %lu: other numbers", file->name, at);
            EXPECT(!is_segment(file) || n < 3 * RIG_IDS,
                "%s at %lu: %u, all of it", file->name, at, n);
            EXPECT(!is_segment(file) || at >= 4096 || n == 0,
                "%s at %lu: %u by a head", file->name, at, n);
            file->bytes[at] ^= 0x55;
        }
    }
    bench_fini(&bench);
    rig_fini(&rig);
}
END_TEST

/* Both manifests: the log has all, if it goes back to the first file. */
START_TEST(test_no_manifest)
{
    struct rig rig;
    struct bench bench;
    enum salvage_outcome outcome;
    be_quiet();
    rig_init(&rig, WAL_SYNC_ALWAYS, ID_CLUSTERS, 5);
    ck_assert_int_eq(rig_open(&rig), 0);
    rig_add_counter(&rig, 'a');
    set_some(&rig, "ax", 0, RIG_IDS, UINT32_MAX);
    ck_assert_int_eq(rig_close(&rig), 0);
    bench_init(&bench, &rig);
    for (size_t i = 0; i < bench.files.n; i++) {
        struct file *file = &bench.files.file[i];
        if (strncmp(file->name, "MANIFEST", 8) == 0) {
            free(file->bytes);
            file->bytes = NULL;
        }
    }
    (void)try_salvage(&bench, true, &outcome);
    ck_assert_int_eq(outcome, SALVAGE_WHOLE);
    bench_fini(&bench);
    rig_fini(&rig);
}
END_TEST

/* A salvage that ends at each of its steps, by a power cut or not (_i is 0), or
 * whose disk refuses one call, and then another one. */
START_TEST(test_interrupted)
{
    struct rig rig;
    struct bench bench;
    be_quiet();
    make_directory(&rig, false);
    bench_init(&bench, &rig);
    for (size_t i = 0; i < bench.files.n; i++) {
        struct file *file = &bench.files.file[i];
        if (strncmp(file->name, "MANIFEST", 8) != 0) {
            file->bytes[is_segment(file) ? 4100 : 70] ^= 1;
        }
    }
    for (unsigned n = 1;; n = long_next(n)) {
        struct fake_disk *fake = disk_of(&bench.files);
        struct disk *disk = fake_disk_as_disk(fake);
        struct buf found = {0};
        const struct salvage_config config = {.disk = disk,
            .logger = &rig.logger,
            .free_bytes = UINT64_MAX,
            .bits_budget = FLIP_BUDGET,
            .codec = BLOCK_AUTO,
            .level = 1};
        enum salvage_outcome outcome;
        if (_i == 0) {
            fake_disk_die(fake, n);
        } else {
            fake_disk_fail(fake, FAKE_ALL, n, EIO, false);
        }
        (void)salvage_run(&config, &found, &outcome);
        bool is_enough =
            _i == 0 ? !fake_disk_is_dead(fake) : fake_disk_heal(fake) == 0;
        if (n % 2 == 0) {
            fake_disk_crash(fake);
        } else {
            fake_disk_revive(fake);
        }
        ck_assert_int_eq(salvage_run(&config, &found, &outcome), 0);
        ck_assert_int_ne(outcome, SALVAGE_LOSSY);
        ck_assert_int_eq(data_check_disk(disk, &rig.logger, &found), 0);
        ck_assert_int_eq(read_state(disk, &rig.logger, bench.now), 0);
        ck_assert_uint_eq(differ(bench.whole, bench.now, false), 0);
        expect_all(&rig, fake);
        buf_fini(&found);
        fake_disk_destroy(&fake);
        if (is_enough) {
            ck_assert_uint_gt(n, 10);
            break;
        }
    }
    bench_fini(&bench);
    rig_fini(&rig);
}
END_TEST

/* What is there and not here, and the older copy of the manifest. */
static void
add_older(struct files *here, const struct files *there)
{
    for (size_t i = 0; i < there->n; i++) {
        const struct file *file = &there->file[i];
        size_t k = 0;
        while (k < here->n && strcmp(here->file[k].name, file->name) != 0) {
            k++;
        }
        if (k == here->n || strcmp(file->name, "MANIFEST.copy") == 0) {
            ck_assert_uint_lt(k, FILES_MAX);
            here->n += k == here->n;
            free(here->file[k].bytes);
            here->file[k] = *file;
        } else {
            free(file->bytes);
        }
    }
}

/* A crash came between the manifest and its copy, and another one ends the next
 * start at each of its steps: what the copy names is there. */
START_TEST(test_older_copy)
{
    struct rig rig;
    struct bench bench;
    struct files older;
    be_quiet();
    rig_init(&rig, WAL_SYNC_ALWAYS, ID_CLUSTERS, 6);
    ck_assert_int_eq(rig_open(&rig), 0);
    rig_add_counter(&rig, 'a');
    set_some(&rig, "ax", 0, RIG_IDS, UINT32_MAX);
    ck_assert_int_eq(rig_checkpoint(&rig), 0);
    set_some(&rig, "ax", 0, FEW, UINT32_MAX);
    read_files(rig.data.disk, &older);
    ck_assert_int_eq(rig_checkpoint(&rig), 0);
    ck_assert_int_eq(rig_close(&rig), 0);
    bench_init(&bench, &rig);
    add_older(&bench.files, &older);
    bool is_dead = true;
    for (unsigned n = 1; is_dead; n++) {
        enum salvage_outcome outcome;
        fake_disk_destroy(&rig.fake);
        rig.fake = disk_of(&bench.files);
        struct disk *disk = rig.data.disk = fake_disk_as_disk(rig.fake);
        const struct salvage_config config = {
            .disk = disk, .logger = &rig.logger, .free_bytes = UINT64_MAX};
        fake_disk_die(rig.fake, n);
        if (rig_open(&rig) == 0) {
            (void)rig_close(&rig);
        }
        is_dead = fake_disk_is_dead(rig.fake);
        fake_disk_revive(rig.fake);
        ck_assert_int_eq(disk->calls->unlink(disk, "MANIFEST"), 0);
        buf_clear(&bench.report);
        ck_assert_int_eq(salvage_run(&config, &bench.report, &outcome), 0);
        ck_assert_int_eq(read_state(disk, &rig.logger, bench.now), 0);
        ck_assert_uint_eq(differ(bench.whole, bench.now, false), 0);
    }
    bench_fini(&bench);
    rig_fini(&rig);
}
END_TEST

/* A manifest that is ahead of its log is refused, and a salvage lets the log go
 * on behind it. */
START_TEST(test_above_the_log)
{
    struct rig rig;
    struct bench bench;
    struct manifest manifest;
    struct buf found = {0};
    enum salvage_outcome outcome;
    be_quiet();
    rig_init(&rig, WAL_SYNC_ALWAYS, ID_CLUSTERS, 7);
    ck_assert_int_eq(rig_open(&rig), 0);
    rig_add_counter(&rig, 'a');
    set_some(&rig, "ax", 0, FEW, UINT32_MAX);
    ck_assert_int_eq(rig_checkpoint(&rig), 0);
    set_some(&rig, "ax", FEW, 2 * FEW, UINT32_MAX);
    ck_assert_int_eq(rig_close(&rig), 0);
    bench_init(&bench, &rig);
    struct disk *disk = rig.data.disk;
    const struct salvage_config config = {
        .disk = disk, .logger = &rig.logger, .free_bytes = UINT64_MAX};
    manifest_init(&manifest);
    ck_assert_int_eq(manifest_read(disk, &manifest, NULL), 0);
    manifest.schema_seq += 2 * REPLAY_SEQ_GAP;
    ck_assert_int_eq(manifest_write(disk, &manifest, NULL, NULL), 0);
    ck_assert_int_eq(manifest_write_copy(disk, &manifest), 0);
    ck_assert_int_eq(rig_open(&rig), ERR_CORRUPT);
    ck_assert_int_eq(data_check_disk(disk, &rig.logger, &found), ERR_CORRUPT);
    ck_assert_int_eq(salvage_run(&config, &bench.report, &outcome), 0);
    ck_assert_int_ne(outcome, SALVAGE_SOUND);
    ck_assert_int_eq(data_check_disk(disk, &rig.logger, &found), 0);
    ck_assert_int_eq(read_state(disk, &rig.logger, bench.now), 0);
    ck_assert_uint_eq(differ(bench.whole, bench.now, false), 0);
    ck_assert_int_eq(rig_open(&rig), 0);
    set_some(&rig, "ax", 0, FEW, UINT32_MAX);
    ck_assert_int_eq(rig_close(&rig), 0);
    manifest_fini(&manifest);
    buf_fini(&found);
    bench_fini(&bench);
    rig_fini(&rig);
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("salvage");
    tcase_add_loop_test(tcase, test_dump_is_what_is_there, 0, 2);
    tcase_add_loop_test(tcase, test_bits, 0, 2);
    tcase_add_test(tcase, test_lengths);
    tcase_add_test(tcase, test_missing);
    tcase_add_test(tcase, test_damaged_and_missing);
    tcase_add_test(tcase, test_goes_on);
    tcase_add_test(tcase, test_holes);
    tcase_add_test(tcase, test_no_manifest);
    tcase_add_loop_test(tcase, test_interrupted, 0, 2);
    tcase_add_test(tcase, test_older_copy);
    tcase_add_test(tcase, test_above_the_log);
    return run_case("salvage", tcase);
}
