/* SPDX-License-Identifier: BSD-3-Clause */
/* Replays the log on several threads.
 *
 * One thread reads (replay_run) and puts batches, several to a block, into a
 * ring of blocks. Every replayer goes through every block in order, but does
 * only the changes of its own shards, so those of one record stay in order.
 * An entry that changes the schema, or makes or drops a producer, is met by
 * all of them at the same place: there they wait for each other, one applies
 * it, and they go on together.
 *
 * A change that the image of its range has in it already is passed over, and so
 * is one that the segment has which covers its id. Of what came behind that the
 * log has the whole record first; so no segment is read here. */
#include "durable/recover.h"

#include "about/abouts.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/mutex.h"
#include "base/progress.h"
#include "durable/durable_about.h"
#include "durable/durable_naming.h"
#include "durable/producers.h"
#include "engine/engine_copy.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCKS = 8,
    BLOCK_BYTES = 2 << 20,  /* at least two payloads of FRAME_PAYLOAD_MAX */
    HEAD_BYTES = 12,        /* in a block: sequence number, length, payload */
    BATCH = 64,             /* changes given to the engine at once */
    GARBAGE_BYTES = 8 << 20 /* of tables made anew; more is freed */
};

struct block {
    uint8_t *bytes; /* owned, BLOCK_BYTES; NULL until it is first filled */
    size_t len;
    unsigned n_left; /* replayers that have not done it */
};

struct ring {
    struct durable *durable;
    struct recover_schema recover;
    struct progress progress;
    uint64_t image_seq;   /* the largest of all images; 0: there is none */
    uint64_t segment_seq; /* the same of segments */
    unsigned n_threads;
    pthread_barrier_t barrier; /* of the replayers, around schema entries */
    struct mutex lock;         /* all below */
    pthread_cond_t moved;
    uint64_t n_filled; /* blocks ever; block i is i % BLOCKS */
    bool ended;        /* no block will follow */
    int err;           /* the first one of a replayer */
    struct block block[BLOCKS];
};

struct replayer {
    struct ring *ring;
    unsigned number;
    pthread_t thread;
    struct qsbr_reader reader;
    uint64_t n_changes, n_cells;
    uint64_t last_seq; /* of the last batch that it has done */
    int err;
    size_t n;
    struct change change[BATCH];
};

/* Does the changes that have been gathered. */
static void
flush(struct replayer *it)
{
    struct durable *durable = it->ring->durable;
    uint64_t garbage;
    ASSERT(it->n <= BATCH);
    if (it->n == 0) {
        return;
    }
    qsbr_online(durable->qsbr, &it->reader);
    engine_change(durable->engine, it->change, it->n);
    qsbr_offline(&it->reader);
    for (size_t i = 0; i < it->n && it->err == 0; i++) {
        it->err = it->change[i].err;
    }
    (void)engine_hot_bytes(durable->engine, &garbage);
    if (garbage > GARBAGE_BYTES) {
        engine_drain(durable->engine);
    }
    it->n_changes += it->n;
    it->n = 0;
}

/* True where the image of that row was made later than batch seq. */
static bool
is_in_image(const struct ring *ring, uint8_t counter, unsigned shard,
    uint64_t row, uint64_t seq)
{
    if (seq > ring->image_seq) {
        return false;
    }
    const struct images_entry *entry = images_find(
        &ring->durable->manifest.images, counter, (uint16_t)shard, row);
    ASSERT(entry == NULL || entry->seq <= ring->image_seq);
    return entry != NULL && entry->seq >= seq;
}

/* True where a segment covers that id that was made later than batch seq. */
static bool
is_in_segment(const struct ring *ring, const struct schema_counter *counter,
    unsigned shard, uint64_t id, uint64_t seq)
{
    if (seq > ring->segment_seq) {
        return false;
    }
    const struct manifest_segment *segment =
        segments_find(&ring->durable->manifest.segments, counter->serial, id);
    ASSERT(shard < ring->durable->manifest.segments.shards || segment == NULL);
    ASSERT(segment == NULL || segment->seq[shard] <= ring->segment_seq);
    return segment != NULL && segment->seq[shard] >= seq;
}

