/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks logins.
 *
 * A plain password is compared at once, with all users there are, all bytes
 * of the longest name and password that may be, and without a branch on what
 * is found: how long it takes says nothing.
 *
 * A hashed one takes crypt(3) some milliseconds, by design. A worker cannot
 * wait for that: one thread does it, one login after the other, fair by the
 * clients' addresses, and each connection has one login under way at most. So
 * that clients which connect anew for each request can live with it, the thread
 * remembers of each hashed user the last name and password that did fit, as 128
 * bits of two keyed hashes whose keys no one knows and the process forgets; the
 * same login is then answered at once. Whoever guesses gets only the slow way.
 * It is as long for a user that there is not: as many hashes are made for each
 * login as the user with the most of them has.
 *
 * Who is let in gets the pass of the line that did it. A line that is the same
 * in a file read again keeps its pass; others get new ones. So whether somebody
 * who is in would still be let in, and as the same, is whether there is a line
 * with that pass.
 *
 * The users are read under a lock by all threads, and changed under it by a
 * reload, and by what is remembered. */
#include "server/auth.h"

#include "base/assert.h"
#include "base/err.h"
#include "base/give_way.h"
#include "base/mutex.h"
#include "base/num.h"
#include "base/siphash.h"
#include "server/auth_file.h"
#include "server/auth_hash.h"
#include "server/auth_queue.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { TAGS = 2, HASH_NICE = 5 };

/* What a name and a password come to, under this process's keys. */
struct tag {
    uint64_t word[TAGS];
};

/* What is kept of a line of the users' file beside the user. */
struct line {
    struct tag fitted; /* the last login of a hashed one; all zero: none yet */
    uint64_t pass;     /* of those that it has let in; never used again */
};

enum { AUTH_MAGIC = 0x61757468 };

struct auth {
    struct access access; /* first: the seam */
    uint32_t magic;       /* AUTH_MAGIC */
    const char *path;
    uint8_t key[TAGS][SIPHASH_KEY_BYTES]; /* read-only */

    pthread_rwlock_t users_lock;
    struct auth_users *users; /* these four under users_lock */
    struct line *lines;       /* one a user */
    uint64_t reloads;         /* so that an older answer is known for one */
    uint64_t last_pass;

    struct mutex lock;
    pthread_cond_t wanted;
    struct auth_queue queue; /* these two under lock */
    bool must_stop;
    pthread_t thread;
};

/* All ones where they are the same, else 0, without a branch. */
static uint64_t
same_bytes(const char *a, const char *b, size_t len)
{
    unsigned differs = 0;
    for (size_t i = 0; i < len; i++) {
        differs |= (unsigned)((unsigned char)a[i] ^ (unsigned char)b[i]);
    }
    return 0 - (((uint64_t)differs - 1) >> 63);
}

static uint64_t
same_number(uint64_t a, uint64_t b)
{
    uint64_t differs = a ^ b;
    return ((differs | (0 - differs)) >> 63) - 1;
}

static uint64_t
same_user(const struct auth_user *user, const struct access_login *login)
{
    return same_bytes(user->user, login->user, sizeof user->user) &
        same_number(user->user_len, login->user_len);
}

static struct tag
tag_of(const struct auth *auth, const struct access_login *login)
{
    char both[sizeof login->user + sizeof login->password];
    struct tag tag;
    memcpy(both, login->user, sizeof login->user);
    memcpy(both + sizeof login->user, login->password, sizeof login->password);
    for (unsigned i = 0; i < TAGS; i++) {
        tag.word[i] = siphash(auth->key[i], both, sizeof both);
    }
    explicit_bzero(both, sizeof both);
    return tag;
}

/* All ones where a > b; both are small. */
static uint64_t
is_more(uint64_t a, uint64_t b)
{
    return 0 - ((b - a) >> 63);
}

