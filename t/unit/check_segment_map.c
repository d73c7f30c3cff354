/* SPDX-License-Identifier: BSD-3-Clause */
/* The maps of what is covered, beside an array that says of each id which file
 * covers it. */
#include "tier/segment_map.h"

#include "base/err.h"
#include "unit/segment_map_help.h"
#include "unit/survives.h"

#include <pthread.h>
#include <stdio.h>

enum { SHARDS = 4, IDS = 240, SLOT = 3, STEPS = 600 };

struct world {
    struct qsbr qsbr;
    struct engine *engine;
    struct fake_disk *fake;
    struct segment_map segment_map;
    uint64_t n_files;
    uint64_t first_id;        /* of the ids of the array */
    uint64_t of[SHARDS][IDS]; /* the number of the file; 0: none */
    uint64_t random;
    atomic_bool ended;
};

static void
begin(struct world *world, uint64_t first_id, uint64_t seed)
{
    *world = (struct world){.first_id = first_id, .random = seed};
    ground_init(SHARDS, seed, &world->qsbr, &world->engine, &world->fake);
    segment_map__init(
        &world->segment_map, world->engine, SHARDS, &world->qsbr, NULL);
    segment_map__end_loading(&world->segment_map);
}

static void
end(struct world *world)
{
    segment_map__fini(&world->segment_map);
    ground_fini(&world->qsbr, &world->engine, &world->fake);
}

/* A file with n records; the caller's reference. */
static struct segment_map_file *
make_file(struct world *world, size_t n)
{
    static struct records records;
    const struct segment_write_config write = write_to(world->fake);
    struct segment_head head;
    uint64_t *seq = calloc(SHARDS, sizeof *seq);
    uint64_t number = ++world->n_files;
    make_records(&records, ID_SEQUENTIAL, LOOK_WIDE, n, 1);
    ck_assert_int_eq(write_records(&write, number, &records, &head), 0);
    struct segment_map_file *file =
        segment_map__file_create(open_segment(world->fake, number), seq, NULL);
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(file->number, number);
    return file;
}

static unsigned
shard_of(struct world *world, uint64_t id, uint64_t *row)
{
    unsigned shard;
    engine_row(world->engine, id, &shard, row);
    return shard;
}

/* All that is asked of one shard. */
static void
check_shard(struct world *world, unsigned shard)
{
    struct segment_map *segment_map = &world->segment_map;
    bool same = true;
    uint64_t row;
    for (uint64_t i = 0; i < IDS; i++) {
        uint64_t id = world->first_id + i, want = world->of[shard][i];
        if (shard_of(world, id, &row) != shard) {
            continue;
        }
        struct segment_map_file *file =
            segment_map__hold(segment_map, SLOT, id, want);
        same = same &&
            segment_map__has(segment_map, SLOT, id) == (want != 0) &&
            segment_map->cover.version_fn(
                &segment_map->cover, SLOT, shard, row) == want &&
            (file != NULL) == (want != 0) &&
            segment_map__hold(segment_map, SLOT, id, want + 1) == NULL &&
            !segment_map__has(segment_map, SLOT + 1, id);
        if (file != NULL) {
            same = same && file->number == want;
            segment_map_file_release(file);
        }
    }
    ck_assert(same);
}

/* Whether some of a few rows are covered. */
static void
check_any(struct world *world, unsigned shard)
{
    struct segment_map *segment_map = &world->segment_map;
    uint64_t n_rows = IDS / SHARDS, first_row = world->first_id / SHARDS;
    uint64_t first = random_below(&world->random, n_rows);
    uint64_t last = first + random_below(&world->random, n_rows - first);
    bool any = false;
    for (uint64_t i = first * SHARDS; i < (last + 1) * SHARDS; i++) {
        any = any || world->of[shard][i] != 0;
    }
    ck_assert_int_eq(segment_map->cover.any_fn(&segment_map->cover, SLOT,
                         shard, first_row + first, first_row + last),
        any);
}

