/* SPDX-License-Identifier: BSD-3-Clause */
/* Builds a table in four steps.
 *
 *   measure  looks at a sample of the sources' records, and at what is known of
 *            all of them
 *   choose   keeps the counter's shapes, or trains others where those take much
 *            less room; works out the number of lines
 *   fill     puts each record into its first line
 *   late     puts the rest into second lines, by moves, and into the stash
 *
 * The late step waits until each record has been tried in its first line, so
 * few records are far. If the lines do not suffice, a few more are taken. The
 * new table has no more records than its sources; its sums are verified before
 * it is handed over, and that it has just their ids where VERIFIES_IDS. */
#include "engine/build.h"

#include "base/assert.h"
#include "base/err.h"
#include "base/fold.h"
#include "base/sanitizer.h"
#include "engine/reach.h"
#include "engine/table_each.h"
#include "engine/table_heat.h"
#include "engine/table_place.h"

#include <string.h>

enum {
    LATE_LINES = 1 << 26,  /* a table has fewer lines */
    SAMPLE_RECORDS = 2048, /* about as many are sampled for shapes */
    SAMPLE_FEW = 512,      /* and to see whether shapes still suit */
    WORSE_SHARE = 64,      /* they do where records take no 1/64 more bits */
    BETTER_SHARE = 128,    /* new ones must save that share of them */
    TRAIN_RECORDS = 256,   /* fewer do not ask for shapes of their own */
    SINGLE_GAIN = 1, /* bits of a record that one shape for all must save */
    LATE_MAX = 8192, /* remembered that found no first line */
    MISFIT_BITS_MAX = LINE_USABLE_BITS / 4 - LINE_RECORD_BITS,
    /* A table packed to BUILD_LOAD_TIGHT may have 1 line in so many fewer than
     * wanted, where these would only fill up its last piece. */
    SNUG_SHARE = 48,
    /* Lines of five to eight records are full sooner after they were made at
     * BUILD_LOAD_GROW; at this load on average as full as others, and they
     * still grow in steps of 15 %. In 1/1024; of the reach. */
    LOAD_GROW_FEW = 875,
    REACH_FEW = 880, /* with less, a line takes fewer */
    SIZES_MAX = 3,   /* tried, and then */
    TRIES = 12
};

struct measure {
    const struct build *build;
    uint64_t base, mask;
    uint32_t n; /* records there will be in lines, about */
    uint32_t n_sampled;
    uint32_t n_wanted;    /* in the sample, of each source */
    unsigned single_bits; /* of a remainder, that shapes of a single set hold:
                           * 4, or what there is beyond tags */
    struct shapes_sample sample;
};

static void
sample_need(struct measure *measure, const uint64_t *code)
{
    struct shapes_need need = shapes_need_all(code);
    shapes_sample_add(&measure->sample, &need);
    measure->n_sampled++;
}

static void
measure_record(void *context, uint64_t row, const uint64_t *code)
{
    struct measure *measure = context;
    if (((row ^ measure->base) & ~measure->mask) == 0) {
        sample_need(measure, code);
    }
}

/* True where all rows of a table are within base + 0..mask. */
static bool
is_within(uint64_t base, uint64_t mask, const struct table *table)
{
    return ((table->base ^ base) & ~mask) == 0 && table->mask <= mask;
}

struct misfits {
    struct measure *measure;
    const struct table *source;
    uint32_t stride, at;
};

static uint32_t
stride_of(const struct table *source, uint32_t n_wanted)
{
    return source->n_records / n_wanted + 1;
}

/* Large records, of which a line takes less than four, are as cheap in the
 * stash. */
static bool
is_large(const struct table *source, const struct shapes_need *need)
{
    return source->form.extra_bits + shapes_need_sum(need) > MISFIT_BITS_MAX;
}

/* What did not suit the old shapes is what new ones are for. Large records may
 * stay in the stash, wide ones are large, too, and narrow ones are too few to
 * count. */
static void
measure_misfit(void *context, uint64_t key, const uint64_t *code)
{
    struct misfits *misfits = context;
    const struct table *source = misfits->source;
    struct shapes_need need = shapes_need_all(code);
    if (!is_large(source, &need) &&
        shapes_fit(source->form.shapes, &need) < 0 &&
        misfits->at++ % misfits->stride == 0) {
        measure_record(misfits->measure, source->base + key, code);
    }
}

