/* The small writer of json.h: one object, member by member. */
#include "schemas/json.h"
#include "schemas/json_write.h"

#include <stdlib.h>

#define LINE_MAX_BYTES ((size_t)256 * 1024 * 1024)

struct json_line {
	struct buffer text;
	struct json_writer writer;
};

struct json_line *json_line_new(void)
{
	struct json_line *line = calloc(1, sizeof(*line));

	if (!line)
		return NULL; /* json_line_end will say so */
	buffer_init(&line->text, LINE_MAX_BYTES);
	line->writer.out = &line->text;
	json_open(&line->writer, '{');
	return line;
}

/* The writer with the member's name written, or NULL. */
static struct json_writer *member(struct json_line *line, const char *name)
{
	if (!line)
		return NULL;
	json_name(&line->writer, name);
	return &line->writer;
}

void json_line_text(struct json_line *line, const char *name, struct view value)
{
	struct json_writer *w = member(line, name);

	if (w)
		json_text(w, value);
}

void json_line_number(struct json_line *line, const char *name, int64_t value)
{
	struct json_writer *w = member(line, name);

	if (w)
		json_number(w, value);
}

void json_line_time(struct json_line *line, const char *name, int64_t value)
{
	struct json_writer *w = member(line, name);

	if (w)
		json_time(w, value);
}

void json_line_flag(struct json_line *line, const char *name, bool value)
{
	struct json_writer *w = member(line, name);

	if (w)
		json_word(w, value ? "true" : "false");
}

void json_line_bytes(struct json_line *line, const char *name, struct view value)
{
	struct json_writer *w = member(line, name);

	if (w)
		json_bytes(w, value);
}

void json_line_texts(struct json_line *line, const char *name, const struct view *values, size_t len)
{
	struct json_writer *w = member(line, name);

	if (!w)
		return;
	json_open(w, '[');
	for (size_t i = 0; i < len; i++)
		json_text(w, values[i]);
	json_close(w, ']');
}

void json_line_map(struct json_line *line, const char *name, const struct label *labels, size_t len)
{
	struct json_writer *w = member(line, name);

	if (!w)
		return;
	json_open(w, '{');
	for (size_t i = 0; i < len; i++) {
		json_name_view(w, labels[i].key);
		json_text(w, labels[i].value);
	}
	json_close(w, '}');
}

void json_line_raw(struct json_line *line, const char *name, struct view json)
{
	struct json_writer *w = member(line, name);

	if (w)
		json_raw(w, json);
}

enum fate json_line_end(struct json_line *line, struct buffer *out, struct error *error)
{
	if (!line)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for a line of JSON");
	json_close(&line->writer, '}');
	if (!buffer_failed(&line->text))
		buffer_append_view(out, buffer_view(&line->text));
	const struct buffer *failed = buffer_failed(&line->text) ? &line->text : out;
	enum fate fate = FATE_OK;
	if (buffer_failed(failed))
		fate = buffer_refused(failed, error, "a line of JSON is longer than there is room for");
	buffer_done(&line->text);
	free(line);
	return fate;
}
