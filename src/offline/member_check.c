/* SPDX-License-Identifier: BSD-3-Clause */
/* Compares members with what their records say of them.
 *
 * Of each column of members: its pairs are those of segments and images, but
 * for those that have been changed since, and then these, as the log, or an
 * image over a segment, has them. Each is counted at the record that has its
 * number (member_ids.h). Then the counts are compared. A pair whose number
 * nobody has is no damage: a record gives up its members at once, and they are
 * taken out one by one; a crash in between leaves some. A stored note of a
 * number that a record has is: it would have the members taken out. */
#include "offline/member_check.h"

#include "base/assert.h"
#include "base/err.h"

#include <inttypes.h>
#include <string.h>

enum { TOLD_MAX = 10 /* records of a column whose ids are logged */ };

/* Of one column. */
struct look {
    const struct member_check *check;
    const struct schema_counter *counter, *pairs;
    const struct schema_column *column;
    struct member_ids_column *known;
    struct member_check_figures figures;
    const struct member_check_mender *mender; /* NULL: none */
    int err;
};

/* Such a note has a start take out the members of a record. */
static void
note_wrong(struct look *look, uint64_t id, uint64_t pair_id)
{
    if (look->err != 0) {
        return;
    }
    if (look->figures.wrong++ < TOLD_MAX) {
        log_line(look->check->logger, LOG_ERROR,
            "%s %" PRIu64 ": its %s count as given up, and it has them",
            look->counter->name.text, id, look->column->name.text);
    }
    if (look->mender != NULL) {
        look->err = look->mender->wrong_fn(
            look->mender->context, look->pairs->column[0].serial, pair_id);
    }
}

static void
note_pair(struct look *look, uint64_t pair_id)
{
    struct member_ids_pair pair = member_ids_pair(
        look->check->members, look->known, look->column->member_bits, pair_id);
    if (!pair.is_mark) {
        member_ids_raise(look->known, pair.shard, pair.number);
    }
    if (pair.is_ours) {
        look->figures.members++;
        (*pair.found)++;
    } else {
        look->figures.unreachable += !pair.is_mark;
    }
    if (pair.is_wrong) {
        note_wrong(look, pair.id, pair_id);
    }
}

/* True where something newer says what there is of a pair. */
static bool
is_changed(const struct look *look, uint64_t pair_id)
{
    return latest_find(&look->known->value, pair_id) != NULL;
}

static void
note_image(struct look *look, const struct images_entry *entry,
    const struct image *image)
{
    const struct engine *engine = look->check->members->engine;
    for (uint32_t i = 0; image->n_columns == 1 && i < image->n; i++) {
        uint64_t id = engine_id(engine, entry->shard, image->row[i]);
        if (image->code[0][i] != 0 && image->row[i] >= entry->first_row &&
            image->row[i] <= entry->last_row && !is_changed(look, id)) {
            note_pair(look, id);
        }
    }
}

static int
note_record(void *context, const struct segment_head *head,
    const struct segment_records *some, size_t i)
{
    struct look *look = context;
    (void)head;
    if (some->code[0][i] != 0 && !is_changed(look, some->id[i])) {
        note_pair(look, some->id[i]);
    }
    return 0;
}

/* A file of pairs. */
static int
note_segment(void *context, struct segment *segment,
    const struct manifest_segment *const *part, size_t n)
{
    struct look *look = context;
    (void)part;
    (void)n;
    int err = member_ids_each_record(
        look->check->members, look->pairs, segment, note_record, look);
    segment_close(&segment);
    return err;
}

static int
read_segments(struct look *look)
{
    struct manifest of_pairs = *look->check->members->manifest;
    const struct recover_segments segments = {.manifest = &of_pairs,
        .disk = look->check->disk,
        .logger = look->check->logger,
        .file_fn = note_segment,
        .context = look};
    size_t n;
    of_pairs.segments.segment = (struct manifest_segment *)segments_of(
        &of_pairs.segments, look->pairs->serial, &n);
    of_pairs.segments.n = n;
    return n == 0 ? 0 : recover_each_segment(&segments);
}

static void
read_image(void *context, const struct images_entry *entry)
{
    struct look *look = context;
    struct image image;
    if (look->err != 0 || entry->counter != look->pairs->slot) {
        return;
    }
    look->err = recover_read(look->check->reader, entry, &image);
    if (look->err == 0 && image.counter_serial == look->pairs->serial) {
        note_image(look, entry, &image);
    }
}