/* Returns how many of the stash may find a line. */
static uint32_t
measure_stash(
    struct measure *measure, const struct table *source, uint32_t stride)
{
    struct misfits misfits = {measure, source, stride, 0};
    if (source->n_stash[TABLE_MISFIT] > 0) {
        stash_each(table_stash(source), measure_misfit, &misfits);
    }
    return misfits.at + source->n_stash[TABLE_NARROW];
}

/* Records too wide for any line do not count. */
static void
measure_rows(
    struct measure *measure, uint32_t n_wanted, struct shapes_need *widest)
{
    const struct carry_rows *rows = measure->build->rows;
    uint64_t code[SHAPES_COLUMNS_MAX] = {0};
    uint64_t any[SHAPES_COLUMNS_MAX] = {0};
    uint64_t n = 0;
    uint32_t n_wide = 0;
    size_t stride = rows->n / n_wanted + 1;
    uint64_t lines = rows->n / (LINE_RECORDS_MAX + 1);
    unsigned bits_max = SHAPES_BITS_MAX -
        table_extra_bits((unsigned)__builtin_popcountll(measure->mask),
            lines < TABLE_LINES_MIN ? TABLE_LINES_MIN : (uint32_t)lines,
            false);
    for (size_t i = 0; i < rows->n; i++) {
        n += carry_codes(rows, i, code);
        for (unsigned c = 0; c < rows->n_columns; c++) {
            any[rows->column[c]] |= rows->code[c][i];
        }
    }
    for (size_t i = 0; i < rows->n; i += stride) {
        if (carry_codes(rows, i, code)) {
            struct shapes_need need = shapes_need_all(code);
            if (shapes_need_sum(&need) > bits_max) {
                n_wide++;
            } else {
                sample_need(measure, code);
            }
        }
    }
    *widest = shapes_need_join(*widest, shapes_need_all(any));
    n = n_wide == 0
        ? n
        : n * measure->n_sampled / ((uint64_t)measure->n_sampled + n_wide);
    measure->n += (uint32_t)n;
}

/* Records of a table in its lines. */
static uint32_t
count_in_lines(const struct table *table)
{
    return table->n_records - table_n_stashed(table);
}

/* A sample of the lines and of what fits no shape; how wide the widest is, is
 * known of all. */
static void
measure_all(struct measure *measure, uint32_t n_wanted)
{
    const struct build *build = measure->build;
    struct shapes_need widest = {{0, 0}};
    shapes_sample_init(&measure->sample);
    measure->n = 0;
    measure->n_sampled = 0;
    measure->n_wanted = n_wanted;
    for (int i = 0; i < BUILD_SOURCES_MAX; i++) {
        const struct table *source = build->source[i];
        if (source != NULL) {
            uint32_t stride = stride_of(source, n_wanted);
            uint32_t before = measure->n_sampled;
            table_each_line(
                build->owner, source, stride, measure_record, measure);
            uint32_t n_more = measure_stash(measure, source, stride);
            bool is_whole = is_within(measure->base, measure->mask, source);
            measure->n += is_whole ? count_in_lines(source) + n_more
                                   : (measure->n_sampled - before) * stride;
            widest = shapes_need_join(widest, source->widest);
        }
    }
    if (build->rows != NULL) {
        measure_rows(measure, n_wanted, &widest);
    }
    if (build->code != NULL &&
        ((build->row ^ measure->base) & ~measure->mask) == 0) {
        measure->n += build->is_new;
        sample_need(measure, build->code);
        widest = shapes_need_join(widest, shapes_need_all(build->code));
    }
    measure->sample.widest = widest;
}

/* Bits of the sample's records under a set, those of their ids but for tags
 * left out; what shapes hold of ids is a gain. */
static uint64_t
sample_bits(const struct measure *measure, const struct shapes *shapes,
    unsigned bits_max)
{
    unsigned gain = shapes->is_single ? measure->single_bits : 0;
    return (uint64_t)measure->n_sampled * (LINE_RECORD_BITS - gain) +
        shapes_cost(shapes, &measure->sample, bits_max);
}

