/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes and reads Rice's code, with the low parts in front.
 *
 *   n numbers of k bits, then for each its upper part in unary: so many zeros
 *   and a one.
 *
 * The unary part is read a word at a time: the ones in it are numbers, the
 * zeros the sum of their upper parts. Whatever the bits are, nothing is read
 * behind the end and no more than n numbers are written. */
#include "cold/rice.h"

#include "base/assert.h"

/* How many k are looked at: the mean's, and those below it. */
enum { CHOICES = 3 };

/* The sums of the upper parts for k = top, top - 1 and so on, in one go: the
 * numbers are looked at once, and the sums do not wait for each other. No
 * number is more than n times the mean, whose length top is, so none of its
 * upper parts has more than 17 bits, and no sum wraps. */
static void
sum_uppers(const uint64_t *value, size_t n, unsigned top, uint64_t *sum)
{
    unsigned low = top < CHOICES - 1 ? 0 : top - (CHOICES - 1);
    uint64_t all[CHOICES] = {0};

    for (size_t i = 0; i < n; i++) {
        uint64_t upper = value[i] >> low;

        all[0] += upper;
        all[1] += upper >> 1;
        all[2] += upper >> 2;
    }
    for (unsigned i = 0; i < CHOICES && i <= top; i++) {
        sum[i] = all[top - low - i];
    }
}

/* The length of the mean of numbers, 63 at most. */
static unsigned
mean_bits(const uint64_t *value, size_t n)
{
    uint64_t sum = 0, all = 0;
    unsigned bits;

    for (size_t i = 0; i < n; i++) {
        all |= value[i];
        sum += value[i];
    }
    if (all >> 50 == 0) { /* no sum of 2^14 of these wraps */
        return bits_width(sum / n);
    }
    sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += value[i] >> 14;
    }
    bits = bits_width(sum / n) + 14;
    return bits < 63 ? bits : 63;
}

unsigned
rice_choose(const uint64_t *value, size_t n, uint64_t *cost_bits)
{
    uint64_t sum[CHOICES];
    unsigned top, best;

    ASSERT(n >= 1 && n <= RICE_MAX);
    top = mean_bits(value, n);
    sum_uppers(value, n, top, sum);
    best = top;
    ASSERT(top <= 63);
    *cost_bits = UINT64_MAX;
    /* the best is that of the mean times ln 2, or next to it */
    for (unsigned i = 0; i < CHOICES && i <= top; i++) {
        uint64_t cost = n * (uint64_t)(top - i + 1) + sum[i];

        if (cost >= *cost_bits) {
            break;
        }
        *cost_bits = cost;
        best = top - i;
    }
    ASSERT(*cost_bits >= n); /* a bit each, at least */
    return best;
}

void
rice_put(struct bits_out *out, const uint64_t *value, size_t n, unsigned k)
{
    ASSERT(k <= 63);
    for (size_t i = 0; i < n; i++) {
        bits_put(out, value[i] & bits_mask(k), k);
    }
    for (size_t i = 0; i < n; i++) {
        bits_put_unary(out, value[i] >> k);
    }
}

/* Moves in behind n low parts; *low is where they begin. */
static bool
pass_low(struct bits_in *in, size_t n, unsigned k, size_t *low)
{
    if (!bits_left(in, (uint64_t)n * (k + 1))) {
        return false;
    }
    *low = in->at;
    in->at += n * k;
    return true;
}

/* The bits from in on that are before its end; *n of them, 64 at most. */
static inline uint64_t
window(const struct bits_in *in, size_t *n)
{
    size_t left = in->end - in->at;
    uint64_t word;

    *n = left < 64 ? left : 64;
    if (left == 0) {
        return 0;
    }
    word = bits_peek(in->in, in->at);
    return left < 64 ? word & bits_mask((unsigned)left) : word;
}

