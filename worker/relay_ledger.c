#include "worker/relay.h"

#include "worker/learn.h"
#include "worker/ledger_head.h"

#include "core/failpoint.h"
#include "core/log.h"
#include "core/metrics.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ASK_TIMEOUT_MS 5000
#define BATCH          500
#define MIB            ((size_t)1 << 20)
#define STILL_MS       15000 /* no progress for so long: the broker is away, or a foreign transaction is open */

/* One reading of the ledger. */
struct reading {
	struct relay *relay;
	struct reader *reader;
	int64_t position; /* the last record's offset + 1, or that of the end-of-partition event */
	int64_t until;    /* read at least up to here; -1: up to the end as it is met */
	bool at_end;      /* an end-of-partition event was the last thing seen */
	bool doubt_open;  /* the time of the doubt is to be that of the first record still there */
	bool rebuild;     /* the database knew nothing of this ledger when its reading began */
	int64_t latest;   /* the time of the last record that was read */
	struct ledger_found *found;
	size_t found_len;
	size_t found_new;
};

static enum fate open_ledger_reader(struct relay *relay, int64_t from, struct reader **ret_reader,
                                    struct error *error)
{
	const struct config *config = relay->worker->config;
	struct reader_settings settings = {
		.client_id = "fermata-ledger",
		.prefetch_bytes = 4 * MIB,
		.record_bytes = 2 * (size_t)config_number(config, PARAM_LIMITS_RECORD_BYTES) + 2 * MIB,
	};
	settings.properties = config_kafka(config, KAFKA_CONSUMER, &settings.properties_len);
	enum fate fate = reader_open(ret_reader, &settings, error);
	if (fate != FATE_OK)
		return fate;
	struct partition_at place = { relay->topic, relay->partition, from };
	fate = reader_start(*ret_reader, &place, 1, error);
	if (fate != FATE_OK) {
		reader_close(*ret_reader, 1000);
		*ret_reader = NULL;
	}
	return fate;
}

static int by_id(const void *a, const void *b)
{
	return uuid_compare(&((const struct ledger_found *)a)->checkpoint_id,
	                    &((const struct ledger_found *)b)->checkpoint_id);
}

/* Sorted and without doubles (two of a checkpoint would be a breach of L2: it is said loudly). */
static void sort_found(struct reading *reading)
{
	if (reading->found == NULL || reading->found_len == 0)
		return;
	qsort(reading->found, reading->found_len, sizeof(*reading->found), by_id);
	size_t kept = 0;
	for (size_t i = 0; i < reading->found_len; i++) {
		if (kept > 0 && by_id(&reading->found[i], &reading->found[kept - 1]) == 0) {
			log_write(LOG_LEVEL_ERROR, "relay", "ALARM %s [%" PRId32 "] holds two resumes of one checkpoint",
			          reading->relay->topic, reading->relay->partition);
			continue;
		}
		reading->found[kept++] = reading->found[i];
	}
	reading->found_len = kept;
}

/* protocol.md, "In doubt": on a rebuild, what would be decided now and is not in a ledger that goes on more
 * than a minute past the decision, may have been judged otherwise then. */
static void doubt_rebuilt(struct reading *reading)
{
	struct relay *relay = reading->relay;
	if (reading->rebuild && reading->latest != TIME_NONE &&
	    reading->latest - RELAY_DOUBT_US > relay->doubt.before)
		relay->doubt = (struct doubt){ reading->latest - RELAY_DOUBT_US, reading->position };
}

/* In the place of a digest of routes, while a ledger is being read. */
static const uint8_t reading_on[32];
const uint8_t relay_rebuilding[32] = { [0 ... 31] = 0xFF };

static const uint8_t *unread_digest(const struct reading *reading)
{
	return reading->rebuild ? relay_rebuilding : reading_on;
}

/*
 * Marks what was found and moves ledger_offset to where the reading stands. Before the last step of a reading
 * the row carries the digest of no routes: other shards take today's for a sign that all of this one was read.
 * Which of the two it is tells the relay that goes on after a crash whether this was a rebuild.
 */
static enum fate advance(struct reading *reading, bool last, struct error *error)
{
	struct relay *relay = reading->relay;
	struct shard shard = relay_shard(relay);
	sort_found(reading);
	doubt_rebuilt(reading);
	size_t fresh = 0;
	enum fate fate = failpoint(FAILPOINT_RELAY_BEFORE_ADVANCE, error);
	if (fate == FATE_OK)
		fate = store_ledger_advance(relay->store, &shard, relay->mine, reading->position, relay->doubt,
		                            last && !relay->rebuilding ? relay->worker->routes_digest
		                                                       : unread_digest(reading),
		                            reading->found, reading->found_len, &fresh, error);
	if (fate == FATE_OK)
		fate = failpoint(FAILPOINT_RELAY_AFTER_ADVANCE, error);
	if (fate != FATE_OK)
		return fate;
	relay->mine = reading->position;
	reading->found_new += fresh;
	reading->found_len = 0;
	reading->found = NULL;
	arena_reset(relay->ledger);
	return FATE_OK;
}

