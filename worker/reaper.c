#include "worker/learn.h"
#include "worker/retention.h"
#include "worker/waits.h"

#include "core/failpoint.h"
#include "core/log.h"
#include "core/metrics.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/*
 * What time alone brings about: EXPIRE decisions through the approvals topic, early decisions whose
 * suspend never came, the payload partitions of the days ahead, and the end of what was settled long ago.
 */

#define TICK_MS        500
#define BREATH_MS      100 /* between the turns of something that is not done: as long as a turn */
#define TURN_MS        100
#define ASK_TIMEOUT_MS 5000
#define SLACK_US                                                                                             \
	INT64_C(5000000)                 /* clocks of brokers and ours may differ so much: an approval in time
                                       must not lose to its expiry */
#define RESEND_US  INT64_C(60000000) /* sent so long ago and still there: sent again, with the same id */
#define SWEEP_MS   10000
#define BEHIND_MS  2000 /* intake was not at the end: asked again so soon */
#define DAYS_MS    3600000
#define DAYS_AHEAD 4
#define CLAIM      100
#define SWEEP      500 /* early decisions a transaction */
#define MIB        ((size_t)1 << 20)

/* The ends of the partitions of a topic, and when they were asked for. */
struct ends {
	const char *topic;
	int64_t *at;
	int32_t len;
	bool asked;
	int64_t asked_at; /* real us */
};

struct reaper {
	struct worker *worker;
	struct store *store;
	struct producer *producer;
	struct codec *codec;
	struct arena *arena;
	struct retention retention;
	bool goes_on; /* something is left to do: the next tick comes soon */
	int64_t sweep_at_ms;
	int64_t days_at_ms;
	struct waits_walk waits;

	struct ends approvals;
	struct ends suspends;
};

static enum fate reaper_open(struct reaper *reaper, struct worker *worker, struct error *error)
{
	*reaper = (struct reaper){
		.worker = worker,
		.arena = arena_new(32 * MIB),
		.approvals = { .topic = config_text(worker->config, PARAM_TOPICS_APPROVALS) },
		.suspends = { .topic = config_text(worker->config, PARAM_TOPICS_SUSPENDS) },
	};
	if (reaper->arena == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for the reaper");
	struct codec_settings codec = { 0 };
	struct producer_settings settings = { .client_id = "fermata-reaper", .delivery_timeout_ms = 10000 };
	settings.properties = config_kafka(worker->config, KAFKA_PRODUCER, &settings.properties_len);
	enum fate fate = codec_new(&reaper->codec, &codec, error);
	if (fate != FATE_OK)
		return fate;
	learn_write_ids(worker, reaper->codec, reaper->approvals.topic);
	fate = worker_open_store(worker, "reaper", &reaper->store, error);
	if (fate == FATE_OK)
		fate = retention_init(&reaper->retention, worker, reaper->store, error);
	return fate == FATE_OK ? producer_open(&reaper->producer, &settings, error) : fate;
}

static void reaper_close(struct reaper *reaper)
{
	producer_close(reaper->producer);
	retention_done(&reaper->retention);
	store_close(reaper->store);
	codec_free(reaper->codec);
	arena_free(reaper->arena);
	free(reaper->approvals.at);
	free(reaper->suspends.at);
}

/* ---- has intake got to where a topic ended? ---- */

/* The high watermarks of one topic now: what is not committed yet may be in time, too. */
static enum fate ask_ends(struct reaper *reaper, struct ends *ends, struct error *error)
{
	int32_t count;
	int64_t now = clock_real_us();
	ends->asked = false;
	enum fate fate = reader_partitions(reaper->worker->ends, ends->topic, ASK_TIMEOUT_MS, &count, error);
	if (fate != FATE_OK)
		return fate;
	int64_t *at = realloc(ends->at, ((size_t)count + 1) * sizeof(*at));
	if (at == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for the ends of %s", ends->topic);
	ends->at = at;
	ends->len = count;
	for (int32_t i = 0; i < count && fate == FATE_OK; i++) {
		int64_t low;
		fate = reader_range(reaper->worker->ends, ends->topic, i, ASK_TIMEOUT_MS, &low, &at[i], error);
	}
	ends->asked = fate == FATE_OK;
	ends->asked_at = now;
	return fate;
}

/* waits_count: is a partition that waits taken for one that has been read? */
static bool row_reached(const struct position *rows, size_t len, const struct partition_at *end,
                        bool waits_count)
{
	for (size_t i = 0; i < len; i++)
		if (rows[i].partition == end->partition && view_equal_text(rows[i].topic, end->topic))
			return (waits_count && rows[i].waits != WAITS_NO) || rows[i].next >= end->offset;
	return end->offset == 0;
}

static enum fate reached(struct reaper *reaper, const struct ends *ends, bool waits_count, bool *ret_reached,
                         struct error *error)
{
	struct position *rows;
	size_t len;
	enum fate fate =
		store_positions(reaper->store, reaper->worker->cluster_id, reaper->arena, &rows, &len, error);
	*ret_reached = false;
	if (fate != FATE_OK || !ends->asked)
		return fate;
	for (int32_t i = 0; i < ends->len; i++) {
		struct partition_at end = { ends->topic, i, ends->at[i] };
		if (!row_reached(rows, len, &end, waits_count))
			return FATE_OK;
	}
	*ret_reached = true;
	return FATE_OK;
}

/* ---- expiry ---- */

static enum fate send_expire(struct reaper *reaper, const struct due *due, struct error *error)
{
	char decision[UUID_TEXT_LEN + 1], checkpoint[UUID_TEXT_LEN + 1];
	struct approval_event event = {
		.checkpoint_id = due->checkpoint_id,
		.session_id = due->session_id,
		.decision = DECISION_EXPIRE,
		.decided_by = { VIEW_LITERAL("fermata"), VIEW_LITERAL("reaper"), VIEW_LITERAL("Fermata's reaper") },
		.decided_at = due->expires_at,
		.reason = VIEW_LITERAL("nobody decided in time"),
		.has_digest = true,
		.source = { VIEW_LITERAL("fermata"), VIEW_LITERAL("expiry"), VIEW_LITERAL("") },
	};
	vault_expire_id(&due->checkpoint_id, due->refused, &event.decision_id);
	uuid_format(&event.decision_id, decision);
	uuid_format(&due->checkpoint_id, checkpoint);
	event.decision_id_text = view_of(decision);
	event.checkpoint_id_text = view_of(checkpoint);
	memcpy(event.checkpoint_digest, due->digest, DIGEST_LEN);

