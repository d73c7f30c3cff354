/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Lines for the operator, on stderr or in a file, in logfmt:
 *
 *   ts=2026-01-02T03:04:05.678Z level=info msg="..." suppressed=3
 *
 * Levels: errors, warnings and notices (what is right and worth knowing) are
 * always written, information from -v on, details from -vv. Any thread; a line
 * is one write. */
enum log_level { LOG_ERROR, LOG_WARNING, LOG_NOTICE, LOG_INFO, LOG_DEBUG };

enum {
    LOG_BURST = 100,       /* lines of one place in the code are written, */
    LOG_WINDOW_MS = 10000, /* in so long; others are counted */
    LOG_SITES = 64,        /* places that are counted at a time */
    LOG_TEXT_BYTES = 1024, /* of a message; what is longer is cut */
    LOG_KEPT_BYTES = 256,  /* of one that was not written */
    LOG_LINE_BYTES = 2048, /* of a whole line; cut likewise */
    LOG_STUCK_MS = 1000,   /* a write that takes as long waits for its disk */
    LOG_WAIT_MS = 50       /* between two looks at it: see log_wait_is_over */
};

/* Who waits for another thread's write; all zero at first. */
struct log_wait {
    uint64_t looked_ms; /* 0: never */
    uint64_t waited_ms;
};

/* A place in the code that has written lately, told by its format. */
struct log_site {
    const char *format; /* NULL: none */
    uint64_t began_ms;  /* its window */
    unsigned n;         /* lines in that, those not written too */
    unsigned suppressed;
    enum log_level level;      /* of the last one that was not written, */
    char kept[LOG_KEPT_BYTES]; /* and its text */
};

/* Who is told of events beside the log; see log_event. */
struct log_listener {
    /* topic is static storage. Any thread; it must not wait, nor log. */
    void (*event_fn)(struct log_listener *listener, enum log_level level,
        const char *topic, const char *text, size_t len);
};

/* All zero: errors, warnings and notices, on stderr. */
struct logger {
    _Atomic int verbosity; /* 0, 1 (-v), 2 (-vv), 3 (-vvv) */
    bool is_unlimited;     /* nothing is suppressed; set before threads */
    bool never_waits;      /* see log_line; likewise */
    const char *path;      /* of the file; NULL: stderr */
    _Atomic(struct log_listener *) listener; /* NULL: nobody is told */
    _Atomic int fd;                          /* of the file; 0: stderr */
    _Atomic bool is_taken;                   /* the lock of what follows */
    struct log_site site[LOG_SITES];
    /* With never_waits: */
    _Atomic bool is_writing;  /* the lock of is_torn, and of the output */
    bool is_torn;             /* the last line has no end */
    _Atomic bool is_stuck;    /* who has the lock does not come back */
    _Atomic unsigned dropped; /* lines that nobody has been told of */
};

/* Writes a line where the level is wanted. format is a literal: lines are
 * counted by its address, and those above LOG_BURST in LOG_WINDOW_MS are not
 * written, but told in the next one: suppressed=N.
 * With never_waits, a line for which a full pipe, terminal or socket has no
 * room is dropped, and so is one that comes while another thread has not been
 * let go by the file for LOG_STUCK_MS in which the process ran; a line tells
 * how many once there is room. Without it, the caller waits. */
void log_line(struct logger *logger, enum log_level level, const char *format,
    ...) __attribute__((format(printf, 3, 4)));

/* log_line, and the same text for the listener: whatever the verbosity, and as
 * often as it comes, but for details. topic is a word, static storage. */
void log_event(struct logger *logger, const char *topic, enum log_level level,
    const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Whom log_event tells from now on; NULL: nobody. Who is taken away may be
 * called until the threads have ended that say events. */
void log_listen(struct logger *logger, struct log_listener *listener);

/* Writes to that file from now on, behind what is in it; made for its owner
 * and group where it is not there. path must outlive the logger. 0, or
 * ERR_SYSTEM with the reason in errno; stderr stays then. One thread. */
int log_open(struct logger *logger, const char *path);

/* The file's descriptor; -1: it is stderr. */
int log_descriptor(const struct logger *logger);

/* Opens the file's path anew, where there is one: it may have been renamed.
 * No line is lost. 0, or ERR_SYSTEM with the reason in errno; the old file
 * stays then. One thread at a time. */
int log_reopen(struct logger *logger);

/* Of places that have gone quiet, writes the last line that was not written,
 * with how many more there were: to be called now and then. all: of the others
 * too, for the end. Any thread. */
void log_flush(struct logger *logger, bool all);

/* log_flush of all, then closes the file; stderr stays. No other thread. */
void log_close(struct logger *logger);

/* Writes bytes where that can be done without waiting; how many it has
 * written. As safe in a handler of signals as write(2). */
size_t log_write_now(int fd, const char *bytes, size_t len);

/* A look at a write that has not ended at now_ms (a clock that never jumps; not
 * 0): true where LOG_STUCK_MS have passed since the first look. What lies
 * between two looks counts as LOG_WAIT_MS at most: the whole process may have
 * stood still (SIGSTOP), and then whoever writes has its time still before
 * it. */
bool log_wait_is_over(struct log_wait *wait, uint64_t now_ms);

/* Text as it stands between the quotes of a line, as much of it as has room;
 * the length. room may be less than what one byte makes. */
size_t log_escape(const char *text, size_t len, char *out, size_t room);

/* A line: what is written of text[0..len) at unix_ms (milliseconds since
 * 1970). No byte of it but the last is below a space or above '~'. Returns its
 * length, LOG_LINE_BYTES at most. */
size_t log__format(char out[LOG_LINE_BYTES], int64_t unix_ms,
    enum log_level level, const char *text, size_t len, unsigned suppressed);

#endif
