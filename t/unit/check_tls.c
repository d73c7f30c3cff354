/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams of TLS against a client of OpenSSL's, in memory: wherever the bytes
 * are cut, what is said arrives; what must be refused is. */
#include "base/err.h"
#include "lib/tls_peer.h"
#include "unit/check_help.h"

static struct tls_files files;
static struct tls *tls;

static void
setup(void)
{
    tls_files_init(&files, "first");
    struct tls_config config = tls_config_of(&files);
    tls = tls_of(&config);
}

static void
teardown(void)
{
    tls_destroy(&tls);
    ck_assert_ptr_null(tls);
    tls_files_fini(&files);
}

/* Both ends of a connection. */
struct pair {
    struct tls_client client;
    struct tls_stream *stream;
    enum tls_step step; /* the last one */
    bool is_up;         /* the server's handshake is over */
    struct buf said;    /* by the server, for the client */
    struct buf heard;   /* plain, by the server */
    size_t sent;        /* bytes from the client so far */
    size_t cut;         /* the stream is cut there */
    size_t piece;       /* the most that is put in at once */
};

static void
pair_init(struct pair *pair, struct tls *of, SSL_CTX *context)
{
    *pair = (struct pair){.cut = SIZE_MAX, .piece = SIZE_MAX};
    tls_client_init(&pair->client, context);
    ck_assert_int_eq(tls_stream_open(of, TLS_USE_DEFAULT, &pair->stream), 0);
}

static void
pair_fini(struct pair *pair)
{
    tls_client_fini(&pair->client);
    tls_stream_close(&pair->stream);
    tls_stream_close(&pair->stream); /* twice is fine */
    buf_fini(&pair->said);
    buf_fini(&pair->heard);
}

static void
read_plain(struct pair *pair)
{
    do {
        size_t n;
        char *room = buf_reserve(&pair->heard, 1000);
        pair->step =
            tls_stream_read(pair->stream, room, 1000, &n, &pair->said);
        pair->heard.len += n;
    } while (pair->step == TLS_STEP_DONE);
}

static void
put(struct pair *pair, const char *bytes, size_t len)
{
    char *copy = copy_of(bytes, len);
    tls_stream_put(pair->stream, copy, len);
    if (!pair->is_up) {
        pair->step = tls_stream_shake(pair->stream, &pair->said);
        pair->is_up = pair->step == TLS_STEP_DONE;
    }
    if (pair->is_up) {
        read_plain(pair);
    }
    free(copy);
}

/* What the client has written comes to the server, in pieces. */
static void
carry(struct pair *pair)
{
    char *bytes;
    size_t at = 0;
    size_t len = (size_t)BIO_get_mem_data(pair->client.out, &bytes);
    while (at < len && pair->step != TLS_STEP_FAILED) {
        size_t n = len - at < pair->piece ? len - at : pair->piece;
        if (pair->sent < pair->cut && pair->sent + n > pair->cut) {
            n = pair->cut - pair->sent;
        }
        put(pair, bytes + at, n);
        pair->sent += n;
        at += n;
    }
    (void)BIO_reset(pair->client.out);
}

/* Until both have done with it, or one has given up. */
static bool
shake(struct pair *pair)
{
    for (int i = 0; i < 10; i++) {
        int result = SSL_do_handshake(pair->client.ssl);
        int error = SSL_get_error(pair->client.ssl, result);
        carry(pair);
        tls_client_hear(&pair->client, &pair->said);
        if (pair->step == TLS_STEP_FAILED) {
            return false;
        }
        if (result == 1 && pair->is_up) {
            return true;
        }
        if (result != 1 && error != SSL_ERROR_WANT_READ) {
            return false;
        }
    }
    return false;
}

static void
say(struct pair *pair, const char *bytes, size_t len)
{
    ck_assert_int_eq(SSL_write(pair->client.ssl, bytes, (int)len), (int)len);
    carry(pair);
}

