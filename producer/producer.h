/*
 * producer.h - one librdkafka producer: idempotent, acks=all, murmur2 partitioner; with a transactional
 * id it is a relay's. Transaction calls are made with a timeout of -1 and repeated while the error is
 * retriable. After any error of a transaction the only thing to do is producer_close and a new one (R1).
 */
#ifndef FERMATA_PRODUCER_PRODUCER_H
#define FERMATA_PRODUCER_PRODUCER_H

#include "core/kafka.h"

struct producer;

/* Called from producer_poll, producer_wait and producer_commit, in the caller's thread, once a record:
 * error is NULL when Kafka acknowledged it at offset. */
typedef void producer_report(void *context, const struct outgoing *sent, int64_t offset,
                             const struct error *error);

struct producer_settings {
	const struct property *properties; /* the user's: kafka.PROP and kafka.producer.PROP */
	size_t properties_len;
	const char *client_id;
	const char *transactional_id; /* or NULL */
	size_t message_bytes;         /* largest record to write, key and headers included; 0: 16 MiB */
	size_t queue_bytes;           /* ceiling on what waits in the producer; 0: 32 MiB */
	int64_t delivery_timeout_ms;  /* 0: librdkafka's */
	producer_report *report;      /* or NULL; `sent` has only topic, partition and tag */
	void *report_context;
};

FM_MUSTCHECK enum fate producer_open(struct producer **ret_producer, const struct producer_settings *settings,
                                     struct error *error);
/* Throws away what was not delivered. At most a second or two. NULL is fine. */
void producer_close(struct producer *producer);

/* Asks for the metadata of one topic, so that the first produce does not wait a second. RETRY: no broker;
 * REJECT: the topic does not exist. ret_partitions may be NULL. */
FM_MUSTCHECK enum fate producer_warm(struct producer *producer, const char *topic, int timeout_ms,
                                     int32_t *ret_partitions, struct error *error);

/* Hands one record to librdkafka; copies everything. RETRY: the queue is full (poll or wait, then again).
 * REJECT with ERR_TOO_LARGE: larger than message_bytes. */
FM_MUSTCHECK enum fate producer_send(struct producer *producer, const struct outgoing *outgoing,
                                     struct error *error);
/* Serves reports for up to timeout_ms. */
void producer_poll(struct producer *producer, int timeout_ms);
/* Waits until everything sent has a report, at most timeout_ms. OK: all were acknowledged. Else the first
 * failure since the last wait: RETRY, or REJECT with ERR_TOO_LARGE when the broker found one too large. */
FM_MUSTCHECK enum fate producer_wait(struct producer *producer, int timeout_ms, struct error *error);

/* R1: fences an older producer of this id, finishes or aborts what it left open. RETRY after
 * patience_ms of retriable errors, so that the caller can look at its stop flag. */
FM_MUSTCHECK enum fate producer_init_transactions(struct producer *producer, int64_t patience_ms,
                                                  struct error *error);
FM_MUSTCHECK enum fate producer_begin(struct producer *producer, struct error *error);
/* Flushes and commits; OK only when every delivery report was good too. Anything else: the outcome is
 * unknown. ERR_FENCED, ERR_TOO_LARGE are told apart. */
FM_MUSTCHECK enum fate producer_commit(struct producer *producer, struct error *error);

#endif
