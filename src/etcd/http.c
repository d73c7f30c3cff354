/* SPDX-License-Identifier: BSD-3-Clause */
/* A change must not be sent twice: the second one would find what the first has
 * done, and "no" would be said of something that is done. libcurl sends a
 * request again by itself where a connection that was used before turns out to
 * be closed. So a change has a connection of its own; and it goes to another
 * endpoint only where not a byte of it has left.
 *
 * That is so where libcurl got no connection, or ran out of time before it had
 * one; of everything else it is not known.
 *
 * What comes is handed on outside of libcurl's own callbacks, so that who is
 * told may begin and end calls. */
#include "etcd/http.h"

#include "base/assert.h"
#include "base/buf.h"
#include "base/err.h"

#include <curl/curl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STATUS_OK = 200, STATUS_SERVER = 500, PATH_ROOM = 64 };

struct http_call {
    CURL *easy; /* kept; NULL: was never used */
    char *body; /* NULL: nothing is under way */
    const char *path;
    bool is_change, is_stream;
    bool is_too_long;  /* what has come */
    unsigned endpoint; /* that it goes to */
    unsigned tries;    /* of endpoints; 0: could not be begun */
    struct curl_slist *headers;
    char why[CURL_ERROR_SIZE]; /* libcurl's own words */
    struct buf in;
};

struct http {
    uint32_t magic;
    struct transport transport;
    struct http_config config;
    struct transport_ears ears;
    CURLM *multi;
    unsigned endpoint; /* the one that answered last */
    struct http_call call[TRANSPORT_CALLS_MAX];
};

bool
http_is_endpoint(const char *url)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
        ".-_:[]";
    size_t at = strncmp(url, "http://", 7) == 0 ? 7
        : strncmp(url, "https://", 8) == 0      ? 8
                                                : 0;
    if (at == 0 || url[at] == '\0' || url[at] == ':' ||
        strlen(url) > HTTP_URL_MAX ||
        url[at + strspn(url + at, allowed)] != '\0') {
        return false;
    }
    CURLU *parsed = curl_url();
    bool is_right =
        parsed != NULL && curl_url_set(parsed, CURLUPART_URL, url, 0) == 0;
    curl_url_cleanup(parsed);
    return is_right;
}

static size_t
on_bytes(char *bytes, size_t size, size_t n, void *context)
{
    struct http_call *call = context;
    size_t len = size * n;
    if (call->in.len + len > TRANSPORT_LINE_MAX) {
        call->is_too_long = true;
        return 0; /* an error, which ends it */
    }
    buf_add(&call->in, bytes, len);
    return call->in.failed ? 0 : len;
}

static void
set_pem(CURL *easy, CURLoption option, const struct http_pem *pem)
{
    if (pem->len > 0) {
        struct curl_blob blob = {.data = (void *)(uintptr_t)pem->data,
            .len = pem->len,
            .flags = CURL_BLOB_NOCOPY};
        (void)curl_easy_setopt(easy, option, &blob);
    }
}

static void
set_tls(CURL *easy, const struct http_config *config)
{
    set_pem(easy, CURLOPT_CAINFO_BLOB, &config->ca);
    if (config->cert.len > 0) {
        (void)curl_easy_setopt(easy, CURLOPT_SSLCERTTYPE, "PEM");
        (void)curl_easy_setopt(easy, CURLOPT_SSLKEYTYPE, "PEM");
        set_pem(easy, CURLOPT_SSLCERT_BLOB, &config->cert);
        set_pem(easy, CURLOPT_SSLKEY_BLOB, &config->key);
    }
}

