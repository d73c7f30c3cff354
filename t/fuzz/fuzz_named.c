/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes sessions (fuzz_session.h) on counters whose ids are names, and on
 * members=about, in all protocols: names of any bytes, in keys, in words of the
 * dialect and in base64. The first byte says what is made of the others: an odd
 * one has them be packets of the binary protocol, an even one leaves them as
 * they are. */
#include "fuzz/fuzz_packets.h"
#include "fuzz/fuzz_session.h"

static const char before[] =
    "add counter site absent=miss\r\n"
    "add column site url primarykey=text\r\n"
    "add column site hits max=64\r\n"
    "add column site seen marks=hits unread=new flags=2\r\n"
    "add column site likes max=2\r\n"
    "add column site liked members=exact counts=likes flags=3\r\n"
    "add counter tag overflow=error\r\n"
    "add column tag word primarykey=text\r\n"
    "add column tag uses hint=2 max=8 default=5 suffix=u\r\n"
    "add counter weibo maxjump=1000\r\n"
    "add column weibo wid primarykey\r\n"
    "add column weibo views\r\n"
    "add column weibo met members=about memory=16m error=50 counts=views\r\n"
    "incr www.example.org/index.html.hits 3\r\n"
    "add 1.met:7 0 0 1\r\n1\r\n";

static const char after[] =
    "get www.example.org/index.html.hits www.example.org/index.html.new\r\n"
    "get a.hits a.u an.example.of.a.name.hits an.example.of.a.name.u\r\n"
    "get an.example.of.a.name.liked:7 an.example.of.a.name.likes 7.hits\r\n"
    "get site a www.example.org/index.html an.example.of.a.name\r\n"
    "get tag a an.example.of.a.name\r\n"
    "get 1.met:7 1.met:8 2.met:7 1.views 2.views 900.met:1\r\n"
    "show counters\r\n";

static const struct world world = {.before = before, .after = after};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    fuzz_packets_tell(&world, bytes, len);
    return 0;
}
