/* SPDX-License-Identifier: BSD-3-Clause */
/* The C library libmemcached: client_libmemcached PORT text|binary
 * items|cells. It has no types; the flags are those the program gives. */
#include <inttypes.h>
#include <libmemcached/memcached.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PAST_S = 1000000000,
    CELLS = 99,
    SUFFIXES = 3,
    KEYS_MAX = 120,
    KEY_SIZE = 64,
    LARGE_BYTES = 1000000,
    TOO_LARGE_BYTES = 1 << 21,
    LONG_KEY_BYTES = 250,
    POLL_TIMEOUT_MS = 60000,
};

#define MEGA UINT64_C(4294967295)

/* The first thing of a row that was not as it must be; NULL where all was. */
static const char *wrong;
static int wrong_line;

#define NEED(condition) need(condition, #condition, __LINE__)
#define IS(call, word) NEED((call) == MEMCACHED_##word)

static void
need(bool condition, const char *text, int line)
{
    if (!condition && wrong == NULL) {
        wrong = text;
        wrong_line = line;
    }
}

static memcached_return_t
set_bytes(memcached_st *memc, const char *key, const char *value, size_t len,
    uint32_t flags)
{
    return memcached_set(memc, key, strlen(key), value, len, 0, flags);
}

static memcached_return_t
set(memcached_st *memc, const char *key, const char *value, uint32_t flags)
{
    return set_bytes(memc, key, value, strlen(value), flags);
}

/* True where key holds these bytes under flags. */
static bool
holds_bytes(memcached_st *memc, const char *key, const char *value, size_t len,
    uint32_t flags)
{
    size_t got_len;
    uint32_t got_flags;
    memcached_return_t rc;
    char *got =
        memcached_get(memc, key, strlen(key), &got_len, &got_flags, &rc);
    bool same = rc == MEMCACHED_SUCCESS && got_len == len &&
        (len == 0 || memcmp(got, value, len) == 0) && got_flags == flags;
    free(got);
    return same;
}

static bool
holds(memcached_st *memc, const char *key, const char *value, uint32_t flags)
{
    return holds_bytes(memc, key, value, strlen(value), flags);
}

static bool
is_absent(memcached_st *memc, const char *key)
{
    size_t len;
    uint32_t flags;
    memcached_return_t rc;
    free(memcached_get(memc, key, strlen(key), &len, &flags, &rc));
    return rc == MEMCACHED_NOTFOUND;
}

/* What incr (or decr) of key gives; an error where it is refused. */
static bool
incr_gives(memcached_st *memc, const char *key, uint32_t by, uint64_t wanted)
{
    uint64_t value = 0;
    return memcached_increment(memc, key, strlen(key), by, &value) ==
        MEMCACHED_SUCCESS &&
        value == wanted;
}

static bool
decr_gives(memcached_st *memc, const char *key, uint32_t by, uint64_t wanted)
{
    uint64_t value = 1;
    return memcached_decrement(memc, key, strlen(key), by, &value) ==
        MEMCACHED_SUCCESS &&
        value == wanted;
}

/* add, replace and the like: for a key and a value that are strings. */
#define STORE(verb, memc, key, value)                                         \
    memcached_##verb(memc, key, strlen(key), value, strlen(value), 0, 0)

/* Refused, in the word of either protocol. */
static bool
is_refused(memcached_return_t rc)
{
    return rc == MEMCACHED_NOTSTORED || rc == MEMCACHED_DATA_EXISTS ||
        rc == MEMCACHED_NOTFOUND;
}

static uint64_t
unique_of(memcached_st *memc, const char *key)
{
    size_t len = strlen(key);
    memcached_return_t rc;
    IS(memcached_mget(memc, &key, &len, 1), SUCCESS);
    memcached_result_st *result = memcached_fetch_result(memc, NULL, &rc);
    NEED(result != NULL);
    if (result == NULL) {
        return 0;
    }
    uint64_t unique = memcached_result_cas(result);
    memcached_result_free(result);
    NEED(memcached_fetch_result(memc, NULL, &rc) == NULL);
    return unique;
}

