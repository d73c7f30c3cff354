/* SPDX-License-Identifier: BSD-3-Clause */
/* Digests. What is summed of a record is XXH3, with seed 0, of
 *
 *   0  8  the id
 *   8 12  for each cell that is not at its default, by serial ascending: serial
 *         4, value 8
 *
 * and of a member, with seed 1, of
 *
 *   0  8  the id          12  8  the member
 *   8  4  serial of       20  1  its value
 *         its column
 *
 * all little-endian. Sums do not depend on an order, nor on what is in memory
 * and what in segments. Numbers of members (SCHEMA_MEMBERS) are not in it. */
#include "store/digest.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/checksum.h"
#include "durable/durable_position.h"

enum {
    RECORD_SEED = 0,
    MEMBER_SEED = 1,
    ID_BYTES = 8,
    CELL_BYTES = 12,
    MEMBER_BYTES = 21
};

void
digest_begin(struct store_digest *digest, struct durable *durable)
{
    *digest = (struct store_digest){.seq = durable_cut(durable)};
}

void
digest_end(struct store_digest *digest, struct durable *durable)
{
    /* seq may be that of a mark, which changes nothing and does not count */
    digest->has_changed = durable_touched(durable) > digest->seq;
}

/* Columns of a line, by serial ascending. */
struct order {
    unsigned n;
    unsigned at[SCHEMA_COLUMNS_MAX]; /* its place in the line */
    uint32_t serial[SCHEMA_COLUMNS_MAX];
    uint64_t default_value[SCHEMA_COLUMNS_MAX];
};

static void
make_order(const struct dump_work *work, struct order *out)
{
    unsigned at = 0;
    out->n = 0;
    for (unsigned c = 0; c < work->head.n_columns; c++) {
        const struct segment_column *column = &work->head.column[c];
        if (!dump_column_is_shown(work->column[c])) {
            continue;
        }
        unsigned i = out->n++;
        for (; i > 0 && out->serial[i - 1] > column->serial; i--) {
            out->at[i] = out->at[i - 1];
            out->serial[i] = out->serial[i - 1];
            out->default_value[i] = out->default_value[i - 1];
        }
        out->at[i] = at++;
        out->serial[i] = column->serial;
        out->default_value[i] = column->default_value;
    }
    ASSERT(out->n == work->n_shown);
}

static uint64_t
hash_record(uint64_t id, const uint64_t *value, const struct order *order)
{
    uint8_t bytes[ID_BYTES + SCHEMA_COLUMNS_MAX * CELL_BYTES];
    size_t len = ID_BYTES;
    bytes_put_u64(bytes, id);
    for (unsigned i = 0; i < order->n; i++) {
        uint64_t it = value[order->at[i]];
        if (it != order->default_value[i]) {
            bytes_put_u32(bytes + len, order->serial[i]);
            bytes_put_u64(bytes + len + 4, it);
            len += CELL_BYTES;
        }
    }
    return checksum64(bytes, len, RECORD_SEED);
}

static uint64_t
hash_member(uint64_t id, const struct store_dump_member *member)
{
    uint8_t bytes[MEMBER_BYTES];
    bytes_put_u64(bytes, id);
    bytes_put_u32(bytes + 8, member->serial);
    bytes_put_u64(bytes + 12, member->member);
    bytes[20] = member->value;
    return checksum64(bytes, sizeof bytes, MEMBER_SEED);
}

void
digest_add(struct store_digest *digest, const struct dump_work *work)
{
    struct order order;
    if (work->n == 0) { /* its columns may not be known yet */
        return;
    }
    make_order(work, &order);
    for (uint32_t i = 0; i < work->n; i++) {
        const struct store_dump_member *member =
            work->batch == NULL ? NULL : &work->batch->one[i];
        digest->sum += member != NULL && member->serial != 0
            ? hash_member(work->id[i], member)
            : hash_record(
                  work->id[i], &work->value[(size_t)i * order.n], &order);
    }
    digest->records += work->n;
}
