/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_OPTIONS_TYPE_H
#define SERVER_OPTIONS_TYPE_H

#include <stdbool.h>
#include <stdint.h>

/* What the columns of the option tables may say, and what each type of option
 * is in struct options; see server/options.h. */

/* What comes of an option. */
enum options_care {
    OPTIONS_CARE_MET,     /* it works */
    OPTIONS_CARE_IGNORED, /* it is checked, and shown in `stats settings` */
    OPTIONS_CARE_REFUSED  /* the server does not start */
};

/* How a name of -o may be written. */
enum options_form {
    OPTIONS_FORM_PLAIN = 1,
    OPTIONS_FORM_NEGATED = 2, /* with no_ before it */
    OPTIONS_FORM_EITHER = OPTIONS_FORM_PLAIN | OPTIONS_FORM_NEGATED
};

enum {
    OPTIONS_TEXT_BYTES = 1024, /* with the NUL */
    OPTIONS_HOST_BYTES = 256,  /* with the NUL */
    OPTIONS_LISTEN_MAX = 16,
    OPTIONS_HOT_MEMORY_MIN = 16 << 20,
    OPTIONS_NO_PORT = 0 /* an address without port: that of --port */
};

struct options_text {
    char text[OPTIONS_TEXT_BYTES]; /* "": not given */
};

/* What stands before an address where there is TLS. */
enum options_tls {
    OPTIONS_TLS_DEFAULT, /* nothing */
    OPTIONS_TLS_NOT,     /* notls: no TLS */
    OPTIONS_TLS_ANYONE,  /* btls: no certificate is asked for */
    OPTIONS_TLS_KNOWN    /* mtls: a client needs one */
};

struct options_address {
    char host[OPTIONS_HOST_BYTES]; /* "*": every address, of both families */
    int port;                      /* 1..65535 or OPTIONS_NO_PORT */
    int protocol; /* as of --protocol; OPTIONS_PROTOCOL_AUTO: that one */
    enum options_tls tls;
};

struct options_addresses {
    unsigned n;      /* 1..OPTIONS_LISTEN_MAX */
    bool is_default; /* nobody asked for these: one may be missing */
    struct options_address address[OPTIONS_LISTEN_MAX];
};

enum options_type {
    OPTIONS_TYPE_NUMBER,
    OPTIONS_TYPE_WHOLE, /* the same, where an int is too small */
    OPTIONS_TYPE_FRACTION,
    OPTIONS_TYPE_CHARACTER, /* the first of a text */
    OPTIONS_TYPE_ANY,       /* a text that is not kept */
    OPTIONS_TYPE_POWER_OF_TWO,
    OPTIONS_TYPE_COUNT, /* how often the option was given */
    OPTIONS_TYPE_OCTAL,
    OPTIONS_TYPE_BYTES,
    OPTIONS_TYPE_BYTES_OR_AUTO, /* "auto" is kept as what it stands for */
    OPTIONS_TYPE_MEGABYTES,     /* kept in bytes */
    OPTIONS_TYPE_CHOICE, /* one of the argument's words; kept as its place */
    OPTIONS_TYPE_FLAG,
    OPTIONS_TYPE_HELP,
    OPTIONS_TYPE_VERSION,
    OPTIONS_TYPE_LICENSE,
    OPTIONS_TYPE_EXTENDED, /* names of the second table, in a list */
    OPTIONS_TYPE_TEXT,
    OPTIONS_TYPE_PATH,
    OPTIONS_TYPE_DIRECTORY, /* a path, or "none" */
    OPTIONS_TYPE_LISTEN
};

/* What each type is in struct options. */
#define OPTIONS_AS_NUMBER int
#define OPTIONS_AS_WHOLE uint64_t
#define OPTIONS_AS_FRACTION double
#define OPTIONS_AS_CHARACTER char
#define OPTIONS_AS_ANY bool
#define OPTIONS_AS_POWER_OF_TWO int
#define OPTIONS_AS_COUNT int
#define OPTIONS_AS_OCTAL int
#define OPTIONS_AS_BYTES uint64_t
#define OPTIONS_AS_BYTES_OR_AUTO uint64_t
#define OPTIONS_AS_MEGABYTES uint64_t
#define OPTIONS_AS_CHOICE int
#define OPTIONS_AS_FLAG bool
#define OPTIONS_AS_HELP bool
#define OPTIONS_AS_VERSION bool
#define OPTIONS_AS_LICENSE bool
#define OPTIONS_AS_EXTENDED bool
#define OPTIONS_AS_TEXT struct options_text
#define OPTIONS_AS_PATH struct options_text
#define OPTIONS_AS_DIRECTORY struct options_text
#define OPTIONS_AS_LISTEN struct options_addresses

#endif
