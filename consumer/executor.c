#include "consumer/executor.h"

#include "consumer/reader.h"
#include "core/kafka_env.h"
#include "schemas/supply.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_TOPIC   "fermata.resumes"
#define DEFAULT_GROUP   "fermata-executor"
#define CLIENT_ID       "fermata-executor"
#define ENVIRONMENT_MAX ((size_t)1024 * 1024)
#define DEFAULT_RECORD  ((size_t)16 * 1024 * 1024)
#define ARENA_TIMES     8 /* a decoded record's structs beside its bytes, at worst */
#define COMMITTED_MS    10000
#define CLOSE_MS        5000
#define LONGEST_WORK_MS "3600000"

struct executor {
	struct reader *reader;
	struct codec *codec;
	struct supply *supply;
	struct arena *arena; /* of the session that is out */
	char *topic;
	char *agent;      /* or NULL */
	char *session_id; /* or NULL */
	bool starting;    /* the group has spoken, the positions are yet to be read */

	struct record record; /* the one that is out; message NULL: none */
	struct record held;   /* the one that could not be read for want of the registry; message NULL: none */
	struct resume_event event;
	struct partition_at done; /* behind what was taken last; topic NULL: it is acknowledged, or nothing was */
};

/* ---- opening ---- */

/* Ours first, so that what the user says counts. */
static enum fate collect(const struct executor_settings *settings, struct arena *arena,
                         struct property **ret_properties, size_t *ret_len, struct error *error)
{
	const struct property *theirs = settings->properties;
	struct property *from_environment = NULL;
	struct property *all;
	size_t len = settings->properties_len;

	if (!theirs) {
		enum fate fate = kafka_environment("consumer", arena, &from_environment, &len, error);

		if (fate != FATE_OK)
			return fate;
		theirs = from_environment;
	}
	all = arena_array(arena, len + 2, sizeof(*all));
	if (!all)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "could not open an executor: out of memory");
	all[0] = (struct property){ "max.poll.interval.ms", LONGEST_WORK_MS };
	if (len)
		memcpy(all + 1, theirs, len * sizeof(*all));
	len++;
	if (settings->bootstrap_servers)
		all[len++] = (struct property){ "bootstrap.servers", settings->bootstrap_servers };
	*ret_properties = all;
	*ret_len = len;
	return FATE_OK;
}

static enum fate open_reader(struct executor *executor, const struct executor_settings *settings,
                             struct error *error)
{
	struct arena *arena = arena_new(ENVIRONMENT_MAX);
	const char *topic = executor->topic;
	struct reader_settings wanted = {
		.client_id = CLIENT_ID,
		.group = settings->group ? settings->group : DEFAULT_GROUP,
		.topics = &topic,
		.topics_len = 1,
		.record_bytes = settings->record_bytes ? settings->record_bytes : DEFAULT_RECORD,
	};
	struct property *properties = NULL;
	enum fate fate;

	if (!arena)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "could not open an executor: out of memory");
	fate = collect(settings, arena, &properties, &wanted.properties_len, error);
	wanted.properties = properties;
	if (fate == FATE_OK)
		fate = reader_open(&executor->reader, &wanted, error);
	arena_free(arena);
	return fate;
}

static char *topic_of(const struct executor_settings *settings)
{
	const char *set = getenv("FERMATA_TOPICS_RESUMES");

	if (settings->topic)
		return strdup(settings->topic);
	return strdup(set && *set ? set : DEFAULT_TOPIC);
}

/* false: out of memory */
static bool keep_settings(struct executor *executor, const struct executor_settings *settings)
{
	size_t record = settings->record_bytes ? settings->record_bytes : DEFAULT_RECORD;

	executor->topic = topic_of(settings);
	executor->agent = settings->agent ? strdup(settings->agent) : NULL;
	executor->session_id = settings->session_id ? strdup(settings->session_id) : NULL;
	executor->arena = arena_new(record * ARENA_TIMES);
	return executor->topic && executor->arena && !settings->agent == !executor->agent &&
	       !settings->session_id == !executor->session_id;
}

