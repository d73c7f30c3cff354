/* SPDX-License-Identifier: BSD-3-Clause */
/* server/auth: the users' file, who is let in, reloads beside logins, and the
 * stop. */
#include "server/auth.h"

#include "base/err.h"
#include "server/auth_file.h"
#include "server/auth_hash.h"
#include "unit/check_help.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* "secret" and "other", by methods that are quick: SHA-256 with its least
 * rounds, and bcrypt with its least cost. */
#define SHA_SECRET                                                            \
    "$5$rounds=1000$saltsalt$"                                                \
    "eKLZU9t9OoPWrqOQsoTIKG0aYkZ5rGOoOQhiIvoSWX2"
#define BCRYPT_OTHER                                                          \
    "$2b$04$abcdefghijklmnopqrstuu0HtfOlPbTiymk5tcV.3TsFPDd3SYZqu"

static char path[] = "/tmp/tallyd-check-auth-XXXXXX";

static void
write_users(const char *text, size_t len, mode_t mode)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text, 1, len, file), len);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(chmod(path, mode), 0);
}

static void
set_up(void)
{
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

static void
tear_down(void)
{
    (void)unlink(path);
}

static int
parse(const char *text, struct auth_users *out, struct buf *why)
{
    buf_clear(why);
    int err = auth_file_parse(text, strlen(text), "users", out, why);
    buf_add(why, "", 1);
    ck_assert(!why->failed);
    return err;
}

START_TEST(test_good_files)
{
    struct auth_users users;
    struct buf why = {0};
    ck_assert_int_eq(parse("foo:bar", &users, &why), 0);
    ck_assert_uint_eq(users.n, 1);
    ck_assert_str_eq(users.user[0].user, "foo");
    ck_assert_str_eq(users.user[0].password, "bar");
    ck_assert_uint_eq(users.user[0].password_len, 3);
    ck_assert_int_eq(users.user[0].rank, ACCESS_WRITER);
    ck_assert_int_eq(
        parse("\n# all: of them\r\n\nfoo:b:a r \r\nread-only x:y\n"
              "hashed h:" SHA_SECRET "\nread-only hashed h:" SHA_SECRET "\n"
              "#a:b\nhashed:b\nhashed hashed:" BCRYPT_OTHER "\n",
            &users, &why),
        0);
    ck_assert_str_eq(why.data, "");
    ck_assert_uint_eq(users.n, 7);
    ck_assert_str_eq(users.user[0].password, "b:a r ");
    ck_assert_int_eq(users.user[1].rank, ACCESS_READER);
    ck_assert(!users.user[1].is_hashed);
    ck_assert(users.user[2].is_hashed);
    ck_assert_str_eq(users.user[2].hash, SHA_SECRET);
    ck_assert_int_eq(users.user[3].rank, ACCESS_READER);
    ck_assert(users.user[3].is_hashed);
    ck_assert_str_eq(users.user[4].user, "#a");
    ck_assert_str_eq(users.user[5].user, "hashed");
    ck_assert_uint_eq(users.n_hashed, 3);
    ck_assert_uint_eq(users.n_hashed_of_one, 2);
    buf_fini(&why);
}
END_TEST

START_TEST(test_bad_files)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"", "users: there is no user in it"},
        {"\n# nobody\n", "users: there is no user in it"},
        {"foo:bar\nfoo", "users:2: it should be user:password"},
        {":bar", "users:1: the user's name should be 1 to 255 bytes"},
        {"\n\nfoo:\n", "users:3: the password is empty"},
        {"foo:\r\n", "users:1: the password is empty"},
        {"foo:a\nhashed read-only b:c",
            "users:2: the user's name has a space or control character; "
            "words before it are \"read-only \" and \"hashed \", in this "
            "order"},
        {"a b:c", "users:1: the user's name has a space or"},
        {"hashed a:secret", "users:1: the hash is none that crypt(3) takes"},
        {"hashed a:$1$saltsalt$qjXMvbEw8oaL.CzflDtaK/",
            "users:1: the hash is none that crypt(3) takes"},
        {"hashed a:$y$j9T$abcdefghijkl", "users:1: the hash is none"},
    };
    struct auth_users users;
    struct buf why = {0};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        ck_assert_int_eq(parse(rows[i].text, &users, &why), ERR_BAD_FORMAT);
        ck_assert_msg(strncmp(why.data, rows[i].why, strlen(rows[i].why)) == 0,
            "'%s': %s", rows[i].text, why.data);
    }
    struct buf many = {0};
    for (int i = 0; i < AUTH_USERS_MAX; i++) {
        buf_addf(&many, "u%d:p\n", i);
    }
    ck_assert_int_eq(
        auth_file_parse(many.data, many.len, "users", &users, &why), 0);
    buf_add_text(&many, "one:more\n");
    ck_assert_int_eq(
        auth_file_parse(many.data, many.len, "users", &users, &why),
        ERR_BAD_FORMAT);
    buf_clear(&many);
    buf_add_text(&many, "u:");
    for (int i = 0; i < LOGIN_WORD_MAX; i++) {
        buf_add_text(&many, "p");
    }
    ck_assert_int_eq(
        auth_file_parse(many.data, many.len, "users", &users, &why), 0);
    buf_add_text(&many, "p");
    ck_assert_int_eq(
        auth_file_parse(many.data, many.len, "users", &users, &why),
        ERR_BAD_FORMAT);
    ck_assert_int_eq(
        auth_file_parse("a:b\0c", 5, "users", &users, &why), ERR_BAD_FORMAT);
    buf_fini(&many);
    buf_fini(&why);
}
END_TEST

