/* SPDX-License-Identifier: BSD-3-Clause */
/* Picks the range that is sealed next.
 *
 * A candidate is cut along the tables of one shard, the one that has the first
 * row: shards are hash partitions of the ids, so all have about what one has of
 * a range. The copy of a candidate takes seal->copy_bytes, about; it ends where
 * the next one begins, so that records of other shards between two tables of
 * this one are in one of both.
 *
 * A candidate is fair where not too much of it is cold already: a seal rewrites
 * the segments under it, which pays where much goes out of memory for it. So it
 * is cut where a cover begins or ends, though one table may have records on
 * both sides.
 *
 * Each counter has one choice: with cold=oldest the one of its lowest fair
 * candidates that seal_choose takes, with cold=quietest the one that is written
 * least. Of these choices the one that is written least is taken. Where there
 * is none, the candidate that frees most for what it writes (seal_score). With
 * cold=oldest new ids go to the newest range of a counter: it is no choice, and
 * where it scores best its older half is taken.
 *
 * In haste (seal_pick__soon) neither age nor fairness counts, only what a range
 * frees for what it writes. In random order all ranges fill alike, and each
 * must be merged with what is on the disk: the lowest that is fair writes nine
 * records for one that leaves memory, the densest two or three. A part of that
 * range goes at a time, so that memory comes back in steps; the part that was
 * sealed lately is in its front, and is passed over.
 *
 * While a record is hot that is not set aside, something can be sealed. For
 * candidates have all tables of all shards: each begins at the first row behind
 * the one before that any shard has a table for. All of their figures are
 * samples and may be wrong; so what is taken must have a record, by a look at
 * each one (narrow), else the first candidate is taken that has one by such a
 * look (pick_any). A seal takes all records of its range out of memory that do
 * not change meanwhile, and only changes bring them back: so rounds without
 * changes end with nothing in memory but what is set aside. */
#include "tier/seal_pick.h"

#include "base/assert.h"
#include "engine/engine_extents.h"

enum {
    CHUNK_MIN = 1 << 16, /* records of a candidate, of all shards */
    CHUNK_MAX = 1 << 22,
    HALVED_MIN = 256,   /* records */
    SOON_MAX = 1 << 19, /* records written for a part in haste, */
    SOON_FILES = 1024,  /* or more, where cold ones would fill so many files */
    SOON_LOOKS = 64     /* parts that are looked at for the next one */
};

/* Of the score of a range, what a part of it has that is worth it: parts are
 * alike, but for what was sealed lately, and figures are samples. */
#define SOON_SHARE 0.75

/* What frees so many times as much goes before what is lower. */
#define SOON_MARGIN 1.25

uint64_t
seal_pick__chunk(const struct seal *seal, unsigned n_columns)
{
    /* a copy has their rows, and a code a column */
    uint64_t n = seal->copy_bytes / (8 * (UINT64_C(1) + n_columns));
    if (seal->chunk != 0) {
        return seal->chunk;
    }
    return n < CHUNK_MIN ? CHUNK_MIN : n > CHUNK_MAX ? CHUNK_MAX : n;
}

/* Ids of a row begin at row x n_shards. */
static uint64_t
first_id_of(const struct seal *seal, uint64_t row)
{
    return row * seal->n_shards;
}

static uint64_t
last_id_of(const struct seal *seal, uint64_t row)
{
    return row * seal->n_shards + (seal->n_shards - 1);
}

/* About how many records all shards have where one has a table's rows
 * first..last; 0 where it has none. */
static uint64_t
count_part(const struct seal *seal, unsigned slot, unsigned lead,
    uint64_t first, uint64_t last)
{
    return engine_extent_part(seal->engine, slot, lead, first, last) *
        seal->n_shards;
}

/* A table that alone has too many: the last row of a first part that has half
 * a chunk to a chunk of records, and one at least, however wide the table is,
 * and though most of its records may be in a few of its rows. */
