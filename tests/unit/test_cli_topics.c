// links: cli config core
/* test_cli_topics.c - how topics are made, and which promises others break. */
#include "cli/topic_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAY_MS INT64_C(86400000)

struct fixture {
	struct config *config;
	struct arena *arena;
	struct topic_plan *plans;
	size_t len;
	char warnings[4096];
	size_t count;
	size_t halting; /* of the warnings: the work stands still */
};

static void make(struct fixture *fixture, const char *const *overrides, size_t len)
{
	struct config_request request = { .overrides = overrides, .overrides_len = len };
	struct error error;

	*fixture = (struct fixture){ .arena = arena_new(1 << 20) };
	assert_non_null(fixture->arena);
	assert_int_equal(config_load(&fixture->config, &request, &error), FATE_OK);
	assert_int_equal(
		topic_plans_make(fixture->config, fixture->arena, &fixture->plans, &fixture->len, &error), FATE_OK);
}

static void done(struct fixture *fixture)
{
	config_free(fixture->config);
	arena_free(fixture->arena);
}

static const char *setting(const struct topic_plan *plan, const char *name)
{
	for (size_t i = 0; i < plan->settings_len; i++)
		if (!strcmp(plan->settings[i].name, name))
			return plan->settings[i].value;
	return "";
}

static void take(void *context, bool halts, const char *text)
{
	struct fixture *fixture = context;
	size_t len = strlen(fixture->warnings);

	snprintf(fixture->warnings + len, sizeof(fixture->warnings) - len, "%s\n", text);
	fixture->count++;
	fixture->halting += halts ? 1 : 0;
}

/* How many warnings there are about one of them; they are in fixture->warnings. */
static size_t judge(struct fixture *fixture, size_t index)
{
	fixture->count = fixture->halting = 0;
	fixture->warnings[0] = '\0';
	topic_plan_judge(fixture->config, fixture->plans, fixture->len, index, take, fixture);
	return fixture->count;
}

static void as_the_contract_says(void **state)
{
	struct fixture fixture;

	(void)state;
	make(&fixture, NULL, 0);
	assert_int_equal(fixture.len, 5);
	for (size_t i = 0; i < 3; i++) {
		assert_string_equal(setting(&fixture.plans[i], "cleanup.policy"), "delete");
		assert_string_equal(setting(&fixture.plans[i], "message.timestamp.type"), "LogAppendTime");
	}
	assert_string_equal(fixture.plans[0].name, "fermata.suspends");
	assert_string_equal(setting(&fixture.plans[0], "retention.ms"), "2592000000");
	assert_string_equal(setting(&fixture.plans[1], "retention.ms"), "2592000000");
	assert_string_equal(setting(&fixture.plans[1], "segment.ms"), "86400000");
	assert_string_equal(setting(&fixture.plans[2], "retention.ms"), "2678400000"); /* a day more */
	assert_string_equal(setting(&fixture.plans[3], "cleanup.policy"), "compact");
	assert_string_equal(setting(&fixture.plans[3], "retention.ms"), "");
	assert_string_equal(setting(&fixture.plans[4], "cleanup.policy"), "delete");
	for (size_t i = 0; i < 4; i++)
		assert_true(strtoll(setting(&fixture.plans[i], "max.message.bytes"), NULL, 10) <
		            strtoll(setting(&fixture.plans[4], "max.message.bytes"), NULL, 10));
	for (size_t i = 0; i < fixture.len; i++)
		assert_int_equal(judge(&fixture, i), 0); /* what we make breaks no promise */
	done(&fixture);
}

static void routes_have_topics_too(void **state)
{
	static const char *const overrides[] = { "routes.big.agent=planner",
		                                     "routes.big.topic=fermata.resumes.big" };
	struct fixture fixture;

	(void)state;
	make(&fixture, overrides, 2);
	assert_int_equal(fixture.len, 6);
	assert_string_equal(fixture.plans[3].name, "fermata.resumes.big");
	assert_int_equal(fixture.plans[3].kind, TOPIC_RESUMES);
	done(&fixture);
}

static void no_topic_is_two(void **state)
{
	static const char *const overrides[] = { "topics.gates=fermata.resumes" };
	struct config_request request = { .overrides = overrides, .overrides_len = 1 };
	struct arena *arena = arena_new(1 << 20);
	assert_non_null(arena);
	struct config *config = NULL;
	struct topic_plan *plans;
	struct error error;
	size_t len;

	(void)state;
	if (config_load(&config, &request, &error) == FATE_OK)
		assert_int_equal(topic_plans_make(config, arena, &plans, &len, &error), FATE_FATAL);
	assert_int_equal(error.code, ERR_USAGE);
	assert_non_null(strstr(error.message, "fermata.resumes"));
	config_free(config);
	arena_free(arena);
}

