/*
 * scan.h - topics read once from where they begin (or from anywhere) to where they end now, by a reader of its own and
 * without a group: for those who look at what the topics hold (rebuild, replay, dead letters that are there already).
 */
#ifndef FERMATA_WORKER_SCAN_H
#define FERMATA_WORKER_SCAN_H

#include "config/config.h"
#include "consumer/reader.h"

struct scan_part {
	const char *topic; /* the caller's */
	int32_t partition;
	int64_t low; /* the first offset that is still there */
	int64_t from;
	int64_t until;    /* read up to here */
	int64_t position; /* how far it is */
	int64_t first_at; /* the time of the first record that was read; TIME_NONE: none was */
	bool done;
};

typedef enum fate scan_each(void *context, const struct scan_part *part, const struct record *record,
                            struct error *error);

struct scan {
	const struct config *config;
	struct reader *reader;
	struct scan_part *parts;
	size_t len;
	bool first_only; /* one record of each partition is enough */
	/* Called with every record, which is the scan's. */
	scan_each *each; /* or NULL */
	/* Called many times a second; true: the scan is to end, with RETRY and ERR_STALE. */
	bool (*stop)(void *context); /* or NULL */
	void *context;
};

/* Zeros but for the callbacks come in. record_bytes: the largest record to expect. FATAL: a property of librdkafka. */
FM_MUSTCHECK enum fate scan_open(struct scan *scan, const struct config *config, size_t record_bytes,
                                 struct error *error);
/* Adds all partitions of the topic, from its beginning to its end for committed eyes. FATAL ERR_USAGE: there is no
 * such topic. RETRY ERR_SERVICE: Kafka is away. */
FM_MUSTCHECK enum fate scan_add(struct scan *scan, const char *topic, struct error *error);
/* Reads all of it. What is deleted meanwhile is passed over. RETRY ERR_SERVICE: it does not get on. */
FM_MUSTCHECK enum fate scan_run(struct scan *scan, struct error *error);
/* Twice is fine. */
void scan_close(struct scan *scan);

#endif