static uint64_t
cut(const struct seal *seal, unsigned slot, unsigned lead,
    const struct engine_extent *extent, uint64_t chunk)
{
    uint64_t low = extent->first_row; /* up to it are too few */
    uint64_t high = extent->last_row; /* and enough, or too many */
    ASSERT(low <= high && chunk > 0);
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        uint64_t n = count_part(seal, slot, lead, extent->first_row, middle);
        if (n == 0 || n < chunk / 2) {
            low = middle;
        } else if (n > chunk) {
            high = middle;
        } else {
            return middle;
        }
    }
    return high;
}

/* The first row from `row` on that a table of any shard has, and which shard
 * that is; false where there is none. */
static bool
first_row(const struct seal *seal, unsigned slot, uint64_t row, uint64_t *out,
    unsigned *lead)
{
    struct engine_extent extent;
    bool found = false;
    for (unsigned shard = 0; shard < seal->n_shards; shard++) {
        if (engine_extent(seal->engine, slot, shard, row, &extent)) {
            uint64_t first = extent.first_row < row ? row : extent.first_row;
            if (!found || first < *out) {
                *out = first;
                *lead = shard;
            }
            found = true;
        }
    }
    return found;
}

bool
seal_pick_next(const struct seal *seal, unsigned slot, uint64_t from,
    struct seal_candidate *out)
{
    uint64_t row = from / seal->n_shards;
    unsigned lead = 0;
    struct engine_extent extent;
    *out = (struct seal_candidate){.range = {.slot = slot}};
    if (!first_row(seal, slot, row, &row, &lead)) {
        return false;
    }
    out->range.first_id = first_id_of(seal, row);
    while (engine_extent(seal->engine, slot, lead, row, &extent)) {
        uint64_t n = (extent.n_records + 1) * seal->n_shards;
        uint64_t chunk = seal_pick__chunk(seal, extent.n_columns);
        if (extent.first_row < row) { /* the rest of one that was cut */
            n = count_part(seal, slot, lead, row, extent.last_row) +
                seal->n_shards;
            extent.first_row = row;
        }
        ASSERT(extent.first_row >= row && extent.first_row <= extent.last_row);
        if (out->n_hot > 0 && out->n_hot + n > chunk) {
            out->range.last_id = first_id_of(seal, extent.first_row) - 1;
            ASSERT(out->range.last_id >= out->range.first_id);
            return true;
        }
        out->n_hot += n;
        uint64_t last = n > chunk ? cut(seal, slot, lead, &extent, chunk)
                                  : extent.last_row;
        ASSERT(last >= extent.first_row && last <= extent.last_row);
        if (last < extent.last_row) {
            out->n_hot = chunk;
            out->range.last_id = last_id_of(seal, last);
            return true;
        }
        row = extent.last_row + 1;
        out->range.last_id = last_id_of(seal, extent.last_row);
        if (out->range.last_id == UINT64_MAX) {
            break;
        }
    }
    out->is_last = out->range.last_id == UINT64_MAX ||
        !first_row(seal, slot, row, &row, &lead);
    return out->n_hot > 0;
}

/* How many of a segment's blocks lie below an id: of the one that has it, the
 * share of its ids. */
static double
blocks_below(const struct segment *segment, uint64_t id)
{
    const struct segment_head *head = segment_head(segment);
    uint32_t block = 0;
    if (id <= head->first_id) {
        return 0;
    }
    if (id > head->last_id) {
        return head->n_blocks;
    }
    (void)segment_find(segment, id, &block);
    ASSERT(block < head->n_blocks);
    uint64_t first = segment_first_id(segment, block);
    uint64_t end = block + 1 < head->n_blocks
        ? segment_first_id(segment, block + 1)
        : head->last_id;
    return block +
        (end > first && id > first
                ? (double)(id - first) / (double)(end - first)
                : 0);
}

