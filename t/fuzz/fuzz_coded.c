/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes the reader of coded lists. Bytes that it takes are decoded and looked
 * into; where what they say ascends, the same list is coded again, and comes
 * out as it went in. Then the bytes are taken for ids and counts, which must
 * come back, one by one as well. */
#include "base/assert.h"
#include "base/bytes.h"
#include "lists/coded.h"

#include <string.h>

enum { PAIR_BYTES = 2 * sizeof(uint64_t), PAIRS_MAX = 1024 };

static struct coded_room room, again;
static uint8_t coded[CODED_BYTES_MAX];

static bool
ascends(void)
{
    for (unsigned i = 1; i < room.n; i++) {
        if (room.id[i] <= room.id[i - 1]) {
            return false;
        }
    }
    return true;
}

/* What is in room is coded and read. */
static void
check_room(void)
{
    struct coded list;
    size_t len = coded_make(room.id, room.count, room.n, coded);
    ASSERT(coded_open(&list, coded, len));
    coded_decode(&list, &again);
    ASSERT(again.n == room.n);
    ASSERT(memcmp(again.id, room.id, room.n * sizeof *room.id) == 0);
    ASSERT(memcmp(again.count, room.count, room.n * sizeof *room.count) == 0);
    for (unsigned i = 0; i < room.n; i += 1 + room.n / 16) {
        uint64_t count;
        ASSERT(coded_find(&list, room.id[i], &count));
        ASSERT(count == room.count[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct coded list;
    uint64_t count;
    if (coded_open(&list, data, size)) {
        coded_decode(&list, &room);
        (void)coded_find(&list, room.id[room.n / 2] + 1, &count);
        (void)coded_find(&list, 0, &count);
        if (ascends()) {
            check_room();
        }
    }
    room.n = 0;
    for (size_t at = 0; at + PAIR_BYTES <= size && at / PAIR_BYTES < PAIRS_MAX;
         at += PAIR_BYTES) {
        uint64_t id = bytes_get_u64(data + at);
        count = bytes_get_u64(data + at + sizeof id);
        (void)coded_put(&room, id >> count % 64, count >> id % 64);
    }
    if (room.n > 0) {
        check_room();
    }
    return 0;
}