/* The same to what the records need, in 1/1024. */
static uint32_t
sample_ratio(const struct measure *measure, const struct shapes *shapes,
    unsigned bits_max)
{
    uint64_t least = (uint64_t)measure->n_sampled * LINE_RECORD_BITS +
        shapes_cost_least(&measure->sample);
    uint64_t bits = sample_bits(measure, shapes, bits_max);
    return least == 0 ? 1024 : (uint32_t)(bits * 1024 / least);
}

/* True where the counter's set is sure to be good enough: it was weighed
 * against another for a table no smaller than half of this, and is hardly
 * worse for this one. */
static bool
is_good(const struct build *build, const struct measure *measure,
    unsigned bits_max)
{
    const struct shapes_set *now = *build->set;
    const struct build_trained *trained = build->trained;
    if (now == NULL || now->shapes.total[SHAPES_N - 1] > bits_max) {
        return false;
    }
    if (measure->n < TRAIN_RECORDS) {
        return shapes_fit(&now->shapes, &measure->sample.widest) >= 0;
    }
    if (trained == NULL || measure->n / 2 >= trained->n) {
        return false;
    }
    if (build->code != NULL) {
        struct shapes_need need = shapes_need_all(build->code);
        if (shapes_fit(&now->shapes, &need) < 0) {
            return false;
        }
    }
    return sample_ratio(measure, &now->shapes, bits_max) <=
        trained->ratio + trained->ratio / WORSE_SHARE;
}

/* The best set for the sample: of 16 shapes, or of one for all. Few records say
 * little of what will come, and a single set has no shape for anything else. */
static void
train(const struct build *build, const struct measure *measure,
    unsigned bits_max, struct shapes *out)
{
    struct shapes single;
    shapes_train(out, &measure->sample, build->columns, bits_max);
    if (measure->single_bits < SINGLE_GAIN || measure->n < TRAIN_RECORDS) {
        return;
    }
    shapes_train_single(&single, &measure->sample, build->columns, bits_max);
    if (sample_bits(measure, &single, bits_max) +
            (uint64_t)measure->n_sampled * SINGLE_GAIN <=
        sample_bits(measure, out, bits_max)) {
        *out = single;
    }
}

/* Takes a better set for the counter, if there is one. */
static int
weigh_set(const struct build *build, const struct measure *measure,
    unsigned bits_max)
{
    struct shapes_set *now = *build->set;
    struct shapes_set *made;
    struct shapes shapes;
    const struct shapes *best = &shapes;
    train(build, measure, bits_max, &shapes);
    if (now != NULL && now->shapes.total[SHAPES_N - 1] <= bits_max) {
        uint64_t old = sample_bits(measure, &now->shapes, bits_max);
        uint64_t new = sample_bits(measure, &shapes, bits_max);
        if (old <= new + new / BETTER_SHARE) {
            best = &now->shapes;
        }
    }
    if (best == &shapes) {
        int err = shapes_set_create(
            build->owner->pool, &shapes, build->purpose, &made);
        if (err != 0) {
            return err;
        }
        shapes_set_drop(build->owner->pool, now);
        *build->set = made;
        best = &made->shapes;
    }
    if (build->trained != NULL && measure->n >= TRAIN_RECORDS) {
        build->trained->n = measure->n;
        build->trained->ratio = sample_ratio(measure, best, bits_max);
    }
    return 0;
}

static uint32_t
lines_at(uint64_t bits, unsigned load, uint32_t least)
{
    uint64_t lines =
        bits * BUILD_LOAD_FULL / ((uint64_t)LINE_USABLE_BITS * load) + 1;
    least = least < TABLE_LINES_MIN ? TABLE_LINES_MIN : least;
    return lines < least ? least : (uint32_t)lines;
}

/* measure.single_bits: all 4 where so many records of the least size fill few
 * enough lines for ids to have them beyond their tags. */
static unsigned
measure_single(const struct measure *measure, unsigned width)
{
    const struct build *build = measure->build;
    uint64_t n_sampled = measure->n_sampled == 0 ? 1 : measure->n_sampled;
    uint64_t values = shapes_cost_least(&measure->sample);
    uint64_t bits = (uint64_t)measure->n * LINE_RECORD_BITS +
        (uint64_t)measure->n * values / n_sampled;
    uint32_t lines = lines_at(bits, (unsigned)build->load, build->n_lines_min);
    unsigned extra = table_extra_bits(width, lines, false);
    return extra < LINE_SHAPE_BITS ? extra : LINE_SHAPE_BITS;
}

