/*
 * reader_inner.h - what the files of reader.h share. Not for other rooms.
 *
 *   reader.c        open and close: properties, callbacks
 *   reader_fetch.c  what is fetched and from where: start, pause, resume; the position of each partition
 *   reader_poll.c   what librdkafka says, turned into a reader_event
 *   reader_ask.c    questions to the broker: range, partitions, cluster id, offset at a time
 */
#ifndef FERMATA_CONSUMER_READER_INNER_H
#define FERMATA_CONSUMER_READER_INNER_H

#include "consumer/reader.h"

#include <librdkafka/rdkafka.h>
#include <stdatomic.h>

#define POSITION_UNKNOWN (-1) /* started at READER_BEGINNING, nothing seen yet */

/* A partition that is being fetched. */
struct fetched {
	const char *topic; /* interned */
	int32_t partition;
	int64_t position; /* the next offset that the caller has not seen, or POSITION_UNKNOWN */
	bool paused;
};

struct reader {
	rd_kafka_t *rk;
	rd_kafka_queue_t *queue; /* the consumer's, for reader_stop_waiting */
	atomic_bool woken;       /* by it; the queue's own mark is used up by the first look without waiting */
	bool in_group;

	char **names; /* interned topic names, freed with the reader */
	size_t names_len;

	/* What the group gave us, and what of it the caller has yet to be told. */
	struct partition_at *assignment;
	size_t assignment_len;
	bool tell_revoked;
	bool tell_assigned;
	bool told_assigned; /* the caller knows of an assignment that was not yet revoked */

	struct fetched *fetched;
	size_t fetched_len;
	size_t last;           /* index of the partition that the last record came from */
	int64_t restart_at_ms; /* when a partition that lost its beginning is started again; 0: none has */

	/* Errors that librdkafka reports beside the stream of records. */
	char down_reason[200];     /* the last thing that a connection said */
	struct error fault;        /* to be given out by the next poll; fate OK: none */
	int64_t fault_reported_ms; /* when the incident was last given out; 0: no incident */

	/* See reader_fetch.c, wake_fetchers. */
	bool needs_waking;
	size_t queue_bytes;
	size_t bytes_since_empty;
};

/* The reader's own copy of a topic's name; NULL when there is no memory. */
const char *reader_intern(struct reader *reader, const char *topic);
/* NULL when that partition is not being fetched. */
struct fetched *reader_find(struct reader *reader, const char *topic, int32_t partition);
/* Assigns all of reader->fetched at their positions; pauses those that are paused. */
enum fate reader_refetch(struct reader *reader, struct error *error);
/* Forgets what was fetched, after librdkafka has dropped it. */
void reader_forget(struct reader *reader);
/* Called when a poll found the queue empty. */
void reader_wake_fetchers(struct reader *reader);

/* librdkafka's callbacks; they run inside of rd_kafka_consumer_poll, in the caller's thread. */
void reader_on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *parts,
                         void *opaque);
void reader_on_error(rd_kafka_t *rk, int err, const char *reason, void *opaque);

#endif
