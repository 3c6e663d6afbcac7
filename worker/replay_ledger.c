#include "worker/learn.h"
#include "worker/ledger_head.h"
#include "worker/relay.h"
#include "worker/replay_inner.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 500
#define MIB   ((size_t)1 << 20)

/* Resumes on their way to the database: of one shard at a time. */
struct ledgers {
	struct replay *replay;
	struct codec *codec;
	struct arena *arena; /* of a batch */
	struct arena *rows;  /* of what the database says of it */
	bool wanted_only;
	struct ledger_found *found;
	struct coordinates *at;
	size_t len;
	int64_t *latest; /* beside the parts of the scan: the time of the last record of each; or NULL */
	const struct scan *scan;
};

static enum fate ledgers_open(struct ledgers *ledgers, struct replay *replay, struct error *error)
{
	size_t record = (size_t)config_number(replay->worker.config, PARAM_LIMITS_RECORD_BYTES);
	struct codec_settings settings = { .record_bytes = 4 * record + MIB, .catalog = replay->worker.catalog };
	*ledgers = (struct ledgers){
		.replay = replay,
		.arena = arena_new(4 * record + 64 * MIB),
		.rows = arena_new(64 * MIB),
		.found = calloc(BATCH, sizeof(*ledgers->found)),
		.at = calloc(BATCH, sizeof(*ledgers->at)),
	};
	if (ledgers->arena == NULL || ledgers->rows == NULL || ledgers->found == NULL || ledgers->at == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory to read ledgers");
	return codec_new(&ledgers->codec, &settings, error);
}

static void ledgers_close(struct ledgers *ledgers)
{
	codec_free(ledgers->codec);
	arena_free(ledgers->arena);
	arena_free(ledgers->rows);
	free(ledgers->found);
	free(ledgers->at);
	free(ledgers->latest);
}

/* ---- against the database ---- */

static const struct checkpoint *find_row(const struct batch_loaded *loaded, const struct uuid *id)
{
	for (size_t i = 0; i < loaded->checkpoints_len; i++)
		if (uuid_compare(&loaded->checkpoints[i]->id, id) == 0)
			return loaded->checkpoints[i];
	return NULL;
}

static bool names(const struct ledger_found *found, const struct uuid *id)
{
	for (size_t i = 0; i < found->decisions_len; i++)
		if (uuid_compare(&found->decisions[i], id) == 0)
			return true;
	return false;
}

/* Decisions whose outcome is not what the resume says of them. */
static size_t tell_outcomes(struct replay *replay, const struct ledger_found *found,
                            const struct coordinates *at, const struct batch_loaded *loaded)
{
	size_t told = 0;
	for (size_t i = 0; i < loaded->decisions_len; i++) {
		const struct decision *decision = loaded->decisions[i];
		bool named = names(found, &decision->id);
		if (uuid_compare(&decision->checkpoint_id, &found->checkpoint_id) != 0 ||
		    decision->outcome == OUTCOME_WAITING || (decision->outcome == OUTCOME_COUNTED) == named)
			continue;
		replay_tell(replay, REPLAY_OUTCOME, at, &found->checkpoint_id, &decision->id,
		            named ? "the resume names it, and the database says that it did not count"
		                  : "it counted, says the database, and the resume does not name it");
		told++;
	}
	return told;
}

/* Returns whether it is to be marked. */
static bool compare(struct replay *replay, const struct ledger_found *found, const struct coordinates *at,
                    const struct batch_loaded *loaded)
{
	const struct checkpoint *row = find_row(loaded, &found->checkpoint_id);
	char text[128];
	if ((row == NULL || !row->filled) && judge_is_purged(loaded, at)) {
		replay->report->purged++;
		return false;
	}
	if (row == NULL) {
		replay_tell(replay, REPLAY_MISSING, at, &found->checkpoint_id, NULL,
		            "it was published, and is not in the database");
		return true;
	}
	if (row->state != GATE_RESUMED) {
		snprintf(text, sizeof(text), "it was published, and the database says %s",
		         gate_state_name(row->state));
		replay_tell(replay, REPLAY_NOT_MARKED, at, &found->checkpoint_id, NULL, text);
		return true;
	}
	if (row->has_verdict && row->verdict != found->verdict) {
		snprintf(text, sizeof(text), "it was published as %s, and the database says %s: it stays",
		         verdict_name(found->verdict), verdict_name(row->verdict));
		replay_tell(replay, REPLAY_VERDICT, at, &found->checkpoint_id, NULL, text);
		return false;
	}
	if (tell_outcomes(replay, found, at, loaded) == 0)
		replay->report->same++;
	return false;
}

static int by_uuid(const void *a, const void *b)
{
	return uuid_compare(a, b);
}

static enum fate load(struct ledgers *ledgers, struct batch_loaded *ret_loaded, struct error *error)
{
	struct store *store = ledgers->replay->desk.store;
	size_t decisions = 0;
	for (size_t i = 0; i < ledgers->len; i++)
		decisions += ledgers->found[i].decisions_len;
	struct uuid *ids = arena_array(ledgers->rows, ledgers->len, sizeof(*ids));
	struct uuid *decision_ids = arena_array(ledgers->rows, decisions, sizeof(*decision_ids));
	if (ids == NULL || decision_ids == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory to compare resumes");
	decisions = 0;
	for (size_t i = 0; i < ledgers->len; i++) {
		ids[i] = ledgers->found[i].checkpoint_id;
		for (size_t j = 0; j < ledgers->found[i].decisions_len; j++)
			decision_ids[decisions++] = ledgers->found[i].decisions[j];
	}
	qsort(ids, ledgers->len, sizeof(*ids), by_uuid);
	struct batch_request request = {
		.cluster_id = ledgers->replay->worker.cluster_id,
		.checkpoints = ids,
		.checkpoints_len = ledgers->len,
		.decisions = decision_ids,
		.decisions_len = decisions,
		.look_only = true,
	};
	enum fate fate = store_batch_begin(store, &request, ledgers->rows, ret_loaded, error);
	store_rollback(store);
	return fate;
}

/* Keeps only those that are to be marked. */
static enum fate compare_all(struct ledgers *ledgers, struct error *error)
{
	struct batch_loaded loaded;
	size_t kept = 0;
	arena_reset(ledgers->rows);
	enum fate fate = load(ledgers, &loaded, error);
	for (size_t i = 0; fate == FATE_OK && i < ledgers->len; i++)
		if (compare(ledgers->replay, &ledgers->found[i], &ledgers->at[i], &loaded))
			ledgers->found[kept++] = ledgers->found[i];
	ledgers->len = kept;
	return fate;
}

static enum fate flush(struct ledgers *ledgers, struct error *error)
{
	struct replay *replay = ledgers->replay;
	enum fate fate = FATE_OK;
	size_t marked = 0;
	if (ledgers->len > 0 && !ledgers->wanted_only)
		fate = compare_all(ledgers, error);
	struct shard shard = { replay->worker.cluster_id, ledgers->at[0].topic, ledgers->at[0].partition };
	if (fate == FATE_OK && ledgers->len > 0 && !replay->options->dry_run)
		fate = store_ledger_mark(replay->desk.store, &shard, ledgers->found, ledgers->len, &marked, error);
	replay->report->marked += (int64_t)marked;
	ledgers->len = 0;
	arena_reset(ledgers->arena);
	return fate;
}

/* ---- reading ---- */

static enum fate keep(struct ledgers *ledgers, const struct resume_event *event, const struct coordinates *at,
                      struct error *error)
{
	struct uuid *decisions = arena_array(ledgers->arena, event->decisions_len, sizeof(*decisions));
	if (decisions == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory to read ledgers");
	for (size_t i = 0; i < event->decisions_len; i++)
		decisions[i] = event->decisions[i].decision_id;
	ledgers->at[ledgers->len] = *at;
	ledgers->found[ledgers->len++] = (struct ledger_found){
		.checkpoint_id = event->resume_id,
		.verdict = event->verdict,
		.decisions = decisions,
		.decisions_len = event->decisions_len,
		.appended_at = at->appended_at,
		.offset = at->offset,
	};
	return FATE_OK;
}

static enum fate read_head(struct ledgers *ledgers, const struct record *record,
                           struct resume_event *ret_event, struct error *error)
{
	struct replay *replay = ledgers->replay;
	for (;;) {
		unsigned tries = 0;
		uint64_t news = learn_count(&replay->worker);
		enum fate fate;
		do
			fate = ledger_head_read(ledgers->codec, record, ledgers->arena, ret_event, error);
		while (learn_more(&replay->worker, replay->desk.store, codec_want(ledgers->codec), &tries, &fate,
		                  error));
		if (fate != FATE_RETRY || error->code != ERR_UNKNOWN_SCHEMA)
			return fate;
		fate = replay_await_schema(replay, news, error);
		if (fate != FATE_OK)
			return fate;
	}
}

static enum fate each_resume(void *context, const struct scan_part *part, const struct record *record,
                             struct error *error)
{
	struct ledgers *ledgers = context;
	struct replay *replay = ledgers->replay;
	struct resume_event event;
	if (ledgers->latest != NULL)
		ledgers->latest[part - ledgers->scan->parts] = record->at.appended_at;
	enum fate fate = FATE_OK;
	bool other = ledgers->len > 0 && (ledgers->at[0].partition != record->at.partition ||
	                                  strcmp(ledgers->at[0].topic, record->at.topic) != 0);
	if (other || ledgers->len == BATCH || (ledgers->len > 0 && arena_used(ledgers->arena) > 16 * MIB))
		fate = flush(ledgers, error);
	else if (ledgers->len == 0)
		arena_reset(ledgers->arena); /* what was passed over must not fill it */
	if (fate != FATE_OK)
		return fate;
	fate = read_head(ledgers, record, &event, error);
	if (fate == FATE_REJECT && error->code == ERR_UNKNOWN_SCHEMA && ledgers->wanted_only) {
		error->fate = FATE_RETRY; /* it may be the one that counts */
		return error_wrap(
			error, "offset %" PRId64 " of [%" PRId32 "] cannot be read, and nothing is put in until it can",
			record->at.offset, record->at.partition);
	}
	if (!ledgers->wanted_only)
		replay->report->records++;
	if (fate == FATE_REJECT && !ledgers->wanted_only)
		replay_tell(replay, REPLAY_UNREADABLE, &record->at, NULL, NULL,
		            "it is no resume, and was passed over");
	if (fate == FATE_REJECT)
		return FATE_OK;
	if (fate != FATE_OK || (ledgers->wanted_only && !ids_has(&replay->wanted, &event.resume_id)))
		return fate;
	return keep(ledgers, &event, &record->at, error);
}

static bool asked_to_stop(void *context)
{
	const struct ledgers *ledgers = context;
	const struct replay_options *options = ledgers->replay->options;
	return options->stop != NULL && options->stop(options->context);
}

enum fate replay_resumes(struct replay *replay, const struct scan *scan, struct error *error)
{
	struct ledgers ledgers;
	struct scan reading = *scan; /* the same reader and partitions */
	enum fate fate = ledgers_open(&ledgers, replay, error);
	reading.each = each_resume;
	reading.stop = asked_to_stop;
	reading.context = &ledgers;
	if (fate == FATE_OK)
		fate = scan_run(&reading, error);
	if (fate == FATE_OK)
		fate = flush(&ledgers, error);
	ledgers_close(&ledgers);
	return fate;
}

/* ---- what was published, for what is to be put in ---- */

/* As R2 has it: the beginning of the ledger may be gone, and what is decided now need not have been decided then. */
static int64_t doubt_before(const struct scan_part *part, int64_t latest)
{
	int64_t before = TIME_NONE;
	if (part->low > 0)
		before = part->first_at != TIME_NONE ? part->first_at : clock_real_us();
	if (latest != TIME_NONE && latest - RELAY_DOUBT_US > before)
		before = latest - RELAY_DOUBT_US;
	return before;
}

static enum fate fill_shards(struct replay *replay, const struct ledgers *ledgers, struct error *error)
{
	const struct scan *scan = ledgers->scan;
	replay->shards = calloc(scan->len + 1, sizeof(*replay->shards));
	if (replay->shards == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for the shards");
	for (size_t i = 0; i < scan->len; i++)
		replay->shards[replay->shards_len++] = (struct certainty){
			.topic = scan->parts[i].topic,
			.partition = scan->parts[i].partition,
			.doubt_before = doubt_before(&scan->parts[i], ledgers->latest[i]),
		};
	return FATE_OK;
}

static enum fate read_ledgers(struct replay *replay, struct ledgers *ledgers, struct scan *scan,
                              struct error *error)
{
	enum fate fate = FATE_OK;
	for (size_t i = 0; i < replay->worker.topics_len && fate == FATE_OK; i++)
		fate = scan_add(scan, (const char *)replay->worker.topics[i].topic.data, error); /* ends with a NUL */
	if (fate != FATE_OK)
		return fate;
	ledgers->latest = calloc(scan->len + 1, sizeof(*ledgers->latest));
	if (ledgers->latest == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for the shards");
	for (size_t i = 0; i < scan->len; i++)
		ledgers->latest[i] = TIME_NONE;
	fate = scan_run(scan, error);
	if (fate == FATE_OK)
		fate = flush(ledgers, error);
	return fate == FATE_OK ? fill_shards(replay, ledgers, error) : fate;
}

enum fate replay_certainties(struct replay *replay, struct error *error)
{
	struct ledgers ledgers;
	struct scan scan = { .each = each_resume, .stop = asked_to_stop, .context = &ledgers };
	size_t record = 4 * (size_t)config_number(replay->worker.config, PARAM_LIMITS_RECORD_BYTES) + 2 * MIB;
	enum fate fate = ledgers_open(&ledgers, replay, error);
	ledgers.wanted_only = true;
	ledgers.scan = &scan;
	if (fate == FATE_OK)
		fate = scan_open(&scan, replay->worker.config, record, error);
	if (fate == FATE_OK)
		fate = read_ledgers(replay, &ledgers, &scan, error);
	scan_close(&scan);
	ledgers_close(&ledgers);
	return fate == FATE_OK ? FATE_OK : error_wrap(error, "looking for what was published");
}

const char *replay_doubts(void *context, const struct checkpoint *row)
{
	const struct replay *replay = context;
	int64_t decided = row->decided_at > row->appended_at ? row->decided_at : row->appended_at;
	for (size_t i = 0; i < replay->shards_len; i++)
		if (replay->shards[i].partition == row->resumes_partition &&
		    view_equal_text(row->resumes_topic, replay->shards[i].topic))
			return decided < replay->shards[i].doubt_before ? RELAY_DOUBT : NULL;
	return RELAY_DOUBT; /* a ledger that was not read */
}