bool
rice_get(struct bits_in *in, uint64_t *value, size_t n, unsigned k)
{
    uint64_t upper = 0, bad = 0, most;
    size_t low, done = 0, bits;

    ASSERT(k <= 63 && in->at <= in->end);
    if (!pass_low(in, n, k, &low)) {
        return false;
    }
    most = UINT64_MAX >> k;
    while (done < n) {
        uint64_t word = window(in, &bits);
        size_t used = 0;

        if (bits == 0) {
            return false;
        }
        while (word != 0 && done < n) {
            unsigned zeros = (unsigned)__builtin_ctzll(word);

            upper += zeros;
            bad |= upper > most;
            value[done] = upper << k | bits_number(in->in, low, k, done);
            done++;
            upper = 0;
            used += zeros + 1;
            word = zeros == 63 ? 0 : word >> (zeros + 1);
        }
        if (done < n) {
            upper += bits - used;
            used = bits;
        }
        in->at += used;
    }
    return bad == 0;
}

/* Moves in behind n ones. */
static bool
skip_unary(struct bits_in *in, size_t n)
{
    while (n > 0) {
        size_t bits;
        uint64_t word = window(in, &bits);
        unsigned ones = bits_ones(word);

        if (bits == 0) {
            return false;
        }
        if (ones < n) {
            n -= ones;
            in->at += bits;
            continue;
        }
        for (; n > 1; n--) {
            word &= word - 1;
        }
        in->at += (unsigned)__builtin_ctzll(word) + 1;
        n = 0;
    }
    return true;
}

bool
rice_skip(struct bits_in *in, size_t n, unsigned k)
{
    size_t low;

    return pass_low(in, n, k, &low) && skip_unary(in, n);
}

bool
rice_at(
    const struct bits_in *in, size_t n, unsigned k, size_t i, uint64_t *out)
{
    struct bits_in at = *in;
    uint64_t upper;
    size_t low, start;

    ASSERT(i < n);
    if (!pass_low(&at, n, k, &low) || !skip_unary(&at, i)) {
        return false;
    }
    start = at.at;
    if (!skip_unary(&at, 1)) {
        return false;
    }
    upper = at.at - start - 1;
    *out = upper << k | bits_number(in->in, low, k, i);
    return upper <= UINT64_MAX >> k;
}

/* How low parts are added up: as many as one load brings at a time, every other
 * one of them, in fields of 2k bits.
 *
 *   a load:       | 5  | 4  | 3  | 2  | 1  | 0  |
 *   is added to:  |    4    |    2    |    0    |
 *   and, moved:   |    5    |    3    |    1    |
 *
 * No field runs over: of the SUM_MAX numbers of a sum, a load brings 57 / k, so
 * that there are at most 2^k loads, and 128, and the last field, which may be
 * cut off, has at least k + 7 bits. */
enum { LOAD_BITS = 57, FIELD_K = LOAD_BITS / 2, SUM_MAX = 64 };

struct adder {
    unsigned k;
    unsigned n;           /* that one load brings; 0: they are added singly */
    uint64_t every_other; /* ones where numbers 0, 2, 4 and so on are */
};

static struct adder
adder_of(unsigned k)
{
    struct adder adder = {.k = k};

    if (k >= 1 && k <= FIELD_K) {
        adder.n = LOAD_BITS / k;
        for (unsigned i = 0; i < adder.n; i += 2) {
            adder.every_other |= bits_mask(k) << i * k;
        }
    }
    return adder;
}

/* Sum of n (1..SUM_MAX) numbers from bit `at` on. */
static inline uint64_t
sum_fields(const struct adder *adder, const uint8_t *in, size_t at, size_t n)
{
    uint64_t even = 0, odd = 0, sum = 0;
    unsigned k = adder->k;

    for (size_t left = n; left > 0; at += (size_t)adder->n * k) {
        size_t now = left < adder->n ? left : adder->n;
        uint64_t word = bytes_get_u64(in + at / 8) >> at % 8 &
            bits_mask((unsigned)now * k);

        even += word & adder->every_other;
        odd += word >> k & adder->every_other;
        left -= now;
    }
    for (unsigned i = 0; i < adder->n; i += 2) {
        sum += (even >> i * k & bits_mask(2 * k)) +
            (odd >> i * k & bits_mask(2 * k));
    }
    return sum;
}

