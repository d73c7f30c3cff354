/* SPDX-License-Identifier: BSD-3-Clause */
/* Terms in a data directory: a start, --check, --dump and --salvage know them,
 * a checkpoint puts them into the manifest, and it writes none before those who
 * have copies say that all in it is committed. */
#include "offline/data_check.h"
#include "offline/dump.h"
#include "store/store_repl.h"
#include "unit/salvage_help.h"
#include "wal/log_cut.h"
#include "wal/manifest.h"
#include "wal/replay.h"
#include "wal/replica_file.h"
#include "wal/wal_replica.h"

/* Opens the log of a stopped directory behind what was found. */
static struct wal *
open_behind(struct rig *rig, struct wal_start start,
    const struct replay_end *end, const struct manifest *manifest)
{
    struct wal *wal;
    start.next_number = end->number + 1;
    start.before_end = end->end;
    start.before_epoch = end->epoch;
    start.epoch = histories_epoch(
        &manifest->histories, start.next_number, manifest->epoch);
    if (start.next_seq == 0) {
        start.next_seq = end->next_seq;
    }
    const struct wal_config config = {.disk = rig->data.disk,
        .logger = &rig->logger,
        .sync = WAL_SYNC_ALWAYS,
        .interval_ms = 1000,
        .file_bytes = 1 << 16,
        .unsynced_bytes_max = 1 << 20,
        .start = start};
    ck_assert_int_eq(wal_open(&config, &wal), 0);
    return wal;
}

/* The same behind all that it has. */
static struct wal *
open_log(struct rig *rig, struct wal_start start)
{
    struct manifest manifest;
    struct replay_end end;
    manifest_init(&manifest);
    ck_assert_int_eq(manifest_read(rig->data.disk, &manifest, NULL), 0);
    ck_assert_int_eq(replay_run(&(struct replay){.disk = rig->data.disk,
                                    .epoch = manifest.epoch,
                                    .histories = &manifest.histories,
                                    .number = manifest.log_number},
                         &end),
        0);
    struct wal *wal = open_behind(rig, start, &end, &manifest);
    manifest_fini(&manifest);
    return wal;
}

static struct entry_term
term_of(uint32_t number)
{
    struct entry_term term = {.term = number, .branch = 1000 + number};
    ck_assert(node_name_set(&term.node, "db-1", 4));
    return term;
}

/* A term begins behind all that a stopped directory has, and changes nothing
 * else. */
static void
add_term(struct rig *rig, uint32_t number, const struct history *terms)
{
    struct wal *wal =
        open_log(rig, (struct wal_start){.is_replica = true, .terms = terms});
    struct entry_term term = term_of(number);
    uint64_t seq;
    ck_assert_int_eq(wal_begin_term(wal, &term, &seq), 0);
    ck_assert_uint_eq(seq, seq_first(number));
    ck_assert_int_eq(wal_sync_up_to(wal, seq), 0);
    ck_assert_int_eq(wal_close(&wal), 0);
}

/* Numbers, and a term behind them. */
static void
make_directory(struct rig *rig)
{
    rig_init(rig, WAL_SYNC_ALWAYS, ID_CLUSTERS, 5);
    ck_assert_int_eq(rig_open(rig), 0);
    rig_add_counter(rig, 'a');
    (void)rig_set_all(rig, 'a', 5);
    ck_assert_int_eq(rig_close(rig), 0);
    add_term(rig, 3, NULL);
}

static int
take_text(void *context, const char *text, size_t len)
{
    buf_add(context, text, len);
    return 0;
}

static void
expect_dump(struct rig *rig, const char *text)
{
    struct buf out = {0};
    const struct dump_config config = {.disk = rig->data.disk,
        .logger = &rig->logger,
        .part = DUMP_LOG,
        .write_fn = take_text,
        .context = &out};
    ck_assert_int_eq(dump_run(&config), 0);
    buf_add(&out, "", 1);
    ck_assert_msg(
        strstr(out.data, text) != NULL, "no %s in\n%s", text, out.data);
    buf_fini(&out);
}