enum fate executor_open(struct executor **ret_executor, const struct executor_settings *settings,
                        struct error *error)
{
	static const struct executor_settings environment;
	const struct registry_settings from_environment = registry_environment();
	struct supply_settings supply = { 0 };
	struct codec_settings limits = { 0 };
	struct executor *executor = calloc(1, sizeof(*executor));
	enum fate fate;

	if (!settings)
		settings = &environment;
	limits.record_bytes = settings->record_bytes ? settings->record_bytes : DEFAULT_RECORD;
	if (!executor || !keep_settings(executor, settings)) {
		executor_close(executor);
		return error_set(error, FATE_RETRY, ERR_MEMORY, "could not open an executor: out of memory");
	}
	supply.registry = settings->registry ? settings->registry : &from_environment;
	fate = supply_open(&executor->supply, &supply, error);
	limits.catalog = fate == FATE_OK ? supply_catalog(executor->supply) : NULL;
	if (fate == FATE_OK)
		fate = codec_new(&executor->codec, &limits, error);
	if (fate == FATE_OK)
		fate = open_reader(executor, settings, error);
	if (fate != FATE_OK)
		executor_close(executor);
	else
		*ret_executor = executor;
	return fate;
}

void executor_close(struct executor *executor)
{
	if (!executor)
		return;
	record_done(&executor->record);
	record_done(&executor->held);
	reader_close(executor->reader, CLOSE_MS);
	codec_free(executor->codec);
	supply_close(executor->supply);
	arena_free(executor->arena);
	free(executor->session_id);
	free(executor->agent);
	free(executor->topic);
	free(executor);
}

/* ---- taking ---- */

/* Positions are Kafka's here. What cannot be asked now is asked again by the next call. */
static enum fate start_at_committed(struct executor *executor, struct error *error)
{
	size_t len;
	const struct partition_at *given = reader_assignment(executor->reader, &len);
	struct partition_at *parts = calloc(len + 1, sizeof(*parts));
	enum fate fate;

	if (!parts)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "could not begin to read: out of memory");
	if (len)
		memcpy(parts, given, len * sizeof(*parts));
	fate = len ? reader_committed(executor->reader, parts, len, COMMITTED_MS, error) : FATE_OK;
	if (fate == FATE_OK)
		fate = reader_start(executor->reader, parts, len, error);
	free(parts);
	executor->starting = fate != FATE_OK;
	return fate;
}

static bool is_ours(const struct executor *executor)
{
	const struct suspend_event *suspend = &executor->event.suspend;

	return (!executor->agent || view_equal_text(suspend->agent, executor->agent)) &&
	       (!executor->session_id || view_equal_text(suspend->session_id, executor->session_id));
}

static bool is_expired(const struct resume_event *event)
{
	return event->expires_at != TIME_NONE && clock_real_us() >= event->expires_at;
}

static enum fate decode(struct executor *executor, const struct record *record, struct error *error)
{
	struct error scratch;
	unsigned tries = 0;
	enum fate fate;

	if (!error)
		error = &scratch;
	do {
		arena_reset(executor->arena);
		codec_schema_header(executor->codec, record_header(record, SCHEMA_ID_HEADER));
		fate = codec_take_resume(executor->codec, record->value, executor->arena, &executor->event, error);
	} while (supply_more(executor->supply, codec_want(executor->codec), &tries, &fate, error));
	return fate;
}

/* Keeps the record when it is for us; *ret_taken says so. */
static enum fate consider(struct executor *executor, struct record *record, bool *ret_taken,
                          struct error *error)
{
	struct coordinates at = record->at;
	enum fate fate = decode(executor, record, error);

