#include "cli/letter.h"

#include "core/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ERROR_PREFIX  "fermata.error."
#define TOPIC_MAX     249
#define TEXT_MAX      4096
#define DIGITS_MAX    18
#define SINGLE_OBJECT 10 /* bytes before the body: C3 01 and the fingerprint */
#define REGISTRY      5  /* 00 and the schema id */

/* ---- checked pieces ---- */

static bool take_number(struct view text, int64_t most, int64_t *ret_number)
{
	int64_t number = 0;

	if (view_is_null(text) || text.len == 0 || text.len > DIGITS_MAX)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] < '0' || text.data[i] > '9')
			return false;
		number = number * 10 + (text.data[i] - '0');
	}
	*ret_number = number;
	return number <= most;
}

/* A record without a time has -1. */
static bool take_timestamp(struct view text, int64_t *ret_ms)
{
	*ret_ms = -1;
	return view_equal_text(text, "-1") || take_number(text, INT64_MAX, ret_ms);
}

static bool is_text(struct view text)
{
	return !view_is_null(text) && text.len > 0 && text.len <= TEXT_MAX && view_is_utf8(text) &&
	       !view_has_nul(text);
}

/* Kafka's own rule for names. */
static bool is_topic(struct view text)
{
	if (view_is_null(text) || text.len == 0 || text.len > TOPIC_MAX)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		uint8_t c = text.data[i];
		bool fit = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
		           c == '_' || c == '-';
		if (!fit)
			return false;
	}
	return true;
}

static struct view last_header(const struct letter *letter, const char *name)
{
	for (size_t i = letter->headers_len; i > 0; i--)
		if (!strcmp(letter->headers[i - 1].name, name))
			return letter->headers[i - 1].value;
	return VIEW_NULL;
}

/* ---- reading ---- */

static bool read_error_headers(struct letter *letter)
{
	int64_t partition, offset;
	struct letter said = {
		.code = last_header(letter, ERROR_PREFIX "code"),
		.reason = last_header(letter, ERROR_PREFIX "reason"),
		.stage = last_header(letter, ERROR_PREFIX "stage"),
		.topic = last_header(letter, ERROR_PREFIX "topic"),
	};

	if (!is_text(said.code) || !is_text(said.reason) || !is_topic(said.topic) ||
	    !(view_equal_text(said.stage, "suspend") || view_equal_text(said.stage, "approval")) ||
	    !take_number(last_header(letter, ERROR_PREFIX "partition"), INT32_MAX, &partition) ||
	    !take_number(last_header(letter, ERROR_PREFIX "offset"), INT64_MAX, &offset) ||
	    !take_timestamp(last_header(letter, ERROR_PREFIX "timestamp"), &said.timestamp_ms))
		return false;
	letter->code = said.code;
	letter->reason = said.reason;
	letter->stage = said.stage;
	letter->topic = said.topic;
	letter->partition = (int32_t)partition;
	letter->offset = offset;
	letter->timestamp_ms = said.timestamp_ms;
	return true;
}

static int64_t read_redrives(const struct letter *letter)
{
	int64_t count = 0;

	for (size_t i = 0; i < letter->headers_len; i++)
		if (!strcmp(letter->headers[i].name, LETTER_REDRIVES_HEADER))
			return take_number(last_header(letter, LETTER_REDRIVES_HEADER), INT32_MAX, &count) ? count : -1;
	return 0;
}

void letter_read(const struct coordinates *at, struct view key, struct view value,
                 const struct header *headers, size_t headers_len, struct letter *ret_letter)
{
	*ret_letter = (struct letter){ .at = *at,
		                           .key = key,
		                           .value = value,
		                           .headers = headers,
		                           .headers_len = headers_len,
		                           .partition = -1,
		                           .offset = -1,
		                           .timestamp_ms = -1 };
	ret_letter->known = read_error_headers(ret_letter);
	ret_letter->redrives = read_redrives(ret_letter);
}

char *letter_origin(const struct letter *letter, char text[LETTER_ORIGIN_MAX])
{
	snprintf(text, LETTER_ORIGIN_MAX, "%.*s:%" PRId32 ":%" PRId64 "@%" PRId64, (int)letter->topic.len,
	         (const char *)letter->topic.data, letter->partition, letter->offset, letter->timestamp_ms);
	return text;
}

bool letter_is_emptied(const struct letter *letter)
{
	return view_equal_text(letter->code, "too_large") && letter->value.len == 0;
}

/* ---- codes ---- */