/* Gathers a change, if it is one of this replayer's. */
static void
take_cells(struct replayer *it, const struct entry_cells *cells, uint64_t seq)
{
    const struct ring *ring = it->ring;
    struct change *change = &it->change[it->n];
    unsigned shard;
    uint64_t row;
    ASSERT(it->n < BATCH);
    engine_row(ring->durable->engine, cells->id, &shard, &row);
    ASSERT(shard < ring->durable->manifest.shards);
    if (shard % ring->n_threads != it->number) {
        return;
    }
    const struct schema_counter *counter = NULL;
    change->n_columns = 0;
    for (unsigned i = 0; i < cells->n; i++) {
        uint32_t serial = cells->serial[i];
        if (serial >= ring->recover.n_places ||
            ring->recover.place[serial].counter == NULL) {
            continue; /* dropped since */
        }
        const struct recover_place *place = &ring->recover.place[serial];
        unsigned at = change->n_columns++;
        counter = place->counter;
        ASSERT(at < SCHEMA_COLUMNS_MAX && place->column < SCHEMA_COLUMNS_MAX);
        change->column[at] = place->column;
        change->serial[at] = serial;
        change->operand[at] = cells->value[i];
    }
    if (counter == NULL || is_in_image(ring, counter->slot, shard, row, seq) ||
        is_in_segment(ring, counter, shard, cells->id, seq)) {
        return;
    }
    change->id = cells->id;
    change->counter = counter->slot;
    change->op = CHANGE_SET;
    it->n_cells += change->n_columns;
    if (++it->n == BATCH) {
        flush(it);
    }
}

/* The serial of the counter in a slot; 0: there is none. */
static uint32_t
serial_at(const struct ring *ring, unsigned slot)
{
    const struct schema_counter *counter =
        schema_counter_at(ring->recover.schema, slot);
    return counter == NULL ? 0 : counter->serial;
}

/* The engine forgets a counter's records before its segments: what is left of
 * them would be looked for there. A counter of pairs goes with its column. */
static int
apply_schema(struct ring *ring, const struct entry *entry)
{
    struct durable *durable = ring->durable;
    struct durable_segments *segment_map = durable->segment_map;
    uint32_t serial[SCHEMA_COUNTERS_MAX];
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        serial[slot] = serial_at(ring, slot);
    }
    int err = recover_schema_apply(&ring->recover, entry, durable->engine);
    if (err == 0 && durable->abouts != NULL) {
        err = abouts_follow(durable->abouts, ring->recover.schema);
    }
    for (unsigned slot = 0; err == 0 && slot < SCHEMA_COUNTERS_MAX; slot++) {
        if (serial[slot] != 0 && serial_at(ring, slot) != serial[slot] &&
            segment_map != NULL) {
            segment_map->drop_fn(segment_map, slot);
        }
    }
    return err;
}

/* An entry about more than one shard. What the manifest has of the schema
 * already is passed over; of producers, too, but that is seen there. */
static int
apply_common(struct ring *ring, const struct entry *entry, uint64_t seq)
{
    struct durable *durable = ring->durable;
    struct producers *producers = durable->producers;
    switch (entry->kind) {
    case ENTRY_PRODUCER:
        return producers__replay_made(
            producers, entry->producer, &entry->name);
    case ENTRY_PRODUCER_DROPPED:
        producers__replay_dropped(producers, entry->producer);
        return 0;
    case ENTRY_MOVED:
        return recover_add_moved(&durable->handovers, &entry->moved, seq,
            &durable->manifest, durable->config.logger);
    case ENTRY_ABOUT_ROLLED:
        return durable_about_roll(durable, &entry->rolled);
    case ENTRY_PRODUCER_JOINED:
        producers__replay_joined(producers, entry->producer, &entry->seen);
        return 0;
    default:
        return seq > durable->manifest.schema_seq ? apply_schema(ring, entry)
                                                  : 0;
    }
}

