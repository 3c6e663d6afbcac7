// links: core
/* What librdkafka's errors mean for us, the user's properties, and what never gets into a message. */
#include "core/kafka_glue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void errors_have_their_fates(void **state)
{
	const struct {
		const char *name;
		enum fate fate;
		enum error_code code;
	} cases[] = {
		{ "TOPIC_AUTHORIZATION_FAILED", FATE_FATAL, ERR_SERVICE },
		{ "SASL_AUTHENTICATION_FAILED", FATE_FATAL, ERR_SERVICE },
		{ "MSG_SIZE_TOO_LARGE", FATE_REJECT, ERR_TOO_LARGE },
		{ "_FENCED", FATE_RETRY, ERR_FENCED },
		{ "INVALID_PRODUCER_EPOCH", FATE_RETRY, ERR_FENCED },
		{ "UNKNOWN_TOPIC_OR_PART", FATE_RETRY, ERR_SERVICE },
		{ "_ALL_BROKERS_DOWN", FATE_RETRY, ERR_SERVICE },
		{ "AN_ERROR_OF_NEXT_YEAR", FATE_RETRY, ERR_SERVICE },
		{ "_INVALID_ARG", FATE_FATAL, ERR_BUG },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error error;

		assert_int_equal(kafka_error(&error, cases[i].name, "why", "could not do %d", 7), cases[i].fate);
		assert_int_equal(kafka_error_fate(cases[i].name), cases[i].fate);
		assert_int_equal(error.fate, cases[i].fate);
		assert_int_equal(error.code, cases[i].code);
		assert_int_equal(strncmp(error.message, "could not do 7: why", 19), 0);
		assert_int_equal(strncmp(error.native, cases[i].name, sizeof(error.native) - 1), 0);
	}
}

static void a_missing_topic_says_what_to_do(void **state)
{
	struct error error;

	(void)state;
	assert_int_equal(kafka_error(&error, "UNKNOWN_TOPIC_OR_PART", "unknown", "could not read"), FATE_RETRY);
	assert_non_null(strstr(error.message, "fermata topics create"));
}

struct taken {
	int count;
	const char *refuse;
};

static bool take(void *context, const char *name, const char *value, char *why, size_t why_cap)
{
	struct taken *taken = context;

	if (taken->refuse && !strcmp(name, taken->refuse)) {
		strncpy(why, value, why_cap - 1); /* as librdkafka does: it quotes the value */
		return false;
	}
	taken->count++;
	return true;
}

static void properties_are_handed_over(void **state)
{
	const struct property properties[] = { { "client.id", "a" }, { "linger.ms", "1" }, { "Client.Id", "b" } };
	struct taken taken = { 0 };
	struct error error;

	(void)state;
	assert_int_equal(kafka_properties_apply(properties, 3, take, &taken, &error), FATE_OK);
	assert_int_equal(taken.count, 3);
	assert_string_equal(kafka_property_find(properties, 3, "client.id"), "b");
	assert_null(kafka_property_find(properties, 3, "acks"));
}

static void what_the_protocol_owns_is_refused(void **state)
{
	const char *const names[] = { "group.id",         "isolation.level", "enable.idempotence",
		                          "transactional.id", "partitioner",     "ACKS" };
	struct taken taken = { 0 };
	struct error error;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct property property = { names[i], "x" };

		assert_int_equal(kafka_properties_apply(&property, 1, take, &taken, &error), FATE_FATAL);
		assert_int_equal(error.code, ERR_USAGE);
		assert_non_null(strstr(error.message, names[i]));
	}
	assert_int_equal(taken.count, 0);
	assert_false(kafka_property_owned("session.timeout.ms"));
	assert_false(kafka_property_owned("test.mock.num.brokers"));
}

static void a_secret_never_gets_into_a_message(void **state)
{
	const char *const names[] = { "sasl.password", "ssl.key.password", "sasl.oauthbearer.client.secret" };
	struct error error;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct property property = { names[i], "hunter2" };
		struct taken taken = { .refuse = names[i] };

		assert_int_equal(kafka_properties_apply(&property, 1, take, &taken, &error), FATE_FATAL);
		assert_non_null(strstr(error.message, names[i]));
		assert_null(strstr(error.message, "hunter2"));
	}
}

static void times_are_microseconds(void **state)
{
	(void)state;
	assert_int_equal(kafka_time_us(1), 1000);
	assert_int_equal(kafka_time_us(0), 0);
	assert_int_equal(kafka_time_us(-1), TIME_NONE);
	assert_int_equal(kafka_time_us(INT64_MAX), INT64_MAX / 1000 * 1000); /* far in the future, not never */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors_have_their_fates),
		cmocka_unit_test(a_missing_topic_says_what_to_do),
		cmocka_unit_test(properties_are_handed_over),
		cmocka_unit_test(what_the_protocol_owns_is_refused),
		cmocka_unit_test(a_secret_never_gets_into_a_message),
		cmocka_unit_test(times_are_microseconds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
