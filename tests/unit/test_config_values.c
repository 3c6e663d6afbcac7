// links: config core
/* test_config_values.c - types, units, bounds, and what the messages say. */
#include "test_config_fixture.h"

#include "config/nearest.h"

static int64_t number(struct fixture *fixture, enum param param, const char *value)
{
	char override[256];
	snprintf(override, sizeof(override), "%s=%s", config_key(param), value);
	const char *const overrides[] = { override, NULL };
	if (load(fixture, NULL, overrides) != FATE_OK)
		fail_msg("%s", fixture->error.message);
	return config_number(fixture->config, param);
}

static void sizes(void **state)
{
	struct fixture *fixture = *state;
	assert_int_equal(number(fixture, PARAM_LIMITS_RECORD_BYTES, "256"), 256);
	assert_int_equal(number(fixture, PARAM_LIMITS_RECORD_BYTES, "300B"), 300);
	assert_int_equal(number(fixture, PARAM_LIMITS_RECORD_BYTES, "1KiB"), 1024);
	assert_int_equal(number(fixture, PARAM_LIMITS_RECORD_BYTES, "2 mib"), 2 << 20);
	assert_int_equal(number(fixture, PARAM_LIMITS_RECORD_BYTES, "256MiB"), 256 << 20);
	load_bad_override(
		fixture, "limits.record_bytes=257MiB",
		"limits.record_bytes (command line): \"257MiB\" is out of bounds: 256 B to 256 MiB are allowed");
	load_bad_override(fixture, "limits.record_bytes=255", "out of bounds");
	load_bad_override(fixture, "limits.record_bytes=-1", "out of bounds");
	load_bad_override(fixture, "limits.record_bytes=9223372036854775807GiB", "out of bounds");
	load_bad_override(fixture, "limits.record_bytes=99999999999999999999999", "out of bounds");
	load_bad_override(fixture, "limits.record_bytes=1MB",
	                  "is not a size: a whole number and B, KiB, MiB or GiB");
	load_bad_override(fixture, "limits.record_bytes=1.5MiB", "is not a size");
	load_bad_override(fixture, "limits.record_bytes=", "is not a size");
	load_bad_override(fixture, "limits.record_bytes= 1MiB", "is not a size");
	load_bad_override(fixture, "limits.record_bytes=+1MiB", "is not a size");
	load_bad_override(fixture, "limits.record_bytes=0x100000", "is not a size");
}

static void durations(void **state)
{
	struct fixture *fixture = *state;
	assert_int_equal(number(fixture, PARAM_WORKER_UNCLAIMED_TTL, "1000ms"), 1000);
	assert_int_equal(number(fixture, PARAM_WORKER_UNCLAIMED_TTL, "2s"), 2000);
	assert_int_equal(number(fixture, PARAM_WORKER_UNCLAIMED_TTL, "3m"), 180000);
	assert_int_equal(number(fixture, PARAM_WORKER_UNCLAIMED_TTL, "4 h"), 14400000);
	assert_int_equal(number(fixture, PARAM_WORKER_UNCLAIMED_TTL, "36500d"), INT64_C(3153600000000));
	load_bad_override(fixture, "worker.unclaimed_ttl=36501d", "1 s to 36500 d are allowed");
	load_bad_override(fixture, "worker.unclaimed_ttl=0", "out of bounds");
	load_bad_override(fixture, "worker.unclaimed_ttl=5000",
	                  "is not a duration: a whole number and ms, s, m, h or d");
	load_bad_override(fixture, "worker.unclaimed_ttl=5M", "is not a duration");
	load_bad_override(fixture, "worker.unclaimed_ttl=7 days", "is not a duration");
}