/* How far the records reach that the files have of what they cover: each of
 * those is looked at. */
static void
check_last_row(struct world *world, unsigned shard)
{
    const struct engine_cover *cover = &world->segment_map.cover;
    const struct segment_map_list *list =
        segment_map__settled(&world->segment_map, SLOT);
    uint64_t want = 0, row = 0;
    bool any = false;
    for (size_t k = 0; list != NULL && k < list->n; k++) {
        const struct segment_map_entry *entry = &list->entry[k];
        uint64_t last_id = segment_head(entry->file->segment)->last_id;
        for (uint64_t i = 0; i < IDS; i++) {
            uint64_t id = world->first_id + i;
            if (id >= entry->first_id && id <= entry->last_id &&
                id <= last_id) {
                want = id / SHARDS;
                any = true;
            }
        }
    }
    ck_assert_int_eq(cover->last_row_fn(cover, SLOT, shard, &row), any);
    ck_assert(!any || row == want);
    ck_assert(!cover->last_row_fn(cover, SLOT + 1, shard, &row));
}

/* What is listed of ids number first..last, of a map that all shards have. */
static void
check_list(struct world *world, uint64_t first, uint64_t last)
{
    struct segment_map_list *list;
    uint64_t at = first;
    bool same = true;
    ck_assert_int_eq(
        segment_map_list(&world->segment_map, SLOT, world->first_id + first,
            world->first_id + last, &list),
        0);
    for (size_t k = 0; list != NULL && k < list->n; k++) {
        const struct segment_map_entry *entry = &list->entry[k];
        for (; world->first_id + at < entry->first_id; at++) {
            same = same && world->of[0][at] == 0;
        }
        same = same && entry->first_id <= entry->last_id &&
            entry->last_id <= world->first_id + last;
        for (; at <= last && world->first_id + at <= entry->last_id; at++) {
            same = same && world->of[0][at] == entry->file->number;
        }
    }
    for (; at <= last; at++) {
        same = same && world->of[0][at] == 0;
    }
    ck_assert(same);
    segment_map_list_destroy(list);
}

/* Files and entries that there are. */
static void
check_sum(struct world *world)
{
    struct segment_map_sum sum;
    static bool seen[STEPS + 1];
    uint64_t files = 0;
    memset(seen, 0, sizeof seen);
    for (uint64_t i = 0; i < IDS; i++) {
        uint64_t number = world->of[0][i];
        files += number != 0 && !seen[number];
        seen[number] = true;
    }
    segment_map__sum(&world->segment_map, &sum);
    ck_assert_uint_eq(sum.files, files);
    ck_assert_uint_eq(sum.blocks, files);
    ck_assert_uint_le(sum.records, files); /* test_parts */
    ck_assert_uint_ge(sum.entries, files);
}

/* Covers ids number first..last by a new file, or by nothing. */
static void
exchange(struct world *world, uint64_t first, uint64_t last, bool any)
{
    struct segment_map *segment_map = &world->segment_map;
    struct segment_map_change change;
    struct segment_map_entry entry = {
        world->first_id + first, world->first_id + last, NULL};
    entry.file = any ? make_file(world, 1) : NULL;
    ck_assert_int_eq(segment_map__begin(segment_map, SLOT, entry.first_id,
                         entry.last_id, &entry, any, &change),
        0);
    for (unsigned shard = 0; shard < SHARDS; shard++) {
        check_shard(world, shard); /* as before */
        segment_map__publish(&change, shard);
        for (uint64_t i = first; i <= last; i++) {
            world->of[shard][i] = any ? entry.file->number : 0;
        }
        check_shard(world, shard);
    }
    segment_map__end(&change);
    segment_map_verify(segment_map);
    if (any) {
        segment_map_file_release(entry.file);
    }
}

