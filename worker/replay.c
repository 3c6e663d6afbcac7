#include "worker/replay.h"
#include "worker/learn.h"
#include "worker/replay_inner.h"
#include "worker/startup.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ASK_TIMEOUT_MS 5000
#define PATIENCE_MS    1     /* a start that has to wait for a service does not */
#define SCHEMA_MS      60000 /* for the registry, about one schema */
#define SCHEMA_TICK_MS 20
#define MIB            ((size_t)1 << 20)

const char *replay_what_name(enum replay_what what)
{
	static const char *const names[REPLAY_WHATS] = {
		[REPLAY_MISSING] = "missing",
		[REPLAY_UNFILLED] = "unfilled",
		[REPLAY_NO_CHECKPOINT] = "no_checkpoint",
		[REPLAY_NOT_MARKED] = "not_marked",
		[REPLAY_DIFFERS] = "differs",
		[REPLAY_OUTCOME] = "outcome",
		[REPLAY_VERDICT] = "verdict",
		[REPLAY_UNREADABLE] = "unreadable",
	};
	return (unsigned)what < REPLAY_WHATS ? names[what] : "?";
}

void replay_tell(struct replay *replay, enum replay_what what, const struct coordinates *at,
                 const struct uuid *checkpoint_id, const struct uuid *decision_id, const char *text)
{
	const struct replay_finding finding = { what, *at, checkpoint_id, decision_id, text };
	replay->report->found[what]++;
	if (replay->options->each != NULL)
		replay->options->each(replay->options->context, &finding);
}

static bool asked_to_stop(void *context)
{
	const struct replay *replay = context;
	return replay->options->stop != NULL && replay->options->stop(replay->options->context);
}

enum fate replay_await_schema(struct replay *replay, uint64_t news, struct error *error)
{
	int64_t until_ms = clock_mono_ms() + SCHEMA_MS;
	while (learn_count(&replay->worker) == news && clock_mono_ms() < until_ms)
		if (asked_to_stop(replay) || worker_wait(&replay->worker, SCHEMA_TICK_MS))
			return error_set(error, FATE_RETRY, ERR_STALE, "it was asked to stop");
	return learn_count(&replay->worker) != news
	           ? FATE_OK
	           : error_set(error, FATE_RETRY, ERR_SERVICE,
	                       "the schema registry does not answer: is it away?");
}

/* ---- from where to where ---- */

/* Never past where the worker stands: what comes after that is its own affair. */
static enum fate bound(struct replay *replay, const struct scan *scan, struct scan_part *part, int64_t next,
                       struct error *error)
{
	const struct replay_options *options = replay->options;
	enum fate fate = FATE_OK;
	part->from = options->from;
	if (options->by_time)
		fate = reader_offset_at_time(scan->reader, part->topic, part->partition, options->from,
		                             ASK_TIMEOUT_MS, &part->from, error);
	if (part->from < part->low)
		part->from = part->low;
	if (part->until > next)
		part->until = next;
	if (options->partition >= 0 && options->partition != part->partition)
		part->until = part->from;
	return fate;
}

static enum fate bound_by_positions(struct replay *replay, struct scan *scan, struct error *error)
{
	struct position *rows;
	size_t len;
	enum fate fate = store_positions(replay->desk.store, replay->worker.cluster_id, replay->desk.positions,
	                                 &rows, &len, error);
	for (size_t i = 0; i < scan->len && fate == FATE_OK; i++) {
		struct scan_part *part = &scan->parts[i];
		int64_t next = 0;
		for (size_t j = 0; j < len; j++)
			if (rows[j].partition == part->partition && view_equal_text(rows[j].topic, part->topic))
				next = rows[j].next;
		fate = bound(replay, scan, part, next, error);
	}
	return fate;
}

static enum fate bound_by_ledgers(struct replay *replay, struct scan *scan, struct error *error)
{
	enum fate fate = FATE_OK;
	for (size_t i = 0; i < scan->len && fate == FATE_OK; i++) {
		struct scan_part *part = &scan->parts[i];
		struct shard shard = { replay->worker.cluster_id, part->topic, part->partition };
		struct ledger ledger;
		fate = store_ledger(replay->desk.store, &shard, &ledger, error);
		if (fate == FATE_OK)
			fate = bound(replay, scan, part, ledger.next == LEDGER_NONE ? 0 : ledger.next, error);
	}
	return fate;
}