/* Records that segments have in a range, by their blocks. */
static uint64_t
count_cold(const struct seal *seal, const struct seal_range *range)
{
    struct segment_map_list *list;
    double n = 0;
    if (segment_map_list(seal->segment_map, range->slot, range->first_id,
            range->last_id, &list) != 0 ||
        list == NULL) {
        return 0;
    }
    for (size_t i = 0; i < list->n; i++) {
        const struct segment_map_entry *entry = &list->entry[i];
        const struct segment *segment = entry->file->segment;
        const struct segment_head *head = segment_head(segment);
        double end = entry->last_id >= head->last_id
            ? head->n_blocks
            : blocks_below(segment, entry->last_id + 1);
        double begin = blocks_below(segment, entry->first_id);
        ASSERT(begin <= end && end <= head->n_blocks);
        n += (end - begin) * (double)head->records / (double)head->n_blocks;
    }
    segment_map_list_destroy(list);
    return (uint64_t)n;
}

/* Like seal_pick_next, without what is set aside. What is left of a candidate
 * beside that may have no hot records. */
static bool
next_free(const struct seal *seal, const struct seal_aside *aside,
    unsigned slot, uint64_t from, struct seal_candidate *out)
{
    while (seal_pick_next(seal, slot, from, out)) {
        const struct seal_aside_range *it = seal_aside_find(
            aside, slot, out->range.first_id, out->range.last_id);
        if (it == NULL) {
            return true;
        }
        ASSERT(it->slot == slot && it->last_id >= out->range.first_id);
        if (it->first_id > out->range.first_id) {
            out->range.last_id = it->first_id - 1;
            out->is_last = false;
            return true;
        }
        if (it->last_id == UINT64_MAX) {
            break;
        }
        from = it->last_id + 1;
    }
    return false;
}

/* What a counter's options say. */
struct policy {
    bool is_there; /* else, and with cold=never, nothing of it is picked */
    bool is_quietest;
    uint64_t cold_after;
};

static void
take_policies(const struct seal *seal, struct policy *policy)
{
    mutex_lock(&seal->durable->edit_lock);
    /* relaxed: under edit_lock, like all who store it */
    const struct schema *schema =
        atomic_load_explicit(seal->schema, memory_order_relaxed);
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        const struct schema_counter *counter = schema_counter_at(schema, slot);
        policy[slot] = (struct policy){0};
        if (counter != NULL && !counter->cold_is_never) {
            policy[slot].is_there = true;
            policy[slot].is_quietest = counter->cold_is_quietest;
            policy[slot].cold_after = counter->cold_after;
        }
    }
    mutex_unlock(&seal->durable->edit_lock);
}

/* Looks at all tables of a range: n_hot, hot_bytes, heat, n_cold. */
static void
measure(const struct seal *seal, struct seal_candidate *it)
{
    uint64_t first = it->range.first_id / seal->n_shards;
    uint64_t last = it->range.last_id / seal->n_shards;
    struct engine_extent extent;
    double sum = 0, bytes = 0;
    ASSERT(first <= last);
    it->n_hot = 0;
    for (unsigned shard = 0; shard < seal->n_shards; shard++) {
        uint64_t row = first;
        while (row <= last &&
            engine_extent(seal->engine, it->range.slot, shard, row, &extent) &&
            extent.first_row <= last) {
            uint64_t n = engine_extent_part(
                seal->engine, it->range.slot, shard, row, last);
            it->n_hot += n;
            sum += (double)n * (double)extent.heat;
            if (n > 0) { /* so n_records > 0 */
                bytes += (double)extent.bytes * (double)n /
                    (double)extent.n_records;
            }
            if (extent.last_row >= last) {
                break;
            }
            row = extent.last_row + 1;
        }
    }
    it->heat = it->n_hot > 0 ? sum / (double)it->n_hot : 0;
    it->hot_bytes = (uint64_t)bytes;
    it->n_cold = count_cold(seal, &it->range);
}

/* Of a candidate that is covered in part, the first part that is all covered
 * or not at all and worth a file; what is not is left out before it. */
