/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_ERR_H
#define BASE_ERR_H

/* Every result that can go wrong is an int: 0, or one of these. The text is
 * what a person reads: it goes into CLIENT_ERROR and SERVER_ERROR replies and
 * into the log, and says what to do where that is known.
 *
 * A change that is answered with one of these has not been made, but for those
 * named UNSURE: it has been made, and it is not known whether a crash keeps it.
 * Their texts begin with ERR_UNSURE_TEXT, which clients look for. UNCOMMITTED
 * is of reads, and of changes that have not been made for what they found. */
#define ERR_UNSURE_TEXT "outcome unknown"

#define ERR_TABLE(X)                                                          \
    X(NO_MEMORY, "out of memory")                                             \
    X(GONE, "the counter or column has been dropped")                         \
    X(NOT_FOUND, "not found")                                                 \
    X(NOT_STORED, "not stored")                                               \
    X(EXISTS, "changed since it was read")                                    \
    X(TOO_LARGE, "object too large for cache")                                \
    X(NOT_NUMERIC, "cannot increment or decrement non-numeric value")         \
    X(BAD_VALUE, "value must be an unsigned decimal integer")                 \
    X(OVER_MAX, "value is above the column's max")                            \
    X(OVERFLOW, "increment would pass the column's max")                      \
    X(NO_COLUMNS, "the counter has no value column yet")                      \
    X(BAD_NAME, "a name is 1 to 32 letters, digits or _, no digit first")     \
    X(RESERVED_NAME, "that name is a word of the dialect")                    \
    X(NAME_TAKEN, "that name or suffix is already in use")                    \
    X(NAME_IS_ITEM, "an item of that name exists, delete it first")           \
    X(NO_COUNTER, "no such counter")                                          \
    X(NO_COLUMN, "no such column in that counter")                            \
    X(NOT_CONFIRMED, "write the name twice to confirm")                       \
    X(NO_KEY, "the counter has no primary key yet, add that column first")    \
    X(TWO_KEYS, "the counter already has a primary key")                      \
    X(KEY_WIDTH, "a primary key has max=64, default=0 and no suffix")         \
    X(NAME_OPTIONS, "primarykey=text takes no max, hint or default")          \
    X(NAMES_ORDER,                                                            \
        "ids that are names have no order: no maxjump=, no cold_after=, and " \
        "all are dumped")                                                     \
    X(NAMES_KIND,                                                             \
        "where ids are names a column is a number, members=exact, or a mark " \
        "of a number")                                                        \
    X(NAMES_SOURCE,                                                           \
        "a column of a counter whose ids are names is marked by those of "    \
        "the same name only")                                                 \
    X(DROP_KEY, "the primary key cannot be dropped, drop the counter")        \
    X(BAD_HINT, "hint must be 0 to 64 and not above max")                     \
    X(BAD_MAX, "max must be 1 to 64")                                         \
    X(BAD_DEFAULT, "default must be an integer within max")                   \
    X(BAD_FLAGS, "flags must be 0 to 4294967295")                             \
    X(BAD_OPTION, "unknown, repeated or malformed option")                    \
    X(BAD_SOURCE,                                                             \
        "a source is a column of this counter, or ID.COLUMN, and exists")     \
    X(SOURCE_KIND,                                                            \
        "a mark is about a number or members, a list about a number")         \
    X(MARK_NEEDS, "a mark needs unread=, and forget= needs unmarked=none")    \
    X(MARK_WIDTH,                                                             \
        "a mark has the max and hint of its source, and no default")          \
    X(NOT_A_MARK,                                                             \
        "unread=, unmarked= and forget= are for a mark: give marks=")         \
    X(LIST_OPTIONS, "a list takes suffix= and flags= only")                   \
    X(NO_FOLLOWED, "there is no such column to follow")                       \
    X(FOLLOW_COLD, "follow a counter with cold=never")                        \
    X(ABOUT_MEMORY, "members=about needs memory=, 16m at least")              \
    X(ABOUT_ERROR, "error must be 20 to 1000")                                \
    X(ABOUT_MAX, "max of members=about is 1")                                 \
    X(NOT_ABOUT, "memory= and error= are for members=about")                  \
    X(ABOUT_SOURCE,                                                           \
        "members=about cannot be marked or followed, see members=exact")      \
    X(CHANGE_OPTIONS,                                                         \
        "name=, suffix=, max=, hint=, default=, flags= and memory= can be "   \
        "changed")                                                            \
    X(CHANGE_DEFAULT,                                                         \
        "a default can be changed while the counter has no records and no "   \
        "segments: add a column, copy, and drop this one")                    \
    X(CHANGE_FIXED,                                                           \
        "a default can be changed where it and all columns behind are "       \
        "numbers that no other is about: add a column, copy, and drop this "  \
        "one")                                                                \
    X(CHANGE_KEY, "a primary key cannot be changed")                          \
    X(CHANGE_WIDTH,                                                           \
        "max= and hint= can be changed of a number that no mark is about")    \
    X(CHANGE_DOWN, "max can only grow")                                       \
    X(CHANGE_COLD,                                                            \
        "cold=never is for a new counter, records of this one may be on "     \
        "disk")                                                               \
    X(CHANGE_MEMBERS,                                                         \
        "absent= and overflow= of a counter with members=exact cannot be "    \
        "changed")                                                            \
    X(CHANGE_ONCE,                                                            \
        "a rename is sent once: here, write the new name into the line that " \
        "adds the column")                                                    \
    X(MEMBERS_OPTIONS,                                                        \
        "members take max=, member=, counts=, suffix= and flags= only")       \
    X(MEMBERS_MAX, "max of members must be 1 to 8")                           \
    X(MEMBERS_BITS, "member must be 16 to 48")                                \
    X(MEMBERS_WIDE, "member= is too large for so many shards")                \
    X(NOT_MEMBERS, "member= and counts= are for members: give members=exact") \
    X(BAD_COUNTS,                                                             \
        "counts= names a number of this counter with default 0, in which no " \
        "other members count")                                                \
    X(COUNTS_VALUES, "that number has values that are no counts of members")  \
    X(COUNTS_COLD, "that number is in segments, which may have values of it") \
    X(MANY_MEMBERS, "too many ids have members, see member=")                 \
    X(IN_USE, "a column marks, counts or follows this one, drop that first")  \
    X(COLD_AFTER, "a counter with cold=never takes no cold_after=")           \
    X(NEVER_COLD, "the counter has cold=never: its records stay in memory")   \
    X(TOO_MANY_COUNTERS, "256 counters is the limit")                         \
    X(TOO_MANY_COLUMNS, "16 value columns a counter is the limit")            \
    X(BAD_FORMAT, "bad command line format")                                  \
    X(UNKNOWN_COMMAND, "unknown command")                                     \
    X(NOT_SCHEMA, "only add and change lines are allowed here")               \
    X(EXPTIME, "a counter does not expire, send exptime 0")                   \
    X(NO_FLUSH, "flush_all not allowed")                                      \
    X(UNKNOWN_USER, "unauthenticated")                                        \
    X(BAD_LOGIN, "authentication failure")                                    \
    X(MAY_ONLY_READ, "this user may only read")                               \
    X(NO_APPEND, "a counter takes no append or prepend")                      \
    X(OWN_CAS, "the cas unique of a counter follows its value")               \
    X(NOT_STALE, "a counter cannot be stale")                                 \
    X(UNREAD, "what is unread is counted, set its mark")                      \
    X(COUNTED, "that number counts members, change these")                    \
    X(MEMBER, "the member is above what that column takes, see member=")      \
    X(NO_MEMBER, "a member is named as ID.NAME:MEMBER")                       \
    X(ABOUT_OP, "members=about takes get, set and add only")                  \
    X(UNSEEN, "what was seen cannot be unseen, see members=exact")            \
    X(BELOW, "the id is below what that column still knows")                  \
    X(RECORD_OP, "a whole record takes get, set, add, cas and delete only")   \
    X(BAD_LIST, "a list is 1 to 16384 ids separated by spaces")               \
    X(NO_LIST, "there is no list to mark")                                    \
    X(LIST_OP, "a list takes get, set, add, replace, cas, delete and touch")  \
    X(LIST_TX, "nothing of a list is kept, so no change of it is numbered")   \
    X(LIST_BUSY, "too many change this list at once, try again")              \
    X(BAD_ID, "an id is a decimal number below 2^64, no leading zeros")       \
    X(BAD_ID_NAME, "a name is 1 to 200 bytes without white space")            \
    X(VALUE_COUNT, "this is a counter: send its id and one value a column")   \
    X(NOT_NAMED, "give one number a column, or COLUMN=NUMBER throughout")     \
    X(COLUMN_TWICE, "a column is named twice")                                \
    X(BAD_DELTA, "invalid numeric delta argument")                            \
    X(MISUSE,                                                                 \
        "this is a counter's name: get, set, add, replace, delete, "          \
        "incr and decr take it, see help")                                    \
    X(KEY_IS_COUNTER,                                                         \
        "three numbers are an item's, which cannot have a counter's name: "   \
        "write COLUMN=NUMBER, see help")                                      \
    X(NEAR_NAME,                                                              \
        "the key begins like a counter's, but no counter or column has the "  \
        "name behind the dot, see show counters")                             \
    X(NEAR_ID,                                                                \
        "the key ends like a counter's, but before the dot is no id: "        \
        "decimal, below 2^64, no leading zeros, no prefix")                   \
    X(NO_ITEMS,                                                               \
        "the key is no counter's, and this server has no items: -m 0")        \
    X(HOT_FULL, "the memory for counters is full, see --hot-memory")          \
    X(COLD, "the record has to be read from disk first")                      \
    X(JUMP, "the id is too far beyond the largest one, see maxjump")          \
    X(NOT_OWNED, "the id is another server's by the rule of --owns")          \
    X(MOVED, "moved")                                                         \
    X(MANY_HANDOVERS, "64 handovers is the limit, take back one")             \
    X(BAD_RULE,                                                               \
        "a rule is HASH:I/N or modulo:I/N: ids of server I, from 0, of N")    \
    X(NAMES_RULE,                                                             \
        "ids that are names go by no rule about numbers: modulo, misses")     \
    X(NOT_MOVED, "not handed over, see handover")                             \
    X(FORGETS, "busy: see stats forget, or a handover is being changed")      \
    X(HANDED_BACK, "the ids have been handed back")                           \
    X(BAD_TX, "a change is numbered as PRODUCER:NUMBER, see help")            \
    X(TX_ITEM, "only changes of counters can be numbered, not an item's")     \
    X(MORE_WORDS, "unknown words: a counter takes tx=PRODUCER:NUMBER there")  \
    X(MORE_TOKENS, "no text behind that flag: P<PRODUCER>:<NUMBER> numbers")  \
    X(OLD_TX, "that number is below the producer's window of 1024")           \
    X(PRODUCER_GONE, "the producer has been dropped, nothing was changed")    \
    X(NO_PRODUCER, "no such producer")                                        \
    X(BAD_NUMBERS, "HIGHEST and BITS are as dump numbers shows them")         \
    X(MANY_PRODUCERS, "too many producers: drop one, or see --max-producers") \
    X(HTTP, "the client speaks HTTP")                                         \
    X(LONG_LINE, "the client sent a line longer than any command")            \
    X(LONG_BLOCK, "the client announced a value of an impossible length")     \
    X(NO_PACKET, "the client sent what is no binary packet")                  \
    X(ERRORS, "the client sent one unknown command after the other")          \
    X(OTHER_COLUMNS, "the counter has other columns by now, begin anew")      \
    X(NAMES_AGAIN,                                                            \
        "names went and came meanwhile, begin anew or ask the primary")       \
    X(MANY_DUMPS, "too many dumps are under way, try again later")            \
    X(BACKUP_BUSY, "another backup is under way, try again later")            \
    X(BACKUP_GONE,                                                            \
        "the disk is full, and files of the backup were let go: make room, "  \
        "begin it anew")                                                      \
    X(NO_BACKUP, "no backup was begun on this connection")                    \
    X(CLOSED, "the server is stopping or starts anew: try again")             \
    X(LOADING, "loading, try again in a moment")                              \
    X(NOT_PRIMARY, "not primary")                                             \
    X(NO_PRIMARY, "no primary at the moment, try again")                      \
    X(STALE, "replica is stale")                                              \
    X(FEW_REPLICAS, "not enough replicas")                                    \
    X(BAD_ADDRESS, "an address is HOST:PORT, with a port from 1 to 65535")    \
    X(OWN_ADDRESS, "that address is this server's own")                       \
    X(BAD_WAIT,                                                               \
        "wanted is wait N MS: replicas, and milliseconds up to 86400000")     \
    X(NO_DIALLER,                                                             \
        "the process that connects to others is gone, start the server anew") \
    X(BY_ETCD, "etcd decides who leads this group, see failover")             \
    X(BY_HAND, "who is primary is said by replicaof here, see --replicate")   \
    X(NOT_HANDED, "not handed over")                                          \
    X(NO_GROUP,                                                               \
        "this server has no copies on others, see --repl-port, --replicaof")  \
    X(DISK_FULL,                                                              \
        "the disk is full, counters are read-only until it has room")         \
    X(DISK, "writing to the disk failed, counters are read-only")             \
    X(UNSURE,                                                                 \
        "outcome unknown, a crash may undo the change: get the value before " \
        "a retry")                                                            \
    X(UNSURE_SLOW,                                                            \
        "outcome unknown, the disk is slow: get the value before a retry")    \
    X(UNSURE_COPIES,                                                          \
        "outcome unknown, replicas or the disk are slow: get the value "      \
        "before a retry")                                                     \
    X(UNSURE_PRIMARY,                                                         \
        "outcome unknown, the primary went away: get the value before a "     \
        "retry")                                                              \
    X(FORWARD_BUSY,                                                           \
        "too many changes wait for the primary, nothing was changed: try "    \
        "again")                                                              \
    X(UNCOMMITTED,                                                            \
        "not shown, a crash or another primary may undo it: the disk has "    \
        "failed, or this node leads no more, read again later")               \
    X(UNCOMMITTED_SLOW,                                                       \
        "not shown, a crash may undo it: the disk is slow, read again later") \
    X(LOG_FULL,                                                               \
        "the disk is slow, no change is taken until it has caught up")        \
    X(COLD_READ,                                                              \
        "a counter cannot be read from the disk, see the server's log")       \
    X(LOG_GONE, "that part of the log has been removed, begin anew")          \
    X(LOG_ORDER, "that is not the next batch of the log")                     \
    X(FILE_SIZE, "a file size limit is reached, counters are read-only")      \
    X(NO_DATA_DIR, "no data directory")                                       \
    X(REPLICATED,                                                             \
        "the data directory is one of several copies: give --replicaof or "   \
        "--repl-port, or --leave-group")                                      \
    X(DIR_IN_USE, "another process uses this data directory")                 \
    X(DIR_TAKEN,                                                              \
        "another server has the data directory, counters are read-only")      \
    X(NO_CHECKPOINT,                                                          \
        "no checkpoint was made, but the log has all changes: see the "       \
        "server's log")                                                       \
    X(CORRUPT, "a file is damaged or missing")                                \
    X(NEWER_FORMAT, "a file was written by a newer tallyd")                   \
    X(NO_THREAD,                                                              \
        "no thread can be made: see ulimit -u and ulimit -v, and pids.max "   \
        "and the memory of the cgroup")                                       \
    X(NOT_LOOPBACK, "an address that others can reach")                       \
    X(SYSTEM, "a system call failed")

enum err {
    ERR_OK = 0,
#define X(name, text) ERR_##name,
    ERR_TABLE(X)
#undef X
        ERR_COUNT
};

/* The text of err; "ok" for 0. Never NULL; static storage. */
const char *err_text(int err);

/* The same where err is about a file that is read or written apart from the
 * changes of clients (at a start, for a checkpoint): it does not say that
 * counters are read-only. */
const char *err_file_text(int err);

#endif
