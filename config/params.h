/* params.h - the tables of params.def and routes.def as data, for the loader and the generator. */
#ifndef FERMATA_CONFIG_PARAMS_H
#define FERMATA_CONFIG_PARAMS_H

#include "config/config.h"

enum param_type { TYPE_TEXT, TYPE_NUMBER, TYPE_FLAG, TYPE_CHOICE, TYPE_LIST };
enum param_secrecy { SECRECY_OPEN, SECRECY_DSN, SECRECY_SECRET };

/* One line of a table; the columns are explained in params.def. */
struct param_info {
	const char *key;
	enum param_type type;
	int64_t min;
	int64_t max;
	const char *unit;
	const char *fallback;
	enum param_secrecy secrecy;
	const char *line;
	const char *paragraph;
};

enum route_field {
#define PARAM(id, key, type, min, max, unit, fallback, secrecy, line, paragraph) ROUTE_##id,
#include "config/routes.def"
#undef PARAM
	ROUTE_FIELD_COUNT,
};

const struct param_info *param_info(enum param param);
/* Key and default of a field are without "routes.NAME.". */
const struct param_info *route_field_info(enum route_field field);

/* A number of that key with the largest unit that divides it ("8 MiB", "30 d", "6"). cap >= 32. Returns text. */
char *param_format_number(const struct param_info *info, int64_t number, char *text, size_t cap);

#endif
