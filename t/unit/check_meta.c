/* SPDX-License-Identifier: BSD-3-Clause */
/* proto/meta: a table of lines and of what each means, every row of it also
 * byte by byte and in all cuts. proto/answer_meta: a table of answers and of
 * what is said. Both tables were compared with memcached 1.6.45. */
#include "proto/answer.h"

#include "base/err.h"
#include "unit/parse_help.h"

#define INVALID "ERROR \"CLIENT_ERROR invalid flag\""
#define DUPLICATE "ERROR \"CLIENT_ERROR duplicate flag\""
#define BAD_TOKEN "ERROR \"CLIENT_ERROR bad token in command line format\""
#define BAD_ARITH "ERROR \"CLIENT_ERROR invalid or duplicate flag\""
#define BAD_BASE64 "ERROR \"CLIENT_ERROR error decoding key\""
#define TOO_MANY "ERROR \"CLIENT_ERROR options flags are too long\""
#define LONG_OPAQUE "ERROR \"CLIENT_ERROR opaque token too long\""
#define OPAQUE_32 "Oabcdefghijklmnopqrstuvwxyz01234"
#define OPAQUE_33 OPAQUE_32 "5"

/* mg */
static const struct row gets[] = {
    {"mg a\r\n", "LOOK key=[a]"},
    {"mg a\n", "LOOK key=[a]"},
    {"mg a v\r\n", "LOOK key=[a] wants_value meta=[ v]"},
    {"mg   a   v  \r\n", "LOOK key=[a] wants_value meta=[   v  ]"},
    {"mg a s t c f l h k Oxyz\r\n", "LOOK key=[a] meta=[ s t c f l h k Oxyz]"},
    {"mg a q u\r\n", "LOOK key=[a] quiet peeks meta=[ q u]"},
    {"mg a T30\r\n", "LOOK key=[a] exptime=30 touches meta=[ T30]"},
    {"mg a T-1\r\n", "LOOK key=[a] exptime=-1 touches meta=[ T-1]"},
    {"mg a T-\r\n", "LOOK key=[a] touches meta=[ T-]"},
    {"mg a N30 E7\r\n",
        "LOOK key=[a] vivifies vivify_exptime=30 new_cas=7 meta=[ N30 E7]"},
    {"mg a R60\r\n", "LOOK key=[a] recaches recache=60 meta=[ R60]"},
    /* the last of N and T counts for what N makes, R looks where it stands */
    {"mg a N30 T60\r\n",
        "LOOK key=[a] exptime=60 touches vivifies vivify_exptime=60 "
        "meta=[ N30 T60]"},
    {"mg a T60 N30\r\n",
        "LOOK key=[a] exptime=60 touches vivifies vivify_exptime=30 "
        "meta=[ T60 N30]"},
    {"mg a R5 T60\r\n",
        "LOOK key=[a] exptime=60 touches recaches recache=5 recaches_first "
        "meta=[ R5 T60]"},
    {"mg a T60 R5\r\n",
        "LOOK key=[a] exptime=60 touches recaches recache=5 meta=[ T60 R5]"},
    {"mg YWJj b\r\n", "LOOK key=[YWJj] base64 meta=[ b]"},
    {"mg a C5\r\n", "LOOK key=[a] meta=[ C5]"},
    /* what mg has no use for, and what nobody has */
    {"mg a D5 J6 F7 I x MZ L/path P9\r\n",
        "LOOK key=[a] meta=[ D5 J6 F7 I x MZ L/path P9]"},
    {"mg a P1:2 L\r\n", "LOOK key=[a] meta=[ P1:2 L]"},
    {"mg a " OPAQUE_32 "\r\n", "LOOK key=[a] meta=[ " OPAQUE_32 "]"},
    {"mg " KEY_250 "\r\n", "LOOK key=[" KEY_250 "]"},
    {"mg a a\r\n", INVALID},
    /* grammar */
    {"mg\r\n", BAD_FORMAT},
    {"mg \r\n", BAD_FORMAT},
    {"mg " KEY_251 "\r\n", BAD_FORMAT},
    {"mg a !\r\n", BAD_FORMAT},
    {"mg a v {\r\n", BAD_FORMAT},
    {"mg a \x80\r\n", BAD_FORMAT},
    {"mg a ~\r\n", BAD_FORMAT},
    {"mg a @\r\n", BAD_FORMAT},
    {"mg a 5\r\n", INVALID},
    {"mg a _\r\n", INVALID},
    {"mg a z\r\n", INVALID},
    {"mg a B\r\n", INVALID},
    {"mg a v v\r\n", DUPLICATE},
    {"mg a T1 T2\r\n", DUPLICATE},
    {"mg a Tx z\r\n", INVALID},
    {"mg a b z\r\n", INVALID},
    {"mg abc b\r\n", BAD_BASE64},
    {"mg ab!d b\r\n", BAD_BASE64},
    {"mg abc b Tx\r\n", BAD_TOKEN},
    {"mg abc Tx b\r\n", BAD_BASE64},
    {"mg abc b Fx\r\n", BAD_BASE64},
    {"mg a Fx\r\n", BAD_FORMAT},
    {"mg a " OPAQUE_33 "\r\n", LONG_OPAQUE},
    {"mg a " OPAQUE_33 " Tx\r\n", BAD_TOKEN},
    /* tokens */
    {"mg a T\r\n", BAD_TOKEN},
    {"mg a T+1\r\n", BAD_TOKEN},
    {"mg a T2147483647\r\n",
        "LOOK key=[a] exptime=2147483647 touches meta=[ T2147483647]"},
    {"mg a T2147483648\r\n", BAD_TOKEN},
    {"mg a T-2147483648\r\n",
        "LOOK key=[a] exptime=-2147483648 touches meta=[ T-2147483648]"},
    {"mg a T-2147483649\r\n", BAD_TOKEN},
    {"mg a T00000000001\r\n",
        "LOOK key=[a] exptime=1 touches meta=[ T00000000001]"},
    {"mg a T000000000001\r\n", BAD_TOKEN},
    {"mg a N1x\r\n", BAD_TOKEN},
    {"mg a R\r\n", BAD_TOKEN},
    {"mg a C\r\n", BAD_TOKEN},
    {"mg a C-1\r\n", BAD_TOKEN},
    {"mg a E18446744073709551615\r\n",
        "LOOK key=[a] new_cas=18446744073709551615 "
        "meta=[ E18446744073709551615]"},
    {"mg a E18446744073709551616\r\n", BAD_TOKEN},
    {"mg a E0000000000000000000001\r\n",
        "LOOK key=[a] new_cas=1 meta=[ E0000000000000000000001]"},
    {"mg a E00000000000000000000001\r\n", BAD_TOKEN},
    {"mg a D\r\n", "ERROR \"CLIENT_ERROR invalid numeric delta value\""},
    {"mg a Jx\r\n", "ERROR \"CLIENT_ERROR invalid numeric initial value\""},
    /* 18 flags and not 19; behind 23 words nothing is looked at */
    {"mg a b c f h k l q s t u v x I L P O C1 E1\r\n", BAD_BASE64},
    {"mg a c f h k l q s t u v x I L P O C1 E1 D1\r\n",
        "LOOK key=[a] quiet peeks wants_value new_cas=1 "
        "meta=[ c f h k l q s t u v x I L P O C1 E1 D1]"},
    {"mg a c f h k l q s t u v x I L P O C1 E1 D1 J1\r\n", TOO_MANY},
    {"mg a 1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7 8 9 1 2 !\r\n", BAD_FORMAT},
    {"mg a 1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7 8 9 1 2 3 !\r\n", TOO_MANY},
    {"mg " KEY_251 " z\r\n", BAD_FORMAT},
    {"mga a\r\n", "ERROR \"ERROR\""},
    {"mx a\r\n", "ERROR \"ERROR\""},
};

