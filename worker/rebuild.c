#include "worker/rebuild.h"
#include "worker/learn.h"
#include "worker/rebuild_inner.h"
#include "worker/relay.h"
#include "worker/scan.h"
#include "worker/startup.h"

#include "core/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ASK_TIMEOUT_MS 5000
#define PATIENCE_MS    1 /* a start that has to wait for a service does not */
#define DOUBT_BATCH    500
#define SWEEP_BATCH    500
#define DAY_US         INT64_C(86400000000)
#define DAYS_MAX       400 /* payloads of older days lie in the default partition */
#define DAYS_AHEAD     4
#define MIB            ((size_t)1 << 20)

/* ---- may it run? ---- */

/* A topic that is named as one of resumes is written down for good: others of ours are not taken for one. */
enum fate rebuild_check(const struct config *config, const struct rebuild_options *options,
                        struct error *error)
{
	static const enum param others[] = { PARAM_TOPICS_SUSPENDS, PARAM_TOPICS_APPROVALS, PARAM_TOPICS_GATES,
		                                 PARAM_TOPICS_DEAD_LETTERS };
	for (size_t i = 0; i < options->resumes_topics_len; i++)
		for (size_t j = 0; j < sizeof(others) / sizeof(others[0]); j++)
			if (strcmp(options->resumes_topics[i], config_text(config, others[j])) == 0)
				return error_set(error, FATE_FATAL, ERR_USAGE,
				                 "--resumes %s: that is %s of the configuration, no topic of resumes",
				                 options->resumes_topics[i], config_key(others[j]));
	return FATE_OK;
}

static enum fate look_at_group(struct rebuild *rebuild, const char *suffix, struct error *error)
{
	char group[300], member[160];
	size_t count;
	snprintf(group, sizeof(group), "%s%s", config_text(rebuild->worker.config, PARAM_WORKER_GROUP), suffix);
	enum fate fate =
		reader_members(rebuild->worker.ends, group, ASK_TIMEOUT_MS, &count, member, sizeof(member), error);
	if (fate != FATE_OK || count == 0)
		return fate;
	return error_set(
		error, FATE_REJECT, ERR_NO,
		"group %.60s has %zu members (%s): stop its workers first; one that was killed counts until "
		"kafka.consumer.session.timeout.ms is over",
		group, count, member);
}

/* Empty, or what a rebuild has left that was interrupted. */
static enum fate look_at_tables(struct rebuild *rebuild, struct store *store, struct error *error)
{
	struct holdings found;
	enum fate fate = store_holdings(store, rebuild->worker.cluster_id, relay_rebuilding, &found, error);
	if (fate != FATE_OK)
		return fate;
	rebuild->report->went_on = found.rebuilding > 0;
	rebuild->report->progress.went_on = found.rebuilding > 0;
	if (found.rebuilding > 0 && found.rebuilding == found.ledgers)
		return FATE_OK;
	if (found.checkpoints == 0 && found.decisions == 0 && found.positions == 0 && found.ledgers == 0)
		return FATE_OK;
	return error_set(error, FATE_REJECT, ERR_NO,
	                 "the database is not empty: %" PRId64 " checkpoints, %" PRId64 " decisions, %" PRId64
	                 " positions, %" PRId64
	                 " ledgers. A worker goes on from there by itself; rebuild wants a new "
	                 "database, migrated",
	                 found.checkpoints, found.decisions, found.positions, found.ledgers);
}

static enum fate may_run(void *context, struct store *store, struct error *error)
{
	struct rebuild *rebuild = context;
	enum fate fate = look_at_group(rebuild, "", error);
	if (fate == FATE_OK)
		fate = look_at_group(rebuild, WORKER_RELAYS_SUFFIX, error);
	return fate == FATE_OK ? look_at_tables(rebuild, store, error) : fate;
}

/* ---- what is to be read ---- */

static bool asked_to_stop(void *context)
{
	return worker_pause(context, 0);
}

static enum rebuild_phase phase_of(const struct rebuild *rebuild, const char *topic)
{
	if (strcmp(topic, config_text(rebuild->worker.config, PARAM_TOPICS_SUSPENDS)) == 0)
		return REBUILD_SUSPENDS;
	if (strcmp(topic, config_text(rebuild->worker.config, PARAM_TOPICS_APPROVALS)) == 0)
		return REBUILD_APPROVALS;
	return REBUILD_RESUMES;
}

