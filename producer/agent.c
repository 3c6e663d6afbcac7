#include "producer/agent.h"

#include "core/kafka_env.h"
#include "producer/agent_inner.h"
#include "producer/producer.h"
#include "schemas/supply.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_TOPIC   "fermata.suspends"
#define ENVIRONMENT_MAX ((size_t)1024 * 1024)
#define HEADERS_ROOM    ((size_t)16 * 1024)
#define DEFAULT_RECORD  ((size_t)8 * 1024 * 1024)
#define CLIENT_ID       "fermata-agent"
#define SUBJECT_MAX     4096

struct agent {
	struct producer *producer;
	struct codec *codec;
	struct supply *supply;
	char *topic;
	char *subject;
	bool warm;   /* the topic is there */
	bool framed; /* the codec knows how to frame */
};

/* ---- opening ---- */

static enum fate collect(const struct agent_settings *settings, struct arena *arena,
                         struct property **ret_properties, size_t *ret_len, struct error *error)
{
	struct property *all;
	size_t len = settings->properties_len;

	if (!settings->properties) {
		enum fate fate = kafka_environment("producer", arena, ret_properties, &len, error);

		if (fate != FATE_OK)
			return fate;
	}
	all = arena_array(arena, len + 1, sizeof(*all));
	if (!all)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "could not open the agent's side: out of memory");
	if (len)
		memcpy(all, settings->properties ? settings->properties : *ret_properties, len * sizeof(*all));
	if (settings->bootstrap_servers)
		all[len++] = (struct property){ "bootstrap.servers", settings->bootstrap_servers };
	*ret_properties = all;
	*ret_len = len;
	return FATE_OK;
}

static enum fate open_producer(struct agent *agent, const struct agent_settings *settings,
                               struct error *error)
{
	struct arena *arena = arena_new(ENVIRONMENT_MAX);
	size_t record = settings->record_bytes ? settings->record_bytes : DEFAULT_RECORD;
	struct producer_settings wanted = { .client_id = CLIENT_ID, .message_bytes = record + HEADERS_ROOM };
	struct property *properties = NULL;
	enum fate fate;

	if (!arena)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "could not open the agent's side: out of memory");
	fate = collect(settings, arena, &properties, &wanted.properties_len, error);
	wanted.properties = properties;
	if (fate == FATE_OK)
		fate = producer_open(&agent->producer, &wanted, error);
	arena_free(arena);
	return fate;
}

static char *topic_of(const struct agent_settings *settings)
{
	const char *set = getenv("FERMATA_TOPICS_SUSPENDS");

	if (settings->topic)
		return strdup(settings->topic);
	return strdup(set && *set ? set : DEFAULT_TOPIC);
}

static char *subject_of(const struct agent *agent, const struct agent_settings *settings)
{
	struct buffer name;
	char *subject;

	if (settings->subject)
		return strdup(settings->subject);
	buffer_init(&name, SUBJECT_MAX);
	subject_name(SUBJECT_TOPIC, agent->topic, codec_record_name(RECORD_SUSPEND), &name);
	buffer_append_byte(&name, '\0');
	subject = buffer_failed(&name) ? NULL : strdup((const char *)name.data);
	buffer_done(&name);
	return subject;
}

static enum fate open_codec(struct agent *agent, const struct agent_settings *settings, struct error *error)
{
	const struct registry_settings environment = registry_environment();
	struct supply_settings supply = { .registry = settings->registry ? settings->registry : &environment };
	struct codec_settings codec = { .record_bytes = settings->record_bytes };

	enum fate fate = supply_open(&agent->supply, &supply, error);
	if (fate != FATE_OK)
		return fate;
	codec.catalog = supply_catalog(agent->supply);
	return codec_new(&agent->codec, &codec, error);
}

enum fate agent_open(struct agent **ret_agent, const struct agent_settings *settings, struct error *error)
{
	static const struct agent_settings environment;
	struct agent *agent = calloc(1, sizeof(*agent));
	enum fate fate;

	if (!settings)
		settings = &environment;
	if (!agent || !(agent->topic = topic_of(settings)) || !(agent->subject = subject_of(agent, settings))) {
		agent_close(agent);
		return error_set(error, FATE_RETRY, ERR_MEMORY, "could not open the agent's side: out of memory");
	}
	fate = open_codec(agent, settings, error);
	if (fate == FATE_OK)
		fate = open_producer(agent, settings, error);
	if (fate != FATE_OK)
		agent_close(agent);
	else
		*ret_agent = agent;
	return fate;
}