/* ms */
static const struct row sets[] = {
    {"ms a 2\r\n10\r\n", "SET key=[a] value=[10]"},
    {"ms a 2\n10\r\n", "SET key=[a] value=[10]"},
    {"ms a 02 q\r\n10\r\n", "SET key=[a] value=[10] quiet meta=[ q]"},
    {"ms a 0\r\n\r\n", "SET key=[a]"},
    {"ms a -\r\n\r\n", "SET key=[a]"},
    {"ms a 1 F4294967295 T60 E9\r\nx\r\n",
        "SET key=[a] value=[x] flags=4294967295 exptime=60 touches new_cas=9 "
        "meta=[ F4294967295 T60 E9]"},
    {"ms YWJj 1 b\r\nx\r\n", "SET key=[YWJj] value=[x] base64 meta=[ b]"},
    {"ms a 1 MS\r\nx\r\n", "SET key=[a] value=[x] meta=[ MS]"},
    {"ms a 1 Mset\r\n",
        "ERROR \"CLIENT_ERROR invalid mode for ms M token\" "
        "swallow=3"},
    {"ms a 1 MSet\r\nx\r\n", "SET key=[a] value=[x] meta=[ MSet] more=[MSet]"},
    {"ms a 1 ME\r\nx\r\n", "ADD key=[a] value=[x] meta=[ ME]"},
    {"ms a 1 P\r\nx\r\n", "SET key=[a] value=[x] meta=[ P] tx=[]"},
    {"ms a 1 q Papp:7 c\r\nx\r\n",
        "SET key=[a] value=[x] quiet meta=[ q Papp:7 c] tx=[app:7]"},
    {"ms a 1 MR\r\nx\r\n", "REPLACE key=[a] value=[x] meta=[ MR]"},
    {"ms a 1 MA\r\nx\r\n", "APPEND key=[a] value=[x] meta=[ MA]"},
    {"ms a 1 MP\r\nx\r\n", "PREPEND key=[a] value=[x] meta=[ MP]"},
    {"ms a 1 MA N30\r\nx\r\n",
        "APPEND key=[a] value=[x] vivifies "
        "vivify_exptime=30 meta=[ MA N30]"},
    {"ms a 1 N30\r\nx\r\n", "SET key=[a] value=[x] meta=[ N30]"},
    /* with a cas */
    {"ms a 1 C7\r\nx\r\n", "CAS key=[a] value=[x] cas=7 meta=[ C7]"},
    {"ms a 1 C0\r\nx\r\n", "CAS key=[a] value=[x] meta=[ C0]"},
    {"ms a 1 C7 I\r\nx\r\n",
        "CAS key=[a] value=[x] cas=7 outdates meta=[ C7 I]"},
    {"ms a 1 I\r\nx\r\n", "SET key=[a] value=[x] meta=[ I]"},
    {"ms a 1 MR C7\r\nx\r\n", "CAS key=[a] value=[x] cas=7 meta=[ MR C7]"},
    {"ms a 1 ME C7 I\r\nx\r\n", "ADD key=[a] value=[x] cas=7 meta=[ ME C7 I]"},
    {"ms a 1 MA C7 I\r\nx\r\n",
        "APPEND key=[a] value=[x] cas=7 compares meta=[ MA C7 I]"},
    {"ms a 1 MP C0\r\nx\r\n", "PREPEND key=[a] value=[x] meta=[ MP C0]"},
    /* no length: nothing is skipped */
    {"ms\r\n", BAD_FORMAT},
    {"ms a\r\n", BAD_FORMAT},
    {"ms a x\r\n", BAD_FORMAT},
    {"ms a -1\r\n", BAD_FORMAT},
    /* one that no block has: the block cannot be */
    {"ms a +1\r\n", BAD_FORMAT " closes"},
    {"ms a 2147483646\r\n", BAD_FORMAT " closes"},
    {"ms a 4294967296 q\r\n", BAD_FORMAT " closes"},
    {"ms a 99999999999999999999999 !\r\n", BAD_FORMAT " closes"},
    {"ms " KEY_251 " 2147483646\r\n", BAD_FORMAT " closes"},
    /* else the block is */
    {"ms a 5 !\r\n", BAD_FORMAT " swallow=7"},
    {"ms " KEY_251 " 5\r\n", BAD_FORMAT " swallow=7"},
    {"ms a 5 z\r\n", INVALID " swallow=7"},
    {"ms a 5 k k\r\n", DUPLICATE " swallow=7"},
    {"ms a 5 Tx q\r\n", BAD_TOKEN " swallow=7"},
    {"ms a 5 Fx\r\n", BAD_FORMAT " swallow=7"},
    {"ms a 5 F4294967296\r\n", BAD_FORMAT " swallow=7"},
    {"ms abc 5 b\r\n", BAD_BASE64 " swallow=7"},
    {"ms a 5 M\r\n",
        "ERROR \"CLIENT_ERROR invalid mode for ms M token\" swallow=7"},
    {"ms a 5 " OPAQUE_33 "\r\n", LONG_OPAQUE " swallow=7"},
    {"ms a 5 c f h k l q s t u v x I L P O C1 E1 D1\r\n",
        TOO_MANY " swallow=7"},
    {"ms a 1001 " OPAQUE_33 "\r\n",
        "TOO_LARGE as=SET key=[a] meta=[ " OPAQUE_33 "] swallow=1003"},
    {"ms a 1001 q C5\r\n",
        "TOO_LARGE as=CAS key=[a] cas=5 quiet meta=[ q C5] swallow=1003"},
    {"ms a 2 q\r\nabc\n", BAD_CHUNK},
    {"ms a 2\r\nabcd", BAD_CHUNK " swallow_line"},
};

