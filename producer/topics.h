/* topics.h - creates the topics of the contract, says where existing ones would break a promise, and deletes records. */
#ifndef FERMATA_PRODUCER_TOPICS_H
#define FERMATA_PRODUCER_TOPICS_H

#include "core/kafka.h"

struct topic_want {
	const char *name;
	int32_t partitions;
	const struct property *config; /* cleanup.policy, message.timestamp.type, retention.ms, ... */
	size_t config_len;
};

enum topic_result { TOPIC_CREATED, TOPIC_EXISTS, TOPIC_FAILED };

/* Creates those that are missing, all in one request; existing ones stay as they are. results has len
 * places; messages (len x 256 bytes) say why for TOPIC_FAILED. replication is -1 for the broker's default. */
FM_MUSTCHECK enum fate topics_create(const struct property *properties, size_t properties_len,
                                     const struct topic_want *wanted, size_t len, int16_t replication,
                                     int timeout_ms, enum topic_result *results, char (*messages)[256],
                                     struct error *error);

/* One setting of one existing topic ("message.timestamp.type") into cap bytes. REJECT: no such topic. */
FM_MUSTCHECK enum fate topics_setting(const struct property *properties, size_t properties_len,
                                      const char *topic, const char *setting, int timeout_ms, char *ret_value,
                                      size_t cap, struct error *error);

/* Deletes the records of a topic below an offset in each of its partitions, from 0 on; for good. */
FM_MUSTCHECK enum fate topics_trim(const struct property *properties, size_t properties_len,
                                   const char *topic, const int64_t *below, int32_t partitions,
                                   int timeout_ms, struct error *error);

#endif
