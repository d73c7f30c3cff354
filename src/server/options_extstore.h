/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_OPTIONS_EXTSTORE_H
#define SERVER_OPTIONS_EXTSTORE_H

/* The rest of the names of -o, columns as in OPTIONS_EXTENDED. */

/* Items on disk: there is no such thing here. */
#define OPTIONS_EXTENDED_STORE(X)                                             \
    X(ext_path, PLAIN, "ext_path", "FILE:SIZE", ANY, 1, 1023, "", IGNORED,    \
        "items on disk, all of ext_: there are none")                         \
    X(ext_page_size_mib, PLAIN, "ext_page_size", "MB", WHOLE, 0, UINT32_MAX,  \
        "64", IGNORED, "size of a page")                                      \
    X(ext_wbuf_size_mib, PLAIN, "ext_wbuf_size", "MB", WHOLE, 0, UINT32_MAX,  \
        "4", IGNORED, "buffer of writes")                                     \
    X(ext_threads, PLAIN, "ext_threads", "NUM", WHOLE, 0, UINT32_MAX, "1",    \
        IGNORED, "threads that read")                                         \
    X(ext_io_depth, PLAIN, "ext_io_depth", "NUM", WHOLE, 0, UINT32_MAX, "1",  \
        IGNORED, "reads at a time")                                           \
    X(ext_item_size, PLAIN, "ext_item_size", "BYTES", WHOLE, 0, UINT32_MAX,   \
        "512", IGNORED, "smaller items stay in memory")                       \
    X(ext_item_age_s, PLAIN, "ext_item_age", "SECONDS", WHOLE, 0, UINT32_MAX, \
        "4294967295", IGNORED, "and younger ones")                            \
    X(ext_low_ttl_s, PLAIN, "ext_low_ttl", "SECONDS", WHOLE, 0, UINT32_MAX,   \
        "0", IGNORED, "items that expire soon go to pages of their own")      \
    X(ext_recache_rate, PLAIN, "ext_recache_rate", "NUM", WHOLE, 0,           \
        UINT32_MAX, "2000", IGNORED, "one read in so many goes to memory")    \
    X(ext_compact_under, PLAIN, "ext_compact_under", "PAGES", WHOLE, 0,       \
        UINT32_MAX, "0", IGNORED, "free pages below which it compacts")       \
    X(ext_drop_under, PLAIN, "ext_drop_under", "PAGES", WHOLE, 0, UINT32_MAX, \
        "0", IGNORED, "free pages below which it drops")                      \
    X(ext_max_sleep_us, PLAIN, "ext_max_sleep", "MICROSECONDS", WHOLE, 0,     \
        UINT32_MAX, "1000000", IGNORED, "longest pause of its threads")       \
    X(ext_max_frag, PLAIN, "ext_max_frag", "NUM", FRACTION, 0, INT32_MAX,     \
        "0.8", IGNORED, "pages fuller than this are left alone")              \
    X(ext_drop_unread, PLAIN, "ext_drop_unread", NULL, FLAG, 0, 0, "",        \
        IGNORED, "items never read are dropped there")

#define OPTIONS_NO_PROXY "a proxy, which this is not: refused"

/* What would be another server. */
#define OPTIONS_EXTENDED_REFUSED(X)                                           \
    X(proxy_config, PLAIN, "proxy_config", "FILE", ANY, 0, 0, "", REFUSED,    \
        OPTIONS_NO_PROXY)                                                     \
    X(proxy_arg, PLAIN, "proxy_arg", "TEXT", ANY, 0, 0, "", REFUSED,          \
        OPTIONS_NO_PROXY)                                                     \
    X(proxy_uring, PLAIN, "proxy_uring", NULL, ANY, 0, 0, "", REFUSED,        \
        OPTIONS_NO_PROXY)                                                     \
    X(proxy_memprofile, PLAIN, "proxy_memprofile", NULL, ANY, 0, 0, "",       \
        REFUSED, OPTIONS_NO_PROXY)

#endif