static void
expect_unread(const char *words)
{
    struct auth_users *users = malloc(sizeof *users);
    struct buf why = {0};
    ck_assert_int_ne(auth_file_read(path, users, &why), 0);
    buf_add(&why, "", 1);
    ck_assert_msg(strstr(why.data, words) != NULL, "%s", why.data);
    buf_fini(&why);
    free(users);
}

START_TEST(test_modes)
{
    static const mode_t open_to_others[] = {
        0640, 0604, 0620, 0602, 0610, 0601, 0644, 0666};
    struct auth_users *users = malloc(sizeof *users);
    struct buf why = {0};
    for (size_t i = 0; i < COUNT_OF(open_to_others); i++) {
        write_users("a:b", 3, open_to_others[i]);
        expect_unread("chmod 600 ");
    }
    write_users("a:b", 3, 0400);
    ck_assert_int_eq(auth_file_read(path, users, &why), 0);
    static char big[AUTH_FILE_BYTES_MAX + 1];
    memset(big, '\n', sizeof big);
    memcpy(big, "a:b\n", 4);
    write_users(big, sizeof big - 1, 0600);
    ck_assert_int_eq(auth_file_read(path, users, &why), 0);
    write_users(big, sizeof big, 0600);
    expect_unread("longer than 64 KiB");
    ck_assert_int_eq(unlink(path), 0);
    expect_unread("cannot open ");
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    expect_unread(" is not a file");
    buf_fini(&why);
    free(users);
}
END_TEST

/* A login, and its end. */
struct asked {
    struct access_login login;
    sem_t done;
};

static void
on_done(struct access_login *login)
{
    sem_post(&((struct asked *)login)->done);
}

/* Asks, and waits where it must; whether it had to comes to *late. */
static enum access_rank
ask(struct auth *auth, const char *user, const char *password, bool *late)
{
    struct asked asked = {.login = {.done_fn = on_done,
                              .user_len = (uint8_t)strlen(user),
                              .password_len = (uint8_t)strlen(password)}};
    struct access *access = auth_access(auth);
    sem_init(&asked.done, 0, 0);
    memcpy(asked.login.user, user, strlen(user));
    memcpy(asked.login.password, password, strlen(password));
    *late = !access->check_fn(access, &asked.login);
    while (*late && sem_wait(&asked.done) != 0) {
    }
    sem_destroy(&asked.done);
    return asked.login.rank;
}

static struct auth *
created(const char *text)
{
    struct auth *auth = NULL;
    struct buf why = {0};
    write_users(text, strlen(text), 0600);
    int err = auth_create(path, true, &auth, &why);
    ck_assert_msg(err == 0, "%.*s", (int)why.len, why.data);
    buf_fini(&why);
    return auth;
}

