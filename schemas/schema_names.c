#include "schemas/schema_parser.h"

#include <stdio.h>
#include <string.h>

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool name_is_valid(const char *text, size_t len)
{
	if (len == 0 || !is_letter(text[0]))
		return false;
	for (size_t i = 1; i < len; i++) {
		if (!is_letter(text[i]) && !(text[i] >= '0' && text[i] <= '9'))
			return false;
	}
	return true;
}

bool name_is_dotted(const char *text, size_t len)
{
	for (;;) {
		const char *dot = memchr(text, '.', len);
		size_t part = dot ? (size_t)(dot - text) : len;
		if (!name_is_valid(text, part))
			return false;
		if (!dot)
			return true;
		text += part + 1;
		len -= part + 1;
	}
}

int name_primitive(const char *text, size_t len)
{
	for (int kind = SCHEMA_NULL; kind <= SCHEMA_STRING; kind++) {
		const char *name = schema_kind_name((enum schema_kind)kind);
		if (strlen(name) == len && memcmp(name, text, len) == 0)
			return kind;
	}
	return -1;
}

bool name_resolve(struct parser *p, const struct place *at, const json_t *text, const char *space,
                  char ret_full[SCHEMA_NAME_MAX + 1])
{
	const char *name = json_string_value(text);
	size_t len = json_string_length(text);

	if (!name || !name_is_dotted(name, len))
		return parser_wrong(p, at,
		                    "the name of a type must be letters, digits and _, with dots between namespaces");
	bool qualified = memchr(name, '.', len) || !space[0];
	if (len + (qualified ? 0 : strlen(space) + 1) > SCHEMA_NAME_MAX)
		return parser_wrong(p, at, "a full name is longer than %d bytes", SCHEMA_NAME_MAX);
	snprintf(ret_full, SCHEMA_NAME_MAX + 1, "%s%s%s", qualified ? "" : space, qualified ? "" : ".", name);
	return true;
}

/* The namespace attribute, or the one around it. */
static const char *space_of(struct parser *p, const struct place *at, const json_t *json, const char *space)
{
	const json_t *attribute = json_object_get(json, "namespace");

	if (!attribute)
		return space;
	const char *text = json_string_value(attribute);
	size_t len = json_string_length(attribute);
	if (!text || (len > 0 && !name_is_dotted(text, len)) || len > SCHEMA_NAME_MAX) {
		parser_wrong(p, at, "a namespace must be names with dots between them, %d bytes at most",
		             SCHEMA_NAME_MAX);
		return NULL;
	}
	return text;
}

bool name_define(struct parser *p, const struct place *at, const json_t *json, const char *space,
                 const char **ret_full, const char **ret_space)
{
	char full[SCHEMA_NAME_MAX + 1];
	const json_t *name = json_object_get(json, "name");

	if (!json_is_string(name))
		return parser_wrong(p, at, "a record, enum or fixed needs a name");
	space = space_of(p, at, json, space);
	if (!space || !name_resolve(p, at, name, space, full))
		return false;
	const char *dot = strrchr(full, '.');
	const char *last = dot ? dot + 1 : full;
	if (name_primitive(last, strlen(last)) >= 0)
		return parser_wrong(p, at, "%.200s is the name of a primitive type", last);
	if (json_object_get(p->names, full))
		return parser_wrong(p, at, "%.200s is defined twice", full);
	*ret_full = arena_text(p->arena, view_of(full));
	*ret_space = arena_text(p->arena, (struct view){ (const uint8_t *)full, dot ? (size_t)(dot - full) : 0 });
	return (*ret_full && *ret_space) || parser_no_memory(p);
}

bool name_check_aliases(struct parser *p, const struct place *at, const json_t *json, bool dotted)
{
	const json_t *aliases = json_object_get(json, "aliases");
	size_t i;
	const json_t *alias;

	if (!aliases)
		return true;
	if (!json_is_array(aliases))
		return parser_wrong(p, at, "aliases must be an array of names");
	json_array_foreach(aliases, i, alias)
	{
		const char *text = json_string_value(alias);
		size_t len = json_string_length(alias);
		if (!text || len > SCHEMA_NAME_MAX ||
		    !(dotted ? name_is_dotted(text, len) : name_is_valid(text, len)))
			return parser_wrong(p, at, "aliases[%zu] is not a name", i);
	}
	return true;
}

bool schema_alias_is(const struct schema_type *type, const char *alias, struct view full)
{
	const char *dot = strchr(alias, '.') ? NULL : strrchr(type->name, '.');
	size_t space = dot ? (size_t)(dot - type->name) + 1 : 0;

	return full.len > space && memcmp(full.data, type->name, space) == 0 &&
	       view_equal_text((struct view){ full.data + space, full.len - space }, alias);
}

bool schema_is_called(const struct schema_type *type, struct view full)
{
	size_t i;
	const json_t *alias, *aliases = json_object_get(type->json, "aliases");

	if (!type->name)
		return false;
	if (view_equal_text(full, type->name))
		return true;
	json_array_foreach(aliases, i, alias)
	{
		if (schema_alias_is(type, json_string_value(alias), full))
			return true;
	}
	return false;
}