static void
trim(const struct seal *seal, struct seal_candidate *it)
{
    struct segment_map_list *list;
    uint64_t end = it->range.last_id;
    size_t i = 0;
    if (segment_map_list(seal->segment_map, it->range.slot, it->range.first_id,
            end, &list) != 0 ||
        list == NULL) {
        return;
    }
    for (;;) {
        bool is_covered =
            i < list->n && list->entry[i].first_id == it->range.first_id;
        if (is_covered) {
            while (i + 1 < list->n &&
                list->entry[i + 1].first_id == list->entry[i].last_id + 1) {
                i++;
            }
            it->range.last_id = list->entry[i++].last_id;
        } else {
            it->range.last_id =
                i < list->n ? list->entry[i].first_id - 1 : end;
        }
        measure(seal, it);
        if (seal_is_worth(it) || it->range.last_id == end) {
            break;
        }
        if (!is_covered) { /* a gap: with what is behind it */
            it->range.last_id = end;
            measure(seal, it);
            break;
        }
        it->range.first_id = it->range.last_id + 1;
    }
    ASSERT(
        it->range.first_id <= it->range.last_id && it->range.last_id <= end);
    it->is_last = it->is_last && it->range.last_id == end;
    segment_map_list_destroy(list);
}

/* What a look at all counters has found. */
struct found {
    bool has_choice;
    struct seal_candidate choice; /* of those of the counters */
    double score;                 /* the highest of all */
    struct seal_candidate dense;  /* whose that is; where score > 0 */
    bool dense_is_newest;
};

/* The candidates of one counter that seal_choose is asked about. */
struct peers {
    size_t n;
    uint64_t n_hot, n_wanted; /* records */
    struct seal_candidate it[SEAL_PEERS_MAX];
};

/* True where there are enough. */
static bool
add_peer(struct peers *peers, const struct seal_candidate *it)
{
    ASSERT(peers->n < SEAL_PEERS_MAX);
    peers->it[peers->n++] = *it;
    peers->n_hot += it->n_hot;
    return peers->n == SEAL_PEERS_MAX ||
        (peers->n >= SEAL_PEERS_MIN && peers->n_hot >= peers->n_wanted);
}

static void
add_quietest(struct peers *peers, const struct seal_candidate *it)
{
    if (peers->n == 0 || it->heat < peers->it[0].heat) {
        peers->it[0] = *it;
        peers->n = 1;
    }
}

static void
note_score(
    struct found *found, const struct seal_candidate *it, bool is_newest)
{
    double score = seal_score(it, is_newest);
    if (score > found->score) {
        found->score = score;
        found->dense = *it;
        found->dense_is_newest = is_newest;
    }
}

/* Hot records of a counter. */
static uint64_t
count_hot(const struct seal *seal, unsigned slot)
{
    struct seal_candidate it;
    uint64_t n = 0, from = 0;
    while (seal_pick_next(seal, slot, from, &it)) {
        n += it.n_hot;
        if (it.is_last) {
            break;
        }
        from = it.range.last_id + 1;
    }
    return n;
}

/* Takes part in *found what a counter has. */
static void
look_at(struct seal *seal, const struct seal_aside *aside, unsigned slot,
    bool is_quietest, struct found *found)
{
    struct seal_candidate it = {0};
    struct peers peers = {.n = 0};
    uint64_t from = 0;
    if (!is_quietest) {
        peers.n_wanted = count_hot(seal, slot) / SEAL_PEERS_SHARE;
    }
    while (!it.is_last && next_free(seal, aside, slot, from, &it)) {
        measure(seal, &it);
        note_score(found, &it, it.is_last && !is_quietest);
        trim(seal, &it);
        bool is_newest = it.is_last && !is_quietest;
        note_score(found, &it, is_newest);
        if (is_newest) {
            break;
        }
        if (seal_is_fair(&it)) {
            if (is_quietest) {
                add_quietest(&peers, &it);
            } else if (add_peer(&peers, &it)) {
                break;
            }
        }
        if (it.range.last_id == UINT64_MAX) {
            break;
        }
        from = it.range.last_id + 1;
    }
    if (peers.n == 0) {
        return;
    }
    size_t chosen = seal_choose(peers.it, peers.n);
    ASSERT(chosen < peers.n);
    if (!found->has_choice || peers.it[chosen].heat < found->choice.heat) {
        found->has_choice = true;
        found->choice = peers.it[chosen];
    }
    if (chosen > 0) {
        durable_count(&seal->stats.seal_heavy, 1);
    }
}