static void
expect_well(struct rig *rig, int wanted)
{
    struct buf out = {0};
    ck_assert_int_eq(
        data_check_disk(rig->data.disk, &rig->logger, &out), wanted);
    buf_fini(&out);
}

static enum salvage_outcome
salvage_it(struct rig *rig)
{
    struct buf report = {0};
    enum salvage_outcome outcome;
    const struct salvage_config config = {.disk = rig->data.disk,
        .logger = &rig->logger,
        .free_bytes = UINT64_MAX,
        .bits_budget = SALVAGE_BITS_BUDGET,
        .shards = rig->config.shards,
        .seed = 3};
    ck_assert_int_eq(salvage_run(&config, &report, &outcome), 0);
    buf_fini(&report);
    return outcome;
}

static struct history
terms_in_manifest(struct rig *rig, uint64_t *committed)
{
    struct manifest manifest;
    manifest_init(&manifest);
    ck_assert_int_eq(manifest_read(rig->data.disk, &manifest, NULL), 0);
    struct history terms = manifest.terms;
    *committed = manifest.committed_seq;
    manifest_fini(&manifest);
    return terms;
}

/* A stopped directory can begin a term still, and a start reads it. has_all:
 * what clients were told is in it. */
static void
expect_leads(struct rig *rig, bool has_all)
{
    uint64_t seq;
    rig->data.is_replicated = true;
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_int_eq(rig_open(rig), 0);
        ck_assert_int_eq(store_begin_term(rig->store, "db-2", 4, 0, &seq), 0);
        store_set_committed(rig->store, UINT64_MAX);
        if (has_all) {
            ck_assert_int_eq(rig_set_all(rig, 'a', 8 + i), STORE_COMMITTED);
        }
        ck_assert_int_eq(rig_checkpoint(rig), 0);
        ck_assert_int_eq(rig_close(rig), 0);
        expect_well(rig, 0);
    }
    ck_assert_int_eq(rig_open(rig), 0);
    if (has_all) {
        rig_expect_all(rig);
    }
    ck_assert_int_eq(rig_close(rig), 0);
}

START_TEST(test_all_know_it)
{
    struct rig rig;
    uint64_t committed;
    make_directory(&rig);
    expect_well(&rig, 0);
    expect_dump(&rig, "term 3 branch 00000000000003eb after ");
    ck_assert_int_eq(salvage_it(&rig), SALVAGE_SOUND);
    struct history terms = terms_in_manifest(&rig, &committed);
    ck_assert_uint_eq(terms.n, 0); /* nobody has asked for one */
    ck_assert_int_eq(rig_open(&rig), 0);
    rig_expect_all(&rig);
    (void)rig_set_all(&rig, 'a', 6);
    ck_assert_int_eq(rig_checkpoint(&rig), 0);
    terms = terms_in_manifest(&rig, &committed);
    ck_assert_uint_eq(terms.n, 2);
    ck_assert_uint_eq(terms.at[0].term, 0);
    ck_assert_uint_eq(terms.at[1].term, 3);
    ck_assert_uint_eq(terms.at[1].branch, 1003);
    ck_assert_uint_ge(committed, seq_first(3));
    ck_assert_int_eq(rig_close(&rig), 0);
    expect_well(&rig, 0);
    expect_dump(&rig, "history term 3 branch 00000000000003eb last open\n");
    expect_dump(&rig, "committed batch ");
    /* of the manifest only, for the log has been forgotten: one more */
    add_term(&rig, 5, &terms);
    expect_well(&rig, 0);
    ck_assert_int_eq(rig_open(&rig), 0);
    rig_expect_all(&rig);
    ck_assert_int_eq(rig_checkpoint(&rig), 0);
    terms = terms_in_manifest(&rig, &committed);
    ck_assert_uint_eq(terms.n, 3);
    ck_assert_uint_eq(terms.at[2].term, 5);
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
}
END_TEST

