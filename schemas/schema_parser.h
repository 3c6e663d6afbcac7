/* schema_parser.h - what the parts of the schema parser share. Private to this room. */
#ifndef FERMATA_SCHEMAS_SCHEMA_PARSER_H
#define FERMATA_SCHEMAS_SCHEMA_PARSER_H

#include "schemas/schema.h"

#include <jansson.h>

/* Where in the schema we are: a chain on the C stack, as deep as the nesting. */
struct place {
	const struct place *up;
	const char *name;
};

/* One that waits to hear that a type has a value. */
struct schema_use {
	struct schema_type *user;
	struct schema_use *next;
};

struct field_entry {
	struct schema_type *record;
	struct schema_field *field;
};

struct parser {
	struct schema *schema;
	struct arena *arena;
	json_t *names;              /* full name -> ordinal */
	struct schema_type **named; /* by ordinal */
	size_t named_cap;
	struct field_entry *fields; /* every field, in the order of the text */
	size_t fields_len;
	size_t fields_cap;
	struct schema_type *primitives[SCHEMA_STRING + 1];
	struct error *error;
};

/* Fills the parser's error: the place, a colon, the text. Always false. */
bool parser_wrong(struct parser *p, const struct place *at, const char *fmt, ...) FM_PRINTF(3, 4);
bool parser_no_memory(struct parser *p);

/* schema_weigh.c: about how many bytes the tree of a JSON text takes. */
size_t schema_weigh(struct view text);

/* schema_names.c */

/* A name of the specification: a letter or _, then letters, digits, _. */
bool name_is_valid(const char *text, size_t len);
/* Names with dots between them. */
bool name_is_dotted(const char *text, size_t len);
/* Is it the name of one of the eight primitive types? Its kind, or -1. */
int name_primitive(const char *text, size_t len);
/* The full name that text means inside of a namespace ("" for none); false with the error filled. */
bool name_resolve(struct parser *p, const struct place *at, const json_t *text, const char *space,
                  char ret_full[SCHEMA_NAME_MAX + 1]);
/* Full name and namespace of a type that is being defined; false with the error filled. */
bool name_define(struct parser *p, const struct place *at, const json_t *json, const char *space,
                 const char **ret_full, const char **ret_space);
/* Are `aliases` and (for fields) `order` what they may be? */
bool name_check_aliases(struct parser *p, const struct place *at, const json_t *json, bool dotted);

/* schema_finite.c: does a value of each type exist? */

/* user (a record or a union that is not complete) holds part. */
bool finite_use(struct parser *p, struct schema_type *user, struct schema_type *part);
/* All parts of a type are known. */
void finite_complete(struct schema_type *type);

/* schema_default.c: are the defaults of all fields values of their types, with an end? */
bool defaults_check(struct parser *p);

#endif