/* Says that two records have one number. */
static void
look_for_twice(struct look *look)
{
    const struct member_ids *members = look->check->members;
    const struct member_ids_column *known = look->known;
    if (known->n_numbers == known->owner.n) {
        return;
    }
    for (size_t i = 0; i < known->number.n; i++) {
        const struct latest_one *one = &known->number.one[i];
        uint64_t id = member_ids_id_of(members, known, one);
        if (one->value == 0 || id == one->key) {
            continue;
        }
        if (look->figures.twice++ < TOLD_MAX) {
            log_line(look->check->logger, LOG_ERROR,
                "%s %" PRIu64 " and %" PRIu64 ": both have the number %" PRIu64
                " for their %s",
                look->counter->name.text, one->key, id, one->value,
                look->column->name.text);
        }
    }
    ASSERT(look->figures.twice > 0);
}

static void
compare(struct look *look, uint64_t id, uint64_t count, uint64_t n_members)
{
    if (count == n_members || look->err != 0) {
        return;
    }
    if (look->figures.miscounted++ < TOLD_MAX) {
        log_line(look->check->logger, LOG_ERROR,
            "%s %" PRIu64 ": the count of its %s is %" PRIu64
            ", and it has %" PRIu64,
            look->counter->name.text, id, look->column->name.text, count,
            n_members);
    }
    if (look->mender != NULL) {
        look->err = look->mender->miscount_fn(
            look->mender->context, look->column->counts, id, n_members);
    }
}

static void
compare_counts(struct look *look)
{
    const struct member_ids_column *known = look->known;
    if (look->column->counts == 0) {
        return;
    }
    for (size_t i = 0; i < known->owner.n; i++) {
        uint64_t id = known->owner.one[i].value;
        const struct latest_one *count = latest_find(&known->count, id);
        compare(look, id, count == NULL ? 0 : count->value, known->found[i]);
    }
    for (size_t i = 0; i < known->count.n; i++) {
        const struct latest_one *one = &known->count.one[i];
        const struct latest_one *number =
            latest_find(&known->number, one->key);
        if (number == NULL || number->value == 0) {
            compare(look, one->key, one->value, 0);
        }
    }
}

/* What is above what was logged one by one. */
static void
say_rest(const struct look *look, uint64_t n, const char *what)
{
    if (n > TOLD_MAX) {
        log_line(look->check->logger, LOG_ERROR,
            "%s.%s: %" PRIu64 " records %s in all", look->counter->name.text,
            look->column->name.text, n, what);
    }
}

static void
look_at(struct look *look)
{
    struct member_ids_column *known = look->known;
    memset(known->found, 0, (known->owner.n + 1) * sizeof *known->found);
    int err = read_segments(look);
    look->err = look->err == 0 ? err : look->err;
    images_each(&look->check->members->manifest->images, read_image, look);
    for (size_t i = 0; i < known->value.n; i++) {
        if (known->value.one[i].value != 0) {
            note_pair(look, known->value.one[i].key);
        }
    }
    if (look->err != 0) {
        return;
    }
    look_for_twice(look);
    compare_counts(look);
    say_rest(look, look->figures.twice, "have the number of another one");
    say_rest(look, look->figures.miscounted, "have a wrong count");
    say_rest(look, look->figures.wrong, "count as without members");
    if (look->figures.unreachable > 0) {
        log_line(look->check->logger, LOG_WARNING,
            "%s.%s: %" PRIu64 " members that no record has any more: it was "
            "deleted, or they were, shortly before a crash; they take room "
            "until a start has taken them out",
            look->counter->name.text, look->column->name.text,
            look->figures.unreachable);
    }
}

int
member_check(const struct member_check *check, struct buf *out,
    const struct member_check_mender *mender)
{
    struct member_check_figures sum = {0};
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        const struct schema_counter *pairs =
            schema_counter_at(check->schema, slot);
        if (pairs == NULL || pairs->members_of == 0) {
            continue;
        }
        struct look look = {.check = check,
            .counter = schema_owner(check->schema, pairs),
            .pairs = pairs,
            .column = schema_members(check->schema, pairs),
            .known = member_ids_find(check->members, pairs->members_of),
            .mender = mender};
        ASSERT(look.known != NULL && look.known->found != NULL);
        look_at(&look);
        if (look.err != 0) {
            return look.err;
        }
        sum.members += look.figures.members;
        sum.unreachable += look.figures.unreachable;
        sum.twice += look.figures.twice;
        sum.miscounted += look.figures.miscounted;
        sum.wrong += look.figures.wrong;
    }
    buf_addf(out, "members %" PRIu64 "\n", sum.members);
    buf_addf(out, "members_unreachable %" PRIu64 "\n", sum.unreachable);
    return sum.twice > 0 || sum.miscounted > 0 || sum.wrong > 0 ? ERR_CORRUPT
                                                                : 0;
}