/* A term that begins elsewhere than behind what is there: a start refuses it,
 * and a salvage leaves it out. */
START_TEST(test_does_not_fit)
{
    struct rig rig;
    uint8_t entry[ENTRY_TERM_BYTES_MAX];
    make_directory(&rig);
    struct entry_term term = term_of(7);
    term.last_seq = seq_make(2, 1);
    struct wal *wal =
        open_log(&rig, (struct wal_start){.next_seq = seq_first(7)});
    uint64_t seq = wal_append(wal, entry, entry__put_term(entry, &term));
    ck_assert_int_eq(wal_sync_up_to(wal, seq), 0);
    ck_assert_int_eq(wal_close(&wal), 0);
    expect_well(&rig, ERR_CORRUPT);
    ck_assert_int_eq(rig_open(&rig), ERR_CORRUPT);
    ck_assert_int_eq(salvage_it(&rig), SALVAGE_LOSSY);
    expect_well(&rig, 0);
    ck_assert_int_eq(rig_open(&rig), 0);
    rig_expect_all(&rig);
    ck_assert_int_eq(rig_close(&rig), 0);
    expect_leads(&rig, true);
    rig_fini(&rig);
}
END_TEST

/* The batch that says so is lost, and with it who wrote what came behind it. */
START_TEST(test_lost)
{
    struct rig rig;
    struct files files;
    make_directory(&rig);
    read_files(rig.data.disk, &files);
    ck_assert_uint_eq(lose_batches(&files, ENTRY_TERM), 1);
    salvage(&rig, &files, SALVAGE_LOSSY, "lost");
    rig_expect_all(&rig);
    ck_assert_int_eq(rig_close(&rig), 0);
    expect_well(&rig, 0);
    expect_leads(&rig, true);
    rig_fini(&rig);
}
END_TEST

/* Something else is lost, and the log is written anew: the term stays. */
START_TEST(test_kept)
{
    struct rig rig;
    struct files files;
    make_directory(&rig);
    read_files(rig.data.disk, &files);
    ck_assert_uint_gt(lose_batches(&files, ENTRY_COUNTER), 0);
    salvage(&rig, &files, SALVAGE_LOSSY, "lost");
    ck_assert_int_eq(rig_close(&rig), 0);
    expect_dump(&rig, "term 3 branch 00000000000003eb after ");
    expect_well(&rig, 0);
    expect_leads(&rig, false);
    rig_fini(&rig);
}
END_TEST

/* What those who have copies do not have is in no manifest, also at a stop. */
START_TEST(test_not_committed)
{
    struct rig rig;
    struct answer answer;
    uint64_t committed, seq;
    make_directory(&rig);
    rig.data.is_replicated = true;
    ck_assert_int_eq(rig_open(&rig), 0);
    ck_assert_int_eq(store_begin_term(rig.store, "db-1", 4, 0, &seq), 0);
    ck_assert_uint_eq(seq, seq_first(4));
    answer_init(&answer);
    struct store_checkpoint checkpoint = {.call = call_of(&answer)};
    ck_assert_int_eq(store_checkpoint(rig.store, &checkpoint), STORE_LATER);
    store_end_calls(rig.store);
    answer_wait(&answer);
    answer_fini(&answer);
    ck_assert_int_eq(checkpoint.err, ERR_CLOSED);
    struct history terms = terms_in_manifest(&rig, &committed);
    ck_assert_uint_eq(terms.n, 0);
    ck_assert_uint_eq(committed, 0);
    ck_assert_int_eq(rig_close(&rig), 0);
    ck_assert_int_eq(rig_open(&rig), 0);
    store_set_committed(rig.store, seq);
    ck_assert_int_eq(rig_checkpoint(&rig), 0);
    terms = terms_in_manifest(&rig, &committed);
    ck_assert_uint_eq(terms.n, 3);
    ck_assert_uint_eq(committed, seq);
    ck_assert_int_eq(rig_close(&rig), 0);
    ck_assert_int_eq(rig_open(&rig), 0);
    rig_expect_all(&rig);
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
}
END_TEST

