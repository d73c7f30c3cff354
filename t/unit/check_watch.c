/* SPDX-License-Identifier: BSD-3-Clause */
/* session/watch: the form of the lines, rings and buffers that are full, who is
 * told of what, and threads that come and go meanwhile. */
#include "session/watch.h"

#include "unit/check_help.h"

#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/socket.h>

enum { THREADS = 3, EVENTS = 20000, KEY_BYTES = 250 };

static struct watch_hub *hub;

static void
set_up(void)
{
    hub = calloc(1, sizeof *hub);
    ck_assert_ptr_nonnull(hub);
    ck_assert_int_eq(watch_start(hub, THREADS), 0);
}

static void
tear_down(void)
{
    watch_stop(hub);
    free(hub);
}

static void
notify(void *context)
{
    sem_post(context);
}

static struct watcher *
add(unsigned kinds, sem_t *sem)
{
    bool is_full;
    sem_init(sem, 0, 0);
    struct watcher *watcher = watch__add(hub, kinds, notify, sem, &is_full);
    ck_assert(watcher != NULL && !is_full);
    return watcher;
}

static void
tell(unsigned ring, enum watch_event_type type, const char *key, size_t len)
{
    watch_report(&hub->ring[ring],
        &(struct watch_event){.type = (uint8_t)type,
            .key_len = (uint8_t)len,
            .status = "found",
            .command = "set",
            .class_ = 3,
            .fd = 9,
            .ttl_s = -1,
            .size = 5},
        key);
}

/* A line without its "ts=... gid=... ". */
static const char *
line_of(const struct watch_event *event, const char *key)
{
    static char line[WATCH_LINE_BYTES + 1];
    size_t n = watch__line(event, key, line);
    ck_assert_uint_le(n, WATCH_LINE_BYTES);
    line[n] = '\0';
    ck_assert_int_eq(strncmp(line, "ts=1590520950.000042 gid=77 ", 28), 0);
    return line + 28;
}

START_TEST(test_lines)
{
    struct watch_event event = {.gid = 77,
        .unix_us = INT64_C(1590520950000042),
        .type = WATCH_ITEM_GET,
        .status = "not_found",
        .command = "cas",
        .fd = 26,
        .key_len = 6};
    ck_assert_str_eq(line_of(&event, "n,%f\0~"),
        "type=item_get key=n%2C%25f%00~ status=not_found clsid=0 cfd=26 "
        "size=0\n");
    event.type = WATCH_ITEM_STORE;
    event.ttl_s = 100;
    event.class_ = 12;
    event.size = UINT64_MAX;
    event.key_len = 1;
    ck_assert_str_eq(line_of(&event, "a"),
        "type=item_store key=a status=not_found cmd=cas ttl=100 clsid=12 "
        "cfd=26 size=18446744073709551615\n");
    event.type = WATCH_DELETED;
    ck_assert_str_eq(line_of(&event, "a"),
        "type=deleted key=a cmd=cas clsid=12 size=18446744073709551615\n");
    event.type = WATCH_EVICTION;
    event.ttl_s = -1;
    event.size = 8;
    ck_assert_str_eq(line_of(&event, "a"),
        "type=eviction key=a fetch=no ttl=-1 la=0 clsid=12 size=8\n");
    event.type = WATCH_CONN_NEW;
    event.key_len = 0;
    event.peer.is_unix = true;
    ck_assert_str_eq(line_of(&event, ""),
        "type=conn_new rip=unix rport=0 transport=local cfd=26\n");
    event.type = WATCH_CONN_CLOSE;
    event.status = "normal";
    event.peer = (struct watch_peer){
        .family = AF_INET, .port = 65535, .address = {127, 0, 0, 1}};
    ck_assert_str_eq(line_of(&event, ""),
        "type=conn_close rip=127.0.0.1 rport=65535 transport=tcp "
        "reason=normal cfd=26\n");
    event.peer =
        (struct watch_peer){.family = AF_INET6, .address = {[15] = 1}};
    ck_assert_str_eq(line_of(&event, ""),
        "type=conn_close rip=::1 rport=0 transport=tcp reason=normal "
        "cfd=26\n");
}
END_TEST