static enum fate check_partition(const struct replay *replay, const struct scan *scan, struct error *error)
{
	if (replay->options->partition < (int32_t)scan->len)
		return FATE_OK;
	return error_set(error, FATE_FATAL, ERR_USAGE, "topic %.100s has %zu partitions, there is no %" PRId32,
	                 replay->options->topic, scan->len, replay->options->partition);
}

/* ---- passes ---- */

static enum fate pass(struct replay *replay, struct scan *scan, struct error *error)
{
	enum fate fate = scan_run(scan, error);
	return fate == FATE_OK ? replay_flush(replay, error) : fate;
}

static enum fate replay_events(struct replay *replay, struct scan *scan, struct error *error)
{
	scan->each = replay_event;
	scan->stop = asked_to_stop;
	scan->context = replay;
	enum fate fate = bound_by_positions(replay, scan, error);
	if (fate == FATE_OK)
		fate = pass(replay, scan, error);
	if (fate != FATE_OK || replay->options->dry_run || ids_count(&replay->wanted) == 0)
		return fate;
	fate = replay_certainties(replay, error);
	replay->writing = true;
	replay->desk.judge.doubts = replay_doubts;
	replay->desk.judge.doubts_context = replay;
	return fate == FATE_OK ? pass(replay, scan, error) : fate;
}

static bool is_resumes_topic(const struct replay *replay)
{
	return worker_partitions(&replay->worker, replay->options->topic) > 0;
}

static enum fate check_topic(struct replay *replay, struct error *error)
{
	const char *topic = replay->options->topic;
	const char *suspends = replay->desk.suspends_topic, *approvals = replay->desk.approvals_topic;
	replay->suspends = strcmp(topic, suspends) == 0;
	if (replay->suspends || strcmp(topic, approvals) == 0 || is_resumes_topic(replay))
		return FATE_OK;
	return error_set(
		error, FATE_FATAL, ERR_USAGE,
		"topic %.80s is none that can be replayed: those are %.60s, %.60s and the topics of resumes", topic,
		suspends, approvals);
}

static enum fate read_topic(struct replay *replay, struct error *error)
{
	struct scan scan = { 0 };
	size_t record = 4 * (size_t)config_number(replay->worker.config, PARAM_LIMITS_RECORD_BYTES) + 2 * MIB;
	bool resumes = is_resumes_topic(replay);
	enum fate fate = scan_open(&scan, replay->worker.config, record, error);
	if (fate == FATE_OK)
		fate = scan_add(&scan, replay->options->topic, error);
	if (fate == FATE_OK)
		fate = check_partition(replay, &scan, error);
	if (fate == FATE_OK && resumes)
		fate = bound_by_ledgers(replay, &scan, error);
	if (fate == FATE_OK)
		fate = resumes ? replay_resumes(replay, &scan, error) : replay_events(replay, &scan, error);
	scan_close(&scan);
	return fate;
}

/* ---- the whole ---- */

static enum fate run(struct replay *replay, struct error *error)
{
	struct worker_options options = { .patience_ms = PATIENCE_MS, .look_only = true };
	enum fate fate = startup(&replay->worker, &options, error);
	if (fate != FATE_OK)
		return fate;
	if (worker_stopping(&replay->worker))
		return error_set(error, FATE_RETRY, ERR_STALE, "it was asked to stop");
	replay->learns = pthread_create(&replay->schemas, NULL, learn_thread, &replay->worker) == 0;
	if (!replay->learns)
		return error_set(error, FATE_FATAL, ERR_SYSTEM, "no more threads can be started");
	fate = intake_open_desk(&replay->desk, &replay->worker, &(struct intake_options){ 0 }, error);
	if (fate == FATE_OK)
		fate = check_topic(replay, error);
	replay->items = replay->desk.items;
	replay->order = replay->desk.order;
	if (fate == FATE_OK)
		fate = read_topic(replay, error);
	intake_close(&replay->desk);
	return fate;
}

enum fate replay_run(const struct config *config, const struct replay_options *options,
                     struct replay_report *ret_report, struct error *error)
{
	struct replay replay = { .options = options, .report = ret_report };
	*ret_report = (struct replay_report){ 0 };
	worker_init(&replay.worker, config);
	replay.worker.quiet = true;
	enum fate fate = run(&replay, error);
	if (replay.learns) {
		worker_stop(&replay.worker);
		learn_interrupt(&replay.worker);
		pthread_join(replay.schemas, NULL);
	}
	ids_done(&replay.told);
	ids_done(&replay.wanted);
	free(replay.shards);
	worker_done(&replay.worker);
	return fate;
}
