/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_GIVE_WAY_H
#define BASE_GIVE_WAY_H

/* Lets another thread run that waits for this core, if there is one; about a
 * microsecond where there is none. For long work in the background, between
 * pieces of it: without it a thread keeps the core until the kernel's next
 * tick, 4 ms with Debian's, and who waits for an answer waits as long. Not
 * while a lock is held that others take to answer. */
void give_way(void);

#endif
