/* SPDX-License-Identifier: BSD-3-Clause */
/* Workers that read cold records by rings of their own: answers, clients that
 * go meanwhile, and a stop with reads under way. */
#include "unit/worker_help.h"

#include "lib/fake_disk.h"
#include "wal/wal.h"

#include <inttypes.h>
#include <semaphore.h>

enum { RECORDS = 20000, STEP = 100, CLIENTS = 20, LINE_BYTES = 64 };

struct world {
    struct rig rig;
    struct fake_disk *fake;
    sem_t loaded;
};

static void
has_loaded(void *context, int err)
{
    struct world *world = context;
    ck_assert_int_eq(err, 0);
    ck_assert_int_eq(sem_post(&world->loaded), 0);
}

/* In the place of the rig's store: one with a cold tier, of which nothing stays
 * in memory. */
static void
open_store(struct world *world)
{
    struct rig *rig = &world->rig;
    struct data_config data = {.dir = {.dir_fd = -1, .lock_fd = -1},
        .disk = fake_disk_as_disk(world->fake),
        .sync = WAL_SYNC_NONE,
        .interval_ms = 1000,
        .log_file_bytes = WAL_FILE_BYTES_MIN,
        .unsynced_bytes_max = 1 << 20,
        .checkpoint_log_bytes = UINT64_MAX,
        .cold_threads = 2,
        .cold_level = 1,
        .seals_when_told = true,
        .threads = 1,
        .logger = &rig->logger,
        .loaded_fn = has_loaded,
        .context = world};
    struct store_config config = {.shards = SMALL_STORE_SHARDS,
        .hot_bytes = SMALL_STORE_HOT_BYTES,
        .items = {.limit_bytes = SMALL_STORE_BYTES,
            .item_bytes_max = SMALL_STORE_ITEM_BYTES},
        .data = &data};
    ck_assert_int_eq(store_destroy(&rig->inner), 0);
    ck_assert_int_eq(store_create(&config, &rig->inner), 0);
    while (sem_wait(&world->loaded) != 0) {
    }
    store_begin(rig->inner);
    rig->store = rig->inner;
}

/* RECORDS sealed ones: the number of id i is i % 1000 + 1. */
static void
fill(struct rig *rig)
{
    char line[LINE_BYTES];
    int fd = connect_to(rig, 0);
    talk(fd, "add counter w\r\n", "STORED\r\n");
    talk(fd, "add column w w_id primarykey\r\n", "STORED\r\n");
    talk(fd, "add column w w_a max=32 suffix=a\r\n", "STORED\r\n");
    for (unsigned id = 0; id < RECORDS; id++) {
        int len = snprintf(
            line, sizeof line, "set w %u %u noreply\r\n", id, id % 1000 + 1);
        send_bytes(fd, line, (size_t)len);
    }
    talk(fd, "seal w all\r\n", "OK\r\n");
    close(fd);
}

static struct world *
world_create(void)
{
    struct world *world = calloc(1, sizeof *world);
    ck_assert_ptr_nonnull(world);
    ck_assert_int_eq(sem_init(&world->loaded, 0, 0), 0);
    rig_init(&world->rig);
    world->fake = fake_disk_create(1);
    open_store(world);
    rig_start(&world->rig);
    fill(&world->rig);
    for (int i = 0; i < RIG_WORKERS; i++) { /* each has begun */
        int fd = connect_to(&world->rig, i);
        talk(fd, "version\r\n", "VERSION test\r\n");
        close(fd);
    }
    return world;
}

static void
world_destroy(struct world *world)
{
    rig_join(&world->rig);
    rig_fini(&world->rig);
    fake_disk_destroy(&world->fake);
    (void)sem_destroy(&world->loaded);
    free(world);
}

struct wanted {
    const char *name;
    uint64_t value;
};

static void
note_stat(void *context, const char *name, const char *value)
{
    struct wanted *wanted = context;
    if (strcmp(name, wanted->name) == 0) {
        wanted->value = strtoull(value, NULL, 10);
    }
}

