/* SPDX-License-Identifier: BSD-3-Clause */
/* Logins that wait: each address has its turns, whatever another one sends. */
#include "server/auth_queue.h"

#include "unit/check_help.h"

enum { LOGINS = 64, ADDRESSES = 5, STEPS = 20000 };

static struct access_login login[LOGINS];

/* Takes one out, and says which; LOGINS: none. */
static unsigned
take(struct auth_queue *queue)
{
    const struct access_login *it = auth_queue_take(queue);
    return it == NULL ? LOGINS : (unsigned)(it - login);
}

static void
add(struct auth_queue *queue, unsigned i, uint64_t from)
{
    login[i] = (struct access_login){.from = from};
    auth_queue_add(queue, &login[i]);
}

START_TEST(test_turns)
{
    static const unsigned order[] = {0, 4, 1, 5, 2, 6, 3, LOGINS};
    struct auth_queue queue = {0};
    ck_assert_uint_eq(take(&queue), LOGINS);
    for (unsigned i = 0; i < 4; i++) {
        add(&queue, i, 7);
    }
    add(&queue, 4, 0);
    add(&queue, 5, 0);
    ck_assert_uint_eq(take(&queue), order[0]);
    ck_assert_uint_eq(take(&queue), order[1]);
    add(&queue, 6, 0); /* while one of its address waits */
    for (unsigned i = 2; i < sizeof order / sizeof *order; i++) {
        ck_assert_uint_eq(take(&queue), order[i]);
    }
}
END_TEST

/* One that comes last waits for one of each other address, however many these
 * have. */
START_TEST(test_flood)
{
    struct auth_queue queue = {0};
    for (unsigned i = 0; i + 1 < LOGINS; i++) {
        add(&queue, i, 1 + i % 3);
    }
    add(&queue, LOGINS - 1, UINT64_MAX);
    unsigned n = 0;
    while (take(&queue) != LOGINS - 1) {
        n++;
    }
    ck_assert_uint_eq(n, 3);
}
END_TEST

/* Beside the plainest way to say it: of the addresses that wait, the one that
 * had its last turn, or came, longest ago. */
START_TEST(test_random)
{
    struct auth_queue queue = {0};
    uint64_t came[LOGINS] = {0}, turn[ADDRESSES] = {0}, now = 0;
    uint64_t state = 1;
    for (unsigned step = 0; step < STEPS; step++) {
        unsigned i = (unsigned)random_below(&state, LOGINS);
        unsigned n = 0, want = LOGINS;
        now++;
        if (came[i] == 0 && random_below(&state, 2) == 0) {
            unsigned from = i % ADDRESSES;
            bool waits = false;
            for (unsigned k = from; k < LOGINS; k += ADDRESSES) {
                waits |= came[k] != 0;
            }
            turn[from] = waits ? turn[from] : now;
            came[i] = now;
            add(&queue, i, from);
            continue;
        }
        for (unsigned k = 0; k < LOGINS; k++) {
            n += came[k] != 0;
            if (came[k] != 0 &&
                (want == LOGINS ||
                    turn[k % ADDRESSES] < turn[want % ADDRESSES] ||
                    (turn[k % ADDRESSES] == turn[want % ADDRESSES] &&
                        came[k] < came[want]))) {
                want = k;
            }
        }
        ck_assert_uint_eq(take(&queue), want);
        if (n > 0) {
            came[want] = 0;
            turn[want % ADDRESSES] = now;
        }
    }
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("auth_queue");
    tcase_add_test(tcase, test_turns);
    tcase_add_test(tcase, test_flood);
    tcase_add_test(tcase, test_random);
    return run_case("auth_queue", tcase);
}