/* md ma mn me */
static const struct row others[] = {
    {"md a\r\n", "DELETE key=[a]"},
    {"md a q k Oab\r\n", "DELETE key=[a] quiet meta=[ q k Oab]"},
    {"md a C7\r\n", "DELETE key=[a] cas=7 compares meta=[ C7]"},
    {"md a C0\r\n", "DELETE key=[a] compares meta=[ C0]"},
    {"md a I T30 E5\r\n",
        "DELETE key=[a] exptime=30 touches outdates "
        "new_cas=5 meta=[ I T30 E5]"},
    {"md a x F5\r\n", "DELETE key=[a] flags=5 empties meta=[ x F5]"},
    {"md YWJj b\r\n", "DELETE key=[YWJj] base64 meta=[ b]"},
    {"md a N5\r\n", "DELETE key=[a] vivify_exptime=5 meta=[ N5]"},
    {"md\r\n", BAD_FORMAT},
    {"md a z\r\n", INVALID},
    {"md a !\r\n", BAD_FORMAT},
    {"md a " OPAQUE_33 "\r\n", LONG_OPAQUE},
    {"ma a\r\n", "INCR key=[a] number=1"},
    {"ma a D0\r\n", "INCR key=[a] meta=[ D0]"},
    {"ma a MI D5 v\r\n", "INCR key=[a] number=5 wants_value meta=[ MI D5 v]"},
    {"ma a M+\r\n", "INCR key=[a] number=1 meta=[ M+]"},
    {"ma a Mincr\r\n", "ERROR \"CLIENT_ERROR invalid mode for ma M token\""},
    {"ma a MIncr\r\n", "INCR key=[a] number=1 meta=[ MIncr] more=[MIncr]"},
    {"ma a tx=p:1 Pp:2\r\n",
        "INCR key=[a] number=1 meta=[ tx=p:1 Pp:2] more=[tx=p:1]"},
    {"ma a Ox Lx Pp:2\r\n",
        "INCR key=[a] number=1 meta=[ Ox Lx Pp:2] tx=[p:2]"},
    {"md a Pp:2\r\n", "DELETE key=[a] meta=[ Pp:2] tx=[p:2]"},
    {"md a qx\r\n", "DELETE key=[a] quiet meta=[ qx] more=[qx]"},
    {"ma a MD\r\n", "DECR key=[a] number=1 meta=[ MD]"},
    {"ma a M- q\r\n", "DECR key=[a] number=1 quiet meta=[ M- q]"},
    {"ma a N60 J7\r\n",
        "INCR key=[a] number=1 vivifies vivify_exptime=60 "
        "initial=7 meta=[ N60 J7]"},
    {"ma a N60 T5\r\n",
        "INCR key=[a] exptime=5 number=1 touches vivifies vivify_exptime=5 "
        "meta=[ N60 T5]"},
    {"ma a C7 E9\r\n",
        "INCR key=[a] number=1 cas=7 compares new_cas=9 meta=[ C7 E9]"},
    {"ma a C0\r\n", "INCR key=[a] number=1 meta=[ C0]"},
    {"ma YWJj b\r\n", "INCR key=[YWJj] number=1 base64 meta=[ b]"},
    {"ma\r\n", BAD_FORMAT},
    {"ma a !\r\n", BAD_FORMAT},
    {"ma " KEY_251 "\r\n", BAD_ARITH},
    {"ma a z\r\n", BAD_ARITH},
    {"ma a v v\r\n", BAD_ARITH},
    {"ma a Dx\r\n", BAD_ARITH},
    {"ma a J-1\r\n", BAD_ARITH},
    {"ma abc b\r\n", BAD_ARITH},
    {"ma a M\r\n", "ERROR \"CLIENT_ERROR invalid mode for ma M token\""},
    {"ma a MS\r\n", "ERROR \"CLIENT_ERROR invalid mode for ma M token\""},
    {"ma a MS Dx\r\n", BAD_ARITH},
    {"ma a " OPAQUE_33 "\r\n", LONG_OPAQUE},
    {"mn\r\n", "NOOP"},
    {"mn what ever !\r\n", "NOOP"},
    {"mn\n", BAD_FORMAT},
    {"me a\r\n", "INSPECT key=[a]"},
    {"me YWJj b\r\n", "INSPECT key=[YWJj] base64 meta=[ b]"},
    {"me YWJj b v v\r\n", "INSPECT key=[YWJj] base64 meta=[ b v v]"},
    {"me a v b\r\n", "INSPECT key=[a] meta=[ v b]"},
    {"me a base64\r\n", "INSPECT key=[a] meta=[ base64]"},
    {"me abc b\r\n", BAD_FORMAT},
    {"me " KEY_251 "\r\n", BAD_FORMAT},
    {"me\r\n", BAD_FORMAT},
    {"me a !\r\n", BAD_FORMAT},
};