void agent_close(struct agent *agent)
{
	if (!agent)
		return;
	producer_close(agent->producer);
	codec_free(agent->codec);
	supply_close(agent->supply);
	free(agent->subject);
	free(agent->topic);
	free(agent);
}

/* ---- sending ---- */

static enum fate encode(struct agent *agent, struct suspension *suspension, struct error *error)
{
	enum fate fate;

	if (suspension->fault.fate != FATE_OK) {
		*error = suspension->fault;
		return error->fate;
	}
	if (suspension->value.len)
		return FATE_OK;
	if (!agent->framed) {
		fate = supply_write_id(agent->supply, agent->codec, RECORD_SUSPEND, agent->subject, false, error);
		if (fate != FATE_OK)
			return fate;
		agent->framed = true;
	}
	fate = codec_put_suspend(agent->codec, &suspension->event, &suspension->value, error);
	if (fate != FATE_OK)
		buffer_reset(&suspension->value);
	return fate;
}

/* CloudEvents in binary mode, and the trace that the wait must not cut. */
static size_t fill_headers(const struct suspension *suspension, char time[40], struct header headers[8])
{
	const char *parent = suspension->traceparent ? suspension->traceparent : getenv("TRACEPARENT");
	const char *state = suspension->traceparent ? suspension->tracestate : getenv("TRACESTATE");
	size_t len = 0;

	clock_format(suspension->event.suspended_at, time, 40);
	headers[len++] = (struct header){ "ce_specversion", VIEW_LITERAL("1.0") };
	headers[len++] = (struct header){ "ce_id", view_of(suspension->id) };
	headers[len++] = (struct header){ "ce_source", VIEW_LITERAL("/fermata/agent") };
	headers[len++] = (struct header){ "ce_type", VIEW_LITERAL("fermata.v1.SuspendEvent") };
	headers[len++] = (struct header){ "ce_time", view_of(time) };
	headers[len++] = (struct header){ "content-type", VIEW_LITERAL("application/avro") };
	if (parent && *parent)
		headers[len++] = (struct header){ "traceparent", view_of(parent) };
	if (parent && *parent && state && *state)
		headers[len++] = (struct header){ "tracestate", view_of(state) };
	return len;
}

/* Asks for the topic once: a missing one is an answer now, not a timeout later. */
static enum fate find_topic(struct agent *agent, int timeout_ms, struct error *error)
{
	enum fate fate = FATE_OK;

	if (!agent->warm)
		fate = producer_warm(agent->producer, agent->topic, timeout_ms, NULL, error);
	agent->warm = fate == FATE_OK;
	return fate;
}

static enum fate send_and_wait(struct agent *agent, const struct suspension *suspension, int timeout_ms,
                               struct error *error)
{
	struct header headers[8];
	char time[40];
	int64_t begun = clock_mono_ms();
	struct outgoing outgoing = { .topic = agent->topic,
		                         .partition = PARTITION_BY_KEY,
		                         .key = view_of(suspension->id),
		                         .value = buffer_view(&suspension->value),
		                         .headers = headers,
		                         .headers_len = fill_headers(suspension, time, headers),
		                         .timestamp_us = TIME_NONE };
	enum fate fate = find_topic(agent, timeout_ms, error);
	int64_t left_ms = timeout_ms - (clock_mono_ms() - begun);

	if (fate == FATE_OK)
		fate = producer_send(agent->producer, &outgoing, error);
	if (fate == FATE_OK)
		fate = producer_wait(agent->producer, left_ms > 1 ? (int)left_ms : 1, error);
	return fate;
}

enum fate agent_suspend(struct agent *agent, struct suspension *suspension, int timeout_ms,
                        struct error *error)
{
	struct error scratch;
	enum fate fate;

	if (!error)
		error = &scratch;
	if (!suspension)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "could not send a suspension: out of memory");
	fate = encode(agent, suspension, error);
	if (fate == FATE_OK)
		fate = send_and_wait(agent, suspension, timeout_ms, error);
	if (fate != FATE_OK)
		return error_wrap(error, "suspending as checkpoint %s", suspension->id);
	return FATE_OK;
}