/* All replayers have come to this entry; one applies it. */
static void
take_common(struct replayer *it, const struct entry *entry, uint64_t seq)
{
    struct ring *ring = it->ring;
    flush(it);
    pthread_barrier_wait(&ring->barrier);
    if (it->number == 0) {
        int err = apply_common(ring, entry, seq);
        it->err = it->err == 0 ? err : it->err;
    }
    pthread_barrier_wait(&ring->barrier);
}

/* Marks a number, if its shard is one of this replayer's. Also where an image
 * has the change already: it need not have been made later than the list of
 * producers in the manifest. */
static void
take_number(struct replayer *it, const struct entry *entry, uint64_t seq)
{
    struct durable *durable = it->ring->durable;
    if (entry->shard % it->ring->n_threads == it->number && it->err == 0) {
        int err = recover_check_shard(
            &durable->manifest, entry, seq, durable->config.logger);
        if (err == 0) {
            err = producers__replay_number(durable->producers, entry->producer,
                entry->shard, entry->number);
        }
        it->err = it->err == 0 ? err : it->err;
    }
}

/* A term changes nothing of what is counted; it must be where it belongs. */
static void
take_term(struct replayer *it, const struct entry_term *term, uint64_t seq,
    bool is_first)
{
    if (it->number == 0 && it->err == 0) {
        struct durable *durable = it->ring->durable;
        it->err = recover_add_term(
            &durable->terms, term, seq, is_first, durable->config.logger);
    }
}

/* Each entry is one replayer's: bits may be set in any order, while no table
 * begins or goes. */
static void
take_about(struct replayer *it, const struct entry_about *about)
{
    struct durable *durable = it->ring->durable;
    if ((about->id[0] ^ about->member[0]) % it->ring->n_threads ==
        it->number) {
        qsbr_online(durable->qsbr, &it->reader);
        durable_about_redo(durable, about);
        qsbr_offline(&it->reader);
        it->n_changes += about->n;
    }
}

/* A name is of the replayer that has its shard's records. */
static void
take_name(struct replayer *it, const struct entry_name *name, uint64_t seq)
{
    if (name->shard % it->ring->n_threads == it->number) {
        const struct durable_naming naming =
            durable__naming(it->ring->durable);
        int err = durable_naming_replay(&naming, name, seq);
        it->err = it->err == 0 ? err : it->err;
        it->n_changes++;
    }
}

static void
replay_payload(
    struct replayer *it, uint64_t seq, const uint8_t *payload, size_t len)
{
    struct entry_reader reader = {.at = payload, .end = payload + len};
    struct entry entry;
    while (entry_has_next(&reader)) {
        const uint8_t *at = reader.at;
        if (!entry_next(&reader, &entry)) {
            /* the checksum was right: this tallyd does not know it */
            it->err = it->err == 0 ? ERR_NEWER_FORMAT : it->err;
            return;
        }
        if (entry.kind == ENTRY_CELLS) {
            take_cells(it, &entry.cells, seq);
        } else if (entry.kind == ENTRY_ABOUT) {
            take_about(it, &entry.about);
        } else if (entry.kind == ENTRY_NUMBER) {
            take_number(it, &entry, seq);
        } else if (entry.kind == ENTRY_NAME) {
            take_name(it, &entry.named, seq);
        } else if (entry.kind == ENTRY_TERM) {
            take_term(it, &entry.term, seq, at == payload);
        } else {
            take_common(it, &entry, seq);
        }
    }
}

/* Waits for block number n; NULL where none will come. */
static struct block *
wait_for_block(struct ring *ring, uint64_t n)
{
    mutex_lock(&ring->lock);
    while (ring->n_filled <= n && !ring->ended) {
        mutex_wait(&ring->lock, &ring->moved);
    }
    struct block *block = ring->n_filled > n ? &ring->block[n % BLOCKS] : NULL;
    mutex_unlock(&ring->lock);
    return block;
}