static void
check_cas(memcached_st *memc, const char *key)
{
    size_t len = strlen(key);
    IS(set(memc, key, "5", 0), SUCCESS);
    uint64_t unique = unique_of(memc, key);
    IS(memcached_cas(memc, key, len, "6", 1, 0, 0, unique), SUCCESS);
    IS(memcached_cas(memc, key, len, "7", 1, 0, 0, unique), DATA_EXISTS);
    NEED(holds(memc, key, "6", 0));
}

static void
check_quiet(memcached_st *memc, const char *key)
{
    IS(memcached_behavior_set(memc, MEMCACHED_BEHAVIOR_NOREPLY, 1), SUCCESS);
    IS(set(memc, key, "3", 0), SUCCESS);
    IS(memcached_behavior_set(memc, MEMCACHED_BEHAVIOR_NOREPLY, 0), SUCCESS);
    NEED(holds(memc, key, "3", 0));
}

/* One multi-get of count keys, of which the first present must come, in this
 * order, with the numbers that they were given. */
static void
check_multi(memcached_st *memc, char (*key)[KEY_SIZE], const uint64_t *number,
    unsigned count, unsigned present)
{
    const char *keys[KEYS_MAX];
    size_t lens[KEYS_MAX];
    for (unsigned i = 0; i < count; i++) {
        keys[i] = key[i];
        lens[i] = strlen(key[i]);
    }
    IS(memcached_mget(memc, keys, lens, count), SUCCESS);
    memcached_result_st *result;
    memcached_return_t rc;
    unsigned n = 0;
    while ((result = memcached_fetch_result(memc, NULL, &rc)) != NULL) {
        char value[KEY_SIZE];
        unsigned at = n < present ? n : 0;
        snprintf(value, sizeof value, "%" PRIu64, number[at]);
        NEED(memcached_result_key_length(result) == lens[at]);
        NEED(strncmp(memcached_result_key_value(result), keys[at], lens[at]) ==
            0);
        NEED(memcached_result_length(result) == strlen(value));
        NEED(strncmp(memcached_result_value(result), value, strlen(value)) ==
            0);
        memcached_result_free(result);
        n++;
    }
    NEED(n == present);
}

/* len bytes that do not compress. The caller frees them. */
static char *
noise(size_t len)
{
    char *bytes = malloc(len);
    uint64_t x = len;
    for (size_t i = 0; bytes != NULL && i < len; i++) {
        x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        bytes[i] = (char)(x >> 56);
    }
    return bytes;
}

static void
item_text(memcached_st *memc)
{
    IS(set(memc, "text", "plain text", 77), SUCCESS);
    NEED(holds(memc, "text", "plain text", 77));
}

static void
item_unicode(memcached_st *memc)
{
    static const char text[] = "\xe5\xbe\xae\xe5\x8d\x9a \xc3\xa9";
    IS(set(memc, "unicode", text, 0), SUCCESS);
    NEED(holds(memc, "unicode", text, 0));
}

static void
item_bytes(memcached_st *memc)
{
    char bytes[1024];
    for (unsigned i = 0; i < sizeof bytes; i++) {
        bytes[i] = (char)i;
    }
    IS(set_bytes(memc, "bytes", bytes, sizeof bytes, UINT32_MAX), SUCCESS);
    NEED(holds_bytes(memc, "bytes", bytes, sizeof bytes, UINT32_MAX));
}

static void
item_empty(memcached_st *memc)
{
    IS(set(memc, "empty", "", 5), SUCCESS);
    NEED(holds(memc, "empty", "", 5));
}

static void
item_miss(memcached_st *memc)
{
    NEED(is_absent(memc, "miss"));
}

static void
check_add(memcached_st *memc, const char *key)
{
    IS(STORE(add, memc, key, "1"), SUCCESS);
    NEED(is_refused(STORE(add, memc, key, "2")));
    NEED(holds(memc, key, "1", 0));
}

static void
item_add(memcached_st *memc)
{
    check_add(memc, "add");
}