static void counts(void **state)
{
	struct fixture *fixture = *state;
	assert_int_equal(number(fixture, PARAM_TOPICS_REPLICATION, "3"), 3);
	assert_int_equal(number(fixture, PARAM_TOPICS_REPLICATION, "-1"), -1);
	load_bad(fixture, "[topics]\npartitions = 0\n",
	         "topics.partitions (./fermata.conf:2): \"0\" is out of bounds: 1 to 10000 are allowed");
	unlink("fermata.conf");
	setenv("FERMATA_TOPICS_PARTITIONS", "six", 1);
	assert_int_equal(load(fixture, NULL, NULL), FATE_FATAL);
	assert_says(&fixture->error,
	            "topics.partitions (environment FERMATA_TOPICS_PARTITIONS): \"six\" is not a whole number");
}

static void flags_and_choices(void **state)
{
	struct fixture *fixture = *state;
	static const struct {
		const char *override;
		bool on;
	} cases[] = { { "postgres.prepared=true", true }, { "postgres.prepared=Yes", true },
		          { "postgres.prepared=ON", true },   { "postgres.prepared=false", false },
		          { "postgres.prepared=no", false },  { "postgres.prepared=off", false } };
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *const overrides[] = { cases[i].override, NULL };
		assert_int_equal(load(fixture, NULL, overrides), FATE_OK);
		assert_int_equal(config_flag(fixture->config, PARAM_POSTGRES_PREPARED), cases[i].on);
	}
	load_bad_override(fixture, "postgres.prepared=1", "is not a flag: true, yes, on, false, no or off");
	load_bad_override(fixture, "postgres.prepared=", "is not a flag");
	const char *const strict[] = { "limits.boundary=strict", NULL };
	assert_int_equal(load(fixture, NULL, strict), FATE_OK);
	assert_int_equal(config_choice(fixture->config, PARAM_LIMITS_BOUNDARY), CONFIG_BOUNDARY_STRICT);
	load_bad_override(fixture, "log.level=verbose",
	                  "log.level (command line): \"verbose\" is not one of error|warn|info|debug");
	load_bad_override(fixture, "log.level=", "is not one of");
	load_bad_override(fixture, "log.level=info|debug", "is not one of");
	load_bad_override(fixture, "log.level=inf", "is not one of");
}

static void forms_of_texts(void **state)
{
	struct fixture *fixture = *state;
	load_bad_override(fixture, "topics.suspends=", "is empty");
	load_bad_override(fixture, "topics.suspends=a b", "is not a topic's name");
	load_bad_override(fixture, "topics.suspends=..", "is not a topic's name");
	load_bad_override(fixture, "worker.group=a/b", "is not a group's name");
	load_bad_override(fixture, "worker.metrics.listen=9464", "is not HOST:PORT");
	load_bad_override(fixture, "worker.metrics.listen=:9464", "is not HOST:PORT");
	load_bad_override(fixture, "worker.metrics.listen=::1:9464", "is not HOST:PORT");
	load_bad_override(fixture, "worker.metrics.listen=[]:9464", "is not HOST:PORT");
	load_bad_override(fixture, "worker.metrics.listen=a:65536", "is not HOST:PORT");
	load_bad_override(fixture, "worker.metrics.listen=a:", "is not HOST:PORT");
	load_bad_override(fixture, "registry.url=registry:8081", "is not a URL");
	load_bad_override(fixture, "registry.url=http://", "is not a URL");
	load_bad_override(fixture, "schemas.path=a\nb", "has control characters");
	load_bad_override(fixture, "schemas.path=\xff", "is not UTF-8");
	char longest[300] = "topics.suspends=";
	memset(longest + strlen(longest), 'x', 250);
	load_bad_override(fixture, longest, "is too long: at most 249 bytes");
	const char *const good[] = { "registry.url=https://user:pw@registry/", "worker.metrics.listen=0.0.0.0:0",
		                         NULL };
	assert_int_equal(load(fixture, NULL, good), FATE_OK);
	assert_string_equal(shown(fixture, "registry.url").value, "https://user:***@registry/");
}