static const struct {
	enum error_code code;
	const char *change_first;
} advices[] = {
	{ ERR_FRAMING,
	  "it does not begin as a record does: its sender has to send it again, framed; a framing of a "
	  "registry wants registry.url" },
	{ ERR_UNKNOWN_SCHEMA,
	  "put the schema that it was written with into the folder of schemas.path, or into the "
	  "registry" },
	{ ERR_MALFORMED, "its bytes do not follow their schema: its sender has to send it again" },
	{ ERR_INVALID,
	  "a field has a value that is not allowed: its sender has to send it again with another one" },
	{ ERR_TOO_LARGE, "raise limits.record_bytes of the workers" },
	{ ERR_NOT_AT_BOUNDARY,
	  "it was not saved at a boundary: set limits.boundary = step where strict is too much, "
	  "else its sender has to suspend elsewhere" },
	{ ERR_CONFLICT,
	  "another record has its id, and stands: its sender has to send it again under an id of its own" },
	{ ERR_UNCLAIMED_FULL, "let its suspend event come in, or raise worker.unclaimed_max" },
	{ ERR_REJECTED_BY_STORE, "see what the database said in the reason" },
};

#define ADVICES (sizeof(advices) / sizeof(advices[0]))

const char *letter_change_first(struct view code)
{
	for (size_t i = 0; i < ADVICES; i++)
		if (view_equal_text(code, error_code_name(advices[i].code)))
			return advices[i].change_first;
	return "see the reason: this version does not know the code";
}

bool letter_code_is_known(const char *code, const char **ret_all)
{
	*ret_all = "framing, unknown_schema, malformed, invalid, too_large, not_at_boundary, conflict, "
			   "unclaimed_full, rejected_by_store";
	for (size_t i = 0; i < ADVICES; i++)
		if (!strcmp(code, error_code_name(advices[i].code)))
			return true;
	return false;
}

/* ---- the value ---- */

char *letter_framing(struct view value, char *text, size_t cap)
{
	const uint8_t *data = value.data;

	if (view_is_null(value))
		snprintf(text, cap, "null");
	else if (value.len == 0)
		snprintf(text, cap, "empty");
	else if (value.len >= SINGLE_OBJECT && data[0] == 0xc3 && data[1] == 0x01)
		snprintf(text, cap, "single object, fingerprint %02x%02x%02x%02x%02x%02x%02x%02x", data[2], data[3],
		         data[4], data[5], data[6], data[7], data[8], data[9]);
	else if (value.len >= REGISTRY && data[0] == 0x00)
		snprintf(text, cap, "Confluent, schema id %" PRIu32,
		         (uint32_t)data[1] << 24 | (uint32_t)data[2] << 16 | (uint32_t)data[3] << 8 | data[4]);
	else
		snprintf(text, cap, "none that is known%s",
		         data[0] == '{' || data[0] == '[' ? " (it begins as JSON does)" : "");
	return text;
}

/* ---- going back ---- */

static bool is_ours(const char *name)
{
	return !strncmp(name, ERROR_PREFIX, strlen(ERROR_PREFIX)) || !strcmp(name, LETTER_REDRIVES_HEADER);
}

enum fate letter_headers_back(const struct letter *letter, struct arena *arena, struct header **ret_headers,
                              size_t *ret_len, struct error *error)
{
	struct header *headers = arena_array(arena, letter->headers_len + 1, sizeof(*headers));
	char *count = arena_printf(arena, "%" PRId64, letter->redrives + 1);
	size_t len = 0;

	if (headers == NULL || count == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for the headers of a record");
	for (size_t i = 0; i < letter->headers_len; i++)
		if (!is_ours(letter->headers[i].name))
			headers[len++] = letter->headers[i];
	headers[len++] = (struct header){ LETTER_REDRIVES_HEADER, view_of(count) };
	*ret_headers = headers;
	*ret_len = len;
	return FATE_OK;
}

/* ---- places ---- */

enum fate letter_place_parse(const char *text, struct letter_place *ret_place, struct error *error)
{
	const char *colon = strchr(text, ':');
	int64_t partition;

	if (colon == NULL ||
	    !take_number((struct view){ (const uint8_t *)text, (size_t)(colon - text) }, INT32_MAX, &partition) ||
	    !take_number(view_of(colon + 1), INT64_MAX, &ret_place->offset))
		return error_set(
			error, FATE_FATAL, ERR_USAGE,
			"%.60s: a letter is named by its place, PARTITION:OFFSET of the dead-letters topic, as "
			"`fermata dead-letters list` shows it",
			text);
	ret_place->partition = (int32_t)partition;
	return FATE_OK;
}
