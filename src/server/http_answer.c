/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds what a path stands for, and says it.
 *
 * A page of elsewhere that is open in a browser of this machine may have its
 * own name point here, and would read all of it as its own. So where only this
 * machine is to read it, a request must call the server by an address, or
 * localhost. */
#include "server/http_answer.h"

#include "base/clock.h"
#include "server/metrics.h"
#include "server/status_json.h"
#include "server/status_page.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

enum {
    STATUS_OK = 200,
    STATUS_FORBIDDEN = 403,
    STATUS_NOT_FOUND = 404,
    STATUS_NO_METHOD = 405,
    STATUS_NO_MEMORY = 500,
    STATUS_UNAVAILABLE = 503,
    HOST_BYTES = 64,
    US_PER_MS = 1000
};

static const char plain[] = "text/plain; charset=utf-8";

static void
say(struct http_answer *answer, unsigned status, const char *text)
{
    answer->status = status;
    answer->type = plain;
    buf_add_text(&answer->body, text);
    buf_add(&answer->body, "\n", 1);
}

static void
answer_livez(struct server_admin *admin, const struct http_request *request,
    struct http_answer *answer)
{
    (void)admin;
    (void)request;
    say(answer, STATUS_OK, "ok");
}

/* The first line is the state, and why. */
static void
answer_readyz(struct server_admin *admin, const struct http_request *request,
    struct http_answer *answer)
{
    struct figures figures = {.text = {{.data = NULL}}};
    struct health health;
    (void)request;
    (void)admin_gather(admin, &figures, FIGURES_GROUPS_HEALTH, &health);
    figures_fini(&figures);
    answer->status = health_is_ready(&health) ? STATUS_OK : STATUS_UNAVAILABLE;
    answer->type = plain;
    buf_add_text(&answer->body, health_word(health.state));
    for (unsigned i = 0; i < health.n; i++) {
        buf_add_text(&answer->body, i == 0 ? ": " : "");
        buf_add_text(&answer->body, health.problem[i]);
        buf_add_text(&answer->body, i + 1 < health.n ? "\n" : "");
    }
    buf_add(&answer->body, "\n", 1);
}

static void
answer_metrics(struct server_admin *admin, const struct http_request *request,
    struct http_answer *answer)
{
    struct figures figures = {.text = {{.data = NULL}}};
    struct health health;
    bool is_open = request->accept != NULL &&
        strstr(request->accept, "application/openmetrics-text") != NULL;
    enum metrics_form form = is_open ? METRICS_OPEN : METRICS_TEXT;
    (void)admin_gather(admin, &figures, FIGURES_GROUPS_METRICS, &health);
    answer->status = STATUS_OK;
    answer->type = metrics_content_type(form);
    metrics_put(form, &figures, &health, &answer->body);
    figures_fini(&figures);
}

static void
answer_status(struct server_admin *admin, const struct http_request *request,
    struct http_answer *answer)
{
    struct figures figures = {.text = {{.data = NULL}}};
    struct health health;
    (void)request;
    (void)admin_gather(admin, &figures, FIGURES_GROUPS_ALL, &health);
    answer->status = STATUS_OK;
    answer->type = "application/json";
    status_json_put(
        &figures, &health, clock_unix_us() / US_PER_MS, &answer->body);
    figures_fini(&figures);
}

static bool
answer_page(const char *path, struct http_answer *answer)
{
    size_t n;
    const struct status_page *pages = status_pages(&n);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(pages[i].path, path) == 0) {
            answer->status = STATUS_OK;
            answer->type = pages[i].type;
            answer->page = (const char *)pages[i].bytes;
            answer->page_len = pages[i].len;
            return true;
        }
    }
    return false;
}

/* path, who answers */
#define PATHS(X)                                                              \
    X("/livez", answer_livez)                                                 \
    X("/readyz", answer_readyz)                                               \
    X("/metrics", answer_metrics)                                             \
    X("/status.json", answer_status)

static void
answer_path(struct server_admin *admin, const struct http_request *request,
    struct http_answer *answer)
{
    static const struct {
        const char *path;
        void (*answer_fn)(struct server_admin *admin,
            const struct http_request *request, struct http_answer *answer);
    } paths[] = {
#define X(path, answer_fn) {path, answer_fn},
        PATHS(X)
#undef X
    };
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        if (strcmp(paths[i].path, request->path) == 0) {
            paths[i].answer_fn(admin, request, answer);
            return;
        }
    }
    if (!answer_page(request->path, answer)) {
        say(answer, STATUS_NOT_FOUND,
            "no such page; there are /, /metrics, /livez, /readyz and "
            "/status.json");
    }
}

/* True where a browser of this machine was told no other name than this
 * machine's: an address, or localhost, with or without a port. */
static bool
is_local(const char *host)
{
    char name[HOST_BYTES];
    struct in6_addr address;
    bool is_bracketed = host[0] == '[';
    host += is_bracketed;
    size_t len = strcspn(host, is_bracketed ? "]" : ":");
    if (len == 0 || len >= sizeof name) {
        return false;
    }
    memcpy(name, host, len);
    name[len] = '\0';
    return is_bracketed ? inet_pton(AF_INET6, name, &address) == 1
                        : inet_pton(AF_INET, name, &address) == 1 ||
            strcasecmp(name, "localhost") == 0;
}

void
http_answer(struct server_admin *admin, const struct http_request *request,
    struct http_answer *answer)
{
    bool reads = strcmp(request->method, "GET") == 0 ||
        strcmp(request->method, "HEAD") == 0;
    if (!reads) {
        say(answer, STATUS_NO_METHOD,
            "nothing can be changed here: GET and HEAD only");
        answer->allows = true;
    } else if (!request->is_public && request->host != NULL &&
        !is_local(request->host)) {
        say(answer, STATUS_FORBIDDEN,
            "call this server by its address or as localhost, or start it "
            "with --http-public");
    } else {
        answer_path(admin, request, answer);
    }
    if (answer->body.failed) {
        buf_fini(&answer->body);
        answer->status = STATUS_NO_MEMORY;
        answer->type = plain;
        answer->page = "out of memory\n";
        answer->page_len = strlen(answer->page);
    }
}