static enum fate room_for_found(struct reading *reading, struct error *error)
{
	if (reading->found == NULL)
		reading->found = arena_array(reading->relay->ledger, BATCH, sizeof(*reading->found));
	if (reading->found == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory to read the ledger");
	return FATE_OK;
}

static enum fate read_head(struct relay *relay, const struct record *record, struct resume_event *ret_event,
                           struct error *error)
{
	unsigned tries = 0;
	enum fate fate;
	do
		fate = ledger_head_read(relay->codec, record, relay->ledger, ret_event, error);
	while (learn_more(relay->worker, relay->store, codec_want(relay->codec), &tries, &fate, error));
	return fate;
}

static enum fate take_head(struct reading *reading, const struct record *record,
                           struct resume_event *ret_event, struct error *error)
{
	struct relay *relay = reading->relay;
	enum fate fate = room_for_found(reading, error);
	if (fate == FATE_OK)
		fate = read_head(relay, record, ret_event, error);
	if (fate != FATE_RETRY || error->code != ERR_MEMORY || reading->found_len == 0)
		return fate;
	fate = advance(reading, false, error); /* what was found so far takes the memory */
	if (fate == FATE_OK)
		fate = room_for_found(reading, error);
	return fate == FATE_OK ? read_head(relay, record, ret_event, error) : fate;
}

/* What is not a resume of ours was written by somebody who should not: it is counted and passed over. What may be
 * one, of a newer worker or of a registry that is not asked any more, is not: it would be published twice. */
static enum fate note_found(struct reading *reading, const struct record *record, struct error *error)
{
	struct relay *relay = reading->relay;
	struct resume_event event;
	enum fate fate = take_head(reading, record, &event, error);
	if (fate == FATE_REJECT && (error->code == ERR_UNKNOWN_SCHEMA || ledger_head_ours(record))) {
		error->fate = FATE_RETRY;
		return error_wrap(error,
		                  "ALARM nothing is published here until offset %" PRId64
		                  " can be read: set registry.url to where its id is from, or put its schema into "
		                  "schemas.path",
		                  record->at.offset);
	}
	if (fate == FATE_REJECT) {
		metrics_add(METRIC_LEDGER_FOREIGN, 1);
		log_warn("relay", "%s [%" PRId32 "] offset %" PRId64 " is not a resume: %s", relay->topic,
		         relay->partition, record->at.offset, error->message);
		if (reading->found_len == 0) { /* many of them must not fill the memory */
			arena_reset(relay->ledger);
			reading->found = NULL;
		}
		return FATE_OK;
	}
	if (fate != FATE_OK)
		return fate;
	struct uuid *decisions = arena_array(relay->ledger, event.decisions_len, sizeof(*decisions));
	if (decisions == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory to read the ledger");
	for (size_t i = 0; i < event.decisions_len; i++)
		decisions[i] = event.decisions[i].decision_id;
	reading->found[reading->found_len++] = (struct ledger_found){
		.checkpoint_id = event.resume_id,
		.verdict = event.verdict,
		.decisions = decisions,
		.decisions_len = event.decisions_len,
		.appended_at = record->at.appended_at,
		.offset = record->at.offset,
	};
	return FATE_OK;
}

static enum fate on_record(struct reading *reading, struct record *record, struct error *error)
{
	if (reading->doubt_open) {
		reading->relay->doubt.before = record->at.appended_at;
		reading->doubt_open = false;
	}
	enum fate fate = note_found(reading, record, error);
	reading->position = record->at.offset + 1;
	reading->latest = record->at.appended_at;
	reading->at_end = false;
	record_done(record);
	if (fate == FATE_OK && reading->found_len == BATCH)
		fate = advance(reading, false, error);
	return fate;
}

static bool finished(const struct reading *reading)
{
	return reading->until < 0 ? reading->at_end : reading->position >= reading->until;
}

static enum fate read_until(struct reading *reading, struct error *error)
{
	int64_t moved_ms = clock_mono_ms();
	while (!finished(reading)) {
		struct record record = { 0 };
		enum reader_event event;
		enum fate fate = reader_poll(reading->reader, 100, &event, &record, error);
		if (fate == FATE_OK && event == READER_RECORD) {
			fate = on_record(reading, &record, error);
			moved_ms = clock_mono_ms();
		} else if (fate == FATE_OK && event == READER_END) {
			if (record.at.offset > reading->position)
				reading->position = record.at.offset;
			reading->at_end = true;
		} else if (fate == FATE_OK && event == READER_GONE) {
			fate = error_set(error, FATE_RETRY, ERR_STALE, "its records are gone at offset %" PRId64,
			                 reading->position);
		}
		if (fate == FATE_OK && relay_stopping(reading->relay))
			fate = error_set(error, FATE_RETRY, ERR_STALE, "the relay is to stop");
		if (fate == FATE_OK && clock_mono_ms() - moved_ms > STILL_MS)
			fate = error_set(error, FATE_RETRY, ERR_SERVICE,
			                 "it does not get past offset %" PRId64
			                 ": the broker is away, or a transaction of somebody else is open there",
			                 reading->position);
		if (fate != FATE_OK)
			return fate;
	}
	if (reading->doubt_open) /* nothing is there any more */
		reading->relay->doubt.before = clock_real_us();
	return advance(reading, true, error);
}

static enum fate run_reading(struct relay *relay, struct reading *reading, struct error *error)
{
	arena_reset(relay->ledger);
	enum fate fate = open_ledger_reader(relay, reading->position, &reading->reader, error);
	if (fate == FATE_OK)
		fate = read_until(reading, error);
	reader_close(reading->reader, 1000);
	if (fate != FATE_OK)
		return error_wrap(error, "reading the ledger %s [%" PRId32 "]", relay->topic, relay->partition);
	metrics_add(METRIC_RESUMES_FOUND, (int64_t)reading->found_new);
	if (reading->found_new > 0)
		log_info("relay", "%s [%" PRId32 "]: the ledger had %zu resumes that the database did not know of",
		         relay->topic, relay->partition, reading->found_new);
	return FATE_OK;
}

/* An empty database knows nothing of any ledger, so there is nothing to be said about how far it had got. */
static void say_cut(const struct relay *relay, int64_t next, int64_t low)
{
	if (next != LEDGER_NONE)
		log_warn(
			"relay",
			"%s [%" PRId32 "]: the resumes from offset %" PRId64 " to %" PRId64
			" are gone before the database has read them (it is older than the topic's retention): what was "
			"decided before the first one that is left, and is not marked, becomes IN_DOUBT (`fermata "
			"in-doubt`)",
			relay->topic, relay->partition, next, low - 1);
}

/* Where to begin, and whether something may have been published that is not there to be read any more. */
static enum fate plan_reading(struct relay *relay, struct reading *reading, struct error *error)
{
	struct ledger ledger;
	struct shard shard = relay_shard(relay);
	enum fate fate = store_ledger(relay->store, &shard, &ledger, error);
	if (fate != FATE_OK)
		return fate;
	int64_t low, high;
	fate =
		reader_range(relay->worker->ends, relay->topic, relay->partition, ASK_TIMEOUT_MS, &low, &high, error);
	if (fate != FATE_OK)
		return fate;
	relay->mine = ledger.next;
	relay->doubt = ledger.doubt;
	if (ledger.next != LEDGER_NONE && ledger.next > high)
		return error_set(error, FATE_RETRY, ERR_STALE,
		                 "ALARM %s [%" PRId32 "]: the database has read it up to %" PRId64
		                 ", but it ends at %" PRId64 ": the topic was made anew, or this is another cluster",
		                 relay->topic, relay->partition, ledger.next, high);
	bool cut = ledger.next == LEDGER_NONE ? low > 0 : ledger.next < low;
	reading->position = ledger.next == LEDGER_NONE || cut ? low : ledger.next;
	reading->until = high;
	reading->doubt_open = cut;
	if (cut) {
		relay->doubt.below = low;
		say_cut(relay, ledger.next, low);
	}
	reading->rebuild = relay->rebuilding || ledger.next == LEDGER_NONE ||
	                   memcmp(ledger.routes_digest, relay_rebuilding, sizeof(ledger.routes_digest)) == 0;
	reading->latest = TIME_NONE;
	return FATE_OK;
}

enum fate relay_read_ledger(struct relay *relay, struct error *error)
{
	struct reading reading = { .relay = relay };
	enum fate fate = plan_reading(relay, &reading, error);
	if (fate == FATE_OK)
		fate = failpoint(FAILPOINT_RELAY_PLANNED, error);
	if (fate != FATE_OK)
		return fate;
	metrics_add(METRIC_LEDGER_READS, 1);
	if (sabotaged("no_ledger")) { /* what protocol.md forbids: the end is taken as read */
		reading.position = reading.until;
		return advance(&reading, true, error);
	}
	if (reading.position >= reading.until) { /* nothing to read; the digest of the routes is written */
		if (reading.doubt_open)
			relay->doubt.before = clock_real_us();
		return advance(&reading, true, error);
	}
	return run_reading(relay, &reading, error);
}

enum fate relay_read_on(struct relay *relay, struct error *error)
{
	int64_t low, high;
	enum fate fate =
		reader_range(relay->worker->ends, relay->topic, relay->partition, ASK_TIMEOUT_MS, &low, &high, error);
	if (fate != FATE_OK || high == relay->mine)
		return fate;
	struct reading reading = { .relay = relay, .position = relay->mine, .until = -1, .latest = TIME_NONE };
	return run_reading(relay, &reading, error);
}
