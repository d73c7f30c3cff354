/* SPDX-License-Identifier: BSD-3-Clause */
/* engine/table: widths, removal by shifting back (every arrangement of a few
 * rows, wrapped ones included), growth and shrinking, drops, exact bytes, and
 * failing allocations. What the codes mean is tested in check_shard. */
#include "base/err.h"
#include "engine/table.h"
#include "lib/fault_alloc.h"

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>

enum {
    PLACES = 8, /* capacity of the smallest table */
    ROWS = 5,   /* as many as fit it with one place to spare */
    MANY = 100000,
    FULL_ROWS = 6 /* rows at which the smallest table is full */
};

struct box {
    struct fault_alloc fault;
    struct table table;
};

static void
box_init(struct box *box)
{
    fault_alloc_init(&box->fault);
    table_init(&box->table, &box->fault.alloc, 0);
}

static void
box_fini(struct box *box)
{
    table_verify(&box->table);
    table_fini(&box->table);
    ck_assert_uint_eq(box->fault.live_bytes, 0);
}

static int
put(struct box *box, uint64_t id, unsigned slot, uint64_t code)
{
    struct table_write write = {.code = code, .slot = slot};
    return table_write(&box->table, id, &write, 1);
}

/* The code of a cell; 0 where there is no row. */
static uint64_t
get(struct box *box, uint64_t id, unsigned slot)
{
    const uint8_t *row = table_find(&box->table, id);
    return row == NULL ? 0 : table_code(&box->table, row, slot);
}

static void
check_bytes(struct box *box)
{
    table_verify(&box->table);
    ck_assert_uint_eq(box->fault.live_bytes, table_bytes(&box->table));
}

START_TEST(test_empty)
{
    struct box box;
    box_init(&box);
    ck_assert_ptr_null(table_find(&box.table, 0));
    ck_assert_int_eq(put(&box, 0, 3, 0), 0);
    ck_assert_int_eq(put(&box, 1, 3, 0), 0);
    table_prefetch(&box.table, 1);
    ck_assert_int_eq(table_drop(&box.table, 0xffff), 0);
    ck_assert_uint_eq(box.table.count, 0);
    ck_assert_uint_eq(box.fault.calls, 0);
    box_fini(&box);
}
END_TEST

START_TEST(test_id_zero)
{
    struct box box;
    box_init(&box);
    ck_assert_int_eq(put(&box, 7, 0, 70), 0);
    ck_assert_ptr_null(table_find(&box.table, 0));
    ck_assert_int_eq(put(&box, 0, 0, 5), 0);
    ck_assert_uint_eq(get(&box, 0, 0), 5);
    ck_assert_uint_eq(box.table.count, 2);
    ck_assert_int_eq(put(&box, 0, 0, 0), 0);
    ck_assert_ptr_null(table_find(&box.table, 0));
    ck_assert_uint_eq(get(&box, 7, 0), 70);
    ck_assert_uint_eq(box.table.count, 1);
    box_fini(&box);
}
END_TEST

/* Every border of a width, in the first, a middle and the last column; the
 * neighbours in the row and the other rows keep their codes. */
START_TEST(test_widths)
{
    struct box box;
    box_init(&box);
    static const unsigned slots[] = {0, 7, 15};
    unsigned slot = slots[_i];
    for (unsigned i = 0; i < TABLE_CELLS_MAX; i++) {
        ck_assert_int_eq(put(&box, 1, i, i == slot ? 1 : 100 + i), 0);
        ck_assert_int_eq(put(&box, 2, i, 1), 0);
    }
    for (unsigned bytes = 1; bytes <= 8; bytes++) {
        uint64_t most = UINT64_MAX >> (64 - 8 * bytes);
        ck_assert_int_eq(put(&box, 2, slot, most), 0);
        ck_assert_uint_eq(box.table.cell[slot].width, bytes);
        ck_assert_uint_eq(get(&box, 2, slot), most);
        if (bytes < 8) {
            ck_assert_int_eq(put(&box, 2, slot, most + 1), 0);
            ck_assert_uint_eq(box.table.cell[slot].width, bytes + 1);
            ck_assert_uint_eq(get(&box, 2, slot), most + 1);
        }
        for (unsigned i = 0; i < TABLE_CELLS_MAX; i++) {
            ck_assert_uint_eq(get(&box, 1, i), i == slot ? 1 : 100 + i);
            ck_assert(i == slot || get(&box, 2, i) == 1);
        }
        check_bytes(&box);
    }
    box_fini(&box);
}
END_TEST

