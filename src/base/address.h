/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_ADDRESS_H
#define BASE_ADDRESS_H

#include <stdbool.h>

enum {
    ADDRESS_MAX = 255,    /* bytes of HOST:PORT */
    ADDRESS_PORT_MAX = 5, /* digits of a port */
};

/* Takes HOST:PORT apart: a name or an address of 1 byte or more without white
 * space, in brackets where it has colons (of 2001:db8::7 nobody knows whether
 * 7 is a port), and a port of 1 to 65535. False where it is no such thing.
 * Pure. */
bool address_split(const char *address, char host[ADDRESS_MAX + 1],
    char port[ADDRESS_PORT_MAX + 1]);

#endif
