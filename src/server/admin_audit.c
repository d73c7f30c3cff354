/* SPDX-License-Identifier: BSD-3-Clause */
/* Logs what clients have done that cannot be undone, logins that failed, and
 * keys that look like a cell's, at the level that is always written. A flood
 * of them is limited as all lines are (base/log.h). */
#include "server/admin_priv.h"

#include "base/err.h"
#include "net/conn_list.h"

bool
admin__user(const struct server_admin *admin, uint64_t pass,
    char text[ADMIN__USER_BYTES])
{
    char name[LOGIN_WORD_MAX + 1];
    struct access *access = admin->access;
    if (access == NULL || access->name_fn == NULL ||
        !access->name_fn(access, pass, name)) {
        return false;
    }
    text[uri_encode(name, strlen(name), text)] = '\0';
    return true;
}

void
admin__audit(struct admin *seam, const struct session *session,
    enum audit kind, const char *text, size_t len)
{
    const struct server_admin *admin = admin__of(seam);
    char user[ADMIN__USER_BYTES];
    char addr[CONN_ADDR_BYTES];
    conn_list_peer_addr(session->peer, session->fd, addr);
    if (kind == AUDIT_REFUSED) {
        size_t n = len < LOGIN_WORD_MAX ? len : LOGIN_WORD_MAX;
        user[uri_encode(text, n, user)] = '\0';
        log_line(admin->logger, LOG_WARNING, "login failed: %s from %s", user,
            addr);
        return;
    }
    bool is_known = admin__user(admin, session->pass, user);
    const char *by = is_known ? " by " : "";
    const char *who = is_known ? user : "";
    if (kind == AUDIT_DROPPED) { /* lines are counted by their format */
        log_line(admin->logger, LOG_WARNING, "%.*s%s%s%s from %s", (int)len,
            text, ",", by, who, addr);
    } else {
        log_line(admin->logger, LOG_WARNING, "%.*s,%s%s from %s", (int)len,
            text, by, who, addr);
    }
}

void
admin__near(struct admin *seam, const struct session *session, int err,
    const char *key, size_t len)
{
    const struct server_admin *admin = admin__of(seam);
    char addr[CONN_ADDR_BYTES];
    conn_list_peer_addr(session->peer, session->fd, addr);
    log_line(admin->logger, LOG_WARNING, "%s %.*s, from %s: %s",
        admin->options->near_cells == OPTIONS_NEAR_CELLS_ERROR
            ? "refused the key"
            : "took for an item the key",
        (int)len, key, addr, err_text(err));
}