static void
check_replace(memcached_st *memc, const char *key)
{
    NEED(is_refused(STORE(replace, memc, key, "1")));
    IS(set(memc, key, "1", 0), SUCCESS);
    IS(STORE(replace, memc, key, "2"), SUCCESS);
    NEED(holds(memc, key, "2", 0));
}

static void
item_replace(memcached_st *memc)
{
    check_replace(memc, "replace");
}

static void
item_append(memcached_st *memc)
{
    IS(set(memc, "append", "text", 77), SUCCESS);
    IS(STORE(append, memc, "append", "!"), SUCCESS);
    IS(STORE(prepend, memc, "append", "_"), SUCCESS);
    NEED(holds(memc, "append", "_text!", 77));
}

static void
item_cas(memcached_st *memc)
{
    check_cas(memc, "cas");
}

static void
item_number(memcached_st *memc)
{
    IS(set(memc, "number", "10", 3), SUCCESS);
    NEED(incr_gives(memc, "number", 5, 15));
    NEED(decr_gives(memc, "number", 3, 12));
    NEED(holds(memc, "number", "12", 3));
}

static void
check_floor(memcached_st *memc, const char *key)
{
    IS(set(memc, key, "5", 0), SUCCESS);
    NEED(decr_gives(memc, key, 9, 0));
    NEED(holds(memc, key, "0", 0));
}

static void
item_floor(memcached_st *memc)
{
    check_floor(memc, "floor");
}

static void
item_wide(memcached_st *memc)
{
    IS(set(memc, "wide", "4294967295", 0), SUCCESS);
    NEED(incr_gives(memc, "wide", 1, MEGA + 1));
    NEED(holds(memc, "wide", "4294967296", 0));
}

static void
item_word(memcached_st *memc)
{
    uint64_t value;
    IS(set(memc, "word", "word", 0), SUCCESS);
    NEED(memcached_increment(memc, "word", 4, 1, &value) != MEMCACHED_SUCCESS);
    NEED(holds(memc, "word", "word", 0));
}

static void
item_no_number(memcached_st *memc)
{
    uint64_t value;
    IS(memcached_increment(memc, "no-number", 9, 1, &value), NOTFOUND);
    NEED(is_absent(memc, "no-number"));
}

static void
check_initial(memcached_st *memc, const char *key)
{
    for (uint64_t wanted = 7; wanted <= 12; wanted += 5) {
        uint64_t value = 0;
        IS(memcached_increment_with_initial(
               memc, key, strlen(key), 5, 7, 0, &value),
            SUCCESS);
        NEED(value == wanted);
    }
}

static void
item_initial(memcached_st *memc)
{
    check_initial(memc, "initial");
}

static void
item_delete(memcached_st *memc)
{
    IS(set(memc, "delete", "x", 0), SUCCESS);
    IS(memcached_delete(memc, "delete", 6, 0), SUCCESS);
    NEED(is_absent(memc, "delete"));
    IS(memcached_delete(memc, "delete", 6, 0), NOTFOUND);
}

static void
item_touch(memcached_st *memc)
{
    IS(set(memc, "touch", "x", 0), SUCCESS);
    IS(memcached_touch(memc, "touch", 5, 1000), SUCCESS);
    IS(memcached_exist(memc, "touch", 5), SUCCESS);
    IS(memcached_touch(memc, "touch-none", 10, 1000), NOTFOUND);
    IS(memcached_exist(memc, "touch-none", 10), NOTFOUND);
}

static void
item_expired(memcached_st *memc)
{
    IS(memcached_set(memc, "expired", 7, "x", 1, PAST_S, 0), SUCCESS);
    NEED(is_absent(memc, "expired"));
}

static void
item_multi(memcached_st *memc)
{
    static char key[KEYS_MAX][KEY_SIZE];
    static uint64_t number[KEYS_MAX];
    for (unsigned i = 0; i < KEYS_MAX; i++) {
        char value[KEY_SIZE];
        snprintf(key[i], KEY_SIZE, "multi-%u", i);
        snprintf(value, sizeof value, "%u", i);
        number[i] = i;
        if (i < 100) {
            IS(set(memc, key[i], value, 0), SUCCESS);
        }
    }
    check_multi(memc, key, number, KEYS_MAX, 100);
}