START_TEST(test_plain)
{
    bool late;
    struct auth *auth = created("foo:bar\nfoo:old\nread-only bob:x\nb:x\n");
    static const struct {
        const char *user, *password;
        enum access_rank rank;
    } rows[] = {
        {"foo", "bar", ACCESS_WRITER},
        {"foo", "old", ACCESS_WRITER},
        {"bob", "x", ACCESS_READER},
        {"b", "x", ACCESS_WRITER},
        {"foo", "ba", ACCESS_NOBODY},
        {"foo", "barr", ACCESS_NOBODY},
        {"fo", "bar", ACCESS_NOBODY},
        {"fooo", "bar", ACCESS_NOBODY},
        {"foo", "x", ACCESS_NOBODY},
        {"bob", "bar", ACCESS_NOBODY},
        {"FOO", "bar", ACCESS_NOBODY},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        ck_assert_msg(
            ask(auth, rows[i].user, rows[i].password, &late) == rows[i].rank,
            "%s:%s", rows[i].user, rows[i].password);
        ck_assert(!late);
    }
    auth_destroy(&auth);
    ck_assert_ptr_null(auth);
}
END_TEST

START_TEST(test_hashed)
{
    bool late;
    struct auth *auth = created("hashed foo:" SHA_SECRET "\n"
                                "read-only hashed foo:" BCRYPT_OTHER "\n"
                                "plain:text\n");
    ck_assert_int_eq(ask(auth, "foo", "secret!", &late), ACCESS_NOBODY);
    ck_assert(late);
    ck_assert_int_eq(ask(auth, "foo", "secret", &late), ACCESS_WRITER);
    ck_assert(late);
    ck_assert_int_eq(ask(auth, "foo", "secret", &late), ACCESS_WRITER);
    ck_assert(!late); /* it is remembered */
    ck_assert_int_eq(ask(auth, "foo", "other", &late), ACCESS_READER);
    ck_assert(late);
    ck_assert_int_eq(ask(auth, "foo", "other", &late), ACCESS_READER);
    ck_assert(!late);
    ck_assert_int_eq(ask(auth, "nobody", "secret", &late), ACCESS_NOBODY);
    ck_assert(late); /* and as long as for a user that there is */
    ck_assert_int_eq(ask(auth, "plain", "text", &late), ACCESS_WRITER);
    ck_assert(!late);
    ck_assert_int_eq(ask(auth, "plain", "secret", &late), ACCESS_NOBODY);
    ck_assert_int_eq(ask(auth, "foo", SHA_SECRET, &late), ACCESS_NOBODY);
    auth_destroy(&auth);
}
END_TEST

static unsigned
reload(struct auth *auth, const char *text, mode_t mode)
{
    struct buf why = {0};
    unsigned n = 0;
    write_users(text, strlen(text), mode);
    int err = auth_reload(auth, &n, &why);
    ck_assert((err == 0) == (why.len == 0));
    buf_fini(&why);
    return err == 0 ? n : 0;
}

START_TEST(test_reload)
{
    bool late;
    struct auth *auth = created("hashed foo:" SHA_SECRET "\n");
    ck_assert_int_eq(ask(auth, "foo", "secret", &late), ACCESS_WRITER);
    ck_assert_uint_eq(
        reload(auth, "a:b\nhashed foo:" SHA_SECRET "\n", 0600), 2);
    ck_assert_int_eq(ask(auth, "a", "b", &late), ACCESS_WRITER);
    ck_assert_int_eq(ask(auth, "foo", "secret", &late), ACCESS_WRITER);
    ck_assert(!late); /* the same user: still remembered */
    ck_assert_uint_eq(
        reload(auth, "read-only hashed foo:" SHA_SECRET "\n", 0600), 1);
    ck_assert_int_eq(ask(auth, "foo", "secret", &late), ACCESS_READER);
    ck_assert(late);
    ck_assert_uint_eq(reload(auth, "c:d\n", 0644), 0);
    ck_assert_uint_eq(reload(auth, "c:d\ne\n", 0600), 0);
    ck_assert_uint_eq(reload(auth, "", 0600), 0);
    ck_assert_int_eq(ask(auth, "foo", "secret", &late), ACCESS_READER);
    ck_assert_int_eq(ask(auth, "c", "d", &late), ACCESS_NOBODY);
    ck_assert_uint_eq(reload(auth, "c:d\n", 0600), 1);
    ck_assert_int_eq(ask(auth, "foo", "secret", &late), ACCESS_NOBODY);
    ck_assert_int_eq(ask(auth, "c", "d", &late), ACCESS_WRITER);
    auth_destroy(&auth);
}
END_TEST

