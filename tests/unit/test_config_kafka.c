// links: config core
/* test_config_kafka.c - properties that pass through, those that are refused, secrets, connection strings. */
#include "test_config_fixture.h"

#include "config/kafka_owned.h"
#include "config/mask.h"

/* The last value of a property on a side (librdkafka takes the last), or NULL. */
static const char *property(const struct fixture *fixture, enum kafka_side side, const char *name)
{
	size_t len;
	const struct property *properties = config_kafka(fixture->config, side, &len);
	const char *value = NULL;
	int found = 0;
	for (size_t i = 0; i < len; i++) {
		if (strcmp(properties[i].name, name) == 0) {
			value = properties[i].value;
			found++;
		}
	}
	assert_true(found <= 1);
	return value;
}

static void properties_pass_through(void **state)
{
	struct fixture *fixture = *state;
	load_good(fixture, "[kafka]\n"
	                   "bootstrap.servers = k:1\n"
	                   "socket.timeout.ms = 1\n"
	                   "consumer.socket.timeout.ms = 2\n"
	                   "producer.linger.ms = 5\n"
	                   "[kafka.consumer]\n"
	                   "session.timeout.ms = 6000\n");
	for (int side = 0; side < KAFKA_SIDE_COUNT; side++)
		assert_string_equal(property(fixture, (enum kafka_side)side, "bootstrap.servers"), "k:1");
	assert_string_equal(property(fixture, KAFKA_CONSUMER, "socket.timeout.ms"), "2");
	assert_string_equal(property(fixture, KAFKA_PRODUCER, "socket.timeout.ms"), "1");
	assert_string_equal(property(fixture, KAFKA_ADMIN, "socket.timeout.ms"), "1");
	assert_string_equal(property(fixture, KAFKA_CONSUMER, "session.timeout.ms"), "6000");
	assert_null(property(fixture, KAFKA_PRODUCER, "session.timeout.ms"));
	assert_string_equal(property(fixture, KAFKA_PRODUCER, "linger.ms"), "5");
	assert_null(property(fixture, KAFKA_CONSUMER, "linger.ms"));
	assert_null(property(fixture, KAFKA_ADMIN, "linger.ms"));
}

static void properties_from_the_environment(void **state)
{
	struct fixture *fixture = *state;
	setenv("FERMATA_KAFKA_CONSUMER_SESSION_TIMEOUT_MS", "7000", 1);
	setenv("FERMATA_KAFKA_SECURITY_PROTOCOL", "SASL_SSL", 1);
	setenv("FERMATA_KAFKA_LOG_LEVEL", "7", 1);
	file_write("pw", "p w\n");
	setenv("FERMATA_KAFKA_SASL_PASSWORD_FILE", "pw", 1);
	load_good(fixture, "kafka.security.protocol = PLAINTEXT\nkafka.sasl.password = other\n");
	assert_string_equal(property(fixture, KAFKA_CONSUMER, "session.timeout.ms"), "7000");
	assert_string_equal(property(fixture, KAFKA_ADMIN, "security.protocol"), "SASL_SSL");
	assert_string_equal(property(fixture, KAFKA_ADMIN, "log_level"), "7");
	assert_string_equal(property(fixture, KAFKA_PRODUCER, "sasl.password"), "p w");
	assert_string_equal(shown(fixture, "kafka.sasl.password").value, "***");
	assert_string_equal(shown(fixture, "kafka.sasl.password").origin,
	                    "environment FERMATA_KAFKA_SASL_PASSWORD_FILE, file pw");
}

static void pem_may_have_lines(void **state)
{
	struct fixture *fixture = *state;
	file_write("pem", "-----BEGIN\nabc\n-----END\n");
	load_good(fixture, "kafka.ssl.key.pem_file = pem\n");
	assert_string_equal(property(fixture, KAFKA_ADMIN, "ssl.key.pem"), "-----BEGIN\nabc\n-----END");
	assert_string_equal(shown(fixture, "kafka.ssl.key.pem").value, "***");
	file_write("pem", "a\x01"
	                  "b");
	load_bad(fixture, "kafka.ssl.key.pem_file = pem\n",
	         "kafka.ssl.key.pem (./fermata.conf:1, file pem): this value has control");
}

