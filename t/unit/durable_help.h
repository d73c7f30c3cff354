/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_DURABLE_HELP_H
#define UNIT_DURABLE_HELP_H

/* A store on a fake disk, one client whose answers are remembered, and what is
 * found after a stop or a crash compared to that. */

#include "base/mutex.h"
#include "call/ring.h"
#include "lib/answered.h"
#include "lib/fake_clock.h"
#include "lib/fake_disk.h"
#include "lib/id_family.h"
#include "tier/seal_tidy.h"
#include "unit/store_help.h"

#include <pthread.h>
#include <sched.h>

enum { RIG_IDS = 240, RIG_BATCH_MAX = 20, RIG_LINE_BYTES = 160 };

/* What is done with cold ranges: whatever can be, at once. */
static const struct seal_tidy_bounds at_once = {.slice_ms = 1,
    .step_records = 16,
    .fan_in = 2,
    .join_blocks = 16,
    .least_records = 4};

/* Nothing is, so that only tests read and write; a rig's, unless it says
 * otherwise. */
static const struct seal_tidy_bounds never = {.look_ms = UINT32_MAX,
    .slice_ms = 1,
    .step_records = 16,
    .fan_in = 2,
    .join_blocks = 16,
    .least_records = 4};

/* Without the cost that an assertion of check has when it holds. */
#define EXPECT(holds, ...)                                                    \
    do {                                                                      \
        if (!(holds)) {                                                       \
            ck_abort_msg(__VA_ARGS__);                                        \
        }                                                                     \
    } while (0)

struct rig {
    struct fake_disk *fake;
    struct logger logger;
    struct data_config data;
    struct store_config config;
    struct store *store;
    struct answered history;
    uint64_t random;
    size_t first_event;   /* of the fake disk, since the store was opened */
    struct cell_key read; /* the last that was read back */
    uint64_t read_default;

    struct store_listener listener;
    struct mutex lock;
    pthread_cond_t told;
    unsigned n_told;
    sem_t loaded;
    int load_err;

    struct store_ring *ring; /* of gets; NULL: the pool reads */
    bool seals;              /* rig_work seals records, too */
    bool is_sealing;         /* seal is under way */
    struct store_seal seal;
    struct answer sealed;

    struct fake_clock clock; /* see rig_take_clock */
    bool is_in_vain; /* nothing becomes well, with that clock: time passes
                      * while a checkpoint or a seal is waited for */
};

void rig_init(
    struct rig *rig, enum wal_sync sync, enum id_family family, uint64_t seed);
void rig_fini(struct rig *rig);

/* Opens the store and waits until it has loaded. 0 or why it does not. */
int rig_open(struct rig *rig);
int rig_close(struct rig *rig);

/* A number in the lines of `stats wal`. */
uint64_t rig_stat(struct rig *rig, const char *name);

/* The store opened next waits by the rig's clock, which goes. */
void rig_take_clock(struct rig *rig);

/* What becomes of seq; waits for that as net does. */
enum store_commit rig_commit(struct rig *rig, uint64_t seq);

/* Returns when changes are taken again. */
void rig_wait_writable(struct rig *rig);

/* A checkpoint that has been asked for. */
struct rig_later {
    struct rig *rig;
    struct answer answer;
    struct store_checkpoint call;
};

void rig_checkpoint_later(struct rig *rig, struct rig_later *later);
/* Its err. */
int rig_wait(struct rig_later *later);
/* Asks for one and waits. 0 or why there is none. */
int rig_checkpoint(struct rig *rig);

/* Asks for a seal of a counter and does not wait, but for the one before.
 * False where there is no such counter. */
bool rig_seal_later(struct rig *rig, unsigned slot);
/* Waits for the seal under way. Its err; 0 where there is none. */
int rig_seal_wait(struct rig *rig);
/* Seals all counters, one after the other. 0 or the first err. */
int rig_seal_all(struct rig *rig);

/* A number in the lines of `stats cold`. */
uint64_t rig_cold_stat(struct rig *rig, const char *name);
/* Records in hot tables, of all counters. */
uint64_t rig_n_hot(struct rig *rig);
/* Waits until no work is left on ranges that are cold (data.tidy: bounds by
 * which it is done soon); false where something has failed. */
bool rig_tidy_wait(struct rig *rig);

/* Waits for the answer of a get; the rig's ring is the calling thread's. */
static inline void
rig_wait_get(struct rig *rig, struct answer *answer)
{
    while (sem_trywait(&answer->come) != 0) {
        if (rig->ring != NULL) {
            (void)store_ring_submit(rig->ring);
            store_ring_reap(rig->ring);
        }
        sched_yield();
    }
}

/* Reads cells and waits, as no online reader. */
void rig_get(struct rig *rig, struct store_get *get);

/* Does changes of the rig's ids. False where the store refuses; *seq is what
 * they are committed with. */
bool rig_change(
    struct rig *rig, struct change *change, uint32_t n, uint64_t *seq);
/* Edits by a line; the err. */
int rig_edit(struct rig *rig, const char *line);
/* A counter of that one letter, with a column whose name has an x behind it. */
void rig_add_counter(struct rig *rig, char letter);
/* Sets that column of all ids to value, where there is one; what becomes of
 * that. */
enum store_commit rig_set_all(struct rig *rig, char letter, uint64_t value);
/* n random calls: changes, one or several, commits, edits, checkpoints; ends
 * early where the store refuses. Returns how many there were. */
unsigned rig_work(struct rig *rig, unsigned n);
/* What is there was so after some step, not before the first n_steps; where
 * is_new they are forgotten. */
void rig_judge(struct rig *rig, size_t n_steps, bool is_new);
/* All is as after the last answer. */
void rig_expect_all(struct rig *rig);
/* The machine stops, with a power cut or not (then only the process is gone);
 * comes up again, in tries starts where a crash comes into the others, and has
 * what it must have. */
void rig_crash(struct rig *rig, bool is_power_cut, unsigned tries);
/* A clean stop, and all else. */
void rig_end(struct rig *rig);
/* The order of calls to the disk was right. */
void rig_expect_order(struct rig *rig);

#endif
