/* SPDX-License-Identifier: BSD-3-Clause */
/* net/conn_verify and session's stages: each step that is not drawn there
 * aborts, and so does a look at a connection, a room, a gate or a list of the
 * worker that is not as it must be. */
#include "net/conn_priv.h"
#include "unit/breakages.h"
#include "unit/steps_help.h"

enum { STAGES = CONN_CLOSED + 2 /* and one that is none */ };

static void
move_conn(struct step it)
{
    static struct conn conn;
    conn.stage = (uint8_t)it.from;
    conn__move(&conn, (enum conn_stage)it.to);
    ck_assert_uint_eq(conn.stage, it.to);
}

START_TEST(test_stages)
{
    static const bool may[STAGES][STAGES] = {
        [CONN_OPEN] = {[CONN_FINISHING] = true, [CONN_CLOSING] = true},
        [CONN_FINISHING] = {[CONN_LINGERING] = true, [CONN_CLOSING] = true},
        [CONN_LINGERING] = {[CONN_CLOSING] = true},
        [CONN_CLOSING] = {[CONN_CLOSED] = true},
    };
    expect_steps(move_conn, &may[0][0], STAGES);
}
END_TEST

enum { SESSION_STAGES = SESSION_ENDING + 2 };

static void
move_session(struct step it)
{
    static struct session session;
    session.stage = (uint8_t)it.from;
    session__move(&session, (enum session_stage)it.to);
    ck_assert_uint_eq(session.stage, it.to);
}

START_TEST(test_session_stages)
{
    static const bool may[SESSION_STAGES][SESSION_STAGES] = {
        [SESSION_OPEN] = {[SESSION_LAST] = true, [SESSION_ENDING] = true},
        [SESSION_LAST] = {[SESSION_ENDING] = true},
    };
    expect_steps(move_session, &may[0][0], SESSION_STAGES);
}
END_TEST

/* A worker without a thread, and its connections: one that reads, one that is
 * ready, and one whose replies are held. */
enum { READS, IS_READY, IS_HELD, CONNS };

static struct worker worker;
static struct conn_rooms rooms;
static struct conn conns[CONNS];
static struct held_part parts[HELD_PARTS];
static struct session_ack acks[2];

static void
open_conn(struct conn *conn)
{
    *conn = (struct conn){.magic = CONN_MAGIC,
        .worker = &worker,
        .next = worker.conns,
        .read_bytes_max = CONN_READ_FIRST};
    ck_assert_int_eq(uv_pipe_init(&worker.loop, &conn->uv.pipe, 0), 0);
    conn->uv.handle.data = conn;
    session_init(&conn->session, &worker.executor, NULL);
    if (conn->next != NULL) {
        conn->next->prev = conn;
    }
    worker.conns = conn;
}

static void
open_all(void)
{
    worker = (struct worker){.magic = WORKER_MAGIC};
    worker.room.rooms = &rooms;
    ck_assert_int_eq(uv_loop_init(&worker.loop), 0);
    executor_init(&worker.executor, NULL, NULL, NULL, 0);
    for (unsigned i = 0; i < CONNS; i++) {
        open_conn(&conns[i]);
    }
    conns[READS].is_reading = true;
    conns[READS].in = (struct buf){.data = worker.read_buf,
        .len = CONN_ROOM_COUNTS,
        .capacity = 2 * CONN_ROOM_COUNTS};
    conns[READS].place.bytes = 2 * CONN_ROOM_COUNTS;
    worker.room.used[CONN_ROOM_REQUESTS] = 2 * CONN_ROOM_COUNTS;
    rooms.own = rooms.pool = worker.room.taken = CONN_ROOM_COUNTS;
    atomic_store(&rooms.taken, CONN_ROOM_COUNTS);
    conns[IS_READY].is_ready = true;
    worker.first_ready = worker.last_ready = &conns[IS_READY];
    worker.n_ready = 1;
    acks[0] = (struct session_ack){.span = {0, 8}};
    acks[1] = (struct session_ack){.span = {8, 8}};
    parts[0] = (struct held_part){.seq = 5,
        .out = {.data = worker.read_buf, .len = 16, .capacity = 16},
        .acks = {.data = (char *)acks,
            .len = sizeof acks,
            .capacity = sizeof acks}};
    parts[1] = (struct held_part){.seq = 6};
    conns[IS_HELD].held =
        (struct held){.magic = HELD_MAGIC, .n = 2, .part = parts};
    worker.gate.first = &conns[IS_HELD].held;
}

