/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes the reading of what etcd answers. The first byte says of what the rest
 * is the answer; whatever it is, a state that is taken is one that a packet can
 * have. */
#include "base/assert.h"
#include "base/base64.h"
#include "etcd/keys.h"
#include "repl/control_frame.h"

#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

#define PREFIX "/tallyd/c/g/"

enum { ANSWERS = 6, KEYS = 7, VALUE_MAX = 3000, TEXT_MAX = 8192 };

static struct control_event event;

static void
read_state(const char *text, size_t len)
{
    char why[CONTROL_WHY_MAX + 1];
    memset(&event, 0, sizeof event);
    event.say = CONTROL_SAY_STATE;
    if (keys_read_state(PREFIX, text, len, &event.of.state, why)) {
        ASSERT(control_frame_is_right(&event));
    } else {
        ASSERT(strnlen(why, sizeof why) < sizeof why);
    }
}

/* The bytes are the value of a key, so that what is behind base64 is
 * reached. */
static void
read_value(unsigned which, const uint8_t *bytes, size_t len)
{
    static const char *const keys[KEYS] = {
        "epoch", "term", "primary", "voters", "order", "nodes/a", "x"};
    char key[64], key64[128] = "", value64[VALUE_MAX / 3 * 4 + 8] = "";
    char text[TEXT_MAX];
    len = len < VALUE_MAX ? len : VALUE_MAX;
    (void)snprintf(key, sizeof key, PREFIX "%s", keys[which % KEYS]);
    (void)base64_encode(key, strlen(key), key64);
    (void)base64_encode((const char *)bytes, len, value64);
    int n = snprintf(text, sizeof text,
        "{\"header\":{\"revision\":\"9\"},\"kvs\":[{\"key\":\"%s\","
        "\"mod_revision\":\"3\",\"value\":\"%s\"}]}",
        key64, value64);
    ASSERT(n > 0 && (size_t)n < sizeof text);
    read_state(text, (size_t)n);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    char why[CONTROL_WHY_MAX + 1], token[64];
    struct control_voters voters;
    uint64_t number;
    uint32_t ttl_s;
    bool is_done;
    if (len == 0) {
        return 0;
    }
    const char *text = (const char *)bytes + 1;
    size_t n = len - 1;
    switch (bytes[0] % ANSWERS) {
    case 0:
        read_state(text, n);
        break;
    case 1:
        read_value(bytes[0] / ANSWERS, bytes + 1, n);
        break;
    case 2:
        (void)keys_read_change(PREFIX, text, n, &is_done, &number, &voters);
        break;
    case 3:
        (void)keys_read_watch(text, n);
        break;
    case 4:
        (void)keys_is_refusal(text, n, why);
        (void)keys_is_no_lease(text, n);
        (void)keys_is_no_token(text, n);
        (void)keys_is_auth_off(text, n);
        break;
    default:
        (void)keys_read_grant(text, n, &number);
        (void)keys_read_alive(text, n, &ttl_s);
        if (keys_read_token(text, n, token, sizeof token - 1)) {
            ASSERT(token[0] != '\0' && strlen(token) < sizeof token);
        }
        break;
    }
    return 0;
}