/* Sets the login's rank, as far as that can be told at once, and its pass. */
static void
look(const struct auth *auth, struct access_login *login)
{
    const struct auth_users *users = auth->users;
    struct tag tag = tag_of(auth, login);
    uint64_t rank = ACCESS_NOBODY;
    uint64_t pass = 0;
    for (unsigned i = 0; i < users->n; i++) {
        const struct auth_user *user = &users->user[i];
        const struct tag *fitted = &auth->lines[i].fitted;
        uint64_t plain = same_user(user, login) &
            same_bytes(
                user->password, login->password, sizeof user->password) &
            same_number(user->password_len, login->password_len);
        uint64_t known = same_number(tag.word[0], fitted->word[0]) &
            same_number(tag.word[1], fitted->word[1]) & same_user(user, login);
        uint64_t better = (plain | known) & is_more(user->rank, rank);
        rank = (rank & ~better) | (user->rank & better);
        pass = (pass & ~better) | (auth->lines[i].pass & better);
    }
    login->rank = (enum access_rank)rank;
    login->pass = pass;
}

static struct auth *
auth_of(struct access *access)
{
    struct auth *auth = (struct auth *)access;
    ASSERT(auth->magic == AUTH_MAGIC);
    return auth;
}

static bool
check(struct access *access, struct access_login *login)
{
    struct auth *auth = auth_of(access);
    pthread_rwlock_rdlock(&auth->users_lock);
    look(auth, login);
    bool is_done = login->rank != ACCESS_NOBODY || auth->users->n_hashed == 0;
    pthread_rwlock_unlock(&auth->users_lock);
    if (is_done) {
        return true;
    }
    mutex_lock(&auth->lock);
    is_done = auth->must_stop;
    if (!is_done) {
        auth_queue_add(&auth->queue, login);
        pthread_cond_signal(&auth->wanted);
    }
    mutex_unlock(&auth->lock);
    return is_done;
}

/* What the thread takes along of one user, not to hold the lock. */
struct candidate {
    unsigned at;           /* among the users */
    enum access_rank rank; /* NOBODY: here for the time it takes only */
    uint64_t pass;
    char hash[AUTH_HASH_BYTES];
};

/* The hashes to be tried, n of them; returns the number of reloads so far. */
static uint64_t
choose(struct auth *auth, const struct access_login *login,
    struct candidate *out, unsigned *n)
{
    pthread_rwlock_rdlock(&auth->users_lock);
    const struct auth_users *users = auth->users;
    uint64_t reloads = auth->reloads;
    const struct auth_user *any = NULL;
    *n = 0;
    for (unsigned i = 0; i < users->n; i++) {
        const struct auth_user *user = &users->user[i];
        if (!user->is_hashed) {
            continue;
        }
        any = any == NULL ? user : any;
        if (same_user(user, login) != 0) {
            out[*n] = (struct candidate){
                .at = i, .rank = user->rank, .pass = auth->lines[i].pass};
            memcpy(out[(*n)++].hash, user->hash, sizeof user->hash);
        }
    }
    while (any != NULL && *n < users->n_hashed_of_one) {
        out[*n] = (struct candidate){.rank = ACCESS_NOBODY};
        memcpy(out[(*n)++].hash, any->hash, sizeof any->hash);
    }
    ASSERT(*n <= AUTH_USERS_MAX); /* there is room for so many */
    pthread_rwlock_unlock(&auth->users_lock);
    return reloads;
}

static void
remember(struct auth *auth, const struct access_login *login, unsigned at,
    uint64_t reloads)
{
    struct tag tag = tag_of(auth, login);
    pthread_rwlock_wrlock(&auth->users_lock);
    ASSERT(reloads <= auth->reloads);
    if (auth->reloads == reloads) {
        ASSERT(at < auth->users->n);
        auth->lines[at].fitted = tag;
    }
    pthread_rwlock_unlock(&auth->users_lock);
}

static bool
is_unwanted(struct access_login *login)
{
    /* relaxed: where it is seen late a hash is made in vain */
    return atomic_load_explicit(&login->is_unwanted, memory_order_relaxed);
}

