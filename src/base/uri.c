/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys of items in lines for people and programs: whatever bytes a key has, its
 * text is one word of printable ASCII (RFC 3986, section 2). */
#include "base/uri.h"

#include <ctype.h>
#include <string.h>

size_t
uri_encode(const char *bytes, size_t len, char *out)
{
    static const char digits[] = "0123456789ABCDEF";
    char *at = out;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (isalnum(c) || c == '-' || c == '.' || c == '_' || c == '~') {
            *at++ = (char)c;
        } else {
            *at++ = '%';
            *at++ = digits[c >> 4];
            *at++ = digits[c & 15];
        }
    }
    return (size_t)(at - out);
}

bool
uri_is_word(const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c <= ' ' || c == 0x7f) {
            return false;
        }
    }
    return len > 0;
}

size_t
uri_encode_word(const char *bytes, size_t len, char *out)
{
    if (!uri_is_word(bytes, len)) {
        return uri_encode(bytes, len, out);
    }
    memcpy(out, bytes, len);
    return len;
}