/* The server says bytes, and the client gets them. */
static void
answer(struct pair *pair, const char *bytes, size_t len)
{
    char *got = malloc(len);
    size_t at = 0;
    ck_assert(tls_stream_write(pair->stream, bytes, len, &pair->said));
    tls_client_hear(&pair->client, &pair->said);
    while (at < len) {
        size_t n;
        int result = SSL_read_ex(pair->client.ssl, got + at, len - at, &n);
        ck_assert_msg(result == 1, "after %zu of %zu", at, len);
        at += n;
    }
    ck_assert_mem_eq(got, bytes, len);
    free(got);
}

static void
converse(struct pair *pair)
{
    say(pair, "get a\r\n", 7);
    ck_assert_int_eq(pair->step, TLS_STEP_MORE);
    ck_assert_uint_eq(pair->heard.len, 7);
    ck_assert_mem_eq(pair->heard.data, "get a\r\n", 7);
    answer(pair, "END\r\n", 5);
}

static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};

/* The bytes of a whole conversation are cut at each place, and at all. */
START_TEST(test_cut_everywhere)
{
    SSL_CTX *context = tls_client_context(versions[_i], versions[_i]);
    size_t total = 1;
    for (size_t cut = 1; cut <= total; cut++) {
        struct pair pair;
        pair_init(&pair, tls, context);
        pair.cut = cut;
        ck_assert_msg(shake(&pair), "cut at %zu", cut);
        converse(&pair);
        ck_assert_int_eq(SSL_version(pair.client.ssl), versions[_i]);
        total = pair.sent;
        pair_fini(&pair);
    }
    ck_assert_uint_gt(total, 300);
    for (size_t piece = 1; piece < 8; piece++) {
        struct pair pair;
        pair_init(&pair, tls, context);
        pair.piece = piece;
        ck_assert(shake(&pair));
        converse(&pair);
        pair_fini(&pair);
    }
    SSL_CTX_free(context);
}
END_TEST

/* The first request comes with the last bytes of the handshake. */
START_TEST(test_request_behind_handshake)
{
    SSL_CTX *context = tls_client_context(TLS1_3_VERSION, TLS1_3_VERSION);
    struct pair pair;
    pair_init(&pair, tls, context);
    ck_assert_int_lt(SSL_do_handshake(pair.client.ssl), 1);
    carry(&pair);
    tls_client_hear(&pair.client, &pair.said);
    ck_assert_int_eq(SSL_do_handshake(pair.client.ssl), 1);
    ck_assert(!pair.is_up);
    say(&pair, "version\r\n", 9);
    ck_assert(pair.is_up);
    ck_assert_uint_eq(pair.heard.len, 9);
    pair_fini(&pair);
    SSL_CTX_free(context);
}
END_TEST

START_TEST(test_random_sizes)
{
    enum { ROUNDS = 200, BYTES_MAX = 70000 };
    SSL_CTX *context = tls_client_context(versions[_i], versions[_i]);
    uint64_t random = 7;
    char *bytes = malloc(BYTES_MAX);
    struct pair pair;
    for (size_t i = 0; i < BYTES_MAX; i++) {
        bytes[i] = (char)random_below(&random, 256);
    }
    pair_init(&pair, tls, context);
    ck_assert(shake(&pair));
    for (int i = 0; i < ROUNDS; i++) {
        size_t most = i % 3 == 0 ? 20 : BYTES_MAX;
        size_t len = 1 + (size_t)random_below(&random, most);
        pair.piece = 1 + (size_t)random_below(&random, 2 * len);
        buf_clear(&pair.heard);
        say(&pair, bytes, len);
        ck_assert_int_eq(pair.step, TLS_STEP_MORE);
        ck_assert_uint_eq(pair.heard.len, len);
        ck_assert_mem_eq(pair.heard.data, bytes, len);
        answer(&pair, bytes + BYTES_MAX - len, len);
    }
    pair_fini(&pair);
    free(bytes);
    SSL_CTX_free(context);
}
END_TEST

