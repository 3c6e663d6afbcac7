// links: config core
/* test_config.c - precedence, unknown keys, KEY_file, and the shipped file. */
#include "test_config_fixture.h"

#include "core/log.h"

#include <sys/stat.h>

static void nothing_given_gives_the_defaults(void **state)
{
	struct fixture *fixture = *state;
	assert_int_equal(load(fixture, NULL, NULL), FATE_OK);
	const struct config *config = fixture->config;
	size_t len;
	assert_null(config_file(config));
	config_warnings(config, &len);
	assert_int_equal(len, 0);
	assert_string_equal(config_text(config, PARAM_KAFKA_BOOTSTRAP_SERVERS), "localhost:9092");
	assert_null(config_text(config, PARAM_POSTGRES_DSN));
	assert_true(config_flag(config, PARAM_POSTGRES_PREPARED));
	assert_string_equal(config_text(config, PARAM_TOPICS_SUSPENDS), "fermata.suspends");
	assert_string_equal(config_text(config, PARAM_TOPICS_APPROVALS), "fermata.approvals");
	assert_string_equal(config_text(config, PARAM_TOPICS_RESUMES), "fermata.resumes");
	assert_string_equal(config_text(config, PARAM_TOPICS_GATES), "fermata.gates");
	assert_string_equal(config_text(config, PARAM_TOPICS_DEAD_LETTERS), "fermata.dead-letters");
	assert_int_equal(config_number(config, PARAM_TOPICS_PARTITIONS), 6);
	assert_int_equal(config_number(config, PARAM_TOPICS_REPLICATION), -1);
	assert_int_equal(config_number(config, PARAM_TOPICS_RETENTION), INT64_C(30) * 86400 * 1000);
	assert_int_equal(config_number(config, PARAM_LIMITS_RECORD_BYTES), 8 << 20);
	assert_int_equal(config_choice(config, PARAM_LIMITS_BOUNDARY), CONFIG_BOUNDARY_STEP);
	assert_false(config_flag(config, PARAM_DECISIONS_FORBID_SELF));
	assert_false(config_flag(config, PARAM_DECISIONS_REQUIRE_DIGEST));
	assert_false(config_flag(config, PARAM_DECISIONS_ALLOW_EDITS));
	assert_null(config_text(config, PARAM_WORKER_METRICS_LISTEN));
	assert_int_equal(config_choice(config, PARAM_LOG_LEVEL), LOG_LEVEL_INFO);
	assert_int_equal(config_choice(config, PARAM_LOG_FORMAT), LOG_FORMAT_TEXT);
	assert_true(config_flag(config, PARAM_GATES_INCLUDE_ACTION));
	const char *const *words = config_list(config, PARAM_VAULT_KEYRING_COMMAND, &len);
	assert_int_equal(len, 0);
	assert_null(words[0]);
	assert_string_equal(config_origin(config, PARAM_LOG_LEVEL), "default");
}

static void later_layers_win(void **state)
{
	struct fixture *fixture = *state;
	load_good(fixture, "log.level = error\n");
	assert_int_equal(config_choice(fixture->config, PARAM_LOG_LEVEL), LOG_LEVEL_ERROR);
	assert_string_equal(config_origin(fixture->config, PARAM_LOG_LEVEL), "./fermata.conf:1");
	assert_string_equal(config_file(fixture->config), "./fermata.conf");

	setenv("FERMATA_LOG_LEVEL", "warn", 1);
	assert_int_equal(load(fixture, NULL, NULL), FATE_OK);
	assert_int_equal(config_choice(fixture->config, PARAM_LOG_LEVEL), LOG_LEVEL_WARN);
	assert_string_equal(config_origin(fixture->config, PARAM_LOG_LEVEL), "environment FERMATA_LOG_LEVEL");

	const char *const overrides[] = { "log.level=info", "log.level=debug", NULL };
	assert_int_equal(load(fixture, NULL, overrides), FATE_OK);
	assert_int_equal(config_choice(fixture->config, PARAM_LOG_LEVEL), LOG_LEVEL_DEBUG);
	assert_string_equal(config_origin(fixture->config, PARAM_LOG_LEVEL), "command line");
}

static void a_bad_value_that_does_not_count_does_no_harm(void **state)
{
	struct fixture *fixture = *state;
	file_write("fermata.conf", "log.level = loud\npostgres.dsn_file = /nowhere\n");
	const char *const overrides[] = { "log.level=debug", "postgres.dsn=dbname=x", NULL };
	assert_int_equal(load(fixture, NULL, overrides), FATE_OK);
	assert_string_equal(config_text(fixture->config, PARAM_POSTGRES_DSN), "dbname=x");
}

