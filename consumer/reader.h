/*
 * reader.h - one librdkafka consumer, either in a group or on partitions of the caller's choosing.
 *
 * Intake, the relays' group, the ledger and the end-of-log questions all use this one. A group's
 * assignment is only announced (READER_ASSIGNED); nothing is fetched until the caller has called
 * reader_start with offsets of its own, because positions live in PostgreSQL. Eager `range` assignor,
 * enable.auto.commit off, auto.offset.reset=error, enable.partition.eof on.
 * Not thread-safe, except for reader_range and reader_stop_waiting.
 */
#ifndef FERMATA_CONSUMER_READER_H
#define FERMATA_CONSUMER_READER_H

#include "core/kafka.h"

struct reader;

struct reader_settings {
	const struct property *properties; /* the user's: kafka.PROP and kafka.consumer.PROP */
	size_t properties_len;
	const char *client_id;
	const char *group;         /* NULL: partitions are chosen by reader_start */
	const char *const *topics; /* subscribed to when there is a group */
	size_t topics_len;
	bool read_uncommitted; /* for the high watermark; everything else reads committed */
	size_t prefetch_bytes; /* ceiling on what librdkafka holds for us; 0: 16 MiB */
	size_t record_bytes;   /* largest record to expect; 0: 8 MiB + headers */
};

struct partition_at {
	const char *topic; /* borrows what the caller gave, or the reader's own (valid while it is open) */
	int32_t partition;
	int64_t offset; /* READER_BEGINNING or an offset */
};

#define READER_BEGINNING (-2)

enum reader_event {
	READER_NOTHING,  /* the time was over */
	READER_RECORD,   /* *ret_record is filled; give it back with record_done */
	READER_END,      /* end of partition: at.topic, at.partition, and at.offset is the offset of the event */
	READER_ASSIGNED, /* the group gave us partitions: see reader_assignment; nothing is fetched yet */
	READER_REVOKED,  /* all partitions are gone; what was fetched of them is gone too */
	READER_GONE,     /* the offset of at.topic, at.partition does not exist (any more): an alarm */
};

/* librdkafka's handle and its threads. Fails FATAL for a property that it does not take, else OK even
 * when no broker answers: reader_poll says so later. */
FM_MUSTCHECK enum fate reader_open(struct reader **ret_reader, const struct reader_settings *settings,
                                   struct error *error);
/* Leaves the group and frees, in at most deadline_ms; after that the process' own exit ends the
 * threads (librdkafka's close can hang). NULL is fine. */
void reader_close(struct reader *reader, int64_t deadline_ms);

/* Waits up to timeout_ms for the next thing. RETRY: brokers away (the message says which); FATAL: not
 * authorised, or a fatal error of the handle. */
FM_MUSTCHECK enum fate reader_poll(struct reader *reader, int timeout_ms, enum reader_event *ret_event,
                                   struct record *ret_record, struct error *error);
void record_done(struct record *record);
/* Makes a reader_poll that waits (or else the next one) return at once. Thread-safe. */
void reader_stop_waiting(struct reader *reader);

/* The assignment of the group as last announced; the array is the reader's, until the next poll. */
const struct partition_at *reader_assignment(const struct reader *reader, size_t *ret_len);
/* Is the group's assignment lost (session timed out), or has it been taken away? */
bool reader_assignment_lost(const struct reader *reader);

/* Fetches from exactly these partitions and offsets from now on; whatever was fetched before is dropped.
 * An empty list stops fetching and keeps membership of the group. Also the way to seek. */
FM_MUSTCHECK enum fate reader_start(struct reader *reader, const struct partition_at *parts, size_t len,
                                    struct error *error);
/* Stops and goes on fetching of one partition; what was fetched of it and not yet polled is dropped by
 * pause and fetched again. Resume of what is not paused does nothing. */
FM_MUSTCHECK enum fate reader_pause(struct reader *reader, const char *topic, int32_t partition,
                                    struct error *error);
FM_MUSTCHECK enum fate reader_resume(struct reader *reader, const char *topic, int32_t partition,
                                     struct error *error);

/* First offset and end of a partition, asked of the broker: the end is the last stable offset for a
 * read_committed reader and the high watermark for a read_uncommitted one. Thread-safe. RETRY when the
 * broker does not answer in time. */
FM_MUSTCHECK enum fate reader_range(struct reader *reader, const char *topic, int32_t partition,
                                    int timeout_ms, int64_t *ret_low, int64_t *ret_end, struct error *error);
/* Number of partitions; 0 when the topic does not exist. Thread-safe. */
FM_MUSTCHECK enum fate reader_partitions(struct reader *reader, const char *topic, int timeout_ms,
                                         int32_t *ret_count, struct error *error);
/* The cluster's id into cap bytes. Thread-safe. */
FM_MUSTCHECK enum fate reader_cluster_id(struct reader *reader, int timeout_ms, char *ret_id, size_t cap,
                                         struct error *error);
/* How many members the group has now, and into cap bytes what one of them calls itself and where it is; 0 where there
 * is no such group. A member that was killed counts until its session is over. RETRY when no broker answers. */
FM_MUSTCHECK enum fate reader_members(struct reader *reader, const char *group, int timeout_ms,
                                      size_t *ret_count, char *ret_one, size_t cap, struct error *error);
/* The same, of those only whose client.id begins with prefix and is not prefix and ours. Thread-safe. */
FM_MUSTCHECK enum fate reader_members_other(struct reader *reader, const char *group, const char *prefix,
                                            const char *ours, int timeout_ms, size_t *ret_count,
                                            char *ret_one, size_t cap, struct error *error);
/* The offset of the first record with a timestamp of at least `since` (us); the end when there is none. */
FM_MUSTCHECK enum fate reader_offset_at_time(struct reader *reader, const char *topic, int32_t partition,
                                             int64_t since, int timeout_ms, int64_t *ret_offset,
                                             struct error *error);

/* Tells the group's coordinator where we are; only for lag dashboards, fire and forget. */
void reader_report_positions(struct reader *reader, const struct partition_at *parts, size_t len);

/*
 * For those whose positions are in Kafka (the executor's library; nobody else's are).
 * reader_committed puts the group's committed offsets into parts[i].offset, READER_BEGINNING where there is
 * none. reader_commit returns once the coordinator has taken it; RETRY with ERR_STALE when we are no member of
 * this generation any more: somebody else has the partition.
 */
FM_MUSTCHECK enum fate reader_committed(struct reader *reader, struct partition_at *parts, size_t len,
                                        int timeout_ms, struct error *error);
FM_MUSTCHECK enum fate reader_commit(struct reader *reader, const struct partition_at *part, int timeout_ms,
                                     struct error *error);

/* The headers of a record, copied into the arena. Malformed headers are none. */
FM_MUSTCHECK enum fate record_headers(const struct record *record, struct arena *arena,
                                      struct header **ret_headers, size_t *ret_len, struct error *error);
/* The last header of that name; VIEW_NULL when there is none. Borrows from the record. */
struct view record_header(const struct record *record, const char *name);

#endif