/* The pass of a login that must be let in. */
static uint64_t
pass_of(struct auth *auth, const char *user, const char *password)
{
    struct asked asked = {.login = {.done_fn = on_done,
                              .user_len = (uint8_t)strlen(user),
                              .password_len = (uint8_t)strlen(password)}};
    struct access *access = auth_access(auth);
    sem_init(&asked.done, 0, 0);
    memcpy(asked.login.user, user, strlen(user));
    memcpy(asked.login.password, password, strlen(password));
    bool late = !access->check_fn(access, &asked.login);
    while (late && sem_wait(&asked.done) != 0) {
    }
    sem_destroy(&asked.done);
    ck_assert_int_ne(asked.login.rank, ACCESS_NOBODY);
    ck_assert(access->stands_fn(access, asked.login.pass));
    return asked.login.pass;
}

/* Who is in stays so while the line is there by which he came. */
START_TEST(test_stands)
{
    struct auth *auth =
        created("a:b\na:c\nread-only b:b\nhashed foo:" SHA_SECRET "\n");
    struct access *access = auth_access(auth);
    uint64_t first = pass_of(auth, "a", "b");
    uint64_t second = pass_of(auth, "a", "c");
    uint64_t reader = pass_of(auth, "b", "b");
    uint64_t slow = pass_of(auth, "foo", "secret");
    ck_assert_uint_eq(pass_of(auth, "foo", "secret"), slow);
    ck_assert_uint_ne(first, second);
    ck_assert(!access->stands_fn(access, 0));
    ck_assert_uint_eq(
        reload(auth, "hashed foo:" SHA_SECRET "\na:b\nb:b\n", 0600), 3);
    ck_assert(access->stands_fn(access, first));
    ck_assert(access->stands_fn(access, slow));
    ck_assert(!access->stands_fn(access, second)); /* gone */
    ck_assert(!access->stands_fn(access, reader)); /* may do more now */
    ck_assert_uint_eq(reload(auth, "a:b\nbroken\n", 0600), 0);
    ck_assert(access->stands_fn(access, slow));
    ck_assert_uint_eq(
        reload(auth, "hashed foo:" BCRYPT_OTHER "\na:b\na:c\n", 0600), 3);
    ck_assert(!access->stands_fn(access, slow));   /* another hash */
    ck_assert(!access->stands_fn(access, second)); /* back, but not the same */
    ck_assert_uint_eq(pass_of(auth, "a", "b"), first);
    ck_assert_uint_eq(reload(auth, "read-only a:b\na:b\n", 0600), 2);
    ck_assert_uint_eq(pass_of(auth, "a", "b"), first); /* the better line */
    auth_destroy(&auth);
}
END_TEST

/* Of whose asker has gone no hash is made; all are answered. */
START_TEST(test_unwanted)
{
    enum { N = 10 };
    static struct asked asked[N];
    struct auth *auth = created("hashed foo:" SHA_SECRET "\n");
    struct access *access = auth_access(auth);
    for (int i = 0; i < N; i++) {
        asked[i].login = (struct access_login){.done_fn = on_done,
            .is_unwanted = i > 0,
            .user = "foo",
            .user_len = 3,
            .password = "secre?",
            .password_len = 6};
        asked[i].login.password[5] = i == N - 1 ? 't' : '!';
        sem_init(&asked[i].done, 0, 0);
        ck_assert(!access->check_fn(access, &asked[i].login));
    }
    for (int i = 0; i < N; i++) {
        while (sem_wait(&asked[i].done) != 0) {
        }
        ck_assert_int_eq(asked[i].login.rank, ACCESS_NOBODY);
        sem_destroy(&asked[i].done);
    }
    auth_destroy(&auth);
}
END_TEST

/* Logins of two addresses, in the order in which they are answered. */
struct crowd {
    sem_t begun, go, over;
    _Atomic unsigned n;
    uint64_t from[16];
};

static void
wait_for(sem_t *sem)
{
    while (sem_wait(sem) != 0) {
    }
}

static void
note_answer(struct access_login *login)
{
    struct crowd *crowd = login->owner;
    unsigned i = atomic_fetch_add(&crowd->n, 1);
    crowd->from[i] = login->from;
    if (i == 0) { /* the thread stands here */
        sem_post(&crowd->begun);
        wait_for(&crowd->go);
    }
    sem_post(&crowd->over);
}