	*ret_taken = fate == FATE_OK && is_ours(executor);
	if (fate == FATE_RETRY) {
		executor->held = *record;
	} else if (*ret_taken) {
		executor->record = *record;
		executor->done = (struct partition_at){ at.topic, at.partition, at.offset + 1 };
	} else {
		record_done(record);
	}
	if (fate != FATE_OK && error)
		error_wrap(error, "%s[%d] offset %lld", at.topic, at.partition, (long long)at.offset);
	return fate;
}

/* The group's offset points to what retention has deleted: some resumes were never taken. The alarm is given out
 * once, reading goes on with the oldest that is there. */
static enum fate lost(struct executor *executor, const struct record *place, struct error *error)
{
	struct partition_at oldest = { place->at.topic, place->at.partition, 0 };
	int64_t end;
	enum fate fate = reader_range(executor->reader, oldest.topic, oldest.partition, COMMITTED_MS,
	                              &oldest.offset, &end, error);

	if (fate == FATE_OK)
		fate = reader_commit(executor->reader, &oldest, COMMITTED_MS, error);
	executor->starting = true;
	if (fate != FATE_OK)
		return fate;
	return error_set(error, FATE_RETRY, ERR_NO,
	                 "resumes of %s[%d] from offset %lld to %lld were deleted before this group took them",
	                 oldest.topic, oldest.partition, (long long)place->at.offset, (long long)oldest.offset);
}

/* All is acknowledged or for others: the next start need not read it again. */
static void note_end(struct executor *executor, const struct record *place)
{
	struct partition_at end = { place->at.topic, place->at.partition, place->at.offset };

	if (!executor->done.topic)
		reader_report_positions(executor->reader, &end, 1);
}

static enum fate handle(struct executor *executor, enum reader_event event, struct record *record,
                        bool *ret_taken, struct error *error)
{
	switch (event) {
	case READER_RECORD:
		return consider(executor, record, ret_taken, error);
	case READER_ASSIGNED:
		record_done(&executor->held);
		return start_at_committed(executor, error);
	case READER_REVOKED:
		executor->done.topic = NULL;
		executor->starting = false;
		record_done(&executor->held);
		return FATE_OK;
	case READER_GONE:
		return lost(executor, record, error);
	case READER_END:
		note_end(executor, record);
		break;
	case READER_NOTHING:
		break;
	}
	return FATE_OK;
}

enum fate executor_take(struct executor *executor, int timeout_ms, struct resumed *ret_resumed,
                        struct error *error)
{
	int64_t until_ms = clock_mono_ms() + timeout_ms;
	int64_t left_ms = timeout_ms;
	enum fate fate = FATE_OK;
	bool taken = false;

	*ret_resumed = (struct resumed){ 0 };
	record_done(&executor->record);
	if (executor->starting)
		fate = start_at_committed(executor, error);
	if (fate == FATE_OK && executor->held.message) {
		struct record held = executor->held;
		executor->held = (struct record){ 0 };
		fate = consider(executor, &held, &taken, error);
	}
	while (fate == FATE_OK && !taken && left_ms >= 0) {
		enum reader_event event = READER_NOTHING;
		struct record record;

		fate = reader_poll(executor->reader, (int)left_ms, &event, &record, error);
		if (fate == FATE_OK)
			fate = handle(executor, event, &record, &taken, error);
		left_ms = until_ms - clock_mono_ms();
	}
	if (!taken)
		return fate;
	ret_resumed->event = &executor->event;
	ret_resumed->expired = is_expired(&executor->event);
	ret_resumed->at = executor->record.at;
	return FATE_OK;
}

enum fate executor_done(struct executor *executor, int timeout_ms, struct error *error)
{
	enum fate fate;

	if (!executor->done.topic)
		return FATE_OK;
	fate = reader_commit(executor->reader, &executor->done, timeout_ms, error);
	if (fate == FATE_OK)
		executor->done.topic = NULL;
	return fate;
}