START_TEST(test_system_lines)
{
    char text[LOG_TEXT_BYTES];
    struct watch_event event = {.gid = 77,
        .unix_us = INT64_C(1590520950000042),
        .type = WATCH_SYSTEM,
        .status = "warning",
        .command = "repl_link",
        .key_len = 6};
    ck_assert_str_eq(line_of(&event, "a \"b\nc"),
        "type=repl_link level=warning msg=\"a \\\"b\\nc\"\n");
    memset(text, 1, sizeof text); /* four bytes each: it is cut */
    event.key_len = sizeof text;
    const char *line = line_of(&event, text);
    size_t n = strlen(line);
    ck_assert_uint_gt(n, 1200);
    ck_assert_str_eq(line + n - 6, "\\x01\"\n");
}
END_TEST

START_TEST(test_longest_line)
{
    char key[UINT8_MAX];
    memset(key, 0xff, sizeof key);
    struct watch_event event = {.gid = 77,
        .unix_us = INT64_C(1590520950000042),
        .type = WATCH_ITEM_STORE,
        .status = "not_stored",
        .command = "prepend",
        .fd = INT32_MIN,
        .ttl_s = INT64_MIN,
        .class_ = UINT8_MAX,
        .size = UINT64_MAX,
        .key_len = sizeof key};
    ck_assert_ptr_nonnull(strstr(line_of(&event, key), "%FF%FF"));
}
END_TEST

static struct watch_stats
stats(void)
{
    struct watch_stats stats;
    watch_stats(hub, &stats);
    return stats;
}

/* Adds up what a watcher has been told: lines, and those that were left out. */
static void
take_told(struct watcher *watcher, uint64_t *lines, uint64_t *skipped)
{
    struct buf out = {0};
    bool was_skipped = false;
    (void)watch__take(hub, watcher, 1 << 20, &out);
    buf_add(&out, "", 1);
    ck_assert(!out.failed);
    for (char *line = out.data; *line != '\0';) {
        char *end = strchr(line, '\n');
        ck_assert_ptr_nonnull(end);
        if (strncmp(line, "skipped=", 8) == 0) {
            ck_assert(!was_skipped);
            *skipped += strtoull(line + 8, NULL, 10);
            was_skipped = true;
        } else {
            ck_assert_int_eq(strncmp(line, "ts=", 3), 0);
            ++*lines;
            was_skipped = false;
        }
        line = end + 1;
    }
    buf_fini(&out);
}

/* Takes lines until there have been so many; counts those that were skipped. */
static uint64_t
take_lines(struct watcher *watcher, uint64_t n)
{
    uint64_t lines = 0, skipped = 0;
    while (lines < n) {
        take_told(watcher, &lines, &skipped);
        sched_yield();
    }
    ck_assert_uint_eq(lines, n);
    return skipped;
}

/* Each is told of its kinds, from its beginning on; nobody of what nobody
 * watches. */
START_TEST(test_kinds)
{
    sem_t sem[2];
    tell(0, WATCH_ITEM_GET, "a", 1);
    ck_assert_uint_eq(watch_wanted(hub), 0);
    struct watcher *one = add(WATCH_FETCHERS, &sem[0]);
    ck_assert_uint_eq(watch_wanted(hub), WATCH_FETCHERS);
    struct watcher *two = add(WATCH_MUTATIONS | WATCH_FETCHERS, &sem[1]);
    tell(0, WATCH_ITEM_STORE, "a", 1);
    tell(1, WATCH_ITEM_GET, "b", 1);
    tell(2, WATCH_DELETED, "c", 1);
    ck_assert_uint_eq(take_lines(one, 1), 0);
    ck_assert_uint_eq(take_lines(two, 2), 0);
    ck_assert_int_eq(sem_trywait(&sem[0]), 0);
    struct watch_stats now = stats();
    ck_assert_uint_eq(now.dropped, 1); /* the first: there was no ring */
    ck_assert_uint_eq(now.written, 3);
    ck_assert_uint_eq(now.sent, 3);
    ck_assert_uint_eq(now.watchers, 2);
    watch__remove(hub, &two);
    ck_assert_uint_eq(watch_wanted(hub), WATCH_FETCHERS);
    watch__remove(hub, &one);
    ck_assert_uint_eq(watch_wanted(hub), 0);
    watch__remove(hub, &one);
}
END_TEST

START_TEST(test_too_many)
{
    struct watcher *watcher[WATCH_MAX];
    sem_t sem;
    bool is_full;
    for (int i = 0; i < WATCH_MAX; i++) {
        watcher[i] = add(WATCH_FETCHERS, &sem);
    }
    ck_assert_ptr_null(
        watch__add(hub, WATCH_FETCHERS, notify, &sem, &is_full));
    ck_assert(is_full);
    watch__remove(hub, &watcher[7]);
    watcher[7] = add(WATCH_FETCHERS, &sem);
    for (int i = 0; i < WATCH_MAX; i++) {
        watch__remove(hub, &watcher[i]);
    }
}
END_TEST

