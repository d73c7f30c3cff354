/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes a session with what the text protocol and the dialect say. */
#include "fuzz/fuzz_session.h"

static const char declarations[] =
    "add counter weibo\r\n"
    "add column weibo weibo_id primarykey\r\n"
    "add column weibo comment_num hint=16 max=32 suffix=cntcm\r\n"
    "add column weibo repost_num hint=2 max=8 default=5 flags=4 "
    "suffix=cntrn\r\n"
    "add counter opt absent=miss overflow=error exptime=ignore "
    "cold=quietest cold_after=9\r\n"
    "add column opt opt_id primarykey\r\n"
    "add column opt a max=64\r\n"
    "add counter bare\r\n";

static const char epilogue[] =
    "get weibo 0 1 2 1234\r\nget 1.opt 1.a 1234.a a b c\r\nshow counters\r\n";

static const struct world world = {declarations, epilogue};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    fuzz_session(&world, bytes, len);
    return 0;
}
