/* SPDX-License-Identifier: BSD-3-Clause */
/* The order of the calls that a rig's store has made of its disk: what must be
 * durable before what. It is looked at once all is done, in the fake disk's
 * list of calls; files stay there with their bytes, also without a name. */
#include "unit/durable_help.h"

#include "cold/segment_head.h"
#include "wal/entry.h"
#include "wal/frame.h"
#include "wal/manifest.h"

#include <errno.h>
#include <string.h>

enum { FILES = 1 << 14 };

/* What is known of each file. */
struct order {
    bool is_log[FILES], is_checkpoint[FILES];
    bool dirty[FILES];       /* written, not synced */
    bool bad[FILES];         /* a write or a sync of it failed */
    bool lost[FILES];        /* a sync of it failed */
    bool removed[FILES];     /* it has no name any more, or was cut off */
    bool is_spoilt[FILES];   /* a manifest that a test has changed */
    bool is_named[FILES];    /* a segment that a manifest has named */
    uint64_t segment[FILES]; /* its number; 0: it is none */
    unsigned n;              /* files seen */
    /* What it was renamed to; "": nothing. */
    char name[FILES][FAKE_NAME_BYTES];
    bool manifest_floats; /* it may be the old one again after a power cut */
    unsigned n_manifests; /* so far */
    /* how many there will be with the first that may name the file; 0: unknown,
     * it is older than the first event */
    unsigned first_manifest[FILES];
};

/* Whether a later log file has been begun. */
static bool
is_followed(const struct order *order, unsigned file)
{
    for (unsigned i = file + 1; i < order->n; i++) {
        if (order->is_log[i]) {
            return true;
        }
    }
    return false;
}

static void
note_write(struct order *order, const struct fake_event *event)
{
    unsigned file = event->file;
    EXPECT(!order->bad[file], "a file is written after it failed");
    if (event->len == FRAME_BATCH_BYTES + ENTRY_MARK_BYTES &&
        is_followed(order, file)) {
        return; /* that says so */
    }
    order->is_log[file] = strncmp(event->name, "log-", 4) == 0;
    order->is_checkpoint[file] = strncmp(event->name, "checkpoint-", 11) == 0;
    for (unsigned i = 0; order->is_log[file] && i < order->n; i++) {
        EXPECT(i == file || !order->is_log[i] || !order->dirty[i] ||
                order->bad[i] || order->removed[i],
            "a log file gets data before the one before it is synced");
    }
    order->dirty[file] = true;
    order->bad[file] = event->err != 0;
}

/* Which of the segments seen so far a manifest names. */
static void
note_named(struct order *order, const uint8_t *bytes, size_t len)
{
    struct manifest manifest;
    manifest_init(&manifest);
    EXPECT(manifest_decode(bytes, len, &manifest) == 0,
        "a manifest that nobody can read");
    for (unsigned i = 0; i < order->n; i++) {
        if (order->segment[i] != 0 && !order->is_named[i]) {
            order->is_named[i] =
                segments_has_file(&manifest.segments, order->segment[i]);
        }
    }
    manifest_fini(&manifest);
}

/* May a file go while an older manifest may come back? A segment that no
 * manifest has named was given up before it was published; of other files it is
 * known that there was no manifest since they have their names. */
static bool
may_go(const struct order *order, const struct fake_event *event)
{
    unsigned file = event->file;
    if (strstr(event->name, ".new") != NULL ||
        strcmp(event->name, "ballast") == 0) {
        return true;
    }
    return order->segment[file] != 0
        ? !order->is_named[file]
        : order->first_manifest[file] > order->n_manifests;
}

static void
note_rename(
    struct rig *rig, struct order *order, const struct fake_event *event)
{
    bool is_manifest = strcmp(event->name, MANIFEST_NAME) == 0;
    bool is_new;
    if (!segment_name_parse(
            event->name, &order->segment[event->file], &is_new) ||
        is_new) {
        order->segment[event->file] = 0;
    }
    if (is_manifest && !order->is_spoilt[event->file]) {
        uint64_t len;
        const uint8_t *bytes = fake_disk_bytes(rig->fake, event->file, &len);
        note_named(order, bytes, len);
    }
    EXPECT(!order->dirty[event->file] && !order->bad[event->file],
        "%s gets its name before it is synced", event->name);
    for (unsigned i = 0; i < order->n; i++) {
        order->removed[i] |= strcmp(order->name[i], event->name) == 0;
    }
    memcpy(order->name[event->file], event->name, FAKE_NAME_BYTES);
    order->removed[event->file] = false;
    order->manifest_floats |= is_manifest;
    order->n_manifests += is_manifest;
    order->first_manifest[event->file] = order->n_manifests + 1;
    for (unsigned i = 0; is_manifest && i < order->n; i++) {
        EXPECT(!order->is_checkpoint[i] || !order->dirty[i] || order->bad[i],
            "a manifest before its images are synced");
    }
}

static void
note_event(
    struct rig *rig, struct order *order, const struct fake_event *event)
{
    EXPECT(event->file < FILES, "too many files");
    if (order->n <= event->file) {
        order->n = event->file + 1;
    }
    switch (event->call) {
    case FAKE_WRITE:
        note_write(order, event);
        break;
    case FAKE_SYNC:
        /* one that began before a write failed beside it may end after it */
        EXPECT(!order->lost[event->file], "%s is synced after it failed",
            event->name);
        order->lost[event->file] = event->err != 0;
        order->bad[event->file] |= event->err != 0;
        order->dirty[event->file] &= event->err != 0;
        break;
    case FAKE_TRUNCATE: /* by somebody else, where it has its name: a test */
        order->removed[event->file] |=
            event->err == 0 && order->name[event->file][0] != '\0';
        break;
    case FAKE_RENAME:
        note_rename(rig, order, event);
        break;
    case FAKE_SYNC_NAMES:
        order->manifest_floats &= event->err != 0;
        break;
    case FAKE_UNLINK:
        if (event->err == ENOENT) {
            break; /* there was none */
        }
        order->removed[event->file] |= event->err == 0;
        EXPECT(!order->manifest_floats || may_go(order, event),
            "%s goes before the manifest without it is durable", event->name);
        break;
    default:
        break;
    }
}

void
rig_expect_order(struct rig *rig)
{
    struct order *order = calloc(1, sizeof(*order));
    size_t n;
    const struct fake_event *event = fake_disk_events(rig->fake, &n);
    ck_assert_ptr_nonnull(order);
    /* whoever was before may not have come to it */
    order->manifest_floats = true;
    for (size_t i = rig->first_event; i < n; i++) {
        order->is_spoilt[event[i].file] |= event[i].call == FAKE_TRUNCATE &&
            strncmp(event[i].name, MANIFEST_NAME, strlen(MANIFEST_NAME)) == 0;
    }
    for (size_t i = rig->first_event; i < n; i++) {
        note_event(rig, order, &event[i]);
    }
    free(order);
}
