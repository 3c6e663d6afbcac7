#include "core/kafka_glue.h"

#include "core/log.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* What an error of librdkafka means for us. The worst fates first. */
struct fault {
	const char *name; /* rd_kafka_err2name */
	enum fate fate;
	enum error_code code;
	const char *advice; /* what to do, or NULL */
};

static const char topics_advice[] = "run `fermata topics create`";
static const char rights_advice[] = "give this principal the rights (docs: Kafka ACLs)";
static const char login_advice[] = "check kafka.sasl.* and kafka.security.protocol";

static const struct fault faults[] = {
	{ "CLUSTER_AUTHORIZATION_FAILED", FATE_FATAL, ERR_SERVICE, rights_advice },
	{ "GROUP_AUTHORIZATION_FAILED", FATE_FATAL, ERR_SERVICE, rights_advice },
	{ "TOPIC_AUTHORIZATION_FAILED", FATE_FATAL, ERR_SERVICE, rights_advice },
	{ "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", FATE_FATAL, ERR_SERVICE, rights_advice },
	{ "SASL_AUTHENTICATION_FAILED", FATE_FATAL, ERR_SERVICE, login_advice },
	{ "UNSUPPORTED_SASL_MECHANISM", FATE_FATAL, ERR_SERVICE, login_advice },
	{ "_AUTHENTICATION", FATE_FATAL, ERR_SERVICE, login_advice },
	{ "INVALID_GROUP_ID", FATE_FATAL, ERR_USAGE, NULL },
	{ "INVALID_SESSION_TIMEOUT", FATE_FATAL, ERR_USAGE,
	  "set kafka.consumer.session.timeout.ms within the broker's bounds" },
	{ "INVALID_TRANSACTION_TIMEOUT", FATE_FATAL, ERR_USAGE,
	  "lower kafka.producer.transaction.timeout.ms below the broker's transaction.max.timeout.ms" },
	{ "INCONSISTENT_GROUP_PROTOCOL", FATE_FATAL, ERR_USAGE,
	  "another program is in this consumer group: give it a group of its own" },
	{ "UNSUPPORTED_VERSION", FATE_FATAL, ERR_SERVICE, "the broker is too old" },
	{ "_UNSUPPORTED_FEATURE", FATE_FATAL, ERR_SERVICE, "the broker is too old" },
	{ "_INVALID_ARG", FATE_FATAL, ERR_BUG, NULL },
	{ "_STATE", FATE_FATAL, ERR_BUG, NULL },
	{ "_FATAL", FATE_FATAL, ERR_SERVICE, NULL },
	{ "MSG_SIZE_TOO_LARGE", FATE_REJECT, ERR_TOO_LARGE, "raise max.message.bytes of the topic" },
	{ "RECORD_LIST_TOO_LARGE", FATE_REJECT, ERR_TOO_LARGE, "raise max.message.bytes of the topic" },
	{ "INVALID_RECORD", FATE_REJECT, ERR_INVALID, NULL },
	/* From here on another producer, or another day, does better. */
	{ "_FENCED", FATE_RETRY, ERR_FENCED, NULL },
	{ "INVALID_PRODUCER_EPOCH", FATE_RETRY, ERR_FENCED, NULL },
	{ "PRODUCER_FENCED", FATE_RETRY, ERR_FENCED, NULL },
	{ "UNKNOWN_TOPIC_OR_PART", FATE_RETRY, ERR_SERVICE, topics_advice },
	{ "_UNKNOWN_TOPIC", FATE_RETRY, ERR_SERVICE, topics_advice },
	{ "_UNKNOWN_PARTITION", FATE_RETRY, ERR_SERVICE, topics_advice },
	{ "_SSL", FATE_RETRY, ERR_SERVICE, "check kafka.ssl.* and the clock" },
};

static const struct fault *fault_find(const char *name)
{
	static const struct fault other = { "", FATE_RETRY, ERR_SERVICE, NULL };

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		if (!strcmp(faults[i].name, name))
			return &faults[i];
	return &other;
}