/* What came behind the term's first batch is cut off: a start refuses the log
 * until the next file is there, and --dump shows what it was. */
START_TEST(test_cut)
{
    struct rig rig;
    struct manifest manifest;
    struct replay_end end;
    make_directory(&rig);
    ck_assert_int_eq(rig_open(&rig), 0);
    (void)rig_set_all(&rig, 'a', 6);
    ck_assert_int_eq(rig_close(&rig), 0);
    manifest_init(&manifest);
    ck_assert_int_eq(manifest_read(rig.data.disk, &manifest, NULL), 0);
    const struct log_cut cut = {.disk = rig.data.disk,
        .logger = &rig.logger,
        .epoch = manifest.epoch,
        .histories = &manifest.histories,
        .number = manifest.log_number,
        .seq = seq_first(3),
        .keep_bytes = 1 << 20};
    ck_assert_int_eq(log_cut_run(&cut, &end), 0);
    ck_assert_uint_eq(end.next_seq, seq_first(3) + 1);
    expect_well(&rig, ERR_CORRUPT);
    struct wal *wal = open_behind(
        &rig, (struct wal_start){.is_replica = true}, &end, &manifest);
    ck_assert_int_eq(wal_close(&wal), 0);
    manifest_fini(&manifest);
    expect_well(&rig, 0);
    expect_dump(&rig, "\ncut cut-00000000000000000001.wal\ncut-batch ");
    ck_assert_int_eq(salvage_it(&rig), SALVAGE_SOUND);
    ck_assert_int_eq(rig_open(&rig), 0);
    ck_assert_int_eq(rig_close(&rig), 0);
    expect_dump(&rig, "\ncut cut-00000000000000000001.wal\ncut-batch ");
    rig_fini(&rig);
}
END_TEST

/* What is known of other copies is checked and shown; after a salvage the
 * directory is none of them. */
START_TEST(test_replica)
{
    struct rig rig;
    struct files files;
    struct manifest manifest;
    struct replica_file file = {.level = REPLICA_WRITTEN, .epoch = 1};
    make_directory(&rig);
    ck_assert(node_name_set(&file.node, "db-1", 4));
    ck_assert_int_eq(replica_file_write(rig.data.disk, &file), 0);
    expect_well(&rig, ERR_CORRUPT); /* of another directory */
    manifest_init(&manifest);
    ck_assert_int_eq(manifest_read(rig.data.disk, &manifest, NULL), 0);
    file.epoch = manifest.epoch;
    manifest_fini(&manifest);
    ck_assert_int_eq(replica_file_write(rig.data.disk, &file), 0);
    expect_well(&rig, 0);
    expect_dump(&rig, "\nreplica node db-1 promised 0 level written\n");
    ck_assert_int_eq(salvage_it(&rig), SALVAGE_SOUND);
    expect_dump(&rig, "\nreplica node db-1 promised 0 level written\n");
    read_files(rig.data.disk, &files);
    ck_assert_uint_gt(lose_batches(&files, ENTRY_COUNTER), 0);
    rig.data.is_replicated = true;
    salvage(&rig, &files, SALVAGE_LOSSY, "lost");
    ck_assert_int_eq(rig_close(&rig), 0);
    expect_dump(&rig,
        "\nreplica node db-1 promised 0 level written doubtful salvaged\n");
    fake_disk_flip(rig.fake, REPLICA_NAME, 20, 1);
    expect_well(&rig, ERR_CORRUPT);
    rig_fini(&rig);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_all_know_it, test_does_not_fit,
        test_lost, test_kept, test_not_committed, test_cut, test_replica};
    return run_tests("terms", tests, COUNT_OF(tests));
}
