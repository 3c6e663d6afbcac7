/* kafka_slots.c - kafka.PROP, kafka.consumer.PROP, kafka.producer.PROP. */
#include "config/kafka_owned.h"
#include "config/settings.h"

#include "core/kafka_glue.h"

#include <string.h>

static enum fate refuse(const struct offered *offered, const char *reason, struct error *error)
{
	struct shown origin = origin_shown(offered->origin), key = value_shown(offered->key);
	return error_set(error, FATE_FATAL, ERR_USAGE, "%s: %s is refused: %s", origin.text, key.text, reason);
}

/* The property's name behind the prefix, and whom it is for. */
static const char *split(const char *key, enum kafka_scope *ret_scope)
{
	const char *name = key + strlen("kafka.");
	*ret_scope = SCOPE_ALL;
	if (strncmp(name, "consumer.", 9) == 0)
		*ret_scope = SCOPE_CONSUMER;
	else if (strncmp(name, "producer.", 9) == 0)
		*ret_scope = SCOPE_PRODUCER;
	return *ret_scope == SCOPE_ALL ? name : name + 9;
}

/* Why nobody may give this key, or NULL. */
static const char *refusal(const char *key)
{
	enum kafka_scope scope;
	const char *name = split(key, &scope);
	if (name[0] == '\0')
		return "it names no property";
	if (strncmp(name, "kafka.", 6) == 0)
		return "a section [kafka] gives the \"kafka.\" already";
	if (scope != SCOPE_ALL && strcmp(name, "bootstrap.servers") == 0)
		return "what reads and what writes must see one cluster: write kafka.bootstrap.servers";
	const char *reason = kafka_owned_reason(name);
	/* The handles refuse what is theirs too; here the message can say where it was given. */
	return reason == NULL && kafka_property_owned(name) ? "the protocol depends on it" : reason;
}

/* The slot of that key, made in its place of the sorted list when it is not there; NULL: no memory. */
static struct kafka_slot *slot_at(struct config *config, const char *key)
{
	struct kafka_slot **at = &config->kafka;
	while (*at != NULL && strcmp((*at)->slot.key, key) < 0)
		at = &(*at)->next;
	if (*at != NULL && strcmp((*at)->slot.key, key) == 0)
		return *at;
	struct kafka_slot *made = arena_alloc(config->arena, sizeof(*made));
	if (made == NULL)
		return NULL;
	made->slot.key = key;
	made->name = split(key, &made->scope);
	made->next = *at;
	*at = made;
	config->kafka_len++;
	return made;
}

enum fate kafka_offer(struct config *config, const struct offered *offered, struct error *error)
{
	size_t len = strlen(offered->key);
	bool by_file = len > 5 && strcmp(offered->key + len - 5, "_file") == 0;
	char *key =
		arena_text(config->arena, (struct view){ (const uint8_t *)offered->key, by_file ? len - 5 : len });
	if (key == NULL)
		return config_no_memory(error);
	const char *reason = refusal(key);
	if (reason == NULL && config->kafka_len == KAFKA_SLOTS_MAX)
		reason = "there are a thousand properties already";
	if (reason != NULL)
		return refuse(offered, reason, error);
	struct kafka_slot *slot = slot_at(config, key);
	if (slot == NULL)
		return config_no_memory(error);
	return slot_give(config, &slot->slot, by_file, offered, error);
}

/* Lines are allowed (keys and certificates have them), other control characters are a broken file. */
static bool is_clean(const char *text)
{
	for (; *text != '\0'; text++) {
		unsigned char c = (unsigned char)*text;
		if (c == 0x7f || (c < 0x20 && strchr("\n\r\t", c) == NULL))
			return false;
	}
	return true;
}

static bool is_for(enum kafka_scope scope, enum kafka_side side)
{
	return (scope == SCOPE_CONSUMER && side == KAFKA_CONSUMER) ||
	       (scope == SCOPE_PRODUCER && side == KAFKA_PRODUCER);
}

static bool has_own(const struct config *config, enum kafka_side side, const char *name)
{
	for (const struct kafka_slot *slot = config->kafka; slot != NULL; slot = slot->next) {
		if (is_for(slot->scope, side) && strcmp(slot->name, name) == 0)
			return true;
	}
	return false;
}

/* The general ones first: an alias of one among the side's own then wins in librdkafka. */
static enum fate fill(struct config *config, enum kafka_side side, struct error *error)
{
	struct property *properties = arena_array(config->arena, config->kafka_len + 1, sizeof(*properties));
	if (properties == NULL)
		return config_no_memory(error);
	size_t len = 0;
	properties[len++] =
		(struct property){ "bootstrap.servers", config->values[PARAM_KAFKA_BOOTSTRAP_SERVERS].text };
	for (const struct kafka_slot *slot = config->kafka; slot != NULL; slot = slot->next) {
		if (slot->scope == SCOPE_ALL && !has_own(config, side, slot->name))
			properties[len++] = (struct property){ slot->name, slot->slot.text };
	}
	for (const struct kafka_slot *slot = config->kafka; slot != NULL; slot = slot->next) {
		if (is_for(slot->scope, side))
			properties[len++] = (struct property){ slot->name, slot->slot.text };
	}
	config->properties[side] = properties;
	config->properties_len[side] = len;
	return FATE_OK;
}

enum fate kafka_resolve(struct config *config, struct error *error)
{
	for (struct kafka_slot *slot = config->kafka; slot != NULL; slot = slot->next) {
		enum fate fate = slot_resolve(config, &slot->slot, "", error);
		if (fate != FATE_OK)
			return fate;
		if (!is_clean(slot->slot.text)) {
			struct shown key = value_shown(slot->slot.key), origin = origin_shown(slot->slot.origin);
			return error_set(error, FATE_FATAL, ERR_USAGE, "%s (%s): this value has control characters in it",
			                 key.text, origin.text);
		}
	}
	for (int side = 0; side < KAFKA_SIDE_COUNT; side++) {
		enum fate fate = fill(config, (enum kafka_side)side, error);
		if (fate != FATE_OK)
			return fate;
	}
	return FATE_OK;
}
