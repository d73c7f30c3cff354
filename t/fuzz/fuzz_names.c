/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes names as ids. The first byte says what the others are:
 *
 *   0  one image after the other, whose checksums are put right: what loads is
 *      a whole dictionary, whose own images load as well
 *   1  the same, as they are
 *   2  a script: names that come and go, tables that are learned, beside the
 *      same names in a plain list
 *   3  a name, or an id */
#include "base/assert.h"
#include "base/bytes.h"
#include "base/checksum.h"
#include "names/dict.h"

#include <string.h>

enum { LIST_MAX = 256, SUM_BYTES = 8, AT_BYTES = 10 };

static struct name_account account = {.limit_bytes = 1 << 24};
static const struct dict_config config = {.account = &account, .key = "0123"};

static struct dict *
make(void)
{
    struct dict *dict;
    int err = dict_create(&dict, &config);
    ASSERT(err == 0);
    return dict;
}

static void
drop(struct dict *dict)
{
    dict_destroy(&dict);
    ASSERT(account.used_bytes == 0);
}

/* The dictionary as images in another one, whose images are the same. */
static void
load_again(const struct dict *dict)
{
    uint8_t bytes[NAME_IMAGE_BYTES_MAX], same[NAME_IMAGE_BYTES_MAX];
    struct dict *again = make();
    for (uint32_t i = 1; i <= NAME_TABLES_MAX + dict_blocks(dict); i++) {
        bool is_table = i <= NAME_TABLES_MAX;
        uint32_t n_block = i - NAME_TABLES_MAX - 1;
        size_t n = is_table ? dict_image_table(dict, i, bytes)
                            : dict_image_block(dict, n_block, bytes);
        if (n > 0) {
            int err = dict_load(again, bytes, n);
            ASSERT(err == 0);
            size_t n_same = is_table ? dict_image_table(again, i, same)
                                     : dict_image_block(again, n_block, same);
            ASSERT(n_same == n && memcmp(bytes, same, n) == 0);
        }
    }
    dict_verify(again);
    ASSERT(dict_sums(again).names == dict_sums(dict).names);
    dict_destroy(&again);
}

static void
fuzz_images(const uint8_t *data, size_t size, bool is_mended)
{
    struct dict *dict = make();
    int err = 0;
    while (err == 0 && size >= NAME_IMAGE_HEAD_BYTES) {
        uint8_t bytes[NAME_IMAGE_BYTES_MAX];
        size_t n = bytes_get_u16(data + AT_BYTES);
        n = n < NAME_IMAGE_HEAD_BYTES || n > size ? size : n;
        n = n < sizeof bytes ? n : sizeof bytes;
        memcpy(bytes, data, n);
        if (is_mended) {
            bytes_put_u16(bytes + AT_BYTES, (uint16_t)n);
            bytes_put_u64(
                bytes, checksum64(bytes + SUM_BYTES, n - SUM_BYTES, 0));
        }
        /* blocks of high numbers: all below them are noted as free */
        err = bytes_get_u32(bytes + 12) > 4096 ? 1 : dict_load(dict, bytes, n);
        data += n;
        size -= n;
    }
    if (err == 0) {
        dict_verify(dict);
        load_again(dict);
    }
    drop(dict);
}

struct listed {
    const char *bytes;
    size_t len;
    uint32_t number; /* DICT_NO_NUMBER: it is not there */
};

static uint32_t
find(const struct dict *dict, const struct listed *listed)
{
    struct dict_ask ask = {.dict = dict,
        .bytes = listed->bytes,
        .len = listed->len,
        .hash = dict_hash(config.key, listed->bytes, listed->len)};
    dict_find(&ask, 1);
    return ask.number;
}

/* A step: the place of a name in the list, which comes or goes. */
static void
step(struct dict *dict, struct listed *listed)
{
    uint32_t number;
    bool is_new;
    ASSERT(find(dict, listed) == listed->number);
    if (listed->number == DICT_NO_NUMBER) {
        int err = dict_add(dict, listed->bytes, listed->len, &number, &is_new);
        ASSERT(err == 0 && is_new);
        listed->number = number;
    } else {
        bool was_there = dict_remove(dict, listed->number);
        ASSERT(was_there);
        listed->number = DICT_NO_NUMBER;
    }
}

/* Names, up to a byte that none can have, and then what happens to them. */
static void
fuzz_script(const uint8_t *data, size_t size)
{
    static struct listed list[LIST_MAX];
    struct dict *dict = make();
    uint64_t id;
    size_t n = 0, at = 0;
    while (at < size && n < LIST_MAX && data[at] != 0) {
        size_t len = 0;
        while (at + len < size && len < NAME_BYTES_MAX &&
            data[at + len] > ' ' && data[at + len] != 127) {
            len++;
        }
        struct listed *listed = &list[n];
        *listed =
            (struct listed){(const char *)data + at, len, DICT_NO_NUMBER};
        bool is_other = len > 0 && !own_id_of(listed->bytes, len, &id);
        for (size_t i = 0; i < n; i++) {
            is_other = is_other &&
                (list[i].len != len ||
                    memcmp(list[i].bytes, data + at, len) != 0);
        }
        n += is_other;
        at += len + 1;
    }
    for (at++; n > 0 && at < size; at++) {
        if (data[at] == 0xff && dict_sums(dict).names > 0) {
            int err = dict_image_table(dict, 3, (uint8_t[8192]){0}) > 0
                ? 0
                : dict_learn(dict);
            ASSERT(err == 0);
        } else {
            step(dict, &list[data[at] % n]);
        }
    }
    dict_verify(dict);
    load_again(dict);
    drop(dict);
}

static void
fuzz_own(const uint8_t *data, size_t size)
{
    char name[OWN_DIGITS_MAX];
    uint64_t id;
    if (own_id_of(data, size, &id)) {
        ASSERT(name_is_valid(data, size) && id < OWN_ID_END);
        ASSERT(own_id_name(id, name) == size);
        ASSERT(memcmp(name, data, size) == 0);
    }
    if (size >= sizeof id) {
        uint64_t again;
        id = bytes_get_u64(data);
        size_t len = own_id_name(id, name);
        ASSERT(len == 0 || (own_id_of(name, len, &again) && again == id));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    switch (data[0] % 4) {
    case 0:
    case 1:
        fuzz_images(data + 1, size - 1, data[0] % 4 == 0);
        break;
    case 2:
        fuzz_script(data + 1, size - 1);
        break;
    default:
        fuzz_own(data + 1, size - 1);
    }
    return 0;
}