START_TEST(test_big_reply)
{
    enum { BIG = 10 << 20 };
    SSL_CTX *context = tls_client_context(0, 0);
    char *bytes = malloc(BIG);
    struct pair pair;
    memset(bytes, 'x', BIG);
    pair_init(&pair, tls, context);
    ck_assert(shake(&pair));
    ck_assert_int_eq(SSL_version(pair.client.ssl), TLS1_3_VERSION);
    answer(&pair, bytes, BIG);
    converse(&pair);
    pair_fini(&pair);
    free(bytes);
    SSL_CTX_free(context);
}
END_TEST

START_TEST(test_no_renegotiation)
{
    SSL_CTX *context = tls_client_context(TLS1_2_VERSION, TLS1_2_VERSION);
    struct pair pair;
    pair_init(&pair, tls, context);
    ck_assert(shake(&pair));
    ck_assert_int_eq(SSL_renegotiate(pair.client.ssl), 1);
    (void)SSL_do_handshake(pair.client.ssl);
    carry(&pair);
    ck_assert_int_eq(pair.step, TLS_STEP_MORE);
    ck_assert_uint_gt(pair.said.len, 0); /* an alert, and no ServerHello */
    ck_assert_uint_lt(pair.said.len, 50);
    tls_client_hear(&pair.client, &pair.said);
    ck_assert_int_lt(SSL_do_handshake(pair.client.ssl), 1);
    ck_assert_int_eq(
        ERR_GET_REASON(ERR_peek_last_error()), SSL_R_NO_RENEGOTIATION);
    pair_fini(&pair);
    SSL_CTX_free(context);
}
END_TEST

/* New keys as often as a client likes, behind which are requests; but not for
 * ever without any. */
START_TEST(test_key_updates)
{
    enum { ROUNDS = 3000, SENT_MAX = 80 << 10 };
    static const char request[] = "version\r\n";
    SSL_CTX *context = tls_client_context(TLS1_3_VERSION, TLS1_3_VERSION);
    struct pair pair;
    pair_init(&pair, tls, context);
    ck_assert(shake(&pair));
    for (int i = 0; i < ROUNDS; i++) {
        ck_assert_int_eq(
            SSL_key_update(pair.client.ssl, SSL_KEY_UPDATE_NOT_REQUESTED), 1);
        ck_assert_int_eq(SSL_write(pair.client.ssl, request, 9), 9);
        carry(&pair);
        ck_assert_int_eq(pair.step, TLS_STEP_MORE);
    }
    ck_assert_uint_eq(pair.heard.len, (size_t)ROUNDS * 9);
    size_t before = pair.sent;
    while (pair.step == TLS_STEP_MORE && pair.sent - before < SENT_MAX) {
        ck_assert_int_eq(
            SSL_key_update(pair.client.ssl, SSL_KEY_UPDATE_NOT_REQUESTED), 1);
        ck_assert_int_eq(SSL_do_handshake(pair.client.ssl), 1);
        carry(&pair);
    }
    ck_assert_int_eq(pair.step, TLS_STEP_FAILED);
    ck_assert_uint_eq(pair.heard.len, (size_t)ROUNDS * 9);
    pair_fini(&pair);
    SSL_CTX_free(context);
}
END_TEST

START_TEST(test_versions)
{
    struct tls_config config = tls_config_of(&files);
    config.min_version = TLS_VERSION_1_3;
    struct tls *newest = tls_of(&config);
    static const struct {
        int version;
        bool fits, fits_newest;
    } rows[] = {{TLS1_VERSION, false, false}, {TLS1_1_VERSION, false, false},
        {TLS1_2_VERSION, true, false}, {TLS1_3_VERSION, true, true}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        SSL_CTX *context =
            tls_client_context(rows[i].version, rows[i].version);
        struct pair pair;
        pair_init(&pair, tls, context);
        ck_assert_int_eq(shake(&pair), rows[i].fits);
        pair_fini(&pair);
        pair_init(&pair, newest, context);
        ck_assert_int_eq(shake(&pair), rows[i].fits_newest);
        pair_fini(&pair);
        SSL_CTX_free(context);
    }
    tls_destroy(&newest);
}
END_TEST