START_TEST(test_gets)
{
    play(gets, COUNT_OF(gets));
}
END_TEST

START_TEST(test_sets)
{
    play(sets, COUNT_OF(sets));
}
END_TEST

START_TEST(test_others)
{
    play(others, COUNT_OF(others));
}
END_TEST

static void
expect_close(const char *line, size_t len)
{
    struct schema *schema = weibo_schema();
    struct parse_scan scan = {0, 0};
    struct request request;
    ck_assert_int_eq(parse(schema, line, len, &scan, &request), PARSE_CLOSE);
    schema_destroy(&schema);
}

/* No more than of any other line, whatever it would say. */
START_TEST(test_line_limit)
{
    char line[TEXT_LINE_MAX + 1];
    struct row row = {line, "LOOK key=[a] meta=[]"};
    struct schema *schema = weibo_schema();
    struct parse_scan scan = {0, 0};
    struct request request;
    memset(line, ' ', sizeof line);
    memcpy(line, "mg a", 4);
    line[sizeof line - 1] = '\n';
    expect_close(line, sizeof line);
    line[sizeof line - 2] = '\n';
    ck_assert_int_eq(
        parse(schema, row.bytes, sizeof line - 1, &scan, &request),
        PARSE_REQUEST);
    ck_assert_int_eq(request.op, REQUEST_LOOK);
    schema_destroy(&schema);
}
END_TEST

