/*
 * json.h - the records as JSON (jansson). Field names as in the records, unions plain, times as integers,
 * bytes and fixed as in Avro's JSON encoding (a code point a byte), NaN and infinities as strings.
 */
#ifndef FERMATA_SCHEMAS_JSON_H
#define FERMATA_SCHEMAS_JSON_H

#include "core/records.h"

/* What suspend_from_json filled in by itself. */
struct suspend_filled {
	bool checkpoint_id;
	bool suspended_at;
	bool suspend_seq;
	bool salt;
};

/*
 * One SuspendEvent: Avro's JSON field names, unions plain or in Avro's own form ({"string": "x"}). Missing
 * checkpoint_id, suspended_at, salt are made; a missing suspend_seq is suspended_at in microseconds; other
 * missing fields get the schema's default or are an error that names them; an unknown field is an error.
 * In `arguments` a JSON string is the JSON text; an object or array there is taken as the JSON itself.
 * REJECT ERR_INVALID names the field.
 */
FM_MUSTCHECK enum fate suspend_from_json(struct view line, struct arena *arena,
                                         struct suspend_event *ret_event, struct suspend_filled *ret_filled,
                                         struct error *error);

/* The value of --edit K=V: JSON (null, boolean, integer, double, string, array of strings), else a string. */
FM_MUSTCHECK enum fate config_entry_from_text(struct view key, struct view text, struct arena *arena,
                                              struct config_entry *ret_entry, struct error *error);

/* One line without a newline. Fail only when the buffer's ceiling is reached. */
FM_MUSTCHECK enum fate suspend_to_json(const struct suspend_event *event, struct buffer *out,
                                       struct error *error);
FM_MUSTCHECK enum fate approval_to_json(const struct approval_event *event, struct buffer *out,
                                        struct error *error);
FM_MUSTCHECK enum fate resume_to_json(const struct resume_event *event, struct buffer *out,
                                      struct error *error);
FM_MUSTCHECK enum fate gate_to_json(const struct gate_event *event, struct buffer *out, struct error *error);

/* A small writer for the other listings (jansson stays in this room). */
struct json_line;
struct json_line *json_line_new(void);
void json_line_text(struct json_line *line, const char *name, struct view value); /* null view: null */
void json_line_number(struct json_line *line, const char *name, int64_t value);
void json_line_time(struct json_line *line, const char *name, int64_t value); /* TIME_NONE: null */
void json_line_flag(struct json_line *line, const char *name, bool value);
void json_line_bytes(struct json_line *line, const char *name, struct view value); /* a code point a byte */
void json_line_texts(struct json_line *line, const char *name, const struct view *values, size_t len);
void json_line_map(struct json_line *line, const char *name, const struct label *labels, size_t len);
/* Raw JSON text that is known to be valid. */
void json_line_raw(struct json_line *line, const char *name, struct view json);
/* Appends the object as one line without a newline and frees line. */
FM_MUSTCHECK enum fate json_line_end(struct json_line *line, struct buffer *out, struct error *error);

#endif
