#include "worker/intake.h"
#include "worker/deadletter.h"
#include "worker/learn.h"

#include "core/log.h"
#include "core/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STALE_MS      20   /* another worker holds our partitions, or did: let it finish */
#define POLL_MS       50   /* the longest sleep of the loop: its tick */
#define CLOSE_MS      3000 /* leaving the group */
#define ASK_MS        1000 /* for a broker's answer, while Kafka is away */
#define ASK_AGAIN_MS  2000
#define MIB           ((size_t)1 << 20)
#define DECODE_FACTOR 16 /* a record's structs may take so many times the bytes of its value */
#define LETTER_BYTES  (256 * MIB)

/* ---- making and ending one ---- */

static bool drops(void *context, struct view tenant, struct view agent)
{
	const struct config *config = context;
	return config_route_for(config, tenant, agent)->on_reject == ON_REJECT_DROP;
}

static void set_judge(struct intake *intake)
{
	const struct config *config = intake->worker->config;
	intake->judge = (struct judge_settings){
		.policy = { .forbid_self = config_flag(config, PARAM_DECISIONS_FORBID_SELF),
		            .require_digest = config_flag(config, PARAM_DECISIONS_REQUIRE_DIGEST),
		            .allow_edits = config_flag(config, PARAM_DECISIONS_ALLOW_EDITS) },
		.unclaimed_max = config_number(config, PARAM_WORKER_UNCLAIMED_MAX),
		.vault = intake->worker->vault,
		.codec = intake->judging,
		.drops = drops,
		.context = (void *)(uintptr_t)config,
	};
}