static void what_the_protocol_owns_is_refused(void **state)
{
	struct fixture *fixture = *state;
	static const char *const owned[] = {
		"group.id",
		"enable.auto.commit",
		"enable.auto.offset.store",
		"auto.offset.reset",
		"isolation.level",
		"enable.partition.eof",
		"partition.assignment.strategy",
		"group.protocol",
		"transactional.id",
		"enable.idempotence",
		"acks",
		"request.required.acks",
		"partitioner",
		"enable.gapless.guarantee",
		"delivery.report.only.error",
		"message.max.bytes",
		"dr_msg_cb",
		"check.crcs",
		"max.in.flight",
		"retries",
		"group.instance.id",
		"log.queue",
		"Group.Id",
		"opaque",
		"metadata.broker.list",
	};
	static const char *const scopes[] = { "kafka.", "kafka.consumer.", "kafka.producer." };
	for (size_t i = 0; i < sizeof(owned) / sizeof(owned[0]); i++) {
		for (size_t j = 0; j < sizeof(scopes) / sizeof(scopes[0]); j++) {
			char override[128], said[160];
			snprintf(override, sizeof(override), "%s%s=x", scopes[j], owned[i]);
			snprintf(said, sizeof(said), "command line: %s%s is refused: ", scopes[j], owned[i]);
			load_bad_override(fixture, override, said);
		}
	}
	load_bad(fixture, "[kafka]\n\nconsumer.group.id = x\n",
	         "./fermata.conf:3: kafka.consumer.group.id is refused: the group is worker.group");
	load_bad(fixture, "[kafka]\nkafka.debug = x\n", "a section [kafka] gives the \"kafka.\" already");
	load_bad(fixture, "kafka.consumer.bootstrap.servers = x\n", "must see one cluster");
	load_bad(fixture, "kafka.consumer. = x\n", "it names no property");
	load_bad(fixture, "kafka. = x\n", "unknown key kafka.");
	load_bad(fixture, "kafka._file = x\n", "it names no property");
	load_bad(fixture, "kafka.group.id_file = x\n", "the group is worker.group");
	unlink("fermata.conf");
	setenv("FERMATA_KAFKA_GROUP_ID", "x", 1);
	assert_int_equal(load(fixture, NULL, NULL), FATE_FATAL);
	assert_says(&fixture->error, "environment FERMATA_KAFKA_GROUP_ID: kafka.group.id is refused");
}

static void what_is_the_users(void **state)
{
	(void)state;
	static const char *const free_ones[] = {
		"linger.ms",      "session.timeout.ms",    "compression.type",       "client.id",
		"debug",          "test.mock.num.brokers", "transaction.timeout.ms", "group",
		"fetch.max.bytes"
	};
	for (size_t i = 0; i < sizeof(free_ones) / sizeof(free_ones[0]); i++)
		assert_null(kafka_owned_reason(free_ones[i]));
}

static void secrets_by_their_names(void **state)
{
	(void)state;
	assert_true(kafka_is_secret("sasl.password"));
	assert_true(kafka_is_secret("ssl.key.password"));
	assert_true(kafka_is_secret("ssl.keystore.password"));
	assert_true(kafka_is_secret("ssl.key.pem"));
	assert_true(kafka_is_secret("sasl.oauthbearer.client.secret"));
	assert_true(kafka_is_secret("sasl.oauthbearer.config"));
	assert_false(kafka_is_secret("sasl.username"));
	assert_false(kafka_is_secret("ssl.ca.location"));
	assert_false(kafka_is_secret("ssl.certificate.pem"));
	assert_false(kafka_is_secret("bootstrap.servers"));
}

struct masking {
	const char *dsn;
	const char *masked;
};

