/* What a registry answers: the first byte says to which question, the rest is the body. */
#include "schemas/registry_answer.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#define ROOM ((size_t)64 * 1024 * 1024)

static void need(bool claim)
{
	if (!claim)
		abort();
}

static void read_schema(struct view body, struct arena *arena)
{
	struct registry_version version;
	struct error error;

	if (answer_schema(body, arena, &version, &error) != FATE_OK)
		return;
	need(version.text.len <= body.len && view_is_utf8(version.text) && version.id >= 0 &&
	     version.version >= 0);
}

static void read_numbers(struct view body, struct arena *arena)
{
	struct error error;
	int32_t *numbers, id;
	size_t len;

	if (answer_id(body, &id, &error) == FATE_OK)
		need(id >= 0);
	if (answer_numbers(body, 100, arena, &numbers, &len, &error) != FATE_OK)
		return;
	need(len <= 100);
	for (size_t i = 0; i < len; i++)
		need(numbers[i] > (i == 0 ? 0 : numbers[i - 1]));
}

static void read_texts(struct view body, struct arena *arena)
{
	struct error error;
	struct view *texts, rule;
	size_t len;

	if (answer_texts(body, 100, arena, &texts, &len, &error) == FATE_OK) {
		need(len <= 100);
		for (size_t i = 0; i < len; i++)
			need(view_is_utf8(texts[i]));
	}
	if (answer_rule(body, arena, &rule, &error) == FATE_OK)
		need(rule.len > 0 && rule.len <= 64);
}

static bool is_line(struct view text)
{
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] < 0x20 || text.data[i] == 0x7f)
			return false;
	}
	return view_is_utf8(text);
}

static void read_reasons(struct view body, struct arena *arena)
{
	struct error error;
	struct refusal refusal;
	struct view why;
	bool compatible;

	if (answer_compatible(body, arena, &compatible, &why, &error) == FATE_OK)
		need(is_line(why));
	answer_refusal(body, &refusal);
	need(is_line(view_of(refusal.message)) && strlen(refusal.message) < sizeof(refusal.message));
}

/* A text that is sent comes back as it was; a segment of a path has no separator in it. */
static void write(struct view text, struct arena *arena)
{
	struct buffer out;
	struct registry_version version;
	struct error error;

	buffer_init(&out, 6 * text.len + 100);
	if (question_schema(text, &out, &error) == FATE_OK &&
	    answer_schema(buffer_view(&out), arena, &version, &error) == FATE_OK)
		need(view_equal(version.text, text));
	buffer_reset(&out);
	question_segment(text, &out);
	need(!buffer_failed(&out) && out.len >= text.len);
	for (size_t i = 0; i < out.len; i++)
		need(strchr("/?# \r\n", out.data[i]) == NULL);
	buffer_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static void (*const readers[])(struct view body, struct arena * arena) = { read_schema, read_numbers,
		                                                                       read_texts, read_reasons,
		                                                                       write };
	struct arena *arena = len == 0 ? NULL : arena_new(ROOM);

	if (arena == NULL)
		return 0;
	readers[(uint8_t)(data[0] - '0') % (sizeof(readers) / sizeof(readers[0]))](
		(struct view){ data + 1, len - 1 }, arena);
	arena_free(arena);
	return 0;
}