/* A byte that was changed on the way, in each place of a record. */
START_TEST(test_forged)
{
    SSL_CTX *context = tls_client_context(versions[_i], versions[_i]);
    size_t len = 1;
    for (size_t at = 0; at < len; at++) {
        struct pair pair;
        char *bytes;
        pair_init(&pair, tls, context);
        ck_assert(shake(&pair));
        ck_assert_int_eq(SSL_write(pair.client.ssl, "get a\r\n", 7), 7);
        len = (size_t)BIO_get_mem_data(pair.client.out, &bytes);
        bytes[at] ^= 1;
        carry(&pair);
        ck_assert_uint_eq(pair.heard.len, 0);
        if (at != 3 && at != 4) { /* its length: the rest is waited for */
            ck_assert_msg(pair.step == TLS_STEP_FAILED, "at %zu", at);
            ck_assert_ptr_nonnull(tls_stream_why(pair.stream));
            ck_assert(!tls_stream_write(pair.stream, "x", 1, &pair.said));
        }
        pair_fini(&pair);
    }
    ck_assert_uint_gt(len, 20);
    SSL_CTX_free(context);
}
END_TEST

START_TEST(test_ends)
{
    SSL_CTX *context = tls_client_context(versions[_i], versions[_i]);
    struct pair pair;
    char byte;
    pair_init(&pair, tls, context);
    tls_stream_shut(pair.stream, &pair.said); /* too early: nothing is said */
    ck_assert_uint_eq(pair.said.len, 0);
    ck_assert(shake(&pair));
    converse(&pair);
    SSL_shutdown(pair.client.ssl);
    carry(&pair);
    ck_assert_int_eq(pair.step, TLS_STEP_ENDED);
    answer(&pair, "END\r\n", 5); /* half closed */
    tls_stream_shut(pair.stream, &pair.said);
    size_t len = pair.said.len;
    ck_assert_uint_gt(len, 0);
    tls_stream_shut(pair.stream, &pair.said);
    ck_assert_uint_eq(pair.said.len, len); /* once */
    ck_assert(!tls_stream_write(pair.stream, "x", 1, &pair.said));
    tls_client_hear(&pair.client, &pair.said);
    int result = SSL_read(pair.client.ssl, &byte, 1);
    ck_assert_int_eq(
        SSL_get_error(pair.client.ssl, result), SSL_ERROR_ZERO_RETURN);
    pair_fini(&pair);
    SSL_CTX_free(context);
}
END_TEST

/* Whether a client gets in; cert: it has the server's own, which the CA file
 * allows, or another's. */
enum cert { NO_CERT, GOOD_CERT, BAD_CERT };

static bool
gets_in(struct tls *of, enum tls_use use, enum cert cert, int version)
{
    SSL_CTX *context = tls_client_context(version, version);
    struct tls_files other;
    struct pair pair;
    tls_files_init(&other, "other");
    if (cert != NO_CERT) {
        const struct tls_files *from = cert == GOOD_CERT ? &files : &other;
        ck_assert_int_eq(
            SSL_CTX_use_certificate_chain_file(context, from->chain), 1);
        ck_assert_int_eq(
            SSL_CTX_use_PrivateKey_file(context, from->key, SSL_FILETYPE_PEM),
            1);
    }
    pair_init(&pair, of, context);
    tls_stream_close(&pair.stream);
    ck_assert_int_eq(tls_stream_open(of, use, &pair.stream), 0);
    bool is_in = shake(&pair);
    if (is_in) {
        converse(&pair);
    }
    pair_fini(&pair);
    tls_files_fini(&other);
    SSL_CTX_free(context);
    return is_in;
}