/* A watcher that takes nothing costs no line of the others; every line is in
 * its buffer or skipped, and it is told of how many. */
START_TEST(test_slow)
{
    char key[KEY_BYTES];
    sem_t sem[2];
    memset(key, 'k', sizeof key);
    struct watcher *slow = add(WATCH_FETCHERS, &sem[0]);
    struct watcher *fast = add(WATCH_FETCHERS, &sem[1]);
    for (unsigned i = 0; i < 3000; i++) {
        tell(0, WATCH_ITEM_GET, key, sizeof key);
        ck_assert_uint_eq(take_lines(fast, 1), 0);
    }
    struct watch_stats now = stats();
    ck_assert_uint_eq(now.written, 3000);
    ck_assert_uint_gt(now.skipped, 1000);
    ck_assert_uint_eq(now.sent + now.skipped, 6000);
    uint64_t kept = now.sent - 3000;
    ck_assert_uint_eq(take_lines(slow, kept), 0);
    uint64_t lines = 0, skipped = 0; /* it is told though nothing comes */
    take_told(slow, &lines, &skipped);
    ck_assert_uint_eq(lines, 0);
    ck_assert_uint_eq(skipped, now.skipped);
    tell(0, WATCH_ITEM_GET, key, sizeof key);
    ck_assert_uint_eq(take_lines(slow, 1), 0);
    ck_assert_uint_eq(stats().skipped, now.skipped);
    watch__remove(hub, &slow);
    watch__remove(hub, &fast);
}
END_TEST

/* More events of a kind than a ring has room for leave room for another kind,
 * and who asked for them is told how many are missing, without another line;
 * who did not, or came later, is told nothing. */
START_TEST(test_half)
{
    enum { GETS = 2 * WATCH_RING_BYTES / KEY_BYTES };
    char key[KEY_BYTES];
    sem_t sem[3];
    uint64_t lines = 0, skipped = 0;
    memset(key, 'k', sizeof key);
    struct watcher *gets = add(WATCH_FETCHERS, &sem[0]);
    struct watcher *sets = add(WATCH_MUTATIONS | WATCH_CONNEVENTS, &sem[1]);
    mutex_lock(&hub->lock); /* no line is made until it is let go */
    for (unsigned i = 0; i < GETS; i++) {
        tell(0, WATCH_ITEM_GET, key, sizeof key);
    }
    uint64_t dropped = hub->ring[0].dropped;
    for (unsigned i = 0; i < 10; i++) {
        tell(0, WATCH_ITEM_STORE, key, sizeof key);
    }
    ck_assert_uint_eq(hub->ring[0].dropped, dropped);
    mutex_unlock(&hub->lock);
    struct watcher *late = add(WATCH_FETCHERS, &sem[2]);
    ck_assert_uint_eq(take_lines(sets, 10), 0);
    while (lines + skipped < GETS) {
        take_told(gets, &lines, &skipped);
        sched_yield();
    }
    ck_assert_uint_eq(lines + skipped, GETS);
    ck_assert_uint_gt(skipped, GETS / 4);
    ck_assert_uint_eq(stats().dropped, skipped);
    ck_assert_uint_eq(stats().skipped, 0);
    tell(0, WATCH_ITEM_GET, key, sizeof key);
    ck_assert_uint_eq(take_lines(gets, 1), 0);
    ck_assert_uint_eq(take_lines(late, 1), 0);
    watch__remove(hub, &gets);
    watch__remove(hub, &sets);
    watch__remove(hub, &late);
}
END_TEST

/* In small pieces, and round the end of the buffer: the same bytes. */
START_TEST(test_pieces)
{
    struct buf out = {0};
    sem_t sem;
    struct watcher *watcher = add(WATCH_FETCHERS, &sem);
    char key[8];
    size_t told = 0, lines = 0;
    while (lines < 5000) {
        sched_yield();
        if (told < 5000 && told - lines < 100) {
            int n = snprintf(key, sizeof key, "%06u", (unsigned)told++);
            tell(0, WATCH_ITEM_GET, key, (size_t)n);
        }
        while (watch__take(hub, watcher, out.len + 7, &out)) {
        }
        char *end;
        while ((end = memchr(out.data == NULL ? "" : out.data, '\n',
                    out.len)) != NULL) {
            char wanted[24];
            *end = '\0';
            (void)snprintf(
                wanted, sizeof wanted, " key=%06u ", (unsigned)lines++);
            ck_assert_msg(strstr(out.data, wanted) != NULL, "%s", out.data);
            buf_consume(&out, (size_t)(end + 1 - out.data));
        }
    }
    ck_assert_uint_eq(stats().skipped + stats().dropped, 0);
    buf_fini(&out);
    watch__remove(hub, &watcher);
}
END_TEST