/* A request's line, an answer to it, and what is said. */
struct said {
    const char *line;
    struct answer answer;
    const char *reply;
};

#define FOUND .value = "hello", .value_len = 5, .cas = 7, .flags = 9
#define PLAIN .ttl_s = ANSWER_NEVER, .old_ttl_s = ANSWER_NEVER

static const struct said looked_up[] = {
    {"mg a\r\n", {.kind = ANSWER_VALUE, FOUND, PLAIN}, "HD\r\n"},
    {"mg a v\r\n", {.kind = ANSWER_VALUE, FOUND, PLAIN}, "VA 5\r\nhello\r\n"},
    {"mg a v q\r\n", {.kind = ANSWER_VALUE, FOUND, PLAIN},
        "VA 5\r\nhello\r\n"},
    {"mg a v\r\n", {.kind = ANSWER_VALUE, .value = "", PLAIN}, "VA 0\r\n\r\n"},
    {"mg a s t c f l h k Oxyz P1 L2 q u\r\n",
        {.kind = ANSWER_VALUE,
            FOUND,
            .old_ttl_s = 30,
            .idle_s = 4,
            .was_fetched = true},
        "HD s5 t30 c7 f9 l4 h1 ka Oxyz\r\n"},
    {"mg a Oxyz k h l f c t s v\r\n", {.kind = ANSWER_VALUE, FOUND, PLAIN},
        "VA 5 Oxyz ka h0 l0 f9 c7 t-1 s5\r\nhello\r\n"},
    {"mg YWJj k b\r\n", {.kind = ANSWER_VALUE, FOUND, PLAIN},
        "HD kYWJj b\r\n"},
    {"mg YWJj b\r\n", {.kind = ANSWER_VALUE, FOUND, PLAIN}, "HD\r\n"},
    {"mg a v C7\r\n", {.kind = ANSWER_VALUE, FOUND, PLAIN}, "HD\r\n"},
    {"mg a v C8\r\n", {.kind = ANSWER_VALUE, FOUND, PLAIN},
        "VA 5\r\nhello\r\n"},
    {"mg a k\r\n",
        {.kind = ANSWER_VALUE,
            FOUND,
            PLAIN,
            .was_won = true,
            .is_stale = true},
        "HD ka Z X\r\n"},
    {"mg a k\r\n",
        {.kind = ANSWER_VALUE,
            FOUND,
            PLAIN,
            .has_won = true,
            .is_stale = true},
        "HD ka X W\r\n"},
    /* the time left is that of the moment at which t stands */
    {"mg a t T60\r\n",
        {.kind = ANSWER_VALUE, FOUND, .old_ttl_s = 5, .ttl_s = 60},
        "HD t5\r\n"},
    {"mg a T60 t\r\n",
        {.kind = ANSWER_VALUE, FOUND, .old_ttl_s = 5, .ttl_s = 60},
        "HD t60\r\n"},
    {"mg a N60 t T9\r\n",
        {.kind = ANSWER_VALUE, FOUND, .old_ttl_s = 5, .ttl_s = 9},
        "HD t5\r\n"},
    {"mg a N60 t\r\n",
        {.kind = ANSWER_VALUE,
            FOUND,
            .is_new = true,
            .old_ttl_s = ANSWER_NEVER,
            .ttl_s = 60,
            .has_won = true},
        "HD t60 W\r\n"},
    {"mg a t N60\r\n",
        {.kind = ANSWER_VALUE,
            FOUND,
            .is_new = true,
            .old_ttl_s = ANSWER_NEVER,
            .ttl_s = 60,
            .has_won = true},
        "HD t-1 W\r\n"},
    {"mg a v k Oxyz t c s\r\n", {.kind = ANSWER_MISS}, "EN ka Oxyz\r\n"},
    {"mg a q\r\n", {.kind = ANSWER_MISS}, ""},
    {"me a\r\n", {.kind = ANSWER_MISS}, "EN\r\n"},
    {"me a\r\n",
        {.kind = ANSWER_ABOUT,
            FOUND,
            PLAIN,
            .item_bytes = 69,
            .item_class = 3},
        "ME a exp=-1 la=0 cas=7 fetch=no cls=3 size=69\r\n"},
    {"me YWJj b\r\n",
        {.kind = ANSWER_ABOUT,
            FOUND,
            .ttl_s = 8,
            .idle_s = 2,
            .was_fetched = true},
        "ME YWJj exp=8 la=2 cas=7 fetch=yes cls=0 size=0\r\n"},
};