/* Ways in which that may be broken: a line that is run each. */
#define FAULTS(X)                                                             \
    X(conns[READS].magic = 0)                                                 \
    X(conns[READS].session.magic = 0)                                         \
    X(conns[READS].uv.handle.data = &conns[IS_READY])                         \
    X(conns[READS].is_parked = true)                                          \
    X(conns[READS].is_reading = false)                                        \
    X(conns[READS].has_ended = true)                                          \
    X(conns[READS].stage = CONN_FINISHING)                                    \
    X(conns[READS].stage = CONN_LINGERING)                                    \
    X(conns[READS].stage = CONN_CLOSING)                                      \
    X(conns[READS].stage = CONN_CLOSED)                                       \
    X(conns[READS].stage = CONN_CLOSED + 1)                                   \
    X(conns[READS].read_bytes_max = WORKER_READ_BYTES + 1)                    \
    X(conns[READS].in_at = conns[READS].in.len)                               \
    X(conns[READS].in.len = conns[READS].in.capacity + 1)                     \
    X(conns[READS].in.capacity += CONN_ROOM_COUNTS)                           \
    X(conns[READS].queue.len = 1)                                             \
    X(conns[READS].queue = conns[READS].in)                                   \
    X(conns[READS].place.bytes = 1)                                           \
    X(conns[READS].place.bytes *= 2)                                          \
    X(conns[READS].place.kind = CONN_ROOM_REPLIES)                            \
    X(conns[READS].prev = &conns[READS])                                      \
    X(conns[IS_READY].is_ready = false)                                       \
    X(conns[IS_READY].prev = NULL)                                            \
    X(conns[IS_HELD].held.magic = 0)                                          \
    X(conns[IS_HELD].held.n = 0)                                              \
    X(conns[IS_HELD].held.n = HELD_PARTS + 1)                                 \
    X(conns[IS_HELD].held.prev = &conns[READS].held)                          \
    X(conns[IS_HELD].stage = CONN_FINISHING)                                  \
    X(parts[0].seq = 0)                                                       \
    X(parts[1].seq = 5)                                                       \
    X(parts[0].out.len--)                                                     \
    X(parts[0].acks.len--)                                                    \
    X(acks[1].span.at--)                                                      \
    X(worker.magic = 0)                                                       \
    X(worker.n_ready = 2)                                                     \
    X(worker.last_ready = &conns[READS])                                      \
    X(worker.n_shakes = 1)                                                    \
    X(worker.gate.first = NULL)                                               \
    X(worker.room.used[CONN_ROOM_REQUESTS]--)                                 \
    X(worker.room.used[CONN_ROOM_REPLIES]++)                                  \
    X(worker.room.taken--)                                                    \
    X(rooms.own++)                                                            \
    X(rooms.pool--)                                                           \
    X(atomic_fetch_add(&rooms.taken, 1))                                      \
    X(atomic_fetch_sub(&rooms.taken, 1))

static const char *const faults[] = {FAULTS(BREAKAGE_TEXT)};

static void
look_at_fault(void *context)
{
    struct breakage *breakage = context;
    FAULTS(BREAKAGE_DO)
    conn_verify_all(breakage->of);
}

START_TEST(test_faults)
{
    open_all();
    conn_verify(&conns[READS]);
    conn_verify_all(&worker);
    expect_noticed(look_at_fault, &worker, faults, COUNT_OF(faults));
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        test_stages, test_session_stages, test_faults};
    return run_tests("conn_verify", tests, COUNT_OF(tests));
}
