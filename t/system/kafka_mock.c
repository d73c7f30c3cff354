/* SPDX-License-Identifier: BSD-3-Clause */
/* A broker of Kafka for tests of tallyq: the one that librdkafka has inside, in
 * a process of its own, with a topic "likes" of two partitions.
 *
 *   says                 HOST:PORT, at first
 *   put LEN, and LEN     a message for partition 1
 *   bytes behind it
 *   flush                all messages are there when it is answered
 *   down, up             its connections end, and it listens no more; it does
 *
 * Each line is answered "done", or with what is wrong. */
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMEOUT_MS = 100000, LINE_BYTES = 64, PARTITION = 1, BROKER = 1 };

static const char topic[] = "likes";

static rd_kafka_t *
start(void)
{
    static const char *const set[][2] = {{"bootstrap.servers", "none"},
        {"test.mock.num.brokers", "1"}, {"acks", "all"}, {"linger.ms", "0"},
        {"max.in.flight", "1"}, {"log_level", "0"}};
    char why[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) {
        if (rd_kafka_conf_set(conf, set[i][0], set[i][1], why, sizeof why) !=
            RD_KAFKA_CONF_OK) {
            (void)fprintf(stderr, "%s\n", why);
            exit(1);
        }
    }
    rd_kafka_t *handle =
        rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    if (handle == NULL) {
        (void)fprintf(stderr, "%s\n", why);
        exit(1);
    }
    return handle;
}

/* Reads a message and has it sent; NULL, or what is wrong. */
static const char *
put(rd_kafka_t *handle, size_t len)
{
    char *bytes = malloc(len + 1);
    if (bytes == NULL || fread(bytes, 1, len, stdin) != len) {
        free(bytes);
        return "no message";
    }
    rd_kafka_resp_err_t err =
        rd_kafka_producev(handle, RD_KAFKA_V_TOPIC(topic),
            RD_KAFKA_V_PARTITION(PARTITION), RD_KAFKA_V_VALUE(bytes, len),
            RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
    free(bytes);
    return err == 0 ? NULL : rd_kafka_err2str(err);
}

static const char *
obey(rd_kafka_t *handle, rd_kafka_mock_cluster_t *cluster, const char *line)
{
    size_t len = 0;
    rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR_NO_ERROR;
    if (sscanf(line, "put %zu", &len) == 1) {
        return put(handle, len);
    }
    if (strcmp(line, "flush\n") == 0) {
        err = rd_kafka_flush(handle, TIMEOUT_MS);
    } else if (strcmp(line, "down\n") == 0) {
        err = rd_kafka_mock_broker_set_down(cluster, BROKER);
    } else if (strcmp(line, "up\n") == 0) {
        err = rd_kafka_mock_broker_set_up(cluster, BROKER);
    } else {
        return "no such request";
    }
    return err == 0 ? NULL : rd_kafka_err2str(err);
}

int
main(void)
{
    char line[LINE_BYTES];
    rd_kafka_t *handle = start();
    rd_kafka_mock_cluster_t *cluster = rd_kafka_handle_mock_cluster(handle);
    if (cluster == NULL || rd_kafka_mock_topic_create(cluster, topic, 2, 1)) {
        return 1;
    }
    (void)printf("%s\n", rd_kafka_mock_cluster_bootstraps(cluster));
    (void)fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL) {
        const char *wrong = obey(handle, cluster, line);
        (void)printf("%s\n", wrong == NULL ? "done" : wrong);
        (void)fflush(stdout);
    }
    rd_kafka_destroy(handle);
    return 0;
}
