/*
 * schema.h - the text of an Avro schema, checked by ourselves, in a form that can be walked.
 *
 * avro-c trusts schema text too much (a negative size of a fixed overruns its heap, a record that holds
 * itself kills it), so no text reaches it that has not passed here. What is checked follows the Avro
 * specification 1.12: names, namespaces and aliases; no name defined twice; no field, symbol or branch
 * twice in one place; sizes; the order attribute; defaults that fit their field; and two things that have
 * no value at all: a record that holds itself without a way out, and a default that holds itself.
 *
 * Limits, so that nobody's schema costs more than time in proportion to its length: 1 MiB of text whose JSON is
 * a tree of 32 MiB at most (350,000 times "{}," would be one of 80), types (and defaults) nested 64 deep, 10,000
 * fields in all, full names of 1 KiB, a canonical form of 16 MiB.
 */
#ifndef FERMATA_SCHEMAS_SCHEMA_H
#define FERMATA_SCHEMAS_SCHEMA_H

#include "core/memory.h"

#define SCHEMA_TEXT_MAX      ((size_t)1024 * 1024)
#define SCHEMA_WEIGHT_MAX    ((size_t)32 * 1024 * 1024) /* of the JSON as a tree */
#define SCHEMA_DEPTH_MAX     64
#define SCHEMA_FIELDS_MAX    10000
#define SCHEMA_NAME_MAX      1024
#define SCHEMA_CANONICAL_MAX ((size_t)16 * 1024 * 1024)

struct json_t; /* jansson's, which stays in this room */

enum schema_kind {
	SCHEMA_NULL,
	SCHEMA_BOOLEAN,
	SCHEMA_INT,
	SCHEMA_LONG,
	SCHEMA_FLOAT,
	SCHEMA_DOUBLE,
	SCHEMA_BYTES,
	SCHEMA_STRING,
	SCHEMA_RECORD,
	SCHEMA_ENUM,
	SCHEMA_FIXED,
	SCHEMA_ARRAY,
	SCHEMA_MAP,
	SCHEMA_UNION,
};

struct schema_type;

struct schema_field {
	const char *name;
	struct schema_type *type;
	const struct json_t *fallback; /* the default's JSON, or NULL when it has none */
	const struct json_t *json;     /* the field as it was written: aliases, order, doc */
	size_t ordinal;                /* counts all fields of the schema from 0 */
};

/* A type. A named type is one object however often it is used, so types may form circles. */
struct schema_type {
	enum schema_kind kind;
	const char *name;            /* full name of a record, enum or fixed; else NULL */
	size_t ordinal;              /* counts the named types from 0; else 0 */
	size_t len;                  /* number of fields, symbols or branches; size of a fixed */
	size_t min_len;              /* no value takes fewer bytes on the wire */
	struct schema_field *fields; /* record */
	const char **symbols;        /* enum */
	struct schema_type **branches;
	struct schema_type *item;  /* of an array; value of a map */
	const struct json_t *json; /* as it was written: aliases, default of an enum, logicalType; may be NULL */
	struct json_t *index;      /* record, enum: name -> position of its fields or symbols */
	size_t required;           /* fields that have no default */
	/* While parsing only: */
	bool finite;
	size_t pending;
	struct schema_use *uses;
};

struct schema {
	struct schema_type *root;
	struct schema_type **named; /* by ordinal */
	size_t named_len;
	struct arena *arena;
	struct json_t *json;
};

/* Parses and checks. Keeps nothing of text. REJECT ERR_INVALID says what is wrong and where. */
FM_MUSTCHECK enum fate schema_parse(struct schema **ret_schema, struct view text, struct error *error);
void schema_free(struct schema *schema);

/* Position of a record's field or an enum's symbol by name; -1 when there is none. */
long schema_find(const struct schema_type *type, const char *name);

/* Is the full name that of a record, enum or fixed, or one of its aliases? An alias without a dot is in the namespace
 * of the type that has it. False for types without a name. */
bool schema_is_called(const struct schema_type *type, struct view full);
/* Is this alias of the type's that full name? */
bool schema_alias_is(const struct schema_type *type, const char *alias, struct view full);

/* "null", "boolean", ... "union". */
const char *schema_kind_name(enum schema_kind kind);

/* Appends the parsing canonical form (Avro specification, "Transforming into Parsing Canonical Form"). */
FM_MUSTCHECK enum fate schema_canonical(const struct schema *schema, struct buffer *out, struct error *error);

/*
 * Appends a schema of the same bytes for avro-c: every map has become an array of records {key, value},
 * which is the same on the wire. avro-c keeps maps in a hash table whose keys end at the first NUL, whose
 * collisions anyone can compute, and where the last of two equal keys wins in silence. type may be a part
 * of the schema.
 */
FM_MUSTCHECK enum fate schema_wire_text(const struct schema *schema, const struct schema_type *type,
                                        struct buffer *out, struct error *error);

#endif