	struct buffer value;
	buffer_init(&value, MIB);
	enum fate fate = codec_put_approval(reaper->codec, &event, &value, error);
	struct outgoing outgoing = {
		.topic = config_text(reaper->worker->config, PARAM_TOPICS_APPROVALS),
		.partition = PARTITION_BY_KEY,
		.key = event.checkpoint_id_text,
		.value = buffer_view(&value),
		.timestamp_us = TIME_NONE,
	};
	if (fate == FATE_OK)
		fate = producer_send(reaper->producer, &outgoing, error);
	buffer_done(&value);
	return fate;
}

/* Claims what is due, sends it, and keeps the claim only when Kafka has acknowledged it. *ret_more: there may be more. */
static enum fate send_some_due(struct reaper *reaper, bool *ret_more, struct error *error)
{
	struct due *due;
	size_t len;
	int64_t now = clock_real_us();
	enum fate fate = store_expiry_claim(reaper->store, reaper->approvals.asked_at - SLACK_US, now - RESEND_US,
	                                    now, CLAIM, reaper->arena, &due, &len, error);
	if (fate == FATE_OK && len > 0)
		fate = failpoint(FAILPOINT_REAPER_CLAIMED, error);
	for (size_t i = 0; i < len && fate == FATE_OK; i++)
		fate = send_expire(reaper, &due[i], error);
	if (fate == FATE_OK && len > 0)
		fate = failpoint(FAILPOINT_REAPER_PRODUCED, error);
	if (fate == FATE_OK && len > 0)
		fate = producer_wait(reaper->producer, 10000, error);
	if (fate == FATE_OK && len > 0)
		fate = failpoint(FAILPOINT_REAPER_BEFORE_COMMIT, error);
	if (fate == FATE_OK)
		fate = store_commit(reaper->store, error);
	if (fate != FATE_OK) {
		store_rollback(reaper->store);
		return fate;
	}
	metrics_add(METRIC_EXPIRES_SENT, (int64_t)len);
	*ret_more = len == CLAIM;
	return len > 0 ? failpoint(FAILPOINT_REAPER_AFTER_COMMIT, error) : FATE_OK;
}

/* May a loop go round once more in this tick? */
static bool in_turn(const struct reaper *reaper, int64_t began_ms)
{
	return clock_mono_ms() - began_ms < TURN_MS && !worker_stopping(reaper->worker);
}

static enum fate send_due(struct reaper *reaper, struct error *error)
{
	int64_t began_ms = clock_mono_ms();
	bool more;
	enum fate fate;
	do {
		arena_reset(reaper->arena);
		more = false;
		fate = send_some_due(reaper, &more, error);
	} while (fate == FATE_OK && more && in_turn(reaper, began_ms));
	reaper->goes_on = reaper->goes_on || more;
	return fate;
}

/* protocol.md, "Expiry": not before every approvals partition has been read up to an end that was asked
 * for later than expires_at + 5 s. expires_at is any 64-bit number: nothing is added to it. */
static enum fate expire(struct reaper *reaper, struct error *error)
{
	int64_t next;
	struct ends *ends = &reaper->approvals;
	enum fate fate = store_expiry_next(reaper->store, &next, error);
	if (fate != FATE_OK || next == TIME_NONE || clock_real_us() - SLACK_US <= next)
		return fate;
	if (!ends->asked || ends->asked_at - SLACK_US <= next)
		fate = ask_ends(reaper, ends, error);
	bool there = false;
	if (fate == FATE_OK)
		fate = reached(reaper, ends, true, &there, error);
	if (fate != FATE_OK || !there)
		return fate;
	fate = failpoint(FAILPOINT_REAPER_REACHED, error);
	if (fate == FATE_OK)
		fate = send_due(reaper, error);
	ends->asked = false;
	return fate;
}

/* ---- early decisions whose suspend never came ---- */

static enum fate give_up_unclaimed(struct reaper *reaper, int64_t before, struct error *error)
{
	int64_t began_ms = clock_mono_ms();
	size_t swept, all = 0;
	enum fate fate;
	do {
		swept = 0;
		fate = store_unclaimed_sweep(reaper->store, before, SWEEP, &swept, error);
		all += swept;
	} while (fate == FATE_OK && swept == SWEEP && in_turn(reaper, began_ms));
	if (all > 0)
		log_info("reaper", "%zu checkpoints known by their decisions only were given up: no suspend came",
		         all);
	if (swept == SWEEP) {
		reaper->goes_on = true;
		reaper->sweep_at_ms = clock_mono_ms();
	}
	return fate;
}

static enum fate sweep(struct reaper *reaper, struct error *error)
{
	if (clock_mono_ms() < reaper->sweep_at_ms)
		return FATE_OK;
	reaper->sweep_at_ms = clock_mono_ms() + BEHIND_MS;
	bool there = false;
	enum fate fate = ask_ends(reaper, &reaper->suspends, error);
	if (fate == FATE_OK) /* the suspend may stand in a partition that waits */
		fate = reached(reaper, &reaper->suspends, false, &there, error);
	if (fate != FATE_OK || !there)
		return fate;
	reaper->sweep_at_ms = clock_mono_ms() + SWEEP_MS;
	int64_t ttl_ms = config_number(reaper->worker->config, PARAM_WORKER_UNCLAIMED_TTL);
	int64_t before = clock_real_us() - ttl_ms * 1000;
	fate = failpoint(FAILPOINT_REAPER_BEFORE_SWEEP, error);
	return fate == FATE_OK ? give_up_unclaimed(reaper, before, error) : fate;
}

static enum fate make_days(struct reaper *reaper, struct error *error)
{
	if (clock_mono_ms() < reaper->days_at_ms)
		return FATE_OK;
	enum fate fate = store_payload_days(reaper->store, clock_real_us(), DAYS_AHEAD, error);
	if (fate == FATE_OK)
		reaper->days_at_ms = clock_mono_ms() + DAYS_MS;
	return fate;
}

void *reaper_thread(void *argument)
{
	struct worker *worker = argument;
	struct reaper reaper;
	struct error error = { 0 };
	enum fate fate = reaper_open(&reaper, worker, &error);
	if (fate != FATE_OK)
		fate = error.fate = FATE_FATAL; /* without all of its parts it cannot try again */
	while (fate != FATE_FATAL && !worker_wait(worker, reaper.goes_on ? BREATH_MS : TICK_MS)) {
		arena_reset(reaper.arena);
		reaper.goes_on = false;
		fate = make_days(&reaper, &error);
		if (fate == FATE_OK)
			fate = expire(&reaper, &error);
		if (fate == FATE_OK)
			fate = sweep(&reaper, &error);
		if (fate == FATE_OK)
			fate = retention_tick(&reaper.retention, &error);
		reaper.goes_on = reaper.goes_on || retention_goes_on(&reaper.retention);
		if (fate == FATE_OK) {
			waits_tick(worker, reaper.store, reaper.arena, &reaper.waits);
			worker_part_ok(worker, PART_REAPER, true);
		} else {
			worker_part_waits(worker, PART_REAPER, &error);
		}
		if (fate == FATE_RETRY || fate == FATE_REJECT) {
			log_error(LOG_LEVEL_WARN, "reaper", &error);
			(void)worker_wait(worker, 2000);
		}
	}
	if (fate == FATE_FATAL)
		worker_fail(worker, "reaper", &error);
	reaper_close(&reaper);
	return NULL;
}
