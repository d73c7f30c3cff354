/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_MEMBER_COLD_HELP_H
#define UNIT_MEMBER_COLD_HELP_H

/* Members beside a fake cold tier (lib/fake_cover), to which records and pairs
 * may go, each part of them alone. */

#include "base/err.h"
#include "lib/fake_cover.h"
#include "unit/member_help.h"

enum {
    WORLD_SHARDS = 2,
    CELLS = 5,
    BITS = 16,
    VALUE_BITS = 2,
    CUT_NUMBERS = 40, /* where cells of pairs may be cut */
    CUT_STEP = 60,
    CUT_IDS = 300,
    TWO_BASES = 2
};

enum { OF_RECORDS, OF_PAIRS, PARTS };

struct world {
    struct engine_cover cover; /* first: the seam of both parts */
    struct rig rig;
    struct fake_cover fake[PARTS];
    size_t published[PARTS][WORLD_SHARDS * CELLS]; /* entries of the journal */
    unsigned part, shard, first, last; /* cells that are being sealed */
    uint64_t n_cold;                   /* changes that wanted a base */
};

static inline struct fake_cover *
fake_of(const struct engine_cover *cover, unsigned slot)
{
    struct world *world = (struct world *)cover;
    ck_assert(slot == POSTS || slot == PAIRS);
    return &world->fake[slot == PAIRS ? OF_PAIRS : OF_RECORDS];
}

static inline uint64_t
world_version(const struct engine_cover *cover, unsigned slot, unsigned shard,
    uint64_t row)
{
    const struct engine_cover *fake = &fake_of(cover, slot)->cover;
    return fake->version_fn(fake, slot, shard, row);
}

static inline bool
world_any(const struct engine_cover *cover, unsigned slot, unsigned shard,
    uint64_t first_row, uint64_t last_row)
{
    const struct engine_cover *fake = &fake_of(cover, slot)->cover;
    return fake->any_fn(fake, slot, shard, first_row, last_row);
}

static inline bool
world_last_row(const struct engine_cover *cover, unsigned slot, unsigned shard,
    uint64_t *row)
{
    const struct engine_cover *fake = &fake_of(cover, slot)->cover;
    ck_assert(slot == PAIRS);
    return fake->last_row_fn(fake, slot, shard, row);
}

static inline bool
world_column(const struct engine_cover *cover, unsigned slot, unsigned shard,
    uint32_t serial)
{
    const struct engine_cover *fake = &fake_of(cover, slot)->cover;
    return fake->column_fn(fake, slot, shard, serial);
}

/* Where cells of pairs are cut: in the middle of what a number has. */
static inline void
cut_pairs(struct world *world)
{
    uint64_t id[CUT_NUMBERS * WORLD_SHARDS];
    size_t n = 0;
    for (uint64_t i = 0; i < CUT_NUMBERS; i++) {
        uint64_t row = ((i * CUT_STEP + 1) << BITS) + 1;
        for (unsigned shard = 0; shard < WORLD_SHARDS; shard++) {
            id[n++] = engine_id(world->rig.engine, shard, row);
        }
    }
    fake_cover_init(&world->fake[OF_PAIRS], world->rig.engine, PAIRS,
        WORLD_SHARDS, CELLS, id, n);
}

static inline void
world_init(struct world *world, const struct alloc *alloc)
{
    uint64_t id[CUT_IDS];
    memset(world, 0, sizeof *world);
    world->cover = (struct engine_cover){.version_fn = world_version,
        .any_fn = world_any,
        .last_row_fn = world_last_row,
        .column_fn = world_column};
    rig_form(&world->rig, WORLD_SHARDS, BITS, VALUE_BITS);
    world->rig.def.cold_is_never = false;
    world->rig.pairs.cold_is_never = false;
    rig_make(&world->rig, alloc, NULL);
    for (unsigned i = 0; i < CUT_IDS; i++) {
        id[i] = i;
    }
    fake_cover_init(&world->fake[OF_RECORDS], world->rig.engine, POSTS,
        WORLD_SHARDS, CELLS, id, CUT_IDS);
    cut_pairs(world);
    engine_set_cover(world->rig.engine, &world->cover);
}

static inline void
world_fini(struct world *world)
{
    rig_fini(&world->rig);
    fake_cover_fini(&world->fake[OF_RECORDS]);
    fake_cover_fini(&world->fake[OF_PAIRS]);
}

static inline void
note_publication(void *context)
{
    struct world *world = context;
    for (unsigned i = world->first; i <= world->last; i++) {
        world->published[world->part][world->shard * CELLS + i] =
            world->rig.journal.n;
    }
}

/* 0, or ERR_NO_MEMORY. */
static inline int
seal_cells(struct world *world, unsigned part, unsigned shard, unsigned first,
    unsigned last, const struct alloc *alloc)
{
    const struct fake_sealing sealing = {
        .published_fn = note_publication, .context = world};
    world->part = part;
    world->shard = shard;
    world->first = first;
    world->last = last;
    return fake_cover_seal(&world->fake[part], world->rig.engine, shard, first,
        last, alloc, &sealing);
}

