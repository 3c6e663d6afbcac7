#include "cli/topic_plan.h"

#include "cli/connect.h"
#include "producer/topics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAY_MS     INT64_C(86400000)
#define SPARE      ((int64_t)1 << 20) /* key, headers, decisions */
#define MARGIN     ((int64_t)64 << 10)
#define DELETE     "delete"
#define COMPACT    "compact"
#define APPENDTIME "LogAppendTime"

/* ---- how they are made ---- */

static struct topic_facts planned(const struct config *config, enum topic_kind kind)
{
	int64_t retention = config_number(config, PARAM_TOPICS_RETENTION);
	int64_t record = config_number(config, PARAM_LIMITS_RECORD_BYTES);
	struct topic_facts facts = { APPENDTIME, DELETE, retention, -1, DAY_MS, record + SPARE };

	/* A resume outlives the decision that it follows: the topic is the ledger of what was published. */
	if (kind == TOPIC_RESUMES) {
		facts.retention_ms = retention + DAY_MS;
		facts.max_message_bytes = (int64_t)widest_record(config) + SPARE;
	}
	if (kind == TOPIC_GATES)
		snprintf(facts.cleanup, sizeof(facts.cleanup), COMPACT);
	/* Takes whatever the others let in, with headers. */
	if (kind == TOPIC_DEAD_LETTERS)
		facts.max_message_bytes = (int64_t)widest_record(config) + 2 * SPARE;
	return facts;
}