static void
check_hashed(struct auth *auth, struct access_login *login,
    struct candidate *candidates)
{
    char password[LOGIN_WORD_MAX + 1];
    unsigned n;
    pthread_rwlock_rdlock(&auth->users_lock);
    look(auth, login); /* one before it may have been the same */
    pthread_rwlock_unlock(&auth->users_lock);
    if (login->rank != ACCESS_NOBODY) {
        return;
    }
    uint64_t reloads = choose(auth, login, candidates, &n);
    memcpy(password, login->password, login->password_len);
    password[login->password_len] = '\0';
    for (unsigned i = 0; i < n && !is_unwanted(login); i++) {
        const struct candidate *candidate = &candidates[i];
        if (auth_hash_fits(candidate->hash, password) &&
            candidate->rank > login->rank) {
            login->rank = candidate->rank;
            login->pass = candidate->pass;
            remember(auth, login, candidate->at, reloads);
        }
    }
    explicit_bzero(password, sizeof password);
}

/* The next login that waits; NULL: it is time to end. */
static struct access_login *
take_login(struct auth *auth)
{
    mutex_lock(&auth->lock);
    while (auth->queue.first == NULL && !auth->must_stop) {
        mutex_wait(&auth->lock, &auth->wanted);
    }
    struct access_login *login = auth_queue_take(&auth->queue);
    mutex_unlock(&auth->lock);
    return login;
}

static bool
is_stopping(struct auth *auth)
{
    mutex_lock(&auth->lock);
    bool stops = auth->must_stop;
    mutex_unlock(&auth->lock);
    return stops;
}

static void *
run(void *arg)
{
    static const size_t size = AUTH_USERS_MAX * sizeof(struct candidate);
    struct auth *auth = arg;
    ASSERT(auth->magic == AUTH_MAGIC);
    struct access_login *login;
    struct candidate *candidates = malloc(size);
    give_way_begin(HASH_NICE); /* wrong guesses are made by anybody */
    while ((login = take_login(auth)) != NULL) {
        if (candidates != NULL && !is_stopping(auth)) {
            check_hashed(auth, login, candidates);
        }
        login->done_fn(login);
    }
    free(candidates);
    return NULL;
}

/* The users of the file to *out, which is the caller's then. */
static int
load(const char *path, struct auth_users **out, struct line **lines,
    struct buf *why)
{
    *out = malloc(sizeof **out);
    *lines = calloc(AUTH_USERS_MAX, sizeof **lines);
    int err = *out == NULL || *lines == NULL ? ERR_NO_MEMORY : 0;
    if (err != 0) {
        buf_add_text(why, "out of memory");
    } else {
        err = auth_file_read(path, *out, why);
    }
    if (err != 0) {
        free(*out);
        free(*lines);
    }
    return err;
}

static void
free_users(struct auth_users *users, struct line *lines)
{
    explicit_bzero(users, sizeof *users);
    free(users);
    explicit_bzero(lines, AUTH_USERS_MAX * sizeof *lines);
    free(lines);
}

/* A pass of its own to each line that has none. */
static void
give_passes(
    struct auth *auth, const struct auth_users *users, struct line *lines)
{
    for (unsigned i = 0; i < users->n; i++) {
        lines[i].pass = lines[i].pass != 0 ? lines[i].pass : ++auth->last_pass;
    }
}

static bool
stands(struct access *access, uint64_t pass)
{
    struct auth *auth = auth_of(access);
    bool found = false;
    pthread_rwlock_rdlock(&auth->users_lock);
    for (unsigned i = 0; i < auth->users->n && !found; i++) {
        found = auth->lines[i].pass == pass;
    }
    pthread_rwlock_unlock(&auth->users_lock);
    return found;
}

static bool
name(struct access *access, uint64_t pass, char name[LOGIN_WORD_MAX + 1])
{
    struct auth *auth = auth_of(access);
    bool found = false;
    pthread_rwlock_rdlock(&auth->users_lock);
    for (unsigned i = 0; i < auth->users->n && !found; i++) {
        const struct auth_user *user = &auth->users->user[i];
        found = auth->lines[i].pass == pass;
        if (found) {
            memcpy(name, user->user, user->user_len);
            name[user->user_len] = '\0';
        }
    }
    pthread_rwlock_unlock(&auth->users_lock);
    return found;
}

