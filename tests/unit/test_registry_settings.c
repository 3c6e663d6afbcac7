// links: worker config schemas core
/* What the configuration says about the registry arrives at its client. */
#include "tests/unit/test_config_fixture.h"

#include "worker/registry_settings.h"

static void named(struct fixture *fixture, enum record_type type, const char *topic, const char *wanted)
{
	char subject[REGISTRY_SUBJECT_MAX];

	assert_int_equal(registry_subject_of(fixture->config, type, topic, subject, &fixture->error), FATE_OK);
	assert_string_equal(subject, wanted);
}

static void none_is_none(void **state)
{
	struct fixture *fixture = *state;
	struct registry_settings settings;
	const char *const nothing[] = { NULL };

	assert_int_equal(load(fixture, NULL, nothing), FATE_OK);
	registry_settings_of(fixture->config, &settings);
	assert_null(settings.url);
	assert_null(settings.token);
	assert_int_equal(settings.timeout_ms, 5000);
	named(fixture, RECORD_GATE, registry_topic_of(fixture->config, RECORD_GATE), "fermata.gates-value");
}

static void everything_arrives(void **state)
{
	struct fixture *fixture = *state;
	struct registry_settings settings;
	const char *const given[] = { "registry.url=https://r/x",
		                          "registry.user=me",
		                          "registry.password=pw",
		                          "registry.token_file=token",
		                          "registry.ca_file=ca.pem",
		                          "registry.cert_file=cert.pem",
		                          "registry.key_file=key.pem",
		                          "registry.timeout=250ms",
		                          "registry.subject_name_strategy=topic_record",
		                          NULL };

	file_write("token", "secret\n");
	if (load(fixture, NULL, given) != FATE_OK)
		fail_msg("%s", fixture->error.message);
	registry_settings_of(fixture->config, &settings);
	assert_string_equal(settings.url, "https://r/x");
	assert_string_equal(settings.user, "me");
	assert_string_equal(settings.password, "pw");
	assert_string_equal(settings.token, "secret");
	assert_string_equal(settings.ca_file, "ca.pem");
	assert_string_equal(settings.cert_file, "cert.pem");
	assert_string_equal(settings.key_file, "key.pem");
	assert_int_equal(settings.timeout_ms, 250);
	named(fixture, RECORD_RESUME, "other", "other-fermata.v1.ResumeEvent");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(none_is_none, fixture_open, fixture_close),
		cmocka_unit_test_setup_teardown(everything_arrives, fixture_open, fixture_close),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
