/* Values of config out of JSON: a line's, or the command line's --edit K=V. */
#include "schemas/json.h"
#include "schemas/json_fault.h"
#include "schemas/json_read.h"

#include "core/json_scan.h"

#include <math.h>
#include <string.h>

static void read_strings(struct json_reader *reader, const json_t *value, const struct path_step *at,
                         struct config_entry *entry)
{
	size_t len = json_array_size(value);
	struct view *items = json_room(reader, len, sizeof(*items));

	entry->kind = CONFIG_STRINGS;
	entry->value.strings.items = items;
	for (size_t i = 0; items && i < len; i++) {
		struct path_step item = { .up = at, .item = (int64_t)i };
		items[i] = json_string_copy(reader, json_array_get(value, i), &item);
		entry->value.strings.len = i + 1;
	}
}

static void read_plain(struct json_reader *reader, const json_t *value, const struct path_step *at,
                       struct config_entry *entry)
{
	if (json_is_null(value)) {
		entry->kind = CONFIG_NULL;
	} else if (json_is_boolean(value)) {
		entry->kind = CONFIG_BOOLEAN;
		entry->value.boolean = json_is_true(value);
	} else if (json_is_integer(value)) {
		entry->kind = CONFIG_LONG;
		entry->value.number = json_integer_value(value);
	} else if (json_is_real(value)) {
		entry->kind = CONFIG_DOUBLE;
		entry->value.real = json_real_value(value);
	} else if (json_is_string(value)) {
		entry->kind = CONFIG_STRING;
		entry->value.string = json_string_copy(reader, value, at);
	} else if (json_is_array(value)) {
		read_strings(reader, value, at, entry);
	} else {
		json_wrong(reader, at, "must be null, true, false, a number, a string or an array of strings");
	}
}

/* JSON has no NaN and no infinities: {"double": "NaN"}. */
static bool special_double(const json_t *value, double *ret_number)
{
	static const struct {
		const char *name;
		double number;
	} specials[] = { { "NaN", NAN }, { "Infinity", INFINITY }, { "-Infinity", -INFINITY } };

	for (size_t i = 0; json_is_string(value) && i < sizeof(specials) / sizeof(specials[0]); i++) {
		if (strcmp(json_string_value(value), specials[i].name) == 0) {
			*ret_number = specials[i].number;
			return true;
		}
	}
	return false;
}

static void read_double(struct json_reader *reader, const json_t *value, const struct path_step *at,
                        struct config_entry *entry)
{
	entry->kind = CONFIG_DOUBLE;
	if (json_is_number(value))
		entry->value.real = json_number_value(value);
	else if (!special_double(value, &entry->value.real))
		json_wrong(reader, at, "must be a number, \"NaN\", \"Infinity\" or \"-Infinity\"");
}

/* Avro's form: the branch is named, and the value must be of it. */
static void read_named(struct json_reader *reader, const char *branch, const json_t *value,
                       const struct path_step *at, struct config_entry *entry)
{
	static const char *const branches[] = { "null", "boolean", "long", "double", "string", "array" };
	size_t kind = 0;

	while (kind < 6 && strcmp(branch, branches[kind]) != 0)
		kind++;
	if (kind == 6)
		json_wrong(reader, at, "names a branch that the union does not have");
	else if (kind == CONFIG_DOUBLE)
		read_double(reader, value, at, entry);
	else if (json_is_object(value))
		json_wrong(reader, at, "is not a value of the branch that is named");
	else
		read_plain(reader, value, at, entry);
	if (kind < 6 && entry->kind != (enum config_kind)kind)
		json_wrong(reader, at, "is not a value of the branch that is named");
}

void json_config_value(struct json_reader *reader, const json_t *value, const struct path_step *at,
                       struct config_entry *entry)
{
	const char *branch;
	json_t *inner;

	if (!json_is_object(value) || json_object_size(value) != 1) {
		read_plain(reader, value, at, entry);
		return;
	}
	json_object_foreach((json_t *)(uintptr_t)value, branch, inner)
		read_named(reader, branch, inner, at, entry);
}

static enum fate take_text(struct view text, struct arena *arena, struct config_entry *entry,
                           struct error *error)
{
	if (!view_is_utf8(text))
		return error_set(error, FATE_REJECT, ERR_INVALID, "the value is not UTF-8");
	entry->kind = CONFIG_STRING;
	entry->value.string = arena_copy(arena, text);
	return entry->value.string.data ? FATE_OK
	                                : error_set(error, FATE_RETRY, ERR_MEMORY, "no room for a value");
}

enum fate config_entry_from_text(struct view key, struct view text, struct arena *arena,
                                 struct config_entry *ret_entry, struct error *error)
{
	struct error ignored = { 0 };
	json_error_t detail;
	bool starved;

	*ret_entry = (struct config_entry){ 0 };
	if (!view_is_utf8(key))
		return error_set(error, FATE_REJECT, ERR_INVALID, "the key is not UTF-8");
	ret_entry->key = arena_copy(arena, key);
	if (!ret_entry->key.data)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no room for a key");
	if (!json_scan(text))
		return take_text(text, arena, ret_entry, error);
	json_t *json =
		json_take(text, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &detail, &starved);
	if (starved)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for a value");
	if (!json)
		return error_set(error, FATE_REJECT, ERR_INVALID, "the value is JSON that cannot be held: %s",
		                 json_fault(&detail));
	struct json_reader reader = { .arena = arena, .error = error ? error : &ignored };
	struct path_step at = { .field = "the value" };
	json_config_value(&reader, json, &at, ret_entry);
	json_decref(json);
	return reader.failed ? reader.error->fate : FATE_OK;
}
