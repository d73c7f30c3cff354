/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's ring: reads of a file, where there is one; errors and ends. */
#include "base/disk_ring.h"

#include "unit/check_help.h"
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__linux__)
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

enum { READS = 32, BYTES = 4096, BLOCKS = 200 };

static struct disk_ring *ring;
static int fd;
static struct disk_read read_of[READS];
static uint8_t bytes[READS][BYTES];

static void
make_block(uint64_t number, uint8_t *block)
{
    for (size_t i = 0; i < BYTES; i++) {
        block[i] = (uint8_t)(number * 7 + i);
    }
}

/* True where the kernel lets us have one. */
static bool
setup_ring(void)
{
    char path[] = "/tmp/check_disk_ring.XXXXXX";
    uint8_t block[BYTES];
    int error = disk_ring__open(READS, &ring);

    if (error != 0) {
        printf("no io_uring: %s\n", strerror(error));
        ck_assert(error == ENOSYS || error == EPERM || error == ENOMEM);
        return false;
    }
    fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    unlink(path);
    for (uint64_t i = 0; i < BLOCKS; i++) {
        make_block(i, block);
        ck_assert_int_eq(write(fd, block, BYTES), BYTES);
    }
    return true;
}

static void
close_ring(void)
{
    disk_ring_destroy(&ring);
    ck_assert_ptr_null(ring);
    disk_ring_destroy(&ring);
    close(fd);
}

/* A list of n reads. */
static struct disk_read *
list(unsigned n, uint64_t first_block)
{
    for (unsigned i = 0; i < n; i++) {
        read_of[i] = (struct disk_read){.fd = fd,
            .bytes = bytes[i],
            .len = BYTES,
            .at = (first_block + i) * BYTES,
            .error = -1,
            .next = i + 1 < n ? &read_of[i + 1] : NULL};
    }
    return read_of;
}

/* Waits by the descriptor until n have come, at most n_max at a time. */
static void
reap(unsigned n, unsigned n_max)
{
    struct pollfd poll_fd = {.fd = ring->fd, .events = POLLIN};

    while (n > 0) {
        struct disk_read *read = disk_ring_reap(ring, n_max);
        unsigned came = 0;

        if (read == NULL) {
            int polled = poll(&poll_fd, 1, -1);
            ck_assert(polled == 1 || errno == EINTR);
        }
        for (; read != NULL; read = read->next) {
            came++;
        }
        ck_assert_uint_le(came, n_max);
        ck_assert_uint_le(came, n);
        n -= came;
    }
    ck_assert_ptr_null(disk_ring_reap(ring, n_max));
}

START_TEST(test_reads)
{
    uint8_t block[BYTES];

    if (!setup_ring()) {
        return;
    }
    ck_assert_ptr_null(disk_ring_submit(ring, NULL));
    for (unsigned round = 0; round < BLOCKS / READS * 20; round++) {
        uint64_t first = round % (BLOCKS - READS);

        ck_assert_ptr_null(disk_ring_submit(ring, list(READS, first)));
        reap(READS, 1 + round % READS);
        for (unsigned i = 0; i < READS; i++) {
            ck_assert_int_eq(read_of[i].error, 0);
            ck_assert_uint_eq(read_of[i].n_read, BYTES);
            make_block(first + i, block);
            ck_assert_mem_eq(bytes[i], block, BYTES);
        }
    }
    close_ring();
}
END_TEST

START_TEST(test_ends_and_errors)
{
    if (!setup_ring()) {
        return;
    }
    struct disk_read *reads = list(4, BLOCKS - 1);

    reads[0].at += BYTES / 2; /* half of it is there */
    reads[2].fd = -1;
    reads[3].at = 0;
    ck_assert_ptr_null(disk_ring_submit(ring, reads));
    reap(4, READS);
    ck_assert_int_eq(reads[0].error, 0);
    ck_assert_uint_eq(reads[0].n_read, BYTES / 2);
    ck_assert_int_eq(reads[1].error, 0);
    ck_assert_uint_eq(reads[1].n_read, 0);
    ck_assert_int_eq(reads[2].error, EBADF);
    ck_assert_int_eq(reads[3].error, 0);
    ck_assert_uint_eq(reads[3].n_read, BYTES);
    close_ring();
}
END_TEST

/* A read of a pipe with nothing in it stands for one that waits for a disk. */
START_TEST(test_is_quick)
{
    int ends[2];

    if (!setup_ring()) {
        return;
    }
    ck_assert_int_eq(pipe(ends), 0);
    for (unsigned round = 0; round < 3; round++) {
        struct disk_read *reads = list(4, 0);

        for (unsigned i = 0; i < 4; i++) {
            reads[i].fd = -1; /* ends at once, in vain */
        }
        reads[2].fd = round == 1 ? ends[0] : -1;
        reads[2].at = 0;
        ck_assert_ptr_null(disk_ring_submit(ring, reads));
        ck_assert(ring->is_quick == (round != 1));
        reap(round == 1 ? 3 : 4, READS);
        if (round == 1) {
            ck_assert_int_eq(write(ends[1], bytes[0], BYTES), BYTES);
            reap(1, READS);
            ck_assert_uint_eq(reads[2].n_read, BYTES);
        }
    }
    close(ends[0]);
    close(ends[1]);
    close_ring();
}
END_TEST

#if defined(__linux__) && defined(SYS_io_uring_enter)
/* From here on the process begins no read. */
static bool
forbid_enter(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_enter, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {sizeof code / sizeof *code, code};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}
#else
static bool
forbid_enter(void)
{
    return false;
}
#endif

/* Each read comes back as often as the kernel takes none, also when its queue
 * is full of what it has not taken before. The last
 * test: where check does not fork, the process begins no read any more. */
START_TEST(test_kernel_takes_none)
{
    if (!setup_ring()) {
        return;
    }
    if (!forbid_enter()) {
        printf("no seccomp: %s\n", strerror(errno));
        close_ring();
        return;
    }
    for (unsigned round = 0; round < 10; round++) {
        struct disk_read *reads = list(READS, round);
        struct disk_read *back = disk_ring_submit(ring, reads);

        for (unsigned i = 0; i < READS; i++) {
            ck_assert_ptr_eq(back, &reads[i]);
            back = back->next;
        }
        ck_assert_ptr_null(back);
        ck_assert_ptr_null(disk_ring_reap(ring, READS));
    }
    close_ring();
}
END_TEST

int
main(void)
{
    /* the last one leaves nothing that could be used behind it */
    const TTest *const tests[] = {test_reads, test_ends_and_errors,
        test_is_quick, test_kernel_takes_none};
    return run_tests("disk_ring", tests, COUNT_OF(tests));
}