static void the_file_is_looked_for_in_order(void **state)
{
	struct fixture *fixture = *state;
	file_write("fermata.conf", "worker.group = here\n");
	file_write("variable.conf", "worker.group = variable\n");
	file_write("option.conf", "worker.group = option\n");
	setenv("FERMATA_CONFIG", "variable.conf", 1);
	assert_int_equal(load(fixture, "option.conf", NULL), FATE_OK);
	assert_string_equal(config_text(fixture->config, PARAM_WORKER_GROUP), "option");
	assert_int_equal(load(fixture, NULL, NULL), FATE_OK);
	assert_string_equal(config_text(fixture->config, PARAM_WORKER_GROUP), "variable");
	setenv("FERMATA_CONFIG", "", 1);
	assert_int_equal(load(fixture, NULL, NULL), FATE_OK);
	assert_string_equal(config_text(fixture->config, PARAM_WORKER_GROUP), "here");
}

static void a_named_file_must_be_there(void **state)
{
	struct fixture *fixture = *state;
	assert_int_equal(load(fixture, "missing.conf", NULL), FATE_FATAL);
	assert_int_equal(error_exit_code(&fixture->error), 2);
	assert_says(&fixture->error, "missing.conf");
	setenv("FERMATA_CONFIG", "/nowhere/x.conf", 1);
	assert_int_equal(load(fixture, NULL, NULL), FATE_FATAL);
	assert_says(&fixture->error, "/nowhere/x.conf");
	unsetenv("FERMATA_CONFIG");
	assert_int_equal(mkdir("fermata.conf", 0700), 0);
	assert_int_equal(load(fixture, NULL, NULL), FATE_FATAL);
	assert_says(&fixture->error, "directory");
}

static void unknown_keys_name_the_nearest(void **state)
{
	struct fixture *fixture = *state;
	load_bad(fixture, "\n\ntopic.suspends = x\n",
	         "./fermata.conf:3: unknown key topic.suspends: did you mean topics.suspends?");
	load_bad(fixture, "[worker]\nmetric.listen = x\n",
	         "./fermata.conf:2: unknown key worker.metric.listen: did you mean worker.metrics.listen?");
	load_bad(fixture, "Log.Level = x\n", "did you mean log.level?");
	load_bad(fixture, "log.lveel = x\n", "did you mean log.level?");
	load_bad(fixture, "bootstrap.servers = x\n", "did you mean kafka.bootstrap.servers?");
	load_bad(fixture, "kafak.sasl.password = x\n", "did you mean kafka.sasl.password?");
	load_bad(fixture, "route.a.topic = x\n", "did you mean routes.a.topic?");
	load_bad(fixture, "routes.a.topics = x\n", "did you mean routes.a.topic?");
	load_bad(fixture, "routes.a = x\n", "did you mean routes.a.");
	load_bad(fixture, "log.level_file = x\n", "unknown key log.level_file: did you mean log.level?");
	load_bad(fixture, "x = secret-value\n", "unknown key x");
	assert_null(strstr(fixture->error.message, "secret-value"));
	unlink("fermata.conf");
	load_bad_override(fixture, "postgres.dns=x",
	                  "command line: unknown key postgres.dns: did you mean postgres.dsn?");
	load_bad_override(fixture, "loglevel", "-X takes key=value");
	load_bad_override(fixture, "=x", "-X takes key=value");
}

static void unknown_variables_are_warnings(void **state)
{
	struct fixture *fixture = *state;
	setenv("FERMATA_SERVICE_HOST", "10.0.0.1", 1);
	setenv("FERMATA_PORT_9464_TCP", "tcp://10.0.0.1:9464", 1);
	setenv("FERMATA_KAFKA_SERVICE_HOST", "10.0.0.2", 1);
	setenv("FERMATA_KAFKA_SERVICE_PORT_CLIENTS", "9092", 1);
	setenv("FERMATA_KAFKA_PORT", "tcp://10.0.0.2:9092", 1);
	setenv("FERMATA_KAFKA_PORT_9092_TCP_ADDR", "10.0.0.2", 1);
	setenv("FERMATA_LOG_LEVLE", "debug", 1);
	setenv("FERMATA_log_level", "debug", 1);
	setenv("FERMATA_", "x", 1);
	setenv("FERMATA_EMPTY", "", 1);
	setenv("FERMATA_LOG_LEVEL", "", 1);
	setenv("FERMATAX", "x", 1);
	assert_int_equal(load(fixture, NULL, NULL), FATE_OK);
	size_t len;
	config_warnings(fixture->config, &len);
	assert_int_equal(len, 9);
	assert_true(
		warned(fixture, "FERMATA_LOG_LEVLE is no key and is ignored: did you mean FERMATA_LOG_LEVEL?"));
	assert_true(warned(fixture, "FERMATA_KAFKA_PORT_9092_TCP_ADDR is no key"));
	assert_string_equal(config_origin(fixture->config, PARAM_LOG_LEVEL), "default");
	config_kafka(fixture->config, KAFKA_CONSUMER, &len);
	assert_int_equal(len, 1);
}