/* Random ranges of whole rows, near the first id. */
static void
exchange_often(uint64_t first_id)
{
    struct world world;
    begin(&world, first_id, first_id + 1);
    ck_assert(!segment_map_any(&world.segment_map));
    for (unsigned step = 0; step < STEPS; step++) {
        uint64_t rows = IDS / SHARDS;
        uint64_t first = random_below(&world.random, rows);
        uint64_t n = 1 + random_below(&world.random, 12);
        uint64_t last = first + n > rows ? rows - 1 : first + n - 1;
        exchange(&world, first * SHARDS, last * SHARDS + SHARDS - 1,
            random_below(&world.random, 4) > 0);
        for (unsigned shard = 0; shard < SHARDS; shard++) {
            check_any(&world, shard);
            check_last_row(&world, shard);
        }
        check_list(&world, 0, IDS - 1);
        check_list(&world, first * SHARDS, last * SHARDS + SHARDS - 1);
        check_sum(&world);
    }
    ck_assert(segment_map_any(&world.segment_map));
    exchange(&world, 0, IDS - 1, true);
    segment_map_clear(&world.segment_map, SLOT);
    memset(world.of, 0, sizeof world.of);
    check_list(&world, 0, IDS - 1);
    ck_assert_ptr_null(segment_map__settled(&world.segment_map, SLOT));
    end(&world);
}

START_TEST(test_exchange)
{
    exchange_often(0);
    exchange_often(UINT64_C(1) << 40);
    exchange_often(UINT64_MAX - IDS + 1);
}
END_TEST

/* While it is loaded, what is covered is at its default. */
START_TEST(test_loading)
{
    struct world world;
    uint64_t row;
    begin(&world, 0, 1);
    exchange(&world, 0, 7, true);
    /* relaxed: one thread */
    atomic_store_explicit(
        &world.segment_map.loading, true, memory_order_relaxed);
    const struct engine_cover *cover = &world.segment_map.cover;
    for (uint64_t id = 0; id < 16; id++) {
        unsigned shard = shard_of(&world, id, &row);
        ck_assert_uint_eq(cover->version_fn(cover, SLOT, shard, row),
            id < 8 ? ENGINE_COVER_LOADING : 0);
    }
    end(&world);
}
END_TEST

/* Which columns the files in use have. */
START_TEST(test_columns)
{
    struct world world;
    begin(&world, 0, 1);
    const struct engine_cover *cover = &world.segment_map.cover;
    exchange(&world, 4, 7, true);
    exchange(&world, 20, 23, true);
    const struct segment_map_list *list =
        segment_map__settled(&world.segment_map, SLOT);
    const struct segment_head *head =
        segment_head(list->entry[1].file->segment);
    for (unsigned shard = 0; shard < SHARDS; shard++) {
        for (unsigned c = 0; c < head->n_columns; c++) {
            uint32_t serial = head->column[c].serial;
            ck_assert(cover->column_fn(cover, SLOT, shard, serial));
            ck_assert(!cover->column_fn(cover, SLOT + 1, shard, serial));
        }
        ck_assert(!cover->column_fn(cover, SLOT, shard, UINT32_MAX));
    }
    segment_map_clear(&world.segment_map, SLOT);
    ck_assert(!cover->column_fn(cover, SLOT, 0, 1));
    end(&world);
}
END_TEST

/* A file stays as long as somebody has it, though no map has. */
START_TEST(test_hold)
{
    struct world world;
    begin(&world, 0, 1);
    exchange(&world, 0, IDS - 1, true);
    struct segment_map_file *file =
        segment_map__hold(&world.segment_map, SLOT, 9, 1);
    ck_assert_ptr_nonnull(file);
    exchange(&world, 0, IDS - 1, true);
    ck_assert_ptr_null(segment_map__hold(&world.segment_map, SLOT, 9, 1));
    segment_map_clear(&world.segment_map, SLOT);
    ck_assert_uint_eq(segment_head(file->segment)->number, 1);
    segment_map_file_release(file);
    end(&world);
}
END_TEST

/* ---- a counter that goes while its maps are listed ---- */