/* False where memory is out. */
static bool
set_call(struct http *http, struct http_call *call)
{
    char url[HTTP_URL_MAX + PATH_ROOM];
    CURL *easy = call->easy;
    curl_easy_reset(easy);
    (void)snprintf(url, sizeof url, "%s%s",
        http->config.endpoint[call->endpoint], call->path);
    bool is_right = curl_easy_setopt(easy, CURLOPT_URL, url) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_PROXY, "") == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") ==
            CURLE_OK;
    (void)curl_easy_setopt(easy, CURLOPT_PRIVATE, call);
    (void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(
        easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    (void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, call->headers);
    (void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, call->why);
    (void)curl_easy_setopt(easy, CURLOPT_POST, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDS, call->body);
    (void)curl_easy_setopt(
        easy, CURLOPT_POSTFIELDSIZE, (long)strlen(call->body));
    (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_bytes);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, call);
    (void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    (void)curl_easy_setopt(
        easy, CURLOPT_CONNECTTIMEOUT_MS, (long)http->config.timeout_ms);
    if (call->is_change) {
        (void)curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
        (void)curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
    }
    if (!call->is_stream) {
        (void)curl_easy_setopt(
            easy, CURLOPT_TIMEOUT_MS, (long)http->config.timeout_ms);
    }
    set_tls(easy, &http->config);
    return is_right;
}

/* False where it could not be begun. */
static bool
begin(struct http *http, struct http_call *call)
{
    buf_clear(&call->in);
    call->why[0] = '\0';
    call->is_too_long = false;
    if (call->easy == NULL) {
        call->easy = curl_easy_init();
    }
    return call->easy != NULL && call->headers != NULL &&
        set_call(http, call) &&
        curl_multi_add_handle(http->multi, call->easy) == CURLM_OK;
}

static void
end(struct http_call *call)
{
    free(call->body);
    call->body = NULL;
    curl_slist_free_all(call->headers);
    call->headers = NULL;
}

/* False where memory is out; *headers is whole or none. */
static bool
add_header(struct curl_slist **headers, const char *text)
{
    struct curl_slist *more = curl_slist_append(*headers, text);
    if (more == NULL) {
        curl_slist_free_all(*headers);
    }
    *headers = more;
    return more != NULL;
}

/* NULL where memory is out. */
static struct curl_slist *
headers_of(const char *token)
{
    struct curl_slist *headers = NULL;
    struct buf line = {0};
    if (add_header(&headers, "Content-Type: application/json") &&
        add_header(&headers, "Expect:") && token != NULL) {
        buf_addf(&line, "Authorization: %s", token);
        if (line.failed) {
            curl_slist_free_all(headers);
            headers = NULL;
        } else {
            (void)add_header(&headers, line.data);
        }
    }
    buf_fini(&line);
    return headers;
}

static struct http *
of_transport(struct transport *transport)
{
    struct http *http = (struct http *)(void *)((char *)transport -
        offsetof(struct http, transport));
    ASSERT(http->magic == HTTP_MAGIC);
    return http;
}

static void
http_post(struct transport *transport, const struct transport_post *post)
{
    struct http *http = of_transport(transport);
    ASSERT(post->call < TRANSPORT_CALLS_MAX && strlen(post->path) < PATH_ROOM);
    struct http_call *call = &http->call[post->call];
    ASSERT(call->body == NULL && post->body != NULL);
    call->body = post->body;
    call->path = post->path;
    call->is_change = post->is_change;
    call->is_stream = post->is_stream;
    call->headers = headers_of(post->token);
    call->endpoint = http->endpoint;
    call->tries = 1;
    if (!begin(http, call)) {
        call->tries = 0; /* http_turn tells of it */
    }
}

static void
http_cancel(struct transport *transport, unsigned number)
{
    struct http *http = of_transport(transport);
    struct http_call *call = &http->call[number];
    if (call->body != NULL) {
        (void)curl_multi_remove_handle(http->multi, call->easy);
        end(call);
    }
}

static const struct transport_calls http_calls = {
    .post = http_post, .cancel = http_cancel};

struct transport *
http_transport(struct http *http)
{
    return &http->transport;
}

int
http_create(struct http **out, const struct http_config *config,
    const struct transport_ears *ears)
{
    ASSERT(
        config->n_endpoints >= 1 && config->n_endpoints <= HTTP_ENDPOINTS_MAX);
    struct http *http = calloc(1, sizeof *http);
    if (http == NULL) {
        return ERR_NO_MEMORY;
    }
    *http = (struct http){.magic = HTTP_MAGIC,
        .transport = {.calls = &http_calls},
        .config = *config,
        .ears = *ears};
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        free(http);
        return ERR_SYSTEM;
    }
    http->multi = curl_multi_init();
    *out = http;
    if (http->multi == NULL) {
        http_destroy(out);
        return ERR_NO_MEMORY;
    }
    return 0;
}

void
http_destroy(struct http **out)
{
    struct http *http = *out;
    *out = NULL;
    if (http == NULL) {
        return;
    }
    for (unsigned i = 0; i < TRANSPORT_CALLS_MAX; i++) {
        http_cancel(&http->transport, i);
        curl_easy_cleanup(http->call[i].easy);
        buf_fini(&http->call[i].in);
    }
    (void)curl_multi_cleanup(http->multi);
    curl_global_cleanup();
    free(http);
}

void
http_wait(struct http *http, int fd, short events, int timeout_ms)
{
    struct curl_waitfd wait = {.fd = fd};
    /* its own names have poll's values, but need not */
    wait.events = (short)(((events & POLLIN) != 0 ? CURL_WAIT_POLLIN : 0) |
        ((events & POLLOUT) != 0 ? CURL_WAIT_POLLOUT : 0));
    (void)curl_multi_poll(http->multi, &wait, 1, timeout_ms, NULL);
}

static unsigned
number_of(const struct http *http, const struct http_call *call)
{
    return (unsigned)(call - http->call);
}

