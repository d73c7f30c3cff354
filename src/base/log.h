/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_LOG_H
#define BASE_LOG_H

/* Lines for the operator, on stderr. Levels: errors and warnings are always
 * written, information from -v on, details from -vv. Any thread; a line is one
 * write. */
enum log_level { LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG };

struct logger {
    _Atomic int verbosity; /* 0, 1 (-v), 2 (-vv), 3 (-vvv) */
};

/* Writes "tallyd: level: text\n" where the level is wanted. */
void log_line(struct logger *logger, enum log_level level, const char *format,
    ...) __attribute__((format(printf, 3, 4)));

#endif