/* The lowest id of a range that has a record in a hot table, exactly: that of
 * its row; false where none has. */
static bool
first_hot(
    const struct seal *seal, const struct seal_range *range, uint64_t *id)
{
    uint64_t first = range->first_id / seal->n_shards;
    uint64_t last = range->last_id / seal->n_shards;
    uint64_t row, lowest = 0;
    bool has_found = false;
    for (unsigned shard = 0; shard < seal->n_shards; shard++) {
        if (engine_extent_first(
                seal->engine, range->slot, shard, first, last, &row)) {
            has_found = true;
            lowest = row;
            if (row == first) {
                break;
            }
            last = row - 1; /* of the next shard, only lower ones */
        }
    }
    *id = first_id_of(seal, lowest);
    ASSERT(!has_found || (*id >= range->first_id && *id <= range->last_id));
    return has_found;
}

/* Takes away from the front of a range the segments over which nothing is hot.
 * False where nothing is hot in all of it. */
static bool
narrow(const struct seal *seal, struct seal_range *range)
{
    struct segment_map_list *list;
    uint64_t id;
    if (!first_hot(seal, range, &id)) {
        return false;
    }
    if (segment_map_list(seal->segment_map, range->slot, range->first_id,
            range->last_id, &list) == 0 &&
        list != NULL) {
        for (size_t i = 0; i < list->n && list->entry[i].last_id < id; i++) {
            range->first_id = list->entry[i].last_id + 1;
        }
        segment_map_list_destroy(list);
    }
    ASSERT(range->first_id <= id && id <= range->last_id);
    return true;
}

/* The older half of a counter's newest candidate. */
static void
halve(const struct seal *seal, struct seal_range *range, uint64_t n_hot)
{
    struct seal half = {.engine = seal->engine,
        .n_shards = seal->n_shards,
        .chunk = n_hot / 2 + 1};
    struct seal_candidate it;
    if (n_hot >= HALVED_MIN &&
        seal_pick_next(&half, range->slot, range->first_id, &it) &&
        it.range.last_id < range->last_id) {
        range->last_id = it.range.last_id;
    }
}

/* The first range with a hot record, whatever it costs. */
static bool
pick_any(const struct seal *seal, const struct seal_aside *aside,
    const struct policy *policy, struct seal_range *out)
{
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        struct seal_candidate it;
        uint64_t from = 0;
        while (
            policy[slot].is_there && next_free(seal, aside, slot, from, &it)) {
            *out = it.range;
            if (narrow(seal, out)) {
                return true;
            }
            if (it.range.last_id == UINT64_MAX) {
                break;
            }
            from = it.range.last_id + 1;
        }
    }
    return false;
}

bool
seal_pick__best(
    struct seal *seal, const struct seal_aside *aside, struct seal_range *out)
{
    struct policy policy[SCHEMA_COUNTERS_MAX];
    struct found found = {0};
    take_policies(seal, policy);
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        if (policy[slot].is_there) {
            look_at(seal, aside, slot, policy[slot].is_quietest, &found);
        }
    }
    if (found.has_choice) {
        *out = found.choice.range;
        if (narrow(seal, out)) {
            return true;
        }
    }
    if (found.score > 0) {
        *out = found.dense.range;
        if (found.dense_is_newest && narrow(seal, out)) {
            halve(seal, out, found.dense.n_hot);
        }
        if (narrow(seal, out)) {
            return true;
        }
    }
    return pick_any(seal, aside, policy, out);
}