/* What a call comes to. */
static enum transport_outcome
outcome_of(const struct http_call *call, CURLcode code)
{
    long status = 0;
    curl_off_t us = 0;
    switch (code) {
    case CURLE_OK:
        (void)curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
        return status == STATUS_OK ? TRANSPORT_ANSWER : TRANSPORT_ERROR;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
        return TRANSPORT_UNSENT;
    case CURLE_OPERATION_TIMEDOUT:
        /* 0 on a connection that was used before, too: no change is */
        (void)curl_easy_getinfo(call->easy, CURLINFO_CONNECT_TIME_T, &us);
        return us == 0 ? TRANSPORT_UNSENT : TRANSPORT_UNSURE;
    default:
        return TRANSPORT_UNSURE;
    }
}

static bool
is_server_error(const struct http_call *call)
{
    long status = 0;
    (void)curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
    return status >= STATUS_SERVER;
}

/* A call that is over, and out of libcurl's hands; why: unless etcd has said
 * something. */
static void
tell(struct http *http, struct http_call *call, enum transport_outcome outcome,
    const char *why)
{
    struct buf in = call->in;
    bool is_stream = call->is_stream;
    call->in = (struct buf){0};
    end(call);
    if (is_stream && outcome != TRANSPORT_UNSENT) {
        outcome = TRANSPORT_UNSURE;
    }
    bool has_text = outcome == TRANSPORT_ANSWER || outcome == TRANSPORT_ERROR;
    const char *text = !has_text ? why : in.len > 0 ? in.data : "";
    http->ears.ended_fn(http->ears.context, number_of(http, call), outcome,
        text, has_text ? in.len : strlen(text));
    buf_fini(&in);
}

/* Of a call that etcd has not answered. */
static void
say_why(const struct http_call *call, CURLcode code,
    char why[TRANSPORT_WHY_MAX + 1])
{
    const char *text =
        call->why[0] != '\0' ? call->why : curl_easy_strerror(code);
    if (call->is_too_long) {
        (void)snprintf(why, TRANSPORT_WHY_MAX + 1,
            "an answer of more than %d KiB", TRANSPORT_LINE_MAX >> 10);
    } else {
        (void)snprintf(why, TRANSPORT_WHY_MAX + 1, "%s", text);
    }
}

static void
on_done(struct http *http, struct http_call *call, CURLcode code)
{
    char why[TRANSPORT_WHY_MAX + 1];
    enum transport_outcome outcome = outcome_of(call, code);
    bool is_failed = outcome == TRANSPORT_UNSENT ||
        outcome == TRANSPORT_UNSURE || is_server_error(call);
    (void)curl_multi_remove_handle(http->multi, call->easy);
    say_why(call, code, why);
    if (is_failed && call->endpoint == http->endpoint) {
        http->endpoint = (http->endpoint + 1) % http->config.n_endpoints;
    }
    if (outcome == TRANSPORT_UNSENT &&
        call->tries < http->config.n_endpoints) {
        call->tries++;
        call->endpoint = (call->endpoint + 1) % http->config.n_endpoints;
        if (begin(http, call)) {
            return;
        }
    }
    tell(http, call, outcome, why);
}

/* Hands on the whole lines of a stream, as long as it is not ended. */
static void
hand_on(struct http *http, struct http_call *call)
{
    size_t from = 0;
    struct buf in = call->in;
    call->in = (struct buf){0};
    while (call->body != NULL && call->in.data == NULL) {
        const char *end_of_line = from == in.len
            ? NULL
            : memchr(in.data + from, '\n', in.len - from);
        if (end_of_line == NULL) {
            break;
        }
        size_t len = (size_t)(end_of_line - in.data) - from;
        http->ears.line_fn(
            http->ears.context, number_of(http, call), in.data + from, len);
        from += len + 1;
    }
    if (call->body != NULL && call->in.data == NULL) {
        buf_consume(&in, from);
        call->in = in;
    } else {
        buf_fini(&in);
    }
}

void
http_turn(struct http *http)
{
    int n = 0;
    const CURLMsg *message;
    (void)curl_multi_perform(http->multi, &n);
    for (unsigned i = 0; i < TRANSPORT_CALLS_MAX; i++) {
        struct http_call *call = &http->call[i];
        if (call->body != NULL && call->tries == 0) {
            tell(http, call, TRANSPORT_UNSENT, "no memory");
        } else if (call->body != NULL && call->is_stream) {
            hand_on(http, call);
        }
    }
    while ((message = curl_multi_info_read(http->multi, &n)) != NULL) {
        struct http_call *call = NULL;
        CURLcode code = message->data.result;
        (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &call);
        ASSERT(call != NULL && call->body != NULL);
        on_done(http, call, code);
    }
}