/* Looks at the sources, and sees to shapes for them. */
static int
choose_set(const struct build *build, struct measure *measure, unsigned width)
{
    bool is_tight = build->load == BUILD_LOAD_TIGHT;
    measure_all(measure, is_tight ? SAMPLE_RECORDS : SAMPLE_FEW);
    measure->single_bits = measure_single(measure, width);
    /* no line holds more records than that, so there are at least so many */
    uint32_t fewest = measure->n / (LINE_RECORDS_MAX + 1);
    unsigned bits_max = SHAPES_BITS_MAX -
        table_extra_bits(
            width, fewest < TABLE_LINES_MIN ? TABLE_LINES_MIN : fewest, false);
    if (is_good(build, measure, bits_max)) {
        return 0;
    }
    if (!is_tight && measure->n_sampled < measure->n) {
        measure_all(measure, SAMPLE_RECORDS);
    }
    return weigh_set(build, measure, bits_max);
}

/* A large record of a stash that gets a line after all, if the set has a shape
 * for it. */
static void
let_in(void *context, uint64_t key, const uint64_t *code)
{
    struct misfits *misfits = context;
    struct measure *measure = misfits->measure;
    const struct table *source = misfits->source;
    const struct shapes *now = &(*measure->build->set)->shapes;
    struct shapes_need need = shapes_need_all(code);
    uint64_t row = source->base + key;
    if (is_large(source, &need) &&
        ((row ^ measure->base) & ~measure->mask) == 0 &&
        shapes_fit(source->form.shapes, &need) < 0 &&
        shapes_fit(now, &need) >= 0) {
        measure->n++;
        if (misfits->at++ % misfits->stride == 0) {
            sample_need(measure, code);
        }
    }
}

/* A set that was trained for others mostly has a shape for the large records
 * too, since its widest covers the sources' widest; or the range has become
 * narrow enough for one. Then they do not stay in the stash, and may be more
 * than all others: lines must be made for them. */
static void
measure_let_in(struct measure *measure)
{
    for (int i = 0; i < BUILD_SOURCES_MAX; i++) {
        const struct table *source = measure->build->source[i];
        if (source != NULL &&
            source->n_stash[TABLE_MISFIT] + source->n_stash[TABLE_WIDE] > 0 &&
            source->set != *measure->build->set) {
            struct misfits misfits = {
                measure, source, stride_of(source, measure->n_wanted), 0};
            stash_each(table_stash(source), let_in, &misfits);
        }
    }
}

/* The sizes of records as the sample has them, and how often. */
static void
weigh_sizes(const struct build *build, const struct measure *measure,
    unsigned extra_bits, uint16_t size[SHAPES_N], uint64_t weight[SHAPES_N])
{
    const struct shapes *shapes = &(*build->set)->shapes;
    shapes_weigh(shapes, &measure->sample, weight);
    for (int i = 0; i < SHAPES_N; i++) {
        size[i] = (uint16_t)(LINE_RECORD_BITS + extra_bits + shapes->total[i]);
    }
}

/* Value bits of all records: known where they keep their shapes, else from
 * the sample. */
static uint64_t
choose_values(const struct build *build, const struct measure *measure)
{
    const struct shapes_set *set = *build->set;
    uint64_t values = 0;
    uint64_t n = 0;
    bool is_known = true;
    for (int i = 0; i < BUILD_SOURCES_MAX; i++) {
        const struct table *source = build->source[i];
        if (source != NULL) {
            uint32_t n_here = count_in_lines(source);
            is_known = is_known && source->set == set &&
                is_within(measure->base, measure->mask, source);
            values += source->used_bits -
                (uint64_t)n_here *
                    (LINE_RECORD_BITS + source->form.extra_bits);
            n += n_here;
        }
    }
    if (!is_known || n == 0) {
        n = measure->n_sampled == 0 ? 1 : measure->n_sampled;
        values = shapes_cost(&set->shapes, &measure->sample, SHAPES_BITS_MAX);
    }
    return values * measure->n / n;
}

/* Numbers of lines to be tried, one after the other. How full lines become of
 * these records is known by trial only, so a table that is packed may have to
 * be made once more. */
struct sizes {
    unsigned n;
    uint32_t lines[SIZES_MAX];
    unsigned reach; /* see struct table */
};