static _Atomic unsigned n_ended;

static void *
tell_many(void *arg)
{
    unsigned ring = *(unsigned *)arg;
    for (unsigned i = 0; i < EVENTS; i++) {
        tell(ring, WATCH_ITEM_GET, "key", 3);
    }
    atomic_fetch_add(&n_ended, 1);
    return NULL;
}

/* Everything that is told is written or dropped; what is written is sent or
 * skipped, while others come and go. */
START_TEST(test_threads)
{
    pthread_t thread[THREADS];
    unsigned ring[THREADS];
    struct buf out = {0};
    sem_t sem, other;
    struct watcher *watcher = add(WATCH_FETCHERS, &sem);
    for (unsigned i = 0; i < THREADS; i++) {
        ring[i] = i;
        ck_assert_int_eq(
            pthread_create(&thread[i], NULL, tell_many, &ring[i]), 0);
    }
    while (atomic_load(&n_ended) < THREADS) {
        struct watcher *guest = add(WATCH_MUTATIONS, &other);
        buf_clear(&out);
        (void)watch__take(hub, watcher, 1 << 16, &out);
        watch__remove(hub, &guest);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
    }
    struct watch_stats now = stats();
    while (now.sent + now.skipped < now.written) {
        sched_yield();
        now = stats();
    }
    ck_assert_uint_eq(now.written + now.dropped, THREADS * EVENTS);
    ck_assert_uint_eq(now.sent + now.skipped, now.written);
    ck_assert_uint_gt(now.sent, 0);
    watch__remove(hub, &watcher);
    buf_fini(&out);
}
END_TEST

/* The log's events come to who asks for them, and to nobody else; so many that
 * there is no room are counted. */
START_TEST(test_system)
{
    /* Four times what a ring holds of a kind; who empties it may have taken it
     * once before it waits for the hub. */
    enum { EVENTS_OF_LOG = 4 * WATCH_KIND_BYTES / sizeof(struct watch_event) };
    static struct logger logger; /* errors and warnings would be lines */
    sem_t sem[2];
    uint64_t lines = 0, skipped = 0;
    log_listen(&logger, &hub->listener);
    struct watcher *gets = add(WATCH_FETCHERS, &sem[0]);
    log_event(&logger, "server", LOG_INFO, "nobody asks for it");
    ck_assert_uint_eq(stats().written, 0);
    struct watcher *told = add(WATCH_SYSEVENTS, &sem[1]);
    log_event(&logger, "server", LOG_INFO, "this %d", 1);
    log_event(&logger, "server", LOG_DEBUG, "a detail");
    log_line(&logger, LOG_INFO, "no event");
    ck_assert_uint_eq(take_lines(told, 1), 0);
    mutex_lock(&hub->lock); /* no line is made until it is let go */
    for (unsigned i = 0; i < EVENTS_OF_LOG; i++) {
        log_event(&logger, "server", LOG_INFO, "more");
    }
    mutex_unlock(&hub->lock);
    while (lines + skipped < EVENTS_OF_LOG) {
        take_told(told, &lines, &skipped);
        sched_yield();
    }
    ck_assert_uint_eq(lines + skipped, EVENTS_OF_LOG);
    ck_assert_uint_gt(skipped, EVENTS_OF_LOG / 2);
    ck_assert_uint_eq(stats().dropped, skipped);
    log_listen(&logger, NULL);
    log_event(&logger, "server", LOG_INFO, "nobody listens");
    ck_assert_uint_eq(stats().written, 1 + lines);
    watch__remove(hub, &gets);
    watch__remove(hub, &told);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_lines, test_system_lines, test_system,
        test_longest_line, test_kinds, test_too_many, test_slow, test_half,
        test_pieces, test_threads};
    TCase *tcase = tcase_create("watch");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    for (size_t i = 0; i < COUNT_OF(tests); i++) {
        tcase_add_test(tcase, tests[i]);
    }
    return run_case("watch", tcase);
}