static void
give_back(struct replayer *it, struct block *block)
{
    struct ring *ring = it->ring;
    mutex_lock(&ring->lock);
    if (ring->err == 0) {
        ring->err = it->err;
    }
    ASSERT(block->n_left > 0 && block->n_left <= ring->n_threads);
    if (--block->n_left == 0) {
        pthread_cond_broadcast(&ring->moved);
    }
    mutex_unlock(&ring->lock);
}

/* After an error a replayer goes on taking blocks, so that nobody waits for it
 * in vain; what it does then is thrown away with the store. */
static void *
replay_blocks(void *arg)
{
    struct replayer *it = arg;
    struct ring *ring = it->ring;
    struct block *block;
    qsbr_register(ring->durable->qsbr, &it->reader);
    for (uint64_t n = 0; (block = wait_for_block(ring, n)) != NULL; n++) {
        uint64_t before = it->n_changes;
        for (size_t at = 0; at < block->len;) {
            uint64_t seq = bytes_get_u64(block->bytes + at);
            uint32_t len = bytes_get_u32(block->bytes + at + 8);
            ASSERT(seq > it->last_seq);
            ASSERT(at + HEAD_BYTES + len <= block->len);
            it->last_seq = seq;
            replay_payload(it, seq, block->bytes + at + HEAD_BYTES, len);
            at += HEAD_BYTES + len;
        }
        flush(it);
        progress_add(&ring->progress, it->number == 0 ? block->len : 0,
            it->n_changes - before);
        give_back(it, block);
    }
    qsbr_unregister(ring->durable->qsbr, &it->reader);
    return NULL;
}

/* Hands the block under way over, if there is anything in it, and waits for
 * the next one to be free. */
static int
hand_over(struct ring *ring, bool is_last)
{
    mutex_lock(&ring->lock);
    struct block *block = &ring->block[ring->n_filled % BLOCKS];
    ASSERT(block->n_left == 0); /* since it was free */
    if (block->len > 0) {
        block->n_left = ring->n_threads;
        ring->n_filled++;
    }
    ring->ended = is_last;
    pthread_cond_broadcast(&ring->moved);
    block = &ring->block[ring->n_filled % BLOCKS];
    while (!is_last && block->n_left > 0) {
        mutex_wait(&ring->lock, &ring->moved);
    }
    if (!is_last) {
        ASSERT(block->n_left == 0);
        block->len = 0;
    }
    int err = ring->err;
    mutex_unlock(&ring->lock);
    return err;
}

static int
take_batch(void *context, uint64_t seq, const uint8_t *payload, size_t len)
{
    struct ring *ring = context;
    /* n_filled is written by this thread only */
    struct block *block = &ring->block[ring->n_filled % BLOCKS];
    ASSERT(len + HEAD_BYTES <= BLOCK_BYTES);
    if (block->len + HEAD_BYTES + len > BLOCK_BYTES) {
        int err = hand_over(ring, false);
        if (err != 0) {
            return err;
        }
        if (durable__is_cancelled(ring->durable)) {
            return ERR_CLOSED;
        }
        block = &ring->block[ring->n_filled % BLOCKS];
    }
    if (block->bytes == NULL) {
        block->bytes = malloc(BLOCK_BYTES);
        if (block->bytes == NULL) {
            return ERR_NO_MEMORY;
        }
    }
    uint8_t *head = block->bytes + block->len;
    bytes_put_u64(head, seq);
    bytes_put_u32(head + 8, (uint32_t)len);
    memcpy(head + HEAD_BYTES, payload, len);
    block->len += HEAD_BYTES + len;
    ASSERT(block->len <= BLOCK_BYTES);
    durable_note(&ring->durable->stats.replay_seq, seq);
    return 0;
}

