/* SPDX-License-Identifier: BSD-3-Clause */
/* HOST:PORT, taken apart. */
#include "base/address.h"

#include "base/num.h"

#include <string.h>

enum { PORT_MAX = 65535 };

bool
address_split(const char *address, char host[ADDRESS_MAX + 1],
    char port[ADDRESS_PORT_MAX + 1])
{
    const char *colon = strrchr(address, ':');
    uint32_t number;
    if (colon == NULL || strlen(address) > ADDRESS_MAX) {
        return false;
    }
    size_t host_len = (size_t)(colon - address);
    size_t port_len = strlen(colon + 1);
    if (port_len > ADDRESS_PORT_MAX ||
        !num_parse_u32(colon + 1, port_len, &number) || number == 0 ||
        number > PORT_MAX) {
        return false;
    }
    if (address[0] == '[') {
        if (host_len < 2 || address[host_len - 1] != ']') {
            return false;
        }
        address++;
        host_len -= 2;
    } else if (memchr(address, ':', host_len) != NULL) {
        return false; /* an IPv6 address, perhaps one without a port */
    }
    if (host_len == 0) {
        return false;
    }
    for (size_t i = 0; i < host_len; i++) {
        if ((unsigned char)address[i] <= ' ' || address[i] == '[' ||
            address[i] == ']' || address[i] == 0x7f) {
            return false;
        }
    }
    memcpy(host, address, host_len);
    host[host_len] = '\0';
    memcpy(port, colon + 1, port_len + 1);
    return true;
}