enum fate kafka_error_fate(const char *name)
{
	return fault_find(name)->fate;
}

enum fate kafka_error(struct error *error, const char *name, const char *reason, const char *fmt, ...)
{
	const struct fault *fault = fault_find(name);
	const char *semicolon = fault->advice ? "; " : "";
	char doing[160];
	va_list args;

	va_start(args, fmt);
	vsnprintf(doing, sizeof(doing), fmt, args);
	va_end(args);
	return error_set_native(error, fault->fate, fault->code, name, "%s: %s%s%s", doing, reason, semicolon,
	                        fault->advice ? fault->advice : "");
}

/* Names and aliases. Retries, acks and idempotence carry the promise that nothing is lost or doubled;
 * group, assignor, offsets and isolation carry the positions; the partitioner carries the order. */
static const char *const owned[] = {
	"acks",
	"allow.auto.create.topics",
	"auto.commit.enable",
	"auto.commit.interval.ms",
	"auto.offset.reset",
	"check.crcs",
	"delivery.report.only.error",
	"enable.auto.commit",
	"enable.auto.offset.store",
	"enable.gapless.guarantee",
	"enable.idempotence",
	"enable.partition.eof",
	"group.id",
	"group.instance.id",
	"group.protocol",
	"group.protocol.type",
	"isolation.level",
	"log.queue",
	"max.in.flight",
	"max.in.flight.requests.per.connection",
	"message.max.bytes",
	"message.send.max.retries",
	"offset.store.method",
	"offset.store.path",
	"partition.assignment.strategy",
	"partitioner",
	"produce.offset.report",
	"queuing.strategy",
	"request.required.acks",
	"retries",
	"transactional.id",
};

bool kafka_property_owned(const char *name)
{
	for (size_t i = 0; i < sizeof(owned) / sizeof(owned[0]); i++)
		if (!strcasecmp(owned[i], name))
			return true;
	return false;
}

/* librdkafka quotes a value that it refuses; what may be a secret must not get into an error text. */
static bool is_secret(const char *name)
{
	static const char *const hints[] = { "password", "secret", "key", "jaas", "token", "pem", "oauth" };

	for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++)
		if (strcasestr(name, hints[i]))
			return true;
	return false;
}

enum fate kafka_properties_apply(const struct property *properties, size_t len, kafka_property_setter *set,
                                 void *context, struct error *error)
{
	for (size_t i = 0; i < len; i++) {
		const char *name = properties[i].name;
		char why[160] = "";

		if (kafka_property_owned(name))
			return error_set(error, FATE_FATAL, ERR_USAGE,
			                 "cannot set kafka.%s: the protocol depends on it; remove it from the "
			                 "configuration",
			                 name);
		if (!set(context, name, properties[i].value, why, sizeof(why)))
			return error_set(error, FATE_FATAL, ERR_USAGE, "cannot set kafka.%s: %s", name,
			                 is_secret(name) ? "librdkafka does not take the value" : why);
	}
	return FATE_OK;
}

const char *kafka_property_find(const struct property *properties, size_t len, const char *name)
{
	const char *value = NULL;

	for (size_t i = 0; i < len; i++)
		if (!strcasecmp(properties[i].name, name))
			value = properties[i].value;
	return value;
}

void kafka_log(const char *room, int severity, const char *facility, const char *text)
{
	const int syslog_warning = 4;
	/* CONFWARN: "X is a consumer property and is ignored by this producer". We set both alike on purpose.
	 * GETPID: a coordinator that is not ready yet is asked again, many times a second on a broker that is new. */
	bool quiet = severity > syslog_warning || !strcmp(facility, "CONFWARN") || !strcmp(facility, "GETPID");

	log_write(quiet ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARN, room, "librdkafka: %s: %s", facility, text);
}

int64_t kafka_time_us(int64_t kafka_ms)
{
	if (kafka_ms < 0)
		return TIME_NONE;
	return kafka_ms > INT64_MAX / 1000 ? INT64_MAX / 1000 * 1000 : kafka_ms * 1000;
}
