/* routes.c - where the resumes of some agents go. */
#include "config/nearest.h"
#include "config/settings.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NAME_MAX_LEN    63
#define ROUTES_TEXT_MAX ((size_t)2 << 20)

/* --- offering --- */

static enum fate unknown_field(const struct offered *offered, struct view name, struct error *error)
{
	struct nearest nearest = { "", SIZE_MAX };
	char keys[ROUTE_FIELD_COUNT][CONF_KEY_MAX + 1];
	for (int i = 0; i < ROUTE_FIELD_COUNT; i++) {
		snprintf(keys[i], sizeof(keys[i]), "routes.%.*s.%s", (int)name.len, (const char *)name.data,
		         route_field_info((enum route_field)i)->key);
		nearest_try(&nearest, offered->key, keys[i]);
	}
	struct shown origin = origin_shown(offered->origin), key = value_shown(offered->key);
	return error_set(error, FATE_FATAL, ERR_USAGE, "%s: unknown key %s: did you mean %s?", origin.text,
	                 key.text, nearest.key);
}

static struct route_slot *route_new(struct config *config, struct view name)
{
	struct route_slot *route = arena_alloc(config->arena, sizeof(*route));
	char *kept = arena_text(config->arena, name);
	if (route == NULL || kept == NULL)
		return NULL;
	route->name = kept;
	for (int i = 0; i < ROUTE_FIELD_COUNT; i++) {
		const char *field = route_field_info((enum route_field)i)->key;
		route->fields[i].key = arena_printf(config->arena, "routes.%s.%s", kept, field);
		if (route->fields[i].key == NULL)
			return NULL;
	}
	config->routes_len++;
	return route;
}

/* The slot of the route of that name, made at the end of the list when it is not there; NULL: no memory. */
static struct route_slot *route_at(struct config *config, struct view name)
{
	struct route_slot **at = &config->route_slots;
	for (; *at != NULL; at = &(*at)->next) {
		if (view_equal_text(name, (*at)->name))
			return *at;
	}
	*at = route_new(config, name);
	return *at;
}

enum fate routes_offer(struct config *config, const struct offered *offered, struct error *error)
{
	const char *name = offered->key + strlen("routes.");
	const char *dot = strchr(name, '.');
	struct view named = { (const uint8_t *)name, dot == NULL ? strlen(name) : (size_t)(dot - name) };
	struct shown origin = origin_shown(offered->origin), key = value_shown(offered->key);
	if (named.len == 0 || named.len > NAME_MAX_LEN)
		return error_set(error, FATE_FATAL, ERR_USAGE,
		                 "%s: %s: a route's key is routes.NAME.FIELD, with a name of 1 to 63 bytes",
		                 origin.text, key.text);
	int field = 0;
	while (dot != NULL && field < ROUTE_FIELD_COUNT &&
	       strcmp(dot + 1, route_field_info((enum route_field)field)->key) != 0)
		field++;
	if (dot == NULL || field == ROUTE_FIELD_COUNT)
		return unknown_field(offered, named, error);
	struct route_slot *route = route_at(config, named);
	if (route == NULL)
		return config_no_memory(error);
	if (config->routes_len > ROUTES_MAX)
		return error_set(error, FATE_FATAL, ERR_USAGE, "%s: more than %d routes", origin.text, ROUTES_MAX);
	return slot_give(config, &route->fields[field], false, offered, error);
}

const char *routes_find_folded(const struct config *config, const char *folded)
{
	for (const struct route_slot *route = config->route_slots; route != NULL; route = route->next) {
		size_t i = 0;
		while (route->name[i] != '\0' &&
		       (route->name[i] == '-' ? '_' : tolower((unsigned char)route->name[i])) == folded[i])
			i++;
		if (route->name[i] == '\0' && folded[i] == '\0')
			return route->name;
	}
	return NULL;
}

/* --- resolving --- */

/* NULL for a pattern that everything matches. */
static const char *pattern(const char *text)
{
	return text[strspn(text, "*")] == '\0' ? NULL : text;
}

static enum fate resolve_one(struct config *config, struct route_slot *slot, struct route *route,
                             struct error *error)
{
	struct value values[ROUTE_FIELD_COUNT];
	for (int i = 0; i < ROUTE_FIELD_COUNT; i++) {
		enum fate fate =
			slot_parse(config, &slot->fields[i], route_field_info((enum route_field)i), &values[i], error);
		if (fate != FATE_OK)
			return fate;
	}
	const char *topic = values[ROUTE_TOPIC].text;
	*route = (struct route){
		.name = slot->name,
		.tenant = pattern(values[ROUTE_TENANT].text),
		.agent = pattern(values[ROUTE_AGENT].text),
		.topic = topic == NULL ? config->values[PARAM_TOPICS_RESUMES].text : topic,
		.resume_ttl_ms = values[ROUTE_RESUME_TTL].number,
		.on_reject = (enum on_reject)values[ROUTE_ON_REJECT].number,
	};
	return FATE_OK;
}