START_TEST(test_hints)
{
    struct box box;
    box_init(&box);
    table_hint(&box.table, 1, 2);
    table_hint(&box.table, 2, 1);
    ck_assert_int_eq(put(&box, 1, 0, 1), 0);
    ck_assert_uint_eq(box.table.row_bytes, TABLE_ID_BYTES + 1);
    ck_assert_int_eq(put(&box, 1, 1, 1), 0);
    ck_assert_uint_eq(box.table.cell[1].width, 2);
    ck_assert_int_eq(put(&box, 1, 2, 65536), 0);
    ck_assert_uint_eq(box.table.cell[2].width, 3);
    ck_assert_uint_eq(box.table.row_bytes, TABLE_ID_BYTES + 1 + 2 + 3);
    box_fini(&box);
}
END_TEST

/* Several columns in one write: one rebuild for all of them. */
START_TEST(test_wide_write)
{
    struct box box;
    box_init(&box);
    struct table_write write[TABLE_CELLS_MAX];
    for (unsigned i = 0; i < TABLE_CELLS_MAX; i++) {
        write[i].slot = i;
        write[i].code = UINT64_MAX - i;
    }
    ck_assert_int_eq(table_write(&box.table, 9, write, TABLE_CELLS_MAX), 0);
    ck_assert_uint_eq(box.fault.calls, 1);
    for (unsigned i = 0; i < TABLE_CELLS_MAX; i++) {
        ck_assert_uint_eq(get(&box, 9, i), UINT64_MAX - i);
        write[i].code = 0;
    }
    ck_assert_int_eq(table_write(&box.table, 9, write, TABLE_CELLS_MAX), 0);
    ck_assert_uint_eq(table_bytes(&box.table), 0);
    ck_assert_uint_eq(box.table.row_bytes, TABLE_ID_BYTES);
    check_bytes(&box);
    box_fini(&box);
}
END_TEST

/* ids[home][i]: ROWS ids for each home of the smallest table; 0 is one. */
static void
find_ids(uint64_t ids[PLACES][ROWS])
{
    const struct table smallest = {.capacity = PLACES};
    unsigned n[PLACES] = {0};
    unsigned left = PLACES * ROWS;
    for (uint64_t id = 0; left > 0; id++) {
        size_t home = table__home(&smallest, id);
        if (n[home] < ROWS) {
            ids[home][n[home]++] = id;
            left--;
        }
    }
}

static void
check_removals(struct box *box, const uint64_t *id, unsigned first)
{
    for (unsigned i = 0; i < ROWS; i++) {
        ck_assert_int_eq(put(box, id[i], 0, i + 1), 0);
    }
    ck_assert_uint_eq(box->table.capacity, PLACES);
    for (unsigned i = 0; i < ROWS; i++) {
        unsigned gone = (first + i) % ROWS;
        ck_assert_int_eq(put(box, id[gone], 0, 0), 0);
        table_verify(&box->table);
        for (unsigned k = 0; k < ROWS; k++) {
            bool is_there = (k + ROWS - first) % ROWS > i;
            if (get(box, id[k], 0) != (is_there ? k + 1 : 0)) {
                ck_abort_msg("row %u after %u removals", k, i + 1);
            }
        }
    }
}

/* All ways in which the homes of ROWS rows can lie, a different row removed
 * first each time. */
START_TEST(test_removal)
{
    struct box box;
    box_init(&box);
    uint64_t ids[PLACES][ROWS];
    find_ids(ids);
    unsigned ways = 1;
    for (unsigned i = 0; i < ROWS; i++) {
        ways *= PLACES;
    }
    for (unsigned way = 0; way < ways; way++) {
        uint64_t id[ROWS];
        unsigned rest = way;
        for (unsigned i = 0; i < ROWS; i++) {
            id[i] = ids[rest % PLACES][i];
            rest /= PLACES;
        }
        check_removals(&box, id, way % ROWS);
        check_removals(&box, id, (way + 2) % ROWS);
    }
    box_fini(&box);
}
END_TEST

/* Grows to MANY rows and back: the load stays within its bounds, the bytes
 * are exact, and an empty table gives all back. */
START_TEST(test_growth)
{
    struct box box;
    box_init(&box);
    for (uint64_t id = 0; id < MANY; id++) {
        ck_assert_int_eq(put(&box, id << 22, 2, id % 200 + 1), 0);
        if (id > 100) {
            ck_assert_uint_ge(box.table.count * 100, box.table.capacity * 64);
        }
        ck_assert_uint_le(box.table.count * 100, box.table.capacity * 84);
    }
    check_bytes(&box);
    for (uint64_t id = 0; id < MANY; id++) {
        ck_assert_uint_eq(get(&box, id << 22, 2), id % 200 + 1);
        ck_assert_ptr_null(table_find(&box.table, (id << 22) + 1));
    }
    for (uint64_t id = 0; id < MANY; id++) {
        ck_assert_int_eq(put(&box, id << 22, 2, 0), 0);
        ck_assert_uint_le(
            box.table.capacity, 4 * box.table.count + PLACES + 4);
        if (id % 5000 == 0) {
            check_bytes(&box);
        }
    }
    ck_assert_uint_eq(box.table.count, 0);
    check_bytes(&box);
    box_fini(&box);
}
END_TEST

