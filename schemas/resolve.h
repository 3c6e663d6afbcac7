/*
 * resolve.h - resolution as other programs see it: one datum of raw Avro binary as Avro's JSON encoding, and
 * lines of JSON with both schemas and a datum in them (`fermata schema resolve`).
 */
#ifndef FERMATA_SCHEMAS_RESOLVE_H
#define FERMATA_SCHEMAS_RESOLVE_H

#include "schemas/schema.h"

#define RESOLVE_BYTES_MAX                                                                                    \
	((size_t)16 * 1024 * 1024) /* of a datum, before and after; after also 1 MiB + 10 * before */
#define RESOLVE_LINE_MAX (2 * RESOLVE_BYTES_MAX)

/*
 * Appends a value of type as Avro's JSON encoding has it: a union's value is null or {"branch": value} with
 * full names, bytes and fixed are a code point a byte; NaN and the infinities are strings. The bytes must have
 * passed the guard. Fails only at the buffer's ceiling: REJECT ERR_TOO_LARGE.
 */
FM_MUSTCHECK enum fate resolve_json(const struct schema_type *type, struct view body, struct buffer *out,
                                    struct error *error);

struct resolver;

FM_MUSTCHECK enum fate resolver_new(struct resolver **ret_resolver, struct error *error);
void resolver_free(struct resolver *resolver);

/* The datum under the reader's schema, appended as JSON; writer and reader are texts of schemas. REJECT: the
 * message says why, and whether always or only for this value. */
FM_MUSTCHECK enum fate resolve_datum(struct resolver *resolver, struct view writer, struct view reader,
                                     struct view body, struct buffer *out, struct error *error);

/*
 * {"id","writer","reader","body"} to {"id","ok":true,"body"} or {"id","ok":false,"error","when"}, appended
 * without a newline. id is any JSON. writer and reader are schemas, as JSON or as strings that hold their text;
 * a string that does not begin like JSON is the name of a type. body is base64. What is wrong with a line is
 * said in the answer; RETRY: no memory.
 */
FM_MUSTCHECK enum fate resolve_line(struct resolver *resolver, struct view line, struct buffer *out,
                                    struct error *error);

#endif