/* Who comes last is not answered last, if others come from one address. */
START_TEST(test_fair)
{
    enum { N = 9, LATE = 2 };
    static struct access_login login[N];
    static const uint64_t order[N] = {1, 1, LATE, 1, 1, 1, 1, 1, 1};
    struct crowd crowd = {0};
    struct auth *auth = created("hashed foo:" SHA_SECRET "\n");
    struct access *access = auth_access(auth);
    sem_init(&crowd.begun, 0, 0);
    sem_init(&crowd.go, 0, 0);
    sem_init(&crowd.over, 0, 0);
    for (int i = 0; i < N; i++) {
        login[i] = (struct access_login){.done_fn = note_answer,
            .owner = &crowd,
            .from = i == N - 1 ? LATE : 1,
            .user = "foo",
            .user_len = 3,
            .password = "wrong",
            .password_len = 5};
        ck_assert(!access->check_fn(access, &login[i]));
        if (i == 0) {
            wait_for(&crowd.begun);
        }
    }
    sem_post(&crowd.go);
    for (int i = 0; i < N; i++) {
        wait_for(&crowd.over);
    }
    for (int i = 0; i < N; i++) {
        ck_assert_uint_eq(crowd.from[i], order[i]);
    }
    sem_destroy(&crowd.begun);
    sem_destroy(&crowd.go);
    sem_destroy(&crowd.over);
    auth_destroy(&auth);
}
END_TEST

enum { ASKERS = 4, ASKS = 20 };

static void *
run_asker(void *arg)
{
    struct auth *auth = arg;
    for (int i = 0; i < ASKS; i++) {
        bool late;
        ck_assert_int_eq(ask(auth, "a", "b", &late), ACCESS_WRITER);
        ck_assert_int_eq(ask(auth, "foo", "secret", &late), ACCESS_WRITER);
        if (i % 8 == 0) {
            ck_assert_int_eq(ask(auth, "foo", "nope", &late), ACCESS_NOBODY);
        }
    }
    return NULL;
}

/* Reloads beside logins: never is anybody wrongly let in or kept out. */
START_TEST(test_threads)
{
    static const char *const files[] = {"a:b\nhashed foo:" SHA_SECRET "\n",
        "hashed foo:" BCRYPT_OTHER "\nhashed foo:" SHA_SECRET "\na:b\n"};
    pthread_t askers[ASKERS];
    struct auth *auth = created(files[0]);
    for (int i = 0; i < ASKERS; i++) {
        ck_assert_int_eq(pthread_create(&askers[i], NULL, run_asker, auth), 0);
    }
    for (int i = 0; i < ASKS; i++) {
        ck_assert_uint_ne(reload(auth, files[i % 2], 0600), 0);
    }
    for (int i = 0; i < ASKERS; i++) {
        pthread_join(askers[i], NULL);
    }
    auth_destroy(&auth);
}
END_TEST

/* Every login is answered, those that wait at the stop and those after it. */
START_TEST(test_stop)
{
    enum { WAITING = 30 };
    static struct asked asked[WAITING];
    struct auth *auth = created("hashed foo:" SHA_SECRET "\n");
    struct access *access = auth_access(auth);
    bool late[WAITING];
    for (int i = 0; i < WAITING; i++) {
        asked[i].login = (struct access_login){.done_fn = on_done,
            .user = "foo",
            .user_len = 3,
            .password = "nope",
            .password_len = 4};
        sem_init(&asked[i].done, 0, 0);
        late[i] = !access->check_fn(access, &asked[i].login);
    }
    auth_stop(auth);
    for (int i = 0; i < WAITING; i++) {
        ck_assert(late[i]);
        ck_assert_int_eq(sem_trywait(&asked[i].done), 0);
        ck_assert_int_eq(asked[i].login.rank, ACCESS_NOBODY);
        sem_destroy(&asked[i].done);
    }
    ck_assert_int_eq(ask(auth, "foo", "nope", &late[0]), ACCESS_NOBODY);
    ck_assert(!late[0]);
    auth_destroy(&auth);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_good_files, test_bad_files, test_modes,
        test_plain, test_hashed, test_reload, test_stands, test_unwanted,
        test_fair, test_threads, test_stop};
    TCase *tcase = tcase_create("auth");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    for (size_t i = 0; i < COUNT_OF(tests); i++) {
        tcase_add_test(tcase, tests[i]);
    }
    return run_case("auth", tcase);
}