static const struct said changed[] = {
    {"ms a 2 c s k Oxyz t f v\r\n10\r\n",
        {.kind = ANSWER_STORED, .cas = 7, .value_len = 12},
        "HD c7 s12 ka Oxyz\r\n"},
    {"ms a 2 MA c s k\r\n10\r\n", {.kind = ANSWER_NOT_STORED},
        "NS c0 s2 ka\r\n"},
    {"ms a 2 C1 q s\r\n10\r\n", {.kind = ANSWER_EXISTS}, "EX s2\r\n"},
    {"ms a 2 C1 q\r\n10\r\n", {.kind = ANSWER_NOT_FOUND}, "NF\r\n"},
    {"ms a 2 q c\r\n10\r\n", {.kind = ANSWER_STORED}, ""},
    {"ms a 2 q\r\n10\r\n", {.kind = ANSWER_NOT_STORED}, "NS\r\n"},
    {"ms a 2 q\r\n10\r\n", {.kind = ANSWER_REFUSED, .err = ERR_NO_MEMORY},
        "SERVER_ERROR out of memory storing object\r\n"},
    {"ms a 1001 q k\r\n", {.kind = ANSWER_REFUSED, .err = ERR_TOO_LARGE},
        "SERVER_ERROR object too large for cache\r\n"},
    {"md a k Oxyz c s t\r\n", {.kind = ANSWER_DELETED}, "HD ka Oxyz\r\n"},
    {"md a q k\r\n", {.kind = ANSWER_DELETED}, ""},
    {"md a q k\r\n", {.kind = ANSWER_NOT_FOUND}, "NF ka\r\n"},
    {"md a q\r\n", {.kind = ANSWER_EXISTS}, "EX\r\n"},
    {"ma a\r\n", {.kind = ANSWER_NUMBER, .number = 12, PLAIN}, "HD\r\n"},
    {"ma a v t c k Oxyz s f\r\n",
        {.kind = ANSWER_NUMBER, .number = 12, .cas = 7, .old_ttl_s = 30},
        "VA 2 t30 c7 ka Oxyz\r\n12\r\n"},
    {"ma a v\r\n", {.kind = ANSWER_NUMBER, .number = UINT64_MAX, PLAIN},
        "VA 20\r\n18446744073709551615\r\n"},
    {"ma a C7 v\r\n", {.kind = ANSWER_NUMBER, .number = 1, .cas = 7},
        "VA 1\r\n1\r\n"},
    {"ma a v q c\r\n", {.kind = ANSWER_NUMBER, .number = 12}, ""},
    {"ma a v q c k\r\n", {.kind = ANSWER_NOT_FOUND}, "NF ka\r\n"},
    {"ma a v c t\r\n", {.kind = ANSWER_EXISTS}, "EX\r\n"},
    {"ma a q\r\n", {.kind = ANSWER_REFUSED, .err = ERR_NO_MEMORY},
        "SERVER_ERROR out of memory\r\n"},
    {"mn\r\n", {.kind = ANSWER_OK}, "MN\r\n"},
};

