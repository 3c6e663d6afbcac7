/* cmd_topics.c - `fermata topics create`. */
#include "cli/cmd.h"
#include "cli/connect.h"
#include "cli/row_json.h"
#include "cli/screen.h"
#include "cli/topic_plan.h"
#include "producer/topics.h"

#include <inttypes.h>
#include <stdio.h>

#define ARENA_BYTES  ((size_t)16 << 20)
#define CREATE_MS    30000
#define WARNINGS_MAX 12

struct creating {
	struct cli *cli;
	struct arena *arena;
	struct topic_plan *plans;
	size_t len;
	enum topic_result *results;
	char (*messages)[256];
	struct view warnings[WARNINGS_MAX]; /* of one topic */
	size_t warnings_len;
};

static enum fate create(struct creating *creating, struct error *error)
{
	size_t properties_len;
	const struct config *config = creating->cli->config;
	const struct property *properties = config_kafka(config, KAFKA_ADMIN, &properties_len);
	struct topic_want *wanted = arena_array(creating->arena, creating->len, sizeof(*wanted));
	enum fate fate;

	creating->results = arena_array(creating->arena, creating->len, sizeof(*creating->results));
	creating->messages = arena_array(creating->arena, creating->len, sizeof(*creating->messages));
	if (wanted == NULL || creating->results == NULL || creating->messages == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for the list of topics");
	for (size_t i = 0; i < creating->len; i++)
		wanted[i] = (struct topic_want){ creating->plans[i].name,
			                             (int32_t)config_number(config, PARAM_TOPICS_PARTITIONS),
			                             creating->plans[i].settings, creating->plans[i].settings_len };
	fate = topics_create(properties, properties_len, wanted, creating->len,
	                     (int16_t)config_number(config, PARAM_TOPICS_REPLICATION), CREATE_MS,
	                     creating->results, creating->messages, error);
	return fate == FATE_OK ? FATE_OK : kafka_away(creating->cli, error);
}

/* What exists is looked at; what cannot be looked at is taken as planned, and said. */
static void look(struct creating *creating)
{
	for (size_t i = 0; i < creating->len; i++) {
		struct topic_plan as_is = creating->plans[i];
		struct error error = { .fate = FATE_OK };
		if (creating->results[i] != TOPIC_EXISTS)
			continue;
		if (topic_plan_look(creating->cli->config, &as_is, &error) == FATE_OK)
			creating->plans[i].facts = as_is.facts;
		else
			cli_warn("the settings of topic %s could not be looked at: %s", as_is.name, error.message);
	}
}

/* What is there stays as it is, so that it is a warning whatever it breaks. */
static void take_warning(void *context, bool halts, const char *text)
{
	(void)halts;
	struct creating *creating = context;
	char *copy = arena_printf(creating->arena, "%s", text);

	cli_warn("%s", text);
	if (copy != NULL && creating->warnings_len < WARNINGS_MAX)
		creating->warnings[creating->warnings_len++] = view_of(copy);
}

static const char *result_name(enum topic_result result)
{
	return result == TOPIC_CREATED ? "created" : result == TOPIC_EXISTS ? "exists" : "failed";
}

static void report_text(const struct creating *creating, size_t i)
{
	const struct topic_plan *plan = &creating->plans[i];

	if (creating->results[i] == TOPIC_CREATED)
		printf("created  %s, %" PRId64 " partitions\n", plan->name,
		       config_number(creating->cli->config, PARAM_TOPICS_PARTITIONS));
	else if (creating->results[i] == TOPIC_EXISTS)
		printf("exists   %s, left as it is\n", plan->name);
}

static enum fate report_json(const struct creating *creating, size_t i, struct error *error)
{
	struct json_line *line = json_line_new();

	json_line_text(line, "topic", view_of(creating->plans[i].name));
	json_line_text(line, "result", view_of(result_name(creating->results[i])));
	json_line_text(line, "reason",
	               creating->results[i] == TOPIC_FAILED ? view_of(creating->messages[i]) : VIEW_NULL);
	json_line_texts(line, "warnings", creating->warnings, creating->warnings_len);
	return json_line_write(line, error);
}

static int report(struct creating *creating)
{
	struct error error = { .fate = FATE_OK };
	int code = EXIT_YES;

	for (size_t i = 0; i < creating->len; i++) {
		creating->warnings_len = 0;
		if (creating->results[i] == TOPIC_EXISTS)
			topic_plan_judge(creating->cli->config, creating->plans, creating->len, i, take_warning,
			                 creating);
		if (!creating->cli->json)
			report_text(creating, i);
		else if (report_json(creating, i, &error) != FATE_OK)
			return cli_fail(&error);
		if (creating->results[i] == TOPIC_FAILED)
			code =
				cli_no("topic %s could not be created: %s", creating->plans[i].name, creating->messages[i]);
	}
	return code;
}

int cmd_topics_create(struct cli *cli)
{
	struct creating creating = { .cli = cli, .arena = arena_new(ARENA_BYTES) };
	struct error error = { .fate = FATE_OK };
	enum fate fate =
		creating.arena != NULL
			? topic_plans_make(cli->config, creating.arena, &creating.plans, &creating.len, &error)
			: error_set(&error, FATE_FATAL, ERR_MEMORY, "no memory for the list of topics");
	int code;

	if (fate == FATE_OK)
		fate = create(&creating, &error);
	if (fate == FATE_OK)
		look(&creating);
	code = fate == FATE_OK ? report(&creating) : cli_fail(&error);
	arena_free(creating.arena);
	return code;
}
