/* The bodies of a registry's answers. Whoever sends them is not trusted: sizes, depth and types are
 * checked. */
#include "schemas/registry_answer.h"

#include "schemas/json_fault.h"
#include "schemas/schema_parser.h"

#include <stdlib.h>
#include <string.h>

#define WHY_MAX ((size_t)2048) /* bytes that are kept of why a schema is not compatible */

static enum fate strange(struct error *error, const char *what)
{
	return error_set(error, FATE_RETRY, ERR_SERVICE,
	                 "the answer is no schema registry's (%s); does registry.url lead to one?", what);
}

static enum fate no_room(struct error *error)
{
	return error_set(error, FATE_RETRY, ERR_MEMORY, "no room in the arena for the answer");
}

static void json_done(json_t **json)
{
	json_decref(*json);
}

/* NULL: it is not JSON, or would take more memory than any answer may. */
static json_t *load(struct view body)
{
	json_error_t detail;
	bool starved;

	if (view_is_null(body) || schema_weigh(body) > SCHEMA_WEIGHT_MAX)
		return NULL;
	return json_take(body, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &detail, &starved);
}

static struct view text_of(const json_t *string)
{
	return (struct view){ (const uint8_t *)json_string_value(string), json_string_length(string) };
}

size_t put_line(struct view text, char *to, size_t size)
{
	size_t len = 0, step;

	for (size_t i = 0; i < text.len; i += step) {
		step = view_utf8_step((struct view){ text.data + i, text.len - i });
		if (step == 0 || len + step >= size)
			break;
		if (step == 1 && (text.data[i] < 0x20 || text.data[i] == 0x7f))
			to[len] = ' ';
		else
			memcpy(to + len, text.data + i, step);
		len += step;
	}
	to[len] = '\0';
	return len;
}

static bool is_number(const json_t *value, int32_t min)
{
	return json_is_integer(value) && json_integer_value(value) >= min &&
	       json_integer_value(value) <= INT32_MAX;
}

/* A member that may be missing or null, else is an integer of min to INT32_MAX. */
static bool number_or_none(const json_t *object, const char *name, int32_t min, int32_t *ret_number)
{
	const json_t *value = json_object_get(object, name);

	*ret_number = 0;
	if (value == NULL || json_is_null(value))
		return true;
	if (!is_number(value, min))
		return false;
	*ret_number = (int32_t)json_integer_value(value);
	return true;
}

/* --- schemas --- */

static enum fate check_usable(const json_t *answer, struct error *error)
{
	const json_t *type = json_object_get(answer, "schemaType");
	const json_t *references = json_object_get(answer, "references");
	char shown[24];

	if (type != NULL && !json_is_null(type) && !json_is_string(type))
		return strange(error, "schemaType is no text");
	if (json_is_string(type) && json_string_length(type) > 0 &&
	    strcmp(json_string_value(type), "AVRO") != 0) {
		put_line(text_of(type), shown, sizeof(shown));
		return error_set(error, FATE_REJECT, ERR_UNKNOWN_SCHEMA,
		                 "it is a schema of type %s, and only AVRO is read", shown);
	}
	if (references != NULL && !json_is_null(references) && !json_is_array(references))
		return strange(error, "references is no list");
	if (json_array_size(references) > 0)
		return error_set(error, FATE_REJECT, ERR_UNKNOWN_SCHEMA,
		                 "it has references to other schemas, which are not followed; register it with the "
		                 "types that it names inside of it");
	return FATE_OK;
}

static enum fate check_schema(struct view text, struct error *error)
{
	struct schema *schema = NULL;
	enum fate fate = schema_parse(&schema, text, error);

	schema_free(schema);
	if (fate != FATE_REJECT)
		return fate;
	error->code = ERR_UNKNOWN_SCHEMA;
	return error_wrap(error, "what the registry has cannot be used");
}

enum fate answer_schema(struct view body, struct arena *arena, struct registry_version *ret_version,
                        struct error *error)
{
	__attribute__((cleanup(json_done))) json_t *answer = load(body);
	const json_t *schema = json_object_get(answer, "schema");