static enum fate keep_goals(struct rebuild *rebuild, const struct scan *scan, struct error *error)
{
	rebuild->goals = calloc(scan->len + 1, sizeof(*rebuild->goals));
	if (rebuild->goals == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for %zu partitions", scan->len);
	for (size_t i = 0; i < scan->len; i++) {
		const struct scan_part *part = &scan->parts[i];
		rebuild->goals[rebuild->goals_len++] = (struct goal){
			.phase = phase_of(rebuild, part->topic),
			.topic = part->topic,
			.partition = part->partition,
			.low = part->low,
			.end = part->until,
			.first_at = part->first_at,
		};
	}
	return FATE_OK;
}

/* Every partition: where it begins, with the time of its first record, and where it ends now. */
static enum fate survey(struct rebuild *rebuild, struct error *error)
{
	struct worker *worker = &rebuild->worker;
	const struct config *config = worker->config;
	struct scan scan = { .first_only = true, .stop = asked_to_stop, .context = worker };
	size_t record = 4 * (size_t)config_number(config, PARAM_LIMITS_RECORD_BYTES) + 2 * MIB;
	enum fate fate = scan_open(&scan, config, record, error);
	for (size_t i = 0; i < worker->topics_len && fate == FATE_OK; i++)
		fate = scan_add(&scan, (const char *)worker->topics[i].topic.data, error); /* arena_copy ends them */
	if (fate == FATE_OK)
		fate = scan_add(&scan, config_text(config, PARAM_TOPICS_SUSPENDS), error);
	if (fate == FATE_OK)
		fate = scan_add(&scan, config_text(config, PARAM_TOPICS_APPROVALS), error);
	if (fate == FATE_OK)
		fate = scan_run(&scan, error);
	if (fate == FATE_OK)
		fate = keep_goals(rebuild, &scan, error);
	scan_close(&scan);
	return fate;
}

/* The partitions of payload, before there are rows that would lie in the default one. */
static enum fate make_days(struct rebuild *rebuild, struct error *error)
{
	int64_t now = clock_real_us(), first = now;
	for (size_t i = 0; i < rebuild->goals_len; i++) {
		const struct goal *goal = &rebuild->goals[i];
		if (goal->phase == REBUILD_SUSPENDS && goal->first_at != TIME_NONE && goal->first_at < first)
			first = goal->first_at;
	}
	if (first < now - DAYS_MAX * DAY_US)
		first = now - DAYS_MAX * DAY_US;
	return store_payload_days(rebuild->store, first, (int)((now - first) / DAY_US) + DAYS_AHEAD + 1, error);
}

/* ---- what is done last ---- */

static enum fate doubt_ledger(struct rebuild *rebuild, const struct ledger_row *row, struct error *error)
{
	char topic[256];
	snprintf(topic, sizeof(topic), "%.*s", (int)row->topic.len, (const char *)row->topic.data);
	struct shard shard = { rebuild->worker.cluster_id, topic, row->partition };
	size_t count = DOUBT_BATCH;
	enum fate fate = FATE_OK;
	while (fate == FATE_OK && count == DOUBT_BATCH && row->ledger.doubt.before != TIME_NONE)
		fate = store_ledger_doubt(rebuild->store, &shard, row->ledger.next, row->ledger.doubt, RELAY_DOUBT,
		                          clock_real_us(), DOUBT_BATCH, &count, error);
	return fate;
}

/* What the relays would do before they publish. */
static enum fate doubt(struct rebuild *rebuild, struct error *error)
{
	struct ledger_row *rows;
	size_t len;
	arena_reset(rebuild->arena);
	enum fate fate =
		store_ledgers(rebuild->store, rebuild->worker.cluster_id, rebuild->arena, &rows, &len, error);
	for (size_t i = 0; fate == FATE_OK && i < len; i++)
		fate = doubt_ledger(rebuild, &rows[i], error);
	return fate;
}

/* What the reaper would do: early decisions whose suspend did not come in time. It may stand in a partition that
 * waits. */
static enum fate sweep(struct rebuild *rebuild, struct error *error)
{
	int64_t ttl_ms = config_number(rebuild->worker.config, PARAM_WORKER_UNCLAIMED_TTL);
	int64_t before = clock_real_us() - ttl_ms * 1000;
	size_t count = SWEEP_BATCH;
	enum fate fate = FATE_OK;
	for (size_t i = 0; i < rebuild->goals_len; i++)
		if (rebuild->goals[i].phase == REBUILD_SUSPENDS && rebuild->goals[i].waits)
			return FATE_OK;
	while (fate == FATE_OK && count == SWEEP_BATCH) {
		fate = store_unclaimed_sweep(rebuild->store, before, SWEEP_BATCH, &count, error);
		rebuild->report->swept += (int64_t)count;
	}
	return fate;
}

static enum fate keep_places(struct rebuild *rebuild, struct error *error)
{
	struct rebuild_report *report = rebuild->report;
	report->arena = arena_new(4 * MIB);
	if (report->arena != NULL)
		report->places = arena_array(report->arena, rebuild->goals_len, sizeof(*report->places));
	if (report->places == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for a report");
	for (size_t i = 0; i < rebuild->goals_len; i++) {
		const struct goal *goal = &rebuild->goals[i];
		if (goal->low == 0 && !goal->waits)
			continue;
		const char *topic = arena_printf(report->arena, "%s", goal->topic);
		if (topic == NULL)
			return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for a report");
		report->places[report->places_len++] =
			(struct rebuild_place){ topic, goal->partition, goal->low, goal->first_at, goal->waits };
	}
	return FATE_OK;
}

static enum fate finish(struct rebuild *rebuild, struct error *error)
{
	struct rebuild_report *report = rebuild->report;
	enum fate fate = doubt(rebuild, error);
	if (fate == FATE_OK)
		fate = sweep(rebuild, error);
	if (fate == FATE_OK)
		fate = store_ledgers_rebuilt(rebuild->store, rebuild->worker.cluster_id, relay_rebuilding,
		                             rebuild->worker.routes_digest, error);
	if (fate == FATE_OK)
		fate = store_contents(rebuild->store, &report->contents, error);
	report->letters_found = atomic_load(&rebuild->letters.found);
	report->letters_sent = atomic_load(&rebuild->letters.sent);
	return fate == FATE_OK ? keep_places(rebuild, error) : fate;
}

/* ---- the whole ---- */

static enum fate prepare(struct rebuild *rebuild, struct error *error)
{
	struct worker *worker = &rebuild->worker;
	struct worker_options options = {
		.patience_ms = PATIENCE_MS,
		.look = may_run,
		.context = rebuild,
		.resumes_topics = rebuild->options->resumes_topics,
		.resumes_topics_len = rebuild->options->resumes_topics_len,
	};
	enum fate fate = startup(worker, &options, error);
	if (fate != FATE_OK || worker_stopping(worker))
		return fate;
	rebuild->learns = pthread_create(&rebuild->schemas, NULL, learn_thread, worker) == 0;
	if (!rebuild->learns)
		return error_set(error, FATE_FATAL, ERR_SYSTEM, "no more threads can be started");
	fate = worker_open_store(worker, "rebuild", &rebuild->store, error);
	if (fate == FATE_OK)
		fate = survey(rebuild, error);
	if (fate == FATE_OK)
		fate = make_days(rebuild, error);
	return fate == FATE_OK
	           ? letters_known_read(&rebuild->letters, worker->config, asked_to_stop, worker, error)
	           : fate;
}

static enum fate run(struct rebuild *rebuild, struct error *error)
{
	struct worker *worker = &rebuild->worker;
	enum fate fate = prepare(rebuild, error);
	if (fate == FATE_OK && !worker_stopping(worker))
		fate = rebuild_look(rebuild, error);
	if (fate == FATE_OK && !worker_stopping(worker))
		fate = rebuild_ledgers(rebuild, error);
	if (fate == FATE_OK && !worker_stopping(worker))
		fate = rebuild_intakes(rebuild, error);
	if (atomic_load(&worker->failed)) { /* a thread's */
		*error = worker->failure;
		return error->fate;
	}
	if (fate != FATE_OK && !worker_stopping(worker))
		return fate;
	rebuild->report->interrupted = !rebuild->done;
	return rebuild->done ? finish(rebuild, error) : FATE_OK;
}

enum fate rebuild_run(const struct config *config, const struct rebuild_options *options,
                      struct rebuild_report *ret_report, struct error *error)
{
	struct rebuild rebuild = { .options = options, .report = ret_report, .arena = arena_new(16 * MIB) };
	int64_t begun_ms = clock_mono_ms();
	*ret_report = (struct rebuild_report){ .progress.left_s = -1 };
	worker_init(&rebuild.worker, config);
	rebuild.worker.quiet = true;
	enum fate fate = rebuild.arena != NULL
	                     ? run(&rebuild, error)
	                     : error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for a rebuild");
	if (rebuild.learns) {
		worker_stop(&rebuild.worker);
		learn_interrupt(&rebuild.worker);
		pthread_join(rebuild.schemas, NULL);
	}
	ret_report->took_ms = clock_mono_ms() - begun_ms;
	letters_known_done(&rebuild.letters);
	store_close(rebuild.store);
	arena_free(rebuild.arena);
	free(rebuild.goals);
	worker_done(&rebuild.worker);
	return fate;
}

void rebuild_report_done(struct rebuild_report *report)
{
	arena_free(report->arena);
	*report = (struct rebuild_report){ 0 };
}