/* ---- in haste ---- */

/* What a seal of it would write. */
static uint64_t
n_written(const struct seal_candidate *it)
{
    return it->n_hot + it->n_cold;
}

/* The first part of a range of which a seal would write at most `most` records,
 * and half of that at least where there are so many. */
static void
cut_part(const struct seal *seal, const struct seal_range *range,
    uint64_t most, struct seal_candidate *out)
{
    uint64_t low = range->first_id / seal->n_shards, n_low = 0;
    uint64_t high = range->last_id / seal->n_shards, n_high;
    ASSERT(range->first_id <= range->last_id && most > 0);
    *out = (struct seal_candidate){.range = *range};
    measure(seal, out);
    n_high = n_written(out);
    if (n_high <= most) {
        return;
    }
    for (unsigned i = 0; high - low > 1; i++) {
        uint64_t row = i % 2 == 0
            ? seal_guess_row(low, high, n_low, n_high, most - most / 4)
            : low + (high - low) / 2;
        out->range.last_id = last_id_of(seal, row);
        measure(seal, out);
        uint64_t n = n_written(out);
        if (n > most) {
            high = row;
            n_high = n;
        } else if (n < most / 2) {
            low = row;
            n_low = n;
        } else {
            return;
        }
    }
    out->range.last_id = last_id_of(seal, low);
    ASSERT(out->range.last_id <= range->last_id);
    measure(seal, out);
}

/* Goes on behind the parts of the rest that free less than is worth it: what
 * was sealed lately. True where there is one that frees enough; else *out is
 * the best of them, and *score what that has. */
static bool
skip_front(const struct seal *seal, const struct seal_rest *rest,
    struct seal_candidate *out, double *score)
{
    struct seal_range left = {.slot = rest->slot,
        .first_id = rest->first_id,
        .last_id = rest->last_id};
    struct seal_candidate part;
    *score = 0;
    for (unsigned n = 1;; n++) {
        cut_part(seal, &left, rest->most, &part);
        double its = seal_score(&part, false);
        if (its > *score) {
            *score = its;
            *out = part;
        }
        if (*score >= rest->least || part.range.last_id == left.last_id ||
            n == SOON_LOOKS) {
            return *score >= rest->least;
        }
        left.first_id = part.range.last_id + 1;
    }
}

/* The next part of the rest. is_first: whatever it frees. */
static bool
take_part(const struct seal *seal, struct seal_rest *rest, bool is_first,
    struct seal_range *out)
{
    struct seal_candidate part;
    double score = 0;
    bool is_worth = rest->is_open && skip_front(seal, rest, &part, &score);
    rest->is_open = is_worth || (is_first && score > 0);
    if (!rest->is_open) {
        return false;
    }
    ASSERT(part.range.first_id >= rest->first_id &&
        part.range.last_id <= rest->last_id);
    *out = part.range;
    rest->is_open = part.range.last_id < rest->last_id;
    rest->first_id = part.range.last_id + 1;
    return narrow(seal, out);
}

/* True where it goes before the best one so far. */
static bool
is_sooner(
    const struct found *found, const struct seal_candidate *it, double score)
{
    const struct seal_candidate *best = &found->dense;
    double bar = found->score * SOON_MARGIN;
    if (seal_is_heavy(it, best->heat)) {
        bar *= SEAL_COLD_SHARE_MAX;
    }
    if (seal_is_heavy(best, it->heat)) {
        bar /= SEAL_COLD_SHARE_MAX;
    }
    return score > bar;
}

/* Takes part in found->dense what a counter has, as look_at does. */
static void
look_for_dense(const struct seal *seal, const struct seal_aside *aside,
    unsigned slot, bool is_quietest, struct found *found)
{
    struct seal_candidate it = {0};
    uint64_t from = 0;
    while (!it.is_last && next_free(seal, aside, slot, from, &it)) {
        measure(seal, &it);
        bool is_newest = it.is_last && !is_quietest;
        double score = seal_score(&it, is_newest);
        if (is_sooner(found, &it, score)) {
            found->score = score;
            found->dense = it;
            found->dense_is_newest = is_newest;
        }
        if (it.range.last_id == UINT64_MAX) {
            break;
        }
        from = it.range.last_id + 1;
    }
}

