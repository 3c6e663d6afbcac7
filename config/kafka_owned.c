/*
 * kafka_owned.c - the properties that would break a law of the protocol, each with its reason.
 *
 * What is left to the user although it touches the same ground: linger, batch and compression settings,
 * timeouts (a delivery that gives up is a failed transaction, which the ledger covers), session and poll
 * intervals, fetch sizes, transaction.timeout.ms, test.mock.*.
 */
#include "config/kafka_owned.h"

#include <string.h>
#include <strings.h>

const struct kafka_owned kafka_owned_table[] = {
	/* reading */
	{ "group.id", "the group is worker.group" },
	{ "enable.auto.commit auto.commit.enable auto.commit.interval.ms enable.auto.offset.store "
	  "offset.store.method offset.store.path offset.store.sync.interval.ms",
	  "positions are kept in PostgreSQL, in the transaction of what was read" },
	{ "auto.offset.reset", "an offset that is gone is an alarm, never a jump that loses records" },
	{ "isolation.level", "records of aborted transactions must not be seen" },
	{ "enable.partition.eof",
	  "the end of a partition must be known to judge early decisions and to read the ledger" },
	{ "partition.assignment.strategy", "every worker must assign alike, by range: cooperative assignors lose "
	                                   "partitions in some versions of librdkafka" },
	{ "group.instance.id",
	  "a worker is a member several times, and one name for all would shut the others out" },
	{ "check.crcs", "every record that is read is checked against its checksum" },
	{ "group.protocol group.protocol.type group.remote.assignor",
	  "assignment must be eager and by range, which is the classic protocol" },
	{ "allow.auto.create.topics", "topics need their settings: fermata topics create makes them" },
	/* writing */
	{ "transactional.id",
	  "it is made of worker.group, topic and partition, so that relays fence each other" },
	{ "enable.idempotence enable.gapless.guarantee",
	  "without it a retry could publish twice or out of order" },
	{ "max.in.flight.requests.per.connection max.in.flight message.send.max.retries retries",
	  "idempotence decides it" },
	{ "acks request.required.acks", "a record counts only when all replicas in sync have it (acks=all)" },
	{ "partitioner",
	  "the partition is that of Kafka's own clients (murmur2): it decides which relay publishes" },
	{ "queuing.strategy", "records must leave in their order" },
	{ "delivery.report.only.error produce.offset.report",
	  "a transaction is good only when every record was reported with its offset" },
	{ "message.max.bytes", "it follows from limits.record_bytes" },
	/* both */
	{ "metadata.broker.list", "it is another name of bootstrap.servers: write kafka.bootstrap.servers" },
	{ "builtin.features", "it can only be read" },
	{ "enabled_events enabled.events opaque log.queue default_topic_conf interceptors msg_order_cmp "
	  "partitioner_cb "
	  "ssl_certificate ssl_key ssl_ca ssl_engine_callback_data",
	  "it is a part of a program (a function or a handle) and no text" },
};

const size_t kafka_owned_table_len = sizeof(kafka_owned_table) / sizeof(kafka_owned_table[0]);

/* Is name one of the words? */
static bool is_among(const char *words, const char *name)
{
	size_t len = strlen(name);
	for (const char *at = words; *at != '\0'; at += strspn(at, " ")) {
		size_t word = strcspn(at, " ");
		if (word == len && strncasecmp(at, name, len) == 0)
			return true;
		at += word;
	}
	return false;
}

static bool ends_in(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);
	return len >= end_len && strcmp(text + (len - end_len), end) == 0;
}

const char *kafka_owned_reason(const char *name)
{
	for (size_t i = 0; i < kafka_owned_table_len; i++) {
		if (is_among(kafka_owned_table[i].names, name))
			return kafka_owned_table[i].reason;
	}
	if (ends_in(name, "_cb") || ends_in(name, ".cb"))
		return "it is a part of a program (a function or a handle) and no text";
	return NULL;
}

bool kafka_is_secret(const char *name)
{
	static const char *const words[] = { "password", "passphrase",  "secret",
		                                 "key.pem",  "private.key", "oauthbearer.config" };
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strstr(name, words[i]) != NULL)
			return true;
	}
	return false;
}