static void
item_large(memcached_st *memc)
{
    char *bytes = noise(LARGE_BYTES);
    NEED(bytes != NULL);
    IS(set_bytes(memc, "large", bytes, LARGE_BYTES, 0), SUCCESS);
    NEED(holds_bytes(memc, "large", bytes, LARGE_BYTES, 0));
    free(bytes);
}

static void
item_too_large(memcached_st *memc)
{
    char *bytes = noise(TOO_LARGE_BYTES);
    NEED(bytes != NULL);
    IS(set(memc, "too-large-not", "x", 0), SUCCESS);
    NEED(set_bytes(memc, "too-large", bytes, TOO_LARGE_BYTES, 0) !=
        MEMCACHED_SUCCESS);
    NEED(holds(memc, "too-large-not", "x", 0));
    free(bytes);
}

static void
item_long_key(memcached_st *memc)
{
    char key[LONG_KEY_BYTES + 1] = "long-key";
    memset(key + 8, 'k', LONG_KEY_BYTES - 8);
    IS(set(memc, key, "x", 0), SUCCESS);
    NEED(holds(memc, key, "x", 0));
}

static void
item_quiet(memcached_st *memc)
{
    check_quiet(memc, "quiet");
}

static void
item_stats(memcached_st *memc)
{
    memcached_return_t rc;
    IS(set(memc, "stats", "x", 0), SUCCESS);
    memcached_stat_st *stat = memcached_stat(memc, NULL, &rc);
    NEED(rc == MEMCACHED_SUCCESS && stat != NULL);
    if (stat != NULL) {
        NEED(stat->pid > 0 && stat->curr_items > 0);
    }
    memcached_stat_free(memc, stat);
}

static void
item_flush(memcached_st *memc)
{
    IS(set(memc, "flush", "x", 0), SUCCESS);
    IS(memcached_flush(memc, 0), SUCCESS);
    NEED(is_absent(memc, "flush"));
}

static void
cell_set(memcached_st *memc)
{
    IS(set(memc, "1.cntcm", "41", 0), SUCCESS);
    NEED(holds(memc, "1.cntcm", "41", 0));
}

static void
cell_incr(memcached_st *memc)
{
    IS(set(memc, "2.cntcm", "41", 0), SUCCESS);
    NEED(incr_gives(memc, "2.cntcm", 1, 42));
    NEED(decr_gives(memc, "2.cntcm", 2, 40));
    NEED(holds(memc, "2.cntcm", "40", 0));
}

static void
cell_absent(memcached_st *memc)
{
    NEED(holds(memc, "3.cntan", "0", 0));
}

static void
cell_from_0(memcached_st *memc)
{
    NEED(incr_gives(memc, "4.cntrn", 5, 5));
    NEED(holds(memc, "4.cntrn", "5", 0));
}

static void
cell_initial(memcached_st *memc)
{
    check_initial(memc, "17.cntcm");
}

static void
cell_zeroed(memcached_st *memc)
{
    IS(set(memc, "18.cntcm", "0", 0), SUCCESS);
    NEED(incr_gives(memc, "18.cntcm", 5, 5));
    NEED(decr_gives(memc, "18.cntcm", 5, 0));
    NEED(incr_gives(memc, "18.cntcm", 5, 5));
    NEED(holds(memc, "18.cntcm", "5", 0));
}

static void
cell_floor(memcached_st *memc)
{
    check_floor(memc, "5.cntcm");
}

static void
cell_max(memcached_st *memc)
{
    IS(set(memc, "6.cntan", "4294967295", 0), SUCCESS);
    NEED(holds(memc, "6.cntan", "4294967295", 0));
    NEED(incr_gives(memc, "6.cntan", 1, MEGA));
}

