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

enum subject_strategy registry_strategy_of(const struct config *config)
{
	static const enum subject_strategy strategies[] = { SUBJECT_TOPIC, SUBJECT_RECORD, SUBJECT_TOPIC_RECORD };

	return strategies[config_choice(config, PARAM_REGISTRY_SUBJECT_NAME_STRATEGY)];
}

const char *registry_record_subject(const struct config *config, const struct schema_want *want,
                                    struct arena *arena)
{
	static const struct {
		const char *name;
		enum param topic;
	} records[] = {
		{ "fermata.v1.SuspendEvent", PARAM_TOPICS_SUSPENDS },
		{ "fermata.v1.ApprovalEvent", PARAM_TOPICS_APPROVALS },
		{ "fermata.v1.ResumeEvent", PARAM_TOPICS_RESUMES },
	};
	for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
		if (strcmp(records[i].name, want->kind == WANT_SHA256 ? records[0].name : want->name) != 0)
			continue;
		struct buffer subject;
		buffer_init(&subject, 4096);
		subject_name(registry_strategy_of(config), config_text(config, records[i].topic), records[i].name,
		             &subject);
		char *text = buffer_failed(&subject) ? NULL : arena_text(arena, buffer_view(&subject));
		buffer_done(&subject);
		return text;
	}
	return NULL;
}
