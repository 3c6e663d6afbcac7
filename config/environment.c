/* environment.c - FERMATA_ variables as settings. */
#include "config/nearest.h"
#include "config/settings.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREFIX     "FERMATA_"
#define PREFIX_LEN (sizeof(PREFIX) - 1)
#define NEAR       3 /* edits: further away than that no variable is worth a guess */

static bool has_prefix(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool ends_in(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);
	return len >= end_len && strcmp(text + (len - end_len), end) == 0;
}

/* A key as a variable spells it, without the prefix: upper case, '_' for '.' and '-'. */
static void fold(const char *key, char *folded, size_t cap)
{
	size_t i = 0;
	for (; i < cap - 1 && key[i] != '\0'; i++)
		folded[i] = key[i] == '.' || key[i] == '-' ? '_' : (char)toupper((unsigned char)key[i]);
	folded[i] = '\0';
}

static void lower(char *text)
{
	for (; *text != '\0'; text++)
		*text = (char)tolower((unsigned char)*text);
}

/* --- the three kinds of keys: each writes the key that the name means, or says that it means none --- */

typedef bool name_reader(const struct config *config, const char *name, char *key, size_t cap);

static bool read_param(const struct config *config, const char *name, char *key, size_t cap)
{
	for (int i = 0; i < PARAM_COUNT; i++) {
		char folded[CONF_KEY_MAX + 1];
		fold(config->slots[i].key, folded, sizeof(folded));
		size_t len = strlen(folded);
		if (strncmp(name, folded, len) != 0)
			continue;
		bool by_file = param_info((enum param)i)->type == TYPE_TEXT && strcmp(name + len, "_FILE") == 0;
		if (name[len] == '\0' || by_file) {
			snprintf(key, cap, "%s%s", config->slots[i].key, by_file ? "_file" : "");
			return true;
		}
	}
	return false;
}

/*
 * Kubernetes tells each container about each service: one named fermata-kafka becomes
 * FERMATA_KAFKA_SERVICE_HOST, FERMATA_KAFKA_PORT, FERMATA_KAFKA_PORT_9092_TCP_ADDR and the like. No property
 * of librdkafka reads like that.
 */
static bool is_service_link(const char *name)
{
	if (ends_in(name, "_SERVICE_HOST") || strstr(name, "_SERVICE_PORT") != NULL || ends_in(name, "_PORT"))
		return true;
	for (const char *at = strstr(name, "_PORT_"); at != NULL; at = strstr(at + 1, "_PORT_")) {
		if (isdigit((unsigned char)at[strlen("_PORT_")]))
			return true;
	}
	return false;
}

/* Below kafka. every '_' is a '.', but for the one property that a user may set and that has a '_'. */
static bool read_kafka(const struct config *config, const char *name, char *key, size_t cap)
{
	(void)config;
	if (!has_prefix(name, "KAFKA_") || name[strlen("KAFKA_")] == '\0' || is_service_link(name))
		return false;
	snprintf(key, cap, "%s", name);
	lower(key);
	for (char *at = key; *at != '\0'; at++) {
		if (*at == '_')
			*at = '.';
	}
	if (ends_in(key, ".file"))
		key[strlen(key) - strlen(".file")] = '_';
	if (ends_in(key, ".log.level"))
		key[strlen(key) - strlen(".level")] = '_';
	return true;
}

static bool read_route(const struct config *config, const char *name, char *key, size_t cap)
{
	if (!has_prefix(name, "ROUTES_"))
		return false;
	char route[CONF_KEY_MAX + 1];
	snprintf(route, sizeof(route), "%s", name + strlen("ROUTES_"));
	lower(route);
	for (int i = 0; i < ROUTE_FIELD_COUNT; i++) {
		const char *field = route_field_info((enum route_field)i)->key;
		size_t len = strlen(route), field_len = strlen(field);
		if (len < field_len + 2 || !ends_in(route, field) || route[len - field_len - 1] != '_')
			continue;
		route[len - field_len - 1] = '\0';
		const char *known = routes_find_folded(config, route);
		snprintf(key, cap, "routes.%.200s.%s", known == NULL ? route : known, field);
		return true;
	}
	return false;
}

/* --- each variable --- */

static enum fate warn_unknown(struct config *config, const char *name, struct error *error)
{
	size_t best = NEAR + 1;
	char nearest[CONF_KEY_MAX + 1] = "";
	for (int i = 0; i < PARAM_COUNT; i++) {
		char folded[CONF_KEY_MAX + 1];
		fold(config->slots[i].key, folded, sizeof(folded));
		size_t distance = nearest_distance(name, folded);
		if (distance < best) {
			best = distance;
			memcpy(nearest, folded, sizeof(nearest));
		}
	}
	struct shown shown = value_shown(name);
	bool kept =
		best > NEAR
			? settings_warn(config, "environment " PREFIX "%s is no key and is ignored", shown.text)
			: settings_warn(config,
	                        "environment " PREFIX "%s is no key and is ignored: did you mean " PREFIX "%s?",
	                        shown.text, nearest);
	return kept ? FATE_OK : config_no_memory(error);
}

static enum fate offer_variable(struct config *config, const char *variable, struct error *error)
{
	static name_reader *const readers[] = { read_param, read_kafka, read_route };
	const char *equals = strchr(variable, '=');
	if (equals[1] == '\0')
		return FATE_OK;
	char *name =
		arena_text(config->arena, (struct view){ (const uint8_t *)variable, (size_t)(equals - variable) });
	if (name == NULL)
		return config_no_memory(error);
	const char *bare = name + PREFIX_LEN;
	size_t len = strlen(bare);
	bool legal = len <= CONF_KEY_MAX - 16 && strspn(bare, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == len;
	for (size_t i = 0; legal && i < sizeof(readers) / sizeof(readers[0]); i++) {
		char key[CONF_KEY_MAX + 1];
		if (!readers[i](config, bare, key, sizeof(key)))
			continue;
		struct offered offered = { .layer = LAYER_ENVIRONMENT };
		offered.key = arena_text(config->arena, view_of(key));
		offered.value = arena_text(config->arena, view_of(equals + 1));
		offered.origin = arena_printf(config->arena, "environment %s", name);
		if (offered.key == NULL || offered.value == NULL || offered.origin == NULL)
			return config_no_memory(error);
		return settings_offer(config, &offered, error);
	}
	return warn_unknown(config, bare, error);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Variables that others read. */
static bool is_known_elsewhere(const char *variable)
{
#ifdef FERMATA_FAILPOINTS
	if (has_prefix(variable, PREFIX "FAILPOINT") || has_prefix(variable, PREFIX "SABOTAGE="))
		return true;
#endif
	return has_prefix(variable, PREFIX "CONFIG=");
}

static bool is_ours(const char *variable)
{
	return has_prefix(variable, PREFIX) && strchr(variable, '=') != NULL && !is_known_elsewhere(variable);
}

enum fate environment_offer(struct config *config, struct error *error)
{
	size_t len = 0, all = 0;
	while (environ != NULL && environ[all] != NULL)
		all++;
	char **ours = calloc(all + 1, sizeof(*ours));
	if (ours == NULL)
		return config_no_memory(error);
	for (size_t i = 0; i < all; i++) {
		if (is_ours(environ[i]))
			ours[len++] = environ[i];
	}
	/* Sorted, so that new routes have the same order in every process. */
	qsort(ours, len, sizeof(*ours), by_name);
	enum fate fate = FATE_OK;
	for (size_t i = 0; i < len && fate == FATE_OK; i++)
		fate = offer_variable(config, ours[i], error);
	free(ours);
	return fate;
}