static void
cell_multi(memcached_st *memc)
{
    static const char *const suffix[SUFFIXES] = {"cntcm", "cntrn", "cntan"};
    static char key[CELLS][KEY_SIZE];
    static uint64_t number[CELLS];
    for (unsigned i = 0; i < CELLS; i++) {
        char value[KEY_SIZE];
        unsigned row = i / SUFFIXES;
        snprintf(key[i], KEY_SIZE, "%" PRIu64 ".%s",
            UINT64_C(5000000000000000) + row * 3624, suffix[i % SUFFIXES]);
        number[i] = row % 3 == 0 ? 0 : i * UINT64_C(40000003);
        snprintf(value, sizeof value, "%" PRIu64, number[i]);
        if (number[i] != 0) {
            IS(set(memc, key[i], value, 0), SUCCESS);
        }
    }
    check_multi(memc, key, number, CELLS, CELLS);
}

static void
cell_columns(memcached_st *memc)
{
    NEED(holds(memc, "1234.cntcm", "111", 0));
    NEED(holds(memc, "1234.cntrn", "222", 0));
    NEED(holds(memc, "1234.cntan", "333", 0));
}

static void
cell_record(memcached_st *memc)
{
    NEED(holds(memc, "1234.weibo", "111 222 333", 0));
}

static void
cell_forms(memcached_st *memc)
{
    NEED(holds(memc, "{1234}.cntrn", "222", 0));
    NEED(holds(memc, "1234|#|.cntrn", "222", 0));
}

static void
cell_quiet(memcached_st *memc)
{
    check_quiet(memc, "16.cntcm");
}

static void
cell_add(memcached_st *memc)
{
    check_add(memc, "7.cntcm");
}

static void
cell_replace(memcached_st *memc)
{
    check_replace(memc, "8.cntcm");
}

static void
cell_cas(memcached_st *memc)
{
    check_cas(memc, "9.cntcm");
    IS(set(memc, "19.weibo", "1 2 3", 0), SUCCESS);
    uint64_t unique = unique_of(memc, "19.weibo");
    NEED(incr_gives(memc, "19.cntrn", 100, 102));
    IS(memcached_cas(memc, "19.weibo", 8, "1 2 4", 5, 0, 0, unique),
        DATA_EXISTS);
    unique = unique_of(memc, "19.weibo");
    IS(memcached_cas(memc, "19.weibo", 8, "1 102 4", 7, 0, 0, unique),
        SUCCESS);
    NEED(holds(memc, "19.weibo", "1 102 4", 0));
}

static void
cell_word(memcached_st *memc)
{
    IS(set(memc, "10.cntcm", "41", 0), SUCCESS);
    NEED(set(memc, "10.cntcm", "word", 0) != MEMCACHED_SUCCESS);
    NEED(holds(memc, "10.cntcm", "41", 0));
}

static void
cell_too_wide(memcached_st *memc)
{
    IS(set(memc, "11.cntcm", "41", 0), SUCCESS);
    NEED(set(memc, "11.cntcm", "4294967296", 0) != MEMCACHED_SUCCESS);
    NEED(holds(memc, "11.cntcm", "41", 0));
}

static void
cell_expires(memcached_st *memc)
{
    NEED(memcached_set(memc, "12.cntcm", 8, "1", 1, 60, 0) !=
        MEMCACHED_SUCCESS);
    NEED(holds(memc, "12.cntcm", "0", 0));
}

static void
cell_append(memcached_st *memc)
{
    IS(set(memc, "13.cntcm", "41", 0), SUCCESS);
    NEED(STORE(append, memc, "13.cntcm", "1") != MEMCACHED_SUCCESS);
    NEED(holds(memc, "13.cntcm", "41", 0));
}

static void
cell_delete(memcached_st *memc)
{
    IS(set(memc, "14.cntcm", "41", 0), SUCCESS);
    IS(memcached_delete(memc, "14.cntcm", 8, 0), SUCCESS);
    NEED(holds(memc, "14.cntcm", "0", 0));
    IS(memcached_delete(memc, "14.cntcm", 8, 0), NOTFOUND);
}

static void
cell_flush(memcached_st *memc)
{
    IS(set(memc, "15.cntcm", "41", 0), SUCCESS);
    IS(memcached_flush(memc, 0), SUCCESS);
    NEED(holds(memc, "15.cntcm", "41", 0));
}

