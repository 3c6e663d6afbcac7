/*
 * json_write.h - JSON text into a buffer, by hand: numbers keep their 64 bits, U+0000 is written as an
 * escape, and JSON text that is there already goes in as it is. Private to this room.
 *
 * Whoever writes opens and closes in the right order; in an object each value has its name before it.
 */
#ifndef FERMATA_SCHEMAS_JSON_WRITE_H
#define FERMATA_SCHEMAS_JSON_WRITE_H

#include "core/memory.h"

struct json_writer {
	struct buffer *out;
	bool follows; /* the next value or name wants a comma before it */
};

void json_open(struct json_writer *w, char bracket); /* '{' or '[' */
void json_close(struct json_writer *w, char bracket);
void json_name(struct json_writer *w, const char *name);
void json_name_view(struct json_writer *w, struct view name);
/* A null view is null. What is not UTF-8 is written with U+FFFD in the place of each wrong byte. */
void json_text(struct json_writer *w, struct view text);
void json_word(struct json_writer *w, const char *word); /* null, true, or text that is JSON already */
void json_raw(struct json_writer *w, struct view json);
void json_number(struct json_writer *w, int64_t number);
/* 15 to 17 digits, as few as read back as the same double; NaN and infinities as strings. */
void json_double(struct json_writer *w, double number);
void json_time(struct json_writer *w, int64_t time); /* TIME_NONE: null */
/* Avro's JSON encoding of bytes: a code point a byte. A null view is null. */
void json_bytes(struct json_writer *w, struct view bytes);

#endif