/* Sum of low parts done..done+n-1 (n: 1..SUM_MAX); 2^64-1 where it would wrap.
 */
static inline uint64_t
sum_low(const struct adder *adder, const uint8_t *in, size_t low, size_t done,
    size_t n)
{
    unsigned k = adder->k;
    uint64_t mask = bits_mask(k);
    uint64_t sum = 0;
    size_t at = low + done * k;

    if (adder->n > 0) {
        return sum_fields(adder, in, at, n);
    }
    if (k == 0) {
        return 0;
    }
    if (k <= 57) {
        for (size_t i = 0; i < n; i++, at += k) {
            sum += bytes_get_u64(in + at / 8) >> at % 8 & mask;
        }
        return sum;
    }
    for (size_t i = 0; i < n; i++, at += k) {
        uint64_t part = bits_peek(in, at) & mask;

        sum = sum + part < sum ? UINT64_MAX : sum + part;
    }
    return sum;
}

/* Goes on from number *i, whose upper part has upper zeros before word, one by
 * one until the sum reaches target; false where word has no more. */
static bool
step(const struct bits_in *in, size_t low, unsigned k, uint64_t word,
    uint64_t upper, uint64_t target, size_t n, size_t *i, uint64_t *sum)
{
    while (word != 0 && *i < n) {
        unsigned zeros = (unsigned)__builtin_ctzll(word);
        uint64_t part;

        upper += zeros;
        if (upper > UINT64_MAX >> k) {
            *i = n;
            return true;
        }
        part = upper << k | bits_number(in->in, low, k, *i);
        if (part == UINT64_MAX || *sum + part + 1 < *sum) {
            *i = n;
            return true;
        }
        *sum += part + 1;
        if (*sum >= target) {
            return true;
        }
        ++*i;
        upper = 0;
        word = zeros == 63 ? 0 : word >> (zeros + 1);
    }
    return *i == n;
}

/* Goes on from number *i, whose upper part begins at mark->at. */
static bool
seek(const struct bits_in *in, size_t n, unsigned k,
    const struct rice_mark *mark, uint64_t target, size_t *i, uint64_t *sum)
{
    struct bits_in at = *in;
    struct adder adder = adder_of(k);
    uint64_t upper = 0; /* zeros of number *i that are behind us */
    size_t low;

    *sum = mark->sum;
    if (!pass_low(&at, n, k, &low) || !bits_left(&at, mark->at)) {
        return false;
    }
    at.at += mark->at;
    while (*i < n) {
        size_t bits;
        uint64_t word = window(&at, &bits);
        unsigned ones = bits_ones(word);
        uint64_t zeros, after;

        if (bits == 0) {
            return false;
        }
        if (ones == 0) {
            upper += bits;
            at.at += bits;
            continue;
        }
        /* The sum behind the last one of the word, if that is below target:
         * computed only where none of its parts can wrap. */
        zeros = upper + (unsigned)(64 - __builtin_clzll(word)) - ones;
        if (k < 40 && *i + ones <= n && target < UINT64_C(1) << 62 &&
            zeros < UINT64_C(1) << 20) {
            after = *sum + ones + (zeros << k) +
                sum_low(&adder, at.in, low, *i, ones);
            if (after < target) {
                *sum = after;
                *i += ones;
                upper = bits - (size_t)(64 - __builtin_clzll(word));
                at.at += bits;
                continue;
            }
        }
        if (step(&at, low, k, word, upper, target, n, i, sum)) {
            return true;
        }
        upper = bits - (size_t)(64 - __builtin_clzll(word));
        at.at += bits;
    }
    return true;
}