static void secrets_are_not_shown(void **state)
{
	struct fixture *fixture = *state;
	const char *const given[] = { "registry.password=hunter2", "registry.token=hunter2", NULL };
	assert_int_equal(load(fixture, NULL, given), FATE_OK);
	assert_string_equal(config_text(fixture->config, PARAM_REGISTRY_TOKEN), "hunter2");
	assert_string_equal(shown(fixture, "registry.password").value, "***");
	assert_string_equal(shown(fixture, "registry.token").value, "***");
	const char *const nothing[] = { "registry.user=me", NULL };
	assert_int_equal(load(fixture, NULL, nothing), FATE_OK);
	assert_string_equal(shown(fixture, "registry.password").value, "");
	assert_string_equal(shown(fixture, "registry.user").value, "me");
	load_bad_override(fixture, "registry.token=hunter2\n", "this value has control characters");
	assert_null(strstr(fixture->error.message, "hunter2"));
}

static void messages_stay_on_one_line(void **state)
{
	struct fixture *fixture = *state;
	char value[5000] = "log.level=\x1b[31m\n";
	memset(value + strlen(value), 'y', 4000);
	load_bad_override(fixture, value, "\"?[31m?yyy");
	assert_says(&fixture->error, "yyy...\" is not one of");
	assert_true(strlen(fixture->error.message) < 255);
	for (const char *c = fixture->error.message; *c != '\0'; c++)
		assert_true((unsigned char)*c >= 0x20);
	load_bad_override(fixture, "log.level=\xc3\xbc", "\"\xc3\xbc\" is not one of");
	load_bad_override(fixture, "log.level=\xc3", "\"?\" is not one of");
	load_bad_override(fixture, "registry.url=ftp://me:hunter2@x", "this value is not a URL");
	assert_null(strstr(fixture->error.message, "hunter2"));
}

static const char *const *words(struct fixture *fixture, const char *override, size_t *ret_len)
{
	const char *const overrides[] = { override, NULL };
	if (load(fixture, NULL, overrides) != FATE_OK)
		fail_msg("%s", fixture->error.message);
	return config_list(fixture->config, PARAM_VAULT_KEYRING_COMMAND, ret_len);
}

static void lists(void **state)
{
	struct fixture *fixture = *state;
	size_t len;
	const char *const *list =
		words(fixture, "vault.keyring_command= /bin/kms  get\t'a b' c'd e'f '' 'it''s' ", &len);
	assert_int_equal(len, 6);
	assert_string_equal(list[0], "/bin/kms");
	assert_string_equal(list[1], "get");
	assert_string_equal(list[2], "a b");
	assert_string_equal(list[3], "cd ef");
	assert_string_equal(list[4], "");
	assert_string_equal(list[5], "it's");
	assert_null(list[6]);
	list = words(fixture, "vault.keyring_command=a b c d", &len);
	assert_int_equal(len, 4);
	assert_null(list[4]);
	words(fixture, "vault.keyring_command=  ", &len);
	assert_int_equal(len, 0);
	load_bad_override(fixture, "vault.keyring_command=a 'b", "has a single quote that is not closed");
}

static void distances(void **state)
{
	(void)state;
	assert_int_equal(nearest_distance("", ""), 0);
	assert_int_equal(nearest_distance("", "abc"), 3);
	assert_int_equal(nearest_distance("abc", ""), 3);
	assert_int_equal(nearest_distance("kitten", "sitting"), 3);
	assert_int_equal(nearest_distance("ab", "ba"), 1);
	assert_int_equal(nearest_distance("ca", "abc"), 3);
	char a[400], b[400];
	memset(a, 'x', sizeof(a) - 1);
	memset(b, 'x', sizeof(b) - 1);
	a[399] = b[399] = '\0';
	assert_int_equal(nearest_distance(a, b), 288); /* what is beyond 255 counts on both sides */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(sizes),
		TEST(durations),
		TEST(counts),
		TEST(flags_and_choices),
		TEST(forms_of_texts),
		TEST(secrets_are_not_shown),
		TEST(messages_stay_on_one_line),
		TEST(lists),
		cmocka_unit_test(distances),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