static void
note_size(void *context, uint64_t read, uint64_t all)
{
    struct ring *ring = context;
    struct durable_stats *stats = &ring->durable->stats;
    /* relaxed: a figure */
    atomic_store_explicit(
        &ring->progress.all_bytes, all, memory_order_relaxed);
    durable_note(&stats->load_is_log, 1);
    durable_note(&stats->load_all_bytes, all);
    durable_note(&stats->load_done_bytes, read);
}

static void
note_largest(void *context, const struct images_entry *entry)
{
    uint64_t *largest = context;
    *largest = entry->seq > *largest ? entry->seq : *largest;
}

static int
make_ring(struct ring *ring, struct schema **schema)
{
    int err = recover_schema_init(&ring->recover, schema);
    if (err != 0) {
        return err;
    }
    images_each(
        &ring->durable->manifest.images, note_largest, &ring->image_seq);
    ring->segment_seq = segments_last_seq(&ring->durable->manifest.segments);
    mutex_init(&ring->lock);
    pthread_cond_init(&ring->moved, NULL);
    pthread_barrier_init(&ring->barrier, NULL, ring->n_threads);
    return 0;
}

static void
free_ring(struct ring *ring, struct schema **schema)
{
    for (unsigned i = 0; i < BLOCKS; i++) {
        ASSERT(ring->block[i].n_left == 0);
        free(ring->block[i].bytes);
    }
    pthread_barrier_destroy(&ring->barrier);
    pthread_cond_destroy(&ring->moved);
    mutex_fini(&ring->lock);
    *schema = ring->recover.schema;
    ring->recover.schema = NULL;
    recover_schema_fini(&ring->recover);
}

/* Threads must all be there, since they wait for each other. */
static int
start_replayers(struct ring *ring, struct replayer *replayer)
{
    for (unsigned i = 0; i < ring->n_threads; i++) {
        replayer[i].ring = ring;
        replayer[i].number = i;
        if (pthread_create(
                &replayer[i].thread, NULL, replay_blocks, &replayer[i]) != 0) {
            ring->n_threads = i; /* none has had a block yet */
            return ERR_NO_THREAD;
        }
    }
    return 0;
}

static int
run_ring(struct ring *ring, struct replayer *replayer, struct replay_end *end)
{
    struct durable *durable = ring->durable;
    struct replay replay = {.disk = durable->disk,
        .logger = durable->config.logger,
        .epoch = durable->manifest.epoch,
        .histories = &durable->manifest.histories,
        .number = durable->manifest.log_number,
        .last_seq = durable->cut_seq,
        .batch_fn = take_batch,
        .context = ring,
        .progress_fn = note_size};
    int err = start_replayers(ring, replayer);
    if (err == 0) {
        err = replay_run(&replay, end);
    }
    int last_err = hand_over(ring, true);
    err = err == 0 ? last_err : err;
    for (unsigned i = 0; i < ring->n_threads; i++) {
        pthread_join(replayer[i].thread, NULL);
        err = err == 0 ? replayer[i].err : err;
        durable_count(&durable->stats.replayed_changes, replayer[i].n_changes);
        durable_count(&durable->stats.replayed_cells, replayer[i].n_cells);
    }
    return err;
}

int
recover_check_shard(const struct manifest *manifest, const struct entry *entry,
    uint64_t seq, struct logger *logger)
{
    if (entry->shard < manifest->shards) {
        return 0;
    }
    log_line(logger, LOG_ERROR,
        "log batch %" PRIu64 ": a number of a producer in shard %u, and %s "
        "has %" PRIu32 " shards: they are not of one directory; restore it "
        "from a backup, or see --salvage",
        seq, (unsigned)entry->shard, MANIFEST_NAME, manifest->shards);
    return ERR_CORRUPT;
}