static void
add_size(struct sizes *sizes, uint32_t lines)
{
    lines = table_lines_round(lines);
    if (sizes->n == 0 || sizes->lines[sizes->n - 1] != lines) {
        ASSERT(sizes->n < SIZES_MAX);
        sizes->lines[sizes->n++] = lines;
    }
}

/* A table that is packed. Where less than BUILD_LOAD_TIGHT is wanted, so that
 * hits look at few lines, the nearer one of the numbers that pieces make is
 * taken: as many tables have some more as some less. */
static void
add_packed_sizes(struct sizes *sizes, const struct build *build, uint64_t bits,
    unsigned packed)
{
    uint32_t wanted = lines_at(bits, packed, build->n_lines_min);
    uint32_t fewer = table_lines_cut(wanted);
    uint32_t spare = packed < BUILD_LOAD_TIGHT
        ? table_lines_round(wanted) - wanted
        : wanted / SNUG_SHARE;
    if (fewer >= build->n_lines_min && fewer >= TABLE_LINES_MIN &&
        wanted - fewer <= spare) {
        add_size(sizes, fewer);
    }
    add_size(sizes, wanted);
}

static void
choose_lines(const struct build *build, const struct measure *measure,
    unsigned width, struct sizes *sizes)
{
    uint64_t values = choose_values(build, measure);
    unsigned load = (unsigned)build->load;
    uint32_t lines = TABLE_LINES_MIN;
    uint64_t bits = 0;
    unsigned extra = 0;
    uint16_t size[SHAPES_N];
    uint64_t weight[SHAPES_N];
    for (int i = 0; i < 3; i++) { /* fewer lines, more extra bits */
        extra =
            table_extra_bits(width, lines, (*build->set)->shapes.is_single);
        bits = (uint64_t)measure->n * (LINE_RECORD_BITS + extra) + values;
        lines = lines_at(bits, load, build->n_lines_min);
    }
    weigh_sizes(build, measure, extra, size, weight);
    sizes->n = 0;
    sizes->reach = reach_load(size, weight);
    if (build->load == BUILD_LOAD_GROW && sizes->reach < REACH_USUAL &&
        sizes->reach >= REACH_FEW) {
        load = LOAD_GROW_FEW;
    }
    load = load * sizes->reach / REACH_USUAL;
    if (build->load == BUILD_LOAD_TIGHT) {
        unsigned packed = reach_packed(size, weight, BUILD_LOAD_TIGHT);
        if (sizes->reach < REACH_USUAL && packed < load) {
            /* of large records many are far whatever is done */
            packed = load;
        }
        add_packed_sizes(sizes, build, bits, packed);
        if (packed <= load) {
            return;
        }
    }
    add_size(sizes, lines_at(bits, load, build->n_lines_min));
}

/* A record that found no room in its first line. */
struct late {
    uint32_t line : 26; /* below LATE_LINES */
    uint32_t index : 5;
    uint32_t source : 1;
};

_Static_assert(BUILD_SOURCES_MAX <= 2 && LINE_RECORDS_MAX < 32,
    "a late record is named in 32 bits");

struct filling {
    const struct build *build;
    struct table_owner aside; /* no reader sees the table yet */
    struct table *table;
    int err;
    unsigned source; /* the one in hand */
    unsigned n_late;
    bool has_empty; /* a source has tombstones */
    bool is_over;   /* there was one more than these: */
    union {
        struct late late[LATE_MAX];
        uint32_t late_row[LATE_MAX]; /* where build->rows are the source */
    };
};

/* Puts a record wherever there is room, unless it is there. */
static void
put_late(struct filling *filling, uint64_t row, const uint64_t *code)
{
    struct table_spot spot;
    const struct cover_at *cover = filling->build->cover;
    if (filling->err != 0 || !table_covers(filling->table, row) ||
        (filling->has_empty && table_is_nothing(code) &&
            !cover_keeps(cover, row))) {
        return;
    }
    table_find(&filling->aside, filling->table, row, &spot);
    if (spot.where == TABLE_NOWHERE) {
        filling->err = table_put(&filling->aside, filling->table, &spot, code,
            filling->build->purpose);
    }
}