enum protocols { BOTH, TEXT, BINARY };

struct row {
    const char *name;
    void (*run)(memcached_st *memc);
    enum protocols in;
};

static const struct row items[] = {
    {"text", item_text, BOTH},
    {"unicode", item_unicode, BOTH},
    {"bytes", item_bytes, BOTH},
    {"empty", item_empty, BOTH},
    {"miss", item_miss, BOTH},
    {"add", item_add, BOTH},
    {"replace", item_replace, BOTH},
    {"append", item_append, BOTH},
    {"cas", item_cas, BOTH},
    {"number", item_number, BOTH},
    {"floor", item_floor, BOTH},
    {"wide", item_wide, BOTH},
    {"word", item_word, BOTH},
    {"no-number", item_no_number, BOTH},
    {"initial", item_initial, BINARY},
    {"delete", item_delete, BOTH},
    {"touch", item_touch, BOTH},
    {"expired", item_expired, BOTH},
    {"multi", item_multi, BOTH},
    {"large", item_large, BOTH},
    {"too-large", item_too_large, BOTH},
    {"long-key", item_long_key, BOTH},
    {"quiet", item_quiet, BOTH},
    {"stats", item_stats, BOTH},
    {"flush", item_flush, BOTH},
    {NULL, NULL, BOTH},
};

static const struct row cells[] = {
    {"set", cell_set, BOTH},
    {"incr", cell_incr, BOTH},
    {"absent", cell_absent, BOTH},
    {"from-0", cell_from_0, BOTH},
    {"zeroed", cell_zeroed, BOTH},
    {"initial", cell_initial, BINARY},
    {"floor", cell_floor, BOTH},
    {"max", cell_max, BOTH},
    {"multi", cell_multi, BOTH},
    {"columns", cell_columns, BOTH},
    {"record", cell_record, BOTH},
    {"forms", cell_forms, BOTH},
    {"quiet", cell_quiet, BOTH},
    {"add", cell_add, BOTH},
    {"replace", cell_replace, BOTH},
    {"cas", cell_cas, BOTH},
    {"word", cell_word, BOTH},
    {"too-wide", cell_too_wide, BOTH},
    {"expires", cell_expires, BOTH},
    {"append", cell_append, BOTH},
    {"delete", cell_delete, BOTH},
    {"flush", cell_flush, BOTH},
    {NULL, NULL, BOTH},
};

static void
run(memcached_st *memc, const struct row *row, enum protocols spoken)
{
    for (; row->name != NULL; row++) {
        if (row->in != BOTH && row->in != spoken) {
            continue;
        }
        wrong = NULL;
        row->run(memc);
        if (wrong == NULL) {
            printf("ok %s\n", row->name);
        } else {
            printf("not ok %s line %d: %s: %s\n", row->name, wrong_line, wrong,
                memcached_last_error_message(memc));
        }
        fflush(stdout);
    }
}

int
main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr,
            "usage: client_libmemcached PORT text|binary items|cells\n");
        return 2;
    }
    bool is_binary = strcmp(argv[2], "binary") == 0;
    memcached_st *memc = memcached_create(NULL);
    if (memc == NULL) {
        return 1;
    }
    IS(memcached_server_add(
           memc, "127.0.0.1", (in_port_t)strtoul(argv[1], NULL, 10)),
        SUCCESS);
    IS(memcached_behavior_set(memc, MEMCACHED_BEHAVIOR_SUPPORT_CAS, 1),
        SUCCESS);
    IS(memcached_behavior_set(
           memc, MEMCACHED_BEHAVIOR_BINARY_PROTOCOL, is_binary),
        SUCCESS);
    IS(memcached_behavior_set(
           memc, MEMCACHED_BEHAVIOR_POLL_TIMEOUT, POLL_TIMEOUT_MS),
        SUCCESS);
    if (wrong != NULL) {
        fprintf(stderr, "%s\n", wrong);
        return 1;
    }
    run(memc, strcmp(argv[3], "items") == 0 ? items : cells,
        is_binary ? BINARY : TEXT);
    memcached_quit(memc);
    memcached_free(memc);
    return 0;
}
