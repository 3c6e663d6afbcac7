/* settings.c - from what was given, layer by layer, to what counts. */
#include "config/settings.h"

#include "config/nearest.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SECRET_FILE_MAX ((size_t)64 * 1024)
#define WARNINGS_MAX    200

bool settings_warn(struct config *config, const char *fmt, ...)
{
	char line[512];
	va_list args;
	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	if (config->warnings_len == WARNINGS_MAX)
		return true; /* nobody reads more */
	if (config->warnings == NULL)
		config->warnings = arena_array(config->arena, WARNINGS_MAX, sizeof(*config->warnings));
	char *kept = config->warnings == NULL ? NULL : arena_text(config->arena, view_of(line));
	if (kept != NULL)
		config->warnings[config->warnings_len++] = kept;
	return kept != NULL;
}

/* --- giving --- */

static enum fate both_given(const struct slot *slot, const struct given *other, const struct offered *offered,
                            struct error *error)
{
	struct shown one = origin_shown(other->origin), two = origin_shown(offered->origin);
	return error_set(error, FATE_FATAL, ERR_USAGE, "%s and %s_file are both given (%s, %s): keep one of them",
	                 slot->key, slot->key, one.text, two.text);
}

enum fate slot_give(struct config *config, struct slot *slot, bool by_file, const struct offered *offered,
                    struct error *error)
{
	struct given *mine = by_file ? &slot->by_file : &slot->direct;
	struct given *other = by_file ? &slot->direct : &slot->by_file;
	if (other->text != NULL && other->layer == offered->layer)
		return both_given(slot, other, offered, error);
	if (mine->text != NULL && mine->layer == offered->layer && offered->layer == LAYER_FILE &&
	    !settings_warn(config, "%s: %s was given before (%s); this one counts", offered->origin, offered->key,
	                   mine->origin))
		return config_no_memory(error);
	*other = (struct given){ 0 };
	*mine = (struct given){ offered->value, offered->origin, offered->layer };
	return FATE_OK;
}

/* Is text a key, or KEY_file of it where that is allowed? */
static bool names(const char *text, const char *key, bool file_allowed, bool *ret_by_file)
{
	size_t len = strlen(key);
	*ret_by_file = false;
	if (strncmp(text, key, len) != 0)
		return false;
	*ret_by_file = file_allowed && strcmp(text + len, "_file") == 0;
	return text[len] == '\0' || *ret_by_file;
}

static bool has_prefix(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Names the nearest known key; for a mistyped "kafka." or "routes." the same key with that mended. */
static enum fate unknown_key(const struct config *config, const struct offered *offered, struct error *error)
{
	struct nearest nearest = { "", SIZE_MAX };
	for (int i = 0; i < PARAM_COUNT; i++)
		nearest_try(&nearest, offered->key, config->slots[i].key);
	const char *dot = strchr(offered->key, '.');
	char mended[2][CONF_KEY_MAX + 16];
	if (dot != NULL) {
		snprintf(mended[0], sizeof(mended[0]), "kafka%.*s", (int)CONF_KEY_MAX, dot);
		snprintf(mended[1], sizeof(mended[1]), "routes%.*s", (int)CONF_KEY_MAX, dot);
		nearest_try(&nearest, offered->key, mended[0]);
		nearest_try(&nearest, offered->key, mended[1]);
	}
	struct shown origin = origin_shown(offered->origin), key = value_shown(offered->key);
	return error_set(error, FATE_FATAL, ERR_USAGE, "%s: unknown key %s: did you mean %s?", origin.text,
	                 key.text, nearest.key);
}

enum fate settings_offer(struct config *config, const struct offered *offered, struct error *error)
{
	for (int i = 0; i < PARAM_COUNT; i++) {
		struct slot *slot = &config->slots[i];
		bool by_file, file_allowed = param_info((enum param)i)->type == TYPE_TEXT;
		if (names(offered->key, slot->key, file_allowed, &by_file))
			return slot_give(config, slot, by_file, offered, error);
	}
	if (has_prefix(offered->key, "kafka.") && offered->key[strlen("kafka.")] != '\0')
		return kafka_offer(config, offered, error);
	if (has_prefix(offered->key, "routes."))
		return routes_offer(config, offered, error);
	return unknown_key(config, offered, error);
}

/* --- resolving --- */

/* What a KEY_file holds, without the newline at its end. */
static enum fate read_given(struct config *config, const struct slot *slot, const char **ret_text,
                            struct error *error)
{
	if (slot->by_file.text[0] == '\0')
		return error_set(error, FATE_FATAL, ERR_USAGE, "%s_file (%s) names no file", slot->key,
		                 slot->by_file.origin);
	struct buffer buffer;
	buffer_init(&buffer, SECRET_FILE_MAX);
	enum fate fate = conf_read(slot->by_file.text, SECRET_FILE_MAX, &buffer, error);
	if (fate != FATE_OK)
		fate = error_wrap(error, "%s_file (%s)", slot->key, slot->by_file.origin);
	struct view held = buffer_view(&buffer);
	if (held.len > 0 && held.data[held.len - 1] == '\n')
		held.len--;
	if (held.len > 0 && held.data[held.len - 1] == '\r')
		held.len--;
	if (fate == FATE_OK && view_has_nul(held))
		fate = error_set(error, FATE_FATAL, ERR_USAGE, "%s_file (%s): the file holds a NUL byte", slot->key,
		                 slot->by_file.origin);
	if (fate == FATE_OK) {
		*ret_text = held.len == 0 ? "" : arena_text(config->arena, held);
		fate = *ret_text == NULL ? config_no_memory(error) : FATE_OK;
	}
	buffer_done(&buffer);
	return fate;
}

enum fate slot_resolve(struct config *config, struct slot *slot, const char *fallback, struct error *error)
{
	if (slot->by_file.text != NULL) {
		slot->origin = arena_printf(config->arena, "%s, file %s", slot->by_file.origin, slot->by_file.text);
		if (slot->origin == NULL)
			return config_no_memory(error);
		return read_given(config, slot, &slot->text, error);
	}
	bool given = slot->direct.text != NULL;
	slot->text = given ? slot->direct.text : fallback;
	slot->origin = given ? slot->direct.origin : "default";
	return FATE_OK;
}

enum fate slot_parse(struct config *config, struct slot *slot, const struct param_info *info,
                     struct value *ret_value, struct error *error)
{
	enum fate fate = slot_resolve(config, slot, info->fallback, error);
	if (fate != FATE_OK)
		return fate;
	struct given_text given = { slot->key, slot->text, slot->origin };
	return value_parse(info, &given, config->arena, ret_value, error);
}
