#include "worker/registry_settings.h"

#include "schemas/catalog.h"

#include <string.h>

void registry_settings_of(const struct config *config, struct registry_settings *ret_settings)
{
	*ret_settings = (struct registry_settings){
		.url = config_text(config, PARAM_REGISTRY_URL),
		.user = config_text(config, PARAM_REGISTRY_USER),
		.password = config_text(config, PARAM_REGISTRY_PASSWORD),
		.token = config_text(config, PARAM_REGISTRY_TOKEN),
		.ca_file = config_text(config, PARAM_REGISTRY_CA_FILE),
		.cert_file = config_text(config, PARAM_REGISTRY_CERT_FILE),
		.key_file = config_text(config, PARAM_REGISTRY_KEY_FILE),
		.timeout_ms = config_number(config, PARAM_REGISTRY_TIMEOUT),
	};
}

const char *registry_topic_of(const struct config *config, enum record_type type)
{
	static const enum param topics[] = { [RECORD_SUSPEND] = PARAM_TOPICS_SUSPENDS,
		                                 [RECORD_APPROVAL] = PARAM_TOPICS_APPROVALS,
		                                 [RECORD_RESUME] = PARAM_TOPICS_RESUMES,
		                                 [RECORD_GATE] = PARAM_TOPICS_GATES };

	return config_text(config, topics[type]);
}

enum fate registry_subject_of(const struct config *config, enum record_type type, const char *topic,
                              char subject[REGISTRY_SUBJECT_MAX], struct error *error)
{
	static const enum subject_strategy strategies[] = { SUBJECT_TOPIC, SUBJECT_RECORD, SUBJECT_TOPIC_RECORD };
	enum subject_strategy strategy = strategies[config_choice(config, PARAM_REGISTRY_SUBJECT_NAME_STRATEGY)];
	struct buffer name;

	buffer_init(&name, REGISTRY_SUBJECT_MAX - 1);
	subject_name(strategy, topic, codec_record_name(type), &name);
	bool whole = !buffer_failed(&name);
	if (whole) {
		memcpy(subject, name.data, name.len);
		subject[name.len] = '\0';
	}
	bool starved = name.starved;
	buffer_done(&name);
	if (starved)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for the name of a subject");
	return whole ? FATE_OK : error_set(error, FATE_FATAL, ERR_USAGE, "the name of a subject is too long");
}

const char *registry_record_subject(const struct config *config, const struct schema_want *want,
                                    struct arena *arena)
{
	enum record_type type = RECORD_SUSPEND;
	char subject[REGISTRY_SUBJECT_MAX];
	struct error error;

	if (want->kind != WANT_SHA256 && !codec_record_type(want->name, &type))
		return NULL;
	if (registry_subject_of(config, type, registry_topic_of(config, type), subject, &error) != FATE_OK)
		return NULL;
	return arena_text(arena, view_of(subject));
}
