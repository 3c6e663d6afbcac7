/*
 * json_read.h - values out of a jansson tree into an arena, with the path of what is wrong. Private to this
 * room. Failure is sticky: the first error stays, later calls give empty values.
 *
 * A union may stand plain, or in Avro's own form: an object whose only member has the name of the branch.
 */
#ifndef FERMATA_SCHEMAS_JSON_READ_H
#define FERMATA_SCHEMAS_JSON_READ_H

#include "core/records.h"
#include "schemas/path.h"

#include <jansson.h>

struct json_reader {
	struct arena *arena;
	bool failed;
	struct error *error; /* never NULL */
};

/* An object and where it stands. */
struct json_place {
	struct json_reader *reader;
	const json_t *object;
	struct path_step step; /* field NULL and up NULL: the record itself */
	bool top;
};

void json_wrong(struct json_reader *reader, const struct path_step *at, const char *text);

/* The member as it is, NULL when it is not there (or is null). */
const json_t *json_find(const struct json_place *place, const char *name);
/* As json_find; not there is an error. */
const json_t *json_need(const struct json_place *place, const char *name);
/* Where a member of place stands. */
struct path_step json_step(const struct json_place *place, const char *name);
/* value as an object at step; every member must be among names (NULL at the end). */
struct json_place json_enter(struct json_reader *reader, const json_t *value, struct path_step step,
                             const char *const *names);
/* Takes Avro's {"branch": value} off when that is what it is. */
const json_t *json_unwrap(const json_t *value, const char *branch);

struct view json_string_copy(struct json_reader *reader, const json_t *value, const struct path_step *at);
struct view json_need_text(const struct json_place *place, const char *name);
struct view json_text_or_null(const struct json_place *place, const char *name);
struct view json_text_or(const struct json_place *place, const char *name, const char *fallback);
/* JSON text in a string, or an object or array that is the JSON itself. */
struct view json_need_json(const struct json_place *place, const char *name);
int64_t json_need_integer(const struct json_place *place, const char *name, int64_t min, int64_t max);
int64_t json_integer_or(const struct json_place *place, const char *name, int64_t min, int64_t max,
                        int64_t fallback);
int64_t json_time_or_none(const struct json_place *place, const char *name);
/* A symbol: its position among count names. */
int json_symbol(struct json_reader *reader, const json_t *value, const struct path_step *at,
                const char *(*name_of)(int), int count);
int json_need_symbol(const struct json_place *place, const char *name, const char *(*name_of)(int),
                     int count);
int json_symbol_or(const struct json_place *place, const char *name, const char *(*name_of)(int), int count,
                   int fallback);
/* Bytes as code points U+0000 to U+00FF. */
struct view json_bytes_copy(struct json_reader *reader, const json_t *value, const struct path_step *at);
/* The member must be an array (of strings); not there is an error unless optional. */
const json_t *json_need_array(const struct json_place *place, const char *name);
struct view *json_need_texts(const struct json_place *place, const char *name, bool optional,
                             size_t *ret_len);
/* An array of count items of size in the arena; NULL with the reader failed. */
void *json_room(struct json_reader *reader, size_t count, size_t size);

/* json_config.c: a value of config. */
void json_config_value(struct json_reader *reader, const json_t *value, const struct path_step *at,
                       struct config_entry *entry);

#endif