	*ret_version = (struct registry_version){ 0 };
	if (!json_is_object(answer))
		return strange(error, "no JSON object");
	if (!json_is_string(schema))
		return strange(error, "no schema in it");
	if (!number_or_none(answer, "id", 0, &ret_version->id) ||
	    !number_or_none(answer, "version", 1, &ret_version->version))
		return strange(error, "id or version is no number");
	enum fate fate = check_usable(answer, error);
	if (fate == FATE_OK)
		fate = check_schema(text_of(schema), error);
	if (fate != FATE_OK)
		return fate;
	ret_version->text = arena_copy(arena, text_of(schema));
	return ret_version->text.data == NULL ? no_room(error) : FATE_OK;
}

enum fate answer_id(struct view body, int32_t *ret_id, struct error *error)
{
	__attribute__((cleanup(json_done))) json_t *answer = load(body);
	const json_t *id = json_object_get(answer, "id");

	*ret_id = 0;
	if (!json_is_object(answer))
		return strange(error, "no JSON object");
	if (!is_number(id, 0))
		return strange(error, "no id in it");
	*ret_id = (int32_t)json_integer_value(id);
	return FATE_OK;
}

/* --- lists --- */

static enum fate check_list(const json_t *answer, size_t max, struct error *error)
{
	if (!json_is_array(answer) && !json_is_null(answer))
		return strange(error, "no JSON list");
	if (json_array_size(answer) > max)
		return error_set(error, FATE_REJECT, ERR_TOO_LARGE, "a list of %zu, at most %zu are taken",
		                 json_array_size(answer), max);
	return FATE_OK;
}

static int compare_numbers(const void *a, const void *b)
{
	int32_t one = *(const int32_t *)a, other = *(const int32_t *)b;

	return (one > other) - (one < other);
}

static size_t sort_once(int32_t *numbers, size_t len)
{
	size_t kept = 0;

	qsort(numbers, len, sizeof(*numbers), compare_numbers);
	for (size_t i = 0; i < len; i++) {
		if (kept == 0 || numbers[i] != numbers[kept - 1])
			numbers[kept++] = numbers[i];
	}
	return kept;
}

enum fate answer_numbers(struct view body, size_t max, struct arena *arena, int32_t **ret_numbers,
                         size_t *ret_len, struct error *error)
{
	__attribute__((cleanup(json_done))) json_t *answer = load(body);
	enum fate fate = check_list(answer, max, error);
	size_t len = json_array_size(answer);

	*ret_numbers = NULL;
	*ret_len = 0;
	if (fate != FATE_OK)
		return fate;
	int32_t *numbers = arena_array(arena, len, sizeof(*numbers));
	if (numbers == NULL)
		return no_room(error);
	for (size_t i = 0; i < len; i++) {
		if (!is_number(json_array_get(answer, i), 1))
			return strange(error, "what is no number in a list of versions");
		numbers[i] = (int32_t)json_integer_value(json_array_get(answer, i));
	}
	*ret_numbers = numbers;
	*ret_len = sort_once(numbers, len);
	return FATE_OK;
}

enum fate answer_texts(struct view body, size_t max, struct arena *arena, struct view **ret_texts,
                       size_t *ret_len, struct error *error)
{
	__attribute__((cleanup(json_done))) json_t *answer = load(body);
	enum fate fate = check_list(answer, max, error);
	size_t len = json_array_size(answer);

	*ret_texts = NULL;
	*ret_len = 0;
	if (fate != FATE_OK)
		return fate;
	struct view *texts = arena_array(arena, len, sizeof(*texts));
	if (texts == NULL)
		return no_room(error);
	for (size_t i = 0; i < len; i++) {
		const json_t *text = json_array_get(answer, i);
		if (!json_is_string(text))
			return strange(error, "what is no text in a list of names");
		texts[i] = arena_copy(arena, text_of(text));
		if (texts[i].data == NULL)
			return no_room(error);
	}
	*ret_texts = texts;
	*ret_len = len;
	return FATE_OK;
}

/* --- compatibility --- */

static enum fate take_why(const json_t *answer, struct arena *arena, struct view *ret_why,
                          struct error *error)
{
	const json_t *messages = json_object_get(answer, "messages");
	const json_t *reason = json_object_get(answer, "reason");
	char why[WHY_MAX];
	size_t len = 0;

