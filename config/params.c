/* params.c - the tables, and how their numbers are written for people. */
#include "config/params.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PARAM(id, key, type, min, max, unit, fallback, secrecy, line, paragraph)                             \
	{ key, TYPE_##type, min, max, unit, fallback, SECRECY_##secrecy, line, paragraph },

static const struct param_info params[] = {
#include "config/params.def"
};

static const struct param_info route_fields[] = {
#include "config/routes.def"
};
#undef PARAM

const struct param_info *param_info(enum param param)
{
	assert(param < PARAM_COUNT);
	return &params[param];
}

const struct param_info *route_field_info(enum route_field field)
{
	assert(field < ROUTE_FIELD_COUNT);
	return &route_fields[field];
}

const char *config_key(enum param param)
{
	return param_info(param)->key;
}

struct scale {
	const char *name;
	int64_t factor;
};

static const struct scale size_scales[] = {
	{ "GiB", INT64_C(1) << 30 }, { "MiB", INT64_C(1) << 20 }, { "KiB", INT64_C(1) << 10 }, { "B", 1 }
};
static const struct scale time_scales[] = {
	{ "d", 86400000 }, { "h", 3600000 }, { "m", 60000 }, { "s", 1000 }, { "ms", 1 }
};

static char *format_scaled(const struct scale *scales, int64_t number, char *text, size_t cap)
{
	while (number == 0 ? scales->factor != 1 : number % scales->factor != 0)
		scales++;
	snprintf(text, cap, "%" PRId64 " %s", number / scales->factor, scales->name);
	return text;
}

char *param_format_number(const struct param_info *info, int64_t number, char *text, size_t cap)
{
	if (strcmp(info->unit, "bytes") == 0)
		return format_scaled(size_scales, number, text, cap);
	if (strcmp(info->unit, "ms") == 0)
		return format_scaled(time_scales, number, text, cap);
	snprintf(text, cap, "%" PRId64, number);
	return text;
}
