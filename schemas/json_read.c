#include "schemas/json_read.h"

#include <stdlib.h>
#include <string.h>

void json_wrong(struct json_reader *reader, const struct path_step *at, const char *text)
{
	char path[160];

	if (reader->failed)
		return;
	reader->failed = true;
	path_print(at, path, sizeof(path));
	error_set(reader->error, FATE_REJECT, ERR_INVALID, "%s%s%s", path, path[0] ? " " : "", text);
}

static void no_memory(struct json_reader *reader)
{
	if (!reader->failed)
		error_set(reader->error, FATE_RETRY, ERR_MEMORY, "no room in the arena for a record");
	reader->failed = true;
}

const json_t *json_find(const struct json_place *place, const char *name)
{
	const json_t *value = json_object_get(place->object, name);

	return json_is_null(value) ? NULL : value;
}

struct path_step json_step(const struct json_place *place, const char *name)
{
	return (struct path_step){ .up = place->top ? NULL : &place->step, .field = name };
}

const json_t *json_need(const struct json_place *place, const char *name)
{
	const json_t *value = json_object_get(place->object, name);

	if (!value) {
		struct path_step step = json_step(place, name);
		json_wrong(place->reader, &step, "is missing");
	}
	return value;
}

static bool is_among(const char *name, const char *const *names)
{
	for (; *names; names++) {
		if (strcmp(name, *names) == 0)
			return true;
	}
	return false;
}

/* A name that was mistyped is shown; what could be content is not. */
static void unknown_member(struct json_reader *reader, const struct path_step *at, const char *name)
{
	char path[160];

	if (reader->failed)
		return;
	reader->failed = true;
	size_t len = path_print(at, path, sizeof(path));
	bool plain =
		strlen(name) <= 40 && name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	                                            "0123456789_")] == '\0';
	error_set(reader->error, FATE_REJECT, ERR_INVALID, "%s%s%s is not a field of the record", path,
	          len ? "." : "", plain ? name : "(a name that is not shown)");
}

struct json_place json_enter(struct json_reader *reader, const json_t *value, struct path_step step,
                             const char *const *names)
{
	struct json_place place = { .reader = reader, .object = value, .step = step };
	const char *key;
	json_t *member;

	place.top = !step.up && !step.field;
	const struct path_step *at = place.top ? NULL : &step;
	if (!json_is_object(value)) {
		json_wrong(reader, at, "must be an object");
		return place;
	}
	/* The iterator takes no const, and changes nothing. */
	json_object_foreach((json_t *)(uintptr_t)value, key, member)
	{
		if (!is_among(key, names))
			unknown_member(reader, at, key);
	}
	return place;
}

const json_t *json_unwrap(const json_t *value, const char *branch)
{
	const json_t *inner = json_object_get(value, branch);

	return inner && json_object_size(value) == 1 ? inner : value;
}

struct view json_string_copy(struct json_reader *reader, const json_t *value, const struct path_step *at)
{
	if (!json_is_string(value)) {
		json_wrong(reader, at, "must be a string");
		return VIEW_LITERAL("");
	}
	struct view view = { (const uint8_t *)json_string_value(value), json_string_length(value) };
	view = arena_copy(reader->arena, view);
	if (view_is_null(view))
		no_memory(reader);
	return view;
}

struct view json_need_text(const struct json_place *place, const char *name)
{
	const json_t *value = json_need(place, name);
	struct path_step step = json_step(place, name);

	return json_string_copy(place->reader, value, &step);
}

struct view json_text_or_null(const struct json_place *place, const char *name)
{
	const json_t *value = json_find(place, name);
	struct path_step step = json_step(place, name);

	return value ? json_string_copy(place->reader, json_unwrap(value, "string"), &step) : VIEW_NULL;
}

struct view json_text_or(const struct json_place *place, const char *name, const char *fallback)
{
	return json_object_get(place->object, name) ? json_need_text(place, name) : view_of(fallback);
}

struct view json_need_json(const struct json_place *place, const char *name)
{
	const json_t *value = json_need(place, name);
	struct path_step step = json_step(place, name);

	if (!json_is_object(value) && !json_is_array(value))
		return json_string_copy(place->reader, value, &step);
	char *text = json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(17));
	struct view view = text ? arena_copy(place->reader->arena, view_of(text)) : VIEW_NULL;
	free(text);
	if (view_is_null(view))
		no_memory(place->reader);
	return view;
}