/* Of an auth that has users and keys. */
static int
start(struct auth *auth, struct buf *why)
{
    pthread_rwlock_init(&auth->users_lock, NULL);
    mutex_init(&auth->lock);
    pthread_cond_init(&auth->wanted, NULL);
    auth->access.check_fn = check;
    auth->access.stands_fn = stands;
    auth->access.name_fn = name;
    if (pthread_create(&auth->thread, NULL, run, auth) != 0) {
        buf_addf(why, "logins: %s", err_text(ERR_NO_THREAD));
        pthread_cond_destroy(&auth->wanted);
        mutex_fini(&auth->lock);
        pthread_rwlock_destroy(&auth->users_lock);
        return ERR_NO_THREAD;
    }
    return 0;
}

int
auth_check(const char *path, struct buf *why)
{
    struct auth_users *users;
    struct line *lines;
    int err = load(path, &users, &lines, why);
    if (err == 0) {
        free_users(users, lines);
    }
    return err;
}

int
auth_create(
    const char *path, bool has_sasl, struct auth **out, struct buf *why)
{
    struct auth *auth = calloc(1, sizeof *auth);
    if (auth == NULL) {
        buf_add_text(why, "out of memory");
        return ERR_NO_MEMORY;
    }
    auth->magic = AUTH_MAGIC;
    auth->path = path;
    auth->access.has_sasl = has_sasl;
    int err = load(path, &auth->users, &auth->lines, why);
    if (err != 0) {
        goto err_after_calloc;
    }
    give_passes(auth, auth->users, auth->lines);
    if (getrandom(auth->key, sizeof auth->key, 0) != sizeof auth->key) {
        buf_addf(why, "no random numbers: %s", strerror(errno));
        err = ERR_SYSTEM;
        goto err_after_load;
    }
    err = start(auth, why);
    if (err != 0) {
        goto err_after_load;
    }
    *out = auth;
    return 0;

err_after_load:
    free_users(auth->users, auth->lines);
err_after_calloc:
    free(auth);
    return err;
}

void
auth_stop(struct auth *auth)
{
    mutex_lock(&auth->lock);
    bool was_told = auth->must_stop;
    auth->must_stop = true;
    pthread_cond_signal(&auth->wanted);
    mutex_unlock(&auth->lock);
    if (!was_told) {
        pthread_join(auth->thread, NULL);
    }
}

void
auth_destroy(struct auth **auth)
{
    struct auth *old = *auth;
    auth_stop(old);
    ASSERT(old->queue.first == NULL);
    pthread_cond_destroy(&old->wanted);
    mutex_fini(&old->lock);
    pthread_rwlock_destroy(&old->users_lock);
    free_users(old->users, old->lines);
    explicit_bzero(old, sizeof *old);
    free(old);
    *auth = NULL;
}

struct access *
auth_access(struct auth *auth)
{
    return &auth->access;
}

/* Where a line is the same what is known of it stays: the last login, and who
 * is in by it. */
static void
keep_lines(const struct auth *auth, const struct auth_users *users,
    struct line *lines)
{
    for (unsigned i = 0; i < users->n; i++) {
        for (unsigned k = 0; k < auth->users->n; k++) {
            if (memcmp(&users->user[i], &auth->users->user[k],
                    sizeof users->user[i]) == 0) {
                lines[i] = auth->lines[k];
            }
        }
    }
}

int
auth_reload(struct auth *auth, unsigned *n, struct buf *why)
{
    struct auth_users *users;
    struct line *lines;
    int err = load(auth->path, &users, &lines, why);
    if (err != 0) {
        return err;
    }
    pthread_rwlock_wrlock(&auth->users_lock);
    struct auth_users *old_users = auth->users;
    struct line *old_lines = auth->lines;
    keep_lines(auth, users, lines);
    give_passes(auth, users, lines);
    auth->users = users;
    auth->lines = lines;
    auth->reloads++;
    pthread_rwlock_unlock(&auth->users_lock);
    free_users(old_users, old_lines);
    *n = users->n;
    return 0;
}

void
auth_reload_said(struct auth *auth, struct logger *logger, const char *signal)
{
    struct buf why = {0};
    unsigned n;
    if (auth_reload(auth, &n, &why) != 0) {
        log_line(logger, LOG_ERROR, "%.*s; the users stay as before",
            (int)why.len, why.len == 0 ? "" : why.data);
    } else {
        log_line(logger, LOG_NOTICE, "%s: %u user%s in %s", signal, n,
            num_plural(n), auth->path);
    }
    buf_fini(&why);
}