static bool topic_is_new(const struct config *config, const char *topic)
{
	for (size_t i = 0; i < config->resumes_topics_len; i++) {
		if (strcmp(config->resumes_topics[i], topic) == 0)
			return false;
	}
	return true;
}

static enum fate collect_topics(struct config *config, struct error *error)
{
	config->resumes_topics =
		arena_array(config->arena, config->routes_len + 1, sizeof(*config->resumes_topics));
	if (config->resumes_topics == NULL)
		return config_no_memory(error);
	config->resumes_topics[config->resumes_topics_len++] = config->fallback.topic;
	for (size_t i = 0; i < config->routes_len; i++) {
		if (topic_is_new(config, config->routes[i].topic))
			config->resumes_topics[config->resumes_topics_len++] = config->routes[i].topic;
	}
	return FATE_OK;
}

static void write_pattern(struct buffer *out, const char *name, const char *text)
{
	const char *shown = text == NULL ? "*" : text;
	buffer_printf(out, "%s %zu:%s ", name, strlen(shown), shown);
}

/* Routes at the end that go where the default goes make no difference, so they are left out. */
static enum fate write_text(struct config *config, struct error *error)
{
	size_t len = config->routes_len;
	while (len > 0 && strcmp(config->routes[len - 1].topic, config->fallback.topic) == 0)
		len--;
	struct buffer out;
	buffer_init(&out, ROUTES_TEXT_MAX);
	for (size_t i = 0; i < len; i++) {
		write_pattern(&out, "tenant", config->routes[i].tenant);
		write_pattern(&out, "agent", config->routes[i].agent);
		buffer_printf(&out, "topic %s\n", config->routes[i].topic);
	}
	buffer_printf(&out, "else topic %s\n", config->fallback.topic);
	config->routes_text = buffer_failed(&out) ? NULL : arena_text(config->arena, buffer_view(&out));
	buffer_done(&out);
	return config->routes_text == NULL ? config_no_memory(error) : FATE_OK;
}

static enum fate warn_unreachable(struct config *config, struct error *error)
{
	for (size_t i = 0; i + 1 < config->routes_len; i++) {
		const struct route *route = &config->routes[i];
		if (route->tenant != NULL || route->agent != NULL)
			continue;
		bool kept =
			settings_warn(config, "route %s matches everything, so route %s and what follows never does",
		                  route->name, route[1].name);
		return kept ? FATE_OK : config_no_memory(error);
	}
	return FATE_OK;
}

enum fate routes_resolve(struct config *config, struct error *error)
{
	config->fallback =
		(struct route){ .name = "(default)", .topic = config->values[PARAM_TOPICS_RESUMES].text };
	config->routes = arena_array(config->arena, config->routes_len, sizeof(*config->routes));
	if (config->routes == NULL)
		return config_no_memory(error);
	struct route *route = config->routes;
	for (struct route_slot *slot = config->route_slots; slot != NULL; slot = slot->next) {
		enum fate fate = resolve_one(config, slot, route++, error);
		if (fate != FATE_OK)
			return fate;
	}
	enum fate fate = collect_topics(config, error);
	if (fate == FATE_OK)
		fate = write_text(config, error);
	return fate == FATE_OK ? warn_unreachable(config, error) : fate;
}

/* --- matching --- */

/* The next character of UTF-8. */
static size_t step(struct view text, size_t at)
{
	at++;
	while (at < text.len && (text.data[at] & 0xc0) == 0x80)
		at++;
	return at;
}

/* Linear in practice, text x pattern at worst: only the last '*' is ever tried again. */
static bool matches(const char *pattern_at, struct view text)
{
	const char *star = NULL;
	size_t at = 0, mark = 0;
	if (pattern_at == NULL)
		return true;
	while (at < text.len) {
		if (*pattern_at == '*') {
			star = pattern_at++;
			mark = at;
		} else if (*pattern_at == '?') {
			pattern_at++;
			at = step(text, at);
		} else if (*pattern_at != '\0' && (uint8_t)*pattern_at == text.data[at]) {
			pattern_at++;
			at++;
		} else if (star != NULL) {
			pattern_at = star + 1;
			mark = at = step(text, mark);
		} else {
			return false;
		}
	}
	return pattern_at[strspn(pattern_at, "*")] == '\0';
}

const struct route *config_route_for(const struct config *config, struct view tenant, struct view agent)
{
	for (size_t i = 0; i < config->routes_len; i++) {
		const struct route *route = &config->routes[i];
		if (matches(route->tenant, tenant) && matches(route->agent, agent))
			return route;
	}
	return &config->fallback;
}
