/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_LINK_HELP_H
#define UNIT_LINK_HELP_H

/* Nodes with logs, as far as a replication stream needs them: each batch has a
 * number and contents, and that of a term's first batch is its branch. */

#include "base/bytes.h"
#include "repl/link_primary.h"
#include "repl/link_replica.h"

#include "unit/stream_help.h"

enum { PEER_BATCHES = 4000, PEER_PAYLOAD = 8 };

struct peer {
    struct link_self self;
    struct link_directory directory;
    struct history history;
    uint64_t promised, term;
    bool is_primary;
    size_t n, n_synced, n_applied; /* of at */
    size_t n_gone;                 /* of at: no longer in its log */
    uint64_t committed;
    struct {
        uint64_t seq, content;
    } at[PEER_BATCHES];
};

static const struct link_directory link_directory = {
    .epoch = 0xe0, .seed = 0x5eed, .shards = 16};

static inline uint64_t
peer_seq(const struct peer *peer, size_t n)
{
    return n == 0 ? 0 : peer->at[n - 1].seq;
}

static inline uint64_t
peer_last(const struct peer *peer)
{
    return peer_seq(peer, peer->n);
}

static inline void
peer_write(struct peer *peer, uint64_t seq, uint64_t content)
{
    ck_assert_uint_lt(peer->n, PEER_BATCHES);
    if (seq_term(seq) > 0 && seq == seq_first(seq_term(seq))) {
        ck_assert(history_begin(
            &peer->history, seq_term(seq), content, peer_last(peer)));
    }
    peer->at[peer->n].seq = seq;
    peer->at[peer->n++].content = content;
    ck_assert(history_is_end(&peer->history, seq));
}

/* It has no more than n batches. */
static inline void
peer_cut(struct peer *peer, size_t n)
{
    peer->n = n;
    peer->n_synced = n < peer->n_synced ? n : peer->n_synced;
    peer->n_applied = n < peer->n_applied ? n : peer->n_applied;
    peer->n_gone = n < peer->n_gone ? n : peer->n_gone;
    peer->committed = link__earlier(peer->committed, peer_last(peer));
    history_cut(&peer->history, peer_last(peer));
}

static inline void
peer_begin(struct peer *peer, uint64_t content)
{
    uint64_t term = history_next_term(&peer->history, peer_last(peer));

    term = term > peer->promised ? term : peer->promised + 1;
    peer->promised = peer->term = term;
    peer->is_primary = true;
    peer_write(peer, seq_first(term), content);
}

static inline struct link_view
peer_view(const struct peer *peer)
{
    return (struct link_view){.directory = peer->directory,
        .term = peer->term,
        .history = &peer->history,
        .begin = peer_seq(peer, peer->n_gone),
        .written = peer_last(peer),
        .committed = peer->committed,
        .has_authority = true};
}

static inline struct link_node
peer_node(const struct peer *peer)
{
    return (struct link_node){.directory = peer->directory,
        .promised = peer->promised,
        .history = &peer->history,
        .written = peer_last(peer),
        .synced = peer_seq(peer, peer->n_synced),
        .applied = peer_seq(peer, peer->n_applied)};
}

static inline void
peer_init(
    struct peer *peer, const char *name, const struct proof_secret *secret)
{
    memset(peer, 0, sizeof *peer);
    peer->self = (struct link_self){.group = text_of("posts/0"),
        .name = text_of(name),
        .client = text_of("10.0.0.1:11211"),
        .secret = secret,
        .formats = {6, 7, 1},
        .timeout_us = 5000000};
}

/* The number of the batch behind seq; n where there is none. */
static inline size_t
peer_find(const struct peer *peer, uint64_t seq)
{
    size_t i = 0;

    while (i < peer->n && peer->at[i].seq <= seq) {
        i++;
    }
    return i;
}

/* Does what LINK_BATCHES asks for, with at most most batches; the length. */
static inline size_t
peer_put_batches(const struct peer *peer, struct link_primary *link,
    uint64_t behind, size_t most, uint64_t now_us, uint8_t *frame)
{
    struct link_view view = peer_view(peer);
    uint8_t *body = frame + STREAM_HEAD_BYTES + MESSAGE_NEWS_BYTES;
    size_t i = peer_find(peer, behind), len = 0, n = 0;

    ck_assert_uint_lt(i, peer->n);
    ck_assert_uint_ge(i, peer->n_gone);
    for (; i + n < peer->n && n < most; n++) {
        message_put_batch(body + len, peer->at[i + n].seq, PEER_PAYLOAD);
        bytes_put_u64(
            body + len + MESSAGE_BATCH_BYTES, peer->at[i + n].content);
        len += MESSAGE_BATCH_BYTES + PEER_PAYLOAD;
    }
    return link_primary_seal(
        link, &view, frame, len, peer->at[i + n - 1].seq, now_us);
}

#endif
