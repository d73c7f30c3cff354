/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes a session with what the meta commands say, on items, stale and won
 * ones among them, and on cells of all kinds. */
#include "fuzz/fuzz_session.h"

static const char before[] =
    "add counter weibo\r\n"
    "add column weibo weibo_id primarykey\r\n"
    "add column weibo n hint=16 max=32 flags=4\r\n"
    "add column weibo m hint=2 max=8 default=5\r\n"
    "add counter opt absent=miss overflow=error exptime=ignore\r\n"
    "add column opt opt_id primarykey\r\n"
    "add column opt o max=8\r\n" FUZZ_KINDS "ms a 2 F5 E100\r\n10\r\n"
    "ms b 3 T900\r\nabc\r\n"
    "ms c 1\r\nx\r\nmd c I T900\r\n"
    "mg d N900\r\n"
    "ma 1.n D7\r\n";

static const char after[] =
    "mg a s v t f k h\r\nmg b s v t f k h\r\nmg c s v t f k h\r\n"
    "mg d s v t f k h\r\nma e N0 v\r\nmg Zm9v b k v\r\n"
    "get 1.weibo 2.weibo 1.o 2.o\r\nme a\r\n" FUZZ_KINDS_LOOK;

static const struct world world = {.before = before, .after = after};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    fuzz_session(&world, bytes, len);
    return 0;
}
