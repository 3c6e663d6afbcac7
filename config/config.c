/* config.c - reading a loaded configuration. */
#include "config/config.h"

#include "config/kafka_owned.h"
#include "config/mask.h"
#include "config/settings.h"

#include <assert.h>

#define MASKED_MAX ((size_t)16 * 1024)

static const struct value *value_of(const struct config *config, enum param param, enum param_type type)
{
	assert(param < PARAM_COUNT && param_info(param)->type == type);
	return &config->values[param];
}

const char *config_file(const struct config *config)
{
	return config->file;
}

const char *const *config_warnings(const struct config *config, size_t *ret_len)
{
	*ret_len = config->warnings_len;
	return config->warnings;
}

const char *config_origin(const struct config *config, enum param param)
{
	assert(param < PARAM_COUNT);
	return config->slots[param].origin;
}

const char *config_text(const struct config *config, enum param param)
{
	return value_of(config, param, TYPE_TEXT)->text;
}

int64_t config_number(const struct config *config, enum param param)
{
	return value_of(config, param, TYPE_NUMBER)->number;
}

bool config_flag(const struct config *config, enum param param)
{
	return value_of(config, param, TYPE_FLAG)->number != 0;
}

int config_choice(const struct config *config, enum param param)
{
	return (int)value_of(config, param, TYPE_CHOICE)->number;
}

const char *const *config_list(const struct config *config, enum param param, size_t *ret_len)
{
	const struct value *value = value_of(config, param, TYPE_LIST);
	*ret_len = value->list_len;
	return value->list;
}

const struct property *config_kafka(const struct config *config, enum kafka_side side, size_t *ret_len)
{
	assert(side < KAFKA_SIDE_COUNT);
	*ret_len = config->properties_len[side];
	return config->properties[side];
}

const struct route *config_routes(const struct config *config, size_t *ret_len)
{
	*ret_len = config->routes_len;
	return config->routes;
}

const char *const *config_resumes_topics(const struct config *config, size_t *ret_len)
{
	*ret_len = config->resumes_topics_len;
	return config->resumes_topics;
}

const char *config_routes_text(const struct config *config)
{
	return config->routes_text;
}

struct visitor {
	void (*each)(void *context, const struct config_setting *setting);
	void *context;
};

static void visit(const struct visitor *visitor, const struct slot *slot, const char *value)
{
	struct config_setting setting = { slot->key, value, slot->origin };
	visitor->each(visitor->context, &setting);
}

static void visit_secret(const struct visitor *visitor, const struct slot *slot)
{
	visit(visitor, slot, slot->text[0] == '\0' ? "" : MASK);
}

static void visit_dsn(const struct visitor *visitor, const struct slot *slot)
{
	struct buffer masked;
	buffer_init(&masked, MASKED_MAX);
	mask_dsn(slot->text, &masked);
	buffer_append_byte(&masked, 0);
	visit(visitor, slot, buffer_failed(&masked) ? MASK : (const char *)masked.data);
	buffer_done(&masked);
}

static void visit_param(const struct visitor *visitor, const struct param_info *info, const struct slot *slot)
{
	switch (info->secrecy) {
	case SECRECY_OPEN:
		visit(visitor, slot, slot->text);
		break;
	case SECRECY_DSN:
		visit_dsn(visitor, slot);
		break;
	case SECRECY_SECRET:
		visit_secret(visitor, slot);
		break;
	}
}

void config_each(const struct config *config,
                 void (*each)(void *context, const struct config_setting *setting), void *context)
{
	const struct visitor visitor = { each, context };
	for (int i = 0; i < PARAM_COUNT; i++)
		visit_param(&visitor, param_info((enum param)i), &config->slots[i]);
	for (const struct kafka_slot *slot = config->kafka; slot != NULL; slot = slot->next) {
		if (kafka_is_secret(slot->name))
			visit_secret(&visitor, &slot->slot);
		else
			visit(&visitor, &slot->slot, slot->slot.text);
	}
	for (const struct route_slot *route = config->route_slots; route != NULL; route = route->next) {
		for (int i = 0; i < ROUTE_FIELD_COUNT; i++)
			visit(&visitor, &route->fields[i], route->fields[i].text);
	}
}
