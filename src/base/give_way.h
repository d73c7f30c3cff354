/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_GIVE_WAY_H
#define BASE_GIVE_WAY_H

/* How long work in the background leaves the core to who waits for an answer:
 * a thread says give_way_begin at its start, and give_way between pieces of its
 * work of about GIVE_WAY_US. */
enum { GIVE_WAY_US = 100 };

/* The calling thread has a lower priority from now on, `nice` (0..19), and
 * short turns, as far as it may and the kernel knows them. One that is not
 * scheduled in the usual way stays as it is, but for nice. */
void give_way_begin(int nice);

/* Lets another thread run that waits for this core, if there is one; about a
 * microsecond where there is none. Without it a thread keeps the core until the
 * kernel's next tick, 4 ms with Debian's, and who waits for an answer waits as
 * long. Not while a lock is held that others take to answer. */
void give_way(void);

#endif