static void *
list_often(void *arg)
{
    struct world *world = arg;
    while (!atomic_load(&world->ended)) {
        struct segment_map_list *list;
        if (segment_map_list(
                &world->segment_map, SLOT, 0, UINT64_MAX, &list) != 0) {
            ck_abort_msg("no list");
        }
        for (size_t k = 0; list != NULL && k < list->n; k++) {
            if (segment_head(list->entry[k].file->segment)->number == 0) {
                ck_abort_msg("no number");
            }
        }
        segment_map_list_destroy(list);
    }
    return NULL;
}

START_TEST(test_list_and_clear)
{
    struct world world;
    pthread_t thread;
    begin(&world, 0, 1);
    ck_assert_int_eq(pthread_create(&thread, NULL, list_often, &world), 0);
    for (unsigned i = 0; i < 200; i++) {
        exchange(&world, 0, IDS - 1, true);
        segment_map_clear(&world.segment_map, SLOT);
        memset(world.of, 0, sizeof world.of);
    }
    atomic_store(&world.ended, true);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    end(&world);
}
END_TEST

/* ---- what must hold of the maps ---- */

/* Three entries, 0..7, 8..15 and 20..23, of a file each. */
static void
begin_three(struct world *world)
{
    begin(world, 0, 1);
    exchange(world, 0, 7, true);
    exchange(world, 8, 15, true);
    exchange(world, 20, 23, true);
}

enum breakage {
    CUT_ROW,
    TURNED_ROUND,
    OVERLAPPING,
    OUT_OF_ORDER,
    OTHER_NUMBER,
    OTHER_COUNTER,
    FILE_GONE,
    NOT_HELD,
    OTHER_SHARD,
    NOBODY_KNOWS,
    SEGMENT_MAP_GONE,
    BREAKAGES
};

/* Puts the map of that counter, of all shards, into another place. */
static void
move_maps(struct segment_map *segment_map, unsigned to)
{
    /* relaxed, both times: one thread */
    atomic_store_explicit(&segment_map->counter[to],
        atomic_load_explicit(
            &segment_map->counter[SLOT], memory_order_relaxed),
        memory_order_relaxed);
}

struct trial {
    struct world *world;
    enum breakage breakage;
};

static void
break_and_verify(void *context)
{
    const struct trial *trial = context;
    struct segment_map *segment_map = &trial->world->segment_map;
    struct segment_map_list *map =
        (struct segment_map_list *)(uintptr_t)segment_map__settled(
            segment_map, SLOT);
    struct segment_map_entry *entry = map->entry, first = entry[0];
    switch (trial->breakage) {
    case CUT_ROW:
        entry[2].last_id = 22;
        break;
    case TURNED_ROUND:
        entry[2] = (struct segment_map_entry){20, 15, entry[2].file};
        break;
    case OVERLAPPING:
        entry[0].last_id = 11;
        break;
    case OUT_OF_ORDER:
        entry[0] = entry[1];
        entry[1] = first;
        break;
    case OTHER_NUMBER:
        entry[1].file->number++;
        break;
    case OTHER_COUNTER:
        move_maps(segment_map, SLOT + 1);
        break;
    case FILE_GONE:
        entry[1].file->magic = 0;
        break;
    case NOT_HELD:
        atomic_store(&entry[1].file->n_refs, 0);
        break;
    case OTHER_SHARD:
        atomic_store(&atomic_load(&segment_map->counter[SLOT])->map[2], NULL);
        break;
    case NOBODY_KNOWS:
        atomic_store(&segment_map->any, false);
        break;
    case SEGMENT_MAP_GONE:
        segment_map->magic = 0;
        break;
    case BREAKAGES: /* nothing is broken */
        break;
    }
    segment_map_verify(segment_map);
}

START_TEST(test_verify)
{
    struct world world;
    begin_three(&world);
    for (unsigned i = 0; i <= BREAKAGES; i++) {
        struct trial trial = {&world, (enum breakage)i};
        ck_assert_msg(
            survives(break_and_verify, &trial) == (i >= BREAKAGES), "%u", i);
    }
    end(&world);
}
END_TEST

