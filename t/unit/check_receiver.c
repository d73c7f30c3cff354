/* SPDX-License-Identifier: BSD-3-Clause */
/* repl/receiver: what becomes of a replica whose primary does what no primary
 * should; what it says of that. */
#include "durable/snapshot_folder.h"
#include "repl/message_files.h"
#include "repl/receiver.h"

#include "unit/node_help.h"

enum { FRAME_BYTES = STREAM_HEAD_BYTES + MESSAGE_SMALL_MAX };

/* A primary that is played: it takes one connection at a time. */
struct stage {
    int listen_fd, fd;
    char address[32];
    uint64_t term, session;
    struct history history;
    uint64_t last; /* of its log */
};

static void
stage_init(struct stage *stage)
{
    struct host host;
    host_listen(&host);
    *stage = (struct stage){.listen_fd = host.listen_fd, .fd = -1};
    memcpy(stage->address, host.address, sizeof stage->address);
    ck_assert_int_eq(fcntl(stage->listen_fd, F_SETFL, 0), 0); /* it waits */
}

/* What it has is what the host had, and a term of its own. */
static void
stage_set(struct stage *stage, struct host *host)
{
    struct store_position position;
    store_position(host->rig.store, &position);
    stage->history = position.history;
    stage->term = 1 + seq_term(position.written);
    stage->last = seq_first(stage->term);
    ck_assert(history_begin(
        &stage->history, (uint32_t)stage->term, 7, position.written));
}

static void
send_all(int fd, const uint8_t *bytes, size_t len)
{
    for (size_t done = 0; done < len;) {
        ssize_t n = send(fd, bytes + done, len - done, MSG_NOSIGNAL);
        ck_assert_int_gt(n, 0);
        done += (size_t)n;
    }
}

static void
say(struct stage *stage, enum stream_type type, uint8_t *frame, size_t len)
{
    len = stream_seal(
        frame, type, (uint32_t)len, (uint32_t)stage->term, stage->session);
    send_all(stage->fd, frame, len);
}

/* Somebody connects, and is told what to do. */
static void
welcome(struct stage *stage, enum message_verdict verdict)
{
    uint8_t frame[FRAME_BYTES];
    const uint8_t nonce[STREAM_NONCE_BYTES] = {5};
    struct stream_reader reader;
    struct stream_frame hello_frame;
    struct message_hello hello;
    struct stream_fault fault;
    enum stream_step step = STREAM_MORE;
    stage->fd = accept(stage->listen_fd, NULL, NULL);
    ck_assert_int_ge(stage->fd, 0);
    stage->session = 0;
    message_put_challenge(frame + STREAM_HEAD_BYTES, nonce);
    say(stage, STREAM_CHALLENGE, frame, STREAM_NONCE_BYTES);
    ck_assert_int_eq(stream_reader_init(&reader), 0);
    while (step == STREAM_MORE) {
        uint8_t byte;
        const uint8_t *bytes = &byte;
        size_t len = 1;
        ck_assert_int_eq(recv(stage->fd, &byte, 1, 0), 1);
        step = stream_read(&reader, &bytes, &len, &hello_frame);
    }
    ck_assert_int_eq(step, STREAM_FRAME);
    ck_assert_int_eq(message_get_hello(&hello_frame, &hello, &fault), 0);
    stage->session = stream_session(nonce, hello.nonce);
    struct message_welcome welcome = {.protocol = 1,
        .verdict = verdict,
        .seq = verdict == MESSAGE_CONTINUE ? hello.written : 0,
        .last = stage->last,
        .name = {(const uint8_t *)"stage", 5},
        .history = stage->history};
    stream_reader_fini(&reader);
    say(stage, STREAM_WELCOME, frame,
        message_put_welcome(frame + STREAM_HEAD_BYTES, &welcome));
}

static void
beat(struct stage *stage)
{
    uint8_t frame[FRAME_BYTES];
    const struct message_news news = {
        .last = stage->last, .clock_us = 1, .flags = NEWS_AUTHORITY};
    (void)message_put_news(frame + STREAM_HEAD_BYTES, &news);
    size_t len = stream_seal(frame, STREAM_HEARTBEAT, MESSAGE_NEWS_BYTES,
        (uint32_t)stage->term, stage->session);
    (void)send(stage->fd, frame, len, MSG_NOSIGNAL); /* it may be gone */
}

/* A batch that no store takes. */
static void
send_rubbish(struct stage *stage)
{
    uint8_t frame[FRAME_BYTES];
    uint8_t *at = frame + STREAM_HEAD_BYTES;
    const struct message_news news = {.last = stage->last, .clock_us = 1};
    (void)message_put_news(at, &news);
    message_put_batch(at + MESSAGE_NEWS_BYTES, stage->last, 3);
    memset(at + MESSAGE_NEWS_BYTES + MESSAGE_BATCH_BYTES, 0xff, 3);
    say(stage, STREAM_BATCHES, frame,
        MESSAGE_NEWS_BYTES + MESSAGE_BATCH_BYTES + 3);
}