static uint64_t
cold_stat(struct world *world, const char *name)
{
    struct wanted wanted = {.name = name};
    store_cold_stats(world->rig.store, note_stat, &wanted);
    return wanted.value;
}

/* A get of every STEP-th id from the first on, and what it is answered. */
static void
make_get(unsigned first, struct buf *said, struct buf *answer)
{
    buf_clear(said);
    buf_clear(answer);
    buf_add_text(said, "get");
    for (unsigned id = first; id < RECORDS; id += STEP) {
        char value[LINE_BYTES];
        int len = snprintf(value, sizeof value, "%u", id % 1000 + 1);
        buf_addf(said, " %u.a", id);
        buf_addf(answer, "VALUE %u.a 0 %d\r\n%s\r\n", id, len, value);
    }
    buf_add(said, "\r\n", 3);
    buf_add(answer, "END\r\n", 6); /* with a 0 each */
}

START_TEST(test_answers)
{
    struct world *world = world_create();
    struct buf said = {0}, answer = {0};
    int fd[CLIENTS];
    uint64_t reads = cold_stat(world, "reads");
    ck_assert_uint_eq(cold_stat(world, "rings"), RIG_WORKERS);
    for (unsigned i = 0; i < CLIENTS; i++) {
        fd[i] = connect_to(&world->rig, (int)i % RIG_WORKERS);
        make_get(i, &said, &answer);
        say(fd[i], said.data);
    }
    for (unsigned i = 0; i < CLIENTS; i++) {
        make_get(i, &said, &answer);
        expect(fd[i], answer.data);
        talk(fd[i], "get 7.a\r\n", "VALUE 7.a 0 1\r\n8\r\nEND\r\n");
        talk(fd[i], "incr 9.a 0\r\n", "10\r\n");
        close(fd[i]);
    }
    ck_assert_uint_gt(cold_stat(world, "ring_reads"), 0);
    ck_assert_uint_le(
        cold_stat(world, "ring_reads"), cold_stat(world, "reads") - reads);
    ck_assert_uint_eq(cold_stat(world, "ring_failures"), 0);
    ck_assert_uint_eq(cold_stat(world, "reading"), 0);
    buf_fini(&said);
    buf_fini(&answer);
    rig_stop(&world->rig);
    world_destroy(world);
}
END_TEST

/* The disk fails: nobody waits for ever, and nobody is told a wrong number. */
START_TEST(test_a_disk_that_fails)
{
    struct world *world = world_create();
    int fd = connect_to(&world->rig, 1);
    fake_disk_fail(world->fake, 1 << FAKE_READ, 1, EIO, true);
    talk(fd, "get 7.a\r\n",
        "SERVER_ERROR a counter cannot be read from the disk, see the "
        "server's log\r\n");
    fake_disk_heal(world->fake);
    talk(fd, "get 7.a\r\n", "VALUE 7.a 0 1\r\n8\r\nEND\r\n");
    ck_assert_uint_eq(cold_stat(world, "ring_failures"), 1);
    close(fd);
    rig_stop(&world->rig);
    world_destroy(world);
}
END_TEST

/* Some go before they are answered, then the workers are told to stop. */
START_TEST(test_clients_that_go)
{
    struct world *world = world_create();
    struct buf said = {0}, answer = {0};
    int fd[CLIENTS];
    for (unsigned i = 0; i < CLIENTS; i++) {
        fd[i] = connect_to(&world->rig, (int)i % RIG_WORKERS);
        make_get(i, &said, &answer);
        say(fd[i], said.data);
        if (i % 2 == 0) {
            close(fd[i]);
        }
    }
    rig_stop(&world->rig);
    for (unsigned i = 1; i < CLIENTS; i += 2) {
        close(fd[i]);
    }
    buf_fini(&said);
    buf_fini(&answer);
    world_destroy(world);
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("worker_ring");

    tcase_add_test(tcase, test_answers);
    tcase_add_test(tcase, test_a_disk_that_fails);
    tcase_add_test(tcase, test_clients_that_go);
    return run_case("worker_ring", tcase);
}