/* All of it: nothing of that part is hot then. */
static inline void
seal_part(struct world *world, unsigned part)
{
    for (unsigned shard = 0; shard < WORLD_SHARDS; shard++) {
        ck_assert_int_eq(
            seal_cells(world, part, shard, 0, CELLS - 1, NULL), 0);
    }
}

/* Column i of an id, wherever it is; and the base of its record. True where
 * that is in the cold tier. */
static inline bool
see(struct world *world, const struct schema_counter *def, unsigned i,
    uint64_t id, uint64_t *value, struct engine_base *base)
{
    struct cell_key key = key_of(def, i, id);
    struct engine_found found;
    uint8_t state;
    unsigned shard;
    uint64_t row;
    engine_look(world->rig.engine, &key, 1, value, &state, &found);
    CHECK(state != CELL_GONE);
    if (found.is_here || found.version == 0) {
        return false;
    }
    engine_row(world->rig.engine, id, &shard, &row);
    fake_cover_base(
        fake_of(&world->cover, def->slot), found.version, row, base);
    base->id = id;
    *value = fake_cover_value(base, &def->column[i]);
    return true;
}

static inline uint64_t
cold_cell(struct world *world, const struct schema_counter *def, unsigned i,
    uint64_t id)
{
    struct engine_base base;
    uint64_t value;
    (void)see(world, def, i, id, &value, &base);
    return value;
}

static inline uint64_t
cold_number(struct world *world, uint64_t id)
{
    return cold_cell(world, &world->rig.def, LIKED, id);
}

static inline uint64_t
cold_likes(struct world *world, uint64_t id)
{
    return cold_cell(world, &world->rig.def, LIKES, id);
}

static inline uint64_t
pair_of(struct world *world, uint64_t id, uint64_t member)
{
    return engine_pair(
        world->rig.engine, id, cold_number(world, id), BITS, member);
}

static inline uint64_t
cold_value(struct world *world, uint64_t id, uint64_t member)
{
    return cold_cell(world, &world->rig.pairs, 0, pair_of(world, id, member));
}

/* Gives a change the bases of what it wants: of its record, and of its pair. */
static inline void
bring(struct world *world, struct change *change,
    struct engine_base base[TWO_BASES])
{
    uint64_t number, value;
    change->base =
        see(world, &world->rig.def, LIKED, change->id, &number, &base[0])
        ? &base[0]
        : NULL;
    if (change_is_of_member(change)) {
        uint64_t pair = engine_pair(world->rig.engine, change->id, number,
            BITS, change->member.member);
        change->member.base = number != 0 &&
                see(world, &world->rig.pairs, 0, pair, &value, &base[1])
            ? &base[1]
            : NULL;
    }
}

/* Does one, with bases where they are wanted; its err. */
static inline int
change_cold(struct world *world, struct change *change)
{
    struct engine_base base[TWO_BASES];
    engine_change(world->rig.engine, change, 1);
    if (change->err == ERR_COLD) {
        world->n_cold++;
        bring(world, change, base);
        engine_change(world->rig.engine, change, 1);
        CHECK(change->err != ERR_COLD);
    }
    return change->err;
}

/* The same of a member. */
static inline int
member_cold(struct world *world, enum change_op op, uint64_t id,
    uint64_t member, uint64_t operand)
{
    struct change change = member_of(&world->rig, op, id, member, operand);
    return change_cold(world, &change);
}

/* True where an entry of the journal was told before what covers its row now
 * was published. */
static inline bool
is_sealed(struct world *world, size_t i)
{
    const struct engine_write *write = &world->rig.journal.entry[i].write;
    unsigned part = write->counter == PAIRS ? OF_PAIRS : OF_RECORDS;
    const struct fake_cover *fake = &world->fake[part];
    unsigned shard;
    uint64_t row;
    engine_row(world->rig.engine, write->id, &shard, &row);
    unsigned at = shard * CELLS + fake_cover_cell(fake, shard, row);
    return fake->cell[at] != NULL && i < world->published[part][at];
}

/* A new engine that has what the sink was told behind what is sealed, as after
 * a restart. */
static inline void
world_restart(struct world *world)
{
    struct rig *rig = &world->rig;
    struct journal old = rig->journal;
    finish_engine(&rig->engine);
    rig_make(rig, NULL, NULL);
    journal_fini(&rig->journal);
    rig->journal = old;
    engine_set_sink(rig->engine, NULL);
    engine_set_cover(rig->engine, &world->cover);
    engine_begin_loading(rig->engine);
    world->fake[OF_RECORDS].is_loading = true;
    world->fake[OF_PAIRS].is_loading = true;
    for (size_t i = 0; i < old.n; i++) {
        struct change change = replayed(rig, &old.entry[i].write);
        if (change.n_columns > 0 && !is_sealed(world, i)) {
            engine_change(rig->engine, &change, 1);
            ck_assert_int_eq(change.err, 0);
        }
    }
    world->fake[OF_RECORDS].is_loading = false;
    world->fake[OF_PAIRS].is_loading = false;
    engine_end_loading(rig->engine);
    engine_set_sink(rig->engine, &rig->journal.sink);
}

#endif
