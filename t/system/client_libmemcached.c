/* SPDX-License-Identifier: BSD-3-Clause */
/* A client program on the C library libmemcached, unmodified, for
 * client-libmemcached.test: client_libmemcached PORT. The counter weibo has
 * been declared. Says what went wrong on stderr and exits with 1; 0 where all
 * was as it must be. */
#include <inttypes.h>
#include <libmemcached/memcached.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_KEYS = 100, SUFFIXES = 3, KEY_SIZE = 64, VALUE_SIZE = 32 };

#define NEED(condition) ((condition) ? (void)0 : fail(#condition, __LINE__))

static _Noreturn void
fail(const char *condition, int line)
{
    fprintf(stderr, "client_libmemcached: line %d: %s\n", line, condition);
    exit(1);
}

static void
store(memcached_st *memc, const char *key, const char *value, uint32_t flags)
{
    memcached_return_t rc =
        memcached_set(memc, key, strlen(key), value, strlen(value), 0, flags);
    NEED(rc == MEMCACHED_SUCCESS);
}

/* True where key holds value under flags. */
static bool
holds(memcached_st *memc, const char *key, const char *value, uint32_t flags)
{
    size_t len;
    uint32_t got_flags;
    memcached_return_t rc;
    char *got = memcached_get(memc, key, strlen(key), &len, &got_flags, &rc);
    bool same = rc == MEMCACHED_SUCCESS && got != NULL &&
        len == strlen(value) && memcmp(got, value, len) == 0 &&
        got_flags == flags;
    free(got);
    return same;
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

static void
check_counters(memcached_st *memc)
{
    uint64_t value;
    store(memc, "1.cntcm", "41", 0);
    NEED(memcached_increment(memc, "1.cntcm", 7, 1, &value) ==
        MEMCACHED_SUCCESS);
    NEED(value == 42);
    NEED(memcached_decrement(memc, "1.cntcm", 7, 2, &value) ==
        MEMCACHED_SUCCESS);
    NEED(value == 40);
    NEED(memcached_increment(memc, "2.cntrn", 7, 5, &value) ==
        MEMCACHED_SUCCESS);
    NEED(value == 5);
    NEED(memcached_decrement(memc, "2.cntrn", 7, 9, &value) ==
        MEMCACHED_SUCCESS);
    NEED(value == 0);
    NEED(holds(memc, "1.cntcm", "40", 0));
    NEED(holds(memc, "3.cntan", "0", 0));
    NEED(memcached_add(memc, "1.cntcm", 7, "1", 1, 0, 0) ==
        MEMCACHED_NOTSTORED);
    NEED(memcached_replace(memc, "9.cntcm", 7, "1", 1, 0, 0) ==
        MEMCACHED_NOTSTORED);
    NEED(memcached_set(memc, "1.cntcm", 7, "x", 1, 0, 0) != MEMCACHED_SUCCESS);
    NEED(holds(memc, "1.cntcm", "40", 0));
    NEED(memcached_delete(memc, "1.cntcm", 7, 0) == MEMCACHED_SUCCESS);
    NEED(memcached_delete(memc, "1.cntcm", 7, 0) == MEMCACHED_NOTFOUND);
    NEED(holds(memc, "1.cntcm", "0", 0));
}

static void
name_key(unsigned i, char *key)
{
    static const char *const suffix[SUFFIXES] = {"cntcm", "cntrn", "cntan"};
    snprintf(key, KEY_SIZE, "%" PRIu64 ".%s",
        UINT64_C(5000000000000000) + i / SUFFIXES * 3624,
        suffix[i % SUFFIXES]);
}

/* The number of key i; every fourth cell is left at its default. */
static unsigned long
number_of(unsigned i)
{
    return i % 4 == 0 ? 0 : (unsigned long)i * 40000003UL;
}

static void
write_page(memcached_st *memc)
{
    char key[KEY_SIZE];
    char value[VALUE_SIZE];
    for (unsigned i = 0; i < PAGE_KEYS; i++) {
        if (number_of(i) != 0) {
            name_key(i, key);
            snprintf(value, sizeof value, "%lu", number_of(i));
            store(memc, key, value, 0);
        }
    }
}

/* One multi-get of all keys; each must come once, with its number. */
static void
check_page(memcached_st *memc)
{
    static char key[PAGE_KEYS][KEY_SIZE];
    const char *keys[PAGE_KEYS];
    size_t lens[PAGE_KEYS];
    write_page(memc);
    for (unsigned i = 0; i < PAGE_KEYS; i++) {
        name_key(i, key[i]);
        keys[i] = key[i];
        lens[i] = strlen(key[i]);
    }
    NEED(memcached_mget(memc, keys, lens, PAGE_KEYS) == MEMCACHED_SUCCESS);
    memcached_result_st *result;
    memcached_return_t rc;
    unsigned n = 0;
    while ((result = memcached_fetch_result(memc, NULL, &rc)) != NULL) {
        char value[VALUE_SIZE];
        NEED(n < PAGE_KEYS);
        NEED(memcached_result_key_length(result) == lens[n]);
        NEED(
            memcmp(memcached_result_key_value(result), keys[n], lens[n]) == 0);
        snprintf(value, sizeof value, "%lu", number_of(n));
        NEED(memcached_result_length(result) == strlen(value));
        NEED(
            memcmp(memcached_result_value(result), value, strlen(value)) == 0);
        memcached_result_free(result);
        n++;
    }
    NEED(n == PAGE_KEYS);
}

/* The unique that gets gives for key. */
static uint64_t
unique_of(memcached_st *memc, const char *key)
{
    size_t len = strlen(key);
    memcached_return_t rc;
    NEED(memcached_mget(memc, &key, &len, 1) == MEMCACHED_SUCCESS);
    memcached_result_st *result = memcached_fetch_result(memc, NULL, &rc);
    NEED(result != NULL);
    uint64_t unique = memcached_result_cas(result);
    memcached_result_free(result);
    NEED(memcached_fetch_result(memc, NULL, &rc) == NULL);
    return unique;
}

static void
check_cas(memcached_st *memc, const char *key)
{
    store(memc, key, "5", 0);
    uint64_t unique = unique_of(memc, key);
    NEED(memcached_cas(memc, key, strlen(key), "6", 1, 0, 0, unique) ==
        MEMCACHED_SUCCESS);
    NEED(memcached_cas(memc, key, strlen(key), "7", 1, 0, 0, unique) ==
        MEMCACHED_DATA_EXISTS);
    NEED(holds(memc, key, "6", 0));
}

static void
check_items(memcached_st *memc)
{
    uint64_t value;
    store(memc, "s", "text", 77);
    NEED(holds(memc, "s", "text", 77));
    NEED(memcached_append(memc, "s", 1, "!", 1, 0, 0) == MEMCACHED_SUCCESS);
    NEED(memcached_prepend(memc, "s", 1, "_", 1, 0, 0) == MEMCACHED_SUCCESS);
    NEED(holds(memc, "s", "_text!", 77));
    NEED(memcached_touch(memc, "s", 1, 1000) == MEMCACHED_SUCCESS);
    NEED(memcached_exist(memc, "s", 1) == MEMCACHED_SUCCESS);
    NEED(memcached_delete(memc, "s", 1, 0) == MEMCACHED_SUCCESS);
    NEED(is_absent(memc, "s"));
    NEED(memcached_touch(memc, "s", 1, 1000) == MEMCACHED_NOTFOUND);
    store(memc, "n", "10", 3);
    NEED(memcached_increment(memc, "n", 1, 5, &value) == MEMCACHED_SUCCESS);
    NEED(value == 15 && holds(memc, "n", "15", 3));
    NEED(
        memcached_increment(memc, "none", 4, 5, &value) == MEMCACHED_NOTFOUND);
    NEED(memcached_flush(memc, 0) == MEMCACHED_SUCCESS);
    NEED(is_absent(memc, "n"));
}

static void
check_noreply(memcached_st *memc)
{
    NEED(memcached_behavior_set(memc, MEMCACHED_BEHAVIOR_NOREPLY, 1) ==
        MEMCACHED_SUCCESS);
    store(memc, "4.cntcm", "3", 0);
    store(memc, "quiet", "q", 0);
    NEED(memcached_behavior_set(memc, MEMCACHED_BEHAVIOR_NOREPLY, 0) ==
        MEMCACHED_SUCCESS);
    NEED(holds(memc, "4.cntcm", "3", 0));
    NEED(holds(memc, "quiet", "q", 0));
}

int
main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: client_libmemcached PORT\n");
        return 2;
    }
    memcached_st *memc = memcached_create(NULL);
    NEED(memc != NULL);
    NEED(memcached_server_add(memc, "127.0.0.1",
             (in_port_t)strtoul(argv[1], NULL, 10)) == MEMCACHED_SUCCESS);
    NEED(memcached_behavior_set(memc, MEMCACHED_BEHAVIOR_SUPPORT_CAS, 1) ==
        MEMCACHED_SUCCESS);
    check_counters(memc);
    check_page(memc);
    check_cas(memc, "8.cntan");
    check_cas(memc, "item");
    check_items(memc);
    check_noreply(memc);
    memcached_quit(memc);
    memcached_free(memc);
    return 0;
}
