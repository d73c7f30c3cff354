/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes streams of TLS. The first byte of the input says how: the rest is what
 * comes first on a connection; or behind a real ClientHello; or, bare, behind a
 * handshake; or it is what a client says through TLS, and then the session
 * behind it must answer as it does without. How the bytes are cut follows from
 * their hash. */
#include "fuzz/fuzz_session.h"
#include "lib/tls_peer.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

enum how { FIRST, BEHIND_HELLO, BEHIND_HANDSHAKE, THROUGH, HOWS };

/* Made once: certificates, and both ends' contexts. */
struct ends {
    struct tls_files files;
    struct tls *tls;
    SSL_CTX *client;
};

static struct ends *
ends(void)
{
    static struct ends made;
    if (made.tls == NULL) {
        tls_files_init(&made.files, "fuzz");
        struct tls_config config = tls_config_of(&made.files);
        made.tls = tls_of(&config);
        made.client = tls_client_context(0, 0);
        tls_files_fini(&made.files);
    }
    return &made;
}

/* A server's stream, and what comes of it. */
struct end {
    struct tls_stream *stream;
    enum tls_step step;
    bool is_up;
    struct buf said;  /* for the client */
    struct buf heard; /* plain */
};

static void
put(struct end *end, const char *bytes, size_t len)
{
    enum { ROOM = 700 };
    size_t n;
    char *copy = malloc(len); /* a sanitizer sees a read past it */
    ASSERT(copy != NULL);
    memcpy(copy, bytes, len);
    tls_stream_put(end->stream, copy, len);
    if (!end->is_up) {
        end->step = tls_stream_shake(end->stream, &end->said);
        end->is_up = end->step == TLS_STEP_DONE;
    }
    while (end->is_up) {
        char *room = buf_reserve(&end->heard, ROOM);
        end->step = tls_stream_read(end->stream, room, ROOM, &n, &end->said);
        end->heard.len += n;
        if (end->step != TLS_STEP_DONE) {
            break;
        }
    }
    free(copy);
}

static bool
is_alive(const struct end *end)
{
    return end->step == TLS_STEP_MORE;
}

static void
put_cut(struct end *end, const char *bytes, size_t len, uint64_t *random)
{
    size_t at = 0;
    while (at < len && is_alive(end)) {
        size_t n = 1 + (size_t)(next_random(random) % (len - at));
        put(end, bytes + at, n);
        at += n;
    }
}

/* What the client has written goes to the server. */
static void
carry(struct tls_client *client, struct end *end, uint64_t *random)
{
    char *bytes;
    long len = BIO_get_mem_data(client->out, &bytes);
    if (len > 0) {
        put_cut(end, bytes, (size_t)len, random);
    }
    (void)BIO_reset(client->out);
    tls_client_hear(client, &end->said);
}

static void
shake(struct tls_client *client, struct end *end, uint64_t *random)
{
    while (SSL_do_handshake(client->ssl) != 1 || !end->is_up) {
        carry(client, end, random);
        ASSERT(is_alive(end));
    }
}

/* The replies to what is said through TLS are those to the same without. */
static void
talk(struct tls_client *client, struct end *end, const uint8_t *bytes,
    size_t len, uint64_t random)
{
    struct buf plain = {0};
    size_t at = 0;
    buf_clear(&end->heard);
    while (at < len) {
        size_t n = 1 + (size_t)(next_random(&random) % (len - at));
        ASSERT(SSL_write(client->ssl, bytes + at, (int)n) == (int)n);
        carry(client, end, &random);
        at += n;
    }
    ASSERT(end->heard.len == len);
    ASSERT(len == 0 || memcmp(end->heard.data, bytes, len) == 0);
    const struct manner manner = {
        .mark = DIALOG_MARK, .budget = DIALOG_BUDGET};
    hold(counters_world(), &manner, bytes, len, &plain);
    for (at = 0; at < plain.len;) {
        char got[1000];
        size_t n = plain.len - at;
        n = n < sizeof got ? n : sizeof got;
        ASSERT(tls_stream_write(end->stream, plain.data + at, n, &end->said));
        tls_client_hear(client, &end->said);
        ASSERT(SSL_read(client->ssl, got, (int)n) == (int)n);
        ASSERT(memcmp(got, plain.data + at, n) == 0);
        at += n;
    }
    buf_fini(&plain);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct ends *of = ends();
    struct end end = {.step = TLS_STEP_MORE};
    struct tls_client client;
    uint64_t random = hash_of(bytes, len);
    if (len == 0) {
        return 0;
    }
    enum how how = (enum how)(bytes[0] % HOWS);
    const uint8_t *rest = bytes + 1;
    len--;
    tls_client_init(&client, of->client);
    int err = tls_stream_open(of->tls, TLS_USE_DEFAULT, &end.stream);
    ASSERT(err == 0);
    if (how == BEHIND_HELLO) {
        (void)SSL_do_handshake(client.ssl);
        carry(&client, &end, &random);
    } else if (how != FIRST) {
        shake(&client, &end, &random);
    }
    if (how == THROUGH) {
        talk(&client, &end, rest, len, random);
    } else if (how != FIRST ||
        (len >= TLS_HELLO_HEAD &&
            tls__may_be_hello((const char *)rest, len))) {
        put_cut(&end, (const char *)rest, len, &random);
    }
    tls_stream_shut(end.stream, &end.said);
    tls_client_fini(&client);
    tls_stream_close(&end.stream);
    buf_fini(&end.said);
    buf_fini(&end.heard);
    return 0;
}
