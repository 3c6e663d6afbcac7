/*
 * kafka.h - what the reading half (consumer/) and the writing half (producer/) say to the others.
 * No type of librdkafka leaves those two rooms.
 */
#ifndef FERMATA_CORE_KAFKA_H
#define FERMATA_CORE_KAFKA_H

#include "core/records.h"

/* One property for librdkafka, as the configuration gives it ("kafka.PROP" without the prefix). */
struct property {
	const char *name;
	const char *value;
};

struct header {
	const char *name;
	struct view value; /* data NULL: a header without a value */
};

/* A record as it was read. key and value borrow from the message until record_done; data == NULL is
 * Kafka's null, an empty value has data != NULL. */
struct record {
	struct coordinates at;
	struct view key;
	struct view value;
	void *message; /* the reader's own; NULL once it is done */
};

/* A record to be written. Everything is copied by the producer. */
struct outgoing {
	const char *topic;
	int32_t partition; /* or PARTITION_BY_KEY */
	struct view key;
	struct view value; /* data NULL: null (a tombstone) */
	const struct header *headers;
	size_t headers_len;
	int64_t timestamp_us; /* or TIME_NONE: now */
	void *tag;            /* handed to the report callback */
};

#define PARTITION_BY_KEY (-1)

/* The partition that Kafka's Java client gives a key: murmur2(key) with the sign bit off, modulo count.
 * Source: org.apache.kafka.common.utils.Utils.murmur2 and BuiltInPartitioner. A null key is 0 here. */
int32_t kafka_partition(struct view key, int32_t count);

#endif
