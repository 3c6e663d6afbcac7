#include "schemas/json_write.h"

#include "core/clock.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void separate(struct json_writer *w)
{
	if (w->follows)
		buffer_append_byte(w->out, ',');
	w->follows = true;
}

void json_open(struct json_writer *w, char bracket)
{
	separate(w);
	buffer_append_byte(w->out, (uint8_t)bracket);
	w->follows = false;
}

void json_close(struct json_writer *w, char bracket)
{
	buffer_append_byte(w->out, (uint8_t)bracket);
	w->follows = true;
}

/* What a byte below 0x80 is written as, or NULL: as itself. room: at least 8 bytes. */
static const char *escape_of(uint8_t byte, char *room)
{
	static const char *const shorts[] = {
		['\b'] = "\\b", ['\t'] = "\\t", ['\n'] = "\\n", ['\f'] = "\\f", ['\r'] = "\\r"
	};

	if (byte == '"')
		return "\\\"";
	if (byte == '\\')
		return "\\\\";
	if (byte >= 0x20)
		return NULL;
	if (byte < sizeof(shorts) / sizeof(shorts[0]) && shorts[byte])
		return shorts[byte];
	snprintf(room, 8, "\\u%04x", byte);
	return room;
}

static void write_quoted(struct buffer *out, struct view text)
{
	char room[8];
	size_t start = 0;
	bool good = view_is_utf8(text);

	buffer_append_byte(out, '"');
	for (size_t i = 0; i < text.len; i++) {
		const char *instead = escape_of(text.data[i], room);
		if (!good && text.data[i] >= 0x80)
			instead = "\xef\xbf\xbd";
		if (!instead)
			continue;
		buffer_append(out, text.data + start, i - start);
		buffer_append_text(out, instead);
		start = i + 1;
	}
	if (text.len > start)
		buffer_append(out, text.data + start, text.len - start);
	buffer_append_byte(out, '"');
}

void json_name_view(struct json_writer *w, struct view name)
{
	separate(w);
	write_quoted(w->out, name);
	buffer_append_byte(w->out, ':');
	w->follows = false;
}

void json_name(struct json_writer *w, const char *name)
{
	json_name_view(w, view_of(name));
}

void json_word(struct json_writer *w, const char *word)
{
	separate(w);
	buffer_append_text(w->out, word);
}

void json_raw(struct json_writer *w, struct view json)
{
	separate(w);
	buffer_append_view(w->out, json);
}

void json_text(struct json_writer *w, struct view text)
{
	if (view_is_null(text)) {
		json_word(w, "null");
		return;
	}
	separate(w);
	write_quoted(w->out, text);
}

void json_number(struct json_writer *w, int64_t number)
{
	separate(w);
	buffer_printf(w->out, "%" PRId64, number);
}

void json_time(struct json_writer *w, int64_t time)
{
	if (time == TIME_NONE)
		json_word(w, "null");
	else
		json_number(w, time);
}

/* 17 digits always suffice (IEEE 754 double), 15 often do. The decimal point does not follow the locale, and
 * a whole number gets one, so that it reads back as a double. */
static void write_double(struct buffer *out, double number)
{
	char text[32];

	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, number);
		if (strtod(text, NULL) == number)
			break;
	}
	char *comma = strchr(text, ',');
	if (comma)
		*comma = '.';
	buffer_append_text(out, text);
	if (!strpbrk(text, ".e"))
		buffer_append_text(out, ".0");
}

void json_double(struct json_writer *w, double number)
{
	separate(w);
	if (isnan(number))
		buffer_append_text(w->out, "\"NaN\"");
	else if (isinf(number))
		buffer_append_text(w->out, number > 0 ? "\"Infinity\"" : "\"-Infinity\"");
	else
		write_double(w->out, number);
}

void json_bytes(struct json_writer *w, struct view bytes)
{
	char room[8];

	if (view_is_null(bytes)) {
		json_word(w, "null");
		return;
	}
	separate(w);
	buffer_append_byte(w->out, '"');
	for (size_t i = 0; i < bytes.len; i++) {
		uint8_t byte = bytes.data[i];
		const char *instead = escape_of(byte, room);
		if (instead) {
			buffer_append_text(w->out, instead);
		} else if (byte < 0x80) {
			buffer_append_byte(w->out, byte);
		} else {
			buffer_append_byte(w->out, (uint8_t)(0xc0 | byte >> 6));
			buffer_append_byte(w->out, (uint8_t)(0x80 | (byte & 0x3f)));
		}
	}
	buffer_append_byte(w->out, '"');
}