START_TEST(test_verify)
{
    static const struct {
        enum tls_verify verify;
        enum tls_use use;
        bool gets_in[3]; /* by enum cert */
    } rows[] = {
        {TLS_VERIFY_NONE, TLS_USE_DEFAULT, {true, true, true}},
        {TLS_VERIFY_NONE, TLS_USE_KNOWN, {false, true, false}},
        {TLS_VERIFY_REQUEST, TLS_USE_DEFAULT, {true, true, false}},
        {TLS_VERIFY_REQUEST, TLS_USE_KNOWN, {false, true, false}},
        {TLS_VERIFY_REQUIRE, TLS_USE_DEFAULT, {false, true, false}},
        {TLS_VERIFY_REQUIRE, TLS_USE_ANYONE, {true, true, true}},
        {TLS_VERIFY_ONCE, TLS_USE_DEFAULT, {false, true, false}},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct tls_config config = tls_config_of(&files);
        config.ca = files.chain;
        config.verify = rows[i].verify;
        struct tls *of = tls_of(&config);
        for (int cert = NO_CERT; cert <= BAD_CERT; cert++) {
            bool is_in =
                gets_in(of, rows[i].use, (enum cert)cert, versions[_i]);
            ck_assert_msg(is_in == rows[i].gets_in[cert],
                "row %zu, certificate %d", i, cert);
        }
        tls_destroy(&of);
    }
}
END_TEST

/* The name in the certificate that a new connection sees. */
static void
sees(const char *name)
{
    SSL_CTX *context = tls_client_context(0, 0);
    char seen[100];
    struct pair pair;
    pair_init(&pair, tls, context);
    ck_assert(shake(&pair));
    X509 *cert = SSL_get1_peer_certificate(pair.client.ssl);
    X509_NAME_get_text_by_NID(
        X509_get_subject_name(cert), NID_commonName, seen, sizeof seen);
    ck_assert_str_eq(seen, name);
    X509_free(cert);
    pair_fini(&pair);
    SSL_CTX_free(context);
}

static void
reload_is(int wanted, const char *words)
{
    struct buf why = {0};
    ck_assert_int_eq(tls_reload(tls, &why), wanted);
    buf_add(&why, "", 1);
    ck_assert_msg(strstr(why.data, words) != NULL, "%s", why.data);
    buf_fini(&why);
}

START_TEST(test_reload)
{
    SSL_CTX *context = tls_client_context(0, 0);
    struct tls_files other;
    struct pair old;
    pair_init(&old, tls, context);
    ck_assert(shake(&old));
    sees("first");
    tls_make(&files, "second");
    sees("first"); /* not before it is told */
    reload_is(0, "");
    sees("second");
    tls_files_init(&other, "third");
    ck_assert_int_eq(rename(other.key, files.key), 0);
    reload_is(ERR_BAD_OPTION, "private key");
    sees("second");
    ck_assert_int_eq(truncate(files.chain, 10), 0);
    reload_is(ERR_BAD_OPTION, "bad certificate chain");
    ck_assert_int_eq(unlink(files.chain), 0);
    reload_is(ERR_BAD_OPTION, "cannot read the certificate chain");
    sees("second");
    converse(&old); /* of the first ones */
    pair_fini(&old);
    tls_files_fini(&other);
    SSL_CTX_free(context);
}
END_TEST

static void
is_refused(const struct tls_config *config, const char *words)
{
    struct buf why = {0};
    struct tls *none;
    ck_assert_int_eq(tls_create(config, &none, &why), ERR_BAD_OPTION);
    ck_assert_ptr_null(none);
    buf_add(&why, "", 1);
    ck_assert_msg(strstr(why.data, words) != NULL, "%s", why.data);
    ck_assert_ptr_null(strchr(why.data, '\n'));
    buf_fini(&why);
}