/* The same where the number is so near that one by one is best, and where no
 * sum on the way can wrap: k below NEAR_K, target below NEAR_TARGET, fewer than
 * NEAR_BITS bits. */
enum { NEAR_K = 40, NEAR_BITS = 1 << 20 };
#define NEAR_TARGET (UINT64_C(1) << 62)

static bool
seek_near(const struct bits_in *in, size_t n, unsigned k,
    const struct rice_mark *mark, uint64_t target, size_t *i, uint64_t *sum)
{
    struct bits_in at = *in;
    uint64_t mask = bits_mask(k);
    uint64_t total = mark->sum;
    uint64_t upper = 0; /* zeros of number *i that are behind us */
    size_t low;

    if (!pass_low(&at, n, k, &low) || !bits_left(&at, mark->at)) {
        return false;
    }
    at.at += mark->at;
    low += *i * k;
    while (*i < n) {
        size_t bits, used = 0;
        uint64_t word = window(&at, &bits);

        if (bits == 0) {
            return false;
        }
        for (; word != 0 && *i < n; ++*i, low += k) {
            unsigned zeros = (unsigned)__builtin_ctzll(word);
            uint64_t part = bytes_get_u64(at.in + low / 8) >> low % 8 & mask;

            total += ((upper + zeros) << k) + part + 1;
            if (total >= target) {
                *sum = total;
                return true;
            }
            upper = 0;
            used += zeros + 1;
            word = word >> zeros >> 1;
        }
        upper += bits - used;
        at.at += bits;
    }
    *sum = total;
    return true;
}

bool
rice_seek(const struct bits_in *in, size_t n, unsigned k, uint64_t target,
    size_t *i, uint64_t *sum)
{
    static const struct rice_mark begin;

    *i = 0;
    return seek(in, n, k, &begin, target, i, sum);
}

bool
rice_marks(
    const struct bits_in *in, size_t n, unsigned k, struct rice_mark *mark)
{
    struct bits_in at = *in;
    struct adder adder = adder_of(k);
    uint64_t sum = 0;
    size_t low, unary;

    ASSERT(k <= 63 && n <= RICE_MAX);
    if (!pass_low(&at, n, k, &low)) {
        return false;
    }
    unary = at.at;
    for (size_t done = 0; done + RICE_MARK <= n; done += RICE_MARK, mark++) {
        size_t begin = at.at;
        uint64_t zeros;

        if (!skip_unary(&at, RICE_MARK)) {
            return false;
        }
        zeros = at.at - begin - RICE_MARK;
        if (zeros > UINT64_MAX >> k ||
            __builtin_add_overflow(sum, zeros << k, &sum) ||
            __builtin_add_overflow(
                sum, sum_low(&adder, in->in, low, done, RICE_MARK), &sum) ||
            __builtin_add_overflow(sum, RICE_MARK, &sum)) {
            return false;
        }
        *mark = (struct rice_mark){sum, (uint32_t)(at.at - unary)};
    }
    return true;
}

bool
rice_seek_marked(const struct bits_in *in, size_t n, unsigned k,
    const struct rice_mark *mark, uint64_t target, size_t *i, uint64_t *sum)
{
    static const struct rice_mark begin;
    const struct rice_mark *from = mark;

    /* from becomes the first whose sum is not below target */
    for (size_t left = n / RICE_MARK; left > 0;) {
        size_t half = left / 2;

        if (from[half].sum < target) {
            from += half + 1;
            left -= half + 1;
        } else {
            left = half;
        }
    }
    *i = (size_t)(from - mark) * RICE_MARK;
    from = from == mark ? &begin : from - 1;
    return k < NEAR_K && target < NEAR_TARGET && in->end - in->at < NEAR_BITS
        ? seek_near(in, n, k, from, target, i, sum)
        : seek(in, n, k, from, target, i, sum);
}