static enum fate open_memory(struct intake *intake, struct error *error)
{
	const struct config *config = intake->worker->config;
	size_t record = (size_t)config_number(config, PARAM_LIMITS_RECORD_BYTES);
	intake->bytes_cap = (size_t)config_number(config, PARAM_WORKER_BATCH_BYTES);
	intake->items_cap = (size_t)config_number(config, PARAM_WORKER_BATCH_RECORDS);
	if (intake->options.batch_records > intake->items_cap)
		intake->items_cap = intake->options.batch_records;
	if (intake->options.parts == NULL) /* a rebuild knows which letters are there, and sends the others */
		intake->breaker_records = (size_t)config_number(config, PARAM_WORKER_BREAKER_RECORDS);
	intake->items = calloc(intake->items_cap, sizeof(*intake->items));
	intake->order = calloc(intake->items_cap, sizeof(*intake->order));
	intake->arena_cap = 2 * (intake->bytes_cap + record) + 16 * MIB;
	intake->arena = arena_new(intake->arena_cap);
	intake->work = arena_new(2 * (intake->bytes_cap + record) + 64 * MIB);
	intake->scratch = arena_new(DECODE_FACTOR * record + 16 * MIB);
	intake->positions = arena_new(16 * MIB);
	if (intake->items == NULL || intake->order == NULL || intake->arena == NULL || intake->work == NULL ||
	    intake->scratch == NULL || intake->positions == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for intake");
	struct codec_settings settings = {
		.record_bytes = record,
		.strict_boundary = config_choice(config, PARAM_LIMITS_BOUNDARY) == CONFIG_BOUNDARY_STRICT,
		.catalog = intake->worker->catalog,
	};
	enum fate fate = codec_new(&intake->codec, &settings, error);
	return fate == FATE_OK ? codec_new(&intake->judging, &settings, error) : fate;
}

static enum fate open_reader(struct intake *intake, struct error *error)
{
	const struct config *config = intake->worker->config;
	const char *topics[] = { intake->suspends_topic, intake->approvals_topic };
	bool given = intake->options.parts != NULL;
	struct reader_settings settings = {
		.client_id = "fermata-intake",
		.group = given ? NULL : config_text(config, PARAM_WORKER_GROUP),
		.topics = topics,
		.topics_len = 2,
		.prefetch_bytes = 2 * intake->bytes_cap,
		.record_bytes = (size_t)config_number(config, PARAM_LIMITS_RECORD_BYTES) + MIB,
	};
	settings.properties = config_kafka(config, KAFKA_CONSUMER, &settings.properties_len);
	return reader_open(&intake->reader, &settings, error);
}

static enum fate open_letters(struct intake *intake, struct error *error)
{
	const struct config *config = intake->worker->config;
	struct producer_settings settings = {
		.client_id = "fermata-deadletters",
		.message_bytes = LETTER_BYTES,
		.queue_bytes = LETTER_BYTES,
		.delivery_timeout_ms = 10000,
		.report = deadletter_report,
	};
	settings.properties = config_kafka(config, KAFKA_PRODUCER, &settings.properties_len);
	return producer_open(&intake->letters, &settings, error);
}

enum fate intake_open_desk(struct intake *intake, struct worker *worker, const struct intake_options *options,
                           struct error *error)
{
	*intake = (struct intake){
		.worker = worker,
		.options = *options,
		.suspends_topic = config_text(worker->config, PARAM_TOPICS_SUSPENDS),
		.approvals_topic = config_text(worker->config, PARAM_TOPICS_APPROVALS),
	};
	backoff_init(&intake->backoff, 50, 5000);
	enum fate fate = open_memory(intake, error);
	if (fate != FATE_OK)
		return fate;
	set_judge(intake);
	return worker_open_store(worker, "intake", &intake->store, error);
}

static enum fate intake_open(struct intake *intake, struct worker *worker,
                             const struct intake_options *options, struct error *error)
{
	enum fate fate = intake_open_desk(intake, worker, options, error);
	if (fate == FATE_OK &&
	    worker->shards != NULL) /* gate events that are handed over look like the relays' */
		learn_write_ids(worker, intake->judging, config_text(worker->config, PARAM_TOPICS_GATES));
	if (fate == FATE_OK)
		fate = open_reader(intake, error);
	if (fate == FATE_OK)
		fate = intake_stage_open(intake, error);
	if (fate == FATE_OK && options->parts != NULL)
		fate = intake_given(intake, options->parts, options->parts_len, error);
	return fate == FATE_OK ? open_letters(intake, error) : fate;
}

void intake_close(struct intake *intake)
{
	intake_revoked(intake);
	intake_stage_close(intake);
	reader_close(intake->reader, CLOSE_MS);
	producer_close(intake->letters);
	store_close(intake->store);
	codec_free(intake->codec);
	codec_free(intake->judging);
	arena_free(intake->arena);
	arena_free(intake->work);
	arena_free(intake->scratch);
	arena_free(intake->positions);
	free(intake->items);
	free(intake->order);
	free(intake->parts);
	free(intake->outcomes);
	free(intake->reports);
	free(intake->targets);
	free(intake->seen);
}

/* ---- what comes out of the reader ---- */

/* The record at the position is compared with what was remembered of it, and passed over. */
static enum fate verify_record(struct intake *intake, struct part *part, const struct record *record,
                               struct error *error)
{
	uint8_t digest[DIGEST_LEN];
	vault_digest(record->value, digest);
	part->verify = false;
	if (record->at.offset == part->last.last_offset && record->at.appended_at == part->last.last_timestamp &&
	    memcmp(digest, part->last.last_digest, DIGEST_LEN) == 0)
		return FATE_OK;
	enum fate fate = intake_alarm(intake, part,
	                              "the record at the position is not the one that was read there before: the "
	                              "topic was made anew",
	                              error);
	if (fate == FATE_OK)
		fate = reader_pause(intake->reader, part->topic, part->partition, error);
	return fate;
}

static enum fate on_record(struct intake *intake, struct record *record, struct error *error)
{
	struct part *part = intake_part(intake, record->at.topic, record->at.partition);
	enum fate fate = FATE_OK;
	bool ours = part != NULL && !part->alarmed && !part->parked && intake->running;
	if (ours && part->verify) {
		fate = verify_record(intake, part, record, error);
		ours = false;
	}
	if (!ours || record->at.offset < part->received) {
		record_done(record);
		return fate;
	}
	bool full = intake->items_len == intake->items_cap ||
	            intake->bytes + record->key.len + record->value.len > intake->bytes_cap;
	record->at.topic = part->topic;
	if (!full || intake->items_len == 0)
		return intake_add(intake, part, record, error);
	intake->full = true;
	intake->next = *record;
	return FATE_OK;
}

/* The batch that it did not fit into is passed on, and the next one begins with it. */
static enum fate on_full(struct intake *intake, struct error *error)
{
	enum fate fate = intake_pass_on(intake, error);
	if (fate != FATE_OK)
		return fate;
	struct record record = intake->next;
	intake->full = false;
	return intake_add(intake, intake_part(intake, record.at.topic, record.at.partition), &record, error);
}

/* The position may stand past the last record: a commit marker, or records that were aborted. */
static void on_end(struct intake *intake, const struct record *at)
{
	struct part *part = intake_part(intake, at->at.topic, at->at.partition);
	if (part == NULL || part->alarmed || part->parked || !intake->running || part->verify ||
	    at->at.offset <= part->received)
		return;
	part->received = at->at.offset;
	intake->moved = true;
}

static enum fate on_gone(struct intake *intake, const struct record *at, struct error *error)
{
	struct part *part = intake_part(intake, at->at.topic, at->at.partition);
	enum fate fate = intake_settle(intake, error);
	if (fate != FATE_OK)
		return fate;
	if (part == NULL || part->alarmed || part->durable == POSITION_NEW)
		return FATE_OK;
	if (part->verify) /* only the record before the position has gone, between the question and the fetch */
		return error_set(error, FATE_RETRY, ERR_STALE, "%s [%" PRId32 "]: its beginning has moved on",
		                 part->topic, part->partition);
	int64_t low, end;
	fate = reader_range(intake->reader, part->topic, part->partition, ASK_MS, &low, &end, error);
	if (fate != FATE_OK)
		return fate;
	if (part->durable < low)
		return intake_alarm_gone(intake, part, low, error);
	return intake_alarm(intake, part, "the offset to read next does not exist any more", error);
}

static enum fate dispatch(struct intake *intake, enum reader_event event, struct record *record,
                          struct error *error)
{
	switch (event) {
	case READER_RECORD:
		return on_record(intake, record, error);
	case READER_END:
		on_end(intake, record);
		return FATE_OK;
	case READER_ASSIGNED:
		return intake_assigned(intake, error);
	case READER_REVOKED:
		intake_revoked(intake);
		return FATE_OK;
	case READER_GONE:
		return on_gone(intake, record, error);
	case READER_NOTHING:
		break;
	}
	return FATE_OK;
}

/* ---- the loop: wait, dispatch, tick ---- */

/* An outage is reported once, and while nothing is to be read nothing says that it is over: it is asked for. */
static void ask_kafka(struct intake *intake)
{
	int32_t count;
	struct error error;
	if (!intake->kafka_away || clock_mono_ms() < intake->ask_at_ms)
		return;
	intake->ask_at_ms = clock_mono_ms() + ASK_AGAIN_MS;
	if (reader_partitions(intake->reader, intake->suspends_topic, ASK_MS, &count, &error) != FATE_OK)
		return;
	intake->kafka_away = false;
	worker_part_ok(intake->worker, PART_INTAKE_KAFKA, true);
}

/* A topic that is not there any more may be made anew: what was read of the old one is compared with it before anything
 * is read, as at a start. */
static bool has_gone(const struct error *error)
{
	static const char *const names[] = { "_UNKNOWN_PARTITION", "_UNKNOWN_TOPIC", "UNKNOWN_TOPIC_OR_PART" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strncmp(error->native, names[i], sizeof(error->native) - 1) == 0) /* it may be cut there */
			return true;
	return false;
}

static void note_away(struct intake *intake, const struct error *error)
{
	log_error(LOG_LEVEL_WARN, "intake", error);
	if (has_gone(error) && intake->running)
		intake_restart_in(intake, STALE_MS);
	intake->kafka_away = true;
	intake->ask_at_ms = clock_mono_ms() + ASK_AGAIN_MS;
	worker_part_waits(intake->worker, PART_INTAKE_KAFKA, error);
}

/* With records in hand that could be stored at once the reader is only asked for what it has already; else it may wait,
 * and the end of what is being stored ends the wait. */
static enum fate step(struct intake *intake, struct error *error)
{
	enum reader_event event;
	struct record record = { 0 };
	bool storing = intake_is_storing(intake);
	if (intake->full) /* what is due gets its turn between two batches */
		return storing ? intake_settle(intake, error) : on_full(intake, error);
	int wait = intake->items_len > 0 && !storing ? 0 : POLL_MS;
	enum fate fate = reader_poll(intake->reader, wait, &event, &record, error);
	if (fate == FATE_RETRY) {
		note_away(intake, error);
		event = READER_NOTHING;
		fate = FATE_OK;
	}
	if (fate == FATE_OK)
		fate = dispatch(intake, event, &record, error);
	if (fate == FATE_OK && event == READER_NOTHING && intake->moved && !storing)
		fate = intake_pass_on(intake, error);
	return fate;
}

static enum fate tick(struct intake *intake, struct error *error)
{
	enum fate fate = FATE_OK;
	ask_kafka(intake);
	if (intake->letters == NULL)
		fate = open_letters(intake, error);
	if (fate == FATE_OK && !intake->running && intake->parts_len > 0 &&
	    clock_mono_ms() >= intake->restart_at_ms)
		fate = intake_restart(intake, error);
	if (fate == FATE_OK && intake->running && clock_mono_ms() >= intake->look_at_ms)
		fate = intake_look(intake, error);
	if (fate == FATE_OK && intake->running)
		fate = intake_look_at_parked(intake, error);
	return fate;
}

/* RETRY: everything that was fetched is dropped and read again from the positions in PostgreSQL. */
static void recover(struct intake *intake, const struct error *error)
{
	bool stale = error->code == ERR_STALE;
	int64_t wait = stale ? STALE_MS : backoff_next(&intake->backoff);
	metrics_add(stale ? METRIC_STALE : METRIC_BATCH_RETRIES, 1);
	log_error(LOG_LEVEL_WARN, "intake", error);
	if (!stale)
		worker_part_waits(intake->worker, PART_INTAKE_POSTGRES, error);
	intake_restart_in(intake, wait);
}

/* The last one. */
static enum fate finish(struct intake *intake, struct error *error)
{
	enum fate fate = intake_settle(intake, error);
	return fate == FATE_OK && intake->items_len > 0 ? intake_run_batch(intake, error) : fate;
}

void intake_run(struct worker *worker, const struct intake_options *options)
{
	struct intake intake;
	struct error error = { 0 };
	enum fate fate = intake_open(&intake, worker, options, &error);
	while (fate == FATE_OK && !worker_stopping(worker)) {
		if (intake_has_ended(&intake))
			fate = intake_settle(&intake, &error);
		if (fate == FATE_OK && !intake_is_storing(&intake))
			fate = tick(&intake, &error);
		if (fate == FATE_OK)
			fate = step(&intake, &error);
		if (fate == FATE_RETRY) {
			recover(&intake, &error);
			fate = FATE_OK;
		}
	}
	if (fate != FATE_OK)
		worker_fail(worker, "intake", &error);
	else if (finish(&intake, &error) != FATE_OK)
		log_error(LOG_LEVEL_WARN, "intake", &error);
	intake_close(&intake);
}

void *intake_thread(void *worker)
{
	pthread_setname_np(pthread_self(), "intake");
	intake_run(worker, &(struct intake_options){ 0 });
	return NULL;
}