static void
remember_late(void *context, uint32_t line, unsigned index)
{
    struct filling *filling = context;
    ASSERT(line < LATE_LINES);
    if (filling->n_late == LATE_MAX) {
        filling->is_over = true;
        return;
    }
    filling->late[filling->n_late++] =
        (struct late){.line = line & (LATE_LINES - 1),
            .index = index & 31,
            .source = filling->source & 1};
}

static void
put_remembered(struct filling *filling, struct late late)
{
    const struct table *source = filling->build->source[late.source];
    struct line_copy copy;
    struct line_record record;
    ASSERT(late.line < source->n_lines);
    line_load(table_line(source, late.line), &copy);
    ASSERT(late.index < line_count(&copy));
    line_get(&copy, &source->form, late.index, &record);
    put_late(filling,
        carry_row(filling->build->owner, source, late.line, &record),
        record.code);
}

static void
remember_row(void *context, size_t i)
{
    struct filling *filling = context;
    if (filling->n_late == LATE_MAX) {
        filling->is_over = true;
        return;
    }
    ASSERT(i <= UINT32_MAX);
    filling->late_row[filling->n_late++] = (uint32_t)i;
}

/* Of the rows, what first lines have not taken. */
static void
fill_rows(struct filling *filling)
{
    const struct carry_rows *rows = filling->build->rows;
    uint64_t code[SHAPES_COLUMNS_MAX] = {0};
    for (unsigned j = 0; j < filling->n_late; j++) {
        uint32_t i = filling->late_row[j];
        ASSERT(i < rows->n);
        (void)carry_codes(rows, i, code);
        put_late(filling, rows->row[i], code);
    }
    for (size_t i = 0; filling->is_over && i < rows->n; i++) {
        if (carry_codes(rows, i, code)) {
            put_late(filling, rows->row[i], code);
        }
    }
}

static void
put_again(void *context, uint64_t row, const uint64_t *code)
{
    put_late(context, row, code);
}

struct stashed {
    struct filling *filling;
    uint64_t base;
};

static void
put_stashed(void *context, uint64_t key, const uint64_t *code)
{
    struct stashed *stashed = context;
    put_late(stashed->filling, stashed->base + key, code);
}

/* All but the records that their first lines have taken. */
static void
fill_late(struct filling *filling)
{
    for (unsigned i = 0; i < filling->n_late; i++) {
        put_remembered(filling, filling->late[i]);
    }
    for (int i = 0; i < BUILD_SOURCES_MAX; i++) {
        const struct table *source = filling->build->source[i];
        if (source == NULL) {
            continue;
        }
        if (filling->is_over) {
            table_each_line(
                filling->build->owner, source, 1, put_again, filling);
        }
        const struct stash *stash = table_stash(source);
        struct stashed stashed = {filling, source->base};
        if (stash != NULL) {
            stash_each(stash, put_stashed, &stashed);
        }
    }
}

/* Records of all sources. */
static uint64_t
count_given(const struct build *build)
{
    uint64_t n = build->rows == NULL ? 0 : build->rows->n;
    for (int i = 0; i < BUILD_SOURCES_MAX; i++) {
        n += build->source[i] == NULL ? 0 : build->source[i]->n_records;
    }
    return n;
}

/* A table is new: what fits no shape goes to the stash without asking for
 * other shapes, since these were made for it. */
static int
fill(const struct build *build, struct table *table)
{
    struct filling filling;
    struct carry carry;
    filling.build = build;
    filling.aside = *build->owner;
    filling.aside.stripes = NULL;
    filling.aside.is_thorough = build->load == BUILD_LOAD_TIGHT;
    filling.table = table;
    filling.err = 0;
    filling.n_late = 0;
    filling.has_empty = false;
    filling.is_over = false;
    table->n_misfits_max = UINT32_MAX;
    carry_begin(&carry, build->owner, table);
    for (unsigned i = 0; i < BUILD_SOURCES_MAX; i++) {
        if (build->source[i] != NULL) {
            filling.source = i;
            filling.has_empty |= build->source[i]->n_empty > 0;
            carry_lines(&carry, build->source[i], build->cover, remember_late,
                &filling);
        }
    }
    if (build->rows != NULL) {
        carry_in(&carry, build->rows, remember_row, &filling);
    }
    carry_end(&carry);
    if (build->rows != NULL) {
        fill_rows(&filling);
    } else {
        fill_late(&filling);
    }
    uint32_t n = table->n_stash[TABLE_MISFIT];
    uint32_t more = table->n_records / (2 * TABLE_STASH_SHARE);
    table->n_misfits_max = n + (more > n / 4 ? more : n / 4);
    if (build->code != NULL) {
        /* and the record that all this is for, if no set has a shape for it */
        struct shapes_need need = shapes_need_all(build->code);
        table->n_misfits_max +=
            shapes_fit(table->form.shapes, &need) < 0 ? 1 : 0;
    }
    table->n_planned = table->n_records;
    table->n_stale = 0;
    ASSERT(table->n_records <= count_given(build));
    return filling.err;
}