static void variables_fold_dots_and_underscores(void **state)
{
	struct fixture *fixture = *state;
	setenv("FERMATA_KAFKA_BOOTSTRAP_SERVERS", "a:1,b:2", 1);
	setenv("FERMATA_TOPICS_DEAD_LETTERS", "dead", 1);
	setenv("FERMATA_WORKER_METRICS_LISTEN", "[::1]:9464", 1);
	setenv("FERMATA_VAULT_KEYRING_FILE", "/keys", 1);
	setenv("FERMATA_POSTGRES_DSN", "host=x # not a comment", 1);
	assert_int_equal(load(fixture, NULL, NULL), FATE_OK);
	assert_string_equal(config_text(fixture->config, PARAM_KAFKA_BOOTSTRAP_SERVERS), "a:1,b:2");
	assert_string_equal(config_text(fixture->config, PARAM_TOPICS_DEAD_LETTERS), "dead");
	assert_string_equal(config_text(fixture->config, PARAM_WORKER_METRICS_LISTEN), "[::1]:9464");
	assert_string_equal(config_text(fixture->config, PARAM_VAULT_KEYRING_FILE), "/keys");
	assert_string_equal(config_text(fixture->config, PARAM_POSTGRES_DSN), "host=x # not a comment");
}

static void every_key_can_be_a_variable(void **state)
{
	struct fixture *fixture = *state;
	for (int i = 0; i < PARAM_COUNT; i++) {
		char name[128] = "FERMATA_";
		size_t at = strlen(name);
		for (const char *c = config_key((enum param)i); *c != '\0'; c++)
			name[at++] = *c == '.' ? '_' : (char)(*c >= 'a' && *c <= 'z' ? *c - 32 : *c);
		name[at] = '\0';
		setenv(name, "\x01", 1); /* no value of any key, but for the lists and texts that only dislike it */
		assert_int_equal(load(fixture, NULL, NULL), FATE_FATAL);
		assert_says(&fixture->error, name);
		assert_says(&fixture->error, config_key((enum param)i));
		unsetenv(name);
	}
}

static void a_key_may_live_in_a_file(void **state)
{
	struct fixture *fixture = *state;
	file_write("dsn", "host=db password=pw\n");
	load_good(fixture, "[postgres]\ndsn_file = dsn\n");
	assert_string_equal(config_text(fixture->config, PARAM_POSTGRES_DSN), "host=db password=pw");
	assert_string_equal(config_origin(fixture->config, PARAM_POSTGRES_DSN), "./fermata.conf:2, file dsn");
	assert_string_equal(shown(fixture, "postgres.dsn").value, "host=db password=***");

	file_write("dsn", "dbname=x\r\n");
	setenv("FERMATA_POSTGRES_DSN_FILE", "dsn", 1);
	unlink("fermata.conf");
	assert_int_equal(load(fixture, NULL, NULL), FATE_OK);
	assert_string_equal(config_text(fixture->config, PARAM_POSTGRES_DSN), "dbname=x");

	file_write("dsn", "dbname=y\n\n"); /* one newline only is taken off, and a newline is no DSN */
	assert_int_equal(load(fixture, NULL, NULL), FATE_FATAL);
	assert_says(&fixture->error, "control characters");
	assert_null(strstr(fixture->error.message, "dbname"));
}

static void key_files_go_wrong(void **state)
{
	struct fixture *fixture = *state;
	load_bad(fixture, "postgres.dsn_file = /nowhere/dsn\n",
	         "postgres.dsn_file (./fermata.conf:1): cannot open /nowhere/dsn");
	load_bad(fixture, "postgres.dsn_file =\n", "names no file");
	load_bad(fixture, "postgres.dsn = a\npostgres.dsn_file = b\n",
	         "postgres.dsn and postgres.dsn_file are both given (./fermata.conf:1, ./fermata.conf:2)");
	load_bad(fixture, "kafka.sasl.password_file = b\nkafka.sasl.password = a\n",
	         "kafka.sasl.password and kafka.sasl.password_file are both given");
	file_write_bytes("nul", "a\0b", 3);
	load_bad(fixture, "postgres.dsn_file = nul\n", "NUL");
	char large[65537];
	memset(large, 'x', sizeof(large));
	file_write_bytes("large", large, sizeof(large));
	load_bad(fixture, "kafka.ssl.key.pem_file = large\n", "larger than 64 KiB");
}

