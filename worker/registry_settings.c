#include "worker/registry_settings.h"

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