START_TEST(test_bad_files)
{
    struct tls_config good = tls_config_of(&files);
    struct tls_config config = good;
    config.chain = "/nowhere/cert.pem";
    is_refused(&config, "/nowhere/cert.pem: No such file");
    config = good;
    config.key = "/nowhere/key.pem";
    is_refused(&config, "/nowhere/key.pem: No such file");
    config.key = files.chain;
    is_refused(&config, "private key");
    config = good;
    config.key_is_der = true;
    is_refused(&config, "private key");
    config = good;
    config.ca = "/nowhere/ca.pem";
    is_refused(&config, "/nowhere/ca.pem");
    config.ca = files.key;
    is_refused(&config, "no certificate");
    config = good;
    config.ciphers = "NONSENSE";
    is_refused(&config, "NONSENSE");
    FILE *file = fopen(files.key, "w");
    EVP_PKEY *key = EVP_EC_gen("P-256");
    PEM_write_PrivateKey(file, key, EVP_aes_128_cbc(),
        (const unsigned char *)"word", 4, NULL, NULL);
    fclose(file);
    EVP_PKEY_free(key);
    is_refused(&good, "private key"); /* and nobody is asked for the word */
}
END_TEST

START_TEST(test_session_cache)
{
    struct tls_config config = tls_config_of(&files);
    config.caches_sessions = true;
    struct tls *caching = tls_of(&config);
    SSL_CTX *context = tls_client_context(TLS1_2_VERSION, TLS1_2_VERSION);
    SSL_SESSION *session = NULL;
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
    for (int i = 0; i < 2; i++) {
        struct pair pair;
        pair_init(&pair, caching, context);
        if (session != NULL) {
            SSL_set_session(pair.client.ssl, session);
        }
        ck_assert(shake(&pair));
        ck_assert_int_eq(SSL_session_reused(pair.client.ssl), i);
        ck_assert_uint_eq(
            tls_stream__new_sessions(pair.stream), (unsigned)(1 - i));
        converse(&pair);
        SSL_SESSION_free(session);
        session = SSL_get1_session(pair.client.ssl);
        /* the session of a connection that broke is not resumed */
        SSL_shutdown(pair.client.ssl);
        carry(&pair);
        tls_stream_shut(pair.stream, &pair.said);
        pair_fini(&pair);
    }
    SSL_SESSION_free(session);
    SSL_CTX_free(context);
    tls_destroy(&caching);
}
END_TEST

/* ---- the end that connects ---- */

/* Moves what one end has said to the other; false where that has failed. */
static bool
hand_over(struct buf *said, struct tls_stream *to, bool *is_up,
    struct buf *answers, struct buf *heard)
{
    enum tls_step step = *is_up ? TLS_STEP_DONE : TLS_STEP_MORE;
    char *copy = copy_of(said->len == 0 ? "" : said->data, said->len);
    if (said->len > 0) {
        tls_stream_put(to, copy, said->len);
    }
    buf_clear(said);
    if (!*is_up) {
        step = tls_stream_shake(to, answers);
        *is_up = step == TLS_STEP_DONE;
    }
    while (*is_up && step != TLS_STEP_MORE && step != TLS_STEP_FAILED) {
        size_t n;
        char *room = buf_reserve(heard, 1000);
        step = tls_stream_read(to, room, 1000, &n, answers);
        heard->len += n;
    }
    free(copy);
    return step != TLS_STEP_FAILED;
}

/* Both ends are ours: whether the word of each gets to the other. */
static bool
can_talk(struct tls *server_tls, struct tls *client_tls)
{
    struct tls_stream *server, *client;
    struct buf to_server = {0}, to_client = {0};
    struct buf server_heard = {0}, client_heard = {0};
    bool server_up = false, client_up = false, is_fine = true,
         has_said = false;
    ck_assert_int_eq(tls_stream_open(server_tls, TLS_USE_KNOWN, &server), 0);
    ck_assert_int_eq(tls_stream_open_client(client_tls, &client), 0);
    for (int i = 0; is_fine && i < 8; i++) {
        is_fine = hand_over(
            &to_client, client, &client_up, &to_server, &client_heard);
        is_fine = is_fine &&
            hand_over(
                &to_server, server, &server_up, &to_client, &server_heard);
        if (is_fine && server_up && client_up && !has_said) {
            ck_assert(tls_stream_write(server, "from a", 6, &to_client));
            ck_assert(tls_stream_write(client, "from b", 6, &to_server));
            has_said = true;
        }
    }
    bool is_heard = server_heard.len == 6 && client_heard.len == 6 &&
        memcmp(server_heard.data, "from b", 6) == 0 &&
        memcmp(client_heard.data, "from a", 6) == 0;
    ck_assert(is_fine == is_heard);
    tls_stream_close(&server);
    tls_stream_close(&client);
    buf_fini(&to_server);
    buf_fini(&to_client);
    buf_fini(&server_heard);
    buf_fini(&client_heard);
    return is_heard;
}