static const struct masking maskings[] = {
	{ "", "" },
	{ "dbname=x", "dbname=x" },
	{ "host=a password=b user=c", "host=a password=*** user=c" },
	{ "password=b", "password=***" },
	{ "  password  =  b  user=c", "  password  =  ***  user=c" },
	{ "password='a b\\' c' user=d", "password=*** user=d" },
	{ "password=a\\ b user=d", "password=*** user=d" },
	{ "password='never closed user=d", "password=***" },
	{ "password='' user=d", "password=*** user=d" },
	{ "PASSWORD=a sslpassword=b x=y", "PASSWORD=*** sslpassword=*** x=y" },
	{ "user='password=x' host=b", "user='password=x' host=b" },
	{ "passfile=/x password", "passfile=/x ***" },
	{ "password=my secret host=b", "password=*** ***" },
	{ "just-a-name", "***" },
	{ "postgresql://", "postgresql://" },
	{ "postgresql://u@h/db", "postgresql://u@h/db" },
	{ "postgresql://u:p@h:5432,[::1]:5433/db?x=y", "postgresql://u:***@h:5432,[::1]:5433/db?x=y" },
	{ "postgres://:p@h", "postgres://:***@h" },
	{ "postgres://u:@h", "postgres://u:***@h" },
	{ "postgres://u:p%40q@h/db", "postgres://u:***@h/db" },
	{ "postgres://u:p@q@h/db", "postgres://u:***@h/db" },
	{ "postgres://u:p/q@h/db", "postgres://u:***@h/db" },
	{ "postgres://u:p?q@h/db", "postgres://u:***@h/db" },
	{ "postgres://u:p:q@h/db", "postgres://u:***@h/db" },
	{ "postgres://[::1]:5432/db", "postgres://[::1]:5432/db" },
	{ "postgres://h/db?user=u&password=p&sslmode=require",
	  "postgres://h/db?user=u&password=***&sslmode=require" },
	{ "postgres://h/db?pass%77ord=p", "postgres://h/db?pass%77ord=***" },
	{ "postgres://h/db?Password=a=b&", "postgres://h/db?Password=***&" },
	{ "postgres://h/db?user=a@b&sslpassword=q", "postgres://h/db?user=a@b&sslpassword=***" },
	{ "postgres:///db?host=/run/x&password=", "postgres:///db?host=/run/x&password=***" },
	{ "postgres://h?password", "postgres://h?password" },
	{ "postgres://h?%", "postgres://h?%" },
	{ "://u:p@h", "***" },
};

static void connection_strings(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(maskings) / sizeof(maskings[0]); i++) {
		/* From the heap, so that a step too far is noticed. */
		char *dsn = strdup(maskings[i].dsn);
		struct buffer out;
		assert_non_null(dsn);
		buffer_init(&out, 4096);
		mask_dsn(dsn, &out);
		buffer_append_byte(&out, 0);
		assert_false(buffer_failed(&out));
		assert_string_equal((const char *)out.data, maskings[i].masked);
		buffer_done(&out);
		free(dsn);
	}
}

static void secrets_are_masked_where_they_are_shown(void **state)
{
	struct fixture *fixture = *state;
	load_good(fixture, "postgres.dsn = postgresql://u:hunter2@h/db\nkafka.sasl.password = hunter2\n"
	                   "kafka.producer.ssl.key.password = hunter2\nkafka.sasl.username = me\n");
	assert_string_equal(config_text(fixture->config, PARAM_POSTGRES_DSN), "postgresql://u:hunter2@h/db");
	assert_string_equal(shown(fixture, "postgres.dsn").value, "postgresql://u:***@h/db");
	assert_string_equal(shown(fixture, "kafka.sasl.password").value, "***");
	assert_string_equal(shown(fixture, "kafka.producer.ssl.key.password").value, "***");
	assert_string_equal(shown(fixture, "kafka.sasl.username").value, "me");
	assert_string_equal(shown(fixture, "kafka.sasl.username").origin, "./fermata.conf:4");
	assert_string_equal(shown(fixture, "kafka.bootstrap.servers").origin, "default");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(properties_pass_through),
		TEST(properties_from_the_environment),
		TEST(pem_may_have_lines),
		TEST(what_the_protocol_owns_is_refused),
		cmocka_unit_test(what_is_the_users),
		cmocka_unit_test(secrets_by_their_names),
		cmocka_unit_test(connection_strings),
		TEST(secrets_are_masked_where_they_are_shown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
