/*
 * dev_mock.h - librdkafka's mock cluster inside this process, for machines that have no Kafka. Groups, headers
 * and transactional calls work, from other processes too; but it lives in memory, shows the records of aborted
 * transactions and fences nobody: good to see the way of a session, nothing to rely on.
 */
#ifndef FERMATA_CLI_DEV_MOCK_H
#define FERMATA_CLI_DEV_MOCK_H

#include "core/memory.h"

struct mock;

/* One broker on a loopback port of its choosing. FATAL with ERR_SERVICE. */
FM_MUSTCHECK enum fate mock_start(struct mock **ret_mock, struct error *error);
/* HOST:PORT; lives as long as the mock. */
const char *mock_bootstrap(const struct mock *mock);
/* It answers no CreateTopics from outside. FATAL with ERR_SERVICE. */
FM_MUSTCHECK enum fate mock_create_topic(struct mock *mock, const char *name, int partitions,
                                         struct error *error);
/* NULL is fine. All that was written to it is gone. */
void mock_stop(struct mock *mock);

#endif