/* How many records a part may write: so that there are not too many files. */
static uint64_t
part_max(const struct seal *seal)
{
    struct segment_map_sum sum;
    if (seal->chunk != 0) {
        return seal->chunk;
    }
    segment_map__sum(seal->segment_map, &sum);
    uint64_t most = sum.records / SOON_FILES;
    return most < SOON_MAX ? SOON_MAX : most;
}

/* The densest range of all becomes the rest; false where nothing is hot. */
static bool
open_rest(
    struct seal *seal, const struct seal_aside *aside, struct seal_rest *rest)
{
    struct policy policy[SCHEMA_COUNTERS_MAX];
    struct found found = {0};
    take_policies(seal, policy);
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        if (policy[slot].is_there) {
            look_for_dense(
                seal, aside, slot, policy[slot].is_quietest, &found);
        }
    }
    struct seal_range *range = &found.dense.range;
    if (found.score == 0 || !narrow(seal, range)) {
        return false;
    }
    if (found.dense_is_newest) {
        halve(seal, range, found.dense.n_hot);
    }
    *rest =
        (struct seal_rest){true, range->slot, range->first_id, range->last_id,
            SOON_SHARE * seal_score(&found.dense, false), part_max(seal)};
    return true;
}

bool
seal_pick__soon(struct seal *seal, const struct seal_aside *aside,
    struct seal_rest *rest, struct seal_range *out)
{
    return take_part(seal, rest, false, out) ||
        (open_rest(seal, aside, rest) && take_part(seal, rest, true, out)) ||
        seal_pick__best(seal, aside, out);
}

/* The first range of a counter that is due, of ids below `limit`. */
static bool
pick_below(const struct seal *seal, const struct seal_aside *aside,
    unsigned slot, uint64_t limit, struct seal_range *out)
{
    uint64_t n_least = (seal->chunk != 0 ? seal->chunk : CHUNK_MIN) / 2;
    uint64_t from = 0;
    struct seal_candidate it = {0};
    limit -= limit % seal->n_shards; /* whole rows */
    ASSERT(slot < SCHEMA_COUNTERS_MAX);
    while (from < limit && !it.is_last &&
        next_free(seal, aside, slot, from, &it) && it.range.first_id < limit) {
        ASSERT(it.range.last_id >= from);
        if (it.range.last_id >= limit) {
            it.range.last_id = limit - 1;
        }
        measure(seal, &it);
        trim(seal, &it);
        if (it.n_hot >= n_least && seal_is_fair(&it) && !seal_is_busy(&it)) {
            *out = it.range;
            return true;
        }
        from = it.range.last_id + 1;
    }
    return false;
}

bool
seal_pick__due(const struct seal *seal, const struct seal_aside *aside,
    struct seal_range *out)
{
    struct policy policy[SCHEMA_COUNTERS_MAX];
    take_policies(seal, policy);
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        uint64_t after = policy[slot].cold_after, largest;
        if (after != 0 && engine_largest(seal->engine, slot, &largest) &&
            largest > after &&
            pick_below(seal, aside, slot, largest - after, out)) {
            return true;
        }
    }
    return false;
}

void
seal_pick__states(const struct seal *seal, struct seal_states *states)
{
    *states = (struct seal_states){0};
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        struct seal_candidate it = {0};
        uint64_t from = 0;
        while (!it.is_last && seal_pick_next(seal, slot, from, &it)) {
            measure(seal, &it);
            states->ranges_hot += it.n_cold == 0;
            states->ranges_overlaid += it.n_cold > 0;
            states->ranges_written += seal_is_heavy(&it, 0);
            from = it.range.last_id + 1;
        }
    }
}