int
recover_add_term(struct history *terms, const struct entry_term *term,
    uint64_t seq, bool is_first, struct logger *logger)
{
    if (entry_term_is_at(term, seq, is_first) &&
        history_begin(terms, term->term, term->branch, term->last_seq)) {
        return 0;
    }
    log_line(logger, LOG_ERROR,
        "log batch %" PRIu64 ": term %" PRIu32
        " cannot begin there; restore the directory from a backup, or "
        "see --salvage",
        seq, term->term);
    return ERR_CORRUPT;
}

int
recover_add_moved(struct moved_list *handovers, const struct moved_one *moved,
    uint64_t seq, const struct manifest *manifest, struct logger *logger)
{
    if (seq <= manifest->schema_seq || moved_list_put(handovers, moved)) {
        return 0;
    }
    log_line(logger, LOG_ERROR,
        "log batch %" PRIu64 ": there are %u handovers before that of %s, and "
        "more cannot be; restore the directory from a backup, or see "
        "--salvage",
        seq, (unsigned)handovers->n, moved->rule);
    return ERR_CORRUPT;
}

uint64_t
recover_newest(const struct manifest *manifest)
{
    uint64_t seq = manifest->schema_seq > manifest->checkpoint_seq
        ? manifest->schema_seq
        : manifest->checkpoint_seq;
    images_each(&manifest->images, note_largest, &seq);
    uint64_t of_segments = segments_last_seq(&manifest->segments);
    return seq > of_segments ? seq : of_segments;
}

int
recover__check_seq(
    const struct manifest *manifest, uint64_t next_seq, struct logger *logger)
{
    uint64_t newest = recover_newest(manifest);
    if (newest < next_seq) {
        return 0;
    }
    log_line(logger, LOG_ERROR,
        "%s has what is of log batch %" PRIu64
        ", and the log goes on with %" PRIu64
        ": they are not of one directory; restore it from a backup, or "
        "see --salvage",
        MANIFEST_NAME, newest, next_seq);
    return ERR_CORRUPT;
}

uint64_t
recover__next_seq(const struct replay_end *end)
{
    return end->number == 0 ? 1 : end->next_seq + REPLAY_SEQ_GAP;
}

int
recover_check_end(const struct manifest *manifest,
    const struct replay_end *end, struct logger *logger)
{
    char name[NAMES_BYTES];
    if (end->number != 0 || !manifest_names_log(manifest)) {
        return recover__check_seq(manifest, recover__next_seq(end), logger);
    }
    names_make(name, NAMES_LOG, manifest->log_number);
    log_line(logger, LOG_ERROR,
        "%s is missing, with which %s says that the log begins; put it back, "
        "or restore the data directory from a backup, or see --salvage",
        name, MANIFEST_NAME);
    return ERR_CORRUPT;
}

void
recover_say_torn(const struct replay_end *end, struct buf *out)
{
    char name[NAMES_BYTES];
    names_make(name, NAMES_LOG, end->number);
    buf_addf(out,
        "well but for the end: a start will leave out the last %" PRIu64
        " bytes of %s, from offset %" PRIu64 " on, with %" PRIu64
        " sound batches; after a crash they were not all on the disk",
        end->torn_bytes, name, end->end, end->left_out);
}

int
recover__log(
    struct durable *durable, struct schema **schema, struct replay_end *end)
{
    struct ring *ring = calloc(1, sizeof *ring);
    struct replayer *replayer =
        calloc(durable->config.threads, sizeof *replayer);
    int err = ERR_NO_MEMORY;
    if (ring == NULL || replayer == NULL) {
        goto out;
    }
    ring->durable = durable;
    ring->n_threads = durable->config.threads;
    progress_begin(&ring->progress, durable->config.logger,
        durable->config.clock, "log", "changes", 0);
    err = make_ring(ring, schema);
    if (err == 0) {
        err = run_ring(ring, replayer, end);
        progress_end(&ring->progress);
    }
    if (ring->recover.schema != NULL) {
        free_ring(ring, schema);
    }
out:
    free(replayer);
    free(ring);
    return err;
}