static int64_t integer(const struct json_place *place, const char *name, const json_t *value, int64_t min,
                       int64_t max)
{
	struct path_step step = json_step(place, name);
	int64_t number = json_integer_value(value);

	if (!json_is_integer(value))
		json_wrong(place->reader, &step, "must be an integer");
	else if (number < min || number > max)
		json_wrong(place->reader, &step, "is out of range");
	return number;
}

int64_t json_need_integer(const struct json_place *place, const char *name, int64_t min, int64_t max)
{
	return integer(place, name, json_need(place, name), min, max);
}

int64_t json_integer_or(const struct json_place *place, const char *name, int64_t min, int64_t max,
                        int64_t fallback)
{
	const json_t *value = json_object_get(place->object, name);

	return value ? integer(place, name, value, min, max) : fallback;
}

int64_t json_time_or_none(const struct json_place *place, const char *name)
{
	const json_t *value = json_find(place, name);

	return value ? integer(place, name, json_unwrap(value, "long"), TIME_NONE + 1, INT64_MAX) : TIME_NONE;
}

int json_symbol(struct json_reader *reader, const json_t *value, const struct path_step *at,
                const char *(*name_of)(int), int count)
{
	struct view text = { (const uint8_t *)json_string_value(value), json_string_length(value) };
	int position = json_is_string(value) ? records_enum_find(name_of, count, text) : -1;

	if (position < 0)
		json_wrong(reader, at, "is not one of the symbols of its enum");
	return position < 0 ? 0 : position;
}

int json_need_symbol(const struct json_place *place, const char *name, const char *(*name_of)(int), int count)
{
	const json_t *value = json_need(place, name);
	struct path_step step = json_step(place, name);

	return json_symbol(place->reader, value, &step, name_of, count);
}

int json_symbol_or(const struct json_place *place, const char *name, const char *(*name_of)(int), int count,
                   int fallback)
{
	return json_object_get(place->object, name) ? json_need_symbol(place, name, name_of, count) : fallback;
}

struct view json_bytes_copy(struct json_reader *reader, const json_t *value, const struct path_step *at)
{
	const uint8_t *text = (const uint8_t *)json_string_value(value);
	size_t len = json_string_length(value), count = 0;

	if (!text) {
		json_wrong(reader, at, "must be a string, a code point for each byte");
		return VIEW_LITERAL("");
	}
	uint8_t *bytes = arena_alloc(reader->arena, len + 1);
	if (!bytes) {
		no_memory(reader);
		return VIEW_LITERAL("");
	}
	for (size_t i = 0; i < len; i++) {
		if (text[i] < 0x80) {
			bytes[count++] = text[i];
		} else if (text[i] == 0xc2 || text[i] == 0xc3) { /* jansson has checked that it is UTF-8 */
			bytes[count++] = (uint8_t)((text[i] & 3) << 6 | (text[i + 1] & 0x3f));
			i++;
		} else {
			json_wrong(reader, at, "must be a string, a code point for each byte: none above U+00FF");
			break;
		}
	}
	return (struct view){ bytes, count };
}

const json_t *json_need_array(const struct json_place *place, const char *name)
{
	const json_t *value = json_need(place, name);
	struct path_step step = json_step(place, name);

	if (!json_is_array(value))
		json_wrong(place->reader, &step, "must be an array");
	return value;
}

void *json_room(struct json_reader *reader, size_t count, size_t size)
{
	void *room = arena_array(reader->arena, count, size);

	if (!room)
		no_memory(reader);
	return room;
}

struct view *json_need_texts(const struct json_place *place, const char *name, bool optional, size_t *ret_len)
{
	struct path_step step = json_step(place, name);

	*ret_len = 0;
	if (optional && !json_object_get(place->object, name))
		return NULL;
	const json_t *array = json_need_array(place, name);
	struct view *texts = json_room(place->reader, json_array_size(array), sizeof(*texts));
	for (size_t i = 0; texts && i < json_array_size(array); i++) {
		struct path_step item = { .up = &step, .item = (int64_t)i };
		texts[i] = json_string_copy(place->reader, json_array_get(array, i), &item);
		*ret_len = i + 1;
	}
	return texts;
}