	for (size_t i = 0; i < json_array_size(messages); i++) {
		const json_t *message = json_array_get(messages, i);
		if (len > 0 && json_is_string(message))
			len += put_line(VIEW_LITERAL("; "), why + len, sizeof(why) - len);
		if (json_is_string(message))
			len += put_line(text_of(message), why + len, sizeof(why) - len);
	}
	if (len == 0 && json_is_string(reason))
		len = put_line(text_of(reason), why, sizeof(why));
	if (len == 0)
		return FATE_OK;
	*ret_why = arena_copy(arena, (struct view){ (const uint8_t *)why, len });
	return ret_why->data == NULL ? no_room(error) : FATE_OK;
}

enum fate answer_compatible(struct view body, struct arena *arena, bool *ret_compatible, struct view *ret_why,
                            struct error *error)
{
	__attribute__((cleanup(json_done))) json_t *answer = load(body);
	const json_t *compatible = json_object_get(answer, "is_compatible");

	*ret_compatible = false;
	*ret_why = VIEW_NULL;
	if (!json_is_object(answer))
		return strange(error, "no JSON object");
	if (!json_is_boolean(compatible))
		return strange(error, "no is_compatible in it");
	*ret_compatible = json_is_true(compatible);
	return *ret_compatible ? FATE_OK : take_why(answer, arena, ret_why, error);
}

enum fate answer_rule(struct view body, struct arena *arena, struct view *ret_rule, struct error *error)
{
	__attribute__((cleanup(json_done))) json_t *answer = load(body);
	const json_t *rule = json_object_get(answer, "compatibilityLevel");

	*ret_rule = VIEW_NULL;
	if (!json_is_object(answer))
		return strange(error, "no JSON object");
	if (rule == NULL)
		rule = json_object_get(answer, "compatibility");
	if (!json_is_string(rule) || json_string_length(rule) == 0 || json_string_length(rule) > 64)
		return strange(error, "no compatibilityLevel in it");
	*ret_rule = arena_copy(arena, text_of(rule));
	return ret_rule->data == NULL ? no_room(error) : FATE_OK;
}

/* --- refusals --- */

void answer_refusal(struct view body, struct refusal *ret_refusal)
{
	__attribute__((cleanup(json_done))) json_t *answer = load(body);
	const json_t *code = json_object_get(answer, "error_code");
	const json_t *message = json_object_get(answer, "message");

	*ret_refusal = (struct refusal){ .json = json_is_object(answer) };
	if (json_is_integer(code))
		ret_refusal->code = json_integer_value(code);
	if (json_is_string(message))
		put_line(text_of(message), ret_refusal->message, sizeof(ret_refusal->message));
}

bool refusal_is_absence(const struct refusal *refusal)
{
	return refusal->json && refusal->code > 40400 && refusal->code < 40500;
}

/* --- questions --- */

enum fate question_schema(struct view text, struct buffer *out, struct error *error)
{
	if (text.len > SCHEMA_TEXT_MAX)
		return error_set(error, FATE_REJECT, ERR_TOO_LARGE, "a schema of %zu bytes, at most %zu are sent",
		                 text.len, SCHEMA_TEXT_MAX);
	if (view_is_null(text) || !view_is_utf8(text))
		return error_set(error, FATE_REJECT, ERR_INVALID, "the schema's text is not UTF-8");
	json_t *question = json_pack("{s:s%}", "schema", (const char *)text.data, text.len);
	char *dump = question == NULL ? NULL : json_dumps(question, JSON_COMPACT);
	json_decref(question);
	if (dump != NULL)
		buffer_append_text(out, dump);
	free(dump);
	if (dump == NULL || buffer_failed(out))
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory to ask the registry about a schema");
	return FATE_OK;
}

static bool is_plain(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
	       c == '.' || c == '_' || c == '~';
}

void question_segment(struct view text, struct buffer *out)
{
	for (size_t i = 0; i < text.len; i++) {
		if (is_plain(text.data[i]))
			buffer_append_byte(out, text.data[i]);
		else
			buffer_printf(out, "%%%02X", (unsigned)text.data[i]);
	}
}