START_TEST(test_drop)
{
    struct box box;
    box_init(&box);
    for (uint64_t id = 0; id < 900; id++) {
        ck_assert_int_eq(put(&box, id, (unsigned)(id % 3), id + 1), 0);
        ck_assert_int_eq(put(&box, id, 5, id % 2), 0);
    }
    ck_assert_int_eq(table_drop(&box.table, 1U << 0 | 1U << 9), 0);
    ck_assert_uint_eq(box.table.count, 750);
    check_bytes(&box);
    for (uint64_t id = 0; id < 900; id++) {
        ck_assert_uint_eq(get(&box, id, 0), 0);
        ck_assert_uint_eq(get(&box, id, 1), id % 3 == 1 ? id + 1 : 0);
        ck_assert_uint_eq(get(&box, id, 2), id % 3 == 2 ? id + 1 : 0);
        ck_assert_uint_eq(get(&box, id, 5), id % 2);
    }
    fault_alloc_arm(&box.fault, 1);
    ck_assert_int_eq(table_drop(&box.table, 1U << 1 | 1U << 2), ERR_NO_MEMORY);
    ck_assert_uint_eq(box.table.count, 750);
    ck_assert_uint_eq(get(&box, 1, 1), 2);
    ck_assert_int_eq(table_drop(&box.table, 1U << 1 | 1U << 2), 0);
    ck_assert_uint_eq(box.table.count, 450);
    check_bytes(&box);
    fault_alloc_arm(&box.fault, 1);
    ck_assert_int_eq(table_drop(&box.table, 1U << 5), 0);
    ck_assert_uint_eq(box.table.count, 0);
    check_bytes(&box);
    box_fini(&box);
}
END_TEST

START_TEST(test_no_memory)
{
    struct box box;
    box_init(&box);
    fault_alloc_arm(&box.fault, 1);
    ck_assert_int_eq(put(&box, 1, 0, 1), ERR_NO_MEMORY);
    ck_assert_ptr_null(table_find(&box.table, 1));
    for (uint64_t id = 1; id <= FULL_ROWS; id++) {
        ck_assert_int_eq(put(&box, id, 0, id), 0);
    }
    fault_alloc_arm(&box.fault, 2);
    ck_assert_int_eq(put(&box, FULL_ROWS + 1, 0, 1), ERR_NO_MEMORY);
    ck_assert_int_eq(put(&box, 1, 0, 256), ERR_NO_MEMORY);
    ck_assert_uint_eq(box.table.count, FULL_ROWS);
    for (uint64_t id = 1; id <= FULL_ROWS; id++) {
        ck_assert_uint_eq(get(&box, id, 0), id);
    }
    check_bytes(&box);
    ck_assert_int_eq(put(&box, FULL_ROWS + 1, 0, 1), 0);
    ck_assert_uint_eq(box.table.count, FULL_ROWS + 1);
    box_fini(&box);
}
END_TEST

/* A shrink without memory keeps the larger table and is no error. */
START_TEST(test_no_memory_to_shrink)
{
    struct box box;
    box_init(&box);
    for (uint64_t id = 1; id <= 1000; id++) {
        ck_assert_int_eq(put(&box, id, 0, 1), 0);
    }
    size_t capacity = box.table.capacity;
    fault_alloc_arm(&box.fault, MANY);
    for (uint64_t id = 1; id < 1000; id++) {
        ck_assert_int_eq(put(&box, id, 0, 0), 0);
    }
    ck_assert_uint_gt(box.fault.failures, 0);
    ck_assert_uint_eq(box.table.capacity, capacity);
    ck_assert_uint_eq(get(&box, 1000, 0), 1);
    check_bytes(&box);
    ck_assert_int_eq(put(&box, 1000, 0, 0), 0);
    ck_assert_uint_eq(box.fault.live_bytes, 0);
    box_fini(&box);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("table");
    TCase *tcase = tcase_create("table");
    SRunner *sr = srunner_create(suite);
    int failed;

    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, test_empty);
    tcase_add_test(tcase, test_id_zero);
    tcase_add_loop_test(tcase, test_widths, 0, 3);
    tcase_add_test(tcase, test_hints);
    tcase_add_test(tcase, test_wide_write);
    tcase_add_test(tcase, test_removal);
    tcase_add_test(tcase, test_growth);
    tcase_add_test(tcase, test_drop);
    tcase_add_test(tcase, test_no_memory);
    tcase_add_test(tcase, test_no_memory_to_shrink);
    suite_add_tcase(suite, tcase);
    srunner_set_tap(sr, "-");
    srunner_run_all(sr, CK_SILENT);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
