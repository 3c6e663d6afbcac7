#include "cli/dev_mock.h"

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <stdlib.h>

struct mock {
	rd_kafka_t *handle; /* the mock cluster runs on its threads */
	rd_kafka_mock_cluster_t *cluster;
};

enum fate mock_start(struct mock **ret_mock, struct error *error)
{
	char reason[256] = "out of memory";
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	struct mock *mock = calloc(1, sizeof(*mock));

	*ret_mock = NULL;
	rd_kafka_conf_set_log_cb(conf, NULL); /* it logs every connection that is closed */
	if (mock != NULL)
		mock->handle = rd_kafka_new(RD_KAFKA_PRODUCER, conf, reason, sizeof(reason));
	if (mock == NULL || mock->handle == NULL) {
		rd_kafka_conf_destroy(conf);
		free(mock);
		return error_set(error, FATE_FATAL, ERR_SERVICE, "cannot start the mock cluster: %s", reason);
	}
	mock->cluster = rd_kafka_mock_cluster_new(mock->handle, 1);
	if (mock->cluster == NULL) {
		mock_stop(mock);
		return error_set(error, FATE_FATAL, ERR_SERVICE, "cannot start the mock cluster of librdkafka");
	}
	*ret_mock = mock;
	return FATE_OK;
}

const char *mock_bootstrap(const struct mock *mock)
{
	return rd_kafka_mock_cluster_bootstraps(mock->cluster);
}

enum fate mock_create_topic(struct mock *mock, const char *name, int partitions, struct error *error)
{
	rd_kafka_resp_err_t code = rd_kafka_mock_topic_create(mock->cluster, name, partitions, 1);

	if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
		return error_set_native(error, FATE_FATAL, ERR_SERVICE, rd_kafka_err2name(code),
		                        "cannot create topic %s in the mock cluster: %s", name,
		                        rd_kafka_err2str(code));
	return FATE_OK;
}

void mock_stop(struct mock *mock)
{
	if (mock == NULL)
		return;
	if (mock->cluster != NULL)
		rd_kafka_mock_cluster_destroy(mock->cluster);
	rd_kafka_destroy(mock->handle);
	free(mock);
}