START_TEST(test_client)
{
    struct tls_files other;
    tls_files_init(&other, "other");
    struct tls_config config = tls_config_of(&files);
    config.ca = files.chain;
    struct tls *known = tls_of(&config);
    struct tls_config strange = tls_config_of(&other);
    strange.ca = files.chain; /* believes us, but is no one of ours */
    struct tls *stranger = tls_of(&strange);
    strange.ca = other.chain; /* nor does it believe us */
    struct tls *doubter = tls_of(&strange);

    ck_assert(can_talk(known, known));
    ck_assert(!can_talk(known, stranger));
    ck_assert(!can_talk(stranger, known));
    ck_assert(!can_talk(known, doubter));
    ck_assert(!can_talk(doubter, known));
    config.min_version = TLS_VERSION_1_3;
    struct tls *newest = tls_of(&config);
    ck_assert(can_talk(known, newest) && can_talk(newest, known));
    tls_destroy(&newest);
    tls_destroy(&known);
    tls_destroy(&stranger);
    tls_destroy(&doubter);
    tls_files_fini(&other);
}
END_TEST

START_TEST(test_hello)
{
    static const struct {
        const char *head;
        bool is_hello;
    } rows[] = {
        {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", true},
        {"\x16\x03\x03\x00\x04\x01\x00\x40\x00", true},
        {"\x16\x03\x01\x02\x00\x01\x00\x40\x01", false}, /* too long */
        {"\x16\x03\x01\x02\x00\x01\x01\x00\x00", false},
        {"\x16\x03\x01\x00\x03\x01\x00\x01\xfc", false}, /* cut */
        {"\x16\x03\x01\x02\x00\x02\x00\x01\xfc", false}, /* a ServerHello */
        {"\x16\x02\x01\x02\x00\x01\x00\x01\xfc", false},
        {"\x15\x03\x01\x02\x00\x01\x00\x01\xfc", false}, /* an alert */
        {"\x80\x2e\x01\x03\x01\x00\x15\x00\x00", false}, /* SSL 2 */
        {"version\r\n", false},
        {"GET / HTT", false},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        ck_assert_int_eq(
            tls__may_be_hello(rows[i].head, TLS_HELLO_HEAD), rows[i].is_hello);
    }
    /* as far as it has come */
    for (size_t n = 0; n < TLS_HELLO_HEAD; n++) {
        ck_assert(tls__may_be_hello(rows[0].head, n));
    }
    ck_assert(!tls__may_be_hello("mn\r\n", 4));
    ck_assert(!tls__may_be_hello("\n", 1));
    ck_assert(!tls__may_be_hello("\x15\x03\x03\x00\x02\x02\x28", 7));
    ck_assert(!tls__may_be_hello("\x16\x02", 2));
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_request_behind_handshake,
        test_big_reply, test_no_renegotiation, test_key_updates, test_versions,
        test_reload, test_bad_files, test_session_cache, test_client,
        test_hello};
    const TTest *const of_versions[] = {test_cut_everywhere, test_random_sizes,
        test_forged, test_ends, test_verify};
    TCase *tcase = tcase_create("tls");
    Suite *suite = suite_create("tls");
    for (size_t i = 0; i < COUNT_OF(tests); i++) {
        tcase_add_test(tcase, tests[i]);
    }
    for (size_t i = 0; i < COUNT_OF(of_versions); i++) {
        tcase_add_loop_test(tcase, of_versions[i], 0, (int)COUNT_OF(versions));
    }
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, HELP_TIMEOUT_S);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