static void a_layer_above_replaces_key_and_key_file(void **state)
{
	struct fixture *fixture = *state;
	file_write("dsn", "dbname=file\n");
	file_write("fermata.conf", "postgres.dsn = dbname=direct\n");
	setenv("FERMATA_POSTGRES_DSN_FILE", "dsn", 1);
	assert_int_equal(load(fixture, NULL, NULL), FATE_OK);
	assert_string_equal(config_text(fixture->config, PARAM_POSTGRES_DSN), "dbname=file");
	const char *const overrides[] = { "postgres.dsn=", NULL };
	assert_int_equal(load(fixture, NULL, overrides), FATE_OK);
	assert_null(config_text(fixture->config, PARAM_POSTGRES_DSN));
}

static void a_key_given_twice_in_the_file_is_a_warning(void **state)
{
	struct fixture *fixture = *state;
	load_good(fixture, "log.level = error\nlog.level = debug\n");
	assert_int_equal(config_choice(fixture->config, PARAM_LOG_LEVEL), LOG_LEVEL_DEBUG);
	assert_true(warned(fixture, "./fermata.conf:2: log.level was given before (./fermata.conf:1)"));
}

static void what_must_fit_together(void **state)
{
	struct fixture *fixture = *state;
	load_bad(fixture, "topics.gates = fermata.suspends\n",
	         "topics.suspends and topics.gates are the same topic");
	load_bad(fixture, "topics.resumes = fermata.approvals\n", "topics.approvals and topics.resumes");
	load_bad(fixture, "routes.a.topic = fermata.gates\n", "topics.gates and routes.a.topic");
	load_bad(fixture, "vault.keyring_file = /k\nvault.keyring_command = /bin/k\n",
	         "keys come from one source");
	load_good(fixture, "routes.a.topic = fermata.resumes\nroutes.a.agent = x\n");
}

/* config/fermata.conf says nothing but defaults: read as it is, and with every line brought to life. */
static void the_shipped_file_is_the_defaults(void **state)
{
	struct fixture *fixture = *state;
	assert_int_equal(load(fixture, FERMATA_SOURCE_DIR "/config/fermata.conf", NULL), FATE_OK);
	size_t len;
	config_warnings(fixture->config, &len);
	assert_int_equal(len, 0);

	FILE *from = fopen(FERMATA_SOURCE_DIR "/config/fermata.conf", "r"), *to = fopen("live.conf", "w");
	char line[1024];
	assert_true(from != NULL && to != NULL);
	while (fgets(line, sizeof(line), from) != NULL) {
		bool is_comment = line[0] == '#' && line[1] == ' ';
		bool is_example = strstr(line, "/run/secrets") != NULL; /* no such file here */
		if (!is_comment && !is_example)
			fputs(line[0] == '#' ? line + 1 : line, to);
	}
	fclose(from);
	fclose(to);
	if (load(fixture, "live.conf", NULL) != FATE_OK)
		fail_msg("%s", fixture->error.message);
	struct fixture plain = { .config = NULL };
	assert_int_equal(load(&plain, NULL, NULL), FATE_OK);
	for (int i = 0; i < PARAM_COUNT; i++) {
		const char *key = config_key((enum param)i);
		assert_string_equal(shown(fixture, key).value, shown(&plain, key).value);
		assert_non_null(strstr(config_origin(fixture->config, (enum param)i), "live.conf:"));
	}
	assert_string_equal(config_routes_text(fixture->config), config_routes_text(plain.config));
	config_free(plain.config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_given_gives_the_defaults),
		TEST(later_layers_win),
		TEST(a_bad_value_that_does_not_count_does_no_harm),
		TEST(the_file_is_looked_for_in_order),
		TEST(a_named_file_must_be_there),
		TEST(unknown_keys_name_the_nearest),
		TEST(unknown_variables_are_warnings),
		TEST(variables_fold_dots_and_underscores),
		TEST(every_key_can_be_a_variable),
		TEST(a_key_may_live_in_a_file),
		TEST(key_files_go_wrong),
		TEST(a_layer_above_replaces_key_and_key_file),
		TEST(a_key_given_twice_in_the_file_is_a_warning),
		TEST(what_must_fit_together),
		TEST(the_shipped_file_is_the_defaults),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