/* It takes about as long as filling the table. */
#if SANITIZER_ADDRESS || defined TALLYD_HOOKS
enum { VERIFIES_IDS = 1 };
#else
enum { VERIFIES_IDS = 0 };
#endif

/* The sum of a hash of each id, of records that are or should be in a table. */
struct ids {
    const struct table *table;
    const struct cover_at *cover;
    uint64_t sum;
};

static void
add_id(void *context, uint64_t row, const uint64_t *code)
{
    struct ids *ids = context;
    if (table_covers(ids->table, row) &&
        (!table_is_nothing(code) || cover_keeps(ids->cover, row))) {
        ids->sum += fold_id(row);
    }
}

/* A table that was filled has the ids that it was made for, and no other. */
static void
verify_ids(const struct build *build, const struct table *table)
{
    const struct carry_rows *rows = build->rows;
    struct ids is = {table, build->cover, 0};
    struct ids wanted = is;
    uint64_t code[SHAPES_COLUMNS_MAX] = {0};
    for (int i = 0; i < BUILD_SOURCES_MAX; i++) {
        if (build->source[i] != NULL) {
            table_each(build->owner, build->source[i], add_id, &wanted);
        }
    }
    if (rows != NULL) {
        is.cover = wanted.cover = rows->cover;
        for (size_t i = 0; i < rows->n; i++) {
            if (carry_codes(rows, i, code)) {
                add_id(&wanted, rows->row[i], code);
            }
        }
    }
    table_each(build->owner, table, add_id, &is);
    ASSERT(is.sum == wanted.sum);
}

/* Makes a table of that many lines and fills it; also TABLE_FULL. */
static int
try_lines(const struct build *build, uint64_t base, unsigned width,
    uint32_t lines, struct table **out)
{
    struct pool *pool = build->owner->pool;
    struct table *table;
    int err = table_create(
        pool, base, width, lines, *build->set, build->purpose, &table);
    if (err != 0) {
        return err;
    }
    err = fill(build, table);
    if (build->trained != NULL) {
        build->trained->n_fills++;
        build->trained->n_builds += err == 0;
    }
    if (err != 0) {
        table_destroy(pool, &table);
        return err;
    }
    *out = table;
    return 0;
}

int
build_table(const struct build *build, uint64_t base, unsigned width,
    struct table **out)
{
    struct measure measure = {
        .build = build, .base = base, .mask = perm_mask(width)};
    struct sizes sizes;
    table_owner_assert_held(build->owner);
    pool_reclaim(build->owner->pool);
    int err = choose_set(build, &measure, width);
    if (err != 0) {
        return err;
    }
    measure_let_in(&measure);
    choose_lines(build, &measure, width, &sizes);
    ASSERT(sizes.n >= 1);
    uint32_t lines = sizes.lines[0];
    for (unsigned i = 0; i < TRIES; i++) {
        if (i < sizes.n) {
            lines = sizes.lines[i];
        } else {
            lines = table_lines_round(
                lines + lines / (i < TRIES / 2 ? 32 : 4) + 1);
        }
        if (build->n_lines_max != 0 && lines > build->n_lines_max) {
            return TABLE_FULL;
        }
        err = try_lines(build, base, width, lines, out);
        if (err == 0) {
            (*out)->reach = sizes.reach;
            (*out)->built_bits = (*out)->used_bits;
            table_verify_sums(*out);
            if (VERIFIES_IDS) {
                verify_ids(build, *out);
            }
            table_heat_inherit(*out, build->source, BUILD_SOURCES_MAX);
        }
        if (err != TABLE_FULL) {
            return err;
        }
    }
    return ERR_NO_MEMORY;
}
