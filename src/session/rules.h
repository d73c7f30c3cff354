/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SESSION_RULES_H
#define SESSION_RULES_H

#include <stdbool.h>

/* What the server's switches say of all sessions. All zero: nothing is
 * restricted. */
struct session_rules {
    bool no_cas;   /* -C: items show 0 as their cas, and no cas is theirs */
    bool no_flush; /* -F: flush_all is refused */
    bool no_dump;  /* -X: so is dump counter */
    bool no_watch; /* -W: so is watch */
    bool no_near;  /* --near-cells=error: so is a key that looks like a
                    * cell's and is none */
    bool no_items; /* -m 0: so is what would make an item */
    unsigned holds_reads; /* --reads=committed: SESSION_HOLDS_READS; else 0 */
};

/* In executor->watched, beside what is watched. */
enum { SESSION_HOLDS_READS = 1 << 30 };

#endif