/* Whoever exchanges holds edit_lock, where there is one, but while it loads. */
static void
exchange_once(void *context)
{
    exchange(context, 0, 7, false);
}

START_TEST(test_edit_lock)
{
    struct mutex lock;
    struct world world;
    begin_three(&world);
    mutex_init(&lock);
    world.segment_map.edit_lock = &lock;
    ck_assert(!survives(exchange_once, &world));
    mutex_lock(&lock);
    ck_assert(survives(exchange_once, &world));
    mutex_unlock(&lock);
    /* relaxed: one thread */
    atomic_store_explicit(
        &world.segment_map.loading, true, memory_order_relaxed);
    segment_map_verify(&world.segment_map);
    segment_map__end_loading(&world.segment_map);
    end(&world);
    mutex_fini(&lock);
}
END_TEST

/* A map leaves each shard once, and is freed only then. */
static void
end_too_soon(void *context)
{
    struct world *world = context;
    struct segment_map_change change;
    (void)segment_map__begin(
        &world->segment_map, SLOT, 0, 7, NULL, 0, &change);
    segment_map__publish(&change, 0);
    segment_map__end(&change);
}

static void
publish_twice(void *context)
{
    struct world *world = context;
    struct segment_map_change change;
    (void)segment_map__begin(
        &world->segment_map, SLOT, 0, 7, NULL, 0, &change);
    segment_map__publish(&change, 0);
    segment_map__publish(&change, 0);
}

static void
begin_with_part_of_row(void *context)
{
    struct world *world = context;
    struct segment_map_change change;
    (void)segment_map__begin(
        &world->segment_map, SLOT, 0, 6, NULL, 0, &change);
}

START_TEST(test_misuse)
{
    struct world world;
    begin_three(&world);
    ck_assert(!survives(end_too_soon, &world));
    ck_assert(!survives(publish_twice, &world));
    ck_assert(!survives(begin_with_part_of_row, &world));
    end(&world);
}
END_TEST

/* The parts of a file have its records together, each about its own. */
START_TEST(test_parts)
{
    enum { PARTS = 8, RECORDS_N = SEGMENT_RECORDS_MAX };
    struct world world;
    begin(&world, 0, 7);
    struct segment_map_file *file = make_file(&world, RECORDS_N);
    const struct segment_head *head = segment_head(file->segment);
    uint64_t step = (head->last_id - head->first_id) / PARTS;
    uint64_t sum = 0, block = head->records / head->n_blocks + 1;
    struct segment_map_entry entry = {0, UINT64_MAX, file};
    ck_assert_uint_gt(head->n_blocks, 4 * PARTS);
    ck_assert_uint_eq(segment_map__entry_records(&entry), RECORDS_N);
    for (unsigned i = 0; i < PARTS; i++) {
        entry.last_id =
            i + 1 < PARTS ? head->first_id + (i + 1) * step : UINT64_MAX;
        uint64_t n = segment_map__entry_records(&entry);
        ck_assert_uint_lt(n, RECORDS_N / PARTS + 2 * block);
        ck_assert_uint_gt(n + 2 * block, RECORDS_N / PARTS);
        sum += n;
        entry.first_id = entry.last_id + 1;
    }
    ck_assert_uint_le(sum, RECORDS_N);
    ck_assert_uint_gt(sum + PARTS, RECORDS_N);
    entry = (struct segment_map_entry){head->last_id + 1, UINT64_MAX, file};
    ck_assert_uint_eq(segment_map__entry_records(&entry), 0);
    segment_map_file_release(file);
    end(&world);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_exchange, test_loading, test_columns,
        test_hold, test_list_and_clear, test_verify, test_edit_lock,
        test_misuse, test_parts};
    return run_tests("covers", tests, COUNT_OF(tests));
}