/* Bytes before the request's make no difference: a request that is answered
 * later is at another place by then. */
static void
expect_said(
    const struct schema *schema, const struct said *said, uint32_t shift)
{
    struct parse_scan scan = {0, 0};
    struct request request;
    struct buf out = {0};
    struct buf moved = {0};
    ck_assert_int_eq(text_parse(said->line, strlen(said->line), schema,
                         VALUE_MAX, &scan, &request),
        PARSE_REQUEST);
    for (uint32_t i = 0; i < shift; i++) {
        buf_add(&moved, "x", 1);
    }
    buf_add_text(&moved, said->line);
    struct echo echo = echo_of(&request, shift);
    answer_put(&echo, moved.data, &said->answer, &out);
    buf_add(&out, "", 1);
    ck_assert(!out.failed && !moved.failed);
    ck_assert_str_eq(out.data, said->reply);
    buf_fini(&out);
    buf_fini(&moved);
}

static void
expect_all_said(const struct said *said, size_t n)
{
    struct schema *schema = weibo_schema();
    for (size_t i = 0; i < n; i++) {
        expect_said(schema, &said[i], 0);
        expect_said(schema, &said[i], 13);
    }
    schema_destroy(&schema);
}

START_TEST(test_looked_up)
{
    expect_all_said(looked_up, COUNT_OF(looked_up));
}
END_TEST

START_TEST(test_changed)
{
    expect_all_said(changed, COUNT_OF(changed));
}
END_TEST

/* The longest reply that a line can ask for. */
START_TEST(test_longest)
{
    static const struct said said = {
        "mg " KEY_250 " c f h k l s t v " OPAQUE_32 " E1 P L\r\n",
        {.kind = ANSWER_VALUE,
            .value = "x",
            .value_len = 1,
            .cas = UINT64_MAX,
            .flags = UINT32_MAX,
            .ttl_s = INT64_MAX,
            .old_ttl_s = INT64_MAX,
            .idle_s = UINT64_MAX,
            .was_fetched = true,
            .has_won = true,
            .is_stale = true,
            .was_won = true},
        "VA 1 c18446744073709551615 f4294967295 h1 k" KEY_250
        " l18446744073709551615 s1 t9223372036854775807 " OPAQUE_32
        " Z X W\r\nx\r\n"};
    expect_all_said(&said, 1);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_gets, test_sets, test_others,
        test_line_limit, test_looked_up, test_changed, test_longest};
    return run_tests("meta", tests, COUNT_OF(tests));
}