static enum fate add_setting(struct topic_plan *plan, struct arena *arena, const char *name, const char *text,
                             int64_t number, struct error *error)
{
	char *value = text != NULL ? arena_printf(arena, "%s", text) : arena_printf(arena, "%" PRId64, number);

	if (value == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for the list of topics");
	plan->settings[plan->settings_len++] = (struct property){ name, value };
	return FATE_OK;
}

/* Gates keep the sender's time and are never deleted by age. */
static enum fate fill_settings(struct topic_plan *plan, struct arena *arena, struct error *error)
{
	const struct topic_facts *facts = &plan->facts;
	bool compacted = plan->kind == TOPIC_GATES;
	enum fate fate = add_setting(plan, arena, "cleanup.policy", facts->cleanup, 0, error);

	if (fate == FATE_OK)
		fate = add_setting(plan, arena, "max.message.bytes", NULL, facts->max_message_bytes, error);
	if (fate == FATE_OK && !compacted)
		fate = add_setting(plan, arena, "message.timestamp.type", facts->timestamp_type, 0, error);
	if (fate == FATE_OK && !compacted)
		fate = add_setting(plan, arena, "retention.ms", NULL, facts->retention_ms, error);
	if (fate == FATE_OK && !compacted)
		fate = add_setting(plan, arena, "segment.ms", NULL, facts->segment_ms, error);
	return fate;
}

static bool has_topic(const struct topic_plan *plans, size_t len, const char *name)
{
	for (size_t i = 0; i < len; i++)
		if (!strcmp(plans[i].name, name))
			return true;
	return false;
}

enum fate topic_plans_make(const struct config *config, struct arena *arena, struct topic_plan **ret_plans,
                           size_t *ret_len, struct error *error)
{
	size_t resumes_len, count = 0, len = 0;
	const char *const *resumes = config_resumes_topics(config, &resumes_len);
	struct topic_plan *plans = arena_array(arena, resumes_len + 4, sizeof(*plans));

	if (plans == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for the list of topics");
	plans[count++] =
		(struct topic_plan){ TOPIC_SUSPENDS, .name = config_text(config, PARAM_TOPICS_SUSPENDS) };
	plans[count++] =
		(struct topic_plan){ TOPIC_APPROVALS, .name = config_text(config, PARAM_TOPICS_APPROVALS) };
	for (size_t i = 0; i < resumes_len; i++)
		plans[count++] = (struct topic_plan){ TOPIC_RESUMES, .name = resumes[i] };
	plans[count++] = (struct topic_plan){ TOPIC_GATES, .name = config_text(config, PARAM_TOPICS_GATES) };
	plans[count++] =
		(struct topic_plan){ TOPIC_DEAD_LETTERS, .name = config_text(config, PARAM_TOPICS_DEAD_LETTERS) };
	for (size_t i = 0; i < count; i++) {
		if (has_topic(plans, len, plans[i].name))
			return error_set(error, FATE_FATAL, ERR_USAGE,
			                 "topic %.100s is named twice in topics.* and routes.*: each kind needs its own",
			                 plans[i].name);
		plans[len] = plans[i];
		plans[len].facts = planned(config, plans[i].kind);
		enum fate fate = fill_settings(&plans[len++], arena, error);
		if (fate != FATE_OK)
			return fate;
	}
	*ret_plans = plans;
	*ret_len = len;
	return FATE_OK;
}

/* ---- how they are ---- */

static enum fate look_text(const struct config *config, const char *topic, const char *setting, char *text,
                           size_t cap, struct error *error)
{
	size_t len;
	const struct property *properties = config_kafka(config, KAFKA_ADMIN, &len);

	return topics_setting(properties, len, topic, setting, KAFKA_PATIENCE_MS, text, cap, error);
}

enum fate topic_plan_look(const struct config *config, struct topic_plan *plan, struct error *error)
{
	struct topic_facts *facts = &plan->facts;
	const struct {
		const char *name;
		int64_t *number;
	} numbers[] = {
		{ "max.message.bytes", &facts->max_message_bytes },
		{ "retention.ms", &facts->retention_ms },
		{ "retention.bytes", &facts->retention_bytes },
		{ "segment.ms", &facts->segment_ms },
	};
	/* Only what is judged: each is a request of its own. */
	size_t count = plan->kind == TOPIC_GATES || plan->kind == TOPIC_DEAD_LETTERS ? 1 : 4;
	enum fate fate =
		look_text(config, plan->name, "cleanup.policy", facts->cleanup, sizeof(facts->cleanup), error);

	if (fate == FATE_OK && count > 1)
		fate = look_text(config, plan->name, "message.timestamp.type", facts->timestamp_type,
		                 sizeof(facts->timestamp_type), error);
	for (size_t i = 0; i < count && fate == FATE_OK; i++) {
		char text[32];
		fate = look_text(config, plan->name, numbers[i].name, text, sizeof(text), error);
		if (fate == FATE_OK)
			*numbers[i].number = strtoll(text, NULL, 10);
	}
	return fate;
}

/* ---- what that breaks ---- */

struct judging {
	const struct config *config;
	const struct topic_plan *plans;
	size_t len;
	const struct topic_plan *plan;
	topic_warning *say;
	void *context;
};

static void FM_PRINTF(3, 0) say_args(const struct judging *judging, bool halts, const char *fmt, va_list args)
{
	char text[512];

	vsnprintf(text, sizeof(text), fmt, args);
	judging->say(judging->context, halts, text);
}

static void FM_PRINTF(2, 3) warn(const struct judging *judging, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say_args(judging, false, fmt, args);
	va_end(args);
}

static void FM_PRINTF(2, 3) say_halts(const struct judging *judging, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say_args(judging, true, fmt, args);
	va_end(args);
}

static const struct topic_facts *facts_of(const struct judging *judging, enum topic_kind kind)
{
	for (size_t i = 0; i < judging->len; i++)
		if (judging->plans[i].kind == kind)
			return &judging->plans[i].facts;
	return &judging->plan->facts;
}

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static void judge_time(const struct judging *judging)
{
	if (strcmp(judging->plan->facts.timestamp_type, APPENDTIME) != 0)
		warn(judging,
		     "topic %s has message.timestamp.type=%s: the time that the sender gave counts, and a late "
		     "decision may "
		     "pass for one in time; set it to " APPENDTIME,
		     judging->plan->name, judging->plan->facts.timestamp_type);
}

static void judge_cleanup(const struct judging *judging)
{
	const char *wanted = judging->plan->kind == TOPIC_GATES ? COMPACT : DELETE;

	/* Dead letters have the keys that their records came with, and many came without. */
	if (judging->plan->kind == TOPIC_DEAD_LETTERS && strstr(judging->plan->facts.cleanup, COMPACT) != NULL)
		say_halts(judging,
		          "topic %s has cleanup.policy=%s: Kafka refuses records without a key there, and a worker "
		          "that has such a dead letter to write stands still; set it to " DELETE,
		          judging->plan->name, judging->plan->facts.cleanup);
	else if (strcmp(judging->plan->facts.cleanup, wanted) != 0)
		warn(judging, "topic %s has cleanup.policy=%s: %s; set it to %s", judging->plan->name,
		     judging->plan->facts.cleanup,
		     judging->plan->kind == TOPIC_GATES ? "gates that wait long go missing from it"
		                                        : "records are lost when a later one has the same key",
		     wanted);
}

/* Where the database is lost, the worker reads both topics again: what waits longer is gone then. */
static void judge_retention(const struct judging *judging)
{
	int64_t wanted = config_number(judging->config, PARAM_TOPICS_RETENTION);
	int64_t has = judging->plan->facts.retention_ms;

	if (has >= 0 && has < wanted)
		warn(
			judging,
			"topic %s has retention.ms=%" PRId64
			": records are gone sooner than topics.retention says, and with them what a worker that was away "
			"for longer, or a rebuild, has to read; set it to %" PRId64 " or more, or lower topics.retention",
			judging->plan->name, has, wanted);
}

/* The ledger must know of every resume whose decision can still be read. */
static void judge_ledger(const struct judging *judging)
{
	const struct topic_facts *facts = &judging->plan->facts;
	const struct topic_facts *approvals = facts_of(judging, TOPIC_APPROVALS);
	bool for_ever = facts->retention_ms < 0;

	if (facts->retention_bytes >= 0)
		warn(judging,
		     "topic %s has retention.bytes=%" PRId64
		     ": resumes may be gone while their decisions are not, and a "
		     "restored database would have them in doubt (`fermata in-doubt`); set it to -1",
		     judging->plan->name, facts->retention_bytes);
	if (!for_ever && (approvals->retention_ms < 0 ||
	                  facts->retention_ms - approvals->segment_ms < approvals->retention_ms))
		warn(judging,
		     "topic %s has retention.ms=%" PRId64
		     ": resumes may be gone while their decisions are not, and a restored "
		     "database would have them in doubt (`fermata in-doubt`); it is to be at least that of the "
		     "approvals and their "
		     "segment.ms "
		     "(%" PRId64 " and %" PRId64 ")",
		     judging->plan->name, facts->retention_ms, approvals->retention_ms, approvals->segment_ms);
}

/* What the topics of input let in, must fit into those of output. */
static void judge_size(const struct judging *judging)
{
	int64_t limit = config_number(judging->config, PARAM_LIMITS_RECORD_BYTES);
	int64_t suspends = facts_of(judging, TOPIC_SUSPENDS)->max_message_bytes;
	int64_t approvals = facts_of(judging, TOPIC_APPROVALS)->max_message_bytes;
	int64_t has = judging->plan->facts.max_message_bytes;
	int64_t largest = suspends > approvals ? suspends : approvals;

	if ((judging->plan->kind == TOPIC_SUSPENDS || judging->plan->kind == TOPIC_APPROVALS) && has < limit)
		warn(judging,
		     "topic %s has max.message.bytes=%" PRId64 ": records of up to limits.record_bytes (%" PRId64
		     ") do not get into it; raise the one or lower the other",
		     judging->plan->name, has, limit);
	if (judging->plan->kind == TOPIC_RESUMES && has < smaller(suspends, limit) + MARGIN)
		warn(judging,
		     "topic %s has max.message.bytes=%" PRId64
		     ": a resume is larger than its suspend event, and the largest "
		     "would be quarantined; set it to %" PRId64,
		     judging->plan->name, has, smaller(suspends, limit) + smaller(approvals, limit) + SPARE);
	if (judging->plan->kind == TOPIC_DEAD_LETTERS && has < largest + MARGIN)
		warn(judging,
		     "topic %s has max.message.bytes=%" PRId64
		     ": with its headers the largest dead letter would lose its value; "
		     "set it to %" PRId64,
		     judging->plan->name, has, largest + SPARE);
}

void topic_plan_judge(const struct config *config, const struct topic_plan *plans, size_t len, size_t index,
                      topic_warning *say, void *context)
{
	struct judging judging = { config, plans, len, &plans[index], say, context };
	bool input = judging.plan->kind == TOPIC_SUSPENDS || judging.plan->kind == TOPIC_APPROVALS;

	if (input || judging.plan->kind == TOPIC_RESUMES)
		judge_time(&judging);
	judge_cleanup(&judging);
	if (input)
		judge_retention(&judging);
	if (judging.plan->kind == TOPIC_RESUMES)
		judge_ledger(&judging);
	judge_size(&judging);
}