static void promises_broken_by_time(void **state)
{
	struct fixture fixture;

	(void)state;
	make(&fixture, NULL, 0);
	for (size_t i = 0; i < fixture.len; i++)
		snprintf(fixture.plans[i].facts.timestamp_type, 32, "CreateTime");
	for (size_t i = 0; i < fixture.len; i++)
		assert_int_equal(judge(&fixture, i), i < 3 ? 1 : 0); /* gates and dead letters may have it */
	assert_int_equal(judge(&fixture, 1), 1);
	assert_non_null(strstr(fixture.warnings, "fermata.approvals"));
	assert_non_null(strstr(fixture.warnings, "LogAppendTime"));
	done(&fixture);
}

static void promises_broken_by_retention(void **state)
{
	struct fixture fixture;

	(void)state;
	make(&fixture, NULL, 0);
	fixture.plans[2].facts.retention_ms = 30 * DAY_MS;
	assert_int_equal(judge(&fixture, 2), 1);
	fixture.plans[2].facts.retention_ms = 31 * DAY_MS - 1;
	assert_int_equal(judge(&fixture, 2), 1);
	assert_non_null(strstr(fixture.warnings, "retention.ms"));
	fixture.plans[2].facts.retention_ms = -1;
	assert_int_equal(judge(&fixture, 2), 0);
	fixture.plans[1].facts.retention_ms = -1; /* approvals for ever */
	assert_int_equal(judge(&fixture, 2), 0);
	fixture.plans[2].facts.retention_ms = INT64_MAX;
	assert_int_equal(judge(&fixture, 2), 1);
	fixture.plans[2].facts.retention_ms = -1;
	fixture.plans[2].facts.retention_bytes = 1 << 30;
	assert_int_equal(judge(&fixture, 2), 1);
	assert_non_null(strstr(fixture.warnings, "retention.bytes"));
	done(&fixture);
}

static void records_that_go_too_soon(void **state)
{
	struct fixture fixture;

	(void)state;
	make(&fixture, NULL, 0);
	for (size_t i = 0; i < 2; i++) {
		fixture.plans[i].facts.retention_ms = 30 * DAY_MS - 1;
		assert_int_equal(judge(&fixture, i), 1);
		assert_int_equal(fixture.halting, 0);
		assert_non_null(strstr(fixture.warnings, fixture.plans[i].name));
		assert_non_null(strstr(fixture.warnings, "topics.retention"));
		fixture.plans[i].facts.retention_ms = 31 * DAY_MS;
		assert_int_equal(judge(&fixture, i), 0);
		fixture.plans[i].facts.retention_ms = -1;
		assert_int_equal(judge(&fixture, i), 0);
	}
	done(&fixture);
}

static void dead_letters_without_keys(void **state)
{
	static const char *const policies[] = { "compact", "compact,delete", "delete,compact" };
	struct fixture fixture;

	(void)state;
	make(&fixture, NULL, 0);
	for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		snprintf(fixture.plans[4].facts.cleanup, 32, "%s", policies[i]);
		assert_int_equal(judge(&fixture, 4), 1);
		assert_int_equal(fixture.halting, 1);
		assert_non_null(strstr(fixture.warnings, "without a key"));
	}
	done(&fixture);
}

static void promises_broken_by_cleanup(void **state)
{
	struct fixture fixture;

	(void)state;
	make(&fixture, NULL, 0);
	snprintf(fixture.plans[2].facts.cleanup, 32, "compact");
	assert_int_equal(judge(&fixture, 2), 1);
	snprintf(fixture.plans[3].facts.cleanup, 32, "delete");
	assert_int_equal(judge(&fixture, 3), 1);
	assert_non_null(strstr(fixture.warnings, "set it to compact"));
	snprintf(fixture.plans[3].facts.cleanup, 32, "compact,delete");
	assert_int_equal(judge(&fixture, 3), 1);
	done(&fixture);
}

static void promises_broken_by_size(void **state)
{
	struct fixture fixture;
	int64_t limit = 8 << 20;

	(void)state;
	make(&fixture, NULL, 0);
	fixture.plans[0].facts.max_message_bytes = limit - 1;
	assert_int_equal(judge(&fixture, 0), 1);
	fixture.plans[0].facts.max_message_bytes = limit;
	fixture.plans[2].facts.max_message_bytes = limit;
	assert_int_equal(judge(&fixture, 2), 1);
	fixture.plans[0].facts.max_message_bytes = limit / 2; /* then no suspend is larger either */
	assert_int_equal(judge(&fixture, 2), 0);
	fixture.plans[0].facts.max_message_bytes = 20 * limit;
	assert_int_equal(judge(&fixture, 4), 1);
	assert_non_null(strstr(fixture.warnings, "dead letter"));
	done(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_the_contract_says),
		cmocka_unit_test(routes_have_topics_too),
		cmocka_unit_test(no_topic_is_two),
		cmocka_unit_test(promises_broken_by_time),
		cmocka_unit_test(promises_broken_by_retention),
		cmocka_unit_test(records_that_go_too_soon),
		cmocka_unit_test(dead_letters_without_keys),
		cmocka_unit_test(promises_broken_by_cleanup),
		cmocka_unit_test(promises_broken_by_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
