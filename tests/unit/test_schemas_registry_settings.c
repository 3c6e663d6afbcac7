// links: schemas core
/* The settings of a registry's client: which are refused, and what goes out with a question because of them. */
#include "tests/unit/test_registry.h"

/* --- credentials --- */

static void expect_authorization(struct fixture *fixture, const struct registry_settings *settings,
                                 const char *line)
{
	open_with(fixture, settings);
	RULES({ NULL, JSON, "{\"schema\":\"\\\"int\\\"\"}", PLAIN });
	expect_by_id(fixture, FATE_OK, ERR_NONE, "\"int\"");
	char *last = standin_last(fixture->standin);
	if (strstr(last, line) == NULL)
		fail_msg("no '%s' in:\n%s", line, last);
	free(last);
	assert_null(strstr(registry_name(fixture->registry), "hunter"));
	assert_null(strchr(registry_name(fixture->registry), '@'));
}

static void test_credentials(void **state)
{
	struct fixture *fixture = *state;
	char url[128];

	/* fermata:hunter:2 */
	expect_authorization(
		fixture,
		&(struct registry_settings){ .url = fixture->url, .user = "fermata", .password = "hunter:2" },
		"\r\nAuthorization: Basic ZmVybWF0YTpodW50ZXI6Mg==\r\n");
	expect_authorization(fixture, &(struct registry_settings){ .url = fixture->url, .user = "fermata" },
	                     "\r\nAuthorization: Basic ZmVybWF0YTo=\r\n");
	snprintf(url, sizeof(url), "http://fermata:hunter%%3A2@127.0.0.1:%u/api", fixture->standin->port);
	expect_authorization(fixture, &(struct registry_settings){ .url = url },
	                     "\r\nAuthorization: Basic ZmVybWF0YTpodW50ZXI6Mg==\r\n");
	expect_authorization(fixture, &(struct registry_settings){ .url = fixture->url, .token = "hunter.2" },
	                     "\r\nAuthorization: Bearer hunter.2\r\n");
	RULES({ NULL, "401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"",
	        "{\"error_code\":401,\"message\":\"hunter.2 is no token\"}", PLAIN });
	expect_by_id(fixture, FATE_RETRY, ERR_SERVICE, "credentials");
	assert_null(strstr(fixture->error.message, "hunter"));
}

/* The environment of whoever starts a worker is no business of the registry's. */
static void test_no_proxy(void **state)
{
	struct fixture *fixture = *state;

	setenv("http_proxy", "http://127.0.0.1:1", 1);
	setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
	RULES({ NULL, JSON, "{\"schema\":\"\\\"int\\\"\"}", PLAIN });
	expect_by_id(fixture, FATE_OK, ERR_NONE, "\"int\"");
	unsetenv("http_proxy");
	unsetenv("ALL_PROXY");
}

/* --- settings --- */

static void expect_usage(const struct registry_settings *settings, const char *says)
{
	struct registry *registry = (struct registry *)(uintptr_t)1;
	struct error error = { 0 };

	assert_int_equal(registry_open(&registry, settings, &error), FATE_FATAL);
	assert_int_equal(error.code, ERR_USAGE);
	assert_null(registry);
	if (strstr(error.message, says) == NULL)
		fail_msg("'%s' is not in: %s", says, error.message);
	assert_null(strstr(error.message, "hunter"));
}

static void test_settings(void **state)
{
	const char *const urls[] = {
		NULL,
		"",
		"registry",
		"ftp://registry/",
		"file:///etc/passwd",
		"http://",
		"http://hunter2@",
		"http://a:b:c/",
		"http://a,http://b",
		"http://hunter2:hunter2@a b/",
		"http://a:99999/",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++)
		expect_usage(&(struct registry_settings){ .url = urls[i] }, "registry.url");
	expect_usage(&(struct registry_settings){ .url = "http://a/?x=hunter" }, "query");
	expect_usage(&(struct registry_settings){ .url = "http://a/#hunter" }, "fragment");
	expect_usage(&(struct registry_settings){ .url = "http://a", .user = "u", .token = "hunter" }, "one way");
	expect_usage(&(struct registry_settings){ .url = "http://u:hunter@a", .token = "t" }, "one way");
	expect_usage(&(struct registry_settings){ .url = "http://u:hunter@a", .user = "u" }, "names a user too");
	expect_usage(&(struct registry_settings){ .url = "http://a", .password = "hunter" },
	             "without registry.user");
	expect_usage(&(struct registry_settings){ .url = "http://a", .user = "a:b" }, "colon");
	expect_usage(&(struct registry_settings){ .url = "http://a", .token = "hunter\r\nX-Y: z" },
	             "control characters");
	expect_usage(&(struct registry_settings){ .url = "https://a", .key_file = "/etc/hostname" }, "cert_file");
	expect_usage(&(struct registry_settings){ .url = "http://a", .ca_file = "/etc/hostname" }, "is for TLS");
	expect_usage(&(struct registry_settings){ .url = "https://a", .ca_file = "/nowhere/ca.pem" },
	             "registry.ca_file: /nowhere/ca.pem cannot be read: No such file");
	expect_usage(&(struct registry_settings){ .url = "https://a", .cert_file = "/etc" }, "is no file");
}

static void expect_name(const char *url, const char *name)
{
	struct registry *registry;
	struct error error;

	if (registry_open(&registry, &(struct registry_settings){ .url = url }, &error) != FATE_OK)
		fail_msg("%s", error.message);
	assert_string_equal(registry_name(registry), name);
	registry_close(registry);
}

static void test_names(void **state)
{
	struct buffer name;

	(void)state;
	expect_name("http://Registry.Example:8081/", "http://registry.example:8081");
	expect_name("HTTPS://u:p@registry:443/apis/CCompat/v7//", "https://registry/apis/CCompat/v7");
	expect_name("http://[::1]:80", "http://[::1]");
	buffer_init(&name, 100);
	subject_name(SUBJECT_TOPIC, "fermata.suspends", "fermata.v1.SuspendEvent", &name);
	buffer_append_byte(&name, ' ');
	subject_name(SUBJECT_RECORD, "fermata.suspends", "fermata.v1.SuspendEvent", &name);
	buffer_append_byte(&name, ' ');
	subject_name(SUBJECT_TOPIC_RECORD, "fermata.suspends", "fermata.v1.SuspendEvent", &name);
	assert_true(view_equal_text(buffer_view(&name), "fermata.suspends-value fermata.v1.SuspendEvent "
	                                                "fermata.suspends-fermata.v1.SuspendEvent"));
	buffer_done(&name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_credentials),
		TEST(test_no_proxy),
		cmocka_unit_test(test_settings),
		cmocka_unit_test(test_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
