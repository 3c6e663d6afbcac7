/* load.c - the layers in their order, then every value checked, then what must fit together. */
#include "config/settings.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARENA_MAX ((size_t)32 << 20)

static enum fate take_line(void *context, const struct conf_line *line, struct error *error)
{
	struct offered offered = { line->key, line->value, line->origin, LAYER_FILE };
	return settings_offer(context, &offered, error);
}

static enum fate load_file(struct config *config, const char *path, struct error *error)
{
	struct buffer text;
	buffer_init(&text, CONF_FILE_MAX);
	enum fate fate = conf_read(path, CONF_FILE_MAX, &text, error);
	if (fate == FATE_OK)
		fate = conf_parse(buffer_view(&text), path, config->arena, take_line, config, error);
	buffer_done(&text);
	return fate;
}

/* A file that was named must be there; of the other two, one that is there must be readable. */
static enum fate find_and_load_file(struct config *config, const struct config_request *request,
                                    struct error *error)
{
	static const char *const places[] = { "./fermata.conf", "/etc/fermata/fermata.conf" };
	const char *variable = getenv("FERMATA_CONFIG");
	const char *path = request->file;
	if (path == NULL && variable != NULL && variable[0] != '\0')
		path = variable;
	for (size_t i = 0; path == NULL && i < sizeof(places) / sizeof(places[0]); i++) {
		if (access(places[i], F_OK) == 0)
			path = places[i];
	}
	if (path == NULL)
		return FATE_OK;
	config->file = arena_text(config->arena, view_of(path));
	return config->file == NULL ? config_no_memory(error) : load_file(config, config->file, error);
}

static enum fate load_override(struct config *config, const char *text, struct error *error)
{
	const char *equals = strchr(text, '=');
	struct view key = { (const uint8_t *)text, equals == NULL ? 0 : (size_t)(equals - text) };
	if (!conf_is_key(key) || key.len > CONF_KEY_MAX)
		return error_set(error, FATE_FATAL, ERR_USAGE,
		                 "command line: -X takes key=value, as in -X log.level=debug");
	struct offered offered = { .origin = "command line", .layer = LAYER_COMMAND };
	offered.key = arena_text(config->arena, key);
	offered.value = arena_text(config->arena, view_of(equals + 1));
	if (offered.key == NULL || offered.value == NULL)
		return config_no_memory(error);
	return settings_offer(config, &offered, error);
}

static enum fate load_layers(struct config *config, const struct config_request *request, struct error *error)
{
	enum fate fate = find_and_load_file(config, request, error);
	if (fate == FATE_OK)
		fate = environment_offer(config, error);
	for (size_t i = 0; i < request->overrides_len && fate == FATE_OK; i++)
		fate = load_override(config, request->overrides[i], error);
	return fate;
}

static enum fate same_topic(const char *one, const char *other, const char *topic, struct error *error)
{
	return error_set(error, FATE_FATAL, ERR_USAGE,
	                 "%s and %s are the same topic, %s: each needs one of its own", one, other, topic);
}

/* Only resumes topics may be shared, between routes. */
static enum fate check_topics(const struct config *config, struct error *error)
{
	static const enum param topics[] = { PARAM_TOPICS_SUSPENDS, PARAM_TOPICS_APPROVALS, PARAM_TOPICS_GATES,
		                                 PARAM_TOPICS_DEAD_LETTERS, PARAM_TOPICS_RESUMES };
	const size_t len = sizeof(topics) / sizeof(topics[0]), others = len - 1;
	for (size_t i = 0; i < others; i++) {
		const char *topic = config->values[topics[i]].text;
		for (size_t j = i + 1; j < len; j++) {
			if (strcmp(topic, config->values[topics[j]].text) == 0)
				return same_topic(config_key(topics[i]), config_key(topics[j]), topic, error);
		}
		const struct route_slot *slot = config->route_slots;
		for (size_t j = 0; j < config->routes_len; j++, slot = slot->next) {
			if (strcmp(topic, config->routes[j].topic) == 0)
				return same_topic(config_key(topics[i]), slot->fields[ROUTE_TOPIC].key, topic, error);
		}
	}
	return FATE_OK;
}

static enum fate check_keyring(const struct config *config, struct error *error)
{
	if (config->values[PARAM_VAULT_KEYRING_FILE].text == NULL ||
	    config->values[PARAM_VAULT_KEYRING_COMMAND].list_len == 0)
		return FATE_OK;
	struct shown file = origin_shown(config_origin(config, PARAM_VAULT_KEYRING_FILE));
	struct shown command = origin_shown(config_origin(config, PARAM_VAULT_KEYRING_COMMAND));
	return error_set(
		error, FATE_FATAL, ERR_USAGE,
		"vault.keyring_file (%s) and vault.keyring_command (%s) are both given: keys come from one source",
		file.text, command.text);
}

static enum fate resolve(struct config *config, struct error *error)
{
	for (int i = 0; i < PARAM_COUNT; i++) {
		enum fate fate =
			slot_parse(config, &config->slots[i], param_info((enum param)i), &config->values[i], error);
		if (fate != FATE_OK)
			return fate;
	}
	enum fate fate = kafka_resolve(config, error);
	if (fate == FATE_OK)
		fate = routes_resolve(config, error);
	if (fate == FATE_OK)
		fate = check_topics(config, error);
	return fate == FATE_OK ? check_keyring(config, error) : fate;
}

enum fate config_load(struct config **ret_config, const struct config_request *request, struct error *error)
{
	*ret_config = NULL;
	struct arena *arena = arena_new(ARENA_MAX);
	struct config *config = arena == NULL ? NULL : arena_alloc(arena, sizeof(*config));
	if (config == NULL) {
		arena_free(arena);
		return config_no_memory(error);
	}
	config->arena = arena;
	for (int i = 0; i < PARAM_COUNT; i++)
		config->slots[i].key = config_key((enum param)i);
	enum fate fate = load_layers(config, request, error);
	if (fate == FATE_OK)
		fate = resolve(config, error);
	if (fate == FATE_OK)
		*ret_config = config;
	else
		config_free(config);
	return fate;
}

void config_free(struct config *config)
{
	if (config != NULL)
		arena_free(config->arena);
}