static void
hang_up(struct stage *stage)
{
    uint8_t bytes[4096];
    while (recv(stage->fd, bytes, sizeof bytes, 0) > 0) {
    }
    (void)close(stage->fd);
    stage->fd = -1;
}

/* How often the text is in the log's file. */
static unsigned
n_lines(const char *path, const char *text)
{
    char line[LOG_LINE_BYTES];
    unsigned n = 0;
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file) != NULL) {
        n += strstr(line, text) != NULL;
    }
    (void)fclose(file);
    return n;
}

/* A host whose lines go to a file. */
static void
log_to_file(struct host *host, char path[32])
{
    (void)strcpy(path, "/tmp/check_receiver.XXXXXX");
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
    ck_assert_int_eq(log_open(&host->rig.logger, path), 0);
    atomic_store(&host->rig.logger.verbosity, 1);
}

/* A batch that cannot be taken ends each connection, and the log says so
 * once. */
START_TEST(test_rubbish)
{
    struct world w;
    struct stage stage;
    char path[32];
    world_init(&w, 0, 0);
    stage_init(&stage);
    log_to_file(&w.b, path);
    host_open(&w.b, "");
    stage_set(&stage, &w.b);
    ck_assert_int_eq(host_replicaof(&w.b, stage.address), 0);
    for (unsigned i = 0; i < 3; i++) {
        welcome(&stage, MESSAGE_CONTINUE);
        send_rubbish(&stage);
        hang_up(&stage);
    }
    ck_assert_uint_eq(n_lines(path, "of the primary at"), 1);
    ck_assert_uint_eq(n_lines(path, "cannot be taken"), 1);
    ck_assert_uint_le(n_lines(path, "follows the primary stage"), 1);
    (void)unlink(path);
    (void)close(stage.listen_fd);
    host_close(&w.b);
    host_close(&w.a);
    world_fini(&w);
}
END_TEST

/* True where the replica has left, which hears that its primary is there. */
static bool
is_given_up(struct stage *stage)
{
    uint8_t bytes[4096];
    ssize_t n;
    beat(stage);
    do {
        n = recv(stage->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    } while (n > 0);
    return n == 0 || (errno != EAGAIN && errno != EINTR);
}

/* A primary is there, but nothing comes of its snapshot. */
START_TEST(test_silent_copy)
{
    struct world w;
    struct stage stage;
    world_init(&w, 0, 0);
    stage_init(&stage);
    w.b.config.copy_silent_ms = 200;
    host_open(&w.b, "");
    stage_set(&stage, &w.b);
    ck_assert_int_eq(host_replicaof(&w.b, stage.address), 0);
    for (unsigned i = 0; i < 2; i++) {
        welcome(&stage, MESSAGE_SNAPSHOT);
        WAIT_UNTIL(is_given_up(&stage));
        WAIT_UNTIL(host_says(
            &w.b, "link_error", "nothing came of its snapshot for too long"));
        (void)close(stage.fd);
    }
    ck_assert_uint_eq(host_stat(&w.b, "frames_bad"), 0);
    (void)close(stage.listen_fd);
    host_close(&w.b);
    host_close(&w.a);
    world_fini(&w);
}
END_TEST

static void
leave_file(struct host *host, const char *name)
{
    struct disk *disk = host->rig.data.disk;
    int fd;
    ck_assert_int_eq(disk->calls->open(disk, name, DISK_CREATE, &fd), 0);
    ck_assert_int_eq(disk->calls->write(disk, fd, "left", 4, 0), 0);
    disk->calls->close(disk, fd);
}

static bool
is_there(struct host *host, const char *name)
{
    struct disk *disk = host->rig.data.disk;
    struct disk_file is;
    return disk->calls->look(disk, name, -1, &is) == 0;
}

/* What is left of a snapshot goes when the node leads, not before. */
START_TEST(test_remains)
{
    static const char *const names[] = {SNAPSHOT_PREFIX SNAPSHOT_PLAN,
        SNAPSHOT_PREFIX "log-00000000000000000003.wal",
        SNAPSHOT_PREFIX "MANIFEST"};
    struct world w;
    world_init(&w, 0, 0);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        leave_file(&w.b, names[i]);
    }
    host_open(&w.b, w.a.address);
    WAIT_UNTIL(host_is_followed(&w.a, &w.b));
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        ck_assert(is_there(&w.b, names[i]));
    }
    ck_assert_int_eq(host_replicaof(&w.b, ""), 0);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        WAIT_UNTIL(!is_there(&w.b, names[i]));
    }
    ck_assert_int_eq(host_replicaof(&w.b, w.a.address), 0);
    host_close(&w.b);
    host_close(&w.a);
    world_fini(&w);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        test_rubbish, test_silent_copy, test_remains};
    return run_tests("receiver", tests, COUNT_OF(tests));
}
